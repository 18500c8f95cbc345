"""Make run folders for ``tests/runs/test_old_runs.py`` with the fieldbo that is on the path.

Later versions must open, explain, export and resume these folders, so make them with a released version,
once, and never again::

    PYTHONPATH=path/to/fieldbo-0.1.0 python tests/old_runs/make.py tests/old_runs/0.1.0

Each folder holds the record, the mission and the world, and `expected.json`: every order that the version
gave in an uninterrupted run of the same mission, with the summary of that run.
"""

import json
import math
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import fieldbo

try:
    from fieldbo.runs.folder import begin
except ImportError:  # 0.1.0
    from fieldbo.folder import begin

RUNS = {
    # name: (mission, overrides, steps before the interrupt or None)
    "lake": ("lake-level-set", {"agent": {"max_steps": 18}}, 11),
    "lake-log": ("lake-level-set", {"agent": {"max_steps": 12}, "model": {"transform": "log"}}, None),
    "lake-outliers": ("lake-level-set-outliers", {"agent": {"max_steps": 14}}, 9),
    "batch": ("gp-lake-truvar-batch", {"agent": {"max_steps": 14}}, 7),
    "wall": ("wall-worst-crack", {"agent": {"battery": 8}}, 5),
    "wall-map": ("wall-damage-map", {"agent": {"battery": 8}}, None),
    "chain": ("cell-hartmann-6-lambo", {"agent": {"max_steps": 20}}, 17),
    "control-sets": ("cell-growth", {"agent": {"max_steps": 14}}, 8),
    "control-sets-ended": ("cell-growth-etc", {"agent": {"max_steps": 9}}, None),
}


def plain(value):
    """Return a value as JSON can hold it: NaN and infinity become None."""
    if isinstance(value, dict):
        return {key: plain(x) for key, x in value.items()}
    if isinstance(value, list | tuple):
        return [plain(x) for x in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def orders_of(file):
    """Return kind and message of every order in a record."""
    with closing(sqlite3.connect(file)) as database:
        rows = database.execute(
            "SELECT kind, body FROM log WHERE kind IN ('query', 'go-home') ORDER BY seq"
        ).fetchall()
    return [{"kind": kind, **json.loads(body)["message"]} for kind, body in rows]


def make(folder, mission, steps):
    """Run a mission into a folder; interrupt it after that many settled orders."""
    seen = 0

    def stop(_):
        nonlocal seen
        seen += 1
        if seen == steps:
            raise KeyboardInterrupt

    _, record = begin(mission, folder)
    with record:
        try:
            return fieldbo.run(mission, record=record, on_step=stop)
        except KeyboardInterrupt:
            return None


def main(out):
    """Make every folder of `RUNS` below `out`."""
    for name, (mission, overrides, steps) in RUNS.items():
        loaded = fieldbo.load_mission(mission, overrides)
        shutil.rmtree(out / name, ignore_errors=True)
        make(out / name, loaded, steps)
        with TemporaryDirectory() as place:
            whole = Path(place) / name
            result = make(whole, loaded, None)
            expected = {
                "version": fieldbo.__version__,
                "ended": steps is None,
                "orders": plain(orders_of(whole / "run.sqlite")),
                "summary": plain(json.loads(json.dumps(result.summary(), default=str))),
            }
        text = json.dumps(expected, allow_nan=False)
        (out / name / "expected.json").write_text(text + "\n", encoding="utf-8")
        print(name, len(expected["orders"]), "orders")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Processor time and memory of `fieldbo new world`, here and at an earlier commit.

``python benchmarks/new_worlds.py COMMIT``: a grid of 5,307 readings in metres, with the ratio to the earlier
commit; then logs of 100,000 rows in metres and in degrees, without it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from against import HERE, checkout
from numpy.typing import NDArray


class Used(NamedTuple):
    """What a command took."""

    processor_s: float
    memory_gb: float


def write_csv(path: Path, **columns: NDArray[np.float64]) -> None:
    """Write columns (n,) as a table."""
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    path.write_text("\n".join([",".join(columns), *(",".join(map(repr, row)) for row in rows)]) + "\n")


def write_tables(folder: Path) -> dict[str, list[str]]:
    """Write the tables to a folder; return the options of each case."""
    rng = np.random.default_rng(3)
    x, y = (each.ravel() for each in np.meshgrid(10.0 * np.arange(87), 10.0 * np.arange(61)))
    values = 20 + 3 * np.sin(x / 120) * np.cos(y / 90) + 0.01 * y + rng.normal(0, 0.3, len(x))
    write_csv(folder / "grid.csv", x=x, y=y, v=values.round(4))
    n = 100_000
    at = np.arange(float(n))
    east = 400 * np.sin(at / 1500) + rng.normal(0, 0.5, n)
    north = 900 * at / n + rng.normal(0, 0.5, n)
    values = 20 - 0.01 * north + np.sin(east / 40) + rng.normal(0, 0.1, n)
    degrees = {"lat": (53 + north / 111_200).round(7), "lon": (13 + east / 66_900).round(7)}
    write_csv(folder / "degrees.csv", time=1.7e9 + at, **degrees, v=values.round(3))
    write_csv(folder / "metres.csv", time=1.7e9 + at, x=east.round(2), y=north.round(2), v=values.round(3))
    return {
        "grid of 5,307 readings": ["--csv", "grid.csv", "--x", "x", "--y", "y"],
        "100,000 rows in metres": ["--csv", "metres.csv", "--x", "x", "--y", "y", "--time", "time"],
        "100,000 rows in degrees": ["--csv", "degrees.csv", "--lat", "lat", "--lon", "lon", "--time", "time"],
    }


def measure(root: Path, folder: Path, options: list[str]) -> Used:
    """Return what `fieldbo new world` of the checkout `root` takes."""
    with tempfile.TemporaryDirectory(dir=folder) as aside:
        csv = ["--csv", str(folder / options[1])]
        command = [sys.executable, "-m", "fieldbo", "new", "world", "w", *csv, *options[2:], "--value", "v"]
        environment = {**os.environ, "PYTHONPATH": str(root)}
        process = subprocess.Popen(command, cwd=aside, env=environment, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} failed")
    return Used(used.ru_utime + used.ru_stime, used.ru_maxrss / 1e6)


def main() -> None:
    """Print a line per case."""
    parser = argparse.ArgumentParser(description="Processor time of fieldbo new world.")
    parser.add_argument("commit", metavar="COMMIT", nargs="?", help="the earlier commit")
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="number of runs (default: 3)")
    arguments = parser.parse_args()
    earlier = None if arguments.commit is None else checkout(arguments.commit)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for number, (case, options) in enumerate(write_tables(folder).items()):
            now, before = list[Used](), list[Used]()
            for _ in range(arguments.runs):
                now.append(measure(HERE, folder, options))
                if earlier is not None and number == 0:
                    before.append(measure(earlier, folder, options))
            text = f"{case:<24} {np.median([u.processor_s for u in now]):6.1f} s, {now[0].memory_gb:.2f} GB"
            if before:
                ratio = np.median([b.processor_s / a.processor_s for a, b in zip(now, before, strict=True)])
                text += f"; before {np.median([u.processor_s for u in before]):.1f} s, "
                text += f"{before[0].memory_gb:.2f} GB; {ratio:.1f} times as fast"
            print(text, flush=True)


if __name__ == "__main__":
    main()

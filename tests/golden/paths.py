"""The paths of missions: what must stay the same, order by order, whatever changes inside.

    python tests/golden/paths.py                # what differs from paths.json, to the last bit
    python tests/golden/paths.py --write        # adopt the present paths
    python tests/golden/paths.py worlds/steered # only those whose name begins so

A path is the first orders of a mission, each with its id, its site, its expected cost and a digest of why it
was chosen. There is one for every mission shipped now or once, for the runs of earlier versions as they
continue, for random worlds (plain ones, under commands, with several batteries, over a link that loses
orders), and for missions whose robot has each fault.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import sys
import warnings
import zlib
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "shared"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "faults"))

import bad_link
import many_worlds
import numpy as np
import test_recharged_worlds as recharged_worlds
from checkout import TESTS
from direct_link import Near, Streaming
from random_commands import commands_for
from remote_vehicles import mission as small
from remote_vehicles import remote
from underway import steered

import fieldbo
from fieldbo.messages import Observation, Telemetry, to_plain
from fieldbo.mission.files import former_missions
from fieldbo.record.record import Record
from fieldbo.record.store import ORDERS
from fieldbo.runs.loop import Interrupted
from fieldbo.runs.replay import mission_of
from fieldbo.vehicles.simulators import KINDS
from fieldbo.vehicles.simulators.trips import form

FILE = Path(__file__).with_name("paths.json")
ELSEWHERE = Path(__file__).with_name("paths_elsewhere.json")
"""Paths that other processors take where sites are tied within rounding: a list of them for each name.

Those of `paths.json` are of a processor with AVX-512; `OPENBLAS_CORETYPE=SkylakeX` takes them on others.
"""
ORDERS_TOLD = 12
EACH = 15
"""Random worlds of each sort."""


# -- in plain data -----------------------------------------------------------------------------------------


def digest(why) -> list[float]:
    """Return a checksum of what is no fraction in plain data, and one number that sums up the fractions.

    The number moves with the last bits of the fractions, so paths can be compared to the last bit on one
    machine, and with a tolerance between machines.
    """
    exact, fractions = [], []

    def walk(value, path):
        if isinstance(value, dict):
            for key in sorted(value):
                walk(value[key], f"{path}.{key}")
        elif isinstance(value, list | tuple | np.ndarray):
            for k, one in enumerate(value):
                walk(one, f"{path}[{k}]")
        elif isinstance(value, float | np.floating) and math.isfinite(value):
            fractions.append(math.asinh(float(value)))
            exact.append(path)
        else:
            exact.append(f"{path}={value}")

    walk(why, "")
    weights = 1.0 + 0.5 * np.sin(np.arange(len(fractions)))
    mean = math.fsum(weights * np.array(fractions)) / max(1, len(fractions))
    return [zlib.crc32("\n".join(exact).encode()), mean]


def path_of(rows, first=0):
    """Return the orders among the rows of a record, from one on, as far as they are told."""
    told = [row for row in rows if row.kind in ORDERS][first : first + ORDERS_TOLD]
    path = []
    for row in told:
        order = row.body["message"]
        path.append([order["id"], row.kind, order["site"], order["expected_cost"], *digest(row.body["why"])])
    return path


def transcript_of(rows):
    """Return what a vehicle said about each order, in order: kinds, places and costs."""
    told = []
    for message in (row.message for row in rows if row.kind not in (*ORDERS, "stop", "end", "note")):
        plain = to_plain(message)
        plain.pop("time_utc", None)
        plain.pop("at_least", None)  # a setting, which the vehicle only passes on
        kind = plain.pop("kind")
        if isinstance(message, Telemetry):
            told.append([kind, None, plain["position"], *digest(plain)])
        elif isinstance(message, Observation):
            told.append([kind, message.order, plain["position"], plain["cost"], *digest(plain)])
        else:
            told.append([kind, getattr(message, "order", None), *digest(plain)])
    return told


# -- what is told ------------------------------------------------------------------------------------------


def of_mission(name, folder):
    """Tell the first orders of a shipped mission."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # the names of earlier versions are meant
        mission = fieldbo.load_mission(name)
    return path_of(_interrupted(mission, folder))


def _interrupted(mission, folder, record=None):
    """Run or resume a mission until it has given enough orders; return the rows of its record."""
    new = record is None
    record = Record.create(folder / "run.sqlite", "run", {"mission": "golden"}) if new else record
    with record:
        before = sum(row.kind in ORDERS for row in record.rows())

        def stop(_):
            if sum(row.kind in ORDERS for row in record.rows()) >= before + ORDERS_TOLD:
                raise KeyboardInterrupt

        try:
            if new:
                fieldbo.run(mission, record=record, on_step=stop)
            else:
                fieldbo.resume(mission, record, on_step=stop)
        except Interrupted:
            pass
        return record.rows()


def of_old_run(name, folder):
    """Tell how a run of an earlier version goes on."""
    shutil.copytree(TESTS / "old_runs" / name, folder / "run")
    record = Record(folder / "run" / "run.sqlite")
    given = sum(row.kind in ORDERS for row in record.rows())
    return path_of(_interrupted(mission_of(record), folder, record), first=given)


def of_plain_world(seed, folder):
    """Tell the orders of a random world."""
    return path_of(_interrupted(many_worlds.mission_of(int(seed)), folder))


def of_steered_world(seed, folder):
    """Tell the orders of a random world under random commands."""
    mission, rng = many_worlds.mission_of(int(seed)), np.random.default_rng(int(seed))
    given, polls = commands_for(mission, rng), int(rng.integers(1, 5))
    return path_of(steered(mission, folder, given, polls=polls, seed=int(seed))[2])


def of_recharged_world(seed, folder):
    """Tell the orders of a random world with several batteries, under random commands."""
    mission, rng = recharged_worlds.mission_of(int(seed)), np.random.default_rng(int(seed))
    given = commands_for(mission, rng)
    return path_of(steered(mission, folder, given, polls=int(rng.integers(1, 5)), seed=int(seed))[2])


def of_bad_link(seed, folder):
    """Tell the orders of a mission over a link that loses some."""
    return path_of(bad_link.BadLink(int(seed)).run().rows)


def of_fault(name, folder):
    """Tell what a vehicle says of a robot with a fault, over a link that reports or streams."""
    link, _, fault = name.partition("-")
    made = small(battery=60.0, patience_s=5.0)
    vehicle = remote(fault, mission=made, link={"reports": Near, "streams": Streaming}[link])
    with Record.create(folder / "run.sqlite", "run", {"vehicles": [{}]}) as record:
        fieldbo.run(made, [vehicle], record=record)
        rows = record.rows()
    return path_of(rows) + transcript_of(rows)


FAULTS = {kind: form(kind).replace("N", "3").replace("X", "1.5") for kind in KINDS}
WAYS = {
    "missions": of_mission,
    "old-runs": of_old_run,
    "worlds/plain": of_plain_world,
    "worlds/steered": of_steered_world,
    "worlds/recharged": of_recharged_world,
    "worlds/bad-link": of_bad_link,
    "faults": of_fault,
}


def _missions():
    """Return the names of shipped missions, those of earlier versions instead of new names for the same."""
    former = former_missions()
    renamed = {became["mission"] for became in former.values() if "policy" not in became}
    shipped = {file.stem for file in (TESTS.parent / "missions").glob("*.toml")}
    return sorted(former.keys() | shipped - renamed)


def names():
    """Return the names of all paths."""
    cases = {
        "missions": _missions(),
        "old-runs": sorted(
            f"{file.parent.parent.name}/{file.parent.name}"
            for file in (TESTS / "old_runs").glob("*/*/run.sqlite")
        ),
        "worlds/plain": range(EACH),
        "worlds/steered": range(EACH),
        "worlds/recharged": range(EACH),
        "worlds/bad-link": range(EACH),
        "faults": [f"{link}-{fault}" for link in ("reports", "streams") for fault in FAULTS.values()],
    }
    return [f"{way}/{case}" for way, some in cases.items() for case in some]


def told(name):
    """Return a path by its name."""
    way = next(way for way in WAYS if name.startswith(f"{way}/"))
    with TemporaryDirectory() as folder:
        return json.loads(json.dumps(WAYS[way](name.removeprefix(f"{way}/"), Path(folder))))


# -- what differs ------------------------------------------------------------------------------------------


def difference(found, expected, tolerance=0.0):
    """Return where two paths part, in words; None if they are the same within a relative tolerance."""
    for k, (one, other) in enumerate(zip(found, expected, strict=False)):
        if not _alike(one, other, tolerance):
            return f"row {k}: {one}, expected {other}"
    return None if len(found) == len(expected) else f"{len(found)} rows, expected {len(expected)}"


def _alike(one, other, tolerance):
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(partial(_alike, tolerance=tolerance), one, other))
    if isinstance(one, float) and isinstance(other, float):
        return one == other or abs(one - other) <= tolerance * max(1.0, abs(other))
    return one == other


def expected():
    """Return the paths that are on file."""
    return json.loads(FILE.read_text())


def parted(name, found, tolerance=0.0):
    """Return where a path parts from the one on file, in words; None if some processor takes it."""
    on_file = expected() if FILE.exists() else {}
    first, *others = on_file.get(name, []), *json.loads(ELSEWHERE.read_text()).get(name, [])
    if any(difference(found, other, tolerance) is None for other in others):
        return None
    return difference(found, first, tolerance)


def main() -> int:
    """Compare the present paths with those on file, or adopt them; return 1 if some differ."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("prefix", nargs="*", help="compare only paths whose names begin so")
    parser.add_argument("--write", action="store_true", help="adopt the present paths")
    parser.add_argument("--tolerance", type=float, default=0.0)
    options = parser.parse_args()
    chosen = [n for n in names() if not options.prefix or n.startswith(tuple(options.prefix))]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        found = dict(zip(chosen, pool.map(told, chosen), strict=True))
    on_file = expected() if FILE.exists() else {}
    differing = 0
    for name in chosen:
        what = parted(name, found[name], options.tolerance)
        differing += what is not None
        if what is not None:
            print(f"{name}: {what}")
    print(f"{len(chosen)} paths, {differing} differ")
    if options.write:
        known = set(names())
        kept = {name: path for name, path in on_file.items() if name in known} | found
        lines = (
            f"{json.dumps(name)}: {json.dumps(kept[name], separators=(',', ':'))}" for name in sorted(kept)
        )
        FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    return int(differing > 0)


if __name__ == "__main__":
    sys.exit(main())

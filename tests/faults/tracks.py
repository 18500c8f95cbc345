"""Drive random missions among obstacles, and measure where the robots really went.

    python tests/faults/tracks.py --missions 1000
    python tests/faults/tracks.py --only 123        # that one again

Each mission is one of the random worlds of ``tests/faults/many_worlds.py`` with an obstacle or an outline. A
simulated robot carries it out over a link in this process: it reports or streams, and drives straight to each
point that it is sent. Some robots reject goals, get stuck, fall silent, or answer late or twice. No leg of a
robot's own track may run inside an obstacle or its clearance, or outside the outline.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import shapely

sys.path += [str(Path(__file__).parents[1] / "shared")]

import many_worlds
from direct_link import Guided, Near

from fieldbo.belief.question import LevelSet
from fieldbo.costs.travel import Transect
from fieldbo.mission.mission import Mission
from fieldbo.policies.baselines import Random
from fieldbo.record.record import Record
from fieldbo.runs.runner import run
from fieldbo.testing import SteppedClock
from fieldbo.vehicles.remote.remote import Remote
from fieldbo.vehicles.remote.settings import Arrival, Battery, Reports, VehicleFile, Watch
from fieldbo.vehicles.simulators import Fault, Robot
from fieldbo.vehicles.simulators import robot as robot_module

SPEEDUP = 1e5
TICK_S = 0.001
BUSY_S = 0.02
"""For how long the planner is busy after an event, at most, while the robot goes on."""
FAULTS = ("refuse", "stuck", "twice", "late", "silent", "glitch")


def mission_of(seed: int) -> Mission | None:
    """Return the random mission of a seed; None if all straight legs are free there."""
    mission = many_worlds.mission_of(seed)
    if mission.world.domain.clear or isinstance(mission.world.cost, Transect):
        return None
    rng = np.random.default_rng(seed)
    spec = replace(mission.vehicles[0], time_limit_s=None, battery=20 * mission.vehicles[0].battery)
    changes = {"policy": Random(), "policy_kind": "random", "question": LevelSet(0.3), "vehicles": (spec,)}
    return replace(mission, **changes, max_steps=int(rng.integers(3, 7)), batch=int(rng.choice([1, 1, 3])))


@contextmanager
def reporting_often() -> Iterator[None]:
    """Have simulated robots report in quick succession, since their clocks run fast."""
    before = robot_module._REPORT_S, robot_module._NEXT_TARGET_S
    robot_module._REPORT_S, robot_module._NEXT_TARGET_S = 0.002, 0.02
    try:
        yield
    finally:
        robot_module._REPORT_S, robot_module._NEXT_TARGET_S = before


def drive(mission: Mission, seed: int, folder: Path, short: float = 0.0) -> np.ndarray:
    """Carry out a mission with a robot; return the robot's track (k, d).

    A robot stops by `short` before each point that it is sent; only streaming ones do.
    """
    rng = np.random.default_rng([seed, 1])
    number = int(rng.integers(0, 3))
    amounts = {"late": 0.05, "silent": 0.4, "glitch": float(0.3 * mission.world.domain.extent.max())}
    kinds = [str(kind) for kind in rng.choice(FAULTS, number, replace=False)]
    faults = [Fault(kind, int(rng.integers(0, 5)), amounts.get(kind, math.nan)) for kind in kinds]
    clock = SteppedClock(TICK_S)
    robot = Robot(mission.world, start=mission.vehicles[0].start, speedup=SPEEDUP, faults=faults, clock=clock)
    kind = Near if seed % 2 and not short else Guided
    link = kind(robot, short)
    settings = VehicleFile.model_construct(
        format=1,
        title="",
        link={},
        frame=None,
        watch=Watch(silence_s=0.25, connect_s=5.0, patience=1e-3, least_s=0.3),
        battery=Battery(),
        reports=Reports(),
        arrival=Arrival(short + 1e-6, dwell_s=0.0, reading_s=0.2),
    )
    with reporting_often(), Record.create(folder / f"{seed}.sqlite", "run", {}) as record:
        vehicle = Remote(mission, 0, link, settings, "s", clock)
        run(mission, [vehicle], record, on_event=lambda event: clock.sleep(rng.uniform(0.0, BUSY_S)))
    return robot.track


def wrong(seed: int, folder: Path) -> list[str] | None:
    """Return the legs of a robot's track that are not free; None if the mission has nothing to go around."""
    mission = mission_of(seed)
    return (
        None if mission is None else many_worlds.crossings(mission.world.domain, drive(mission, seed, folder))
    )


def near_misses(seed: int, folder: Path) -> list[float] | None:
    """Return how near a robot that stops short, by half of the clearance, comes to each obstacle.

    As fractions of the clearance; None if the mission has no clearance, or more than two axes.
    """
    mission = mission_of(seed)
    if mission is None or mission.world.domain.clearance == 0 or mission.world.domain.dimension != 2:
        return None
    domain = mission.world.domain
    track = shapely.LineString(drive(mission, seed, folder, 0.5 * domain.clearance))
    return [track.distance(obstacle.polygon) / domain.clearance for obstacle in domain.solid]


def tried(seed: int) -> tuple[int, list[str] | None]:
    """Return a seed, and what `wrong` returns."""
    with TemporaryDirectory() as folder:
        return seed, wrong(seed, Path(folder))


def main() -> int:
    """Drive the missions, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--missions", type=int, default=1000)
    parser.add_argument("--only", type=int, help="drive only the mission of this seed, with details")
    parser.add_argument("--processes", type=int, default=4, help="how many at a time")
    args = parser.parse_args()
    if args.only is not None:
        print("\n".join(tried(args.only)[1] or ["all legs are free"]))
        return 0
    driven = crossed = 0
    with ProcessPoolExecutor(args.processes, mp_context=get_context("spawn")) as pool:
        for first in count(0, args.missions):
            for seed, legs in pool.map(tried, range(first, first + args.missions)):
                if legs is None or driven == args.missions:
                    continue
                driven, crossed = driven + 1, crossed + bool(legs)
                for leg in legs:
                    print(f"{seed}: {leg}", flush=True)
            if driven == args.missions:
                break
    print(f"{driven} missions, {crossed} with a leg that is not free")
    return int(crossed > 0)


if __name__ == "__main__":
    sys.exit(main())

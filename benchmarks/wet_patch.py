"""How many readings a patch costs in which they all fail, with and without learning where they fail.

A box covers a tenth of the area of a wall or a lake. Each case runs with several of them, once with
`failure_limit = 1`, which proposes all sites, and once with the default limit. For each, print the mean
numbers of orders, of failed readings and of good ones, and the score at the end: F1 of a level set, regret of
an optimum. In the last cases each reading fails with a probability of 10%, wherever it is.

    python benchmarks/wet_patch.py [--runs 8] [--jobs 2] [--only CASE ...]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from fieldbo import Record, load_mission, run
from fieldbo.belief.question import Optimum
from fieldbo.domain.obstacles import Obstacle
from fieldbo.messages import Observation, Query, order_number
from fieldbo.mission.mission import FAILURE_LIMIT, Mission
from fieldbo.runs.comparison import contender
from fieldbo.vehicles.base import Simulated

SHARE = 0.1
"""Share of the area that the patch covers, and of the readings that fail where failures are scattered."""


@dataclass(frozen=True)
class Case:
    """A mission, and whether its readings fail anywhere instead of in a patch."""

    mission: str
    scattered: bool = False


CASES = {
    "wall, damage map": Case("wall-damage-map"),
    "wall, damage map by TruVaR": Case("wall-damage-map with truvar"),
    "wall, worst crack by EI": Case("wall-worst-crack with ei"),
    "wall, worst crack by rollout": Case("wall-worst-crack with rollout,base=ei-per-cost"),
    "lake, level set": Case("lake-level-set"),
    "wall, damage map; scattered": Case("wall-damage-map", scattered=True),
    "lake, level set; scattered": Case("lake-level-set", scattered=True),
}


@dataclass(frozen=True)
class Outcome:
    """What came of a run."""

    orders: int
    failed: int
    good: int
    score: float


class Unreliable(Simulated):
    """A vehicle whose readings fail at random, wherever it is."""

    def _visit(self, query: Query) -> Observation:
        seen = super()._visit(query)
        fails = np.random.default_rng([self.mission.seed, order_number(query.id)]).random() < SHARE
        return replace(seen, values=np.full(len(seen.values), np.nan)) if fails else seen


def patch(mission: Mission, number: int) -> Obstacle:
    """Return a box over a share of the area, at random."""
    domain, rng = mission.world.domain, np.random.default_rng(number)
    size = domain.extent * np.sqrt(SHARE)
    low = domain.low + rng.random(2) * (domain.extent - size)
    return Obstacle("wet patch", tuple(low.tolist()), tuple((low + size).tolist()))


def outcome(name: str, limit: float, number: int) -> Outcome:
    """Carry out a case with a patch of its own."""
    case = CASES[name]
    mission = replace(load_mission(*contender(case.mission, {"seed": number})), failure_limit=limit)
    if case.scattered:
        with TemporaryDirectory() as folder, Record.create(Path(folder) / "run.sqlite", "run", {}) as record:
            result = run(mission, [Unreliable(mission)], record)
    else:
        world = replace(mission.world, unreadable=(patch(mission, number),))
        result = run(replace(mission, world=world))
    values = np.concatenate([event.values for event in result.observations])
    failed = int(np.isnan(values).sum())
    optimum = isinstance(mission.question, Optimum)
    score = result.curve[-1].regret if optimum else result.curve[-1].f1
    return Outcome(result.steps, failed, len(values) - failed, float(score))


def row(name: str, limit: float, outcomes: Sequence[Outcome]) -> str:
    """Return the means of some outcomes as a line of the table."""
    numbers = np.array([(o.orders, o.failed, o.good, o.score) for o in outcomes])
    orders, failed, good, score = numbers.mean(axis=0)
    return f"{name:30} {limit:6g} {orders:8.1f} {failed:8.1f} {good:8.1f} {score:9.4f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=8, help="patches for each case")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES), metavar="CASE")
    args = parser.parse_args()
    print(f"{'case':30} {'limit':>6} {'orders':>8} {'failed':>8} {'good':>8} {'score':>9}", flush=True)
    with ProcessPoolExecutor(args.jobs, mp_context=get_context("spawn")) as pool:
        for name in args.only:
            for limit in (1.0, FAILURE_LIMIT):
                found = list(pool.map(partial(outcome, name, limit), range(args.runs)))
                print(row(name, limit, found), flush=True)


if __name__ == "__main__":
    main()

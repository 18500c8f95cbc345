"""How often the stated 90% intervals hold: of F1 and area, or of regret and optimum.

Each kind of mission runs in many random fields, and its answer is looked at after 10, 30 and 100 readings
of the same run. For each look, print the share of runs whose true score lay in the interval, the same for
area or optimum, the mean width of the score's interval, and the mean true score. A share that lies outside
85 to 95% by more than chance (two-sided test at 5%) has a star. Each run's looks are written to a CSV file
as soon as it is done; an interrupted study continues where it stopped.

    python benchmarks/interval_coverage.py [--runs 200] [--jobs 2] [--out runs/interval_coverage.csv]
                                           [--only KIND ...] [--looks 10 30 100] [--fits] [--table-only]

`--fits` states the intervals from the fitted hyperparameters alone, as if they were known.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, fields, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from scipy.stats import binomtest

from fieldbo import Agent, Result, load_mission
from fieldbo._numerics.arrays import Array
from fieldbo._numerics.streams import stream
from fieldbo.belief.model import Model
from fieldbo.belief.question import LevelSet
from fieldbo.messages import GoHome, Stop
from fieldbo.mission.mission import Mission
from fieldbo.runs.comparison import contender
from fieldbo.world.fields.base import Field

LOOKS = (10, 30, 100)
OUT = Path("runs") / "interval_coverage.csv"
_RICH = {"agent": {"battery": 1e9}}  # the number of readings is what is limited
_SAME = 1e-9


@dataclass(frozen=True, eq=False)
class Exponential(Field):
    """The exponential of a field: skewed and positive."""

    log: Field

    def values(self, sites: Array, time_s: float = 0.0) -> Array:
        """Return the values (N,) at `sites` (N, d)."""
        return np.exp(self.log.values(sites, time_s))


def skewed(mission: Mission) -> Mission:
    """Return a mission over the exponential of its field, with a threshold at the same sites."""
    world = replace(mission.world, field=Exponential(mission.world.field))
    assert isinstance(mission.question, LevelSet)
    question = LevelSet(float(np.exp(mission.question.threshold)))
    return replace(
        mission, world=world, question=question, model=replace(mission.model, transform="log", mean=1)
    )


def learned(mission: Mission, **changes: Any) -> Mission:
    """Return a mission that learns its hyperparameters."""
    model = mission.model
    return replace(mission, model=Model(kernel=model.kernel, transform=model.transform, **changes))


def with_policy(mission: Mission, kind: str, **settings: Any) -> Mission:
    """Return a mission with another policy."""
    return replace(mission, policy=load_mission(mission.name, {"policy": {"kind": kind, **settings}}).policy)


Change = Callable[[Mission], Mission]

KINDS: dict[str, tuple[str, tuple[Change, ...]]] = {
    "level set, TruVaR, known": ("gp-lake", ()),
    "level set, TruVaR, learned": ("gp-lake", (learned,)),
    "level set, straddle per cost, known": ("gp-lake with straddle,per_cost=true", ()),
    "level set, straddle per cost, learned": ("gp-lake with straddle,per_cost=true", (learned,)),
    "level set, noise grows and is learned": ("gp-lake-murky", (partial(learned, noise="learned"),)),
    "level set of a skewed field, known": ("gp-lake with straddle,per_cost=true", (skewed,)),
    "level set of a skewed field, learned": ("gp-lake with straddle,per_cost=true", (skewed, learned)),
    "maximum, EI per cost, known": ("gp-lake-optimum", ()),
    "maximum, EI per cost, learned": ("gp-lake-optimum", (learned,)),
    "maximum, distUCB, learned": (
        "gp-lake-optimum",
        (partial(with_policy, kind="dist-ucb"), learned),
    ),
    "maximum in a box, EI, known": ("se-optimum", ()),
    "maximum in a box, EI, learned": ("se-optimum", (learned,)),
    "maximum in a box, distUCB, learned": ("se-optimum", (partial(with_policy, kind="dist-ucb"), learned)),
    "layered lake, TruVaR, learned": ("lake-level-set with truvar", ()),
    "layered lake, straddle per cost, learned": (
        "lake-level-set",
        (partial(with_policy, kind="straddle", per_cost=True),),
    ),
}
"""A shipped mission, and what is changed."""


@dataclass(frozen=True)
class Look:
    """What a run stated after some readings.

    Attributes
    ----------
    kind : str
    run : int
        Number of the field, and the seed.
    look : int
        Number of readings.
    score, low, high : float
        True F1 or regret, and the stated interval.
    other, other_low, other_high : float
        True area or optimum, and the stated interval.
    seconds : float
        Of the statement.
    """

    kind: str
    run: int
    look: int
    score: float
    low: float
    high: float
    other: float
    other_low: float
    other_high: float
    seconds: float

    @classmethod
    def of_row(cls, row: dict[str, str]) -> Look:
        """Return what a line of the file says."""
        kinds = {"str": str, "int": int, "float": float}
        return cls(**{f.name: kinds[str(f.type)](row[f.name]) for f in fields(cls)})

    @property
    def holds(self) -> tuple[bool, bool]:
        """Whether the truth lies in either interval."""
        return (
            self.low - _SAME <= self.score <= self.high + _SAME,
            self.other_low - _SAME <= self.other <= self.other_high + _SAME,
        )


def mission_of(kind: str, run: int) -> Mission:
    """Return the mission of a run."""
    name, changes = KINDS[kind]
    mission = load_mission(*contender(name, {**_RICH, "draw": run, "seed": run}))
    for change in changes:
        mission = change(mission)
    return mission


def looked_at(kind: str, run: int, looks: Sequence[int], fits: bool) -> list[Look]:
    """Run a mission as long as it takes readings, and return what it stated."""
    # What nobody has inspected is judged by how finely all that may be spent could search the place.
    agent = Agent(replace(mission_of(kind, run), max_steps=max(looks)))
    world, rng, found = agent.mission.world, stream(run, "sensor"), []
    while agent.readings < max(looks) and not isinstance(order := agent.ask(), Stop):
        if isinstance(order, GoHome):
            break
        noise = world.sensor.variance(order.site[None])
        value = world.truth(order.site[None]) + np.sqrt(noise) * rng.standard_normal(1)
        agent.tell(order.observed(value, noise_variance=noise))
        if agent.readings in looks:
            found.append(_look(agent, kind, run, fits))
    return found


def _look(agent: Agent, kind: str, run: int, fits: bool) -> Look:
    began = perf_counter()
    result = Result.of(agent)
    if fits:
        known = replace(agent.mission.model, learn=False, noise="declared")
        mission = replace(agent.mission, model=known)
        result = replace(result, mission=mission, surface=agent.surface, scale=agent.hyperparameters.scale)
    numbers = result.summary()
    names = ("f1", "expected_f1", "area_above_true", "area_above")
    if "regret" in numbers:
        names = ("regret", "expected_regret", "optimum_true", "optimum")
    score, expected, other, stated = names
    ends, other_ends = numbers[f"{expected}_interval90"], numbers[f"{stated}_interval90"]
    seconds = perf_counter() - began
    return Look(kind, run, agent.readings, numbers[score], *ends, numbers[other], *other_ends, seconds)


# -- table -----------------------------------------------------------------------------------------------


def rows(found: Sequence[Look], looks: Sequence[int]) -> Iterator[str]:
    """Yield the lines of the table, in Markdown."""
    yield "| mission | readings | runs | interval holds | area or optimum | width | true score |"
    yield "|---" * 7 + "|"
    for kind in KINDS:
        for look in looks:
            some = [f for f in found if f.kind == kind and f.look == look]
            if not some:
                continue
            shares = [share(sum(held), len(some)) for held in zip(*(f.holds for f in some), strict=True)]
            width, score = np.mean([f.high - f.low for f in some]), np.mean([f.score for f in some])
            yield f"| {kind} | {look} | {len(some)} | {' | '.join(shares)} | {width:.3g} | {score:.3g} |"


def share(held: int, n: int) -> str:
    """Return a share in percent, with a star if it lies outside 85 to 95% by more than chance.

    Examples
    --------
    >>> share(180, 200), share(150, 200), share(197, 200)
    ('90%', '75% *', '98% *')
    """
    too_low = binomtest(held, n, 0.85, "less").pvalue < 0.025
    too_high = binomtest(held, n, 0.95, "greater").pvalue < 0.025
    return f"{held / n:.0%}{' *' if too_low or too_high else ''}"


def read(file: Path) -> list[Look]:
    """Return what is in a file; a last line that was cut short is left out."""
    if not file.exists():
        return []
    text = file.read_text(encoding="utf-8")
    return [Look.of_row(row) for row in csv.DictReader(text[: text.rfind("\n") + 1].splitlines())]


def main() -> None:
    """Run what is missing, and print the table."""
    parser = argparse.ArgumentParser(description="How often the stated 90% intervals hold.")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--only", nargs="+", choices=[*KINDS], default=[*KINDS], metavar="KIND")
    parser.add_argument("--looks", nargs="+", type=int, default=LOOKS)
    parser.add_argument("--fits", action="store_true")
    parser.add_argument("--table-only", action="store_true")
    arguments = parser.parse_args()
    found = read(arguments.out)
    if not arguments.table_only:
        done = {(look.kind, look.run) for look in found}
        cases = [(kind, run) for run in range(arguments.runs) for kind in arguments.only]
        todo = [case for case in cases if case not in done]
        os.environ["NUMBA_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # one process per core
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        with (
            arguments.out.open("a", newline="", encoding="utf-8") as file,
            ProcessPoolExecutor(arguments.jobs, get_context("spawn")) as pool,
        ):
            table = csv.writer(file)
            if not file.tell():
                table.writerow(f.name for f in fields(Look))
            futures = [pool.submit(looked_at, *case, arguments.looks, arguments.fits) for case in todo]
            for left, future in zip(range(len(todo) - 1, -1, -1), as_completed(futures), strict=True):
                for look in future.result():
                    table.writerow(getattr(look, f.name) for f in fields(Look))
                file.flush()
                if not left % 20:
                    print(f"{left} runs to come", file=sys.stderr, flush=True)
        found = read(arguments.out)
    for line in rows([look for look in found if look.kind in arguments.only], arguments.looks):
        print(line)


if __name__ == "__main__":
    main()

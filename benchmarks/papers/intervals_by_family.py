"""How often the stated 90% intervals hold in fields that no stationary kernel describes.

Seven families of fields, whose values span 1: draws of a Matern process, blooms, layers, fronts, a Matern
process whose readings have heavy-tailed noise, patches, and a narrow peak beside a wide hill. The drone of
`largest_value.py` looks for the largest value, or for where the field is above half of its range, and its
answer is looked at after 15, 40 and 80 readings of the same run. Hyperparameters are learned.

    python benchmarks/papers/intervals_by_family.py [--repeats 40] [--jobs 2] [--out runs/intervals.csv]
                                                    [--only FAMILY ...] [--rules RULE ...] [--table-only]

A share outside 85 to 95% by more than chance (two-sided test at 5%) has a star.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from largest_value import Array, Family, blooms, matern, patches, waves, wide_narrow, world_of
from scipy.stats import binomtest
from study import Cell, Line, carried_out, cells_of, digest_of, options

from fieldbo import Agent, Result
from fieldbo._numerics.streams import stream
from fieldbo.belief.model import Model
from fieldbo.belief.question import LevelSet, Optimum
from fieldbo.messages import GoHome, Stop
from fieldbo.mission.kinds import POLICIES
from fieldbo.mission.mission import Mission
from fieldbo.mission.vehicle_spec import VehicleSpec

OUT = Path("runs") / "intervals_by_family.csv"
REPEATS = 40
LOOKS = (15, 40, 80)
THRESHOLD = 0.5  # of the range
_FREEDOM = 3.0  # of heavy-tailed noise
_SAME = 1e-9


def layers(x: Array, rng: np.random.Generator) -> Array:
    """Return thin, tilted layers in which the quantity varies fast."""
    depth = x[:, 1] + rng.uniform(-0.15, 0.15) * x[:, 0] + 0.02 * waves(x, rng)
    total = np.zeros(len(x))
    for _ in range(rng.integers(1, 4)):
        middle, width = rng.uniform(0.05, 0.45), rng.uniform(0.01, 0.04)
        total += rng.uniform(-1.0, 1.0) * np.tanh((depth - middle) / width)
    return total


def fronts(x: Array, rng: np.random.Generator) -> Array:
    """Return two water masses with a sharp, winding front between them."""
    angle = rng.uniform(0.0, 2.0 * np.pi)
    across = (x - rng.uniform(0.3, 0.7, 2) * x.max(axis=0)) @ np.array([np.cos(angle), np.sin(angle)])
    return np.tanh((across + 0.1 * waves(x, rng)) / rng.uniform(0.005, 0.03)) + 0.4 * waves(x, rng, 2)


FAMILIES = {
    "matern": Family(matern),
    "blooms": Family(blooms),
    "layers": Family(layers),
    "fronts": Family(fronts),
    "heavy-tailed noise": Family(matern),
    "patches": Family(patches),
    "wide-narrow": Family(wide_narrow),
}
RULES: dict[str, dict[str, Any]] = {"tour": {"kind": "tour"}, "scout": {"kind": "scout"}}
"""Tours are for level sets, scout is for the largest value."""

SCORES = {
    "tour": (("f1", "expected_f1"), ("area_above_true", "area_above")),
    "scout": (("regret", "expected_regret"), ("optimum_true", "optimum")),
}


@dataclass(frozen=True)
class Outcome(Line):
    """What a run stated after some readings; its columns end with their number.

    Attributes
    ----------
    held_15, other_15
        1 if the interval of F1 or regret holds, and that of the area or optimum; -1 where the battery was
        spent before.
    score_15, width_15
        True F1 or regret, and the width of its interval.
    """

    figures: ClassVar[tuple[str, ...]] = ()

    held_15: int
    other_15: int
    score_15: float
    width_15: float
    held_40: int
    other_40: int
    score_40: float
    width_40: float
    held_80: int
    other_80: int
    score_80: float
    width_80: float
    answer_s: float
    seconds: float
    digest: str


def mission_of(cell: Cell) -> Mission:
    """Return the mission of a cell."""
    family, kind = FAMILIES[cell.world], RULES[cell.rule]["kind"]
    world = world_of(family, cell.repeat)
    assert world.start is not None
    return Mission(
        name=cell.world,
        world=world,
        question=Optimum() if kind == "scout" else LevelSet(THRESHOLD),
        policy=POLICIES.get(kind)(),
        model=Model(),
        vehicles=(VehicleSpec(family.battery, world.start, home=world.start),),
        initial=1,
        seed=cell.repeat,
    )


def measured(cell: Cell) -> Outcome:
    """Run a cell; called in a process of its own."""
    agent, rng, begun = Agent(mission_of(cell)), stream(cell.repeat, "sensor"), perf_counter()
    world, heavy, found = agent.mission.world, cell.world == "heavy-tailed noise", {}
    answers = [0.0]
    while agent.readings < max(LOOKS) and not isinstance(order := agent.ask(), Stop | GoHome):
        noise = world.sensor.variance(order.site[None])
        scatter = rng.standard_t(_FREEDOM, 1) / np.sqrt(_FREEDOM) if heavy else rng.standard_normal(1)
        agent.tell(
            order.observed(world.truth(order.site[None]) + np.sqrt(noise) * scatter, noise_variance=noise)
        )
        if agent.readings in LOOKS:
            before = perf_counter()
            found[agent.readings] = looked_at(agent, RULES[cell.rule]["kind"])
            answers.append(perf_counter() - before)
    figures = [figure for look in LOOKS for figure in found.get(look, (-1, -1, np.nan, np.nan))]
    seconds = perf_counter() - begun
    return Outcome(
        cell.world, cell.rule, cell.repeat, *figures, round(max(answers), 3), round(seconds, 2), marked(cell)
    )


def looked_at(agent: Agent, kind: str) -> tuple[int, int, float, float]:
    """Return whether either interval holds, the true score, and the width of its interval."""
    numbers = Result.of(agent).summary()
    held = list[int]()
    for true, stated in SCORES[kind]:
        low, high = numbers[f"{stated}_interval90"]
        held.append(int(low - _SAME <= numbers[true] <= high + _SAME))
    true, stated = SCORES[kind][0]
    low, high = numbers[f"{stated}_interval90"]
    return held[0], held[1], round(numbers[true], 4), round(high - low, 4)


def marked(cell: Cell) -> str:
    """Return a digest of what decides a cell's runs, apart from the repeat."""
    family = FAMILIES[cell.world]
    assert family.shape is not None
    return digest_of(
        RULES[cell.rule], family.shape.__name__, family.size, family.counts, family.battery, THRESHOLD
    )


def markdown(found: Sequence[Outcome]) -> str:
    """Return the table: how often intervals hold, by rule, family and number of readings."""
    lines = list[str]()
    for rule, settings in RULES.items():
        those = [line for line in found if line.rule == rule]
        if not those:
            continue
        (score, _), (_, other) = SCORES[settings["kind"]]
        heads = [f"{what}, {look}" for what in (score, other, f"mean {score}", "width") for look in LOOKS]
        lines += ["", f"| {rule} | {' | '.join(heads)} | runs |", "|---" * (len(heads) + 2) + "|"]
        for family in [*FAMILIES, "all"]:
            if some := [line for line in those if family in (line.world, "all")]:
                lines.append(f"| {family} | {' | '.join(_cells(some))} | {len(some)} |")
    return "\n".join(lines[1:])


def _cells(some: Sequence[Outcome]) -> list[str]:
    """Return the cells of a line: shares that held, then means."""
    shares = [share(column(some, what, look)) for what in ("held", "other") for look in LOOKS]
    means = [np.nanmean(column(some, what, look)) for what in ("score", "width") for look in LOOKS]
    return [*shares, *(f"{mean:.3f}" for mean in means)]


def column(some: Sequence[Outcome], what: str, look: int) -> list[Any]:
    """Return a column of a look."""
    return [getattr(line, f"{what}_{look}") for line in some]


def share(held: Sequence[int]) -> str:
    """Return a share in percent, with a star if it lies outside 85 to 95% by more than chance."""
    known = [one for one in held if one >= 0]
    if not known:
        return ""
    low = binomtest(sum(known), len(known), 0.85, "less").pvalue < 0.025
    high = binomtest(sum(known), len(known), 0.95, "greater").pvalue < 0.025
    return f"{np.mean(known):.0%}{' *' if low or high else ''}"


def main() -> None:
    """Run what is missing, and print the table."""
    arguments = options(
        "How often intervals hold in families of fields.", OUT, REPEATS, FAMILIES, RULES, 2000
    ).parse_args()
    print(markdown(carried_out(arguments, cells_of(arguments, RULES), Outcome, measured, marked)))


if __name__ == "__main__":
    main()

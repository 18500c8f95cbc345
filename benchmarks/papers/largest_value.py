"""Regret of the reported place in seven families of fields, for rules that look for the largest value.

Each field is drawn at random, and its values span 1. A drone that flies at 2 m/s, with 1 m/s² to speed up and
down, and takes 6 s for a reading with a noise of 0.03, begins and ends at a corner. Its battery suits a sweep
in square cells of about 100 readings. Hyperparameters are learned.

    python benchmarks/papers/largest_value.py [--repeats 20] [--jobs 2] [--out runs/largest_value.csv]
                                              [--only FAMILY ...] [--rules RULE ...] [--table-only]

A run is one line of a CSV file, written as soon as it is done; an interrupted study continues where it
stopped. Regrets are shares of the range of the field. A run finds the place if the reported site's value is
within 2 % of the range of the largest one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from study import Cell, Line, by_rule, carried_out, cells_of, digest_of, in_digits, mean_and_error, options

from fieldbo import run
from fieldbo.belief.model import Model
from fieldbo.belief.question import Optimum
from fieldbo.costs.travel import Flight
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.obstacles import Obstacle
from fieldbo.domain.sensor import Sensor
from fieldbo.mission.kinds import POLICIES
from fieldbo.mission.mission import Mission
from fieldbo.mission.vehicle_spec import VehicleSpec
from fieldbo.policies.contract import Decision, Memory, Policy, State
from fieldbo.runs.comparison import Case, prepared
from fieldbo.world.fields.base import Field
from fieldbo.world.world import Quantity, World

OUT = Path("runs") / "largest_value.csv"
REPEATS = 20
PARTS = (0.25, 0.5, 0.75, 1.0)
WITHIN = 0.02  # of the range: the place counts as found

Array = np.ndarray
Shape = Callable[[Array, np.random.Generator], Array]
"""Takes sites (N, 2) as shares of the axes, the longest of which is 1, and returns values (N,)."""


def bumps(x: Array, rng: np.random.Generator, heights: Iterable[float], sds: tuple[float, float]) -> Array:
    """Return the sum of Gaussian bumps (N,) at random places."""
    total, corner = np.zeros(len(x)), x.max(axis=0)
    for height in heights:
        middle, sd = rng.uniform(0.0, corner), rng.uniform(*sds, size=2)
        total += height * np.exp(-0.5 * np.square((x - middle) / sd).sum(axis=1))
    return total


def waves(x: Array, rng: np.random.Generator, most: int = 3) -> Array:
    """Return smooth waves (N,) between -1 and 1."""
    k, phases = rng.uniform(-most, most, (4, 2)), rng.uniform(0, 2 * np.pi, 4)
    return np.asarray(np.cos(2 * np.pi * x @ k.T + phases).mean(axis=1))


def matern(x: Array, rng: np.random.Generator, lengths: tuple[float, float] = (0.1, 0.25)) -> Array:
    """Return a draw (N,) of a Matern-5/2 process by 2,000 random Fourier features."""
    scale = rng.uniform(*lengths)
    chi = np.sqrt(5.0 / rng.chisquare(5.0, 2000))[:, None]  # the spectral density is Student's t
    omega = rng.standard_normal((2000, 2)) * chi / scale
    return np.asarray(np.cos(x @ omega.T + rng.uniform(0, 2 * np.pi, 2000)).sum(axis=1))


def patches(x: Array, rng: np.random.Generator) -> Array:
    """Return two to five patches of different heights."""
    heights = rng.uniform(0.2, 1.0, rng.integers(2, 6))
    return bumps(x, rng, heights, (0.015, 0.06))


def dam(x: Array, rng: np.random.Generator) -> Array:
    """Return four patches of 3 to 9 m on the quiet face of a dam of 180 m."""
    return 0.08 * waves(x, rng) + bumps(x, rng, rng.uniform(0.3, 1.0, 4), (3 / 180, 9 / 180))


def peak(x: Array, rng: np.random.Generator) -> Array:
    """Return a single hill in a valley, or a rippled cone."""
    middle = rng.uniform(0.15, 0.85, 2) * x.max(axis=0)
    r = np.linalg.norm(x - middle, axis=1)
    if rng.random() < 0.5:
        u = (x - middle) @ np.array([[1.0, 0.6], [-0.6, 1.0]])
        return np.asarray(-np.log1p(20.0 * (u[:, 0] + 1.5 * u[:, 1] ** 2) ** 2 + 4.0 * u[:, 1] ** 2))
    return np.asarray(-r + 0.03 * np.cos(2 * np.pi * r / 0.2))


def wide_narrow(x: Array, rng: np.random.Generator) -> Array:
    """Return a wide hill, and a narrow bump that is higher."""
    wide = bumps(x, rng, rng.uniform(0.5, 0.7, 1), (0.15, 0.3))
    return wide + bumps(x, rng, rng.uniform(0.7, 1.0, 1), (0.025, 0.05))


def blooms(x: Array, rng: np.random.Generator) -> Array:
    """Return the exponential of a random field: skewed, with a few blooms."""
    draw = matern(x, rng, (0.08, 0.15))
    return np.asarray(np.exp(1.2 * (draw - draw.mean()) / draw.std()))


@dataclass(frozen=True)
class Family:
    """A family of fields.

    Attributes
    ----------
    shape : Shape or None
        None for the shipped wall with cracks.
    size : (float, float)
        In m.
    counts : (int, int)
        Sites along each axis.
    battery : float
        In s.
    """

    shape: Shape | None
    size: tuple[float, float] = (120.0, 60.0)
    counts: tuple[int, int] = (61, 31)
    battery: float = 1500.0


FAMILIES = {
    "patches": Family(patches),
    "dam": Family(dam, (180.0, 42.0), (91, 22), 2000.0),
    "crack-wall": Family(None),
    "matern": Family(matern),
    "peak": Family(peak),
    "wide-narrow": Family(wide_narrow),
    "blooms": Family(blooms),
}

RULES: dict[str, dict[str, Any]] = {
    "scout": {"kind": "scout"},
    "dist-ucb": {"kind": "dist-ucb"},
    "rollout": {"kind": "rollout"},
    "search-tour": {"kind": "search-tour"},
    "EI per cost": {"kind": "ei-per-cost"},
    "max-value entropy": {"kind": "max-value-entropy-search", "per_cost": True},
    "maximum variance": {"kind": "maximum-variance", "per_cost": True},
    "lawnmower": {"kind": "lawnmower"},
}


@dataclass(frozen=True, eq=False)
class Scaled(Field):
    """Values at the sites of a grid, over a range of 1; between them, those of the nearest site."""

    sites: Array
    at_sites: Array

    def values(self, sites: Array, time_s: float = 0.0) -> Array:
        """Return the values (N,) at `sites` (N, d)."""
        from scipy.spatial import cKDTree

        return np.asarray(self.at_sites[cKDTree(self.sites).query(sites)[1]])


def world_of(family: Family, draw: int, obstacles: Sequence[Obstacle] = ()) -> World:
    """Return the world of a draw."""
    assert family.shape is not None
    axes = [Axis(name, "m", 0.0, end) for name, end in zip(("along", "height"), family.size, strict=True)]
    domain = Domain.grid(axes, family.counts, obstacles=obstacles)
    values = family.shape(domain.sites / max(family.size), np.random.default_rng([draw, 7]))
    field = Scaled(domain.sites, (values - values.min()) / np.ptp(values))
    drone = Flight(speed=2.0, acceleration=1.0, hover_s=6.0, joules_per_unit=200.0).within(domain)
    quantity = Quantity("damage", "1")
    return World("face", "a face", domain, drone, "s", Sensor(0.03), quantity, field, start=domain.sites[0])


def swept(family: Family) -> dict[str, Any]:
    """Return the lines and samples of a lawnmower in square cells whose sweep the battery suits."""
    width, height = family.size
    for spacing in np.arange(1.0, 40.0, 0.25):
        lines, samples = round(width / spacing) + 1, round(height / spacing) + 1
        flight = spacing / 2.0 + 2.0 if spacing > 4.0 else 2.0 * np.sqrt(spacing)
        if lines * samples * (6.0 + flight) + np.hypot(width, height) / 2.0 < family.battery:
            return {"lines": lines, "samples": samples}
    raise AssertionError(family)


def mission_of(cell: Cell) -> Mission:
    """Return the mission of a cell."""
    family, settings = FAMILIES[cell.world], dict(RULES[cell.rule])
    if family.shape is None:
        if cell.rule == "lawnmower":
            settings |= {"lines": 13, "samples": 8}
        overrides = {"policy": settings, "model": {"learn": True}}
        mission = prepared(Case("wall-worst-crack", cell.repeat, 0), overrides)
        return replace(mission, model=Model())
    if cell.rule == "lawnmower":
        settings |= swept(family)
    world = world_of(family, cell.repeat)
    assert world.start is not None
    return Mission(
        name=cell.world,
        world=world,
        question=Optimum(),
        policy=POLICIES.get(settings.pop("kind"))(**settings),
        model=Model(),
        vehicles=(VehicleSpec(family.battery, world.start, home=world.start),),
        initial=1,
        seed=cell.repeat,
    )


@dataclass(frozen=True)
class Outcome(Line):
    """What came of a run: a line of the file.

    Attributes
    ----------
    regret_25, regret_50, regret_75, regret : float
        Share of the range, at parts of the battery.
    found : int
        1 if the reported place is within 2 % of the range of the best.
    held : int
        1 if the stated interval of the regret holds.
    upper : float
        Its upper end, share of the range.
    readings, most : int
        Number of readings, and most at one site.
    median_ms, longest_ms : float
        Time of a decision.
    """

    figures: ClassVar[tuple[str, ...]] = ("regret_25", "regret_50", "regret_75", "regret", "found", "held")

    regret_25: float
    regret_50: float
    regret_75: float
    regret: float
    found: int
    held: int
    upper: float
    readings: int
    most: int
    median_ms: float
    longest_ms: float
    seconds: float
    digest: str


def marked(cell: Cell) -> str:
    """Return a digest of what decides a cell's runs, apart from the repeat."""
    family = FAMILIES[cell.world]
    name = "" if family.shape is None else family.shape.__name__
    return digest_of(RULES[cell.rule], name, family.size, family.counts, family.battery)


def timed(policy: Policy, times: list[float]) -> Policy:
    """Return a policy that decides as another does, and notes how long each decision takes, in ms."""
    kind = type(policy)

    class Timed(kind):  # type: ignore[misc, valid-type]
        def suggest(self, state: State, memory: Memory) -> Decision:
            begun = perf_counter()
            decision: Decision = super().suggest(state, memory)
            times.append(1e3 * (perf_counter() - begun))
            return decision

    return Timed(**{f.name: getattr(policy, f.name) for f in fields(policy)})


_WARM = set[str]()


def warm_up(cell: Cell) -> None:
    """Load the compiled loops of a rule, once in each process, so that no decision is timed with that."""
    if cell.rule not in _WARM:
        run(replace(mission_of(cell), max_steps=8))
        _WARM.add(cell.rule)


def measured(cell: Cell) -> Outcome:
    """Run a cell; called in a process of its own."""
    mission = mission_of(cell)
    warm_up(cell)
    times = list[float]()
    mission = replace(mission, policy=timed(mission.policy, times))
    begun = perf_counter()
    result = run(mission)
    seconds = perf_counter() - begun
    span = float(np.ptp(mission.world.field.values(mission.world.domain.sites)))
    cost, regret = np.array([(step.cost, step.regret) for step in result.curve]).T
    at = np.array(PARTS) * mission.vehicles[0].battery
    regrets = regret[np.maximum(np.searchsorted(cost, at, side="right") - 1, 0)] / span
    expected = result.confidence.regret
    held = expected.low - 1e-9 <= regret[-1] <= expected.high + 1e-9
    visits = Counter(site.tobytes() for site in result.sites)
    return Outcome(
        cell.world,
        cell.rule,
        cell.repeat,
        *(round(float(r), 5) for r in regrets),
        int(regrets[-1] <= WITHIN),
        int(held),
        round(expected.high / span, 4),
        len(cost),
        max(visits.values(), default=0),
        round(float(np.median(times)), 2),
        round(float(np.max(times)), 1),
        round(seconds, 2),
        marked(cell),
    )


def markdown(found: Sequence[Outcome]) -> str:
    """Return the tables: regrets by family and rule, then what else was counted."""
    every = by_rule(found, FAMILIES, [*RULES])
    rules = [rule for rule in RULES if any(r == rule for _, r in every)]
    lines = list[str]()
    for n, part in enumerate(PARTS):
        lines += ["", f"Regret at {part:.0%} of the battery:", "", *_table(every, rules, n)]
    lines += ["", f"Share of runs that find the place (within {WITHIN:.0%} of the range):", ""]
    lines += _table(every, rules, 4, errors=False)
    lines += [
        "",
        "Share of 90% intervals of the regret that hold:",
        "",
        *_table(every, rules, 5, errors=False),
    ]
    lines += [
        "",
        "| policy | readings | most at one site | decision, ms | longest, ms | runs |",
        "|---" * 6 + "|",
    ]
    for rule in rules:
        runs = [line for line in found if line.rule == rule]
        cells = [
            f"{np.mean([line.readings for line in runs]):.0f}",
            f"{np.mean([line.most for line in runs]):.0f} (largest: {max(line.most for line in runs)})",
            f"{np.median([line.median_ms for line in runs]):.1f}",
            f"{max(line.longest_ms for line in runs):.0f}",
            f"{len(runs)}",
        ]
        lines.append(f"| {rule} | {' | '.join(cells)} |")
    return "\n".join(lines[1:])


def _table(
    every: dict[tuple[str, str], dict[int, Array]], rules: Sequence[str], column: int, errors: bool = True
) -> list[str]:
    """Return the lines of a table: a column of figures by family and rule, and their mean over all runs."""
    lines = [f"| family | {' | '.join(rules)} |", "|---" * (len(rules) + 1) + "|"]
    for family in [*FAMILIES, "all"]:
        cells = list[str]()
        for rule in rules:
            those = [
                figures
                for (world, name), runs in every.items()
                if name == rule and family in (world, "all")
                for figures in runs.values()
            ]
            mean, error = mean_and_error(those) if those else (np.full(6, np.nan), np.full(6, np.nan))
            cells.append(in_digits(mean[column], error[column]) if errors else f"{mean[column]:.2f}")
        lines.append(f"| {family} | {' | '.join(cells)} |")
    return lines


def main() -> None:
    """Run what is missing, and print the tables."""
    arguments = options("Regret of the reported place.", OUT, REPEATS, FAMILIES, RULES, 1000).parse_args()
    print(markdown(carried_out(arguments, cells_of(arguments, RULES), Outcome, measured, marked)))


if __name__ == "__main__":
    main()

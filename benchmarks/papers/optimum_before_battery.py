"""Regret of the recommended site against the battery that is spent.

Every rule takes the same missions: the same fields from the same starts, with the same battery. The battery
binds. On the wall it is the drone's, with the way home. In the four worlds of :mod:`switching_cost`, where
readings are free, each costs 0.05 spans here; the battery is what the design costs on average, plus about
what distUCB travels and reads in the steps that the missions allow. No way home is asked for there.

A run is one line of a CSV file, written as soon as it is done; an interrupted study continues where it
stopped. The regret is that of the reported site, ``Step.regret`` of the result's curve: the true optimum less
the true value there, without noise. It is taken at parts of the battery that the design has left.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from study import Cell, Line, by_rule, carried_out, digest, in_digits, mean_and_error, options

from fieldbo import run
from fieldbo.mission.mission import Mission
from fieldbo.results.plot.figures import legend_below, new_figure, opened, save
from fieldbo.runs.comparison import Case, prepared

OUT = Path("runs") / "optimum_before_battery.csv"
REPEATS = 30

PARTS = (0.25, 0.5, 1.0)
"""Parts of the battery at which tables give the regret."""

STEPS = 40
"""Equal steps of cost, from the end of the design to the whole battery, at which a run's regret is kept."""


@dataclass(frozen=True)
class Ground:
    """A mission to compare rules on.

    Attributes
    ----------
    mission : str
    battery : float
        In the world's cost unit, the design included.
    reading : float
        Cost of a reading where the world has none; 0: as the world has it.
    draws : int
        Number of fields; repeats go through them in turn, and each round has another start.
    """

    mission: str
    battery: float
    reading: float = 0.0
    draws: int = 1


GROUNDS = {
    "crack-wall": Ground("wall-worst-crack", 45.0, draws=6),
    "branin": Ground("branin-ei", 18.0, reading=0.05),
    "ackley": Ground("ackley-ei", 17.0, reading=0.05),
    "hartmann": Ground("hartmann-ei", 44.0, reading=0.05),
    "mlp": Ground("mlp-ei", 26.0, reading=0.05),
}

OURS, RIVAL, SCOUT = "search tour", "distUCB", "scout"
RULES: dict[str, dict[str, Any]] = {
    RIVAL: {"kind": "dist-ucb"},
    OURS: {"kind": "search-tour"},
    SCOUT: {"kind": "scout"},
    "EI per cost": {"kind": "ei-per-cost"},
}
STUDIED = [RIVAL, OURS, SCOUT]
"""The rules that run unless others are asked for."""


@dataclass(frozen=True)
class Outcome(Line):
    """What came of a run: a line of the file.

    Attributes
    ----------
    steps : int
        Readings after the design.
    spent : float
        Cost after the design.
    regret : str
        Regret at each step of cost, to four digits, separated by spaces.
    """

    figures: ClassVar[tuple[str, ...]] = ()

    steps: int
    spent: float
    regret: str
    seconds: float
    digest: str

    @property
    def numbers(self) -> np.ndarray:
        """Its regret at each step of cost, (STEPS + 1,)."""
        return np.array(self.regret.split(), dtype=float)


def settings(cell: Cell) -> tuple[str, dict[str, Any]]:
    """Return a cell's mission and what is laid over it."""
    ground = GROUNDS[cell.world]
    return ground.mission, {"policy": RULES[cell.rule], "agent": {"battery": ground.battery}}


def marked(cell: Cell) -> str:
    """Return a digest of what decides a cell's runs, apart from the repeat."""
    return digest(*settings(cell), reading=GROUNDS[cell.world].reading, steps=STEPS)


def mission_of(cell: Cell) -> Mission:
    """Return the mission of a cell, with a price for readings."""
    ground, (name, overrides) = GROUNDS[cell.world], settings(cell)
    start, draw = divmod(cell.repeat, ground.draws)
    mission = prepared(Case(name, draw, start), overrides)
    if not ground.reading:
        return mission
    world = mission.world
    cost = replace(world.cost, sampling=ground.reading).within(world.domain)
    return replace(mission, world=replace(world, cost=cost))


def measured(cell: Cell) -> Outcome:
    """Run a cell; called in a process of its own."""
    mission = mission_of(cell)
    begun = perf_counter()
    result = run(mission)
    seconds = perf_counter() - begun
    cost, regret = np.array([(step.cost, step.regret) for step in result.curve]).T
    before = float(cost[mission.initial - 1])
    at = np.linspace(before, mission.vehicles[0].battery, STEPS + 1)
    kept = regret[np.maximum(np.searchsorted(cost, at, side="right") - 1, 0)]
    return Outcome(
        cell.world,
        cell.rule,
        cell.repeat,
        len(cost) - mission.initial,
        round(float(cost[-1]) - before, 3),
        " ".join(f"{value:.4g}" for value in kept),
        round(seconds, 2),
        marked(cell),
    )


# -- tables ----------------------------------------------------------------------------------------------


def at_parts(found: Iterable[Outcome]) -> dict[tuple[str, str], dict[int, np.ndarray]]:
    """Return the regret at `PARTS` of each repeat, by world and rule."""
    rows = [round(part * STEPS) for part in PARTS]
    every = by_rule(found, GROUNDS, [*RULES])
    return {pair: {k: curve[rows] for k, curve in runs.items()} for pair, runs in every.items()}


def ratio(ours: np.ndarray, rival: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the ratio of the mean regrets (k,) and its standard error, both (n, k)."""
    n, mean, other = len(ours), ours.mean(axis=0), rival.mean(axis=0)
    share = mean / other
    if n < 2:
        return share, np.full_like(share, np.nan)
    return share, (ours - share * rival).std(axis=0, ddof=1) / np.sqrt(n) / other  # to first order


def markdown(found: Sequence[Outcome]) -> str:
    """Return the tables: each rule's mean regrets, and by how much they differ from distUCB's."""
    every = at_parts(found)
    head = [f"regret at {part:g} of the battery" for part in PARTS]
    lines = [f"| world | policy | {' | '.join(head)} | readings | runs |", "|---" * 7 + "|"]
    for (world, rule), runs in every.items():
        cells = [in_digits(m, e) for m, e in zip(*mean_and_error(runs.values()), strict=True)]
        those = [line for line in found if (line.world, line.rule) == (world, rule)]
        steps, seconds = (np.mean([getattr(line, name) for line in those]) for name in ("steps", "seconds"))
        lines.append(
            f"| {world} | {rule} | {' | '.join(cells)} | {steps:.0f} | {len(runs)} | {seconds:.1f} |"
        )
    heads = [f"{text} at {part:g}" for part in PARTS for text in ("minus", "share")]
    lines += [
        "",
        f"Regret minus {RIVAL}'s over the same repeats, and as a share of it:",
        "",
        f"| world | policy | {' | '.join(heads)} | runs |",
        "|---" * (len(heads) + 3) + "|",
    ]
    for (world, rule), runs in every.items():
        other = every.get((world, RIVAL), {})
        both = [k for k in runs if k in other]
        if rule == RIVAL or not both:
            continue
        a, b = (np.array([r[k] for k in both]) for r in (runs, other))
        texts = [
            text
            for m, e, s, d in zip(*mean_and_error(a - b), *ratio(a, b), strict=True)
            for text in (in_digits(m, e, "+"), in_digits(s, d))
        ]
        lines.append(f"| {world} | {rule} | {' | '.join(texts)} | {len(both)} |")
    return "\n".join(lines)


def picture(found: Sequence[Outcome], file: Path) -> None:
    """Draw the mean regret of each rule against the battery spent, one panel a world."""
    every = by_rule(found, GROUNDS, [*RULES])
    worlds = list(dict.fromkeys(world for world, _ in every))
    figure = new_figure(3.4 * len(worlds), 3.6)
    part = np.linspace(0.0, 1.0, STEPS + 1)
    for ax, world in zip(np.atleast_1d(figure.subplots(1, len(worlds))), worlds, strict=True):
        for (w, rule), runs in every.items():
            if w == world:
                mean, error = mean_and_error(runs.values())
                ax.plot(part, mean, label=rule, linewidth=2 if rule == OURS else 1)
                ax.fill_between(part, mean - error, mean + error, alpha=0.2, linewidth=0)
        ax.set(title=world, xlabel="part of the battery", xlim=(0, 1), yscale="log")
        opened(ax)
    figure.axes[0].set_ylabel("mean regret, ± one standard error")
    legend_below(figure)
    save(figure, file)


def main() -> None:
    """Run what is missing, and print the tables."""
    arguments = options("Regret before the battery ends.", OUT, REPEATS, GROUNDS, RULES).parse_args()
    rules = arguments.rules or ([*RULES] if arguments.table_only else STUDIED)
    cells = [Cell(w, rule, k) for k in range(arguments.repeats) for w in arguments.only for rule in rules]
    found = carried_out(arguments, cells, Outcome, partial(measured), partial(marked))
    print(markdown(found))
    if arguments.picture is not None:
        picture(found, arguments.picture)


if __name__ == "__main__":
    main()

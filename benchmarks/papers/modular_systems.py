"""Loss at equal cost in chains of modules, after Lin, Miano and Dyer (2021), section 5.

All policies start from the same 15 readings, and then spend the same budget. The loss is the true regret of
the best setting sampled so far, divided by the largest absolute value of the function.

===========================  =================================================================
loss_25, loss_50, loss_100   when a quarter, half, all of the budget is spent, or 400 samples are taken
samples                      after the first readings
first_changes                how many of them changed the first module
movement_regret              eq. 7 over those samples: losses, and 0.1 of the cost of moving
===========================  =================================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from study import Cell, Line, by_rule, carried_out, differences, digest, in_digits, mean_and_error, options

from fieldbo import run
from fieldbo.costs.cells import Modular
from fieldbo.mission.mission import Mission
from fieldbo.mission.vehicle_spec import VehicleSpec
from fieldbo.results.metrics import movement_regret
from fieldbo.results.plot.figures import legend_below, new_figure, opened, save
from fieldbo.results.plot.style import BLUE, GREEN, ORANGE, PINK, RED, SKY
from fieldbo.results.truth import truth_of
from fieldbo.runs.comparison import Case, prepared

OUT = Path("runs") / "modular_systems.csv"
REPEATS = 8
SHARES = (0.25, 0.5, 1.0)


@dataclass(frozen=True)
class Chain:
    """A world of the study.

    Attributes
    ----------
    world : str
        Its name among the worlds.
    budget : float
        What is spent after the first readings, in the cost's unit.
    largest : float
        The largest absolute value of its function.
    costs : tuple of float, optional
        Of its modules; by default the world's own.
    kernel : str
        Of every rule's model.
    """

    world: str
    budget: float
    largest: float
    costs: tuple[float, ...] | None = None
    kernel: str = "matern52"


CHAINS = {
    "Hartmann-6, 10/1": Chain("cell-hartmann-6", 600.0, 3.32237),
    "Rastrigin-6, 10/1": Chain("cell-rastrigin-6", 600.0, 242.12),
    "Ackley-8, 40/10/1": Chain("cell-ackley-8", 2000.0, 22.35),
    "Hartmann-6, 1/1": Chain("cell-hartmann-6", 120.0, 3.32237, (1.0, 1.0)),
    "Hartmann-6, 10/1, SE": Chain("cell-hartmann-6", 600.0, 3.32237, kernel="se"),
    "Ackley-8, 40/10/1, SE": Chain("cell-ackley-8", 2000.0, 22.35, kernel="se"),
    "Griewank-6, 10/1": Chain("cell-griewank-6", 600.0, 541.0),
    "Ackley-8, 10/1": Chain("cell-ackley-8-two", 600.0, 22.35),
}
STUDIED = [*CHAINS][:6]

LARGEST = "largest"
"""Stands for the function's largest absolute value, by which the paper normalises it."""

OURS = "LaMBO"
RULES: dict[str, dict[str, Any]] = {
    "GP-UCB": {"kind": "gp-ucb"},
    "EI": {"kind": "ei"},
    "EI per cost, lazy": {"kind": "lazy-ei-per-cost"},
    OURS: {"kind": "lambo"},
    "LaMBO, scaled": {"kind": "lambo", "value_scale": LARGEST},
    "CA-MOBO": {"kind": "ca-mobo"},
    "CArBO": {"kind": "carbo"},
    "EI per cost, eager": {"kind": "lazy-ei-per-cost", "lazy": False},
    "max-value entropy": {"kind": "max-value-entropy-search"},
    "random": {"kind": "random"},
}
RIVALS = [*RULES][:5]

MOST = 400
"""Samples after the first readings: a rule that only ever changes the last module ends there."""

_SEEDS = 100
"""The first repeat's seed: settings were chosen on lower ones."""

_COLOURS = (SKY, RED, ORANGE, BLUE, "navy", GREEN, PINK, "0.2", "0.5", "0.75")


@dataclass(frozen=True)
class Outcome(Line):
    """The result of a run: a line of the file."""

    figures: ClassVar[tuple[str, ...]] = (
        "loss_25",
        "loss_50",
        "loss_100",
        "samples",
        "first_changes",
        "movement_regret",
    )

    loss_25: float
    loss_50: float
    loss_100: float
    samples: int
    first_changes: int
    movement_regret: float
    spent: float
    seconds: float
    digest: str


def _overrides(cell: Cell, steps: int | None) -> tuple[str, dict[str, Any]]:
    """Return a cell's mission and what is laid over it."""
    first, chain = 15, CHAINS[cell.world]
    policy = {k: chain.largest if v is LARGEST else v for k, v in RULES[cell.rule].items()}
    return f"{chain.world}-ei", {
        "policy": policy,
        "model": {"kernel": chain.kernel},
        "initial": {"count": first},
        "agent": {"max_steps": first + (MOST if steps is None else steps)},
    }


def marked(cell: Cell, steps: int | None) -> str:
    """Return a digest of what decides a cell's runs, apart from the repeat."""
    name, overrides = _overrides(cell, steps)
    return digest(name, overrides, chain=asdict(CHAINS[cell.world]))


def mission(cell: Cell, steps: int | None) -> Mission:
    """Return a cell's mission: the first readings are paid on top of the budget."""
    chain, (name, overrides) = CHAINS[cell.world], _overrides(cell, steps)
    made = prepared(Case(name, 0, _SEEDS + cell.repeat), overrides)
    cost, vehicle = made.world.cost, made.vehicles[0]
    assert isinstance(cost, Modular)
    if chain.costs is not None:
        modules = tuple(replace(m, cost=c) for m, c in zip(cost.modules, chain.costs, strict=True))
        cost = replace(cost, modules=modules)
    whole = sum(module.cost for module in cost.modules)
    battery = chain.budget + made.initial * whole
    return replace(
        made, world=replace(made.world, cost=cost), vehicles=(VehicleSpec(battery, vehicle.start),)
    )


def measured(cell: Cell, steps: int | None) -> Outcome:
    """Run a cell; called in a process of its own."""
    chain, made = CHAINS[cell.world], mission(cell, steps)
    begun = perf_counter()
    result = run(made)
    seconds = perf_counter() - begun
    world, design = made.world, made.initial
    truth = truth_of(world, made.question)
    assert truth is not None
    sites, cost = result.sites, world.cost
    assert isinstance(cost, Modular)
    paid = np.cumsum([event.cost for event in result.observations])
    spent = paid - paid[design - 1]
    loss = (world.truth(sites) - truth.optimum.value) / chain.largest
    best = np.minimum.accumulate(loss)
    at = [float(best[np.flatnonzero(spent <= share * chain.budget)[-1]]) for share in SHARES]
    moves = list(zip(sites[design - 1 : -1], sites[design:, None], strict=True))
    moving = np.array([float(cost.travel(*move)[0]) for move in moves])
    first = sum(int(cost.first_changed(*move)[0]) == 0 for move in moves)
    regret = movement_regret(loss[design:], 0.0, moving, 0.1)
    samples = len(sites) - design
    return Outcome(
        cell.world,
        cell.rule,
        cell.repeat,
        *at,
        samples,
        first,
        float(regret),
        float(spent[-1]),
        round(seconds, 2),
        marked(cell, steps),
    )


def figures(found: Iterable[Outcome]) -> dict[tuple[str, str], dict[int, np.ndarray]]:
    """Return the figures of each repeat, by world and rule, both in their order."""
    return by_rule(found, CHAINS, [*RULES])


def stopped(found: Iterable[Outcome]) -> list[str]:
    """Return a line per chain and policy of which runs stopped at `MOST` samples, with what they spent."""
    short: dict[tuple[str, str], list[float]] = {}
    runs: dict[tuple[str, str], int] = {}
    for line in found:
        cell = line.world, line.rule
        runs[cell] = runs.get(cell, 0) + 1
        if line.samples >= MOST and line.spent < CHAINS[line.world].budget:
            short.setdefault(cell, []).append(line.spent)
    return [
        f"- {world}, {rule}: {len(spent)} of {runs[world, rule]} runs, after {np.mean(spent):.0f} "
        f"of {CHAINS[world].budget:,.0f} on average"
        for (world, rule), spent in short.items()
    ]


def markdown(found: Sequence[Outcome]) -> str:
    """Return the table: each rule's means with their standard errors, the least loss of a world in bold.

    Below it, by how much LaMBO's loss lies above each rival's from the same readings.
    """
    every = figures(found)
    heads = (
        "loss at 25% | 50% | 100% of the budget | samples | of them change the first module | movement regret"
    )
    lines = [f"| chain | policy | {heads} | runs |", "|---|---|---|---|---|---|---|---|---|"]
    for world in dict.fromkeys(w for w, _ in every):
        means = {rule: mean_and_error(f.values()) for (w, rule), f in every.items() if w == world}
        least = np.min([mean for mean, _ in means.values()], axis=0)
        for rule, (mean, error) in means.items():
            losses = [in_digits(m, e) for m, e in zip(mean[:3], error[:3], strict=True)]
            losses = [f"**{c}**" if m == best else c for c, m, best in zip(losses, mean, least, strict=False)]
            rest = [f"{m:.0f}" for m in mean[3:]]
            lines.append(f"| {' | '.join([world, rule, *losses, *rest, str(len(every[world, rule]))])} |")
    if short := stopped(found):
        until = f"the loss at 100% is then that after {MOST} samples"
        lines += ["", f"Stopped at {MOST} samples, before the budget was spent; {until}:", "", *short]
    lines += [
        "",
        f"{OURS} minus its rival, over the repeats that both have completed:",
        "",
        *differences(every, OURS, ["loss at 25%", "50%", "100% of the budget"]),
    ]
    return "\n".join(lines)


def picture(found: Sequence[Outcome], file: Path) -> None:
    """Draw the loss against the share of the budget, one panel a chain."""
    every = figures(found)
    worlds = list(dict.fromkeys(world for world, _ in every))
    figure = new_figure(3.4 * len(worlds), 3.8)
    for ax, world in zip(np.atleast_1d(figure.subplots(1, len(worlds))), worlds, strict=True):
        for rule, colour in zip(RULES, _COLOURS, strict=True):
            if (world, rule) in every:
                mean, error = mean_and_error(every[world, rule].values())
                ax.errorbar(
                    [100 * s for s in SHARES], mean[:3], error[:3], fmt="o-", color=colour, label=rule
                )
        ax.set(title=world, xlabel="% of the budget spent", yscale="log")
        opened(ax)
    figure.axes[0].set_ylabel("loss of the best sampled, ± one standard error")
    legend_below(figure)
    save(figure, file)


def main() -> None:
    """Run what is missing, and print the table."""
    arguments = options("Loss at equal cost in chains of modules.", OUT, REPEATS, CHAINS, RULES).parse_args()
    rules = arguments.rules or ([*RULES] if arguments.table_only else RIVALS)
    worlds = arguments.only if arguments.table_only or len(arguments.only) < len(CHAINS) else STUDIED
    cells = [Cell(w, rule, k) for k in range(arguments.repeats) for w in worlds for rule in rules]
    by_steps = {"steps": arguments.steps}
    found = carried_out(arguments, cells, Outcome, partial(measured, **by_steps), partial(marked, **by_steps))
    print(markdown(found))
    if arguments.picture is not None:
        picture(found, arguments.picture)


if __name__ == "__main__":
    main()

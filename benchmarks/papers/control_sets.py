"""Simple regret at equal cost, where variables may be left to chance, after Hoang, Hoang and Tran (2025).

All policies start from the same five readings with all variables set, and then spend 100. The value of a play
is the true expectation over its free variables, by 4,096 scrambled Sobol points: not the points that policies
optimise over. The full set has the best value.

=====================  ==================================================================================
regret_10 ... _100     regret of the best play so far in expected value, by budget spent
evaluations            plays after the first readings
best_share             fraction of plays on the cheapest set that reaches the optimum: the first six variables
full_share             fraction of plays on the set of all variables
=====================  ==================================================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from study import Cell, Line, by_rule, carried_out, differences, digest, in_digits, mean_and_error, options

from fieldbo import run
from fieldbo.domain.controls import Controls, TruncatedNormal
from fieldbo.messages import Query
from fieldbo.mission.mission import Mission
from fieldbo.mission.vehicle_spec import VehicleSpec
from fieldbo.results.metrics import simple_regret
from fieldbo.results.plot.figures import legend_below, new_figure, opened, save
from fieldbo.results.plot.style import BLUE, GREEN, ORANGE, PINK, RED, SKY
from fieldbo.results.truth import ExpectedTruth, expected_truth_of
from fieldbo.runs.comparison import Case, prepared

OUT = Path("runs") / "control_sets.csv"
REPEATS = 8
FIRST, BUDGET = 5, 100.0
JUDGED_BY = "4096 scrambled Sobol points"
SPENT = (10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
VARIANCES = (0.02, 0.04)
BEST = 4
"""Number of the set of the first six variables, on which both functions depend."""

WORLDS = {
    f"{function}-12 {costs}, variance {variance}": (f"cell-{function}-12-{costs}", variance)
    for costs in ("cheap", "moderate")
    for variance in VARIANCES
    for function in ("hartmann", "ackley")
}

LITERAL, OURS = "Algorithm 1", "subset front"
RULES: dict[str, dict[str, Any]] = {
    "UCB-PSQ": {"kind": "ucb-psq", "samples": 32},
    "TS-PSQ": {"kind": "ts-psq", "samples": 32},
    "ETC-50": {"kind": "etc", "samples": 32},
    LITERAL: {"kind": "subsets", "samples": 32, "worst": 0.0},
    OURS: {"kind": "subset-front", "samples": 32, "worst": 0.0},
    "UCB-CVS, costs known": {"kind": "ucb-cvs", "samples": 32},
}
STUDIED = [*RULES][:5]
_SEEDS = 100
"""The first repeat's seed: settings were chosen on lower ones."""

_COLOURS = (SKY, PINK, RED, ORANGE, BLUE, GREEN)


@dataclass(frozen=True)
class Outcome(Line):
    """The result of a run: a line of the file."""

    figures: ClassVar[tuple[str, ...]] = (
        *(f"regret_{spent}" for spent in SPENT),
        "evaluations",
        "best_share",
        "full_share",
    )

    regret_10: float
    regret_20: float
    regret_30: float
    regret_40: float
    regret_50: float
    regret_60: float
    regret_70: float
    regret_80: float
    regret_90: float
    regret_100: float
    evaluations: int
    best_share: float
    full_share: float
    plays: str
    spent: float
    seconds: float
    digest: str


def _overrides(cell: Cell, steps: int | None) -> tuple[str, dict[str, Any]]:
    """Return a cell's mission and its overrides."""
    world, _ = WORLDS[cell.world]
    agent: dict[str, Any] = {"costs": "declared" if cell.rule.endswith("known") else "unknown"}
    if steps is not None:
        agent["max_steps"] = FIRST + steps
    return f"{world}-etc", {"policy": RULES[cell.rule], "initial": {"count": FIRST}, "agent": agent}


def marked(cell: Cell, steps: int | None) -> str:
    """Return a digest of what decides a cell's runs, apart from the repeat."""
    name, overrides = _overrides(cell, steps)
    return digest(name, overrides, budget=BUDGET, variance=WORLDS[cell.world][1], judge=JUDGED_BY)


def mission(cell: Cell, steps: int | None) -> Mission:
    """Return a cell's mission: five readings of all variables, at 1 each, on top of the budget."""
    (name, overrides), (_, variance) = _overrides(cell, steps), WORLDS[cell.world]
    made = prepared(Case(name, 0, _SEEDS + cell.repeat), overrides)
    domain, vehicle = made.world.domain, made.vehicles[0]
    law = TruncatedNormal(0.5, variance)
    controls = Controls(domain.control_sets, (law,) * domain.dimension)
    world = replace(made.world, domain=replace(domain, controls=controls))
    return replace(made, world=world, vehicles=(VehicleSpec(BUDGET + FIRST, vehicle.start),))


def expected_values(truth: ExpectedTruth, plays: Iterable[Query]) -> np.ndarray:
    """Return the true expected value (T,) of each play over what it leaves to chance."""
    return np.array([truth.value(truth.gains(play.site[None], play.controls)[0]) for play in plays])


def measured(cell: Cell, steps: int | None) -> Outcome:
    """Run a cell; called in a process of its own."""
    made = mission(cell, steps)
    begun = perf_counter()
    result = run(made)
    seconds = perf_counter() - begun
    controls = made.world.domain.controls
    assert controls is not None
    truth = expected_truth_of(made.world, made.question)
    assert truth is not None
    played = result.queries[FIRST:]
    costs = np.array([event.cost for event in result.observations])[FIRST:]
    regrets = simple_regret(truth.truth.optimum.value, expected_values(truth, played), costs, SPENT)
    number = [controls.index_of(play.controls) for play in played]
    plays = np.bincount(np.array(number, dtype=int), minlength=len(controls.sets))
    return Outcome(
        cell.world,
        cell.rule,
        cell.repeat,
        *(float(r) for r in regrets),
        len(played),
        float(plays[BEST] / len(played)),
        float(plays[-1] / len(played)),
        " ".join(map(str, plays)),
        float(costs.sum()),
        round(seconds, 2),
        marked(cell, steps),
    )


def figures(found: Iterable[Outcome]) -> dict[tuple[str, str], dict[int, np.ndarray]]:
    """Return the figures of each repeat, by world and rule, both in their order."""
    return by_rule(found, WORLDS, [*RULES])


def markdown(found: Sequence[Outcome]) -> str:
    """Return the table: each rule's means with standard errors and medians, the least regret of a world bold.

    Below it, by how much our rule's regret lies above each rival's from the same readings.
    """
    every, at = figures(found), [SPENT.index(s) for s in (10, 20, 40, 60, 100)]
    heads = " | ".join(f"at {SPENT[k]}" for k in at)
    lines = [
        f"| world | policy | simple regret {heads} | median at 100 | evaluations | on the best cheap set "
        "| on all | runs |",
        "|---" * (len(at) + 7) + "|",
    ]
    for world in dict.fromkeys(w for w, _ in every):
        means = {rule: mean_and_error(f.values()) for (w, rule), f in every.items() if w == world}
        least = np.min([mean for mean, _ in means.values()], axis=0)
        for rule, (mean, error) in means.items():
            taken = np.array([*every[world, rule].values()])
            regrets = [in_digits(mean[k], error[k]) for k in at]
            regrets = [f"**{c}**" if mean[k] == least[k] else c for c, k in zip(regrets, at, strict=True)]
            last = len(SPENT) - 1
            median = f"{np.median(taken[:, last]):.3g}"
            n = len(SPENT)
            rest = [median, f"{mean[n]:.0f}", f"{mean[n + 1]:.0%}", f"{mean[n + 2]:.0%}", str(len(taken))]
            lines.append(f"| {' | '.join([world, rule, *regrets, *rest])} |")
    lines += [
        "",
        f"{OURS} minus its rival, over the repeats that both have completed, by budget spent:",
        "",
        *differences(every, OURS, [str(spent) for spent in SPENT]),
    ]
    return "\n".join(lines)


def picture(found: Sequence[Outcome], file: Path) -> None:
    """Draw simple regret against cost, one panel a world."""
    every = figures(found)
    worlds = list(dict.fromkeys(world for world, _ in every))
    columns = min(4, len(worlds))
    rows = -(-len(worlds) // columns)
    figure = new_figure(3.6 * columns, 3.2 * rows + 0.6)
    panels = np.atleast_2d(figure.subplots(rows, columns, squeeze=False)).ravel()
    for ax, world in zip(panels, worlds, strict=False):
        for rule, colour in zip(RULES, _COLOURS, strict=True):
            if (world, rule) in every:
                mean, error = mean_and_error(every[world, rule].values())
                n = len(SPENT)
                ax.errorbar(SPENT, mean[:n], error[:n], fmt="o-", markersize=3, color=colour, label=rule)
        ax.set(title=world, yscale="log")
        ax.title.set_fontsize(9)
        opened(ax)
    for ax in panels[-columns:]:
        ax.set_xlabel("spent after the first readings")
    for ax in panels[::columns]:
        ax.set_ylabel("simple regret, mean")
    legend_below(figure)
    save(figure, file)


def main() -> None:
    """Run what is missing, and print the table."""
    arguments = options(
        "Simple regret where variables may be left to chance.", OUT, REPEATS, WORLDS, RULES
    ).parse_args()
    rules = arguments.rules or ([*RULES] if arguments.table_only else STUDIED)
    cells = [Cell(w, rule, k) for k in range(arguments.repeats) for w in arguments.only for rule in rules]
    by_steps = {"steps": arguments.steps}
    found = carried_out(arguments, cells, Outcome, partial(measured, **by_steps), partial(marked, **by_steps))
    print(markdown(found))
    if arguments.picture is not None:
        picture(found, arguments.picture)


if __name__ == "__main__":
    main()

"""Regret against the cost of moving: the table of Liu, Wang and Wei (2023), section 5.

Each rule starts from the same design in the same world and takes the same number of steps after it. A run is
one line of a CSV file, written as soon as it is done; an interrupted study continues where it stopped.

==========================  ====================================================================
cumulative regret           sum of the true regrets of all steps
simple regret               the same of the best site read at all, the design counted in
switching cost              travel summed over the steps, from the last site of the design on
==========================  ====================================================================

True values throughout, without the readings' noise. Of the tuning world only the least error so far is known:
a run that finds less has a regret below zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from study import Cell, Line, by_rule, carried_out, differences, digest, in_digits, mean_and_error, options

from fieldbo import load_mission, run
from fieldbo.messages import EndReason
from fieldbo.results.plot.figures import legend_below, new_figure, opened, save
from fieldbo.results.plot.style import BLUE, GREEN, ORANGE, PINK, RED, SKY
from fieldbo.results.truth import truth_of
from fieldbo.runs.comparison import Case, prepared

OUT = Path("runs") / "switching_cost.csv"
REPEATS = 10

WORLDS = ("branin", "ackley", "hartmann", "mlp")
"""The missions of a world are called after it."""


def rollout(base: str, **more: Any) -> dict[str, Any]:
    """Return the settings of a base rule rolled out as in the paper."""
    return {"kind": "rollout", "base": base, "horizon": 3, "fantasies": 32, **more}


OURS = "distUCB rollout"
RULES: dict[str, dict[str, Any]] = {
    "distUCB": {"kind": "dist-ucb"},
    OURS: rollout("dist-ucb"),
    "EI": rollout("ei", horizon=1),  # one step ahead, anywhere in the box
    "EI per cost rollout": rollout("ei-per-cost"),
    "UCB rollout": rollout("ucb"),
    "EI per cost rollout, d0 = 0.1": rollout("ei-per-cost", d0=0.1),  # all but the shortest moves count
}
STUDIED = [*RULES][:5]
"""What the paper compares, and distUCB one step ahead; the last rule runs only where it is asked for."""

_LOOKS = dict(zip(RULES, zip((SKY, BLUE, RED, PINK, GREEN, ORANGE), "vos^DP", strict=True), strict=True))


@dataclass(frozen=True)
class Outcome(Line):
    """What came of a run: a line of the file."""

    figures: ClassVar[tuple[str, ...]] = ("cumulative_regret", "simple_regret", "switching_cost")

    steps: int
    cumulative_regret: float
    simple_regret: float
    switching_cost: float
    seconds: float
    digest: str


def settings(cell: Cell, steps: int | None) -> tuple[str, dict[str, Any]]:
    """Return a cell's mission and what is laid over it; `steps` after the design, None: as it has them."""
    mission = f"{cell.world}-ei"  # nothing but a kind in its table of the policy
    overrides: dict[str, Any] = {"policy": RULES[cell.rule]}
    if steps is not None:
        overrides["agent"] = {"max_steps": load_mission(mission).initial + steps}
    return mission, overrides


def marked(cell: Cell, steps: int | None) -> str:
    """Return a digest of what decides a cell's runs, apart from the repeat."""
    mission, overrides = settings(cell, steps)
    return digest(mission, overrides)


def measured(cell: Cell, steps: int | None) -> Outcome:
    """Run a cell; called in a process of its own."""
    name, overrides = settings(cell, steps)
    mission = prepared(Case(name, 0, cell.repeat), overrides)
    begun = perf_counter()
    result = run(mission)
    seconds = perf_counter() - begun
    if result.end_reason != EndReason.STEP_LIMIT:
        raise RuntimeError(f"{cell} ended otherwise than by its number of steps: {result.end_reason}")
    truth, world = truth_of(mission.world, mission.question), mission.world
    assert truth is not None
    sites, design = result.sites, mission.initial
    regret = mission.question.sign * (truth.optimum.value - world.truth(sites))
    travel = [float(world.cost.travel(*move)[0]) for move in zip(sites[:-1], sites[1:, None], strict=True)]
    return Outcome(
        cell.world,
        cell.rule,
        cell.repeat,
        len(sites) - design,
        float(regret[design:].sum()),
        float(regret.min()),
        float(np.sum(travel[design - 1 :])),
        round(seconds, 2),
        marked(cell, steps),
    )


def figures(found: Iterable[Outcome]) -> dict[tuple[str, str], dict[int, np.ndarray]]:
    """Return the three figures (3,) of each repeat, by world and rule, both in their order."""
    return by_rule(found, WORLDS, [*RULES])


def markdown(found: Sequence[Outcome]) -> str:
    """Return the table: each rule's means with their standard errors, the least of a world in bold.

    Below it, by how much the distUCB rollout lies above each rival from the same designs.
    """
    every = figures(found)
    names = " | ".join(name.replace("_", " ") for name in Outcome.figures)
    lines = [f"| world | policy | {names} | runs |", "|---|---|---|---|---|---|"]
    steps = {o.world: o.steps for o in found}
    for world, taken in steps.items():
        means = {rule: mean_and_error(f.values()) for (w, rule), f in every.items() if w == world}
        least = np.min([mean for mean, _ in means.values()], axis=0)
        for rule, (mean, error) in means.items():
            cells = [in_digits(m, e) for m, e in zip(mean, error, strict=True)]
            cells_bold = [
                f"**{c}**" if m == best else c for c, m, best in zip(cells, mean, least, strict=True)
            ]
            row = [f"{world}, {taken} steps", rule, *cells_bold, str(len(every[world, rule]))]
            lines.append(f"| {' | '.join(row)} |")
    lines += [
        "",
        f"{OURS} minus its rival, over the repeats that both have completed:",
        "",
        *differences(every, OURS, [name.replace("_", " ") for name in Outcome.figures]),
    ]
    return "\n".join(lines)


def picture(found: Sequence[Outcome], file: Path) -> None:
    """Draw cumulative regret against switching cost, one panel a world: down and to the left is better."""
    every = figures(found)
    worlds = list(dict.fromkeys(world for world, _ in every))
    figure = new_figure(3.4 * len(worlds), 3.8)
    for ax, world in zip(np.atleast_1d(figure.subplots(1, len(worlds))), worlds, strict=True):
        for rule, (colour, marker) in _LOOKS.items():
            if (world, rule) in every:
                (regret, _, cost), (d_regret, _, d_cost) = mean_and_error(every[world, rule].values())
                ax.errorbar(
                    cost, regret, d_regret, d_cost, fmt=marker, color=colour, linewidth=1.0, label=rule
                )
        ax.margins(0.1)
        ax.set(title=world, xlabel="switching cost (spans)", xlim=(0, None))
        if ax.dataLim.y0 > 0:
            ax.set_ylim(bottom=0)
        opened(ax)
    figure.axes[0].set_ylabel("cumulative regret, ± one standard error")
    legend_below(figure)
    save(figure, file)


def main() -> None:
    """Run what is missing, and print the table."""
    arguments = options("Regret against the cost of moving.", OUT, REPEATS, WORLDS, RULES).parse_args()
    rules = arguments.rules or ([*RULES] if arguments.table_only else STUDIED)
    cells = [Cell(w, rule, k) for k in range(arguments.repeats) for w in arguments.only for rule in rules]
    by_steps = {"steps": arguments.steps}
    found = carried_out(arguments, cells, Outcome, partial(measured, **by_steps), partial(marked, **by_steps))
    print(markdown(found))
    if arguments.picture is not None:
        picture(found, arguments.picture)


if __name__ == "__main__":
    main()

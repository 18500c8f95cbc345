"""The curves of a factory cell: regrets, runs or plays, and where the cost went."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec, SubplotSpec

from fieldbo.errors import counted
from fieldbo.results.cell_runs import ModuleRuns
from fieldbo.results.outcome import Outcome
from fieldbo.results.plot.cell_path import colour_of
from fieldbo.results.plot.figures import (
    cost_label,
    finish,
    folded,
    headline,
    new_figure,
    opened,
)
from fieldbo.results.plot.scores import HELD, column_of, draw_scores
from fieldbo.results.plot.style import Look, letter_size, line_width, shade
from fieldbo.results.plot.widths import font_size, paper_of, width_of

_ROW = 32  # letters of a legend that fit into a row on paper
_NAME = 17  # letters of a name in a line on paper

Panel = Callable[[Figure, SubplotSpec, Any], Axes]
"""Draws a panel, and returns its first axes."""


def plays_picture(outcome: Outcome, width: str = "screen") -> Figure:
    """Draw the regrets of a factory cell's run against cost, and where the cost went.

    Parameters
    ----------
    outcome : Outcome
        Of a run for an optimum in a factory cell.
    width : {"screen", "column", "page"}
        Size for a screen, or for one or both columns of a paper.

    Returns
    -------
    matplotlib.figure.Figure
        Regret on a log scale (in a live world, the reported value); runs of each module or plays of each
        control set; cost and regret of changing settings, or quality and cost regret; and the fraction of
        runs and of cost of each module or set.
    """
    chain = isinstance(outcome.cell_runs, ModuleRuns)
    panels: list[Panel] = [_regrets, _counts]
    panels += [_movement] if chain else [] if outcome.truth is None else [_quality_and_cost]
    panels += [_fractions]
    bars = 0.9 + 0.33 * len(outcome.cell_runs.names)  # inches on paper, for two lines of text at each
    tall = 2.2 * (len(panels) - 1) + bars if width == "column" else 2.5 + max(2.5, bars)
    figure = new_figure(12, 8, width, tall=tall)
    firsts = [
        panel(figure, place, outcome) for panel, place in zip(panels, _places(figure, panels), strict=True)
    ]
    return finish(figure, headline(outcome), firsts, legend=False)


def _places(figure: Figure, panels: Sequence[Panel]) -> list[SubplotSpec]:
    """Return the places of panels: one below the other in a column, otherwise in two columns."""
    if width_of(figure) == "column":
        tall = figure.get_figheight()
        heights = [2.2] * (len(panels) - 1)
        grid = GridSpec(len(panels), 1, figure, height_ratios=[*heights, tall - sum(heights)])
        return [grid[k, 0] for k in range(len(panels))]
    grid = GridSpec(2, 2, figure)
    last = [grid[1, 0], grid[1, 1]] if len(panels) == 4 else [grid[1, :]]
    return [grid[0, 0], grid[0, 1], *last]


def _against_cost(ax: Axes, outcome: Outcome, *, named: bool = True) -> None:
    """Set up a cost axis from 0 to the total cost, `named` on the lowest axes of a column."""
    battery = sum(c.capacity for c in outcome.mission.vehicles)
    ax.set_xlim(0, outcome.cost or battery)
    if outcome.cost > battery:
        ax.axvline(battery, color=shade(1.0), linewidth=line_width(0.9), linestyle=":", label="battery")
    if named:
        ax.set_xlabel(cost_label(outcome))
    else:
        ax.tick_params(labelbottom=False)
    opened(ax)


def _regrets(figure: Figure, place: SubplotSpec, outcome: Outcome) -> Axes:
    """Draw the regrets on a log scale; in a live world, the reported value."""
    ax = figure.add_subplot(place)
    _against_cost(ax, outcome)
    draw_scores(ax, outcome)
    if outcome.truth is None:
        ax.set_title("reported value")
    else:
        ax.set_title("regret")
        _legend(ax)
    return ax


def _legend(ax: Axes) -> None:
    """Add a legend between the axes and their title."""
    labels = ax.get_legend_handles_labels()[1]
    one_row = paper_of(ax) is None or sum(map(len, labels)) < _ROW
    rows = 1 if one_row else len(labels)
    ax.set_title(ax.get_title(), pad=24 if paper_of(ax) is None else 8 + 10 * rows)
    ax.legend(
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=3 if one_row else 1,
        frameon=False,
        fontsize=font_size(ax, letter_size(9.0)),
        borderaxespad=0.2,
        labelspacing=0.2,
    )


def _counts(figure: Figure, place: SubplotSpec, outcome: Outcome) -> Axes:
    """Draw the runs of each module, or the plays of each control set, against cost."""
    ax, runs = figure.add_subplot(place), outcome.cell_runs
    chain = isinstance(runs, ModuleRuns)
    cost = np.cumsum([play.cost for play in runs.plays])
    kinds = np.array([play.kind for play in runs.plays], dtype=int)
    if not chain:
        total = np.arange(1, len(kinds) + 1)
        look: Look = {"color": shade(1.0), "linewidth": line_width(2.2)}
        ax.step(cost, total, label="all plays", **look, **HELD)
    for kind, name in enumerate(runs.names):
        count = np.cumsum(kinds <= kind if chain else kinds == kind)
        label = name if chain else "_" + name  # the bars below name control sets
        ax.step(cost, count, color=colour_of(kind), linewidth=line_width(1.6), label=label, **HELD)
    ax.set(
        title="runs of each module" if chain else "plays, in total and of each control set",
        ylabel="runs" if chain else "plays",
    )
    ax.set_ylim(0, 1.05 * max(1, len(kinds)))
    _legend(ax)
    _against_cost(ax, outcome)
    return ax


def _movement(figure: Figure, place: SubplotSpec, outcome: Outcome) -> Axes:
    """Draw the cost of changing settings and, if the truth is known, the movement regret."""
    curves = {"movement": f"cost\n({outcome.mission.world.cost_unit})"}
    if outcome.truth is not None:
        curves["movement_regret"] = "movement\nregret"
    return _stacked(figure, place, outcome, curves, "changes of settings: all modules but the last")


def _quality_and_cost(figure: Figure, place: SubplotSpec, outcome: Outcome) -> Axes:
    """Draw quality regret and cost regret."""
    world = outcome.mission.world
    unit = "" if world.quantity.unit in ("", "1") else f"\n({world.quantity.unit})"
    curves = {"quality_regret": f"quality regret{unit}", "cost_regret": f"cost regret\n({world.cost_unit})"}
    return _stacked(figure, place, outcome, curves, "quality and cost regret, relative to 90% of the best")


def _stacked(
    figure: Figure, place: SubplotSpec, outcome: Outcome, curves: dict[str, str], title: str
) -> Axes:
    """Draw columns of the curve, with their labels, one above the other."""
    grid, drawn = place.subgridspec(len(curves), 1), list[Axes]()
    for row, (name, label) in enumerate(curves.items()):
        ax = figure.add_subplot(grid[row], sharex=drawn[0] if drawn else None)
        drawn.append(ax)
        values = column_of(outcome, name)
        look: Look = {"color": shade(0.75), "linewidth": line_width(2.0)}
        ax.step(column_of(outcome, "cost"), values, **look, **HELD)
        ax.set(title="" if row else title, ylabel=label)
        if not values.any():
            ax.set_ylim(0, 1)
        _against_cost(ax, outcome, named=row == len(curves) - 1)
    return drawn[0]


def _fractions(figure: Figure, place: SubplotSpec, outcome: Outcome) -> Axes:
    """Draw bars of the fractions of runs and of cost of each module or control set."""
    ax, numbers = figure.add_subplot(place), outcome.cell_runs.summary()
    chain = "modules" in numbers
    kinds = numbers["modules" if chain else "control_sets"]
    counts = np.array([kind["runs" if chain else "plays"] for kind in kinds], dtype=float)
    costs = np.array([kind["spent" if chain else "cost"] for kind in kinds])
    rows = np.arange(len(kinds))
    unit, n = outcome.mission.world.cost_unit, max(1, len(outcome.cell_runs.plays))
    colours = [colour_of(int(k)) for k in rows]
    shares = counts / n, costs / (costs.sum() or 1.0)
    for up, share, alpha in ((-0.2, shares[0], 1.0), (0.2, shares[1], 0.45)):
        ax.barh(rows + up, 100 * share, 0.38, color=colours, alpha=alpha)
    for row, (count, cost) in enumerate(zip(counts, costs, strict=True)):
        for up, share, text in (
            (-0.2, shares[0][row], counted(int(count), "run" if chain else "play")),
            (0.2, shares[1][row], f"{cost:.3g} {unit}"),
        ):
            ax.annotate(
                text,
                (100 * share, row + up),
                (4, 0),
                textcoords="offset points",
                fontsize=letter_size(8),
                va="center",
            )
    names = [
        folded(ax, name + (" ✓" if kind.get("good_enough_true") else ""), _NAME)
        for name, kind in zip(outcome.cell_runs.names, kinds, strict=True)
    ]
    ax.set_yticks(rows, names)
    for label, colour in zip(ax.get_yticklabels(), colours, strict=True):
        label.set_color(colour)
    ax.yaxis.set_inverted(True)
    room = 1.15 if paper_of(ax) is None else 1.4  # for the text beside the longest bar
    ax.set_xlim(0, 100 * room * max(0.01, shares[0].max(), shares[1].max()))
    ax.set_title(f"fraction of {'samples' if chain else 'plays'} (dark) and of cost (light)")
    ticked = any(name.endswith("✓") for name in names)
    ax.set_xlabel("%" + (" (✓: expected value reaches 90% of the best)" if ticked else ""))
    opened(ax)
    ax.grid(visible=False, axis="y")
    return ax

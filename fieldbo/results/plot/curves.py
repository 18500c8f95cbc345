"""The picture of a run's scores against cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec, SubplotSpec
from matplotlib.lines import Line2D

from fieldbo._numerics.arrays import Array
from fieldbo.belief.confidence import Interval
from fieldbo.errors import UnknownNameError, counted
from fieldbo.results.answers import LevelSetAnswer, OptimumAnswer
from fieldbo.results.cell_runs import CountedRuns, ModuleRuns
from fieldbo.results.outcome import Outcome
from fieldbo.results.plot.cell_path import colour_of
from fieldbo.results.plot.figures import (
    cost_label,
    finish,
    floor_of,
    folded,
    headline,
    new_figure,
    opened,
    plain_log,
)
from fieldbo.results.plot.style import (
    BLUE,
    GREEN,
    ORANGE,
    RED,
    Look,
    font_size,
    hue,
    letter_size,
    line_width,
    paper_of,
    shade,
    width_of,
)


def curve_picture(outcome: Outcome, width: str = "screen") -> Figure:
    """Draw the scores, or the regret, against cost.

    Parameters
    ----------
    outcome : Outcome
        For example a `Result`.
    width : {"screen", "column", "page"}
        Size for a screen, or for one or both columns of a paper.

    Returns
    -------
    matplotlib.figure.Figure
        Cost in the world's unit, from 0 to what all batteries hold. For a level set: F1, precision and recall
        (unless the world is live), expected F1 with its final 90% interval, and the fraction of unclassified
        sites, from 0 to 1. For an optimum: the regret on a log scale, in the quantity's unit; in a live
        world, the reported value with its final 90% interval; in a factory cell, also where the cost went,
        see `plays_picture`.
    """
    if outcome.cell_runs.names and isinstance(outcome.answer, OptimumAnswer):
        return plays_picture(outcome, width)
    figure = new_figure(8, 5, width)
    ax = figure.subplots()
    curve_panel(ax, outcome)
    ax.set_xlabel(cost_label(outcome))
    return finish(figure, headline(outcome), over=ax)


def curve_panel(
    ax: Axes,
    outcome: Outcome,
    scores: Sequence[str] | str | None = None,
    *,
    label: str | None = None,
    color: str | None = None,
    linewidth: float | None = None,
) -> dict[str, Artist]:
    """Draw scores against cost into axes, which may show those of other runs.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
    outcome : Outcome
        For example a `Result`.
    scores : str or sequence of str, optional
        Columns of ``curve.csv``, by default all that apply. For a level set ``"f1"``, ``"precision"``,
        ``"recall"``, ``"expected_f1"`` and ``"unclassified"``; for an optimum ``"regret"``, in a factory cell
        also ``"best_regret"`` or ``"simple_regret"``; in a live world ``"reported_value"``.
    label : str, optional
        Name of the run in the legend.
    color : color, optional
        Of all lines.
    linewidth : float, optional
        In points.

    Returns
    -------
    dict of str to Artist
        A line by the name of each score; ``"expected_f1 interval"`` or ``"reported_value interval"``; and the
        line at the ``"battery"`` if the run cost more.

    Raises
    ------
    UnknownNameError
        The run has no such score.
    """
    battery, before = sum(c.capacity for c in outcome.mission.vehicles), ax.has_data()
    furthest = ax.get_xlim()[1] if before else 0.0
    drawn = draw_scores(ax, outcome, scores, label=label, color=color, linewidth=linewidth)
    if outcome.cost > battery:
        look: Look = {"color": shade(1.0), "linewidth": line_width(0.9), "linestyle": ":"}
        look["label"] = "all batteries" if outcome.several_batteries else "battery"
        drawn["battery"] = ax.axvline(battery, **look)
    ax.set(xlim=(0, max(battery, outcome.cost, furthest)))
    ax.set_xlabel(f"cost ({outcome.mission.world.cost_unit})")
    opened(ax)
    return drawn


HELD: Look = {"where": "post", "clip_on": False}
"""Look of a score: it is valid until the next order is settled."""


class ScoreLine(NamedTuple):
    """How a score is drawn; the colour is one of `SERIES`, or None for a grey."""

    label: str
    colour: str | None
    width: float
    style: str = "-"
    zorder: float = 2.0


_CLASSIFIED = {
    "f1": ScoreLine("F1", BLUE, 2.2, zorder=3.0),
    "precision": ScoreLine("precision", GREEN, 0.9),
    "recall": ScoreLine("recall", ORANGE, 0.9),
    "expected_f1": ScoreLine("expected F1", RED, 1.5, "--"),
    "unclassified": ScoreLine("fraction unclassified", None, 0.9),
}
_REGRET = {"regret": ScoreLine("regret", BLUE, 2.2)}
_REGRETS_OF_A_CELL = {  # widths that show both lines where they coincide
    "regret": ScoreLine("reported optimum", BLUE, 2.8),
    "best_regret": ScoreLine("best sample", GREEN, 1.4),
    "simple_regret": ScoreLine("best play, in expectation", GREEN, 1.4),
}
_REPORTED = {"reported_value": ScoreLine("reported value", BLUE, 2.2)}
_REPORTED_BY_A_CELL = {"reported_value": ScoreLine("reported value", BLUE, 2.0)}
_NEED_THE_TRUTH = ("f1", "precision", "recall")


def score_lines(outcome: Outcome) -> dict[str, ScoreLine]:
    """Return the scores that a run has, by the name of their column in ``curve.csv``."""
    live = outcome.truth is None
    if isinstance(outcome.answer, LevelSetAnswer):
        return {k: v for k, v in _CLASSIFIED.items() if not (live and k in _NEED_THE_TRUTH)}
    cell = isinstance(outcome.cell_runs, CountedRuns)
    if live:
        return _REPORTED_BY_A_CELL if cell else _REPORTED
    kept = ("regret", *outcome.cell_runs.optimum_columns)
    return {k: v for k, v in _REGRETS_OF_A_CELL.items() if k in kept} if cell else _REGRET


def column_of(outcome: Outcome, name: str) -> Array:
    """Return a column (k,) of the curve."""
    return np.array([getattr(step, name) for step in outcome.curve], dtype=float)


def draw_scores(
    ax: Axes,
    outcome: Outcome,
    scores: Sequence[str] | None = None,
    *,
    label: str | None = None,
    color: str | None = None,
    linewidth: float | None = None,
) -> dict[str, Artist]:
    """Draw scores against cost, and set up the vertical axis; see `curve_panel`."""
    lines = score_lines(outcome)
    names = list(lines) if scores is None else [scores] if isinstance(scores, str) else list(scores)
    for name in names:
        if name not in lines:
            raise UnknownNameError.of("score", name, lines, where="scores")
    others = ax.has_data()
    regrets, floor = [column_of(outcome, name) for name in names if name.endswith("regret")], -np.inf
    if regrets:
        floor = floor_of(np.concatenate(regrets))
    cost = column_of(outcome, "cost")
    drawn, intervals = dict[str, Line2D](), dict[str, Artist]()
    for name in names:
        line, values = lines[name], column_of(outcome, name)
        text = line.label if label is None else label if len(names) == 1 else f"{label}: {line.label}"
        text += " (zero: at the lower edge)" if (values < floor).any() else ""
        look: Look = {"color": color or (shade(0.55) if line.colour is None else hue(line.colour))}
        look |= {"linewidth": line_width(line.width) if linewidth is None else linewidth}
        look |= {"linestyle": line.style, "zorder": line.zorder, "label": text}
        (drawn[name],) = ax.step(cost, np.maximum(values, floor), **look, **HELD)
    for name in names:
        if (ends := _final_interval(outcome, name)) is not None and outcome.curve:
            look = {"color": drawn[name].get_color(), "linewidth": line_width(3.0), "alpha": 0.6}
            of = lines[name].label if label is None else f"{label}: {lines[name].label}"
            look |= {"label": f"{of}: final 90% interval", "clip_on": False, "zorder": 3.5}
            intervals[f"{name} interval"] = ax.vlines(cost[-1], ends.low, ends.high, **look)
    _upright(ax, outcome, floor if regrets else None, others=others)
    return {**drawn, **intervals}


def _final_interval(outcome: Outcome, name: str) -> Interval | None:
    """Return the 90% interval at the end of a curve, if it has one: earlier ones are not recorded."""
    if isinstance(outcome.answer, LevelSetAnswer):
        return outcome.answer.confidence.f1 if name == "expected_f1" else None
    cell = isinstance(outcome.cell_runs, CountedRuns)
    return outcome.answer.confidence.value if name == "reported_value" and not cell else None


def _upright(ax: Axes, outcome: Outcome, floor: float | None, *, others: bool) -> None:
    """Set up the vertical axis, so that what is there already stays visible."""
    quantity = outcome.mission.world.quantity
    if isinstance(outcome.answer, LevelSetAnswer):
        ax.set(ylim=(0, 1), ylabel="score or fraction of sites")
    elif floor is None:
        ax.set_ylabel(quantity.label)
    else:
        lowest = min(floor, ax.get_ylim()[0]) if others else floor
        plain_log(ax)
        ax.set_ylabel(f"regret of {quantity.label}")
        ax.set_ylim(bottom=lowest)


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
    curves = {"movement": f"cost\n({outcome.mission.world.cost_unit})"}
    if outcome.truth is not None:
        curves["movement_regret"] = "movement\nregret"
    return _stacked(figure, place, outcome, curves, "changes of settings: all modules but the last")


def _quality_and_cost(figure: Figure, place: SubplotSpec, outcome: Outcome) -> Axes:
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

"""The picture of a run's scores against cost."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fieldbo.results.answers import OptimumAnswer
from fieldbo.results.outcome import Outcome
from fieldbo.results.plot.cell_curves import plays_picture
from fieldbo.results.plot.figures import cost_label, finish, headline, new_figure, opened
from fieldbo.results.plot.scores import draw_scores
from fieldbo.results.plot.style import Look, line_width, shade


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

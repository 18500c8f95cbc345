"""The picture of a run's scores against cost."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fieldbo.belief.confidence import Interval
from fieldbo.results.answers import LevelSetAnswer, OptimumAnswer
from fieldbo.results.outcome import Outcome
from fieldbo.results.plot.cell_curves import plays_picture
from fieldbo.results.plot.figures import (
    BLUE,
    GREEN,
    ORANGE,
    RED,
    Look,
    cost_label,
    finish,
    floor_of,
    headline,
    new_figure,
    opened,
    plain_log,
)

_HELD: Look = {"where": "post", "clip_on": False}  # a score is valid until the next order is settled


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
    mission = outcome.mission
    battery = sum(c.capacity for c in mission.vehicles)
    figure = new_figure(8, 5, width)
    ax = figure.subplots()
    if isinstance(outcome.answer, LevelSetAnswer):
        _level_set(ax, outcome, outcome.answer)
    elif outcome.truth is None:
        _reported(ax, outcome, outcome.answer)
    else:
        _regret(ax, outcome)
    if outcome.cost > battery:
        label = "all batteries" if outcome.several_batteries else "battery"
        ax.axvline(battery, color="black", linewidth=0.9, linestyle=":", label=label)
    ax.set(xlim=(0, max(battery, outcome.cost)))
    ax.set(xlabel=cost_label(outcome))
    opened(ax)
    return finish(figure, headline(outcome), over=ax)


def _level_set(ax: Axes, outcome: Outcome, answer: LevelSetAnswer) -> None:
    curve = outcome.curve
    cost = [s.cost for s in curve]
    if outcome.truth is not None:
        ax.step(cost, [s.f1 for s in curve], color=BLUE, linewidth=2.2, label="F1", zorder=3, **_HELD)
        ax.step(cost, [s.precision for s in curve], color=GREEN, linewidth=0.9, label="precision", **_HELD)
        ax.step(cost, [s.recall for s in curve], color=ORANGE, linewidth=0.9, label="recall", **_HELD)
    expected, unclassified = [s.expected_f1 for s in curve], [s.unclassified for s in curve]
    ax.step(cost, expected, "--", color=RED, linewidth=1.5, label="expected F1", **_HELD)
    ax.step(cost, unclassified, color="0.45", linewidth=0.9, label="fraction unclassified", **_HELD)
    if curve:
        _final_interval(ax, cost[-1], answer.confidence.f1, "expected F1", RED)
    ax.set(ylim=(0, 1), ylabel="score or fraction of sites")


def _final_interval(ax: Axes, cost: float, interval: Interval, of: str, colour: str) -> None:
    """Draw a 90% interval at the end of a curve: earlier ones are not recorded."""
    look: Look = {"color": colour, "clip_on": False, "zorder": 3.5}
    label = f"{of}: final 90% interval"
    ax.vlines(cost, interval.low, interval.high, linewidth=3.0, alpha=0.6, label=label, **look)


def _regret(ax: Axes, outcome: Outcome) -> None:
    regret = np.array([s.regret for s in outcome.curve])
    floor = floor_of(regret)
    ax.step(
        [s.cost for s in outcome.curve],
        np.maximum(regret, floor),
        color=BLUE,
        linewidth=2.2,
        label="regret" + ("" if (regret >= floor).all() else " (zero: at the lower edge)"),
        **_HELD,
    )
    plain_log(ax)
    ax.set_ylabel(f"regret of {outcome.mission.world.quantity.label}")
    ax.set_ylim(bottom=floor)


def _reported(ax: Axes, outcome: Outcome, answer: OptimumAnswer) -> None:
    curve = outcome.curve
    values = [s.reported_value for s in curve]
    ax.step([s.cost for s in curve], values, color=BLUE, linewidth=2.2, label="reported value", **_HELD)
    if curve:
        _final_interval(ax, curve[-1].cost, answer.confidence.value, "reported value", BLUE)
    ax.set_ylabel(outcome.mission.world.quantity.label)

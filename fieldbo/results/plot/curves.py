"""The picture of a run's scores against what was spent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fieldbo.results.answers import LevelSetAnswer, OptimumAnswer
from fieldbo.results.plot.figures import (
    BLUE,
    GREEN,
    ORANGE,
    RED,
    Look,
    floor_of,
    headline,
    legend_below,
    new_figure,
    opened,
)
from fieldbo.results.plot.plays import plays_picture

if TYPE_CHECKING:
    from fieldbo.results.result import Result

_HELD: Look = {"where": "post", "clip_on": False}  # a score holds until the next order is settled


def curve_picture(result: Result) -> Figure:
    """Draw how the scores rose, or the regret fell, with what was spent.

    Parameters
    ----------
    result : Result

    Returns
    -------
    matplotlib.figure.Figure
        Cost in the world's unit, from 0 to the battery. Of a level set: F1, precision and recall (where
        there is a truth), expected F1 and the share unclassified, from 0 to 1. Of an optimum: the regret on
        a log scale, in the quantity's unit; in a live world, the reported value; in a cell, what it was spent
        on besides: see `plays_picture`.
    """
    if result.cell.names and isinstance(result.answer, OptimumAnswer):
        return plays_picture(result)
    mission = result.mission
    battery, unit = sum(c.battery for c in mission.vehicles), mission.world.cost_unit
    figure = new_figure(8, 5)
    ax = figure.subplots()
    if isinstance(result.answer, LevelSetAnswer):
        _shares(ax, result)
    elif result.truth is None:
        _reported(ax, result)
    else:
        _regret(ax, result)
    if result.cost > battery:
        ax.axvline(battery, color="black", linewidth=0.9, linestyle=":", label="battery")
    ax.set(xlim=(0, max(battery, result.cost)))
    ax.set(xlabel=f"spent ({unit}); the battery holds {battery:g} {unit}", title=headline(result))
    opened(ax)
    legend_below(figure)
    return figure


def _shares(ax: Axes, result: Result) -> None:
    curve = result.curve
    cost = [s.cost for s in curve]
    if result.truth is not None:
        ax.step(cost, [s.f1 for s in curve], color=BLUE, linewidth=2.2, label="F1", zorder=3, **_HELD)
        ax.step(cost, [s.precision for s in curve], color=GREEN, linewidth=0.9, label="precision", **_HELD)
        ax.step(cost, [s.recall for s in curve], color=ORANGE, linewidth=0.9, label="recall", **_HELD)
    believed, unsure = [s.expected_f1 for s in curve], [s.unclassified for s in curve]
    ax.step(cost, believed, "--", color=RED, linewidth=1.5, label="expected F1", **_HELD)
    ax.step(cost, unsure, color="0.45", linewidth=0.9, label="share of sites unclassified", **_HELD)
    ax.set(ylim=(0, 1), ylabel="score or share")


def _regret(ax: Axes, result: Result) -> None:
    regret = np.array([s.regret for s in result.curve])
    floor = floor_of(regret)
    ax.step(
        [s.cost for s in result.curve],
        np.maximum(regret, floor),
        color=BLUE,
        linewidth=2.2,
        label="regret" + ("" if (regret >= floor).all() else " (none: at the lower edge)"),
        **_HELD,
    )
    ax.set(yscale="log", ylabel=f"regret of {result.mission.world.quantity.label}")
    ax.set_ylim(bottom=floor)


def _reported(ax: Axes, result: Result) -> None:
    curve = result.curve
    values = [s.reported_value for s in curve]
    ax.step([s.cost for s in curve], values, color=BLUE, linewidth=2.2, label="reported value", **_HELD)
    ax.set_ylabel(result.mission.world.quantity.label)

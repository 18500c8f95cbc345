"""The picture of advice: what to expect of a battery as it is spent, over the drawn fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from fieldbo._numerics.arrays import Array
from fieldbo.results.metrics import F1, Score
from fieldbo.results.plot.figures import finish, floor_of, new_figure, opened, plain_log
from fieldbo.results.plot.style import SERIES


class Expected(NamedTuple):
    """Scores of one policy: quantiles (5, k) over the fields at costs (k,), up to a battery.

    Where the mission changes it, `battery` is what all batteries hold together, and `each` what one holds.
    """

    costs: Array
    quantiles: Array
    battery: float
    each: float | None = None

    def words(self, unit: str) -> str:
        """Return the battery, or the batteries, in words.

        Examples
        --------
        >>> Expected(np.ones(1), np.ones((5, 1)), 7200.0, 1200.0).words("s")
        '6 x 1,200 s'
        """
        if self.each is None:
            return f"{self.battery:,.4g} {unit}"
        return f"{round(self.battery / self.each)} x {self.each:,.4g} {unit}"


def advice_picture(
    expected: Mapping[str, Expected],
    unit: str,
    score: Score = F1,
    target: float | None = None,
    width: str = "screen",
    title: str = "",
) -> Figure:
    """Draw the score of each policy against cost: median, central 50% and central 80% of the fields.

    Parameters
    ----------
    expected : mapping of str to Expected
        By policy; the quantiles are those at 0.1, 0.25, 0.5, 0.75 and 0.9.
    unit : str
        Cost unit of the world.
    score : Score
        A score of which smaller is better is drawn on a log scale.
    target : float, optional
        Marked by a line, where the batteries are marked on it.
    width : {"screen", "column", "page"}
    title : str
    """
    figure = new_figure(9, 5.5, width)
    ax = figure.subplots()
    floor = -np.inf
    if score.better == "smaller":
        floor = floor_of(np.concatenate([e.quantiles[2] for e in expected.values()]))
        plain_log(ax)
    for number, (policy, of) in enumerate(expected.items()):
        costs, quantiles, battery = of.costs, of.quantiles, of.battery
        colour = SERIES[number % len(SERIES)]
        lines = np.maximum(quantiles, floor)
        for low, high, alpha in ((0, 4, 0.12), (1, 3, 0.2)):
            ax.fill_between(costs, lines[low], lines[high], color=colour, alpha=alpha, linewidth=0)
        ax.plot(costs, lines[2], color=colour, linewidth=1.8, label=f"{policy}: {of.words(unit)}")
        ax.axvline(battery, color=colour, linewidth=1.2, linestyle="--")
        if target is not None:
            ax.plot([battery], [target], "o", color=colour, clip_on=False, zorder=5)
    if target is not None:
        ax.axhline(target, color="0.3", linewidth=1.0, linestyle=":")
        ax.annotate(f"target {target:g}", (0.0, target), (3, 3), textcoords="offset points", color="0.3")
    ax.set_xlim(0, 1.02 * max(e.battery for e in expected.values()))
    ax.set_ylim(*((floor, None) if score.better == "smaller" else (0, 1)))
    better = "" if score.better == "larger" else "; smaller is better"
    if any((e.quantiles[2] < floor).any() for e in expected.values()):
        better += ", zero at the lower edge"
    ax.set(
        xlabel=f"cost ({unit})\nline: median; bands: central 50% and 80% of the fields; dashed: battery",
        ylabel=f"{score.name}{better}",
    )
    opened(ax)
    return finish(figure, title)

"""The picture of the final maps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fieldbo._numerics.arrays import Array
from fieldbo.results.answers import LevelSetAnswer, OptimumAnswer
from fieldbo.results.metrics import SURE
from fieldbo.results.plot.figures import (
    BLUE,
    CHANCE,
    CLASS,
    HOPE,
    SPREAD,
    VALUE,
    Look,
    headline,
    legend_below,
    new_figure,
    opened,
)
from fieldbo.results.plot.ground import edge, field, frame, ratio
from fieldbo.results.plot.marks import mark
from fieldbo.results.plot.profiles import line, moments, optima, profile

if TYPE_CHECKING:
    from fieldbo.results.result import Result


def map_picture(result: Result) -> Figure:
    """Draw the final maps on one sheet: posterior mean and standard deviation, and what they answer.

    Parameters
    ----------
    result : Result

    Returns
    -------
    matplotlib.figure.Figure
        Four panels with common axes; mean and standard deviation in the quantity's unit. Of a level set
        the other two are the probability of exceedance and the classes, misclassified sites marked where
        the truth is known; of an optimum the probability of being better than the reported point, and the
        value that a site may yet have: the end of its 95% interval on the better side.
    """
    domain, answer = result.mission.world.domain, result.answer
    flat = domain.dimension == 2
    figure = new_figure(11, 8.4 * ratio(domain) + 1.8 if flat else 8)
    panels = figure.subplots(2, 2, sharex=True, sharey=flat)
    places = list(panels.flat)
    (_moment_maps if flat else _moment_profiles)(places, result)
    if isinstance(answer, LevelSetAnswer):
        (_class_maps if flat else _class_profiles)(places, result, answer)
    else:
        (_optimum_maps if flat else _optimum_profiles)(places, result, answer)
    places[0].set_title("posterior mean")
    places[1].set_title("standard deviation")
    places[2].set_title(
        "probability of being at or above the threshold"
        if isinstance(answer, LevelSetAnswer)
        else "probability of being better than reported"
    )
    places[3].set_title(_last_title(answer))
    figure.suptitle(headline(result))
    if flat and isinstance(answer, OptimumAnswer):
        legend_below(figure)
    return figure


def _last_title(answer: LevelSetAnswer | OptimumAnswer) -> str:
    if isinstance(answer, OptimumAnswer):
        side = "upper" if answer.mission.question.sign > 0 else "lower"
        return f"{side} end of the 95% interval: what it may yet be"
    wrong = answer.wrong
    return "classes" + ("" if wrong is None else f"; {wrong.mean():.1%} of sites misclassified (black dots)")


def _hopes(answer: OptimumAnswer) -> Array:
    """Return the end (N,) of each site's 95% interval on the better side, in the quantity's unit."""
    return answer.scale.to_user(answer.surface.mean + SURE * answer.surface.sd)


def _better(answer: OptimumAnswer) -> Array:
    """Return the probability (N,) of each site to be better than the reported one; 0 for that itself."""
    p = np.array(answer.surface.exceedance(answer.reported.value))
    p[np.all(answer.surface.candidates == answer.reported.point, axis=1)] = 0.0
    return p


# -- over two axes ---------------------------------------------------------------------------------------


def _moment_maps(panels: list[Axes], result: Result) -> None:
    domain, label = result.mission.world.domain, result.mission.world.quantity.label
    mean, sd = moments(result)
    for ax in panels:
        frame(ax, domain)
        ax.label_outer()
    field(panels[0], domain, mean, label, VALUE)
    field(panels[1], domain, sd, label, SPREAD)
    panels[1].plot(*result.sites.T, "o", color="white", markersize=2.5, markeredgecolor="black", mew=0.5)


def _class_maps(panels: list[Axes], result: Result, answer: LevelSetAnswer) -> None:
    domain, surface, wrong = result.mission.world.domain, result.surface, answer.wrong
    edge(panels[0], domain, surface.mean - answer.threshold)
    p = surface.exceedance(answer.threshold)
    field(panels[2], domain, p, "probability", CHANCE)
    edge(panels[2], domain, p - 0.5, color="black")
    unsure = np.abs(surface.mean - answer.threshold) <= SURE * surface.sd
    classes = np.where(answer.above, 3 - unsure, 0 + unsure)
    field(panels[3], domain, classes, "", CLASS).set_ticks(
        [0, 1, 2, 3], labels=["below", "likely\nbelow", "likely\nabove", "above"]
    )
    if wrong is not None:
        panels[3].plot(*domain.sites[wrong].T, "o", color="black", markersize=2.5, label="misclassified")


def _optimum_maps(panels: list[Axes], result: Result, answer: OptimumAnswer) -> None:
    domain, label = result.mission.world.domain, result.mission.world.quantity.label
    field(panels[2], domain, _better(answer), "probability", HOPE)
    field(panels[3], domain, _hopes(answer), label, VALUE)
    for ax in panels:
        if answer.optimum is not None:
            mark(ax, answer.optimum.point, "true optimum")
        mark(ax, answer.reported.point, "reported optimum")


# -- over one axis, or the sites' rank -------------------------------------------------------------------


def _across(result: Result) -> tuple[Array, str, Look]:
    """Return positions (N,), what they are, and how values are drawn against them."""
    domain = result.mission.world.domain
    if domain.dimension == 1:
        return domain.sites[:, 0], domain.axes[0].label, {}
    rank = np.argsort(np.argsort(moments(result)[0], kind="stable")).astype(float)
    # neighbours in rank need not be neighbours in space: dots, no lines
    look: Look = {"marker": ".", "linestyle": "none", "markersize": 3}
    return rank, "sites in order of posterior mean", look


def _moment_profiles(panels: list[Axes], result: Result) -> None:
    x, name, look = _across(result)
    profile(panels[0], result, x, **look)
    panels[0].legend(fontsize=8)
    line(panels[1], x, moments(result)[1], color=BLUE, **look)
    panels[1].set(ylim=(0, None), ylabel=result.mission.world.quantity.label)
    for ax in panels[2:]:
        ax.set_xlabel(name)
    for ax in panels:
        opened(ax)


def _class_profiles(panels: list[Axes], result: Result, answer: LevelSetAnswer) -> None:
    x, _, look = _across(result)
    above, wrong = answer.above.astype(float), answer.wrong
    _chance_profile(panels[2], x, result.surface.exceedance(answer.threshold), look)
    panels[3].plot(x, above, "|", color=BLUE, markersize=10)
    panels[3].set(ylim=(-0.5, 1.5), yticks=[0, 1], yticklabels=["below", "above"])
    if wrong is not None:
        panels[3].plot(x[wrong], above[wrong], "o", color="black", markersize=3, label="misclassified")


def _optimum_profiles(panels: list[Axes], result: Result, answer: OptimumAnswer) -> None:
    x, _, look = _across(result)
    if result.mission.world.domain.dimension == 1:
        optima(panels[0], answer)
        panels[0].legend(fontsize=8)
    _chance_profile(panels[2], x, _better(answer), look)
    line(panels[3], x, _hopes(answer), color=BLUE, **look)
    panels[3].axhline(answer.reported_value, color="black", linewidth=0.9, linestyle=":")
    panels[3].set(ylabel=result.mission.world.quantity.label)


def _chance_profile(ax: Axes, x: Array, p: Array, look: Look) -> None:
    line(ax, x, p, color=BLUE, **look)
    ax.axhline(0.5, color="black", linewidth=0.9, linestyle=":")
    ax.set(ylim=(-0.02, 1.02), ylabel="probability")

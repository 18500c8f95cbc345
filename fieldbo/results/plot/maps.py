"""The picture of the final maps."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fieldbo._numerics.arrays import Array
from fieldbo.results.answers import LevelSetAnswer, OptimumAnswer
from fieldbo.results.metrics import SURE, doubtful, probit
from fieldbo.results.outcome import Outcome
from fieldbo.results.plot.figures import (
    BLUE,
    CHANCE,
    CLASS,
    CLASS_OR_UNKNOWN,
    HOPE,
    SPREAD,
    VALUE,
    Look,
    finish,
    headline,
    new_figure,
    opened,
)
from fieldbo.results.plot.marks import earlier, mark
from fieldbo.results.plot.profiles import line, moments, optima, profile
from fieldbo.results.plot.surfaces import edge, field, frame, ratio
from fieldbo.results.plot.widths import width_of


def map_picture(outcome: Outcome, width: str = "screen") -> Figure:
    """Draw the final maps on one sheet: posterior mean, standard deviation, and the answer.

    Parameters
    ----------
    outcome : Outcome
        For example a `Result`.
    width : {"screen", "column", "page"}
        Size for a screen, or for one or both columns of a paper.

    Returns
    -------
    matplotlib.figure.Figure
        Four panels with common axes; mean and standard deviation in the quantity's unit. The other two show,
        for a level set, the probability of being in it and the classes, with misclassified sites marked if
        the truth is known; for an optimum, the probability of beating the reported optimum, and the better
        end of each site's 95% interval.
    """
    domain, answer = outcome.mission.world.domain, outcome.answer
    flat = domain.dimension == 2
    if flat:
        figure = new_figure(11, 8.4 * ratio(domain) + 1.8, width, ratio=ratio(domain))
    else:
        figure = new_figure(11, 8, width, tall=4.4 if width == "column" else None)
    figure.get_layout_engine().set(wspace=0.04)  # type: ignore[union-attr, call-arg]
    panels = figure.subplots(2, 2, sharex=True, sharey=flat)
    places = list(panels.flat)
    (_moment_maps if flat else _moment_profiles)(places, outcome)
    if isinstance(answer, LevelSetAnswer):
        (_class_maps if flat else _class_profiles)(places, outcome, answer)
    else:
        (_optimum_maps if flat else _optimum_profiles)(places, outcome, answer)
    places[0].set_title("posterior mean")
    places[1].set_title("standard deviation")
    places[2].set_title(
        f"probability of being at or {answer.side} the threshold"
        if isinstance(answer, LevelSetAnswer)
        else "probability of beating the reported optimum"
    )
    places[3].set_title(_last_title(answer))
    legend = isinstance(answer, OptimumAnswer) if flat else width != "screen"
    return finish(figure, headline(outcome), places, legend=legend)


def _last_title(answer: LevelSetAnswer | OptimumAnswer) -> str:
    if isinstance(answer, OptimumAnswer):
        side = "upper" if answer.mission.question.sign > 0 else "lower"
        return f"{side} end of the 95% interval"
    wrong = answer.wrong
    return "classes" + ("" if wrong is None else f"; {wrong.mean():.1%} of sites misclassified (black dots)")


def _hopes(answer: OptimumAnswer) -> Array:
    """Return the better end (N,) of each site's 95% interval, in the quantity's unit."""
    return answer.scale.to_user(answer.surface.mean + SURE * answer.surface.sd)


def _better(answer: OptimumAnswer) -> Array:
    """Return the probability (N,) that a site beats the reported optimum; 0 for the reported one itself."""
    p = np.array(answer.surface.exceedance(answer.reported.value))
    p[np.all(answer.surface.candidates == answer.reported.point, axis=1)] = 0.0
    return p


# -- over two axes ---------------------------------------------------------------------------------------


def _moment_maps(panels: list[Axes], outcome: Outcome) -> None:
    domain, label = outcome.mission.world.domain, outcome.mission.world.quantity.label
    mean, sd = moments(outcome)
    for ax in panels:
        frame(ax, domain)
        ax.label_outer()
    field(panels[0], domain, mean, label, VALUE)
    field(panels[1], domain, sd, label, SPREAD)
    earlier(panels[1], outcome, size=1.5)
    passing = outcome.on_the_way
    panels[1].plot(*outcome.sites[passing].T, "o", color="black", markersize=0.8, mew=0.0)
    at_sites = outcome.sites[~passing]
    panels[1].plot(*at_sites.T, "o", color="white", markersize=2.5, markeredgecolor="black", mew=0.5)


def _class_maps(panels: list[Axes], outcome: Outcome, answer: LevelSetAnswer) -> None:
    domain, wrong = outcome.mission.world.domain, answer.wrong
    edge(panels[0], domain, probit(answer.probability))
    field(panels[2], domain, answer.probability, "probability", CHANCE)
    edge(panels[2], domain, probit(answer.probability), color="black")
    likely = doubtful(answer.probability)
    classes = np.where(answer.unknown, 4, np.where(answer.inside, 3 - likely, 0 + likely))
    outside, inside = ("below", "above") if answer.side == "above" else ("above", "below")
    some_unknown = bool(answer.unknown.any())
    bar = field(panels[3], domain, classes, "", CLASS_OR_UNKNOWN if some_unknown else CLASS)
    assert bar is not None
    if bar.orientation == "vertical":
        ticks = {0.0: outside, 1.0: f"likely\n{outside}", 2.0: f"likely\n{inside}", 3.0: inside}
    else:  # too short for all
        ticks = {0.0: outside, 1.5: "likely", 3.0: inside}
    ticks |= {4.0: "unknown"} if some_unknown else {}
    bar.set_ticks([*ticks], labels=[*ticks.values()])
    if wrong is not None:
        panels[3].plot(*domain.sites[wrong].T, "o", color="black", markersize=2.5, label="misclassified")


def _optimum_maps(panels: list[Axes], outcome: Outcome, answer: OptimumAnswer) -> None:
    domain, label = outcome.mission.world.domain, outcome.mission.world.quantity.label
    field(panels[2], domain, _better(answer), "probability", HOPE)
    field(panels[3], domain, _hopes(answer), label, VALUE)
    for ax in panels:
        if answer.optimum is not None:
            mark(ax, answer.optimum.point, "true optimum")
        mark(ax, answer.reported.point, "reported optimum")


# -- over one axis, or the rank of sites -------------------------------------------------------------------


def _across(outcome: Outcome) -> tuple[Array, str, Look]:
    """Return positions (N,), their label, and the look of values against them."""
    domain = outcome.mission.world.domain
    if domain.dimension == 1:
        return domain.sites[:, 0], domain.axes[0].label, {}
    rank = np.argsort(np.argsort(moments(outcome)[0], kind="stable")).astype(float)
    # dots, no lines: neighbours in rank need not be neighbours in space
    look: Look = {"marker": ".", "linestyle": "none", "markersize": 3}
    return rank, "sites in order of posterior mean", look


def _moment_profiles(panels: list[Axes], outcome: Outcome) -> None:
    x, name, look = _across(outcome)
    profile(panels[0], outcome, x, **look)
    _legend(panels[0])
    line(panels[1], x, moments(outcome)[1], color=BLUE, **look)
    panels[1].set(ylim=(0, None), ylabel=outcome.mission.world.quantity.label)
    for ax in panels[2:]:
        ax.set_xlabel(name)
    for ax in panels:
        opened(ax)


def _class_profiles(panels: list[Axes], outcome: Outcome, answer: LevelSetAnswer) -> None:
    x, _, look = _across(outcome)
    above, wrong = answer.above.astype(float), answer.wrong
    _chance_profile(panels[2], x, answer.probability, look)
    panels[3].plot(x, above, "|", color=BLUE, markersize=10)
    panels[3].plot(x[answer.unknown], above[answer.unknown], "|", color="0.6", markersize=10, label="unknown")
    panels[3].set(ylim=(-0.5, 1.5), yticks=[0, 1], yticklabels=["below", "above"])
    if wrong is not None:
        panels[3].plot(x[wrong], above[wrong], "o", color="black", markersize=3, label="misclassified")


def _optimum_profiles(panels: list[Axes], outcome: Outcome, answer: OptimumAnswer) -> None:
    x, _, look = _across(outcome)
    if outcome.mission.world.domain.dimension == 1:
        optima(panels[0], answer)
        _legend(panels[0])
    _chance_profile(panels[2], x, _better(answer), look)
    line(panels[3], x, _hopes(answer), color=BLUE, **look)
    panels[3].axhline(answer.reported_value, color="black", linestyle=":", label="reported optimum")
    _legend(panels[3])
    panels[3].set(ylabel=outcome.mission.world.quantity.label)


def _legend(ax: Axes) -> None:
    """Add a legend inside axes; small ones have none, but one legend for all below them."""
    if width_of(ax) == "screen":
        ax.legend(fontsize=8)


def _chance_profile(ax: Axes, x: Array, p: Array, look: Look) -> None:
    line(ax, x, p, color=BLUE, **look)
    ax.axhline(0.5, color="black", linewidth=0.9, linestyle=":")
    ax.set(ylim=(-0.02, 1.02), ylabel="probability")

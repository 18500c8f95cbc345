"""The picture of the final maps."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fieldbo._numerics.arrays import Array
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError, UnknownNameError
from fieldbo.results.answers import LevelSetAnswer, OptimumAnswer
from fieldbo.results.metrics import SURE, doubtful, probit
from fieldbo.results.outcome import Outcome
from fieldbo.results.plot.figures import (
    earlier,
    finish,
    headline,
    level,
    line,
    moments,
    new_figure,
    opened,
    optima,
    optimum_marks,
    profile,
)
from fieldbo.results.plot.style import (
    BLUE,
    CHANCE,
    CLASS,
    CLASS_OR_NONE,
    HOPE,
    SPREAD,
    VALUE,
    Look,
    hue,
    letter_size,
    line_width,
    mark_size,
    shade,
)
from fieldbo.results.plot.surfaces import closed_areas, edge, field, frame, hatched, map_figure, ratio

LAYERS = ("mean", "sd", "probability", "classes", "bound", "failure", "truth", "error")
"""Names of the layers of maps; which of them a run has depends on its question."""

_ESTIMATED = ("mean", "sd", "probability")  # besides the classes


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
    places = list(figure.subplots(2, 2, sharex=True, sharey=flat).flat)
    last = "classes" if isinstance(answer, LevelSetAnswer) else "bound"
    for ax, layer in zip(places, ("mean", "sd", "probability", last), strict=True):
        map_panel(ax, outcome, layer)
        if flat:
            ax.label_outer()
    if not flat:
        for ax in places[:2]:
            ax.set_xlabel("")
        if width == "screen":  # small axes have no legend each, but one for all below them
            for ax in [places[0], *([places[3]] if isinstance(answer, OptimumAnswer) else [])]:
                ax.legend(fontsize=letter_size(8))
    named = isinstance(answer, OptimumAnswer) or bool(answer.not_inspected.any())
    legend = named if flat else width != "screen"
    return finish(figure, headline(outcome), places, legend=legend)


def layer_picture(outcome: Outcome, layer: str = "mean", width: str = "screen") -> Figure:
    """Draw one layer of the final maps; see `map_panel`.

    Parameters
    ----------
    outcome : Outcome
        For example a `Result`.
    layer : str
    width : {"screen", "column", "page"}
        Size for a screen, or for one or both columns of a paper.

    Raises
    ------
    InputError
        There is no such layer, or the run has none.
    """
    domain = outcome.mission.world.domain
    figure = map_figure(domain, width) if domain.dimension == 2 else new_figure(8, 5, width)
    map_panel(figure.subplots(), outcome, layer)
    return finish(figure, headline(outcome))


def layers_of(outcome: Outcome) -> tuple[str, ...]:
    """Return the names of the layers that the maps of a run have."""
    last = "classes" if isinstance(outcome.answer, LevelSetAnswer) else "bound"
    fails = ("failure",) if outcome.failures is not None and outcome.failures.local else ()
    return ("mean", "sd", "probability", last, *fails, *(() if outcome.truth is None else ("truth", "error")))


def map_panel(
    ax: Axes,
    outcome: Outcome,
    layer: str = "mean",
    *,
    cmap: Any = None,
    vmin: float | None = None,
    vmax: float | None = None,
    colorbar: bool = True,
) -> dict[str, Artist]:
    """Draw one layer of the final maps into axes, with the name of the layer as their title.

    Two axes are drawn as a map. One axis is drawn as a profile, values against position; with three or more,
    the sites lie in order of their posterior mean.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
    outcome : Outcome
        For example a `Result`.
    layer : str
        ``"mean"`` or ``"sd"`` of the belief; ``"probability"`` of being in the level set, or of beating the
        reported optimum; ``"classes"`` of a level set; for an optimum ``"bound"``, the better end of each
        site's 95% interval; where readings fail in some places, the probability of a ``"failure"``; and
        unless the world is live, the ``"truth"`` and the ``"error"`` of the mean.
    cmap : str or Colormap, optional
        Of a map.
    vmin, vmax : float, optional
        Ends of a map's colours, in the unit of the layer.
    colorbar : bool
        Add a colour bar beside a map.

    Returns
    -------
    dict of str to Artist
        For a map, the ``"field"``, whose ``colorbar`` is the colour bar, and those drawn of ``"edge"``,
        ``"true optimum"``, ``"reported optimum"``, ``"best measured"``, ``"not inspected"``,
        ``"misclassified"``, ``"readings"``, ``"failed readings"`` and ``"earlier readings"``. For a profile,
        its lines by name, that of the layer by the layer's.

    Raises
    ------
    UnknownNameError
        There is no such layer.
    InputError
        The run has no such layer, because it asks another question or its world is live.
    """
    _check_layer(outcome, layer)
    ax.set_title(_title(outcome, layer))
    if outcome.mission.world.domain.dimension != 2:
        return _profile_of(ax, outcome, layer)
    given = {"cmap": cmap, "vmin": vmin, "vmax": vmax}
    return _map_of(ax, outcome, layer, {k: v for k, v in given.items() if v is not None}, bar=colorbar)


def _check_layer(outcome: Outcome, layer: str) -> None:
    there = layers_of(outcome)
    if layer in there:
        return
    if layer not in LAYERS:
        raise UnknownNameError.of("layer", layer, there, where="layer")
    if layer in ("truth", "error"):
        reason = "its world is live, so the truth is not known"
    elif layer == "failure":
        reason = "its readings do not fail in some places more than in others"
    else:
        kind = "level set" if layer == "bound" else "optimum"
        reason = f"it asks for {'a' if kind == 'level set' else 'an'} {kind}"
    raise InputError(
        f"this run has no layer {layer!r}: {reason}", expected=f"one of {', '.join(there)}", where="layer"
    )


def _title(outcome: Outcome, layer: str) -> str:
    answer = outcome.answer
    if isinstance(answer, LevelSetAnswer):
        wrong = answer.wrong
        chance = f"probability of being at or {answer.side} the threshold"
        dots = "" if wrong is None else f"; {wrong.mean():.1%} of sites misclassified (black dots)"
        last = f"classes{dots}"
    else:
        side = "upper" if answer.mission.question.sign > 0 else "lower"
        chance = "probability of beating the reported optimum"
        last = f"{side} end of the 95% interval"
    titles = {"mean": "posterior mean", "sd": "standard deviation", "probability": chance}
    titles |= {
        "failure": "probability that a reading fails",
        "truth": "true field",
        "error": "posterior mean less true field",
    }
    return titles.get(layer, last)


def _values(outcome: Outcome, layer: str) -> Array:
    """Return the values (N,) of a layer other than the classes."""
    answer, truth = outcome.answer, outcome.truth
    mean, sd = moments(outcome)
    if layer == "probability":
        return answer.probability if isinstance(answer, LevelSetAnswer) else _better(answer)
    if layer == "bound":
        assert isinstance(answer, OptimumAnswer)
        return answer.scale.to_user(answer.surface.mean + SURE * answer.surface.sd)
    if layer == "failure":
        assert outcome.failures is not None
        return outcome.failures.chances
    if layer in ("truth", "error"):
        assert truth is not None
        return truth if layer == "truth" else mean - truth
    return mean if layer == "mean" else sd


def _better(answer: OptimumAnswer) -> Array:
    """Return the probability (N,) that a site beats the reported optimum; 0 for the reported one itself."""
    p = np.array(answer.surface.exceedance(answer.reported.value))
    p[np.all(answer.surface.candidates == answer.reported.point, axis=1)] = 0.0
    return p


# -- over two axes ---------------------------------------------------------------------------------------


def _map_of(ax: Axes, outcome: Outcome, layer: str, given: Look, *, bar: bool) -> dict[str, Artist]:
    domain, answer = outcome.mission.world.domain, outcome.answer
    frame(ax, domain)
    closed_areas(ax, outcome.mission.world.no_go)
    drawn = dict[str, Artist]()
    if layer == "classes":
        assert isinstance(answer, LevelSetAnswer)
        return _class_map(ax, domain, answer, given, bar=bar)
    values, label = _values(outcome, layer), outcome.mission.world.quantity.label
    if layer in ("probability", "failure"):
        label = "probability"
    drawn["field"] = field(ax, domain, values, label, _look(outcome, layer, values) | given, bar=bar)
    if layer in ("sd", "failure"):
        drawn |= _reading_dots(ax, outcome)
    if layer == "failure":
        return drawn
    if isinstance(answer, OptimumAnswer):
        return drawn | optimum_marks(ax, answer, outcome.measured_elsewhere)
    if layer in _ESTIMATED:
        drawn |= hatched(ax, domain, answer.not_inspected)
    if layer in ("mean", "probability"):
        color = "white" if layer == "mean" else "black"
        drawn |= edge(ax, domain, probit(answer.probability), color=color)
    if layer == "truth" and answer.truth is not None:
        drawn |= edge(ax, domain, values - answer.truth.threshold)
    return drawn


def _look(outcome: Outcome, layer: str, values: Array) -> Look:
    if layer == "error":
        most = float(np.abs(values).max())
        return {"cmap": "RdBu_r", "vmin": -most, "vmax": most}
    chance = CHANCE if isinstance(outcome.answer, LevelSetAnswer) else HOPE
    fails = {**SPREAD, "vmin": 0.0, "vmax": 1.0}
    return {"sd": SPREAD, "probability": chance, "failure": fails}.get(layer, VALUE)


def _reading_dots(ax: Axes, outcome: Outcome) -> dict[str, Artist]:
    drawn = earlier(ax, outcome, size=1.5)
    passing = outcome.on_the_way
    along: Look = {"color": "black", "markersize": mark_size(0.8), "mew": 0.0}
    (drawn["readings on the way"],) = ax.plot(*outcome.sites[passing].T, "o", **along)
    dots: Look = {"color": "white", "markersize": mark_size(2.5), "markeredgecolor": "black", "mew": 0.5}
    failed = np.isnan(outcome.values)
    (drawn["readings"],) = ax.plot(*outcome.sites[~passing & ~failed].T, "o", **dots)
    if failed.any():
        cross: Look = {"color": "white", "markersize": mark_size(5.0), "mew": 1.0}
        (drawn["failed readings"],) = ax.plot(*outcome.sites[failed].T, "x", **cross)
    return drawn


def _class_map(
    ax: Axes, domain: Domain, answer: LevelSetAnswer, given: Look, *, bar: bool
) -> dict[str, Artist]:
    likely, lacking = doubtful(answer.probability), answer.not_inspected
    classes = np.where(lacking, 4, np.where(answer.inside, 3 - likely, 0 + likely))
    look = (CLASS_OR_NONE if lacking.any() else CLASS) | given
    drawn: dict[str, Artist] = {"field": (mesh := field(ax, domain, classes, "", look, bar=bar))}
    if mesh.colorbar is not None:
        outside, inside = ("below", "above") if answer.side == "above" else ("above", "below")
        if mesh.colorbar.orientation == "vertical":
            ticks = {0.0: outside, 1.0: f"likely\n{outside}", 2.0: f"likely\n{inside}", 3.0: inside}
        else:  # too short for all
            ticks = {0.0: outside, 1.5: "likely", 3.0: inside}
        ticks |= {4.0: "not\ninspected"} if lacking.any() else {}
        mesh.colorbar.set_ticks([*ticks], labels=[*ticks.values()])
    drawn |= hatched(ax, domain, lacking, mesh.colorbar)
    if answer.wrong is not None:
        dots: Look = {"color": "black", "markersize": mark_size(2.5), "label": "misclassified"}
        (drawn["misclassified"],) = ax.plot(*domain.sites[answer.wrong].T, "o", **dots)
    return drawn


# -- over one axis, or the rank of sites -------------------------------------------------------------------


def _across(outcome: Outcome) -> tuple[Array, str, Look]:
    """Return positions (N,), their label, and the look of values against them."""
    domain = outcome.mission.world.domain
    if domain.dimension == 1:
        return domain.sites[:, 0], domain.axes[0].label, {}
    rank = np.argsort(np.argsort(moments(outcome)[0], kind="stable")).astype(float)
    # dots, no lines: neighbours in rank need not be neighbours in space
    look: Look = {"marker": ".", "linestyle": "none", "markersize": mark_size(3)}
    return rank, "sites in order of posterior mean", look


def _profile_of(ax: Axes, outcome: Outcome, layer: str) -> dict[str, Artist]:
    answer, label = outcome.answer, outcome.mission.world.quantity.label
    x, name, look = _across(outcome)
    ax.set_xlabel(name)
    if layer == "mean":
        drawn = profile(ax, outcome, x, **look)
        if isinstance(answer, OptimumAnswer) and outcome.mission.world.domain.dimension == 1:
            drawn |= optima(ax, answer, outcome.measured_elsewhere)
        return drawn
    if layer == "classes":
        assert isinstance(answer, LevelSetAnswer)
        drawn = _class_profile(ax, x, answer)
    else:
        color = shade(1.0) if layer == "truth" else hue(BLUE)
        drawn = {layer: line(ax, x, _values(outcome, layer), color=color, **look)}
        ax.set_ylabel(label)
    if layer == "sd":
        ax.set_ylim(0, None)
    elif layer in ("probability", "failure"):
        ax.axhline(0.5, color=shade(1.0), linewidth=line_width(0.9), linestyle=":")
        ax.set(ylim=(-0.02, 1.02), ylabel="probability")
    elif layer == "bound":
        assert isinstance(answer, OptimumAnswer)
        reported: Look = {"color": shade(1.0), "linestyle": ":", "label": "reported optimum"}
        drawn["reported optimum"] = ax.axhline(answer.reported_value, **reported)
    elif layer == "error":
        ax.axhline(0.0, color=shade(1.0), linewidth=line_width(0.9), linestyle=":")
    elif layer == "truth" and isinstance(answer, LevelSetAnswer):
        drawn["threshold"] = level(ax, answer.user_threshold)
    opened(ax)
    return drawn


def _class_profile(ax: Axes, x: Array, answer: LevelSetAnswer) -> dict[str, Artist]:
    """Draw the classes as ticks at two heights."""
    above, wrong, drawn = answer.above.astype(float), answer.wrong, dict[str, Artist]()
    tick: Look = {"marker": "|", "linestyle": "none", "markersize": mark_size(10)}
    (drawn["classes"],) = ax.plot(x, above, color=hue(BLUE), **tick)
    lacking = answer.not_inspected
    bare: Look = {"color": shade(0.4), "label": "not inspected"}
    (drawn["not inspected"],) = ax.plot(x[lacking], above[lacking], **bare, **tick)
    ax.set(ylim=(-0.5, 1.5), yticks=[0, 1], yticklabels=["below", "above"])
    if wrong is not None:
        dots: Look = {"color": shade(1.0), "markersize": mark_size(3), "label": "misclassified"}
        (drawn["misclassified"],) = ax.plot(x[wrong], above[wrong], "o", **dots)
    return drawn

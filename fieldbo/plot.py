"""Pictures with matplotlib: a run's path, maps and curve; a world; rules side by side.

Figures are made without pyplot, so that they need no display and may be drawn in any thread.
Two axes are drawn as a map: cells where the sites form a grid, dots where they are scattered. One axis is
drawn as a profile, values against position. Of three or more axes, paths show the first two, and maps
become profiles of the sites in order of their posterior mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import shapely
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import Colorbar
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patheffects import AbstractPathEffect, withStroke
from scipy.optimize import isotonic_regression

from fieldbo.domain import Array, Domain, Mask
from fieldbo.metrics import SURE

if TYPE_CHECKING:
    from fieldbo.result import Result
    from fieldbo.world import World

DPI = 150

_Look = dict[str, Any]

# Okabe and Ito's palette, told apart by every kind of colour vision.
_BLUE, _RED, _GREEN, _PINK, _ORANGE, _SKY = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"
_RULES = (_BLUE, _RED, _GREEN, _PINK, _ORANGE, _SKY, "black")
_VALUE: _Look = {"cmap": "viridis"}
_SPREAD: _Look = {"cmap": "magma", "vmin": 0.0}
_CHANCE: _Look = {"cmap": "RdBu_r", "vmin": 0.0, "vmax": 1.0}
_CLASS: _Look = {"cmap": ListedColormap(["#b9cbd8", "#e6edf2", "#f3c9a3", _RED]), "vmin": -0.5, "vmax": 3.5}
_CASED: list[AbstractPathEffect] = [
    withStroke(linewidth=3.0, foreground="black")
]  # lines that show on light and dark ground alike
_THIN = [withStroke(linewidth=1.9, foreground="black", alpha=0.5)]
_HALO = [withStroke(linewidth=2.0, foreground="white")]


# -- pictures --------------------------------------------------------------------------------------------


def path_picture(result: Result) -> Figure:
    """Draw the way really taken and the readings, over the true field or, without one, the posterior mean.

    Parameters
    ----------
    result : Result

    Returns
    -------
    matplotlib.figure.Figure
        Axes in the domain's units, values in the quantity's; with the level set's true edge and the
        classified one. Readings are numbered sparsely, in order. Of one axis: a profile above the path.
    """
    domain, way = result.mission.world.domain, result.path
    over = "posterior mean: the truth is not known" if result.truth is None else "true field"
    if domain.dimension == 1:
        figure = _figure(8, 7)
        top, ax = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
        _profile(top, result, domain.sites[:, 0])
        _readings(top, result.sites[:, 0], result.values)
        way = np.column_stack([way, np.arange(len(way))])
        ax.set(xlabel=domain.axes[0].label, ylabel="leg")
        ax.yaxis.set_inverted(True)
        _open(ax)
        line: _Look = {"color": "0.3", "linewidth": 1.0}
    else:
        figure = _figure(9, 7.2 * _ratio(domain) + 1.6)
        top = ax = figure.subplots()
        _frame(ax, domain)
        _backdrop(ax, result)
        _readings(ax, *result.sites[:, :2].T)
        over = over if domain.dimension == 2 else f"first two of {domain.dimension} axes"
        line = {"color": "white", "linewidth": 0.8, "alpha": 0.75, "path_effects": _THIN}
    ax.plot(way[:, 0], way[:, 1], label="path", zorder=3, **line)
    _mark(ax, way[0], "start")
    _mark(ax, way[-1], "end")
    top.set_title(f"{_headline(result)}\npath over the {over}")
    _legend_below(figure)
    return figure


def map_picture(result: Result) -> Figure:
    """Draw posterior mean, standard deviation, probability of exceedance and classes on one sheet.

    Parameters
    ----------
    result : Result

    Returns
    -------
    matplotlib.figure.Figure
        Four panels with common axes; mean and standard deviation in the quantity's unit. Misclassified
        sites are marked where the truth is known.
    """
    domain, wrong = result.mission.world.domain, _wrong(result)
    flat = domain.dimension == 2
    figure = _figure(11, 8.4 * _ratio(domain) + 1.8 if flat else 8)
    panels = figure.subplots(2, 2, sharex=True, sharey=flat)
    (_map_panels if flat else _profile_panels)(list(panels.flat), result)
    panels[0, 0].set_title("posterior mean")
    panels[0, 1].set_title("standard deviation")
    panels[1, 0].set_title("probability of being at or above the threshold")
    share = "" if wrong is None else f"; {wrong.mean():.1%} of sites misclassified (black dots)"
    panels[1, 1].set_title(f"classes{share}")
    figure.suptitle(_headline(result))
    return figure


def curve_picture(result: Result) -> Figure:
    """Draw F1 (where there is a truth), expected F1 and the share unclassified against what was spent.

    Parameters
    ----------
    result : Result

    Returns
    -------
    matplotlib.figure.Figure
        Cost in the world's unit, from 0 to the battery; scores from 0 to 1.
    """
    mission, curve = result.mission, result.curve
    battery, unit = sum(c.battery for c in mission.crew), mission.world.cost_unit
    figure = _figure(8, 5)
    ax = figure.subplots()
    cost = [s.cost for s in curve]
    held: _Look = {"where": "post", "clip_on": False}  # a score holds until the next order is settled
    if result.truth is not None:
        ax.step(cost, [s.f1 for s in curve], color=_BLUE, linewidth=2.2, label="F1", **held)
    believed, unsure = [s.expected_f1 for s in curve], [s.unclassified for s in curve]
    ax.step(cost, believed, "--", color=_RED, linewidth=1.5, label="expected F1", **held)
    ax.step(cost, unsure, color="0.45", linewidth=0.9, label="share of sites unclassified", **held)
    if result.cost > battery:
        ax.axvline(battery, color="black", linewidth=0.9, linestyle=":", label="battery")
    ax.set(xlim=(0, max(battery, result.cost)), ylim=(0, 1), ylabel="score or share")
    ax.set(xlabel=f"spent ({unit}); the battery holds {battery:g} {unit}", title=_headline(result))
    _open(ax)
    _legend_below(figure)
    return figure


def world_picture(world: World, threshold: float | None = None) -> Figure:
    """Draw a world: its true field, its sites and the start.

    Parameters
    ----------
    world : World
    threshold : float, optional
        In the quantity's unit; its level is drawn.

    Returns
    -------
    matplotlib.figure.Figure
        Axes in the domain's units. A live world, and one of three or more axes, shows its sites alone.
    """
    domain, start = world.domain, np.asarray(world.start)
    truth = None if world.live else world.truth(domain.sites)
    places = domain.sites[:, :2]
    figure = _figure(9, 7.2 * _ratio(domain) + 1.6 if domain.dimension > 1 else 5)
    ax = figure.subplots()
    if domain.dimension == 1:
        heights = np.zeros(domain.size) if truth is None else truth
        places = np.column_stack([places, heights])
        start = np.array([start[0], heights[domain.nearest(start)]])
        _line(ax, domain.sites[:, 0], truth, color="black", label="true field")
        if threshold is not None:
            _level(ax, threshold)
        ax.set(xlabel=domain.axes[0].label, ylabel=world.quantity.label)
        _open(ax)
    else:
        _frame(ax, domain)
        if truth is not None and domain.dimension == 2:
            _field(ax, domain, truth, world.quantity.label, _VALUE)
            if threshold is not None:
                _edge(ax, domain, truth - threshold, f"level {threshold:g}")
    size = float(np.clip(60 / np.sqrt(domain.size), 1.8, 5))
    ax.plot(*places.T, "o", color="0.45", alpha=0.7, markersize=size, markeredgewidth=0, label="site")
    _mark(ax, start, "start")
    ax.set_title(
        f"{world.title}\n{world.name}, {'live: the truth is not known' if world.live else 'true field'}"
    )
    _legend_below(figure)
    return figure


def comparison_picture(table: Mapping[str, tuple[Array, Array, Array]], unit: str) -> Figure:
    """Draw mean F1 against cost, one line a rule, with bands of one standard error.

    Parameters
    ----------
    table : mapping of str to (cost, mean, standard_error)
        For each rule three (k,) arrays: costs in `unit`, mean scores, and their standard errors.
    unit : str
        The worlds' cost unit.

    Returns
    -------
    matplotlib.figure.Figure
        Each line is named at its right-hand end.
    """
    figure = _figure(9, 5.5)
    ax = figure.subplots()
    ends: list[tuple[float, float, str, str]] = []
    for number, (rule, columns) in enumerate(table.items()):
        cost, mean, error = (np.asarray(c, dtype=float) for c in columns)
        colour, style = _RULES[number % 7], ("-", "--", ":")[number // 7 % 3]
        ax.fill_between(cost, mean - error, mean + error, color=colour, alpha=0.15, linewidth=0)
        ax.plot(cost, mean, style, color=colour, linewidth=1.8, label=rule)
        known = np.flatnonzero(np.isfinite(mean))
        ends += [(float(cost[k]), float(mean[k]), rule, colour) for k in known[-1:]]
    for (x, y, rule, colour), height in zip(ends, _apart([end[1] for end in ends], 0.045), strict=True):
        ax.annotate(
            rule,
            (x, y),
            (1.03, height),
            textcoords="axes fraction",
            color=colour,
            verticalalignment="center",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 0},
        )
    ax.set(xlim=(0, max((end[0] for end in ends), default=1.0)), ylim=(0, 1))
    ax.set(xlabel=f"cost ({unit})", ylabel="mean F1, ± one standard error")
    _open(ax)
    return figure


def save(figure: Figure, target: Path | str | IO[bytes]) -> None:
    """Write a figure as PNG, 150 dots an inch; the same figure gives the same bytes.

    The layout is settled at the first save: a later one does not move anything.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    target : path or binary file object
    """
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    figure.savefig(target, format="png", dpi=DPI, metadata={"Software": "fieldbo"})


# -- maps ------------------------------------------------------------------------------------------------


def _gridded(domain: Domain) -> bool:
    """Say whether the sites are the nodes of a grid that can be drawn as cells."""
    return domain.dimension == 2 and domain.shape is not None and min(domain.shape) > 1


def _equal(domain: Domain) -> bool:
    """Say whether the first two axes are drawn to one scale."""
    across, up = domain.axes[:2]
    longer, shorter = max(across.extent, up.extent), min(across.extent, up.extent)
    return across.unit == up.unit and longer < 5 * shorter


def _ratio(domain: Domain) -> float:
    """Height of a map over its width."""
    return float(np.clip(domain.extent[1] / domain.extent[0], 0.3, 1.1)) if _equal(domain) else 0.65


def _grid(domain: Domain, values: Array) -> tuple[Array, Array, Any]:
    """Return ticks (n,) and (m,), and values (N,) as a masked (m, n) grid, the first axis across."""
    assert domain.shape is not None
    x, y = (np.linspace(a.low, a.high, n) for a, n in zip(domain.axes, domain.shape, strict=True))
    return x, y, np.ma.masked_invalid(domain.on_grid(values.astype(float)).T)


def _field(ax: Axes, domain: Domain, values: Array, label: str, look: _Look) -> Colorbar:
    """Draw values (N,) as cells of a grid, or as dots, with a colour bar as high as the map."""
    drawn: ScalarMappable
    if _gridded(domain):
        drawn = ax.pcolormesh(*_grid(domain, values), shading="nearest", **look)
    else:
        x, y = domain.sites.T
        drawn = ax.scatter(x, y, float(np.clip(2e4 / domain.size, 8, 60)), values, **look)
    figure = ax.get_figure(root=True)
    assert figure is not None
    return figure.colorbar(drawn, cax=ax.inset_axes((1.03, 0, 0.04, 1)), label=label)


def _edge(
    ax: Axes, domain: Domain, excess: Array, label: str = "", *, color: str = "white", style: str = "-"
) -> None:
    """Draw where `excess` (N,) changes sign, on a grid; a label goes into the legend."""
    if not _gridded(domain) or not excess.min() < 0 < excess.max():
        return
    drawn = ax.contour(*_grid(domain, excess), levels=[0.0], colors=color, linestyles=style, linewidths=1.6)
    cased: list[AbstractPathEffect] = _CASED if color == "white" else []
    drawn.set_path_effects(cased)
    if label:
        ax.plot([], [], style, color=color, linewidth=1.6, path_effects=cased, label=label)


def _frame(ax: Axes, domain: Domain) -> None:
    """Set labels, directions, aspect and outline by the first two axes."""
    across, up = domain.axes[:2]
    ax.set(xlabel=across.label, ylabel=up.label, facecolor="0.93")
    ax.xaxis.set_inverted(across.positive == "down")
    ax.yaxis.set_inverted(up.positive == "down")
    ax.set_aspect("equal" if _equal(domain) else "auto")
    if domain.region is not None:
        for ring in shapely.get_rings(shapely.get_parts(domain.region)):
            ax.plot(*shapely.get_coordinates(ring).T, color="0.25", linewidth=1.0)


def _backdrop(ax: Axes, result: Result) -> None:
    """Draw what the path went over; of more than two axes, the sites alone."""
    world, threshold = result.mission.world, result.mission.question.threshold
    domain = world.domain
    if domain.dimension > 2:
        ax.plot(*domain.sites[:, :2].T, "o", color="0.7", markersize=2, label="site")
        return
    values = _moments(result)[0] if result.truth is None else result.truth
    _field(ax, domain, values, world.quantity.label, _VALUE)
    if result.truth is not None:
        _edge(ax, domain, result.truth - threshold, f"true level {threshold:g}")
    excess = result.surface.mean - result.threshold
    _edge(ax, domain, excess, f"classified level {threshold:g}", color=_RED, style="--")


def _map_panels(panels: list[Axes], result: Result) -> None:
    """Fill the four panels over two axes."""
    domain, label = result.mission.world.domain, result.mission.world.quantity.label
    mean, sd = _moments(result)
    p, wrong = result.surface.exceedance(result.threshold), _wrong(result)
    for ax in panels:
        _frame(ax, domain)
        ax.label_outer()
    _field(panels[0], domain, mean, label, _VALUE)
    _edge(panels[0], domain, result.surface.mean - result.threshold)
    _field(panels[1], domain, sd, label, _SPREAD)
    panels[1].plot(*result.sites.T, "o", color="white", markersize=2.5, markeredgecolor="black", mew=0.5)
    _field(panels[2], domain, p, "probability", _CHANCE)
    _edge(panels[2], domain, p - 0.5, color="black")
    unsure = np.abs(result.surface.mean - result.threshold) <= SURE * result.surface.sd
    classes = np.where(result.above, 3.0 - unsure, 0.0 + unsure)
    _field(panels[3], domain, classes, "", _CLASS).set_ticks(
        [0, 1, 2, 3], labels=["below", "likely\nbelow", "likely\nabove", "above"]
    )
    if wrong is not None:
        panels[3].plot(*domain.sites[wrong].T, "o", color="black", markersize=2.5, label="misclassified")


# -- profiles --------------------------------------------------------------------------------------------


def _line(ax: Axes, x: Array, y: Array | None, **look: Any) -> None:
    """Draw y (N,) against x (N,) in order of x; nothing where there is no y."""
    if y is not None:
        order = np.argsort(x, kind="stable")
        ax.plot(x[order], y[order], **look)


def _level(ax: Axes, threshold: float) -> None:
    ax.axhline(threshold, color=_RED, linewidth=1.2, linestyle="--", label=f"threshold {threshold:g}")


def _profile(ax: Axes, result: Result, x: Array, **look: Any) -> None:
    """Draw mean, its 95% band, threshold and truth against x (N,)."""
    mean, sd = _moments(result)
    order = np.argsort(x, kind="stable")
    low, high = (mean - SURE * sd)[order], (mean + SURE * sd)[order]
    ax.fill_between(x[order], low, high, color=_BLUE, alpha=0.2, linewidth=0, label=f"mean ± {SURE:g} sd")
    _line(ax, x, mean, color=_BLUE, linewidth=1.8, label="posterior mean")
    _line(ax, x, result.truth, color="black", linewidth=1.2, label="true field", **look)
    _level(ax, result.mission.question.threshold)
    ax.set_ylabel(result.mission.world.quantity.label)
    _open(ax)


def _profile_panels(panels: list[Axes], result: Result) -> None:
    """Fill the four panels over one axis; of more than two axes, over the sites' rank by mean."""
    domain, label = result.mission.world.domain, result.mission.world.quantity.label
    (mean, sd), above, wrong = _moments(result), result.above.astype(float), _wrong(result)
    x, name, look = domain.sites[:, 0], domain.axes[0].label, {}
    if domain.dimension > 1:  # neighbours in rank need not be neighbours in space: dots, no lines
        x, name = (
            np.argsort(np.argsort(mean, kind="stable")).astype(float),
            "sites in order of posterior mean",
        )
        look = {"marker": ".", "linestyle": "none", "markersize": 3}
    _profile(panels[0], result, x, **look)
    panels[0].legend(fontsize=8)
    _line(panels[1], x, sd, color=_BLUE, **look)
    panels[1].set(ylim=(0, None), ylabel=label)
    _line(panels[2], x, result.surface.exceedance(result.threshold), color=_BLUE, **look)
    panels[2].axhline(0.5, color="black", linewidth=0.9, linestyle=":")
    panels[2].set(ylim=(-0.02, 1.02), ylabel="probability", xlabel=name)
    panels[3].plot(x, above, "|", color=_BLUE, markersize=10)
    panels[3].set(ylim=(-0.5, 1.5), yticks=[0, 1], yticklabels=["below", "above"], xlabel=name)
    if wrong is not None:
        panels[3].plot(x[wrong], above[wrong], "o", color="black", markersize=3, label="misclassified")
    for ax in panels:
        _open(ax)


# -- parts -----------------------------------------------------------------------------------------------


def _figure(width: float, height: float) -> Figure:
    return Figure(figsize=(width, height), dpi=DPI, layout="constrained")


def _open(ax: Axes) -> None:
    """Leave the axes open above and to the right, over a faint grid."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="0.9", linewidth=0.6)
    ax.set_axisbelow(True)


def _headline(result: Result) -> str:
    quantity, threshold = result.mission.world.quantity, result.mission.question.threshold
    unit = "" if quantity.unit in ("", "1") else f" {quantity.unit}"
    return f"{result.mission.name}: where is {quantity.name} at or above {threshold:g}{unit}?"


def _moments(result: Result) -> tuple[Array, Array]:
    """Return posterior mean and standard deviation (N,), in the quantity's unit."""
    return result.hyperparameters.scale.moments(result.surface.mean, result.surface.variance)


def _wrong(result: Result) -> Mask | None:
    """Return the misclassified sites, (N,) bool; None where the truth is not known."""
    if result.truth is None:
        return None
    return np.asarray(result.above != (result.truth >= result.mission.question.threshold))


def _readings(ax: Axes, x: Array, y: Array) -> None:
    """Draw readings (n,) as dots, at most twelve of them numbered."""
    dots: _Look = {"color": "white", "markeredgecolor": "black", "markersize": 4.5, "markeredgewidth": 0.8}
    ax.plot(x, y, "o", label="reading (numbers: order)", zorder=4, **dots)
    step = next(k * 10**e for e in range(9) for k in (1, 2, 5) if len(x) <= 12 * k * 10**e)
    near: _Look = {"textcoords": "offset points", "xytext": (4, 4), "fontsize": 8, "path_effects": _HALO}
    for n in range(step, len(x) + 1, step):
        ax.annotate(str(n), (x[n - 1], y[n - 1]), zorder=6, **near)


def _mark(ax: Axes, at: Array, label: str) -> None:
    """Mark where a path starts or ends."""
    shape, colour = ("^", _SKY) if label == "start" else ("s", _ORANGE)
    look: _Look = {"markersize": 9, "markeredgecolor": "black", "clip_on": False, "zorder": 5}
    ax.plot([at[0]], [at[1]], shape, color=colour, label=label, **look)


def _legend_below(figure: Figure) -> None:
    """Name everything that has a label below the axes."""
    pairs = [pair for ax in figure.axes for pair in zip(*ax.get_legend_handles_labels(), strict=True)]
    if pairs:
        columns = len(pairs) if len(pairs) < 5 else (len(pairs) + 1) // 2
        figure.legend(*zip(*pairs, strict=True), loc="outside lower center", ncols=columns, frameon=False)


def _apart(heights: list[float], gap: float) -> list[float]:
    """Return heights at least `gap` apart, each as near to where it was as that and 0 to 1 allow."""
    if not heights:
        return []
    order = np.argsort(heights, kind="stable")
    steps = gap * np.arange(len(order))
    moved = isotonic_regression(np.asarray(heights)[order] - steps).x
    out = np.empty(len(order))
    out[order] = np.clip(moved, 0, max(0.0, 1 - steps[-1])) + steps
    return [float(y) for y in out]

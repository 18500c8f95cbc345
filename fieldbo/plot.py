"""Pictures with matplotlib: a run's path, maps and curve; a world; rules side by side.

Figures are made without pyplot, so that they need no display and may be drawn in any thread.
Two axes are drawn as a map: cells where the sites form a grid, dots where they are scattered. One axis is
drawn as a profile, values against position. Of three or more axes, paths show the first two, and maps
become profiles of the sites in order of their posterior mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import shapely
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from scipy.optimize import isotonic_regression

from fieldbo.domain import Array, Domain
from fieldbo.metrics import SURE

if TYPE_CHECKING:
    from fieldbo.result import Result
    from fieldbo.world import World

DPI = 150

# Okabe and Ito's palette, told apart by every kind of colour vision.
_BLUE, _RED, _GREEN, _PINK, _ORANGE, _SKY = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"
_VALUE: dict[str, Any] = {"cmap": "viridis"}
_SPREAD: dict[str, Any] = {"cmap": "magma", "vmin": 0.0}
_CHANCE: dict[str, Any] = {"cmap": "RdBu_r", "vmin": 0.0, "vmax": 1.0}
_CLASS: dict[str, Any] = {"cmap": ListedColormap(["#d3dfe8", _RED]), "vmin": -0.5, "vmax": 1.5}
_HALO = [withStroke(linewidth=2.0, foreground="white")]
_NUMBERS = 12


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
        classified one. Readings are numbered sparsely. Of one axis: a profile above the path.
    """
    world = result.mission.world
    over = "posterior mean: the truth is not known" if result.truth is None else "true field"
    if world.domain.dimension == 1:
        figure = _figure((8, 7))
        top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
        _profile(top, result, world.domain.sites[:, 0])
        _readings(top, result.sites[:, 0], result.values)
        way = (result.path[:, 0], np.arange(float(len(result.path))))
        bottom.set(xlabel=world.domain.axes[0].label, ylabel="leg")
        bottom.yaxis.set_inverted(True)
        _style(bottom)
        over = over if result.truth is None else "truth and posterior"
        ax = bottom
    else:
        figure = _figure((9, 6))
        ax = top = figure.subplots()
        _path_backdrop(ax, result)
        _readings(ax, *result.sites[:, :2].T)
        way = (result.path[:, 0], result.path[:, 1])
        over = over if world.domain.dimension == 2 else f"first two of {world.domain.dimension} axes"
    ax.plot(*way, color="black", linewidth=0.9, alpha=0.5, label="path", zorder=3)
    _end_mark(ax, way[0][0], way[1][0], "start")
    _end_mark(ax, way[0][-1], way[1][-1], "end")
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
    domain = result.mission.world.domain
    figure = _figure((11, 8))
    panels = list(figure.subplots(2, 2, sharex=True, sharey=domain.dimension == 2).flat)
    titles = ["posterior mean", "standard deviation", "probability of being at or above the threshold"]
    for ax, title in zip(panels, [*titles, _class_title(result)], strict=True):
        ax.set_title(title)
    (_map_panels if domain.dimension == 2 else _profile_panels)(panels, result)
    for ax in panels:
        ax.label_outer()
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
    figure = _figure((8, 5))
    ax = figure.subplots()
    cost = [s.cost for s in curve]
    look: dict[str, Any] = {"where": "post", "clip_on": False}
    if result.truth is not None:
        ax.step(cost, [s.f1 for s in curve], color=_BLUE, linewidth=2.2, label="F1", **look)
    expected = [s.expected_f1 for s in curve]
    ax.step(cost, expected, color=_RED, linewidth=1.5, linestyle="--", label="expected F1", **look)
    share = [s.unclassified for s in curve]
    ax.step(cost, share, color="0.45", linewidth=0.9, label="share of sites unclassified", **look)
    if result.cost > battery:
        ax.axvline(battery, color="black", linewidth=0.9, linestyle=":", label="battery")
    ax.set(xlim=(0, max(battery, result.cost)), ylim=(0, 1), ylabel="score, share")
    ax.set(xlabel=f"spent of a battery of {battery:g} {unit} ({unit})", title=_headline(result))
    _style(ax)
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
        Axes in the domain's units. A live world shows its sites alone.
    """
    domain, sites, start = world.domain, world.domain.sites, np.asarray(world.start)
    truth = None if world.live else world.truth(sites)
    figure = _figure((9, 6))
    ax = figure.subplots()
    dots: dict[str, Any] = {"marker": ".", "linestyle": "none", "markersize": 2.5, "label": "site"}
    if domain.dimension == 1:
        heights = np.zeros(len(sites)) if truth is None else truth
        _line(ax, sites[:, 0], truth, color="black", label="true field")
        ax.plot(sites[:, 0], heights, color=_BLUE, **dots)
        if threshold is not None:
            _level(ax, threshold)
        ax.set(xlabel=domain.axes[0].label, ylabel=world.quantity.label)
        _style(ax)
        _end_mark(ax, start[0], heights[domain.nearest(start)], "start")
    else:
        _frame(ax, domain)
        if truth is not None and domain.dimension == 2:
            figure.colorbar(_field(ax, domain, truth, _VALUE), ax=ax, label=world.quantity.label)
            if threshold is not None:
                _edge(ax, domain, truth - threshold, f"level {threshold:g}", "white", "-")
        ax.plot(*sites[:, :2].T, color="0.5", alpha=0.6, **dots)
        _end_mark(ax, start[0], start[1], "start")
    what = "live: the truth is not known" if world.live else "true field"
    ax.set_title(f"{world.title}\n{world.name}, {what}")
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
    figure = _figure((9, 5.5))
    ax = figure.subplots()
    colours, ends = cycle([_BLUE, _RED, _GREEN, _PINK, _ORANGE, _SKY, "black"]), []
    for number, (rule, columns) in enumerate(table.items()):
        cost, mean, error = (np.asarray(c, dtype=float) for c in columns)
        colour, style = next(colours), ("-", "--", ":")[number // 7 % 3]
        ax.fill_between(cost, mean - error, mean + error, color=colour, alpha=0.18, linewidth=0)
        ax.plot(cost, mean, color=colour, linestyle=style, linewidth=1.8, label=rule)
        known = np.flatnonzero(np.isfinite(mean))
        if len(known):
            ends.append((float(mean[known[-1]]), float(cost[known[-1]]), rule, colour))
    right = max((end[1] for end in ends), default=1.0)
    ax.set(xlim=(0, right), ylim=(0, 1), xlabel=f"cost ({unit})", ylabel="mean F1")
    heights = _apart([end[0] for end in ends], 0.045)
    for (score, cost_end, rule, colour), height in zip(ends, heights, strict=True):
        ax.annotate(
            rule,
            (cost_end, score),
            (1.02, height),
            textcoords="axes fraction",
            color=colour,
            va="center",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.6, "shrinkA": 1, "shrinkB": 0},
        )
    _style(ax)
    return figure


def save(figure: Figure, target: Path | str | IO[bytes]) -> None:
    """Write a figure as PNG, 150 dots an inch; the same figure gives the same bytes.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    target : path or binary file object
    """
    figure.savefig(target, format="png", dpi=DPI, metadata={"Software": "fieldbo"})


# -- maps ------------------------------------------------------------------------------------------------


def _gridded(domain: Domain) -> bool:
    """Say whether the sites are the nodes of a grid that can be drawn as cells."""
    return domain.dimension == 2 and domain.shape is not None and min(domain.shape) > 1


def _grid(domain: Domain, values: Array) -> tuple[Array, Array, Any]:
    """Return ticks (n,) and (m,), and values (N,) as a masked (m, n) grid, the first axis across."""
    assert domain.shape is not None
    nodes = np.full(int(np.prod(domain.shape)), np.nan)
    nodes[domain.grid_index] = values
    x, y = (np.linspace(a.low, a.high, n) for a, n in zip(domain.axes, domain.shape, strict=True))
    return x, y, np.ma.masked_invalid(nodes.reshape(domain.shape).T)


def _field(ax: Axes, domain: Domain, values: Array, look: Mapping[str, Any]) -> ScalarMappable:
    """Draw values (N,) as cells of a grid, or as dots."""
    if _gridded(domain):
        return ax.pcolormesh(*_grid(domain, values), shading="nearest", **look)
    return ax.scatter(*domain.sites[:, :2].T, c=values, s=float(np.clip(2e4 / domain.size, 8, 60)), **look)


def _edge(ax: Axes, domain: Domain, excess: Array, label: str | None, colour: str, style: str) -> None:
    """Draw where `excess` (N,) changes sign, on a grid; named in the legend if it has a label."""
    if not _gridded(domain) or not excess.min() < 0 < excess.max():
        return
    ax.contour(*_grid(domain, excess), levels=[0.0], colors=colour, linestyles=style, linewidths=1.8)
    if label is not None:
        ax.plot([], [], color=colour, linestyle=style, linewidth=1.8, label=label)


def _frame(ax: Axes, domain: Domain) -> None:
    """Set labels, directions, aspect and outline by the first two axes."""
    across, up = domain.axes[:2]
    ax.set(xlabel=across.label, ylabel=up.label, facecolor="0.93")
    ax.xaxis.set_inverted(across.positive == "down")
    ax.yaxis.set_inverted(up.positive == "down")
    longer, shorter = max(across.extent, up.extent), min(across.extent, up.extent)
    ax.set_aspect("equal" if across.unit == up.unit and longer < 5 * shorter else "auto")
    if domain.region is not None:
        for ring in shapely.get_rings(shapely.get_parts(domain.region)):
            ax.plot(*shapely.get_coordinates(ring).T, color="0.25", linewidth=1.0)


def _path_backdrop(ax: Axes, result: Result) -> None:
    """Draw what the path went over; with more than two axes, the sites alone."""
    world = result.mission.world
    domain, threshold = world.domain, result.mission.question.threshold
    _frame(ax, domain)
    if domain.dimension > 2:
        ax.plot(*domain.sites[:, :2].T, ".", color="0.75", markersize=3, label="site")
        return
    values = _moments(result)[0] if result.truth is None else result.truth
    bar = ax.get_figure(root=True).colorbar(_field(ax, domain, values, _VALUE), ax=ax)  # type: ignore[union-attr]
    bar.set_label(world.quantity.label)
    if result.truth is not None:
        _edge(ax, domain, result.truth - threshold, f"true level {threshold:g}", "white", "-")
    _edge(ax, domain, result.surface.mean - result.threshold, f"classified level {threshold:g}", _RED, "--")


def _map_panels(panels: list[Axes], result: Result) -> None:
    """Fill the four panels over two axes."""
    domain, label = result.mission.world.domain, result.mission.world.quantity.label
    mean, sd = _moments(result)
    p = result.surface.exceedance(result.threshold)
    told = [(mean, _VALUE, label), (sd, _SPREAD, label), (p, _CHANCE, "probability")]
    for ax, (values, look, name) in zip(
        panels, [*told, (result.above.astype(float), _CLASS, "")], strict=True
    ):
        _frame(ax, domain)
        bar = ax.get_figure(root=True).colorbar(_field(ax, domain, values, look), ax=ax)  # type: ignore[union-attr]
        bar.set_label(name)
    bar.set_ticks([0, 1], labels=["below", "above"])
    _edge(panels[0], domain, result.surface.mean - result.threshold, None, "white", "-")
    panels[1].plot(*result.sites.T, "o", color="white", markersize=2.5, markeredgecolor="black", mew=0.5)
    _edge(panels[2], domain, p - 0.5, None, "black", "-")
    wrong = _wrong(result)
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


def _profile(ax: Axes, result: Result, x: Array) -> None:
    """Draw mean, its 95% band, threshold and truth against x (N,)."""
    mean, sd = _moments(result)
    order = np.argsort(x, kind="stable")
    low, high = (mean - SURE * sd)[order], (mean + SURE * sd)[order]
    band = f"mean ± {SURE:g} sd"
    ax.fill_between(x[order], low, high, color=_BLUE, alpha=0.2, linewidth=0, label=band)
    _line(ax, x, mean, color=_BLUE, linewidth=1.8, label="posterior mean")
    _line(ax, x, result.truth, color="black", linewidth=1.2, label="true field")
    _level(ax, result.mission.question.threshold)
    ax.set_ylabel(result.mission.world.quantity.label)
    _style(ax)


def _profile_panels(panels: list[Axes], result: Result) -> None:
    """Fill the four panels over one axis; over more than two, over the sites' rank by mean."""
    domain = result.mission.world.domain
    mean, sd = _moments(result)
    ranked = domain.dimension > 2
    x = np.argsort(np.argsort(mean)).astype(float) if ranked else domain.sites[:, 0]
    p, above = result.surface.exceedance(result.threshold), result.above.astype(float)
    _profile(panels[0], result, x)
    panels[0].legend(fontsize=8)
    _line(panels[1], x, sd, color=_BLUE)
    panels[1].set(ylim=(0, None), ylabel=result.mission.world.quantity.label)
    _line(panels[2], x, p, color=_BLUE)
    panels[2].axhline(0.5, color="black", linewidth=0.9, linestyle=":")
    panels[2].set(ylim=(-0.02, 1.02), ylabel="probability")
    panels[3].plot(x, above, "|", color=_BLUE, markersize=8)
    panels[3].set(ylim=(-0.5, 1.5))
    panels[3].set_yticks([0, 1], labels=["below", "above"])
    wrong = _wrong(result)
    if wrong is not None:
        panels[3].plot(x[wrong], above[wrong], "o", color="black", markersize=3, label="misclassified")
    for ax in panels:
        ax.set_xlabel("sites in order of posterior mean" if ranked else domain.axes[0].label)
        _style(ax)


# -- parts -----------------------------------------------------------------------------------------------


def _figure(inches: tuple[float, float]) -> Figure:
    return Figure(figsize=inches, layout="constrained")


def _style(ax: Axes) -> None:
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


def _wrong(result: Result) -> Any:
    """Return the misclassified sites, (N,) bool; None where the truth is not known."""
    if result.truth is None:
        return None
    return result.above != (result.truth >= result.mission.question.threshold)


def _class_title(result: Result) -> str:
    wrong = _wrong(result)
    return "classes" if wrong is None else f"classes; {wrong.mean():.1%} of sites misclassified (black dots)"


def _readings(ax: Axes, x: Array, y: Array) -> None:
    """Draw readings (n,) as dots, some of them numbered: the first, the last, and evenly between."""
    dots = {"color": "white", "markeredgecolor": "black", "markersize": 4.5, "markeredgewidth": 0.8}
    ax.plot(x, y, "o", label="reading, some numbered in order", zorder=4, **dots)  # type: ignore[arg-type]
    step = next(s for s in (1, 2, 5, 10, 20, 50, 100, 200, 500, len(x) + 1) if len(x) <= _NUMBERS * s)
    for n in range(step, len(x) + 1, step):
        near = {"textcoords": "offset points", "xytext": (4, 4), "fontsize": 8, "path_effects": _HALO}
        ax.annotate(str(n), (x[n - 1], y[n - 1]), zorder=6, annotation_clip=False, **near)


def _end_mark(ax: Axes, x: float, y: float, label: str) -> None:
    """Mark where a path starts or ends."""
    marker, colour = ("^", _SKY) if label == "start" else ("s", _ORANGE)
    look = {"markersize": 10, "markeredgecolor": "black", "markeredgewidth": 1.0, "zorder": 5}
    ax.plot([x], [y], marker, color=colour, label=label, clip_on=False, **look)  # type: ignore[arg-type]


def _legend_below(figure: Figure) -> None:
    """Name everything that has a label, once, below the axes."""
    named: dict[str, Any] = {}
    for ax in figure.axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
    if named:
        figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=4, frameon=False)


def _apart(heights: list[float], gap: float) -> list[float]:
    """Return heights at least `gap` apart, each as near to where it was as that allows, within 0 and 1."""
    order = np.argsort(heights, kind="stable")
    steps = gap * np.arange(len(order))
    moved = isotonic_regression(np.asarray(heights)[order] - steps).x if len(order) else steps
    out = np.empty(len(order))
    out[order] = np.clip(moved, 0, max(0.0, 1 - gap * (len(order) - 1))) + steps
    return [float(y) for y in out]

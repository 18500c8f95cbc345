"""The picture of a path."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import Colormap, LinearSegmentedColormap, ListedColormap
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.legend_handler import HandlerBase
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch
from matplotlib.transforms import Transform
from numpy.typing import NDArray

from fieldbo._numerics.arrays import Array
from fieldbo.results.answers import OptimumAnswer
from fieldbo.results.metrics import probit
from fieldbo.results.outcome import Outcome
from fieldbo.results.plot.cell_path import settings_panel, settings_picture
from fieldbo.results.plot.figures import (
    earlier,
    finish,
    headline,
    mark,
    moments,
    new_figure,
    opened,
    optima,
    optimum_marks,
    profile,
    readings,
)
from fieldbo.results.plot.style import RED, VALUE, Look, line_width, mark_size, shade, width_of
from fieldbo.results.plot.surfaces import closed_areas, edge, field, frame, hatched, map_figure


def path_picture(outcome: Outcome, width: str = "screen") -> Figure:
    """Draw the path travelled and the readings, over the true field or, in a live world, the posterior mean.

    Parameters
    ----------
    outcome : Outcome
        For example a `Result`.
    width : {"screen", "column", "page"}
        Size for a screen, or for one or both columns of a paper.

    Returns
    -------
    matplotlib.figure.Figure
        Axes in the domain's units, values in the quantity's unit, with the true and the estimated edge of a
        level set, or the true and the reported optimum. Some readings are numbered, in order; sensor levels
        differ in shape, and readings that the model left out are crossed. The path turns from white to
        pink from its first leg to its last, and arrows show its direction. With one axis, a profile is drawn
        above the path. For a factory cell, its settings order by order; see `settings_picture`.
    """
    if outcome.cell_runs.names:
        return settings_picture(outcome, width)
    domain, answer = outcome.mission.world.domain, outcome.answer
    over = "posterior mean (truth unknown)" if outcome.truth is None else "true field"
    if domain.dimension == 1:
        figure = new_figure(8, 7, width)
        top, ax = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
        profile(top, outcome, domain.sites[:, 0])
        if isinstance(answer, OptimumAnswer):
            optima(top, answer, outcome.measured_elsewhere)
        earlier(top, outcome)
        readings(top, outcome.sites[:, 0], outcome.values, outcome)
    else:
        figure = map_figure(domain, width)
        top = ax = figure.subplots()
        over = over if domain.dimension == 2 else f"first two of {domain.dimension} axes"
    path_panel(ax, outcome, numbered=True)
    return finish(figure, f"{headline(outcome)}\npath over the {over}", figure.axes, top)


def path_panel(
    ax: Axes,
    outcome: Outcome,
    *,
    color: str | None = None,
    linewidth: float | None = None,
    cmap: Any = None,
    colorbar: bool = True,
    numbered: bool = False,
) -> dict[str, Artist]:
    """Draw the path travelled and the readings into axes, over the true field or the posterior mean.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
    outcome : Outcome
        For example a `Result`.
    color : color, optional
        Of the path; by default it turns from white to pink, with arrows in its direction.
    linewidth : float, optional
        Of the path, in points.
    cmap : str or Colormap, optional
        Of the field, or of a factory cell's settings; by default that of the style.
    colorbar : bool
        Add a colour bar beside the map.
    numbered : bool
        Write numbers next to some of the readings. Only the pictures that fieldbo lays out move them away
        from each other.

    Returns
    -------
    dict of str to Artist
        Those drawn of ``"field"`` (its ``colorbar`` is the colour bar), ``"true level"``,
        ``"estimated level"``, ``"true optimum"``, ``"reported optimum"``, ``"earlier readings"``,
        ``"readings"`` (or ``"readings at level k"``), ``"readings on the way"``, ``"left out"``, ``"path"``,
        ``"casing"``, ``"start"``, ``"end"`` and ``"home"``. With one axis, the path runs downwards, leg by
        leg; with more than two, over the first two axes and the ``"sites"``. For a factory cell, those of
        `settings_panel`.
    """
    if outcome.cell_runs.names:
        ax.set_xlabel("order")
        return settings_panel(ax, outcome, cmap=cmap, colorbar=colorbar)
    domain, path, drawn = outcome.mission.world.domain, outcome.path, dict[str, Artist]()
    if domain.dimension == 1:
        path = np.column_stack([path, np.arange(len(path))])
        ax.set(xlabel=domain.axes[0].label, ylabel="leg")
        ax.yaxis.set_inverted(True)
        opened(ax)
        look: Look = {"color": color or shade(0.7), "linewidth": linewidth or line_width(1.0)}
        (drawn["path"],) = ax.plot(path[:, 0], path[:, 1], label="path", zorder=3, **look)
    else:
        frame(ax, domain, named=True)
        closed_areas(ax, outcome.mission.world.no_go)
        drawn = _backdrop(ax, outcome, VALUE if cmap is None else {"cmap": cmap}, colorbar=colorbar)
        drawn |= earlier(ax, outcome)
        drawn |= readings(ax, outcome.sites[:, 0], outcome.sites[:, 1], outcome, numbered=numbered)
        drawn |= ordered_path(ax, path[:, :2], color=color, linewidth=linewidth)
    drawn["start"], drawn["end"] = mark(ax, path[0], "start"), mark(ax, path[-1], "end")
    home = outcome.mission.vehicles[0].home
    if home is not None and domain.dimension > 1:
        drawn["home"] = mark(ax, home[:2], "home")
    return drawn


def _backdrop(ax: Axes, outcome: Outcome, look: Look, *, colorbar: bool) -> dict[str, Artist]:
    world, answer = outcome.mission.world, outcome.answer
    domain, truth, drawn = world.domain, answer.truth, dict[str, Artist]()
    if domain.dimension > 2:
        sites: Look = {"color": shade(0.3), "markersize": mark_size(2), "label": "site"}
        (drawn["sites"],) = ax.plot(*domain.sites[:, :2].T, "o", **sites)
    else:
        values = moments(outcome)[0] if truth is None else truth.values
        drawn["field"] = field(ax, domain, values, world.quantity.label, look, bar=colorbar)
    if isinstance(answer, OptimumAnswer):
        drawn |= optimum_marks(ax, answer, outcome.measured_elsewhere)
    elif domain.dimension == 2:
        if truth is not None:
            label = f"true level {world.quantity.number(truth.threshold)}"
            drawn |= edge(ax, domain, truth.values - truth.threshold, label, name="true level")
        label = f"estimated level {world.quantity.number(answer.user_threshold)}"
        look = {"color": RED, "style": "--", "name": "estimated level"}
        drawn |= edge(ax, domain, probit(answer.probability), label, **look)
        if truth is None:
            drawn |= hatched(ax, domain, answer.not_inspected)
    return drawn


COLOURS = LinearSegmentedColormap.from_list("order", ["#ffffff", "#ffb3da", "#ff1f9c"])
"""White for the first leg; no value of a map has the others."""

_MOST_ARROWS = {"column": 8}
_STEPS = 16  # colours of a path in the legend


class Travelled(Line2D):
    """The casing of a path, whose entry in the legend has all colours of the order."""

    shades: Colormap = COLOURS


class _Gradient(HandlerBase):
    """Draws a line in all colours of the order."""

    def create_artists(
        self,
        legend: Legend,
        orig_handle: Artist,
        xdescent: float,
        ydescent: float,
        width: float,
        height: float,
        fontsize: float,
        trans: Transform,
    ) -> list[Artist]:
        """Return the artists of a legend entry."""
        shades = orig_handle.shades if isinstance(orig_handle, Travelled) else COLOURS
        x = np.linspace(-xdescent, width - xdescent, _STEPS + 1)
        lines = LineCollection(
            list(_legs(np.column_stack([x, np.full(_STEPS + 1, 0.5 * height - ydescent)]))),
            cmap=shades,
            array=np.arange(_STEPS),
            linewidths=2.0,
            transform=trans,
        )
        middle = 0.5 * height - ydescent
        casing = Line2D(x[[0, -1]], [middle, middle], color="0.25", linewidth=3.2, transform=trans)
        return [casing, lines]


Legend.update_default_handler_map({Travelled: _Gradient()})


def ordered_path(
    ax: Axes, path: Array, *, color: str | None = None, cmap: Any = None, linewidth: float | None = None
) -> dict[str, Artist]:
    """Draw a path (k, 2) over a map: coloured from first leg to last, with arrows; thinner if long.

    Parameters
    ----------
    ax : Axes
    path : (k, 2) array
    color : str, optional
        One colour for all legs.
    cmap : str or Colormap, optional
        Colours from the first leg to the last.
    linewidth : float, optional
        In points.

    Returns
    -------
    dict of str to Artist
        The ``"path"``, and its ``"casing"``, which has the label.
    """
    legs = len(path) - 1
    width = line_width(float(np.clip(9.0 / np.sqrt(legs + 1), 0.7, 1.2))) if linewidth is None else linewidth
    shades = COLOURS if cmap is None else colormaps.get_cmap(cmap)
    shades = shades if color is None else ListedColormap([color])
    look: Look = {"color": "0.15", "alpha": 0.6, "linewidth": width + 0.9, "solid_joinstyle": "round"}
    casing = Travelled(path[:, 0], path[:, 1], label="path", zorder=3, **look)
    casing.shades = shades
    ax.add_line(casing)
    if legs < 1:
        return {"casing": casing}
    lines = LineCollection(
        list(_legs(path)),
        cmap=shades,
        array=np.arange(legs),
        linewidths=width,
        capstyle="round",
        zorder=3.01,
    )
    ax.add_collection(lines, autolim=False)
    _arrows(ax, path, shades)
    return {"path": lines, "casing": casing}


def _legs(path: Array) -> Array:
    """Return the legs (k - 1, 2, 2) of a path (k, 2)."""
    return np.stack([path[:-1], path[1:]], axis=1)


def _arrows(ax: Axes, path: Array, shade: Any) -> None:
    """Draw arrows at equal distances along a path, in the middle of the legs there."""
    extent = np.ptp(np.array([ax.get_xlim(), ax.get_ylim()]), axis=1)
    lengths = np.linalg.norm(np.diff(path, axis=0) / extent, axis=1)
    for leg in _with_arrows(lengths, _MOST_ARROWS.get(width_of(ax), 14)):
        middle, half = path[leg : leg + 2].mean(axis=0), 0.01 * (path[leg + 1] - path[leg])
        colour = shade(leg / max(1, len(lengths) - 1))
        arrow = FancyArrowPatch(
            tuple(middle - half),
            tuple(middle + half),
            arrowstyle="-|>,head_length=0.5,head_width=0.28",
            mutation_scale=10,
            shrinkA=0,
            shrinkB=0,
            facecolor=colour,
            edgecolor="0.1",
            linewidth=0.5,
            zorder=3.3,
        )
        ax.add_artist(arrow)  # does not change the limits


def _with_arrows(lengths: Array, most: int) -> NDArray[np.intp]:
    """Return which legs get an arrow: the longest of each of `most` equal parts of the path."""
    ends = np.cumsum(lengths)
    if not len(lengths) or ends[-1] == 0:
        return np.empty(0, dtype=np.intp)
    part = np.minimum((most * (ends - 0.5 * lengths) / ends[-1]).astype(int), most - 1)
    longest = [np.flatnonzero(part == k)[np.argmax(lengths[part == k])] for k in np.unique(part)]
    return np.array([leg for leg in longest if lengths[leg] > 0.03], dtype=np.intp)

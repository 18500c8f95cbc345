"""The picture of a world."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.domain.domain import Domain
from fieldbo.domain.obstacles import Obstacle
from fieldbo.results.plot.figures import finish, legend_below, level, line, mark, new_figure, opened
from fieldbo.results.plot.style import SKY, VALUE, Look, Sheet, shade
from fieldbo.results.plot.surfaces import edge, field, frame, map_figure, ratio
from fieldbo.tables.readings import Readings
from fieldbo.world.world import World

_MOST_PANELS = 9


def world_picture(world: World, threshold: float | None = None, width: str = "screen") -> Figure:
    """Draw a world: its true field, its sites and its start.

    Parameters
    ----------
    world : World
    threshold : float, optional
        In the quantity's unit; drawn as a line, unless there are more than three axes.
    width : {"screen", "column", "page"}
        Size for a screen, or for one or both columns of a paper.

    Returns
    -------
    matplotlib.figure.Figure
        Axes in the domain's units. With three axes, one panel for each value of the third, if these are few;
        with more, dots over the first two axes, each the mean over the others. A live world shows only its
        sites.
    """
    domain = world.domain
    subtitle = "live: the truth is not known" if world.live else "true field"
    truth = None if world.live else world.truth(domain.sites)
    if domain.dimension == 1:
        figure = new_figure(9, 5, width)
        _profile(figure.subplots(), world, truth, threshold)
    elif truth is None or domain.dimension == 2:
        figure = map_figure(domain, width)
        _map(figure.subplots(), world, truth, threshold)
        subtitle += f"; sites over the first two of {domain.dimension} axes" if domain.dimension > 2 else ""
    elif domain.dimension == 3 and len(np.unique(domain.sites[:, 2])) <= _MOST_PANELS:
        figure = _slices(world, truth, threshold, width)
        subtitle += f" by {domain.axes[2].label}"
    else:
        figure = map_figure(domain, width)
        places, which = np.unique(domain.sites[:, :2], axis=0, return_inverse=True)
        mean = np.bincount(which, truth) / np.bincount(which)
        ax = figure.subplots()
        frame(ax, domain)
        field(
            ax,
            Domain(domain.axes[:2], places, region=domain.region),
            mean,
            world.quantity.label,
            VALUE,
            dots=True,
        )
        mark(ax, np.asarray(world.start)[:2], "start")
        subtitle += f" over the first two of {domain.dimension} axes" + (
            f", mean over {', '.join(a.name for a in domain.axes[2:])}" if len(places) < domain.size else ""
        )
    return finish(figure, f"{world.title}\n{world.name}, {subtitle}", figure.axes)


def _profile(ax: Axes, world: World, truth: Array | None, threshold: float | None) -> None:
    domain, start = world.domain, np.asarray(world.start)
    heights = np.zeros(domain.size) if truth is None else truth
    if truth is not None:
        line(ax, domain.sites[:, 0], truth, color=shade(1.0), label="true field")
    if threshold is not None:
        level(ax, threshold)
    ax.set(xlabel=domain.axes[0].label, ylabel=world.quantity.label)
    opened(ax)
    _sites(ax, world, np.column_stack([domain.sites[:, 0], heights]))
    mark(ax, np.array([start[0], heights[domain.nearest(start)]]), "start")


def _map(ax: Axes, world: World, truth: Array | None, threshold: float | None) -> None:
    domain = world.domain
    frame(ax, domain, named=True)
    if truth is not None:
        field(ax, domain, truth, world.quantity.label, VALUE)
        if threshold is not None:
            edge(ax, domain, truth - threshold, f"level {threshold:g}")
    _sites(ax, world, domain.sites[:, :2])
    mark(ax, np.asarray(world.start)[:2], "start")


def _sites(ax: Axes, world: World, places: Array) -> None:
    size = float(np.clip(60 / np.sqrt(world.domain.size), 1.8, 5))
    ax.plot(*places.T, "o", color=shade(0.55), alpha=0.7, markersize=size, markeredgewidth=0, label="site")


def _slices(world: World, truth: Array, threshold: float | None, width: str) -> Sheet:
    """Draw three axes as one panel for each value of the third, all with the same colours."""
    domain, start, third = world.domain, np.asarray(world.start), world.domain.axes[2]
    values = np.unique(domain.sites[:, 2])
    columns = min(int(np.ceil(np.sqrt(len(values)))), 2 if width == "column" else _MOST_PANELS)
    rows = -(-len(values) // columns)
    figure = new_figure(11, rows * (8.4 * ratio(domain) / columns + 0.5) + 1.3, width, ratio=ratio(domain))
    look: Look = {**VALUE, "vmin": float(truth.min()), "vmax": float(truth.max())}
    start_in = int(np.argmin(np.abs(values - start[2])))
    for k, value in enumerate(values):
        ax = figure.add_subplot(rows, columns, k + 1)
        flat, here = _slice(domain, value)
        frame(ax, flat, solid=_in_slice(domain.solid, domain, value))
        label = (
            world.quantity.label
            if width == "column" or k % columns == columns - 1 or k == len(values) - 1
            else ""
        )
        field(ax, flat, truth[here], label, look)
        if threshold is not None:
            edge(ax, flat, truth[here] - threshold, f"level {threshold:g}")
        if k == start_in:
            mark(ax, start[:2], "start")
        ax.set_title(f"{third.name} {value:g} {third.unit}".rstrip(), fontsize=10)
        if k % columns:
            ax.set_ylabel("")
        if k + columns < len(values):
            ax.set_xlabel("")
    return figure


def _slice(domain: Domain, value: float) -> tuple[Domain, Mask]:
    """Return the domain of the first two axes at a value of the third, and the mask (N,) of its sites."""
    here: Mask = domain.sites[:, 2] == value
    if domain.region is not None:
        every, there = domain.flat, set(map(tuple, domain.sites[here, :2]))
        return every.restricted(np.array([tuple(site) in there for site in every.sites])), here
    obstacles, clearance = _in_slice(domain.obstacles, domain, value), domain.clearance
    axes, sites = domain.axes[:2], domain.sites[here, :2]
    if domain.shape is None or domain.grid_index is None:
        return Domain(axes, sites, obstacles=obstacles, clearance=clearance), here
    in_slice = domain.grid_index[here] // domain.shape[2]
    flat = Domain(axes, sites, domain.shape[:2], in_slice, obstacles=obstacles, clearance=clearance)
    return flat, here


def _in_slice(obstacles: Sequence[Obstacle], domain: Domain, value: float) -> tuple[Obstacle, ...]:
    """Return the obstacles over the first two axes that a value of the third cuts."""
    if domain.region is not None:
        return tuple(obstacles)  # they reach from the surface to the bottom
    return tuple(
        Obstacle(o.name, o.low[:2], o.high[:2])
        for o in obstacles
        if (o.low[2] < value or o.low[2] <= domain.low[2])
        and (value < o.high[2] or o.high[2] >= domain.high[2])
    )


def place_picture(world: World, readings: Readings) -> Figure:
    """Draw how a log, an outline and zones to avoid were understood.

    Parameters
    ----------
    world : World
        With depths, it is drawn like any world.
    readings : Readings
        In the world's coordinates.

    Returns
    -------
    matplotlib.figure.Figure
        The fitted truth, the track in the order of the log, the sites, the zones to avoid and the start.
    """
    domain = world.domain
    if domain.dimension > 2:
        return world_picture(world)
    figure = map_figure(domain)
    ax = figure.subplots()
    frame(ax, domain, named=True)
    field(ax, domain, world.truth(domain.sites), world.quantity.label, VALUE)
    ax.plot(*domain.sites.T, ".", color="0.35", markersize=1.5, markeredgewidth=0, label="site")
    ax.plot(*readings.sites.T, color="white", linewidth=2.4, alpha=0.7)
    ax.plot(
        *readings.sites.T, ".-", color=SKY, linewidth=1.0, markersize=3.5, label="reading, in the log's order"
    )
    mark(ax, np.asarray(world.start), "start")
    figure.suptitle(f"{world.name}: {world.title}")
    legend_below(figure)
    return figure

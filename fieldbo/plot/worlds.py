"""The picture of a world."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from fieldbo.plot.figures import VALUE, legend_below, new_figure, opened
from fieldbo.plot.ground import edge, field, frame, ratio
from fieldbo.plot.marks import mark
from fieldbo.plot.profiles import level, line
from fieldbo.world import World


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
    figure = new_figure(9, 7.2 * ratio(domain) + 1.6 if domain.dimension > 1 else 5)
    ax = figure.subplots()
    if domain.dimension == 1:
        heights = np.zeros(domain.size) if truth is None else truth
        places = np.column_stack([places, heights])
        start = np.array([start[0], heights[domain.nearest(start)]])
        line(ax, domain.sites[:, 0], truth, color="black", label="true field")
        if threshold is not None:
            level(ax, threshold)
        ax.set(xlabel=domain.axes[0].label, ylabel=world.quantity.label)
        opened(ax)
    else:
        frame(ax, domain)
        if truth is not None and domain.dimension == 2:
            field(ax, domain, truth, world.quantity.label, VALUE)
            if threshold is not None:
                edge(ax, domain, truth - threshold, f"level {threshold:g}")
    size = float(np.clip(60 / np.sqrt(domain.size), 1.8, 5))
    ax.plot(*places.T, "o", color="0.45", alpha=0.7, markersize=size, markeredgewidth=0, label="site")
    mark(ax, start, "start")
    ax.set_title(
        f"{world.title}\n{world.name}, {'live: the truth is not known' if world.live else 'true field'}"
    )
    legend_below(figure)
    return figure

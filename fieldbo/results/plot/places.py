"""The picture of a new place, to be checked by eye."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from fieldbo.results.plot.figures import legend_below, new_figure
from fieldbo.results.plot.marks import mark
from fieldbo.results.plot.style import SKY, VALUE
from fieldbo.results.plot.surfaces import field, frame, ratio
from fieldbo.results.plot.worlds import world_picture
from fieldbo.world.readings import Readings
from fieldbo.world.world import World


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
    figure = new_figure(9, 7.2 * ratio(domain) + 1.6)
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

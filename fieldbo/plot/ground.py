"""Values over two axes: as cells of a grid, as smooth ground in a box, or as dots."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import shapely
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import Colorbar
from matplotlib.patheffects import AbstractPathEffect, withStroke
from numpy.typing import NDArray

from fieldbo.domain import Array, Domain
from fieldbo.plot.figures import Look

_RASTER = 160  # cells along each axis of a box
_CASED: list[AbstractPathEffect] = [
    withStroke(linewidth=3.0, foreground="black")
]  # lines that show on light and dark ground alike


def covered(domain: Domain) -> bool:
    """Say whether values at the sites can be drawn all over two axes."""
    if domain.dimension != 2:
        return False
    if domain.continuous:
        return domain.size > 3
    return domain.shape is not None and min(domain.shape) > 1


def alike(domain: Domain) -> bool:
    """Say whether the first two axes are drawn to one scale."""
    across, up = domain.axes[:2]
    longer, shorter = max(across.extent, up.extent), min(across.extent, up.extent)
    return across.unit == up.unit and longer < 5 * shorter


def ratio(domain: Domain) -> float:
    """Height of a map over its width."""
    return float(np.clip(domain.extent[1] / domain.extent[0], 0.3, 1.1)) if alike(domain) else 0.65


def laid_out(domain: Domain, values: NDArray[Any]) -> tuple[Array, Array, Any]:
    """Return ticks (n,) and (m,), and values (N,) as a masked (m, n) array, the first axis across.

    In a box they are interpolated between the sites; whole numbers, which are classes, are the nearest
    corner's.
    """
    counts = (_RASTER, _RASTER) if domain.shape is None else domain.shape
    x, y = (np.linspace(a.low, a.high, n) for a, n in zip(domain.axes, counts, strict=True))
    if domain.shape is not None:
        return x, y, np.ma.masked_invalid(domain.on_grid(values.astype(float)).T)
    sites, weights = _corners(domain)
    if np.issubdtype(values.dtype, np.integer):
        raster = values[np.take_along_axis(sites, weights.argmax(axis=1)[:, None], axis=1)[:, 0]]
    else:
        raster = np.einsum("pk,pk->p", weights, values[sites])
    return x, y, np.ma.masked_invalid(raster.reshape(counts[::-1]).astype(float))


@lru_cache(maxsize=4)  # all maps of a run
def _corners(domain: Domain) -> tuple[NDArray[np.intp], Array]:
    """Return the sites (P, 3) that each raster point of a box lies between, and their weights (P, 3).

    A point outside their hull takes the place of one a little further in.
    """
    from scipy.spatial import Delaunay

    share = np.linspace(0.0, 1.0, _RASTER)
    points = np.stack(np.meshgrid(share, share), axis=-1).reshape(-1, 2)
    mesh = Delaunay((domain.sites - domain.low) / domain.extent)
    triangle = mesh.find_simplex(points)
    for inwards in np.linspace(0.99, 0.0, 100):
        outside = triangle < 0
        if not outside.any():
            break
        points[outside] = 0.5 + inwards * (points[outside] - 0.5)
        triangle[outside] = mesh.find_simplex(points[outside])
    to_weights = mesh.transform[triangle]
    two = np.einsum("pij,pj->pi", to_weights[:, :2], points - to_weights[:, 2])
    return mesh.simplices[triangle].astype(np.intp), np.column_stack([two, 1.0 - two.sum(axis=1)])


def field(ax: Axes, domain: Domain, values: NDArray[Any], label: str, look: Look) -> Colorbar:
    """Draw values (N,), with a colour bar as high as the map."""
    drawn: ScalarMappable
    if covered(domain):
        drawn = ax.pcolormesh(*laid_out(domain, values), shading="nearest", **look)
    else:
        x, y = domain.sites.T
        drawn = ax.scatter(x, y, float(np.clip(2e4 / domain.size, 8, 60)), values, **look)
    figure = ax.get_figure(root=True)
    assert figure is not None
    return figure.colorbar(drawn, cax=ax.inset_axes((1.03, 0, 0.04, 1)), label=label)


def edge(
    ax: Axes, domain: Domain, excess: Array, label: str = "", *, color: str = "white", style: str = "-"
) -> None:
    """Draw where `excess` (N,) changes sign, unless the sites are scattered; a label goes into the legend."""
    if not covered(domain) or not excess.min() < 0 < excess.max():
        return
    drawn = ax.contour(
        *laid_out(domain, excess), levels=[0.0], colors=color, linestyles=style, linewidths=1.6
    )
    cased: list[AbstractPathEffect] = _CASED if color == "white" else []
    drawn.set_path_effects(cased)
    if label:
        ax.plot([], [], style, color=color, linewidth=1.6, path_effects=cased, label=label)


def frame(ax: Axes, domain: Domain) -> None:
    """Set labels, directions, aspect and outline by the first two axes."""
    across, up = domain.axes[:2]
    ax.set(xlabel=across.label, ylabel=up.label, facecolor="0.93")
    ax.xaxis.set_inverted(across.positive == "down")
    ax.yaxis.set_inverted(up.positive == "down")
    ax.set_aspect("equal" if alike(domain) else "auto")
    if domain.region is not None:
        for ring in shapely.get_rings(shapely.get_parts(domain.region)):
            ax.plot(*shapely.get_coordinates(ring).T, color="0.25", linewidth=1.0)

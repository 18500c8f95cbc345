"""Shapes that hold the values of a map: the shore, and cells and triangles of scattered sites."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import shapely
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.path import Path
from matplotlib.tri import Triangulation

from fieldbo._numerics.arrays import Array
from fieldbo.domain.domain import Domain
from fieldbo.domain.obstacles import Region

_FEWEST = 4


def shore(domain: Domain) -> Region | None:
    """Return the region that a map over two axes shows; None for the box between the axes' ends.

    In a box with obstacles the values reach the edge of the map, and obstacles are drawn over them.
    """
    on_grid = domain.shape is not None or domain.continuous
    if domain.dimension != 2 or (domain.outline is None and domain.obstacles and on_grid):
        return None
    return domain.region


def path_of(shape: shapely.Geometry) -> Path | None:
    """Return polygons with their holes, which run the other way round, as a path; None if there are none."""
    polygons = [p for p in shapely.get_parts(shape) if isinstance(p, shapely.Polygon) and not p.is_empty]
    turned = [shapely.geometry.polygon.orient(p) for p in polygons]
    rings = [ring for p in turned for ring in (p.exterior, *p.interiors)]
    if not rings:
        return None
    return Path.make_compound_path(*(Path(shapely.get_coordinates(r), closed=True) for r in rings))


def cut(drawn: Artist, ax: Axes, domain: Domain) -> None:
    """Draw only what lies within the shore."""
    ground = shore(domain)
    if ground is not None and (path := path_of(ground)) is not None:
        drawn.set_clip_path(path, ax.transData)


def _spread(domain: Domain) -> bool:
    """Return True if the sites span two axes."""
    if domain.dimension != 2 or domain.size < _FEWEST:
        return False
    places = np.unique(domain.sites, axis=0)
    flat = (places - places.mean(axis=0)) / domain.extent
    return len(places) == domain.size and bool(np.linalg.matrix_rank(flat, tol=1e-6) == 2)


@lru_cache(maxsize=4)  # shared by all maps of a run
def cells_of(domain: Domain) -> tuple[Array, ...] | None:
    """Return the Voronoi cell (k, 2) of each site within the axes' ends; None unless the sites span them.

    Distances are as on the map: in the axes' unit if both have the same, else relative to their extents.
    """
    from scipy.spatial import Voronoi

    if not _spread(domain):
        return None
    one_unit = domain.axes[0].unit == domain.axes[1].unit
    scale = np.full(2, domain.extent.max()) if one_unit else domain.extent
    sites = (domain.sites - domain.low) / scale
    ends = domain.extent / scale
    far = 3.0 * np.sqrt(ends.prod() / domain.size)  # mirrored beyond the ends, sites have bounded cells
    mirrored = [sites]
    for axis in (0, 1):
        for end in (-far, ends[axis] + far):
            other = sites.copy()
            other[:, axis] = 2.0 * end - other[:, axis]
            mirrored.append(other)
    diagram = Voronoi(np.concatenate(mirrored))
    box = shapely.box(0.0, 0.0, *ends)
    cells = []
    for region in diagram.point_region[: domain.size]:
        cell = shapely.intersection(shapely.Polygon(diagram.vertices[diagram.regions[region]]), box)
        cells.append(domain.low + scale * shapely.get_coordinates(shapely.get_exterior_ring(cell)))
    return tuple(cells)


@lru_cache(maxsize=4)
def triangles(domain: Domain) -> Triangulation | None:
    """Return the triangles between scattered sites, without those outside the region."""
    if not _spread(domain):
        return None
    x, y = domain.sites.T
    east, north = domain.extent
    mesh = Triangulation(x, y, Triangulation(x / east, y / north).triangles)
    corners = domain.sites[mesh.triangles]
    ground = shore(domain)
    if ground is not None:
        mesh.set_mask(~shapely.intersects_xy(ground, *corners.mean(axis=1).T))
    return mesh

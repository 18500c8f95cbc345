"""Values over two axes: grid cells, a smooth surface in a box, cells of scattered sites, or dots."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import shapely
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import Collection, PolyCollection
from matplotlib.colorbar import Colorbar
from matplotlib.contour import ContourSet
from matplotlib.patches import PathPatch, Polygon
from matplotlib.path import Path
from matplotlib.patheffects import withStroke
from matplotlib.tri import Triangulation
from numpy.typing import NDArray

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.domain.domain import Domain
from fieldbo.domain.free_space import shrunk
from fieldbo.domain.obstacles import Obstacle, Region
from fieldbo.results.plot.figures import new_figure
from fieldbo.results.plot.geography import beside, on_earth
from fieldbo.results.plot.layout import NAME
from fieldbo.results.plot.style import (
    RED,
    Look,
    Sheet,
    cased,
    font_size,
    letter_size,
    line_width,
    shade,
    width_of,
)

_RASTER = 160  # raster points along each axis of a box
_CASED = cased("black", 1.9)  # visible on light and dark surfaces
_LETTER = 8.0  # font size of an obstacle's name, in points
_SOLID: Look = {"hatch": "////", "linewidth": 0.0, "zorder": 1.5}
_SHADOW: Look = {"fill": False, "linestyle": "--", "linewidth": 0.9, "zorder": 1.5}


def covered(domain: Domain) -> bool:
    """Return True if values at the sites can be drawn as a surface over two axes."""
    if domain.dimension != 2:
        return False
    if domain.continuous:
        return domain.size > 3
    return domain.shape is not None and min(domain.shape) > 1


def alike(domain: Domain) -> bool:
    """Return True if the first two axes are drawn to the same scale."""
    across, up = domain.axes[:2]
    longer, shorter = max(across.extent, up.extent), min(across.extent, up.extent)
    return across.unit == up.unit and longer < 5 * shorter


def ratio(domain: Domain) -> float:
    """Return the height of a map over its width."""
    return float(np.clip(domain.extent[1] / domain.extent[0], 0.3, 1.1)) if alike(domain) else 0.65


def map_figure(domain: Domain, on: str = "screen") -> Sheet:
    """Return an empty figure for one map of a domain, as high as the map needs it."""
    return new_figure(9, 7.2 * ratio(domain) + 1.6, on, ratio=ratio(domain))


def laid_out(domain: Domain, values: NDArray[Any]) -> tuple[Array, Array, Any]:
    """Return ticks (n,) and (m,), and values (N,) as a masked (m, n) array, the first axis across.

    In a box, values are interpolated between the sites; integers, which are classes, are taken from the
    nearest site. Values continue behind obstacles, which are drawn over them, and on a grid beyond the shore,
    at which `field` cuts them, so that no gap shows at their edges. What no vehicle can reach stays empty.
    """
    counts = (_RASTER, _RASTER) if domain.shape is None else domain.shape
    x, y = (np.linspace(a.low, a.high, n) for a, n in zip(domain.axes, counts, strict=True))
    points = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    behind = np.zeros(len(points), dtype=bool)
    for obstacle in domain.obstacles:
        behind |= shapely.intersects_xy(obstacle.polygon, points[:, 0], points[:, 1])
    inside = domain.contains(points)
    if domain.shape is not None:
        grid = domain.on_grid(values.astype(float)).T
        kept = inside if domain.outline is not None else inside | ~behind
        return x, y, np.ma.masked_invalid(_continued(grid, kept.reshape(grid.shape)))
    sites, weights = _corners(domain)
    if np.issubdtype(values.dtype, np.integer):
        raster = values[np.take_along_axis(sites, weights.argmax(axis=1)[:, None], axis=1)[:, 0]]
    else:
        raster = np.einsum("pk,pk->p", weights, values[sites])
    raster = np.where(behind | inside, raster, np.nan)
    return x, y, np.ma.masked_invalid(raster.reshape(counts[::-1]))


def _continued(grid: Array, inside: Mask) -> Array:
    """Return a grid (m, n) whose other nodes have the value of the nearest node that is `inside`."""
    if inside.all() or not inside.any():
        return grid
    from scipy.ndimage import distance_transform_edt

    nearest = distance_transform_edt(~inside, return_distances=False, return_indices=True)
    return np.asarray(grid[tuple(nearest)])


@lru_cache(maxsize=4)  # shared by all maps of a run
def _corners(domain: Domain) -> tuple[NDArray[np.intp], Array]:
    """Return the three sites (P, 3) around each raster point of a box, and their weights (P, 3).

    A point outside the sites' hull is moved inwards until it is inside.
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


def field(
    ax: Axes,
    domain: Domain,
    values: NDArray[Any],
    label: str,
    look: Look,
    *,
    dots: bool = False,
    bar: bool = True,
) -> Collection:
    """Draw values (N,), cut at the shore, and a colour bar as long as the map; scattered sites as `dots`.

    The colour bar is the ``colorbar`` of what is returned.
    """
    drawn: Collection
    if covered(domain):
        drawn = ax.pcolormesh(*laid_out(domain, values), shading="nearest", rasterized=True, **look)
        cut(drawn, ax, domain)
    elif (cells := None if dots else cells_of(domain)) is not None:
        drawn = _cells(ax, domain, cells, values, look)
    else:
        x, y = domain.sites.T
        drawn = ax.scatter(x, y, float(np.clip(2e4 / domain.size, 8, 60)), values, **look)
    if bar:
        _colour_bar(ax, domain, drawn, label)
    return drawn


def recolour(drawn: Collection, domain: Domain, values: NDArray[Any]) -> None:
    """Show other values (N,) on what `field` drew, with the same colours."""
    drawn.set_array(laid_out(domain, values)[2] if covered(domain) else values)


def _cells(
    ax: Axes, domain: Domain, cells: Sequence[Array], values: NDArray[Any], look: Look
) -> PolyCollection:
    drawn = PolyCollection(cells, cmap=look.get("cmap"), edgecolors="face", linewidths=0.4, rasterized=True)
    drawn.set_array(values)
    drawn.set_clim(look.get("vmin"), look.get("vmax"))
    ax.add_collection(drawn)
    ax.autoscale_view()
    cut(drawn, ax, domain)
    return drawn


def _colour_bar(ax: Axes, domain: Domain, drawn: ScalarMappable, label: str) -> Colorbar:
    """Add a colour bar beside a map, or above it in a narrow figure with several columns.

    In a figure of your own that makes no room for it, it takes some from the map.
    """
    figure, place = ax.get_figure(root=True), ax.get_subplotspec()
    assert figure is not None
    if figure.get_layout_engine() is None:
        return figure.colorbar(drawn, ax=ax, label=label)
    if width_of(ax) != "column" or place is None or place.get_gridspec().ncols == 1:
        return figure.colorbar(drawn, cax=ax.inset_axes((beside(domain), 0, 0.04, 1)), label=label)
    above = ax.inset_axes((0, 1.05, 1, 0.06))
    return figure.colorbar(drawn, cax=above, label=label, orientation="horizontal", ticklocation="top")


def edge(
    ax: Axes,
    domain: Domain,
    excess: Array,
    label: str = "",
    *,
    name: str = "edge",
    color: str = "white",
    style: str = "-",
) -> dict[str, ContourSet]:
    """Draw the line where `excess` (N,) changes sign, cut at the shore, with a legend label.

    Return it by its `name`; nothing if there is none.
    """
    if not excess.min() < 0 < excess.max():
        return {}
    look: Look = {"levels": [0.0], "colors": color, "linestyles": style, "linewidths": line_width(1.6)}
    look["zorder"] = 1.4
    if covered(domain):
        drawn: ContourSet = ax.contour(*laid_out(domain, excess), **look)
    elif (mesh := triangles(domain)) is not None:
        drawn = ax.tricontour(mesh, excess, **look)
    else:
        return {}
    casing = [_CASED] if color == "white" else []
    drawn.set_path_effects(casing)
    cut(drawn, ax, domain)
    if label:
        ax.plot([], [], style, color=color, linewidth=line_width(1.6), path_effects=casing, label=label)
    return {name: drawn}


def frame(ax: Axes, domain: Domain, *, named: bool = False, solid: Sequence[Obstacle] | None = None) -> None:
    """Set labels, directions and aspect of the first two axes, and draw outline, obstacles and clearance.

    Obstacles are hatched, and `named` where their names fit; the clearance from them and from the outline is
    a light band. An outline with a depth is seen from above. In other domains with more than two axes, only
    the outlines of obstacles are drawn, because a path may lead over them. The obstacles drawn are `solid`,
    by default those of the domain.
    """
    if domain.region is not None:
        domain = domain.flat
    _oriented(ax, domain)
    _ground(ax, domain, domain.solid if solid is None else solid, named)


def hatched(
    ax: Axes, domain: Domain, sites: Mask, bar: Colorbar | None = None, last: float = 4.0
) -> dict[str, PathPatch]:
    """Hatch the sites (N,) that nobody has inspected and, in a colour bar, their class, the last one."""
    half = domain.spacing / 2.0
    cells: Any = None
    if domain.shape is not None and np.isfinite(half).all():
        places = domain.sites[sites]
        cells = shapely.box(*(places - half).T, *(places + half).T)
    elif (around := cells_of(domain)) is not None:
        cells = [shapely.Polygon(around[k]) for k in np.flatnonzero(sites)]
    if cells is None or (path := path_of(shapely.union_all(cells))) is None:
        return {}
    look: Look = {"facecolor": "none", "edgecolor": shade(0.45), "hatch": "\\\\\\", "linewidth": 0.0}
    drawn = PathPatch(path, label="not inspected", zorder=1.4, **look)
    ax.add_artist(drawn)  # does not change the limits
    cut(drawn, ax, domain)
    if bar is not None:
        span = bar.ax.axhspan if bar.orientation == "vertical" else bar.ax.axvspan
        span(last - 0.5, last + 0.5, **look)
    return {"not inspected": drawn}


def closed_areas(ax: Axes, areas: Sequence[Obstacle]) -> list[Polygon]:
    """Draw the areas over the first two axes that were closed while a run was under way; return them."""
    drawn = list[Polygon]()
    for number, area in enumerate(areas):
        corners = shapely.get_coordinates(area.polygon.exterior)
        label = "closed under way" if number == 0 else None
        look: Look = {"facecolor": "none", "edgecolor": RED, "linewidth": line_width(1.2)}
        drawn += ax.fill(*corners.T, hatch="xx", zorder=2.5, label=label, **look)
    return drawn


def _oriented(ax: Axes, domain: Domain) -> None:
    across, up = domain.axes[:2]
    ax.set(xlabel=across.label, ylabel=up.label, facecolor=shade(0.07))
    ax.xaxis.set_inverted(across.positive == "down")
    ax.yaxis.set_inverted(up.positive == "down")
    ax.set_aspect("equal" if alike(domain) else "auto")
    on_earth(ax, domain, to_scale=alike(domain))


def _ground(ax: Axes, domain: Domain, solid: Sequence[Obstacle], named: bool) -> None:
    if domain.region is not None:
        for line in shapely.get_parts(_edges(domain, solid)):
            ax.plot(*shapely.get_coordinates(line).T, color=shade(0.75), linewidth=line_width(1.0))
    if domain.clearance > 0 and domain.dimension == 2:
        _clearance(ax, domain, solid)
    if solid:
        _obstacles(ax, domain, solid, named)


def _edges(domain: Domain, solid: Sequence[Obstacle]) -> shapely.Geometry:
    """Return the edges of the outline and of obstacles.

    Only the outline is drawn along the ends of the axes: elsewhere, nothing ends there but the map.
    """
    box = shapely.box(*domain.low, *domain.high)
    ground: shapely.Geometry | None = domain.region
    if domain.clearance > 0:
        whole = box if domain.outline is None else domain.outline
        ground = shapely.difference(whole, shapely.union_all([o.polygon for o in solid]))
    near = 1e-6 * float(domain.extent.min())
    ends: shapely.Geometry = box.boundary.buffer(near)
    if domain.outline is not None:
        ends = shapely.difference(ends, shapely.boundary(domain.outline).buffer(2.0 * near))
    lines: Any = shapely.boundary(ground)  # None only of None
    edges: shapely.Geometry = shapely.difference(lines, ends)
    return shapely.line_merge(edges)


def _clearance(ax: Axes, domain: Domain, solid: Sequence[Obstacle]) -> None:
    """Draw the band that the clearance keeps free, around obstacles and along the outline."""
    near = shapely.union_all([shapely.Polygon(_drawn(o, domain)) for o in domain.obstacles])
    if domain.outline is not None:
        near = shapely.intersection(near, domain.outline)
        shore = shapely.difference(domain.outline, shrunk(domain.outline, domain.clearance))
        near = shapely.union(near, shore)
    band = shapely.difference(near, shapely.union_all([shapely.Polygon(_drawn(o, domain)) for o in solid]))
    if (path := path_of(band)) is not None:
        look: Look = {"facecolor": shade(0.03), "edgecolor": shade(0.45), "linewidth": 0.5, "zorder": 1.45}
        ax.add_artist(PathPatch(path, label="clearance", **look))


def _obstacles(ax: Axes, domain: Domain, solid: Sequence[Obstacle], named: bool) -> None:
    flat = domain.dimension == 2
    along = domain.axes[2].name if domain.dimension == 3 else "the other axes"
    label = "obstacle" if flat else f"obstacle, seen along {along}"
    colours: Look = {"edgecolor": shade(0.6)}
    if flat:
        colours = {"facecolor": shade(0.16), "edgecolor": shade(0.45)}
    look = (_SOLID if flat else _SHADOW) | colours
    box = shapely.box(domain.low[0], domain.low[1], domain.high[0], domain.high[1])
    for number, obstacle in enumerate(solid):
        path = Path(_drawn(obstacle, domain), closed=True)
        ax.add_artist(PathPatch(path, label="" if number else label, **look))  # does not change the limits
        if named:
            _named(ax, domain, shapely.intersection(obstacle.polygon, box), obstacle.name)


def _drawn(obstacle: Obstacle, domain: Domain) -> Array:
    """Return an obstacle's edge (k, 2); a box that reaches the end of an axis extends over the margin."""
    if obstacle.corners:
        return shapely.get_coordinates(obstacle.polygon.exterior)
    low, high, far = np.array(obstacle.low[:2]), np.array(obstacle.high[:2]), domain.extent[:2]
    (a, b), (c, d) = low - far * (low <= domain.low[:2]), high + far * (high >= domain.high[:2])
    return np.array([[a, b], [c, b], [c, d], [a, d], [a, b]])


def _named(ax: Axes, domain: Domain, shape: shapely.Geometry, name: str) -> None:
    """Write a name into a shape if it fits, horizontally or else vertically."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    width = 0.75 * float(figure.get_size_inches()[0])  # estimated: the layout is not fixed yet
    inches = min(width, ax.get_window_extent().width / figure.dpi)
    letter = font_size(ax, letter_size(_LETTER))
    per_inch = domain.extent[:2] / (inches * np.array([1.0, ratio(domain)]))
    x, y = shapely.get_coordinates(shapely.centroid(shape))[0]
    length, height = 0.6 * letter * len(name) / 72, 1.4 * letter / 72
    for turned in (0, 90):
        w, h = np.array([height, length] if turned else [length, height]) * per_inch / 2
        if shapely.contains(shape, shapely.box(x - w, y - h, x + w, y + h)):
            halo = [withStroke(linewidth=3.0, foreground=shade(0.1))]
            look: Look = {"fontsize": letter_size(_LETTER), "color": shade(0.85), "path_effects": halo}
            look |= {"ha": "center", "va": "center_baseline", "rotation_mode": "anchor", "zorder": 2.5}
            ax.text(x, y, name, rotation=turned, clip_on=True, gid=NAME, **look)
            return


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

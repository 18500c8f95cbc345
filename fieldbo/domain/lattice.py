"""Sites at a given spacing inside an outline, at the surface or at several depths."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from fieldbo._numerics.arrays import Array, frozen_array
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.free_space import Bottom, FreeSpace, with_clearance
from fieldbo.domain.obstacles import Obstacle, Region
from fieldbo.errors import InputError

Pattern = Literal["square", "hexagonal"]

MOST_SITES = 100_000

_ROW = math.sqrt(3.0) / 2.0  # distance between the rows of a hexagonal lattice, in spacings


def lattice(
    outline: Region,
    spacing: float,
    pattern: Pattern = "square",
    obstacles: Sequence[Obstacle] = (),
    clearance: float = 0.0,
    *,
    crs: str | None = None,
    names: tuple[str, str] = ("east", "north"),
    depths: Sequence[float] = (),
    bottom: Bottom | None = None,
    least_depth: float = 0.0,
) -> Domain:
    """Return a domain whose sites are the nodes of a lattice inside an outline.

    With `depths`, it has a third axis, ``depth``, from 0 at the surface to the greatest of them, and sites at
    each depth that the bottom allows.

    Parameters
    ----------
    outline : shapely.Polygon or shapely.MultiPolygon
        In metres; it may have holes.
    spacing : float
        Distance between neighbouring sites, in metres.
    pattern : {"square", "hexagonal"}
        A hexagonal lattice covers the same area, equally well, with 13% fewer sites. A square one makes the
        maps rasters.
    obstacles : sequence of Obstacle
    clearance : float
        Distance to keep from the outline and from obstacles, in metres.
    crs : str, optional
        Coordinate reference system of the outline.
    names : (str, str)
        Names of the horizontal axes.
    depths : sequence of float
        Depths of the sites, in metres, positive down.
    bottom : Bottom, optional
        Its clearance limits the depth of sites and probes.
    least_depth : float
        Depth of the water, in metres, below which there are no sites. Routes may still cross shallow water.

    Raises
    ------
    InputError
        There is no site inside the outline, there are more than 100,000 of them, the depths are not
        increasing, or the depth of the bottom is unknown at a site.

    Examples
    --------
    >>> import shapely
    >>> pond = shapely.Point(0, 0).buffer(50)
    >>> lattice(pond, 10).size, lattice(pond, 10, "hexagonal").size
    (73, 88)
    >>> ticks = np.linspace(-50, 50, 11)
    >>> bowl = Bottom(ticks, ticks, 10 - np.hypot(*np.meshgrid(ticks, ticks)) / 5)
    >>> np.unique(lattice(pond, 10, depths=[1, 5], bottom=bowl).sites[:, 2], return_counts=True)
    (array([1., 5.]), array([69, 21]))
    """
    if not (math.isfinite(spacing) and spacing > 0):
        raise InputError(
            f"spacing = {spacing}", expected="a number of metres above 0", where="domain.spacing"
        )
    _check_depths(depths)
    _check_number(outline, spacing, pattern, max(1, len(depths)))
    low, high = np.array(outline.bounds).reshape(2, 2)
    first = np.floor(low / spacing) * spacing  # whole multiples, so that the same place has the same sites
    counts = np.ceil((high - first) / spacing).astype(int) + 1
    last = first + (counts - 1) * spacing
    axes = [Axis(name, "m", float(a), float(b)) for name, a, b in zip(names, first, last, strict=True)]
    try:
        if pattern == "square":
            flat = Domain.grid(axes, counts.tolist(), outline, obstacles, clearance, crs)
        else:
            grown = with_clearance(axes, obstacles, clearance)
            space = FreeSpace.on(axes, grown, outline, clearance)
            nodes = _hexagonal(first, last, spacing)
            flat = Domain(
                tuple(axes),
                frozen_array(nodes[space.contains(nodes)]),
                region=space.region,
                obstacles=grown,
                outline=outline,
                clearance=clearance,
                solid=tuple(obstacles),
                crs=crs,
                pitch=spacing,
            )
        if bottom is not None:
            flat = _deep_enough(flat, bottom, least_depth)
            bottom = flat.bottom
        return _lowered(flat, spacing, depths, bottom) if len(depths) else flat
    except InputError as error:
        if "no sites" in error.problem:
            error.fix = "lower the spacing, or lower the clearance"
        raise


def _deep_enough(flat: Domain, bottom: Bottom, least_depth: float) -> Domain:
    """Return a domain without the sites above too shallow water; its sites represent the same area each.

    Raises
    ------
    InputError
        The depth is unknown at a site, most sites are on land, or no site is left.
    """
    depth = bottom.depth_at(flat.sites)
    unknown = np.isnan(depth)
    if unknown.any():
        covered = 100 - math.ceil(100 * float(unknown.mean()))
        at = flat.sites[int(np.argmax(unknown))].tolist()
        raise InputError(
            f"the bathymetry covers {covered}% of the sites inside the outline; the first without a depth is "
            f"{at}",
            expected="a depth all over the outline",
            where="domain.bathymetry",
            fix="check its CRS, fill its gaps in a GIS, or draw the outline around the surveyed water",
        )
    if np.median(depth) <= 0:
        raise InputError(
            f"the bottom lies above the surface at {int((depth <= 0).sum())} of {flat.size} sites: its depth "
            f"is {depth.min():.4g} to {depth.max():.4g} m",
            expected="depths below the surface of the water",
            where="domain.bathymetry",
            fix="subtract elevations above sea level from the level of the lake, in a GIS",
        )
    kept = depth >= least_depth
    if not kept.any():
        raise InputError(
            f"the water is {depth.max():.4g} m deep at most, less than least_depth",
            expected="at least one site in water of that depth",
            where="domain.least_depth",
            fix="lower it",
        )
    index = None if flat.grid_index is None else frozen_array(flat.grid_index[kept], int)
    other = replace(
        flat, sites=flat.sites[kept], grid_index=index, bottom=replace(bottom, least_depth=least_depth)
    )
    other.__dict__["cell_size"] = flat.cell_size
    return other


def _lowered(flat: Domain, pitch: float, depths: Sequence[float], bottom: Bottom | None) -> Domain:
    """Return a domain with the sites of a flat one at each depth that the bottom allows."""
    axis = Axis("depth", "m", 0.0, float(depths[-1]), "down")
    sites = np.column_stack([np.repeat(flat.sites, len(depths), axis=0), np.tile(depths, flat.size)])
    if bottom is not None:
        sites = sites[sites[:, 2] <= np.repeat(bottom.reach_at(flat.sites), len(depths))]
    if not len(sites):
        raise InputError(
            f"the bottom leaves no site at a depth of {depths[0]:g} m",
            expected="depths above the bottom",
            where="domain.depths",
            fix="begin with a smaller depth" + (", or lower bottom_clearance" if bottom else ""),
        )
    return replace(
        flat, axes=(*flat.axes, axis), sites=sites, shape=None, grid_index=None, pitch=pitch, bottom=bottom
    )


def _check_depths(depths: Sequence[float]) -> None:
    """Raise an `InputError` unless depths are finite, increasing, and 0 or more."""
    if len(depths) and not (
        np.isfinite(depths).all() and depths[0] >= 0 and (np.diff(depths) > 0).all() and depths[-1] > 0
    ):
        raise InputError(
            f"depths = {list(depths)}",
            expected="increasing depths in metres, positive down, for example [1, 4, 8]",
            where="domain.depths",
        )


def _hexagonal(low: Array, high: Array, spacing: float) -> Array:
    """Return the nodes (n, 2) of a hexagonal lattice over a box; every other row is shifted by half."""
    ys = np.arange(low[1], high[1] + 1e-9 * spacing, _ROW * spacing)
    xs = np.arange(low[0], high[0] + 1e-9 * spacing, spacing)
    rows = [np.column_stack([xs + (k % 2) * spacing / 2.0, np.full(len(xs), y)]) for k, y in enumerate(ys)]
    return np.concatenate(rows)


def _check_number(outline: Region, spacing: float, pattern: Pattern, layers: int) -> None:
    """Raise an `InputError` if a lattice has too many sites, with a spacing that has not."""
    per_site = spacing**2 * (1.0 if pattern == "square" else _ROW)
    number = layers * outline.area / per_site
    if number > MOST_SITES:
        wide_enough = spacing * math.sqrt(number / 2500.0)
        digits = 10 ** math.floor(math.log10(wide_enough))
        raise InputError(
            f"a spacing of {spacing:g} m gives about {number:,.0f} sites; their covariances alone would take "
            f"{8e-9 * number**2:,.0f} GB",
            expected=f"at most {MOST_SITES:,} sites; decisions are fast up to a few thousand",
            where="domain.spacing",
            fix=f"use a spacing of {math.ceil(wide_enough / digits) * digits:g} m, "
            "or an outline of the part to survey",
        )

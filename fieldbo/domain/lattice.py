"""Sites at a given spacing inside an outline: a square or a hexagonal lattice."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from fieldbo._numerics.arrays import Array, frozen_array
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.free_space import FreeSpace, with_clearance
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
) -> Domain:
    """Return a domain whose sites are the nodes of a lattice inside an outline.

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
        Names of the axes.

    Raises
    ------
    InputError
        There is no site inside the outline, or there are more than 100,000 of them.

    Examples
    --------
    >>> import shapely
    >>> pond = shapely.Point(0, 0).buffer(50)
    >>> lattice(pond, 10).size, lattice(pond, 10, "hexagonal").size
    (73, 88)
    """
    if not (math.isfinite(spacing) and spacing > 0):
        raise InputError(
            f"spacing = {spacing}", expected="a number of metres above 0", where="domain.spacing"
        )
    _check_number(outline, spacing, pattern)
    low, high = np.array(outline.bounds).reshape(2, 2)
    first = np.floor(low / spacing) * spacing  # whole multiples, so that the same place has the same sites
    counts = np.ceil((high - first) / spacing).astype(int) + 1
    last = first + (counts - 1) * spacing
    axes = [Axis(name, "m", float(a), float(b)) for name, a, b in zip(names, first, last, strict=True)]
    try:
        if pattern == "square":
            return Domain.grid(axes, counts.tolist(), outline, obstacles, clearance, crs)
        grown = with_clearance(axes, obstacles, clearance)
        space = FreeSpace.on(axes, grown, outline, clearance)
        nodes = _hexagonal(first, last, spacing)
        return Domain(
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
    except InputError as error:
        if "no sites" in error.problem:
            error.fix = "lower the spacing, or lower the clearance"
        raise


def _hexagonal(low: Array, high: Array, spacing: float) -> Array:
    """Return the nodes (n, 2) of a hexagonal lattice over a box; every other row is shifted by half."""
    ys = np.arange(low[1], high[1] + 1e-9 * spacing, _ROW * spacing)
    xs = np.arange(low[0], high[0] + 1e-9 * spacing, spacing)
    rows = [np.column_stack([xs + (k % 2) * spacing / 2.0, np.full(len(xs), y)]) for k, y in enumerate(ys)]
    return np.concatenate(rows)


def _check_number(outline: Region, spacing: float, pattern: Pattern) -> None:
    """Raise an `InputError` if a lattice has too many sites, with a spacing that has not."""
    per_site = spacing**2 * (1.0 if pattern == "square" else _ROW)
    number = outline.area / per_site
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

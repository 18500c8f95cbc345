"""Functions of the site, such as prior means and truths, from CSV, GeoTIFF and NetCDF files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.belief.mean_functions import Gridded, MeanFunction, Scattered
from fieldbo.domain.domain import Domain
from fieldbo.domain.georeference import reprojected, same_crs
from fieldbo.errors import InputError, UnknownNameError, counted
from fieldbo.world.raster import NETCDF, TIFF, read_raster
from fieldbo.world.readings import column_names, read_readings

MOST_SCATTERED = 100_000
"""Largest number of scattered points between which values are interpolated."""

_MOST_SCATTERED_AXES = 4


def read_mean(path: Path, domain: Domain, value: str | None, quantity: str) -> MeanFunction:
    """Read a function of the site from a table or a raster in the domain's coordinates, or in another CRS.

    Parameters
    ----------
    path : Path
        A CSV with a column per axis, over a grid or scattered points; a GeoTIFF; or a NetCDF file.
    domain : Domain
    value : str, optional
        Column, band or variable. By default, a CSV's column ``value`` or the one named like the quantity.
    quantity : str
        Name of the measured quantity.

    Returns
    -------
    MeanFunction
        Linear between the file's points.

    Raises
    ------
    InputError
        The file can't be read, or has other axes.
    """
    if path.suffix.lower() not in (*TIFF, *NETCDF):
        return _from_table(path, domain, value or value_column(path, domain, quantity))
    if domain.dimension != 2:
        raise InputError(
            f"a raster has two axes, and the domain has {domain.dimension}",
            expected="a CSV with one column per axis",
            where=str(path),
        )
    raster = read_raster(path, value)
    function = Gridded([raster.x, raster.y], raster.values.T, margin=0.5)
    if raster.crs is not None and domain.crs is not None and not same_crs(raster.crs, domain.crs):
        return Reprojected(function, domain.crs, raster.crs)
    names = tuple(axis.name for axis in domain.axes)
    turned = names == raster.names[::-1]
    return Gridded([raster.y, raster.x], raster.values, margin=0.5) if turned else function


class Reprojected(MeanFunction):
    """A function of places in one CRS, at places in another.

    Parameters
    ----------
    function : MeanFunction
        Of longitude or easting, and latitude or northing, in `source`.
    crs : str
        Of the places at which it is asked for, in metres.
    source : str
    """

    def __init__(self, function: MeanFunction, crs: str, source: str) -> None:
        self.function, self.crs, self.source = function, crs, source

    def _moved(self, points: Array) -> Array:
        return reprojected(points, self.crs, self.source)

    def values(self, points: Array) -> Array:
        return self.function.values(self._moved(points))

    def with_gradient(self, points: Array) -> tuple[Array, Array]:
        here = self._moved(points)
        mean, there = self.function.with_gradient(here)
        by_axis = [self._moved(points + step) - here for step in np.eye(points.shape[1])]  # per metre
        return mean, np.stack([np.einsum("pj,pj->p", there, slope) for slope in by_axis], axis=1)

    def covers(self, points: Array) -> Mask:
        return self.function.covers(self._moved(points))


def value_column(path: Path, domain: Domain, quantity: str) -> str:
    """Return the column of a CSV that holds the value: ``value``, or the one named like the quantity.

    Raises
    ------
    InputError
        The file can't be read, or has neither.
    """
    columns, axes = column_names(path), [axis.name for axis in domain.axes]
    for name in ("value", quantity):
        if name in columns and name not in axes:
            return name
    raise UnknownNameError(
        f"no column is called {quantity!r} or value",
        expected=f"one of them beside {', '.join(columns)}",
        where=f"{path}, line 1",
        fix=f"call the column of the value {quantity!r} or value",
    )


def _from_table(path: Path, domain: Domain, value: str) -> MeanFunction:
    table = read_readings(path, [axis.name for axis in domain.axes], value, least=1)
    if table.repeated:
        raise InputError(
            f"{table.repeated} rows repeat a place", expected="one row per place", where=str(path)
        )
    ticks = [np.unique(column) for column in table.sites.T]
    shape = tuple(len(t) for t in ticks)
    if np.prod(shape, dtype=float) == len(table.values):
        nodes = np.empty(shape)
        index = [np.searchsorted(t, column) for t, column in zip(ticks, table.sites.T, strict=True)]
        nodes[tuple(index)] = table.values
        return Gridded(list(ticks), nodes)
    if domain.dimension > _MOST_SCATTERED_AXES or len(table.values) > MOST_SCATTERED:
        raise InputError(
            f"{len(table.values):,} scattered points over {counted(domain.dimension, 'axis', 'axes')}",
            expected=f"a full grid, or at most {MOST_SCATTERED:,} points over at most "
            f"{_MOST_SCATTERED_AXES} axes",
            where=str(path),
        )
    if np.linalg.matrix_rank(table.sites - table.sites[0]) < domain.dimension:
        raise InputError(
            "the points lie on a line or in a plane",
            expected="points that surround the sites",
            where=str(path),
        )
    return Scattered(table.sites, table.values)


def check_covers(function: MeanFunction, domain: Domain, what: str, where: str) -> None:
    """Raise an `InputError` unless a function is known at every site, and at the corners of a box."""
    points = domain.sites
    if domain.continuous:
        ends = np.stack(np.meshgrid(*zip(domain.low, domain.high, strict=True)), axis=-1)
        points = np.vstack([points, ends.reshape(-1, domain.dimension)])
    missing = ~function.covers(points)
    if missing.any():
        place = points[int(np.argmax(missing))].tolist()
        raise InputError(
            f"{what} does not cover {np.count_nonzero(missing)} of {len(points)} sites; the first is {place}",
            expected="values all over the domain, in the coordinates of its axes",
            where=where,
            fix="check that the file's coordinates are the world's own, or extend it",
        )

"""Rasters: values over two axes from GeoTIFF and NetCDF files; functions of the site from them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.belief.mean_functions import Gridded, MeanFunction, Scattered
from fieldbo.domain.domain import Domain
from fieldbo.domain.georeference import is_geographic, reprojected, same_crs, turned_to
from fieldbo.errors import InputError, UnknownNameError, counted
from fieldbo.tables.opening import open_table
from fieldbo.tables.readings import read_readings
from fieldbo.tables.table import Table
from fieldbo.world.grids import GRIDS, TIFF, Raster, read_grid
from fieldbo.world.netcdf import NETCDF, read_netcdf

RASTERS = frozenset((*TIFF, *NETCDF, *GRIDS))
"""Suffixes of the files."""

_POINTS = frozenset((".shp", ".gpkg", ".geojson", ".json", ".kml", ".kmz", ".gpx", ".dxf", ".csv", ".txt"))
_MARKS = (-9999.0, -99999.0, -32768.0, -32767.0, -999.0, -99.0, 999.0, 9999.0, 32767.0, 65535.0, 99999.0)
_HUGE = 1e10  # of what is measured over an area, nothing is that large
_APART = 3.0  # a mark lies that many times the range of the other values away from them


def read_raster(path: Path, value: str | None = None) -> Raster:
    """Read a GeoTIFF (``.tif``) or a NetCDF file (``.nc``).

    Parameters
    ----------
    path : Path
    value : str, optional
        Number or description of a band, or name of a variable; by default the only one.

    Raises
    ------
    InputError
        The file can't be read, has no such band or variable, is rotated or too large, or the package that
        reads it is not installed.
    """
    if not path.is_file():
        raise InputError(
            f"{path.name or path} is a folder" if path.is_dir() else f"there is no file {path.name}",
            expected="a GeoTIFF or NetCDF file",
            where=str(path.parent),
        )
    suffix = path.suffix.lower()
    if suffix not in RASTERS:
        raise InputError(
            f"{path.name} is not a raster that fieldbo can read",
            expected=f"a file that ends in {', '.join(sorted(RASTERS))}",
            where=str(path.parent),
            fix="interpolate its contours or points in a GIS (QGIS: TIN interpolation), and export a GeoTIFF"
            if suffix in _POINTS
            else "export it as GeoTIFF from a GIS",
        )
    raster = read_netcdf(path, value) if _is_netcdf(path) else read_grid(path, value)
    raster = _sort_ascending(raster, path)
    _check_marks(raster, path)
    return _closed(raster)


def _is_netcdf(path: Path) -> bool:
    """Return whether a file is read as NetCDF: grids of GMT end in .grd, as those of Surfer do."""
    suffix = path.suffix.lower()
    if suffix != ".grd":
        return suffix in NETCDF
    with path.open("rb") as file:
        return file.read(4)[:4].startswith((b"CDF", b"\x89HDF"))


def _sort_ascending(raster: Raster, path: Path) -> Raster:
    x, y, values = raster.x, raster.y, raster.values
    if len(x) > 1 and x[0] > x[-1]:
        x, values = x[::-1], values[:, ::-1]
    if len(y) > 1 and y[0] > y[-1]:
        y, values = y[::-1], values[::-1]
    for name, ticks in zip(raster.names, (x, y), strict=True):
        if not np.isfinite(ticks).all() or (np.diff(ticks) <= 0).any():
            raise InputError(
                f"the coordinates {name} are not in order",
                expected="increasing or decreasing numbers",
                where=str(path),
            )
    return replace(raster, x=x, y=y, values=np.where(np.isfinite(values), values, np.nan))


def _check_marks(raster: Raster, path: Path) -> None:
    """Raise an `InputError` for a number that stands for no value without the file saying so."""
    known = raster.values[np.isfinite(raster.values)]
    if not known.size:
        return
    for mark in (known.min(), known.max()):
        rest = known[known != mark]
        if not rest.size or (mark not in _MARKS and abs(mark) < _HUGE):
            continue
        away = min(abs(mark - rest.min()), abs(mark - rest.max()))
        if away <= _APART * max(np.ptp(rest), 1e-3 * abs(mark)):
            continue
        raise InputError(
            f"{counted(int((known == mark).sum()), 'cell')} of {path.name} hold {mark:g}, and the others "
            f"{rest.min():g} to {rest.max():g}",
            expected="a file that says which number stands for no value",
            where=str(path.parent),
            fix=f"gdal_translate -a_nodata {mark:g} {path.name} marked.tif",
        )


def _closed(raster: Raster) -> Raster:
    """Return a raster in degrees that goes around the Earth with its first and last column repeated."""
    x = raster.x
    if raster.crs is None or len(x) < 3 or not is_geographic(raster.crs):
        return raster
    step = float(x[1] - x[0])
    if abs(x[-1] - x[0] + step - 360.0) > 0.01 * step:
        return raster
    values = np.hstack([raster.values[:, -1:], raster.values, raster.values[:, :1]])
    return replace(raster, x=np.concatenate([[x[-1] - 360.0], x, [x[0] + 360.0]]), values=values)


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
    if path.suffix.lower() not in RASTERS:
        table = open_table(path)
        return _from_table(table, domain, value or value_column(table, domain, quantity))
    if domain.dimension != 2:
        raise InputError(
            f"a raster has two axes, and the domain has {domain.dimension}",
            expected="a CSV with one column per axis",
            where=str(path),
        )
    raster = read_raster(path, value)
    function = Gridded([raster.x, raster.y], raster.values.T, margin=0.5)
    if raster.crs is not None and domain.crs is not None and not same_crs(raster.crs, domain.crs):
        return Reprojected(function, domain.crs, raster.crs, float(raster.x[0] + raster.x[-1]) / 2.0)
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
    middle : float, optional
        If `source` is in degrees, the longitude in the middle of the function: those asked for may be given
        from 0 to 360 there.
    """

    def __init__(self, function: MeanFunction, crs: str, source: str, middle: float | None = None) -> None:
        self.function, self.crs, self.source = function, crs, source
        self.middle = middle if middle is not None and is_geographic(source) else None

    def _moved(self, points: Array) -> Array:
        moved = reprojected(points, self.crs, self.source)
        return moved if self.middle is None else turned_to(moved, self.middle)

    def values(self, points: Array) -> Array:
        return self.function.values(self._moved(points))

    def with_gradient(self, points: Array) -> tuple[Array, Array]:
        here = self._moved(points)
        mean, there = self.function.with_gradient(here)
        by_axis = [self._moved(points + step) - here for step in np.eye(points.shape[1])]  # per metre
        return mean, np.stack([np.einsum("pj,pj->p", there, slope) for slope in by_axis], axis=1)

    def covers(self, points: Array) -> Mask:
        return self.function.covers(self._moved(points))


def value_column(table: Table, domain: Domain, quantity: str) -> str:
    """Return the column of a table that holds the value: ``value``, or the one named like the quantity.

    Raises
    ------
    InputError
        The table has neither.
    """
    columns, axes = table.names, [axis.name for axis in domain.axes]
    for name in ("value", quantity):
        if name in columns and name not in axes:
            return name
    raise UnknownNameError(
        f"no column is called {quantity!r} or value",
        expected=f"one of them beside {', '.join(columns)}",
        where=table.place_of_names,
        fix=f"call the column of the value {quantity!r} or value",
    )


def _from_table(source: Table, domain: Domain, value: str) -> MeanFunction:
    table, path = read_readings(source, [axis.name for axis in domain.axes], value, least=1), source.path
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

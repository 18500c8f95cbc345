"""Rasters: values over two axes from GeoTIFF and NetCDF files; functions of the site from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.belief.mean_functions import Gridded, MeanFunction, Scattered
from fieldbo.domain.domain import Domain
from fieldbo.domain.georeference import WGS84, reprojected, same_crs
from fieldbo.errors import InputError, UnknownNameError, counted
from fieldbo.tables.opening import open_table
from fieldbo.tables.readings import read_readings
from fieldbo.tables.table import Table

if TYPE_CHECKING:
    import xarray


MOST_CELLS = 25_000_000
"""Largest number of a raster's cells: 200 MB."""

TIFF, NETCDF = (".tif", ".tiff"), (".nc", ".nc4", ".cdf", ".h5")
"""Suffixes of the files."""

_HDF5 = b"\x89HDF\r\n\x1a\n"
_DEGREES = frozenset(("degrees_east", "degree_east"))
_EASTWARD = ("x", "lon", "longitude", "easting", "east")  # names of columns' coordinates


@dataclass(frozen=True, eq=False)
class Raster:
    """Values at the centres of cells.

    Attributes
    ----------
    x : (n,) array
        Coordinates of the columns, increasing.
    y : (m,) array
        Coordinates of the rows, increasing: in files that list the northernmost row first, they are turned.
    values : (m, n) array
        NaN where the file has no data.
    crs : str or None
        Coordinate reference system, as the file names it.
    names : (str, str)
        Names of x and y in the file.
    attributes : mapping of str to str
        What the file says of the values, among it their ``name`` and ``units``.
    """

    x: Array
    y: Array
    values: Array
    crs: str | None = None
    names: tuple[str, str] = ("x", "y")
    attributes: Mapping[str, str] = field(default_factory=dict)


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
    if suffix not in (*TIFF, *NETCDF):
        raise InputError(
            f"{path.name} is not a raster that fieldbo can read",
            expected=f"a file that ends in {', '.join((*TIFF, *NETCDF))}",
            where=str(path.parent),
        )
    raster = _read_tiff(path, value) if suffix in TIFF else _read_netcdf(path, value)
    return _sort_ascending(raster, path)


def _read_tiff(path: Path, value: str | None) -> Raster:
    try:
        import rasterio
        from rasterio.errors import RasterioError
    except ImportError:
        raise _not_installed(path, "rasterio") from None
    try:
        with rasterio.open(path, driver="GTiff") as source:  # no other format names further files
            transform = source.transform
            if transform.b or transform.d:
                raise InputError(
                    "the raster is rotated",
                    expected="rows and columns along the axes",
                    where=str(path),
                    fix="warp it first, for example with gdalwarp",
                )
            _check_size(source.width * source.height, path)
            band = _find_band(source.descriptions, value, path)
            values = source.read(band, masked=True).astype(float).filled(np.nan)
            crs = None if source.crs is None else source.crs.to_string()
            x = transform.c + transform.a * (np.arange(source.width) + 0.5)
            y = transform.f + transform.e * (np.arange(source.height) + 0.5)
            attributes = {**source.tags(), **source.tags(band)}
            about = (("units", source.units[band - 1]), ("name", source.descriptions[band - 1]))
            attributes |= {key: text for key, text in about if text}
    except RasterioError as error:
        raise _unreadable(path, error) from None
    return Raster(x, y, values, crs, attributes=attributes)


def _find_band(descriptions: Sequence[str | None], value: str | None, path: Path) -> int:
    """Return the number of a band, counted from 1."""
    names = [str(k) for k in range(1, len(descriptions) + 1)]
    if value is None and len(names) == 1:
        return 1
    if value is not None and value in descriptions:
        return descriptions.index(value) + 1
    if value in names:
        return int(value)
    if value is None:
        raise InputError(
            f"the raster has {len(names)} bands",
            expected="one of them, by number or description",
            where=str(path),
            fix='name it: { file = "...", value = "1" }',
        )
    raise UnknownNameError.of("band", value, [*names, *filter(None, descriptions)], where=str(path))


def _read_netcdf(path: Path, value: str | None) -> Raster:
    import xarray

    try:
        with xarray.open_dataset(path, decode_times=False, engine=_choose_engine(path)) as source:
            variable = _find_variable(source, value, path)
            _check_size(variable.size, path)
            crs = _find_crs(source, variable)
            variable = variable.load()
    except (OSError, ValueError, TypeError, LookupError, EOFError) as error:
        if isinstance(error, InputError):
            raise
        raise _unreadable(path, error) from None
    if str(variable.dims[0]).lower() in _EASTWARD:
        variable = variable.transpose()
    vertical, horizontal = (str(dim) for dim in variable.dims)
    for dim in (horizontal, vertical):
        if dim not in variable.coords:
            raise InputError(
                f"dimension {dim} of {variable.name} has no coordinates",
                expected=f"a variable {dim} with the coordinates along it",
                where=str(path),
            )
    try:
        x, y = (np.asarray(variable.coords[dim], dtype=float) for dim in (horizontal, vertical))
    except (ValueError, TypeError) as error:
        raise _unreadable(path, error) from None
    attributes = {**{key: str(text) for key, text in variable.attrs.items()}, "name": str(variable.name)}
    return Raster(x, y, np.asarray(variable, dtype=float), crs, (horizontal, vertical), attributes)


def _choose_engine(path: Path) -> Literal["h5netcdf", "scipy"]:
    """Return what reads a NetCDF file: version 4 is HDF5, version 3 is not."""
    with path.open("rb") as file:
        if file.read(len(_HDF5)) != _HDF5:
            return "scipy"
    if find_spec("h5netcdf") is None or find_spec("h5py") is None:
        raise _not_installed(path, "h5netcdf")
    return "h5netcdf"


def _find_variable(source: xarray.Dataset, value: str | None, path: Path) -> xarray.DataArray:
    flat = {
        str(name): array.squeeze(drop=True)
        for name, array in source.data_vars.items()
        if array.squeeze(drop=True).ndim == 2 and array.dtype.kind in "fiu"
    }
    if value is None and len(flat) == 1:
        return next(iter(flat.values()))
    if value is not None and value in source.data_vars and value not in flat:
        raise InputError(
            f"variable {value} has the dimensions {', '.join(map(str, source[value].dims)) or 'none'}",
            expected="numbers over two dimensions",
            where=str(path),
            fix="select one time or depth first",
        )
    if value is not None and value in flat:
        return flat[value]
    if value is None:
        raise InputError(
            f"the file has {counted(len(flat), 'variable')} over two dimensions"
            + (f": {', '.join(flat)}" if flat else ""),
            expected="one of them by name" if flat else "a variable over two dimensions",
            where=str(path),
            fix='name it: { file = "...", value = "VARIABLE" }' if flat else None,
        )
    raise UnknownNameError.of("variable", value, flat, where=str(path))


def _find_crs(source: xarray.Dataset, variable: xarray.DataArray) -> str | None:
    """Return the CRS in the CF grid mapping of a variable, if any."""
    name = variable.attrs.get("grid_mapping") or variable.encoding.get("grid_mapping")
    mapping = source.variables.get(name) if name else None
    attributes = {} if mapping is None else mapping.attrs
    crs = attributes.get("crs_wkt") or attributes.get("spatial_ref")
    units = [source[dim].attrs.get("units") for dim in variable.dims if dim in source]
    if crs is None and _DEGREES.intersection(units):
        return WGS84
    return None if crs is None else str(crs)


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


def _check_size(cells: int, path: Path) -> None:
    if cells > MOST_CELLS:
        raise InputError(
            f"the raster has {cells:,} cells",
            expected=f"at most {MOST_CELLS:,}",
            where=str(path),
            fix="crop it to the domain, or make it coarser",
        )


def _not_installed(path: Path, package: str) -> InputError:
    return InputError(
        f"reading {path.name} needs the package {package}, which is not installed",
        expected=f"{package}, or the values in a CSV",
        where=str(path.parent),
        fix="pip install 'fieldbo[geo]'",
    )


def _unreadable(path: Path, error: Exception) -> InputError:
    return InputError(
        f"{path.name} can't be read: {str(error).splitlines()[0] if str(error) else error!r}",
        expected="a GeoTIFF or NetCDF file",
        where=str(path.parent),
    )


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

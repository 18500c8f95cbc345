"""Rasters in NetCDF files of any program: versions 3 and 4, GMT's grids, xarray's, and those of agencies."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.domain.georeference import WGS84
from fieldbo.errors import InputError, UnknownNameError, counted
from fieldbo.world.grids import Raster, check_size, not_installed, unreadable

if TYPE_CHECKING:
    import xarray

NETCDF = (".nc", ".nc4", ".cdf", ".h5")
"""Suffixes of the files."""

_HDF5 = b"\x89HDF\r\n\x1a\n"
_EASTWARD = ("x", "lon", "longitude", "easting", "east", "rlon")  # names of columns' coordinates
_NORTHWARD = ("y", "lat", "latitude", "northing", "north", "rlat")
_STANDARD = {
    "longitude": "east", "projection_x_coordinate": "east", "grid_longitude": "east",
    "latitude": "north", "projection_y_coordinate": "north", "grid_latitude": "north",
}  # fmt: skip
_DEGREES = ("degrees_", "degree_", "degreese", "degreee", "degreesn", "degreen")  # units in CF, in lower case
_PLACES = {"lon": "east", "longitude": "east", "lat": "north", "latitude": "north"}
_LENGTHS = {
    "m": 1.0, "metre": 1.0, "metres": 1.0, "meter": 1.0, "meters": 1.0,
    "km": 1000.0, "kilometre": 1000.0, "kilometres": 1000.0, "kilometer": 1000.0, "kilometers": 1000.0,
}  # fmt: skip


def read_netcdf(path: Path, value: str | None) -> Raster:
    """Read a variable over two axes.

    Raises
    ------
    InputError
        The file can't be read, has no such variable, or does not say the places of its cells.
    """
    import xarray

    try:
        with xarray.open_dataset(path, decode_times=False, engine=_choose_engine(path)) as source:
            variable = _find_variable(source, value, path)
            check_size(variable.size, path)
            crs = _find_crs(source, variable, path)
            variable = variable.load()
    except InputError:
        raise
    except Exception as error:  # h5py raises RuntimeError, too, and other libraries nearly anything
        raise unreadable(path, error) from error
    if _direction(variable, variable.dims[0]) == "east" or _direction(variable, variable.dims[1]) == "north":
        variable = variable.transpose()
    vertical, horizontal = (str(dim) for dim in variable.dims)
    for dim in (horizontal, vertical):
        if dim not in variable.coords:
            raise InputError(
                f"dimension {dim} of {variable.name} has no coordinates",
                expected=f"a variable {dim} with the coordinates along it",
                where=str(path),
                fix="if latitudes and longitudes have two dimensions, regrid it first, for example with cdo "
                f"remapbil or gdalwarp -geoloc NETCDF:{path.name}:{variable.name}",
            )
    try:
        x, y = (_ticks(variable.coords[dim], crs, path) for dim in (horizontal, vertical))
    except (ValueError, TypeError) as error:
        if isinstance(error, InputError):
            raise
        raise unreadable(path, error) from None
    attributes = {key: _text(said) for key, said in variable.attrs.items()} | {"name": str(variable.name)}
    return Raster(x, y, _valid(variable), crs, (horizontal, vertical), attributes)


def _choose_engine(path: Path) -> Literal["h5netcdf", "scipy"]:
    """Return what reads a NetCDF file: version 4 is HDF5, version 3 is not."""
    with path.open("rb") as file:
        head = file.read(len(_HDF5))
    if head.startswith(b"CDF\x05"):
        raise InputError(
            f"{path.name} is NetCDF of the kind CDF-5",
            expected="NetCDF-3 or NetCDF-4",
            where=str(path.parent),
            fix=f"convert it: nccopy -k nc4 {path.name} converted.nc",
        )
    if head != _HDF5:
        return "scipy"
    if find_spec("h5netcdf") is None or find_spec("h5py") is None:
        raise not_installed(path, "h5netcdf")
    return "h5netcdf"


def _find_variable(source: xarray.Dataset, value: str | None, path: Path) -> xarray.DataArray:
    helpers = set(_named_by(source, ("bounds", "coordinates", "grid_mapping", "ancillary_variables")))
    flat = {
        str(name): array.squeeze(drop=True)
        for name, array in source.data_vars.items()
        if array.squeeze(drop=True).ndim == 2 and array.dtype.kind in "fiu"
    }
    chosen = {name: array for name, array in flat.items() if name not in helpers and not _is_place(array)}
    if value is None and len(chosen) == 1:
        return next(iter(chosen.values()))
    if value is not None and value in source.data_vars and value not in flat:
        raise InputError(
            f"variable {value} has the dimensions {', '.join(map(str, source[value].dims)) or 'none'}",
            expected="numbers over two dimensions",
            where=str(path),
            fix="select one time or depth first",
        )
    if value is not None and value in flat:
        return flat[value]
    if value is None and {"x_range", "y_range", "spacing"} <= set(source.variables):
        raise InputError(
            f"{path.name} is a grid of GMT in its old form",
            expected="a grid with coordinates",
            where=str(path),
            fix=f"convert it: gmt grdconvert {path.name} converted.nc=nf",
        )
    if value is None:
        others = [
            f"{name} ({', '.join(map(str, v.dims))})" for name, v in source.data_vars.items() if v.ndim > 2
        ]
        raise InputError(
            f"the file has {counted(len(chosen), 'variable')} over two dimensions"
            + (f": {', '.join(chosen)}" if chosen else "")
            + (f"; over more: {', '.join(others)}" if others and not chosen else ""),
            expected="one of them by name" if chosen else "a variable over two dimensions",
            where=str(path),
            fix='name it: { file = "...", value = "VARIABLE" }'
            if chosen
            else ("select one time or depth first" if others else None),
        )
    raise UnknownNameError.of("variable", value, chosen, where=str(path))


def _named_by(source: xarray.Dataset, keys: Iterable[str]) -> Iterable[str]:
    """Yield the names of variables that others refer to."""
    for variable in source.variables.values():
        for said in (variable.attrs, variable.encoding):
            for key in keys:
                yield from str(said.get(key, "")).split()


def _is_place(array: xarray.DataArray) -> bool:
    """Return whether a variable holds latitudes or longitudes of cells."""
    return array.attrs.get("standard_name") in ("latitude", "longitude") or _in_degrees(array)


def _in_degrees(array: xarray.DataArray | Any) -> bool:
    return str(array.attrs.get("units", "")).lower().startswith(_DEGREES)


def _direction(variable: xarray.DataArray, dim: Any) -> str | None:
    """Return whether a dimension runs east or north, by what its coordinate says and by its name."""
    said = variable.coords[dim].attrs if dim in variable.coords else {}
    unit = str(said.get("units", "")).lower()
    if unit.startswith(_DEGREES):
        return "east" if unit.endswith(("e", "east")) else "north"
    if (known := _STANDARD.get(str(said.get("standard_name")))) is not None:
        return known
    if (axis := str(said.get("axis")).upper()) in ("X", "Y"):
        return "east" if axis == "X" else "north"
    name = str(dim).lower()
    return "east" if name in _EASTWARD else "north" if name in _NORTHWARD else None


def _find_crs(source: xarray.Dataset, variable: xarray.DataArray, path: Path) -> str | None:
    """Return the CRS of a variable: that of its grid mapping, or WGS 84 for longitudes and latitudes."""
    name = variable.attrs.get("grid_mapping") or variable.encoding.get("grid_mapping")
    if name is None or str(name) not in source.variables:
        name = next((n for n in ("spatial_ref", "crs") if n in source.variables), None)
    said = {} if name is None else {k: _text(v) if isinstance(v, str | bytes) else v
                                    for k, v in source.variables[name].attrs.items()}  # fmt: skip
    for key in ("crs_wkt", "spatial_ref"):
        if said.get(key):
            return str(said[key])
    if said.get("grid_mapping_name") is not None:
        return _crs_from_cf(said, path)
    dims = [str(dim) for dim in variable.dims]
    if any(dim in source and _in_degrees(source[dim]) for dim in dims):
        return WGS84
    places = {_PLACES.get(dim.lower()) for dim in dims}
    return WGS84 if places == {"east", "north"} else None


def _crs_from_cf(said: dict[str, Any], path: Path) -> str:
    """Return the CRS that the attributes of a CF grid mapping describe."""
    from pyproj import CRS
    from pyproj.exceptions import CRSError

    try:
        text: str = CRS.from_cf(said).to_wkt()
    except (CRSError, KeyError, ValueError, TypeError):
        raise InputError(
            f"the grid mapping {said['grid_mapping_name']!r} of {path.name} can't be understood",
            expected="a grid mapping of the CF conventions, or its crs_wkt",
            where=str(path),
            fix="warp it first, for example with gdalwarp",
        ) from None
    return text


def _ticks(coordinate: Any, crs: str | None, path: Path) -> Array:
    """Return the coordinates along a dimension, lengths in metres."""
    ticks = np.asarray(coordinate, dtype=float)
    unit = _text(coordinate.attrs.get("units", "")).strip()
    if unit.lower() in ("", "1", "degrees", "degree") or unit.lower().startswith(_DEGREES):
        return ticks
    if unit.lower() in _LENGTHS:
        return ticks * _LENGTHS[unit.lower()] if _LENGTHS[unit.lower()] != 1.0 else ticks
    if crs is None:
        return ticks
    raise InputError(
        f"the coordinates {coordinate.name} are in {unit!r}",
        expected="metres, kilometres or degrees",
        where=str(path),
    )


def _valid(variable: xarray.DataArray) -> Array:
    """Return the values (m, n), NaN outside the range that the file calls valid."""
    values = np.array(variable, dtype=float)
    said = variable.attrs
    low, high = said.get("valid_range", (said.get("valid_min"), said.get("valid_max")))
    scale, offset = (
        float(variable.encoding.get(k, d)) for k, d in (("scale_factor", 1.0), ("add_offset", 0.0))
    )
    packed = np.dtype(variable.encoding.get("dtype", values.dtype)).kind in "iu"
    with np.errstate(invalid="ignore"):
        for bound, outside in ((low, np.less), (high, np.greater)):
            if bound is None:
                continue
            limit = float(bound)
            if packed and np.asarray(bound).dtype.kind in "iu":  # as stored
                limit = limit * scale + offset
            slack = 1e-6 * max(abs(limit), abs(scale) if packed else 0.0)
            wrong = outside(values, limit - slack if outside is np.less else limit + slack)
            values[wrong] = np.nan
    return values


def _text(said: Any) -> str:
    """Return an attribute as text; some programs write Latin-1 where NetCDF has UTF-8."""
    if isinstance(said, bytes):
        said = said.decode("utf-8", "surrogateescape")
    text = str(said)
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogateescape").decode("latin-1")
    return text

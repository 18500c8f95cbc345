"""The bottom of the water from NetCDF and GeoTIFF files, as depths or as elevations."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.domain.bottom import Bottom
from fieldbo.domain.georeference import WGS84, crs_name
from fieldbo.errors import InputError, counted

_METRES = {
    "m": 1.0, "metre": 1.0, "metres": 1.0, "meter": 1.0, "meters": 1.0, "cm": 0.01, "dm": 0.1, "km": 1000.0,
    "ft": 0.3048, "foot": 0.3048, "feet": 0.3048,
}  # fmt: skip
_DOWN, _UP = ("depth",), ("elevation", "altitude", "height")  # in names of what is positive down, and up
_DEGREES = ("degrees_east", "degree_east", "degrees_north", "degree_north")


@dataclass(frozen=True, eq=False)
class Raster:
    """Values at the middles of cells.

    Attributes
    ----------
    x, y : (n,) array and (m,) array
        Coordinates, increasing.
    values : (m, n) array
        NaN where the file has no data.
    crs : str or None
        Coordinate reference system, as the file names it.
    attributes : dict of str to str
        What the file says about the values, and their name.
    """

    x: Array
    y: Array
    values: Array
    crs: str | None = None
    attributes: dict[str, str] = field(default_factory=dict)


def read_bottom(path: Path, crs: str) -> Bottom:
    """Read the bottom from a raster of depths or elevations, in metres, over a domain in a CRS.

    Whether the values are depths (positive down) or elevations (positive up) follows from the attribute
    ``positive`` (CF conventions), or from the name of the variable, or from their sign.

    Parameters
    ----------
    path : Path
        A NetCDF file with one variable over two dimensions, or a GeoTIFF with one band.
    crs : str
        That of the domain; the raster's own may differ. A raster without one is in this one.

    Raises
    ------
    InputError
        The file can't be read, or its unit or CRS is unknown.
    """
    if not path.is_file():
        raise InputError(
            f"there is no file {path.name}", expected="a NetCDF or GeoTIFF file", where=str(path)
        )
    raster = _tiff(path) if path.suffix.lower() in (".tif", ".tiff") else _netcdf(path)
    depth, what = _depths(raster, path)
    x, y = raster.x, raster.y
    if len(x) > 1 and x[0] > x[-1]:
        x, depth = x[::-1], depth[:, ::-1]
    if len(y) > 1 and y[0] > y[-1]:
        y, depth = y[::-1], depth[::-1]
    try:
        place = "in the world's CRS" if raster.crs is None else f"in {crs_name(raster.crs)}"
        return Bottom(x, y, depth, raster.crs, crs, source=f"{path.name}: {what}, {place}")
    except InputError as error:
        raise error.at(str(path)) from None


def _depths(raster: Raster, path: Path) -> tuple[Array, str]:
    """Return the values as depths (m, n) in metres, positive down, and in words what they were."""
    said = raster.attributes
    unit = said.get("units", "m").strip().lower()
    if unit not in _METRES:
        raise InputError(
            f"the values are in {unit!r}", expected=f"one of {', '.join(_METRES)}", where=f"{path}: units"
        )
    names = " ".join(said.get(key, "") for key in ("name", "standard_name", "long_name")).lower()
    known = raster.values[np.isfinite(raster.values)]
    called_down, called_up = (any(word in names for word in words) for words in (_DOWN, _UP))
    if (positive := said.get("positive", "").lower()) in ("down", "up"):
        down, why = positive == "down", f'positive = "{positive}"'
    elif called_down != called_up and not (called_down and (known < 0).all()):
        down, why = called_down, f"called {said.get('name') or names.strip()}"
    else:
        down = bool(np.median(known) >= 0) if len(known) else True
        why = f"mostly {'positive' if down else 'negative'}"
    return (_METRES[unit] if down else -_METRES[unit]) * raster.values, (
        f"{'depths' if down else 'elevations'} ({why})"
    )


def _netcdf(path: Path) -> Raster:
    import xarray as xr

    try:
        with xr.open_dataset(path, decode_times=False) as opened:
            data = opened.load()
    except (OSError, ValueError, TypeError, ImportError) as error:
        raise _unreadable(path, error) from None
    flat = {str(k): v.squeeze(drop=True) for k, v in data.data_vars.items()}
    flat = {name: values for name, values in flat.items() if values.ndim == 2}
    if len(flat) != 1:
        raise InputError(
            f"the file has {counted(len(flat), 'variable')} over two dimensions"
            + (f": {', '.join(flat)}" if flat else ""),
            expected="one, the depth of the bottom",
            where=str(path),
        )
    [(name, values)] = flat.items()
    mapping = str(values.attrs.get("grid_mapping") or values.encoding.get("grid_mapping") or "")
    said: dict[str, Any] = data[mapping].attrs if mapping in data else {}
    crs = said.get("crs_wkt") or said.get("spatial_ref") or None
    for axis in values.dims:
        if axis not in values.coords:
            raise InputError(
                f"dimension {axis} has no coordinates", expected="a variable of that name", where=str(path)
            )
    if crs is None and all(values[axis].attrs.get("units") in _DEGREES for axis in values.dims):
        crs = WGS84
    y, x = values.dims
    if str(y).lower() in ("x", "lon", "longitude", "easting", "east"):
        values, x, y = values.transpose(), y, x
    attributes = {**{k: str(v) for k, v in values.attrs.items()}, "name": name}
    across, up = (np.asarray(values[axis], dtype=float) for axis in (x, y))
    return Raster(across, up, np.asarray(values, dtype=float), crs, attributes)


def _tiff(path: Path) -> Raster:
    try:
        import rasterio
        from rasterio.errors import RasterioError
    except ImportError:
        raise InputError(
            f"reading {path.name} needs the package rasterio, which is not installed",
            expected="rasterio, or a NetCDF file",
            where=str(path),
            fix="pip install rasterio",
        ) from None
    try:
        with rasterio.open(path) as file:
            at, said = file.transform, {**file.tags(), **file.tags(1)}
            if file.count != 1 or at.b or at.d:
                raise InputError(
                    f"the raster has {counted(file.count, 'band')}" + (" and is rotated" if at.b else ""),
                    expected="one band, with rows and columns along the axes",
                    where=str(path),
                )
            values = file.read(1, masked=True).astype(float).filled(np.nan)
            crs = None if file.crs is None else file.crs.to_string()
            unit, name = file.units[0], file.descriptions[0]
            x = at.c + at.a * (np.arange(file.width) + 0.5)
            y = at.f + at.e * (np.arange(file.height) + 0.5)
    except RasterioError as error:
        raise _unreadable(path, error) from None
    said |= {k: v for k, v in (("units", unit), ("name", name)) if v}
    return Raster(x, y, values, crs, said)


def _unreadable(path: Path, error: Exception) -> InputError:
    return InputError(
        f"{path.name} can't be read: {str(error).splitlines()[0] if str(error) else error!r}",
        expected="a NetCDF or GeoTIFF file of the depth of the bottom",
        where=str(path),
    )

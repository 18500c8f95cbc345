"""Rasters that GDAL reads: GeoTIFF, and grids of other programs."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.errors import InputError, UnknownNameError

TIFF = (".tif", ".tiff")
GRIDS = {".asc": "AAIGrid", ".grd": "GSAG", ".xyz": "XYZ", ".bag": "BAG"}
"""Suffixes of other grids, and what reads them: no driver that opens further files by name."""

_SURFER = {b"DSAA": "GSAG", b"DSBB": "GSBG", b"DSRB": "GS7BG"}  # by how the file begins

MOST_CELLS = 25_000_000
"""Largest number of a raster's cells: 200 MB."""

_COLOURS = {"red", "green", "blue", "palette", "cyan", "magenta", "yellow", "black"}


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


def check_size(cells: int, path: Path) -> None:
    """Raise an `InputError` for a raster that is too large."""
    if cells > MOST_CELLS:
        raise InputError(
            f"the raster has {cells:,} cells",
            expected=f"at most {MOST_CELLS:,}",
            where=str(path),
            fix="crop it to the domain, or make it coarser",
        )


def not_installed(path: Path, package: str) -> InputError:
    """Return the error for a missing package."""
    return InputError(
        f"reading {path.name} needs the package {package}, which is not installed",
        expected=f"{package}, or the values in a CSV",
        where=str(path.parent),
        fix="pip install 'fieldbo[geo]'",
    )


def unreadable(path: Path, error: Exception, fix: str | None = None) -> InputError:
    """Return the error for a file that a library can't read."""
    said = str(error.__cause__ or error).strip("'\"")  # rasterio keeps GDAL's reason as the cause
    return InputError(
        f"{path.name} can't be read: {said.splitlines()[0] if said else repr(error)}",
        expected="a GeoTIFF or NetCDF file, or a grid",
        where=str(path.parent),
        fix=fix,
    )


def read_grid(path: Path, value: str | None) -> Raster:
    """Read one band of a file that GDAL opens; scale, offset, masks and nodata are applied.

    Raises
    ------
    InputError
        The file can't be read, has no such band, is a picture, is rotated, too large, or has no place.
    """
    rasterio = _import(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NotGeoreferencedWarning: it is an error below
            source = rasterio.open(path, driver=_driver(path))
        with source:
            _check_place(source, path)
            check_size(source.width * source.height, path)
            band = _find_band(source, value, path)
            values = _read_band(source, band)
            x, y, values = _along_axes(source, values, path)
            crs = _crs_text(source)
            attributes = _describe(source, band)
    except rasterio.errors.RasterioError as error:
        fix = "grid the points in a GIS (QGIS: Grid), and export a GeoTIFF" if path.suffix == ".xyz" else None
        raise unreadable(path, error, fix) from None
    return Raster(x, y, values, crs, attributes=attributes)


def files_of(path: Path) -> list[Path]:
    """Return a raster's file and those beside it that say its place, its CRS or its mask."""
    if path.suffix.lower() not in (*TIFF, *GRIDS) or _is_netcdf(path):
        return [path]
    rasterio = _import(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with rasterio.open(path, driver=_driver(path)) as source:
            beside = [Path(file) for file in source.files]
    return [
        path,
        *(
            file
            for file in beside
            if file.parent.resolve() == path.parent.resolve() and file.name != path.name
        ),
    ]


def copies_of(path: Path, stem: str) -> dict[str, bytes]:
    """Return what to write to keep a raster, and what lies beside it, under another name."""
    name = stem + path.suffix.lower()
    return {
        name + file.name[len(path.name) :]
        if file.name.startswith(path.name)
        else stem + file.suffix: file.read_bytes()
        for file in files_of(path)
        if file.suffix != ".ovr"
    }


def _import(path: Path) -> Any:
    try:
        import rasterio
    except ImportError:
        raise not_installed(path, "rasterio") from None
    return rasterio


def _is_netcdf(path: Path) -> bool:
    """Return whether a file begins as NetCDF does: those of GMT end in .grd, as Surfer's do."""
    with path.open("rb") as file:
        head = file.read(8)
    return head.startswith((b"CDF", b"\x89HDF"))


def _driver(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix in TIFF:
        return "GTiff"
    with path.open("rb") as file:
        return _SURFER.get(file.read(4), GRIDS[suffix])


def _check_place(source: Any, path: Path) -> None:
    """Raise an `InputError` for a raster that does not say where its cells are."""
    if not source.transform.is_identity:
        return
    by_points = bool(source.gcps[0])
    raise InputError(
        f"{path.name} is placed by control points alone"
        if by_points
        else f"{path.name} does not say its place",
        expected="a raster with the coordinates of its cells, in the file or in a .tfw beside it",
        where=str(path.parent),
        fix=f"warp it first: gdalwarp {path.name} placed.tif" if by_points else "georeference it in a GIS",
    )


def _find_band(source: Any, value: str | None, path: Path) -> int:
    """Return the number of a band, counted from 1; masks and colours are none."""
    kinds = [kind.name for kind in source.colorinterp]
    numbers = [k for k, kind in enumerate(kinds, 1) if kind != "alpha"]
    names = [str(k) for k in numbers]
    descriptions: Sequence[str | None] = [source.descriptions[k - 1] for k in numbers]
    if value in descriptions and value is not None:
        band = numbers[descriptions.index(value)]
    elif value in names:
        band = int(value)
    elif value is not None:
        raise UnknownNameError.of("band", value, [*names, *filter(None, descriptions)], where=str(path))
    elif len(numbers) != 1 and not set(kinds) & _COLOURS:
        said = [f"{n} ({text})" if text else n for n, text in zip(names, descriptions, strict=True)]
        raise InputError(
            f"the raster has {len(names)} bands: {', '.join(said)}",
            expected="one of them, by number or description",
            where=str(path),
            fix='name it: { file = "...", value = "1" }',
        )
    else:
        band = numbers[0]
    if kinds[band - 1] in _COLOURS or "complex" in source.dtypes[band - 1]:
        raise InputError(
            f"{path.name} holds {'colours' if kinds[band - 1] in _COLOURS else 'complex numbers'}",
            expected="one number per cell",
            where=str(path),
            fix="export the values themselves, not the picture (QGIS: Save As, Raw data)",
        )
    return band


def _read_band(source: Any, band: int) -> Array:
    """Return the values (m, n) as GDAL means them, NaN where they are masked."""
    raw = source.read(band, masked=True).astype(float).filled(np.nan)
    scale, offset = source.scales[band - 1], source.offsets[band - 1]
    values: Array = raw if (scale, offset) == (1.0, 0.0) else raw * scale + offset
    return values


def _along_axes(source: Any, values: Array, path: Path) -> tuple[Array, Array, Array]:
    """Return x, y and values of a raster whose rows and columns run along the axes, in either order."""
    a, b, c, d, e, f, *_ = source.transform
    columns, rows = np.arange(source.width) + 0.5, np.arange(source.height) + 0.5
    if b == d == 0.0:
        return c + a * columns, f + e * rows, values
    if a == e == 0.0:
        return c + b * rows, f + d * columns, values.T
    raise InputError(
        "the raster is rotated",
        expected="rows and columns along the axes",
        where=str(path),
        fix=f"warp it first, for example with gdalwarp {path.name} north-up.tif",
    )


def _crs_text(source: Any) -> str | None:
    """Return the CRS; None if there is none, or one without a place on the Earth."""
    if source.crs is None:
        return None
    text: str = source.crs.to_string()
    return None if text.startswith(("LOCAL_CS", "ENGCRS")) else text


def _describe(source: Any, band: int) -> dict[str, str]:
    """Return what a file says of a band: its tags, its name, its unit, and the direction of its heights."""
    attributes = {**source.tags(), **source.tags(band)}
    unit, positive = _vertical(source.crs)
    about = (
        ("units", source.units[band - 1] or unit),
        ("name", source.descriptions[band - 1]),
        ("vertical axis", positive),
    )
    return attributes | {key: text for key, text in about if text}


def _vertical(crs: Any) -> tuple[str | None, str | None]:
    """Return the unit and the direction of a CRS's vertical axis."""
    from pyproj import CRS
    from pyproj.exceptions import CRSError

    if crs is None:
        return None, None
    try:
        axes = [axis for axis in CRS.from_wkt(crs.to_wkt()).axis_info if axis.direction in ("up", "down")]
    except CRSError:
        return None, None
    return (axes[0].unit_name, axes[0].direction) if axes else (None, None)

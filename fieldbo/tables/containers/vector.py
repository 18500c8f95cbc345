"""Points in files of geographic information systems: GeoPackage, shapefile and FlatGeobuf, read by GDAL."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from fieldbo._numerics.arrays import Array
from fieldbo.domain.georeference import WGS84, crs_of, reprojected, same_crs
from fieldbo.errors import InputError, counted
from fieldbo.tables.containers.filling import (
    LAYER_OPTION,
    POSITION_UNITS,
    Filled,
    choose,
    damage_named,
    describe,
    library,
    make_distinct,
    make_table,
    position_role,
    write_number,
    write_numbers,
)
from fieldbo.tables.containers.geojson import holds_no_points
from fieldbo.tables.table import Table

_KIND = "a vector layer"
_POINTS = ("Point", "MultiPoint")
_FURTHEST_DEGREES = 360.0 + 1e-6
_GDAL_TIME = re.compile(r"(\d{4})/(\d\d)/(\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?)(?:([+-]\d\d):?(\d\d)?)?")
"""A time as GDAL writes it into text: 2024/05/01 12:00:00+00."""


def read(path: Path, layer: str | None = None) -> Table:
    """Return the points of a layer with their attributes; positions become degrees on WGS 84.

    Parameters
    ----------
    path : Path
    layer : str, optional
        Name of the layer, if there are several with points.

    Raises
    ------
    InputError
        The file is damaged, has no points, or several layers of them; or it does not state its CRS.
    """
    pyogrio = library("pyogrio", "geo", path, "GeoPackages and shapefiles")
    with damage_named(path, _KIND, "export the layer again, as GeoPackage"):
        layers = {str(name): str(kind or "no geometry") for name, kind in pyogrio.list_layers(path)}
        points = {name: kind for name, kind in layers.items() if kind.startswith((*_POINTS, "Unknown"))}
        if not points and layer is None:
            raise holds_no_points(path, {f"{kind} ({name})" for name, kind in layers.items()}, len(layers))
        chosen = choose(path, layers if layer is not None else points, layer, "layer")
        meta, fids, shapes, fields = pyogrio.raw.read(
            path, layer=chosen, datetime_as_string=True, return_fids=True
        )
        geometries: NDArray[Any] = shapely.from_wkb([] if shapes is None else shapes)
    kinds = {geometry.geom_type for geometry in geometries if geometry is not None}
    if not kinds & set(_POINTS):
        raise holds_no_points(path, kinds or {"no geometries"}, max(1, len(geometries)))
    notes = [f"layer {chosen!r}: {counted(len(geometries), 'feature')}"]
    others = {name: kind for name, kind in layers.items() if name != chosen}
    if others:
        notes.append(f"other layers are left out: {describe(others)}; {LAYER_OPTION} NAME takes one of these")
    left = sorted(kinds - set(_POINTS))
    if left:
        notes.append(f"features that are no points are left out: {', '.join(left)}")
    parts, rows = shapely.get_parts(geometries, return_index=True)
    kept = np.array([part is not None and part.geom_type == "Point" and not part.is_empty for part in parts])
    parts, rows = parts[kept], rows[kept]
    if len(np.unique(rows)) < len(rows):
        notes.append("features of several points: each of these is a reading")
    xy, about = _put_in_degrees(path, shapely.get_coordinates(parts), meta["crs"])
    notes += about
    columns = {
        "latitude": Filled(write_numbers(xy[:, 1]), POSITION_UNITS["latitude"], "latitude"),
        "longitude": Filled(write_numbers(xy[:, 0]), POSITION_UNITS["longitude"], "longitude"),
    }
    heights = shapely.get_coordinates(parts, include_z=True)[:, 2]
    if np.isfinite(heights).any() and np.nanmax(np.abs(heights)) > 0.0:
        columns["height"] = Filled(write_numbers(heights), "m")
    for name, values in zip(meta["fields"], fields, strict=True):
        cells = _write(values[rows])
        columns[make_distinct(str(name), columns)] = Filled(cells, role=position_role(str(name)))
    return make_table(
        path, columns, form="vector layer", row_word="feature", notes=notes,
        lines=np.asarray(fids, dtype=np.int64)[rows],
    )  # fmt: skip


def _write(values: NDArray[Any]) -> tuple[str, ...]:
    """Return the values of an attribute as cells."""
    if values.dtype.kind == "b":
        return tuple("true" if value else "false" for value in values)
    if values.dtype.kind in "iu":
        return tuple(map(str, values.tolist()))
    if values.dtype.kind == "f":
        return write_numbers(values)
    return tuple(_write_one(value) for value in values)


def _write_one(value: Any) -> str:
    if value is None or isinstance(value, bytes):
        return ""
    if not isinstance(value, str):
        return write_number(value) if isinstance(value, (int, float)) else str(value)
    found = _GDAL_TIME.fullmatch(value.strip())
    if found is None:
        return " ".join(value.split())
    year, month, day, clock, hours, minutes = found.groups()
    return f"{year}-{month}-{day}T{clock}" + (f"{hours}:{minutes or '00'}" if hours else "")


def _put_in_degrees(path: Path, xy: Array, stated: str | None) -> tuple[Array, list[str]]:
    """Return points (n, 2) in longitude and latitude on WGS 84, and a note if they were converted."""
    if stated is None:
        raise InputError(
            f"{path.name} does not say its coordinate reference system",
            expected="a layer with a CRS; that of a shapefile is in the .prj file beside it",
            where=str(path),
            fix="copy the .prj file, too, or assign the CRS in a GIS and export the layer as GeoPackage",
        )
    crs = crs_of(stated, str(path))
    if crs.is_geographic and np.abs(xy).max() > _FURTHEST_DEGREES:
        raise InputError(
            f"{path.name} is in degrees ({crs.name}), but its coordinates reach {np.abs(xy).max():,.0f}",
            expected="coordinates that fit the CRS",
            where=str(path),
            fix="assign the right CRS in a GIS (QGIS: Assign projection) and export the layer again",
        )
    if same_crs(stated, WGS84):
        return xy, []
    return reprojected(xy, stated, WGS84), [f"positions are converted from {crs.name} to degrees on WGS 84"]

"""GeoJSON files with a point per reading."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from fieldbo.domain.georeference import WGS84, crs_of, reprojected, same_crs
from fieldbo.errors import InputError, counted
from fieldbo.tables.containers.filling import (
    LAYER_OPTION,
    POSITION_ROLES,
    POSITION_UNITS,
    damage_named,
    make_distinct,
    make_table_of_points,
    position_role,
    write_number,
)
from fieldbo.tables.table import Table

_DEGREES = re.compile(r"CRS:?84|EPSG:{1,2}4326$")


def read(path: Path, layer: str | None = None) -> Table:
    """Return the points of a GeoJSON file with their properties, numbers as they are written.

    A file with a member ``crs``, as GeoJSON had it until 2016, is reprojected to degrees.

    Raises
    ------
    InputError
        The file is damaged, or holds lines and areas only.
    """
    with damage_named(path, "GeoJSON"):
        content = json.loads(path.read_text(encoding="utf-8-sig"), parse_float=str, parse_int=str)
        features = content["features"] if content.get("type") == "FeatureCollection" else [content]
        points: list[dict[str, str]] = []
        kinds: set[str] = set()
        several = 0
        for feature in features:
            geometry = feature.get("geometry") if feature.get("type") == "Feature" else feature
            kind = (geometry or {}).get("type", "nothing")
            kinds.add(kind)
            if kind not in ("Point", "MultiPoint"):
                continue
            places = [geometry["coordinates"]] if kind == "Point" else geometry["coordinates"]
            several += len(places) > 1
            points += [_parse(place, feature.get("properties") or {}) for place in places]
    if layer is not None:
        raise InputError(f"{path.name} is GeoJSON, without layers", expected="no layer", where=LAYER_OPTION)
    if not points:
        raise holds_no_points(path, kinds, len(features))
    notes = [f"GeoJSON: {counted(len(points), 'point')}"]
    others = kinds - {"Point", "MultiPoint"}
    if others:
        notes.append(f"features that are no points are left out: {', '.join(sorted(others))}")
    if several:
        notes.append(f"{counted(several, 'feature')} of several points: each of these is a reading")
    notes += _put_in_degrees(path, content, points)
    units = {**POSITION_UNITS, "height": "m"}
    return make_table_of_points(path, points, units, _roles(points), form="GeoJSON", notes=notes)


def holds_no_points(path: Path, kinds: set[str], features: int) -> InputError:
    """Return the error for a layer without points."""
    what = " and ".join(sorted(kinds)) if features else "no features"
    return InputError(
        f"{path.name} holds {what}, no points",
        expected="a point per reading",
        where=str(path),
        fix="give areas with --outline or --avoid; as earlier readings, export points",
    )


def _parse(place: list[str], properties: dict[str, Any]) -> dict[str, str]:
    """Return the cells of a point; its position comes first."""
    lon, lat, *height = place
    float(lon), float(lat)
    cells = {"latitude": lat, "longitude": lon}
    if height and float(height[0]):
        cells["height"] = height[0]
    for name, value in properties.items():
        cells[make_distinct(name, cells)] = _write(value)
    return cells


def _write(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return " ".join(value.split())
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value)


def _roles(points: list[dict[str, str]]) -> dict[str, str]:
    """Return the roles of the position, and of properties that are called like it."""
    others = {name: role for point in points for name in point if (role := position_role(name.split(".")[0]))}
    return {**others, "latitude": POSITION_ROLES["latitude"], "longitude": POSITION_ROLES["longitude"]}


def _put_in_degrees(path: Path, content: dict[str, Any], points: list[dict[str, str]]) -> list[str]:
    """Reproject the points if the file states another CRS than degrees on WGS 84, and return a note on it."""
    stated = content.get("crs")
    if not stated:
        return _check_degrees(path, points)
    name = str((stated.get("properties") or {}).get("name", "")) if isinstance(stated, dict) else str(stated)
    if not name or _DEGREES.search(name):
        return _check_degrees(path, points)
    crs = crs_of(name, f"{path}: crs")
    if same_crs(name, WGS84):
        return _check_degrees(path, points)
    xy = np.array([[float(point["longitude"]), float(point["latitude"])] for point in points])
    for point, (lon, lat) in zip(points, reprojected(xy, name, WGS84).tolist(), strict=True):
        point["longitude"], point["latitude"] = write_number(lon), write_number(lat)
    return [f"positions are converted from {crs.name} to degrees on WGS 84"]


def _check_degrees(path: Path, points: list[dict[str, str]]) -> list[str]:
    """Raise an `InputError` if coordinates are none in degrees."""
    for number, point in enumerate(points, 1):
        if abs(float(point["latitude"])) > 90.0 or abs(float(point["longitude"])) > 360.0:
            raise InputError(
                f"{point['longitude']}, {point['latitude']} is not in degrees, as GeoJSON must be",
                expected="longitude, latitude on WGS 84",
                where=f"{path}, point {number}",
                fix="export it with the CRS EPSG:4326, or as GeoPackage, which states its own",
            )
    return []

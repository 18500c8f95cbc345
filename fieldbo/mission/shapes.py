"""Outlines and zones of worlds: the polygons of GeoJSON files in a world's folder.

GeoJSON has longitudes and latitudes on WGS 84 (RFC 7946).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import shapely

from fieldbo.domain.georeference import WGS84, check_degrees, reprojected
from fieldbo.domain.obstacles import Obstacle, Region
from fieldbo.errors import InputError
from fieldbo.mission.areas import around, cut, joined, leaves, union_of, unrolled
from fieldbo.mission.files import write_whole

_DIGITS = 9  # degrees, to a tenth of a millimetre
_NEAR_180 = 170.0  # degrees, on both sides: an area that wide lies across 180


@dataclass(frozen=True, eq=False)
class Shape:
    """A named polygon, or several, in some CRS.

    Attributes
    ----------
    name : str
        Empty if it has none.
    area : shapely.Polygon or shapely.MultiPolygon
    """

    name: str
    area: Region


def read_shapes(path: Path, crs: str, margin: float | None = None, fix: str | None = None) -> list[Shape]:
    """Return the areas of a GeoJSON file in a projected CRS.

    Parameters
    ----------
    path : Path
        Features, one feature, or a geometry; collections may be nested.
    crs : str
    margin : float, optional
        Distance in metres around points and lines; without it, they are an error.
    fix : str, optional
        What to do about that error.

    Raises
    ------
    InputError
        The file is missing, not GeoJSON, or holds something other than valid polygons.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InputError(
            f"{path.name} can't be read: {error.strerror}", expected="a GeoJSON file", where=str(path)
        ) from None
    except (ValueError, RecursionError):
        raise _not_geojson(path) from None
    features = features_of(content)
    if not features:
        raise _not_geojson(path)
    shapes = [_parse_shape(feature, number, path, margin, fix) for number, feature in enumerate(features)]
    whole, _ = joined([shape.area for shape in shapes], str(path), f"{path}")
    return [_place(Shape(shapes[k].name, area), k, path, crs) for k, area in whole]


def features_of(content: Any) -> list[Any]:
    """Return the features of GeoJSON, a geometry as one; empty if it is something else.

    Examples
    --------
    >>> features_of({"type": "Point", "coordinates": [8, 47]})
    [{'type': 'Feature', 'properties': {}, 'geometry': {'type': 'Point', 'coordinates': [8, 47]}}]
    """
    kind = content.get("type") if isinstance(content, dict) else None
    if kind == "Feature":
        return [content]
    if isinstance(content, dict) and isinstance(features := content.get("features"), list):
        return features
    if isinstance(kind, str) and ("coordinates" in content or "geometries" in content):
        return [{"type": "Feature", "properties": {}, "geometry": content}]
    return []


def _parse_shape(feature: Any, number: int, path: Path, margin: float | None, fix: str | None) -> Shape:
    """Return a feature's area in degrees."""
    where = f"{path}: features[{number}]"
    try:
        geometry = shapely.geometry.shape(feature["geometry"])
        name = str((feature.get("properties") or {}).get("name") or "")
        parts = leaves(shapely.force_2d(geometry))
    except (
        *(KeyError, TypeError, ValueError, AttributeError),
        *(OverflowError, RecursionError, shapely.errors.ShapelyError),
    ):
        raise InputError(
            "the feature has no geometry that can be read",
            expected="a Polygon or MultiPolygon in longitude and latitude",
            where=where,
        ) from None
    if all(part.is_empty for part in parts):
        raise InputError("the feature is empty", expected="a polygon", where=where)
    corners = shapely.get_coordinates(parts)
    check_degrees(corners[:, 1], corners[:, 0], where)
    marks = [part for part in parts if not isinstance(part, shapely.Polygon)]
    if marks and margin is None:
        inner = "" if marks == [geometry] else f" with a {marks[0].geom_type}"
        what = f"{geometry.geom_type}{inner}"
        raise InputError(
            f"the feature is a {what}", expected="a Polygon or MultiPolygon", where=where, fix=fix
        )
    areas = [part for part in parts if isinstance(part, shapely.Polygon)]
    around_marks = [around(mark, margin, WGS84) for mark in marks if margin is not None]
    turned = [unrolled(area, where, where) for area in (*areas, *around_marks)]
    for area in turned:  # across 180 degrees, edges cross unless longitudes are continuous
        _check_valid(area, where)
    return Shape(name, _together(turned))


def _together(areas: list[Region]) -> Region:
    """Return areas as one, as they are if they are apart."""
    if len(areas) == 1:
        return areas[0]
    parts = [part for area in areas for part in shapely.get_parts(area)]
    whole = shapely.MultiPolygon(parts)
    return whole if whole.is_valid else union_of(parts)


def _place(shape: Shape, number: int, path: Path, crs: str) -> Shape:
    """Return a shape in a projected CRS."""
    placed: Region = shapely.transform(shape.area, lambda xy: reprojected(xy, WGS84, crs))
    _check_valid(placed, f"{path}: features[{number}]")
    return Shape(shape.name, placed)


def _check_valid(area: Region, where: str) -> None:
    if area.is_empty or (area.is_valid and area.area > 0):
        return
    raise InputError(
        f"the feature is not a valid polygon: {shapely.is_valid_reason(area)}",
        expected="a polygon whose edges do not cross",
        where=where,
        fix="repair it in a GIS, for example with Fix geometries in QGIS",
    )


def _not_geojson(path: Path) -> InputError:
    return InputError(
        f"{path.name} is not a GeoJSON file with features",
        expected='{"type": "FeatureCollection", "features": [...]} of polygons in longitude and latitude',
        where=str(path),
    )


def as_outline(shapes: list[Shape]) -> Region:
    """Return the area that shapes cover together."""
    area = shapely.union_all([shape.area for shape in shapes])
    assert isinstance(area, Region)
    return area


def as_obstacles(shapes: list[Shape]) -> list[Obstacle]:
    """Return shapes as obstacles with distinct names; holes in them are filled."""
    obstacles: list[Obstacle] = []
    for shape in shapes:
        for part in shapely.get_parts(shape.area):
            stem = shape.name or "zone"
            taken = {o.name for o in obstacles}
            names = (f"{stem} {k}" if k else stem for k in range(0 if shape.name else 1, 100_000))
            name = next(n for n in names if n not in taken)
            corners = shapely.get_coordinates(part.exterior)[:-1]
            obstacles.append(Obstacle(name, corners=tuple(map(tuple, corners.tolist()))))
    return obstacles


def write_shapes(path: Path, shapes: list[Shape], crs: str) -> None:
    """Write polygons in a projected CRS as GeoJSON, in longitude and latitude."""
    features = []
    for shape in shapes:
        turned = shapely.orient_polygons(shape.area)  # RFC 7946: exteriors counterclockwise
        placed = shapely.transform(turned, lambda xy: np.round(reprojected(xy, crs, WGS84), _DIGITS))
        if np.abs(shapely.bounds(placed)[[0, 2]]).min() > _NEAR_180:
            placed = shapely.orient_polygons(cut(unrolled(placed, path.name, str(path))))
        geometry = json.loads(shapely.to_geojson(placed))
        properties = {"name": shape.name} if shape.name else {}
        features.append(json.dumps({"type": "Feature", "properties": properties, "geometry": geometry}))
    lines = ",\n".join(features)
    write_whole(path, f'{{"type": "FeatureCollection", "features": [\n{lines}\n]}}\n'.encode())


NAME = "closed area"
"""Name of an area that has none of its own."""

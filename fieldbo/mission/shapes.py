"""Polygons from GeoJSON files in a world's folder: its outline, and the zones to avoid.

GeoJSON has longitudes and latitudes on WGS 84 (RFC 7946). `fieldbo.mission.new.layers` imports other formats.
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
from fieldbo.mission.files import write_whole

_DIGITS = 9  # degrees, to a tenth of a millimetre


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


def read_shapes(path: Path, crs: str) -> list[Shape]:
    """Return the polygons of a GeoJSON file in a projected CRS.

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
    features = content.get("features") if isinstance(content, dict) else None
    if not isinstance(features, list) or not features:
        raise _not_geojson(path)
    return [_shape(feature, number, path, crs) for number, feature in enumerate(features)]


def _shape(feature: Any, number: int, path: Path, crs: str) -> Shape:
    where = f"{path}: features[{number}]"
    try:
        area = shapely.geometry.shape(feature["geometry"])
        name = str((feature.get("properties") or {}).get("name") or "")
    except (
        *(KeyError, TypeError, ValueError, AttributeError),
        *(OverflowError, RecursionError, shapely.errors.ShapelyError),
    ):
        raise InputError(
            "the feature has no geometry that can be read",
            expected="a Polygon or MultiPolygon in longitude and latitude",
            where=where,
        ) from None
    if not isinstance(area, Region):
        raise InputError(
            f"the feature is a {area.geom_type}", expected="a Polygon or MultiPolygon", where=where
        )
    if area.is_empty:
        raise InputError("the feature is empty", expected="a polygon", where=where)
    corners = shapely.get_coordinates(area)
    check_degrees(corners[:, 1], corners[:, 0], where)
    placed: Region = shapely.transform(shapely.force_2d(area), lambda xy: reprojected(xy, WGS84, crs))
    if not placed.is_valid or placed.area <= 0:
        raise InputError(
            f"the feature is not a valid polygon: {shapely.is_valid_reason(placed)}",
            expected="a polygon whose edges do not cross",
            where=where,
            fix="repair it in a GIS, for example with Fix geometries in QGIS",
        )
    return Shape(name, placed)


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
        geometry = json.loads(shapely.to_geojson(placed))
        properties = {"name": shape.name} if shape.name else {}
        features.append(json.dumps({"type": "Feature", "properties": properties, "geometry": geometry}))
    lines = ",\n".join(features)
    write_whole(path, f'{{"type": "FeatureCollection", "features": [\n{lines}\n]}}\n'.encode())

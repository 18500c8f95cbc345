"""Areas that people give: a file of polygons, or corners in a text."""

from __future__ import annotations

import json
from pathlib import Path

import shapely

from fieldbo.domain.domain import Domain
from fieldbo.domain.obstacles import Obstacle, Region
from fieldbo.errors import InputError
from fieldbo.mission.shapes import Shape, as_obstacles

NAME = "closed area"
"""Name of an area that has none of its own."""


def areas_in(file: Path, domain: Domain, where: str) -> list[Obstacle]:
    """Return the polygons of a file in the coordinates of a domain.

    Parameters
    ----------
    file : Path
        GeoJSON or, with the extra ``geo``, any vector file. In a domain without a CRS, GeoJSON in the
        domain's own coordinates.
    domain : Domain
    where : str
        The option that names the file, for errors.

    Raises
    ------
    InputError
        The file can't be read, or holds something other than polygons.
    """
    if domain.crs is not None:
        from fieldbo.mission.new.layers import read_layer

        shapes = read_layer(str(file), where).within(domain.crs)
    else:
        shapes = _unplaced(file, where)
    return as_obstacles([Shape(shape.name or NAME, shape.area) for shape in shapes])


def _unplaced(file: Path, where: str) -> list[Shape]:
    """Return the polygons of a GeoJSON file as they are."""
    try:
        content = json.loads(file.read_text(encoding="utf-8-sig"))
        features = content["features"] if content.get("type") == "FeatureCollection" else [content]
        named = [
            (
                str((feature.get("properties") or {}).get("name") or ""),
                shapely.geometry.shape(feature.get("geometry", feature)),
            )
            for feature in features
        ]
    except OSError as error:
        raise InputError(f"{file} can't be read: {error.strerror}", where=where) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, shapely.errors.ShapelyError):
        raise InputError(
            f"{file} is not GeoJSON", expected="polygons in the coordinates of the domain", where=where
        ) from None
    shapes = list[Shape]()
    for name, area in named:
        if not isinstance(area, Region) or not area.is_valid or area.is_empty:
            raise InputError(
                f"{file} holds something other than valid polygons",
                expected="polygons whose edges do not cross",
                where=where,
            )
        shapes.append(Shape(name, area))
    return shapes

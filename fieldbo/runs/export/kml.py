"""A file for Google Earth, ``run.kml`` (KML 2.2).

It has folders with path, routes, readings and, where the map is one of the ground, contour lines and the
areas of the classes. Everything lies on the ground: altitudes are left out. A schema for each folder gives
the types of its data, so that numbers are numbers in a GIS, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

import numpy as np
import shapely
from shapely.geometry.base import BaseGeometry

from fieldbo.results.plot.style import BLUE, CLASS_OR_NONE, ORANGE
from fieldbo.results.words import question_text
from fieldbo.runs.export.layers import Feature, area_layers, class_names, paths, routes
from fieldbo.runs.export.placement import Placement
from fieldbo.runs.export.vector import added, encoded, waypoints
from fieldbo.runs.replay import Recorded

_KML = "http://www.opengis.net/kml/2.2"
_DOT = "http://maps.google.com/mapfiles/kml/shapes/placemark_circle.png"
_CLEAR = 0xB0  # opacity of areas
_LINES = {
    "path": (BLUE, 3.0),
    "route": (ORANGE, 1.5),
    "level": ("#ffffff", 1.5),
    "threshold": ("#000000", 3.0),
}
"""Colour and width in pixels by style."""


class _Placemark(NamedTuple):
    """A geometry in degrees, with what Google Earth shows."""

    title: str
    style: str
    text: str
    data: Mapping[str, Any]
    geometry: BaseGeometry

    @property
    def known(self) -> dict[str, Any]:
        """The data that have a value."""
        return {key: value for key, value in self.data.items() if value is not None and not _is_nan(value)}


def encode_kml(run: Recorded) -> dict[str, bytes]:
    """Return the file by name.

    Raises
    ------
    InputError
        The domain is not a place, or its position on the ground is unknown.
    """
    placement = Placement.of(run, "KML")
    layers = area_layers(run, placement.degrees) if placement.horizontal else {}
    classes = class_names(run) if "classes" in layers else []
    root = ET.Element("kml", {"xmlns": _KML})
    document = added(root, "Document")
    added(document, "name", run.name)
    question = question_text(run.mission.question, run.mission.world.quantity)
    added(document, "description", f"{run.mission.name}: {question}")
    _add_styles(document)
    folders = {
        "classes": [_area(f, classes.index(f.properties["class"])) for f in layers.get("classes", ())],
        "contours": [_contour(f) for f in layers.get("contours", ())],
        "routes": [
            _Placemark(f"{f.properties['order']}, planned", "route", "", f.properties, f.geometry)
            for f in routes(run, placement.degrees)
        ],
        "path": [
            _Placemark("path", "path", "the path that was travelled", f.properties, f.geometry)
            for f in paths(run, placement.degrees)
        ],
        "places": list(_places(run, placement)),
    }
    for name, placemarks in folders.items():
        if placemarks:
            _add_schema(document, name, placemarks)
            folder = added(document, "Folder")
            added(folder, "name", name)
            for placemark in placemarks:
                _add_placemark(folder, placemark, name)
    return {"run.kml": encoded(root)}


def _area(feature: Feature, number: int) -> _Placemark:
    said = feature.properties
    text = f"{said['meaning']}. {said['probability']}. {said['area_m2']:,.0f} m2."
    return _Placemark(said["class"], f"class{number}", text, said, feature.geometry)


def _contour(feature: Feature) -> _Placemark:
    said = feature.properties
    style = "threshold" if said["is_threshold"] else "level"
    unit = "" if said["unit"] in ("", "1") else f" {said['unit']}"
    return _Placemark(f"{said['level']:.4g}{unit}", style, said["meaning"], said, feature.geometry)


def _places(run: Recorded, placement: Placement) -> Iterator[_Placemark]:
    unit = run.mission.world.quantity.unit
    for place in waypoints(run):
        data: dict[str, Any] = {"kind": place.kind, "time": place.time or None, "value": place.value}
        data |= {"unit": unit if place.value is not None else None}
        point = shapely.Point(placement.degrees(place.site)[0])
        yield _Placemark(place.name, "place", place.text, data, point)


def _add_styles(document: ET.Element) -> None:
    """Add the styles of lines, points and, in the colours of the picture of the maps, classes."""
    for name, (colour, width) in _LINES.items():
        line = added(added(document, "Style", id=name), "LineStyle")
        added(line, "color", _colour(colour))
        added(line, "width", f"{width:g}")
    point = added(document, "Style", id="place")
    icon = added(point, "IconStyle")
    added(icon, "scale", "0.6")
    added(added(icon, "Icon"), "href", _DOT)
    added(added(point, "LabelStyle"), "scale", "0.7")
    for number, colour in enumerate(CLASS_OR_NONE["cmap"].colors):
        area = added(document, "Style", id=f"class{number}")
        line = added(area, "LineStyle")
        added(line, "color", _colour(colour))
        added(line, "width", "1")
        added(added(area, "PolyStyle"), "color", _colour(colour, _CLEAR))


def _colour(colour: str, opacity: int = 0xFF) -> str:
    """Return ``"#rrggbb"`` as KML writes it: opacity, blue, green, red."""
    return f"{opacity:02x}{colour[5:7]}{colour[3:5]}{colour[1:3]}"


def _add_schema(document: ET.Element, name: str, placemarks: Sequence[_Placemark]) -> None:
    """Add the types of the data in a folder, without which all of them are text."""
    schema = added(document, "Schema", name=name, id=f"{name}_data")
    kinds: dict[str, set[str]] = {}
    for placemark in placemarks:
        for key, value in placemark.known.items():
            kinds.setdefault(key, set()).add(_kind(value))
    for key, found in kinds.items():
        mixed = "double" if found <= {"int", "double"} else "string"
        added(schema, "SimpleField", type=next(iter(found)) if len(found) == 1 else mixed, name=key)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float | np.floating) and math.isnan(value)


def _kind(value: Any) -> str:
    """Return the type of a value by its name in KML."""
    kinds = ((bool | np.bool_, "bool"), (int | np.integer, "int"), (float | np.floating, "double"))
    return next((name for kind, name in kinds if isinstance(value, kind)), "string")


def _add_placemark(folder: ET.Element, placemark: _Placemark, schema: str) -> None:
    element = added(folder, "Placemark")
    added(element, "name", placemark.title)
    if placemark.text:
        added(element, "description", placemark.text)
    added(element, "styleUrl", f"#{placemark.style}")
    table = added(added(element, "ExtendedData"), "SchemaData", schemaUrl=f"#{schema}_data")
    for name, value in placemark.known.items():
        text = str(int(value)) if _kind(value) == "bool" else str(value)  # GDAL takes "true" for 0
        added(table, "SimpleData", text, name=name)
    _add_shape(element, placemark.geometry)


def _add_shape(parent: ET.Element, shape: BaseGeometry) -> None:
    """Add a geometry; KML and shapely share the names of points, lines and polygons."""
    if isinstance(shape, shapely.MultiLineString | shapely.MultiPolygon):
        several = added(parent, "MultiGeometry")
        for part in shape.geoms:
            _add_shape(several, part)
        return
    element = added(parent, shape.geom_type)
    if isinstance(shape, shapely.Polygon):
        for side, rings in (("outer", [shape.exterior]), ("inner", shape.interiors)):
            for ring in rings:
                edge = added(added(element, f"{side}BoundaryIs"), "LinearRing")
                added(edge, "coordinates", _coordinates(ring))
        return
    if isinstance(shape, shapely.LineString):
        added(element, "tessellate", "1")
    added(element, "coordinates", _coordinates(shape))


def _coordinates(shape: BaseGeometry) -> str:
    return " ".join(
        f"{longitude:.9f},{latitude:.9f}" for longitude, latitude in shapely.get_coordinates(shape)
    )

"""Files of points, lines and areas: GeoJSON, GeoPackage and GPX.

``geojson``
    In degrees (RFC 7946): longitude, latitude, altitude on WGS 84. ``path.geojson`` has one line per
    vehicle, ``routes.geojson`` one line per order, ``readings.geojson`` one point per reading, and
    ``map.geojson`` one point per site with the values of the final maps.
``contours``
    ``contours.geojson`` has one feature per level of the posterior mean, ``classes.geojson`` one per class
    of a level set, and ``optimum.geojson`` the reported optimum.
``gpkg``
    One GeoPackage with all these layers, in the CRS of the world.
``gpx``
    ``path.gpx`` (GPX 1.1) has one waypoint per reading, and for start, home and the reported optimum; one
    route per vehicle through the sites of its orders; and one track per vehicle, with a time at every point:
    programs such as gpsbabel and gpxpy drop points without one.
"""

from __future__ import annotations

import json
import math
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import shapely
from numpy.typing import NDArray

from fieldbo._numerics.arrays import Array
from fieldbo.results.answers import OptimumAnswer
from fieldbo.results.words import extreme, question_text
from fieldbo.runs.export.layers import (
    Feature,
    area_layers,
    planned,
    point_layers,
)
from fieldbo.runs.export.placement import Placement
from fieldbo.runs.export.tracks import timed, track
from fieldbo.runs.replay import Recorded


def encode_geojson(run: Recorded) -> dict[str, bytes]:
    """Return the files by name.

    Raises
    ------
    InputError
        The domain is not a place, or its position on the ground is unknown.
    """
    placement = Placement.of(run, "GeoJSON")
    parts = point_layers(run, placement.degrees)
    return {f"{name}.geojson": collection(features) for name, features in parts.items()}


def collection(features: Sequence[Feature]) -> bytes:
    """Return the content of a file, one feature per line."""
    lines = ",\n".join(
        json.dumps(_feature(feature), ensure_ascii=False, allow_nan=False) for feature in features
    )
    return f'{{"type": "FeatureCollection", "features": [\n{lines}\n]}}\n'.encode()


def _feature(feature: Feature) -> dict[str, Any]:
    plain = {name: _json_of(value) for name, value in feature.properties.items()}
    return {"type": "Feature", "geometry": shapely.geometry.mapping(feature.geometry), "properties": plain}


def _json_of(value: Any) -> Any:
    """Return a value for JSON: NaN and infinity become null."""
    plain = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(plain, float) and not math.isfinite(plain) else plain


def encode_contours(run: Recorded) -> dict[str, bytes]:
    """Return the files by name.

    Raises
    ------
    InputError
        The domain does not have two horizontal axes, or its position on the ground is unknown.
    """
    placement = Placement.of_plane(run, "a contour map")
    parts = area_layers(run, placement.degrees)
    return {f"{name}.geojson": collection(features) for name, features in parts.items()}


_TYPES = {
    "path": "LineString",
    "routes": "LineString",
    "readings": "Point",
    "map": "Point",
    "contours": "MultiLineString",
    "classes": "MultiPolygon",
    "optimum": "Point",
}
_RESERVED = ("fid", "geom")
_UTC = 100  # GDAL's code for the time zone


def encode_gpkg(run: Recorded) -> dict[str, bytes]:
    """Return the file by name.

    Raises
    ------
    InputError
        The domain does not have two horizontal axes, or its position on the ground
        is unknown.
    """
    placement = Placement.of_plane(run, "a GeoPackage")
    layers = point_layers(run, placement.metres) | area_layers(run, placement.metres)
    with tempfile.TemporaryDirectory() as folder, _dated(run.began):
        file = Path(folder) / "run.gpkg"
        for name, content in reversed(layers.items()):  # a GIS puts the last one on top
            _add_layer(file, name, content, placement.crs)
        return {"run.gpkg": file.read_bytes()}


@contextmanager
def _dated(time: datetime) -> Iterator[None]:
    """Let GDAL date files with a given time, so that the same run gives the same bytes."""
    from pyogrio import get_gdal_config_option, set_gdal_config_options

    before = get_gdal_config_option("OGR_CURRENT_DATE")
    set_gdal_config_options({"OGR_CURRENT_DATE": time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")})
    try:
        yield
    finally:
        set_gdal_config_options({"OGR_CURRENT_DATE": before})


def _add_layer(file: Path, name: str, content: Sequence[Feature], crs: str) -> None:
    """Add a layer to a file."""
    from pyogrio.raw import write

    points = _TYPES[name] == "Point"
    kept = [
        f for f in content if points or not isinstance(f.geometry, shapely.Point)
    ]  # a path may be a point
    keys = list(dict.fromkeys(key for feature in kept for key in feature.properties))
    names = _distinct(keys)
    columns = [_column(key, [feature.properties.get(key) for feature in kept]) for key in keys]
    write(
        file,
        geometry=np.array([shapely.to_wkb(feature.geometry) for feature in kept], dtype=object),
        field_data=columns,
        fields=np.array(names, dtype=object),
        layer=name,
        driver="GPKG",
        geometry_type=_TYPES[name],
        crs=crs,
        append=file.exists(),
        dataset_options=None if file.exists() else {"VERSION": "1.2"},  # GDAL 3.6 warns of newer ones
        gdal_tz_offsets={
            name: np.full(len(kept), _UTC) for key, name in zip(keys, names, strict=True) if key == "time"
        },
    )


def _column(name: str, values: Sequence[Any]) -> NDArray[Any]:
    """Return a column of one type: times, text, numbers or booleans."""
    if name == "time":
        times = [datetime.fromisoformat(value).astimezone(UTC).replace(tzinfo=None) for value in values]
        return np.array(times, dtype="datetime64[ms]")
    if any(isinstance(value, str) for value in values):
        return np.array(values, dtype=object)
    if any(value is None for value in values):
        return np.array([np.nan if value is None else value for value in values], dtype=float)
    return np.array(values)


def _distinct(names: Sequence[str]) -> list[str]:
    """Return column names that differ in more than case, as SQLite needs them."""
    distinct: list[str] = []
    for name in names:
        taken = {other.casefold() for other in (*distinct, *_RESERVED)}
        number, candidate = 2, name
        while candidate.casefold() in taken:
            number, candidate = number + 1, f"{name}_{number}"
        distinct.append(candidate)
    return distinct


_GPX = "http://www.topografix.com/GPX/1/1"
_XSI = "http://www.w3.org/2001/XMLSchema-instance"


@dataclass(frozen=True, eq=False)
class Waypoint:
    """A named place.

    Attributes
    ----------
    kind : {"start", "home", "reading", "optimum"}
    site : (d,) array
    name, text : str
        What a map shows at the place, and on request.
    time : str
        UTC; empty if unknown.
    value : float, optional
        Of a reading, or what is expected of the optimum.
    """

    kind: str
    site: Array
    name: str
    text: str
    time: str = ""
    value: float | None = None


def waypoints(run: Recorded) -> Iterator[Waypoint]:
    """Yield start and home of each vehicle, the readings, and the reported optimum."""
    vehicles, quantity = run.mission.vehicles, run.mission.world.quantity
    for number, spec in enumerate(vehicles):
        of = f" of vehicle {number}" if len(vehicles) > 1 else ""
        yield Waypoint("start", spec.start, f"start{of}", f"{run.mission.name}: start{of}")
        if spec.home is not None:
            yield Waypoint("home", spec.home, f"home{of}", f"{run.mission.name}: home{of}")
    for event in run.result.observations:
        for site, value, noise, seconds in zip(
            event.sites, event.values, event.noise_variances, event.times_s, strict=True
        ):
            name = quantity.amount(value) if np.isfinite(value) else "no value"
            text = f"order {event.order}: {quantity.name} {name}"
            text += f", standard deviation of the noise {quantity.amount(np.sqrt(noise))}"
            time = utc(run.time(float(seconds))) if np.isfinite(seconds) else ""
            yield Waypoint("reading", site, name, text, time, float(value))
    answer = run.result.answer
    if isinstance(answer, OptimumAnswer):
        text = f"{quantity.name} is expected to be {extreme(run.mission.question)} here"
        value = quantity.amount(answer.reported_value)
        name, text = f"optimum {value}", f"{text}: {value}"
        yield Waypoint("optimum", answer.reported.point, name, text, value=answer.reported_value)


def encode_gpx(run: Recorded) -> dict[str, bytes]:
    """Return the file by name.

    Raises
    ------
    InputError
        The domain is not a place, or its position on the ground is unknown.
    """
    placement = Placement.of(run, "GPX")
    root = ET.Element(
        "gpx",
        {
            "version": "1.1",
            "creator": "fieldbo",
            "xmlns": _GPX,
            "xmlns:xsi": _XSI,
            "xsi:schemaLocation": f"{_GPX} {_GPX}/gpx.xsd",
        },
    )
    metadata = added(root, "metadata")
    added(metadata, "name", run.name)
    question = question_text(run.mission.question, run.mission.world.quantity)
    added(metadata, "desc", f"{run.mission.name}: {question}")
    added(metadata, "time", utc(run.began))
    for place in waypoints(run):
        point = _add_point(root, "wpt", placement, place.site, place.time)
        added(point, "name", place.name)
        added(point, "desc", place.text)
        added(point, "type", place.kind)
    for vehicle in range(len(run.mission.vehicles)):
        _add_route(root, placement, run, vehicle)
    for vehicle in range(len(run.mission.vehicles)):
        line = added(root, "trk")
        added(line, "name", _named(run, vehicle))
        added(line, "desc", "the path that was travelled")
        segment = added(line, "trkseg")
        for site, seconds in timed(track(run, vehicle)):
            _add_point(segment, "trkpt", placement, site, utc(run.time(seconds)))
    return {"path.gpx": encoded(root)}


def _add_route(root: ET.Element, placement: Placement, run: Recorded, vehicle: int) -> None:
    """Add the route of a vehicle through the sites of its orders, as they were planned."""
    line = added(root, "rte")
    added(line, "name", f"{_named(run, vehicle)}, planned")
    added(line, "desc", "the routes of the orders as they were planned")
    at: Array = run.mission.vehicles[vehicle].start
    added(_add_point(line, "rtept", placement, at), "name", "start")
    for _, order, route in planned(run):
        if order.vehicle != vehicle:
            continue
        bends = route if not np.array_equal(route[0], at) else route[1:]
        for site in bends[:-1]:
            _add_point(line, "rtept", placement, site)
        added(_add_point(line, "rtept", placement, route[-1]), "name", str(order.id))
        at = route[-1]


def _named(run: Recorded, vehicle: int) -> str:
    return run.name if len(run.mission.vehicles) == 1 else f"{run.name}, vehicle {vehicle}"


def _add_point(parent: ET.Element, tag: str, placement: Placement, site: Array, time: str = "") -> ET.Element:
    """Add a site with its altitude and time, if they are known."""
    longitude, latitude, altitude = placement.degrees(site)[0].tolist()
    point = added(parent, tag, lat=f"{latitude:.9f}", lon=f"{longitude:.9f}")
    if placement.has_altitude:
        added(point, "ele", f"{altitude:.4f}")
    if time:
        added(point, "time", time)
    return point


_NOT_XML = re.compile(r"[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def added(parent: ET.Element, tag: str, text: str | None = None, **attributes: str) -> ET.Element:
    """Add an element, and return it; characters that XML does not allow become question marks."""
    plain = {name: _NOT_XML.sub("?", value) for name, value in attributes.items()}
    element = ET.SubElement(parent, tag, plain)
    element.text = None if text is None else _NOT_XML.sub("?", text)
    return element


def encoded(root: ET.Element) -> bytes:
    """Return the content of a file."""
    ET.indent(root)
    return bytes(ET.tostring(root, encoding="UTF-8", xml_declaration=True)) + b"\n"


def utc(time: datetime) -> str:
    """Return a time as in ``2026-05-04T09:30:00.000Z``."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

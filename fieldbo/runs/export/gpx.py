"""The path as GPX 1.1: the track that was really travelled, the planned routes, and the readings.

``path.gpx`` has one waypoint per reading, and for start, home and the reported optimum; one route per vehicle
through the sites of its orders; and one track per vehicle, with the time where it is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree import ElementTree as ET

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.results.answers import OptimumAnswer
from fieldbo.results.words import extreme, question_text
from fieldbo.runs.export.features import planned, track
from fieldbo.runs.export.markup import added, encoded, utc
from fieldbo.runs.export.placement import Placement
from fieldbo.runs.export.recorded import Recorded

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
    """

    kind: str
    site: Array
    name: str
    text: str
    time: str = ""


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
            yield Waypoint("reading", site, name, text, time)
    answer = run.result.answer
    if isinstance(answer, OptimumAnswer):
        text = f"{quantity.name} is expected to be {extreme(run.mission.question)} here"
        value = quantity.amount(answer.reported_value)
        yield Waypoint("optimum", answer.reported.point, f"optimum {value}", f"{text}: {value}")


def files(run: Recorded) -> dict[str, bytes]:
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
        point = _point(root, "wpt", placement, place.site, place.time)
        added(point, "name", place.name)
        added(point, "desc", place.text)
        added(point, "type", place.kind)
    for vehicle in range(len(run.mission.vehicles)):
        _route(root, placement, run, vehicle)
    for vehicle in range(len(run.mission.vehicles)):
        line = added(root, "trk")
        added(line, "name", _named(run, vehicle))
        added(line, "desc", "the path that was travelled")
        segment = added(line, "trkseg")
        for site, seconds in track(run, vehicle):
            time = "" if seconds is None else utc(run.time(seconds))
            _point(segment, "trkpt", placement, site, time)
    return {"path.gpx": encoded(root)}


def _route(root: ET.Element, placement: Placement, run: Recorded, vehicle: int) -> None:
    """Add the route of a vehicle through the sites of its orders, as they were planned."""
    line = added(root, "rte")
    added(line, "name", f"{_named(run, vehicle)}, planned")
    added(line, "desc", "the routes of the orders as they were planned")
    at: Array = run.mission.vehicles[vehicle].start
    added(_point(line, "rtept", placement, at), "name", "start")
    for _, order, route in planned(run):
        if order.vehicle != vehicle:
            continue
        bends = route if not np.array_equal(route[0], at) else route[1:]
        for site in bends[:-1]:
            _point(line, "rtept", placement, site)
        added(_point(line, "rtept", placement, route[-1]), "name", str(order.id))
        at = route[-1]


def _named(run: Recorded, vehicle: int) -> str:
    return run.name if len(run.mission.vehicles) == 1 else f"{run.name}, vehicle {vehicle}"


def _point(parent: ET.Element, tag: str, placement: Placement, site: Array, time: str = "") -> ET.Element:
    """Add a site with its altitude and time, if they are known."""
    longitude, latitude, altitude = placement.degrees(site)[0].tolist()
    point = added(parent, tag, lat=f"{latitude:.9f}", lon=f"{longitude:.9f}")
    if placement.has_altitude:
        added(point, "ele", f"{altitude:.4f}")
    if time:
        added(point, "time", time)
    return point

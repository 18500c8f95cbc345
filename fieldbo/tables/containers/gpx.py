"""GPX files: the points of tracks, waypoints and routes, with what devices write into their extensions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from fieldbo.errors import InputError, counted
from fieldbo.tables.cells import is_number
from fieldbo.tables.containers.filling import (
    LAYER_OPTION,
    POSITION_ROLES,
    POSITION_UNITS,
    choose,
    damage_named,
    describe,
    make_table_of_points,
)
from fieldbo.tables.table import Table

_GARMIN = "garmin.com/xmlschemas/"
_UNITS = {"atemp": "degC", "wtemp": "degC", "Temperature": "degC", "depth": "m", "Depth": "m", "speed": "m/s",
          "course": "deg", "bearing": "deg", "hr": "1/min", "cad": "1/min"}  # fmt: skip
_POINT_UNITS = {
    "ele": "m",
    "speed": "m/s",
    "course": "deg",
    "geoidheight": "m",
    "magvar": "deg",
    **POSITION_UNITS,
}
_LEFT_OUT = frozenset(["link", "sym", "url", "urlname", "src"])
_ROLES = {**POSITION_ROLES, "track": "text", "name": "", "sat": "count", "fix": "flag", "type": "text",
          "hdop": "value", "vdop": "value", "pdop": "value", "ageofdgpsdata": "value", "dgpsid": "count",
          }  # fmt: skip
_KINDS = {"trkpt": "tracks", "wpt": "waypoints", "rtept": "routes"}


@dataclass(frozen=True)
class Points:
    """Points of one kind in a file.

    Attributes
    ----------
    kind : str
        "tracks", "waypoints" or "routes".
    part : str
        Name of the track or route.
    cells : mapping of str to str
        Cells of a point, by the names of their columns.
    """

    kind: str
    part: str
    cells: list[dict[str, str]]


def read(path: Path, layer: str | None = None) -> Table:
    """Return the points of a GPX file: those of its tracks, or else its waypoints or routes.

    Depths, temperatures and other elements within ``<extensions>`` are columns by the names of the elements.

    Parameters
    ----------
    path : Path
    layer : str, optional
        ``tracks``, ``waypoints``, ``routes``, or the name of one track or route.

    Raises
    ------
    InputError
        The file is damaged or has no points; or readings are in the tracks and in the waypoints.
    """
    parts, units = parse_points(path)
    return _make_table(path, parts, units, layer or _choose_kind(path, parts))


def read_track(path: Path, layer: str | None = None) -> Table:
    """Return the points of the tracks in a GPX file, as `read` does where there are no waypoints.

    Raises
    ------
    InputError
        As `read`; or tracks overlap in time, so that they are those of several receivers.
    """
    parts, units = parse_points(path)
    tracks = [part for part in parts if part.kind == "tracks"]
    if layer is None and tracks:
        spans = sorted(
            (min(times), max(times))
            for part in tracks
            if (times := [point["time"] for point in part.cells if point.get("time")])
        )
        if any(later[0] < earlier[1] for earlier, later in pairwise(spans)):
            layer = choose(
                path, {part.part: counted(len(part.cells), "point") for part in tracks}, None, "track"
            )
    return _make_table(path, parts, units, layer or ("tracks" if tracks else _choose_kind(path, parts)))


def parse_points(path: Path) -> tuple[list[Points], dict[str, str]]:
    """Return the points of a GPX file by track, and the units of their columns."""
    units: dict[str, str] = dict(_POINT_UNITS)
    named: dict[tuple[str, str], str] = {}
    parts: list[Points] = []
    waypoints = Points("waypoints", "waypoints", [])
    with damage_named(path, "a GPX file"):
        for tag, element in iterate_xml(path, {"trk", "rte", "wpt"}):
            if tag == "wpt":
                waypoints.cells.append(_parse_point(element, units, named))
                continue
            kind, point = ("tracks", "trkpt") if tag == "trk" else ("routes", "rtept")
            found = [_parse_point(each, units, named) for each in element.iter() if local(each.tag) == point]
            number = 1 + sum(part.kind == kind for part in parts)
            name = next((each.text for each in element if local(each.tag) == "name" and each.text), None)
            label = (name or f"{kind[:-1]} {number}").strip()
            if any(part.part == label for part in parts):
                label = f"{label} {number}"
            if found:
                parts.append(Points(kind, label, found))
    if waypoints.cells:
        parts.append(waypoints)
    if not parts:
        raise InputError("the file has no points", expected="a track, waypoints or a route", where=str(path))
    return parts, units


def iterate_xml(path: Path, wanted: set[str]) -> Iterator[tuple[str, ElementTree.Element]]:
    """Yield the elements with some local names as they end, and forget them afterwards.

    Raises
    ------
    InputError
        The file declares entities of its own.
    """
    with path.open("rb") as file:
        if re.search(rb"<!(DOCTYPE|ENTITY)", file.read(4096)):
            raise InputError(
                f"{path.name} declares entities of its own, which are not read",
                expected="XML without <!DOCTYPE>",
                where=str(path),
                fix="export it again from another program",
            )
        file.seek(0)
        for _, element in ElementTree.iterparse(file):
            tag = local(element.tag)
            if tag in wanted:
                yield tag, element
                element.clear()


def local(tag: Any) -> str:
    """Return the name of an element without its namespace."""
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def _parse_point(
    element: ElementTree.Element, units: dict[str, str], named: dict[tuple[str, str], str]
) -> dict[str, str]:
    cells = {"latitude": element.attrib["lat"].strip(), "longitude": element.attrib["lon"].strip()}
    float(cells["latitude"]), float(cells["longitude"])
    for child in element:
        name = local(child.tag)
        if name == "extensions":
            cells |= parse_extensions(child, units, named)
        elif name not in _LEFT_OUT and child.text and child.text.strip():
            cells[name] = child.text.strip()
    return cells


def parse_extensions(
    parent: ElementTree.Element, units: dict[str, str], named: dict[tuple[str, str], str]
) -> dict[str, str]:
    """Return the cells of all elements below one that have text and no children.

    Parameters
    ----------
    parent : Element
    units : dict of str to str
        Units of columns; those that are found are added.
    named : dict
        Names of columns by namespace and element; those that are found are added.
    """
    cells: dict[str, str] = {}
    for element in parent.iter():
        text = (element.text or "").strip()
        if len(element) or not text or element is parent:
            continue
        namespace, _, tag = element.tag.rpartition("}")
        label = element.get("name") or element.get("key") or tag
        column = named.get((namespace, label))
        if column is None:
            taken = {*named.values(), *_POINT_UNITS, *_ROLES}
            number = 1
            column = label
            while column in taken:
                number += 1
                column = f"{label}.{number}"
            named[namespace, label] = column
            unit = element.get("unit") or element.get("units") or element.get("uom")
            if unit is None and _GARMIN in namespace:
                unit = _UNITS.get(tag)
            if unit:
                units[column] = unit
        cells[column] = text
    return cells


def _has_readings(points: Sequence[Mapping[str, str]]) -> bool:
    """Return whether points have numbers besides their place, names and the quality of the fix."""
    others = set(_POINT_UNITS) | set(_ROLES) | {"desc", "cmt"}
    return any(is_number(cell) for point in points for name, cell in point.items() if name not in others)


def _choose_kind(path: Path, parts: Sequence[Points]) -> str:
    """Return which kind of points holds the readings."""
    by_kind = {
        kind: [p for part in parts if part.kind == kind for p in part.cells] for kind in _KINDS.values()
    }
    by_kind = {kind: points for kind, points in by_kind.items() if points}
    reading = [kind for kind, points in by_kind.items() if _has_readings(points)]
    if reading and reading != ["tracks"] and "tracks" in by_kind:
        counts = {kind: counted(len(points), "point") for kind, points in by_kind.items()}
        return choose(path, counts, None, "kind of points", "kinds of points")
    return reading[0] if len(reading) == 1 else next(iter(by_kind))


def _make_table(path: Path, parts: Sequence[Points], units: Mapping[str, str], layer: str) -> Table:
    kinds = {kind: [part for part in parts if part.kind == kind] for kind in _KINDS.values()}
    if kinds.get(layer):
        chosen = kinds[layer]
    else:
        names = {kind: "" for kind, found in kinds.items() if found} | {part.part: "" for part in parts}
        layer = choose(path, names, layer, "track, route or kind of points")
        chosen = kinds.get(layer) or [part for part in parts if part.part == layer]
    left = {part.part: counted(len(part.cells), "point") for part in parts if part not in chosen}
    notes = [f"GPX: {layer}, {counted(sum(len(part.cells) for part in chosen), 'point')}"]
    points = [point for part in chosen for point in part.cells]
    if len(chosen) > 1:
        points = [{**point, "track": part.part} for part in chosen for point in part.cells]
        notes.append(
            f"{counted(len(chosen), layer[:-1])} are read together: "
            f"{describe({part.part: counted(len(part.cells), 'point') for part in chosen})}; "
            f"{LAYER_OPTION} NAME takes one"
        )
    if left:
        notes.append(f"left out: {describe(left)}; {LAYER_OPTION} takes one of these instead")
    numeric = {name for point in points for name, cell in point.items() if is_number(cell)}
    texts = {name: "text" for point in points for name in point if name not in numeric}
    return make_table_of_points(path, points, units, {**texts, **_ROLES}, form="GPX", notes=notes)

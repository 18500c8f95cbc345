"""KML files of Google Earth and others: placemarks at points, and tracks with times."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from fieldbo.errors import InputError, counted
from fieldbo.tables.containers.filling import (
    LAYER_OPTION,
    POSITION_ROLES,
    POSITION_UNITS,
    choose,
    damage_named,
    make_table_of_points,
)
from fieldbo.tables.containers.gpx import iterate_xml, local
from fieldbo.tables.table import Table

_UNITS = {**POSITION_UNITS, "altitude": "m"}


def read(path: Path, layer: str | None = None) -> Table:
    """Return the placemarks of a KML file that are points, or the points of its tracks.

    Extended data are columns; a time stamp is the column ``time``.

    Parameters
    ----------
    path : Path
    layer : str, optional
        ``placemarks`` or ``tracks``.

    Raises
    ------
    InputError
        The file is damaged, or holds lines and areas only; or it has both placemarks and tracks.
    """
    points: dict[str, list[dict[str, str]]] = {"placemarks": [], "tracks": []}
    others: set[str] = set()
    with damage_named(path, "a KML file"):
        for _, element in iterate_xml(path, {"Placemark"}):
            for track in _all(element, "Track"):
                points["tracks"] += _parse_track(track)
            found = _all(element, "Point")
            points["placemarks"] += [_parse_placemark(element, point) for point in found]
            others |= {name for name in ("LineString", "Polygon", "LinearRing") if _all(element, name)}
    tables = {name: counted(len(found), "point") for name, found in points.items() if found}
    if not tables:
        kinds = " and ".join(sorted(others)) or "no placemarks"
        raise InputError(
            f"{path.name} holds {kinds}, no points",
            expected="placemarks at points, or tracks with times",
            where=str(path),
            fix="give areas with --outline or --avoid; as earlier readings, export points",
        )
    chosen = choose(path, tables, layer, "kind of points", "kinds of points")
    notes = [f"KML: {chosen}, {tables[chosen]}"]
    left = [f"{name} ({about})" for name, about in tables.items() if name != chosen]
    left += sorted(others)
    if left:
        notes.append(
            f"left out: {', '.join(left)}" + ("" if others else f"; {LAYER_OPTION} takes these instead")
        )
    return make_table_of_points(path, points[chosen], _UNITS, POSITION_ROLES, form="KML", notes=notes)


def _all(element: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    return [each for each in element.iter() if local(each.tag) == name]


def _text(element: ElementTree.Element) -> str:
    return (element.text or "").strip()


def _place(text: str, separator: str | None) -> dict[str, str]:
    """Return the cells of a place, written as longitude, latitude and perhaps altitude."""
    lon, lat, *altitude = (part.strip() for part in text.split(separator))
    float(lat), float(lon)
    cells = {"latitude": lat, "longitude": lon}
    if altitude and float(altitude[0]):
        cells["altitude"] = altitude[0]
    return cells


def _parse_placemark(element: ElementTree.Element, point: ElementTree.Element) -> dict[str, str]:
    cells = _place(_text(_all(point, "coordinates")[0]), ",")
    for stamp in _all(element, "TimeStamp"):
        cells["time"] = _text(_all(stamp, "when")[0])
    for child in element:
        if local(child.tag) in ("name", "description") and _text(child):
            cells[local(child.tag)] = _text(child)
    for data in _all(element, "Data"):
        values = _all(data, "value")
        if values:
            cells[_free(data.get("name", "value"), cells)] = _text(values[0])
    for data in _all(element, "SimpleData"):
        cells[_free(data.get("name", "value"), cells)] = _text(data)
    return cells


def _free(name: str, cells: dict[str, str]) -> str:
    """Return the name of a column of data, told from those of the placemark itself."""
    return f"{name}.2" if name in cells else name


def _parse_track(track: ElementTree.Element) -> list[dict[str, str]]:
    times, places = ([_text(each) for each in _all(track, name)] for name in ("when", "coord"))
    arrays = {
        each.get("name", "value"): [_text(value) for value in _all(each, "value")]
        for each in _all(track, "SimpleArrayData")
    }
    points = []
    for row, (time, place) in enumerate(zip(times, places, strict=True)):
        values = {name: cells[row] for name, cells in arrays.items() if row < len(cells)}
        if place:
            points.append({**_place(place, None), "time": time, **values})
    return points

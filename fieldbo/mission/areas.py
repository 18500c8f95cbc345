"""Areas from any geometries: nested ones, closed lines, margins, crossed rings, cuts at 180 degrees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, cast

import numpy as np
import shapely
from shapely.geometry.base import BaseGeometry

from fieldbo._numerics.arrays import Array
from fieldbo.domain.georeference import WGS84, reprojected
from fieldbo.domain.obstacles import Region
from fieldbo.errors import InputError, counted

Use = Literal["outline", "zone"]
"""What areas are for: labels beside an outline don't count, but everything in a file of zones does."""

MENDED = 1e-4
"""Fraction of its area by which a ring that crosses itself may change when it is mended."""

_GAP = 0.05  # of a line's length: the ends of a track around a lake are that close
_QUARTER = 8  # edges per quarter of a circle
_SHORT = 0.005  # degrees: a straight line that long is straight to a centimetre in any projection
_GRID = 2.0  # degrees between the centres of projections in which margins are drawn
_SEAM = 1e-6  # degrees from 180 at which an area counts as cut there
_POLE = 89.99999  # degrees
_MOST_NAMED = 8


@dataclass(eq=False)
class Pieces:
    """What the features of a layer are made of, in its CRS.

    Attributes
    ----------
    areas : list of (int, Region)
        With the number of their feature, counted from 0.
    marks : list of (int, geometry)
        Points and open lines.
    edges : list of (int, geometry)
        Closed lines, which are among the areas.
    notes : list of str
    errors : list of InputError
    """

    areas: list[tuple[int, Region]] = field(default_factory=list)
    marks: list[tuple[int, BaseGeometry]] = field(default_factory=list)
    edges: list[tuple[int, BaseGeometry]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    errors: list[InputError] = field(default_factory=list)


def leaves(geometry: Any) -> list[BaseGeometry]:
    """Return the simple geometries that a geometry consists of, at any depth.

    Examples
    --------
    >>> inner = shapely.GeometryCollection([shapely.Point(1, 2), shapely.box(0, 0, 1, 1)])
    >>> [part.geom_type for part in leaves(shapely.GeometryCollection([inner, shapely.Point(3, 4)]))]
    ['Point', 'Polygon', 'Point']
    """
    parts = [] if geometry is None else [geometry]
    while any(hasattr(part, "geoms") for part in parts):
        parts = [inner for part in parts for inner in getattr(part, "geoms", [part])]
    return parts


def named(numbers: Sequence[int], names: Sequence[str]) -> str:
    """Return features by number and name.

    Examples
    --------
    >>> named([0, 2], ["buoy", "", "net"])
    "1 'buoy', 3 'net'"
    """
    shown = [f"{k + 1} {names[k]!r}" if names[k] else f"{k + 1}" for k in numbers]
    more = len(shown) - _MOST_NAMED
    return ", ".join(shown[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def find_pieces(
    geometries: Sequence[Any],
    names: Sequence[str],
    use: Use,
    where: str,
    option: str,
    *,
    degrees: bool = False,
) -> Pieces:
    """Return the areas, lines and points among features; what is wrong with them goes to its errors.

    In degrees, longitudes are made continuous first.
    """
    pieces, without = Pieces(), list[int]()
    for number, geometry in enumerate(geometries):
        which = named([number], names)
        parts = [part for part in leaves(geometry) if not part.is_empty]
        if not parts:
            without.append(number)
            continue
        if not np.isfinite(shapely.get_coordinates(parts)).all():
            pieces.errors.append(
                InputError(
                    f"{where}: feature {which} has a coordinate that is no number",
                    expected="finite coordinates",
                    where=option,
                )
            )
            continue
        if degrees:
            try:
                parts = [unrolled(part, f"{where}: feature {which}", option) for part in parts]
            except InputError as error:
                pieces.errors.append(error)
                continue
        _sort_feature(pieces, number, parts, names, use, where, option)
    if without:
        what = counted(len(without), "feature")
        pieces.notes.append(f"warning: {where}: {what} without a geometry: {named(without, names)}")
    return pieces


def _sort_feature(
    pieces: Pieces,
    number: int,
    parts: Sequence[BaseGeometry],
    names: Sequence[str],
    use: Use,
    where: str,
    option: str,
) -> None:
    """Add one feature's areas and marks to the pieces."""
    polygons, which = list[Region](), named([number], names)
    for polygon in (part for part in parts if isinstance(part, shapely.Polygon)):
        mended, change = mend(polygon)
        if mended is None:
            pieces.errors.append(
                InputError(
                    f"{where}: area {which} is not valid: {shapely.is_valid_reason(polygon)}",
                    expected="areas whose edges do not cross or touch themselves",
                    where=option,
                    fix="repair it in a GIS (QGIS: Fix geometries), and look at the result",
                )
            )
            continue
        if mended is not polygon:
            pieces.notes.append(
                f"{where}: the edge of area {which} crosses or touches itself; mended, which "
                f"changes {change:.2g} of its area"
            )
        polygons.append(mended)
    lines, marks = [part for part in parts if isinstance(part, shapely.LineString)], list[BaseGeometry]()
    for line in _chained(leaves(shapely.line_merge(shapely.MultiLineString(lines)))) if lines else []:
        area = close(line)
        if area is None:
            marks.append(line)
            continue
        mended, _ = mend(area)
        if mended is None:
            pieces.errors.append(
                InputError(
                    f"{where}: the closed line {which} is not valid as an area: "
                    f"{shapely.is_valid_reason(area)}",
                    expected="a line that does not cross itself",
                    where=option,
                    fix="draw the area as a polygon in a GIS",
                )
            )
            continue
        pieces.notes.append(f"{where}: the closed line {which} is taken as an area")
        pieces.edges.append((number, line))
        polygons.append(mended)
    marks += [part for part in parts if isinstance(part, shapely.Point)]
    pieces.marks += [(number, mark) for mark in marks]
    if polygons:
        pieces.areas += [(number, area) for area in _together(polygons, use)]


def _together(polygons: Sequence[Region], use: Use) -> list[Region]:
    """Return the areas of one feature: as one if they are apart.

    In an outline, parts that overlap stay apart, because one in another one may be an island.
    """
    if len(polygons) == 1:
        return [polygons[0]]
    parts = [part for polygon in polygons for part in shapely.get_parts(polygon)]
    whole = shapely.MultiPolygon(parts)
    if whole.is_valid:
        return [whole]
    if use == "outline":
        return list(polygons)
    return [union_of(parts)]


def union_of(areas: Sequence[Region]) -> Region:
    """Return the area that areas cover together."""
    union = shapely.union_all(areas)
    assert isinstance(union, Region)
    return union


def mend(polygon: shapely.Polygon) -> tuple[Region | None, float]:
    """Return a polygon, valid, and the fraction of its area that this changes; None if that is too much.

    Examples
    --------
    >>> bow = shapely.Polygon([(0, 0), (2, 2), (2, 0), (0, 2)])
    >>> touching = shapely.Polygon([(0, 0), (4, 0), (4, 4), (2, 4), (3, 2), (1, 2), (2, 4), (0, 4)])
    >>> mend(bow)[0] is None, mend(touching)[0].area
    (True, 14.0)
    """
    if polygon.is_valid:
        return polygon, 0.0
    stated = polygon.area  # of its rings as they are: what is run around the other way counts as negative
    ways = [
        shapely.make_valid(polygon, method="structure", keep_collapsed=False),
        shapely.union_all([p for p in leaves(shapely.make_valid(polygon)) if isinstance(p, shapely.Polygon)]),
    ]
    change = max(abs(way.area - stated) for way in ways) / stated if stated > 0 else np.inf
    mended = ways[0]
    if change > MENDED or not isinstance(mended, Region) or mended.is_empty:
        return None, float(change)
    return mended, float(change)


def _chained(lines: list[BaseGeometry]) -> list[BaseGeometry]:
    """Return lines as one if they follow each other around an area: a track that was paused."""
    if len(lines) < 2 or any(close(line) is not None for line in lines):
        return lines
    whole = shapely.LineString(shapely.get_coordinates(lines))
    ends = [(shapely.get_coordinates(line)[-1], shapely.get_coordinates(line)[0]) for line in lines]
    pairs = zip(ends, [*ends[1:], ends[0]], strict=True)
    gaps = sum(float(np.linalg.norm(start - end)) for (end, _), (_, start) in pairs)
    return [whole] if gaps <= _GAP * whole.length and close(whole) is not None else lines


def close(line: BaseGeometry) -> shapely.Polygon | None:
    """Return the polygon within a line that ends near where it begins; None for other lines."""
    if line.length == 0.0 or len(line.coords) < 4:
        return None
    ends = shapely.get_coordinates(line)[[0, -1]]
    if np.linalg.norm(ends[1] - ends[0]) > _GAP * line.length:
        return None
    return shapely.Polygon(line.coords)


def around(geometry: BaseGeometry, margin: float, crs: str | None = None) -> Region:
    """Return the area within a margin of a point or a line; it is never smaller than the circle.

    Parameters
    ----------
    geometry : shapely geometry
        In `crs`.
    margin : float
        In metres on the ground; without a CRS, in the unit of the coordinates.
    crs : str, optional

    Returns
    -------
    shapely.Polygon or shapely.MultiPolygon
        In longitude and latitude; without a CRS, in the coordinates of the geometry.

    Examples
    --------
    >>> round(around(shapely.Point(0, 0), 10.0).area / 10.0**2, 2)
    3.15
    """
    if crs is None:
        return _grown(geometry, margin)
    flat = shapely.transform(geometry, lambda xy: reprojected(xy, crs, WGS84))
    flat = shapely.segmentize(flat, _SHORT) if isinstance(flat, shapely.LineString) else flat
    east, north = np.round(shapely.get_coordinates(flat)[0] / _GRID) * _GRID
    local = f"+proj=aeqd +lat_0={north:g} +lon_0={east:g} +datum=WGS84 +units=m"
    metres = shapely.transform(flat, lambda xy: reprojected(xy, WGS84, local))
    placed: Region = shapely.transform(_grown(metres, margin), lambda xy: reprojected(xy, local, WGS84))
    return placed


def _grown(geometry: BaseGeometry, margin: float) -> Region:
    outer = margin / np.cos(np.pi / 4 / _QUARTER)  # so that the polygon lies around the circle, not in it
    grown: Region = shapely.buffer(geometry, outer, quad_segs=_QUARTER)
    return grown


G = TypeVar("G", bound=BaseGeometry)


def unrolled(geometry: G, where: str, option: str) -> G:
    """Return a geometry in degrees with its longitudes continuous, so that they may reach past 180 degrees.

    An edge that is longer than 180 degrees is one across them.

    Raises
    ------
    InputError
        It holds a pole.

    Examples
    --------
    >>> unrolled(shapely.LineString([(179, 0), (-178, 0)]), "a net", "--avoid").bounds
    (-181.0, 0.0, -178.0, 0.0)
    """
    if isinstance(geometry, shapely.Polygon):
        shell = _follow(geometry.exterior, where, option)
        holes = [_follow(ring, where, option) for ring in geometry.interiors]
        for hole in holes:
            hole[:, 0] -= 360.0 * np.round((hole[:, 0].mean() - shell[:, 0].mean()) / 360.0)
        return cast("G", _centred(shapely.Polygon(shell, holes)))
    if isinstance(geometry, shapely.LineString):
        return cast("G", _centred(shapely.LineString(_follow(geometry, where, option))))
    if isinstance(geometry, shapely.MultiPolygon):
        parts = [unrolled(part, where, option) for part in geometry.geoms]
        return cast("G", shapely.MultiPolygon(parts))
    return geometry


def _follow(line: BaseGeometry, where: str, option: str) -> Array:
    """Return the corners (k, 2) of a line or a ring with continuous longitudes."""
    xy = np.array(shapely.get_coordinates(line))
    turns = np.round(np.diff(xy[:, 0]) / 360.0)
    xy[1:, 0] -= 360.0 * np.cumsum(turns)
    if (turns.sum() != 0.0 and line.is_closed) or np.abs(xy[:, 1]).max() >= _POLE:
        pole, code = ("north", "EPSG:5041") if xy[:, 1].mean() > 0 else ("south", "EPSG:5042")
        raise InputError(
            f"{where} reaches over the {pole} pole, where degrees do not describe an area",
            expected="an area in a polar CRS",
            where=option,
            fix=f"export it in {code} from a GIS, and add --crs {code}",
        )
    return xy


def _centred(geometry: BaseGeometry) -> BaseGeometry:
    """Return a geometry whose middle lies within 180 degrees."""
    low, _, high, _ = geometry.bounds
    return _turned(geometry, -360.0 * np.round((low + high) / 2.0 / 360.0))


def joined(areas: Sequence[Region], where: str, option: str) -> tuple[list[tuple[int, Region]], int]:
    """Return areas in degrees with those joined that were cut at 180 degrees, and how many cuts there were.

    Parameters
    ----------
    areas : sequence of Region
        In longitude and latitude.
    where, option : str
        The file, and the option that names it.

    Returns
    -------
    list of (int, Region), int
        Each with the number of the area that it was, or was part of. Longitudes may reach past 180.

    Raises
    ------
    InputError
        Areas meet at 180 degrees, but not along the same edge.

    Examples
    --------
    >>> halves = [shapely.box(179, -17, 180, -16), shapely.box(-180, -17, -178, -16)]
    >>> areas, cuts = joined(halves, "fiji.geojson", "--outline")
    >>> areas[0][1].bounds, cuts
    ((179.0, -17.0, 182.0, -16.0), 1)
    """
    owner, parts = list[int](), list[shapely.Polygon]()
    for number, area in enumerate(areas):
        for part in shapely.get_parts(area):
            owner.append(number)
            parts.append(part)
    west, east = _on_seam(parts, -180.0), _on_seam(parts, 180.0)
    together = {k: {k} for k in range(len(parts))}
    cuts = 0
    for k, edges in east.items():
        for edge in edges:
            meeting = [m for m, others in west.items() if any(_overlap(edge, other) for other in others)]
            same = [m for m in meeting if any(_equal(edge, other) for other in west[m])]
            if meeting and not same:
                raise InputError(
                    f"{where}: areas meet at 180 degrees, but not along the same edge",
                    expected="an area that is cut straight at 180 degrees",
                    where=option,
                    fix="export it in a projected CRS, such as EPSG:32660, from a GIS",
                )
            cuts += bool(same)
            for m in same:
                group = together[k] | together[m]
                together.update(dict.fromkeys(group, group))
    if not cuts:
        return list(enumerate(areas)), 0
    found: dict[int, list[shapely.Polygon]] = {}
    for group in {id(group): group for group in together.values()}.values():
        members = [
            _turned(parts[k], 360.0) if k in west and len(group) > 1 else parts[k] for k in sorted(group)
        ]
        whole = shapely.union_all(members) if len(group) > 1 else members[0]
        found.setdefault(min(owner[k] for k in group), []).extend(shapely.get_parts(whole).tolist())
    return [
        (number, pieces[0] if len(pieces) == 1 else shapely.MultiPolygon(pieces))
        for number, pieces in sorted(found.items())
    ], cuts


def _on_seam(parts: Sequence[shapely.Polygon], longitude: float) -> dict[int, list[tuple[float, float]]]:
    """Return the latitudes between which parts have an edge along 180 degrees, by their number."""
    found: dict[int, list[tuple[float, float]]] = {}
    for k, part in enumerate(parts):
        for ring in (part.exterior, *part.interiors):
            xy = shapely.get_coordinates(ring)
            along = np.abs(xy[:, 0] - longitude) <= _SEAM
            edges = np.flatnonzero(along[1:] & along[:-1])
            for i in edges:
                low, high = sorted(xy[[i, i + 1], 1].tolist())
                found.setdefault(k, []).append((low, high))
    return found


def _overlap(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return min(one[1], other[1]) - max(one[0], other[0]) > _SEAM


def _equal(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return max(abs(one[0] - other[0]), abs(one[1] - other[1])) <= _SEAM


def _turned(geometry: BaseGeometry, by: float) -> BaseGeometry:
    """Return a geometry in degrees with other longitudes."""
    moved: BaseGeometry = shapely.transform(geometry, lambda xy: xy + np.array([by, 0.0]))
    return moved


def cut(area: Region) -> Region:
    """Return an area with continuous longitudes as RFC 7946 wants it: in parts on either side of 180 degrees.

    Examples
    --------
    >>> [part.bounds for part in cut(shapely.box(179, -17, 182, -16)).geoms]
    [(179.0, -17.0, 180.0, -16.0), (-180.0, -17.0, -178.0, -16.0)]
    """
    low, _, high, _ = area.bounds
    if low >= -180.0 and high <= 180.0:
        return area
    parts = list[shapely.Polygon]()
    for turn in (-360.0, 0.0, 360.0):
        inside = shapely.intersection(area, shapely.box(turn - 180.0, -90.0, turn + 180.0, 90.0))
        parts += [part for part in leaves(_turned(inside, -turn)) if isinstance(part, shapely.Polygon)]
    parts.sort(key=lambda part: -part.bounds[0])
    return parts[0] if len(parts) == 1 else shapely.MultiPolygon(parts)

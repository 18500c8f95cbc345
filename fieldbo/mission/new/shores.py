"""Shores of a new world: islands in its outline, zones to avoid, and fewer corners of both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import shapely

from fieldbo._numerics.arrays import Array
from fieldbo.domain.georeference import WGS84, reprojected
from fieldbo.domain.obstacles import Region
from fieldbo.errors import InputError, counted, errors_of, raise_all
from fieldbo.mission.areas import named
from fieldbo.mission.layers import Layer, read_layer
from fieldbo.mission.shapes import Shape, as_outline

_MOST_CORNERS = 200  # of an outline and its holes, beyond which it is simplified
_FINEST, _COARSEST = 0.02, 0.25  # tolerance of the simplification, in spacings
_FURTHEST = 0.5  # no edge moves by more, in spacings
_WORTHWHILE = 0.9  # fraction of the corners that is left, at most
_MORE = 1.01  # an area moves by a little more than its simplification moves its edge
_FAR_M = 10_000.0  # from the outline: zones that far are of another place, or in the wrong CRS
_SAME = 0.9  # of a hole's area: an area in it that large is the island, a smaller one is a pond on it


def without_islands(shapes: Sequence[Shape]) -> tuple[list[Shape], list[str]]:
    """Return areas of water from which the areas that lie inside others are cut out, and notes.

    An area inside another one is an island, and one inside that is water again. An area that fills a hole is
    the island of that hole.
    """
    order = sorted(shapes, key=lambda shape: -shape.area.area)
    kept: list[Shape] = []
    depths: list[int] = []  # 0 is water, 1 an island in it, 2 water on the island, ...
    islands = repeated = 0
    for shape in order:
        if any(shapely.equals(shape.area, o.area) or _fills_a_hole(shape.area, o.area) for o in kept):
            repeated += 1
            continue
        around = [depth for other, depth in zip(kept, depths, strict=True) if other.area.covers(shape.area)]
        kept.append(shape)
        depths.append(max(around, default=-1) + 1)
    water: list[Shape] = []
    for shape, depth in zip(kept, depths, strict=True):
        if depth % 2:
            islands += 1
            continue
        inner = [
            s.area for s, d in zip(kept, depths, strict=True) if d == depth + 1 and shape.area.covers(s.area)
        ]
        area = shapely.difference(shape.area, shapely.union_all(inner)) if inner else shape.area
        assert isinstance(area, Region)
        water.append(Shape(shape.name, area))
    notes = []
    if islands:
        lie = "lies inside another and is" if islands == 1 else "lie inside others and are"
        notes.append(
            f"warning: {counted(islands, 'area')} of the outline {lie} taken as land; "
            "delete what is water from the file"
        )
    if repeated:
        notes.append(
            f"{counted(repeated, 'area')} of the outline repeated or filling an island's hole: left out"
        )
    return water, notes


def _fills_a_hole(area: Region, other: Region) -> bool:
    """Return whether an area is what a hole of another one leaves out."""
    holes = [shapely.Polygon(ring) for part in shapely.get_parts(other) for ring in part.interiors]
    return any(shapely.intersection(hole, area).area > _SAME * max(hole.area, area.area) for hole in holes)


def read_zones(
    files: Sequence[str], area: Region, crs: str, of_files: str | None, margin: float | None, readings: Array
) -> tuple[list[Shape], list[str]]:
    """Return the zones to avoid that reach into an area, and notes.

    Parameters
    ----------
    files : sequence of str
        Vector files.
    area : Region
        The outline, in `crs`.
    crs : str
        That of the world.
    of_files : str, optional
        CRS of files that do not state theirs.
    margin : float, optional
        Distance to keep from points and lines, in metres.
    readings : (n, 2) array
        In metres.

    Raises
    ------
    InputError
        A file can't be used as a whole, or its zones are of another place.
    """
    if margin is not None and not files:
        raise InputError(
            "--avoid-margin was given without zones", expected="--avoid FILE", where="--avoid-margin"
        )
    zones, notes = list[Shape](), list[str]()

    def take(file: str) -> None:
        layer = read_layer(file, "--avoid", of_files, "zone", margin, "--avoid-margin")
        within = check_valid(layer.within(crs), "--avoid")
        name = Path(file).name
        all_of_it = [Shape(shape.name or name.split(".")[0], shape.area) for shape in within]
        _check_holes(all_of_it, area, readings, name)
        inside = [reaching([zone], area) for zone in all_of_it]
        outside = [k for k, reach in enumerate(inside) if not reach]
        notes.extend(layer.notes)
        if len(outside) == len(within):
            _check_near(layer, within, area, crs, name)
            notes.append(f"warning: no zone of {name} reaches into the outline")
        elif outside:
            which = named(outside, [shape.name for shape in within])
            notes.append(f"{counted(len(outside), 'zone')} of {name} outside the outline left out: {which}")
        notes.extend(_describe_holes(all_of_it, area, name))
        zones.extend(zone for reach in inside for zone in reach)

    raise_all(errors_of(*(lambda file=file: take(file) for file in files)))
    return zones, notes


def _check_near(layer: Layer, zones: Sequence[Shape], area: Region, crs: str, name: str) -> None:
    """Raise an `InputError` if all zones lie far away: their CRS or the order of coordinates is wrong."""
    far = min(float(shapely.distance(zone.area, area)) for zone in zones)
    if far <= _FAR_M:
        return
    outline = shapely.transform(area, lambda xy: reprojected(xy, crs, WGS84))
    turned = any(zone.envelope.intersects(outline.envelope) for zone in layer.swapped())
    raise InputError(
        f"no zone of {name} lies near the outline: the nearest is {far / 1000.0:,.1f} km away",
        expected="zones in the outline",
        where="--avoid",
        fix="the two coordinates look swapped in the file: correct it"
        if turned
        else "check that it is of the same place, and its CRS; else leave it out",
    )


def _holes(zone: Shape, area: Region) -> list[shapely.Polygon]:
    """Return the holes of a zone in which there is water."""
    rings = [ring for part in shapely.get_parts(zone.area) for ring in part.interiors]
    return [hole for hole in map(shapely.Polygon, rings) if shapely.intersection(hole, area).area > 0]


def _check_holes(zones: Sequence[Shape], area: Region, readings: Array, name: str) -> None:
    """Raise an `InputError` if readings lie in the hole of a zone: it is the land around a lake."""
    for zone in zones:
        within = sum(int(shapely.contains_xy(hole, *readings.T).sum()) for hole in _holes(zone, area))
        if within:
            raise InputError(
                f"{name}: {counted(within, 'reading')} lie in a hole of the zone {zone.name!r}, "
                "into which no boat could go",
                expected="zones without holes in the water that is surveyed",
                where="--avoid",
                fix="if the zone is the land around the water, give the water's edge as --outline; else cut "
                "the zone open in a GIS",
            )


def _describe_holes(zones: Sequence[Shape], area: Region, name: str) -> list[str]:
    closed = [zone.name for zone in zones if _holes(zone, area)]
    return [
        f"{name}: nothing in the hole of {zone!r} can be reached; it counts as part of it" for zone in closed
    ]


def reaching(zones: Sequence[Shape], area: Region) -> list[Shape]:
    """Return the zones that reach into an area, each without its parts that do not."""
    reach: list[Shape] = []
    for zone in zones:
        parts = [p for p in shapely.get_parts(zone.area) if shapely.intersection(p, area).area > 0]
        if parts:
            reach.append(Shape(zone.name, parts[0] if len(parts) == 1 else shapely.MultiPolygon(parts)))
    return reach


def check_valid(shapes: list[Shape], option: str) -> list[Shape]:
    """Return shapes in metres, or raise an `InputError` if one is not valid there."""
    for number, shape in enumerate(shapes, 1):
        if not shape.area.is_valid:
            raise InputError(
                f"area {number} is not valid: {shapely.is_valid_reason(shape.area)}",
                expected="areas whose edges do not cross or touch themselves",
                where=option,
                fix="repair it in a GIS (QGIS: Fix geometries), and look at the result",
            )
    return shapes


def simplified_outline(
    shapes: list[Shape], spacing: float, clearance: float
) -> tuple[list[Shape], list[str]]:
    """Return an outline with fewer corners if it has many, and a note; it only shrinks.

    No water is cut off: a boat that keeps its clearance reaches what it reached before.
    """
    return _simplify(
        shapes,
        spacing,
        "the outline",
        inwards=True,
        water=lambda s: shapely.buffer(as_outline(s), -clearance),
    )


def simplified_zones(
    zones: list[Shape], spacing: float, clearance: float, area: Region
) -> tuple[list[Shape], list[str]]:
    """Return zones to avoid with fewer corners if they have many, and a note; they only grow."""

    def water(others: list[Shape]) -> Region:
        free = shapely.difference(area, shapely.union_all([zone.area for zone in others]))
        return shapely.buffer(free, -clearance)

    return _simplify(zones, spacing, "the zones to avoid", inwards=False, water=water)


def _simplify(
    shapes: list[Shape], spacing: float, what: str, *, inwards: bool, water: Callable[[list[Shape]], Region]
) -> tuple[list[Shape], list[str]]:
    before = _count_corners(shapes)
    if before <= _MOST_CORNERS:
        return shapes, []
    sign = -1.0 if inwards else 1.0
    pieces = len(shapely.get_parts(water(shapes)))
    best, tolerance = shapes, _FINEST * spacing
    while tolerance <= _COARSEST * spacing and _count_corners(best) > _MOST_CORNERS:
        simpler = [
            Shape(s.name, _measure_move(s.area, sign * tolerance, tolerance, _FURTHEST * spacing))
            for s in shapes
        ]
        if (
            _count_corners(simpler) < _WORTHWHILE * _count_corners(best)
            and len(shapely.get_parts(water(simpler))) <= pieces
        ):
            best = simpler
        tolerance *= 1.5
    if best is shapes:
        return shapes, []
    moved = max(_distance(old.area, new.area) for old, new in zip(shapes, best, strict=True))
    side = "inside" if inwards else "outside"
    return best, [
        f"{what} simplified from {before:,} corners to {_count_corners(best):,}, at most {moved:.1f} m {side}"
    ]


def _count_corners(shapes: Sequence[Shape]) -> int:
    return sum(int(shapely.get_num_coordinates(shape.area)) for shape in shapes)


def _measure_move(area: Region, by: float, tolerance: float, furthest: float) -> Region:
    """Return an area moved inwards or outwards by the tolerance of its simplification.

    An area that would then reach to the wrong side, or whose edge would move too far, stays as it is.
    """
    moved = shapely.simplify(shapely.buffer(area, _MORE * by, join_style="mitre"), tolerance)
    parts = [p for p in shapely.get_parts(moved) if isinstance(p, shapely.Polygon) and p.area > 0]
    if not parts:
        return area
    simpler: Region = parts[0] if len(parts) == 1 else shapely.MultiPolygon(parts)
    safe = simpler.covers(area) if by > 0 else area.covers(simpler)
    return simpler if safe and _distance(area, simpler) <= furthest else area


def _distance(area: Region, other: Region) -> float:
    """Return how far corners of either edge lie from the other edge, at most."""

    def furthest(one: Region, two: Region) -> float:
        edge = two.boundary
        shapely.prepare(edge)
        return float(np.max(shapely.distance(shapely.points(shapely.get_coordinates(one)), edge)))

    return max(furthest(area, other), furthest(other, area))

"""Outlines and zones as files have them: islands drawn as areas of their own, and too many corners."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import shapely

from fieldbo.domain.obstacles import Region
from fieldbo.errors import counted
from fieldbo.mission.shapes import Shape, as_outline

_MOST_CORNERS = 200  # of an outline and its holes, beyond which it is simplified
_FINEST, _COARSEST = 0.02, 0.25  # tolerance of the simplification, in spacings
_FURTHEST = 0.5  # no edge moves by more, in spacings
_WORTHWHILE = 0.9  # fraction of the corners that is left, at most
_MORE = 1.01  # an area moves by a little more than its simplification moves its edge
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


def reaching(zones: Sequence[Shape], area: Region) -> list[Shape]:
    """Return the zones that reach into an area, each without its parts that do not."""
    reach: list[Shape] = []
    for zone in zones:
        parts = [p for p in shapely.get_parts(zone.area) if shapely.intersection(p, area).area > 0]
        if parts:
            reach.append(Shape(zone.name, parts[0] if len(parts) == 1 else shapely.MultiPolygon(parts)))
    return reach


def simplified_outline(
    shapes: list[Shape], spacing: float, clearance: float
) -> tuple[list[Shape], list[str]]:
    """Return an outline with fewer corners if it has many, and a note; it only shrinks.

    No water is cut off: a boat that keeps its clearance reaches what it reached before.
    """
    return _simplified(
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

    return _simplified(zones, spacing, "the zones to avoid", inwards=False, water=water)


def _simplified(
    shapes: list[Shape],
    spacing: float,
    what: str,
    *,
    inwards: bool,
    water: Callable[[list[Shape]], Region],
) -> tuple[list[Shape], list[str]]:
    before = _corners(shapes)
    if before <= _MOST_CORNERS:
        return shapes, []
    sign = -1.0 if inwards else 1.0
    pieces = len(shapely.get_parts(water(shapes)))
    best, tolerance = shapes, _FINEST * spacing
    while tolerance <= _COARSEST * spacing and _corners(best) > _MOST_CORNERS:
        simpler = [
            Shape(s.name, _moved(s.area, sign * tolerance, tolerance, _FURTHEST * spacing)) for s in shapes
        ]
        if (
            _corners(simpler) < _WORTHWHILE * _corners(best)
            and len(shapely.get_parts(water(simpler))) <= pieces
        ):
            best = simpler
        tolerance *= 1.5
    if best is shapes:
        return shapes, []
    moved = max(_distance(old.area, new.area) for old, new in zip(shapes, best, strict=True))
    side = "inside" if inwards else "outside"
    return best, [
        f"{what} simplified from {before:,} corners to {_corners(best):,}, at most {moved:.1f} m {side}"
    ]


def _corners(shapes: Sequence[Shape]) -> int:
    return sum(int(shapely.get_num_coordinates(shape.area)) for shape in shapes)


def _moved(area: Region, by: float, tolerance: float, furthest: float) -> Region:
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

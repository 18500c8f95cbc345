"""Named boxes and polygons that lie in a domain but are not part of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import shapely
from numpy.typing import ArrayLike

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.errors import InputError, counted

_FURTHEST = 1e15  # coordinates; beyond it, shapes are lost to rounding
MITRE = 5.0
"""Clearances from a corner at which its grown tip is cut off."""

Region = shapely.Polygon | shapely.MultiPolygon


@dataclass(frozen=True)
class Obstacle:
    """A box along the axes, or a polygon over two axes; its edge is free, its inside is not.

    In a domain with an outline and a depth, obstacles are over the first two axes, from top to bottom.

    Parameters
    ----------
    name : str
        For example ``"window 1"``.
    low, high : (d,) floats
        Two opposite corners of a box.
    corners : (k, 2) floats
        Corners of a polygon, in order around it, instead of a box.

    Raises
    ------
    InputError
        Not exactly one of box and polygon is given, or it has no inside.

    Examples
    --------
    >>> window = Obstacle("window 1", (2, 1), (3, 2.5))
    >>> window.holds([[2.5, 2.0], [2.0, 2.0], [5.0, 2.0]])
    array([ True, False, False])
    >>> Obstacle("mast", corners=((5, 0), (6, 0), (6, 4))).polygon.area
    2.0
    """

    name: str
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    corners: tuple[tuple[float, ...], ...] = ()

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            object.__setattr__(self, name, tuple(float(x) for x in getattr(self, name)))
        object.__setattr__(self, "corners", tuple(tuple(float(x) for x in c) for c in self.corners))
        if not self.name.strip():
            raise InputError("an obstacle has no name", expected="a name that is not empty", where="name")
        if bool(self.corners) == bool(self.low or self.high):
            raise InputError(
                f"obstacle {self.name!r} has {'both corners and a box' if self.corners else 'no corners'}",
                expected="either low and high (a box), or corners (a polygon)",
                where="corners",
            )
        if self.corners:
            simple_polygon(self.corners, f"obstacle {self.name!r}", "corners")
        else:
            self._check_box()

    def _check_box(self) -> None:
        if len(self.low) != len(self.high):
            raise InputError(
                f"obstacle {self.name!r} has {counted(len(self.low), 'coordinate')} in low "
                f"and {len(self.high)} in high",
                expected="as many coordinates in both as the domain has axes",
                where="low" if len(self.low) < len(self.high) else "high",
            )
        ends = np.array([*self.low, *self.high], dtype=float)
        if not np.all(np.abs(ends) <= _FURTHEST) or any(np.greater_equal(self.low, self.high)):
            raise InputError(
                f"obstacle {self.name!r} runs from {list(self.low)} to {list(self.high)}",
                expected=f"finite numbers up to {_FURTHEST:g}, with low below high along every axis",
                where="low",
            )

    @property
    def dimension(self) -> int:
        """Number of axes, d."""
        return len(self.low) or 2

    @cached_property
    def polygon(self) -> shapely.Polygon:
        """The obstacle's shape over two axes."""
        if self.corners:
            return shapely.Polygon(self.corners)
        return shapely.box(self.low[0], self.low[1], self.high[0], self.high[1])

    def holds(self, points: ArrayLike) -> Mask:
        """Return a mask (n,) of the points (n, d) that lie strictly inside."""
        x = np.atleast_2d(np.asarray(points, dtype=float))[:, : self.dimension]
        if self.corners:
            return np.asarray(shapely.contains_xy(self.polygon, x[:, 0], x[:, 1]))
        return np.asarray(np.all((x > self.low) & (x < self.high), axis=1))

    def crosses(self, a: ArrayLike, b: ArrayLike) -> bool:
        """Return True if the straight leg from `a` to `b` (d,) runs through the inside.

        Examples
        --------
        >>> window = Obstacle("window 1", (2, 1), (3, 2.5))
        >>> window.crosses([0, 2], [5, 2]), window.crosses([0, 1], [5, 1])
        (True, False)
        """
        start, end = (np.asarray(point, dtype=float)[: self.dimension] for point in (a, b))
        if self.corners and not np.array_equal(start, end):
            leg = shapely.LineString([start, end])
            return bool(shapely.relate_pattern(leg, self.polygon, "T********"))
        if self.corners:
            return bool(self.holds(start)[0])
        with np.errstate(divide="ignore", invalid="ignore"):
            at = (np.array([self.low, self.high]) - start) / (end - start)  # where it meets the sides
        still = start == end
        if (still & ((start <= self.low) | (start >= self.high))).any():
            return False
        enter, leave = at.min(axis=0)[~still], at.max(axis=0)[~still]
        return bool(max(0.0, *enter) < min(1.0, *leave)) if len(enter) else True

    def grown(self, clearance: float) -> Obstacle:
        """Return the obstacle with everything closer to it than `clearance`; corners stay sharp.

        Gaps that this closes are filled.
        """
        if clearance == 0.0:
            return self
        if not self.corners:
            low, high = np.array(self.low) - clearance, np.array(self.high) + clearance
            return replace(self, low=tuple(low), high=tuple(high))
        larger = shapely.buffer(self.polygon, clearance, join_style="mitre", mitre_limit=MITRE)
        ring = shapely.get_coordinates(shapely.get_exterior_ring(larger))
        return replace(self, corners=tuple(map(tuple, ring[:-1])))


def check_obstacles(
    obstacles: Sequence[Obstacle], low: Array, high: Array, outline: Region | None = None
) -> None:
    """Raise an `InputError` unless all obstacles fit the domain and reach into it.

    Parameters
    ----------
    obstacles : sequence of Obstacle
    low, high : (d,) array
        Ends of the domain's axes.
    outline : shapely.Polygon or MultiPolygon, optional
        The domain's outline, over two axes.
    """
    d, names = len(low), [o.name for o in obstacles]
    if obstacles and d == 1:
        raise InputError(
            f"obstacle {names[0]!r} needs at least two axes, but the domain has one",
            expected="at least two axes: nothing can go around an obstacle on a line",
            where="domain.obstacles",
            fix="end the axis where the obstacle begins",
        )
    duplicate = next((name for k, name in enumerate(names) if name in names[:k]), None)
    if duplicate is not None:
        raise InputError(
            f"two obstacles are named {duplicate!r}", expected="different names", where="domain.obstacles"
        )
    for obstacle in obstacles:
        if obstacle.corners and d != 2:
            raise InputError(
                f"obstacle {obstacle.name!r} is a polygon in a domain with {d} axes",
                expected="a box, because polygons have two axes",
                where="domain.obstacles",
                fix="replace corners by low and high; use several boxes to approximate a shape",
            )
        if obstacle.dimension != d:
            raise InputError(
                f"obstacle {obstacle.name!r} has {counted(len(obstacle.low), 'coordinate')}",
                expected=f"{d}, one per axis",
                where="domain.obstacles",
            )
        if outline is not None:
            inside = shapely.intersection(outline, obstacle.polygon).area > 0
        elif obstacle.corners:
            inside = shapely.intersection(shapely.box(*low, *high), obstacle.polygon).area > 0
        else:
            inside = bool(np.all(np.less(obstacle.low, high) & np.greater(obstacle.high, low)))
        if not inside:
            raise InputError(
                f"obstacle {obstacle.name!r} lies entirely outside the domain",
                expected="an obstacle that reaches into it",
                where="domain.obstacles",
                fix="correct its coordinates, or delete it",
            )


def simple_polygon(corners: ArrayLike | Sequence[Sequence[float]], what: str, where: str) -> shapely.Polygon:
    """Return the polygon with these corners.

    Parameters
    ----------
    corners : (k, 2) floats
        In order around it.
    what : str
        What the polygon is, for errors: ``"the outline"``.
    where : str
        The key that holds the corners.

    Raises
    ------
    InputError
        There are fewer than three corners, a corner has not two finite coordinates, or edges cross. The
        error suggests corrected corners.

    Examples
    --------
    >>> simple_polygon([(0, 0), (2, 0), (0, 2)], "the outline", "outline").area
    2.0
    """
    points: list[Sequence[float]] = list(corners)  # type: ignore[arg-type]
    wrong = next((c for c in points if len(c) != 2), None)
    if wrong is not None:
        raise InputError(
            f"{what}: a corner has {counted(len(wrong), 'coordinate')}",
            expected="two, one per axis",
            where=where,
        )
    if not (np.abs(np.array(points, dtype=float)) <= _FURTHEST).all():
        raise InputError(
            f"{what}: a corner is not finite, or too far away",
            expected=f"corners as finite numbers up to {_FURTHEST:g}",
            where=where,
        )
    if (different := len({tuple(c) for c in points})) < 3:
        raise InputError(f"{what} has {different} different corners", expected="at least 3", where=where)
    polygon = shapely.Polygon(points)
    if polygon.is_valid and polygon.area > 0:
        return polygon
    repaired = _repair(polygon)
    if not repaired:
        raise InputError(
            f"{what} is not a simple polygon: its corners lie on one line",
            expected="at least three corners that enclose an area",
            where=where,
        )
    suggestions = ", or as separate parts ".join(map(corners_text, repaired))
    raise InputError(
        f"{what} is not a simple polygon: its edge crosses or touches itself{_crossing(polygon)}",
        expected="corners in order around it, with edges that do not cross",
        where=where,
        fix=f"{where.rpartition('.')[2]} = {suggestions}",
    )


def corners_text(polygon: shapely.Polygon) -> str:
    """Return a polygon's corners as a file holds them.

    Examples
    --------
    >>> corners_text(shapely.box(0, 0, 2, 1.5))
    '[[0, 0], [2, 0], [2, 1.5], [0, 1.5]]'
    """
    ring = shapely.get_coordinates(shapely.orient_polygons(polygon.normalize()))[:-1]
    return "[" + ", ".join(f"[{x:.10g}, {y:.10g}]" for x, y in ring) + "]"


def _repair(polygon: shapely.Polygon) -> list[shapely.Polygon]:
    """Return what a user may have meant by the corners of an invalid polygon; empty without an area.

    If all corners are on the convex hull, they are probably just in the wrong order.
    """
    hull = polygon.convex_hull
    if not isinstance(hull, shapely.Polygon):
        return []
    if set(polygon.exterior.coords) == set(hull.exterior.coords):
        return [hull]
    valid = shapely.make_valid(polygon, method="structure", keep_collapsed=False)
    parts = [p for p in shapely.get_parts(valid) if isinstance(p, shapely.Polygon) and p.area > 0]
    return sorted(parts, key=lambda p: -p.area)


def _crossing(polygon: shapely.Polygon) -> str:
    """Return where a polygon's edge meets itself, in words."""
    place = re.search(r"\[(\S+) (\S+)\]", shapely.is_valid_reason(polygon))
    return f" at [{float(place[1]):.6g}, {float(place[2]):.6g}]" if place else ""

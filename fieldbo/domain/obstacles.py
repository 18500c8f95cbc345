"""What lies in a domain and is no part of it: named boxes and polygons, and what they leave free."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import shapely
from numpy.typing import ArrayLike

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.errors import InputError

_THIN = 1e-9  # share of the longest extent: a thinner gap is rounding, and shut
_FURTHEST = 1e15  # coordinates: beyond, shapes are no more than rounding
_MITRE = 5.0  # times the clearance: where a grown corner is cut off

Region = shapely.Polygon | shapely.MultiPolygon


@dataclass(frozen=True)
class Obstacle:
    """A box along the axes, or a polygon over two of them; its edge is free, its inside is not.

    Parameters
    ----------
    name : str
        For example ``"window 1"``.
    low, high : (d,) floats
        Two opposite corners of a box.
    corners : (k, 2) floats
        Instead of a box: in order around a polygon.

    Raises
    ------
    InputError
        Neither of the two or both, or no box or polygon that has an inside.

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
            raise InputError("an obstacle without a name", expected="a name for each", where="name")
        if bool(self.corners) == bool(self.low or self.high):
            raise InputError(
                f"obstacle {self.name!r} has {'both corners and a box' if self.corners else 'no corners'}",
                expected="either low and high, of a box, or corners, of a polygon",
                where="corners",
            )
        if self.corners:
            simple_polygon(self.corners, f"obstacle {self.name!r}", "corners")
        else:
            self._check_box()

    def _check_box(self) -> None:
        if len(self.low) != len(self.high):
            raise InputError(
                f"the low end of obstacle {self.name!r} has {_counted(self.low)}, its high end "
                f"{len(self.high)}",
                expected="two ends with as many coordinates as the domain has axes",
                where="low" if len(self.low) < len(self.high) else "high",
            )
        ends = np.array([*self.low, *self.high], dtype=float)
        if not np.all(np.abs(ends) <= _FURTHEST) or any(np.greater_equal(self.low, self.high)):
            raise InputError(
                f"obstacle {self.name!r} goes from {list(self.low)} to {list(self.high)}",
                expected=f"finite numbers up to {_FURTHEST:g}, low below high along every axis",
                where="low",
            )

    @property
    def dimension(self) -> int:
        """Number of axes, d."""
        return len(self.low) or 2

    @cached_property
    def polygon(self) -> shapely.Polygon:
        """Its shape over two axes."""
        if self.corners:
            return shapely.Polygon(self.corners)
        return shapely.box(self.low[0], self.low[1], self.high[0], self.high[1])

    def holds(self, points: ArrayLike) -> Mask:
        """Say which points (n, d) lie strictly inside, as (n,) bool."""
        x = np.atleast_2d(np.asarray(points, dtype=float))
        if self.corners:
            return np.asarray(shapely.contains_xy(self.polygon, x[:, 0], x[:, 1]))
        return np.asarray(np.all((x > self.low) & (x < self.high), axis=1))

    def grown(self, clearance: float) -> Obstacle:
        """Return the obstacle with all that lies nearer to it than `clearance`, corners kept sharp.

        A place that it then closes in on is filled.
        """
        if clearance == 0.0:
            return self
        if not self.corners:
            low, high = np.array(self.low) - clearance, np.array(self.high) + clearance
            return replace(self, low=tuple(low), high=tuple(high))
        larger = shapely.buffer(self.polygon, clearance, join_style="mitre", mitre_limit=_MITRE)
        ring = shapely.get_coordinates(shapely.get_exterior_ring(larger))
        return replace(self, corners=tuple(map(tuple, ring[:-1])))


def simple_polygon(corners: ArrayLike | Sequence[Sequence[float]], what: str, where: str) -> shapely.Polygon:
    """Return the polygon with these corners (k, 2), in order around it.

    Parameters
    ----------
    corners : (k, 2) floats
    what : str
        What it is of, for errors: ``"the outline"``.
    where : str
        The key that holds the corners.

    Raises
    ------
    InputError
        Fewer than three corners, not two finite coordinates each, or edges that cross; the mended corners
        are suggested.

    Examples
    --------
    >>> simple_polygon([(0, 0), (2, 0), (0, 2)], "the outline", "outline").area
    2.0
    """
    told: list[Sequence[float]] = list(corners)  # type: ignore[arg-type]
    wrong = next((c for c in told if len(c) != 2), None)
    if wrong is not None:
        raise InputError(f"{what}: a corner has {_counted(wrong)}", expected="two, one an axis", where=where)
    if not (np.abs(np.array(told, dtype=float)) <= _FURTHEST).all():
        raise InputError(
            f"{what}: a corner is not finite, or too far away",
            expected=f"corners as finite numbers up to {_FURTHEST:g}",
            where=where,
        )
    if len({tuple(c) for c in told}) < 3:
        raise InputError(
            f"{what} has {len({tuple(c) for c in told})} corners", expected="at least 3", where=where
        )
    polygon = shapely.Polygon(told)
    if polygon.is_valid and polygon.area > 0:
        return polygon
    mended = _mended(polygon)
    if not mended:
        raise InputError(
            f"{what} is no simple polygon: its corners lie on one line",
            expected="corners around an area",
            where=where,
        )
    raise InputError(
        f"{what} is no simple polygon: its edge crosses or touches itself{_crossing(polygon)}",
        expected="corners in order around it, edges that do not cross",
        where=where,
        fix=f"{where.rpartition('.')[2]} = " + ", or as parts of their own ".join(map(corners_text, mended)),
    )


def corners_text(polygon: shapely.Polygon) -> str:
    """Return a polygon's corners as they are written in a file.

    Examples
    --------
    >>> corners_text(shapely.box(0, 0, 2, 1.5))
    '[[0, 0], [2, 0], [2, 1.5], [0, 1.5]]'
    """
    ring = shapely.get_coordinates(shapely.orient_polygons(polygon.normalize()))[:-1]
    return "[" + ", ".join(f"[{x:.10g}, {y:.10g}]" for x, y in ring) + "]"


def _mended(polygon: shapely.Polygon) -> list[shapely.Polygon]:
    """Return what a person may have meant by the corners of no simple polygon; empty where there is no area.

    Corners of which none lies between the others were most likely told in a wrong order.
    """
    hull = polygon.convex_hull
    if not isinstance(hull, shapely.Polygon):
        return []
    corners = set(polygon.exterior.coords)
    if corners == set(hull.exterior.coords):
        return [hull]
    whole = shapely.make_valid(polygon, method="structure", keep_collapsed=False)
    parts = [p for p in shapely.get_parts(whole) if isinstance(p, shapely.Polygon) and p.area > 0]
    return sorted(parts, key=lambda p: -p.area)


def _crossing(polygon: shapely.Polygon) -> str:
    """Return where a polygon's edge meets itself, in words."""
    found = re.search(r"\[(\S+) (\S+)\]", shapely.is_valid_reason(polygon))
    return f" at [{float(found[1]):.6g}, {float(found[2]):.6g}]" if found else ""


def _counted(point: Sequence[float]) -> str:
    return f"{len(point)} coordinate{'' if len(point) == 1 else 's'}"


# -- what is free ----------------------------------------------------------------------------------------


def _check(obstacles: Sequence[Obstacle], low: Array, high: Array, outline: Region | None) -> None:
    """Raise an `InputError` unless all obstacles fit a domain, and reach into it."""
    d, names = len(low), [o.name for o in obstacles]
    if obstacles and d == 1:
        raise InputError(
            f"obstacle {names[0]!r} on one axis",
            expected="a domain of two axes or more for obstacles: on a line there is no way round",
            where="domain.obstacles",
            fix="take the axis to where the obstacle begins",
        )
    twice = next((name for k, name in enumerate(names) if name in names[:k]), None)
    if twice is not None:
        raise InputError(
            f"two obstacles have the name {twice!r}", expected="different names", where="domain.obstacles"
        )
    for one in obstacles:
        if one.corners and d != 2:
            raise InputError(
                f"obstacle {one.name!r} is a polygon in a domain of {d} axes",
                expected="a box there: polygons have two axes",
                where="domain.obstacles",
                fix="take low and high instead of corners; several boxes can stand for one shape",
            )
        if one.dimension != d:
            raise InputError(
                f"obstacle {one.name!r} has {_counted(one.low)}",
                expected=f"{d}, one an axis",
                where="domain.obstacles",
            )
        if outline is not None:
            inside = shapely.intersection(outline, one.polygon).area > 0
        elif one.corners:
            inside = shapely.intersection(shapely.box(*low, *high), one.polygon).area > 0
        else:
            inside = bool(np.all(np.less(one.low, high) & np.greater(one.high, low)))
        if not inside:
            raise InputError(
                f"obstacle {one.name!r} lies wholly outside the domain",
                expected="an obstacle that reaches into it",
                where="domain.obstacles",
                fix="correct its place, or delete it",
            )


@dataclass(frozen=True, eq=False)
class Space:
    """What is free of the box between `low` and `high`.

    Parameters
    ----------
    low, high : (d,) array
    region : shapely.Polygon or MultiPolygon, optional
        Of two axes: the free part; None is the whole box.
    boxes : (b, d) array and (b, d) array, optional
        Of more axes: low and high ends of boxes that make up the free part and share no more than faces; None
        is the whole box.
    """

    low: Array
    high: Array
    region: Region | None = None
    boxes: tuple[Array, Array] | None = None

    @classmethod
    def around(
        cls, obstacles: Sequence[Obstacle], low: Array, high: Array, outline: Region | None = None
    ) -> Space:
        """Return what obstacles leave of an outline, or of the box between `low` and `high` (d,).

        Gaps of no width are shut: obstacles that touch are one, and nothing passes between an obstacle and
        the edge that it touches.

        Raises
        ------
        InputError
            An obstacle does not fit the box, or they leave nothing.

        Examples
        --------
        >>> Space.around([Obstacle("mast", (1, 0), (2, 3))], np.zeros(2), np.array([4.0, 3.0])).measure
        9.0
        >>> Space.around([Obstacle("tank", (1, 0, 0), (2, 2, 5))], np.zeros(3), np.full(3, 3.0)).measure
        21.0
        """
        _check(obstacles, low, high, outline)
        if not obstacles:
            return cls(low, high, outline)
        if len(low) == 2:
            whole = shapely.box(*low, *high) if outline is None else outline
            digits = 10.0 * float(np.spacing(np.abs([low, high]).max()))  # that coordinates have
            finest = max(0.1 * _THIN * float(np.min(high - low)), digits)
            return cls(low, high, _region(obstacles, whole, finest))
        boxes = [(low, high)]
        for one in obstacles:
            boxes = [part for box in boxes for part in _around(one, *box)]
        boxes = [(a, b) for a, b in boxes if np.all(b - a > _THIN * (high - low))]
        if not boxes:
            raise _nothing_left()
        return cls(low, high, boxes=(np.array([a for a, _ in boxes]), np.array([b for _, b in boxes])))

    @property
    def measure(self) -> float:
        """Length, area or volume."""
        if self.region is not None:
            return float(self.region.area)
        low, high = self.boxes or (self.low[None], self.high[None])
        return float(np.prod(high - low, axis=1).sum())

    @property
    def convex(self) -> bool:
        """Whether all straight legs between its points lie in it."""
        if self.region is None:
            return self.boxes is None
        if isinstance(self.region, shapely.MultiPolygon) or len(self.region.interiors):
            return False
        corners = shapely.points(shapely.get_coordinates(self.region))
        depth = shapely.distance(corners, self.region.convex_hull.boundary).max()  # the area may be tiny
        return bool(depth <= _THIN * (self.high - self.low).max())

    def contains(self, points: ArrayLike) -> Mask:
        """Say which points (n, d) are free, edges included, as (n,) bool."""
        x = np.atleast_2d(np.asarray(points, dtype=float))
        inside: Mask = np.all(~self.beyond(x), axis=1)
        if self.region is not None:
            inside &= shapely.intersects_xy(self._with_edge, *(x - self.low).T)
        elif self.boxes is not None:
            low, high = (self.boxes[0] - self._slack).T, (self.boxes[1] + self._slack).T
            within = [(x[:, j, None] >= low[j]) & (x[:, j, None] <= high[j]) for j in range(len(low))]
            inside &= np.logical_and.reduce(within).any(axis=1)
        return inside

    def beyond(self, points: ArrayLike) -> Mask:
        """Say which coordinates of points (n, d) don't lie between the ends of the box, as (n, d) bool."""
        x = np.atleast_2d(np.asarray(points, dtype=float))
        return ~((x >= self.low - self._slack) & (x <= self.high + self._slack))

    @cached_property
    def _slack(self) -> Array:
        """By how much (d,) coordinates may lie beyond: one that went through text and back still counts."""
        return _THIN * (self.high - self.low)

    @cached_property
    def _with_edge(self) -> Region:
        """The region, larger by the slack, from `low` on, and made ready for many questions."""
        assert self.region is not None
        larger = grown(self.region, _THIN * float((self.high - self.low).max()), self.low)
        shapely.prepare(larger)
        return larger


def grown(region: Region, slack: float, origin: Array) -> Region:
    """Return a region, larger by a slack that is small even for it, in coordinates from `origin` (2,) on.

    Of coordinates far from 0, as eastings are, so little would be lost, and holes with it.
    """
    larger = shapely.transform(region, lambda x: x - origin).buffer(slack, join_style="mitre")
    assert isinstance(larger, Region)
    return larger


def _region(obstacles: Sequence[Obstacle], whole: Region, finest: float) -> Region:
    """Return what obstacles leave of a region, rounded to less than `finest`; what is as small is no part."""
    step = 10.0 ** np.floor(np.log10(finest))  # decimals stay what they are
    taken = shapely.union_all([o.polygon for o in obstacles], grid_size=step)
    free = shapely.difference(whole, taken, grid_size=step)
    parts = [p for p in shapely.get_parts(free) if isinstance(p, shapely.Polygon)]
    parts = [p for p in parts if p.area > _THIN * whole.area]
    if not parts:
        raise _nothing_left()
    return parts[0] if len(parts) == 1 else shapely.MultiPolygon(parts)


def _around(obstacle: Obstacle, low: Array, high: Array) -> list[tuple[Array, Array]]:
    """Return the boxes that an obstacle leaves of one: along each axis what is before and behind it."""
    first, last = np.maximum(low, obstacle.low), np.minimum(high, obstacle.high)
    if np.any(first >= last):
        return [(low, high)]
    parts = []
    for j in range(len(low)):
        before, behind = high.copy(), low.copy()
        before[j], behind[j] = first[j], last[j]
        parts += [(low, before), (behind, high)]
        low, high = low.copy(), high.copy()
        low[j], high[j] = first[j], last[j]
    return [(a, b) for a, b in parts if np.all(a < b)]


def _nothing_left() -> InputError:
    return InputError(
        "obstacles cover the whole domain",
        expected="obstacles, clearance included, that leave room for a site",
        where="domain.obstacles",
        fix="make them smaller, or lower the clearance",
    )

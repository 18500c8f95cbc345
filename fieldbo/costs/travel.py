"""Costs of vehicles that travel, and the order of stops that needs the least of it.

Kinds that derive from `Legs` route around whatever is in the way.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cache
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from pydantic import NonNegativeFloat, PositiveFloat

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.costs.base import CostModel, pairwise_costs
from fieldbo.domain.domain import Domain
from fieldbo.domain.routes import ShortestPaths, visibility_in
from fieldbo.errors import InputError, UnknownNameError, counted
from fieldbo.validation import settings


@settings("cost")
class Legs(CostModel):
    """Travel along straight legs; within a domain, by the cheapest route around obstacles and headlands.

    A subclass defines `leg_between` and `sample_at`. A leg must never cost more than a detour between the
    same two points.
    """

    _paths: ClassVar[ShortestPaths | None] = None  # None where every straight leg is free

    @abstractmethod
    def leg_between(self, starts: Array, ends: Array) -> Array:
        """Return the cost (P, N) of a straight leg from each of `starts` (P, d) to each of `ends` (N, d)."""

    def travel_between(self, starts: Array, ends: Array) -> Array:
        if self._paths is None:
            return self.leg_between(starts, ends)
        return self._paths.travel(starts, ends)

    def path(self, a: ArrayLike, b: ArrayLike, time_s: float = 0.0) -> Array:
        """Return the route from `a` (d,) to `b` (d,) as (k, d) points, both ends included.

        Raises
        ------
        InputError
            There is no route.
        """
        if self._paths is None:
            return super().path(a, b, time_s)
        return self._paths.path(np.asarray(a, dtype=float), np.asarray(b, dtype=float))

    def along(self, points: ArrayLike, time_s: float = 0.0) -> tuple[float, float]:
        return CostModel.along(self._with(_paths=None), points, time_s)

    def within(self, domain: Domain) -> Self:
        """Return this cost bound to a domain, which its routes never leave."""
        if self._domain is domain:
            return self
        bound = self._with(_domain=domain, _paths=None)
        visibility = visibility_in(domain)
        if visibility is not None:
            object.__setattr__(bound, "_paths", ShortestPaths(visibility, bound.leg_between))
        return bound


@settings("cost")
class Euclidean(Legs):
    """``rate * distance + sampling``, with the distance measured along the shortest route.

    Examples
    --------
    >>> Euclidean(rate=2.0, sampling=1.0).to([0.0, 0.0], [[3.0, 4.0]])
    array([11.])
    >>> Euclidean(axis_rates=(1.0, 2.0)).to([0.0, 0.0], [[3.0, 0.0], [0.0, 3.0]])
    array([3., 6.])
    """

    rate: NonNegativeFloat = 1.0
    """Cost per unit of distance."""
    sampling: NonNegativeFloat = 0.0
    """Cost of a sample, once there."""
    axis_rates: tuple[NonNegativeFloat, ...] | None = None
    """One factor per axis: the distance is ``sqrt(sum (factor * gap)^2)``. By default, all are 1."""

    def leg_between(self, starts: Array, ends: Array) -> Array:
        from scipy.spatial.distance import cdist

        if self.axis_rates is None:
            return self.rate * cdist(starts, ends)
        factors = np.array(self.axis_rates)
        return self.rate * cdist(starts * factors, ends * factors)

    def sample_at(self, sites: Array) -> Array:
        return np.full(len(sites), self.sampling)

    def check(self, domain: Domain) -> None:
        """Raise an `InputError` unless there is one factor per axis, or none at all."""
        if self.axis_rates is not None and len(self.axis_rates) != domain.dimension:
            raise InputError(
                f"axis_rates has {counted(len(self.axis_rates), 'number')}",
                expected=f"{domain.dimension}, for {', '.join(a.name for a in domain.axes)}",
                where="cost.axis_rates",
            )

    @property
    def straight_rates(self) -> Array | None:
        """The rate along each axis (d,); None if anything is in the way."""
        if self._domain is None or self._paths is not None:
            return None
        return self.rate * np.array(self.axis_rates or np.ones(self._domain.dimension))


@settings("cost")
class Boat(CostModel):
    """Seconds to raise the probe, travel by the shortest route at the surface, and lower the probe again.

    The depth is the last axis, if there is one. Between two depths at one place, the probe moves directly.

    Examples
    --------
    >>> boat = Boat(speed=2.0, stop_s=30.0, winch_speed=0.5)
    >>> boat.to([0.0, 0.0], [[60.0, 80.0]])
    array([80.])
    >>> boat.to([0.0, 0.0, 4.0], [[60.0, 80.0, 1.0], [0.0, 0.0, 5.0]])
    array([90., 32.])
    >>> boat.path([0.0, 0.0, 4.0], [60.0, 80.0, 1.0])[:, 2]
    array([4., 0., 0., 1.])
    """

    # Not a setting here: costs are in seconds.
    seconds_per_unit: ClassVar[float] = 1.0  # type: ignore[misc]
    prices_depth: ClassVar[bool] = True
    to_price_samples: ClassVar[str] = "set stop_s in the world's [cost], for example stop_s = 30"
    speed: PositiveFloat = 1.5
    """Speed of the boat, in m/s."""
    stop_s: NonNegativeFloat = 0.0
    """Seconds that a sample takes, once the probe is there."""
    winch_speed: PositiveFloat = 0.5
    """Speed at which the probe is lowered and raised, in m/s."""

    _plane: ClassVar[Euclidean | None] = None  # set by `within`: seconds at the surface

    @property
    def _surface(self) -> Euclidean:
        """What travel at the surface takes, in seconds."""
        return self._plane or Euclidean(rate=1.0 / self.speed)

    def _flat(self, dimension: int) -> int:
        """Return the number of horizontal axes; the first two, before the cost is bound to a domain."""
        return min(2, dimension) if self._domain is None else self._domain.flat.dimension

    def travel_between(self, starts: Array, ends: Array) -> Array:
        k = self._flat(starts.shape[1])
        seconds = self._surface.travel_between(starts[:, :k], ends[:, :k])
        if k == starts.shape[1]:
            return seconds
        down, up = starts[:, k:] / self.winch_speed, ends[:, k:].T / self.winch_speed
        return np.where(seconds == 0.0, np.abs(down - up), down + seconds + up)

    def sample_at(self, sites: Array) -> Array:
        return np.full(len(sites), self.stop_s)

    def path(self, a: ArrayLike, b: ArrayLike, time_s: float = 0.0) -> Array:
        """Return the route of the probe from `a` (d,) to `b` (d,) as (k, d) points, both ends included.

        Raises
        ------
        InputError
            There is no route.
        """
        start, end = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
        k = self._flat(len(start))
        if np.array_equal(start[:k], end[:k]):
            return super().path(start, end, time_s)
        at_surface = self._surface.path(start[:k], end[:k], time_s)
        if k == len(start):
            return at_surface
        route = np.column_stack([at_surface, np.zeros(len(at_surface))])
        before = [start] if start[k] != 0.0 else []
        after = [end] if end[k] != 0.0 else []
        return np.stack([*before, *route, *after])

    def along(self, points: ArrayLike, time_s: float = 0.0) -> tuple[float, float]:
        return CostModel.along(self._with(_plane=None), points, time_s)

    @property
    def straight_rates(self) -> Array | None:
        """The rate along each axis (d,); None if anything is in the way, or there is a depth."""
        if self._domain is None or self._domain.has_depth:
            return None
        return self._surface.straight_rates

    def check(self, domain: Domain) -> None:
        """Raise an `InputError` unless the axes are horizontal and in metres, with at most a last depth."""
        names = ", ".join(axis.label for axis in domain.axes)
        if any(axis.unit != "m" for axis in domain.axes) or domain.flat.dimension > 2:
            raise InputError(
                f"a boat cost does not fit the axes {names}",
                expected="one or two horizontal axes in m and, if there is a depth, depth in m as the last",
                where="cost.kind",
            )
        if domain.has_depth and domain.low[-1] < 0:
            raise InputError(
                f"the depth begins at {domain.low[-1]:g} m, above the surface",
                expected="a depth of at least 0",
                where="cost.kind",
            )

    def within(self, domain: Domain) -> Self:
        """Return this cost bound to a domain, whose outline and obstacles its routes never cross.

        Raises
        ------
        InputError
            Obstacles are boxes over the depth, too.
        """
        if domain.has_depth and any(o.dimension > 2 or domain.dimension == 2 for o in domain.obstacles):
            return super().within(domain)  # which rejects obstacles
        surface = Euclidean(rate=1.0 / self.speed).within(domain.flat)
        return self._with(_domain=domain, _plane=surface)


@settings("cost")
class Flight(Legs):
    """Energy of a flight: ``(power * seconds + climb * up + descent * down) / joules_per_unit``.

    Every straight leg starts and ends at rest. With speed v and acceleration a, a leg of length s takes
    ``s / v + v / a`` seconds, or ``2 sqrt(s / a)`` if it is too short to reach v. A route around an obstacle
    consists of several legs; among the routes that bend at corners of the free space, the one that needs the
    least energy is chosen. Because long legs cost less per metre, a route with a stop in the open may
    occasionally be cheaper still.

    Examples
    --------
    >>> drone = Flight(speed=5.0, acceleration=2.5, power=180.0, climb=90.0)
    >>> drone.travel_s([0.0, 0.0], [[20.0, 0.0], [0.0, 10.0]])
    array([6., 4.])
    >>> drone.travel([0.0, 0.0], [[20.0, 0.0], [0.0, 10.0]])
    array([0.3 , 0.45])
    """

    # Not a setting here: an upper bound, which holds for both moving and hovering.
    seconds_per_unit: ClassVar[float] = np.inf  # type: ignore[misc]
    speed: PositiveFloat = 5.0
    """Cruising speed, in m/s."""
    acceleration: PositiveFloat = 2.0
    """Acceleration and deceleration, in m/s^2."""
    power: NonNegativeFloat = 200.0
    """Power while moving, in W."""
    hover_power: NonNegativeFloat = 200.0
    """Power while sampling, in W."""
    hover_s: NonNegativeFloat = 0.0
    """Seconds that a sample takes."""
    climb: NonNegativeFloat = 0.0
    """Energy per metre up, in J, in addition to the power."""
    descent: NonNegativeFloat = 0.0
    """Energy per metre down, in J, in addition to the power."""
    up: str | None = None
    """Name of the vertical axis, by default the last one; an axis that points down is reversed."""
    joules_per_unit: PositiveFloat = 3600.0
    """Joules per unit of cost; 3600 if the cost unit is Wh."""

    def __post_init__(self) -> None:
        least = min(self.power, self.hover_power) if self.hover_s else self.power
        if least > 0:
            object.__setattr__(self, "seconds_per_unit", self.joules_per_unit / least)

    def _leg_seconds(self, starts: Array, ends: Array) -> Array:
        """Return the duration (P, N) of straight legs."""
        from scipy.spatial.distance import cdist

        length = cdist(starts, ends)
        ramp = self.speed / self.acceleration
        cruising = length / self.speed + ramp
        return np.where(length < self.speed * ramp, 2.0 * np.sqrt(length / self.acceleration), cruising)

    def leg_between(self, starts: Array, ends: Array) -> Array:
        joules = self.power * self._leg_seconds(starts, ends)
        if self.climb or self.descent:
            axis, sign = self._vertical
            rise = sign * (ends[None, :, axis] - starts[:, None, axis])
            joules += np.where(rise > 0, self.climb, -self.descent) * rise
        return joules / self.joules_per_unit

    @property
    def _vertical(self) -> tuple[int, float]:
        """The index of the vertical axis, and 1, or -1 if it points down."""
        if self._domain is None:
            return -1, 1.0
        names = [a.name for a in self._domain.axes]
        axis = -1 if self.up is None else names.index(self.up)
        return axis, -1.0 if self._domain.axes[axis].positive == "down" else 1.0

    def sample_at(self, sites: Array) -> Array:
        return np.full(len(sites), self.hover_power * self.hover_s / self.joules_per_unit)

    @property
    def seconds_per_travel(self) -> float | None:
        """None: climbing takes energy but no extra time."""
        return None

    def travel_s(self, positions: ArrayLike, sites: ArrayLike, time_s: float = 0.0) -> Array:
        """Return the seconds that the route of least energy takes; shapes as in `travel`."""
        paths = self._paths
        if paths is None:
            return pairwise_costs(self._leg_seconds, positions, sites)
        return pairwise_costs(lambda a, b: paths.along(a, b, self._leg_seconds), positions, sites)

    def sampling_s(self, sites: ArrayLike, level: int = 0, controls: Mask | None = None) -> Array:
        """Return the seconds (N,) that the vehicle hovers for a sample, whatever the sensor's level."""
        return np.full(len(np.atleast_2d(np.asarray(sites, dtype=float))), self.hover_s)

    def check(self, domain: Domain) -> None:
        """Raise an `InputError` unless all axes are in metres and `up` is one of them."""
        names = [a.name for a in domain.axes]
        if self.up is not None and self.up not in names:
            raise UnknownNameError.of("axis", self.up, names, where="cost.up")
        for axis in domain.axes:
            if axis.unit != "m":
                raise InputError(
                    f"a flight cost needs metres, but axis {axis.name!r} is in {axis.unit or 'no unit'}",
                    expected="axes in m",
                    where="cost.kind",
                    fix="give the axes in metres",
                )


@settings("cost")
class Transect(CostModel):
    """``along_rate |d along| + depth_rate (depth + 1)``; the second term is the cost of the sample.

    The cost of Bogunovic et al. 2016, section 4. The boat lowers and raises the probe for every sample. Each
    sample therefore pays for its depth, and only the distance along the track depends on the position.

    Examples
    --------
    >>> Transect().to([200.0, 9.0], [[100.0, 3.0], [350.0, 0.0]])
    array([41. , 41.5])
    """

    along_rate: NonNegativeFloat = 0.25
    """Cost per metre along the track (the first axis)."""
    depth_rate: NonNegativeFloat = 4.0
    """Cost per metre of depth (the second axis), and of handling the probe."""

    def travel_between(self, starts: Array, ends: Array) -> Array:
        return self.along_rate * np.abs(starts[:, None, 0] - ends[None, :, 0])

    def sample_at(self, sites: Array) -> Array:
        return self.depth_rate * (np.abs(sites[:, 1]) + 1.0)

    def path(self, a: ArrayLike, b: ArrayLike, time_s: float = 0.0) -> Array:
        """Return the probe's route: up, along the surface, and down again."""
        start, end = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
        points = np.stack([start, [start[0], 0.0], [end[0], 0.0], end])
        turns = np.flatnonzero(np.any(np.diff(points, axis=0) != 0, axis=1)) + 1
        return points[[0, *turns]] if len(turns) else points[[0, -1]]

    def check(self, domain: Domain) -> None:
        """Raise an `InputError` unless the domain has two axes, the second a depth of at least 0."""
        if domain.dimension != 2 or domain.axes[1].low < 0:
            raise InputError(
                f"a transect cost does not fit the axes {', '.join(a.name for a in domain.axes)}",
                expected="two axes: position along the track, and depth of at least 0",
                where="cost.kind",
            )


_EXACT = 8  # sites; more have too many orders for an exact search


def shortest_order(cost: CostModel, start: Array, sites: Array) -> list[int]:
    """Return the indices of `sites` in an order that needs little travel, from `start` to any last site.

    For up to eight sites the order is optimal (Held and Karp 1962). For more, the nearest remaining site
    comes next; then 2-opt and relocation take the first improvement until there is none. Sites that are free
    to travel between keep their order.

    Parameters
    ----------
    cost : CostModel
        Only its travel cost counts; it may be asymmetric.
    start : (d,) array
    sites : (k, d) array

    Examples
    --------
    >>> from fieldbo.costs import Euclidean
    >>> shortest_order(Euclidean(), np.array([0.0]), np.array([[5.0], [1.0], [3.0]]))
    [1, 2, 0]
    """
    travel = cost.travel(np.vstack([start, sites]), np.vstack([start, sites]))
    if len(sites) <= _EXACT:
        return _shortest(travel)
    order, left = [0], list(range(1, len(travel)))
    while left:
        order.append(left.pop(int(np.argmin(travel[order[-1], left]))))
    from fieldbo.costs._route_loops import shorten

    route = np.array(order)
    shorten(travel, route)
    return [int(n) - 1 for n in route[1:]]


def _shortest(travel: Array) -> list[int]:
    """Return the optimal order, by dynamic programming over the sites that remain."""

    @cache
    def rest(here: int, left: frozenset[int]) -> float:
        return min((float(travel[here, n]) + rest(n, left - {n}) for n in left), default=0.0)

    here, order, left = 0, list[int](), frozenset(range(1, len(travel)))
    while left:
        here = min(sorted(left), key=lambda n: float(travel[here, n]) + rest(n, left - {n}))
        order.append(here - 1)
        left -= {here}
    return order

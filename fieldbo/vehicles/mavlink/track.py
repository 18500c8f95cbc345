"""The track of a flight: the points that a vehicle passes on one battery, and what that costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.clock import duration_text
from fieldbo.errors import InputError
from fieldbo.mission.mission import Mission

_SAME = 1e-9  # times the extent; points closer than this are the same


@dataclass(frozen=True, eq=False)
class Visit:
    """A place that a vehicle goes to.

    Attributes
    ----------
    place : (d,) array
    route : (n, d) array
        That of the order, from the previous place to this one; empty if it was straight.
    is_site : bool
        Whether a sample is taken there; it is not at home.
    """

    place: Array
    route: Array = field(default_factory=lambda: np.empty((0, 0)))
    is_site: bool = True


@dataclass(frozen=True, eq=False)
class Track:
    """The points that a vehicle passes in straight legs.

    Attributes
    ----------
    points : (k, d) array
        The first is where the vehicle is armed.
    is_site : (k,) bool array
        Where a sample is taken.
    """

    points: Array
    is_site: Mask


def track(mission: Mission, visits: Sequence[Visit], start: Array | None = None) -> Track:
    """Return the routes from a start to places in order, and home if there is one.

    Parameters
    ----------
    mission : Mission
    visits : sequence of Visit
        A place where no vehicle can go, such as that of a reading taken in an obstacle's clearance, is
        replaced by the nearest site of the world. A route that does not lead from the previous place to this
        one, such as an empty one, is replaced by the world's.
    start : (d,) array, optional
        By default, the mission's.

    Raises
    ------
    InputError
        There are no sites.

    Examples
    --------
    >>> import fieldbo
    >>> wall = fieldbo.load_mission("wall-damage-map")
    >>> track(wall, [Visit(np.array([7.0, 4.0]))]).points.round(1).tolist()
    [[2.0, 0.0], [5.7, 2.3], [7.0, 4.0], [5.7, 2.3], [2.0, 0.0]]
    """
    domain, spec = mission.world.domain, mission.vehicles[0]
    if not any(visit.is_site for visit in visits):
        raise InputError("the plan has no sites", expected="at least one site")
    points, is_site = [spec.start if start is None else start], [False]
    near = _SAME * float(domain.extent.max())
    for visit in visits:
        place, ordered = visit.place, visit.route
        end = place if domain.contains(place)[0] else domain.sites[domain.nearest(place)]
        if np.array_equal(end, points[-1]):  # a transect would go up and down between two readings
            points.append(end)
            is_site.append(visit.is_site)
            continue
        fits = len(ordered) > 0 and np.allclose(ordered[[0, -1]], [points[-1], end], rtol=0, atol=near)
        route = ordered if fits else mission.world.cost.path(points[-1], end)
        points += [*route[1:-1], end]
        is_site += [*[False] * (len(route) - 2), visit.is_site]
    if spec.home is not None and not np.array_equal(points[-1], spec.home):
        back = mission.world.cost.path(points[-1], spec.home)[1:]
        points += list(back)
        is_site += [False] * len(back)
    return Track(np.array(points), np.array(is_site))


def firsts(way: Track) -> NDArray[np.int64]:
    """Return the rows of a track's points without consecutive repeats."""
    return np.flatnonzero(np.append(True, (np.diff(way.points, axis=0) != 0).any(axis=1)))


def stays(way: Track, stay_s: ArrayLike) -> Array:
    """Return the seconds at each point of a track without consecutive repeats; their stays add up."""
    return np.add.reduceat(np.where(way.is_site, stay_s, 0.0), firsts(way))


# -- what it costs -----------------------------------------------------------------------------------------


def declared(mission: Mission, way: Track, stay_s: ArrayLike) -> tuple[float, float]:
    """Return the declared cost of a track with its stays, and the seconds that it takes.

    A stay costs as much as sampling for the same time or, where sampling takes no time, as travelling for the
    same time.

    Parameters
    ----------
    mission : Mission
    way : Track
    stay_s : float or (k,) array
        How long to stay at each site, or at each point, in seconds. Stays at consecutive repeats add up.

    Returns
    -------
    cost : float
        In the world's cost unit; not finite where the costs are unknown.
    duration_s : float

    Examples
    --------
    >>> import fieldbo
    >>> lake = fieldbo.load_mission("lake-lawnmower")
    >>> declared(lake, track(lake, [Visit(np.array([100.0, 5.0]))]), 24.0)
    (49.0, 49.0)
    """
    cost = mission.world.cost
    at, stayed = way.points[firsts(way)], stays(way, stay_s)
    sampling_s, sampling = cost.sampling_s(at), cost.sampling_cost(at)
    with np.errstate(divide="ignore", invalid="ignore"):
        rates = np.where(sampling_s > 0, sampling / sampling_s, 1.0 / cost.seconds_per_unit)
    travel, travel_s = cost.along(way.points)
    return travel + float(np.where(stayed > 0, stayed * rates, 0.0).sum()), travel_s + float(stayed.sum())


def in_words(mission: Mission, cost: float, seconds: float) -> str:
    """Return how long a flight takes, and what it costs if that is something else; empty if unknown."""
    if not (math.isfinite(cost) and math.isfinite(seconds)):
        return ""
    needs, unit = duration_text(seconds), mission.world.cost_unit
    return needs if _in_seconds(mission, cost, seconds) else f"{needs} and {_about(cost)} {unit}"


def beyond_battery(mission: Mission, cost: float, seconds: float) -> str:
    """Return by how much a flight exceeds the battery, as the end of a sentence; nothing if it does not."""
    spec, unit = mission.vehicles[0], mission.world.cost_unit
    if not math.isfinite(cost) or cost <= spec.battery - spec.reserve:
        return ""
    timed = _in_seconds(mission, cost, seconds)

    def shown(amount: float) -> str:
        return duration_text(amount) if timed else f"{_about(amount)} {unit}"

    reserve = f" less the reserve of {shown(spec.reserve)}" if cost <= spec.battery else ""
    verb, battery = "take" if timed else "cost", shown(spec.battery)
    return f"{verb} about {shown(cost)}, more than the battery of {battery}{reserve}"


def beyond_time_limit(mission: Mission, seconds: float) -> str:
    """Return by how much flights exceed the time limit, as the end of a sentence; nothing if not."""
    limit = mission.vehicles[0].time_limit_s
    if limit is None or not seconds > limit:
        return ""
    return f"take about {duration_text(seconds)}, more than the time limit of {duration_text(limit)}"


def _in_seconds(mission: Mission, cost: float, seconds: float) -> bool:
    return mission.world.cost_unit == "s" and math.isclose(cost, seconds)


def _about(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"

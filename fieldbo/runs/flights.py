"""The flights of a run, or of a mission that needs no readings: one per battery, and what each costs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from fieldbo._numerics.arrays import Array
from fieldbo.agent.agent import Agent
from fieldbo.clock import duration_text
from fieldbo.errors import InputError
from fieldbo.messages import GoHome, Observation, Order, Query, Recharge, Stop
from fieldbo.mission.mission import Mission
from fieldbo.runs.replay import load_run
from fieldbo.vehicles.mavlink.flight_plan import Track, firsts, stays

NEEDS_NO_READINGS = ("lawnmower", "random")
"""Policies whose route does not depend on the readings."""

_USUAL_STAY_S = 5.0

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


@dataclass(frozen=True, eq=False)
class Flight:
    """What a vehicle does with one battery, from where it is armed until it is home.

    Attributes
    ----------
    battery : int
        Number of the battery, counted from 1.
    way : Track
    stay_s : (k,) array
        How long the world's sampling takes at each point of the track, in seconds.
    """

    battery: int
    way: Track
    stay_s: Array

    def staying(self, seconds: float) -> Flight:
        """Return the same flight with stays of so many seconds at its sites."""
        return replace(self, stay_s=np.where(self.way.is_site, seconds, 0.0))


def flights_of_run(run: str) -> tuple[Mission, list[Flight]]:
    """Return the mission of a run, and its flights.

    Parameters
    ----------
    run : str
        As for `load_run`.

    Raises
    ------
    InputError
        There is no such run, or it has no readings.
    """
    agent = load_run(run).agent
    done = [
        (agent.issued[event.order].order, event) for event in agent.history if isinstance(event, Observation)
    ]
    return agent.mission, _flights(agent.mission, done)


def through_closed(mission: Mission, flights: Sequence[Flight]) -> list[str]:
    """Return a warning for each area that was closed under way, and through which a flight leads.

    A run may have been there before. Its flights are those that it flew.
    """
    legs = [leg for flight in flights for leg in pairwise(flight.way.points)]
    return [
        f"the plan leads through {area.name}, which was closed under way: fly it only if the area is open "
        "again, or plan the mission with the area as an obstacle of its world"
        for area in mission.world.no_go
        if any(area.crosses(start, end) for start, end in legs)
    ]


def flights_of_mission(mission: Mission) -> list[Flight]:
    """Return the flights of a mission, asked for in advance with readings of 0: its policy ignores them.

    Raises
    ------
    InputError
        Its policy does not.

    Examples
    --------
    >>> import fieldbo
    >>> sweep = fieldbo.load_mission("lake-lawnmower")
    >>> [(flight.battery, int(flight.way.is_site.sum())) for flight in flights_of_mission(sweep)]
    [(1, 65)]
    """
    if mission.policy_kind not in NEEDS_NO_READINGS:
        raise InputError(
            f"the route of the policy {mission.policy_kind!r} depends on its readings",
            expected=f"a policy that ignores readings: {' or '.join(NEEDS_NO_READINGS)}",
            where="policy.kind",
            fix="add --set policy.kind=lawnmower, or run the mission and plan the run",
        )
    agent, done = Agent(mission), list[tuple[Order, Observation]]()
    while not isinstance(order := agent.ask(), Stop):
        event = order.observed(0.0, noise_variance=1.0) if isinstance(order, Query) else order.observed()
        agent.tell(event)
        done.append((order, event))
    return _flights(mission, done)


@dataclass
class _Battery:
    """What was done with one battery: where the vehicle went, and for which orders."""

    number: int
    visits: list[Visit] = field(default_factory=list)
    queries: list[Query] = field(default_factory=list)

    def take(self, order: Order, event: Observation) -> None:
        """Add where an order led."""
        if isinstance(order, Query):
            for site in event.sites:
                again = self.queries and order is self.queries[-1]
                if again and np.array_equal(site, self.visits[-1].place):
                    continue  # a further reading of the same stay
                self.visits.append(Visit(site, order.route))
                self.queries.append(order)
        elif isinstance(order, GoHome) and event.complete and order.site is not None:
            self.visits.append(Visit(order.site, order.route, is_site=False))


def _flights(mission: Mission, done: Iterable[tuple[Order, Observation]]) -> list[Flight]:
    """Return the flights in which orders were carried out; without those on which nothing was sampled."""
    batteries = [_Battery(1)]
    for order, event in done:
        if isinstance(order, Recharge):
            batteries.append(_Battery(order.battery))
        else:
            batteries[-1].take(order, event)
    used = [battery for battery in batteries if battery.queries] or batteries[:1]
    return [_flight(mission, battery) for battery in used]


def _flight(mission: Mission, battery: _Battery) -> Flight:
    spec = mission.vehicles[0]
    way = track(mission, battery.visits, spec.start if battery.number == 1 else spec.home)
    stay_s = np.zeros(len(way.points))
    stay_s[way.is_site] = _sampling_s(mission, battery.queries)
    return Flight(battery.number, way, stay_s)


def _sampling_s(mission: Mission, queries: Sequence[Query]) -> list[float]:
    """Return how long the world's sampling takes at the site of each query, in seconds."""
    cost = mission.world.cost
    times = [float(cost.sampling_s(query.site[None], query.level)[0]) for query in queries]
    return [time if math.isfinite(time) else _USUAL_STAY_S for time in times]


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

"""The flights of a run, or of a mission that needs no readings: one per battery."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.agent.agent import Agent
from fieldbo.errors import InputError
from fieldbo.messages import GoHome, Observation, Order, Query, Recharge, Stop
from fieldbo.mission.mission import Mission
from fieldbo.runs.replay import load_run
from fieldbo.vehicles.mavlink.track import Track, Visit, track

NEEDS_NO_READINGS = ("lawnmower", "random")
"""Policies whose route does not depend on the readings."""

_USUAL_STAY_S = 5.0


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

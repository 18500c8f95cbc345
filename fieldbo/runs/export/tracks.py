"""Where vehicles were, and when: what they reported, with the bends of their routes between."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np
import shapely

from fieldbo._numerics.arrays import Array
from fieldbo.agent.agent import Agent
from fieldbo.domain.domain import Domain
from fieldbo.messages import Observation, Telemetry
from fieldbo.results.result import Result
from fieldbo.runs.replay import Recorded

_NO_ROUTE: Array = np.empty((0, 0))

Track = list[tuple[Array, float | None]]
"""Where a vehicle was, and when, in seconds since the start of the run; None if unknown."""


def track(run: Recorded, vehicle: int) -> Track:
    """Return where a vehicle was, and when.

    The positions of its readings and those that it reported, and between them the bends of its route, without
    a time. Before a bend, the place that it left also has the time at which it was last there. A leg between
    positions that it reported on the way, or where it read, is straight, unless that leaves the domain.
    """
    start: Track = [(run.mission.vehicles[vehicle].start, 0.0)]
    return [*start, *chain.from_iterable(stretches(run.result, run.agent, vehicle))]


def timed(track: Track) -> list[tuple[Array, float]]:
    """Return a track with a time at every point.

    Between points whose times are known, a vehicle is taken to move at one speed; after the last of them, to
    be there at that time.

    Parameters
    ----------
    track : Track
        In metres. Its first point has a time.

    Examples
    --------
    >>> corner, end = np.array([30.0, 0.0]), np.array([30.0, 10.0])
    >>> bent = [(np.zeros(2), 0.0), (corner, None), (end, 20.0), (corner, None)]
    >>> [seconds for _, seconds in timed(bent)]
    [0.0, 15.0, 20.0, 20.0]
    """
    sites = np.stack([site for site, _ in track])
    way = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(sites, axis=0), axis=1))])
    known = {k: seconds for k, (_, seconds) in enumerate(track) if seconds is not None}
    # Points at one place, such as a stay, have the same way but times of their own.
    between = np.interp(way, way[list(known)], list(known.values())).tolist()
    return [(site, known.get(k, between[k])) for k, site in enumerate(sites)]


def stretches(result: Result, agent: Agent, vehicle: int) -> Iterator[Track]:
    """Yield the part of a vehicle's track that each event of an agent's history adds."""
    domain, issued = result.mission.world.domain, agent.issued
    at, latest, on_the_way = result.mission.vehicles[vehicle].start, 0.0, False
    arrived = 0.0  # when the vehicle was first at this place, and `latest` when it was last known to be there
    order = next(iter(issued), "")
    for event in agent.history:
        points: Track = []
        stops: Track = []
        if isinstance(event, Telemetry) and event.vehicle == vehicle:
            on_the_way, route = True, _NO_ROUTE
            stops = [(event.position, event.time_s if event.located_s is None else event.located_s)]
        elif isinstance(event, Observation) and issued[event.order].order.vehicle == vehicle:
            route, order = issued[event.order].order.route, event.order
            stops = [*zip(event.sites, event.times_s.tolist(), strict=True), (event.position, event.time_s)]
        else:
            yield points
            continue
        for number, (stop, seconds) in enumerate(stops):
            known = seconds if seconds is not None and seconds >= latest else None
            left, latest = latest, latest if known is None else known
            if np.array_equal(stop, at):
                continue
            if not ((on_the_way or number) and _straight(domain, at, stop)):
                bends = [(point, None) for point in result.leg(at, stop, route, order)[:-1]]
                points += [(at, left), *bends] if bends and left > arrived else bends
            points.append((stop, known))
            at, arrived = stop, latest
        on_the_way = isinstance(event, Telemetry)
        yield points


def _straight(domain: Domain, at: Array, stop: Array) -> bool:
    """Return whether the straight leg between two points (d,) stays inside a domain."""
    if domain.clear or domain.region is None:
        return domain.clear
    return bool(shapely.covers(domain.region, shapely.LineString([at, stop])))

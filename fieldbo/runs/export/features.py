"""Path, routes, readings and sites of a run as features: a geometry with properties."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import shapely
from shapely.geometry.base import BaseGeometry

from fieldbo._numerics.arrays import Array
from fieldbo.agent.agent import Agent
from fieldbo.domain.domain import Domain
from fieldbo.messages import GoHome, Observation, Query, Recharge, Telemetry
from fieldbo.record.store import ORDERS
from fieldbo.results.maps import layers as map_layers
from fieldbo.results.result import Result
from fieldbo.runs.export.recorded import Recorded

_NO_ROUTE: Array = np.empty((0, 0))

Place = Callable[[Array], Array]
"""Returns sites (k, d) as coordinates (k, 2) or (k, 3) of the output."""


@dataclass(frozen=True, eq=False)
class Feature:
    """A geometry with properties.

    Attributes
    ----------
    geometry : BaseGeometry
        In the coordinates of the output.
    properties : dict
        Text, numbers and booleans.
    """

    geometry: BaseGeometry
    properties: dict[str, Any]


Layers = dict[str, list[Feature]]
"""Features of one type of geometry by name."""


def layers(run: Recorded, place: Place) -> Layers:
    """Return path, routes, readings and map of a run.

    Parameters
    ----------
    run : Recorded
    place : callable
        As `Placement.degrees` and `Placement.metres`.
    """
    return {
        "path": paths(run, place),
        "routes": routes(run, place),
        "readings": readings(run, place),
        "map": sites(run, place),
    }


def paths(run: Recorded, place: Place) -> list[Feature]:
    """Return the actual path of each vehicle as a line; a vehicle that has not moved is a point."""
    features = []
    for number, account in enumerate(run.result.accounts):
        path = place(_path_of(run.result, number))
        properties = {"run": run.name, "mission": run.mission.name, "cost": account.spent}
        properties |= {"vehicle": number} if len(run.result.accounts) > 1 else {}
        properties |= {"cost_unit": run.mission.world.cost_unit}
        shape = shapely.LineString(path) if len(path) > 1 else shapely.Point(path[0])
        features.append(Feature(shape, properties))
    return features


def _path_of(result: Result, vehicle: int) -> Array:
    """Return the actual path (k, d) of one vehicle."""
    orders = {order.id for order, _, _ in result.accounts[vehicle].lines}
    observations = tuple(event for event in result.observations if event.order in orders)
    mission = replace(result.mission, vehicles=(result.mission.vehicles[vehicle],))
    return replace(result, mission=mission, observations=observations).path


def routes(run: Recorded, place: Place) -> list[Feature]:
    """Return the route of each order as it was planned, from where its vehicle was expected to be."""
    features = []
    for kind, order, route in planned(run):
        properties = {
            "run": run.name,
            "order": order.id,
            "kind": kind,
            "vehicle": order.vehicle,
            "expected_cost": order.expected_cost,
            "cost_unit": run.mission.world.cost_unit,
        }
        features.append(Feature(shapely.LineString(place(route)), properties))
    return features


def planned(run: Recorded) -> Iterator[tuple[str, Query | GoHome, Array]]:
    """Yield each order that moves a vehicle, its kind and its route (k, d), from where that was expected."""
    ends = [spec.start for spec in run.mission.vehicles]
    for row in run.rows:
        if row.kind not in ORDERS:
            continue
        order = row.message
        if isinstance(order, Recharge):
            continue
        assert isinstance(order, Query | GoHome)
        assert order.site is not None
        yield (
            row.kind,
            order,
            order.route if len(order.route) else np.stack([ends[order.vehicle], order.site]),
        )
        ends[order.vehicle] = order.site


def readings(run: Recorded, place: Place) -> list[Feature]:
    """Return one point per reading, with the columns of the table of readings and the time."""
    header, rows = run.result.readings()
    features = []
    for position, row in zip(place(run.result.sites), rows, strict=True):
        properties = dict(zip(header, row, strict=True))
        time = run.time(float(properties["time_s"]))
        properties["time"] = time.isoformat(timespec="milliseconds")
        features.append(Feature(shapely.Point(position), properties))
    return features


def sites(run: Recorded, place: Place) -> list[Feature]:
    """Return one point per site, with the values of the final maps."""
    values = {name: layer for name, (layer, _) in map_layers(run.result, run.result.surface).items()}
    rows = zip(*values.values(), strict=True)
    positions = place(run.mission.world.domain.sites)
    return [
        Feature(shapely.Point(position), dict(zip(values, row, strict=True)))
        for position, row in zip(positions, rows, strict=True)
    ]


Track = list[tuple[Array, float | None]]
"""Where a vehicle was, and when, in seconds since the start of the run; None if unknown."""


def track(run: Recorded, vehicle: int) -> Track:
    """Return where a vehicle was, and when.

    The positions of its readings and those that it reported, and between them the bends of its route, without
    a time. A leg between positions that it reported on the way, or where it read, is straight, unless that
    leaves the domain.
    """
    start: Track = [(run.mission.vehicles[vehicle].start, 0.0)]
    return [*start, *chain.from_iterable(stretches(run.result, run.agent, vehicle))]


def stretches(result: Result, agent: Agent, vehicle: int) -> Iterator[Track]:
    """Yield the part of a vehicle's track that each event of an agent's history adds."""
    domain, issued = result.mission.world.domain, agent.issued
    at, latest, on_the_way = result.mission.vehicles[vehicle].start, 0.0, False
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
            if np.array_equal(stop, at):
                continue
            if not ((on_the_way or number) and _straight(domain, at, stop)):
                points += [(point, None) for point in result.leg(at, stop, route, order)[:-1]]
            known = seconds is not None and seconds >= latest
            points.append((stop, seconds if known else None))
            at, latest = stop, seconds if known and seconds is not None else latest
        on_the_way = isinstance(event, Telemetry)
        yield points


def _straight(domain: Domain, at: Array, stop: Array) -> bool:
    """Return whether the straight leg between two points (d,) stays inside a domain."""
    if domain.clear or domain.region is None:
        return domain.clear
    return bool(shapely.covers(domain.region, shapely.LineString([at, stop])))

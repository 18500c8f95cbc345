"""The checks of an event before an agent takes it in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.agent.corrections import corrected
from fieldbo.agent.state import Issued
from fieldbo.agent.vehicle_state import VehicleState
from fieldbo.domain.domain import Domain
from fieldbo.domain.sensor import distances_from, in_order, off_route_m
from fieldbo.errors import InputError, counted
from fieldbo.messages import (
    Answer,
    Command,
    Correction,
    Event,
    Lost,
    Observation,
    Order,
    Query,
    Rejected,
    Telemetry,
)
from fieldbo.validation import LARGEST

Way = Callable[[Array, Array], Array]
"""``path(a, b)`` returns the points (k, d) of the way from one place (d,) to another."""

_NUMBERS: dict[type, tuple[str, ...]] = {
    Observation: ("sites", "values", "noise_variances", "times_s", "position", "cost", "time_s"),
    Telemetry: ("position", "remaining", "time_s", "accuracy"),
    Correction: ("values",),
}


def belongs(event: Event, issued: Mapping[str, Issued]) -> bool:
    """Return True if an event belongs to one of the issued orders, or to no order at all, as a command."""
    order = getattr(event, "order", None)
    return isinstance(event, Command | Answer) or order is None or order in issued


def check_event(
    event: Event,
    issued: Mapping[str, Issued],
    history: Sequence[Event],
    domain: Domain,
    vehicles: Sequence[VehicleState],
    *,
    path: Way | None = None,
) -> None:
    """Raise an `InputError` unless an agent that issued some orders can take in an event.

    `path` gives the way from one place to another if the vehicles read on it.
    """
    if not belongs(event, issued):
        raise InputError(
            f"received an event for the unknown order {getattr(event, 'order', None)!r}",
            expected="the id of an order that this agent issued",
            fix="pass on the query's own id: Observation(order=query.id, ...)",
        )
    if isinstance(event, Observation | Telemetry) and len(event.position) != domain.dimension:
        raise InputError(
            f"position has {counted(len(event.position), 'coordinate')}",
            expected=f"{domain.dimension}: {', '.join(a.name for a in domain.axes)}",
        )
    _check_magnitudes(event)
    if isinstance(event, Correction):
        corrected(history, event)
    if isinstance(event, Telemetry) and event.vehicle not in range(len(vehicles)):
        raise InputError(
            f"received telemetry of vehicle {event.vehicle}, which the mission does not have",
            expected=f"a vehicle of the mission, 0 to {len(vehicles) - 1}",
        )
    if path is not None and isinstance(event, Observation) and len(event.sites):
        order = issued[event.order].order
        _check_on_the_way(event, order, vehicles[order.vehicle], domain, path)


def vehicle_of(event: Event, issued: Mapping[str, Issued]) -> int:
    """Return the number of the vehicle that an event concerns; 0 for a fit."""
    if isinstance(event, Observation | Rejected | Lost | Correction):
        return issued[event.order].order.vehicle
    return (event.vehicle or 0) if isinstance(event, Telemetry | Command) else 0


def _check_on_the_way(
    event: Observation, order: Order, vehicle: VehicleState, domain: Domain, path: Way
) -> None:
    """Raise an `InputError` unless the readings that did not fail can come from the move of their order."""
    where, usable = f"observation of {event.order}", np.flatnonzero(np.isfinite(event.values))
    times = event.times_s[usable]
    if not (kept := in_order(times)).all():
        k = int(np.flatnonzero(~kept)[0])
        raise InputError(
            f"times_s is out of order at reading {usable[k]}, of {times[k]:.6g} s",
            expected="the readings in the order in which they were taken",
            where=where,
            fix="sort sites, values and times_s by time",
        )
    if not vehicle.queue or str(vehicle.queue[0].id) != event.order:
        return  # it comes late, or out of turn: where and when the move began is not known
    first, last = max(0.0, vehicle.settled_s), np.inf if event.time_s is None else event.time_s
    rounding = 1e-6 * (1.0 + abs(first))
    outside = usable[(times < first - rounding) | (times > last + rounding)]
    if len(outside):
        until = "" if np.isinf(last) else f" to {last:.6g} s"
        raise InputError(
            f"reading {outside[0]} was taken at {event.times_s[outside[0]]:.6g} s, outside of its move",
            expected=f"times from {first:.6g} s{until}, while the vehicle carried out this order",
            where=where,
            fix="give times_s in seconds since the start of the run, not of the move",
        )
    if vehicle.reports:
        return  # its link knows the route that it was really sent on
    # Earlier parts of this order, or those of one that was lost, may have moved the vehicle since.
    begin = [] if vehicle.settled_at is None else [vehicle.settled_at]
    points = [*begin, vehicle.position, *order.route]
    if order.site is not None and not np.isnan(order.site).any():
        points.append(order.site)
    if isinstance(order, Query) and event.last:
        usable = usable[usable < len(event.sites) - 1]  # the reading at its site may be anywhere
    gaps, limit = distances_from(np.stack(points), event.sites[usable]), off_route_m(domain)
    if (gaps > limit).any():
        # If an earlier order of the batch was rejected, the route begins elsewhere than the vehicle did.
        onward = points[len(begin) + 1 :]
        for place in (*onward[:1], *onward[-1:]):
            gaps = np.minimum(gaps, distances_from(path(vehicle.position, place), event.sites[usable]))
    if (gaps > limit).any():
        k = int(gaps.argmax())
        raise InputError(
            f"reading {usable[k]}, at {event.sites[usable[k]].round(6).tolist()}, lies {gaps[k]:.4g} m from "
            "the route of its order",
            expected=f"readings on the way within {limit:.4g} m of it, a tenth of the domain's longest side",
            where=where,
            fix="check the order of the coordinates, and pass only the readings of this move",
        )


def _check_magnitudes(event: Event) -> None:
    """Raise an `InputError` if an event of a vehicle holds a number too large to add."""
    for name in _NUMBERS.get(type(event), ()):
        numbers = getattr(event, name)
        if numbers is None or not np.size(numbers):
            continue
        largest = float(np.where(np.isfinite(numbers), np.abs(numbers), 0.0).max())  # others have failed
        if largest > LARGEST:
            raise InputError(
                f"{name} has {largest:g}", expected=f"numbers of at most {LARGEST:g}", where=name
            )

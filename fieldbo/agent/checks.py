"""What an agent checks before it acts: events that it is told, corrections, and a policy's decisions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.agent.affordability import Affordability
from fieldbo.agent.state import AGENT_KEYS, AgentState, Issued
from fieldbo.agent.vehicle_state import VehicleState
from fieldbo.costs.travel import shortest_order
from fieldbo.domain.domain import Domain
from fieldbo.domain.sensor import distances_from, in_order, off_route_m
from fieldbo.errors import InputError, PolicyError, counted
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
    Stop,
    Telemetry,
)
from fieldbo.mission.mission import Mission, policy_name
from fieldbo.policies.contract import THIS_POLICY, Decision, Memory, State
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


def correction(
    history: Sequence[Event], run: str, order: str | int, value: float | None, reading: int | None = None
) -> Correction:
    """Return the event that corrects one reading.

    Parameters
    ----------
    history : sequence of Event
        All events so far.
    run : str
        Name of the run.
    order : str or int
        Id or number of the order.
    value : float or None
        What the reading really was; None or NaN if it failed or is withdrawn.
    reading : int, optional
        Which reading of the order, counted from 0. Required if it has several.

    Raises
    ------
    InputError
        There is no such order or reading, or the value is infinite.
    """
    name = order if isinstance(order, str) else f"{run}/{order}"
    parts = [event for event in history if isinstance(event, Observation) and event.order == name]
    places = [(part, k) for part in parts for k in range(len(part.values))]
    if not places:
        raise InputError(
            f"order {order} of {run} has no reading",
            expected="the number of an order that was read",
            where="order",
            fix="look the number up in observations.csv",
        )
    if reading is None and len(places) > 1:
        shown = ", ".join(f"{k}: {part.values[j]:g}" for k, (part, j) in enumerate(places[:10]))
        raise InputError(
            f"order {order} has {counted(len(places), 'reading')} ({shown}{', ...' * (len(places) > 10)})",
            expected="which of them to correct",
            where="reading",
            fix=f"give its number, 0 to {len(places) - 1}",
        )
    if not 0 <= (reading or 0) < len(places):
        raise InputError(
            f"order {order} has no reading {reading}", expected=f"0 to {len(places) - 1}", where="reading"
        )
    if value is not None and math.isinf(value):
        raise InputError(f"value = {value}", expected="a finite number, or None", where="value")
    part, k = places[reading or 0]
    values = part.values.copy()
    values[k] = math.nan if value is None else value
    return Correction(name, part.part, values)


def corrected(history: Sequence[Event], event: Correction) -> tuple[int, Observation]:
    """Return the place in the history of the observation that an event corrects, and it as corrected.

    Raises
    ------
    InputError
        There is no such part, or it has another number of readings.
    """
    for place, before in enumerate(history):
        if not isinstance(before, Observation) or (before.order, before.part) != (event.order, event.part):
            continue
        if len(before.values) != len(event.values):
            raise InputError(
                f"a correction of {counted(len(event.values), 'reading')} of {event.order}",
                expected=f"{len(before.values)}, as in its observation",
                where=f"correction of {event.order}",
            )
        return place, replace(before, values=event.values)
    raise InputError(
        f"a correction of part {event.part} of {event.order}, which was not observed",
        expected="a part that was observed",
        where=f"correction of {event.order}",
    )


def same_readings(a: Event, b: Observation) -> bool:
    """Return True if two observations have the same readings."""
    return isinstance(a, Observation) and np.array_equal(a.values, b.values, equal_nan=True)


def suggested(mission: Mission, state: State, memory: Memory) -> Decision:
    """Return the decision of a mission's policy, and name the policy in its errors.

    Raises
    ------
    PolicyError
        The policy violated its contract, returned something else than a decision or, before the first order
        is settled, wrote to arrays that it was shown.
    """
    shown = {} if state.steps else {name: (array, array.copy()) for name, array in _arrays(state).items()}
    try:
        decision = mission.policy.suggest(state, memory)
    except PolicyError as error:
        raise PolicyError(str(error).replace(THIS_POLICY, f"policy {policy_name(mission)}")) from error
    check_decision(decision, "suggest", mission)
    changed = [
        name for name, (array, copy) in shown.items() if not np.array_equal(array, copy, equal_nan=True)
    ]
    if changed:
        raise PolicyError(
            f"policy {policy_name(mission)} wrote to {', '.join(changed)}, which the agent goes by\n"
            f"  fix:      change a copy: {changed[0]}.copy()"
        )
    return with_own_reasons(decision)


def _arrays(state: State) -> dict[str, Array | Mask]:
    """Return the arrays in a state to which a policy might write, by name."""
    surface = state.surface
    arrays: dict[str, Array | Mask] = {
        "state.surface.mean": surface.mean,
        "state.surface.variance": surface.variance,
        "state.surface.candidates": surface.candidates,
        "state.domain.sites": state.domain.sites,
        "state.position": state.position,
        "state.rejected": state.rejected,
    }
    return {name: array for name, array in arrays.items() if len(array)}


def with_own_reasons(decision: Decision) -> Decision:
    """Return a decision whose reasons leave the agent's own keys free."""
    if not AGENT_KEYS & decision.why.keys():
        return decision
    why = {f"{key} of the policy" if key in AGENT_KEYS else key: x for key, x in decision.why.items()}
    return replace(decision, why=why)


def check_decision(decision: object, method: str, mission: Mission) -> None:
    """Raise a `PolicyError` if what a method of a policy returned is not a decision for a query or a stop."""
    got = repr(decision)
    if isinstance(decision, Decision):
        if isinstance(decision.choice, Query | Stop):
            return
        got = f"a Decision for {decision.choice!r}"
    raise PolicyError(
        f"{method} of policy {policy_name(mission)} returned {got[:200]}\n"
        "  expected: a fieldbo.policies.Decision for a Query or a Stop"
    )


def check_proposal(query: Query, mission: Mission) -> None:
    """Raise a `PolicyError` if the mission's world cannot carry out a policy's query."""
    name, domain = f"policy {policy_name(mission)}", mission.world.domain
    if query.site.shape != (domain.dimension,):
        raise PolicyError(
            f"{name} proposed {query.site.tolist()}, in a domain with the axes "
            f"{', '.join(axis.name for axis in domain.axes)}"
        )
    free = np.zeros(len(query.site), dtype=bool) if query.controls is None else ~query.controls
    if domain.controls is not None and domain.controls.index_of(query.controls) is None:
        raise PolicyError(f"{name} proposed controls {query.controls}, which is not a control set")
    if domain.controls is None and free.any():
        raise PolicyError(f"{name} left variables free in a domain without control sets")
    if not domain.contains(np.where(free, domain.middle, query.site)[None])[0]:
        raise PolicyError(f"{name} proposed {query.site.tolist()}, outside the domain")
    if query.level not in range(settings := mission.world.sensor.settings):
        raise PolicyError(f"{name} proposed level {query.level}; the sensor's levels are 0 to {settings - 1}")


def affordable_route(
    state: Affordability, decisions: Sequence[Decision], domain: Domain
) -> Sequence[Decision]:
    """Return decisions along the shortest route, dropping those chosen last until it is affordable."""
    for k in range(len(decisions), 0, -1):
        choices = [d.choice for d in decisions[:k] if isinstance(d.choice, Query)]
        stops = np.stack([domain.expected(c.site) for c in choices])
        order = range(k) if state.cost is None else shortest_order(state.cost, state.end, stops)
        if state.can_pay([choices[n] for n in order]):
            return [decisions[n] for n in order]
    return []


def expected_cost(query: Query, agent: AgentState) -> float | None:
    """Return the cost to expect of a query where costs are unknown; None if nothing is known.

    The policy's own estimate if it has one, otherwise the mean cost of settled queries that set the same
    variables.
    """
    if query.expected_cost is not None:
        return query.expected_cost
    orders = {key: issued.order for key, issued in agent.issued.items()}
    alike = {key for key, o in orders.items() if isinstance(o, Query) and _sets_the_same(o, query)}
    ledgers = [vehicle.ledger for vehicle in agent.vehicles]
    entries = [e for ledger in ledgers for k, e in ledger.entries.items() if k in alike and not e.outstanding]
    paid = [e.spent for e in entries if not math.isnan(e.spent)]
    return math.fsum(paid) / len(paid) if paid else None


def _sets_the_same(first: Query, second: Query) -> bool:
    """Return True if two queries set the same variables."""
    masks = (np.ones(len(q.site), dtype=bool) if q.controls is None else q.controls for q in (first, second))
    return bool(np.equal(*masks).all())

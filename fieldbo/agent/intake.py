"""The checks of an event before an agent takes it in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fieldbo.agent.corrections import corrected
from fieldbo.agent.proposals import Issued
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError, counted
from fieldbo.messages import Correction, Event, Lost, Observation, Rejected, Telemetry
from fieldbo.validation import LARGEST

_NUMBERS: dict[type, tuple[str, ...]] = {
    Observation: ("sites", "values", "noise_variances", "times_s", "position", "cost", "time_s"),
    Telemetry: ("position", "remaining", "time_s", "accuracy"),
    Correction: ("values",),
}


def belongs(event: Event, issued: Mapping[str, Issued]) -> bool:
    """Return True if an event belongs to one of the issued orders, or to no order at all."""
    order = getattr(event, "order", None)
    return order is None or order in issued


def check_event(
    event: Event, issued: Mapping[str, Issued], history: Sequence[Event], domain: Domain, vehicles: int
) -> None:
    """Raise an `InputError` unless an agent that issued some orders can take in an event."""
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
    if isinstance(event, Telemetry) and event.vehicle not in range(vehicles):
        raise InputError(
            f"received telemetry of vehicle {event.vehicle}, which the mission does not have",
            expected=f"a vehicle of the mission, 0 to {vehicles - 1}",
        )


def vehicle_of(event: Event, issued: Mapping[str, Issued]) -> int:
    """Return the number of the vehicle that an event concerns; 0 for a fit."""
    if isinstance(event, Observation | Rejected | Lost | Correction):
        return issued[event.order].order.vehicle
    return event.vehicle if isinstance(event, Telemetry) else 0


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

"""What an agent takes in: events that can be used, each once."""

from __future__ import annotations

import numpy as np

from fieldbo.errors import InputError
from fieldbo.messages import Event, Observation, Telemetry

LARGEST = 1e100
"""Largest magnitude of a number from a vehicle: the squares and sums of smaller ones are finite."""

_OBSERVED = ("sites", "values", "noise_variances", "times_s", "position", "cost", "time_s")
_REPORTED = ("position", "remaining", "time_s", "accuracy")


def check_magnitudes(event: Event) -> None:
    """Raise an `InputError` if an observation or telemetry holds a number too large to add."""
    if not isinstance(event, Observation | Telemetry):
        return
    for name in _OBSERVED if isinstance(event, Observation) else _REPORTED:
        numbers = getattr(event, name)
        if numbers is None or not np.size(numbers):
            continue
        largest = float(np.where(np.isfinite(numbers), np.abs(numbers), 0.0).max())  # others have failed
        if largest > LARGEST:
            raise InputError(
                f"{name} has {largest:g}", expected=f"numbers of at most {LARGEST:g}", where=name
            )

"""What an agent takes in: events that can be used, each once."""

from __future__ import annotations

import numpy as np

from fieldbo.errors import InputError
from fieldbo.messages import Correction, Event, Observation, Telemetry
from fieldbo.validation import LARGEST

_NUMBERS: dict[type, tuple[str, ...]] = {
    Observation: ("sites", "values", "noise_variances", "times_s", "position", "cost", "time_s"),
    Telemetry: ("position", "remaining", "time_s", "accuracy"),
    Correction: ("values",),
}


def check_magnitudes(event: Event) -> None:
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

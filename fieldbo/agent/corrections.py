"""Corrections of readings that were reported wrong."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fieldbo.errors import InputError, counted
from fieldbo.messages import Correction, Event, Observation


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

"""The readings of a recorded run, for another mission to begin with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.messages import Correction, Observation
from fieldbo.record.record import Record
from fieldbo.record.store import ORDERS, Row


class RecordedReadings(NamedTuple):
    """The n readings of a run that did not fail, as corrected since.

    Attributes
    ----------
    sites : (n, d) array
        Where they were really taken.
    values, noise_sds : (n,) arrays
        In the user's unit.
    times_s : (n,) array
        In seconds since 1970.
    """

    sites: Array
    values: Array
    noise_sds: Array
    times_s: Array


def read_readings(record: Record) -> RecordedReadings | None:
    """Return the readings of a run; None if it has none."""
    seen = [event for event in _correct(record.rows()) if len(event.values)]
    if not seen or not (kept := np.isfinite(np.concatenate([event.values for event in seen]))).any():
        return None
    began_s = datetime.fromisoformat(record.begun_utc).timestamp()
    times_s = np.concatenate([np.where(np.isfinite(e.times_s), e.times_s, 0.0) for e in seen])
    return RecordedReadings(
        np.concatenate([event.sites for event in seen])[kept],
        np.concatenate([event.values for event in seen])[kept],
        np.sqrt(np.concatenate([event.noise_variances for event in seen]))[kept],
        began_s + times_s[kept],
    )


def _correct(rows: Sequence[Row]) -> list[Observation]:
    """Return what an agent would know after these rows: each part once, with the values it has now."""
    issued = {row.order for row in rows if row.kind in ORDERS}
    known: dict[tuple[str, int], Observation] = {}
    for row in rows:
        if row.kind not in ("observation", "correction") or row.order not in issued:
            continue  # an agent gets no event of an order that it never issued
        event = row.message
        if isinstance(event, Observation):
            known.setdefault((event.order, event.part), event)
        elif isinstance(event, Correction) and (before := known.get((event.order, event.part))):
            known[event.order, event.part] = replace(before, values=event.values)
    return list(known.values())

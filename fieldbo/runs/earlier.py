"""The readings of a run, for another mission to begin with."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import numpy as np

from fieldbo.errors import InputError
from fieldbo.messages import Observation
from fieldbo.mission.earlier_readings import EarlierReadings
from fieldbo.runs.load import load_run, record_file
from fieldbo.runs.record.record import Record
from fieldbo.world.world import World


def readings_of_run(run: Path, world: World) -> EarlierReadings:
    """Return what a run has read itself: corrected values, where they were really read, and when.

    Parameters
    ----------
    run : Path
        A run folder, or the ``run.sqlite`` in it.
    world : World
        The world of the mission that begins with them; it has the same axes and the same quantity.

    Raises
    ------
    InputError
        There is no such run, it read nothing, or it has other axes or another quantity.
    RecordError
        The record is damaged.
    """
    with Record(record_file(run)) as record:
        began = datetime.fromisoformat(record.begun_utc).timestamp()
    agent = load_run(run).agent
    for what, then, now in (
        ("axes", [a.name for a in agent.domain.axes], [a.name for a in world.domain.axes]),
        ("axes' units", [a.unit for a in agent.domain.axes], [a.unit for a in world.domain.axes]),
        ("quantity", [agent.mission.world.quantity.label], [world.quantity.label]),
    ):
        if then != now:
            raise InputError(
                f"the {what} of the run: {', '.join(then)}",
                expected=", ".join(now),
                where=str(run),
                fix="choose a run in the same world",
            )
    seen = [event for event in agent.history if isinstance(event, Observation) and len(event.values)]
    values = np.concatenate([np.empty(0), *(event.values for event in seen)])
    if not np.isfinite(values).any():
        raise InputError("the run has no readings", expected="a run that read something", where=str(run))
    kept = np.isfinite(values)
    times = np.concatenate([np.where(np.isfinite(e.times_s), e.times_s, 0.0) for e in seen])
    return EarlierReadings(
        np.concatenate([event.sites for event in seen])[kept],
        values[kept],
        np.sqrt(np.concatenate([event.noise_variances for event in seen]))[kept],
        began + times[kept],
    )

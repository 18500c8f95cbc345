"""Correct a reading of a recorded run."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

from fieldbo._numerics.blas import one_blas_thread
from fieldbo.agent.agent import Agent
from fieldbo.messages import Correction, Observation
from fieldbo.record.record import Record
from fieldbo.record.store import record_file
from fieldbo.results.result import Result
from fieldbo.runs.load import mission_of
from fieldbo.runs.state import RunState
from fieldbo.vehicles.plausible import doubt_about_reading, earlier_values


def correct_run(
    run: Path | str,
    order: str | int,
    value: float | None,
    reading: int | None = None,
    agree: Callable[[str], None] | None = None,
) -> Result:
    """Append a correction to the record of a run that no other process is writing, ended or not.

    The fits of the model that had seen the wrong reading are repeated, and recorded with the correction in
    one transaction.

    Parameters
    ----------
    run : Path or str
        A run folder, the ``run.sqlite`` in it, or the name of a run in ``runs/``.
    order : str or int
        Id or number of the order.
    value : float or None
        What the reading really was, in the user's unit; None or NaN if it failed.
    reading : int, optional
        Which reading of the order, counted from 0. Required if it has several.
    agree : callable, optional
        Called with a question if the value is far from all other readings; raises an error to discard it. By
        default, such a value is taken.

    Returns
    -------
    Result
        The result of the run so far. Its files are not written.

    Raises
    ------
    InputError
        There is no such run, order or reading, the value can't be used, or the mission has changed since the
        run began. Nothing is recorded.
    RecordError
        The record is damaged, or another process is writing to it.
    """
    with Record(record_file(run)) as record, one_blas_thread():
        record.claim()
        state = RunState(mission_of(record), record.name)
        state.replay(record.rows())
        event = state.agent.correction(order, value, reading)
        state.tell(event)
        if agree is not None and (question := _doubt(state.agent, event, value)):
            agree(question)
        record.events([event, *state.repeat_fits()])
        return state.result()


def _doubt(agent: Agent, correction: Correction, value: float | None) -> str:
    """Return a question about a value that is far from all other readings of a run; empty if it is likely.

    One that failed, or lies below the limit of detection, is not.
    """
    world = agent.mission.world
    if value is None or math.isnan(value) or (world.sensor.below is not None and value <= world.sensor.below):
        return ""
    others = [
        other
        for event in agent.history
        if isinstance(event, Observation) and event.order != correction.order
        for other in event.values.tolist()
    ]
    return doubt_about_reading(value, world, others, earlier_values(agent.mission))

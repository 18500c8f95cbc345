"""Correct a reading of a recorded run."""

from __future__ import annotations

from pathlib import Path

from fieldbo._numerics.blas import one_blas_thread
from fieldbo.results.result import Result
from fieldbo.runs.load import mission_of, record_file
from fieldbo.runs.record.record import Record
from fieldbo.runs.state import RunState


def correct_run(run: Path | str, order: str | int, value: float | None, reading: int | None = None) -> Result:
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
        record.events([event, *state.repeat_fits()])
        return state.result()

"""Steer a run that another process carries out."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from fieldbo.clock import MACHINE_CLOCK, Clock
from fieldbo.domain.obstacles import Obstacle
from fieldbo.errors import InputError, RefusedError, UnconfirmedError
from fieldbo.messages import Action, Command
from fieldbo.mission.amounts import amount
from fieldbo.mission.mission import Mission
from fieldbo.record.record import Record, Tail
from fieldbo.record.store import Row, is_being_written, record_file
from fieldbo.runs.commands import append, commands_file
from fieldbo.runs.load import mission_of

_POLL_S = 0.1


def steer(
    run: Path | str,
    action: Action | str,
    *,
    site: ArrayLike | None = None,
    areas: Sequence[Obstacle] = (),
    left: float | str | None = None,
    order: str | None = None,
    vehicle: int | None = None,
    by: str = "",
    wait_s: float = 10.0,
    clock: Clock = MACHINE_CLOCK,
) -> Command:
    """Give a command to a run that is under way, and wait until the run confirms it.

    Parameters
    ----------
    run : Path or str
        A run folder, the ``run.sqlite`` in it, or the name of a run in ``runs/``.
    action : {"pause", "continue", "skip", "next", "no-go", "battery", "home", "stop"}
        ``pause``: stay where you are; ``continue`` after it. ``skip``: leave out the site of the outstanding
        query. ``next``: sample at `site` after the outstanding orders. ``no-go``: keep out of `areas`.
        ``battery``: `left` is what is left in it now. ``home``: go home and end. ``stop``: hold, and
        end the process; `fieldbo.resume` continues.
    site : (d,) array, optional
    areas : sequence of Obstacle, optional
        Polygons in the domain's coordinates.
    left : float or str, optional
        What is left in the battery now: in the world's cost unit, or text with a unit or a percentage.
    order : str, optional
        The query to skip; by default the one that is outstanding.
    vehicle : int, optional
        By default all vehicles.
    by : str
        Who gives the command, for people.
    wait_s : float
        How long to wait for the confirmation.
    clock : Clock, optional
        By which to wait; by default this machine's.

    Returns
    -------
    Command
        As the run has recorded it.

    Raises
    ------
    InputError
        There is no such run or action, or no process carries the run out.
    RefusedError
        The run can't obey, for example because the battery is not enough for the site.
    UnconfirmedError
        The run has not answered in time. It obeys the command as soon as it can.
    RecordError
        A file can't be read or written.
    """
    file = record_file(run)
    if isinstance(left, str):
        with Record(file) as record:
            left = level_in(left, mission_of(record), "left")
    command = Command(
        id=uuid.uuid4().hex,
        action=Action(action) if action in list(Action) else action,  # type: ignore[arg-type]
        vehicle=vehicle,
        order=order,
        site=None if site is None else np.asarray(site, dtype=float),
        areas=tuple(areas),
        left=left,
        by=by,
    )
    _check_under_way(file)
    append(commands_file(file), command)
    return _confirmed(file, command, wait_s, clock)


def level_in(text: str, mission: Mission, where: str) -> float:
    """Return what is left in a battery according to a text, in the cost unit.

    Raises
    ------
    InputError
        It is no amount of at least 0, or a percentage of an unknown full battery.
    """
    unit, given = mission.world.cost_unit, mission.settings.get("agent", {}).get("full_battery")
    full = None if given is None else amount(given, unit, "agent.full_battery")
    return amount(text, unit, where, full=full, whole="a full battery", zero=True)


def _check_under_way(file: Path) -> None:
    """Raise an `InputError` unless a process carries the run out."""
    if is_being_written(file):
        return
    with Record(file) as record:
        ended = record.end_reason
    raise InputError(
        f"{file.parent} is not under way: "
        + ("no process carries it out" if ended is None else f"it has ended ({ended.value})"),
        expected="a run that a process is carrying out now",
        fix=f"continue it first: fieldbo resume {file.parent}" if ended is None else None,
    )


def _confirmed(file: Path, command: Command, wait_s: float, clock: Clock) -> Command:
    """Return a command as the run has recorded it."""
    end_s, tail = clock.now_s() + wait_s, Tail(file)
    while True:
        recorded = _recorded(tail.new_rows(), command.id)
        if recorded is not None and recorded.refused:
            raise RefusedError(f"{file.parent} refused {command.action.value}: {recorded.refused}")
        if recorded is not None:
            return recorded
        if clock.now_s() > end_s:
            why = "it is busy, or waits for a person" if is_being_written(file) else "its process has ended"
            raise UnconfirmedError(
                f"{file.parent} has not confirmed {command.action.value!r} in {wait_s:g} s: {why}. "
                "It obeys as soon as it can"
            )
        clock.sleep(_POLL_S)


def _recorded(rows: Sequence[Row], id: str) -> Command | None:
    """Return a command as rows of a record hold it; None if they do not."""
    of_id = [row for row in rows if row.kind == "command" and row.body["message"]["id"] == id]
    if not of_id:
        return None
    message = of_id[0].message
    assert isinstance(message, Command)
    return message

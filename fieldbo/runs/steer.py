"""Steer a run that another process carries out."""

from __future__ import annotations

import json
import logging
import sqlite3
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from fieldbo.clock import MACHINE_CLOCK, Clock
from fieldbo.domain.obstacles import Obstacle
from fieldbo.errors import FieldboError, InputError, RecordError, RefusedError, UnconfirmedError, printable
from fieldbo.messages import Action, Answer, Command, from_plain, to_plain
from fieldbo.mission.amounts import amount
from fieldbo.mission.mission import Mission
from fieldbo.record.record import Record, Tail
from fieldbo.record.store import Row, is_being_written, now_utc, record_file
from fieldbo.results.words import place
from fieldbo.runs.replay import mission_of

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
    return _confirm(file, command, wait_s, clock)


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


def _confirm(file: Path, command: Command, wait_s: float, clock: Clock) -> Command:
    end_s, tail = clock.now_s() + wait_s, Tail(file)
    while True:
        recorded = _find(tail.new_rows(), command.id)
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


def _find(rows: Sequence[Row], id: str) -> Command | None:
    of_id = [row for row in rows if row.kind == "command" and row.body["message"]["id"] == id]
    if not of_id:
        return None
    message = of_id[0].message
    assert isinstance(message, Command)
    return message


NAME = "commands.sqlite"

LARGEST = 200_000
"""Largest command in characters; a polygon has far fewer."""

_APPLICATION_ID = 0x6662636D
_WRITE_S, _READ_S = 10.0, 0.05
"""How long to wait for another process that writes."""

_SCHEMA = (
    f"""CREATE TABLE IF NOT EXISTS command (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        time_utc TEXT NOT NULL,
        body TEXT NOT NULL CHECK (length(body) <= {LARGEST})
    )""",
    """CREATE TRIGGER IF NOT EXISTS command_kept BEFORE DELETE ON command
    BEGIN SELECT RAISE(ABORT, 'commands are never deleted'); END""",
    """CREATE TRIGGER IF NOT EXISTS command_unchanged BEFORE UPDATE ON command
    BEGIN SELECT RAISE(ABORT, 'commands are never changed'); END""",
)

_log = logging.getLogger(__name__)


def commands_file(record: Path) -> Path:
    """Return the commands file of a record."""
    return record.with_name(NAME if record.name == "run.sqlite" else f"{record.stem}-{NAME}")


def append(file: Path, command: Command | Answer) -> None:
    """Append a command or an answer; it is on disk when this returns.

    Raises
    ------
    RecordError
        The file can't be written, or is no commands file.
    """
    body = json.dumps(to_plain(command), allow_nan=False)
    if len(body) > LARGEST:
        raise RecordError(
            f"a command of {len(body)} characters is too long; at most {LARGEST}: simplify its areas"
        )
    try:
        with _open(file, _WRITE_S) as connection:
            connection.execute("BEGIN IMMEDIATE")  # until the end, no other process writes
            if connection.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
                if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                    raise RecordError(f"{file} is an SQLite file of another application")
                connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            for statement in _SCHEMA:
                connection.execute(statement)
            connection.execute("INSERT INTO command (time_utc, body) VALUES (?, ?)", (now_utc(), body))
            connection.execute("COMMIT")
    except (sqlite3.Error, OSError) as error:
        raise RecordError(f"{file} can't be written: {error}") from error


@contextmanager
def _open(file: Path, patience_s: float) -> Iterator[sqlite3.Connection]:
    """Open a database for one statement at a time; each is on disk once it returns."""
    with closing(sqlite3.connect(file, timeout=patience_s, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = FULL")
        yield connection


class Inbox:
    """The commands of a run that its record does not hold yet.

    Parameters
    ----------
    record : Record
        Of the run; only the process that writes it reads the commands.
    """

    def __init__(self, record: Record) -> None:
        self.file = commands_file(record.file)
        copied = [row for row in record.rows() if row.kind in ("command", "answer")]
        self._known = {row.body["message"]["id"] for row in copied}
        self._seq = 0
        self._broken = False

    def new(self) -> list[Command | Answer]:
        """Return the commands that arrived since the last call, in order; never raises and hardly waits."""
        if self._broken or not self.file.exists():
            return []
        try:
            with _open(self.file, _READ_S) as connection:
                rows = connection.execute(
                    "SELECT seq, body FROM command WHERE seq > ? ORDER BY seq", (self._seq,)
                ).fetchall()
        except sqlite3.OperationalError:
            return []  # another process writes, or has not made the table yet
        except sqlite3.Error as error:
            self._broken = True
            _log.warning("%s can't be read, so this run can't be steered: %s", self.file, error)
            return []
        commands = list[Command | Answer]()
        for seq, body in rows:
            self._seq = seq
            if (command := _read(body, seq, self.file)) is not None and command.id not in self._known:
                self._known.add(command.id)
                commands.append(command)
        return commands


def _read(body: object, seq: int, file: Path) -> Command | Answer | None:
    """Return the command or answer in a row; None, and a warning, if there is none."""
    try:
        message = from_plain(json.loads(str(body)))
        if isinstance(message, Command):
            areas = tuple(replace(area, name=printable(area.name)) for area in message.areas)
            return replace(message, areas=areas, hold="", refused="", after=0)  # these are the run's to say
        if isinstance(message, Answer):
            return replace(message, refused="")
        problem = f"a {type(message).__name__.lower()}"
    except (FieldboError, ValueError, TypeError, AttributeError, RecursionError) as error:
        problem = str(error).splitlines()[0]
    _log.warning("row %d of %s is not a command: %s", seq, file, problem)
    return None


# -- in words ------------------------------------------------------------------------------------------------


def command_text(mission: Mission, command: Command) -> str:
    """Return what a command asks for.

    Examples
    --------
    >>> from fieldbo.testing.small import small_mission
    >>> mission = small_mission()
    >>> command_text(mission, Command("a", "next", site=[4.0, 2.0]))
    'next: x 4 m, y 2 m'
    >>> command_text(mission, Command("b", "pause", hold="wind"))
    'pause (hold: wind)'
    """
    text, domain, site = command.action.value, mission.world.domain, command.site
    if command.action is Action.NEXT and site is not None:  # one that was refused may have any length
        text += f": {place(domain, site) if len(site) == domain.dimension else site.tolist()}"
    elif command.action is Action.SKIP and command.order is not None:
        text += f": order {command.order}"
    elif command.action is Action.NO_GO and command.areas:
        text += f": {', '.join(area.name for area in command.areas)}"
    elif command.action is Action.BATTERY and command.left is not None:
        text += f": {level_text(mission, command)}"
    if command.hold:
        text += f" (hold: {command.hold})"
    several = len(mission.vehicles) > 1 and command.vehicle is not None
    return f"{text} (vehicle {command.vehicle})" if several else text


def level_text(mission: Mission, command: Command) -> str:
    """Return what a person says is left in a battery, and what the run assumes if that is less.

    Examples
    --------
    >>> from fieldbo.testing.small import small_mission
    >>> level_text(small_mission(), Command("a", "battery", left=40.0, counted=35.5))
    '40 s left; the run assumes 35.5 s, since its orders account for the rest'
    """
    unit, left, counted = mission.world.cost_unit, command.left, command.counted
    text = f"{left:,.6g} {unit} left"
    if left is None or counted is None or counted >= left:
        return text
    return f"{text}; the run assumes {counted:,.6g} {unit}, since its orders account for the rest"


def command_line(mission: Mission, command: Command) -> str:
    """Return what a command asks for, who gave it, and why it was refused.

    Examples
    --------
    >>> from fieldbo.testing.small import small_mission
    >>> command_line(small_mission(), Command("a", "pause", by="shore", refused="it is paused already"))
    'pause by shore refused: it is paused already'
    """
    by = f" by {command.by}" if command.by else ""
    refused = f" refused: {command.refused}" if command.refused else ""
    return f"{command_text(mission, command)}{by}{refused}"

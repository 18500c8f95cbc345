"""The commands file of a run: what operators ask a run that is under way to do.

``commands.sqlite`` lies next to the record. Any number of processes append to it, whenever they like; nothing
in it is ever changed. The process that runs the mission copies each command into the record as it obeys or
refuses it. Only the record says what happened: a command that is not in it was not obeyed yet. Answers that
people enter in forms take the same way.
"""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from fieldbo.errors import FieldboError, RecordError, printable
from fieldbo.messages import Answer, Command, from_plain, to_plain
from fieldbo.record.record import Record
from fieldbo.record.store import now_utc

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
        with _opened(file, _WRITE_S) as connection:
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
def _opened(file: Path, patience_s: float) -> Iterator[sqlite3.Connection]:
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
            with _opened(self.file, _READ_S) as connection:
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

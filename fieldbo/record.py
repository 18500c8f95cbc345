"""The record of a run: an append-only log in SQLite.

One table holds the run's description, another every order *before* it leaves, every event *before* it is
told, and the end, in that order. Nothing is ever updated or deleted: triggers see to that. Each row is on
disk when `append` returns (write-ahead log, full synchronous).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from fieldbo.errors import RecordError
from fieldbo.exchange import EndReason, Event, Order, from_plain, kind_of, to_plain

APPLICATION_ID = 0x46424F52  # "FBOR"
FORMAT = 1

_SCHEMA = f"""
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {FORMAT};
CREATE TABLE run (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    name TEXT NOT NULL, created_utc TEXT NOT NULL, description TEXT NOT NULL);
CREATE TABLE log (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    time_utc TEXT NOT NULL, kind TEXT NOT NULL, order_id TEXT, part INTEGER, body TEXT NOT NULL);
CREATE TRIGGER log_is_append_only_u BEFORE UPDATE ON log BEGIN SELECT RAISE(ABORT, 'append only'); END;
CREATE TRIGGER log_is_append_only_d BEFORE DELETE ON log BEGIN SELECT RAISE(ABORT, 'append only'); END;
CREATE TRIGGER log_is_append_only_r BEFORE INSERT ON log
WHEN NEW.seq <= (SELECT max(seq) FROM log) AND NEW.seq > 0
BEGIN SELECT RAISE(ABORT, 'append only'); END;
CREATE TRIGGER run_is_append_only_r BEFORE INSERT ON run WHEN EXISTS (SELECT 1 FROM run)
BEGIN SELECT RAISE(ABORT, 'append only'); END;
CREATE TRIGGER run_is_append_only_u BEFORE UPDATE ON run BEGIN SELECT RAISE(ABORT, 'append only'); END;
CREATE TRIGGER run_is_append_only_d BEFORE DELETE ON run BEGIN SELECT RAISE(ABORT, 'append only'); END;
"""


@dataclass(frozen=True)
class Row:
    """One entry of the log.

    Attributes
    ----------
    seq : int
    time_utc : str
    kind : str
        As `fieldbo.exchange.kind_of` names it, or ``"stop"`` (of a vehicle) or ``"end"`` (of the run).
    order : str or None
        The order it belongs to.
    body : dict
        The message's plain form; for an order also ``memory`` and ``why``.
    """

    seq: int
    time_utc: str
    kind: str
    order: str | None
    body: dict[str, Any]

    @property
    def message(self) -> Order | Event:
        """The order or event of this row."""
        return from_plain(self.body["message"])


class Record:
    """The log of one run, in one file; a context manager.

    Parameters
    ----------
    file : Path
        An existing record; `create` makes a new one.

    Raises
    ------
    RecordError
        The file is missing, or is no record of this format. It is left untouched.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        if not file.is_file():
            raise RecordError(f"there is no record {file}")
        with file.open("rb") as head:  # SQLite may write to a file that it only opens
            header = head.read(100)
        identity = int.from_bytes(header[68:72], "big"), int.from_bytes(header[60:64], "big")
        if not header.startswith(b"SQLite format 3\0") or identity != (APPLICATION_ID, FORMAT):
            raise RecordError(f"{file} is no record of a run in format {FORMAT}")
        self._connection = sqlite3.connect(file, isolation_level=None)
        try:
            state = self._one("PRAGMA quick_check(1)")
            row = self._connection.execute("SELECT name, description FROM run").fetchone()
        except sqlite3.DatabaseError as error:
            state, row = str(error), None
        if state != "ok" or row is None:
            self._connection.close()
            raise RecordError(f"{file} is damaged: {state if state != 'ok' else 'it was never begun'}")
        self.name: str = row[0]
        self.description: dict[str, Any] = json.loads(row[1])
        self._connection.execute("PRAGMA synchronous = FULL")

    @classmethod
    def create(cls, file: Path, name: str, description: Mapping[str, Any]) -> Record:
        """Make a new record.

        Parameters
        ----------
        file : Path
            Must not exist.
        name : str
            The run's name, which its orders' ids begin with.
        description : mapping
            Plain data: the mission as understood, versions.

        Raises
        ------
        RecordError
            The file exists or can't be written.
        """
        if file.exists():
            raise RecordError(f"{file} exists; a record is never written over")
        try:
            with closing(sqlite3.connect(file)) as connection:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = FULL")
                connection.executescript(_SCHEMA)
                connection.execute(
                    "INSERT INTO run VALUES (1, ?, ?, ?)",
                    (name, _now(), json.dumps(dict(description), allow_nan=False)),
                )
                connection.commit()
        except sqlite3.Error as error:
            raise RecordError(f"{file} can't be written: {error}") from error
        return cls(file)

    def _one(self, sql: str) -> Any:
        return self._connection.execute(sql).fetchone()[0]

    def _append(self, kind: str, order: str | None, part: int | None, body: Mapping[str, Any]) -> None:
        try:
            self._connection.execute(
                "INSERT INTO log (time_utc, kind, order_id, part, body) VALUES (?, ?, ?, ?, ?)",
                (_now(), kind, order, part, json.dumps(body, allow_nan=False)),
            )
        except (ValueError, TypeError) as error:
            raise RecordError(f"{kind} {order or ''} holds more than plain data: {error}") from error
        except sqlite3.Error as error:
            raise RecordError(f"{self.file} can't be written: {error}") from error

    def order(self, order: Order, memory: Any = None, why: Mapping[str, Any] | None = None) -> None:
        """Write an order, with what the policy remembered and why it chose so; before it leaves."""
        body = {"message": to_plain(order), "memory": memory, "why": None if why is None else dict(why)}
        self._append(kind_of(order), order.id, None, body)

    def event(self, event: Event) -> None:
        """Write an event; before it is told."""
        order, part = getattr(event, "order", None), getattr(event, "part", None)
        self._append(kind_of(event), order, part, {"message": to_plain(event)})

    def stop(self, vehicle: int, reason: EndReason) -> None:
        """Write that a vehicle gets no further orders, and why."""
        self._append("stop", None, None, {"vehicle": vehicle, "reason": reason.value})

    def end(self, reason: EndReason) -> None:
        """Write that the run has ended, and why."""
        self._append("end", None, None, {"reason": reason.value})

    def rows(self) -> list[Row]:
        """Return the whole log, in order."""
        found = self._all("SELECT seq, time_utc, kind, order_id, body FROM log ORDER BY seq")
        return [Row(seq, at, kind, order, json.loads(body)) for seq, at, kind, order, body in found]

    def _all(self, sql: str) -> list[Any]:
        try:
            return self._connection.execute(sql).fetchall()
        except sqlite3.Error as error:
            raise RecordError(f"{self.file} can't be read: {error}") from error

    @property
    def empty(self) -> bool:
        """Whether nothing was written yet."""
        return not self._all("SELECT 1 FROM log LIMIT 1")

    @property
    def end_reason(self) -> EndReason | None:
        """Why the run ended; None while it can go on."""
        found = self._all("SELECT body FROM log WHERE kind = 'end' ORDER BY seq DESC LIMIT 1")
        return EndReason(json.loads(found[0][0])["reason"]) if found else None

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")

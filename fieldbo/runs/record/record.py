"""The record of a run: an append-only log in SQLite.

One table holds the run's description, another every order *before* it leaves, every event *before* it is
told, and the end, in that order. Nothing is ever updated or deleted: triggers see to that. Each row is on
disk when `append` returns (write-ahead log, full synchronous), and carries a digest of itself and of all rows
before it, so that a changed byte does not go unseen.

Any process may read a record at any time: it is read from a copy, and not a byte of it is touched. One at a
time may write to it; its lock, ``run.lock`` beside ``run.sqlite``, ends with the process. A link stands for
the file that it leads to: its log and its lock lie beside that.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from fieldbo.errors import RecordError
from fieldbo.messages import EndReason, Event, Order, from_plain, kind_of, to_plain
from fieldbo.runs.record.lock import locked, unlock
from fieldbo.runs.record.snapshot import identity, snapshot

if TYPE_CHECKING:
    from filelock import BaseFileLock

APPLICATION_ID = 0x46424F52  # "FBOR"
FORMAT = 2

ORDERS = ("query", "go-home")
"""The kinds of rows that are orders."""

_SCHEMA = f"""
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {FORMAT};
CREATE TABLE run (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    name TEXT NOT NULL, created_utc TEXT NOT NULL, description TEXT NOT NULL, digest TEXT NOT NULL);
CREATE TABLE log (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    time_utc TEXT NOT NULL, kind TEXT NOT NULL, order_id TEXT, part INTEGER, body TEXT NOT NULL,
    digest TEXT NOT NULL);
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

_LATEST_DIGEST = "SELECT coalesce((SELECT digest FROM log ORDER BY seq DESC LIMIT 1), digest) FROM run"

_NO_VALUE = (OverflowError, UnicodeError)
"""What SQLite's driver raises of a value that it can't store: a number of over 64 bits, half a character."""


@dataclass(frozen=True)
class Row:
    """One entry of the log.

    Attributes
    ----------
    seq : int
    time_utc : str
    kind : str
        As `fieldbo.messages.kind_of` names it, or ``"stop"`` (of a vehicle) or ``"end"`` (of the run).
    order : str or None
        The order it belongs to.
    body : dict
        The message's plain form; for an order also ``memory`` and ``why``. Of a stop these two, ``vehicle``
        and ``reason``.
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

    Opened, it is read as it is at that moment. The first row that is written to it, or `claim`, takes the
    sole right to write.

    Parameters
    ----------
    file : Path
        An existing record, or a link to one; `create` makes a new one.

    Attributes
    ----------
    file : Path
        Where it really lies.
    name : str
        The run's, which its orders' ids begin with.
    begun_utc : str
        When it was made.
    description : dict

    Raises
    ------
    RecordError
        The file is missing, damaged, or no record of this format. It is left untouched.
    """

    name: str
    begun_utc: str
    description: dict[str, Any]

    def __init__(self, file: Path) -> None:
        self.file = _followed(file)
        self._lock: BaseFileLock | None = None
        self._closed = False
        self._connection = self._read()

    @classmethod
    def create(cls, file: Path, name: str, description: Mapping[str, Any]) -> Record:
        """Make a new record, to be written to; it is there whole or not at all.

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
        file = _followed(file)
        with locked(file) as lock:
            if file.exists():
                raise RecordError(f"{file} exists; a record is never written over")
            _make(file, name, json.dumps(dict(description), allow_nan=False))
            record = cls(file)
            record._write_from_now_on(lock)
        return record

    # -- reading ---------------------------------------------------------------------------------------

    def _read(self) -> sqlite3.Connection:
        """Return the whole record as it is now, in memory, after a check of every row."""
        if not self.file.is_file():
            raise RecordError(f"there is no record {self.file}")
        found = identity(self.file)
        if found is None or found[0] != APPLICATION_ID:
            what = "no SQLite file" if found is None else "another application's"
            raise RecordError(f"{self.file} is no record of a run, but {what}")
        if found[1] != FORMAT:
            raise RecordError(
                f"{self.file} is no record that can be read here: it is in format {found[1]}, and "
                f"fieldbo's is {FORMAT}"
            )
        connection = snapshot(self.file)
        try:
            run = connection.execute("SELECT name, created_utc, description, digest FROM run").fetchone()
            rows = connection.execute(
                "SELECT time_utc, kind, order_id, part, body, digest FROM log ORDER BY seq"
            ).fetchall()
        except sqlite3.DatabaseError as error:
            connection.close()
            raise RecordError(f"{self.file} is damaged: {error}") from None
        wrong = "it was never begun" if run is None else self._first_wrong(run, rows)
        if wrong is not None:
            connection.close()
            raise RecordError(f"{self.file} is damaged: {wrong}")
        self.name, self.begun_utc, self.description = run[0], run[1], json.loads(run[2])
        self._digest: str = rows[-1][-1] if rows else run[-1]
        return connection

    @staticmethod
    def _first_wrong(run: tuple[Any, ...], rows: Sequence[tuple[Any, ...]]) -> str | None:
        """Return what does not say what was written; None if all does."""
        if _digest("", *run[:-1]) != run[-1]:
            return "the description of the run was changed"
        before = run[-1]
        for number, row in enumerate(rows, start=1):
            before = _digest(before, *row[:-1])
            if before != row[-1]:
                return f"row {number} of its log was changed"
        return None

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

    # -- writing ---------------------------------------------------------------------------------------

    def claim(self) -> None:
        """Take the sole right to write, until `close` or the end of the process.

        What others have written since this record was opened is read.

        Raises
        ------
        RecordError
            Another process is writing, the file can't be written, it was damaged meanwhile, or `close` was
            called.
        """
        if self._closed:
            raise RecordError(f"{self.file} was closed; to write on, open it again")
        if self._lock is not None:
            return
        with locked(self.file) as lock:
            self._read().close()
            self._write_from_now_on(lock)

    def _write_from_now_on(self, lock: BaseFileLock) -> None:
        connection = sqlite3.connect(self.file, isolation_level=None)
        try:
            connection.execute("PRAGMA synchronous = FULL")
            latest = connection.execute(_LATEST_DIGEST).fetchone()[0]
            if latest != self._digest:  # written on, its rows would follow others than those that were read
                raise RecordError(
                    f"{self.file} can't be written: its last row is another one than was read, so that "
                    "something else writes to it, or its log (-wal) is not its own"
                )
        except BaseException:
            connection.close()
            raise
        self._connection.close()
        self._lock, self._connection = lock, connection

    def _append(self, rows: Iterable[tuple[str, str | None, int | None, Mapping[str, Any]]]) -> None:
        """Write rows (kind, order, part, body): all of them, or none."""
        self.claim()
        digest, whole = self._digest, []
        for kind, order, part, body in rows:
            try:
                said = json.dumps(body, allow_nan=False)
            except (ValueError, TypeError) as error:
                raise RecordError(f"{kind} {order or ''} holds more than plain data: {error}") from error
            entry = (_now(), kind, order, part, said)
            digest = _digest(digest, *entry)
            whole.append((*entry, digest))
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany(
                "INSERT INTO log (time_utc, kind, order_id, part, body, digest) VALUES (?, ?, ?, ?, ?, ?)",
                whole,
            )
            self._connection.execute("COMMIT")
        except (sqlite3.Error, *_NO_VALUE) as error:
            raise RecordError(f"{self.file} can't be written: {error}") from error
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        self._digest = digest

    def order(self, order: Order, memory: Any = None, why: Mapping[str, Any] | None = None) -> None:
        """Write an order, with what the policy remembered and why it chose so; before it leaves."""
        self.orders([(order, memory, why)])

    def orders(self, batch: Iterable[tuple[Order, Any, Mapping[str, Any] | None]]) -> None:
        """Write the orders of a batch, each as `order` does: all of them, or none."""
        self._append(
            (
                kind_of(order),
                order.id,
                None,
                {"message": to_plain(order), "memory": memory, "why": _plain(why)},
            )
            for order, memory, why in batch
        )

    def event(self, event: Event) -> None:
        """Write an event; before it is told."""
        order, part = getattr(event, "order", None), getattr(event, "part", None)
        self._append([(kind_of(event), order, part, {"message": to_plain(event)})])

    def stop(
        self, vehicle: int, reason: EndReason, memory: Any = None, why: Mapping[str, Any] | None = None
    ) -> None:
        """Write that a vehicle gets no further orders, and why."""
        body = {"vehicle": vehicle, "reason": reason.value, "memory": memory, "why": _plain(why)}
        self._append([("stop", None, None, body)])

    def end(self, reason: EndReason) -> None:
        """Write that the run has ended, and why."""
        self._append([("end", None, None, {"reason": reason.value})])

    def close(self) -> None:
        """Close the file for good; another process may then write to it."""
        self._closed = True
        self._connection.close()
        if self._lock is not None:
            unlock(self.file, self._lock)
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _followed(file: Path) -> Path:
    """Return where a record really lies: SQLite writes its log beside the file, and not beside a link."""
    return file.resolve() if file.is_symlink() else file


def _make(file: Path, name: str, description: str) -> None:
    """Make a record under another name, and give it its own when all of it is on disk."""
    part = file.with_name(f".{file.name}.part")
    for left in (part, part.with_name(f"{part.name}-wal"), part.with_name(f"{part.name}-shm")):
        left.unlink(missing_ok=True)  # of a process that died here
    now = _now()
    with closing(sqlite3.connect(part)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.executescript(_SCHEMA)
        run = (name, now, description, _digest("", name, now, description))
        connection.execute("INSERT INTO run VALUES (1, ?, ?, ?, ?)", run)
        connection.commit()
    on_disk(part)
    part.rename(file)
    on_disk(file.parent)


def on_disk(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on disk, as far as the system can be asked."""
    if os.name == "nt" and (path.is_dir() or not os.access(path, os.W_OK)):
        return
    opened = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _digest(before: str, *said: Any) -> str:
    """Return the digest of what a row says, and of all before it."""
    return sha256(json.dumps([before, *said]).encode()).hexdigest()


def _plain(why: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if why is None else dict(why)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")

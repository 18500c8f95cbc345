"""The record of a run: an append-only log in SQLite.

One table holds the description of the run, another every order *before* it is sent, every event *before* the
agent gets it, and the end. Triggers forbid updates and deletions. Each row is on disk when the call that
writes it returns (write-ahead log, full synchronous), and carries a digest of itself and of all earlier rows,
which reveals any changed byte.

Any process may read a record at any time: it reads a copy and never changes the file. Only one process may
write at a time; its lock, ``run.lock`` next to ``run.sqlite``, ends with the process. A symbolic link is
followed: the write-ahead log, the lock and the counter lie next to the real file.

``run.count`` counts the rows (see `fieldbo.record.store`). If rows are missing, or the counter itself,
the record can be read but not written, unless the loss is accepted. Such a record, and a copy of one,
continues under a session of its own: a robot that remembers orders of the original does not take them for
those of the copy.
"""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from fieldbo.errors import RecordError, counted
from fieldbo.messages import EndReason, Event, Order, kind_of, to_plain
from fieldbo.record.snapshot import GrowingCopy, identity, snapshot, written
from fieldbo.record.store import (
    APPLICATION_ID,
    FORMAT,
    Count,
    Counter,
    Row,
    counter_file,
    digest_of,
    followed,
    locked,
    make_file,
    now_utc,
    on_disk,
    place_of,
    unlock,
)

if TYPE_CHECKING:
    from filelock import BaseFileLock


_WITHOUT_COUNTER = 2
_READABLE = (_WITHOUT_COUNTER, FORMAT)
"""Formats that can be read and continued; records of the older one began without a counter."""

_LATEST_DIGEST = "SELECT coalesce((SELECT digest FROM log ORDER BY seq DESC LIMIT 1), digest) FROM run"

_NO_VALUE = (OverflowError, UnicodeError)
"""Raised by SQLite's driver for values it can't store: integers beyond 64 bits, lone surrogates."""


class Record:
    """The log of one run, in one file; a context manager.

    Opening a record reads its present content. The first write, or `claim`, takes the exclusive right to
    write.

    Parameters
    ----------
    file : Path
        An existing record, or a link to one; use `create` to make a new one.

    Attributes
    ----------
    file : Path
        The real file, links resolved.
    name : str
        Name of the run; the ids of its orders begin with it.
    begun_utc : str
        Time of creation.
    description : dict
        The mission as it was understood, and versions.
    loss : str
        Which rows are missing at the end, in words, or why that is unknown; empty if none are.
    copied : bool
        Whether the file is a copy of the one that was written last.

    Raises
    ------
    RecordError
        The file is missing, damaged, or not a record of this format. It is never changed.
    """

    name: str
    begun_utc: str
    description: dict[str, Any]
    loss: str
    copied: bool

    def __init__(self, file: Path) -> None:
        self.file = followed(file)
        self._lock: BaseFileLock | None = None
        self._closed = False
        self._counter: Counter | None = None
        self._connection = self._read()

    @classmethod
    def create(cls, file: Path, name: str, description: Mapping[str, Any]) -> Record:
        """Make a new record and open it for writing; on failure, no file is left.

        Parameters
        ----------
        file : Path
            Must not exist.
        name : str
            Name of the run; the ids of its orders begin with it.
        description : mapping
            Plain data: the mission as it was understood, and versions.

        Raises
        ------
        RecordError
            The file exists or can't be written.
        """
        file = followed(file)
        with locked(file) as lock:
            if file.exists():
                raise RecordError(f"{file} exists; a record is never overwritten")
            make_file(file, name, json.dumps(dict(description), allow_nan=False))
            record = cls(file)
            record._write_from_now_on(lock)
            record._count()
            on_disk(file.parent)
            record.copied = False
        return record

    # -- reading ---------------------------------------------------------------------------------------

    def _read(self) -> sqlite3.Connection:
        """Return a copy of the record in memory, after checking every row."""
        if not self.file.is_file():
            raise RecordError(f"there is no record {self.file}")
        header = identity(self.file)
        if header is None or header[0] != APPLICATION_ID:
            what = "an SQLite file of another application" if header else "not an SQLite file"
            raise RecordError(f"{self.file} is not the record of a run: it is {what}")
        if header[1] not in _READABLE:
            raise RecordError(
                f"{self.file} has record format {header[1]}; this version of fieldbo reads format {FORMAT}"
            )
        count = Count.of(self.file)  # before the rows: a writer adds them first
        connection = snapshot(self.file)
        try:
            run = connection.execute("SELECT name, created_utc, description, digest FROM run").fetchone()
            rows = connection.execute(
                "SELECT time_utc, kind, order_id, part, body, digest FROM log ORDER BY seq"
            ).fetchall()
        except sqlite3.DatabaseError as error:
            connection.close()
            raise RecordError(f"{self.file} is damaged: {error}") from None
        wrong = "it has no description of its run" if run is None else self._first_wrong(run, rows)
        if wrong is not None:
            connection.close()
            raise RecordError(f"{self.file} is damaged: {wrong}")
        self.name, self.begun_utc, self.description = run[0], run[1], json.loads(run[2])
        digests = [run[-1], *(row[-1] for row in rows)]
        self._digest: str = digests[-1]
        self._rows = len(rows)
        never_counted = count is None and header[1] == _WITHOUT_COUNTER
        self.copied = not never_counted and (count is None or count.place != place_of(self.file))
        self.loss = "" if never_counted else self._loss(count, digests)
        return connection

    def _loss(self, count: Count | None, digests: Sequence[str]) -> str:
        """Return which rows are missing, given the digests of the run and of all rows."""
        if count is None:
            return (
                f"rows may be missing at the end of {self.file}: {counter_file(self.file).name}, which holds "
                f"their number, was deleted, damaged or not copied. {self._rows} rows remain"
            )
        missing = count.rows - self._rows
        if missing <= 0 and digests[count.rows] == count.digest:
            return ""
        rows = f"the last {counted(missing, 'row')}" if missing > 0 else "rows"
        return (
            f"{rows} of {self.file} are missing: its log {self.file.name}-wal was shortened, deleted or not "
            f"copied. {self._rows} rows are left"
        )

    @staticmethod
    def _first_wrong(run: tuple[Any, ...], rows: Sequence[tuple[Any, ...]]) -> str | None:
        """Return the first part that was changed since it was written; None if there is none."""
        if digest_of("", *run[:-1]) != run[-1]:
            return "the description of the run was changed"
        before = run[-1]
        for number, row in enumerate(rows, start=1):
            before = digest_of(before, *row[:-1])
            if before != row[-1]:
                return f"row {number} of its log was changed"
        return None

    def rows(self) -> list[Row]:
        """Return the whole log, in order."""
        rows = self._all("SELECT seq, time_utc, kind, order_id, body FROM log ORDER BY seq")
        return [Row(seq, at, kind, order, json.loads(body)) for seq, at, kind, order, body in rows]

    def _all(self, sql: str) -> list[Any]:
        try:
            return self._connection.execute(sql).fetchall()
        except sqlite3.Error as error:
            raise RecordError(f"{self.file} can't be read: {error}") from error

    @property
    def empty(self) -> bool:
        """True if the log has no rows."""
        return not self._all("SELECT 1 FROM log LIMIT 1")

    @property
    def end_reason(self) -> EndReason | None:
        """Why the run ended; None if it has not ended, or was reopened since."""
        rows = self._all(
            "SELECT body FROM log WHERE kind = 'end' AND seq > "
            "(SELECT coalesce(max(seq), 0) FROM log WHERE kind = 'reopened') ORDER BY seq DESC LIMIT 1"
        )
        return EndReason(json.loads(rows[0][0])["reason"]) if rows else None

    @property
    def digest(self) -> str:
        """Digest of the last row, and so of all."""
        return self._digest

    # -- writing ---------------------------------------------------------------------------------------

    def claim(self, *, accept_loss: bool = False) -> None:
        """Take the exclusive right to write, until `close` or the end of the process.

        Rows that other processes have written since the record was opened are read.

        Parameters
        ----------
        accept_loss : bool
            Whether to continue even if rows are missing.

        Raises
        ------
        RecordError
            Another process is writing, the file can't be written or is damaged, rows are missing, or `close`
            was called.
        """
        if self._closed:
            raise RecordError(f"{self.file} was closed; open it again to write to it")
        if self._lock is not None:
            return
        with locked(self.file) as lock:
            self._read().close()
            if self.loss and not accept_loss:
                raise RecordError(
                    f"{self.loss}. The robot may have carried out orders that are no longer recorded.\n"
                    f"  fix:      restore the folder as a whole, with {self.file.name}-wal and "
                    f"{counter_file(self.file).name}; or read what is left (fieldbo export, "
                    "fieldbo.load_run); or continue without the missing rows: "
                    f"fieldbo resume {self.file.parent} --accept-loss"
                )
            self._write_from_now_on(lock)
        if self.loss or (self.copied and self.description.get("vehicles")):
            why = self.loss or f"{self.file} is a copy"
            self._append([("session", None, None, {"session": uuid.uuid4().hex[:8], "why": why})])
        else:
            self._count()

    @property
    def vehicles(self) -> list[dict[str, Any]]:
        """Settings of the vehicles with which the run continues, with the sessions that it has now."""
        rows = self._all("SELECT kind, body FROM log WHERE kind IN ('session', 'vehicles') ORDER BY seq")
        vehicles, session = self.description.get("vehicles", []), ""
        for kind, body in rows:
            if kind == "vehicles":
                vehicles, session = json.loads(body)["vehicles"], ""  # its sessions are whole
            else:
                session = "." + json.loads(body)["session"]
        return [{**v, "session": v["session"] + session} if "session" in v else dict(v) for v in vehicles]

    def _write_from_now_on(self, lock: BaseFileLock) -> None:
        connection = sqlite3.connect(self.file, isolation_level=None)
        try:
            connection.execute("PRAGMA synchronous = FULL")
            self._check_continues(connection)
            self._counter = Counter(self.file)
        except BaseException:
            connection.close()
            raise
        self._connection.close()
        self._lock, self._connection = lock, connection

    def _check_continues(self, connection: sqlite3.Connection) -> None:
        """Raise a `RecordError` unless new rows would continue the ones that are known.

        A lock can fail: somebody may delete its file, and some network drives have none.
        """
        if connection.execute(_LATEST_DIGEST).fetchone()[0] != self._digest:
            raise RecordError(
                f"{self.file} can't be written: its last row differs from the one that is known here. "
                "Another program writes to it, or the log next to it (-wal) belongs to another file"
            )

    def _append(self, rows: Iterable[tuple[str, str | None, int | None, Mapping[str, Any]]]) -> None:
        self.claim()
        digest, entries = self._digest, []
        for kind, order, part, body in rows:
            try:
                text = json.dumps(body, allow_nan=False)
            except (ValueError, TypeError) as error:
                raise RecordError(f"{kind} {order or ''} is not plain data: {error}") from error
            entry = (now_utc(), kind, order, part, text)
            digest = digest_of(digest, *entry)
            entries.append((*entry, digest))
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            self._check_continues(self._connection)
            self._connection.executemany(
                "INSERT INTO log (time_utc, kind, order_id, part, body, digest) VALUES (?, ?, ?, ?, ?, ?)",
                entries,
            )
            self._connection.execute("COMMIT")
        except (sqlite3.Error, *_NO_VALUE) as error:
            raise RecordError(f"{self.file} can't be written: {error}") from error
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        self._digest = digest
        self._rows += len(entries)
        self._count()

    def _count(self) -> None:
        assert self._counter is not None
        try:
            self._counter.write(self._rows, self._digest)
        except OSError as error:
            raise RecordError(f"the rows of {self.file} can't be counted: {error}") from error

    def order(
        self,
        order: Order,
        memory: Any = None,
        why: Mapping[str, Any] | None = None,
        origin: str | None = None,
    ) -> None:
        """Write an order with the memory and reasons of its policy and its origin, before it is sent."""
        self.orders([(order, memory, why, origin)])

    def orders(
        self,
        batch: Iterable[tuple[Order, Any, Mapping[str, Any] | None, str | None]],
        scores: Mapping[str, Any] | None = None,
    ) -> None:
        """Write the orders of a batch, each as `order` does, in one transaction.

        With the first of them, write the `scores` of steps since the orders before.
        """
        rows = [
            (
                kind_of(order),
                order.id,
                None,
                {"message": to_plain(order), "memory": memory, "why": _plain(why), "origin": origin},
            )
            for order, memory, why, origin in batch
        ]
        if scores:
            rows[0][-1]["scores"] = dict(scores)
        self._append(rows)

    def event(self, event: Event) -> None:
        """Write an event, before the agent gets it."""
        self.events([event])

    def events(self, events: Iterable[Event]) -> None:
        """Write events that belong together, each as `event` does, in one transaction."""
        self._append(
            (
                kind_of(event),
                getattr(event, "order", None),
                getattr(event, "part", None),
                {"message": to_plain(event)},
            )
            for event in events
        )

    def stop(
        self, vehicle: int, reason: EndReason, memory: Any = None, why: Mapping[str, Any] | None = None
    ) -> None:
        """Write why a vehicle gets no further orders."""
        body = {"vehicle": vehicle, "reason": reason.value, "memory": memory, "why": _plain(why)}
        self._append([("stop", None, None, body)])

    def note(self, text: str, order: str | None = None) -> None:
        """Write down something that was ignored, such as an event that no agent can take in."""
        self._append([("note", order, None, {"text": text})])

    def end(self, reason: EndReason) -> None:
        """Write why the run has ended."""
        self._append([("end", None, None, {"reason": reason.value})])

    def reopen(self, reason: EndReason) -> None:
        """Write that the run continues, although it had ended for this reason."""
        self._append([("reopened", None, None, {"reason": reason.value})])

    def continue_with(self, vehicles: Sequence[Mapping[str, Any]]) -> None:
        """Write the settings of the vehicles with which the run continues, in place of earlier ones."""
        self._append([("vehicles", None, None, {"vehicles": [dict(vehicle) for vehicle in vehicles]})])

    def close(self) -> None:
        """Close the record for good, and release the right to write."""
        self._closed = True
        self._connection.close()
        if self._counter is not None:
            self._counter.close()
            self._counter = None
        if self._lock is not None:
            unlock(self.file, self._lock)
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _plain(why: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if why is None else dict(why)


_CHANGE_VEHICLES = ("session", "vehicles")
"""Kinds of rows after which the vehicles of a run have other settings."""

_NEW = "SELECT seq, time_utc, kind, order_id, part, body, digest FROM log WHERE seq >= ? ORDER BY seq"


class ReplacedError(RecordError):
    """The record is that of another run now."""


class Tail:
    """The rows of a record, and those that it gets.

    The first rows are read and checked as a whole, as by `Record`; later ones are read and checked alone,
    since each has a digest of all rows before it.

    Parameters
    ----------
    file : Path
        The record, or a link to it.

    Attributes
    ----------
    vehicles : list of dict
        Settings of the vehicles with which the run is carried out, as of the rows read so far.
    """

    def __init__(self, file: Path) -> None:
        self.file = followed(file)
        self.vehicles: list[dict[str, Any]] = []
        self._copy = GrowingCopy(self.file)
        self._begun, self._digest, self._last, self._rows = "", "", 0, 0
        self._seen: tuple[float, ...] = ()

    def new_rows(self) -> list[Row]:
        """Return the rows since the last call; all of them at first.

        Raises
        ------
        ReplacedError
            Another run has taken the place of this one.
        RecordError
            The record can't be read, or is damaged.
        """
        now = written(self.file)
        if now == self._seen:
            return []
        rows = self._next() if self._rows else None
        if rows is None:
            rows = self._again()
        self._seen = now
        return rows

    def _next(self) -> list[Row] | None:
        """Read what is new; return None unless it continues what was read."""
        try:
            with closing(self._copy.connect()) as connection:
                begun = connection.execute("SELECT created_utc FROM run").fetchone()
                found = connection.execute(_NEW, (self._last,)).fetchall()
        except sqlite3.Error:
            return None
        if begun != (self._begun,) or not found or found[0][-1] != self._digest:
            return None
        digest = self._digest
        for row in found[1:]:
            digest = digest_of(digest, *row[1:-1])
            if digest != row[-1] or row[2] in _CHANGE_VEHICLES:
                return None
        rows = [Row(seq, at, kind, order, json.loads(body)) for seq, at, kind, order, _, body, _ in found[1:]]
        self._note(rows, digest)
        return rows

    def _again(self) -> list[Row]:
        with Record(self.file) as record:
            if self._begun not in ("", record.begun_utc):
                raise ReplacedError(f"{self.file} is the record of another run now")
            rows, self.vehicles, self._begun = record.rows()[self._rows :], record.vehicles, record.begun_utc
            self._note(rows, record.digest)
        return rows

    def _note(self, rows: list[Row], digest: str) -> None:
        if rows:
            self._last, self._digest = rows[-1].seq, digest
            self._rows += len(rows)

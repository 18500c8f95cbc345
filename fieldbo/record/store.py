"""The files of a run: its record, with tables, rows and readings; its counter and lock; what must not change.

The latest rows of a record are in SQLite's write-ahead log. If that file is truncated, deleted or not copied,
the rows before remain, and look complete. The counter, ``run.count`` next to ``run.sqlite``, tells: it holds
the number of rows that were on disk and the digest of the last, and is written after each of them. It also
identifies the file that it belongs to, so that a copy of a run folder is recognised.
"""

from __future__ import annotations

import json
import os
import sqlite3
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.errors import InputError, RecordError, nearest
from fieldbo.messages import Correction, Event, Observation, Order, from_plain

if TYPE_CHECKING:
    from filelock import BaseFileLock


RECORD, MISSION = "run.sqlite", "mission.toml"
"""Names of the files in a run folder."""

APPLICATION_ID = 0x46424F52  # "FBOR"
FORMAT = 3

SCHEMA = f"""
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


def followed(file: Path) -> Path:
    """Resolve a link: SQLite writes its log next to the real file."""
    return file.resolve() if file.is_symlink() else file


def make_file(file: Path, name: str, description: str) -> None:
    """Make a record and its counter under temporary names, and rename them once they are on disk."""
    part = file.with_name(f".{file.name}.part")
    for left in (part, part.with_name(f"{part.name}-wal"), part.with_name(f"{part.name}-shm")):
        left.unlink(missing_ok=True)  # left by a process that died here
    now = now_utc()
    with closing(sqlite3.connect(part)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.executescript(SCHEMA)
        run = (name, now, description, digest_of("", name, now, description))
        connection.execute("INSERT INTO run VALUES (1, ?, ?, ?, ?)", run)
        connection.commit()
    on_disk(part)
    with closing(Counter(part)) as counter:
        counter.write(0, run[-1])
    counter_file(part).replace(counter_file(file))
    part.rename(file)
    on_disk(file.parent)


def on_disk(path: Path) -> None:
    """Wait until a file, or the entries of a folder, are on disk, where the system supports it."""
    if os.name == "nt" and (path.is_dir() or not os.access(path, os.W_OK)):
        return
    opened = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def digest_of(before: str, *values: Any) -> str:
    """Return the digest of a row's values and of the digest before it."""
    return sha256(json.dumps([before, *values]).encode()).hexdigest()


def now_utc() -> str:
    """Return the time in UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


_SIZE = 512
"""Bytes of the file: a sector, which disks write as a whole."""

_TRIES = 3
"""How often to read it: another process may just be writing it."""

_to_disk = getattr(os, "fdatasync", os.fsync)


@dataclass(frozen=True)
class Count:
    """What a counter says.

    Attributes
    ----------
    rows : int
        Number of rows of the log.
    digest : str
        Digest of the last of them, or of the run if there is none.
    place : str
        Identifies the machine and the file.
    """

    rows: int
    digest: str
    place: str

    @classmethod
    def of(cls, file: Path) -> Self | None:
        """Read the counter of a record; None if there is none, or it can't be read."""
        for _ in range(_TRIES):
            with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
                content = json.loads(counter_file(file).read_bytes())
                count = cls(int(content["rows"]), str(content["digest"]), str(content["place"]))
                if count.rows >= 0 and content["check"] == count._check:
                    return count
        return None

    @property
    def _check(self) -> str:
        return sha256(json.dumps(asdict(self)).encode()).hexdigest()[:16]

    @property
    def _bytes(self) -> bytes:
        return json.dumps({**asdict(self), "check": self._check}).encode().ljust(_SIZE - 1) + b"\n"


class Counter:
    """Writes the counter of a record, in place."""

    def __init__(self, file: Path) -> None:
        self.place = place_of(file)
        self._file = os.open(counter_file(file), os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644)

    def write(self, rows: int, digest: str) -> None:
        """Write the number of rows and the digest of the last; on disk when this returns."""
        os.lseek(self._file, 0, os.SEEK_SET)
        os.write(self._file, Count(rows, digest, self.place)._bytes)
        _to_disk(self._file)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def place_of(file: Path) -> str:
    """Return what identifies a file on this machine; a copy has another one, a renamed file the same."""
    return sha256(f"{_machine()}:{file.stat().st_ino}".encode()).hexdigest()[:16]


def _machine() -> str:
    for name in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        with suppress(OSError):
            if text := Path(name).read_text().strip():
                return text
    return str(uuid.getnode())


def counter_file(file: Path) -> Path:
    """Return where the counter of a record is."""
    return file.with_suffix(".count")


_PATIENCE_S = 1.0
"""`is_being_written` holds the lock for a moment; wait that long for it."""


def is_being_written(file: Path) -> bool:
    """Return True if a process holds the right to write to a record."""
    from filelock import FileLock, Timeout

    lock = _lock_file(file)
    if not lock.exists():
        return False
    try:
        with FileLock(lock, timeout=0):
            return False
    except Timeout:
        return True
    except OSError:  # a read-only folder
        return False


def acquired(file: Path) -> BaseFileLock:
    """Take the right to write to a file until `unlock`.

    Raises
    ------
    filelock.Timeout
        Another process holds it.
    OSError
        The lock file can't be made.
    """
    from filelock import FileLock

    lock = FileLock(_lock_file(file), timeout=_PATIENCE_S, thread_local=False)
    lock.acquire()
    return lock


@contextmanager
def locked(file: Path) -> Iterator[BaseFileLock]:
    """Take the right to write to a record until `unlock`; release it if the block fails.

    Raises
    ------
    RecordError
        Another process holds it, or the record can't be written.
    """
    from filelock import Timeout

    if not file.parent.is_dir():
        raise RecordError(f"{file} can't be written: there is no folder {file.parent}")
    try:
        lock = acquired(file)
    except Timeout:
        raise RecordError(
            f"{file} is being written by another process: the run is still in progress. Stop that process, "
            "or wait until it has ended"
        ) from None
    except OSError as error:
        raise RecordError(f"{file} can't be written: {error}") from None
    try:
        yield lock
    except BaseException as error:
        unlock(file, lock)
        if isinstance(error, sqlite3.Error | OSError | UnicodeError):
            raise RecordError(f"{file} can't be written: {error}") from error
        raise


def unlock(file: Path, lock: BaseFileLock) -> None:
    """Release the right to write, and remove the lock file, unless it is another program's."""
    # A process that waits for the lock notices that the file is gone, and makes a new one.
    with suppress(OSError):  # some systems can't remove an open file
        if _lock_file(file).stat().st_size == 0:  # a lock file is empty
            _lock_file(file).unlink()
    lock.release()


def _lock_file(file: Path) -> Path:
    """Return ``run.lock`` for a record, and a hidden file with its whole name for any other file."""
    return file.with_suffix(".lock") if file.suffix == ".sqlite" else file.with_name(f".{file.name}.lock")


ORDERS = ("query", "go-home", "recharge")
"""Kinds of rows that are orders."""

WITHOUT_MESSAGE = ("stop", "end", "reopened", "note", "session", "vehicles")
"""Kinds of rows that are neither orders nor events."""


@dataclass(frozen=True)
class Row:
    """One entry of the log.

    Attributes
    ----------
    seq : int
    time_utc : str
    kind : str
        From `fieldbo.messages.kind_of`, or ``"stop"`` (a vehicle), ``"end"`` (of the run), ``"reopened"``
        (after such an end), ``"note"`` (on what was ignored), ``"session"`` (of a copy, or after a loss), or
        ``"vehicles"`` (with which the run continues).
    order : str or None
        Id of the order that the row belongs to.
    body : dict
        The plain form of the ``message``; an order also has ``memory``, ``why`` and, except
        in old records, ``origin``, and the ``scores`` of steps since the order before, by their place in the
        curve. A stop has ``vehicle``, ``reason``, ``memory`` and ``why``, a note
        ``text``, a session ``session`` and ``why``, and vehicles ``vehicles``, their settings.
    """

    seq: int
    time_utc: str
    kind: str
    order: str | None
    body: dict[str, Any]

    @property
    def message(self) -> Order | Event:
        """The order or event of this row."""
        message = self.body["message"]
        if self.kind == "telemetry":  # versions without this key trusted every gauge
            message = {"at_least": 0.0, **message}
        return from_plain(message)


# -- a run, and the files beside its record ---------------------------------------------------------------

_DOCUMENTS = {".md", ".rst"}
"""Files for people: a change in them does not change a run."""


def record_file(run: Path | str) -> Path:
    """Return the path of a run's record.

    Parameters
    ----------
    run : Path or str
        A run folder, the ``run.sqlite`` in it, or the name of a run in ``runs/``.

    Raises
    ------
    InputError
        There is no such run, or the folder holds a mission but no record.
    """
    given, below = Path(run), Path("runs") / run
    path = given if given.exists() or not below.exists() else below
    file = path / RECORD if path.is_dir() else path
    if file.is_file() and file.name == RECORD:
        return file
    if (mission := path / MISSION).is_file():
        raise InputError(
            f"no run has begun in {path}: it holds a mission but no {RECORD}",
            expected="a folder in which a run has begun",
            fix=f"start the run with: fieldbo run {mission}",
        )
    near = nearest(str(run), (file.parent.name for file in Path("runs").glob(f"*/{RECORD}")))
    raise InputError(
        f"{run} is not a run folder: it has no {RECORD}" if path.exists() else f"there is no run {run}",
        expected=f"a run folder, as written by fieldbo run, or the {RECORD} in it",
        fix=f"did you mean {near!r}?" if near else "list your runs with: fieldbo runs",
    )


def is_hashed(name: str) -> bool:
    """Return True if a file of a world's folder can change a run; documents can't.

    Examples
    --------
    >>> is_hashed("world.toml"), is_hashed("README.md")
    (True, False)
    """
    return PurePath(name).suffix.lower() not in _DOCUMENTS


def digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file below a world's folder that can change a run, by relative path."""
    return {
        file.relative_to(folder).as_posix(): sha256(file.read_bytes()).hexdigest()
        for file in sorted(p for p in folder.rglob("*") if p.is_file() and is_hashed(p.name))
    }


def changed_files(world: Path, description: Mapping[str, Any]) -> list[str]:
    """Return which files of a world's folder are not those that the description of a run has digests of."""
    now, then = digests(world), description.get("files", {})
    return [f"{world.name}/{name}" for name in then if is_hashed(name) and now.get(name) != then[name]]


# -- the readings of a run ---------------------------------------------------------------------------------


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


def readings_in(rows: Sequence[Row], begun_utc: str) -> RecordedReadings | None:
    """Return the readings in all rows of a run, for another mission to begin with; None if it has none."""
    seen = [event for event in _correct(rows) if len(event.values)]
    if not seen or not (kept := np.isfinite(np.concatenate([event.values for event in seen]))).any():
        return None
    began_s = datetime.fromisoformat(begun_utc).timestamp()
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

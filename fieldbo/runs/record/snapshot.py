"""A copy of an SQLite file at one moment, and whether the file is whole; not a byte of it is touched.

A database may have a log beside it (``-wal``) that holds what was written last: with it another process is
writing, or was when it died. Opened where they lie, SQLite would change the log's index, merge the log, or
make one, also for a reader; so both are copied, and the copy is opened.
"""

from __future__ import annotations

import shutil
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from fieldbo.errors import RecordError

_TRIES = 100
_PAUSE_S = 0.05  # longer than the clock of the file system takes to go on
_LOG_HEAD, _FRAME_HEAD = 32, 24  # bytes before the log's first frame, and before each frame's page
_COMMIT, _SALTS = slice(4, 8), slice(8, 16)  # of a frame's head: pages after a commit (else 0), and the salts


def identity(file: Path) -> tuple[int, int] | None:
    """Return the application id and format number in an SQLite file's header; None where it has none."""
    with file.open("rb") as opened:
        header = opened.read(100)
    if len(header) < 100 or not header.startswith(b"SQLite format 3\0"):
        return None
    return int.from_bytes(header[68:72], "big"), int.from_bytes(header[60:64], "big")


def snapshot(file: Path) -> sqlite3.Connection:
    """Return a database in memory that holds what a file, and the log beside it, hold now.

    Raises
    ------
    RecordError
        The file or its log is damaged, or can't be read.
    """
    seen = None
    for _ in range(_TRIES):
        now = _written(file)
        try:
            return _taken(file)
        except RecordError:
            if now == seen == _written(file):
                raise
            seen = now  # a log that grew while it was copied may look damaged; damage stays
            time.sleep(_PAUSE_S)
    raise RecordError(f"{file} was written to all the time while it was read; try again")


def _taken(file: Path) -> sqlite3.Connection:
    """Copy a file and its log, and return what they hold, if they are whole."""
    with TemporaryDirectory(prefix="fieldbo-") as folder:
        copy = Path(folder) / "copy.sqlite"
        try:
            _copy(file, copy)
            with closing(sqlite3.connect(copy)) as source:
                if _log(copy).exists():
                    frames = max(0, source.execute("PRAGMA wal_checkpoint").fetchone()[1])
                    page = source.execute("PRAGMA page_size").fetchone()[0]
                    _check_log(_log(file).name, _log(copy).read_bytes(), page, frames)
                state = source.execute("PRAGMA quick_check(1)").fetchone()[0]
                if state != "ok":
                    raise RecordError(f"{file} is damaged: {state}")
                found = sqlite3.connect(":memory:", isolation_level=None)
                source.backup(found)
                return found
        except sqlite3.DatabaseError as error:
            raise RecordError(f"{file} is damaged: {error}") from None
        except OSError as error:
            raise RecordError(f"{file} can't be read: {error.strerror}") from None


def _log(file: Path) -> Path:
    return file.with_name(f"{file.name}-wal")


def _copy(file: Path, copy: Path) -> None:
    """Copy a database and its log, as they were at one moment.

    The log only grows while its head and the database stay as they are, and of what is added meanwhile
    SQLite takes what is complete up to a commit.
    """
    for _ in range(_TRIES):
        before = _moment(file)
        shutil.copyfile(file, copy)
        _log(copy).unlink(missing_ok=True)
        with suppress(FileNotFoundError):
            shutil.copyfile(_log(file), _log(copy))
        if _moment(file) == before:
            return
    raise RecordError(f"{file} was written to all the time while it was read; try again")


def _moment(file: Path) -> tuple[int, int, bytes | None]:
    """Return what changes when the log is merged, or begun anew."""
    head = None
    with suppress(FileNotFoundError), _log(file).open("rb") as opened:
        head = opened.read(_LOG_HEAD)
    now = file.stat()
    return now.st_mtime_ns, now.st_size, head


def _written(file: Path) -> tuple[int, int]:
    """Return what changes with every write to the log."""
    with suppress(FileNotFoundError):
        now = _log(file).stat()
        return now.st_mtime_ns, now.st_size
    return 0, 0


def _check_log(name: str, log: bytes, page: int, frames: int) -> None:
    """Raise a `RecordError` if a log of pages of that size goes on behind the `frames` that can be read.

    A log may end in one broken commit, which was being written when the power went. Each commit is on disk
    before the next one begins: more of them behind a broken one were there, and would be lost.
    """
    body, size = np.frombuffer(log, dtype=np.uint8)[_LOG_HEAD:], _FRAME_HEAD + page
    if len(body) < size:
        return
    heads = body[: len(body) // size * size].reshape(-1, size)[:, :_FRAME_HEAD]
    told = (
        np.frombuffer(log[16:24], dtype=np.uint8) if log[24:32] == _checksum(log[:24]) else heads[0, _SALTS]
    )
    own = (heads[frames:, _SALTS] == told).all(axis=1)  # others are of an earlier log, and merged
    behind = int(np.count_nonzero(own & heads[frames:, _COMMIT].any(axis=1)))
    if behind > 1:
        raise RecordError(f"{name} is damaged: {behind} commits lie behind a part that can't be read")


def _checksum(head: bytes) -> bytes:
    """Return the checksum of the log's head, as SQLite's file format defines it."""
    words = np.frombuffer(head, dtype=">u4" if head[3] & 1 else "<u4").reshape(-1, 2)
    a = b = 0
    for first, second in words.tolist():
        a = (a + first + b) % 2**32
        b = (b + second + a) % 2**32
    return a.to_bytes(4, "big") + b.to_bytes(4, "big")

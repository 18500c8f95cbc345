"""Read an SQLite file and check it for damage without changing a byte of it.

A database may have a write-ahead log next to it (``-wal``), left by a process that is writing or has died.
SQLite would create, index or merge that log even for a reader. Therefore both files are copied, and the copy
is opened.
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
_PAUSE_S = 0.05  # longer than a tick of the file system's clock
_LOG_HEAD, _FRAME_HEAD = 32, 24  # bytes before the log's first frame, and before the page in each frame
_COMMIT, _SALTS = slice(4, 8), slice(8, 16)  # in a frame's head: database size after a commit, else 0; salts


def identity(file: Path) -> tuple[int, int] | None:
    """Return the application id and format number in the header of an SQLite file; None for other files."""
    with file.open("rb") as opened:
        header = opened.read(100)
    if len(header) < 100 or not header.startswith(b"SQLite format 3\0"):
        return None
    return int.from_bytes(header[68:72], "big"), int.from_bytes(header[60:64], "big")


def snapshot(file: Path) -> sqlite3.Connection:
    """Return a database in memory with the present content of a file and its write-ahead log.

    Raises
    ------
    RecordError
        The file or its log is damaged, or can't be read.
    """
    seen = None
    for _ in range(_TRIES):
        now = written(file)
        try:
            return _load(file)
        except RecordError:
            if now == seen == written(file):
                raise
            seen = now  # a log that grew while it was copied may look damaged: retry until it is stable
            time.sleep(_PAUSE_S)
    raise RecordError(f"{file} changed while it was read; try again")


def _load(file: Path) -> sqlite3.Connection:
    """Copy a file and its log, check them, and load them into memory."""
    with TemporaryDirectory(prefix="fieldbo-") as folder:
        copy = Path(folder) / "copy.sqlite"
        try:
            _copy(file, copy)
            with closing(sqlite3.connect(copy)) as source:
                if _log_of(copy).exists():
                    frames = max(0, source.execute("PRAGMA wal_checkpoint").fetchone()[1])
                    page = source.execute("PRAGMA page_size").fetchone()[0]
                    _check_log(_log_of(file).name, _log_of(copy).read_bytes(), page, frames)
                state = source.execute("PRAGMA quick_check(1)").fetchone()[0]
                if state != "ok":
                    raise RecordError(f"{file} is damaged: {state}")
                loaded = sqlite3.connect(":memory:", isolation_level=None)
                source.backup(loaded)
                return loaded
        except sqlite3.DatabaseError as error:
            raise RecordError(f"{file} is damaged: {error}") from None
        except OSError as error:
            raise RecordError(f"{file} can't be read: {error.strerror}") from None


class GrowingCopy:
    """A copy of an SQLite file that grows with it, at the cost of what is new.

    It is not checked for damage, and ends with this object.

    Parameters
    ----------
    file : Path
    """

    def __init__(self, file: Path) -> None:
        self._file, self._folder = file, TemporaryDirectory(prefix="fieldbo-")
        self._copy = Path(self._folder.name) / "copy.sqlite"
        self._at: tuple[int, int, bytes | None] | None = None
        self._committed = 0

    def connect(self) -> sqlite3.Connection:
        """Return the present content of the file and its write-ahead log, to be read only.

        Raises
        ------
        RecordError
            The file can't be read.
        """
        try:
            for _ in range(_TRIES):
                now = _moment(self._file)
                if now == self._at:
                    self._grow()
                else:
                    _copy(self._file, self._copy)
                    _index_of(self._copy).unlink(missing_ok=True)
                    self._committed = 0
                if _moment(self._file) == now:
                    break
            else:
                raise RecordError(f"{self._file} changed while it was read; try again")
        except OSError as error:
            raise RecordError(f"{self._file} can't be read: {error.strerror}") from None
        self._at, self._committed = now, self._end_of_commits()
        return sqlite3.connect(f"{self._copy.as_uri()}?mode=ro", uri=True)

    def _grow(self) -> None:
        """Copy what follows the last complete commit of the log: what is behind it may be written anew."""
        with suppress(FileNotFoundError), _log_of(self._file).open("rb") as log:
            log.seek(self._committed)
            rest = log.read()
            with _log_of(self._copy).open("r+b") as copy:
                copy.seek(self._committed)
                copy.write(rest)
                copy.truncate()

    def _end_of_commits(self) -> int:
        """Return where the last complete commit in the copy of the log ends."""
        with suppress(FileNotFoundError), _log_of(self._copy).open("rb") as log:
            head = log.read(_LOG_HEAD)
            if len(head) < _LOG_HEAD:
                return 0
            start, size = max(self._committed, _LOG_HEAD), _FRAME_HEAD + int.from_bytes(head[8:12], "big")
            log.seek(start)
            body = np.frombuffer(log.read(), dtype=np.uint8)
            heads = body[: len(body) // size * size].reshape(-1, size)[:, :_FRAME_HEAD]
            current = (heads[:, _SALTS] == np.frombuffer(head[16:24], dtype=np.uint8)).all(axis=1)
            commits = np.flatnonzero(current & heads[:, _COMMIT].any(axis=1))
            return start + size * (int(commits[-1]) + 1) if len(commits) else start
        return 0


def _index_of(file: Path) -> Path:
    return file.with_name(f"{file.name}-shm")


def _log_of(file: Path) -> Path:
    return file.with_name(f"{file.name}-wal")


def _copy(file: Path, copy: Path) -> None:
    """Copy a database and its log in a consistent state.

    While the database and the head of the log stay the same, the log only grows, and SQLite ignores whatever
    follows the last complete commit.
    """
    for _ in range(_TRIES):
        before = _moment(file)
        shutil.copyfile(file, copy)
        _log_of(copy).unlink(missing_ok=True)
        with suppress(FileNotFoundError):
            shutil.copyfile(_log_of(file), _log_of(copy))
        if _moment(file) == before:
            return
    raise RecordError(f"{file} changed while it was read; try again")


def _moment(file: Path) -> tuple[int, int, bytes | None]:
    """Return values that change when the log is merged or restarted."""
    head = None
    with suppress(FileNotFoundError), _log_of(file).open("rb") as opened:
        head = opened.read(_LOG_HEAD)
    now = file.stat()
    return now.st_mtime_ns, now.st_size, head


def written(file: Path) -> tuple[int, ...]:
    """Return numbers that change with every write to a database."""
    numbers = list[int]()
    for path in (file, _log_of(file)):
        try:
            now = path.stat()
            numbers += [now.st_mtime_ns, now.st_size]
        except OSError:
            numbers += [0, 0]
    return tuple(numbers)


def _check_log(name: str, log: bytes, page: int, frames: int) -> None:
    """Raise a `RecordError` if commits follow the first `frames`, which are the readable ones.

    A power cut may leave one broken commit at the end. Each commit is on disk before the next one begins, so
    several commits behind the readable part mean that complete ones would be lost.
    """
    body, size = np.frombuffer(log, dtype=np.uint8)[_LOG_HEAD:], _FRAME_HEAD + page
    if len(body) < size:
        return
    heads = body[: len(body) // size * size].reshape(-1, size)[:, :_FRAME_HEAD]
    salts = (
        np.frombuffer(log[16:24], dtype=np.uint8) if log[24:32] == _checksum(log[:24]) else heads[0, _SALTS]
    )
    current = (heads[frames:, _SALTS] == salts).all(axis=1)  # other frames are of an earlier, merged log
    behind = int(np.count_nonzero(current & heads[frames:, _COMMIT].any(axis=1)))
    if behind > 1:
        raise RecordError(f"{name} is damaged: {behind} commits follow a part that can't be read")


def _checksum(head: bytes) -> bytes:
    """Return the checksum of the log's head as defined by SQLite's file format."""
    words = np.frombuffer(head, dtype=">u4" if head[3] & 1 else "<u4").reshape(-1, 2)
    a = b = 0
    for first, second in words.tolist():
        a = (a + first + b) % 2**32
        b = (b + second + a) % 2**32
    return a.to_bytes(4, "big") + b.to_bytes(4, "big")

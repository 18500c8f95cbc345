"""The exclusive right to write to a file, held by one process at a time and released when it ends."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fieldbo.errors import RecordError

if TYPE_CHECKING:
    from filelock import BaseFileLock

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

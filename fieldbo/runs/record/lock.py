"""The right to write to a record: one process has it at a time, and it ends with the process."""

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
"""Who only looks whether a record is being written holds its lock for a moment."""


def is_being_written(file: Path) -> bool:
    """Say whether a process has the right to write to a record at present."""
    from filelock import FileLock, Timeout

    lock = _lock_file(file)
    if not lock.exists():
        return False
    try:
        with FileLock(lock, timeout=0):
            return False
    except Timeout:
        return True
    except OSError:  # a folder that nobody here can write to
        return False


@contextmanager
def locked(file: Path) -> Iterator[BaseFileLock]:
    """Take the right to write to a record, to keep it until `unlock`; a block that fails gives it back.

    Raises
    ------
    RecordError
        Another process has it, or the record can't be written.
    """
    from filelock import FileLock, Timeout

    if not file.parent.is_dir():
        raise RecordError(f"{file} can't be written: there is no folder {file.parent}")
    try:
        lock = FileLock(_lock_file(file), timeout=_PATIENCE_S, thread_local=False)
        lock.acquire()
    except Timeout:
        raise RecordError(
            f"{file} is being written by another process: that run is still going on. Only one may write to "
            "a record; stop that one first, or wait until it has ended"
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
    """Give the right to write back, and leave no file behind."""
    # Whoever waits for a lock whose file was removed notices, and makes a new one.
    with suppress(OSError):  # where a file that is open can't be removed it stays
        _lock_file(file).unlink()
    lock.release()


def _lock_file(file: Path) -> Path:
    return file.with_suffix(".lock")

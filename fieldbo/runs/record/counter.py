"""How many rows a record has, in a small file of its own: ``run.count`` next to ``run.sqlite``.

The latest rows of a record are in SQLite's write-ahead log. If that file is truncated, deleted or not copied,
the rows before remain, and look complete. The counter tells: it holds the number of rows that were on disk
and the digest of the last, and is written after each of them. It also identifies the file that it belongs to,
so that a copy of a run folder is recognised.
"""

from __future__ import annotations

import json
import os
import uuid
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Self

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

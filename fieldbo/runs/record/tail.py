"""Follow a record that another process writes, at the cost of what is new."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from fieldbo.errors import RecordError
from fieldbo.runs.record.file import digest_of, followed
from fieldbo.runs.record.record import Record
from fieldbo.runs.record.rows import Row
from fieldbo.runs.record.snapshot import GrowingCopy

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
        written = _written(self.file)
        if written == self._seen:
            return []
        rows = self._next() if self._rows else None
        if rows is None:
            rows = self._again()
        self._seen = written
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
        """Read and check all rows; return those that are new."""
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


def _written(file: Path) -> tuple[float, ...]:
    """Return numbers that change whenever a record does."""
    numbers = list[float]()
    for path in (file, file.with_name(f"{file.name}-wal")):
        try:
            now = path.stat()
            numbers += [now.st_mtime_ns, now.st_size]
        except OSError:
            numbers += [0, 0]
    return tuple(numbers)

"""The file of a record: its tables, and how a new one is made."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from fieldbo.runs.record.counter import Counter, counter_file

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

"""Records, their counters and commands are forced to disk, so that they survive a power cut."""

import os
import sqlite3
from functools import partial
from pathlib import Path

import pytest

from fieldbo.messages import Action, Command, Query
from fieldbo.record import store
from fieldbo.record.record import Record
from fieldbo.runs.steer import append

FULL = 2  # of PRAGMA synchronous: SQLite forces its files to disk at the end of each transaction


@pytest.fixture
def forced(monkeypatch):
    """What was forced to disk, as (inode, the names in the folder at that moment)."""
    done = []

    def noting(force, file):
        done.append((os.fstat(file).st_ino, {path.name for path in Path().iterdir()}))
        force(file)

    monkeypatch.setattr(os, "fsync", partial(noting, os.fsync))
    monkeypatch.setattr(store, "_to_disk", partial(noting, store._to_disk))
    return done


@pytest.fixture
def levels(monkeypatch):
    """``PRAGMA synchronous`` of each connection as it inserts a row."""
    seen = []

    class Watched(sqlite3.Connection):
        def execute(self, sql, *values):
            self._note(sql)
            return super().execute(sql, *values)

        def executemany(self, sql, *values):
            self._note(sql)
            return super().executemany(sql, *values)

        def _note(self, sql):
            if sql.startswith("INSERT"):
                seen.append(super().execute("PRAGMA synchronous").fetchone()[0])

    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Watched))
    return seen


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def inode(path):
    return Path(path).stat().st_ino


def test_a_new_record_is_on_disk_before_it_has_its_name_and_the_name_before_it_is_used(tmp_path, forced):
    with Record.create(tmp_path / "run.sqlite", "run", {}):
        named = {"run.sqlite", "run.count"}
        assert any(file == inode("run.sqlite") and "run.sqlite" not in names for file, names in forced)
        assert any(file == inode("run.count") and "run.count" not in names for file, names in forced)
        assert any(file == inode(tmp_path) and named <= names for file, names in forced)


def test_each_order_forces_its_rows_and_their_count_to_disk(tmp_path, forced, levels):
    with Record.create(tmp_path / "run.sqlite", "run", {}) as record:
        for number in range(3):
            forced.clear()
            levels.clear()
            record.order(Query([0.0], id=f"run/{number}"))
            assert set(levels) == {FULL}
            assert [file for file, _ in forced] == [inode("run.count")]


def test_a_command_is_forced_to_disk(tmp_path, levels):
    append(tmp_path / "commands.sqlite", Command("c", Action.PAUSE))
    assert set(levels) == {FULL}

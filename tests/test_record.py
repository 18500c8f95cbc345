"""The log of a run: append-only, in order, durable, and careful with files that are not its own."""

import json
import sqlite3
import subprocess
import sys
from contextlib import closing

import numpy as np
import pytest

from fieldbo import record as record_module
from fieldbo.errors import RecordError
from fieldbo.exchange import (
    EndReason,
    Fitted,
    GoHome,
    Lost,
    Observation,
    Query,
    Rejected,
    Telemetry,
    to_plain,
)
from fieldbo.record import Record


def observation(order, part=0):
    return Observation(order, [[1.0, 2.0]], [0.5], [0.01], [3.0], [1.0, 2.0], 4.0, part=part)


MESSAGES = [
    Query([1.0, np.nan], [True, False], expected_cost=3.0, id="run/0"),
    observation("run/0"),
    Query([3.0, 4.0], id="run/1"),
    Rejected("run/1", "shallow water"),
    Fitted({"length_scales": [1.0, 2.0], "noise_variance": None}),
    Query([5.0, 6.0], id="run/2"),
    Lost("run/2", "no link"),
    Telemetry(0, [5.0, 6.0], 12.5, 60.0),
    GoHome(0, "run/3"),
]


def write(record, messages=MESSAGES):
    for message in messages:
        is_order = isinstance(message, Query | GoHome)
        (record.order if is_order else record.event)(message)


@pytest.fixture
def file(tmp_path):
    """A closed record that holds every kind of message and an end."""
    path = tmp_path / "run.sqlite"
    with Record.create(path, "run", {"mission": {"seed": 7}}) as record:
        write(record)
        record.end(EndReason.BATTERY_SPENT)
    return path


def test_rows_come_back_in_the_order_in_which_they_were_written(file):
    with Record(file) as record:
        rows = record.rows()
        assert record.name == "run"
        assert record.description == {"mission": {"seed": 7}}
        assert record.end_reason is EndReason.BATTERY_SPENT
    assert [row.seq for row in rows] == sorted({row.seq for row in rows})
    assert [to_plain(row.message) for row in rows[:-1]] == [to_plain(m) for m in MESSAGES]
    assert [row.kind for row in rows[-3:]] == ["telemetry", "go-home", "end"]
    assert [row.order for row in rows[:4]] == ["run/0", "run/0", "run/1", "run/1"]
    assert [row.time_utc for row in rows] == sorted(row.time_utc for row in rows)


def test_an_order_keeps_what_the_policy_remembered_and_why(tmp_path):
    memory, why = {"epoch": 2, "H": "AAE="}, {"score": 0.25, "site": 3}
    with Record.create(tmp_path / "run.sqlite", "run", {}) as record:
        record.order(Query([1.0], id="run/0"), memory, why)
        row = record.rows()[0]
    assert (row.body["memory"], row.body["why"]) == (memory, why)


def test_a_record_that_was_closed_goes_on_where_it_ended(file):
    with Record(file) as record:
        before = record.rows()
        record.event(Telemetry(0, [0.0, 0.0], None, 61.0))
        assert record.rows()[:-1] == before
        assert record.rows()[-1].seq > before[-1].seq


def test_a_run_that_can_go_on_has_no_end_reason(tmp_path):
    with Record.create(tmp_path / "run.sqlite", "run", {}) as record:
        write(record)
        assert record.end_reason is None


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE log SET body = '{}' WHERE seq = 1",
        "DELETE FROM log WHERE seq = 1",
        "DELETE FROM log",
        "INSERT OR REPLACE INTO log VALUES (1, '', 'query', NULL, NULL, '{}', '')",
        "UPDATE run SET name = 'other'",
        "DELETE FROM run",
    ],
)
def test_nothing_in_a_record_can_be_updated_or_deleted(file, statement):
    with Record(file) as record:
        before = record.rows()
        with (
            closing(sqlite3.connect(file)) as other,
            pytest.raises(sqlite3.IntegrityError, match="append only"),
        ):
            other.execute(statement)
        assert record.rows() == before


def test_a_record_is_never_written_over(file):
    before = file.read_bytes()
    with pytest.raises(RecordError, match="never written over"):
        Record.create(file, "run", {})
    assert file.read_bytes() == before


def test_a_record_that_can_not_be_made_or_does_not_exist_is_an_error(tmp_path):
    with pytest.raises(RecordError, match="can't be written"):
        Record.create(tmp_path / "no such folder" / "run.sqlite", "run", {})
    with pytest.raises(RecordError, match="there is no record"):
        Record(tmp_path / "run.sqlite")
    assert list(tmp_path.iterdir()) == []


def _text(_):
    return b"time,value\n0,1.5\n" * 400


def _other_database(own):
    other = own.with_name("other.sqlite")
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE log (seq INTEGER, body TEXT)")
        connection.execute("INSERT INTO log VALUES (1, '{}')")
        connection.commit()
    return other.read_bytes()


def _other_format(own):
    copy = own.with_name("later.sqlite")
    copy.write_bytes(own.read_bytes())
    with closing(sqlite3.connect(copy)) as connection:
        connection.execute("PRAGMA user_version = 999")
    return copy.read_bytes()


def _never_begun(own):
    other = own.with_name("begun.sqlite")
    with closing(sqlite3.connect(other)) as connection:
        connection.executescript(record_module._SCHEMA)
    return other.read_bytes()


FOREIGN = {
    "empty": lambda _: b"",
    "text": _text,
    "another database": _other_database,
    "another format": _other_format,
    "cut at its end": lambda own: own.read_bytes()[:-2000],
    "a page in the middle damaged": lambda own: (
        own.read_bytes()[:8192] + b"\xff" * 4096 + own.read_bytes()[12288:]
    ),
    "never begun": _never_begun,
    "cut in its header": lambda own: own.read_bytes()[:50],
    "cut after a page": lambda own: own.read_bytes()[:4096],
    "cut in the middle": lambda own: own.read_bytes()[: len(own.read_bytes()) // 2 + 100],
    "header damaged": lambda own: b"\xff" * 64 + own.read_bytes()[64:],
    "table of contents damaged": lambda own: (
        own.read_bytes()[:100] + b"\xff" * 3996 + own.read_bytes()[4096:]
    ),
}


@pytest.mark.parametrize("content", FOREIGN.values(), ids=FOREIGN.keys())
def test_a_foreign_or_damaged_file_is_refused_and_left_untouched(file, tmp_path, content):
    path = tmp_path / "found" / "run.sqlite"
    path.parent.mkdir()
    path.write_bytes(content(file))
    before = path.read_bytes()
    with pytest.raises(RecordError, match=r"is no record|is damaged"):
        Record(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_reader_sees_what_was_there_when_it_began_and_does_not_hold_up_the_writer(tmp_path):
    path = tmp_path / "run.sqlite"
    with (
        Record.create(path, "run", {}) as record,
        closing(sqlite3.connect(path, isolation_level=None)) as reader,
    ):
        write(record)
        reader.execute("BEGIN")
        seen = reader.execute("SELECT count(*) FROM log").fetchone()[0]
        for n in range(50):
            record.event(observation("run/9", part=n))
        assert reader.execute("SELECT count(*) FROM log").fetchone()[0] == seen == len(MESSAGES)
        reader.execute("COMMIT")
        assert reader.execute("SELECT count(*) FROM log").fetchone()[0] == len(MESSAGES) + 50
        with Record(path) as second:
            assert second.rows() == record.rows()


WRITER = """
import os, sys
from pathlib import Path
from fieldbo.exchange import Query
from fieldbo.record import Record
record = Record.create(Path(sys.argv[1]), "run", {"seed": 7})
for n in range(20):
    record.order(Query([float(n)], id=f"run/{n}"))
os._exit(9)  # no close, no clean-up
"""


def test_rows_outlive_a_process_that_ends_without_closing_its_record(tmp_path):
    path = tmp_path / "run.sqlite"
    ended = subprocess.run([sys.executable, "-c", WRITER, str(path)], check=False)
    assert ended.returncode == 9
    with Record(path) as record:
        assert [row.order for row in record.rows()] == [f"run/{n}" for n in range(20)]
        record.order(Query([20.0], id="run/20"))
        assert len(record.rows()) == 21


def test_what_json_does_not_know_is_refused_before_anything_is_written(tmp_path):
    with Record.create(tmp_path / "run.sqlite", "run", {}) as record:
        with pytest.raises(RecordError, match="plain data"):
            record.order(Query([1.0], id="run/0"), why={"score": float("nan")})
        assert record.rows() == []


def test_every_row_is_strict_json_that_other_tools_can_read(file):
    with closing(sqlite3.connect(file)) as connection:
        bodies = [body for (body,) in connection.execute("SELECT body FROM log")]

    def refuse(name):
        raise AssertionError(name)

    assert all(isinstance(json.loads(body, parse_constant=refuse), dict) for body in bodies)

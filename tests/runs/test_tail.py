"""Whoever follows a record reads what is new, and sees what a whole reading would show."""

import shutil
import sqlite3

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fieldbo.errors import RecordError
from fieldbo.messages import Query, Telemetry
from fieldbo.record.record import Record, ReplacedError, Tail


def telemetry(k):
    return Telemetry(0, [0.0, float(k)], 100.0 - k, float(k))


@pytest.fixture
def record(tmp_path):
    with Record.create(
        tmp_path / "run.sqlite", "run", {"vehicles": [{"kind": "mqtt", "session": "a"}]}
    ) as made:
        yield made


def whole(record):
    with Record(record.file) as read:
        return read.rows()


WRITES = st.lists(st.sampled_from(["event", "events", "orders", "big", "merge", "look"]), max_size=12)


@given(WRITES)
@settings(max_examples=5)
@example(["event", "look", "events", "look", "big", "look", "orders", "merge", "look", "event", "event"])
def test_the_new_rows_are_those_of_the_record(tmp_path_factory, writes):
    folder = tmp_path_factory.mktemp("run")
    with Record.create(folder / "run.sqlite", "run", {}) as record:
        tail, found = Tail(record.file), []
        for k, write in enumerate([*writes, "look"]):
            if write == "event":
                record.event(telemetry(k))
            elif write == "events":
                record.events([telemetry(k), telemetry(k)])
            elif write == "orders":
                record.orders([(Query([0.0, 1.0], id=f"run/{k}"), {"k": k}, {"why": "it is new"}, "asked")])
            elif write == "big":  # beyond the size at which SQLite merges its log by itself
                record.note("x" * 5_000_000)
            elif write == "merge":
                record._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            else:
                found += tail.new_rows()
                assert found == whole(record)


def test_only_new_rows_are_read(record, monkeypatch):
    record.events([telemetry(k) for k in range(50)])
    tail = Tail(record.file)
    assert len(tail.new_rows()) == 50
    monkeypatch.setattr(Record, "_read", None)  # which reads all of them
    record.event(telemetry(50))
    assert [row.message.time_s for row in tail.new_rows()] == [50.0]
    assert tail.new_rows() == []


def test_the_vehicles_are_those_of_the_last_row(record):
    tail = Tail(record.file)
    assert (tail.new_rows(), tail.vehicles) == ([], [{"kind": "mqtt", "session": "a"}])
    record.continue_with([{"kind": "by-hand"}])
    assert [row.kind for row in tail.new_rows()] == ["vehicles"]
    assert tail.vehicles == [{"kind": "by-hand"}]


def test_half_a_commit_is_read_once_it_is_whole(record, tmp_path):
    """As if the reader had come while the other process wrote."""
    record.event(telemetry(0))
    log = tmp_path / "run.sqlite-wal"
    before = log.read_bytes()
    record.event(telemetry(1))
    after = log.read_bytes()
    half = tmp_path / "half"
    half.mkdir()
    copy = half / "run.sqlite"
    shutil.copy(record.file, copy)
    shutil.copy(tmp_path / "run.count", half)
    (half / "run.sqlite-wal").write_bytes(before)
    tail = Tail(copy)
    assert len(tail.new_rows()) == 1
    for end in (len(before) + 24, len(before) + 4096, len(after) - 1):
        (half / "run.sqlite-wal").write_bytes(after[:end])
        assert tail.new_rows() == []
    (half / "run.sqlite-wal").write_bytes(after)
    assert [row.message.time_s for row in tail.new_rows()] == [1.0]


def test_another_run_in_its_place_is_noticed(record, tmp_path):
    record.events([telemetry(0), telemetry(1)])
    tail = Tail(record.file)
    tail.new_rows()
    record.close()
    with Record.create(tmp_path / "other.sqlite", "run", {}) as other:
        other.events([telemetry(k) for k in range(5)])
    for name in ("run.sqlite-wal", "run.sqlite-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    (tmp_path / "other.sqlite").replace(record.file)
    with pytest.raises(ReplacedError, match="another run"):
        tail.new_rows()


def test_a_changed_row_is_damage(record):
    record.event(telemetry(0))
    tail = Tail(record.file)
    tail.new_rows()
    record.close()
    with sqlite3.connect(record.file) as connection:
        connection.execute(
            "INSERT INTO log (time_utc, kind, body, digest) VALUES ('now', 'note', '{\"text\": \"!\"}', 'x')"
        )
    with pytest.raises(RecordError, match="row 2 of its log was changed"):
        tail.new_rows()

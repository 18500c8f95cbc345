"""Records: append-only, ordered, durable, and careful with foreign files."""

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from fieldbo.errors import RecordError
from fieldbo.messages import (
    Correction,
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
from fieldbo.record import record as record_module
from fieldbo.record import store as file_module
from fieldbo.record.record import Record
from fieldbo.record.snapshot import snapshot
from fieldbo.record.store import Counter, readings_in


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


def test_rows_are_read_in_the_order_of_writing(file):
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


def test_an_order_is_stored_with_the_memory_and_reasons_of_the_policy(tmp_path):
    memory, why = {"epoch": 2, "H": "AAE="}, {"score": 0.25, "site": 3}
    with Record.create(tmp_path / "run.sqlite", "run", {}) as record:
        record.order(Query([1.0], id="run/0"), memory, why)
        row = record.rows()[0]
    assert (row.body["memory"], row.body["why"]) == (memory, why)


def test_a_reopened_record_continues_where_it_ended(file):
    with Record(file) as record:
        before = record.rows()
        record.event(Telemetry(0, [0.0, 0.0], None, 61.0))
        assert record.rows()[:-1] == before
        assert record.rows()[-1].seq > before[-1].seq


def test_an_unfinished_run_has_no_end_reason(tmp_path):
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


def test_a_record_is_never_overwritten(file):
    before = file.read_bytes()
    with pytest.raises(RecordError, match="never overwritten"):
        Record.create(file, "run", {})
    assert file.read_bytes() == before


def test_a_missing_record_or_an_unwritable_folder_is_an_error(tmp_path):
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
        connection.executescript(file_module.SCHEMA)
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
def test_a_foreign_or_damaged_file_is_rejected_and_unchanged(file, tmp_path, content):
    path = tmp_path / "found" / "run.sqlite"
    path.parent.mkdir()
    path.write_bytes(content(file))
    before = path.read_bytes()
    with pytest.raises(RecordError, match=r"is not the record|is damaged|has record format"):
        Record(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_reader_sees_the_record_as_it_was_when_opened_and_does_not_block_the_writer(tmp_path):
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
from fieldbo.messages import Query
from fieldbo.record.store import readings_in
from fieldbo.record.record import Record
record = Record.create(Path(sys.argv[1]), "run", {"seed": 7})
for n in range(20):
    record.order(Query([float(n)], id=f"run/{n}"))
os._exit(9)  # no close, no clean-up
"""


def test_rows_survive_a_process_that_does_not_close_its_record(tmp_path):
    path = tmp_path / "run.sqlite"
    ended = subprocess.run([sys.executable, "-c", WRITER, str(path)], check=False)
    assert ended.returncode == 9
    with Record(path) as record:
        assert [row.order for row in record.rows()] == [f"run/{n}" for n in range(20)]
        record.order(Query([20.0], id="run/20"))
        assert len(record.rows()) == 21


def test_values_outside_json_are_rejected_before_anything_is_written(tmp_path):
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


# -- damage that SQLite does not see, or heals by leaving rows out ------------------------------------------


@pytest.fixture
def died(tmp_path):
    """A record whose writer died: its last rows are in the write-ahead log."""
    path = tmp_path / "died" / "run.sqlite"
    path.parent.mkdir()
    subprocess.run([sys.executable, "-c", WRITER, str(path)], check=False)
    assert path.with_name("run.sqlite-wal").stat().st_size > 20 * 4096
    return path


def files(folder):
    return {f.name: f.read_bytes() for f in sorted(folder.iterdir())}


def test_reading_does_not_change_the_record_its_log_or_its_index(died):
    before = files(died.parent)
    with Record(died) as record:
        assert len(record.rows()) == 20
    assert files(died.parent) == before


@pytest.mark.parametrize("at", [2, 10, 20, 32 + 5 * 4120 + 8, 32 + 5 * 4120 + 300, -9000])
def test_a_log_damaged_before_its_end_is_rejected_and_unchanged(died, at):
    log = died.with_name("run.sqlite-wal")
    content = bytearray(log.read_bytes())
    content[at] ^= 0xFF
    log.write_bytes(content)
    before = files(died.parent)
    with pytest.raises(RecordError, match="commits follow"):
        Record(died)
    assert files(died.parent) == before


@pytest.mark.parametrize("torn", [1, 100, 4000, 4119])
def test_an_incomplete_last_write_loses_no_earlier_row(died, torn):
    log = died.with_name("run.sqlite-wal")
    log.write_bytes(log.read_bytes()[:-torn])
    digest = Record(died)._digest
    counter = Counter(died)
    counter.write(19, digest)  # a row is counted once it is on disk
    counter.close()
    with Record(died) as record:
        rows = record.rows()
        assert [row.order for row in rows] == [f"run/{n}" for n in range(19)]
        record.order(Query([19.0], id="run/19"))
        assert record.rows()[:19] == rows
        assert len(record.rows()) == 20


def shortened(log):
    log.write_bytes(log.read_bytes()[: 32 + 12 * 4120])


def emptied(log):
    log.write_bytes(b"")


def deleted(log):
    log.unlink()


@pytest.mark.parametrize("spoil", [shortened, emptied, deleted])
def test_a_shortened_log_is_noticed_can_be_read_and_is_continued_only_if_the_loss_is_accepted(died, spoil):
    before = Record(died).rows()
    spoil(died.with_name("run.sqlite-wal"))
    died.with_suffix(".lock").unlink(missing_ok=True)
    contents = files(died.parent)
    with Record(died) as record:
        rows = record.rows()
        assert len(rows) < 20
        assert rows == before[: len(rows)]
        assert f"the last {20 - len(rows)} row" in record.loss
        with pytest.raises(RecordError, match="--accept-loss"):
            record.claim()
        with pytest.raises(RecordError, match="--accept-loss"):
            record.order(Query([20.0], id="run/20"))
    assert files(died.parent) == contents

    with Record(died) as record:
        record.claim(accept_loss=True)
        record.order(Query([20.0], id="run/20"))
    with Record(died) as record:
        assert record.loss == ""
        assert [row.kind for row in record.rows()[len(rows) :]] == ["session", "query"]
        record.claim()


def vehicle_record(folder):
    """A record of a run with a vehicle, whose writer died."""
    folder.mkdir()
    description = {"vehicles": [{"link": {"kind": "mqtt"}, "session": "abc"}]}
    record = Record.create(folder / "run.sqlite", "run", description)
    for n in range(5):
        record.order(Query([float(n)], id=f"run/{n}"))
    return record


def copied(folder, into, *names):
    """Copy files of a folder while it is written; all of them if none are named."""
    into.mkdir()
    for file in folder.iterdir():
        if not names or file.name in names:
            (into / file.name).write_bytes(file.read_bytes())
    return into / "run.sqlite"


def test_a_copy_and_its_original_continue_under_different_sessions(tmp_path):
    original = vehicle_record(tmp_path / "run")
    names = ("run.sqlite", "run.sqlite-wal", "run.count")
    with Record(copied(tmp_path / "run", tmp_path / "copy", *names)) as copy:
        assert copy.copied
        assert copy.loss == ""
        assert len(copy.rows()) == 5
        copy.claim()
        [of_copy] = copy.vehicles
        assert copy.rows()[-1].kind == "session"
    with Record(tmp_path / "copy" / "run.sqlite") as copy:  # a copy that was resumed has its own place
        assert not copy.copied
        copy.claim()
        assert copy.vehicles == [of_copy]
    with Record(copied(tmp_path / "copy", tmp_path / "second")) as second:
        second.claim()
        [of_second] = second.vehicles
    [vehicle] = original.vehicles
    assert vehicle["session"] == "abc"
    assert len({"abc", of_copy["session"], of_second["session"]}) == 3
    original.close()
    with Record(tmp_path / "run" / "run.sqlite") as again:
        assert not again.copied
        again.claim()
        assert again.vehicles[0]["session"] == "abc"


def test_a_copy_of_a_run_with_a_new_vehicle_continues_under_its_session(tmp_path):
    original = vehicle_record(tmp_path / "run")
    original.continue_with(
        [{"link": {"kind": "mqtt"}, "frame": {}, "session": "abc.def"}, {"kind": "by-hand"}]
    )
    assert [vehicle.get("session") for vehicle in original.vehicles] == ["abc.def", None]
    original.close()
    with Record(copied(tmp_path / "run", tmp_path / "copy")) as copy:
        copy.claim()
        assert copy.vehicles[0]["session"].startswith("abc.def.")
        assert copy.vehicles[1] == {"kind": "by-hand"}


def test_a_copy_without_its_log_says_what_it_lacks(tmp_path):
    original = vehicle_record(tmp_path / "run")
    with Record(copied(tmp_path / "run", tmp_path / "copy", "run.sqlite", "run.count")) as copy:
        assert "the last 5 rows" in copy.loss
        with pytest.raises(RecordError, match="not copied"):
            copy.claim()
    with Record(copied(tmp_path / "run", tmp_path / "bare", "run.sqlite")) as copy:
        assert copy.copied
        assert "run.count" in copy.loss
        with pytest.raises(RecordError, match="--accept-loss"):
            copy.claim()
        copy.claim(accept_loss=True)
        assert copy.vehicles[0]["session"] != "abc"
    original.close()


def test_a_moved_run_folder_is_no_copy(tmp_path):
    vehicle_record(tmp_path / "run").close()
    (tmp_path / "run").rename(tmp_path / "moved")
    with Record(tmp_path / "moved" / "run.sqlite") as record:
        assert not record.copied


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[1]", b'{"rows": 99, "digest": "", "place": "", "check": ""}']
)
def test_without_a_valid_counter_rows_may_be_missing(tmp_path, content):
    vehicle_record(tmp_path / "run").close()
    (tmp_path / "run" / "run.count").write_bytes(content)
    with Record(tmp_path / "run" / "run.sqlite") as record:
        assert len(record.rows()) == 5
        assert record.copied
        with pytest.raises(RecordError, match="rows may be missing at the end"):
            record.claim()
        record.claim(accept_loss=True)
        assert record.vehicles[0]["session"] != "abc"


def test_an_empty_counter_does_not_hide_that_the_log_is_gone(died):
    deleted(died.with_name("run.sqlite-wal"))
    died.with_suffix(".count").write_bytes(b"")
    with Record(died) as record:
        assert record.empty
        with pytest.raises(RecordError, match="rows may be missing at the end"):
            record.order(Query([20.0], id="run/20"))


def test_an_old_record_without_a_counter_continues_under_its_session(tmp_path):
    vehicle_record(tmp_path / "run").close()
    file = tmp_path / "run" / "run.sqlite"
    with closing(sqlite3.connect(file)) as old:
        old.execute("PRAGMA user_version = 2")
    file.with_suffix(".count").unlink()
    with Record(file) as record:
        assert not record.copied
        record.claim()
        assert record.vehicles[0]["session"] == "abc"
    assert file.with_suffix(".count").exists()


def test_a_log_of_random_bytes_is_ignored(file):
    rows = Record(file).rows()
    file.with_name("run.sqlite-wal").write_bytes(np.random.default_rng(0).bytes(20000))
    with Record(file) as record:
        assert record.rows() == rows


def test_random_bytes_after_the_last_write_are_ignored(died):
    log = died.with_name("run.sqlite-wal")
    log.write_bytes(log.read_bytes() + np.random.default_rng(0).bytes(10000))
    with Record(died) as record:
        assert len(record.rows()) == 20


@pytest.mark.parametrize("table", ["run", "log"])
def test_a_changed_byte_is_detected(file, table):
    content = bytearray(file.read_bytes())
    at = content.index(b'"seed": 7' if table == "run" else b'"reason": "shallow water"')
    content[at + 3] ^= 1
    file.write_bytes(content)
    with pytest.raises(RecordError, match="was changed"):
        Record(file)
    assert file.read_bytes() == content


def test_a_missing_row_in_the_middle_is_detected(file):
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("DROP TRIGGER log_is_append_only_d")
        connection.execute("DELETE FROM log WHERE seq = 4")
        connection.commit()
    with pytest.raises(RecordError, match="row 4 of its log was changed"):
        Record(file)


# -- writing -------------------------------------------------------------------------------------------------


def test_the_orders_of_a_batch_are_written_in_one_transaction(tmp_path):
    batch = [(Query([float(n)], id=f"run/{n}"), None, None, "policy") for n in range(3)]
    with Record.create(tmp_path / "run.sqlite", "run", {}) as record:
        with pytest.raises(RecordError, match="plain data"):
            record.orders([*batch[:2], (batch[2][0], {1, 2}, None, "policy")])
        assert record.empty
        record.orders(batch)
        assert [row.order for row in record.rows()] == ["run/0", "run/1", "run/2"]


def test_a_record_is_created_completely_or_not_at_all(tmp_path, monkeypatch):
    class Died(BaseException):
        pass

    def die(path):
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr(file_module, "on_disk", die)
        with pytest.raises(Died):
            Record.create(tmp_path / "run.sqlite", "run", {})
    assert not (tmp_path / "run.sqlite").exists()

    with Record.create(tmp_path / "run.sqlite", "run", {}) as record:
        assert record.empty
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run.count", "run.sqlite"]


def test_a_record_has_its_counter_before_it_has_its_name(tmp_path, monkeypatch):
    class Died(BaseException):
        pass

    def die(self, lock):
        raise Died

    monkeypatch.setattr(Record, "_write_from_now_on", die)
    with pytest.raises(Died):
        Record.create(tmp_path / "run.sqlite", "run", {})
    with Record(tmp_path / "run.sqlite") as record:
        assert (record.loss, record.copied, record.empty) == ("", False, True)


def test_only_one_process_may_write_at_a_time(tmp_path):
    path = tmp_path / "run.sqlite"
    with Record.create(path, "run", {}) as first, Record(path) as second:
        first.order(Query([0.0], id="run/0"))
        with pytest.raises(RecordError, match="another process"):
            second.order(Query([1.0], id="run/1"))
        assert second.empty  # as it was when it was opened
    with Record(path) as third:
        third.order(Query([1.0], id="run/1"))
        assert [row.order for row in third.rows()] == ["run/0", "run/1"]


def test_without_the_lock_file_two_writers_do_not_spoil_a_record(tmp_path):
    """Somebody tidied the folder, and started a second planner: the first one stops at its next row."""
    path = tmp_path / "run.sqlite"
    with Record.create(path, "run", {}) as first:
        first.note("first")
        path.with_suffix(".lock").unlink()
        with Record(path) as second:
            second.note("second")
            with pytest.raises(RecordError, match="Another program writes to it"):
                first.note("lost")
            second.note("third")
    with Record(path) as record:
        assert [row.body["text"] for row in record.rows()] == ["first", "second", "third"]
        assert (record.loss, record.copied) == ("", False)


def test_a_new_writer_continues_after_rows_written_by_others(tmp_path):
    path = tmp_path / "run.sqlite"
    with Record.create(path, "run", {}) as first:
        second = Record(path)
        first.order(Query([0.0], id="run/0"))
    with second:
        second.order(Query([1.0], id="run/1"))
        assert [row.order for row in second.rows()] == ["run/0", "run/1"]
    with Record(path) as record:
        assert len(record.rows()) == 2


BUSY = """
import sys
from pathlib import Path
from fieldbo.messages import Query
from fieldbo.record.store import readings_in
from fieldbo.record.record import Record
with Record.create(Path(sys.argv[1]), "run", {}) as record:
    for n in range(1500):
        record.order(Query([float(n)], id=f"run/{n}"), "x" * 9000)
"""


@pytest.mark.slow
def test_a_reader_always_gets_a_consistent_record_from_a_busy_writer(tmp_path):
    path = tmp_path / "run.sqlite"
    writer = subprocess.Popen([sys.executable, "-c", BUSY, str(path)])
    seen = [0]
    try:
        while writer.poll() is None:
            if path.exists():
                with Record(path) as record:
                    seen.append(len(record.rows()))
    finally:
        writer.kill()
    assert writer.returncode == 0
    assert seen == sorted(seen)
    assert len(set(seen)) > 5
    with Record(path) as record:
        assert len(record.rows()) == 1500


# -- links, closed records, and what SQLite can't store ------------------------------------------------------


@pytest.fixture
def link(died, tmp_path):
    """A link to a record whose last rows are in the write-ahead log."""
    found = tmp_path / "linked" / "run.sqlite"
    found.parent.mkdir()
    found.symlink_to(died)
    return found


def test_a_link_to_a_record_is_read_and_written_like_the_record(link, died):
    with Record(link) as record:
        assert len(record.rows()) == 20
        record.order(Query([20.0], id="run/20"))
        assert died.with_suffix(".lock").exists()
        with pytest.raises(RecordError, match="another process"), Record(died) as other:
            other.claim()
    with Record(died) as record:
        assert [row.order for row in record.rows()] == [f"run/{n}" for n in range(21)]
    assert list(link.parent.iterdir()) == [link]


def test_a_record_created_through_a_link_is_at_its_target(tmp_path):
    link, there = tmp_path / "run.sqlite", tmp_path / "there" / "run.sqlite"
    there.parent.mkdir()
    link.symlink_to(there)
    with Record.create(link, "run", {}) as record:
        record.order(Query([0.0], id="run/0"))
    with pytest.raises(RecordError, match="never overwritten"):
        Record.create(link, "run", {})
    assert link.is_symlink()
    assert len(Record(there).rows()) == 1


def test_a_record_is_not_written_if_its_rows_differ_from_those_read(died, monkeypatch):
    """For example, if SQLite uses another log than the one that was read."""
    without_log = died.with_name("alone.sqlite")
    without_log.write_bytes(died.read_bytes())
    before = Record(died).rows()
    with monkeypatch.context() as patch:
        patch.setattr(record_module, "snapshot", lambda file: snapshot(without_log))
        with Record(died) as record:
            assert len(record.rows()) < len(before)
            with pytest.raises(RecordError, match="its last row differs from the one that is known here"):
                record.claim(accept_loss=True)
    assert not died.with_suffix(".lock").exists()
    assert Record(died).rows() == before


def test_a_closed_record_is_not_writable_and_not_locked(file):
    record = Record(file)
    record.claim()
    record.close()
    record.close()
    for write_on in (record.claim, lambda: record.event(Rejected("run/9", "who?"))):
        with pytest.raises(RecordError, match="was closed"):
            write_on()
    assert not file.with_suffix(".lock").exists()
    with Record(file) as another:
        another.claim()


def test_a_file_of_another_program_in_place_of_the_lock_file_is_kept(file):
    other = file.with_suffix(".lock")
    other.write_text("of another program")
    with Record(file) as record:
        record.claim()
    assert other.read_text() == "of another program"


@pytest.mark.parametrize("what", [{"part": 2**70}, {"order": "run/\udcff"}], ids=["number", "text"])
def test_a_value_that_sqlite_can_not_store_is_rejected_and_the_record_stays_usable(file, what):
    with Record(file) as record:
        before = record.rows()
        with pytest.raises(RecordError, match="can't be written"):
            record.event(replace(observation("run/9"), **what))
        assert record.rows() == before
        record.event(observation("run/9"))
    with Record(file) as record:
        assert record.rows()[:-1] == before


def test_a_run_name_that_sqlite_can_not_store_is_rejected(tmp_path):
    with pytest.raises(RecordError, match="can't be written"):
        Record.create(tmp_path / "run.sqlite", "run \udcff", {})
    assert not (tmp_path / "run.sqlite").exists()
    assert not (tmp_path / "run.lock").exists()


def test_the_readings_of_a_record_are_those_that_an_agent_would_know(tmp_path):
    failed = replace(observation("run/1"), values=[np.nan])
    with Record.create(tmp_path / "run.sqlite", "run", {}) as record:
        assert readings_in(record.rows(), record.begun_utc) is None
        for number in range(2):
            record.order(Query([0.0, 0.0], id=f"run/{number}"))
        record.events([observation("run/7"), failed])  # the first is of an order that is not on record
        assert readings_in(record.rows(), record.begun_utc) is None
        record.events([observation("run/0"), replace(observation("run/0"), values=[9.0])])
        record.event(replace(observation("run/0", part=1), sites=[[3.0, 4.0]]))
        record.event(Correction("run/0", 0, [0.75]))
        readings = readings_in(record.rows(), record.begun_utc)
    assert readings.values.tolist() == [0.75, 0.5]
    assert readings.sites.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert readings.noise_sds.tolist() == [0.1, 0.1]
    assert len(set(readings.times_s)) == 1

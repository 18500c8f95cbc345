"""The time that passes while a run stands still, and a clock that was set meanwhile."""

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from remote_vehicles import again, mission, remote

import fieldbo
from fieldbo.errors import InputError
from fieldbo.messages import EndReason
from fieldbo.record.record import Record
from fieldbo.runs.loop import Interrupted
from fieldbo.runs.runner import reopens, resume, run

LIMIT_S = 5000.0


@pytest.fixture
def stopped(tmp_path):
    """Return the mission, file and vehicle of a run with a time limit that was stopped after two steps."""
    made = mission(battery=60.0)
    made = replace(made, vehicles=(replace(made.vehicles[0], time_limit_s=LIMIT_S),))
    vehicle, file = remote(mission=made, speedup=30.0), tmp_path / "run.sqlite"

    def interrupt(step):
        if step.step == 2:
            raise KeyboardInterrupt

    with Record.create(file, "run", {"vehicles": [{}]}) as record, pytest.raises(Interrupted):
        run(made, [vehicle], record, interrupt)
    return made, file, vehicle


@pytest.fixture
def set_clock(monkeypatch):
    """Return what sets the computer's clock forward, or back."""

    def by(seconds):
        class Shown(datetime):
            @classmethod
            def now(cls, tz=UTC):
                return datetime.now(tz) + timedelta(seconds=seconds)

        monkeypatch.setattr("fieldbo.runs.state.datetime", Shown)

    return by


def gone_on(stopped, **stated):
    made, file, vehicle = stopped
    with Record(file) as record:
        result = resume(made, record, [again(vehicle)], **stated)
        times = [row.message.time_s for row in record.rows() if row.kind == "telemetry"]
    return result, max(times)


@pytest.mark.parametrize("days", [18, 2500 / 86_400 + 0.01])
def test_a_clock_set_forward_ends_no_run_and_is_asked_about(stopped, set_clock, days):
    _, file, _ = stopped
    with Record(file) as record:
        before = len(record.rows())
    set_clock(days * 86_400)
    with pytest.raises(InputError) as error:
        gone_on(stopped)
    assert "s have passed since the run was stopped, and 4,9" in str(error.value)
    assert f"--away {days * 86_400:.0f}"[:10] in str(error.value)
    with Record(file) as record:
        assert len(record.rows()) == before
        assert record.end_reason is None


def test_a_clock_set_back_is_asked_about(stopped, set_clock):
    set_clock(-3600)
    with pytest.raises(InputError, match=r"the clock is 3,\d{3} s behind the end of the record"):
        gone_on(stopped)


def test_a_stated_time_away_counts_instead_of_the_clock(stopped, set_clock):
    set_clock(18 * 86_400)
    result, latest_s = gone_on(stopped, away_s=600.0)
    assert result.end_reason is EndReason.BATTERY_SPENT
    assert 600.0 < latest_s < LIMIT_S


def test_time_away_that_is_confirmed_ends_a_run_by_its_time_limit(stopped, set_clock):
    set_clock(18 * 86_400)
    result, _ = gone_on(stopped, away_s=18 * 86_400.0)
    assert result.end_reason is EndReason.TIME_LIMIT
    assert str(result).startswith("Time limit reached")
    made, file, _ = stopped
    with Record(file) as record:
        assert record.end_reason is EndReason.TIME_LIMIT
        assert not reopens(made, record)


def test_an_hour_counts_if_it_leaves_more_than_half_of_what_was_left(stopped, set_clock):
    set_clock(2000)
    _, latest_s = gone_on(stopped)
    assert 2000.0 < latest_s < LIMIT_S


@pytest.mark.parametrize("seconds", [-1.0, math.nan, math.inf])
def test_a_time_away_is_a_number_of_seconds(stopped, seconds):
    with pytest.raises(InputError, match="away_s ="):
        gone_on(stopped, away_s=seconds)


def test_a_simulation_has_no_time_away(tmp_path):
    with (
        Record.create(tmp_path / "run.sqlite", "run", {}) as record,
        pytest.raises(InputError, match="simulated run"),
    ):
        resume(mission(), record, away_s=10.0)


def test_a_run_whose_time_is_over_says_so():
    result = fieldbo.run(fieldbo.load_mission("lake-level-set", {"agent": {"time_limit_s": 400}}))
    assert result.end_reason is EndReason.TIME_LIMIT
    assert result.summary()["limit"] == "time"

"""Whole missions with a robot over a link in this process, which does not always behave."""

from dataclasses import replace

import numpy as np
import pytest
from direct_link import Near, Streaming
from remote_vehicles import QUICK, again, mission, remote

from fieldbo.agent.agent import Agent
from fieldbo.messages import EndReason, GoHome, Lost, Observation, Rejected, Telemetry, order_number
from fieldbo.record.record import Record
from fieldbo.runs.loop import Interrupted
from fieldbo.runs.runner import resume, run
from fieldbo.testing import SteppedClock
from fieldbo.vehicles.base import Simulated
from fieldbo.vehicles.remote.settings import Battery, Reports


def carried_out(tmp_path, made, *faults, **settings):
    with Record.create(tmp_path / "run.sqlite", "run", {"vehicles": [{}]}) as record:
        result = run(made, [remote(*faults, mission=made, **settings)], record)
        return result, [row.message for row in record.rows() if row.kind not in ("stop", "end")]


def sites(result):
    return [o.sites.tolist() for o in result.observations]


@pytest.mark.parametrize("link", [Near, Streaming])
def test_a_robot_visits_the_sites_of_the_simulation(tmp_path, link):
    made = mission()
    result, _ = carried_out(tmp_path, made, link=link, reports=Reports(accuracy=1e-6))
    alone = run(made)
    assert sites(result) == sites(alone)
    assert result.end_reason == alone.end_reason
    assert result.cost == pytest.approx(alone.cost)


@pytest.mark.parametrize("link", [Near, Streaming])
def test_a_mission_on_a_clock_that_steps_is_the_same_each_time(tmp_path, link):
    def rows(name):
        made = mission(battery=60.0, patience_s=5.0)
        vehicle = remote("refuse:1", "silent:2:1.0", "late:3:0.2", "twice:4", mission=made, link=link)
        with Record.create(tmp_path / name, "run", {"vehicles": [{}]}) as record:
            run(made, [vehicle], record)
            return [(row.kind, row.order, row.body) for row in record.rows()]

    assert rows("first.sqlite") == rows("second.sqlite")


def coming_home():
    """Return a mission that ends early with much left in the battery, and the number of its trip home."""
    made = replace(mission(battery=60.0, patience_s=5.0), max_steps=3)
    orders = [order for order, _, _ in run(made).accounts[0].lines]
    return made, next(order_number(order.id) for order in orders if isinstance(order, GoHome))


@pytest.mark.parametrize("link", [Near, Streaming])
def test_a_robot_that_is_out_of_touch_on_its_way_home_is_sent_there_again(tmp_path, link):
    made, home = coming_home()
    result, events = carried_out(tmp_path, made, f"silent:{home}:2", link=link)
    lost = [event.order for event in events if isinstance(event, Lost)]
    trips = [order.id for order, _, _ in result.accounts[0].lines if isinstance(order, GoHome)]

    assert lost == [f"run/{home}"]
    assert trips == [f"run/{home}", f"run/{home + 1}"]
    assert np.allclose(result.path[-1], made.vehicles[0].home)
    assert result.end_reason is EndReason.STEP_LIMIT


def test_a_run_whose_robot_did_not_come_home_is_resumed_and_brings_it_home(tmp_path):
    made, home = coming_home()
    first = remote(f"refuse:{home}", f"refuse:{home + 1}", mission=made)
    with Record.create(tmp_path / "run.sqlite", "run", {"vehicles": [{}]}) as record:
        ended = run(made, [first], record)
        assert not np.allclose(ended.path[-1], made.vehicles[0].home)
        result = resume(made, record, [again(first)])
        assert np.allclose(result.path[-1], made.vehicles[0].home)
        assert result.end_reason is ended.end_reason is EndReason.STEP_LIMIT
        assert resume(made, record, [again(first)]).cost == result.cost
        assert [row.kind for row in record.rows()].count("end") == 2


def test_a_battery_that_drains_faster_than_declared_still_brings_it_home(tmp_path):
    made = mission(battery=60.0)
    exact = Battery(accuracy=0.01)
    result, events = carried_out(tmp_path, made, "drain:3:1.5", battery=exact)
    last = [e for e in events if isinstance(e, Observation)][-1]
    assert np.array_equal(last.position, made.vehicles[0].home)
    assert result.cost <= 60.0
    assert result.end_reason is EndReason.BATTERY_SPENT
    assert len(result.observations) < len(run(made).observations)


def test_rejected_stuck_and_failed_orders_do_not_end_a_mission(tmp_path):
    made = mission(battery=60.0)
    result, events = carried_out(
        tmp_path, made, "refuse:1", "stuck:3", "nan:5", "twice:6", watch=replace(QUICK, patience=0.01)
    )
    assert result.end_reason is EndReason.BATTERY_SPENT
    assert sum(isinstance(e, Rejected) for e in events) == 1
    assert sum(isinstance(e, Observation) and not e.complete for e in events) == 1
    told = [(e.order, e.part) for e in events if isinstance(e, Observation)]
    assert len(told) == len(set(told))


def test_a_robot_that_falls_silent_for_good_ends_the_mission_as_lost(tmp_path):
    result, events = carried_out(tmp_path, mission(patience_s=0.5), "silent:2:60")
    assert result.end_reason is EndReason.VEHICLE_LOST
    assert sum(isinstance(e, Lost) for e in events) == 4  # three queries, and the way home


def test_a_mission_that_waits_continues_when_the_link_is_back(tmp_path):
    made = mission(battery=60.0, orders=2, then="wait", patience_s=20.0)
    result, events = carried_out(tmp_path, made, "silent:2:2.0")
    assert result.end_reason is EndReason.BATTERY_SPENT
    lost = [e.order for e in events if isinstance(e, Lost)]
    assert len(lost) == 1  # the second order waits for a sign of life
    told = [e.order for e in events if isinstance(e, Observation)]
    assert len(told) == len(set(told))


def test_a_mission_that_waited_in_vain_ends_as_lost(tmp_path):
    made = mission(orders=1, then="wait", patience_s=0.5)
    clock = SteppedClock()
    result, _ = carried_out(tmp_path, made, "silent:2:60", clock=clock)
    assert result.end_reason is EndReason.VEHICLE_LOST
    assert clock.now_s() < 10.0


def test_an_interrupted_run_resumes_with_the_same_robot(tmp_path):
    made = mission(battery=60.0)
    vehicle = remote(mission=made, speedup=30.0)

    def interrupt(step):
        if step.step == 4:
            raise KeyboardInterrupt

    record = Record.create(tmp_path / "run.sqlite", "run", {"vehicles": [{}]})
    with record, pytest.raises(Interrupted):
        run(made, [vehicle], record, interrupt)
    with Record(tmp_path / "run.sqlite") as record:
        result = resume(made, record, [again(vehicle)])
    assert sites(result) == sites(run(made))


class Rejecting(Simulated):
    """Reports on resuming that the outstanding order was rejected, or lost, meanwhile."""

    event = Rejected

    def outcome(self, order):
        return super().outcome(order) or [self.event(order, "while nobody listened")]


@pytest.mark.parametrize("event", [Rejected, Lost])
def test_resuming_learns_what_was_rejected_or_lost_meanwhile(event, tmp_path):
    made = mission(patience_s=0.5)
    with Record.create(tmp_path / "run.sqlite", "run", {"vehicles": [{}]}) as record:
        agent = Agent(made, "run")
        first = agent.ask()
        record.order(first, agent.memory, agent.why)
        done = first.observed(0.4, noise_variance=0.01)
        record.event(done)
        agent.tell(done)
        record.event(Telemetry(0, first.site, None, 50.0))
        agent.tell(Telemetry(0, first.site, None, 50.0))
        order = agent.ask()
        record.order(order, agent.memory, agent.why)
    boat = Rejecting(made)
    boat.event = event
    with Record(tmp_path / "run.sqlite") as record:
        result = resume(made, record, [boat])
        told = [row.message for row in record.rows() if row.order == order.id and row.kind != "query"]
    assert told == [event(order.id, "while nobody listened")]
    assert result.end_reason is EndReason.BATTERY_SPENT


def test_an_unexpected_error_makes_the_robots_hold(tmp_path):
    held = []

    class Odd(Simulated):
        def events(self, timeout_s):
            raise ZeroDivisionError

        def hold(self):
            held.append(True)

    made = mission()
    with Record.create(tmp_path / "run.sqlite", "run", {}) as record, pytest.raises(ZeroDivisionError):
        run(made, [Odd(made)], record)
    assert held == [True]


def test_all_robots_are_asked_to_hold_before_the_first_is_waited_for(tmp_path):
    told = []

    class Odd(Simulated):
        def events(self, timeout_s):
            raise ZeroDivisionError

        def ask_to_hold(self):
            told.append("asked")

        def hold(self):
            told.append("held")

    made = mission()
    two = replace(made, vehicles=made.vehicles * 2)
    with Record.create(tmp_path / "run.sqlite", "run", {}) as record, pytest.raises(ZeroDivisionError):
        run(two, [Odd(two, 0), Odd(two, 1)], record)
    assert told == ["asked", "asked", "held", "held"]


def test_every_recorded_event_is_passed_to_on_event(tmp_path):
    made, events = mission(), []
    with Record.create(tmp_path / "run.sqlite", "run", {"vehicles": [{}]}) as record:
        run(made, [remote("refuse:1", mission=made)], record, on_event=events.append)
        written = [
            row for row in record.rows() if row.kind in ("observation", "rejected", "lost", "telemetry")
        ]
    assert len(events) == len(written)
    assert sum(isinstance(e, Rejected) for e in events) == 1


def test_reading_a_finished_run_needs_no_robot(tmp_path):
    made = mission()
    result, _ = carried_out(tmp_path, made)
    with Record(tmp_path / "run.sqlite") as record:
        assert resume(made, record).cost == result.cost


def test_an_outlying_reading_is_noted(tmp_path):
    result, _ = carried_out(tmp_path, mission(), "absurd:3")
    assert any("the reading of run/3 is 1e+30" in note for note in result.summary()["notes"])
    assert not any("the reading of" in note for note in run(mission()).summary()["notes"])

"""What a bad link may not cost: unknown positions, old and impossible reports, and time without a planner."""

import csv
import io
import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from bad_link import GAUGES, BadLink, check
from remote_vehicles import QUICK, SETTINGS, again, mission, part, remote, until_settled_whole

from fieldbo.agent.agent import Agent
from fieldbo.agent.homewards import finish
from fieldbo.messages import (
    EndReason,
    GoHome,
    Lost,
    Observation,
    Query,
    Rejected,
    Telemetry,
    from_plain,
    to_plain,
)
from fieldbo.mission.vehicle_spec import WhenLost
from fieldbo.record.record import Record
from fieldbo.record.store import Row
from fieldbo.results.outcome import Account
from fieldbo.results.result import Result
from fieldbo.results.tables import ledger_table
from fieldbo.runs.loop import Interrupted
from fieldbo.runs.runner import resume, run
from fieldbo.testing import SteppedClock, small_mission
from fieldbo.vehicles.base import Simulated
from fieldbo.vehicles.mqtt.protocol import Codec
from fieldbo.vehicles.remote.link import (
    BatteryReport,
    GoalResult,
    Heartbeat,
    Link,
    PositionReport,
    Reconnected,
)
from fieldbo.vehicles.remote.remote import Remote
from fieldbo.vehicles.remote.settings import Battery, Watch


@pytest.mark.parametrize(
    ("missions", "lost"), [(5, 5), pytest.param(300, 500, marks=pytest.mark.sweep)], ids=["few", "many"]
)
def test_random_missions_over_a_bad_link_never_overdraw_the_robots_battery(missions, lost):
    """Thousands of them: ``python tests/faults/bad_link.py --missions 2000 --seed 1``."""
    counts, worst, seed = check(range(1, missions + 1))
    assert counts["lost"] > lost
    assert counts["overdrawn"] == 0, f"worst by {worst:.0%} of the battery: seed {seed}"


@pytest.mark.parametrize("gauge", GAUGES)
def test_the_declared_account_is_never_overdrawn_and_its_table_adds_up_whatever_the_gauge_shows(gauge):
    """Thousands of missions: ``python tests/faults/bad_link.py --missions 2000``."""
    for seed in range(40, 46):
        done = BadLink(seed, gauge).run()
        account = Account.of(done.state.agent, 0)
        rows = list(csv.DictReader(io.StringIO(ledger_table([account]).decode())))
        spent = math.fsum(float(row["spent"]) for row in rows if row["spent"])
        assert spent == pytest.approx(done.spec.battery - account.left)
        assert done.overdrawn_by_account == 0.0


# -- where the vehicle may be ----------------------------------------------------------------------------


def agent_at(battery=60.0, margin=0.0, home=True):
    made = small_mission(battery=battery, home=home, initial=0)
    return Agent(replace(made, vehicles=(replace(made.vehicles[0], margin=margin),)))


def issued(agent, *site):
    order = agent.issue(Query(np.array(site, dtype=float)))
    assert order is not None
    return order


def heard(agent, position, time_s, remaining=None, **ages):
    agent.tell(Telemetry(0, np.array(position, dtype=float), remaining, time_s, 0.0, **ages))


def test_an_order_after_a_lost_one_is_priced_from_the_worst_of_both_places():
    agent = agent_at()
    state = agent.vehicles[0]
    lost = issued(agent, 5.0, 0.0)
    agent.tell(Lost(lost.id, "silence"))

    near = issued(agent, 1.0, 0.0)  # 1 from the start, 4 from the lost site; a sample costs 1
    assert near.expected_cost == 2.0
    assert state.ledger.entries[near.id].declared == 5.0

    agent.tell(near.observed(0.5, noise_variance=0.01, time_s=9.0))
    assert state.ledger.entries[issued(agent, 0.0, 0.0).id].declared == 2.0


def test_the_trip_home_is_set_aside_from_a_lost_site():
    agent = agent_at(battery=11.0)
    state = agent.vehicles[0]
    lost = issued(agent, 5.0, 0.0)
    agent.tell(Lost(lost.id, "silence"))

    assert agent.issue(Query(np.zeros(2))) is None  # from the lost site it takes 6, and 6 are held
    assert state.affordable_home
    state.ledger.charge(lost.id, 6.5, settles=False)
    assert not state.affordable_home


@pytest.mark.parametrize("located", [True, False])
def test_only_telemetry_with_a_position_tells_where_a_lost_vehicle_is(located):
    agent = agent_at()
    agent.tell(issued(agent, 1.0, 0.0).observed(0.5, noise_variance=0.01, time_s=4.0))
    lost = issued(agent, 5.0, 0.0)
    agent.tell(Lost(lost.id, "silence"))

    heard(agent, [3.0, 0.0] if located else [1.0, 0.0], 20.0, located_s=19.0 if located else 1.0)

    places = sorted(place[0] for place in agent.vehicles[0].places)
    assert places == ([3.0, 5.0] if located else [1.0, 5.0])  # it may still be under way


def test_a_lost_vehicle_is_known_to_be_where_its_next_answer_says():
    agent = agent_at()
    lost = issued(agent, 5.0, 0.0)
    agent.tell(Lost(lost.id, "silence"))
    agent.tell(replace(lost.observed(0.5, noise_variance=0.01, time_s=9.0), position=[4.0, 0.0]))
    assert [place.tolist() for place in agent.vehicles[0].places] == [[4.0, 0.0]]


# -- what the battery reports may change -----------------------------------------------------------------


def test_a_report_older_than_the_latest_settled_order_gives_nothing_back():
    agent = agent_at()
    state = agent.vehicles[0]
    seen = issued(agent, 5.0, 0.0).observed(0.5, noise_variance=0.01, time_s=6.0)
    agent.tell(replace(seen, estimated=True))  # the robot did not report its cost
    assert state.ledger.left == 54.0

    heard(agent, [5.0, 0.0], 6.5, 57.0, measured_s=5.0)
    assert state.ledger.left == 54.0
    heard(agent, [5.0, 0.0], 12.0, 57.0, measured_s=7.0)
    assert state.ledger.left == 54.0  # the gauge may be stuck
    heard(agent, [5.0, 0.0], 12.5, 57.0, measured_s=8.0, at_least=0.75)
    assert state.ledger.left == 55.5  # the order took at least 4.5 of the declared 6
    heard(agent, [5.0, 0.0], 13.0, 57.0, measured_s=8.5, at_least=0.4)
    assert state.ledger.left == 57.0
    heard(agent, [5.0, 0.0], 14.0, 60.0, measured_s=9.5, at_least=0.4)
    assert state.ledger.left == pytest.approx(57.6)


def test_a_reported_cost_stays_charged_whatever_the_battery_says():
    agent = agent_at()
    agent.tell(issued(agent, 5.0, 0.0).observed(0.5, noise_variance=0.01, time_s=6.0))
    heard(agent, [5.0, 0.0], 12.0, 60.0)
    assert agent.vehicles[0].ledger.left == 54.0


def test_an_older_report_still_shows_that_more_was_used():
    agent = agent_at()
    agent.tell(issued(agent, 5.0, 0.0).observed(0.5, noise_variance=0.01, time_s=6.0))
    heard(agent, [5.0, 0.0], 12.0, 50.0, measured_s=5.0)
    assert agent.vehicles[0].ledger.left == 50.0


@pytest.mark.parametrize(("at_least", "left"), [(1.0, 53.0), (0.5, 55.0), (0.1, 56.5)])
def test_a_lost_order_is_settled_once_a_later_one_is_done_and_the_battery_measured_after_it(at_least, left):
    agent = agent_at()
    ledger = agent.vehicles[0].ledger
    lost = issued(agent, 5.0, 0.0)
    agent.tell(Lost(lost.id, "silence"))
    heard(agent, [2.0, 0.0], 9.0, 58.0)
    assert (ledger.left, ledger.held) == (58.0, 4.0)  # it may go on

    agent.tell(issued(agent, 2.0, 0.0).observed(0.5, noise_variance=0.01, time_s=20.0, cost=1.0))
    heard(agent, [2.0, 0.0], 21.0, 57.0, measured_s=16.0)
    assert ledger.held == 4.0
    under_way = issued(agent, 3.0, 0.0)
    heard(agent, [2.5, 0.0], 31.0, 56.5, measured_s=26.0, at_least=at_least)
    assert list(ledger.reserved) == [under_way.id]
    assert ledger.left == left  # of the 4 that were held, it may have taken all


def test_a_lost_order_after_which_the_vehicle_is_where_it_was_takes_what_the_battery_says():
    agent = agent_at()
    ledger = agent.vehicles[0].ledger
    lost = issued(agent, 5.0, 0.0)
    agent.tell(Lost(lost.id, "silence"))
    heard(agent, [0.0, 0.0], 9.0, 60.0)
    agent.tell(issued(agent, 2.0, 0.0).observed(0.5, noise_variance=0.01, time_s=20.0, cost=3.0))
    heard(agent, [2.0, 0.0], 21.0, 56.8)
    assert (ledger.held, ledger.left) == (0.0, 56.8)


def test_where_a_lost_order_moved_the_vehicle_its_declared_cost_is_charged_though_the_gauge_shows_none():
    agent = agent_at()
    ledger = agent.vehicles[0].ledger
    agent.tell(Lost(issued(agent, 5.0, 0.0).id, "silence"))
    for x, left in ((2.0, 58.0), (3.0, 57.0), (2.5, 57.0), (4.0, 56.0)):
        heard(agent, [x, 0.0], 9.0 + x + agent.vehicles[0].time_s, 60.0)
        assert ledger.left == left
    assert ledger.held == 2.5  # as it was when it had gone back


def test_a_report_that_came_while_a_later_order_was_outstanding_counts_once_that_is_refused():
    agent = agent_at()
    state = agent.vehicles[0]
    agent.tell(issued(agent, 1.0, 0.0).observed(0.5, noise_variance=0.01, time_s=4.0))
    order = issued(agent, 5.0, 0.0)
    heard(agent, [1.5, 0.0], 8.0, 50.0)
    assert (state.ledger.left, state.time_s) == (58.0, 4.0)  # the order may have taken it
    agent.tell(Rejected(order.id, "too deep"))
    assert (state.ledger.left, state.time_s, *state.position) == (50.0, 8.0, 1.5, 0.0)


def test_an_estimated_cost_keeps_its_margin_until_the_battery_is_measured():
    agent = agent_at(margin=0.5, home=False)
    seen = issued(agent, 5.0, 0.0).observed(0.5, noise_variance=0.01, time_s=6.0)
    agent.tell(replace(seen, estimated=True))
    assert agent.vehicles[0].free == 51.0
    heard(agent, [5.0, 0.0], 12.0, 54.0)
    assert agent.vehicles[0].free == 54.0


# -- reports that are not believed -----------------------------------------------------------------------


@pytest.mark.parametrize("cost", [-1.0, 31.0, 1e30, float("inf")])
def test_an_impossible_cost_is_reported_and_counted_as_the_larger_of_declared_and_drained(cost):
    with remote("stuck:0") as vehicle:
        hear = vehicle.link.wires[0].hear
        hear(BatteryReport(amount=30.0))
        vehicle.events(0.1)
        vehicle.send(Query([2.0, 1.0], expected_cost=3.0, id="run/0"))
        hear(BatteryReport(amount=20.0))
        part(vehicle, 0, [2.0, 1.0], last=True, cost=cost)
        (seen,) = [e for e in until_settled_whole(vehicle) if isinstance(e, Observation)]
    assert seen.cost == pytest.approx(10.0)
    assert seen.estimated
    (doubt,) = seen.doubts
    assert ("not a number" if math.isinf(cost) else "impossible") in doubt
    assert "; 10 s was charged instead" in doubt


def test_a_cost_that_the_robot_does_not_know_is_declared_and_no_reason_for_doubt():
    with remote("stuck:0") as vehicle:
        vehicle.send(Query([2.0, 1.0], expected_cost=3.0, id="run/0"))
        part(vehicle, 0, [2.0, 1.0], last=True)
        (seen,) = [e for e in until_settled_whole(vehicle) if isinstance(e, Observation)]
    assert (seen.estimated, seen.doubts) == (True, ())
    assert seen.cost == pytest.approx(np.hypot(2.0, 1.0) + 1.0)


@pytest.mark.parametrize("impossible", [{"share": 57.0}, {"amount": 5000.0}, {"amount": -3.0}])
def test_a_gauge_that_was_impossible_is_named_once_and_not_believed_again(impossible):
    filter_ = remote()._filter
    for report in (impossible, impossible, {"share": 0.5}, {"amount": 10.0}):
        filter_.take_battery(BatteryReport(**report))
    told = filter_.telemetry()
    (doubt,) = told.doubts
    assert "is impossible for a battery of" in doubt
    assert "no level is believed any more" in doubt
    assert told.remaining is None
    assert filter_.telemetry().doubts == ()


@pytest.mark.parametrize("unknown", [{"share": -1.0}, {"amount": -1.0}, {"amount": -1.0, "share": -1.0}, {}])
def test_a_level_that_is_unknown_says_nothing_of_the_gauge(unknown):
    filter_ = remote()._filter
    for report in (unknown, {"amount": 10.0}):
        filter_.take_battery(BatteryReport(**report))
    assert filter_.telemetry().remaining == 10.0


def test_a_full_battery_may_hold_a_little_more_than_full():
    filter_ = remote()._filter
    filter_.take_battery(BatteryReport(amount=1.04 * filter_.spec.battery))
    told = filter_.telemetry()
    assert (told.remaining, told.doubts) == (filter_.spec.battery, ())


def test_a_battery_level_that_rises_is_reported_and_gives_nothing_back():
    filter_ = remote()._filter
    told = []
    for amount in (20.0, 28.0, 19.0, 28.0, 28.0, 25.0):
        filter_.take_battery(BatteryReport(amount=amount))
        told.append(filter_.telemetry())
    assert [t.remaining for t in told] == [20.0, 20.0, 19.0, 19.0, 19.0, 16.0]
    assert [len(t.doubts) for t in told] == [0, 1, 0, 0, 0, 0]
    assert "rose from 20 to 28 s by itself" in told[1].doubts[0]


def test_doubts_survive_a_record_and_are_noted():
    agent = agent_at()
    told = Telemetry(0, [0.0, 0.0], None, 1.0, doubts=("a battery level of -5 s is impossible",))
    agent.tell(from_plain(to_plain(told)))
    assert told.doubts[0] in Result.of(agent).notes


class Wired(Link):
    """A robot that does what the test says."""

    address = "here"

    def __init__(self):
        self.goals, self.hear = [], None

    def open(self, mission, ground, on_report):
        self.hear = on_report
        on_report(Heartbeat())
        return self

    def go(self, goal):
        self.goals.append(goal)

    def cancel(self, goal): ...
    def hold(self): ...
    def ask(self, goal): ...
    def close(self): ...
    def claim(self, session, mission): ...
    def unsent(self):
        return ""

    claimed = True


class Drive:
    """An agent and a robot that reports no costs, on a clock that the test advances."""

    def __init__(self, battery, full, delay_s=5.0):
        self.clock, self.spent, self.full = SteppedClock(step_s=1.0), 0.0, full
        made = small_mission(battery=battery, home=True, initial=0)
        margin = replace(made.vehicles[0], margin=0.1)
        self.agent = Agent(replace(made, vehicles=(margin,)), "run")
        settings = SETTINGS.model_copy(
            update={"battery": Battery(full=full, delay_s=delay_s), "watch": Watch(silence_s=60.0)}
        )
        self.vehicle = Remote(self.agent.mission, 0, Wired(), settings, "s", self.clock)
        self.vehicle.connect()
        self.base, self.position = 0.0, np.zeros(2)

    @property
    def left(self):
        return self.agent.vehicles[0].ledger.left

    def tell(self):
        for event in self.vehicle.events(0.0):
            self.agent.tell(event)

    def send(self, site):
        order = issued(self.agent, *site)
        self.vehicle.send(order)
        return order

    def use(self, amount, seconds=10.0):
        self.spent += amount
        self.clock.sleep(seconds)

    def battery(self, times=3):
        """Report the battery, whose counter began with `base`; and say what is left."""
        for _ in range(times):
            self.clock.sleep(1.0)
            self.vehicle.link.hear(BatteryReport(amount=self.full - (self.spent - self.base)))
            self.tell()
        self.vehicle.catch_up(0.0)
        self.tell()

    def finish(self, order, **result):
        goal = self.vehicle.link.goals[-1]
        site = order.site
        self.vehicle.link.hear(
            GoalResult(goal.id, site, site[None], np.array([1.0]), np.array([math.nan]), **result)
        )
        self.tell()


@pytest.mark.parametrize("when", ["idle", "under way"])
def test_a_battery_counter_that_begins_anew_gives_nothing_back(when):
    drive = Drive(battery=60.0, full=60.0)
    drive.battery()
    for k in range(4):
        order = drive.send([5.0, 0.0] if k % 2 == 0 else [0.0, 0.0])
        drive.use(3.0)
        if k == 1 and when == "under way":
            drive.base = drive.spent
            drive.battery()
        drive.use(3.0)
        if when == "under way":
            drive.battery()
        drive.finish(order)
        if k == 1 and when == "idle":
            drive.base = drive.spent
        drive.use(0.0)
        drive.battery()
        assert drive.left <= 60.0 - drive.spent + 0.6
    assert drive.left >= 60.0 - drive.spent - 1.5
    assert sum("is not credited" in note for note in Result.of(drive.agent).notes) == 1


def test_a_counter_that_begins_anew_while_the_planner_is_dead_gives_nothing_back():
    vehicle = remote()
    vehicle._filter.take_battery(BatteryReport(amount=12.0))
    last = vehicle._filter.telemetry()
    second = again(vehicle)._filter
    second.resume([last])
    for amount in (30.0, 30.0, 28.0):
        second.take_battery(BatteryReport(amount=amount))
    assert second.telemetry().remaining == pytest.approx(10.0)


@pytest.mark.parametrize("resumed", [False, True])
def test_a_larger_pack_that_is_first_heard_of_after_an_order_counts_what_was_charged(resumed):
    drive = Drive(battery=60.0, full=100.0)
    for site in ([5.0, 0.0], [0.0, 0.0]):
        order = drive.send(site)
        drive.use(6.0)
        drive.finish(order)
    if resumed:
        orders = [issue.order for issue in drive.agent.issued.values()]
        settings = drive.vehicle._filter.settings
        drive.vehicle = Remote(drive.agent.mission, 0, Wired(), settings, "s", drive.clock)
        drive.vehicle.connect()
        drive.vehicle.resume(orders, drive.agent.history)
    drive.use(0.0)
    drive.battery()
    assert 60.0 - drive.spent - 2.0 <= drive.left <= 60.0 - drive.spent
    drive.use(4.0)
    drive.battery()
    assert 60.0 - drive.spent - 2.0 <= drive.left <= 60.0 - drive.spent


def test_a_larger_pack_that_is_first_heard_of_after_a_lost_order_counts_that_order():
    drive = Drive(battery=60.0, full=100.0)
    order = drive.send([5.0, 0.0])
    drive.vehicle._settle(Lost(order.id, "silence"))
    drive.tell()
    drive.use(6.0)
    drive.battery()
    assert drive.vehicle._filter.telemetry().remaining <= 54.0


@pytest.mark.parametrize("duration_s", [0.0, 1.0])
def test_a_wrong_duration_does_not_make_an_old_battery_report_new(duration_s):
    drive = Drive(battery=60.0, full=60.0)
    drive.battery()
    order = drive.send([5.0, 0.0])
    drive.use(3.0, seconds=60.0)
    drive.battery(1)
    drive.use(3.0, seconds=70.0)
    drive.finish(order, duration_s=duration_s)
    drive.vehicle._add_telemetry()
    drive.tell()
    assert drive.left == pytest.approx(54.0)
    assert any("a duration of" in note for note in Result.of(drive.agent).notes)


@pytest.mark.parametrize("cost", ["45.0", 1e999, None, True, [45]])
def test_a_cost_that_is_no_number_is_doubted_and_what_the_battery_lost_is_charged(cost):
    drive = Drive(battery=60.0, full=60.0)
    codec = Codec(drive.agent.domain.axes)
    order = drive.send([5.0, 0.0])
    for amount in (60.0, 15.0):
        for report in codec.reports("telemetry", {"battery": amount}):
            drive.vehicle.link.hear(report)
    (result,) = codec.reports("result", {"id": f"{order.id}#s", "cost": cost})
    drive.vehicle.link.hear(result)
    drive.tell()
    (seen,) = [event for event in drive.agent.history if isinstance(event, Observation)]
    assert (seen.cost, seen.estimated) == (45.0, True)
    assert len(seen.doubts) == (cost is not None)


@pytest.mark.parametrize("key", ["battery", "battery_share"])
@pytest.mark.parametrize("level", ["0.5", True, 1e999, [0.5]])
def test_a_battery_level_that_is_no_number_is_doubted(key, level):
    vehicle = remote()
    *_, report = Codec(vehicle.mission.world.domain.axes).reports("telemetry", {key: level})
    vehicle._filter.take_battery(report)
    assert vehicle._filter.telemetry().doubts == ("a battery level that is not a number was ignored",)


# -- while the planner was away --------------------------------------------------------------------------


@pytest.mark.parametrize("pack", [30.0, 600.0])
def test_what_was_used_while_the_planner_was_dead_counts_after_a_resume(pack):
    vehicle = remote(battery=Battery(full=pack))
    first = vehicle._filter
    first.take_battery(BatteryReport(amount=pack - 5.0))  # not quite full at the start
    start = first.telemetry()
    first.take_battery(BatteryReport(amount=pack - 15.0))
    last = first.telemetry()

    second = again(vehicle)._filter
    second.resume([from_plain(to_plain(event)) for event in (start, last)])
    second.take_battery(BatteryReport(amount=pack - 25.0))

    assert start.remaining - last.remaining == pytest.approx(10.0)
    assert last.remaining - second.telemetry().remaining == pytest.approx(10.0)


@pytest.mark.parametrize("limit_s", [None, 9000.0])
def test_a_run_is_resumed_at_the_time_of_the_wall_clock(tmp_path, monkeypatch, limit_s):
    made = mission(battery=60.0)
    made = replace(made, vehicles=(replace(made.vehicles[0], time_limit_s=limit_s),))
    vehicle = remote(mission=made, speedup=30.0)

    def interrupt(step):
        if step.step == 2:
            raise KeyboardInterrupt

    with Record.create(tmp_path / "run.sqlite", "run", {"vehicles": [{}]}) as record:
        with pytest.raises(Interrupted):
            run(made, [vehicle], record, interrupt)
        before = max(row.message.time_s for row in record.rows() if row.kind == "telemetry")

    class Later(datetime):
        @classmethod
        def now(cls, tz=UTC):
            return datetime.now(tz) + timedelta(hours=1)

    monkeypatch.setattr("fieldbo.runs.state.datetime", Later)
    with Record(tmp_path / "run.sqlite") as record:
        resume(made, record, [again(vehicle)])
        times = [row.message.time_s for row in record.rows() if row.kind == "telemetry"]
    assert before < 100.0
    assert max(times) > 3600.0


def test_the_clock_of_a_run_goes_on_while_the_computer_is_suspended():
    vehicle = remote()
    before_s = vehicle._filter.now_s
    vehicle.clock.suspend(500.0)
    assert vehicle._filter.now_s == before_s + 500.0


# -- vehicles that are lost ------------------------------------------------------------------------------


def test_a_gap_in_the_radio_loses_one_order_and_ends_nothing(tmp_path):
    """At the default settings of `when_lost`; a gap of many times the watchdog's time."""
    made = mission(battery=60.0)
    with Record.create(tmp_path / "run.sqlite", "run", {"vehicles": [{}]}) as record:
        result = run(made, [remote("silent:2:3.0", mission=made)], record)
        events = [row.message for row in record.rows() if row.kind in ("lost", "observation")]
    assert made.vehicles[0].when_lost == WhenLost()
    assert 4 * QUICK.silence_s < 3.0
    assert sum(isinstance(e, Lost) for e in events) == 1
    assert result.end_reason is EndReason.BATTERY_SPENT


class Deaf(Simulated):
    """Carries everything out, but from order number 2 on its answers are lost; it remembers them."""

    deaf = True

    def events(self, timeout_s):
        return [
            Lost(e.order, "silence") if self.deaf and int(e.order.rsplit("/", 1)[1]) >= 2 else e
            for e in super().events(timeout_s)
        ]


def test_a_run_that_ended_with_a_lost_vehicle_continues_with_it_and_keeps_its_answers(tmp_path):
    made = mission(battery=60.0)
    with Record.create(tmp_path / "run.sqlite", "run", {"vehicles": [{}]}) as record:
        first = run(made, [Deaf(made)], record)
        assert first.end_reason is record.end_reason is EndReason.VEHICLE_LOST
        lost = [row.order for row in record.rows() if row.kind == "lost"]
        assert set(lost) <= {o.order for o in first.observations}  # asked for at the end

    awake = Deaf(made)
    awake.deaf = False
    with Record(tmp_path / "run.sqlite") as record:
        assert resume(made, record).end_reason is EndReason.VEHICLE_LOST  # without a vehicle, only the result
        result = resume(made, record, [awake])
        kinds = [row.kind for row in record.rows()]
        assert record.end_reason is result.end_reason is EndReason.BATTERY_SPENT
        assert resume(made, record, [Deaf(made)]).cost == result.cost
    assert kinds.count("end") == 2
    assert kinds.count("reopened") == 1
    assert len(result.observations) > len(first.observations)
    assert result.cost <= 60.0


def test_the_answer_of_a_lost_order_is_fetched_on_a_resume(tmp_path):
    made = mission(battery=60.0)
    vehicle = Deaf(made)

    def interrupt(event):
        if isinstance(event, Lost):
            raise KeyboardInterrupt

    record = Record.create(tmp_path / "run.sqlite", "run", {"vehicles": [{}]})
    with record, pytest.raises(Interrupted) as stopped:
        run(made, [vehicle], record, on_event=interrupt)
    assert len(stopped.value.result.observations) == 2
    vehicle.deaf = False
    seen = []
    with Record(tmp_path / "run.sqlite") as record:
        resume(made, record, [vehicle], on_event=seen.append)
    assert seen[0].order == "run/2"
    assert isinstance(seen[0], Observation)


def test_a_rejected_order_is_no_place_from_which_a_robot_may_have_come():
    with remote("stuck:1", "refuse:0") as vehicle:
        vehicle.send(Query([5.0, 4.0], expected_cost=8.0, id="run/0"))
        events = []
        while not any(isinstance(e, Rejected) for e in events):
            events += vehicle.events(0.1)
        vehicle.send(Query([2.0, 0.0], expected_cost=3.0, id="run/1"))
        part(vehicle, 1, [2.0, 0.0], last=True)
        (seen,) = [e for e in until_settled_whole(vehicle) if isinstance(e, Observation)]
    assert seen.cost == pytest.approx(3.0)


def test_the_trip_home_that_was_lost_leaves_the_vehicle_between_two_places():
    agent = agent_at()
    agent.tell(issued(agent, 5.0, 0.0).observed(0.5, noise_variance=0.01, time_s=6.0))
    order = finish(agent, 0, EndReason.VEHICLE_LOST)
    assert isinstance(order, GoHome)
    agent.tell(Lost(order.id, "silence"))
    assert sorted(place[0] for place in agent.vehicles[0].places) == [0.0, 5.0]
    agent.reopen(0)
    assert isinstance(agent.ask(), Query)


def test_only_telemetry_in_old_records_trusts_every_gauge():
    plain = to_plain(Telemetry(0, np.zeros(2), 30.0, 5.0))
    del plain["at_least"]
    assert from_plain(plain).at_least == 1.0
    assert Row(1, "", "telemetry", None, {"message": plain}).message.at_least == 0.0


def test_an_order_whose_start_was_seen_is_priced_from_there():
    drive = Drive(battery=60.0, full=60.0)
    drive.vehicle.link.hear(PositionReport(np.zeros(2)))
    drive.tell()
    lost = drive.send([5.0, 0.0])
    for _ in range(70):
        drive.clock.sleep(1.0)
        drive.tell()
    assert lost.id in drive.agent.vehicles[0].ledger.lost
    for _ in range(4):
        drive.clock.sleep(1.0)
        drive.vehicle.link.hear(PositionReport(np.array([4.0, 0.0])))
    drive.tell()
    order = drive.send([4.0, 1.0])
    drive.tell()
    drive.clock.sleep(2.0)
    drive.finish(order)
    seen = [e for e in drive.agent.history if isinstance(e, Observation)][-1]
    assert (seen.estimated, seen.cost) == (True, 2.0)  # a metre and a sample; 6.1 from the start


def test_a_result_after_a_break_is_placed_where_the_newest_position_is_if_none_is_believed_yet():
    drive = Drive(battery=60.0, full=60.0)
    order = drive.send([5.0, 0.0])
    drive.tell()
    drive.vehicle.link.hear(PositionReport(np.array([1.0, 0.0])))
    drive.vehicle.link.hear(Reconnected())
    drive.vehicle.link.hear(PositionReport(np.array([9.0, 8.0])))
    drive.finish(order)
    assert not any(isinstance(e, Observation) for e in drive.agent.history)
    drive.clock.sleep(31.0)
    drive.vehicle.link.hear(Heartbeat())
    drive.tell()
    (seen,) = [e for e in drive.agent.history if isinstance(e, Observation)]
    assert seen.position.tolist() == [9.0, 8.0]

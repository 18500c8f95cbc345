"""A remote vehicle over a link in this process: watchdog, timeouts, and checks on what the robot reports."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from direct_link import Near, Streaming, Wire
from remote_vehicles import QUICK, again, part, remote, settled, until_settled, until_settled_whole

from fieldbo.costs.travel import Euclidean
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.obstacles import Obstacle
from fieldbo.errors import InputError, VehicleError
from fieldbo.messages import GoHome, Lost, Observation, Query, Rejected, Telemetry
from fieldbo.testing import SteppedClock, VehicleContract, small_cell, small_mission, small_world
from fieldbo.vehicles.remote.link import (
    BatteryReport,
    Goal,
    GoalRejected,
    GoalResult,
    Heartbeat,
    PositionReport,
    Reading,
    Reconnected,
    Taken,
    Unreachable,
)
from fieldbo.vehicles.remote.settings import Arrival, Battery, Reports, Watch
from fieldbo.vehicles.simulators import Robot


class TestReporting(VehicleContract):
    clock = SteppedClock()

    def vehicle(self, mission):
        return remote(mission=mission, clock=self.clock)


class TestStreaming(VehicleContract):
    clock = SteppedClock()

    def vehicle(self, mission):
        return remote(mission=mission, link=Streaming, clock=self.clock)


QUERY = Query([2.0, 1.0], expected_cost=3.0, id="run/0")


def test_an_observation_has_the_site_time_and_cost_of_the_simulation():
    mission = small_mission()
    with remote(mission=mission) as vehicle:
        vehicle.send(QUERY)
        seen = settled(vehicle, "run/0")
    cost, seconds = mission.world.takes(QUERY, mission.vehicles[0].start, 0.0)
    assert seen.cost == pytest.approx(cost, rel=1e-12)
    assert seen.time_s == pytest.approx(seconds, abs=1.0)
    assert np.array_equal(seen.sites, [[2.0, 1.0]])


def test_a_reading_from_before_an_order_is_no_answer_to_it():
    with remote(link=Streaming) as vehicle:
        values = []
        for k in range(3):
            vehicle.send(replace(QUERY, id=f"run/{k}"))
            values += settled(vehicle, f"run/{k}").values.tolist()
            vehicle.clock.sleep(0.2)  # the robot stays at the site and repeats its reading meanwhile
    assert len(set(values)) == 3


def test_telemetry_follows_each_observation():
    with remote() as vehicle:
        vehicle.send(QUERY)
        events = until_settled(vehicle, "run/0")
    k = next(k for k, e in enumerate(events) if isinstance(e, Observation))
    assert isinstance(events[k + 1], Telemetry)
    assert np.array_equal(events[k + 1].position, events[k].position)
    assert events[k + 1].remaining == pytest.approx(30.0 - events[k].cost)
    assert events[k + 1].time_s >= events[k].time_s


def test_a_rejected_goal_rejects_its_order():
    with remote("refuse:0") as vehicle:
        vehicle.send(QUERY)
        assert settled(vehicle, "run/0") == Rejected("run/0", "rejected on demand")


def test_an_order_that_takes_too_long_is_cancelled_and_cut_short():
    with remote("stuck:0", watch=replace(QUICK, patience=0.1)) as vehicle:
        sent_s = vehicle.clock.now_s()
        vehicle.send(QUERY)
        seen = settled(vehicle, "run/0")
        assert QUICK.least_s <= vehicle.clock.now_s() - sent_s < QUICK.least_s + 0.1
    assert isinstance(seen, Observation)
    assert not seen.complete
    assert len(seen.values) == 0


def test_a_silent_robot_loses_its_order_in_time_and_a_late_result_still_counts():
    with remote("silent:0:1.0") as vehicle:
        sent_s = vehicle.clock.now_s()
        vehicle.send(QUERY)
        lost = settled(vehicle, "run/0")
        assert isinstance(lost, Lost)
        assert QUICK.silence_s <= vehicle.clock.now_s() - sent_s < QUICK.silence_s + 0.1
        vehicle.clock.sleep(1.0)
        late = [e for e in vehicle.events(0.5) if isinstance(e, Observation)]
    assert [e.order for e in late] == ["run/0"]


def test_a_robot_is_not_silent_while_fieldbo_is_held_up():
    with remote("silent:0:1.0") as vehicle:
        vehicle.send(QUERY)
        vehicle.events(0.0)
        vehicle.clock.sleep(0.95)  # three times the silence that is allowed
        events = until_settled(vehicle, "run/0")
    assert [type(event) for event in events if hasattr(event, "order")] == [Observation]


def test_a_result_that_arrives_twice_counts_once():
    with remote("twice:0") as vehicle:
        vehicle.send(QUERY)
        events = until_settled(vehicle, "run/0") + vehicle.events(0.3)
    assert sum(isinstance(e, Observation) for e in events) == 1


@pytest.mark.parametrize(
    ("fault", "reports"), [("nan:0", Reports()), ("absurd:0", Reports(low=-100.0, high=100.0))]
)
def test_an_implausible_reading_counts_as_failed(fault, reports):
    with remote(fault, reports=reports) as vehicle:
        vehicle.send(QUERY)
        seen = settled(vehicle, "run/0")
    assert np.isnan(seen.values).all()
    assert np.array_equal(seen.sites, [[2.0, 1.0]])


@pytest.mark.parametrize(
    ("accuracy", "expected"), [(0.0, 2.4), (0.5, 2.0), ((0.5, 0.1), 2.0), ((0.3, 9.0), 2.4)]
)
def test_a_reading_is_at_the_reported_position_unless_that_is_within_the_accuracy_of_the_site(
    accuracy, expected
):
    with remote("astray:0:0.4", reports=Reports(accuracy=accuracy)) as vehicle:
        vehicle.send(QUERY)
        seen = settled(vehicle, "run/0")
    assert seen.sites[0].tolist() == [expected, 1.0]
    assert seen.position.tolist() == [expected, 1.0]


def test_an_implausible_position_leaves_the_vehicle_in_place_and_fails_the_reading():
    with remote("astray:0:1e6") as vehicle:
        vehicle.send(QUERY)
        seen = settled(vehicle, "run/0")
    assert np.isnan(seen.values).all()
    assert np.isfinite(seen.position).all()
    assert not seen.complete


@pytest.mark.parametrize("jump", ["-1e9", "1e9"])
def test_a_robot_clock_that_jumps_does_not_change_times(jump):
    with remote(f"clock:0:{jump}") as vehicle:
        vehicle.send(QUERY)
        seen = settled(vehicle, "run/0")
    assert 0.0 <= seen.times_s[0] <= seen.time_s < 60.0


def test_results_of_goals_of_other_runs_are_ignored():
    vehicle = remote(session="mine")
    with vehicle:
        vehicle.send(replace(QUERY, id="run/1"))
        until_settled(vehicle, "run/1")
        wire = vehicle.link.wires[0]
        at, none = np.zeros(2), np.empty(0)
        for goal in ("run/0#theirs", "run/0", "else/0#mine", "#", ""):
            wire.hear(GoalResult(goal, at, np.empty((0, 2)), none, none))
            wire.hear(GoalRejected(goal, "not here"))
        assert [e for e in vehicle.events(0.1) if hasattr(e, "order")] == []


def test_a_missing_robot_is_an_error_before_anything_is_sent():
    vehicle = remote("silent:0:9")
    vehicle.link.robot.tick = list
    with pytest.raises(VehicleError, match="no robot answers at here"), vehicle:
        pass


def test_an_unreachable_robot_loses_its_order_at_once():
    with remote("stuck:0") as vehicle:
        vehicle.send(QUERY)
        heard_s = vehicle.clock.now_s()
        vehicle.link.wires[0].hear(Unreachable("its will says offline"))
        assert settled(vehicle, "run/0") == Lost("run/0", "its will says offline")
        assert vehicle.clock.now_s() == heard_s


def test_the_first_sign_of_life_after_a_silence_gives_telemetry():
    with remote() as vehicle:
        wire = vehicle.link.wires[0]
        wire.cut = True
        vehicle.send(QUERY)
        assert isinstance(settled(vehicle, "run/0"), Lost)
        assert vehicle.events(0.3) == []
        wire.cut = False
        assert any(isinstance(e, Telemetry) for e in vehicle.events(1.0))


def test_a_queued_order_is_sent_when_the_one_before_it_is_settled():
    second = Query([0.0, 3.0], expected_cost=3.0, id="run/1")
    with remote("refuse:0") as vehicle:
        vehicle.send(QUERY)
        vehicle.send(second)
        events = until_settled(vehicle, "run/1")
    assert [e.order for e in events if hasattr(e, "order")] == ["run/0", "run/1"]


def test_a_queued_order_is_cancelled_without_the_robot():
    with remote("stuck:0") as vehicle:
        vehicle.send(QUERY)
        vehicle.send(Query([0.0, 3.0], id="run/1"))
        vehicle.cancel("run/1")
        assert settled(vehicle, "run/1") == Rejected("run/1", "cancelled before it was sent")


def test_a_new_vehicle_object_asks_the_robot_for_the_outcome_of_an_order():
    first = remote()
    with first:
        first.send(QUERY)
        seen = settled(first, "run/0")
    with again(first) as second:
        second.resume([QUERY], [])
        (outcome,) = second.outcome("run/0")
        assert outcome.values.tolist() == seen.values.tolist()
        assert [e for e in second.events(0.1) if isinstance(e, Observation)] == []
        assert second.outcome("run/7") is None


def test_an_order_under_way_continues_when_it_is_sent_again():
    first = remote(speedup=5.0)
    with first:
        first.send(QUERY)
        first.events(0.1)
    with again(first) as second:
        second.resume([QUERY], [])
        assert second.outcome("run/0") is None
        second.send(QUERY)
        assert isinstance(settled(second, "run/0"), Observation)
    assert first.link.robot._count == 1


def test_a_streaming_robot_without_readings_has_a_failed_reading():
    arrival = Arrival(1e-6, dwell_s=0.0, reading_s=0.2)
    vehicle = remote(link=Streaming, arrival=arrival)
    with vehicle:
        wire = vehicle.link.wires[0]
        hear, wire.hear = wire.hear, lambda s: None if isinstance(s, Reading) else hear(s)
        vehicle.send(QUERY)
        seen = settled(vehicle, "run/0")
    assert np.isnan(seen.values).all()
    assert seen.complete


def test_the_wait_for_a_reading_begins_when_the_robot_is_sent_to_its_site():
    """A boat may wait at its first site, disarmed, for a while; nobody told it to read there."""
    vehicle = remote(link=Streaming, arrival=Arrival(1e-6, dwell_s=0.0, reading_s=0.2))
    with vehicle:
        wire, why = vehicle.link.wires[0], ["the vehicle is not armed"]
        wire.unsent = lambda: why[0]
        hear, wire.hear = wire.hear, lambda s: None if why[0] and isinstance(s, Reading) else hear(s)
        vehicle.send(QUERY)
        assert not [e for e in vehicle.events(5.0) if isinstance(e, Observation)]
        why[0] = ""
        seen = settled(vehicle, "run/0")
    assert np.isfinite(seen.values).all()
    assert seen.complete


def test_readings_before_arrival_do_not_count():
    vehicle = remote(link=Streaming, speedup=10.0)
    with vehicle:
        wire = vehicle.link.wires[0]
        vehicle.send(QUERY)
        for _ in range(5):
            wire.hear(Reading(77.0))
        seen = settled(vehicle, "run/0")
    assert seen.values[0] < 70.0


def test_in_a_cell_the_position_has_the_values_of_free_variables():
    mission = small_mission(world=small_cell(), home=False)
    query = Query([2.0, 3.0, 0.0], controls=[True, True, False], expected_cost=0.5, id="run/0")
    with remote(mission=mission) as vehicle:
        vehicle.send(query)
        seen = settled(vehicle, "run/0")
    assert seen.position[:2].tolist() == [2.0, 3.0]
    assert np.isfinite(seen.position).all()
    assert seen.cost == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("charge", "remaining"),
    [
        (BatteryReport(share=0.5), 15.0),
        (BatteryReport(amount=4.0), 4.0),
        (BatteryReport(share=math.nan), None),
        (BatteryReport(share=-0.1), None),
        (BatteryReport(share=57.0), None),
        (BatteryReport(amount=math.inf), None),
        (BatteryReport(), None),
    ],
)
def test_a_battery_report_counts_if_it_is_plausible(charge, remaining):
    vehicle = remote()
    vehicle._filter.take_battery(charge)
    assert vehicle._filter.telemetry().remaining == remaining


@pytest.mark.parametrize(
    ("table", "key", "value"),
    [
        (Watch, "silence_s", 0.0),
        (Watch, "patience", math.inf),
        (Battery, "full", -1.0),
        (Battery, "accuracy", -1.0),
        (Reports, "accuracy", math.nan),
        (Reports, "accuracy", (0.1, -1.0)),
        (Reports, "low", math.nan),
        (Arrival, "within", 0.0),
        (Arrival, "settle_s", -1.0),
        (Arrival, "reading_s", math.nan),
    ],
)
def test_invalid_settings_are_an_error(table, key, value):
    with pytest.raises(InputError, match=key):
        table(**{key: value})


def test_going_home_needs_no_reading():
    with remote() as vehicle:
        vehicle.send(QUERY)
        until_settled(vehicle, "run/0")
        vehicle.send(GoHome(0, "run/1"))
        seen = settled(vehicle, "run/1")
    assert len(seen.values) == 0
    assert seen.complete
    assert np.array_equal(seen.position, small_mission().vehicles[0].home)


def test_heartbeats_alone_keep_an_order_under_way():
    with remote("stuck:0", watch=replace(QUICK, least_s=30.0)) as vehicle:
        vehicle.send(QUERY)
        end_s = vehicle.clock.now_s() + 3 * QUICK.silence_s
        while vehicle.clock.now_s() < end_s:
            vehicle.link.wires[0].hear(Heartbeat())
            assert [e for e in vehicle.events(0.05) if hasattr(e, "order")] == []


def test_without_a_plausible_position_the_robot_is_where_its_last_order_ended():
    vehicle = remote()
    for impossible in ([math.nan, 0.0], [1.0], [1e9, 0.0]):
        assert not vehicle._track.take(np.array(impossible), 0.0)
        assert np.array_equal(vehicle._filter.telemetry().position, small_mission().vehicles[0].start)
    drifted = small_mission().vehicles[0].start + 0.01
    assert vehicle._track.take(drifted, 0.1)
    assert np.array_equal(vehicle._filter.telemetry().position, drifted)


def test_a_simulated_robot_with_the_missions_seed_reads_what_the_simulation_reads():
    mission = small_mission(world=small_world(noise_sd=0.3), seed=5)
    from fieldbo.vehicles.base import Simulated

    simulated = Simulated(mission)
    simulated.send(QUERY)
    with remote(mission=mission) as vehicle:
        vehicle.send(QUERY)
        assert settled(vehicle, "run/0").values.tolist() == simulated.events(0.0)[0].values.tolist()


def test_the_error_about_a_missing_robot_includes_the_middlewares_reason():
    vehicle = remote()
    vehicle.link.robot.tick = lambda: [Unreachable("its will says offline")]
    with pytest.raises(VehicleError, match="its will says offline"), vehicle:
        pass


def test_each_part_of_a_result_has_its_own_cost_and_time():
    vehicle = remote("stuck:0")
    vehicle.link.robot.tick = lambda: [Heartbeat()]  # where it is under way would contradict the parts
    with vehicle:
        vehicle.send(QUERY)
        part(vehicle, 0, [1.0, 0.0], part=0, last=False, duration_s=0.1)
        part(vehicle, 0, [2.0, 1.0], part=1, last=True, duration_s=0.1)
        seen = [e for e in until_settled_whole(vehicle) if isinstance(e, Observation)]
    cost = vehicle.mission.world.cost
    assert seen[0].cost == pytest.approx(cost.to([0.0, 0.0], [[1.0, 0.0]])[0])
    assert seen[1].cost == pytest.approx(cost.to([1.0, 0.0], [[2.0, 1.0]])[0])
    assert seen[1].time_s == pytest.approx(seen[0].time_s + 0.1)


def nonsense():
    at = np.zeros(2)
    yield GoalResult("run/0#s", at, np.zeros((3, 2)), np.array([1.0]), np.array([1.0]))
    yield GoalResult("run/0#s", at, at[None], np.array([1.0]), np.array([1.0, 2.0]), cost=None)
    yield GoalResult(
        "run/0#s", at, at[None], np.array([1.0]), np.array([]), channels={"depth": np.array([1.0, 2.0])}
    )
    yield GoalResult("run/0#s", np.array([0.0]), at[None], np.array([1.0]), np.array([1.0]), duration_s=None)
    yield GoalResult("run/0#s", at, np.array([]), np.array([1.0]), np.array([1.0]), cost=1e30)
    yield GoalResult(
        "run/0#s", at, at[None], np.array([1e308]), np.array([-1e308]), cost=-1e308, duration_s=1e308
    )


@pytest.mark.parametrize("done", list(nonsense()), ids=range(6))
def test_a_nonsensical_result_still_settles_its_order(done):
    with remote("stuck:0") as vehicle:
        vehicle.send(QUERY)
        vehicle.link.wires[0].hear(done)
        seen = settled(vehicle, "run/0")
    assert isinstance(seen, Observation)
    assert 0.0 <= seen.cost <= 30.0
    assert len(seen.values) in (0, 1)


def test_reports_about_an_order_that_was_not_sent_are_ignored():
    second = Query([0.0, 3.0], id="run/1")
    with remote("stuck:0") as vehicle:
        vehicle.send(QUERY)
        vehicle.send(second)
        part(vehicle, 1, [0.0, 3.0], last=True)
        vehicle.link.wires[0].hear(GoalRejected("run/1#s", "not yet"))
        assert [e for e in vehicle.events(0.2) if hasattr(e, "order")] == []


def test_an_implausible_position_does_not_stop_a_streaming_robot():
    with remote(link=Streaming, speedup=10.0) as vehicle:
        vehicle.send(QUERY)
        for place in ([1e9, 0.0], [math.nan, 0.0], [1.0], "here"):
            vehicle.link.wires[0].hear(PositionReport(place))
        assert settled(vehicle, "run/0").sites[0] == pytest.approx([2.0, 1.0])


def test_resumed_orders_of_a_batch_cost_the_trips_between_them():
    sites = [[2.0, 1.0], [3.0, 1.0], [4.0, 1.0]]
    batch = [Query(site, expected_cost=2.0, id=f"run/{k}") for k, site in enumerate(sites)]
    first = remote("stuck:0")
    first.link.robot.tick = lambda: [Heartbeat()]  # where it is under way would contradict the parts
    with again(first) as second:
        second.resume(batch, [])
        for k, order in enumerate(batch):
            second.send(order)
            part(second, k, sites[k], last=True)
            assert settled(second, order.id).cost == pytest.approx(
                first.mission.world.cost.to([0.0, 0.0] if k == 0 else sites[k - 1], [sites[k]])[0]
            )


def test_resuming_restores_clock_and_position_from_the_events():
    vehicle = remote()
    orders = [replace(QUERY, id=f"run/{k}") for k in range(2)]
    none = np.empty(0)
    late = Observation("run/0", np.empty((0, 2)), none, none, none, [2.0, 1.0], 1.0, time_s=10.0)
    newest = replace(late, order="run/1", position=[4.0, 0.0])
    vehicle.resume(orders, [newest, late, Telemetry(0, [4.0, 0.0], 20.0, 700.0)])
    where = vehicle._filter.telemetry()
    assert where.time_s >= 700.0
    assert where.position.tolist() == [4.0, 0.0]


def test_resuming_asks_the_robot_about_lost_orders():
    first = remote()
    with first:
        first.send(QUERY)
        settled(first, "run/0")
    with again(first) as second:
        second.resume([QUERY], [Lost("run/0", "silence")])
        assert [e.order for e in second.events(1.0) if isinstance(e, Observation)] == ["run/0"]


def test_of_a_battery_larger_than_the_missions_only_the_use_counts():
    vehicle = remote(battery=Battery(full=600.0))
    for amount, expected in ((540.0, 30.0), (530.0, 20.0), (601.0, 20.0), (5.0, 0.0)):
        vehicle._filter.take_battery(BatteryReport(amount=amount))
        assert vehicle._filter.telemetry().remaining == pytest.approx(expected)


@pytest.mark.parametrize(
    ("goal", "why"),
    [
        (Goal("a", np.array([1.0, math.nan])), "no value for y: this robot is in small, with x, y"),
        (Goal("a", np.array([1.0])), "the site has 1 coordinates"),
        (Goal("a", np.array([1.0, 1.0]), level=3), "no setting 3"),
        (Goal("a", np.array([99.0, 1.0])), "the site is out of reach"),
    ],
)
def test_a_simulated_robot_rejects_goals_that_do_not_fit_its_world(goal, why):
    robot = Robot(small_world())
    robot.go(goal)
    (rejected,) = (report for report in robot.tick() if isinstance(report, GoalRejected))
    assert why in rejected.reason


class Mute(Wire):
    """A link that can not send for a while."""

    why = "the radio is off"

    def unsent(self):
        return self.why


class Muted(Near):
    def open(self, mission, ground, hear):
        self.wires.append(Mute(self, hear))
        return self.wires[-1]


def test_a_hold_that_has_not_left_is_an_error_and_closing_waits_for_it(caplog):
    vehicle = remote(link=Muted)
    vehicle.connect()
    with pytest.raises(VehicleError, match="NOT told to hold: the radio is off"):
        vehicle.hold()
    assert vehicle.unheld == "the radio is off"
    (wire,) = vehicle.link.wires
    vehicle.clock.after(0.2, lambda: setattr(wire, "why", ""))
    vehicle.close()
    assert vehicle.unheld == ""
    assert "was told to hold after all" in caplog.text


def test_closing_waits_for_a_hold_only_for_so_long():
    vehicle = remote(link=Muted)
    vehicle.connect()
    with pytest.raises(VehicleError):
        vehicle.hold()
    began_s = vehicle.clock.now_s()
    vehicle.close()
    assert QUICK.connect_s <= vehicle.clock.now_s() - began_s < QUICK.connect_s + 0.1
    assert vehicle.unheld


def test_a_hold_for_a_silent_robot_is_an_error():
    with remote() as vehicle:
        (wire,) = vehicle.link.wires
        wire.cut = True
        with pytest.raises(VehicleError, match="no sign of life"):
            vehicle.hold()


def test_the_goal_says_what_to_do_when_the_planner_is_silent():
    mission = small_mission()
    for action, expected in (("hold", []), ("home", [mission.vehicles[0].home.tolist()])):
        watch = replace(QUICK, when_planner_silent=action, planner_silence_s=7.0)
        vehicle, sent = remote(mission=mission, watch=watch), []
        with vehicle:
            vehicle.link.wires[0].go = sent.append
            vehicle.send(QUERY)
        assert sent[0].planner_silence_s == 7.0
        assert sent[0].return_route.tolist() == expected


def test_a_robot_that_another_planner_has_claimed_is_an_error_with_a_fix():
    @dataclass(frozen=True)
    class Claimed(Near):
        def open(self, mission, ground, hear):
            wire = super().open(mission, ground, hear)
            wire.claim = lambda session, name: hear(Taken(f"run b is not {session}", "stop it"))
            return wire

    with pytest.raises(VehicleError, match="run b is not s\n  fix:      stop it"):
        remote(link=Claimed).connect()


# -- where the robot is at first -------------------------------------------------------------------------


def test_a_robot_far_outside_of_the_domain_is_an_error_before_anything_is_sent():
    vehicle = remote(link=Streaming)
    vehicle.link.robot.position = np.array([-40.0, 2.0])

    with pytest.raises(VehicleError, match=r"reports its position as .*far outside the domain") as error:
        vehicle.connect()

    assert "[frame]" in str(error.value)
    assert vehicle.link.robot._count == 0


def test_a_robot_beside_the_domain_is_waited_for():
    vehicle = remote(link=Streaming)
    robot = vehicle.link.robot
    at_first, robot.position = robot.position, np.array([-40.0, 2.0])
    vehicle.clock.after(0.2, lambda: setattr(robot, "position", at_first))

    with vehicle:
        assert vehicle.events(0.0) is not None


# -- parts that arrive late ------------------------------------------------------------------------------


def test_a_goal_that_is_rejected_after_a_part_is_cut_short_and_nothing_is_settled_twice():
    """Something moved and was paid: the agent must not take it for an order that cost nothing."""
    with remote("stuck:0") as vehicle:
        vehicle.send(Query([2.0, 1.0], expected_cost=3.0, id="run/0"))
        part(vehicle, 0, [1.0, 1.0], last=False, cost=1.0)
        vehicle.link.wires[0].hear(GoalRejected("run/0#s", "a fence"))
        events = vehicle.events(0.05)
        part(vehicle, 0, [1.0, 1.0], part=1, last=True, complete=False, cost=0.5)  # answers the cancellation
        events += until_settled_whole(vehicle)
        vehicle.link.wires[0].hear(GoalRejected("run/0#s", "a fence"))
        events += vehicle.events(0.2)
    told = [event for event in events if not isinstance(event, Telemetry)]
    assert [(e.part, e.last, e.complete, e.cost) for e in told] == [
        (0, False, True, 1.0),
        (1, True, False, 0.5),
    ]


def test_a_part_that_arrives_after_the_last_one_still_counts_once():
    with remote("stuck:0") as vehicle:
        vehicle.send(QUERY)
        part(vehicle, 0, [2.0, 1.0], part=1, last=True, cost=1.0)
        first = vehicle.events(0.05)
        for _ in range(2):
            part(vehicle, 0, [1.0, 0.0], part=0, last=False, cost=10.0)
        part(vehicle, 0, [1.5, 0.5], part=2, last=True, cost=2.0)
        seen = [e for e in first + vehicle.events(0.05) + vehicle.events(0.2) if isinstance(e, Observation)]
        position = vehicle._filter.prices.position
    declared = np.hypot(2.0, 1.0) + 1.0  # with the first part missing; its own cost is then charged beyond it
    assert [(e.part, e.last) for e in seen] == [(1, True), (0, False), (2, False)]
    assert [e.cost for e in seen] == pytest.approx([declared, 11.0 - declared, 2.0])
    assert [e.estimated for e in seen] == [True, False, False]
    assert position.tolist() == [2.0, 1.0]
    assert all(e.time_s <= seen[0].time_s for e in seen)


def test_a_part_that_was_lost_is_asked_for():
    with remote("stuck:0") as vehicle:
        vehicle.send(QUERY)
        vehicle.events(0.05)
        asked = []
        vehicle.link.wires[-1].ask = asked.append
        part(vehicle, 0, [1.0, 0.5], part=0, last=False, cost=1.0)
        part(vehicle, 0, [2.0, 1.0], part=2, last=True, cost=1.0)
        events = [e for _ in range(4) for e in vehicle.events(0.05)]
        assert asked == ["run/0#s"]
        part(vehicle, 0, [1.5, 0.7], part=1, last=False, cost=0.5)
        part(vehicle, 0, [2.0, 1.0], part=2, last=True, cost=1.0)
        events += [e for _ in range(4) for e in vehicle.events(0.05)]
    seen = [e for e in events if isinstance(e, Observation)]
    assert [e.part for e in seen] == [0, 2, 1]
    assert [e.cost for e in seen] == pytest.approx([1.0, np.hypot(2.0, 1.0), 0.0])
    assert asked == ["run/0#s"]


def test_a_part_that_was_lost_before_a_restart_is_asked_for():
    done = Observation("run/0", [[2.0, 1.0]], [0.5], [0.01], [1.0], [2.0, 1.0], 3.0, part=1, time_s=1.0)
    with remote("stuck:0") as vehicle:
        wire = vehicle.link.wires[-1]
        wire.ask = lambda goal: part(vehicle, 0, [1.0, 0.5], part=0, last=False, cost=0.5) or True
        vehicle.resume([QUERY], [done])
        events = [e for _ in range(4) for e in vehicle.events(0.05)]
        told = vehicle.outcome("run/0")
    assert [(e.part, e.last) for e in events if isinstance(e, Observation)] == [(0, False)]
    assert [e.part for e in told] == [1, 0]


def test_what_became_of_an_order_includes_a_part_that_was_lost():
    with remote("stuck:0") as vehicle:
        vehicle.send(QUERY)
        vehicle.events(0.05)
        part(vehicle, 0, [2.0, 1.0], part=1, last=True, cost=1.0)
        vehicle.events(0.05)
        wire = vehicle.link.wires[-1]
        wire.ask = lambda goal: part(vehicle, 0, [1.0, 0.5], part=0, last=False, cost=0.5) or True
        assert [e.part for e in vehicle.outcome("run/0")] == [1, 0]


def test_a_late_part_of_unknown_cost_charges_no_more_than_the_order_was_declared_at():
    with remote("stuck:0") as vehicle:
        vehicle.send(QUERY)
        part(vehicle, 0, [2.0, 1.0], part=1, last=True)
        first = vehicle.events(0.05)
        part(vehicle, 0, [1.0, 0.0], part=0, last=False)
        seen = [e for e in first + vehicle.events(0.05) + vehicle.events(0.2) if isinstance(e, Observation)]
    assert [e.cost for e in seen] == pytest.approx([np.hypot(2.0, 1.0) + 1.0, 0.0])


# -- among obstacles -------------------------------------------------------------------------------------


def among_obstacles(below=-1.0):
    pillar = Obstacle("pillar", (1.5, below), (2.5, 3.0))
    axes = [Axis("x", "m", 0, 4), Axis("y", "m", 0, 4)]
    domain = Domain.grid(axes, (5, 5), obstacles=[pillar])
    world = replace(small_world(), domain=domain, start=np.zeros(2), cost=Euclidean(sampling=0.5))
    return small_mission(world=world)


class WithoutPositions(Near):
    """A robot that never reports where it is, except in its results."""

    def open(self, mission, ground, hear):
        return super().open(mission, ground, lambda r: None if isinstance(r, PositionReport) else hear(r))


def test_a_robot_without_positions_is_asked_where_a_lost_order_ended():
    there, back = Query([4.0, 0.0], id="run/0"), Query([0.0, 1.0], id="run/1")
    watch = replace(QUICK, least_s=2.0)
    vehicle = remote("silent:0:0.45", mission=among_obstacles(), watch=watch, link=WithoutPositions)
    sent = []
    with vehicle:
        wire = vehicle.link.wires[0]
        go = wire.go
        wire.go = lambda goal: (sent.append(goal), go(goal))
        vehicle.send(there)
        lost = settled(vehicle, "run/0")
        vehicle.send(back)
        seen = settled(vehicle, "run/1")

    assert isinstance(lost, Lost)
    assert isinstance(seen, Observation)
    route = np.vstack([[4.0, 0.0], sent[-1].route])
    assert [p.tolist() for p in route] == [[4.0, 0.0], [2.5, 3.0], [1.5, 3.0], [0.0, 1.0]]


def test_a_robot_beside_the_domain_and_behind_an_obstacle_is_sent_nowhere():
    vehicle, sent = remote(link=Streaming, mission=among_obstacles(below=-0.1)), []
    vehicle.link.robot.position = np.array([2.0, -0.15])
    with vehicle:
        vehicle.link.wires[0].go = sent.append
        vehicle.send(Query([1.0, 0.0], id="run/0"))
        lost = settled(vehicle, "run/0")

    why = "no safe route from where the robot is: pillar lies between the robot and the domain"
    assert lost == Lost("run/0", why, sent=False)
    assert not sent


def test_one_bad_fix_does_not_bend_the_next_route_through_an_obstacle():
    vehicle = remote(link=Streaming, mission=among_obstacles())
    sent = []
    with vehicle:
        wire = vehicle.link.wires[0]
        go = wire.go
        wire.go = lambda goal: (sent.append(goal.route.tolist()), go(goal))
        vehicle.send(Query([1.0, 0.0], id="run/0"))
        settled(vehicle, "run/0")
        wire.hear(PositionReport(np.array([4.0, 0.0])))
        vehicle.send(Query([4.0, 1.0], id="run/1"))
        settled(vehicle, "run/1")

    assert sent == [[[1.0, 0.0]], [[1.5, 3.0], [2.5, 3.0], [4.0, 1.0]]]


def test_a_cancelled_goal_is_not_sent_again_after_a_break():
    vehicle = remote("stuck:0", mission=among_obstacles())
    sent = []
    with vehicle:
        wire = vehicle.link.wires[0]
        go = wire.go
        wire.go = lambda goal: (sent.append(goal.id), go(goal))
        vehicle.send(Query([4.0, 0.0], id="run/0"))
        vehicle.events(0.05)
        wire.hear(Reconnected())
        vehicle.cancel("run/0")
        settled(vehicle, "run/0")

    assert len(sent) == 1


def test_what_was_used_without_a_planner_counts_although_the_link_opens_before_the_resume():
    """The first battery report arrives before the new process knows the run."""
    battery = small_mission().vehicles[0].battery
    vehicle = remote(battery=Battery(full=2 * battery))
    vehicle.link.robot.battery, vehicle.link.robot.remaining = 2 * battery, 1.5 * battery
    done = Observation("run/0", [[2.0, 1.0]], [1.0], [0.01], [5.0], [2.0, 1.0], 0.3 * battery, time_s=5.0)
    events = [
        Telemetry(0, [0.0, 0.0], battery, 0.0, pack=2 * battery, measured_s=0.0),
        done,
        Telemetry(0, [2.0, 1.0], 0.7 * battery, 6.0, pack=1.7 * battery, measured_s=6.0),
    ]
    with vehicle:
        vehicle.clock.sleep(0.2)
        vehicle.events(0.1)
        vehicle.resume([QUERY], events)
        vehicle.clock.sleep(0.2)
        vehicle.events(0.1)
        remaining = vehicle._filter.telemetry().remaining

    assert remaining == pytest.approx(0.5 * battery)


@pytest.mark.parametrize(("cost", "charged"), [(4.0, 4.0), (1.0, 3.236)])  # which is the declared cost
def test_a_result_that_arrives_before_the_resume_counts_at_its_declared_cost_at_least(cost, charged):
    vehicle = remote()
    with vehicle:
        wire = vehicle.link.wires[0]
        values = np.array([7.0])
        wire.hear(
            GoalResult("run/0#s", np.array([2.0, 1.0]), np.array([[2.0, 1.0]]), values, values, cost=cost)
        )
        vehicle.events(0.1)
        vehicle.resume([QUERY], [])
        seen = settled(vehicle, "run/0")

    assert seen.values.tolist() == [7.0]
    assert (round(seen.cost, 3), seen.estimated) == (charged, cost < charged)


# -- a new program for a robot that is under way -----------------------------------------------------------


def on_its_own(vehicle, seconds):
    """Let the robot go on while no program listens."""
    alone, clock = vehicle.link.robot.tick, vehicle.clock
    clock.meanwhile.append(alone)
    clock.sleep(seconds)
    clock.meanwhile.remove(alone)


def test_an_order_of_an_earlier_program_is_cancelled_at_the_robot_even_while_it_waits():
    rock = Obstacle("rock", corners=((1.4, 1.6), (3.6, 1.6), (3.6, 2.4), (1.4, 2.4)))
    made = small_mission(battery=40.0).with_no_go([rock])
    vehicle = remote(mission=made, watch=Watch(silence_s=1.0), speedup=1.0)
    tick = vehicle.link.robot.tick
    vehicle.link.robot.tick = lambda: [
        Heartbeat() if isinstance(report, PositionReport) else report for report in tick()
    ]
    order = Query([5.0, 4.0], expected_cost=7.8, id="run/0")
    with vehicle:
        vehicle.send(order)
        for _ in range(18):
            vehicle.events(0.2)
    with again(vehicle) as second:
        second.resume([order], [])
        second.send(order)
        assert second.events(0.0) == []
        second.cancel("run/0")
        (seen,) = [e for e in until_settled(second, "run/0") if hasattr(e, "order")]
        assert isinstance(seen, Observation | Lost)
        stopped_at = second.link.robot.position
        on_its_own(second, 5.0)
    assert np.array_equal(second.link.robot.position, stopped_at)
    if isinstance(seen, Observation):
        assert not seen.complete


BATCH = [
    Query([5.0, 4.0], expected_cost=7.4, id="run/0"),
    Query([4.0, 4.0], expected_cost=2.0, id="run/1"),
]


@pytest.mark.parametrize("positions", [True, False])
def test_what_an_order_brings_after_a_restart_says_where_the_robot_is_though_others_were_to_follow(positions):
    vehicle = remote(mission=small_mission(battery=40.0), watch=Watch(), speedup=10.0)
    if not positions:
        tick = vehicle.link.robot.tick
        vehicle.link.robot.tick = lambda: [
            Heartbeat() if isinstance(report, PositionReport) else report for report in tick()
        ]
    with vehicle:
        for order in BATCH:
            vehicle.send(order)
        vehicle.clock.sleep(0.5)
    on_its_own(vehicle, 5.0)
    with again(vehicle) as second:
        second.resume(BATCH, [])
        (seen,) = second.outcome("run/0")
    assert np.array_equal(seen.position, [5.0, 4.0])


def test_after_a_restart_only_the_order_that_was_sent_is_cancelled_at_the_robot():
    """The one behind it was never sent: it cost nothing, and what was set aside for it is free again."""
    vehicle = remote(mission=small_mission(battery=40.0), watch=Watch(), speedup=1.0)
    with vehicle:
        for order in BATCH:
            vehicle.send(order)
        vehicle.events(0.2)
    with again(vehicle) as second:
        second.resume(BATCH, [])
        for order in BATCH:
            second.send(order)
        for order in reversed(BATCH):
            second.cancel(order.id)
        events = until_settled(second, "run/0")
    told = [event for event in events if hasattr(event, "order")]
    assert told[0] == Rejected("run/1", "cancelled before it was sent")
    assert isinstance(told[1], Observation | Lost)
    assert told[1].order == "run/0"

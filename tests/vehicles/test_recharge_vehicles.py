"""Who changes a battery: people, robots, and what operators command meanwhile."""

import math

import numpy as np
import pytest
from batteries import HOME, kinds_of, mission_with, spent_by_battery
from direct_link import Near, Streaming
from underway import command, steered

from fieldbo.messages import (
    Answer,
    EndReason,
    GoHome,
    Observation,
    Query,
    Recharge,
    Rejected,
    Telemetry,
)
from fieldbo.record.record import Record
from fieldbo.runs.loop import Interrupted
from fieldbo.runs.runner import resume, run
from fieldbo.testing import SteppedClock
from fieldbo.vehicles.by_hand import ByForm, ByHand
from fieldbo.vehicles.remote.link import BatteryReport
from fieldbo.vehicles.remote.remote import Remote
from fieldbo.vehicles.remote.settings import Arrival, Battery, Reports, VehicleFile, Watch
from fieldbo.vehicles.simulators import Fault, Robot

SETTINGS = VehicleFile.model_construct(
    format=1,
    title="",
    link={},
    frame=None,
    watch=Watch(silence_s=0.5, connect_s=2.0, patience=5.0, least_s=5.0),
    battery=Battery(),
    reports=Reports(),
    arrival=Arrival(1e-6, dwell_s=0.0),
)


# -- by hand ---------------------------------------------------------------------------------------------


class Keys:
    """Types Enter at each prompt, a reading where one is asked for, and some words at the battery's."""

    def __init__(self, *at_battery):
        self.at_battery, self.prompts = list(at_battery), []

    def read(self, prompt):
        self.prompts.append(prompt)
        if "height" in prompt:
            return "0.5"
        return self.at_battery.pop(0) if "changed?" in prompt and self.at_battery else ""


def by_hand(mission, keys, printed):
    return ByHand(mission, read=keys.read, write=printed.append)


def run_with(mission, vehicle, folder):
    """Run a mission with a vehicle and a record."""
    with Record.create(folder / "run.sqlite", "small", {"mission": "small"}) as record:
        return run(mission, [vehicle], record)


def test_a_person_is_asked_to_change_the_battery_and_confirms_it(tmp_path):
    mission, keys, printed = mission_with(3), Keys("what", "y", ""), []
    result = run_with(mission, by_hand(mission, keys, printed), tmp_path)
    assert result.accounts[0].batteries_used == 3
    assert sum("change the battery: 2 of 3 comes next" in line for line in printed) == 1
    assert sum("press Enter once it is changed" in line for line in printed) == 1
    assert sum("changed?" in prompt for prompt in keys.prompts) == 3


def test_a_person_without_another_battery_ends_the_mission(tmp_path):
    mission = mission_with(3)
    result = run_with(mission, by_hand(mission, Keys("skip"), []), tmp_path)
    assert result.accounts[0].batteries_used == 1
    assert result.end_reason is EndReason.BATTERY_SPENT
    assert np.array_equal(result.path[-1], HOME)


def test_a_person_who_stops_at_the_battery_is_asked_again_on_resuming(tmp_path):
    mission, folder = mission_with(2), tmp_path / "run"
    folder.mkdir()
    with Record.create(folder / "run.sqlite", "small", {"mission": "small"}) as record:
        with pytest.raises(Interrupted):
            run(mission, [by_hand(mission, Keys("quit"), [])], record)
        printed = []
        result = resume(mission, record, [by_hand(mission, Keys(), printed)])
    assert any("change the battery: 2 of 2 comes next" in line for line in printed)
    assert result.accounts[0].batteries_used == 2


@pytest.mark.parametrize(("skipped", "kind"), [(False, Observation), (True, Rejected)])
def test_people_with_a_form_confirm_the_change_or_say_that_there_is_no_battery(skipped, kind):
    vehicle = ByForm(mission_with(2))
    vehicle.send(Recharge(0, "run/7", 2, HOME))
    vehicle.take(Answer("a", "run/7", skipped=skipped))
    [event] = vehicle.events(0.0)
    assert isinstance(event, kind)


# -- robots ----------------------------------------------------------------------------------------------


def robot_of(mission, **settings):
    spec = mission.vehicles[0]
    given = {"battery": spec.battery, "speedup": 200.0, "recharge_s": 1000.0} | settings
    return Robot(mission.world, seed=mission.seed, start=spec.start, clock=SteppedClock(), **given)


def connected(mission, robot, link=Near, settings=SETTINGS):
    """Return a vehicle for a robot, on the robot's clock."""
    return Remote(mission, 0, link(robot), settings, "s", robot.clock)


@pytest.mark.parametrize("link", [Near, Streaming])
def test_a_robot_goes_on_once_it_reports_a_full_battery(link, tmp_path):
    mission = mission_with(3, battery=14.0, margin=0.05)
    with connected(mission, robot_of(mission), link) as vehicle:
        result = run_with(mission, vehicle, tmp_path)
    assert result.accounts[0].batteries_used == 3
    assert max(spent_by_battery(result).values()) <= 14.0
    assert np.allclose(result.path[-1], HOME)
    assert not any("rose" in note for note in result.notes)


def test_a_robot_that_reports_no_battery_gets_its_time(tmp_path):
    mission = mission_with(2, takes_s=0.5)
    with connected(mission, robot_of(mission, battery=math.inf)) as vehicle:
        result = run_with(mission, vehicle, tmp_path)
    assert result.accounts[0].batteries_used == 2
    [(_, _, seconds)] = [line for line in result.accounts[0].lines if isinstance(line[0], Recharge)]
    assert 0.5 <= seconds.spent < 2.0


def waiting(vehicle, mission):
    """Send a recharge; return what the vehicle reports in a second."""
    vehicle.send(Recharge(0, "run/0", 2, HOME))
    return [event for event in listen(vehicle, 1.0) if not isinstance(event, Telemetry)]


def listen(vehicle, seconds):
    """Return all that a vehicle reports within some seconds."""
    events, end_s = [], vehicle.clock.now_s() + seconds
    while vehicle.clock.now_s() < end_s:
        events += vehicle.events(0.05)
    return events


def test_a_robot_may_be_silent_while_its_battery_is_changed():
    mission = mission_with(2)
    robot = robot_of(mission, recharge_s=math.inf)
    with connected(mission, robot) as vehicle:
        robot.remaining = 0.5
        vehicle.clock.sleep(0.3)
        vehicle.events(0.1)
        vehicle.link.wires[0].cut = True
        assert waiting(vehicle, mission) == []  # for twice as long as silence is a loss otherwise
        robot.remaining = 11.9
        vehicle.link.wires[0].cut = False
        events = listen(vehicle, 1.0)
    settled = [event for event in events if isinstance(event, Observation)]
    reported = [event for event in events if isinstance(event, Telemetry)]
    assert [event.order for event in settled] == ["run/0"]
    assert reported[-1].remaining == pytest.approx(11.9)


@pytest.mark.parametrize(
    ("full", "level", "changed"),
    [(None, 11.0, False), (None, 11.6, True), (40.0, 30.0, False), (40.0, 39.0, True)],
)
def test_a_battery_counts_as_changed_if_its_level_shows_it(full, level, changed):
    # with a full battery of 40 s, the mission may use 12: 28 are left when it is spent
    mission = mission_with(2)
    robot = robot_of(mission, battery=12.0 if full is None else full, recharge_s=math.inf)
    settings = SETTINGS.model_copy(update={"battery": Battery(full=full, accuracy=0.1)})
    with connected(mission, robot, settings=settings) as vehicle:
        robot.remaining = 0.5 if full is None else 30.0
        vehicle.clock.sleep(0.3)
        vehicle.events(0.1)
        vehicle.send(Recharge(0, "run/0", 2, HOME))
        robot.remaining = level
        events = listen(vehicle, 0.6)
    assert any(isinstance(event, Observation) for event in events) == changed
    if changed:
        last = [event for event in events if isinstance(event, Telemetry)][-1]
        assert last.remaining == pytest.approx(min(level, 12.0))


def test_a_robot_is_not_waited_for_once_the_operator_ends_the_mission():
    mission = mission_with(2)
    robot = robot_of(mission, recharge_s=math.inf)
    with connected(mission, robot) as vehicle:
        robot.remaining = 0.5
        vehicle.clock.sleep(0.3)
        vehicle.events(0.1)
        vehicle.send(Recharge(0, "run/0", 2, HOME))
        vehicle.events(0.1)
        vehicle.cancel("run/0")
        events = vehicle.events(0.5)
    assert [type(e) for e in events if not isinstance(e, Telemetry)] == [Rejected]


def test_a_run_with_a_robot_that_dies_during_a_change_goes_on_with_the_new_battery(tmp_path):
    mission, folder = mission_with(2, battery=14.0), tmp_path / "run"
    folder.mkdir()
    robot = robot_of(mission, recharge_s=math.inf)
    with Record.create(
        folder / "run.sqlite", "small", {"vehicles": [{"kind": "x", "session": "s"}]}
    ) as record:

        def stop(event):
            if isinstance(event, Observation) and isinstance(order_in(record, event), GoHome):
                raise KeyboardInterrupt

        with connected(mission, robot) as vehicle, pytest.raises(Interrupted):
            run(mission, [vehicle], record, on_event=stop)
        robot.remaining = robot.battery  # changed while no planner runs
        with connected(mission, robot) as vehicle:
            result = resume(mission, record, [vehicle])
    assert result.accounts[0].batteries_used == 2


def order_in(record, event):
    return next(row.message for row in record.rows() if row.order == event.order)


# -- commands --------------------------------------------------------------------------------------------


def poll_of(mission, folder, kind, polls=3):
    """Return at which poll of an undisturbed run an order of some kind is outstanding."""
    (folder / "first").mkdir()
    *_, rows = steered(mission, folder / "first", {}, polls=polls)
    orders = [row.kind for row in rows if row.kind in ("query", "go-home", "recharge")]
    return polls * orders.index(kind) + polls - 1


def test_a_pause_lets_a_change_go_on(tmp_path):
    mission = mission_with(2)
    poll = poll_of(mission, tmp_path, "recharge")
    result, _, rows = steered(mission, tmp_path, {poll: command("pause"), poll + 6: command("continue")})
    assert kinds_of(result).count(Recharge) == 1
    assert result.accounts[0].batteries_used == 2
    assert not any(row.kind == "rejected" for row in rows)


def test_an_operator_who_sends_it_home_ends_the_mission_with_batteries_left(tmp_path):
    mission = mission_with(3)
    poll = poll_of(mission, tmp_path, "recharge")
    result, _, _ = steered(mission, tmp_path, {poll: command("home")})
    assert result.end_reason is EndReason.STOPPED_BY_OPERATOR
    assert result.accounts[0].batteries_used == 1
    assert np.array_equal(result.path[-1], HOME)


def test_a_trip_home_that_is_paused_goes_on_to_the_battery(tmp_path):
    mission = mission_with(2, battery=20.0)
    poll = poll_of(mission, tmp_path, "go-home")
    result, _, _ = steered(mission, tmp_path, {poll: command("pause"), poll + 6: command("continue")})
    assert result.accounts[0].batteries_used == 2
    assert np.array_equal(result.path[-1], HOME)


def test_a_site_that_only_the_next_battery_affords_can_be_wanted_during_the_change(tmp_path):
    mission = mission_with(2)
    poll = poll_of(mission, tmp_path, "recharge")
    result, _, rows = steered(mission, tmp_path, {poll: command("next", site=[3.0, 2.0])})
    [wanted] = [row.message for row in rows if row.kind == "command"]
    assert not wanted.refused
    first = next(q for q in result.queries if result.battery_of_order[q.id] == 2)
    assert first.site.tolist() == [3.0, 2.0]


# -- where the robot is ----------------------------------------------------------------------------------


def test_a_robot_that_is_away_does_not_have_its_battery_changed_by_time_alone():
    mission = mission_with(2, takes_s=0.5)
    robot = robot_of(mission, battery=math.inf)
    with connected(mission, robot) as vehicle:
        robot.position = HOME + 0.5 * mission.world.domain.extent
        listen(vehicle, 1.0)
        vehicle.send(Recharge(0, "run/0", 2, HOME))
        away = listen(vehicle, 2.0)
        assert not any(isinstance(event, Observation) for event in away)
        assert sum("does not count as changed" in d for e in away for d in getattr(e, "doubts", ())) == 1
        robot.position = HOME + 0.01 * mission.world.domain.extent
        assert any(isinstance(event, Observation) for event in listen(vehicle, 2.0))


# -- gauges that show no change --------------------------------------------------------------------------


def settled_by(vehicle, order, seconds=60.0):
    """Return how long an order takes, at most so many seconds, and whether it was carried out."""
    began_s = vehicle.clock.now_s()
    vehicle.send(order)
    while vehicle.clock.now_s() < began_s + seconds:
        if any(isinstance(e, Observation) and e.order == order.id for e in vehicle.events(0.05)):
            return vehicle.clock.now_s() - began_s
    return math.inf


@pytest.mark.parametrize("link", [Near, Streaming])
def test_a_gauge_that_stands_still_changes_no_battery_before_its_time(link):
    mission = mission_with(3, takes_s=20.0)
    robot = robot_of(mission, faults=[Fault.parse("gauge:0")])
    with connected(mission, robot, link) as vehicle:
        settled_by(vehicle, Query(mission.world.domain.sites[-1], id="run/0", expected_cost=10.0))
        settled_by(vehicle, GoHome(0, "run/1", HOME))
        assert 20.0 <= settled_by(vehicle, Recharge(0, "run/2", 2, HOME)) < 21.0


def test_one_wrong_level_changes_no_battery():
    mission = mission_with(2)
    robot = robot_of(mission, recharge_s=math.inf)
    with connected(mission, robot) as vehicle:
        settled_by(vehicle, Query(mission.world.domain.sites[-1], id="run/0", expected_cost=10.0))
        settled_by(vehicle, GoHome(0, "run/1", HOME))
        vehicle.clock.after(1.0, lambda: vehicle.link.wires[-1].hear(BatteryReport(share=1.0)))
        assert settled_by(vehicle, Recharge(0, "run/2", 2, HOME), 5.0) == math.inf


@pytest.mark.parametrize("link", [Near, Streaming])
def test_a_gauge_that_is_not_believed_any_more_is_not_waited_for(link):
    mission = mission_with(2, takes_s=5.0)
    robot = robot_of(mission, recharge_s=math.inf)
    with connected(mission, robot, link) as vehicle:
        settled_by(vehicle, Query(mission.world.domain.sites[-1], id="run/0", expected_cost=10.0))
        settled_by(vehicle, GoHome(0, "run/1", HOME))
        vehicle.link.wires[-1].hear(BatteryReport(share=60.0))  # in percent
        assert 5.0 <= settled_by(vehicle, Recharge(0, "run/2", 2, HOME)) < 6.0

"""A robot on ROS 2: Fast DDS between it and fieldbo, each a process, in a network of their own."""

from __future__ import annotations

import math
import sys
import time
from contextlib import contextmanager
from itertools import count

import numpy as np
import pytest
from peers.faults import FaultTable, Peer, Ran
from peers.network import cut, own_network
from peers.pond import SPEEDUP, check_logged, logged_pond, pond, pond_mission, still_lake
from peers.processes import SLOW_S, fieldbo, until
from working_folder import write

from fieldbo.domain.frame import Frame
from fieldbo.errors import InputError, VehicleError
from fieldbo.messages import Query
from fieldbo.mission.load import load_mission
from fieldbo.runs.runner import run as simulate
from fieldbo.testing import VehicleContract
from fieldbo.vehicles.base import LINKS
from fieldbo.vehicles.load import recorded_settings, vehicle_of
from fieldbo.vehicles.remote.link import (
    BatteryReport,
    Doubt,
    Goal,
    GoalRejected,
    GoalResult,
    Heartbeat,
    PositionReport,
    Reading,
    Unreachable,
)
from fieldbo.vehicles.remote.settings import Watch
from fieldbo.vehicles.ros2.link import Ros2, pose_of
from fieldbo.vehicles.ros2.node import Node, ros
from fieldbo.vehicles.ros2.streams import Ros2Nav2, Ros2Topics

POND = Frame(along="x", left="y")
FRAME = '[frame]\nalong = "x"\nleft = "y"\n'
ARRIVAL = "[arrival]\nwithin = 0.1\ndwell_s = 0.0\n"
ALL = ("ros2", "ros2-topics", "ros2-nav2")
DOMAINS = count(1)


@pytest.fixture(scope="module", autouse=True)
def network():
    """Nothing of another ROS 2 on this machine is heard here, and nothing goes past the network."""
    settings = {"FASTDDS_BUILTIN_TRANSPORTS": "UDPv4", "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
    with pytest.MonkeyPatch.context() as patch, own_network():
        for name, value in settings.items():
            patch.setenv(name, value)
        yield


# -- settings --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "my boat", "1st", "boat//left", "boat/", "boat-1"])
def test_an_invalid_ros_name_is_an_error(name):
    with pytest.raises(InputError, match="action = "):
        Ros2(action=name)


@pytest.mark.parametrize("number", [-1, 233])
def test_an_invalid_domain_is_an_error(number):
    with pytest.raises(InputError, match="domain_id = "):
        Ros2Topics(domain_id=number)


def test_an_address_has_the_whole_name_and_the_domain(monkeypatch):
    monkeypatch.setenv("ROS_DOMAIN_ID", "42")
    assert Ros2(namespace="boat").address == "ros2:/boat/visit (domain 42)"
    assert Ros2Nav2(namespace="boat", action="/go", domain_id=3).address == "ros2:/go (domain 3)"
    assert Ros2Topics().address == "ros2:/pose (domain 42)"


@pytest.mark.parametrize(
    ("kind", "module", "fix"),
    [
        (Ros2, "rclpy", "source your ROS 2"),
        (Ros2, "fieldbo_msgs.action", "ros/build.py"),
        (Ros2Nav2, "nav2_msgs.action", "nav2-msgs"),
    ],
)
def test_a_missing_package_is_an_error_that_says_how_to_install_it(kind, module, fix, tmp_path, monkeypatch):
    mission = pond_mission(tmp_path)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(VehicleError, match=fix):
        kind().open(mission, POND.over(mission.world.domain.axes), print)


@pytest.mark.parametrize("kind", [Ros2Topics, Ros2Nav2])
def test_a_robot_that_goes_by_poses_needs_a_frame(kind, tmp_path):
    with pytest.raises(VehicleError, match=r'along = "x"'):
        kind().open(pond_mission(tmp_path), None, print)


# -- what stands in the messages -------------------------------------------------------------------------


class Beside:
    """A link to a robot that is told what to say by the test, in this process; a context manager."""

    def __init__(self, folder, link, **settings):
        self.domain = next(DOMAINS)
        self.mission = pond_mission(folder)
        self.ground = POND.over(self.mission.world.domain.axes)
        self.robot, self.signals = Node(self.domain, ""), []
        self.link = link(domain_id=self.domain, **settings)

    def serve(self, answer, *, takes_on=True):
        """Serve Visit: `answer` ends a goal, and returns its result."""
        actions, kind = ros("rclpy.action"), ros("fieldbo_msgs.action").Visit
        response = actions.server.GoalResponse.ACCEPT if takes_on else actions.server.GoalResponse.REJECT
        name, told = self.link.action, {"goal_callback": lambda goal: response}
        self.robot.register(actions.ActionServer(self.robot.ros, kind, name, answer, **told))

    def publisher(self, module, kind, topic):
        return self.robot.ros.create_publisher(getattr(ros(module), kind), topic, 10)

    def heard(self, *kinds):
        """Wait for a signal of some kinds, and return it."""
        return until(lambda: next((one for one in self.signals if isinstance(one, kinds)), None))

    def said(self, say, kind):
        """Say something until a signal of a kind is heard, and return that."""

        def again():
            say()
            time.sleep(0.05)
            return next((one for one in self.signals if isinstance(one, kind)), None)

        return until(again)

    def __enter__(self):
        self.robot.start()
        self.connection = self.link.open(self.mission, self.ground, self.signals.append)
        return self

    def __exit__(self, *error):
        self.connection.close()
        if self.robot.running:
            self.robot.close()


def visited(handle, **told):
    """End a goal of Visit as done."""
    handle.succeed()
    return ros("fieldbo_msgs.action").Visit.Result(**told)


def test_a_result_has_the_site_and_time_of_each_value_and_its_channels(tmp_path):
    told = {"sites": [10.0, 0.0, 20.0, 1.0], "values": [1.0, math.nan], "seconds": [3.0, 8.0]}
    others = {"channels": ["temperature", "pH"], "others": [14.0, 14.5, 7.0, math.nan]}
    where = {"position": [20.0, 1.0], "cost": math.nan, "duration": 9.0}
    goals = []

    def answer(handle):
        goals.append(handle.request)
        return visited(handle, **told, **others, **where)

    beside = Beside(tmp_path, Ros2)
    beside.serve(answer)
    with beside:
        beside.connection.go(Goal("run/0#a", np.array([20.0, math.nan]), np.array([True, False]), level=2))
        done = beside.heard(GoalResult)

    assert (goals[0].id, list(goals[0].axes), goals[0].level) == ("run/0#a", ["x", "y"], 2)
    assert np.array_equal(goals[0].site, [20.0, math.nan], equal_nan=True)
    assert goals[0].pose.header.frame_id == ""
    assert (done.goal, done.complete, done.duration_s) == ("run/0#a", True, 9.0)
    assert done.sites.tolist() == [[10.0, 0.0], [20.0, 1.0]]
    assert np.array_equal(done.values, [1.0, math.nan], equal_nan=True)
    assert done.seconds.tolist() == [3.0, 8.0]
    assert math.isnan(done.cost)
    assert done.channels["temperature"].tolist() == [14.0, 14.5]
    assert np.array_equal(done.channels["pH"], [7.0, math.nan], equal_nan=True)


def test_a_goal_has_a_pose_in_metres_east_and_north(tmp_path):
    goals = []

    def answer(handle):
        goals.append(handle.request)
        return visited(handle)

    beside = Beside(tmp_path, Ros2, frame_id="pond")
    beside.serve(answer)
    with beside:
        beside.connection.go(Goal("run/0#a", np.array([20.0, 30.0]), home=True))
        beside.heard(GoalResult)

    pose = goals[0].pose
    assert pose.header.frame_id == "pond"
    assert (pose.pose.position.x, pose.pose.position.y, pose.pose.position.z) == (20.0, 30.0, 0.0)
    assert goals[0].home


def test_arrays_of_the_wrong_length_are_nan(tmp_path):
    beside = Beside(tmp_path, Ros2)
    beside.serve(lambda handle: visited(handle, values=[1.0, 2.0], sites=[3.0], channels=["pH"]))
    with beside:
        beside.connection.go(Goal("run/0#a", np.array([20.0, 0.0])))
        done = beside.heard(GoalResult)

    assert done.sites.shape == (2, 2)
    assert np.isnan([*done.sites.ravel(), *done.seconds, *done.channels["pH"]]).all()
    assert len(done.position) == 0


def test_a_program_that_aborts_cuts_the_goal_short(tmp_path):
    def fail(handle):
        handle.abort()
        return ros("fieldbo_msgs.action").Visit.Result()

    beside = Beside(tmp_path, Ros2)
    beside.serve(fail)
    with beside:
        beside.connection.go(Goal("run/0#a", np.array([20.0, 0.0])))
        done = beside.heard(GoalResult)

    assert (done.goal, done.complete, done.sites.shape) == ("run/0#a", False, (0, 2))


def test_an_unaccepted_goal_is_rejected_but_an_unaccepted_question_is_not(tmp_path):
    beside = Beside(tmp_path, Ros2)
    beside.serve(visited, takes_on=False)
    with beside:
        beside.heard(Heartbeat)
        assert beside.connection.ask("run/0#a")
        time.sleep(1.0)
        assert not [one for one in beside.signals if isinstance(one, GoalRejected)]
        beside.connection.go(Goal("run/1#a", np.array([20.0, 0.0])))
        assert beside.heard(GoalRejected).goal == "run/1#a"


def test_a_robot_that_leaves_is_unreachable_at_once(tmp_path):
    beside = Beside(tmp_path, Ros2)
    beside.serve(visited)
    with beside:
        beside.heard(Heartbeat)
        beside.robot.close()
        began = time.monotonic()
        assert "visit" in beside.heard(Unreachable).why
        assert time.monotonic() - began < Watch().silence_s


@pytest.mark.parametrize("kind", ALL)
def test_only_poses_in_the_agreed_frame_count(kind, tmp_path):
    link = type(LINKS.get(kind)())
    beside = Beside(tmp_path, link, pose="/boat/pose")
    places = beside.publisher("geometry_msgs.msg", "PoseStamped", "/boat/pose")
    with beside:
        here = pose_of(beside.link, beside.robot, beside.ground, np.array([20.0, 30.0]))
        assert beside.said(lambda: places.publish(here), PositionReport).position.tolist() == [20.0, 30.0]
        beside.signals.clear()
        here.header.frame_id = "odom"
        doubt = beside.said(lambda: places.publish(here), Doubt)
        assert "the topic /boat/pose in the frame 'odom', not 'map', are ignored" in doubt.why
        assert 'frame_id = "odom"' in doubt.fix
        assert not [one for one in beside.signals if isinstance(one, PositionReport | Unreachable)]


def test_battery_and_readings_become_reports(tmp_path):
    beside = Beside(tmp_path, Ros2Topics)
    charges = beside.publisher("sensor_msgs.msg", "BatteryState", "battery_state")
    readings = beside.publisher("std_msgs.msg", "Float64", "reading")
    with beside:
        charge, reading = ros("sensor_msgs.msg").BatteryState, ros("std_msgs.msg").Float64
        heard = beside.said(lambda: charges.publish(charge(percentage=0.25)), BatteryReport)
        assert (heard.share, heard.amount) == (0.25, None)
        beside.said(lambda: charges.publish(charge(percentage=62.0)), Doubt)
        beside.signals.clear()
        heard = beside.said(lambda: charges.publish(charge(percentage=0.5)), BatteryReport)
        while heard.share > 0.1:  # one of 62 was still on its way
            beside.signals.clear()
            heard = beside.said(lambda: charges.publish(charge(percentage=0.5)), BatteryReport)
        assert heard.share == pytest.approx(0.005)
        assert beside.said(lambda: readings.publish(reading(data=1.5)), Reading).value == 1.5


@pytest.mark.parametrize("kind", ALL)
def test_a_link_without_a_robot_closes_promptly(kind, tmp_path):
    mission = pond_mission(tmp_path)
    link = LINKS.get(kind)(domain_id=next(DOMAINS))
    connection = link.open(mission, POND.over(mission.world.domain.axes), print)
    connection.go(Goal("run/0#a", np.array([20.0, 0.0])))
    connection.hold()
    began = time.monotonic()
    connection.close()
    assert time.monotonic() - began < Watch().silence_s


# -- a robot in another process --------------------------------------------------------------------------


class Contract(VehicleContract):
    """Each test meets a robot of its own, in a domain of its own."""

    kind: str
    patience_s = SLOW_S

    @pytest.fixture(autouse=True)
    def _robot(self, tmp_path):
        self.folder, self.file = tmp_path, tmp_path / "robot.toml"
        link = f'[link]\nkind = "{self.kind}"\ndomain_id = {next(DOMAINS)}\n'
        write(self.file, f"format = 1\n{link}{FRAME}{ARRIVAL}")
        world = pond(tmp_path).parent / "pond" / "world.toml"
        with fieldbo("robot", self.file, "--world", world, "--speedup", SPEEDUP) as robot:
            robot.wait_for("ready")
            yield

    def mission(self):
        return pond_mission(self.folder)

    def vehicle(self, mission):
        return vehicle_of(recorded_settings(str(self.file)), mission)


class TestVisit(Contract):
    kind = "ros2"


class TestTopics(Contract):
    kind = "ros2-topics"


class TestNav2(Contract):
    kind = "ros2-nav2"


@pytest.mark.parametrize("kind", ALL)
def test_a_robot_that_is_held_right_after_a_goal_stays_in_place(kind, tmp_path):
    mission = pond_mission(tmp_path)
    ground = POND.over(mission.world.domain.axes)
    file, domain = tmp_path / "robot.toml", next(DOMAINS)
    write(file, f'format = 1\n[link]\nkind = "{kind}"\ndomain_id = {domain}\n{FRAME}')
    link, places = LINKS.get(kind)(domain_id=domain), []

    def hear(signal):
        if isinstance(signal, PositionReport):
            places.append(signal.position)

    with fieldbo("robot", file, "--world", tmp_path / "pond" / "world.toml") as robot:
        robot.wait_for("ready")
        hasty = link.open(mission, ground, hear)
        until(lambda: places)
        hasty.go(Goal("run/0#a", np.array([60.0, 50.0])))
        hasty.hold()
        hasty.close()
        places.clear()
        later = link.open(mission, ground, hear)
        until(lambda: len(places) > 20)
        later.close()

    assert np.ptp(places, axis=0).max() < 0.01
    assert np.abs(places[0]).max() < 3.0


@pytest.mark.parametrize("kind", ALL)
def test_a_hold_is_unsent_until_the_robot_has_it(kind, tmp_path):
    with on_its_way(kind, tmp_path) as (robot, connection, _):
        robot.freeze()
        connection.hold()
        until(lambda: "has not" in connection.unsent())
        time.sleep(0.5)
        assert "has not" in connection.unsent()
        robot.thaw()
        until(lambda: not connection.unsent())


def test_a_hold_reaches_a_robot_that_was_given_up_by_the_middleware(tmp_path):
    with on_its_way("ros2-topics", tmp_path) as (robot, connection, places):
        robot.freeze()
        connection.hold()
        until(lambda: "nobody listens" in connection.unsent())  # after the lease of Fast DDS, 20 s
        robot.thaw()
        until(lambda: not connection.unsent())
        until(lambda: np.ptp(places[-20:], axis=0).max() < 0.01)
        assert np.abs(places[-1] - FAR).max() > 1.0


FAR = np.array([60.0, 50.0])


@contextmanager
def on_its_way(kind, folder):
    """A robot on its way to `FAR`, the connection that sent it there, and where it says that it is."""
    mission = pond_mission(folder)
    ground = POND.over(mission.world.domain.axes)
    file, domain = folder / "robot.toml", next(DOMAINS)
    write(file, f'format = 1\n[link]\nkind = "{kind}"\ndomain_id = {domain}\n{FRAME}')
    places = []

    def hear(signal):
        if isinstance(signal, PositionReport):
            places.append(signal.position)

    with fieldbo("robot", file, "--world", folder / "pond" / "world.toml") as robot:
        robot.wait_for("ready")
        connection = LINKS.get(kind)(domain_id=domain).open(mission, ground, hear)
        try:
            connection.go(Goal("run/0#a", FAR))
            until(lambda: places and np.abs(places[-1]).max() > 0.2)
            yield robot, connection, places
        finally:
            connection.close()


# -- a whole mission -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ALL)
def test_a_mission_over_ros_visits_the_sites_of_a_simulation(kind, tmp_path):
    link = f'[link]\nkind = "{kind}"\ndomain_id = {next(DOMAINS)}\n'
    lake = '[frame]\nalong = "along"\ndepth = "depth"\n'
    haste = "[battery]\nfull = 600\naccuracy = 600\n"  # of a robot in haste, what is told is outdated
    file, out, battery = tmp_path / "boat.toml", tmp_path / "run", 600
    arrival = "[arrival]\nwithin = 0.01\ndwell_s = 0.0\n"
    write(file, f"format = 1\n{link}{lake}{haste}{arrival}[reports]\naccuracy = 0.01\n")
    mission = still_lake(tmp_path)
    told = ("--world", tmp_path / "lake" / "world.toml", "--seed", 7, "--battery", battery, "--speedup", 400)
    with fieldbo("robot", file, *told) as boat:
        boat.wait_for("ready")
        with fieldbo("run", mission, "--vehicle", file, "--out", out, "--battery", battery) as run:
            assert run.wait() == 0, run.output

    planned = simulate(load_mission(str(mission), {"agent": {"battery": battery}}).as_found())
    ran = Ran(0, "", out)
    assert [one.site.tolist() for one in ran.of(Query)] == [one.site.tolist() for one in planned.queries]
    assert [one.sites.tolist() for one in ran.visits] == [one.sites.tolist() for one in planned.observations]
    values = [one.values[-1] for one in ran.visits]
    assert values == pytest.approx([one.values[-1] for one in planned.observations], abs=1e-5)
    assert ran.summary["cost"] == pytest.approx(planned.cost)


@pytest.mark.parametrize("kind", ["ros2-topics", "ros2-nav2"])
def test_readings_on_the_way_arrive_over_topics_and_lie_where_they_were_taken(kind, tmp_path):
    mission, file = logged_pond(tmp_path), tmp_path / "boat.toml"
    link = f'[link]\nkind = "{kind}"\ndomain_id = {next(DOMAINS)}\n'
    write(file, f"format = 1\n{link}{FRAME}{ARRIVAL}[battery]\nfull = 400\n[reports]\naccuracy = 0.1\n")
    told = ("--world", tmp_path / "pond" / "world.toml", "--seed", 3, "--battery", 400, "--speedup", 8)
    with fieldbo("robot", file, *told) as boat:
        boat.wait_for("ready")
        out = tmp_path / "run"
        with fieldbo("run", mission, "--vehicle", file, "--out", out, cwd=tmp_path) as run:
            assert run.wait() == 0, run.output

    ran = Ran(0, "", out)
    assert ran.summary["home"]
    assert len(ran.of(Query)) == 3
    check_logged(load_mission(str(mission)), ran.told)


# -- what goes wrong -------------------------------------------------------------------------------------


class OverVisit(Peer):
    """A robot that serves Visit; the network can be cut."""

    tables = FRAME
    kind = "ros2"

    def start(self):
        self.link = f'kind = "{self.kind}"\ndomain_id = {next(DOMAINS)}\nchannels = {{ wind = "/wind" }}'

    def stop(self):
        cut(False)

    def cut(self):
        cut()

    def restore(self):
        cut(False)


class TestFaults(FaultTable):
    peer = OverVisit

    # Cutting the network does not cut what is on one machine.
    test_a_hold_that_can_not_be_sent_is_reported_at_once_and_sent_later = None
    test_a_robot_holds_in_a_long_gap_and_the_run_continues_after_it = None


class OverTopics(OverVisit):
    """A robot that goes by topics."""

    kind = "ros2-topics"
    tables = FRAME + ARRIVAL
    within = 0.1
    answers = False


class OverNav2(OverTopics):
    """A robot that is driven as Nav2 is."""

    kind = "ros2-nav2"


class Streamed:
    """The rows that come about without an answer to each order by its id."""

    trial = FaultTable.trial
    test_a_faultless_robot_visits_the_sites_of_a_simulation = (
        FaultTable.test_a_faultless_robot_visits_the_sites_of_a_simulation
    )
    test_a_robot_drives_round_obstacles_and_comes_home = (
        FaultTable.test_a_robot_drives_round_obstacles_and_comes_home
    )
    test_an_order_that_is_never_done_is_given_up_and_the_run_continues = (
        FaultTable.test_an_order_that_is_never_done_is_given_up_and_the_run_continues
    )
    test_a_robot_that_is_killed_and_restarted_continues = (
        FaultTable.test_a_robot_that_is_killed_and_restarted_continues
    )
    test_a_run_survives_a_gap_in_the_connection = FaultTable.test_a_run_survives_a_gap_in_the_connection
    test_the_watchdog_notices_a_silent_robot_in_time = (
        FaultTable.test_the_watchdog_notices_a_silent_robot_in_time
    )
    test_a_second_planner_is_refused_and_the_first_one_continues = (
        FaultTable.test_a_second_planner_is_refused_and_the_first_one_continues
    )
    test_a_robot_stands_still_while_the_wind_is_too_strong_and_then_goes_on = (
        FaultTable.test_a_robot_stands_still_while_the_wind_is_too_strong_and_then_goes_on
    )
    test_ctrl_c_stops_the_robot_and_the_run_can_be_resumed = (
        FaultTable.test_ctrl_c_stops_the_robot_and_the_run_can_be_resumed
    )


class TestFaultsOverTopics(Streamed):
    peer = OverTopics


class TestFaultsOverNav2(Streamed):
    peer = OverNav2

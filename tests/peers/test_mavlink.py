"""Vehicles that speak MAVLink, behind a router that may lose packets; each in a process of its own."""

from __future__ import annotations

import hashlib
import json
import math
import os
import pty
import random
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import tty
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from peers.faults import LEAST_S, SILENCE_S, FaultTable, Peer, Ran, Trial
from peers.pond import SPEEDUP, check_logged, logged_pond, pond, pond_mission, still_lake
from peers.processes import SLOW_S, fieldbo, free_port, python, until
from working_folder import write

from fieldbo.domain.frame import Frame, Origin
from fieldbo.errors import VehicleError
from fieldbo.messages import Lost, Observation, Query, Rejected
from fieldbo.mission.load import load_mission
from fieldbo.runs.runner import run as simulate
from fieldbo.testing import VehicleContract
from fieldbo.vehicles.load import recorded_settings, vehicle_of
from fieldbo.vehicles.mavlink.flight_plan import Track, plan_file, waypoints
from fieldbo.vehicles.mavlink.geofence import GeoFence
from fieldbo.vehicles.mavlink.link import Mavlink
from fieldbo.vehicles.mavlink.settings import Fence
from fieldbo.vehicles.remote.link import (
    ChannelReport,
    Goal,
    GoalRejected,
    GoalResult,
    Heartbeat,
    PositionReport,
    Reading,
    Reconnected,
)

HERE = Path(__file__).parent

POND = """[frame]
origin = { latitude = 47.31, longitude = 8.58, altitude = 406 }
along = "x"
left = "y"
"""

ARDUPILOT, PX4 = 3, 12
HOLD, GUIDED, OFFBOARD = 4, 15, 6 << 16
FAILSAFE_S = 5.0
"""How long an autopilot does without a ground station."""

ACCURACY_M = 0.05
ARRIVAL = "[arrival]\nwithin = 0.05\ndwell_s = 0.0"


class Router:
    """A relay, and the vehicle file of what lies beyond it; a context manager."""

    def __init__(self, *troubles):
        self.port = free_port(socket.SOCK_DGRAM)
        self.link = f'kind = "mavlink"\nconnection = "udpin:0.0.0.0:{self.port}"\nreading = "turbidity"'
        self.program = python(HERE / "relay.py", self.port, *troubles)
        self.pilots_port = int(self.program.wait_for("ready").rpartition(" ")[2])

    def toggle(self, now):
        """Be "gone", or come "back"."""
        self.program.process.send_signal(signal.SIGUSR1)
        self.program.wait_for(now)
        until(lambda: not self._unread(), what="all to be read that has passed")

    def _unread(self):
        """Return how many bytes wait to be read at this port."""
        rows = [line.split() for line in Path("/proc/net/udp").read_text().splitlines()[1:]]
        return sum(int(row[4].partition(":")[2], 16) for row in rows if row[1].endswith(f":{self.port:04X}"))

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.program.__exit__(None, None, None)


def drone(folder, router, frame=POND, *more, arrival=ARRIVAL):
    """Write a vehicle file, and return it."""
    tables = [f"[link]\n{router.link}", frame, f"[reports]\naccuracy = {ACCURACY_M}", arrival]
    write(folder / "drone.toml", "\n".join(["format = 1", *tables, *more, ""]))
    return folder / "drone.toml"


# -- messages --------------------------------------------------------------------------------------------


@pytest.fixture
def link_fence():
    """The fence in the vehicle file."""


@pytest.fixture
def on_the_air(tmp_path, link_fence):
    """What fieldbo hears of a vehicle, and a wire on which the test speaks as that vehicle."""
    from pymavlink import mavutil

    mission, port = pond_mission(tmp_path), free_port(socket.SOCK_DGRAM)
    link = Mavlink(f"udpin:127.0.0.1:{port}", "temp", fence=link_fence)
    ground = Frame(Origin(47.31, 8.58, 406.0), along="x", left="y").over(mission.world.domain.axes)
    heard = []
    connection = link.open(mission, ground, heard.append)
    wire = mavutil.mavlink_connection(f"udpout{link.connection[5:]}", source_system=1, source_component=1)
    until(lambda: heartbeat(wire) or heard, what="the link to be open")
    time.sleep(0.2)
    heard.clear()
    yield wire, heard, connection
    connection.close()


def heartbeat(wire, mode=HOLD, autopilot=ARDUPILOT):
    wire.mav.heartbeat_send(11, autopilot, 129, mode, 4)


def place(wire, boot_ms, east_m=0.0):
    longitude = round(8.58e7 + east_m / 111_195 / math.cos(math.radians(47.31)) * 1e7)
    wire.mav.global_position_int_send(boot_ms, 473_100_000, longitude, 406_000, 0, 0, 0, 0, 65_535)


def battery(wire, percent, number=0):
    wire.mav.battery_status_send(number, 0, 0, 32_767, [65_535] * 10, -1, -1, -1, percent)


def waited(heard, kind):
    """Return the first signal of a kind."""
    return until(lambda: next((one for one in heard if isinstance(one, kind)), None), what=kind.__name__)


def test_messages_of_the_vehicle_become_reports(on_the_air):
    wire, heard, _ = on_the_air
    heartbeat(wire)
    place(wire, 1000, east_m=20.0)
    battery(wire, 55)
    wire.mav.named_value_float_send(1000, b"temp", 14.5)
    wire.mav.named_value_float_send(1000, b"temp", math.nan)

    until(lambda: len(heard) == 5)
    alive, at, charge, read, failed = heard
    assert alive == Heartbeat()
    assert at.position == pytest.approx([20.0, 0.0], abs=0.1)
    assert (charge.share, read.value) == (0.55, 14.5)
    assert math.isnan(failed.value)


def test_the_wind_the_voltage_and_other_named_values_are_channels(on_the_air):
    """One that an onboard computer sends, as well."""
    wire, heard, _ = on_the_air
    wire.mav.srcComponent = 191
    wire.mav.named_value_float_send(1000, b"pressure", 3.5)
    wire.mav.wind_send(90.0, 99.0, 0.0)
    wire.mav.srcComponent = 1
    wire.mav.wind_send(90.0, 7.5, 0.0)
    wire.mav.wind_cov_send(0, 3.0, 4.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    wire.mav.battery_status_send(0, 0, 0, 32_767, [4000, 4100, 3900] + [65_535] * 7, -1, -1, -1, -1)

    until(lambda: len(heard) == 4)
    assert heard == [
        ChannelReport("pressure", 3.5),
        ChannelReport("wind", 7.5),
        ChannelReport("wind", 5.0),
        ChannelReport("voltage", 12.0),
    ]


def test_unknown_values_give_no_reports(on_the_air):
    """Neither a battery of -1%, nor a place where there is no fix, nor a reading from nobody knows where."""
    wire, heard, _ = on_the_air
    wire.mav.named_value_float_send(1000, b"temp", 14.5)
    wire.mav.global_position_int_send(1000, 0, 0, 0, 0, 0, 0, 0, 65_535)
    battery(wire, -1)
    battery(wire, 55, number=1)
    heartbeat(wire)

    waited(heard, Heartbeat)
    assert heard == [Heartbeat()]


def test_duplicate_and_overtaken_packets_are_ignored(on_the_air):
    wire, heard, _ = on_the_air
    packets, write = [], wire.write
    wire.write = packets.append
    heartbeat(wire)
    place(wire, 1000, east_m=10.0)
    place(wire, 1200, east_m=20.0)
    wire.write = write
    for number in (0, 0, 2, 1, 2, 1):
        wire.write(packets[number])
    heartbeat(wire)

    until(lambda: sum(isinstance(one, Heartbeat) for one in heard) == 2)
    (at,) = [one for one in heard if isinstance(one, PositionReport)]
    assert at.position[0] == pytest.approx(20.0, abs=0.1)


def test_an_incomplete_packet_ends_with_its_datagram(on_the_air):
    wire, heard, _ = on_the_air
    packets, write = [], wire.write
    wire.write = packets.append
    for east_m in range(10):
        place(wire, 1000 + 200 * east_m, east_m=east_m)
    wire.write = write
    for first, second in zip(packets[::2], packets[1::2], strict=True):
        write(b"\xfd\xff\x00\x00")  # of 255 bytes
        write(first + second)

    until(lambda: len(heard) == 10)
    assert [one.position[0] for one in heard] == pytest.approx(range(10), abs=0.1)


def test_heartbeats_of_other_components_are_no_sign_of_life(on_the_air):
    wire, heard, _ = on_the_air
    wire.mav.srcComponent = 100  # a camera
    heartbeat(wire)
    place(wire, 1000)
    wire.mav.srcComponent = 1
    place(wire, 1000, east_m=10.0)
    wire.mav.srcComponent = 191  # a computer on board, with the sensor
    wire.mav.named_value_float_send(7, b"temp", 14.5)

    assert waited(heard, Reading).value == 14.5
    assert [type(one) for one in heard] == [PositionReport, Reading]


def test_a_value_that_is_sent_again_is_not_a_new_reading(on_the_air):
    """Radios repeat packets, and sensors their last value; a sensor without a clock sends 0 as its time."""
    wire, heard, _ = on_the_air
    place(wire, 1000)
    for boot_ms, value in ((1000, 14.5), (1000, 14.5), (1200, 14.5), (1200, 15.0), (0, 15.0), (0, 15.0)):
        wire.mav.named_value_float_send(boot_ms, b"temp", value)
    heartbeat(wire)

    waited(heard, Heartbeat)
    assert [one.value for one in heard if isinstance(one, Reading)] == [14.5, 14.5, 15.0, 15.0, 15.0]


def received(wire, seconds):
    """Yield what the ground station sends within so many seconds; the vehicle supports no fences."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        message = wire.recv_match(blocking=True, timeout=0.05)
        if message is not None and message.get_type() == "MISSION_REQUEST_LIST":
            wire.mav.mission_ack_send(255, 190, 3, 1)  # MAV_MISSION_UNSUPPORTED
        elif message is not None:
            yield message


def let_pass(wire):
    """Read what was on its way: what comes after it was sent later."""
    received(wire, 0.2)


def targets(wire, seconds):
    """Return how far east the targets lie that are sent within so many seconds, in metres."""
    return [
        (message.lon_int / 1e7 - 8.58) * 111_195 * math.cos(math.radians(47.31))
        for message in received(wire, seconds)
        if message.get_type() == "SET_POSITION_TARGET_GLOBAL_INT"
    ]


@pytest.mark.parametrize(("stand_off", "degrees"), [(0.0, None), (4.0, 0.0), (-4.0, 180.0)])
def test_a_drone_beside_a_wall_is_told_to_face_it_and_how_high_above_its_dock_to_go(stand_off, degrees):
    from pymavlink import mavutil

    port, wall = free_port(socket.SOCK_DGRAM), load_mission("wall-damage-map")
    spec = replace(wall.vehicles[0], start=np.array([2.0, 6.0]))
    mission = replace(wall, vehicles=(spec,))
    link = Mavlink(f"udpin:127.0.0.1:{port}", "crack", altitude="relative", stand_off=stand_off)
    ground = Frame(Origin(47.31, 8.58), along="along", height="height").over(wall.world.domain.axes)
    heard = []
    connection = link.open(mission, ground, heard.append)
    try:
        wire = mavutil.mavlink_connection(f"udpout:127.0.0.1:{port}", source_system=1, source_component=1)
        until(lambda: heartbeat(wire, GUIDED) or heard, what="the link to be open")
        connection.go(Goal("run/0#a", np.array([2.0, 9.0])))
        aimed = next(
            message
            for message in received(wire, SLOW_S)
            if message.get_type() == "SET_POSITION_TARGET_GLOBAL_INT" or heartbeat(wire, GUIDED)
        )
    finally:
        connection.close()

    assert aimed.alt == pytest.approx(3.0)
    assert bool(aimed.type_mask & mavutil.mavlink.POSITION_TARGET_TYPEMASK_YAW_IGNORE) == (degrees is None)
    assert math.degrees(aimed.yaw) % 360.0 == pytest.approx(degrees or 0.0, abs=1e-4)


@pytest.mark.parametrize("bad_m", [190_000.0, 45.0], ids=["far away", "inside the domain"])
def test_after_a_bad_fix_the_vehicle_holds_where_it_was(bad_m, on_the_air):
    wire, _, connection = on_the_air
    connection.go(Goal("run/0#a", np.array([60.0, 0.0])))
    for k in range(10):
        heartbeat(wire, GUIDED)
        place(wire, 200 * k, east_m=0.2 * k)
        targets(wire, 0.2)
    place(wire, 2000, east_m=bad_m)
    time.sleep(0.2)
    targets(wire, 0.3)
    connection.hold()

    easts = targets(wire, 1.0)

    assert easts
    assert easts == pytest.approx([1.8] * len(easts), abs=0.7)


@pytest.mark.parametrize("bad_m", [None, 190_000.0, 45.0], ids=["good", "far away", "inside the domain"])
def test_a_vehicle_that_goes_on_behind_a_cut_link_holds_where_it_is_first_heard_of_again(on_the_air, bad_m):
    wire, _, connection = on_the_air
    connection.go(Goal("run/0#a", np.array([60.0, 0.0])))
    for k in range(10):
        heartbeat(wire, GUIDED)
        place(wire, 200 * k, east_m=0.5 * k)
        targets(wire, 0.2)
    connection.hold()
    until(lambda: "no position of the vehicle was heard since" in connection.unsent())
    targets(wire, 1.0)  # lost

    if bad_m is not None:
        place(wire, 2900, east_m=bad_m)
    for k in range(5):
        place(wire, 3000 + 200 * k, east_m=7.5)
        time.sleep(0.1)
    until(lambda: not connection.unsent())

    assert targets(wire, 1.0)[-1] == pytest.approx(7.5, abs=0.1)


def test_a_hold_right_after_the_guided_mode_was_requested_arrives_once_it_is_granted(on_the_air):
    wire, _, connection = on_the_air
    for k in range(5):
        heartbeat(wire, HOLD)
        place(wire, 200 * k, east_m=3.0)
        targets(wire, 0.1)
    connection.go(Goal("run/0#a", np.array([60.0, 0.0])))
    until(lambda: "mode 15" in commands(wire, 0.2))
    connection.hold()

    for k in range(5):
        heartbeat(wire, GUIDED)
        place(wire, 2000 + 200 * k, east_m=3.0)
        easts = targets(wire, 0.2)

    until(lambda: not connection.unsent())
    assert (easts or targets(wire, 1.0))[-1] == pytest.approx(3.0, abs=0.1)


def test_a_target_is_unsent_until_the_vehicle_is_armed_and_in_its_guided_mode(on_the_air):
    wire, _, connection = on_the_air
    disarmed = 1
    wire.mav.heartbeat_send(11, ARDUPILOT, disarmed, HOLD, 3)
    connection.go(Goal("run/0#a", np.array([60.0, 0.0])))
    until(lambda: "armed" in connection.unsent())
    assert targets(wire, 0.5) == []
    heartbeat(wire, HOLD)
    until(lambda: "not in its guided mode" in connection.unsent())
    heartbeat(wire, GUIDED)
    until(lambda: not connection.unsent())
    assert connection.unsent() == ""


def test_a_vehicle_whose_position_is_nowhere_plausible_can_not_be_held(on_the_air):
    wire, _, connection = on_the_air
    connection.go(Goal("run/0#a", np.array([60.0, 0.0])))
    for k in range(5):
        heartbeat(wire, GUIDED)
        place(wire, 200 * k, east_m=190_000.0)
        targets(wire, 0.1)
    connection.hold()

    until(lambda: "no plausible position" in connection.unsent())
    assert max(targets(wire, 1.0), default=60.0) < 61.0


def test_the_autopilots_failsafe_sees_a_heartbeat_of_station_255_each_second(on_the_air):
    wire, _, _ = on_the_air
    beats = [wire.recv_match(type="HEARTBEAT", blocking=True, timeout=SLOW_S) for _ in range(5)]
    gaps_s = np.diff([message._timestamp for message in beats[1:]])  # the first may have waited
    assert 0.5 < np.median(gaps_s) < FAILSAFE_S
    assert {(message.get_srcSystem(), message.type) for message in beats} == {(255, 6)}


def test_another_ground_station_with_the_same_number_is_reported_once(on_the_air, caplog):
    from pymavlink import mavutil

    wire, _, _ = on_the_air
    echo = wire.recv_match(type="HEARTBEAT", blocking=True, timeout=3.0)
    for _ in range(5):  # a router returns what fieldbo sent
        wire.write(echo.get_msgbuf())
    time.sleep(0.5)
    assert not caplog.messages
    other = mavutil.mavlink_connection(wire_address(wire), source_system=255, source_component=190)
    other.mav.seq = 200
    for _ in range(6):
        other.mav.heartbeat_send(6, 8, 0, 0, 4)
    (message,) = until(lambda: list(caplog.messages))
    assert "another ground station" in message
    assert "link.own_system" in message


def wire_address(wire):
    return "udpout:" + ":".join(str(part) for part in wire.destination_addr)


def test_a_second_planner_on_the_same_port_is_refused_at_once(tmp_path):
    pond_mission(tmp_path)
    with Router() as router:
        file = drone(tmp_path, router)
        with fieldbo("robot", file, "--world", tmp_path / "pond" / "world.toml") as boat:
            boat.wait_for("ready")
            with vehicle_of(recorded_settings(str(file)), pond_mission(tmp_path)):
                second = vehicle_of(recorded_settings(str(file)), pond_mission(tmp_path))
                began_s = time.monotonic()
                with pytest.raises(VehicleError, match="another program uses udpin"):
                    second.connect()
                assert time.monotonic() - began_s < 0.5 * second.watch.connect_s


def commands(wire, seconds):
    """Return what the ground station sends within so many seconds: names, or the mode that is asked for."""
    return [
        f"mode {message.param2:g}"
        if message.get_type() == "COMMAND_LONG" and message.command == 176
        else message.get_type()
        for message in received(wire, seconds)
    ]


@pytest.mark.parametrize(("autopilot", "mode", "often"), [(ARDUPILOT, GUIDED, False), (PX4, OFFBOARD, True)])
def test_a_target_is_sent_as_often_as_the_autopilot_needs_it(autopilot, mode, often, on_the_air):
    """PX4 leaves OFFBOARD without; ArduPilot keeps it, and would begin anew each time."""
    wire, _, connection = on_the_air
    connection.go(Goal("run/0#a", np.array([60.0, 0.0])))
    assert guided_until_aimed(wire, mode=mode, autopilot=autopilot)
    told = []
    while told.count("HEARTBEAT") < 5:  # of the station: one each second
        wire.mav.heartbeat_send(11, autopilot, 129, mode, 4)
        place(wire, round(1000 * time.monotonic()) + 100_000)
        told += commands(wire, 0.2)

    aimed = told.count("SET_POSITION_TARGET_GLOBAL_INT")
    assert aimed >= (8 if often else 3)
    assert often or aimed <= 7


def test_the_guided_mode_is_requested_again_after_a_restart_but_not_from_a_pilot(on_the_air, monkeypatch):
    monkeypatch.setattr("fieldbo.vehicles.mavlink.station._SOON_S", SLOW_S)  # no goal is outdated here
    wire, heard, connection = on_the_air
    aim = "SET_POSITION_TARGET_GLOBAL_INT"

    def sent(mode, clock):
        """Beat for a while, and return what came."""
        found = []
        for _ in range(8):
            heartbeat(wire, mode)
            place(wire, next(clock))
            found += commands(wire, 0.2)
        return set(found) & {"mode 15", aim}

    clock = count(100_000, 200)
    assert sent(HOLD, clock) == set()
    connection.go(Goal("run/0#a", np.array([60.0, 0.0])))
    until(lambda: "mode 15" in sent(HOLD, clock))
    until(lambda: aim in sent(GUIDED, clock))
    commands(wire, 0.5)
    sent(HOLD, clock)  # a pilot's hand
    assert waited(heard, GoalResult).complete is False
    connection.go(Goal("run/1#a", np.array([60.0, 0.0])))
    assert sent(HOLD, clock) == set()
    again = count(3_000, 200)
    until(lambda: "mode 15" in sent(HOLD, again))  # after a new start


def guided(wire, seconds, *, mode=GUIDED, autopilot=ARDUPILOT, armed=True, east_m=0.0):
    """Be in a mode at a place for so many seconds; return how far east the targets that come lie."""
    easts, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        wire.mav.heartbeat_send(11, autopilot, 129 if armed else 1, mode, 4)
        place(wire, round(1000 * time.monotonic()) + 100_000, east_m)
        easts += targets(wire, 0.2)
    return easts


def guided_until_aimed(wire, **how):
    """Be in a mode at a place until a target comes, and a little longer; return how far east they lie."""
    return until(lambda: guided(wire, 0.2, **how)) + guided(wire, 0.2, **how)


def guided_until(kind, wire, heard, **how):
    """Be in a mode at a place until a kind of report is heard; return how far east the targets lie."""
    easts = []
    until(lambda: easts.extend(guided(wire, 0.2, **how)) or any(isinstance(one, kind) for one in heard))
    return easts


def goal(number, east_m, *route, home=False):
    """Return a goal at so many metres east, on a route through some more points."""
    points = np.array([[float(x), 0.0] for x in (east_m, *route)])
    return Goal(f"run/{number}#a", points[0], home=home, route=points)


@pytest.mark.parametrize(("autopilot", "mode"), [(ARDUPILOT, GUIDED), (PX4, OFFBOARD)])
def test_after_a_pilot_moved_the_vehicle_no_target_from_before_is_sent(autopilot, mode, on_the_air):
    wire, heard, connection = on_the_air
    connection.go(goal(0, 60))
    guided_until_aimed(wire, mode=mode, autopilot=autopilot)
    guided_until(GoalResult, wire, heard, mode=HOLD, autopilot=autopilot)
    assert waited(heard, GoalResult).complete is False
    let_pass(wire)
    connection.go(goal(1, 50))
    assert guided(wire, 1.0, mode=HOLD, autopilot=autopilot, east_m=20.0) == []
    heard.clear()

    stays = guided_until(Reconnected, wire, heard, mode=mode, autopilot=autopilot, east_m=30.0)
    if autopilot == PX4:
        stays += guided_until_aimed(wire, mode=mode, autopilot=autopilot, east_m=30.0)
    stays += guided(wire, 1.0, mode=mode, autopilot=autopilot, east_m=30.0)

    assert isinstance(heard[1], Reconnected), heard[:3]  # with the heartbeat that shows the mode
    assert bool(stays) == (autopilot == PX4)  # it needs a target
    assert max(stays, default=0.0) < 31.0
    connection.go(goal(1, 40))
    easts = guided_until_aimed(wire, mode=mode, autopilot=autopilot, east_m=30.0)
    easts += guided(wire, 1.0, mode=mode, autopilot=autopilot, east_m=30.0)
    assert {round(east) for east in easts} - {round(east) for east in stays} == {40}  # one may be on its way
    assert round(easts[-1]) == 40


def test_a_goal_from_long_before_the_vehicle_is_armed_is_asked_for_again(on_the_air):
    wire, heard, connection = on_the_air
    connection.go(goal(0, 60))
    assert guided(wire, 2.5, mode=HOLD, armed=False) == []
    assert guided(wire, 1.0, mode=HOLD, east_m=30.0) == []
    assert not [report for report in heard if isinstance(report, Reconnected)]
    assert guided_until(Reconnected, wire, heard, east_m=30.0) == []
    assert guided(wire, 1.0, east_m=30.0) == []
    assert len([report for report in heard if isinstance(report, Reconnected)]) == 1
    connection.go(goal(0, 50))
    assert guided_until_aimed(wire, east_m=30.0)
    assert len([report for report in heard if isinstance(report, Reconnected)]) == 1


def test_after_a_restart_of_the_vehicle_its_goal_is_asked_for_again(on_the_air):
    wire, heard, connection = on_the_air
    connection.go(goal(0, 60))
    assert guided_until_aimed(wire)
    heartbeat(wire)
    place(wire, 10, east_m=20.0)
    waited(heard, Reconnected)
    let_pass(wire)
    assert targets(wire, 1.0) == []


class TestFence:
    """The vehicle file fences the vehicle within 45 m."""

    @pytest.fixture
    def link_fence(self):
        return Fence(radius=45.0)

    def test_a_route_that_leaves_the_fence_later_is_rejected_before_anything_moves(self, on_the_air):
        wire, heard, connection = on_the_air
        guided(wire, 0.5)
        connection.go(goal(0, 20, 30, 60))
        assert "outside the fence" in waited(heard, GoalRejected).reason
        assert guided(wire, 1.0) == []

    def test_a_later_point_of_an_accepted_route_is_never_rejected(self, on_the_air):
        wire, heard, connection = on_the_air
        guided(wire, 0.5)
        connection.go(goal(0, 20, 30))
        assert guided_until_aimed(wire)
        connection.go(goal(0, 60))
        assert guided_until_aimed(wire, east_m=20.0)
        guided(wire, 1.0, east_m=20.0)
        assert not [report for report in heard if isinstance(report, GoalRejected | GoalResult)]

    def test_a_route_from_where_a_pilot_left_the_vehicle_is_cut_short(self, on_the_air):
        wire, heard, connection = on_the_air
        guided(wire, 0.5)
        connection.go(goal(0, 20, 30))
        guided_until_aimed(wire)
        guided_until(GoalResult, wire, heard, mode=HOLD)
        connection.go(goal(1, 20, 30))
        guided(wire, 0.5, mode=HOLD)
        guided_until(Reconnected, wire, heard, east_m=10.0)
        heard.clear()
        connection.go(goal(1, 20, 60))
        assert waited(heard, GoalResult).complete is False
        assert not [report for report in heard if isinstance(report, GoalRejected)]
        assert max(guided_until_aimed(wire, east_m=10.0)) < 11.0  # where it is
        assert max(guided(wire, 1.0, east_m=10.0), default=0.0) < 11.0

    def test_no_fence_forbids_the_trip_home(self, on_the_air):
        wire, _, connection = on_the_air
        guided(wire, 0.5)
        connection.go(goal(0, 60, home=True))
        assert {round(east) for east in guided_until_aimed(wire)} == {60}
        assert {round(east) for east in guided(wire, 1.0)} <= {60}


def test_the_trip_home_waits_for_no_fence(on_the_air):
    wire, heard, connection = on_the_air
    object.__setattr__(connection._link, "upload_fence", True)
    connection.go(goal(0, 20))
    heartbeat(wire)
    until(lambda: wire.recv_match(type="MISSION_REQUEST_LIST"))  # which nobody answers
    connection.go(goal(1, 60, home=True))
    began_s, easts = time.monotonic(), []
    while not easts and time.monotonic() < began_s + 2.5:
        heartbeat(wire, GUIDED)
        message = wire.recv_match(type="SET_POSITION_TARGET_GLOBAL_INT", blocking=True, timeout=0.2)
        easts += [] if message is None else [message.lon_int]
    assert easts
    assert not [report for report in heard if isinstance(report, GoalRejected)]


class TestContract(VehicleContract):
    """Each test meets a robot of its own."""

    patience_s = SLOW_S

    @pytest.fixture(autouse=True)
    def _robot(self, tmp_path):
        self.folder = tmp_path
        pond(tmp_path)
        with Router() as router:
            self.file = drone(tmp_path, router)
            world = ("--world", tmp_path / "pond" / "world.toml", "--speedup", SPEEDUP)
            with fieldbo("robot", self.file, *world) as robot:
                robot.wait_for("ready")
                yield

    def mission(self):
        return pond_mission(self.folder)

    def vehicle(self, mission):
        return vehicle_of(recorded_settings(str(self.file)), mission)


class BehindRouter(Peer):
    """A robot behind a router that can be gone for a while."""

    tables = f"{POND}\n{ARRIVAL}"
    within = ACCURACY_M
    answers = False
    fence = ""

    def start(self):
        self.router = Router()
        self.link = self.router.link + self.fence

    def stop(self):
        self.router.__exit__()

    def cut(self):
        self.router.toggle("gone")

    def restore(self):
        self.router.toggle("back")


class FencedIn(BehindRouter):
    """And within a fence."""

    fence = "\nfence = { radius = 45.0 }"


class TestFaults(FaultTable):
    peer = BehindRouter

    # What an autopilot does without a ground station is a matter of its own failsafe.
    test_a_robot_whose_planner_is_killed_stops_by_itself = None
    test_a_robot_whose_planner_is_killed_goes_home_by_itself = None
    test_a_robot_holds_in_a_long_gap_and_the_run_continues_after_it = None

    def test_a_rejected_order_costs_nothing_and_the_run_continues(self, tmp_path):
        """No place to go to is ever acknowledged: what refuses is the fence."""
        with FencedIn(tmp_path) as peer, Trial(tmp_path, peer) as trial:
            trial.robot()

            ran = trial.run()

            trial.check(ran)
            asked = {one.id: float(np.hypot(*one.site)) for one in ran.of(Query)}
            refused = [one.order for one in ran.of(Rejected)]
            assert refused == [order for order, far in asked.items() if far > 45]
            assert refused
            assert [one.order for one in ran.visits] == [order for order in asked if order not in refused]
            assert ran.summary["home"]

    def test_a_result_after_its_order_was_given_up_still_counts_once(self, trial):
        """A reading has no order's name: one that comes later belongs to none."""
        trial.write_file(silence_s=SILENCE_S, least_s=LEAST_S)
        trial.robot(f"late:2:{LEAST_S + SILENCE_S + 2.0}")

        ran = trial.run()

        trial.check(ran)
        self._cut_short_and_gone_on(ran, 2)

    @staticmethod
    def _cut_short_and_gone_on(ran, number):
        orders = [one.id for one in ran.of(Query)]
        (short,) = [one for one in ran.told if not one.complete]
        assert (short.order, len(short.values)) == (orders[number], 0)
        assert [one.order for one in ran.visits] == [order for order in orders if order != short.order]


# -- a whole mission -------------------------------------------------------------------------------------

LAKE = """[frame]
origin = { latitude = 47.31, longitude = 8.58, altitude = 406 }
bearing = 90
along = "along"
depth = "depth"
"""
BATTERY_S = 400
POOR = ("--loss", 0.25, "--double", 0.2, "--late", 0.3, "--late-s", 0.4)


def robot(file, world, *more):
    """Return fieldbo's own simulated robot, as a program; its modes are ArduPilot's."""
    return fieldbo("robot", file, "--world", world, *more)


def mavsdk(file, world, *more):
    """Return a vehicle on MAVSDK's C++ library, as a program; its modes are PX4's."""
    return python(HERE / "mavsdk_vehicle.py", file, world, *more)


@pytest.mark.parametrize("vehicle", [robot, mavsdk])
@pytest.mark.parametrize("troubles", [(), POOR], ids=["good link", "poor link"])
def test_a_mission_over_mavlink_visits_the_sites_of_a_simulation(vehicle, troubles, tmp_path):
    """Also where a quarter of all packets is lost, and others come twice, late and in disorder."""
    lake = still_lake(tmp_path)
    with Router(*troubles) as router:
        # of a robot in haste, what is told is outdated
        battery = f"[battery]\nfull = {BATTERY_S}\naccuracy = {BATTERY_S}"
        file = drone(tmp_path, router, LAKE, battery, arrival=f"{ARRIVAL}\nsettle_s = 0.5")
        haste = ("--seed", 7, "--battery", BATTERY_S, "--speedup", 40)
        with vehicle(file, tmp_path / "lake" / "world.toml", *haste) as boat:
            boat.wait_for("ready")
            out = tmp_path / "run"
            files = ("--vehicle", file, "--out", out, "--battery", BATTERY_S)
            with fieldbo("run", lake, *files) as run:
                assert run.wait() == 0, run.output

    mission, ran = load_mission(str(lake), {"agent": {"battery": BATTERY_S}}), Ran(0, "", out)
    queries, visits = ran.of(Query), ran.visits
    assert [(visit.order, visit.sites.tolist()) for visit in visits] == [
        (query.id, [query.site.tolist()]) for query in queries
    ]
    gaps = [visit.values[-1] - mission.world.truth(visit.sites)[-1] for visit in visits]
    assert np.abs(gaps).max() < 1e-5
    if troubles:  # where the next target is late, the robot samples on the way, which costs
        return
    planned = simulate(mission.as_found())
    assert [query.site.tolist() for query in queries] == [query.site.tolist() for query in planned.queries]
    values = [visit.values[-1] for visit in visits]
    assert values == pytest.approx([visit.values[-1] for visit in planned.observations], abs=1e-5)
    assert ran.summary["cost"] == pytest.approx(planned.cost)


@pytest.mark.parametrize(("troubles", "least"), [((), 0.5), (POOR, 0.25)], ids=["good link", "poor link"])
def test_readings_on_the_way_arrive_over_mavlink_and_lie_where_they_were_taken(troubles, least, tmp_path):
    mission = logged_pond(tmp_path)
    with Router(*troubles) as router:
        file = drone(tmp_path, router, POND, "[battery]\nfull = 400")
        told = ("--seed", 3, "--battery", 400, "--speedup", 4)
        with robot(file, tmp_path / "pond" / "world.toml", *told) as boat:
            boat.wait_for("ready")
            out = tmp_path / "run"
            with fieldbo("run", mission, "--vehicle", file, "--out", out, cwd=tmp_path) as run:
                assert run.wait() == 0, run.output

    ran = Ran(0, "", out)
    assert ran.summary["home"]
    check_logged(load_mission(str(mission)), ran.told, least)


# -- who has the vehicle ---------------------------------------------------------------------------------


class PilotsHand:
    """A second ground station, whose commands reach the vehicle through the router."""

    def __init__(self, router):
        from pymavlink import mavutil

        self.wire = mavutil.mavlink_connection(f"udpout:127.0.0.1:{router.pilots_port}")

    def mode(self, number):
        self.wire.mav.command_long_send(1, 1, 176, 0, 1, number, 0, 0, 0, 0, 0)

    def arm(self, on):
        self.wire.mav.command_long_send(1, 1, 400, 0, int(on), 0, 0, 0, 0, 0, 0)


@pytest.fixture
def afloat(tmp_path):
    """A boat in the pond, fieldbo's vehicle to it, and a pilot."""
    mission = pond_mission(tmp_path)
    with Router() as router:
        file = drone(tmp_path, router)
        with robot(file, tmp_path / "pond" / "world.toml", "--speedup", 5) as boat:
            boat.wait_for("ready")
            with vehicle_of(recorded_settings(str(file)), mission) as vehicle:
                yield boat, vehicle, PilotsHand(router)


def listened(vehicle, seconds):
    """Return what a vehicle tells within so many seconds."""
    end, told = time.monotonic() + seconds, []
    while time.monotonic() < end:
        told += vehicle.events(0.05)
    return told


def settled(vehicle):
    """Wait for what came of an order, and return it."""
    found = []
    until(lambda: found.extend(e for e in vehicle.events(0.05) if hasattr(e, "order")) or found)
    return found[0]


def test_a_pilot_who_takes_control_keeps_it_until_it_is_returned(afloat):
    boat, vehicle, pilot = afloat
    vehicle.send(Query([60.0, 50.0], expected_cost=80.0, id="run/0"))
    boat.wait_for("GUIDED")
    listened(vehicle, 1.0)

    pilot.mode(HOLD)
    boat.wait_for("HOLD")
    cut = settled(vehicle)
    assert (cut.order, cut.complete, len(cut.values)) == ("run/0", False, 0)
    assert 0 < cut.position[0] < 60

    vehicle.send(Query([0.0, 10.0], expected_cost=60.0, id="run/1"))
    assert not [event for event in listened(vehicle, 3.0) if hasattr(event, "order")]
    assert boat.lines[-1] == "armed, HOLD"  # nobody asked it for anything else

    pilot.mode(GUIDED)
    done = settled(vehicle)
    assert (done.order, done.complete, done.position.tolist()) == ("run/1", True, [0.0, 10.0])


@pytest.mark.parametrize(("firmware", "vehicle"), [("px4", "copter"), ("ardupilot", "copter")])
def test_fieldbo_guides_the_simulated_vehicle_that_the_file_names(firmware, vehicle, tmp_path):
    mission = pond(tmp_path)
    with Router() as router:
        file = drone(tmp_path, router, POND, "[battery]\nfull = 4000")
        text = file.read_text().replace("[link]", f'[link]\nfirmware = "{firmware}"\nvehicle = "{vehicle}"')
        write(file, text)
        with robot(file, tmp_path / "pond" / "world.toml", "--battery", 4000, "--speedup", 20) as afloat:
            afloat.wait_for("ready")
            with fieldbo("run", mission, "--vehicle", file, "--out", tmp_path / "run", cwd=tmp_path) as run:
                assert run.wait() == 0, run.output
            afloat.wait_for("armed, OFFBOARD" if firmware == "px4" else "armed, GUIDED")
    assert len(Ran(0, "", tmp_path / "run").visits) > 2


@pytest.mark.parametrize(
    ("firmware", "vehicle", "mode"),
    [("ardupilot", "boat", "GUIDED"), ("ardupilot", "copter", "GUIDED"), ("px4", "copter", "HOLD")],
)
def test_mavsdk_sends_the_simulated_vehicle_somewhere(firmware, vehicle, mode, tmp_path):
    pond_mission(tmp_path)
    port = free_port(socket.SOCK_DGRAM)
    link = f'kind = "mavlink"\nconnection = "udpin:127.0.0.1:{port}"\nfirmware = "{firmware}"'
    write(tmp_path / "drone.toml", f'format = 1\n[link]\n{link}\nvehicle = "{vehicle}"\n{POND}')
    world = tmp_path / "pond" / "world.toml"
    station = HERE / "mavsdk_station.py"
    with robot(tmp_path / "drone.toml", world, "--speedup", 50) as afloat:
        afloat.wait_for("ready")
        with python(station, f"udpin://127.0.0.1:{port}", 47.3102, 8.5803, 406.0) as ground:
            ground.wait_for("goto: SUCCESS")
            ground.wait_for("arrived in")
        assert mode in afloat.wait_for(f"armed, {mode}, repositioned")


def test_an_order_waits_until_a_pilot_has_armed_the_vehicle(afloat):
    boat, vehicle, pilot = afloat
    pilot.arm(False)
    boat.wait_for("disarmed")
    listened(vehicle, 2.0)  # its next heartbeat says so

    vehicle.send(Query([10.0, 10.0], expected_cost=20.0, id="run/0"))
    assert not [event for event in listened(vehicle, 3.0) if hasattr(event, "order")]
    assert boat.lines[-1] == "disarmed, HOLD"

    pilot.arm(True)
    assert isinstance(settled(vehicle), Observation)


def test_noise_and_other_systems_on_the_link_do_no_harm(afloat, tmp_path):
    _, vehicle, _ = afloat
    from pymavlink import mavutil

    port = int(vehicle.link.connection.rpartition(":")[2])
    stranger = mavutil.mavlink_connection(f"udpout:127.0.0.2:{port}", source_system=9, source_component=1)
    rng = random.Random(1)
    vehicle.send(Query([20.0, 10.0], expected_cost=20.0, id="run/0"))
    found = []
    while not found:
        stranger.mav.heartbeat_send(2, 3, 129, HOLD, 4)
        stranger.mav.global_position_int_send(5, 0x7FFFFFFF, -0x7FFFFFFF, 0, 0, 0, 0, 0, 0)
        stranger.mav.named_value_float_send(5, b"turbidity", 1e9)
        stranger.write(bytes(rng.randrange(256) for _ in range(rng.randrange(1, 300))))
        stranger.write(b"\xfd\x09\x00\x00")
        found = [event for event in vehicle.events(0.05) if hasattr(event, "order")]

    assert found[0].position.tolist() == [20.0, 10.0]
    assert abs(found[0].values[0]) < 10


# -- other ways to a vehicle -----------------------------------------------------------------------------


def test_a_vehicle_that_hangs_up_on_tcp_is_lost_at_once_and_found_again(tmp_path):
    mission, world = pond_mission(tmp_path), tmp_path / "pond" / "world.toml"
    tables = f'[link]\nkind = "mavlink"\nconnection = "tcp:127.0.0.1:{free_port()}"\n{POND}\n{ARRIVAL}'
    write(tmp_path / "drone.toml", f"format = 1\n{tables}\n[watch]\nsilence_s = 10\n")
    file = tmp_path / "drone.toml"
    with robot(file, world, "--speedup", 5) as boat:
        boat.wait_for("ready")
        with vehicle_of(recorded_settings(str(file)), mission) as vehicle:
            vehicle.send(Query([10.0, 0.0], id="run/0"))
            assert isinstance(settled(vehicle), Observation)
            vehicle.send(Query([60.0, 50.0], id="run/1"))
            listened(vehicle, 1.0)
            boat.kill()
            gone_s = time.monotonic()
            lost = settled(vehicle)
            assert isinstance(lost, Lost)
            assert "tcp:127.0.0.1" in lost.reason
            assert time.monotonic() < gone_s + 0.5 * vehicle.watch.silence_s
            with robot(file, world, "--speedup", 5) as other:
                other.wait_for("ready")
                listened(vehicle, 3.0)
                vehicle.send(Query([10.0, 0.0], id="run/2"))
                assert isinstance(settled(vehicle), Observation)
                vehicle.close()
                with vehicle_of(recorded_settings(str(file)), mission) as again:
                    again.send(Query([20.0, 0.0], id="run/0"))
                    assert isinstance(settled(again), Observation)


def test_fieldbo_calls_a_vehicle_that_listens(tmp_path):
    mission, world = pond_mission(tmp_path), tmp_path / "pond" / "world.toml"
    file, port = tmp_path / "drone.toml", free_port(socket.SOCK_DGRAM)
    link = f'[link]\nkind = "mavlink"\nconnection = "udpout:127.0.0.1:{port}"\naltitude = "relative"'
    write(file, f"format = 1\n{link}\n{POND}\n{ARRIVAL}")
    with robot(file, world, "--speedup", 5) as boat:
        boat.wait_for("ready")
        with vehicle_of(recorded_settings(str(file)), mission) as vehicle:
            vehicle.send(Query([10.0, 0.0], id="run/0"))
            assert settled(vehicle).position == pytest.approx([10.0, 0.0], abs=ACCURACY_M)


def test_a_vehicle_on_a_serial_port_is_reached_through_its_radio(tmp_path):
    """The radio: a pseudo-terminal, whose bytes go to the robot in pieces that end anywhere."""
    mission, world, port = (
        pond_mission(tmp_path),
        tmp_path / "pond" / "world.toml",
        free_port(socket.SOCK_DGRAM),
    )
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    for name, connection in (("drone", os.ttyname(theirs)), ("robot", f"udpin:127.0.0.1:{port}")):
        link = f'[link]\nkind = "mavlink"\nconnection = "{connection}"'
        write(tmp_path / f"{name}.toml", f"format = 1\n{link}\n{POND}\n{ARRIVAL}")
    with Radio(ours, port), robot(tmp_path / "robot.toml", world) as boat:
        boat.wait_for("ready")
        with vehicle_of(recorded_settings(str(tmp_path / "drone.toml")), mission) as vehicle:
            vehicle.send(Query([0.0, 0.0], id="run/0"))
            assert isinstance(settled(vehicle), Observation)
    os.close(theirs)
    os.close(ours)


class Radio:
    """Passes on what comes from a terminal, a few bytes at a time, and from a UDP port; a context manager."""

    def __init__(self, terminal, port):
        self.terminal, self.over = terminal, threading.Event()
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", port))
        self.thread = threading.Thread(target=self.transmit)

    def transmit(self):
        boat = None
        while not self.over.is_set():
            for one in select.select([self.terminal, self.socket], [], [], 0.1)[0]:
                if one is self.socket:
                    data, boat = self.socket.recvfrom(65_536)
                    os.write(self.terminal, data)
                elif boat is not None:
                    self.socket.sendto(os.read(self.terminal, 7), boat)

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *error):
        self.over.set()
        self.thread.join()
        self.socket.close()


# -- plans -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("troubles", [(), ("--loss", 0.3, "--double", 0.2)], ids=["good link", "poor link"])
def test_an_uploaded_plan_arrives_item_by_item(troubles, tmp_path):
    with Router(*troubles) as router:
        file = drone(tmp_path, router, LAKE)
        with mavsdk(file, "lake-transect") as boat:
            boat.wait_for("ready")
            again = ("--set", "policy.lines=4", "--set", "policy.samples=3")
            plan = ("plan", "lake-lawnmower", "--vehicle", file, "--stay", 7, "--out", tmp_path / "lake.plan")
            with fieldbo(*plan, "--upload", *again) as program:
                assert program.wait() == 0, program.output
            got = json.loads(boat.wait_for("mission ").partition(" ")[2])

    items = json.loads((tmp_path / "lake.plan").read_text())["mission"]["items"]
    assert len(got) == len(items) > 10
    for number, (one, item) in enumerate(zip(got, items, strict=True)):
        latitude, longitude, altitude = item["params"][4:]
        assert (one["seq"], one["command"], one["frame"]) == (number, 16, 5)
        assert (one["x"], one["y"]) == (round(latitude * 1e7), round(longitude * 1e7))
        assert one["z"] == pytest.approx(altitude, abs=1e-4)
        assert (one["param1"], one["autocontinue"]) == (item["params"][0], 1)
        assert one["param1"] in (0.0, 7.0, 14.0)  # the start is also the first site
        assert one["current"] == int(number == 0)
        assert math.isnan(one["param4"])


@pytest.mark.parametrize("altitude", ["absolute", "relative"])
def test_mavsdk_reads_a_plan_file_as_it_was_meant(altitude, tmp_path):
    """MAVSDK reads it, which reads those of QGroundControl."""
    from mavsdk.component_type import ComponentType
    from mavsdk.mavsdk import Configuration, Mavsdk
    from mavsdk.plugins.mission_raw import MissionRaw

    axes = pond_mission(tmp_path).world.domain.axes
    ground = Frame(Origin(47.31, 8.58, 406.0), along="x", left="y").over(axes)
    link = Mavlink(f"udpin:127.0.0.1:{free_port(socket.SOCK_DGRAM)}", altitude=altitude)
    points = np.array([[60.0, 0.0], [0, 0], [10, 50], [60, 0]])
    fence = GeoFence(ground)
    way = waypoints(Track(points, np.array([False, True, True, True])), fence, stay_s=4.0)
    write(
        tmp_path / "boat.toml",
        f'format = 1\n[link]\nkind = "mavlink"\nconnection = "{link.connection}"\n{POND}',
    )
    with (
        robot(tmp_path / "boat.toml", tmp_path / "pond" / "world.toml"),
        Mavsdk(Configuration.create_with_component_type(ComponentType.GROUND_STATION)) as station,
    ):
        station.add_any_connection(link.connection.replace(":", "://", 1))
        boat = station.first_autopilot(timeout_s=30.0)
        read = MissionRaw(boat).import_qgroundcontrol_mission_from_string(
            plan_file(way, fence, link, points[0])
        )

    items = read.mission_items[-len(way) :]  # of a boat of ArduPilot's modes, home comes first
    assert [(one.x, one.y) for one in items] == [
        (round(one.latitude * 1e7), round(one.longitude * 1e7)) for one in way
    ]
    assert [one.z for one in items] == pytest.approx([one.altitude for one in way], abs=1e-4)
    assert {(one.command, one.param1, one.autocontinue) for one in items} == {(16, 4.0, 1)}
    assert {one.frame for one in items} == {0 if altitude == "absolute" else 3}


# -- fences ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_robot_writes_its_track_when_a_signal_switches_it_off(number, tmp_path):
    pond(tmp_path)
    file, track = tmp_path / "boat.toml", tmp_path / "track.csv"
    connection = f"udpin:127.0.0.1:{free_port(socket.SOCK_DGRAM)}"
    write(file, f'format = 1\n[link]\nkind = "mavlink"\nconnection = "{connection}"\nreading = "t"\n{POND}\n')
    with robot(file, tmp_path / "pond" / "world.toml", "--track", track) as boat:
        boat.wait_for("ready")
        boat.process.send_signal(number)
        assert boat.wait() == 0, boat.output
    assert "switched off" in boat.output
    assert "Traceback" not in boat.output
    assert track.read_text().splitlines()[0] == "x,y,time_s"


@pytest.mark.parametrize("troubles", [(), ("--loss", 0.2, "--double", 0.2)], ids=["good link", "poor link"])
def test_an_uploaded_fence_is_read_back_and_stays(troubles, tmp_path):
    pond(tmp_path)
    with Router(*troubles) as router:
        router.link += "\nupload_fence = true"
        file, world = drone(tmp_path, router), tmp_path / "pond" / "world.toml"
        with robot(file, world) as boat:
            boat.wait_for("ready")
            files = ("--vehicle", file, "--out", tmp_path / "a.plan")
            for first in (True, False):
                with fieldbo("plan", tmp_path / "pond.toml", *files, "--upload") as program:
                    assert program.wait() == 0, program.output
                    assert ("the vehicle has no fence" in program.output) == first
                    assert ("verified it by reading it back" in program.output) == first
            stored = [line for line in boat.lines if line.startswith("stored")]

    polygons = json.loads((tmp_path / "a.plan").read_text())["geoFence"]["polygons"]
    assert [polygon["inclusion"] for polygon in polygons] == [True]
    fences = [line for line in stored if line.endswith("of kind 1")]
    assert set(fences) == {f"stored {len(polygons[0]['polygon'])} items of kind 1"}


@pytest.mark.parametrize("upload", [True, False])
def test_the_fence_is_settled_before_the_vehicle_is_guided(upload, tmp_path, caplog):
    mission = pond_mission(tmp_path)
    with Router() as router:
        router.link += f"\nupload_fence = {str(upload).lower()}"
        file = drone(tmp_path, router)
        with robot(file, tmp_path / "pond" / "world.toml", "--speedup", 20) as boat:
            boat.wait_for("ready")
            with vehicle_of(recorded_settings(str(file)), mission) as vehicle:
                vehicle.send(Query([10.0, 10.0], expected_cost=20.0, id="run/0"))
                assert isinstance(settled(vehicle), Observation)
            lines = [line for line in boat.lines if line.startswith(("stored", "armed, GUIDED"))]
    assert lines == [*(["stored 4 items of kind 1"] if upload else []), "armed, GUIDED"]
    assert "the vehicle has no fence" in caplog.text


def test_a_vehicle_that_does_not_keep_the_fence_gets_no_order(on_the_air):
    """Its own, empty fence is what it tells even after it accepted another."""
    wire, heard, connection = on_the_air
    object.__setattr__(connection._link, "upload_fence", True)
    connection.go(Goal("run/0#a", np.array([10.0, 0.0])))
    deadline = time.monotonic() + SLOW_S
    targets = []
    while not any(isinstance(one, GoalRejected) for one in heard) and time.monotonic() < deadline:
        heartbeat(wire)
        place(wire, round(1000 * time.monotonic()))
        while (message := wire.recv_match(blocking=True, timeout=0.05)) is not None:
            kind = message.get_type()
            if kind == "MISSION_REQUEST_LIST":
                wire.mav.mission_count_send(255, 190, 0, 1)
            elif kind == "MISSION_COUNT":
                wire.mav.mission_ack_send(255, 190, 0, 1)
            elif kind == "SET_POSITION_TARGET_GLOBAL_INT":
                targets.append(message)
    (rejected,) = [one for one in heard if isinstance(one, GoalRejected)]
    assert "the vehicle's fence differs from the one uploaded" in rejected.reason
    assert targets == []


# -- signing ---------------------------------------------------------------------------------------------


IMPORTED_BEFORE = """
import os
os.environ.pop("MAVLINK20", None)
from pymavlink import mavutil
assert mavutil.mavlink.WIRE_PROTOCOL_VERSION == "1.0"
from fieldbo.vehicles.mavlink import wire
from fieldbo.vehicles.mavlink.settings import MavlinkSettings
link = MavlinkSettings(connection="udpout:127.0.0.1:9", reading="temp", signing_key_from="BOAT_KEY")
opened = wire.opened(link, link.connection, wire.mavutil(link), system=255, component=190)
opened.auto_mavlink_version(bytes([253]))  # the first byte of a packet of MAVLink 2
print(opened.WIRE_PROTOCOL_VERSION, opened.mav.signing.secret_key.hex())
"""


def test_the_key_counts_even_if_pymavlink_was_imported_before_for_mavlink_1(monkeypatch):
    monkeypatch.setenv("BOAT_KEY", "perch")
    command = [sys.executable, "-c", IMPORTED_BEFORE]
    said = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout
    assert said.split() == ["2.0", hashlib.sha256(b"perch").hexdigest()]


def test_signed_messages_are_heard_only_with_the_same_key(tmp_path, monkeypatch):
    mission, world = pond_mission(tmp_path), tmp_path / "pond" / "world.toml"
    with Router() as router:
        router.link += '\nsigning_key_from = "BOAT_KEY"'
        file = drone(tmp_path, router, POND, "[watch]\nconnect_s = 2")
        monkeypatch.setenv("BOAT_KEY", "perch")
        with robot(file, world, "--speedup", 20) as boat:
            boat.wait_for("ready")
            monkeypatch.setenv("BOAT_KEY", "pike")
            stranger = vehicle_of(recorded_settings(str(file)), mission)
            with pytest.raises(VehicleError, match="no robot answers"):
                stranger.connect()
            file = drone(tmp_path, router)
            monkeypatch.setenv("BOAT_KEY", "perch")
            with vehicle_of(recorded_settings(str(file)), mission) as vehicle:
                vehicle.send(Query([10.0, 10.0], expected_cost=20.0, id="run/0"))
                assert isinstance(settled(vehicle), Observation)

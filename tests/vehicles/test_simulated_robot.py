"""The simulated robot: where its battery is changed, how its time passes, and what it announces itself as."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from fieldbo.domain.frame import Frame, Origin
from fieldbo.domain.obstacles import Obstacle
from fieldbo.testing import SteppedClock, small_world
from fieldbo.vehicles.mavlink.settings import MavlinkSettings
from fieldbo.vehicles.remote.link import Goal
from fieldbo.vehicles.simulators import Robot
from fieldbo.vehicles.simulators.mavlink import Autopilot, _Boat

SITE, HOME = np.array([3.0, 1.0]), np.array([0.0, 0.0])


def robot(**settings):
    given = {"battery": 100.0, "speedup": 100.0, "recharge_s": 50.0, "start": HOME} | settings
    return Robot(small_world(), clock=SteppedClock(), **given)


def done(one, goal, **more):
    """Carry out a goal."""
    one.go(Goal(goal, more.pop("site", SITE), **more))
    while one.busy:
        one.clock.sleep(0.02)
        one.tick()


def idle(one, seconds):
    """Let time pass by this machine's clock."""
    for _ in range(round(seconds / 0.1)):
        one.clock.sleep(0.1)
        one.tick()


def test_the_battery_is_changed_at_home_alone():
    one = robot()
    done(one, "run/0")
    used = one.remaining
    assert used < 100.0
    idle(one, 5.0)  # ten times as long as the change takes there
    assert one.remaining == used
    done(one, "run/1", site=HOME, home=True)
    assert one.remaining < used
    idle(one, 0.3)
    assert one.remaining < used
    idle(one, 0.5)
    assert one.remaining == 100.0


@pytest.mark.parametrize("settings", [{"home": SITE}, {}])
def test_home_is_where_it_is_stated_or_where_a_goal_says(settings):
    one = robot(**settings)
    done(one, "run/0", home=not settings)
    idle(one, 1.0)
    assert one.remaining == 100.0


def test_time_passes_as_usual_while_the_planner_thinks():
    one = robot(recharge_s=math.inf)
    done(one, "run/0")
    before_s, boot_s = one.clock_s, one.boot_s
    idle(one, 5.0)
    assert one.clock_s - before_s == pytest.approx(5.0)
    assert one.boot_s - boot_s == pytest.approx(5.0)
    done(one, "run/1", site=HOME)
    assert one.clock_s - before_s > 6.0  # a hundred times as fast again, and not all at once
    assert one.clock_s < one.speedup * one.boot_s


def test_without_a_speedup_the_robots_clock_is_the_machines():
    one = robot(speedup=1.0)
    done(one, "run/0")
    idle(one, 5.0)
    assert one.clock_s == one.boot_s


# -- MAVLink -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("firmware", "vehicle", "kind", "number", "guided"),
    [
        (None, None, 3, 11, 15),
        ("ardupilot", "rover", 3, 10, 15),
        ("ardupilot", "copter", 3, 2, 4),
        ("ardupilot", "plane", 3, 1, 15),
        ("ardupilot", "submarine", 3, 12, 4),
        ("px4", "copter", 12, 2, 6 << 16),
        ("px4", "boat", 12, 11, 6 << 16),
    ],
)
def test_a_vehicle_announces_itself_as_its_file_says(firmware, vehicle, kind, number, guided):
    sent = boat(firmware=firmware, vehicle=vehicle)
    sent.boat._send_heartbeat()
    (heartbeat,) = sent.heartbeats
    assert heartbeat[:2] == (number, kind)
    main, sub = (guided, 0) if kind == 3 else (6, 0)
    assert sent.asked(176, param1=1, param2=main, param3=sub) == 0
    assert sent.boat.mode == guided
    assert sent.asked(176, param1=1, param2=99, param3=0) == 2


def boat(**settings):
    """Return a simulated vehicle whose messages are kept."""
    link, heartbeats, acks = MavlinkSettings(**settings), [], []
    ground = Frame(Origin(47.31, 8.58, 406.0), along="x", left="y").over(small_world().domain.axes)
    one = _Boat(robot(), link, ground, lambda line: None)
    mav = SimpleNamespace(
        heartbeat_send=lambda *told: heartbeats.append(told),
        command_ack_send=lambda command, result: acks.append(result),
    )
    one.wire = SimpleNamespace(mav=mav)
    one.sequence = SimpleNamespace(is_new=lambda message: True)

    def asked(command, kind="COMMAND_LONG", **parts):
        told = {f"param{k}": 0.0 for k in range(1, 8)} | {"x": 0, "y": 0, "z": 0.0, "frame": 5} | parts
        message = SimpleNamespace(target_system=1, command=command, get_type=lambda: kind, **told)
        one.receive(message)
        return acks[-1]

    return SimpleNamespace(boat=one, heartbeats=heartbeats, asked=asked)


def test_the_same_command_is_answered_alike_in_both_messages():
    for kind in ("COMMAND_LONG", "COMMAND_INT"):
        sent = boat()
        assert sent.asked(400, kind, param1=0) == 0
        assert not sent.boat.armed
        assert sent.asked(999, kind) == 3


def test_a_reposition_is_obeyed_in_its_mode_or_if_it_may_change_the_mode():
    sent = boat(vehicle="copter")
    place = sent.boat.ground.geodetic(SITE)[0]
    there = {"x": round(place[0] * 1e7), "y": round(place[1] * 1e7), "z": place[2]}
    assert sent.asked(192, "COMMAND_INT", **there) == 2  # it is in LOITER
    assert sent.asked(192, "COMMAND_INT", param2=1, frame=6, **there) == 2  # above its home, which is unknown
    assert sent.asked(192, "COMMAND_INT", param2=1, **there) == 0
    assert sent.boat.mode == 4
    assert sent.boat.robot.busy
    degrees = dict(zip(("param5", "param6", "param7"), place.tolist(), strict=True))
    assert sent.asked(192, **degrees) == 0
    sent.asked(400, param1=0)
    assert sent.asked(192, param2=1, **degrees) == 2  # disarmed


def test_autopilots_name_their_modes():
    copter = Autopilot.of(MavlinkSettings(firmware="ardupilot", vehicle="copter"))
    assert [copter.name(mode) for mode in (copter.guided, copter.hold)] == ["GUIDED", "LOITER"]


def test_readings_fail_for_a_robot_where_the_world_says_so():
    patch = Obstacle("wet patch", (2.0, 0.0), (4.0, 2.0))
    world = replace(small_world(), unreadable=(patch,))
    one = Robot(world, clock=SteppedClock(), speedup=100.0, start=HOME)
    read = []
    for goal, site in (("inside", SITE), ("outside", np.array([0.0, 3.0]))):
        done(one, goal, site=site)
        (result,) = one._answers[goal]
        read.append((result.complete, np.isnan(result.values).tolist(), result.cost > 0.0))
    assert read == [(True, [True], True), (True, [False], True)]

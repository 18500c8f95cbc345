"""Where a MAVLink vehicle's heights count from, how far from a wall it flies, and which way it looks."""

import json
from pathlib import Path

import numpy as np
import pytest
from small_files import mission_text, world_text
from working_folder import write

from fieldbo.domain.frame import Frame, Origin
from fieldbo.errors import InputError
from fieldbo.mission.load import load_mission
from fieldbo.testing import SteppedClock
from fieldbo.vehicles.mavlink.link import Mavlink
from fieldbo.vehicles.mavlink.settings import Fence, faced, located, places_armed
from fieldbo.vehicles.simulators import Robot
from fieldbo.vehicles.simulators.mavlink import _Boat

DOCK_M = 40.0
TOWER = ("along", 0, 30, 7), ("height", 0, 60, 13)
WEIR = ("along", 0, 30, 7), ("depth", 0, 18, 7)
POND = ("east", 0, 30, 7), ("north", 0, 60, 13)
DRONE = """format = 1
[link]
kind = "mavlink"
{link}
[frame]
origin = {{ latitude = 47.31, longitude = 8.58, altitude = {altitude} }}
bearing = 30
along = "along"
height = "height"
[battery]
full = 1e6
[arrival]
within = 0.1
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def mission_on(axes, start, **agent):
    """Return a sweep over a vertical or flat world, and write its files."""
    write(Path("tower/world.toml"), world_text(*axes, start=start))
    text = mission_text(
        "tower",
        threshold=0,
        battery=4000,
        agent={"start": start, "home": start, **agent},
        policy={"kind": "lawnmower", "lines": 2, "samples": 4},
        model={"learn": False, "length_scales": [3, 3]},
    )
    write(Path("sweep.toml"), text)
    return load_mission("sweep.toml")


def drone(link='altitude = "relative"', altitude=0):
    write(Path("drone.toml"), DRONE.format(link=link, altitude=altitude))
    return "drone.toml"


def frame_of(mission, altitude=0.0, bearing=30.0):
    """Return where a mission lies on the ground, without a vehicle."""
    usual = Frame.usual(mission.world.domain.axes)
    frame = Frame(Origin(47.31, 8.58, altitude), bearing=bearing, **usual.axes)
    return frame.over(mission.world.domain.axes)


# -- heights ---------------------------------------------------------------------------------------------


def test_relative_heights_of_a_plan_count_from_the_dock(command):
    mission_on(TOWER, [5, DOCK_M])
    code, out, err = command("plan", "sweep.toml", "--vehicle", drone())

    assert (code, err) == (0, "")
    items = json.loads(Path("sweep.plan").read_text())["mission"]["items"]
    heights = [item["params"][6] for item in items]
    assert min(heights) == -DOCK_M
    assert max(heights) == 60 - DOCK_M
    assert heights[-1] == 0  # back on the dock
    assert {item["frame"] for item in items} == {3}
    assert "heights   -40 to 20 m above where the vehicle is armed: the start, at height 40 m\n" in out


def test_absolute_heights_count_from_sea_level(command):
    mission_on(TOWER, [5, 40])
    code, out, _ = command("check", "sweep.toml", "--vehicle", drone('altitude = "absolute"', 406))
    assert code == 0
    assert "heights   406 to 466 m above sea level, as the origin's altitude says" in out


def test_fence_guided_flight_and_simulated_robot_count_from_the_same_height():
    mission = mission_on(TOWER, [5, 40])
    link, ground = Mavlink(altitude="relative", fence=Fence(highest=15.0)), frame_of(mission)
    fence = link.geofence(mission, ground)
    robot = Robot(mission.world, start=mission.vehicles[0].start, clock=SteppedClock())
    boat = _Boat(robot, link, located(ground, mission.world.domain.axes, link, robot.position), print)

    sites = mission.world.domain.sites
    assert fence.ground.geodetic(sites)[:, 2] == pytest.approx(sites[:, 1] - 40.0)
    assert boat.ground.geodetic(sites) == pytest.approx(fence.ground.geodetic(sites))
    assert fence.holds(fence.ground.geodetic(sites)).tolist() == (sites[:, 1] <= 55.0).tolist()
    back = fence.ground.from_geodetic(fence.ground.geodetic(sites))
    assert back == pytest.approx(sites, abs=1e-6)


def test_the_origins_altitude_says_how_far_above_the_arming_place_the_mission_begins():
    mission = mission_on(TOWER, [5, 40])
    ground = Mavlink(altitude="relative").geofence(mission, frame_of(mission, altitude=3.0)).ground
    assert ground.geodetic([[5, 40], [5, 50]])[:, 2] == pytest.approx([3.0, 13.0])
    flat = mission_on(POND, [5, 40])
    ground = Mavlink(altitude="relative").geofence(flat, frame_of(flat, altitude=20.0)).ground
    assert ground.geodetic([[5, 40], [30, 0]])[:, 2] == pytest.approx([20.0, 20.0])


def test_where_the_world_has_a_depth_heights_count_from_the_surface(command):
    mission = mission_on(WEIR, [5, 6])
    ground = Mavlink(altitude="relative").geofence(mission, frame_of(mission)).ground
    assert ground.geodetic([[5, 0], [5, 6]])[:, 2] == pytest.approx([0.0, -6.0])
    write(Path(drone()), Path(drone()).read_text().replace("height", "depth"))
    _, out, _ = command("check", "sweep.toml", "--vehicle", "drone.toml")
    assert "heights   -18 to 0 m above where the vehicle is armed: at the surface" in out


def test_batteries_changed_at_another_height_than_the_start_need_absolute_heights(command):
    changes = {"at": "home", "takes_s": 60, "batteries": 2}
    mission = mission_on(TOWER, [5, 40], home=[5, 0], recharge=changes)
    assert places_armed(mission).tolist() == [[5, 40], [5, 0]]
    for words in (("check", "sweep.toml"), ("plan", "sweep.toml")):
        code, _, err = command(*words, "--vehicle", drone())
        assert code == 2
        assert "have different heights: 0 m, 40 m" in " ".join(err.split())
    code, _, _ = command("check", "sweep.toml", "--vehicle", drone('altitude = "absolute"'))
    assert code == 0


@pytest.mark.parametrize(("altitude", "doubted"), [(-41, True), (-5, False), (3, False), (406, True)])
def test_an_altitude_that_cannot_be_that_of_the_start_is_doubted(command, altitude, doubted):
    mission_on(TOWER, [5, 40])
    code, out, _ = command("check", "sweep.toml", "--vehicle", drone(altitude=altitude))
    assert code == 0
    assert ("the mission would begin that high above" in out) == doubted


# -- beside a wall -----------------------------------------------------------------------------------------


def test_a_stand_off_moves_a_facade_to_the_side_from_which_its_axis_runs_right():
    wall = load_mission("wall-damage-map").world.domain.axes
    ground = Frame(Origin(47.31, 8.58), along="along", height="height").over(wall)  # it runs east
    moved = located(ground, wall, Mavlink(stand_off=4.0))
    offset = ground.metres(moved.geodetic([[10, 5]]))[0] - ground.local([[10, 5]])[0]
    assert offset == pytest.approx([0, -4, 0], abs=1e-3)
    assert moved.from_geodetic(moved.geodetic([[10, 5]])) == pytest.approx(np.array([[10, 5]]))
    pond = mission_on(POND, [5, 40])
    with pytest.raises(InputError, match="the world is not vertical"):
        located(frame_of(pond), pond.world.domain.axes, Mavlink(stand_off=4.0))


@pytest.mark.parametrize("bearing", [0.0, 30.0, 90.0, 271.5])
@pytest.mark.parametrize("stand_off", [4.0, -0.5])
def test_the_vehicle_faces_the_wall(bearing, stand_off):
    mission = mission_on(TOWER, [5, 40])
    ground = frame_of(mission, bearing=bearing)
    link = Mavlink(stand_off=stand_off)
    beside = located(ground, mission.world.domain.axes, link)
    yaw = np.radians(faced(link, beside).yaw)

    ahead = abs(stand_off) * np.array([np.sin(yaw), np.cos(yaw), 0.0])
    place = ground.metres(beside.geodetic([[10, 5]]))[0]
    assert place + ahead == pytest.approx(ground.local([[10, 5]])[0], abs=1e-3)


@pytest.mark.parametrize(
    ("yaw", "refused"), [(300, False), (210, False), (30, False), (31, True), (120, True)]
)
def test_a_heading_away_from_the_wall_is_refused_unless_it_is_asked_for(yaw, refused, command):
    mission_on(TOWER, [5, 40])  # the wall runs towards 30°, so that it lies at 300° from its right
    link = f'altitude = "relative"\nstand_off = 4\nyaw = {yaw}'
    for words in (("check", "sweep.toml"), ("plan", "sweep.toml")):
        code, _, err = command(*words, "--vehicle", drone(link))
        assert code == (2 if refused else 0)
        assert ("points away from the wall, which lies at 300°" in " ".join(err.split())) == refused
    code, out, _ = command("check", "sweep.toml", "--vehicle", drone(f"{link}\nyaw_away = true"))
    assert code == 0
    assert f"yaw {yaw}° (" in out


def test_a_plan_of_a_wall_faces_it(command):
    mission_on(TOWER, [5, 40])
    for stand_off, yaw in ((4, 300.0), (-4, 120.0)):
        link = f'altitude = "relative"\nfirmware = "ardupilot"\nstand_off = {stand_off}'
        command("plan", "sweep.toml", "--vehicle", drone(link))
        turn, *points = json.loads(Path("sweep.plan").read_text())["mission"]["items"]
        assert (turn["command"], turn["params"][0]) == (115, yaw)
        assert {point["params"][3] for point in points} == {yaw}


def test_check_shows_stand_off_side_and_heading(command):
    mission_on(TOWER, [5, 40])
    code, out, _ = command("check", "sweep.toml", "--vehicle", drone("stand_off = -4"))
    assert code == 0
    side = "stand-off 4 m to the left of the horizontal axis, towards 300° (northwest)"
    assert f"{side}; yaw 120° (southeast), facing the wall\n" in out
    _, out, _ = command("check", "sweep.toml", "--vehicle", drone(""))
    assert "stand-off 0 m: on the line of the frame's origin; the heading is up to the autopilot" in out


def test_without_a_wall_the_heading_is_as_set():
    pond = mission_on(POND, [5, 40])
    assert faced(Mavlink(), frame_of(pond)).yaw is None
    assert faced(Mavlink(yaw=20.0), frame_of(pond)).yaw == 20.0

"""What lies between a vehicle and where it was armed, once the autopilot takes it home by itself."""

from pathlib import Path

import numpy as np
import pytest
import shapely
from small_files import mission_text, world_text
from working_folder import write

from fieldbo.domain.frame import Frame, Origin
from fieldbo.mission.load import load_mission
from fieldbo.vehicles.mavlink.geofence import allowed, geofence
from fieldbo.vehicles.mavlink.link import crossings, from_sites

BOAT = """format = 1
[link]
kind = "mavlink"
altitude = "relative"
{link}
[frame]
origin = {{ latitude = 47.31, longitude = 8.58 }}
{axes}
[battery]
full = 1e6
[arrival]
within = 0.1
"""
FLAT, UPRIGHT = 'along = "east"\nleft = "north"', 'along = "east"\nheight = "height"'
FRAME = Frame(Origin(47.31, 8.58), along="east", left="north")
ISLAND = {"name": "island", "corners": [[60, 40], [90, 30], [110, 60], [70, 70]]}
PIER = {"name": "pier", "low": [150, 0], "high": [154, 60]}
COVE = [[0, 0], [200, 0], [200, 100], [130, 100], [130, 40], [120, 40], [120, 100], [0, 100]]


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def mission_in(domain, *axes, start, link="", frame=FLAT):
    """Return a sweep, and write its files and that of a vehicle."""
    write(Path("bay/world.toml"), world_text(*axes, domain=domain, start=start))
    text = mission_text(
        "bay",
        threshold=0,
        battery=4000,
        agent={"start": start, "home": start},
        policy={"kind": "lawnmower", "lines": 4, "samples": 6},
        model={"learn": False, "length_scales": [30, 30]},
    )
    write(Path("sweep.toml"), text)
    write(Path("boat.toml"), BOAT.format(link=link, axes=frame))
    return load_mission("sweep.toml")


def bay(**domain):
    return mission_in({"clearance": 4, **domain}, ("east", 0, 200, 41), ("north", 0, 100, 21), start=[20, 50])


def fence_of(mission):
    return geofence(mission, FRAME.over(mission.world.domain.axes), None)


def test_obstacles_and_the_edge_of_the_fence_are_named_by_the_places_behind_them():
    mission = bay(obstacles=[ISLAND, PIER])
    places = np.array([[130.0, 50.0], [20.0, 50.0], [40.0, 90.0], [190.0, 50.0], [100.0, 98.0]])
    found = crossings(mission, fence_of(mission), places, mission.vehicles[0].start)
    assert {name: mask.tolist() for name, mask in found.items()} == {
        "island": [True, False, False, True, False],
        "pier": [False, False, False, True, False],
    }
    mission = bay(outline=COVE)
    places = np.array([[180.0, 90.0], [100.0, 10.0]])
    found = crossings(mission, fence_of(mission), places, np.array([20.0, 90.0]))
    assert {name: mask.tolist() for name, mask in found.items()} == {"the fence": [True, False]}


@pytest.mark.parametrize("domain", [{"obstacles": [ISLAND, PIER]}, {"outline": COVE, "obstacles": [ISLAND]}])
def test_a_way_back_is_free_exactly_if_it_stays_in_the_allowed_area(domain):
    mission = bay(**domain)
    fence, armed = fence_of(mission), mission.vehicles[0].start
    sites = mission.world.domain.sites
    found = crossings(mission, fence, sites, armed)
    blocked = np.logical_or.reduce([*found.values()])

    area = allowed(fence.zones, fence.ground)
    here = fence.ground.local(armed)[0, :2]
    legs = [shapely.LineString([place, here]) for place in fence.ground.local(sites)[:, :2]]
    free = np.array([area.covers(leg) for leg in legs])
    nearly_free = np.array([area.buffer(0.2).covers(leg) for leg in legs])
    assert not blocked[free].any()
    assert blocked[~nearly_free].all()
    assert 0 < blocked.sum() < len(sites)


def test_a_plan_names_the_waypoints(command):
    mission = bay(obstacles=[ISLAND])
    code, _, err = command("plan", "sweep.toml", "--vehicle", "boat.toml")
    assert code == 0
    said = " ".join(err.split())
    assert (
        "warning: return to launch, and most failsafes, go straight to where the vehicle was armed: " in said
    )
    assert "through island from waypoints " in said
    assert " m;" not in said  # over a flat world, heights say nothing
    assert "out of the fence" not in said
    assert from_sites(mission, fence_of(mission))[0].startswith("return to launch")


def test_check_says_from_how_many_sites(command):
    bay(obstacles=[ISLAND, PIER])
    code, out, _ = command("check", "sweep.toml", "--vehicle", "boat.toml")
    assert code == 0
    (line,) = [line for line in out.splitlines() if "return to launch" in line]
    assert " sites, such as [" in line
    assert ", through island, pier; let failsafes hold" in line


def test_without_obstacles_there_is_nothing_to_warn_of(command):
    mission = bay()
    assert from_sites(mission, fence_of(mission)) == []
    _, _, err = command("plan", "sweep.toml", "--vehicle", "boat.toml")
    assert err == ""


def test_beside_a_wall_heights_are_those_above_the_dock(command):
    window = {"name": "window", "low": [60, 40], "high": [90, 60]}
    axes = ("east", 0, 200, 21), ("height", 0, 100, 11)
    domain = {"clearance": 2, "obstacles": [window]}
    mission_in(domain, *axes, start=[0, 50], link="stand_off = 4", frame=UPRIGHT)
    _, _, err = command("plan", "sweep.toml", "--vehicle", "boat.toml")
    said = " ".join(err.split())
    assert "through window from waypoint" in said
    assert "these reach up to 10 m" in said  # 60 m, seen from a dock at 50 m
    assert "ArduPilot: RTL_ALT; PX4: RTL_RETURN_ALT" in said


def test_each_battery_returns_to_where_it_was_armed(command):
    bay(obstacles=[ISLAND])
    changes = ("--set", "agent.recharge.takes_s=60", "--set", "agent.recharge.batteries=2")
    words = (*changes, "--set", "agent.battery=500", "--set", "agent.home=[190, 50]")
    code, _, err = command("plan", "sweep.toml", "--vehicle", "boat.toml", *words)
    assert code == 0
    assert "warning: battery 1: return to launch" in err
    assert "battery 2: return" not in err  # it begins on the other side of the island

"""One fence from the world and the vehicle file: what it allows, how it is written, and contradictions."""

import hashlib
import json
import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import mavlink_boat
import numpy as np
import pytest
import shapely
from small_files import mission_text
from working_folder import write

from fieldbo.domain.frame import Frame, Origin
from fieldbo.domain.obstacles import Obstacle
from fieldbo.errors import InputError, VehicleError
from fieldbo.mission.load import load_mission
from fieldbo.validation import validated
from fieldbo.vehicles.mavlink.fence_check import check_geofence
from fieldbo.vehicles.mavlink.flight_plan import Waypoint, items, plan_file
from fieldbo.vehicles.mavlink.geofence import Zone, allowed, geofence
from fieldbo.vehicles.mavlink.link import Mavlink
from fieldbo.vehicles.mavlink.settings import Fence, MavlinkSettings
from fieldbo.vehicles.mavlink.wire import fence_items, settle_fence, zones_of

BAY = """format = 1
version = "1"
title = "a bay"
cost_unit = "s"
start = [20, 20]
[domain]
kind = "grid"
axes = [
    {{ name = "east", unit = "m", low = 0, high = 200, count = 41 }},
    {{ name = "north", unit = "m", low = 0, high = 100, count = 21 }},
]
obstacles = [
    {{ name = "island", corners = [[60, 40], [90, 30], [110, 60], [70, 70]] }},
    {{ name = "pier", low = [150, 0], high = [154, 60] }},
]
{more}
[field]
kind = "gp-draw"
length_scales = [30, 30]
[cost]
kind = "euclidean"
sampling = 3
[sensor]
noise_sd = 0.05
"""
SHORE = """clearance = {clearance}
outline = [[0, 0], [200, 0], [200, 80], [120, 100], [110, 75], [100, 100], [0, 100]]
holes = [[[20, 70], [40, 70], [30, 85]]]
"""
CLEAR = SHORE.format(clearance=4)
MISSION = mission_text(
    "bay",
    title="a sweep of the bay",
    threshold=0,
    battery=4000,
    agent={"start": [20, 20], "home": [190, 20]},
    policy={"kind": "lawnmower", "lines": 6, "samples": 8},
    model={"learn": False, "length_scales": [30, 30]},
)
BOAT = mavlink_boat.BOAT.replace("along", "bearing = 120\nalong")
FRAME = Frame(Origin(47.31, 8.58, 406.0), bearing=120, along="east", left="north")


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def bay(more=CLEAR):
    """Return a sweep of the bay, and the ground that it lies on."""
    write(Path("bay/world.toml"), BAY.format(more=more))
    write(Path("sweep.toml"), MISSION)
    mission = load_mission("sweep.toml")
    return mission, FRAME.over(mission.world.domain.axes)


def near(ground, *corners):
    """Return the latitude and longitude of points in the bay."""
    return tuple(map(tuple, ground.geodetic(corners)[:, :2].tolist()))


def in_bay(zone, ground):
    """Return a zone's polygon in the axes of the bay."""
    return shapely.Polygon(ground.from_geodetic([(*corner, 406.0) for corner in zone.corners]))


@pytest.mark.parametrize("clearance", [0, 0.06, 4])
def test_the_fence_leaves_routes_half_of_the_clearance(clearance):
    mission, ground = bay(SHORE.format(clearance=clearance))
    domain = mission.world.domain
    shore, hole, island, pier = geofence(mission, ground, None).zones
    room = max(clearance / 2, 0.05)

    assert [zone.inclusion for zone in (shore, hole, island, pier)] == [True, False, False, False]
    free = in_bay(shore, ground)
    for zone in (hole, island, pier):
        free = free.difference(in_bay(zone, ground))
    gap = shapely.distance(free.boundary, shapely.points(shapely.get_coordinates(domain.region)))
    assert gap.min() == pytest.approx(room, abs=0.01)
    assert free.covers(domain.region.buffer(room - 0.01))
    if clearance:
        solid = shapely.union_all([o.polygon for o in domain.solid])
        assert free.distance(solid) == pytest.approx(clearance - room, abs=0.01)


@pytest.mark.parametrize("clearance", [0, 4])
def test_no_route_of_the_world_is_refused_by_its_fence(clearance):
    mission, ground = bay(SHORE.format(clearance=clearance))
    fence, world = geofence(mission, ground, None), mission.world
    rng, sites = np.random.default_rng(0), mission.world.domain.sites
    for a, b in rng.choice(sites, (60, 2)):
        for start, end in pairwise(ground.geodetic(world.cost.path(a, b))):
            assert fence.objection(end, start) is None


def test_without_an_outline_the_box_of_the_axes_is_the_inclusion():
    mission, ground = bay("clearance = 4")
    inclusion = geofence(mission, ground, None).inclusion
    assert in_bay(inclusion, ground).equals_exact(shapely.box(-2, -2, 202, 102), 0.01, normalize=True)


def test_edges_of_ten_kilometres_stay_straight_where_autopilots_draw_them():
    mission, _ = bay()
    axes = [replace(axis, high=20_000.0) for axis in mission.world.domain.axes]
    domain = type(mission.world.domain).grid(axes, (5, 5))
    mission = replace(mission, world=replace(mission.world, domain=domain))
    fence = geofence(mission, FRAME.over(axes), None)
    edge = fence.ground.geodetic([[0, 0], [20_000, 0], [20_000, 20_000], [0, 20_000]])
    assert [fence.objection(b, a) for a, b in pairwise(edge)] == [None] * 3


def test_places_in_an_obstacle_and_paths_through_one_are_refused():
    mission, ground = bay()
    fence = geofence(mission, ground, None)
    west, island, east = ground.geodetic([[50, 50], [80, 50], [130, 50]])
    assert "outside the fence" in str(fence.objection(island))
    assert "leads out of the fence" in str(fence.objection(east, west))
    assert fence.objection(east, island) is None  # a vehicle may leave it


def test_the_limits_of_the_vehicle_file_narrow_the_fence_to_one_inclusion():
    mission, ground = bay()
    corners = near(ground, [-50, -50], [195, -50], [195, 150], [-50, 150])
    fence = geofence(mission, ground, Fence(corners=corners, radius=500.0))
    assert sum(zone.inclusion for zone in fence.zones) == 1
    assert in_bay(fence.inclusion, ground).bounds == pytest.approx([2, 2, 195, 98], abs=4)


def test_of_a_wall_only_the_altitudes_are_fenced_and_check_says_so(command):
    write(Path("drone.toml"), BOAT.format(link="fence = { highest = 500 }").replace("left", "height"))
    text = Path("drone.toml").read_text().replace('"east"', '"along"').replace('"north"', '"height"')
    write(Path("drone.toml"), text)
    code, out, err = command("check", "wall-damage-map", "--vehicle", "drone.toml")
    assert (code, err) == (0, "")
    assert "fence     altitudes up to 500 m; checked by fieldbo alone" in out
    assert "fence     omits 14 obstacles (window 1, window 2, door, ...)" in out


def test_check_describes_the_fence_of_a_mission_with_a_vehicle(command):
    bay()
    write(Path("boat.toml"), BOAT.format(link="fence = { lowest = 380 }\nupload_fence = true"))
    code, out, err = command("check", "sweep.toml", "--vehicle", "boat.toml")
    assert (code, err) == (0, "")
    (line,) = [line for line in out.splitlines() if line.startswith("  fence")]
    assert "3 exclusions (hole 1, island, pier), 2 m from routes, which keep a clearance of 4 m" in line
    assert "altitudes from 380 m" in line
    assert "  outline   7 corners, 1 hole\n  obstacles 2: island, pier\n  clearance 4 m\n" in out
    assert "inclusion of 17729 m2" in line
    assert line.endswith("uploaded before the first order")
    bay(SHORE.format(clearance=0))
    code, _, err = command("check", "sweep.toml", "--vehicle", "boat.toml")
    assert (code, "wider than half of the clearance" in err) == (2, True)
    code, _, err = command("check", "boat.toml", "--vehicle", "boat.toml")
    assert (code, "--vehicle boat.toml does not apply to a vehicle" in err) == (2, True)


# -- contradictions --------------------------------------------------------------------------------------


def around(ground, low, high):
    (a, b), (c, d) = low, high
    return Fence(corners=near(ground, [a, b], [c, b], [c, d], [a, d]))


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        ([300, 0], [400, 90], "have no area in common"),
        ([30, 0], [200, 90], r"the start \[20\.0, 20\.0\] is not allowed: .* is outside the fence"),
        ([0, 0], [180, 90], r"the home \[190\.0, 20\.0\] is not allowed"),
        ([0, 0], [200, 62], "the fence allows no trip home from the start: .* fence"),
    ],
)
def test_a_fence_that_contradicts_the_mission_is_an_error_everywhere(low, high, message, command):
    mission, ground = bay()
    fence = around(ground, low, high)
    with pytest.raises(InputError, match=message):
        check_geofence(geofence(mission, ground, fence), mission)
    with pytest.raises(InputError, match=message):
        Mavlink(fence=fence).open(mission, ground, print)
    corners = json.dumps(fence.corners)
    write(Path("boat.toml"), BOAT.format(link=f"fence = {{ corners = {corners} }}"))
    for words in (("check", "sweep.toml"), ("plan", "sweep.toml")):
        code, _, err = command(*words, "--vehicle", "boat.toml")
        assert code == 2
        assert "where:    link.fence" in err


def test_sites_outside_the_fence_are_a_warning_with_their_number():
    mission, ground = bay()
    fence = geofence(mission, ground, around(ground, [0, 0], [200, 72]))
    excluded, cut_off = check_geofence(fence, mission)
    assert "sites: orders to them will be rejected" in excluded
    assert cut_off.startswith("the trip home leaves the fence from some sites, such as [")


def test_a_fence_that_divides_the_world_is_an_error():
    mission, ground = bay()
    arms = [[0, -50], [200, -50], [200, 90], [170, 90], [170, -20], [10, -20], [10, 90], [0, 90]]
    corners = near(ground, *arms)
    with pytest.raises(InputError, match="divides the world into 2 areas"):
        check_geofence(geofence(mission, ground, Fence(corners=corners)), mission)


# -- on the wire and in plans ----------------------------------------------------------------------------


def test_a_fence_survives_the_messages_of_the_mission_protocol():
    mission, ground = bay()
    fence = geofence(mission, ground, None)
    sent = [replace(item, x=round(item.x, 7), y=round(item.y, 7)) for item in fence_items(fence.zones)]
    assert [len(zone.corners) for zone in zones_of(sent)] == [len(zone.corners) for zone in fence.zones]
    assert {item.command for item in sent} == {5001, 5002}
    assert fence.difference(zones_of(sent)) is None


def test_a_vehicles_own_fence_is_compared_by_the_area_that_it_allows():
    mission, ground = bay()
    fence = geofence(mission, ground, None)
    inclusion, hole, *rest = fence.zones
    turned = replace(inclusion, corners=inclusion.corners[2:] + inclusion.corners[:2])
    assert fence.difference([*rest, hole, turned]) is None
    assert fence.difference([]) == "the vehicle has no fence"
    assert "lets the vehicle into" in fence.difference([inclusion, *rest])
    circle = Zone(False, centre=near(ground, [20, 20])[0], radius=3.0)
    assert "keeps the vehicle out of 26 m2" in fence.difference([*fence.zones, circle])
    assert "has no inclusion" in fence.difference([hole, *rest])
    assert allowed([circle], ground) is None


class Held:
    """Stands in for the mission protocol, with a vehicle that keeps what is uploaded."""

    def __init__(self, items):
        self.items = items

    def download(self, kind, *, answers=False):
        return self.items

    def upload(self, items, kind):
        self.items = items


def test_a_vehicle_without_a_fence_is_told_of_with_the_remedy_unless_it_gets_one():
    mission, ground = bay()
    fence = geofence(mission, ground, None)
    [note] = settle_fence(Held([]), fence, upload=False)
    assert note.startswith("the vehicle has no fence: it stays where fieldbo may send it only while")
    assert note.endswith("set upload_fence = true in [link]")
    notes = settle_fence(Held([]), fence, upload=True)
    assert notes == ["the vehicle has no fence", "uploaded the fence, and verified it by reading it back"]


def test_a_plan_carries_speed_type_heading_and_photos_of_the_vehicle_file():
    mission, ground = bay()
    fence = geofence(mission, ground, None)
    route = [Waypoint(47.31, 8.58, 406.0, 4.0), Waypoint(47.32, 8.58, 406.0, is_site=False)]
    keys = {"firmware": "ardupilot", "vehicle": "copter", "speed": 2.5, "yaw": 30, "camera": True}
    link = validated(MavlinkSettings, keys, "drone.toml: link")
    plan = json.loads(plan_file(route, fence, link, np.array([0.0, 0.0])))["mission"]

    assert (plan["firmwareType"], plan["vehicleType"]) == (3, 2)
    assert (plan["cruiseSpeed"], plan["hoverSpeed"]) == (2.5, 2.5)
    assert [item["command"] for item in plan["items"]] == [178, 115, 16, 203, 16]
    assert [item["doJumpId"] for item in plan["items"]] == [1, 2, 3, 4, 5]
    assert [item["frame"] for item in plan["items"]] == [2, 2, 0, 2, 0]
    assert plan["items"][0]["params"] == [1, 2.5, -1, 0, 0, 0, 0]
    assert plan["items"][2]["params"] == [4.0, 0, 0, 30, 47.31, 8.58, 406.0]
    assert "Altitude" not in plan["items"][0]
    on_px4 = items(route, replace(link, firmware="px4"))
    assert [item.command for item in on_px4] == [178, 16, 2000, 16]
    assert items(route, MavlinkSettings())[0].params[0] == 4.0


@pytest.mark.parametrize(
    "keys", [{"speed": 0}, {"yaw": 360}, {"firmware": "PX4"}, {"vehicle": "car"}, {"stand_off": math.inf}]
)
def test_a_wrong_detail_of_plans_is_an_error(keys):
    with pytest.raises(InputError):
        validated(Mavlink, keys, "boat.toml: link")


def test_a_signing_key_is_the_hash_of_a_passphrase_that_only_the_environment_holds(monkeypatch):
    link = Mavlink(signing_key_from="BOAT_KEY")
    monkeypatch.setenv("BOAT_KEY", "bass")
    assert link.signing_key == hashlib.sha256(b"bass").digest()
    assert "bass" not in repr(link)
    monkeypatch.delenv("BOAT_KEY")
    mission, ground = bay()
    with pytest.raises(VehicleError, match="the environment variable BOAT_KEY is not set"):
        link.open(mission, ground, print)


def test_an_area_that_was_closed_under_way_is_part_of_the_fence():
    mission, ground = bay(CLEAR)
    nets = Obstacle("nets", (120.0, 20.0), (130.0, 30.0))
    before, after = (geofence(one, ground, None).zones for one in (mission, mission.with_no_go([nets])))
    (new,) = (zone for zone in after if zone not in before)
    assert not new.inclusion
    assert in_bay(new, ground).contains(shapely.box(120, 20, 130, 30))

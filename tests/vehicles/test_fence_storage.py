"""How many points of a fence an autopilot stores, and fences that are simplified to fit."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import shapely
from mavlink_boat import BOAT, FRAME
from small_files import mission_text, world_text
from working_folder import write

from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError
from fieldbo.mission.load import load_mission
from fieldbo.vehicles.mavlink.fence_check import fits, points_needed, routed, storable, whole_world
from fieldbo.vehicles.mavlink.geofence import Zone, allowed, geofence
from fieldbo.vehicles.mavlink.link import Mavlink

PX4 = Mavlink(firmware="px4")


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def shore(middle, radius, corners, rough, rng):
    """Return the corners of a lake or an island with coves and capes."""
    angles = np.linspace(0, 2 * np.pi, corners, endpoint=False)
    away = radius * (1.0 + rough * rng.uniform(-1, 1, corners))
    return (np.asarray(middle) + np.stack([np.cos(angles), np.sin(angles)], axis=1) * away[:, None]).round(2)


def lake(corners=120, islands=3, *, seed=0, clearance=6, rough=0.05):
    """Return a sweep of a lake with islands, and the ground that it lies on."""
    rng = np.random.default_rng(seed)
    outline = shore((200, 200), 180, corners, rough, rng).tolist()
    middles = [(110, 140), (260, 150), (210, 290)][:islands]
    obstacles = [
        {"name": f"island {k}", "corners": shore(middle, 25, 14, 0.15, rng).tolist()}
        for k, middle in enumerate(middles)
    ]
    domain = {"outline": outline, "obstacles": obstacles, "clearance": clearance}
    axes = ("east", 0, 400, 41), ("north", 0, 400, 41)
    write(Path("lake/world.toml"), world_text(*axes, domain=domain, start=[200, 60]))
    agent = {"start": [200, 60], "home": [200, 60]}
    policy = {"kind": "lawnmower", "lines": 3, "samples": 4}
    model = {"learn": False, "length_scales": [30, 30]}
    text = mission_text("lake", threshold=0, battery=9000, agent=agent, policy=policy, model=model)
    write(Path("sweep.toml"), text)
    mission = load_mission("sweep.toml")
    return mission, FRAME.over(mission.world.domain.axes)


def boat(link):
    write(Path("boat.toml"), BOAT.format(link=link))
    return "boat.toml"


def square(corners=4, *, inclusion=True):
    angles = np.linspace(0, 2 * np.pi, corners, endpoint=False)
    return Zone(inclusion, tuple(zip(47 + np.cos(angles) / 9, 8 + np.sin(angles) / 9, strict=True)))


@pytest.mark.parametrize(
    ("keys", "corners", "held"),
    [
        ({"firmware": "px4"}, (50, 13), True),
        ({"firmware": "px4"}, (50, 14), False),
        ({"firmware": "px4", "fence_points": 15}, (16,), False),
        ({"firmware": "ardupilot"}, (69,), True),  # 4 + 2 + 8 * 69 of 560 bytes
        ({"firmware": "ardupilot"}, (35, 35), False),
        ({"firmware": "ardupilot", "vehicle": "boat"}, (41, 41), True),  # 4 + 2 * (2 + 8 * 41) of 672
        ({"firmware": "ardupilot", "vehicle": "boat"}, (42, 42), False),
        ({"firmware": "ardupilot", "fence_points": 8000}, (255, 255), True),
        ({"firmware": "ardupilot", "fence_points": 8000}, (256,), False),
        ({}, (5000,), True),
    ],
)
def test_each_firmware_counts_in_its_own_way(keys, corners, held):
    zones = [square(number, inclusion=k == 0) for k, number in enumerate(corners)]
    assert fits(zones, Mavlink(**keys)) == held


def test_a_circle_takes_one_point_of_px4_and_13_bytes_of_ardupilot():
    circles = [Zone(False, centre=(47.0, 8.0), radius=5.0)] * 4
    assert points_needed(circles, PX4) == 4
    assert points_needed(circles, Mavlink(firmware="ardupilot")) == 7  # 56 bytes


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("most", [63, 30, 20])
def test_a_simplified_fence_allows_nothing_new_and_holds_the_route(seed, most):
    mission, ground = lake(seed=seed)
    whole = geofence(mission, ground, None)
    link = Mavlink(firmware="px4", fence_points=most)
    ends = mission.world.domain.sites[np.random.default_rng(seed).integers(0, 500, 4)]
    route = np.concatenate([mission.world.cost.path(a, b) for a, b in pairwise(ends)])

    fence = storable(whole, link, routed([route], mission, whole), "")

    assert points_needed(fence.zones, link) <= most < points_needed(whole.zones, link)
    before, after = allowed(whole.zones, ground), allowed(fence.zones, ground)
    assert shapely.difference(after, before.buffer(0.02)).is_empty
    places = ground.geodetic(route)
    assert fence.objection_on(places[1:], places[0]) is None
    legs = shapely.LineString(ground.local(route)[:, :2])
    assert shapely.distance(after.boundary, legs) > mission.world.domain.clearance / 2 - 0.1
    for zone, obstacle in zip(fence.zones[1:], mission.world.domain.solid, strict=True):
        assert (zone.inclusion, zone.name) == (False, obstacle.name)
        assert (
            zone.shape(ground)
            .buffer(0.02)
            .covers(shapely.transform(obstacle.polygon, lambda points: ground.local(points)[:, :2]))
        )
    assert {zone.inclusion for zone in fence.zones[:1]} == {True}


def test_a_fence_that_fits_stays_as_it_is():
    mission, ground = lake(corners=20, islands=1)
    whole = geofence(mission, ground, None)
    assert storable(whole, PX4, whole_world(mission, whole), "") is whole
    unknown = Mavlink()
    many = geofence(*lake(), None)
    assert storable(many, unknown, whole_world(mission, many), "") is many


def test_all_of_a_smooth_lake_is_held_with_fewer_corners():
    mission, ground = lake(corners=200, islands=0, rough=0.002, clearance=10)
    whole = geofence(mission, ground, None)
    fence = storable(whole, PX4, whole_world(mission, whole), "")
    rng, sites = np.random.default_rng(0), mission.world.domain.sites
    for a, b in rng.choice(sites, (40, 2)):
        places = ground.geodetic(mission.world.cost.path(a, b))
        assert fence.objection_on(places[1:], places[0]) is None


def test_edges_stay_straight_where_autopilots_draw_them():
    mission, _ = lake(corners=20, islands=0)
    axes = [replace(axis, high=6_000.0) for axis in mission.world.domain.axes]
    mission = replace(mission, world=replace(mission.world, domain=Domain.grid(axes, (5, 5))))
    whole = geofence(mission, FRAME.over(axes), None)  # 24 edges of a kilometre
    with pytest.raises(InputError, match=r"the fence has 28 points, but PX4 stores 20; .* it still has 28"):
        storable(whole, Mavlink(firmware="px4", fence_points=20), whole_world(mission, whole), "")


def test_a_fence_that_cannot_be_simplified_is_an_error_with_the_numbers(command):
    mission, ground = lake(rough=0.1, clearance=2)
    whole = geofence(mission, ground, None)
    number = points_needed(whole.zones, PX4)
    message = rf"the fence has {number} points, but PX4 stores 63; simplified .* it still has 1\d\d"
    with pytest.raises(InputError, match=message):
        storable(whole, PX4, whole_world(mission, whole), "")
    with pytest.raises(InputError, match=message):
        Mavlink(firmware="px4", upload_fence=True).open(mission, ground, print)
    file = boat('firmware = "px4"\nupload_fence = true')
    code, _, err = command("check", "sweep.toml", "--vehicle", file)
    assert code == 2
    assert f"the fence has {number} points, but PX4 stores 63" in " ".join(err.split())


def test_check_says_which_fence_an_autopilot_cannot_hold(command):
    mission, ground = lake(rough=0.1, clearance=2)
    number = points_needed(geofence(mission, ground, None).zones, PX4)
    code, out, _ = command("check", "sweep.toml", "--vehicle", boat('firmware = "px4"'))
    assert code == 0
    assert f"warning: the fence has {number} points, but PX4 stores 63: it cannot hold this fence" in out
    _, out, _ = command("check", "sweep.toml", "--vehicle", boat(""))
    assert f"warning: the fence has {number} points; PX4 stores 63, ArduPilot 70 on copters" in out
    lake(corners=200, islands=0, rough=0.002, clearance=10)
    _, out, _ = command("check", "sweep.toml", "--vehicle", boat('firmware = "px4"\nupload_fence = true'))
    assert "  fence     simplified from 200 points to 63, since PX4 stores 63; it allows 99." in out


@pytest.mark.parametrize(("firmware", "held"), [("px4", 63), ("ardupilot", 69)])
def test_a_plan_carries_a_fence_that_its_firmware_stores(command, firmware, held):
    mission, _ = lake(corners=200)
    code, out, _ = command("plan", "sweep.toml", "--vehicle", boat(f'firmware = "{firmware}"'))
    assert code == 0
    assert "fence     simplified from 2" in out
    plan = json.loads(Path("sweep.plan").read_text())
    corners = [polygon["polygon"] for polygon in plan["geoFence"]["polygons"]]
    assert sum(map(len, corners)) <= held
    shore, *islands = map(shapely.Polygon, corners)
    inside = shore.difference(shapely.union_all(islands))
    route = [item["params"][4:6] for item in plan["mission"]["items"]]
    assert inside.covers(shapely.LineString(route))
    assert len(route) > len(mission.vehicles)

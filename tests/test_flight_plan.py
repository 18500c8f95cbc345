"""A MAVLink vehicle's settings, its fence, and plans for it; nothing here needs pymavlink."""

import json
import math
from pathlib import Path

import pytest
from shapely.geometry import Polygon
from working_folder import write

from fieldbo.domain.axes import Axis
from fieldbo.domain.frame import Frame, Origin
from fieldbo.errors import InputError, VehicleError
from fieldbo.mission.load import load_mission
from fieldbo.runs.runner import run as simulate
from fieldbo.validation import validated
from fieldbo.vehicles.mavlink.fence import Fence
from fieldbo.vehicles.mavlink.flight_plan import plan_file, waypoints
from fieldbo.vehicles.mavlink.link import Mavlink
from fieldbo.vehicles.mavlink.settings import located

LAKE = [Axis("along", "m", 0, 1400), Axis("depth", "m", 0, 18, "down")]
GROUND = Frame(Origin(47.31, 8.58, 406.0), along="along", depth="depth").over(LAKE)
PLACE = [47.0, 8.0, 400.0]
HOOK = (
    (46.9, 7.9),
    (47.1, 7.9),
    (47.1, 8.1),
    (46.9, 8.1),
    (46.9, 8.08),
    (47.08, 8.08),
    (47.08, 7.92),
    (46.9, 7.92),
)


# -- settings --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "connection",
    ["udpin:0.0.0.0:14550", "udpout:10.0.0.2:14551", "tcp:boat.local:5760", "/dev/ttyUSB0", "COM3"],
)
def test_a_vehicle_is_reached_by_udp_tcp_or_a_serial_port(connection):
    assert Mavlink(connection).address == f"{connection}, system 1"


@pytest.mark.parametrize(
    "connection", ["", "udp:1.2.3.4:1", "udpin:14550", "tcp:host:", "udpin:h:70000", "a.tlog"]
)
def test_any_other_connection_is_an_error_that_lists_the_valid_forms(connection):
    with pytest.raises(InputError, match=r"udpin:0\.0\.0\.0:14550"):
        Mavlink(connection)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"reading": ""}, "reading = ''"),
        ({"reading": "chlorophyll"}, "1 to 10 letters"),
        ({"system": 0}, "system = 0"),
        ({"system": 255}, "own_system = 255, the vehicle's own number"),
        ({"altitude": "sea"}, "altitude"),
        ({"fence": {"corner": []}}, "corners"),
    ],
)
def test_an_invalid_setting_is_an_error(keys, message):
    with pytest.raises(InputError, match=message):
        validated(Mavlink, keys, "boat.toml: link")


def test_without_a_place_on_the_ground_an_error_shows_the_table_that_is_missing():
    with pytest.raises(VehicleError, match=r'\[frame\]\norigin = (.|\n)*along = "along"'):
        located(None, LAKE)


# -- the fence -------------------------------------------------------------------------------------------


def test_without_a_fence_every_place_is_allowed():
    assert Fence().objection(PLACE, [46.0, 9.0, 0.0], [0.0, 0.0, 0.0]) is None


@pytest.mark.parametrize(
    ("fence", "message"),
    [
        (Fence(lowest=400.5), "400 m is below the fence at 400.5 m"),
        (Fence(highest=399.0), "400 m is above the fence at 399 m"),
        (Fence(radius=5_000.0), "is 5560 m from the origin"),
        (Fence(corners=((47.01, 7.9), (47.1, 7.9), (47.1, 8.1))), "is outside the fence"),
    ],
)
def test_a_place_beyond_the_fence_is_not_allowed(fence, message):
    assert message in str(fence.objection(PLACE, origin=[47.05, 8.0, 0.0]))


def test_a_place_on_the_fence_is_allowed():
    fence = Fence(corners=((47.0, 7.9), (47.0, 8.1), (47.1, 8.0)), lowest=400.0, highest=401.0)
    assert fence.objection(PLACE) is None


def test_the_straight_path_to_a_place_has_to_stay_within_the_fence():
    fence = Fence(corners=HOOK)  # two arms, side by side
    left, right, middle = [46.95, 7.91, 400.0], [46.95, 8.09, 400.0], [47.09, 8.0, 400.0]

    assert fence.objection(right) is None
    assert "the path to 46.950000, 8.090000 leads out" in str(fence.objection(right, left))
    assert fence.objection(left, [47.05, 7.91, 400.0]) is None
    assert fence.objection(middle, [47.09, 7.95, 400.0]) is None


def test_a_vehicle_that_is_outside_may_come_in():
    fence = Fence(corners=HOOK)
    assert fence.objection([46.95, 7.91, 400.0], [46.95, 7.5, 400.0]) is None


@pytest.mark.parametrize(
    "keys",
    [
        {"corners": ((47.0, 8.0), (47.1, 8.0))},
        {"corners": ((47.0, 8.0), (47.1, 8.1), (47.1, 8.0), (47.0, 8.1))},
        {"corners": ((47.0, 8.0), (97.1, 8.1), (47.1, 8.2))},
        {"corners": ((47.0, 8.0), (math.nan, 8.1), (47.1, 8.2))},
        {"lowest": 5.0, "highest": 5.0},
        {"radius": 0.0},
        {"radius": math.nan},
    ],
)
def test_a_fence_that_encloses_nothing_is_an_error(keys):
    with pytest.raises(InputError):
        Fence(**keys)


# -- plans -----------------------------------------------------------------------------------------------


def test_the_waypoints_visit_the_sites_in_order():
    route = waypoints([[0, 0], [100, 5], [50, 18]], GROUND, Mavlink(), stay_s=4.0)

    assert [waypoint.altitude for waypoint in route] == [406.0, 401.0, 388.0]
    assert [waypoint.latitude for waypoint in route] == pytest.approx([47.31] * 3, abs=1e-6)
    assert [waypoint.longitude for waypoint in route] == pytest.approx([8.58, 8.581322, 8.580661], abs=1e-6)
    assert {waypoint.stay_s for waypoint in route} == {4.0}


def test_a_route_that_leads_out_of_the_fence_is_an_error():
    deep = Mavlink(fence=Fence(lowest=390.0))
    with pytest.raises(InputError, match="waypoint 2: altitude 388 m is below the fence"):
        waypoints([[100, 5], [100, 18]], GROUND, deep)


def test_a_route_without_sites_is_an_error():
    with pytest.raises(InputError, match="no sites"):
        waypoints([], GROUND, Mavlink())


def test_a_plan_has_everything_that_its_format_requires():
    route = waypoints([[0, 0], [100, 5]], GROUND, Mavlink(), stay_s=4.0)
    plan = json.loads(plan_file(route, GROUND, Mavlink()))

    assert (plan["fileType"], plan["version"], plan["groundStation"]) == ("Plan", 1, "fieldbo")
    mission = plan["mission"]
    required = [
        "version",
        "firmwareType",
        "globalPlanAltitudeMode",
        "vehicleType",
        "cruiseSpeed",
        "hoverSpeed",
    ]
    assert {*required, "items", "plannedHomePosition"} <= mission.keys()
    assert mission["version"] == 2
    assert mission["plannedHomePosition"] == [47.31, 8.58, 406.0]
    assert plan["rallyPoints"] == {"points": [], "version": 2}
    assert plan["geoFence"] == {"circles": [], "polygons": [], "version": 2}
    for number, (waypoint, item) in enumerate(zip(route, mission["items"], strict=True), start=1):
        assert (item["type"], item["command"], item["doJumpId"]) == ("SimpleItem", 16, number)
        assert item["params"] == [4.0, 0, 0, None, waypoint.latitude, waypoint.longitude, waypoint.altitude]
        assert (item["frame"], item["AltitudeMode"], item["Altitude"]) == (0, 2, waypoint.altitude)
        assert item["autoContinue"] is True


def test_altitudes_above_home_use_the_relative_frame():
    above_home = Mavlink(altitude="relative")
    plan = json.loads(plan_file(waypoints([[0, 0]], GROUND, above_home), GROUND, above_home))

    (item,) = plan["mission"]["items"]
    assert (item["frame"], item["AltitudeMode"]) == (3, 1)


@pytest.mark.parametrize("turn", [1, -1])
def test_a_plan_holds_the_fence_clockwise_and_its_circle(turn):
    corners = ((47.3, 8.5), (47.3, 8.7), (47.4, 8.7), (47.4, 8.5))[::turn]
    link = Mavlink(fence=Fence(corners=corners, radius=2_000.0))

    fence = json.loads(plan_file(waypoints([[0, 0]], GROUND, link), GROUND, link))["geoFence"]

    (polygon,) = fence["polygons"]
    assert {tuple(corner) for corner in polygon["polygon"]} == set(corners)
    assert not Polygon([(east, north) for north, east in polygon["polygon"]]).exterior.is_ccw
    assert (polygon["inclusion"], polygon["version"]) == (True, 1)
    assert fence["circles"] == [
        {"circle": {"center": [47.31, 8.58], "radius": 2_000.0}, "inclusion": True, "version": 1}
    ]


# -- the command -----------------------------------------------------------------------------------------

BOAT = """format = 1
[link]
kind = "mavlink"
[frame]
origin = { latitude = 47.31, longitude = 8.58, altitude = 406 }
along = "along"
depth = "depth"
"""


@pytest.fixture
def boat(tmp_path, monkeypatch):
    """The name of a vehicle file in an empty folder."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "boat.toml", BOAT)
    return "boat.toml"


def once_in_a_row(sites):
    """Return the sites without consecutive repeats."""
    return [site for k, site in enumerate(sites.tolist()) if k == 0 or site != sites[k - 1].tolist()]


def items(file):
    """Return latitude, longitude and altitude of each item of a plan."""
    mission = json.loads(Path(file).read_text())["mission"]
    return [item["params"][4:] for item in mission["items"]]


def test_the_plan_of_a_sweep_visits_the_sites_of_its_simulation(boat, command):
    code, out, _ = command("plan", "lake-lawnmower", "--vehicle", boat)

    sites = once_in_a_row(simulate(load_mission("lake-lawnmower")).sites)
    assert (code, out) == (0, f"wrote {len(sites)} waypoints to lake-lawnmower.plan\n")
    assert items("lake-lawnmower.plan") == GROUND.geodetic(sites).tolist()


def test_the_plan_of_a_run_visits_the_sites_of_that_run(boat, command):
    command("run", "lake-level-set", "--battery", "200", "--out", "once")
    code, out, _ = command("plan", "once", "--vehicle", boat, "--out", "again.plan", "--stay", "2.5")

    sites = once_in_a_row(simulate(load_mission("lake-level-set", {"agent": {"battery": 200}})).sites)
    assert (code, out) == (0, f"wrote {len(sites)} waypoints to again.plan\n")
    assert items("again.plan") == GROUND.geodetic(sites).tolist()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("lake-level-set",), "depends on its readings"),
        (("once-upon-a-time",), "no run once-upon-a-time"),
        (("once-upon-a-time", "--set", "seed=3"), "a run cannot be changed"),
        (("lake-lawnmower", "--stay", "-1"), "--stay"),
        (("lake-lawnmower", "--out", "no/where.plan"), "cannot be written"),
    ],
)
def test_a_source_that_cannot_be_planned_is_an_error(boat, command, arguments, message):
    code, _, err = command("plan", *arguments, "--vehicle", boat)

    assert code == 2
    assert message in err


def test_only_a_mavlink_vehicle_takes_a_plan(boat, command, tmp_path):
    write(tmp_path / boat, BOAT.replace("mavlink", "mqtt"))
    code, _, err = command("plan", "lake-lawnmower", "--vehicle", boat)

    assert code == 2
    assert 'a link of kind "mavlink"' in err

"""A MAVLink vehicle's settings, its fence, and plans for it; nothing here needs pymavlink."""

import json
import math
import tomllib
from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import shapely
from shapely.geometry import Polygon
from working_folder import write

from fieldbo.clock import duration_text
from fieldbo.costs.travel import Euclidean, Transect
from fieldbo.domain.axes import Axis
from fieldbo.domain.frame import Frame, Origin, ground_of
from fieldbo.domain.obstacles import Obstacle
from fieldbo.errors import InputError, VehicleError
from fieldbo.messages import Observation
from fieldbo.mission.files import list_missions, list_worlds
from fieldbo.mission.load import load_mission
from fieldbo.runs.flights import Flight, Visit, declared, through_closed, track
from fieldbo.runs.folder import begin
from fieldbo.runs.runner import run as simulate
from fieldbo.validation import validated
from fieldbo.vehicles.base import Simulated
from fieldbo.vehicles.file import LoadedVehicleFile
from fieldbo.vehicles.mavlink import flight_plan
from fieldbo.vehicles.mavlink.flight_plan import Track, Waypoint, plan_file, waypoints
from fieldbo.vehicles.mavlink.geofence import GeoFence, Zone, geofence
from fieldbo.vehicles.mavlink.link import Mavlink
from fieldbo.vehicles.mavlink.settings import Fence, located

LAKE = [Axis("along", "m", 0, 1400), Axis("depth", "m", 0, 18, "down")]
GROUND = Frame(Origin(47.31, 8.58, 406.0), along="along", depth="depth").over(LAKE)
PLACE = [47.0, 8.0, 400.0]
KNOWN = {"model": {"learn": False}}
HOME = np.array([30.0, 0.0])
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
        located(None, LAKE, Mavlink())


# -- the fence -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def transect():
    """A mission on a vertical transect, of which no fence on the ground can be made."""
    return load_mission("lake-lawnmower")


def limited(mission, **keys):
    """Return the fence of a mission with these limits in the vehicle file."""
    return geofence(mission, GROUND, Fence(**keys))


def test_without_a_fence_every_place_is_allowed(transect):
    fence = limited(transect)
    assert fence.objection(PLACE, [46.0, 9.0, 0.0]) is None
    assert fence.zones == ()


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"lowest": 400.5}, "400 m is below the fence at 400.5 m"),
        ({"highest": 399.0}, "400 m is above the fence at 399 m"),
        ({"radius": 5_000.0}, "is outside the fence"),
        ({"corners": ((47.01, 7.9), (47.1, 7.9), (47.1, 8.1))}, "is outside the fence"),
    ],
)
def test_a_place_beyond_the_fence_is_not_allowed(transect, keys, message):
    assert message in str(limited(transect, **keys).objection(PLACE))


def test_a_place_on_the_fence_is_allowed(transect):
    fence = limited(transect, corners=((47.0, 7.9), (47.0, 8.1), (47.1, 8.0)), lowest=400.0, highest=401.0)
    assert fence.objection(PLACE) is None
    assert fence.objection([47.0, 8.01, 401.0], PLACE) is None
    assert "outside" in str(fence.objection([46.999999, 8.0, 400.0]))


def test_the_straight_path_to_a_place_has_to_stay_within_the_fence(transect):
    fence = limited(transect, corners=HOOK)  # two arms, side by side
    left, right, middle = [46.95, 7.91, 400.0], [46.95, 8.09, 400.0], [47.09, 8.0, 400.0]

    assert fence.objection(right) is None
    assert "the path to 46.950000, 8.090000 leads out" in str(fence.objection(right, left))
    assert fence.objection(left, [47.05, 7.91, 400.0]) is None
    assert fence.objection(middle, [47.09, 7.95, 400.0]) is None


def test_a_vehicle_that_is_outside_may_come_in(transect):
    fence = limited(transect, corners=HOOK)
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


def way(*points):
    """Return a track from its first point, with a site at each of the others."""
    return Track(np.array(points, dtype=float), np.array([False, *[True] * (len(points) - 1)]))


def test_the_waypoints_visit_the_sites_in_order():
    route = waypoints(way([9, 0], [0, 0], [100, 5], [50, 18]), GeoFence(GROUND), stay_s=4.0)

    assert [waypoint.altitude for waypoint in route] == [406.0, 401.0, 388.0]
    assert [waypoint.latitude for waypoint in route] == pytest.approx([47.31] * 3, abs=1e-6)
    assert [waypoint.longitude for waypoint in route] == pytest.approx([8.58, 8.581322, 8.580661], abs=1e-6)
    assert {waypoint.stay_s for waypoint in route} == {4.0}


def test_a_route_that_leads_out_of_the_fence_is_an_error():
    deep = GeoFence(GROUND, limits=Fence(lowest=390.0))
    with pytest.raises(InputError, match="waypoint 2: altitude 388 m is below the fence"):
        waypoints(way([100, 0], [100, 5], [100, 18]), deep)


def test_a_route_without_sites_is_an_error(transect):
    with pytest.raises(InputError, match="no sites"):
        track(transect, [])


def test_where_a_route_only_bends_the_vehicle_does_not_stay():
    bent = Track(
        np.array([[0.0, 0], [5, 0], [9, 0], [9, 0], [0, 0]]), np.array([False, False, True, True, False])
    )
    route = waypoints(bent, GeoFence(GROUND), stay_s=4.0)
    assert [(point.is_site, point.stay_s) for point in route] == [(False, 0.0), (True, 8.0), (False, 0.0)]


def test_a_plan_has_everything_that_its_format_requires():
    fence = GeoFence(GROUND)
    route = waypoints(way([9, 0], [0, 0], [100, 5]), fence, stay_s=4.0, within=0.3)
    plan = json.loads(plan_file(route, fence, Mavlink(), HOME))

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
    assert (
        mission["plannedHomePosition"] == in_file(GROUND.geodetic(HOME).tolist())[0] != [47.31, 8.58, 406.0]
    )
    assert plan["rallyPoints"] == {"points": [], "version": 2}
    assert plan["geoFence"] == {"circles": [], "polygons": [], "version": 2}
    for number, (waypoint, item) in enumerate(zip(route, mission["items"], strict=True), start=1):
        assert (item["type"], item["command"], item["doJumpId"]) == ("SimpleItem", 16, number)
        (place,) = in_file([(waypoint.latitude, waypoint.longitude, waypoint.altitude)])
        assert item["params"] == [4.0, 0.3, 0, None, *place]
        assert (item["frame"], item["AltitudeMode"], item["Altitude"]) == (0, 2, waypoint.altitude)
        assert item["autoContinue"] is True


def test_altitudes_above_home_use_the_relative_frame():
    above_home = Mavlink(altitude="relative")
    route = waypoints(way([9, 0], [0, 0]), GeoFence(GROUND))
    plan = json.loads(plan_file(route, GeoFence(GROUND), above_home, HOME))

    (item,) = plan["mission"]["items"]
    assert (item["frame"], item["AltitudeMode"]) == (3, 1)


def written(fence):
    """Return the geofence of a plan."""
    route = [Waypoint(47.31, 8.58, 406.0)]
    return json.loads(plan_file(route, fence, Mavlink(), HOME))["geoFence"]


@pytest.mark.parametrize("turn", [1, -1])
def test_a_plan_holds_the_fence_of_the_vehicle_file_clockwise(transect, turn):
    corners = ((47.3, 8.5), (47.3, 8.7), (47.4, 8.7), (47.4, 8.5))[::turn]
    geo = written(limited(transect, corners=corners))

    (polygon,) = geo["polygons"]
    assert {tuple(corner) for corner in polygon["polygon"]} == set(corners)
    assert not Polygon([(east, north) for north, east in polygon["polygon"]]).exterior.is_ccw
    assert (polygon["inclusion"], polygon["version"]) == (True, 1)
    assert geo["circles"] == []


def test_a_plan_holds_a_radius_as_a_circle(transect):
    assert written(limited(transect, radius=2_000.0)) == {
        "version": 2,
        "polygons": [],
        "circles": [
            {"circle": {"center": [47.31, 8.58], "radius": 2_000.0}, "inclusion": True, "version": 1}
        ],
    }


def test_of_several_limits_a_plan_holds_one_inclusion_because_autopilots_disagree_on_more(transect):
    corners = ((47.3, 8.5), (47.3, 8.7), (47.4, 8.7), (47.4, 8.5))
    fence = limited(transect, corners=corners, radius=2_000.0)
    assert [zone.inclusion for zone in fence.zones] == [True]
    assert fence.objection([47.31, 8.58, 0.0]) is None
    assert "outside" in str(fence.objection([47.31, 8.61, 0.0]))
    assert "outside" in str(fence.objection([47.295, 8.58, 0.0]))


class Wire:
    """Keeps the items of an uploaded mission."""

    def __init__(self, autopilot):
        self.autopilot = lambda: autopilot

    def upload(self, items):
        self.items = items


@pytest.mark.parametrize(("autopilot", "places"), [(3, [30.0, 0.0, 100.0]), (12, [0.0, 100.0])])
def test_ardupilot_gets_the_missions_home_as_item_0(monkeypatch, autopilot, places):
    wire = Wire(autopilot)
    monkeypatch.setattr(flight_plan, "_open", lambda link: nullcontext(wire))
    monkeypatch.setattr(flight_plan, "settle_fence", lambda *_: [])
    route = waypoints(way([9, 0], [0, 0], [100, 5]), GeoFence(GROUND))
    flight_plan.upload(route, GeoFence(GROUND), Mavlink(), HOME)

    got = [GROUND.from_geodetic([item.x, item.y, item.z])[0, 0] for item in wire.items]
    assert got == pytest.approx(places, abs=1e-3)


def test_a_fence_that_the_autopilot_turns_out_not_to_store_is_not_sent(monkeypatch):
    wire = Wire(12)
    monkeypatch.setattr(flight_plan, "_open", lambda link: nullcontext(wire))
    monkeypatch.setattr(flight_plan, "settle_fence", lambda *_: pytest.fail("it was sent"))
    round_about = [(47.0 + math.cos(turn), 8.0 + math.sin(turn)) for turn in np.linspace(0, 6.2, 64)]
    fence = GeoFence(GROUND, (Zone(True, tuple(round_about)),))
    with pytest.raises(VehicleError, match=r'64 points, but PX4 stores 63(.|\n)*set firmware = "px4"'):
        flight_plan.upload([], fence, Mavlink(upload_fence=True), HOME)


# -- the command -----------------------------------------------------------------------------------------

BOAT = """format = 1
[link]
kind = "mavlink"
[frame]
origin = { latitude = 47.31, longitude = 8.58, altitude = 406 }
along = "along"
depth = "depth"
[battery]
full = "2 h"
[arrival]
within = 0.3
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


def in_file(places):
    """Return latitude, longitude and altitude (n, 3) as a plan holds them."""
    return [[round(latitude, 9), round(longitude, 9), altitude] for latitude, longitude, altitude in places]


def stops(file):
    """Return latitude, longitude and altitude of each waypoint of a plan at which the vehicle stays."""
    mission = json.loads(Path(file).read_text())["mission"]
    return [item["params"][4:] for item in mission["items"] if item["params"][0] > 0]


def test_the_plan_of_a_sweep_visits_the_sites_of_its_simulation(boat, command):
    code, out, _ = command("plan", "lake-lawnmower", "--vehicle", boat, "--set", "model.learn=false")

    sites = once_in_a_row(simulate(load_mission("lake-lawnmower", KNOWN)).sites)
    assert code == 0
    assert f" waypoints, {len(sites)} of them at sites, to lake-lawnmower.plan\n" in out
    assert stops("lake-lawnmower.plan") == in_file(GROUND.geodetic(sites).tolist())


def test_a_policy_that_ignores_readings_makes_a_plan_of_any_mission(boat, command):
    options = ("--policy", "random", "--set", "agent.battery=300", "--vehicle", boat)
    assert command("plan", "lake-level-set", *options)[0] == 0

    settings = {"policy": {"kind": "random"}, "agent": {"battery": 300}}
    sites = once_in_a_row(simulate(load_mission("lake-level-set", settings)).sites)
    assert stops("lake-level-set.plan") == in_file(GROUND.geodetic(sites).tolist())


@pytest.mark.slow
def test_the_plan_of_a_run_visits_the_sites_of_that_run(boat, command):
    command("run", "lake-level-set", "--battery", "200", "--out", "once")
    code, out, _ = command("plan", "once", "--vehicle", boat, "--out", "again.plan", "--stay", "2.5")

    sites = once_in_a_row(simulate(load_mission("lake-level-set", {"agent": {"battery": 200}})).sites)
    assert code == 0
    assert f" waypoints, {len(sites)} of them at sites, to again.plan\n" in out
    assert stops("again.plan") == in_file(GROUND.geodetic(sites).tolist())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("lake-level-set",), "depends on its readings"),
        (("once-upon-a-time",), "no run once-upon-a-time"),
        (("once-upon-a-time", "--set", "seed=3"), "a run cannot be changed"),
        (("once-upon-a-time", "--policy", "random"), "--policy does not apply to a run"),
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
    code, _, err = command("plan", "lake-lawnmower", "--vehicle", boat, "--set", "model.learn=false")

    assert code == 2
    assert 'a link of kind "mavlink"' in err


def plan_of(file):
    """Return the mission in a plan, and the parameters of its waypoints."""
    mission = json.loads(Path(file).read_text())["mission"]
    return mission, [item["params"] for item in mission["items"] if item["command"] == 16]


def test_by_default_the_vehicle_stays_as_long_as_the_worlds_sampling_takes(boat, command):
    code, out, err = command("plan", "lake-lawnmower", "--vehicle", boat, "--set", "model.learn=false")

    mission = load_mission("lake-lawnmower", KNOWN)
    result = simulate(mission)
    sites = once_in_a_row(result.sites)
    stays = [params[0] for params in plan_of("lake-lawnmower.plan")[1] if params[0] > 0]
    assert (code, err) == (0, "")
    assert len(stays) == len(sites) < len(result.sites)
    assert sum(stays) == mission.world.cost.sampling_s(result.sites).sum()
    (line,) = [line for line in out.splitlines() if line.startswith("travel and stays take about ")]
    assert line == f"travel and stays take about {duration_text(result.cost)}"


class Anchored(Simulated):
    """Takes every sample at one place, with several readings each."""

    at, readings = np.array([200.0, 5.0]), 1

    def events(self, timeout_s):
        return [
            self.moved(e) if isinstance(e, Observation) and len(e.sites) else e
            for e in super().events(timeout_s)
        ]

    def moved(self, event):
        arrays = {
            name: np.repeat(getattr(event, name), self.readings)
            for name in ("values", "noise_variances", "times_s")
        }
        return replace(event, sites=np.tile(self.at, (self.readings, 1)), position=self.at, **arrays)


@pytest.mark.slow
@pytest.mark.parametrize("readings", [1, 3])
def test_stays_at_one_place_in_succession_add_up_and_readings_of_one_stay_do_not(boat, command, readings):
    mission = load_mission("lake-level-set", {"agent": {"battery": 200}})
    vehicle = Anchored(mission)
    vehicle.readings = readings
    folder, record = begin(mission)
    with record:
        result = simulate(mission, [vehicle], record)
    code, out, _ = command("plan", folder.name, "--vehicle", boat)

    visits = sum(len(event.values) > 0 for event in result.observations)
    asked = np.array([query.site for query in result.queries])
    assert (code, visits * readings) == (0, len(result.values))
    assert visits > 1
    assert "1 of them at sites" in out
    stays = [params[0] for params in plan_of(f"{folder.name}.plan")[1] if params[0] > 0]
    assert stays == pytest.approx([mission.world.cost.sampling_s(asked).sum()])


@pytest.mark.slow
def test_the_plan_of_a_run_takes_as_long_as_its_ledger_says(boat, command):
    command("run", "lake-level-set", "--battery", "200", "--out", "once")
    _, out, _ = command("plan", "once", "--vehicle", boat)

    cost = json.loads(Path("once/summary.json").read_text())["cost"]
    assert f"travel and stays take about {duration_text(cost)}\n" in out


@pytest.mark.slow
def test_a_mission_is_planned_rather_than_a_run_of_the_same_name_and_the_command_says_so(boat, command):
    command("run", "lake-lawnmower", "--battery", "200", "--out", "runs/lake-lawnmower")
    code, out, _ = command("plan", "lake-lawnmower", "--vehicle", boat, "--set", "model.learn=false")
    said = "lake-lawnmower is a mission and a run; this plans the mission. The run: fieldbo plan "
    assert code == 0
    assert f"{said}runs/lake-lawnmower\n" in out

    code, out, _ = command("plan", "runs/lake-lawnmower", "--vehicle", boat)
    assert code == 0
    assert "is a mission and a run" not in out


def test_degrees_in_a_plan_have_nine_decimals(boat, command):
    command("plan", "lake-lawnmower", "--vehicle", boat, "--set", "model.learn=false")

    text = Path("lake-lawnmower.plan").read_text()
    assert "47.31" in text
    plan = json.loads(text)
    places = [item["params"][4:6] for item in plan["mission"]["items"]]
    places += [plan["mission"]["plannedHomePosition"][:2]]
    places += [corner for polygon in plan["geoFence"]["polygons"] for corner in polygon["polygon"]]
    assert places == np.round(places, 9).tolist()


@pytest.mark.slow
def test_an_unknown_sampling_time_becomes_a_stay_of_5_s(boat, command, monkeypatch):
    command("run", "lake-level-set", "--battery", "200", "--out", "once")
    monkeypatch.setattr(Transect, "sampling_s", lambda self, sites, *_: np.full(len(sites), np.inf))
    code, _, _ = command("plan", "once", "--vehicle", boat)

    assert code == 0
    assert {params[0] for params in plan_of("once.plan")[1]} == {0.0, 5.0}


@pytest.mark.parametrize(
    ("arguments", "warning"),
    [
        (("--stay", "600"), "more than the battery of 1 h 40 min"),
        (
            ("--set", "agent.max_steps=3", "--set", "agent.reserve=5900", "--stay", "200"),
            "less the reserve of 1 h 38 min",
        ),
        (("--stay", "60", "--set", "agent.time_limit_s=900"), "more than the time limit of 15 min"),
    ],
)
def test_a_plan_that_exceeds_a_limit_of_the_mission_warns(boat, command, arguments, warning):
    code, out, err = command(
        "plan", "lake-lawnmower", "--vehicle", boat, "--set", "model.learn=false", *arguments
    )

    number = len(plan_of("lake-lawnmower.plan")[1])
    assert code == 0
    assert warning in (text := " ".join(err.split()))
    assert f"warning: {number} waypoints take about " in text
    assert "travel and stays take about" in out


def test_the_cost_of_a_stay_is_that_of_sampling_for_as_long(tmp_path):
    wall = load_mission("wall-damage-map")
    cost, path = wall.world.cost, track(wall, [Visit(np.array([7.0, 4.0]))])

    travel, travel_s = cost.along(path.points)
    assert declared(wall, path, 8.0) == pytest.approx((travel + 8.0 * 150.0 / 3600.0, travel_s + 8.0))
    assert declared(wall, path, 0.0) == (travel, travel_s)


@pytest.mark.parametrize(
    ("pairs", "home"),
    [(("--set", "agent.home=[200, 0]"), [200.0, 0.0]), (("--set", "agent.start=[100, 0]"), [100.0, 0.0])],
)
def test_the_planned_home_is_the_missions_home_or_else_its_start(boat, command, pairs, home):
    code, _, _ = command("plan", "lake-lawnmower", "--vehicle", boat, "--set", "model.learn=false", *pairs)

    assert code == 0
    assert (
        plan_of("lake-lawnmower.plan")[0]["plannedHomePosition"] == in_file(GROUND.geodetic(home).tolist())[0]
    )


def test_each_waypoint_carries_the_arrival_tolerance_as_its_acceptance_radius(boat, command):
    command("plan", "lake-lawnmower", "--vehicle", boat, "--set", "model.learn=false")
    assert {params[1] for params in plan_of("lake-lawnmower.plan")[1]} == {0.3}


def test_a_plan_with_a_tolerance_wider_than_the_spacing_is_an_error(boat, command, tmp_path):
    write(tmp_path / boat, BOAT.replace("within = 0.3", "within = 3"))
    code, _, err = command("plan", "lake-lawnmower", "--vehicle", boat, "--set", "model.learn=false")
    assert (code, "arrival.within" in err) == (2, True)


def test_only_a_plan_that_fieldbo_wrote_is_overwritten(boat, command, tmp_path):
    for content in ("notes on the lake", '{"groundStation": "QGroundControl"}', "[]"):
        (tmp_path / "lake-lawnmower.plan").write_text(content)
        code, _, err = command("plan", "lake-lawnmower", "--vehicle", boat, "--set", "model.learn=false")
        assert (code, "is not a plan that fieldbo wrote" in " ".join(err.split())) == (2, True)
        assert (tmp_path / "lake-lawnmower.plan").read_text() == content
    (tmp_path / "lake-lawnmower.plan").write_text('{"groundStation": "fieldbo"}')
    code, _, _ = command("plan", "lake-lawnmower", "--vehicle", boat, "--set", "model.learn=false")
    assert code == 0
    assert len(plan_of("lake-lawnmower.plan")[1]) > 2


def test_a_plan_warns_of_a_speed_that_the_costs_do_not_imply(boat, command, tmp_path):
    write(tmp_path / boat, BOAT.replace('kind = "mavlink"', 'kind = "mavlink"\nspeed = 1.5'))
    code, _, err = command("plan", "lake-lawnmower", "--vehicle", boat, "--set", "model.learn=false")
    assert code == 0
    assert "but the world's costs imply 4 m/s" in " ".join(err.split())


# -- several batteries -----------------------------------------------------------------------------------

RELAY = """format = 1
title = "random sites on three batteries"
world = "lake-transect"
[question]
kind = "level-set"
threshold = 3
[agent]
battery = 700
start = [30, 0]
home = [0, 0]
reserve = 20
recharge = { at = "home", takes_s = 100, batteries = 3 }
[policy]
kind = "random"
[model]
learn = false
length_scales = [100, 3]
"""
RELAY_PLANS = [f"relay-battery-{number}.plan" for number in (1, 2, 3)]


@pytest.fixture
def relay(boat, tmp_path):
    """A mission with three batteries beside the vehicle file."""
    write(tmp_path / "relay.toml", RELAY)
    return load_mission("relay.toml")


def along(file):
    """Return the points (k, d) of a plan on the lake."""
    return GROUND.from_geodetic([params[4:] for params in plan_of(file)[1]])


def test_each_battery_has_a_plan_that_leads_home_and_costs_what_its_ledger_says(relay, boat, command):
    code, out, err = command("plan", "relay.toml", "--vehicle", boat)

    result = simulate(relay)
    account = result.accounts[0]
    assert (code, err) == (0, "")
    for number, file in enumerate(RELAY_PLANS, start=1):
        spent = math.fsum(
            entry.spent for order, entry, _ in account.lines if account.battery_of[order.id] == number
        )
        sites = [
            event.sites[0].tolist()
            for event in result.observations
            if len(event.sites) and account.battery_of[event.order] == number
        ]
        assert f"battery {number}: travel and stays take about {duration_text(spent)}\n" in out
        assert stops(file) == in_file(GROUND.geodetic(sites).tolist())
        assert along(file)[-1] == pytest.approx([0.0, 0.0], abs=1e-3)


def test_the_plans_of_a_run_are_those_that_it_flew(relay, boat, command):
    folder, record = begin(relay, Path("flown"))
    with record:
        simulate(relay, record=record)
    command("plan", "relay.toml", "--vehicle", boat)
    code, _, err = command("plan", folder, "--vehicle", boat)

    assert (code, err) == (0, "")
    for number, file in enumerate(RELAY_PLANS, start=1):
        assert Path(f"flown-battery-{number}.plan").read_text() == Path(file).read_text()


def test_a_trip_home_without_a_new_battery_is_flown_too(relay):
    there, home = Visit(np.array([200.0, 5.0])), Visit(np.zeros(2), is_site=False)
    way = track(relay, [there, home, there])
    passed = way.points[(way.points == 0.0).all(axis=1)]
    assert len(passed) == 2  # between the readings, and at the end
    assert way.is_site.sum() == 2


def uploading(monkeypatch):
    """Return the routes that are uploaded from now on."""
    sent = []
    monkeypatch.setattr(flight_plan, "upload", lambda route, *_: sent.append(route) or [])
    return sent


def test_with_several_plans_an_upload_says_which(relay, boat, command, monkeypatch):
    sent = uploading(monkeypatch)
    code, _, err = command("plan", "relay.toml", "--vehicle", boat, "--upload")
    assert (code, sent) == (2, [])
    assert "the first one with --upload-battery 1" in " ".join(err.split())
    code, _, err = command("plan", "relay.toml", "--vehicle", boat, "--upload-battery", "4")
    assert (code, sent) == (2, [])
    assert "expected: 1, 2, 3" in err
    assert not Path(RELAY_PLANS[0]).exists()

    code, out, _ = command("plan", "relay.toml", "--vehicle", boat, "--upload-battery", "2")
    assert code == 0
    assert f"battery 2: uploaded {len(sent[0])} waypoints" in out
    assert [point.latitude for point in sent[0]] == pytest.approx(
        [params[4] for params in plan_of(RELAY_PLANS[1])[1]]
    )


@pytest.mark.parametrize("which", [("--upload-battery", "2"), ("--upload-battery", "3")])
def test_a_plan_beyond_its_battery_is_not_uploaded(relay, boat, command, monkeypatch, which):
    sent = uploading(monkeypatch)
    code, _, err = command("plan", "relay.toml", "--vehicle", boat, "--stay", "60", *which)

    assert (code, sent) == (2, [])
    said = " ".join(err.split())
    assert f"battery {which[1]}: " in said
    assert "more than the battery of 11 min 40 s" in said
    assert not Path(RELAY_PLANS[0]).exists()


def test_a_single_plan_beyond_its_battery_is_not_uploaded_either(boat, command, monkeypatch):
    sent = uploading(monkeypatch)
    words = ("plan", "lake-lawnmower", "--vehicle", boat, "--set", "model.learn=false")
    code, _, err = command(*words, "--stay", "600", "--upload")
    assert (code, sent) == (2, [])
    assert "more than the battery of 1 h 40 min" in " ".join(err.split())
    code, out, _ = command(*words, "--upload")
    assert (code, len(sent)) == (0, 1)
    assert f"\nuploaded {len(sent[0])} waypoints" in out


def test_the_time_limit_holds_for_all_batteries_and_their_changes(relay, boat, command):
    code, _, err = command("plan", "relay.toml", "--vehicle", boat, "--stay", "5")
    assert (code, err) == (0, "")
    limit = ("--set", "agent.time_limit_s=9000")
    code, _, err = command("plan", "relay.toml", "--vehicle", boat, "--stay", "700", *limit)
    assert code == 0
    assert "more than the time limit of 2 h 30 min" in " ".join(err.split())


def test_files_of_batteries_that_are_no_longer_used_are_named(relay, boat, command):
    command("plan", "relay.toml", "--vehicle", boat)
    code, _, err = command("plan", "relay.toml", "--vehicle", boat, "--set", "agent.recharge.batteries=2")
    assert code == 0
    assert "warning: relay-battery-3.plan is left over from an earlier plan" in err


# -- obstacles -------------------------------------------------------------------------------------------

FACADE = """format = 1
[link]
kind = "mavlink"
altitude = "relative"
[frame]
origin = { latitude = 47.38, longitude = 8.54 }
bearing = 30
along = "along"
height = "height"
[arrival]
within = 0.1
"""
LAKE_BOAT = """format = 1
[link]
kind = "mavlink"
altitude = "relative"
vehicle = "boat"
[arrival]
within = 1.0
"""
ON_A_LAKE = """
[frame]
origin = { latitude = 47.31, longitude = 8.58 }
along = "east"
left = "north"
"""


def vehicle_for(domain):
    """Return the file of a vehicle that fits a domain: on the Earth, seen from above, or a facade."""
    if domain.crs is not None:
        return LAKE_BOAT
    return LAKE_BOAT + ON_A_LAKE if domain.axes[1].name == "north" else FACADE


WITH_OBSTACLES = [
    name
    for name, file in list_missions().items()
    if {"obstacles", "outline"}
    & tomllib.loads(list_worlds()[tomllib.loads(file.read_text())["world"]].read_text())["domain"].keys()
]


def too_near(track, domain):
    """Return the legs of a track (k, d) nearer to an obstacle or the outline than the clearance."""
    legs = [shapely.LineString(leg) for leg in pairwise(track)]
    keep = domain.clearance - 1e-3  # files hold degrees, rounded
    shore = shapely.box(*domain.low, *domain.high).buffer(1e-3)
    if domain.outline is not None:
        shore = domain.outline.buffer(-keep)
    solid = shapely.union_all([o.polygon.buffer(keep - 1e-3) for o in domain.solid])
    return [leg.wkt for leg in legs if solid.crosses(leg) or solid.contains(leg) or not shore.covers(leg)]


def flown(file, mission, vehicle):
    """Return the points (k, d) of a plan, from the mission's start, in the domain."""
    settings = LoadedVehicleFile.read(vehicle).settings
    ground = ground_of(mission.world.domain, settings.frame)
    content = json.loads(Path(file).read_text())["mission"]["items"]
    places = [item["params"][4:] for item in content if item["command"] == 16]
    return np.concatenate([mission.vehicles[0].start[None], ground.from_geodetic(places)])


def test_there_are_shipped_missions_with_obstacles():
    assert "wall-damage-map" in WITH_OBSTACLES


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_OBSTACLES)
def test_no_leg_of_the_plan_of_a_shipped_mission_runs_through_an_obstacle(
    tmp_path, monkeypatch, command, name
):
    monkeypatch.chdir(tmp_path)
    slow = name.startswith("wall-worst-crack")
    mission = load_mission(name, {"agent": {"max_steps": 5}} if slow else {})
    write(tmp_path / "drone.toml", vehicle_for(mission.world.domain))
    folder, record = begin(mission, tmp_path / "run")
    with record:
        result = simulate(mission, record=record)

    code, _, err = command("plan", folder, "--vehicle", "drone.toml", "--out", "wall.plan")

    assert code == 0
    expected = ("warning: return to launch", "warning: the fence has")
    assert all(line.startswith(expected) for line in err.splitlines())
    track = flown("wall.plan", mission, "drone.toml")
    assert len(track) >= len(once_in_a_row(result.sites))
    assert too_near(track, mission.world.domain) == []
    straight = np.concatenate([mission.vehicles[0].start[None], result.sites])
    assert slow or too_near(straight, mission.world.domain)


class Autopilot:
    """An autopilot of a kind, which keeps the mission that is uploaded."""

    def __init__(self, number):
        self.number, self.mission = number, []

    def autopilot(self):
        return self.number

    def upload(self, mission):
        self.mission = list(mission)


@pytest.mark.parametrize(
    ("number", "firmware", "commands", "stay_s"),
    [
        (3, None, {115, 203}, 3.0),
        (3, "px4", {115, 203}, 3.0),
        (12, "ardupilot", {2000}, 2.5),
        (0, None, {2000}, 2.5),
    ],
)
def test_an_uploaded_plan_speaks_the_language_of_the_autopilot_that_answers(
    number, firmware, commands, stay_s, monkeypatch
):
    vehicle = Autopilot(number)
    monkeypatch.setattr(flight_plan, "_open", lambda _: nullcontext(vehicle))
    monkeypatch.setattr(flight_plan, "settle_fence", lambda *_: [])
    link = Mavlink(yaw=90.0, camera=True, firmware=firmware)
    notes = flight_plan.upload(
        [Waypoint(47.31, 8.581, 0.0, 2.5)], GeoFence(GROUND), link, np.array([0.0, 0.0])
    )
    assert commands <= {item.command for item in vehicle.mission}
    assert max(item.params[0] for item in vehicle.mission if item.command == flight_plan.WAYPOINT) == stay_s
    assert [("but its file says" in note) for note in notes] == ([True] if firmware else [])


def test_a_plan_through_an_area_that_was_closed_under_way_is_warned_about_and_fenced(relay, boat):
    relay = replace(relay, world=replace(relay.world, cost=Euclidean(rate=1.0, sampling=1.0)))
    flights = across(relay)
    closed = relay.with_no_go([Obstacle("nets", (95.0, -5.0), (105.0, 30.0))])
    (warning,) = through_closed(closed, flights)
    assert "leads through nets, which was closed under way" in warning
    assert through_closed(relay, flights) == []


def across(mission):
    """Return one flight across the lake."""
    way = track(mission, [Visit(np.array([200.0, 5.0])), Visit(np.zeros(2), is_site=False)])
    return [Flight(1, way, np.zeros(len(way.points)))]

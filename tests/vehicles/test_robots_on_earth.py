"""Robots in worlds with a CRS: goals, plans and fences are at the right degrees, and so are local metres."""

import json
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
import shapely
from direct_link import Guided, Near, Streaming
from earth import SPOTS, degrees_at, world_on_earth
from hypothesis import given, settings
from hypothesis import strategies as st
from pyproj import Geod, Transformer
from tiers import examples, swept
from working_folder import edit

from fieldbo.cli.robot import _parse_site
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.frame import Frame, Origin, ground_of
from fieldbo.errors import InputError
from fieldbo.messages import Observation, Query
from fieldbo.mission.load import load_mission, load_world
from fieldbo.testing import SteppedClock
from fieldbo.vehicles.mqtt.protocol import Codec
from fieldbo.vehicles.remote.link import Goal
from fieldbo.vehicles.remote.remote import Remote
from fieldbo.vehicles.remote.settings import Arrival, Battery, Reports, VehicleFile, Watch
from fieldbo.vehicles.simulators import Robot

CM = 0.01
STRAIGHT_HOME = "warning: return to launch"
"""There are an island and a reef in the way."""

EVERYWHERE = sorted(SPOTS)
PATTERNS = ["square", "hexagonal"]
PLANNED = [("delft", "square"), ("dateline", "hexagonal"), ("pole", "square")]
WGS84 = Geod(ellps="WGS84")


def degrees_of(crs, sites):
    """Return latitude and longitude (k, 2) by pyproj alone."""
    x, y = np.atleast_2d(sites)[:, :2].T
    longitude, latitude = Transformer.from_crs(crs, "EPSG:4326", always_xy=True).transform(x, y)
    return np.column_stack([latitude, longitude])


def metres_of(crs, degrees):
    """Return easting and northing (k, 2) by pyproj alone."""
    latitude, longitude = np.atleast_2d(degrees)[:, :2].T
    to_metres = Transformer.from_crs("EPSG:4326", crs, always_xy=True)
    return np.column_stack(to_metres.transform(longitude, latitude))


def apart_m(a, b):
    a, b = np.atleast_2d(a), np.atleast_2d(b)
    return np.asarray(WGS84.inv(a[:, 1], a[:, 0], b[:, 1], b[:, 0])[2])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def in_one_line(text):
    return " ".join(text.split())


# -- on the ground -----------------------------------------------------------------------------------------


def square(name, half_m, **origin):
    """Return the domain of a square around a spot."""
    spot = SPOTS[name]
    middle = metres_of(spot.crs, [[spot.latitude, spot.longitude]])[0]
    names = zip(("east", "north"), (middle - half_m).tolist(), (middle + half_m).tolist(), strict=True)
    return Domain.grid([Axis(n, "m", low, high) for n, low, high in names], (5, 5), crs=spot.crs)


def geodesics(origin, degrees):
    """Return metres east and north (k, 2) of an origin, by distance and bearing."""
    k = len(degrees)
    bearing, _, length = WGS84.inv([origin[1]] * k, [origin[0]] * k, degrees[:, 1], degrees[:, 0])
    turned = np.radians(bearing)
    return np.column_stack([length * np.sin(turned), length * np.cos(turned)])


@pytest.mark.parametrize("name", EVERYWHERE)
def test_local_metres_are_distances_and_bearings_from_the_origin(name):
    domain = square(name, 1000.0)
    ground = ground_of(domain)
    degrees = degrees_of(domain.crs, domain.sites)
    origin = (ground.origin.latitude, ground.origin.longitude)
    local = ground.local(domain.sites)
    assert np.abs(local[:, :2] - geodesics(origin, degrees)).max() < CM
    assert np.abs(ground.sites(local) - domain.sites).max() < CM
    assert apart_m(ground.geodetic(domain.sites), degrees).max() < CM
    assert np.abs(ground.from_geodetic(ground.geodetic(domain.sites)) - domain.sites).max() < CM


def test_a_frame_towards_grid_north_would_be_off_by_tens_of_metres_at_the_edge_of_a_zone():
    domain = square("arctic", 1000.0)
    ground = ground_of(domain)
    zero = dict(zip(("east", "north"), ground.zero.tolist(), strict=True))
    naive = Frame(ground.origin, 90.0, along="east", left="north", zero=zero).over(domain.axes)
    true = degrees_of(domain.crs, domain.sites)
    assert 50.0 < apart_m(naive.geodetic(domain.sites), true).max() < 100.0
    assert apart_m(ground.geodetic(domain.sites), true).max() < CM


@settings(deadline=None, max_examples=examples(30))
@given(
    name=st.sampled_from(EVERYWHERE),
    east=st.floats(-2000, 2000),
    north=st.floats(-2000, 2000),
    away=st.floats(-500, 500),
    up=st.floats(-100, 100),
)
def test_sites_come_back_from_local_metres_whatever_the_origin(name, east, north, away, up):
    domain, spot = square(name, 1000.0), SPOTS[name]
    latitude, longitude = degrees_at(spot, away, -away)
    longitude = (longitude + 180.0) % 360.0 - 180.0
    ground = ground_of(domain, Frame(Origin(latitude, longitude, up)))
    site = metres_of(spot.crs, [[spot.latitude, spot.longitude]])[0] + np.array([east, north])
    assert np.abs(ground.sites(ground.local(site))[0] - site).max() < CM
    assert ground.geodetic(site)[0, 2] == up


@pytest.mark.parametrize("fault", [np.nan, np.inf, -np.inf, 1e12, 1e30])
def test_a_faulty_position_is_nowhere(fault):
    ground = ground_of(square("lake", 1000.0))
    assert np.isnan(ground.sites([[fault, 0.0, 0.0]])).any()
    codec = Codec(square("lake", 1000.0).axes, ground)
    assert np.isnan(codec.site({"latitude": fault, "longitude": 8.5, "altitude": 0.0})).any()


def test_null_island_is_nowhere_near_the_antimeridian():
    ground = ground_of(square("dateline", 1000.0))
    assert not np.abs(ground.from_geodetic([[0.0, 0.0, 0.0]])[0] - ground.zero).max() < 1e6


def test_a_frame_with_directions_contradicts_the_crs():
    with pytest.raises(InputError, match="the world has a CRS, which places its axes"):
        ground_of(square("lake", 100.0), Frame(Origin(47.3, 8.5), along="east", left="north"))


# -- vehicle files and plans -------------------------------------------------------------------------------


def boat_for(folder, said, name, **changes):
    """Write a world, its mission, and a boat's file as `fieldbo new vehicle` does."""
    file = world_on_earth(folder, name, **changes)
    edit(file, "battery = 8000", "battery = 8000\nfull_battery = 9000")
    out = said("new", "vehicle", "boat", "--link", "mavlink", "--world", name)
    assert "next: fieldbo plan RUN --vehicle boat.toml" in out
    assert "set full in its [battery] first" in out
    return load_mission(file)


@pytest.mark.parametrize("name", ["lake", "pole"])
def test_a_new_vehicle_file_fits_a_world_with_a_crs_as_it_is(folder, said, name):
    boat_for(folder, said, name)
    out = in_one_line(said("check", name, "--vehicle", "boat.toml"))
    latitude, longitude = degrees_at(SPOTS[name], -120, -80)
    place = f"{latitude:.6f}, {longitude:.6f}"
    assert f"place start at {place}; home at {place} (latitude, longitude)" in out
    assert "domain placed by the world's CRS, WGS 84 / UT" in out or "WGS 84 / UPS" in out
    assert "warning" not in out.replace(STRAIGHT_HOME, "")


def test_no_frame_is_needed(folder, said):
    boat_for(folder, said, "lake")
    text = Path("boat.toml").read_text()
    before, behind = text.split("[frame]")
    Path("boat.toml").write_text(before + behind[behind.index("[watch]") :])
    out = said("check", "lake", "--vehicle", "boat.toml")
    assert "warning" not in out.replace(STRAIGHT_HOME, "")
    assert "place     start at 47." in out


def test_an_origin_far_from_the_world_is_doubted(folder, said):
    boat_for(folder, said, "lake")
    edit("boat.toml", "origin = { latitude = 47.", "origin = { latitude = 46.")
    out = in_one_line(said("check", "lake", "--vehicle", "boat.toml"))
    assert "warning: the domain's nearest point is 111 km from its origin: check origin in [frame]" in out


@pytest.mark.parametrize("lattice", swept(product(EVERYWHERE, PATTERNS), PLANNED), ids="-".join)
def test_a_plan_goes_to_the_degrees_of_the_sites_within_its_fence(folder, said, command, lattice):
    name, pattern = lattice
    mission = boat_for(folder, said, name, pattern=pattern)
    edit(f"missions/{name}.toml", "max_steps = 6\n", "")
    code, _, err = command("plan", name, "--vehicle", "boat.toml", "--out", "boat.plan")
    assert (code, err.startswith(STRAIGHT_HOME), err.count("warning")) == (0, True, 1)
    plan, domain, crs = json.loads(Path("boat.plan").read_text()), mission.world.domain, SPOTS[name].crs

    items = [item for item in plan["mission"]["items"] if item["command"] == 16]
    degrees = np.array([item["params"][4:6] for item in items])
    stays = np.array([item["params"][0] > 0 for item in items])
    assert stays.sum() > 20
    sites = np.array([domain.sites[domain.nearest(m)] for m in metres_of(crs, degrees)])
    sites[0] = mission.vehicles[0].start  # the first reading is taken there
    assert apart_m(degrees, degrees_of(crs, sites))[stays].max() < CM
    home = plan["mission"]["plannedHomePosition"][:2]
    assert apart_m(home, degrees_at(SPOTS[name], -120, -80))[0] < CM
    assert (np.abs(degrees[:, 1]) <= 180.0).all()

    zones = [(zone["inclusion"], zone["polygon"]) for zone in plan["geoFence"]["polygons"]]
    placed = [(inside, shapely.Polygon(metres_of(crs, corners))) for inside, corners in zones]
    (inclusion,) = (shape for inside, shape in placed if inside)
    exclusions = [shape for inside, shape in placed if not inside]
    room = domain.clearance / 2.0
    outline = shapely.Polygon(domain.outline.exterior).buffer(-room, join_style="mitre")
    island = shapely.Polygon(domain.outline.interiors[0]).buffer(room, join_style="mitre")
    reef = domain.solid[0].polygon.buffer(room, join_style="mitre")
    assert shapely.hausdorff_distance(inclusion, outline) < 0.05
    for solid in (island, reef):
        assert min(shapely.hausdorff_distance(solid, shape) for shape in exclusions) < 0.05

    allowed = shapely.difference(inclusion, shapely.union_all(exclusions))
    start = metres_of(crs, [degrees_at(SPOTS[name], -120, -80)])
    way = np.concatenate([start, metres_of(crs, degrees)])
    assert all(shapely.covers(allowed, shapely.LineString(leg)) for leg in pairwise(way))


def test_a_mission_that_the_fence_excludes_is_an_error_in_degrees(folder, command, said):
    boat_for(folder, said, "lake")
    edit("boat.toml", "# fence =", "fence = { radius = 50 }")
    code, _, err = command("check", "lake", "--vehicle", "boat.toml")
    latitude, longitude = degrees_at(SPOTS["lake"], -120, -80)
    assert code == 2
    assert f"the start {latitude:.6f}, {longitude:.6f} is not allowed" in in_one_line(err)


# -- robots ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERYWHERE)
def test_goals_over_mqtt_carry_the_degrees_of_their_sites_and_routes(folder, name):
    domain = load_mission(world_on_earth(folder, name)).world.domain
    codec = Codec(domain.axes, ground_of(domain))
    route = domain.sites[[3, 40, 7]]
    body = codec.goal(Goal("g", route[-1], route=route))
    told = [[place["latitude"], place["longitude"]] for place in [body["place"], *body["places"]]]
    assert apart_m(told, degrees_of(domain.crs, [route[-1], *route])).max() < CM
    assert np.abs(codec.site(body["place"]) - route[-1]).max() < CM


@pytest.mark.each_choice
@pytest.mark.parametrize("link", [Near, Streaming, Guided])
@pytest.mark.parametrize("name", ["lake", "dateline", "pole"])
def test_robots_end_at_the_sites_of_a_world_with_large_coordinates(folder, name, link):
    mission = load_mission(world_on_earth(folder, name))
    world, (spec,) = mission.world, mission.vehicles
    clock = SteppedClock()
    robot = Robot(world, seed=0, start=spec.start, battery=spec.battery, speedup=1000.0, clock=clock)
    content = VehicleFile.model_construct(
        format=1,
        title="",
        link={},
        frame=None,
        watch=Watch(silence_s=5.0, connect_s=5.0, least_s=30.0),
        battery=Battery(),
        reports=Reports(accuracy=CM),
        arrival=Arrival(CM, dwell_s=0.0),
    )
    site = world.domain.sites[world.domain.nearest(spec.start + np.array([240.0, 60.0]))]
    route, events = world.cost.path(spec.start, site), []
    with Remote(mission, 0, link(robot), content, "s", clock) as vehicle:
        vehicle.send(Query(site, id="m/0", expected_cost=300.0, route=route))
        while not any(isinstance(event, Observation) for event in events):
            assert clock.now_s() < 60.0, events
            events += vehicle.events(1.0)
    (reading,) = (event for event in events if isinstance(event, Observation))
    assert apart_m(degrees_of(world.domain.crs, robot.position), degrees_of(world.domain.crs, site))[0] < CM
    assert np.array_equal(reading.position, site)


def test_simulated_robots_start_at_degrees(folder):
    world_on_earth(folder)
    domain = load_world("lake").domain
    latitude, longitude = degrees_at(SPOTS["lake"], -100, -50)
    place = _parse_site(f"{latitude},{longitude}", domain, "--start")
    assert apart_m(degrees_of(domain.crs, place), [latitude, longitude])[0] < CM
    assert _parse_site("463000,5239500", domain, "--start").tolist() == [463_000.0, 5_239_500.0]


def test_the_list_of_worlds_names_their_crs(folder, said):
    world_on_earth(folder)
    out = said("worlds")
    assert "CRS" in out.splitlines()[0]
    (line,) = (line for line in out.splitlines() if line.startswith("lake "))
    assert line.rstrip().endswith("EPSG:32632")

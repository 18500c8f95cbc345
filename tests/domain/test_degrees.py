"""Latitude and longitude at the edges of a world with a CRS: what is read, printed and typed."""

import csv
import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from earth import SPOTS, degrees_at, world_on_earth
from hypothesis import given, settings
from hypothesis import strategies as st
from pyproj import Geod, Transformer
from tiers import examples

from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.georeference import Georeference
from fieldbo.errors import InputError
from fieldbo.messages import Query
from fieldbo.mission.load import load_mission
from fieldbo.runs.export.raster import trajectory
from fieldbo.runs.folder import begin
from fieldbo.runs.replay import read_run
from fieldbo.runs.runner import run
from fieldbo.vehicles.by_hand import ByHand
from fieldbo.vehicles.dialogue import Dialogue
from fieldbo.vehicles.typed_places import angles_in, has_angles, typed_places

CM = 0.01
EVERYWHERE = sorted(SPOTS)


@cache
def to_degrees(crs):
    return Transformer.from_crs(crs, "EPSG:4326", always_xy=True)


def by_pyproj(crs, points):
    """Return latitude and longitude (k, 2) of eastings and northings, without fieldbo."""
    x, y = np.atleast_2d(points).T
    longitude, latitude = to_degrees(crs).transform(x, y)
    return np.column_stack([latitude, longitude])


@cache
def earth_of(name):
    return Georeference(SPOTS[name].crs)


def apart_m(a, b):
    """Return the distances (k,) on the ground between latitudes and longitudes (k, 2)."""
    (a_lat, a_lon), (b_lat, b_lon) = np.atleast_2d(a).T, np.atleast_2d(b).T
    return np.asarray(Geod(ellps="WGS84").inv(a_lon, a_lat, b_lon, b_lat)[2])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def in_one_line(text):
    return " ".join(text.split())


# -- there and back ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERYWHERE)
@settings(deadline=None, max_examples=examples(30))
@given(east=st.floats(-3000, 3000), north=st.floats(-3000, 3000))
def test_places_come_back_from_degrees_within_a_millimetre(name, east, north):
    earth, spot = earth_of(name), SPOTS[name]
    site = earth.metres([[spot.latitude, spot.longitude]])[0] + np.array([east, north])
    degrees = earth.degrees(site)
    assert (np.abs(degrees) <= [90.0, 180.0]).all()
    assert np.abs(earth.metres(degrees)[0] - site).max() < 1e-3
    assert apart_m(degrees, by_pyproj(spot.crs, site))[0] < 1e-6


@pytest.mark.parametrize("name", EVERYWHERE)
@settings(deadline=None, max_examples=examples(30))
@given(east=st.floats(-500, 500), north=st.floats(-500, 500))
def test_printed_degrees_mean_a_place_at_most_a_decimetre_away(name, east, north):
    earth, spot = earth_of(name), SPOTS[name]
    site = earth.metres([[spot.latitude, spot.longitude]])[0] + np.array([east, north])
    typed = [float(part) for part in earth.text(site).split(", ")]
    assert apart_m(typed, earth.degrees(site))[0] < 0.1


@settings(deadline=None)
@given(
    latitude=st.floats(-89.99, 89.99),
    longitude=st.floats(-179.99, 179.99),
    parts=st.sampled_from([1, 2, 3]),
    before=st.booleans(),
    signs=st.booleans(),
    longitude_first=st.booleans(),
)
def test_angles_are_read_as_people_write_them(latitude, longitude, parts, before, signs, longitude_first):
    def written(value, sides):
        rest, numbers = abs(value), []
        for _ in range(parts - 1):
            numbers.append(str(int(rest)))
            rest = (rest - int(rest)) * 60.0
        numbers.append(f"{rest:.9f}" if parts == 1 else f"{min(rest, 59.999999999):.9f}")
        text = " ".join(numbers)
        if signs:
            text = "".join(n + sign for n, sign in zip(numbers, "°'\"", strict=False))
        side = sides[value < 0]
        return f"{side}{text}" if before else f"{text}{side}"

    angles = [written(latitude, "NS"), written(longitude, "EW")]
    text = ", ".join(angles[::-1] if longitude_first else angles)
    assert has_angles(text)
    degrees, rest = angles_in(text)
    assert rest == ""
    assert degrees == pytest.approx([latitude, longitude], abs=1e-7)


@pytest.mark.parametrize(
    "text", ["47N 8N", "47°61'N 8°E", "95N 8E", "47'N 8'E", "47N", "8E", "N E", "181E 3N", "47.3 N and 8.5 E"]
)
def test_other_angles_are_questioned_with_an_example(text):
    with pytest.raises(InputError, match="is not a latitude and a longitude") as error:
        angles_in(text)
    assert "47°18.48'N 8°30.63'E" in error.value.fix


def test_a_place_that_the_crs_cannot_hold_is_an_error_that_names_the_order():
    with pytest.raises(InputError, match="too far away for WGS 84 / UTM zone 32N") as error:
        Georeference("EPSG:32632").metres([[0.0, 99.1]])
    assert "latitude comes before longitude" in error.value.fix


def test_axes_named_in_the_wrong_order_are_an_error():
    axes = [Axis("north", "m", 5_239_000, 5_240_000), Axis("east", "m", 463_000, 464_000)]
    with pytest.raises(InputError, match="the axis north comes before east"):
        Domain.grid(axes, (3, 3), crs="EPSG:32632")


# -- files -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERYWHERE)
def test_worlds_are_shown_in_degrees_with_their_crs(folder, said, name):
    spot = SPOTS[name]
    world_on_earth(folder, name)
    out = in_one_line(said("check", name))
    latitude, longitude = degrees_at(spot, -120, -80)
    assert f"start {latitude:.6f}, {longitude:.6f}, home {latitude:.6f}, {longitude:.6f}" in out
    assert f"crs {Georeference(spot.crs).name}: east" in out
    assert "e+06" not in out
    shown = out.split("latitude ")[1].split(" crs ")[0].replace(", longitude", " to").split(" to ")
    south, north, west, east = map(float, shown)
    assert south <= spot.latitude <= north
    assert (spot.longitude - west) % 360.0 < 0.1
    assert (east - spot.longitude) % 360.0 < 0.1


def start_at(folder, latitude, longitude, name="lake"):
    file = folder / "missions" / f"{name}.toml"
    lines = [line for line in file.read_text().splitlines() if not line.startswith("home")]
    at = lines.index("[agent]") + 1
    lines.insert(at, f"start = {{ latitude = {latitude!r}, longitude = {longitude!r} }}")
    file.write_text("\n".join(lines))
    return file


@pytest.mark.parametrize("name", EVERYWHERE)
@pytest.mark.parametrize(
    ("offset", "why"),
    [
        ((-300, 0), "lies outside the domain"),
        ((-65, 5), "lies outside the domain"),  # on the island
        ((40, -20), "lies inside the obstacle 'reef'"),
        ((-148, 0), "lies within 4 m of the outline"),
    ],
)
def test_a_start_that_is_not_allowed_is_an_error_in_degrees(folder, name, offset, why):
    world_on_earth(folder, name)
    spot = SPOTS[name]
    latitude, longitude = degrees_at(spot, *offset)
    with pytest.raises(InputError, match=why) as error:
        load_mission(start_at(folder, latitude, longitude, name))
    assert f"start {latitude:.6f}, {longitude:.6f}" in error.value.problem
    shown = error.value.fix.removeprefix("the nearest site is ").split(", ")[:2]
    assert apart_m([float(x) for x in shown], [latitude, longitude])[0] < 200
    assert error.value.where.endswith("agent.start")


@pytest.mark.parametrize("name", ["lake", "south", "delft"])
def test_swapped_degrees_of_a_start_are_recognised(folder, name):
    world_on_earth(folder, name)
    latitude, longitude = degrees_at(SPOTS[name], -120, -80)
    with pytest.raises(InputError, match="lies far outside the domain") as error:
        load_mission(start_at(folder, longitude, latitude, name))
    assert error.value.fix == (f"they look swapped: write latitude = {latitude:g}, longitude = {longitude:g}")


# -- tables and reports ------------------------------------------------------------------------------------


def rows_of(file):
    with Path(file).open(newline="") as text:
        return list(csv.DictReader(text))


@pytest.mark.parametrize("pattern", ["square", "hexagonal"])
@pytest.mark.parametrize("name", ["lake", "dateline", "pole"])
def test_tables_have_the_degrees_of_each_place(folder, name, pattern):
    result = run(load_mission(world_on_earth(folder, name, pattern=pattern)))
    for file, table in result.tables().items():
        (folder / file).write_bytes(table)
    for file, sites in (("observations.csv", result.sites), ("path.csv", result.path)):
        rows = rows_of(folder / file)
        columns = list(rows[0])
        at = columns.index("north")
        assert columns[at - 1 : at + 3] == ["east", "north", "latitude", "longitude"]
        degrees = [[float(row["latitude"]), float(row["longitude"])] for row in rows]
        assert apart_m(degrees, by_pyproj(SPOTS[name].crs, sites)).max() < CM
        assert [[float(row["east"]), float(row["north"])] for row in rows] == sites.tolist()


def test_an_optimum_is_reported_in_degrees(folder):
    result = run(load_mission(world_on_earth(folder, question="optimum")))
    summary = result.summary()
    assert summary["crs"] == "WGS 84 / UTM zone 32N (EPSG:32632)"
    degrees = by_pyproj("EPSG:32632", summary["reported_site"])[0]
    assert summary["reported_site_degrees"] == degrees.round(7).tolist()
    assert f"at {degrees[0]:.6f}, {degrees[1]:.6f}" in str(result.report())
    json.dumps(summary, allow_nan=False)


def test_explanations_are_in_degrees(folder, said):
    file = world_on_earth(folder, question="optimum", policy="dist-ucb")
    result = run(load_mission(file), record=begin(load_mission(file), folder / "r")[1])
    out = said("ask", "r", "--order", "2")
    latitude, longitude = by_pyproj("EPSG:32632", result.sites[2])[0]
    assert f": {latitude:.6f}, {longitude:.6f}" in out
    assert "latitude" in out.splitlines()[3]
    assert "east" not in out


def test_trajectories_hold_each_degree_once(folder):
    mission = load_mission(world_on_earth(folder))
    run(mission, record=begin(mission, folder / "r")[1])
    recorded = read_run(folder / "r")
    data = trajectory(recorded)
    degrees = np.column_stack([data["latitude"].values, data["longitude"].values])
    assert apart_m(degrees, by_pyproj("EPSG:32632", recorded.result.sites)).max() < 1e-6
    assert set(data.coords) == {
        "time",
        "east",
        "north",
        "latitude",
        "longitude",
        "altitude",
        "crs",
        "trajectory",
    }
    assert not [name for name in data.variables if str(name).startswith(("latitude_", "longitude_"))]


# -- by hand -----------------------------------------------------------------------------------------------


class Person:
    """Types lines, and keeps what was printed."""

    def __init__(self, mission, *typed):
        self.typed, self.printed = list(typed), []
        self.vehicle = ByHand(mission, read=self.read, write=self.printed.append)

    def read(self, prompt):
        self.printed.append(prompt)
        return self.typed.pop(0)

    def goes_to(self, site, **more):
        self.vehicle.send(Query(np.array(site), id="m/0", expected_cost=10.0, **more))
        return self.vehicle.events(1.0)[0]

    @property
    def text(self):
        return "\n".join(map(str, self.printed))


def lake_sites(folder, name="lake", **changes):
    mission = load_mission(world_on_earth(folder, name, **changes))
    return mission, mission.world.domain


def at(name, east, north):
    spot = SPOTS[name]
    return Georeference(spot.crs).metres([degrees_at(spot, east, north)])[0]


@pytest.mark.parametrize("name", EVERYWHERE)
def test_an_order_says_where_to_go_in_degrees_with_distance_and_bearing(folder, name):
    mission, domain = lake_sites(folder, name)
    site = domain.sites[domain.nearest(at(name, -120, 60))]
    person = Person(mission, "", "1.5", "")
    event = person.goes_to(site)
    (latitude, longitude), start = by_pyproj(domain.crs, site)[0], degrees_at(SPOTS[name], -120, -80)
    bearing, _, length = Geod(ellps="WGS84").inv(start[1], start[0], longitude, latitude)
    order = person.printed[1]
    assert f"go to {latitude:.6f}, {longitude:.6f}  (about 10 s)" in order
    assert f"{length:.0f} m, bearing {round(bearing) % 360}°" in order
    assert f"(east {site[0]:.1f} m, north {site[1]:.1f} m)" in order
    assert person.printed[2] == f"  position [{latitude:.6f}, {longitude:.6f}]: "
    assert np.array_equal(event.position, site)


def test_points_to_pass_are_in_degrees_and_every_leg_has_its_bearing(folder):
    mission, domain = lake_sites(folder)
    site = domain.sites[domain.nearest(at("lake", 100, -20))]
    person = Person(mission, "", "1.5", "")
    person.goes_to(site)
    order = person.printed[1]
    vias = [
        tuple(map(float, part.split(",")))
        for part in order.split(" via (")[1].split(") to ")[0].split("), (")
    ]
    route = mission.world.cost.path(mission.vehicles[0].start, site)
    assert apart_m(vias, by_pyproj(domain.crs, route[1:-1])).max() < 0.1
    assert order.count("bearing") == len(route) - 1
    assert order.count("; then ") == len(route) - 2


@pytest.mark.parametrize(
    "form",
    [
        "{lat:.6f} {lon:.6f}",
        "{lat:.6f}, {lon:.6f}",
        "{lat:.6f},{lon:.6f}",
        "{lat_comma} {lon_comma}",
        "{lat_comma}; {lon_comma}",
        "{lat_min}'N {lon_min}'E",
        "{lon_min}'E, {lat_min}'N",
        "{east:.2f} {north:.2f}",
        "{east:.2f}, {north:.2f}",
    ],
)
def test_a_position_may_be_typed_as_degrees_as_minutes_or_as_metres(folder, form):
    mission, domain = lake_sites(folder)
    site = domain.sites[domain.nearest(at("lake", -120, 60))]
    there = site + np.array([3.0, -4.0])
    latitude, longitude = by_pyproj(domain.crs, there)[0]

    def minutes(x):
        return f"{int(x)}°{(x - int(x)) * 60:.5f}"

    typed = form.format(
        lat=latitude,
        lon=longitude,
        lat_comma=f"{latitude:.6f}".replace(".", ","),
        lon_comma=f"{longitude:.6f}".replace(".", ","),
        lat_min=minutes(latitude),
        lon_min=minutes(longitude),
        east=there[0],
        north=there[1],
    )
    event = Person(mission, typed, "1.5", "").goes_to(site)
    assert np.abs(event.position - there).max() < 0.1


def test_printed_degrees_stand_for_the_site_itself(folder):
    mission, domain = lake_sites(folder)
    site = domain.sites[40]
    event = Person(mission, domain.georeference.text(site), "1.5", "").goes_to(site)
    assert np.array_equal(event.position, site)


def test_swapped_degrees_are_questioned(folder):
    mission, domain = lake_sites(folder)
    site = domain.sites[40]
    latitude, longitude = by_pyproj(domain.crs, site)[0]
    person = Person(mission, f"{longitude:.6f} {latitude:.6f}", "", "1.5", "")
    event = person.goes_to(site)
    assert f"did you mean {latitude:.6f}, {longitude:.6f}?; type it again to confirm" in person.text
    assert np.array_equal(event.position, site)


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("47.3", "enter 2 coordinates (latitude, longitude), not 1"),
        ("95.1 8.5", "95.1 is not a latitude; type the latitude first"),
        ("47.3 N and 8.5", "is not a latitude and a longitude"),
        ("0 99.1", "too far away for WGS 84 / UTM zone 32N"),
        ("47.35 8.51", "47.350000, 8.510000 is outside the domain; type it again to confirm"),
        ("a b", "'a' is not a number"),
    ],
)
def test_a_position_that_cannot_be_meant_is_asked_for_again(folder, typed, answer):
    mission, domain = lake_sites(folder)
    person = Person(mission, typed, "", "1.5", "")
    event = person.goes_to(domain.sites[40])
    assert answer in person.text
    assert np.array_equal(event.position, domain.sites[40])


def test_a_position_on_land_or_in_a_zone_to_avoid_is_questioned(folder):
    mission, domain = lake_sites(folder)
    site = domain.sites[domain.nearest(at("lake", 0, -20))]
    reef, island = degrees_at(SPOTS["lake"], 40, -20), degrees_at(SPOTS["lake"], -65, 5)
    far = degrees_at(SPOTS["lake"], -140, 60)
    typed = [f"{latitude:.6f} {longitude:.6f}" for latitude, longitude in (reef, island, far)]
    person = Person(mission, *typed, "n", "", "1.5", "")
    person.goes_to(site)
    assert "is inside reef" in person.text
    assert "is outside the outline, or in one of its holes" in person.text
    assert f"m from the site; really ({far[0]:.6f}, {far[1]:.6f})?" in person.text


def test_help_lists_degrees_only_where_they_can_be_typed(folder, tmp_path):
    mission, domain = lake_sites(folder)
    person = Person(mission, "help", "", "1.5", "")
    person.goes_to(domain.sites[40])
    assert "47°18.48'N 8°30.63'E" in person.text
    wall = load_mission("wall-damage-map")
    other = Person(wall, "help", "", "1.5", "")
    other.goes_to(wall.world.domain.sites[3])
    assert "°18" not in other.text


def test_depths_follow_latitude_and_longitude():
    axes = [
        Axis("east", "m", 462_900, 463_100),
        Axis("depth", "m", 0, 10, "down"),
        Axis("north", "m", 5_239_400, 5_239_600),
    ]
    domain = Domain.grid(axes, (5, 3, 5), crs="EPSG:32632")
    places = typed_places(domain, Dialogue(lambda prompt: "y", lambda line: None))
    site = np.array([463_000.0, 5.0, 5_239_500.0])
    assert places.text(site) == "47.307927, 8.510502, depth 5 m"
    assert places.answer(site) == "47.307927, 8.510502, 5"
    assert places.read(site, "47.307927 8.510502 2.5").tolist() == [463_000.0, 2.5, 5_239_500.0]
    assert places.read(site, "47.307927°N 8.510502°E, 2.5").tolist() == [463_000.0, 2.5, 5_239_500.0]
    assert places.read(site, "463010 2.5 5239510").tolist() == [463_010.0, 2.5, 5_239_510.0]
    with pytest.raises(InputError, match="enter 1 coordinates"):
        places.read(site, "47.3079°N 8.5105°E")

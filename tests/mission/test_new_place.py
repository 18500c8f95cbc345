"""New worlds on the Earth: from a log in degrees, an outline and zones to avoid."""

import errno
import gzip
import json
import re
import shutil
import threading
import tomllib
import zipfile
from contextlib import chdir
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pyogrio
import pytest
import shapely
import xarray
from lakes import (
    ISLAND,
    LAKE,
    MIDDLE,
    SHORE,
    START,
    SWIMMERS,
    TO_DEGREES,
    UTM,
    at,
    degrees,
    geojson,
    log_rows,
    write_lake,
)
from pyproj import CRS, Transformer
from shapely.geometry import shape
from typer.testing import CliRunner

import fieldbo
from fieldbo.belief.question import LevelSet
from fieldbo.cli import app
from fieldbo.cli.new_world import degrees as typed_degrees

MEUSE_CRS = "EPSG:28992"
NORTH = np.array([0.0, 3.0])
FROM_DEGREES = Transformer.from_crs("EPSG:4326", UTM, always_xy=True)


@pytest.fixture
def at_lake(tmp_path, monkeypatch):
    write_lake(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a folder in which the world of the lake was made."""
    folder = tmp_path_factory.mktemp("made")
    write_lake(folder)
    with chdir(folder):
        assert new_world(*PLACE).exit_code == 0
    return folder


@pytest.fixture
def at_place(made, tmp_path, monkeypatch):
    """Work in a copy of that folder."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def new_world(*options, name="kessel", csv="sonde.csv", columns=("--lat", "lat", "--lon", "lon")):
    given = ["new", "world", name, "--csv", csv, *columns, "--value", "chl", *options]
    return CliRunner().invoke(app, given, catch_exceptions=True)


PLACE = (
    *("--outline", "lake.geojson", "--avoid", "swimmers.geojson", "--start", f"{START[0]},{START[1]}"),
    *("--speed", "2 m/s", "--stop", "30 s", "--spacing", "20 m", "--threshold", "11", "--battery", "20 min"),
)


def error_of(result):
    assert result.exit_code != 0, result.output
    return str(result.exception) if isinstance(result.exception, fieldbo.FieldboError) else result.output


@pytest.mark.pictures
def test_a_log_an_outline_and_a_zone_become_a_world_and_a_mission(at_lake):
    result = new_world(*PLACE)
    assert result.exit_code == 0, result.output
    assert "WGS 84 / UTM zone 32N (EPSG:32632)" in result.output
    world = fieldbo.load_world("kessel")
    domain = world.domain
    assert domain.crs == UTM
    assert domain.spacing.tolist() == [20.0, 20.0]
    water = LAKE.difference(SWIMMERS)
    assert all(shapely.buffer(water, -1.9).covers(shapely.points(domain.sites)))
    assert domain.region.area == pytest.approx(shapely.buffer(water, -2.0, join_style="mitre").area, rel=1e-3)
    assert not domain.contains(shapely.get_coordinates(ISLAND.centroid))[0]
    assert [obstacle.name for obstacle in domain.solid] == ["swimmers"]
    latitude_longitude = domain.georeference.degrees(world.start)[0]
    assert latitude_longitude == pytest.approx(START, abs=1e-7)
    assert world.cost.to(world.start, world.start[None]) == pytest.approx([30.0])
    assert world.cost.travel(world.start, world.start[None] + [10.0, 0.0]) == pytest.approx([5.0])
    mission = fieldbo.load_mission("kessel")
    assert mission.question == LevelSet(11.0)
    assert mission.vehicles[0].battery == 1200.0
    assert mission.vehicles[0].home == pytest.approx(world.start)
    assert (at_lake / "kessel-place.png").read_bytes().startswith(b"\x89PNG")


def test_the_mission_of_a_new_place_never_leaves_the_water(at_place):
    mission = fieldbo.load_mission("kessel")
    result = fieldbo.run(mission)
    water = shapely.buffer(LAKE.difference(SWIMMERS), 1e-6)
    assert len(result.path) > 10
    assert water.covers(shapely.LineString(result.path))
    assert result.f1 > 0.7


def test_the_readings_of_a_new_place_keep_their_degrees_and_metres(at_place):
    table = np.genfromtxt(at_place / "worlds" / "kessel" / "readings.csv", delimiter=",", names=True)
    rows = np.array(log_rows())
    assert np.abs(table["latitude"] - rows[:, 0]).max() < 1e-7
    east, north = Transformer.from_crs("EPSG:4326", UTM, always_xy=True).transform(rows[:, 1], rows[:, 0])
    assert np.hypot(table["east"] - east, table["north"] - north).max() < 0.01


@pytest.mark.parametrize(
    ("driver", "suffix"),
    [
        ("ESRI Shapefile", ".shp"),
        ("GPKG", ".gpkg"),
        ("KML", ".kml"),
        ("GeoJSON", ".geojson"),
        ("FlatGeobuf", ".fgb"),
    ],
)
def test_every_vector_format_gives_the_same_world(at_place, driver, suffix):
    file = f"shore.{suffix}"
    pyogrio.raw.write(
        file,
        shapely.to_wkb(np.array([degrees(LAKE)])),
        [np.array(["lake"], dtype=object)],
        ["name"],
        geometry_type="Polygon",
        crs="EPSG:4326",
        driver=driver,
    )
    assert new_world(*PLACE[2:], "--outline", file, name="other").exit_code == 0
    one, other = (fieldbo.load_world(name).domain for name in ("kessel", "other"))
    assert np.abs(one.sites - other.sites).max() < 1e-3
    assert shapely.hausdorff_distance(one.region, other.region) < 1e-3


def test_an_outline_in_another_crs_or_gzipped_gives_the_same_world(at_place):
    to_rd = Transformer.from_crs(UTM, "EPSG:3857", always_xy=True)
    mercator = shapely.transform(LAKE, lambda xy: np.column_stack(to_rd.transform(*xy.T)))
    wkb, names = shapely.to_wkb(np.array([mercator])), [np.array(["lake"], dtype=object)]
    pyogrio.raw.write("web.gpkg", wkb, names, ["name"], geometry_type="Polygon", crs="EPSG:3857")
    with gzip.open("lake.geojson.gz", "wt") as file:
        file.write(geojson(degrees(LAKE)))
    worlds = [fieldbo.load_world("kessel").domain]
    for name, outline in (("web", "web.gpkg"), ("gzipped", "lake.geojson.gz")):
        result = new_world(*PLACE[2:], "--outline", outline, name=name)
        assert result.exit_code == 0, result.output
        worlds.append(fieldbo.load_world(name).domain)
    for domain in worlds[1:]:
        assert shapely.hausdorff_distance(domain.region, worlds[0].region) < 0.01


def test_a_gpx_track_around_the_lake_is_an_outline(at_lake):
    ring = shapely.LineString(degrees(LAKE).exterior.coords)
    wkb, names = shapely.to_wkb(np.array([ring])), [np.array(["walk"], dtype=object)]
    pyogrio.raw.write(
        "walk.gpx", wkb, names, ["name"], geometry_type="LineString", crs="EPSG:4326", driver="GPX"
    )
    result = new_world(*PLACE[2:], "--outline", "walk.gpx")
    assert result.exit_code == 0, result.output
    assert "closed line 1 'walk' is taken as an area" in result.output
    assert fieldbo.load_world("kessel").domain.contains(np.array(ISLAND.centroid.coords))[0]


def test_a_hexagonal_lattice_has_neighbours_at_its_spacing(at_lake):
    assert new_world(*PLACE, "--pattern", "hexagonal").exit_code == 0
    domain = fieldbo.load_world("kessel").domain
    assert domain.shape is None
    gaps = np.linalg.norm(domain.sites[:, None] - domain.sites[None], axis=2)
    np.fill_diagonal(gaps, np.inf)
    assert gaps.min() == pytest.approx(20.0, abs=1e-6)
    assert np.median(gaps.min(axis=1)) == pytest.approx(20.0, abs=1e-6)
    assert fieldbo.run(fieldbo.load_mission("kessel")).f1 > 0.6


def test_without_an_outline_there_is_one_around_the_readings(at_lake):
    result = new_world("--spacing", "20 m")
    assert result.exit_code == 0, result.output
    assert "warning   without --outline, the outline is drawn around the readings" in result.output
    sites = fieldbo.load_world("kessel").domain.sites
    assert np.abs(sites - MIDDLE).max() < 250.0


def test_positions_in_a_projected_crs_keep_it(at_lake):
    to_rd = Transformer.from_crs("EPSG:4326", MEUSE_CRS, always_xy=True)
    rows = [(*to_rd.transform(5.72 + lon - 8.5, 50.96 + lat - 47.3), value) for lat, lon, value in log_rows()]
    lines = [f"{x:.2f},{y:.2f},{value:.3f}" for x, y, value in rows]
    (at_lake / "rd.csv").write_text("\n".join(["x,y,chl", *lines]))
    result = new_world("--crs", MEUSE_CRS, csv="rd.csv", columns=("--x", "x", "--y", "y"))
    assert result.exit_code == 0, result.output
    assert "Amersfoort / RD New (EPSG:28992)" in result.output
    domain = fieldbo.load_world("kessel").domain
    assert domain.crs == MEUSE_CRS
    assert np.abs(domain.sites.mean(axis=0) - np.mean([row[:2] for row in rows], axis=0)).max() < 60.0


def test_an_outline_with_many_corners_is_simplified_to_the_safe_side(at_lake):
    angles = np.linspace(0, 2 * np.pi, 5000, endpoint=False)
    radius = 170 + 8 * np.sin(40 * angles)
    wavy = shapely.Polygon(MIDDLE + np.column_stack([radius * np.cos(angles), radius * np.sin(angles)]))
    (at_lake / "wavy.geojson").write_text(geojson(degrees(wavy)))
    result = new_world("--outline", "wavy.geojson", "--spacing", "20 m", "--start", f"{START[0]},{START[1]}")
    assert result.exit_code == 0, result.output
    assert "simplified from 5,001 corners to" in result.output
    domain = fieldbo.load_world("kessel").domain
    assert shapely.get_num_coordinates(domain.outline) <= 200
    assert shapely.buffer(wavy, 0.01).covers(domain.outline)
    assert domain.outline.area > 0.9 * wavy.area


def test_a_channel_is_not_simplified_away(at_lake):
    angles = np.linspace(0.0, 2 * np.pi, 400, endpoint=False)
    ring = np.column_stack([np.cos(angles), np.sin(angles)]) * (90 + 4 * np.sin(37 * angles))[:, None]
    basins = [shapely.Polygon(at(east, 0) + ring) for east in (-130, 130)]
    channel = shapely.box(*at(-60, -5), *at(60, 5))
    (at_lake / "basins.geojson").write_text(geojson(degrees(shapely.union_all([*basins, channel]))))
    result = new_world("--outline", "basins.geojson", "--spacing", "40 m")
    assert result.exit_code == 0, result.output
    domain = fieldbo.load_world("kessel").domain
    assert len(shapely.get_parts(domain.region)) == 1
    whole = shapely.union_all([*basins, channel])
    stated = float(re.search(r"corners to \d+, at most ([\d.]+) m inside", result.output)[1])
    assert shapely.hausdorff_distance(whole.exterior, domain.outline.exterior) <= stated + 0.1
    assert domain.outline.area > 0.95 * whole.area


def test_islands_that_are_areas_of_their_own_are_land(at_lake):
    pond = shapely.Point(at(60, -60)).buffer(8)
    islet = shapely.Point(at(-100, 60)).buffer(20)
    shapes = [islet, SHORE, ISLAND, pond, SHORE]
    (at_lake / "parts.geojson").write_text(geojson(*map(degrees, shapes)))
    result = new_world("--outline", "parts.geojson", "--spacing", "20 m", "--start", f"{START[0]},{START[1]}")
    assert result.exit_code == 0, result.output
    assert "2 areas of the outline lie inside others and are taken as land" in result.output
    assert "1 area of the outline repeated" in result.output
    outline = fieldbo.load_world("kessel").domain.outline
    expected = shapely.union(SHORE.difference(ISLAND).difference(islet), pond)
    assert shapely.symmetric_difference(outline, expected).area < 0.1


def test_an_island_that_fills_a_hole_of_the_lake_is_land(at_lake):
    (at_lake / "both.geojson").write_text(geojson(degrees(LAKE), degrees(ISLAND)))
    result = new_world("--outline", "both.geojson", "--spacing", "20 m", "--start", f"{START[0]},{START[1]}")
    assert result.exit_code == 0, result.output
    assert shapely.symmetric_difference(fieldbo.load_world("kessel").domain.outline, LAKE).area < 0.1


def test_parts_of_a_zone_outside_the_outline_are_left_out(at_lake):
    reserve = shapely.MultiPolygon([SWIMMERS, shapely.box(*at(900, 0), *at(950, 50))])
    (at_lake / "reserve.geojson").write_text(geojson(degrees(reserve)))
    result = new_world(*PLACE[:2], "--avoid", "reserve.geojson", *PLACE[4:])
    assert result.exit_code == 0, result.output
    (zone,) = fieldbo.load_world("kessel").domain.solid
    assert shapely.symmetric_difference(zone.polygon, SWIMMERS).area < 0.1


def test_zones_to_avoid_with_many_corners_are_simplified_to_the_safe_side(at_lake):
    angles = np.linspace(0, 2 * np.pi, 3000, endpoint=False)
    radius = 25 + 6 * np.sin(19 * angles) + 2 * np.sin(101 * angles)
    zone = shapely.Polygon(at(-100, 60) + np.column_stack([radius * np.cos(angles), radius * np.sin(angles)]))
    (at_lake / "rough.geojson").write_text(geojson(degrees(zone)))
    result = new_world(*PLACE, "--avoid", "rough.geojson", "--clearance", "0 m")
    assert result.exit_code == 0, result.output
    domain = fieldbo.load_world("kessel").domain
    assert shapely.intersection(domain.region, shapely.buffer(zone, -0.01)).area == 0.0
    assert sum(shapely.get_num_coordinates(o.polygon) for o in domain.solid) < 400


def test_water_that_cannot_be_reached_is_said(at_lake):
    (at_lake / "weir.geojson").write_text(geojson(degrees(shapely.box(*at(95, -300), *at(125, 300)))))
    result = new_world(*PLACE, "--avoid", "weir.geojson")
    assert result.exit_code == 0, result.output
    assert "sites can't be reached from the start; they are left out" in result.output


def test_the_noise_of_a_world_is_that_of_one_reading(at_lake):
    rng, dense = np.random.default_rng(1), []
    for lat, lon, value in log_rows(2.0):
        dense.append(f"{lat:.7f},{lon:.7f},{value + 0.4 * rng.standard_normal():.3f}")
    (at_lake / "dense.csv").write_text("\n".join(["lat,lon,chl [ug/l]", *dense]))
    given = ["new", "world", "kessel", "--csv", "dense.csv", "--lat", "lat", "--lon", "lon", "--value", "chl"]
    result = CliRunner().invoke(app, [*given, *PLACE])
    assert result.exit_code == 0, result.output
    world = fieldbo.load_world("kessel")
    assert np.sqrt(world.sensor.variance(world.domain.sites)[0]) == pytest.approx(0.41, rel=0.3)
    assert (world.quantity.name, world.quantity.unit) == ("chl", "ug/l")


def test_a_preamble_of_the_logger_is_left_out(at_lake):
    rows = [f"{lat:.7f};{lon:.7f};{value:.3f}" for lat, lon, value in log_rows()]
    head = ["Sonde EXO2", "SN;18F103556", "Site;Kessel;", "lat;lon;chl", "deg;deg;ug/l"]
    (at_lake / "exo.csv").write_text("\n".join([*head, *rows]))
    result = new_world(*PLACE, csv="exo.csv")
    assert result.exit_code == 0, result.output
    assert "lines 1 to 3 above the column names are left out" in result.output


def test_a_further_mission_starts_and_ends_where_it_is_told(at_place):
    options = ["--world", "kessel", "--threshold", "8", "--side", "below", "--battery", "0.5 h"]
    result = CliRunner().invoke(app, ["new", "mission", "clear", *options, "--start", "47.3072,8.5095"])
    assert result.exit_code == 0, result.output
    mission = fieldbo.load_mission("clear")
    assert mission.question == LevelSet(8.0, side="below")
    assert mission.vehicles[0].battery == 1800.0
    assert mission.vehicles[0].home == pytest.approx(mission.vehicles[0].start)
    assert mission.world.domain.georeference.degrees(mission.vehicles[0].start)[0] == pytest.approx(
        [47.3072, 8.5095]
    )
    again = CliRunner().invoke(app, ["new", "mission", "clear", *options])
    assert "missions/clear.toml exists" in error_of(again)


@pytest.mark.parametrize(
    "typed",
    [
        "47.3072,8.5095",
        "47.3072 8.5095",
        "47.3072; 8.5095",
        "47,3072;8,5095",
        "47,3072 8,5095",
        "47°18.432'N 8°30.570'E",
        "47°18,432'N; 8°30,570'E",
        "N47 18.432 E8 30.570",
        "8°30'34.2\"E 47°18'25.92\"N",
    ],
)
def test_a_start_may_be_typed_in_every_form_of_the_prompt(typed):
    assert typed_degrees(typed, "--start") == pytest.approx((47.3072, 8.5095), abs=1e-9)


def without_crs(folder):
    pyogrio.raw.write(
        folder / "bare.shp",
        shapely.to_wkb(np.array([LAKE])),
        [np.array(["x"], dtype=object)],
        ["name"],
        geometry_type="Polygon",
        crs=UTM,
    )
    (folder / "bare.prj").unlink()


@pytest.mark.slow
def test_a_bathymetry_limits_the_sites_and_depths_make_a_third_axis(at_lake):
    ticks = np.arange(-300.0, 301.0, 20.0)
    depth = 12.0 - np.hypot(*np.meshgrid(ticks, ticks)) / 20.0
    coordinates = {"y": MIDDLE[1] + ticks, "x": MIDDLE[0] + ticks}
    bottom = xarray.Dataset({"depth": (("y", "x"), depth, {"units": "m", "positive": "down"})}, coordinates)
    bottom.to_netcdf(at_lake / "bottom.nc", engine="scipy")
    result = new_world(*PLACE, "--bathymetry", "bottom.nc", "--least-depth", "3 m")
    assert result.exit_code == 0, result.output
    assert 'bathymetry bottom.nc: depths (positive = "down")' in result.output
    shallow = fieldbo.load_world("kessel").domain
    away = np.hypot(*(shallow.sites - MIDDLE).T)
    assert away.max() <= 181.0
    run = ["run", "kessel", "--out", "shallow", "--set", "agent.max_steps=4"]
    for given in (run, ["export", "shallow", "contours"]):
        assert CliRunner().invoke(app, given).exit_code == 0
    classes = json.loads((at_lake / "shallow" / "export" / "classes.geojson").read_text())["features"]
    total = sum(one["properties"]["area_m2"] for one in classes)
    assert total == pytest.approx(shallow.size * 20.0**2, rel=0.05)
    assert total < 0.9 * shallow.region.area
    for one in classes:
        corners = np.column_stack(FROM_DEGREES.transform(*shapely.get_coordinates(shape(one["geometry"])).T))
        assert np.hypot(*(corners - MIDDLE).T).max() <= 182.0
    lines = [f"{lat},{lon},{z},{v - z}" for lat, lon, v in log_rows() for z in (1.0, 5.0)]
    (at_lake / "profiles.csv").write_text("\n".join(["lat,lon,z,chl", *lines]))
    options = ["--bathymetry", "bottom.nc", "--depths", "1,4,8", "--depth", "z"]
    result = new_world(*PLACE, *options, name="deep", csv="profiles.csv")
    assert result.exit_code == 0, result.output
    deep = fieldbo.load_world("deep").domain
    assert np.unique(deep.sites[:, 2]).tolist() == [1.0, 4.0, 8.0]
    assert (np.hypot(*(deep.sites[:, :2] - MIDDLE).T) <= 20.0 * (12.0 - deep.sites[:, 2]) + 15.0).all()
    assert fieldbo.run(fieldbo.load_mission("deep")).f1 > 0.5
    message = error_of(new_world(*PLACE, "--depths", "1,4", name="other"))
    assert "--depth COLUMN and --depths NUMBERS, or neither" in message


BAD = [
    (["--outline", "bare.shp"], ["bare.shp does not say its coordinate reference system", "--crs EPSG:4326"]),
    (
        ["--outline", "bare.shp", "--crs", "EPSG:4326"],
        ["bare.shp is in degrees", "its coordinates reach 5,2"],
    ),
    (["--outline", "bare.shp", "--crs", "EPSG:99"], ["'EPSG:99' is not a coordinate reference system"]),
    (["--outline", "line.geojson"], ["line.geojson holds no areas, only LineString", "Lines to polygons"]),
    (["--outline", "bow.geojson"], ["is not valid: Self-intersection", "Fix geometries"]),
    (["--outline", "swapped.geojson"], ["seem to be exchanged", "the log or the outline"]),
    (["--outline", "far.geojson"], ["no reading lies near the outline", "km away", "check that both are"]),
    (["--outline", "pacific.geojson"], ["crosses the antimeridian", "from 179.9", "--crs EPSG:32660"]),
    (["--outline", "none.geojson"], ["there is no file none.geojson"]),
    (["--outline", "sonde.csv"], ["sonde.csv is of a kind that is not read", "GeoPackage in a GIS"]),
    (["--avoid", "lake.geojson"], ["obstacles cover the whole domain"]),
    (["--start", "8.51051,47.30657"], ["latitude comes first: --start 47.3065700,8.5105100"]),
    (["--start", "47.3072,8.5200"], ["lies on land", "the nearest site is --start 47.30"]),
    (["--start", "47.30732,8.50845"], ["lies inside 'swimmers'"]),
    (
        ["--start", "47,3072,8,51"],
        ["--start 47,3072,8,51", "enter 2 coordinates", "write, for example,"],
    ),
    (["--start", "here"], ["--start here", "write, for example, --start 47.3079,8.5105"]),
    (["--start", "nan,nan"], ["--start nan,nan", "write, for example,"]),
    (["--start", "47°18.4'N 8°30.6'E 3"], ["'3' follows the longitude", "write, for example,"]),
    (["--start", "47;inf"], ["is not a latitude and a longitude", "write, for example,"]),
    (["--start=-47.30657,8.51051"], ["south and west are negative: --start 47.3065700,8.5105100"]),
    (["--crs", "EPSG:3857"], ["is distorted here: 1 m of it is 0.67", "local UTM zone", "--crs"]),
    (["--outline", "unclosed.geojson"], ["is not valid", "rings end where they begin"]),
    (["--outline", "empty.geojson"], ["holds no areas"]),
    (["--outline", "elsewhere.vrt"], ["elsewhere.vrt is of a kind that is not read"]),
    (["--outline", "elsewhere.geojson"], ["elsewhere.geojson only names other files"]),
    (["--avoid", "server.geojson"], ["server.geojson only names other files"]),
    (["--outline", "pipeline.json"], ["pipeline.json only names other files"]),
    (["--outline", "hidden.zip"], ["hidden.zip only names other files"]),
    (["--outline", "page.kml"], ["page.kml is neither KML nor GPX"]),
    (["--outline", "damaged.geojson.gz"], ["damaged.geojson.gz can't be read"]),
    (["--spacing", "0.1 m"], ["gives about", "sites", "use a spacing of"]),
    (["--spacing", "500 m"], ["a spacing of 500 m is too wide", "use a spacing of 8 m"]),
    (["--spacing", "150 m"], ["a spacing of 150 m leaves", "at least 10 sites", "use a spacing of 8 m"]),
    (["--spacing", "10 s"], ["is in s", "an amount in m"]),
    (["--speed", "-1"], ["speed", "above 0"]),
    (["--speed", "2 knots"], ["did you mean kn?"]),
    (["--clearance", "400 m"], ["a clearance of 400 leaves nothing of the outline"]),
    (["--spacing", "1e9 m"], ["a spacing of 1e+09 m is too wide for", "where:    --spacing"]),
    (["--spacing", "1e-300 m"], ["an amount from 1e-06 to 1e+09 m", "where:    --spacing"]),
    (["--speed", "1e-320 m/s"], ["an amount from 1e-06 to 1e+09 m/s", "where:    --speed"]),
    (["--battery", "1 V"], ["is in V", "where:    --battery"]),
    (["--battery", "0"], ["a finite number above 0", "where:    --battery"]),
    (["--battery", "-1 h"], ["a finite number above 0", "where:    --battery"]),
    (["--battery", "nan"], ["a number with its unit", "where:    --battery"]),
    (["--battery", "50 %"], ["an amount, not a percentage", "where:    --battery"]),
    (["--least-depth", "2 m"], ["expected: --bathymetry FILE", "where:    --least-depth"]),
    (["--bathymetry", "sonde.csv"], ["sonde.csv is not a raster", "where:    --bathymetry sonde.csv"]),
    (["--bathymetry", "."], [". is a folder", "where:    --bathymetry ."]),
    (["--noise", "chl"], ["--value and --noise both name the column 'chl'"]),
    (["--channel", "CHL"], ["--value and --channel both name the column 'chl'"]),
    (["--time", "chl"], ["--value and --time both name the column 'chl'"]),
    (["--quantile", "0.4"], ["--threshold and --quantile were both given"]),
    (["--unit", "a\nb"], [r"the unit 'a\nb' has a line break", "where:    --unit"]),
    (["--unit", "\x1b[2J"], [r"the unit '\x1b[2J' has", "where:    --unit"]),
    (["--bathymetry", "none.nc"], ["there is no file none.nc", "where:    --bathymetry none.nc"]),
    (["--bathymetry", "part.nc"], ["the bathymetry covers", "% of the sites inside the outline"]),
    (["--axis", "lat"], ["--axis does not apply without --cell"]),
    (["--x", "lat"], ["the columns of the positions are not given as a pair"]),
]


@pytest.mark.parametrize(("options", "parts"), BAD, ids=[" ".join(options) for options, _ in BAD])
def test_a_wrong_place_is_rejected_before_anything_is_written(at_lake, options, parts):
    without_crs(at_lake)
    lake = degrees(LAKE)
    (at_lake / "line.geojson").write_text(geojson(shapely.LineString(list(lake.exterior.coords)[:4])))
    bow = shapely.Polygon([(8.509, 47.306), (8.511, 47.308), (8.511, 47.306), (8.509, 47.308)])
    (at_lake / "bow.geojson").write_text(geojson(bow))
    (at_lake / "swapped.geojson").write_text(geojson(shapely.transform(lake, lambda xy: xy[:, ::-1])))
    (at_lake / "far.geojson").write_text(geojson(shapely.transform(lake, lambda xy: xy + NORTH)))
    ring = [[8.509, 47.306], [8.511, 47.308], [8.511, 47.306]]
    for name, rings in (("unclosed", [ring]), ("empty", [])):
        polygon = {"type": "Polygon", "coordinates": rings}
        feature = {"type": "Feature", "properties": {}, "geometry": polygon}
        content = {"type": "FeatureCollection", "features": [feature]}
        (at_lake / f"{name}.geojson").write_text(json.dumps(content))
    vrt = (
        '<OGRVRTDataSource><OGRVRTLayer name="lake"><SrcDataSource relativeToVRT="1">lake.geojson'
        "</SrcDataSource></OGRVRTLayer></OGRVRTDataSource>"
    )
    for name in ("elsewhere.vrt", "elsewhere.geojson"):
        (at_lake / name).write_text(vrt)
    with zipfile.ZipFile("hidden.zip", "w") as archive:
        archive.writestr("lake.geojson", vrt)
    server = "<OGRWFSDataSource><URL>http://127.0.0.1:9/wfs</URL></OGRWFSDataSource>"
    (at_lake / "server.geojson").write_text(server)
    pipeline = {"type": "gdal_streamed_alg", "command_line": "gdal vector pipeline ! read lake.geojson"}
    (at_lake / "pipeline.json").write_text(json.dumps(pipeline))
    (at_lake / "page.kml").write_text("<html><body>not found</body></html>")
    (at_lake / "damaged.geojson.gz").write_bytes(gzip.compress(b"{}" * 500)[:-9])
    (at_lake / "pacific.geojson").write_text(geojson(shapely.box(-179.9, 10.0, 179.9, 10.1)))
    coordinates = {"y": MIDDLE[1] + np.arange(5.0), "x": MIDDLE[0] + np.arange(5.0)}
    part = xarray.Dataset({"depth": (("y", "x"), np.full((5, 5), 4.0))}, coordinates)
    part.to_netcdf(at_lake / "part.nc", engine="scipy")
    result = new_world(*PLACE, *options)
    message = error_of(result)
    for part in parts:
        assert part in message
    assert not (at_lake / "worlds").exists()
    assert not (at_lake / "missions").exists()


def test_no_file_makes_the_reader_use_the_network(at_lake):
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_error(404)

        do_HEAD = do_POST = do_GET  # noqa: N815

        def log_message(self, *args):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/lake"
    files = {
        "vrt.geojson": "<OGRVRTDataSource><OGRVRTLayer name='lake'><SrcDataSource>/vsicurl/{}.geojson"
        "</SrcDataSource></OGRVRTLayer></OGRVRTDataSource>",
        "wfs.kml": "<!-- kml --><kml/><OGRWFSDataSource><URL>{}</URL></OGRWFSDataSource>",
        "links.kml": "<kml xmlns='http://www.opengis.net/kml/2.2'><NetworkLink><Link><href>{}</href></Link>"
        "</NetworkLink></kml>",
        "entity.gpx": "<!DOCTYPE gpx [<!ENTITY e SYSTEM '{}'>]><gpx><trk><name>&e;</name></trk></gpx>",
    }
    try:
        for name, text in files.items():
            (at_lake / name).write_text(text.format(url))
            error_of(new_world("--outline", name, name=name.split(".")[0]))
    finally:
        server.shutdown()
    assert asked == []


def test_a_picture_that_cannot_be_written_is_noticed_before_anything_is_written(at_lake):
    (at_lake / "kessel-place.png").mkdir()
    assert "kessel-place.png is not a file" in error_of(new_world(*PLACE))
    assert not (at_lake / "worlds").exists()


def test_a_picture_that_fails_leaves_a_world_and_a_mission_that_are_complete(at_lake, monkeypatch):
    def full_disk(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("fieldbo.results.plot.save", full_disk)
    message = error_of(new_world(*PLACE))
    assert "can't be written: No space left on device" in message
    assert "worlds/kessel and missions/kessel.toml are complete" in message
    assert fieldbo.load_mission("kessel").question == LevelSet(11.0)


def test_a_column_name_with_a_control_character_is_rejected(at_lake):
    rows = [f"{lat},{lon},{value}" for lat, lon, value in log_rows()]
    (at_lake / "broken.csv").write_text("\n".join(["lat,lon,\x1b[2Jchl", *rows]))
    given = ["new", "world", "kessel", "--csv", "broken.csv", "--lat", "lat", "--lon", "lon"]
    message = error_of(CliRunner().invoke(app, [*given, "--value", "\x1b[2Jchl"]))
    assert r"the column '\x1b[2Jchl' has a line break or another control character" in message
    assert not (at_lake / "worlds").exists()
    listed = CliRunner().invoke(app, given).output
    assert r"\x1b[2Jchl" in listed
    assert "\x1b" not in listed


def test_a_place_across_the_antimeridian_needs_its_crs(at_lake):
    rows = [(lat, (lon - 8.51 + 360.0) % 360.0 - 180.0, value) for lat, lon, value in log_rows()]
    (at_lake / "fiji.csv").write_text("\n".join(["lat,lon,chl", *(f"{a},{b:.7f},{c}" for a, b, c in rows)]))
    message = error_of(new_world(csv="fiji.csv"))
    assert "crosses the antimeridian: its longitudes run from 179.99" in message
    assert "add --crs EPSG:32660" in message
    assert not (at_lake / "worlds").exists()
    result = new_world("--crs", "EPSG:32660", csv="fiji.csv")
    assert result.exit_code == 0, result.output
    domain = fieldbo.load_world("kessel").domain
    longitudes = domain.georeference.degrees(domain.sites)[:, 1]
    assert (np.abs(longitudes) <= 180.0).all()
    assert (longitudes < 0).any()
    assert (longitudes > 0).any()
    assert np.ptp(domain.sites[:, 0]) < 500.0


def test_assumed_units_and_a_threshold_beyond_the_readings_are_said(at_lake):
    result = new_world("--battery", "900", "--speed", "1.5", "--stop", "30 s", "--threshold", "99")
    assert result.exit_code == 0, result.output
    for note in ("--battery 900 is in s", "--speed 1.5 is in m/s"):
        assert f"note      {note}" in result.output
    assert "--stop 30 s is in" not in result.output
    assert "note      every reading lies below the threshold of 99; the largest is 14.71" in result.output
    given = ["new", "mission", "low", "--world", "kessel", "--threshold", "1", "--battery", "60"]
    result = CliRunner().invoke(app, given)
    assert "note      every reading lies above the threshold of 1; the least is 6.948" in result.output
    assert "note      --battery 60 is in s" in result.output
    result = CliRunner().invoke(app, [*given[:2], "mid", *given[3:6], "9", "--battery", "1 min"])
    assert result.exit_code == 0, result.output
    assert "note" not in result.output


def test_a_raw_log_is_cleaned_and_what_was_done_is_said(at_lake):
    rows = [f"{lat:.7f};{lon:.7f};{value:.3f}".replace(".", ",") for lat, lon, value in log_rows()]
    rows[4] = rows[4].rsplit(";", 1)[0] + ";"
    rows[9] = "0,0;0,0;" + rows[9].rsplit(";", 1)[1]
    rows.insert(20, rows[19])
    with gzip.open("raw.csv.gz", "wt", encoding="latin-1") as file:
        file.write("\n".join(["# Gerät 7", "lat;lon;chl", "deg;deg;µg/l", *rows]))
    result = new_world(*PLACE, csv="raw.csv.gz")
    assert result.exit_code == 0, result.output
    for part in ("decimal commas", "without a number for chl", "without a fix (position 0, 0)"):
        assert part in result.output
    assert len(fieldbo.load_world("kessel").field.readings.values) == len(rows) - 3


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (lambda rows: [f"{lon},{lat},{value}" for lat, lon, value in rows], "swapped|exchanged|right"),
        (
            lambda rows: [f"{y},{x},{-9999 if k % 9 == 0 else v}" for k, (y, x, v) in enumerate(rows)],
            "-9999",
        ),
        (lambda rows: [f"{lat},{lon},3.5" for lat, lon, _ in rows], "all readings are 3.5"),
        (lambda rows: [f"{lat},{lon},{value}" for lat, lon, value in rows[:3]], "at least 5"),
        (lambda rows: [f"{lat + 60},{lon},{value}" for lat, lon, value in rows], "position|latitude"),
    ],
)
def test_a_doubtful_log_is_questioned_before_anything_is_written(at_lake, change, part):
    (at_lake / "doubt.csv").write_text("\n".join(["lat,lon,chl", *change(log_rows())]))
    assert re.search(part, error_of(new_world(*PLACE, csv="doubt.csv")))
    assert not (at_lake / "worlds").exists()


def test_columns_in_degrees_without_lat_and_lon_are_recognised(at_lake):
    message = error_of(new_world(columns=()))
    assert "'lat' and 'lon' look like latitude and longitude" in message
    assert "--lat lat --lon lon" in message
    assert "with --lat and --lon instead" in error_of(new_world(columns=("--x", "lon", "--y", "lat")))


def test_without_a_value_the_columns_are_listed_with_their_ranges(at_lake):
    result = CliRunner().invoke(app, ["new", "world", "kessel", "--csv", "sonde.csv"])
    rows = [line.split() for line in result.output.splitlines()]
    assert ["chl", "value", "106", "0", "6.948", "14.714"] in rows
    assert ["lat", "latitude", "106", "0"] in [row[:4] for row in rows]
    assert "choose one with --value COL, such as --lat lat --lon lon --value chl" in error_of(result)
    assert not (at_lake / "worlds").exists()


def test_the_geojson_of_a_world_can_be_edited_in_a_gis(at_place):
    file = at_place / "worlds" / "kessel" / "avoid.geojson"
    content = json.loads(file.read_text())
    more = degrees(shapely.box(*at(100, 0), *at(140, 40)))
    content["features"].append(
        {"type": "Feature", "properties": {}, "geometry": json.loads(shapely.to_geojson(more))}
    )
    before = fieldbo.load_world("kessel").domain.size
    file.write_text(json.dumps(content))
    domain = fieldbo.load_world("kessel").domain
    assert domain.size < before
    assert [obstacle.name for obstacle in domain.solid] == ["swimmers", "zone 1"]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("{", "outline.geojson is not a GeoJSON file"),
        ('{"type": "FeatureCollection", "features": []}', "outline.geojson is not a GeoJSON file"),
        (geojson(shapely.Point(8.5, 47.3)), "the feature is a Point"),
        (geojson(degrees(LAKE)).replace("8.5", "485"), "latitudes from"),
    ],
)
def test_a_broken_outline_in_a_world_is_named(at_place, text, part):
    (at_place / "worlds" / "kessel" / "outline.geojson").write_text(text)
    with pytest.raises(fieldbo.InputError, match=part):
        fieldbo.load_world("kessel")


def test_a_world_cannot_name_an_outline_outside_its_folder(at_place):
    file = at_place / "worlds" / "kessel" / "world.toml"
    file.write_text(file.read_text().replace('"outline.geojson"', '"../../lake.geojson"'))
    with pytest.raises(fieldbo.InputError, match="lies outside the folder"):
        fieldbo.load_world("kessel")


def write_bottom(folder, depth):
    """Write bottom.nc without saying whether it holds depths; `depth` (m, n) is over 31 x 31 cells."""
    ticks = np.arange(-300.0, 301.0, 20.0)
    coordinates = {"y": MIDDLE[1] + ticks, "x": MIDDLE[0] + ticks}
    data = xarray.Dataset(
        {"band": (("y", "x"), depth(*np.meshgrid(ticks, ticks)), {"units": "m"})}, coordinates
    )
    data.to_netcdf(folder / "bottom.nc", engine="scipy")


def bowl(x, y):
    return np.maximum(12.0 - np.hypot(x, y) / 20.0, 0.0)


def test_elevations_that_are_read_as_depths_are_warned_of(at_lake):
    write_bottom(at_lake, lambda x, y: 146.0 - bowl(x, y))
    result = new_world(*PLACE, "--bathymetry", "bottom.nc", "--least-depth", "2 m")
    assert result.exit_code == 0, result.output
    assert re.search(
        r"note +depths from 134 to 14\d m; 0 sites in less than 2 m of water left out", result.output
    )
    assert "warning   --least-depth 2 m leaves out no site" in result.output
    assert "if the file holds elevations above sea level, subtract them from the level" in result.output
    assert new_world(*PLACE, "--bathymetry", "bottom.nc", name="other").output.count("above sea level") == 1


@pytest.mark.parametrize(
    ("depth", "least", "sites"),
    [(bowl, "3 m", r"[1-9]\d*"), (lambda x, y: bowl(x, y) + 1.0, None, None)],
    ids=["shallow shores", "no least depth"],
)
def test_depths_from_the_surface_are_no_cause_for_a_warning(at_lake, depth, least, sites):
    write_bottom(at_lake, depth)
    options = [] if least is None else ["--least-depth", least]
    result = new_world(*PLACE, "--bathymetry", "bottom.nc", *options)
    assert result.exit_code == 0, result.output
    said = r"depths from [\d.]+ to 1\d(\.\d)? m" + (
        "" if least is None else f"; {sites} sites in less than 3 m"
    )
    assert re.search(said, result.output)
    assert "warning" not in result.output.split("fitted")[0]


def test_a_new_place_says_how_many_islands_it_has(at_lake):
    assert "20 m apart; 1 outline, 1 island, 1 zone to avoid; drawn in" in new_world(*PLACE).output


def test_the_noises_of_a_pooled_mean_and_of_a_single_reading_are_told_apart(at_lake):
    assert "of a single reading" not in new_world(*PLACE).output
    lines = [f"{lat:.7f},{lon:.7f},{value:.3f}" for lat, lon, value in log_rows(4.0)]
    (at_lake / "dense.csv").write_text("\n".join(["lat,lon,chl", *lines]))
    output = new_world(*PLACE, name="dense", csv="dense.csv").output
    assert re.search(r"noise sd [\d.]+ \(of the mean of [\d.]+ rows\)", output)
    assert re.search(r"sensor +noise sd [\d.]+ \(of a single reading\); set your", output)


def test_a_date_and_a_time_in_two_columns_sort_the_log_of_a_new_place(at_lake):
    rows = [
        f"15.08.2026,10:{k // 60:02d}:{k % 60:02d},{y:.7f},{x:.7f},{v:.3f}"
        for k, (y, x, v) in enumerate(log_rows())
    ]
    (at_lake / "two.csv").write_text("\n".join(["Date,Time,lat,lon,chl", *reversed(rows)]))
    output = new_world(*PLACE, "--time", "Time", csv="two.csv").output
    for note in (
        "time is Date and Time together",
        "times without an offset are taken as UTC",
        "sorted by time",
    ):
        assert output.count(note) == 1


def test_positions_survive_the_way_to_degrees_and_back():
    longitude, latitude = TO_DEGREES.transform(*MIDDLE)
    georeference = fieldbo.domain.georeference.Georeference(UTM)
    assert georeference.degrees(MIDDLE)[0] == pytest.approx([latitude, longitude], abs=1e-12)
    assert georeference.metres(georeference.degrees(MIDDLE))[0] == pytest.approx(MIDDLE, abs=1e-6)


MARKS = (
    {"type": "Point", "coordinates": degrees(shapely.Point(at(-100, 60))).coords[0]},
    {
        "type": "LineString",
        "coordinates": list(degrees(shapely.LineString([at(80, 60), at(120, 80)])).coords),
    },
)


def write_marks(folder):
    """Write marks.geojson: a buoy, a net, and the swimmers' zone with a label in it."""
    label = {"type": "Point", "coordinates": degrees(SWIMMERS.centroid).coords[0]}
    area = {"type": "GeometryCollection", "geometries": [shapely.geometry.mapping(degrees(SWIMMERS)), label]}
    named = zip(("buoy", "net", "swimmers"), (*MARKS, area), strict=True)
    features = [{"type": "Feature", "properties": {"name": n}, "geometry": g} for n, g in named]
    (folder / "marks.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": features}))


def test_a_margin_is_kept_from_buoys_and_nets_and_without_one_they_are_named(at_lake, command):
    write_marks(at_lake)
    options = (*PLACE[:2], "--avoid", "marks.geojson", *PLACE[4:])
    message = error_of(new_world(*options))
    assert "zones that are no areas, but lines and points: 1 'buoy', 2 'net'" in message
    assert 'add --avoid-margin "10 m"' in message
    assert not (at_lake / "worlds").exists()
    result = new_world(*options, "--avoid-margin", "30 m", "--clearance", "0 m")
    assert result.exit_code == 0, result.output
    domain = fieldbo.load_world("kessel").domain
    assert sorted(zone.name for zone in domain.solid) == ["buoy", "net", "swimmers"]
    for mark in MARKS:
        place = shapely.transform(shape(mark), lambda xy: np.column_stack(FROM_DEGREES.transform(*xy.T)))
        away = shapely.distance(shapely.points(domain.sites), place).min()
        assert 30.0 * 0.999 <= away < 60.0
    _, out, _ = command("check", "worlds/kessel/world.toml")
    assert "read      1 area of outline.geojson, 3 zones of avoid.geojson" in out


def test_zones_of_another_place_and_land_around_the_water_are_refused(at_lake):
    swapped = shapely.transform(degrees(SWIMMERS), lambda xy: xy[:, ::-1])
    (at_lake / "swapped.geojson").write_text(geojson(swapped))
    land = shapely.box(*at(-900, -900), *at(900, 900)).difference(SHORE)
    (at_lake / "land.geojson").write_text(geojson(degrees(land)))
    message = error_of(new_world(*PLACE, "--avoid", "swapped.geojson", "--avoid", "land.geojson"))
    assert "2 problems" in message
    assert "no zone of swapped.geojson lies near the outline: the nearest is" in message
    assert "the two coordinates look swapped in the file" in message
    assert re.search(r"\d+ readings lie in a hole of the zone 'land'", message)


def test_a_hole_in_a_zone_counts_as_part_of_it_and_is_said(at_place, command):
    middle = shapely.Point(at(-60, 100))
    ring = middle.buffer(30.0).difference(middle.buffer(12.0))
    (at_place / "worlds" / "kessel" / "avoid.geojson").write_text(geojson(degrees(ring)))
    domain = fieldbo.load_world("kessel").domain
    assert not domain.contains(np.array(middle.coords)).any()
    _, out, _ = command("check", "worlds/kessel/world.toml")
    assert "1 zone of avoid.geojson with 1 hole closed" in out


def test_points_of_a_worlds_zones_need_their_margin(at_place):
    write_marks(at_place)
    folder = at_place / "worlds" / "kessel"
    shutil.copy("marks.geojson", folder / "avoid.geojson")
    with pytest.raises(
        fieldbo.InputError, match=r"(?s)the feature is a Point.*add avoid_margin to \[domain\]"
    ) as raised:
        fieldbo.load_world("kessel")
    assert "features[0]" in raised.value.where
    text = (folder / "world.toml").read_text()
    (folder / "world.toml").write_text(text.replace("spacing =", "avoid_margin = 20\nspacing ="))
    assert len(fieldbo.load_world("kessel").domain.solid) == 3


@pytest.mark.slow
def test_a_bathymetry_takes_what_is_beside_its_file_and_what_people_said_along(at_lake):
    ticks = np.arange(-290.0, 300.0, 20.0)
    rows = -bowl(*np.meshgrid(ticks, ticks))[::-1]
    low = MIDDLE - 300.0
    header = f"ncols 30\nnrows 30\nxllcorner {low[0]}\nyllcorner {low[1]}\ncellsize 20\nNODATA_value -9999\n"
    (at_lake / "arc.asc").write_text(header + "\n".join(" ".join(map(str, row)) for row in rows.tolist()))
    (at_lake / "arc.prj").write_text(CRS(UTM).to_wkt("WKT1_ESRI"))
    assert new_world(*PLACE, "--bathymetry", "arc.asc").exit_code == 0
    assert (at_lake / "worlds" / "kessel" / "arc.prj").is_file()
    grid = xarray.Dataset(
        {"z": (("y", "x"), np.where(rows == 0.0, 5.0, rows)[::-1]), "error": (("y", "x"), rows)},
        {"y": MIDDLE[1] + ticks, "x": MIDDLE[0] + ticks},
    )
    grid.to_netcdf("two.nc", engine="scipy")
    message = error_of(new_world(*PLACE, "--bathymetry", "two.nc", name="two"))
    assert "2 variables over two dimensions: z, error" in message
    assert "--bathymetry two.nc:NAME" in message
    message = error_of(new_world(*PLACE, "--bathymetry", "two.nc:z", name="two"))
    assert "does not say whether they are depths or elevations" in message
    result = new_world(*PLACE, "--bathymetry", "two.nc:z", "--positive", "up", name="two")
    assert result.exit_code == 0, result.output
    one, two = (fieldbo.load_world(name).domain.bottom for name in ("kessel", "two"))
    assert one.depth_at(MIDDLE[None]) == pytest.approx(12.0 - np.hypot(10, 10) / 20)
    assert two.depth_at(MIDDLE[None]) == pytest.approx(one.depth_at(MIDDLE[None]))
    written = tomllib.loads((at_lake / "worlds" / "two" / "world.toml").read_text())
    assert written["domain"]["bathymetry"] == {"file": "two.nc", "value": "z", "positive": "up"}


def test_depths_that_are_implausible_for_a_lake_are_asked_about(at_lake):
    write_bottom(at_lake, lambda x, y: 100.0 * bowl(x, y) + 50.0)
    message = error_of(new_world(*PLACE, "--bathymetry", "bottom.nc"))
    assert re.search(r"the water is up to 1,\d\d\d m deep at the sites", message)
    assert '--deepest "1' in message
    assert not (at_lake / "worlds").exists()
    assert new_world(*PLACE, "--bathymetry", "bottom.nc", "--deepest", "1.5 km").exit_code == 0

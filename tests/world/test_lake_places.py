"""The lake on the map: what its maker writes, and whether boats stay on the water."""

import csv
import runpy
import shutil
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
import shapely
import xarray as xr
from checkout import ROOT
from direct_link import Near

import fieldbo
from fieldbo.domain.georeference import WGS84, Georeference
from fieldbo.mission.shapes import as_outline, read_shapes
from fieldbo.record.record import Record
from fieldbo.runs.runner import run
from fieldbo.testing import SteppedClock
from fieldbo.vehicles.file import VehicleFile
from fieldbo.vehicles.remote.remote import Remote
from fieldbo.vehicles.remote.settings import Arrival, Battery, Reports, Watch
from fieldbo.vehicles.simulators import Robot

FOLDER = ROOT / "worlds" / "lake-places"
MISSIONS = ("lake-places-level-set", "lake-places-optimum")


@pytest.fixture(scope="module")
def world():
    return fieldbo.load_world("lake-places")


@pytest.fixture(scope="module")
def survey():
    """The rows of the log, without names and units."""
    with (FOLDER / "survey.csv").open(newline="") as file:
        return list(csv.reader(file))[2:]


@cache
def result_of(name):
    return fieldbo.run(fieldbo.load_mission(name))


@pytest.fixture(scope="module", params=MISSIONS)
def result(request):
    return result_of(request.param)


def ashore(world, track):
    """Return the legs of a track that leave the water, or come too near to the shore or to the swimmers."""
    water = world.domain.region.buffer(1e-3)
    legs = [shapely.LineString(leg) for leg in pairwise(track) if not np.array_equal(*leg)]
    return [leg.wkt for leg in legs if not water.covers(leg)]


# -- the missions ------------------------------------------------------------------------------------------


def test_no_leg_of_a_mission_crosses_land_or_the_swimmers(world, result):
    assert len(result.path) > 15
    assert ashore(world, result.path) == []


def test_a_mission_goes_round_the_spit_and_ends_at_its_jetty(world, result):
    stops = np.array([result.path[0], *result.sites])
    straight = [shapely.LineString(leg) for leg in pairwise(stops) if not np.array_equal(*leg)]
    assert any(not world.domain.outline.covers(leg) for leg in straight)
    np.testing.assert_array_equal(result.path[-1], result.mission.vehicles[0].home)
    assert result.cost <= result.mission.vehicles[0].battery


def test_the_missions_find_what_they_look_for():
    level_set, optimum = map(result_of, MISSIONS)
    assert level_set.f1 > 0.9
    assert optimum.regret < 1.0


def test_a_robot_on_a_link_never_drives_ashore(world, tmp_path, monkeypatch):
    monkeypatch.setattr("fieldbo.vehicles.simulators.robot._REPORT_S", 0.002)
    mission = fieldbo.load_mission("lake-places-level-set", {"agent": {"battery": 4500}})
    clock = SteppedClock(step_s=0.001)
    robot = Robot(mission.world, start=mission.vehicles[0].start, speedup=2e5, clock=clock)
    settings = VehicleFile.model_construct(
        format=1,
        title="",
        link={},
        frame=None,
        watch=Watch(silence_s=1.0, connect_s=5.0),
        battery=Battery(),
        reports=Reports(),
        arrival=Arrival(1e-6, dwell_s=0.0, reading_s=0.2),
    )
    with Record.create(tmp_path / "run.sqlite", "run", {}) as record:
        run(mission, [Remote(mission, 0, Near(robot), settings, "boat", clock)], record)
    assert len(robot.track) > 15
    assert ashore(world, robot.track) == []
    np.testing.assert_allclose(robot.track[-1], mission.vehicles[0].home, atol=1e-3)


# -- the lake ----------------------------------------------------------------------------------------------


def test_the_lake_has_an_island_and_a_spit_between_two_bays(world):
    lake = world.domain.outline
    assert len(lake.interiors) == 1
    west, east = [370_750, 5_913_200], [370_950, 5_913_200]
    across = float(np.hypot(*np.subtract(west, east)))
    assert world.cost.travel(west, [east])[0] > 3 * 0.67 * across


def test_what_is_released_in_a_bay_does_not_pass_the_spit(world):
    west, east = world.truth(np.array([[370_750, 5_913_350], [371_000, 5_913_350]], dtype=float))
    assert west > 2 * east


def test_all_sites_are_far_enough_from_shore_island_and_swimmers(world):
    domain = world.domain
    places = shapely.points(domain.sites)
    [beach] = domain.solid
    assert shapely.distance(places, domain.outline.boundary).min() >= domain.clearance - 1e-6
    assert shapely.distance(places, beach.polygon).min() >= domain.clearance - 1e-6


def test_the_lake_lies_where_its_crs_says(world):
    [[latitude, longitude]] = world.domain.georeference.degrees(world.start)
    assert (latitude, longitude) == pytest.approx((53.346077, 13.056745), abs=1e-7)


# -- the files to try things with --------------------------------------------------------------------------


def test_the_survey_has_the_flaws_of_a_log(survey):
    assert 900 <= len(survey) <= 1500
    assert max(Counter(map(tuple, survey)).values()) == 2
    for column in range(1, 6):
        missing = sum(row[column] in ("", "NaN") for row in survey)
        assert 0 < missing < 0.02 * len(survey)
    assert len({len(row) for row in survey}) == 1


def test_the_survey_agrees_with_the_lake(world, survey):
    good = np.array([row[1:] for row in survey if not {"", "NaN"} & set(row)], dtype=float)
    places = Georeference(world.domain.crs).metres(good[:, :2])
    assert shapely.contains_xy(world.domain.region.buffer(10), places).all()
    truth = world.truth(places)  # of the nearest site
    assert np.corrcoef(truth, good[:, 4])[0, 1] > 0.98
    assert good[:, 2].min() > 0


@pytest.mark.parametrize("stem", ["outline", "swimmers"])
def test_the_layers_hold_the_same_shape_in_both_formats(stem):
    rings = [
        np.array([place.split(",")[:2] for place in ring.text.split()], dtype=float)
        for ring in ET.parse(FOLDER / f"{stem}.kml").iter("{http://www.opengis.net/kml/2.2}coordinates")
    ]
    same = as_outline(read_shapes(FOLDER / f"{stem}.geojson", WGS84))
    assert shapely.hausdorff_distance(shapely.Polygon(rings[0], rings[1:]), same) < 2e-7


def test_the_bathymetry_covers_the_lake_and_needs_only_scipy_to_read(world):
    with xr.open_dataset(FOLDER / "bathymetry.nc", engine="scipy") as file:
        data = file.load()
    assert data.depth.attrs["units"] == "m"
    assert data.depth.attrs["positive"] == "down"
    box = shapely.box(float(data.x.min()), float(data.y.min()), float(data.x.max()), float(data.y.max()))
    assert box.covers(world.domain.outline)
    x, y = (xr.DataArray(column) for column in world.domain.sites.T)
    assert float(data.depth.sel(x=x, y=y, method="nearest").min()) > 0.5
    assert 10 < float(data.depth.max()) < 20


def test_its_maker_writes_these_files_again(tmp_path, monkeypatch):
    shutil.copy(FOLDER / "world.toml", tmp_path)
    made = runpy.run_path(str(ROOT / "makers" / "lake_places.py"))
    made["main"].__globals__["WORLD"] = tmp_path
    monkeypatch.setattr(sys, "argv", ["lake_places.py"])
    made["main"]()
    for stem in ("outline", "swimmers"):
        old, new = (as_outline(read_shapes(f / f"{stem}.geojson", WGS84)) for f in (FOLDER, tmp_path))
        assert shapely.hausdorff_distance(old, new) < 1e-8
    old, new = (np.loadtxt(f / "chlorophyll.csv", delimiter=",", skiprows=1) for f in (FOLDER, tmp_path))
    np.testing.assert_allclose(new, old, atol=2e-3)
    old, new = (xr.load_dataset(f / "bathymetry.nc", engine="scipy") for f in (FOLDER, tmp_path))
    np.testing.assert_allclose(new.depth, old.depth, atol=0.02)
    assert sum(f.stat().st_size for f in tmp_path.iterdir()) < 200_000

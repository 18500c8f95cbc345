"""Lakes with a depth: the bottom, sites at depths above it, and boats that lower a probe."""

import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import shapely
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from pyproj import CRS

import fieldbo
from fieldbo.costs.base import Unit
from fieldbo.costs.travel import Boat, Euclidean, Flight, Transect
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.frame import Origin, ProjectedGround
from fieldbo.domain.free_space import Bottom
from fieldbo.domain.georeference import WGS84, reprojected
from fieldbo.domain.lattice import lattice
from fieldbo.domain.obstacles import Obstacle
from fieldbo.errors import InputError
from fieldbo.mission.bathymetry import read_bottom
from fieldbo.mission.description import describe_world
from fieldbo.mission.shapes import Shape, write_shapes
from fieldbo.results.plot import path_picture, world_picture
from fieldbo.testing import WorldContract, small_mission, small_world
from fieldbo.vehicles.mavlink.geofence import geofence

UTM = "EPSG:32633"
MIDDLE = np.array([371_000.0, 5_913_000.0])
LAKE = shapely.box(0, 0, 300, 200).difference(shapely.box(140, 80, 180, 200))  # a spit from the north
TICKS = np.arange(-30.0, 340.0, 10.0)
SLOPE = Bottom(TICKS, TICKS, np.tile(TICKS / 20.0, (len(TICKS), 1)))  # deeper to the east


def deep_lake(bottom=SLOPE, **settings):
    pier = Obstacle("pier", corners=((220, 0), (230, 0), (230, 60), (220, 60)))
    settings = {"depths": [1, 4, 8], "obstacles": [pier], "clearance": 2.0} | settings
    return lattice(LAKE, 20.0, bottom=bottom, **settings)


def deep_world(**settings):
    return replace(
        small_world((3, 3, 3)),
        domain=deep_lake(**settings),
        cost=Boat(stop_s=20.0),
        start=np.array([100, 100, 0]),
    )


# -- the bottom --------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.floats(-20, 325), st.floats(-20, 325)), min_size=1, max_size=20))
def test_the_depth_between_the_middles_of_cells_is_interpolated(places):
    places = np.array(places)
    np.testing.assert_allclose(SLOPE.depth_at(places), places[:, 0] / 20.0, atol=1e-9)


def test_the_depth_is_unknown_more_than_half_a_cell_beyond_the_raster():
    depth = SLOPE.depth_at([[-34.9, 0], [-35.1, 0], [0, 334.9], [0, 335.1]])
    np.testing.assert_array_equal(np.isnan(depth), [False, True, False, True])
    assert depth[0] == pytest.approx(SLOPE.depth[0, 0])


def test_next_to_cells_without_a_depth_those_with_one_count_alone():
    depth = np.array([[2.0, np.nan, np.nan], [2.0, np.nan, np.nan]])
    beside = Bottom(np.array([0.0, 10.0, 20.0]), np.array([0.0, 10.0]), depth)
    np.testing.assert_array_equal(beside.depth_at([[5, 5], [10, 5], [15, 5]]), [2.0, 2.0, np.nan])
    np.testing.assert_array_equal(replace(beside, clearance=0.5).reach_at([[5, 5], [15, 5]]), [1.5, 0.0])


def test_a_raster_of_another_shape_than_its_coordinates_is_an_error():
    with pytest.raises(InputError, match="2 x 2 cells"):
        Bottom(TICKS, TICKS, np.zeros((3, 3)))


# -- sites and places --------------------------------------------------------------------------------------


@given(st.floats(0, 3), st.sampled_from(["square", "hexagonal"]))
def test_no_site_is_nearer_to_the_bottom_than_the_clearance(clearance, pattern):
    domain = deep_lake(replace(SLOPE, clearance=clearance), pattern=pattern)
    assert (domain.sites[:, 2] <= SLOPE.depth_at(domain.sites[:, :2]) - clearance + 1e-9).all()
    assert domain.contains(domain.sites).all()
    assert set(domain.sites[:, 2]) <= {1.0, 4.0, 8.0}


def test_every_place_above_the_bottom_has_its_sites():
    domain, flat = deep_lake(), deep_lake(None, depths=())
    for depth in (1, 4, 8):
        expected = flat.sites[SLOPE.depth_at(flat.sites) >= depth]
        np.testing.assert_array_equal(domain.sites[domain.sites[:, 2] == depth, :2], expected)


def test_the_water_is_a_prism_between_the_surface_and_the_bottom():
    domain = deep_lake()
    places = [[100, 100, 0], [100, 100, 5], [100, 100, 5.1], [100, 100, -0.1], [160, 150, 1], [225, 30, 1]]
    assert domain.contains(places).tolist() == [True, True, False, False, False, False]
    assert domain.contains([[2.5, 100, 0]])[0]  # a jetty in water too shallow for a probe


def test_a_site_stands_for_its_share_of_the_water():
    box = lattice(shapely.box(0, 0, 100, 100), 10.0, depths=[2, 6])
    assert box.cell_size * box.size == pytest.approx(100 * 100 * 6)
    ramp = lattice(shapely.box(0, 0, 100, 100), 10.0, depths=[2, 6], bottom=SLOPE)
    assert ramp.cell_size * ramp.size == pytest.approx(100 * 100 * 2.5, rel=0.01)
    assert ramp.cell_unit == "m3"


def test_seen_from_above_it_is_the_lattice_without_depths():
    domain, flat = deep_lake(None), deep_lake(None, depths=())
    np.testing.assert_array_equal(domain.flat.sites, flat.sites)
    assert domain.flat.shape == flat.shape
    np.testing.assert_array_equal(domain.flat.grid_index, flat.grid_index)
    assert domain.flat.region.equals(flat.region)
    assert flat.flat is flat
    np.testing.assert_array_equal(domain.spacing, [20, 20, 3])


def test_a_transect_seen_from_above_is_its_line():
    transect = Domain.grid([Axis("along", "m", 0, 10), Axis("depth", "m", 0, 4)], (3, 3))
    np.testing.assert_array_equal(transect.flat.sites, [[0], [5], [10]])
    assert transect.flat.shape == (3,)


@pytest.mark.parametrize("depths", [[4, 1], [1, 1], [-1, 2], [np.nan], [0]])
def test_depths_that_do_not_increase_from_the_surface_are_an_error(depths):
    with pytest.raises(InputError, match="depths = "):
        deep_lake(depths=depths)


def test_a_bottom_that_leaves_no_site_is_an_error():
    with pytest.raises(InputError, match="no site at a depth of 14 m"):
        deep_lake(depths=[14, 20])


@pytest.mark.parametrize("depths", [(), (1, 4)])
def test_there_are_no_sites_in_water_that_is_too_shallow_but_routes_cross_it(depths):
    domain = deep_lake(depths=depths, least_depth=3.0)
    every = deep_lake(None, depths=())
    assert SLOPE.depth_at(domain.sites[:, :2]).min() >= 3.0
    assert domain.flat.size == int((SLOPE.depth_at(every.sites) >= 3.0).sum())
    shallow = [20.0, 20.0, 0.0][: domain.dimension]
    assert domain.contains([shallow])[0]
    boat = Boat().within(domain)
    assert np.isfinite(boat.travel(shallow, domain.sites)).all()
    if not depths:
        assert domain.cell_size == every.cell_size


def test_a_bathymetry_that_does_not_cover_the_outline_is_an_error_that_says_how_much_it_covers():
    half = Bottom(TICKS[:18], TICKS, SLOPE.depth[:, :18])
    with pytest.raises(InputError, match=r"covers 5\d% of the sites") as error:
        deep_lake(half)
    assert "CRS" in error.value.fix


def test_elevations_above_sea_level_are_not_taken_for_depths():
    with pytest.raises(InputError, match="above the surface") as error:
        deep_lake(replace(SLOPE, depth=-60.0 + SLOPE.depth))
    assert "level of the lake" in error.value.fix


# -- boats -------------------------------------------------------------------------------------------------

SITES = deep_lake().sites


@given(st.integers(0, len(SITES) - 1), st.integers(0, len(SITES) - 1), st.floats(0.1, 9), st.floats(0.1, 9))
def test_a_boat_raises_the_probe_travels_and_lowers_it_again(i, j, speed, winch):
    domain, a, b = deep_lake(), SITES[i], SITES[j]
    boat = Boat(speed=speed, winch_speed=winch, stop_s=7.0).within(domain)
    metres = Euclidean().within(domain.flat).travel(a[:2], b[None, :2])[0]
    expected = (a[2] + b[2]) / winch + metres / speed if metres else abs(a[2] - b[2]) / winch
    assert boat.travel(a, b[None])[0] == pytest.approx(expected)
    assert boat.to(a, b[None])[0] == pytest.approx(expected + 7.0)
    assert boat.duration_s(a, b[None])[0] == pytest.approx(expected + 7.0)


@given(st.integers(0, len(SITES) - 1), st.integers(0, len(SITES) - 1), st.integers(0, len(SITES) - 1))
def test_no_detour_of_a_boat_is_shorter(i, j, k):
    boat = Boat().within(deep_lake())
    direct, first, second = (boat.travel(SITES[p], SITES[q][None])[0] for p, q in ((i, k), (i, j), (j, k)))
    assert direct <= first + second + 1e-9


@given(st.integers(0, len(SITES) - 1), st.integers(0, len(SITES) - 1))
def test_between_its_ends_a_boats_route_is_at_the_surface_and_on_the_water(i, j):
    domain, a, b = deep_lake(), SITES[i], SITES[j]
    boat = Boat().within(domain)
    path = boat.path(a, b)
    np.testing.assert_array_equal(path[[0, -1]], [a, b])
    assert (path[1:-1, 2] == 0).all()
    assert len(path) == 2 or np.array_equal(path[[1, -2], :2], [a[:2], b[:2]])
    assert boat.along(path)[0] == pytest.approx(boat.travel(a, b[None])[0])
    for leg in pairwise(path[:, :2]):
        assert domain.region.buffer(1e-6).covers(shapely.LineString(leg))


def test_a_route_from_the_surface_does_not_repeat_its_start():
    boat = Boat().within(deep_lake(None, obstacles=[]))
    assert boat.path([10, 10, 0], [50, 50, 4]).tolist() == [[10, 10, 0], [50, 50, 0], [50, 50, 4]]
    assert boat.path([10, 10, 0], [50, 50, 0]).tolist() == [[10, 10, 0], [50, 50, 0]]
    assert boat.path([10, 10, 4], [10, 10, 1]).tolist() == [[10, 10, 4], [10, 10, 1]]


@given(st.floats(0.1, 10), st.booleans())
def test_without_a_depth_a_boat_costs_what_euclidean_does(speed, open_water):
    domain = deep_lake(depths=(), obstacles=[]) if not open_water else lattice(shapely.box(0, 0, 50, 50), 10)
    boat = Boat(speed=speed, stop_s=20.0).within(domain)
    line = Euclidean(rate=1.0 / speed, sampling=20.0).within(domain)
    some = domain.sites[::7]
    np.testing.assert_allclose(boat.to(some, domain.sites), line.to(some, domain.sites), rtol=1e-12)
    np.testing.assert_array_equal(boat.path(some[0], some[-1]), line.path(some[0], some[-1]))
    assert (boat.straight_rates is None) == (line.straight_rates is None)


@pytest.mark.parametrize("cost", [Euclidean(), Flight(), Unit(), Transect()], ids=lambda c: type(c).__name__)
def test_costs_that_do_not_know_about_depth_are_rejected_by_name(cost):
    with pytest.raises(InputError, match=type(cost).__name__.lower()):
        replace(deep_world(), cost=cost)


def test_axes_that_a_boat_can_not_travel_along_are_an_error():
    for axes in (
        [Axis("x", "m", 0, 1), Axis("y", "m", 0, 1), Axis("z", "m", 0, 1)],
        [Axis("x", "km", 0, 1), Axis("y", "m", 0, 1)],
    ):
        with pytest.raises(InputError, match="does not fit the axes"):
            Boat().check(Domain.grid(axes, (2,) * len(axes)))
    with pytest.raises(InputError, match="above the surface"):
        Boat().check(Domain.grid([Axis("x", "m", 0, 1), Axis("depth", "m", -1, 1)], (2, 2)))


def test_boxes_over_the_depth_are_rejected():
    axes = [Axis(n, "m", 0, 10) for n in ("x", "y", "depth")]
    domain = Domain.grid(axes, (3, 3, 3), obstacles=[Obstacle("tank", (4, 4, 1), (6, 6, 9))])
    with pytest.raises(InputError, match="route around tank"):
        Boat().within(domain)


class TestALakeWithDepths(WorldContract):
    def world(self, draw):
        return deep_world()


class TestALakeWithDepthsInHexagons(WorldContract):
    def world(self, draw):
        return deep_world(pattern="hexagonal", bottom=None)


class TestABoatAtTheSurface(WorldContract):
    def world(self, draw):
        return replace(
            small_world(), domain=deep_lake(depths=()), cost=Boat(stop_s=20.0), start=np.array([100, 100])
        )


# -- missions and pictures ---------------------------------------------------------------------------------


def test_a_mission_samples_above_the_bottom_and_stays_on_the_water():
    world = deep_world()
    mission = small_mission(fieldbo.policies.Random(), world=world, battery=4000.0, home=[100, 100, 0])
    result = fieldbo.run(mission)
    assert len(result.values) > 5
    assert result.cost <= 4000.0
    assert (result.sites[:, 2] <= SLOPE.depth_at(result.sites[:, :2]) + 1e-9).all()
    water = world.domain.region.buffer(1e-6)
    assert all(water.covers(shapely.LineString(leg)) for leg in pairwise(result.path[:, :2]))
    deep = result.path[:, 2] > 0
    moved = (np.diff(result.path[:, :2], axis=0) != 0).any(axis=1)
    assert not (moved & (deep[1:] | deep[:-1])).any()
    assert len(path_picture(result).axes) >= 1


@pytest.mark.parametrize("pattern", ["square", "hexagonal"])
def test_a_picture_of_the_world_has_a_slice_for_each_depth(pattern):
    figure = world_picture(deep_world(pattern=pattern), threshold=0.0)
    assert [ax.get_title() for ax in figure.axes if ax.get_title()] == [f"depth {d} m" for d in (1, 4, 8)]


def test_the_fence_of_a_lake_with_depths_is_that_of_its_outline():
    there = [o.polygon for o in deep_lake().solid]
    moved = shapely.transform(LAKE, lambda xy: xy + MIDDLE)
    piers = [
        Obstacle("pier", corners=tuple(map(tuple, np.array(p.exterior.coords)[:-1] + MIDDLE))) for p in there
    ]
    fences = []
    for depths in ([1, 4], ()):
        domain = lattice(moved, 20.0, obstacles=piers, clearance=2.0, crs=UTM, depths=depths)
        start = domain.sites[0]
        world = replace(
            small_world((3,) * domain.dimension), domain=domain, cost=Boat(stop_s=1.0), start=start
        )
        mission = small_mission(fieldbo.policies.Random(), world=world, battery=1000.0)
        ground = ProjectedGround.at(domain, Origin(53.345, 13.06))
        fences.append(geofence(mission, ground, None))
    assert fences[0].left_out == ()
    assert fences[0].zones == fences[1].zones


# -- files -------------------------------------------------------------------------------------------------


def written(path, values=None, *, crs=UTM, attributes=None, name="depth", turned=False):
    """Write a bathymetry of the lake at MIDDLE as NetCDF-3, in metres or in degrees."""
    values = SLOPE.depth if values is None else values
    x, y = TICKS + MIDDLE[0], TICKS + MIDDLE[1]
    said = {"units": "m"} | (attributes or {})
    if crs == WGS84:  # a degree grid that holds the lake
        corners = reprojected([[x[0], y[0]], [x[-1], y[-1]]], UTM, WGS84)
        (x0, y0), (x1, y1) = corners.min(axis=0) - 1e-4, corners.max(axis=0) + 1e-4
        lon, lat = np.linspace(x0, x1, 60), np.linspace(y0, y1, 50)
        places = reprojected(np.stack(np.meshgrid(lon, lat), axis=-1).reshape(-1, 2), WGS84, UTM) - MIDDLE
        values = (places[:, 0] / 20.0).reshape(50, 60)
        coords = {
            "lon": ("lon", lon, {"units": "degrees_east"}),
            "lat": ("lat", lat, {"units": "degrees_north"}),
        }
        data = xr.Dataset({name: (("lat", "lon"), values, said)}, coords)
    else:
        coords = {"x": ("x", x), "y": ("y", y)}
        data = xr.Dataset(
            {name: (("y", "x"), values, said | {"grid_mapping": "crs"} if crs else said)}, coords
        )
        if crs:
            data["crs"] = ((), np.int32(0), {"crs_wkt": CRS(crs).to_wkt()})
    if turned:
        data = data.isel({d: slice(None, None, -1) for d in data[name].dims}).transpose(
            *data[name].dims[::-1]
        )
    data.to_netcdf(path, engine="scipy")
    return path


PLACES = MIDDLE + np.array([[100.0, 100.0], [250.0, 20.0], [20.0, 180.0]])
DEPTHS = [5.0, 12.5, 1.0]


@pytest.mark.parametrize(
    ("sign", "name", "attributes", "what"),
    [
        (1, "band", {"positive": "down"}, 'depths (positive = "down")'),
        (-1, "depth", {"positive": "up"}, 'elevations (positive = "up")'),
        (1, "depth", {}, "depths (called depth)"),
        (-1, "elevation", {}, "elevations (called elevation)"),
        (-1, "z", {"standard_name": "height_above_mean_sea_level"}, "elevations (called z)"),
        (1, "z", {}, "depths (mostly positive)"),
        (-1, "z", {}, "elevations (mostly negative)"),
        (-1, "depth", {"long_name": "depth"}, "elevations (mostly negative)"),
    ],
)
def test_depths_and_elevations_are_told_apart(tmp_path, sign, name, attributes, what):
    values = sign * np.where(SLOPE.depth > 0, SLOPE.depth, 0.01)
    bottom = read_bottom(written(tmp_path / "b.nc", values, name=name, attributes=attributes), UTM)
    np.testing.assert_allclose(bottom.depth_at(PLACES), DEPTHS)
    assert what in bottom.source
    assert "EPSG:32633" in bottom.source


@pytest.mark.parametrize("crs", [UTM, "EPSG:25833", WGS84, None])
@pytest.mark.parametrize("turned", [False, True])
def test_a_bathymetry_may_be_in_another_crs_and_in_any_order(tmp_path, crs, turned):
    bottom = read_bottom(written(tmp_path / "b.nc", crs=crs, turned=turned), UTM)
    np.testing.assert_allclose(bottom.depth_at(PLACES), DEPTHS, atol=1e-3)


@pytest.mark.parametrize(("unit", "metres"), [("ft", 0.3048), ("fathoms", 1.8288), ("cm", 0.01)])
def test_feet_become_metres(tmp_path, unit, metres):
    bottom = read_bottom(written(tmp_path / "b.nc", attributes={"units": unit}), UTM)
    np.testing.assert_allclose(bottom.depth_at(PLACES), metres * np.array(DEPTHS))
    assert f"converted from {unit} to m" in bottom.source


def test_a_bathymetry_may_be_a_geotiff(tmp_path):
    rasterio = pytest.importorskip("rasterio")
    west, north = MIDDLE[0] + TICKS[0] - 5.0, MIDDLE[1] + TICKS[-1] + 5.0
    values = np.where(SLOPE.depth > 0, -SLOPE.depth, -999.0)[::-1]
    size = {"height": len(TICKS), "width": len(TICKS), "count": 1, "dtype": "float64"}
    place = {"crs": UTM, "transform": rasterio.transform.from_origin(west, north, 10, 10), "nodata": -999.0}
    with rasterio.open(tmp_path / "b.tif", "w", driver="GTiff", **size, **place) as file:
        file.write(values, 1)
    bottom = read_bottom(tmp_path / "b.tif", UTM)
    np.testing.assert_allclose(bottom.depth_at(PLACES), DEPTHS)
    assert np.isnan(bottom.depth_at([MIDDLE - 20.0]))[0]
    assert "elevations (mostly negative)" in bottom.source


def test_a_file_that_is_no_bathymetry_is_an_error_that_names_it(tmp_path):
    (tmp_path / "text.nc").write_text("depth\n")
    for name, problem in (("text.nc", "can't be read"), ("none.nc", "there is no file")):
        with pytest.raises(InputError, match=problem) as error:
            read_bottom(tmp_path / name, UTM)
        assert name in f"{error.value.problem} {error.value.where}"
    with pytest.raises(InputError, match="'kpa'"):
        read_bottom(written(tmp_path / "f.nc", attributes={"units": "kPa"}), UTM)
    both = xr.Dataset(
        {n: (("y", "x"), np.ones((2, 2))) for n in ("a", "b")}, {"x": [0.0, 1.0], "y": [0.0, 1.0]}
    )
    both.to_netcdf(tmp_path / "two.nc", engine="scipy")
    with pytest.raises(InputError, match="2 variables"):
        read_bottom(tmp_path / "two.nc", UTM)
    both[["a"]].drop_vars("x").to_netcdf(tmp_path / "bare.nc", engine="scipy")
    with pytest.raises(InputError, match="dimension x of a has no coordinates"):
        read_bottom(tmp_path / "bare.nc", UTM)


WORLD = """format = 1
version = "1"
title = "A deep lake"
cost_unit = "s"
[domain]
kind = "lattice"
crs = "EPSG:32633"
outline = "outline.geojson"
spacing = 20
clearance = 2
{domain}
[field]
kind = "gp-draw"
length_scales = {scales}
[cost]
kind = "boat"
stop_s = 20
"""


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "worlds" / "deep"
    folder.mkdir(parents=True)
    write_shapes(
        folder / "outline.geojson", [Shape("", shapely.transform(LAKE, lambda xy: xy + MIDDLE))], UTM
    )
    written(folder / "bathymetry.nc")
    return folder


def loaded(folder, domain):
    scales = "[80, 80, 3]" if "depths" in domain else "[80, 80]"
    (folder / "world.toml").write_text(WORLD.format(domain=domain, scales=scales))
    return fieldbo.load_world(folder)


def test_a_world_file_has_depths_above_the_bottom(folder):
    world = loaded(folder, 'depths = [1, 4, 8]\nbathymetry = "bathymetry.nc"\nbottom_clearance = 0.5')
    axis = world.domain.axes[2]
    assert (axis.name, axis.unit, axis.low, axis.high, axis.positive) == ("depth", "m", 0, 8, "down")
    bottom = (world.domain.sites[:, 0] - MIDDLE[0]) / 20.0
    assert (world.domain.sites[:, 2] <= bottom - 0.5 + 1e-6).all()
    assert world.domain.georeference.axes == (0, 1)


def test_a_world_file_without_depths_keeps_off_shallow_water(folder):
    every, deep = loaded(folder, ""), loaded(folder, 'bathymetry = "bathymetry.nc"\nleast_depth = 3')
    assert deep.domain.dimension == 2
    assert deep.domain.size < every.domain.size
    assert (deep.domain.sites[:, 0] - MIDDLE[0]).min() >= 60.0 - 1e-6


def test_check_says_how_deep_the_water_is_and_how_the_file_was_read(folder):
    text = "\n".join(describe_world(loaded(folder, 'depths = [1]\nbathymetry = "bathymetry.nc"')))
    assert re.search(
        r"bottom    [12] to 1[45] m deep; bathymetry.nc: depths \(called depth\), in WGS 84", text
    )


@pytest.mark.parametrize(
    ("domain", "problem"),
    [
        ("bottom_clearance = 1\ndepths = [1]", "bottom_clearance without a bathymetry"),
        ("least_depth = 1", "least_depth without a bathymetry"),
        ('bottom_clearance = 1\nbathymetry = "bathymetry.nc"', "bottom_clearance without depths"),
        ("depths = [4, 1]", "depths = "),
        ("depths = []", "depths"),
        ("depths = [-1, 2]", "depths"),
        ('depths = [1]\nbathymetry = "other.nc"', "there is no file other.nc"),
        ('depths = [1]\nbathymetry = "../x.nc"', "outside the folder"),
        ('least_depth = 50\nbathymetry = "bathymetry.nc"', "less than least_depth"),
    ],
)
def test_keys_that_do_not_fit_together_are_an_error_that_names_them(folder, domain, problem):
    with pytest.raises(InputError) as error:
        loaded(folder, domain)
    assert problem in str(error.value)
    assert "world.toml: domain" in error.value.where

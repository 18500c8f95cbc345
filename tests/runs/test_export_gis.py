"""Exports for a GIS, read back by GDAL, PROJ and an XML parser, lie where the run was and hold its values."""

import json
import re
import sqlite3
import sys
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree as ET

import numpy as np
import pyogrio
import pytest
import rasterio
import shapely
import xarray
from hypothesis import given, settings
from hypothesis import strategies as st
from pyogrio.raw import read
from pyproj import CRS, Geod, Transformer
from tiers import examples, swept
from working_folder import write

import fieldbo
from fieldbo.agent.agent import Agent
from fieldbo.domain.frame import Frame, Origin
from fieldbo.errors import InputError
from fieldbo.messages import Observation, Telemetry
from fieldbo.results.metrics import SURE
from fieldbo.runs.export import FORMATS, export, raster, read_run, vector
from fieldbo.runs.export.tracks import track
from fieldbo.runs.export.vector import added, encoded
from fieldbo.runs.folder import begin
from fieldbo.runs.runner import run
from fieldbo.tables.opening import open_table
from fieldbo.vehicles.base import Simulated

CENTIMETRE = 0.01
DRIFT = np.array([3.0, -2.0])
ISLAND, REEDS = shapely.Point(60, 20).buffer(25), shapely.box(-100, -50, -60, 0)  # metres from the middle
LAKE = shapely.difference(shapely.transform(shapely.Point(0, 0).buffer(150), lambda p: p * [1.5, 1]), ISLAND)
UTM, SWISS = "EPSG:32632", "EPSG:2056"
MIDDLES = {UTM: (463_000.0, 5_239_500.0), SWISS: (2_683_000.0, 1_243_000.0)}
WGS84_ELLIPSOID = Geod(ellps="WGS84")
HEAD = """format = 1
version = "1"
title = "A lake & its <shores>"
cost_unit = "s"
{start}
[value]
name = "chlorophyll"
unit = "mg m-3"
[domain]
{domain}
[field]
kind = "gp-draw"
length_scales = {scales}
[cost]
kind = "euclidean"
sampling = 3
[sensor]
noise_sd = 0.05
"""
LEVEL_SET = """kind = "level-set"
threshold = 0.3"""
GPX = {"g": "http://www.topografix.com/GPX/1/1"}
KML = {"k": "http://www.opengis.net/kml/2.2"}


class Streaming(Simulated):
    """A boat that reports its position half a second before each result."""

    def events(self, timeout_s):
        for event in super().events(timeout_s):
            if isinstance(event, Observation) and len(event.values):
                yield Telemetry(0, event.position, None, float(event.times_s[0]) - 0.5)
            yield event


def outline(file, shape, crs):
    def to_degrees(points):
        return np.stack(
            Transformer.from_crs(crs, 4326, always_xy=True).transform(*(points + middle).T), axis=1
        )

    middle = np.array(MIDDLES[crs])
    geometry = json.loads(shapely.to_geojson(shapely.transform(shape, to_degrees)))
    feature = {"type": "Feature", "properties": {"name": "reeds"}, "geometry": geometry}
    write(file, json.dumps({"type": "FeatureCollection", "features": [feature]}))


def lattice_of(crs, pattern, clearance=0.0):
    return f"""kind = "lattice"
crs = "{crs}"
outline = "outline.geojson"
avoid = "avoid.geojson"
spacing = 12
pattern = "{pattern}"
clearance = {clearance}"""


def mission_in(
    folder, domain, question=LEVEL_SET, scales=(60, 60), crs=None, start="", agent="battery = 1500"
):
    """Write a world and a mission, and load it."""
    world = HEAD.format(start=start, domain=domain, scales=list(scales))
    write(folder / "lake" / "world.toml", world)
    if crs is not None:
        outline(folder / "lake" / "outline.geojson", LAKE, crs)
        outline(folder / "lake" / "avoid.geojson", REEDS, crs)
    policy = "ei" if "optimum" in question else "straddle"
    write(
        folder / "survey.toml",
        f"""format = 1
title = "survey"
world = "lake"
[question]
{question}
[agent]
{agent}
[policy]
kind = "{policy}"
[model]
kernel = "matern52"
learn = false
length_scales = {list(scales)}
variance = 1
mean = 0
""",
    )
    return fieldbo.load_mission(folder / "survey.toml")


def finished(folder, *args, vehicle=Simulated, frame=None, **kwargs):
    """Run a mission, and return its folder."""
    loaded = mission_in(folder, *args, **kwargs)
    vehicles = [] if frame is None else [{"link": {}, "frame": frame}]
    place, record = begin(loaded, folder / "survey-1", vehicles)
    with record:
        run(loaded, [vehicle(loaded)], record)
    return place


@pytest.fixture(scope="module")
def square(tmp_path_factory):
    return finished(
        tmp_path_factory.mktemp("square"),
        lattice_of(UTM, "square"),
        crs=UTM,
        vehicle=Streaming,
        agent="battery = 1500\nhome = { latitude = 47.30810, longitude = 8.51040 }",
    )


@pytest.fixture(scope="module")
def hexagonal(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hexagonal")
    return finished(folder, lattice_of(SWISS, "hexagonal", 4.0), crs=SWISS)


@pytest.fixture(scope="module")
def optimum(tmp_path_factory):
    folder, question = tmp_path_factory.mktemp("optimum"), 'kind = "optimum"'
    return finished(folder, lattice_of(UTM, "square"), question, crs=UTM, agent="battery = 800")


BAY = """kind = "grid"
axes = [
    { name = "x", unit = "m", low = 0, high = 200, count = 21 },
    { name = "y", unit = "m", low = -20, high = 80, count = 11 },
]
obstacles = [{ name = "pier", low = [45, 15], high = [105, 35] }]"""
PIER = (75.0, 25.0)
ORIGIN = {"latitude": 47.31, "longitude": 8.58}


@pytest.fixture(scope="module")
def bay(tmp_path_factory):
    """A world without a CRS, whose vehicle has a frame."""
    frame = {"origin": ORIGIN, "bearing": 30.0, "along": "x", "right": "y"}
    folder = tmp_path_factory.mktemp("bay")
    return finished(folder, BAY, start="start = [0, 0]", frame=frame, agent="battery = 600")


RUNS = ["square", "hexagonal", "optimum", "bay"]


@pytest.fixture(params=RUNS)
def any_run(request):
    return request.getfixturevalue(request.param)


def domain_of(recorded):
    return recorded.mission.world.domain


def degrees_of(recorded, sites):
    """Longitude and latitude (k, 2) of sites, by PROJ: from the CRS, or along geodesics from the origin."""
    domain, sites = domain_of(recorded), np.atleast_2d(sites)
    if domain.crs is not None:
        return np.stack(
            Transformer.from_crs(domain.crs, 4326, always_xy=True).transform(*sites.T[:2]), axis=1
        )
    east, north = recorded.frame.over(domain.axes).towards[:2] @ sites.T
    bearing, distance = np.degrees(np.arctan2(east, north)), np.hypot(east, north)
    count = len(sites)
    origin = recorded.frame.origin
    there = WGS84_ELLIPSOID.fwd([origin.longitude] * count, [origin.latitude] * count, bearing, distance)
    return np.stack(there[:2], axis=1)


def metres_apart(a, b):
    """Distances (k,) in metres between places (k, 2) of longitude and latitude."""
    a, b = np.atleast_2d(a)[:, :2], np.atleast_2d(b)[:, :2]
    return np.asarray(WGS84_ELLIPSOID.inv(*a.T, *b.T)[2])


def pixels_of(file, degrees):
    """Rows and columns (k,) of places in a raster; the first pixel runs from 0 to 1."""
    x, y = Transformer.from_crs(4326, file.crs.to_wkt(), always_xy=True).transform(*degrees.T)
    return rasterio.transform.rowcol(file.transform, x, y, op=lambda number: number)


def to_degrees(crs, points):
    return np.stack(
        Transformer.from_crs(crs, 4326, always_xy=True).transform(*np.atleast_2d(points).T), axis=1
    )


def region_of(domain):
    return shapely.box(*domain.low, *domain.high) if domain.region is None else domain.region


def features_of(file):
    """Features of a GeoJSON file: geometries, and properties."""
    whole = json.loads(file.read_text(encoding="utf-8"))
    assert set(whole) == {"type", "features"}
    return [(shapely.geometry.shape(f["geometry"]), f["properties"]) for f in whole["features"]]


def layer(file, name):
    """Geometries, properties and CRS of a layer, read by GDAL."""
    meta, _, geometry, columns = read(file, layer=name)
    names = meta["fields"].tolist()
    rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    return shapely.from_wkb(geometry), rows or [{} for _ in geometry], meta["crs"]


# -- GeoTIFF ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["square", "optimum", "bay"])
def test_pixels_of_a_geotiff_are_centred_on_the_sites_and_hold_their_values(name, request, tmp_path):
    recorded = read_run(request.getfixturevalue(name))
    export(recorded.folder, ["geotiff"], tmp_path)

    domain, maps = domain_of(recorded), recorded.result.maps()
    order = [axis.name for axis in domain.axes]
    with rasterio.open(tmp_path / "map.tif") as file:
        bands, names, nodata = file.read(), file.descriptions, file.nodata
        rows, columns = pixels_of(file, degrees_of(recorded, domain.sites))
        size = np.sqrt(abs(file.transform.determinant))
        units = file.units
    assert np.isnan(nodata)
    assert names == tuple(n for n in maps.data_vars if n != "class")
    assert units == ("mg m-3", "mg m-3", "1")
    assert size == pytest.approx(domain.spacing[0], rel=1e-12)
    np.testing.assert_allclose([columns % 1, rows % 1], 0.5, atol=CENTIMETRE / size)
    at = rows.astype(int), columns.astype(int)
    for band, layer_name in zip(bands, names, strict=True):
        values = maps[layer_name].transpose(*order).values.ravel()[domain.grid_index]
        np.testing.assert_array_equal(band[at], values)
        assert np.isfinite(band).sum() == domain.size


@pytest.mark.parametrize(("name", "crs"), [("square", UTM), ("hexagonal", SWISS)])
def test_a_geotiff_is_north_up_in_the_crs_of_the_world(name, crs, request, tmp_path):
    export(request.getfixturevalue(name), ["geotiff"], tmp_path)

    for file in ("map.tif", "class.tif"):
        with rasterio.open(tmp_path / file) as raster:
            assert CRS.from_wkt(raster.crs.to_wkt()) == CRS.from_user_input(crs)
            a, b, _, d, e, _ = raster.transform[:6]
            assert (a, b, d, e) == (12.0, 0.0, 0.0, -12.0)
            assert raster.tags()["threshold"] == "0.3"
            assert raster.tags()["run"] == "survey-1"


def test_the_classes_of_a_geotiff_have_names_and_few_entries_in_a_legend(square, tmp_path):
    export(square, ["geotiff"], tmp_path)

    names = ["below", "above", "not inspected"]
    assert (tmp_path / "class.tif.aux.xml").read_text().startswith("<PAMDataset>"), "GDAL does not read it"
    band = ET.parse(tmp_path / "class.tif.aux.xml").getroot().find("PAMRasterBand[@band='1']")
    assert [name.text for name in band.findall("CategoryNames/Category")] == names
    rows = band.findall("GDALRasterAttributeTable/Row")
    assert [[cell.text for cell in row] for row in rows] == [[str(k), name] for k, name in enumerate(names)]
    palette = (
        ET.parse(tmp_path / "class.qml").getroot().findall(".//rasterrenderer/colorPalette/paletteEntry")
    )
    assert [(entry.get("value"), entry.get("label")) for entry in palette] == [
        (str(k), name) for k, name in enumerate(names)
    ]
    with rasterio.open(tmp_path / "class.tif") as file:
        colours = file.colormap(1)
    assert [entry.get("color") for entry in palette] == [f"#{bytes(colours[k][:3]).hex()}" for k in range(3)]


def test_the_classes_of_a_geotiff_are_those_of_the_maps_and_have_colours(square, tmp_path):
    recorded = read_run(square)
    export(square, ["geotiff"], tmp_path)

    with rasterio.open(tmp_path / "class.tif") as file:
        image, colours = file.read(1), file.colormap(1)
        assert (file.dtypes, file.nodata, file.colorinterp[0].name) == (("uint8",), 255.0, "palette")
        assert file.tags(1)["flag_meanings"] == "below above not_inspected"
    classes = recorded.result.maps()["class"].values[::-1].astype(int)
    np.testing.assert_array_equal(image, np.where(classes < 0, 255, classes))
    assert len({colours[value] for value in (0, 1, 2, 255)}) == 4
    assert colours[255][3] == 0


def test_a_hexagonal_lattice_becomes_a_raster_of_the_belief_at_its_spacing(hexagonal, tmp_path):
    recorded = read_run(hexagonal)
    export(hexagonal, ["geotiff"], tmp_path)

    result, domain = recorded.result, domain_of(recorded)
    with rasterio.open(tmp_path / "map.tif") as file:
        mean, sd, exceedance = file.read()
        rows, columns = np.indices(file.shape)
        x, y = rasterio.transform.xy(file.transform, rows.ravel(), columns.ravel())
    inside = domain.contains(np.stack([x, y], axis=1))
    np.testing.assert_array_equal(np.isfinite(mean).ravel(), inside)
    nodes = np.stack([x, y], axis=1)[inside]
    belief, scale = result.surface.belief, result.scale
    expected = scale.moments(belief.mean(nodes), belief.variance(nodes))
    np.testing.assert_allclose(mean.ravel()[inside], expected[0], atol=1e-9)
    np.testing.assert_allclose(sd.ravel()[inside], expected[1], atol=1e-6)
    with rasterio.open(tmp_path / "class.tif") as file:
        classes = file.read(1)
    known = inside & (classes.ravel() != 2)
    assert known.sum() > inside.sum() / 3
    np.testing.assert_array_equal(classes.ravel()[known], mean.ravel()[known] >= 0.3)
    np.testing.assert_array_equal(exceedance.ravel()[known] >= 0.5, classes.ravel()[known] == 1)
    # The values at the nodes are those of the sites around them.
    nearest = [domain.nearest(node) for node in nodes]
    close = np.linalg.norm(domain.sites[nearest] - nodes, axis=1) < 3.0
    assert close.sum() > 20
    own = result.maps()["mean"].values[nearest][close]
    assert np.abs(mean.ravel()[inside][close] - own).max() < 0.3


LAYOUTS = [{"along": "x", "left": "y"}, {"along": "x", "right": "y"}, {"along": "y", "left": "x"}]


@settings(max_examples=examples(25), deadline=None)
@given(
    layout=st.sampled_from(LAYOUTS),
    bearing=st.one_of(st.sampled_from([0.0, 45.0, 90.0, 180.0, 270.0]), st.floats(0, 360)),
    latitude=st.floats(-80, 80),
    zero=st.floats(-500, 500),
)
def test_pixels_lie_on_their_sites_for_any_frame(placed_bay, layout, bearing, latitude, zero):
    frame = Frame(Origin(latitude, 8.58), bearing, **layout)
    recorded = placed_bay(frame)
    domain = domain_of(recorded)

    content = raster.encode_geotiff(recorded)["map.tif"]

    with rasterio.MemoryFile(content) as memory, memory.open() as file:
        mean = file.read(1)
        rows, columns = pixels_of(file, degrees_of(recorded, domain.sites))
        if bearing % 90 == 0:
            a, b, _, d, e, _ = file.transform[:6]
            assert a > 0 > e
            assert b == d == 0
    np.testing.assert_allclose([columns % 1, rows % 1], 0.5, atol=CENTIMETRE / 10)
    values = recorded.result.maps()["mean"].values.ravel()[domain.grid_index]
    np.testing.assert_array_equal(mean[rows.astype(int), columns.astype(int)], values)


@pytest.fixture(scope="module")
def placed_bay(bay):
    """Returns the run in the bay with another frame, without replaying it."""
    recorded = read_run(bay)
    result = recorded.result

    def placed(frame):
        other = replace(recorded, frame=frame)
        other.__dict__["result"] = result
        return other

    return placed


# -- contours and classes --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["square", "hexagonal", "bay"])
def test_the_areas_of_the_classes_cover_the_domain_and_no_obstacle(name, request, tmp_path):
    recorded = read_run(request.getfixturevalue(name))
    export(recorded.folder, ["contours"], tmp_path)
    domain, classes = domain_of(recorded), features_of(tmp_path / "classes.geojson")

    region, shapes = region_of(domain), [shape for shape, _ in classes]
    assert all(shape.is_valid and shape.geom_type == "MultiPolygon" for shape in shapes)
    assert sum(said["area_m2"] for _, said in classes) == pytest.approx(region.area, rel=1e-5)
    for shape, said in classes:
        own = -WGS84_ELLIPSOID.geometry_area_perimeter(shapely.orient_polygons(shape, exterior_cw=True))[0]
        assert own == pytest.approx(said["area_m2"], rel=2e-3)  # metres of the projection are not true ones
        assert said["quantity"] == "chlorophyll"
        assert (said["unit"], said["threshold"], said["run"]) == ("mg m-3", 0.3, "survey-1")
        assert "0.3 mg m-3" in said["meaning"]
        assert "%" in said["probability"] or said["class"] == "not inspected"
    for k, shape in enumerate(shapes):
        for other in shapes[k + 1 :]:
            assert shapely.intersection(shape, other).area < 1e-7 * shape.area
    middles = [shapely.get_coordinates(shape.centroid)[0] for shape in (REEDS, ISLAND)]
    dry = [PIER] if domain.crs is None else np.array(middles) + MIDDLES[domain.crs]
    whole = shapely.union_all(shapes, grid_size=1e-9)
    for place in degrees_of(recorded, dry):
        assert not shapely.contains_xy(whole, *place)
        assert shapely.contains_xy(shapely.convex_hull(whole), *place)


@pytest.mark.parametrize("name", ["square", "hexagonal", "bay"])
def test_polygons_run_as_rfc_7946_asks(name, request, tmp_path):
    export(request.getfixturevalue(name), ["contours"], tmp_path)

    for shape, _ in features_of(tmp_path / "classes.geojson"):
        for part in shape.geoms:
            assert part.exterior.is_ccw
            assert not any(ring.is_ccw for ring in part.interiors)
            assert not part.has_z


@pytest.mark.parametrize("name", ["square", "hexagonal", "bay"])
def test_each_site_lies_in_the_area_of_its_class(name, request, tmp_path):
    recorded = read_run(request.getfixturevalue(name))
    export(recorded.folder, ["contours"], tmp_path)

    answer = recorded.result.answer
    likely = np.abs(answer.surface.mean - answer.threshold) <= SURE * answer.surface.sd
    of = np.where(answer.above, np.where(likely, 2, 3), np.where(likely, 1, 0))
    of[answer.not_inspected] = 4
    areas = {said["class"]: shape for shape, said in features_of(tmp_path / "classes.geojson")}
    places = shapely.points(degrees_of(recorded, domain_of(recorded).sites))
    for number, name_of_class in enumerate(
        ["below", "likely below", "likely above", "above", "not inspected"]
    ):
        own = places[of == number]
        if len(own):
            gaps = shapely.distance(areas[name_of_class], own)
            assert gaps.max() * 111_000 < CENTIMETRE


def test_contour_lines_lie_where_the_posterior_mean_has_their_level(any_run, tmp_path):
    recorded = read_run(any_run)
    export(any_run, ["contours"], tmp_path)

    domain, result = domain_of(recorded), recorded.result
    lines = features_of(tmp_path / "contours.geojson")
    levels = [said["level"] for _, said in lines]
    assert levels == sorted(levels)
    assert len(levels) > 2
    region = shapely.buffer(region_of(domain), CENTIMETRE)
    for shape, said in lines:
        assert shape.geom_type == "MultiLineString"
        geodetic = np.column_stack([shapely.get_coordinates(shape)[:, ::-1], np.zeros(shape_size(shape))])
        points = recorded.ground.from_geodetic(geodetic)
        assert shapely.covers(region, shapely.points(points)).all()
        mean = result.scale.to_user(result.surface.belief.mean(points))
        np.testing.assert_allclose(mean, said["level"], atol=0.02)
        assert f"{said['level']:.4g}" in said["meaning"]
    assert all(len(str(level)) < 6 for level in levels), "levels are not round"
    thresholds = [said["level"] for _, said in lines if said["is_threshold"]]
    assert thresholds == ([] if recorded.mission.question.level(0) != 0.3 else [0.3])


def shape_size(shape):
    return len(shapely.get_coordinates(shape))


def test_an_optimum_has_contours_and_a_point_but_no_classes(optimum, tmp_path):
    recorded = read_run(optimum)
    files = export(optimum, ["contours", "geotiff", "gpkg", "gpx", "kml"], tmp_path)

    names = {file.name for file in files}
    assert names == {"contours.geojson", "optimum.geojson", "map.tif", "run.gpkg", "path.gpx", "run.kml"}
    ((point, said),) = features_of(tmp_path / "optimum.geojson")
    reported = recorded.result.answer.reported.point
    assert metres_apart(shapely.get_coordinates(point), degrees_of(recorded, reported)) < CENTIMETRE
    assert said["value"] == recorded.result.answer.reported_value
    assert said["low90"] <= said["value"] <= said["high90"]
    assert "largest" in said["meaning"]


def test_classes_and_contours_of_a_share_of_the_maximum_have_its_threshold(tmp_path):
    question = 'kind = "level-set"\nthreshold = { of_maximum = 0.5 }'
    domain = BAY.replace('kind = "grid"', 'kind = "grid"\ncrs = "EPSG:32632"').replace('"x"', '"east"')
    folder = finished(tmp_path, domain.replace('"y"', '"north"'), question, agent="battery = 600")

    export(folder, ["contours", "geotiff"], tmp_path / "out")

    threshold = read_run(folder).result.answer.user_threshold
    assert threshold > 0
    assert {said["threshold"] for _, said in features_of(tmp_path / "out" / "classes.geojson")} == {threshold}
    lines = features_of(tmp_path / "out" / "contours.geojson")
    assert [said["level"] for _, said in lines if said["is_threshold"]] == [threshold]
    with rasterio.open(tmp_path / "out" / "map.tif") as file:
        assert float(file.tags()["threshold"]) == threshold


def test_straight_edges_stay_straight_in_degrees(tmp_path):
    """The middle of a long edge, straight in metres, bends by decimetres in degrees."""
    domain = """kind = "grid"
crs = "EPSG:32632"
axes = [
    { name = "east", unit = "m", low = 300000, high = 310000, count = 11 },
    { name = "north", unit = "m", low = 7000000, high = 7004000, count = 5 },
]"""
    folder = finished(tmp_path, domain, scales=(3000, 3000), agent="battery = 20000")

    export(folder, ["contours"], tmp_path / "out")

    inwards = Transformer.from_crs(4326, UTM, always_xy=True)
    edges = [
        shapely.segmentize(ring, 1e-5)
        for shape, _ in features_of(tmp_path / "out" / "classes.geojson")
        for ring in shapely.get_parts(shapely.boundary(shape))
    ]
    x, y = inwards.transform(*np.concatenate([shapely.get_coordinates(e) for e in edges]).T)
    off = np.minimum(np.minimum(x - 3e5, 3.1e5 - x), np.minimum(y - 7e6, 7.004e6 - y))
    assert off.min() > -CENTIMETRE
    assert (np.abs(off) < CENTIMETRE).sum() > 1000


# -- GeoPackage ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("any_run", swept(RUNS, ["square", "optimum"]), indirect=True)
def test_a_geopackage_holds_the_layers_of_the_other_formats_in_the_crs_of_the_world(any_run, tmp_path):
    recorded = read_run(any_run)
    export(any_run, ["gpkg", "contours", "geojson"], tmp_path)

    names = {file.stem for file in tmp_path.glob("*.geojson")}
    assert {str(name) for name, _ in pyogrio.list_layers(tmp_path / "run.gpkg")} == names
    for name in names:
        shapes, rows, crs = layer(tmp_path / "run.gpkg", name)
        expected = features_of(tmp_path / f"{name}.geojson")
        assert len(shapes) == len(expected)
        if recorded.mission.world.domain.crs is not None:
            assert CRS.from_user_input(crs) == CRS.from_user_input(recorded.mission.world.domain.crs)
        for shape, row, (other, said) in zip(shapes, rows, expected, strict=True):
            assert shape.is_valid or shape.length == 0  # a route to where the vehicle is
            assert shape.geom_type == other.geom_type
            points, there = to_degrees(crs, shapely.get_coordinates(shape)), shapely.get_coordinates(other)
            if "Polygon" not in shape.geom_type:  # those may begin elsewhere
                assert metres_apart(points, there).max() < CENTIMETRE
            assert {k: v for k, v in row.items() if isinstance(v, str)} == {
                k: v for k, v in said.items() if isinstance(v, str) and k != "time"
            }
            for key, value in said.items():
                if isinstance(value, float):
                    assert row[key] == value
        if name == "readings":
            when = np.array([datetime.fromisoformat(said["time"]) for _, said in expected])
            seconds = [row["time"].astype("datetime64[ms]").astype(int) / 1000 for row in rows]
            np.testing.assert_allclose(seconds, [time.timestamp() for time in when], atol=1e-3)


def test_a_geopackage_is_of_a_version_that_older_programs_know_and_has_times_in_utc(bay, tmp_path):
    export(bay, ["gpkg"], tmp_path)

    with closing(sqlite3.connect(tmp_path / "run.gpkg")) as file:
        assert file.execute("PRAGMA user_version").fetchone() == (10200,)
        times = [time for (time,) in file.execute("SELECT time FROM readings")]
    assert times
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", time) for time in times)


def test_the_local_crs_of_a_frame_is_metric_and_lies_at_the_origin(bay, tmp_path):
    export(bay, ["gpkg"], tmp_path)

    _, _, crs = layer(tmp_path / "run.gpkg", "map")
    origin = to_degrees(crs, [[0.0, 0.0]])
    assert metres_apart(origin, [ORIGIN["longitude"], ORIGIN["latitude"]]) < 1e-6
    assert {axis.unit_name for axis in CRS.from_user_input(crs).axis_info} == {"metre"}


def test_columns_that_differ_only_in_case_get_other_names():
    assert vector._distinct(["value", "Value", "VALUE", "fid", "x"]) == [
        "value",
        "Value_2",
        "VALUE_3",
        "fid_2",
        "x",
    ]


# -- GPX and KML -----------------------------------------------------------------------------------------

ORDER_OF = {
    "gpx": ["metadata", "wpt", "rte", "trk"],
    "metadata": ["name", "desc", "time"],
    "wpt": ["ele", "time", "name", "desc", "type"],
    "rtept": ["ele", "time", "name", "desc", "type"],
    "trkpt": ["ele", "time", "name", "desc", "type"],
    "rte": ["name", "desc", "rtept"],
    "trk": ["name", "desc", "trkseg"],
    "trkseg": ["trkpt"],
}
"""The elements of GPX 1.1 that are used, in the order that its schema prescribes."""


def check_gpx(root):
    assert root.tag == f"{{{GPX['g']}}}gpx"
    assert root.get("version") == "1.1"
    assert root.get("creator")
    for element in root.iter():
        name = element.tag.removeprefix(f"{{{GPX['g']}}}")
        order = [ORDER_OF[name].index(child.tag.removeprefix(f"{{{GPX['g']}}}")) for child in element]
        assert order == sorted(order)
        if name in ("wpt", "rtept", "trkpt"):
            assert -90 <= float(element.get("lat")) <= 90
            assert -180 <= float(element.get("lon")) < 180
            assert "e" not in element.get("lat") + element.get("lon")
        if name == "time":
            assert datetime.fromisoformat(element.text).tzinfo == UTC
            assert element.text.endswith("Z")


def places(elements):
    return np.array([[float(e.get("lon")), float(e.get("lat"))] for e in elements])


def times(elements):
    found = [e.findtext("g:time", None, GPX) for e in elements]
    return [None if text is None else datetime.fromisoformat(text) for text in found]


def test_a_gpx_file_is_valid_and_readable_by_gdal(any_run, tmp_path):
    export(any_run, ["gpx"], tmp_path)

    check_gpx(ET.parse(tmp_path / "path.gpx").getroot())
    layers = {str(name) for name, _ in pyogrio.list_layers(tmp_path / "path.gpx")}
    assert {"waypoints", "routes", "tracks"} <= layers
    (shape,), _, _ = layer(tmp_path / "path.gpx", "tracks")
    assert shape.length > 0


def test_waypoints_are_the_readings_with_value_and_time_and_start_and_home(square, tmp_path):
    recorded = read_run(square)
    export(square, ["gpx"], tmp_path)
    result, root = recorded.result, ET.parse(tmp_path / "path.gpx").getroot()

    points = {kind: [] for kind in ("start", "home", "reading")}
    for point in root.findall("g:wpt", GPX):
        points[point.findtext("g:type", None, GPX)].append(point)
    (spec,) = recorded.mission.vehicles
    for kind, site in (("start", spec.start), ("home", spec.home)):
        assert metres_apart(places(points[kind]), degrees_of(recorded, site)) < CENTIMETRE
    expected = degrees_of(recorded, result.sites)
    assert metres_apart(places(points["reading"]), expected).max() < CENTIMETRE
    names = [point.findtext("g:name", None, GPX) for point in points["reading"]]
    assert names == [f"{value:.4g} mg m-3" for value in result.values]
    seconds = np.concatenate([o.times_s for o in result.observations])
    for when, at in zip(times(points["reading"]), seconds, strict=True):
        assert abs(when - recorded.began - timedelta(seconds=at)) <= timedelta(milliseconds=1)


def test_the_track_is_where_the_vehicle_was_in_the_order_of_time(any_run, tmp_path):
    recorded = read_run(any_run)
    export(any_run, ["gpx"], tmp_path)
    root = ET.parse(tmp_path / "path.gpx").getroot()

    points = root.findall(".//g:trkpt", GPX)
    known = times(points)
    assert None not in known, "gpsbabel and gpxpy drop points without a time"
    assert known == sorted(known)
    assert known[0] == recorded.began.astimezone(UTC).replace(microsecond=known[0].microsecond)
    there = places(points)
    driven = degrees_of(recorded, recorded.result.path)
    for place in driven[:: max(1, len(driven) // 40)]:
        assert metres_apart(there, np.broadcast_to(place, there.shape)).min() < CENTIMETRE
    line, path = shapely.LineString(there), shapely.LineString(driven)
    assert shapely.hausdorff_distance(line, path) * 111_000 < CENTIMETRE


def test_a_vehicle_passes_the_bends_of_its_route_at_one_speed_after_it_left(bay, tmp_path):
    recorded = read_run(bay)
    export(bay, ["gpx"], tmp_path)
    points = ET.parse(tmp_path / "path.gpx").getroot().findall(".//g:trkpt", GPX)

    known = {site.tobytes() for site, seconds in track(recorded, 0) if seconds is not None}
    bends = [k for k, (site, _) in enumerate(track(recorded, 0)) if site.tobytes() not in known]
    there, when = places(points), [time.timestamp() for time in times(points)]
    assert bends, "no route bends"
    for k in bends:
        before, after = metres_apart(there[k], there[k - 1])[0], metres_apart(there[k + 1], there[k])[0]
        speeds = before / (when[k] - when[k - 1]), after / (when[k + 1] - when[k])
        assert speeds[0] == pytest.approx(speeds[1], rel=1e-3)


def test_positions_reported_on_the_way_are_on_the_track(tmp_path):
    class Drifting(Simulated):
        def events(self, timeout_s):
            for event in super().events(timeout_s):
                if isinstance(event, Observation) and event.order.endswith("/2"):
                    yield Telemetry(0, event.position + DRIFT, None, 11.0, located_s=10.5)
                yield event

    mission = mission_in(tmp_path, BAY, start="start = [0, 0]", agent="battery = 300")
    frame = {"origin": ORIGIN, "along": "x", "left": "y"}
    folder, record = begin(mission, tmp_path / "run", [{"frame": frame}])
    with record:
        run(mission, [Drifting(mission)], record)

    recorded = read_run(folder)

    (second,) = [o for o in recorded.result.observations if o.order.endswith("/2")]
    on_track = [site.tolist() for site, _ in track(recorded, 0)]
    reported = (second.position + DRIFT).tolist()
    assert reported in on_track
    assert on_track.index(reported) + 1 == on_track.index(second.position.tolist())


def test_the_route_passes_the_sites_of_the_orders_as_planned(any_run, tmp_path):
    recorded = read_run(any_run)
    export(any_run, ["gpx"], tmp_path)
    (line,) = ET.parse(tmp_path / "path.gpx").getroot().findall("g:rte", GPX)

    points = line.findall("g:rtept", GPX)
    named = {
        point.findtext("g:name", "", GPX): place for point, place in zip(points, places(points), strict=True)
    }
    for query in recorded.result.queries:
        assert metres_apart(named[query.id], degrees_of(recorded, query.site)) < CENTIMETRE
    shape = shapely.LineString(places(points))
    domain = domain_of(recorded)
    inside = shapely.transform(
        shape,
        lambda p: recorded.ground.from_geodetic(np.column_stack([p[:, ::-1], np.zeros(len(p))]))[:, :2],
    )
    assert shapely.difference(inside, shapely.buffer(region_of(domain), 0.05)).length < 0.1


def test_a_kml_file_has_coloured_classes_and_places_by_name(square, tmp_path):
    recorded = read_run(square)
    export(square, ["kml", "contours"], tmp_path)
    root = ET.parse(tmp_path / "run.kml").getroot()

    assert [f.findtext("k:name", None, KML) for f in root.findall(".//k:Folder", KML)] == [
        "classes",
        "contours",
        "routes",
        "path",
        "places",
    ]
    styles = {f"#{style.get('id')}": style for style in root.findall(".//k:Style", KML)}
    used = [url.text for url in root.findall(".//k:styleUrl", KML)]
    assert set(used) <= set(styles)
    colours = [styles[url].findtext(".//k:PolyStyle/k:color", None, KML) for url in used if "class" in url]
    assert len(set(colours)) == len(colours) > 2
    assert all(len(colour) == 8 for colour in colours)

    shapes, rows, _ = layer(tmp_path / "run.kml", "classes")
    expected = {said["class"]: (shape, said) for shape, said in features_of(tmp_path / "classes.geojson")}
    for shape, row in zip(shapes, rows, strict=True):
        other, said = expected[row["Name"]]
        assert shape.is_valid
        assert shapely.equals_exact(
            shapely.normalize(shapely.force_2d(shape)), shapely.normalize(other), 1e-8
        )
        assert said["meaning"] in row["description" if "description" in row else "Description"]
    shapes, rows, _ = layer(tmp_path / "run.kml", "places")
    names = [row["Name"] for row in rows]
    assert names[:2] == ["start", "home"]
    assert names[2:] == [f"{value:.4g} mg m-3" for value in recorded.result.values]
    points = shapely.get_coordinates(shapes[2:])
    assert metres_apart(points, degrees_of(recorded, recorded.result.sites)).max() < CENTIMETRE


def test_numbers_in_a_kml_file_are_numbers(square, tmp_path):
    recorded = read_run(square)
    export(square, ["kml"], tmp_path)

    _, rows, _ = layer(tmp_path / "run.kml", "contours")
    (threshold,) = [row for row in rows if row["is_threshold"]]
    assert threshold["level"] == 0.3
    assert len(rows) > 1
    _, rows, _ = layer(tmp_path / "run.kml", "classes")
    assert all(isinstance(float(row["area_m2"]), float) and row["threshold"] == 0.3 for row in rows)
    root = ET.parse(tmp_path / "run.kml").getroot()
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    types = {
        (schema.get("name"), field.get("name")): field.get("type")
        for schema in root.findall(".//k:Schema", KML)
        for field in schema
    }
    assert types["contours", "level"] == types["places", "value"] == "double"
    assert (types["contours", "is_threshold"], types["routes", "vehicle"]) == ("bool", "int")
    values = root.findall(".//k:SimpleData[@name='value']", KML)
    np.testing.assert_array_equal([float(value.text) for value in values], recorded.result.values)


def test_a_vertical_section_has_a_path_but_no_map_of_the_ground(tmp_path):
    domain = """kind = "grid"
axes = [
    { name = "along", unit = "m", low = 0, high = 200, count = 11 },
    { name = "depth", unit = "m", low = 0, high = 10, count = 6 },
]"""
    frame = {"origin": ORIGIN | {"altitude": 406.0}, "along": "along", "depth": "depth"}
    folder = finished(tmp_path, domain, scales=(60, 3), start="start = [0, 0]", frame=frame)

    export(folder, ["gpx", "kml"], tmp_path / "out")
    for name in ("geotiff", "contours", "gpkg"):
        with pytest.raises(InputError, match=r"needs a map of the ground, and survey-1 has along, depth"):
            export(folder, [name])

    root = ET.parse(tmp_path / "out" / "path.gpx").getroot()
    check_gpx(root)
    heights = [float(e.text) for e in root.findall("g:wpt[g:type='reading']/g:ele", GPX)]
    np.testing.assert_allclose(heights, 406.0 - read_run(folder).result.sites[:, 1], atol=1e-4)
    folders = ET.parse(tmp_path / "out" / "run.kml").getroot().findall(".//k:Folder/k:name", KML)
    assert [folder.text for folder in folders] == ["routes", "path", "places"]


def test_text_that_xml_does_not_allow_is_replaced():
    root = ET.Element("gpx")
    added(root, "name", "a\x00b\ud800<&>", lat="\x07")

    (name,) = ET.fromstring(encoded(root))

    assert name.text == "a?b?<&>"
    assert name.get("lat") == "?"


# -- netCDF ----------------------------------------------------------------------------------------------


def test_the_netcdf_map_of_a_grid_opens_in_a_gis(square, tmp_path):
    recorded = read_run(square)
    export(square, ["netcdf"], tmp_path)

    with rasterio.open(f"netcdf:{tmp_path / 'map.nc'}:mean") as file:
        assert CRS.from_wkt(file.crs.to_wkt()) == CRS.from_user_input(UTM)
        assert file.transform.e == -12.0
        mean = file.read(1, masked=True).filled(np.nan)
    np.testing.assert_array_equal(mean, recorded.result.maps()["mean"].values[::-1])
    assert (square / "map.nc").exists() is False  # only `fieldbo run` writes it


@pytest.mark.parametrize(("name", "last"), [("square", "east north"), ("bay", "latitude longitude altitude")])
def test_gdal_can_make_points_of_a_trajectory_in_its_crs(name, last, request, tmp_path):
    """GDAL takes the last coordinates and the CRS of the first variable.

    The last are for GDAL 3.6 those that the variables name last, and for GDAL 3.10 those last in the file.
    """
    export(request.getfixturevalue(name), ["netcdf"], tmp_path)

    with xarray.open_dataset(tmp_path / "trajectory.nc", engine="scipy", decode_coords=False) as data:
        along = {name: variable for name, variable in data.variables.items() if variable.dims[:1] == ("obs",)}
        located = {name: v.attrs["coordinates"] for name, v in along.items() if "coordinates" in v.attrs}
        assert {"order", "value", "noise_sd", "cost", "time_s"} <= set(located)
        assert all(text.startswith("trajectory time ") and text.endswith(last) for text in located.values())
        assert all(along[name].attrs["grid_mapping"] == "crs" for name in located)
        assert " ".join(along).endswith(last)
        crs = CRS.from_cf(data["crs"].attrs)
    assert crs == CRS.from_user_input(UTM if name == "square" else 4326)


@pytest.mark.parametrize("file", ["trajectory.nc", "readings.geojson", "run.kml"])
def test_what_is_exported_is_read_as_a_table_of_the_same_readings(file, square, tmp_path):
    recorded = read_run(square)
    export(square, ["netcdf", "geojson", "kml"], tmp_path)

    table = open_table(tmp_path / file)

    kept = [bool(value) for value in table.cells["value"]]  # a KML file has places without a reading, too
    read = {
        name: [cell for cell, keep in zip(table.cells[name], kept, strict=True) if keep]
        for name in table.names
    }
    np.testing.assert_array_equal([float(cell) for cell in read["value"]], recorded.result.values)
    places = np.array([read["longitude"], read["latitude"]], dtype=float).T
    assert metres_apart(places, degrees_of(recorded, recorded.result.sites)).max() < CENTIMETRE
    seconds = np.concatenate([event.times_s for event in recorded.result.observations])
    for cell, after in zip(read["time"], seconds, strict=True):
        apart = datetime.fromisoformat(cell) - recorded.began - timedelta(seconds=float(after))
        assert abs(apart) <= timedelta(milliseconds=1)


def test_gdal_can_make_points_of_a_map_without_a_grid_in_its_crs(hexagonal, tmp_path):
    export(hexagonal, ["netcdf"], tmp_path)

    with xarray.open_dataset(tmp_path / "map.nc", engine="scipy", decode_coords=False) as data:
        along = [name for name, variable in data.variables.items() if variable.dims == ("site",)]
        assert data["mean"].attrs["coordinates"] == "latitude longitude east north"
    assert along[-4:] == ["latitude", "longitude", "east", "north"]


def test_gaps_in_netcdf_files_hold_a_number_that_all_programs_know(square, tmp_path):
    export(square, ["netcdf"], tmp_path)

    for file in ("map.nc", "trajectory.nc"):
        with xarray.open_dataset(tmp_path / file, engine="scipy", mask_and_scale=False) as data:
            assert not any(np.isnan(v).any() for v in data.variables.values() if v.dtype.kind == "f")
            assert not any(np.issubdtype(v.dtype, np.int8) for v in data.variables.values())
    with xarray.open_dataset(tmp_path / "map.nc", engine="scipy", mask_and_scale=False) as data:
        assert data["class"].attrs["flag_values"].dtype.itemsize == data["class"].dtype.itemsize == 2
        assert set(np.unique(data["class"])) <= {-1, 0, 1, 2}
        assert data["mean"].attrs["_FillValue"] == data["mean"].max() > 1e36


@pytest.mark.parametrize("name", ["square", "hexagonal"])
def test_netcdf_files_describe_the_crs_and_give_degrees(name, request, tmp_path):
    recorded = read_run(request.getfixturevalue(name))
    export(recorded.folder, ["netcdf"], tmp_path)

    for file, values in (("map.nc", "mean"), ("trajectory.nc", "value")):
        with xarray.open_dataset(tmp_path / file, engine="scipy", decode_coords="all") as data:
            data.load()
        assert data[values].encoding["grid_mapping"] == "crs"
        assert CRS.from_cf(data["crs"].attrs) == CRS.from_user_input(domain_of(recorded).crs)
        assert data["east"].attrs["standard_name"] == "projection_x_coordinate"
        assert data["north"].attrs["standard_name"] == "projection_y_coordinate"
        assert data["latitude"].attrs["units"] == "degrees_north"
        sites = np.stack(xarray.broadcast(data["east"], data["north"]), axis=-1).reshape(-1, 2)
        order = data["east"].dims + data["north"].dims if file == "map.nc" and name == "square" else (...,)
        degrees = [data[key].transpose(*order).values.ravel() for key in ("longitude", "latitude")]
        apart = metres_apart(np.stack(degrees, axis=1), degrees_of(recorded, sites))
        assert apart.max() < CENTIMETRE


def test_geojson_needs_no_frame_where_the_world_has_a_crs(hexagonal, tmp_path):
    recorded = read_run(hexagonal)
    export(hexagonal, ["geojson"], tmp_path)

    for name, sites in (("readings", recorded.result.sites), ("map", domain_of(recorded).sites)):
        points = np.concatenate(
            [shapely.get_coordinates(s) for s, _ in features_of(tmp_path / f"{name}.geojson")]
        )
        assert metres_apart(points, degrees_of(recorded, sites)).max() < CENTIMETRE


# -- when, and errors ------------------------------------------------------------------------------------

GIS = ["geotiff", "contours", "gpkg", "gpx", "kml"]


def test_a_run_without_readings_has_one_class_and_no_contours(tmp_path):
    mission = mission_in(tmp_path, lattice_of(UTM, "hexagonal"), crs=UTM)
    folder, record = begin(mission, tmp_path / "run")
    with record:
        record.order(Agent(mission, "run").ask())

    export(folder, [*GIS, "geojson", "netcdf"], tmp_path / "out")

    ((area, said),) = features_of(tmp_path / "out" / "classes.geojson")
    assert said["class"] == "not inspected"
    assert area.is_valid
    assert said["area_m2"] == pytest.approx(region_of(mission.world.domain).area, rel=1e-5)
    assert features_of(tmp_path / "out" / "contours.geojson") == []
    root = ET.parse(tmp_path / "out" / "path.gpx").getroot()
    check_gpx(root)
    assert len(root.findall(".//g:trkpt", GPX)) == 1
    layers = {str(name) for name, _ in pyogrio.list_layers(tmp_path / "out" / "run.gpkg")}
    assert layers == {"path", "routes", "readings", "map", "contours", "classes"}
    with rasterio.open(tmp_path / "out" / "map.tif") as file:
        assert np.nanmax(np.abs(file.read(1))) == 0


def test_a_run_in_progress_can_be_exported(tmp_path):
    mission = mission_in(tmp_path, lattice_of(UTM, "square"), crs=UTM)
    folder, record = begin(mission, tmp_path / "run")

    def look(step):
        if step.step == 3:
            export(folder, GIS, tmp_path / "live")

    with record:
        run(mission, [Simulated(mission)], record, look)

    shapes, _, _ = layer(tmp_path / "live" / "run.gpkg", "readings")
    assert len(shapes) == 3
    check_gpx(ET.parse(tmp_path / "live" / "path.gpx").getroot())
    assert sum(said["area_m2"] for _, said in features_of(tmp_path / "live" / "classes.geojson")) > 0


@pytest.mark.slow
def test_the_same_run_gives_the_same_bytes(square, tmp_path):
    for name in ("a", "b"):
        export(square, list(FORMATS), tmp_path / name)

    for file in (tmp_path / "a").iterdir():
        assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes(), file.name


@pytest.mark.parametrize("name", ["geotiff", "contours", "gpkg", "gpx", "kml"])
def test_a_world_without_a_crs_or_a_frame_is_an_error_that_says_what_is_missing(name, tmp_path):
    folder = finished(tmp_path, BAY, start="start = [0, 0]", agent="battery = 60")

    with pytest.raises(InputError, match=r"(?s)on the ground is unknown.*--frame.*\[frame\]"):
        export(folder, [name])
    assert not (folder / "export").exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["geotiff", "contours", "gpkg", "gpx", "kml"])
def test_a_factory_cell_is_an_error(name, tmp_path):
    loaded = fieldbo.load_mission("cell-airfoil", {"policy": {"kind": "etc"}, "agent": {"battery": 2}})
    folder, record = begin(loaded, tmp_path / "run")
    with record:
        run(loaded, [Simulated(loaded)], record)

    with pytest.raises(InputError, match=r"(?s)needs places.*export the run to csv, netcdf or mcap"):
        export(folder, [name])


@pytest.mark.parametrize(
    ("axes", "frame"),
    [
        ("{ name = 'x', unit = 'm', low = 0, high = 90, count = 10 }", {"along": "x"}),
        (
            "{ name = 'x', unit = 'm', low = 0, high = 90, count = 4 },"
            "{ name = 'y', unit = 'm', low = 0, high = 90, count = 4 },"
            "{ name = 'depth', unit = 'm', low = 0, high = 9, count = 3 }",
            {"along": "x", "left": "y", "depth": "depth"},
        ),
    ],
    ids=["line", "volume"],
)
def test_a_line_or_a_volume_has_a_path_but_no_map_of_the_ground(axes, frame, tmp_path):
    count = axes.count("name")
    folder = finished(
        tmp_path,
        f'kind = "grid"\naxes = [{axes}]',
        scales=(30,) * count,
        frame={"origin": ORIGIN, **frame},
        agent="battery = 200",
    )

    for name in ("geotiff", "contours", "gpkg"):
        with pytest.raises(InputError, match="two horizontal axes"):
            export(folder, [name])
    assert not (folder / "export").exists()
    assert len(export(folder, ["gpx", "kml", "geojson"])) == 6


def test_a_box_becomes_a_raster_and_areas(tmp_path):
    axes = "{ name = 'x', unit = 'm', low = 0, high = 100 }, { name = 'y', unit = 'm', low = 0, high = 70 }"
    obstacle = 'obstacles = [{ name = "pier", low = [45, 15], high = [60, 35] }]'
    folder = finished(
        tmp_path,
        f'kind = "box"\naxes = [{axes}]\n{obstacle}',
        frame={"origin": ORIGIN, "along": "x", "left": "y"},
        agent="battery = 300",
    )

    export(folder, GIS)

    with rasterio.open(folder / "export" / "map.tif") as file:
        mean = file.read(1)
        assert np.isnan(mean[file.index(50.0, 25.0)])
        width, height = file.width * file.transform.a, -file.height * file.transform.e
    assert np.isfinite(mean).mean() == pytest.approx(0.957, abs=0.01)
    assert (width, height) == (pytest.approx(100, rel=0.02), pytest.approx(70, rel=0.02))
    classes = features_of(folder / "export" / "classes.geojson")
    assert sum(said["area_m2"] for _, said in classes) == pytest.approx(6700, rel=1e-4)


@pytest.mark.parametrize(("name", "library"), [("geotiff", "rasterio"), ("gpkg", "pyogrio")])
def test_a_missing_library_is_an_error_with_the_install_command(name, library, square, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)

    with pytest.raises(InputError, match=r"fieldbo\[geo\]"):
        export(square, [name], tmp_path)
    assert len(export(square, ["contours", "gpx", "kml"], tmp_path)) == 4


def test_existing_files_are_kept_without_replace(square, tmp_path):
    write(tmp_path / "class.tif", "mine")

    with pytest.raises(InputError, match=r"(?s)already holds class\.tif.*--replace"):
        export(square, GIS, tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["class.tif"]


def test_the_command_writes_several_formats(square, said, tmp_path):
    lines = said("export", square, "geotiff", "contours", "gpx", "--out", tmp_path / "out").split()

    names = [line.rsplit("/", 1)[1] for line in lines]
    rasters = ["map.tif", "class.tif", "class.tif.aux.xml", "class.qml"]
    assert names == [*rasters, "contours.geojson", "classes.geojson", "path.gpx"]

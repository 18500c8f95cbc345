"""Areas from vector files: every geometry counts, or an error names it."""

import json
import shutil
import zipfile

import numpy as np
import pyogrio
import pytest
import shapely
from hypothesis import given, reject
from hypothesis import strategies as st
from pyproj import Geod

from fieldbo.domain.georeference import reprojected
from fieldbo.errors import InputError
from fieldbo.mission.areas import around, find_pieces, joined, unrolled
from fieldbo.mission.layers import read_layer
from fieldbo.mission.shapes import Shape, as_obstacles, read_shapes, write_shapes

UTM = "EPSG:32632"
OPTIONS = {"use": "zone", "margin_option": "--avoid-margin"}


def feature(geometry, name=None):
    geometry = geometry if isinstance(geometry, dict | None) else shapely.geometry.mapping(geometry)
    return {"type": "Feature", "properties": {"name": name} if name else {}, "geometry": geometry}


def write(path, *features):
    path.write_text(json.dumps({"type": "FeatureCollection", "features": list(features)}))
    return str(path)


def kml(path, body):
    path.write_text(
        '<?xml version="1.0"?><kml xmlns="http://www.opengis.net/kml/2.2" '
        f'xmlns:gx="http://www.google.com/kml/ext/2.2"><Document><name>d</name>{body}</Document></kml>'
    )
    return str(path)


def placemark(name, *geometries):
    inner = "".join(geometries)
    inner = f"<MultiGeometry>{inner}</MultiGeometry>" if len(geometries) > 1 else inner
    return f"<Placemark><name>{name}</name>{inner}</Placemark>"


def kml_ring(area):
    corners = " ".join(f"{x!r},{y!r},3" for x, y in area.coords)
    return f"<LinearRing><coordinates>{corners}</coordinates></LinearRing>"


def kml_area(area):
    holes = "".join(f"<innerBoundaryIs>{kml_ring(ring)}</innerBoundaryIs>" for ring in area.interiors)
    return f"<Polygon><outerBoundaryIs>{kml_ring(area.exterior)}</outerBoundaryIs>{holes}</Polygon>"


def kml_point(x, y):
    return f"<Point><coordinates>{x},{y},0</coordinates></Point>"


def box(x, y=47.0, size=0.001):
    return shapely.box(x, y, x + size, y + size)


finite = st.integers(0, 40).map(lambda k: 8.0 + k * 1e-4)
areas = st.builds(lambda x, y, w, h: shapely.box(x, y + 39.0, x + w * 1e-4, y + 39.0 + h * 1e-4),
                  finite, finite, st.integers(1, 9), st.integers(1, 9))  # fmt: skip
points = st.builds(lambda x, y: shapely.Point(x, y + 39.0), finite, finite)
lines = st.lists(points, min_size=2, max_size=3, unique_by=lambda p: p.wkt).map(shapely.LineString)
simple = areas | points | lines
nested = st.recursive(
    simple | st.lists(areas, min_size=1, max_size=3).map(shapely.MultiPolygon),
    lambda inner: st.lists(inner, min_size=1, max_size=3).map(shapely.GeometryCollection),
    max_leaves=6,
)


def flattened(geometry):
    """Return all simple geometries of a collection, by their text: not as fieldbo finds them."""
    return (
        [part for inner in geometry.geoms for part in flattened(inner)]
        if hasattr(geometry, "geoms")
        else [geometry]
    )


@given(st.lists(nested, min_size=1, max_size=4))
def test_the_area_avoided_is_the_union_of_all_parts(tmp_path_factory, collections):
    file = tmp_path_factory.getbasetemp() / "zones.geojson"
    write(file, *map(feature, collections))
    try:
        layer = read_layer(str(file), "--avoid", margin=10.0, **OPTIONS)
    except InputError as error:
        if "the closed line" in error.problem:
            reject()
        raise
    avoided = shapely.union_all([shape.area for shape in layer.shapes])
    least, most = [], []
    for collection in collections:
        parts = flattened(collection)
        own = [part for part in parts if part.geom_type == "Polygon"]
        lines = shapely.get_parts(shapely.polygonize([p for p in parts if p.geom_type == "LineString"]))
        for part in (*parts, *lines):
            label = part.geom_type == "Point" and any(area.covers(part) for area in own)
            if part.geom_type == "Polygon" or label:
                least += [] if label or part in lines else [part]
                most.append(part)
            else:  # the polygon around a circle lies between two others
                least.append(around(part, 10.0 / 1.006, "EPSG:4326"))
                most.append(around(part, 10.0 * 1.006, "EPSG:4326"))
    assert shapely.buffer(avoided, 1e-11).covers(shapely.union_all(least))
    assert shapely.buffer(shapely.union_all(most), 1e-11).covers(avoided)
    zones = shapely.union_all([zone.polygon for zone in as_obstacles(layer.shapes)])
    assert shapely.buffer(zones, 1e-11).covers(avoided)


@pytest.mark.parametrize("latitude", [0.0, 47.0, -75.0])
def test_a_margin_is_kept_on_the_ground_all_around(latitude):
    net = shapely.LineString([(8.0, latitude), (8.02, latitude + 0.005)])
    zone = around(net, 25.0, "EPSG:4326")
    edge, geod = shapely.segmentize(zone.exterior, 1e-6), Geod(ellps="WGS84")
    for x, y in (net.coords[0], net.coords[1], net.interpolate(0.5, normalized=True).coords[0]):
        _, _, far = geod.inv(*np.broadcast_arrays(x, y, *shapely.get_coordinates(edge).T))
        assert 25.0 * 0.9999 < min(far) < 25.0 * 1.006


def test_lines_and_points_without_a_margin_are_named(tmp_path):
    file = write(
        tmp_path / "zones.geojson",
        feature(box(8.0), "bathing"),
        feature(shapely.Point(8.01, 47), "buoy"),
        feature(shapely.LineString([(8.02, 47), (8.03, 47)]), "net"),
        feature(shapely.GeometryCollection([box(8.04), shapely.Point(8.0405, 47.0005)]), "wreck"),
    )
    with pytest.raises(InputError, match="no areas, but lines and points: 2 'buoy', 3 'net'") as raised:
        read_layer(file, "--avoid", **OPTIONS)
    assert 'add --avoid-margin "10 m"' in raised.value.fix
    layer = read_layer(file, "--avoid", margin=10.0, **OPTIONS)
    assert [shape.name for shape in layer.shapes] == ["bathing", "buoy", "net", "wreck"]
    assert layer.shapes[3].area.equals(box(8.04))
    assert "10 m kept from points and lines: 2 'buoy', 3 'net'" in " ".join(layer.notes)


def test_a_label_in_an_outline_is_no_part_of_it_but_an_open_line_is_an_error(tmp_path):
    lake = kml(tmp_path / "lake.kml", placemark("lake", kml_area(box(8.0)), kml_point(8.0005, 47.0005)))
    layer = read_layer(lake, "--outline")
    assert [shape.area.area for shape in layer.shapes] == pytest.approx([1e-6])
    assert "points beside areas are taken as labels: 1 'lake'" in " ".join(layer.notes)
    shore = "<LineString><coordinates>8,47 8.1,47</coordinates></LineString>"
    both = kml(tmp_path / "both.kml", placemark("lake", kml_area(box(8.0))) + placemark("shore", shore))
    with pytest.raises(InputError, match="open lines beside the areas of the outline: 2 'shore'"):
        read_layer(both, "--outline")


def test_zones_in_folders_of_a_kml_or_kmz_all_count(tmp_path):
    folder = f"<Folder><name>A</name>{placemark('inner', kml_area(box(8.1)))}<Folder><name>B</name>" + (
        f"{placemark('deep', kml_area(box(8.2)), kml_area(box(8.3)))}</Folder></Folder>"
    )
    file = kml(tmp_path / "zones.kml", placemark("top", kml_area(box(8.0))) + folder)
    with zipfile.ZipFile(tmp_path / "zones.kmz", "w") as archive:
        archive.write(file, "files/doc.kml")
    for path in (file, str(tmp_path / "zones.kmz")):
        layer = read_layer(path, "--avoid", **OPTIONS)
        assert [shape.name for shape in layer.shapes] == ["top", "inner", "deep"]
        assert sum(shape.area.area for shape in layer.shapes) == pytest.approx(4e-6)
    with pytest.raises(InputError, match="areas in 3 layers: d, A, B"):
        read_layer(file, "--outline")


LAKE = placemark("lake", kml_area(box(8.0)))


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (LAKE + f"<Placemark><name>r</name>{kml_ring(box(8.1).exterior)}</Placemark>", "2 'r' is not valid"),
        (LAKE + "<NetworkLink><name>more</name><Link/></NetworkLink>", "'more' is a link"),
        (
            LAKE + "<GroundOverlay><name>map</name><LatLonBox><north>48</north><south>47</south>"
            "<east>9</east><west>8</west></LatLonBox></GroundOverlay>",
            "'map' is a picture on the ground",
        ),
        (
            placemark("lake", kml_area(box(8.0, size=1.0))[: -len("</Polygon>")] + "<innerBoundaryIs>"
                      + kml_ring(box(8.1).exterior) + kml_ring(box(8.2).exterior)
                      + "</innerBoundaryIs></Polygon>"),
            "GDAL reads only 1 of 2 holes",
        ),
    ],
    ids=["ring", "link", "overlay", "two holes in one boundary"],
)  # fmt: skip
def test_what_gdal_drops_from_a_kml_is_an_error(tmp_path, body, problem):
    with pytest.raises(InputError, match=problem):
        read_layer(kml(tmp_path / "lake.kml", body), "--outline")


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        (
            {"type": "Polygon", "coordinates": [[["a", 0], [1, 0], [1, 1], ["a", 0]]]},
            "feature 2 has no geometry",
        ),
        ({"type": "Circle", "coordinates": [0, 0]}, r"feature 2 has no geometry .*\(type Circle\)"),
        (
            {"type": "Polygon", "coordinates": [[[8, 47], [9, 47], [9, None], [8, 47]]]},
            "2 has no geom",
        ),
        ({"type": "Polygon", "coordinates": [[[8, 47], [9, 47], [9, float("nan")], [8, 47]]]}, "no number"),
        ({"type": "Polygon", "coordinates": [[[8, 47], [9, 47], [9, 48]]]}, "feature 2 is not valid"),
    ],
)
def test_what_gdal_drops_from_a_geojson_is_an_error(tmp_path, wrong, problem):
    with pytest.raises(InputError, match=problem):
        read_layer(write(tmp_path / "z.geojson", feature(box(8.0)), feature(wrong)), "--avoid", **OPTIONS)


def test_features_without_a_geometry_are_listed(tmp_path):
    empty = {"type": "GeometryCollection", "geometries": []}
    file = write(tmp_path / "z.geojson", feature(box(8.0)), feature(None, "wreck"), feature(empty))
    layer = read_layer(file, "--avoid", **OPTIONS)
    assert "2 features without a geometry: 2 'wreck', 3" in " ".join(layer.notes)


@pytest.mark.parametrize("kind", ["Polygon", "GeometryCollection", "Feature"])
def test_bare_geometries_are_read(tmp_path, kind):
    shapes = {"Polygon": box(8.0), "GeometryCollection": shapely.GeometryCollection([box(8.0)])}
    content = feature(box(8.0)) if kind == "Feature" else shapely.geometry.mapping(shapes[kind])
    (tmp_path / "z.geojson").write_text(json.dumps(content))
    assert read_layer(str(tmp_path / "z.geojson"), "--avoid", **OPTIONS).shapes[0].area.equals(box(8.0))
    (shape,) = read_shapes(tmp_path / "z.geojson", UTM)
    (same,) = read_layer(str(tmp_path / "z.geojson"), "--outline").within(UTM)
    assert shape.area.area == pytest.approx(same.area.area)


def write_shapefile(folder, name, x):
    wkb, names = shapely.to_wkb(np.array([box(x)])), [np.array([name], dtype=object)]
    pyogrio.raw.write(folder / f"{name}.shp", wkb, names, ["name"], geometry_type="Polygon", crs="EPSG:4326")


def test_shapefiles_are_found_in_folders_of_archives_and_without_their_index(tmp_path):
    for name, x in (("lake", 8.0), ("pond", 9.0)):
        write_shapefile(tmp_path, name, x)
    parts = [path for path in tmp_path.iterdir() if path.stem == "lake"]
    with zipfile.ZipFile(tmp_path / "deep.zip", "w") as archive:
        archive.writestr("__MACOSX/data/._lake.shp", b"junk")
        for path in parts:
            archive.write(path, f"data/shapes/{path.name}")
    with zipfile.ZipFile(tmp_path / "bare.zip", "w") as archive:
        for path in parts:
            if path.suffix != ".shx":
                archive.write(path, f"data/{path.name}")
    (tmp_path / "lake.shx").unlink()
    before = set(tmp_path.iterdir())
    for file in ("deep.zip", "bare.zip", "lake.shp"):
        (shape,) = read_layer(str(tmp_path / file), "--outline").shapes
        assert shape.name == "lake"
        assert shape.area.equals(box(8.0))
    assert set(tmp_path.iterdir()) == before
    whole = (tmp_path / "pond.shp").read_bytes()
    for name in ("pond", "lake"):  # with and without an index, which GDAL would make for what is left
        (tmp_path / f"{name}.shp").write_bytes(whole[:-40])
        with pytest.raises(InputError, match=rf"{name}.shp has 196 bytes, and says that it has 236"):
            read_layer(str(tmp_path / f"{name}.shp"), "--outline")
    (tmp_path / "pond.shp").write_bytes(whole)
    (tmp_path / "pond.prj").unlink()
    with pytest.raises(InputError, match=r"coordinate reference system \(pond.prj is missing\)"):
        read_layer(str(tmp_path / "pond.shp"), "--outline")
    with pytest.raises(InputError, match=r"pond.dbf only belongs to pond.shp"):
        read_layer(str(tmp_path / "pond.dbf"), "--outline")


def test_layers_of_an_archive_are_asked_about(tmp_path):
    for name, x in (("lake", 8.0), ("pond", 9.0)):
        write_shapefile(tmp_path, name, x)
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as archive:
        for path in list(tmp_path.iterdir()):
            if path.suffix != ".zip":
                archive.write(path, f"{path.stem}/{path.name}")
    with pytest.raises(InputError, match=r"areas in 2 layers: lake, pond|areas in 2 layers: pond, lake"):
        read_layer(str(tmp_path / "two.zip"), "--outline")
    assert read_layer(f"{tmp_path / 'two.zip'}:pond", "--outline").shapes[0].area.equals(box(9.0))
    with zipfile.ZipFile(tmp_path / "outer.zip", "w") as archive:
        archive.write(tmp_path / "two.zip", "two.zip")
    with pytest.raises(InputError, match=r"outer.zip holds an archive: two.zip"):
        read_layer(str(tmp_path / "outer.zip"), "--outline")


def test_a_geodatabase_is_read(tmp_path):
    wkb = shapely.to_wkb(np.array([box(8.0)]))
    options = {"layer": "lake", "geometry_type": "Polygon", "crs": "EPSG:4326", "driver": "OpenFileGDB"}
    pyogrio.raw.write(tmp_path / "lakes.gdb", wkb, [], [], **options)
    shutil.make_archive(str(tmp_path / "lakes.gdb"), "zip", tmp_path, "lakes.gdb")
    for file in ("lakes.gdb", "lakes.gdb.zip"):
        (shape,) = read_layer(str(tmp_path / file), "--outline").shapes
        assert shapely.symmetric_difference(shape.area, box(8.0)).area < 1e-13


def test_coordinates_in_degrees_of_a_crs_in_metres_are_refused(tmp_path):
    wkb = shapely.to_wkb(np.array([box(8.0)]))
    pyogrio.raw.write(tmp_path / "l.gpkg", wkb, [], [], geometry_type="Polygon", crs=UTM)
    with pytest.raises(InputError, match=r"in metres .*, but its coordinates look like degrees: 8.001, 47"):
        read_layer(str(tmp_path / "l.gpkg"), "--outline")


def test_an_edge_that_crosses_itself_is_mended_only_if_that_changes_little():
    ring = [(0, 0), (100, 0), (100, 100), (50, 100), (50.01, 100.01), (50.01, 99.99), (49.9, 100), (0, 100)]
    pieces = find_pieces([shapely.Polygon(ring)], [""], "outline", "lake", "--outline")
    assert not pieces.errors
    assert pieces.areas[0][1].area == pytest.approx(1e4, rel=1e-4)
    assert "mended" in pieces.notes[0]
    bow = shapely.Polygon([(0, 0), (2, 2), (2, 0), (0, 2)])
    (error,) = find_pieces([bow], ["bow"], "outline", "lake", "--outline").errors
    assert "area 1 'bow' is not valid: Self-intersection" in str(error)


def test_a_track_with_pauses_around_a_lake_is_an_outline(tmp_path):
    shore = shapely.get_coordinates(shapely.Point(8.0, 47.0).buffer(0.01, quad_segs=30))
    parts = np.array_split(shore, 3)
    (area,) = find_pieces([shapely.MultiLineString(parts)], ["w"], "outline", "f", "--outline").areas
    assert area[1].area == pytest.approx(np.pi * 1e-4, rel=1e-3)
    apart = [parts[0], parts[2]]  # which meet where the track begins
    pieces = find_pieces([shapely.MultiLineString(apart)], ["w"], "outline", "f", "--outline")
    assert not pieces.areas
    assert len(pieces.marks) == 1


HALVES = [shapely.box(179.99, -17.0, 180.0, -16.99), shapely.box(-180.0, -17.0, -179.98, -16.99)]
ISLET = [shapely.box(179.998, -16.996, 180.0, -16.994), shapely.box(-180.0, -16.996, -179.998, -16.994)]


def test_an_outline_cut_at_180_degrees_is_joined_and_its_island_stays_one(tmp_path):
    file = write(
        tmp_path / "fiji.geojson",
        feature(shapely.MultiPolygon(HALVES)),
        *map(feature, ISLET),
    )
    layer = read_layer(file, "--outline")
    assert [shape.area.bounds for shape in layer.shapes] == [
        pytest.approx((179.99, -17.0, 180.02, -16.99)),
        pytest.approx((179.998, -16.996, 180.002, -16.994)),
    ]
    assert (np.abs(layer.corners[:, 0]) <= 180.0).all()
    (lake, _) = layer.within("EPSG:32660")
    geod = Geod(ellps="WGS84")
    ground = sum(abs(geod.geometry_area_perimeter(half)[0]) for half in HALVES)
    assert lake.area.area == pytest.approx(ground, rel=2e-3)


def test_a_ring_over_180_degrees_is_followed_and_written_cut(tmp_path):
    ring = shapely.Polygon([(179.99, -17), (-179.98, -17), (-179.98, -16.99), (179.99, -16.99)])
    layer = read_layer(write(tmp_path / "r.geojson", feature(ring)), "--outline")
    assert layer.shapes[0].area.bounds == pytest.approx((-180.01, -17.0, -179.98, -16.99))
    (shape,) = layer.within("EPSG:32660")
    write_shapes(tmp_path / "w.geojson", [shape], "EPSG:32660")
    _, _, wkb, _ = pyogrio.raw.read(tmp_path / "w.geojson")
    (written,) = shapely.from_wkb(wkb)
    assert sorted(part.bounds[0] for part in written.geoms) == pytest.approx([-180.0, 179.99])
    (again,) = read_shapes(tmp_path / "w.geojson", "EPSG:32660")
    assert shapely.symmetric_difference(again.area, shape.area).area < 1e-4 * shape.area.area


def test_an_outline_over_a_pole_is_refused_with_a_way_out(tmp_path):
    ring = shapely.Polygon([(-180, 85), (-60, 85), (60, 85), (180, 85), (180, 90), (-180, 90)])
    around_it = shapely.Polygon([(0, -85), (120, -85), (-120, -85)])
    for area, pole, code in ((ring, "north", "EPSG:5041"), (around_it, "south", "EPSG:5042")):
        with pytest.raises(InputError, match=rf"reaches over the {pole} pole") as raised:
            read_layer(write(tmp_path / "p.geojson", feature(area)), "--outline")
        assert f"--crs {code}" in raised.value.fix


def test_halves_that_do_not_fit_at_180_degrees_are_refused():
    with pytest.raises(InputError, match="not along the same edge"):
        joined([HALVES[0], shapely.box(-180, -17.0, -179.9, -16.98)], "f", "--outline")


def test_longitudes_are_continuous_once_unrolled():
    area = shapely.Polygon(
        [(170, 0), (-170, 0), (-170, 10), (170, 10)], [[(178, 2), (-178, 2), (-178, 4), (178, 4)]]
    )
    whole = unrolled(area, "f", "--outline")
    assert whole.is_valid
    assert whole.area == pytest.approx(20 * 10 - 4 * 2)


def test_overlapping_and_touching_parts_of_a_zone_count_once():
    parts = [shapely.box(0, 0, 2, 2), shapely.box(1, 1, 3, 3), shapely.box(3, 1, 4, 3)]
    pieces = find_pieces([shapely.MultiPolygon(parts)], ["z"], "zone", "f", "--avoid")
    ((_, area),) = pieces.areas
    assert area.equals(shapely.union_all(parts))
    zones = as_obstacles([Shape("z", area)])
    assert shapely.union_all([zone.polygon for zone in zones]).equals(area)


def test_areas_of_a_world_keep_their_corners_to_the_last_bit(tmp_path):
    two = shapely.MultiPolygon([box(8.0), box(8.1)])
    crossing = shapely.MultiPolygon([box(8.0), shapely.box(8.0005, 47.0, 8.002, 47.001)])
    write(tmp_path / "z.geojson", feature(two), feature(box(8.3)), feature(crossing))
    multi, single, union = (shape.area for shape in read_shapes(tmp_path / "z.geojson", UTM))
    for area, raw in ((multi, two), (single, box(8.3))):
        expected = reprojected(shapely.get_coordinates(raw), "EPSG:4326", UTM)
        assert np.array_equal(shapely.get_coordinates(area), expected)
    assert isinstance(union, shapely.Polygon)

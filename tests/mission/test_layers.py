"""Vector layers of other programs: the shapefiles and GeoJSON that libpysal ships."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pyogrio
import pytest
import shapely
from pyproj import Transformer

from fieldbo.errors import InputError
from fieldbo.mission.layers import read_layer

EXAMPLES = Path(importlib.util.find_spec("libpysal").origin).parent / "examples"


def corners(shapes):
    return sum(shapely.get_num_coordinates(shape.area) for shape in shapes)


def holes(shapes):
    return sum(len(part.interiors) for shape in shapes for part in shapely.get_parts(shape.area))


@pytest.mark.parametrize(
    ("file", "number", "inner"),
    [
        ("Polygon/Polygon.shp", 3, 0),
        ("Polygon_Holes/Polygon_Holes.shp", 3, 6),
        ("berlin/prenz_bound.zip", 1, 0),
        ("columbus/columbus.json", 49, 0),
        ("virginia/virginia.shp", 136, 19),
        ("virginia/virginia.json", 136, 19),
        ("virginia/vautm17n.shp", 136, 19),
    ],
)
def test_layers_of_others_are_read_with_their_holes(file, number, inner):
    layer = read_layer(str(EXAMPLES / file), "--outline")
    assert len(layer.shapes) == number
    assert holes(layer.shapes) == inner
    _, _, geometries, _ = pyogrio.raw.read(EXAMPLES / file)
    assert corners(layer.shapes) == shapely.get_num_coordinates(shapely.from_wkb(geometries)).sum()
    assert (np.abs(layer.corners) <= [180.0, 90.0]).all()


def test_the_same_counties_in_degrees_and_in_utm_are_at_the_same_place():
    files = (EXAMPLES / "virginia" / f"{name}.shp" for name in ("virginia", "vautm17n"))
    degrees, utm = (read_layer(str(file), "--outline").shapes for file in files)
    assert [shape.name for shape in degrees] == [shape.name for shape in utm]
    for here, there in zip(degrees, utm, strict=True):
        assert here.area.symmetric_difference(there.area).area < 0.2 * here.area.area


def test_positions_of_a_layer_in_another_crs_are_those_of_pyproj():
    layer = read_layer(str(EXAMPLES / "berlin/prenz_bound.zip"), "--outline")
    _, _, geometries, _ = pyogrio.raw.read(f"/vsizip/{EXAMPLES / 'berlin/prenz_bound.zip'}", force_2d=True)
    raw = shapely.get_coordinates(shapely.from_wkb(geometries))
    to_degrees = Transformer.from_crs("EPSG:3857", "EPSG:4326", always_xy=True)
    assert layer.crs == "EPSG:3857"
    assert layer.corners == pytest.approx(np.column_stack(to_degrees.transform(*raw.T)), abs=1e-12)


@pytest.mark.slow
def test_polygons_may_be_given_their_crs_and_names_are_kept():
    file = str(EXAMPLES / "sids2/sids2.shp")
    with pytest.raises(InputError, match="does not say its coordinate reference system"):
        read_layer(file, "--outline")
    layer = read_layer(file, "--outline", "EPSG:4267")
    assert layer.shapes[0].name == "Ashe"


@pytest.mark.parametrize(
    ("file", "problem"),
    [
        ("Line/Line.shp", "Line.shp holds no areas, only LineString"),
        ("Point/Point.shp", "Point.shp holds no areas, only Point"),
        ("georgia/G_utm.shp", "G_utm.shp is in degrees"),
    ],
)
def test_layers_that_are_no_areas_or_not_valid_are_refused(file, problem):
    with pytest.raises(InputError, match=problem):
        read_layer(str(EXAMPLES / file), "--outline", "EPSG:4326")


def test_an_edge_that_touches_itself_is_mended_and_said():
    layer = read_layer(str(EXAMPLES / "tokyo/tokyomet262.shp"), "--outline", "EPSG:4326")
    _, _, geometries, _ = pyogrio.raw.read(EXAMPLES / "tokyo/tokyomet262.shp")
    stated = shapely.from_wkb(geometries)
    assert not shapely.is_valid(stated).all()
    assert all(shape.area.is_valid for shape in layer.shapes)
    areas = [shape.area.area for shape in layer.within(layer.crs)]
    assert areas == pytest.approx(shapely.area(stated), rel=1e-4)
    assert "the edge of area 3 crosses or touches itself; mended" in " ".join(layer.notes)


def test_one_of_several_layers_is_named(tmp_path):
    file = tmp_path / "lakes.gpkg"
    for name, x in (("upper", 8.0), ("lower", 9.0)):
        wkb = shapely.to_wkb(np.array([shapely.box(x, 47.0, x + 0.1, 47.1)]))
        names = [np.array([name], dtype=object)]
        options = {"layer": name, "geometry_type": "Polygon", "crs": "EPSG:4326", "append": name == "lower"}
        pyogrio.raw.write(file, wkb, names, ["name"], **options)
    with pytest.raises(InputError, match="areas in 2 layers: upper, lower") as raised:
        read_layer(str(file), "--outline")
    assert raised.value.fix == f"name it: --outline {file}:upper"
    assert read_layer(f"{file}:lower", "--outline").corners[:, 0].min() == 9.0
    with pytest.raises(InputError, match="no layer 'middle'"):
        read_layer(f"{file}:middle", "--outline")


def test_what_a_library_raises_for_a_damaged_layer_is_said_to_be_damage(tmp_path, monkeypatch):
    def fail(*arguments, **options):
        raise ValueError("year 0 is out of range")

    path = tmp_path / "lake.geojson"
    ring = [[8.0, 47.0], [8.1, 47.0], [8.1, 47.1], [8.0, 47.0]]
    path.write_text(json.dumps({"type": "Polygon", "coordinates": [ring]}))
    monkeypatch.setattr(pyogrio.raw, "read", fail)
    with pytest.raises(InputError, match=r"is damaged, or of a form .*: ValueError") as error:
        read_layer(str(path), "--outline")
    assert isinstance(error.value.__cause__, ValueError)

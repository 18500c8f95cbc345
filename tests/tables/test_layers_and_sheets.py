"""GeoPackage, shapefile, FlatGeobuf, GeoJSON and Excel: read as the plain CSV of the same readings."""

from __future__ import annotations

import datetime as dt
import json
import zipfile
from pathlib import Path

import numpy as np
import openpyxl
import pyogrio
import pyproj
import pytest
import shapely
from container_files import READINGS, numbers_of, same_points, seconds_of

from fieldbo.errors import InputError
from fieldbo.tables.opening import open_table

pytestmark = [
    pytest.mark.filterwarnings("ignore:Field time created as String field"),  # of shapefiles
    pytest.mark.filterwarnings("ignore:Normalized/laundered field name"),
]


@pytest.fixture(autouse=True)
def _place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


TIMES = np.array([row[0] for row in READINGS]).astype("datetime64[s]").astype("datetime64[ms]")
LON_LAT = np.array([[row[2], row[1]] for row in READINGS])


def layer(path, xy=LON_LAT, crs="EPSG:4326", name=None, shapes=None, **fields):
    values = {"time": TIMES, "temperature": np.array([row[3] for row in READINGS]), **fields}
    shapes = shapely.points(xy) if shapes is None else shapes
    values = {key: column[: len(shapes)] for key, column in values.items()}
    pyogrio.raw.write(
        path, shapely.to_wkb(shapes), list(values.values()), list(values), crs=crs, layer=name,
        append=name is not None, geometry_type=shapes[0].geom_type if len(shapes) else "Point",
        gdal_tz_offsets={"time": np.full(len(shapes), 100)},
    )  # fmt: skip
    return Path(path)


@pytest.mark.parametrize("name", ["log.gpkg", "log.shp", "log.fgb"])
def test_points_of_a_layer_are_readings_with_its_attributes(name):
    table = open_table(layer(name))
    readings = READINGS
    if name.endswith("shp"):  # which stores numbers in 24 characters
        temperatures = numbers_of(table, "temperatur")
        assert np.allclose(temperatures, [row[3] for row in READINGS], rtol=1e-14, atol=0)
        readings = [(*row[:3], value) for row, value in zip(READINGS, temperatures, strict=True)]
    same_points(table, table.names[-1], readings)
    assert table.row_word == "feature"


def test_points_in_metres_become_degrees():
    to_utm = pyproj.Transformer.from_crs(4326, 32632, always_xy=True)
    xy = np.column_stack(to_utm.transform(LON_LAT[:, 0], LON_LAT[:, 1]))
    table = open_table(layer("log.gpkg", xy, "EPSG:32632"))
    assert np.allclose(numbers_of(table, "latitude"), LON_LAT[:, 1], rtol=0, atol=1e-9)
    assert np.allclose(numbers_of(table, "longitude"), LON_LAT[:, 0], rtol=0, atol=1e-9)
    assert "positions are converted from WGS 84 / UTM zone 32N to degrees on WGS 84" in table.notes


def test_missing_values_are_empty_and_attributes_called_like_the_position_are_text():
    values = np.array([np.nan, *range(11)], dtype=float)
    table = open_table(layer("log.gpkg", chl=values, lat=np.full(12, "47")))
    assert table.cells["chl"][:2] == ("", "0.0")
    assert table.roles["lat"] == "text"


def test_several_layers_are_asked_about_and_layers_without_points_are_not():
    layer("log.gpkg", name="morning")
    layer("log.gpkg", name="shore", shapes=np.array([shapely.box(8, 47, 9, 48)]))
    same_points(open_table(Path("log.gpkg")), "temperature")
    assert "other layers are left out: shore (Polygon)" in open_table(Path("log.gpkg")).notes[1]
    layer("log.gpkg", name="evening")
    with pytest.raises(InputError, match=r"2 layers that may be meant: morning \(Point\), evening \(Point\)"):
        open_table(Path("log.gpkg"))
    same_points(open_table(Path("log.gpkg"), layer="evening"), "temperature")
    with pytest.raises(InputError, match="Polygon, no points"):
        open_table(Path("log.gpkg"), layer="shore")
    with pytest.raises(InputError, match="unknown layer 'noon'"):
        open_table(Path("log.gpkg"), layer="noon")


@pytest.mark.filterwarnings("ignore:'crs' was not provided")
def test_a_layer_without_a_crs_is_refused():
    layer("log.shp", crs=None)
    with pytest.raises(InputError, match=r"log\.shp does not say its coordinate reference system"):
        open_table(Path("log.shp"))


@pytest.mark.parametrize(("name", "length"), [("log.gpkg", 5000), ("log.fgb", 300), ("log.shp", 120)])
def test_a_damaged_layer_is_one_error(name, length):
    path = layer(name)
    path.write_bytes(path.read_bytes()[:length])
    for beside in Path().glob("log.[ds][bh][fx]"):
        beside.unlink()
    with pytest.raises(InputError, match=rf"{path.stem}.{path.suffix[1:]} (is damaged|holds)"):
        open_table(path)


def test_mapinfo_layers_are_refused_because_they_write_0_where_there_is_no_value():
    Path("log.mif").write_text('Version 300\nCharset "Neutral"\n')
    with pytest.raises(InputError, match="a MapInfo layer, which writes 0 where there is no value"):
        open_table(Path("log.mif"))


# -- GeoJSON ----------------------------------------------------------------------------------------------


def geojson(features, name="log.geojson", **members):
    Path(name).write_text(json.dumps({"type": "FeatureCollection", **members, "features": features}))
    return Path(name)


def features(rows=READINGS, kind="Point"):
    return [
        {
            "type": "Feature",
            "geometry": {
                "type": kind,
                "coordinates": [row[2], row[1]] if kind == "Point" else [[row[2], row[1]]],
            },
            "properties": {"time": f"{TIMES[i]}Z", "temperature": row[3], "who": None, "lat": 1, "ok": True},
        }
        for i, row in enumerate(rows)
    ]


@pytest.mark.parametrize("kind", ["Point", "MultiPoint"])
def test_geojson_gives_its_points_without_gdal(kind, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyogrio", None)
    table = open_table(geojson(features(kind=kind)))
    same_points(table, "temperature")
    assert (table.roles["lat"], table.cells["who"][0], table.cells["ok"][0]) == ("text", "", "true")


def test_geojson_with_another_crs_is_converted_and_metres_without_one_are_refused():
    to_utm = pyproj.Transformer.from_crs(4326, 32632, always_xy=True)
    rows = [(r[0], *to_utm.transform(r[2], r[1])[::-1], r[3]) for r in READINGS]
    crs = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::32632"}}
    table = open_table(geojson(features(rows), crs=crs))
    assert np.allclose(numbers_of(table, "latitude"), LON_LAT[:, 1], rtol=0, atol=1e-9)
    with pytest.raises(InputError, match="not in degrees, as GeoJSON must be"):
        open_table(geojson(features(rows)))
    crs["properties"]["name"] = "urn:ogc:def:crs:OGC:1.3:CRS84"
    same_points(open_table(geojson(features(), crs=crs)), "temperature")


def test_geojson_of_areas_or_cut_off_is_one_error():
    with pytest.raises(InputError, match="holds Polygon, no points"):
        open_table(geojson([{"type": "Feature", "geometry": {"type": "Polygon", "coordinates": []}}]))
    path = geojson(features())
    path.write_bytes(path.read_bytes()[:900])
    with pytest.raises(InputError, match="damaged or cut off: it can't be read as GeoJSON"):
        open_table(path)


# -- Excel ------------------------------------------------------------------------------------------------

NAMES = ["time", "latitude", "longitude", "temperature"]


SHORT = [(row[0], *(round(number, 9) for number in row[1:])) for row in READINGS]
"""openpyxl 3.1.5 writes 16 digits of a number, one too few for some."""


def rows_of(readings=SHORT):
    times = TIMES.astype(dt.datetime)
    return [NAMES, *([times[i], *row[1:]] for i, row in enumerate(readings))]


def workbook(sheets=None, name="log.xlsx", formats=None):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in (sheets or {"Sheet1": rows_of()}).items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
        for column, form in (formats or {}).items():
            for cell in sheet[column][1:]:
                cell.number_format = form
    book.save(name)
    return Path(name)


def test_a_sheet_is_read_as_the_same_table_in_text():
    table = open_table(workbook())
    same_points(table, "temperature", SHORT)
    assert table.row_word == "row"
    assert table.lines.tolist() == list(range(2, 14))


def test_a_preamble_and_a_row_of_units_are_recognised_in_a_sheet():
    rows = [["Sonde of the lake office"], [None], NAMES, [None, "deg", "deg", "°C"], *rows_of()[1:]]
    table = open_table(workbook({"export": rows}))
    same_points(table, "temperature", SHORT)
    assert table.units["temperature"] == "°C"
    assert table.lines.tolist() == list(range(5, 17))


def test_a_form_saved_as_a_workbook_is_known_and_quantities_in_one_column_are_asked_about():
    toa5 = [["TOA5", "Boat1", "CR1000", "1", "CR1000.Std.1", "CPU:a.CR1", "1", "Lake"],
            ["TIMESTAMP", "RECORD", "Lat", "Lon", "Temp"], ["TS", "RN", "deg", "deg", "degC"],
            ["", "", "Smp", "Smp", "Avg"]]  # fmt: skip
    toa5 += [[row[0], i, *row[1:]] for i, row in enumerate(rows_of()[1:])]
    table = open_table(workbook({"log": toa5}))
    same_points(table, "Temp", SHORT, lat="Lat", lon="Lon", time="TIMESTAMP")
    assert table.form == "Campbell TOA5"
    names = ["ActivityStartDate", "CharacteristicName", "ResultMeasureValue", "ResultMeasure/MeasureUnitCode"]
    long = [
        names,
        *([dt.date(2024, 5, 1 + i), kind, i, "mg/l"] for i in range(6) for kind in ("Oxygen", "Nitrate")),
    ]
    path = workbook({"portal": long})
    with pytest.raises(InputError, match="Oxygen"):
        open_table(path)
    assert len(open_table(path, quantity="Nitrate")) == 6


def test_a_number_sign_as_a_name_is_no_comment_in_a_sheet():
    rows = [["#", "Date Time, GMT+00:00", "lat", "lon", 'Temp "wet", °C'],
            *([i, *row] for i, row in enumerate(rows_of()[1:], 1))]  # fmt: skip
    table = open_table(workbook({"hobo": rows}))
    assert table.names[0] == "#"
    same_points(table, table.names[4], SHORT, lat="lat", lon="lon", time=table.names[1])


def test_sheets_with_readings_are_asked_about_and_short_or_hidden_ones_are_not():
    path = workbook({"about": [["made by", "us"]], "May": rows_of()})
    same_points(open_table(path), "temperature", SHORT)
    path = workbook({"May": rows_of(), "June": rows_of()})
    with pytest.raises(InputError, match=r"2 sheets that may be meant: May \(13 rows\), June \(13 rows\)"):
        open_table(path)
    same_points(open_table(path, layer="june"), "temperature", SHORT)
    book = openpyxl.load_workbook(path)
    book["June"].sheet_state = "hidden"
    book.save(path)
    same_points(open_table(path), "temperature", SHORT)


def test_formulas_without_saved_values_are_refused_by_their_cells():
    rows = rows_of()
    rows[3][3] = "=D3+1"
    with pytest.raises(InputError, match="1 formula in sheet 'Sheet1' has no value: D4"):
        open_table(workbook({"Sheet1": rows}))


def test_formulas_count_with_their_saved_values():
    rows = rows_of()
    rows[3][3] = 1234.5
    path = workbook({"Sheet1": rows})
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    parts[sheet] = parts[sheet].replace(b"<v>1234.5</v>", b"<f>D3+1</f><v>1234.5</v>")
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    assert numbers_of(open_table(path), "temperature")[2] == 1234.5


def test_percentages_count_as_they_are_shown_and_dates_as_dates():
    rows = [["date", "lat", "lon", "saturation"],
            *([dt.datetime(2024, 5, 1 + i), 47 + i / 100, 8, 0.85 + i / 1000] for i in range(6))]  # fmt: skip
    table = open_table(workbook({"s": rows}, formats={"D": "0.0%", "A": "dd.mm.yyyy"}))
    assert numbers_of(table, "saturation") == pytest.approx([85 + i / 10 for i in range(6)], abs=1e-12)
    assert table.cells["saturation"][0] in ("85.00", "85")
    assert table.cells["date"][:2] == ("2024-05-01", "2024-05-02")
    assert seconds_of(table, "date")[1] - seconds_of(table, "date")[0] == 86_400


@pytest.mark.parametrize("length", [60, 2000, -300])
def test_a_damaged_workbook_is_one_error(length):
    path = workbook()
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(
        InputError, match=r"log\.xlsx is damaged or cut off: it can't be read as an Excel workbook"
    ):
        open_table(path)


def test_without_the_extra_the_error_names_it(monkeypatch):
    path = workbook()
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    with pytest.raises(InputError, match="needs openpyxl, which is not installed") as error:
        open_table(path)
    assert "pip install 'fieldbo[excel]'" in str(error.value)

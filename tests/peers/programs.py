"""Every export opens in the programs that people have, with its places, values, times and names.

These are Debian's GDAL, QGIS, gpsbabel, NCO, cdo, ncdump and UDUNITS, and the wheels of geopandas, gpxpy,
netCDF4, cf-units and the compliance checker. docs/reference/formats.md has the table. MAVSDK opens plans in
test_mavlink.py, and MCAP's own library logs in tests/runs/test_export.py.
"""

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from checkout import ROOT
from working_folder import write

import fieldbo
from fieldbo.results import cf_units
from fieldbo.runs.export import Recorded, export, read_run
from fieldbo.runs.folder import begin
from fieldbo.runs.runner import run
from fieldbo.vehicles.base import Simulated

NETCDF = ("map.nc", "trajectory.nc")
FORMATS = ["geotiff", "contours", "gpkg", "geojson", "gpx", "kml", "netcdf", "csv"]
DEGREE = 111_000.0  # metres, about
CENTIMETRE = 0.01
FRAME = {"origin": {"latitude": 53.35, "longitude": 13.06}, "along": "along", "depth": "depth"}


@dataclass
class Exports:
    """The files of a run, and what they must show."""

    folder: Path
    recorded: Recorded

    @property
    def degrees(self):
        """Longitude and latitude (k, 2) of the readings."""
        return self.recorded.ground.geodetic(self.recorded.result.sites)[:, [1, 0]]

    @property
    def values(self):
        return self.recorded.result.values

    @property
    def times(self):
        """When each reading was taken, to the millisecond before."""
        seconds = np.concatenate([event.times_s for event in self.recorded.result.observations])
        return [self.recorded.began + timedelta(seconds=float(s)) for s in seconds]

    @property
    def maps(self):
        return self.recorded.result.maps()


WORLD = """format = 1
version = "1"
title = "A line"
cost_unit = "s"
[value]
name = "amount"
unit = "{unit}"
[domain]
kind = "grid"
axes = [
    {{ name = "x", unit = "m", low = 0, high = 9, count = 10 }},
    {{ name = "wait", unit = "{unit}", low = 0, high = 4, count = 5 }},
]
[field]
kind = "gp-draw"
length_scales = [4, 2]
[cost]
kind = "unit"
[sensor]
noise_sd = 0.05
"""
HEXAGONAL = (
    WORLD.partition("[domain]")[0].format(unit="NTU")
    + """[domain]
kind = "lattice"
crs = "EPSG:32633"
outline = "outline.geojson"
spacing = 30
pattern = "hexagonal"
[field]
kind = "gp-draw"
length_scales = [40, 40]
[cost]
kind = "unit"
[sensor]
noise_sd = 0.05
"""
)
"""A world whose sites are on no grid."""

POND = [[13.055, 53.345], [13.060, 53.345], [13.060, 53.348], [13.055, 53.345]]

MISSION = """format = 1
title = "a unit"
world = "small"
[question]
kind = "level-set"
threshold = 0.3
[agent]
battery = 3
[policy]
kind = "straddle"
[model]
learn = false
length_scales = [4, 2]
variance = 1
mean = 0
"""


def measured_in(unit, folder):
    """Return the netCDF files of a run whose values, and one of whose axes, have a unit."""
    return small_run(WORLD.format(unit=unit), folder)


def small_run(world, folder):
    """Return the netCDF files of a run in a small world."""
    write(folder / "small" / "world.toml", world)
    write(folder / "survey.toml", MISSION)
    return exported(folder, fieldbo.load_mission(folder / "survey.toml"), ["netcdf"])


def exported(folder, mission, formats, vehicles=()):
    place, record = begin(mission, folder / "run", vehicles)
    with record:
        run(mission, [Simulated(mission)], record)
    export(place, formats, folder / "out")
    return Exports(folder / "out", read_run(place))


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    """A run round the island of a lake, in a world with a CRS."""
    overrides = {"agent": {"battery": 4000}, "model": {"learn": False}}
    mission = fieldbo.load_mission("lake-places-level-set", overrides)
    return exported(tmp_path_factory.mktemp("lake"), mission, FORMATS)


@pytest.fixture(scope="module")
def section(tmp_path_factory):
    """A run in a vertical section without a CRS, which a frame places."""
    mission = fieldbo.load_mission("lake-level-set", {"agent": {"battery": 600}, "model": {"learn": False}})
    frame = [{"link": {}, "frame": FRAME}]
    return exported(tmp_path_factory.mktemp("section"), mission, ["gpx", "kml", "geojson", "netcdf"], frame)


def said_by(*command, quiet=True):
    """Return what a program prints; it must not warn."""
    program = shutil.which(command[0])
    assert program, f"{command[0]} is not installed: make test-peers installs it"
    done = subprocess.run(
        [program, *map(str, command[1:])], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not quiet or not re.search("warning|error", done.stderr, re.IGNORECASE), done.stderr
    return done.stdout


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def numbers(rows, *names):
    return np.array([[float(row[name]) for name in names] for row in rows])


def moment(text):
    """Return a time as GDAL, gpsbabel and QGIS write it: in UTC, with its zone."""
    assert text.endswith(("+00", "Z")), f"{text} has no zone"
    plain = text.removesuffix("+00").removesuffix("Z").replace("/", "-").replace("T", " ")
    return datetime.fromisoformat(f"{plain}+00:00")


def assert_times(texts, expected):
    apart = [abs(moment(text) - time) for text, time in zip(texts, expected, strict=True)]
    assert max(apart) < timedelta(milliseconds=2)


def assert_seconds(rows, exports):
    """Check times in seconds: GDAL 3.6 reads `time_s` alone, 3.10 also `time`."""
    expected = [(time - exports.recorded.began).total_seconds() for time in exports.times]
    for name in {"time", "time_s"} & set(rows[0]):
        np.testing.assert_allclose(numbers(rows, name)[:, 0], expected, atol=1e-3)
    assert "time_s" in rows[0]


# -- GDAL ------------------------------------------------------------------------------------------------


def of_gdal(file, layer):
    """Return the features of a layer as rows, with X and Y."""
    return rows_of(said_by("ogr2ogr", "-f", "CSV", "/vsistdout/", file, layer, "-lco", "GEOMETRY=AS_XY"))


@pytest.mark.parametrize(
    ("file", "layer"),
    [("run.gpkg", "readings"), ("readings.geojson", "readings"), ("trajectory.nc", "trajectory")],
)
def test_gdal_reads_the_readings_at_their_places(file, layer, lake):
    rows = of_gdal(lake.folder / file, layer)

    np.testing.assert_allclose(numbers(rows, "value")[:, 0], lake.values, rtol=1e-14)
    if file == "readings.geojson":
        np.testing.assert_allclose(numbers(rows, "X", "Y"), lake.degrees, atol=CENTIMETRE / DEGREE)
    else:
        np.testing.assert_allclose(numbers(rows, "X", "Y"), lake.recorded.result.sites, atol=CENTIMETRE)
    if file == "trajectory.nc":
        assert_seconds(rows, lake)
    else:
        assert_times([row["time"] for row in rows], lake.times)
    expected = 4979 if file == "readings.geojson" else 32633  # degrees and altitude, or metres
    assert f'ID["EPSG",{expected}]' in said_by("ogrinfo", "-so", lake.folder / file, layer)


def test_gdal_reads_a_section_at_its_places_in_degrees(section):
    rows = of_gdal(section.folder / "trajectory.nc", "trajectory")

    np.testing.assert_allclose(numbers(rows, "value")[:, 0], section.values, rtol=1e-14)
    np.testing.assert_allclose(numbers(rows, "X", "Y"), section.degrees, atol=CENTIMETRE / DEGREE)
    assert 'ID["EPSG",4326]' in said_by("ogrinfo", "-so", section.folder / "trajectory.nc", "trajectory")


def test_gdal_reads_a_map_without_a_grid_as_points_at_their_places(tmp_path):
    outline = {"type": "Polygon", "coordinates": [POND]}
    write(tmp_path / "small" / "outline.geojson", json.dumps(outline))
    exports = small_run(HEXAGONAL, tmp_path)
    sites = exports.recorded.mission.world.domain.sites
    for file in ("map", "trajectory"):
        rows = of_gdal(exports.folder / f"{file}.nc", file)
        expected = exports.recorded.result.sites if file == "trajectory" else sites
        np.testing.assert_allclose(numbers(rows, "X", "Y"), expected, atol=CENTIMETRE)
        assert 'ID["EPSG",32633]' in said_by("ogrinfo", "-so", exports.folder / f"{file}.nc", file)


def test_gdal_reads_waypoints_and_a_track_with_a_time_at_every_point(lake):
    points = of_gdal(lake.folder / "path.gpx", "waypoints")
    readings = [row for row in points if row["type"] == "reading"]
    np.testing.assert_allclose(numbers(readings, "X", "Y"), lake.degrees, atol=CENTIMETRE / DEGREE)
    assert_times([row["time"] for row in readings], lake.times)
    track = [moment(row["time"]) for row in of_gdal(lake.folder / "path.gpx", "track_points")]
    assert len(track) > len(readings), "the track has no bends"
    assert track == sorted(track)


def test_gdal_reads_numbers_of_kml_as_numbers(lake):
    layers = {
        name: said_by("ogrinfo", "-so", lake.folder / "run.kml", name) for name in ("classes", "contours")
    }
    assert "area_m2: Real" in layers["classes"]
    assert "level: Real" in layers["contours"]
    rows = [row for row in of_gdal(lake.folder / "run.kml", "places") if row["kind"] == "reading"]
    np.testing.assert_allclose(numbers(rows, "value")[:, 0], lake.values, rtol=1e-14)
    np.testing.assert_allclose(numbers(rows, "X", "Y"), lake.degrees, atol=CENTIMETRE / DEGREE)
    thresholds = [row["is_threshold"] for row in of_gdal(lake.folder / "run.kml", "contours")]
    assert sorted(thresholds) == ["0"] * (len(thresholds) - 1) + ["1"]


def test_gdal_reads_tables_at_their_places(lake):
    options = [
        "-oo",
        "X_POSSIBLE_NAMES=longitude",
        "-oo",
        "Y_POSSIBLE_NAMES=latitude",
        "-oo",
        "AUTODETECT_TYPE=YES",
    ]
    table = lake.folder / "observations.csv"
    text = said_by("ogr2ogr", "-f", "CSV", "/vsistdout/", table, *options, "-lco", "GEOMETRY=AS_XY")
    rows = rows_of(text)
    np.testing.assert_allclose(numbers(rows, "X", "Y"), lake.degrees, atol=CENTIMETRE / DEGREE)
    np.testing.assert_allclose(numbers(rows, "value")[:, 0], lake.values, rtol=1e-14)


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("map.tif", "mean"),
        ("class.tif", "class"),
        ("NETCDF:{}/map.nc:mean", "mean"),
        ("NETCDF:{}/map.nc:class", "class"),
    ],
)
def test_gdal_reads_each_pixel_of_a_map_where_it_lies(file, name, lake):
    source = file.format(lake.folder) if "{" in file else lake.folder / file
    domain = lake.recorded.mission.world.domain
    asked = "".join(f"{x} {y}\n" for x, y in domain.sites)
    shown = subprocess.run(
        ["gdallocationinfo", "-valonly", "-b", "1", "-geoloc", source],
        input=asked,
        capture_output=True,
        text=True,
        check=True,
    )
    expected = lake.maps[name].transpose("east", "north").values.ravel()[domain.grid_index]
    np.testing.assert_allclose([float(line) for line in shown.stdout.split()], expected, rtol=1e-14)
    # Land counts nowhere.
    known = said_by("gdalinfo", "--config", "GDAL_PAM_ENABLED", "NO", "-stats", source)
    means = re.findall(r"STATISTICS_MEAN=(\S+)", known)
    assert float(means[0]) == pytest.approx(expected.mean(), rel=1e-9)


def test_gdal_reads_the_names_of_classes(lake):
    shown = said_by("gdalinfo", lake.folder / "class.tif")
    names = re.findall(r"^ +(\d): (below|above|not inspected)$", shown, re.MULTILINE)
    assert names == [("0", "below"), ("1", "above"), ("2", "not inspected")]


# -- QGIS ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def in_qgis(lake):
    """What QGIS shows of each file."""
    script = Path(__file__).with_name("in_qgis.py")
    plain = {
        name: text for name, text in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))
    }
    done = subprocess.run(
        ["/usr/bin/python3", script, lake.folder],
        env=plain,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout, f"QGIS shows nothing: make test-qgis installs it\n{done.stderr}"
    assert "may only be partially supported" not in done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("file", ["run.gpkg", "trajectory.nc", "readings.geojson", "observations.csv"])
def test_qgis_shows_the_readings_at_their_places(file, lake, in_qgis):
    shown = in_qgis[file]

    assert shown["valid"]
    np.testing.assert_allclose(numbers(shown["rows"], "value")[:, 0], lake.values, rtol=1e-14)
    places = numbers(shown["rows"], "x", "y")
    if shown["crs"] == "EPSG:32633":
        np.testing.assert_allclose(places, lake.recorded.result.sites, atol=CENTIMETRE)
    else:
        assert shown["crs"] in ("EPSG:4326", "EPSG:4979")
        np.testing.assert_allclose(places, lake.degrees, atol=CENTIMETRE / DEGREE)
    if file == "trajectory.nc":
        assert_seconds(shown["rows"], lake)
    elif file != "observations.csv":
        assert shown["types"]["time"] == "DateTime"
        assert_times([row["time"] for row in shown["rows"]], lake.times)


def test_qgis_shows_tracks_with_times_and_numbers_of_kml(lake, in_qgis):
    times = [moment(row["time"]) for row in in_qgis["path.gpx"]["rows"]]
    assert times == sorted(times)
    assert in_qgis["run.kml"]["types"]["area_m2"] == "Real"
    assert {row["threshold"] for row in in_qgis["run.kml"]["rows"]} == {8.0}


@pytest.mark.parametrize(("source", "name"), [("map.tif", "mean"), ("mean", "mean"), ("class", "class")])
def test_qgis_knows_which_pixels_of_a_map_hold_no_data(source, name, lake, in_qgis):
    values = lake.maps[name].values[lake.maps["mean"].notnull().values]

    assert in_qgis[source]["valid"]
    assert in_qgis[source]["crs"] == "EPSG:32633"
    found = [in_qgis[source][key] for key in ("least", "greatest", "mean")]
    np.testing.assert_allclose(found, [values.min(), values.max(), values.mean()], rtol=1e-9)


def test_a_legend_of_qgis_has_an_entry_for_each_class_and_no_more(in_qgis):
    assert in_qgis["class.tif"]["classes"] == [[0, "below"], [1, "above"], [2, "not inspected"]]


# -- tracks: gpsbabel and gpxpy ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "form", "file"), [("lake", "gpx", "path.gpx"), ("section", "gpx", "path.gpx")]
)
def test_gpsbabel_reads_waypoints_at_their_places(name, form, file, request):
    exports = request.getfixturevalue(name)
    rows = rows_of(
        said_by("gpsbabel", "-i", form, "-f", exports.folder / file, "-o", "unicsv,utc=0", "-F", "-")
    )
    readings = [row for row in rows if row["Description"].startswith("order ")]
    found = numbers(readings, "Longitude", "Latitude")
    np.testing.assert_allclose(found, exports.degrees, atol=1e-6)  # of which it writes as many digits
    for row, time in zip(readings, exports.times, strict=True):
        shown = moment(f"{row['Date']} {row['Time']}Z")
        assert abs(shown - time) < timedelta(seconds=1)


def test_gpsbabel_computes_speeds_along_a_whole_track(lake, tmp_path):
    said_by(
        "gpsbabel",
        "-t",
        "-i",
        "gpx",
        "-f",
        lake.folder / "path.gpx",
        "-x",
        "track,speed",
        "-o",
        "unicsv",
        "-F",
        tmp_path / "t.csv",
    )
    rows = rows_of((tmp_path / "t.csv").read_text())
    assert len(rows) == (lake.folder / "path.gpx").read_text().count("<trkpt")
    speeds = [float(row["Speed"].split()[0]) for row in rows[1:] if row.get("Speed")]
    assert len(speeds) > 0.9 * len(rows)
    assert max(speeds) < 3.0


def test_gpxpy_finds_the_whole_distance_and_duration(lake):
    import gpxpy

    (track,) = gpxpy.parse((lake.folder / "path.gpx").read_text()).tracks
    driven = float(np.linalg.norm(np.diff(lake.recorded.result.path, axis=0), axis=1).sum())
    moved = track.get_moving_data(stopped_speed_threshold=0.0)
    assert moved.moving_distance == pytest.approx(driven, rel=5e-3)
    assert moved.moving_distance == pytest.approx(track.length_2d(), rel=1e-9)
    assert all(point.time is not None for point in track.segments[0].points)


# -- netCDF ----------------------------------------------------------------------------------------------


def test_nco_averages_maps_without_the_land(lake, tmp_path):
    import netCDF4

    said_by("ncwa", "-O", "-a", "north,east", lake.folder / "map.nc", tmp_path / "mean.nc")
    known = lake.maps["mean"].notnull().values
    with netCDF4.Dataset(tmp_path / "mean.nc") as data:
        for name, values in lake.maps.data_vars.items():
            expected = values.values[known].mean()
            whole = name == "class"  # of which NCO makes a whole number
            assert data[name][:] == (round(expected) if whole else pytest.approx(expected, rel=1e-9)), name


def test_cdo_reads_each_value_at_its_place(lake):
    shown = said_by("cdo", "-s", "outputtab,lon:14,lat:14,value:18", "-selname,mean", lake.folder / "map.nc")
    table = np.array([line.split() for line in shown.splitlines() if not line.startswith("#")], dtype=float)
    maps = lake.maps
    known = maps["mean"].notnull().values.ravel()
    for j, name in enumerate(("longitude", "latitude", "mean")):
        digits = {"rtol": 1e-5} if name == "mean" else {"atol": 1e-4}  # as many as it prints
        np.testing.assert_allclose(table[known, j], maps[name].values.ravel()[known], **digits)
    assert not np.isclose(table[~known, 2], 0).any()
    averaged = ["-fldmean", "-selname,mean", lake.folder / "map.nc"]
    (mean,) = said_by("cdo", "-s", "-outputf,%.15g,1", *averaged, quiet=False).split()  # it knows no areas
    assert float(mean) == pytest.approx(np.nanmean(maps["mean"].values), rel=1e-12)


def test_ncdump_reads_the_times_of_a_trajectory(lake):
    text = said_by("ncdump", "-t", "-v", "time", lake.folder / "trajectory.nc").partition("data:")[2]
    found = [re.split("[- :]", time) for time in re.findall(r'"([^"]+)"', text)]
    starts = [datetime(*map(int, (*parts[:3], *parts[3:5])), tzinfo=UTC) for parts in found]
    times = [start + timedelta(seconds=float(parts[5])) for start, parts in zip(starts, found, strict=True)]
    apart = [abs(a - b) for a, b in zip(times, lake.times, strict=True)]
    assert max(apart) < timedelta(milliseconds=2)


def test_netcdf4_masks_what_is_unknown(lake):
    import netCDF4

    with netCDF4.Dataset(lake.folder / "map.nc") as data:
        for name, values in lake.maps.data_vars.items():
            shown = data[name][:]
            known = lake.maps["mean"].notnull().values
            np.testing.assert_array_equal(~np.ma.getmaskarray(shown), known)
            np.testing.assert_array_equal(shown[known], values.values[known])


def test_geopandas_reads_times_in_utc(lake):
    import geopandas

    read = geopandas.read_file(lake.folder / "run.gpkg", layer="readings")
    assert str(read["time"].dt.tz) == "UTC"
    assert read.crs.to_epsg() == 32633
    apart = [abs(shown.to_pydatetime() - time) for shown, time in zip(read["time"], lake.times, strict=True)]
    assert max(apart) < timedelta(milliseconds=2)
    np.testing.assert_array_equal(read["value"], lake.values)


NO_HISTORY = "§2.6.2 global attribute history should exist and be a non-empty string"


def faults_of(*files):
    """Return what the compliance checker finds."""
    checker = Path(sys.executable).with_name("compliance-checker")
    done = subprocess.run([checker, "-t", "cf:1.11", *files], capture_output=True, text=True, check=False)
    assert done.stdout.count("Compliance Checker Report") == len(files), done.stderr
    return re.findall(r"^\* (.*)", done.stdout, re.MULTILINE)


UNITS = ["NTU", "FNU", "psu", "RFU", "%", "ppt", "pH", "mg/l N", "days", "s", "µg/L", "deg C", "mg m-3"]


def test_the_compliance_checker_finds_nothing_but_a_missing_history(lake, section, tmp_path):
    measured = [measured_in(unit, tmp_path / str(k)) for k, unit in enumerate(UNITS)]
    files = [exports.folder / name for exports in (lake, section, *measured) for name in NETCDF]
    assert set(faults_of(*files)) <= {NO_HISTORY}


def test_udunits_knows_every_word_that_is_written():
    from cf_units import Unit

    plural = [f"{name}s" for name in cf_units._NAMES]
    short = [f"{prefix}{word}" for prefix in ("", *cf_units._PREFIXES) for word in cf_units._SYMBOLS]
    names = sorted(cf_units._NAMES | cf_units._SINGULAR)
    long = [f"{prefix}{name}" for prefix in cf_units._LONG_PREFIXES for name in names]
    words = [*cf_units._ALONE, *names, *plural, *short, *long, *cf_units._WRITTEN.values()]
    assert all(cf_units.udunits(word) for word in words)
    assert [word for word in words if Unit(cf_units.udunits(word)).is_unknown()] == []


@pytest.mark.parametrize(
    ("unit", "of", "factor"), [("mg m-3", "kg m-3", 1e-6), ("%", "1", 0.01), ("mS cm-1", "S/m", 0.1)]
)
def test_the_udunits_of_debian_agrees(unit, of, factor):
    said = said_by("udunits2", "-H", unit, "-W", of)
    assert float(re.search(r"= ([\d.e+-]+)", said)[1]) == pytest.approx(factor)


def oldest(library):
    """Return the lowest version of a library that fieldbo allows."""
    needs = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    (version,) = [need.partition(">=")[2] for need in needs if need.startswith(f"{library}>=")]
    return version


LOOK = """
import sys, xarray
print(xarray.__version__)
for name in ("map", "trajectory"):
    with xarray.open_dataset(f"{sys.argv[1]}/{name}.nc", engine="scipy") as data:
        for key in set(sys.argv[2:]) & set(data.variables):
            print(key, data[key].dtype, float(data[key].mean()))
"""


@pytest.fixture(scope="module")
def environments(tmp_path_factory):
    """Environments of the oldest xarray that fieldbo allows, and of this one, by version."""
    import xarray

    version, folder = f"{oldest('xarray')}.0", tmp_path_factory.mktemp("xarray")
    install = ["uv", "pip", "install", "--quiet", "--no-deps", "--target", folder, f"xarray=={version}"]
    subprocess.run([sys.executable, "-m", *install], check=True)
    return {version: {**os.environ, "PYTHONPATH": str(folder)}, xarray.__version__: dict(os.environ)}


@pytest.mark.parametrize("unit", ["days", "s"])
def test_xarray_of_every_version_reads_quantities_in_units_of_time_as_numbers(unit, environments, tmp_path):
    exports = measured_in(unit, tmp_path)
    keys = ["mean", "sd", "value", "noise_sd", "time_s", "wait"]
    for version, environment in environments.items():
        command = [sys.executable, "-W", "error", "-c", LOOK, exports.folder, *keys]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        number, *lines = done.stdout.splitlines()
        shown = {key: (kind, float(mean)) for key, kind, mean in map(str.split, lines)}
        assert number == version
        assert set(shown) == set(keys)
        assert {kind for kind, _ in shown.values()} == {"float64"}
        assert shown["value"][1] == pytest.approx(exports.values.mean(), rel=1e-12)

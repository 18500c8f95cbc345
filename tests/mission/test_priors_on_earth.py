"""Earlier readings in degrees, and prior means and truths from rasters in another CRS."""

import shutil
from contextlib import chdir

import numpy as np
import pytest
import rasterio
import xarray
from lakes import LAKE, MIDDLE, START, UTM, at, log_rows, value_at, write_lake
from pyproj import Transformer
from typer.testing import CliRunner

import fieldbo
from fieldbo.cli import app
from fieldbo.domain.lattice import lattice
from fieldbo.errors import InputError
from fieldbo.world.raster import Reprojected, check_covers, read_mean

WEB = "EPSG:3857"
DOMAIN = lattice(LAKE, 20.0, crs=UTM)


def plane(points):
    """Return a smooth function of points (n, 2) in UTM."""
    return 5.0 + 0.01 * (points[:, 0] - MIDDLE[0]) - 0.02 * (points[:, 1] - MIDDLE[1])


def raster_over_the_lake(crs, step):
    """Return coordinates (n,) and (m,) around the lake in a CRS, and the plane's values there (m, n)."""
    to_crs = Transformer.from_crs(UTM, crs, always_xy=True)
    corners = np.array([to_crs.transform(*at(x, y)) for x in (-350, 350) for y in (-350, 350)])
    x, y = (np.arange(a, b, step) for a, b in zip(corners.min(axis=0), corners.max(axis=0), strict=True))
    there = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    utm = np.column_stack(Transformer.from_crs(crs, UTM, always_xy=True).transform(*there.T))
    return x, y, plane(utm).reshape(len(y), len(x))


def geotiff(path, crs, step):
    x, y, values = raster_over_the_lake(crs, step)
    place = rasterio.transform.from_origin(x[0] - step / 2, y[-1] + step / 2, step, step)
    size = {"height": len(y), "width": len(x), "count": 1, "dtype": "float64"}
    with rasterio.open(path, "w", driver="GTiff", crs=crs, transform=place, **size) as file:
        file.write(values[::-1], 1)


def test_a_geotiff_in_another_crs_is_read_where_it_lies(tmp_path):
    geotiff(tmp_path / "web.tif", WEB, 15.0)
    mean = read_mean(tmp_path / "web.tif", DOMAIN, None, "value")
    assert isinstance(mean, Reprojected)
    assert np.abs(mean.values(DOMAIN.sites) - plane(DOMAIN.sites)).max() < 0.01
    check_covers(mean, DOMAIN, "web.tif", "prior.mean")


def test_the_gradient_of_a_raster_in_another_crs_is_per_metre_of_the_world(tmp_path):
    geotiff(tmp_path / "web.tif", WEB, 15.0)
    mean = read_mean(tmp_path / "web.tif", DOMAIN, None, "value")
    values, gradient = mean.with_gradient(DOMAIN.sites)
    assert values == pytest.approx(mean.values(DOMAIN.sites))
    assert gradient == pytest.approx(np.tile([0.01, -0.02], (DOMAIN.size, 1)), abs=1e-4)


def test_a_netcdf_in_degrees_without_a_crs_is_on_wgs_84(tmp_path):
    longitude, latitude, values = raster_over_the_lake("EPSG:4326", 1e-4)
    coordinates = {
        "lat": ("lat", latitude, {"units": "degrees_north"}),
        "lon": ("lon", longitude, {"units": "degrees_east"}),
    }
    data = xarray.Dataset({"chl": (("lat", "lon"), values)}, coordinates)
    data.to_netcdf(tmp_path / "model.nc", engine="scipy")
    mean = read_mean(tmp_path / "model.nc", DOMAIN, None, "value")
    assert np.abs(mean.values(DOMAIN.sites) - plane(DOMAIN.sites)).max() < 0.01


def test_a_raster_elsewhere_does_not_cover_the_lake(tmp_path):
    longitude, latitude, values = raster_over_the_lake("EPSG:4326", 1e-4)
    coordinates = {
        "lat": ("lat", latitude + 1.0, {"units": "degrees_north"}),
        "lon": ("lon", longitude, {"units": "degrees_east"}),
    }
    xarray.Dataset({"chl": (("lat", "lon"), values)}, coordinates).to_netcdf(
        tmp_path / "m.nc", engine="scipy"
    )
    mean = read_mean(tmp_path / "m.nc", DOMAIN, None, "value")
    with pytest.raises(InputError, match="does not cover"):
        check_covers(mean, DOMAIN, "m.nc", "prior.mean")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a folder in which the world of the lake was made."""
    folder = tmp_path_factory.mktemp("made")
    write_lake(folder)
    place = ("--outline", "lake.geojson", "--avoid", "swimmers.geojson", "--start", f"{START[0]},{START[1]}")
    columns = ("--lat", "lat", "--lon", "lon", "--value", "chl", "--spacing", "20 m", "--battery", "20 min")
    with chdir(folder):
        done = CliRunner().invoke(app, ["new", "world", "kessel", "--csv", "sonde.csv", *columns, *place])
    assert done.exit_code == 0, done.output
    return folder


@pytest.fixture
def at_lake(made, tmp_path, monkeypatch):
    """Work in a copy of that folder."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_log_in_degrees_is_what_a_mission_begins_with(at_lake):
    rows = log_rows()[::4]
    lines = [f"2026-07-01T08:{k:02d}:00Z;{y};{x};{v:.3f}" for k, (y, x, v) in enumerate(rows)]
    text = "\n".join(["time;Latitude;Longitude;chl", *lines, "2026-07-01T09:00:00Z;47.3072;8.5095;-9999"])
    (at_lake / "yesterday.csv").write_text(text)
    given = {"readings": "yesterday.csv", "per_day": 0.5, "at": "2026-07-02T08:00:00Z"}
    with pytest.raises(InputError, match="-9999") as raised:
        fieldbo.load_mission("kessel", {"prior": given})
    assert "prior.missing=[-9999]" in raised.value.fix
    mission = fieldbo.load_mission("kessel", {"prior": {**given, "missing": [-9999]}})
    earlier = mission.earlier
    assert len(earlier.values) == len(rows)
    east_north = Transformer.from_crs("EPSG:4326", UTM, always_xy=True)
    there = np.column_stack(east_north.transform([x for _, x, _ in rows], [y for y, _, _ in rows]))
    gaps = np.linalg.norm(earlier.sites[:, None] - there[None], axis=2)
    assert gaps.min(axis=1).max() < 0.01
    noise = mission.world.sensor.variance(mission.world.domain.sites)[0]
    assert np.square(earlier.noise_sds) == pytest.approx(noise + 0.25 * earlier.ages_days)
    assert earlier.ages_days == pytest.approx(1.0, abs=0.05)
    assert fieldbo.Agent(mission).readings == len(rows)


def two_columns(date, rows):
    lines = [f"{date};10:{k // 60:02d}:{k % 60:02d};{y};{x};{v:.3f}" for k, (y, x, v) in enumerate(rows)]
    return "\n".join(["Date;Time;Latitude;Longitude;chl", *lines])


def test_the_age_of_a_log_with_separate_dates_and_times_is_known(at_lake):
    (at_lake / "two.csv").write_text(two_columns("15.08.2026", log_rows()[::4]))
    given = {"readings": "two.csv", "per_day": 0.5, "at": "2026-08-16T10:00:00Z"}
    mission = fieldbo.load_mission("kessel", {"prior": given})
    assert mission.earlier.ages_days == pytest.approx(1.0, abs=0.001)
    notes = ("time is Date and Time together", "times without an offset are taken as UTC")
    assert mission.earlier.notes[:2] == tuple(f"two.csv: {note}" for note in notes)
    said = CliRunner().invoke(app, ["check", "kessel", "--prior", "two.csv"]).output
    assert all(said.count(f"note      two.csv: {note}") == 1 for note in notes)
    said = CliRunner().invoke(app, ["run", "kessel", "--prior", "two.csv", "--battery", "100 s"]).output
    assert said.count("taken as UTC") == 1


def test_a_date_with_two_readings_is_a_question_unless_the_age_is_given(at_lake):
    (at_lake / "two.csv").write_text(two_columns("05/08/2026", log_rows()[::4]))
    with pytest.raises(InputError, match="is read as 5 August 2026, but may be 8 May 2026") as raised:
        fieldbo.load_mission("kessel", {"prior": {"readings": "two.csv"}})
    assert "2026-08-05" in raised.value.expected
    mission = fieldbo.load_mission("kessel", {"prior": {"readings": "two.csv", "age_days": 2}})
    assert mission.earlier.ages_days == pytest.approx(2.0)


def test_times_of_day_alone_are_no_age(at_lake):
    (at_lake / "two.csv").write_text(two_columns("x", log_rows()[::4]))
    with pytest.raises(InputError, match=r"the age of .* readings is not known"):
        fieldbo.load_mission("kessel", {"prior": {"readings": "two.csv", "per_day": 0.5}})


def test_three_readings_in_degrees_are_enough(at_lake):
    rows = log_rows()[:60:20]
    (at_lake / "few.csv").write_text("\n".join(["lat,lon,chl", *(f"{y},{x},{v}" for y, x, v in rows)]))
    mission = fieldbo.load_mission("kessel", {"prior": {"readings": "few.csv"}})
    assert len(mission.earlier.values) == 3


def test_earlier_readings_bring_a_mission_closer_to_the_truth(at_lake):
    without = fieldbo.run(fieldbo.load_mission("kessel", {"agent": {"battery": 300}}))
    given = {"agent": {"battery": 300}, "prior": {"readings": "sonde.csv"}}
    assert fieldbo.run(fieldbo.load_mission("kessel", given)).f1 > without.f1
    sites = without.mission.world.domain.sites
    assert np.abs(without.mission.world.truth(sites) - value_at(sites)).max() < 1.5

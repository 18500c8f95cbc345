"""Columns of positions that are exchanged, missing, or in an unusual coordinate system."""

from pathlib import Path

import numpy as np
import pytest
from pyproj import Transformer

from fieldbo.domain.georeference import is_true_to_scale
from fieldbo.errors import InputError
from fieldbo.mission.new.place import Extent, place_of
from fieldbo.mission.new.survey import Survey, make_world

LAT, LON = 43.078 + 0.0004 * np.arange(12), -89.403 + 0.0006 * (np.arange(12) % 4)


@pytest.fixture(autouse=True)
def _place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def log(names, *columns):
    """Write log.csv with these columns and one of chl."""
    rows = zip(*columns, 2.0 + np.arange(len(LAT)) % 5, strict=True)
    Path("log.csv").write_text("\n".join([f"{names},chl", *(",".join(map(str, row)) for row in rows)]))


def survey(*columns, positions="degrees", **options):
    options.setdefault("extent", Extent())
    return Survey(Path("log.csv"), columns, "chl", positions, **options)


def test_columns_named_against_their_options_are_refused():
    log("GPS_Latitude,GPS_Longitude", LAT, LON + 97.9)
    with pytest.raises(InputError, match="'GPS_Longitude' is given as the latitude") as raised:
        survey("GPS_Longitude", "GPS_Latitude").read()
    assert "--lat GPS_Latitude --lon GPS_Longitude" in raised.value.fix


def test_a_survey_near_a_pole_is_doubted_and_wrong_names_can_be_overruled():
    log("lat,lon", LON, LAT)
    with pytest.raises(InputError, match=r"seem to be exchanged: .* lie at -89.4 degrees, near a pole"):
        survey("lat", "lon").read()
    with pytest.raises(InputError, match="seem to be exchanged"):
        make_world("w", survey("lat", "lon", extent=Extent(start=(43.08, -89.4))))
    assert len(survey("lon", "lat").read().readings.values) == len(LAT)


def test_a_start_on_another_continent_points_to_the_columns():
    zurich = np.column_stack([8.5 + 0.001 * np.arange(12), 47.3 + 0.001 * (np.arange(12) % 4)])
    with pytest.raises(InputError, match="lies on land") as raised:
        place_of(Extent(start=(60.0, 20.0)), None, zurich)
    assert "check --lat and --lon" in raised.value.fix


def test_exchanged_eastings_and_northings_are_called_so():
    east, north = Transformer.from_crs("EPSG:4326", "EPSG:32616", always_xy=True).transform(LON, LAT)
    log("east,north", north, east)
    with pytest.raises(InputError, match="easting and northing look exchanged") as raised:
        make_world("w", survey("east", "north", positions="metres", extent=Extent(crs="EPSG:32616")))
    assert raised.value.fix == "--x north --y east"


def test_positions_of_web_maps_get_a_local_crs():
    assert not is_true_to_scale("EPSG:3857", [[43.0, -89.4]])
    place = place_of(Extent(crs="EPSG:3857"), None, np.column_stack([LAT, LON]), local=True)
    assert place.crs == "EPSG:32616"
    assert "EPSG:3857 is distorted here" in place.notes[0]


def test_a_crs_in_feet_is_still_refused():
    with pytest.raises(InputError, match="US survey foot"):
        place_of(Extent(crs="EPSG:2289"), None, np.column_stack([LAT, LON]), local=True)


def test_the_sphere_of_lowrance_is_not_that_of_web_maps():
    log("PositionX,PositionY", 1e4 * LON, 1e4 * LAT)
    columns = ("PositionX", "PositionY")
    with pytest.raises(InputError, match="not on the sphere of EPSG:3857") as raised:
        make_world("w", survey(*columns, positions="metres", extent=Extent(crs="EPSG:3857")))
    assert "+R=6356752.3142" in raised.value.fix


def test_a_cast_at_one_place_is_called_so():
    log("lat,lon", np.full(12, 43.078), np.full(12, -89.4))
    with pytest.raises(InputError, match="all rows of the log lie at one place") as raised:
        survey("lat", "lon").read()
    assert "join several casts in one table" in raised.value.fix


def test_a_log_without_positions_is_told_of_the_track(command):
    log("a,b", LAT, LON)
    code, _, error = command("new", "world", "w", "--csv", "log.csv", "--value", "chl")
    assert code == 2
    assert "name the file of the boat's track: --track FILE" in " ".join(error.split())


def test_a_fix_can_be_copied_in_one_piece():
    for text in (
        "--lat 'GPS Latitude (deg)' --lon 'GPS Longitude (deg)' --value 'Chlorophyll a'",
        "'a b ' " * 30,
    ):
        error = str(InputError("a", fix=f"of the boat's columns choose these, such as {text}"))
        assert all(line.count("'") % 2 == ("boat's" in line) for line in error.splitlines())
    assert "--lat x --lon y" in str(
        InputError("a", fix="exchange the columns of the boat's " * 2 + "--lat x --lon y")
    )

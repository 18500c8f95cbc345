"""Columns of units and of quality flags beside the values that they speak of."""

from __future__ import annotations

from pathlib import Path

import pytest

from fieldbo.errors import InputError
from fieldbo.tables.coordinates import read_degrees
from fieldbo.tables.measures import lengths_of
from fieldbo.tables.opening import open_table


@pytest.fixture(autouse=True)
def _place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def opened(names, *rows):
    path = Path("log.csv")
    path.write_text("\n".join([names, *rows]) + "\n", encoding="utf-8")
    return open_table(path)


@pytest.mark.parametrize(
    ("measure", "unit"),
    [
        ("ActivityDepthHeightMeasure/MeasureValue", "ActivityDepthHeightMeasure/MeasureUnitCode"),
        ("Activity_DepthHeightMeasure", "Activity_DepthHeightMeasureUnit"),
        ("Depth", "Depth_unit"),
        ("depth", "depth_units"),
    ],
)
def test_a_column_of_units_gives_the_unit_of_each_row(measure, unit):
    log = opened(f"lat,lon,{measure},{unit},chl", "47.1,8.5,10,ft,3", "47.2,8.5,2,m,4", "47.3,8.5,20,ft,5")
    assert lengths_of(log, measure, "depth").numbers.tolist() == pytest.approx([3.048, 2.0, 6.096])
    assert any("converted from m to ft" in note for note in log.notes)
    log = opened(f"lat,lon,{measure},{unit},chl", "47.1,8.5,10,ft,3", "47.2,8.5,20,ft,4")
    assert lengths_of(log, measure, "depth").numbers.tolist() == pytest.approx([3.048, 6.096])


@pytest.mark.parametrize("units", [("ft", ""), ("ft", "dbar"), ("ft", "bananas")])
def test_units_that_can_t_become_one_are_refused_with_the_column_that_is_asked_for(units):
    log = opened("lat,lon,Depth,Depth_unit,chl", *(f"47.1,8.5,1{i},{u},3" for i, u in enumerate(units)))
    assert log.column("chl") == "chl"
    with pytest.raises(InputError, match="Depth in Depth_unit can't be converted"):
        log.column("depth")


def test_a_unit_of_a_row_that_contradicts_the_header_is_refused():
    log = opened("lat,lon,Depth (m),Depth_unit", "47.1,8.5,10,ft", "47.2,8.5,10,m")
    with pytest.raises(InputError, match="the header states the unit m"):
        log.column("Depth")
    log = opened("lat,lon,Depth (m),Depth_unit", "47.1,8.5,10,metres", "47.2,8.5,10,")
    assert log.cells[log.column("Depth")] == ("10", "10")


@pytest.mark.parametrize(
    ("lat", "minutes"),
    [
        ("lat_deg", "lat_min"),
        ("latitude_a", "latitude_b"),
        ("Lat (deg)", "Lat (min)"),
        ("Lat", "Lat_minutes"),
    ],
)
def test_degrees_and_minutes_in_two_columns_are_one_coordinate(lat, minutes):
    log = opened(f"{lat},{minutes},chl", "47,18.6,3", "-47,18.6,4", "-47,-18.6,4", "-0,18.6,5", "0,-18.6,5")
    degrees = read_degrees(log, lat, "latitude").numbers
    assert degrees.tolist() == pytest.approx([47.31, -47.31, -47.31, -0.31, -0.31])
    assert f"{lat} is its degrees with {minutes} added" in log.notes


def test_seconds_and_the_side_beside_degrees_and_minutes_count():
    log = opened("lat_deg,lat_min,lat_sec,NS,chl", "47,18,36,S,3", "47,18,36,N,3")
    assert read_degrees(log, "lat_deg", "latitude").numbers.tolist() == pytest.approx([-47.31, 47.31])


def test_columns_that_are_not_degrees_and_minutes_stay_apart():
    assert not opened("lat_deg,lat_min,lon,chl", *(f"47.{i},{i},8,3" for i in range(3))).notes
    assert not opened("lat_deg,lat_min,lon,chl", *(f"{i},9{i},8,3" for i in range(3))).notes
    assert not opened("lat,lat_min,lon,chl", *(f"47,4{i},8,3" for i in range(3))).notes


@pytest.mark.parametrize("flag", ["chl_qc", "chl QC", "chlQC", "qartod_chl", "chl_qc_agg", "chl_qartod_flag"])
@pytest.mark.parametrize("name", ["chl", "chl (ug/L)"])
def test_values_that_qartod_calls_bad_are_left_out(flag, name):
    rows = [f"47.1,8.5,{i},{q}" for i, q in enumerate((1, 1, 2, 3, 4, 9, 1))]
    log = opened(f"lat,lon,{name},{flag}", *rows)
    assert log.cells[name] == ("0", "1", "2", "3", "", "", "6")
    assert f"2 values of {name} flagged as bad left out (QARTOD)" in log.notes
    assert f"1 value of {name} flagged as suspect (QARTOD), and used" in log.notes


@pytest.mark.parametrize(("flag", "values"), [("chl_flag", "114"), ("chl_qc", "008"), ("chl_QC", "AAB")])
def test_flags_of_no_certain_meaning_are_counted_in_a_note(flag, values):
    log = opened(f"lat,lon,chl,{flag}", *(f"47.1,8.5,{i},{q}" for i, q in enumerate(values)))
    assert log.cells["chl"] == ("0", "1", "2")
    assert any(f"the flags of chl in {flag} are not applied" in note and "(2)" in note for note in log.notes)


def test_flags_that_are_all_good_are_not_spoken_of():
    assert not opened("lat,lon,chl,chl_qc", "47.1,8.5,3,1", "47.1,8.5,4,1").notes

"""Times as instruments and programs write them: zones, orders of day and month, counts of days."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldbo.tables.clocks import count_times
from fieldbo.tables.columns import describe_columns
from fieldbo.tables.opening import open_table
from fieldbo.tables.table import Table
from fieldbo.tables.times import column_of_time, times_in, times_of
from fieldbo.tables.units import unit_of
from fieldbo.tables.zones import split_zone, zone_named, zone_of

AT = 1784019600.0
"""2026-07-14T09:00:00Z."""


def table_of(comments=(), missing=(), **columns):
    return of_columns(columns, comments, missing)


def of_columns(columns, comments=(), missing=()):
    units = {name: unit for name in columns if (unit := unit_of(name))}
    cells = {name: tuple(each) for name, each in columns.items()}
    n = len(next(iter(cells.values())))
    return Table(
        Path("log.csv"), tuple(cells), units, cells, np.arange(2, 2 + n), tuple(comments), tuple(missing)
    )


def read(name, *cells, comments=()):
    return times_in(of_columns({name: cells}, comments), name)


# -- zones ---------------------------------------------------------------------------------------------------

ZONES = [
    ("Date Time, GMT+02:00", 2), ("Date Time, GMT-05:00", -5), ("Date Time, GMT+0200", 2),
    ("Time (UTC-5)", -5), ("Time (UTC+5:30)", 5.5), ("Time (UTC +5.5)", 5.5), ("Date/Time (UTC)", 0),
    ("time_utc", 0), ("DateTimeUTC", 0), ("Zeit MESZ", 2), ("Zeit (MEZ)", 1), ("Time (CEST)", 2),
    ("Time, EST", -5), ("Timestamp [PDT]", -7), ("Time (+02:00)", 2),
    ("Date and Time (Eastern Daylight Time)", -4), ("Time (Etc/GMT+5)", -5),
    ("time (America/Phoenix)", -7), ("TIMESTAMP (AEST)", 10), ("Time (GMT)", 0),
    ("Time [UTC_+02:00]", 2), ("Time_UTC_+02:00", 2), ("time_utc+2", 2), ("Time (utc+2)", 2),
    ("Time (UTC+2h)", 2), ("Time UTC plus 2", 2), ("GMT_plus_02", 2), ("Time UTC+5h30", 5.5),
    ("Time UTC+02_00", 2), ("Time (UTC+5.75)", 5.75), ("Time (UTC+5.30)", 5.5), ("time_cest", 2),
    ("Time Europe_Berlin", 2), ("Time_America_New_York", -4), ("Local time (UTC+2)", 2),
]  # fmt: skip


@pytest.mark.parametrize(("name", "hours"), ZONES)
def test_the_header_s_zone_is_that_of_times_without_one(name, hours):
    local = datetime.fromtimestamp(AT, UTC) + timedelta(hours=hours)
    times = read(name, f"{local:%Y-%m-%d %H:%M:%S}")
    assert (times.seconds.tolist(), times.offsets) == ([AT], True)
    assert bool(times.notes) == (hours != 0)
    assert read(name, "2026-07-14T09:00:00Z").seconds.tolist() == [AT]


@pytest.mark.parametrize(
    "name",
    [
        "Timestamp",
        "Date Time",
        "TIMESTAMP",
        "Date (MM/DD/YYYY)",
        "Wet time",
        "t",
        "Location time",
        "time_west",
    ],
)
def test_headers_without_a_zone_leave_it_open(name):
    assert zone_of(name) is None
    assert not read(name, "2026-07-14 09:00:00").offsets


@pytest.mark.parametrize(
    "name",
    ["Time (CST)", "Time (local)", "Local time", "Ortszeit", "Time (ET)", "Time, IST", "Time_local",
     "TimeLocal", "Local time (not UTC)", "Local time UTC", "time_bst", "Time_CST", "Time (UTC+25)"],
)  # fmt: skip
def test_zones_that_are_not_certain_are_a_question(name):
    times = read(name, "2026-07-14 09:00:00")
    assert "is not certain" in times.unzoned
    assert not times.offsets
    assert read(name, "2026-07-14T09:00:00Z").unzoned == ""


def test_a_place_s_zone_knows_summer_time():
    name = "Time (Europe/Berlin)"
    assert read(name, "2026-07-14 11:00", "2026-01-14 10:00").seconds.tolist() == [AT, AT - 181 * 86_400]


@pytest.mark.parametrize(
    ("name", "summer", "winter"),
    [("Date-Time (EST/EDT)", "05:00", "04:00"), ("Date-Time (CEST/CET)", "11:00", "10:00"),
     ("Zeit (MEZ/MESZ)", "11:00", "10:00"), ("Time, PST/PDT", "02:00", "01:00")],
)  # fmt: skip
def test_a_pair_of_zones_means_one_by_the_date(name, summer, winter, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    seconds = read(name, f"2026-07-14 {summer}", f"2026-01-14 {winter}").seconds
    assert seconds.tolist() == [AT, AT - 181 * 86_400]
    Path("log.csv").write_text(f'#,"{name}",chl\n1,07/14/2026 {summer}:00,3\n2,07/14/2026 {summer}:10,4\n')
    log = open_table(Path("log.csv"))
    assert times_in(log, name).seconds.tolist() == [AT, AT + 10]


def test_a_pair_of_zones_that_is_no_place_s_is_a_question():
    assert "EST or JST" in read("Date-Time (EST/JST)", "2026-07-14 09:00:00").unzoned


def test_a_column_of_zones_holds_for_its_rows():
    columns = {"datetime": ["2026-07-14 05:00", "2026-07-14 04:00"], "tz_cd": ["EDT", "CDT"]}
    times = times_in(of_columns(columns), "datetime")
    assert (times.seconds.tolist(), times.offsets) == ([AT, AT], True)
    unknown = of_columns({**columns, "tz_cd": ["EDT", "boat"]})
    assert not times_in(unknown, "datetime").offsets
    assert zone_named("CST").seconds(0.0) == 6 * 3600


@pytest.mark.parametrize(
    "cell",
    ["2026/07/14 09:00:00+00", "2026-07-14T09:00:00Z", "14.07.2026 11:00:00+02:00", "14.07.2026 11:00 MESZ",
     "07/14/2026 05:00:00 AM EDT", "2026-07-14 09:00:00 UTC", "2026/07/14 09:00:00.000+00",
     "2026-07-14T11:00:00+0200", "20260714T090000Z", "14-Jul-2026 09:00:00 GMT", "7/14/2026 9:00:00 AM UTC",
     "2026/07/14T09:00:00Z"],
)  # fmt: skip
def test_zones_behind_times_count(cell):
    times = times_of([cell, ""])
    assert (times.seconds[0], times.offsets) == (AT, True)


def test_what_ends_a_time_without_being_a_zone_stays():
    for cell in ("07/14/26 11:00:00 AM", "14-07-2026", "2026-07-14", "11:00", "12 m"):
        assert split_zone(cell) == (cell, None)


@pytest.mark.parametrize("cell", ["14.07.2026 11:00 CST", "14.07.2026 11:00 IST", "2026-07-14 11:00 BST"])
def test_zones_behind_times_that_are_not_certain_are_a_question(cell):
    assert f"{cell[-3:]} may be more than one zone" in times_of([cell] * 3, name="t").unzoned


@pytest.mark.parametrize(
    ("name", "offset"),
    [("utc_offset", "2"), ("utc_offset", "2.0"), ("utc_offset", "+0200"), ("utc_offset", "7200"),
     ("UTC offset (min)", "120"), ("tz_offset_s", "7200"), ("gmt_offset", "+02:00"), ("timezone", "CEST")],
)  # fmt: skip
def test_a_column_of_offsets_holds_for_its_rows_and_for_those_without_one(name, offset):
    times = times_in(
        of_columns({"datetime": ["2026-07-14 11:00"] * 3, name: [offset, offset, ""]}), "datetime"
    )
    assert (times.seconds.tolist(), times.offsets, times.unzoned) == ([AT] * 3, True, "")


@pytest.mark.parametrize(
    ("name", "cells"),
    [("utc_offset", ["-300"] * 2), ("timezone", ["CST"] * 2), ("timezone", ["IST"] * 2), ("tz", ["boat"] * 2),
     ("tz", ["CEST", "", "CET"]), ("utc_offset", ["99"] * 2)],
)  # fmt: skip
def test_a_column_of_zones_that_are_not_certain_is_a_question(name, cells):
    columns = {"datetime": ["2026-07-14 11:00"] * len(cells), name: cells}
    assert "is not certain" in times_in(of_columns(columns), "datetime").unzoned


def test_two_halves_of_a_time_in_different_zones_are_a_question():
    columns = {"Date (UTC)": ["14.07.2026"], "Time (UTC+2)": ["11:00:00"]}
    for name in columns:
        assert "state different ones" in times_in(of_columns(columns), name).unzoned


def test_a_zone_behind_a_time_of_day_holds_for_it_and_its_date():
    times = times_in(table_of(Date=["14.07.2026"] * 2, Time=["11:00 MESZ"] * 2), "Date")
    assert (times.seconds.tolist(), times.offsets) == ([AT, AT], True)


# -- forms of dates ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cell",
    ["2026-07-14 09:00:00", "2026/07/14 09:00:00", "14.07.2026 09:00:00", "14.7.2026 9:00",
     "07/14/26 09:00:00 AM", "7/14/2026 9:00 AM", "14/07/2026 09:00:00.000", "14-Jul-2026 09:00:00",
     "Jul 14 2026  09:00:00",
     "Jul 14, 2026 9:00:00 a.m.", "07/14/2026, 9:00:00 AM", "14 July 2026 09:00", "14Jul2026 09:00:00",
     "20260714090000", "202607140900", "2026-07-14_09:00:00", "07-14-2026 09:00", "2026-7-14 9:00"],
)  # fmt: skip
def test_a_time_is_the_same_in_every_form(cell):
    assert times_of([cell]).seconds.tolist() == [AT]


@given(st.datetimes(datetime(1995, 1, 1), datetime(2060, 1, 1)), st.sampled_from(["", " PM"]))
def test_times_of_any_day_equal_those_in_iso(at, half):
    at = at.replace(microsecond=at.microsecond // 1000 * 1000)
    hour = f"{at:%I:%M:%S}.{at.microsecond // 1000:03d} {at:%p}" if half else f"{at:%H:%M:%S.%f}"
    cells = [f"{at:%d.%m.%Y} {hour}", f"{at:%d-%b-%Y} {hour}", f"{at:%Y/%m/%d} {hour}"]
    expected = at.replace(tzinfo=UTC).timestamp()
    assert [times_of([cell]).seconds[0] for cell in cells] == [expected] * 3


def test_twelve_hour_clocks_know_noon_and_midnight():
    times = times_of(["07/13/2026 12:00:00 AM", "07/13/2026 12:30:00 PM", "07/13/2026 01:00:00 PM"])
    assert (times.seconds - times.seconds[0]).tolist() == [0, 12.5 * 3600, 13 * 3600]


# -- day and month -------------------------------------------------------------------------------------------


def test_a_number_above_12_anywhere_decides_against_the_header():
    times = read("Date (MM/DD/YYYY)", "03/07/2026", "04/07/2026", "14/07/2026")
    assert (times.seconds[-1], times.undecided, times.notes) == (AT - 9 * 3600, "", ())


def test_the_creation_of_the_file_decides_where_the_dates_do_not():
    cells = ("04/07/2026 09:00", "04/07/2026 09:01")
    open_question = read("Date (MM/DD/YYYY)", *cells)
    assert "may be 7 April 2026" in open_question.undecided
    created = read("Date (MM/DD/YYYY)", *cells, comments=["FILE CREATED:,05/04/2026 18:12:33"])
    assert datetime.fromtimestamp(created.seconds[0], UTC).month == 4
    assert created.undecided == ""
    assert "the file was created before 4 July 2026" in created.notes[0]
    later = read("Date (MM/DD/YYYY)", *cells, comments=["FILE CREATED:,14/07/2026 18:12:33"])
    assert later.undecided


def test_two_digits_of_a_year_come_first_only_where_the_header_says_so_and_are_asked_about():
    assert read("Date", "26/07/14 09:00").undecided == ""
    assert "14 July 2026" in read("Date (YY/MM/DD)", "26/07/14 09:00").undecided


def test_two_digits_of_a_year_before_hyphens_are_a_question_unless_the_dates_tell():
    single = read("Time", "24-05-01 12:00:00", "24-05-01 12:00:01")
    assert single.undecided
    for between in "-/.":
        days = [f"24-05-{day:02d} 12:00:00".replace("-", between) for day in (1, 2, 3)]
        times = read("Time", *days)
        assert (datetime.fromtimestamp(times.seconds[0], UTC).year, times.undecided) == (2024, "")
    assert read("Time", "25/05/24 12:00").undecided == ""
    assert read("Time", "95-12-31 12:00").seconds.tolist() == [820411200.0]
    assert read("Time", "25.05.24 12:00").undecided == ""


def test_more_digits_of_a_second_than_iso_has_are_no_question():
    times = read("Time (UTC)", "2024-05-01 12:00:00.1234567", "2024-05-01 12:00:01.1234567")
    assert (times.undecided, times.notes) == ("", ())


def test_times_in_iso_are_read_without_trying_other_layouts(monkeypatch):
    monkeypatch.setattr("fieldbo.tables.dates.day_of", None)
    times = times_of(["2026-07-14T09:00:00Z", "", "2026/07/14 09:00:01.5"])
    np.testing.assert_array_equal(times.seconds, [AT, np.nan, AT + 1.5])


# -- several columns -----------------------------------------------------------------------------------------


def test_korexo_s_date_time_and_fraction_are_one_time():
    columns = {
        "Date (MM/DD/YYYY)": ["07/14/2026"] * 3,
        "Time (HH:mm:ss)": ["09:00:00", "09:00:00", "09:00:01"],
        "Time (Fract. Sec)": ["0.0", "0.5", "0.25"],
    }
    table = of_columns(columns)
    assert column_of_time(table, list(columns)) == "Date (MM/DD/YYYY)"
    for name in list(columns)[:2]:
        assert times_in(table, name).seconds.tolist() == [AT, AT + 0.5, AT + 1.25]
    iso = ("2026-07-14T09:00:00Z", "2026-07-14T09:00:00.500Z", "2026-07-14T09:00:01.250Z")
    rewritten = replace(table, cells={**table.cells, "Date (MM/DD/YYYY)": iso})
    assert times_in(rewritten, "Date (MM/DD/YYYY)").seconds.tolist() == [AT, AT + 0.5, AT + 1.25]


def test_a_zone_of_either_column_holds_for_both():
    for names in (("Date (UTC+2)", "Time"), ("Date", "Time (UTC+2)")):
        columns = dict(zip(names, (["14.07.2026"], ["11:00:00"]), strict=True))
        assert times_in(of_columns(columns), names[0]).seconds.tolist() == [AT]


@pytest.mark.parametrize("date", ["46217", "14.07.2026", "20260714", "740177"])
@pytest.mark.parametrize("clock", ["09:00:00", "0.375000", "09:00"])
def test_a_date_and_a_time_of_day_of_a_spreadsheet_are_put_together(date, clock):
    table = table_of(Date=[date] * 2, Time=[clock] * 2)
    assert times_in(table, "Date").seconds.tolist() == [AT, AT]


def test_dates_beside_times_of_day_that_are_not_known_are_a_question():
    times = times_in(table_of(Date=["14.07.2026"] * 2, Time=["900", "901"]), "Date")
    assert times.unzoned == "Date holds dates alone, and Time no times of day that are known"


@pytest.mark.parametrize("empty", ["", "NA", "-", "NaN", "x", "0"])
def test_a_time_of_day_that_is_missing_is_no_midnight(empty):
    clocks = ["09:00:00", empty, "09:00:02", "09:00:03"]
    expected = [AT, np.nan, AT + 2, AT + 3]
    for name in ("Date", "Time"):
        together = times_in(table_of(Date=["2026-07-14"] * 4, Time=clocks), name)
        np.testing.assert_array_equal(together.seconds, expected)
        assert together.unzoned == ""
    alone = read("Time", *clocks)
    np.testing.assert_array_equal(alone.seconds, [each - AT + 9 * 3600 for each in expected])


@pytest.mark.parametrize(
    "columns",
    [{"Time": "120000"}, {"Time_hhmmss": "120000"}, {"StartTime": "900"}, {"Time": "0.5"}, {"Hour": "12"},
     {"Time": "12:00:00", "End": "13:00:00"}, {"Begin": "12:00", "End": "13:00"}],
)  # fmt: skip
@pytest.mark.parametrize("date", ["2026-07-14", "46217"])
def test_dates_beside_times_of_day_are_never_midnight_in_silence(columns, date):
    table = of_columns({"Date": [date] * 2, **{name: [cell] * 2 for name, cell in columns.items()}})
    assert "Date holds dates alone" in times_in(table, "Date").unzoned


def test_compact_dates_and_times_of_day_are_put_together():
    table = table_of(Date=["20260714", "20260714"], Time=["09:00:00", "09:00:01"])
    assert times_in(table, "Date").seconds.tolist() == [AT, AT + 1]


@pytest.mark.parametrize(
    "columns",
    [
        {"Year": "2026", "Month": "7", "Day": "14", "Hour": "9", "Minute": "0", "Second": "0.0"},
        {"YY": "2026", "MM": "07", "DD": "14", "hh": "09", "mm": "00"},
        {"year": "2026", "doy": "195", "hour": "9"},
        {"Year (UTC+2)": "2026", "month": "7", "day": "14", "hour": "11"},
        {"year": "2026", "yday": "195.375"},
    ],
)
def test_parts_of_a_date_in_columns_of_their_own_are_one_time(columns):
    table = of_columns({**{name: [cell] * 2 for name, cell in columns.items()}, "chl": ["3", "4"]})
    assert all(times_in(table, name).seconds.tolist() == [AT, AT] for name in columns)
    assert [column.kind for column in describe_columns(table)] == ["time"] * len(columns) + ["value"]
    assert column_of_time(table, list(columns)) == next(iter(columns))


def test_what_is_called_like_parts_of_a_date_but_is_none_stays():
    table = of_columns({"Day": ["1", "2"], "mm": ["0.5", "70"], "min": ["3", "4"]})
    assert "time" not in [column.kind for column in describe_columns(table)]
    rain = table_of(Year=["2026"], Month=["7"], Day=["14"], mm=["12"])
    assert times_in(rain, "Day").seconds.tolist() == [AT - 9 * 3600]
    assert describe_columns(rain)[-1].kind == "value"


def test_milliseconds_in_a_column_of_their_own_are_added():
    table = table_of(Date=["2026/07/14"] * 2, Time=["09:00:00"] * 2, ms=["0", "250"], LEVEL=["1.5", "1.6"])
    assert times_in(table, "Time").seconds.tolist() == [AT, AT + 0.25]


def test_gps_weeks_and_seconds_are_utc_without_leap_seconds():
    week, second = divmod(AT + 18 - datetime(1980, 1, 6, tzinfo=UTC).timestamp(), 7 * 86_400)
    for name, cell in (("GPS_TOW", f"{second:.1f}"), ("TOW (ms)", f"{second * 1000:.0f}")):
        table = of_columns({"GPS Week": [f"{week:.0f}"] * 2, name: [cell] * 2})
        times = times_in(table, name)
        assert (times.seconds.tolist(), times.offsets, times.absolute) == ([AT, AT], True, True)
        assert "18 s ahead of UTC" in times.notes[0]


# -- numbers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("time", "1784019600"), ("epoch", "1784019600.0"), ("time (ms)", "1784019600000"),
        ("TimeUS", "1784019600000000"), ("timestamp_ns", "1784019600000000000"), ("Date", "46217.375"),
        ("Excel serial", "46217.375"), ("datenum", "740177.375"), ("Julian Date", "2461235.875"),
        ("MJD", "61235.375"), ("time (seconds since 1970-01-01T00:00:00Z)", "1784019600"),
        ("time (days since 1950-01-01)", "27953.375"), ("time (hours since 2026-07-14 00:00:00)", "9"),
    ],
)  # fmt: skip
def test_numbers_of_every_count_are_the_same_time(name, cell):
    table = of_columns({name: [cell, ""]})
    times = times_in(table, name)
    assert (times.seconds[0], times.absolute) == (AT, True)
    assert np.isnan(times.seconds[1])


def test_days_of_spreadsheets_are_known_by_their_fine_steps_but_seconds_are_not_taken_for_them():
    days = count_times([f"{46217.375 + i / 86400:.6f}" for i in range(5)], "Time")
    assert days.absolute
    assert "spreadsheets" in days.note
    seconds = count_times([f"{46217.3 + i / 10:.1f}" for i in range(5)], "Time")
    assert (seconds.absolute, seconds.seconds[0]) == (False, 46217.3)


def test_days_of_a_year_take_the_year_from_the_lines_above():
    assert read("timeJ", "195.375", comments=["start_time = Jul 14 2026 09:00:00"]).seconds.tolist() == [AT]
    assert read("Julian Days", "195.375", comments=["NMEA UTC (Time) = Jul 14 2026"]).absolute
    without = read("timeJ", "195.375", "195.5")
    assert (without.absolute, without.seconds.tolist()) == (False, [195.375 * 86_400, 195.5 * 86_400])
    two = read("timeJ", "195.375", comments=["start_time = Jul 14 2026", "upload time Jan 3 2027"])
    assert "may be 2026 or 2027" in two.undecided


def test_elapsed_times_are_in_seconds_whatever_their_unit():
    assert read("Elapsed time (min)", "0", "1.5").seconds.tolist() == [0.0, 90.0]
    assert read("time_ms", "0", "1500").seconds.tolist() == [0.0, 1.5]
    assert not read("t", "0", "1").absolute


def test_numbers_that_stand_for_no_value_are_no_times():
    times = times_in(table_of(missing=(-9999.0,), time=["1784019600", "-9999"]), "time")
    np.testing.assert_array_equal(times.seconds, [AT, np.nan])


# -- times that there are not -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cell", ["2024-05-01T24:00:00Z", "30.02.2024 12:00:00 MESZ", "error 5Z", "2024-05-01 12:00:0xZ"]
)
def test_one_impossible_time_with_a_zone_is_missing(cell):
    times = read("time", *(f"2024-05-01T12:00:0{i}Z" for i in range(6)), cell)
    assert np.isfinite(times.seconds).tolist() == [True] * 6 + [False]


@pytest.mark.parametrize("cell", ["23:59:60Z", "23:59:60", "22:59:60-01:00"])
def test_a_leap_second_is_the_first_second_of_the_next_minute(cell):
    times = read("time", "2016-12-31T12:00:00Z", "2016-12-31T12:00:01Z", f"2016-12-31T{cell}")
    assert times.seconds[2] == datetime(2017, 1, 1, tzinfo=UTC).timestamp()


@pytest.mark.parametrize("cell", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:00:00-05:00"])
def test_a_time_whose_offset_leads_beyond_the_calendar_is_missing(cell):
    log = table_of(time=["2024-05-01T12:00:00Z", "2024-05-01T12:00:01Z", cell], x=["1", "2", "3"])
    assert np.isfinite(times_in(log, "time").seconds).tolist() == [True, True, False]
    assert describe_columns(log)[0].high == "2024-05-01 12:00:01"


def test_a_time_beyond_the_calendar_is_shown_as_a_number():
    log = table_of(**{"time (days since 1950-01-01)": ["1", "2", "900000000"], "x": ["1", "2", "3"]})
    assert [column.high for column in describe_columns(log)] == ["7.775937e+13", "3"]


def test_a_long_cell_is_no_time_at_once():
    assert times_of(["2024-05-01 " + "1:00 " * 50] * 3) is None


def test_a_count_since_a_day_that_there_is_not_is_of_any_clock():
    assert not count_times(("1", "2"), "time (days since 2024-13-45)").absolute

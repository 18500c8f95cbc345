"""Raw logs of boats and sondes: reading them, saying what they hold, and making survey points of them."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldbo.errors import InputError
from fieldbo.tables.columns import describe_columns, no_value_chosen, table_of
from fieldbo.tables.coordinates import degrees_of, parse, swapped, unwrapped
from fieldbo.tables.opening import open_table
from fieldbo.tables.readings import read_readings
from fieldbo.tables.survey import survey_points
from fieldbo.tables.times import column_of_time, times_of

ROWS = [("12:00:00", "47.3000", "8.5000", "12.5"), ("12:00:10", "47.3010", "8.5010", "12.7"),
        ("12:00:20", "47.3020", "8.5020", "13.5"), ("12:00:30", "47.3030", "8.5030", "14.5"),
        ("12:00:40", "47.3040", "8.5040", "15.5"), ("12:00:50", "47.3050", "8.5050", "16.5")]  # fmt: skip
NAMES = ("Time", "Lat", "Lon", "Temp (°C)")


@pytest.fixture(autouse=True)
def _place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(text, encoding="utf-8", name="log.csv"):
    path = Path(name)
    path.write_bytes(text.encode(encoding))
    return path


def text_of(delimiter=",", rows=ROWS, names=NAMES, end="\n"):
    return end.join(delimiter.join(row) for row in [names, *rows]) + end


def log_of(*rows, names="t,lat,lon,v"):
    return open_table(write("\n".join([names, *rows])))


def track(n=8, value=lambda i: f"{i}"):
    return [f"{i},{47 + i / 1000:.4f},{8 + i / 1000:.4f},{value(i)}" for i in range(n)]


def points_of(log, **options):
    return survey_points(log, **{"lat": "lat", "lon": "lon", "value": "v", **options})


# -- files ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"], ids=["comma", "semicolon", "tab"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "latin-1"])
def test_encodings_delimiters_and_ends_of_lines_make_no_difference(encoding, delimiter, end):
    log = open_table(write(text_of(delimiter, end=end), encoding))
    assert log.names == NAMES
    assert log.units == {"Temp (°C)": "°C"}
    assert log.numbers("Lat").tolist() == [float(row[1]) for row in ROWS]
    assert log.lines.tolist() == [2, 3, 4, 5, 6, 7]
    assert [note for note in log.notes if "UTF-16" in note or "Latin" in note] == list(log.notes)
    assert bool(log.notes) == (encoding in ("utf-16", "utf-16-le", "latin-1"))


def test_a_gzipped_log_is_read_whatever_its_name():
    path = Path("log.csv")
    path.write_bytes(gzip.compress(text_of().encode()))
    assert len(open_table(path)) == 6
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match="damaged or incomplete"):
        open_table(path)


def test_decimal_commas_between_semicolons_are_points():
    rows = [tuple(cell.replace(".", ",") for cell in row) for row in ROWS]
    log = open_table(write(text_of(";", rows)))
    assert log.numbers("Temp (°C)").tolist() == [float(row[3]) for row in ROWS]
    assert "decimal commas are read as points" in log.notes
    readings = read_readings(Path("log.csv"), ["Lat", "Lon"], "Temp (°C)")
    assert readings.values.tolist() == log.numbers("Temp (°C)").tolist()


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("x;v\n1,5;2.5\n2,5;3\n", "decimal commas and points are mixed: '1,5' and '2.5' in line 2"),
        ("x;v\n1;1.234,5\n2;3\n", "'1.234,5' and points between thousands"),
        ("x\tv\n1\t1,234\n2\t3,456\n", "a decimal comma, or a comma between thousands"),
        ("x,v\n1,5,2\n2,5,3\n", "the line has 3 cells"),
        ("47.1,8.5,3\n47.2,8.5,4\n", "the first line holds numbers, not names"),
        ("x,v\n", "has no readings"),
        ("\n\n", "the file is empty"),
        ("\x00\x01\x02PK\x03\x04" * 9, "log.csv is not text"),
    ],
    ids=[
        "mixed",
        "thousands",
        "perhaps thousands",
        "too many cells",
        "no names",
        "no rows",
        "empty",
        "binary",
    ],
)
def test_a_file_that_could_be_misread_is_rejected(text, part):
    with pytest.raises(InputError) as caught:
        open_table(write(text))
    assert part in str(caught.value)
    assert "log.csv" in str(caught.value)


def test_a_zipped_spreadsheet_is_no_log():
    Path("log.xlsx").write_bytes(b"PK\x03\x04\x14\x00\x06\x00" + bytes(range(256)) * 4)
    with pytest.raises(InputError, match="can't be read as an Excel workbook"):
        open_table(Path("log.xlsx"))


def test_comments_and_a_line_of_units_are_recognised_and_reported():
    text = "# boat 7\n# no data: -9999\nt,lat,lon,v\ns,(deg),(deg),[mg/l]\n" + "\n".join(track())
    log = open_table(write(text))
    assert log.comments == ("boat 7", "no data: -9999")
    assert log.units == {"t": "s", "lat": "deg", "lon": "deg", "v": "mg/l"}
    assert log.lines[0] == 5
    assert log.missing == (-9999.0,)
    assert log.notes == ("line 4 holds units", "-9999 stands for no value, as a comment says")


def test_names_may_stand_in_the_last_comment_line():
    log = open_table(write("# by numpy.savetxt\n# x,y,v\n1,2,3\n4,5,6\n"))
    assert log.names == ("x", "y", "v")
    assert log.lines.tolist() == [3, 4]


def test_columns_named_with_a_hash_are_still_found_in_readings():
    write("# x,y,v\n" + "\n".join(f"{i},{i * i},{i}" for i in range(6)))
    readings = read_readings(Path("log.csv"), ["# x", "y"], "v")
    assert readings.sites[:, 0].tolist() == [0, 1, 2, 3, 4, 5]


def test_stations_with_a_hash_in_their_names_are_no_comments():
    log = open_table(write("station,lat\n#1,47.1\n#2,47.2\n# the end\n"))
    assert log.cells["station"] == ("#1", "#2")


def test_excel_s_separator_quotes_and_delimiters_at_the_ends_of_lines_are_accepted():
    log = open_table(write('sep=;\n"lat";"note, with a comma";\n47.1;"a;b";\n47.2;"c";\n'))
    assert log.names == ("lat", "note, with a comma")
    assert log.cells["note, with a comma"] == ("a;b", "c")
    assert log.lines.tolist() == [3, 4]


def test_columns_of_one_name_are_numbered():
    assert log_of("1,2,3,4", names="t,flag,v,flag").names == ("t", "flag", "v", "flag.2")


def test_a_column_is_found_without_its_unit_and_in_any_case():
    log = log_of("1,2,3", names="Time (s),Lat [deg],LAT raw")
    assert log.column("lat") == "Lat [deg]"
    with pytest.raises(InputError, match="did you mean 'LAT raw'"):
        log.column("latt", "--lat")


CELLS = st.sampled_from(
    ["", "1", "-2.5", "1,5", "nan", "inf", "1e400", "#", "lat", "47°18'N", "4718.6", "1714564800", "9" * 30,
     "NA", "12:00", "2024-05-01", "0001-01-01", "(deg)", '"', "<0.5", "\u2212 3", "x y", "-9999"]
)  # fmt: skip


@given(st.lists(st.lists(CELLS, min_size=1, max_size=4), min_size=1, max_size=9), st.sampled_from(",;\t "))
def test_any_table_is_described_or_rejected(rows, delimiter):
    path = write("\n".join(delimiter.join(row) for row in [["time", "lat", "lon", "v"], *rows]))
    try:
        log = open_table(path)
        assert len(table_of(describe_columns(log))) == 1 + len(log.names)
        points = survey_points(log, lat="lat", lon="lon", value="v", time="time")
    except InputError:
        return
    assert np.isfinite([points.lat, points.lon, points.values]).all()


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_rejected(content):
    Path("any.csv").write_bytes(content)
    try:
        log = open_table(Path("any.csv"))
    except InputError:
        return
    assert len(log) > 0


@given(st.lists(st.tuples(*[st.floats(-200, 200, width=16)] * 3), min_size=5, max_size=30))
def test_any_positions_become_points_on_the_globe(rows):
    log = log_of(*(f"{i},{y},{x},{v}" for i, (y, x, v) in enumerate(rows)))
    try:
        points = points_of(log, time="t")
    except InputError:
        return
    if not points.doubts:
        assert np.abs(points.lat).max() <= 90
        assert points.counts.sum() <= len(rows)
        assert len(points.lines) == len(points) == len(points.times)


# -- columns --------------------------------------------------------------------------------------------


def test_columns_are_described_with_what_they_hold():
    names = "No,Date,GPS Latitude,lng,Depth (m),Chl (ug/l),serial,comment,spare"
    rows = [
        f"{i},2024-05-0{i + 1} 10:00,47.{i},8.{i},{i}.5,{'' if i == 2 else i * 2},7,ok," for i in range(5)
    ]
    columns = {column.name: column for column in describe_columns(log_of(*rows, names=names))}
    kinds = [column.kind for column in columns.values()]
    assert kinds == ["count", "time", "latitude", "longitude", "depth", "value", "constant", "text", "empty"]
    chl = columns["Chl (ug/l)"]
    assert (chl.unit, chl.count, chl.missing, chl.low, chl.high) == ("ug/l", 4, 1, "0", "8")
    assert columns["Date"].low == "2024-05-01 10:00:00"
    lines = table_of(list(columns.values()))
    assert len({line.index("values") for line in lines[:1]}) == 1
    assert lines[6].split()[:5] == ["Chl", "(ug/l)", "ug/l", "value", "4"]


def test_positions_in_degrees_and_minutes_have_a_range_in_decimal_degrees():
    rows = [f"47°{18 + i}.6'S;00834.5{i},W;{i}" for i in range(5)]
    log = log_of(*(row.replace(";", ",") for row in rows), names="Lat,Lon,ew,chl")
    lat, lon, *_ = describe_columns(log)
    assert (lat.kind, lat.low, lat.high) == ("latitude", "-47.37667", "-47.31")
    assert (lon.kind, lon.low, lon.high) == ("longitude", "-8.575667", "-8.575")


def test_control_characters_in_column_names_are_escaped_in_the_list():
    log = log_of("47.1,1", "47.2,2", names="lat,\x1b[2Jchl")
    assert not any("\x1b" in line for line in table_of(describe_columns(log)))


@pytest.mark.parametrize(
    ("name", "cells", "kind"),
    [
        ("lat", ["47°18.6'N", "47°18.7'N"], "latitude"),
        ("lat", ["4718.600", "4718.700"], "latitude"),
        ("latency", ["47", "48"], "value"),
        ("lon", ["351.5", "352.5"], "longitude"),
        ("easting", ["2683000", "2683010"], "easting"),
        ("y", ["1248000", "1248010"], "northing"),
        ("timestamp", ["1714564800", "1714564801"], "time"),
        ("counts", ["1714564800", "1714564801"], "value"),
        ("utc", ["12:00:01", "12:00:02"], "time"),
        ("when", ["1.5.2024 12:00", "1.5.2024 12:01"], "time"),
        ("#", ["1", "2"], "count"),
        ("RECORD", ["1000", "1001"], "count"),
        ("Sample no.", ["7", "8"], "count"),
        ("scan", ["1", "2"], "count"),
        ("counts", ["3", "8"], "value"),
        ("Battery V", ["3.06", "3.05"], "logger"),
        ("Cable Pwr V", ["12.1", "12"], "logger"),
        ("BattV_Min", ["12.6", "12.5"], "logger"),
        ("PTemp_C", ["25.1", "25.2"], "logger"),
        ("HDOP", ["0.9", "1.1"], "logger"),
        ("chl_qc", ["1", "4"], "flag"),
        ("Flag", ["ok", "bad"], "flag"),
        ("water_quality_index", ["55.2", "61.5"], "value"),
        ("chl_sd", ["0.2", "0.3"], "noise"),
        ("timeJ", ["195.375", "195.376"], "time"),
        ("Julian Days", ["195.375", "195.376"], "time"),
        ("Date Time, GMT+02:00", ["07/14/26 11:00:00 AM", "07/14/26 11:01:05 AM"], "time"),
        ("Chlorophyll RFU", ["0.2", "0.3"], "value"),
        ("Elevation (m)", ["401.2", "401.3"], "value"),
    ],
)
def test_the_kind_of_a_column_is_guessed_from_its_name_and_cells(name, cells, kind):
    log = open_table(write("\n".join([f'"{name}";end', *(f"{cell};x" for cell in cells)])))
    assert describe_columns(log)[0].kind == kind


def test_what_the_form_says_of_a_column_counts_before_its_name():
    log = log_of("47.1,2,9", "47.2,3,8", names="number,chl,x")
    stated = replace(log, roles={"number": "latitude", "chl": "count", "x": "value"})
    assert [column.kind for column in describe_columns(stated)] == ["latitude", "count", "value"]


def test_the_error_for_no_value_names_the_candidates():
    rows = [f"{row},{i * i}" for i, row in enumerate(track())]
    error = no_value_chosen(log_of(*rows, names="time,lat,lon,v,w"))
    assert "2 candidates" in str(error)
    assert "choose one with --value COL" in str(error)
    assert "v, w" in str(error)
    error = no_value_chosen(log_of(*rows, names="time,lat,lon,v m,w"), placed=False)
    assert error.fix.endswith("such as --lat lat --lon lon --value v")


def test_without_candidates_no_option_is_advised():
    error = no_value_chosen(log_of("2024-05-01,47,8,a,b", "2024-05-02,47.1,8,c,d", names="time,lat,lon,v,w"))
    assert "0 candidates" in error.problem
    assert error.fix is None


# -- coordinates ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "degrees", "sign", "letter"),
    [
        ("47.31", 47.31, "", ""),
        ("-8.5", 8.5, "-", ""),
        ("47.31° N", 47.31, "", "N"),
        ("S 33.5", 33.5, "", "S"),
        ("33.5 S", 33.5, "", "S"),
        ("33 30 00 S", 33.5, "", "S"),
        ("33°30'S", 33.5, "", "S"),
        ("47°18.6'N", 47.31, "", "N"),
        ("47 18.6 n", 47.31, "", "N"),
        ("47°18′36″ N", 47.31, "", "N"),
        ("008°34'48.0\"W", 8.58, "", "W"),
        ("47:18:36", 47.31, "", ""),
        ("4718.600N", 4718.6, "", "N"),
    ],
)
def test_coordinates_are_read_as_loggers_write_them(cell, degrees, sign, letter):
    found = parse(cell)
    assert found.degrees == pytest.approx(degrees)
    assert (found.sign, found.letter) == (sign, letter)


@pytest.mark.parametrize("cell", ["", "no fix", "47°61'N", "N 47 S", "47.5°18'", "1,2", "2024-05-01"])
def test_what_is_no_coordinate_is_none(cell):
    assert parse(cell) is None


@given(st.floats(0, 89.999), st.sampled_from("NS"))
def test_degrees_and_minutes_and_nmea_mean_the_same_place(degrees, letter):
    whole, minutes = int(degrees), round(degrees % 1 * 60, 6)
    if minutes < 60:
        spaced, packed = (
            parse(f"{whole} {minutes:.6f} {letter}"),
            parse(f"{whole:02d}{minutes:09.6f}{letter}"),
        )
        assert spaced.degrees == pytest.approx(degrees, abs=1e-7)
        assert packed.degrees // 100 + packed.degrees % 100 / 60 == pytest.approx(degrees, abs=1e-7)


def test_nmea_is_converted_with_letters_in_the_cell_or_beside_it():
    beside = open_table(write("lat,NS,lon,EW\n4718.600,S,00834.800,W\n4718.900,S,00834.900,W\n"))
    assert degrees_of(beside, "lat", "latitude") == pytest.approx([-47.31, -47.315])
    assert degrees_of(beside, "lon", "longitude") == pytest.approx([-8.58, -8.58 - 0.1 / 60])
    inside = open_table(write("lat\n4718.600N\n\n4718.900N\n"))
    assert degrees_of(inside, "lat", "latitude") == pytest.approx([47.31, 47.315])


@pytest.mark.parametrize(
    ("cells", "part"),
    [
        (["4718.600", "4718.700"], "looks like degrees and minutes (ddmm.mmmm, as in NMEA)"),
        (["8.5 E", "8.6 E"], "exchange the columns"),
        (["-47.3 N", "-47.4 N"], "has a sign and N"),
        (["Zurich", "Basel"], "is not a latitude"),
        (["", "NA"], "is not a latitude"),
    ],
)
def test_coordinates_that_are_not_certain_are_rejected_with_their_place(cells, part):
    log = open_table(write("\n".join(["lat,v", *(f"{cell},1" for cell in cells)])))
    with pytest.raises(InputError) as caught:
        degrees_of(log, "lat", "latitude")
    assert part in str(caught.value)
    assert "log.csv, line 2, column lat" in str(caught.value)


def test_exchanged_columns_are_doubted_by_their_range_or_by_where_they_should_lie():
    tasmania, zurich = (
        (np.array([-42.9, -42.8]), np.array([147.2, 147.3])),
        (np.full(3, 47.3), np.full(3, 8.5)),
    )
    assert "latitudes reach 147.3" in swapped(*tasmania[::-1])
    assert swapped(*tasmania) is None
    assert swapped(*zurich[::-1]) is None, "off Somalia"
    bounds = (8.4, 47.2, 8.6, 47.4)
    assert "only so do the readings lie where they should" in swapped(*zurich[::-1], bounds)
    assert swapped(*zurich, bounds) is None
    assert swapped(np.full(3, 10.0), np.full(3, 20.0), bounds) is None, "elsewhere either way"


@given(st.lists(st.floats(-0.9, 0.9), min_size=2, max_size=9), st.integers(-180, 180))
def test_longitudes_are_unwrapped_without_a_jump(offsets, middle):
    whole = middle + np.array(offsets)
    for written in ((whole + 180) % 360 - 180, whole % 360):
        lon, _ = unwrapped(written)
        assert np.ptp(lon) == pytest.approx(np.ptp(whole), abs=1e-9)
        assert np.allclose(np.cos(np.radians(lon - whole)), 1)


# -- times ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cells",
    [
        ["2024-05-13T12:00:00Z", "2024-05-13T12:00:30Z"],
        ["2024-05-13 14:00:00+02:00", "2024-05-13 14:00:30+02:00"],
        ["2024/05/13 12:00:00", "2024/05/13 12:00:30.0"],
        ["13.05.2024 12:00:00", "13.05.2024 12:00:30"],
        ["05/13/2024 12:00:00 PM", "05/13/2024 12:00:30 PM"],
        ["13-May-2024 12:00:00", "13-May-2024 12:00:30"],
        ["1715601600", "1715601630"],
        ["1715601600000", "1715601630000"],
    ],
)
def test_times_are_read_as_loggers_write_them(cells):
    times = times_of([*cells, ""])
    assert times.absolute
    assert times.seconds[:2].tolist() == [1715601600.0, 1715601630.0]
    assert np.isnan(times.seconds[2])


def test_dates_that_may_have_the_month_first_are_read_as_one_log():
    american = times_of(["05/04/2024 23:00", "05/05/2024 01:00"])
    assert np.ptp(american.seconds) == 7200
    assert "the day or the month first" in american.notes[0]
    assert np.ptp(times_of(["04/05/2024 23:00", "05/05/2024 01:00"]).seconds) == 7200
    assert times_of(["31/05/2024 23:00", "01/06/2024 01:00"]).notes == ()


def test_a_date_that_may_have_the_month_first_is_named_with_both_readings():
    decided = times_of(["05/04/2024 23:00", "05/05/2024 01:00"])
    assert "'05/04/2024 23:00' is read as 4 May 2024, not 5 April 2024" in decided.notes[0]
    assert not decided.undecided
    open_question = times_of(["05/08/2026 10:00", "05/08/2026 11:00"])
    assert "is read as 5 August 2026, but may be 8 May 2026" in open_question.notes[0]
    assert open_question.undecided
    assert not times_of(["05.08.2026 10:00", "05.08.2026 11:00"]).undecided


HALVES = ["15.08.2026", "08/15/2026", "2026-08-15", "2026/8/15", "15-Aug-2026"]


@pytest.mark.parametrize("date", HALVES)
@pytest.mark.parametrize("clock", ["9:02:03", "09:02:03.0", "09:02:03 AM"])
@pytest.mark.parametrize("named", ["Date", "Time"])
def test_a_date_and_a_time_of_day_in_two_columns_are_one_time(date, clock, named):
    rows = [f"{date};{clock};{47 + i / 1000};{8 + i / 1000};{i}" for i in range(6)]
    points = points_of(log_of(*rows, names="Date;Time;lat;lon;v"), time=named)
    assert points.times.tolist() == [1786784523.0] * 6
    assert points.dated
    assert points.notes == ("time is Date and Time together", "times without an offset are taken as UTC")


def two_columns(times):
    return log_of(*(f"{d},{c},{47 + i / 1000},8,{i}" for i, (d, c) in enumerate(times)),
                  names="Date,Time,lat,lon,v")  # fmt: skip


@pytest.mark.parametrize("after", ["2026-08-16", "2026-08-15"], ids=["next date", "date stays"])
def test_midnight_does_not_change_the_order_of_rows_with_a_date_and_a_time(after):
    night = [("2026-08-15", f"23:{m}:00") for m in (20, 40, 59)]
    morning = [(after, f"00:{m}:00") for m in (10, 30, 50)]
    points = points_of(two_columns([*night, *morning]), time="Time")
    assert points.values.tolist() == [0, 1, 2, 3, 4, 5]
    assert points.times[-1] - points.times[0] == 90 * 60
    assert ("Date stays the same" in " ".join(points.notes)) == (after == "2026-08-15")


def test_rows_of_one_day_in_any_order_stay_on_that_day():
    clocks = ["20:00", "07:00", "09:00", "08:00", "22:00"]
    points = points_of(two_columns([("2026-08-15", clock) for clock in clocks]), time="Time")
    assert points.values.tolist() == [1, 3, 2, 0, 4]


def test_two_columns_of_dates_leave_the_times_of_day_alone():
    rows = [f"2026-08-15,2026-08-{i + 10},10:0{i},{47 + i / 1000},8,{i}" for i in range(6)]
    points = points_of(log_of(*rows, names="made,sent,time,lat,lon,v"), time="time")
    assert not points.dated
    assert points.notes == ()


def test_the_column_of_time_is_the_only_one_or_half_of_a_pair():
    log = log_of("2026-08-15,10:00,3,2026-08-15T10:00Z", names="Date,Time,s,utc")
    assert column_of_time(log, ["Date", "Time"]) == "Date"
    assert column_of_time(log, ["utc"]) == "utc"
    assert column_of_time(log, ["Time", "s"]) is None
    assert column_of_time(log, ["Date", "Time", "utc"]) is None
    assert column_of_time(log, []) is None


@pytest.mark.parametrize(
    ("name", "time", "said"),
    [
        ("t", "2026-08-15 10:00:0{i}", True),
        ("t", "2026-08-15 10:00:0{i}Z", False),
        ("t", "2026-08-15T10:00:0{i}+02:00", False),
        ("Time (UTC)", "2026-08-15 10:00:0{i}", False),
        ("t", "10:00:0{i}", False),
        ("t", "178678452{i}", False),
    ],
)
def test_times_without_an_offset_are_said_to_be_utc(name, time, said):
    rows = [f"{time.format(i=i)},{47 + i / 1000},8,{i}" for i in range(6)]
    points = points_of(log_of(*rows, names=f"{name},lat,lon,v"), time=name)
    assert ("times without an offset are taken as UTC" in points.notes) == said


def test_what_is_no_time_is_none():
    assert times_of(["ok", "ok"]) is None
    assert times_of([""]) is None
    assert times_of(["1.5", "2.5"], numbers=False) is None


# -- points ---------------------------------------------------------------------------------------------


def test_a_clean_log_becomes_points_as_they_are():
    points = points_of(log_of(*track()), time="t")
    assert len(points) == 8
    assert points.lat.tolist() == [47 + i / 1000 for i in range(8)]
    assert points.values.tolist() == list(range(8))
    assert points.lines == tuple(range(2, 10))
    assert points.noise_sd is None
    assert (points.notes, points.doubts) == ((), ())


def test_rows_that_cannot_be_used_are_left_out_and_counted():
    rows = track(12)
    rows[1] = "1,,8.001,1"
    rows[2] = "2,0,0.0,2"
    rows[3] = "3,47.003,8.003,ERR"
    rows[4] = "4,47.004,8.004,NA"
    points = points_of(log_of(*rows))
    assert len(points) == 8
    assert points.notes == (
        "1 row without a position left out (line 3)",
        "1 row without a fix (position 0, 0) left out (line 4)",
        "2 rows without a number for v left out (lines 5, 6; 'ERR' in line 5)",
    )


def test_a_word_that_a_spreadsheet_made_of_a_number_is_quoted():
    rows = track(12)
    rows[3], rows[4] = "3,47.003,8.003,", "4,47.004,8.004,07. Dez"
    notes = points_of(log_of(*rows)).notes
    assert notes == ("2 rows without a number for v left out (lines 5, 6; '07. Dez' in line 6)",)


def test_one_impossible_fix_is_left_out_but_many_are_an_error():
    rows = track(40)
    rows[7] = "7,947.0,8.007,7"
    assert "1 row at an impossible position left out (line 9)" in points_of(log_of(*rows)).notes
    metres = [f"{i},{1248000 + i},{2683000 + i},{i}" for i in range(9)]
    with pytest.raises(InputError, match="use --x and --y if the positions are in metres"):
        points_of(log_of(*metres))


def test_a_number_that_may_stand_for_no_value_is_a_question_and_is_kept():
    log = log_of(*track(10, lambda i: "-9999" if i in (3, 4) else f"{12 + i / 10}"))
    points = points_of(log)
    assert (points.values == -9999).sum() == 2
    assert "v is -9999 in 2 rows and else between 12 and 12.9" in points.doubts[0]
    answered = points_of(log, missing=[-9999])
    assert (len(answered), answered.doubts) == (8, ())
    assert "2 rows without a number for v left out" in answered.notes[0]


def test_a_declared_number_is_no_value_and_999_may_be_one():
    declared = open_table(write("\n".join(["# missing value = -999", "t,lat,lon,v",
                                         *track(10, lambda i: "-999.0" if i == 3 else f"{i}")])))  # fmt: skip
    assert len(points_of(declared)) == 9
    oxygen = points_of(log_of(*track(10, lambda i: f"{90 + i}")))
    assert oxygen.values.max() == 99
    assert oxygen.doubts == ()


def test_limits_of_detection_are_rejected():
    with pytest.raises(InputError, match="limit of detection, in 2 rows") as caught:
        points_of(log_of(*track(10, lambda i: "<0.5" if i in (3, 4) else f"{i}")))
    assert "line 5, column v" in str(caught.value)
    assert "write 0.5, and set below = 0.5 in [sensor]" in str(caught.value)


def test_too_few_rows_are_rejected_with_the_reason():
    with pytest.raises(InputError, match="4 readings of 8 rows can be used: 4 rows without a number"):
        points_of(log_of(*track(8, lambda i: "" if i > 3 else f"{i}")))


def test_rows_are_sorted_by_time_with_a_note():
    rows = track(9)
    points = points_of(log_of(*reversed(rows)), time="t")
    assert points.values.tolist() == list(range(9))
    assert points.lines[0] == 10
    assert "rows are sorted by time" in points.notes
    assert points_of(log_of(*reversed(rows))).values[0] == 8


def test_exchanged_columns_are_a_question():
    points = points_of(log_of(*track()), lat="lon", lon="lat", bounds=(7.9, 46.9, 8.1, 47.1))
    assert "is --lat 'lat' --lon 'lon' right?" in points.doubts[0]
    assert points_of(log_of(*track()), bounds=(7.9, 46.9, 8.1, 47.1)).doubts == ()


def test_a_survey_across_the_antimeridian_has_no_jump():
    rows = [f"{i},-17,{lon},{i}" for i, lon in enumerate([179.7, 179.8, 179.9, -180, -179.9, -179.8])]
    points = points_of(log_of(*rows))
    assert np.diff(points.lon) == pytest.approx(np.full(5, 0.1))
    assert any("antimeridian" in note for note in points.notes)


@pytest.mark.slow
def test_a_log_at_1_hz_is_pooled_along_the_track_to_its_means():
    rng = np.random.default_rng(0)
    rows = []
    for i in range(20_000):
        line, along = divmod(i, 2000)
        east = along if line % 2 == 0 else 1999 - along
        noisy = np.sin(east / 300) + 0.1 * rng.standard_normal()
        rows.append(f"{i},{47 + line * 0.001:.6f},{8 + east * 1.3e-5:.6f},{noisy:.4f}")
    points = points_of(log_of(*rows), time="t", spacing_m=40)
    assert 800 < len(points) < 1200
    assert points.counts.sum() == 20_000
    assert f"20000 readings are pooled to {len(points)}: at most one per 20 m along the track" in points.notes
    assert np.median(points.noise_sd) == pytest.approx(0.1 / np.sqrt(np.median(points.counts)), rel=0.15)
    east = (points.lon - 8) / 1.3e-5
    assert np.std(points.values - np.sin(east / 300)) < 0.04
    assert len(points_of(log_of(*rows))) <= 2000, "by default, few enough to fit"


def test_a_boat_at_anchor_is_one_point():
    rows = [*track(6), *(f"{i},47.0050,8.0050,{i % 2}" for i in range(6, 500))]
    points = points_of(log_of(*rows), time="t")
    assert len(points) == 6
    assert points.values[-1] == pytest.approx((5 + 247) / 495)


def test_stations_visited_again_are_pooled_and_those_nearby_are_not():
    rows = [*track(6), "7,47.0,8.000001,10", "8,47.0001,8.0,3"]
    points = points_of(log_of(*rows), spacing_m=8)
    assert len(points) == 7
    assert points.values[0] == 5.0
    assert "1 station within 1 m of another one pooled with it" in points.notes


def test_a_profile_is_not_pooled_over_depths():
    rows = [f"{s * 100 + z},47,{8 + s / 100},{z / 2},{20 - z / 10}" for s in range(5) for z in range(40)]
    points = points_of(log_of(*rows, names="t,lat,lon,depth,v"), depth="depth")
    assert len(points) == 200
    assert points.depths.max() == 19.5


def test_channels_and_noise_are_pooled_with_the_values():
    rows = [f"{row},{'' if i == 0 else 7},0.2" for i, row in enumerate(track(8))]
    rows += ["9,47.007,8.007,7,9,0.2"]
    points = points_of(log_of(*rows, names="t,lat,lon,v,do,sd"), channels=["do"], noise_sd="sd")
    assert np.isnan(points.channels["do"][0])
    assert points.channels["do"][-1] == 8
    assert points.noise_sd[[0, -1]] == pytest.approx([0.2, 0.2 / np.sqrt(2)])


def test_a_missing_column_names_the_option_and_the_nearest_column():
    with pytest.raises(InputError, match="unknown column 'latt'") as caught:
        points_of(log_of(*track()), lat="latt")
    assert "--lat" in str(caught.value)
    assert "did you mean 'lat'?" in str(caught.value)


def test_columns_of_one_name_are_told_apart_by_a_number():
    log = open_table(write("flag,v,flag\n1,2,3\n4,5,6\n"))
    with pytest.raises(InputError, match="2 columns are named 'flag'") as caught:
        log.column("flag", "--value")
    assert "log.csv, line 1 (--value)" in str(caught.value)
    assert [log.cells[log.column(name)] for name in ("flag.1", "flag.2")] == [("1", "4"), ("3", "6")]


def test_readings_of_a_world_are_those_of_the_table_and_none_may_be_missing():
    path = write("x,v,o2\n" + "".join(f"{i},{i / 7!r},{'' if i == 3 else i}\n" for i in range(6)))
    sources = (path, open_table(path))
    of_file, of_table = (read_readings(source, ["x"], "v", channels=["o2"]) for source in sources)
    assert of_file.values.tolist() == of_table.values.tolist() == [i / 7 for i in range(6)]
    assert np.isnan(of_file.channels["o2"]).tolist() == [False, False, False, True, False, False]
    with pytest.raises(InputError, match="the cell is empty") as caught:
        read_readings(path, ["x"], "o2")
    assert "log.csv, line 5, column o2" in str(caught.value)


def test_a_declared_number_is_no_reading_of_a_world():
    path = write("# missing value: -999\nx,v\n" + "".join(f"{i},{-999 if i == 3 else i}\n" for i in range(6)))
    with pytest.raises(InputError, match="'-999' is not a finite number"):
        read_readings(path, ["x"], "v")


def test_a_cell_of_blanks_is_no_coordinate_at_once():
    assert parse("47" + " " * 100 + "x") is None
    assert parse("  47° 18' 36.000000\" N  ").degrees == pytest.approx(47.31)

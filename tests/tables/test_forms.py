"""Every known form of text gives the same readings as the plain CSV of the same data.

The structure of a form was compared with the public repository and path named beside it. All data are
invented.
"""

from __future__ import annotations

import csv
import io
import math
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fieldbo.errors import InputError
from fieldbo.tables.forms import FORMS
from fieldbo.tables.opening import open_table
from fieldbo.tables.times import times_in

N = 12
START = datetime(2026, 7, 14, 9, 0, 0, tzinfo=UTC)
AT = [START + timedelta(seconds=65 * i) for i in range(N)]
LAT = [f"{47.31 + 0.0001 * i:.6f}" for i in range(N)]
LON = [f"{8.51 + 0.00013 * i:.6f}" for i in range(N)]
TEMP = [f"{18 + 0.01 * i * i:.3f}" for i in range(N)]
CHL = [f"{6.2 + 0.37 * (i % 5):.2f}" for i in range(N)]
CHL[3] = ""
NUMBERS = {"lat": LAT, "lon": LON, "temp": TEMP, "chl": CHL}


@pytest.fixture(autouse=True)
def _place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(text, name="log.csv", encoding="utf-8"):
    path = Path(name)
    path.write_bytes(text.encode(encoding))
    return path


def quoted(*rows):
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\r\n").writerows(rows)
    return out.getvalue()


def lines(*rows, between=","):
    return "\r\n".join(between.join(map(str, row)) for row in rows) + "\r\n"


def korexo():  # daanreijnders/korexo_profile: tests/example1.csv
    names = ["Chlorophyll µg/L", "Temp °C", "GPS Latitude °", "GPS Longitude °"]
    head = ["Date (MM/DD/YYYY)", "Time (HH:mm:ss)", "Time (Fract. Sec)", "Site Name", *names]
    session = [
        [*[""] * 3, "MEAN VALUE:", 7.1, 18.3, 47.3, 8.5],
        [*[""] * 3, "STANDARD DEVIATION:", 0.2, 0.1, 0.0, 0.0],
        [],
        [*[""] * 3, "SENSOR SERIAL NUMBER:", "26A101644", "19E101220", "19E101221", "19E101221"],
        head,
    ]
    rows = [
        [f"{t:%m/%d/%Y}", f"{t:%H:%M:%S}", "0.0", "MIDLAKE", c or "NA", *rest]
        for t, c, *rest in zip(AT, CHL, TEMP, LAT, LON, strict=True)
    ]
    top = [["KorEXO MEASUREMENT DATA FILE EXPORT"], [], ["FILE CREATED:", "14/07/2026 18:12:33"], []]
    text = "sep=,\r\n" + lines(*top, *session, *rows[:7], *session, *rows[7:])
    return write(text, encoding="utf-16"), "GPS Latitude °", "GPS Longitude °", "Temp °C", names[0]


def prodss():  # names as the public reader read_lern_sonde lists them; no whole sample was found
    head = ["Date", "Time", "Site", "Unit ID", "User ID", "°C-19K104425", "mmHg-19C102825",
            "Chl ug/L-19M101982", "GPS Latitude", "GPS Longitude"]  # fmt: skip
    rows = [
        [f"{t:%m/%d/%Y}", f"{t:%H:%M:%S}", "LAKE", "1", "me", temp, "732.1", c, lat, lon]
        for t, temp, c, lat, lon in zip(AT, TEMP, CHL, LAT, LON, strict=True)
    ]
    path = write(lines(head, *rows, between="\t"), "prodss.csv")
    return path, head[8], head[9], head[5], head[7]


VUSITU = ["Location Properties", "Location Name = Midlake", "", "Report Properties",
          "Start Time = 2026-07-14 11:00:00", "Time Offset = 02:00:00", "Readings = 12", "",
          "Instrument Properties", "Device Model = Aqua TROLL 600", "Device SN = 999996", ""]  # fmt: skip
VUSITU_NAMES = ["Date Time", "Temperature (°C) (999996)", "Chlorophyll-a (µg/L) (999998)", "Latitude (°)",
                "Longitude (°)", "Marked"]  # fmt: skip


def vusitu_rows():
    local = [f"{t + timedelta(hours=2):%Y-%m-%d %H:%M:%S}" for t in AT]
    return [[*row, ""] for row in zip(local, TEMP, CHL, LAT, LON, strict=True)]


def vusitu_csv():  # the lines of the report below, as its meta element isi-csv-file-name says
    path = write(lines(*([line] for line in VUSITU), VUSITU_NAMES, *vusitu_rows()))
    return path, VUSITU_NAMES[3], VUSITU_NAMES[4], VUSITU_NAMES[1], VUSITU_NAMES[2]


def vusitu_html(
    quality="4",
):  # ongchi/aqua_troll_log_reader: testing/data/VuSitu_LiveReadings_2025-01-25_*.zip
    head = [f'<tr class="sectionMember"><td isi-property=""><span>{line}</span></td></tr>' for line in VUSITU]
    names = "".join(f'<td isi-data-column-header="Parameter">{name}</td>' for name in VUSITU_NAMES)
    rows = [
        f'<tr class="data" isi-data-row=""><td class="dateTime">{t}</td><td>{temp}</td>'
        + f'<td isi-data-quality="{quality}">{c}</td><td>{lat}</td><td>{lon}</td><td></td></tr>'
        for t, temp, c, lat, lon, _ in vusitu_rows()
    ]
    page = ["<!DOCTYPE html>", "<html><head>", '<meta name="isi-report-type" content="LiveReadings"/></head>',
            '<body><table id="isi-report">', *head, f'<tr class="dataHeader" isi-data-table="">{names}</tr>',
            *rows, "</table></body></html>"]  # fmt: skip
    path = write("\n".join(page), "report.html")
    return path, VUSITU_NAMES[3], VUSITU_NAMES[4], VUSITU_NAMES[1], VUSITU_NAMES[2]


def vusitu_zip():
    path, *names = vusitu_html()
    with zipfile.ZipFile("report.zip", "w") as archive:
        archive.write(path)
    return Path("report.zip"), *names


HOBO = ["#", "Date Time, GMT+02:00", "Temp, °C (LGR S/N: 20991234, SEN S/N: 20991234, LBL: bow)",
        "Chl, µg/L (LGR S/N: 20991234, SEN S/N: 20991235)", "Latitude", "Longitude",
        "End Of File (LGR S/N: 20991234)"]  # fmt: skip


def hobo_rows():
    local = [f"{t + timedelta(hours=2):%m/%d/%y %I:%M:%S %p}" for t in AT]
    return [
        [i, *row, "Logged" if i == N else ""]
        for i, row in enumerate(zip(local, TEMP, CHL, LAT, LON, strict=True), 1)
    ]


def hobo():  # cioos-siooc/ocean-data-parser: tests/parsers_test_files/onset/tidbit_v2/*.csv
    rows = "".join(lines(row) for row in hobo_rows())
    path = write('\ufeff"Plot Title: boat 3"\r\n' + quoted(HOBO) + rows)
    return path, "Latitude", "Longitude", HOBO[2], HOBO[3]


def hobo_of_excel():  # the same: FULL1_PT_20292372_20200430_corrected_P2.csv, saved by a spreadsheet
    out = io.StringIO()
    csv.writer(out).writerows([["Plot Title: boat 3", *[""] * 8], [*HOBO, "", ""]])
    path = write(out.getvalue() + lines(*([*row, "", ""] for row in hobo_rows())))
    return path, "Latitude", "Longitude", HOBO[2], HOBO[3]


TOA5 = [["TOA5", "Boat1", "CR1000X", "12345", "CR1000X.Std.05.02", "CPU:boat.CR1X", "40021", "Lake"],
        ["TIMESTAMP", "RECORD", "GPS_lat", "GPS_lon", "WTemp_Avg", "Chl_Avg"],
        ["TS", "RN", "degrees", "degrees", "Deg C", "ug/L"],
        ["", "", "Smp", "Smp", "Avg", "Avg"]]  # fmt: skip


def toa5_rows(missing):
    return [
        [f'"{t:%Y-%m-%d %H:%M:%S}"', 1000 + i, lat, lon, temp, c or missing]
        for i, (t, lat, lon, temp, c) in enumerate(zip(AT, LAT, LON, TEMP, CHL, strict=True))
    ]


def toa5():  # haukex/pytoa5: tests/toa5/TestLogger_Hourly_1.dat
    return write(quoted(*TOA5) + lines(*toa5_rows('"NAN"')), "lake.dat"), *TOA5[1][2:]


def toa5_of_excel():
    width = len(TOA5[0])
    rows = [[str(cell).strip('"') for cell in row] for row in (*TOA5, *toa5_rows("-7999"))]
    return write(lines(*([*row, *[""] * (width - len(row))] for row in rows)), "lake.csv"), *TOA5[1][2:]


def cnv(*, positions=True, names=("timeS: Time, Elapsed [seconds]",), times=None, **header):
    # cioos-siooc/ocean-data-parser: tests/parsers_test_files/seabird/ctd/*.cnv
    # pyoceans/python-ctd: tests/data/CTD_with_sigma_e00.cnv
    columns = [times or [f"{65 * i:.3f}" for i in range(N)]] if names else []
    columns += [LAT, LON] if positions else []
    columns += [TEMP, [c or "-9.990e-29" for c in CHL], ["0.000e+00"] * N]
    named = [*names, *(["latitude: Latitude [deg]", "longitude: Longitude [deg]"] if positions else []),
             "t090C: Temperature [ITS-90, deg C]", "flECO-AFL: Fluorescence, WET Labs ECO-AFL/FL [mg/m^3]",
             "flag:  0.000e+00"]  # fmt: skip
    stated = {"interval": "seconds: 65", "start_time": "Jul 14 2026 09:00:00 [NMEA time, header]", **header}
    top = ["* Sea-Bird SBE 21 Data File:", "* FileName = C:\\Data\\lake.hex", "* NMEA Latitude = 47 18.60 N",
           "* NMEA Longitude = 008 30.60 W", f"# nquan = {len(named)}", f"# nvalues = {N}",
           "# units = specified"]  # fmt: skip
    top += [f"# name {i} = {name}" for i, name in enumerate(named)]
    top += [f"# {key} = {value}" for key, value in stated.items()]
    top += ["# bad_flag = -9.990e-29", "# file_type = ascii", "*END*"]
    rows = ["".join(f"{cell:>12}" for cell in row) for row in zip(*columns, strict=True)]
    return "\r\n".join([*top, *rows]) + "\r\n"


def seabird():
    return write(cnv(), "lake.cnv"), "latitude", "longitude", "t090C", "flECO-AFL"


def rdb():  # DOI-USGS/dataRetrieval: inst/extdata/RDB1Example.txt
    names = ["agency_cd", "site_no", "station_nm", "dec_lat_va", "dec_long_va", "dec_coord_datum_cd",
             "datetime", "tz_cd", "p00010", "p32210", "p32210_cd"]  # fmt: skip
    widths = ["5s", "15s", "50s", "16s", "16s", "10s", "20d", "6s", "14n", "14n", "10s"]
    rows = [
        ["USGS", f"9{i:07d}", f"#{i} BUOY, NORTH", lat, lon, "NAD83",
         f"{t - timedelta(hours=5):%Y-%m-%d %H:%M}", "EST", temp, c, "A"]
        for i, (t, lat, lon, temp, c) in enumerate(zip(AT, LAT, LON, TEMP, CHL, strict=True))
    ]  # fmt: skip
    top = '# ---- WARNING ----\r\n# Data for 5" pipes\r\n#\r\n'
    more = "# Data for the next site\r\n"  # services put the header in front of each site
    body = (
        lines(names, widths, *rows[:6], between="\t") + more + lines(names, widths, *rows[6:], between="\t")
    )
    return write(top + body, "sites.rdb"), "dec_lat_va", "dec_long_va", "p00010", "p32210"


def erddap(between=",", unit="1e-3", names=None):  # as ERDDAP's tabledap documentation describes it
    names = names or ["time", "latitude", "longitude", "temperature", "chlorophyll"]
    units = [["UTC", "degrees_north", "degrees_east", unit, "mg m-3"]] if "(" not in names[0] else []
    rows = [
        [f"{t:%Y-%m-%dT%H:%M:%SZ}", lat, lon, temp, c or "NaN"]
        for t, lat, lon, temp, c in zip(AT, LAT, LON, TEMP, CHL, strict=True)
    ]
    return write(lines(names, *units, *rows, between=between)), *names[1:]


def erddap_p():
    return erddap(names=["time (UTC)", "latitude (degrees_north)", "longitude (degrees_east)",
                         "temperature (degree_C)", "chlorophyll (mg m-3)"])  # fmt: skip


def odv(flags=("1", "1")):  # smieruch/beacon_odv_exporter: README.md, for its first columns
    names = ["Cruise", "Station", "Type", "yyyy-mm-ddThh:mm:ss.sss", "Longitude [degrees_east]",
             "Latitude [degrees_north]", "Bot. Depth [m]", "Depth [m]", "QV:SEADATANET", "Temperature [degC]",
             "QV:SEADATANET", "Chl [mg/m^3]", "QV:SEADATANET"]  # fmt: skip
    top = ["//<Encoding>UTF-8</Encoding>", "//<Version>ODV Spreadsheet V4.6</Version>",
           "//<MissingValueIndicators>-1e10</MissingValueIndicators>", "//"]  # fmt: skip
    rows = []
    for i, (t, lat, lon, temp, c) in enumerate(zip(AT, LAT, LON, TEMP, CHL, strict=True)):
        meta = ["C1", f"S{i}", "C", f"{t:%Y-%m-%dT%H:%M:%S.000}", lon, lat, "30"]
        rows.append([*meta, "1", "1", temp, "1", c or "-1e10", flags[0]])
        rows.append([*[""] * 7, "2", "1", temp, "1", c or "-1e10", flags[1]])
    return write("\r\n".join(top) + "\r\n" + lines(names, *rows, between="\t"), "odv.txt"), *(
        names[i] for i in (5, 4, 9, 11)
    )


def castaway(start=("47.31", "8.51")):  # pyoceans/python-ctd: tests/data/castaway_data.csv
    top = ["% Device,CC1449004", "% Cast time (UTC),2026-07-14 09:00:00",
           "% Cast time (local),2026-07-14 11:00:00", "% Location source,GPS", "% Default latitude,32",
           f"% Start latitude,{start[0]}",
           f"% Start longitude,{start[1]}", "% End latitude,47.4", "% "]  # fmt: skip
    names = ["Pressure (Decibar)", "Depth (Meter)", "Temperature (Celsius)", "Chl (Microgram per Liter)"]
    rows = [[0.15 + i, 0.149 + i, temp, c] for i, (temp, c) in enumerate(zip(TEMP, CHL, strict=True))]
    return write("\r\n".join(top) + "\r\n" + lines(names, *rows), "cast.csv"), "", "", names[2], names[3]


MANY = [korexo, prodss, vusitu_csv, vusitu_html, vusitu_zip, hobo, hobo_of_excel, toa5, toa5_of_excel,
        seabird, rdb, erddap, erddap_p]  # fmt: skip


def numbers(cells):
    return [float(cell) if cell else None for cell in cells]


def readings(table, column):
    return [None if math.isnan(value) else value for value in table.numbers(column).tolist()]


@pytest.mark.parametrize("form", MANY)
def test_a_form_gives_the_readings_of_the_plain_csv_to_the_last_digit(form):
    path, *columns = form()
    table = open_table(path)
    assert len(table) == N
    for name, column in zip(NUMBERS, columns, strict=True):
        assert readings(table, column) == numbers(NUMBERS[name]), name
    assert table.form in {each.name for each in FORMS}
    assert any(note.startswith(table.form) for note in table.notes)


UNITS = {korexo: ("°C", "µg/L"), prodss: ("°C", "ug/L"), vusitu_csv: ("°C", "µg/L"),
         vusitu_html: ("°C", "µg/L"), hobo: ("°C", "µg/L"), hobo_of_excel: ("°C", "µg/L"),
         toa5: ("Deg C", "ug/L"), toa5_of_excel: ("Deg C", "ug/L"),
         seabird: ("deg C", "mg/m^3"), erddap: ("1e-3", "mg m-3"), erddap_p: ("degree_C", "mg m-3"),
         odv: ("degC", "mg/m^3"), castaway: ("Celsius", "Microgram per Liter")}  # fmt: skip


@pytest.mark.parametrize("form", UNITS)
def test_a_form_s_units_are_those_of_its_header(form):
    path, *_, temp, chl = form()
    table = open_table(path)
    assert (table.units[temp], table.units[chl]) == UNITS[form]


def test_rows_of_statistics_and_serial_numbers_are_left_out_and_listed():
    notes = " ".join(open_table(korexo()[0]).notes)
    assert "read as UTF-16" in notes
    assert "left out: MEAN VALUE (line 6)" in notes
    assert "left out: STANDARD DEVIATION (line 19)" in notes
    assert "left out: SENSOR SERIAL NUMBER (line 21)" in notes
    assert "left out: the column names again (line 22)" in notes


def test_the_creation_date_of_an_export_is_kept_for_the_order_of_day_and_month():
    assert "FILE CREATED:,14/07/2026 18:12:33" in open_table(korexo()[0]).comments


def test_fractions_of_seconds_are_part_of_the_time():
    path = korexo()[0]
    path.write_bytes(path.read_bytes().decode("utf-16").replace(",0.0,MID", ",0.5,MID").encode("utf-16"))
    assert open_table(path).cells["Time (HH:mm:ss)"][0] == "09:00:00.500"


def test_values_with_an_error_flag_in_a_report_are_left_out_and_others_are_counted():
    table = open_table(vusitu_html("3")[0])
    assert not any(table.cells[VUSITU_NAMES[2]])
    assert "12 values with an error, left out" in table.notes
    assert "12 values while the sensor warmed up, and used" in open_table(vusitu_html("4")[0]).notes


def test_a_report_whose_rows_have_a_class_alone_is_read():
    path = vusitu_html()[0]
    whole = open_table(path)
    page = path.read_text(encoding="utf-8").replace(' isi-data-row=""', "").replace(' isi-data-table=""', "")
    path.write_text(page, encoding="utf-8")
    assert open_table(path).cells == whole.cells


@pytest.mark.parametrize("form", [vusitu_csv, vusitu_html, hobo, hobo_of_excel])
def test_an_offset_in_a_header_is_that_of_the_times(form):
    table = open_table(form()[0])
    (time,) = [name for name, role in table.roles.items() if role == "time"]
    if form in (hobo, hobo_of_excel):
        assert table.units[time] == "UTC+02:00"
    else:
        assert times_in(table, time).seconds.tolist() == [at.timestamp() for at in AT]


@pytest.mark.parametrize(
    ("name", "offset"),
    [("Date-Time (CEST)", "+02:00"), ("Date Time, GMT -0700", "-07:00"), ("Date-Time (UTC)", "+00:00"),
     ("Date Time, GMT+05:30", "+05:30")],
)  # fmt: skip
def test_a_hobo_s_time_zone_is_an_offset(name, offset):
    rows = [[1, "2026-07-14 09:00:00", 18.1], [2, "2026-07-14 09:00:01", 18]]
    table = open_table(write(quoted(["#", name, "Temp (°C)"]) + lines(*rows)))
    assert table.cells[name][0] == f"2026-07-14 09:00:00{offset}"


def test_an_unknown_time_zone_is_refused_by_name():
    path = write(quoted(["#", "Date-Time (QRST)", "Temp (°C)"]) + lines([1, "2026-07-14 09:00:00", 18.1]))
    with pytest.raises(InputError, match="the time zone QRST is not known"):
        open_table(path)


def test_record_numbers_and_events_of_a_form_are_no_quantities():
    table = open_table(hobo()[0])
    assert table.roles["#"] == "count"
    assert table.roles[HOBO[6]] == "text"
    assert open_table(toa5()[0]).roles["RECORD"] == "count"


def test_a_column_is_found_without_the_serial_numbers_behind_its_name():
    table = open_table(hobo()[0])
    assert table.column("Chl, µg/L") == table.column("chl") == HOBO[3]


# -- Campbell -------------------------------------------------------------------------------------------


def test_a_toa5_header_that_lost_a_line_is_refused():
    path = write(quoted(*TOA5[:2], TOA5[3]) + lines(*toa5_rows("NAN")), "lake.dat")
    with pytest.raises(
        InputError, match=r"the line of (units|processing) below the column names is missing"
    ) as caught:
        open_table(path)
    assert "line 4" in str(caught.value) or "line 3" in str(caught.value)
    assert "do not edit it in a spreadsheet" in str(caught.value)


@pytest.mark.parametrize("kept", [1, 2, 3, 4])
def test_a_toa5_file_that_ends_in_its_header_is_refused(kept):
    with pytest.raises(InputError, match=r"missing|ends within its header|no readings"):
        open_table(write(quoted(*TOA5[:kept]), "lake.dat"))


def test_what_toa5_marks_as_missing_is_said():
    table = open_table(toa5_of_excel()[0])
    assert table.missing == (-7999.0,)
    assert "-7999 stands for no value" in table.notes
    assert "Campbell TOA5: units from line 3" in table.notes


# -- Sea-Bird -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "times", "header"),
    [
        ("timeS: Time, Elapsed [seconds]", [f"{65 * i}" for i in range(N)], {}),
        ("timeM: Time, Elapsed [minutes]", [f"{65 * i / 60:.6f}" for i in range(N)], {}),
        ("timeJ: Julian Days", [f"{195.375 + 65 * i / 86400:.9f}" for i in range(N)], {}),
        ("timeQ: Time, NMEA [seconds]", [f"{837334800 + 65 * i}" for i in range(N)], {}),
        ("timeY: Time, System [seconds]", [f"{1784019600 + 65 * i}" for i in range(N)], {}),
        ("timeK: Time, Instrument [seconds]", [f"{837334800 + 65 * i}" for i in range(N)], {}),
    ],
)
def test_the_times_of_scans_are_written_in_full(name, times, header):
    table = open_table(write(cnv(names=(name,), times=times, **header), "lake.cnv"))
    column = name.split(":")[0]
    assert table.roles[column] == "time"
    assert [datetime.fromisoformat(cell) for cell in table.cells[column]] == AT
    assert times_in(table, column).seconds.tolist() == [at.timestamp() for at in AT]


def test_a_start_time_of_the_instrument_s_clock_is_not_said_to_be_utc():
    table = open_table(
        write(cnv(start_time="Jul 14 2026 09:00:00 [Instrument's time stamp, header]"), "lake.cnv")
    )
    assert table.cells["timeS"][1] == "2026-07-14T09:01:05"


def test_scans_in_equal_intervals_have_times():
    table = open_table(write(cnv(names=()), "lake.cnv"))
    assert [datetime.fromisoformat(cell) for cell in table.cells["time"]] == AT


def test_scans_that_were_left_out_keep_their_times():
    scans = [str(3 * i + 241) for i in range(N)]
    table = open_table(
        write(cnv(names=("scan: Scan Count",), times=scans, interval="seconds: 0.25"), "lake.cnv")
    )
    assert table.cells["time"][:2] == ("2026-07-14T09:01:00Z", "2026-07-14T09:01:00.750Z")
    binned = open_table(write(cnv(interval="decibars: 1", names=()), "lake.cnv"))
    assert "time" not in binned.names


def test_the_position_in_a_header_is_that_of_all_scans():
    table = open_table(write(cnv(positions=False), "lake.cnv"))
    assert set(table.cells["latitude"]) == {"47 18.60 N"}
    assert set(table.cells["longitude"]) == {"008 30.60 W"}
    assert "longitude is 008 30.60 W in all rows, as the header says" in table.notes


def test_bad_scans_and_missing_ones_are_said():
    text = cnv().replace("0.000e+00\r\n", "-9.990e-29\r\n", 1).replace(f"nvalues = {N}", "nvalues = 99")
    flagged = text.split("*END*\r\n")
    rows = flagged[1].split("\r\n")
    rows[2] = rows[2].replace("0.000e+00", "-9.990e-29")
    table = open_table(
        write(
            "*END*\r\n".join(
                [cnv().replace(f"nvalues = {N}", "nvalues = 99").split("*END*")[0], "\r\n".join(rows)]
            ),
            "lake.cnv",
        )
    )
    assert "the header announces 99 scans, the file holds 12" in table.notes
    assert any("marked as bad left out" in note for note in table.notes)
    assert table.missing == (-9.99e-29,)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (cnv().replace("file_type = ascii", "file_type = binary"), "the scans of this .cnv file are binary"),
        (cnv().split("*END*")[0], "the file ends within its header"),
        (cnv().split("*END*")[0] + "*END*\r\n", "no readings|empty"),
    ],
    ids=["binary", "cut header", "no scans"],
)
def test_a_cnv_file_without_scans_in_text_is_refused(text, part):
    with pytest.raises(InputError, match=part):
        open_table(write(text, "lake.cnv"))


# -- archives -------------------------------------------------------------------------------------------


def test_local_times_of_an_archive_take_the_offset_of_their_zone():
    table = open_table(rdb()[0])
    assert table.cells["datetime"][0] == "2026-07-14 04:00-05:00"
    assert times_in(table, "datetime").seconds[0] == START.timestamp()
    assert "positions in NAD83, within 2 m of WGS 84" in table.notes
    assert table.cells["station_nm"][3] == "#3 BUOY, NORTH"


def test_positions_in_an_old_datum_are_named():
    path = rdb()[0]
    path.write_bytes(path.read_bytes().replace(b"NAD83", b"NAD27"))
    assert "positions in NAD27, up to 200 m from WGS 84; convert them first" in open_table(path).notes


def test_a_station_s_position_applies_to_all_of_its_rows():
    path, lat, lon, _, chl = odv()
    table = open_table(path)
    twice = [cell for cell in LAT for _ in range(2)]
    assert readings(table, lat) == numbers(twice)
    assert readings(table, lon) == numbers([cell for cell in LON for _ in range(2)])
    assert readings(table, chl) == numbers([cell for cell in CHL for _ in range(2)])
    assert table.missing == (-1e10,)
    assert "12 rows with the position and time of the station's first row" in table.notes
    assert table.roles[table.names[8]] == "flag"


def test_values_that_a_quality_flag_calls_bad_are_left_out():
    path, *_, chl = odv(flags=("4", "3"))
    table = open_table(path)
    assert readings(table, chl)[:2] == [None, float(CHL[0])]
    assert "12 values of Chl [mg/m^3] flagged as bad left out (SEADATANET)" in table.notes
    assert "12 values of Chl [mg/m^3] flagged as doubtful (SEADATANET), and used" in table.notes


def test_a_cast_has_one_position_and_time():
    path, _, _, temp, _ = castaway()
    table = open_table(path)
    assert readings(table, temp) == numbers(TEMP)
    assert set(table.cells["Latitude"]) == {"47.31"}
    assert set(table.cells["Longitude"]) == {"8.51"}
    assert set(table.cells["time"]) == {"2026-07-14T09:00:00Z"}
    assert "Latitude" not in open_table(castaway(("", ""))[0]).names, "the default latitude is none"


WQP = ["ActivityTypeCode", "ActivityStartDate", "ActivityStartTime/Time", "ActivityStartTime/TimeZoneCode",
       "MonitoringLocationIdentifier", "ResultDetectionConditionText", "CharacteristicName",
       "ResultSampleFractionText", "ResultMeasureValue", "ResultMeasure/MeasureUnitCode",
       "DetectionQuantitationLimitMeasure/MeasureValue",
       "ActivityLocation/LatitudeMeasure", "ActivityLocation/LongitudeMeasure"]  # fmt: skip


def portal(
    *extra,
):  # columns of its profile resultPhysChem
    rows = []
    for i, (t, lat, lon, temp, c) in enumerate(zip(AT, LAT, LON, TEMP, CHL, strict=True)):
        first = ["Sample-Routine", f"{t:%Y-%m-%d}", f"{t - timedelta(hours=4):%H:%M:%S}", "EDT", f"USGS-{i}"]
        rows.append([*first, "", '"Temperature, water"', "", temp, "deg C", "", lat, lon])
        rows.append([*first, "", "Chlorophyll a", "Total", c, "ug/l", "", lat, lon])
        rows.append([*first, "", "Phosphorus", "Total", "0.02", "mg/l", "", lat, lon])
        rows.append([*first, "", "Phosphorus", "Dissolved", "0.01", "mg/l", "", lat, lon])
    return write(lines(WQP, *rows, *extra), "resultphyschem.csv")


def test_one_of_several_quantities_in_a_column_must_be_chosen():
    path = portal()
    with pytest.raises(InputError) as caught:
        open_table(path)
    said = str(caught.value)
    assert "the table holds 4 quantities in one column" in said
    for kind in ("Temperature, water [deg C] (12 rows)", "Chlorophyll a (Total) [ug/l] (11 rows)",
                 "Phosphorus (Dissolved) [mg/l] (12 rows)"):  # fmt: skip
        assert kind in said
    assert "choose one with --quantity" in said


@pytest.mark.parametrize(
    ("quantity", "cells", "unit"),
    [("temperature, water", TEMP, "deg C"), ("Chlorophyll a", CHL, "ug/l"),
     ("Phosphorus (Total)", ["0.02"] * N, "mg/l"), ("Phosphorus (Dissolved) [mg/l]", ["0.01"] * N, "mg/l")],
)  # fmt: skip
def test_a_quantity_in_long_form_gives_the_readings_of_the_plain_csv(quantity, cells, unit):
    table = open_table(portal(), quantity=quantity)
    name = next(name for name in ("Temperature, water", "Chlorophyll a", "Phosphorus") if name in table.names)
    assert readings(table, name) == numbers(cells)
    assert table.units[name] == unit
    assert readings(table, WQP[11]) == numbers(LAT)
    assert times_in(table, "ActivityStartTime/Time").seconds[0] == START.timestamp()


@pytest.mark.parametrize(("quantity", "part"), [("Phosphorus", "may be 2"), ("Nitrate", "is none")])
def test_a_quantity_that_is_not_clear_is_asked_about(quantity, part):
    with pytest.raises(InputError, match=part):
        open_table(portal(), quantity=quantity)


def test_results_below_a_limit_and_samples_for_quality_control_are_no_plain_values():
    first = ["Sample-Routine", "2026-07-14", "05:20:00", "EDT", "USGS-77"]
    below = [*first, "Not Detected", "Chlorophyll a", "Total", "", "", "0.5", "47.3", "8.5"]
    blank = [
        "Quality Control Sample-Field Blank",
        *first[1:],
        "",
        "Chlorophyll a",
        "Total",
        "0.1",
        "ug/l",
        "",
        "47.3",
        "8.5",
    ]
    table = open_table(portal(below, blank), quantity="Chlorophyll a")
    assert table.cells["Chlorophyll a"][-1] == "<0.5"
    assert "1 sample for quality control left out" in table.notes


def test_a_table_with_a_column_per_quantity_takes_no_quantity():
    with pytest.raises(InputError, match="the table has a column for each quantity"):
        open_table(erddap()[0], quantity="chlorophyll")


def test_any_table_in_long_form_asks_for_its_quantity():
    path = write(
        "site,lat,lon,parameter,value,unit\nA,47.1,8.1,pH,7.1,\nA,47.1,8.1,Temp,18,degC\nB,47.2,8.2,pH,7.2,\n"
    )
    with pytest.raises(InputError, match="2 quantities in one column"):
        open_table(path)
    assert readings(open_table(path, quantity="pH"), "pH") == [7.1, 7.2]


# -- what a spreadsheet, a copy or a crash does to a form -------------------------------------------------


def test_a_column_that_was_added_to_an_export_is_read_beside_the_others():
    path, *columns = korexo()
    more = {"Date (": ",remark", "07/14/": ",calm"}
    rows = path.read_bytes().decode("utf-16").split("\r\n")
    edited = [row + more.get(row[:6], "") for row in rows]
    table = open_table(write("\r\n".join(edited)))
    assert set(table.cells["remark"]) == {"calm"}
    assert readings(table, columns[3]) == numbers(CHL)


@pytest.mark.parametrize("form", [korexo, hobo, toa5, seabird, rdb, erddap, odv, castaway, vusitu_csv])
def test_a_file_that_is_cut_off_anywhere_gives_its_whole_rows_or_an_error(form):
    path, *_, chl = form()
    content, whole = path.read_bytes(), open_table(path)
    wanted = readings(whole, chl)
    for kept in range(len(content) // 12, len(content), max(1, len(content) // 40)):
        path.write_bytes(content[:kept])
        try:
            table = open_table(path)
        except InputError:
            continue
        if chl in table.names and form is not rdb:
            found = readings(table, chl)[:-1]  # whether the last number is whole can't be seen
            assert found == wanted[: len(found)]


def test_a_line_that_was_cut_off_is_left_out_and_named():
    path, *_ = erddap()
    path.write_bytes(path.read_bytes()[:-20])
    table = open_table(path)
    assert len(table) == N - 1
    assert "the file ends within line 14, which is left out" in table.notes


@pytest.mark.parametrize(
    ("first", "second"),
    [(toa5, erddap), (korexo, hobo), (korexo, vusitu_csv), (erddap, korexo), (hobo, toa5), (vusitu_csv, hobo),
     (rdb, odv), (castaway, erddap_p), (prodss, korexo), (seabird, toa5)],
)  # fmt: skip
def test_two_forms_in_one_file_are_refused(first, second):
    def text(form):
        content = form()[0].read_bytes()
        return content.decode("utf-16" if content[:2] == b"\xff\xfe" else "utf-8-sig")

    with pytest.raises(InputError, match=r"another table begins|two files seem to be in one|the line has"):
        open_table(write(text(first) + text(second)))


def test_columns_that_are_named_out_of_order_are_refused():
    text = "\r\n".join(line for line in cnv().split("\r\n") if not line.startswith("# name 1 ="))
    with pytest.raises(InputError, match="named in another order, or some are missing"):
        open_table(write(text, "lake.cnv"))


def test_numbers_that_touch_each_other_are_split_by_the_width_of_columns():
    head = cnv(names=(), positions=False).split("*END*")[0] + "*END*\r\n"
    rows = [
        "".join(f"{cell:>11}" for cell in row)
        for row in zip(TEMP, ["-9.9900e-29"] * N, ["0.000e+00"] * N, strict=True)
    ]
    table = open_table(write(head + "\r\n".join(rows) + "\r\n", "lake.cnv"))
    assert readings(table, "t090C") == numbers(TEMP)
    assert set(table.cells["flECO-AFL"]) == {"-9.9900e-29"}
    with pytest.raises(InputError, match="the line has 2 cells"):
        open_table(write(head + "\r\n".join([*rows, " 18.000 6.2", rows[0]]) + "\r\n", "lake.cnv"))


@settings(max_examples=20)
@given(
    st.lists(st.tuples(st.integers(0, 60), st.sampled_from(["delete", "twice", "cut", "mark"])), max_size=4)
)
@pytest.mark.parametrize("form", [korexo, hobo, toa5, seabird, rdb, odv, vusitu_html])
def test_a_form_with_changed_lines_is_read_or_refused(form, changes):
    path = form()[0]
    content = path.read_bytes()
    encoding = "utf-16" if content[:2] == b"\xff\xfe" else "utf-8"
    changed = content.decode(encoding).split("\n")
    for at, what in changes:
        line = changed[at % len(changed)]
        new = {"delete": [], "twice": [line, line], "cut": [line[: at // 2]], "mark": [line + '"']}[what]
        changed[at % len(changed) : at % len(changed) + 1] = new or [""]
    path.write_bytes("\n".join(changed).encode(encoding))
    try:
        assert len(open_table(path)) > 0
    except InputError:
        return


@pytest.mark.parametrize("interval", ["-inf", "99999999999999999999", "1e-400"])
def test_an_interval_beyond_all_calendars_gives_no_times(interval):
    table = open_table(write(cnv(names=(), interval=f"seconds: {interval}"), "lake.cnv"))
    assert set(table.cells["time"][1:]) <= {"", "2026-07-14T09:00:00+00:00", "2026-07-14T09:00:00Z"}


def test_a_day_of_the_year_beyond_all_calendars_is_no_time():
    days = ["195.375"] * (N - 1) + ["9e99"]
    table = open_table(write(cnv(names=("timeJ: Julian Days",), times=days), "lake.cnv"))
    assert table.cells["timeJ"][-1] == ""


def test_a_bad_flag_that_is_no_number_is_refused():
    text = cnv().replace("bad_flag = -9.990e-29", "bad_flag = -9.990einf")
    with pytest.raises(InputError, match=r"bad_flag is '-9\.990einf'"):
        open_table(write(text, "lake.cnv"))

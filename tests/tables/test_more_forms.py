"""Texts of more instruments and archives: read right, or refused by name.

Where a file in a public repository was read to compare, its path stands beside the form: most are in
cioos-siooc/ocean-data-parser under tests/parsers_test_files ("odp"). All data are invented.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fieldbo.errors import InputError
from fieldbo.tables.opening import open_table
from fieldbo.tables.times import times_in

N = 8
AT = [datetime(2026, 7, 14, 9, 0, 0, tzinfo=UTC) + timedelta(seconds=10 * i) for i in range(N)]
TEMP = [f"{18 + 0.013 * i * i:.3f}" for i in range(N)]
DEPTH = [f"{0.5 * i:.2f}" for i in range(N)]
NUMBERS = [float(cell) for cell in TEMP]


@pytest.fixture(autouse=True)
def _place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def written(*lines, encoding="utf-8"):
    path = Path("log.txt")
    path.write_bytes(("\r\n".join(lines) + "\r\n").encode(encoding))
    return path


def rows(*cells, between=",", hours=0):
    """Return a line per reading; `{t:...}`, `{temp}`, `{depth}` and `{i}` in the cells are filled in."""
    values = zip(AT, TEMP, DEPTH, strict=True)
    return [
        between.join(cells).format(t=t + timedelta(hours=hours), temp=temp, depth=depth, i=i)
        for i, (t, temp, depth) in enumerate(values)
    ]


FORMS = {
    # odp: star_oddi/S11412/1S11412.DAT
    "Star-Oddi": (
        ["#B\tCreated:\t14.07.2026 12:49:20", "##\tVersion\tSeaStar\t8.74", "#6\tDecimal point:\t,",
         "##\tAxis\t0\tTemperature(°C)\tclRed\tFALSE", "##\tAxis\t1\tDepth(m)\tclGreen\tFALSE",
         "#D\tData:\t8\t14.07.2026 09:00:00\t14.07.2026 10:00:00",
         *(row.replace(".", ",").replace("_", ".") for row in
           rows("{i}", "{t:%d_%m_%Y %H:%M:%S}", "{temp}", "{depth}", between="\t"))],
        "Star-Oddi SeaStar", "Temperature", "°C", "time",
    ),
    # odp: van_essen_instruments/ctd_divers/VEI_X2427_220223095229_X2427.MON
    "Van Essen": (
        ["Data file for DataLogger.", "=" * 78, "==========    BEGINNING OF DATA     ==========",
         "[Series settings]", "  Instrument number       =          UTC-8", "[Channel 1 from data header]",
         "  Identification          =TEMPERATURE", "  Reference level         =-20.000   °C",
         "  Range                   =100.000   °C", "[Channel 2 from data header]",
         "  Identification          =1: DEPTH", "  Reference level         =4.0000    m", "[Data]", "8",
         *rows("{t:%Y/%m/%d %H:%M:%S}.0", "{temp}", "{depth}", between="      ", hours=-8),
         "END OF DATA FILE OF DATALOGGER FOR WINDOWS"],
        "Van Essen Diver", "TEMPERATURE", "°C", "time",
    ),
    "Van Essen of the logger": (
        ["=======    BEGINNING OF DATA     =======", "[Logger settings]", "  Number of channels       =2", "",
         "[Channel 1]", "  Identification           =TEMPERATURE", "  Reference level          =-20.00    °C",
         "[Channel 2]", "  Identification           =PRESSURE", "  Reference level          =0.000     cmH2O",
         "[Series settings]", "  Instrument number        =          UTC-8", "[Data]", "8",
         *rows("{t:%Y/%m/%d %H:%M:%S}.0", "{temp}", "{depth}", between="      ", hours=-8)],
        "Van Essen Diver", "TEMPERATURE", "°C", "time",
    ),
    # odp: electricblue/04E4 DB00 2E39 0B-20210701 174652.csv
    "EnvLogger": (
        ["------------,--------", "www.electricblue.eu, Portugal", "EnvLogger version, 2.4",
         "serial number, 04E4", "temperature, degrees Celsius", "time zone, UTC+0200", "lat, 47.31",
         "long, -8.51", "accuracy (m), 65.0", "------------,--------", "time,temp",
         *rows("{t:%Y-%m-%d %H:%M:%S}", "{temp}", hours=2)],
        "ElectricBlue EnvLogger", "temp", None, "time",
    ),
    # pyoceans/python-ctd: tests/data/XBT.EDF
    "MK21": (
        ["// MK21 EXPORT DATA FILE  (EDF)", "// Launch Information", "Latitude         :  47 18.60N",
         "Longitude        :  8 30.60W", "// Data Fields", "Field1           :  Time (sec)",
         "Field2           :  Temperature (°C)", "Field3           :  Depth (m)", "// Data",
         *rows("{i}.0", "{temp}", "{depth}", between="\t")],
        "Sippican MK21", "Temperature", "°C", None,
    ),
    "Solinst": (
        ["Serial_number:", "2051234", "Location:", "Buoy", "LEVEL", "UNIT: ft", "Offset: 0.0 m",
         "TEMPERATURE", "UNIT: °C", "Date,Time,ms,LEVEL,TEMPERATURE",
         *rows("{t:%Y/%m/%d}", "{t:%H:%M:%S}", "0", "1.2", "{temp}")],
        "Solinst Levelogger", "TEMPERATURE", "°C", "Date",
    ),
    "Hydrolab": (
        ['"Hydrolab MS5 00012345"', '"Log File Name : lake"', '"Interval (HHMMSS) : 000010"', "",
         '"Date","Time","Temp","Dep25"', '"MMDDYY","HHMMSS","°C","meters"', "",
         *rows("{t:%m%d%y}", "{t:%H%M%S}", "{temp}", "{depth}"), '"Recovery finished at 071426 100000"'],
        "OTT Hydrolab", "Temp", "°C", "Date",
    ),
    "Hydrolab without its name": (
        ["Log File Name : LAKE", "Setup Date (MMDDYY) : 071326", "Setup Time (HHMMSS) : 160233", "",
         '"Date","Time","Temp","","Dep25",""', '"MMDDYY","HHMMSS","°C","","meters",""',
         *rows("{t:%m%d%y}", "{t:%H%M%S}", "{temp}", '""', "{depth}", '""'), '"Power loss",071426,094000',
         '"Recovery finished at 071426 100000"'],
        "OTT Hydrolab", "Temp", "°C", "Date",
    ),
    "LI-COR": (
        ["Model:\tLI-7810", "SN:\tTG10-01234", "Timezone:\tEurope/Zurich",
         "DATAH\tSECONDS\tNDX\tREMARK\tDATE\tTIME\tTEMP", "DATAU\tsecs\tindex\t\tdate\ttime\tdegC",
         *(f"DATA\t{int(t.timestamp())}\t{i}\t\t2026-07-14\t11:00:00\t{temp}"
           for i, (t, temp) in enumerate(zip(AT, TEMP, strict=True)))],
        "LI-COR", "TEMP", "degC", "SECONDS",
    ),
    "WHP-Exchange": (
        ["CTD,20260714SIO", "NUMBER_HEADERS = 4", "DATE = 20260714", "LATITUDE = 47.31", "LONGITUDE = 8.51",
         "CTDPRS,CTDPRS_FLAG_W,CTDTMP,CTDTMP_FLAG_W", "DBAR,,ITS-90,", *rows("{depth}", "2", "{temp}", "2"),
         "END_DATA"],
        "WHP-Exchange", "CTDTMP", "ITS-90", None,
    ),
    "RBR text": (
        ["Model=XR-420", "Serial=080217", "Channel[1].name=Temperature", "NumberOfSamples=8", "",
         "         Date & Time              Temp       Depth",
         *rows("{t:%d-%b-%Y %H:%M:%S}.000", "{temp}", "{depth}", between="      ")],
        "", "Temp", None, "Date",
    ),
    "RBR Ruskin": (
        ['"Time","Temperature (°C)","Depth (m)"', *rows("{t:%Y-%m-%d %H:%M:%S}.000", "{temp}", "{depth}")],
        "", "Temperature (°C)", "°C", "Time",
    ),
    "AML": (
        ["[cast header]", "InstrumentSn=008123", "Latitude=47.31", "Longitude=8.51", "[data]",
         "Date,Time,Depth (m),Temp (C)", *rows("{t:%Y/%m/%d}", "{t:%H:%M:%S}.00", "{depth}", "{temp}")],
        "", "Temp (C)", "C", "Date",
    ),
    "Valeport": (
        ["[HEADER]", "Model=SWiFT CTD", "[GPS]", "Latitude=47.31", "Longitude=8.51", "[DATA]",
         "Time\tDepth (Meter)\tTemperature (C)",
         *rows("{t:%Y-%m-%d %H:%M:%S}.000", "{depth}", "{temp}", between="\t")],
        "", "Temperature (C)", "C", "Time",
    ),
    # odp: pme/minidot/2022-03-01 233900Z.txt
    "miniDOT": (
        ["7450-647102", "OS REV: 1.05 Sensor Cal: 1618335091", "Time (sec),  T (deg C),  DO (mg/l)",
         *(f"{int(t.timestamp())}, +{temp},+10.4" for t, temp in zip(AT, TEMP, strict=True))],
        "", "T (deg C)", "deg C", "Time (sec)",
    ),
    "miniDOT, concatenated": (
        ["MiniDOT Logger Concatenated Data File", "Sensor:  7450-647102", "",
         "  Unix Timestamp,     UTC_Date_&_Time,    Temperature,      Q",
         "        (Second),              (none),        (deg C), (none)",
         *(f"   {int(t.timestamp())},  {t:%Y-%m-%d %H:%M:%S},    {temp},   0.98"
           for t, temp in zip(AT, TEMP, strict=True))],
        "", "Temperature", "deg C", "UTC_Date_&_Time",
    ),
    "bbe FluoroProbe": (
        ["Date/Time\tGreen Algae\tDepth\tTemp. Sample", "\tµg/l\tm\t°C",
         *rows("{t:%m/%d/%Y %I:%M:%S %p}", "1.2", "{depth}", "{temp}", between="\t")],
        "", "Temp. Sample", "°C", "Date/Time",
    ),
    "Eureka Manta": (
        ["Manta2 Logged Data", "SN,MT05110123", "DATE,TIME,Temp C,Depth_m",
         *rows("{t:%m/%d/%Y}", "{t:%H:%M:%S}", "{temp}", "{depth}")],
        "", "Temp C", "C", "DATE",
    ),
    "nke": (
        ["Date (UTC)\tHeure\tTemperature(°C)\tPression(m)",
         *(row.replace(".", ",") for row in
           rows("{t:%d/%m/%Y}", "{t:%H:%M:%S}", "{temp}", "{depth}", between="\t"))],
        "", "Temperature(°C)", "°C", "Date (UTC)",
    ),
    "Idronaut": (
        ["OCEAN SEVEN 316Plus  S/N 0123", "Date & Time  Temp  Press",
         *rows("{t:%d-%m-%Y %H:%M:%S}.00", "{temp}", "{depth}", between="   ")],
        "", "Temp", None, "Date",
    ),
    # odp: amundsen/11927/1304_112.int
    "Amundsen": (
        ["% Cruise_Number: 1304", "    Pres     Temp    O2", "    ----     ----    --",
         *rows("{depth}", "{temp}", "NaN", between="     ")],
        "", "Temp", None, None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("instrument", FORMS)
def test_the_log_of_an_instrument_is_read_to_the_last_digit(instrument):
    text, form, column, unit, time = FORMS[instrument]
    table = open_table(written(*text, encoding="cp1252" if "°" in "".join(text) else "utf-8"))
    assert table.form == form
    assert table.numbers(column).tolist() == NUMBERS
    assert table.units.get(column) == unit
    if time == "time" and instrument == "Van Essen":
        assert table.cells["time"][0] == "2026-07-14 01:00:00.0-08:00"
    if time is not None and instrument != "Star-Oddi":
        assert times_in(table, time).seconds.tolist() == [at.timestamp() for at in AT]


@pytest.mark.parametrize("instrument", ["EnvLogger", "MK21", "WHP-Exchange", "AML", "Valeport"])
def test_a_position_above_the_readings_is_that_of_all(instrument):
    table = open_table(written(*FORMS[instrument][0]))
    lat, lon = (next(n for n in table.names if table.roles.get(n) == d) for d in ("latitude", "longitude"))
    assert set(table.cells[lat]) <= {"47.31", "47 18.60N"}
    assert set(table.cells[lon]) <= {"8.51", "-8.51", "8 30.60W"}
    assert any("in all rows, as the header says" in note for note in table.notes)


def test_a_position_above_a_table_that_has_its_own_or_several_of_them_say_nothing_of_its_rows():
    own = open_table(
        written("Latitude: 47.0", "Longitude: 8.0", "time,lat,lon,v", "1,47.1,8.1,3", "2,47.2,8.2,4")
    )
    assert own.names == ("time", "lat", "lon", "v")
    two = open_table(written("Latitude: 47.0", "Latitude: 48.0", "time,v", "1,3", "2,4"))
    assert two.names == ("time", "v")


def test_a_line_of_names_that_does_not_fit_the_readings_is_refused():
    with pytest.raises(InputError, match="has 5 words, the readings have 3 cells"):
        open_table(written("Water Temp Air Temp Depth", "18.1 22.5 0.5", "18.2 22.4 0.6"))
    with pytest.raises(InputError, match="no line of column names above the readings"):
        open_table(written("Survey", "47.1 8.1 3", "47.2 8.2 4", "47.3 8.3 5"))


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (["*2023/04/26 13:43:07.75", "*IOS HEADER VERSION 2.0", "*FILE", "1 2 3"], ["an IOS Shell file"]),
        (["C:\\a.bl", "RESET Jun 25 2018 20:08:55", "1, 1, Jun 25 2018 20:11:39, 2579, 2615"],
         ["bottles fired"]),
        (["* Sea-Bird SBE 9 Data File:", "    Bottle        Date      Sal00", "  1  Jun 23 2016  35.1"],
         ["bottle file (.btl)", "export the scans as .cnv"]),
        (["Report Date: 2026/7/14", "Application: WinSitu.exe", "Log Notes:", "Date and Time  Note"],
         ["Win-Situ", "as CSV"]),
        (rows("{t:%m/%d/%y}", "{t:%H:%M:%S}", "695", "50", "700", "80", between="\t"),
         ["holds numbers, not names", "insert a line"]),
    ],
    ids=["IOS Shell", "bl", "btl", "Win-Situ", "ECO raw"],
)  # fmt: skip
def test_a_log_that_is_not_read_is_refused_by_name(text, parts):
    with pytest.raises(InputError) as caught:
        open_table(written(*text))
    assert all(part in str(caught.value) for part in parts)


def test_events_of_a_hydrolab_are_left_out_with_each_of_their_lines():
    lines = FORMS["Hydrolab without its name"][0]
    notes = open_table(written(*lines[:9], '"Power loss",071426,094000', *lines[9:], encoding="cp1252")).notes
    assert [note for note in notes if "Power loss" in note] == [
        "left out: Power loss (line 10)",
        "left out: Power loss (line 16)",
    ]

"""What headers say of units, sides and directions: used, or refused by name."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldbo.domain.axes import Axis
from fieldbo.errors import InputError
from fieldbo.tables.coordinates import read_degrees
from fieldbo.tables.measures import along, lengths_of, spreads_in, values_in
from fieldbo.tables.opening import open_table
from fieldbo.tables.survey import survey_points
from fieldbo.tables.table import Table
from fieldbo.tables.units import bare, clean_unit, conversion, is_cheap, is_pressure, unit_of

# Names from exports of YSI KorEXO and ProDSS, Onset HOBO, Sea-Bird, RBR Ruskin, In-Situ VuSitu,
# Campbell loggers, ERDDAP, CastAway, AML and spreadsheets.
HEADERS = [
    ("Chlorophyll µg/L", "Chlorophyll", "µg/L", "microgram / liter"),
    ("Chlorophyll μg/L", "Chlorophyll", "μg/L", "microgram / liter"),
    ("Chlorophyll RFU", "Chlorophyll", "RFU", "RFU"),
    ("Depth m", "Depth", "m", "meter"),
    ("fDOM QSU", "fDOM", "QSU", "QSU"),
    ("nLF Cond µS/cm", "nLF Cond", "µS/cm", "microsiemens / centimeter"),
    ("ODO % sat", "ODO", "% sat", "percent"),
    ("ODO mg/L", "ODO", "mg/L", "milligram / liter"),
    ("Sal psu", "Sal", "psu", "PSU"),
    ("Turbidity FNU", "Turbidity", "FNU", "FNU"),
    ("TSS mg/L", "TSS", "mg/L", "milligram / liter"),
    ("TDS mg/L", "TDS", "mg/L", "milligram / liter"),
    ("pH", "pH", None, None),
    ("pH mV", "pH", "mV", "millivolt"),
    ("Temp °C", "Temp", "°C", "degree_Celsius"),
    ("Vertical Position m", "Vertical Position", "m", "meter"),
    ("Battery V", "Battery", "V", "volt"),
    ("Cable Pwr V", "Cable Pwr", "V", "volt"),
    ("Barometer mmHg", "Barometer", "mmHg", "millimeter_Hg"),
    ("Site Name", "Site Name", None, None),
    ("Temp, °C (LGR S/N: 20991234, SEN S/N: 20991234, LBL: bow)", "Temp", "°C", "degree_Celsius"),
    ("DO conc, mg/L (LGR S/N: 20991234, SEN S/N: 20991235)", "DO conc", "mg/L", "milligram / liter"),
    ("Abs Pres, kPa (LGR S/N: 20991234)", "Abs Pres", "kPa", "kilopascal"),
    ("Host Connected (LGR S/N: 20991234)", "Host Connected", None, None),
    ("End Of File (LGR S/N: 20991234)", "End Of File", None, None),
    ("Temperature [ITS-90, deg C]", "Temperature", "deg C", "degree_Celsius"),
    ("Salinity, Practical [PSU]", "Salinity, Practical", "PSU", "PSU"),
    ("Pressure, Strain Gauge [db]", "Pressure, Strain Gauge", "db", "decibar"),
    ("Depth [salt water, m]", "Depth", "m", "meter"),
    ("Conductivity [S/m]", "Conductivity", "S/m", "siemens / meter"),
    ("Conductivity [mS/cm]", "Conductivity", "mS/cm", "millisiemens / centimeter"),
    ("Density [density, kg/m^3]", "Density", "kg/m^3", "kilogram / meter ** 3"),
    ("Fluorescence, WET Labs ECO-AFL/FL [mg/m^3]", "Fluorescence, WET Labs ECO-AFL/FL", "mg/m^3", None),
    ("PAR/Irradiance, Biospherical [umol photons/m^2/sec]", "PAR/Irradiance, Biospherical",
     "umol photons/m^2/sec", "micromole / meter ** 2 / second"),
    ("Oxygen, SBE 43 [ml/l]", "Oxygen, SBE 43", "ml/l", "milliliter / liter"),
    ("Beam Transmission, WET Labs C-Star [%]", "Beam Transmission, WET Labs C-Star", "%", "percent"),
    ("Sea pressure (dbar)", "Sea pressure", "dbar", "decibar"),
    ("Turbidity (NTU) (812345)", "Turbidity", "NTU", "NTU"),
    ("RDO Concentration (mg/L) (712345)", "RDO Concentration", "mg/L", "milligram / liter"),
    ("Temperature (°F) (712345)", "Temperature", "°F", "degree_Fahrenheit"),
    ("Depth (ft) (712345)", "Depth", "ft", "foot"),
    ("Barometric Pressure (inHg)", "Barometric Pressure", "inHg", "inch_Hg"),
    ("Actual Conductivity (µS/cm) (712345)", "Actual Conductivity", "µS/cm", "microsiemens / centimeter"),
    ("chlorophyll (mg m-3)", "chlorophyll", "mg m-3", "milligram / meter ** 3"),
    ("salinity (1e-3)", "salinity", "1e-3", "permille"),
    ("latitude (degrees_north)", "latitude", "degrees_north", "degree"),
    ("Longitude (deg W)", "Longitude", "deg W", "degree"),
    ("sea_water_temperature (degree_Celsius)", "sea_water_temperature", "degree_Celsius", "degree_Celsius"),
    ("Depth (Meter)", "Depth", "Meter", "meter"),
    ("Sound velocity (Meters per Second)", "Sound velocity", "Meters per Second", "meter / second"),
    ("Easting (US survey feet)", "Easting", "US survey feet", "survey_foot"),
    ("Sounding (fathoms)", "Sounding", "fathoms", "international_fathom"),
    ("Wind speed (kn)", "Wind speed", "kn", "knot"),
    ("elevation (m)", "elevation", "m", "meter"),
    ("depth_ft", "depth_ft", "ft", "foot"),
    ("temp_degC", "temp_degC", "degC", "degree_Celsius"),
    ("DO_mg_L", "DO_mg_L", "mg/L", "milligram / liter"),
    ("SpCond_uS_cm", "SpCond_uS_cm", "uS/cm", "microsiemens / centimeter"),
    ("x_m", "x_m", "m", "meter"),
    ("longitude_w", "longitude_w", None, None),
    ("chl_a", "chl_a", None, None),
    ("phase_s", "phase_s", None, None),
    ("time_in", "time_in", None, None),
    ("Temp_M", "Temp_M", None, None),
    ("DEPTH_M", "DEPTH_M", "M", "meter"),
    ("N2O (nmol L-1)", "N2O", "nmol L-1", "nanomole / liter"),
    ("Abundance (cells/mL)", "Abundance", "cells/mL", "cell / milliliter"),
]  # fmt: skip


@pytest.mark.parametrize(("header", "name", "unit", "meaning"), HEADERS, ids=[each[0] for each in HEADERS])
def test_a_header_tells_the_name_and_the_unit_of_its_column(header, name, unit, meaning):
    assert (bare(header), unit_of(header)) == (name, unit)
    if meaning is not None:
        assert conversion(unit, meaning) == (Fraction(1), 0)


def test_a_column_is_found_by_its_name_without_serial_numbers_or_without_its_unit():
    name = "DO conc, mg/L (LGR S/N: 20991234, SEN S/N: 20991235)"
    table = table_of(name, "6.21")
    assert {table.column(each) for each in (name, "DO conc, mg/L", "do conc", name.upper())} == {name}


@pytest.mark.parametrize(
    ("unit", "wanted", "number", "converted"),
    [
        ("ft", "m", "6.56", 1.999488),
        ("US survey feet", "m", "3937", 1200.0),
        ("fathoms", "m", "10", 18.288),
        ("cm", "m", "12.5", 0.125),
        ("km", "m", "370.8407352245204", 370840.7352245204),
        ("yd", "m", "100", 91.44),
        ("nautical miles", "m", "0.5", 926.0),
        ("degF", "°C", "50", 10.0),
        ("K", "degC", "283.15", 10.0),
        ("gon", "deg", "50", 45.0),
        ("rad", "deg", "3.14159265358979323846", 180.0),
        ("degE7", "deg", "473100000", 47.31),
        ("arcmin", "deg", "90", 1.5),
        ("psi", "kPa", "1000", 6894.757293168361336),
        ("inHg", "hPa", "1", 33.86388640341),
        ("kn", "km/h", "10", 18.52),
        ("mS/cm", "S/m", "1", 0.1),
        ("mg m-3", "µg/L", "3.3", 3.3),
        ("%", "1e-3", "3.5", 35.0),
    ],
)
def test_units_are_converted_as_by_hand(unit, wanted, number, converted):
    change = conversion(unit, wanted)
    assert change.of((number,), np.array([float(number)])).tolist() == [converted]


def test_units_of_different_kinds_are_not_converted():
    assert conversion("dbar", "m") is None
    assert conversion("NTU", "FNU") is None
    assert conversion("bow", "m") is None
    assert is_pressure("psi")
    assert is_pressure("mmHg")
    assert not is_pressure("m")


@given(st.text(max_size=30))
def test_any_name_of_a_column_has_a_bare_name_and_perhaps_a_unit(name):
    assert isinstance(bare(name), str)
    assert isinstance(clean_unit(name), str)
    assert conversion(unit_of(name) or "", "m") is None or unit_of(name)


def table_of(name, *cells, unit=None):
    unit = unit_of(name) if unit is None else unit
    units = {name: unit} if unit else {}
    return Table(Path("log.csv"), (name,), units, {name: cells}, np.arange(2, 2 + len(cells)))


# -- lengths -------------------------------------------------------------------------------------------------

METRES_PER = {"ft": "0.3048", "fathoms": "1.8288", "cm": "0.01", "km": "1000", "yd": "0.9144",
              "inches": "0.0254", "nautical miles": "1852"}  # fmt: skip


@given(
    st.sampled_from(sorted(METRES_PER)),
    st.lists(st.decimals(0, 10**6, places=3, allow_nan=False), min_size=1, max_size=20),
)
def test_a_column_in_any_unit_equals_its_twin_in_metres(unit, depths):
    twin = [Decimal(METRES_PER[unit]) * depth for depth in depths]
    read = lengths_of(table_of(f"Depth ({unit})", *map(str, depths)), f"Depth ({unit})", "depth").numbers
    assert (
        read.tolist()
        == lengths_of(table_of("Depth (m)", *map(str, twin)), "Depth (m)", "depth").numbers.tolist()
    )


@given(st.integers(-90 * 10**6, 90 * 10**6))
def test_gons_and_degrees_of_1e7_equal_decimal_degrees(millionths):
    degrees, gons = Decimal(millionths) / 10**6, Decimal(millionths) / 10**6 / Decimal("0.9")
    for name, cell in (("lat (degE7)", str(millionths * 10)), ("lat (gon)", f"{gons:.40f}")):
        assert read_degrees(table_of(name, cell, "1"), name, "latitude").numbers[0] == float(degrees)


@pytest.mark.parametrize(
    "name",
    ["Depth", "Depth (below surface)", "x (EPSG:28992)", "Easting (UTM 32N)", "depth (1)", "Depth (m)"],
)
def test_what_is_no_unit_in_brackets_leaves_metres(name):
    assert lengths_of(table_of(name, "1.5"), name, "depth").numbers.tolist() == [1.5]


def test_lengths_may_be_asked_for_in_another_unit_such_as_that_of_a_crs():
    name = "Easting (ft US)"
    measured = lengths_of(table_of(name, "1000"), name, "easting", "US survey foot")
    assert (measured.numbers.tolist(), measured.notes) == ([1000.0], ())


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("Depth (fnord)", "the unit 'fnord' of column Depth (fnord) is not known"),
        ("Depth (deg C)", "'deg C' of column Depth (deg C) is no length"),
        ("Pressure (dbar)", "column Pressure (dbar) holds pressures (dbar)"),
        ("Depth (psi)", "column Depth (psi) holds pressures (psi)"),
        ("sea_pressure", "column sea_pressure holds pressures, not depths"),
        ("Depth (degrees)", "the positions in 'Depth (degrees)' are angles"),
    ],
)
def test_depths_in_no_unit_of_length_are_refused_by_name(name, part):
    with pytest.raises(InputError) as error:
        lengths_of(table_of(name, "1", "2"), name, "depth")
    assert part in str(error.value)
    assert f"column {name}" in str(error.value)


@pytest.mark.parametrize("name", ["elevation (m)", "Height", "z", "Altitude_m", "elev", "Höhe"])
def test_what_points_up_below_the_surface_becomes_depths_with_a_note(name):
    measured = lengths_of(table_of(name, "-1.5", "0", "-2"), name, "depth")
    assert measured.numbers.tolist() == [1.5, 0.0, 2.0]
    assert not np.signbit(measured.numbers).any()
    assert name in measured.notes[0]


@pytest.mark.parametrize("name", ["elevation (m)", "Altitude", "height above the bottom"])
def test_what_points_up_and_is_positive_is_no_depth(name):
    with pytest.raises(InputError, match="points up"):
        lengths_of(table_of(name, "1.5", "2"), name, "depth")


@pytest.mark.parametrize("name", ["Depth (m)", "depth_below_surface", "Tiefe"])
def test_negative_depths_are_a_question(name):
    with pytest.raises(InputError, match="depths are negative"):
        lengths_of(table_of(name, "-1.5", "-2"), name, "depth")
    assert lengths_of(table_of(name, "-0.02", "2", "1"), name, "depth").numbers.tolist() == [-0.02, 2.0, 1.0]
    with pytest.raises(InputError, match="depths are negative"):
        lengths_of(table_of(name, "0.02", "-1.5", "-2"), name, "depth")


def test_depths_are_no_heights():
    with pytest.raises(InputError, match="holds depths, not heights"):
        lengths_of(table_of("Depth (m)", "1"), "Depth (m)", "height")


def test_a_column_along_an_axis_takes_the_unit_of_the_axis():
    axis = Axis("depth", "ft", 0, 100)
    assert along(table_of("depth (m)", "0.3048"), "depth (m)", axis).numbers.tolist() == [1.0]
    oven = Axis("temperature", "degC", 0, 300)
    assert along(table_of("temperature (degF)", "50"), "temperature (degF)", oven).numbers.tolist() == [10.0]
    assert along(table_of("temperature", "50"), "temperature", oven).numbers.tolist() == [50.0]
    with pytest.raises(InputError, match="the unit of column temperature"):
        along(table_of("temperature (mg/L)", "50"), "temperature (mg/L)", oven)


def test_a_name_and_a_line_of_units_that_differ_are_refused():
    with pytest.raises(InputError, match=r"column 'depth_ft' states the unit ft, the line of units m"):
        lengths_of(table_of("depth_ft", "3", unit="m"), "depth_ft", "depth")
    assert values_in(table_of("Turb_M", "3", unit="NTU"), "Turb_M", "NTU").numbers.tolist() == [3.0]
    assert lengths_of(table_of("depth_ft", "10", unit="feet"), "depth_ft", "depth").numbers.tolist() == [
        3.048
    ]


def test_units_in_lines_above_the_names_are_those_of_the_columns(tmp_path):
    rows = "".join(f"2026/07/14,09:00:{i:02d},500,{10 + i},{64 + i}\n" for i in range(9))
    head = "Serial_number:\n2041234\nLEVEL\nUNIT: ft\nTEMPERATURE\nUNIT: °F\n"
    (tmp_path / "level.csv").write_text(f"{head}Date,Time,ms,LEVEL,TEMPERATURE\n{rows}", encoding="utf-8")
    table = open_table(tmp_path / "level.csv")
    assert table.units == {"LEVEL": "ft", "TEMPERATURE": "°F"}
    assert lengths_of(table, "LEVEL", "depth").numbers[0] == 3.048


def test_degrees_times_ten_million_are_named_in_the_error():
    at = {"lat": 473100000, "lon": 85100000, "v": 5}
    cells = {name: tuple(str(k + i) for i in range(9)) for name, k in at.items()}
    table = Table(Path("log.csv"), tuple(cells), {}, cells, np.arange(2, 11))
    with pytest.raises(InputError, match=r"lat \(degE7\)"):
        survey_points(table, lat="lat", lon="lon", value="v")


def test_values_become_those_of_the_world_s_unit():
    for name, cell, unit, value in (
        ("Temp (degF)", "50", "degC", 10.0),
        ("chl (mg m-3)", "3.3", "µg/L", 3.3),
        ("Sal psu", "35.1", "1e-3", 35.1),
        ("chl", "3.3", "µg/L", 3.3),
        ("count (birds)", "3", "birds", 3.0),
        ("Sat (%)", "98", "1", 98.0),
    ):
        assert values_in(table_of(name, cell), name, unit).numbers.tolist() == [value]
    for name, unit in (("chl RFU", "µg/L"), ("Turbidity (NTU)", "FNU"), ("Sal (g/kg)", "psu")):
        with pytest.raises(InputError, match="the unit of column"):
            values_in(table_of(name, "3"), name, unit)


def test_standard_deviations_are_converted_without_the_offset_of_the_values():
    assert spreads_in(table_of("sd (degF)", "0.9"), "sd (degF)", "degC").numbers.tolist() == [0.5]
    assert spreads_in(table_of("sd (%)", "2"), "sd (%)", "1").numbers.tolist() == [2.0]
    with pytest.raises(InputError, match="the unit of column sd"):
        spreads_in(table_of("sd (m)", "2"), "sd (m)", "degC")


def test_heights_along_an_axis_of_heights_point_up_and_get_its_unit():
    cells = {"lat": "47.31", "lon": "8.5{i}", "Altitude (ft)": "1{i}", "v": "{i}"}
    columns = {name: tuple(cell.format(i=i) for i in range(6)) for name, cell in cells.items()}
    table = Table(Path("log.csv"), tuple(cells), {"Altitude (ft)": "ft"}, columns, np.arange(2, 8))
    given = {"lat": "lat", "lon": "lon", "value": "v", "depth": "Altitude (ft)"}
    points = survey_points(table, **given, upright=Axis("altitude", "m", 0, 100), spacing_m=1.0)
    assert points.depths.tolist() == [float(Decimal(f"1{i}") * Decimal("0.3048")) for i in range(6)]
    with pytest.raises(InputError, match="points up"):
        survey_points(table, **given)


# -- degrees -------------------------------------------------------------------------------------------------

WEST = ["Longitude (deg W)", "Longitude (°W)", "longitude_w", "Lon_W", "LonW", "West longitude",
        "Longitude (W)", "Longitude West", "lon (degrees_west)", "Lon [deg. West]", "LONGITUDE (DEG W)",
        "W Lon", "Lon deg W", "Longitude (West)", "position_lon (deg W)", "GPS Position Longitude (°W)",
        "Surplus Lon (W)", "Longitude_composite (°W)", "Longitude (W positive)", "Longitude (W = positive)",
        "Longitude (+W)", "Longitude (deg W, positive)", "Lon-W", "Lon deg-W", "Lon (W+)"]  # fmt: skip


@pytest.mark.parametrize("name", WEST)
def test_a_header_that_says_west_makes_longitudes_negative_with_a_note(name):
    measured = read_degrees(table_of(name, "88.5", "", "88.51"), name, "longitude")
    np.testing.assert_array_equal(measured.numbers, [-88.5, np.nan, -88.51])
    assert measured.notes == (f"{name} counts west as positive: longitudes are its numbers with a minus",)
    with pytest.raises(InputError, match="is negative, and the header says W"):
        read_degrees(table_of(name, "88.5", "-88.51"), name, "longitude")


@pytest.mark.parametrize(
    "name",
    ["Longitude (deg E)", "degrees_east", "Longitude", "Longitude (E+ W-)", "Longitude (W negative)",
     "lon (E/W)", "Longitude (WGS84)", "Lon (dd.dddddd)", "Longitude (decimal degrees)", "Longitude_deg",
     "Lon (+/-)", "Longitude (+/- E)", "Lon (-W)", "Longitude (west is negative)",
     "Longitude (+E/-W)", "position_lon (deg E)"],
)  # fmt: skip
def test_other_headers_leave_the_signs(name):
    measured = read_degrees(table_of(name, "88.5", "-8.25"), name, "longitude")
    assert (measured.numbers.tolist(), measured.notes) == ([88.5, -8.25], ())


PLAIN = ["degrees", "degs", "deg", "DEGREES", "degree", "Degrees", "dd", "°", "decimal degrees", "deg N",
         "degrees_north", "degN", "DegreesN"]  # fmt: skip


@pytest.mark.parametrize("unit", PLAIN)
@pytest.mark.parametrize("name", ["GPS_lat", "Latitude", "lats", "GPSLat", "Lat", "USV_latitude", "LATITUDE"])
def test_no_other_header_of_latitudes_says_south(name, unit):
    for full, stated in ((name, unit), (f"{name} ({unit})", None), (f"{name}_{unit}", None)):
        measured = read_degrees(table_of(full, "42.9", "-1.5", unit=stated), full, "latitude")
        assert (measured.numbers.tolist(), measured.notes) == ([42.9, -1.5], ())


@pytest.mark.parametrize(
    "unit", ["deg S", "degS", "degrees_south", "degreesS", "°S", "degrees S", "deg. S", "Deg South"]
)
def test_units_that_say_south_do(unit):
    name = f"Latitude ({unit})"
    assert read_degrees(table_of(name, "42.9"), name, "latitude").numbers.tolist() == [-42.9]


def test_a_header_that_says_south_makes_latitudes_negative():
    name = "Latitude (deg S)"
    assert read_degrees(table_of(name, "42.9"), name, "latitude").numbers.tolist() == [-42.9]
    with pytest.raises(InputError, match="says N, the header S"):
        read_degrees(table_of(name, "42.9 N"), name, "latitude")
    assert read_degrees(table_of(name, "42.9 S"), name, "latitude").numbers.tolist() == [-42.9]


@pytest.mark.parametrize(
    "name", ["Latitude (North)", "Latitude (N)", "Lat (deg min)", "LATITUDE (DEG)", "Lat (GPS)"]
)
def test_what_stands_behind_a_latitude_without_being_a_unit_changes_nothing(name):
    read = read_degrees(table_of(name, "47 18.6", "47.5"), name, "latitude").numbers
    np.testing.assert_allclose(read, [47.31, 47.5], rtol=1e-15)


@pytest.mark.parametrize(
    "name", ["DEPTH (M)", "DEPTH (FT)", "Depth (Ft.)", "DEPTH_FT", "Depth (feet, MSL)", "depth [m]"]
)
def test_units_in_capitals_and_with_dots_are_known(name):
    metres = lengths_of(table_of(name, "10"), name, "depth").numbers.tolist()
    assert metres == [3.048 if "F" in name.upper() else 10.0]


def test_degrees_and_minutes_are_converted_if_the_header_says_so():
    name = "Latitude (ddmm.mmmm)"
    assert read_degrees(table_of(name, "4718.6000", "-4730.0"), name, "latitude").numbers.round(
        9
    ).tolist() == [47.31, -47.5]


def test_radians_are_converted_and_refused_where_they_can_be_none():
    name = "lat (rad)"
    measured = read_degrees(table_of(name, "0.5", "-1"), name, "latitude")
    np.testing.assert_allclose(measured.numbers, np.degrees([0.5, -1.0]), rtol=1e-15)
    assert measured.notes == ("lat (rad) is converted from rad to degrees",)
    with pytest.raises(InputError, match=r"'47\.31' rad is not a latitude"):
        read_degrees(table_of(name, "47.31", "47.30"), name, "latitude")


@pytest.mark.parametrize(
    ("name", "part"), [("Lat (fnord)", "'fnord' of column Lat"), ("Lat (m)", "is a length")]
)
def test_positions_in_an_unknown_unit_are_refused_by_name(name, part):
    with pytest.raises(InputError) as error:
        read_degrees(table_of(name, "47.3"), name, "latitude")
    assert part in str(error.value)


@pytest.mark.parametrize(
    "name",
    ["DepthFt", "DepthFeet", "DEPTHFT", "Depth.ft", "Depth..ft.", "Depth-ft", "Depth:ft", "Depth_in_ft",
     "depth_ft_mean", "Depth_ft_raw", "Depth|ft", "ft depth", "Depth/ft", "Depth ft (raw)"],
)  # fmt: skip
def test_a_unit_anywhere_in_the_name_of_a_depth_counts(name):
    measured = lengths_of(table_of(name, "10"), name, "depth")
    assert measured.numbers.tolist() == [3.048]
    assert measured.notes == (f"{name} is converted from {measured.notes[0].split()[-3]} to m",)


@pytest.mark.parametrize("name", ["Depth fm", "Depth_fm", "Depth (fms)", "DepthFathoms", "depth_fm_raw"])
def test_fathoms_are_no_femtometres(name):
    assert lengths_of(table_of(name, "10"), name, "depth").numbers.tolist() == [18.288]


@pytest.mark.parametrize("name", ["Depth", "DepthM", "depth.m", "Depth_left", "Depth_format", "depth_mean"])
def test_depths_whose_names_hold_no_other_unit_are_metres(name):
    assert lengths_of(table_of(name, "10"), name, "depth") == ([10.0], ())


@pytest.mark.parametrize("name", ["Depth (ft/m)", "Depth.ft.m", "Depth-ft-m"])
def test_depths_in_two_units_are_refused(name):
    with pytest.raises(InputError, match="is no length"):
        lengths_of(table_of(name, "10"), name, "depth")


@pytest.mark.parametrize(
    "expression",
    ["m**9**9", "m**999", "10**9*m", "(9)**9*m", "1e9*m", "1.e9*m", "1_0e9*m", "07/1e9/26", "m**9e9", "m**٩"],
)
def test_no_large_power_is_computed_for_a_unit(expression):
    assert not is_cheap(expression)


@pytest.mark.parametrize(
    "expression", ["mg/L", "µmol*m**-2*s**-1", "W/m**2", "m**(-2)", "°C", "%", "mg.m**-3", "1/m", "kg/(m*s)"]
)
def test_usual_expressions_of_units_are_computed(expression):
    assert is_cheap(expression)


def test_a_long_text_is_no_unit_at_once():
    assert not is_cheap("a" * 40 + "!")
    assert not is_cheap("a b " * 10 + "!")

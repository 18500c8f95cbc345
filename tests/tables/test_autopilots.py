"""Logs of ArduPilot, MAVLink and PX4: read as the plain CSV of the same readings, to the last digit.

The formats of messages are those of libraries/AP_Logger/LogStructure.h and Rover/Log.cpp in
ArduPilot/ardupilot, and of msg/SensorGps.msg in PX4/PX4-Autopilot.
"""

from __future__ import annotations

import os
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from autopilot_logs import dataflash, gps_time, tlog, ulog
from container_files import READINGS, numbers_of, same_points, seconds_of
from pymavlink.dialects.v20 import ardupilotmega as mavlink

from fieldbo.errors import InputError
from fieldbo.tables.containers.ardupilot import _compiled_stderr
from fieldbo.tables.containers.px4 import _find_fixed
from fieldbo.tables.joining import join_track
from fieldbo.tables.opening import open_table, open_track


@pytest.fixture(autouse=True)
def _place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def places(step=1.0):
    """Return (second, latitude and longitude in 1e-7 degrees) of 21 fixes."""
    return [(READINGS[0][0] + step * i, 473_000_000 + 1_100 * i, 85_000_000 - 700 * i) for i in range(21)]


def depths(later=0.0):
    """Return (second, depth in cm) of 12 readings at the times of fixes."""
    return [(READINGS[0][0] + i + later, 250 + i * i) for i in range(12)]


def as_readings(later=0.0, per=100):
    """Return the readings that the logs below hold, with positions between the fixes."""
    return [
        (
            second,
            (473_000_000 + 1_100 * (i + later)) / 1e7,
            (85_000_000 - 700 * (i + later)) / 1e7,
            depth / per,
        )
        for i, (second, depth) in enumerate(depths(later))
    ]


def same_csv(table, value, later=0.0):
    if not later:
        same_points(table, value, as_readings())
        return
    wanted = np.array(as_readings(later))
    assert seconds_of(table) == wanted[:, 0].tolist()
    assert np.allclose(numbers_of(table, "latitude"), wanted[:, 1], rtol=0, atol=1e-12)
    assert np.allclose(numbers_of(table, "longitude"), wanted[:, 2], rtol=0, atol=1e-12)


# -- ArduPilot --------------------------------------------------------------------------------------------

BOOT = READINGS[0][0] - 100


def micros(second):
    return round((second - BOOT) * 1e6)


def gps(receiver=0, status=3, step=1.0):
    return [("GPS", micros(s), receiver, status, *gps_time(s), 12, 90, y, x, 43_120, 1.5, 80.0, 0.0, 0.0, 1)
            for s, y, x in places(step)]  # fmt: skip


def rangefinder(later=0.0, instance=0, state=4):
    return [("RFND", micros(s), instance, depth, state, 25, 100) for s, depth in depths(later)]


@pytest.mark.parametrize("later", [0.0, 0.5])
def test_a_range_finders_distances_have_the_positions_of_the_gps(later):
    table = open_table(dataflash(gps() + rangefinder(later)))
    same_csv(table, "Dist", later)
    assert (table.units["Dist"], table.roles["Dist"], table.row_word) == ("m", "value", "message")
    assert "straight between fixes at most 5 s apart" in table.notes[1]


def test_depths_with_positions_of_their_own_keep_them():
    messages = [("DPTH", micros(s), 0, y, x, d / 100, 12.5)
                for (s, d), (_, y, x) in zip(depths(), places(), strict=False)]  # fmt: skip
    table = open_table(dataflash(gps() + rangefinder() + messages))
    got = [(second, y, x, float(np.float32(d))) for second, y, x, d in as_readings()]
    same_points(table, "Depth", got)
    assert table.units["Temp"] == "degC"
    assert "RFND (12 messages) is left out, for DPTH is made of it" in table.notes


def test_without_a_sensor_the_positions_are_read_and_any_kind_by_its_name():
    path = dataflash(gps() + [("BARO", micros(s), 0, 0.0, 1e5, 20.5, 0.0) for s, _ in depths()])
    assert len(open_table(path)) == 21
    assert numbers_of(open_table(path), "latitude") == [y / 1e7 for _, y, _ in places()]
    assert set(open_table(path, layer="baro").cells["Temp"]) == {"20.5"}
    with pytest.raises(InputError, match="unknown kind of message 'BAT'"):
        open_table(path, layer="BAT")


def test_two_range_finders_are_asked_about():
    path = dataflash(gps() + rangefinder() + rangefinder(instance=1))
    with pytest.raises(
        InputError, match=r"2 sensors that may be meant: RFND\[0\] \(12 messages\), RFND\[1\]"
    ):
        open_table(path)
    same_csv(open_table(path, layer="RFND[1]"), "Dist")


def test_distances_out_of_range_are_missing_and_gaps_between_fixes_have_no_position():
    assert set(open_table(dataflash(gps() + rangefinder(state=3))).cells["Dist"]) == {""}
    table = open_table(dataflash(gps(step=8.0) + rangefinder(0.5)))
    assert set(table.cells["latitude"]) == {""}
    assert "12 messages without a position" in table.notes


def test_positions_before_a_fix_do_not_count_and_a_log_without_one_is_refused():
    table = open_table(dataflash(gps(status=1)[:5] + gps()[5:]))
    assert len(table) == 16
    with pytest.raises(InputError, match="no fix of a GPS"):
        open_table(dataflash(gps(status=1) + rangefinder()))
    with pytest.raises(InputError, match="no fix of a GPS"):
        open_table(dataflash(rangefinder()))


def test_the_better_of_two_receivers_counts():
    other = [(*message[:7], *message[7:8], 0, 0, *message[10:]) for message in gps(1)[:6]]
    table = open_table(dataflash(gps()[:15] + other))
    assert len(table) == 15
    assert numbers_of(table, "latitude")[0] == 47.3


def test_an_ardupilot_log_cut_off_is_read_to_there_and_one_without_its_formats_is_refused():
    path = dataflash(gps() + rangefinder())
    content = path.read_bytes()
    path.write_bytes(content[:-5])
    assert len(open_table(path)) == 11
    path.write_bytes(content[:80])
    with pytest.raises(InputError, match=r"no position|damaged"):
        open_table(path)


# -- MAVLink ----------------------------------------------------------------------------------------------


def gps_raw(system=1, fix=3, late=0.0):
    return [(s + late, system, mavlink.MAVLink_gps_raw_int_message(
        micros(s), fix, y, x, 431_200, 90, 90, 150, 8000, 12)) for s, y, x in places()]  # fmt: skip


def distances(late=0.0):
    return [(s + late, 1, mavlink.MAVLink_distance_sensor_message(
        0, 20, 9000, depth, 2, 0, 25, 0)) for s, depth in depths()]  # fmt: skip


def named(name, late=0.0):
    return [(s + late, 1, mavlink.MAVLink_named_value_float_message(0, name, depth / 4))
            for s, depth in depths()]  # fmt: skip


@pytest.mark.parametrize("version", [1, 2])
def test_a_tlog_gives_a_sensor_at_the_positions_of_the_gps(version):
    table = open_table(tlog(gps_raw() + distances(), version=version))
    readings = as_readings(per=1)
    same_points(table, "current_distance", readings)
    assert table.units["current_distance"] == "cm"
    assert "times are by the ground station's clock" in table.notes


def test_values_that_the_vehicle_names_are_sensors_of_these_names():
    path = tlog(gps_raw() + named(b"chl"))
    same_points(open_table(path), "CHL", as_readings(per=4))
    path = tlog(gps_raw() + named(b"chl") + distances())
    with pytest.raises(InputError, match=r"CHL \(12 messages\), DISTANCE_SENSOR \(12 messages\)"):
        open_table(path)
    same_points(open_table(path, layer="chl"), "CHL", as_readings(per=4))


def test_the_ground_stations_clock_is_set_by_the_vehicles():
    late = 7200.25
    clock = [(s + late, 1, mavlink.MAVLink_system_time_message(round(s * 1e6), 0)) for s, _ in depths()]
    table = open_table(tlog(gps_raw(late=late) + distances(late) + clock))
    same_points(table, "current_distance", as_readings(per=1))
    assert "times are UTC by the vehicle, -7200.250 s from the ground station's clock" in table.notes


def test_two_vehicles_are_asked_about():
    path = tlog(gps_raw() + gps_raw(2) + distances())
    with pytest.raises(
        InputError, match=r"2 vehicles that may be meant: 1 \(21 positions\), 2 \(21 positions\)"
    ):
        open_table(path)
    assert len(open_table(path, layer="2")) == 21
    assert len(open_table(path, layer="1:distance_sensor")) == 12
    assert len(open_track(path, "2")) == 21


def test_damaged_packets_are_left_out_and_a_damaged_log_is_one_error():
    path = tlog(gps_raw() + distances())
    content = bytearray(path.read_bytes())
    content[60] ^= 0xFF
    path.write_bytes(content[:-4])
    table = open_table(path)
    assert len(table) == 11
    assert any("1 packet with a wrong checksum" in note for note in table.notes)
    step = len(content) // 33
    for at in range(20, len(content), max(4, step // 8)):
        content[at] ^= 0x55
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"damaged|no position"):
        open_table(path)


# -- PX4 --------------------------------------------------------------------------------------------------

OLD_GPS = ("uint64_t timestamp", "uint64_t time_utc_usec", "int32_t lat", "int32_t lon", "uint8_t fix_type")
NEW_GPS = ("uint64_t timestamp", "uint64_t time_utc_usec", "double latitude_deg", "double longitude_deg",
           "uint8_t fix_type")  # fmt: skip
DISTANCE = ("uint64_t timestamp", "float min_distance", "float max_distance", "float current_distance",
            "int8_t signal_quality")  # fmt: skip
DEBUG = ("uint64_t timestamp", "char[10] key", "float value")


def px4(*extra, new=True, fix=3, quality=100, formats=None, name="log.ulg"):
    form = {
        "vehicle_gps_position": NEW_GPS if new else OLD_GPS,
        "distance_sensor": DISTANCE,
        **(formats or {}),
    }
    scaled = (lambda number: number / 1e7) if new else int
    fixes = [
        ("vehicle_gps_position", micros(s), round(s * 1e6), scaled(y), scaled(x), fix) for s, y, x in places()
    ]
    sonar = [("distance_sensor", micros(s), 0.2, 90.0, d / 100, quality) for s, d in depths()]
    return ulog(form, [*fixes, *sonar, *extra], name)


@pytest.mark.parametrize("new", [True, False])
def test_a_px4_log_gives_its_distance_sensor_at_the_positions_of_the_gps(new):
    table = open_table(px4(new=new))
    same_points(table, "current_distance", [(*row[:3], float(np.float32(row[3]))) for row in as_readings()])
    assert table.units["current_distance"] == "m"


def test_debugging_values_are_sensors_by_their_keys():
    extra = [("debug_key_value", micros(s), b"chl", d / 4) for s, d in depths()]
    path = px4(*extra, formats={"debug_key_value": DEBUG})
    with pytest.raises(InputError, match=r"chl \(12 messages\), distance_sensor \(12 messages\)"):
        open_table(path)
    same_points(open_table(path, layer="chl"), "chl", as_readings(per=4))


def test_px4_readings_without_a_signal_are_missing_and_logs_without_a_fix_refused():
    assert set(open_table(px4(quality=0)).cells["current_distance"]) == {""}
    with pytest.raises(InputError, match="no fix of a GPS"):
        open_table(px4(fix=0))
    with pytest.raises(InputError, match="unknown kind of message 'sonar'"):
        open_table(px4(), layer="sonar")


def test_a_px4_log_cut_off_is_read_to_there_and_a_header_alone_is_refused():
    path = px4()
    content = path.read_bytes()
    path.write_bytes(content[:-5])
    assert len(open_table(path)) == 11
    for length in (12, 40):
        path.write_bytes(content[:length])
        with pytest.raises(InputError, match=r"no position|damaged or cut off"):
            open_table(path)


MAKERS = {
    "bin": lambda: dataflash(gps() + rangefinder()),
    "tlog": lambda: tlog(gps_raw() + distances()),
    "ulg": px4,
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_the_track_of_an_autopilot_places_a_sondes_log(make):
    track = open_track(make())
    assert len(track) == 21
    rows = [f"2024-05-01T12:00:{i:02d}Z,{row[3]!r}" for i, row in enumerate(as_readings())]
    Path("sonde.csv").write_text("time,temperature\n" + "\n".join(rows) + "\n")
    same_points(join_track(open_table(Path("sonde.csv")), track), "temperature", as_readings())


def test_what_compiled_code_says_of_damaged_bytes_is_not_shown(capfd):
    said = StringIO()
    with _compiled_stderr(said):
        os.write(2, b"bad header 0x0000 at 5\n")
    assert (said.getvalue(), capfd.readouterr().err) == ("bad header 0x0000 at 5\n", "")


def test_fixes_of_px4_without_a_position_are_none():
    columns = {"timestamp": np.ones(1), "time_utc_usec": np.full(1, 2e15), "fix_type": np.full(1, 3)}
    assert not _find_fixed(columns).any()
    assert _find_fixed({**columns, "lat": np.ones(1), "lon": np.ones(1)}).all()

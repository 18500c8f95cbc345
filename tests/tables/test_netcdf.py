"""NetCDF of gliders, profiles and stations: read as the plain CSV of the same readings, to the last digit.

Structures were checked against nc/template/IOOS_Glider_NetCDF_v2.0.cdl and v3.0-qartod.cdl in ioos/ioosngdac;
others follow appendix H of the CF conventions.
"""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray as xr
from container_files import READINGS, numbers_of, same_points

from fieldbo.errors import InputError
from fieldbo.tables.containers.cf_values import micros_of
from fieldbo.tables.containers.cf_values import numbers_of as unpacked
from fieldbo.tables.opening import open_table

SECONDS, LAT, LON, VALUES = (np.array(column, dtype=float) for column in zip(*READINGS, strict=True))
DEPTHS = np.arange(12) / 4
SINCE = "seconds since 1970-01-01T00:00:00Z"
MEANINGS = ("no_qc_performed good_data probably_good_data bad_data_that_are_potentially_correctable bad_data "
            "value_changed not_used not_used interpolated_value missing_value")  # fmt: skip


@pytest.fixture(autouse=True)
def _place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def variable(dims, values, standard="", units="", **attributes):
    attributes |= {"standard_name": standard} if standard else {}
    attributes |= {"units": units} if units else {}
    return xr.Variable(dims, values, attributes)


def coordinates(dims="time"):
    return {
        "time": variable(dims, SECONDS, "time", SINCE, axis="T", calendar="gregorian"),
        "lat": variable(dims, LAT, "latitude", "degrees_north", _FillValue=-999.0),
        "lon": variable(dims, LON, "longitude", "degrees_east", _FillValue=-999.0),
        "depth": variable(dims, DEPTHS, "depth", "m", positive="down"),
    }


def temperature(dims="time", values=VALUES, **attributes):
    return variable(dims, values, "sea_water_temperature", "Celsius", **attributes)


def write(variables, name="log.nc", classic=False, attributes=None):
    data = xr.Dataset(variables, attrs={"Conventions": "CF-1.6", **(attributes or {})})
    encoding = {each: {"_FillValue": None} for each in data.variables if "_FillValue" not in data[each].attrs}
    data.to_netcdf(name, engine="scipy" if classic else "h5netcdf", encoding=encoding)
    return Path(name)


def glider(**more):
    """Return the variables of a file of one profile, as the glider centre of IOOS has them."""
    return {
        "trajectory": variable("traj_strlen", np.array(list("gl-2024"), dtype="S1"), cf_role="trajectory_id"),
        **coordinates(),
        "temperature": temperature(ancillary_variables="temperature_qc", valid_min=-5.0, valid_max=40.0),
        "temperature_qc": variable("time", np.ones(12, dtype="i1"), "sea_water_temperature status_flag",
                                   flag_values=np.arange(10, dtype="i1"), flag_meanings=MEANINGS),
        "profile_id": variable((), np.int32(7)),
        "profile_time": variable((), SECONDS[5], "time", SINCE),
        "profile_lat": variable((), 12.0, "latitude", "degrees_north"),
        "lat_uv": variable((), 13.0, "latitude", "degrees_north"),
        "lon_uv": variable((), 14.0, "longitude", "degrees_east"),
        "platform": variable((), np.int32(1)),
        **more,
    }  # fmt: skip


NAMES = {"lat": "lat", "lon": "lon"}


@pytest.mark.parametrize("classic", [False, True], ids=["NetCDF-4", "NetCDF-3"])
def test_a_gliders_profile_gives_its_samples(classic):
    table = open_table(write(glider(), classic=classic, attributes={"featureType": "trajectoryProfile"}))
    same_points(table, "temperature", **NAMES)
    assert {name: table.roles[name] for name in ("time", "lat", "lon", "depth", "temperature_qc")} == {
        "time": "time", "lat": "latitude", "lon": "longitude", "depth": "depth", "temperature_qc": "flag",
    }  # fmt: skip
    assert table.units["temperature"] == "Celsius"
    assert not {"profile_lat", "lat_uv", "platform", "profile_id"} & set(table.names)
    assert table.notes[0] == "NetCDF: trajectoryProfile, 12 samples along time"


def test_values_that_flags_call_bad_are_left_out_and_counted():
    flags = np.array([1, 4, 3, 9, 8, 5, 0, 2, 1, 1, 1, 1], dtype="i1")
    variables = glider()
    variables["temperature_qc"] = variable(
        "time", flags, flag_values=np.arange(10, dtype="i1"), flag_meanings=MEANINGS
    )
    table = open_table(write(variables))
    assert [cell == "" for cell in table.cells["temperature"]] == [False, True, True, True] + [False] * 8
    assert ("temperature: 3 values left out by temperature_qc (bad_data_that_are_potentially_correctable 1, "
            "bad_data 1, missing_value 1)") in table.notes  # fmt: skip
    assert "temperature: 1 value kept that temperature_qc doubts (interpolated_value 1)" in table.notes


def test_flags_of_qartod_masks_and_letters_are_understood_and_others_are_said_not_to_be_used():
    qartod = variable("time", np.array([1, 4, 3] + [2] * 9, dtype="i1"), "aggregate_quality_flag",
                      flag_values=np.array([1, 2, 3, 4, 9], dtype="i1"),
                      flag_meanings="PASS NOT_EVALUATED SUSPECT FAIL MISSING")  # fmt: skip
    single = variable("time", np.full(12, 4, dtype="i1"), flag_values=np.array([1, 4], dtype="i1"),
                      flag_meanings="PASS FAIL")  # fmt: skip
    masks = variable("time", np.array([0, 1, 2, 3] + [0] * 8, dtype="i1"), flag_masks=np.array([1, 2], "i1"),
                     flag_meanings="sensor_failed night")  # fmt: skip
    letters = variable(
        "time", np.array(list("1412") + ["1"] * 8, dtype="S1"), conventions="Argo reference table 2"
    )
    silent = variable("time", np.ones(12, dtype="i1"))
    table = open_table(write({
        **coordinates(),
        "a": temperature(ancillary_variables="qartod_a_primary_flag qartod_a_spike_flag"),
        "qartod_a_primary_flag": qartod, "qartod_a_spike_flag": single,
        "b": temperature(), "b_qc": masks, "c": temperature(), "c_QC": letters, "d": temperature(),
        "d_qc": silent,
    }))  # fmt: skip
    gone = {name: [i for i, cell in enumerate(table.cells[name]) if not cell] for name in "abcd"}
    assert gone == {"a": [1], "b": [1, 3], "c": [1], "d": []}
    assert "d_qc does not say what its values mean, and is not used" in table.notes


def test_bad_positions_leave_no_position():
    flags = variable("time", np.array([4] + [1] * 11, dtype="i1"), flag_values=np.array([1, 4], dtype="i1"),
                     flag_meanings="good bad")  # fmt: skip
    assert open_table(write(glider(lat_qc=flags))).cells["lat"][0] == ""


def test_fills_scales_and_ranges_are_applied_and_a_range_that_most_values_break_is_not():
    packed = np.array([-32768, 100, 32000, *range(200, 209)], dtype="i2")
    table = open_table(write({
        **coordinates(),
        "packed": temperature(values=packed, _FillValue=np.int16(-32768), scale_factor=0.5, add_offset=-2.0,
                              valid_max=np.int16(1000)),
        "default": temperature(values=np.array([9.969209968386869e36, *range(11)], dtype="f4")),
        "salinity": variable("time", np.linspace(34, 35, 12), units="1", valid_max=0.04),
    }))  # fmt: skip
    assert table.cells["packed"][:4] == ("", "48.0", "", "98.0")
    assert "packed: 1 value beyond its valid range left out" in table.notes
    assert table.cells["default"][:2] == ("", "0.0")
    assert numbers_of(table, "salinity") == np.linspace(34, 35, 12).tolist()
    assert "salinity: most values are beyond the valid range that it states, which is not used" in table.notes


def test_unsigned_bytes_and_vectors_of_fills_are_unpacked():
    assert unpacked(np.array([-1, 5], dtype="i1"), {"_Unsigned": "true"}).tolist() == [255.0, 5.0]
    assert np.isnan(unpacked(np.array([1.0, 2.0]), {"missing_value": np.array([1.0, 2.0])})).all()


@pytest.mark.parametrize(("units", "value", "second"), [
    ("seconds since 1970-01-01 00:00:00", 1.5, 1.5),
    ("days since 1950-01-01 00:00:00 UTC", 7305.25, 21_600.0),
    ("hours since 1970-1-1 0:0:0", 0.1, 360.0),
    ("minutes since 1970-01-01 00:00:00 -5:00", 0.0, 18_000.0),
    ("milliseconds since 1970-01-01T01:00:00.250+01:00", 10.0, 0.26),
    ("seconds since 0001-01-01", 62_135_596_800.0, 0.0),
    ("nanoseconds since 1970-01-01", 1.5e9, 1.5),
])  # fmt: skip
def test_times_count_by_their_units(units, value, second):
    micros, known = micros_of(np.array([value, np.nan]), {"units": units}, "time")
    assert micros[0] / 1e6 == second
    assert known.tolist() == [True, False]


@pytest.mark.parametrize("more", [{"calendar": "noleap"}, {"units": "months since 1970-01-01"}])
def test_times_of_other_calendars_are_refused(more):
    variables = coordinates()
    variables["time"].attrs |= more
    with pytest.raises(InputError, match="times are in"):
        open_table(write({**variables, "temperature": temperature()}))


def test_contiguous_ragged_arrays_give_each_sample_the_place_of_its_profile():
    profiles = {
        "lat": variable("profile", LAT[[0, 5]], "latitude", "degrees_north"),
        "lon": variable("profile", LON[[0, 5]], "longitude", "degrees_east"),
        "time": variable("profile", SECONDS[[0, 5]], "time", SINCE),
        "row_size": variable("profile", np.array([5, 7], dtype="i4"), sample_dimension="obs"),
        "glider": variable("profile", np.array([1, 0], dtype="i4"), instance_dimension="trajectory"),
        "length": variable("trajectory", np.array([1.5, 2.5])),
        "depth": variable("obs", DEPTHS, "depth", "m", positive="down"),
        "temperature": temperature("obs"),
    }
    table = open_table(write(profiles))
    assert numbers_of(table, "lat") == [LAT[0]] * 5 + [LAT[5]] * 7
    assert table.cells["length"] == ("2.5",) * 5 + ("1.5",) * 7
    assert numbers_of(table, "temperature") == VALUES.tolist()
    assert "row_size" not in table.names


def test_indexed_ragged_arrays_and_stations_give_each_sample_its_station():
    owner = np.array([0, 1] * 6, dtype="i4")
    table = open_table(write({
        "lat": variable("station", LAT[:2], "latitude", "degrees_north"),
        "lon": variable("station", LON[:2], "longitude", "degrees_east"),
        "time": variable("obs", SECONDS, "time", SINCE),
        "station_index": variable("obs", owner, instance_dimension="station"),
        "temperature": temperature("obs"),
    }))  # fmt: skip
    assert numbers_of(table, "lat") == LAT[owner].tolist()


def test_profiles_by_depths_are_flattened_without_their_padding():
    values = np.full((3, 5), -999.0)
    values.ravel()[[0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12]] = VALUES
    table = open_table(write({
        "lat": variable("profile", LAT[:3], "latitude", "degrees_north"),
        "lon": variable("profile", LON[:3], "longitude", "degrees_east"),
        "time": variable("profile", SECONDS[:3], "time", SINCE),
        "depth": variable("z", np.arange(5.0), "depth", "m", positive="down"),
        "temperature": temperature(("profile", "z"), values, _FillValue=-999.0),
    }))  # fmt: skip
    assert numbers_of(table, "temperature") == VALUES.tolist()
    assert numbers_of(table, "depth") == [0, 1, 2, 3, 0, 1, 2, 3, 4, 0, 1, 2]
    assert "3 samples without any value left out" in table.notes


def test_a_height_becomes_a_depth():
    height = variable("time", -DEPTHS, "height", "m", positive="up", axis="Z")
    table = open_table(write({**{k: v for k, v in coordinates().items() if k != "depth"}, "z": height,
                              "temperature": temperature()}))  # fmt: skip
    assert numbers_of(table, "depth") == DEPTHS.tolist()
    assert "depth is z with its sign turned, for that is positive upwards" in table.notes


def test_a_station_with_a_single_position_repeats_it():
    table = open_table(write({
        "time": variable("time", SECONDS, "time", SINCE),
        "lat": variable((), 47.3, "latitude", "degrees_north"),
        "lon": variable((), 8.5, "longitude", "degrees_east"), "temperature": temperature(),
    }))  # fmt: skip
    assert set(table.cells["lat"]) == {"47.3"}


def test_samples_at_two_rates_are_asked_about():
    gps = {"t2": variable("slow", SECONDS[:4], "time", SINCE), "la2": variable("slow", LAT[:4], "latitude"),
           "lo2": variable("slow", LON[:4], "longitude"), "wind": variable("slow", VALUES[:4])}  # fmt: skip
    path = write({**glider(), **gps})
    with pytest.raises(InputError, match=r"time \(12 samples\), slow \(4 samples\)"):
        open_table(path)
    same_points(open_table(path, layer="time"), "temperature", **NAMES)
    assert numbers_of(open_table(path, layer="slow"), "wind") == VALUES[:4].tolist()


def test_a_grid_is_refused():
    with pytest.raises(InputError, match=r"holds a grid, lat \(3\), lon \(4\), not readings at points"):
        open_table(write({
            "lat": variable("lat", LAT[:3], "latitude"), "lon": variable("lon", LON[:4], "longitude"),
            "sst": variable(("lat", "lon"), VALUES.reshape(3, 4)),
        }))  # fmt: skip


def test_a_map_in_a_projection_is_a_grid_too():
    with pytest.raises(InputError, match=r"holds a grid, north \(3\), east \(4\)"):
        open_table(write({
            "north": variable("north", LAT[:3], "projection_y_coordinate", "m"),
            "east": variable("east", LON[:4], "projection_x_coordinate", "m"),
            "latitude": variable(("north", "east"), LAT.reshape(3, 4), "latitude"),
            "longitude": variable(("north", "east"), LON.reshape(3, 4), "longitude"),
            "mean": variable(("north", "east"), VALUES.reshape(3, 4)),
        }))  # fmt: skip


def test_damaged_files_and_hdf5_of_other_programs_are_one_error():
    for classic in (False, True):
        path = write(glider(), classic=classic)
        path.write_bytes(path.read_bytes()[:600])
        with pytest.raises(InputError, match=r"damaged or cut off|holds no variables"):
            open_table(path)
    with h5py.File("other.h5", "w") as file:
        file["x"] = np.arange(5)
    with pytest.raises(InputError, match="HDF5 file without the dimensions"):
        open_table(Path("other.h5"))
    with h5py.File("empty.h5", "w"):
        pass
    with pytest.raises(InputError, match="holds no variables with samples"):
        open_table(Path("empty.h5"))


def test_groups_are_asked_about():
    data = xr.Dataset({**coordinates(), "temperature": temperature()})
    encoding = {name: {"_FillValue": None} for name in data.variables if "_FillValue" not in data[name].attrs}
    for number, name in enumerate(("up", "down")):
        data.to_netcdf("g.nc", group=name, mode="a" if number else "w", engine="h5netcdf", encoding=encoding)
    with pytest.raises(InputError, match="2 groups that may be meant"):
        open_table(Path("g.nc"))
    same_points(open_table(Path("g.nc"), layer="down"), "temperature", **NAMES)

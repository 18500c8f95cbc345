"""Files state units as UDUNITS reads them, or none: it is asked itself in tests/peers/programs.py."""

from dataclasses import replace

import numpy as np
import pytest
import xarray

import fieldbo
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.results import maps
from fieldbo.results.cf_units import STATED, udunits, with_units
from fieldbo.results.maps import Labelled, Variable
from fieldbo.tables.opening import open_table
from fieldbo.testing import small_mission, small_world
from fieldbo.world.world import Quantity


@pytest.mark.parametrize(
    "unit",
    ["m", "mg m-3", "mg/L", "ug l-1", "%", "degC", "S/m", "mS cm-1", "W m-2 nm-1", "1e-3", "m**2", "10^6/l"],
)
def test_what_udunits_knows_stays_as_it_is(unit):
    assert udunits(unit) == unit


@pytest.mark.parametrize(
    "unit",
    [
        "NTU",
        "FNU",
        "psu",
        "PSU",
        "RFU",
        "QSU",
        "cells/mL",
        "CFU/100 mL",
        "a.u.",
        "EUR",
        "mg/l as N",
        "/m",
        "m/",
    ],
)
def test_what_udunits_does_not_know_is_not_written(unit):
    assert udunits(unit) is None


@pytest.mark.parametrize(
    "unit", ["ppt", "pH", "C", "F", "Sv", "cps", "mg/l N", "mg N/l", "mmol N m-3", "ug C l-1"]
)
def test_what_udunits_takes_for_something_else_is_not_written(unit):
    assert udunits(unit) is None


@pytest.mark.parametrize(
    ("unit", "written"),
    [
        ("", "1"),
        ("\N{MICRO SIGN}g/L", "ug/L"),
        ("\N{GREEK SMALL LETTER MU}S/cm", "uS/cm"),
        ("m\N{SUPERSCRIPT TWO}", "m2"),
        ("mg m⁻³", "mg m-3"),
        ("mg·m⁻³", "mg m-3"),
        ("°C", "degree_Celsius"),
        ("deg", "degree"),
        ("‰", "1e-3"),
        ("kn", "knot"),
    ],
)
def test_what_people_write_otherwise_is_written_in_the_words_of_udunits(unit, written):
    assert udunits(unit) == written
    assert with_units({"long_name": "x", "units": unit})["units"] == written


@pytest.mark.parametrize("unit", ["N/m2", "W/kg", "J/kg K", "V", "kg m-3", "N kg-1"])
def test_newtons_and_kelvins_are_no_elements_where_nothing_is_weighed(unit):
    assert udunits(unit) == unit


@pytest.mark.parametrize(
    "unit", ["days", "hours", "minutes", "seconds", "milliseconds", "nanoseconds", "s", "d"]
)
def test_xarray_reads_quantities_and_axes_in_units_of_time_as_numbers(unit, tmp_path):
    domain = Domain.grid([Axis("age", unit, 0, 4), Axis("x", "m", 0, 1)], (5, 2))
    age = Variable(("age",), np.linspace(0, 4, 5), maps.attributes_of(domain, 0))
    values = np.array([0.0, 1.5, np.nan, 1e4, 3.0])
    labelled = Labelled({"mean": Variable(("age",), values, age.attributes)}, {"age": age})
    (tmp_path / "map.nc").write_bytes(labelled.file())

    with xarray.open_dataset(tmp_path / "map.nc", engine="scipy") as data:
        assert data["mean"].dtype == data["age"].dtype == np.float64
        np.testing.assert_array_equal(data["mean"], values)
        assert data["mean"].attrs.get(STATED, data["mean"].attrs["units"]) == unit


def test_a_unit_that_is_not_written_is_in_the_name_of_every_map_and_kept():
    world = replace(small_world(), quantity=Quantity("turbidity", "NTU"))
    result = fieldbo.run(small_mission(world=world))

    described = result.maps()
    for name in ("mean", "sd"):
        said = described[name].attrs
        assert (said["units"], said[STATED]) == ("1", "NTU")
        assert said["long_name"].startswith("turbidity, posterior")
        assert said["long_name"].endswith("(NTU)")
    assert maps.layers(result.answer, result.failures)["mean"][1]["units"] == "NTU", "a GeoTIFF may say so"


def test_a_unit_that_is_not_written_is_read_again(tmp_path):
    x = Variable(("x",), np.array([0.0, 1.0]), {"long_name": "x", "units": "m"})
    turbidity = with_units({"long_name": "turbidity", "units": "NTU"})
    labelled = Labelled({"value": Variable(("x",), np.array([3.5, 4.5]), turbidity)}, {"x": x})
    (tmp_path / "t.nc").write_bytes(labelled.file())

    assert open_table(tmp_path / "t.nc").units["value"] == "NTU"

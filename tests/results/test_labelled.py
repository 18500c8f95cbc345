"""Labelled arrays are written as xarray writes them, byte for byte."""

import numpy as np
import pytest
from pyproj import CRS

import fieldbo
from fieldbo.results import maps
from fieldbo.results.maps import Labelled, Variable


@pytest.mark.parametrize("name", ["lake-level-set", "lake-places-optimum", "branin"])
def test_maps_are_written_as_xarray_writes_them(name):
    result = fieldbo.run(fieldbo.load_mission(name, {"agent": {"max_steps": 2}}))

    assert maps.labelled(result).file() == bytes(result.maps().to_netcdf(engine="scipy"))


def test_odd_attributes_and_numbers_are_written_as_xarray_writes_them():
    y = Variable(("y",), np.array([0.0, 1.0, 2.5]), {"units": "m", "label": "Höhe"})
    x = Variable(("x",), np.array([4, 5], dtype=np.int32), {})
    beside = Variable(("y", "x"), np.arange(6.0).reshape(3, 2), {"about": np.array([1.5, 2.0])})
    counts = Variable(("y", "x"), np.arange(6, dtype=np.int8).reshape(3, 2), {"number": 3}, np.int8(-1))
    single = Variable(("x",), np.array([1.0, np.nan], dtype=np.float32), {"empty": ""})
    labelled = Labelled(
        {"n": counts, "s": single}, {"y": y, "x": x, "b": beside}, {"title": "odd", "share": 0.5}
    )

    assert labelled.file() == bytes(labelled.dataset().to_netcdf(engine="scipy"))


@pytest.mark.parametrize(("crs", "pole"), [("EPSG:3031", -90.0), ("EPSG:3413", 90.0), ("EPSG:5041", 90.0)])
def test_the_grid_mapping_of_a_polar_crs_says_which_pole_it_is_of(crs, pole):
    described = maps.grid_mapping(crs)

    assert described["grid_mapping_name"] == "polar_stereographic"
    assert described["latitude_of_projection_origin"] == pole
    assert CRS.from_cf(described) == CRS.from_user_input(crs)

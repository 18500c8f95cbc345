"""Frames: a domain's axes in local metres and in degrees, and back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyproj import Geod

from fieldbo import list_worlds, load_world
from fieldbo.domain.axes import Axis
from fieldbo.domain.frame import Frame, Origin
from fieldbo.errors import InputError, UnknownNameError
from fieldbo.validation import validated

LAKE = [Axis("along", "m", 0, 1400), Axis("depth", "m", 0, 18, "down")]
PLAN = [Axis("x", "m", 0, 900), Axis("y", "m", 0, 400)]
SPACE = [Axis("height", "m", 0, 30), Axis("x", "m", 0, 900), Axis("y", "m", 0, 400)]
MILLIMETRE = 1e-3


def test_each_axis_points_in_the_direction_of_the_frame():
    east = Frame(along="along", depth="depth").over(LAKE)
    assert east.local([[100, 5]]).tolist() == [[100, 0, -5]]

    north = Frame(bearing=0, along="along", depth="depth").over(LAKE)
    assert north.local([[100, 5]]).tolist() == [[0, 100, -5]]

    plan = Frame(along="x", left="y").over(PLAN)  # x east, y north
    assert plan.local([[3, 4]]).tolist() == [[3, 4, 0]]

    turned = Frame(bearing=180, along="x", right="y").over(PLAN)  # x south, y west
    assert turned.local([[3, 4]]).tolist() == [[-4, -3, 0]]

    space = Frame(along="x", left="y", height="height").over(SPACE)
    assert space.local([[7, 3, 4]]).tolist() == [[3, 4, 7]]


@given(
    bearing=st.floats(-720, 720),
    side=st.sampled_from(["left", "right"]),
    latitude=st.floats(-85, 85),
    longitude=st.floats(-180, 180),
    sites=st.lists(st.tuples(*[st.floats(-7000, 7000)] * 3), min_size=1, max_size=8),
)
def test_sites_survive_the_round_trip_to_a_millimetre_at_ten_kilometres(
    bearing, side, latitude, longitude, sites
):
    origin = Origin(latitude, longitude, 406.0)
    frame = Frame(origin, bearing, along="x", height="height", zero={"x": 5.0}, **{side: "y"})
    ground = frame.over(SPACE)

    np.testing.assert_allclose(ground.sites(ground.local(sites)), sites, atol=MILLIMETRE / 1000)
    np.testing.assert_allclose(ground.from_geodetic(ground.geodetic(sites)), sites, atol=MILLIMETRE)
    np.testing.assert_allclose(ground.off(ground.local(sites)), 0.0, atol=MILLIMETRE / 1000)


@given(latitude=st.floats(-85, 85), bearing=st.floats(0, 359), far=st.floats(1, 10_000))
def test_distance_and_bearing_from_the_origin_are_those_of_the_geodesic(latitude, bearing, far):
    ground = Frame(Origin(latitude, 8.58), bearing, along="along", depth="depth").over(LAKE)

    there = ground.geodetic([[far, 0]])[0]

    azimuth, _, distance = Geod(ellps="WGS84").inv(8.58, latitude, there[1], there[0])
    assert distance == pytest.approx(far, abs=MILLIMETRE)
    assert np.cos(np.radians(azimuth - bearing)) == pytest.approx(1.0, abs=1e-7)


def test_depth_lowers_the_altitude_and_height_raises_it():
    lake = Frame(Origin(47.31, 8.58, 406), along="along", depth="depth").over(LAKE)
    wall = [Axis("along", "m", 0, 30), Axis("height", "m", 0, 18)]
    house = Frame(Origin(47.31, 8.58, 406), along="along", height="height").over(wall)

    assert lake.geodetic([[0, 18]])[0, 2] == 388
    assert house.geodetic([[0, 18]])[0, 2] == 424


def test_the_origin_may_be_at_any_site():
    far_away = [Axis("x", "m", 178_605, 181_390), Axis("y", "m", 329_714, 333_611)]
    frame = Frame(Origin(50.95, 5.72), along="x", left="y", zero={"x": 178_605, "y": 329_714})

    assert frame.over(far_away).geodetic([[178_605, 329_714]])[0] == pytest.approx([50.95, 5.72, 0.0])


def test_the_distance_from_the_plane_is_dropped_and_can_be_computed():
    ground = Frame(along="along", depth="depth").over(LAKE)

    assert ground.sites([[100, 3, -5]]).tolist() == [[100, 5]]
    assert ground.off([[100, 3, -5], [100, 0, -5]]).tolist() == [3, 0]


@pytest.mark.parametrize("name", sorted(list_worlds()))
def test_shipped_worlds_lie_on_the_ground_exactly_if_their_axes_are_in_metres(name):
    axes = load_world(name).domain.axes
    names = [axis.name for axis in axes]
    side = "height" if "height" in names else "depth" if "depth" in names else "left"
    frame = Frame(Origin(47.31, 8.58), along=names[0], **{side: names[-1]})

    if all(axis.unit == "m" for axis in axes):
        assert np.isfinite(frame.over(axes).geodetic(load_world(name).domain.sites[:3])).all()
    else:
        with pytest.raises(InputError, match="metres"):
            frame.over(axes)


def test_degrees_without_an_origin_raise_an_error_that_names_the_key():
    ground = Frame(along="along", depth="depth").over(LAKE)

    for ask in (lambda: ground.geodetic([[0, 0]]), lambda: ground.from_geodetic([[47, 8, 400]])):
        with pytest.raises(InputError, match=r"(?s)frame\.origin.*\[frame\]: origin ="):
            ask()


@pytest.mark.parametrize(
    ("settings", "axes", "message"),
    [
        ({"along": "along"}, LAKE, "the axis 'depth' has no direction"),
        ({"along": "along", "depth": "dept"}, LAKE, r"(?s)unknown axis 'dept'.*did you mean 'depth'"),
        ({"along": "along", "right": "along", "depth": "depth"}, LAKE, "points both along and right"),
        ({"along": "along", "depth": "depth", "zero": {"dept": 1}}, LAKE, r"frame\.zero\.dept"),
        ({"along": "x", "left": "y"}, [PLAN[0], Axis("y", "km", 0, 1)], "'y' is in km"),
    ],
)
def test_a_frame_that_does_not_fit_the_domain_is_rejected(settings, axes, message):
    with pytest.raises(InputError, match=message):
        Frame(**settings).over(axes)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"along": "x", "left": "y", "right": "z"}, r"(?s)both right and left.*boat\.toml: frame\.left"),
        ({"along": "x", "depth": "y", "height": "z"}, "both height and depth"),
        ({"origin": {"latitude": 95, "longitude": 8}}, r"(?s)latitude = 95.*frame\.origin\.latitude"),
        ({"origin": {"latitude": 45}}, "longitude is missing"),
        ({"bering": 90}, "did you mean 'bearing'"),
        ({"along": 1}, "along = 1"),
        ({"bearing": float("nan")}, "bearing = "),
    ],
)
def test_a_wrong_table_raises_an_error_with_its_place(table, message):
    with pytest.raises(InputError, match=message):
        validated(Frame, table, "boat.toml: frame")


def test_a_table_reads_as_written():
    table = {
        "origin": {"latitude": 47.31, "longitude": 8, "altitude": 406},
        "along": "along",
        "depth": "depth",
        "zero": {"along": 5},
    }
    read = validated(Frame, table, "boat.toml: frame")

    assert read == Frame(Origin(47.31, 8.0, 406.0), along="along", depth="depth", zero={"along": 5.0})


def test_an_unknown_axis_is_an_unknown_name():
    with pytest.raises(UnknownNameError):
        Frame(along="x").over(LAKE)

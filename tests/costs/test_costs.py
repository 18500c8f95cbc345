"""The costs of moves and samples, by kind."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from fieldbo.costs.base import CostModel
from fieldbo.costs.euclidean import Euclidean
from fieldbo.costs.flight import Flight
from fieldbo.costs.transect import Transect
from fieldbo.costs.unit import Unit
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.obstacles import Obstacle
from fieldbo.errors import InputError, UnknownNameError
from fieldbo.mission.files import made
from fieldbo.mission.kinds import COSTS
from fieldbo.mission.schema import json_schema
from fieldbo.testing import small_world

WALL = [Axis("along", "m", 0.0, 20.0), Axis("height", "m", 0.0, 10.0)]
LAKE = [Axis("along", "m", 0.0, 20.0), Axis("depth", "m", 0.0, 10.0, "down")]
OPEN = Domain.grid(WALL, (11, 6))
WINDOWS = tuple(Obstacle(f"window {k}", (3 * k, 4), (3 * k + 2, 6)) for k in range(1, 6))
CUT = Domain.grid(WALL, (11, 6), obstacles=WINDOWS)
POINTS = st.lists(st.tuples(*[st.floats(-50, 50)] * 3), min_size=3, max_size=3).map(np.array)


# -- straight lines --------------------------------------------------------------------------------------


def test_an_axis_rate_scales_distances_along_its_axis():
    cost = Euclidean(rate=2.0, axis_rates=(1.0, 3.0))

    assert cost.travel([0, 0], [[4, 1]])[0] == pytest.approx(2.0 * 5.0)
    assert Euclidean(axis_rates=(0.0, 1.0)).travel([0, 0], [[9, 2]])[0] == pytest.approx(2.0)


def test_axis_rates_apply_to_every_leg_around_an_obstacle():
    cost = Euclidean(axis_rates=(1.0, 4.0)).within(Domain.grid(WALL, (11, 6), obstacles=WINDOWS[:1]))
    expected = sqrt(1 + (4 * 1.0) ** 2)

    assert cost.travel([2, 5], [[6, 5]])[0] == pytest.approx(2 * expected + 2)


@pytest.mark.parametrize("rates", [(1.0,), (1.0, 1.0, 1.0), ()])
def test_the_number_of_axis_rates_must_match_the_axes(rates):
    with pytest.raises(InputError, match=f"axis_rates has {len(rates)} number") as caught:
        replace(small_world(), cost=Euclidean(axis_rates=rates))
    assert caught.value.expected == "2, for x, y"
    assert caught.value.where == "cost.axis_rates"


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
def test_an_axis_rate_that_is_negative_or_not_finite_is_rejected(bad):
    with pytest.raises(InputError, match=r"axis_rates\[1\]"):
        Euclidean(axis_rates=(1.0, bad))


# -- flights ---------------------------------------------------------------------------------------------


@settings(max_examples=examples(50))
@given(
    length=st.floats(1e-6, 1e4),
    speed=st.floats(0.1, 30),
    acceleration=st.floats(0.1, 10),
)
def test_the_duration_of_a_leg_matches_its_speed_profile(length, speed, acceleration):
    seconds = Flight(speed=speed, acceleration=acceleration).travel_s([0.0, 0.0], [[length, 0.0]])[0]
    # Integrate the profile: up at the acceleration, no faster than the speed, down again.
    t = np.linspace(0.0, seconds, 20_001)
    profile = np.minimum(speed, acceleration * np.minimum(t, seconds - t))

    assert np.trapezoid(profile, t) == pytest.approx(length, rel=1e-4)


def test_the_duration_is_continuous_where_a_leg_just_reaches_the_speed():
    drone = Flight(speed=3.0, acceleration=1.5)
    ramp = 3.0**2 / 1.5
    below, at, above = drone.travel_s([0.0, 0.0], [[ramp - 1e-9, 0], [ramp, 0], [ramp + 1e-9, 0]])

    assert at == pytest.approx(2 * 3.0 / 1.5)
    assert below == pytest.approx(above)


def test_the_energy_of_a_flight_adds_up_moving_climbing_descending_and_hovering():
    drone = Flight(
        speed=2.0, acceleration=1.0, power=100.0, hover_power=50.0, hover_s=8.0, climb=30.0, descent=4.0
    )
    seconds = 10.0 / 2.0 + 2.0 / 1.0

    assert drone.travel([0, 0], [[0, 10]])[0] == pytest.approx((100 * seconds + 30 * 10) / 3600)
    assert drone.travel([0, 10], [[0, 0]])[0] == pytest.approx((100 * seconds + 4 * 10) / 3600)
    assert drone.sampling_cost([[0, 0], [1, 1]]) == pytest.approx([50 * 8 / 3600] * 2)
    assert drone.duration_s([0, 0], [[0, 10]])[0] == pytest.approx(seconds + 8.0)
    assert replace(drone, joules_per_unit=1.0).travel([0, 0], [[0, 10]])[0] == pytest.approx(1000.0)


def test_a_flight_that_stays_in_place_costs_nothing():
    drone = Flight(climb=10.0)

    assert drone.travel([3, 4], [[3, 4]])[0] == 0.0
    assert drone.travel_s([3, 4], [[3, 4]])[0] == 0.0


@settings(max_examples=examples(100))
@given(points=POINTS, speed=st.floats(0.1, 20), acceleration=st.floats(0.1, 10))
def test_a_stop_on_the_route_never_makes_a_flight_cheaper(points, speed, acceleration):
    drone = Flight(speed=speed, acceleration=acceleration, climb=70.0, descent=9.0)
    price = drone.travel(points, points)

    assert price[0, 2] <= price[0, 1] + price[1, 2] + 1e-9


@pytest.mark.parametrize(
    ("axes", "up", "height", "reversed_"),
    [(WALL, None, 1, False), (WALL, "along", 0, False), (LAKE, None, 1, True), (LAKE, "depth", 1, True)],
)
def test_the_named_axis_is_vertical_and_a_depth_is_reversed(axes, up, height, reversed_):
    drone = Flight(climb=100.0, power=0.0, up=up, joules_per_unit=1.0).within(Domain.grid(axes, (3, 3)))
    low, high = np.zeros(2), np.zeros(2)
    high[height] = 5.0
    rising, falling = drone.travel(low, high[None])[0], drone.travel(high, low[None])[0]

    assert (falling, rising) == ((500.0, 0.0) if reversed_ else (0.0, 500.0))


def test_the_vertical_axis_must_be_an_axis_of_the_domain():
    with pytest.raises(UnknownNameError, match="unknown axis 'hight'") as caught:
        replace(small_world(), cost=Flight(up="hight"))
    assert caught.value.where == "cost.up"


def test_a_flight_on_axes_that_are_not_in_metres_is_rejected():
    with pytest.raises(InputError, match="axis 'temperature' is in K"):
        Flight().check(Domain.grid([Axis("temperature", "K", 0, 1), Axis("z", "m", 0, 1)], (2, 2)))


@pytest.mark.parametrize("name", ["speed", "acceleration", "joules_per_unit"])
@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
def test_divisors_must_be_above_0(name, bad):
    with pytest.raises(InputError, match=f"{name} = ") as caught:
        Flight(**{name: bad})
    assert caught.value.where == f"cost.{name}"


@pytest.mark.parametrize("name", ["power", "hover_power", "hover_s", "climb", "descent"])
@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
def test_powers_and_durations_must_be_at_least_0(name, bad):
    with pytest.raises(InputError, match=f"{name} = "):
        Flight(**{name: bad})


def test_seconds_per_unit_is_not_a_setting_of_a_flight():
    with pytest.raises(InputError, match="unknown key 'seconds_per_unit'"):
        made(COSTS, {"kind": "flight", "seconds_per_unit": 2.0}, "world.toml: cost")
    kinds = {k["properties"]["kind"]["const"]: k for k in json_schema("world")["properties"]["cost"]["oneOf"]}
    assert "seconds_per_unit" not in kinds["flight"]["properties"]
    assert "seconds_per_unit" in kinds["euclidean"]["properties"]
    assert Flight().seconds_per_travel is None


@settings(max_examples=examples(50))
@given(points=POINTS, hover=st.floats(1, 300), power=st.floats(1, 300))
def test_seconds_per_unit_of_a_flight_is_an_upper_bound(points, hover, power):
    drone = Flight(power=power, hover_power=hover, hover_s=5.0, climb=20.0)
    energy, seconds = drone.to(points, points), drone.duration_s(points, points)

    assert (seconds <= drone.seconds_per_unit * energy * (1 + 1e-12)).all()


def test_a_flight_is_read_from_a_table():
    settings = {"kind": "flight", "speed": 3, "up": "height", "hover_s": 2}

    assert made(COSTS, settings, "w: cost") == Flight(speed=3.0, up="height", hover_s=2.0)


# -- obstacles -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tram(CostModel):
    """A cost of another package, which ignores obstacles."""

    def travel_between(self, starts, ends):
        return np.ones((len(starts), len(ends)))

    def sample_at(self, sites):
        return np.zeros(len(sites))

    def check(self, domain):
        """Fit every domain."""


@pytest.mark.parametrize("cost", [Unit(), Transect(), Tram()])
def test_a_cost_that_cannot_route_around_obstacles_rejects_them(cost):
    world = replace(small_world(), domain=OPEN, start=None, cost=cost)
    with pytest.raises(InputError, match=r"window 1, window 2, window 3 and 2 more") as caught:
        replace(world, domain=CUT)
    assert caught.value.where == "cost.kind"
    assert "euclidean" in caught.value.fix


@pytest.mark.parametrize("cost", [Euclidean(), Flight()])
def test_a_cost_of_legs_routes_around_obstacles(cost):
    world = replace(small_world(), domain=CUT, start=None, cost=cost)

    assert world.cost.travel([2, 5], [[6, 5]])[0] > cost.travel([2, 5], [[6, 5]])[0]
    assert len(world.cost.path([2, 5], [6, 5])) == 4


@pytest.mark.parametrize("cost", [Euclidean(rate=3.0), Flight(climb=9.0)])
def test_without_obstacles_a_domain_has_the_costs_of_straight_legs(cost):
    bound, sites = cost.within(OPEN), OPEN.sites

    assert np.array_equal(bound.travel(sites, sites), cost.travel(sites, sites))
    assert np.array_equal(bound.travel_s(sites, sites), cost.travel_s(sites, sites))
    assert bound.path([0, 0], [5, 5]).tolist() == [[0, 0], [5, 5]]


def test_a_cost_is_bound_to_one_domain_at_a_time():
    cost = Euclidean().within(CUT)

    assert cost == Euclidean()
    assert cost.within(CUT) is cost
    assert cost.with_level_costs((0.0, 2.0)).travel([2, 5], [[6, 5]])[0] == cost.travel([2, 5], [[6, 5]])[0]
    assert cost.within(OPEN).travel([2, 5], [[6, 5]])[0] == 4.0
    assert cost.travel([2, 5], [[6, 5]])[0] > 4.0


def test_a_cached_matrix_is_dropped_with_its_domain_or_settings():
    cost, sites = Euclidean(), np.array([[2.0, 5.0], [6.0, 5.0]])
    assert cost.matrix(sites)[0, 1] == 4.0

    assert cost.within(CUT).matrix(sites)[0, 1] > 4.0
    assert cost.with_level_costs((3.0,)).matrix(sites)[0, 1] == 7.0
    assert cost.matrix(sites)[0, 1] == 4.0


# -- what compiled loops compute by themselves -----------------------------------------------------------


@pytest.mark.parametrize(
    "cost", [Euclidean(rate=2.5), Euclidean(rate=2.0, axis_rates=(1.0, 0.5)), Unit(), Euclidean(rate=0.0)]
)
def test_straight_rates_reproduce_travel(cost):
    sites, bound = OPEN.sites, cost.within(OPEN)
    gaps = bound.straight_rates * (sites[None] - sites[:, None])

    assert bound.straight_rates.shape == (2,)
    assert np.linalg.norm(gaps, axis=2) == pytest.approx(bound.travel(sites, sites))


@pytest.mark.parametrize("cost", [Euclidean().within(CUT), Flight().within(OPEN), Transect().within(OPEN)])
def test_straight_rates_are_none_if_travel_has_another_form(cost):
    assert cost.straight_rates is None


def test_straight_rates_are_none_without_a_domain():
    assert Euclidean().straight_rates is None
    assert Unit().straight_rates is None


@pytest.mark.parametrize("domain", [OPEN, CUT])
def test_seconds_are_travel_times_the_fixed_rate(domain):
    cost = Euclidean(rate=2.0, seconds_per_unit=3.0).within(domain)
    sites = domain.sites

    assert cost.seconds_per_travel == 3.0
    assert np.array_equal(cost.travel_s(sites, sites), 3.0 * cost.travel(sites, sites))

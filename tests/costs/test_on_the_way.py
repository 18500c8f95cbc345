"""Readings on the way: where they are taken, what they cost, and who can deliver them."""

from dataclasses import replace

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

import fieldbo
from fieldbo.costs import Boat, Euclidean, Flight
from fieldbo.costs.base import Unit
from fieldbo.costs.on_the_way import on_the_way, read_on_moves
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.obstacles import Obstacle
from fieldbo.domain.sensor import Along, Level, Sensor
from fieldbo.errors import InputError
from fieldbo.messages import GoHome, Query
from fieldbo.testing import small_cell, small_mission, small_world
from fieldbo.testing.small import Hills
from fieldbo.vehicles.base import Simulated
from fieldbo.vehicles.by_hand import ByHand
from fieldbo.world.world import Disturbances, Quantity, World


def logging_world(along=Along(every_m=0.5), **changes):  # noqa: B008
    world = small_world()
    return replace(world, sensor=replace(world.sensor, along=along), **changes)


def walled_world(along):
    """A room of 10 m with a wall across it, around which all routes between its halves lead."""
    axes = [Axis("x", "m", 0, 10), Axis("y", "m", 0, 10)]
    domain = Domain.grid(axes, (11, 11), obstacles=[Obstacle("wall", (4.5, 0.0), (5.5, 8.5))])
    cost = Boat(speed=2.0, stop_s=3.0)
    return World("room", "", domain, cost, "s", Sensor(0.01, along=along), Quantity(), Hills())


points = st.lists(
    st.tuples(st.floats(-50, 50), st.floats(-50, 50)).map(np.array), min_size=2, max_size=6
).map(np.stack)


@settings(max_examples=examples(50), deadline=None)
@given(points, st.floats(0.2, 20))
def test_readings_per_distance_lie_on_the_route_at_equal_distances_and_none_at_its_end(route, spacing):
    sites, seconds = on_the_way(Euclidean(rate=0.5), Along(every_m=spacing), route)
    line = shapely.LineString(route)
    count = len(sites)
    assert count * spacing < line.length + 1e-6
    assert (count + 1) * spacing > line.length - 1e-6
    for number, site in enumerate(sites, start=1):
        assert shapely.Point(site).distance(line.interpolate(number * spacing)) < 1e-6
    np.testing.assert_allclose(seconds, 0.5 * spacing * np.arange(1, count + 1), atol=1e-6)


def test_readings_per_time_are_closer_together_on_a_slower_leg():
    winch = Boat(speed=2.0, winch_speed=0.5)
    route = [[0.0, 0.0, 2.0], [0.0, 0.0, 0.0], [10.0, 0.0, 0.0]]  # 4 s up, then 5 s across
    sites, seconds = on_the_way(winch, Along(every_s=1.0), route)
    assert sites[:, 2].tolist() == [1.5, 1.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0]
    assert sites[:, 0].tolist() == [0.0, 0.0, 0.0, 0.0, 2.0, 4.0, 6.0, 8.0]
    assert seconds.tolist() == [1, 2, 3, 4, 5, 6, 7, 8]


def test_a_leg_shorter_than_the_spacing_and_one_without_length_have_no_reading():
    for end in ([0.4, 0.0], [0.0, 0.0]):
        assert on_the_way(Euclidean(), Along(every_m=0.5), [[0.0, 0.0], end]).sites.shape == (0, 2)


def test_an_order_holds_its_readings_on_the_way_and_the_last_is_at_the_site():
    world = logging_world()
    mission = small_mission(world=world)
    vehicle = Simulated(mission)
    vehicle.send(Query([3.0, 4.0], expected_cost=6.0, id="run/0"))
    (event,) = vehicle.events(0.0)
    assert len(event.values) == 10
    np.testing.assert_allclose(event.sites, np.outer(np.arange(1, 11) / 10, [3.0, 4.0]))
    np.testing.assert_allclose(event.times_s, [0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 6.0])
    assert event.cost == 6.0
    assert event.position.tolist() == [3.0, 4.0]
    errors = event.values - world.truth(event.sites)
    assert 0.01 < np.abs(errors).max() < 0.25
    assert len(np.unique(errors)) == 10


def test_the_way_home_is_read_too_but_not_home_itself():
    vehicle = Simulated(small_mission(world=logging_world()))
    vehicle.send(Query([0.0, 2.0], expected_cost=3.0, id="run/0"))
    vehicle.send(GoHome(0, "run/1", np.zeros(2), expected_cost=2.0))
    home = vehicle.events(0.0)[-1]
    assert home.sites.tolist() == [[0.0, 1.5], [0.0, 1.0], [0.0, 0.5]]
    assert home.times_s.tolist() == [3.5, 4.0, 4.5]
    assert home.time_s == 5.0
    assert home.cost == 2.0
    assert home.position.tolist() == [0.0, 0.0]


def test_no_reading_is_taken_inside_an_obstacle():
    world = walled_world(Along(every_m=0.1))
    mission = small_mission(world=world, battery=200.0)
    result = fieldbo.run(mission)
    sites = np.concatenate([o.sites for o in result.observations])
    assert len(sites) > 200
    assert world.domain.contains(sites).all()
    assert (sites[:, 0] > 5.5).any()
    assert (sites[:, 0] < 4.5).any()


def test_battery_ledger_and_readings_at_sites_are_those_of_a_mission_without_readings_on_the_way():
    stops = [[5.0, 4.0], [0.0, 4.0], [2.0, 1.0]]
    ends = {}
    for along in (None, Along(every_s=0.3)):
        vehicle = Simulated(small_mission(world=logging_world(along)))
        for number, stop in enumerate(stops):
            vehicle.send(Query(stop, expected_cost=1.0, id=f"run/{number}"))
        ends[along] = vehicle.events(0.0)
    for plain, logged in zip(*ends.values(), strict=True):
        assert len(logged.values) > len(plain.values) == 1
        assert (logged.cost, logged.times_s[-1]) == (plain.cost, plain.times_s[-1])
        assert (logged.values[-1], logged.sites[-1].tolist()) == (plain.values[-1], plain.sites[-1].tolist())


def test_the_same_seed_reads_the_same_and_another_seed_does_not():
    first, again, other = (
        fieldbo.run(replace(small_mission(world=logging_world()), seed=seed)) for seed in (3, 3, 4)
    )
    assert np.array_equal(first.values, again.values)
    assert np.array_equal(first.sites, again.sites)
    assert not np.array_equal(first.values[:12], other.values[:12])


def test_a_slow_day_spreads_the_readings_over_the_time_that_travel_really_takes():
    world = logging_world(Along(every_s=1.0), disturbances=Disturbances(head_wind=(-0.25, 0.0)))
    query = Query([4.0, 0.0], expected_cost=5.0, id="run/0")
    event = world.evaluate(query, np.zeros(2), 0.0, np.random.default_rng(0), along=np.random.default_rng(1))
    assert event.times_s.tolist() == [1.0, 2.0, 3.0, 4.0, 6.0]  # 5 s of travel against the wind
    np.testing.assert_allclose(event.sites[:, 0], [0.8, 1.6, 2.4, 3.2, 4.0])


class Rising(Hills):
    """A tide."""

    def values(self, sites, time_s=0.0):
        return super().values(sites, time_s) + 10.0 * time_s


def test_a_field_that_changes_is_read_as_it_is_at_the_time_of_each_reading():
    still, rising = (replace(walled_world(Along(every_s=0.5)), field=field()) for field in (Hills, Rising))
    reads = [
        w.read_on_the_way([[0, 9], [10, 9]], 7.0, 5.0, np.random.default_rng(0)) for w in (still, rising)
    ]
    np.testing.assert_allclose(reads[1].values - reads[0].values, 10.0 * (7.0 + reads[0].seconds))
    assert len(reads[0].seconds) == 9


def test_a_mission_pays_for_all_it_does_and_ends_at_home():
    mission = small_mission(world=logging_world(), battery=30.0)
    result = fieldbo.run(mission)
    assert result.cost <= 30.0
    assert result.path[-1].tolist() == [0.0, 0.0]
    assert result.surface.mean.shape == (30,)
    assert len(result.values) > 40
    truth = mission.world.truth(mission.world.domain.sites)
    errors = [
        np.abs(run.scale.to_user(run.surface.mean) - truth).mean()
        for run in (result, fieldbo.run(small_mission(battery=30.0)))
    ]
    assert errors[0] < 0.8 * errors[1]


def test_a_policy_can_ask_where_each_move_would_read():
    world = walled_world(Along(every_m=1.0))
    moves = read_on_moves(world.cost, world.sensor.along, [4.0, 0.0], world.domain.sites)
    assert len(moves) == world.domain.size
    across = moves[int(world.domain.nearest(np.array([6.0, 0.0])))]
    assert len(across) == 18  # 8.51 m up to the end of the wall, 1 m along it, and 8.51 m down
    assert world.domain.contains(across).all()
    assert not len(moves[int(world.domain.nearest(np.array([4.0, 0.0])))])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (Along, r"along is empty(.|\n)*every_s or every_m"),
        (lambda: Along(every_s=1, every_m=5), r"every_s = 1 and every_m = 5(.|\n)*one of them"),
        (lambda: Along(every_s=0.0), "every_s = 0"),
        (lambda: Along(every_m=-5.0), "every_m = -5"),
        (lambda: Along(every_m=np.inf), "every_m = inf"),
        (lambda: Along(every_m=np.nan), "every_m = nan"),
        (lambda: Sensor(along=Along(every_m=5.0)), "not the noise of a reading"),
        (lambda: Sensor(0.0, along=Along(every_m=5.0)), "readings are exact"),
        (lambda: Sensor(levels=(Level(0.1, 1.0),), along=Along(every_m=5.0)), "along conflicts with levels"),
        (
            lambda: logging_world(Along(every_s=1.0), cost_unit="Wh"),
            r"does not say how fast(.|\n)*seconds_per_unit",
        ),
        (lambda: logging_world(Along(every_s=1.0), cost=Unit()), "does not say how fast"),
        (
            lambda: replace(small_cell(), sensor=Sensor(0.1, along=Along(every_m=5.0))),
            r"control sets(.|\n)*axes in m",
        ),
        (
            lambda: on_the_way(Euclidean(), Along(every_m=1e-6), [[0.0], [1.0]]),
            r"999,999 readings(.|\n)*raise the spacing to 1e-05",
        ),
    ],
)
def test_an_impossible_setting_is_rejected(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize(
    "cost", [Euclidean(rate=2.0, seconds_per_unit=0.25, sampling=1.0), Flight(hover_s=2.0), Boat(stop_s=1.0)]
)
def test_costs_that_imply_a_speed_allow_readings_per_time(cost):
    assert logging_world(Along(every_s=1.0), cost=cost, cost_unit="Wh").sensor.along.every_s == 1.0


def test_readings_per_distance_need_no_speed():
    assert logging_world(Along(every_m=1.0), cost_unit="Wh").sensor.along.every_m == 1.0


def test_readings_on_the_way_are_not_typed_by_hand():
    with pytest.raises(InputError, match=r"every 0.5 m on the way(.|\n)*delete along"):
        ByHand(small_mission(world=logging_world()))

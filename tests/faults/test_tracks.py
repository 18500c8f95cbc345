"""Routes one by one, and some of the missions that ``tests/faults/tracks.py`` drives by the thousand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import tracks
from tiers import seed_blocks

from fieldbo.agent.agent import Agent
from fieldbo.costs.travel import Euclidean
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.obstacles import Obstacle
from fieldbo.messages import GoHome, Query, Rejected
from fieldbo.policies.baselines import Random
from fieldbo.testing import small_mission, small_world
from fieldbo.vehicles.base import Simulated
from fieldbo.vehicles.remote.arrival import ArrivalDetector
from fieldbo.vehicles.remote.link import Goal, GoalResult, PositionReport, Reading
from fieldbo.vehicles.remote.orders import Goals
from fieldbo.vehicles.remote.settings import Arrival

PILLAR = Obstacle("pillar", (2.0, 2.0), (8.0, 8.0))


@pytest.fixture
def mission():
    """A mission among nothing but a pillar, from one side of it to the other."""
    axes = [Axis("x", "m", 0, 10), Axis("y", "m", 0, 10)]
    domain = Domain.grid(axes, (11, 11), obstacles=[PILLAR])
    world = replace(small_world(), domain=domain, cost=Euclidean(sampling=1.0), start=np.zeros(2))
    return small_mission(Random(), world=world, battery=500.0)


# -- what the robot does -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seeds", seed_blocks(60, 20, today=5), indirect=True)
def test_no_robot_drives_where_it_is_not_free(seeds, tmp_path):
    wrong = {seed: tracks.wrong(seed, tmp_path) for seed in seeds}

    assert len(seeds) < 20 or any(legs is not None for legs in wrong.values())
    assert {seed: legs for seed, legs in wrong.items() if legs} == {}


@pytest.mark.parametrize(
    ("seeds", "least"),
    [(range(109, 111), 2), pytest.param(range(100, 140), 3, marks=pytest.mark.sweep)],
    ids=["few", "many"],
)
def test_a_robot_that_stops_short_of_each_point_keeps_half_of_the_clearance(
    tmp_path, monkeypatch, seeds, least
):
    monkeypatch.setattr("fieldbo.vehicles.remote.arrival._LINGER_S", 0.05)
    near = {seed: tracks.near_misses(seed, tmp_path) for seed in seeds}
    driven = {seed: distances for seed, distances in near.items() if distances is not None}

    assert len(driven) >= least
    assert {seed: min(d) for seed, d in driven.items() if min(d) < 0.5 - 1e-6} == {}


def test_a_robot_that_is_sent_only_a_site_drives_straight_through_the_obstacle(mission):
    world = mission.world
    straight, _ = world.takes(GoHome(0, "run/0", np.array([10.0, 10.0])), np.zeros(2), 0.0)
    routed, _ = world.takes(
        GoHome(0, "run/0", np.array([10.0, 10.0]), route=[[0, 0], [2, 8], [10, 10]]), np.zeros(2), 0.0
    )

    assert straight == pytest.approx(math.sqrt(200))
    assert routed == pytest.approx(2 * math.sqrt(68))


def test_a_simulated_vehicle_pays_for_the_route_that_it_is_sent(mission):
    vehicle = Simulated(mission)
    vehicle.send(Query([10.0, 10.0], id="run/0", route=[[0, 0], [0, 10], [10, 10]]))

    [event] = vehicle.events(0.0)

    assert event.cost == pytest.approx(21.0)


# -- what an order carries ---------------------------------------------------------------------------------


def test_an_order_carries_the_route_as_priced(mission):
    agent = Agent(mission)
    bent = 0
    for _ in range(12):
        start, order = agent.vehicles[0].end, agent.ask()
        if not isinstance(order, Query):
            break
        cost = mission.world.cost
        if len(order.route):
            bent += 1
            assert np.array_equal(order.route[[0, -1]], [start, order.site])
            assert cost.along(order.route)[0] + 1.0 == pytest.approx(order.expected_cost)
        else:
            assert np.linalg.norm(order.site - start) + 1.0 == pytest.approx(order.expected_cost)
        agent.tell(order.observed(0.5, noise_variance=0.01))
    assert bent >= 2


def test_a_route_begins_where_the_queue_ends(mission):
    agent = Agent(mission)
    agent.tell(agent.ask().observed(0.5, noise_variance=0.01))

    first, *others = agent.ask_batch(4)

    ends = [first.site, *(order.site for order in others)]
    for end, order in zip(ends, others, strict=False):
        if len(order.route):
            assert np.array_equal(order.route[0], end)


# -- where a robot is routed from --------------------------------------------------------------------------


def test_a_robot_elsewhere_is_routed_from_where_it_is(mission):
    goals = Goals(mission)
    planned = Query([10.0, 5.0], id="run/1", route=[[0, 5], [2, 2], [8, 2], [10, 5]])

    assert goals.points(planned, np.array([0.0, 5.0])).tolist() == [[2, 2], [8, 2], [10, 5]]
    assert goals.points(planned, np.array([9.0, 9.0])).tolist() == [[10, 5]]
    assert goals.points(planned, np.array([5.0, 9.0])).tolist() == [[8, 8], [10, 5]]


def test_a_free_variable_has_no_route(mission):
    assert Goals(mission).points(Query([np.nan, 1.0], id="run/1"), np.zeros(2)).shape == (0, 2)


def test_routes_are_straight_from_anywhere_only_without_obstacles(mission):
    assert not Goals(mission).straight
    assert Goals(small_mission()).straight


def test_a_rejected_order_of_a_batch_does_not_bend_the_next_one_through_an_obstacle(mission):
    """The next route was planned from the site of the rejected one."""
    agent = Agent(replace(mission, batch=3))
    agent.tell(agent.ask().observed(0.5, noise_variance=0.01))
    first, second, *_ = agent.ask_batch(3)
    agent.tell(Rejected(first.id, "shallow"))

    points = Goals(mission).points(second, agent.vehicles[0].position)

    route = np.vstack([agent.vehicles[0].position, points])
    assert tracks.many_worlds.crossings(mission.world.domain, route) == []


# -- points passed one at a time, and readings -------------------------------------------------------------

BENT = Goal("run/0#s", np.array([10.0, 5.0]), route=np.array([[2.0, 2.0], [8.0, 2.0], [10.0, 5.0]]))


def at(x, y):
    return PositionReport(np.array([float(x), float(y)]))


def test_points_are_passed_in_turn_and_need_no_reading(mission):
    detector = ArrivalDetector(Arrival(0.1), is_free=Goals(mission).is_free)
    detector.begin(BENT, 0.0)
    targets = [detector.target.tolist()]
    for k, place in enumerate([(0, 5), (2, 2), (5, 2), (8, 2), (10, 5)]):
        detector.process(at(*place), k - 0.1)
        detector.process(at(*place), float(k))
        targets.append(detector.target.tolist())

    assert targets == [[2, 2], [2, 2], [8, 2], [8, 2], [10, 5], [10, 5]]
    result = detector.process(Reading(3.0), 5.0)
    assert isinstance(result, GoalResult)
    assert result.values.tolist() == [3.0]


def test_a_robot_that_is_near_a_corner_does_not_cut_it(mission):
    detector = ArrivalDetector(Arrival(1.0), is_free=Goals(mission).is_free)
    detector.begin(BENT, 0.0)

    detector.process(at(1.5, 2.9), 0.0)  # near, but the way on leads through the pillar
    assert detector.target.tolist() == [2, 2]
    detector.process(at(1.9, 2.0), 0.5)
    assert detector.target.tolist() == [8, 2]


def test_a_robot_that_comes_no_closer_is_sent_on(mission):
    detector = ArrivalDetector(Arrival(1.0), is_free=Goals(mission).is_free)
    detector.begin(BENT, 0.0)

    detector.process(at(1.8, 2.3), 0.0)
    detector.process(at(1.8, 2.3), 1.0)
    assert detector.target.tolist() == [2, 2]
    detector.process(at(1.8, 2.3), 3.5)
    assert detector.target.tolist() == [8, 2]


def test_one_report_near_a_site_is_no_arrival(mission):
    detector = ArrivalDetector(Arrival(0.1))
    detector.begin(replace(BENT, home=True, route=BENT.site[None]), 0.0)
    places = [(0, 0), (10, 5), (0.1, 0), (10, 5), (10, 5)]
    ends = [isinstance(detector.process(at(*place), float(k)), GoalResult) for k, place in enumerate(places)]
    assert ends == [False, False, False, False, True]


def test_readings_during_the_dwell_are_averaged_and_their_spread_is_their_noise():
    detector = ArrivalDetector(Arrival(0.1, settle_s=1.0))
    detector.begin(Goal("run/0#s", np.zeros(2), route=np.zeros((1, 2))), 0.0, dwell_s=3.0)
    detector.process(at(0, 0), 9.9)
    detector.process(at(0, 0), 10.0)
    for k, value in enumerate([99.0, 1.0, 2.0, 3.0]):
        assert isinstance(detector.process(Reading(value), 10.5 + k), Reading)

    assert detector.finished(13.9) is None
    result = detector.finished(14.1)

    assert result.values.tolist() == [2.0]
    assert result.noise_variances.tolist() == pytest.approx([1.0 / 3.0])


def test_a_goal_that_is_abandoned_ends_where_the_robot_next_is():
    detector = ArrivalDetector(Arrival(0.1))
    detector.begin(Goal("run/0#s", np.ones(2), route=np.ones((1, 2))), 0.0)
    detector.process(at(0.2, 0.2), 1.0)
    detector.abandon()

    cut = detector.process(at(0.5, 0.5), 2.0)

    assert not cut.complete
    assert cut.position.tolist() == [0.5, 0.5]

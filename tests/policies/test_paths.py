"""Planning a whole path: its remaining loss and gradient, its links, its search, and the policy."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal, norm
from tiers import examples

import fieldbo
from fieldbo.agent.agent import Agent
from fieldbo.belief.kernels import Matern32, Matern52, SquaredExponential
from fieldbo.belief.model import Model
from fieldbo.belief.posterior import Belief
from fieldbo.belief.question import LevelSet, Optimum
from fieldbo.costs.base import Unit
from fieldbo.costs.travel import Euclidean
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.obstacles import Obstacle
from fieldbo.domain.sensor import Along, Sensor
from fieldbo.errors import InputError
from fieldbo.messages import EndReason
from fieldbo.policies.baselines import Random
from fieldbo.policies.paths.chain import Chain, first_plan, improved, resize, tours
from fieldbo.policies.paths.informative import InformativePath
from fieldbo.policies.paths.loss import (
    Everywhere,
    MayExceed,
    Misclassified,
    RemainingLoss,
    WayLoss,
    amplitude,
)
from fieldbo.runs.folder import begin
from fieldbo.testing import drive, small_chain, small_mission, small_world
from fieldbo.testing.small import sites_of

SQUARE = np.zeros(2), np.ones(2)
IMPORTANCES = [Everywhere(), MayExceed(0.4, 0.7), MayExceed(-0.2), Misclassified(0.1)]


def belief(kernel=Matern32, n=8, seed=0):
    rng = np.random.default_rng(seed)
    prior = Belief(kernel([0.45, 0.3], 1.3))
    return prior.condition_on(rng.random((n, 2)), rng.normal(size=n), 1e-3) if n else prior


# -- the remaining loss ----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 8])
@pytest.mark.parametrize("kernel", [Matern32, Matern52, SquaredExponential])
def test_the_variance_after_a_path_is_that_of_the_belief_after_its_readings(kernel, n):
    now = belief(kernel, n)
    rng = np.random.default_rng(1)
    sites, path = rng.random((50, 2)), rng.random((12, 2))
    left = RemainingLoss(now, sites, Everywhere(), 0.02)
    then = now.condition_on(path, np.zeros(12), 0.02).variance(sites)
    np.testing.assert_allclose(left.after(path), then, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(left.before, now.variance(sites), rtol=1e-6, atol=1e-9)
    assert left(path)[0] == pytest.approx(then.sum())


@pytest.mark.parametrize("importance", IMPORTANCES, ids=lambda kind: type(kind).__name__)
@pytest.mark.parametrize("n", [0, 8])
def test_the_gradient_is_that_of_finite_differences(importance, n):
    rng = np.random.default_rng(2)
    left = RemainingLoss(belief(n=n), rng.random((40, 2)), importance, 1e-2, rng.random(40))
    path = rng.random((9, 2))
    _, gradient = left(path)
    step = 1e-5
    differences = np.zeros_like(path)
    for index in np.ndindex(path.shape):
        move = np.zeros_like(path)
        move[index] = step
        differences[index] = (left(path + move)[0] - left(path - move)[0]) / (2 * step)
    np.testing.assert_allclose(gradient, differences, atol=1e-6 * np.abs(differences).max())


@pytest.mark.parametrize("destination", [None, np.array([1.0, 0.9])])
def test_the_gradient_of_what_is_read_on_the_way_is_that_of_finite_differences(destination):
    rng = np.random.default_rng(3)
    left = RemainingLoss(belief(), rng.random((40, 2)), Misclassified(0.1), 1e-2)
    chain = Chain(np.zeros(2), 4, 0.5, *SQUARE, destination, rates=np.array([1.0, 2.0]))
    way = WayLoss(left, chain, 0.01, spacing=0.11)
    path = rng.random((4, 2))
    _, gradient = way(path)
    step = 1e-5
    differences = np.zeros_like(path)
    for index in np.ndindex(path.shape):
        move = np.zeros_like(path)
        move[index] = step
        differences[index] = (way(path + move)[0] - way(path - move)[0]) / (2 * step)
    np.testing.assert_allclose(gradient, differences, atol=1e-6 * np.abs(differences).max())


@pytest.mark.parametrize("spacing", [0.02, 0.1])
def test_few_readings_on_the_way_weigh_as_much_as_all_of_them(spacing):
    start, stops = np.zeros(2), np.array([[0.8, 0.2], [0.9, 0.9]])
    lengths = np.linalg.norm(np.diff(np.vstack([start, stops]), axis=0), axis=1)
    noise, sites = 0.2, np.random.default_rng(0).random((60, 2))
    left = RemainingLoss(belief(), sites, Everywhere(), noise)
    way = WayLoss(left, Chain(start, 2, float(lengths.max()), *SQUARE), noise, spacing)
    every = [stops]
    for a, b, length in zip([start, stops[0]], stops, lengths, strict=True):
        shares = np.arange(spacing, length - 1e-9, spacing) / length
        every.append(a + shares[:, None] * (b - a))
    assert way(stops)[0] == pytest.approx(left(np.vstack(every))[0], rel=0.03)
    assert way(stops)[0] < 0.9 * left(stops)[0]


def test_readings_further_apart_than_the_links_are_long_change_nothing():
    left = RemainingLoss(belief(), np.random.default_rng(0).random((30, 2)), Everywhere(), 0.1)
    way = WayLoss(left, Chain(np.zeros(2), 2, 0.4, *SQUARE), 0.1, spacing=0.5)
    path = np.array([[0.2, 0.2], [0.4, 0.4]])
    assert way(path)[0] == left(path)[0]
    np.testing.assert_array_equal(way(path)[1], left(path)[1])


def test_readings_to_come_may_coincide():
    rng = np.random.default_rng(0)
    left = RemainingLoss(belief(SquaredExponential), rng.random((30, 2)), Everywhere(), 0.0)
    at = rng.random((3, 2))
    assert left(np.repeat(at, 4, axis=0))[0] == pytest.approx(left(at)[0], rel=1e-3)


@given(t=st.floats(-4, 4), share=st.floats(0, 0.999))
@settings(max_examples=examples(40), deadline=None)
def test_the_risk_drops_by_the_bivariate_normal_of_the_share_explained(t, share):
    (loss,), _ = Misclassified(1.0).loss(
        np.array([1.0 + 2 * t]), np.array([4.0]), np.array([4 * (1 - share)])
    )
    joint = multivariate_normal(cov=[[1, share], [share, 1]]).cdf([-abs(t), -abs(t)])
    p = norm.cdf(t)
    assert loss == pytest.approx(p * (1 - p) - joint + norm.cdf(-abs(t)) ** 2, abs=2e-5)


@pytest.mark.parametrize(
    "importance", [MayExceed(0.5, softness=1e-3), Misclassified(0.5)], ids=lambda kind: type(kind).__name__
)
def test_the_expected_loss_is_the_mean_over_what_the_readings_may_say(importance):
    mean, before, after = 0.3, 0.8, 0.2
    means = mean + np.sqrt(before - after) * np.random.default_rng(0).standard_normal(400_000)
    if isinstance(importance, MayExceed):
        drawn = after * (means + np.sqrt(after) >= 0.5)
    else:
        p = norm.cdf((means - 0.5) / np.sqrt(after))
        drawn = p * (1 - p)
    (loss,), _ = importance.loss(np.array([mean]), np.array([before]), np.array([after]))
    assert loss == pytest.approx(drawn.mean(), abs=5 * drawn.std() / np.sqrt(len(drawn)) + 1e-6)


def test_the_amplitude_moves_from_the_guess_to_that_of_the_readings():
    rng = np.random.default_rng(0)
    prior, sites = Belief(Matern32([0.1, 0.1])), rng.random((300, 2))
    values = 0.3 * prior.sample(sites, 1, rng)[0]
    assert amplitude(prior, 0.7) == pytest.approx(0.7)
    few, many = (prior.condition_on(sites[:n], values[:n], 1e-8) for n in (3, 300))
    assert amplitude(many, 0.7) == pytest.approx(0.3, abs=0.07)
    assert amplitude(many, 0.7) < amplitude(few, 0.7) < 0.7


# -- chains ----------------------------------------------------------------------------------------------


def lengths(chain, points):
    ends = [] if chain.destination is None else [chain.destination]
    return np.linalg.norm(np.diff(np.vstack([chain.start, points, *ends]), axis=0) * chain.scale, axis=1)


@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.integers(1, 30),
    reach=st.floats(1.0, 4.0),
    ends=st.booleans(),
    dimension=st.integers(1, 3),
)
@settings(max_examples=examples(150), deadline=None)
def test_pulled_points_have_short_links_and_stay_in_the_box(seed, count, reach, ends, dimension):
    rng = np.random.default_rng(seed)
    low, high = -rng.random(dimension), 1 + rng.random(dimension)
    start, end, *points = rng.uniform(low, high, (count + 2, dimension))
    rates = rng.uniform(0.5, 2, dimension)
    distance = np.linalg.norm(rates * (end - start)) + 1e-3
    spacing = reach * distance / (count + 1)
    chain = Chain(start, count, spacing, low, high, end if ends else None, rates=rates)
    pulled = chain.pulled(np.array(points))
    assert (lengths(chain, pulled) <= spacing * (1 + 1e-8)).all()
    assert (pulled >= low).all()
    assert (pulled <= high).all()
    np.testing.assert_array_equal(chain.pulled(pulled), pulled)


def test_the_derivatives_of_the_links_are_those_of_finite_differences():
    rng = np.random.default_rng(0)
    rates = np.array([1.0, 3.0])
    chain = Chain(np.zeros(2), 5, 0.7, *SQUARE, destination=np.ones(2), last=0.4, rates=rates)
    at = rng.random((5, 2))
    moves = 1e-6 * np.eye(10).reshape(10, 5, 2)
    differences = np.stack([(chain.excess(at + m) - chain.excess(at - m)) / 2e-6 for m in moves], axis=1)
    np.testing.assert_allclose(chain.jacobian(at), differences, atol=1e-6)


def test_a_destination_out_of_reach_is_an_error():
    with pytest.raises(InputError, match=r"1\.41421 away, and 5 readings reach 1\.2 far"):
        Chain(np.zeros(2), 5, 0.2, *SQUARE, destination=np.ones(2))
    Chain(np.zeros(2), 7, 0.2, *SQUARE, destination=np.ones(2))


@given(seed=st.integers(0, 2**32 - 1), m=st.integers(1, 20), count=st.integers(1, 20))
@settings(max_examples=examples(50), deadline=None)
def test_points_are_added_on_the_way_or_left_out_of_it(seed, m, count):
    points = np.random.default_rng(seed).random((m, 2))
    chain = Chain(np.zeros(2), m, 1.5, *SQUARE)
    other = resize(chain, points, count)
    assert other.shape == (count, 2)
    way = lengths(chain, points).sum()
    if count >= m:
        assert lengths(chain, other).sum() == pytest.approx(way)
        assert all((other == p).all(axis=1).any() or np.isclose(other, p).all(axis=1).any() for p in points)
    else:
        assert lengths(chain, other).sum() <= way + 1e-9


# -- the search ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("importance", IMPORTANCES, ids=lambda kind: type(kind).__name__)
def test_a_search_keeps_the_links_short_and_never_makes_a_plan_worse(importance):
    nodes = np.linspace(0, 1, 12)
    sites = np.stack(np.meshgrid(nodes, nodes), axis=-1).reshape(-1, 2)
    left = RemainingLoss(belief(n=4), sites, importance, 1e-4)
    chain = Chain(np.zeros(2), 10, 0.25, *SQUARE, destination=np.array([1.0, 0.0]))
    (start,) = tours(chain, np.random.default_rng(0), 1)
    plan, loss = improved(left, chain, start, 30)
    assert loss == pytest.approx(left(plan)[0])
    assert loss < 0.99 * left(start)[0]
    assert (lengths(chain, plan) <= 0.25 * (1 + 1e-8)).all()
    again, no_worse = improved(left, chain, plan, 5)
    assert no_worse <= loss
    assert again.shape == plan.shape


def test_the_first_plan_is_the_best_of_its_starts():
    sites = np.random.default_rng(0).random((60, 2))
    left = RemainingLoss(belief(n=0), sites, Everywhere(), 1e-4)
    chain = Chain(np.zeros(2), 8, 0.3, *SQUARE)
    starts = tours(chain, np.random.default_rng(0), 4)
    _, loss = first_plan(left, chain, starts, 10)
    assert loss == min(improved(left, chain, start, 10)[1] for start in starts)


def test_the_best_path_on_a_line_is_known():
    # Two readings of a symmetric line, without a limit to speak of, lie symmetrically.
    line = np.linspace(0, 1, 101)[:, None]
    left = RemainingLoss(Belief(Matern52([0.3])), line, Everywhere(), 1e-6)
    chain = Chain(np.zeros(1), 2, 2.0, np.zeros(1), np.ones(1))
    plan, _ = improved(left, chain, np.array([[0.1], [0.6]]), 60)
    assert plan.sum() == pytest.approx(1.0, abs=1e-3)


# -- the policy ------------------------------------------------------------------------------------------

QUICK = {"starts": 2, "first_iterations": 10, "iterations": 3}


AXES = [Axis("x", "m", 0.0, 10.0), Axis("y", "m", 0.0, 6.0)]
ROCKS = [
    Obstacle("pier", (2.0, -1.0), (3.0, 4.0)),
    Obstacle("rock", corners=((6.0, 2.0), (8.0, 2.5), (7.0, 5.0))),
]


def lake(kind, obstacles=ROCKS, sampling=0.5, **cost):
    """A world with obstacles, a box or a grid."""
    domain = (
        Domain.box(AXES, 256, obstacles, 0.1)
        if kind == "box"
        else Domain.grid(AXES, (21, 13), obstacles=obstacles, clearance=0.1)
    )
    return replace(small_world(), domain=domain, cost=Euclidean(sampling=sampling, **cost))


def mission(policy, world, battery, home=None, start=(1.0, 1.0), **changes):
    made = small_mission(policy, world=world, battery=battery, home=False, initial=0)
    vehicle = replace(made.vehicles[0], start=np.array(start), home=None if home is None else np.array(home))
    return replace(made, vehicles=(vehicle,), **changes)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["box", "grid"])
@given(
    battery=st.floats(14, 60),
    start=st.sampled_from([(1.0, 1.0), (5.0, 0.5), (9.5, 5.5)]),
    end=st.sampled_from([None, "home", "destination"]),
    weight=st.sampled_from(["misclassified", "may-exceed", "map"]),
    spacing=st.sampled_from([None, 1.0]),
)
@settings(max_examples=12, deadline=None, derandomize=True)
def test_a_path_stays_free_and_within_its_budget_and_ends_where_it_has_to(
    kind, battery, start, end, weight, spacing
):
    world, place = lake(kind), (0.5, 5.0)
    ends = {"destination": place} if end == "destination" else {}
    policy = InformativePath(weight=weight, spacing=spacing, **ends, **QUICK)
    agent, orders, _ = drive(mission(policy, world, battery, place if end == "home" else None, start))
    read = np.array(sites_of(orders))
    assert len(read) > 3
    assert world.domain.contains(read).all()
    assert agent.vehicles[0].ledger.spent <= battery * (1 + 1e-9)
    if end is not None:
        np.testing.assert_array_equal(agent.vehicles[0].position, place)
    if end == "destination":
        assert agent.vehicles[0].ledger.spent > 0.6 * battery


def test_the_readings_of_a_grid_are_sites_that_are_not_read_twice():
    _, orders, _ = drive(mission(InformativePath(**QUICK), lake("grid"), 30.0))
    read = sites_of(orders)
    sites = lake("grid").domain.sites
    assert all((sites == site).all(axis=1).any() for site in read)
    assert len({tuple(site) for site in read}) == len(read)


def test_no_two_readings_are_further_apart_than_the_spacing():
    world = lake("box", obstacles=())
    _, orders, _ = drive(mission(InformativePath(spacing=1.2, **QUICK), world, 25.0))
    steps = np.diff(np.vstack([(1.0, 1.0), sites_of(orders)]), axis=0)
    assert np.linalg.norm(steps, axis=1).max() <= 1.2 * (1 + 1e-8)
    # 1.2 m and a reading of 0.5 s each: what 25 s pay for, and more where links are shorter
    assert len(sites_of(orders)) >= int(25 / 1.7)


@pytest.mark.parametrize("changes", [{}, {"model": Model(length_scales=(2.0, 2.0))}])
def test_hyperparameters_may_be_learned_and_values_of_any_scale(changes):
    world = lake("box")
    _, orders, _ = drive(mission(InformativePath(weight="may-exceed", **QUICK), world, 30.0, **changes))
    assert len(orders) > 5


@pytest.mark.parametrize("cost", [Unit(), Euclidean(sampling=0.01), Euclidean(rate=0.0, sampling=1.0)])
def test_travel_may_be_free_and_readings_almost(cost):
    world = replace(small_world(), cost=cost)
    agent, orders, _ = drive(mission(InformativePath(**QUICK), world, 12.0, start=(0.0, 0.0)))
    assert len(orders) >= 5
    assert agent.vehicles[0].ledger.spent <= 12.0


def test_a_destination_out_of_reach_beside_a_home_or_in_an_obstacle_is_an_error():
    with pytest.raises(
        InputError, match=r"the trip to the destination \[9\.0, 5\.0\] and a reading there cost"
    ):
        Agent(mission(InformativePath(destination=(9.0, 5.0)), lake("box"), 5.0))
    with pytest.raises(InputError, match="the vehicle has to return home"):
        Agent(mission(InformativePath(destination=(9.0, 5.0)), lake("box"), 50.0, home=(1.0, 1.0)))
    with pytest.raises(InputError, match="inside the obstacle 'pier'"):
        mission(InformativePath(destination=(2.5, 1.0)), lake("box"), 50.0)
    with pytest.raises(InputError, match="policy"):
        mission(InformativePath(), lake("box"), 50.0, question=Optimum())


def test_a_vehicle_that_reads_on_the_way_plans_fewer_stops_and_is_left_with_less_risk():
    left, stops, planned = {}, {}, {}
    for reads in (False, True):
        world = lake("grid", obstacles=(), sampling=3.0)
        world = replace(world, sensor=Sensor(0.3, along=Along(every_m=0.1) if reads else None))
        agent, orders, _ = drive(mission(InformativePath(starts=2), world, 50.0, (1.0, 1.0)))
        p = agent.surface.exceedance(agent.threshold)
        left[reads], stops[reads] = float((p * (1 - p)).sum()), len(sites_of(orders))
        planned[reads] = agent.issued["run/0"].why["loss_planned"]
        assert agent.vehicles[0].ledger.spent <= 50.0 * (1 + 1e-9)
    assert stops[True] < stops[False]
    assert left[True] < 0.7 * left[False]
    assert planned[True] < planned[False]


@pytest.mark.parametrize("path", [QUICK, pytest.param({}, marks=pytest.mark.slow)], ids=["quick", "full"])
def test_a_path_leaves_less_risk_than_one_that_is_read_in_a_random_order(path):
    world, battery = lake("box"), 45.0
    left = {}
    for name, policy in {"path": InformativePath(**path), "random": Random()}.items():
        agent, _, _ = drive(mission(policy, world, battery, (1.0, 1.0), question=LevelSet(0.3)))
        p = agent.surface.exceedance(agent.threshold)
        left[name] = float((p * (1 - p)).sum())
    assert left["path"] < 0.7 * left["random"]


def test_a_destination_may_be_in_degrees():
    place = {"latitude": 53.345372, "longitude": 13.057683}
    mission = fieldbo.load_mission("lake-places-path", {"policy": {"destination": place}})
    degrees = mission.world.domain.georeference.degrees(np.array([mission.policy.destination]))
    np.testing.assert_allclose(degrees, [[53.345372, 13.057683]], atol=1e-6)
    swapped = {"latitude": 13.0575, "longitude": 53.345}
    with pytest.raises(fieldbo.InputError, match="look swapped"):
        fieldbo.load_mission("lake-places-path", {"policy": {"destination": swapped}})


def test_no_more_readings_are_planned_than_steps_are_left():
    for spacing in (None, 0.5):
        agent = Agent(mission(InformativePath(spacing=spacing, **QUICK), lake("box"), 60.0, max_steps=4))
        agent.ask()
        assert 1 <= agent.why["readings"] <= 4


def test_a_path_ends_when_nothing_is_left_to_learn():
    question = LevelSet(50.0)  # far above every value
    for ends in ({}, {"destination": (0.5, 5.0)}):
        _, orders, stop = drive(
            mission(InformativePath(**ends, **QUICK), lake("box"), 60.0, question=question)
        )
        assert len(orders) == len(ends)
        assert stop.reason is EndReason.QUESTION_ANSWERED


def test_a_chain_of_modules_has_no_path():
    with pytest.raises(InputError, match="modules have no place"):
        small_mission(InformativePath(), world=small_chain(), question=LevelSet(0.3))


def test_a_policy_that_can_not_start_leaves_no_run_folder(tmp_path):
    elsewhere = {"policy": {"destination": [370_700.0, 5_912_450.0]}}
    mission = fieldbo.load_mission("lake-places-path", elsewhere)
    with pytest.raises(InputError, match="has to return home"):
        begin(mission, tmp_path / "run")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("battery", [2.0, 5.0, 14.0])
@pytest.mark.parametrize("home", [True, False])
def test_where_travel_is_free_the_whole_battery_is_spent(battery, home):
    world = replace(small_world((8, 8)), cost=Unit())
    mission = small_mission(InformativePath(**QUICK), world=world, battery=battery, home=home)
    assert drive(mission)[0].spent == battery


def test_a_last_reading_nearby_is_taken_if_the_battery_pays_for_it():
    cost = Euclidean(rate=0.1, sampling=1.0)
    mission = small_mission(
        InformativePath(**QUICK), world=replace(small_world((8, 8)), cost=cost), battery=14
    )
    seen = drive(mission)[0].seen()
    assert not seen.affordable(seen.domain.sites).any()

"""Many readings per order: recorded in full, pooled by place for the model."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples
from work import lines_run

import fieldbo
from fieldbo.agent.agent import Agent
from fieldbo.belief.kernels import kernel as kernel_named
from fieldbo.belief.model import LEAST_READINGS
from fieldbo.belief.posterior import Belief
from fieldbo.belief.readings import MOST, PIECE, places, thinned
from fieldbo.costs import Boat
from fieldbo.costs.on_the_way import on_the_way
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.sensor import Along
from fieldbo.messages import Observation, Query, Stop
from fieldbo.record.record import Record

K = 10_000
CELL = np.array([20.0, 0.5])
LAKE = Domain.grid([Axis("along", "m", 0, 1000), Axis("depth", "m", 0, 20)], (51, 41))


def many(order, sites, values, noise=0.0025):
    k = len(sites)
    return Observation(order.id, sites, values, np.full(k, noise), np.full(k, 1.0), order.site, 1.0)


def at_stop(order, value, rng, k=K):
    """Readings of a boat that drifts around a site."""
    sites = order.site + rng.normal(size=(k, 2)) * [0.5, 0.01]
    return many(order, sites, value + 0.05 * rng.normal(size=k))


def test_a_single_reading_and_readings_at_different_sites_stay_as_they_are():
    sites, values, noises = LAKE.sites[:MOST], np.arange(float(MOST)), np.full(MOST, 0.1)
    for k in (0, 1, MOST):
        taken = thinned(sites[:k], values[:k], noises[:k], CELL)
        assert np.array_equal(taken.sites, sites[:k])
        assert np.array_equal(taken.values, values[:k])
        assert np.array_equal(taken.noise_variances, noises[:k])


def test_readings_at_one_place_become_one_that_is_never_exact():
    rng = np.random.default_rng(0)
    sites = LAKE.sites[7] + 0.001 * rng.normal(size=(K, 2))
    taken = thinned(sites, 3.0 + 0.5 * rng.normal(size=K), np.full(K, 0.25), CELL)
    assert taken.values == pytest.approx([3.0], abs=0.02)
    assert taken.noise_variances == pytest.approx([0.0025])
    assert not taken.which.any()


def test_equal_sites_keep_their_coordinates_to_the_last_bit():
    site = np.array([0.1 + 0.2, 1.0 / 3.0])
    taken = thinned(np.tile(site, (3, 1)), np.ones(3), np.ones(3), CELL)
    assert np.array_equal(taken.sites, [site])


def test_the_readings_of_a_leg_are_pooled_to_at_most_the_stated_number_of_pieces_along_it():
    x = np.linspace(0.0, 1000.0, K)
    sites = np.column_stack([x, 0.02 * x])
    for cell in (CELL, 0.01 * CELL):
        taken = thinned(sites, 0.01 * x, np.full(K, 0.1), cell)
        assert MOST // 2 < len(taken.values) <= 2 * MOST
        assert taken.values == pytest.approx(0.01 * taken.sites[:, 0])
        assert np.array_equal(np.unique(taken.which), np.arange(len(taken.values)))


def on_a_piece(values, noise=0.04):
    """Ten readings at equal distances of 1 m on a straight piece, in a direction of its own."""
    x = np.arange(10.0)
    return np.column_stack([100 + 0.8 * x, 5 + 0.6 * x]), np.asarray(values(x)), np.full(10, noise)


def test_a_parabola_passes_through_the_pooled_readings():
    sites, values, noises = on_a_piece(lambda x: 1.0 + 0.3 * x - 0.05 * x**2)
    taken = thinned(sites, values, noises, np.full(2, 20.0))
    x = (taken.sites[:, 0] - 100) / 0.8
    assert len(x) == 2
    assert taken.sites[:, 1] == pytest.approx(5 + 0.6 * x)
    assert x == pytest.approx(4.5 + np.array([-1, 1]) * np.sqrt(8.25))
    assert taken.values == pytest.approx(1.0 + 0.3 * x - 0.05 * x**2)
    assert taken.which.tolist() == [0] * 5 + [1] * 5


@pytest.mark.parametrize(("draws", "error"), [(1500, 1e-3), pytest.param(4000, 6e-4, marks=pytest.mark.slow)])
def test_the_noise_of_pooled_readings_is_as_stated_and_independent(draws, error):
    rng = np.random.default_rng(0)
    pooled = []
    for _ in range(draws):
        sites, values, noises = on_a_piece(lambda x: 0.2 * rng.normal(size=10))
        taken = thinned(sites, values, noises, np.full(2, 20.0))
        pooled.append(taken.values)
    assert taken.noise_variances == pytest.approx(np.full(2, 2 * 0.04 / 10))
    covariance = np.cov(np.array(pooled).T)
    assert covariance == pytest.approx(2 * 0.04 / 10 * np.eye(2), abs=error)


@given(st.integers(0, 10**6), st.integers(2, 40), st.sampled_from([0.02, 0.3]))
@settings(max_examples=examples(30), deadline=None)
def test_the_mean_of_all_readings_is_kept(seed, k, noise):
    rng = np.random.default_rng(seed)
    sites = np.cumsum(rng.uniform(0, 1, (k, 2)), axis=0)
    values, noises = rng.normal(size=k), np.full(k, 1.0 + noise)
    taken = thinned(sites, values, noises, np.full(2, 5.0))
    precisions = 1.0 / taken.noise_variances
    assert precisions.sum() == pytest.approx(np.sum(1.0 / noises), rel=1e-6)
    assert precisions @ taken.values / precisions.sum() == pytest.approx(values.mean(), rel=1e-6, abs=1e-9)


def test_spikes_among_many_readings_do_not_move_the_others():
    values = np.ones(1001)
    values[:300] = 1e6
    taken = thinned(np.zeros((1001, 2)), values, np.ones(1001), CELL)
    assert taken.values == [1.0]
    assert (taken.which < 0).tolist() == [True] * 300 + [False] * 701


def test_a_piece_at_the_limit_of_detection_is_censored_if_most_of_it_is():
    sites, _, noises = on_a_piece(lambda x: x)
    low, high = np.full(10, 0.1), np.full(10, 0.1)
    low[6:], high[3:] = 0.15, 0.15
    assert thinned(sites, low, noises, np.full(2, 20.0), below=0.1).values == [0.1]
    assert thinned(sites, high, noises, np.full(2, 20.0), below=0.1).values == [0.15]


@pytest.mark.parametrize("name", ["se", "matern52"])
def test_the_belief_of_pooled_readings_is_that_of_all_within_a_tenth_of_its_standard_deviation(name):
    kernel, rng = kernel_named(name, [100.0, 100.0]), np.random.default_rng(1)
    corners = rng.uniform(0, 600, (5, 2))
    legs = [on_the_way(Boat(), Along(every_s=1.0), leg).sites for leg in pairwise(corners)]
    x = np.concatenate(legs)
    noise = np.full(len(x), 0.01)
    y = Belief(kernel).sample(x, 1, rng)[0] + 0.1 * rng.normal(size=len(x))
    grid = np.stack(np.meshgrid(*2 * [np.linspace(0, 600, 25)]), axis=-1).reshape(-1, 2)
    every = Belief(kernel).condition_on(x, y, noise)
    ends = np.cumsum([len(leg) for leg in legs])[:-1]
    parts = zip(*(np.split(a, ends) for a in (x, y, noise)), strict=True)
    taken = [thinned(*part, PIECE * kernel.length_scales) for part in parts]
    pooled = Belief(kernel).condition_on(*(np.concatenate([t[i] for t in taken]) for i in range(3)))
    assert 4 * pooled.size < len(x)
    sd = np.sqrt(every.variance(grid))
    assert np.sqrt(np.mean(((pooled.mean(grid) - every.mean(grid)) / sd) ** 2)) < 0.06
    assert np.abs(np.sqrt(pooled.variance(grid)) / sd - 1).max() < 0.05


def test_places_nearer_than_the_sites_count_as_one():
    assert places(np.array([[0.0, 0.0], [1.0, 0.01], [20.0, 0.0]]), LAKE) == 2
    assert places(np.empty((0, 2)), LAKE) == 0


@pytest.mark.parametrize("parts", [1, 50])
def test_many_readings_at_one_stop_never_answer_a_question_about_a_whole_lake(parts):
    mission = fieldbo.load_mission("lake-level-set", {"initial": {"count": 1}})
    agent, rng = Agent(mission), np.random.default_rng(0)
    order = agent.ask()
    for part in range(parts):
        event = at_stop(order, 0.3, rng, K // parts)
        agent.tell(replace(event, part=part, last=part == parts - 1))
    following = agent.ask()
    assert isinstance(following, Query)
    assert agent.online_model.provisional
    assert agent.readings == parts
    surface, threshold = agent.surface, agent.threshold
    sure = np.abs(surface.mean - threshold) > 1.96 * np.sqrt(surface.variance)
    assert sure.mean() < 0.5


def test_the_model_is_first_fitted_after_enough_orders_however_many_readings_each_brings():
    mission = fieldbo.load_mission("lake-level-set", {"initial": {"count": 1}})
    agent, rng = Agent(mission), np.random.default_rng(0)
    while agent.refit() is None:
        order = agent.ask()
        assert not isinstance(order, Stop)
        agent.tell(at_stop(order, 1.0 + rng.normal(), rng, 300))
    assert agent.asks == agent.readings == LEAST_READINGS


def test_ten_thousand_readings_are_recorded_in_full_with_little_work_for_each(tmp_path):
    agent, rng = Agent(fieldbo.load_mission("lake-level-set")), np.random.default_rng(0)
    event = at_stop(agent.ask(), 1.0, rng)
    with Record.create(tmp_path / "run.sqlite", "run", {}) as record:
        assert lines_run(lambda: record.event(event)) < 100 * K  # half of it
        (row,) = record.rows()
        assert len(row.message.values) == K
    agent.tell(event)
    assert agent.readings == 1


def test_a_result_says_of_each_reading_whether_its_pool_was_believed():
    mission = fieldbo.load_mission("lake-level-set-outliers", {"agent": {"battery": 1500}})
    agent, rng = Agent(mission), np.random.default_rng(0)
    n = 0
    while not isinstance(order := agent.ask(), Stop):
        if not isinstance(order, Query):
            agent.tell(order.observed())
            continue
        n += 1
        value = 1e4 if n == 6 else float(mission.world.truth(order.site[None])[0])
        agent.tell(replace(at_stop(order, value, rng, 50), cost=order.expected_cost))
    result = fieldbo.Result.of(agent, (), None)
    believed = result.believed.reshape(-1, 50)
    assert len(believed) == n > 6
    assert not believed[5].any()
    assert believed[:5].all()

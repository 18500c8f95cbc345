"""Many readings per order: recorded in full, pooled by place for the model."""

import time
from dataclasses import replace

import numpy as np
import pytest

import fieldbo
from fieldbo.agent.agent import Agent
from fieldbo.belief.model import LEAST_READINGS
from fieldbo.belief.thinning import MOST, places, thinned
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.messages import Observation, Query, Stop
from fieldbo.runs.record.record import Record

K = 10_000
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
        taken = thinned(sites[:k], values[:k], noises[:k], LAKE)
        assert np.array_equal(taken.sites, sites[:k])
        assert np.array_equal(taken.values, values[:k])
        assert np.array_equal(taken.noise_variances, noises[:k])


def test_readings_at_one_place_become_one_that_is_never_exact():
    rng = np.random.default_rng(0)
    sites = LAKE.sites[7] + 0.001 * rng.normal(size=(K, 2))
    taken = thinned(sites, 3.0 + 0.5 * rng.normal(size=K), np.full(K, 0.25), LAKE)
    assert taken.values == pytest.approx([3.0], abs=0.02)
    assert taken.noise_variances == pytest.approx([0.0025])
    assert not taken.which.any()


def test_equal_sites_keep_their_coordinates_to_the_last_bit():
    site = np.array([0.1 + 0.2, 1.0 / 3.0])
    taken = thinned(np.tile(site, (3, 1)), np.ones(3), np.ones(3), LAKE)
    assert np.array_equal(taken.sites, [site])


def test_the_readings_of_a_leg_are_pooled_to_at_most_the_stated_number_along_it():
    x = np.linspace(0.0, 1000.0, K)
    sites = np.column_stack([x, 0.02 * x])
    taken = thinned(sites, 0.01 * x, np.full(K, 0.1), LAKE)
    assert MOST // 4 < len(taken.values) <= MOST
    assert taken.values == pytest.approx(0.01 * taken.sites[:, 0])
    assert np.array_equal(np.unique(taken.which), np.arange(len(taken.values)))


def test_spikes_among_many_readings_do_not_move_their_median():
    values = np.ones(1001)
    values[:300] = 1e6
    assert thinned(np.zeros((1001, 2)), values, np.ones(1001), LAKE).values == [1.0]


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


def test_ten_thousand_readings_are_recorded_in_full_in_less_than_two_seconds(tmp_path):
    agent, rng = Agent(fieldbo.load_mission("lake-level-set")), np.random.default_rng(0)
    event = at_stop(agent.ask(), 1.0, rng)
    with Record.create(tmp_path / "run.sqlite", "run", {}) as record:
        began = time.perf_counter()
        record.event(event)
        assert time.perf_counter() - began < 2.0
        assert len(record.rows()[0].message.values) == K
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

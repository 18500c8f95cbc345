"""Entropy search and minimum regret search: their draws, their loops, and what they choose."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import entr, ndtr
from tiers import examples

from fieldbo.belief.kernels import Matern52
from fieldbo.belief.posterior import Belief
from fieldbo.belief.question import LevelSet, Optimum
from fieldbo.errors import InputError
from fieldbo.messages import Query
from fieldbo.mission.kinds import POLICIES
from fieldbo.policies.acquisition import expected_improvement
from fieldbo.policies.baselines import Random
from fieldbo.policies.contract import Policy
from fieldbo.policies.optimum._loops import growth_of_the_best_mean
from fieldbo.policies.optimum.myopic import (
    EntropySearch,
    MinimumRegretSearch,
    Prospect,
    outcomes,
    representers,
)
from fieldbo.testing import drive, small_mission, small_world

property_test = settings(deadline=None, max_examples=examples(40), derandomize=True)

SEARCHES = [EntropySearch(), MinimumRegretSearch(), MinimumRegretSearch(point=True)]


def scores_of(prospect):
    return {
        "entropy": prospect.information_gain(),
        "regret": prospect.regret_reduction(),
        "point": prospect.point_regret_reduction(),
    }


def some_belief(rng, n, noise=0.1):
    prior = Belief(Matern52([0.3, 0.5]))
    return prior.condition_on(rng.random((n, 2)), rng.normal(size=n), noise) if n else prior


def prospect_of(belief, sites, chosen, noise, draws, rng):
    cross = belief.covariance(sites[chosen], sites)
    return Prospect.drawn(
        belief.mean(sites[chosen]),
        cross[:, chosen],
        cross,
        belief.variance(sites),
        np.broadcast_to(noise, len(sites)),
        rng.standard_normal((len(chosen) + 1, draws)),
    )


# -- the contract ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "tested"), [("entropy-search", EntropySearch), ("minimum-regret-search", MinimumRegretSearch)]
)
def test_each_policy_has_its_name_and_is_rejected_for_a_level_set(name, tested):
    assert POLICIES.get(name) is tested
    with pytest.raises(InputError):
        replace(small_mission(), question=LevelSet(0.3), policy=tested())


@pytest.mark.parametrize("setting", ["representers", "draws", "outcomes"])
@pytest.mark.parametrize("tested", [EntropySearch, MinimumRegretSearch])
def test_a_search_without_representers_draws_or_outcomes_is_rejected(tested, setting):
    with pytest.raises(InputError, match=setting):
        tested(**{setting: 0})


# -- representers and outcomes ---------------------------------------------------------------------------


@property_test
@given(seed=st.integers(0, 10_000), n=st.integers(1, 30), wanted=st.integers(1, 40))
def test_representers_are_different_sites_and_the_largest_mean_is_among_them(seed, n, wanted):
    rng = np.random.default_rng(seed)
    mu, s = rng.normal(size=n), rng.uniform(0, 1, n) * (rng.random(n) < 0.7)
    actual = representers(mu, s, wanted, rng)
    assert len(actual) == min(n, wanted)
    assert (np.diff(actual) > 0).all()
    assert np.argmax(mu) in actual


def test_representers_are_drawn_by_expected_improvement():
    mu, s = np.array([0.5, 0.0, 0.0, 0.0]), np.array([0.0, 0.5, 1.0, 2.0])
    rng = np.random.default_rng(0)
    seconds = [int(i) for _ in range(4000) for i in representers(mu, s, 2, rng) if i]
    shares = np.bincount(seconds, minlength=4) / 4000
    weights = expected_improvement(mu, s, 0.5)
    np.testing.assert_allclose(shares, weights / weights.sum(), atol=0.03)


@pytest.mark.parametrize("n", [2, 5, 12])
def test_outcomes_have_mean_and_variance_of_a_standard_normal(n):
    nodes, weights = outcomes(n)
    for power, moment in enumerate([1, 0, 1, 0]):
        assert weights @ nodes**power == pytest.approx(moment, abs=1e-12)
    np.testing.assert_array_equal(np.sort(nodes), nodes)


def test_a_single_outcome_is_the_expected_one():
    nodes, weights = outcomes(1)
    assert (nodes.tolist(), weights.tolist()) == ([0.0], [1.0])


def test_the_gain_for_two_sites_is_close_to_its_integral():
    variance, noise = np.array([0.01, 4.0]), 0.1
    rng, known = np.random.default_rng(0), np.diag(variance)
    actual = Prospect.drawn(
        np.zeros(2), known, known, variance, np.full(2, noise), rng.standard_normal((3, 4000))
    )
    z = np.linspace(-8, 8, 4001)
    left = variance[1] * noise / (variance[1] + noise) + variance[0]
    p = ndtr(z * variance[1] / np.sqrt((variance[1] + noise) * left))
    density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    literal = np.log(2) - np.trapezoid((entr(p) + entr(1 - p)) * density, z)
    assert actual.information_gain()[1] == pytest.approx(literal, abs=0.06)
    assert actual.information_gain(101)[1] == pytest.approx(literal, abs=0.02)


# -- the draws -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 4])
def test_draws_and_readings_have_the_joint_moments_of_the_belief(n):
    rng = np.random.default_rng(n)
    belief, sites, chosen = some_belief(rng, n), rng.random((9, 2)), np.array([0, 3, 4, 8])
    noise = rng.uniform(0.01, 0.5, 9)
    actual = prospect_of(belief, sites, chosen, noise, 200_000, rng)
    np.testing.assert_allclose(actual.draws.mean(axis=1), actual.mean, atol=0.01)
    np.testing.assert_allclose(
        np.cov(actual.draws), belief.covariance(sites[chosen], sites[chosen]), atol=0.015
    )
    np.testing.assert_allclose(actual.readings.mean(axis=1), 0.0, atol=0.01)
    np.testing.assert_allclose(actual.readings.var(axis=1), 1.0, atol=0.015)
    cross = actual.readings @ (actual.draws - actual.mean[:, None]).T / 200_000
    np.testing.assert_allclose(cross, actual.slopes, atol=0.015)


def test_a_moved_draw_is_a_draw_of_the_belief_conditioned_on_the_reading():
    rng = np.random.default_rng(2)
    belief, sites, chosen = some_belief(rng, 5), rng.random((7, 2)), np.array([1, 2, 6])
    noise, outcome = 0.2, 1.3
    actual = prospect_of(belief, sites, chosen, noise, 200_000, rng)
    for n, site in enumerate(sites):
        value = belief.mean(site)[0] + np.sqrt(belief.variance(site)[0] + noise) * outcome
        after = belief.condition_on(site, [value], noise)
        moved = actual.draws + np.outer(actual.slopes[n], outcome - actual.readings[n])
        np.testing.assert_allclose(moved.mean(axis=1), after.mean(sites[chosen]), atol=0.01)
        np.testing.assert_allclose(np.cov(moved), after.covariance(sites[chosen], sites[chosen]), atol=0.015)
        means = actual.mean + actual.slopes[n] * outcome
        np.testing.assert_allclose(means, after.mean(sites[chosen]), atol=1e-9)


# -- the scores, written out -----------------------------------------------------------------------------


def entropy_of(draws):
    wins = np.bincount(draws.argmax(axis=0), minlength=len(draws))
    return float(entr(wins / wins.sum()).sum())


@pytest.mark.parametrize(("n", "n_outcomes"), [(0, 5), (3, 5), (12, 4), (12, 1)])
def test_scores_are_the_averages_over_outcomes_written_out(n, n_outcomes):
    rng = np.random.default_rng(10 + n)
    belief, sites = some_belief(rng, n), rng.random((25, 2))
    chosen = representers(belief.mean(sites), np.sqrt(belief.variance(sites)), 9, rng)
    actual = prospect_of(belief, sites, chosen, rng.uniform(0.01, 0.4, 25), 70, rng)
    nodes, weights = outcomes(n_outcomes)
    gain, drop = [], []
    for slope, reading in zip(actual.slopes, actual.readings, strict=True):
        left, value = 0.0, 0.0
        for node, weight in zip(nodes, weights, strict=True):
            moved = actual.draws + np.outer(slope, node - reading)
            mean = actual.mean + slope * node
            left += weight * entropy_of(moved)
            value += weight * np.mean(mean[moved.argmax(axis=0)])
        gain.append(entropy_of(actual.draws) - left)
        drop.append(value - np.mean(actual.mean[actual.draws.argmax(axis=0)]))
    np.testing.assert_allclose(actual.information_gain(n_outcomes), gain, rtol=0, atol=1e-10)
    np.testing.assert_allclose(actual.regret_reduction(n_outcomes), drop, rtol=0, atol=1e-10)


@property_test
@given(seed=st.integers(0, 10_000), n=st.integers(1, 12), rounded=st.booleans())
def test_the_growth_of_the_best_mean_is_its_expectation(seed, n, rounded):
    rng = np.random.default_rng(seed)
    mean, slopes = rng.normal(size=n), rng.normal(size=(6, n))
    if rounded:  # equal slopes, equal means, crossings in one point
        mean, slopes = mean.round(0), slopes.round(0)
    z = np.linspace(-9, 9, 40_001)
    density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    literal = [np.trapezoid((mean[:, None] + np.outer(b, z)).max(axis=0) * density, z) for b in slopes]
    actual = growth_of_the_best_mean(mean, slopes)
    np.testing.assert_allclose(actual, np.array(literal) - mean.max(), atol=1e-6)
    assert (actual >= 0).all()


def test_regret_reductions_are_those_of_the_regret_itself():
    """The expected maximum, which the scores leave out, is the same before and after."""
    rng = np.random.default_rng(5)
    belief, sites, chosen, noise = some_belief(rng, 4), rng.random((5, 2)), np.arange(5), 0.05
    actual = prospect_of(belief, sites, chosen, noise, 100_000, rng)
    best = np.eye(5)[actual.mean.argmax()]
    nodes, weights = outcomes(20)
    scores = {"regret": actual.regret_reduction(20), "point": actual.point_regret_reduction()}
    for n in range(5):
        after = {"regret": 0.0, "point": 0.0}
        for node, weight in zip(nodes, weights, strict=True):
            moved = actual.draws + np.outer(actual.slopes[n], node - actual.readings[n])
            then = Prospect(actual.mean + actual.slopes[n] * node, moved, actual.slopes, actual.readings)
            after["regret"] += weight * then.regret(then.maximiser)
            after["point"] += weight * then.regret(np.eye(5)[then.mean.argmax()])
        drop = actual.regret(actual.maximiser) - after["regret"]
        assert scores["regret"][n] == pytest.approx(drop, abs=0.01)
        drop = actual.regret(best) - after["point"]
        assert scores["point"][n] == pytest.approx(drop, abs=0.02)


def test_scores_do_not_depend_on_the_number_of_threads():
    import numba

    rng = np.random.default_rng(6)
    sites = rng.random((50, 2))
    actual = prospect_of(some_belief(rng, 4), sites, np.arange(0, 50, 5), 0.05, 100, rng)
    threads = numba.get_num_threads()
    many = scores_of(actual)
    try:
        numba.set_num_threads(1)
        first = scores_of(actual)
    finally:
        numba.set_num_threads(threads)
    for name, scores in many.items():
        np.testing.assert_array_equal(scores, first[name])


# -- limits ----------------------------------------------------------------------------------------------


def test_scores_are_zero_if_nothing_can_be_learnt():
    rng = np.random.default_rng(0)
    prior = Belief(Matern52([0.01, 0.01]))
    far = np.array([[0.0, 0.0], [1.0, 1.0], [9.0, 9.0]])  # the last has nothing to do with the others
    actual = prospect_of(prior, far, np.array([0, 1]), 0.1, 200, rng)
    for scores in scores_of(actual).values():
        assert scores[2] == pytest.approx(0.0, abs=1e-14)
        assert scores[:2].min() > 0.05


def test_scores_fall_with_noise_and_vanish_in_it():
    rng = np.random.default_rng(1)
    belief, sites = some_belief(rng, 3), rng.random((8, 2))
    sites[1:] = sites[0]  # one place, read with more and more noise
    noise = np.array([1e-4, 1e-2, 0.1, 1.0, 10.0, 1e3, 1e8, 1e16])
    others = rng.random((6, 2))
    cross = belief.covariance(others, sites)
    actual = Prospect.drawn(
        belief.mean(others),
        belief.covariance(others, others),
        cross,
        belief.variance(sites),
        noise,
        rng.standard_normal((7, 4000)),
    )
    for scores in scores_of(actual).values():
        assert (np.diff(scores) < 0.01).all()
        assert scores[-1] == pytest.approx(0.0, abs=1e-6)


def test_sites_known_exactly_give_finite_scores():
    rng = np.random.default_rng(3)
    sites = rng.random((8, 2))
    belief = Belief(Matern52([0.3, 0.3])).condition_on(sites[:5], rng.normal(size=5), 0.0)
    floor = np.full(8, 1e-10)
    for chosen in (np.arange(5), np.arange(8), np.array([2])):  # a singular covariance, and one of a point
        actual = prospect_of(belief, sites, chosen, floor, 100, rng)
        for scores in scores_of(actual).values():
            assert np.isfinite(scores).all()
            np.testing.assert_allclose(scores[:5], 0.0, atol=1e-4)
    nothing = Prospect.drawn(
        np.zeros(2), np.zeros((2, 2)), np.zeros((2, 3)), np.zeros(3), floor[:3], np.ones((3, 9))
    )
    for scores in scores_of(nothing).values():
        np.testing.assert_array_equal(scores, 0.0)


# -- what is chosen --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Seen(Policy):
    """Chooses at random and keeps the states that it sees."""

    states: list = field(default_factory=list, hash=False)

    def suggest(self, state, memory):
        self.states.append(replace(state, surface=state.surface.copy()))
        return Random().suggest(state, memory)


def state_after(readings, noise_sd=0.05):
    """The state after a number of random readings of the small world."""
    seen = Seen()
    mission = small_mission(seen, world=small_world(noise_sd=noise_sd), battery=1000.0, initial=0)
    drive(replace(mission, question=Optimum(), max_steps=readings + 1))
    return seen.states[readings]


def chosen_by(policy, state):
    decision = policy.suggest(replace(state), None)
    assert isinstance(decision.choice, Query)
    assert np.isfinite(decision.why["score"])
    return decision.why["site"]


@pytest.mark.parametrize("tested", SEARCHES, ids=repr)
def test_a_constant_added_to_all_values_changes_no_choice(tested):
    for readings in (0, 4, 12):
        state = state_after(readings)
        moved = replace(state, surface=state.surface.copy())
        moved.surface.mean = state.surface.mean + 7.0
        assert chosen_by(tested, state) == chosen_by(tested, moved)


@pytest.mark.parametrize("tested", SEARCHES, ids=repr)
def test_a_site_known_exactly_is_not_read_again_while_others_are_open(tested):
    state = state_after(8, noise_sd=0.0)
    read = {state.domain.nearest(e.sites[0]) for e in state.history}
    assert chosen_by(tested, state) not in read


@pytest.mark.parametrize("tested", SEARCHES, ids=repr)
def test_dividing_by_equal_costs_changes_no_choice(tested):
    for readings in (0, 5):
        state = state_after(readings)
        free = replace(state, cost=replace(state.cost, rate=0.0))
        assert chosen_by(tested, free) == chosen_by(replace(tested, per_cost=True), free)


def test_why_reports_entropy_or_expected_regret():
    before, after = state_after(0), state_after(20)
    entropies = [EntropySearch().suggest(s, None).why["entropy"] for s in (before, after)]
    assert 0 <= entropies[1] < entropies[0] <= np.log(30)
    for point in (False, True):
        tested = MinimumRegretSearch(point=point)
        regrets = [tested.suggest(s, None).why["expected_regret"] for s in (before, after)]
        assert regrets[1] < regrets[0]


@pytest.mark.parametrize("tested", SEARCHES, ids=repr)
@pytest.mark.parametrize("goal", ["maximise", "minimise"])
def test_a_mission_finds_the_optimum(tested, goal):
    question = Optimum(goal)
    mission = replace(small_mission(battery=90.0), question=question, policy=tested)
    agent, _, _ = drive(mission)
    truth = question.sign * mission.world.truth(agent.domain.sites)
    assert truth[np.argmax(agent.surface.mean)] > truth.max() - 0.1

"""EI, GP-UCB and max-value entropy search: their scores, and what they choose."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import norm, truncnorm
from tiers import examples

from fieldbo.agent.agent import Agent
from fieldbo.belief.kernels import Matern52
from fieldbo.belief.posterior import Belief
from fieldbo.belief.question import LevelSet, Optimum
from fieldbo.belief.surface import Surface
from fieldbo.errors import InputError
from fieldbo.messages import EndReason, Query, Stop
from fieldbo.mission.kinds import POLICIES
from fieldbo.policies.acquisition import (
    expected_improvement,
    gp_ucb_beta,
    log_expected_improvement,
    max_value_entropy,
)
from fieldbo.policies.baselines import Random
from fieldbo.policies.contract import Policy
from fieldbo.policies.optimum.myopic import (
    EI,
    GPUCB,
    EntropySearch,
    MaxValueEntropySearch,
    MinimumRegretSearch,
    draw_maxima,
    incumbent,
    maximum_quantiles,
)
from fieldbo.testing import drive, small_mission, small_world

property_test = settings(deadline=None, max_examples=examples(40), derandomize=True)

POLICIES_UNDER_TEST = [EI(), GPUCB(), MaxValueEntropySearch()]


@dataclass(frozen=True)
class Seen(Policy):
    """Chooses at random and keeps the states that it sees."""

    states: list = field(default_factory=list, hash=False)

    def suggest(self, state, memory):
        self.states.append(replace(state, surface=state.surface.copy()))
        return Random().suggest(state, memory)


def state_after(readings, noise_sd=0.05, shape=(6, 5)):
    """The state after a number of random readings of the small world."""
    seen = Seen()
    mission = small_mission(seen, world=small_world(shape, noise_sd), battery=1000.0, initial=0)
    drive(replace(mission, question=Optimum(), max_steps=readings + 1))
    return seen.states[readings]


def with_values(state, mean, variance):
    surface = state.surface.copy()
    surface.mean, surface.variance = np.array(mean, dtype=float), np.array(variance, dtype=float)
    return replace(state, surface=surface)


def chosen(policy, state):
    decision = policy.suggest(replace(state), None)
    assert isinstance(decision.choice, Query)
    return decision.why["site"]


# -- all of them -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "tested"), [("ei", EI), ("gp-ucb", GPUCB), ("max-value-entropy-search", MaxValueEntropySearch)]
)
def test_each_policy_has_its_name_and_is_rejected_for_a_level_set(name, tested):
    assert POLICIES.get(name) is tested
    with pytest.raises(InputError):
        replace(small_mission(), question=LevelSet(0.3), policy=tested())


@pytest.mark.parametrize("tested", POLICIES_UNDER_TEST, ids=repr)
def test_a_constant_added_to_all_values_changes_no_choice(tested):
    for readings in (0, 4, 12):
        state = state_after(readings)
        s = state.surface
        belief = s.belief
        if belief.size:  # the readings and their mean move together
            belief = replace(belief, values=belief.values + 7.0)
        moved = with_values(state, s.mean + 7.0, s.variance)
        moved.surface.belief = belief
        assert chosen(tested, state) == chosen(tested, moved)


@pytest.mark.parametrize("tested", POLICIES_UNDER_TEST, ids=repr)
@pytest.mark.parametrize("per_cost", [False, True])
def test_sites_known_exactly_leave_finite_scores_and_are_not_chosen(tested, per_cost):
    policy = replace(tested, per_cost=per_cost)
    state = state_after(12, noise_sd=0.0)
    variance = state.surface.variance.copy()
    variance[:10] = 0.0
    best = int(np.argmax(state.surface.mean))
    variance[best] = 0.0
    decision = policy.suggest(with_values(state, state.surface.mean, variance), None)
    assert np.isfinite(decision.why["score"])
    assert decision.why["site"] >= 10
    assert decision.why["site"] != best
    nothing_left = with_values(state, state.surface.mean, np.zeros(30))
    assert policy.suggest(nothing_left, None).choice == Stop(EndReason.QUESTION_ANSWERED)


ALL = [*POLICIES_UNDER_TEST, EntropySearch(draws=32), MinimumRegretSearch(draws=32, point=True)]


@pytest.mark.parametrize("tested", [*ALL, MinimumRegretSearch(draws=32)], ids=repr)
def test_no_site_is_read_again_without_noise_and_the_question_is_answered_when_all_are(tested):
    mission = small_mission(tested, world=small_world((3, 3), noise_sd=0.0), battery=1000.0)
    _, orders, stop = drive(mission)
    sites = [tuple(order.site) for order in orders if isinstance(order, Query)]
    assert len(sites) == len(set(sites)) == 9
    assert stop.reason == EndReason.QUESTION_ANSWERED


@pytest.mark.parametrize("tested", ALL, ids=repr)
def test_sites_are_read_again_as_long_as_noise_leaves_something_to_learn(tested):
    mission = small_mission(tested, world=small_world((3, 3), noise_sd=1e-4), battery=1000.0)
    _, _, stop = drive(replace(mission, max_steps=12))
    assert stop.reason == EndReason.STEP_LIMIT


def test_dividing_by_equal_costs_changes_no_choice():
    for readings in (0, 3, 9):
        state = state_after(readings)
        for tested in POLICIES_UNDER_TEST:
            free = replace(state, cost=replace(state.cost, rate=0.0))
            assert chosen(tested, free) == chosen(replace(tested, per_cost=True), free)


# -- EI --------------------------------------------------------------------------------------------------


@property_test
@given(seed=st.integers(0, 10_000), n=st.integers(1, 12), repeats=st.integers(0, 6))
def test_the_incumbent_is_the_best_posterior_mean_at_the_sites_read(seed, n, repeats):
    rng = np.random.default_rng(seed)
    sites = rng.random((n, 2))
    again = sites[rng.integers(n, size=repeats)]
    surface = Surface(Belief(Matern52([0.3, 0.5])), rng.random((15, 2)))
    for site in np.concatenate([sites, again]):
        surface.append(site, rng.normal(), rng.uniform(1e-4, 0.5))
    assert incumbent(surface) == pytest.approx(surface.belief.mean(sites).max(), abs=1e-8)


def test_before_any_reading_the_incumbent_is_the_prior_mean():
    state = state_after(0)
    assert incumbent(state.surface) == 0.0
    assert EI().suggest(state, None).why["incumbent"] == 0.0


def test_ei_chooses_the_largest_expected_improvement():
    state = state_after(7)
    surface = state.surface
    read = np.array([state.domain.nearest(e.sites[0]) for e in state.history])
    scores = expected_improvement(surface.mean, surface.sd, surface.mean[read].max())
    assert chosen(EI(), state) == np.argmax(scores)
    assert chosen(EI(per_cost=True), state) == np.argmax(scores / state.costs())


@pytest.mark.parametrize("rate", [0.0, 1.0, 1000.0])
def test_ei_chooses_by_its_logarithm_where_all_improvements_underflow(rate):
    state, rng = state_after(7), np.random.default_rng(0)
    best = incumbent(state.surface)
    state = with_values(state, best - rng.uniform(1.0, 1.01, 30), rng.uniform(0.010, 0.0101, 30) ** 2)
    state = replace(
        state, cost=replace(state.cost, rate=rate), affordable=lambda x, **_: np.ones(len(x), bool)
    )
    mu, s = state.surface.mean, state.surface.sd
    assert not expected_improvement(mu, s, best).any()
    logs = log_expected_improvement(mu, s, best)
    assert chosen(EI(), state) == np.argmax(logs)
    over_cost = logs - np.log(state.costs())
    decision = EI(per_cost=True).suggest(state, None)
    assert decision.why["site"] == np.argmax(over_cost)
    assert np.log(decision.why["score"]) + decision.why["log_unit"] == pytest.approx(over_cost.max())


# -- GP-UCB ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("readings", [0, 1, 7])
def test_gp_ucb_chooses_the_highest_bound_and_counts_steps_from_one(readings):
    state = state_after(readings)
    surface = state.surface
    beta = gp_ucb_beta(30, readings + 1)
    bound = surface.mean + np.sqrt(beta) * surface.sd
    assert chosen(GPUCB(), state) == np.argmax(bound)
    assert GPUCB().suggest(state, None).why["beta"] == beta
    promise = bound - surface.mean.max()
    assert chosen(GPUCB(per_cost=True), state) == np.argmax(promise / state.costs())


@pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, np.nan])
def test_a_delta_that_is_not_a_probability_is_rejected(delta):
    with pytest.raises(InputError):
        GPUCB(delta=delta)


# -- max-value entropy search ----------------------------------------------------------------------------


@property_test
@given(mu=st.floats(-5, 5), s=st.floats(0.01, 5), maximum=st.floats(-5, 10))
def test_the_gain_is_the_entropy_of_a_normal_minus_that_of_one_truncated_at_the_maximum(mu, s, maximum):
    gamma = (maximum - mu) / s
    if gamma < -5:  # where scipy's own entropy loses its digits
        return
    literal = norm(mu, s).entropy() - truncnorm(-40.0, gamma, mu, s).entropy()
    actual = max_value_entropy(np.array([mu]), np.array([s]), np.array([maximum]))[0]
    assert actual == pytest.approx(literal, abs=1e-6)


def test_the_gain_is_finite_in_the_tails_and_0_without_uncertainty():
    actual = max_value_entropy(np.zeros(4), np.array([0.0, 1e-6, 1e-3, 1.0]), np.array([1.0, 3.0]))
    np.testing.assert_allclose(actual[:3], 0.0, atol=1e-12)
    assert actual[3] > 0
    assert np.isfinite(max_value_entropy(np.zeros(1), np.ones(1), np.array([-1e4, 1e4]))).all()


@property_test
@given(seed=st.integers(0, 10_000), n=st.integers(1, 40), known=st.integers(0, 3))
def test_quantiles_of_the_maximum_solve_their_equation(seed, n, known):
    rng = np.random.default_rng(seed)
    mu, s = rng.normal(size=n), rng.uniform(0.01, 2.0, n)
    s[:known] = 0.0
    shares = np.array([0.05, 0.25, 0.5, 0.75])
    actual = maximum_quantiles(mu, s, shares)
    floor = mu[s == 0].max(initial=-np.inf)
    for y, share in zip(actual, shares, strict=True):
        if not (s > 0).any():
            literal = floor
        else:

            def excess(value, share=share):
                return norm.logcdf(value, mu[s > 0], s[s > 0]).sum() - np.log(share)

            literal = max(floor, brentq(excess, mu.min() - 40, mu.max() + 40, xtol=1e-12))
        assert y == pytest.approx(literal, abs=1e-8)


def test_drawn_maxima_have_the_quartiles_of_the_maximum_of_independent_sites():
    rng = np.random.default_rng(0)
    mu, s = rng.normal(0, 0.5, 60), rng.uniform(0.2, 1.0, 60)
    brute = (mu + s * rng.normal(size=(40_000, 60))).max(axis=1)
    actual = draw_maxima(mu, s, 40_000, rng, -np.inf)
    for share in (0.1, 0.25, 0.5, 0.75, 0.9):
        assert np.quantile(actual, share) == pytest.approx(np.quantile(brute, share), abs=0.05)


def test_scores_agree_with_those_of_maxima_of_joint_draws():
    """The Gumbel fit assumes independent sites, which makes the maximum somewhat too large."""
    state = state_after(8)
    surface, rng = state.surface, np.random.default_rng(1)
    joint = rng.multivariate_normal(surface.mean, surface.covariance(), size=4000, method="eigh")
    brute = max_value_entropy(surface.mean, surface.sd, joint.max(axis=1))
    drawn = draw_maxima(surface.mean, surface.sd, 4000, rng, surface.mean.max())
    actual = max_value_entropy(surface.mean, surface.sd, drawn)
    np.testing.assert_allclose(actual, brute, atol=0.1)
    assert np.argmax(actual) == np.argmax(brute)


def test_drawn_maxima_respect_the_lower_bound_and_are_exact_without_uncertainty():
    rng = np.random.default_rng(0)
    mu = rng.normal(size=20)
    assert draw_maxima(mu, np.full(20, 0.5), 500, rng, 3.0).min() == 3.0
    np.testing.assert_array_equal(draw_maxima(mu, np.zeros(20), 5, rng, -np.inf), mu.max())


@pytest.mark.parametrize("noise_sd", [0.0, 0.2])
def test_max_value_entropy_search_does_not_keep_sampling_the_best_site(noise_sd):
    mission = small_mission(world=small_world(noise_sd=noise_sd), battery=60.0)
    _, orders, _ = drive(replace(mission, question=Optimum(), policy=MaxValueEntropySearch()))
    sites = [tuple(o.site) for o in orders if isinstance(o, Query)]
    assert len(set(sites)) > 0.7 * len(sites)


def test_a_search_without_samples_is_rejected():
    with pytest.raises(InputError):
        MaxValueEntropySearch(samples=0)


# -- missions --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tested", POLICIES_UNDER_TEST, ids=repr)
@pytest.mark.parametrize("goal", ["maximise", "minimise"])
def test_a_mission_finds_the_optimum(tested, goal):
    mission = replace(small_mission(battery=90.0), question=Optimum(goal), policy=tested)
    agent, _, _ = drive(mission)
    assert isinstance(agent, Agent)
    actual = agent.domain.sites[np.argmax(agent.surface.mean)]
    truth = Optimum(goal).sign * mission.world.truth(agent.domain.sites)
    assert Optimum(goal).sign * mission.world.truth(actual[None])[0] > truth.max() - 0.1

"""Acquisition functions: closed forms against sums and integrals written out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm
from tiers import examples

from fieldbo.belief.kernels import Matern52
from fieldbo.belief.posterior import Belief
from fieldbo.policies.acquisition import (
    ambiguity,
    expected_improvement,
    gp_ucb_beta,
    in_unit,
    log_expected_improvement,
    log_unit,
    lookahead_variance,
    straddle,
    truncated_variance_reduction,
)

property_test = settings(deadline=None, max_examples=examples(60), derandomize=True)
finite = st.floats(-10, 10)
positive = st.floats(0.01, 10)


def belief(rng, n):
    prior = Belief(Matern52([0.3, 0.5]))
    if not n:
        return prior
    return prior.condition_on(rng.random((n, 2)), rng.normal(size=n), rng.uniform(1e-4, 0.3, n))


@property_test
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(0, 8),
    m=st.integers(0, 25),
    beta=st.floats(0.1, 20),
    eta=st.one_of(st.just(0.0), st.floats(0.0, 3.0)),
)
def test_truncated_variance_reduction_is_the_double_sum_of_equation_3(seed, n, m, beta, eta):
    rng = np.random.default_rng(seed)
    now = belief(rng, n)
    candidates, members = rng.random((9, 2)), rng.random((25, 2))[:m]
    noise, cost = rng.uniform(1e-6, 0.5, 9), rng.uniform(0.1, 5, 9)
    literal = []
    for site, v, c in zip(candidates, noise, cost, strict=True):
        after = now.condition_on(site, [0.0], v)
        before = sum(max(beta * s2, eta**2) for s2 in now.variance(members)) if m else 0.0
        then = sum(max(beta * s2, eta**2) for s2 in after.variance(members)) if m else 0.0
        literal.append((before - then) / c)
    covariance = now.covariance(candidates, members) if m else np.empty((9, 0))
    variance_m = now.variance(members) if m else np.empty(0)
    actual = truncated_variance_reduction(
        covariance, now.variance(candidates), noise, variance_m, cost, beta, eta
    )
    np.testing.assert_allclose(actual, literal, rtol=0, atol=1e-8)


def test_truncated_variance_reduction_does_not_depend_on_how_many_members_are_scored_at_once():
    rng = np.random.default_rng(0)
    n, m = 700, 1500  # more than one block of candidates
    covariance = rng.normal(size=(n, m)) * 0.1
    variance, noise, cost = rng.uniform(0.5, 1, n), np.full(n, 0.01), rng.uniform(1, 2, n)
    variance_m = rng.uniform(0, 1, m)
    whole = truncated_variance_reduction(covariance, variance, noise, variance_m, cost, 4.0, 0.8)
    drop = covariance**2 / (noise + variance)[:, None]
    literal = np.maximum(4 * variance_m, 0.64) - np.maximum(4 * (variance_m - drop), 0.64)
    np.testing.assert_allclose(whole, literal.sum(axis=1) / cost, rtol=1e-10)


def test_members_that_are_certain_enough_leave_no_gain():
    actual = truncated_variance_reduction(
        np.full((3, 2), 0.1), np.ones(3), np.full(3, 0.1), np.full(2, 0.2), np.ones(3), beta=4.0, eta=1.0
    )
    np.testing.assert_array_equal(actual, 0.0)


def test_a_site_known_exactly_and_read_without_noise_has_no_gain():
    covariance = np.array([[0.0, 1e-17], [0.3, 0.4]])
    actual = truncated_variance_reduction(
        covariance, np.array([0.0, 0.5]), np.zeros(2), np.array([0.5, 0.6]), np.ones(2), beta=1.0, eta=0.0
    )
    np.testing.assert_allclose(actual, [0.0, (0.09 + 0.16) / 0.5])


def test_a_beta_of_zero_leaves_no_gain():
    single = np.ones(1)
    actual = truncated_variance_reduction(np.ones((1, 1)), single, single, single, single, beta=0.0, eta=1.0)
    np.testing.assert_array_equal(actual, 0.0)


@property_test
@given(seed=st.integers(0, 10_000), n=st.integers(0, 8), noise=st.floats(1e-4, 2))
def test_lookahead_variances_are_those_of_a_belief_conditioned_on_the_reading(seed, n, noise):
    rng = np.random.default_rng(seed)
    now, members, x = belief(rng, n), rng.random((12, 2)), rng.random((1, 2))
    actual = lookahead_variance(
        now.variance(members), now.covariance(x, members)[0], now.variance(x)[0], noise
    )
    np.testing.assert_allclose(actual, now.condition_on(x, [3.0], noise).variance(members), rtol=0, atol=1e-9)


@property_test
@given(mu=finite, s=positive, best=finite)
def test_expected_improvement_is_the_expectation_of_the_improvement(mu, s, best):
    top = max(best, mu) + 10 * s
    literal, _ = quad(lambda f: (f - best) * norm.pdf(f, mu, s), best, top, points=[min(max(mu, best), top)])
    actual = expected_improvement(np.array([mu]), np.array([s]), best)[0]
    assert actual == pytest.approx(literal, abs=1e-7)


@property_test
@given(mu=finite, best=finite)
def test_expected_improvement_without_uncertainty_is_the_improvement(mu, best):
    assert expected_improvement(np.array([mu]), np.array([0.0]), best)[0] == max(mu - best, 0.0)
    near = expected_improvement(np.array([mu]), np.array([1e-9]), best)[0]
    assert near == pytest.approx(max(mu - best, 0.0), abs=1e-8)


@pytest.mark.parametrize("z", [-1e6, -301.0, -300.0, -38.0, -10.0, -1.001, -1.0, -0.999, -0.1])
def test_the_log_of_the_expected_improvement_is_that_of_its_integral_however_small(z):
    # E max(Z + z, 0) = phi(z) / z^2 times the integral of u exp(-u - (u / z)^2 / 2) over u > 0
    integral, _ = quad(lambda u: u * np.exp(-u - 0.5 * (u / z) ** 2), 0.0, 60.0, epsabs=0.0, epsrel=1e-12)
    literal = norm.logpdf(z) - 2.0 * np.log(-z) + np.log(integral)
    s = 0.01
    actual = log_expected_improvement(np.array([s * z]), np.array([s]), 0.0)[0]
    assert actual - np.log(s) == pytest.approx(literal, rel=1e-13, abs=1e-11)


@property_test
@given(seed=st.integers(0, 10_000))
def test_logs_and_their_units_rank_scores_as_the_scores_themselves(seed):
    rng = np.random.default_rng(seed)
    logs = rng.uniform(-20.0, 3.0, 8)
    for lower in (0.0, 2000.0):
        scores = in_unit(logs - lower, log_unit(logs - lower))
        assert np.array_equal(np.argsort(scores), np.argsort(logs))
        np.testing.assert_allclose(np.diff(np.log(scores)), np.diff(logs), atol=1e-9)
    np.testing.assert_array_equal(in_unit(logs, log_unit(logs)), np.exp(logs))


@property_test
@given(mu=finite, s=positive, h=finite, kappa=positive)
def test_straddle_and_ambiguity_agree_if_bounds_are_not_intersected(mu, s, h, kappa):
    m, sd = np.array([mu]), np.array([s])
    actual = ambiguity(m, sd, h, kappa)
    np.testing.assert_allclose(actual.score, straddle(m, sd, h, kappa), atol=1e-9)
    assert (actual.score >= -1e-12) == (actual.lower[0] - 1e-12 <= h <= actual.upper[0] + 1e-12)


@property_test
@given(
    mu=finite,
    s=positive,
    h=finite,
    bounds=st.tuples(finite, finite),
)
def test_intersected_bounds_are_never_wider_than_either(mu, s, h, bounds):
    low, high = np.array([min(bounds)]), np.array([max(bounds)])
    alone = ambiguity(np.array([mu]), np.array([s]), h)
    cut = ambiguity(np.array([mu]), np.array([s]), h, lower=low, upper=high)
    assert cut.lower[0] == max(alone.lower[0], low[0])
    assert cut.upper[0] == min(alone.upper[0], high[0])
    assert cut.score[0] <= alone.score[0]


def test_the_width_of_gp_ucb_grows_with_time_and_candidates():
    widths = [gp_ucb_beta(100, t) for t in (1, 2, 10, 100)]
    assert widths == sorted(widths)
    assert gp_ucb_beta(1000, 5) > gp_ucb_beta(100, 5)
    assert gp_ucb_beta(100, 5, delta=0.01) > gp_ucb_beta(100, 5)
    assert gp_ucb_beta(100, 5) == pytest.approx(0.4 * np.log(100 * 25 * np.pi**2 / 0.6))

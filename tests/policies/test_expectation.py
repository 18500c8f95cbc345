"""Expectations over variables left to chance: against brute force, against differences, and their order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from fieldbo.belief.kernels import SquaredExponential, kernel
from fieldbo.belief.posterior import Belief
from fieldbo.errors import InputError
from fieldbo.policies.control_sets.expectation import Expected, Precision

property_test = settings(deadline=None, max_examples=examples(30), derandomize=True)

D, S = 4, 7
KERNELS = ["se", "matern32", "matern52"]
MASKS = [[True, False, False, True], [False, True, False, False], [True] * D]


def belief_of(name, n=25, noise=1e-2, seed=0):
    rng = np.random.default_rng(seed)
    sites = rng.random((n, D))
    values = np.sin(3 * sites.sum(axis=1)) + 0.1 * rng.standard_normal(n)
    return Belief(kernel(name, [0.4, 0.6, 0.5, 0.8], 1.3)).condition_on(sites, values, noise)


def expected(name, mask, **how):
    samples = np.random.default_rng(5).random((S, D))
    return Expected(belief_of(name, **how), samples, np.array(mask))


def points_of(mask, count=5, seed=9):
    points = np.random.default_rng(seed).random((count, D))
    return np.where(mask, points, np.nan)


def brute(over, points, kappa):
    each = np.where(over.controls, points[:, None], over.samples)
    mu = np.array([over.belief.mean(some) for some in each])
    s = np.sqrt([over.belief.variance(some) for some in each])
    return (mu + kappa * s).mean(axis=1)


def differences(function, points, mask, step=1e-5):
    out = np.zeros_like(points)
    for j in np.flatnonzero(mask):
        beside = np.zeros(D)
        beside[j] = step
        out[:, j] = (function(points + beside) - function(points - beside)) / (2 * step)
    return out


@pytest.mark.parametrize("mask", MASKS, ids=str)
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("kappa", [-2.0, 0.0, 2.0])
@pytest.mark.parametrize("noise", [1e-2, 1e-12])
def test_a_bound_is_the_mean_over_all_samples(name, mask, kappa, noise):
    over = expected(name, mask, noise=noise)
    points = points_of(mask)
    np.testing.assert_allclose(over.bound(points, kappa), brute(over, points, kappa), atol=1e-7)


@pytest.mark.parametrize("mask", MASKS, ids=str)
@pytest.mark.parametrize("name", KERNELS)
def test_gradients_agree_with_differences_and_are_zero_along_free_variables(name, mask):
    over, points = expected(name, mask), points_of(mask)
    forms = {
        "upper": lambda x: over.bound_with_gradient(x, 2.0),
        "lower": lambda x: over.bound_with_gradient(x, -2.0),
        "mean": lambda x: over.bound_with_gradient(x, 0.0),
        "near": lambda x: over.cheap_bound_with_gradient(x, 2.0),
        "average": lambda x: (over.average(x).mean, over.average(x).mean_gradient),
        "variance": lambda x: (over.average(x).variance, over.average(x).variance_gradient),
    }
    for what, form in forms.items():
        seen = form(points)[1]
        wanted = differences(lambda x, form=form: form(x)[0], points, mask)
        np.testing.assert_allclose(seen, wanted, atol=2e-7, err_msg=what)
        assert np.all(seen[:, ~np.array(mask)] == 0.0)


@pytest.mark.parametrize("name", KERNELS)
def test_a_full_control_set_is_one_evaluation_of_the_belief(name):
    over, points = expected(name, MASKS[2]), points_of(MASKS[2])
    belief = over.belief
    assert len(over.samples) == 1
    upper = belief.mean(points) + 2 * np.sqrt(belief.variance(points))
    np.testing.assert_allclose(over.bound(points, 2.0), upper, atol=1e-12)
    np.testing.assert_allclose(over.cheap_bound_with_gradient(points, 2.0)[0], upper, atol=1e-12)
    np.testing.assert_allclose(over.average(points).variance, belief.variance(points), atol=1e-12)


@property_test
@given(seed=st.integers(0, 10_000), kappa=st.floats(0.1, 5.0), n=st.integers(1, 30))
def test_the_cheap_bound_of_a_squared_exponential_encloses_the_exact_one(seed, kappa, n):
    belief = belief_of("se", n, seed=seed)
    rng = np.random.default_rng(seed)
    mask = rng.random(D) < 0.5
    mask[rng.integers(D)] = True
    over, points = Expected(belief, rng.random((S, D)), mask), rng.random((4, D))
    assert np.all(over.cheap_bound_with_gradient(points, kappa)[0] >= over.bound(points, kappa) - 1e-9)
    assert np.all(over.cheap_bound_with_gradient(points, -kappa)[0] <= over.bound(points, -kappa) + 1e-9)


@pytest.mark.parametrize("name", KERNELS)
def test_the_average_is_the_belief_of_the_mean_of_all_samples(name):
    over, points = expected(name, MASKS[0]), points_of(MASKS[0])
    found = over.average(points)
    for point, mean, variance in zip(over.at(points), found.mean, found.variance, strict=True):
        assert mean == pytest.approx(over.belief.mean(point).mean(), abs=1e-10)
        assert variance == pytest.approx(over.belief.covariance(point, point).mean(), abs=1e-10)
    assert np.all(np.sqrt(found.variance) <= over.bound(points, 1.0) - over.mean(points) + 1e-12)


@pytest.mark.parametrize("name", KERNELS)
def test_before_any_reading_bounds_are_those_of_the_prior(name):
    over = Expected(Belief(kernel(name, [0.5] * D, 4.0)), np.full((S, D), 0.5), np.array(MASKS[0]))
    points = points_of(MASKS[0])
    assert over.bound(points, 2.0).tolist() == [4.0] * 5
    assert not over.bound_with_gradient(points, 2.0)[1].any()
    assert over.mean(points).tolist() == [0.0] * 5
    assert over.average(points).variance == pytest.approx(4.0)


@property_test
@given(seed=st.integers(0, 10_000), exponent=st.floats(-12, 0))
def test_products_with_the_inverse_agree_with_those_by_the_factor(seed, exponent):
    belief = belief_of("se", 40, noise=10.0**exponent, seed=seed)
    rows = belief.kernel(np.random.default_rng(seed).random((6, D)), belief.sites)
    quick = np.einsum("pn,pn->p", Precision(belief).times(rows), rows)
    half = np.linalg.solve(belief.factor, rows.T)
    np.testing.assert_allclose(quick, (half**2).sum(axis=0), atol=2e-6)


def test_the_inverse_is_not_used_where_it_would_lose_digits():
    assert Precision(belief_of("se", noise=1e-2)).inverse is not None
    assert Precision(belief_of("se", noise=1e-12)).inverse is None


def test_many_points_are_evaluated_in_parts():
    rng = np.random.default_rng(0)
    belief = Belief(SquaredExponential([0.5] * D)).condition_on(rng.random((200, D)), rng.random(200), 0.1)
    over, points = Expected(belief, rng.random((128, D)), np.array(MASKS[0])), rng.random((90, D))
    one_by_one = np.concatenate([over.bound(point, 2.0) for point in points])
    np.testing.assert_allclose(over.bound(points, 2.0), one_by_one, atol=1e-12)


@pytest.mark.parametrize("mask", [[False] * D, [True, False]])
def test_samples_of_other_variables_or_without_controls_are_rejected(mask):
    with pytest.raises(InputError):
        Expected(belief_of("se"), np.full((3, D), 0.5), np.array(mask))

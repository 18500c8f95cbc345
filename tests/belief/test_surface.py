"""The belief over a candidate set: it agrees with the belief itself, however it was built."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from tiers import examples

from fieldbo.belief.kernels import Matern32, Matern52, SquaredExponential
from fieldbo.belief.posterior import Belief
from fieldbo.belief.surface import Surface
from fieldbo.errors import InputError

PRIOR = Belief(Matern52([0.3, 0.5], 1.4))
GRID = np.stack(np.meshgrid(np.linspace(0, 1, 7), np.linspace(0, 1, 5)), axis=-1).reshape(-1, 2)
property_test = settings(deadline=None, max_examples=examples(40), derandomize=True)


def readings(n, seed=0):
    """Readings at candidates (some repeated) and between them, each with its own noise."""
    rng = np.random.default_rng(seed)
    x = np.where(rng.random(n)[:, None] < 0.7, GRID[rng.integers(0, 8, n)], rng.random((n, 2)))
    return x, rng.normal(size=n), rng.uniform(0.001, 0.3, n)


def assert_same(surface, other, atol=1e-10):
    np.testing.assert_allclose(surface.mean, other.mean, rtol=0, atol=atol)
    np.testing.assert_allclose(surface.variance, other.variance, rtol=0, atol=atol)
    np.testing.assert_allclose(surface.covariance(), other.covariance(), rtol=0, atol=atol)


@property_test
@given(
    n=st.integers(1, 25),
    start=st.integers(0, 10),
    buffered_after=st.one_of(st.none(), st.integers(0, 25)),
    seed=st.integers(0, 10_000),
)
def test_readings_appended_one_by_one_give_the_surface_made_from_scratch(n, start, buffered_after, seed):
    x, y, v = readings(start + n, seed)
    surface = Surface(PRIOR.condition_on(x[:start], y[:start], v[:start]) if start else PRIOR, GRID)
    for i in range(start, start + n):
        if buffered_after == i - start:
            surface.covariance()  # from here on the full covariance is kept up to date
        surface.append(x[i : i + 1], y[i : i + 1], v[i : i + 1])
    belief = PRIOR.condition_on(x, y, v)
    assert_same(surface, Surface(belief, GRID))
    np.testing.assert_allclose(surface.covariance(), belief.covariance(GRID, GRID), rtol=0, atol=1e-10)
    np.testing.assert_allclose(surface.mean, belief.mean(GRID), rtol=0, atol=1e-10)
    np.testing.assert_allclose(surface.variance, belief.variance(GRID), rtol=0, atol=1e-10)
    assert surface.belief.log_marginal_likelihood() == pytest.approx(
        belief.log_marginal_likelihood(), abs=1e-8
    )


@pytest.mark.parametrize("buffered", [False, True])
def test_covariance_agrees_with_that_of_the_belief(buffered):
    candidates = np.random.default_rng(0).random((600, 2))
    surface = Surface(Belief(Matern32([0.3, 0.5])), candidates)
    if buffered:
        surface.covariance()
    x, y, v = readings(20)
    surface.append(x, y, v)
    expected = surface.belief.covariance(candidates, candidates)
    np.testing.assert_allclose(surface.covariance(), expected, rtol=0, atol=1e-10)
    np.testing.assert_allclose(np.diag(surface.covariance()), surface.variance, rtol=0, atol=1e-10)


@pytest.mark.parametrize("rows", [3, slice(2, 9), [4, 1, 30], np.arange(35) % 3 == 0], ids=str)
def test_any_index_selects_rows_of_the_covariance(rows):
    surface = Surface(PRIOR.condition_on(*readings(6)), GRID)
    expected = np.atleast_2d(surface.belief.covariance(GRID, GRID)[rows])
    np.testing.assert_allclose(surface.covariance(rows), expected, rtol=0, atol=1e-12)


def test_readings_appended_at_once_or_in_turn_give_the_same_surface():
    x, y, v = readings(12)
    at_once, in_turn = Surface(PRIOR, GRID), Surface(PRIOR, GRID)
    at_once.append(x, y, v)
    for i in range(12):
        in_turn.append(x[i], y[i], v[i])
    assert_same(at_once, in_turn, atol=1e-12)


def test_a_surface_grows_beyond_its_initial_capacity():
    x, y, v = readings(70)
    surface = Surface(PRIOR, GRID)
    surface.append(x, y, v)
    assert_same(surface, Surface(PRIOR.condition_on(x, y, v), GRID))


def test_one_noise_variance_holds_for_all_readings():
    x, y, _ = readings(5)
    single, each = Surface(PRIOR, GRID), Surface(PRIOR, GRID)
    single.append(x, y, 0.2)
    each.append(x, y, np.full(5, 0.2))
    assert_same(single, each, atol=0)


@pytest.mark.parametrize("k", [SquaredExponential([0.4, 0.4]), Matern52([0.4, 0.4])], ids=["se", "matern52"])
def test_noiseless_readings_of_every_candidate_leave_variances_that_are_small_and_not_negative(k):
    surface = Surface(Belief(k), GRID)
    surface.covariance()
    for _ in range(2):
        surface.append(GRID, np.sin(3 * GRID[:, 0]), 0.0)
        assert (surface.variance >= 0).all()
        assert surface.variance.max() < 1e-8
        np.testing.assert_allclose(surface.mean, np.sin(3 * GRID[:, 0]), atol=1e-6)


@property_test
@given(
    seed=st.integers(0, 10_000),
    values=st.lists(st.floats(-100, 100), min_size=3, max_size=3),
    noise=st.floats(0.001, 2),
)
def test_variances_with_pending_sites_are_those_after_any_readings_there(seed, values, noise):
    x, y, v = readings(8, seed)
    surface = Surface(PRIOR.condition_on(x, y, v), GRID)
    mean, variance = surface.mean.copy(), surface.variance.copy()
    pending = [GRID[3], GRID[3], np.array([0.123, 0.456])]
    really = surface.copy()
    really.append(np.stack(pending), values, noise)
    believing = surface.believing(np.stack(pending), noise)
    np.testing.assert_allclose(believing.variance, really.variance, rtol=0, atol=1e-10)
    np.testing.assert_allclose(believing.covariance(), really.covariance(), rtol=0, atol=1e-10)
    np.testing.assert_allclose(believing.mean, mean, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(surface.mean, mean)
    np.testing.assert_array_equal(surface.variance, variance)
    assert surface.belief.size == PRIOR.condition_on(x, y, v).size


def test_pending_sites_may_differ_in_noise():
    surface = Surface(PRIOR, GRID)
    x, y, v = readings(4)
    really = surface.copy()
    really.append(x, y, v)
    np.testing.assert_allclose(surface.believing(x, v).variance, really.variance, rtol=0, atol=1e-12)


@pytest.mark.parametrize("buffered", [False, True])
def test_a_copy_is_independent(buffered):
    surface = Surface(PRIOR.condition_on(*readings(4)), GRID)
    if buffered:
        surface.covariance()
    copy, before = surface.copy(), surface.covariance().copy() if buffered else None
    mean, variance = surface.mean.copy(), surface.variance.copy()
    copy.append(*readings(5, seed=1))
    assert surface.belief.size < copy.belief.size
    np.testing.assert_array_equal(surface.mean, mean)
    np.testing.assert_array_equal(surface.variance, variance)
    if buffered:
        np.testing.assert_array_equal(surface.covariance(), before)
    surface.append(*readings(6, seed=2))
    assert_same(copy, Surface(copy.belief, GRID))
    assert_same(surface, Surface(surface.belief, GRID))


def test_exceedance_is_the_normal_tail_and_a_step_where_nothing_is_uncertain():
    surface = Surface(PRIOR.condition_on(*readings(6)), GRID)
    expected = norm.sf(0.4, surface.mean, surface.sd)
    np.testing.assert_allclose(surface.exceedance(0.4), expected, atol=1e-12)
    surface.variance[:] = 0.0
    np.testing.assert_array_equal(surface.exceedance(surface.mean[0]), surface.mean >= surface.mean[0])


def test_an_invalid_reading_is_rejected_and_does_not_change_the_surface():
    surface = Surface(PRIOR.condition_on(*readings(4)), GRID)
    mean, size = surface.mean.copy(), surface.belief.size
    with pytest.raises(InputError, match="finite readings"):
        surface.append([[0.5, 0.5]], [np.nan], 0.1)
    np.testing.assert_array_equal(surface.mean, mean)
    assert surface.belief.size == size


def test_the_digits_of_the_covariance_do_not_depend_on_when_it_is_first_asked_for():
    rng = np.random.default_rng(3)
    candidates, values = rng.random((60, 2)), rng.standard_normal(12)
    early, late = (Surface(Belief(Matern52([0.3, 0.4])), candidates) for _ in range(2))
    early.covariance()
    for surface in (early, late):
        for site, value in zip(candidates[:12], values, strict=True):
            surface.append(site[None], [value], [1e-4])
    assert np.array_equal(early.covariance(), late.covariance())


def test_repeated_readings_are_pooled_before_rows_outnumber_sites_by_half():
    rng = np.random.default_rng(4)
    candidates = rng.random((5, 2))
    surface, belief = Surface(Belief(Matern52([0.3, 0.4])), candidates), Belief(Matern52([0.3, 0.4]))
    for k in range(40):
        value = [float(rng.standard_normal())]
        surface.append(candidates[k % 5][None], value, [0.1])
        belief = belief.condition_on(candidates[k % 5][None], value, [0.1])
        assert surface.belief.size <= 1.5 * 5
    np.testing.assert_allclose(surface.mean, belief.mean(candidates), atol=1e-10)
    np.testing.assert_allclose(surface.variance, belief.variance(candidates), atol=1e-10)
    lml = surface.belief.log_marginal_likelihood()
    np.testing.assert_allclose(lml, belief.log_marginal_likelihood(), atol=1e-9)


@pytest.mark.parametrize(
    "ask",
    [
        lambda at: Surface(PRIOR, at),
        lambda at: Surface(PRIOR, GRID).append(at, np.zeros(len(at)), 0.1),
        lambda at: Surface(PRIOR, GRID).believing(at, 0.1),
        lambda at: Surface(PRIOR, GRID).covariance_with(at),
    ],
)
@pytest.mark.parametrize("wrong", [1, 3])
def test_places_of_another_dimension_than_the_kernel_are_rejected(ask, wrong):
    with pytest.raises(InputError, match=f"with {wrong} coordinates each, for a kernel over 2"):
        ask(np.full((4, wrong), 0.5))

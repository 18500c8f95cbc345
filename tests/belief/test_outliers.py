"""The test for outliers: bad readings are dropped, good ones stay, even if the model is wrong."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from fieldbo.belief.kernels import Matern52, SquaredExponential
from fieldbo.belief.marginal_likelihood import LogNormalPrior, fit_kernel
from fieldbo.belief.outliers import (
    LEAST_READINGS,
    MOST_DROPPED,
    _Readings,
    believable,
    believable_at_first,
    fit_believed,
)
from fieldbo.belief.posterior import Belief
from fieldbo.errors import InputError, ModelError

property_test = settings(deadline=None, max_examples=examples(40), derandomize=True)
KERNEL = Matern52([0.3, 0.3])


def readings(n=50, seed=0, noise_sd=0.01, repeats=0, length_scale=0.3):
    """Sites, clean values and noise variances of a random field; the last `repeats` sites come twice."""
    rng = np.random.default_rng([seed, n])
    x = rng.uniform(size=(n, 2))
    if repeats:
        x[-repeats:] = x[:repeats]
    k = Matern52([length_scale, length_scale])
    field = np.linalg.cholesky(k(x, x) + 1e-9 * np.eye(n)) @ rng.standard_normal(n)
    return x, field + noise_sd * rng.standard_normal(n), np.full(n, noise_sd**2)


def spoiled(values, share=0.05, size=10.0, seed=0):
    """Values, a fraction of which are off by `size` in either direction, and a mask of these."""
    rng = np.random.default_rng(seed)
    bad = np.zeros(len(values), dtype=bool)
    bad[rng.permutation(len(values))[: max(1, round(share * len(values)))]] = True
    return values + bad * size * rng.choice([-1.0, 1.0], len(values)), bad


@property_test
@given(seed=st.integers(0, 10_000), moves=st.lists(st.integers(0, 11), max_size=30))
def test_errors_are_those_of_predictions_from_the_kept_readings(seed, moves):
    x, y, _ = readings(12, seed, repeats=3)
    v = np.random.default_rng(seed).uniform(1e-4, 0.3, 12)
    tested = _Readings(KERNEL, x, y, v)
    for i in moves:
        if tested.kept.sum() > 2 or not tested.kept[i]:
            tested._move(i)
    for i, z in enumerate(tested.z()):
        others = tested.kept & (np.arange(12) != i)
        belief = Belief(KERNEL).condition_on(x[others], y[others], v[others])
        sd = np.sqrt(belief.variance(x[i])[0] + v[i])
        assert z == pytest.approx(abs(y[i] - belief.mean(x[i])[0]) / sd, rel=1e-6, abs=1e-6)


def test_errors_stay_exact_after_many_moves_where_noise_is_tiny():
    x, y, v = readings(60, noise_sd=1e-6, repeats=20)
    tested = _Readings(KERNEL, x, y, v)
    before = tested.z()
    for i in [*range(12), *range(12)]:
        tested._move(i)
    np.testing.assert_allclose(tested.z(), before, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("noise_sd", [1e-3, 0.1])
@pytest.mark.parametrize("n", [20, 50, 120])
def test_exactly_the_readings_off_by_ten_standard_deviations_are_dropped(n, noise_sd):
    for seed in range(5):
        x, clean, v = readings(n, seed, noise_sd)
        y, bad = spoiled(clean, seed=seed)
        np.testing.assert_array_equal(believable(KERNEL, x, y, v), ~bad)


def test_most_errors_of_ten_times_the_noise_are_detected():
    fitted = []
    for seed in range(20):
        x, clean, v = readings(100, seed, noise_sd=0.1)
        y, bad = spoiled(clean, size=1.0, seed=seed)
        kept = believable(KERNEL, x, y, v)
        fitted.append(np.mean(~kept[bad]))
        assert np.mean(~kept[~bad]) <= 0.02
    assert np.mean(fitted) > 0.6


@pytest.mark.parametrize("factor", [0.5, 2.0], ids=["too short", "too long"])
def test_bad_readings_are_dropped_even_if_the_length_scales_are_wrong(factor):
    fitted, dropped = [], []
    for seed in range(20):
        x, clean, v = readings(50, seed)
        y, bad = spoiled(clean, seed=seed)
        kept = believable(Matern52(factor * KERNEL.length_scales), x, y, v)
        fitted.append(np.mean(~kept[bad]))
        dropped.append(np.mean(~kept[~bad]))
    assert np.mean(fitted) == 1.0
    assert np.mean(dropped) < 0.01


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0], ids=["too short", "right", "too long"])
@pytest.mark.parametrize("repeats", [0, 15])
@pytest.mark.parametrize("noise_sd", [1e-4, 0.1])
def test_good_readings_stay_even_if_the_length_scales_are_wrong(factor, repeats, noise_sd):
    dropped = [
        np.mean(~believable(Matern52(factor * KERNEL.length_scales), *readings(50, seed, noise_sd, repeats)))
        for seed in range(20)
    ]
    assert np.mean(dropped) < 0.01
    assert np.max(dropped) <= 0.06


def test_few_good_readings_are_dropped_if_the_declared_noise_is_far_too_small():
    dropped = [np.mean(~believable(KERNEL, *readings(50, s, 0.1)[:2], 1e-8)) for s in range(20)]
    assert np.mean(dropped) < 0.04


@pytest.mark.parametrize("n", range(LEAST_READINGS))
def test_none_of_very_few_readings_is_dropped(n):
    x, y = np.zeros((n, 1)), 1000.0 * np.arange(n)
    assert believable(Matern52([1.0]), x, y, 1e-6).all()
    assert believable_at_first(Matern52([1.0]), x, y, 1e-6).all()


@property_test
@given(seed=st.integers(0, 10_000), n=st.integers(5, 30), size=st.floats(0, 1e6))
def test_no_more_than_a_fifth_is_ever_dropped(seed, n, size):
    x, clean, v = readings(n, seed)
    y, _ = spoiled(clean, share=0.5, size=size, seed=seed)
    assert np.mean(~believable(KERNEL, x, y, v)) <= MOST_DROPPED


@property_test
@given(seed=st.integers(0, 10_000), unit=st.floats(1e-3, 1e3), shift=st.floats(-100, 100))
def test_before_a_fit_neither_unit_nor_offset_of_the_values_matters(seed, unit, shift):
    x, clean, v = readings(30, seed)
    y, _ = spoiled(clean, seed=seed)
    here = believable_at_first(KERNEL, x, y, v)
    np.testing.assert_array_equal(here, believable_at_first(KERNEL, x, unit * (y + shift), unit**2 * v))


@property_test
@given(seed=st.integers(0, 10_000))
def test_the_order_of_readings_does_not_matter(seed):
    x, clean, v = readings(40, seed, noise_sd=0.05)
    y, _ = spoiled(clean, seed=seed)
    order = np.random.default_rng(seed).permutation(40)
    np.testing.assert_array_equal(
        believable(KERNEL, x, y, v)[order], believable(KERNEL, x[order], y[order], v)
    )


def test_a_bad_reading_is_dropped_without_the_others_at_its_site():
    x, y, v = readings(40)
    x[-3:] = x[0]
    y[-3:] = y[0] + np.array([0.01, 10.0, -0.01])
    assert np.flatnonzero(~believable(KERNEL, x, y, v)).tolist() == [38]


def test_a_peak_is_dropped_after_one_reading_and_believed_after_two():
    x, y, v = readings(40)
    x, y, v = np.append(x, [[0.5, 0.5]], axis=0), np.append(y, y.mean() + 10.0), np.append(v, 1e-4)
    assert np.flatnonzero(~believable(KERNEL, x, y, v)).tolist() == [40]
    x, y, v = np.append(x, [[0.5, 0.501]], axis=0), np.append(y, y[40] + 0.01), np.append(v, 1e-4)
    assert believable(KERNEL, x, y, v)[40:].all()


def test_two_bad_readings_that_disagree_do_not_confirm_each_other():
    x, y, v = readings(40)
    x[-2:] = [[0.5, 0.5], [0.5, 0.501]]
    y[-2:] = [10.0, -10.0]
    assert np.flatnonzero(~believable(KERNEL, x, y, v)).tolist() == [38, 39]


def test_a_steep_peak_on_flat_ground_is_believed():
    x = np.stack(np.meshgrid(np.linspace(0, 1, 10), np.linspace(0, 1, 10)), axis=-1).reshape(-1, 2)
    y = 20.0 * np.exp(-np.sum((x - [0.4, 0.6]) ** 2, axis=1) / (2 * 0.1**2)) + 0.3 * np.sin(5 * x[:, 0])
    assert believable_at_first(KERNEL, x, y, 1e-4).all()
    y[0] += 20.0
    assert np.flatnonzero(~believable_at_first(KERNEL, x, y, 1e-4)).tolist() == [0]


def test_values_may_be_mostly_or_all_equal():
    x, _, _ = readings(30)
    assert believable_at_first(KERNEL, x, np.full(30, 7.0), 1e-4).all()
    flat = np.where(np.arange(30) == 4, 10.0, 0.0)
    assert np.flatnonzero(~believable_at_first(KERNEL, x, flat, 1e-4)).tolist() == [4]


def learned(x, y, v):
    """Fit to the believed readings as a model does, with their mean and spread."""
    prior = LogNormalPrior.standard(np.ones(2), with_noise=False)
    fits = []

    def fit_to(kept):
        shift, scale = y[kept].mean(), y[kept].std()
        rng = np.random.default_rng(0)
        values, noise = (y[kept] - shift) / scale, v[kept] / scale**2
        fits.append((fit_kernel(KERNEL, x[kept], values, noise, prior, rng).kernel, shift, scale))
        return fits[-1]

    def believed(fitted):
        kernel, shift, scale = fitted
        return believable(kernel, x, (y - shift) / scale, v / scale**2)

    fitted = fit_believed(believable_at_first(KERNEL, x, y, v), fit_to, believed)
    return fitted, believed(fitted), len(fits)


@pytest.mark.parametrize("noise_sd", [1e-3, 0.1])
@pytest.mark.parametrize("n", [10, 40])
def test_a_fit_ignores_bad_readings(n, noise_sd):
    x, clean, v = readings(n, noise_sd=noise_sd)
    y, bad = spoiled(clean)
    (kernel, _, scale), kept, rounds = learned(x, y, v)
    np.testing.assert_array_equal(kept, ~bad)
    (expected, _, expected_scale), _, _ = learned(x[~bad], clean[~bad], v[~bad])
    assert rounds <= 2
    assert scale == pytest.approx(expected_scale)
    np.testing.assert_allclose(kernel.theta, expected.theta, atol=1e-3)


def test_a_single_fit_suffices_without_bad_readings():
    _, kept, rounds = learned(*readings(40))
    assert kept.all()
    assert rounds == 1


def test_a_fit_that_never_settles_ends_after_four_rounds():
    masks = [np.array([True, False]), np.array([False, True])]
    count = []

    def fit_to(kept):
        count.append(kept)
        return len(count)

    assert fit_believed(masks[0], fit_to, lambda fitted: masks[fitted % 2]) == len(count) == 4


@pytest.mark.parametrize(
    ("site", "value", "noise"),
    [(np.nan, 0.0, 0.1), (0.0, np.inf, 0.1), (0.0, 0.0, np.nan)],
    ids=["site", "value", "noise"],
)
def test_numbers_that_are_not_finite_are_rejected(site, value, noise):
    x, y, v = np.arange(6.0)[:, None], np.zeros(6), np.full(6, 0.1)
    x[2], y[2], v[2] = site, value, noise
    with pytest.raises(InputError, match="finite readings"):
        believable(Matern52([1.0]), x, y, v)


def test_sites_and_values_of_different_lengths_are_rejected():
    with pytest.raises(InputError, match="one value per site"):
        believable(Matern52([1.0]), np.zeros((6, 1)), np.zeros(5), 0.1)


class NoCovariance(SquaredExponential):
    """A function of distance that is not a covariance: its matrices are not positive definite."""

    def __call__(self, a, b):
        return 1.0 - self._squared_distance(a, b)


def test_a_singular_covariance_matrix_is_an_error_that_suggests_a_fix():
    with pytest.raises(ModelError, match="shorten the length scales"):
        believable(NoCovariance([0.1]), np.arange(6.0)[:, None], np.zeros(6), 0.0)


@pytest.mark.parametrize("absurd", [1e30, -1e30, 1e90])
def test_an_absurd_reading_is_dropped_and_does_not_blur_the_test_of_the_others(absurd):
    x = np.linspace(0.0, 3.0, 20)[:, None]
    y = np.sin(2 * x[:, 0])
    y[7] = absurd
    y[13] += 5.0
    kept = believable(Matern52([1.0]), x, y, 1e-4)
    assert np.flatnonzero(~kept).tolist() == [7, 13]
    scaled = believable_at_first(Matern52([1.0]), x, y, 1e-4)
    assert np.flatnonzero(~scaled).tolist() == [7, 13]

"""Covariances: closed forms, derivatives, sums and products."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern
from tiers import examples

from fieldbo.belief.kernels import KERNELS, Matern32, Matern52, SquaredExponential, kernel
from fieldbo.errors import InputError, UnknownNameError

REFERENCE = {
    "se": RBF,
    "matern32": lambda scales: Matern(scales, nu=1.5),
    "matern52": lambda scales: Matern(scales, nu=2.5),
}
COMPOSED = {
    "sum": Matern52([0.7, 1.9], 1.3) + SquaredExponential([2.0, 0.4], 0.6),
    "product": Matern32([0.7, 1.9], 1.3) * SquaredExponential([2.0, 0.9], 0.6),
    "sum of a product": Matern52([1.1, 0.8], 0.5) + Matern32([0.7, 1.9], 1.3) * Matern52([3.0, 2.0], 2.0),
    "product of sums": (Matern52([1.1, 0.8]) + Matern32([0.7, 1.9]))
    * (Matern52([3.0, 2.0]) + Matern52([1, 1])),
}
PLAIN = {name: cls([0.7, 1.9], 1.3) for name, cls in KERNELS.items()}
ALL = {**PLAIN, **COMPOSED}
every_kernel = pytest.mark.parametrize("k", ALL.values(), ids=ALL.keys())
property_test = settings(deadline=None, max_examples=examples(40), derandomize=True)


def points(n, d=2, seed=0):
    return np.random.default_rng(seed).uniform(-2, 2, (n, d))


@pytest.mark.parametrize("name", KERNELS)
@property_test
@given(
    scales=st.lists(st.floats(0.05, 20), min_size=1, max_size=4),
    variance=st.floats(1e-3, 1e3),
    seed=st.integers(0, 1000),
)
def test_covariances_agree_with_scikit_learn(name, scales, variance, seed):
    a, b = points(6, len(scales), seed), points(4, len(scales), seed + 1)
    expected = (ConstantKernel(variance) * REFERENCE[name](np.array(scales)))(a, b)
    np.testing.assert_allclose(kernel(name, scales, variance)(a, b), expected, rtol=1e-9, atol=1e-12)


@every_kernel
def test_a_covariance_matrix_is_symmetric_positive_definite_and_has_the_stated_diagonal(k):
    x = points(25)
    K = k(x, x)
    np.testing.assert_allclose(K, K.T, rtol=0, atol=1e-14)
    np.testing.assert_allclose(np.diag(K), k.diagonal(x), rtol=1e-12)
    assert np.linalg.eigvalsh(K).min() > -1e-10


def gradient_of(k, a, b):
    """Return the (n, m, d) gradients in space, one pair at a time."""
    _, slopes = k.with_slopes(a, b)
    alone = np.eye(len(b))
    return np.stack([slopes(np.broadcast_to(single, (len(a), len(b)))) for single in alone], axis=1)


@every_kernel
def test_covariances_with_slopes_are_the_covariances(k):
    a, b = points(5), points(4, seed=1)
    np.testing.assert_allclose(k.with_slopes(a, b)[0], k(a, b), rtol=1e-14)


@every_kernel
def test_slopes_keep_their_digits_far_from_the_origin(k):
    a, b = points(5), points(4, seed=1)
    weights = np.random.default_rng(2).normal(size=(5, 4))
    there, far = (k.with_slopes(a + shift, b + shift)[1](weights) for shift in (0.0, 5.5e6))
    np.testing.assert_allclose(far, there, atol=1e-6)


@every_kernel
def test_the_gradient_in_space_agrees_with_finite_differences(k):
    a, b = points(5), points(4, seed=1)
    gradient = gradient_of(k, a, b)
    assert gradient.shape == (5, 4, 2)
    for i in range(5):
        for j in range(4):
            numeric = approx_fprime(a[i], lambda p, j=j: k(p[None], b[j : j + 1])[0, 0], 1e-7)
            np.testing.assert_allclose(gradient[i, j], numeric, atol=2e-6)


@every_kernel
def test_the_gradient_in_space_is_zero_where_two_points_meet(k):
    x = points(3)
    gradient = gradient_of(k, x, x)
    np.testing.assert_allclose(gradient[np.arange(3), np.arange(3)], 0.0, atol=1e-15)


@every_kernel
def test_the_pullback_to_hyperparameters_agrees_with_finite_differences(k):
    of_pairs = k.of_pairs(points(18), np.arange(9), np.arange(9, 18))
    weights = np.random.default_rng(3).normal(size=9)
    step = 1e-5
    numeric = [
        weights @ (of_pairs(k.theta + e)[0] - of_pairs(k.theta - e)[0]) / (2 * step)
        for e in step * np.eye(len(k.theta))
    ]
    _, pullback = of_pairs(k.theta)
    np.testing.assert_allclose(pullback(weights), numeric, rtol=1e-6, atol=1e-8)


@every_kernel
def test_covariances_of_pairs_are_entries_of_the_covariance_matrix(k):
    x, rows, columns = points(10), np.arange(7), np.arange(7) + 3
    covariances, _ = k.of_pairs(x, rows, columns)(k.theta)
    np.testing.assert_allclose(covariances, k(x, x)[rows, columns], rtol=1e-12)


@every_kernel
def test_with_theta_of_its_own_theta_gives_the_same_kernel(k):
    x = points(6)
    again = k.with_theta(k.theta)
    assert type(again) is type(k)
    np.testing.assert_allclose(again(x, x), k(x, x), rtol=1e-12)
    np.testing.assert_allclose(again.theta, k.theta, rtol=1e-12)


def test_kernels_add_and_multiply_point_by_point():
    x, y = points(5), points(3, seed=1)
    a, b = PLAIN["se"], PLAIN["matern32"]
    np.testing.assert_array_equal((a + b)(x, y), a(x, y) + b(x, y))
    np.testing.assert_array_equal((a * b)(x, y), a(x, y) * b(x, y))
    np.testing.assert_array_equal((a * b).diagonal(x), a.diagonal(x) * b.diagonal(x))


@pytest.mark.parametrize("name", KERNELS)
def test_covariance_falls_with_distance(name):
    far = np.linspace(0, 5, 40)[:, None]
    row = kernel(name, [1.0], 2.0)(np.zeros((1, 1)), far)[0]
    assert row[0] == 2.0
    assert (np.diff(row) < 0).all()


@pytest.mark.parametrize("name", KERNELS)
def test_covariance_does_not_depend_on_the_unit_of_an_axis(name):
    x, unit = points(8), np.array([1000.0, 0.01])
    in_other_unit = kernel(name, np.array([0.7, 1.9]) * unit, 1.3)
    np.testing.assert_allclose(in_other_unit(x * unit, x * unit), PLAIN[name](x, x), rtol=1e-12)


@pytest.mark.parametrize(
    ("scales", "variance"), [([0.0], 1.0), ([-1.0], 1.0), ([np.nan], 1.0), ([1.0], 0.0), ([1.0], np.inf)]
)
def test_a_length_scale_or_variance_that_is_not_positive_is_rejected(scales, variance):
    with pytest.raises(InputError, match="finite numbers above 0"):
        Matern52(scales, variance)


def test_an_unknown_kernel_is_rejected_with_the_nearest_name():
    with pytest.raises(UnknownNameError, match="did you mean 'matern52'"):
        kernel("matern5", [1.0])

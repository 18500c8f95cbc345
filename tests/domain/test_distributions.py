"""Distributions of free variables against closed forms and integrals; Halton points."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from fieldbo.domain.controls import TruncatedNormal, Uniform, halton
from fieldbo.errors import InputError

NODES, WEIGHTS = np.polynomial.legendre.leggauss(2000)
PROBABILITIES = (NODES + 1) / 2


def moments(distribution):
    """Mean and variance of a distribution, by Gauss-Legendre quadrature of its quantiles."""
    x = distribution.quantile(PROBABILITIES)
    mean = WEIGHTS @ x / 2
    return mean, WEIGHTS @ (x - mean) ** 2 / 2


@st.composite
def distributions(draw):
    """Truncated normal distributions on any axis; impossible combinations are skipped."""
    low, extent = draw(st.floats(-100, 100)), draw(st.floats(0.01, 1000))
    mean = low + extent * draw(st.floats(0.02, 0.98))
    # The uniform distribution has a twelfth of the squared extent; off the middle, less is possible.
    variance = extent**2 * draw(st.floats(1e-5, 0.083))
    try:
        return TruncatedNormal(mean, variance, low, low + extent)
    except InputError:
        assume(False)


@given(distributions())
def test_a_truncated_normal_has_the_mean_and_variance_it_was_made_with(distribution):
    mean, variance = moments(distribution)
    assert mean == pytest.approx(distribution.mean, abs=1e-5 * (distribution.high - distribution.low))
    assert variance == pytest.approx(distribution.variance, rel=1e-4)


@given(distributions(), st.lists(st.floats(0, 1), min_size=2, max_size=20))
def test_quantiles_rise_and_lie_between_the_ends(distribution, probabilities):
    x = distribution.quantile(np.sort(probabilities))
    assert (np.diff(x) >= 0).all()
    assert distribution.low <= x[0]
    assert x[-1] <= distribution.high
    assert distribution.quantile([0, 1]) == pytest.approx(
        [distribution.low, distribution.high], abs=1e-6 * (distribution.high - distribution.low)
    )


@given(distributions())
def test_a_truncated_normal_agrees_with_scipy(distribution):
    low, high = (
        (distribution.low - distribution.centre) / distribution.scale,
        (distribution.high - distribution.centre) / distribution.scale,
    )
    other = stats.truncnorm(low, high, distribution.centre, distribution.scale)
    probabilities = np.linspace(0.01, 0.99, 9)
    assert distribution.quantile(probabilities) == pytest.approx(
        other.ppf(probabilities), abs=1e-7 * (distribution.high - distribution.low)
    )


@given(st.floats(0.05, 0.95), st.floats(1e-4, 0.05))
def test_a_mirrored_distribution_has_mirrored_quantiles(mean, variance):
    try:
        distribution = TruncatedNormal(mean, variance)
    except InputError:
        assume(False)
    other = TruncatedNormal(1 - mean, variance)
    probabilities = np.linspace(0, 1, 11)
    assert other.quantile(probabilities) == pytest.approx(
        1 - distribution.quantile(1 - probabilities), abs=1e-7
    )


def test_a_narrow_distribution_in_the_middle_is_normal():
    distribution = TruncatedNormal(3.0, 0.01, -10, 20)
    assert distribution.scale == pytest.approx(0.1)
    assert distribution.quantile([0.025, 0.5, 0.975]) == pytest.approx(
        stats.norm(3, 0.1).ppf([0.025, 0.5, 0.975])
    )


def test_a_variance_near_a_twelfth_of_the_squared_extent_gives_nearly_the_uniform_distribution():
    probabilities = np.linspace(0, 1, 11)
    assert TruncatedNormal(0.5, 0.08333).quantile(probabilities) == pytest.approx(probabilities, abs=1e-3)


def test_far_from_the_middle_the_widest_distribution_is_exponential():
    distribution = TruncatedNormal(0.05, 0.00249)
    assert distribution.quantile(PROBABILITIES) == pytest.approx(-0.05 * np.log1p(-PROBABILITIES), abs=0.02)


@pytest.mark.parametrize(
    "distribution", [TruncatedNormal(2.5, 0.1, 2, 5), Uniform(-3, 1)], ids=["normal", "uniform"]
)
def test_draws_are_quantiles_of_the_generators_numbers_and_lie_between_the_ends(distribution):
    x = distribution.draw(np.random.default_rng(4), 4000)
    assert x == pytest.approx(distribution.quantile(np.random.default_rng(4).random(4000)))
    assert (x >= distribution.low).all()
    assert (x <= distribution.high).all()
    mean, variance = moments(distribution)
    assert x.mean() == pytest.approx(mean, abs=4 * np.sqrt(variance / 4000))
    assert x.var() == pytest.approx(variance, rel=0.1)


def test_quantiles_have_the_shape_of_their_probabilities():
    probabilities = np.full((2, 3), 0.25)
    for distribution in (TruncatedNormal(0.5, 0.02), Uniform()):
        assert distribution.quantile(probabilities).shape == (2, 3)
        assert distribution.quantile(0.25) == pytest.approx(distribution.quantile(probabilities)[0, 0])


@pytest.mark.parametrize("mean", [0.0, 1.0, -0.2, 3.0, np.nan])
def test_a_mean_at_or_beyond_an_end_is_rejected(mean):
    with pytest.raises(InputError, match="mean =") as caught:
        TruncatedNormal(mean, 0.02)
    assert caught.value.where == "mean"


@pytest.mark.parametrize("variance", [0.0, -1.0, np.inf, np.nan])
def test_a_variance_that_is_not_positive_and_finite_is_rejected(variance):
    with pytest.raises(InputError, match="variance"):
        TruncatedNormal(0.5, variance)


def test_an_impossible_variance_is_rejected_with_the_largest_possible_one():
    TruncatedNormal(5, 8.3, 0, 10)
    with pytest.raises(InputError, match=r"variance 8\.34 is too large") as caught:
        TruncatedNormal(5, 8.34, 0, 10)
    assert caught.value.expected == "below 8.33333"
    with pytest.raises(InputError, match="too large"):  # a mean near an end leaves less
        TruncatedNormal(0.2, 0.05)
    with pytest.raises(InputError, match="too large"):
        TruncatedNormal(0.5, 1e9)


@pytest.mark.parametrize("ends", [(1, 1), (2, 1), (0, np.inf), (np.nan, 1)])
def test_ends_out_of_order_are_rejected(ends):
    for distribution in (lambda: Uniform(*ends), lambda: TruncatedNormal(0.5, 0.02, *ends)):
        with pytest.raises(InputError, match="not a valid range"):
            distribution()


@pytest.mark.parametrize("probability", [-0.1, 1.1, np.nan])
def test_probabilities_outside_0_to_1_are_rejected(probability):
    for distribution in (TruncatedNormal(0.5, 0.02), Uniform()):
        with pytest.raises(InputError, match="0 to 1"):
            distribution.quantile([0.5, probability])


def test_a_distribution_that_reaches_beyond_its_axis_is_rejected():
    Uniform(0, 1).check_within(0, 1, "domain.axes[0].free")
    with pytest.raises(InputError, match="from 0 to 1") as caught:
        Uniform(0, 1).check_within(0.1, 2, "domain.axes[0].free")
    assert caught.value.where == "domain.axes[0].free"


def test_halton_points_are_the_integers_mirrored_at_the_radix_point():
    assert halton(5, 1).ravel().tolist() == [1 / 2, 1 / 4, 3 / 4, 1 / 8, 5 / 8]
    assert halton(9, 2)[:, 1] == pytest.approx(np.array([3, 6, 1, 4, 7, 2, 5, 8, 1 / 3]) / 9)
    assert halton(2, 20)[:, 19] == pytest.approx([1 / 71, 2 / 71])


def test_halton_points_are_those_of_scipy_without_the_first():
    assert halton(300, 25) == pytest.approx(stats.qmc.Halton(25, scramble=False).random(301)[1:], abs=1e-14)


@given(st.integers(0, 200), st.integers(0, 200), st.integers(0, 12))
def test_more_halton_points_extend_fewer(n, more, d):
    points = halton(n + more, d)
    assert points.shape == (n + more, d)
    assert np.array_equal(points[:n], halton(n, d))
    assert ((points > 0) & (points < 1)).all()


def test_a_negative_number_of_points_is_rejected():
    with pytest.raises(InputError, match="n = -1"):
        halton(-1, 2)

"""What is left to chance: laws against closed forms and integrals, and even points by hand."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from fieldbo.domain.distributions import TruncatedNormal, Uniform, halton
from fieldbo.errors import InputError

NODES, WEIGHTS = np.polynomial.legendre.leggauss(2000)
SHARES = (NODES + 1) / 2


def moments(law):
    """Mean and variance of a law, by Gauss's rule on its quantiles."""
    x = law.quantile(SHARES)
    mean = WEIGHTS @ x / 2
    return mean, WEIGHTS @ (x - mean) ** 2 / 2


@st.composite
def laws(draw):
    """Truncated normal laws on any axis; what no such law has is left out."""
    low, extent = draw(st.floats(-100, 100)), draw(st.floats(0.01, 1000))
    mean = low + extent * draw(st.floats(0.02, 0.98))
    # a twelfth of the squared extent is the uniform law's; off the middle less is possible
    variance = extent**2 * draw(st.floats(1e-5, 0.083))
    try:
        return TruncatedNormal(mean, variance, low, low + extent)
    except InputError:
        assume(False)


@given(laws())
def test_a_truncated_normal_law_has_the_mean_and_the_variance_that_it_was_told(law):
    mean, variance = moments(law)
    assert mean == pytest.approx(law.mean, abs=1e-5 * (law.high - law.low))
    assert variance == pytest.approx(law.variance, rel=1e-4)


@given(laws(), st.lists(st.floats(0, 1), min_size=2, max_size=20))
def test_quantiles_rise_and_lie_between_the_ends(law, shares):
    x = law.quantile(np.sort(shares))
    assert (np.diff(x) >= 0).all()
    assert law.low <= x[0]
    assert x[-1] <= law.high
    assert law.quantile([0, 1]) == pytest.approx([law.low, law.high], abs=1e-6 * (law.high - law.low))


@given(laws())
def test_a_truncated_normal_law_is_the_one_cut_off(law):
    low, high = (law.low - law.centre) / law.scale, (law.high - law.centre) / law.scale
    other = stats.truncnorm(low, high, law.centre, law.scale)
    shares = np.linspace(0.01, 0.99, 9)
    assert law.quantile(shares) == pytest.approx(other.ppf(shares), abs=1e-7 * (law.high - law.low))


@given(st.floats(0.05, 0.95), st.floats(1e-4, 0.05))
def test_a_mirrored_law_has_mirrored_quantiles(mean, variance):
    try:
        law = TruncatedNormal(mean, variance)
    except InputError:
        assume(False)
    other = TruncatedNormal(1 - mean, variance)
    shares = np.linspace(0, 1, 11)
    assert other.quantile(shares) == pytest.approx(1 - law.quantile(1 - shares), abs=1e-7)


def test_a_narrow_law_in_the_middle_is_the_normal_law():
    law = TruncatedNormal(3.0, 0.01, -10, 20)
    assert law.scale == pytest.approx(0.1)
    assert law.quantile([0.025, 0.5, 0.975]) == pytest.approx(stats.norm(3, 0.1).ppf([0.025, 0.5, 0.975]))


def test_a_law_with_nearly_a_twelfth_of_the_squared_extent_is_nearly_uniform():
    shares = np.linspace(0, 1, 11)
    assert TruncatedNormal(0.5, 0.08333).quantile(shares) == pytest.approx(shares, abs=1e-3)


def test_far_off_the_middle_the_widest_law_is_exponential():
    law = TruncatedNormal(0.05, 0.00249)
    assert law.quantile(SHARES) == pytest.approx(-0.05 * np.log1p(-SHARES), abs=0.02)


@pytest.mark.parametrize("law", [TruncatedNormal(2.5, 0.1, 2, 5), Uniform(-3, 1)], ids=["normal", "uniform"])
def test_draws_are_quantiles_of_the_generators_numbers_and_lie_between_the_ends(law):
    x = law.draw(np.random.default_rng(4), 4000)
    assert x == pytest.approx(law.quantile(np.random.default_rng(4).random(4000)))
    assert (x >= law.low).all()
    assert (x <= law.high).all()
    mean, variance = moments(law)
    assert x.mean() == pytest.approx(mean, abs=4 * np.sqrt(variance / 4000))
    assert x.var() == pytest.approx(variance, rel=0.1)


def test_quantiles_have_the_shape_of_their_shares():
    shares = np.full((2, 3), 0.25)
    for law in (TruncatedNormal(0.5, 0.02), Uniform()):
        assert law.quantile(shares).shape == (2, 3)
        assert law.quantile(0.25) == pytest.approx(law.quantile(shares)[0, 0])


@pytest.mark.parametrize("mean", [0.0, 1.0, -0.2, 3.0, np.nan])
def test_a_mean_at_or_beyond_an_end_is_refused(mean):
    with pytest.raises(InputError, match="a mean of") as caught:
        TruncatedNormal(mean, 0.02)
    assert caught.value.where == "mean"


@pytest.mark.parametrize("variance", [0.0, -1.0, np.inf, np.nan])
def test_a_variance_that_is_none_is_refused(variance):
    with pytest.raises(InputError, match="a variance of"):
        TruncatedNormal(0.5, variance)


def test_a_variance_that_no_law_has_is_refused_and_told_what_is_possible():
    TruncatedNormal(5, 8.3, 0, 10)
    with pytest.raises(InputError, match=r"a variance of 8\.34, too large") as caught:
        TruncatedNormal(5, 8.34, 0, 10)
    assert caught.value.expected == "below 8.33333"
    with pytest.raises(InputError, match="too large"):  # a mean near an end leaves less
        TruncatedNormal(0.2, 0.05)
    with pytest.raises(InputError, match="too large"):
        TruncatedNormal(0.5, 1e9)


@pytest.mark.parametrize("ends", [(1, 1), (2, 1), (0, np.inf), (np.nan, 1)])
def test_ends_out_of_order_are_refused(ends):
    for law in (lambda: Uniform(*ends), lambda: TruncatedNormal(0.5, 0.02, *ends)):
        with pytest.raises(InputError, match="values from"):
            law()


@pytest.mark.parametrize("share", [-0.1, 1.1, np.nan])
def test_shares_outside_of_0_to_1_are_refused(share):
    for law in (TruncatedNormal(0.5, 0.02), Uniform()):
        with pytest.raises(InputError, match="0 to 1"):
            law.quantile([0.5, share])


def test_a_law_beyond_its_axis_is_refused():
    Uniform(0, 1).check_within(0, 1, "domain.axes[0].free")
    with pytest.raises(InputError, match="from 0 to 1") as caught:
        Uniform(0, 1).check_within(0.1, 2, "domain.axes[0].free")
    assert caught.value.where == "domain.axes[0].free"


def test_halton_points_are_the_counting_numbers_mirrored_at_the_point():
    assert halton(5, 1).ravel().tolist() == [1 / 2, 1 / 4, 3 / 4, 1 / 8, 5 / 8]
    assert halton(9, 2)[:, 1] == pytest.approx(np.array([3, 6, 1, 4, 7, 2, 5, 8, 1 / 3]) / 9)
    assert halton(2, 20)[:, 19] == pytest.approx([1 / 71, 2 / 71])


def test_halton_points_are_those_of_scipy_without_the_first():
    assert halton(300, 25) == pytest.approx(stats.qmc.Halton(25, scramble=False).random(301)[1:], abs=1e-14)


@given(st.integers(0, 200), st.integers(0, 200), st.integers(0, 12))
def test_more_halton_points_go_on_from_fewer(n, more, d):
    points = halton(n + more, d)
    assert points.shape == (n + more, d)
    assert np.array_equal(points[:n], halton(n, d))
    assert ((points > 0) & (points < 1)).all()


def test_a_negative_number_of_points_is_refused():
    with pytest.raises(InputError, match="-1 points"):
        halton(-1, 2)

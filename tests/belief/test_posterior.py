"""The posterior: against scikit-learn, against the formulas written out, and its invariants."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern
from tiers import examples

from fieldbo.belief.kernels import KERNELS, Matern32, Matern52, SquaredExponential, kernel
from fieldbo.belief.posterior import Belief
from fieldbo.belief.readings import pool
from fieldbo.belief.value_scale import ValueScale
from fieldbo.errors import InputError, ModelError

SCALES, VARIANCE = np.array([0.4, 0.9]), 1.7
REFERENCE = {"se": RBF(SCALES), "matern32": Matern(SCALES, nu=1.5), "matern52": Matern(SCALES, nu=2.5)}
every_kernel = pytest.mark.parametrize("name", KERNELS)
property_test = settings(deadline=None, max_examples=examples(40), derandomize=True)


def readings(n=15, seed=0, repeats=0):
    """Readings, each with its own noise; the last `repeats` repeat the first sites."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 1, (n, 2))
    if repeats:
        x[-repeats:] = x[:repeats]
    return x, rng.normal(size=n), rng.uniform(0.01, 0.3, n)


def dense(k, x, y, v, at):
    """The textbook posterior, with one row per reading."""
    solve = np.linalg.inv(k(x, x) + np.diag(v))
    cross = k(at, x)
    return cross @ solve @ y, k(at, at) - cross @ solve @ cross.T


@every_kernel
@pytest.mark.parametrize("repeats", [0, 4])
def test_mean_variance_covariance_and_marginal_likelihood_agree_with_scikit_learn(name, repeats):
    x, y, v = readings(repeats=repeats)
    at = np.random.default_rng(9).uniform(-0.2, 1.2, (30, 2))
    belief = Belief(kernel(name, SCALES, VARIANCE)).condition_on(x, y, v)
    peer = GaussianProcessRegressor(ConstantKernel(VARIANCE) * REFERENCE[name], alpha=v, optimizer=None)
    mean, covariance = peer.fit(x, y).predict(at, return_cov=True)
    np.testing.assert_allclose(belief.mean(at), mean, rtol=0, atol=1e-8)
    np.testing.assert_allclose(belief.variance(at), np.diag(covariance), rtol=0, atol=1e-8)
    np.testing.assert_allclose(belief.covariance(at, at), covariance, rtol=0, atol=1e-8)
    assert belief.log_marginal_likelihood() == pytest.approx(peer.log_marginal_likelihood_value_, abs=1e-8)


@property_test
@given(
    name=st.sampled_from(sorted(KERNELS)),
    seed=st.integers(0, 10_000),
    n=st.integers(1, 12),
    sites=st.integers(1, 4),
)
def test_pooling_repeats_changes_neither_posterior_nor_marginal_likelihood(name, seed, n, sites):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 1, (sites, 2))[rng.integers(0, sites, n)]
    y, v = rng.normal(size=n), rng.uniform(0.01, 0.5, n)
    at = rng.uniform(0, 1, (6, 2))
    k = kernel(name, SCALES, VARIANCE)
    belief = Belief(k).condition_on(x, y, v)
    mean, covariance = dense(k, x, y, v, at)
    assert belief.size == len(np.unique(x, axis=0))
    np.testing.assert_allclose(belief.mean(at), mean, rtol=0, atol=1e-9)
    np.testing.assert_allclose(belief.covariance(at, at), covariance, rtol=0, atol=1e-9)
    literal = multivariate_normal(np.zeros(n), k(x, x) + np.diag(v)).logpdf(y)
    assert belief.log_marginal_likelihood() == pytest.approx(literal, abs=1e-8)


@property_test
@given(seed=st.integers(0, 10_000), cut=st.integers(1, 14))
def test_readings_in_two_parcels_or_in_any_order_give_the_same_belief(seed, cut):
    x, y, v = readings(seed=seed, repeats=5)
    at = np.random.default_rng(seed + 1).uniform(0, 1, (6, 2))
    prior = Belief(Matern52(SCALES, VARIANCE))
    whole = prior.condition_on(x, y, v)
    parcels = prior.condition_on(x[:cut], y[:cut], v[:cut]).condition_on(x[cut:], y[cut:], v[cut:])
    order = np.random.default_rng(seed).permutation(len(x))
    shuffled = prior.condition_on(x[order], y[order], v[order])
    for other in (parcels, shuffled):
        np.testing.assert_allclose(other.mean(at), whole.mean(at), rtol=0, atol=1e-10)
        np.testing.assert_allclose(other.variance(at), whole.variance(at), rtol=0, atol=1e-10)
        assert other.log_marginal_likelihood() == pytest.approx(whole.log_marginal_likelihood(), abs=1e-9)
        assert other.information_gain() == pytest.approx(whole.information_gain(), abs=1e-9)


def test_readings_added_behind_many_give_the_same_belief():
    rng = np.random.default_rng(0)
    x, y, v = rng.uniform(0, 1, (260, 2)), rng.normal(size=260), np.full(260, 0.1)
    prior = Belief(SquaredExponential(SCALES, VARIANCE))
    belief = prior.condition_on(x[:252], y[:252], v[:252])
    for site, value, noise in zip(x[252:], y[252:], v[252:], strict=True):
        belief, _, _ = belief.extended(site, value, noise)
    whole = prior.condition_on(x, y, v)
    np.testing.assert_allclose(belief.mean(x), whole.mean(x), rtol=0, atol=1e-10)
    np.testing.assert_allclose(belief.variance(x), whole.variance(x), rtol=0, atol=1e-10)


def test_readings_added_one_by_one_give_the_same_belief_repeated_sites_included():
    x, y, v = readings(repeats=5)
    at = np.random.default_rng(1).uniform(0, 1, (6, 2))
    belief = prior = Belief(SquaredExponential(SCALES, VARIANCE))
    for site, value, noise in zip(x, y, v, strict=True):
        belief, _, pivot = belief.extended(site, value, noise)
        assert pivot**2 > noise
    whole = prior.condition_on(x, y, v)
    np.testing.assert_allclose(belief.mean(at), whole.mean(at), rtol=0, atol=1e-10)
    np.testing.assert_allclose(belief.covariance(at, at), whole.covariance(at, at), rtol=0, atol=1e-10)
    assert belief.log_marginal_likelihood() == pytest.approx(whole.log_marginal_likelihood(), abs=1e-10)
    assert belief.information_gain() == pytest.approx(whole.information_gain(), abs=1e-10)
    pooled = belief.condition_on(x[:1], [0.3], [0.1])
    again = whole.condition_on(x[:1], [0.3], [0.1])
    assert pooled.size == again.size == 10
    assert pooled.log_marginal_likelihood() == pytest.approx(again.log_marginal_likelihood(), abs=1e-9)


@pytest.mark.parametrize(
    "k",
    [
        SquaredExponential(SCALES, VARIANCE),
        Matern32(SCALES, VARIANCE),
        Matern52(SCALES, VARIANCE),
        Matern52(SCALES) + SquaredExponential([2.0, 2.0], 0.5),
        Matern52(SCALES) * SquaredExponential([2.0, 2.0], 0.5),
    ],
    ids=["se", "matern32", "matern52", "sum", "product"],
)
def test_gradients_of_mean_and_variance_agree_with_finite_differences(k):
    belief = Belief(k).condition_on(*readings(repeats=3))
    at = np.random.default_rng(4).uniform(0, 1, (7, 2))
    mean, variance, by_mean, by_variance = belief.with_gradients(at)
    np.testing.assert_allclose(mean, belief.mean(at), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(variance, belief.variance(at), rtol=1e-9, atol=1e-12)
    for i, point in enumerate(at):
        numeric = approx_fprime(point, lambda p: belief.mean(p[None])[0], 1e-7)
        np.testing.assert_allclose(by_mean[i], numeric, atol=1e-5)
        numeric = approx_fprime(point, lambda p: belief.variance(p[None])[0], 1e-7)
        np.testing.assert_allclose(by_variance[i], numeric, atol=1e-5)


def test_without_readings_a_belief_is_its_prior():
    k = Matern52(SCALES, VARIANCE)
    at = np.random.default_rng(0).uniform(0, 1, (4, 2))
    prior = Belief(k)
    np.testing.assert_array_equal(prior.mean(at), 0.0)
    np.testing.assert_array_equal(prior.variance(at), VARIANCE)
    np.testing.assert_array_equal(prior.covariance(at, at), k(at, at))
    assert all(np.all(gradient == 0.0) for gradient in prior.with_gradients(at)[2:])
    assert prior.log_marginal_likelihood() == 0.0
    assert prior.information_gain() == 0.0


def test_conditioning_does_not_change_the_original_belief():
    x, y, v = readings()
    before = Belief(Matern52(SCALES)).condition_on(x[:5], y[:5], v[:5])
    mean = before.mean(x)
    before.condition_on(x[5:], y[5:], v[5:])
    before.extended(x[6], y[6], v[6])
    assert before.size == 5
    np.testing.assert_array_equal(before.mean(x), mean)


@property_test
@given(seed=st.integers(0, 10_000), noise=st.floats(0, 10))
def test_a_reading_never_raises_a_variance(seed, noise):
    x, y, v = readings(8, seed)
    at = np.random.default_rng(seed + 1).uniform(0, 1, (10, 2))
    before = Belief(Matern52(SCALES, VARIANCE)).condition_on(x[:-1], y[:-1], v[:-1])
    after = before.condition_on(x[-1:], y[-1:], noise)
    assert (after.variance(at) <= before.variance(at) + 1e-12).all()
    assert after.information_gain() >= before.information_gain() - 1e-12


def test_a_reading_without_noise_is_reproduced():
    x, y, _ = readings(8)
    belief = Belief(Matern32(SCALES, VARIANCE)).condition_on(x, y, 0.0)
    np.testing.assert_allclose(belief.mean(x), y, atol=1e-7)
    np.testing.assert_allclose(belief.variance(x), 0.0, atol=1e-9)


def test_joint_draws_have_the_mean_and_covariance_of_the_belief():
    belief = Belief(Matern52(SCALES, VARIANCE)).condition_on(*readings())
    points = np.array([[0.1, 0.2], [0.1, 0.2], [0.15, 0.25], [0.9, 0.4]])  # the repeated point: singular
    draws = belief.sample(points, 40_000, np.random.default_rng(0))
    assert draws.shape == (40_000, 4)
    np.testing.assert_allclose(draws.mean(axis=0), belief.mean(points), atol=0.03)
    np.testing.assert_allclose(np.cov(draws.T), belief.covariance(points, points), atol=0.05)
    np.testing.assert_allclose(draws[:, 0], draws[:, 1], atol=1e-6)


@pytest.mark.parametrize("noise", [None, 0.01])
def test_a_fitted_belief_predicts_held_out_values(noise):
    rng = np.random.default_rng(0)
    x = rng.random((80, 2)) * [10.0, 2.0]
    truth = np.sin(x[:, 0]) + x[:, 1] - 1.0
    y = truth + 0.1 * rng.standard_normal(80)
    belief = Belief.fit(x[:60], y[:60], noise)
    assert np.sqrt(np.mean((belief.mean(x[60:]) - truth[60:]) ** 2)) < 0.15
    np.testing.assert_allclose(belief.noise_variances, belief.noise_variances[0])
    assert 0.003 < belief.noise_variances[0] < 0.03


@pytest.mark.parametrize(
    ("sites", "setting"),
    [([[0.0], [0.0]], {}), ([[0.0], [1.0]], {"kernel": "matern5"}), ([[0.0]], {"extent": [1.0]})],
    ids=["no extent", "unknown kernel", "one reading"],
)
def test_a_fit_rejects_invalid_arguments(sites, setting):
    with pytest.raises(InputError):
        Belief.fit(sites, np.zeros(len(sites)), **setting)


def test_information_gain_is_half_the_log_determinant_of_identity_plus_covariance_over_noise():
    x, y, v = readings(repeats=4)
    k = Matern52(SCALES, VARIANCE)
    literal = 0.5 * np.linalg.slogdet(np.eye(len(x)) + k(x, x) / v[:, None])[1]
    assert Belief(k).condition_on(x, y, v).information_gain() == pytest.approx(literal, abs=1e-10)


@every_kernel
def test_leave_one_out_agrees_with_leaving_each_reading_out(name):
    x, y, v = readings()
    prior = Belief(kernel(name, SCALES, VARIANCE))
    mean, variance = prior.condition_on(x, y, v).leave_one_out()
    for i in range(len(x)):
        others = np.arange(len(x)) != i
        without = prior.condition_on(x[others], y[others], v[others])
        assert mean[i] == pytest.approx(without.mean(x[i : i + 1])[0], abs=1e-9)
        assert variance[i] == pytest.approx(without.variance(x[i : i + 1])[0] + v[i], abs=1e-9)


@every_kernel
def test_mean_and_variance_are_those_that_are_asked_for_one_by_one(name):
    x, y, v = readings()
    for belief in (prior := Belief(kernel(name, SCALES, VARIANCE)), prior.condition_on(x, y, v)):
        mean, variance = belief.mean_and_variance(x + 0.1)
        assert np.array_equal(mean, belief.mean(x + 0.1))
        assert np.array_equal(variance, belief.variance(x + 0.1))


def test_the_precision_is_the_inverse_of_the_covariance_with_noise():
    x, y, v = readings()
    belief = Belief(Matern52(SCALES, VARIANCE)).condition_on(x, y, v)
    covariance = belief.kernel(belief.sites, belief.sites) + np.diag(belief.noise_variances)
    assert belief.precision() @ covariance == pytest.approx(np.eye(belief.size), abs=1e-9)
    assert np.array_equal(belief.precision(), belief.precision().T)


def test_leave_one_out_of_repeated_readings_leaves_a_whole_site_out():
    x, y, v = readings(repeats=4)
    belief = Belief(Matern52(SCALES, VARIANCE)).condition_on(x, y, v)
    mean, variance = belief.leave_one_out()
    for i, site in enumerate(belief.sites):
        others = (x != site).any(axis=1)
        without = Belief(belief.kernel).condition_on(x[others], y[others], v[others])
        assert mean[i] == pytest.approx(without.mean(site[None])[0], abs=1e-9)
        expected = without.variance(site[None])[0] + belief.noise_variances[i]
        assert variance[i] == pytest.approx(expected, abs=1e-9)


def test_pooling_keeps_the_order_of_first_readings_and_adds_up_precisions():
    x = np.array([[3.0], [1.0], [3.0], [2.0], [1.0]])
    y, v = np.array([1.0, 2.0, 4.0, 5.0, 2.0]), np.array([1.0, 0.5, 0.5, 0.1, 0.5])
    sites, values, variances, scatter = pool(x, y, v)
    assert sites[:, 0].tolist() == [3.0, 1.0, 2.0]
    np.testing.assert_allclose(values, [3.0, 2.0, 5.0])
    np.testing.assert_allclose(variances, [1 / 3, 1 / 4, 1 / 10])
    assert scatter < 0


def test_pooling_distinct_sites_changes_nothing():
    x, y, v = readings()
    sites, values, variances, scatter = pool(x, y, v)
    assert sites is x
    assert values is y
    assert variances is v
    assert scatter == 0.0


@pytest.mark.parametrize(
    ("site", "value", "noise"),
    [
        ([[0.0, 0.0]], [np.nan], 0.1),
        ([[np.inf, 0.0]], [1.0], 0.1),
        ([[0.0, 0.0]], [1.0], -0.1),
        ([[0.0, 0.0]], [1.0], np.nan),
        ([[0.0, 0.0]], [1.0, 2.0], 0.1),
    ],
    ids=["value", "site", "negative noise", "noise", "length"],
)
def test_invalid_readings_are_rejected(site, value, noise):
    belief = Belief(Matern52(SCALES)).condition_on([[0.5, 0.5]], [0.0], [0.1])
    with pytest.raises(InputError, match="expected"):
        belief.condition_on(site, value, noise)


class NoCovariance(SquaredExponential):
    """A function of distance that is not a covariance: its matrices are not positive definite."""

    def _shape(self, r2):
        return 1.0 - r2, np.full_like(r2, 2.0)


def test_a_singular_covariance_matrix_is_an_error_that_suggests_a_fix():
    belief = Belief(NoCovariance([0.1]))
    with pytest.raises(ModelError, match="raise the noise variance"):
        belief.condition_on([[0.0], [1.0]], [0.0, 0.0], 0.1)
    with pytest.raises(ModelError, match="of 2 readings"):
        belief.condition_on([[0.0]], [0.0], 0.1).extended([1.0], 0.0, 0.1)


@property_test
@given(
    values=st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=8),
    transform=st.sampled_from(["none", "log"]),
    shift=st.floats(-5, 5),
    scale=st.floats(0.1, 10),
)
def test_to_user_inverts_to_model(values, transform, shift, scale):
    s = ValueScale(transform, shift, scale)
    np.testing.assert_allclose(s.to_user(s.to_model(values)), values, rtol=1e-9)
    assert s.usable(values).all()


@pytest.mark.parametrize("transform", ["none", "log"])
def test_moments_in_the_users_unit_are_those_of_draws(transform):
    s = ValueScale(transform, 0.3, 0.8)
    draws = s.to_user(0.5 + np.sqrt(0.4) * np.random.default_rng(0).standard_normal(400_000))
    mean, sd = s.moments(np.array([0.5]), np.array([0.4]))
    assert mean[0] == pytest.approx(draws.mean(), rel=0.01)
    assert sd[0] == pytest.approx(draws.std(), rel=0.02)


@pytest.mark.parametrize("transform", ["none", "log"])
def test_noise_in_model_units_is_that_of_small_changes_of_the_value(transform):
    s = ValueScale(transform, 0.3, 0.8)
    step = 1e-6
    change = s.to_model([4.0 + step])[0] - s.to_model([4.0])[0]
    assert np.sqrt(s.noise_to_model([step**2], [4.0])[0]) == pytest.approx(change, rel=1e-5)


def test_a_log_rejects_values_that_are_not_positive():
    scale = ValueScale("log")
    assert scale.usable([1.0, 0.0, -1.0, np.nan, np.inf]).tolist() == [True, False, False, False, False]
    with pytest.raises(InputError, match="values above 0"):
        scale.to_model([1.0, 0.0])


@pytest.mark.parametrize(
    "ask",
    [
        lambda belief, at: belief.mean(at),
        lambda belief, at: belief.variance(at),
        lambda belief, at: belief.covariance([[0.5, 0.5]], at),
        lambda belief, at: belief.sample(at, 2, np.random.default_rng(0)),
        lambda belief, at: belief.with_gradients(at),
        lambda belief, at: belief.condition_on(at, np.zeros(len(at)), 0.1),
        lambda belief, at: belief.extended(np.asarray(at[0]), 0.0, 0.1),
    ],
)
@pytest.mark.parametrize("wrong", [1, 3])
@pytest.mark.parametrize("k", [Matern52(SCALES), Matern52(SCALES) + Matern32([1.0, 1.0])], ids=["one", "sum"])
def test_points_of_another_dimension_than_the_kernel_are_rejected(ask, wrong, k):
    for belief in (Belief(k), Belief(k).condition_on(*readings())):
        with pytest.raises(InputError, match=f"with {wrong} coordinates each, for a kernel over 2"):
            ask(belief, np.full((4, wrong), 0.5))


def test_points_along_a_line_must_come_as_a_column():
    belief = Belief(Matern52([1.0])).condition_on([[0.0]], [2.0], 0.01)
    with pytest.raises(InputError, match="with 3 coordinates each, for a kernel over 1") as caught:
        belief.mean([0.0, 1.0, 2.0])
    assert "x[:, None]" in caught.value.fix
    with pytest.raises(InputError, match="1 lengths in extent, and sites with 2 coordinates"):
        Belief.fit([[0.0, 1.0], [1.0, 2.0]], [0.0, 1.0], extent=[1.0])

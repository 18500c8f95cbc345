"""Hyperparameters from data: the likelihood, its gradient, and how good a fit is."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import lognorm, multivariate_normal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from threadpoolctl import threadpool_limits
from tiers import examples

from fieldbo.belief.kernels import Matern32, Matern52, SquaredExponential, kernel
from fieldbo.belief.marginal_likelihood import _AGREED, Likelihood, LogNormalPrior, _highest, fit_kernel
from fieldbo.belief.posterior import Belief
from fieldbo.errors import InputError, ModelError

SHAPE = {"se": RBF, "matern32": lambda s: Matern(s, nu=1.5), "matern52": lambda s: Matern(s, nu=2.5)}
property_test = settings(deadline=None, max_examples=examples(30), derandomize=True)


def readings(seed, n=16, repeats=0, noise=0.05):
    """Noisy readings of a smooth function on the unit square, some of them repeated."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 1, (n, 2))
    if repeats:
        x[-repeats:] = x[:repeats]
    K = Matern52([0.3, 0.6])(x, x)
    y = np.linalg.cholesky(K + 1e-9 * np.eye(n)) @ rng.standard_normal(n)
    y += np.sqrt(noise) * rng.standard_normal(n)
    return x, (y - y.mean()) / y.std(), rng.uniform(0.5, 1.5, n) * noise


def slope(f, theta, step=1e-5):
    return np.array([(f(theta + e)[0] - f(theta - e)[0]) / (2 * step) for e in step * np.eye(len(theta))])


KERNELS = {
    "se": SquaredExponential([0.4, 0.7], 1.2),
    "matern32": Matern32([0.4, 0.7], 1.2),
    "matern52": Matern52([0.4, 0.7], 1.2),
    "sum": Matern52([0.4, 0.7]) + SquaredExponential([1.0, 2.0], 0.4),
    "product": Matern52([0.4, 0.7]) * Matern32([1.0, 2.0], 0.8),
}
every_kernel = pytest.mark.parametrize("k", KERNELS.values(), ids=KERNELS.keys())


@every_kernel
@pytest.mark.parametrize("repeats", [0, 5], ids=["distinct sites", "repeated sites"])
@pytest.mark.parametrize("noise", ["declared", "learned"])
def test_the_gradient_of_the_marginal_likelihood_agrees_with_finite_differences(k, repeats, noise):
    x, y, v = readings(0, repeats=repeats)
    likelihood = Likelihood(k, x, y, v if noise == "declared" else None)
    theta = k.theta if noise == "declared" else np.append(k.theta, np.log(0.1))
    _, gradient = likelihood(theta)
    np.testing.assert_allclose(gradient, slope(likelihood, theta), rtol=1e-5, atol=1e-5)


@property_test
@given(seed=st.integers(0, 10_000), repeats=st.integers(0, 8), noise=st.floats(1e-3, 2.0))
def test_the_likelihood_is_the_density_of_all_readings_repeated_ones_included(seed, repeats, noise):
    x, y, v = readings(seed, repeats=repeats)
    k = KERNELS["matern52"]
    declared, _ = Likelihood(k, x, y, v)(k.theta)
    literal = multivariate_normal(np.zeros(len(x)), k(x, x) + np.diag(v)).logpdf(y)
    assert declared == pytest.approx(literal, abs=1e-8)
    assert declared == pytest.approx(Belief(k).condition_on(x, y, v).log_marginal_likelihood(), abs=1e-8)
    learned, _ = Likelihood(k, x, y)(np.append(k.theta, np.log(noise)))
    literal = multivariate_normal(np.zeros(len(x)), k(x, x) + noise * np.eye(len(x))).logpdf(y)
    assert learned == pytest.approx(literal, abs=1e-8)


def test_the_gradient_of_the_priors_density_agrees_with_finite_differences():
    prior = LogNormalPrior.standard(np.array([1.0, 20.0]), with_noise=True)
    theta = np.log(prior.medians) + np.array([0.3, -0.5, 0.2, 1.0])
    np.testing.assert_allclose(prior.log_density(theta)[1], slope(prior.log_density, theta), atol=1e-7)


def test_the_standard_priors_are_the_published_log_normals():
    prior = LogNormalPrior.standard(np.array([10.0, 2.0]), with_noise=True)
    np.testing.assert_allclose(prior.medians, [3.0, 0.6, 1.0, 0.01])
    np.testing.assert_allclose(prior.sds, [0.75, 0.75, 0.75, 1.5])
    theta, middle = np.array([1.0, 0.2, -0.3, -3.0]), np.log(prior.medians)
    # In the log of a hyperparameter the density is normal: lognorm's pdf times the hyperparameter.
    literal = sum(
        lognorm(s, scale=m).logpdf(np.exp(t)) + t
        for t, m, s in zip(theta, prior.medians, prior.sds, strict=True)
    ) - sum(
        lognorm(s, scale=m).logpdf(np.exp(t)) + t
        for t, m, s in zip(middle, prior.medians, prior.sds, strict=True)
    )
    assert prior.log_density(theta)[0] - prior.log_density(middle)[0] == pytest.approx(literal)
    assert len(LogNormalPrior.standard(np.array([10.0]), with_noise=False).medians) == 2


def test_starts_follow_the_prior_and_its_stream():
    prior = LogNormalPrior.standard(np.array([1.0, 20.0]), with_noise=True)
    z = (prior.starts(1024, np.random.default_rng(0)) - np.log(prior.medians)) / prior.sds
    np.testing.assert_allclose(z.mean(axis=0), 0.0, atol=0.01)
    np.testing.assert_allclose(z.std(axis=0), 1.0, atol=0.02)
    again = prior.starts(8, np.random.default_rng(5)), prior.starts(8, np.random.default_rng(5))
    np.testing.assert_array_equal(*again)


@pytest.mark.parametrize(("name", "seed"), [("se", 1), ("matern32", 2), ("matern52", 3)])
@pytest.mark.parametrize("noise", ["declared", "learned"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_is_no_worse_than_scikit_learns(name, seed, noise):
    x, y, v = readings(seed, n=20)
    declared = v if noise == "declared" else None
    peer_kernel = ConstantKernel(1.0) * SHAPE[name](np.ones(2))
    peer = GaussianProcessRegressor(
        peer_kernel if noise == "declared" else peer_kernel + WhiteKernel(0.1),
        alpha=v if noise == "declared" else 1e-12,
        n_restarts_optimizer=5,
        random_state=0,
    ).fit(x, y)
    prior = LogNormalPrior.standard(np.ones(2), with_noise=declared is None)
    fitted = fit_kernel(
        kernel(name, [0.3, 0.3]), x, y, declared, prior, np.random.default_rng(0), penalised=False
    )
    reference = peer.log_marginal_likelihood_value_
    assert fitted.log_likelihood >= reference - 1e-3 * max(1.0, abs(reference))


@pytest.mark.parametrize("noise", ["declared", "learned"])
def test_a_fit_reports_the_likelihood_of_its_own_kernel(noise):
    x, y, v = readings(4, repeats=4)
    declared = v if noise == "declared" else None
    prior = LogNormalPrior.standard(np.ones(2), with_noise=declared is None)
    fitted = fit_kernel(Matern52([1.0, 1.0]), x, y, declared, prior, np.random.default_rng(0))
    assert (fitted.noise_variance is None) == (noise == "declared")
    believed = v if fitted.noise_variance is None else fitted.noise_variance
    belief = Belief(fitted.kernel).condition_on(x, y, believed)
    assert fitted.log_likelihood == pytest.approx(belief.log_marginal_likelihood(), abs=1e-8)


def test_a_penalised_fit_is_a_stationary_point_of_likelihood_times_prior():
    x, y, v = readings(5)
    prior = LogNormalPrior.standard(np.ones(2), with_noise=False)
    fitted = fit_kernel(Matern52([1.0, 1.0]), x, y, v, prior, np.random.default_rng(0))
    theta = fitted.kernel.theta
    gradient = Likelihood(fitted.kernel, x, y, v)(theta)[1] + prior.log_density(theta)[1]
    np.testing.assert_allclose(gradient, 0.0, atol=1e-2)


def test_the_prior_keeps_a_fit_to_few_readings_near_its_medians():
    x, y, v = np.array([[0.2], [0.8]]), np.array([1.0, -1.0]), np.full(2, 0.01)
    prior = LogNormalPrior.standard(np.ones(1), with_noise=False)
    fitted = fit_kernel(Matern52([1.0]), x, y, v, prior, np.random.default_rng(0))
    assert np.abs((fitted.kernel.theta - np.log(prior.medians)) / prior.sds).max() < 1.5


def test_a_fit_is_reproducible_and_no_worse_with_a_further_start():
    x, y, v = readings(6)
    prior = LogNormalPrior.standard(np.ones(2), with_noise=False)
    first, two = (fit_kernel(Matern52([1, 1]), x, y, v, prior, np.random.default_rng(0)) for _ in range(2))
    np.testing.assert_array_equal(first.kernel.theta, two.kernel.theta)
    present = fit_kernel(
        Matern52([1, 1]), x, y, v, prior, np.random.default_rng(0), present=np.log([0.3, 0.6, 1.0])
    )
    score = [f.log_likelihood + prior.log_density(f.kernel.theta)[0] for f in (first, present)]
    assert score[1] >= score[0] - 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_a_fit_to_many_readings_may_end_early_but_not_lower(seed, monkeypatch):
    x, y, _ = readings(seed, n=110)
    prior = LogNormalPrior.standard(np.ones(2), with_noise=True)

    def fitted():
        counted.clear()
        return fit_kernel(Matern52([1, 1]), x, y, None, prior, np.random.default_rng(0)).log_likelihood

    counted = []
    evaluate = Likelihood.__call__
    monkeypatch.setattr(Likelihood, "__call__", lambda self, t: counted.append(t) or evaluate(self, t))
    early, evaluations = fitted(), len(counted)
    monkeypatch.setattr("fieldbo.belief.marginal_likelihood._MANY", np.inf)
    assert early == pytest.approx(fitted(), abs=1e-2)
    assert evaluations < 0.6 * len(counted)


def test_two_climbs_from_good_starts_do_not_hide_a_higher_peak():
    prior = LogNormalPrior(np.ones(1), np.ones(1))

    def two_wells(theta):
        left, right = (float(theta[0]) + 1.0) ** 2, 4.0 * (float(theta[0]) - 2.0) ** 2 - 1.0
        return (left, 2.0 * (theta + 1.0)) if left < right else (right, 8.0 * (theta - 2.0))

    starts = np.array([[-0.9], [-1.2], [1.4], [-1.8], [-2.0]])
    assert _highest(two_wells, starts, prior, 2) == pytest.approx(-1.0, abs=1e-3)
    assert _highest(two_wells, starts, prior, _AGREED) == pytest.approx(2.0, abs=1e-3)


def test_a_fit_does_not_depend_on_the_number_of_threads():
    x, y, _ = readings(6, n=120)
    prior = LogNormalPrior.standard(np.ones(2), with_noise=True)
    thetas = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            fitted = fit_kernel(Matern52([1, 1]), x, y, None, prior, np.random.default_rng(0))
        thetas.append(np.append(fitted.kernel.theta, fitted.noise_variance))
    np.testing.assert_array_equal(*thetas)


@pytest.mark.parametrize("n", [1, 2, 3, 6, 7])
def test_the_likelihood_of_few_readings_is_their_density(n):
    x, y, v = readings(9, n=n) if n > 1 else (np.zeros((1, 2)), np.ones(1), np.full(1, 0.05))
    k = KERNELS["product"]
    value, _ = Likelihood(k, x, y, v)(k.theta)
    literal = multivariate_normal(np.zeros(n), k(x, x) + np.diag(v)).logpdf(y)
    assert value == pytest.approx(literal, abs=1e-9)


def test_a_matrix_that_is_not_positive_definite_has_likelihood_zero():
    x = np.linspace(0, 1, 60)[:, None]
    k = SquaredExponential([50.0], 1e6)
    value, gradient = Likelihood(k, x, np.sin(x[:, 0]), np.zeros(60))(k.theta)
    assert value == -np.inf
    np.testing.assert_array_equal(gradient, np.zeros(2))


def test_a_fit_does_not_depend_on_the_unit_of_an_axis():
    x, y, v = readings(7)
    unit = np.array([1000.0, 0.01])
    a, b = (
        fit_kernel(
            Matern52([1, 1]),
            x * u,
            y,
            v,
            LogNormalPrior.standard(u, with_noise=False),
            np.random.default_rng(0),
        )
        for u in (np.ones(2), unit)
    )
    np.testing.assert_allclose(b.kernel.length_scales, a.kernel.length_scales * unit, rtol=1e-3)
    assert b.log_likelihood == pytest.approx(a.log_likelihood, abs=1e-4)


def test_a_fit_to_one_reading_is_rejected():
    prior = LogNormalPrior.standard(np.ones(1), with_noise=False)
    with pytest.raises(InputError, match="at least two readings"):
        fit_kernel(
            Matern52([1.0]), np.zeros((1, 1)), np.zeros(1), np.ones(1), prior, np.random.default_rng(0)
        )


def test_a_fit_that_finds_no_positive_definite_matrix_says_so(monkeypatch):
    monkeypatch.setattr(Likelihood, "__call__", lambda self, theta: (-np.inf, np.zeros(len(theta))))
    x, y, v = readings(8)
    prior = LogNormalPrior.standard(np.ones(2), with_noise=False)
    with pytest.raises(ModelError, match="positive definite"):
        fit_kernel(Matern52([1.0, 1.0]), x, y, v, prior, np.random.default_rng(0))

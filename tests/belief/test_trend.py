"""A linear trend that is estimated with the field."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime

import fieldbo
from fieldbo.belief.hyperparameters import Hyperparameters, WithTrend, WithUnknownLevel
from fieldbo.belief.kernels import Matern52
from fieldbo.belief.model import Model
from fieldbo.belief.posterior import Belief
from fieldbo.belief.question import Optimum
from fieldbo.belief.readings import Data
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain

GRID = Domain.grid([Axis("x", "m", 0.0, 10.0), Axis("y", "m", -2.0, 2.0)], (11, 5))
K = WithTrend(Matern52([3.0, 1.0], 0.5), np.array([5.0, 0.0]), np.array([5.0, 2.0]))


def readings(n=25):
    rng = np.random.default_rng(0)
    sites = rng.uniform([0.0, -2.0], [10.0, 2.0], (n, 2))
    return sites, 3.0 + 0.7 * sites[:, 0] - sites[:, 1] + np.sin(sites[:, 0]) + 0.1 * rng.standard_normal(n)


def universal_kriging(kernel, sites, values, noise, points):
    """Return mean and variance by generalised least squares (Rasmussen and Williams 2006, eq. 2.41)."""
    H, G = (np.column_stack([np.ones(len(x)), x]) for x in (sites, points))
    C = np.linalg.inv(kernel(sites, sites) + noise * np.eye(len(sites)))
    A = np.linalg.inv(H.T @ C @ H)
    coefficients = A @ H.T @ C @ values
    k = kernel(sites, points)
    mean = G @ coefficients + k.T @ C @ (values - H @ coefficients)
    R = G - k.T @ C @ H
    variance = kernel.diagonal(points) - np.einsum("np,nm,mp->p", k, C, k) + np.einsum("pi,ij,pj->p", R, A, R)
    return mean, variance


def test_a_broad_prior_on_the_trend_is_universal_kriging():
    sites, values = readings()
    broad = WithTrend(K.residual, K.middle, K.half, sd=3e3)
    belief = Belief(broad).condition_on(sites, values, 0.01)
    mean, variance = universal_kriging(K.residual, sites, values, 0.01, GRID.sites)

    np.testing.assert_allclose(belief.mean(GRID.sites), mean, atol=1e-4)
    np.testing.assert_allclose(belief.variance(GRID.sites), variance, atol=1e-5)


@pytest.mark.parametrize("kernel", [K, WithUnknownLevel(K, 1.0)], ids=["trend", "trend and level"])
def test_gradients_are_those_of_differences(kernel):
    sites, values = readings(8)
    belief = Belief(kernel).condition_on(sites, values, 0.01)
    x = np.array([4.1, 0.3])
    moments = belief.with_gradients(x[None])
    np.testing.assert_allclose(
        moments.mean_gradient[0], approx_fprime(x, lambda p: belief.mean(p[None])[0], 1e-6), atol=1e-3
    )
    np.testing.assert_allclose(
        moments.variance_gradient[0], approx_fprime(x, lambda p: belief.variance(p[None])[0], 1e-6), atol=1e-3
    )


def test_covariances_of_pairs_are_those_of_the_kernel():
    sites, _ = readings(6)
    rows, columns = np.tril_indices(6)
    covariances, pullback = K.of_pairs(sites, rows, columns)(K.theta)
    np.testing.assert_allclose(covariances, K(sites, sites)[rows, columns])
    assert pullback(np.ones(len(rows))).shape == K.theta.shape
    np.testing.assert_allclose(np.diag(K(sites, sites)), K.diagonal(sites))


def test_a_trend_continues_beyond_the_readings_and_survives_the_record():
    sites, values = readings(30)
    near = sites[:, 0] < 5.0
    data = Data(sites, values, np.full(30, 0.01)).only(near)
    errors = []
    for mean in ("linear", None):
        model = Model(mean=mean)
        first = model.initial(GRID, Optimum())
        h = model.fitted(first, GRID, Optimum(), data, np.random.default_rng(0))
        again = Hyperparameters.from_plain(h.to_plain(), GRID)
        assert isinstance(again.kernel, WithTrend) == (mean == "linear")
        belief = Belief(again.kernel).condition_on(data.sites, *model.normal_readings(again, data))
        error = again.scale.to_user(belief.mean(sites[~near])) - values[~near]
        errors.append(np.sqrt(np.mean(error**2)))
    assert errors[0] < 0.6 * errors[1]


@pytest.mark.parametrize("mission", ["lake-level-set", "gp-lake-optimum", "branin"])
def test_missions_with_a_trend_run(mission):
    settings = {
        "model": {"mean": "linear", "learn": True},
        "agent": {"max_steps": 12},
        "initial": {"count": 6},
    }
    result = fieldbo.run(fieldbo.load_mission(mission, settings))
    assert isinstance(result.hyperparameters.kernel, WithTrend)
    assert np.isfinite(result.surface.mean).all()


def test_control_sets_have_no_trend():
    with pytest.raises(fieldbo.InputError, match="control sets"):
        fieldbo.load_mission("cell-growth", {"model": {"mean": "linear"}})

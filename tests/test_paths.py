"""Planning a whole path: its remaining loss and gradient, its links, its search, and the policy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal, norm

from fieldbo.belief.kernels import Matern32, Matern52, SquaredExponential
from fieldbo.belief.posterior import Belief
from fieldbo.errors import InputError
from fieldbo.policies.paths.chain import Chain
from fieldbo.policies.paths.importance import Everywhere, MayExceed, Misclassified, amplitude
from fieldbo.policies.paths.planner import first_plan, improved
from fieldbo.policies.paths.remaining import RemainingLoss
from fieldbo.policies.paths.tours import tours

SQUARE = np.zeros(2), np.ones(2)
IMPORTANCES = [Everywhere(), MayExceed(0.4, 0.7), MayExceed(-0.2), Misclassified(0.1)]


def belief(kernel=Matern32, n=8, seed=0):
    rng = np.random.default_rng(seed)
    prior = Belief(kernel([0.45, 0.3], 1.3))
    return prior.condition_on(rng.random((n, 2)), rng.normal(size=n), 1e-3) if n else prior


# -- the remaining loss ----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 8])
@pytest.mark.parametrize("kernel", [Matern32, Matern52, SquaredExponential])
def test_the_variance_after_a_path_is_that_of_the_belief_after_its_readings(kernel, n):
    now = belief(kernel, n)
    rng = np.random.default_rng(1)
    sites, path = rng.random((50, 2)), rng.random((12, 2))
    left = RemainingLoss(now, sites, Everywhere(), 0.02)
    then = now.condition_on(path, np.zeros(12), 0.02).variance(sites)
    np.testing.assert_allclose(left.after(path), then, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(left.before, now.variance(sites), rtol=1e-6, atol=1e-9)
    assert left(path)[0] == pytest.approx(then.sum())


@pytest.mark.parametrize("importance", IMPORTANCES, ids=repr)
@pytest.mark.parametrize("n", [0, 8])
def test_the_gradient_is_that_of_finite_differences(importance, n):
    rng = np.random.default_rng(2)
    left = RemainingLoss(belief(n=n), rng.random((40, 2)), importance, 1e-2, rng.random(40))
    path = rng.random((9, 2))
    _, gradient = left(path)
    step = 1e-5
    differences = np.zeros_like(path)
    for index in np.ndindex(path.shape):
        move = np.zeros_like(path)
        move[index] = step
        differences[index] = (left(path + move)[0] - left(path - move)[0]) / (2 * step)
    np.testing.assert_allclose(gradient, differences, atol=1e-6 * np.abs(differences).max())


@given(t=st.floats(-4, 4), share=st.floats(0, 0.999))
@settings(max_examples=40, deadline=None)
def test_the_risk_drops_by_the_bivariate_normal_of_the_share_explained(t, share):
    (loss,), _ = Misclassified(1.0).loss(
        np.array([1.0 + 2 * t]), np.array([4.0]), np.array([4 * (1 - share)])
    )
    joint = multivariate_normal(cov=[[1, share], [share, 1]]).cdf([-abs(t), -abs(t)])
    p = norm.cdf(t)
    assert loss == pytest.approx(p * (1 - p) - joint + norm.cdf(-abs(t)) ** 2, abs=2e-5)


@pytest.mark.parametrize("importance", [MayExceed(0.5, softness=1e-3), Misclassified(0.5)], ids=repr)
def test_the_expected_loss_is_the_mean_over_what_the_readings_may_say(importance):
    mean, before, after = 0.3, 0.8, 0.2
    means = mean + np.sqrt(before - after) * np.random.default_rng(0).standard_normal(400_000)
    if isinstance(importance, MayExceed):
        drawn = after * (means + np.sqrt(after) >= 0.5)
    else:
        p = norm.cdf((means - 0.5) / np.sqrt(after))
        drawn = p * (1 - p)
    (loss,), _ = importance.loss(np.array([mean]), np.array([before]), np.array([after]))
    assert loss == pytest.approx(drawn.mean(), abs=5 * drawn.std() / np.sqrt(len(drawn)) + 1e-6)


def test_the_amplitude_moves_from_the_guess_to_that_of_the_readings():
    rng = np.random.default_rng(0)
    prior, sites = Belief(Matern32([0.1, 0.1])), rng.random((300, 2))
    values = 0.3 * prior.sample(sites, 1, rng)[0]
    assert amplitude(prior, 0.7) == pytest.approx(0.7)
    few, many = (prior.condition_on(sites[:n], values[:n], 1e-8) for n in (3, 300))
    assert amplitude(many, 0.7) == pytest.approx(0.3, abs=0.07)
    assert amplitude(many, 0.7) < amplitude(few, 0.7) < 0.7


# -- chains ----------------------------------------------------------------------------------------------


def lengths(chain, points):
    ends = [] if chain.destination is None else [chain.destination]
    return np.linalg.norm(np.diff(np.vstack([chain.start, points, *ends]), axis=0) * chain.scale, axis=1)


@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.integers(1, 30),
    reach=st.floats(1.0, 4.0),
    ends=st.booleans(),
    dimension=st.integers(1, 3),
)
@settings(max_examples=150, deadline=None)
def test_pulled_points_have_short_links_and_stay_in_the_box(seed, count, reach, ends, dimension):
    rng = np.random.default_rng(seed)
    low, high = -rng.random(dimension), 1 + rng.random(dimension)
    start, end, *points = rng.uniform(low, high, (count + 2, dimension))
    rates = rng.uniform(0.5, 2, dimension)
    distance = np.linalg.norm(rates * (end - start)) + 1e-3
    spacing = reach * distance / (count + 1)
    chain = Chain(start, count, spacing, low, high, end if ends else None, rates=rates)
    pulled = chain.pulled(np.array(points))
    assert (lengths(chain, pulled) <= spacing * (1 + 1e-8)).all()
    assert (pulled >= low).all()
    assert (pulled <= high).all()
    np.testing.assert_array_equal(chain.pulled(pulled), pulled)


def test_the_derivatives_of_the_links_are_those_of_finite_differences():
    rng = np.random.default_rng(0)
    rates = np.array([1.0, 3.0])
    chain = Chain(np.zeros(2), 5, 0.7, *SQUARE, destination=np.ones(2), last=0.4, rates=rates)
    at = rng.random((5, 2))
    moves = 1e-6 * np.eye(10).reshape(10, 5, 2)
    differences = np.stack([(chain.excess(at + m) - chain.excess(at - m)) / 2e-6 for m in moves], axis=1)
    np.testing.assert_allclose(chain.jacobian(at), differences, atol=1e-6)


def test_a_destination_out_of_reach_is_an_error():
    with pytest.raises(InputError, match=r"1\.41421 away, and 5 readings reach 1\.2 far"):
        Chain(np.zeros(2), 5, 0.2, *SQUARE, destination=np.ones(2))
    Chain(np.zeros(2), 7, 0.2, *SQUARE, destination=np.ones(2))


# -- the search ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("importance", IMPORTANCES, ids=repr)
def test_a_search_keeps_the_links_short_and_never_makes_a_plan_worse(importance):
    nodes = np.linspace(0, 1, 12)
    sites = np.stack(np.meshgrid(nodes, nodes), axis=-1).reshape(-1, 2)
    left = RemainingLoss(belief(n=4), sites, importance, 1e-4)
    chain = Chain(np.zeros(2), 10, 0.25, *SQUARE, destination=np.array([1.0, 0.0]))
    (start,) = tours(chain, np.random.default_rng(0), 1)
    plan, loss = improved(left, chain, start, 30)
    assert loss == pytest.approx(left(plan)[0])
    assert loss < 0.99 * left(start)[0]
    assert (lengths(chain, plan) <= 0.25 * (1 + 1e-8)).all()
    again, no_worse = improved(left, chain, plan, 5)
    assert no_worse <= loss
    assert again.shape == plan.shape


def test_the_first_plan_is_the_best_of_its_starts():
    sites = np.random.default_rng(0).random((60, 2))
    left = RemainingLoss(belief(n=0), sites, Everywhere(), 1e-4)
    chain = Chain(np.zeros(2), 8, 0.3, *SQUARE)
    starts = tours(chain, np.random.default_rng(0), 4)
    _, loss = first_plan(left, chain, starts, 10)
    assert loss == min(improved(left, chain, start, 10)[1] for start in starts)


def test_the_best_path_on_a_line_is_known():
    # Two readings of a symmetric line, without a limit to speak of, lie symmetrically.
    line = np.linspace(0, 1, 101)[:, None]
    left = RemainingLoss(Belief(Matern52([0.3])), line, Everywhere(), 1e-6)
    chain = Chain(np.zeros(1), 2, 2.0, np.zeros(1), np.ones(1))
    plan, _ = improved(left, chain, np.array([[0.1], [0.6]]), 60)
    assert plan.sum() == pytest.approx(1.0, abs=1e-3)

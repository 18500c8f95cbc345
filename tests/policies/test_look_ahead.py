"""Look-ahead policies against Monte Carlo and quadrature, and the finite horizon against its own equation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_ndtr, ndtr

from fieldbo.belief.kernels import Matern52
from fieldbo.belief.posterior import Belief
from fieldbo.belief.question import LevelSet
from fieldbo.belief.surface import Surface
from fieldbo.messages import EndReason
from fieldbo.policies.level_set.look_ahead import (
    EAVC,
    DistancePenalised,
    GlobalMI,
    GlobalSUR,
    expected_entropy_drop,
    expected_error_drop,
    unclassified,
    worth_of_error,
)
from fieldbo.testing import drive, small_mission, state

THRESHOLD, NOISE = 0.2, 0.02


def surface_of(readings=6, memory=None):
    axis = np.linspace(0.0, 1.0, 12)
    sites = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    rng = np.random.default_rng(0)
    at = rng.uniform(0, 1, (readings, 2))
    belief = Belief(Matern52([0.3, 0.2])).condition_on(at, rng.normal(size=readings), 1e-3)
    return Surface(belief, sites, memory)


def error(x):
    return ndtr(-np.abs(x))


def entropy(x):
    return -(ndtr(x) * log_ndtr(x) + ndtr(-x) * log_ndtr(-x))


def after(surface, site, noise, z):
    """Return ``(mu - h) / s`` (R, Z) of all sites after each of the standardised readings z at a site."""
    believed = surface.believing(surface.candidates[[site]], noise)
    shift = surface.covariance(slice(None), site)[:, 0] / np.sqrt(surface.variance[site] + noise)
    return (surface.mean[:, None] + shift[:, None] * z - THRESHOLD) / believed.sd[:, None]


def expected(values, z):
    """Return the mean of a function of a standard normal variable, given at evenly spaced z."""
    return values @ np.exp(-0.5 * z**2) / np.exp(-0.5 * z**2).sum()


def scores(policy, surface, noise=NOISE):
    return policy.gains(surface, unclassified(surface, THRESHOLD), THRESHOLD, np.full(surface.size, noise))


def brute(policy, surface, site, noise=NOISE):
    z = np.linspace(-7.0, 7.0, 4001)
    now, then = (surface.mean - THRESHOLD) / surface.sd, after(surface, site, noise, z)
    if isinstance(policy, EAVC):
        return expected(np.abs((ndtr(then) - ndtr(now)[:, None]).sum(axis=0)), z)
    lost = error if isinstance(policy, GlobalSUR) else entropy
    return lost(now).sum() - expected(lost(then).sum(axis=0), z)


@pytest.mark.parametrize("t", [0.0, 0.3, 1.0, 2.5, 4.9])
@pytest.mark.parametrize("q", [1e-6, 0.01, 0.4, 0.9, 0.999])
def test_expected_drops_are_means_over_readings(t, q):
    z = np.linspace(-9.0, 9.0, 200_001)
    then = (t + np.sqrt(q) * z) / np.sqrt(1.0 - q)
    assert expected_error_drop(t, q) == pytest.approx(error(t) - expected(error(then), z), abs=1e-7)
    assert expected_entropy_drop(t, q) == pytest.approx(entropy(t) - expected(entropy(then), z), abs=2e-5)


@pytest.mark.parametrize("policy", [GlobalSUR(), GlobalMI(), EAVC()], ids=repr)
def test_scores_are_means_over_readings(policy):
    surface = surface_of()
    found = scores(policy, surface)
    for site in (0, 17, 40, 77, 100, 143):
        assert found[site] == pytest.approx(brute(policy, surface, site), rel=0.01, abs=2e-3)


@pytest.mark.parametrize("policy", [GlobalSUR(), GlobalMI(), EAVC()], ids=repr)
def test_almost_exact_readings_are_scored_too(policy):
    surface = surface_of()
    found = scores(policy, surface, 1e-6)
    for site in (0, 77):
        assert found[site] == pytest.approx(brute(policy, surface, site, 1e-6), rel=0.02)


def test_the_volume_change_counts_the_sign_of_covariances():
    """Far from the threshold on both sides, changes of opposite sign cancel."""
    surface = surface_of(readings=40)
    found = scores(EAVC(), surface)
    where = np.argmin(np.abs(surface.mean - THRESHOLD))
    assert found[where] == pytest.approx(brute(EAVC(), surface, where), rel=0.01, abs=2e-3)


@pytest.mark.parametrize("policy", [GlobalSUR(), GlobalMI(), EAVC()], ids=repr)
def test_scores_are_the_same_without_memory_for_covariances(policy):
    kept, anew = surface_of(), surface_of(memory=0.0)
    np.testing.assert_allclose(scores(policy, kept), scores(policy, anew), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("policy", [GlobalSUR(), GlobalMI(), EAVC()], ids=repr)
def test_a_site_known_exactly_brings_next_to_nothing(policy):
    surface = surface_of(readings=0)
    surface.append(surface.candidates[[5]], [0.0], 0.0)
    found = scores(policy, surface, 1e-6)
    assert np.isfinite(found).all()
    assert found[5] < 2e-3 * found.max()


@pytest.mark.parametrize("policy", [GlobalSUR(), GlobalMI(), EAVC(), DistancePenalised()], ids=repr)
def test_a_run_ends_once_every_site_is_classified(policy):
    _, orders, stop = drive(small_mission(policy, battery=1e6, question=LevelSet(3.0)))
    assert stop.reason is EndReason.QUESTION_ANSWERED
    assert len(orders) > 2


@pytest.mark.parametrize("weight", [0.0, 0.03, 0.2, 0.45])
def test_the_worth_of_an_error_solves_the_equation_of_the_horizon(weight):
    u = np.linspace(0.0, 1.0, 10_001)
    c = 1.0
    for n in range(8):
        assert worth_of_error(n, weight) == pytest.approx(c, abs=1e-6)
        c = np.min(4.0 * weight * u + c * (u**2 + (1.0 - u) ** 2))


def test_the_heavier_the_weight_the_shorter_the_first_trip():
    def trip(weight):
        policy = DistancePenalised(weight=weight, samples=5)
        seen = state(policy)
        query = policy.suggest(seen, None).choice
        return float(seen.cost.travel(seen.position, query.site[None])[0])

    trips = [trip(weight) for weight in (0.0, 0.02, 0.2, 2.0)]
    assert trips == sorted(trips, reverse=True)
    assert trips[0] > trips[-1] > 0

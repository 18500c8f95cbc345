"""The risk of misclassification, what readings remove of it, and tours that remove most of it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr
from scipy.stats import multivariate_normal
from tiers import examples

from fieldbo import load_mission
from fieldbo.agent.agent import Agent
from fieldbo.belief.kernels import Matern52
from fieldbo.belief.posterior import Belief
from fieldbo.belief.question import LevelSet
from fieldbo.belief.surface import Surface
from fieldbo.messages import EndReason, Query
from fieldbo.policies import tour_plan
from fieldbo.policies.acquisition import misclassification_drop
from fieldbo.policies.level_set.risk import Risk, coefficients_at, drop_of, floored
from fieldbo.policies.level_set.tour import OneStepRisk, Outlook, Tour
from fieldbo.policies.tour_plan import TourCosts, plan_tour
from fieldbo.testing import drive, small_mission, state


def surface_of(seed=0, side=12, readings=6, memory=None):
    axis = np.linspace(0.0, 1.0, side)
    sites = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    rng = np.random.default_rng(seed)
    at = rng.uniform(0, 1, (readings, 2))
    belief = Belief(Matern52([0.3, 0.2])).condition_on(at, rng.normal(size=readings), 1e-3)
    return Surface(belief, sites, memory)


def tour_of(seed, left):
    """Return the outlook and the prices of a tour among 20 sites, with a home."""
    rng, surface = np.random.default_rng(seed), surface_of(seed)
    at = rng.choice(surface.size, 20, replace=False)
    places = np.concatenate([rng.uniform(0, 1, (1, 2)), surface.candidates[at]])
    travel = np.linalg.norm(places[:, None] - places[None], axis=2)
    home, sampling = np.linalg.norm(places - rng.uniform(0, 1, 2), axis=1), rng.uniform(0.1, 1.0, 20)
    outlook = Outlook(surface, Risk.of(surface, 0.0), at, np.full(20, 0.01))
    return outlook, TourCosts(travel, home, sampling, left)


def risk_after(surface, risk, read, noise, rng, draws=20_000):
    """Return the mean of sum p (1 - p) over draws of the readings at the sites `read`, and its error."""
    covariance = surface.covariance(read, read) + np.diag(noise)
    to = surface.covariance(risk.members, read)
    explained = np.linalg.solve(np.linalg.cholesky(covariance), to.T)  # (k, R)
    z = rng.normal(size=(draws, len(read)))
    mean = surface.mean[risk.members] + z @ explained
    sd = np.sqrt(surface.variance[risk.members] - np.square(explained).sum(axis=0))
    p = ndtr(mean / sd)
    sums = (p * (1 - p)).sum(axis=1)
    return sums.mean(), sums.std() / np.sqrt(draws)


@pytest.mark.parametrize("t", [0.0, 0.3, 1.0, 2.5, 4.9])
@pytest.mark.parametrize("q", [1e-6, 0.01, 0.4, 0.9, 0.999])
def test_the_drop_is_that_of_the_bivariate_normal_distribution(t, q):
    both = multivariate_normal.cdf([-t, -t], cov=[[1, q], [q, 1]], abseps=1e-10, releps=1e-10)
    exact = both - ndtr(-t) ** 2
    assert misclassification_drop(t, q) == pytest.approx(exact, abs=1e-9)
    assert drop_of(coefficients_at(np.array([t])), np.array([q]))[0] == pytest.approx(exact, abs=3e-6)


def test_what_a_reading_is_expected_to_remove_is_what_readings_remove_on_average():
    surface = surface_of()
    risk = Risk.of(surface, 0.0)
    noise = floored(surface, np.full((surface.size, 1), 0.01))
    drops = risk.drops(surface, noise)
    rng, now = np.random.default_rng(1), np.sum(misclassification_drop(risk.t, 1.0))
    for site in (0, 40, 77, 143):
        left, error = risk_after(surface, risk, [site], noise[site], rng)
        assert now - left == pytest.approx(drops[site, 0], abs=5 * error + 1e-3)


def test_readings_of_a_tour_are_not_counted_twice():
    surface = surface_of()
    risk, noise = Risk.of(surface, 0.0), np.full(surface.size, 0.01)
    candidates, stops = np.arange(0, surface.size, 5), list[int]()
    outlook, one_by_one = Outlook(surface, risk, candidates, noise[candidates]), 0.0
    for z in (3, 4, 20, 3):  # neighbours, and the same one again
        one_by_one += outlook.gains(stops)[0][z]
        stops.append(z)
    _, removed = outlook.gains(stops)
    assert one_by_one == pytest.approx(removed, rel=1e-3)
    rng, now = np.random.default_rng(1), np.sum(misclassification_drop(risk.t, 1.0))
    left, error = risk_after(surface, risk, candidates[stops], noise[:4], rng)
    assert now - left == pytest.approx(removed, abs=5 * error + 2e-3)


def test_replacing_stops_removes_more_per_unit_of_cost(monkeypatch):
    better = []
    for seed in range(20):
        outlook, prices = tour_of(seed, left=1e6)
        worth = []
        for sweeps in (0, 2):
            monkeypatch.setattr(tour_plan, "_SWEEPS", sweeps)
            tour = plan_tour(outlook, prices, 12)
            gains = outlook.gains([])[0]
            rate = tour_plan.LEAST_SHARE * np.max(gains / (prices.travel[0, 1:] + prices.sampling))
            worth.append(tour.gain - rate * tour.cost)
        better.append(worth[1] - worth[0])
    assert np.min(better) > -1e-3
    assert np.max(better) > 0.01


def test_gains_are_the_same_without_memory_for_covariances():
    kept, anew = surface_of(), surface_of(memory=0.0)
    for surface in (kept, anew):
        assert surface.lookahead.keeps == (surface is kept)
    noise = floored(kept, np.full((kept.size, 2), [0.01, 0.3]))
    a, b = (Risk.of(s, 0.0).drops(s, noise) for s in (kept, anew))
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
    assert np.all(a[:, 0] > a[:, 1])  # a more precise reading removes more


def test_kept_covariances_follow_the_readings():
    surface, noise = surface_of(), np.full((144, 1), 0.01)
    Risk.of(surface, 0.0).drops(surface, noise)
    surface.append(surface.candidates[[50, 90]], [0.4, -1.0], 0.01)
    fresh = Surface(surface.belief, surface.candidates)
    after, expected = (Risk.of(s, 0.0).drops(s, noise) for s in (surface, fresh))
    np.testing.assert_allclose(after, expected, rtol=1e-4, atol=1e-4)


def test_of_very_many_sites_a_part_stands_for_all():
    surface, noise = surface_of(side=30), np.full((900, 1), 0.01)
    whole = Risk.of(surface, 0.0)
    part = Risk.of(surface, 0.0, most=450)
    assert len(part.members) == 450
    assert part.sites == whole.sites
    assert part.errors == pytest.approx(whole.errors, rel=0.1)
    a, b = part.drops(surface, noise)[:, 0], whole.drops(surface, noise)[:, 0]
    assert np.corrcoef(a, b)[0, 1] > 0.99
    assert a.sum() == pytest.approx(b.sum(), rel=0.1)


def test_a_site_known_exactly_brings_no_gain_and_no_division_by_zero():
    surface = surface_of(readings=0)
    surface.append(surface.candidates[[5]], [0.0], 0.0)
    drops = Risk.of(surface, 0.0).drops(surface, floored(surface, np.zeros((144, 1))))
    assert np.isfinite(drops).all()
    assert drops[5, 0] < 1e-3 * drops.max()


@settings(deadline=None, max_examples=examples(40))
@given(seed=st.integers(0, 10**6), left=st.floats(0.0, 12.0), most=st.integers(1, 12))
def test_a_tour_and_the_way_home_are_within_the_battery(seed, left, most):
    outlook, prices = tour_of(seed, left)
    travel, home, sampling = prices.travel, prices.home, prices.sampling
    tour = plan_tour(outlook, prices, most)
    assert len(tour.stops) <= most
    route = [0, *(n + 1 for n in tour.stops)]
    cost = sum(travel[a, b] + sampling[b - 1] for a, b in pairwise(route))
    assert tour.cost == pytest.approx(cost)
    if tour.stops:
        assert cost + home[route[-1]] <= left + 1e-9
        assert tour.gain > 0


def test_a_batch_is_the_beginning_of_the_tour():
    seen = state(policy := Tour())
    first, batch = policy.suggest(seen, None), policy.suggest_batch(seen, None, 3)
    assert batch[0].choice.site.tolist() == first.choice.site.tolist()
    assert [d.choice.site.tolist() for d in batch] == [row["stop"] for row in first.why["tour"][:3]]


def test_where_travel_is_free_the_best_reading_comes_first():
    free = {"agent": {"battery": 12}}
    orders = [
        drive(load_mission("lake-level-set-unit-cost", {**free, "policy": {"kind": kind}}))[1]
        for kind in ("tour", "one-step-risk")
    ]
    assert len(orders[0]) > 10
    assert [o.site.tolist() for o in orders[0][:-1]] == [o.site.tolist() for o in orders[1][:-1]]


@pytest.mark.parametrize("policy", [Tour(), OneStepRisk()])
def test_a_run_ends_once_every_site_is_classified(policy):
    _, orders, stop = drive(small_mission(policy, battery=1e6, question=LevelSet(3.0)))
    assert stop.reason is EndReason.QUESTION_ANSWERED
    assert len(orders) > 2
    assert all(isinstance(order, Query) for order in orders[:-1])


def test_a_prior_that_classifies_every_site_is_warned_of():
    mission = load_mission("gp-lake", {"policy": {"kind": "tour"}, "question": {"threshold": 9.0}})
    [warning] = [text for text in Agent(mission).warnings if "prior classifies" in text]
    assert "model.mean" in warning


def test_it_chooses_the_sensors_level():
    mission = load_mission("gp-level-noise", {"policy": {"kind": "tour"}, "agent": {"battery": 60}})
    levels = {order.level for order in drive(mission)[1] if isinstance(order, Query)}
    assert levels - {0}  # the most precise readings cost seven times as much as the least precise

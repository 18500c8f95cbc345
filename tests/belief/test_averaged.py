"""The belief averaged over hyperparameters, and the intervals that are stated from it."""

import copy
import gc
import pickle
import subprocess
import sys
import weakref
from dataclasses import replace

import numpy as np
import pytest
from checkout import ROOT
from scipy.special import ndtr

import fieldbo
from fieldbo.agent.averaging import Averaging, _Average, drawn_at
from fieldbo.belief.averaged import (
    KEPT,
    AveragedSurface,
    WeightedHyperparameters,
    draw_weighted_thetas,
    weighted_around,
)
from fieldbo.belief.confidence import moments
from fieldbo.belief.hyperparameters import Hyperparameters
from fieldbo.belief.kernels import Matern52
from fieldbo.belief.marginal_likelihood import Likelihood, LogNormalPrior, fit_kernel
from fieldbo.belief.model import Model
from fieldbo.belief.posterior import Belief
from fieldbo.belief.question import Optimum
from fieldbo.belief.readings import Data
from fieldbo.belief.surface import Surface, joint_draws
from fieldbo.belief.value_scale import ValueScale
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.messages import Fitted, Query, from_plain, to_plain
from fieldbo.policies.optimum.myopic import EI
from fieldbo.testing import small_mission, small_world

LINE = np.linspace(0.0, 1.0, 40)[:, None]
PRIOR = LogNormalPrior(np.array([0.3, 1.0]), np.array([0.75, 0.75]))


def readings(n, seed=0):
    rng = np.random.default_rng(seed)
    sites = np.sort(rng.uniform(size=(n, 1)), axis=0)
    return sites, np.sin(7 * sites[:, 0]) + 0.1 * rng.standard_normal(n), np.full(n, 0.01)


def expectations(thetas, weights):
    """Return mean and standard deviation of the logs of length scale and variance."""
    mean = weights @ thetas
    return mean, np.sqrt(weights @ (thetas - mean) ** 2)


def on_a_grid(likelihood):
    """Return the posterior of the hyperparameters by brute force: points and weights."""
    z = np.linspace(-4.0, 4.0, 120)
    points = np.stack(np.meshgrid(z, z), axis=-1).reshape(-1, 2)
    thetas = np.log(PRIOR.medians) + points * PRIOR.sds
    logs = np.array([likelihood.value(t) for t in thetas]) - 0.5 * np.sum(points**2, axis=1)
    weights = np.exp(logs - logs.max())
    return thetas, weights / weights.sum()


@pytest.mark.parametrize("n", [2, 5, 15])
def test_weighted_hyperparameters_have_the_moments_of_their_posterior(n):
    sites, values, noise = readings(n)
    likelihood = Likelihood(Matern52([0.3]), sites, values, noise)
    peak = fit_kernel(Matern52([0.3]), sites, values, noise, PRIOR, np.random.default_rng(0)).kernel.theta
    mean, sd = expectations(*on_a_grid(likelihood))
    found = [
        expectations(*draw_weighted_thetas(likelihood, PRIOR, peak, np.random.default_rng(k)))
        for k in range(20)
    ]
    means = np.array([m for m, _ in found])
    assert np.abs(means.mean(axis=0) - mean).max() < 0.1 * sd.min()
    assert (means.std(axis=0) < 0.3 * sd).all()
    assert np.abs(np.mean([s for _, s in found], axis=0) / sd - 1).max() < 0.2


def test_hyperparameters_are_few_distinct_and_their_weights_sum_to_one():
    sites, values, noise = readings(30)
    likelihood = Likelihood(Matern52([0.3]), sites, values, noise)
    thetas, weights = draw_weighted_thetas(likelihood, PRIOR, np.log([0.3, 1.0]), np.random.default_rng(1))
    assert 1 < len(thetas) <= KEPT
    assert len(np.unique(thetas, axis=0)) == len(thetas)
    assert weights.sum() == pytest.approx(1.0)


def test_a_likelihood_without_its_gradient_is_the_same():
    sites, values, noise = readings(12)
    for noises in (noise, None):
        likelihood = Likelihood(Matern52([0.3]), sites, values, noises)
        theta = np.log([0.2, 1.5] if noises is not None else [0.2, 1.5, 0.02])
        assert likelihood.value(theta) == likelihood(theta)[0]


def averaged(n=6):
    """Return an averaged surface after n readings, two beliefs that it averages over, and their weights."""
    sites, values, noise = readings(n)
    kernels = [Matern52([0.1], 1.0), Matern52([0.6], 2.0)]
    surfaces = [Surface(Belief(k).condition_on(sites[:2], values[:2], noise[:2]), LINE) for k in kernels]
    surface = AveragedSurface(surfaces, [0.3, 0.7])
    surface.append(sites[2:], values[2:], np.array([noise[2:], noise[2:]]))
    beliefs = [Belief(k).condition_on(sites, values, noise) for k in kernels]
    before = [Belief(k).condition_on(sites[:2], values[:2], noise[:2]) for k in kernels]
    gains = [
        b.log_marginal_likelihood() - a.log_marginal_likelihood()
        for a, b in zip(before, beliefs, strict=True)
    ]
    weights = np.array([0.3, 0.7]) * np.exp(gains)
    return surface, beliefs, weights / weights.sum()


def test_readings_weight_the_beliefs_by_what_they_predicted():
    surface, _, weights = averaged()
    assert surface.weights == pytest.approx(weights, rel=1e-9)


def test_mean_variance_and_probability_are_those_of_the_mixture():
    surface, beliefs, w = averaged()
    means = np.array([b.mean(LINE) for b in beliefs])
    variances = np.array([b.variance(LINE) for b in beliefs])
    mean = w @ means
    assert surface.mean == pytest.approx(mean, abs=1e-9)
    assert surface.variance == pytest.approx(w @ (variances + means**2) - mean**2, abs=1e-9)
    assert surface.exceedance(0.2) == pytest.approx(w @ ndtr((means - 0.2) / np.sqrt(variances)), abs=1e-9)
    assert surface.belief.mean(LINE) == pytest.approx(mean, abs=1e-9)
    assert surface.belief.variance(LINE) == pytest.approx(surface.variance, abs=1e-9)
    assert surface.over(LINE[:7]).variance == pytest.approx(surface.variance[:7], abs=1e-9)


def test_mean_and_sd_under_a_log_are_those_of_the_middle_third_of_the_hyperparameters():
    scale = ValueScale("log", 0.5, 0.7)
    surfaces = [Surface(Belief(Matern52([0.3], variance)), LINE) for variance in (0.5, 1.0, 2.0, 900.0)]
    means, sds = np.transpose([scale.moments(s.mean, s.variance) for s in surfaces], (1, 0, 2))
    mean, sd = moments(
        AveragedSurface(surfaces, [0.3, 0.1, 0.3, 0.3]), scale
    )  # the middle: a fifth is the second
    expected = 0.2 * means[1] + 0.8 * means[2]
    np.testing.assert_allclose(mean, expected)
    ranked = np.sort(np.hypot(sds, means - expected), axis=0)
    np.testing.assert_allclose(sd, 0.2 * ranked[1] + 0.8 * ranked[2])


def test_a_tie_of_hyperparameters_is_their_middle_at_every_site():
    """Rounding does not choose the lower one here and the higher one there."""
    scale = ValueScale("log")
    surfaces = [Surface(Belief(Matern52([0.3], variance)), LINE) for variance in (0.5, 1.0, 2.0, 4.0)]
    even = moments(AveragedSurface(surfaces, [0.25] * 4), scale)
    nudged = moments(AveragedSurface(surfaces, [0.25 - 1e-15, 0.25, 0.25, 0.25 + 1e-15]), scale)
    between = [scale.moments(s.mean, s.variance)[0] for s in surfaces[1:3]]
    np.testing.assert_allclose(even[0], np.mean(between, axis=0))
    np.testing.assert_allclose(nudged, even)


def test_maps_of_few_readings_under_a_log_are_finite_and_near_the_readings():
    agent = fieldbo.Agent(learning(transform="log"))
    for value in (1.2, 3.0, 2.0):
        agent.tell(agent.ask().observed(value, noise_variance=0.01))
    mean, sd = moments(*agent.stated)
    assert mean.max() < 30.0
    assert np.isfinite(sd).all()


def test_gradients_are_those_of_the_mixture():
    belief, points, step = averaged()[0].belief, np.array([[0.23], [0.71]]), 1e-6
    moments, ahead, behind = (belief.with_gradients(points + d) for d in (0.0, step, -step))
    assert moments.mean_gradient[:, 0] == pytest.approx((ahead.mean - behind.mean) / (2 * step), rel=1e-5)
    by_variance = (ahead.variance - behind.variance) / (2 * step)
    assert moments.variance_gradient[:, 0] == pytest.approx(by_variance, rel=1e-4)


def test_draws_of_a_mixture_have_its_moments():
    surface = averaged()[0]
    draws = surface.draws(40_000, np.random.default_rng(3), apart=1e-9)
    assert draws.mean(axis=1) == pytest.approx(surface.mean, abs=0.03)
    assert draws.var(axis=1) == pytest.approx(surface.variance, abs=0.05)


def test_joint_draws_have_the_covariance_and_exact_variances():
    kernel = Matern52([0.3])
    covariance = kernel(LINE, LINE)
    rng = np.random.default_rng(5)
    draws = joint_draws(np.zeros(40), np.ones(40), lambda rows: covariance[rows], 60_000, rng, apart=1e-9)
    assert np.cov(draws) == pytest.approx(covariance, abs=0.03)


@pytest.mark.slow
def test_many_points_are_drawn_from_a_factor_of_low_rank():
    line, asked = np.linspace(0.0, 3.0, 1200)[:, None], []
    kernel = Matern52([0.5])

    def covariances(rows):
        asked.extend(rows)
        return kernel(line[rows], line)

    draws = joint_draws(
        np.zeros(1200), np.ones(1200), covariances, 20_000, np.random.default_rng(5), apart=0.01
    )
    assert len(asked) < 40
    assert draws.var(axis=1) == pytest.approx(1.0, abs=0.06)
    some = np.arange(0, 900, 60)
    assert np.cov(draws[some]) == pytest.approx(kernel(line[some], line[some]), abs=0.06)


def test_certain_points_are_drawn_as_they_are():
    draws = joint_draws(
        np.array([2.0, 3.0]), np.zeros(2), lambda rows: np.zeros((2, 2)), 5, np.random.default_rng(0)
    )
    assert np.array_equal(draws, np.repeat([[2.0], [3.0]], 5, axis=1))


# -- in a mission ------------------------------------------------------------------------------------------


def learning(**changes):
    mission = fieldbo.load_mission(
        "gp-lake", {"policy": {"kind": "straddle", "per_cost": True}, "agent": {"battery": 1e6}}
    )
    return replace(mission, model=Model(**changes))


def test_a_fit_records_a_weighted_set_that_a_record_gives_back():
    agent = fieldbo.Agent(learning())
    fits = []
    while len(fits) < 2:
        order = agent.ask()
        agent.tell(order.observed(float(agent.mission.world.truth(order.site[None])[0]), noise_variance=1e-6))
        fits = [event for event in agent.history if isinstance(event, Fitted)]
    weighted = fits[-1].weighted
    assert sum(weighted["weights"]) == pytest.approx(1.0)
    assert len(weighted["length_scales"]) == len(weighted["variances"]) == len(weighted["weights"]) <= KEPT
    assert from_plain(to_plain(fits[-1])) == fits[-1]


def played(agent, readings):
    """Let an agent take readings, and fit when a fit is due."""
    for _ in range(readings):
        order = agent.ask()
        value = float(agent.mission.world.truth(order.site[None])[0])
        agent.tell(order.observed(value, noise_variance=1e-6))
        refitted(agent)


def refitted(agent):
    while (fitted := agent.refit()) is not None:
        agent.tell(fitted)


def test_results_of_a_run_that_began_without_averaging_are_stated_from_the_fit():
    agent = fieldbo.Agent(learning(average=False))
    played(agent, 6)
    assert agent.online_model.fits[0].weighted is None
    assert agent.stated.surface is agent.surface
    played(agent, 2)
    agent.tell(agent.correction(2, 0.5))
    refitted(agent)
    assert agent.stated.surface is agent.surface


def test_a_copy_of_an_agent_states_the_same():
    agent = fieldbo.Agent(learning())
    played(agent, 7)
    copies = copy.deepcopy(agent), pickle.loads(pickle.dumps(agent))
    for other in copies:
        assert (other.stated.surface.mean == agent.stated.surface.mean).all()
        played(other, 1)
    played(agent, 1)
    assert all((other.stated.surface.mean == agent.stated.surface.mean).all() for other in copies)


def test_known_hyperparameters_are_not_averaged():
    agent = fieldbo.Agent(fieldbo.load_mission("gp-lake", {"policy": {"kind": "straddle", "per_cost": True}}))
    agent.tell(agent.ask().observed(0.3, noise_variance=1e-6))
    assert agent.stated.surface is agent.surface


def test_before_the_first_fit_hyperparameters_come_from_their_prior():
    agent = fieldbo.Agent(learning())
    agent.tell(agent.ask().observed(0.3, noise_variance=1e-6))
    surface = agent.stated.surface
    assert isinstance(surface, AveragedSurface)
    scales = [s.belief.kernel.base.length_scales[0] for s in surface.surfaces]
    assert max(scales) > 2 * min(scales)
    assert agent.stated.surface is surface  # until there is another reading


def test_the_memory_of_a_finished_run_is_freed_at_once():
    agent = fieldbo.Agent(learning())
    agent.tell(agent.ask().observed(0.3, noise_variance=1e-6))
    surfaces = [weakref.ref(surface) for surface in agent.stated.surface.surfaces]
    gc.disable()
    try:
        del agent
        assert not any(surface() for surface in surfaces)
    finally:
        gc.enable()


@pytest.mark.parametrize("changes", [{}, {"transform": "log", "mean": 1.0}], ids=["normal", "log"])
def test_what_is_stated_does_not_depend_on_how_often_it_was_asked_for(changes):
    often, once = fieldbo.Agent(learning(**changes)), fieldbo.Agent(learning(**changes))
    rng = np.random.default_rng(0)
    for _ in range(13):
        order = often.ask()
        value = np.exp(often.mission.world.truth(order.site[None])) + 0.3 * rng.standard_normal(1)
        for agent in (often, once):
            given = agent.issue(replace(order, id=None)) if agent is once else order
            agent.tell(given.observed(value, noise_variance=0.09))
            while (fitted := agent.refit()) is not None:
                agent.tell(fitted)
        assert np.isfinite(often.stated.surface.mean).all()
    assert np.array_equal(once.stated.surface.mean, often.stated.surface.mean)
    assert np.array_equal(once.stated.surface.weights, often.stated.surface.weights)


def test_hyperparameters_are_drawn_anew_while_each_reading_is_much_of_what_is_known():
    drawn = [drawn_at(5, n) for n in range(5, 13)]
    assert drawn == [5, 6, 7, 8, 8, 10, 10, 12]
    assert drawn_at(0, 4) == 4
    assert drawn_at(40, 59) == 40


def test_a_surprise_draws_hyperparameters_anew():
    """Forty readings of a flat background, then a plume: what explained the first does not explain both."""
    mission = small_mission(world=small_world((16, 16), noise_sd=0.05), battery=1e6, home=False)
    agent = fieldbo.Agent(replace(mission, model=Model(), question=Optimum(), policy=EI()))
    rng, sites = np.random.default_rng(0), agent.domain.sites
    background = rng.permutation(np.flatnonzero(sites.max(axis=1) < 11))[:45]
    plume = rng.permutation(np.flatnonzero(sites.min(axis=1) > 11))[:8]
    for site in sites[[*background, *plume]]:
        height = 20.0 * np.exp(-np.sum((site - 13.0) ** 2) / 8.0)
        order = agent.issue(Query(site))
        agent.tell(order.observed([height + 0.05 * rng.standard_normal()], noise_variance=0.05**2))
        if site.max() < 11:
            while (fitted := agent.refit()) is not None:
                agent.tell(fitted)
    agent.refit()
    weights = agent.stated.surface.weights
    assert 1.0 / np.sum(weights**2) > 2.0
    again = copy.deepcopy(agent)
    again.online_model._averaging = Averaging()
    assert np.array_equal(again.stated.surface.weights, weights)


@pytest.mark.parametrize(
    ("drawn", "now", "worn"),
    [([0.5, 0.5], [0.99, 0.01], True), ([0.5, 0.5], [0.6, 0.4], False), ([1.0], [1.0], False)],
)
def test_an_average_of_two_sets_is_worn_when_one_of_them_has_the_say(drawn, now, worn):
    members = tuple(Hyperparameters(Matern52([length]), ValueScale()) for length in (0.1, 0.5)[: len(drawn)])
    weighted = WeightedHyperparameters(members, np.array(drawn))
    surface = AveragedSurface([Surface(Belief(h.kernel), LINE) for h in members], now)
    assert _Average(None, None, 0, weighted, np.zeros(0, dtype=bool), surface).is_worn is worn


def test_the_prior_of_length_scales_is_at_least_the_spacing_of_sites():
    fine, coarse = (Domain.grid([Axis("x", "m", 0, 10)], [count]) for count in (51, 3))
    medians = []
    for domain in (fine, coarse):
        fit = Hyperparameters(Matern52([3.0]), ValueScale())
        data = Data(np.empty((0, 1)), np.empty(0), np.empty(0))
        rngs = [np.random.default_rng(seed) for seed in range(20)]
        sets = [weighted_around(fit, Model(), domain, data, rng, at_peak=False) for rng in rngs]
        lengths = [np.log(h.kernel.length_scales[0]) for s in sets for h in s.members]
        medians.append(np.exp(np.median(lengths)))
    assert medians == pytest.approx([2.0, 5.0], rel=0.15)


def test_the_declared_noise_is_the_prior_of_a_learned_one():
    sites, values, _ = readings(5)
    domain, model = Domain.grid([Axis("x", "m", 0, 1)], [11]), Model(noise="learned")
    learnt = []
    for declared in (1e-4, 0.1):
        data = Data(sites, values, np.full(5, declared))
        first = model.initial(domain, Optimum())
        h = model.fitted(first, domain, Optimum(), data, np.random.default_rng(0))
        learnt.append(h.noise_variance * h.scale.scale**2)
    assert learnt[0] < 0.01 < learnt[1]


def test_an_exact_reading_that_is_repeated_leaves_the_weights_as_they_are():
    agent = fieldbo.Agent(learning())
    sites, weights = agent.domain.sites[::223], []
    for k in (*range(10), 9):  # the next sets are drawn after 12 readings
        query = agent.issue(Query(sites[k]))
        agent.tell(query.observed(np.sin(k), noise_variance=0.0))
        while (fitted := agent.refit()) is not None:
            agent.tell(fitted)
        weights.append(agent.stated.surface.weights)
    np.testing.assert_allclose(weights[-1], weights[-2], atol=1e-3)


@pytest.mark.parametrize(("readings", "corrected"), [(13, 7), pytest.param(46, 2, marks=pytest.mark.slow)])
def test_the_average_after_a_correction_is_that_of_the_right_reading(readings, corrected):
    right, wrong = fieldbo.Agent(learning()), fieldbo.Agent(learning())
    for k in range(readings):
        order = right.ask()
        value = float(right.mission.world.truth(order.site[None])[0])
        right.tell(order.observed(value, noise_variance=1e-6))
        other = wrong.issue(replace(order, id=None))
        wrong.tell(other.observed(9.0 if k == corrected else value, noise_variance=1e-6))
        refitted(right)
        refitted(wrong)
        assert np.isfinite(wrong.stated.surface.mean).all()
    place = right.issued[f"run/{corrected}"].order.site
    wrong.correct(corrected, float(right.mission.world.truth(place[None])[0]))
    refitted(wrong)
    weighted = [[fit.weighted is not None for fit in a.online_model.fits] for a in (right, wrong)]
    assert weighted[0] == weighted[1]
    assert wrong.stated.surface.mean == pytest.approx(right.stated.surface.mean, abs=1e-9)


@pytest.mark.slow
def test_averaged_intervals_hold_far_more_often_than_those_of_fits(tmp_path):
    """A small version of the study of benchmarks/interval_coverage.py."""
    study = ROOT / "benchmarks" / "interval_coverage.py"
    held = {}
    for flag in ((), ("--fits",)):
        command = [sys.executable, study, "--only", "level set, straddle per cost, learned", *flag]
        command += ["--runs", "8", "--looks", "10", "--jobs", "1", "--out", tmp_path / f"{len(flag)}.csv"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        held[flag] = float(done.stdout.splitlines()[-1].split("|")[4].split("%")[0])
    assert held[()] >= 75 > held["--fits",]


def test_no_averaged_probability_exceeds_one():
    """Weights that sum to one up to rounding, and sites that are certainly above the threshold."""
    belief = Belief(Matern52(1.0, np.array([0.3])))
    surfaces = [Surface(belief, np.linspace(0, 1, 50)[:, None]) for _ in range(7)]
    rng = np.random.default_rng(0)
    for _ in range(50):
        weights = rng.dirichlet(np.ones(7))
        p = AveragedSurface(surfaces, weights).exceedance(-50.0)
        assert p.max() <= 1.0
        assert p.min() > 0.999999

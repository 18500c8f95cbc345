"""Sums of the look-ahead: the fast ones agree with the literal ones, and lead to the same sites."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from fieldbo.belief.kernels import Matern32, Matern52, SquaredExponential
from fieldbo.belief.lookahead import Lookahead
from fieldbo.belief.model import Model
from fieldbo.belief.posterior import Belief
from fieldbo.belief.question import LevelSet, Optimum, ShareOfMaximum
from fieldbo.belief.surface import Surface
from fieldbo.costs.base import Unit
from fieldbo.costs.travel import Transect
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.sensor import Level, Sensor
from fieldbo.messages import Query
from fieldbo.mission.mission import Mission
from fieldbo.mission.vehicle_spec import VehicleSpec
from fieldbo.policies.level_set.truvar import Anticipation, TruVaR
from fieldbo.runs.runner import run
from fieldbo.world.fields.gp_draw import GPDraw
from fieldbo.world.world import Quantity, World


class Rippled(SquaredExponential):
    """A custom kernel, which no compiled loop supports."""

    def _shape(self, r2):
        e = np.exp(-0.5 * r2)
        return e * np.cos(0.1 * np.sqrt(r2)) ** 2, e


KERNELS = [
    SquaredExponential([0.3, 0.2], 2.0),
    Matern32([0.3, 0.2], 2.0),
    Matern52([0.3, 0.2], 2.0),
    Matern52([0.3, 0.2]) + SquaredExponential([0.1, 0.1], 0.2),
    Rippled([0.3, 0.2]),
]
GRID = np.stack(np.meshgrid(np.linspace(0, 1, 21), np.linspace(0, 1, 19)), axis=-1).reshape(-1, 2)
N = len(GRID)


def surface_of(kernel, n=30, memory_bytes=None, seed=0):
    rng = np.random.default_rng(seed)
    belief = Belief(kernel)
    if n:
        belief = belief.condition_on(rng.random((n, 2)), rng.standard_normal(n), 1e-4)
    return Surface(belief, GRID, memory_bytes)


def literal_gains(surface, members, noise, floor):
    covariance = surface.belief.covariance(GRID, GRID)
    v = np.diag(covariance)
    out = np.empty(noise.shape)
    for x in range(N):
        for level in range(noise.shape[1]):
            after = v - covariance[x] ** 2 / (noise[x, level] + v[x])
            out[x, level] = np.sum(np.maximum(v, floor)[members] - np.maximum(after, floor)[members])
    return out


NOISE = np.stack([np.full(N, 1e-4), 0.05 + 0.1 * GRID[:, 0]], axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS, ids=["se", "matern32", "matern52", "sum", "own"])
@pytest.mark.parametrize("memory_bytes", [None, 0.0], ids=["kept", "anew"])
@pytest.mark.parametrize("n", [0, 30])
def test_gains_agree_with_the_literal_sums_within_their_stated_error(kernel, memory_bytes, n):
    surface = surface_of(kernel, n, memory_bytes)
    members = np.random.default_rng(1).random(N) < 0.6
    for floor in (0.0, 0.05):
        exact = literal_gains(surface, members, NOISE, floor)
        actual = surface.truncated_gains(members, NOISE, floor)
        assert np.all(np.abs(actual.value - exact) <= actual.error + 1e-12)
        assert actual.error.max() < 1e-3 * exact.max()


@settings(max_examples=examples(30), deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(0, 60),
    steps=st.integers(1, 12),
    noise_sd=st.sampled_from([0.0, 1e-3, 0.3]),
    anew=st.booleans(),
)
def test_the_error_bound_holds_as_readings_come_and_members_go(seed, n, steps, noise_sd, anew):
    rng = np.random.default_rng(seed)
    surface = surface_of(KERNELS[seed % 3], n, 0.0 if anew else None, seed)
    for _ in range(steps):
        surface.append(rng.random((1, 2)), rng.standard_normal(1), noise_sd**2)
        members = rng.random(N) < rng.random()
        noise = np.full((N, 1), noise_sd**2)
        floor = float(10.0 ** rng.uniform(-6, 0))
        actual = surface.truncated_gains(members, noise, floor)
        exact = literal_gains(surface, members, np.maximum(noise, 1e-300), floor)
        assert np.all(np.abs(actual.value - exact) <= actual.error + 1e-9)


def test_the_digits_do_not_depend_on_the_number_of_threads():
    import numba

    before = numba.get_num_threads()
    actual = {}
    try:
        for threads in {1, before}:
            numba.set_num_threads(threads)
            for memory_bytes in (None, 0.0):
                surface = surface_of(KERNELS[2], 30, memory_bytes)
                gains = surface.truncated_gains(np.ones(N, dtype=bool), NOISE, 0.01)
                actual.setdefault(memory_bytes, []).append(gains.value)
    finally:
        numba.set_num_threads(before)
    for values in actual.values():
        assert all(np.array_equal(values[0], other) for other in values)


def test_covariances_are_not_kept_without_enough_memory():
    small, large = (Lookahead(KERNELS[0], GRID, most_bytes=b) for b in (4 * N * N - 1, 4 * N * N))
    for lookahead in (small, large):
        lookahead.gains(np.empty((0, N)), np.full(N, 2.0), np.arange(N), NOISE, 0.1)
    assert small._kept is None
    assert large._kept is not None


def test_a_copy_is_independent():
    surface = surface_of(KERNELS[2])
    members = np.ones(N, dtype=bool)
    before = surface.truncated_gains(members, NOISE, 0.01)
    other = surface.believing([0.5, 0.5], 1e-4)
    assert not np.allclose(other.truncated_gains(members, NOISE, 0.01).value, before.value)
    again = surface.truncated_gains(members, NOISE, 0.01)
    np.testing.assert_array_equal(again.value, before.value)


@pytest.mark.parametrize("unit", [1e-24, 1e-8, 1e8, 1e24])
@pytest.mark.parametrize("memory_bytes", [None, 0.0], ids=["kept", "anew"])
def test_the_unit_of_the_values_does_not_matter(unit, memory_bytes):
    plain, other = (surface_of(Matern52([0.3, 0.2], v), 0, memory_bytes) for v in (1.0, unit))
    rng = np.random.default_rng(0)
    for _ in range(5):
        x, y = rng.random((1, 2)), rng.standard_normal(1)
        plain.append(x, y, 1e-4)
        other.append(x, y * np.sqrt(unit), 1e-4 * unit)
    members = np.ones(N, dtype=bool)
    expected = plain.truncated_gains(members, NOISE, 0.01)
    actual = other.truncated_gains(members, NOISE * unit, 0.01 * unit)
    np.testing.assert_allclose(actual.value / unit, expected.value, rtol=1e-4)
    np.testing.assert_allclose(actual.error / unit, expected.error, rtol=1e-2)


@pytest.mark.parametrize("kernel", KERNELS, ids=["se", "matern32", "matern52", "sum", "own"])
@pytest.mark.parametrize("rows", [3, 200])
def test_exact_gains_are_the_literal_sums(kernel, rows):
    surface = surface_of(kernel)
    members = np.random.default_rng(1).random(N) < 0.6
    at = np.random.default_rng(2).permutation(N)[:rows]
    exact = literal_gains(surface, members, NOISE, 0.02)[at, 1]
    actual = surface.exact_gains(at, NOISE[at, 1], members, 0.02)
    np.testing.assert_allclose(actual, exact, rtol=1e-9, atol=1e-12)


def test_the_error_bound_holds_for_updates_lost_to_rounding():
    surface = surface_of(KERNELS[2], 0)
    members, noise = np.ones(N, dtype=bool), np.full((N, 1), 1e6)
    rng = np.random.default_rng(0)
    for _ in range(400):
        surface.append(rng.random((1, 2)), [0.0], 2e6)
        actual = surface.truncated_gains(members, noise, 0.0)
    exact = literal_gains(surface, members, noise, 0.0)
    assert np.all(np.abs(actual.value - exact) <= actual.error)


def test_copies_of_copies_respect_the_memory_limit():
    surface = surface_of(KERNELS[2], 5, memory_bytes=2.5 * 4 * N * N)
    members = np.ones(N, dtype=bool)
    held = []
    for _ in range(4):
        surface.truncated_gains(members, NOISE, 0.0)
        held.append(surface.lookahead._kept is not None)
        surface = surface.believing([0.5, 0.5], 1e-4)
    assert held == [True, True, False, False]


def test_a_site_that_counts_as_classified_brings_no_further_gain():
    surface = surface_of(KERNELS[2])
    members = np.ones(N, dtype=bool)
    first = np.ones((N, 1))
    anticipation = Anticipation(
        members, 1e-4 * first, first, first > 0, beta=4.0, eta=0.0, leaves_below=2.0 * surface.variance
    )
    np.testing.assert_allclose(anticipation.scores(surface), 0.0, atol=1e-12)


def literal_anticipation(surface, members, noise, leaves, beta, eta):
    covariance = surface.belief.covariance(GRID, GRID)
    v = np.diag(covariance)

    def left(variance):
        return np.where(variance < leaves, 0.0, np.maximum(beta * variance, eta**2))[members].sum()

    after = [v - covariance[x] ** 2 / (noise[x] + v[x]) for x in range(N)]
    return np.array([left(v) - left(a) for a in after])


def test_anticipation_credits_sites_that_a_reading_would_classify():
    surface = surface_of(KERNELS[2])
    rng = np.random.default_rng(3)
    members, leaves = rng.random(N) < 0.5, surface.variance * rng.uniform(0.2, 1.5, N)
    first = np.ones((N, 1))
    actual = Anticipation(members, 1e-4 * first, first, first > 0, beta=4.0, eta=0.3, leaves_below=leaves)
    expected = literal_anticipation(surface, members, np.full(N, 1e-4), leaves, 4.0, 0.3)
    np.testing.assert_allclose(actual.scores(surface)[:, 0], expected, rtol=1e-8, atol=1e-10)


# -- whole runs -------------------------------------------------------------------------------------------


def world_of(cost, draw, sensor, length_scales=(200.0, 3.0), kernel="matern52"):
    domain = Domain.grid([Axis("along", "m", 0, 1400), Axis("depth", "m", 0, 18, "down")], (20, 16))
    field = GPDraw(length_scales, kernel).make(domain, draw)
    return World("w", "", domain, cost, "s", sensor, Quantity(), field, start=domain.sites[5])


LEVELS = Sensor(levels=(Level(1e-6, 15.0), Level(1e-3, 10.0), Level(0.05, 2.0)))
RUNS = {
    "travel": (Transect(), Sensor(1e-3), LevelSet(0.4), TruVaR(), "matern52"),
    "unit cost": (Unit(), Sensor(1e-3), LevelSet(0.4), TruVaR(), "matern32"),
    "noisy, sets afresh": (Transect(), Sensor(0.2), LevelSet(0.4), TruVaR(), "matern52"),
    "noise growing with depth": (Unit(), Sensor(0.01, slope=(0, 0.03)), LevelSet(0.4), TruVaR(), "matern52"),
    "three levels": (Unit(sampling=0.0), LEVELS, LevelSet(0.4), TruVaR(), "se"),
    "optimum": (Unit(), Sensor(1e-3), Optimum(), TruVaR(a=0.5, answered_at=0), "matern52"),
    "share of the maximum": (Transect(), Sensor(1e-3), ShareOfMaximum(0.6), TruVaR(), "matern52"),
    "pure variance": (Transect(), Sensor(1e-3), LevelSet(0.4), TruVaR(eta=0.0), "matern52"),
}


class Literal:
    """Algorithm 1 as printed: everything from scratch at every step, site by site."""

    def __init__(self, mission):
        self.mission, self.world = mission, mission.world
        self.sites = self.world.domain.sites
        self.policy, self.question = mission.policy, mission.question
        self.kernel = mission.model.initial(self.world.domain, self.question).kernel
        self.levels = range(self.world.sensor.settings)
        self.a = self.policy.a
        self.pairs = len(self.sites) * len(self.levels)
        noise = [self.world.sensor.variance(self.sites, k) for k in self.levels]
        self.monotone = bool(np.all(np.array(noise) <= 1e-4))
        self.M = np.ones(len(self.sites), dtype=bool)
        self.i, self.beta, self.eta = 1, self.a * np.log(self.pairs), self.policy.eta
        self.X, self.y, self.v = [], [], []

    def posterior(self):
        X, y, v = np.array(self.X), np.array(self.y), np.array(self.v)
        inverse = np.linalg.inv(self.kernel(X, X) + np.diag(np.maximum(v, 1e-10)))
        cross = self.kernel(X, self.sites)
        covariance = self.kernel(self.sites, self.sites) - cross.T @ inverse @ cross
        return cross.T @ inverse @ y, covariance

    def tell(self, site, value, noise):
        self.X.append(site)
        self.y.append(value)
        self.v.append(noise)
        mu, covariance = self.posterior()
        s = np.sqrt(np.maximum(np.diag(covariance), 0))
        u, low = mu + np.sqrt(self.beta) * s, mu - np.sqrt(self.beta) * s
        before = self.M if self.monotone else np.ones_like(self.M)
        if isinstance(self.question, Optimum):
            self.M = before & (u >= low[before].max())
        else:
            top, bottom = (self.question.level(x.max()) for x in (u, low))
            self.M = before & (u >= bottom) & (low <= top)
        t = len(self.y)
        while self.M.any() and self.eta > 0 and np.sqrt(self.beta) * s[self.M].max() <= self.eta:
            self.i, self.eta = self.i + 1, self.eta * self.policy.r
            self.beta = self.a * np.log(self.pairs * (t + 1) ** 2)

    def choice(self, position, spendable):
        mu, covariance = self.posterior()
        v = np.diag(covariance)
        members = self.M.copy()
        if isinstance(self.question, ShareOfMaximum):
            s = np.sqrt(np.maximum(v, 0))
            u, low = mu + np.sqrt(self.beta) * s, mu - np.sqrt(self.beta) * s
            members |= u >= low.max()
        scores = np.full((len(self.sites), len(self.levels)), -np.inf)
        for level in self.levels:
            cost = self.world.cost.to(position, self.sites, level=level)
            noise = self.world.sensor.variance(self.sites, level)
            able = cost <= spendable
            after = v - covariance**2 / (noise + v)[:, None]
            now = np.maximum(self.beta * v, self.eta**2)[members]
            then = np.maximum(self.beta * after, self.eta**2)[:, members]
            scores[able, level] = (np.sum(now - then, axis=1) / cost)[able]
        best = scores.max()
        return divmod(int(np.argmax(scores >= best - 1e-9 * abs(best))), len(self.levels))


@pytest.mark.each_choice
@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("memory_gb", [None, 0.0], ids=["kept", "anew"])
def test_a_full_run_visits_the_same_sites_as_a_literal_implementation(name, memory_gb):
    cost, sensor, question, policy, kernel = RUNS[name]
    world = world_of(cost, 3, sensor, kernel=kernel)
    model = Model(
        kernel=kernel, learn=False, length_scales=(200.0, 3.0), variance=1.0, mean=0.0, memory_gb=memory_gb
    )
    battery = {Transect: 3000.0, Unit: 40.0}[type(cost)] * (6 if len(sensor.levels) else 1)
    mission = Mission("m", world, question, policy, model, (VehicleSpec(battery, world.start),), max_steps=45)
    result = run(mission)
    literal, position, spent = Literal(mission), world.start, 0.0
    assert len(result.queries) > 15
    for n, (query, seen) in enumerate(zip(result.queries, result.observations, strict=True)):
        assert isinstance(query, Query)
        if n:
            site, level = literal.choice(position, battery - spent)
            assert (site, level) == (world.domain.nearest(query.site), query.level), f"order {n}"
        literal.tell(seen.sites[0], seen.values[0], seen.noise_variances[0])
        position, spent = seen.position, spent + seen.cost

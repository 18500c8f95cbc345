"""Rollouts: the fast values equal those of a literal loop over first steps, fantasies and steps."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from tiers import examples

from fieldbo.belief.kernels import Kernel, Matern32, Matern52, SquaredExponential
from fieldbo.belief.posterior import Belief
from fieldbo.belief.surface import Surface
from fieldbo.costs.base import CostModel, Limit
from fieldbo.costs.travel import Euclidean, Flight
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.obstacles import Obstacle
from fieldbo.policies.travel.one_step import TravelScore
from fieldbo.policies.travel.rollout import Rollout, Simulation, fantasy_draws, rollout_values

pytestmark = pytest.mark.each_choice

SCORES = ["dist-ucb", "ucb", "ei", "ei-per-cost"]
CONVENTIONS = ["one_plus", "floor", "exclude", "literal"]
BUDGET = 50  # steps that stand for "until nothing can be paid for"


# -- the literal form: eqs. 10 and 12 to 16 of Liu et al. 2023, path by path -----------------------------


@dataclass(frozen=True, eq=False)
class Case:
    """A decision: belief, candidates, position and score."""

    kernel: Kernel
    X: np.ndarray
    y: np.ndarray
    noise: np.ndarray
    sites: np.ndarray
    site_noise: np.ndarray
    position: np.ndarray
    cost: CostModel
    base: TravelScore = field(default_factory=lambda: TravelScore(d0=0.5))
    limits: tuple[Limit, ...] = ()
    steps: int = 3
    draws: np.ndarray = field(default_factory=lambda: np.random.default_rng(0).standard_normal((4, BUDGET)))
    may_stay: bool = True
    fantasy_noise: bool = True
    best: float = 0.3
    first: np.ndarray | None = None
    first_noise: np.ndarray | None = None

    def fast(self, leading_of=None):
        belief = Belief(self.kernel)
        if len(self.X):
            belief = belief.condition_on(self.X, self.y, self.noise)
        paths = Simulation(
            self.base,
            self.cost,
            self.limits,
            self.steps,
            self.draws,
            may_stay=self.may_stay,
            fantasy_noise=self.fantasy_noise,
        )
        surface = Surface(belief, self.sites)
        first = {}
        if self.first is not None:
            first = {"first": Surface(surface.belief, self.first), "first_noise": self.first_noise}
        return rollout_values(
            paths, surface, self.site_noise, self.position, self.best, leading_of=leading_of, **first
        )

    def literal(self):
        first = self.sites if self.first is None else self.first
        noise = self.site_noise if self.first_noise is None else self.first_noise
        fantasies = self.draws if self.steps > 1 else self.draws[:1]
        values = [
            np.mean([_walk(self, x, v, z) for z in fantasies], axis=0)
            for x, v in zip(first, noise, strict=True)
        ]
        return np.transpose(values)


def _posterior(case, X, y, noise, points):
    prior = case.kernel.diagonal(points)
    if not len(X):
        return np.zeros(len(points)), prior
    K, C = case.kernel(X, X) + np.diag(noise), case.kernel(X, points)
    return C.T @ np.linalg.solve(K, y), np.maximum(prior - np.sum(C * np.linalg.solve(K, C), axis=0), 0.0)


def _scores(case, mu, s, at, points, best):
    score, d = case.base, case.cost.travel(at, points)
    price = d + case.cost.sampling_cost(points)
    if score.name == "ucb":
        return mu + score.kappa * s
    if score.name == "dist-ucb":
        with np.errstate(divide="ignore"):
            share = {
                "one_plus": 1.0 / (1.0 + d / score.d0),
                "floor": 1.0 / np.maximum(d, score.d0),
            }.get(score.convention, 1.0 / d)
        width = score.kappa * s
        scores = np.array([m + u * w if u > 0 else m for m, u, w in zip(mu, width, share, strict=True)])
        return np.where(d > 0, scores, -np.inf) if score.convention == "exclude" else scores
    z = (mu - best) / s
    improvement = (mu - best) * norm.cdf(z) + s * norm.pdf(z)
    if score.name == "ei":
        return improvement
    return improvement / (price if score.priced else np.maximum(d, score.d0))


def _able(case, at, spent, points):
    able = np.ones(len(points), dtype=bool)
    for limit, before in zip(case.limits, spent, strict=True):
        able &= before + limit.going(at, points) + limit.back(points) <= limit.left
    return able


def _walk(case, x, noise_x, z):
    """Return the summed scores and the travel of the path that begins at x, under the draws z."""
    X, y, noise = case.X, case.y, case.noise
    at, best, spent = case.position, case.best, [0.0] * len(case.limits)
    mu, variance = _posterior(case, X, y, noise, x[None])
    value = _scores(case, mu, np.sqrt(variance), at, x[None], best)[0]
    if value == -np.inf or not _able(case, at, spent, x[None])[0]:
        return -np.inf, 0.0
    travel = case.cost.travel(at, x[None])[0]
    for k in range(case.steps - 1):
        spent = [s + limit.going(at, x[None])[0] for s, limit in zip(spent, case.limits, strict=True)]
        mu, variance = _posterior(case, X, y, noise, x[None])
        reading = mu[0] + np.sqrt(variance[0] + noise_x * case.fantasy_noise) * z[k]
        X, y, noise = np.vstack([X, x]), np.append(y, reading), np.append(noise, noise_x)
        at, best = x, max(best, reading)

        mu, variance = _posterior(case, X, y, noise, case.sites)
        scores = _scores(case, mu, np.sqrt(variance), at, case.sites, best)
        able = _able(case, at, spent, case.sites)
        if not case.may_stay:
            able &= case.cost.to(at, case.sites) > 0
        scores[~able] = -np.inf
        highest = scores.max()
        if highest == -np.inf:
            break
        if case.base.improves and highest < 1e-100:
            return np.nan, np.nan  # rounding chooses among improvements of next to nothing
        close = 1e-12 * abs(highest) if np.isfinite(highest) else 0.0
        chosen = int(np.argmax(scores >= highest - close))
        value, travel = value + scores[chosen], travel + case.cost.travel(at, case.sites)[chosen]
        x, noise_x = case.sites[chosen], case.site_noise[chosen]
    return value, travel


def check(case, tolerance=1e-9):
    """Compare all values and travel; return the fast ones."""
    value, travel = case.literal()
    fast = case.fast()
    sure, finite = ~np.isnan(value), np.isfinite(value)
    assert sure.any() or case.base.improves
    np.testing.assert_array_equal(fast.value[sure & ~finite], value[sure & ~finite])
    unit = np.abs(value[finite]).max(initial=1e-300)
    assert np.abs(fast.value[finite] - value[finite]).max(initial=0.0) <= tolerance * unit
    longest = travel[sure].max(initial=1.0)
    assert np.abs(fast.travel - travel)[sure].max(initial=0.0) <= tolerance * longest
    return fast


# -- cases -----------------------------------------------------------------------------------------------


def box(d, **what):
    return Domain.box([Axis(name, "m", 0.0, 1.0) for name in "xyz"[:d]], 8, **what)


def limits_of(cost, home=None, battery=None, seconds=None):
    """Return the limits of an agent with that battery and time, which must return home."""

    def back(travel):
        if home is None:
            return lambda sites: np.zeros(len(sites))
        return lambda sites: travel(sites, home[None])[:, 0]

    every = (
        Limit("battery", battery or 0.0, cost.to, back(cost.travel)),
        Limit("time", seconds or 0.0, cost.duration_s, back(cost.travel_s)),
    )
    return tuple(limit for limit, left in zip(every, (battery, seconds), strict=True) if left is not None)


def case_of(seed=0, n=4, N=12, d=2, kernel=None, cost=None, domain=None, **what):
    rng = np.random.default_rng(seed)
    domain = box(d) if domain is None else domain
    sites = rng.random((N, d))
    sites = sites[domain.contains(sites)]
    case = Case(
        kernel=kernel or Matern52(rng.uniform(0.15, 0.6, d), 1.5),
        X=rng.random((n, d)),
        y=rng.standard_normal(n),
        noise=rng.uniform(1e-3, 0.1, n),
        sites=sites,
        site_noise=rng.uniform(1e-3, 0.2, len(sites)),
        position=sites[rng.integers(len(sites))],
        cost=(cost or Euclidean(rate=1.0, sampling=0.05)).within(domain),
        draws=rng.standard_normal((4, BUDGET)),
    )
    return replace(case, **what)


def with_limits(case, **what):
    return replace(case, limits=limits_of(case.cost, **what))


def base_of(score, convention="one_plus", **what):
    return TravelScore(score, **{"kappa": 2.0, "convention": convention, "d0": 0.3, **what})


BASES = [base_of("dist-ucb", c) for c in CONVENTIONS] + [base_of(r) for r in SCORES[1:]]
BASES.append(base_of("ei-per-cost", priced=True))
each_base = pytest.mark.parametrize(
    "base", BASES, ids=lambda b: f"{b.name}-{b.convention}{'-priced' * b.priced}"
)
COSTS = {
    "straight": Euclidean(seconds_per_unit=0.7, rate=1.3, sampling=0.05),
    "free samples": Euclidean(rate=1.3, sampling=0.0),
    "by axis": Euclidean(rate=1.3, sampling=0.05, axis_rates=(0.5, 2.0)),
    "flight": Flight(speed=0.5, acceleration=0.8, power=3600.0, hover_power=3600.0, hover_s=0.1, climb=900.0),
}


# -- the fast values are the literal ones ----------------------------------------------------------------


@each_base
@pytest.mark.parametrize("steps", [1, 2, 3, 4])
def test_values_are_the_literal_ones_at_every_horizon(base, steps):
    fast = check(case_of(seed=steps, base=base, steps=steps))
    assert np.isfinite(fast.travel).all()


@each_base
@pytest.mark.parametrize("home", [None, np.array([0.1, 0.9])], ids=["anywhere", "home"])
@pytest.mark.parametrize("steps", [2, 4, BUDGET])
def test_values_are_the_literal_ones_under_a_battery(base, home, steps):
    case = with_limits(
        case_of(seed=steps, base=base, steps=steps, may_stay=steps < BUDGET, N=10), home=home, battery=1.6
    )
    fast = check(case)
    assert fast.value.max() > -np.inf


@each_base
@pytest.mark.parametrize("kind", COSTS)
@pytest.mark.parametrize("seconds", [None, 1.3])
def test_values_are_the_literal_ones_for_every_cost_with_battery_and_time(base, kind, seconds):
    base = replace(base, priced=base.priced and kind != "free samples")
    case = case_of(seed=7, base=base, cost=COSTS[kind], N=9)
    check(with_limits(case, home=np.array([0.5, 0.1]), battery=1.7, seconds=seconds))


@pytest.mark.parametrize("kind", COSTS)
@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("cut", [False, True], ids=["round it", "cut in two"])
def test_values_are_the_literal_ones_round_obstacles(kind, score, cut):
    wall = Obstacle("wall", (0.45, -0.1), (0.55, 1.1 if cut else 0.7))
    case = case_of(seed=3, base=base_of(score), cost=COSTS[kind], domain=box(2, obstacles=[wall]), N=14)
    fast = check(with_limits(case, home=case.position, battery=2.5, seconds=4.0))
    beyond = np.isinf(case.cost.travel(case.position, case.sites))
    assert beyond.any() == cut
    assert np.all(fast.value[beyond] == -np.inf)
    assert np.all(fast.travel[beyond] == 0.0)


@pytest.mark.parametrize("kind", ["straight", "flight"])
def test_values_are_the_literal_ones_round_a_box_in_space(kind):
    tower = Obstacle("tower", (0.3, 0.3, -0.1), (0.7, 0.7, 0.8))
    case = case_of(seed=2, cost=COSTS[kind], domain=box(3, obstacles=[tower]), d=3, N=14)
    bound = with_limits(case, home=case.position, battery=3.0, seconds=3.5)
    ways, lines = (c.travel(case.sites, case.sites) for c in (case.cost, COSTS[kind].within(box(3))))
    assert (ways > lines + 1e-6).any()
    check(bound)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("kind", [SquaredExponential, Matern32, Matern52])
@pytest.mark.parametrize("n", [0, 1, 60])
def test_values_are_the_literal_ones_for_every_kernel_dimension_and_number_of_readings(kind, d, n):
    for score in ("dist-ucb", "ei"):
        case = case_of(seed=n + d, n=n, d=d, N=8, kernel=kind([0.3] * d, 2.0), base=base_of(score))
        check(with_limits(case, home=np.zeros(d), battery=2.0))


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("n", [0, 6])
def test_values_are_the_literal_ones_for_a_sum_and_a_product_of_kernels(score, n):
    smooth, rough = SquaredExponential([0.5, 0.4]), Matern32([0.2, 0.3], 0.4)
    for kernel in (smooth + rough, smooth * rough):
        check(case_of(seed=n, n=n, kernel=kernel, base=base_of(score)))


@each_base
@pytest.mark.parametrize("kind", ["straight", "flight"])
def test_first_steps_need_not_be_candidates(base, kind):
    rng = np.random.default_rng(5)
    case = case_of(seed=5, base=base, cost=COSTS[kind], first=rng.random((7, 2)), first_noise=rng.random(7))
    fast = check(with_limits(case, home=np.array([0.5, 0.1]), battery=1.8, seconds=2.0))
    assert fast.value.shape == (7,)


def test_first_steps_that_are_candidates_have_the_values_of_candidates():
    for kernel in (None, Matern52([0.3, 0.3]) + Matern32([0.1, 0.5])):
        case = with_limits(case_of(seed=2, kernel=kernel, N=30), home=np.zeros(2), battery=1.9)
        apart = replace(case, first=case.sites[4:9], first_noise=case.site_noise[4:9]).fast()
        np.testing.assert_allclose(apart.value, case.fast().value[4:9], rtol=1e-12)
        np.testing.assert_allclose(apart.travel, case.fast().travel[4:9], rtol=1e-12)


@pytest.mark.parametrize("fantasies", [1, 2, 7, 32, 33])
@pytest.mark.parametrize("score", ["dist-ucb", "ei"])
def test_values_are_the_literal_ones_for_any_number_of_fantasies(fantasies, score):
    draws = fantasy_draws(fantasies, 3, np.random.default_rng(fantasies))
    check(case_of(seed=fantasies, draws=draws, base=base_of(score), N=7))


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("N", [1, 127, 128, 129, 300])
def test_values_are_the_literal_ones_however_many_sites_there_are(score, N):
    case = case_of(seed=N, N=N, base=base_of(score), draws=np.array([[-0.8, 0.4], [1.1, -0.3]]))
    check(with_limits(case, home=np.zeros(2), battery=2.2))


@pytest.mark.slow  # any number of sites, above, is the guard
@pytest.mark.parametrize("score", ["dist-ucb", "ei-per-cost"])
def test_values_are_the_literal_ones_when_paths_visit_more_sites_than_are_kept(score):
    import numba

    before = numba.get_num_threads()
    numba.set_num_threads(1)  # each thread remembers on its own
    try:
        case = case_of(
            seed=1,
            n=3,
            N=900,
            kernel=Matern52([0.02, 0.02]),
            base=base_of(score, "floor", kappa=3.0, d0=0.01),
            draws=np.array([[-0.8, 0.4]]),
        )
        nearest = case.cost.travel(case.sites, case.sites) + 9.0 * np.eye(900)
        assert len(np.unique(nearest.argmin(axis=1))) > 512
        check(replace(case, best=-0.5))
    finally:
        numba.set_num_threads(before)


@pytest.mark.parametrize("score", SCORES)
def test_values_are_the_literal_ones_without_noise_in_fantasies(score):
    plain = case_of(seed=4, base=base_of(score))
    silent = check(replace(plain, fantasy_noise=False))
    assert np.abs(silent.value - plain.fast().value).max() > 1e-6


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_values_are_the_literal_ones_whatever_the_unit_of_the_readings(score, unit):
    plain = case_of(seed=6, base=base_of(score), kernel=Matern52([0.3, 0.4]))
    scaled = replace(
        plain,
        kernel=Matern52([0.3, 0.4], unit**2),
        y=unit * plain.y,
        noise=unit**2 * plain.noise,
        site_noise=unit**2 * plain.site_noise,
        best=unit * plain.best,
    )
    fast = check(scaled)
    np.testing.assert_allclose(fast.value / unit, replace(plain, kernel=Matern52([0.3, 0.4])).fast().value)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_values_are_the_literal_ones_whatever_the_unit_of_the_axes(score, unit):
    plain = with_limits(case_of(seed=6, base=base_of(score, d0=0.3)), home=np.zeros(2), battery=1.9)
    axes = [Axis(name, "um", 0.0, unit) for name in "xy"]
    scaled = replace(
        plain,
        kernel=replace(plain.kernel, length_scales=unit * plain.kernel.length_scales),
        X=unit * plain.X,
        sites=unit * plain.sites,
        position=unit * plain.position,
        cost=replace(plain.cost, rate=1.0 / unit).within(Domain.box(axes, 8)),
    )
    np.testing.assert_allclose(
        check(with_limits(scaled, home=np.zeros(2), battery=1.9)).value, plain.fast().value, rtol=1e-8
    )


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("scale", [1e-3, 30.0])
def test_values_are_the_literal_ones_for_length_scales_far_from_the_extent(score, scale):
    check(case_of(seed=8, kernel=Matern32([scale, scale]), base=base_of(score), n=3), 1e-8)


@pytest.mark.parametrize("score", SCORES)
def test_values_are_the_literal_ones_with_very_little_noise(score):
    case = case_of(seed=9, base=base_of(score), kernel=Matern52([0.3, 0.4]))
    tiny = replace(case, site_noise=np.full(len(case.sites), 1e-10), noise=np.full(len(case.X), 1e-10))
    check(tiny, 1e-6)


@settings(deadline=None, max_examples=examples(60))
@given(seed=st.integers(0, 10**6))
@example(seed=19476)  # kappa = 0, and staying excluded, on two sites
def test_values_are_the_literal_ones_in_random_cases(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 4))
    kind = list(COSTS.values())[rng.choice([0, 1, 3])]
    base = base_of(
        rng.choice(SCORES),
        rng.choice(CONVENTIONS),
        kappa=float(rng.choice([0.0, 0.5, 3.0])),
        d0=float(rng.uniform(0.05, 1.0)),
        priced=bool(kind.least_sampling_cost(np.zeros((1, d))) > 0),
    )
    kernel = [Matern52, Matern32, SquaredExponential][rng.integers(3)](rng.uniform(0.15, 0.6, d), 2.0)
    if rng.random() < 0.2:
        kernel = kernel + Matern32([0.3] * d, 0.3)
    budget = bool(rng.random() < 0.25)
    case = case_of(
        seed,
        n=int(rng.integers(0, 9)),
        N=int(rng.integers(1, 20)),
        d=d,
        kernel=kernel,
        cost=kind,
        base=base,
        steps=BUDGET if budget else int(rng.integers(1, 6)),
        may_stay=not budget and bool(rng.random() < 0.7),
        fantasy_noise=bool(rng.random() < 0.7),
        draws=rng.standard_normal((int(rng.integers(1, 7)), BUDGET)),
        best=float(rng.normal()),
    )
    check(
        with_limits(
            case,
            home=rng.random(d) if rng.random() < 0.5 else None,
            battery=float(rng.uniform(0.3, 3.0)) if budget or rng.random() < 0.7 else None,
            seconds=float(rng.uniform(0.3, 3.0)) if rng.random() < 0.3 else None,
        ),
        1e-8,
    )


# -- ties, infinities, equality --------------------------------------------------------------------------


def grid_case(side, **what):
    """A symmetric grid without readings, the vehicle in its centre."""
    line = np.arange(side, dtype=float)
    sites = np.stack(np.meshgrid(line, line, indexing="ij"), axis=-1).reshape(-1, 2)
    domain = Domain.grid([Axis(name, "m", 0.0, side - 1.0) for name in "xy"], (side, side))
    none = np.empty(0)
    case = Case(
        kernel=Matern52([2.0, 2.0]),
        X=np.empty((0, 2)),
        y=none,
        noise=none,
        sites=sites,
        site_noise=np.full(len(sites), 0.01),
        position=sites[len(sites) // 2],
        cost=Euclidean(sampling=0.1).within(domain),
        draws=np.array([[0.5, -0.5, 1.0], [-1.0, 0.25, 0.0]]),
    )
    return replace(case, **what)


@each_base
@pytest.mark.parametrize("side", [5, 13])
def test_exact_ties_go_to_the_lowest_index(base, side):
    """Paths from mirrored first steps differ after a tie, so a wrong choice changes the values."""
    case = grid_case(side, base=base, steps=3)
    if side > 5:
        rows = [0, side - 1, len(case.sites) - 1, len(case.sites) // 2, 17]
        case = replace(case, first=case.sites[rows], first_noise=case.site_noise[rows])
    check(with_limits(case, home=np.array([1.0, 0.0]), battery=2.5 * side))


@pytest.mark.parametrize("steps", [2, 3, 4])
def test_staying_is_infinitely_good_with_the_literal_convention(steps):
    case = case_of(seed=1, base=base_of("dist-ucb", "literal"), steps=steps)
    assert np.all(check(case).value == np.inf)
    assert np.isfinite(case.fast().travel).all()


def test_a_single_site_has_no_value_if_staying_is_excluded():
    case = case_of(seed=1, N=1, base=base_of("dist-ucb", "exclude"))
    assert check(case).value.tolist() == [-np.inf]
    away = replace(case, position=case.position + 0.1)
    assert np.isfinite(check(away).value).all()  # one step there, and none after it


def test_a_move_that_costs_exactly_what_is_left_is_affordable():
    case = grid_case(5, cost=Euclidean().within(box(2)), position=np.zeros(2), steps=2)
    for battery, count in ((4.0, 17), (np.nextafter(4.0, 0.0), 15)):
        fast = check(with_limits(case, battery=battery))
        assert (fast.value > -np.inf).sum() == count


def test_no_first_step_has_a_value_if_none_is_affordable():
    fast = check(with_limits(case_of(seed=1), battery=1e-3))
    assert np.all(fast.value == -np.inf)
    assert np.all(fast.travel == 0.0)


def test_a_path_ends_when_nothing_is_affordable():
    case = case_of(seed=1, steps=BUDGET, may_stay=False, base=base_of("ucb"))
    fast = check(with_limits(case, battery=1.2))
    assert np.all(fast.travel <= 1.2)
    assert fast.travel.max() > 0.5


def test_first_steps_that_cannot_be_chosen_have_no_value():
    case = case_of(seed=1)
    paths = Simulation(case.base, case.cost, (), 3, case.draws)
    surface = Surface(Belief(case.kernel).condition_on(case.X, case.y, case.noise), case.sites)
    able = np.arange(len(case.sites)) % 3 > 0
    fast = rollout_values(paths, surface, case.site_noise, case.position, able=able)
    free = rollout_values(paths, surface, case.site_noise, case.position)
    np.testing.assert_array_equal(fast.value[able], free.value[able])
    assert np.all(fast.value[~able] == -np.inf)


# -- the leading first steps -----------------------------------------------------------------------------


def check_leading(case, among):
    """Compare the leading first steps with those of all values; return how many were given up."""
    every, leading = case.fast(), case.fast(leading_of=among)
    kept = leading.value > -np.inf
    np.testing.assert_allclose(leading.value[kept], every.value[kept], rtol=1e-12)
    np.testing.assert_allclose(leading.travel[kept], every.travel[kept], rtol=1e-12)
    lost = every.value[~kept]
    if among.any():
        assert lost.max(initial=-np.inf) < np.sort(every.value[among])[-3:][0] or (lost == -np.inf).all()
    return np.sum(every.value[~kept] > -np.inf)


@each_base
@pytest.mark.parametrize("kind", COSTS)
@pytest.mark.parametrize("steps", [2, 3, 5])
def test_first_steps_are_given_up_only_if_three_are_better(base, kind, steps):
    base = replace(base, priced=base.priced and kind != "free samples")
    draws = fantasy_draws(16, steps, np.random.default_rng(steps))
    case = case_of(seed=steps, base=base, cost=COSTS[kind], N=200, n=12, steps=steps, draws=draws)
    every = np.ones(len(case.sites), dtype=bool)
    check_leading(case, every)
    check_leading(case, np.random.default_rng(0).random(len(every)) < 0.1)
    check_leading(with_limits(case, home=np.zeros(2), battery=1.9, seconds=2.5), every)


@settings(deadline=None, max_examples=examples(40))
@given(seed=st.integers(0, 10**6))
def test_first_steps_are_given_up_only_if_three_are_better_in_random_cases(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 4))
    case = case_of(
        seed,
        n=int(rng.integers(0, 20)),
        N=int(rng.integers(3, 200)),
        d=d,
        kernel=[Matern52, Matern32, SquaredExponential][rng.integers(3)](rng.uniform(0.05, 0.6, d), 2.0),
        base=base_of(rng.choice(SCORES), rng.choice(CONVENTIONS), d0=float(rng.uniform(0.05, 1.0))),
        steps=int(rng.integers(2, 6)),
        fantasy_noise=bool(rng.random() < 0.7),
        draws=rng.standard_normal((int(rng.integers(1, 17)), BUDGET)),
        best=float(rng.normal()),
    )
    case = replace(case, y=case.y + rng.normal(0.0, 3.0))  # also paths whose scores are negative
    if rng.random() < 0.5:
        case = with_limits(case, home=rng.random(d), battery=float(rng.uniform(0.3, 3.0)))
    check_leading(case, rng.random(len(case.sites)) < rng.uniform(0.1, 1.0))


def test_most_first_steps_are_given_up():
    draws = fantasy_draws(32, 2, np.random.default_rng(0))
    case = case_of(n=30, N=600, steps=3, draws=draws, kernel=Matern52([0.2, 0.2]), base=base_of("dist-ucb"))
    assert check_leading(case, np.ones(len(case.sites), dtype=bool)) > 500


def test_first_steps_that_tie_with_the_third_best_are_kept():
    case = grid_case(9, steps=3)  # mirrored first steps have equal values
    every = np.ones(len(case.sites), dtype=bool)
    value, leading = case.fast().value, case.fast(leading_of=every).value
    third = np.sort(value)[-3]
    assert np.all(leading[value >= third - 1e-9 * abs(third)] > -np.inf)


# -- the same answer, always -----------------------------------------------------------------------------


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("N", [17, 300], ids=["one more than a batch", "many"])
def test_the_digits_do_not_depend_on_the_number_of_threads(score, N):
    import numba

    draws = fantasy_draws(32, 3, np.random.default_rng(0))
    case = case_of(seed=1, n=100, N=N, base=base_of(score), draws=draws)
    case = with_limits(case, home=np.zeros(2), battery=1.9)
    before, fast = numba.get_num_threads(), []
    try:
        for threads in (1, before):
            numba.set_num_threads(threads)
            fast.append(case.fast())
    finally:
        numba.set_num_threads(before)
    np.testing.assert_array_equal(fast[0].value, fast[1].value)
    np.testing.assert_array_equal(fast[0].travel, fast[1].travel)


def test_the_order_of_sites_changes_no_value():
    case = with_limits(case_of(N=200), home=np.zeros(2), battery=1.9)
    order = np.random.default_rng(0).permutation(200)
    shuffled = replace(case, sites=case.sites[order], site_noise=case.site_noise[order])
    np.testing.assert_allclose(shuffled.fast().value, case.fast().value[order], rtol=1e-10)


def test_a_rollout_does_not_change_the_surface():
    case = case_of()
    surface = Surface(Belief(case.kernel).condition_on(case.X, case.y, case.noise), case.sites)
    before = surface.mean.copy(), surface.variance.copy(), surface.solved.copy()
    rollout_values(
        Simulation(case.base, case.cost, (), 3, case.draws), surface, case.site_noise, case.position
    )
    for now, then in zip((surface.mean, surface.variance, surface.solved), before, strict=True):
        np.testing.assert_array_equal(now, then)


# -- the draws -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fantasies", [1, 5, 32, 100])
@pytest.mark.parametrize("steps", [1, 3, 50])
def test_fantasies_are_finite_and_reproducible(fantasies, steps):
    draws = [fantasy_draws(fantasies, steps, np.random.default_rng(seed)) for seed in (1, 1, 2)]
    assert draws[0].shape == (fantasies, steps)
    assert np.isfinite(draws[0]).all()
    np.testing.assert_array_equal(draws[0], draws[1])
    assert not np.array_equal(draws[0], draws[2])


def test_fantasies_are_evenly_spread_over_the_normal_distribution():
    draws = fantasy_draws(32, 3, np.random.default_rng(0))
    for column in draws.T:  # a Sobol set has one point in each of 32 equally probable slices
        assert sorted(np.floor(32 * norm.cdf(column)).astype(int)) == list(range(32))


def test_a_budget_horizon_is_at_most_fifty_steps():
    assert [Rollout(horizon=h).steps for h in (1, 7, "budget")] == [1, 7, 50]


def test_bounds_of_the_improvement_hold_and_are_tight():
    from fieldbo.policies.travel._block_loops import ei_above, ei_below, expected_improvement

    for s in (0.0, 1e-12, 0.3, 1.0, 40.0):
        for z in [*np.linspace(-30, 30, 601), -1e200, 1e200]:
            gain = z * s if s else z
            exact, above, below = (f(gain, s) for f in (expected_improvement, ei_above, ei_below))
            assert below <= exact * (1 + 1e-9) + 1e-250 * s
            assert exact <= above * (1 + 1e-9)
            if abs(z) < 8:
                assert above <= 1.03 * exact
                assert below >= 0.96 * exact

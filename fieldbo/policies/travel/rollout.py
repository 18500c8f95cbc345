"""Rollout: look several steps ahead, with a travel score that takes the later steps (Liu et al. 2023).

Eqs. 12 to 16.

===========  ==================================================================================
``F, N``     first steps; candidates of all later steps
``M, T``     fantasies, steps
``d``        travel, in the cost unit
===========  ==================================================================================

The value of a first step is the sum of scores along the path that begins with it, averaged over fantasies:
draw a reading from the posterior, condition on it, go to the affordable candidate of the highest score, and
so on. All first steps share the same draws. The value is exact: every first step, every fantasy, and every
candidate at each step. A decision needs the values of the leading first steps only: the others are given up
once a bound of the steps still to come shows that they are worse.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, NonNegativeFloat, PositiveFloat

from fieldbo._numerics.arrays import Array, Mask, frozen_array
from fieldbo._numerics.streams import sobol
from fieldbo.belief.lookahead import known_kernel
from fieldbo.belief.surface import Surface
from fieldbo.costs.base import CostModel, Limit
from fieldbo.policies.acquisition import Convention
from fieldbo.policies.choice import incumbent, reading_noise
from fieldbo.policies.contract import State
from fieldbo.policies.travel.one_step import CandidateView, ScoreName, Scores, TravelPolicy, TravelScore
from fieldbo.validation import settings

if TYPE_CHECKING:
    from fieldbo.policies.travel._block_loops import Hopes


_NONE = frozen_array(np.empty((0, 0)))

_REACHES = 9
_LEVELS = 5  # lengths of e for which the second step is bounded by its travel
_ROUNDING = 1e-8  # of values and bounds, relative; also covers ties between first steps
_ALIKE = 1e-9  # promises that differ by less, relative to the highest, are equal
_KEPT = 256_000_000  # bytes of covariances that a thread keeps


class Rollouts(NamedTuple):
    """Values (F,) of first steps, and the mean travel (F,) of their paths.

    A first step that cannot be chosen has value minus infinity and travel 0.
    """

    value: Array
    travel: Array


@dataclass(frozen=True, eq=False)
class Simulation:
    """Settings that all paths of a rollout share.

    Parameters
    ----------
    score : TravelScore
        Placed `on` its domain, so that its scales are known.
    cost : CostModel
    limits : sequence of Limit
        Limits on what a path may spend.
    steps : int
        T, the first step included.
    draws : (M, >= T - 1) array
        Standard normals.
    level : int
        The sensor's level.
    may_stay : bool
        Whether later steps may be moves without cost.
    fantasy_noise : bool
        Whether readings are drawn with their noise; the belief conditions on them with noise in any case.
    unit : float
        Logarithm of the unit of an expected improvement, for a single step; 0 for more.
    """

    score: TravelScore
    cost: CostModel
    limits: Sequence[Limit]
    steps: int
    draws: Array
    level: int = 0
    may_stay: bool = True
    fantasy_noise: bool = True
    unit: float = 0.0


def rollout_values(
    paths: Simulation,
    surface: Surface,
    noise: Array,
    position: Array,
    best: float = -np.inf,
    able: Mask | None = None,
    first: Surface | None = None,
    first_noise: Array | None = None,
    leading_of: Mask | None = None,
) -> Rollouts:
    """Return the value of each first step, or of the leading ones.

    Parameters
    ----------
    paths : Simulation
    surface : Surface
        The belief over the candidates of later steps.
    noise : (N,) array
        Noise variance of a reading at each candidate.
    position : (d,) array
        Where the vehicle is.
    best : float
        The best value so far, for an expected improvement.
    able : (F,) bool array, optional
        First steps that can be chosen; by default the affordable ones.
    first : Surface, optional
        The belief over the F first steps, if they are not the candidates.
    first_noise : (F,) array, optional
        Noise variance of a reading at each of those.
    leading_of : (F,) bool array, optional
        If given, only first steps at least as good as the third best of these get a value. The others get
        minus infinity: they are given up once a bound shows that they are worse, which saves much time.

    Returns
    -------
    Rollouts

    Examples
    --------
    >>> from fieldbo.costs.travel import Euclidean
    >>> from fieldbo.belief.posterior import Belief
    >>> from fieldbo.belief.kernels import Matern52
    >>> read = Surface(Belief(Matern52([1.0])).condition_on([[0.0]], [1.0], 0.01), [[0.0], [1.0], [9.0]])
    >>> paths = Simulation(TravelScore("ucb"), Euclidean(), (), steps=2, draws=np.array([[-1.0], [1.0]]))
    >>> rollout_values(paths, read, np.full(3, 0.01), np.array([0.0])).value.round(2)
    array([3.41, 4.23, 4.23])
    """
    cost = paths.cost
    start = _First(surface, noise) if first is None or first_noise is None else _First(first, first_noise)
    points, mean = start.surface.candidates, start.surface.mean
    travel = cost.travel(position, points)
    price = travel + cost.sampling_cost(points, paths.level)
    if able is None:
        able = np.ones(len(points), dtype=bool)
        for limit in paths.limits:
            able &= limit.going(position, points, None, paths.level) + limit.back(points) <= limit.left
    value = np.where(
        able, paths.score.scores(mean, start.surface.sd, travel, price, best, paths.unit), -np.inf
    )
    rollouts = Rollouts(value, np.where(value > -np.inf, travel, 0.0))
    if paths.steps > 1:
        _roll_out(paths, surface, noise, position, best, rollouts, start, leading_of)
    return rollouts


class _First(NamedTuple):
    """The belief over the first steps, and the noise variances (F,) of readings there."""

    surface: Surface
    noise: Array


def _roll_out(
    paths: Simulation,
    surface: Surface,
    noise: Array,
    position: Array,
    best: float,
    rollouts: Rollouts,
    first: _First,
    leading_of: Mask | None,
) -> None:
    """Add the values and the travel of later steps to `rollouts`, in place."""
    import numba

    from fieldbo.policies.travel import _block_loops as blocks
    from fieldbo.policies.travel._rollout_loops import BATCH, LEADERS, roll_out

    score, cost, sites = paths.score, paths.cost, surface.candidates
    draws = np.ascontiguousarray(paths.draws[:, : paths.steps - 1], dtype=float)
    price = cost.sampling_cost(sites, paths.level)
    weight, largest = _weight(score, price)
    reaches = np.linspace(0.0, np.sqrt(np.max(np.sum(draws**2, axis=1))), _REACHES)
    promise = _promise(score, surface, reaches, best, largest)
    order = _by_promise(promise[np.searchsorted(reaches, np.abs(draws[:, 0]).max())])
    rates = cost.straight_rates
    firsts = first.surface
    travel, first_travel = _by_index(cost.travel, surface, firsts, rates is None)
    if rates is None:
        longest = float(max(travel.max(), first_travel.max()))
    else:
        longest = float(np.linalg.norm(rates * np.ptp(np.vstack([sites, firsts.candidates]), axis=0)))
    limits = _limits(paths, surface, position, firsts, longest, price)
    kernel = surface.belief.kernel
    known, first_known = known_kernel(kernel, sites), known_kernel(kernel, firsts.candidates)
    kind, scaled, first_scaled = -1, _NONE, _NONE
    if known is not None and first_known is not None:
        (kind, scaled), (_, first_scaled) = known, first_known
    prior, first_prior = _by_index(kernel, surface, firsts, kind < 0)
    at, first_at = (_NONE, _NONE) if rates is None else ((sites * rates).T, (firsts.candidates * rates).T)
    # Prices and limits of first steps are not used.
    head = np.vstack([surface.mean, surface.variance, noise, price, *scaled, *at])
    first_head = head
    if firsts is not surface:
        nothing = np.zeros(firsts.size)
        first_head = np.vstack([firsts.mean, firsts.variance, first.noise, nothing, *first_scaled, *first_at])
    tail = np.vstack([limits.sampling, limits.back])
    sources = blocks.Sources(head, _read_only(surface.solved), tail, first_head, _read_only(firsts.solved))
    ends = np.cumsum(
        [blocks.PLACES, len(scaled), len(at), len(sources.solved), len(limits.left), len(limits.left)]
    ).tolist()
    width = blocks.WIDTH
    filled = np.resize(order, -(-len(order) // width) * width)
    filled = filled.reshape(-1, blocks.GROUPS, width // blocks.GROUPS).transpose(0, 2, 1).ravel()
    places = BATCH + max(1, min(len(filled), _KEPT // (3 * len(filled) * head.itemsize)))
    weights = _smallest_weight(score, longest), largest
    hopes = _hopes(score, surface, rollouts.value, draws, promise, reaches, weights, leading_of)
    bounds = _from_each_block(promise, order, width)
    hopes = hopes._replace(after=_from_each_block(hopes.after, order, width))
    roll_out(
        blocks.Objective(
            blocks.EI if score.improves else blocks.UCB,
            weight,
            float(score.kappa),
            score.small,
            bool(paths.may_stay),
            bool(paths.fantasy_noise),
        ),
        (kind, float(kernel.diagonal(sites[:1])[0])),
        blocks.Rows(ends[1], ends[2], ends[3], ends[4], ends[5], rates is not None),
        sources,
        len(sites),
        filled,
        blocks.Matrices(prior, first_prior, travel, first_travel, limits.other, limits.first_other),
        draws,
        float(best),
        bounds,
        float(max(reaches[1], 1e-300)),
        limits.left,
        limits.rate,
        limits.spent,
        hopes,
        rollouts.value,
        rollouts.travel,
        # Allocated by numpy, which asks for large pages: otherwise allocation takes a tenth of the time.
        np.empty((numba.get_num_threads(), places, len(filled) // width, 3, width)),
    )
    value = rollouts.value
    if hopes.counts.sum() >= LEADERS:
        least = np.partition(value[hopes.counts], -LEADERS)[-LEADERS] - hopes.slack
        rollouts.travel[value < least] = 0.0
        value[value < least] = -np.inf


def _by_index(
    between: Callable[[Array, Array], Array], surface: Surface, firsts: Surface, needed: bool
) -> tuple[Array, Array]:
    """Return a quantity between sites (N, N), and between first steps and sites (F, N), if it is needed.

    Always read-only, so that the loops are compiled only once.
    """
    if not needed:
        return _NONE, _NONE
    every = _read_only(between(surface.candidates, surface.candidates))
    if firsts is surface:
        return every, every
    return every, _read_only(between(firsts.candidates, surface.candidates))


def _read_only(values: Array) -> Array:
    """Return `values` as a contiguous, read-only view."""
    view = np.ascontiguousarray(values).view()
    view.setflags(write=False)
    return view


def _weight(score: TravelScore, sampling: Array) -> tuple[int, float]:
    """Return the kind of weight by which the loops multiply scores for travel, and its largest value."""
    from fieldbo.policies.travel import _block_loops as blocks

    floor = blocks.FLOOR, 1.0 / score.small
    if score.name in ("ucb", "ei"):
        return blocks.PLAIN, 1.0
    if score.name == "ei-per-cost":
        return (blocks.PRICED, 1.0 / float(sampling.min())) if score.priced else floor
    if score.kappa == 0:  # travel has no effect, except that staying may be excluded
        return (blocks.EXCLUDE if score.convention == "exclude" else blocks.PLAIN), 1.0
    return {
        "one_plus": (blocks.ONE_PLUS, 1.0),
        "floor": floor,
        "literal": (blocks.LITERAL, np.inf),
        "exclude": (blocks.EXCLUDE, np.inf),
    }[score.convention]


def _smallest_weight(score: TravelScore, longest: float) -> float:
    """Return the smallest weight of travel in the scores of a confidence bound."""
    if score.name != "dist-ucb" or score.kappa == 0:
        return 1.0
    return (
        score.small / (score.small + longest)
        if score.convention == "one_plus"
        else 1.0 / max(longest, score.small)
    )


def _promise(score: TravelScore, surface: Surface, reaches: Array, best: float, largest: float) -> Array:
    """Return bounds (R, N) of the score of each site in fantasies whose standard normals have lengths (R,).

    Readings move the mean by ``g . e`` and leave the variance ``s^2 - |g|^2``; by the Cauchy-Schwarz
    inequality ``g . e + kappa w sqrt(s^2 - |g|^2) <= s sqrt(|e|^2 + kappa^2 w^2)``.
    """
    mu, s, reach = surface.mean, surface.sd, reaches[:, None]
    if not score.improves:
        with np.errstate(invalid="ignore"):
            return np.where(s > 0, mu + s * np.hypot(reach, score.kappa * largest), mu)
    gain = mu - best + s * reach
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(s > 0, gain / s, 0.0)
    tail = s * np.exp(-0.5 * z**2) / (np.sqrt(2.0 * np.pi) * (1.0 + z**2))
    return np.asarray((np.maximum(gain, 0.0) + tail) * largest)


def _hopes(
    score: TravelScore,
    surface: Surface,
    value: Array,
    draws: Array,
    promise: Array,
    reaches: Array,
    weights: tuple[float, float],
    leading_of: Mask | None,
) -> Hopes:
    """Return the bounds by which first steps are given up, with `after` still by site (R, N).

    A confidence bound's promise is convex in the length of e, so that it lies below its chords. As a function
    of the weight w, ``sqrt(|e|^2 + kappa^2 w^2)`` lies below its chord from the smallest to the largest.
    """
    from fieldbo.policies.travel._block_loops import Hopes

    # Writable like those of other scores: a read-only array would have `roll_out` compiled once more.
    none = np.empty(0)
    hopes = Hopes(
        np.zeros(len(value), dtype=bool), 0.0, np.zeros_like(draws), none, none, none, np.empty((0, 0))
    )
    highest, (smallest, largest) = promise.max(axis=1), weights
    if leading_of is None or not np.isfinite([largest, *highest]).all():
        return hopes
    lengths = np.sqrt(np.cumsum(draws**2, axis=1))
    if score.improves:
        steps = highest[np.minimum(np.searchsorted(reaches, lengths), len(reaches) - 1)]
    else:
        steps = np.interp(lengths, reaches, highest)
        levels = np.linspace(0.0, lengths[:, 0].max(), _LEVELS)
        share = np.array([np.interp(lengths[:, 0], levels, unit).mean() for unit in np.eye(_LEVELS)])
        low, high = (np.hypot(levels, score.kappa * w) for w in (smallest, largest))
        gain = (high - low) / (largest - smallest) if largest > smallest else np.zeros(_LEVELS)
        after = _promise(score, surface, levels, -np.inf, largest)
        hopes = hopes._replace(share=share, lift=high - gain * largest, gain=gain, after=after)
    steps = np.maximum(steps, 0.0)
    counts = leading_of & (value > -np.inf)
    scale = np.abs(value[value > -np.inf]).max(initial=0.0) + steps.sum() / len(steps)
    return hopes._replace(counts=counts, slack=_ROUNDING * float(scale), steps=steps)


def _from_each_block(promise: Array, order: NDArray[np.intp], width: int) -> Array:
    """Return the largest promise (R, B) of all sites (N,) from each block on."""
    if not promise.size:
        return promise
    bounds = np.maximum.reduceat(promise[:, order], np.arange(0, len(order), width), axis=1)[:, ::-1]
    return np.ascontiguousarray(np.maximum.accumulate(bounds, axis=1)[:, ::-1])


def _by_promise(promise: Array) -> NDArray[np.intp]:
    """Return the indices of sites (N,) by decreasing promise, ties by index.

    Ties of scores then go to the lowest index, too.
    """
    unit = _ALIKE * float(np.max(np.abs(promise), initial=0.0, where=np.isfinite(promise)))
    steps = promise if unit == 0 else np.rint(promise / unit)
    return np.argsort(-steps, kind="stable")


class _Limits(NamedTuple):
    """The L limits that some path may reach."""

    left: Array  # (L,)
    rate: Array  # (L,): consumption per unit of travel; -1 if it is in `other`
    sampling: Array  # (L, N): consumption of a reading at each site
    back: Array  # (L, N): and of the trip home
    spent: Array  # (L, F): consumption of each first step
    other: Array
    first_other: Array


def _limits(
    paths: Simulation,
    surface: Surface,
    position: Array,
    firsts: Surface,
    longest: float,
    price: Array,
) -> _Limits:
    cost, level, sites, points = paths.cost, paths.level, surface.candidates, firsts.candidates
    rows: list[tuple[float, float, Array, Array, Array]] = []
    other = first_other = _NONE
    for limit in paths.limits:
        battery = limit.name == "battery"
        rate, furthest = 1.0 if battery else cost.seconds_per_travel, longest
        sampling = price if battery else cost.sampling_s(sites, level)
        if rate is None:
            other, first_other = _by_index(cost.travel_s, surface, firsts, needed=True)
            rate, furthest = -1.0, float(max(other.max(), first_other.max()))
        back = limit.back(sites)
        spent = np.asarray(limit.going(position, points, None, level))
        most = spent.max() + (paths.steps - 1) * (abs(rate) * furthest + sampling.max()) + back.max()
        if not most <= limit.left:
            rows.append((limit.left, rate, sampling, back, spent))
    left, rates, samplings, backs, taken = ([row[k] for row in rows] for k in range(5))
    L, N, F = len(rows), len(sites), len(points)
    return _Limits(
        np.array(left, dtype=float),
        np.array(rates, dtype=float),
        np.array(samplings).reshape(L, N),
        np.array(backs).reshape(L, N),
        np.array(taken).reshape(L, F),
        other,
        first_other,
    )


_MOST_STEPS = 50
_MOST_FANTASIES = 4096


@settings("policy")
class Rollout(TravelPolicy):
    """Take the first step worth most, assuming a base policy takes the rest (Liu et al. 2023)."""

    base: ScoreName = "dist-ucb"
    """The score that the later steps maximise and that is summed: ``mu + kappa s / d``, d the travel;
    ``mu + kappa s``; the expected improvement; or the latter per unit of cost."""
    horizon: Annotated[int, Field(ge=1, le=_MOST_STEPS)] | Literal["budget"] = 3
    """Number of steps ahead, the first one included; ``"budget"`` until nothing is affordable, at most 50.
    The time per decision grows with it."""
    fantasies: Annotated[int, Field(ge=1, le=_MOST_FANTASIES)] = 32
    """Number of readings simulated at each first step, and so of paths that begin there."""
    kappa: NonNegativeFloat = 2.0
    """Multiplier of the standard deviation in dist-ucb and ucb: weight of exploration."""
    convention: Convention = "one_plus"
    """What replaces ``1 / d`` in dist-ucb: ``1 / (1 + d / d0)``; ``1 / max(d, d0)``; or ``1 / d`` as printed,
    with staying excluded or infinitely good."""
    d0: PositiveFloat | None = None
    """Scale of short travel, in the cost unit. Default: the travel along the domain's longest side."""
    fantasy_noise: bool = True
    """Whether to draw simulated readings with their noise."""

    @property
    def travel_score(self) -> TravelScore:
        """The score of later steps."""
        return TravelScore(self.base, self.kappa, self.convention, self.d0)

    @property
    def steps(self) -> int:
        """Largest number of steps of a path."""
        return _MOST_STEPS if self.horizon == "budget" else self.horizon

    def scores(self, state: State, view: CandidateView) -> tuple[Array, Scores, dict[str, Any]]:
        """Return the candidates' values (N,) as first steps, a function for other points, and the reasons.

        Candidates that are worse than three affordable ones have minus infinity.
        """
        cost = state.cost
        assert cost is not None
        paths = Simulation(
            self.travel_score.on(cost, state.domain),
            cost,
            state.limits,
            self.steps,
            fantasy_draws(self.fantasies, self.steps, state.rng),
            self.level,
            may_stay=self.horizon != "budget",
            fantasy_noise=self.fantasy_noise,
        )
        surface = view.surface
        best = incumbent(state.surface) if paths.score.improves else -np.inf
        able = view.able if self.stop == "best_affordable" else np.ones(surface.size, dtype=bool)
        unit = view.unit(best) if paths.score.improves else 0.0
        if unit:  # the improvements of all steps underflow: only the first ones can still be compared
            paths = replace(paths, steps=1, unit=unit)
        rollouts = rollout_values(
            paths, surface, view.noise, state.position, best, able, leading_of=view.able
        )

        def elsewhere(points: Array) -> Array:
            there, every = Surface(state.belief, points), np.ones(len(points), dtype=bool)
            noise = reading_noise(state, self.level, there)
            return rollout_values(paths, surface, view.noise, state.position, best, every, there, noise).value

        why: dict[str, Any] = {"base": self.base, "horizon": self.horizon, "fantasies": self.fantasies}
        if np.isfinite(best):
            why["incumbent"] = best
        if unit:
            why["log_unit"] = unit
        return rollouts.value, elsewhere, why


def fantasy_draws(fantasies: int, steps: int, rng: np.random.Generator) -> Array:
    """Return standard normals (M, T) from a scrambled Sobol set.

    Examples
    --------
    >>> fantasy_draws(32, 3, np.random.default_rng(0)).shape
    (32, 3)
    """
    from scipy.special import ndtri

    power = (fantasies - 1).bit_length()  # Sobol points are balanced in powers of two
    points = sobol(steps, rng).random(1 << power)[:fantasies]
    return np.asarray(ndtri(np.clip(points, 1e-12, 1.0 - 1e-12)))

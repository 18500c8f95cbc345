"""Rollout: the first step that is worth most when a base rule takes the steps after it.

Eqs. 12 to 16 of Liu et al. 2023.

===========  ==================================================================================
``F, N``     first steps; candidates of all later steps
``M, T``     fantasies, steps
``d``        travel, in the cost unit
===========  ==================================================================================

The value of a first step is the sum of the base rule's scores along the path that begins with it: a reading
is drawn from the posterior, taken in, and the best site by the base rule that can still be paid for comes
next; averaged over fantasies, which use the same draws for every first step. It is exact: every first step,
every fantasy, and every candidate at each step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fieldbo._numerics.arrays import Array, Mask, frozen_array
from fieldbo.belief.lookahead import known_kernel
from fieldbo.belief.surface import Surface
from fieldbo.costs.base import CostModel
from fieldbo.costs.limits import Limit
from fieldbo.errors import InputError
from fieldbo.policies.acquisition import Convention
from fieldbo.policies.contract import State
from fieldbo.policies.optimum.myopic import incumbent, reading_noise
from fieldbo.policies.travel.one_step import CandidateView, Scores, TravelPolicy
from fieldbo.policies.travel.scores import BaseName, TravelScore

_NONE = frozen_array(np.empty((0, 0)))

_REACHES = 9
_ALIKE = 1e-9  # of the highest promise: sites that differ by less promise the same
_KEPT = 256_000_000  # bytes that a thread keeps of what it knows of sites on paths
_MOST_STEPS = 50
_MOST_FANTASIES = 4096


class Rollouts(NamedTuple):
    """What first steps are worth, (F,), and the mean travel (F,) of their paths.

    A first step that can't be had has value minus infinity and travel 0.
    """

    value: Array
    travel: Array


@dataclass(frozen=True, eq=False)
class Simulation:
    """What the paths of a rollout have in common.

    Parameters
    ----------
    base : TravelScore
        On its domain, so that its scales are known.
    cost : CostModel
    limits : sequence of Limit
        What paths may spend.
    steps : int
        T, the first step included.
    draws : (M, >= T - 1) array
        Standard normals.
    level : int
        The sensor's setting.
    may_stay : bool
        Whether later steps may be moves of no cost.
    fantasy_noise : bool
        Whether readings are drawn with their noise; the belief takes them in with it in any case.
    """

    base: TravelScore
    cost: CostModel
    limits: Sequence[Limit]
    steps: int
    draws: Array
    level: int = 0
    may_stay: bool = True
    fantasy_noise: bool = True


def rollout_values(
    paths: Simulation,
    surface: Surface,
    noise: Array,
    position: Array,
    best: float = -np.inf,
    able: Mask | None = None,
    first: Surface | None = None,
    first_noise: Array | None = None,
) -> Rollouts:
    """Return what each first step is worth.

    Parameters
    ----------
    paths : Simulation
    surface : Surface
        The belief; its candidates are what later steps choose among.
    noise : (N,) array
        Noise variance of a reading at each candidate.
    position : (d,) array
        Where the vehicle is.
    best : float
        The best so far, where the rule is an expected improvement.
    able : (F,) bool array, optional
        Which first steps can be had; by default those that can be paid for.
    first : Surface, optional
        The belief over first steps other than the candidates, F of them.
    first_noise : (F,) array, optional
        Noise variance of a reading at each of those.

    Returns
    -------
    Rollouts

    Examples
    --------
    >>> from fieldbo.costs.euclidean import Euclidean
    >>> from fieldbo.belief.posterior import Belief
    >>> from fieldbo.belief.kernels import Matern52
    >>> read = Surface(Belief(Matern52([1.0])).condition_on([[0.0]], [1.0], 0.01), [[0.0], [1.0], [9.0]])
    >>> paths = Simulation(TravelScore("ucb"), Euclidean(), (), steps=2, draws=np.array([[-1.0], [1.0]]))
    >>> rollout_values(paths, read, np.full(3, 0.01), np.array([0.0])).value.round(2)
    array([3.41, 4.23, 4.23])
    """
    base, cost = paths.base, paths.cost
    start = _First(surface, noise) if first is None or first_noise is None else _First(first, first_noise)
    points, mean = start.surface.candidates, start.surface.mean
    travel = cost.travel(position, points)
    price = travel + cost.sampling_cost(points, paths.level)
    if able is None:
        able = np.ones(len(points), dtype=bool)
        for limit in paths.limits:
            able &= limit.going(position, points, None, paths.level) + limit.back(points) <= limit.left
    value = np.where(able, base.scores(mean, start.surface.sd, travel, price, best), -np.inf)
    found = Rollouts(value, np.where(value > -np.inf, travel, 0.0))
    if paths.steps > 1:
        _roll_out(paths, surface, noise, position, best, found, start)
    return found


class _First(NamedTuple):
    """The belief over the first steps, and the noise (F,) of readings there."""

    surface: Surface
    noise: Array


def _roll_out(
    paths: Simulation,
    surface: Surface,
    noise: Array,
    position: Array,
    best: float,
    found: Rollouts,
    first: _First,
) -> None:
    """Add to `found` what the later steps are worth."""
    import numba

    from fieldbo.policies.travel import _block_loops as blocks
    from fieldbo.policies.travel._rollout_loops import BATCH, roll_out

    base, cost, sites = paths.base, paths.cost, surface.candidates
    draws = np.ascontiguousarray(paths.draws[:, : paths.steps - 1], dtype=float)
    price = cost.sampling_cost(sites, paths.level)
    weight, largest = _weight(base, price)
    reaches = np.linspace(0.0, np.sqrt(np.max(np.sum(draws**2, axis=1))), _REACHES)
    promise = _promise(base, surface, reaches, best, largest)
    order = _by_promise(promise[np.searchsorted(reaches, np.abs(draws[:, 0]).max())])
    rates = cost.straight_rates
    firsts = first.surface
    ways, first_ways = _by_index(cost.travel, surface, firsts, rates is None)
    limits = _limits(paths, surface, position, firsts, ways, first_ways, price)
    kernel = surface.belief.kernel
    known, first_known = known_kernel(kernel, sites), known_kernel(kernel, firsts.candidates)
    kind, scaled, first_scaled = -1, _NONE, _NONE
    if known is not None and first_known is not None:
        (kind, scaled), (_, first_scaled) = known, first_known
    prior, first_prior = _by_index(kernel, surface, firsts, kind < 0)
    at, first_at = (_NONE, _NONE) if rates is None else ((sites * rates).T, (firsts.candidates * rates).T)
    groups = [scaled, at, surface.solved, limits.sampling, limits.back]
    ends = np.cumsum([blocks.PLACES, *map(len, groups)]).tolist()
    columns = np.zeros((ends[-1], firsts.size))  # of the first steps; price and limits are not looked at
    columns[: blocks.PRICE] = firsts.mean, firsts.variance, first.noise
    columns[blocks.PLACES : ends[3]] = np.vstack(
        [part.reshape(-1, firsts.size) for part in (first_scaled, first_at, firsts.solved)]
    )
    every = np.vstack(
        [surface.mean, surface.variance, noise, price, *(group for group in groups if len(group))]
    )
    width = blocks.WIDTH
    filled = np.resize(order, -(-len(order) // width) * width)
    filled = filled.reshape(-1, blocks.GROUPS, width // blocks.GROUPS).transpose(0, 2, 1).ravel()
    table = every[:, filled].reshape(len(every), -1, width).transpose(1, 0, 2)
    starts = np.arange(0, len(order), width)
    places = BATCH + max(1, min(len(filled), _KEPT // (3 * len(filled) * table.itemsize)))
    bounds = np.maximum.reduceat(promise[:, order], starts, axis=1)[:, ::-1]
    roll_out(
        blocks.Rule(
            blocks.EI if base.improves else blocks.UCB,
            weight,
            float(base.kappa),
            base.small,
            bool(paths.may_stay),
            bool(paths.fantasy_noise),
        ),
        (kind, float(kernel.diagonal(sites[:1])[0])),
        blocks.Rows(ends[1], ends[2], ends[3], ends[4], ends[5], rates is not None),
        np.ascontiguousarray(table),
        len(sites),
        filled,
        np.ascontiguousarray(columns.T),
        blocks.Matrices(prior, first_prior, ways, first_ways, limits.other, limits.first_other),
        draws,
        float(best),
        np.ascontiguousarray(np.maximum.accumulate(bounds, axis=1)[:, ::-1]),
        float(max(reaches[1], 1e-300)),
        limits.left,
        limits.rate,
        limits.spent,
        found.value,
        found.travel,
        # from numpy, which asks for large pages: to make room takes a tenth of the time otherwise
        np.empty((numba.get_num_threads(), places, len(table), 3, width)),
    )


def _by_index(
    between: Callable[[Array, Array], Array], surface: Surface, firsts: Surface, needed: bool
) -> tuple[Array, Array]:
    """Return what holds between sites (N, N), and between first steps and sites (F, N), if it is needed.

    Not to be written to, whatever it is, so that the loops are compiled once for all of them.
    """
    if not needed:
        return _NONE, _NONE
    every = _unwritable(between(surface.candidates, surface.candidates))
    if firsts is surface:
        return every, every
    return every, _unwritable(between(firsts.candidates, surface.candidates))


def _unwritable(values: Array) -> Array:
    """Return values as a contiguous view that can't be written to."""
    view = np.ascontiguousarray(values).view()
    view.setflags(write=False)
    return view


def _weight(base: TravelScore, sampling: Array) -> tuple[int, float]:
    """Return what the loops multiply scores by for the way, and the most that it can be."""
    from fieldbo.policies.travel import _block_loops as blocks

    if base.rule in ("ucb", "ei"):
        return blocks.PLAIN, 1.0
    if base.rule == "ei-per-cost":
        return (
            (blocks.PRICED, 1.0 / float(sampling.min())) if base.priced else (blocks.FLOOR, 1.0 / base.small)
        )
    if base.kappa == 0:  # the way plays no part, but that staying may be excluded
        return (blocks.EXCLUDE if base.convention == "exclude" else blocks.PLAIN), 1.0
    return {
        "one_plus": (blocks.ONE_PLUS, 1.0),
        "floor": (blocks.FLOOR, 1.0 / base.small),
        "literal": (blocks.LITERAL, np.inf),
        "exclude": (blocks.EXCLUDE, np.inf),
    }[base.convention]


def _promise(base: TravelScore, surface: Surface, reaches: Array, best: float, largest: float) -> Array:
    """Return bounds (R, N) of the score of each site in fantasies whose standard normals have lengths (R,).

    After readings that move the mean by ``g . e`` and leave the variance ``s^2 - |g|^2``, by Cauchy and
    Schwarz ``g . e + kappa w sqrt(s^2 - |g|^2) <= s sqrt(|e|^2 + kappa^2 w^2)``.
    """
    mu, s, reach = surface.mean, surface.sd, reaches[:, None]
    if not base.improves:
        with np.errstate(invalid="ignore"):
            return np.where(s > 0, mu + s * np.hypot(reach, base.kappa * largest), mu)
    gain = mu - best + s * reach
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(s > 0, gain / s, 0.0)
    tail = s * np.exp(-0.5 * z**2) / (np.sqrt(2.0 * np.pi) * (1.0 + z**2))
    return np.asarray((np.maximum(gain, 0.0) + tail) * largest)


def _by_promise(promise: Array) -> NDArray[np.intp]:
    """Return sites by falling promise (N,), and by index where they promise the same.

    So ties of scores go to the lowest index.
    """
    unit = _ALIKE * float(np.max(np.abs(promise), initial=0.0, where=np.isfinite(promise)))
    steps = promise if unit == 0 else np.rint(promise / unit)
    return np.argsort(-steps, kind="stable")


class _Limits(NamedTuple):
    """The limits that some path may come to the end of, L of them."""

    left: Array  # (L,)
    rate: Array  # (L,): what a unit of travel takes; -1: `other` has it
    sampling: Array  # (L, N): what a reading at each site takes
    back: Array  # (L, N): and the way home
    spent: Array  # (L, F): what each first step takes
    other: Array
    first_other: Array


def _limits(
    paths: Simulation,
    surface: Surface,
    position: Array,
    firsts: Surface,
    ways: Array,
    first_ways: Array,
    price: Array,
) -> _Limits:
    cost, level, sites, points = paths.cost, paths.level, surface.candidates, firsts.candidates
    if cost.straight_rates is None:
        longest = float(max(ways.max(), first_ways.max()))
    else:
        every = np.vstack([sites, points])
        longest = float(np.linalg.norm(cost.straight_rates * np.ptp(every, axis=0)))
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


@dataclass(frozen=True)
class Rollout(TravelPolicy):
    """Go to the first step that is worth most when a base rule takes the steps after it (Liu et al. 2023).

    Parameters
    ----------
    base : {"dist-ucb", "ucb", "ei", "ei-per-cost"}
        The rule that takes the steps after the first, and whose scores are summed: ``mu + kappa s / d``, d
        the travel; ``mu + kappa s``; expected improvement, or that per unit of cost.
    horizon : int or "budget"
        Steps ahead, the first one included; or until nothing can be paid for, at most 50: a decision takes
        the longer for it.
    fantasies : int
        How many readings are simulated at each first step, and so how many paths begin there.
    kappa : float
        Of dist-ucb and ucb: how much what is not known counts.
    convention : {"one_plus", "floor", "exclude", "literal"}
        Of dist-ucb: ``1 / d`` is taken as ``1 / (1 + d / d0)``; as ``1 / max(d, d0)``; or as printed, where
        staying is left out, or infinitely good.
    d0 : float, optional
        What counts as small travel, in the cost unit; by default the travel along the domain's longest side.
    fantasy_noise : bool
        Whether simulated readings are drawn with their noise.
    """

    base: BaseName = "dist-ucb"
    horizon: int | Literal["budget"] = 3
    fantasies: int = 32
    kappa: float = 2.0
    convention: Convention = "one_plus"
    d0: float | None = None
    fantasy_noise: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value, most in (
            ("horizon", self.horizon, _MOST_STEPS),
            ("fantasies", self.fantasies, _MOST_FANTASIES),
        ):
            if value != "budget" and not 1 <= value <= most:
                or_budget = ' or "budget"' if name == "horizon" else ""
                raise InputError(
                    f"{name} = {value}",
                    expected=f"a whole number from 1 to {most}{or_budget}",
                    where=f"policy.{name}",
                )
        _ = self._rule

    @property
    def _rule(self) -> TravelScore:
        return TravelScore(self.base, self.kappa, self.convention, self.d0)

    @property
    def steps(self) -> int:
        """How many steps a path has at most."""
        return _MOST_STEPS if self.horizon == "budget" else self.horizon

    def scores(self, state: State, view: CandidateView) -> tuple[Array, Scores, dict[str, Any]]:
        """Return the values of first steps."""
        cost = state.cost
        assert cost is not None
        paths = Simulation(
            self._rule.on(cost, state.domain),
            cost,
            state.limits,
            self.steps,
            fantasy_draws(self.fantasies, self.steps, state.rng),
            self.level,
            may_stay=self.horizon != "budget",
            fantasy_noise=self.fantasy_noise,
        )
        surface = view.surface
        best = incumbent(state.surface) if paths.base.improves else -np.inf
        able = view.able if self.stop == "best_affordable" else np.ones(surface.size, dtype=bool)
        found = rollout_values(paths, surface, view.noise, state.position, best, able)

        def elsewhere(points: Array) -> Array:
            there, every = Surface(state.belief, points), np.ones(len(points), dtype=bool)
            noise = reading_noise(state, self.level, there)
            return rollout_values(paths, surface, view.noise, state.position, best, every, there, noise).value

        why: dict[str, Any] = {"base": self.base, "horizon": self.horizon, "fantasies": self.fantasies}
        if np.isfinite(best):
            why["incumbent"] = best
        return found.value, elsewhere, why


def fantasy_draws(fantasies: int, steps: int, rng: np.random.Generator) -> Array:
    """Return standard normals (M, T) from one scrambled Sobol set.

    Examples
    --------
    >>> fantasy_draws(32, 3, np.random.default_rng(0)).shape
    (32, 3)
    """
    from scipy.special import ndtri
    from scipy.stats import qmc

    power = (fantasies - 1).bit_length()  # Sobol points are even in powers of two
    points = qmc.Sobol(steps, rng=rng).random_base2(power)[:fantasies]
    return np.asarray(ndtri(np.clip(points, 1e-12, 1.0 - 1e-12)))

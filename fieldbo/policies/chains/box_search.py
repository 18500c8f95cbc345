"""The best points of boxes in which some coordinates stay where they are.

===========  ==========================================================================================
``mu, s``    posterior mean and standard deviation, (P,), in model units
``K``        number of boxes: lower and upper ends (K, d); where both are equal a coordinate is held
``kappa``    a plain multiplier, ``kappa s``
``z``        ``(mu - best) / s``
===========  ==========================================================================================

What moves only part of a system's settings looks for its next point here: candidates in all boxes are scored
at once, and the best of each climbed from together, along the score's gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, log_ndtr

from fieldbo._numerics.arrays import Array, Mask
from fieldbo._numerics.climb import climbed_together
from fieldbo.belief.surface import Surface
from fieldbo.costs.base import CostModel
from fieldbo.costs.chain import Modular
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError
from fieldbo.policies.chains.partition import Boxes, Columns, pinned
from fieldbo.policies.contract import State

_PLACES = 4
"""So many of the sites that were read, those of the largest mean, have candidates about them."""

_SPREAD = 0.2 * 0.3 ** np.arange(4)
"""Standard deviations of those candidates, in shares of the axes' lengths: 0.2 down to 0.005."""

_MOVED = 3.0
"""So many coordinates of such a place are changed on average."""

_LEAST_SD = 1e-12


class Slopes(NamedTuple):
    """A score (P,) and how it changes with mean and with standard deviation, (P,) each."""

    score: Array
    by_mean: Array
    by_sd: Array


Scoring = Callable[[Array, Array], Slopes]
"""Of means and standard deviations (P,)."""


def upper_bound(kappa: float) -> Scoring:
    """Return the score ``mu + kappa s``.

    Examples
    --------
    >>> upper_bound(2.0)(np.array([1.0]), np.array([0.5])).score
    array([2.])
    """

    def scoring(mu: Array, s: Array) -> Slopes:
        return Slopes(mu + kappa * s, np.ones_like(mu), np.full_like(s, kappa))

    return scoring


def log_expected_improvement(best: float) -> Scoring:
    """Return the score ``log E max(f - best, 0) = log s + log(phi(z) + z Phi(z))``.

    Finite far below the best, too: the same order as the expected improvement's, with slopes to climb along
    where that is all but 0.

    Examples
    --------
    >>> told = log_expected_improvement(0.0)(np.array([0.0, -60.0]), np.array([1.0, 1.0]))
    >>> told.score.round(3).tolist()
    [-0.919, -1809.108]
    """

    def scoring(mu: Array, s: Array) -> Slopes:
        s = np.maximum(s, _LEAST_SD)
        z = (mu - best) / s
        log_phi = -0.5 * z**2 - 0.5 * np.log(2.0 * np.pi)
        log_h = log_phi + _log_excess(z)
        by_mean = np.exp(np.clip(log_ndtr(z) - log_h, None, 600.0)) / s
        by_sd = np.exp(np.clip(log_phi - log_h, None, 600.0)) / s
        return Slopes(np.log(s) + log_h, by_mean, by_sd)

    return scoring


def _log_excess(z: Array) -> Array:
    """Return ``log(1 + z Phi(z) / phi(z))`` (P,), at any z."""
    far = z < -1e4  # where 1 + z Phi / phi has lost its digits to 1 / z^2
    near = np.where(far, -1.0, z)
    high = near > 10.0
    mills = np.sqrt(np.pi / 2.0) * erfcx(-np.where(high, 10.0, near) / np.sqrt(2.0))
    low_form = np.log1p(near * np.where(high, 1.0, mills))
    high_form = np.log(np.maximum(near, 1.0)) + 0.5 * near**2 + 0.5 * np.log(2.0 * np.pi)
    return np.where(far, -2.0 * np.log(np.abs(np.where(far, z, 1.0))), np.where(high, high_form, low_form))


class BoxOptima(NamedTuple):
    """The best point of each box, (K, d), its score (K,), minus infinity where all of a box was rejected."""

    points: Array
    scores: Array


def allowed(state: State, points: Array) -> Mask:
    """Return which points (n, d) lie in the domain, and not about a place that was turned down."""
    able = state.domain.contains(points)
    if state.rejected.any():
        able &= ~state.rejected[[state.domain.nearest(point) for point in points]]
    return able


def places_of_interest(state: State) -> Array:
    """Return where the system stands, and the sites of the largest mean that were read, (k, d)."""
    belief = state.belief
    best = np.argsort(-belief.mean_at_sites(), kind="stable")[:_PLACES]
    return np.concatenate([state.position[None], belief.sites[best].reshape(-1, state.domain.dimension)])


def candidates_in(
    domain: Domain, rng: np.random.Generator, boxes: Boxes, far: int, near: int, places: Array
) -> Array:
    """Return candidates in each box: quasi-random ones, then some about places of interest, moved into it.

    Of a place only some of the coordinates are changed: its others are good already.

    Parameters
    ----------
    domain : Domain
    rng : numpy.random.Generator
    boxes : Boxes
    far, near : int
        How many of each kind in a box; at least 1.
    places : (k, d) array
        At least one.

    Returns
    -------
    (K, far + near, d) array

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> square = Domain.box([Axis("x", "m", 0, 1), Axis("y", "m", 0, 1)], 8)
    >>> half = Boxes(np.array([[0.0, 0.3]]), np.array([[0.5, 0.3]]))
    >>> points = candidates_in(square, np.random.default_rng(0), half, 4, 2, np.array([[0.9, 0.9]]))
    >>> points.shape, points[0, :, 0].max() <= 0.5, np.unique(points[0, :, 1])
    ((1, 6, 2), np.True_, array([0.3]))
    """
    from scipy.stats import qmc

    d = domain.dimension
    low, high = boxes.low[:, None], boxes.high[:, None]
    shares = qmc.Sobol(d, rng=rng).random(1 << (far - 1).bit_length())[:far]  # even in powers of two
    anywhere = low + shares * (high - low)
    turn = np.arange(near)
    scale = np.where(turn < len(places), 0.0, _SPREAD[turn // len(places) % len(_SPREAD)])
    moved = rng.random((near, d)) < _MOVED / d
    steps = moved * rng.standard_normal((near, d)) * scale[:, None] * domain.extent
    about = places[turn % len(places)] + steps
    everywhere = np.concatenate([anywhere, np.broadcast_to(about, (len(low), near, d))], axis=1)
    return np.asarray(np.clip(everywhere, low, high))


def best_of_boxes(
    state: State, scoring: Scoring, boxes: Boxes, candidates: int = 1000, climbs: int = 2
) -> BoxOptima:
    """Return the point of each box with the highest score of mean and standard deviation.

    Parameters
    ----------
    state : State
    scoring : Scoring
    boxes : Boxes
    candidates : int
        Of all boxes together, drawn anew; at least 32 a box.
    climbs : int
        From so many of each box, half of them from its quasi-random candidates.

    Returns
    -------
    BoxOptima
    """
    K, d = boxes.low.shape
    each = max(32, candidates // K)
    near = each // 2
    places = places_of_interest(state)
    points = candidates_in(state.domain, state.rng, boxes, each - near, near, places)
    flat = points.reshape(-1, d)
    able = allowed(state, flat)
    there = Surface(state.belief, flat)
    scores = np.where(able, scoring(there.mean, there.sd).score, -np.inf).reshape(K, each)
    starts = _leading_of(scores, each - near, climbs)
    which = np.repeat(np.arange(K), starts.shape[1])
    rising = _rising(state, scoring)
    ends, values = climbed_together(
        rising, points[which, starts.ravel()], boxes.low[which], boxes.high[which]
    )
    values = np.where(np.isfinite(scores[which, starts.ravel()]), values, -np.inf).reshape(K, -1)
    best = np.argmax(values, axis=1)
    rows = np.arange(K)
    return BoxOptima(ends.reshape(K, -1, d)[rows, best], values[rows, best])


def _leading_of(scores: Array, far: int, climbs: int) -> NDArray[np.intp]:
    """Return the columns (K, climbs) to climb from: the best of the first `far`, and the best of the rest."""
    half = max(1, climbs // 2)
    first = np.argsort(-scores[:, :far], axis=1, kind="stable")[:, :half]
    if climbs == 1:
        return np.asarray(np.argmax(scores, axis=1))[:, None]
    second = far + np.argsort(-scores[:, far:], axis=1, kind="stable")[:, : climbs - half]
    return np.concatenate([first, second], axis=1)


def _rising(state: State, scoring: Scoring) -> Callable[[Array, NDArray[np.intp]], tuple[Array, Array]]:
    """Return the score of points and its gradient; minus infinity where a point is not allowed."""
    guarded = bool(state.rejected.any()) or bool(state.domain.obstacles)

    def rising(points: Array, which: NDArray[np.intp]) -> tuple[Array, Array]:
        moments = state.belief.with_gradients(points)
        sd = np.sqrt(moments.variance)
        score, by_mean, by_sd = scoring(moments.mean, sd)
        by_variance = by_sd / (2.0 * np.maximum(sd, _LEAST_SD))
        gradient = by_mean[:, None] * moments.mean_gradient + by_variance[:, None] * moments.variance_gradient
        if guarded:
            score = np.where(allowed(state, points), score, -np.inf)
        return score, gradient

    return rising


def lazy_boxes(domain: Domain, columns: Columns, position: Array) -> Boxes:
    """Return a box for each module m, (N, d): the modules before m held where they are, the others free.

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> square = Domain.box([Axis("x", "m", 0, 1), Axis("y", "m", 0, 1)], 8)
    >>> lazy_boxes(square, [(0,), (1,)], np.array([0.2, 0.7])).low.tolist()
    [[0.0, 0.0], [0.2, 0.0]]
    """
    ends = [pinned(domain.low, domain.high, columns, m, position) for m in range(len(columns))]
    return Boxes(np.stack([low for low, _ in ends]), np.stack([high for _, high in ends]))


def needs_modules(policy: str, cost: CostModel | None, domain: Domain) -> Modular:
    """Return the costs; raise an `InputError` unless they are those of modules, not all free, over a box."""
    if not isinstance(cost, Modular):
        came = "unknown costs" if cost is None else f"costs of kind {type(cost).__name__}"
        raise InputError(
            f"{policy} with {came}",
            expected='a world whose [cost] has kind = "modular"',
            where="policy.kind",
        )
    if len(cost.modules) < 2:
        raise InputError(
            f"{policy} with a single module: there is nothing to be lazy about",
            expected="at least two modules",
            where="cost.modules",
            fix='choose another rule, for example kind = "gp-ucb"',
        )
    if not (cost.prices.any() or cost.least_sampling_cost(domain.sites)):
        raise InputError(
            f"{policy} where all modules are free: it goes by what changes of settings cost",
            expected="a cost above 0 of a module",
            where="cost.modules",
            fix='give the modules their costs, or choose another rule, for example kind = "gp-ucb"',
        )
    if not domain.continuous:
        raise InputError(
            f"{policy} on given sites",
            expected='a continuous domain, kind = "box"',
            where="domain.kind",
        )
    return cost

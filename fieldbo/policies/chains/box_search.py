"""Search boxes for the point of the highest score, where some coordinates may be held.

===========  ==========================================================================================
``mu, s``    posterior mean and standard deviation, (P,), in model units
``K``        number of boxes, with lower and upper ends (K, d); a coordinate with equal ends is held
``kappa``    multiplier of the standard deviation, ``kappa s``
``z``        ``(mu - best) / s``
===========  ==========================================================================================

Policies that move only some of a system's settings find their next point here. Candidates in all boxes are
scored at once; then all climbs run together along the score's gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from fieldbo._numerics.arrays import Array, Mask
from fieldbo._numerics.climb import climbed_together
from fieldbo._numerics.streams import sobol
from fieldbo.belief.surface import Surface
from fieldbo.costs.base import CostModel
from fieldbo.costs.cells import Modular
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError
from fieldbo.policies.acquisition import log_excess
from fieldbo.policies.candidates import known_exactly
from fieldbo.policies.chains.partition import Boxes, Columns, pinned
from fieldbo.policies.contract import THIS_POLICY, State

_PLACES = 4
"""Number of observed sites, those of the largest mean, to place candidates around."""

_SPREAD = 0.2 * 0.3 ** np.arange(4)
"""Standard deviations of those candidates, as fractions of the axes' lengths: 0.2 down to 0.005."""

_MOVED = 3.0
"""Mean number of coordinates changed in such a candidate."""

_LEAST_SD = 1e-12


class Slopes(NamedTuple):
    """A score (P,) and its derivatives with respect to mean and standard deviation, (P,) each."""

    score: Array
    by_mean: Array
    by_sd: Array


Scoring = Callable[[Array, Array], Slopes]
"""A function of means and standard deviations, (P,) each."""


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


def log_improvement(best: float) -> Scoring:
    """Return the score ``log E max(f - best, 0)``, with slopes that are useful far below the best.

    Examples
    --------
    >>> slopes = log_improvement(0.0)(np.array([0.0, -60.0]), np.array([1.0, 1.0]))
    >>> slopes.score.round(3).tolist()
    [-0.919, -1809.108]
    """

    def scoring(mu: Array, s: Array) -> Slopes:
        s = np.maximum(s, _LEAST_SD)
        z = (mu - best) / s
        log_h = log_excess(z)
        log_phi = -0.5 * z**2 - 0.5 * np.log(2.0 * np.pi)
        by_mean = np.exp(np.clip(log_ndtr(z) - log_h, None, 600.0)) / s
        by_sd = np.exp(np.clip(log_phi - log_h, None, 600.0)) / s
        return Slopes(np.log(s) + log_h, by_mean, by_sd)

    return scoring


class BoxOptima(NamedTuple):
    """The best point of each box, (K, d), and its score (K,); minus infinity if no point can be chosen."""

    points: Array
    scores: Array


def allowed(state: State, points: Array) -> Mask:
    """Return which points (n, d) lie in the domain and away from rejected sites."""
    able = state.domain.contains(points)
    if state.rejected.any():
        able &= ~state.rejected[[state.domain.nearest(point) for point in points]]
    return able


def places_of_interest(state: State) -> Array:
    """Return the present position and the observed sites of the largest mean, (k, d)."""
    belief = state.belief
    best = np.argsort(-belief.mean_at_sites(), kind="stable")[:_PLACES]
    return np.concatenate([state.position[None], belief.sites[best].reshape(-1, state.domain.dimension)])


def candidates_in(
    domain: Domain, rng: np.random.Generator, boxes: Boxes, far: int, near: int, places: Array
) -> Array:
    """Return candidates in each box: quasi-random ones, then some around places of interest.

    Around a place only some of the coordinates change, as the others are good already. Candidates outside the
    box are clipped to it.

    Parameters
    ----------
    domain : Domain
    rng : numpy.random.Generator
    boxes : Boxes
    far, near : int
        Number of quasi-random candidates, and of those around places, in each box; at least 1.
    places : (k, d) array
        Places of interest, at least one.

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
    d = domain.dimension
    low, high = boxes.low[:, None], boxes.high[:, None]
    shares = sobol(d, rng).random(1 << (far - 1).bit_length())[:far]  # balanced at powers of two
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
    """Return the point of the highest score in each box that was not rejected and is not known exactly.

    Parameters
    ----------
    state : State
    scoring : Scoring
    boxes : Boxes
    candidates : int
        Number of candidates in all boxes together; each box gets at least 32.
    climbs : int
        Number of climbs in each box, half of them from its quasi-random candidates.

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
    surface = Surface(state.belief, flat)
    able = allowed(state, flat) & ~known_exactly(state.belief, flat, surface.variance)
    scores = np.where(able, scoring(surface.mean, surface.sd).score, -np.inf).reshape(K, each)
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
    """Return the columns (K, climbs) to climb from: the best of the first `far`, and of the rest."""
    half = max(1, climbs // 2)
    first = np.argsort(-scores[:, :far], axis=1, kind="stable")[:, :half]
    if climbs == 1:
        return np.asarray(np.argmax(scores, axis=1))[:, None]
    second = far + np.argsort(-scores[:, far:], axis=1, kind="stable")[:, : climbs - half]
    return np.concatenate([first, second], axis=1)


def _rising(state: State, scoring: Scoring) -> Callable[[Array, NDArray[np.intp]], tuple[Array, Array]]:
    """Return a function for the score of points and its gradient; minus infinity for one to leave out."""
    guarded = bool(state.rejected.any()) or bool(state.domain.obstacles)

    def rising(points: Array, which: NDArray[np.intp]) -> tuple[Array, Array]:
        moments = state.belief.with_gradients(points)
        sd = np.sqrt(moments.variance)
        score, by_mean, by_sd = scoring(moments.mean, sd)
        by_variance = by_sd / (2.0 * np.maximum(sd, _LEAST_SD))
        gradient = by_mean[:, None] * moments.mean_gradient + by_variance[:, None] * moments.variance_gradient
        able = ~known_exactly(state.belief, points, moments.variance)
        if guarded:
            able &= allowed(state, points)
        return np.where(able, score, -np.inf), gradient

    return rising


def lazy_boxes(domain: Domain, columns: Columns, position: Array) -> Boxes:
    """Return one box per module m, (N, d), in which the modules before m are held and the others free.

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> square = Domain.box([Axis("x", "m", 0, 1), Axis("y", "m", 0, 1)], 8)
    >>> lazy_boxes(square, [(0,), (1,)], np.array([0.2, 0.7])).low.tolist()
    [[0.0, 0.0], [0.2, 0.0]]
    """
    ends = [pinned(domain.low, domain.high, columns, m, position) for m in range(len(columns))]
    return Boxes(np.stack([low for low, _ in ends]), np.stack([high for _, high in ends]))


def needs_modules(cost: CostModel | None, domain: Domain) -> Modular:
    """Return the modular costs; raise an `InputError` unless some module costs something, over a box."""
    if not isinstance(cost, Modular):
        received = "unknown costs" if cost is None else f"costs of kind {type(cost).__name__.lower()}"
        raise InputError(
            f"{THIS_POLICY} cannot use {received}",
            expected='a world whose [cost] has kind = "modular"',
            where="policy.kind",
        )
    if len(cost.modules) < 2:
        raise InputError(
            f"{THIS_POLICY} needs at least two modules, but the world has one",
            expected="at least two modules",
            where="cost.modules",
            fix='choose another policy, for example kind = "gp-ucb"',
        )
    if not (cost.prices.any() or cost.least_sampling_cost(domain.sites)):
        raise InputError(
            f"{THIS_POLICY} needs the costs of changing settings, but all modules are free",
            expected="at least one module with a cost above 0",
            where="cost.modules",
            fix='give the modules their costs, or choose another policy, for example kind = "gp-ucb"',
        )
    if not domain.continuous:
        raise InputError(
            f"{THIS_POLICY} needs a box, but the domain is a list of sites",
            expected='a continuous domain, kind = "box"',
            where="domain.kind",
        )
    return cost

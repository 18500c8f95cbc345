"""Regions of a modular system's variables, and the search for the best point in boxes over them.

Policies that move only some of a system's settings find their next point here. Candidates in all boxes are
scored at once; then all climbs run together along the score's gradient.

===========  ================================================================================================
``N``        number of modules; each has some of the axes, and all but the last are cut into regions
``region``   a closed box over one module's axes: an array (2, D_m) of its lower and upper ends
``regions``  of one module, (n_m, 2, D_m); of all modules, a list of N - 1 such arrays
``arm``      one region of each of the first N - 1 modules, as (N - 1,) region numbers; K arms, (K, N - 1)
``m``        a module, counted from 0
``box``      lower and upper ends (d,), K of them; a coordinate with equal ends is held
``mu, s``    posterior mean and standard deviation, (P,), in model units
``kappa``    multiplier of the standard deviation, ``kappa s``
``z``        ``(mu - best) / s``
===========  ================================================================================================

Lin, Miano and Dyer (2021), sections 3.2 and 3.3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr

from fieldbo._numerics.arrays import Array, Mask
from fieldbo._numerics.streams import sobol
from fieldbo.belief.surface import Surface
from fieldbo.costs.base import CostModel
from fieldbo.costs.cells import Modular
from fieldbo.domain.domain import Domain
from fieldbo.domain.search import climb_together
from fieldbo.errors import InputError
from fieldbo.policies.acquisition import log_excess
from fieldbo.policies.choice import known_exactly, near_rejected
from fieldbo.policies.contract import THIS_POLICY, State

Integers = NDArray[np.intp]

Columns = Sequence[Sequence[int]]
"""The numbers of each module's axes in the domain."""


def slice_box(low: Array, high: Array, axis: int, parts: int = 2) -> Array:
    """Cut a box (D,) across one axis into equal regions, (parts, 2, D).

    Examples
    --------
    >>> slice_box(np.zeros(2), np.array([4.0, 1.0]), axis=0)[:, :, 0].tolist()
    [[0.0, 2.0], [2.0, 4.0]]
    """
    ends = np.linspace(low[axis], high[axis], parts + 1)
    regions = np.repeat(np.stack([low, high])[None], parts, axis=0).astype(float)
    regions[:, 0, axis], regions[:, 1, axis] = ends[:-1], ends[1:]
    return regions


def halves(region: Array, unit: ArrayLike | float = 1.0) -> Array:
    """Bisect a region (2, D) across its longest side, the first if several: (2, 2, D), lower half first.

    Parameters
    ----------
    region : (2, D) array
    unit : float or (D,) array
        Unit of each side, for example the lengths of the axes.

    Examples
    --------
    >>> halves(np.array([[0.0, 0.0], [0.5, 1.0]])).tolist()
    [[[0.0, 0.0], [0.5, 0.5]], [[0.0, 0.5], [0.5, 1.0]]]
    """
    sides = (region[1] - region[0]) / unit
    longest = int(np.argmax(sides >= sides.max() * (1 - 1e-9)))
    return slice_box(region[0], region[1], longest)


class Refined(NamedTuple):
    """Finer regions of each module, the arms over them (K, N - 1), and each arm's parent (K,)."""

    regions: list[Array]
    arms: Integers
    parents: Integers


def refined(
    regions: Sequence[Array],
    arms: Integers,
    keep: Integers,
    units: Sequence[ArrayLike | float] | None = None,
) -> Refined:
    """Bisect every region that a surviving arm uses, and make arms of the halves.

    New regions are numbered per module in the old regions' order, lower half first. Regions that no survivor
    uses are dropped. The arms are all products of the halves of each survivor's regions, in lexicographic
    order (Lin et al. 2021, section 3.3).

    Parameters
    ----------
    regions : sequence of N - 1 arrays (n_m, 2, D_m)
    arms : (K, N - 1) int array
    keep : int array
        The surviving arms, at least one.
    units : sequence of N - 1 floats or (D_m,) arrays, optional
        Unit of each module's sides; see `halves`.

    Examples
    --------
    >>> line = [np.array([[[0.0], [1.0]], [[1.0], [2.0]]])]
    >>> finer = refined(line, np.array([[0], [1]]), np.array([1]))
    >>> finer.regions[0].ravel().tolist(), finer.arms.ravel().tolist(), finer.parents.tolist()
    ([1.0, 1.5, 1.5, 2.0], [0, 1], [1, 1])
    """
    survivors = arms[keep]
    units = [1.0] * len(regions) if units is None else units
    finer, renamed = list[Array](), np.empty_like(survivors)
    for m, old in enumerate(regions):
        used, renamed[:, m] = np.unique(survivors[:, m], return_inverse=True)
        finer.append(np.concatenate([halves(old[k], units[m]) for k in used]))
    sides = np.indices((2,) * len(regions)).reshape(len(regions), -1).T
    products = (2 * renamed[:, None, :] + sides).reshape(-1, len(regions)).astype(np.intp)
    distinct, first = np.unique(products, axis=0, return_index=True)
    return Refined(finer, distinct, np.asarray(keep, dtype=np.intp)[first // len(sides)])


def first_changed(arms: Integers, before: ArrayLike | None) -> Integers:
    """Return the first module (K,) whose region differs between each arm and the previous arm.

    N - 1, the last module, if none does; 0 if there is no previous arm (Lin et al. 2021, eq. 8).

    Parameters
    ----------
    arms : (K, N - 1) int array
    before : (N - 1,) int array or None

    Examples
    --------
    >>> first_changed(np.array([[0, 1], [0, 2], [1, 1]]), [0, 1]).tolist()
    [2, 1, 0]
    """
    if before is None:
        return np.zeros(len(arms), dtype=np.intp)
    other = arms != np.asarray(before)
    return np.asarray(np.where(other.any(axis=1), np.argmax(other, axis=1), arms.shape[1]))


def pinned(low: ArrayLike, high: ArrayLike, columns: Columns, m: int, position: Array) -> tuple[Array, Array]:
    """Return the ends (d,) of a box in which the modules before m keep their values: low equals high there.

    Examples
    --------
    >>> low, high = pinned([0, 0, 0], [1, 1, 1], [(0,), (1, 2)], 1, np.array([0.3, 0.4, 0.5]))
    >>> low.tolist(), high.tolist()
    ([0.3, 0.0, 0.0], [0.3, 1.0, 1.0])
    """
    low, high = np.array(low, dtype=float), np.array(high, dtype=float)
    held = [axis for axes in columns[:m] for axis in axes]
    low[held] = high[held] = position[held]
    return low, high


class Boxes(NamedTuple):
    """One box per arm to search for its next point: lower and upper ends, (K, d) each."""

    low: Array
    high: Array


def boxes_of(
    arms: Integers,
    regions: Sequence[Array],
    columns: Columns,
    changed: Integers,
    position: Array,
    low: ArrayLike,
    high: ArrayLike,
) -> Boxes:
    """Return the box of each arm's next point (Lin et al. 2021, eq. 8).

    Modules before the first one to change keep their values; from it on they stay within their regions. The
    last module is free.

    Parameters
    ----------
    arms : (K, N - 1) int array
    regions : sequence of N - 1 arrays (n_m, 2, D_m)
    columns : sequence of N sequences of int
    changed : (K,) int array
        First module to change, from `first_changed`.
    position : (d,) array
        Present settings of the system.
    low, high : (d,) arrays
        Ends of the axes.

    Examples
    --------
    >>> regions = [np.array([[[0.0], [0.5]], [[0.5], [1.0]]])]
    >>> boxes = boxes_of(np.array([[0], [1]]), regions, [(0,), (1,)], np.array([1, 0]),
    ...                  np.array([0.2, 0.7]), [0, 0], [1, 1])
    >>> boxes.low.tolist(), boxes.high.tolist()
    ([[0.2, 0.0], [0.5, 0.0]], [[0.2, 1.0], [1.0, 1.0]])
    """
    lows = np.tile(np.asarray(low, dtype=float), (len(arms), 1))
    highs = np.tile(np.asarray(high, dtype=float), (len(arms), 1))
    for m, boxes in enumerate(regions):
        axes = list(columns[m])
        lows[:, axes], highs[:, axes] = boxes[arms[:, m], 0], boxes[arms[:, m], 1]
        held = (changed > m)[:, None]
        lows[:, axes] = np.where(held, position[axes], lows[:, axes])
        highs[:, axes] = np.where(held, position[axes], highs[:, axes])
    return Boxes(lows, highs)


def within(points: Array, low: Array, high: Array) -> Mask:
    """Return which points (n, d) lie in a closed box."""
    return np.asarray(((points >= low) & (points <= high)).all(axis=1))


def best_in_box(points: Array, losses: Array, low: Array, high: Array) -> int | None:
    """Return the index of the least loss in a closed box, the first if several; None if no point is inside.

    Parameters
    ----------
    points : (n, d) array
    losses : (n,) array
    low, high : (d,) arrays
    """
    inside = within(points, low, high)
    return int(np.argmin(np.where(inside, losses, np.inf))) if inside.any() else None


def arm_at(arms: Integers, regions: Sequence[Array], columns: Columns, position: Array) -> int | None:
    """Return the first arm whose regions hold a position (d,), or None.

    Examples
    --------
    >>> regions = [np.array([[[0.0], [0.5]], [[0.5], [1.0]]])]
    >>> arm_at(np.array([[1]]), regions, [(0,), (1,)], np.array([0.2, 0.7])) is None
    True
    """
    holds = np.ones(len(arms), dtype=bool)
    for m, boxes in enumerate(regions):
        point = position[list(columns[m])]
        inside = np.asarray(((boxes[:, 0] <= point) & (point <= boxes[:, 1])).all(axis=1))
        holds &= inside[arms[:, m]]
    return int(np.argmax(holds)) if holds.any() else None


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
    return state.domain.contains(points) & ~near_rejected(state, points)


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
    starts = _choose_starts(scores, each - near, climbs)
    which = np.repeat(np.arange(K), starts.shape[1])
    rising = _rising(state, scoring)
    ends, values = climb_together(rising, points[which, starts.ravel()], boxes.low[which], boxes.high[which])
    values = np.where(np.isfinite(scores[which, starts.ravel()]), values, -np.inf).reshape(K, -1)
    best = np.argmax(values, axis=1)
    rows = np.arange(K)
    return BoxOptima(ends.reshape(K, -1, d)[rows, best], values[rows, best])


def _choose_starts(scores: Array, far: int, climbs: int) -> NDArray[np.intp]:
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

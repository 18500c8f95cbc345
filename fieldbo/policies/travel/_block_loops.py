"""Computations of a rollout for a block of sites at once.

For the symbols see :mod:`fieldbo.policies.travel._rollout_loops`.

Sites come in blocks of `WIDTH`. A block is a table whose columns are sites and whose rows are MEAN, VARIANCE,
NOISE, PRICE (of a reading), the position in length scales, the position in units of travel, V, and for each
limit the consumption of a reading and of the trip home. The loops index whole arrays by block: creating a
view counts a reference, which takes as long as a short loop.

===========  ==================================================================================
``known``    (S, B, 3, WIDTH): covariance, travel and its weight in scores, from a site to others
``g``        (T, B, WIDTH): ``g_k``, by how much a standard normal of reading k moves the means
``rest``     (T, B, WIDTH): variances after reading k
``work``     (B, 4, WIDTH): the part of scores that all fantasies share (or the sd), bounds, lead
===========  ==================================================================================
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from fieldbo._numerics.compiled import compiled

UCB, EI = 0, 1
PLAIN, ONE_PLUS, FLOOR, LITERAL, EXCLUDE, PRICED = range(6)
MEAN, VARIANCE, NOISE, PRICE, PLACES = range(5)
SURE, HIGH, LOW, LEAD = range(4)

WIDTH = 128
GROUPS = 16  # per block: sites of a group are consecutive in order, and stored GROUPS apart
EACH = WIDTH // GROUPS
TIE = 1e-12
_LOG2E = 1.4426950408889634
_ROOT_2PI = math.sqrt(2.0 * math.pi)


class Objective(NamedTuple):
    """The score that each step maximises.

    Attributes
    ----------
    score : int
        UCB, ``mean + kappa sd w``, or EI, ``E max(f - best, 0) w``.
    weight : int
        The weight w of travel d: 1 (PLAIN), ``1 / (1 + d / scale)`` (ONE_PLUS), ``1 / max(d, scale)``
        (FLOOR), ``1 / d`` (LITERAL; EXCLUDE, which rules out staying), or one over the full cost (PRICED).
    kappa, scale : float
    may_stay : bool
        Whether later steps may be moves without cost.
    noise_drawn : bool
        Whether readings are drawn with their noise.
    """

    score: int
    weight: int
    kappa: float
    scale: float
    may_stay: bool
    noise_drawn: bool


class Rows(NamedTuple):
    """First rows of the parts of a block after PLACES, their end, and whether travel is a distance."""

    at: int
    V: int
    sampling: int
    back: int
    end: int
    straight: bool


class Matrices(NamedTuple):
    """Quantities that are looked up by index because no formula gives them; (0, 0) where one does.

    Each between sites (N, N) and between first steps and sites (F, N): prior covariances, travel, and the
    consumption of a limit that is not proportional to travel.
    """

    prior: Any
    first_prior: Any
    travel: Any
    first_travel: Any
    other: Any
    first_other: Any


class Sources(NamedTuple):
    """Where blocks come from: the rows before, in and after V, of sites (., N) and first steps (., F)."""

    head: Any
    solved: Any
    tail: Any
    first_head: Any
    first_solved: Any


class Hopes(NamedTuple):
    """Bounds by which first steps are given up that cannot be among the leading ones.

    Attributes
    ----------
    counts : (F,) bool array
        First steps among which the leaders are sought.
    slack : float
        Rounding of values and bounds.
    steps : (M, T) array
        Bounds of the scores of later steps, at least 0, because a path may end.
    share, lift, gain : (R,) arrays
        The mean score of the second step, over fantasies, is at most that of the R bounds
        ``mean + sd (lift + gain w)``, weighted by `share`, for travel of weight w. Empty: not known.
    after : (R, B) array
        The same bounds for all sites from each block on, whatever the travel.
    """

    counts: Any
    slack: float
    steps: Any
    share: Any
    lift: Any
    gain: Any
    after: Any


@compiled()
def _exp(x: Any) -> Any:
    """Return ``e^x`` for x of at most 0, to full precision, without a call that prevents vectorisation."""
    y = x * _LOG2E
    y = y if y > -1000.0 else -1000.0
    whole = np.floor(y + 0.5)
    t = (y - whole) * 0.6931471805599453
    p = 2.08767569878681e-9  # 1 / 12!
    p = p * t + 2.505210838544172e-8
    p = p * t + 2.755731922398589e-7
    p = p * t + 2.7557319223985893e-6
    p = p * t + 2.48015873015873e-5
    p = p * t + 1.984126984126984e-4
    p = p * t + 1.3888888888888889e-3
    p = p * t + 8.333333333333333e-3
    p = p * t + 4.1666666666666664e-2
    p = p * t + 0.16666666666666666
    p = p * t + 0.5
    p = p * t + 1.0
    p = p * t + 1.0
    power = (np.int64(whole) + np.int64(1023)) << np.int64(52)
    return p * np.int64(power).view(np.float64)


@compiled(numbers=True)
def squares(
    table: Any, b: int, places: Any, at: int, first: int, end: int, known: Any, slot: int, row: int
) -> None:
    """Fill a row of ``known[slot, b]`` with squared distances, in the coordinates `first` to `end`."""
    if end - first == 2:  # most domains: in one pass
        x, y = places[at, first], places[at, first + 1]
        for p in range(WIDTH):
            east, north = table[b, first, p] - x, table[b, first + 1, p] - y
            known[slot, b, row, p] = east * east + north * north
        return
    for p in range(WIDTH):
        known[slot, b, row, p] = 0.0
    for c in range(first, end):
        for p in range(WIDTH):
            gap = table[b, c, p] - places[at, c]
            known[slot, b, row, p] += gap * gap


@compiled(numbers=True)
def correlations(
    kind: int, amplitude: float, table: Any, b: int, places: Any, at: int, end: int, known: Any, slot: int
) -> None:
    """Fill row 0 of ``known[slot, b]`` with prior covariances between a block's sites and `here`."""
    squares(table, b, places, at, PLACES, end, known, slot, 0)
    if kind == 0:
        for p in range(WIDTH):
            known[slot, b, 0, p] = amplitude * _exp(-0.5 * known[slot, b, 0, p])
    elif kind == 1:
        for p in range(WIDTH):
            s = np.sqrt(3.0 * known[slot, b, 0, p])
            known[slot, b, 0, p] = amplitude * (1.0 + s) * _exp(-s)
    else:
        for p in range(WIDTH):
            s = np.sqrt(5.0 * known[slot, b, 0, p])
            known[slot, b, 0, p] = amplitude * (1.0 + s + s * s * (1.0 / 3.0)) * _exp(-s)


@compiled(numbers=True)
def less_explained(
    table: Any, b: int, places: Any, at: int, first: int, end: int, known: Any, slot: int
) -> None:
    """Subtract from row 0 of ``known[slot, b]`` the covariance that V explains, eight rows at a time."""
    c = first
    while c + 8 <= end:
        for p in range(WIDTH):
            even = places[at, c] * table[b, c, p] + places[at, c + 1] * table[b, c + 1, p]
            odd = places[at, c + 2] * table[b, c + 2, p] + places[at, c + 3] * table[b, c + 3, p]
            even += places[at, c + 4] * table[b, c + 4, p] + places[at, c + 5] * table[b, c + 5, p]
            odd += places[at, c + 6] * table[b, c + 6, p] + places[at, c + 7] * table[b, c + 7, p]
            known[slot, b, 0, p] -= even + odd
        c += 8
    while c < end:
        for p in range(WIDTH):
            known[slot, b, 0, p] -= places[at, c] * table[b, c, p]
        c += 1


@compiled(numbers=True)
def distances(table: Any, b: int, places: Any, at: int, first: int, end: int, known: Any, slot: int) -> None:
    """Fill row 1 of ``known[slot, b]`` with distances."""
    squares(table, b, places, at, first, end, known, slot, 1)
    for p in range(WIDTH):
        known[slot, b, 1, p] = np.sqrt(known[slot, b, 1, p])


@compiled(numbers=True)
def weigh(kind: int, scale: float, table: Any, b: int, known: Any, slot: int) -> None:
    """Fill row 2 of ``known[slot, b]`` with the weights of travel in scores."""
    if kind == PLAIN:
        for p in range(WIDTH):
            known[slot, b, 2, p] = 1.0
    elif kind == ONE_PLUS:
        for p in range(WIDTH):
            known[slot, b, 2, p] = scale / (scale + known[slot, b, 1, p])
    elif kind == FLOOR:
        for p in range(WIDTH):
            travel = known[slot, b, 1, p]
            known[slot, b, 2, p] = 1.0 / (travel if travel > scale else scale)
    elif kind == PRICED:
        for p in range(WIDTH):
            known[slot, b, 2, p] = 1.0 / (known[slot, b, 1, p] + table[b, PRICE, p])
    else:
        staying = (
            np.inf if kind == LITERAL else 0.0
        )  # where it is excluded it must not make NaN with kappa = 0
        for p in range(WIDTH):
            travel = known[slot, b, 1, p]
            known[slot, b, 2, p] = 1.0 / travel if travel > 0.0 else staying


@compiled(numbers=True)
def most_from(lift: float, gain: float, table: Any, b: int, known: Any, slot: int) -> float:
    """Return the highest ``mean + sd (lift + gain w)`` of block b, w being the weights of `slot`."""
    top = -np.inf
    for p in range(WIDTH):
        s = np.sqrt(table[b, VARIANCE, p])
        bound = table[b, MEAN, p] + s * (lift + gain * known[slot, b, 2, p])
        top = bound if bound > top else top
    return top


@compiled(numbers=True)
def condition(
    g: Any, rest: Any, along: Any, k: int, b: int, scale: float, known: Any, slot: int, table: Any
) -> None:
    """Compute g_k and the variances after reading k in block b.

    From the covariances with x_k before the path began, minus the part that g_0 to g_(k-1) explain.
    """
    if k == 0:
        for p in range(WIDTH):
            step = known[slot, b, 0, p] * scale
            g[0, b, p] = step
            left = table[b, VARIANCE, p] - step * step
            rest[0, b, p] = left if left > 0.0 else 0.0
        return
    there = along[k, 0]
    for p in range(WIDTH):
        g[k, b, p] = known[slot, b, 0, p] - there * g[0, b, p]
    for i in range(1, k):
        there = along[k, i]
        for p in range(WIDTH):
            g[k, b, p] -= there * g[i, b, p]
    for p in range(WIDTH):
        step = g[k, b, p] * scale
        g[k, b, p] = step
        left = rest[k - 1, b, p] - step * step
        rest[k, b, p] = left if left > 0.0 else 0.0


@compiled(numbers=True)
def moves(middle: Any, half: Any, b: int, g: Any, k: int, work: Any) -> None:
    """Fill HIGH with the midpoint of the readings' shifts of the means, and LOW with half their range."""
    for p in range(WIDTH):
        work[b, HIGH, p] = 0.0
        work[b, LOW, p] = 0.0
    for i in range(k + 1):
        centre, reach = middle[i], half[i]
        for p in range(WIDTH):
            work[b, HIGH, p] += g[i, b, p] * centre
            work[b, LOW, p] += abs(g[i, b, p]) * reach


@compiled(numbers=True, inline=True)
def ucb_bounds(
    kappa: float,
    middle: Any,
    half: Any,
    along: Any,
    k: int,
    b: int,
    scale: float,
    known: Any,
    slot: int,
    table: Any,
    g: Any,
    rest: Any,
    work: Any,
) -> None:
    """Compute g_k and the variances as `condition` does and, in the same pass, the bounds of the scores.

    Fills block b of `work`: the part of the scores that all members share, and bounds of the scores.
    """
    if k == 0:
        centre, reach = middle[0], half[0]
        for p in range(WIDTH):
            step = known[slot, b, 0, p] * scale
            left = table[b, VARIANCE, p] - step * step
            left = left if left > 0.0 else 0.0
            s = np.sqrt(left)
            gain = kappa * s * known[slot, b, 2, p] if s > 0.0 else 0.0
            sure = table[b, MEAN, p] + gain
            score, spread = sure + step * centre, abs(step) * reach
            g[0, b, p], rest[0, b, p], work[b, SURE, p] = step, left, sure
            work[b, HIGH, p], work[b, LOW, p] = score + spread, score - spread
        return
    if k == 1:
        there, centre0, reach0, centre, reach = along[1, 0], middle[0], half[0], middle[1], half[1]
        for p in range(WIDTH):
            before = g[0, b, p]
            step = (known[slot, b, 0, p] - there * before) * scale
            left = rest[0, b, p] - step * step
            left = left if left > 0.0 else 0.0
            s = np.sqrt(left)
            gain = kappa * s * known[slot, b, 2, p] if s > 0.0 else 0.0
            sure = table[b, MEAN, p] + gain
            score = sure + before * centre0 + step * centre
            spread = abs(before) * reach0 + abs(step) * reach
            g[1, b, p], rest[1, b, p], work[b, SURE, p] = step, left, sure
            work[b, HIGH, p], work[b, LOW, p] = score + spread, score - spread
        return
    condition(g, rest, along, k, b, scale, known, slot, table)
    moves(middle, half, b, g, k, work)
    for p in range(WIDTH):
        s = np.sqrt(rest[k, b, p])
        gain = kappa * s * known[slot, b, 2, p] if s > 0.0 else 0.0
        sure = table[b, MEAN, p] + gain
        score, spread = sure + work[b, HIGH, p], work[b, LOW, p]
        work[b, SURE, p] = sure
        work[b, HIGH, p], work[b, LOW, p] = score + spread, score - spread


@compiled(numbers=True)
def ei_bounds(
    least: float,
    most: float,
    middle: Any,
    half: Any,
    table: Any,
    b: int,
    g: Any,
    rest: Any,
    k: int,
    known: Any,
    slot: int,
    work: Any,
) -> None:
    """Fill `work` like `ucb_bounds`, with the sd as the shared part, for a best from `least` to `most`."""
    moves(middle, half, b, g, k, work)
    for p in range(WIDTH):
        s, w = np.sqrt(rest[k, b, p]), known[slot, b, 2, p]
        work[b, SURE, p] = s
        middle_mean, half_range = table[b, MEAN, p] + work[b, HIGH, p], work[b, LOW, p]
        work[b, HIGH, p] = ei_above(middle_mean + half_range - least, s) * w
        work[b, LOW, p] = ei_below(middle_mean - half_range - most, s) * w


@compiled(numbers=True)
def ei_above(gain: Any, s: Any) -> Any:
    """Return an upper bound of ``s h(gain / s)``, ``h(z) = z Phi(z) + phi(z)``, sd s of at least 0.

    ``h(a) = a + h(-a)``, and by Boyd's bound of Mills' ratio (1959) ``h(-a)`` is at most
    ``phi(a) (r - a) / (r + (pi - 1) a)``, ``r^2 = a^2 + 2 pi``, at most 3% too large.
    """
    a = standardised(gain, s)
    r = np.sqrt(a * a + 2.0 * math.pi)
    tail = _exp(-0.5 * a * a) * (1.0 / _ROOT_2PI) * (r - a) / (r + (math.pi - 1.0) * a)
    return (gain if gain > 0.0 else 0.0) + s * tail


@compiled(numbers=True)
def ei_below(gain: Any, s: Any) -> Any:
    """Return a lower bound of the same by Sampford (1953): ``r^2 = a^2 + 8``, ``(r - a) / (r + 3 a)``."""
    a = standardised(gain, s)
    r = np.sqrt(a * a + 8.0)
    tail = _exp(-0.5 * a * a) * (1.0 / _ROOT_2PI) * (r - a) / (r + 3.0 * a)
    return (gain if gain > 0.0 else 0.0) + s * tail


@compiled(numbers=True)
def standardised(gain: Any, s: Any) -> Any:
    """Return ``|gain| / s``, at most 100, where the density vanishes."""
    a = abs(gain) * (1.0 / s if s > 0.0 else 0.0)
    return a if a < 100.0 else 100.0


@compiled()
def expected_improvement(gain: float, s: float) -> float:
    """Return ``E max(f - best, 0)`` for an f whose mean exceeds the best by `gain`."""
    if s <= 0.0:
        return max(gain, 0.0)
    z = gain / s
    below = 0.5 * math.erfc(-z / math.sqrt(2.0))
    return max(gain * below + s * math.exp(-0.5 * z * z) / _ROOT_2PI, 0.0)


@compiled(numbers=True)
def out_of_reach(
    rate: float, known: Any, slot: int, table: Any, b: int, sampling: int, back: int, left: float, work: Any
) -> None:
    """Exclude unaffordable sites, with minus infinity in both bounds."""
    for p in range(WIDTH):
        expensive = rate * known[slot, b, 1, p] + table[b, sampling, p] + table[b, back, p] > left
        work[b, HIGH, p] = -np.inf if expensive else work[b, HIGH, p]
        work[b, LOW, p] = -np.inf if expensive else work[b, LOW, p]


@compiled()
def out_of_reach_by_table(
    moves: Any, row: int, order: Any, table: Any, b: int, sampling: int, back: int, left: float, work: Any
) -> None:
    """Do the same, looking up the consumption of moves in a row of `moves`."""
    for p in range(WIDTH):
        if not moves[row, order[b * WIDTH + p]] + table[b, sampling, p] + table[b, back, p] <= left:
            work[b, HIGH, p] = work[b, LOW, p] = -np.inf


@compiled(numbers=True)
def moves_only(priced: float, known: Any, slot: int, table: Any, b: int, work: Any) -> None:
    """Exclude sites that cost nothing: travel plus `priced` times the price of a reading."""
    for p in range(WIDTH):
        free = known[slot, b, 1, p] + priced * table[b, PRICE, p] <= 0.0
        work[b, HIGH, p] = -np.inf if free else work[b, HIGH, p]
        work[b, LOW, p] = -np.inf if free else work[b, LOW, p]


@compiled(numbers=True, inline=True)
def tops(work: Any, b: int, row: int, peaks: Any) -> float:
    """Return the highest of a row of block b; put that of each group into the first GROUPS of ``peaks[b]``.

    Group l has the sites l, l + GROUPS, and so on. Halving fills vector registers.
    """
    half = WIDTH // 2
    for p in range(half):
        first, second = work[b, row, p], work[b, row, half + p]
        peaks[b, p] = first if first > second else second
    while half > GROUPS:
        half //= 2
        for p in range(half):
            first, second = peaks[b, p], peaks[b, half + p]
            peaks[b, p] = first if first > second else second
    top = -np.inf
    for p in range(GROUPS):
        top = max(top, peaks[b, p])
    return top


@compiled()
def tie_at(top: float) -> float:
    """Return the tolerance within which scores equal the highest one."""
    return TIE * abs(top) if abs(top) < np.inf else 0.0

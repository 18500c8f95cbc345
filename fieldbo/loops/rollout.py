"""Loops that roll a rule out along simulated paths.

===========  ==================================================================================
``F, N``     first steps; sites that later steps choose among, the most promising ones first
``M, T``     fantasies, readings of a path
``x_k``      where reading k is taken; ``x_0`` is the first step
``V``        ``L^-1 k(X, .)``, (n, N); the posterior covariance is ``k - V^T V``
``g_k``      by how much a standard normal of reading k moves the mean of each site: its covariance with
             ``x_k`` over the root of the reading's variance, given the readings before it
``e_kj``     the standard normal of reading k in fantasy j
===========  ==================================================================================

Given readings 0 to k, the mean of fantasy j is ``mu + sum_k g_k e_kj`` and the variance of all of them
``s^2 - sum_k g_k^2``: fantasies that have been to the same sites share everything but ``e``, and are carried
along together until their next sites differ. A site is looked at only while a bound says that it may be
the next one of some fantasy; bounds never decide, so that the choice is that of the full sum.

Sites come in blocks of `WIDTH`, each a table whose rows are MEAN, VARIANCE, NOISE, PRICE (of a reading there),
then its place in length scales, its place in units of travel, V, and for each limit what a reading and the way
home take. A column of it is all that is known of a site. Arrays are cut into views as seldom as can be: each
view is counted, and threads that count views of one array wait for each other.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import prange

from fieldbo.loops import compiled

UCB, EI = 0, 1
PLAIN, ONE_PLUS, FLOOR, LITERAL, EXCLUDE, PRICED = range(6)
MEAN, VARIANCE, NOISE, PRICE, PLACES = range(5)
_SURE, _HIGH, _LOW = range(3)

WIDTH = 128
BATCH = 8  # first steps whose covariances are worked out together
_KEPT = 512  # later sites of which a thread keeps what it knows
_TIE = 1e-12
_LOG2E = 1.4426950408889634
_ROOT_2PI = math.sqrt(2.0 * math.pi)


class Rule(NamedTuple):
    """What is maximised at each step.

    Attributes
    ----------
    score : int
        UCB, ``mean + kappa sd w``, or EI, ``E max(f - best, 0) w``.
    weight : int
        What w is of the way: 1 (PLAIN), ``1 / (1 + d / scale)`` (ONE_PLUS), ``1 / max(d, scale)`` (FLOOR),
        ``1 / d`` (LITERAL; EXCLUDE, where staying is ruled out), or one over the full price (PRICED).
    kappa, scale : float
    may_stay : bool
        Whether moves that cost nothing are among the later steps.
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
    """Which rows of a block hold what, after PLACES; the last one is the number of rows."""

    at: int
    V: int
    sampling: int
    back: int
    end: int


class Matrices(NamedTuple):
    """What is looked up by index where it follows no formula; (0, 0) where it does.

    Each between sites (N, N) and between first steps and sites (F, N): prior covariances, travel, and what
    travel takes of a limit that is not proportional to it.
    """

    prior: Any
    first_prior: Any
    travel: Any
    first_travel: Any
    other: Any
    first_other: Any


@compiled()
def _exp(x: Any) -> Any:
    """Return ``e^x`` for x of at most 0, to the last digits, without a call that stops vectorisation."""
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
def _correlations(
    kind: int, amplitude: float, table: Any, b: int, here: Any, end: int, known: Any, slot: int
) -> None:
    """Fill row 0 of ``known[slot, b]`` with prior covariances between a block's sites and `here`."""
    for p in range(WIDTH):
        gap = table[b, PLACES, p] - here[PLACES]
        known[slot, b, 0, p] = gap * gap
    for c in range(PLACES + 1, end):
        for p in range(WIDTH):
            gap = table[b, c, p] - here[c]
            known[slot, b, 0, p] += gap * gap
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
def _less_explained(table: Any, b: int, here: Any, first: int, end: int, known: Any, slot: int) -> None:
    """Take what the rows of V explain off row 0 of ``known[slot, b]``, eight of them at a time."""
    c = first
    while c + 8 <= end:
        for p in range(WIDTH):
            one = here[c] * table[b, c, p] + here[c + 1] * table[b, c + 1, p]
            two = here[c + 2] * table[b, c + 2, p] + here[c + 3] * table[b, c + 3, p]
            one += here[c + 4] * table[b, c + 4, p] + here[c + 5] * table[b, c + 5, p]
            two += here[c + 6] * table[b, c + 6, p] + here[c + 7] * table[b, c + 7, p]
            known[slot, b, 0, p] -= one + two
        c += 8
    while c < end:
        for p in range(WIDTH):
            known[slot, b, 0, p] -= here[c] * table[b, c, p]
        c += 1


@compiled(numbers=True)
def _distances(table: Any, b: int, here: Any, first: int, end: int, known: Any, slot: int) -> None:
    """Fill row 1 of ``known[slot, b]`` with distances."""
    for p in range(WIDTH):
        known[slot, b, 1, p] = 0.0
    for c in range(first, end):
        for p in range(WIDTH):
            gap = table[b, c, p] - here[c]
            known[slot, b, 1, p] += gap * gap
    for p in range(WIDTH):
        known[slot, b, 1, p] = np.sqrt(known[slot, b, 1, p])


@compiled(numbers=True)
def _weigh(kind: int, scale: float, table: Any, b: int, known: Any, slot: int) -> None:
    """Fill row 2 of ``known[slot, b]`` with what scores are multiplied by for the way."""
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
        for p in range(WIDTH):
            travel = known[slot, b, 1, p]
            known[slot, b, 2, p] = 1.0 / travel if travel > 0.0 else np.inf


@compiled(numbers=True)
def _condition(
    g: Any, rest: Any, along: Any, k: int, b: int, scale: float, known: Any, slot: int, table: Any
) -> None:
    """Work out g_k and the variances after reading k in block b.

    From the covariances with x_k before the path began, less what g_0 to g_(k-1) explain.
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
def _ucb_bounds(
    kappa: float,
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
    """Fill block b of `work` with the part of the scores that all members share, and bounds of the scores."""
    centre, reach = middle[0], half[0]
    for p in range(WIDTH):
        work[b, _HIGH, p] = g[0, b, p] * centre
        work[b, _LOW, p] = abs(g[0, b, p]) * reach
    for i in range(1, k + 1):
        centre, reach = middle[i], half[i]
        for p in range(WIDTH):
            work[b, _HIGH, p] += g[i, b, p] * centre
            work[b, _LOW, p] += abs(g[i, b, p]) * reach
    for p in range(WIDTH):
        s = np.sqrt(rest[k, b, p])
        gain = kappa * s * known[slot, b, 2, p] if s > 0.0 else 0.0
        sure = table[b, MEAN, p] + gain
        middle_score, half_range = work[b, _HIGH, p] + sure, work[b, _LOW, p]
        work[b, _SURE, p] = sure
        work[b, _HIGH, p] = middle_score + half_range
        work[b, _LOW, p] = middle_score - half_range


@compiled(numbers=True)
def _ei_bounds(
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
    """Do as `_ucb_bounds`, with the sd in place of what is shared; the best lies between `least` and `most`."""
    for p in range(WIDTH):
        work[b, _HIGH, p] = table[b, MEAN, p]
        work[b, _LOW, p] = 0.0
    for i in range(k + 1):
        centre, reach = middle[i], half[i]
        for p in range(WIDTH):
            work[b, _HIGH, p] += g[i, b, p] * centre
            work[b, _LOW, p] += abs(g[i, b, p]) * reach
    for p in range(WIDTH):
        s, w = np.sqrt(rest[k, b, p]), known[slot, b, 2, p]
        work[b, _SURE, p] = s
        middle_mean, half_range = work[b, _HIGH, p], work[b, _LOW, p]
        work[b, _HIGH, p] = _ei_above(middle_mean + half_range - least, s) * w
        work[b, _LOW, p] = _ei_below(middle_mean - half_range - most, s) * w


@compiled(numbers=True)
def _ei_above(gain: Any, s: Any) -> Any:
    """Return an upper bound of ``s h(gain / s)``, ``h(z) = z Phi(z) + phi(z)``, sd s of at least 0.

    ``h(-a)`` is at most ``phi(a) / (1 + a^2)``, and ``h(a) = a + h(-a)``.
    """
    z = gain * (1.0 / s if s > 0.0 else 0.0)
    return (gain if gain > 0.0 else 0.0) + s * _exp(-0.5 * z * z) * (1.0 / _ROOT_2PI) / (1.0 + z * z)


@compiled(numbers=True)
def _ei_below(gain: Any, s: Any) -> Any:
    """Return a lower bound of it: ``h(-a)`` is at least ``phi(a) (r - a) / (r + a)``, ``r^2 = a^2 + 8 / pi``."""
    z = gain * (1.0 / s if s > 0.0 else 0.0)
    a = abs(z)
    r = np.sqrt(a * a + 8.0 / math.pi)
    tail = _exp(-0.5 * a * a) * (1.0 / _ROOT_2PI) * (r - a) / (r + a)
    return (gain if gain > 0.0 else 0.0) + s * tail


@compiled()
def _expected_improvement(gain: float, s: float) -> float:
    if s <= 0.0:
        return max(gain, 0.0)
    z = gain / s
    below = 0.5 * math.erfc(-z / math.sqrt(2.0))
    return max(gain * below + s * math.exp(-0.5 * z * z) / _ROOT_2PI, 0.0)


@compiled(numbers=True)
def _out_of_reach(
    rate: float, known: Any, slot: int, table: Any, b: int, sampling: int, back: int, left: float, work: Any
) -> None:
    """Rule sites out, by minus infinity in both bounds, that can't be paid for."""
    for p in range(WIDTH):
        dear = rate * known[slot, b, 1, p] + table[b, sampling, p] + table[b, back, p] > left
        work[b, _HIGH, p] = -np.inf if dear else work[b, _HIGH, p]
        work[b, _LOW, p] = -np.inf if dear else work[b, _LOW, p]


@compiled()
def _out_of_reach_by_table(
    ways: Any, row: int, order: Any, table: Any, b: int, sampling: int, back: int, left: float, work: Any
) -> None:
    for p in range(WIDTH):
        if not ways[row, order[b * WIDTH + p]] + table[b, sampling, p] + table[b, back, p] <= left:
            work[b, _HIGH, p] = work[b, _LOW, p] = -np.inf


@compiled(numbers=True)
def _moves_only(priced: float, known: Any, slot: int, table: Any, b: int, work: Any) -> None:
    """Rule sites out where going, and reading if that is priced, costs nothing."""
    for p in range(WIDTH):
        free = known[slot, b, 1, p] + priced * table[b, PRICE, p] <= 0.0
        work[b, _HIGH, p] = -np.inf if free else work[b, _HIGH, p]
        work[b, _LOW, p] = -np.inf if free else work[b, _LOW, p]


@compiled(numbers=True)
def _top(work: Any, b: int, row: int) -> float:
    top = -np.inf
    for p in range(WIDTH):
        top = work[b, row, p] if work[b, row, p] > top else top
    return top


@compiled()
def _slack(top: float) -> float:
    return _TIE * abs(top) if abs(top) < np.inf else 0.0


@compiled(numbers=True)
def _choose(few: Any, count: int, k: int, m: int, steps: Any, tie: float, score: Any, chosen: Any) -> None:
    """Find, of the sites in question, that of the highest upper confidence bound in each fantasy.

    Sites outside, fantasies inside: the inner loops fill vector registers.

    Parameters
    ----------
    few : (., 4 + T) array
        As `_in_question` fills it.
    count, k, m : int
        Numbers of sites; of readings, less one; of fantasies.
    steps : (T, .) array
        The fantasies' e.
    tie : float
        Scores that differ by less are equal: that of the site with the lowest index wins.
    score, chosen : (., m) arrays
        Filled: scores and which of `few`, in their first rows.
    """
    for j in range(m):
        score[0, j], chosen[0, j], chosen[1, j] = -np.inf, 0.0, np.inf
    for q in range(count):
        sure, index, last, number = few[q, 0], few[q, 3], few[q, 4 + k], float(q)
        for j in range(m):
            score[1, j] = sure + last * steps[k, j]
        for i in range(k):
            g = few[q, 4 + i]
            for j in range(m):
                score[1, j] += g * steps[i, j]
        for j in range(m):
            value, best, lowest = score[1, j], score[0, j], chosen[1, j]
            better = (value > best + tie) | ((value >= best - tie) & (index < lowest))
            score[0, j] = value if better else best
            chosen[0, j] = number if better else chosen[0, j]
            chosen[1, j] = index if better else lowest


@compiled(numbers=True)
def _choose_improvement(
    few: Any, count: int, k: int, m: int, steps: Any, best: Any, score: Any, chosen: Any
) -> None:
    """Do as `_choose`, of the expected improvement on `best` (m,).

    Bounds come first: the improvement itself is worked out where it may be the largest.
    """
    for j in range(m):
        score[0, j], chosen[0, j], chosen[1, j], score[2, j] = -np.inf, 0.0, np.inf, -np.inf
    for turn in range(2):
        for q in range(count):
            mean, s, w = few[q, 0], few[q, 1], few[q, 2]
            for j in range(m):
                score[1, j] = mean - best[j]
            for i in range(k + 1):
                g = few[q, 4 + i]
                for j in range(m):
                    score[1, j] += g * steps[i, j]
            if turn == 0:
                for j in range(m):
                    below = _ei_below(score[1, j], s) * w
                    score[2, j] = below if below > score[2, j] else score[2, j]
                continue
            for j in range(m):
                if _ei_above(score[1, j], s) * w >= score[2, j]:
                    value, index = _expected_improvement(score[1, j], s) * w, few[q, 3]
                    tie = _TIE * value
                    if value > score[0, j] + tie or (value >= score[0, j] - tie and index < chosen[1, j]):
                        score[0, j], chosen[0, j], chosen[1, j] = value, q, index


@compiled()
def _learn(
    rule: Any,
    model: Any,
    rows: Any,
    b: int,
    f: int,
    x: int,
    slot: int,
    here: Any,
    matrices: Any,
    order: Any,
    table: Any,
    known: Any,
    explained: bool,
) -> None:
    """Work out covariances, ways and weights between block b and site x, or, where that is below 0, first step f.

    Without what V explains if it is not `explained` here.
    """
    kind, amplitude = model
    if kind >= 0:
        _correlations(kind, amplitude, table, b, here, rows.at, known, slot)
    elif x < 0:
        for p in range(WIDTH):
            known[slot, b, 0, p] = matrices.first_prior[f, order[b * WIDTH + p]]
    else:
        for p in range(WIDTH):
            known[slot, b, 0, p] = matrices.prior[order[x], order[b * WIDTH + p]]
    if explained:
        _less_explained(table, b, here, rows.V, rows.sampling, known, slot)
    if len(matrices.travel) == 0:
        _distances(table, b, here, rows.at, rows.V, known, slot)
    elif x < 0:
        for p in range(WIDTH):
            known[slot, b, 1, p] = matrices.first_travel[f, order[b * WIDTH + p]]
    else:
        for p in range(WIDTH):
            known[slot, b, 1, p] = matrices.travel[order[x], order[b * WIDTH + p]]
    _weigh(rule.weight, rule.scale, table, b, known, slot)


@compiled()
def _learn_batch(
    rule: Any,
    model: Any,
    rows: Any,
    b: int,
    batch: Any,
    firsts: Any,
    columns: Any,
    matrices: Any,
    order: Any,
    table: Any,
    known: Any,
) -> None:
    """Do the same for a batch of first steps: V is read once for all of them."""
    explained = np.dot(columns, table[b, rows.V : rows.sampling])
    for slot in range(len(batch)):
        f = batch[slot]
        _learn(rule, model, rows, b, f, -1, slot, firsts[f], matrices, order, table, known, False)
        for p in range(WIDTH):
            known[slot, b, 0, p] -= explained[slot, p]


@compiled()
def _afford(
    rule: Any,
    rows: Any,
    b: int,
    f: int,
    x: int,
    left: Any,
    rate: Any,
    spent: Any,
    at: int,
    matrices: Any,
    order: Any,
    table: Any,
    known: Any,
    slot: int,
    work: Any,
) -> None:
    """Rule sites out that can't be paid for, or are not to be chosen; row `at` of `spent` is what was spent."""
    for i in range(len(left)):
        rest, sampling, back = left[i] - spent[at, i], rows.sampling + i, rows.back + i
        if rate[i] >= 0.0:
            _out_of_reach(rate[i], known, slot, table, b, sampling, back, rest, work)
        elif x < 0:
            _out_of_reach_by_table(matrices.first_other, f, order, table, b, sampling, back, rest, work)
        else:
            _out_of_reach_by_table(matrices.other, order[x], order, table, b, sampling, back, rest, work)
    if rule.weight == EXCLUDE:
        _moves_only(0.0, known, slot, table, b, work)
    if not rule.may_stay:
        _moves_only(1.0, known, slot, table, b, work)


@compiled(inline=True)
def _find(x: int, slot_of: Any, owner: Any, filled: Any, used: Any) -> int:
    """Return where what is known of site x is; it gets a place if it has none."""
    slot = slot_of[x]
    if slot < 0:
        slot = used[0]
        if slot < len(owner) - 1:
            used[0] += 1
        elif owner[slot] >= 0:
            slot_of[owner[slot]] = -1  # the last place is anybody's
        slot_of[x], owner[slot], filled[slot] = slot, x, 0
    return slot


@compiled(inline=True)
def _ranges(
    k: int, every: Any, low: int, high: int, e: Any, best: Any, middle: Any, half: Any
) -> tuple[float, float]:
    """Fill middle and half width of the members' e_i; return the range of what is best for them."""
    first = every[low]
    for i in range(k + 1):
        lowest = highest = e[i, first]
        for at in range(low, high):
            step = e[i, every[at]]
            lowest, highest = min(lowest, step), max(highest, step)
        middle[i], half[i] = 0.5 * (lowest + highest), 0.5 * (highest - lowest)
    lowest = highest = best[k + 1, first]
    for at in range(low, high):
        lowest, highest = min(lowest, best[k + 1, every[at]]), max(highest, best[k + 1, every[at]])
    return lowest, highest


@compiled(inline=True)
def _in_question(
    rule: Any,
    blocks: int,
    line: float,
    k: int,
    order: Any,
    table: Any,
    known: Any,
    slot: int,
    g: Any,
    work: Any,
    tops: Any,
    who: Any,
    few: Any,
) -> int:
    """Fill `who` with the sites whose upper bound is at least `line`; return how many there are.

    And a row of `few` for each: the part of its score that all members share (or its mean), sd, weight, index,
    and g_0 to g_k.
    """
    count = 0
    for b in range(blocks):
        if tops[b] > -np.inf and tops[b] >= line:
            for p in range(WIDTH):
                if work[b, _HIGH, p] >= line and work[b, _HIGH, p] > -np.inf:
                    who[count] = b * WIDTH + p
                    few[count, 0] = work[b, _SURE, p] if rule.score == UCB else table[b, MEAN, p]
                    few[count, 1], few[count, 2] = work[b, _SURE, p], known[slot, b, 2, p]
                    few[count, 3] = order[b * WIDTH + p]
                    for i in range(k + 1):
                        few[count, 4 + i] = g[i, b, p]
                    count += 1
    return count


@compiled(inline=True)
def _read(
    rule: Any,
    z: Any,
    k: int,
    every: Any,
    low: int,
    high: int,
    mean: float,
    variance: float,
    noise: float,
    along: Any,
    e: Any,
    best: Any,
) -> float:
    """Take reading k in the members' fantasies; return the root of its variance."""
    root = math.sqrt(variance + noise)
    share = 1.0 if rule.noise_drawn else math.sqrt(variance) / root
    for at in range(low, high):
        j = every[at]
        step = z[j, k] * share
        value = mean + root * step
        for i in range(k):
            value += along[k, i] * e[i, j]
        e[k, j] = step
        best[k + 1, j] = max(best[k, j], value)
    return root


@compiled(inline=True)
def _sort(every: Any, low: int, high: int, chosen: Any) -> None:
    """Sort the members by what they have chosen."""
    for i in range(low + 1, high):
        j, at = every[i], i
        while at > low and chosen[every[at - 1]] > chosen[j]:
            every[at] = every[at - 1]
            at -= 1
        every[at] = j


@compiled()
def _roll_some(
    rule: Any,
    model: Any,
    rows: Any,
    shared: Any,
    sites: int,
    order: Any,
    firsts: Any,
    matrices: Any,
    z: Any,
    first_best: float,
    promise: Any,
    left: Any,
    rate: Any,
    spent: Any,
    mine: Any,
    value: Any,
    cost: Any,
) -> None:
    """Roll out from the first steps `mine`.

    Depth first: the stack holds the groups of fantasies that are still to go on, with depth, site (-1: the first
    step), and which of `every`. Of each site that was on a path covariances, travel and weights are kept in
    `known`, the first places of which are the batch's of first steps.

    Means lie within ``sum_i |g_i| r_i`` of ``mu + sum_i g_i m_i``, where m_i and r_i are middle and half width
    of the members' e_i: the highest lower bound is a score that every member can have, and blocks are looked at
    until they promise less.
    """
    (M, T), L, B, C = z.shape, len(left), len(shared), shared.shape[1]
    N = B * WIDTH
    table = shared.copy()
    here, path, done, slots = (
        np.empty((T, C)),
        np.zeros(T, np.int64),
        np.zeros(T, np.int64),
        np.zeros(T, np.int64),
    )
    along, root, middle, half = np.empty((T, T)), np.empty(T), np.empty(T), np.empty(T)
    e, best = np.empty((T, M)), np.full((T + 1, M), first_best)  # g_k and e_k, and the best before reading k
    g, rest, work, tops = (
        np.empty((T, B, WIDTH)),
        np.empty((T, B, WIDTH)),
        np.empty((B, 3, WIDTH)),
        np.empty(B),
    )
    places = BATCH + min(N, _KEPT)
    known, owner, filled = np.empty((places, B, 3, WIDTH)), np.full(places, -1), np.zeros(places, np.int64)
    slot_of, used = np.full(N, -1), np.full(1, BATCH)
    who, few = np.empty(N, np.int64), np.empty((N, 4 + T))
    every, chosen = np.arange(M), np.empty(M, np.int64)
    members_e, score, which, members_best = np.empty((T, M)), np.empty((3, M)), np.empty((2, M)), np.empty(M)
    stack, funds = np.empty((M * T + 1, 4), np.int64), np.empty((M * T + 1, L))
    now = np.empty((1, L))
    limited = L > 0 or rule.weight == EXCLUDE or not rule.may_stay
    for start in range(0, len(mine), BATCH):
        batch = mine[start : start + BATCH].copy()
        columns = np.empty((len(batch), rows.sampling - rows.V))
        for place in range(len(batch)):
            for c in range(columns.shape[1]):
                columns[place, c] = firsts[batch[place], rows.V + c]
        filled[0] = 0
        for place in range(len(batch)):
            f = batch[place]
            stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = 0, -1, 0, M
            for i in range(L):
                funds[0, i] = spent[i, f]
            waiting, total, travel = 1, 0.0, 0.0
            while waiting:
                waiting -= 1
                k, x, low, high = stack[waiting, 0], stack[waiting, 1], stack[waiting, 2], stack[waiting, 3]
                for i in range(L):
                    now[0, i] = funds[waiting, i]
                if k == 0:
                    for c in range(C):
                        here[0, c] = firsts[f, c]
                    variance, slots[0] = here[0, VARIANCE], place
                else:
                    b, p = x // WIDTH, x % WIDTH
                    for c in range(C):
                        here[k, c] = table[b, c, p]
                    for i in range(k):
                        along[k, i] = g[i, b, p]
                    variance, slots[k] = rest[k - 1, b, p], _find(x, slot_of, owner, filled, used)
                path[k], done[k] = x, 0
                mean, noise = here[k, MEAN], here[k, NOISE]
                root[k] = _read(rule, z, k, every, low, high, mean, variance, noise, along, e, best)
                least, most = _ranges(k, every, low, high, e, best, middle, half)
                top, b = -np.inf, 0
                while b < B and promise[k, b] >= top:
                    for i in range(k + 1):
                        if done[i] <= b:
                            at, of = path[i], 0
                            if at >= 0:
                                of = slots[i] = _find(at, slot_of, owner, filled, used)
                            while filled[of] <= b:
                                if at >= 0:
                                    _learn(
                                        rule,
                                        model,
                                        rows,
                                        filled[of],
                                        f,
                                        at,
                                        of,
                                        here[i],
                                        matrices,
                                        order,
                                        table,
                                        known,
                                        True,
                                    )
                                else:
                                    _learn_batch(
                                        rule,
                                        model,
                                        rows,
                                        filled[of],
                                        batch,
                                        firsts,
                                        columns,
                                        matrices,
                                        order,
                                        table,
                                        known,
                                    )
                                filled[of] += 1
                            _condition(g, rest, along, i, b, 1.0 / root[i], known, slots[i], table)
                            done[i] = b + 1
                    slot = slots[k]
                    if rule.score == UCB:
                        _ucb_bounds(rule.kappa, middle, half, table, b, g, rest, k, known, slot, work)
                    else:
                        _ei_bounds(least, most, middle, half, table, b, g, rest, k, known, slot, work)
                    if limited:
                        _afford(
                            rule, rows, b, f, x, left, rate, now, 0, matrices, order, table, known, slot, work
                        )
                    for p in range(max(0, sites - b * WIDTH), WIDTH):  # the last block is filled up
                        work[b, _HIGH, p] = work[b, _LOW, p] = -np.inf
                    tops[b] = _top(work, b, _HIGH)
                    top = max(top, _top(work, b, _LOW))
                    b += 1
                slot, slack = slots[k], _slack(top)
                count = _in_question(
                    rule, b, top - slack, k, order, table, known, slot, g, work, tops, who, few
                )
                if count == 0:
                    continue
                m = high - low
                for at in range(m):
                    j = every[low + at]
                    members_best[at] = best[k + 1, j]
                    for i in range(k + 1):
                        members_e[i, at] = e[i, j]
                if rule.score == UCB:
                    _choose(few, count, k, m, members_e, slack, score, which)
                else:
                    _choose_improvement(few, count, k, m, members_e, members_best, score, which)
                for at in range(m):
                    to = who[int(which[0, at])]
                    chosen[every[low + at]] = to
                    total += score[0, at]
                    travel += known[slot, to // WIDTH, 1, to % WIDTH]
                if k + 1 == T:
                    continue
                _sort(every, low, high, chosen)
                first = low
                for end in range(low + 1, high + 1):
                    to = chosen[every[first]]
                    if end < high and chosen[every[end]] == to:
                        continue
                    stack[waiting, 0], stack[waiting, 1], stack[waiting, 2], stack[waiting, 3] = (
                        k + 1,
                        to,
                        first,
                        end,
                    )
                    for i in range(L):
                        if rate[i] >= 0.0:
                            way = rate[i] * known[slot, to // WIDTH, 1, to % WIDTH]
                        elif k == 0:
                            way = matrices.first_other[f, order[to]]
                        else:
                            way = matrices.other[order[x], order[to]]
                        funds[waiting, i] = (
                            now[0, i] + way + table[to // WIDTH, rows.sampling + i, to % WIDTH]
                        )
                    waiting, first = waiting + 1, end
            value[f] += total / M
            cost[f] += travel / M


@compiled(parallel=True)
def roll_out(
    rule: Any,
    model: Any,
    rows: Any,
    table: Any,
    sites: int,
    order: Any,
    firsts: Any,
    matrices: Any,
    z: Any,
    best: float,
    promise: Any,
    left: Any,
    rate: Any,
    spent: Any,
    value: Any,
    cost: Any,
    threads: int,
) -> None:
    """Add what later steps are worth, and their travel, to those of each first step.

    Parameters
    ----------
    rule : Rule
    model : (int, float)
        The kernel's kind, as `fieldbo.loops.lookahead` has them (-1: prior covariances are looked up), and the
        prior's variance.
    rows : Rows
    table : (B, rows.end, WIDTH) array
    sites : int
        N; the last block is filled up with anything.
    order : (B * WIDTH,) int array
        The index of each site, which decides ties, and by which matrices are looked up.
    firsts : (F, rows.end) array
        The first steps' columns; prices and limits are not looked at.
    matrices : Matrices
    z : (M, T) array
        Standard normals, the same for every first step.
    best : float
        The best so far; EI's alone.
    promise : (T, B) array
        A bound of the scores of all sites from each block on, after each reading.
    left, rate : (L,) arrays
        What may be spent of each limit, and what a unit of travel takes of it; a rate below 0: it is looked up.
    spent : (L, F) array
        What each first step takes.
    value, cost : (F,) arrays
        Added to; a value of minus infinity is passed over.
    threads : int
        Among which first steps are dealt, one by one.
    """
    wanted = np.flatnonzero(value > -np.inf)
    for thread in prange(threads):
        _roll_some(
            rule,
            model,
            rows,
            table,
            sites,
            order,
            firsts,
            matrices,
            z,
            best,
            promise,
            left,
            rate,
            spent,
            wanted[thread::threads].copy(),
            value,
            cost,
        )

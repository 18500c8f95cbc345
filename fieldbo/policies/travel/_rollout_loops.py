"""Compiled loops that simulate the paths of a rollout.

===========  ==================================================================================
``F, N``     first steps; candidates of later steps, the most promising ones first
``M, T``     fantasies, readings of a path
``x_k``      where reading k is taken; ``x_0`` is the first step
``V``        ``L^-1 k(X, .)``, (n, N); the posterior covariance is ``k - V^T V``
``g_k``      by how much a standard normal of reading k moves the mean of each site: its covariance with
             ``x_k`` over the root of the reading's variance, given the readings before it
``e_kj``     the standard normal of reading k in fantasy j
===========  ==================================================================================

Given readings 0 to k, the mean of fantasy j is ``mu + sum_k g_k e_kj`` and the variance of all fantasies is
``s^2 - sum_k g_k^2``: fantasies that have visited the same sites share everything but ``e``, and are
processed together until their next sites differ. A site is scored only if a bound allows it to be the next
one of some fantasy; bounds never decide, so the choice is that of the full sum.

Sites come in blocks: :mod:`fieldbo.policies.travel._block_loops` computes the quantities of a block, and
:mod:`fieldbo.policies.travel._choice_loops` finds the next site of each fantasy.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import prange

from fieldbo._numerics.compiled import compiled
from fieldbo.policies.travel._block_loops import (
    EACH,
    EI,
    EXCLUDE,
    GROUPS,
    HIGH,
    LEAD,
    LOW,
    MEAN,
    NOISE,
    PLACES,
    UCB,
    VARIANCE,
    WIDTH,
    condition,
    correlations,
    distances,
    ei_bounds,
    less_explained,
    most_from,
    moves_only,
    out_of_reach,
    out_of_reach_by_table,
    tie_at,
    tops,
    ucb_bounds,
    weigh,
)
from fieldbo.policies.travel._choice_loops import (
    AT_ONCE,
    choose,
    choose_improvement,
    in_question,
    lead,
    remember,
)

LEADERS = 3  # first steps whose values are always computed
BATCH = 16  # first steps whose covariances are computed together
_LANES = 8


@compiled(inline=True)
def _learn(
    objective: Any,
    model: Any,
    rows: Any,
    b: int,
    f: int,
    x: int,
    slot: int,
    places: Any,
    at: int,
    matrices: Any,
    order: Any,
    table: Any,
    known: Any,
    explained: bool,
) -> None:
    """Compute covariances, travel and weights between block b and site x, or first step f for x below 0.

    Covariances are posterior ones if `explained`, otherwise prior ones.
    """
    kind, amplitude = model
    if kind >= 0:
        correlations(kind, amplitude, table, b, places, at, rows.at, known, slot)
    elif x < 0:
        for p in range(WIDTH):
            known[slot, b, 0, p] = matrices.first_prior[f, order[b * WIDTH + p]]
    else:
        for p in range(WIDTH):
            known[slot, b, 0, p] = matrices.prior[order[x], order[b * WIDTH + p]]
    if explained:
        less_explained(table, b, places, at, rows.V, rows.sampling, known, slot)
    _learn_travel(objective, rows, b, f, x, slot, places, at, matrices, order, table, known)


@compiled(numbers=True)
def _learn_travel(
    objective: Any,
    rows: Any,
    b: int,
    f: int,
    x: int,
    slot: int,
    places: Any,
    at: int,
    matrices: Any,
    order: Any,
    table: Any,
    known: Any,
) -> None:
    """Compute travel and weights as `_learn` does."""
    if rows.straight:
        distances(table, b, places, at, rows.at, rows.V, known, slot)
    elif x < 0:
        for p in range(WIDTH):
            known[slot, b, 1, p] = matrices.first_travel[f, order[b * WIDTH + p]]
    else:
        for p in range(WIDTH):
            known[slot, b, 1, p] = matrices.travel[order[x], order[b * WIDTH + p]]
    weigh(objective.weight, objective.scale, table, b, known, slot)


@compiled(inline=True)
def _learn_batch(
    objective: Any,
    model: Any,
    rows: Any,
    b: int,
    batch: Any,
    count: int,
    places: Any,
    columns: Any,
    matrices: Any,
    order: Any,
    table: Any,
    known: Any,
) -> None:
    """Do the same for a batch of first steps, reading V only once."""
    explained = np.dot(columns, table[b, rows.V : rows.sampling])
    for slot in range(count):
        f = batch[slot]
        _learn(objective, model, rows, b, f, -1, slot, places, slot, matrices, order, table, known, False)
        for p in range(WIDTH):
            known[slot, b, 0, p] -= explained[slot, p]


@compiled(numbers=True)
def _hope(
    objective: Any,
    rows: Any,
    f: int,
    slot: int,
    places: Any,
    matrices: Any,
    order: Any,
    sources: Any,
    ready: Any,
    table: Any,
    known: Any,
    hopes: Any,
    highest: Any,
) -> float:
    """Return a bound of the mean score of the second step from first step f, given the travel from there."""
    for r in range(len(highest)):
        highest[r] = -np.inf
    b, more = 0, True
    while b < len(table) and more:
        _fetch(b, order, sources, ready, table)
        _learn_travel(objective, rows, b, f, -1, slot, places, slot, matrices, order, table, known)
        more = False
        for r in range(len(highest)):
            highest[r] = max(highest[r], most_from(hopes.lift[r], hopes.gain[r], table, b, known, slot))
            more = more or (b + 1 < len(table) and hopes.after[r, b + 1] > highest[r])
        b += 1
    total = 0.0
    for r in range(len(highest)):
        total += hopes.share[r] * max(highest[r], 0.0)
    return total


@compiled()
def _fetch(b: int, order: Any, sources: Any, ready: Any, table: Any) -> None:
    """Copy the columns of the sites of blocks up to b into the table, unless they are there."""
    while ready[0] <= b:
        block, c = ready[0], 0
        c = _copy(sources.head, order, block, table, c)
        c = _copy(sources.solved, order, block, table, c)
        _copy(sources.tail, order, block, table, c)
        ready[0] += 1


@compiled()
def _fetch_first(sources: Any, f: int, rows: Any, slot: int, places: Any) -> None:
    """Copy the column of first step f, up to V."""
    for c in range(rows.V):
        places[slot, c] = sources.first_head[c, f]
    for c in range(rows.V, rows.sampling):
        places[slot, c] = sources.first_solved[c - rows.V, f]


@compiled(inline=True)
def _copy(source: Any, order: Any, b: int, table: Any, c: int) -> int:
    for row in range(len(source)):
        for p in range(WIDTH):
            table[b, c + row, p] = source[row, order[b * WIDTH + p]]
    return c + len(source)


@compiled()
def _afford(
    objective: Any,
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
    """Exclude sites that are unaffordable after spending `spent[at]`, or that the objective excludes."""
    for i in range(len(left)):
        rest, sampling, back = left[i] - spent[at, i], rows.sampling + i, rows.back + i
        if rate[i] >= 0.0:
            out_of_reach(rate[i], known, slot, table, b, sampling, back, rest, work)
        elif x < 0:
            out_of_reach_by_table(matrices.first_other, f, order, table, b, sampling, back, rest, work)
        else:
            out_of_reach_by_table(matrices.other, order[x], order, table, b, sampling, back, rest, work)
    if objective.weight == EXCLUDE:
        moves_only(0.0, known, slot, table, b, work)
    if not objective.may_stay:
        moves_only(1.0, known, slot, table, b, work)


@compiled(inline=True)
def _find(x: int, slot_of: Any, owner: Any, filled: Any, used: Any) -> int:
    """Return the slot of site x in `known`; assign one if it has none."""
    slot: int = slot_of[x]
    if slot < 0:
        slot = used[0]
        if slot < len(owner) - 1:
            used[0] += 1
        elif owner[slot] >= 0:
            slot_of[owner[slot]] = -1  # the last slot is reused
        slot_of[x], owner[slot], filled[slot] = slot, x, 0
    return slot


@compiled(inline=True)
def _ranges(
    k: int, every: Any, low: int, high: int, e: Any, best: Any, middle: Any, half: Any
) -> tuple[float, float, float]:
    """Fill in middle and half width of the members' e_i; return the range of their best, and max |e|."""
    first = every[low]
    for i in range(k + 1):
        lowest = highest = e[i, first]
        for at in range(low, high):
            step = e[i, every[at]]
            lowest, highest = min(lowest, step), max(highest, step)
        middle[i], half[i] = 0.5 * (lowest + highest), 0.5 * (highest - lowest)
    lowest = highest = best[k + 1, first]
    reach = 0.0
    for at in range(low, high):
        j, square = every[at], 0.0
        lowest, highest = min(lowest, best[k + 1, j]), max(highest, best[k + 1, j])
        for i in range(k + 1):
            square += e[i, j] * e[i, j]
        reach = max(reach, square)
    return lowest, highest, math.sqrt(reach)


@compiled(inline=True)
def _read(
    objective: Any,
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
    """Draw reading k in the members' fantasies; return its standard deviation."""
    root = math.sqrt(variance + noise)
    share = 1.0 if objective.noise_drawn else math.sqrt(variance) / root
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
def _gather(every: Any, first: int, high: int, chosen: Any) -> int:
    """Move the members that chose the same site as the first of them together; return where they end."""
    end = first + 1
    for at in range(first + 1, high):
        if chosen[every[at]] == chosen[every[first]]:
            every[end], every[at] = every[at], every[end]
            end += 1
    return end


@compiled(numbers=True)
def _roll_some(  # noqa: PLR0912, PLR0915 - a single loop, whose parts are functions already
    objective: Any,
    model: Any,
    rows: Any,
    sources: Any,
    sites: int,
    order: Any,
    matrices: Any,
    z: Any,
    first_best: float,
    promise: Any,
    reach_step: float,
    left: Any,
    rate: Any,
    spent: Any,
    mine: Any,
    hopes: Any,
    known: Any,
    value: Any,
    cost: Any,
) -> None:
    """Roll out from the first steps `mine`, those of the highest value first.

    Depth first: the stack holds the groups of fantasies still to be continued, with depth, site (-1: the
    first step), and range in `every`. Covariances, travel and weights of each site on a path are kept in
    `known` (S, B, 3, WIDTH), whose first slots belong to the batch of first steps.

    Means lie within ``sum_i |g_i| r_i`` of ``mu + sum_i g_i m_i``, with m_i and r_i the middle and half
    width of the members' e_i: every member can reach the highest lower bound, and blocks are processed until
    they promise less.

    A first step is given up as soon as its value, with bounds for the steps still to come, cannot reach the
    leaders'.
    """
    (M, T), L, C, N = z.shape, len(left), rows.end, len(order)
    B, counts = N // WIDTH, hopes.counts
    table, ready = np.empty((B, C, WIDTH)), np.zeros(1, np.int64)
    here, path, slots = np.empty((T, C)), np.zeros(T, np.int64), np.zeros(T, np.int64)
    done, serial, nodes = np.zeros((T, B), np.int64), np.zeros(T, np.int64), 0  # node of each block's g_k
    along, root, middle, half = np.empty((T, T)), np.empty(T), np.empty(T), np.empty(T)
    e, best = np.empty((T, M)), np.full((T + 1, M), first_best)  # g_k and e_k, and the best before reading k
    g, rest, work = np.empty((T, B, WIDTH)), np.empty((T, B, WIDTH)), np.empty((B, 4, WIDTH))
    peaks, S = np.empty((B, WIDTH // 2)), len(known)
    owner, filled = np.full(S, -1), np.zeros(S, np.int64)
    slot_of, used = np.full(N, -1), np.full(1, BATCH)
    who, sums, facts = np.empty(N + AT_ONCE, np.int64), np.empty((AT_ONCE, M)), np.empty((6, N))
    every, chosen = np.arange(M), np.empty(M, np.int64)
    members_e, score, which, members_best = np.zeros((T, M)), np.empty((3, M)), np.empty((3, M)), np.empty(M)
    stack, funds = np.empty((M * T + 1, 4), np.int64), np.empty((M * T + 1, L))
    now, rivals = np.empty((1, L)), np.full((S, 3), -1)
    leaders, highest = np.full(LEADERS, -np.inf), np.empty(len(hopes.share))  # the lowest leader first
    later, third = (
        0.0,
        0.0,
    )  # bounds, summed over fantasies, of all later steps, and of those from the third on
    for j in range(M):
        for i in range(T):
            later += hopes.steps[j, i]
            third += hopes.steps[j, i] if i else 0.0
    batch, places = np.empty(BATCH, np.int64), np.zeros((BATCH, rows.sampling))
    columns = np.zeros((BATCH, rows.sampling - rows.V))  # always the full size, which may change digits
    limited = L > 0 or objective.weight == EXCLUDE or not objective.may_stay
    start = 0
    while start < len(mine):
        size = 0
        while start < len(mine) and size < BATCH:
            f, start = mine[start], start + 1
            needed = leaders[0] - hopes.slack - value[f]  # of the later steps, on average over fantasies
            hopeless = later < needed * M
            if not hopeless:
                _fetch_first(sources, f, rows, size, places)
                if needed > -np.inf and len(highest):
                    second = _hope(
                        objective,
                        rows,
                        f,
                        size,
                        places,
                        matrices,
                        order,
                        sources,
                        ready,
                        table,
                        known,
                        hopes,
                        highest,
                    )
                    hopeless = third < (needed - second) * M
            if hopeless:
                value[f], cost[f] = -np.inf, 0.0
                continue
            batch[size], size = f, size + 1
        for slot in range(size):
            for c in range(columns.shape[1]):
                columns[slot, c] = places[slot, rows.V + c]
        filled[0] = 0
        for place in range(size):
            f = batch[place]
            least_sum = (leaders[0] - hopes.slack - value[f]) * M  # of later steps, below which f is given up
            stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = 0, -1, 0, M
            for j in range(M):
                every[j] = j  # sums keep their order
            for i in range(L):
                funds[0, i] = spent[i, f]
            waiting, total, travel, due = 1, 0.0, 0.0, later
            while waiting:
                if total + due < least_sum:
                    break
                waiting -= 1
                k, x, low, high = stack[waiting, 0], stack[waiting, 1], stack[waiting, 2], stack[waiting, 3]
                for i in range(L):
                    now[0, i] = funds[waiting, i]
                if k == 0:
                    for c in range(PLACES):
                        here[0, c] = places[place, c]
                    variance, slots[0] = here[0, VARIANCE], place
                else:
                    b, p = x // WIDTH, x % WIDTH
                    for c in range(PLACES):
                        here[k, c] = table[b, c, p]
                    for i in range(k):
                        along[k, i] = g[i, b, p]
                    variance, slots[k] = rest[k - 1, b, p], _find(x, slot_of, owner, filled, used)
                nodes += 1
                path[k], serial[k] = x, nodes
                for at in range(low, high):
                    due -= hopes.steps[every[at], k]
                mean, noise = here[k, MEAN], here[k, NOISE]
                root[k] = _read(objective, z, k, every, low, high, mean, variance, noise, along, e, best)
                least, most_best, reach = _ranges(k, every, low, high, e, best, middle, half)
                level = min(math.ceil(reach / reach_step), len(promise) - 1)
                top, b, scale = -np.inf, 0, 1.0 / root[k]
                while b < B and promise[level, b] >= top:
                    _fetch(b, order, sources, ready, table)
                    for i in range(k + 1):
                        if done[i, b] != serial[i]:
                            at, of = path[i], 0
                            if at >= 0:
                                of = slots[i] = _find(at, slot_of, owner, filled, used)
                            while filled[of] <= b:
                                if at >= 0:
                                    for c in range(PLACES, C):
                                        here[i, c] = table[at // WIDTH, c, at % WIDTH]
                                    _learn(
                                        objective,
                                        model,
                                        rows,
                                        filled[of],
                                        f,
                                        at,
                                        of,
                                        here,
                                        i,
                                        matrices,
                                        order,
                                        table,
                                        known,
                                        True,
                                    )
                                else:
                                    _learn_batch(
                                        objective,
                                        model,
                                        rows,
                                        filled[of],
                                        batch,
                                        size,
                                        places,
                                        columns,
                                        matrices,
                                        order,
                                        table,
                                        known,
                                    )
                                filled[of] += 1
                            if i < k or objective.score == EI:
                                condition(g, rest, along, i, b, 1.0 / root[i], known, slots[i], table)
                                done[i, b] = serial[i]
                    slot = slots[k]
                    if objective.score == UCB:
                        ucb_bounds(
                            objective.kappa,
                            middle,
                            half,
                            along,
                            k,
                            b,
                            scale,
                            known,
                            slot,
                            table,
                            g,
                            rest,
                            work,
                        )
                        done[k, b] = serial[k]
                    else:
                        ei_bounds(least, most_best, middle, half, table, b, g, rest, k, known, slot, work)
                    if limited:
                        _afford(
                            objective,
                            rows,
                            b,
                            f,
                            x,
                            left,
                            rate,
                            now,
                            0,
                            matrices,
                            order,
                            table,
                            known,
                            slot,
                            work,
                        )
                    for rank in range(max(0, sites - b * WIDTH), WIDTH):  # the last block is filled up
                        p = rank // EACH + rank % EACH * GROUPS
                        work[b, HIGH, p] = work[b, LOW, p] = -np.inf
                    top = max(top, tops(work, b, LOW, peaks))
                    peaks[b, GROUPS] = tops(work, b, HIGH, peaks)
                    b += 1
                if top == -np.inf:  # nothing is affordable: the paths end here
                    for at in range(low, high):
                        for i in range(k + 1, T):
                            due -= hopes.steps[every[at], i]
                    continue
                slot, slack = slots[k], tie_at(top)
                row = slot if k > 0 else 0
                for at in range(b):
                    if peaks[at, GROUPS] >= top - slack:
                        lead(objective, at, k, top - slack, done, serial[k], rivals, row, half, g, work)
                        tops(work, at, LEAD, peaks)
                    else:
                        for group in range(GROUPS):
                            peaks[at, group] = -np.inf
                count = in_question(b, slack, work, peaks, who)
                m = high - low
                full = min(M, -(-m // _LANES) * _LANES)  # whole registers; the excess is ignored
                for at in range(m):
                    j = every[low + at]
                    members_best[at] = best[k + 1, j]
                    for i in range(k + 1):
                        members_e[i, at] = e[i, j]
                if objective.score == UCB:
                    choose(who, count, k, full, members_e, slack, g, work, score, which, sums)
                    remember(rivals, row, which, members_e, k, m)
                else:
                    choose_improvement(
                        who,
                        count,
                        k,
                        m,
                        members_e,
                        members_best,
                        table,
                        known,
                        slot,
                        g,
                        work,
                        facts,
                        score,
                        which,
                    )
                for at in range(m):
                    to = int(which[0, at])
                    chosen[every[low + at]] = to
                    total += score[0, at]
                    travel += known[slot, to // WIDTH, 1, to % WIDTH]
                if k + 1 == T:
                    continue
                first = low
                while first < high:
                    to, end = chosen[every[first]], _gather(every, first, high, chosen)
                    stack[waiting, 0], stack[waiting, 1] = k + 1, to
                    stack[waiting, 2], stack[waiting, 3] = first, end
                    for i in range(L):
                        if rate[i] >= 0.0:
                            move = rate[i] * known[slot, to // WIDTH, 1, to % WIDTH]
                        elif k == 0:
                            move = matrices.first_other[f, order[to]]
                        else:
                            move = matrices.other[order[x], order[to]]
                        funds[waiting, i] = (
                            now[0, i] + move + table[to // WIDTH, rows.sampling + i, to % WIDTH]
                        )
                    waiting, first = waiting + 1, end
            if total + due < least_sum:
                value[f], cost[f] = -np.inf, 0.0
                continue
            value[f] += total / M
            cost[f] += travel / M
            if counts[f] and value[f] > leaders[0]:
                at = 0
                while at + 1 < LEADERS and leaders[at + 1] < value[f]:
                    leaders[at] = leaders[at + 1]
                    at += 1
                leaders[at] = value[f]


@compiled(parallel=True)
def roll_out(
    objective: Any,
    model: Any,
    rows: Any,
    sources: Any,
    sites: int,
    order: Any,
    matrices: Any,
    z: Any,
    best: float,
    promise: Any,
    reach_step: float,
    left: Any,
    rate: Any,
    spent: Any,
    hopes: Any,
    value: Any,
    cost: Any,
    known: Any,
) -> None:
    """Add the values and the travel of later steps to those of each first step.

    Parameters
    ----------
    objective : Objective
    model : (int, float)
        The kernel's kind, as in `fieldbo.belief._lookahead_loops` (-1: prior covariances are looked up), and
        the prior's variance.
    rows : Rows
    sources : Sources
    sites : int
        N; the last block is padded with arbitrary sites.
    order : (B * WIDTH,) int array
        The index of each site, which decides ties and is used to look up matrices.
    matrices : Matrices
    z : (M, T) array
        Standard normals, the same for every first step.
    best : float
        The best value so far, for EI.
    promise : (R, B) array
        Bounds of the scores of all sites from each block on; row r holds after readings with ``|e|`` up to
        ``r reach_step``.
    reach_step : float
    left, rate : (L,) arrays
        What may be spent of each limit, and its consumption per unit of travel (below 0: looked up).
    spent : (L, F) array
        Consumption of each first step.
    hopes : Hopes
    value, cost : (F,) arrays
        Added to in place; values of minus infinity are skipped. First steps that are worse than `LEADERS` of
        those that count may get a value of minus infinity.
    known : (threads, S, B, 3, WIDTH) array
        Working memory: covariances, travel and weights of S sites per thread, more than `BATCH`. First steps
        are dealt to the threads in turn.
    """
    wanted = np.argsort(-value, kind="mergesort")[: np.sum(value > -np.inf)]
    for thread in prange(len(known)):
        _roll_some(
            objective,
            model,
            rows,
            sources,
            sites,
            order,
            matrices,
            z,
            best,
            promise,
            reach_step,
            left,
            rate,
            spent,
            wanted[thread :: len(known)].copy(),
            hopes,
            known[thread],
            value,
            cost,
        )

"""The next site of each fantasy of a rollout.

For the symbols see :mod:`fieldbo.policies.travel._rollout_loops`. Bounds narrow down the sites; the
remaining ones are scored in full for every fantasy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fieldbo._numerics.compiled import compiled
from fieldbo.policies.travel._block_loops import (
    EI,
    GROUPS,
    HIGH,
    LEAD,
    LOW,
    MEAN,
    SURE,
    TIE,
    WIDTH,
    ei_above,
    expected_improvement,
)

AT_ONCE = 4  # sites compared before the result is stored


@compiled(numbers=True, inline=True)
def lead(
    objective: Any,
    b: int,
    k: int,
    line: float,
    done: Any,
    node: int,
    rivals: Any,
    row: int,
    half: Any,
    g: Any,
    work: Any,
) -> None:
    """Fill row LEAD of block b with bounds of each site's lead over `line` and over rivals seen before.

    A difference of scores is bounded more tightly than a score: common shifts cancel.
    """
    if not line < np.inf:
        for p in range(WIDTH):
            work[b, LEAD, p] = 0.0 if work[b, HIGH, p] >= line else -np.inf
        return
    for p in range(WIDTH):
        work[b, LEAD, p] = work[b, HIGH, p] - line
    if objective.score == EI:
        return
    for r in range(rivals.shape[1]):
        rival = rivals[row, r]
        b0, p0 = rival // WIDTH, rival % WIDTH
        if rival < 0 or done[k, b0] != node or work[b0, LOW, p0] == -np.inf:
            continue
        score, last, reach = work[b0, HIGH, p0] + work[b0, LOW, p0], g[k, b0, p0], half[k]
        if k == 0:
            for p in range(WIDTH):
                lead = 0.5 * (work[b, HIGH, p] + work[b, LOW, p] - score) + abs(g[0, b, p] - last) * reach
                best = work[b, LEAD, p]
                work[b, LEAD, p] = lead if lead < best else best
        elif k == 1:
            first, width = g[0, b0, p0], half[0]
            for p in range(WIDTH):
                lead = 0.5 * (work[b, HIGH, p] + work[b, LOW, p] - score) + abs(g[1, b, p] - last) * reach
                lead += abs(g[0, b, p] - first) * width
                best = work[b, LEAD, p]
                work[b, LEAD, p] = lead if lead < best else best


@compiled(inline=True)
def in_question(blocks: int, tie: float, work: Any, peaks: Any, who: Any) -> int:
    """Fill `who` with the sites that may lead; return how many there are."""
    count = 0
    for b in range(blocks):
        for group in range(GROUPS):
            if peaks[b, group] >= -tie:
                for p in range(group, WIDTH, GROUPS):
                    if work[b, LEAD, p] >= -tie:
                        who[count] = b * WIDTH + p
                        count += 1
    return count


@compiled(numbers=True, inline=True)
def choose(  # noqa: PLR0912 - two ways to sum, the fast one for the first two readings
    who: Any,
    count: int,
    k: int,
    m: int,
    steps: Any,
    tie: float,
    g: Any,
    work: Any,
    score: Any,
    chosen: Any,
    sums: Any,
) -> None:
    """Find the site of the highest upper confidence bound in each fantasy, among the sites in question.

    Sites in the outer loop, fantasies in the inner ones, which fill vector registers.

    Parameters
    ----------
    who : (., ) int array
        The sites.
    count, k, m : int
        Numbers of sites, of readings minus one, and of fantasies.
    steps : (T, .) array
        The fantasies' e.
    tie : float
        Scores that differ by less are equal: the first of the sites wins.
    g, work
        As in `_roll_some`.
    score, chosen : (3, m) arrays
        Output: scores and sites, in the first rows.
    sums : (AT_ONCE, m) array
        Working memory.
    """
    for j in range(m):
        score[0, j], chosen[0, j] = -np.inf, 0.0
    for q in range(-count % AT_ONCE):  # repeat the last site to fill the last round
        who[count + q] = who[count - 1]
    of = 0
    for q in range(0, count, AT_ONCE):
        # Alternate between two rows: the one written is not the one read, so stores need no merging.
        q0, q1, q2, q3, to = who[q], who[q + 1], who[q + 2], who[q + 3], 1 - of
        n0, n1, n2, n3 = float(q0), float(q1), float(q2), float(q3)
        if k < 2:
            b0, p0, b1, p1 = q0 // WIDTH, q0 % WIDTH, q1 // WIDTH, q1 % WIDTH
            b2, p2, b3, p3 = q2 // WIDTH, q2 % WIDTH, q3 // WIDTH, q3 % WIDTH
            s0, s1 = work[b0, SURE, p0] - tie, work[b1, SURE, p1] - tie
            s2, s3 = work[b2, SURE, p2] - tie, work[b3, SURE, p3] - tie
            f0, f1, f2, f3 = g[0, b0, p0], g[0, b1, p1], g[0, b2, p2], g[0, b3, p3]
            g0 = g1 = g2 = g3 = 0.0
            if k == 1:
                g0, g1, g2, g3 = g[1, b0, p0], g[1, b1, p1], g[1, b2, p2], g[1, b3, p3]
            for j in range(m):
                first, last = steps[0, j], steps[k, j]
                v0, v1 = s0 + f0 * first + g0 * last, s1 + f1 * first + g1 * last
                v2, v3 = s2 + f2 * first + g2 * last, s3 + f3 * first + g3 * last
                best, number = score[of, j], chosen[of, j]
                number, best = n0 if v0 > best else number, v0 + tie if v0 > best else best
                number, best = n1 if v1 > best else number, v1 + tie if v1 > best else best
                number, best = n2 if v2 > best else number, v2 + tie if v2 > best else best
                number, best = n3 if v3 > best else number, v3 + tie if v3 > best else best
                score[to, j], chosen[to, j] = best, number
        else:
            for at in range(AT_ONCE):
                b, p = who[q + at] // WIDTH, who[q + at] % WIDTH
                sure = work[b, SURE, p] - tie
                for j in range(m):
                    sums[at, j] = sure
                for i in range(k + 1):
                    last = g[i, b, p]
                    for j in range(m):
                        sums[at, j] += last * steps[i, j]
            for j in range(m):
                v0, v1, v2, v3 = sums[0, j], sums[1, j], sums[2, j], sums[3, j]
                best, number = score[of, j], chosen[of, j]
                number, best = n0 if v0 > best else number, v0 + tie if v0 > best else best
                number, best = n1 if v1 > best else number, v1 + tie if v1 > best else best
                number, best = n2 if v2 > best else number, v2 + tie if v2 > best else best
                number, best = n3 if v3 > best else number, v3 + tie if v3 > best else best
                score[to, j], chosen[to, j] = best, number
        of = to
    if of:
        for j in range(m):
            score[0, j], chosen[0, j] = score[1, j], chosen[1, j]


@compiled(numbers=True)
def choose_improvement(
    who: Any,
    count: int,
    k: int,
    m: int,
    steps: Any,
    best: Any,
    table: Any,
    known: Any,
    slot: int,
    g: Any,
    work: Any,
    facts: Any,
    score: Any,
    chosen: Any,
) -> None:
    """Do the same as `choose`, for the expected improvement on `best` (m,).

    The improvement itself is computed only where a bound allows it to be the largest. Fantasies in the outer
    loop, sites in the inner ones: there are far more of them. `facts` (6, N) is working memory.
    """
    for q in range(count):
        b, p = who[q] // WIDTH, who[q] % WIDTH
        facts[0, q], facts[1, q], facts[2, q] = table[b, MEAN, p], work[b, SURE, p], known[slot, b, 2, p]
        facts[3, q] = g[k, b, p]
    for j in range(m):
        for q in range(count):
            facts[4, q] = facts[0, q] - best[j] + facts[3, q] * steps[k, j]
        for i in range(k):
            for q in range(count):
                facts[4, q] += g[i, who[q] // WIDTH, who[q] % WIDTH] * steps[i, j]
        for q in range(count):
            facts[5, q] = ei_above(facts[4, q], facts[1, q]) * facts[2, q]
        top, to = -np.inf, 0
        for q in range(count):
            if facts[5, q] >= top:
                value = expected_improvement(facts[4, q], facts[1, q]) * facts[2, q]
                if value > top + TIE * value:
                    top, to = value, who[q]
        score[0, j], chosen[0, j] = top, to


@compiled(inline=True)
def remember(rivals: Any, row: int, chosen: Any, steps: Any, k: int, m: int) -> None:
    """Keep the choices at the lowest, a middle and the highest last reading as rivals to compare with."""
    lowest = highest = 0
    for j in range(m):
        if steps[k, j] < steps[k, lowest]:
            lowest = j
        if steps[k, j] > steps[k, highest]:
            highest = j
    middle, between = lowest, 0.5 * (steps[k, lowest] + steps[k, highest])
    for j in range(m):
        if abs(steps[k, j] - between) < abs(steps[k, middle] - between):
            middle = j
    rivals[row, 0], rivals[row, 1] = int(chosen[0, lowest]), int(chosen[0, middle])
    rivals[row, 2] = int(chosen[0, highest])

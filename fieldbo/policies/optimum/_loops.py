"""Compiled loops of policies that look ahead: entropy search, minimum regret search, search tour and scout.

===========  ==========================================================================
``R, S, J``  numbers of representers, of joint draws, of outcomes of a reading
``N``        number of candidates
``slope``    change of a representer's value per standard deviation of a reading
===========  ==========================================================================
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import prange
from numpy.typing import NDArray

from fieldbo._numerics.compiled import compiled

Array = NDArray[np.float64]


@compiled(parallel=True)
def after_a_reading(
    mean: Array, draws: Array, slopes: Array, readings: Array, outcomes: Array, weights: Array
) -> tuple[Array, Array]:
    """Return the maximiser's entropy and mean after a reading at each candidate, averaged over its outcomes.

    A draw, conditioned on another outcome than its own reading, moves by ``slope (outcome - reading)``
    (Matheron's rule).

    Parameters
    ----------
    mean : (R,) array
        Posterior mean of the representers.
    draws : (R, S) array
        Joint draws of the representers.
    slopes : (N, R) array
    readings : (N, S) array
        In standard deviations from their means.
    outcomes, weights : (J,) arrays
        Outcomes in standard deviations, and their probabilities.

    Returns
    -------
    entropy : (N,) array
        Of the maximiser among the representers, in nats.
    value : (N,) array
        Expected mean at the maximiser.
    """
    N, R = slopes.shape
    S = draws.shape[1]
    entropy, value = np.zeros(N), np.zeros(N)
    for n in prange(N):
        shift, highest = np.empty(S), np.empty(S)
        maximiser, wins = np.empty(S, np.int64), np.empty(R, np.int64)
        for j in range(len(outcomes)):
            for i in range(S):
                shift[i] = outcomes[j] - readings[n, i]
                highest[i] = draws[0, i] + slopes[n, 0] * shift[i]
                maximiser[i] = 0
            # Representers outside, draws inside: the inner loop fills vector registers.
            for r in range(1, R):
                slope = slopes[n, r]
                for i in range(S):
                    moved = draws[r, i] + slope * shift[i]
                    higher = moved > highest[i]
                    highest[i] = moved if higher else highest[i]
                    maximiser[i] = r if higher else maximiser[i]
            wins[:] = 0
            for i in range(S):
                wins[maximiser[i]] += 1
            left, expected = 0.0, 0.0
            for r in range(R):
                if wins[r]:
                    p = wins[r] / S
                    left -= p * np.log(p)
                    expected += p * (mean[r] + slopes[n, r] * outcomes[j])
            entropy[n] += weights[j] * left
            value[n] += weights[j] * expected
    return entropy, value


@compiled(parallel=True)
def growth_of_the_best_mean(mean: Array, slopes: Array) -> Array:
    """Return ``E max_r (mean_r + slope_r Z) - max_r mean_r`` (N,), Z standard normal, exactly.

    The maximum of lines is their upper envelope; at the breakpoint ``c`` between two of its lines, slopes b
    and b', the expectation grows by ``(b' - b) (phi(c) - |c| Phi(-|c|))`` (the knowledge gradient of
    Frazier, Powell and Dayanik 2009).

    Parameters
    ----------
    mean : (R,) array
    slopes : (N, R) array
    """
    N, R = slopes.shape
    growth = np.zeros(N)
    for n in prange(N):
        order = np.argsort(slopes[n])
        line = np.empty(R, np.int64)  # the envelope so far, by slope, and where each line begins
        start = np.empty(R)
        last = -1
        for r in order:
            begin = -np.inf
            while last >= 0:
                steeper = slopes[n, r] - slopes[n, line[last]]
                lower = mean[line[last]] - mean[r]
                # Parallel lines never cross: the higher one is above everywhere.
                never = np.inf if lower >= 0 else -np.inf
                begin = lower / steeper if steeper > 0 else never
                if begin > start[last]:
                    break
                last -= 1
            if begin < np.inf:
                last += 1
                line[last], start[last] = r, begin
        for k in range(1, last + 1):
            c = abs(start[k])
            density = np.exp(-0.5 * c * c) / np.sqrt(2.0 * np.pi)
            # Phi(-c) through erfc keeps its digits in the tail.
            tail = 0.5 * math.erfc(c / np.sqrt(2.0))
            growth[n] += (slopes[n, line[k]] - slopes[n, line[k - 1]]) * (density - c * tail)
    return growth


@compiled(parallel=True)
def growth_after(
    means: Any, known: Any, covariances: Any, left: Any, scale: Any, readings: Any, top: Any, out: Any
) -> None:
    """Set `out` (W,) to how much one more reading at each candidate would raise the best mean.

    Averaged over draws, in single precision.

    Parameters
    ----------
    means : (P, S) array
        Means at the places after the readings so far, in each draw; the first W places are the candidates.
    known : (m,) int array
        Places that can be recommended whether or not the candidate is read.
    covariances : (W, m) array
        Of each candidate with the known places, after the readings so far.
    left, scale : (W,) arrays
        Variance of each candidate, and ``1 / (variance + noise)``.
    readings : (W, S) array
        One more reading at each candidate, in each draw.
    top : (S,) array
        The largest mean of the known places.
    out : (W,) float64 array
    """
    W, S = readings.shape
    for w in prange(W):
        moved, best = np.empty(S, np.float32), np.empty(S, np.float32)
        mean, reading, factor, variance = means[w], readings[w], scale[w], left[w]
        for s in range(S):
            moved[s] = (reading[s] - mean[s]) * factor
            best[s] = mean[s] + variance * moved[s]
        for k in range(len(known)):
            mean, covariance = means[known[k]], covariances[w, k]
            for s in range(S):
                value = mean[s] + covariance * moved[s]
                best[s] = value if value > best[s] else best[s]
        total = 0.0
        for s in range(S):
            total += best[s] - top[s]
        out[w] = total / S


@compiled()
def patches_covered(
    points: Any, reaches: Any, sites: Any, radius: float, sizes: float, covered: Any, weights: Any
) -> tuple[Any, Any, Any]:
    """Return which sites a reading at each point would cover further than the readings so far, and how far.

    Parameters
    ----------
    points : (W, d) array
    reaches : (W,) array
        How far each reading covers, relative to a quiet one.
    sites : (N, d) array
    radius, sizes : float
        Radius of the smallest patch, and that of the largest relative to it.
    covered, weights : (N,) arrays

    Returns
    -------
    starts : (W + 1,) int array
        Where the entries of each point begin.
    columns : (k,) int array
        The site of each entry.
    shares : (k,) array
        The share of the patches around it that the reading would notice.
    """
    W, N, d = len(points), len(sites), sites.shape[1]
    starts = np.zeros(W + 1, np.int64)
    log_sizes = 2.0 * np.log(sizes)
    columns, shares = np.empty(1, np.int64), np.empty(1)
    for fills in range(2):
        if fills:
            columns, shares = np.empty(starts[W], np.int64), np.empty(starts[W])
        k = 0
        for w in range(W):
            least = (radius * reaches[w]) ** 2
            farthest = least * sizes**2
            for x in range(N):
                square = 0.0
                for j in range(d):
                    square += (points[w, j] - sites[x, j]) ** 2
                if square >= farthest or weights[x] <= 0.0 or covered[x] >= 1.0:
                    continue
                share = 1.0 if square <= least else 1.0 - np.log(square / least) / log_sizes
                if share <= covered[x]:
                    continue
                if fills:
                    columns[k], shares[k] = x, share
                k += 1
            starts[w + 1] = k
    return starts, columns, shares


@compiled(numbers=True)
def further_covered(
    starts: Any, columns: Any, shares: Any, weights: Any, covered: Any, stops: Any, out: Any
) -> float:
    """Set `out` (W,) to what one more reading at each point would cover beyond those at the stops.

    Returns what the stops cover together. The first three arguments are those of `patches_covered`.

    Parameters
    ----------
    starts, columns, shares : arrays
    weights, covered : (N,) arrays
    stops : (q,) int array
    out : (W,) array
    """
    base, together = covered.copy(), 0.0
    for stop in stops:
        for k in range(starts[stop], starts[stop + 1]):
            x = columns[k]
            if shares[k] > base[x]:
                together += weights[x] * (shares[k] - base[x])
                base[x] = shares[k]
    for w in range(len(out)):
        total = 0.0
        for k in range(starts[w], starts[w + 1]):
            more = shares[k] - base[columns[k]]
            total += weights[columns[k]] * (more if more > 0.0 else 0.0)
        out[w] = total
    return together

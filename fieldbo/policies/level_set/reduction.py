"""TruVaR's score: how much a reading would reduce the truncated variances of the sites in question.

Equation 3 of Bogunovic, Scarlett, Krause and Cevher (2016), over all (site, level) pairs of a surface.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.belief.surface import Surface
from fieldbo.policies.choice import LEADING, highest

_BLOCK = 256  # sites scored at once in double precision


@dataclass(frozen=True, eq=False)
class Reduction:
    """Eq. 3 over a surface: the reduction of the members' truncated variances, per unit of cost.

    Parameters
    ----------
    members : (N,) bool array
        The sites to sum over.
    noise, cost : (N, K) arrays
        Noise variance and cost (above 0) of a reading at each site and level.
    able : (N, K) bool array
        The pairs that can be chosen.
    beta, eta : float
    """

    members: Mask
    noise: Array
    cost: Array
    able: Mask
    beta: float
    eta: float

    def scores(self, surface: Surface) -> Array:
        """Return the scores (N, K), minus infinity for pairs that can be chosen but cannot lead.

        Single precision, with its error bound, finds the pairs that may be among the leading ones; double
        precision scores these again.
        """
        if not self.members.any():
            return np.zeros_like(self.cost)
        gains = surface.truncated_gains(self.members, self.noise, self.eta**2 / self.beta)
        scores = self.beta * gains.value / self.cost
        if not self.able.any():
            return scores
        slack = self.beta * gains.error / self.cost
        lowest = (scores - slack)[self.able]
        rank = -min(LEADING, lowest.size)
        least = np.partition(lowest, rank)[rank]
        in_question = self.able & (scores + slack >= least)
        if least > 0 or gains.value[self.able].any():  # otherwise there is no gain anywhere: all are equal
            scores[self.able & ~in_question] = -np.inf
            rows, levels = np.nonzero(in_question)
            scores[rows, levels] = self.exact(surface, rows, levels)
        return scores

    def exact(self, surface: Surface, rows: Any, levels: Any) -> Array:
        """Return the scores (p,) of the pairs `rows` (p,), `levels` (p,), in double precision."""
        gains = surface.exact_gains(rows, self.noise[rows, levels], self.members, self.eta**2 / self.beta)
        return np.asarray(self.beta * gains / self.cost[rows, levels])

    def batch(self, surface: Surface, k: int) -> list[tuple[int, int, float]]:
        """Return the first k steps of the greedy cover as (site, level, score); a pair may come twice.

        Members, beta, eta and costs stay as they are; the variances count earlier pairs as read.
        """
        chosen: list[tuple[int, int, float]] = []
        for _ in range(k):
            if chosen:
                site, level, _ = chosen[-1]
                surface = surface.believing(surface.candidates[site], self.noise[site, level])
            scores = np.where(self.able, self.scores(surface), -np.inf)
            flat = highest(scores.ravel())
            if flat is None:
                break
            site, level = divmod(flat, scores.shape[1])
            chosen.append((site, level, float(scores[site, level])))
        return chosen


@dataclass(frozen=True, eq=False)
class Anticipation(Reduction):
    """Eq. 3 over the set that would remain: a site that a reading would classify counts in full.

    The mean stands in for the unknown value (appendix A). All in double precision: error bounds do not cover
    the jump of a site that leaves the set.

    Parameters
    ----------
    leaves_below : (N,) array
        Variance below which each site would be classified.
    """

    leaves_below: Array

    def scores(self, surface: Surface) -> Array:
        """Return the scores (N, K), in double precision."""
        floor = self.eta**2 / self.beta
        now, leaves = surface.variance[self.members], self.leaves_below[self.members]
        # A site that would be classified already brings no gain.
        before = np.where(now < leaves, 0.0, np.maximum(now, floor))
        total = surface.variance[:, None] + self.noise
        scale = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
        gain = np.empty_like(self.cost)
        for start in range(0, surface.size, _BLOCK):
            some = np.arange(start, min(start + _BLOCK, surface.size))
            squares = np.square(surface.covariance(some, self.members))
            for level in range(self.cost.shape[1]):
                left = now - squares * scale[some, level, None]
                after = np.where(left < leaves, 0.0, np.maximum(left, floor))
                gain[some, level] = np.sum(before - after, axis=1)
        return np.asarray(self.beta * gain / self.cost)

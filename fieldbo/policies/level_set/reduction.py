"""What a reading would take off the truncated variances of what is in question: TruVaR's score.

Equation 3 of Bogunovic, Scarlett, Krause and Cevher (2016), over all (site, level) pairs of a surface.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.belief.surface import Surface
from fieldbo.policies.choice import LEADING, highest

_BLOCK = 256  # sites that are scored in double precision at once


@dataclass(frozen=True, eq=False)
class Reduction:
    """Eq. 3 over a surface: what readings would take off the members' truncated variances, per cost.

    Parameters
    ----------
    members : (N,) bool array
        The sites that are summed over.
    noise, cost : (N, K) arrays
        Of a reading at each site and level; costs above 0.
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
        """Return the scores (N, K), minus infinity for pairs that can be had and can't be among the leading.

        Single precision finds the pairs that may be so within its error; they are scored again in double
        precision.
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
        if least > 0 or gains.value[self.able].any():  # else nothing can be won anywhere: all are equal
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

        Members, beta, eta and costs stay as they are; the variances count the pairs before as read.
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
    """Eq. 3 with the set that would remain: a site that a reading would classify counts as won whole.

    The mean stands in for the value that is not known yet (appendix A). All in double precision: a site
    leaves the set at once, which no bound of an error covers.

    Parameters
    ----------
    leaves_below : (N,) array
        The variance below which each site would be classified.
    """

    leaves_below: Array

    def scores(self, surface: Surface) -> Array:
        """Return the scores (N, K), in double precision."""
        floor = self.eta**2 / self.beta
        now, leaves = surface.variance[self.members], self.leaves_below[self.members]
        # A site that counts as won already has nothing left to win.
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

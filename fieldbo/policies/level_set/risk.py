"""Misclassification risk, and how much of it readings are expected to remove.

===========  ==============================================================================
``t``        ``|mu - h| / s`` of a site, its distance from the threshold in standard deviations
``p``        ``Phi(-t)``, the probability that the site is misclassified
``q``        share of the site's variance that a set of readings will explain
``G``        expected drop of ``p (1 - p)``
===========  ==============================================================================

The variance that readings leave does not depend on their values, so that the drop is known exactly:
``G(t, q) = Phi2(-t, -t; q) - Phi(-t)^2``, with Phi2 the bivariate normal distribution of correlation q.

Members are the sites whose risk counts, candidates the sites where a reading can be taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from scipy.special import ndtr

from fieldbo._numerics.arrays import Array
from fieldbo.belief.lookahead import Single, Whole
from fieldbo.belief.question import LevelSet
from fieldbo.belief.surface import Surface
from fieldbo.domain.controls import halton
from fieldbo.policies.acquisition import misclassification_drop
from fieldbo.policies.contract import Policy, State

_SURE = 5.0  # distance from the threshold at which a site counts as classified
_KNOWN = 1e-4  # standard deviation, relative to the prior's, at which it does
_COUNTED = 0.998  # part of the risk that the members hold
_MOST_MEMBERS = 1024
_NOISE_FLOOR = 1e-6  # added to the noise variance, relative to the prior's

_DEGREE = 6
_PER_UNIT = 200  # rows of the table for each unit of t


@lru_cache(maxsize=1)
def _coefficients() -> Array:
    """Return polynomials R_t (1201, 7) for t from 0 to 6 such that ``G(t, q) = q R_t(sqrt(1 - q))``.

    Lowest power first. As a function of ``sqrt(1 - q)``, G / q is smooth up to q = 1.
    """
    from numpy.polynomial import chebyshev, polynomial

    t = np.arange(6 * _PER_UNIT + 1) / _PER_UNIT
    w = 0.5 * (chebyshev.chebpts1(4 * _DEGREE) + 1.0)
    q = 1.0 - np.square(w)
    drop = misclassification_drop(t[:, None], q)
    return np.array(polynomial.polyfit(w, (drop / q).T, _DEGREE).T, dtype=float, order="C")


def coefficients_at(t: Array) -> Array:
    """Return the polynomials' coefficients (R, 7) at each of `t` (R,), interpolated in the table.

    With them, `drop_of` errs by less than 3e-6. Beyond t = 6, they are those at 6.
    """
    return rows_at(_coefficients(), t * _PER_UNIT)


def rows_at(table: Array, at: Array) -> Array:
    """Return the rows of a table (., k) at each of `at` (R,), counted in rows and interpolated, (R, k)."""
    at = np.clip(at, 0.0, len(table) - 1.0)
    below = np.minimum(at.astype(int), len(table) - 2)
    share = (at - below)[:, None]
    return np.asarray((1.0 - share) * table[below] + share * table[below + 1])


def drop_of(R: Array, q: Array) -> Array:
    """Return ``q R(sqrt(1 - q))`` (R,) for polynomials of the coefficients (R, 7), lowest power first."""
    w = np.sqrt(1.0 - q)
    value = R[:, _DEGREE]
    for power in range(_DEGREE - 1, -1, -1):
        value = value * w + R[:, power]
    return np.asarray(q * value)


def spread_ranks(sites: Array) -> Whole:
    """Return a rank (N,) of each site, such that the sites up to any rank are spread evenly over all.

    The ranks follow a Halton sequence along a Z-order curve through the sites.

    Examples
    --------
    >>> spread_ranks(np.array([[0.0], [1.0], [2.0], [3.0]]))
    array([2, 1, 3, 0])
    """
    return _spread_ranks(np.ascontiguousarray(sites, dtype=float).tobytes(), sites.shape[1])


@lru_cache(maxsize=4)
def _spread_ranks(data: bytes, dimension: int) -> Whole:
    sites, bits = np.frombuffer(data).reshape(-1, dimension), min(16, 62 // dimension)
    low, extent = sites.min(axis=0), np.ptp(sites, axis=0)
    cells = ((sites - low) / np.where(extent > 0, extent, 1.0) * (2**bits - 1)).astype(np.int64)
    code = np.zeros(len(sites), dtype=np.int64)
    for bit in range(bits - 1, -1, -1):
        for axis in range(dimension):
            code = 2 * code + (cells[:, axis] >> bit & 1)
    order = np.argsort(code, kind="stable")[np.argsort(halton(len(sites), 1)[:, 0])]
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(sites))
    return ranks


@dataclass(frozen=True, eq=False)
class Risk:
    """The risk of the sites that are not yet classified, and what readings are expected to remove of it.

    Parameters
    ----------
    sites : int
        Number of sites that are not yet classified.
    errors : float
        Number of sites that are expected to be misclassified.
    members : (R,) int array
        The sites whose risk counts: those that hold nearly all of it, or some of them, spread evenly.
    t : (R,) array
        Their distances from the threshold.
    weight : float
        Number of sites that each member stands for.
    """

    sites: int
    errors: float
    members: Whole
    t: Array
    weight: float

    @classmethod
    def of(
        cls, surface: Surface, threshold: float, counted: float = _COUNTED, most: int = _MOST_MEMBERS
    ) -> Risk:
        """Return the risk of misclassifying the sites of a surface.

        Parameters
        ----------
        surface : Surface
        threshold : float
        counted : float
            Part of the risk that the members hold.
        most : int
            Largest number of members.
        """
        sd = surface.sd
        distance = np.abs(surface.mean - threshold)
        known = _KNOWN * np.sqrt(surface.process_variance)
        unsure = np.flatnonzero((distance < _SURE * sd) & (sd > known))
        t = distance[unsure] / sd[unsure]
        p = ndtr(-t)
        order = np.argsort(t, kind="stable")
        held = np.cumsum((p * (1.0 - p))[order])
        enough = np.searchsorted(held, counted * held[-1]) + 1 if len(held) else 0
        kept = np.sort(order[:enough])
        weight = 1.0
        if len(kept) > most:
            weight = len(kept) / most
            rank = spread_ranks(surface.candidates)[unsure[kept]]
            kept = kept[np.sort(np.argpartition(rank, most)[:most])]
        return cls(len(unsure), float(p.sum()), unsure[kept], t[kept], weight)

    def drops(self, surface: Surface, noise: Array) -> Array:
        """Return the expected drop of the sum of ``p (1 - p)`` by a reading of each candidate, (N, K).

        In single precision; a lower bound where covariances are too small for it.

        Parameters
        ----------
        surface : Surface
        noise : (N, K) array
            Noise variance of a reading at each site and level.
        """
        from fieldbo.policies.level_set._risk_loops import add_drops

        lookahead = surface.lookahead
        total = surface.variance[:, None] + floored(surface, noise)
        scale = np.ascontiguousarray(lookahead.unit / total.T, np.float32)
        inverse = (lookahead.unit / surface.variance[self.members]).astype(np.float32)
        R = coefficients_at(self.t).astype(np.float32)
        drops = np.zeros(scale.shape)
        for some, C, rows in lookahead.covariances(surface.solved, self.members):
            rounding = np.float32(lookahead.rounding)
            for level, of_level in enumerate(scale):
                add_drops(C, rows, R[some], rounding, inverse[some], of_level, drops[level])
        return self.weight * np.maximum(drops.T, 0.0)  # rounding

    def covariances(self, surface: Surface, sites: Whole) -> Single:
        """Return the covariances (R, W) of the members with some of the surface's candidates."""
        from fieldbo.policies.level_set._risk_loops import gather

        gathered = np.empty((len(self.members), len(sites)), np.float32)
        for some, C, rows in surface.lookahead.covariances(surface.solved, self.members):
            gather(C, rows, sites, gathered[some])
        return gathered


def floored(surface: Surface, noise: Array) -> Array:
    """Return noise variances (N, K), raised a little: what is known exactly must not be divided by."""
    return np.asarray(noise + _NOISE_FLOOR * surface.process_variance[:, None])


class ByRisk(Policy):
    """A policy that goes by the expected risk of misclassification."""

    answers: ClassVar[tuple[type, ...]] = (LevelSet,)

    def warnings(self, state: State) -> list[str]:
        """Warn if the prior alone classifies every site."""
        if state.belief.size or Risk.of(state.surface, state.threshold).sites:
            return []
        return [
            "the prior classifies every site before the first reading: the threshold lies more than five "
            "prior standard deviations from the prior mean; set model.mean and model.variance closer to the "
            "values"
        ]

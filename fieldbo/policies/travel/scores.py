"""Scores that weigh the value of a site against the travel to it.

===========  ==================================================================
``mu, s``    posterior mean and standard deviation, (N,)
``d``        travel to each site, in the cost unit; ``d0`` is the scale of short travel
``c``        the full cost: travel and sampling
``kappa``    multiplier of the standard deviation, ``kappa s``
===========  ==================================================================

One-step policies maximise a `TravelScore`; a rollout sums it along its paths.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from pydantic import NonNegativeFloat, PositiveFloat

from fieldbo._numerics.arrays import Array
from fieldbo.costs.base import CostModel
from fieldbo.domain.domain import Domain
from fieldbo.policies.acquisition import (
    Convention,
    dist_ucb,
    in_unit,
    log_expected_improvement,
)
from fieldbo.validation import settings

ScoreName = Literal["dist-ucb", "ucb", "ei", "ei-per-cost"]


@settings("policy")
class TravelScore:
    """A score of sites that depends on where the vehicle is.

    Examples
    --------
    >>> near, far = TravelScore(d0=1.0).scores(np.zeros(2), np.ones(2), np.array([0.0, 3.0]))
    >>> near, far
    (np.float64(2.0), np.float64(0.5))
    """

    name: ScoreName = "dist-ucb"
    """``mu + kappa s / d``; ``mu + kappa s``; expected improvement; or the latter per unit of cost."""
    kappa: NonNegativeFloat = 2.0
    """Multiplier of the standard deviation."""
    convention: Convention = "one_plus"
    """What distUCB uses for ``1 / d`` when d is small: see `per_travel`."""
    d0: PositiveFloat | None = None
    """Scale of short travel. Default, once `on` a domain: the travel along its longest side."""
    priced: bool = False
    """Whether EI per cost divides by the full cost; otherwise by ``max(d, d0)``."""

    def on(self, cost: CostModel, domain: Domain) -> TravelScore:
        """Return the score for a world: with its scale of travel, and `priced` if sampling has a cost."""
        d0 = longest_travel(cost, domain) if self.d0 is None else self.d0
        return replace(self, d0=d0, priced=cost.least_sampling_cost(domain.sites) > 0)

    @property
    def improves(self) -> bool:
        """True for an expected improvement, which depends on the best value so far."""
        return self.name in ("ei", "ei-per-cost")

    @property
    def small(self) -> float:
        """The scale of short travel."""
        return 1.0 if self.d0 is None else self.d0

    def scores(
        self,
        mu: Array,
        s: Array,
        d: Array,
        price: Array | None = None,
        best: float = -np.inf,
        unit: float = 0.0,
    ) -> Array:
        """Return the scores (N,) of sites; minus infinity excludes one.

        Parameters
        ----------
        mu, s, d : (N,) arrays
        price : (N,) array, optional
            The full cost of each, for a score that divides by it.
        best : float
            The best value so far, for an expected improvement.
        unit : float
            Logarithm of the unit in which to return an expected improvement.
        """
        if self.name == "dist-ucb":
            return dist_ucb(mu, s, d, self.kappa, self.small, self.convention)
        if self.name == "ucb":
            return np.asarray(mu + self.kappa * s)
        return in_unit(self.logs(mu, s, d, price, best), unit)

    def logs(self, mu: Array, s: Array, d: Array, price: Array | None, best: float) -> Array:
        """Return the logarithms (N,) of an expected improvement, per unit of cost if the score is.

        The parameters are those of `scores`.
        """
        improvement = log_expected_improvement(mu, s, best)
        if self.name == "ei":
            return improvement
        if self.priced and price is not None:
            return improvement - np.log(price)
        return improvement - np.log(np.maximum(d, self.small))


_FREE = 1e-300
"""Travel that costs no more than this is free: its inverse would overflow."""


def longest_travel(cost: CostModel, domain: Domain) -> float:
    """Return the travel along the domain's longest side; 1 if travel is free.

    If an end of a side lies outside the domain, or cannot be reached, the longest travel from the first site.

    Examples
    --------
    >>> from fieldbo.costs.travel import Euclidean
    >>> from fieldbo.domain.axes import Axis
    >>> longest_travel(Euclidean(rate=0.5), Domain.grid([Axis("x", "m", 0, 8), Axis("y", "m", 0, 6)], (3, 3)))
    4.0
    """
    ends = domain.low + np.diag(domain.extent)
    corners = np.vstack([domain.low, ends])
    longest = 0.0
    if domain.contains(corners).all():
        longest = float(cost.travel(domain.low, ends).max())
    if not (np.isfinite(longest) and longest > 0):
        travel = cost.travel(domain.sites[0], domain.sites)
        longest = float(travel[np.isfinite(travel)].max())
    return longest if longest > _FREE else 1.0

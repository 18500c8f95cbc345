"""Rules for an optimum that weigh what a site promises by the way to it: distUCB, and those beside it.

===========  ==================================================================
``mu, s``    posterior mean and standard deviation, (N,)
``d``        travel to each site, in the cost unit; ``d0`` is small travel
``c``        the full price: travel and sampling
``kappa``    a plain multiplier, ``kappa s``
===========  ==================================================================

A `TravelScore` scores sites from where a vehicle stands, and is what a rollout looks ahead with.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.costs.base import CostModel
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError
from fieldbo.policies.acquisition import Convention, dist_ucb, expected_improvement, per_travel

BaseName = Literal["dist-ucb", "ucb", "ei", "ei-per-cost"]


@dataclass(frozen=True)
class TravelScore:
    """A rule that scores a site from where the vehicle stands.

    Parameters
    ----------
    rule : {"dist-ucb", "ucb", "ei", "ei-per-cost"}
        ``mu + kappa s / d``; ``mu + kappa s``; expected improvement; the same over the cost.
    kappa : float
        At least 0.
    convention : {"one_plus", "floor", "exclude", "literal"}
        What distUCB takes for ``1 / d`` where d is small: see `per_travel`.
    d0 : float or None
        The scale of small travel; None: the travel along the domain's longest side, once it is `on` a domain.
    priced : bool
        Whether EI per cost divides by the full price; else by ``max(d, d0)``.

    Examples
    --------
    >>> near, far = TravelScore(d0=1.0).scores(np.zeros(2), np.ones(2), np.array([0.0, 3.0]))
    >>> near, far
    (np.float64(2.0), np.float64(0.5))
    """

    rule: BaseName = "dist-ucb"
    kappa: float = 2.0
    convention: Convention = "one_plus"
    d0: float | None = None
    priced: bool = False

    def __post_init__(self) -> None:
        if not (np.isfinite(self.kappa) and self.kappa >= 0):
            raise InputError(
                f"kappa = {self.kappa}", expected="a finite number of at least 0", where="policy.kappa"
            )
        if self.d0 is not None and not (np.isfinite(self.d0) and self.d0 > 0):
            raise InputError(
                f"d0 = {self.d0}",
                expected="travel above 0, in the world's cost unit",
                where="policy.d0",
                fix="leave it out: it is then the travel along the domain's longest side",
            )

    def on(self, cost: CostModel, domain: Domain) -> TravelScore:
        """Return the rule with what it takes from a world: small travel, and whether sampling has a price."""
        d0 = longest_travel(cost, domain) if self.d0 is None else self.d0
        return replace(self, d0=d0, priced=cost.least_sampling_cost(domain.sites) > 0)

    @property
    def improves(self) -> bool:
        """Whether it goes by the expected improvement on the best so far."""
        return self.rule in ("ei", "ei-per-cost")

    @property
    def small(self) -> float:
        """The scale of small travel."""
        return 1.0 if self.d0 is None else self.d0

    def scores(
        self, mu: Array, s: Array, d: Array, price: Array | None = None, best: float = -np.inf
    ) -> Array:
        """Return the scores (N,) of sites; minus infinity rules one out.

        Parameters
        ----------
        mu, s, d : (N,) arrays
        price : (N,) array, optional
            The full price of each, where the rule divides by it.
        best : float
            The best so far, where the rule is an expected improvement.
        """
        if self.rule == "dist-ucb":
            return dist_ucb(mu, s, d, self.kappa, self.small, self.convention)
        if self.rule == "ucb":
            return np.asarray(mu + self.kappa * s)
        improvement = expected_improvement(mu, s, best)
        if self.rule == "ei":
            return improvement
        if self.priced and price is not None:
            return improvement / price
        return improvement * per_travel(d, self.small, "floor")


def longest_travel(cost: CostModel, domain: Domain) -> float:
    """Return the travel along the domain's longest side; 1 where travel is free.

    Where an end of a side lies outside the domain, or no way leads there, it is the longest travel from the
    first site.

    Examples
    --------
    >>> from fieldbo.costs.euclidean import Euclidean
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
        ways = cost.travel(domain.sites[0], domain.sites)
        longest = float(ways[np.isfinite(ways)].max())
    return longest if longest > 0 else 1.0

"""What a straight chain of readings costs, with a cost model of any kind, and how long it can be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.costs.base import CostModel
from fieldbo.domain.domain import Domain
from fieldbo.policies.paths.chain import Chain

_PROBES = 24  # sites at which travel along each axis is priced
_STEP = 0.05  # of an axis, the move that is priced
_LEAST_RATE = 0.05  # of the dearest axis, each priced over its length: links along a free axis are finite
_ROUNDING = 1e-12
_UNLIMITED = 10**9  # readings, where they are free, too


@dataclass(frozen=True, eq=False)
class Prices:
    """Prices of a chain's links and readings.

    Attributes
    ----------
    rates : (d,) array
        Travel along each axis, in cost units per unit of the axis; where all travel is free, in lengths of
        the domain, which cost nothing.
    sample : float
        A reading, once there; the mean over the sites.
    free : bool
        Whether all travel is free.
    """

    rates: Array
    sample: float
    free: bool = False

    @classmethod
    def of(cls, cost: CostModel, domain: Domain, level: int) -> Prices:
        """Return the prices in a domain, with the sensor at `level`.

        Rates that a cost model does not state are medians of short moves, in the more expensive direction.
        """
        sample = float(cost.sampling_cost(domain.sites, level).mean())
        rates = cost.straight_rates
        rates = _probed(cost, domain) if rates is None else np.array(rates, dtype=float)
        longest = float((rates * domain.extent).max())
        if longest == 0:
            return cls(1.0 / domain.extent, sample, free=True)
        return cls(np.maximum(rates, _LEAST_RATE * longest / domain.extent), sample)

    def length(self, points: Array) -> float:
        """Return the travel cost of a straight chain through points (k, d)."""
        return float(np.linalg.norm(np.diff(points, axis=0) * self.rates, axis=1).sum())


@dataclass(frozen=True, eq=False)
class Budget:
    """What is left to spend on a chain, its prices, and where it has to end.

    Attributes
    ----------
    left : float
        In cost units.
    prices : Prices
    start : (d,) array
    end : (d,) array or None
    """

    left: float
    prices: Prices
    start: Array
    end: Array | None

    @property
    def distance(self) -> float:
        """Travel cost straight to the end; 0 if there is none."""
        return 0.0 if self.end is None else self.prices.length(np.stack([self.start, self.end]))

    def count(self, spacing: float) -> int:
        """Return how many readings are affordable with links that cost at most `spacing`."""
        if self.prices.free:
            most = self.left / self.prices.sample if self.prices.sample > 0 else _UNLIMITED
            return int(most * (1 + _ROUNDING))
        if self.left < self.distance:
            return 0
        whole = self.left / (spacing + self.prices.sample)
        if self.prices.sample > 0:
            whole = min(whole, (self.left - self.distance) / self.prices.sample)
        return int(whole * (1 + _ROUNDING))

    def spacing(self, count: int) -> float:
        """Return the longest link of `count` readings that spend all; below 0 if there is none."""
        if self.prices.free:
            return self._across if count <= self.count(0.0) else -1.0
        return (self.left - count * self.prices.sample) / (count + (self.end is not None))

    def chain(self, domain: Domain, count: int, spacing: float) -> Chain:
        """Return the limits of a chain of `count` readings; what is left over lengthens the last link."""
        spare = self._across if self.prices.free else self.left - count * (spacing + self.prices.sample)
        last = max(spare, (self.distance - count * spacing) * (1 + _ROUNDING), 0.0)
        return Chain(
            self.start, count, spacing, domain.low, domain.high, self.end, last, rates=self.prices.rates
        )

    def single(self, domain: Domain) -> list[Chain]:
        """Return the limits of a single reading, wherever it is affordable; none if it is nowhere."""
        spacing = self.spacing(1)
        return [self.chain(domain, 1, spacing)] if spacing > 0 and self.count(spacing) else []

    @property
    def _across(self) -> float:
        """Length across the whole domain where travel is free: no link is longer."""
        return float(np.sqrt(len(self.prices.rates)))


def _probed(cost: CostModel, domain: Domain) -> Array:
    """Return the rates (d,) of short moves along each axis."""
    starts = domain.sites[np.linspace(0, domain.size - 1, min(_PROBES, domain.size)).astype(int)]
    rates = np.zeros(domain.dimension)
    for axis, step in enumerate(_STEP * domain.extent):
        dearest = np.full(len(starts), -np.inf)
        for move in (-step, step):
            ends = starts.copy()
            ends[:, axis] += move
            for n in np.flatnonzero(domain.contains(ends)):
                dearest[n] = max(dearest[n], float(cost.travel(starts[n], ends[n : n + 1])[0]) / step)
        priced = dearest[np.isfinite(dearest)]
        rates[axis] = np.median(priced) if len(priced) else 0.0
    return rates

"""The contract of a cost model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError

_NAMED = 3  # obstacles in an error


@dataclass(frozen=True)
class CostModel(ABC):
    """What it costs to go from positions to sites and to sample there, in the world's cost unit.

    A new kind is a frozen dataclass that says what travel costs and what sampling costs.

    Parameters
    ----------
    seconds_per_unit : float
        Seconds that pass for each unit of cost; 1 where the cost unit is s.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    level_costs: ClassVar[tuple[float, ...]] = ()
    """What each of the sensor's settings adds to a sample; a world takes them from its sensor."""

    to_price_samples: ClassVar[str] = "add a sampling cost to the world's [cost], for example sampling = 1"
    """What to do where samples are free and should not be."""

    _domain: ClassVar[Domain | None] = None
    """What moves stay in; set by `within`."""

    seconds_per_unit: float = 1.0

    @abstractmethod
    def _travel(self, positions: Array, sites: Array) -> Array:
        """Return the travel costs (P, N) between `positions` (P, d) and `sites` (N, d)."""

    @abstractmethod
    def _sampling(self, sites: Array) -> Array:
        """Return the costs (N,) of sampling at `sites` (N, d), once there."""

    def travel(self, positions: ArrayLike, sites: ArrayLike, time_s: float = 0.0) -> Array:
        """Return what the way alone costs.

        Parameters
        ----------
        positions : (d,) or (P, d) array
        sites : (N, d) array
        time_s : float
            When the move starts.

        Returns
        -------
        (N,) or (P, N) array
        """
        return priced(self._travel, positions, sites)

    def sampling_cost(self, sites: ArrayLike, level: int = 0, controls: Mask | None = None) -> Array:
        """Return what sampling costs (N,) where one is: at each of `sites` (N, d), without a way.

        A kind whose price goes by which variables are set, `controls` (d,), overrides `_controlling`.
        """
        own = self._controlling(np.atleast_2d(np.asarray(sites, dtype=float)), controls)
        return own + self.level_costs[level] if self.level_costs else own

    def _controlling(self, sites: Array, controls: Mask | None) -> Array:
        """Return the costs (N,) of sampling at `sites` (N, d) with those variables set; None is all."""
        return self._sampling(sites)

    def least_sampling_cost(self, sites: ArrayLike) -> float:
        """Return what the cheapest sample at the cheapest setting costs."""
        return min(float(self.sampling_cost(sites, k).min()) for k in range(max(1, len(self.level_costs))))

    def with_level_costs(self, costs: tuple[float, ...]) -> Self:
        """Return the same costs, with what each of the sensor's settings adds to a sample."""
        return self._with(level_costs=costs)

    def _with(self, **what: object) -> Self:
        """Return a copy with attributes that are no settings."""
        other = copy(self)
        other.__dict__.pop("_matrix", None)  # it may hold no longer
        for name, value in what.items():
            object.__setattr__(other, name, value)
        return other

    def to(
        self,
        positions: ArrayLike,
        sites: ArrayLike,
        controls: Mask | None = None,
        level: int = 0,
        time_s: float = 0.0,
    ) -> Array:
        """Return the full price of going there and sampling; shapes as in `travel`."""
        ends = np.atleast_2d(np.asarray(sites, dtype=float))
        return np.asarray(self.travel(positions, ends, time_s) + self.sampling_cost(ends, level, controls))

    def duration_s(
        self,
        positions: ArrayLike,
        sites: ArrayLike,
        controls: Mask | None = None,
        level: int = 0,
        time_s: float = 0.0,
    ) -> Array:
        """Return how long going there and sampling takes, in seconds; shapes as in `travel`."""
        ends = np.atleast_2d(np.asarray(sites, dtype=float))
        return np.asarray(self.travel_s(positions, ends, time_s) + self.sampling_s(ends, level, controls))

    def travel_s(self, positions: ArrayLike, sites: ArrayLike, time_s: float = 0.0) -> Array:
        """Return how long the way alone takes, in seconds; shapes as in `travel`."""
        return self.seconds_per_unit * self.travel(positions, sites, time_s)

    def sampling_s(self, sites: ArrayLike, level: int = 0, controls: Mask | None = None) -> Array:
        """Return how long sampling takes (N,), once at each of `sites` (N, d), in seconds."""
        return self.seconds_per_unit * self.sampling_cost(sites, level, controls)

    def matrix(self, sites: ArrayLike, time_s: float = 0.0) -> Array:
        """Return the full costs (N, N) from each site (row) to each site (column).

        May be asymmetric; the last one is kept, and can't be written to.
        """
        x = np.atleast_2d(np.asarray(sites, dtype=float))
        key = (x.tobytes(), time_s)
        known: tuple[tuple[bytes, float], Array] | None = self.__dict__.get("_matrix")
        if known is None or known[0] != key:
            known = (key, self.to(x, x, time_s=time_s))
            known[1].setflags(write=False)
            object.__setattr__(self, "_matrix", known)  # only the last one is kept
        return known[1]

    def path(self, a: ArrayLike, b: ArrayLike, time_s: float = 0.0) -> Array:
        """Return the way really taken from `a` (d,) to `b` (d,), as (k, d) points, both ends included."""
        return np.stack([np.asarray(a, dtype=float), np.asarray(b, dtype=float)])

    @property
    def known(self) -> bool:
        """Whether there are prices at all; a live world's may be what is to be found out."""
        return True

    @property
    def prices_controls(self) -> bool:
        """Whether a query may leave variables free: the price goes by what is controlled, if by anything."""
        return False

    def realised(self, price: float, controls: Mask | None, luck: np.random.Generator) -> float:
        """Return what a query of a declared price really costs in simulation; by default that."""
        return price

    def check(self, domain: Domain) -> None:
        """Raise an `InputError` if this cost model does not fit the domain."""

    def within(self, domain: Domain) -> Self:
        """Return the same costs for moves in that domain, which `check` has let pass.

        A kind that knows the way round obstacles overrides this; see `Legs`.

        Raises
        ------
        InputError
            The domain has obstacles, and this kind knows no way round.
        """
        if domain.obstacles:
            names = ", ".join(o.name for o in domain.obstacles[:_NAMED])
            more = f" and {len(domain.obstacles) - _NAMED} more" if len(domain.obstacles) > _NAMED else ""
            raise InputError(
                f"a {type(self).__name__.lower()} cost knows no way round {names}{more}",
                expected="a cost of ways round obstacles, or a domain without any",
                where="cost.kind",
                fix='take kind = "euclidean" or "flight"',
            )
        return self._with(_domain=domain)

    @property
    def straight_rates(self) -> Array | None:
        """Rates (d,) such that travel is ``norm(rates * displacement)`` everywhere in its domain.

        What loops over many moves reckon by themselves; None where travel is anything else, or where no
        domain is known.
        """
        return None

    @property
    def seconds_per_travel(self) -> float | None:
        """Seconds for each unit of travel cost; None where the one does not follow from the other."""
        return self.seconds_per_unit


def priced(price: Callable[[Array, Array], Array], positions: ArrayLike, sites: ArrayLike) -> Array:
    """Return prices (P, N) between arrays of points; (N,) from one position."""
    starts, ends = np.asarray(positions, dtype=float), np.atleast_2d(np.asarray(sites, dtype=float))
    costs = price(np.atleast_2d(starts), ends)
    return costs[0] if starts.ndim == 1 else costs


def not_negative(where: str, **rates: float) -> None:
    """Raise an `InputError` if a rate is negative or not finite."""
    for name, rate in rates.items():
        if not (np.isfinite(rate) and rate >= 0):
            raise InputError(
                f"{name} = {rate}", expected="a finite number of at least 0", where=f"{where}.{name}"
            )


def above_zero(where: str, **rates: float) -> None:
    """Raise an `InputError` if a rate is not finite and above 0."""
    for name, rate in rates.items():
        if not (np.isfinite(rate) and rate > 0):
            raise InputError(f"{name} = {rate}", expected="a finite number above 0", where=f"{where}.{name}")

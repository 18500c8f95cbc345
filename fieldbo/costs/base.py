"""The contract of a cost model, the simplest kind, and what a vehicle may still spend."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from pydantic import NonNegativeFloat

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError
from fieldbo.validation import settings

_NAMED = 3  # obstacles that an error lists


@settings("cost")
class CostModel(ABC):
    """What it costs to travel to a site and to sample there, in the world's cost unit.

    To add a kind of cost, subclass `CostModel`, decorate the class with `fieldbo.validation.settings`, and
    write two methods:

    - `travel_between` returns the cost of moving between positions and sites;
    - `sample_at` returns the cost of a sample at each site.

    Both take and return whole arrays. Everything else (totals, durations, cost matrices) follows from them.
    Each annotated attribute is a setting: a key of the ``[cost]`` table of a world file, checked against its
    type and documented by the string below it.

    Override more methods only where the defaults don't fit:

    - `check` rejects a domain that the cost can't be used on, for example one with other units;
    - `path` returns the route, if it is not a straight line;
    - `within` binds the cost to a domain. The default rejects domains with obstacles; subclass
      `fieldbo.costs.Legs` instead to travel around them;
    - `sample_with` and `prices_controls` make the cost depend on which variables a query controls;
    - `draw_cost` makes the real cost of a simulated query random;
    - `straight_rates` lets compiled loops compute travel without calling Python.

    Costs must be finite and at least 0, and must not depend on earlier calls.
    `fieldbo.testing.WorldContract` tests this.

    Register the class as an entry point in the group ``fieldbo.costs`` of your package's ``pyproject.toml``:

    .. code-block:: toml

        [project.entry-points."fieldbo.costs"]
        manhattan = "my_package.costs:Manhattan"

    World files can then use it: ``kind = "manhattan"`` and ``rate = 2`` under ``[cost]``.

    Examples
    --------
    A gantry that moves along one axis at a time:

    >>> from pydantic import NonNegativeFloat
    >>> from fieldbo.validation import settings
    >>> @settings("cost")
    ... class Manhattan(CostModel):
    ...     rate: NonNegativeFloat = 1.0
    ...     sampling: NonNegativeFloat = 0.5
    ...
    ...     def travel_between(self, starts, ends):
    ...         return self.rate * np.abs(starts[:, None] - ends[None]).sum(axis=2)
    ...
    ...     def sample_at(self, sites):
    ...         return np.full(len(sites), self.sampling)
    >>> Manhattan(rate=2.0).to([0.0, 0.0], [[3.0, 4.0], [1.0, 0.0]])
    array([14.5,  2.5])
    """

    level_costs: ClassVar[tuple[float, ...]] = ()
    """What each level of the sensor adds to a sample; set by the world, from its sensor."""

    to_price_samples: ClassVar[str] = "add a sampling cost to the world's [cost], for example sampling = 1"
    """How to give samples a cost; errors suggest it where free samples would never end a mission."""

    prices_depth: ClassVar[bool] = False
    """Whether routes stay at the surface of an outline with a depth, where sites lie below it."""

    _domain: ClassVar[Domain | None] = None
    """The domain that moves stay in; set by `within`."""

    seconds_per_unit: NonNegativeFloat = 1.0
    """Seconds per unit of cost; 1 if the cost unit is s."""

    # -- what a kind of cost defines -----------------------------------------------------------------------

    @abstractmethod
    def travel_between(self, starts: Array, ends: Array) -> Array:
        """Return the cost of travelling from each start to each end, without sampling.

        Parameters
        ----------
        starts : (P, d) array
        ends : (N, d) array

        Returns
        -------
        (P, N) array
            In cost units; infinite where there is no route.
        """

    @abstractmethod
    def sample_at(self, sites: Array) -> Array:
        """Return the cost of one sample at each site, once there.

        Parameters
        ----------
        sites : (N, d) array

        Returns
        -------
        (N,) array
            In cost units.
        """

    def sample_with(self, sites: Array, controls: Mask | None) -> Array:
        """Return the cost of one sample at each site with some variables controlled.

        Override this, and `prices_controls`, if the cost depends on what a query controls.

        Parameters
        ----------
        sites : (N, d) array
        controls : (d,) bool array or None
            The controlled variables; None means all.

        Returns
        -------
        (N,) array
            In cost units; by default, `sample_at`.
        """
        return self.sample_at(sites)

    @property
    def prices_controls(self) -> bool:
        """Whether queries may leave variables free, because `sample_with` covers them."""
        return False

    def draw_cost(self, price: float, controls: Mask | None, luck: np.random.Generator) -> float:
        """Return the real cost of a simulated query with a declared cost of `price`; by default the same."""
        return price

    def path(self, a: ArrayLike, b: ArrayLike, time_s: float = 0.0) -> Array:
        """Return the route from `a` (d,) to `b` (d,) as (k, d) points, both ends included."""
        return np.stack([np.asarray(a, dtype=float), np.asarray(b, dtype=float)])

    def check(self, domain: Domain) -> None:
        """Raise an `InputError` if this cost can't be used on the domain."""

    def within(self, domain: Domain) -> Self:
        """Return this cost bound to a domain that `check` has accepted.

        Raises
        ------
        InputError
            The domain has obstacles, and this kind of cost can't route around them.
        """
        if domain.obstacles:
            names = ", ".join(o.name for o in domain.obstacles[:_NAMED])
            more = f" and {len(domain.obstacles) - _NAMED} more" if len(domain.obstacles) > _NAMED else ""
            raise InputError(
                f"a {type(self).__name__.lower()} cost can't route around {names}{more}",
                expected="a cost that routes around obstacles, or a domain without any",
                where="cost.kind",
                fix='use kind = "euclidean", "boat" or "flight"',
            )
        return self._with(_domain=domain)

    @property
    def straight_rates(self) -> Array | None:
        """Rates (d,) such that travel costs ``norm(rates * displacement)`` everywhere in the domain.

        Compiled loops use them to compute travel on their own. None if travel has any other form, or before
        the cost is bound to a domain.
        """
        return None

    @property
    def seconds_per_travel(self) -> float | None:
        """Seconds per unit of travel cost; None if the time does not follow from the cost."""
        return self.seconds_per_unit

    @property
    def known(self) -> bool:
        """Whether the costs are known; a live world may leave them to the agent to learn."""
        return True

    # -- what follows ------------------------------------------------------------------------------------

    def travel(self, positions: ArrayLike, sites: ArrayLike, time_s: float = 0.0) -> Array:
        """Return the cost of travel alone.

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
        return pairwise_costs(self.travel_between, positions, sites)

    def sampling_cost(self, sites: ArrayLike, level: int = 0, controls: Mask | None = None) -> Array:
        """Return the cost (N,) of one sample at each of `sites` (N, d), without travel.

        Parameters
        ----------
        sites : (N, d) array
        level : int
            The sensor's level.
        controls : (d,) bool array, optional
            The controlled variables; None means all.
        """
        cost = self.sample_with(np.atleast_2d(np.asarray(sites, dtype=float)), controls)
        return cost + self.level_costs[level] if self.level_costs else cost

    def least_sampling_cost(self, sites: ArrayLike) -> float:
        """Return the lowest cost of a sample over all sites and sensor levels."""
        return min(float(self.sampling_cost(sites, k).min()) for k in range(max(1, len(self.level_costs))))

    def to(
        self,
        positions: ArrayLike,
        sites: ArrayLike,
        controls: Mask | None = None,
        level: int = 0,
        time_s: float = 0.0,
    ) -> Array:
        """Return the full cost of travelling to each site and sampling there; shapes as in `travel`."""
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
        """Return the seconds it takes to travel to each site and sample there; shapes as in `travel`."""
        ends = np.atleast_2d(np.asarray(sites, dtype=float))
        return np.asarray(self.travel_s(positions, ends, time_s) + self.sampling_s(ends, level, controls))

    def travel_s(self, positions: ArrayLike, sites: ArrayLike, time_s: float = 0.0) -> Array:
        """Return the seconds that travel alone takes; shapes as in `travel`."""
        return self.seconds_per_unit * self.travel(positions, sites, time_s)

    def along(self, points: ArrayLike, time_s: float = 0.0) -> tuple[float, float]:
        """Return the cost of travelling in straight legs through points (k, d), and the seconds it takes.

        The legs are priced as they are, even where one leads through an obstacle.
        """
        route = np.asarray(points, dtype=float)
        legs = list(pairwise(route))
        cost = sum(float(self.travel(a, b[None], time_s)[0]) for a, b in legs)
        return cost, sum(float(self.travel_s(a, b[None], time_s)[0]) for a, b in legs)

    def sampling_s(self, sites: ArrayLike, level: int = 0, controls: Mask | None = None) -> Array:
        """Return the seconds (N,) that one sample takes at each of `sites` (N, d)."""
        return self.seconds_per_unit * self.sampling_cost(sites, level, controls)

    def matrix(self, sites: ArrayLike, time_s: float = 0.0) -> Array:
        """Return the full costs (N, N) from each site (row) to each site (column).

        The matrix may be asymmetric. It is read-only, and the last one is cached.
        """
        x = np.atleast_2d(np.asarray(sites, dtype=float))
        key = (x.tobytes(), time_s)
        cached: tuple[tuple[bytes, float], Array] | None = self.__dict__.get("_matrix")
        if cached is None or cached[0] != key:
            cached = (key, self.to(x, x, time_s=time_s))
            cached[1].setflags(write=False)
            object.__setattr__(self, "_matrix", cached)
        return cached[1]

    def with_level_costs(self, costs: tuple[float, ...]) -> Self:
        """Return a copy with the cost that each level of the sensor adds to a sample."""
        return self._with(level_costs=costs)

    def _with(self, **attributes: object) -> Self:
        """Return a copy with attributes that are not settings."""
        other = copy(self)
        other.__dict__.pop("_matrix", None)  # it may no longer be right
        for name, value in attributes.items():
            object.__setattr__(other, name, value)
        return other


def pairwise_costs(cost: Callable[[Array, Array], Array], positions: ArrayLike, sites: ArrayLike) -> Array:
    """Return ``cost(positions, sites)``: (P, N) from several positions, (N,) from one."""
    starts, ends = np.asarray(positions, dtype=float), np.atleast_2d(np.asarray(sites, dtype=float))
    costs = cost(np.atleast_2d(starts), ends)
    return costs[0] if starts.ndim == 1 else costs


@settings("cost")
class Unit(CostModel):
    """A fixed cost per sample, and free travel: the battery counts samples.

    Examples
    --------
    >>> Unit().to([0.0, 0.0], [[5.0, 5.0], [0.0, 0.0]])
    array([1., 1.])
    """

    sampling: NonNegativeFloat = 1.0
    """Cost of a sample."""

    def travel_between(self, starts: Array, ends: Array) -> Array:
        return np.zeros((len(starts), len(ends)))

    def sample_at(self, sites: Array) -> Array:
        return np.full(len(sites), self.sampling)

    @property
    def prices_controls(self) -> bool:
        """True: every query costs the same."""
        return True

    @property
    def straight_rates(self) -> Array | None:
        """Zeros (d,)."""
        return None if self._domain is None else np.zeros(self._domain.dimension)


class Supply(NamedTuple):
    """What all vehicles, with all their batteries, have of a limited supply: `left`, and `in_all` at first.

    What they spent counts as it was, and what is left without reserve and margin.
    """

    left: float
    in_all: float

    @property
    def share(self) -> float:
        """Share that is left.

        Examples
        --------
        >>> Supply(left=10.0, in_all=40.0).share
        0.25
        """
        return self.left / self.in_all if self.in_all > 0 else 0.0


@dataclass(frozen=True)
class Limit:
    """What a vehicle may still spend of a limited supply: the battery, or time.

    Amounts are declared costs: the reserve, outstanding orders and the margin for moves that turn out more
    expensive are already subtracted. A query is affordable if the earlier queries, the trip there (`going`)
    and the trip home (`back`) together cost at most `left`.

    Attributes
    ----------
    name : str
        ``"battery"``, in the world's cost unit, or ``"time"``, in seconds.
    left : float
        What is left to spend.
    going : Callable
        ``going(positions, sites, controls=None, level=0)``, the full cost of a query; shapes as in
        `CostModel.to`.
    back : Callable
        ``back(sites) -> (N,)``, the cost of the trip home; zeros without a home.
    """

    name: str
    left: float
    going: Callable[..., Array]
    back: Callable[[Array], Array]

    def after(self, position: Array, site: Array, level: int = 0, controls: Mask | None = None) -> float:
        """Return what would be left for further queries after the next one.

        Parameters
        ----------
        position, site : (d,) array
            Where the query starts, and where it samples.
        level : int
            The sensor's level.
        controls : (d,) bool array, optional
            The controlled variables; None means all.

        Returns
        -------
        float
            What is left after the query, with the trip home set aside; 0 if it is not affordable.
        """
        spent = self.going(position, site[None], controls, level) + self.back(site[None])
        return max(0.0, self.left - float(spent[0]))

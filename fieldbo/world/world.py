"""A world answers queries: it joins a domain, a field, a cost model, a sensor, a start and disturbances."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Annotated, NamedTuple

import numpy as np
import pydantic
from numpy.typing import ArrayLike

from fieldbo._numerics.arrays import Array, frozen_array
from fieldbo.costs.base import CostModel
from fieldbo.costs.on_the_way import check_along, on_the_way
from fieldbo.domain.domain import Domain
from fieldbo.domain.obstacles import Obstacle
from fieldbo.domain.sensor import Sensor
from fieldbo.errors import InputError
from fieldbo.messages import GoHome, Observation, Order, Query
from fieldbo.validation import settings
from fieldbo.world.fields.base import Field

_CUT = 2.0  # standard deviations; no margin could cover unbounded noise


@settings("conditions")
class Disturbances:
    """How real costs and times differ from the declared ones.

    Examples
    --------
    >>> from fieldbo.costs import Euclidean
    >>> breeze = Disturbances(head_wind=(0.2, 0.0))
    >>> breeze.wind_factor(Euclidean(), [[5.0, 0.0], [0.0, 0.0]])
    1.2
    >>> breeze.wind_factor(Euclidean(), [[5.0, 0.0], [5.0, 3.0]])
    1.0
    >>> Disturbances(cost_noise=0.05, head_wind=(0.2, 0.0)).worst
    0.32
    """

    cost_noise: Annotated[float, pydantic.Field(ge=0, lt=1 / _CUT)] = 0.0
    """Standard deviation of an order's relative cost error, which is cut off at two standard deviations."""
    head_wind: tuple[float, ...] = ()
    """The direction a steady wind blows to, one fraction per axis. With ``[0.2, 0]``, a piece of the route
    against the first axis costs 20% more, and one along it 20% less. Default: calm."""

    def __post_init__(self) -> None:
        if not self._wind_strength < 1:
            raise InputError(
                f"head_wind = {list(self.head_wind)}",
                expected="a vector of length below 1, so that no move has a negative cost",
                where="conditions.head_wind",
            )

    @property
    def _wind_strength(self) -> float:
        return float(np.linalg.norm(self.head_wind))

    @property
    def worst(self) -> float:
        """The largest fraction by which an order can cost more, or take longer, than declared.

        With a margin of at least this much, the trip home is always affordable.
        """
        worst = (1.0 + self._wind_strength) * (1.0 + _CUT * self.cost_noise) - 1.0
        rounded = round(worst, 12)
        return rounded if abs(rounded - worst) < 1e-15 else worst  # 0.32 is 0.32

    def wind_factor(self, cost: CostModel, points: ArrayLike, time_s: float = 0.0) -> float:
        """Return the factor by which the wind changes the cost of a route through points (k, d).

        Each piece of the route is weighted by its declared cost.
        """
        if not any(self.head_wind):
            return 1.0
        route = np.asarray(points, dtype=float)
        legs = np.diff(route, axis=0)
        lengths = np.linalg.norm(legs, axis=1)
        prices = np.array([cost.along([p, q], time_s)[0] for p, q in pairwise(route)])
        prices, legs, lengths = prices[lengths > 0], legs[lengths > 0], lengths[lengths > 0]
        total = float(prices.sum())
        if not total > 0:
            return 1.0
        return float(1.0 - prices @ (legs @ self.head_wind / lengths) / total)

    def noise_factor(self, rng: np.random.Generator) -> float:
        """Draw the random factor on the cost of one order."""
        if self.cost_noise == 0:
            return 1.0
        return 1.0 + self.cost_noise * float(np.clip(rng.standard_normal(), -_CUT, _CUT))

    def check(self, domain: Domain) -> None:
        """Raise an `InputError` unless the wind has one component per axis of the domain."""
        if self.head_wind and len(self.head_wind) != domain.dimension:
            raise InputError(
                f"a head wind of {len(self.head_wind)} components",
                expected=f"{domain.dimension}, for {', '.join(a.name for a in domain.axes)}",
                where="conditions.head_wind",
            )

    def describe(self) -> str:
        """Return the disturbances in words, for example ``"cost_noise 0.05, head_wind [0.2, 0]"``."""
        parts = [f"cost_noise {self.cost_noise:g}"] if self.cost_noise else []
        if any(self.head_wind):
            parts.append(f"head_wind [{', '.join(f'{share:g}' for share in self.head_wind)}]")
        return ", ".join(parts) or "as declared"


@dataclass(frozen=True)
class Quantity:
    """The measured quantity.

    Parameters
    ----------
    name, unit : str
    standard_name : str, optional
        Its CF standard name.
    spread : float
        Range of its known values, which decides how many digits are printed; 0 if it is not known.
    """

    name: str = "value"
    unit: str = "1"
    standard_name: str | None = None
    spread: float = 0.0

    @property
    def label(self) -> str:
        """Name and unit, as on a colour bar."""
        return f"{self.name} ({self.unit})" if self.unit not in ("", "1") else self.name

    def amount(self, value: float) -> str:
        """Return a value with its unit, to the digits of `number`.

        Examples
        --------
        >>> Quantity("chlorophyll", "mg m-3").amount(1.23456), Quantity("error").amount(0.5)
        ('1.235 mg m-3', '0.5')
        """
        return self.number(value) + ("" if self.unit in ("", "1") else f" {self.unit}")

    def number(self, value: float) -> str:
        """Return a value to four digits, or more if the quantity varies little around it.

        Examples
        --------
        >>> Quantity("level", "m").number(1897.2468), Quantity("level", "m", spread=0.05).number(1897.2468)
        ('1897', '1897.2468')
        """
        return f"{value:.{digits_of(value, self.spread)}g}"


def digits_of(value: float, spread: float) -> int:
    """Return how many significant digits of a value to print, for a quantity of some spread.

    They are four, and more for a small spread on a large offset.
    """
    if not (spread > 0 and np.isfinite(value)):
        return 4
    return min(16, 4 + max(0, math.floor(math.log10(max(abs(value), spread) / spread))))


@dataclass(frozen=True, eq=False)
class World:
    """Where a mission takes place: what can be sampled, and what it costs.

    Parameters
    ----------
    name, title : str
    domain : Domain
    cost : CostModel
    cost_unit : str
        For example ``"s"``; the mission's battery has the same unit.
    sensor : Sensor
    quantity : Quantity
    field : Field, optional
        The truth; a live world has none.
    start : (d,) array, optional
        Where vehicles start unless a mission sets it. The default is the first site; in a continuous domain
        it is the middle, or the site nearest to it.
    draw : int
        Which realisation of a random field this is.
    disturbances : Disturbances, optional
        How real costs differ from the declared ones, in simulation; None means not at all.
    surveyed : (n,) array, optional
        Values of earlier readings of the real place; by default those to which the field is fitted, if any.
    unreadable : tuple of Obstacle
        Areas in which every reading fails, in simulation.
    no_go : tuple of Obstacle
        Areas that were closed to vehicles under way. Their sites stay on the map, but can't be reached.
    """

    name: str
    title: str
    domain: Domain
    cost: CostModel
    cost_unit: str
    sensor: Sensor
    quantity: Quantity
    field: Field | None = None
    start: Array | None = None
    draw: int = 0
    disturbances: Disturbances | None = None
    surveyed: Array | None = None
    unreadable: tuple[Obstacle, ...] = ()
    no_go: tuple[Obstacle, ...] = ()

    def __post_init__(self) -> None:
        if self.surveyed is None and self.field is not None:
            object.__setattr__(self, "surveyed", self.field.fitted_to)
        if self.surveyed is not None and len(self.surveyed) and not self.quantity.spread:
            spread = float(np.ptp(self.surveyed))
            object.__setattr__(self, "quantity", replace(self.quantity, spread=spread))
        start = self.start
        if start is None:
            start = self.domain.middle if self.domain.continuous else self.domain.sites[0]
        object.__setattr__(self, "start", frozen_array(start))
        self.cost.check(self.domain)
        if self.domain.control_sets and not self.cost.prices_controls:
            raise InputError(
                f"a {type(self.cost).__name__.lower()} cost does not fit a domain with control sets",
                expected="a cost that depends on the controlled variables",
                where="cost.kind",
                fix='use kind = "subset" or "unit"',
            )
        if self.domain.region is not None and self.domain.dimension > 2 and not self.cost.prices_depth:
            raise InputError(
                f"a {type(self.cost).__name__.lower()} cost does not fit an outline with a depth",
                expected="a cost of travel at the surface, and of lowering a probe",
                where="cost.kind",
                fix='use kind = "boat"',
            )
        if not (self.live or self.cost.known):
            raise InputError(
                "[field] is set but costs is missing",
                expected="the mean cost of each control set",
                where="cost.costs",
                fix='add them; if the agent should learn them, set costs = "unknown" in [agent]',
            )
        self.sensor.check(self.domain)
        if self.sensor.along is not None:
            check_along(self.sensor.along, self.cost, self.cost_unit, self.domain)
        if self.disturbances is not None:
            self.disturbances.check(self.domain)
        self._check_unreadable()
        object.__setattr__(self, "cost", self.cost.within(self.passable))
        if self.sensor.level_costs != self.cost.level_costs:
            object.__setattr__(self, "cost", self.cost.with_level_costs(self.sensor.level_costs))

    def _check_unreadable(self) -> None:
        for number, area in enumerate(self.unreadable):
            if area.dimension > self.domain.dimension:
                axes = ", ".join(axis.name for axis in self.domain.axes)
                raise InputError(
                    f"{area.name} has {area.dimension} coordinates",
                    expected=f"at most {self.domain.dimension}, for {axes}",
                    where=f"unreadable[{number}]",
                )

    @cached_property
    def passable(self) -> Domain:
        """The part of the domain that vehicles may enter: all of it, but for the no-go areas."""
        return self.domain.without(self.no_go)

    @property
    def live(self) -> bool:
        """Whether the world has no truth to simulate or to score against."""
        return self.field is None

    def truth(self, sites: Array, time_s: float = 0.0) -> Array:
        """Return the true values (N,) at `sites` (N, d).

        Raises
        ------
        InputError
            The world is live.
        """
        return self._known_field.values(np.atleast_2d(np.asarray(sites, dtype=float)), time_s)

    @property
    def _known_field(self) -> Field:
        if self.field is None:
            raise InputError(
                f"the world {self.name} is live: it has no true values",
                expected="a world with a [field]",
                fix="run the mission with a vehicle, for example: fieldbo run MISSION --by-hand",
            )
        return self.field

    def takes(
        self, order: Order, position: Array, time_s: float, luck: np.random.Generator | None = None
    ) -> tuple[float, float]:
        """Return the real cost of an order in simulation, and the seconds it takes.

        The vehicle drives straight legs through the points of the order's route, or straight to its site.

        Parameters
        ----------
        order : Query or GoHome
        position : (d,) array
            Where the vehicle is.
        time_s : float
            When it sets out.
        luck : numpy.random.Generator, optional
            Draws the noise on the cost; None means no noise.

        Returns
        -------
        cost : float
            In cost units.
        duration_s : float
        """
        cost, duration_s, _ = self._takes(order, position, time_s, luck)
        return cost, duration_s

    def _takes(
        self, order: Order, position: Array, time_s: float, luck: np.random.Generator | None
    ) -> tuple[float, float, float]:
        """Return what `takes` returns, and the seconds of travel in it."""
        assert order.site is not None
        cost, points = self.cost, driven(order, position)
        travel = np.array(self._travel(points, time_s))
        total = travel
        if isinstance(order, Query):
            sample, controls, level = order.site[None], order.controls, order.level
            price = travel[0] + cost.sampling_cost(sample, level, controls)[0]
            price = price if luck is None else cost.draw_cost(float(price), controls, luck)
            total = np.array([price, travel[1] + cost.sampling_s(sample, level, controls)[0]])
        travel_s = travel[1]
        if self.disturbances is not None:
            wind = self.disturbances.wind_factor(cost, points, time_s) - 1.0
            noise = 1.0 if luck is None else self.disturbances.noise_factor(luck)
            total, travel_s = (total + wind * travel) * noise, travel_s * (1.0 + wind) * noise
        return float(total[0]), float(total[1]), float(travel_s)

    def _travel(self, points: Array, time_s: float) -> tuple[float, float]:
        """Return the declared cost and duration of travelling through points (k, d)."""
        cost, start, end = self.cost, points[0], points[-1]
        declared = (
            float(cost.travel(start, end[None], time_s)[0]),
            float(cost.travel_s(start, end[None], time_s)[0]),
        )
        if len(points) == 2 and (np.isnan(end).any() or self.passable.clear):
            return declared
        as_declared = np.isfinite(declared[0]) and np.array_equal(points, cost.path(start, end, time_s))
        return declared if as_declared else cost.along(points, time_s)

    def _completed_site(self, query: Query, chance: np.random.Generator | None) -> Array:
        """Return the point (d,) that a query samples, with the variables it leaves free drawn at random."""
        if query.controls is None or bool(query.controls.all()):
            return query.site
        controls = self.domain.controls
        if controls is None or controls.index_of(query.controls) is None:
            free = [a.name for a, on in zip(self.domain.axes, query.controls, strict=True) if not on]
            raise InputError(
                f"the query leaves {', '.join(free)} free",
                expected="one of the control sets: " + "; ".join(s.name for s in self.domain.control_sets)
                if self.domain.control_sets
                else "a query that sets all variables, because the domain has no control sets",
                where=self.name,
            )
        assert chance is not None
        return controls.completed(query.site, query.controls, chance)

    def evaluate(
        self,
        query: Query,
        position: Array,
        time_s: float,
        rng: np.random.Generator,
        luck: np.random.Generator | None = None,
        chance: np.random.Generator | None = None,
        along: np.random.Generator | None = None,
    ) -> Observation:
        """Carry out a query in simulation.

        If the sensor reads on the way, the observation also holds those readings, before the one at the site.

        Parameters
        ----------
        query : Query
        position : (d,) array
            Where the vehicle is.
        time_s : float
            When it sets out.
        rng : numpy.random.Generator
            Draws the sensor's noise.
        luck : numpy.random.Generator, optional
            Draws the noise on the cost; None means no noise.
        chance : numpy.random.Generator, optional
            Draws the variables that the query leaves free; required if there are any.
        along : numpy.random.Generator, optional
            Draws the noise of readings on the way; None means that there are none.

        Raises
        ------
        InputError
            The site lies outside the domain, the query leaves a variable free that can't be free, or the
            world is live.
        """
        site = self._completed_site(query, chance)
        if not self.domain.contains(site[None])[0]:
            raise InputError(
                f"a query at {site.tolist()}", expected="a site inside the domain", where=self.name
            )
        cost, duration_s, travel_s = self._takes(query, position, time_s, luck)
        arrival_s = time_s + duration_s
        noise_variance = self.sensor.variance(site[None], query.level)
        value, channels = self._known_field.sampled(site, position, arrival_s)
        at_site = Observation(
            order=query.id or "",
            sites=site[None],
            values=self._unless_unreadable(site[None], self.sensor.read(value, noise_variance, rng)),
            noise_variances=noise_variance,
            times_s=np.array([arrival_s]),
            position=site,
            cost=cost,
            channels=channels or None,
        )
        return self._with_those_before(at_site, driven(query, position), time_s, travel_s, along)

    def go_home(
        self,
        order: GoHome,
        position: Array,
        time_s: float,
        luck: np.random.Generator | None = None,
        along: np.random.Generator | None = None,
    ) -> Observation:
        """Carry out a trip home in simulation; its readings, if any, are those on the way.

        Parameters are those of `evaluate`.
        """
        cost, duration_s, travel_s = self._takes(order, position, time_s, luck)
        home = replace(order.observed(cost=cost), time_s=time_s + duration_s)
        return self._with_those_before(home, driven(order, position), time_s, travel_s, along)

    def _with_those_before(
        self,
        observation: Observation,
        points: Array,
        time_s: float,
        travel_s: float,
        rng: np.random.Generator | None,
    ) -> Observation:
        """Return an observation with the readings on the way before its own, if the sensor takes any."""
        if self.sensor.along is None or rng is None:
            return observation
        before = self.read_on_the_way(points, time_s, travel_s, rng)
        if not len(before.sites):
            return observation
        own, channels = observation.channels or {}, before.channels
        missing = np.full(len(observation.values), np.nan), np.full(len(before.values), np.nan)
        return replace(
            observation,
            sites=np.concatenate([before.sites, observation.sites]),
            values=np.concatenate([before.values, observation.values]),
            noise_variances=np.concatenate([before.noise_variances, observation.noise_variances]),
            times_s=np.concatenate([time_s + before.seconds, observation.times_s]),
            channels={
                name: np.concatenate([channels.get(name, missing[1]), own.get(name, missing[0])])
                for name in sorted({*own, *channels})
            }
            or None,
        )

    def read_on_the_way(
        self, points: Array, time_s: float, travel_s: float, rng: np.random.Generator
    ) -> ReadOnTheWay:
        """Return what the sensor reads on the way through points (k, d); nothing unless it does.

        Parameters
        ----------
        points : (k, d) array
        time_s : float
            When the vehicle sets out.
        travel_s : float
            How long it really travels.
        rng : numpy.random.Generator
            Draws the noise.
        """
        if self.sensor.along is None:
            none = np.empty(0)
            return ReadOnTheWay(np.empty((0, self.domain.dimension)), none, none, none, {})
        sites, seconds = on_the_way(self.cost, self.sensor.along, points, seconds=travel_s, time_s=time_s)
        variances = self.sensor.variance(sites)
        values = self._values_on_the_way(sites, time_s + seconds) if len(sites) else np.empty(0)
        read = self._unless_unreadable(sites, self.sensor.read(values, variances, rng))
        return ReadOnTheWay(sites, read, variances, seconds, self._known_field.channels(sites))

    def _unless_unreadable(self, sites: Array, values: Array) -> Array:
        """Return the values (k,) read at sites (k, d); NaN in areas where readings fail."""
        for area in self.unreadable:
            values = np.where(area.holds(sites), np.nan, values)
        return values

    def _values_on_the_way(self, sites: Array, times_s: Array) -> Array:
        """Return the true values (k,) at sites (k, d), each at its own time (k,)."""
        field = self._known_field
        values = field.values(sites, float(times_s[-1]))
        if np.array_equal(values, field.values(sites, float(times_s[0]))):
            return values  # the field does not change meanwhile
        return np.concatenate(
            [field.values(site[None], float(at)) for site, at in zip(sites, times_s, strict=True)]
        )


class ReadOnTheWay(NamedTuple):
    """Readings on the way: `sites` (k, d), `values`, `noise_variances`, `seconds` since setting out (k,)."""

    sites: Array
    values: Array
    noise_variances: Array
    seconds: Array
    channels: dict[str, Array]


def driven(order: Order, position: Array) -> Array:
    """Return the points (k, d) that a vehicle at `position` (d,) passes to carry out an order.

    It does not find a route of its own: it takes straight legs through the points that it is sent.
    """
    assert order.site is not None
    return np.stack([position, *(order.route[1:] if len(order.route) else [order.site])])

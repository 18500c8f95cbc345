"""A world answers a query: domain, field, cost model, sensor and start."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fieldbo._numerics.arrays import Array, frozen_array
from fieldbo.costs.base import CostModel
from fieldbo.domain.domain import Domain
from fieldbo.domain.sensor import Sensor
from fieldbo.errors import InputError
from fieldbo.messages import Observation, Order, Query
from fieldbo.world.disturbances import Disturbances
from fieldbo.world.fields.base import Field


@dataclass(frozen=True)
class Quantity:
    """What is measured: its name, unit and, where it has one, CF standard name."""

    name: str = "value"
    unit: str = "1"
    standard_name: str | None = None

    @property
    def label(self) -> str:
        """Name and unit, as on a colour bar."""
        return f"{self.name} ({self.unit})" if self.unit not in ("", "1") else self.name


@dataclass(frozen=True, eq=False)
class World:
    """What is out there, and what a move costs.

    Parameters
    ----------
    name, title : str
    domain : Domain
    cost : CostModel
    cost_unit : str
        For example ``"s"``; a mission's battery is in the same one.
    sensor : Sensor
    quantity : Quantity
    field : Field, optional
        The truth; a live world has none.
    start : (d,) array, optional
        Where vehicles start unless a mission says otherwise; by default the first site, in a continuous
        domain its middle, or the site nearest to it.
    draw : int
        Which field, where the kind is random.
    conditions : Disturbances, optional
        What real costs differ by from declared ones, in simulation; None: nothing.
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
    conditions: Disturbances | None = None

    def __post_init__(self) -> None:
        start = self.start
        if start is None:
            start = self.domain.middle if self.domain.continuous else self.domain.sites[0]
        object.__setattr__(self, "start", frozen_array(start))
        self.cost.check(self.domain)
        if self.domain.control_sets and not self.cost.prices_controls:
            raise InputError(
                f"a {type(self.cost).__name__.lower()} cost over a domain with control sets",
                expected="costs that know what a query controls",
                where="cost.kind",
                fix='take kind = "subset" or "unit"',
            )
        if not (self.live or self.cost.known):
            raise InputError(
                "a [field] to simulate, and no costs",
                expected="the mean cost of each control set",
                where="cost.costs",
                fix='keep them from the agent, if it is to find them out: costs = "unknown" in [agent]',
            )
        self.sensor.check(self.domain)
        if self.conditions is not None:
            self.conditions.check(self.domain)
        object.__setattr__(self, "cost", self.cost.within(self.domain))
        if self.sensor.level_costs != self.cost.level_costs:
            object.__setattr__(self, "cost", self.cost.with_level_costs(self.sensor.level_costs))

    @property
    def live(self) -> bool:
        """Whether there is no truth to simulate or to score against."""
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
                f"the truth of {self.name}",
                expected="a world with a [field]; a live one has none",
                fix="carry the orders out with a vehicle, for example: fieldbo run MISSION --by-hand",
            )
        return self.field

    def takes(
        self, order: Order, position: Array, time_s: float, luck: np.random.Generator | None = None
    ) -> tuple[float, float]:
        """Return what an order really takes in simulation: its cost, and seconds.

        Parameters
        ----------
        order : Query or GoHome
            The way home says where home is.
        position : (d,) array
            Where the vehicle is.
        time_s : float
            When it sets out.
        luck : numpy.random.Generator, optional
            The noise on costs; without it there is none.
        """
        cost = self.cost
        assert order.site is not None
        a, b = position, order.site[None]
        travel = np.array([cost.travel(a, b, time_s)[0], cost.travel_s(a, b, time_s)[0]])
        whole = travel
        if isinstance(order, Query):
            controls, level = order.controls, order.level
            price = cost.to(a, b, controls, level, time_s)[0]
            price = price if luck is None else cost.realised(price, controls, luck)
            whole = np.array([price, cost.duration_s(a, b, controls, level, time_s)[0]])
        if self.conditions is not None:
            wind = self.conditions.way(cost, position, order.site, time_s) - 1.0
            whole = (whole + wind * travel) * (1.0 if luck is None else self.conditions.luck(luck))
        return float(whole[0]), float(whole[1])

    def _came_about(self, query: Query, chance: np.random.Generator | None) -> Array:
        """Return the point (d,) at which a query is carried out: what it leaves free is drawn."""
        if query.controls is None or bool(query.controls.all()):
            return query.site
        controls = self.domain.controls
        if controls is None or controls.index_of(query.controls) is None:
            free = [a.name for a, on in zip(self.domain.axes, query.controls, strict=True) if not on]
            raise InputError(
                f"a query that leaves {', '.join(free)} free",
                expected="one of the control sets: " + "; ".join(s.name for s in self.domain.control_sets)
                if self.domain.control_sets
                else "a query that sets all variables: the domain has no control sets",
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
    ) -> Observation:
        """Carry a query out in simulation.

        Parameters
        ----------
        query : Query
        position : (d,) array
            Where the vehicle is.
        time_s : float
            When it sets out.
        rng : numpy.random.Generator
            The sensor's noise.
        luck : numpy.random.Generator, optional
            The noise on costs, where there is some; without it there is none.
        chance : numpy.random.Generator, optional
            Draws the variables that the query leaves free; needed where it does.

        Raises
        ------
        InputError
            The site lies outside the domain, a variable is left free that can't be, or the world is live.
        """
        site = self._came_about(query, chance)
        if not self.domain.contains(site[None])[0]:
            raise InputError(
                f"a query at {site.tolist()}", expected="a site inside the domain", where=self.name
            )
        paid, took_s = self.takes(query, position, time_s, luck)
        arrived = time_s + took_s
        noise = self.sensor.variance(site[None], query.level)
        value, channels = self._known_field.sampled(site, position, arrived)
        return Observation(
            order=query.id or "",
            sites=site[None],
            values=value + np.sqrt(noise) * rng.standard_normal(),
            noise_variances=noise,
            times_s=np.array([arrived]),
            position=site,
            cost=paid,
            channels=channels or None,
        )

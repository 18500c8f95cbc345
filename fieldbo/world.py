"""A world answers a query: domain, field, cost model, sensor and start."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fieldbo.costs import CostModel
from fieldbo.domain import Array, Domain, frozen_array
from fieldbo.errors import InputError
from fieldbo.exchange import Observation, Query
from fieldbo.fields import Field
from fieldbo.sensors import Sensor


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
        domain its middle.
    draw : int
        Which field, where the kind is random.
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

    def __post_init__(self) -> None:
        start = self.start
        if start is None:
            low, high = self.domain.low, self.domain.high
            start = (low + high) / 2.0 if self.domain.continuous else self.domain.sites[0]
        object.__setattr__(self, "start", frozen_array(start))
        self.cost.check(self.domain)
        self.sensor.check(self.domain)
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
        if self.field is None:
            raise InputError(
                f"the truth of {self.name}",
                expected="a world with a [field]; a live one has none",
                mend="carry the orders out with a vehicle, for example: fieldbo run MISSION --by-hand",
            )
        return self.field.values(np.atleast_2d(np.asarray(sites, dtype=float)), time_s)

    def evaluate(self, query: Query, position: Array, time_s: float, rng: np.random.Generator) -> Observation:
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

        Raises
        ------
        InputError
            The site lies outside the domain, or the world is live.
        """
        site = query.site
        if not self.domain.contains(site[None])[0]:
            raise InputError(
                f"a query at {site.tolist()}", expected="a site inside the domain", where=self.name
            )
        arrived = time_s + float(
            self.cost.duration_s(position, site[None], query.controls, query.level, time_s)[0]
        )
        noise = self.sensor.variance(site[None], query.level)
        value = self.truth(site[None], arrived) + np.sqrt(noise) * rng.standard_normal()
        return Observation(
            order=query.id or "",
            sites=site[None],
            values=value,
            noise_variances=noise,
            times_s=np.array([arrived]),
            position=site,
            cost=float(self.cost.to(position, site[None], query.controls, query.level, time_s)[0]),
            channels=self.field.channels(site[None]) or None if self.field is not None else None,
        )

"""A price for each set of variables that can be controlled; the others are left to chance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.costs.base import CostModel, not_negative
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError


@dataclass(frozen=True)
class Subset(CostModel):
    """What it costs to control a set of variables for one sample; travel is free.

    Parameters
    ----------
    costs : tuple of float
        Mean cost of each of the domain's control sets, in their order. Left out, nobody knows them: a live
        cell's.
    noise_sds : tuple of float
        Simulation only: standard deviation of each set's real cost, normal, never below 0. By default none.

    Examples
    --------
    >>> from fieldbo.domain.distributions import Uniform
    >>> from fieldbo.domain.controls import Controls, ControlSet
    >>> from fieldbo.domain.axes import Axis
    >>> axes = [Axis("x", "", 0, 1), Axis("y", "", 0, 1)]
    >>> sets = tuple(ControlSet.of(names, axes, "control_sets") for names in (["x"], ["x", "y"]))
    >>> cell = Domain.box(axes, 8, controls=Controls(sets, (None, Uniform())))
    >>> cost = Subset(costs=(0.1, 1.0)).within(cell)
    >>> cost.to([0, 0], [[1, np.nan]], np.array([True, False])), cost.to([0, 0], [[1, 1]])
    (array([0.1]), array([1.]))
    """

    to_price_samples: ClassVar[str] = "give every control set a cost"

    costs: tuple[float, ...] = ()
    noise_sds: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for name in ("costs", "noise_sds"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
            not_negative("cost", **{f"{name}[{k}]": x for k, x in enumerate(getattr(self, name))})
        not_negative("cost", seconds_per_unit=self.seconds_per_unit)

    @property
    def known(self) -> bool:
        """Whether there are prices at all."""
        return bool(self.costs)

    @property
    def prices_controls(self) -> bool:
        """Yes: a query may leave variables free."""
        return True

    def of_set(self, controls: Mask | None) -> float:
        """Return the mean cost of controlling the variables (d,); None is all of them.

        Raises
        ------
        InputError
            They are no control set, or costs are not known.
        """
        return self.costs[self._number(controls)]

    def _number(self, controls: Mask | None) -> int:
        assert self._domain is not None
        assert self._domain.controls is not None
        number = self._domain.controls.index_of(controls)
        if number is None or not self.costs:
            what = (
                "all variables" if controls is None else "variables " + str(np.flatnonzero(controls).tolist())
            )
            raise InputError(
                f"the cost of setting {what}",
                expected="one of the control sets: " + "; ".join(s.name for s in self._domain.control_sets)
                if self.costs
                else "a world whose [cost] has costs",
                where="cost.costs",
            )
        return number

    def _travel(self, positions: Array, sites: Array) -> Array:
        return np.zeros((len(positions), len(sites)))

    def _sampling(self, sites: Array) -> Array:
        return np.full(len(sites), self.of_set(None))

    def _controlling(self, sites: Array, controls: Mask | None) -> Array:
        return np.full(len(sites), self.of_set(controls))

    def least_sampling_cost(self, sites: ArrayLike) -> float:
        """Return the mean cost of the cheapest set."""
        return min(self.costs, default=np.inf) + min(self.level_costs, default=0.0)

    def realised(self, price: float, controls: Mask | None, luck: np.random.Generator) -> float:
        """Return a real cost: normal about the price, never below 0."""
        sd = self.noise_sds[self._number(controls)] if self.noise_sds else 0.0
        return max(0.0, price + sd * float(luck.standard_normal()))

    def check(self, domain: Domain) -> None:
        """Raise an `InputError` unless there is a cost for each of the domain's control sets."""
        count = len(domain.control_sets)
        if not count:
            raise InputError(
                "costs of control sets over a domain without any",
                expected="control_sets in the domain",
                where="cost.kind",
                fix='add control_sets = [["x1"], ["x1", "x2"]] to [domain], or take another kind of cost',
            )
        if self.noise_sds and not self.costs:
            raise InputError(
                "noise of costs, and no costs",
                expected="the mean cost of each control set",
                where="cost.costs",
                fix="leave noise_sds out of a live cell, whose costs nobody knows",
            )
        for name, given in (("costs", self.costs), ("noise_sds", self.noise_sds)):
            if given and len(given) != count:
                raise InputError(
                    f"{len(given)} {name}",
                    expected=f"{count}, one for each control set: "
                    + "; ".join(s.name for s in domain.control_sets),
                    where=f"cost.{name}",
                )

"""A cost for each set of variables that can be controlled; the others are left to chance."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from pydantic import NonNegativeFloat

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.costs.base import CostModel
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError, counted
from fieldbo.validation import settings


@settings("cost")
class Subset(CostModel):
    """The cost of controlling a set of variables for one sample; travel is free.

    Examples
    --------
    >>> from fieldbo.domain import Axis, Controls, ControlSet, Uniform
    >>> axes = [Axis("x", "", 0, 1), Axis("y", "", 0, 1)]
    >>> sets = tuple(ControlSet.of(names, axes, "control_sets") for names in (["x"], ["x", "y"]))
    >>> cell = Domain.box(axes, 8, controls=Controls(sets, (None, Uniform())))
    >>> cost = Subset(costs=(0.1, 1.0)).within(cell)
    >>> cost.to([0, 0], [[1, np.nan]], np.array([True, False])), cost.to([0, 0], [[1, 1]])
    (array([0.1]), array([1.]))
    """

    to_price_samples: ClassVar[str] = "give every control set a cost"

    costs: tuple[NonNegativeFloat, ...] = ()
    """Mean cost of each of the domain's control sets, in their order. Omit it in a live cell if unknown."""
    noise_sds: tuple[NonNegativeFloat, ...] = ()
    """Standard deviation of each set's real cost, in simulation only: normal, cut off at 0. Default: none."""

    @property
    def known(self) -> bool:
        """Whether the costs are known."""
        return bool(self.costs)

    @property
    def prices_controls(self) -> bool:
        """True: a query may leave variables free."""
        return True

    def of_set(self, controls: Mask | None) -> float:
        """Return the mean cost of controlling the variables `controls` (d,); None means all.

        Raises
        ------
        InputError
            The variables are not one of the control sets, or the costs are unknown.
        """
        return self.costs[self._index(controls)]

    def _index(self, controls: Mask | None) -> int:
        """Return the index of the control set."""
        assert self._domain is not None
        assert self._domain.controls is not None
        index = self._domain.controls.index_of(controls)
        if index is None or not self.costs:
            which = "all variables" if controls is None else f"variables {np.flatnonzero(controls).tolist()}"
            sets = "; ".join(s.name for s in self._domain.control_sets)
            raise InputError(
                f"no cost is known for controlling {which}",
                expected=f"one of the control sets: {sets}" if self.costs else "costs in the world's [cost]",
                where="cost.costs",
            )
        return index

    def travel_between(self, starts: Array, ends: Array) -> Array:
        return np.zeros((len(starts), len(ends)))

    def sample_at(self, sites: Array) -> Array:
        return np.full(len(sites), self.of_set(None))

    def sample_with(self, sites: Array, controls: Mask | None) -> Array:
        return np.full(len(sites), self.of_set(controls))

    def least_sampling_cost(self, sites: ArrayLike) -> float:
        """Return the mean cost of the cheapest set."""
        return min(self.costs, default=np.inf) + min(self.level_costs, default=0.0)

    def draw_cost(self, price: float, controls: Mask | None, luck: np.random.Generator) -> float:
        """Return a real cost: normal around `price`, never below 0."""
        sd = self.noise_sds[self._index(controls)] if self.noise_sds else 0.0
        return max(0.0, price + sd * float(luck.standard_normal()))

    def check(self, domain: Domain) -> None:
        """Raise an `InputError` unless there is one cost for each of the domain's control sets."""
        count = len(domain.control_sets)
        if not count:
            raise InputError(
                "a subset cost needs control sets, but the domain has none",
                expected="control_sets in the domain",
                where="cost.kind",
                fix='add control_sets = [["x1"], ["x1", "x2"]] to [domain], or use another kind of cost',
            )
        if self.noise_sds and not self.costs:
            raise InputError(
                "noise_sds is set but costs is missing",
                expected="the mean cost of each control set",
                where="cost.costs",
                fix="delete noise_sds; it is for simulation, where the costs are known",
            )
        for name, values in (("costs", self.costs), ("noise_sds", self.noise_sds)):
            if values and len(values) != count:
                raise InputError(
                    f"{name} has {counted(len(values), 'number')} for {counted(count, 'control set')}",
                    expected=f"{count}, one per control set: "
                    + "; ".join(s.name for s in domain.control_sets),
                    where=f"cost.{name}",
                )

"""Costs of cells, where settings change and nothing travels: a chain of modules, or sets of variables.

A chain reruns every module from the first one whose settings changed. A set of controlled
variables has one price, and the others are left to chance.
"""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import NonNegativeFloat

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.costs.base import CostModel
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError, UnknownNameError, counted
from fieldbo.validation import settings


@settings("cost.modules")
class Module:
    """One stage of a chain."""

    name: str
    """Name of the module, different from all others."""
    axes: tuple[str | int, ...]
    """Its settings: names of the domain's axes, or their indices from 0."""
    cost: NonNegativeFloat
    """Cost of running it once."""


@settings("cost")
class Modular(CostModel):
    """Modules in a chain, each fed by the one before: changing a setting reruns every later stage.

    A move costs the sum over all modules from the first changed one to the last but one. The last module is
    charged with every sample (in Lin et al. 2021, eq. 6, it is left out). A setting counts as changed if it
    differs in any digit.

    Examples
    --------
    >>> denoise, segment = Module("denoise", (0, 1), 40.0), Module("segment", (2,), 10.0)
    >>> chain = Modular(modules=(denoise, segment, Module("clean", (3,), 1.0)))
    >>> chain.to([0.1, 0.2, 0.3, 0.4], [[0.1, 0.2, 0.3, 0.9], [0.1, 0.2, 0.5, 0.4], [0.1, 0.7, 0.3, 0.4]])
    array([ 1., 11., 51.])
    >>> chain.first_changed([0.1, 0.2, 0.3, 0.4], [[0.1, 0.2, 0.5, 0.4], [0.1, 0.2, 0.3, 0.4]])
    array([1, 2])
    """

    to_price_samples: ClassVar[str] = "give the last module a cost, with charge_last = true"

    modules: tuple[Module, ...] = ()
    """The modules, in the order in which they run. Each axis of the domain belongs to exactly one."""
    charge_last: bool = True
    """Whether to charge the last module with each sample; otherwise it is free."""

    def __post_init__(self) -> None:
        if not self.modules:
            raise InputError("the chain has no modules", expected="at least one module", where="cost.modules")
        for number, module in enumerate(self.modules):
            earlier = [other.name for other in self.modules[:number]]
            if not module.name.strip() or module.name in earlier:
                problem = "is used twice" if module.name.strip() else "is empty"
                raise InputError(
                    f"module name {module.name!r} {problem}",
                    expected="a different, non-empty name for each module",
                    where=f"cost.modules[{number}].name",
                )
            if not module.axes:
                raise InputError(
                    f"module {module.name!r} has no settings",
                    expected="at least one axis of the domain",
                    where=f"cost.modules[{number}].axes",
                )

    @cached_property
    def columns(self) -> tuple[tuple[int, ...], ...]:
        """The axis indices of each module; axis names are resolved once the cost is bound to a domain."""
        names = [] if self._domain is None else [a.name for a in self._domain.axes]
        return tuple(tuple(names.index(a) if isinstance(a, str) else a for a in m.axes) for m in self.modules)

    @cached_property
    def prices(self) -> Array:
        """The cost (M,) of a move by its first changed module, without the last module."""
        costs = np.array([m.cost for m in self.modules])
        costs[-1] = 0.0  # part of the sampling cost
        return np.cumsum(costs[::-1])[::-1]

    def first_changed(self, position: ArrayLike, sites: ArrayLike) -> NDArray[np.int64]:
        """Return the index of the first module whose settings differ from those at `position`.

        Parameters
        ----------
        position : (d,) array
        sites : (N, d) array

        Returns
        -------
        (N,) int array
            The last module's index if nothing changed.
        """
        start, ends = (np.atleast_2d(np.asarray(x, dtype=float)) for x in (position, sites))
        first: NDArray[np.int64] = self._first_changed(start, ends)[0]
        return first

    def _first_changed(self, starts: Array, ends: Array) -> NDArray[np.int64]:
        """Return the indices (P, N) of the first changed modules."""
        last = len(self.modules) - 1
        first = np.full((len(starts), len(ends)), last, dtype=np.int64)
        for number in range(last - 1, -1, -1):
            columns = list(self.columns[number])
            changed = (starts[:, None, columns] != ends[None, :, columns]).any(axis=2)
            first[changed] = number
        return first

    def travel_between(self, starts: Array, ends: Array) -> Array:
        return np.asarray(self.prices[self._first_changed(starts, ends)])

    def sample_at(self, sites: Array) -> Array:
        return np.full(len(sites), self.modules[-1].cost if self.charge_last else 0.0)

    def check(self, domain: Domain) -> None:
        """Raise an `InputError` unless each axis of the domain belongs to exactly one module."""
        names = [a.name for a in domain.axes]
        owner: dict[int, str] = {}
        for number, module in enumerate(self.modules):
            where = f"cost.modules[{number}].axes"
            for axis in module.axes:
                if isinstance(axis, str) and axis not in names:
                    raise UnknownNameError.of("axis", axis, names, where=where)
                column = names.index(axis) if isinstance(axis, str) else axis
                if not 0 <= column < len(names):
                    raise InputError(
                        f"there is no axis {axis}",
                        expected=" or ".join(map(str, range(len(names))))
                        if len(names) < 3
                        else f"0 to {len(names) - 1}",
                        where=where,
                    )
                if column in owner:
                    also = "twice" if owner[column] == module.name else f"and in module {module.name!r}"
                    raise InputError(
                        f"axis {names[column]!r} is in module {owner[column]!r} {also}",
                        expected="each axis in one module",
                        where=where,
                    )
                owner[column] = module.name
        if missing := [name for k, name in enumerate(names) if k not in owner]:
            raise InputError(
                f"no module has {', '.join(repr(m) for m in missing)}",
                expected="each axis of the domain in a module",
                where="cost.modules",
                fix="add it to the module that it is a setting of",
            )

    def within(self, domain: Domain) -> Modular:
        """Return this cost bound to a domain, whose axis names it resolves."""
        other = super().within(domain)
        other.__dict__.pop("columns", None)  # cached before the names were known
        return other


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

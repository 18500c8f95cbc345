"""A chain of modules: a sample reruns all of them from the first whose settings changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fieldbo._numerics.arrays import Array
from fieldbo.costs.base import CostModel, not_negative
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError, UnknownNameError


@dataclass(frozen=True)
class Module:
    """One stage of a chain.

    Parameters
    ----------
    name : str
    axes : tuple of str or int
        Its settings: names of the domain's axes, or their numbers from 0.
    cost : float
        What it costs to run it once.
    """

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    name: str
    axes: tuple[str | int, ...]
    cost: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "axes", tuple(self.axes))
        if not (np.isfinite(self.cost) and self.cost >= 0):
            raise InputError(
                f"module {self.name!r} costs {self.cost:g}",
                expected="a finite number of at least 0",
                where="cost.modules",
            )


@dataclass(frozen=True)
class Modular(CostModel):
    """Modules in a chain, each fed by the one before: what comes after a change runs anew.

    The cost of a move is that of all modules from the first changed one to the last but one, and the last
    one's for every sample (Lin et al. 2021, eq. 6, where the last is left out). A setting has changed where
    it differs by a single digit.

    Parameters
    ----------
    modules : tuple of Module
        In the order in which they run; together they hold every axis once.
    charge_last : bool
        Whether the last module is paid for with each sample; else it is free.

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
    charge_last: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "modules", tuple(Module(**m) if isinstance(m, Mapping) else m for m in self.modules)
        )
        not_negative("cost", seconds_per_unit=self.seconds_per_unit)
        if not self.modules:
            raise InputError("a chain without a module", expected="at least one", where="cost.modules")
        for number, one in enumerate(self.modules):
            if not one.name.strip() or one.name in [other.name for other in self.modules[:number]]:
                raise InputError(
                    f"the name {one.name!r} of a module",
                    expected="a name that is not empty, and another for each module",
                    where=f"cost.modules[{number}].name",
                )
            if not one.axes:
                raise InputError(
                    f"module {one.name!r} has no settings",
                    expected="at least one axis of the domain",
                    where=f"cost.modules[{number}].axes",
                )

    @cached_property
    def columns(self) -> tuple[tuple[int, ...], ...]:
        """The numbers of the axes of each module; names are known once the costs are within a domain."""
        names = [] if self._domain is None else [a.name for a in self._domain.axes]
        return tuple(tuple(names.index(a) if isinstance(a, str) else a for a in m.axes) for m in self.modules)

    @cached_property
    def prices(self) -> Array:
        """What a change costs (N,), by the first changed module; the last one's counts as sampling."""
        costs = np.array([m.cost for m in self.modules])
        costs[-1] = 0.0
        return np.cumsum(costs[::-1])[::-1]

    def first_changed(self, position: ArrayLike, sites: ArrayLike) -> NDArray[np.int64]:
        """Return the number (N,) of the first module with another setting than at `position` (d,).

        That of the last module where nothing changed.
        """
        start, ends = (np.atleast_2d(np.asarray(x, dtype=float)) for x in (position, sites))
        first: NDArray[np.int64] = self._first_changed(start, ends)[0]
        return first

    def _first_changed(self, positions: Array, sites: Array) -> NDArray[np.int64]:
        """Return the numbers (P, N) of the first changed modules."""
        last = len(self.modules) - 1
        first = np.full((len(positions), len(sites)), last, dtype=np.int64)
        for number in range(last - 1, -1, -1):
            own = list(self.columns[number])
            changed = (positions[:, None, own] != sites[None, :, own]).any(axis=2)
            first[changed] = number
        return first

    def _travel(self, positions: Array, sites: Array) -> Array:
        return np.asarray(self.prices[self._first_changed(positions, sites)])

    def _sampling(self, sites: Array) -> Array:
        return np.full(len(sites), self.modules[-1].cost if self.charge_last else 0.0)

    def check(self, domain: Domain) -> None:
        """Raise an `InputError` unless the modules hold each axis of the domain once."""
        names = [a.name for a in domain.axes]
        held: dict[int, str] = {}
        for number, one in enumerate(self.modules):
            where = f"cost.modules[{number}].axes"
            for axis in one.axes:
                if isinstance(axis, str) and axis not in names:
                    raise UnknownNameError.of("axis", axis, names, where=where)
                column = names.index(axis) if isinstance(axis, str) else axis
                if not 0 <= column < len(names):
                    raise InputError(f"axis {axis}", expected=f"0 to {len(names) - 1}", where=where)
                if column in held:
                    also = "twice" if held[column] == one.name else f"and in module {one.name!r}"
                    raise InputError(
                        f"axis {names[column]!r} is in module {held[column]!r} {also}",
                        expected="each axis in one module",
                        where=where,
                    )
                held[column] = one.name
        if missing := [name for k, name in enumerate(names) if k not in held]:
            raise InputError(
                f"no module has {', '.join(repr(m) for m in missing)}",
                expected="each axis of the domain in a module",
                where="cost.modules",
                fix="add it to the module that it is a setting of",
            )

    def within(self, domain: Domain) -> Modular:
        """Return the same costs, in which the axes' names are known."""
        other = super().within(domain)
        other.__dict__.pop("columns", None)  # names are known only now
        return other

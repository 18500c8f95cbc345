"""Sets of variables that a query can control, with the others left to chance.

A factory cell's *control sets* are the sets of variables that can be set at once; each has its own cost. The
remaining variables take random values from known distributions. Without control sets, every query sets all
variables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.domain.distributions import Distribution
from fieldbo.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from fieldbo.domain.axes import Axis


ALL = "all"
"""Name of the control set of all variables."""


@dataclass(frozen=True, eq=False)
class ControlSet:
    """A set of variables that can be controlled together.

    Parameters
    ----------
    name : str
        The names of its variables, or ``"all"``.
    controls : (d,) bool array
        Which variables are controlled.
    """

    name: str
    controls: Mask

    def __post_init__(self) -> None:
        mask = np.array(self.controls, dtype=bool)
        mask.setflags(write=False)
        object.__setattr__(self, "controls", mask)

    @classmethod
    def of(cls, names: Sequence[str], axes: Sequence[Axis], where: str) -> ControlSet:
        """Return the set of the named variables.

        Raises
        ------
        InputError
            There are no names, a name occurs twice, or a name is not an axis.
        """
        known = [a.name for a in axes]
        if not names:
            raise InputError(
                "a control set has no variables",
                expected=f"at least one of {', '.join(known)}",
                where=where,
            )
        for name in names:
            if name not in known:
                raise UnknownNameError.of("variable", name, known, where=where)
        if len(set(names)) < len(names):
            raise InputError(
                f"a control set repeats a variable: {', '.join(names)}",
                expected="each variable once",
                where=where,
            )
        mask = np.array([name in names for name in known])
        return cls(ALL if mask.all() else ", ".join(n for n in known if n in names), mask)

    def settings(self, axes: Sequence[Axis], site: Array) -> str:
        """Return the controlled variables and their values as text: ``x1 0.25, x3 2 m``."""
        variables = zip(axes, self.controls, site.tolist(), strict=True)
        return ", ".join(f"{a.name} {x:.4g} {a.unit}".rstrip() for a, on, x in variables if on)


@dataclass(frozen=True, eq=False)
class Controls:
    """The control sets of a factory cell, and the distributions of variables that are left free.

    Parameters
    ----------
    sets : tuple of ControlSet
        At least one, all different.
    distributions : tuple of d Distribution or None
        One per variable, for when it is left free; None if it never is.

    Raises
    ------
    InputError
        A set leaves out a variable that has no distribution, or one that reaches beyond its axis.

    Examples
    --------
    >>> from fieldbo.domain import Axis, TruncatedNormal
    >>> axes = [Axis("x", "", 0, 1), Axis("y", "", 0, 1)]
    >>> sets = tuple(ControlSet.of(names, axes, "control_sets") for names in (["x"], ["x", "y"]))
    >>> controls = Controls(sets, (None, TruncatedNormal(0.5, 0.02)))
    >>> controls.check(axes)
    >>> controls.index_of(None), controls.index_of(np.array([True, False]))
    (1, 0)
    """

    sets: tuple[ControlSet, ...]
    distributions: tuple[Distribution | None, ...]

    def check(self, axes: Sequence[Axis]) -> None:
        """Raise an `InputError` unless the control sets and distributions fit a domain's axes."""
        seen: set[bytes] = set()
        for number, control_set in enumerate(self.sets):
            where = f"domain.control_sets[{number}]"
            if control_set.controls.tobytes() in seen:
                raise InputError(
                    f"the control set {control_set.name!r} occurs twice",
                    expected="each set once",
                    where=where,
                )
            seen.add(control_set.controls.tobytes())
            for axis, on, distribution in zip(axes, control_set.controls, self.distributions, strict=True):
                if not on and distribution is None:
                    raise InputError(
                        f"the control set {control_set.name!r} leaves {axis.name} free, "
                        f"but {axis.name} has no distribution",
                        expected="a distribution for each variable that a set leaves out",
                        where=where,
                        fix=f'add free = {{ kind = "uniform" }} to axis {axis.name}, or add it to the set',
                    )
        for number, (axis, distribution) in enumerate(zip(axes, self.distributions, strict=True)):
            if distribution is not None:
                distribution.check_within(axis.low, axis.high, f"domain.axes[{number}].free")

    def index_of(self, controls: Mask | None) -> int | None:
        """Return the index of the set of exactly these variables (d,), where None means all; else None."""
        wanted = np.ones(len(self.distributions), dtype=bool) if controls is None else controls
        return next((k for k, s in enumerate(self.sets) if np.array_equal(s.controls, wanted)), None)

    def completed(self, site: Array, controls: Mask | None, rng: np.random.Generator) -> Array:
        """Return a point (d,) with the variables that `controls` (d,) leaves free drawn at random.

        One number is drawn for every variable, controlled or not. The value of a variable therefore does
        not depend on which others are controlled.
        """
        drawn = np.array([np.nan if d is None else d.draw(rng, 1)[0] for d in self.distributions])
        return site if controls is None else np.where(controls, site, drawn)

"""Variables that are set together, and those that are then left to chance.

A cell's *control sets* are the sets of variables that can be set at once; each has a price of its own. What
is not set takes a value by a known distribution. A cell without control sets has all of them set, always.
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
"""Name of the control set that leaves nothing to chance."""


@dataclass(frozen=True, eq=False)
class ControlSet:
    """Variables that are set together.

    Parameters
    ----------
    name : str
        The names of its variables, or ``"all"``.
    controls : (d,) bool array
        Which variables are set.
    """

    name: str
    controls: Mask

    def __post_init__(self) -> None:
        mask = np.array(self.controls, dtype=bool)
        mask.setflags(write=False)
        object.__setattr__(self, "controls", mask)

    @classmethod
    def of(cls, names: Sequence[str], axes: Sequence[Axis], where: str) -> ControlSet:
        """Return the set of the variables of those names.

        Raises
        ------
        InputError
            There is none, a name twice, or one that is no axis.
        """
        known = [a.name for a in axes]
        if not names:
            raise InputError(
                "a control set without a variable",
                expected=f"at least one of {', '.join(known)}",
                where=where,
            )
        for name in names:
            if name not in known:
                raise UnknownNameError.of("variable", name, known, where=where)
        if len(set(names)) < len(names):
            raise InputError(f"a control set of {', '.join(names)}", expected="each one once", where=where)
        mask = np.array([name in names for name in known])
        return cls(ALL if mask.all() else ", ".join(n for n in known if n in names), mask)

    def settings(self, axes: Sequence[Axis], site: Array) -> str:
        """Return what is to be set, in words: ``x1 0.25, x3 2 m``."""
        told = zip(axes, self.controls, site.tolist(), strict=True)
        return ", ".join(f"{a.name} {x:.4g} {a.unit}".rstrip() for a, on, x in told if on)


@dataclass(frozen=True, eq=False)
class Controls:
    """What can be set in a cell, and what becomes of the rest.

    Parameters
    ----------
    sets : tuple of ControlSet
        At least one; none twice.
    distributions : tuple of d Distribution or None
        Of each variable where it is left free; None: it never is.

    Raises
    ------
    InputError
        A variable that a set leaves out has no distribution, or one beyond the ends of its axis.

    Examples
    --------
    >>> from fieldbo.domain.distributions import TruncatedNormal
    >>> from fieldbo.domain.axes import Axis
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
        """Raise an `InputError` unless they fit a domain's axes."""
        seen: set[bytes] = set()
        for number, one in enumerate(self.sets):
            where = f"domain.control_sets[{number}]"
            if one.controls.tobytes() in seen:
                raise InputError(f"the control set {one.name!r} twice", expected="each set once", where=where)
            seen.add(one.controls.tobytes())
            for axis, on, law in zip(axes, one.controls, self.distributions, strict=True):
                if not on and law is None:
                    raise InputError(
                        f"the control set {one.name!r} leaves {axis.name} free: no distribution is told",
                        expected="a distribution of each variable that a set leaves out",
                        where=where,
                        fix=f'add free = {{ kind = "uniform" }} to axis {axis.name}, or put it into the set',
                    )
        for number, (axis, law) in enumerate(zip(axes, self.distributions, strict=True)):
            if law is not None:
                law.check_within(axis.low, axis.high, f"domain.axes[{number}].free")

    def index_of(self, controls: Mask | None) -> int | None:
        """Return the number of the set of those variables (d,), None meaning all; None if there is none."""
        wanted = np.ones(len(self.distributions), dtype=bool) if controls is None else controls
        return next((k for k, one in enumerate(self.sets) if np.array_equal(one.controls, wanted)), None)

    def completed(self, site: Array, controls: Mask | None, rng: np.random.Generator) -> Array:
        """Return a point (d,) with what `controls` (d,) leaves free drawn anew.

        One number is drawn for each variable, set or not, so that a variable's luck does not depend on what
        else is set.
        """
        drawn = np.array([np.nan if law is None else law.draw(rng, 1)[0] for law in self.distributions])
        return site if controls is None else np.where(controls, site, drawn)

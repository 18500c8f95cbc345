"""Textbook test functions of optimisation, whose best values are known.

Most are to be minimised. The two functions of twelve variables are negated so that they are at least 0, and
are to be maximised. Their constants come from:

- Branin: Dixon and Szegö (1978), *The global optimization problem: an introduction*, in Towards Global
  Optimisation 2.
- Ackley: Ackley (1987), *A Connectionist Machine for Genetic Hillclimbing*, in any number of dimensions, with
  the usual ``a = 20``, ``b = 0.2`` and ``c = 2 pi``.
- Hartmann-6: Hartman (1973), *Some experiments in global optimization*; constants as in Dixon and Szegö.
- Rastrigin: Rastrigin (1974), *Systems of extremal control*, in any number of dimensions after Mühlenbein,
  Schomisch and Born (1991, Parallel Computing 17).
- Griewank: Griewank (1981, J. Optimization Theory and Applications 34), *Generalized descent for global
  optimization*.
- Hartmann-12 and Ackley-12: the functions of six variables, with six more that have no effect, so that
  subsets of the variables also reach the optimum.

=======  ============================================
``x``    points, (n, d), in the axes' units
``f``    values, (n,)
``x*``   a point where ``f`` is best
=======  ============================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from fieldbo._numerics.arrays import Array, frozen_array
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError
from fieldbo.validation import settings
from fieldbo.world.fields.base import Field, FieldKind

Goal = Literal["maximise", "minimise"]


def branin(x: ArrayLike) -> Array:
    """Return the Branin function: two variables, three equal minima (Dixon and Szegö 1978).

    Parameters
    ----------
    x : (n, 2) array
        Usually in [-5, 10] x [0, 15].

    Returns
    -------
    (n,) array

    Raises
    ------
    InputError
        The points have the wrong number of coordinates.

    Examples
    --------
    >>> branin([[np.pi, 2.275], [0, 0]]).round(4)
    array([ 0.3979, 55.6021])
    """
    u, v = _points("branin", x, 2).T
    bent = v - 5.1 / (4 * np.pi**2) * u**2 + 5 / np.pi * u - 6
    return np.asarray(bent**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(u) + 10)


def ackley(x: ArrayLike) -> Array:
    """Return the Ackley function: a funnel with local minima on a lattice (Ackley 1987).

    Parameters
    ----------
    x : (n, d) array
        Usually in [-32.768, 32.768]^d.

    Returns
    -------
    (n,) array

    Examples
    --------
    >>> abs(ackley([[0, 0], [1, 1]])).round(4)
    array([0.    , 3.6254])
    """
    points = _points("ackley", x)
    funnel = -20 * np.exp(-0.2 * np.sqrt(np.mean(points**2, axis=1)))
    return np.asarray(funnel - np.exp(np.mean(np.cos(2 * np.pi * points), axis=1)) + 20 + np.e)


def hartmann6(x: ArrayLike) -> Array:
    """Return the Hartmann function of six variables: four wells, one the deepest (Hartman 1973).

    Parameters
    ----------
    x : (n, 6) array
        Usually in [0, 1]^6; all wells lie there.

    Returns
    -------
    (n,) array

    Raises
    ------
    InputError
        The points have the wrong number of coordinates.

    Examples
    --------
    >>> hartmann6([[0.2017, 0.15, 0.4769, 0.2753, 0.3117, 0.6573]]).round(3)
    array([-3.322])
    """
    gap = _points("hartmann6", x, 6)[:, None] - _WELLS
    return np.asarray(-np.exp(-np.sum(_STEEPNESS * gap**2, axis=2)) @ _DEPTHS)


def rastrigin(x: ArrayLike) -> Array:
    """Return the Rastrigin function: a bowl with local minima on a lattice (Rastrigin 1974).

    Parameters
    ----------
    x : (n, d) array
        Usually in [-5.12, 5.12]^d.

    Returns
    -------
    (n,) array

    Examples
    --------
    >>> rastrigin([[0, 0], [1, 0], [0.5, 0]]).round(4)
    array([ 0.  ,  1.  , 20.25])
    """
    points = _points("rastrigin", x)
    return np.asarray(np.sum(points**2 + 10 * (1 - np.cos(2 * np.pi * points)), axis=1))


def griewank(x: ArrayLike) -> Array:
    """Return the Griewank function: a wide bowl under a product of waves (Griewank 1981).

    Parameters
    ----------
    x : (n, d) array
        Usually in [-600, 600]^d.

    Returns
    -------
    (n,) array

    Examples
    --------
    >>> griewank([[0, 0], [np.pi, 0]]).round(4)
    array([0.    , 2.0025])
    """
    points = _points("griewank", x)
    waves = np.cos(points / np.sqrt(np.arange(1, points.shape[1] + 1)))
    return np.asarray(np.sum(points**2, axis=1) / 4000 - np.prod(waves, axis=1) + 1)


def hartmann12(x: ArrayLike) -> Array:
    """Return minus Hartmann-6 of the first six of twelve variables; the others have no effect.

    To be maximised.

    Parameters
    ----------
    x : (n, 12) array
        Usually in [0, 1]^12.

    Returns
    -------
    (n,) array
        At least 0.

    Raises
    ------
    InputError
        The points have the wrong number of coordinates.

    Examples
    --------
    >>> hartmann12([[0.2017, 0.15, 0.4769, 0.2753, 0.3117, 0.6573, 0, 0, 0, 0, 0, 0]]).round(3)
    array([3.322])
    """
    return -hartmann6(_points("hartmann12", x, 12)[:, :6])


def ackley12(x: ArrayLike) -> Array:
    """Return a negated Ackley-6 of the first six of twelve variables on [0, 1]; the others have no effect.

    It is 22.35, an upper bound there, minus the Ackley function of the first six variables, scaled from
    [0, 1] to [-32.768, 32.768]. To be maximised.

    Parameters
    ----------
    x : (n, 12) array
        In [0, 1]^12.

    Returns
    -------
    (n,) array
        At least 0.

    Raises
    ------
    InputError
        The points have the wrong number of coordinates.

    Examples
    --------
    >>> ackley12([[0.5] * 12, [0] * 12]).round(3)
    array([22.35,  0.78])
    """
    return _ACKLEY_SHIFT - ackley(_ACKLEY_END * (2 * _points("ackley12", x, 12)[:, :6] - 1))


_ACKLEY_END, _ACKLEY_SHIFT = 32.768, 22.35
_DEPTHS = frozen_array([1.0, 1.2, 3.0, 3.2])
_STEEPNESS = frozen_array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
_WELLS = frozen_array(
    [
        [0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886],
        [0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991],
        [0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650],
        [0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381],
    ]
)


def _points(name: str, x: ArrayLike, dimension: int | None = None) -> Array:
    points = np.atleast_2d(np.asarray(x, dtype=float))
    if dimension is not None and points.shape[1] != dimension:
        raise InputError(f"{name} got {points.shape[1]} variables", expected=f"{dimension} variables")
    return points


@dataclass(frozen=True, eq=False)
class _Entry:
    """A function, its best points (k, d), its number of variables (None means any) and its goal."""

    function: Callable[[ArrayLike], Array]
    best: Array
    variables: int | None = None
    goal: Goal = "minimise"


_ORIGIN = frozen_array([[0.0]])

# The bottom of the deepest well has no closed form; the gradient vanishes here.
_DEEPEST = frozen_array(
    [[0.2016895110, 0.1500106918, 0.4768739742, 0.2753324305, 0.3116516166, 0.6573005341]]
)

_FUNCTIONS = {
    "branin": _Entry(branin, frozen_array([[-np.pi, 12.275], [np.pi, 2.275], [3 * np.pi, 2.475]]), 2),
    "ackley": _Entry(ackley, _ORIGIN),
    "hartmann6": _Entry(hartmann6, _DEEPEST, 6),
    "rastrigin": _Entry(rastrigin, _ORIGIN),
    "griewank": _Entry(griewank, _ORIGIN),
    "hartmann12": _Entry(hartmann12, frozen_array([[*_DEEPEST[0], *[0.5] * 6]]), 12, "maximise"),
    "ackley12": _Entry(ackley12, frozen_array([[0.5]]), 12, "maximise"),
}


@dataclass(frozen=True, eq=False)
class Textbook(Field):
    """A textbook function over a domain.

    Attributes
    ----------
    domain : Domain
    function : Callable
        Takes (n, d) points and returns (n,) values.
    best : (k, d) array
        The best points, over all of space.
    goal : {"minimise", "maximise"}
        Whether the best value is the smallest or the largest.
    """

    domain: Domain
    function: Callable[[ArrayLike], Array] = field(repr=False)
    best: Array = field(repr=False)
    goal: Goal = "minimise"

    def values(self, sites: Array, time_s: float = 0.0) -> Array:
        """Return the values (N,) at `sites` (N, d)."""
        return self.function(sites)

    def optimum(self, goal: Goal) -> Array | None:
        """Return a best point (d,) inside the domain; None if there is none, or for the other goal."""
        inside = self.best[self.domain.contains(self.best)]
        return inside[0] if goal == self.goal and len(inside) else None


@settings("field")
class Function(FieldKind):
    """A textbook test function of the axes' coordinates; the same for every draw.

    Minimise all of them except ``hartmann12`` and ``ackley12``, which are to be maximised.

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> box = Domain.box([Axis("x", "", -5, 10), Axis("y", "", 0, 15)], 64)
    >>> field = Function("branin").make(box)
    >>> field.optimum("minimise").round(3)
    array([-3.142, 12.275])
    """

    name: Literal["branin", "ackley", "hartmann6", "rastrigin", "griewank", "hartmann12", "ackley12"]
    """Which function."""

    def make(self, domain: Domain, draw: int = 0, folder: Path | None = None) -> Textbook:
        """Return the function over a domain with one axis per variable."""
        entry = _FUNCTIONS[self.name]
        d = domain.dimension
        if entry.variables not in (None, d):
            raise InputError(
                f"{self.name} over {d} axes", expected=f"{entry.variables} axes", where="field.name"
            )
        # A single coordinate stands for all of them if they are equal.
        best = np.broadcast_to(entry.best, (len(entry.best), d))
        return Textbook(domain, entry.function, frozen_array(best), entry.goal)

"""Textbook test functions of optimisation, whose best values are known.

Most are to be minimised; the two of twelve variables, turned over so that they are at least 0, are to be
maximised. Where their constants come from:

- Branin: Dixon and Szegö (1978), *The global optimization problem: an introduction*, in Towards Global
  Optimisation 2.
- Ackley: Ackley (1987), *A Connectionist Machine for Genetic Hillclimbing*, in any number of dimensions, with
  the usual ``a = 20``, ``b = 0.2`` and ``c = 2 pi``.
- Hartmann-6: Hartman (1973), *Some experiments in global optimization*; constants as in Dixon and Szegö.
- Rastrigin: Rastrigin (1974), *Systems of extremal control*, in any number of dimensions as Mühlenbein,
  Schomisch and Born (1991, Parallel Computing 17) have it.
- Griewank: Griewank (1981, J. Optimization Theory and Applications 34), *Generalized descent for global
  optimization*.
- Hartmann-12 and Ackley-12: the functions of six variables and six more that change nothing, so that
  subsets of the variables hold the optimum too.

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
        The points have another number of coordinates.

    Examples
    --------
    >>> branin([[np.pi, 2.275], [0, 0]]).round(4)
    array([ 0.3979, 55.6021])
    """
    u, v = _points("branin", x, 2).T
    bent = v - 5.1 / (4 * np.pi**2) * u**2 + 5 / np.pi * u - 6
    return np.asarray(bent**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(u) + 10)


def ackley(x: ArrayLike) -> Array:
    """Return the Ackley function: a funnel with a minimum in every cell of a lattice (Ackley 1987).

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
        The points have another number of coordinates.

    Examples
    --------
    >>> hartmann6([[0.2017, 0.15, 0.4769, 0.2753, 0.3117, 0.6573]]).round(3)
    array([-3.322])
    """
    gap = _points("hartmann6", x, 6)[:, None] - _WELLS
    return np.asarray(-np.exp(-np.sum(_STEEPNESS * gap**2, axis=2)) @ _DEPTHS)


def rastrigin(x: ArrayLike) -> Array:
    """Return the Rastrigin function: a bowl with a minimum in every cell of a lattice (Rastrigin 1974).

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
    """Return minus Hartmann-6 of the first six of twelve variables, to be maximised; the others are idle.

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
        The points have another number of coordinates.

    Examples
    --------
    >>> hartmann12([[0.2017, 0.15, 0.4769, 0.2753, 0.3117, 0.6573, 0, 0, 0, 0, 0, 0]]).round(3)
    array([3.322])
    """
    return -hartmann6(_points("hartmann12", x, 12)[:, :6])


def ackley12(x: ArrayLike) -> Array:
    """Return Ackley-6 turned over, of the first six of twelve variables on [0, 1]; the others are idle.

    It is 22.35, which Ackley's function does not reach there, less the function of the first six variables
    taken from [0, 1] to [-32.768, 32.768]; to be maximised.

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
        The points have another number of coordinates.

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
        raise InputError(f"{name} of {points.shape[1]} variables", expected=f"{dimension} variables")
    return points


@dataclass(frozen=True, eq=False)
class _Told:
    """What is known: where a function is best (k, d), for which goal, of how many variables (None: any)."""

    function: Callable[[ArrayLike], Array]
    best: Array
    variables: int | None = None
    goal: Goal = "minimise"


_ORIGIN = frozen_array([[0.0]])

# the slopes vanish at the deepest well, whose bottom has no closed form
_DEEPEST = frozen_array(
    [[0.2016895110, 0.1500106918, 0.4768739742, 0.2753324305, 0.3116516166, 0.6573005341]]
)

_FUNCTIONS = {
    "branin": _Told(branin, frozen_array([[-np.pi, 12.275], [np.pi, 2.275], [3 * np.pi, 2.475]]), 2),
    "ackley": _Told(ackley, _ORIGIN),
    "hartmann6": _Told(hartmann6, _DEEPEST, 6),
    "rastrigin": _Told(rastrigin, _ORIGIN),
    "griewank": _Told(griewank, _ORIGIN),
    "hartmann12": _Told(hartmann12, frozen_array([[*_DEEPEST[0], *[0.5] * 6]]), 12, "maximise"),
    "ackley12": _Told(ackley12, frozen_array([[0.5]]), 12, "maximise"),
}


@dataclass(frozen=True, eq=False)
class Textbook(Field):
    """A textbook's function over a domain.

    Attributes
    ----------
    domain : Domain
    function : Callable
        Of (n, d) points; returns (n,) values.
    best : (k, d) array
        Where it is best, over all of space.
    goal : {"minimise", "maximise"}
        Which that means: where it is least, or where it is largest.
    """

    domain: Domain
    function: Callable[[ArrayLike], Array] = field(repr=False)
    best: Array = field(repr=False)
    goal: Goal = "minimise"

    def values(self, sites: Array, time_s: float = 0.0) -> Array:
        """Return the values (N,) at `sites` (N, d)."""
        return self.function(sites)

    def optimum(self, goal: Goal) -> Array | None:
        """Return a point (d,) where it is best, if that is known for this goal and the domain holds one."""
        inside = self.best[self.domain.contains(self.best)]
        return inside[0] if goal == self.goal and len(inside) else None


@dataclass(frozen=True)
class Function(FieldKind):
    """A textbook test function of the axes' coordinates; the same for every draw.

    All are to be minimised, but ``hartmann12`` and ``ackley12`` maximised.

    Parameters
    ----------
    name : {"branin", "ackley", "hartmann6", "rastrigin", "griewank", "hartmann12", "ackley12"}

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> box = Domain.box([Axis("x", "", -5, 10), Axis("y", "", 0, 15)], 64)
    >>> field = Function("branin").realise(box)
    >>> field.optimum("minimise").round(3)
    array([-3.142, 12.275])
    """

    name: Literal["branin", "ackley", "hartmann6", "rastrigin", "griewank", "hartmann12", "ackley12"]

    def realise(self, domain: Domain, draw: int = 0, folder: Path | None = None) -> Textbook:
        """Return the function over a domain of as many axes as it has variables."""
        told = _FUNCTIONS[self.name]
        d = domain.dimension
        if told.variables not in (None, d):
            raise InputError(
                f"{self.name} over {d} axes", expected=f"{told.variables} axes", where="field.name"
            )
        # one coordinate stands for all of them where they are alike
        best = np.broadcast_to(told.best, (len(told.best), d))
        return Textbook(domain, told.function, frozen_array(best), told.goal)

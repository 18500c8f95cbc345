"""Textbook test functions of optimisation, whose least values are known.

All are to be minimised. Where their constants come from:

- Branin: Dixon and Szegö (1978), *The global optimization problem: an introduction*, in Towards Global
  Optimisation 2.
- Ackley: Ackley (1987), *A Connectionist Machine for Genetic Hillclimbing*, in any number of dimensions, with
  the usual ``a = 20``, ``b = 0.2`` and ``c = 2 pi``.
- Hartmann-6: Hartman (1973), *Some experiments in global optimization*; constants as in Dixon and Szegö.

=======  ============================================
``x``    points, (n, d), in the axes' units
``f``    values, (n,)
``x*``   a point where ``f`` is least
=======  ============================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from fieldbo.domain import Array, Domain, frozen_array
from fieldbo.errors import InputError
from fieldbo.fields.base import Field, FieldKind


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
    """What is known of a function: where it is least (k, d), and how many variables it takes (None: any)."""

    function: Callable[[ArrayLike], Array]
    minimisers: Array
    variables: int | None


_FUNCTIONS = {
    "branin": _Told(
        branin, frozen_array([[-np.pi, 12.275], [np.pi, 2.275], [3 * np.pi, 2.475]]), variables=2
    ),
    "ackley": _Told(ackley, frozen_array([[0.0]]), variables=None),
    # the slopes vanish at the deepest well, whose bottom has no closed form
    "hartmann6": _Told(
        hartmann6,
        frozen_array([[0.2016895110, 0.1500106918, 0.4768739742, 0.2753324305, 0.3116516166, 0.6573005341]]),
        variables=6,
    ),
}


@dataclass(frozen=True, eq=False)
class Textbook(Field):
    """A textbook's function over a domain.

    Attributes
    ----------
    domain : Domain
    function : Callable
        Of (n, d) points; returns (n,) values.
    minimisers : (k, d) array
        Where it is least, over all of space.
    """

    domain: Domain
    function: Callable[[ArrayLike], Array] = field(repr=False)
    minimisers: Array = field(repr=False)

    def values(self, sites: Array, time_s: float = 0.0) -> Array:
        """Return the values (N,) at `sites` (N, d)."""
        return self.function(sites)

    def optimum(self, goal: Literal["maximise", "minimise"]) -> Array | None:
        """Return a point (d,) where it is least, if the domain holds one."""
        inside = self.minimisers[self.domain.contains(self.minimisers)]
        return inside[0] if goal == "minimise" and len(inside) else None


@dataclass(frozen=True)
class Function(FieldKind):
    """A textbook test function of the axes' coordinates, to be minimised; the same for every draw.

    Parameters
    ----------
    name : {"branin", "ackley", "hartmann6"}

    Examples
    --------
    >>> from fieldbo.domain import Axis
    >>> box = Domain.box([Axis("x", "", -5, 10), Axis("y", "", 0, 15)], 64)
    >>> field = Function("branin").realise(box)
    >>> field.optimum("minimise").round(3)
    array([-3.142, 12.275])
    """

    name: Literal["branin", "ackley", "hartmann6"]

    def realise(self, domain: Domain, draw: int = 0, folder: Path | None = None) -> Textbook:
        """Return the function over a domain of as many axes as it has variables."""
        told = _FUNCTIONS[self.name]
        d = domain.dimension
        if told.variables not in (None, d):
            raise InputError(
                f"{self.name} over {d} axes", expected=f"{told.variables} axes", where="field.name"
            )
        # one coordinate stands for all of them where the number of variables is free
        minimisers = np.broadcast_to(told.minimisers, (len(told.minimisers), d))
        return Textbook(domain, told.function, frozen_array(minimisers))

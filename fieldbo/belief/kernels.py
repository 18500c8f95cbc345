"""Covariance functions.

====================  =======================================================================
``r``                 distance in length scales, ``r^2 = sum_j (a_j - b_j)^2 / l_j^2``
``l``                 length scales, (d,), in the axes' units
``v``                 variance, k(x, x)
``theta``             hyperparameters as a vector of natural logs: ``log l_1 ... log l_d, log v``
====================  =======================================================================

A new stationary kernel is one subclass of :class:`Stationary` with two formulas.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fieldbo._numerics.arrays import Array, frozen_array
from fieldbo.errors import InputError, UnknownNameError

Indices = NDArray[np.intp]

Pullback = Callable[[Array], Array]
"""From weights (m,) of m covariances ``k_m`` to ``sum_m weights_m dk_m / dtheta``, (p,)."""

_Covariances = tuple[Array, Pullback]

OfPairs = Callable[[Array], _Covariances]
"""From theta (p,) to the covariances (m,) of fixed pairs of points, a new array, and their pullback."""

Slopes = Callable[[Array], Array]
"""From weights (n, m) of covariances ``k(a_i, b_j)`` to ``sum_j weights_ij dk(a_i, b_j) / da_i``, (n, d)."""


class Kernel(ABC):
    """A covariance function of two points; kernels add and multiply."""

    @abstractmethod
    def __call__(self, a: Array, b: Array) -> Array:
        """Return the covariances (n, m) between points `a` (n, d) and `b` (m, d)."""

    @abstractmethod
    def diagonal(self, a: Array) -> Array:
        """Return the variances (n,) at points `a` (n, d)."""

    @abstractmethod
    def with_slopes(self, a: Array, b: Array) -> tuple[Array, Slopes]:
        """Return the covariances (n, m) between `a` (n, d) and `b` (m, d), and their derivatives by `a`.

        The derivatives come as a function that sums them over `b`, which avoids an n x m x d array.
        """

    @property
    def dimension(self) -> int | None:
        """Number of coordinates of a point, d; None for any number."""
        return None

    def between(self, candidates: Array, rows: Indices, columns: Indices) -> Array:
        """Return the covariances (R, C) between the candidates (N, d) in `rows` (R,) and in `columns` (C,).

        Decisions ask for them, again and again: a kernel may keep those between all candidates.
        """
        return self(candidates[rows], candidates[columns])

    def process_variance(self, a: Array) -> Array:
        """Return the variances (n,) at points `a` (n, d) about the process's level, if that is unknown."""
        return self.diagonal(a)

    def diagonal_slopes(self, a: Array) -> Array:
        """Return the derivatives (n, d) of the variances at points `a` (n, d); by default 0."""
        return np.zeros_like(a)

    @property
    @abstractmethod
    def theta(self) -> Array:
        """Natural logs of the hyperparameters, (p,)."""

    @abstractmethod
    def with_theta(self, theta: Array) -> Kernel:
        """Return the same kernel with other hyperparameters (p,)."""

    @abstractmethod
    def of_pairs(self, sites: Array, rows: Indices, columns: Indices) -> OfPairs:
        """Return the covariances of m pairs of points as a function of theta.

        Parameters
        ----------
        sites : (n, d) array
        rows, columns : (m,) int arrays
            Indices of the two sites of each pair.
        """

    def __add__(self, other: Kernel) -> Kernel:
        return Sum(self, other)

    def __mul__(self, other: Kernel) -> Kernel:
        return Product(self, other)


def check_hyperparameters(length_scales: Array, variance: float) -> None:
    """Raise an `InputError` unless length scales and variance are finite numbers above 0."""
    if not (0 < variance < np.inf and length_scales.min() > 0 and length_scales.max() < np.inf):
        raise InputError(
            f"a length scale or variance is not above 0: {length_scales.tolist()}, {variance}",
            expected="finite numbers above 0",
        )


@dataclass(frozen=True, eq=False)
class Stationary(Kernel):
    """A kernel that depends on the scaled distance r alone (automatic relevance determination).

    Parameters
    ----------
    length_scales : (d,) array
        One per axis, in the axis' unit; above 0.
    variance : float
        k(x, x), in the squared unit of the values; above 0.

    Raises
    ------
    InputError
        A length scale or the variance is not a finite number above 0.
    """

    length_scales: Array
    variance: float = 1.0
    name: ClassVar[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "length_scales", frozen_array(np.atleast_1d(self.length_scales)))
        check_hyperparameters(self.length_scales, self.variance)

    @abstractmethod
    def _shape(self, r2: Array) -> tuple[Array, Array]:
        """Return the correlation at squared distance `r2`, and -2 times its derivative by r^2.

        `r2` may be overwritten.
        """

    @property
    def dimension(self) -> int:
        return len(self.length_scales)

    def _squared_distance(self, a: Array, b: Array) -> Array:
        from scipy.spatial.distance import cdist

        return cdist(a / self.length_scales, b / self.length_scales, "sqeuclidean")

    def __call__(self, a: Array, b: Array) -> Array:
        correlation, _ = self._shape(self._squared_distance(a, b))
        correlation *= self.variance
        return correlation

    def diagonal(self, a: Array) -> Array:
        return np.full(len(a), self.variance)

    def with_slopes(self, a: Array, b: Array) -> tuple[Array, Slopes]:
        correlation, slope = self._shape(self._squared_distance(a, b))

        def slopes(weights: Array) -> Array:
            # dk/da_i = -v slope(r^2) (a_i - b_j) / l^2; centred, as differences lose digits far from 0
            by_pair, centre = weights * slope, b.mean(axis=0)
            there, here = by_pair @ (b - centre), by_pair.sum(axis=1)[:, None] * (a - centre)
            return np.asarray(self.variance * (there - here) / self.length_scales**2)

        return self.variance * correlation, slopes

    @property
    def theta(self) -> Array:
        return np.asarray(np.log(np.append(self.length_scales, self.variance)))

    def with_theta(self, theta: Array) -> Self:
        return type(self)(np.exp(theta[:-1]), float(np.exp(theta[-1])))

    def of_pairs(self, sites: Array, rows: Indices, columns: Indices) -> OfPairs:
        squares = np.stack([(x[rows] - x[columns]) ** 2 for x in sites.T])

        def of(theta: Array) -> tuple[Array, Pullback]:
            scales = np.exp(theta)
            precisions, variance = scales[:-1] ** -2, float(scales[-1])
            correlation, slope = self._shape(precisions @ squares)

            def pullback(weights: Array) -> Array:
                # dk/dlog l_j = v slope(r^2) (a_j - b_j)^2 / l_j^2
                by_scale = precisions * (squares @ (weights * slope))
                return variance * np.append(by_scale, weights @ correlation)

            return variance * correlation, pullback

        return of


class SquaredExponential(Stationary):
    """``v exp(-r^2 / 2)``.

    Examples
    --------
    >>> k = SquaredExponential([2.0], variance=4.0)
    >>> k(np.array([[0.0]]), np.array([[0.0], [2.0]])).round(4)
    array([[4.    , 2.4261]])
    """

    name = "se"

    def _shape(self, r2: Array) -> tuple[Array, Array]:
        e = np.exp(-0.5 * r2)
        return e, e


class Matern32(Stationary):
    """``v (1 + sqrt(3) r) exp(-sqrt(3) r)``."""

    name = "matern32"

    def _shape(self, r2: Array) -> tuple[Array, Array]:
        s = np.sqrt(3.0 * r2)
        e = np.exp(-s)
        return (1.0 + s) * e, 3.0 * e


class Matern52(Stationary):
    """``v (1 + sqrt(5) r + 5 r^2 / 3) exp(-sqrt(5) r)``."""

    name = "matern52"

    def _shape(self, r2: Array) -> tuple[Array, Array]:
        # Without temporary arrays: a third of the time for large ones.
        s = np.multiply(r2, 5.0, out=r2)
        np.sqrt(s, out=s)
        e = np.negative(s)
        np.exp(e, out=e)
        linear = 1.0 + s
        linear *= e
        s *= s
        s *= e
        s /= 3.0
        s += linear
        linear *= 5.0 / 3.0
        return s, linear


@dataclass(frozen=True, eq=False)
class Sum(Kernel):
    """The sum of two kernels; theta is the first's followed by the second's."""

    first: Kernel
    second: Kernel

    @property
    def dimension(self) -> int | None:
        return self.first.dimension or self.second.dimension

    def __call__(self, a: Array, b: Array) -> Array:
        return self.first(a, b) + self.second(a, b)

    def diagonal(self, a: Array) -> Array:
        return self.first.diagonal(a) + self.second.diagonal(a)

    def with_slopes(self, a: Array, b: Array) -> tuple[Array, Slopes]:
        (first, of_first), (second, of_second) = self.first.with_slopes(a, b), self.second.with_slopes(a, b)
        return first + second, lambda weights: of_first(weights) + of_second(weights)

    @property
    def theta(self) -> Array:
        return np.concatenate([self.first.theta, self.second.theta])

    def with_theta(self, theta: Array) -> Kernel:
        cut = len(self.first.theta)
        return type(self)(self.first.with_theta(theta[:cut]), self.second.with_theta(theta[cut:]))

    def of_pairs(self, sites: Array, rows: Indices, columns: Indices) -> OfPairs:
        of_first = self.first.of_pairs(sites, rows, columns)
        of_second = self.second.of_pairs(sites, rows, columns)
        cut = len(self.first.theta)
        return lambda theta: self._combined(of_first(theta[:cut]), of_second(theta[cut:]))

    @staticmethod
    def _combined(of_first: _Covariances, of_second: _Covariances) -> _Covariances:
        """Return the covariances of pairs and their pullback, given those of both kernels."""
        (first, by_first), (second, by_second) = of_first, of_second
        return first + second, lambda weights: np.concatenate([by_first(weights), by_second(weights)])


@dataclass(frozen=True, eq=False)
class Product(Sum):
    """The product of two kernels; theta is the first's followed by the second's."""

    def __call__(self, a: Array, b: Array) -> Array:
        return self.first(a, b) * self.second(a, b)

    def diagonal(self, a: Array) -> Array:
        return self.first.diagonal(a) * self.second.diagonal(a)

    def with_slopes(self, a: Array, b: Array) -> tuple[Array, Slopes]:
        (first, of_first), (second, of_second) = self.first.with_slopes(a, b), self.second.with_slopes(a, b)
        return first * second, lambda weights: of_first(weights * second) + of_second(weights * first)

    @staticmethod
    def _combined(of_first: _Covariances, of_second: _Covariances) -> _Covariances:
        (first, by_first), (second, by_second) = of_first, of_second
        return first * second, lambda weights: np.concatenate(
            [by_first(weights * second), by_second(weights * first)]
        )


KERNELS: dict[str, type[Stationary]] = {k.name: k for k in (SquaredExponential, Matern32, Matern52)}


def kernel(name: str, length_scales: ArrayLike, variance: float = 1.0) -> Stationary:
    """Return the stationary kernel called `name`.

    Parameters
    ----------
    name : {"se", "matern32", "matern52"}
    length_scales : (d,) array
    variance : float

    Raises
    ------
    UnknownNameError
        `name` is not a kernel.
    """
    if name not in KERNELS:
        raise UnknownNameError.of("kernel", name, KERNELS)
    return KERNELS[name](np.asarray(length_scales, dtype=float), variance)

"""Sets of variables that a query can control, with the others left to chance, and their distributions.

A factory cell's *control sets* are the sets of variables that can be set at once; each has its own cost. The
remaining variables take random values from known distributions, over which quasi-random points average.
Without control sets, every query sets all variables.

=================  =======================================================================================
``m``, ``v``       mean and variance of the truncated normal distribution
``c``, ``s``       mean and standard deviation of the normal distribution before truncation
``u``              probabilities, from 0 to 1
``x``              values of a variable, in the axis' unit
=================  =======================================================================================
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count, islice
from math import isqrt
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from fieldbo.domain.axes import Axis


_REACH = 40.0  # widths around the peak that hold all but exp(-40) of the distribution
_WIDEST = 1000.0  # s, in extents; there the distribution is flat, or exponential, to seven digits


class Distribution(ABC):
    """The known distribution, between two ends, of a variable that is left to chance.

    Attributes
    ----------
    low, high : float
        Smallest and largest value, in the axis' unit.
    """

    low: float
    high: float

    @abstractmethod
    def quantile(self, u: ArrayLike) -> Array:
        """Return the quantiles at probabilities `u`, with the shape of `u`.

        Raises
        ------
        InputError
            A probability is not between 0 and 1.
        """

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        """Return `n` independent draws (n,); each uses exactly one uniform random number."""
        return self.quantile(rng.random(n))

    def check_within(self, low: float, high: float, where: str) -> None:
        """Raise an `InputError`, with the place `where`, unless all values lie from `low` to `high`."""
        if not (low <= self.low and self.high <= high):
            raise InputError(
                f"a variable left free takes values from {self.low:g} to {self.high:g}",
                expected=f"values on its axis, from {low:g} to {high:g}",
                where=where,
            )


@dataclass(frozen=True)
class Uniform(Distribution):
    """All values between two ends are equally likely.

    Parameters
    ----------
    low, high : float

    Raises
    ------
    InputError
        The ends are not finite, or `low` is not below `high`.

    Examples
    --------
    >>> Uniform(2, 4).quantile([0, 0.25, 1])
    array([2. , 2.5, 4. ])
    """

    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        _check_ends(self.low, self.high)

    def quantile(self, u: ArrayLike) -> Array:
        probabilities = _probabilities(u)
        return self.low * (1.0 - probabilities) + self.high * probabilities


@dataclass(frozen=True)
class TruncatedNormal(Distribution):
    """A normal distribution cut off at two ends, given by its mean and variance after the truncation.

    Parameters
    ----------
    mean : float
        Mean after the truncation, between the ends.
    variance : float
        Variance after the truncation. It must be below that of the exponential distribution with the same
        mean between the ends; for a mean in the middle, that is the uniform distribution, with a twelfth of
        the squared extent.
    low, high : float

    Attributes
    ----------
    centre, scale : float
        Mean and standard deviation of the normal distribution before the truncation.

    Raises
    ------
    InputError
        No truncated normal distribution between these ends has that mean and variance.

    Examples
    --------
    >>> free = TruncatedNormal(0.5, 0.02)
    >>> round(free.scale, 6), free.quantile([0, 0.01, 0.5]).round(6)
    (0.141821, array([0.      , 0.171167, 0.5     ]))
    """

    mean: float
    variance: float
    low: float = 0.0
    high: float = 1.0
    centre: float = field(init=False, repr=False, compare=False)
    scale: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_ends(self.low, self.high)
        if not self.low < self.mean < self.high:
            raise InputError(
                f"mean = {self.mean:g}",
                expected=f"a number above {self.low:g} and below {self.high:g}",
                where="mean",
            )
        if not (np.isfinite(self.variance) and self.variance > 0):
            raise InputError(
                f"variance = {self.variance:g}", expected="a finite number above 0", where="variance"
            )
        extent = self.high - self.low
        centre, scale = _before_truncation((self.mean - self.low) / extent, self.variance / extent**2, extent)
        object.__setattr__(self, "centre", self.low + extent * centre)
        object.__setattr__(self, "scale", extent * scale)

    def quantile(self, u: ArrayLike) -> Array:
        from scipy.special import log_ndtr, ndtri_exp

        probabilities = _probabilities(u)
        low, high = (self.low - self.centre) / self.scale, (self.high - self.centre) / self.scale
        # Only the lower tail has full precision, so mirror a distribution that lies in the upper one.
        mirrored = low > 0
        if mirrored:
            low, high, probabilities = -high, -low, 1.0 - probabilities
        with np.errstate(divide="ignore"):
            log_p = np.logaddexp(
                np.log1p(-probabilities) + log_ndtr(low), np.log(probabilities) + log_ndtr(high)
            )
        steps = ndtri_exp(np.minimum(log_p, 0.0))
        x = self.centre + self.scale * (-steps if mirrored else steps)
        return np.clip(x, self.low, self.high)


def halton(n: int, d: int) -> Array:
    """Return the first `n` points of the Halton sequence (1960) in the unit cube, without the origin.

    Coordinate j of point i (from 1) is i written in the j-th prime base and mirrored at the radix point.

    Parameters
    ----------
    n : int
        Number of points.
    d : int
        Number of coordinates. From about 10 on, the last ones need many points to be even.

    Returns
    -------
    (n, d) array
        Coordinates above 0 and below 1.

    Raises
    ------
    InputError
        A number is negative.

    Examples
    --------
    >>> halton(3, 2)
    array([[0.5       , 0.33333333],
           [0.25      , 0.66666667],
           [0.75      , 0.11111111]])
    """
    if n < 0 or d < 0:
        raise InputError(f"n = {n} or d = {d} is negative", expected="numbers of at least 0")
    return np.array([_mirror(n, base) for base in islice(_primes(), d)]).reshape(d, n).T


def _primes() -> Iterator[int]:
    return (p for p in count(2) if all(p % q for q in range(2, isqrt(p) + 1)))


def _mirror(n: int, base: int) -> Array:
    """Return the numbers 1 to n, written in a base and mirrored at the radix point, (n,)."""
    rest, weight, mirrored = np.arange(1, n + 1), 1.0 / base, np.zeros(n)
    while rest.any():
        mirrored += rest % base * weight
        rest //= base
        weight /= base
    return mirrored


def _probabilities(u: ArrayLike) -> Array:
    probabilities = np.asarray(u, dtype=float)
    if not ((probabilities >= 0) & (probabilities <= 1)).all():
        raise InputError("a probability lies outside 0 to 1", expected="probabilities from 0 to 1")
    return probabilities


def _check_ends(low: float, high: float) -> None:
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise InputError(
            f"low = {low:g} and high = {high:g} are not a valid range",
            expected="two finite numbers, with low below high",
            where="low",
        )


@lru_cache(maxsize=1024)
def _before_truncation(m: float, v: float, extent: float) -> tuple[float, float]:
    """Return c and s of the distribution on [0, 1] with mean m and variance v; errors scale by `extent`.

    With the mean fixed at m, the variance rises with s, from below s^2 to that of the exponential
    distribution of mean m.
    """
    from scipy.optimize import brentq

    def excess(log_s: float) -> float:
        s = float(np.exp(log_s))
        return _moments(_centre(m, s), s)[1] / v - 1.0

    narrow, wide = np.log(0.99 * np.sqrt(v)), np.log(_WIDEST)
    if narrow >= wide or excess(wide) <= 0:
        most = _moments(_centre(m, _WIDEST), _WIDEST)[1]
        raise InputError(
            f"variance {v * extent**2:g} is too large for this mean and range",
            expected=f"below {most * extent**2:g}",
            where="variance",
        )
    s = float(np.exp(brentq(excess, narrow, wide, xtol=1e-14)))
    return _centre(m, s), s


def _centre(m: float, s: float) -> float:
    """Return the c for which the distribution on [0, 1] with that s has mean m.

    If the peak lies a distance d outside, the density falls faster than exp(-x d / s^2), so the mean is
    within s^2 / d of that end. Searching twice as far is enough.
    """
    from scipy.optimize import brentq

    ends = -2.0 * s**2 / m, 1.0 + 2.0 * s**2 / (1.0 - m)
    return float(brentq(lambda c: _moments(c, s)[0] - m, *ends, xtol=1e-15 * max(1.0, s**2)))


@lru_cache(maxsize=1)
def _nodes_and_weights() -> tuple[Array, Array]:
    """Return Gauss-Legendre nodes and weights from -1 to 1, (256,) each."""
    return np.polynomial.legendre.leggauss(256)


def _moments(c: float, s: float) -> tuple[float, float]:
    """Return mean and variance of the normal distribution with c and s, truncated to [0, 1]."""
    peak = min(max(c, 0.0), 1.0)
    outside = abs(c - peak)
    reach = _REACH * (s if outside <= s else s**2 / outside)
    low, high = max(0.0, peak - reach), min(1.0, peak + reach)
    nodes, weights = _nodes_and_weights()
    x = low + (high - low) * (nodes + 1.0) / 2.0
    weights = weights * np.exp(-(x - peak) * (x + peak - 2.0 * c) / (2.0 * s**2))
    weights /= weights.sum()
    mean = float(weights @ x)
    return mean, float(weights @ (x - mean) ** 2)


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

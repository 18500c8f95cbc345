"""Checks and plain copies of the numbers that messages hold."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from fieldbo._numerics.arrays import Array, frozen_array
from fieldbo.errors import InputError


def freeze(value: object, name: str, array: ArrayLike, dtype: type = float) -> None:
    """Set a field of a frozen value to a read-only copy of an array."""
    object.__setattr__(value, name, frozen_array(array, dtype))


def numbers_in(name: str, given: object, where: str, *, gaps: bool = False) -> Array:
    """Return `given` as a read-only copy of numbers.

    Parameters
    ----------
    name : str
    given : array_like
        Numbers of any type, including Decimal and Fraction, but not text such as "1".
    where : str
        The place that errors name.
    gaps : bool
        Whether None stands for a missing number, NaN.

    Raises
    ------
    InputError
        It contains anything else.
    """
    try:
        numbers = np.array(given, order="C")
        kind = numbers.dtype.kind
        if kind not in "biufO" and numbers.size:
            raise TypeError
        if kind == "O" and any(
            isinstance(item, str | bytes | np.ndarray) or (item is None and not gaps) for item in numbers.flat
        ):
            raise TypeError
        numbers = numbers.astype(float, copy=False)
    except (TypeError, ValueError, OverflowError):
        shown = given.tolist() if isinstance(given, np.ndarray) else given
        raise InputError(f"{name} = {shown!r}", expected="numbers", where=where) from None
    numbers.setflags(write=False)
    return numbers


def row_in(name: str, given: object, where: str, *, gaps: bool = False) -> Array:
    """Return `given` as (k,) numbers; other axes of length 1 are dropped."""
    numbers = numbers_in(name, given, where, gaps=gaps)
    if numbers.ndim > 1 and numbers.size not in (0, max(numbers.shape)):
        raise InputError(
            f"{name} is an array of {shape_text(numbers)} numbers",
            expected="numbers in one row",
            where=where,
            fix="pass a flat list",
        )
    return numbers if numbers.ndim == 1 else numbers.ravel()


def number_in(name: str, given: object, where: str) -> float:
    """Return `given` as a float; it may be an array of a single number."""
    if isinstance(given, float):
        return float(given)
    numbers = numbers_in(name, given, where)
    if numbers.size != 1:
        raise InputError(f"{name} = {numbers.tolist()}", expected="a number", where=where)
    return float(numbers.item())


def check_finite(name: str, given: Array | float, where: str, least: float = -math.inf) -> None:
    """Raise an `InputError` unless all numbers are finite and at least `least`."""
    numbers = np.asarray(given)
    if not (np.isfinite(numbers) & (numbers >= least)).all():
        raise InputError(
            f"{name} = {numbers.tolist()}",
            expected="finite numbers" + (f" of at least {least:g}" if least > -math.inf else ""),
            where=where,
        )


def route_in(given: object, d: int, where: str) -> Array:
    """Return the points (k, d) of a route; (0, d) if it is straight."""
    points = numbers_in("route", given, where)
    if points.size == 0:
        points = np.empty((0, d))
        points.setflags(write=False)
    elif points.ndim != 2 or len(points) < 2 or (d and points.shape[1] != d):
        raise InputError(
            f"route is an array of {shape_text(points)} numbers",
            expected=f"at least two points of {d} coordinates, or none",
            where=where,
        )
    check_finite("route", points, where)
    return points


def shape_text(numbers: Array) -> str:
    """Return the shape of an array: ``2 x 3``."""
    return " x ".join(map(str, numbers.shape)) or "1"


def sites_in(given: Array, dimension: int, where: str) -> Array:
    """Return the sites (k, d) of readings, which may come as a flat list."""
    fits = given.ndim < 2 or given.shape[-1] == dimension or given.size == dimension
    if not dimension or given.size % dimension or not fits:
        raise InputError(
            f"a position of {dimension} coordinates but sites of {shape_text(given)}",
            expected="one coordinate per variable, in the position and in each site",
            where=where,
        )
    return given.reshape(-1, dimension)

"""Which reports can be used: a link passes on what it receives, which may be anything."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.domain.sensor import distances_from, in_order
from fieldbo.errors import printable
from fieldbo.messages import LONGEST_CHANNEL
from fieldbo.vehicles.remote.link import (
    ChannelReport,
    GoalRejected,
    GoalResult,
    PositionReport,
    Reading,
    Report,
)

_MOST = 10**6
"""Highest number of a part."""


def usable(report: Report, dimension: int) -> tuple[Report | None, str]:  # noqa: PLR0911 - one per kind
    """Return a report with numbers where numbers belong, and what was wrong with it.

    Parameters
    ----------
    report : Report
    dimension : int
        Number of axes, d.

    Returns
    -------
    Report or None
        None if nothing of it can be used.
    str
        What was wrong; empty if nothing was.

    Examples
    --------
    >>> usable(Reading("1.5"), 2)
    (Reading(value=inf), '')
    >>> usable(PositionReport([1.0, "two"]), 2)
    (None, 'a position that is not a list of 2 numbers was ignored')
    """
    match report:
        case PositionReport():
            position = _floats(report.position)
            if position is None or position.shape != (dimension,):
                return None, f"a position that is not a list of {dimension} numbers was ignored"
            return PositionReport(position), ""
        case Reading():
            return Reading(number(report.value)), ""
        case ChannelReport():
            name = report.name
            if not (isinstance(name, str) and 0 < len(name) <= LONGEST_CHANNEL and name == printable(name)):
                return (
                    None,
                    f"a channel without a printable name of 1 to {LONGEST_CHANNEL} characters was ignored",
                )
            return ChannelReport(name, number(report.value)), ""
        case GoalRejected():
            if not isinstance(report.goal, str):
                return None, "a rejection without the id of its goal was ignored"
            return GoalRejected(report.goal, str(report.reason)), ""
        case GoalResult():
            return _result(report, dimension)
    return report, ""


def _result(result: GoalResult, dimension: int) -> tuple[GoalResult | None, str]:
    """Return a result without what can't be used of it; one without its readings is cut short."""
    part = result.part
    if not isinstance(result.goal, str):
        return None, "a result without the id of its goal was ignored"
    if isinstance(part, bool) or not isinstance(part, int | np.integer) or not 0 <= part <= _MOST:
        return None, f"a result whose part is not a whole number from 0 to {_MOST} was ignored"
    position, sites, values = _floats(result.position), _floats(result.sites), _floats(result.values)
    seconds, noise = _floats(result.seconds), _floats(result.noise_variances)
    clean = replace(
        result,
        part=int(part),
        position=np.full(dimension, math.nan) if position is None else position,
        seconds=np.empty(0) if seconds is None else seconds,
        noise_variances=None if result.noise_variances is None else noise,
        channels=_channels(result.channels),
        last=bool(result.last),
        complete=bool(result.complete),
        corrects=bool(result.corrects),
    )
    if sites is None or values is None:
        if clean.corrects:
            return None, "a correction whose values are not numbers was ignored"
        clean = replace(clean, sites=np.empty((0, dimension)), values=np.empty(0), complete=False)
        return clean, "readings that are not numbers were ignored"
    return replace(clean, sites=sites, values=values), ""


def _channels(channels: object) -> Mapping[str, Array] | None:
    """Return the channels that have a name and numbers."""
    if not isinstance(channels, Mapping):
        return None
    read = {name: _floats(values) for name, values in channels.items() if isinstance(name, str)}
    return {name: values for name, values in read.items() if values is not None} or None


def _floats(given: Any) -> Array | None:
    """Return an array of numbers, NaN for None; None if there are other things in it."""
    try:
        array = np.asarray(given)
        return array.astype(float) if array.dtype.kind in "fiubO" else None
    except (TypeError, ValueError, OverflowError):
        return None


def number(reported: object) -> float:
    """Return a reported number: NaN if none was given, infinity for what is not a number.

    Examples
    --------
    >>> number(3), number(None), number("3"), number(True), number(10**400)
    (3.0, nan, inf, inf, inf)
    """
    if reported is None:
        return math.nan
    try:
        return math.inf if isinstance(reported, bool | str) else float(reported)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return math.inf


_ROUNDING_S = 1.0
"""A reading may come this much after the end: robots round, and measure durations of their own."""


def believable_on_the_way(
    sites: Array, seconds: Array, took_s: float, routes: Sequence[Array], off_route_m: float
) -> tuple[Mask, list[str]]:
    """Return which readings on the way to believe (k,), and what is wrong with the others.

    Parameters
    ----------
    sites : (k, d) array
    seconds : (k,) array
        When they were taken, in seconds since the order began; NaN if unknown.
    took_s : float
        How long the order took up to the end of this part.
    routes : sequence of (p, d) arrays
        The routes on which the robot was sent; if there is none, places are not checked.
    off_route_m : float
        How far from them a reading may lie.

    Examples
    --------
    >>> sites, route = np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 50.0]]), np.array([[0.0, 0.0], [9.0, 0.0]])
    >>> good, problems = believable_on_the_way(sites, np.array([np.nan, 2.0, 3.0]), 9.0, [route], 10.0)
    >>> good.tolist()
    [False, True, False]
    >>> problems[0]
    '1 has no time: send seconds with each reading'
    """
    number, good, problems = len(sites), np.isfinite(seconds), list[str]()
    if count := number - int(good.sum()):
        problems.append(f"{count} {_has(count)} no time: send seconds with each reading")
    inside = good & (seconds >= 0.0) & (seconds <= took_s + _ROUNDING_S)
    if count := int((good & ~inside).sum()):
        worst = seconds[good & ~inside][0]
        problems.append(
            f"{count} {_has(count)} a time outside of the move, such as {worst:.6g} s: seconds count from 0, "
            f"when the goal arrived, to its end, here {took_s:.6g} s"
        )
    good = inside
    kept = np.zeros(number, dtype=bool)
    kept[good] = in_order(seconds[good])
    if count := int((good & ~kept).sum()):
        problems.append(f"{count} {_has(count)} a time out of order: send readings as they were taken")
    good = kept
    if routes:
        gaps = np.min([distances_from(route, sites) for route in routes], axis=0)
        near = good & (gaps <= off_route_m)
        if count := int((good & ~near).sum()):
            problems.append(
                f"{count} {'lies' if count == 1 else 'lie'} up to {gaps[good & ~near].max():.4g} m from the "
                f"route: off_route_m in [reports] allows {off_route_m:.4g} m"
            )
        good = near
    return good, problems


def _has(count: int) -> str:
    return "has" if count == 1 else "have"

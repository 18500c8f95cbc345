"""Which of a robot's readings on the way can come from its move, and what is wrong with the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.domain.sensor import distances_from, in_order

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

"""Readings of one place that differ by more than the declared noise allows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.domain.domain import Domain
from fieldbo.domain.sensor import Sensor
from fieldbo.messages import Observation, order_number
from fieldbo.results.formatting import coordinates

_BEYOND = 6.0
"""Standard deviations of a difference beyond which two readings contradict each other."""

_COMPARED = 100  # readings of a place that are compared at most, of each kind

_ROUNDING = 1e-9  # relative difference of equal readings


class _Reading(NamedTuple):
    site: Array
    value: float
    variance: float
    order: str


def contradictions(
    observations: Iterable[Observation], domain: Domain, sensor: Sensor, order: str | None = None
) -> Iterator[str]:
    """Yield a sentence per place whose readings contradict each other beyond the declared noise.

    It names the two readings that do so most.

    Parameters
    ----------
    observations : iterable of Observation
    domain : Domain
    sensor : Sensor
        Readings at or below its limit of detection do not differ.
    order : str, optional
        Yield only contradictions with readings of this order.
    """
    at = defaultdict[bytes, list[_Reading]](list)
    for event in observations:
        for site, value, variance in zip(event.sites, event.values, event.noise_variances, strict=True):
            if np.isfinite(value):
                read = float(value) if sensor.below is None else max(float(value), sensor.below)
                noise = float(variance) + (sensor.noise_share * read) ** 2
                at[site.tobytes()].append(_Reading(site, read, noise, event.order))
    for readings in map(_extremes, at.values()):
        counted = np.array([order is None or r.order == order for r in readings])
        if len(readings) < 2 or not counted.any():
            continue
        values, variances = np.array([(r.value, r.variance) for r in readings]).T
        apart = np.abs(values[counted, None] - values)
        sd = np.sqrt(variances[counted, None] + variances)
        rounding = _ROUNDING * np.abs(values).max()
        beyond = apart > rounding
        excess = np.divide(apart, np.maximum(sd, rounding), out=np.zeros_like(apart), where=beyond)
        row, column = np.unravel_index(int(np.argmax(excess)), excess.shape)
        if excess[row, column] > _BEYOND:
            first, second = sorted((int(np.flatnonzero(counted)[row]), int(column)))
            yield _sentence(readings[first], readings[second], domain)


def _extremes(readings: list[_Reading]) -> list[_Reading]:
    """Return the readings of a place that may contradict others: surely low ones, high ones, and new ones."""
    if len(readings) <= 3 * _COMPARED:
        return readings
    values, variances = np.array([(r.value, r.variance) for r in readings]).T
    reach = _BEYOND * np.sqrt(0.5 * variances)
    lowest, highest = np.argsort(values + reach)[:_COMPARED], np.argsort(reach - values)[:_COMPARED]
    newest = range(len(readings) - _COMPARED, len(readings))
    return [readings[k] for k in sorted({*lowest.tolist(), *highest.tolist(), *newest})]


def _sentence(first: _Reading, second: _Reading, domain: Domain) -> str:
    sd = float(np.sqrt(first.variance + second.variance))
    difference = abs(first.value - second.value)
    apart = f"{difference / sd:.2g} standard deviations apart" if sd else "because the declared noise is 0"
    orders = f"orders {order_number(first.order)} and {order_number(second.order)}"
    if first.order == second.order:
        orders = f"both of order {order_number(first.order)}"
    return (
        f"the readings {first.value:.4g} and {second.value:.4g} ({orders}) at "
        f"{coordinates(domain, first.site)} contradict each other, {apart}: correct the wrong one with "
        "fieldbo correct, or raise noise_sd in [sensor]"
    )

"""Readings at sites that earlier ones had settled already: what rereading cost a mission."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.agent.agent import Agent
from fieldbo.belief.question import Optimum
from fieldbo.errors import counted
from fieldbo.messages import Observation
from fieldbo.results.formatting import coordinates

_CLOSE = 0.02  # of the range of all readings: a value at a site need not be known better
_SURE = 3.0  # standard deviations from the threshold at which a site is settled
_MANY = 0.1  # share of the readings from which on a note says so
_FEWEST = 3  # readings at a site that are never too many


class _Reread(NamedTuple):
    site: int
    times: int
    needless: int


def reread(agent: Agent) -> Iterator[str]:
    """Yield a note if many readings were taken at sites that earlier ones had settled.

    A site is settled if the mean of its readings is known to within 2% of the range of all readings or, for a
    level set, lies three standard deviations from the threshold.
    """
    mission, domain = agent.mission, agent.domain
    if domain.continuous or domain.control_sets or mission.world.sensor.along is not None:
        return
    taken, at = 0, defaultdict[int, list[tuple[float, float]]](list)
    for event in agent.history:
        if isinstance(event, Observation):
            good = np.isfinite(event.values)
            taken += int(good.sum())
            for site, value, variance in zip(
                event.sites[good], event.values[good], event.noise_variances[good], strict=True
            ):
                at[domain.nearest(site)].append((float(value), float(variance)))
    if not taken:
        return
    values = [value for readings in at.values() for value, _ in readings]
    close, threshold = _CLOSE * float(np.ptp(values)), _threshold(agent)
    found = [
        _Reread(site, len(readings), len(readings) - _enough(np.array(readings), close, threshold))
        for site, readings in at.items()
    ]
    found = [one for one in found if one.needless > 0]
    needless = sum(one.needless for one in found)
    if needless < _MANY * taken:
        return
    most = max(found, key=lambda one: one.times)
    limit = mission.most_readings_per_site
    yield (
        f"{needless} of {taken} readings were taken at {counted(len(found), 'site')} that earlier ones had "
        f"settled, up to {most.times} at {coordinates(domain, domain.sites[most.site])}"
        + ("" if limit is not None else "; most_readings_per_site in [policy] limits them")
    )


def _threshold(agent: Agent) -> float | None:
    """Return the threshold in the user's unit; None for an optimum."""
    question, (surface, scale) = agent.mission.question, agent.stated
    if isinstance(question, Optimum):
        return None
    return question.level(float(scale.to_user(surface.mean.max())))


def _enough(readings: Array, close: float, threshold: float | None) -> int:
    """Return how many of the readings (k, 2), values and noise variances in order, settled a site."""
    precision = np.cumsum(1.0 / np.maximum(readings[:, 1], 1e-300))
    sd, mean = precision**-0.5, np.cumsum(readings[:, 0] / np.maximum(readings[:, 1], 1e-300)) / precision
    settled = sd <= close
    if threshold is not None:
        settled |= np.abs(mean - threshold) > _SURE * sd
    first = int(np.argmax(settled)) + 1 if settled.any() else len(readings)
    return max(first, _FEWEST)

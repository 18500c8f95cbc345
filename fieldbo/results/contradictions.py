"""Readings of one place that differ by more than the declared noise allows.

A place is a site of a grid or lattice, with all readings within a quarter of the spacing, or else a position.
Between two positions, the field itself may change: by the range of all readings per spacing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.agent.agent import Agent
from fieldbo.belief.question import Optimum
from fieldbo.domain.domain import Domain
from fieldbo.domain.sensor import Sensor
from fieldbo.errors import counted
from fieldbo.messages import Correction, Observation, order_number
from fieldbo.results.words import coordinates

_BEYOND = 6.0
"""Standard deviations of a difference beyond which two readings contradict each other."""

_NEAR = 0.25  # spacings from a site within which readings are compared

_SITES = 5  # sites that must have been read before the range says how much the field changes

_COMPARED = 100  # readings of a place that are compared at most, of each kind

_ROUNDING = 1e-9  # relative difference of equal readings

_Place = int | bytes  # index of a site, or a position


class _Reading(NamedTuple):
    position: Array
    value: float
    variance: float
    order: str
    part: int


class Contradictions:
    """Finds readings that contradict each other beyond the declared noise, observation by observation.

    Of a place with very many readings, only the lowest, the highest and the newest are kept.

    Parameters
    ----------
    domain : Domain
    sensor : Sensor
        Readings at or below its limit of detection do not differ.

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> from fieldbo.messages import Query
    >>> line = Domain.grid([Axis("x", "m", 0, 9)], (10,))
    >>> found = Contradictions(line, Sensor(0.1))
    >>> first, again = (Query([3.0], id=f"run/{k}", expected_cost=1.0) for k in range(2))
    >>> found.add(first.observed(5.0, noise_variance=0.01))
    []
    >>> found.add(again.observed(6.0, noise_variance=0.01))[0][:74]
    'the readings 5 and 6 (orders 0 and 1) at x 3 m contradict each other, 7.1 '
    """

    def __init__(self, domain: Domain, sensor: Sensor) -> None:
        self._domain, self._sensor = domain, sensor
        self._seen: dict[tuple[str, int], Observation] = {}
        self._at = defaultdict[_Place, list[_Reading]](list)
        self._sites = set[int]()
        self._low, self._high = np.inf, -np.inf

    def add(self, event: Observation | Correction) -> list[str]:
        """Return a sentence per place where readings of an event contradict others, and remember them.

        Parameters
        ----------
        event : Observation or Correction
            A correction replaces the readings that it corrects; without its observation, it is ignored.
        """
        return list(self._sentences(self.take(event), event.order))

    def take(self, event: Observation | Correction) -> set[_Place]:
        """Remember the readings of an event, and return their places."""
        if isinstance(event, Correction):
            if (event.order, event.part) not in self._seen:
                return set()
            event = replace(self._seen[event.order, event.part], values=event.values)
            self._forget(event)
        self._seen[event.order, event.part] = event
        taken = list(zip(self._places(event.sites), self._readings(event), strict=True))
        places = set()
        for place, reading in taken:
            if np.isfinite(reading.value):
                self._at[place].append(reading)
                self._low, self._high = min(self._low, reading.value), max(self._high, reading.value)
                places.add(place)
        self._sites.update(place for place in places if isinstance(place, int))
        for place in places:
            self._at[place] = _extremes(self._at[place])
        return places

    def _readings(self, event: Observation) -> Iterator[_Reading]:
        sensor, event_id = self._sensor, (event.order, event.part)
        for site, value, variance in zip(event.sites, event.values, event.noise_variances, strict=True):
            read = float(value) if sensor.below is None else max(float(value), sensor.below)
            yield _Reading(site, read, float(variance) + (sensor.noise_share * read) ** 2, *event_id)

    def _forget(self, event: Observation) -> None:
        for place in set(self._places(event.sites)) & self._at.keys():
            self._at[place] = [r for r in self._at[place] if (r.order, r.part) != (event.order, event.part)]
            if not self._at[place]:
                del self._at[place]
        values = [r.value for readings in self._at.values() for r in readings]
        self._low, self._high = min(values, default=np.inf), max(values, default=-np.inf)

    def everywhere(self) -> Iterator[str]:
        """Yield a sentence per place whose readings contradict each other."""
        return self._sentences(self._at, None)

    # -- places ----------------------------------------------------------------------------------------

    @cached_property
    def _spacing(self) -> Array:
        """Distance (d,) between sites along each axis; an axis with a single node counts as one spacing."""
        return np.where(np.isfinite(self._domain.spacing), self._domain.spacing, self._domain.extent)

    @cached_property
    def _tree(self) -> Any:
        """The sites in spacings, as a tree; None if there is no spacing."""
        from scipy.spatial import KDTree

        spaced = np.isfinite(self._domain.spacing).any()
        return KDTree(self._domain.sites / self._spacing) if spaced else None

    def _places(self, positions: Array) -> list[_Place]:
        places: list[_Place] = [position.tobytes() for position in positions]
        if self._tree is not None and len(positions):
            gap, site = self._tree.query(positions / self._spacing, distance_upper_bound=_NEAR)
            for k in np.flatnonzero(np.isfinite(gap)).tolist():
                places[k] = int(site[k])
        return places

    # -- comparisons -----------------------------------------------------------------------------------

    def _sentences(self, places: Iterable[_Place], order: str | None) -> Iterator[str]:
        """Yield a sentence per place, which names the two readings that contradict each other most.

        If an order is given, one of them is a reading of that order.
        """
        for place in places:
            readings = self._at[place]
            counted = np.array([order is None or r.order == order for r in readings])
            if len(readings) < 2 or not counted.any():
                continue
            excess = self._excess(readings, counted)
            row, column = np.unravel_index(int(np.argmax(excess)), excess.shape)
            if excess[row, column] > _BEYOND:
                first, second = sorted((int(np.flatnonzero(counted)[row]), int(column)))
                yield self._sentence(place, readings[first], readings[second], float(excess[row, column]))

    def _excess(self, readings: list[_Reading], counted: Mask) -> Array:
        """Return by how many standard deviations the counted readings (c,) differ from all (n,), (c, n)."""
        values, variances = np.array([(r.value, r.variance) for r in readings]).T
        at = np.array([r.position for r in readings]) / self._spacing
        away = np.linalg.norm(at[counted, None] - at, axis=2)
        apart = np.abs(values[counted, None] - values) - (self._high - self._low) * away
        if len(self._sites) < _SITES:
            apart[away > 0] = 0.0
        sd = np.sqrt(variances[counted, None] + variances)
        rounding = _ROUNDING * np.abs(values).max()
        excess: Array = np.divide(
            apart, np.maximum(sd, rounding), out=np.zeros_like(apart), where=apart > rounding
        )
        return excess

    def _sentence(self, place: _Place, first: _Reading, second: _Reading, excess: float) -> str:
        orders = f"orders {order_number(first.order)} and {order_number(second.order)}"
        if first.order == second.order:
            orders = f"both of order {order_number(first.order)}"
        where, more = "at", "apart"
        if not np.array_equal(first.position, second.position):
            where = f"{self._distance(first.position, second.position)} apart near"
            more = "more than the distance explains"
        site = self._domain.sites[place] if isinstance(place, int) else first.position
        exact = not first.variance + second.variance
        return (
            f"the readings {first.value:.4g} and {second.value:.4g} ({orders}) {where} "
            f"{coordinates(self._domain, site)} contradict each other, "
            + ("because the declared noise is 0" if exact else f"{excess:.2g} standard deviations {more}")
            + ": correct the wrong one with fieldbo correct, or raise noise_sd in [sensor]"
        )

    def _distance(self, a: Array, b: Array) -> str:
        units = {axis.unit for axis in self._domain.axes}
        if len(units) > 1:
            return f"{np.linalg.norm((a - b) / self._spacing):.2g} spacings"
        return f"{np.linalg.norm(a - b):.2g} {units.pop()}".rstrip()


def contradictions(observations: Iterable[Observation], domain: Domain, sensor: Sensor) -> list[str]:
    """Return a sentence per place whose readings contradict each other beyond the declared noise.

    Parameters
    ----------
    observations : iterable of Observation
    domain : Domain
    sensor : Sensor
    """
    found = Contradictions(domain, sensor)
    for event in observations:
        found.take(event)
    return list(found.everywhere())


def _extremes(readings: list[_Reading]) -> list[_Reading]:
    """Return the readings of a place that may contradict others: surely low ones, high ones, and new ones."""
    if len(readings) <= 3 * _COMPARED:
        return readings
    values, variances = np.array([(r.value, r.variance) for r in readings]).T
    reach = _BEYOND * np.sqrt(0.5 * variances)
    lowest, highest = np.argsort(values + reach)[:_COMPARED], np.argsort(reach - values)[:_COMPARED]
    newest = range(len(readings) - _COMPARED, len(readings))
    return [readings[k] for k in sorted({*lowest.tolist(), *highest.tolist(), *newest})]


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

"""What fails in the field: readings at some places, and instruments that stand still.

Weeds on a sonar and a wet patch of a wall make neighbouring readings fail. The probability at a place x is
that of a Beta-Bernoulli model whose counts are shared between neighbours by a kernel (a continuous correlated
beta process: Goetschalckx, Poupart and Hoey 2011; Montesano and Lopes 2012 learn with smoothed beta
distributions where a robot's grasp fails):

    p(x) = (w r + F(x)) / (w + F(x) + G(x)),    F(x) = sum over failures of k(x, x_i),
                                                G(x) = the same over good readings,

with k(x, y) = exp(-|x - y|^2 / 2) in length scales. The prior counts as w = 2 readings, of which r = 10%
fail: a single failure never makes more than 40%.

The length scale is a quarter, a half, or all of what the model of the field expects before any reading:
whichever predicts each outcome best from all others (leave-one-out). Failures count as a matter of place
only if it predicts them at least three times better than one probability for all places does. A sensor
that is broken fails everywhere, and readings that fail by chance fail anywhere: neither closes a place.

A gauge that shows 100 % for an hour, a receiver that repeats its last fix and a sensor that repeats its last
reading all look healthy, report by report. `Standstill` compares them with the work that was done since each
last changed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
import shapely

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.belief.averaged import typical_lengths
from fieldbo.belief.kernels import Indices
from fieldbo.belief.model import Model
from fieldbo.domain.domain import Domain
from fieldbo.messages import Observation, Order, Query, Telemetry

_WEIGHT, _RATE = 2.0, 0.1
"""The prior: how many readings it counts as, and the share of them that fail."""

_SCALES = (0.25, 0.5, 1.0)
"""Length scales to choose from, in those that the model of the field expects."""

_TIMES_BETTER = 3.0
"""How much better places must predict failures: positive evidence in the words of Kass and Raftery (1995)."""

FAILED, GOOD, UNKNOWN = 1.0, 0.0, np.nan
"""Outcomes of a reading; one that was withdrawn tells nothing."""


@dataclass(frozen=True, eq=False)
class _Taken:
    """What an observation says: where it was read or should have been (k, d), and the outcomes (k,)."""

    order: str
    part: int
    sites: Array
    outcomes: Array


class Failures:
    """Learn where readings fail.

    It depends on the observations alone, in their order, and computes nothing before the second failure.

    Parameters
    ----------
    domain : Domain
    model : Model
        The model of the field, for the length scales that it expects.
    limit : float
        Probability of failure above which a site is avoided; 1 avoids none.

    Examples
    --------
    >>> from fieldbo.messages import Query
    >>> from fieldbo.testing.small import small_mission
    >>> mission = small_mission()
    >>> failures = Failures(mission.world.domain, mission.model, limit=0.5)
    >>> for n, site in enumerate(mission.world.domain.sites):
    ...     value = float("nan") if site[0] > 3.5 else 1.0
    ...     failures.take(Query(site, id=f"run/{n}").observed(value, noise_variance=0.01, cost=1.0))
    >>> failures.at([[0.0, 2.0], [5.0, 2.0]]).round(1)
    array([0. , 0.7])
    """

    def __init__(self, domain: Domain, model: Model, limit: float) -> None:
        self.domain, self.limit = domain, limit
        self._lengths = typical_lengths(model, domain)
        self._taken: list[_Taken] = []
        self._bad: set[int] = set()
        self._forget()

    def _forget(self) -> None:
        """Count everything anew when it is asked for."""
        self._counted = 0
        self._places: list[int] = []
        self._outcomes: list[bool] = []
        self._sums = np.empty((len(_SCALES), 2, 0))
        self._chosen: tuple[int, int | None] | None = None
        self._avoided: tuple[int, Mask | None] | None = None

    # -- what happened ---------------------------------------------------------------------------------

    def take(self, event: Observation, *, in_vain: bool = False) -> None:
        """Take the readings of an observation.

        Parameters
        ----------
        event : Observation
        in_vain : bool
            Whether its order brought no reading at all, although it was carried out.
        """
        sites, outcomes = event.sites, np.where(np.isnan(event.values), FAILED, GOOD)
        if in_vain:
            sites, outcomes = event.position[None], np.array([FAILED])
        if (outcomes == FAILED).any():
            self._bad.add(len(self._taken))
        self._taken.append(_Taken(event.order, event.part, sites, outcomes))

    def correct(self, event: Observation) -> None:
        """Take the corrected readings of an observation; one that is withdrawn did not fail."""
        for number, taken in enumerate(self._taken):
            if (taken.order, taken.part) == (event.order, event.part) and len(event.values):
                gone = np.where(taken.outcomes == FAILED, FAILED, UNKNOWN)
                now = replace(taken, outcomes=np.where(np.isnan(event.values), gone, GOOD))
                self._taken[number] = now
                self._bad.discard(number)
                if (now.outcomes == FAILED).any():
                    self._bad.add(number)
                self._forget()

    def so_far(self) -> Self:
        """Return what is known now; it does not change with what is taken later."""
        other = copy(self)
        other._taken, other._bad = list(self._taken), set(self._bad)
        other._forget()
        return other

    @property
    def failed(self) -> bool:
        """Whether any reading has failed."""
        return bool(self._bad)

    @property
    def known(self) -> bool:
        """Whether there are enough failures to tell where they occur."""
        return len(self._bad) > 1

    # -- where readings fail ---------------------------------------------------------------------------

    @property
    def local(self) -> bool:
        """Whether failures are a matter of place."""
        return self._scale() is not None

    @property
    def chances(self) -> Array:
        """Probability (N,) that a reading fails at each site."""
        scale = self._scale()
        if scale is None:
            return np.full(self.domain.size, self.overall)
        return _chance(*self._sums[scale])

    def at(self, points: object) -> Array:
        """Return the probability (k,) that a reading fails at `points` (k, d)."""
        places = np.atleast_2d(np.asarray(points, dtype=float))
        scale = self._scale()
        if scale is None:
            return np.full(len(places), self.overall)
        sums = np.zeros((2, len(places)))
        for site, failed in zip(self._places, self._outcomes, strict=True):
            sums[0 if failed else 1] += self._kernel(places, site, _SCALES[scale])
        return _chance(*sums)

    @property
    def overall(self) -> float:
        """Probability of failure if it is the same everywhere."""
        failed, whole = self.counts()
        return (_WEIGHT * _RATE + failed) / (_WEIGHT + whole)

    def counts(self, within: Indices | None = None) -> tuple[int, int]:
        """Return how many readings failed, and of how many: in all, or of those at some sites."""
        self._count()
        failed = np.array(self._outcomes, dtype=bool)
        there = np.ones(len(failed), bool) if within is None else np.isin(self._places, within)
        return int(failed[there].sum()), int(there.sum())

    @property
    def avoided(self) -> Mask | None:
        """Sites (N,) where a reading fails with a probability above the limit; None without any."""
        if not self.known or self.limit >= 1.0 or not self.local:
            return None
        if self._avoided is None or self._avoided[0] != len(self._taken):
            avoided = self.chances > self.limit
            self._avoided = len(self._taken), avoided if avoided.any() else None
        return self._avoided[1]

    def _scale(self) -> int | None:
        """Return which length scale predicts the outcomes best; None if places do not matter."""
        if not self.known:
            return None
        self._count()
        if self._chosen is None or self._chosen[0] != len(self._taken):
            self._chosen = len(self._taken), self._best_scale()
        return self._chosen[1]

    def _best_scale(self) -> int | None:
        places, failed = np.array(self._places), np.array(self._outcomes)
        everywhere = np.array([failed.sum(), (~failed).sum()], dtype=float)
        alike = _left_out(np.repeat(everywhere[:, None], len(failed), axis=1), failed)
        fits = [_left_out(sums[:, places], failed) for sums in self._sums]
        best = int(np.argmax(fits))
        return best if fits[best] > alike + np.log(_TIMES_BETTER) else None

    def _count(self) -> None:
        """Add what was taken since the last count to the sums over the sites."""
        if not self._counted:
            self._sums = np.zeros((len(_SCALES), 2, self.domain.size))
        for taken in self._taken[self._counted :]:
            for site, failed in _once_each(self.domain, taken):
                self._places.append(site)
                self._outcomes.append(failed)
                for k, scale in enumerate(_SCALES):
                    self._sums[k, 0 if failed else 1] += self._kernel(self.domain.sites, site, scale)
        self._counted = len(self._taken)

    def _kernel(self, points: Array, site: int, scale: float) -> Array:
        """Return how much an outcome at a site counts at points (k, d)."""
        gap = (points - self.domain.sites[site]) / (scale * self._lengths)
        return np.asarray(np.exp(-0.5 * np.einsum("kd,kd->k", gap, gap)))


def _once_each(domain: Domain, taken: _Taken) -> Iterable[tuple[int, bool]]:
    """Yield the site of each reading and whether it failed; a site counts once, good if any reading is."""
    found: dict[int, bool] = {}
    for place, outcome in zip(taken.sites, taken.outcomes, strict=True):
        if not np.isnan(outcome):
            site = domain.nearest(place)
            found[site] = found.get(site, True) and outcome == FAILED
    return found.items()


def _chance(failed: Array, good: Array) -> Array:
    """Return the probability of failure, given shared counts of failures and of good readings."""
    return np.asarray((_WEIGHT * _RATE + failed) / (_WEIGHT + failed + good))


def _left_out(sums: Array, failed: Mask) -> float:
    """Return the log-probability of all outcomes (n,), each predicted from the others.

    `sums` (2, n) holds the shared counts at each outcome's site, in which it counts as 1 itself.
    """
    others = np.maximum(0.0, sums - np.stack([failed, ~failed]))
    p = _chance(*others)
    return float(np.log(np.where(failed, p, 1.0 - p)).sum())


# -- areas -------------------------------------------------------------------------------------------------


def patches(domain: Domain, avoided: Mask) -> list[tuple[Indices, Array]]:
    """Return the sites of each patch of avoided sites, and corners (k, 2) around it, the largest patch first.

    Only for sites on a grid or a lattice over two axes; otherwise there are none.

    Examples
    --------
    >>> from fieldbo.testing.small import small_world
    >>> domain = small_world().domain
    >>> ((sites, corners),) = patches(domain, domain.sites.sum(axis=1) < 1.5)
    >>> len(sites), corners.tolist()
    (3, [[-0.5, -0.5], [-0.5, 1.5], [0.5, 1.5], [1.5, 0.5], [1.5, -0.5]])
    """
    half = domain.spacing / 2.0
    if domain.dimension != 2 or not np.isfinite(half).all():
        return []
    which = np.flatnonzero(avoided)
    low, high = domain.sites[which] - half, domain.sites[which] + half
    overlap = 1.01  # so that neighbours, also those at a corner or on a lattice, are in one patch
    cells = shapely.box(*(domain.sites[which] - overlap * half).T, *(domain.sites[which] + overlap * half).T)
    merged = shapely.union_all(cells)
    found = []
    for part in shapely.get_parts(merged):
        inside = shapely.contains_xy(part, *domain.sites[which].T)
        around = shapely.union_all(shapely.box(*low[inside].T, *high[inside].T)).convex_hull
        found.append((which[inside], shapely.get_coordinates(around)[:-1]))
    return sorted(found, key=lambda patch: -len(patch[0]))


_GAUGE = "battery gauge"

_SHARE, _ACCURACIES = 0.05, 3.0
"""A gauge must change before orders declared at this share of the battery, and at this many times its
accuracy, are done."""

_ORDERS = 3
"""A position or a clock may stay the same while this many orders are carried out elsewhere, but no longer."""

_READINGS = 6
"""How many equal readings in a row, at different sites, are too many."""


@dataclass
class Standstill:
    """Notices what stands still.

    Parameters
    ----------
    battery : float
        What the vehicle may use, in the world's cost unit.
    unit : str
        The cost unit.
    limit : float or None
        The sensor's limit of detection, which readings may well repeat.

    Attributes
    ----------
    now : dict of str to str
        What stands still at present, and since when in words.
    found : dict of str to str
        The same for all that ever did.

    Examples
    --------
    >>> still = Standstill(60.0, "s")
    >>> for k in range(1, 4):
    ...     order = Query([float(k), 0.0], expected_cost=2.0, id=f"run/{k}")
    ...     still.done(order, order.observed(0.5, noise_variance=0.01), 2.0)
    ...     still.heard(Telemetry(0, [float(k), 0.0], 60.0, 2.0 * k))
    >>> still.now["battery gauge"]
    'it has shown 60 s while orders declared at 4 s were carried out'
    """

    battery: float
    unit: str
    limit: float | None = None
    now: dict[str, str] = field(default_factory=dict)
    found: dict[str, str] = field(default_factory=dict)
    _level: float = math.nan
    _worked: float = 0.0
    _place: Array | None = None
    _orders: int = 0
    _time_s: float = -math.inf
    _ticks: int = 0
    _reading: float = math.nan
    _sites: set[tuple[float, ...]] = field(default_factory=set)

    @property
    def gauge(self) -> bool:
        """Whether the battery gauge stands still."""
        return _GAUGE in self.now

    def renew(self) -> None:
        """Begin with another battery."""
        self._level, self._worked = math.nan, 0.0
        self.now.pop(_GAUGE, None)

    def heard(self, telemetry: Telemetry) -> None:
        """Take the level of the battery."""
        if (level := telemetry.remaining) is None:
            return
        if level != self._level:
            self._level, self._worked = level, 0.0
        worked = self._worked > max(_SHARE * self.battery, _ACCURACIES * telemetry.accuracy)
        done = f"orders declared at {self._worked:.4g} {self.unit} were carried out"
        self._note(_GAUGE, worked, f"it has shown {level:.4g} {self.unit} while {done}")

    def done(self, order: Order, event: Observation, declared: float) -> None:
        """Take an order that was carried out, and what it should have taken of the battery."""
        if not math.isnan(declared):
            self._worked += declared
        if not isinstance(order, Query) or not event.complete:
            return
        site = tuple(np.asarray(order.site).tolist())
        self._take_place(order, event)
        self._take_time(event)
        self._take_reading(site, event)

    def _take_place(self, order: Query, event: Observation) -> None:
        if np.isnan(order.site).any():
            return
        stays = self._place is not None and np.array_equal(event.position, self._place)
        self._place = event.position
        elsewhere = not np.array_equal(order.site, event.position)
        self._orders = self._orders + 1 if stays and elsewhere else 0
        text = f"it has stayed the same through {self._orders} orders to other sites"
        self._note("position", self._orders >= _ORDERS, text)

    def _take_time(self, event: Observation) -> None:
        times = [*event.times_s, *([] if event.time_s is None else [event.time_s])]
        known = [time_s for time_s in times if math.isfinite(time_s) and time_s > 0.0]
        if not known:  # a vehicle need not have a clock
            return
        self._ticks = self._ticks + 1 if max(known) <= self._time_s else 0
        self._time_s = max(known)
        text = f"it has shown {self._time_s:.4g} s through {self._ticks} orders"
        self._note("clock", self._ticks >= _ORDERS, text)

    def _take_reading(self, site: tuple[float, ...], event: Observation) -> None:
        if not len(event.values) or not event.noise_variances[-1] > 0.0:
            return
        value = float(event.values[-1])
        if value != self._reading or value in (0.0, self.limit):  # a count may well stay at 0
            self._sites.clear()
        self._reading = value
        self._sites.add(site)
        text = f"it has read {value:.6g} at {len(self._sites)} sites in a row"
        self._note("sensor", len(self._sites) >= _READINGS, text)

    def _note(self, what: str, stands_still: bool, text: str) -> None:
        if stands_still:
            self.now[what] = self.found[what] = text
        else:
            self.now.pop(what, None)

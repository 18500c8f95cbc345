"""What readings cover: where something higher could still hide, and where gaps are between them.

A patch is a place of high values on a quieter background. A reading notices a patch that is wide enough to
reach it, and far from all readings a patch may lie unseen, whatever a kernel says about the field.

===========  ===========================================================================================
``x, a``     sites (N, d), and their shares of the domain (N,)
``r, y``     places that were read (n, d), and the pooled readings there (n,)
``h``        spacing of a sweep that would take the whole budget
``rho``      radius of the smallest patch that is looked for; the largest is four times as wide
``s``        standard deviation of a reading
===========  ===========================================================================================

In model units, where larger is better.

A model learns from readings how fast a field varies. Readings in one corner do not tell how the field varies
elsewhere, so before an answer counts, no site may lie too far from all readings: in a *gap*.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.belief.averaged import typical_lengths
from fieldbo.belief.model import Model
from fieldbo.belief.question import Optimum, Question
from fieldbo.belief.readings import pool
from fieldbo.domain.domain import Domain

Price = Callable[[Array, Array], Array]
"""``price(start, sites) -> (N,)``: the cost of a move from `start` (d,) to each site, and of a reading."""

MOST_AXES = 3
"""Between more axes, no number of readings comes near all places."""

SIZES = 4.0
"""Radius of the largest patch that is looked for, relative to the smallest; uniform in the logarithm."""

_STANDS_OUT = 3.0  # standard deviations of a reading: less is noise
_STEPS = 30  # of the bisection
_MOST = 2000  # readings that are compared with each other
_LEGS = 8  # from which the cost of a leg of some length is taken


def _squares(a: Array, b: Array) -> Array:
    """Return the squared distances (n, m) between points (n, d) and (m, d)."""
    from scipy.spatial.distance import cdist

    return np.asarray(cdist(a, b, "sqeuclidean"))


def yardsticks(domain: Domain) -> Array:
    """Return the length along each axis (d,) that counts as 1 in distances between places.

    1 where all axes have one unit and none is a depth, so that distances are in that unit; else the length of
    each axis.

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> wall = [Axis("along", "m", 0, 20), Axis("up", "m", 0, 6)]
    >>> yardsticks(Domain.grid(wall, (3, 2))), yardsticks(Domain.grid([Axis("T", "K", 0, 90)], (3,)))
    (array([1., 1.]), array([1.]))
    >>> lake = [Axis("along", "m", 0, 900), Axis("depth", "m", 0, 20)]
    >>> yardsticks(Domain.grid(lake, (3, 2)))
    array([900.,  20.])
    """
    alike = len({axis.unit for axis in domain.axes}) == 1 and not domain.has_depth
    return np.where(~np.array(alike) & (domain.extent > 0), domain.extent, 1.0)


def distance_text(domain: Domain, distance: float) -> str:
    """Return a distance in yardsticks in words.

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> wall = Domain.grid([Axis("along", "m", 0, 20), Axis("up", "m", 0, 6)], (3, 2))
    >>> pair = Domain.grid([Axis("T", "K", 300, 400), Axis("p", "bar", 1, 3)], (3, 3))
    >>> distance_text(wall, 6.04), distance_text(wall, 1234.0), distance_text(pair, 0.12)
    ('6 m', '1,200 m', '12% of the axes')
    """
    if (yardsticks(domain) == 1.0).all():
        return f"{float(f'{distance:.2g}'):,.10g} {domain.axes[0].unit}".rstrip()
    return f"{distance:.0%} of the axes"


def nearest(read: Array, places: Array) -> Array:
    """Return the distance (N,) of places (N, d) from the nearest of some points (n, d), n > 0."""
    from scipy.spatial import cKDTree

    return np.asarray(cKDTree(read).query(places)[0])


def to_nearest(domain: Domain, read: Array) -> Array:
    """Return the distance (N,) of each site from the nearest of the readings (n, d), in `yardsticks`.

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> to_nearest(Domain.grid([Axis("x", "m", 0, 40)], (3,)), np.array([[10.0]]))
    array([10., 10., 30.])
    """
    if not len(read):
        return np.full(domain.size, np.inf)
    units = yardsticks(domain)
    return nearest(read / units, domain.sites / units)


def sweep_spacing(domain: Domain, price: Price, budget: float) -> float:
    """Return the spacing of a sweep in square cells that would take a whole budget.

    Parameters
    ----------
    domain : Domain
    price : Price
    budget : float

    Returns
    -------
    float
        In `yardsticks`; at least the distance between neighbouring sites, at most that between the farthest.

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> wall = Domain.grid([Axis("x", "m", 0, 40), Axis("y", "m", 0, 40)], (41, 41))
    >>> def price(start, sites):
    ...     return np.linalg.norm(sites - start, axis=1) + 6.0
    >>> round(sweep_spacing(wall, price, 1100.0), 1)
    3.8
    """
    takes, nearest = _sweeps(domain, price)
    if takes is None:
        return 1.0
    low, high = np.log(nearest), np.log(np.linalg.norm(domain.extent / yardsticks(domain)))
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if takes(np.exp(middle)) > budget else (low, middle)
    return float(np.exp(high))


def scarcest_spacing(domain: Domain, question: Question, supplies: Iterable[tuple[Price, float]]) -> float:
    """Return the spacing of a sweep that would take all of what is scarcest, in `yardsticks`.

    The least size stands for it, if the question names one.

    Parameters
    ----------
    domain : Domain
    question : Question
    supplies : iterable of (Price, float)
        The price in each supply, and how much of it there is in all: the battery, the
        time, the number of readings.
    """
    if question.least_size is not None:
        return question.least_size
    return max(sweep_spacing(domain, price, supply) for price, supply in supplies)


def sweep_cost(domain: Domain, price: Price, spacing: float) -> float:
    """Return what a sweep in square cells of a spacing takes; parameters are those of `sweep_spacing`.

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> wall = Domain.grid([Axis("x", "m", 0, 40), Axis("y", "m", 0, 40)], (41, 41))
    >>> sweep_cost(wall, one_each, 8.0)  # readings
    25.0
    """
    takes, _ = _sweeps(domain, price)
    return 0.0 if takes is None else takes(spacing)


def _sweeps(domain: Domain, price: Price) -> tuple[Callable[[float], float] | None, float]:
    """Return what a sweep with a spacing takes, and the distance of the nearest site; None without any."""
    units = yardsticks(domain)
    sites, extent = domain.sites / units, domain.extent / units
    central = int(np.argmin(np.square(sites - sites.mean(axis=0)).sum(axis=1)))
    distances = np.linalg.norm(sites - sites[central], axis=1)
    prices = price(domain.sites[central], domain.sites)
    reading = float(prices[central])
    there = np.isfinite(prices) & (distances > 0)
    if not there.any():
        return None, 1.0
    distances, rates = distances[there], (prices[there] - reading) / distances[there]
    volume = float(domain.cells.sum()) / float(units.prod())

    def takes(h: float) -> float:
        """Return what a sweep with this spacing takes."""
        near = np.argpartition(np.abs(distances - h), min(_LEGS, len(distances)) - 1)[:_LEGS]
        # An axis shorter than the spacing is swept in a single line.
        cell = np.minimum(h, extent[extent > 0]).prod()
        return float(volume / cell * (h * rates[near].mean() + reading))

    return takes, float(distances.min())


def one_each(start: Array, sites: Array) -> Array:
    """Return 1 for each site (N, d): the price of a reading where their number is limited."""
    return np.ones(len(sites))


@dataclass(frozen=True, eq=False)
class Readings:
    """The readings of a belief, one for each place, and how they stand among their neighbours.

    Attributes
    ----------
    places : (n, d) array
        In `yardsticks`.
    values : (n,) array
    sd : float
        Standard deviation of a reading.
    """

    places: Array
    values: Array
    sd: float

    @classmethod
    def of(cls, domain: Domain, sites: Array, values: Array, noise_variances: Array, sd: float) -> Readings:
        """Return readings at sites (k, d), pooled where a site was read again."""
        if not len(values):
            return cls(np.empty((0, domain.dimension)), values, sd)
        places, pooled, _, _ = pool(sites, values, noise_variances)
        return cls(places / yardsticks(domain), pooled, sd)

    @property
    def size(self) -> int:
        """Number of places, n."""
        return len(self.values)

    def in_cells(self, width: float) -> Readings:
        """Return one reading for each cell of a width, the mean of those in it at their mean place."""
        _, which, times = np.unique(
            np.floor(self.places / width), axis=0, return_inverse=True, return_counts=True
        )
        which = which.reshape(-1)
        sums = [np.bincount(which, weights) for weights in (*self.places.T, self.values)]
        *places, values = np.array(sums) / times
        return Readings(np.column_stack(places), values, self.sd)

    @cached_property
    def squares(self) -> Array:
        """Squared distances between the places (n, n)."""
        return _squares(self.places, self.places)


class Covering:
    """Where something higher than the best reading could hide, and how much higher.

    Parameters
    ----------
    domain : Domain
    readings : Readings
    spacing : float
        That of a sweep which would take the whole budget; patches of half this radius and more are looked
        for.
    plain : bool
        Whether only distances count, not values: before the model knows their scale.

    Attributes
    ----------
    shares : (N,) array
        Of the domain, that each site represents.
    level, spread : float
        Mean and variance of the field, each site taken to be as the nearest reading.
    best : float
        The largest reading.
    tail : float
        By how much a higher value is expected to exceed the best reading: the mean excess of an exponential
        tail over the best of n.
    covered : (N,) array
        Share of the patches around each site that a reading would have noticed.
    weights : (N,) array
        Probability that the best place lies at each site, if none was covered, plus that of a higher value
        near a reading that stands out.

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> wall = Domain.grid([Axis("x", "m", 0, 40)], (41,))
    >>> at = np.array([[0.0], [10.0]])
    >>> covering = Covering(wall, Readings.of(wall, at, np.array([0.0, 1.0]), np.full(2, 0.01), 0.1), 8.0)
    >>> covering.covered[[0, 4, 20]].round(2)
    array([1.  , 1.  , 0.01])
    """

    def __init__(self, domain: Domain, readings: Readings, spacing: float, plain: bool = False) -> None:
        self._units, self.spacing, self.plain = yardsticks(domain), spacing, plain or not readings.size
        self.readings, self._sites = readings, domain.sites / self._units
        self.shares = domain.cells / domain.cells.sum()
        self.radius = 0.5 * spacing
        if readings.size > _MOST:  # of a sensor that reads on the way: pairs of them fill the memory
            self.readings = readings = readings.in_cells(0.5 * self.radius)
        n, y = readings.size, readings.values
        self.level, self.spread, self.best, self.tail = 0.0, 0.0, 0.0, 0.0
        self.covered, self.weights = np.zeros(len(self._sites)), self.shares
        self.standing, self.reach = np.zeros(n), np.ones(n)
        if not n:
            return
        squares = _squares(self._sites, readings.places)
        nearest = squares.argmin(axis=1)
        self.level = float(self.shares @ y[nearest])
        self.spread = float(self.shares @ np.square(y[nearest] - self.level))
        self.best = float(y.max())
        self.tail = max(self.best - self.level, 1e-9) / max(1.0, float(np.log(n + 1)))
        if not self.plain:
            self.standing = self._standing(np.bincount(nearest, self.shares, n).astype(float))
            self.reach = self._reaches()
            self.weights = self.shares + self.leads()
        self.covered = self.seen((squares / self.reach**2).min(axis=1))

    def seen(self, squares: Array) -> Array:
        """Return the share of patches that a reading at these squared distances notices."""
        with np.errstate(divide="ignore"):
            return np.asarray(
                np.clip(1.0 - np.log(squares / self.radius**2) / (2.0 * np.log(SIZES)), 0.0, 1.0)
            )

    def _standing(self, shares: Array) -> Array:
        """Return how far each reading stands above those within the largest patch around it (n,)."""
        y = self.readings.values
        near = shares * np.exp(self.readings.squares / (-2.0 * (SIZES * self.radius) ** 2))
        return np.asarray(y - near @ y / near.sum(axis=1))

    def _reaches(self) -> Array:
        """Return the distance (n,), relative to that of a quiet reading, up to which each one covers.

        A reading that stands out leaves room for a higher patch beside it.
        """
        s = self.readings.sd
        quiet = (self.standing + 2.0 * s) / max(self.best - self.level, 8.0 * s, 1e-300)
        return np.asarray(np.sqrt(np.log(np.clip(quiet, 0.1, 0.8)) / np.log(0.1)))

    @property
    def noticed(self) -> Mask:
        """Readings (n,) that stand out and are the highest within a spacing, bool: one for each patch met."""
        y, stands = self.readings.values, self.standing > _STANDS_OUT * self.readings.sd
        highest = np.where(self.readings.squares <= self.spacing**2, y, -np.inf).max(axis=1) == y
        return np.asarray(stands & highest)

    def leads(self, *, with_best: bool = False) -> Array:
        """Return the probability (N,) of a higher value near the readings that were `noticed`.

        Each lead is spread over the sites around it; the best reading is one of them only if asked for.
        """
        y, h = self.readings.values, self.spacing
        chosen = np.flatnonzero(np.where(y < self.best, self.noticed, with_best))
        if not len(chosen):
            return np.zeros(len(self._sites))
        near = np.exp(_squares(self._sites, self.readings.places[chosen]) / (-2.0 * (0.6 * h) ** 2))
        near *= self.shares[:, None]
        chances = np.exp((y[chosen] - self.best) / self.tail)
        totals = near.sum(axis=0)
        return np.asarray(near @ np.divide(chances, totals, out=np.zeros_like(totals), where=totals > 0))

    @property
    def hidden(self) -> Array:
        """Probability (N,) that something higher lies at each site, unseen."""
        return np.asarray(self.weights * (1.0 - self.covered))

    def hidden_at(self, points: Array) -> Array:
        """Return `hidden` for points (P, d) between the sites, as if they were the nearest site."""
        from scipy.spatial import cKDTree

        nearest = cKDTree(self._sites).query(points / self._units)[1]
        return self.hidden[nearest]

    def around(self, points: Array) -> tuple[Array, Array, Array, float, float, Array, Array]:
        """Return what a loop needs to find out what readings at points (P, d) would cover.

        The points in yardsticks, how far readings there would cover relative to quiet ones (P,), the sites,
        the smallest radius, the sizes, what is covered, and the weights. What a reading will be is unknown;
        close to an earlier one it covers as far as that did, so that rereading covers nothing.
        """
        at, reaches = points / self._units, np.ones(len(points))
        if self.readings.size:
            squares = _squares(at, self.readings.places)
            nearest = squares.argmin(axis=1)
            near = squares[np.arange(len(at)), nearest] < self.radius**2
            reaches = np.where(near, self.reach[nearest], 1.0)
        return at, reaches, self._sites, self.radius, SIZES, self.covered, self.weights


_WITHIN, _WITHIN_OPTIMUM = 0.5, 1.0  # expected length scales from the nearest reading
_READINGS_PER_AXIS = 10


def gaps(read: Array, model: Model, domain: Domain, question: Question, beside: Array | None = None) -> Array:
    """Return how far (N,) each site lies from the nearest reading: above 1, it lies in a gap.

    Distances are in the length scales that the model expects before any reading: within half of one of them
    a reading must lie for a level set, whose patches may be small, and within one for an optimum. With more
    than three axes, where no number of readings closes all gaps, ten readings per axis at different places
    will do (Loeppky, Sacks and Welch 2009).

    Parameters
    ----------
    read : (n, d) array
        Where readings were taken.
    model : Model
    domain : Domain
    question : Question
    beside : (k, d) array, optional
        Sites that count as read, too, because no reading comes closer; with up to three axes.
    """
    if domain.dimension > MOST_AXES:
        enough = len(np.unique(read, axis=0)) >= _READINGS_PER_AXIS * domain.dimension
        return np.full(domain.size, 0.0 if enough else np.inf)
    reach = reach_of(model, domain, question)
    seen = read if beside is None else np.concatenate([read, beside])
    return nearest(seen / reach, domain.sites / reach)


def reach_of(model: Model, domain: Domain, question: Question) -> Array:
    """Return how far from a site, along each axis, a reading may lie at most if it is not to be in a gap.

    One for all axes if the model has a single length scale.
    """
    within = _WITHIN_OPTIMUM if isinstance(question, Optimum) else _WITHIN
    return np.asarray(within * typical_lengths(model, domain))

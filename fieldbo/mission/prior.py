"""What is known before a mission begins: earlier readings, and a prior mean."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from fieldbo._numerics.arrays import Array, Mask, frozen_array
from fieldbo.belief.mean_functions import MeanFunction
from fieldbo.belief.readings import cell_sizes
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError, counted

MOST_EARLIER = 2_000
"""Largest number of earlier readings: a fit takes time proportional to the cube of their number."""


@dataclass(frozen=True, eq=False)
class Prior:
    """Earlier readings, and a prior mean; either may be missing.

    Earlier readings count for the belief, its fits and the test for outliers. They are no orders: they cost
    nothing and are no steps.

    Parameters
    ----------
    sites : (n, d) array, optional
    values : (n,) array, optional
        In the user's unit.
    noise_sds : (n,) array, optional
        Standard deviations of what the readings may differ from the field as it is when the mission begins.
        Noise and the field's change since then add up: see `aged`.
    ages_days : (n,) array, optional
        Ages when the mission begins, for reports; NaN where they are not known.
    mean : MeanFunction, optional
        What is expected at each site before any reading, in the user's unit.
    notes : tuple of str, optional
        What a reader should know of the earlier readings: what was left out or pooled, and what is not known.

    Raises
    ------
    InputError
        The lengths differ, a number is not finite, a noise is negative, or there are too many readings.

    Examples
    --------
    A mission that begins with two readings of yesterday, over a field that changes by 0.2 per day:

    >>> from dataclasses import replace
    >>> from fieldbo import Agent
    >>> from fieldbo.testing import small_mission
    >>> yesterday = Prior([[0, 0], [5, 4]], [1.0, -0.1], aged([0.05, 0.05], 0.2, 1.0))
    >>> Agent(replace(small_mission(), prior=yesterday)).readings
    2
    """

    sites: Array = field(default_factory=lambda: np.empty((0, 0)))
    values: Array = field(default_factory=lambda: np.empty(0))
    noise_sds: Array = field(default_factory=lambda: np.empty(0))
    ages_days: Array | None = None
    mean: MeanFunction | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        n = len(self.values)
        ages = np.full(n, np.nan) if self.ages_days is None else self.ages_days
        for name, array in (("values", self.values), ("noise_sds", self.noise_sds), ("ages_days", ages)):
            object.__setattr__(self, name, frozen_array(array))
        object.__setattr__(self, "sites", frozen_array(np.atleast_2d(self.sites) if n else self.sites))
        if not len(self.sites) == n == len(self.noise_sds) == len(ages):
            raise InputError(
                f"{len(self.sites)} sites, {counted(n, 'value')}, {len(self.noise_sds)} noise_sds and "
                f"{len(ages)} ages_days",
                expected="one of each per earlier reading",
                where="prior",
            )
        finite = [np.isfinite(a).all() for a in (self.sites, self.values, self.noise_sds)]
        if not all(finite) or (self.noise_sds < 0).any():
            raise InputError(
                "a site, value or noise of an earlier reading is not finite, or a noise is negative",
                expected="finite numbers, and noise of at least 0",
                where="prior",
            )
        if n > MOST_EARLIER:
            raise InputError(
                f"{n:,} earlier readings",
                expected=f"at most {MOST_EARLIER:,}",
                where="prior.readings",
                fix="thin them, for example to the mean of those near each site",
            )

    @property
    def noise_variances(self) -> Array:
        """Noise variances (n,), in the squared unit of the values."""
        return np.square(self.noise_sds)

    def inside(self, domain: Domain) -> Mask:
        """Return which readings (n,) lie between the ends of the axes, or at most one spacing beyond."""
        if not len(self.values):
            return np.zeros(0, dtype=bool)
        reach = cell_sizes(domain) * (1 + 1e-9)
        near = (self.sites >= domain.low - reach) & (self.sites <= domain.high + reach)
        return np.asarray(near.all(axis=1))

    def over(self, domain: Domain) -> Prior:
        """Return the prior with the readings `inside` a domain."""
        kept = self.inside(domain)
        if not len(kept):
            return replace(self, sites=np.empty((0, domain.dimension)))
        sites, values, noise_sds, ages = (
            array[kept] for array in (self.sites, self.values, self.noise_sds, self._ages)
        )
        return Prior(sites, values, noise_sds, ages, self.mean, self.notes)

    @property
    def _ages(self) -> Array:
        assert self.ages_days is not None
        return self.ages_days

    def in_words(self) -> str:
        """Return the number of readings and their ages.

        Examples
        --------
        >>> Prior([[0], [1]], [5, 6], [1, 1], [0.98, 1.04]).in_words()
        '2 earlier readings, 1.0 days old'
        """
        number = counted(len(self.values), "earlier reading")
        ages = self.ages_in_words()
        return f"{number}, {ages}" if ages else number

    def ages_in_words(self) -> str:
        """Return the ages that are known; empty if none is.

        Examples
        --------
        >>> Prior([[0], [1]], [5, 6], [1, 1], [1, 3.04]).ages_in_words()
        '1.0 to 3.0 days old'
        """
        known = self._ages[np.isfinite(self._ages)]
        if not len(known):
            return ""
        young, old = f"{known.min():.1f}", f"{known.max():.1f}"
        return f"{old if young == old else f'{young} to {old}'} days old"

    @property
    def oldest_days(self) -> float:
        """Age of the oldest reading in days, of those whose ages are known; 0 if none is."""
        return float(np.max(self._ages, initial=0.0, where=np.isfinite(self._ages)))


def aged(noise_sds: Array, per_day: float, ages_days: Array) -> Array:
    """Return the noise (n,) of earlier readings of a field that changes like a random walk.

    ``sqrt(noise_sd^2 + per_day^2 age_days)``. The changes at different readings are taken to be independent
    of each other.

    Parameters
    ----------
    noise_sds : (n,) array
        When the readings were taken.
    per_day : float
        Standard deviation of the field's change in one day.
    ages_days : float or (n,) array

    Examples
    --------
    >>> aged(np.array([0.3, 0.0]), 0.2, 4.0)
    array([0.5, 0.4])
    """
    noise, ages = np.asarray(noise_sds, dtype=float), np.asarray(ages_days, dtype=float)
    return np.sqrt(noise**2 + per_day**2 * ages)

"""The model as it learns from readings: hyperparameters, believed readings, and the belief over the sites."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from fieldbo._numerics.arrays import Array, Mask
from fieldbo._numerics.blas import on_one_blas_thread
from fieldbo.agent.averaging import Averaging, Fit, Stated, drawn_at
from fieldbo.belief.averaged import WeightedHyperparameters, weighted_around
from fieldbo.belief.hyperparameters import Hyperparameters
from fieldbo.belief.kernels import Indices
from fieldbo.belief.mean_functions import PriorMean
from fieldbo.belief.model import LEAST_READINGS
from fieldbo.belief.outliers import dwarfing
from fieldbo.belief.posterior import Belief
from fieldbo.belief.readings import PIECE, Data, Thinned, places, thinned
from fieldbo.belief.surface import Surface
from fieldbo.messages import Fitted, Observation
from fieldbo.mission.mission import Mission

_REVISED = 1.1
"""Number of readings, relative to those at the latest build, at which readings that are not normal in model
units are taken again as they are given all the others."""


_MOST_FITTED = 400
"""Most readings to which hyperparameters are fitted if the sensor reads on the way; the time of a fit grows
with their number to the third power, and neighbours on a route say much the same."""


class _Taken(NamedTuple):
    """The usable readings (k,) of an observation, in the user's units."""

    order: str
    part: int
    sites: Array
    values: Array
    noises: Array
    left_out: int


class OnlineModel:
    """Extend the belief with each observation; rebuild it after a fit, or when an old reading changes sides.

    It begins with the mission's earlier readings.

    Of an observation with several readings, it takes those of `thinned`, pooled over a fifth of the present
    length scales. A fit pools all of them anew. If the sensor reads on the way, fits are due by the number of
    orders, not of readings.

    A corrected reading takes the place of the wrong one. The belief is then learned again from the latest
    fit that had not seen the wrong one, and the fits that had are to be repeated (`to_repeat`), with the same
    observations and random streams. The result is, bit for bit, the model that the right reading would have
    given.

    Parameters
    ----------
    mission : Mission

    Attributes
    ----------
    hyperparameters : Hyperparameters
    believed : (n,) bool array
        Which of the readings the model believes.
    left_out : int
        Number of readings that the model could not use: NaN, or not above 0 under a log.
    rebuilt : bool
        Whether the latest event rebuilt the belief.
    fitted_at : int
        Number of readings at the latest fit, or of orders if the sensor reads on the way; 0 before the first.
    fits : list of Fit
        All fits that count, in order.
    to_repeat : list of Fit
        Fits to readings that were corrected since, in order; `fitted` repeats the first of them.
    """

    hyperparameters: Hyperparameters
    believed: Mask
    _surface: Surface | None
    _waiting: list[Thinned]
    _defers: bool

    def __init__(self, mission: Mission) -> None:
        self.mission = mission
        self._observed = mission.model.observation_model(mission.world.sensor)
        self._earlier = mission.earlier
        self.mean = self._earlier.mean
        self.fits: list[Fit] = []
        self.to_repeat: list[Fit] = []
        self._observations: list[_Taken] = []
        self._averaging = Averaging()
        self._learn_again()

    @property
    def readings(self) -> int:
        """Number of readings in the model, n: those of one order near each other count as one."""
        return len(self._values)

    @property
    def believed_values(self) -> Array:
        """The readings that the model believes, (n,), in the user's unit; at least the limit of detection."""
        return self.mission.world.sensor.at_least_the_limit(np.array(self._values)[self.believed])

    @property
    def dwarfing(self) -> Indices:
        """Indices of believed readings that dwarf all others; the belief can't tell the others apart."""
        question, h = self.mission.question, self.hyperparameters
        beside = [] if question.centre is None else [question.centre]
        if self.mission.model.every is None and self.mission.prior is None:
            sd = float(np.sqrt(h.kernel.diagonal(self.mission.world.domain.sites[:1])[0]))
            beside += h.scale.to_user([-sd, sd]).tolist()
        return dwarfing(self.believed_values, beside, skewed=h.scale.transform == "log")

    @property
    def earlier(self) -> int:
        """Number of earlier readings in the model."""
        return self._ends[0]

    @property
    def provisional(self) -> bool:
        """True until the hyperparameters are fitted for the first time."""
        return self.mission.model.every is not None and not self.fitted_at

    @property
    def averages(self) -> bool:
        """Whether results are averaged over hyperparameters."""
        return self.mission.model.average and self.mission.model.every is not None

    @property
    def fit_is_due(self) -> bool:
        """True if enough readings have arrived since the latest fit."""
        every = self.mission.model.every
        if every is None or self.readings < LEAST_READINGS or self._count() > self.mission.model.until:
            return False
        if self.fitted_at:
            return self._count() - self.fitted_at >= every
        # Many readings of one order at one stop say how a sensor scatters, and nothing about the field.
        orders = len({event.order for event in self._observations})
        return max(orders, places(np.array(self._sites), self.mission.world.domain)) >= LEAST_READINGS

    @property
    def orders_read(self) -> list[str]:
        """The orders that brought readings that the model believes."""
        readings = zip(self._observations, pairwise(self._ends), strict=True)
        return [taken.order for taken, (first, end) in readings if self.believed[first:end].any()]

    @property
    def fit_is_stale(self) -> bool:
        """True if readings have arrived since the latest fit, of which there will be another one."""
        model = self.mission.model
        return model.every is not None and 0 < self.fitted_at < self._count() <= model.until

    def _count(self, observations: int | None = None) -> int:
        """Return how many readings, by which fits are due, the first observations brought; by default, all.

        If the sensor reads on the way, an order counts as one.
        """
        if self.mission.world.sensor.along is None:
            return self.readings if observations is None else self.readings_of(observations)
        return self._ends[0] + len({taken.order for taken in self._observations[:observations]})

    def fitted(self, rng: np.random.Generator) -> Fitted:
        """Return a fit to all readings, or the first fit to repeat, without adopting it."""
        n = self.readings_of(self.to_repeat[0].after) if self.to_repeat else self.readings
        model, domain, data = self.mission.model, self.mission.world.domain, self.data(self.to_fit(n))
        fitted = self.fitted_to(data, self.hyperparameters, rng)
        if not self._weights_are_due(n):
            return Fitted(fitted.to_plain())
        believed = data.only(model.believed(fitted, data))
        weighted = weighted_around(fitted, model, domain, believed, rng)
        return Fitted(fitted.to_plain(), weighted.to_plain())

    def to_fit(self, n: int) -> Indices:
        """Return the positions of readings among the first n to which hyperparameters are fitted."""
        most = n if self.mission.world.sensor.along is None else min(n, _MOST_FITTED)
        return np.linspace(0, n - 1, most).round().astype(np.intp)

    def fitted_to(self, data: Data, start: Hyperparameters, rng: np.random.Generator) -> Hyperparameters:
        """Return hyperparameters fitted to some of the readings, from those of an earlier fit on."""
        return self.mission.model.fitted(
            start,
            self.mission.world.domain,
            self.mission.question,
            data,
            rng,
            noise_varies=data.sensor.varies
            or data.sensor.along is not None
            or bool(len(self._earlier.values)),
        )

    def _weights_are_due(self, n: int) -> bool:
        """Return True if a fit to n readings is to record weighted hyperparameters, too.

        That is if new ones were drawn since the latest record, or are due.
        """
        before = [self.readings_of(fit.after) for fit in self.fits if fit.weighted is not None]
        if not self.averages or not before:
            return self.averages
        if drawn_at(before[-1], n) > before[-1]:
            return True
        return not self.to_repeat and self._averaging.drawn_at(self) > before[-1]

    def refit(self, event: Fitted, asks: int) -> None:
        """Adopt a fit that was made when `asks` orders had been issued; the first one to repeat, if any."""
        after = len(self._observations)
        if self.to_repeat:
            repeated = self.to_repeat.pop(0)
            after, asks = repeated.after, repeated.asks
        domain = self.mission.world.domain
        fitted = Hyperparameters.from_plain(event.hyperparameters, domain)
        weighted = None
        if event.weighted is not None:
            weighted = WeightedHyperparameters.from_plain(event.weighted, fitted, domain)
        self.fits.append(Fit(after, asks, fitted, weighted))
        if self.mission.world.sensor.along is not None:
            self._averaging = Averaging()  # its readings are pooled anew
        self._learn_again()

    def correct(self, event: Observation) -> None:
        """Put an observation with the right readings in the place of the one with the wrong ones."""
        parts = [(taken.order, taken.part) for taken in self._observations]
        corrected = parts.index((event.order, event.part))
        self._observations[corrected] = self._take_usable(event)
        self._averaging = Averaging()
        seen_by = [fit for fit in self.fits if fit.after > corrected]
        self.fits = [fit for fit in self.fits if fit.after <= corrected]
        self._learn_again()
        again = [*seen_by, *self.to_repeat]
        self.to_repeat = [fit for fit in again if self.readings_of(fit.after) >= LEAST_READINGS]

    def readings_of(self, observations: int) -> int:
        """Return how many readings the model had after the first observations, earlier ones included."""
        return self._ends[observations]

    def _learn_again(self) -> None:
        """Learn all observations from the latest fit on, or from the beginning."""
        model, domain = self.mission.model, self.mission.world.domain
        initial = model.initial(domain, self.mission.question, has_prior_mean=self.mean is not None)
        fit = self.fits[-1] if self.fits else Fit(0, 0, initial)
        self.hyperparameters = fit.hyperparameters
        usable = self._usable(self._earlier.values, self._earlier.noise_variances)
        self.left_out = int((~usable).sum())
        self._sites: list[Array] = list(self._earlier.sites[usable])
        self._values: list[float] = self._earlier.values[usable].tolist()
        self._noises: list[float] = self._earlier.noise_variances[usable].tolist()
        self._ends: list[int] = [len(self._values)]
        for taken in self._observations[: fit.after]:
            self._keep(taken)
        self.fitted_at = max(1, self._count(fit.after)) if self.fits else 0
        self._build(fit.hyperparameters)
        for taken in self._observations[fit.after :]:
            self._learn(taken)

    def learn(self, event: Observation) -> bool:
        """Add an observation's readings; return True if the model could use any of them."""
        self._observations.append(self._take_usable(event))
        return self._learn(self._observations[-1])

    def _take_usable(self, event: Observation) -> _Taken:
        good = self._usable(event.values, event.noise_variances)
        usable = event.sites[good], event.values[good], event.noise_variances[good]
        return _Taken(event.order, event.part, *usable, left_out=int((~good).sum()))

    def _keep(self, event: _Taken) -> Thinned:
        """Add readings to those of the model, without changing the belief; return what it takes."""
        cell = PIECE * self.hyperparameters.kernel.length_scales
        taken = thinned(event.sites, event.values, event.noises, cell, self.mission.world.sensor.below)
        self.left_out += event.left_out
        self._sites.extend(taken.sites)
        self._values.extend(taken.values.tolist())
        self._noises.extend(taken.noise_variances.tolist())
        self._ends.append(len(self._values))
        return taken

    def ends_after(self, n: int) -> list[int]:
        """Return after how many readings each observation ended that did after the first n.

        Of earlier readings, each counts as one.
        """
        ends = [*range(1, self._ends[0] + 1), *self._ends[1:]]
        return [end for end in dict.fromkeys(ends) if end > n]

    def _learn(self, event: _Taken) -> bool:
        taken = self._keep(event)
        if not len(taken.values):
            return False
        if (
            self._defers
            and self._observed.normal(self.hyperparameters, taken.values, taken.noise_variances).all()
        ):
            self.believed = np.ones(self.readings, dtype=bool)
            self._waiting.append(taken)
            return True
        surface, self._defers = self.surface, False
        before, self.believed = self.believed, self._judge_readings()
        if not np.array_equal(self.believed[: len(before)], before):
            self._build(self.hyperparameters)  # the new readings changed which old ones are believed
            return True
        h = self.hyperparameters
        all_values, all_noises = np.array(self._values), np.array(self._noises)
        many = self.readings >= _REVISED * self._built_with
        if many and not self._observed.normal(h, all_values, all_noises).all():
            self._build(h)  # what the new readings say about the old ones
            return True
        self._append(surface, taken, self.believed[len(before) :])
        return True

    def _append(self, surface: Surface, taken: Thinned, new: Mask | slice = slice(None)) -> None:
        """Add readings of one observation, or those of them that are believed, to the belief."""
        sites, belief = taken.sites[new], surface.belief
        y, v = self._observed.in_model_units(
            self.hyperparameters,
            taken.values[new],
            taken.noise_variances[new],
            lambda _: (belief.mean(sites), belief.covariance(sites, sites)),
        )
        surface.append(sites, y, v)

    @property
    @on_one_blas_thread
    def surface(self) -> Surface:
        """The belief over the domain's sites, in model units.

        It is brought up to date here: a replay asks for it once, not after each reading. Readings are added
        one observation after the other in any case, so that it does not matter when it is asked for.
        """
        if self._surface is None:
            self._surface = self._build_surface()
        for taken in self._waiting:
            self._append(self._surface, taken)
        self._waiting.clear()
        return self._surface

    @property
    def stated(self) -> Stated:
        """The belief from which results are stated: averaged over hyperparameters, unless they are known."""
        return self._averaging.stated(self)

    def _usable(self, values: Array, noise_variances: Array) -> Mask:
        """Return which readings (n,) the model can use."""
        return self._observed.usable(self.hyperparameters.scale, values, noise_variances)

    def noise(self, level: int = 0, surface: Surface | None = None) -> Array:
        """Return the noise variances (N,) of readings, in model units.

        At the candidates of `surface`; by default at the domain's sites.
        """
        over = self.surface if surface is None else surface
        expected = self.hyperparameters.scale.to_user(over.mean)
        declared = self.mission.world.sensor.variance(over.candidates, level)
        return self.hyperparameters.noise_to_model(self._observed.variances(declared, expected), expected)

    def _build(self, hyperparameters: Hyperparameters) -> None:
        """Begin the belief anew, from all readings; without outliers and limits, `surface` does the work."""
        self.hyperparameters = hyperparameters
        self.rebuilt = True
        self._built_with = self.readings
        self._surface, self._waiting = None, []
        self.believed = self._judge_readings()
        all_values, all_noises = np.array(self._values), np.array(self._noises)
        self._defers = self.mission.model.outliers != "tested" and bool(
            self._observed.normal(hyperparameters, all_values, all_noises).all()
        )

    def _build_surface(self) -> Surface:
        """Return the belief after the readings with which it was begun."""
        h, first = self.hyperparameters, np.flatnonzero(self.believed[: self._built_with])
        mean = None if self.mean is None else PriorMean(self.mean, h.scale)
        belief = Belief(h.kernel, prior_mean=mean)
        if len(first):
            data = self.data(first)
            y, v = self.mission.model.normal_readings(h, data)
            belief = belief.condition_on(data.sites, y, v)
        return Surface(belief, self.mission.world.domain.sites, self.mission.model.memory_bytes)

    def _judge_readings(self) -> Mask:
        if self.mission.model.outliers != "tested":
            return np.ones(self.readings, dtype=bool)
        return self.mission.model.believed(self.hyperparameters, self.data())

    def data(self, which: Mask | Indices | slice = slice(None)) -> Data:
        """Return all readings, or those at some positions, with their prior means."""
        sites = np.array(self._sites)[which]
        values, noises = np.array(self._values)[which], np.array(self._noises)[which]
        means = None
        if self.mean is not None:
            means = self.mean.values(sites) if len(sites) else np.empty(0)
        return Data(sites, values, noises, means, self.mission.world.sensor)

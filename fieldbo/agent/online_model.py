"""The model as it learns from readings: hyperparameters, believed readings, and the belief over the sites."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.belief.model import LEAST_READINGS, Hyperparameters
from fieldbo.belief.posterior import Belief
from fieldbo.belief.surface import Surface
from fieldbo.belief.thinning import places, thinned
from fieldbo.messages import Fitted, Observation
from fieldbo.mission.mission import Mission


@dataclass(frozen=True)
class Fit:
    """A fit of the model.

    Attributes
    ----------
    after : int
        Number of observations before it.
    asks : int
        Number of orders issued before it; determines its random stream.
    hyperparameters : Hyperparameters
    """

    after: int
    asks: int
    hyperparameters: Hyperparameters


class OnlineModel:
    """Extend the belief with each observation; rebuild it after a fit, or when an old reading changes sides.

    Of an observation with several readings, it takes those of `thinned`.

    A corrected reading takes the place of the wrong one. The belief is then learned again from the latest
    fit that had not seen the wrong one, and the fits that had are to be repeated (`to_repeat`), with the same
    observations and random streams. What results is, to the last bit, the model that the right reading would
    have given.

    Parameters
    ----------
    mission : Mission

    Attributes
    ----------
    surface : Surface
        The belief over the domain's sites, in model units.
    hyperparameters : Hyperparameters
    believed : (n,) bool array
        Which of the readings the model believes.
    left_out : int
        Number of readings that the model could not use: NaN, or not above 0 under a log.
    rebuilt : bool
        Whether the latest event rebuilt the belief.
    fitted_at : int
        Number of readings at the latest fit; 0 before the first.
    fits : list of Fit
        All fits that count, in order.
    to_repeat : list of Fit
        Fits to readings that were corrected since, in order; `fitted` repeats the first of them.
    """

    surface: Surface
    hyperparameters: Hyperparameters
    believed: Mask

    def __init__(self, mission: Mission) -> None:
        self.mission = mission
        self.fits: list[Fit] = []
        self.to_repeat: list[Fit] = []
        self._observations: list[Observation] = []
        self._learn_again()

    @property
    def readings(self) -> int:
        """Number of readings in the model, n: those of one order near each other count as one."""
        return len(self._values)

    @property
    def provisional(self) -> bool:
        """True until the hyperparameters are fitted for the first time."""
        return self.mission.model.every is not None and not self.fitted_at

    @property
    def fit_is_due(self) -> bool:
        """True if enough readings have arrived since the latest fit."""
        every = self.mission.model.every
        if every is None or not LEAST_READINGS <= self.readings <= self.mission.model.until:
            return False
        if self.fitted_at:
            return self.readings - self.fitted_at >= every
        # Many readings of one order at one stop say how a sensor scatters, and nothing about the field.
        orders = len({event.order for event in self._observations})
        return max(orders, places(np.array(self._sites), self.mission.world.domain)) >= LEAST_READINGS

    def fitted(self, rng: np.random.Generator) -> Fitted:
        """Return a fit to all readings, or the first fit to repeat, without adopting it."""
        n = self._usable(self.to_repeat[0].after) if self.to_repeat else self.readings
        sites, values, noises = self._arrays()
        fitted = self.mission.model.fitted(
            self.hyperparameters,
            self.mission.world.domain,
            self.mission.question,
            sites[:n],
            values[:n],
            noises[:n],
            rng,
            noise_varies=self.mission.world.sensor.varies,
        )
        return Fitted(fitted.to_plain())

    def refit(self, event: Fitted, asks: int) -> None:
        """Adopt a fit that was made when `asks` orders had been issued; the first one to repeat, if any."""
        after = len(self._observations)
        if self.to_repeat:
            repeated = self.to_repeat.pop(0)
            after, asks = repeated.after, repeated.asks
        self.fits.append(Fit(after, asks, Hyperparameters.from_plain(event.hyperparameters)))
        self._learn_again()

    def correct(self, event: Observation) -> None:
        """Put an observation with the right readings in the place of the one with the wrong ones."""
        parts = [(observation.order, observation.part) for observation in self._observations]
        corrected = parts.index((event.order, event.part))
        self._observations[corrected] = event
        seen_by = [fit for fit in self.fits if fit.after > corrected]
        self.fits = [fit for fit in self.fits if fit.after <= corrected]
        again = [*seen_by, *self.to_repeat]
        self.to_repeat = [fit for fit in again if self._usable(fit.after) >= LEAST_READINGS]
        self._learn_again()

    def _usable(self, observations: int) -> int:
        """Return how many readings the model takes of the first observations."""
        return sum(len(self._taken(event)[1]) for event in self._observations[:observations])

    def _learn_again(self) -> None:
        """Learn all observations from the latest fit on, or from the beginning."""
        model, domain = self.mission.model, self.mission.world.domain
        fit = self.fits[-1] if self.fits else Fit(0, 0, model.initial(domain, self.mission.question))
        self.hyperparameters = fit.hyperparameters
        self.left_out = 0
        self._sites: list[Array] = []
        self._values: list[float] = []
        self._noises: list[float] = []
        for event in self._observations[: fit.after]:
            self._keep(event)
        self.fitted_at = max(1, self.readings) if self.fits else 0
        self._build(fit.hyperparameters)
        for event in self._observations[fit.after :]:
            self._learn(event)

    def learn(self, event: Observation) -> bool:
        """Add an observation's readings; return True if the model could use any of them."""
        self._observations.append(event)
        return self._learn(event)

    def _taken(self, event: Observation) -> tuple[Array, Array, Array]:
        """Return the sites (k, d), values (k,) and noise variances (k,) that the model takes."""
        good = self.hyperparameters.scale.usable(event.values)
        sites, values, noises = event.sites[good], event.values[good], event.noise_variances[good]
        if not len(values):
            return sites, values, noises
        return thinned(sites, values, noises, self.mission.world.domain)[:3]

    def _keep(self, event: Observation) -> tuple[Array, Array, Array]:
        """Add the readings that the model can use to those of the model, and return them."""
        good = self.hyperparameters.scale.usable(event.values)
        self.left_out += int((~good).sum())
        sites, values, noises = self._taken(event)
        self._sites.extend(sites)
        self._values.extend(values.tolist())
        self._noises.extend(noises.tolist())
        return sites, values, noises

    def _learn(self, event: Observation) -> bool:
        scale = self.hyperparameters.scale
        sites, values, noises = self._keep(event)
        if not len(values):
            return False
        before, self.believed = self.believed, self._believed_now()
        if not np.array_equal(self.believed[: len(before)], before):
            self._build(self.hyperparameters)  # the new readings changed which old ones are believed
            return True
        new = self.believed[len(before) :]
        self.surface.append(
            sites[new],
            scale.to_model(values)[new],
            self.hyperparameters.noise_to_model(noises, values)[new],
        )
        return True

    def noise(self, level: int = 0, surface: Surface | None = None) -> Array:
        """Return the noise variances (N,) of readings, in model units.

        At the candidates of `surface`; by default at the domain's sites.
        """
        over = self.surface if surface is None else surface
        expected = self.hyperparameters.scale.to_user(over.mean)
        declared = self.mission.world.sensor.variance(over.candidates, level)
        return self.hyperparameters.noise_to_model(declared, expected)

    def _build(self, hyperparameters: Hyperparameters) -> None:
        """Build the belief from all readings."""
        self.hyperparameters = hyperparameters
        self.rebuilt = True
        self.believed = self._believed_now()
        belief = Belief(hyperparameters.kernel)
        if self.believed.any():
            sites, values, noises = (a[self.believed] for a in self._arrays())
            noise = hyperparameters.noise_to_model(noises, values)
            belief = belief.condition_on(sites, hyperparameters.scale.to_model(values), noise)
        self.surface = Surface(belief, self.mission.world.domain.sites, self.mission.model.memory_bytes)

    def _believed_now(self) -> Mask:
        if self.mission.model.outliers == "kept":
            return np.ones(self.readings, dtype=bool)
        return self.mission.model.believed(self.hyperparameters, *self._arrays())

    def _arrays(self) -> tuple[Array, Array, Array]:
        """Return sites (n, d), values and noise variances (n,) of all readings, in the user's units."""
        return np.array(self._sites), np.array(self._values), np.array(self._noises)

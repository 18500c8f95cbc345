"""The model as it learns from readings: hyperparameters, believed readings, and the belief over the sites."""

from __future__ import annotations

import numpy as np

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.belief.model import LEAST_READINGS, Hyperparameters
from fieldbo.belief.posterior import Belief
from fieldbo.belief.surface import Surface
from fieldbo.belief.thinning import places, thinned
from fieldbo.messages import Fitted, Observation
from fieldbo.mission.mission import Mission


class OnlineModel:
    """Extend the belief with each observation; rebuild it after a fit, or when an old reading changes sides.

    Of an observation with several readings, it takes those of `thinned`.

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
    """

    surface: Surface
    hyperparameters: Hyperparameters
    believed: Mask

    def __init__(self, mission: Mission) -> None:
        self.mission = mission
        self.left_out = self.fitted_at = 0
        self._sites: list[Array] = []
        self._values: list[float] = []
        self._noises: list[float] = []
        self._build(mission.model.initial(mission.world.domain, mission.question))

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
        # Many readings of few places say how a sensor scatters, and nothing about the field.
        return places(np.array(self._sites), self.mission.world.domain) >= LEAST_READINGS

    def fitted(self, rng: np.random.Generator) -> Fitted:
        """Return a fit to all readings, without adopting it."""
        fitted = self.mission.model.fitted(
            self.hyperparameters,
            self.mission.world.domain,
            self.mission.question,
            *self._arrays(),
            rng,
            noise_varies=self.mission.world.sensor.varies,
        )
        return Fitted(fitted.to_plain())

    def refit(self, event: Fitted) -> None:
        """Adopt a fit."""
        self._build(Hyperparameters.from_plain(event.hyperparameters))
        self.fitted_at = max(1, self.readings)

    def learn(self, event: Observation) -> bool:
        """Add an observation's readings; return True if the model could use any of them."""
        scale = self.hyperparameters.scale
        good = scale.usable(event.values)
        self.left_out += int((~good).sum())
        if not good.any():
            return False
        usable = event.sites[good], event.values[good], event.noise_variances[good]
        sites, values, noises, _ = thinned(*usable, self.mission.world.domain)
        self._sites.extend(sites)
        self._values.extend(values.tolist())
        self._noises.extend(noises.tolist())
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

"""Rollout: look several steps ahead with a travel score (Liu et al. 2023)."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, NonNegativeFloat, PositiveFloat

from fieldbo._numerics.arrays import Array
from fieldbo._numerics.streams import sobol
from fieldbo.belief.surface import Surface
from fieldbo.policies.acquisition import Convention
from fieldbo.policies.candidates import incumbent, reading_noise
from fieldbo.policies.contract import State
from fieldbo.policies.travel.one_step import CandidateView, Scores, TravelPolicy
from fieldbo.policies.travel.scores import ScoreName, TravelScore
from fieldbo.policies.travel.simulation import Simulation, rollout_values
from fieldbo.validation import settings

_MOST_STEPS = 50
_MOST_FANTASIES = 4096


@settings("policy")
class Rollout(TravelPolicy):
    """Take the first step worth most, assuming a base policy takes the rest (Liu et al. 2023)."""

    base: ScoreName = "dist-ucb"
    """The score that the later steps maximise and that is summed: ``mu + kappa s / d``, d the travel;
    ``mu + kappa s``; the expected improvement; or the latter per unit of cost."""
    horizon: Annotated[int, Field(ge=1, le=_MOST_STEPS)] | Literal["budget"] = 3
    """Number of steps ahead, the first one included; ``"budget"`` until nothing is affordable, at most 50.
    The time per decision grows with it."""
    fantasies: Annotated[int, Field(ge=1, le=_MOST_FANTASIES)] = 32
    """Number of readings simulated at each first step, and so of paths that begin there."""
    kappa: NonNegativeFloat = 2.0
    """Multiplier of the standard deviation in dist-ucb and ucb: weight of exploration."""
    convention: Convention = "one_plus"
    """What replaces ``1 / d`` in dist-ucb: ``1 / (1 + d / d0)``; ``1 / max(d, d0)``; or ``1 / d`` as printed,
    with staying excluded or infinitely good."""
    d0: PositiveFloat | None = None
    """Scale of short travel, in the cost unit. Default: the travel along the domain's longest side."""
    fantasy_noise: bool = True
    """Whether to draw simulated readings with their noise."""

    @property
    def travel_score(self) -> TravelScore:
        """The score of later steps."""
        return TravelScore(self.base, self.kappa, self.convention, self.d0)

    @property
    def steps(self) -> int:
        """Largest number of steps of a path."""
        return _MOST_STEPS if self.horizon == "budget" else self.horizon

    def scores(self, state: State, view: CandidateView) -> tuple[Array, Scores, dict[str, Any]]:
        """Return the candidates' values (N,) as first steps, a function for other points, and the reasons.

        Candidates that are worse than three affordable ones have minus infinity.
        """
        cost = state.cost
        assert cost is not None
        paths = Simulation(
            self.travel_score.on(cost, state.domain),
            cost,
            state.limits,
            self.steps,
            fantasy_draws(self.fantasies, self.steps, state.rng),
            self.level,
            may_stay=self.horizon != "budget",
            fantasy_noise=self.fantasy_noise,
        )
        surface = view.surface
        best = incumbent(state.surface) if paths.score.improves else -np.inf
        able = view.able if self.stop == "best_affordable" else np.ones(surface.size, dtype=bool)
        unit = view.unit(best) if paths.score.improves else 0.0
        if unit:  # the improvements of all steps underflow: only the first ones can still be compared
            paths = replace(paths, steps=1, unit=unit)
        rollouts = rollout_values(
            paths, surface, view.noise, state.position, best, able, leading_of=view.able
        )

        def elsewhere(points: Array) -> Array:
            there, every = Surface(state.belief, points), np.ones(len(points), dtype=bool)
            noise = reading_noise(state, self.level, there)
            return rollout_values(paths, surface, view.noise, state.position, best, every, there, noise).value

        why: dict[str, Any] = {"base": self.base, "horizon": self.horizon, "fantasies": self.fantasies}
        if np.isfinite(best):
            why["incumbent"] = best
        if unit:
            why["log_unit"] = unit
        return rollouts.value, elsewhere, why


def fantasy_draws(fantasies: int, steps: int, rng: np.random.Generator) -> Array:
    """Return standard normals (M, T) from a scrambled Sobol set.

    Examples
    --------
    >>> fantasy_draws(32, 3, np.random.default_rng(0)).shape
    (32, 3)
    """
    from scipy.special import ndtri

    power = (fantasies - 1).bit_length()  # Sobol points are balanced in powers of two
    points = sobol(steps, rng).random(1 << power)[:fantasies]
    return np.asarray(ndtri(np.clip(points, 1e-12, 1.0 - 1e-12)))

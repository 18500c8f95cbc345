"""A policy and a cost model for fieldbo, found by name through the entry points in pyproject.toml."""

import numpy as np
from numpy.typing import NDArray
from pydantic import NonNegativeFloat, PositiveFloat

from fieldbo.belief import LevelSet
from fieldbo.costs import CostModel
from fieldbo.policies import Decision, Memory, Policy, State, best_affordable
from fieldbo.validation import settings

Array = NDArray[np.float64]


@settings("policy")
class NearbyStraddle(Policy):
    """Sample where the straddle score is large and the site is near."""

    answers = (LevelSet,)
    costs = ("declared",)

    reach: PositiveFloat = 100.0
    """Travel cost at which a site's score counts half."""

    def suggest(self, state: State, memory: Memory) -> Decision:
        """Return the affordable site of the largest discounted score."""
        assert state.cost is not None
        scores = 1.96 * state.surface.sd - np.abs(state.surface.mean - state.threshold)
        travel = state.cost.travel(state.position, state.domain.sites)
        return best_affordable(state, np.exp(scores) / (1 + travel / self.reach), memory)


@settings("cost")
class Upwind(CostModel):
    """Straight-line travel that costs more along the first axis, against the wind."""

    rate: PositiveFloat = 1.0
    """Cost per unit of distance."""
    headwind: NonNegativeFloat = 0.5
    """Additional cost per unit of distance towards higher values of the first axis."""
    sampling: PositiveFloat = 1.0
    """Cost of a sample."""

    def travel_between(self, starts: Array, ends: Array) -> Array:
        """Return the travel costs (P, N)."""
        moves = ends[None] - starts[:, None]
        against = np.maximum(moves[..., 0], 0.0)
        return np.asarray(self.rate * np.linalg.norm(moves, axis=2) + self.headwind * against)

    def sample_at(self, sites: Array) -> Array:
        """Return the sampling costs (N,)."""
        return np.full(len(sites), self.sampling)

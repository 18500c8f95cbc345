"""Whether the readings contradict the model on which an answer rests, in one sentence.

Each reading is compared with what the model, given the readings before it, expected there. By a right model,
one in ten lies outside the central 90%, each independently of the others, wherever a policy chooses to read:
their number is binomial.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import bdtrc

from fieldbo.agent.agent import Agent
from fieldbo.belief.confidence import MIDDLE90
from fieldbo.belief.question import Optimum

_BY_CHANCE = 0.001  # probability of so many by a right model: low, because it is tested after each reading
_OUTSIDE = 0.1


class ModelCheck(NamedTuple):
    """How many readings the model did not expect.

    Attributes
    ----------
    readings : int
        Places that were read.
    outside : int
        Readings outside the central 90% of what the model expected, given those before.

    Examples
    --------
    >>> ModelCheck(60, 9).contradicted, ModelCheck(60, 19).contradicted
    (False, True)
    """

    readings: int
    outside: int

    @property
    def contradicted(self) -> bool:
        """Whether a right model would hardly ever miss so many."""
        return self.outside > 0 and bool(bdtrc(self.outside - 1, self.readings, _OUTSIDE) < _BY_CHANCE)


def model_check(agent: Agent) -> ModelCheck | None:
    """Return how many readings the present model did not expect; None before its first fit.

    None, too, where queries leave variables free, and where readings dwarf all others.
    """
    if agent.online_model.provisional or agent.blinded or agent.domain.control_sets:
        return None
    # A belief keeps its residuals whitened, each given the readings before it.
    residuals = agent.surface.belief.weights
    return ModelCheck(len(residuals), int(np.count_nonzero(np.abs(residuals) > MIDDLE90)))


def contradiction(agent: Agent) -> str | None:
    """Return that the readings contradict the model, with the figures and what to do; None if they do not."""
    check = model_check(agent)
    if check is None or not check.contradicted:
        return None
    model = agent.mission.model
    stated = "regret" if isinstance(agent.mission.question, Optimum) else "F1"
    if model.every is None:
        remedy = "let it learn from the readings (learn = true in [model])"
    elif model.noise != "learned":
        remedy = 'let it learn how noisy the sensor is (noise = "learned" in [model])'
    else:
        remedy = 'try kernel = "matern32" in [model], or transform = "log" for values above 0'
    return (
        f"the model does not fit: {check.outside} of {check.readings} readings lie outside the range where "
        f"it expected nine in ten, so its {stated} is not to be trusted; {remedy}"
    )

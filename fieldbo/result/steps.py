"""How things stood after each order."""

from __future__ import annotations

from dataclasses import dataclass, fields

from fieldbo.agent import Agent
from fieldbo.mission import Mission
from fieldbo.question import Question
from fieldbo.result.answers import ANSWERS, LevelSetAnswer, OptimumAnswer, answer_of
from fieldbo.result.truth import truth_of

_NAN = float("nan")
_SCORES = {*LevelSetAnswer.columns, *OptimumAnswer.columns}


@dataclass(frozen=True)
class Step:
    """How things stood after an order was settled; a score that does not apply is NaN.

    Attributes
    ----------
    step : int
        Number of settled orders.
    cost : float
        Spent so far, in the world's cost unit.
    remaining : float
        Left in the battery.
    time_s : float
    readings : int
    f1, precision, recall : float
        Of the sites classified as above the threshold, against the truth.
    expected_f1 : float
        By the belief.
    unclassified : float
        Share of sites whose threshold lies within 1.96 standard deviations of their mean.
    regret : float
        By how much the true value at the reported optimum falls short of the true one, in the user's unit.
    reported_value : float
        What the belief says of the value there (its median), in the user's unit.
    coverage90 : float
        Share of sites whose true value lies in the belief's central 90%; 0.9 if it is well calibrated.
    """

    step: int
    cost: float
    remaining: float
    time_s: float
    readings: int
    f1: float = _NAN
    precision: float = _NAN
    recall: float = _NAN
    expected_f1: float = _NAN
    unclassified: float = _NAN
    regret: float = _NAN
    reported_value: float = _NAN
    coverage90: float = _NAN

    @classmethod
    def columns(cls, question: Question) -> tuple[str, ...]:
        """Return the names of the attributes that apply to a question, in order.

        Examples
        --------
        >>> from fieldbo.question import Optimum
        >>> Step.columns(Optimum())
        ('step', 'cost', 'remaining', 'time_s', 'readings', 'regret', 'reported_value', 'coverage90')
        """
        mine = ANSWERS[type(question)].columns
        return tuple(f.name for f in fields(cls) if f.name in mine or f.name not in _SCORES)


class Scorer:
    """Scores an agent's belief after each order, in O(N); the truth is looked up once.

    Parameters
    ----------
    mission : Mission
    """

    def __init__(self, mission: Mission) -> None:
        self.truth = truth_of(mission.world, mission.question)

    def step(self, agent: Agent) -> Step:
        """Return how things stand now."""
        return Step(
            step=agent.steps,
            cost=agent.spent,
            remaining=sum(c.ledger.available for c in agent.crafts),
            time_s=max(c.time_s for c in agent.crafts),
            readings=agent.readings,
            **answer_of(agent.mission, agent.surface, agent.hyperparameters.scale).scores(),
        )

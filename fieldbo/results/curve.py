"""How things stood after each order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from fieldbo.agent.agent import Agent
from fieldbo.belief.question import Question
from fieldbo.mission.mission import Mission
from fieldbo.results.answers import ANSWERS, answer_of
from fieldbo.results.cell_runs import cell_of
from fieldbo.results.truth import truth_of

_NAN = float("nan")
_ALWAYS = ("step", "cost", "remaining", "time_s", "readings")


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
        By how much the true value at the reported optimum falls short of the true one, in the user's unit. In
        a box that optimum is among sites and readings; ``summary.json`` has it after a climb from there.
    reported_value : float
        What the belief says of the value there (its median), in the user's unit.
    coverage90 : float
        Share of sites whose true value lies in the belief's central 90%; 0.9 if it is well calibrated.
    movement : float
        In a chain of modules: what changes of settings have cost so far, in the cost unit.
    best_regret : float
        By how much the best true value of all samples falls short of the true optimum, in the user's unit.
    movement_regret : float
        Sum over the samples of the regret of each, and a tenth of its movement cost (Lin et al. 2021, eq. 7).
    last_play_value : float
        Among control sets: the true expected value of the play made last, in the user's unit; it may well be
        below that of an earlier one.
    simple_regret : float
        By how much the best expected value of all plays falls short of the best of any control set.
    quality_regret : float
        Sum over the plays of nine tenths of the best expected value less that of the play.
    cost_regret : float
        Sum of what plays cost on average beyond the cheapest control set that reaches nine tenths of the
        best, in the cost unit.
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
    movement: float = _NAN
    best_regret: float = _NAN
    movement_regret: float = _NAN
    last_play_value: float = _NAN
    simple_regret: float = _NAN
    quality_regret: float = _NAN
    cost_regret: float = _NAN

    @classmethod
    def columns(cls, question: Question, cell: Sequence[str] = ()) -> tuple[str, ...]:
        """Return the names of the attributes that apply to a question, in order.

        Parameters
        ----------
        question : Question
        cell : sequence of str
            Those that a cell adds: `CellRuns.columns`.

        Examples
        --------
        >>> from fieldbo.belief.question import Optimum
        >>> Step.columns(Optimum())
        ('step', 'cost', 'remaining', 'time_s', 'readings', 'regret', 'reported_value', 'coverage90')
        """
        mine = {*_ALWAYS, *ANSWERS[type(question)].columns, *cell}
        return tuple(f.name for f in fields(cls) if f.name in mine)


class Scorer:
    """Scores an agent's belief after each order, in O(N); the truth is looked up once.

    In a cell, its plays too: each is looked up once.

    Parameters
    ----------
    mission : Mission
    """

    def __init__(self, mission: Mission) -> None:
        self.truth = truth_of(mission.world, mission.question)
        self.cell = cell_of(mission)
        self._seen = 0

    def step(self, agent: Agent) -> Step:
        """Return how things stand now."""
        for event in agent.history[self._seen :]:
            issued = agent.issued.get(getattr(event, "order", ""))
            self.cell.take(None if issued is None else issued.order, event)
        self._seen = len(agent.history)
        return Step(
            step=agent.steps,
            cost=agent.spent,
            remaining=sum(c.ledger.available for c in agent.vehicles),
            time_s=max(c.time_s for c in agent.vehicles),
            readings=agent.readings,
            **answer_of(agent.mission, agent.surface, agent.hyperparameters.scale).scores(),
            **self.cell.scores(),
        )

"""The curve of a run: its state and scores after each settled order."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import bdtrc

from fieldbo.agent.agent import Agent
from fieldbo.belief.confidence import MIDDLE90
from fieldbo.belief.question import Question
from fieldbo.mission.mission import Mission
from fieldbo.results.answers import ANSWERS, answer_of
from fieldbo.results.cell_runs import cell_runs_of
from fieldbo.results.truth import truth_of

_NAN = float("nan")
_ALWAYS = ("step", "cost", "remaining", "time_s", "readings")


@dataclass(frozen=True)
class Step:
    """State and scores after an order was settled; a score that does not apply is NaN.

    Attributes
    ----------
    step : int
        Number of settled orders.
    cost : float
        Spent so far, in the world's cost unit.
    remaining : float
        Left in the present battery.
    time_s : float
    readings : int
    f1, precision, recall : float
        Of the sites classified as in the level set, against the truth.
    expected_f1 : float
        F1 that the belief expects.
    unclassified : float
        Fraction of sites whose threshold lies within 1.96 standard deviations of their mean.
    regret : float
        True optimum less the true value at the reported one, in the user's unit. In a box the reported
        optimum is the best site or reading; ``summary.json`` reports it after a climb from there.
    reported_value : float
        Posterior median at the reported optimum, in the user's unit.
    coverage90 : float
        Fraction of sites whose true value lies in the belief's central 90%; 0.9 if well calibrated.
    movement : float
        In a chain of modules: cost of all changes of settings so far, in the cost unit.
    best_regret : float
        True optimum less the best true value of all samples, in the user's unit.
    movement_regret : float
        Sum over the samples of regret plus a tenth of the movement cost (Lin et al. 2021, eq. 7).
    last_play_value : float
        Among control sets: the true expected value of the last play, in the user's unit. An earlier play may
        have been better.
    simple_regret : float
        Best expected value of any control set less the best expected value of all plays.
    quality_regret : float
        Sum over the plays of nine tenths of the best expected value less the play's.
    cost_regret : float
        Sum over the plays of the mean cost beyond that of the cheapest control set that reaches nine tenths
        of the best expected value, in the cost unit.
    battery : int
        Number of the present battery, counted from 1; with several vehicles, the largest.
    standing_still : tuple of str
        What a vehicle reports that stands still while it works, such as its battery gauge.
    contradicted : tuple of str
        That the readings contradict the model, in a sentence; empty if they do not.
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
    battery: int = 1
    standing_still: tuple[str, ...] = ()
    contradicted: tuple[str, ...] = ()

    def to_plain(self) -> dict[str, Any]:
        """Return the attributes that apply as plain data, for a record; `from_plain` is the inverse.

        Examples
        --------
        >>> Step(1, 2.0, math.inf, 3.0, 1, f1=0.5).to_plain()
        {'step': 1, 'cost': 2.0, 'remaining': 'inf', 'time_s': 3.0, 'readings': 1, 'f1': 0.5}
        """
        values = ((f.name, getattr(self, f.name), f.default) for f in fields(self))
        return {name: _plain(value) for name, value, default in values if not _same(value, default)}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Step:
        """Return a step from its plain form.

        Examples
        --------
        >>> step = Step(1, 2.0, math.inf, 3.0, 1, standing_still=("gauge",))
        >>> Step.from_plain(step.to_plain()).standing_still
        ('gauge',)
        """
        return cls(**{name: _restore(value) for name, value in plain.items()})

    @classmethod
    def columns(cls, question: Question, more: Sequence[str] = ()) -> tuple[str, ...]:
        """Return the names of the attributes that apply to a question, in order.

        Parameters
        ----------
        question : Question
        more : sequence of str
            Columns that a factory cell adds, `CellRuns.columns`, or several batteries.

        Examples
        --------
        >>> from fieldbo.belief.question import Optimum
        >>> Step.columns(Optimum())
        ('step', 'cost', 'remaining', 'time_s', 'readings', 'regret', 'reported_value', 'coverage90')
        """
        applying = {*_ALWAYS, *ANSWERS[type(question)].columns, *more}
        return tuple(f.name for f in fields(cls) if f.name in applying)


def _same(value: Any, default: Any) -> bool:
    """Return True if a value is its default, which may be NaN."""
    return bool(value == default or (value != value and default != default))  # noqa: PLR0124 - NaN


def _plain(value: Any) -> Any:
    """Return a value as JSON has it, which knows no infinity."""
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    return int(value)


def _restore(value: Any) -> Any:
    """Return a value from what `_plain` made of it."""
    return tuple(value) if isinstance(value, list) else float(value) if isinstance(value, str) else value


class Scorer:
    """Scores an agent's belief, and in a factory cell its plays, after each order.

    Scoring takes O(N). The truth is computed once, and that of each play once.

    Parameters
    ----------
    mission : Mission
    """

    def __init__(self, mission: Mission) -> None:
        self.truth = truth_of(mission.world, mission.question)
        self.cell_runs = cell_runs_of(mission)
        self._seen = 0

    def step(self, agent: Agent) -> Step:
        """Return the present state and scores of an agent."""
        for event in agent.history[self._seen :]:
            issued = agent.issued.get(getattr(event, "order", ""))
            self.cell_runs.add(None if issued is None else issued.order, event)
        self._seen = len(agent.history)
        return Step(
            step=agent.steps,
            cost=agent.spent,
            remaining=sum(v.ledger.available for v in agent.vehicles),
            time_s=max(v.time_s for v in agent.vehicles),
            readings=agent.readings,
            battery=max(v.battery_number for v in agent.vehicles),
            standing_still=tuple(dict.fromkeys(what for v in agent.vehicles for what in v.still.now)),
            contradicted=() if (sentence := contradiction(agent)) is None else (sentence,),
            **answer_of(agent.mission, *agent.stated, blinded=agent.blinded).scores(),
            **self.cell_runs.scores(),
        )

    def again(self, step: Step, agent: Agent) -> Step:
        """Return a step with its scores by the present belief, after a correction."""
        now = self.step(agent)
        kept = {name: getattr(step, name) for name in ("step", "cost", "remaining", "time_s", "battery")}
        return replace(now, **kept)


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
        return bool(bdtrc(self.outside - 1, self.readings, _OUTSIDE) < _BY_CHANCE)


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
    if model.every is None:
        remedy = "let it learn from the readings (learn = true in [model])"
    elif model.noise != "learned":
        remedy = 'let it learn how noisy the sensor is (noise = "learned" in [model])'
    else:
        remedy = 'try kernel = "matern32" in [model], or transform = "log" for values above 0'
    return (
        f"the model does not fit: {check.outside} of {check.readings} readings lie outside the range where "
        f"it expected nine in ten, so its {agent.mission.question.score} is not to be trusted; {remedy}"
    )

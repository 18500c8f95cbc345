"""When a mission's question counts as answered."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from fieldbo.belief.question import Optimum, Question
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError
from fieldbo.validation import settings

_Share = Annotated[float, Field(gt=0, lt=1)]

CONFIRMED_F1 = 0.95
"""F1 that a policy's claim to have mapped a level set has to reach, if the mission sets none."""

CONFIRMED_REGRET = 0.01
"""Share of the readings' range that the regret of a claimed optimum may reach, if the mission sets none."""


@settings("stop")
class StopRule:
    """Stop once the answer is good enough with a stated probability.

    Without `expected_f1` or `regret`, a mission lasts until its battery is spent or its policy claims to have
    the answer.

    Examples
    --------
    >>> StopRule(expected_f1=0.95).probability
    0.9
    """

    expected_f1: _Share | None = None
    """Stop once F1 is at least this, for a level set."""
    regret: _Share | None = None
    """Stop once the regret is at most this share of the range of the readings, for an optimum. If the model
    learns, what may lie where nobody has looked counts, too."""
    probability: _Share = 0.9
    """With this probability, given all readings."""
    least_readings: Annotated[int, Field(ge=1)] = 10
    """Least number of readings before the question can count as answered. Ignored if the hyperparameters are
    known."""

    def check(self, question: Question, domain: Domain) -> None:
        """Raise an `InputError` if the rule does not fit the question or the domain."""
        if self.is_set and domain.control_sets:
            raise InputError(
                "[stop] sets a goal, but some variables may be left to chance",
                expected="no goal in a domain with control sets, whose answer is a play",
                where="stop",
                fix="delete it, and limit agent.max_steps or agent.battery",
            )
        level_set = not isinstance(question, Optimum)
        given, other = ("regret", "expected_f1") if level_set else ("expected_f1", "regret")
        if getattr(self, given) is not None:
            raise InputError(
                f"{given} is set, but the question is {'a level set' if level_set else 'an optimum'}",
                expected=f"{other}, which suits the question",
                where=f"stop.{given}",
            )

    @property
    def is_set(self) -> bool:
        """Whether the mission sets a goal of its own."""
        return self.expected_f1 is not None or self.regret is not None

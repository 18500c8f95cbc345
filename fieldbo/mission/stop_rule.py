"""When a mission's question counts as answered."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from fieldbo.belief.covering import MOST_AXES, yardsticks
from fieldbo.belief.question import Optimum, Question
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError
from fieldbo.mission.amounts import Amount, amount
from fieldbo.validation import settings

_FARTHEST = "stop.farthest"
_Share = Annotated[float, Field(gt=0, lt=1)]

CONFIRMED_F1 = 0.95
"""F1 that a policy's claim to have mapped a level set has to reach, if the mission sets none."""

CONFIRMED_REGRET = 0.01
"""Share of the readings' range that the regret of a claimed optimum may reach, if the mission sets none."""


@settings("stop")
class StopRule:
    """Stop once the answer is good enough with a stated probability.

    Without `expected_f1`, `regret` or `farthest`, a mission lasts until its battery is spent or its policy
    claims to have the answer. `farthest` alone asks for the F1 or regret that such a claim has to reach.

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
    farthest: Amount | None = None
    """Largest distance of a place from the nearest reading before the question can count as answered, in the
    unit of the axes or with its own."""

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

        if self.farthest is not None:
            self._check_farthest(domain)

    def within(self, domain: Domain) -> float | None:
        """Return `farthest` in the unit of the axes; None if it is not set.

        Examples
        --------
        >>> from fieldbo.domain.axes import Axis
        >>> StopRule(farthest="0.2 km").within(Domain.grid([Axis("x", "m", 0, 900)], (10,)))
        200.0
        """
        if self.farthest is None:
            return None
        return amount(self.farthest, domain.axes[0].unit, _FARTHEST, what="the unit of the axes")

    def _check_farthest(self, domain: Domain) -> None:
        """Raise an `InputError` if the largest distance from a reading makes no sense in a domain."""
        if not (yardsticks(domain) == 1.0).all() or domain.dimension > MOST_AXES:
            raise InputError(
                f"farthest = {self.farthest}, but a distance needs axes of one unit",
                expected=f"a domain with one to {MOST_AXES} axes of the same unit and no depth",
                where=_FARTHEST,
                fix="delete it; gaps between readings count in any domain",
            )
        within, unit = self.within(domain), domain.axes[0].unit
        assert within is not None
        spacing = domain.spacing[np.isfinite(domain.spacing) & (domain.extent > 0)]
        least = float(spacing.max()) if len(spacing) else 0.0
        whole = float(np.linalg.norm(domain.extent))
        if not least <= within < whole:
            what = "closer than the sites are to each other" if within < least else "larger than the domain"
            raise InputError(
                f"farthest = {self.farthest} is {what}",
                expected=f"a distance from {least:.4g} to {whole:.4g} {unit}".rstrip(),
                where=_FARTHEST,
                fix="write a distance at which neighbouring readings would miss nothing that matters",
            )

    @property
    def is_set(self) -> bool:
        """Whether the mission sets a goal of its own."""
        return not (self.expected_f1 is None and self.regret is None and self.farthest is None)

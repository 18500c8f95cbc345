"""When a mission's question counts as answered, and when its vehicles wait."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Annotated

import numpy as np
from pydantic import Field, NonNegativeFloat

from fieldbo.belief.covering import MOST_AXES, yardsticks
from fieldbo.belief.question import Optimum, Question
from fieldbo.clock import duration_text
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError, printable
from fieldbo.messages import LONGEST_CHANNEL
from fieldbo.mission.amounts import Amount, amount
from fieldbo.validation import settings

_Name = Annotated[str, Field(max_length=LONGEST_CHANNEL)]


class Zone(IntEnum):
    """Where a value lies with respect to a hold; larger is worse."""

    CLEAR = 0
    BETWEEN = 1
    BEYOND = 2


@settings("hold")
class Hold:
    """A vehicle waits while the value of a channel is beyond a limit.

    Give either `above` or `below`.

    Examples
    --------
    >>> wind = Hold("wind", above=8, release_below=6, delay_s=60)
    >>> wind.in_words
    'above 8, until below 6 for 1 min'
    >>> [wind.zone(value).name for value in (8.1, 7.0, 5.9)]
    ['BEYOND', 'BETWEEN', 'CLEAR']
    """

    channel: Annotated[str, Field(min_length=1, max_length=LONGEST_CHANNEL)]
    """Name of the telemetry channel to watch, for example wind."""
    above: float | None = None
    """Hold at once when the value exceeds this."""
    release_below: float | None = None
    """With above: go on once the value has stayed below this; by default the value of above."""
    below: float | None = None
    """Hold at once when the value falls below this."""
    release_above: float | None = None
    """With below: go on once the value has stayed above this; by default the value of below."""
    delay_s: NonNegativeFloat = 0.0
    """How many seconds the value must stay there before the vehicle goes on."""
    latch: bool = False
    """Whether to wait for an operator to continue, whatever the value does."""
    name: _Name = ""
    """Name of the hold, by default that of the channel; two holds on one channel need two names."""

    def __post_init__(self) -> None:
        if (self.above is None) == (self.below is None):
            raise InputError(
                "neither above nor below is set" if self.above is None else "above and below are both set",
                expected="exactly one of them",
                where="hold",
                fix="write a second [[hold]], with a name, to watch the other side"
                if self.above is not None
                else "set above for a value that must not exceed a limit, such as wind; below for one that "
                "must not fall under it, such as a voltage",
            )
        key, limit, other, wrong = (
            ("release_below", self.above, "release_above", self.release_above)
            if self.above is not None
            else ("release_above", self.below, "release_below", self.release_below)
        )
        assert limit is not None
        side = "above" if self.above is not None else "below"
        if wrong is not None:
            raise InputError(
                f"{other} is set, but the hold is for values {side} a limit", expected=key, where=other
            )
        release = limit if getattr(self, key) is None else getattr(self, key)
        if release > limit if side == "above" else release < limit:
            raise InputError(
                f"{key} = {release:g}, but {side} = {limit:g}: the hold would end beyond its limit",
                expected=f"at {'most' if side == 'above' else 'least'} {limit:g}",
                where=key,
            )
        for name, text in (("channel", self.channel), ("name", self.name)):
            if text != printable(text) or text != text.strip():
                raise InputError(
                    f"{name} = {text!r}", expected="printable text without blanks around it", where=name
                )
        object.__setattr__(self, key, release)
        object.__setattr__(self, "name", self.name or self.channel)

    def zone(self, value: float) -> Zone:
        """Return where a value lies: beyond the limit, clear of it, or between."""
        sign = 1.0 if self.above is not None else -1.0
        limit, release = (
            (self.above, self.release_below) if self.above is not None else (self.below, self.release_above)
        )
        assert limit is not None
        assert release is not None
        if sign * value > sign * limit:
            return Zone.BEYOND
        return Zone.CLEAR if sign * value < sign * release else Zone.BETWEEN

    @property
    def limit_in_words(self) -> str:
        """When the vehicle has to wait: ``above 8``."""
        return f"above {self.above:g}" if self.above is not None else f"below {self.below:g}"

    @property
    def release_in_words(self) -> str:
        """When it may go on: ``below 6 for 1 min``."""
        stay = f" for {duration_text(self.delay_s)}" if self.delay_s else ""
        if self.above is not None:
            return f"below {self.release_below:g}{stay}"
        return f"above {self.release_above:g}{stay}"

    @property
    def in_words(self) -> str:
        """The whole hold: ``above 8, until below 6 for 1 min``."""
        until = "an operator continues" if self.latch else self.release_in_words
        return f"{self.limit_in_words}, until {until}"


def check_holds(holds: Sequence[Hold]) -> None:
    """Raise an `InputError` if two holds have the same name."""
    names = [hold.name for hold in holds]
    for number, hold in enumerate(holds):
        if names.index(hold.name) != number:
            raise InputError(
                f"two holds have the name {hold.name!r}",
                expected="a different name for each",
                where=f"hold[{number}].name",
                fix=f"set it, for example name = {hold.name + ' 2'!r}",
            )


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

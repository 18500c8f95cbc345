"""Automatic holds: values of a telemetry channel at which a vehicle waits, and at which it goes on."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Annotated

from pydantic import Field, NonNegativeFloat

from fieldbo.clock import duration_text
from fieldbo.errors import InputError, printable
from fieldbo.messages import LONGEST_CHANNEL
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
                f"{other} is set, but the hold is for values {side} a limit",
                expected=key,
                where=other,
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

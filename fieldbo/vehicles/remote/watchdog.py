"""The watchdog of a link: how long a robot has been silent."""

from __future__ import annotations

import math

_LONGEST = 0.25
"""The longest interval between two checks that counts in full, as a fraction of the allowed silence."""


class Watchdog:
    """Measures a robot's silence while fieldbo listens.

    When fieldbo itself is held up, as on a busy machine, it hears nothing either. Such an interval counts as
    a quarter of the allowed silence at most, so that messages that have arrived meanwhile are read first.

    All times are in seconds on one clock, the caller's.

    Parameters
    ----------
    allowed_s : float
        How long a robot may be silent.

    Attributes
    ----------
    silent_s : float
        For how long the robot has been silent.

    Examples
    --------
    >>> watchdog = Watchdog(4.0)
    >>> watchdog.reset(10.0)
    >>> watchdog.check(30.0)
    >>> watchdog.silent_s, watchdog.expired
    (1.0, False)
    """

    def __init__(self, allowed_s: float) -> None:
        self.allowed_s, self.silent_s = allowed_s, 0.0
        self._checked_s = math.inf

    def reset(self, now_s: float) -> None:
        """Start again: the robot was heard, or is to answer from now on."""
        self.silent_s, self._checked_s = 0.0, now_s

    def check(self, now_s: float) -> None:
        """Count the time since the last check."""
        passed_s = max(0.0, now_s - self._checked_s)
        self.silent_s += min(passed_s, _LONGEST * self.allowed_s)
        self._checked_s = now_s

    @property
    def expired(self) -> bool:
        """Whether the robot has been silent for longer than allowed."""
        return self.silent_s > self.allowed_s

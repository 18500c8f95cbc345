"""The life of a vehicle in a mission: its phases, and what leads from one to the next.

Whether it is paused (`VehicleState.paused_by`), and whether it was heard from lately
(`VehicleState.lost_in_a_row`), are separate from its phase.
"""

from __future__ import annotations

from enum import Enum


class Phase(Enum):
    """What a vehicle is doing."""

    WORKING = "working"
    """It gets queries."""

    TO_BATTERY = "to battery"
    """It is on its way home to another battery."""

    CHANGING = "changing"
    """It waits at home while its battery is changed."""

    HOMING = "homing"
    """Its part is over, and it is to go home, or on its way."""

    ENDED = "ended"
    """Its part is over, and it gets no further orders."""

    @property
    def over(self) -> bool:
        """Whether the vehicle's part of the mission is over: it gets no further queries."""
        return self in (Phase.HOMING, Phase.ENDED)

    @property
    def between_batteries(self) -> bool:
        """Whether the vehicle gets no queries until it has another battery."""
        return self in (Phase.TO_BATTERY, Phase.CHANGING)


class Turn(Enum):
    """What may change the phase of a vehicle."""

    SENT_TO_BATTERY = "it is sent home for another battery"
    SENT_TO_CHANGE = "it is to have its battery changed"
    CHANGED = "its battery was changed"
    SENT_HOME = "its part is over, and it is to go home"
    CAME_HOME = "it has come home"
    STOPPED = "its part is over where it is"
    REOPENED = "its part goes on after all"


_NEXT = {
    (Phase.WORKING, Turn.SENT_TO_BATTERY): Phase.TO_BATTERY,
    (Phase.WORKING, Turn.SENT_TO_CHANGE): Phase.CHANGING,
    (Phase.WORKING, Turn.SENT_HOME): Phase.HOMING,
    (Phase.WORKING, Turn.STOPPED): Phase.ENDED,
    (Phase.TO_BATTERY, Turn.SENT_TO_CHANGE): Phase.CHANGING,
    (Phase.TO_BATTERY, Turn.CHANGED): Phase.WORKING,
    (Phase.TO_BATTERY, Turn.SENT_HOME): Phase.HOMING,
    (Phase.TO_BATTERY, Turn.STOPPED): Phase.ENDED,
    (Phase.CHANGING, Turn.SENT_TO_BATTERY): Phase.TO_BATTERY,
    (Phase.CHANGING, Turn.CHANGED): Phase.WORKING,
    (Phase.CHANGING, Turn.SENT_HOME): Phase.HOMING,
    (Phase.CHANGING, Turn.STOPPED): Phase.ENDED,
    (Phase.HOMING, Turn.CAME_HOME): Phase.ENDED,
    (Phase.HOMING, Turn.STOPPED): Phase.ENDED,
    (Phase.HOMING, Turn.REOPENED): Phase.WORKING,
    (Phase.ENDED, Turn.SENT_HOME): Phase.HOMING,
    (Phase.ENDED, Turn.REOPENED): Phase.WORKING,
}
"""Where each turn leads. One that is not listed changes nothing: a trip home that is repeated, the end of a
trip to another battery, or what comes too late."""

_NEVER = {
    (Phase.HOMING, Turn.SENT_TO_BATTERY),
    (Phase.HOMING, Turn.SENT_TO_CHANGE),
    (Phase.ENDED, Turn.SENT_TO_BATTERY),
    (Phase.ENDED, Turn.SENT_TO_CHANGE),
}
"""Turns that an agent never makes: a vehicle whose part is over gets no other battery."""


def after(phase: Phase, turn: Turn) -> Phase:
    """Return the phase after a turn.

    Examples
    --------
    >>> after(Phase.WORKING, Turn.SENT_HOME)
    <Phase.HOMING: 'homing'>
    >>> after(Phase.WORKING, Turn.CAME_HOME)
    <Phase.WORKING: 'working'>
    """
    assert (phase, turn) not in _NEVER, f"{phase.value}: {turn.value}"
    return _NEXT.get((phase, turn), phase)

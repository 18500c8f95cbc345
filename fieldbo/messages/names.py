"""Names of why a run ends, and of what an operator can have it do."""

from __future__ import annotations

from enum import StrEnum


class EndReason(StrEnum):
    """Why a run ended: an answered question is distinct from a spent battery, or from time that is over.

    Records of older versions have "battery spent" where the time was over.
    """

    QUESTION_ANSWERED = "question answered"
    BATTERY_SPENT = "battery spent"
    TIME_LIMIT = "time limit"
    STEP_LIMIT = "step limit"
    STOPPED_BY_POLICY = "stopped by policy"
    STOPPED_BY_OPERATOR = "stopped by operator"
    VEHICLE_LOST = "vehicle lost"


class Action(StrEnum):
    """What an operator can have a run do while it is under way."""

    PAUSE = "pause"
    CONTINUE = "continue"
    SKIP = "skip"
    NEXT = "next"
    NO_GO = "no-go"
    BATTERY = "battery"
    HOME = "home"
    STOP = "stop"

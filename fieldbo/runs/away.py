"""For how long a run stood still: a vehicle's time goes on while no planner runs.

`time_limit_s` limits the vehicle's time, at sea for example, so the time away counts. Only the clock of the
computer tells how long it was, and that clock may have been set since: many small computers do not know the
time until a network tells them. Time away that would take more than half of what is left of a limit, or a
clock that is behind the record, is therefore not believed until somebody confirms it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from fieldbo.agent.agent import Agent
from fieldbo.agent.vehicle_state import VehicleState
from fieldbo.clock import Clock
from fieldbo.errors import InputError
from fieldbo.record.record import Record

_MUCH = 0.5
"""Time away that takes more than this fraction of what is left of a time limit needs to be confirmed."""

_BRIEF_S = 60.0
"""Time away up to this, and a clock that is behind by no more, need not be."""


@dataclass(frozen=True)
class Away:
    """How long the vehicles of a run were without a planner.

    Attributes
    ----------
    known_s : tuple of float
        What each vehicle's clock showed, as last recorded.
    written : tuple of datetime
        When that was recorded, by the computer's clock.
    last : datetime
        When the last row of the record was written.
    clock : Clock
        Counts on from now.
    begun_s : float
        What it showed when the run was resumed.
    stated_s : float or None
        How long the run stood still, as somebody stated it; None for what the computer's clock tells.
    """

    known_s: tuple[float, ...]
    written: tuple[datetime, ...]
    last: datetime
    clock: Clock
    begun_s: float
    stated_s: float | None = None

    @classmethod
    def of(cls, record: Record, agent: Agent, clock: Clock, stated_s: float | None = None) -> Away:
        """Return the time since a record was written, whose rows the agent knows."""
        rows = record.rows()
        known_s, written = [0.0] * len(agent.vehicles), [record.begun_utc] * len(agent.vehicles)
        for row in rows:
            message = row.body.get("message", {})
            if row.kind == "observation" and row.order in agent.issued:
                number = agent.issued[row.order].order.vehicle
            elif row.kind == "telemetry":
                number = message["vehicle"]
            else:
                continue
            times = [message.get("time_s"), *message.get("times_s", ())]
            known_s[number] = max([known_s[number], *(t for t in times if t is not None)])
            written[number] = row.time_utc
        last = rows[-1].time_utc if rows else record.begun_utc
        at = tuple(datetime.fromisoformat(text) for text in written)
        return cls(tuple(known_s), at, datetime.fromisoformat(last), clock, clock.boot_s(), stated_s)

    def now_s(self, vehicle: int) -> float:
        """Return the present time of a vehicle's clock, in seconds since the start of the run."""
        return self.known_s[vehicle] + max(0.0, self._passed_s(vehicle))

    def _passed_s(self, vehicle: int) -> float:
        """Return what passed since a vehicle's clock was known; less than 0 if a clock was set back."""
        if self.stated_s is None:
            return (datetime.now(UTC) - self.written[vehicle]).total_seconds()
        before_s = (self.last - self.written[vehicle]).total_seconds()
        return max(0.0, before_s) + self.stated_s + self.clock.boot_s() - self.begun_s

    def check(self, vehicles: Sequence[VehicleState]) -> None:
        """Raise an error if the time away is doubtful, and would count towards a time limit.

        Raises
        ------
        InputError
            It names the time away of each vehicle whose limit it concerns.
        """
        doubts = [] if self.stated_s is not None else list(self._doubts(vehicles))
        if not doubts:
            return
        away_s = max(0.0, (datetime.now(UTC) - self.last).total_seconds())
        raise InputError(
            "; ".join(doubts),
            expected="the time that really passed: it counts towards time_limit_s, and a clock that was set "
            "since would end the run",
            where="this computer's clock",
            fix=f"if the clock is right, confirm it: fieldbo resume RUN --away {math.ceil(away_s)}; if not, "
            'say how long the run stood still, such as --away "20 min" (away_s in Python)',
        )

    def _doubts(self, vehicles: Sequence[VehicleState]) -> list[str]:
        doubts = list[str]()
        for number, vehicle in enumerate(vehicles):
            passed_s, left_s = self._passed_s(number), vehicle.time_ledger.left
            if vehicle.spec.time_limit_s is None or left_s <= 0:
                continue
            whose = f"vehicle {number}: " if len(vehicles) > 1 else ""
            if passed_s < -_BRIEF_S:
                doubts.append(f"{whose}the clock is {-passed_s:,.0f} s behind the end of the record")
            elif passed_s > max(_BRIEF_S, _MUCH * left_s):
                doubts.append(
                    f"{whose}{passed_s:,.0f} s have passed since the run was stopped, and {left_s:,.0f} s of "
                    f"the time limit of {vehicle.spec.time_limit_s:,.0f} s were left"
                )
        return doubts

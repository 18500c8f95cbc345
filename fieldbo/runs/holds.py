"""Automatic holds: pause a vehicle while a channel of its telemetry is beyond a limit of the mission.

Whether a vehicle is held is for the agent to say, which a record restores: see `VehicleState.paused_by`. A
watch only remembers since when a value has been clear of the limit, which a resumed run observes again.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace

from fieldbo.agent.agent import Agent
from fieldbo.agent.steering import concerned
from fieldbo.messages import Action, Command, Telemetry
from fieldbo.mission.rules import Hold, Zone

_SILENT_S = 120.0
"""Time without a value after which an operator may end a hold: its sensor may be broken."""


@dataclass
class _Watch:
    """What one hold makes of the telemetry of one vehicle.

    Attributes
    ----------
    hold : Hold
    value : float
        The latest value; NaN before the first.
    heard_s : float
        When it was heard, or else the time of the first telemetry; NaN before that.
    now_s : float
        Time of the latest telemetry.
    clear_s : float
        Since when the values have been clear of the limit; NaN if they are not.
    refused : bool
        Whether a pause was refused since the value was last clear: it is recorded once, and tried again.
    """

    hold: Hold
    value: float = math.nan
    heard_s: float = math.nan
    now_s: float = math.nan
    clear_s: float = math.nan
    refused: bool = False

    def take(self, telemetry: Telemetry) -> bool:
        """Take the channel's value; return False if the telemetry has none."""
        self.now_s = telemetry.time_s
        value = (telemetry.channels or {}).get(self.hold.channel)
        if value is None:
            self.heard_s = self.now_s if math.isnan(self.heard_s) else self.heard_s
            return False
        self.value, self.heard_s = value, self.now_s
        if self.hold.zone(value) is not Zone.CLEAR:
            self.clear_s = math.nan
            return True
        self.refused = False
        if not self.clear_s <= self.now_s:  # NaN, or a clock that was set back
            self.clear_s = self.now_s
        return True

    @property
    def is_beyond(self) -> bool:
        """Whether the latest value is beyond the limit."""
        return self.hold.zone(self.value) is Zone.BEYOND

    @property
    def may_go_on(self) -> bool:
        """Whether the value that was just heard, and those before it, have been clear for long enough."""
        return self.heard_s - self.clear_s >= self.hold.delay_s and not self.hold.latch

    @property
    def objection(self) -> str:
        """Why an operator can't end the hold now; empty if one can."""
        if self.now_s - self.heard_s > _SILENT_S:
            return ""
        if math.isnan(self.value):
            return f"nothing was heard from {self.hold.channel} yet"
        return f"{self.hold.channel} is {self._shown}" if self.is_beyond else ""

    @property
    def _shown(self) -> str:
        return f"{self.value:.4g}, {self.hold.limit_in_words}"

    @property
    def why(self) -> str:
        """Who gives the commands, and why, for people."""
        if self.is_beyond:
            return f"hold: {self.hold.channel} {self.value:.4g} {self.hold.limit_in_words}"
        return f"hold: {self.hold.channel} {self.hold.release_in_words}"


class Holds:
    """The holds of a run.

    Parameters
    ----------
    agent : Agent
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._watches = [{hold.name: _Watch(hold) for hold in agent.mission.holds} for _ in agent.vehicles]

    def take(self, telemetry: Telemetry) -> Iterator[Command]:
        """Yield the commands that a vehicle's telemetry calls for; obey each before the next.

        A vehicle that an operator has sent home, or whose part is over, is not held.
        """
        state = self._agent.vehicles[telemetry.vehicle]
        for name, watch in self._watches[telemetry.vehicle].items():
            heard = watch.take(telemetry)
            if not heard or state.phase.over:
                continue
            held = name in state.paused_by
            if held and watch.may_go_on:
                yield self._command(Action.CONTINUE, telemetry.vehicle, watch)
            elif not held and watch.is_beyond:
                pause = self._command(Action.PAUSE, telemetry.vehicle, watch)
                refused = bool(self._agent.completed(pause).refused)
                if not (refused and watch.refused):
                    yield pause
                watch.refused = refused

    def _command(self, action: Action, vehicle: int, watch: _Watch) -> Command:
        return Command(uuid.uuid4().hex, action, vehicle=vehicle, hold=watch.hold.name, by=watch.why)

    def named(self, command: Command) -> list[Command]:
        """Return a command with the names of the holds that it ends, one command for each.

        An operator who continues ends the holds of a vehicle that is not paused by an operator, unless the
        value of one is beyond its limit: then the command is returned with that as the reason for refusal.
        """
        valid = command.vehicle is None or command.vehicle < len(self._agent.vehicles)
        if command.action is not Action.CONTINUE or command.hold or not valid:
            return [command]
        states = concerned(self._agent, command)
        if any("" in state.paused_by for state in states):
            return [command]
        watches = [
            self._watches[number][name]
            for number, state in enumerate(self._agent.vehicles)
            if command.vehicle in (None, number)
            for name in sorted(state.paused_by)
        ]
        objections = list(dict.fromkeys(watch.objection for watch in watches if watch.objection))
        if objections:
            return [replace(command, refused=f"{'; '.join(objections)}; wait until that is over; or: home")]
        names = list(dict.fromkeys(watch.hold.name for watch in watches))
        return [
            replace(command, hold=name, id=command.id if not k else f"{command.id}-{k}")
            for k, name in enumerate(names)
        ] or [command]

"""What the simulated vehicle on MAVLink announces itself as: ArduPilot or PX4, on a boat or a copter, say."""

from __future__ import annotations

from dataclasses import dataclass

from fieldbo.vehicles.mavlink.settings import MavlinkSettings

_TYPES = {"plane": 1, "copter": 2, "rover": 10, "boat": 11, "submarine": 12}
"""MAV_TYPE."""

_ARDUPILOT, _PX4 = 3, 12
"""MAV_AUTOPILOT."""

_MODES = {
    "plane": (15, 12, "LOITER"),
    "copter": (4, 5, "LOITER"),
    "rover": (15, 4, "HOLD"),
    "boat": (15, 4, "HOLD"),
    "submarine": (4, 16, "POSHOLD"),
}
"""ArduPilot's numbers of GUIDED, and of the mode in which the vehicle stays in place; that mode's name."""

_OFFBOARD = 6 << 16
_PX4_HOLD = (4 << 16) | (3 << 24)
"""PX4's custom modes: the main mode, and the sub-mode above it."""


@dataclass(frozen=True)
class Autopilot:
    """An autopilot as its heartbeats show it.

    Attributes
    ----------
    kind, vehicle : int
        MAV_AUTOPILOT and MAV_TYPE.
    guided, hold : int
        Custom modes: the one in which it goes where it is told, and the one in which it stays in place.
    names : tuple of str
        Of both.
    repositions_in : int
        The custom mode in which it obeys MAV_CMD_DO_REPOSITION.
    """

    kind: int
    vehicle: int
    guided: int
    hold: int
    names: tuple[str, str]
    repositions_in: int

    @classmethod
    def of(cls, link: MavlinkSettings) -> Autopilot:
        """Return the autopilot that a vehicle file names, by default ArduPilot on a boat.

        Examples
        --------
        >>> Autopilot.of(MavlinkSettings(firmware="px4", vehicle="copter")).names
        ('OFFBOARD', 'HOLD')
        """
        name = link.vehicle or "boat"
        if link.firmware == "px4":
            return cls(_PX4, _TYPES[name], _OFFBOARD, _PX4_HOLD, ("OFFBOARD", "HOLD"), _PX4_HOLD)
        guided, hold, stays = _MODES[name]
        return cls(_ARDUPILOT, _TYPES[name], guided, hold, ("GUIDED", stays), guided)

    def requested(self, main: float, sub: float) -> int | None:
        """Return the custom mode that MAV_CMD_DO_SET_MODE asks for; None for one that it does not have."""
        mode = int(main) if self.kind == _ARDUPILOT else (int(main) << 16) | (int(sub) << 24)
        return mode if mode in (self.guided, self.hold) else None

    def name(self, mode: int) -> str:
        """Return the name of one of its modes."""
        return self.names[mode == self.hold]

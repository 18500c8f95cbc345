"""A link to a boat, drone or submarine whose autopilot speaks MAVLink 2, such as ArduPilot or PX4.

fieldbo acts as a ground station that guides the vehicle: it repeatedly sends the place to go to, since nobody
acknowledges it, and takes the vehicle's position, battery and readings from the messages that it streams.
`fieldbo.vehicles.mavlink.station` describes when fieldbo has control, and when a pilot has.
"""

from __future__ import annotations

from typing import ClassVar

from fieldbo.domain.frame import Ground
from fieldbo.errors import VehicleError
from fieldbo.mission.mission import Mission
from fieldbo.validation import settings
from fieldbo.vehicles.mavlink.settings import MavlinkSettings, located
from fieldbo.vehicles.remote.link import Connection, Link, OnReport


@settings("link")
class Mavlink(MavlinkSettings, Link):
    """A link to a vehicle whose autopilot speaks MAVLink 2."""

    reports: ClassVar[bool] = False
    follows_routes: ClassVar[bool] = False
    needs_origin: ClassVar[bool] = True

    def open(self, mission: Mission, ground: Ground | None, on_report: OnReport) -> Connection:
        """Start to listen and to send heartbeats; return at once.

        Raises
        ------
        VehicleError
            pymavlink is not installed, the domain's place is unknown, or the sensor has several settings.
        """
        ground = located(ground, mission.world.domain.axes)
        if mission.world.sensor.settings > 1:
            raise VehicleError(
                f"the sensor of {mission.world.name} has {mission.world.sensor.settings} settings, "
                "but MAVLink offers no way to select one"
            )
        from fieldbo.vehicles.mavlink.station import GroundStation

        return GroundStation(self, ground, on_report)

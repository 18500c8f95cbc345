"""A link to a boat, drone or submarine whose autopilot speaks MAVLink 2, such as ArduPilot or PX4.

fieldbo acts as a ground station that guides the vehicle: it repeatedly sends the place to go to, since nobody
acknowledges it, and takes the vehicle's position, battery and readings from the messages that it streams.
`fieldbo.vehicles.mavlink.station` describes when fieldbo has control, and when a pilot has.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from fieldbo.domain.domain import Domain
from fieldbo.domain.frame import Ground
from fieldbo.errors import VehicleError
from fieldbo.mission.mission import Mission
from fieldbo.validation import settings
from fieldbo.vehicles.mavlink.fence_check import check_geofence, describe_geofence
from fieldbo.vehicles.mavlink.fence_storage import simplified, storable, whole_world
from fieldbo.vehicles.mavlink.geofence import GeoFence, geofence
from fieldbo.vehicles.mavlink.return_home import from_sites
from fieldbo.vehicles.mavlink.settings import MavlinkSettings
from fieldbo.vehicles.mavlink.stance import describe_stance, faced, located, places_armed, stance_doubts
from fieldbo.vehicles.remote.link import Capacity, Connection, Link, OnReport
from fieldbo.vehicles.remote.track import Fixes

_FRAME_BYTES, _SIGNATURE_BYTES = 12, 13
"""Bytes of a message around its payload, and of its signature, if any."""


@settings("link")
class Mavlink(MavlinkSettings, Link):
    """A link to a vehicle whose autopilot speaks MAVLink 2."""

    reports: ClassVar[bool] = False
    follows_routes: ClassVar[bool] = False
    needs_origin: ClassVar[bool] = True
    battery_in: ClassVar[Literal["percent", "either"]] = "percent"

    def open(self, mission: Mission, ground: Ground | None, on_report: OnReport) -> Connection:
        """Start to listen and to send heartbeats; return at once.

        Raises
        ------
        VehicleError
            pymavlink is not installed, the domain's place is unknown, or the sensor has several settings.
        InputError
            The fence contradicts the world or the mission, or has more points than the autopilot stores; or
            `yaw` points away from the wall.
        """
        fence = self.guarding(self.geofence(mission, ground), mission)
        if mission.world.sensor.settings > 1:
            raise VehicleError(
                f"the sensor of {mission.world.name} has {mission.world.sensor.settings} settings, "
                "but MAVLink offers no way to select one"
            )
        from fieldbo.vehicles.mavlink.station import GroundStation

        _ = self.signing_key  # raises an error here rather than in the station's thread
        check_geofence(fence, mission)
        return GroundStation(faced(self, fence.ground), fence, Fixes(mission), on_report)

    def capacity(self, domain: Domain) -> Capacity | None:
        """Return what is left next to positions at 5 Hz, heartbeats and the battery at 1 Hz."""
        bytes_per_s, key = self.bytes_per_s, "bytes_per_s"
        if bytes_per_s is None and self.serial:
            bytes_per_s, key = self.baud / 10.0, "baud"
        if bytes_per_s is None:
            return None
        around = _FRAME_BYTES + (0 if self.signing_key_from is None else _SIGNATURE_BYTES)
        others = 5 * (around + 28) + (around + 9) + (around + 54)
        return Capacity(bytes_per_s - others, around + 18, key)

    def placed(self, ground: Ground | None, domain: Domain) -> Ground | None:
        """Return where the vehicle's sites lie: at the distance that it keeps from a wall."""
        if ground is None or ground.origin is None:
            return ground
        return located(ground, domain.axes, self)

    def check(self, mission: Mission, ground: Ground | None) -> list[str]:
        """Return what contradicts the world's costs, or the heights; the fence must fit the mission."""
        if ground is not None and ground.origin is not None:
            check_geofence(self.geofence(mission, ground), mission)
        return stance_doubts(self, ground, mission)

    def describe(self, mission: Mission, ground: Ground | None) -> list[str]:
        """Return the heading, the heights and the fence, and what the autopilot does by itself."""
        whole = self.geofence(mission, ground)
        fence = self.guarding(whole, mission)
        return [
            *describe_stance(faced(self, fence.ground), fence.ground, mission),
            *describe_geofence(fence, mission, self),
            *(f"  fence     {line}" for line in simplified(whole, fence, self)),
            *(f"warning: {warning}" for warning in from_sites(mission, fence)),
        ]

    def geofence(self, mission: Mission, ground: Ground | None) -> GeoFence:
        """Return the fence of a mission whose axes lie on `ground`.

        Raises
        ------
        VehicleError
            Where the domain lies is unknown.
        InputError
            The world and the vehicle file have no area in common, or several; `stand_off` does not fit the
            world; or relative heights count from several places.
        """
        axes = mission.world.domain.axes
        return geofence(mission, located(ground, axes, self, places_armed(mission)), self.fence)

    def guarding(self, fence: GeoFence, mission: Mission) -> GeoFence:
        """Return the fence for guided flight: as the autopilot stores it, if it is uploaded.

        Raises
        ------
        InputError
            The autopilot does not store it, even with as few points as the mission's routes allow.
        """
        if not self.upload_fence:
            return fence
        otherwise = "or set upload_fence = false; the fence of a plan needs to hold only its own route"
        return storable(fence, self, whole_world(mission, fence), otherwise)

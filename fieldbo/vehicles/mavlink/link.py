"""A link to a boat, a drone or a submarine that speaks MAVLink 2, as ArduPilot and PX4 do.

fieldbo is a ground station that guides: it sends places to go to, again and again, since nobody acknowledges
them; and takes where the vehicle is, what its battery holds and what its sensor reads from what it streams.
`fieldbo.vehicles.mavlink.station` says when it has the vehicle, and when a pilot has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from fieldbo.domain.axes import Axis
from fieldbo.domain.frame import Ground, example
from fieldbo.errors import InputError, VehicleError
from fieldbo.mission.mission import Mission
from fieldbo.vehicles.mavlink.fence import Fence
from fieldbo.vehicles.remote.link import Connection, Hear, Link

_SCHEMES = ("udpin", "udpout", "tcp")
_SERIAL = ("/dev/", "COM")


@dataclass(frozen=True)
class Mavlink(Link):
    """How a vehicle is reached by MAVLink.

    Parameters
    ----------
    connection : str
        ``udpin:0.0.0.0:14550`` to listen, ``udpout:HOST:PORT`` or ``tcp:HOST:PORT`` to call, or a serial port
        such as ``/dev/ttyUSB0``.
    reading : str
        The name, of at most 10 letters, of the NAMED_VALUE_FLOAT that is read; in the world's unit.
    system, component : int
        The vehicle's number, and its autopilot's.
    own_system : int
        fieldbo's number as a ground station, which no other one has.
    altitude : {"absolute", "relative"}
        From where the frame's altitude counts: sea level, or where the vehicle was armed (its home).
    battery : int
        Which battery, where there are several.
    baud : int
        Of a serial port.
    fence : Fence, optional
        Waypoints that lie, or lead, out of it are refused. Any of its keys may be left out:
        ``{ corners = [[47.2, 8.5], [47.2, 8.7], [47.4, 8.6]], lowest = 380, highest = 420, radius = 2000 }``.
    """

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012
    reports: ClassVar[bool] = False
    needs_origin: ClassVar[bool] = True

    connection: str = "udpin:0.0.0.0:14550"
    reading: str = "reading"
    system: int = 1
    component: int = 1
    own_system: int = 254
    altitude: Literal["absolute", "relative"] = "absolute"
    battery: int = 0
    baud: int = 57_600
    fence: Fence | None = None

    def __post_init__(self) -> None:
        scheme, _, rest = self.connection.partition(":")
        if not (self.serial or (scheme in _SCHEMES and _is_host_and_port(rest))):
            raise InputError(
                f"connection = {self.connection!r}",
                expected="udpin:0.0.0.0:14550, udpout:HOST:PORT, tcp:HOST:PORT or a serial port",
                where="link.connection",
            )
        if not 1 <= len(self.reading.encode()) <= 10:
            raise InputError(
                f"reading = {self.reading!r}",
                expected="the name of a NAMED_VALUE_FLOAT, 1 to 10 letters",
                where="link.reading",
            )
        for name in ("system", "component", "own_system"):
            if not 1 <= getattr(self, name) <= 255:
                raise InputError(f"{name} = {getattr(self, name)}", expected="1 to 255", where=f"link.{name}")
        if self.own_system == self.system:
            raise InputError(
                f"own_system = {self.own_system}, the vehicle's own number",
                expected="another number than system",
                where="link.own_system",
            )

    @property
    def address(self) -> str:
        """Where the vehicle is to be found."""
        return f"{self.connection}, system {self.system}"

    @property
    def serial(self) -> bool:
        """Whether it is reached by a serial port."""
        return self.connection.startswith(_SERIAL)

    def open(self, mission: Mission, ground: Ground | None, hear: Hear) -> Connection:
        """Begin to listen and to give signs of life; return at once.

        Raises
        ------
        VehicleError
            pymavlink is missing, it is not known where the domain lies, or the sensor has several settings.
        """
        ground = located(ground, mission.world.domain.axes)
        if mission.world.sensor.settings > 1:
            raise VehicleError(
                f"the sensor of {mission.world.name} has {mission.world.sensor.settings} settings, "
                "and MAVLink has no way to choose one"
            )
        from fieldbo.vehicles.mavlink.station import GroundStation

        return GroundStation(self, ground, hear)


def _is_host_and_port(text: str) -> bool:
    host, _, port = text.rpartition(":")
    return bool(host) and ":" not in host and port.isdecimal() and 0 < int(port) < 65_536


def located(ground: Ground | None, axes: Sequence[Axis]) -> Ground:
    """Return where the domain lies.

    Raises
    ------
    VehicleError
        Nothing says so.
    """
    if ground is None or ground.origin is None:
        raise VehicleError(
            "a MAVLink vehicle goes by latitude and longitude, and nothing says where the domain lies\n"
            f"  fix:      add to the vehicle file, with a place of your own:\n\n{example(axes)}"
        )
    return ground

"""The contract of a link: what a middleware must do to carry goals to a robot and its reports back.

A kind of link is a frozen dataclass of settings, the ``[link]`` table of a vehicle file, that can be opened.
It only translates. `Remote` does the rest once for all kinds: it watches for silence, gives up in time, sends
each order once, and works out what an order cost and where a reading belongs.

Robots come in two sorts:

- A robot that *reports* receives a goal with an id and answers with the outcome of that id: a `GoalResult`
  or a `GoalRejected`.
- A robot that *streams* receives a place to go to, and continuously sends its position (`PositionReport`)
  and what its sensor measures (`Reading`). `Remote` detects that it has arrived.

=================  =======================================================  =======  =======
message            meaning                                                  reports  streams
=================  =======================================================  =======  =======
`Heartbeat`        the robot's program is alive                             yes      yes
`PositionReport`   where the robot is                                       if any   yes
`BatteryReport`    what is left in its battery                              if any   if any
`Reading`          what its sensor measures now                             no       yes
`ChannelReport`    another quantity, such as the wind                       if any   if any
`GoalResult`       the outcome of a goal, or of a part of it                yes      no
`GoalRejected`     the robot does not carry out a goal                      yes      if any
`Unreachable`      the middleware knows that the robot is gone              if any   if any
`Reconnected`      the robot was away and may have forgotten its goal       if any   if any
`Taken`            another planner has claimed the robot                    if any   if any
`Doubt`            what the robot sends is not used as it stands            if any   if any
=================  =======================================================  =======  =======
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.domain.domain import Domain
from fieldbo.domain.frame import Ground
from fieldbo.errors import printable
from fieldbo.mission.mission import Mission


@dataclass(frozen=True, eq=False)
class Goal:
    """An order in the form that a robot receives.

    Attributes
    ----------
    id : str
        Identifies this goal on every robot and for all time. The same id again is the same goal: a robot
        that is working on it continues, and a robot that has finished it repeats its answer.
    site : (d,) array
        Where to go, in the domain's axes and units; NaN where a variable is left free.
    controls : (d,) bool array or None
        Which variables to set; None for all.
    level : int
        Which of the sensor's levels to use.
    home : bool
        Whether this is the trip home, on which the robot need not sample.
    seconds : float
        Declared duration; NaN if unknown.
    route : (k, d) array
        The points to pass in turn, in straight legs from where the robot is; the last one is the site. One
        point if the route is straight, none if variables are left free.
    planner_silence_s : float
        Seconds of silence from fieldbo after which the robot acts on its own; NaN for never.
    return_route : (k, d) array
        What the robot then does: with points, it finishes this goal and passes them in turn, the last one
        being home; without, it stays in place.
    """

    id: str
    site: Array
    controls: Mask | None = None
    level: int = 0
    home: bool = False
    seconds: float = float("nan")
    route: Array = field(default_factory=lambda: np.empty((0, 0)))
    planner_silence_s: float = float("nan")
    return_route: Array = field(default_factory=lambda: np.empty((0, 0)))


@dataclass(frozen=True)
class Heartbeat:
    """The robot's own program is alive.

    All reports but `Unreachable`, `ChannelReport` and `Doubt` imply this.
    """


@dataclass(frozen=True)
class Unreachable:
    """The middleware knows that the robot cannot be reached, before the watchdog notices the silence."""

    why: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "why", printable(self.why))


@dataclass(frozen=True)
class Reconnected:
    """The robot, or the link to it, is back, and the goal under way may be lost: send it again.

    Links must not repeat a goal by themselves: its route begins where the robot was.
    """


@dataclass(frozen=True)
class Taken(Unreachable):
    """Another planner has claimed the robot or this link, or the link rejects the login; nothing is sent.

    It ends an attempt to connect at once.
    """

    fix: str


@dataclass(frozen=True)
class Doubt:
    """The link does not use what the robot sends, or not as it stands; say each doubt once.

    It is no sign of life: report a `Heartbeat` as well where the message is one.

    Attributes
    ----------
    about : str
        What the message was to tell: the robot's position, or its battery.
    why : str
        What came, and what was expected.
    fix : str
        What to do about it.
    """

    about: Literal["position", "battery"]
    why: str
    fix: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "why", printable(self.why))
        object.__setattr__(self, "fix", printable(self.fix))


@dataclass(frozen=True, eq=False)
class PositionReport:
    """The robot's position (d,), in the domain's axes and units."""

    position: Array


@dataclass(frozen=True)
class BatteryReport:
    """What is left in the robot's battery: a fraction of full (0 to 1), or in the world's cost unit.

    None or NaN if it is not known; infinity if the robot gave something that is not a number.
    """

    share: float | None = None
    amount: float | None = None


@dataclass(frozen=True)
class Reading:
    """What a streaming robot's sensor measures now, in the world's unit."""

    value: float


@dataclass(frozen=True)
class ChannelReport:
    """The value of a telemetry channel now: NaN if unknown, infinity for what is not a number.

    It is no sign of life of the robot: a weather station may have measured it.
    """

    name: str
    value: float


@dataclass(frozen=True)
class GoalRejected:
    """The robot does not carry out the goal with the id `goal`; nothing moved."""

    goal: str
    reason: str


@dataclass(frozen=True, eq=False)
class GoalResult:
    """The outcome of a goal, or of a part of it, with the robot's numbers as received, plausible or not.

    Attributes
    ----------
    goal : str
        Id of the goal.
    position : (d,) array
        Where the robot is now.
    sites : (k, d) array
        Where each reading was taken; k = 0 if there is none.
    values : (k,) array
        The readings, in the world's unit.
    seconds : (k,) array
        When each was taken: seconds since the goal began, by the robot's clock.
    cost : float
        What this part cost, in the world's cost unit; NaN if the robot does not know, infinity if it gave
        something that is not a number.
    duration_s : float
        How long this part took; NaN if the robot does not know.
    part : int
        Number of this part, from 0.
    last : bool
        Whether this part is the last.
    complete : bool
        False if the goal was cut short.
    channels : mapping of str to (k,) array or None
        Other quantities measured at the same sites.
    noise_variances : (k,) array or None
        Variances of the readings' noise, if the robot or its link knows them; they count where they are
        larger than the sensor's.
    corrects : bool
        Whether this part was reported before with wrong values. Only the values count then; there must be as
        many as before.
    """

    goal: str
    position: Array
    sites: Array
    values: Array
    seconds: Array
    cost: float = float("nan")
    duration_s: float = float("nan")
    part: int = 0
    last: bool = True
    complete: bool = True
    channels: Mapping[str, Array] | None = None
    noise_variances: Array | None = None
    corrects: bool = False


@dataclass(frozen=True)
class Capacity:
    """What a link carries of readings on the way.

    Examples
    --------
    >>> Capacity(bytes_per_s=1200.0, reading_bytes=120).readings_per_s
    10.0
    """

    bytes_per_s: float
    """Bytes per second that are left for readings."""
    reading_bytes: int
    """Bytes that one reading takes."""
    key: str = "bytes_per_s"
    """The key in [link] that states what the link carries."""

    @property
    def readings_per_s(self) -> float:
        """How many readings the link carries per second."""
        return max(0.0, self.bytes_per_s) / self.reading_bytes


Report = (
    Heartbeat
    | Unreachable
    | Reconnected
    | Doubt
    | PositionReport
    | BatteryReport
    | Reading
    | ChannelReport
    | GoalRejected
    | GoalResult
)
OnReport = Callable[[Report], None]
"""Takes a report; may be called from any thread, and never blocks."""


class Connection(ABC):
    """An open link. All methods return at once; they are called from one thread, never after `close`."""

    delivery_s: ClassVar[float] = 2.0
    """How long a hold may stay unsent before it is reported as undelivered."""

    @abstractmethod
    def go(self, goal: Goal) -> None:
        """Send a goal, which replaces the one under way unless it has the same id.

        If the link is down, report `Reconnected` when it is back: the goal is then sent again.
        """

    @abstractmethod
    def cancel(self, goal: str) -> None:
        """Have the robot abandon the goal with this id, whether or not it knows the id.

        A robot that reports answers with a `GoalResult` that is not complete, even if it had not begun.
        """

    @abstractmethod
    def hold(self) -> None:
        """Have the robot stay in place, and drop whatever waits for the link to come back."""

    def claim(self, session: str, mission: str) -> None:
        """Claim the robot for this planner, if the middleware has a way to; called once, before any goal.

        While another planner's claim stands, report it as `Taken` and send nothing.

        Parameters
        ----------
        session : str
            Identifies the run. A claim of the same session is this planner's own, from before a restart.
        mission : str
            Name of the mission, for people.
        """

    @property
    def claimed(self) -> bool:
        """Whether the claim is held, or needs none; goals wait for it."""
        return True

    def unsent(self) -> str:
        """Return why the last request has not been sent; empty if it has, or if that cannot be known."""
        return ""

    @abstractmethod
    def close(self) -> None:
        """Release threads and sockets within a second or two; leave the robot as it is."""

    def ask(self, goal: str) -> bool:
        """Ask for the outcome of a goal of an earlier connection.

        A robot that remembers the goal reports its outcome again.

        Returns
        -------
        bool
            Whether this kind of link supports the question at all.
        """
        return False


class Link(ABC):
    """Settings of one kind of link to a robot; subclass it to support another middleware.

    Write a frozen dataclass of settings (`fieldbo.validation.settings` checks them) and implement `open` and
    `address`. To use it as ``kind = "NAME"`` in vehicle files, list the class in the entry-point group
    ``fieldbo.links``. `open` returns a `Connection`, which sends what `Remote` asks for and passes each
    message of the robot to `on_report` as one of the reports in this module. Pass numbers on as you receive
    them: `Remote` decides what is plausible.

    Examples
    --------
    >>> from fieldbo.validation import settings
    >>> class Serial(Connection):
    ...     def __init__(self, port, on_report):
    ...         self.port, self.on_report = port, on_report  # start a thread that reads the port
    ...
    ...     def go(self, goal):
    ...         ...  # write goal.id and goal.site to the port
    ...
    ...     def cancel(self, goal): ...
    ...     def hold(self): ...
    ...     def close(self): ...
    >>> @settings("link")
    ... class SerialLink(Link):
    ...     port: str = "/dev/ttyUSB0"
    ...
    ...     @property
    ...     def address(self):
    ...         return self.port
    ...
    ...     def open(self, mission, ground, on_report):
    ...         return Serial(self.port, on_report)
    >>> SerialLink(port="COM3").address
    'COM3'
    """

    reports: ClassVar[bool] = True
    """Whether the robot answers each goal by its id; if not, it streams."""

    follows_routes: ClassVar[bool] = True
    """Whether the robot receives all points of a goal's route at once. If not, `Connection.go` is called for
    each point in turn, under the same id, with that point as the site."""

    needs_origin: ClassVar[bool] = False
    """Whether places are sent as latitude and longitude, so that the frame must state its origin."""

    battery_in: ClassVar[Literal["percent", "either"]] = "either"
    """Whether the robot reports its battery in percent, so that ``[battery]`` must state ``full``."""

    @abstractmethod
    def open(self, mission: Mission, ground: Ground | None, on_report: OnReport) -> Connection:
        """Start to listen and to send; return at once, whether or not a robot is there.

        Parameters
        ----------
        mission : Mission
            Its world's domain has the axes of every site.
        ground : Ground or None
            Where those axes lie: as stated in the vehicle file's ``[frame]``, or by default from their
            names. Its origin may be unknown. None if the axes are not positions on the ground.
        on_report : Callable
            Takes the robot's reports.

        Raises
        ------
        VehicleError
            The middleware is not installed, or the link needs a ground and there is none.
        """

    def capacity(self, domain: Domain) -> Capacity | None:
        """Return what the link carries of readings in a domain; None if that is not known to be limited."""
        return None

    def placed(self, ground: Ground | None, domain: Domain) -> Ground | None:
        """Return where the robot's sites lie, given where the domain does: it may keep a distance."""
        del domain
        return ground

    def check(self, mission: Mission, ground: Ground | None) -> list[str]:
        """Return what in these settings is unlikely to be meant in a mission, one sentence each.

        Raises
        ------
        InputError
            They contradict the mission.
        """
        del mission, ground
        return []

    def describe(self, mission: Mission, ground: Ground | None) -> list[str]:
        """Return what these settings amount to in a mission, line by line, as ``fieldbo check`` prints it."""
        del mission, ground
        return []

    @property
    def known_channels(self) -> frozenset[str] | None:
        """Names of the only channels that this link can report; None if the robot decides."""
        return None

    @property
    def warnings(self) -> list[str]:
        """What makes these settings unsafe, one sentence each, as ``fieldbo check`` prints them."""
        return []

    @property
    @abstractmethod
    def address(self) -> str:
        """Where to find the robot, for messages: ``mqtt://localhost:1883/fieldbo/boat``."""

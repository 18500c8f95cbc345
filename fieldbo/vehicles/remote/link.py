"""What a middleware has to do for a vehicle: carry errands out to a robot, and its signals back.

A kind of link is a frozen dataclass of settings (the ``[link]`` table of a vehicle file) that can be opened.
It only translates. Watching for silence, giving up in time, telling an order once, working out what it cost
and where a reading belongs is done once, for all of them, by `Remote`.

There are two sorts of robot. One *reports*: it is given an errand with an id and answers with what came of
that id (`Done`, `Refused`). The other *streams*: it takes a place to go to, and tells where it is (`At`)
and what its sensor reads (`Read`) all the time; `Remote` finds out that it has arrived.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.domain.frame import Ground
from fieldbo.mission.mission import Mission


@dataclass(frozen=True, eq=False)
class Goal:
    """One order as a robot is given it.

    Attributes
    ----------
    id : str
        Belongs to this errand alone, on every robot and for all time. The same id again is the same errand:
        a robot that remembers it answers as before, one that is at it goes on.
    site : (d,) array
        In the domain's axes and units; NaN where a variable is left free.
    controls : (d,) bool array or None
        The variables to be set; None: all.
    level : int
        Which of the sensor's settings.
    home : bool
        The way home: nothing has to be read.
    seconds : float
        How long it is declared to take; NaN where that is not known.
    """

    id: str
    site: Array
    controls: Mask | None = None
    level: int = 0
    home: bool = False
    seconds: float = float("nan")


@dataclass(frozen=True)
class Alive:
    """The robot's own program gave a sign of life; every other signal but `Down` is one, too."""


@dataclass(frozen=True)
class Down:
    """The middleware knows that the robot can't be reached, before the silence shows it."""

    why: str


@dataclass(frozen=True, eq=False)
class At:
    """Where the robot is, (d,) in the domain's axes and units."""

    position: Array


@dataclass(frozen=True)
class Charge:
    """What is left in the robot's battery: a share of full (0 to 1), or in the world's cost unit."""

    share: float | None = None
    amount: float | None = None


@dataclass(frozen=True)
class Read:
    """A value that a streaming robot's sensor reads now, in the world's unit."""

    value: float


@dataclass(frozen=True)
class Refused:
    """The errand is not carried out: nothing moved."""

    errand: str
    reason: str


@dataclass(frozen=True, eq=False)
class Done:
    """What came of an errand, or of a part of it; numbers as the robot told them, believable or not.

    Attributes
    ----------
    errand : str
    position : (d,) array
        Where the robot now is.
    sites : (k, d) array
        Where it read; k = 0 where it read nothing.
    values : (k,) array
    seconds : (k,) array
        When, in seconds since the errand began, by the robot's clock.
    cost : float
        What this part cost; NaN where the robot does not know.
    duration_s : float
        How long this part took; NaN where the robot does not know.
    part : int
    last : bool
    complete : bool
        False where it was cut short.
    channels : mapping of str to (k,) array or None
        Other quantities read at the same sites.
    """

    errand: str
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


Signal = Alive | Down | At | Charge | Read | Refused | Done
Hear = Callable[[Signal], None]
"""Takes a signal in; may be called from any thread, and never blocks."""


class Connection(ABC):
    """An open link. Its methods return at once; they are called from one thread, and never after `close`."""

    @abstractmethod
    def go(self, errand: Goal) -> None:
        """Send an errand; the only one that is out. What can't be sent now is sent when the link is back."""

    @abstractmethod
    def cancel(self, errand: str) -> None:
        """Have an errand given up, whether or not the robot knows it.

        A robot that reports answers with a `Done` that is not complete, also if it had not begun.
        """

    @abstractmethod
    def hold(self) -> None:
        """Have the robot stay where it is; what was to be sent when the link is back is not sent any more."""

    @abstractmethod
    def close(self) -> None:
        """Let go of threads and sockets, within a second or two; the robot is left as it is."""

    def ask(self, errand: str) -> bool:
        """Ask what came of an errand of an earlier connection; a robot that remembers signals it again.

        Returns
        -------
        bool
            Whether such a question can be put over this kind of link at all.
        """
        return False


class Link(ABC):
    """Settings of a link; a new kind is a frozen dataclass and an entry in `LINKS`."""

    reports: ClassVar[bool] = True
    """Whether the robot answers errands by their ids; else it streams."""

    needs_origin: ClassVar[bool] = False
    """Whether its places are latitudes and longitudes, so that the frame has to say where its origin is."""

    @abstractmethod
    def open(self, mission: Mission, ground: Ground | None, hear: Hear) -> Connection:
        """Begin to listen and to send; return at once, whether or not a robot is there.

        Parameters
        ----------
        mission : Mission
            Its world's domain has the axes of every site.
        ground : Ground or None
            Where those axes lie, as the vehicle file's ``[frame]`` says or as such axes usually do; its
            origin need not be known. None: they are no place.
        hear : Callable
            Takes signals.

        Raises
        ------
        VehicleError
            The middleware is not installed, or there is no ground where one is needed.
        """

    @property
    @abstractmethod
    def address(self) -> str:
        """Where the robot is to be found, for a message: ``mqtt://localhost:1883/fieldbo/boat``."""

"""The orders of a robot: how far each has come, and what is known of each.

What an order brings may arrive late, twice, in parts, or after it was given up. Whether it is still awaited,
which parts are known, and what it may have taken: its one entry in the book says it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from fieldbo._numerics.arrays import Array
from fieldbo.messages import Correction, Event, Lost, Observation, Order, Rejected
from fieldbo.vehicles.remote.gauge import Mark
from fieldbo.vehicles.remote.link import Goal


class Progress(Enum):
    """How far an order has come."""

    QUEUED = "queued"
    """It waits for its turn."""

    HELD = "held"
    """It is next, but no safe route is known: the robot has not said where it is."""

    SENT = "sent"
    """It was sent to the robot; of a `Recharge`: somebody is to change the battery."""

    CANCELLING = "cancelling"
    """The robot was told to abandon it, and has not answered yet."""

    EARLIER = "earlier"
    """An earlier program gave it, and whether the robot has it is unknown."""

    LOST = "lost"
    """Its outcome is unknown; if it was sent, a result may come at any time, or never."""

    DONE = "done"
    """Its last part has arrived; what comes now belongs to the past."""

    REJECTED = "rejected"
    """The robot did not go there."""

    @property
    def settled(self) -> bool:
        """Whether its outcome is known; that of a lost order is not, though the agent goes on without it."""
        return self in (Progress.DONE, Progress.REJECTED)

    @property
    def waits(self) -> bool:
        """Whether it is still to be sent."""
        return self in (Progress.QUEUED, Progress.HELD)

    @property
    def under_way(self) -> bool:
        """Whether the robot, or somebody who changes its battery, is expected to be working on it."""
        return self in (Progress.SENT, Progress.CANCELLING)


_OUTCOMES = frozenset({Progress.DONE, Progress.REJECTED, Progress.LOST})

_NEXT = {
    # An earlier program may have sent an order that waits: it may have a result, and must be cancelled.
    Progress.QUEUED: _OUTCOMES | {Progress.HELD, Progress.SENT, Progress.CANCELLING},
    Progress.HELD: _OUTCOMES | {Progress.SENT, Progress.CANCELLING},
    Progress.SENT: _OUTCOMES | {Progress.CANCELLING},
    Progress.CANCELLING: _OUTCOMES,
    Progress.EARLIER: _OUTCOMES | {Progress.QUEUED},
    Progress.LOST: frozenset({Progress.DONE, Progress.REJECTED}),
    Progress.DONE: frozenset[Progress](),
    Progress.REJECTED: frozenset[Progress](),
}
"""What an order may come to next."""


def may_follow(progress: Progress, then: Progress) -> bool:
    """Return True if an order may come from one state to another.

    Examples
    --------
    >>> may_follow(Progress.LOST, Progress.DONE), may_follow(Progress.DONE, Progress.LOST)
    (True, False)
    """
    return then in _NEXT[progress]


@dataclass
class Leg:
    """What is known of an order that was sent.

    Attributes
    ----------
    began_s, since_s : float
        When the order was sent, and when its current part began, in seconds since the start of the run.
    battery : Mark
        Battery at `since_s`.
    start : (d,) array or None
        Where the robot was when the order was sent; None if that is not known.
    at_most : float
        What it may cost, margin included.
    charged : float
        What its parts cost so far.
    ahead : float
        What of that was not reported yet: parts that arrive later may report it.
    reached : (d,) array or None
        Where its latest part ended; the robot may have moved on before that was told. None without a part.
    seen : float
        Declared cost of how far the robot was seen to have come with it after it was lost.
    counted : bool
        Whether what it took is known, from its outcome or from the battery.
    again : int
        How often the robot may have sampled in vain, because it was sent there again.
    resumed : bool
        Whether an earlier program sent the order: `began_s` is then later than the robot's own.
    routes : list of (k, d) arrays
        The routes on which the robot was sent; empty if they are not known.
    """

    began_s: float
    since_s: float
    battery: Mark
    start: Array | None = None
    at_most: float = 0.0
    charged: float = 0.0
    ahead: float = 0.0
    reached: Array | None = None
    seen: float = 0.0
    counted: bool = False
    again: int = 0
    resumed: bool = False
    routes: list[Array] = field(default_factory=list)

    @property
    def may_take(self) -> float:
        """What it may have taken that is not known."""
        return 0.0 if self.counted else max(0.0, self.at_most - self.charged)


@dataclass(eq=False)
class Entry:
    """One order of a robot. All times but those of its leg are of this machine's clock.

    Attributes
    ----------
    order : Order
    number : int
        How many orders were given before it.
    progress : Progress
        `OrderBook.advance` changes it.
    events : list of Event
        What it brought so far.
    goal : Goal or None
        The form in which it was sent; None for a `Recharge`, of which the robot hears nothing.
    since_s, until_s : float
        When it was sent, or began to be held; and when the robot must have answered.
    why : str
        Why it is being cancelled.
    broken : bool
        Whether the link broke since it was sent.
    forgotten : bool
        Whether the robot may have forgotten it, so that it is to be sent again.
    leg : Leg or None
        None if it was never sent; an order that an earlier program may have sent has one.
    """

    order: Order
    number: int
    progress: Progress = Progress.QUEUED
    events: list[Event] = field(default_factory=list)
    goal: Goal | None = None
    since_s: float = -float("inf")
    until_s: float = float("inf")
    why: str = ""
    broken: bool = False
    forgotten: bool = False
    leg: Leg | None = None

    @property
    def id(self) -> str:
        """The order's id."""
        return str(self.order.id)

    @property
    def parts(self) -> set[int]:
        """Numbers of the parts that were reported."""
        return {event.part for event in self.events if isinstance(event, Observation)}

    def is_newest(self, part: int) -> bool:
        """Return True unless a later part was reported before: it tells nothing of where the robot is."""
        return part >= max(self.parts, default=0)

    @property
    def lacks_parts(self) -> bool:
        """Whether parts before the newest one are late or lost."""
        parts = self.parts
        return max(parts, default=-1) >= len(parts)

    @property
    def is_open(self) -> bool:
        """Whether the robot may have more to tell of it."""
        return not self.progress.settled or self.lacks_parts

    @property
    def pending(self) -> bool:
        """Whether it was sent, perhaps by an earlier program, and its outcome is not known."""
        return self.leg is not None and not self.progress.settled


class OrderBook:
    """All orders of a robot, in the order in which they were given.

    Attributes
    ----------
    latest : Entry or None
        The order that was sent last; after a resume, as far as is known.

    Examples
    --------
    >>> from fieldbo.messages import Query, Rejected
    >>> book = OrderBook()
    >>> first, second = book.add(Query([1.0, 2.0], id="run/0")), book.add(Query([3.0, 2.0], id="run/1"))
    >>> book.advance(first, Progress.SENT)
    >>> book.take(Rejected("run/0", "too deep"))
    >>> first.progress, book.next is second
    (<Progress.REJECTED: 'rejected'>, True)
    """

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._open: dict[str, Entry] = {}
        self.latest: Entry | None = None

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def add(self, order: Order, progress: Progress = Progress.QUEUED) -> Entry:
        """Enter an order behind all others."""
        entry = Entry(order, len(self._entries), progress)
        self._entries[entry.id] = entry
        self._file(entry)
        return entry

    def get(self, order_id: str) -> Entry | None:
        """Return the entry of an order; None if there is none."""
        return self._entries.get(order_id)

    @property
    def current(self) -> Entry | None:
        """The order under way; None if there is none."""
        return next((entry for entry in self._open.values() if entry.progress.under_way), None)

    @property
    def next(self) -> Entry | None:
        """The next order to be sent; None if none waits."""
        return next((entry for entry in self._open.values() if entry.progress.waits), None)

    def was_sent(self, entry: Entry) -> bool:
        """Return True if this program or an earlier one has sent an order, as far as is known."""
        return entry.leg is not None and self.latest is not None and entry.number <= self.latest.number

    def advance(self, entry: Entry, progress: Progress) -> None:
        """Have an order come to its next state."""
        assert may_follow(entry.progress, progress), f"{entry.id}: {entry.progress.value} to {progress.value}"
        entry.progress = progress
        if progress is Progress.SENT:
            self.latest = entry
        self._file(entry)

    def take(self, event: Observation | Rejected | Lost | Correction) -> None:
        """Keep what an order brought; what comes after its outcome does not change that."""
        entry = self._entries[event.order]
        entry.events.append(event)
        match event:
            case Observation(last=True):
                progress = Progress.DONE
            case Rejected():
                progress = Progress.REJECTED
            case Lost():
                progress = Progress.LOST
            case _:
                return
        if may_follow(entry.progress, progress):
            self.advance(entry, progress)
        if entry.leg is not None:
            entry.leg.counted |= progress.settled

    def _file(self, entry: Entry) -> None:
        if entry.progress.waits or entry.progress.under_way:
            self._open[entry.id] = entry
        else:
            self._open.pop(entry.id, None)

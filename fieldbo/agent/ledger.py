"""What a vehicle has to spend, what was paid from it, and what is set aside for orders that are out.

The same books are kept for each thing that runs out: the battery, in the world's cost unit, and the time,
in seconds. The guard is one inequality, kept true all along. While an order that is declared at ``p`` takes
at most ``(1 + m) p``, m being the margin,

    (1 + m) (sum of p over orders that are out + way home from the last of them)
        <= amount - what was spent - reserve                                                  (1)

says that everything that is out can be done, and home reached, with the reserve untouched. A query is let
out only if (1) holds with it. When an order that is out is done, the left side falls by ``(1 + m) p`` and the
right side by no more than that, so that (1) stays true whatever the real costs are up to the margin; and
with equality no query is refused that could have been paid for, as floating-point numbers add up: ten
readings at 0.1 are dearer than 1. Behind others an order's p is the most that it can take whichever of them
are turned down, less what is set aside for those. What has been paid of an order that reports
in parts is taken off its ``(1 + m) p``, not off its ``p``: a leg that is dearer so far may be so to its end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

_LATEST, _FEWEST = 5, 3
"""By so many orders it is judged what orders really take; by fewer it is not."""

_DEAREST = 1.0
"""Beyond that it is no matter of prices: a battery has lost its charge."""


@dataclass
class Entry:
    """One order in the books.

    Attributes
    ----------
    planned : float
        What it was declared, or expected, to take when it left; NaN where nothing was known of that.
    declared : float
        What is set aside for it, as declared and as things are now: orders before it may be turned down.
    spent : float
        What it really took so far; NaN while nothing is known of that.
    left : float
        What was left in all when it was settled; NaN before.
    out : bool
        Whether something is set aside for it.
    """

    planned: float
    declared: float
    spent: float = math.nan
    left: float = math.nan
    out: bool = True

    @property
    def paid(self) -> float:
        """What is known to be paid."""
        return 0.0 if math.isnan(self.spent) else self.spent


@dataclass
class Ledger:
    """What a vehicle has of one thing that runs out, and where it went.

    Parameters
    ----------
    battery : float
        How much there was, in the world's cost unit; of the time, how many seconds, possibly without end.

    Attributes
    ----------
    entries : dict of str to Entry
        All orders that left, by id, in order.
    charges : list of float
        What was really spent, in order.
    lost : set of str
        Orders that are out of which it is not known what became.
    reconciled : set of str
        Lost orders whose cost telemetry has told.
    unexplained : list of float
        Charges that belong to no order: what telemetry found spent beyond, or below 0 short of, the books.
    overruled : bool
        Whether telemetry has told before what is left.
    latest : list of (float, float)
        What settled orders were planned to take, and took, in order; for unexplained charges nothing was.

    Examples
    --------
    >>> book = Ledger(60.0)
    >>> book.reserve("run/0", 5.0)
    >>> book.charge("run/0", 5.5, settles=True)
    >>> book.entries["run/0"]
    Entry(planned=5.0, declared=5.0, spent=5.5, left=54.5, out=False)
    """

    battery: float
    entries: dict[str, Entry] = field(default_factory=dict)
    charges: list[float] = field(default_factory=list)
    lost: set[str] = field(default_factory=set)
    reconciled: set[str] = field(default_factory=set)
    unexplained: list[float] = field(default_factory=list)
    latest: list[tuple[float, float]] = field(default_factory=list)
    overruled: bool = False

    @property
    def spent(self) -> float:
        """The sum of all charges."""
        return math.fsum(self.charges)

    @property
    def left(self) -> float:
        """What is left now, with nothing set aside."""
        return self.battery - self.spent

    @property
    def reserved(self) -> dict[str, float]:
        """What is set aside for each order that is out, as declared."""
        return {order: max(0.0, e.declared - e.paid) for order, e in self.entries.items() if e.out}

    @property
    def held(self) -> float:
        """The sum of what is set aside for orders that are out."""
        return math.fsum(self.reserved.values())

    @property
    def available(self) -> float:
        """What is left when all orders that are out are paid, as declared."""
        return self.battery - math.fsum([*self.charges, *self.reserved.values()])

    @property
    def dearer(self) -> float:
        """By which share the latest orders were dearer than planned, all together; 0 where they were not."""
        planned, spent, orders = 0.0, 0.0, 0
        for plan, paid in reversed(self.latest):
            if orders == _LATEST and plan > 0:
                break
            planned, spent, orders = planned + plan, spent + paid, orders + (plan > 0)
        return min(_DEAREST, max(0.0, spent / planned - 1.0)) if orders >= _FEWEST else 0.0

    def free(self, margin: float) -> float:
        """Return what is left when all orders that are out are paid, each dearer by `margin`."""
        dearer = (max(0.0, (1.0 + margin) * e.declared - e.paid) for e in self.entries.values() if e.out)
        return self.battery - math.fsum([*self.charges, *dearer])

    def reserve(self, order: str, cost: float, held: float | None = None) -> None:
        """Set aside the declared cost of an order, or `held` where it may come to be dearer."""
        self.entries[order] = Entry(cost, cost if held is None else held)

    def redeclare(self, order: str, held: float) -> None:
        """Set another amount aside for an order that is out: it begins elsewhere."""
        self.entries[order].declared = held

    def charge(self, order: str, cost: float, *, settles: bool) -> None:
        """Pay the real cost of (a part of) an order; nothing where telemetry has already settled it."""
        if order in self.reconciled:
            return
        entry = self.entries[order]
        self.charges.append(cost)
        entry.spent = entry.paid + cost
        if settles:
            self.release(order)

    def release(self, order: str) -> None:
        """Set nothing aside for an order any more."""
        self.lost.discard(order)
        if (entry := self.entries[order]).out:
            entry.out, entry.left = False, self.left
            if not math.isnan(entry.spent + entry.planned):
                self.latest.append((entry.planned, entry.spent))

    def lose(self, order: str) -> None:
        """Keep what is set aside for an order of which nothing more is known, unless it was settled."""
        if self.entries[order].out:
            self.lost.add(order)

    def reconcile(self, remaining: float, accuracy: float = 0.0) -> None:
        """Take over what is really left: lost orders took the difference, or it is no order's.

        A difference within the `accuracy` of what was told is none, unless lost orders are to be settled.
        """
        used = max(self.left - remaining, -self.spent)  # nothing is given back that was not spent
        if self.lost:
            self.settle_lost(max(0.0, used))
            used = min(0.0, used)
        if abs(used) > accuracy:
            self.charges.append(used)
            self.unexplained.append(used)
            if self.overruled:  # what it lacked from the start says nothing of prices
                self.latest.append((0.0, used))
        self.overruled = True

    def settle_lost(self, used: float) -> None:
        """Charge what was used since the last charge: lost orders took it, shared as they were planned."""
        self.charges.append(used)
        lost = sorted(self.lost)
        plans = [self.entries[order].planned for order in lost]
        whole = math.fsum(plans)
        for order, planned in zip(lost, plans, strict=True):
            entry = self.entries[order]
            entry.spent = entry.paid + used * (planned / whole if whole > 0 else 1.0 / len(lost))
            self.reconciled.add(order)
            self.release(order)

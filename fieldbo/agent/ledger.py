"""The ledger of a vehicle: what it started with, what it spent, and what is set aside for outstanding orders.

Each resource that runs out has a ledger: the battery, in the world's cost unit, and the time, in seconds.
The guard keeps one inequality true at all times. Let ``m`` be the margin: an order declared at ``p`` takes at
most ``(1 + m) p``. Then

    (1 + m) (sum of p over outstanding orders + trip home from the last of them)
        <= amount - spent - reserve                                                          (1)

says that all outstanding orders can be done, and home reached, with the reserve untouched. A query is issued
only if (1) holds with it. Once an outstanding order is done, the left side falls by ``(1 + m) p`` and the
right side by no more than that, so (1) stays true whatever the real costs are, up to the margin. Equality is
enough, so no affordable query is withheld, up to floating-point rounding: ten readings at 0.1 cost more than
1. For an order behind others, p is the most that it can take whichever of those are rejected, less what is
set aside for them. Parts that were already paid are subtracted from ``(1 + m) p``, not from ``p``: a leg that
has been more expensive so far may remain so to its end.

An order that was lost stays outstanding until its outcome is known.

A person may state what is left (`Ledger.state`): more than the declared account is never adopted.

A battery report may lower what is left at once, but raises it only up to the *declared account*: the battery
less what all orders cost by their own reports, or by declaration where nothing was reported. So it gives back
what an earlier report took beyond that, and nothing else: a gauge may be stuck at 100 %. A lost order costs
at least what was declared, unless the vehicle was seen not to have moved. Where the gauge is trusted, only
the fraction ``at_least`` of declared costs stays charged whatever it shows. A report that may be older than
the latest settled order gives nothing back.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

_LATEST, _FEWEST = 5, 3
"""How many of the latest orders show what orders really cost, and how many are needed at least."""

_LARGEST_OVERRUN = 1.0
"""A larger overrun does not mean higher prices: the battery has lost its charge."""


@dataclass
class Entry:
    """One order in a ledger.

    Attributes
    ----------
    planned : float
        Its declared or expected cost when it was issued; NaN if unknown.
    declared : float
        The amount set aside for it at present, at declared costs: orders before it may be rejected.
    spent : float
        What it really took so far; NaN while unknown.
    left : float
        What was left in all when it was settled; NaN before.
    outstanding : bool
        Whether something is set aside for it.
    advance : float
        The part of `spent` that the battery's reports showed before the order's own cost was known.
    price : float
        Its declared cost from where it now begins; `planned` at first.
    """

    planned: float
    declared: float
    spent: float = math.nan
    left: float = math.nan
    outstanding: bool = True
    advance: float = field(default=0.0, repr=False)
    price: float = field(default=math.nan, repr=False)

    @property
    def paid(self) -> float:
        """The known part of its cost."""
        return 0.0 if math.isnan(self.spent) else self.spent


@dataclass
class Ledger:
    """One resource of a vehicle that runs out, and what it was spent on.

    Parameters
    ----------
    battery : float
        The initial amount, in the world's cost unit; for time in seconds, possibly infinite.

    Attributes
    ----------
    entries : dict of str to Entry
        All issued orders by id, in order.
    charges : list of float
        Real costs, in order.
    lost : set of str
        Orders set aside whose outcome is unknown.
    reconciled : set of str
        Lost orders whose cost was settled by telemetry.
    unexplained : list of float
        Charges that belong to no order: telemetry reported more spent (above 0) or less (below 0).
    waited : float
        What waiting took while the vehicle was paused; part of the charges.
    returnable : float
        The part of all charges that telemetry may give back: those that belong to no order.
    estimated : float
        Sum of the charges that no vehicle reported; a trusted gauge may give back a part of them.
    given_back : float
        What it has given back of them.
    uncertain : float
        What orders of estimated cost may have taken beyond the estimate; telemetry settles it.
    doubted : float
        The same for all of them, settled or not.
    lowered : float
        The part of the charges that a person stated, and that only a person can give back.
    surplus : float
        How much more than this the battery last showed.
    overruled : bool
        Whether telemetry has reported the remaining amount before.
    latest : list of (float, float)
        Declared and real cost of settled orders, in order; unexplained charges have a declared cost of 0.

    Examples
    --------
    >>> ledger = Ledger(60.0)
    >>> ledger.reserve("run/0", 5.0)
    >>> ledger.charge("run/0", 5.5, settles=True)
    >>> ledger.entries["run/0"]
    Entry(planned=5.0, declared=5.0, spent=5.5, left=54.5, outstanding=False)
    """

    battery: float
    entries: dict[str, Entry] = field(default_factory=dict)
    charges: list[float] = field(default_factory=list)
    lost: set[str] = field(default_factory=set)
    reconciled: set[str] = field(default_factory=set)
    unexplained: list[float] = field(default_factory=list)
    latest: list[tuple[float, float]] = field(default_factory=list)
    waited: float = 0.0
    returnable: float = 0.0
    estimated: float = 0.0
    given_back: float = 0.0
    uncertain: float = 0.0
    doubted: float = 0.0
    lowered: float = 0.0
    surplus: float = 0.0
    overruled: bool = False

    @property
    def spent(self) -> float:
        """Sum of all charges."""
        return math.fsum(self.charges)

    @property
    def left(self) -> float:
        """What is left at present, ignoring what is set aside."""
        return self.battery - self.spent

    @property
    def at_most(self) -> float:
        """The declared account: what is left at most, whatever anyone says."""
        return self.left + self.returnable + self.lowered

    def state(self, left: float) -> float:
        """Adopt what a person says is left, at most the declared account; return what that takes.

        Orders that are outstanding, or lost, are not settled. What they took already counts twice until a
        person states what is left after them.

        Examples
        --------
        >>> ledger = Ledger(60.0)
        >>> ledger.state(50.0), ledger.left
        (10.0, 50.0)
        >>> ledger.state(70.0), ledger.left
        (-10.0, 60.0)
        """
        used = self.left - min(left, self.at_most)
        self.charges.append(used)
        if used >= 0:
            self.lowered += used
            return used
        by_hand = min(-used, self.lowered)
        self.lowered -= by_hand
        self.returnable = max(0.0, self.returnable + used + by_hand)
        self.uncertain = min(self.doubted, self.uncertain - used - by_hand)  # a report had settled it
        return used

    @property
    def reserved(self) -> dict[str, float]:
        """Amount set aside for each outstanding order, at declared costs."""
        return {order: max(0.0, e.declared - e.paid) for order, e in self.entries.items() if e.outstanding}

    @property
    def held(self) -> float:
        """Sum of the amounts set aside."""
        return math.fsum(self.reserved.values())

    @property
    def available(self) -> float:
        """What will be left once all outstanding orders are paid, at declared costs."""
        return self.battery - math.fsum([*self.charges, *self.reserved.values()])

    @property
    def overrun(self) -> float:
        """Fraction by which the latest orders together cost more than declared; 0 if they did not."""
        planned, spent, orders = 0.0, 0.0, 0
        for plan, paid in reversed(self.latest):
            if orders == _LATEST and plan > 0:
                break
            planned, spent, orders = planned + plan, spent + paid, orders + (plan > 0)
        return min(_LARGEST_OVERRUN, max(0.0, spent / planned - 1.0)) if orders >= _FEWEST else 0.0

    def free(self, margin: float) -> float:
        """Return what will be left once all outstanding orders are paid, if each overruns by `margin`."""
        outstanding = (e for e in self.entries.values() if e.outstanding)
        at_most = (max(0.0, (1.0 + margin) * e.declared - e.paid) for e in outstanding)
        return self.battery - math.fsum([*self.charges, self.uncertain, *at_most])

    def lost_at_most(self, margin: float) -> float:
        """Return what lost orders may still take, if each overruns by `margin`."""
        entries = [self.entries[order] for order in self.lost]
        return math.fsum(max(0.0, (1.0 + margin) * e.declared - e.paid) for e in entries)

    def reserve(self, order: str, cost: float, held: float | None = None) -> None:
        """Set aside the declared cost of an order, or `held` if it may become more expensive."""
        self.entries[order] = Entry(cost, cost if held is None else held, price=cost)

    def redeclare(self, order: str, cost: float, held: float) -> None:
        """Change the declared cost of an outstanding order that now begins elsewhere; set aside `held`."""
        self.entries[order].price, self.entries[order].declared = cost, held

    def charge(self, order: str, cost: float, *, settles: bool, uncertain: float | None = None) -> None:
        """Charge the cost of an order, or of a part; ignored if telemetry has already settled it.

        Parameters
        ----------
        order : str
        cost : float
        settles : bool
            Whether the order is done.
        uncertain : float, optional
            How much more than `cost` it may have been, if that is an estimate; by default it is the real one.
        """
        if order in self.reconciled:
            return
        entry = self.entries[order]
        advanced = min(cost, entry.advance)
        entry.advance -= advanced
        self.charges.append(cost - advanced)
        entry.spent = entry.paid + cost - advanced
        if uncertain is not None:
            self.estimated += cost - advanced
            self._doubt(uncertain)
        if not entry.outstanding:  # a part that came after the last one
            self.latest.append((0.0, cost - advanced))
        if settles:
            self.release(order)

    def release(self, order: str) -> None:
        """Set nothing aside for an order any more."""
        self.lost.discard(order)
        if (entry := self.entries[order]).outstanding:
            entry.outstanding, entry.left = False, self.left
            if not math.isnan(entry.spent + entry.price):
                self.latest.append((entry.price, entry.spent))

    def lose(self, order: str) -> None:
        """Mark an order as lost, unless it is settled; what is set aside for it stays."""
        if self.entries[order].outstanding:
            self.lost.add(order)

    def reconcile(
        self,
        remaining: float,
        accuracy: float = 0.0,
        may_take: Mapping[str, float] | None = None,
        *,
        at_least: float = 1.0,
        margin: float = 0.0,
        moved: float = 0.0,
        unmoved: Collection[str] = (),
        fresh: bool = True,
        idle: bool = True,
        paused: bool = False,
    ) -> None:
        """Adopt the amount that is really left.

        Lost orders took the difference; without any, it is unexplained. A difference within `accuracy` is
        ignored unless there are lost orders to settle.

        Parameters
        ----------
        remaining, accuracy : float
        may_take : mapping of str to float, optional
            Lost orders that may still be under way, and what each may still take; by default there are none.
        at_least : float
            Fraction of declared costs that stays charged, whatever remains.
        margin : float
            Fraction by which orders may exceed their declared costs.
        moved : float
            Declared cost of what lost orders were seen to have moved the vehicle.
        unmoved : collection of str
            Lost orders that were seen not to have moved it.
        fresh : bool
            Whether the amount was measured after the latest order was settled. If not, nothing is given back
            and no lost order is settled.
        idle : bool
            Whether no order is outstanding. If one is, it took part of the difference.
        paused : bool
            Whether the vehicle waits because of a pause, which explains the difference.
        """
        used, may_take = self.left - remaining, may_take or {}
        over = self.lost - may_take.keys() if fresh else set()
        if over:
            held = math.fsum(self.reserved[order] for order in over)
            moving = over.difference(unmoved)
            least = at_least * math.fsum(self.reserved[order] for order in moving)
            if used < least:
                self._doubt(margin * math.fsum(self.entries[order].declared for order in moving))
            self.settle_lost(max(0.0, used, min(used + accuracy, held), least), over)
        elif self.lost and idle:
            self._advance(max(0.0, used, at_least * moved), may_take)
        elif used > accuracy and idle and paused:
            self.charges.append(used)
            self.waited += used
            self.returnable += used
        elif used > accuracy and idle:
            self._leave_unexplained(used)
            self.returnable += used
        if fresh and used < -accuracy:
            self._give_back(-used - accuracy, at_least)
        if fresh and idle:
            self.surplus = max(0.0, remaining - self.left)
        if fresh and (at_least < 1.0 or (used >= -accuracy and remaining <= self.left + accuracy)):
            self.uncertain = min(self.uncertain, max(0.0, self.left - remaining + accuracy))
        self.overruled |= idle

    def _give_back(self, surplus: float, at_least: float) -> None:
        """Give back a surplus that the battery shows, as far as it may show one."""
        estimated = max(0.0, (1.0 - at_least) * self.estimated - self.given_back)
        back = min(surplus, self.returnable + estimated)
        if back > 0:
            self._leave_unexplained(-back)
            of_no_order = min(back, self.returnable)
            self.returnable -= of_no_order
            if at_least == 1.0:  # a report had settled what now is in doubt again
                self.uncertain = min(self.doubted, self.uncertain + of_no_order)
            self.given_back += back - of_no_order

    def _doubt(self, beyond: float) -> None:
        """Note what may have been taken beyond an estimate."""
        self.uncertain += beyond
        self.doubted += beyond

    def _leave_unexplained(self, used: float) -> None:
        self.charges.append(used)
        self.unexplained.append(used)
        if self.overruled:  # a gap at the first report says nothing about prices
            self.latest.append((0.0, used))

    def _advance(self, used: float, may_take: Mapping[str, float]) -> None:
        """Charge `used` to lost orders that may still be under way; set aside what they may still take."""
        self.charges.append(used)
        for order, part in self._shares(used, self.lost).items():
            entry = self.entries[order]
            left = max(may_take.get(order, 0.0), entry.declared - entry.paid - part)
            entry.advance += part
            entry.spent = entry.paid + part
            entry.declared = entry.spent + max(0.0, left)

    def settle_lost(self, used: float, over: Iterable[str] | None = None) -> None:
        """Charge `used` to lost orders, by default to all, and set nothing aside for them any more."""
        self.charges.append(used)
        for order, part in self._shares(used, self.lost if over is None else over).items():
            entry = self.entries[order]
            entry.spent = entry.paid + part
            self.reconciled.add(order)
            self.release(order)

    def _shares(self, used: float, orders: Iterable[str]) -> dict[str, float]:
        """Return the part of `used` that each of some orders took, in proportion to their planned costs."""
        lost = sorted(orders)
        plans = [self.entries[order].planned for order in lost]
        whole = math.fsum(plans)
        return {
            order: used * (planned / whole if whole > 0 else 1.0 / len(lost))
            for order, planned in zip(lost, plans, strict=True)
        }

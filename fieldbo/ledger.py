"""What a battery holds, what was paid from it, and what is set aside for orders that are out."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from fieldbo.domain import Array


@dataclass(frozen=True)
class Limit:
    """What may still be spent of one thing that runs out: the battery, or the time.

    At declared prices: the reserve, orders that are out, and the margin by which moves may turn out dearer
    are taken off already. A query at a site can be paid for while what was spent before it, `going` there
    and `back` home are together at most `left`.

    Attributes
    ----------
    name : str
        ``"battery"``, in the world's cost unit, or ``"time"``, in seconds.
    left : float
    going : Callable
        ``going(positions, sites, controls=None, level=0)``, the full price of a query; shapes as for
        `CostModel.to`.
    back : Callable
        ``back(sites) -> (N,)``, the price of the way home; zeros without a home.
    """

    name: str
    left: float
    going: Callable[..., Array]
    back: Callable[[Array], Array]


@dataclass
class Ledger:
    """What a vehicle's battery holds, in the world's cost unit.

    Parameters
    ----------
    battery : float

    Attributes
    ----------
    charges : list of float
        What was really spent, in order.
    reserved : dict of str to float
        Declared costs of orders that are out, by id.
    lost : set of str
        Those of them of which it is not known what became.
    settled : set of str
        Lost orders whose cost telemetry has told.
    """

    battery: float
    charges: list[float] = field(default_factory=list)
    reserved: dict[str, float] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    settled: set[str] = field(default_factory=set)

    @property
    def spent(self) -> float:
        """The sum of all charges."""
        return math.fsum(self.charges)

    @property
    def available(self) -> float:
        """What is left when all orders that are out are paid."""
        return self.battery - math.fsum([*self.charges, *self.reserved.values()])

    @property
    def held(self) -> float:
        """The sum of what is set aside for orders that are out."""
        return math.fsum(self.reserved.values())

    def reserve(self, order: str, cost: float) -> None:
        """Set aside the declared cost of an order."""
        self.reserved[order] = cost

    def charge(self, order: str, cost: float, *, settles: bool) -> None:
        """Pay the real cost of (a part of) an order; nothing where telemetry has already settled it."""
        if order in self.settled:
            return
        self.charges.append(cost)
        if settles:
            self.release(order)
        elif order in self.reserved:
            self.reserved[order] = max(0.0, self.reserved[order] - cost)

    def release(self, order: str) -> None:
        """Set nothing aside for an order any more."""
        self.reserved.pop(order, None)
        self.lost.discard(order)

    def reconcile(self, remaining: float) -> None:
        """Settle lost orders by what the battery says is left."""
        if not self.lost:
            return
        used = self.battery - self.spent - remaining
        for order in sorted(self.lost):
            self.settled.add(order)
            self.release(order)
        self.charges.append(used)

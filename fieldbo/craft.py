"""One vehicle as the agent sees it: position, clock, ledger and queue, and what it can still afford.

Everything is reckoned from the end of the queue: where the vehicle will be, and what it will have left,
when all its orders are done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fieldbo.costs import CostModel
from fieldbo.domain import Array, Mask
from fieldbo.exchange import EndReason, GoHome, Observation, Order, Query, Telemetry
from fieldbo.ledger import Ledger, Limit
from fieldbo.mission import Crew


@dataclass
class Craft:
    """One vehicle under way.

    Parameters
    ----------
    crew : Crew
        What the mission says of it.
    cost : CostModel
        The declared one.

    Attributes
    ----------
    position : (d,) array
        Where it was last reported.
    ledger : Ledger
    time_s : float
        Its clock, seconds since the start.
    queue : list of Order
        What it was told and has not settled.
    latest : tuple of int
        Number and part of the latest order that it reported on.
    heard_s : float
        When telemetry last came in.
    ended : EndReason or None
        Why it gets no further orders.
    """

    crew: Crew
    cost: CostModel
    position: Array = field(init=False)
    ledger: Ledger = field(init=False)
    time_s: float = 0.0
    queue: list[Order] = field(default_factory=list)
    latest: tuple[int, int] = (-1, 0)
    heard_s: float = -np.inf
    ended: EndReason | None = None

    def __post_init__(self) -> None:
        self.position, self.ledger = self.crew.start, Ledger(self.crew.battery)

    @property
    def end(self) -> Array:
        """Where it will be (d,) when its queue is done."""
        for order in reversed(self.queue):
            if isinstance(order, Query):
                return order.site
            if self.crew.home is not None:
                return self.crew.home
        return self.position

    @property
    def free(self) -> float:
        """What is left after the reserve, and after the queue, should it be dearer by the margin."""
        return self.ledger.available - self.crew.reserve - self.crew.margin * self.ledger.held

    @property
    def spendable(self) -> float:
        """What of that may be spent on moves at their declared costs."""
        return max(0.0, self.free) / (1.0 + self.crew.margin)

    @property
    def queue_s(self) -> float:
        """How long the queue will take, in seconds."""
        at, seconds = self.position, 0.0
        for order in self.queue:
            if isinstance(order, Query):
                now = self.time_s + seconds
                took = self.cost.duration_s(at, order.site[None], order.controls, order.level, now)
                at, seconds = order.site, seconds + float(took[0])
        return seconds

    def price(self, order: Query | GoHome) -> float:
        """Return the declared cost of an order from the end of the queue."""
        if isinstance(order, GoHome):
            return float(self.return_cost(self.end[None])[0])
        site = order.site[None]
        return float(self.cost.to(self.end, site, order.controls, order.level, self.time_s)[0])

    def return_cost(self, sites: Array) -> Array:
        """Return the cost (N,) of the way home from `sites` (N, d); zeros without a home."""
        home = self.crew.home
        if home is None:
            return np.zeros(len(sites))
        return self.cost.travel(np.atleast_2d(sites), home[None], self.time_s)[:, 0]

    def return_s(self, sites: Array) -> Array:
        """Return how long the way home takes (N,) from `sites` (N, d), in seconds; zeros without a home."""
        home = self.crew.home
        if home is None:
            return np.zeros(len(sites))
        return self.cost.travel_s(np.atleast_2d(sites), home[None], self.time_s)[:, 0]

    def affordable(
        self,
        sites: Array,
        controls: Mask | None = None,
        level: int = 0,
        position: Array | None = None,
        spent: float | Sequence[float] = 0.0,
    ) -> Mask:
        """Say which queries can be paid for: way home, reserve, margin and time limit included.

        Parameters
        ----------
        sites : (N, d) array
        controls : (d,) bool array, optional
        level : int
        position : (d,) array, optional
            Where from; by default the end of the queue. A simulated path gives its own,
        spent : float or sequence of float
            and what it would have spent so far, as declared: in the cost unit, or of each of `limits`.

        Returns
        -------
        (N,) bool array
            Equality is affordable.
        """
        ends = np.atleast_2d(sites)
        here = self.end if position is None else position
        able = np.ones(len(ends), dtype=bool)
        for limit, before in zip(self.limits, self._each(spent), strict=True):
            able &= before + limit.going(here, ends, controls, level) + limit.back(ends) <= limit.left
        return able

    @property
    def limits(self) -> tuple[Limit, ...]:
        """What may be spent from the end of the queue on: of the battery, and of a limited time."""
        margin = 1.0 + self.crew.margin

        def price(positions: Array, sites: Array, controls: Mask | None = None, level: int = 0) -> Array:
            return self.cost.to(positions, sites, controls, level, self.time_s)

        battery = Limit("battery", self.free / margin, price, self.return_cost)
        until = self.crew.time_limit_s
        if until is None:
            return (battery,)

        def seconds(positions: Array, sites: Array, controls: Mask | None = None, level: int = 0) -> Array:
            return self.cost.duration_s(positions, sites, controls, level, self.time_s)

        left = (until - self.time_s) / margin - self.queue_s
        return battery, Limit("time", left, seconds, self.return_s)

    def _each(self, spent: float | Sequence[float]) -> Sequence[float]:
        """Return what a simulated path would have spent of each limit; a number is in the cost unit."""
        if not isinstance(spent, int | float):
            return spent
        return (spent,) if self.crew.time_limit_s is None else (spent, spent * self.cost.seconds_per_unit)

    def can_pay(self, queries: Sequence[Query]) -> bool:
        """Say whether all of `queries` can be paid for, one after the other from the end of the queue."""
        at, limits = self.end, self.limits
        spent = [0.0] * len(limits)
        for query in queries:
            site = query.site[None]
            if not self.affordable(site, query.controls, query.level, at, spent)[0]:
                return False
            for k, limit in enumerate(limits):
                spent[k] += float(limit.going(at, site, query.controls, query.level)[0])
            at = query.site
        return True

    def done_s(self, query: Query) -> float:
        """Return when a query would be done if it left now, on the vehicle's clock."""
        start = self.time_s + self.queue_s
        took = self.cost.duration_s(self.end, query.site[None], query.controls, query.level, start)
        return start + float(took[0])

    def send(self, order: Query | GoHome) -> None:
        """Put an order at the end of the queue, and set its cost aside."""
        assert order.id is not None
        self.ledger.reserve(order.id, self.price(order))
        self.queue.append(order)

    def settle(self, order: str) -> None:
        """Take an order out of the queue; nothing is set aside for it any more."""
        self.ledger.release(order)
        self.queue = [o for o in self.queue if o.id != order]

    def lose(self, order: str) -> None:
        """Take an order out of the queue whose outcome is not known; its cost stays set aside."""
        if order in self.ledger.reserved:  # not one that was settled before
            self.ledger.lost.add(order)
        self.queue = [o for o in self.queue if o.id != order]

    def observed(self, event: Observation, number: int) -> None:
        """Pay for what was done, and move; `number` is the order's."""
        self.ledger.charge(event.order, event.cost, settles=event.last)
        told_s = float(event.times_s.max()) if len(event.times_s) else self.time_s
        if (number, event.part) >= self.latest and told_s >= self.heard_s:
            self.position = event.position  # what comes late says where the vehicle once was
        self.latest = max(self.latest, (number, event.part))
        self.time_s = max(self.time_s, told_s)
        if event.last:
            self.settle(event.order)

    def heard(self, telemetry: Telemetry) -> None:
        """Take over clock and position; settle lost orders by what is left in the battery.

        Only while nothing is under way: what an order in the queue has used so far will come with its
        observation. Telemetry from before an order left says nothing of it.
        """
        if telemetry.time_s < self.time_s or self.queue:
            return
        later = telemetry.time_s > self.time_s
        self.time_s = self.heard_s = telemetry.time_s
        self.position = telemetry.position
        if later and telemetry.remaining is not None:
            self.ledger.reconcile(telemetry.remaining)

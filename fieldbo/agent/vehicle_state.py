"""One vehicle as the agent sees it: position, clock, ledgers and queue, and what it can still afford.

Everything is reckoned from the end of the queue: where the vehicle will be, and what it will have left,
when all its orders are done.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.agent.ledger import Ledger
from fieldbo.costs.base import CostModel
from fieldbo.costs.limits import Limit
from fieldbo.messages import EndReason, GoHome, Observation, Order, Query, Telemetry
from fieldbo.mission.vehicle_spec import VehicleSpec


@dataclass
class VehicleState:
    """One vehicle under way.

    Parameters
    ----------
    crew : VehicleSpec
        What the mission says of it.
    cost : CostModel or None
        The declared one; None where costs are not known: an order then costs what its policy expects.

    Attributes
    ----------
    position : (d,) array
        Where it was last reported.
    ledger : Ledger
        The battery's books, in the cost unit.
    hours : Ledger
        The same of the time limit, in seconds; without end where there is none.
    time_s : float
        Its clock, seconds since the start.
    queue : list of Order
        What it was told and has not settled.
    latest : tuple of int
        Number and part of the latest order that it reported on.
    heard_s : float
        When telemetry last came in.
    under_way : Telemetry or None
        The latest that came while orders were out.
    lost_in_a_row : int
        Orders lost since anything was last heard of the vehicle.
    abandoned : bool
        Whether it was waited for in vain.
    ended : EndReason or None
        Why it gets no further orders.
    turned_back : bool
        Whether the way home was refused just now, for the first time: it is asked for once more.
    went_back : bool
        Whether it was ever refused.
    """

    crew: VehicleSpec
    cost: CostModel | None
    position: Array = field(init=False)
    ledger: Ledger = field(init=False)
    hours: Ledger = field(init=False)
    time_s: float = 0.0
    queue: list[Order] = field(default_factory=list)
    latest: tuple[int, int] = (-1, 0)
    heard_s: float = -np.inf
    under_way: Telemetry | None = None
    lost_in_a_row: int = 0
    abandoned: bool = False
    ended: EndReason | None = None
    turned_back: bool = False
    went_back: bool = False

    def __post_init__(self) -> None:
        self.position, self.ledger = self.crew.start, Ledger(self.crew.battery)
        self.hours = Ledger(np.inf if self.crew.time_limit_s is None else self.crew.time_limit_s)

    @property
    def end(self) -> Array:
        """Where it will be (d,) when its queue is done."""
        return self._after(self.queue[-1]) if self.queue else self.position

    def _after(self, order: Order) -> Array:
        """Return where an order ends (d,)."""
        if isinstance(order, Query):
            free = np.isnan(order.site)  # what is left to chance is not known before
            return np.where(free, self.position, order.site) if free.any() else order.site
        assert self.crew.home is not None
        return self.crew.home

    @property
    def free(self) -> float:
        """What is left after the reserve, and after the queue, should it be dearer by the margin."""
        return self.ledger.free(self._margin(self.ledger)) - self.crew.reserve

    def _margin(self, book: Ledger) -> float:
        """Return by which share orders may turn out dearer: as the mission says, or as the latest did."""
        return self.crew.margin if self.cost is None else max(self.crew.margin, book.dearer)

    @property
    def spendable(self) -> float:
        """What of that may be spent on moves at their declared costs."""
        return max(0.0, self.free) / (1.0 + self._margin(self.ledger))

    @property
    def unpriced(self) -> str | None:
        """The order in the queue of which nobody knows what it will cost; None if there is none."""
        planned = {str(one.id): self.ledger.entries[str(one.id)].planned for one in self.queue}
        return next((order for order, cost in planned.items() if math.isnan(cost)), None)

    @property
    def queue_s(self) -> float:
        """How long the queue will take as declared, in seconds."""
        held = self.hours.reserved
        return math.fsum(held[str(order.id)] for order in self.queue)

    def price(self, order: Order, start: Array | None = None) -> float:
        """Return the declared cost of an order, by default from the end of the queue."""
        at = self.end if start is None else start
        if isinstance(order, GoHome):
            return float(self.return_cost(at[None])[0])
        if self.cost is None:
            return order.expected_cost or 0.0
        return float(self.cost.to(at, order.site[None], order.controls, order.level, self.time_s)[0])

    def seconds(self, order: Order, start: Array | None = None) -> float:
        """Return how long an order is declared to take, by default from the end of the queue."""
        at = self.end if start is None else start
        if isinstance(order, GoHome):
            return float(self.return_s(at[None])[0])
        if self.cost is None:
            return 0.0
        return float(self.cost.duration_s(at, order.site[None], order.controls, order.level, self.time_s)[0])

    def return_cost(self, sites: Array) -> Array:
        """Return the cost (N,) of the way home from `sites` (N, d); zeros without a home."""
        home = self.crew.home
        if home is None or self.cost is None:
            return np.zeros(len(sites))
        return self.cost.travel(np.atleast_2d(sites), home[None], self.time_s)[:, 0]

    def return_s(self, sites: Array) -> Array:
        """Return how long the way home takes (N,) from `sites` (N, d), in seconds; zeros without a home."""
        home = self.crew.home
        if home is None or self.cost is None:
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
            Equality is affordable. Where costs are not known, all are while anything is left.
        """
        ends = np.atleast_2d(sites)
        able = np.full(len(ends), self.cost is not None or self.spendable > 0)
        for limit, book, before in zip(self.limits, self._books, self._each(spent), strict=False):

            def going(start: Array, limit: Limit = limit) -> Array:
                return limit.going(start, ends, controls, level)

            taken = self._behind_queue(going, book) if position is None else going(position)
            able &= before + taken + limit.back(ends) <= limit.left
        return able

    @property
    def _books(self) -> tuple[Ledger, Ledger]:
        return self.ledger, self.hours

    def _behind_queue(self, price: Callable[[Array], Array], book: Ledger) -> Array:
        """Return what an order behind the queue takes at most (N,), whichever orders of it are turned down.

        Where a way may be dearer than one by a site between, as round obstacles where legs begin and end at
        rest, an order that is dropped can leave the next one dearer than the two together: that much is
        counted from the beginning. `price` gives what it takes from where the vehicle will be.
        """
        most, held = price(self.end), 0.0
        starts = [self.position, *(self._after(order) for order in self.queue)]
        for order, start in zip(reversed(self.queue), reversed(starts[:-1]), strict=True):
            held += book.entries[str(order.id)].declared
            most = np.maximum(most, price(start) - held)
        return most

    @property
    def limits(self) -> tuple[Limit, ...]:
        """What may be spent from the end of the queue on: of the battery, and of a limited time.

        None where costs are not known.
        """
        cost, margin, margin_s = self.cost, self._margin(self.ledger), self._margin(self.hours)
        if cost is None:
            return ()

        def price(positions: Array, sites: Array, controls: Mask | None = None, level: int = 0) -> Array:
            return cost.to(positions, sites, controls, level, self.time_s)

        battery = Limit("battery", self.free / (1.0 + margin), price, self.return_cost)
        if self.crew.time_limit_s is None:
            return (battery,)

        def seconds(positions: Array, sites: Array, controls: Mask | None = None, level: int = 0) -> Array:
            return cost.duration_s(positions, sites, controls, level, self.time_s)

        return battery, Limit("time", self.hours.free(margin_s) / (1.0 + margin_s), seconds, self.return_s)

    def short_of(self, sites: Array, sets: Sequence[Mask | None] = (None,), level: int = 0) -> str | None:
        """Return the limit that refuses most of `sites` (N, d), the first of them if equal; None: no one.

        By the cheapest of several control `sets`. A site to which there is no way at any price is no matter
        of limits.
        """
        if self.cost is None:
            return "battery"
        refused: dict[str, int] = {}
        for limit in self.limits:
            going = np.min([limit.going(self.end, sites, on, level) for on in sets], axis=0)
            needed = going + limit.back(sites)
            refused[limit.name] = int(np.count_nonzero((needed > limit.left) & np.isfinite(needed)))
        most = max(refused, key=lambda name: refused[name])
        return most if refused[most] else None

    def _each(self, spent: float | Sequence[float]) -> Sequence[float]:
        """Return what a simulated path would have spent of each limit; a number is in the cost unit."""
        if not isinstance(spent, int | float):
            return spent
        if self.crew.time_limit_s is None:
            return (spent,)
        assert self.cost is not None
        return spent, spent * self.cost.seconds_per_unit if spent else 0.0

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

    def done_s(self, order: Order) -> float:
        """Return when an order would be done if it left now, on the vehicle's clock."""
        return self.time_s + self.queue_s + self.seconds(order)

    def send(self, order: Order) -> None:
        """Put an order at the end of the queue, and set aside what it takes."""
        assert order.id is not None
        held, held_s = self._held(order)
        unknown = self.cost is None and isinstance(order, Query) and order.expected_cost is None
        self.ledger.reserve(order.id, math.nan if unknown else self.price(order), held)
        self.hours.reserve(order.id, self.seconds(order), held_s)
        self.queue.append(order)

    def _held(self, order: Order) -> tuple[float, float]:
        """Return what is to be set aside for an order behind the queue, of the battery and of the time."""

        def price(start: Array) -> Array:
            return np.array(self.price(order, start))

        def seconds(start: Array) -> Array:
            return np.array(self.seconds(order, start))

        return float(self._behind_queue(price, self.ledger)), float(self._behind_queue(seconds, self.hours))

    def settle(self, order: str) -> None:
        """Take an order out of the queue; nothing is set aside for it any more."""
        self._in_touch()
        for book in (self.ledger, self.hours):
            book.release(order)
        self._dequeue(order)

    def _in_touch(self) -> None:
        self.lost_in_a_row, self.abandoned = 0, False

    def lose(self, order: str) -> None:
        """Take an order out of the queue whose outcome is not known; its cost stays set aside."""
        self.lost_in_a_row += 1
        for book in (self.ledger, self.hours):
            book.lose(order)
        self._dequeue(order)

    def _dequeue(self, order: str) -> None:
        """Take an order out of the queue, and reckon those behind it from where they now begin."""
        self.under_way = None
        queue, self.queue = [one for one in self.queue if one.id != order], []
        for one in queue:
            if math.isnan(self.ledger.entries[str(one.id)].spent):  # not one under way
                for book, held in zip(self._books, self._held(one), strict=True):
                    book.redeclare(str(one.id), held)
            self.queue.append(one)

    def observed(self, event: Observation, number: int) -> None:
        """Pay for what was done, and move; `number` is the order's."""
        self.ledger.charge(event.order, event.cost, settles=event.last)
        told = [*event.times_s, *([] if event.time_s is None else [event.time_s])]
        now = float(max([self.time_s, *told]))
        self._pass(event, now - self.time_s if told else None)
        if (number, event.part) >= self.latest and now >= self.heard_s:
            self.position = event.position  # what comes late says where the vehicle once was
        self.latest = max(self.latest, (number, event.part))
        self.time_s = now
        if event.last:
            self.settle(event.order)

    def _pass(self, event: Observation, seconds: float | None) -> None:
        """Charge the time that passed; None where it was not told."""
        if seconds is None:
            return
        if seconds > 0:  # the clock has gone on, whatever became of lost orders
            for order in sorted(self.hours.lost - {event.order}):
                self.hours.release(order)
        if event.order in self.hours.reconciled:
            self.hours.settle_lost(seconds)
        else:
            self.hours.charge(event.order, seconds, settles=event.last)

    def heard(self, telemetry: Telemetry) -> None:
        """Take over clock, position, and what is left in the battery: lost orders are settled by that.

        Only while nothing is under way: what an order in the queue has used so far will come with its
        observation. Telemetry from before an order left says nothing of it.
        """
        if telemetry.time_s < self.time_s:
            return
        self._in_touch()
        if self.queue:
            self.under_way = telemetry
            return
        later = telemetry.time_s > self.time_s
        if later:
            self.hours.settle_lost(telemetry.time_s - self.time_s)
        self.time_s = self.heard_s = telemetry.time_s
        self.position = telemetry.position
        if later and telemetry.remaining is not None:
            self.ledger.reconcile(telemetry.remaining, telemetry.accuracy)

    @property
    def affordable_home(self) -> bool:
        """Whether what is left pays for the way home, without the margin."""
        return float(self.return_cost(self.position[None])[0]) <= self.ledger.left

    @property
    def out_of_touch(self) -> bool:
        """Whether so many orders in a row were lost that something has to be done about it."""
        return self.lost_in_a_row >= self.crew.when_lost.orders

    @property
    def at_risk(self) -> bool:
        """Whether what is left, as told under way, no longer pays for the queue and the way home.

        Only where the way home from where it is costs less than that: else there is nothing to be won by
        breaking off.
        """
        told, home = self.under_way, self.crew.home
        if told is None or told.remaining is None or home is None or self.cost is None or not self.queue:
            return False
        first, *rest = self.queue  # the first may be at its reading, which is paid by then
        at = self._after(first)
        needed = float(self.cost.travel(told.position, at[None], self.time_s)[0])
        for order in rest:
            needed += self.price(order, at)
            at = self._after(order)
        needed += float(self.return_cost(at[None])[0])
        back = float(self.return_cost(told.position[None])[0])
        return told.remaining + told.accuracy - self.crew.reserve < needed and back < needed

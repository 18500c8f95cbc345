"""What a vehicle can still afford, estimated from the end of its queue.

The end of the queue is where the vehicle will be, and what it will have left, once all its outstanding orders
are done. `fieldbo.agent.ledger` derives the inequality that the guard keeps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.agent.ledger import Ledger
from fieldbo.costs.base import CostModel, Limit, Supply
from fieldbo.messages import GoHome, Order, Query, Recharge
from fieldbo.mission.vehicle_spec import VehicleSpec

_ROUNDING = 1e-9

_STOPS = 8
"""At how many points of each leg a vehicle may break off, when that is checked."""


@dataclass
class Affordability:
    """Declared prices of a vehicle's orders, and what its battery and time limit still allow.

    Parameters
    ----------
    spec : VehicleSpec
        The vehicle as the mission describes it.
    cost : CostModel or None
        The declared cost model; None where costs are unknown: an order then costs what its policy expects.

    Attributes
    ----------
    position : (d,) array
        The latest reported position.
    ledger : Ledger
        The battery, in the world's cost unit.
    time_ledger : Ledger
        The time limit, in seconds; infinite if there is none.
    time_s : float
        The vehicle's clock, in seconds since the start.
    queue : list of Order
        Outstanding orders, first to last.
    adrift : dict of str to Order
        Lost orders that the vehicle may have begun, or may still be carrying out, by id.
    glimpsed : (d,) array or None
        Where the vehicle was last seen under way to one of them.
    used : list of Ledger
        The ledgers of the batteries before the present one, in order.
    """

    spec: VehicleSpec
    cost: CostModel | None
    position: Array = field(init=False)
    ledger: Ledger = field(init=False)
    time_ledger: Ledger = field(init=False)
    time_s: float = 0.0
    queue: list[Order] = field(default_factory=list)
    adrift: dict[str, Order] = field(default_factory=dict)
    glimpsed: Array | None = None
    used: list[Ledger] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.position, self.ledger = self.spec.start, Ledger(self.spec.battery)
        self.time_ledger = Ledger(np.inf if self.spec.time_limit_s is None else self.spec.time_limit_s)

    # -- batteries -------------------------------------------------------------------------------------

    @property
    def battery_number(self) -> int:
        """Number of the present battery, counted from 1."""
        return len(self.used) + 1

    @property
    def batteries_left(self) -> int:
        """Number of batteries that have not been used yet."""
        return self.spec.batteries - self.battery_number

    @property
    def ledgers(self) -> tuple[Ledger, ...]:
        """The ledgers of all batteries so far, the present one last."""
        return (*self.used, self.ledger)

    @property
    def spent(self) -> float:
        """What all batteries spent so far, in the cost unit."""
        return math.fsum(ledger.spent for ledger in self.ledgers)

    def ledger_of(self, order: str) -> Ledger:
        """Return the ledger of the battery with which an order was issued."""
        return next((ledger for ledger in self.used if order in ledger.entries), self.ledger)

    # -- where and when --------------------------------------------------------------------------------

    @property
    def end(self) -> Array:
        """The position (d,) at the end of the queue."""
        return self._end_of(self.queue[-1]) if self.queue else self.position

    @property
    def places(self) -> list[Array]:
        """Where the vehicle may be before its queue: its position (d,), and those of orders that were lost.

        It may be anywhere between them, too. A trip from there costs no more than one from the worst of them,
        once what is set aside for the lost orders is counted.
        """
        elsewhere = [] if self.glimpsed is None else [self.glimpsed]
        return [self.position, *elsewhere, *(self._end_of(order) for order in self.adrift.values())]

    def _end_of(self, order: Order) -> Array:
        """Return where an order ends (d,)."""
        if isinstance(order, Query):
            free = np.isnan(order.site)  # unknown until the sample is taken
            return np.where(free, self.position, order.site) if free.any() else order.site
        assert self.spec.home is not None
        return self.spec.home

    @property
    def queue_s(self) -> float:
        """Declared duration of the queue, in seconds."""
        held = self.time_ledger.reserved
        return math.fsum(held[str(order.id)] for order in self.queue)

    def done_s(self, order: Order) -> float:
        """Return when an order would be done if it were issued now, on the vehicle's clock."""
        return self.time_s + self.queue_s + self.seconds(order)

    # -- declared prices -------------------------------------------------------------------------------

    def price(self, order: Order, start: Array | None = None) -> float:
        """Return the declared cost of an order from `start` (d,), by default the end of the queue."""
        start = self.end if start is None else start
        if isinstance(order, GoHome):
            return float(self.return_cost(start[None])[0])
        if isinstance(order, Recharge):
            return 0.0
        if self.cost is None:
            return order.expected_cost or 0.0
        return float(self.cost.to(start, order.site[None], order.controls, order.level, self.time_s)[0])

    def seconds(self, order: Order, start: Array | None = None) -> float:
        """Return the declared duration of an order from `start` (d,), by default the end of the queue."""
        start = self.end if start is None else start
        if isinstance(order, GoHome):
            return float(self.return_s(start[None])[0])
        if isinstance(order, Recharge):
            return 0.0 if self.spec.recharge is None else self.spec.recharge.takes_s
        if self.cost is None:
            return 0.0
        return float(
            self.cost.duration_s(start, order.site[None], order.controls, order.level, self.time_s)[0]
        )

    def return_cost(self, sites: Array) -> Array:
        """Return the cost (N,) of the trip home from `sites` (N, d); zeros without a home."""
        home = self.spec.home
        if home is None or self.cost is None:
            return np.zeros(len(sites))
        return self.cost.travel(np.atleast_2d(sites), home[None], self.time_s)[:, 0]

    def return_s(self, sites: Array) -> Array:
        """Return the duration (N,) of the trip home from `sites` (N, d), in seconds; zeros without a home."""
        home = self.spec.home
        if home is None or self.cost is None:
            return np.zeros(len(sites))
        return self.cost.travel_s(np.atleast_2d(sites), home[None], self.time_s)[:, 0]

    def reserves(self, order: Order) -> tuple[float, float]:
        """Return how much battery and time to set aside for an order behind the queue."""

        def price(start: Array) -> Array:
            return np.array(self.price(order, start))

        def seconds(start: Array) -> Array:
            return np.array(self.seconds(order, start))

        return float(self._at_most(price, self.ledger)), float(self._at_most(seconds, self.time_ledger))

    def _at_most(self, price: Callable[[Array], Array], ledger: Ledger) -> Array:
        """Return the most that an order behind the queue can take (N,).

        Any of the queued orders may be rejected, and the vehicle may be at any of its `places`. The triangle
        inequality may fail: with round obstacles and legs that begin and end at rest, dropping an order can
        make the next one more expensive than the two together. So the price is also taken from every earlier
        place in the queue, less what is set aside for the orders between. `price` maps a start (d,) to prices
        (N,).
        """
        prices, held = list[Array](), 0.0
        for order in reversed(self.queue):
            prices.append(price(self._end_of(order)) - held)
            held += ledger.entries[str(order.id)].declared
        prices += [price(place) - held for place in self.places]
        return np.asarray(np.maximum.reduce(prices))

    # -- the guard -------------------------------------------------------------------------------------

    @property
    def free(self) -> float:
        """Battery left after the reserve and the queue, should every queued order overrun by the margin."""
        return self.ledger.free(self._margin(self.ledger)) - self.spec.reserve

    def _margin(self, ledger: Ledger) -> float:
        """Return the fraction by which orders may overrun: the mission's, or the latest orders' if larger."""
        return self.spec.margin if self.cost is None else max(self.spec.margin, ledger.overrun)

    @property
    def margin_s(self) -> float:
        """The fraction by which orders may take longer than declared."""
        return self._margin(self.time_ledger)

    @property
    def spendable(self) -> float:
        """Battery left for moves at their declared costs."""
        return max(0.0, self.free) / (1.0 + self._margin(self.ledger))

    @property
    def limits(self) -> tuple[Limit, ...]:
        """Battery, and time if limited, to spend from the end of the queue; empty if costs are unknown."""
        cost, margin, margin_s = self.cost, self._margin(self.ledger), self.margin_s
        if cost is None:
            return ()

        def price(positions: Array, sites: Array, controls: Mask | None = None, level: int = 0) -> Array:
            return cost.to(positions, sites, controls, level, self.time_s)

        battery = Limit("battery", self.free / (1.0 + margin), price, self.return_cost)
        if self.spec.time_limit_s is None:
            return (battery,)

        def seconds(positions: Array, sites: Array, controls: Mask | None = None, level: int = 0) -> Array:
            return cost.duration_s(positions, sites, controls, level, self.time_s)

        time = Limit("time", self.time_ledger.free(margin_s) / (1.0 + margin_s), seconds, self.return_s)
        return battery, time

    @property
    def supplies(self) -> tuple[Supply, ...]:
        """What all batteries together hold for queries, of each of the `limits`."""
        if self.cost is None:
            return ()
        full = max(0.0, self.spec.battery - self.spec.reserve) / (1.0 + self._margin(self.ledger))
        left = self.spendable + max(0, self.batteries_left) * full
        battery = Supply(left, self.spent + left)
        if self.spec.time_limit_s is None:
            return (battery,)
        left_s = max(0.0, self.time_ledger.free(self.margin_s)) / (1.0 + self.margin_s)
        return battery, Supply(left_s, self.time_ledger.spent + left_s)

    def affordable(
        self,
        sites: Array,
        controls: Mask | None = None,
        level: int = 0,
        position: Array | None = None,
        spent: float | Sequence[float] = 0.0,
    ) -> Mask:
        """Return which queries are affordable, including the trip home, reserve, margin and time limit.

        Parameters
        ----------
        sites : (N, d) array
        controls : (d,) bool array, optional
        level : int
        position : (d,) array, optional
            Start of the query; by default the end of the queue. Set it for a simulated path.
        spent : float or sequence of float
            Declared cost of that path so far: in the cost unit, or one number for each of `limits`.

        Returns
        -------
        (N,) bool array
            A query that takes exactly what is left is affordable. Where costs are unknown, all queries are
            while anything is left.
        """
        ends = np.atleast_2d(sites)
        able = np.full(len(ends), self.cost is not None or self.spendable > 0)
        for limit, before in zip(self.limits, self._by_limit(spent), strict=False):
            taken = self._taken(limit, ends, (controls,), level, position)
            able &= before + taken + limit.back(ends) <= limit.left
        return able

    def _taken(
        self,
        limit: Limit,
        ends: Array,
        sets: Sequence[Mask | None],
        level: int = 0,
        position: Array | None = None,
    ) -> Array:
        """Return how much of a limit queries at `ends` (N, d) take (N,).

        They start from `position` (d,), by default from the end of the queue, and each is priced with the
        cheapest of the control `sets`.
        """

        def going(start: Array) -> Array:
            prices = [limit.going(start, ends, controls, level) for controls in sets]
            return np.asarray(np.minimum.reduce(prices))

        if position is not None:
            return going(position)
        return self._at_most(going, self.time_ledger if limit.name == "time" else self.ledger)

    def _by_limit(self, spent: float | Sequence[float]) -> Sequence[float]:
        """Return how much of each limit a simulated path has spent; a single number is in the cost unit."""
        if not isinstance(spent, int | float):
            return spent
        if self.spec.time_limit_s is None:
            return (spent,)
        assert self.cost is not None
        return spent, spent * self.cost.seconds_per_unit if spent else 0.0

    def can_pay(self, queries: Sequence[Query]) -> bool:
        """Return True if all `queries` are affordable, one after the other from the end of the queue."""
        position: Array | None = None
        limits = self.limits
        spent = [0.0] * len(limits)
        for query in queries:
            site = query.site[None]
            if not self.affordable(site, query.controls, query.level, position, spent)[0]:
                return False
            for k, limit in enumerate(limits):
                spent[k] += float(self._taken(limit, site, (query.controls,), query.level, position)[0])
            position = query.site
        return True

    def short_of(self, sites: Array, sets: Sequence[Mask | None] = (None,)) -> str | None:
        """Return the limit that rules out most of `sites` (N, d), or None if none rules out any.

        Each site is priced with the cheapest of the control `sets`. Unreachable sites do not count, and the
        first limit wins a tie.
        """
        if self.cost is None:
            return "battery"
        ruled_out: dict[str, int] = {}
        for limit in self.limits:
            needed = self._taken(limit, sites, sets) + limit.back(sites)
            ruled_out[limit.name] = int(np.count_nonzero((needed > limit.left) & np.isfinite(needed)))
        most = max(ruled_out, key=lambda name: ruled_out[name])
        return most if ruled_out[most] else None

    def can_turn_back(self, cost: CostModel | None, slack: float = 0.0) -> bool:
        """Return True if the trip home stays affordable wherever the vehicle breaks off its first order.

        With legs that begin and end at rest, stopping under way takes more than going on.

        Parameters
        ----------
        cost : CostModel or None
            Of the trip home from there.
        slack : float
            What has to be left over, as a fraction of the battery, and of the time limit.
        """
        home = self.spec.home
        if home is None or cost is None or self.cost is None:
            return True
        ways = [*(np.stack([place, place]) for place in self.places), *self._broken_off()]
        going = np.array([self.cost.along(way, self.time_s) for way in ways])
        ends = np.stack([way[-1] for way in ways])
        back = np.column_stack(
            [
                cost.travel(ends, home[None], self.time_s)[:, 0],
                cost.travel_s(ends, home[None], self.time_s)[:, 0],
            ]
        )
        margins = np.array([self._margin(self.ledger), self._margin(self.time_ledger)])
        spare = slack * np.array([self.spec.battery, self.spec.time_limit_s or 0.0])
        lost = self.ledger.lost_at_most(margins[0]), self.time_ledger.lost_at_most(margins[1])
        battery = self.ledger.left - self.ledger.uncertain - self.spec.reserve
        free = np.array([battery, self.time_ledger.left]) - lost
        needed = (1.0 + margins) * (going + back) + spare
        return bool((needed <= free).all())

    def _broken_off(self) -> list[Array]:
        """Return how far the vehicle may have come with its first order, as routes of (k, d) points."""
        ways = [np.stack([self.position, self.position])]
        if not self.queue:
            return ways
        order = self.queue[0]
        bends = order.route[1:] if len(order.route) else self._end_of(order)[None]
        corners = np.vstack([self.position, bends])
        for k, (a, b) in enumerate(pairwise(corners)):
            for part in np.linspace(0.0, 1.0, _STOPS + 1)[1:]:
                ways.append(np.vstack([corners[: k + 1], a + part * (b - a)]))
        return ways

    @property
    def unpriced(self) -> str | None:
        """Id of the first queued order of unknown cost; None if there is none."""
        planned = {str(order.id): self.ledger.entries[str(order.id)].planned for order in self.queue}
        return next((order for order, cost in planned.items() if math.isnan(cost)), None)

    @property
    def affordable_home(self) -> bool:
        """True if the battery is enough for the trip home, without the margin, wherever the vehicle is.

        Whichever shows more is believed here, the gauge or the costs: to stay out there would be no safer.
        """
        ledger = self.ledger
        left = (ledger.left + max(ledger.surplus, ledger.returnable)) * (1.0 + _ROUNDING)
        return float(self.return_cost(np.stack(self.places)).max()) <= left

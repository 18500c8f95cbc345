"""One vehicle under way: its phase, position, clock, queue and ledgers, updated by orders and events."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.agent.affordability import Affordability
from fieldbo.agent.failures import Standstill
from fieldbo.agent.ledger import Ledger
from fieldbo.agent.phase import Phase, Turn, after
from fieldbo.messages import (
    EndReason,
    GoHome,
    Observation,
    Order,
    Query,
    Recharge,
    Telemetry,
    order_number,
)

SLACK = 0.01
"""What a waiting vehicle may use up before it is heard from again, as a fraction of the whole."""

_NEARER = 0.99
"""A vehicle whose trip home costs less than this fraction of before has come nearer: positions scatter."""


@dataclass
class Pause:
    """What a pause took, as telemetry showed it.

    Attributes
    ----------
    hold : str
        Name of the hold that caused it; empty for an operator's.
    after : int
        How many orders had been issued before it.
    battery : int
        Number of the battery that it took from, counted from 1.
    spent, seconds : float
        Battery, in the cost unit, and time.
    left, left_s : float
        What was left of both at its end; NaN before any telemetry.
    """

    hold: str
    after: int
    battery: int = 1
    spent: float = 0.0
    seconds: float = 0.0
    left: float = math.nan
    left_s: float = math.nan

    def took(self, spent: float, seconds: float, battery: Ledger, time: Ledger) -> None:
        """Add what it took since the last telemetry."""
        self.spent, self.seconds = self.spent + spent, self.seconds + seconds
        self.left, self.left_s = battery.left, time.left


@dataclass(frozen=True)
class Statement:
    """What a person said is left in a battery.

    Attributes
    ----------
    battery : int
        Number of the battery, counted from 1.
    spent : float
        What it took from the account, in the cost unit; below 0 if it gave something back.
    left : float
        What was left by the account from then on.
    """

    battery: int
    spent: float
    left: float


@dataclass
class VehicleState(Affordability):
    """One vehicle under way. See `Affordability` for its position, clock, queue and ledgers.

    Attributes
    ----------
    phase : Phase
        What it is doing; `turn` changes it.
    reason : EndReason or None
        Why its part is over; None before that.
    latest : tuple of int
        Number and part of the latest order reported on.
    heard_s : float
        Time of the latest position that telemetry reported and that was applied.
    settled_s : float
        When the latest order was settled.
    settled_at : (d,) array or None
        Where the vehicle was then; None before the first time.
    reports : bool
        Whether the vehicle ever sent telemetry.
    under_way : Telemetry or None
        The latest telemetry received while orders were outstanding.
    lost_in_a_row : int
        Orders lost since the vehicle was last heard from.
    abandoned : bool
        Whether waiting for the vehicle was given up.
    home_tries : int
        How often it failed to come home since it last did.
    sent_again : bool
        Whether somebody has resumed the run so that it is sent home: it is, once, whatever its battery shows.
    paused_by : frozenset of str
        Names of the holds for which it gets no orders at present; an operator's pause has the name "".
    pauses : list of Pause
        What each pause took so far.
    statements : list of Statement
        What people said is left in the battery.
    wanted : list of (d,) array
        Where an operator wants the next samples, in order.
    swap_refused : bool
        Whether the battery could not be changed.
    recharged_s : float
        When the battery was changed last.
    came_home : bool
        Whether it has completed a trip home, and was sent nowhere since.
    still : Standstill
        What it reports that stands still while it works.
    trips_lost, unsent_trips : int
        How many trips home were lost since it last came home, and how many of them never left.
    trips_in_vain : int
        How many trips home were lost since it was last seen nearer to its home.
    trip_left : float
        Declared cost of the trip home from where it was seen then.
    lost_from : (d,) array or None
        Where it was when it began to lose orders; None unless any may still be under way.
    lost_s : float
        The latest time that was known when it lost an order last.
    moved : float
        Declared cost of the farthest that it was seen from there since, and that was charged.
    unmoved : set of str
        Lost orders after which it was seen where it was before.
    """

    phase: Phase = Phase.WORKING
    reason: EndReason | None = None
    latest: tuple[int, int] = (-1, 0)
    heard_s: float = -np.inf
    settled_s: float = -np.inf
    settled_at: Array | None = None
    reports: bool = False
    under_way: Telemetry | None = None
    lost_in_a_row: int = 0
    abandoned: bool = False
    home_tries: int = 0
    sent_again: bool = False
    paused_by: frozenset[str] = frozenset()
    pauses: list[Pause] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    wanted: list[Array] = field(default_factory=list)
    swap_refused: bool = False
    recharged_s: float = -np.inf
    came_home: bool = False
    still: Standstill = field(default_factory=lambda: Standstill(math.inf, ""))
    trips_lost: int = 0
    unsent_trips: int = 0
    trips_in_vain: int = 0
    trip_left: float = np.inf
    lost_from: Array | None = None
    lost_s: float = -np.inf
    moved: float = 0.0
    unmoved: set[str] = field(default_factory=set)

    # -- the phase -------------------------------------------------------------------------------------

    def turn(self, turn: Turn, reason: EndReason | None = None) -> None:
        """Change the phase; `reason` says why the vehicle's part is over, if it is."""
        self.phase = after(self.phase, turn)
        if self.phase.over:
            self.reason = reason or self.reason

    def came_back(self, number: int) -> None:
        """Note that the order with this number has brought it home, unless that was long ago."""
        self.came_home = not self.queue and number == self.latest[0]
        if self.came_home:
            self._try_anew()
            self.turn(Turn.CAME_HOME)

    @property
    def stranded(self) -> bool:
        """Whether its part is over, and it is not known to be at its home."""
        return self.phase is Phase.ENDED and self.spec.home is not None and not self.at_home

    def try_home_again(self) -> None:
        """Have a vehicle that did not come home sent there again."""
        self._in_touch()
        self._try_anew()
        self.sent_again = True
        self.turn(Turn.SENT_HOME)

    def reopen(self) -> None:
        """Let a vehicle whose part was over receive orders again."""
        self._in_touch()
        self.turn(Turn.REOPENED)
        self.reason, self.swap_refused = None, False
        self._try_anew()

    def _try_anew(self) -> None:
        """Forget how often it failed to come home."""
        self.home_tries = self.trips_lost = self.unsent_trips = self.trips_in_vain = 0
        self.trip_left = np.inf

    # -- the queue -------------------------------------------------------------------------------------

    def send(self, order: Order) -> None:
        """Append an order to the queue, and set aside what it takes."""
        assert order.id is not None
        held, held_s = self.reserves(order)
        self.ledger.reserve(order.id, self._known_price(order), held)
        self.time_ledger.reserve(order.id, self.seconds(order), held_s)
        if isinstance(order, Recharge):  # how long it takes says nothing about the durations of moves
            self.time_ledger.entries[order.id].price = math.nan
        self.came_home &= isinstance(order, Recharge)
        self.sent_again = False
        self.queue.append(order)

    def can_repeat(self, order: Order) -> bool:
        """Return True if the queue and the trip home could be paid even if one order samples twice."""
        if not isinstance(order, Query) or self.cost is None:
            return True
        site = self._end_of(order)
        ends, controls, level = np.stack([site, self.end]), order.controls, order.level
        return all(
            float(limit.going(site, site[None], controls, level)[0] + limit.back(ends).max()) <= limit.left
            for limit in self.limits
        )

    def settle(self, order: str) -> None:
        """Remove an order from the queue, and release what was set aside for it."""
        self._in_touch()
        self.adrift.pop(order, None)
        for ledger in (self.ledger_of(order), self.time_ledger):
            ledger.release(order)
        self._dequeue(order)

    def reject(self, order: str) -> None:
        """Settle an order that was not carried out: what telemetry reported meanwhile counts."""
        latest = self.under_way
        self.settle(order)
        if latest is not None and not self.queue:
            self.heard(latest)

    def lose(self, order: str, *, sent: bool = True, at_s: float | None = None) -> None:
        """Remove an order of unknown outcome from the queue; if it was sent, what was set aside stays."""
        self.lost_in_a_row += 1
        if isinstance(next((q for q in self.queue if q.id == order), None), GoHome):
            self._lose_trip()
        if not sent:
            for ledger in (self.ledger_of(order), self.time_ledger):
                ledger.release(order)
            self._dequeue(order)
            return
        if not self.adrift:
            self.lost_from, self.moved = self.position, 0.0
        self.lost_s = self.time_s if self.under_way is None else self.under_way.time_s
        self.lost_s = max(self.lost_s, at_s or 0.0)
        self.adrift |= {str(queued.id): queued for queued in self.queue if queued.id == order}
        if (latest := self.under_way) is not None and self._is_located(latest):
            self.glimpsed = latest.position
        for ledger in (self.ledger_of(order), self.time_ledger):
            ledger.lose(order)
        self._dequeue(order)

    def _lose_trip(self) -> None:
        """Note that a trip home was lost, and whether the vehicle was seen nearer to its home before it."""
        self.trips_lost += 1
        self.trips_in_vain += 1
        left = float(self.return_cost(self.position[None])[0])
        if left < _NEARER * self.trip_left:
            self.trips_in_vain, self.trip_left = 0, left

    def _dequeue(self, order_id: str) -> None:
        """Remove an order from the queue, and price those behind it from where they now begin."""
        self.under_way = None
        queue, self.queue = [order for order in self.queue if order.id != order_id], []
        for order in queue:
            if math.isnan(self.ledger.entries[str(order.id)].spent):  # it has not begun
                held, held_s = self.reserves(order)
                self.ledger.redeclare(str(order.id), self._known_price(order), held)
                self.time_ledger.redeclare(str(order.id), self.seconds(order), held_s)
            self.queue.append(order)

    def _known_price(self, order: Order) -> float:
        """Return the declared or expected cost of an order at the end of the queue; NaN if unknown."""
        unknown = self.cost is None and isinstance(order, Query) and order.expected_cost is None
        return math.nan if unknown else self.price(order)

    # -- events ----------------------------------------------------------------------------------------

    def observed(self, event: Observation, number: int) -> None:
        """Charge an observation, and move; `number` is its order's number."""
        ledger = self.ledger_of(event.order)
        uncertain = self._margin(ledger) * event.cost if event.estimated else None
        ledger.charge(event.order, event.cost, settles=event.last, uncertain=uncertain)
        times = [*event.times_s, *([] if event.time_s is None else [event.time_s])]
        at_s = float(max(times, default=self.time_s))
        now = max(self.time_s, at_s)
        self._pass(event, now - self.time_s if times else None)
        if (number, event.part) >= self.latest:  # a late observation reports where the vehicle once was
            if at_s >= self.heard_s:
                self.position = event.position
            self.adrift = {key: order for key, order in self.adrift.items() if order_number(key) >= number}
            self.glimpsed = self.glimpsed if self.adrift.keys() - {event.order} else None
        self.latest = max(self.latest, (number, event.part))
        self.time_s = now
        if event.last:
            self.settled_s, self.settled_at = now, self.position
            self.settle(event.order)

    def _pass(self, event: Observation, seconds: float | None) -> None:
        """Charge the time that passed; None if the observation has no time."""
        if seconds is None:
            return
        if seconds > 0:  # the clock has advanced, whatever happened to lost orders
            for order in sorted(self.time_ledger.lost - {event.order}):
                self.time_ledger.release(order)
        if event.order in self.time_ledger.reconciled:
            self.time_ledger.settle_lost(seconds)
        else:
            self.time_ledger.charge(event.order, seconds, settles=event.last)

    def renew(self, battery: int) -> None:
        """Begin the ledger of a new battery with this number, unless it has begun.

        What orders have really cost of late also holds for the new one.
        """
        if battery != self.battery_number + 1:
            return
        self.still.renew()
        self.used.append(self.ledger)
        self.ledger = Ledger(self.spec.battery, latest=list(self.ledger.latest))
        self.recharged_s = self.time_s
        self.turn(Turn.CHANGED)

    def state_left(self, left: float) -> None:
        """Adopt what a person says is left in the battery, at most the declared account."""
        spent = self.ledger.state(left)
        self.statements.append(Statement(self.battery_number, spent, self.ledger.left))

    @property
    def changes_battery(self) -> bool:
        """Whether its battery is being changed, or about to be."""
        return self.phase.between_batteries or any(isinstance(order, Recharge) for order in self.queue)

    def heard(self, telemetry: Telemetry) -> None:
        """Apply telemetry: clock, position and battery, which settles lost orders.

        While orders are outstanding, telemetry is kept: their observations will report what they used. Until
        then, the battery only shows that no more than that was used before. Telemetry older than the clock is
        ignored, and so is what a battery held before it was changed.
        """
        if telemetry.time_s < self.time_s:
            return
        self._in_touch()
        self.reports = True
        before, waited = self.time_s, self.ledger.waited
        later, located = telemetry.time_s > self.time_s, self._is_located(telemetry)
        if self.queue:
            self.under_way = telemetry
        else:
            if later:
                self.time_ledger.settle_lost(telemetry.time_s - self.time_s)
            self.time_s = telemetry.time_s
            if located:
                self.heard_s, self.glimpsed = _since(telemetry.located_s, telemetry), None
                self.position = telemetry.position
                if self.heard_s > self.lost_s:
                    self._look_whether_it_moved()
        if telemetry.remaining is not None and self._is_of_this_battery(telemetry):
            self.still.heard(telemetry)
            self.ledger.reconcile(
                telemetry.remaining,
                telemetry.accuracy,
                self._may_take(located=located),
                at_least=1.0 if self.still.gauge else telemetry.at_least,
                margin=self._margin(self.ledger),
                moved=self._moved_on(),
                unmoved=self.unmoved,
                fresh=_since(telemetry.measured_s, telemetry) > self.settled_s,
                idle=not self.queue,
                paused=bool(self.paused_by),
            )
        if self.paused_by and self.pauses:
            self.pauses[-1].took(
                self.ledger.waited - waited, self.time_s - before, self.ledger, self.time_ledger
            )

    def _look_whether_it_moved(self) -> None:
        """Note which lost orders have not moved the vehicle, seen where it now is."""
        if self.moved > 0.0 or self.lost_from is None or not np.array_equal(self.position, self.lost_from):
            self.unmoved -= self.adrift.keys()
            return
        elsewhere = {key for key, order in self.adrift.items() if not self._ends_here(order)}
        self.unmoved = (self.unmoved & self.ledger.lost) | elsewhere

    def _ends_here(self, order: Order) -> bool:
        return np.array_equal(self._end_of(order), self.position)

    def _moved_on(self) -> float:
        """Return the declared cost of how much farther lost orders have moved the vehicle."""
        if self.queue or not self.adrift or self.lost_from is None or self.cost is None:
            return 0.0
        before, away = self.moved, float(self.cost.travel(self.lost_from, self.position[None])[0])
        self.moved = max(before, away if math.isfinite(away) else 0.0)
        return self.moved - before

    def _is_located(self, telemetry: Telemetry) -> bool:
        """Return True if the position of telemetry is newer than the last one that is known."""
        return _since(telemetry.located_s, telemetry) >= max(self.settled_s, self.heard_s)

    def _is_of_this_battery(self, telemetry: Telemetry) -> bool:
        """Return False if the battery may be another one: it is being changed, or was since."""
        changing = any(isinstance(order, Recharge) for order in self.queue)
        return not changing and _since(telemetry.measured_s, telemetry) >= self.recharged_s

    def _may_take(self, *, located: bool) -> dict[str, float]:
        """Return what each lost order may still take that the vehicle may still be carrying out."""
        still = dict[str, float]()
        for key in self.ledger.lost & self.adrift.keys():
            order, entry = self.adrift[key], self.ledger.entries[key]
            if not located:
                still[key] = entry.declared - entry.paid
            elif not self._ends_here(order):
                still[key] = self.price(order, self.position)
            else:
                still[key] = 0.0
        return still

    def _in_touch(self) -> None:
        self.lost_in_a_row, self.abandoned = 0, False

    @property
    def at_home(self) -> bool:
        """True if nothing is outstanding, and the vehicle is at home or has completed a trip home."""
        home = self.spec.home
        if home is None or self.queue:
            return False
        if any(not np.array_equal(self._end_of(order), home) for order in self.adrift.values()):
            return False  # lost orders may have led it elsewhere
        return self.came_home or np.array_equal(self.position, home)

    # -- trouble ---------------------------------------------------------------------------------------

    @property
    def out_of_touch(self) -> bool:
        """True if as many orders were lost in a row as the mission tolerates."""
        return self.lost_in_a_row >= self.spec.when_lost.orders

    @property
    def at_risk(self) -> bool:
        """True if the battery reported under way is not enough for the queue and the trip home.

        False where breaking off would not help: the trip home from here costs as much.
        """
        latest, home = self.under_way, self.spec.home
        if latest is None or latest.remaining is None or home is None or self.cost is None or not self.queue:
            return False
        places = [latest.position] if self._is_located(latest) else [latest.position, *self.places]
        starts = np.stack(places)
        first, *rest = self.queue  # the sample of the first may already be taken and paid
        at = self._end_of(first)
        needed = float(self.cost.travel(starts, at[None], self.time_s).max())
        for order in rest:
            needed += self.price(order, at)
            at = self._end_of(order)
        needed += float(self.return_cost(at[None])[0])
        back = float(self.return_cost(starts).max())
        return latest.remaining + latest.accuracy - self.spec.reserve < needed and back < needed

    @property
    def must_return(self) -> bool:
        """True if what is left is only just enough for the trip home, with the reserve and the margin.

        A vehicle that waits uses up its battery and its time.
        """
        if self.spec.home is None:
            return False
        if self.at_home and self.batteries_left:
            return self.time_ledger.left <= 0.0
        places = np.stack(self.places)
        slack = {"battery": SLACK * self.spec.battery, "time": SLACK * (self.spec.time_limit_s or 0.0)}
        return any(float(limit.back(places).max()) + slack[limit.name] >= limit.left for limit in self.limits)


def _since(time_s: float | None, telemetry: Telemetry) -> float:
    """Return a time that telemetry gives, by default its own."""
    return telemetry.time_s if time_s is None else time_s

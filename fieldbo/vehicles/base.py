"""The contract of a vehicle, the simulated one, and the registries of vehicles and of links, by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from types import TracebackType
from typing import Self

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo._numerics.streams import stream
from fieldbo.clock import MACHINE_CLOCK, Clock
from fieldbo.errors import InputError
from fieldbo.messages import Answer, Event, GoHome, Observation, Order, Query, Recharge, order_number
from fieldbo.mission.kinds import Registry
from fieldbo.mission.mission import Mission, check_simulated


class Vehicle(ABC):
    """Carries out orders and reports the outcome; use it as a context manager.

    Subclass `Vehicle` to run missions on something that fieldbo does not support yet. If it is a robot that
    you reach over a network, subclass `Link` instead: `Remote` then adds the watchdog, timeouts, resuming and
    the checks on what the robot reports.

    The rules:

    - Settle every order exactly once: with an `Observation` whose `last` is true, with a `Rejected` if
      nothing moved and nothing was spent, or with a `Lost` if you do not know. An `Observation` may still
      follow a `Lost`.
    - Carry out each order once. An order with an id that you have seen before is the same order.
    - The runner calls all methods from one thread. Only `events` may wait.

    Test your class with `fieldbo.testing.VehicleContract`. To select it by name (``--vehicle NAME``), list it
    in the entry-point group ``fieldbo.vehicles``; it is then created as ``YourVehicle(mission, number)``,
    where `number` is its index among the mission's vehicles.

    Examples
    --------
    >>> import fieldbo
    >>> class Teleporter(Vehicle):
    ...     def __init__(self, mission, number=0):
    ...         self.seen, self.waiting = set(), []
    ...
    ...     def send(self, order):
    ...         if order.id not in self.seen:
    ...             self.seen.add(order.id)
    ...             at_site = isinstance(order, fieldbo.Query)
    ...             reading = {"value": 0.5, "noise_variance": 0.01} if at_site else {}
    ...             self.waiting.append(order.observed(**reading))
    ...
    ...     def events(self, timeout_s):
    ...         waiting, self.waiting = self.waiting, []
    ...         return waiting
    >>> with Teleporter(mission=None) as vehicle:
    ...     vehicle.send(fieldbo.Query([2.0, 1.0], expected_cost=3.0, id="run/0"))
    ...     vehicle.events(timeout_s=1.0)[0].cost
    3.0
    """

    clock: Clock = MACHINE_CLOCK
    """By which it waits, and so does the run that it carries out."""

    @abstractmethod
    def send(self, order: Order) -> None:
        """Accept an order and return at once; ignore an id that was sent before.

        Orders may arrive while others are outstanding: carry them out in turn.
        """

    @abstractmethod
    def events(self, timeout_s: float) -> list[Event]:
        """Return the events since the last call; wait up to `timeout_s` for the first."""

    def resume(self, orders: Sequence[Order], events: Sequence[Event]) -> None:
        """Continue a run that another vehicle object began.

        Called once, before any order is sent. For each order that no event settles, the runner next calls
        `outcome`, and sends the order again if its outcome is unknown.

        Parameters
        ----------
        orders : sequence of Query or GoHome
            All orders of the run, in order.
        events : sequence of Event
            All events of the run, in order.
        """

    def catch_up(self, time_s: float) -> None:
        """Continue a run at `time_s`, the seconds of the wall clock since its start; called after `resume`.

        A simulated vehicle ignores this: its time stands still while nothing is simulated.
        """

    def outcome(self, order: str) -> list[Event] | None:
        """Return all events of the order with this id; None if they are unknown."""
        return None

    def may_repeat(self, order: str) -> bool:
        """Return True if the order may be done already, and would be done once more if it is sent again.

        The runner asks before it sends an order of an earlier process again: a robot that remembers no orders
        may sample twice.
        """
        return False

    def cancel(self, order: str) -> None:
        """Abandon an order; it must still be settled."""

    def adopt(self, mission: Mission) -> None:
        """Continue with a mission in which an operator closed areas: plan routes round them from now on."""

    def take(self, answer: Answer) -> None:
        """Accept what a person entered about an order; by default, a vehicle reports by itself.

        Raises
        ------
        InputError
            It is not accepted.
        """
        raise InputError(f"{answer.order} is carried out by a vehicle that reports its readings itself")

    def ask_to_hold(self) -> None:
        """Ask for what `hold` then waits for, and return at once: a run asks all its vehicles first."""

    def hold(self) -> None:
        """Stay in place until the next order.

        Raises
        ------
        VehicleError
            The request could not be delivered. Keep trying until `close`, for as long as is reasonable.
        """

    def close(self) -> None:
        """Release links and files."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Simulated(Vehicle):
    """Visits each site at once and samples the world's field there.

    The cost of a move is the declared one with the world's disturbances applied. Random streams are keyed by
    the mission's seed and the order's number, so a resumed run continues as if it had never stopped.

    Parameters
    ----------
    mission : Mission
        Provides the world, the seed and the start.
    number : int
        Index of the vehicle in the mission.

    Raises
    ------
    InputError
        The world is live: it has no field to simulate.
    """

    def __init__(self, mission: Mission, number: int = 0) -> None:
        check_simulated(mission)
        self.mission, self.spec = mission, mission.vehicles[number]
        self.position: Array = self.spec.start
        self.time_s = 0.0
        self._outcomes: dict[str, list[Event]] = {}
        self._waiting: list[Event] = []

    def send(self, order: Order) -> None:
        """Carry out the order at once."""
        assert order.id is not None
        if order.id in self._outcomes:
            return
        match order:
            case GoHome():
                event = self._go_home(order)
            case Recharge():
                event = self._recharge(order)
            case Query():
                event = self._visit(order)
        self._move_to(event)
        self._outcomes[order.id] = [event]
        self._waiting.append(event)

    def resume(self, orders: Sequence[Order], events: Sequence[Event]) -> None:
        """Continue from the place and time of the latest observation."""
        for event in events:
            if isinstance(event, Observation):
                self._move_to(event)
                if event.last:
                    self._outcomes[event.order] = [event]

    def _move_to(self, event: Observation) -> None:
        self.position = event.position
        self.time_s = float(event.times_s[-1]) if event.time_s is None else event.time_s

    def _visit(self, query: Query) -> Observation:
        world, seed, number = self.mission.world, self.mission.seed, order_number(query.id)
        streams = {"rng": stream(seed, "sensor", number)}
        if world.disturbances is not None or world.domain.controls is not None:
            streams["luck"] = self._luck(query)
        if query.controls is not None:
            streams["chance"] = stream(seed, "chance", number)
        if world.sensor.along is not None:
            streams["along"] = stream(seed, "along", number)
        return world.evaluate(query, self.position, self.time_s, **streams)

    def _go_home(self, order: GoHome) -> Observation:
        assert self.spec.home is not None
        trip = replace(order, site=self.spec.home)
        along = stream(self.mission.seed, "along", order_number(order.id))
        return self.mission.world.go_home(trip, self.position, self.time_s, self._luck(order), along)

    def _recharge(self, order: Recharge) -> Observation:
        """Wait where the vehicle is until the battery is changed."""
        assert self.spec.recharge is not None
        waits = replace(order, site=self.position)
        return replace(waits.observed(), time_s=self.time_s + self.spec.recharge.takes_s)

    def _luck(self, order: Order) -> np.random.Generator:
        """Return the random stream of an order's cost."""
        return stream(self.mission.seed, "cost", order_number(order.id))

    def events(self, timeout_s: float) -> list[Event]:
        """Return the events since the last call; never waits."""
        waiting, self._waiting = self._waiting, []
        return waiting

    def adopt(self, mission: Mission) -> None:
        self.mission = mission

    def outcome(self, order: str) -> list[Event] | None:
        """Return the events of a completed order; None if it is unknown."""
        return self._outcomes.get(order)


VEHICLES = Registry(
    "vehicle",
    "fieldbo.vehicles",
    {
        "simulated": "fieldbo.vehicles.base:Simulated",
        "by-hand": "fieldbo.vehicles.by_hand:ByHand",
        "by-form": "fieldbo.vehicles.by_hand:ByForm",
    },
)

LINKS = Registry(
    "link",
    "fieldbo.links",
    {
        "ros2": "fieldbo.vehicles.ros2.link:Ros2",
        "ros2-topics": "fieldbo.vehicles.ros2.streams:Ros2Topics",
        "ros2-nav2": "fieldbo.vehicles.ros2.streams:Ros2Nav2",
        "mavlink": "fieldbo.vehicles.mavlink.link:Mavlink",
        "mqtt": "fieldbo.vehicles.mqtt.link:Mqtt",
    },
)

"""The contract of every vehicle, as tests to inherit."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod

import numpy as np

from fieldbo.clock import MACHINE_CLOCK, Clock
from fieldbo.messages import Event, GoHome, Observation, Order, Query, from_plain, settles, to_plain
from fieldbo.mission.mission import Mission
from fieldbo.testing.small import small_mission
from fieldbo.vehicles.base import Vehicle


class VehicleContract(ABC):
    """The contract of every vehicle. Override `vehicle`, and `mission` if it needs another one."""

    patience_s = 10.0
    """Time limit for settling an order."""

    clock: Clock = MACHINE_CLOCK
    """The vehicle's clock, which the time limit is counted by."""

    @abstractmethod
    def vehicle(self, mission: Mission) -> Vehicle:
        """Return a new vehicle at the start of the mission."""

    def mission(self) -> Mission:
        """Return the mission that it serves; it must have a home."""
        return small_mission()

    def _queries(self, mission: Mission, n: int) -> list[Query]:
        sites = mission.world.domain.sites
        chosen = sites[np.linspace(0, len(sites) - 1, n).astype(int)]
        return [Query(site, expected_cost=3.0, id=f"run/{k}") for k, site in enumerate(chosen)]

    def _until_settled(self, vehicle: Vehicle, *orders: Order) -> list[Event]:
        """Receive events until each of the orders is settled."""
        events: list[Event] = []
        end = self.clock.now_s() + self.patience_s
        waiting = {str(o.id) for o in orders}
        while waiting:
            assert self.clock.now_s() < end, f"{sorted(waiting)} not settled in {self.patience_s} s"
            new = vehicle.events(0.05)
            events += new
            waiting -= set(_settled(new))
        return events

    def test_an_order_is_settled_exactly_once(self) -> None:
        """By the last part of an observation, a rejection or a loss."""
        mission = self.mission()
        with self.vehicle(mission) as vehicle:
            for query in self._queries(mission, 4):
                vehicle.send(query)
                events = self._until_settled(vehicle, query) + vehicle.events(0.0)
                assert _settled(events) == [query.id]

    def test_an_order_that_is_sent_again_is_not_carried_out_again(self) -> None:
        """Neither while it is outstanding nor when it is done."""
        mission = self.mission()
        query, other = self._queries(mission, 2)
        with self.vehicle(mission) as vehicle:
            vehicle.send(query)
            vehicle.send(query)
            events = self._until_settled(vehicle, query)
            vehicle.send(query)
            vehicle.send(other)
            events += self._until_settled(vehicle, other) + vehicle.events(0.0)
            assert _settled(events) == [query.id, other.id]

    def test_all_orders_of_a_batch_are_settled(self) -> None:
        """The orders of a batch are sent without waiting."""
        mission = self.mission()
        queries = self._queries(mission, 3)
        with self.vehicle(mission) as vehicle:
            for query in queries:
                vehicle.send(query)
            events = self._until_settled(vehicle, *queries) + vehicle.events(0.0)
            assert sorted(_settled(events)) == [q.id for q in queries]

    def test_events_name_only_orders_that_were_sent(self) -> None:
        """And each part of an observation arrives once."""
        mission = self.mission()
        queries = self._queries(mission, 3)
        with self.vehicle(mission) as vehicle:
            parts: list[tuple[str, int]] = []
            for query in queries:
                vehicle.send(query)
                for event in self._until_settled(vehicle, query):
                    assert getattr(event, "order", query.id) == query.id
                    if isinstance(event, Observation):
                        parts.append((event.order, event.part))
            assert len(set(parts)) == len(parts)

    def test_without_an_order_nothing_is_settled(self) -> None:
        """And the call returns."""
        with self.vehicle(self.mission()) as vehicle:
            assert _settled(vehicle.events(0.0)) == []

    def test_positions_costs_and_sites_are_finite(self) -> None:
        """With the domain's dimension, in order of time; and the record can hold them."""
        mission = self.mission()
        dimension, before = mission.world.domain.dimension, -np.inf
        with self.vehicle(mission) as vehicle:
            for query in self._queries(mission, 4):
                vehicle.send(query)
                for event in self._until_settled(vehicle, query):
                    plain = json.loads(json.dumps(to_plain(event), allow_nan=False))
                    assert to_plain(from_plain(plain)) == to_plain(event)
                    if not isinstance(event, Observation):
                        continue
                    assert event.position.shape == (dimension,)
                    assert np.isfinite(event.position).all()
                    assert np.isfinite(event.cost)
                    assert event.sites.shape[1] == dimension
                    assert np.isfinite(event.sites).all()
                    for time_s in event.times_s:
                        assert time_s >= before
                        before = time_s

    def test_the_outcome_of_an_order_is_complete_or_unknown(self) -> None:
        """All events of the order, or None; an unknown order has none."""
        mission = self.mission()
        (query,) = self._queries(mission, 1)
        with self.vehicle(mission) as vehicle:
            assert vehicle.outcome("run/999") is None
            vehicle.send(query)
            events = [e for e in self._until_settled(vehicle, query) if hasattr(e, "order")]
            outcome = vehicle.outcome(str(query.id))
            assert outcome is None or [to_plain(e) for e in outcome] == [to_plain(e) for e in events]

    def test_a_new_vehicle_resumes_the_run_of_another_one(self) -> None:
        """Settled orders are not carried out again, and the next one starts where the last one ended."""
        mission = self.mission()
        first, second = self._queries(mission, 2)
        with self.vehicle(mission) as vehicle:
            vehicle.send(first)
            before = self._until_settled(vehicle, first)
        with self.vehicle(mission) as vehicle:
            vehicle.resume([first], before)
            vehicle.send(first)
            vehicle.send(second)
            after = self._until_settled(vehicle, second)
            assert _settled(after + vehicle.events(0.0)) == [second.id]
        times = [e.time_s or 0.0 for e in before + after if isinstance(e, Observation)]
        assert times == sorted(times)

    def test_a_cancelled_order_is_still_settled(self) -> None:
        """Cancelling an unknown or settled order has no effect."""
        mission = self.mission()
        (query,) = self._queries(mission, 1)
        with self.vehicle(mission) as vehicle:
            vehicle.cancel("run/999")
            vehicle.send(query)
            vehicle.cancel(str(query.id))
            events = self._until_settled(vehicle, query)
            vehicle.cancel(str(query.id))
            assert _settled(events + vehicle.events(0.0)) == [query.id]

    def test_going_home_ends_at_home(self) -> None:
        """Unless the vehicle reports that it did not get there."""
        mission = self.mission()
        home = mission.vehicles[0].home
        assert home is not None, "the mission of this suite needs a home"
        query, order = self._queries(mission, 2)[1], GoHome(0, "run/7")
        with self.vehicle(mission) as vehicle:
            vehicle.send(query)
            self._until_settled(vehicle, query)
            vehicle.send(order)
            (event,) = (e for e in self._until_settled(vehicle, order) if isinstance(e, Observation))
            if event.complete:
                gap = np.abs(event.position - home) / mission.world.domain.extent
                assert gap.max() <= 0.01

    def test_it_can_be_held_and_closed_repeatedly(self) -> None:
        """Even after its context has ended."""
        with self.vehicle(self.mission()) as vehicle:
            vehicle.hold()
            vehicle.hold()
        vehicle.close()
        vehicle.close()


def _settled(events: list[Event]) -> list[str]:
    """Return the ids that these events settle, in order."""
    return [event.order for event in events if settles(event)]

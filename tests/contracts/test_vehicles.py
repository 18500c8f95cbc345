"""The simulated vehicle and the one by hand against the contract of vehicles."""

from __future__ import annotations

import pytest

from fieldbo.testing import VehicleContract
from fieldbo.vehicles import VEHICLES
from fieldbo.vehicles.by_hand import ByHand
from fieldbo.vehicles.simulated import Simulated


def typist(value="1.5"):
    """Type `value` where nothing is offered in brackets, and Enter where something is."""
    return lambda prompt: "" if "[" in prompt else value


class TestSimulated(VehicleContract):
    def vehicle(self, mission):
        return Simulated(mission)


class TestByHand(VehicleContract):
    def vehicle(self, mission):
        return ByHand(mission, read=typist(), write=lambda line: None)


class TestByHandWhereEverySiteIsSkipped(VehicleContract):
    def vehicle(self, mission):
        return ByHand(mission, read=typist("skip"), write=lambda line: None)


def test_every_registered_vehicle_is_tested():
    assert {VEHICLES.get(name) for name in VEHICLES.names()} == {Simulated, ByHand}


class Doubled(Simulated):
    """Carries an order out as often as it is sent."""

    def send(self, order):
        self._outcomes.clear()
        super().send(order)


def test_the_suite_finds_a_vehicle_that_carries_an_order_out_twice():
    class Contract(VehicleContract):
        def vehicle(self, mission):
            return Doubled(mission)

    with pytest.raises(AssertionError):
        Contract().test_an_order_that_is_sent_again_is_not_carried_out_again()

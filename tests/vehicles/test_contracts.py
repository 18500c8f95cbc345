"""The simulated vehicle and the one by hand against the contract of vehicles."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fieldbo.domain.domain import Domain
from fieldbo.domain.obstacles import Obstacle
from fieldbo.domain.sensor import Level, Sensor
from fieldbo.messages import Answer, GoHome, Query
from fieldbo.mission.vehicle_spec import VehicleSpec
from fieldbo.testing import VehicleContract, small_mission, small_world
from fieldbo.vehicles.base import VEHICLES, Simulated
from fieldbo.vehicles.by_hand import ByForm, ByHand

LEVELS = Sensor(levels=(Level(1e-6, 3.0), Level(0.05, 1.0)))


def typist(value="1.5"):
    """Answer prompts with `value`, and accept a default in brackets with Enter."""
    return lambda prompt: "" if "[" in prompt else value


class TestSimulated(VehicleContract):
    def vehicle(self, mission):
        return Simulated(mission)


class TestByHand(VehicleContract):
    def vehicle(self, mission):
        return ByHand(mission, read=typist(), write=lambda line: None)


class Answered(ByForm):
    """A form that somebody fills in at once."""

    def events(self, timeout_s):
        if self._orders and not self._events:
            self.take(Answer("an answer", str(self._orders[0].id), 0.5, confirmed=True))
        return super().events(0.0)


class TestByForm(VehicleContract):
    def vehicle(self, mission):
        return Answered(mission)


class TestByHandWhereEverySiteIsSkipped(VehicleContract):
    def vehicle(self, mission):
        return ByHand(mission, read=typist("skip"), write=lambda line: None)


@pytest.mark.parametrize(
    ("sensor", "level", "instruction"),
    [
        (Sensor(0.05), 0, "go to x 2 m, y 1 m  (about 3 s)"),
        (LEVELS, 1, "go to x 2 m, y 1 m with setting 1 (noise sd 0.22 m)  (about 3 s)"),
        (LEVELS, 0, "go to x 2 m, y 1 m with setting 0 (noise sd 0.001 m)  (about 3 s)"),
        (replace(LEVELS, slope=(0.5, 0.0)), 0, "with setting 0 (noise sd 1 m)"),
    ],
    ids=["one setting", "coarse", "fine", "noise that grows"],
)
def test_an_order_by_hand_names_the_setting_if_the_sensor_has_several(sensor, level, instruction):
    lines = []
    mission = small_mission(world=replace(small_world(), sensor=sensor))
    with ByHand(mission, read=typist(), write=lines.append) as vehicle:
        vehicle.send(Query([2.0, 1.0], level=level, expected_cost=3.0, id="run/0"))
    assert instruction in lines[-1]
    assert ("setting" in lines[-1]) == (sensor.settings > 1)


@pytest.fixture
def walled():
    """A mission in a field of 21 x 21 m with a wall between x = 9 m and x = 11 m, open above y = 15 m."""
    world = small_world((21, 21))
    wall = Obstacle("wall", (9, -1), (11, 15))
    domain = Domain.grid(world.domain.axes, (21, 21), obstacles=[wall])
    spec = VehicleSpec(100.0, start=np.zeros(2), home=np.zeros(2))
    return replace(small_mission(world=replace(world, domain=domain)), vehicles=(spec,))


def test_an_order_by_hand_names_the_points_to_pass(walled):
    lines = []
    with ByHand(walled, read=typist(), write=lines.append) as vehicle:
        vehicle.send(Query([20.0, 0.0], expected_cost=41.0, id="run/0"))
        assert "run/0: go via (9, 15), (11, 15) to x 20 m, y 0 m  (about 41 s)" in lines[-1]
        vehicle.events(0.0)
        vehicle.send(GoHome(0, "run/1"))
        assert lines[-1] == "\nrun/1: go home via (11, 15), (9, 15) to x 0 m, y 0 m"


def test_an_order_by_hand_names_its_own_route_unless_you_are_elsewhere(walled):
    route = [[0.0, 0.0], [8.5, 17.25], [20.0, 0.0]]
    order = Query([20.0, 0.0], route=route, expected_cost=41.0, id="run/1")
    lines, answers = [], iter(["2.5, 0", "1.5", ""])
    with ByHand(walled, read=typist(), write=lines.append) as vehicle:
        vehicle.send(order)
    assert "go via (8.5, 17.25) to x 20 m" in lines[-1]
    with ByHand(walled, read=lambda prompt: next(answers), write=lines.append) as vehicle:
        vehicle.send(Query([0.0, 0.0], expected_cost=1.0, id="run/0"))
        vehicle.send(order)
        vehicle.events(0.0)
    assert "go via (9, 15), (11, 15) to x 20 m" in lines[-1]


@pytest.mark.parametrize(
    ("typed", "question"),
    [
        ("3 3", None),
        ("20,7", "that is 18.7 m from the site; really (20, 7)? [y/N]"),
        ("8.5 4", "that is within 1 m of wall; really (8.5, 4)? [y/N]"),
    ],
)
def test_an_unlikely_position_is_questioned(typed, question, walled):
    world = walled.world
    wall = Obstacle("wall", (9, -1), (11, 15))
    domain = Domain.grid(world.domain.axes, (21, 21), obstacles=[wall], clearance=1.0)
    mission = replace(walled, world=replace(world, domain=domain))
    answers, asked = iter([typed, *(["n", "1 1"] if question else []), "1.5", "1"]), []

    def read(prompt):
        asked.append(prompt.strip())
        return next(answers)

    with ByHand(mission, read=read, write=lambda line: None) as vehicle:
        vehicle.send(Query([2.0, 2.0], expected_cost=1.0, id="run/0"))
        asked.clear()
        [event] = vehicle.events(0.0)
    assert [prompt for prompt in asked if "really" in prompt] == ([question] if question else [])
    assert event.position.tolist() == ([1.0, 1.0] if question else [3.0, 3.0])


def test_an_unlikely_position_is_taken_once_confirmed(walled):
    answers = iter(["20,7", "y", "1.5", "1"])
    with ByHand(walled, read=lambda prompt: next(answers), write=lambda line: None) as vehicle:
        vehicle.send(Query([0.0, 0.0], expected_cost=1.0, id="run/0"))
        [event] = vehicle.events(0.0)
    assert event.position.tolist() == [20.0, 7.0]


def test_every_registered_vehicle_is_tested():
    assert {VEHICLES.get(name) for name in VEHICLES.names()} == {Simulated, ByHand, ByForm}


class Doubled(Simulated):
    """Carries out an order as often as it is sent."""

    def send(self, order):
        self._outcomes.clear()
        super().send(order)


def test_the_suite_rejects_a_vehicle_that_carries_out_an_order_twice():
    class Contract(VehicleContract):
        def vehicle(self, mission):
            return Doubled(mission)

    with pytest.raises(AssertionError):
        Contract().test_an_order_that_is_sent_again_is_not_carried_out_again()

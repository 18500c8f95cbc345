"""Every shipped world, and a live one, against the contract of worlds."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

import fieldbo
from fieldbo.costs import Euclidean
from fieldbo.fields.gp_draw import GPDraw
from fieldbo.testing import WorldContract, small_world


class TestShippedWorlds(WorldContract):
    @pytest.fixture(autouse=True, scope="class", params=sorted(fieldbo.list_worlds()))
    @classmethod
    def name(cls, request):
        cls.chosen = request.param

    def world(self, draw):
        return fieldbo.load_world(self.chosen, draw)


class TestTheSmallWorld(WorldContract):
    def world(self, draw):
        return small_world()


class TestALiveWorld(WorldContract):
    def world(self, draw):
        return replace(small_world(), field=None)


class TestAWorldWithoutNoiseOnOneAxis(WorldContract):
    def world(self, draw):
        return small_world((7,), noise_sd=0.0)


def test_another_draw_of_a_random_world_is_another_field():
    domain = small_world().domain
    first, second = (GPDraw((2.0, 2.0)).realise(domain, draw) for draw in (0, 1))

    assert (first.values(domain.sites) != second.values(domain.sites)).all()


@dataclass(frozen=True)
class Bargain(Euclidean):
    """A full move that costs less than its travel."""

    def to(self, positions, sites, controls=None, level=0, time_s=0.0):
        return 0.5 * self.travel(positions, sites)


def test_the_suite_finds_a_move_that_costs_less_than_its_travel():
    class Contract(WorldContract):
        def world(self, draw):
            return replace(small_world(), cost=Bargain())

    with pytest.raises(AssertionError):
        Contract().test_a_full_move_costs_at_least_its_travel()

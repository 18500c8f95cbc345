"""Every shipped world, and a live one, against the contract of worlds."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from tiers import swept

import fieldbo
from fieldbo.costs.euclidean import Euclidean
from fieldbo.costs.flight import Flight
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.obstacles import Obstacle
from fieldbo.testing import WorldContract, small_world
from fieldbo.world.fields.gp_draw import GPDraw
from fieldbo.world.world import Disturbances

GUARDS = (
    "cell-ackley-8",
    "cell-growth",
    "crack-wall",
    "gp-lake-murky",
    "hartmann-6",
    "lake-places",
    "lake-transect",
    "se-optimum",
    "spit-lake",
    "svm-grid",
)
"""One world for each kind of domain, cost and field."""


class TestShippedWorlds(WorldContract):
    @pytest.fixture(autouse=True, scope="class", params=swept(sorted(fieldbo.list_worlds()), GUARDS))
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


class TestAWorldWithDisturbances(WorldContract):
    def world(self, draw):
        return replace(small_world(), disturbances=Disturbances(0.1, (0.2, 0.1)))


class TestAWorldWithoutNoiseOnOneAxis(WorldContract):
    def world(self, draw):
        return small_world((7,), noise_sd=0.0)


def test_draws_of_a_random_world_differ():
    domain = small_world().domain
    first, second = (GPDraw((2.0, 2.0)).make(domain, draw) for draw in (0, 1))

    assert (first.values(domain.sites) != second.values(domain.sites)).all()


@dataclass(frozen=True)
class Bargain(Euclidean):
    """A sample that costs less than its travel."""

    def to(self, positions, sites, controls=None, level=0, time_s=0.0):
        return 0.5 * self.travel(positions, sites)


def test_the_suite_rejects_a_sample_that_costs_less_than_its_travel():
    class Contract(WorldContract):
        def world(self, draw):
            return replace(small_world(), cost=Bargain())

    with pytest.raises(AssertionError):
        Contract().test_a_sample_costs_at_least_its_travel()


def walled_world(cost):
    axes = [Axis("x", "m", 0.0, 5.0), Axis("y", "m", 0.0, 4.0)]
    wall = Obstacle("wall", (1.5, 0.0), (3.5, 3.0))
    return replace(small_world(), domain=Domain.grid(axes, (6, 5), obstacles=[wall]), cost=cost)


class TestAWorldWithAnObstacle(WorldContract):
    @pytest.fixture(autouse=True, scope="class", params=[Euclidean(), Flight(climb=50.0)], ids=["m", "Wh"])
    @classmethod
    def cost(cls, request):
        cls.chosen = request.param

    def world(self, draw):
        return walled_world(self.chosen)


class TestAWorldCutInTwo(WorldContract):
    def world(self, draw):
        world, wall = small_world((9, 6)), Obstacle("wall", (3.5, -1.0), (4.5, 9.0))
        domain = Domain.grid(world.domain.axes, (9, 6), obstacles=[wall])
        return replace(world, domain=domain, cost=Euclidean(sampling=1.0), disturbances=Disturbances(0.1))


@dataclass(frozen=True)
class Ghost(Euclidean):
    """Ignores obstacles: its paths go straight through walls."""

    def within(self, domain):
        return self


def test_the_suite_rejects_a_path_through_a_wall():
    class Contract(WorldContract):
        def world(self, draw):
            return walled_world(Ghost())

    with pytest.raises(AssertionError):
        Contract().test_a_path_costs_the_sum_of_its_legs_and_avoids_obstacles()


@dataclass(frozen=True)
class Boast(Euclidean):
    """Travel that costs more than its declared rates."""

    def leg_between(self, starts, ends):
        return 2.0 * super().leg_between(starts, ends)


def test_the_suite_rejects_wrong_rates_of_travel():
    class Contract(WorldContract):
        def world(self, draw):
            return replace(small_world(), cost=Boast())

    with pytest.raises(AssertionError):
        Contract().test_the_declared_rates_of_travel_are_correct()

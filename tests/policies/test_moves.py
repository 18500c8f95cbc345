"""Moves valued by all that they read on the way, for the rules that go by risk."""

from dataclasses import replace

import numpy as np
import pytest

from fieldbo.costs import Transect
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.sensor import Along
from fieldbo.policies.level_set.risk import Risk, floored
from fieldbo.policies.level_set.tour import (
    Drops,
    OneStepRisk,
    Outlook,
    Readings,
    Tour,
    on_a_tour,
    removed,
    with_way,
)
from fieldbo.testing import small_world, state


def transect(along):
    """A lake of 12 m by 6 m, whose probe rises to the surface before each move."""
    world = small_world()
    domain = Domain.grid([Axis("along", "m", 0, 12), Axis("depth", "m", 0, 6)], (13, 7))
    sensor = replace(world.sensor, noise_sd=0.2, along=along)
    return replace(world, domain=domain, cost=Transect(along_rate=1.0, depth_rate=0.2), sensor=sensor)


def seen(along):
    sites, values = [[0.0, 0.0], [6.0, 3.0]], [0.9, 0.1]
    return state(OneStepRisk(), world=transect(along), sites=sites, values=values, battery=200.0)


def test_what_a_set_of_readings_removes_is_what_a_tour_through_them_would():
    now = seen(None)
    risk, noise = Risk.of(now.surface, now.threshold), floored(now.surface, now.at_levels(now.noise))[:, 0]
    rows = np.arange(0, now.surface.size, 4)
    outlook = Outlook(now.surface, risk, rows, noise[rows])
    some = [[3], [5, 6, 7], [2, 9, 14, 20]]
    gains = removed(now.surface, risk, [Readings(rows[stops], noise[rows[stops]]) for stops in some])
    for stops, gain in zip(some, gains, strict=True):
        assert gain == pytest.approx(outlook.gains(stops)[1], rel=1e-3)


def test_a_move_that_reads_on_the_way_is_worth_more_than_its_last_reading():
    plain, logged = Drops.of(seen(None)), Drops.of(seen(Along(every_m=0.25)))
    able = plain.able[:, 0]
    assert (logged.value[able] >= plain.value[able]).all()
    assert (logged.value[able] > 1.2 * plain.value[able]).mean() > 0.8


def test_of_two_readings_alike_the_one_below_a_column_that_is_read_on_the_way_down_is_worth_more():
    now = seen(Along(every_m=0.25))
    columns = Drops.of(now).value[:, 0]
    deep, shallow = (int(now.domain.nearest([10.0, depth])) for depth in (6.0, 0.0))
    assert columns[deep] > 1.5 * columns[shallow]


def test_moves_shorter_than_the_spacing_are_worth_their_reading_alone():
    now = seen(Along(every_m=100.0))
    assert Drops.of(now).value == pytest.approx(Drops.of(seen(None)).value, rel=1e-3)


def test_moves_that_cannot_be_chosen_keep_their_value():
    now = seen(Along(every_m=0.25))
    risk, noise = Risk.of(now.surface, now.threshold), floored(now.surface, now.at_levels(now.noise))[:, 0]
    value, able = np.linspace(1.0, 2.0, now.surface.size), np.zeros(now.surface.size, dtype=bool)
    np.testing.assert_array_equal(with_way(now, risk, noise, value, able), value)
    able[5] = True
    changed = with_way(now, risk, noise, 0.0 * value, able)
    assert np.flatnonzero(changed).tolist() == [5]


def test_a_tour_counts_what_is_read_between_its_stops():
    now = seen(Along(every_m=0.25))
    risk, noise = Risk.of(now.surface, now.threshold), floored(now.surface, now.at_levels(now.noise))[:, 0]
    stops = np.array([int(now.domain.nearest(place)) for place in ([8.0, 4.0], [11.0, 5.0])])
    at_stops = removed(now.surface, risk, [Readings(stops, noise[stops])])[0]
    assert on_a_tour(now, risk, noise, stops[:1]) > at_stops
    assert on_a_tour(now, risk, noise, stops) > on_a_tour(now, risk, noise, stops[:1])
    alone = seen(Along(every_m=100.0))
    assert on_a_tour(alone, risk, noise, stops) == pytest.approx(at_stops)


@pytest.mark.parametrize("every_m", [0.25, 100.0])
def test_a_tour_gives_way_to_a_single_move_only_if_that_removes_more_per_cost(every_m):
    now = seen(Along(every_m=every_m))
    decision = Tour().suggest(now, None)
    rate = Drops.of(now).best_rate(now)
    if "tour" in decision.why:
        assert decision.why["score"] >= rate
    else:
        assert decision.why["score"] == pytest.approx(rate)

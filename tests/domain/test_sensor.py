"""Sensors: noise by place and by setting, and the cost of a setting."""

import numpy as np
import pytest

from fieldbo.costs.base import Unit
from fieldbo.costs.travel import Euclidean
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.sensor import Level, Sensor
from fieldbo.errors import InputError
from fieldbo.messages import Query
from fieldbo.runs.runner import run
from fieldbo.testing import small_mission, small_world
from fieldbo.world.world import Quantity, World

DOMAIN = Domain.grid([Axis("x", "m", 0, 4), Axis("depth", "m", 0, 10, "down")], (5, 3))
LEVELS = (Level(1e-4, 5.0), Level(0.25, 1.0))


def world(sensor, cost=None):
    return World("w", "", DOMAIN, cost or Euclidean(rate=1.0, sampling=2.0), "s", sensor, Quantity())


def test_noise_grows_along_the_axes_by_the_slope():
    variance = Sensor(0.1, slope=(0.0, 0.05)).variance(DOMAIN.sites)

    np.testing.assert_allclose(np.sqrt(variance), 0.1 + 0.05 * DOMAIN.sites[:, 1])


def test_a_slope_adds_to_each_level():
    sensor = Sensor(levels=LEVELS, slope=(0.1, 0.0))

    assert sensor.settings == 2
    for level, expected in enumerate((0.01, 0.5)):
        sd = np.sqrt(sensor.variance(DOMAIN.sites, level))
        np.testing.assert_allclose(sd, expected + 0.1 * DOMAIN.sites[:, 0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Sensor(-0.1), "noise_sd = -0.1"),
        (lambda: Sensor(0.1, levels=LEVELS), "conflicts with levels"),
        (lambda: Sensor(noise_share=10), r"noise_share = 10(.|\n)*write 0.1 for 10%"),
        (lambda: Sensor(noise_share=1.5), r"noise_share = 1.5(.|\n)*write 0.015 for 1.5%"),
        (lambda: Level(-1.0, 1.0), "variance = -1.0"),
        (lambda: Level(1.0, -1.0), "cost = -1.0"),
        (lambda: Level(1.0, np.inf), "cost = "),
        (lambda: Sensor(0.1, slope=(np.nan, 0)), "slope"),
        (lambda: world(Sensor(0.1, slope=(0.1,))), "slope has 1 number"),
        (lambda: world(Sensor(0.1, slope=(0.0, -0.02))), "standard deviation falls to -0.1"),
    ],
)
def test_an_invalid_sensor_is_rejected(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_a_query_also_pays_for_its_level():
    cost = world(Sensor(levels=LEVELS)).cost
    here, there = DOMAIN.sites[0], DOMAIN.sites[3:4]

    assert cost.to(here, there, level=1)[0] - cost.travel(here, there)[0] == 2.0 + 1.0
    assert cost.to(here, there, level=0)[0] - cost.to(here, there, level=1)[0] == 4.0
    assert cost.least_sampling_cost(DOMAIN.sites) == 3.0
    assert cost.duration_s(here, there, level=0)[0] == cost.to(here, there, level=0)[0]


def test_a_world_without_levels_keeps_its_costs():
    cost = Unit()

    kept = world(Sensor(0.1), cost).cost

    assert kept == cost
    assert kept.level_costs == ()


def test_a_reading_has_the_noise_of_its_level():
    sensor = Sensor(levels=(Level(0.0, 5.0), Level(4.0, 1.0)))
    base = small_world()
    there = World("w", "", base.domain, base.cost, "s", sensor, base.quantity, base.field)
    site = base.domain.sites[7]
    exact, noisy = (
        [
            there.evaluate(Query(site, level=level, id="r/0"), site, 0.0, np.random.default_rng(k)).values[0]
            for k in range(200)
        ]
        for level in (0, 1)
    )

    assert np.ptp(exact) == 0
    assert np.std(noisy) == pytest.approx(2.0, rel=0.2)
    assert there.evaluate(Query(site, level=1, id="r/0"), site, 0.0, np.random.default_rng(0)).cost == 2.0


def test_the_level_is_charged_to_the_battery():
    base = small_world()
    there = World("w", "", base.domain, base.cost, "s", Sensor(levels=LEVELS), base.quantity, base.field)
    result = run(small_mission(world=there, battery=40.0))
    moved = [
        there.cost.to(a, b.site[None], level=b.level)[0]
        for a, b in zip([there.start, *(q.site for q in result.queries)], result.queries, strict=False)
    ]

    np.testing.assert_allclose([o.cost for o in result.observations][: len(moved)], moved)
    assert result.cost <= 40.0

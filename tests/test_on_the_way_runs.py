"""Runs with readings on the way: the model that learns from them, the record, tables and pictures."""

from dataclasses import replace

import numpy as np
import pytest

import fieldbo
from fieldbo.agent.agent import Agent
from fieldbo.belief.model import Model
from fieldbo.belief.posterior import Belief
from fieldbo.costs import Boat
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.sensor import Along, Sensor
from fieldbo.messages import Observation, Stop
from fieldbo.testing import small_mission
from fieldbo.vehicles.simulated import Simulated
from fieldbo.world.fields.gp_draw import GPDraw
from fieldbo.world.world import Quantity, World

KNOWN = Model(learn=False, length_scales=(120.0, 120.0), variance=1.0, mean=0.0)


def bay_mission(model=KNOWN, battery=1500.0, every_s=1.0, noise_sd=0.1):
    axes = [Axis("east", "m", 0, 400), Axis("north", "m", 0, 400)]
    domain = Domain.grid(axes, (21, 21))
    field = GPDraw(length_scales=(120.0, 120.0)).make(domain, 1)
    sensor = Sensor(noise_sd, along=Along(every_s=every_s))
    world = World("bay", "", domain, Boat(speed=1.5, stop_s=20), "s", sensor, Quantity(), field)
    return replace(small_mission(world=world, battery=battery), model=model)


def driven(mission, orders=1000):
    """An agent after a mission, or after some of its orders."""
    agent, vehicle = Agent(mission), Simulated(mission)
    while agent.asks < orders and not isinstance(order := agent.ask(), Stop):
        vehicle.send(order)
        (event,) = vehicle.events(0.0)
        agent.tell(event)
    return agent


def test_the_belief_is_that_of_all_readings_within_a_fraction_of_its_standard_deviation():
    agent = driven(bay_mission())
    every = [event for event in agent.history if isinstance(event, Observation)]
    sites, values, noises = (
        np.concatenate([getattr(event, name) for event in every])
        for name in ("sites", "values", "noise_variances")
    )
    assert len(values) > 600
    assert agent.readings < 0.25 * len(values)
    exact = Belief(agent.hyperparameters.kernel).condition_on(sites, values, noises)
    grid = agent.domain.sites
    sd = np.sqrt(exact.variance(grid))
    assert np.sqrt(np.mean(((agent.surface.mean - exact.mean(grid)) / sd) ** 2)) < 0.1
    assert agent.surface.sd == pytest.approx(sd, rel=0.1)


def test_readings_are_pooled_anew_with_the_length_scales_of_each_fit():
    agent = driven(bay_mission(Model(average=False), battery=4000.0), orders=12)
    before = agent.readings
    scales = agent.hyperparameters.kernel.length_scales
    assert agent.online_model.fits
    halved = dict(agent.hyperparameters.to_plain(), length_scales=(0.5 * scales).tolist())
    agent.tell(fieldbo.messages.Fitted(halved))
    assert 1.3 * before < agent.readings < 2.5 * before
    assert agent.surface.belief.size == agent.readings


def test_fits_are_due_by_orders_not_by_readings():
    agent = driven(bay_mission(Model(average=False), battery=1e5), orders=34)
    assert [fit.after for fit in agent.online_model.fits] == [2, 12, 22, 32]


def test_a_correction_of_a_reading_on_the_way_gives_the_belief_that_the_right_one_would_have():
    mission = bay_mission(Model(), battery=1e5)
    wrong, right = Agent(mission), Agent(mission)
    vehicle = Simulated(mission)
    for number in range(8):
        order = right.ask()
        vehicle.send(order)
        (event,) = vehicle.events(0.0)
        right.tell(event)
        wrong.replay(order, right.issued[order.id].memory, right.issued[order.id].why)
        spoilt = event.values.copy()
        if number == 3:
            k = len(spoilt) // 2
            spoilt[k] += 0.3
        wrong.tell(replace(event, values=spoilt))
        if number == 3:
            true_value = float(event.values[k])
        while (fitted := right.refit()) is not None:
            right.tell(fitted)
        while (fitted := wrong.refit()) is not None:
            wrong.tell(fitted)
    assert not np.array_equal(right.surface.mean, wrong.surface.mean)
    wrong.correct(3, true_value, k)
    while (fitted := wrong.refit()) is not None:
        wrong.tell(fitted)
    assert np.array_equal(right.surface.mean, wrong.surface.mean)
    assert np.array_equal(right.stated.surface.mean, wrong.stated.surface.mean)


def test_failed_readings_on_the_way_are_left_out_and_their_sites_still_proposed():
    mission = bay_mission()
    agent, vehicle = Agent(mission), Simulated(mission)
    for _ in range(3):
        order = agent.ask()
        vehicle.send(order)
        (event,) = vehicle.events(0.0)
        values = event.values.copy()
        values[: len(values) // 2] = np.nan
        agent.tell(replace(event, values=values))
    assert np.isfinite(agent.surface.mean).all()
    assert not agent.rejected.any()


def test_a_part_that_failed_on_the_way_says_nothing_about_the_place_where_it_ended():
    mission = bay_mission()
    agent, vehicle = Agent(mission), Simulated(mission)
    for _ in range(2):
        order = agent.ask()
        vehicle.send(order)
        (event,) = vehicle.events(0.0)
        agent.tell(event)
    before = agent.ask()
    failed = np.full(3, np.nan)
    sites = np.tile(agent.domain.sites[[5]], (3, 1))
    agent.tell(
        Observation(before.id, sites, failed, np.full(3, 0.01), np.full(3, 900.0), sites[0], 1.0, last=False)
    )
    assert not agent.rejected.any()


def test_a_robot_whose_sensor_reads_on_the_way_keeps_its_readings_unless_the_mission_tests_them():
    assert bay_mission().as_found().model.outliers is None
    tested = bay_mission(replace(KNOWN, outliers="tested"))
    assert tested.as_found().model.outliers == "tested"

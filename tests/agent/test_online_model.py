"""The online model: believed readings, unusable readings, and the learned noise."""

from dataclasses import replace

import numpy as np
import pytest

import fieldbo
from fieldbo.agent.agent import Agent
from fieldbo.belief.model import Model
from fieldbo.belief.question import Optimum
from fieldbo.belief.readings import Data
from fieldbo.messages import Query
from fieldbo.policies.baselines import Random
from fieldbo.runs.folder import as_carried_out, begin
from fieldbo.runs.replay import mission_of
from fieldbo.testing import small_mission, small_world
from fieldbo.vehicles.base import Simulated


def spoiled_run(outliers, every=12, off=30.0):
    """A lake mission in which each twelfth reading is off by ten standard deviations of the field."""
    settings = {"model": {"outliers": outliers}, "agent": {"battery": 3000}}
    the_mission = fieldbo.load_mission("lake-level-set", settings)
    agent, vehicle = Agent(the_mission), Simulated(the_mission)
    while isinstance(order := agent.ask(), Query):
        vehicle.send(order)
        (event,) = vehicle.events(0.0)
        if agent.asks % every == 0:
            event = replace(event, values=event.values + off)
        agent.tell(event)
    return agent


@pytest.mark.slow
def test_a_model_that_tests_readings_survives_absurd_ones():
    ruined, sound = spoiled_run("kept"), spoiled_run("tested")

    assert ruined.disbelieved == 0
    assert sound.disbelieved == sound.asks // 12
    assert fieldbo.Result.of(sound).f1 > 0.9
    assert fieldbo.Result.of(ruined).f1 < 0.7
    note = next(n for n in fieldbo.Result.of(sound).notes if "classified as outliers and left out: " in n)
    assert note.endswith(", ...") or note.count(",") == sound.disbelieved - 1


def test_readings_of_real_vehicles_are_tested_unless_the_mission_says_otherwise(tmp_path):
    by_hand = [{"kind": "by-hand"}]
    for outliers, live in ((None, "tested"), ("kept", "kept"), ("tested", "tested")):
        settings = {} if outliers is None else {"model": {"outliers": outliers}}
        mission = fieldbo.load_mission("lake-level-set", settings)
        assert as_carried_out(mission, []).model.outliers == outliers
        found = as_carried_out(mission, by_hand)
        assert found.model.outliers == live
        with begin(found, tmp_path / f"{outliers}", by_hand)[1] as record:
            assert mission_of(record).model.outliers == live
            record.description["model"]["outliers"] = "kept"  # as a version that kept them by default wrote
            assert mission_of(record).model.outliers == "kept"


def test_a_doubted_reading_is_believed_once_another_confirms_it():
    the_mission = replace(
        small_mission(Random(), world=small_world((11,)), battery=1e6),
        model=Model(learn=False, length_scales=(0.3,), mean=0.0, outliers="tested"),
    )
    agent, doubted = Agent(the_mission), []
    for site, value in [*((float(x), 0.0) for x in range(8)), (3.5, 5.0), (3.52, 5.0), (3.48, 5.0)]:
        query = agent.ask()
        agent.tell(query.observed(value, noise_variance=1e-4, position=[site]))
        doubted.append(agent.disbelieved)

    assert doubted[8] == 1
    assert doubted[-1] == 0
    assert agent.surface.belief.size == 11


def test_a_site_without_a_usable_reading_is_passed_over():
    agent = Agent(fieldbo.load_mission("gp-lake", {"agent": {"battery": 1500}}))
    asked = []
    while isinstance(order := agent.ask(), Query):
        asked.append(tuple(order.site))
        agent.tell(order.observed(np.nan if order.site[0] > 100 else 0.3, noise_variance=1e-6))

    assert len(asked) == len(set(asked)) > 10
    assert agent.left_out > 0


def test_sites_are_classified_again_once_a_reading_is_no_longer_believed():
    settings = {"model": {"outliers": "tested"}, "policy": {"monotone": True}}
    the_mission = fieldbo.load_mission("gp-lake", settings)
    agent, vehicle = Agent(the_mission), Simulated(the_mission)
    believed = []
    while isinstance(order := agent.ask(), Query) and agent.asks < 30:
        vehicle.send(order)
        (event,) = vehicle.events(0.0)
        if agent.asks == 6:
            event = replace(event, values=event.values + 10.0)
        agent.tell(event)
        believed.append(agent.disbelieved)
    high = agent.mission.policy._recall(agent.memory, agent.domain.size)[0].H
    truth = the_mission.world.truth(agent.domain.sites)

    assert believed[-1] == 1
    assert np.mean(truth[high] >= the_mission.question.threshold) > 0.95


def test_learned_noise_keeps_the_proportions_of_a_sensors_settings():
    settings = {
        "model": {"learn": True, "noise": "learned"},
        "agent": {"battery": 400},
        "initial": {"count": 6},
    }
    the_mission = fieldbo.load_mission("gp-level-noise", settings)
    agent, vehicle = Agent(the_mission), Simulated(the_mission)
    for _ in range(15):
        vehicle.send(agent.ask())
        agent.tell(vehicle.events(0.0)[0])

    assert agent.hyperparameters.noise_variance is not None
    variances = [agent.online_model.noise(level)[0] for level in range(3)]
    np.testing.assert_allclose(np.array(variances) / variances[0], [1.0, 1e3, 5e4])


def test_gchk_does_not_settle_a_fraction_of_the_maximum_before_the_first_fit():
    settings = {"model": {"learn": True}, "agent": {"battery": 4000, "max_steps": 14}}
    settings["policy"] = {"kind": "gchk", "per_cost": True}
    result = fieldbo.run(fieldbo.load_mission("gp-lake-share", settings))

    assert len(result.queries) > 10


@pytest.mark.parametrize("value", [0.1, -7.3, 1e9 / 3, 0.0])
@pytest.mark.parametrize("n", [5, 6, 41])
def test_readings_that_differ_by_rounding_alone_have_no_spread(value, n):
    domain, model = small_world((n,)).domain, Model()
    values = np.full(n, value)
    values[0] = np.nextafter(value, np.inf)
    scale = model.fitted(
        model.initial(domain, Optimum()),
        domain,
        Optimum(),
        Data(domain.sites, values, np.full(n, 1e-4)),
        np.random.default_rng(0),
    ).scale
    assert scale.scale == 1.0
    assert scale.shift == pytest.approx(value)


def test_readings_that_differ_by_little_are_standardised():
    values = 5.0 + 1e-9 * np.arange(6)
    domain, model = small_world((6,)).domain, Model()
    data = Data(domain.sites, values, np.full(6, 1e-22))
    initial = model.initial(domain, Optimum())
    found = model.fitted(initial, domain, Optimum(), data, np.random.default_rng(0))
    assert found.scale.scale == pytest.approx(values.std(), rel=1e-6)

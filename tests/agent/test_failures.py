"""Where readings fail: a patch is avoided, and neither chance failures nor a broken sensor close anything."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fieldbo
from fieldbo.agent.failures import Failures, patches
from fieldbo.belief.model import Model
from fieldbo.costs.travel import Euclidean
from fieldbo.domain.obstacles import Obstacle
from fieldbo.errors import InputError
from fieldbo.messages import Command, Observation, Query
from fieldbo.mission.vehicle_spec import Recharging, VehicleSpec
from fieldbo.policies.baselines import Random, Straddle
from fieldbo.policies.optimum.myopic import EI
from fieldbo.testing.small import drive, sites_of, small_mission, small_world

WORLD = replace(small_world((20, 16)), cost=Euclidean(rate=0.1, sampling=1.0))
WET = Obstacle("wet patch", (8.5, 5.5), (16.5, 13.5))
MODEL = Model(learn=False, length_scales=(2.0, 2.0), mean=0.0)


def seen(n, site, value):
    return Query(site, id=f"run/{n}").observed(value, noise_variance=0.01, cost=1.0)


def learnt(outcomes, world=WORLD, limit=0.5):
    """Learn from (site, failed) pairs."""
    failures = Failures(world.domain, MODEL, limit)
    for n, (site, failed) in enumerate(outcomes):
        failures.take(seen(n, site, np.nan if failed else 1.0))
    return failures


def some_sites(count, seed=0):
    rng = np.random.default_rng(seed)
    return WORLD.domain.sites[rng.choice(WORLD.domain.size, count, replace=False)]


def wet_mission(policy=None, battery=110.0, **changes):
    mission = small_mission(policy, world=replace(WORLD, unreadable=(WET,)), battery=battery)
    return replace(mission, **changes)


def failed(agent):
    values = np.concatenate([e.values for e in agent.history if isinstance(e, Observation)])
    return int(np.isnan(values).sum())


# -- the model -------------------------------------------------------------------------------------------


def test_a_patch_is_avoided_and_its_surroundings_are_not():
    sites = some_sites(60)
    failures = learnt([(site, WET.holds(site)[0]) for site in sites])
    assert failures.local
    inside = WET.holds(WORLD.domain.sites)
    assert failures.avoided[inside].mean() > 0.6
    assert failures.avoided[~inside].mean() < 0.1
    assert np.allclose(failures.at(WORLD.domain.sites), failures.chances, rtol=1e-12)


@pytest.mark.parametrize("count", [0, 1])
def test_nothing_is_known_before_the_second_failure(count):
    failures = learnt([(site, n < count) for n, site in enumerate(some_sites(20))])
    assert not failures.known
    assert failures.avoided is None
    assert failures._counted == 0  # and nothing was computed


def test_a_failure_among_good_neighbours_closes_nothing():
    centre = np.array([4.0, 4.0])
    near = WORLD.domain.sites[np.linalg.norm(WORLD.domain.sites - centre, axis=1) < 1.5]
    outcomes = [(site, np.array_equal(site, centre)) for site in near]
    failures = learnt([*outcomes, (np.array([19.0, 15.0]), True)])
    assert failures.avoided is None


def test_failures_by_chance_close_nothing_to_speak_of():
    shares = []
    for seed in range(40):
        fails = np.random.default_rng(1000 + seed).random(60) < 0.15
        avoided = learnt(zip(some_sites(60, seed), fails, strict=True)).avoided
        shares.append(0.0 if avoided is None else avoided.mean())
    assert np.mean(shares) < 0.01
    assert np.median(shares) == 0.0


def test_a_broken_sensor_is_no_patch():
    failures = learnt([(site, True) for site in some_sites(40)])
    assert not failures.local
    assert failures.avoided is None
    assert failures.overall > 0.9


def test_a_patch_comes_back_once_readings_there_succeed():
    sites = some_sites(60)
    outcomes = [(site, WET.holds(site)[0]) for site in sites]
    wet = [site for site, fails in outcomes if fails]
    before = learnt(outcomes).avoided.sum()
    after = learnt([*outcomes, *((site, False) for site in wet * 3)]).avoided
    assert after is None or after.sum() < before / 4


def test_a_limit_of_1_avoids_nothing():
    outcomes = [(site, WET.holds(site)[0]) for site in some_sites(60)]
    assert learnt(outcomes, limit=1.0).avoided is None
    assert learnt(outcomes, limit=0.2).avoided.sum() > learnt(outcomes, limit=0.6).avoided.sum()


@given(st.lists(st.tuples(st.integers(0, WORLD.domain.size - 1), st.booleans()), max_size=30), st.data())
def test_it_does_not_matter_when_it_was_asked(outcomes, data):
    asked = Failures(WORLD.domain, MODEL, 0.5)
    for n, (site, fails) in enumerate(outcomes):
        asked.take(seen(n, WORLD.domain.sites[site], np.nan if fails else 1.0))
        if data.draw(st.booleans()):
            assert asked.avoided is None or asked.avoided.any()
    once = learnt([(WORLD.domain.sites[site], fails) for site, fails in outcomes])
    assert np.array_equal(asked.chances, once.chances)
    assert np.all((once.chances > 0.0) & (once.chances < 1.0))


def test_a_correction_is_as_if_the_reading_had_been_right():
    outcomes = [(site, WET.holds(site)[0]) for site in some_sites(60)]
    corrected, n = learnt(outcomes), next(n for n, (_, fails) in enumerate(outcomes) if fails)
    corrected.correct(seen(n, outcomes[n][0], 1.0))
    outcomes[n] = (outcomes[n][0], False)
    assert np.array_equal(corrected.chances, learnt(outcomes).chances)


def test_a_reading_that_is_withdrawn_did_not_fail():
    outcomes = [(site, False) for site in some_sites(10)]
    failures = learnt(outcomes)
    for n, (site, _) in enumerate(outcomes):
        failures.correct(seen(n, site, np.nan))
    assert failures.counts() == (0, 0)


def test_areas_surround_their_sites():
    domain = WORLD.domain
    for sites, corners in patches(domain, WET.holds(domain.sites)):
        assert Obstacle("area", corners=tuple(map(tuple, corners))).holds(domain.sites[sites]).all()


# -- what the agent does ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "battery"),
    [(Straddle(), 110.0), (EI(), 110.0), (Random(), 250.0)],
    ids=["straddle", "ei", "random"],
)
def test_every_policy_loses_fewer_orders_to_a_patch(policy, battery):
    as_before = failed(drive(wet_mission(policy, battery, failure_limit=1.0))[0])
    now = failed(drive(wet_mission(policy, battery))[0])
    assert as_before > 10
    assert now < 0.85 * as_before


def test_the_mission_goes_on_beside_a_patch_and_pays_for_each_failure():
    agent, orders, _ = drive(wet_mission())
    done = [event for event in agent.history if isinstance(event, Observation)]
    assert agent.avoided is not None
    assert agent.spent == pytest.approx(sum(event.cost for event in done))
    assert all(event.cost > 0.0 for event in done if np.isnan(event.values).any())
    assert sites_of(orders)


def test_an_avoided_site_may_be_wanted_by_an_operator():
    mission = wet_mission()
    agent = fieldbo.Agent(replace(mission, vehicles=(VehicleSpec(1000.0, mission.world.start),)), "run")
    agent.end_initial()
    for n, site in enumerate(some_sites(60)):
        query = agent.issue(Query(site))
        value = np.nan if WET.holds(site)[0] else float(n)
        agent.tell(query.observed(value, noise_variance=0.01))
    site = agent.domain.sites[np.flatnonzero(agent.avoided & ~agent.passed_over)[0]]
    agent.tell(agent.completed(Command("a", "next", site=site, vehicle=0)))
    assert np.array_equal(agent.ask().site, site)


def test_avoided_sites_come_back_when_no_other_is_left():
    agent = fieldbo.Agent(wet_mission())
    for n, site in enumerate(some_sites(60)):
        agent.failures.take(seen(n, site, np.nan if WET.holds(site)[0] else 1.0))
    avoided = agent.failures.avoided
    assert np.array_equal(agent.rejected, avoided)
    agent.passed_over = ~avoided
    assert agent.avoided is None
    assert np.array_equal(agent.rejected, ~avoided)


def test_a_run_without_failures_has_the_path_of_before():
    mission = small_mission(world=WORLD, battery=40.0)
    assert sites_of(drive(mission)[1]) == sites_of(drive(replace(mission, failure_limit=1.0))[1])


def test_several_batteries_avoid_the_same_patch():
    mission = wet_mission()
    home = mission.world.start
    spec = VehicleSpec(40.0, home, home=home, recharge=Recharging(batteries=3, at="home", takes_s=10.0))
    as_before, now = (
        failed(drive(replace(mission, vehicles=(spec,), failure_limit=limit))[0]) for limit in (1.0, 0.5)
    )
    assert now < as_before


def test_an_order_without_any_value_counts_as_failed():
    agent = fieldbo.Agent(small_mission(world=WORLD))
    order = agent.ask()
    none = np.empty(0)
    agent.tell(
        Observation(
            str(order.id), np.empty((0, 2)), none, none, none, position=order.site, cost=1.0, time_s=1.0
        )
    )
    assert agent.failures.counts() == (1, 1)


# -- what it shows ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wet_run():
    return fieldbo.run(wet_mission())


def test_the_result_shows_where_readings_fail(wet_run):
    summary = wet_run.summary()["failures"]
    assert summary["local"]
    assert summary["avoided"] > 3
    assert summary["readings"] == np.isnan(wet_run.values).sum()
    assert wet_run.maps()["failure"].max() > 0.5
    (note,) = [note for note in wet_run.notes if "readings fail around" in note]
    assert "fieldbo steer" in note
    corners = note.split('no-go "')[1].split('"')[0]
    area = Obstacle("area", corners=tuple(tuple(map(float, c.split(","))) for c in corners.split(";")))
    assert area.polygon.intersection(WET.polygon).area > 0.5 * area.polygon.area


def test_a_broken_sensor_is_noted_as_such():
    everywhere = Obstacle("all", (-1.0, -1.0), (30.0, 30.0))
    result = fieldbo.run(small_mission(world=replace(WORLD, unreadable=(everywhere,)), battery=30.0))
    assert any("no place stands out: check the sensor" in note for note in result.notes)
    assert not any("no-go" in note for note in result.notes)


def test_a_reason_says_what_is_avoided():
    agent, orders, _ = drive(wet_mission())
    told = [agent.issued[str(o.id)].why for o in orders if isinstance(o, Query)]
    why = next(why for why in reversed(told) if why and "failures" in why)
    assert 0.0 < why["failures"]["here"] <= 0.5
    assert why["failures"]["avoided"] > 0


def test_a_limit_out_of_range_is_rejected():
    with pytest.raises(InputError, match="failure_limit = 0"):
        replace(small_mission(), failure_limit=0.0)


def test_an_area_with_too_many_coordinates_is_rejected():
    with pytest.raises(InputError, match="3 coordinates"):
        replace(WORLD, unreadable=(Obstacle("deep", (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)),))

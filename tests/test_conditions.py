"""What real costs differ by from declared ones: the wind, the noise, and what they leave alone."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fieldbo
from fieldbo._numerics.streams import stream
from fieldbo.agent.agent import Agent
from fieldbo.costs.euclidean import Euclidean
from fieldbo.costs.flight import Flight
from fieldbo.costs.transect import Transect
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.obstacles import Obstacle
from fieldbo.errors import InputError
from fieldbo.messages import GoHome, Query
from fieldbo.mission.vehicle_spec import VehicleSpec
from fieldbo.policies.baselines import Random
from fieldbo.runs.runner import run
from fieldbo.testing.small import small_mission, small_world
from fieldbo.vehicles.simulated import Simulated
from fieldbo.world.disturbances import Disturbances

AXES = [Axis("x", "m", 0, 10), Axis("y", "m", 0, 10)]
shares = st.floats(0.0, 0.7)


def world(**conditions):
    return replace(small_world(), conditions=Disturbances(**conditions))


def taken(there, site, position=(0.0, 0.0), ask=0):
    query = Query(site, id=f"run/{ask}")
    return there.takes(query, np.array(position), 0.0, stream(3, "cost", ask))


# -- wind ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("goal", "factor"),
    [([5, 0], 0.8), ([0, 5], 1.0), ([3, 4], 1 - 0.2 * 0.6)],
    ids=["with", "across", "both"],
)
def test_a_way_is_dearer_against_the_wind_and_as_much_cheaper_with_it(goal, factor):
    breeze = Disturbances(head_wind=(0.2, 0.0))

    assert breeze.way(Euclidean(), [0, 0], goal) == pytest.approx(factor)
    assert breeze.way(Euclidean(), goal, [0, 0]) == pytest.approx(2 - factor)
    assert breeze.way(Euclidean(), goal, goal) == 1.0


def test_the_wind_changes_the_way_and_not_the_sample():
    paid, seconds = taken(world(head_wind=(0.5, 0.0)), [4.0, 0.0])

    assert (paid, seconds) == (0.5 * 4 + 1, 0.5 * 4 + 1)


def test_seconds_differ_as_costs_do():
    drone = Flight(speed=5.0, acceleration=2.5, power=180.0, hover_power=360.0, hover_s=10.0)
    there = replace(small_world((11, 2)), cost=drone, conditions=Disturbances(head_wind=(-0.5, 0.0)))

    paid, seconds = taken(there, [10.0, 0.0])

    assert seconds == pytest.approx(1.5 * 4 + 10)
    assert paid == pytest.approx((1.5 * 4 * 180 + 10 * 360) / 3600)


def test_each_piece_of_a_way_round_meets_the_wind_in_its_own_direction():
    wall = Obstacle("wall", (4.0, -1.0), (6.0, 8.0))
    domain = Domain.grid(AXES, (11, 11), obstacles=[wall])
    cost = Euclidean().within(domain)
    up, across, down = np.hypot(4, 8), 2.0, np.hypot(4, 8)

    factor = Disturbances(head_wind=(0.0, 0.3)).way(cost, [0, 0], [10, 0])
    along = Disturbances(head_wind=(0.3, 0.0)).way(cost, [0, 0], [10, 0])

    assert factor == pytest.approx(1.0)  # up with it, down against it
    assert along == pytest.approx(1 - 0.3 * 10 / (up + across + down))


def test_a_way_whose_travel_is_free_is_as_declared():
    assert Disturbances(head_wind=(0.0, 0.5)).way(Transect(), [5, 1], [5, 9]) == 1.0


# -- noise -----------------------------------------------------------------------------------------------


def test_the_noise_has_its_standard_deviation_and_is_cut_off_at_two_of_them():
    one = Disturbances(cost_noise=0.1)
    rng = np.random.default_rng(0)
    factors = np.array([one.luck(rng) for _ in range(4000)])

    assert abs(factors.mean() - 1) < 0.01
    assert factors.std() == pytest.approx(0.1 * 0.9594, rel=0.05)  # cut off
    assert factors.min() == pytest.approx(0.8)
    assert factors.max() == pytest.approx(1.2)


def test_the_noise_is_that_of_the_order_whatever_was_drawn_before():
    there = world(cost_noise=0.1)

    assert taken(there, [4.0, 0.0], ask=5) == taken(there, [4.0, 0.0], ask=5)
    assert taken(there, [4.0, 0.0], ask=5) != taken(there, [4.0, 0.0], ask=6)


def test_conditions_change_costs_and_times_and_no_reading():
    plain = small_mission(Random(), battery=1e4, home=False)
    plain = replace(plain, max_steps=8)
    windy = replace(plain, world=replace(plain.world, conditions=Disturbances(0.1, (0.2, 0.0))))

    as_declared, real = run(plain), run(windy)

    assert np.array_equal(as_declared.sites, real.sites)
    assert np.array_equal(as_declared.values, real.values)
    assert all(a.cost != b.cost for a, b in zip(as_declared.observations, real.observations, strict=True))
    for one in (as_declared, real):  # a unit of cost takes a second here
        times = np.concatenate([o.times_s for o in one.observations])
        assert np.allclose(times, np.cumsum([o.cost for o in one.observations]))
        assert one.summary()["time_s"] == pytest.approx(one.cost)


def test_the_way_home_meets_them_too():
    mission = small_mission(battery=100.0)
    mission = replace(mission, world=replace(mission.world, conditions=Disturbances(head_wind=(0.2, 0.0))))
    vehicle = Simulated(mission)
    vehicle.send(Query([5.0, 0.0], id="run/0"))
    vehicle.send(GoHome(0, "run/1", mission.crew[0].home))

    there, back = vehicle.events(0.0)

    assert there.cost == pytest.approx(0.8 * 5 + 1)
    assert back.cost == pytest.approx(1.2 * 5)
    assert back.time_s == vehicle.time_s == pytest.approx(11.0)
    assert len(back.values) == 0


# -- the worst -------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(noise=st.floats(0.0, 0.49), strength=shares, angle=st.floats(0, 6.3), seed=st.integers(0, 99))
def test_no_order_is_dearer_or_longer_than_the_worst(noise, strength, angle, seed):
    there = world(cost_noise=noise, head_wind=(strength * np.cos(angle), strength * np.sin(angle)))
    rng = np.random.default_rng(seed)
    bound = 1 + there.conditions.worst + 1e-12

    for a, b in pairwise(rng.choice(there.domain.sites, 12)):
        declared = there.cost.to(a, b[None])[0]
        paid, seconds = taken(there, b, a, ask=seed)
        assert 0 <= paid <= bound * declared
        assert 0 <= seconds <= bound * declared
        home, home_s = there.takes(GoHome(0, f"run/{seed}", b), a, 0.0, stream(3, "cost", seed))
        assert 0 <= home <= bound * there.cost.travel(a, b[None])[0]
        assert home_s == home


def test_the_worst_is_reached_straight_against_the_wind_and_with_no_luck():
    one = Disturbances(cost_noise=0.05, head_wind=(0.12, 0.16))

    assert one.worst == pytest.approx(1.2 * 1.1 - 1)
    assert one.way(Euclidean(), [6, 8], [0, 0]) * 1.1 == pytest.approx(1 + one.worst)


# -- a margin that is too small --------------------------------------------------------------------------


def margin_warnings(margin, *, live=False, home=True, **conditions):
    there = world(**conditions)
    mission = small_mission(world=replace(there, field=None) if live else there, battery=100.0, home=home)
    crew = VehicleSpec(100.0, mission.crew[0].start, home=mission.crew[0].home, margin=margin)
    return [w for w in Agent(replace(mission, crew=(crew,))).warnings if "margin" in w]


def test_a_margin_below_the_worst_is_warned_of_with_the_key_to_change_and_none_that_is_enough():
    (warning,) = margin_warnings(0.1, cost_noise=0.05, head_wind=(0.2, 0.0))

    assert "32% dearer than declared (cost_noise 0.05, head_wind [0.2, 0])" in warning
    assert "margin is 10%" in warning
    assert "set agent.margin = 0.32" in warning
    assert "on the way home" in warning
    assert "way home" not in margin_warnings(0.1, home=False, cost_noise=0.1)[0]
    assert margin_warnings(0.32, cost_noise=0.05, head_wind=(0.2, 0.0)) == []
    assert margin_warnings(0.0) == []
    assert margin_warnings(0.0, live=True, cost_noise=0.1) == []


@given(noise=st.floats(0.0, 0.49), wind=shares)
def test_the_margin_that_the_warning_names_is_enough(noise, wind):
    conditions = Disturbances(noise, (wind, 0.0))
    for warning in margin_warnings(0.0, cost_noise=noise, head_wind=(wind, 0.0)):
        assert float(warning.rsplit("= ", 1)[1]) >= conditions.worst - 1e-6


# -- bad input, files ------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [-0.1, 0.5, np.nan, np.inf])
def test_a_noise_that_is_none_is_refused(bad):
    with pytest.raises(InputError, match="cost_noise") as error:
        Disturbances(cost_noise=bad)
    assert error.value.where == "conditions.cost_noise"


@pytest.mark.parametrize("bad", [(1.0, 0.0), (0.8, 0.8), (np.nan, 0.0), (np.inf, 0.0)])
def test_a_wind_that_would_pay_ways_back_is_refused(bad):
    with pytest.raises(InputError, match="head_wind") as error:
        Disturbances(head_wind=bad)
    assert error.value.where == "conditions.head_wind"


def test_a_wind_has_as_many_components_as_the_domain_has_axes():
    with pytest.raises(InputError, match="a head wind of 3 components"):
        world(head_wind=(0.1, 0.1, 0.1))


def in_a_file(folder: Path, table: str) -> Path:
    source = fieldbo.mission.catalogue.shipped("worlds") / "lake-transect"
    there = folder / "worlds" / "lake"
    there.mkdir(parents=True, exist_ok=True)
    for file in source.iterdir():
        if file.is_file():
            (there / file.name).write_bytes(file.read_bytes())
    (there / "world.toml").write_text((source / "world.toml").read_text() + f"\n[conditions]\n{table}\n")
    return there


def test_a_world_file_has_a_table_of_them_and_says_where_it_is_wrong(tmp_path):
    loaded = fieldbo.load_world(in_a_file(tmp_path, "cost_noise = 0.05\nhead_wind = [0.2, 0]"))
    assert loaded.conditions == Disturbances(0.05, (0.2, 0.0))
    assert fieldbo.load_world("lake-transect").conditions is None

    for table, where in (
        ("cost_noise = -1", "conditions.cost_noise"),
        ("head_wind = [0.2]", "conditions.head_wind"),
        ("head_wind = [0.9, 0.9]", "conditions.head_wind"),
        ('cost_noise = "much"', "conditions.cost_noise"),
        ("wind = [0.2, 0]", "conditions"),
    ):
        with pytest.raises(InputError) as error:
            fieldbo.load_world(in_a_file(tmp_path, table))
        assert str(error.value.where).split("world.toml: ")[1].startswith(where)
        assert "conditions.conditions" not in str(error.value)


def test_the_commands_warn_of_a_small_margin_and_say_what_was_planned(tmp_path, monkeypatch, said):
    monkeypatch.chdir(tmp_path)
    in_a_file(tmp_path, "cost_noise = 0.05\nhead_wind = [0.2, 0]")
    text = (fieldbo.mission.catalogue.shipped("missions") / "lake-level-set.toml").read_text()
    Path("m.toml").write_text(text.replace('world = "lake-transect"', 'world = "lake"'))
    few = ("--set", "agent.battery=300", "--set", "policy.kind=random", "--set", "model.learn=false")

    checked = " ".join(said("check", "m.toml", *few).split())
    told = " ".join(said("run", "m.toml", "--out", "r", *few, "--set", "agent.margin=0.32").split())

    assert "warning: moves can be 32% dearer than declared" in checked
    assert "agent.margin = 0.32" in checked
    summary = json.loads(Path("r/summary.json").read_text())
    assert summary["cost"] != pytest.approx(summary["planned_cost"], rel=1e-3)
    assert f"cost: {summary['cost']:.0f} of 300 s, " in told
    assert f"than the {summary['planned_cost']:.0f} planned" in told
    assert not [n for n in summary["notes"] if "margin" in n]

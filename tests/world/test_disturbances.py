"""Disturbances: how wind and noise change real costs and times, and what they leave unchanged."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

import fieldbo
from fieldbo._numerics.streams import stream
from fieldbo.agent.agent import Agent
from fieldbo.costs.travel import Euclidean, Flight, Transect
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.obstacles import Obstacle
from fieldbo.errors import InputError
from fieldbo.messages import GoHome, Query
from fieldbo.mission.vehicle_spec import VehicleSpec
from fieldbo.policies.baselines import Random
from fieldbo.runs.runner import run
from fieldbo.testing.small import small_mission, small_world
from fieldbo.vehicles.base import Simulated
from fieldbo.world.world import Disturbances

AXES = [Axis("x", "m", 0, 10), Axis("y", "m", 0, 10)]
shares = st.floats(0.0, 0.7)


def world(**disturbances):
    return replace(small_world(), disturbances=Disturbances(**disturbances))


def taken(there, site, position=(0.0, 0.0), ask=0):
    query = Query(site, id=f"run/{ask}")
    return there.takes(query, np.array(position), 0.0, stream(3, "cost", ask))


# -- wind ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("goal", "factor"),
    [([5, 0], 0.8), ([0, 5], 1.0), ([3, 4], 1 - 0.2 * 0.6)],
    ids=["with", "across", "both"],
)
def test_wind_makes_a_move_against_it_as_much_more_expensive_as_one_with_it_cheaper(goal, factor):
    breeze = Disturbances(head_wind=(0.2, 0.0))

    assert breeze.wind_factor(Euclidean(), [[0, 0], goal]) == pytest.approx(factor)
    assert breeze.wind_factor(Euclidean(), [goal, [0, 0]]) == pytest.approx(2 - factor)
    assert breeze.wind_factor(Euclidean(), [goal, goal]) == 1.0


def test_wind_changes_the_cost_of_travel_but_not_of_the_sample():
    paid, seconds = taken(world(head_wind=(0.5, 0.0)), [4.0, 0.0])

    assert (paid, seconds) == (0.5 * 4 + 1, 0.5 * 4 + 1)


def test_wind_changes_seconds_and_costs_alike():
    drone = Flight(speed=5.0, acceleration=2.5, power=180.0, hover_power=360.0, hover_s=10.0)
    there = replace(small_world((11, 2)), cost=drone, disturbances=Disturbances(head_wind=(-0.5, 0.0)))

    paid, seconds = taken(there, [10.0, 0.0])

    assert seconds == pytest.approx(1.5 * 4 + 10)
    assert paid == pytest.approx((1.5 * 4 * 180 + 10 * 360) / 3600)


def test_the_wind_acts_on_each_leg_of_a_route_in_its_own_direction():
    wall = Obstacle("wall", (4.0, -1.0), (6.0, 8.0))
    domain = Domain.grid(AXES, (11, 11), obstacles=[wall])
    cost = Euclidean().within(domain)
    route = cost.path([0, 0], [10, 0])
    up, across, down = np.hypot(4, 8), 2.0, np.hypot(4, 8)

    factor = Disturbances(head_wind=(0.0, 0.3)).wind_factor(cost, route)
    along = Disturbances(head_wind=(0.3, 0.0)).wind_factor(cost, route)

    assert factor == pytest.approx(1.0)  # up with the wind, down against it
    assert along == pytest.approx(1 - 0.3 * 10 / (up + across + down))


def test_wind_does_not_change_free_travel():
    assert Disturbances(head_wind=(0.0, 0.5)).wind_factor(Transect(), [[5, 1], [5, 9]]) == 1.0


# -- noise -----------------------------------------------------------------------------------------------


def test_the_noise_has_its_standard_deviation_and_is_cut_off_at_two():
    noisy = Disturbances(cost_noise=0.1)
    rng = np.random.default_rng(0)
    factors = np.array([noisy.noise_factor(rng) for _ in range(4000)])

    assert abs(factors.mean() - 1) < 0.01
    assert factors.std() == pytest.approx(0.1 * 0.9594, rel=0.05)  # cut off
    assert factors.min() == pytest.approx(0.8)
    assert factors.max() == pytest.approx(1.2)


def test_the_noise_of_an_order_does_not_depend_on_earlier_draws():
    there = world(cost_noise=0.1)

    assert taken(there, [4.0, 0.0], ask=5) == taken(there, [4.0, 0.0], ask=5)
    assert taken(there, [4.0, 0.0], ask=5) != taken(there, [4.0, 0.0], ask=6)


def test_disturbances_change_costs_and_times_but_not_readings():
    plain = small_mission(Random(), battery=1e4, home=False)
    plain = replace(plain, max_steps=8)
    windy = replace(plain, world=replace(plain.world, disturbances=Disturbances(0.1, (0.2, 0.0))))

    as_declared, real = run(plain), run(windy)

    assert np.array_equal(as_declared.sites, real.sites)
    assert np.array_equal(as_declared.values, real.values)
    assert all(a.cost != b.cost for a, b in zip(as_declared.observations, real.observations, strict=True))
    for result in (as_declared, real):  # a unit of cost takes a second here
        times = np.concatenate([o.times_s for o in result.observations])
        assert np.allclose(times, np.cumsum([o.cost for o in result.observations]))
        assert result.summary()["time_s"] == pytest.approx(result.cost)


def test_wind_acts_on_the_trip_home_as_well():
    mission = small_mission(battery=100.0)
    mission = replace(mission, world=replace(mission.world, disturbances=Disturbances(head_wind=(0.2, 0.0))))
    vehicle = Simulated(mission)
    vehicle.send(Query([5.0, 0.0], id="run/0"))
    vehicle.send(GoHome(0, "run/1", mission.vehicles[0].home))

    there, back = vehicle.events(0.0)

    assert there.cost == pytest.approx(0.8 * 5 + 1)
    assert back.cost == pytest.approx(1.2 * 5)
    assert back.time_s == vehicle.time_s == pytest.approx(11.0)
    assert len(back.values) == 0


# -- the worst -------------------------------------------------------------------------------------------


@settings(max_examples=examples(60), deadline=None)
@given(noise=st.floats(0.0, 0.49), strength=shares, angle=st.floats(0, 6.3), seed=st.integers(0, 99))
def test_no_order_exceeds_the_worst_case(noise, strength, angle, seed):
    there = world(cost_noise=noise, head_wind=(strength * np.cos(angle), strength * np.sin(angle)))
    rng = np.random.default_rng(seed)
    bound = 1 + there.disturbances.worst + 1e-12

    for a, b in pairwise(rng.choice(there.domain.sites, 12)):
        declared = there.cost.to(a, b[None])[0]
        paid, seconds = taken(there, b, a, ask=seed)
        assert 0 <= paid <= bound * declared
        assert 0 <= seconds <= bound * declared
        home, home_s = there.takes(GoHome(0, f"run/{seed}", b), a, 0.0, stream(3, "cost", seed))
        assert 0 <= home <= bound * there.cost.travel(a, b[None])[0]
        assert home_s == home


def test_the_worst_case_is_reached_straight_against_the_wind_with_the_largest_noise():
    storm = Disturbances(cost_noise=0.05, head_wind=(0.12, 0.16))

    assert storm.worst == pytest.approx(1.2 * 1.1 - 1)
    assert storm.wind_factor(Euclidean(), [[6, 8], [0, 0]]) * 1.1 == pytest.approx(1 + storm.worst)


# -- a margin that is too small --------------------------------------------------------------------------


def margin_warnings(margin, *, live=False, home=True, **disturbances):
    there = world(**disturbances)
    mission = small_mission(world=replace(there, field=None) if live else there, battery=100.0, home=home)
    crew = VehicleSpec(100.0, mission.vehicles[0].start, home=mission.vehicles[0].home, margin=margin)
    return [w for w in Agent(replace(mission, vehicles=(crew,))).warnings if "margin" in w]


def test_a_margin_below_the_worst_case_is_warned_of_with_the_value_to_set():
    (warning,) = margin_warnings(0.1, cost_noise=0.05, head_wind=(0.2, 0.0))

    assert "32% more than the declared cost (cost_noise 0.05, head_wind [0.2, 0])" in warning
    assert "margin is 10%" in warning
    assert "set agent.margin = 0.32" in warning
    assert "on the trip home" in warning
    assert "trip home" not in margin_warnings(0.1, home=False, cost_noise=0.1)[0]
    assert margin_warnings(0.32, cost_noise=0.05, head_wind=(0.2, 0.0)) == []
    assert margin_warnings(0.0) == []
    assert margin_warnings(0.0, live=True, cost_noise=0.1) == []


@given(noise=st.floats(0.0, 0.49), wind=shares)
def test_the_margin_in_the_warning_is_sufficient(noise, wind):
    disturbances = Disturbances(noise, (wind, 0.0))
    for warning in margin_warnings(0.0, cost_noise=noise, head_wind=(wind, 0.0)):
        assert float(warning.rsplit("= ", 1)[1]) >= disturbances.worst - 1e-6


# -- bad input, files ------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [-0.1, 0.5, np.nan, np.inf])
def test_a_noise_outside_0_to_half_is_rejected(bad):
    with pytest.raises(InputError, match="cost_noise") as error:
        Disturbances(cost_noise=bad)
    assert error.value.where == "conditions.cost_noise"


@pytest.mark.parametrize("bad", [(1.0, 0.0), (0.8, 0.8), (np.nan, 0.0), (np.inf, 0.0)])
def test_a_wind_of_length_1_or_more_is_rejected(bad):
    with pytest.raises(InputError, match="head_wind") as error:
        Disturbances(head_wind=bad)
    assert error.value.where.startswith("conditions.head_wind")


def test_a_wind_needs_one_component_per_axis():
    with pytest.raises(InputError, match="a head wind of 3 components"):
        world(head_wind=(0.1, 0.1, 0.1))


def in_a_file(folder: Path, table: str) -> Path:
    source = fieldbo.mission.files.shipped("worlds") / "lake-transect"
    there = folder / "worlds" / "lake"
    there.mkdir(parents=True, exist_ok=True)
    for file in source.iterdir():
        if file.is_file():
            (there / file.name).write_bytes(file.read_bytes())
    (there / "world.toml").write_text((source / "world.toml").read_text() + f"\n[conditions]\n{table}\n")
    return there


def test_a_world_file_holds_disturbances_and_errors_name_the_key(tmp_path):
    loaded = fieldbo.load_world(in_a_file(tmp_path, "cost_noise = 0.05\nhead_wind = [0.2, 0]"))
    assert loaded.disturbances == Disturbances(0.05, (0.2, 0.0))
    assert fieldbo.load_world("lake-transect").disturbances is None

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
        assert "conditions.disturbances" not in str(error.value)


def test_the_commands_warn_of_a_small_margin_and_report_the_planned_cost(tmp_path, monkeypatch, said):
    monkeypatch.chdir(tmp_path)
    in_a_file(tmp_path, "cost_noise = 0.05\nhead_wind = [0.2, 0]")
    text = (fieldbo.mission.files.shipped("missions") / "lake-level-set.toml").read_text()
    Path("m.toml").write_text(text.replace('world = "lake-transect"', 'world = "lake"'))
    few = ("--set", "agent.battery=300", "--set", "policy.kind=random", "--set", "model.learn=false")

    checked = " ".join(said("check", "m.toml", *few).split())
    output = " ".join(said("run", "m.toml", "--out", "r", *few, "--set", "agent.margin=0.32").split())

    assert "warning: moves can cost 32% more than the declared cost" in checked
    assert "agent.margin = 0.32" in checked
    summary = json.loads(Path("r/summary.json").read_text())
    assert summary["cost"] != pytest.approx(summary["planned_cost"], rel=1e-3)
    assert f"cost: {summary['cost']:.0f} of 300 s (" in output
    assert f"than the {summary['planned_cost']:.0f} planned" in output
    assert not [n for n in summary["notes"] if "margin" in n]

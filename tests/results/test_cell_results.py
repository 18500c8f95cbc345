"""Results of runs in a factory cell: module runs, plays of control sets, regrets and tables."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest
from small_files import mission_text

import fieldbo
from fieldbo.belief.model import Model
from fieldbo.belief.question import LevelSet, Optimum
from fieldbo.costs.cells import Modular, Module, Subset
from fieldbo.domain.axes import Axis
from fieldbo.domain.controls import Controls, ControlSet, Uniform
from fieldbo.domain.domain import Domain
from fieldbo.domain.sensor import Sensor
from fieldbo.errors import InputError
from fieldbo.messages import EndReason, Query, Stop
from fieldbo.mission.mission import Mission
from fieldbo.mission.vehicle_spec import VehicleSpec
from fieldbo.policies.contract import Decision, Policy
from fieldbo.policies.control_sets.search import free_samples
from fieldbo.results.cell_runs import cell_runs_of, judged_by
from fieldbo.results.curve import Step
from fieldbo.results.metrics import BEST_REGRET, F1, REGRET, SIMPLE_REGRET
from fieldbo.results.result import Result
from fieldbo.results.truth import ALPHA, expected_truth_of, truth_samples
from fieldbo.runs.comparison import compare
from fieldbo.runs.comparison_scores import score_of, scores_at
from fieldbo.world.fields.base import Field
from fieldbo.world.world import Quantity, World

AXES = Axis("a", "", 0, 1), Axis("b", "", 0, 1)
FIRST, BOTH = np.array([True, False]), None
SETS = tuple(ControlSet.of(names, AXES, "control_sets") for names in (["a"], ["a", "b"]))
CHAIN = Modular(modules=(Module("mix", ("a",), 10.0), Module("bake", ("b",), 1.0)))
MODEL = Model(length_scales=(0.5, 0.5), learn=False)


@dataclass(frozen=True, eq=False)
class Known(Field):
    """A function that records how many points were evaluated at a time."""

    function: object
    looked_up: list = field(default_factory=list)

    def values(self, sites, time_s=0.0):
        self.looked_up.append(len(sites))
        return self.function(sites)


@dataclass(frozen=True)
class Script(Policy):
    """Issues given orders, then stops."""

    leaves_free = True
    orders: tuple = ()

    def suggest(self, state, memory):
        done = len(state.orders)
        if done == len(self.orders):
            return Decision(Stop(EndReason.QUESTION_ANSWERED))
        site, controls = self.orders[done]
        return Decision(Query(site, controls))


def mission(orders, function, question=None, cost=CHAIN, sets=(), **settings):
    controls = Controls(sets, (Uniform(), Uniform())) if sets else None
    domain = Domain.box(AXES, 64, controls=controls)
    world = World(
        "cell", "A cell", domain, cost, "EUR", Sensor(0.01), Quantity("yield"), Known(function), start=[0, 0]
    )
    policy = Script(orders=tuple(orders))
    crew = (VehicleSpec(100.0, world.start),)
    settings = {"initial": 0, "max_steps": 50} | settings
    return Mission("cell", world, question or Optimum(), policy, MODEL, crew, **settings)


def bowl(x):
    return 4 * (x[:, 0] - 0.25) ** 2 + (x[:, 1] - 0.5) ** 2


def slope(x):
    return 6 * x[:, 0] + x[:, 1]


BAKED = [([0, 0], None), ([0, 0.5], None), ([0.5, 0.5], None), ([0.5, 0.5], None)]
PLAYED = [([0.5, 0], FIRST), ([0, 1], BOTH), ([1, 0], FIRST), ([1, 1], BOTH)]


def baked(question=None, **settings):
    return fieldbo.run(mission(BAKED, bowl, question or Optimum("minimise"), **settings))


def played(question=None, function=slope, costs=(0.1, 1.0), **settings):
    told = mission(PLAYED, function, question, Subset(costs=costs), SETS, **settings)
    return fieldbo.run(told)


def column(result, name):
    return [getattr(step, name) for step in result.curve]


def rows_of(file):
    with file.open(newline="") as lines:
        return list(csv.DictReader(lines))


# -- a chain of modules ----------------------------------------------------------------------------------


def test_a_chain_counts_module_runs_and_the_cost_of_movement():
    result = baked()
    assert column(result, "cost") == [1, 2, 13, 14]
    assert column(result, "movement") == [0, 0, 10, 10]
    told = result.summary()
    assert told["movement"] == 10
    assert not {"play", "best_plays"} & set(told)
    assert told["modules"] == [
        {"name": "mix", "cost": 10.0, "runs": 1, "spent": 10.0},
        {"name": "bake", "cost": 1.0, "runs": 4, "spent": 4.0},
    ]


def test_a_last_module_that_is_not_charged_costs_nothing():
    told = baked(cost=replace(CHAIN, charge_last=False)).summary()
    assert [one["spent"] for one in told["modules"]] == [10.0, 0.0]
    assert sum(one["spent"] for one in told["modules"]) == told["cost"]


@pytest.mark.parametrize("charge_last", [True, False])
def test_the_real_cost_is_split_among_modules_by_their_declared_cost(charge_last):
    agent = fieldbo.Agent(mission(BAKED, bowl, cost=replace(CHAIN, charge_last=charge_last)))
    for paid in (3.0, 0.0, 22.0, 2.0):  # declared: bake, bake, both, bake
        agent.tell(agent.ask().observed(1.0, noise_variance=0.01, cost=paid))
    result = Result.of(agent)
    mix, bake = (one["spent"] for one in result.summary()["modules"])
    assert mix + bake == pytest.approx(result.cost) == 27.0
    assert mix == pytest.approx(22.0 * 10 / 11 if charge_last else 22.0)


def test_the_movement_regret_adds_a_tenth_of_the_movement_to_each_sample_s_regret():
    result = baked()
    np.testing.assert_allclose(column(result, "movement_regret"), [0.5, 0.75, 2.0, 2.25], atol=1e-6)
    np.testing.assert_allclose(column(result, "best_regret"), [0.5, 0.25, 0.25, 0.25], atol=1e-6)
    told = result.summary()
    assert told["movement_regret"] == column(result, "movement_regret")[-1]
    assert told["best_regret"] == column(result, "best_regret")[-1]
    np.testing.assert_allclose(
        column(baked(Optimum()), "best_regret")[0], bowl(np.array([[1, 0]]))[0] - 0.5, atol=1e-6
    )


def test_a_level_set_has_no_regret():
    result = baked(LevelSet(0.3))
    assert Step.columns(LevelSet(0.3), result.cell_runs.columns)[-1] == "movement"
    told = result.summary()
    assert told["modules"][0]["runs"] == 1
    assert "movement_regret" not in told
    assert np.isnan(column(result, "movement_regret")).all()


def test_the_tables_of_a_chain_name_the_first_module_that_ran(tmp_path):
    result = baked()
    result.save(tmp_path)
    rows = rows_of(tmp_path / "observations.csv")
    assert [r["module"] for r in rows] == ["bake", "bake", "mix", "bake"]
    assert [float(r["movement"]) for r in rows] == [0, 0, 10, 0]
    curve = rows_of(tmp_path / "curve.csv")
    assert list(curve[0])[-4:] == ["coverage90", "movement", "best_regret", "movement_regret"]
    assert [float(r["movement_regret"]) for r in curve] == column(result, "movement_regret")


# -- control sets ----------------------------------------------------------------------------------------


def mean_b(result):
    return float(truth_samples(result.mission.world.domain)[:, 1].mean())


def test_each_play_counts_with_its_expected_value_whatever_its_free_variables_were():
    result = played()
    b = mean_b(result)
    np.testing.assert_allclose(column(result, "last_play_value"), [3 + b, 1, 6 + b, 7], atol=1e-9)
    np.testing.assert_allclose(column(result, "simple_regret"), [4 - b, 4 - b, 1 - b, 0], atol=1e-6)
    assert b == pytest.approx(0.5, abs=0.02)


def test_quality_and_cost_regret_sum_up_from_play_to_play():
    result = played()
    b, share = mean_b(result), (1 - ALPHA) * 7
    short = list(accumulate([share - 3 - b, share - 1, share - 6 - b, share - 7]))
    np.testing.assert_allclose(column(result, "quality_regret"), short, atol=1e-6)
    np.testing.assert_allclose(column(result, "cost_regret"), [0, 0.9, 0.9, 1.8], atol=1e-9)


def test_a_set_that_does_not_reach_nine_tenths_is_not_good_enough_however_cheap():
    result = played(function=lambda x: x[:, 0] + x[:, 1])
    assert column(result, "cost_regret") == [0, 0, 0, 0]
    one, both = result.summary()["control_sets"]
    assert (one["good_enough_true"], both["good_enough_true"]) == (False, True)
    assert both["best_value_true"] == pytest.approx(2.0)


def test_the_best_settings_of_a_set_lie_between_the_sites():
    hill = lambda x: x[:, 1] - (x[:, 0] - 0.3) ** 2  # noqa: E731
    result = played(function=hill)
    best, _ = (one["best_value_true"] for one in result.summary()["control_sets"])
    assert best == pytest.approx(mean_b(result), abs=1e-8)
    expected = expected_truth_of(result.mission.world, Optimum())
    lowest = float(hill(result.mission.world.domain.sites).min())
    assert expected.worst == lowest < 0, "gains are counted from the worst"
    assert expected.best == pytest.approx(1 - lowest, abs=1e-6)


@pytest.fixture(scope="module")
def hartmann():
    return expected_truth_of(fieldbo.load_world("cell-hartmann-12-cheap"), Optimum())


def test_expected_values_are_averages_over_other_samples_than_those_of_policies(hartmann):
    domain = hartmann.truth.world.domain
    truth, policies = truth_samples(domain), free_samples(domain, 1024)
    assert truth.shape == (4096, 12)
    assert not (truth[:, None, 0] == policies[:, 0]).any()
    np.testing.assert_array_equal(truth, truth_samples.__wrapped__(domain))


def test_expected_values_are_those_of_many_random_draws(hartmann):
    world, rng = hartmann.truth.world, np.random.default_rng(0)
    domain, controls = world.domain, hartmann.sets[1]
    drawn = np.column_stack([law.draw(rng, 100_000) for law in domain.distributions])
    few = free_samples(domain, 128)
    errors, old = [], []
    for site in domain.sites[:4]:
        literal = world.truth(np.where(controls, site, drawn)).mean()
        errors.append(hartmann.value(hartmann.gains(site[None], controls)[0]) - literal)
        old.append(world.truth(np.where(controls, site, few)).mean() - literal)
    np.testing.assert_allclose(errors, 0.0, atol=2e-3)
    assert np.abs(errors).max() < 0.2 * np.abs(old).max()


def test_a_minimum_is_scored_like_the_maximum_of_the_negated_function():
    largest, least = played(), played(Optimum("minimise"), lambda x: 7 - slope(x))
    for name in ("simple_regret", "cost_regret"):
        np.testing.assert_allclose(column(least, name), column(largest, name), atol=1e-6)
    np.testing.assert_allclose(
        column(least, "last_play_value"), 7 - np.array(column(largest, "last_play_value"))
    )


def test_plays_and_cost_are_listed_by_control_set(tmp_path):
    result = played()
    result.save(tmp_path)
    one, both = result.summary()["control_sets"]
    assert [one["set"], both["set"]] == ["a", "all"]
    assert (one["plays"], both["plays"]) == (2, 2)
    assert (one["cost"], both["cost"]) == (pytest.approx(0.2), pytest.approx(2.0))
    assert both["share_of_cost"] == pytest.approx(2.0 / 2.2)
    assert one["mean_cost"] == pytest.approx(0.1)
    rows = rows_of(tmp_path / "observations.csv")
    assert [r["set"] for r in rows] == ["a", "all", "a", "all"]
    curve = rows_of(tmp_path / "curve.csv")
    assert list(curve[0])[-4:] == ["last_play_value", "simple_regret", "quality_regret", "cost_regret"]
    assert all(r["planned"] for r in rows_of(tmp_path / "ledger.csv"))


@pytest.mark.slow
def test_where_costs_are_unknown_the_first_play_of_a_set_has_no_plan(tmp_path):
    result = played(costs=(0.1, 1.0))
    unknown = fieldbo.run(replace(result.mission, costs="unknown"))
    unknown.save(tmp_path)
    planned = [r["planned"] for r in rows_of(tmp_path / "ledger.csv")]
    assert planned[:2] == ["", ""]
    assert [float(p) for p in planned[2:]] == [0.1, 1.0]
    assert column(unknown, "cost_regret") == column(result, "cost_regret"), "judged by the truth all the same"


def test_the_truth_of_each_play_is_computed_once():
    result = played()
    assert result.mission.world.field.looked_up.count(4096) >= 2
    world = result.mission.world
    before = len(world.field.looked_up)
    again = fieldbo.run(replace(result.mission, seed=1))
    judged = [n for n in world.field.looked_up[before:] if n == 4096]
    assert len(judged) == 2, "the plays that leave a variable free; the best of each set is known already"
    assert again.best_plays
    assert [n for n in world.field.looked_up[before:] if n == 4096] == judged, "the model knows no truth"


# -- all -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("made", [baked, played])
def test_a_summary_is_plain_json_even_in_a_live_cell_and_before_the_first_reading(made):
    result = made()
    json.dumps(result.summary(), allow_nan=False)
    live = replace(result, mission=replace(result.mission, world=replace(result.mission.world, field=None)))
    told = json.loads(json.dumps(live.summary(), allow_nan=False))
    assert "best_value_true" not in str(told)
    counted = {"modules", "control_sets"} & set(told)
    assert len(counted) == 1
    nothing = Result.of(fieldbo.Agent(result.mission)).summary()
    assert all(one.get("runs", one.get("plays")) == 0 for name in counted for one in nothing[name])


def test_a_world_that_is_not_a_cell_counts_nothing():
    cell = cell_runs_of(fieldbo.load_mission("lake-level-set"))
    assert (cell.columns, cell.reading_columns, cell.summary(), cell.scores(), cell.plays) == (
        (),
        (),
        {},
        {},
        [],
    )


def test_a_rejected_order_is_not_a_play():
    agent = fieldbo.Agent(mission(BAKED, bowl, Optimum("minimise")))
    first = agent.ask()
    agent.tell(fieldbo.messages.Rejected(first.id, "door open"))
    result = Result.of(agent)
    assert result.cell_runs.plays == []
    assert result.summary()["modules"][1]["runs"] == 0


# -- comparisons -----------------------------------------------------------------------------------------


@pytest.fixture
def missions(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, world, goal in (
        ("chain", "cell-hartmann-6", "minimise"),
        ("sets", "cell-growth", "maximise"),
    ):
        asked = mission_text(
            world,
            title=world,
            goal=goal,
            battery=40,
            agent={"max_steps": 3},
            initial={"count": 2},
            policy="random",
            model={"learn": False, "mean": 0.0},
        )
        Path(f"{name}.toml").write_text(asked)


def test_runs_in_cells_are_compared_by_the_best_sample_or_the_simple_regret(missions):
    assert score_of("chain.toml") is BEST_REGRET
    assert score_of("sets.toml") is SIMPLE_REGRET
    assert score_of("hartmann") is REGRET
    assert judged_by(fieldbo.load_mission("lake-level-set")) is F1
    with pytest.raises(InputError, match=r"different regrets: chain\.toml: .*, sets\.toml: simple regret"):
        compare(["chain.toml", "sets.toml"], 1, 1, Path("t.csv"))


def test_a_comparison_in_a_cell_has_the_regret_of_its_runs(missions):
    rows = compare(["chain.toml"], 2, 1, Path("t.csv"))
    last = [float(r["best_regret"]) for r in rows if r["row"] == "run"]
    score = scores_at(rows, [40.0], score_of("chain.toml"))["chain"]
    assert score.mean[0] == pytest.approx(np.mean(last))

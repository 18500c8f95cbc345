"""How ``fieldbo check`` and ``fieldbo show`` describe a cell: modules, control sets and free variables."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_files import mission_text

import fieldbo
from fieldbo.messages import Query

SETS = """format = 1
version = "1"
title = "three variables"
cost_unit = "EUR"
[domain]
kind = "box"
control_sets = [["x1", "x3"], ["x1"], ["x1", "x2"]]
representers = 64
[[domain.axes]]
name = "x1"
unit = ""
low = -5
high = 10
[[domain.axes]]
name = "x2"
unit = "bar"
low = 0
high = 15
free = { kind = "truncated-normal", mean = 7, variance = 4 }
[[domain.axes]]
name = "x3"
unit = "K"
low = 0
high = 4
free = { kind = "uniform" }
[field]
kind = "gp-draw"
length_scales = [5, 5, 2]
[sensor]
noise_sd = 0
[cost]
kind = "subset"
costs = [0.5, 0.25, 2]
noise_sds = [0.1, 0, 0]
"""
LIVE = SETS.replace('[field]\nkind = "gp-draw"\nlength_scales = [5, 5, 2]\n', "")
LIVE = LIVE.replace("costs = [0.5, 0.25, 2]\nnoise_sds = [0.1, 0, 0]\n", "")
CHAIN = """format = 1
version = "1"
title = "two stages"
cost_unit = "EUR"
[domain]
kind = "box"
axes = [{ name = "x1", unit = "", low = -5, high = 10 }, { name = "x2", unit = "", low = 0, high = 15 }]
representers = 64
[field]
kind = "function"
name = "branin"
[sensor]
noise_sd = 0
[cost]
kind = "modular"
modules = [{ name = "bake", axes = ["x1"], cost = 10 }, { name = "cool", axes = ["x2"], cost = 1.5 }]
"""
MISSION = mission_text("cell", battery=9, agent={"costs": "unknown"}, policy="ucb-psq")


@pytest.fixture(autouse=True)
def _place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def cell(world, mission=MISSION):
    Path("worlds/cell").mkdir(parents=True)
    Path("worlds/cell/world.toml").write_text(world)
    Path("m.toml").write_text(mission)


def test_control_sets_are_listed_with_their_costs_and_free_variables(said):
    cell(SETS)

    out = said("check", "cell")

    assert "  cost      subset; sample: 0.25 to 2 EUR\n" in out
    assert "  sets      x1, x3 0.5 (sd 0.1) EUR; x1 0.25 EUR; x1, x2 2 EUR\n" in out
    assert "  if free   x2 normal, mean 7, sd 2 bar, truncated; x3 uniform\n" in out
    assert "  always    x1 is set\n" in out


def test_a_live_cell_of_unknown_costs_is_described_without_them(said):
    cell(LIVE)

    out = said("check", "m.toml")

    assert "subset; sample: unknown cost" in out
    assert "  sets      x1, x3; x1; x1, x2\n" in out
    assert "  costs     unknown to the agent" in out
    assert "warning" not in out


def test_a_single_price_for_all_sets_is_listed_for_each(said):
    world = SETS[: SETS.index("[cost]")] + '[cost]\nkind = "unit"\nsampling = 3\n'
    cell(world)

    out = said("check", "cell")

    assert "unit; sample: 3 to 3 EUR" in out
    assert "x1, x3 3 EUR; x1 3 EUR; x1, x2 3 EUR" in out


def test_modules_are_listed_with_their_settings_and_costs(said):
    cell(CHAIN)

    out = said("check", "cell")

    assert "  modules   bake (x1) 10 EUR; cool (x2) 1.5 EUR, charged with every sample\n" in out


def test_a_free_last_module_is_reported(said):
    cell(CHAIN.replace("[cost]\n", "[cost]\ncharge_last = false\n"))

    assert "cool (x2) 1.5 EUR, which is free" in said("check", "cell")


@pytest.mark.parametrize("costs", ["unknown", "declared"])
def test_a_battery_is_compared_with_the_cheapest_control_set(said, costs):
    mission = MISSION.replace("battery = 9", "battery = 0.3").replace("unknown", costs)
    cell(SETS, mission)

    out = said("check", "m.toml")

    assert "not enough for any reading" not in out
    assert "not enough for the initial reading at the start, which takes 0.5 EUR" in out


def test_a_battery_that_is_not_enough_for_any_control_set_draws_a_warning(said):
    cell(SETS, MISSION.replace("battery = 9", "battery = 0.2"))

    assert "not enough for any reading: the cheapest reading takes 0.25 EUR" in said("check", "m.toml")


def test_unaffordable_control_sets_draw_a_warning(said):
    cell(SETS, MISSION.replace("battery = 9", "battery = 0.9"))

    out = " ".join(said("check", "m.toml").split())

    assert "after the initial reading, the battery of 0.9 EUR is not enough for a play of x1, x3" in out
    assert "x1, x3, which takes 0.5 EUR, nor for a play of x1, x2, which takes 2 EUR" in out


OF_CHAIN = MISSION.replace('costs = "unknown"\n', "").replace("ucb-psq", "lambo")


@pytest.mark.parametrize(
    ("battery", "warned"),
    [
        (1, "the battery of 1 EUR is not enough for any reading: the cheapest reading takes 1.5 EUR"),
        (2.9, "is only enough for the initial reading: the cheapest reading after it takes 1.5 EUR"),
        (
            12.9,
            "after the initial reading, the battery of 12.9 EUR is not enough for a change of bake, which "
            "takes 11.5 EUR",
        ),
        (13, None),
    ],
)
def test_a_battery_that_is_not_enough_for_a_first_move_in_a_chain_draws_a_warning(said, battery, warned):
    cell(CHAIN, OF_CHAIN.replace("battery = 9", f"battery = {battery}"))

    out = said("check", "m.toml")

    assert ("warning" in out) == (warned is not None)
    assert (warned or "") in out


@pytest.mark.parametrize(
    ("battery", "warned"),
    [
        (1, "not enough for any reading: the cheapest reading takes 1.5 EUR"),
        (
            1.5,
            "enough for only 1 of the 4 initial readings, and none by the policy: the cheapest",
        ),
        (
            13,
            "enough for only 2 of the 4 initial readings, and none by the policy: the cheapest",
        ),
        (15, "enough for only 2 of the 4 initial readings; the policy then takes over"),
        (36, "only enough for the 4 initial readings: the cheapest reading after them takes 1.5 EUR"),
        (38, "after the initial readings, the battery of 38 EUR is not enough for a change of bake, which"),
        (49, None),
    ],
)
def test_a_battery_is_compared_with_all_initial_readings(said, battery, warned):
    cell(CHAIN, OF_CHAIN.replace("battery = 9", f"battery = {battery}") + "[initial]\ncount = 4\n")

    out = said("check", "m.toml")

    assert ("warning" in out) == (warned is not None)
    assert (warned or "") in " ".join(out.split())
    agent = fieldbo.Agent(fieldbo.load_mission("m.toml"))
    while isinstance(order := agent.ask(), Query):
        agent.tell(order.observed(1.0, noise_variance=0.01))
    by_policy = sum(issued.why is not None for issued in agent.issued.values())
    assert (by_policy == 0) == any(
        part in (warned or "") for part in ("by the policy", "only enough", "any reading")
    )


def test_a_chain_without_costs_draws_a_note_and_is_rejected_by_policies_that_need_costs(said, command):
    cell(CHAIN.replace("cost = 10 ", "cost = 0 ").replace("cost = 1.5", "cost = 0"), OF_CHAIN)
    steps = ("--set", "agent.max_steps=5")

    assert "  note      no change of settings costs anything\n" in said("check", "cell")
    assert "valid" in said("check", "m.toml", *steps, "--set", "policy.kind=ei")
    for kind in ("lambo", "lazy-ei-per-cost", "carbo", "ca-mobo"):
        for what in ("check", "run"):
            code, _, err = command(what, "m.toml", *steps, "--set", f"policy.kind={kind}")
            assert code == 2
            assert "but all modules are free" in err
            assert "m.toml: cost.modules" in err
    _, _, err = command("check", "m.toml", "--set", "policy.kind=ei")
    fix = "give the last module a cost, with charge_last = true, or set max_steps in [agent]"
    assert fix in " ".join(err.split())


@pytest.mark.parametrize("world", [SETS, LIVE, CHAIN], ids=["sets", "live", "chain"])
def test_a_cell_is_shown(said, world):
    cell(world)

    assert "cell.png" in said("show", "cell")
    assert Path("cell.png").stat().st_size > 1000

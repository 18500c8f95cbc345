"""A factory cell by hand: what to set, which modules to run, and the dialogue about the outcome."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from small_files import mission_text

import fieldbo
from fieldbo.domain.axes import Axis
from fieldbo.messages import Query, Rejected
from fieldbo.vehicles.by_hand import ByHand
from fieldbo.vehicles.person import shown

CHAIN = """format = 1
version = "1"
title = "three stages"
cost_unit = "EUR"
[domain]
kind = "box"
axes = [{ name = "strength", unit = "", low = 0, high = 1 },
        { name = "patch", unit = "px", low = 3, high = 13 },
        { name = "window", unit = "px", low = 0, high = 40 },
        { name = "area", unit = "px2", low = 0, high = 200 }]
representers = 64
[sensor]
noise_sd = 0
[cost]
kind = "modular"
modules = [{ name = "denoise", axes = ["strength", "patch"], cost = 40 },
           { name = "segment", axes = ["window"], cost = 10 }, { name = "clean", axes = ["area"], cost = 1 }]
"""
SETS = """format = 1
version = "1"
title = "three variables, of which some can be left to chance"
cost_unit = "EUR"
[domain]
kind = "box"
axes = [{ name = "x1", unit = "", low = -5, high = 10, free = { kind = "uniform" } },
        { name = "x2", unit = "bar", low = 0, high = 15, free = { kind = "uniform" } },
        { name = "x3", unit = "K", low = 0, high = 4, free = { kind = "uniform" } }]
control_sets = [["x1", "x3"], ["x3"], ["x1", "x2", "x3"]]
representers = 64
[sensor]
noise_sd = 0
[cost]
kind = "subset"
"""
THIRD = 1 / 3
PLACE = [THIRD, 7.0, 40 * THIRD, 66.0]


@pytest.fixture(autouse=True)
def _place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def mission_of_cell(policy="ei", costs="declared", **agent):
    return mission_text(
        "cell",
        battery=300,
        agent={"costs": costs, **agent},
        initial={"count": 3},
        policy=policy,
        model={"learn": False, "mean": 0},
    )


def cell(world, policy="ei", costs="declared"):
    """Write a cell and its mission, and return the mission."""
    Path("worlds/cell").mkdir(parents=True, exist_ok=True)
    Path("worlds/cell/world.toml").write_text(world)
    Path("m.toml").write_text(mission_of_cell(policy, costs))
    return fieldbo.load_mission("m.toml")


class Typist:
    """Types one answer after the other, and keeps what was printed and asked."""

    def __init__(self, mission, *answers):
        self.answers, self.printed, self.asked = list(answers), [], []
        self.vehicle = ByHand(mission, read=self.read, write=self.printed.append)

    def read(self, prompt):
        self.asked.append(prompt.strip())
        if not self.answers:
            raise EOFError
        return self.answers.pop(0)

    def carry_out(self, query):
        self.asked.clear()
        self.vehicle.send(query)
        [event] = self.vehicle.events(0.0)
        return event


def of_sets(*on, site=(0.25, np.nan, 2.0), cost=0.1, number=7):
    return Query(list(site), np.array(on, dtype=bool), expected_cost=cost, id=f"run/{number}")


# -- variables that are left free ------------------------------------------------------------------------


def test_the_order_lists_what_to_set_and_asks_for_the_values_of_free_variables():
    typist = Typist(cell(SETS, costs="unknown"), "", "3.5", "12", "")

    event = typist.carry_out(of_sets(1, 0, 1))

    assert typist.printed[-1] == "\nrun/7: set x1 0.25, x3 2 K; do not set x2  (about 0.1 EUR)"
    assert typist.asked == ["settings [0.25, 2]:", "measured x2 (bar):", "value:", "cost (EUR) [0.1]:"]
    assert event.sites.tolist() == [[0.25, 3.5, 2.0]]
    assert (event.values.tolist(), event.cost) == ([12.0], 0.1)


def test_several_variables_may_be_free():
    typist = Typist(cell(SETS, costs="unknown"), "", "1", "2", "12", "")

    event = typist.carry_out(of_sets(0, 0, 1, site=(np.nan, np.nan, 2.0)))

    assert "set x3 2 K; do not set x1 and x2" in typist.printed[-1]
    assert event.sites.tolist() == [[1.0, 2.0, 2.0]]


def test_a_query_that_sets_everything_leaves_nothing_free():
    typist = Typist(cell(SETS, costs="unknown"), "", "12", "")

    event = typist.carry_out(of_sets(1, 1, 1, site=(1.0, 2.0, 3.0)))

    assert "set x1 1, x2 2 bar, x3 3 K  (about" in typist.printed[-1]
    assert event.sites.tolist() == [[1.0, 2.0, 3.0]]


def test_a_free_variable_has_no_default_and_is_asked_again_beyond_its_range():
    typist = Typist(cell(SETS, costs="unknown"), "", "", "16", "-1", "nan", "lots", "15", "12", "")

    event = typist.carry_out(of_sets(1, 0, 1))

    assert typist.asked.count("measured x2 (bar):") == 6
    assert sum("try again" in line for line in typist.printed) == 3
    assert (
        sum(" is outside the range of x2, 0 to 15 bar; type it again" in line for line in typist.printed) == 2
    )
    assert event.sites.tolist() == [[0.25, 15.0, 2.0]]


def test_a_value_outside_its_range_is_accepted_when_it_is_typed_again():
    mission = cell(SETS, costs="unknown")
    typist = Typist(mission, "0.3 -7", "0.3 -7", "16", "17", "16", "12", "", *["skip"] * 9)

    event = typist.carry_out(of_sets(1, 0, 1))

    assert any(
        "16 is outside the range of x2, 0 to 15 bar; type it again to confirm" in p for p in typist.printed
    )
    assert event.sites.tolist() == [[0.3, 16.0, -7.0]]
    again = of_sets(1, 0, 1, number=8)
    typist.answers = ["", "16", "3", "12", ""]
    assert typist.carry_out(again).sites.tolist() == [[0.25, 3.0, 2.0]], "each question is doubted again"


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["subsets", "subset-front", "ucb-psq", "ts-psq", "ei"])
def test_readings_outside_the_box_are_modelled_and_noted_but_every_order_stays_inside(policy):
    cell(SETS, costs="unknown")
    few = {} if policy == "ei" else {"samples": 8, "candidates": 4}
    told = {"agent": {"max_steps": 7}, "policy": {"kind": policy, **few}}
    agent = fieldbo.Agent(fieldbo.load_mission("m.toml", told))
    far = []
    while isinstance(order := agent.ask(), Query):
        free = np.isnan(order.site)
        assert agent.domain.contains(agent.domain.expected(order.site)[None])[0]
        far.append(bool(free.any()) or len(far) == 4)
        position = np.where(free | far[-1], agent.domain.high + 2.0, order.site)
        agent.tell(order.observed(len(far), noise_variance=0.01, cost=0.2, position=position))

    result = fieldbo.Result.of(agent, reason=order.reason)
    beyond = [site.tolist() for site in result.sites if (site > agent.domain.high).any()]
    assert len(beyond) == sum(far) > 0
    assert set(map(tuple, beyond)) <= set(map(tuple, agent.surface.belief.sites.tolist()))
    (note,) = [note for note in result.notes if "beyond the ends of" in note]
    assert note.startswith(f"{sum(far)} of {len(far)} readings lie beyond")
    assert agent.domain.contains(result.answer.reported.point[None])[0]  # though the best value lies beyond
    result.save(Path("r"))


def test_a_run_inside_the_box_has_no_note_about_readings_outside():
    agent = fieldbo.Agent(cell(SETS, costs="unknown"))
    order = agent.ask()
    agent.tell(order.observed(1.0, noise_variance=0.01, cost=0.2))

    assert agent.warnings == ()


@pytest.mark.parametrize("beyond", [1e-12, 1e-10])
def test_a_site_outside_the_box_by_rounding_counts_as_inside(beyond):
    agent = fieldbo.Agent(cell(CHAIN))
    domain = agent.domain
    for number, value in enumerate([1.0, 9.0, 2.0]):
        order = agent.ask()
        edge = np.where(number == 1, domain.high + beyond * domain.extent, order.site)
        assert domain.contains(edge[None])[0]
        assert not domain.beyond(edge).any()
        agent.tell(order.observed(value, noise_variance=1e-4, position=edge))

    result = fieldbo.Result.of(agent)

    assert not any("beyond" in note for note in (*agent.warnings, *result.notes))
    point = result.answer.polished(result.sites).reported.point
    for reported in (point, result.answer.reported.point, np.array(result.summary()["reported_site"])):
        assert (reported <= domain.high).all()
        assert (reported > domain.high - 0.5 * domain.extent).all()


def test_a_value_outside_its_range_gives_one_instruction():
    typist = Typist(cell(SETS, costs="unknown"), "", "16", "16", "12", "")

    typist.carry_out(of_sets(1, 0, 1))

    [line] = [line for line in typist.printed if "outside the range" in line]
    assert line.strip() == "16 is outside the range of x2, 0 to 15 bar; type it again to confirm"


def narrow(world=SETS, end=0.66666666):
    """Return a cell whose first axis ends at a number of more digits than are told."""
    return world.replace("low = -5, high = 10", f"low = 0.3333333333, high = {end}")


@pytest.mark.parametrize(("site", "typed"), [(0.66666666, "0.666667 2"), (0.3333333333, "0.333333 2")])
def test_the_printed_digits_of_an_end_stand_for_the_end_even_if_rounded_beyond_it(site, typed):
    typist = Typist(cell(narrow(), costs="unknown"), typed, "3", "12", "", "skip")

    event = typist.carry_out(of_sets(1, 0, 1, site=(site, np.nan, 2.0)))

    assert not any("outside the range" in line for line in typist.printed)
    assert event.sites.tolist() == [[site, 3.0, 2.0]]


def test_a_free_variable_at_the_printed_end_of_its_range_is_inside():
    typist = Typist(cell(narrow(), costs="unknown"), "", "0.7", "0.666667", "3", "12", "", "skip")

    event = typist.carry_out(of_sets(0, 0, 1, site=(np.nan, np.nan, 2.0)))

    [line] = [line.strip() for line in typist.printed if "outside the range" in line]
    assert line.startswith("0.7 is outside the range of x1, 0.333333 to 0.666667;")
    assert event.sites.tolist() == [[0.66666666, 3.0, 2.0]]


@pytest.mark.parametrize("word", ["quit", "q", "EXIT"])
@pytest.mark.parametrize("before", [(), ("",), ("", "3.5")])
def test_the_word_quit_stops_as_ctrl_c_does(word, before):
    typist = Typist(cell(SETS, costs="unknown"), *before, word, "")

    with pytest.raises(KeyboardInterrupt):
        typist.carry_out(of_sets(1, 0, 1))
    assert "Type 'quit' or press Ctrl-C" in typist.printed[0]
    assert not any("try again" in line for line in typist.printed)


def test_a_value_typed_before_quit_is_kept_at_the_planned_cost():
    typist = Typist(cell(SETS, costs="unknown"), "", "3.5", "12", "quit")

    event = typist.carry_out(of_sets(1, 0, 1))

    assert (event.values.tolist(), event.cost) == ([12.0], 0.1)
    with pytest.raises(KeyboardInterrupt):
        typist.vehicle.send(of_sets(1, 0, 1, number=8))


def test_an_unknown_cost_has_no_default():
    typist = Typist(cell(SETS, costs="unknown"), "", "3.5", "12", "", "0.4")

    event = typist.carry_out(of_sets(1, 0, 1, cost=None))

    assert "about" not in typist.printed[-2]
    assert typist.asked[-2:] == ["cost (EUR):", "cost (EUR):"]
    assert event.cost == 0.4


@pytest.mark.parametrize("cost", ["-1", "nan", "inf", "1e9", "dear"])
def test_an_impossible_cost_is_asked_for_again(cost):
    typist = Typist(cell(SETS, costs="unknown"), "", "3.5", "12", cost, "0.4")

    event = typist.carry_out(of_sets(1, 0, 1))

    assert "try again" in typist.printed[-1]
    assert event.cost == 0.4


@pytest.mark.parametrize("answers", [("skip",), ("", "skip"), ("", "1", "skip"), ("", "1", "2", "skip")])
def test_every_question_can_be_skipped(answers):
    typist = Typist(cell(SETS, costs="unknown"), *answers)

    assert isinstance(typist.carry_out(of_sets(1, 0, 1)), Rejected)


def test_other_settings_than_planned_are_taken_as_typed():
    typist = Typist(cell(SETS, costs="unknown"), "0.3", "0.3 5", "0.3 2.5", "3.5", "12", "")

    event = typist.carry_out(of_sets(1, 0, 1))

    assert any("enter 2 settings (x1, x3), not 1" in line for line in typist.printed)
    assert any("outside the range of x3, 0 to 4 K" in line for line in typist.printed)
    assert event.sites.tolist() == [[0.3, 3.5, 2.5]]


# -- modules ---------------------------------------------------------------------------------------------


def moved(typist, *sites):
    """Carry out orders at sites, and return their events."""
    return [typist.carry_out(Query(site, expected_cost=51.0, id=f"run/{k}")) for k, site in enumerate(sites)]


def test_the_order_lists_which_modules_to_run_and_what_each_costs():
    typist = Typist(cell(CHAIN), *["", "1", ""] * 3)

    moved(typist, PLACE, [*PLACE[:2], 20.0, 66.0], [*PLACE[:2], 20.0, 90.0])

    first, second, third = (line for line in typist.printed if line.startswith("\nrun/"))
    assert first == (
        "\nrun/0: set strength 0.33333, patch 7 px, window 13.3333 px, area 66 px2; "
        "run denoise (40 EUR), segment (10 EUR) and clean (1 EUR)  (about 51 EUR)"
    )
    assert "set window 20 px; keep strength 0.33333, patch 7 px, area 66 px2; run segment (10 EUR)" in second
    assert "and clean (1 EUR)  (about" in second
    assert third.startswith("\nrun/2: set area 90 px2; keep strength 0.33333, patch 7 px, window 20 px; ")
    assert "; run clean (1 EUR)  (about" in third


def test_a_last_module_without_charge_has_no_price():
    chain = CHAIN.replace('kind = "modular"', 'kind = "modular"\ncharge_last = false')
    Path("worlds/cell").mkdir(parents=True)
    Path("worlds/cell/world.toml").write_text(chain)
    Path("m.toml").write_text(mission_of_cell(max_steps=9))
    typist = Typist(fieldbo.load_mission("m.toml"), "", "1", "")

    moved(typist, PLACE)

    assert "segment (10 EUR) and clean  (about" in typist.printed[-1]


def test_modules_have_no_price_if_costs_are_unknown():
    typist = Typist(cell(CHAIN, costs="unknown"), "", "1", "2")

    typist.carry_out(Query(PLACE, id="run/0"))

    assert "; run denoise, segment and clean" in typist.printed[-1]
    assert "EUR" not in typist.printed[-1]


@pytest.mark.parametrize(
    "typed", ["", "0.33333, 7, 13.3333, 66", "0.33333 7 13.3333 66", "0.333330;7;13.3333;66"]
)
def test_enter_and_the_printed_digits_keep_the_exact_settings(typed):
    typist = Typist(cell(CHAIN), typed, "1", "")

    [event] = moved(typist, PLACE)

    assert event.position.tolist() == PLACE
    assert event.sites.tolist() == [PLACE]


def test_a_module_whose_printed_digits_are_typed_counts_as_unchanged():
    mission = cell(CHAIN)
    typist = Typist(mission, "", "1", "", "0.33333 7 25 66", "1", "")

    first, second = moved(typist, PLACE, [*PLACE[:2], 20.0, 66.0])

    cost = mission.world.cost
    assert second.position.tolist() == [*PLACE[:2], 25.0, 66.0]
    assert cost.first_changed(first.position, second.position).tolist() == [1]


def test_settings_are_printed_to_a_hundred_thousandth_of_the_axis():
    rng = np.random.default_rng(0)
    for low, high in [(0, 1), (-5, 10), (1000, 1001), (0, 1e-7), (0, 3e8), (1e-4, 2e-4)]:
        axis = Axis("x", "", low, high)
        for x in [low, high, *rng.uniform(low, high, 50)]:
            assert abs(float(shown(axis, x)) - x) <= 1e-5 * axis.extent
            assert len(shown(axis, x)) <= 16


# -- whole runs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("world", "costs"), [(CHAIN, "declared"), (CHAIN, "unknown"), (SETS, "unknown")])
def test_a_live_cell_runs_by_hand(command, monkeypatch, world, costs):
    cell(world, costs=costs)
    prompts = []

    def typed(prompt):
        prompts.append(prompt)
        if len(prompts) > 24:
            raise EOFError
        return "" if "[" in prompt else f"{1 + len(prompts) % 3}"

    class Typing(ByHand):
        def __init__(self, mission, number=0):
            super().__init__(mission, number, read=typed)

    monkeypatch.setattr("fieldbo.vehicles.by_hand.ByHand", Typing)

    code, out, err = command("run", "m.toml", "--by-hand", "--out", "r")

    assert (code in (0, 130), err) == (True, "")
    assert ": set " in out
    summary = json.loads(Path("r/summary.json").read_text())
    assert summary["readings"] >= 5
    assert summary["cost"] > 0

"""Explanations in factory cells: control sets, free variables and modules."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from small_files import mission_text

import fieldbo
from fieldbo.mission.kinds import POLICIES
from fieldbo.runs.explain import explain
from fieldbo.runs.folder import begin
from fieldbo.runs.loop import Interrupted
from fieldbo.runs.runner import run

SETS = """format = 1
version = "1"
title = "two variables, either of which can be left to chance"
cost_unit = "EUR"
[domain]
kind = "box"
axes = [{ name = "x1", unit = "", low = -5, high = 10, free = { kind = "uniform" } },
        { name = "x2", unit = "K", low = 0, high = 15, free = { kind = "uniform" } }]
control_sets = [["x1"], ["x2"], ["x1", "x2"]]
representers = 64
[field]
kind = "function"
name = "branin"
[cost]
kind = "subset"
costs = [0.1, 0.2, 1]
noise_sds = [0.01, 0.01, 0.02]
[sensor]
noise_sd = 0.1
"""
CHAIN = SETS.replace(', free = { kind = "uniform" }', "")
CHAIN = re.sub(r"control_sets = .*\n", "", CHAIN)
CHAIN = re.sub(
    r"\[cost\][^\[]*\[0.1[^\[]*\[0.01.*\n",
    '[cost]\nkind = "modular"\nmodules = [{ name = "bake", axes = ["x1"], cost = 10 },\n'
    '           { name = "cool", axes = ["x2"], cost = 1 }]\n',
    CHAIN,
)
MODEL = {"learn": False, "length_scales": [4, 8], "mean": 50, "variance": 3000}
FEW = {"samples": 16, "candidates": 8}
SMALL = {**FEW, "worst": 310}


@pytest.fixture(autouse=True)
def _place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def ran(world, policy, options=None, costs="unknown", battery=7.0, after=None):
    """Run a mission, interrupted after some orders; return its folder."""
    Path("worlds/cell").mkdir(parents=True, exist_ok=True)
    Path("worlds/cell/world.toml").write_text(world)
    asked = mission_text(
        "cell",
        goal="minimise",
        battery=battery,
        agent={"costs": costs},
        initial={"count": 3},
        policy={"kind": policy, **(options or {})},
        model=MODEL,
    )
    Path("m.toml").write_text(asked)
    loaded = fieldbo.load_mission("m.toml")
    folder, record = begin(loaded)

    def stop(step):
        if step.step == after:
            raise KeyboardInterrupt

    with record, suppress(Interrupted):
        run(loaded, record=record, on_step=stop)
    return folder


def table(text, head):
    """Return the rows of the table whose heading begins with `head`."""
    lines = text.splitlines()
    at = next(k for k, line in enumerate(lines) if line.strip().startswith(head))
    rows = []
    for line in lines[at + 1 :]:
        if not line.strip():
            break
        rows.append(line)
    assert len({len(line) for line in [lines[at], *rows]}) == 1, "the table is not aligned"
    return rows


def line(text, word):
    """Return the line with that label."""
    return next(row for row in text.splitlines() if row.startswith(f"  {word} ")).strip()


# -- control sets of unknown cost ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def subsets(tmp_path_factory):
    """The folder of a run that ended."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("subsets"))
        return ran(SETS, "subsets", SMALL).absolute()


@pytest.fixture(scope="module")
def told(subsets):
    """Explanations of the queries of its policy."""
    return list(explained(subsets))


def explained(folder):
    """Yield the explanation of each query of the policy."""
    with fieldbo.Record(folder / "run.sqlite") as record:
        count = sum(row.kind == "query" for row in record.rows())
    for number in range(3, count):
        yield explain(folder, number)


def test_a_free_variable_is_a_dash_in_the_table_and_named_in_the_text(told):
    free = [explanation for explanation in told if np.isnan(explanation.order.site).any()]

    assert free
    for explanation in free:
        axes = ["x1", "x2"]
        left = axes[int(np.flatnonzero(np.isnan(explanation.order.site))[0])]
        kept = axes[1 - axes.index(left)]
        assert f"{left} free" in explanation.text.splitlines()[1]
        assert explanation.best[0]["site"][axes.index(left)] is None
        assert line(explanation.text, "sets").endswith(f"  {kept}; {left} left to chance")
        assert f"on average over {left} (90% interval" in line(explanation.text, "expected")
        first = next(text_line for text_line in explanation.text.splitlines() if text_line.startswith("1 "))
        assert first.split()[1 + axes.index(left)] == "-"


def test_all_control_sets_are_listed_with_bounds_costs_and_plays(told):
    for explanation in told:
        rows = table(explanation.text, "control set")
        assert len(rows) == 3
        for row, known in zip(rows, explanation.why["sets"], strict=True):
            name, bound, cost, least, plays, plausible = row.split()
            assert name == {0: "x1", 1: "x2", 2: "all"}[known["set"]]
            assert bound == ("unknown" if known["ucb"] is None else f"{310 - known['ucb']:.4g}")
            assert cost == ("-" if known["cost"] is None else f"{known['cost']:.4g}")
            assert least == f"{known['cost_low']:.4g}"
            assert plays == str(known["plays"])
            assert plausible == {True: "yes", False: "no", None: "exploring"}[known["plausible"]]
        assert "phase expl" in line(explanation.text, "also")
        assert "entries" not in explanation.text


def test_bounds_are_given_as_values_with_an_explanation(told):
    phases = set()
    for explanation in told:
        why = explanation.why
        phases.add(why["phase"])
        assert "relative to the worst value, 310" in line(explanation.text, "value")
        assert f"at most {310 - why['lcb']:.4g} on average" in line(explanation.text, "best so far")
        assert "best case: lower confidence bound" in explanation.text
        assert POLICIES.get("subsets").bounds_are in explanation.text
        assert "lcb" not in explanation.text
        exploring = why["phase"] == "exploration"
        assert ("exploring: no set is ruled out" in explanation.text) == exploring
        good = 310 - (1 - why["alpha"]) * why["lcb"]
        assert (f"plausible: {good:.4g} or less" in explanation.text) == (not exploring)
    assert phases == {"exploration", "exploitation"}


def test_the_worst_value_of_the_readings_is_shown():
    folder = ran(SETS, "subsets", FEW, after=5)
    explanation = explain(folder, 4)

    worst = max(read.values[0] for read in observations(folder)[:4])
    assert explanation.why["worst"] == worst
    assert f"relative to the worst value, {worst:.4g}" in line(explanation.text, "value")


def observations(folder):
    with fieldbo.Record(folder / "run.sqlite") as record:
        return [row.message for row in record.rows() if row.kind == "observation"]


@pytest.mark.slow
def test_bounds_are_unknown_during_exploration():
    seen = set()
    for explanation in explained(ran(SETS, "subset-front", SMALL)):
        exploring = explanation.why["phase"] == "exploration"
        seen.add(exploring)
        for row in table(explanation.text, "control set"):
            assert ("unknown" in row) == exploring
            assert row.endswith("exploring") == exploring
        assert POLICIES.get("subset-front").bounds_are in explanation.text
        assert ("  best so far  " in explanation.text) == (not exploring)
    assert seen == {True, False}


def test_an_unknown_cost_is_estimated_from_earlier_queries(told):
    seen = set()
    for explanation in told:
        cost, said = explanation.order.expected_cost, line(explanation.text, "cost")
        assert explanation.best[0]["cost"] == cost
        if cost is None:
            assert "unknown; this control set has not been used before" in said
            assert explanation.best[0]["left"] is None
        else:
            assert f"about {cost:.4g} EUR; this control set was used" in said
            assert explanation.best[0]["left"] >= 0
        seen.add(cost is None)
    assert seen == {True, False}


def test_a_policy_without_control_sets_is_explained_at_unknown_costs(said):
    folder = ran(SETS, "ei", after=5)

    out = said("ask", folder)

    explanation = explain(folder)
    assert line(out, "sets").endswith("  all variables")
    assert explanation.best[0]["cost"] == explanation.order.expected_cost
    assert all(candidate["left"] is None for candidate in explanation.best[1:])
    assert "used 5 times, for 0.9" in line(out, "cost")


def test_the_first_reading_of_a_factory_cell_is_explained(said):
    out = said("ask", ran(SETS, "ei", after=5), "--order", 0)

    assert "before the policy takes over" in out
    assert "this control set has not been used before" in line(out, "cost")


def test_the_declared_cost_of_a_control_set_is_shown(said):
    folder = ran(SETS, "ei", costs="declared", after=4)

    out = said("ask", folder)

    explanation = explain(folder)
    assert line(out, "cost").endswith("1 EUR for this control set")
    assert (explanation.best[0]["cost"], explanation.best[0]["left"]) == (
        1.0,
        pytest.approx(7 - 5 - excess_cost(folder)),
    )


def excess_cost(folder):
    """Return how much more than declared the four readings cost."""
    with fieldbo.Record(folder / "run.sqlite") as record:
        return sum(row.message.cost - 1 for row in record.rows() if row.kind == "observation")


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["ucb-cvs", "subset-front"])
def test_lists_of_control_sets_show_their_variables(policy):
    costs = "declared" if policy == "ucb-cvs" else "unknown"
    folder = ran(SETS, policy, FEW, costs)

    texts = [explanation.text for explanation in explained(folder)]

    assert not any("entries" in text for text in texts)
    key = "plausible" if policy == "ucb-cvs" else "front"
    named = [re.search(rf"{key} +(x1|x2|all)(; (x1|x2|all))*(\n|, |$)", text) for text in texts]
    assert any(named)


def test_the_expected_value_averages_over_free_variables(told):
    explanation = next(t for t in told if np.isnan(t.order.site).any())
    low, high = map(
        float, re.search(r"interval (\S+) to (\S+)\)", line(explanation.text, "expected")).groups()
    )
    average = float(line(explanation.text, "expected").split()[1])

    assert low < average < high


# -- modules ---------------------------------------------------------------------------------------------


def test_a_chain_lists_the_modules_that_rerun_with_their_costs():
    folder = ran(CHAIN, "lambo", {"candidates": 64}, "declared", battery=60.0)
    seen = set()
    for explanation in explained(folder):
        said = line(explanation.text, "cost")
        whole = explanation.order.expected_cost > 5
        seen.add(whole)
        assert said.endswith("11 EUR: bake 10, cool 1" if whole else "1 EUR: cool 1; unchanged: bake")
        assert "cells " in explanation.text
        assert "probability" in line(explanation.text, "also")
    assert seen == {True, False}


def test_the_next_query_of_an_interrupted_chain_equals_that_of_the_uninterrupted_run():
    folder = ran(CHAIN, "lambo", {"candidates": 64}, "declared", battery=60.0, after=6)
    stopped = explain(folder).order

    whole = fieldbo.run(fieldbo.load_mission("m.toml"))

    assert stopped.site.tolist() == whole.queries[6].site.tolist()

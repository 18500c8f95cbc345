"""Why there: a run's record tells what its agent would ask for next, and is only read for it."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fieldbo
from fieldbo.errors import RecordError
from fieldbo.messages import EndReason, GoHome, Lost, Observation, Query, Rejected, Stop
from fieldbo.policies.choice import best_affordable, leading
from fieldbo.policies.contract import State
from fieldbo.runs.explanation.explain import explain
from fieldbo.runs.folder import begin
from fieldbo.runs.runner import Interrupted, run
from fieldbo.testing import small_mission
from fieldbo.vehicles.simulated import Simulated

WORLD = """format = 1
version = "1"
title = "a field of 30 sites"
cost_unit = "s"
[domain]
kind = "grid"
axes = [{ name = "east", unit = "m", low = 0, high = 10, count = 6 },
        { name = "north", unit = "m", low = 0, high = 4, count = 5 }]
[field]
kind = "gp-draw"
length_scales = [3, 2]
[value]
name = "signal"
unit = "dB"
[cost]
kind = "euclidean"
sampling = 1
[sensor]
noise_sd = 0.1
"""
MISSION = """format = 1
world = "tiny"
seed = 3
[question]
kind = "optimum"
[agent]
battery = 40
start = [0, 0]
home = [0, 0]
[initial]
count = 2
[policy]
kind = "gp-ucb"
delta = 0.2
[model]
learn = { every = 5 }
length_scales = [3, 2]
mean = 0
"""
AFTER = 6  # orders, of an interrupted run


@pytest.fixture(autouse=True)
def _place(tmp_path, monkeypatch):
    """Work in a folder that holds a world and a mission."""
    monkeypatch.chdir(tmp_path)
    Path("worlds", "tiny").mkdir(parents=True)
    Path("worlds", "tiny", "world.toml").write_text(WORLD)
    Path("m.toml").write_text(MISSION)


def mission(**changed):
    return fieldbo.load_mission("m.toml", changed)


def finished(**changed):
    """Return the folder of a run to the end, and its result."""
    told = mission(**changed)
    folder, record = begin(told)
    with record:
        return folder, run(told, record=record)


def interrupted(after=AFTER, on_step=None, **changed):
    """Return the folder of a run that was stopped after some orders, all of them settled."""
    told = mission(**changed)
    folder, record = begin(told)

    def stop(step):
        if on_step is not None:
            on_step(folder)
        if step.step == after:
            raise KeyboardInterrupt

    with record, suppress(Interrupted):
        run(told, record=record, on_step=stop)
    return folder


class Fickle(Simulated):
    """Simulated, but of order number n comes `answers[n](event)`, or Ctrl-C where that is None."""

    def __init__(self, told, answers):
        super().__init__(told)
        self.answers, self.sent = answers, -1

    def send(self, order):
        self.sent += 1
        super().send(order)

    def events(self, timeout_s):
        answer = self.answers.get(self.sent, lambda event: event)
        if answer is None:
            raise KeyboardInterrupt
        return [answer(event) for event in super().events(timeout_s)]


def with_answers(answers, **changed):
    told = mission(**changed)
    folder, record = begin(told)
    with record, suppress(Interrupted):
        run(told, [Fickle(told, answers)], record)
    return folder


def contents(folder):
    return {file.name: file.read_bytes() for file in Path(folder).iterdir() if file.is_file()}


# -- what is said ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [1, 2, 5, 8])
def test_an_interrupted_run_would_ask_for_what_the_unbroken_one_asked_for(after):
    _, unbroken = finished()

    told = explain(interrupted(after))

    assert told.order.site.tolist() == unbroken.queries[after].site.tolist()
    assert told.order.expected_cost == unbroken.queries[after].expected_cost
    assert told.best[0]["site"] == told.order.site.tolist()
    assert told.best[0]["cost"] == pytest.approx(told.order.expected_cost)


def test_three_best_are_told_with_value_cost_and_what_would_be_left():
    told = explain(interrupted())

    values = [one["value"] for one in told.best]
    assert len(values) == len({tuple(one["site"]) for one in told.best}) == 3
    assert values == sorted(values, reverse=True)
    for one in told.best:
        home = float(np.hypot(*one["site"]))
        left = 40 - cost_of(told.run) - one["cost"] - home
        assert one["left"] == pytest.approx(left)


def cost_of(name):
    with fieldbo.Record(Path("runs", name, "run.sqlite")) as record:
        return sum(row.message.cost for row in record.rows() if row.kind == "observation")


def test_the_command_says_where_next_and_why(said):
    folder = interrupted()

    out = said("ask", folder)

    lines = out.splitlines()
    told = explain(folder)
    assert out == f"{told.text}\n" == f"{told}\n"
    assert lines[0] == f"{folder.name}: not ended, {AFTER} queries so far"
    assert lines[1].startswith("next, with ")
    assert "of 40 s left: east " in lines[1]
    assert lines[3].split() == [
        "east",
        "(m)",
        "north",
        "(m)",
        "value",
        "cost",
        "(s)",
        "left",
        "for",
        "more",
        "(s)",
    ]
    assert [line.split()[0] for line in lines[4:7]] == ["1", "2", "3"]
    assert len({len(line) for line in lines[3:7]}) == 1, "the table is not aligned"
    words = [line.split()[0] for line in lines[8:]]
    assert words[:4] == ["policy", "value", "expected", "cost"]
    assert "gp-ucb (delta 0.2)" in out
    assert "above the next best" in out
    assert "dB there, by the model" in out
    assert "s to get there, 1 to sample; home from there" in out


def test_a_finished_run_says_how_it_ended_and_why_its_last_query_was_where_it_was(said):
    folder, result = finished()

    told = explain(folder)

    last = result.queries[-1]
    assert told.order.id == last.id
    assert told.best[0]["site"] == last.site.tolist()
    out = said("ask", folder)
    assert out.startswith(f"{folder.name}: ended, battery spent; {len(result.queries)} queries\n")
    assert f"query {len(result.queries) - 1}, with " in out


def test_each_order_is_explained_by_what_was_recorded_with_it():
    folder, result = finished()
    with fieldbo.Record(folder / "run.sqlite") as record:
        whys = [row.body["why"] for row in record.rows() if row.kind in ("query", "go-home")]

    for number, query in enumerate(result.queries):
        told = explain(folder, number)
        assert (told.order.id, told.why) == (query.id, whys[number])
        assert told.best[0]["cost"] == query.expected_cost
        if whys[number] is not None:
            mine = [{**one, "left": pytest.approx(one["left"])} for one in whys[number]["best"]]
            assert list(told.best) == mine


def test_the_way_home_is_explained_by_why_it_was_time(said):
    folder, result = finished()

    out = said("ask", folder, "--order", len(result.queries))

    assert isinstance(explain(folder, len(result.queries)).order, GoHome)
    assert out.splitlines()[1].startswith(f"go home {len(result.queries)}, with ")
    assert out.endswith("home, as the battery pays for no further query\n")


def test_a_reading_to_begin_with_says_so(said):
    folder, _ = finished()

    out = said("ask", folder, "--order", 0)

    assert explain(folder, 0).why is None
    assert "before the policy takes over" in out
    assert "gp-ucb" not in out


@pytest.mark.parametrize(("goal", "sign"), [("maximise", 1), ("minimise", -1)])
def test_the_best_so_far_is_told_in_the_unit_of_the_values(said, goal, sign):
    model = {"learn": False, "length_scales": [3.0, 2.0], "mean": 7.0, "variance": 9.0}
    folder, _ = finished(policy={"kind": "ei"}, question={"goal": goal}, model=model)

    out = said("ask", folder)

    told = float(re.search(r"so far +at best (\S+) dB, by the model", out)[1])
    assert told == pytest.approx(7.0 + sign * explain(folder).why["incumbent"], rel=1e-3)
    assert "incumbent" not in out


def test_the_record_itself_can_be_named(said):
    folder, _ = finished()

    assert said("ask", folder / "run.sqlite") == said("ask", folder)


def test_an_order_that_is_out_is_counted_as_read_and_said(said):
    folder = with_answers({5: None})

    told = explain(folder)

    assert told.order.id.endswith("/6")
    assert "still out, and counted as read: 5 to east" in said("ask", folder)


def test_a_run_that_was_stopped_on_its_way_home_has_nothing_more_to_ask():
    _, whole = finished()

    told = explain(with_answers({len(whole.queries): None}))

    assert told.order == Stop(EndReason.BATTERY_SPENT)
    assert told.best == ()
    assert told.text.endswith("nothing, as the battery pays for no further query")


def test_a_run_that_would_now_go_home_says_so():
    _, whole = finished()

    told = explain(interrupted(len(whole.queries)))

    assert isinstance(told.order, GoHome)
    assert "next, with" in told.text
    assert told.text.endswith("home, as the battery pays for no further query")


def test_a_run_that_is_out_of_time_says_so_and_not_that_it_is_out_of_battery():
    limit = {"battery": 400, "time_limit_s": 25}
    folder, result = finished(agent=limit)

    home = explain(folder, len(result.queries))

    assert home.text.endswith("home, as there is no time for another query")


def test_a_run_of_a_moment_explains_its_first_query():
    folder, record = begin(mission())
    record.close()

    told = explain(folder)

    assert told.order.site.tolist() == [0, 0]
    assert "not ended, 0 queries so far" in told.text


def test_rejected_and_lost_orders_are_gone_through_as_they_were():
    answers = {3: lambda e: Rejected(e.order, "wind"), 4: lambda e: Lost(e.order, "no link"), 7: None}

    told = explain(with_answers(answers))

    assert told.order.id.endswith("/8")


def test_a_batch_is_told_whole(said):
    folder = interrupted(5, agent={"battery": 80, "batch": 3})

    assert "with it east" in said("ask", folder)


def test_a_sensors_settings_are_told(said):
    text = WORLD + "levels = [{ variance = 0.04, cost = 0 }, { variance = 0.01, cost = 1 }]\n"
    Path("worlds", "tiny", "world.toml").write_text(text.replace("noise_sd = 0.1\n", ""))

    folder = interrupted(4, policy={"kind": "truvar"}, question={"kind": "level-set", "threshold": 0.5})

    assert "level" in said("ask", folder).splitlines()[3].split()
    assert all(one["level"] in (0, 1) for one in explain(folder).best)


def test_a_policy_that_scores_nothing_is_explained_all_the_same(said):
    folder = interrupted(policy={"kind": "lawnmower", "lines": 3, "samples": 3})

    told = explain(folder)

    assert told.best[0]["value"] is None
    assert len(told.best) == 1
    assert "next" in said("ask", folder)


# -- the record is only read -----------------------------------------------------------------------------


@pytest.mark.parametrize("made", [lambda: finished()[0], interrupted])
def test_no_byte_of_the_run_folder_is_changed(said, made):
    folder = made()
    before = contents(folder)

    said("ask", folder)
    said("ask", folder, "--order", 2)

    assert contents(folder) == before


def test_a_run_can_be_asked_while_another_writes_to_its_record():
    told, same = [], []

    def ask(folder):
        before = contents(folder)
        told.append(explain(folder).order)
        after = contents(folder)
        same.append(all(before[name] == after[name] for name in ("run.sqlite", "run.sqlite-wal")))

    interrupted(on_step=ask)
    _, unbroken = finished()

    assert len(told) == AFTER
    assert all(same)
    expected = [query.site.tolist() for query in unbroken.queries[1 : AFTER + 1]]
    assert [order.site.tolist() for order in told] == expected


def test_what_a_crash_left_in_the_log_beside_the_record_counts():
    copies = []

    def crash(folder):
        copies.append(Path(shutil.copytree(folder, f"copy-{len(copies)}")))

    interrupted(on_step=crash)
    last = copies[-1]
    before = {name: body for name, body in contents(last).items() if not name.endswith("-shm")}

    assert explain(last).order.id.endswith(f"/{AFTER}")
    after = contents(last)
    assert {name: after[name] for name in before} == before


# -- what can't be explained -----------------------------------------------------------------------------


def refused(command, *args):
    code, out, err = command("ask", *args)
    assert (code, out) == (2, "")
    return err


def test_a_folder_that_is_not_there_or_holds_no_run_is_refused(command):
    Path("empty").mkdir()

    assert "there is no run runs/none-7" in refused(command, "runs/none-7")
    assert "empty is no run folder: there is no run.sqlite in it" in refused(command, "empty")
    assert "m.toml is no run folder" in refused(command, "m.toml")


def test_an_order_that_was_never_given_is_refused(command):
    folder = interrupted()

    err = refused(command, folder, "--order", 99)

    assert f"order 99 of {folder.name}" in err
    assert f"0 to {AFTER - 1}" in err
    assert "order -1" in refused(command, folder, "--order=-1")


@pytest.mark.parametrize("cut", [0, 20, 3000, 20_000])
def test_a_damaged_record_is_named_and_left_as_it_is(command, cut):
    folder, _ = finished()
    file = folder / "run.sqlite"
    body = file.read_bytes()
    file.write_bytes(body[:cut])
    before = contents(folder)

    err = refused(command, folder)

    assert str(file) in err
    assert "damaged" in err or "is no record" in err
    assert contents(folder) == before
    with pytest.raises(RecordError):
        explain(folder)


def test_a_database_that_is_no_record_is_refused(command):
    folder, _ = finished()
    (folder / "run.sqlite").unlink()
    with closing(sqlite3.connect(folder / "run.sqlite")) as other:
        other.execute("CREATE TABLE run (name)")

    assert f"{folder / 'run.sqlite'} is no record" in refused(command, folder)


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("mission.toml", "battery = 40", "battery = 90"),
        ("tiny/world.toml", "sampling = 1", "sampling = 2"),
    ],
)
def test_a_mission_or_world_that_was_changed_since_is_refused(command, file, old, new):
    folder = interrupted()
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new))

    assert f"changed since the run began: {file}" in refused(command, folder)


def test_a_folder_without_its_mission_is_refused(command):
    folder = interrupted()
    (folder / "mission.toml").unlink()

    assert "there is no" in refused(command, folder)


# -- the best that could be had --------------------------------------------------------------------------


def state_of(**settings) -> State:
    agent = fieldbo.Agent(small_mission(**settings))
    return agent._asked(0)


def test_the_leading_pairs_are_the_highest_scores_that_can_be_had():
    state = state_of()
    scores = np.random.default_rng(0).normal(size=state.domain.size)
    scores[3] = -np.inf
    able = scores < 1.0
    able[7] = False
    order = [n for n in np.argsort(-scores) if able[n]][:3]

    told = leading(state, scores, able)

    assert [one["site"] for one in told] == state.domain.sites[order].tolist()
    assert [one["value"] for one in told] == scores[order].tolist()
    assert [one["cost"] for one in told] == state.costs()[order].tolist()
    free = state.spendable - state.costs() - state.return_cost(state.domain.sites)
    assert [one["left"] for one in told] == pytest.approx(free[order].tolist())


def test_equal_scores_lead_by_the_lowest_site():
    state = state_of()

    told = leading(state, np.zeros(state.domain.size), state.choosable())

    assert [one["site"] for one in told] == state.domain.sites[:3].tolist()


def test_fewer_lead_where_fewer_can_be_had():
    state = state_of()
    able = np.zeros(state.domain.size, dtype=bool)
    scores = np.full(state.domain.size, -np.inf)
    scores[:2] = 1.0

    assert leading(state, scores, able) == []
    able[1:5] = True
    assert [one["site"] for one in leading(state, scores, able)] == [state.domain.sites[1].tolist()]


def test_an_infinite_score_can_be_written_to_a_record():
    state = state_of()
    scores = np.zeros(state.domain.size)
    scores[4] = np.inf

    decision = best_affordable(state, scores, None)

    assert decision.why["best"][0]["value"] == decision.why["score"] == "inf"
    assert json.loads(json.dumps(dict(decision.why), allow_nan=False)) == decision.why


def test_candidates_that_are_no_sites_of_the_domain_lead_as_well():
    state = state_of()
    candidates = np.array([[0.5, 0.5], [1.5, 0.5], [2.5, 0.5], [3.5, 0.5]])

    told = leading(state, np.arange(4.0), np.ones(4, dtype=bool), sites=candidates)

    assert [one["site"] for one in told] == candidates[:0:-1].tolist()
    expected = state.cost.to(state.position, candidates[:0:-1])
    assert [one["cost"] for one in told] == expected.tolist()


def test_a_battery_that_pays_for_no_site_of_infinite_score_is_spent():
    state = state_of(battery=2.5)
    far = np.full(state.domain.size, -np.inf)
    far[-1] = np.inf

    assert best_affordable(state, far, None).choice == Stop(EndReason.BATTERY_SPENT)


def test_the_choice_leads_the_best():
    state = state_of()
    scores = np.random.default_rng(1).normal(size=state.domain.size)

    decision = best_affordable(state, scores, None)

    assert isinstance(decision.choice, Query)
    assert decision.why["best"][0]["site"] == decision.choice.site.tolist()
    assert decision.why["best"][0]["value"] == decision.why["score"]
    assert decision.why["best"] == leading(state, scores, state.choosable())


def reading(order, value):
    return Observation(order.id, [order.site], [value], [1e-4], [0.0], order.site, order.expected_cost)


def test_truvar_tells_three_sites_with_the_scores_that_they_have():
    agent = fieldbo.Agent(fieldbo.load_mission("gp-lake-truvar"))
    for value in (0.3, -0.2, 0.1):
        agent.tell(reading(agent.ask(), value))
    policy, state = agent.mission.policy, agent._asked(0)
    told = policy.suggest(state, agent.memory).why["best"]

    reduction = policy._reduction(state, *policy._recall(agent.memory, state.domain.size))
    every = np.arange(state.domain.size)
    exact = np.where(state.choosable(), reduction.exact(state.surface, every, 0 * every), -np.inf)
    order = np.argsort(-exact, kind="stable")[:3]

    assert [one["site"] for one in told] == state.domain.sites[order].tolist()
    assert [one["value"] for one in told] == pytest.approx(exact[order].tolist(), rel=1e-12)


def test_truvar_tells_of_the_place_within_its_cell_that_it_moved_to():
    agent = fieldbo.Agent(fieldbo.load_mission("se-optimum-truvar"))
    moved = 0
    for value in (0.3, -0.2, 0.1, 0.4, 0.2, -0.1):
        order = agent.ask()
        if agent.why is not None:
            moved += not (agent.domain.sites == order.site).all(axis=1).any()
            assert agent.why["best"][0]["site"] == order.site.tolist()
            assert agent.why["best"][0]["value"] == agent.why["score"]
        agent.tell(reading(order, value))

    assert moved


def test_what_a_time_limit_leaves_is_told_beside_what_the_battery_does():
    mission = small_mission()
    crew = replace(mission.vehicles[0], time_limit_s=40.0)
    state = fieldbo.Agent(replace(mission, vehicles=(crew,)))._asked(0)
    told = leading(state, np.arange(float(state.domain.size)), state.choosable())
    (time,) = (limit for limit in state.limits if limit.name == "time")
    for one in told:
        site = np.array([one["site"]])
        left = time.left - time.going(state.position, site)[0] - time.back(site)[0]
        assert one["left_s"] == pytest.approx(left)
    assert "left_s" not in leading(state_of(), np.ones(state.domain.size), state.choosable())[0]

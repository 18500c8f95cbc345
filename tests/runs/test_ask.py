"""Explanations: the next query of a run and its reasons, from a record that stays unchanged."""

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
from small_files import mission_text, world_text

import fieldbo
from fieldbo.belief.averaged import AveragedSurface
from fieldbo.errors import RecordError
from fieldbo.messages import EndReason, GoHome, Lost, Observation, Query, Rejected, Stop
from fieldbo.policies.choice import best_affordable, leading
from fieldbo.policies.contract import State
from fieldbo.record.record import Record
from fieldbo.results.curve import Scorer
from fieldbo.runs.explain import explain
from fieldbo.runs.folder import begin
from fieldbo.runs.loop import Interrupted
from fieldbo.runs.reasons import reasons_for
from fieldbo.runs.replay import mission_of
from fieldbo.runs.runner import run
from fieldbo.runs.state import RunState
from fieldbo.testing import small_mission
from fieldbo.vehicles.base import Simulated

WORLD = world_text(
    ("east", 0, 10, 6),
    ("north", 0, 4, 5),
    title="a field of 30 sites",
    field={"kind": "gp-draw", "length_scales": [3, 2]},
    value={"name": "signal", "unit": "dB"},
)
MISSION = mission_text(
    seed=3,
    battery=40,
    agent={"start": [0, 0], "home": [0, 0]},
    policy={"kind": "gp-ucb", "delta": 0.2},
    initial={"count": 2},
    model={"learn": {"every": 5}, "average": False, "length_scales": [3, 2], "mean": 0},
)
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
    """Run a mission to the end; return its folder and result."""
    loaded = mission(**changed)
    folder, record = begin(loaded)
    with record:
        return folder, run(loaded, record=record)


def interrupted(after=AFTER, on_step=None, **changed):
    """Run a mission and interrupt it after some settled orders; return its folder."""
    loaded = mission(**changed)
    folder, record = begin(loaded)

    def stop(step):
        if on_step is not None:
            on_step(folder)
        if step.step == after:
            raise KeyboardInterrupt

    with record, suppress(Interrupted):
        run(loaded, record=record, on_step=stop)
    return folder


class Fickle(Simulated):
    """A simulated vehicle that answers order n by ``answers[n](event)``, or by Ctrl-C if that is None."""

    def __init__(self, loaded, answers):
        super().__init__(loaded)
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
    loaded = mission(**changed)
    folder, record = begin(loaded)
    with record, suppress(Interrupted):
        run(loaded, [Fickle(loaded, answers)], record)
    return folder


def contents(folder):
    return {file.name: file.read_bytes() for file in Path(folder).iterdir() if file.is_file()}


# -- content ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [1, 2, 5, 8])
def test_the_next_query_of_an_interrupted_run_equals_that_of_the_uninterrupted_one(after):
    _, unbroken = finished()

    explanation = explain(interrupted(after))

    assert explanation.order.site.tolist() == unbroken.queries[after].site.tolist()
    assert explanation.order.expected_cost == unbroken.queries[after].expected_cost
    assert explanation.best[0]["site"] == explanation.order.site.tolist()
    assert explanation.best[0]["cost"] == pytest.approx(explanation.order.expected_cost)


def test_the_three_best_candidates_have_value_cost_and_rest():
    explanation = explain(interrupted())

    values = [candidate["value"] for candidate in explanation.best]
    assert len(values) == len({tuple(candidate["site"]) for candidate in explanation.best}) == 3
    assert values == sorted(values, reverse=True)
    for candidate in explanation.best:
        home = float(np.hypot(*candidate["site"]))
        left = 40 - cost_of(explanation.run) - candidate["cost"] - home
        assert candidate["left"] == pytest.approx(left)


def cost_of(name):
    with fieldbo.Record(Path("runs", name, "run.sqlite")) as record:
        return sum(row.message.cost for row in record.rows() if row.kind == "observation")


def test_the_command_explains_the_next_query(said):
    folder = interrupted()

    out = said("ask", folder)

    lines = out.splitlines()
    explanation = explain(folder)
    assert out == f"{explanation.text}\n" == f"{explanation}\n"
    assert lines[0] == f"{folder.name}: {AFTER} queries, not ended"
    assert lines[1].startswith("next, with ")
    assert "of 40 s left: east " in lines[1]
    assert lines[3].split() == ["east", "(m)", "north", "(m)", "value", "cost", "(s)", "left", "after", "(s)"]
    assert [line.split()[0] for line in lines[4:7]] == ["1", "2", "3"]
    assert len({len(line) for line in lines[3:7]}) == 1, "the table is not aligned"
    words = [line.split()[0] for line in lines[8:]]
    assert words[:4] == ["policy", "value", "expected", "cost"]
    assert "gp-ucb (delta 0.2)" in out
    assert "above the next best" in out
    assert re.search(r"expected +\S+ dB \(90% interval \S+ to \S+\)", out)
    assert re.search(r"cost +\S+ s: travel \S+, sampling 1; trip home from there \S+", out)


@pytest.mark.parametrize("policy", ["truvar", "gchk"])
def test_the_number_of_unclassified_sites_is_that_of_the_policy(said, policy):
    folder = interrupted(question={"kind": "level-set", "threshold": 0.5}, policy={"kind": policy})

    count = explain(folder).why["unclassified"]

    line = next(line for line in said("ask", folder).splitlines() if "unclassified" in line)
    assert " ".join(line.split()) == f"unclassified {count} of 30 sites, by the policy's bounds"


def test_an_ended_run_is_explained_by_its_last_query(said):
    folder, result = finished()

    explanation = explain(folder)

    last = result.queries[-1]
    assert explanation.order.id == last.id
    assert explanation.best[0]["site"] == last.site.tolist()
    out = said("ask", folder)
    assert out.startswith(f"{folder.name}: {len(result.queries)} queries, ended: battery spent\n")
    assert f"query {len(result.queries) - 1}, with " in out


def test_each_order_is_explained_by_its_recorded_reasons():
    folder, result = finished()
    with fieldbo.Record(folder / "run.sqlite") as record:
        whys = [row.body["why"] for row in record.rows() if row.kind in ("query", "go-home")]

    for number, query in enumerate(result.queries):
        explanation = explain(folder, number)
        assert (explanation.order.id, explanation.why) == (query.id, whys[number])
        assert explanation.best[0]["cost"] == query.expected_cost
        if whys[number] is not None:
            mine = [
                {**candidate, "left": pytest.approx(candidate["left"])} for candidate in whys[number]["best"]
            ]
            assert list(explanation.best) == mine


def test_going_home_is_explained_by_its_reason(said):
    folder, result = finished()

    out = said("ask", folder, "--order", len(result.queries))

    assert isinstance(explain(folder, len(result.queries)).order, GoHome)
    assert out.splitlines()[1].startswith(f"go home {len(result.queries)}, with ")
    assert out.endswith("home, because there is not enough battery for another query\n")


def test_an_initial_reading_is_explained_as_such(said):
    folder, _ = finished()

    out = said("ask", folder, "--order", 0)

    assert explain(folder, 0).why is None
    assert "before the policy takes over" in out
    assert "gp-ucb" not in out


@pytest.mark.parametrize(("goal", "sign"), [("maximise", 1), ("minimise", -1)])
def test_the_best_so_far_is_in_the_unit_of_the_values(said, goal, sign):
    model = {"learn": False, "length_scales": [3.0, 2.0], "mean": 7.0, "variance": 9.0}
    folder, _ = finished(policy={"kind": "ei"}, question={"goal": goal}, model=model)

    out = said("ask", folder)

    explanation = float(re.search(r"best so far +(\S+) dB, by the fit", out)[1])
    assert explanation == pytest.approx(7.0 + sign * explain(folder).why["incumbent"], rel=1e-3)
    assert "incumbent" not in out


def test_the_record_file_can_be_given_instead_of_the_folder(said):
    folder, _ = finished()

    assert said("ask", folder / "run.sqlite") == said("ask", folder)


def test_an_outstanding_order_is_listed_and_taken_as_read(said):
    folder = with_answers({5: None})

    explanation = explain(folder)

    assert explanation.order.id.endswith("/6")
    assert "outstanding, and taken as read: 5 to east" in said("ask", folder)


def test_a_run_interrupted_on_the_trip_home_has_no_next_query():
    _, whole = finished()

    explanation = explain(with_answers({len(whole.queries): None}))

    assert explanation.order == Stop(EndReason.BATTERY_SPENT)
    assert explanation.best == ()
    assert explanation.text.endswith("nothing, because there is not enough battery for another query")


def test_a_next_order_to_go_home_is_explained():
    _, whole = finished()

    explanation = explain(interrupted(len(whole.queries)))

    assert isinstance(explanation.order, GoHome)
    assert "next, with" in explanation.text
    assert explanation.text.endswith("home, because there is not enough battery for another query")


def test_a_run_out_of_time_is_not_explained_as_out_of_battery():
    limit = {"battery": 400, "time_limit_s": 25}
    folder, result = finished(agent=limit)

    home = explain(folder, len(result.queries))

    assert home.text.endswith("home, because there is not enough time for another query")


def test_a_run_without_orders_explains_its_first_query():
    folder, record = begin(mission())
    record.close()

    explanation = explain(folder)

    assert explanation.order.site.tolist() == [0, 0]
    assert "0 queries, not ended" in explanation.text


def test_rejected_and_lost_orders_are_replayed():
    answers = {3: lambda e: Rejected(e.order, "wind"), 4: lambda e: Lost(e.order, "no link"), 7: None}

    explanation = explain(with_answers(answers))

    assert explanation.order.id.endswith("/8")


def test_all_queries_of_a_batch_are_listed(said):
    folder = interrupted(5, agent={"battery": 80, "batch": 3})

    assert re.search(r"batch +east", said("ask", folder))


def test_the_sensor_level_is_listed(said):
    text = WORLD + "levels = [{ variance = 0.04, cost = 0 }, { variance = 0.01, cost = 1 }]\n"
    Path("worlds", "tiny", "world.toml").write_text(text.replace("noise_sd = 0.1\n", ""))

    folder = interrupted(4, policy={"kind": "truvar"}, question={"kind": "level-set", "threshold": 0.5})

    assert "level" in said("ask", folder).splitlines()[3].split()
    assert all(candidate["level"] in (0, 1) for candidate in explain(folder).best)


def test_a_policy_without_scores_can_be_explained(said):
    folder = interrupted(policy={"kind": "lawnmower", "lines": 3, "samples": 3})

    explanation = explain(folder)

    assert explanation.best[0]["value"] is None
    assert len(explanation.best) == 1
    assert "next" in said("ask", folder)


def test_the_expected_value_is_that_of_the_averaged_belief(said):
    folder = interrupted(7, model={"learn": True, "average": True})

    explanation = explain(folder)

    with Record(folder / "run.sqlite") as record:
        state = RunState(mission_of(record), record.name)
        state.replay(record.rows())
    surface, scale = state.agent.stated
    assert isinstance(surface, AveragedSurface)
    there = surface.over(explanation.order.site[None])
    means, sds = (np.array([getattr(s, name)[0] for s in there.surfaces]) for name in ("mean", "sd"))
    rng = np.random.default_rng(0)
    which = rng.choice(len(means), 200_000, p=there.weights)
    drawn = scale.to_user(means[which] + sds[which] * rng.standard_normal(len(which)))
    expected = re.search(r"expected +(\S+) .*interval (\S+) to (\S+)\)", explanation.text).groups()
    middle, low, high = np.quantile(drawn, [0.5, 0.05, 0.95])
    assert [float(x) for x in expected] == pytest.approx([middle, low, high], abs=0.03 * (high - low))


def test_an_explanation_computes_no_score(monkeypatch):
    folder = interrupted(5)

    def step(*_):
        raise AssertionError("a step was scored")

    monkeypatch.setattr(Scorer, "step", step)

    assert explain(folder).order.id.endswith("/5")


# -- the record is only read -----------------------------------------------------------------------------


@pytest.mark.parametrize("made", [lambda: finished()[0], interrupted])
def test_explaining_does_not_change_the_run_folder(said, made):
    folder = made()
    before = contents(folder)

    said("ask", folder)
    said("ask", folder, "--order", 2)

    assert contents(folder) == before


def test_a_run_can_be_explained_while_it_is_in_progress():
    explanation, same = [], []

    def ask(folder):
        before = contents(folder)
        explanation.append(explain(folder).order)
        after = contents(folder)
        same.append(all(before[name] == after[name] for name in ("run.sqlite", "run.sqlite-wal")))

    interrupted(on_step=ask)
    _, unbroken = finished()

    assert len(explanation) == AFTER
    assert all(same)
    expected = [query.site.tolist() for query in unbroken.queries[1 : AFTER + 1]]
    assert [order.site.tolist() for order in explanation] == expected


def test_rows_left_in_the_log_by_a_crash_are_read():
    copies = []

    def crash(folder):
        copies.append(Path(shutil.copytree(folder, f"copy-{len(copies)}")))

    interrupted(on_step=crash)
    last = copies[-1]
    before = {name: body for name, body in contents(last).items() if not name.endswith("-shm")}

    assert explain(last).order.id.endswith(f"/{AFTER}")
    after = contents(last)
    assert {name: after[name] for name in before} == before


# -- errors ----------------------------------------------------------------------------------------------


def refused(command, *args):
    code, out, err = command("ask", *args)
    assert (code, out) == (2, "")
    return err


def test_a_missing_folder_or_one_without_a_run_is_an_error(command):
    Path("empty").mkdir()

    assert "there is no run runs/none-7" in refused(command, "runs/none-7")
    assert "empty is not a run folder: it has no run.sqlite" in refused(command, "empty")
    assert "m.toml is not a run folder" in refused(command, "m.toml")


def test_an_unknown_order_number_is_an_error(command):
    folder = interrupted()

    err = refused(command, folder, "--order", 99)

    assert f"{folder.name} has no order 99" in err
    assert f"0 to {AFTER - 1}" in err
    assert "order -1" in refused(command, folder, "--order=-1")


@pytest.mark.parametrize("cut", [0, 20, 3000, 20_000])
def test_a_damaged_record_is_an_error_and_unchanged(command, cut):
    folder, _ = finished()
    file = folder / "run.sqlite"
    body = file.read_bytes()
    file.write_bytes(body[:cut])
    before = contents(folder)

    err = refused(command, folder)

    assert str(file) in err
    assert "damaged" in err or "is not the record" in err
    assert contents(folder) == before
    with pytest.raises(RecordError):
        explain(folder)


def test_another_database_is_an_error(command):
    folder, _ = finished()
    (folder / "run.sqlite").unlink()
    with closing(sqlite3.connect(folder / "run.sqlite")) as other:
        other.execute("CREATE TABLE run (name)")

    assert f"{folder / 'run.sqlite'} is not the record" in refused(command, folder)


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("mission.toml", "battery = 40", "battery = 90"),
        ("tiny/world.toml", "sampling = 1", "sampling = 2"),
    ],
)
def test_a_changed_mission_or_world_is_an_error(command, file, old, new):
    folder = interrupted()
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new))

    assert f"changed since the run began: {file}" in refused(command, folder)


def test_a_folder_without_its_mission_is_an_error(command):
    folder = interrupted()
    (folder / "mission.toml").unlink()

    assert "there is no" in refused(command, folder)


# -- the best candidates ---------------------------------------------------------------------------------


def state_of(**settings) -> State:
    agent = fieldbo.Agent(small_mission(**settings))
    return agent._view(0)


def test_the_leading_candidates_have_the_highest_affordable_scores():
    state = state_of()
    scores = np.random.default_rng(0).normal(size=state.domain.size)
    scores[3] = -np.inf
    able = scores < 1.0
    able[7] = False
    order = [n for n in np.argsort(-scores) if able[n]][:3]

    best = leading(state, scores, able)

    assert [candidate["site"] for candidate in best] == state.domain.sites[order].tolist()
    assert [candidate["value"] for candidate in best] == scores[order].tolist()
    assert [candidate["cost"] for candidate in best] == state.costs()[order].tolist()
    free = state.spendable - state.costs() - state.return_cost(state.domain.sites)
    assert [candidate["left"] for candidate in best] == pytest.approx(free[order].tolist())


def test_ties_are_broken_by_the_lowest_site_number():
    state = state_of()

    best = leading(state, np.zeros(state.domain.size), state.choosable())

    assert [candidate["site"] for candidate in best] == state.domain.sites[:3].tolist()


def test_fewer_candidates_are_returned_if_fewer_are_affordable():
    state = state_of()
    able = np.zeros(state.domain.size, dtype=bool)
    scores = np.full(state.domain.size, -np.inf)
    scores[:2] = 1.0

    assert leading(state, scores, able) == []
    able[1:5] = True
    assert [candidate["site"] for candidate in leading(state, scores, able)] == [
        state.domain.sites[1].tolist()
    ]


def test_an_infinite_score_can_be_written_to_a_record():
    state = state_of()
    scores = np.zeros(state.domain.size)
    scores[4] = np.inf

    decision = best_affordable(state, scores, None)

    assert decision.why["best"][0]["value"] == decision.why["score"] == "inf"
    assert json.loads(json.dumps(dict(decision.why), allow_nan=False)) == decision.why


def test_leading_candidates_need_not_be_sites_of_the_domain():
    state = state_of()
    candidates = np.array([[0.5, 0.5], [1.5, 0.5], [2.5, 0.5], [3.5, 0.5]])

    best = leading(state, np.arange(4.0), np.ones(4, dtype=bool), sites=candidates)

    assert [candidate["site"] for candidate in best] == candidates[:0:-1].tolist()
    expected = state.cost.to(state.position, candidates[:0:-1])
    assert [candidate["cost"] for candidate in best] == expected.tolist()


def test_a_policy_stops_if_no_site_with_a_finite_score_is_affordable():
    state = state_of(battery=2.5)
    far = np.full(state.domain.size, -np.inf)
    far[-1] = np.inf

    assert best_affordable(state, far, None).choice == Stop(EndReason.BATTERY_SPENT)


def test_the_first_of_the_best_is_the_choice():
    state = state_of()
    scores = np.random.default_rng(1).normal(size=state.domain.size)

    decision = best_affordable(state, scores, None)

    assert isinstance(decision.choice, Query)
    assert decision.why["best"][0]["site"] == decision.choice.site.tolist()
    assert decision.why["best"][0]["value"] == decision.why["score"]
    assert decision.why["best"] == leading(state, scores, state.choosable())


def reading(order, value):
    return Observation(order.id, [order.site], [value], [1e-4], [0.0], order.site, order.expected_cost)


def test_truvar_records_three_sites_with_their_exact_scores():
    agent = fieldbo.Agent(fieldbo.load_mission("gp-lake"))
    for value in (0.3, -0.2, 0.1):
        agent.tell(reading(agent.ask(), value))
    policy, state = agent.mission.policy, agent._view(0)
    best = policy.suggest(state, agent.memory).why["best"]

    reduction = policy._reduction(state, *policy._recall(agent.memory, state.domain.size))
    every = np.arange(state.domain.size)
    exact = np.where(state.choosable(), reduction.exact(state.surface, every, 0 * every), -np.inf)
    order = np.argsort(-exact, kind="stable")[:3]

    assert [candidate["site"] for candidate in best] == state.domain.sites[order].tolist()
    assert [candidate["value"] for candidate in best] == pytest.approx(exact[order].tolist(), rel=1e-12)


def test_truvar_records_the_polished_site():
    agent = fieldbo.Agent(fieldbo.load_mission("se-optimum", {"policy": {"kind": "truvar"}}))
    moved = 0
    for value in (0.3, -0.2, 0.1, 0.4, 0.2, -0.1):
        order = agent.ask()
        if agent.why is not None:
            moved += not (agent.domain.sites == order.site).all(axis=1).any()
            assert agent.why["best"][0]["site"] == order.site.tolist()
            assert agent.why["best"][0]["value"] == agent.why["score"]
        agent.tell(reading(order, value))

    assert moved


def test_the_time_left_is_recorded_next_to_the_battery_left():
    mission = small_mission()
    vehicle = replace(mission.vehicles[0], time_limit_s=40.0)
    state = fieldbo.Agent(replace(mission, vehicles=(vehicle,)))._view(0)
    best = leading(state, np.arange(float(state.domain.size)), state.choosable())
    (time,) = (limit for limit in state.limits if limit.name == "time")
    for candidate in best:
        site = np.array([candidate["site"]])
        left = time.left - time.going(state.position, site)[0] - time.back(site)[0]
        assert candidate["left_s"] == pytest.approx(left)
    assert "left_s" not in leading(state_of(), np.ones(state.domain.size), state.choosable())[0]


def test_an_optimum_is_explained_with_the_best_measured_place_unless_it_is_the_best_by_the_fit():
    told = []
    overrides = {"question": {"kind": "optimum"}, "policy": {"kind": "ei"}}
    mission = fieldbo.load_mission("m.toml", overrides)
    agent, noise = fieldbo.Agent(mission), np.random.default_rng(0)
    while isinstance(order := agent.ask(), Query):
        value = mission.world.truth(order.site[None]) + noise.normal(0.0, 1.5, 1)
        agent.tell(order.observed(value, noise_variance=2.25))
        query = Query(mission.world.domain.sites[0], id=order.id, expected_cost=1.0)
        reasons = reasons_for(agent, query, {"score": 1.0}, [{"value": 1.0, "cost": 1.0}])
        best = int(np.argmax(agent.surface.mean))
        read = [event for event in agent.history if isinstance(event, Observation)]
        means: dict[tuple[float, ...], list[float]] = {}
        for event in read:
            means.setdefault(tuple(event.sites[0]), []).append(event.values[0])
        top = max(means, key=lambda site: np.mean(means[site]))
        same = np.array_equal(top, mission.world.domain.sites[best])
        assert ("best measured" in reasons) != same
        told.append(reasons.get("best measured", ""))
    assert any(" dB at east " in text for text in told)

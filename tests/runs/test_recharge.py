"""Several batteries: the vehicle comes home for each, and none is overdrawn."""

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest
from batteries import HOME, kinds_of, mission_with, spent_by_battery
from mcap.reader import make_reader
from typer.testing import CliRunner

import fieldbo
from fieldbo.agent.agent import Agent
from fieldbo.cli import app
from fieldbo.errors import InputError
from fieldbo.messages import (
    EndReason,
    GoHome,
    Lost,
    Query,
    Recharge,
    Rejected,
    Stop,
    Telemetry,
)
from fieldbo.mission.load import merged
from fieldbo.mission.rules import StopRule
from fieldbo.mission.vehicle_spec import Recharging, VehicleSpec
from fieldbo.policies.baselines import Lawnmower, Random
from fieldbo.policies.contract import Decision, Policy
from fieldbo.policies.paths.informative import InformativePath
from fieldbo.record.record import Record
from fieldbo.runs.comparison import COLUMNS, compare
from fieldbo.runs.explain import explain
from fieldbo.runs.export import export
from fieldbo.runs.folder import begin, save
from fieldbo.runs.replay import load_run, mission_of
from fieldbo.runs.runner import resume, run
from fieldbo.testing import small_mission

KNOWN = {"model": {"learn": False}}


# -- the mission -----------------------------------------------------------------------------------------


def test_the_vehicle_comes_home_for_each_battery_and_ends_there():
    result = run(mission_with(3))
    orders = [order for order, _, _ in result.accounts[0].lines]
    changes = [k for k, order in enumerate(orders) if isinstance(order, Recharge)]

    assert len(changes) == 2
    assert all(np.array_equal(orders[k - 1].site, HOME) for k in changes)
    assert result.end_reason is EndReason.BATTERY_SPENT
    assert np.array_equal(result.path[-1], HOME)
    assert all(0.0 < spent <= 12.0 for spent in spent_by_battery(result).values())
    assert sum(spent_by_battery(result).values()) == pytest.approx(result.cost, rel=1e-12)


def test_each_battery_keeps_its_reserve_and_margin():
    result = run(mission_with(3, battery=14.0, reserve=2.0, margin=0.2))
    assert set(spent_by_battery(result)) == {1, 2, 3}
    for spent in spent_by_battery(result).values():
        assert 1.2 * spent <= 14.0 - 2.0 + 1.2 * 1e-9 or spent <= 14.0 - 2.0
    assert result.accounts[0].left >= 2.0


def test_one_battery_in_all_is_never_changed():
    one, plain = (
        run(mission_with(1)),
        run(replace(mission_with(1), vehicles=(VehicleSpec(12.0, HOME, HOME),))),
    )
    assert [q.site.tolist() for q in one.queries] == [q.site.tolist() for q in plain.queries]
    assert Recharge not in kinds_of(one)


def test_a_change_takes_its_time_and_no_battery():
    result = run(mission_with(2))
    [(_, battery, seconds)] = [line for line in result.accounts[0].lines if isinstance(line[0], Recharge)]
    assert (battery.planned, battery.spent) == (0.0, 0.0)
    assert (seconds.planned, seconds.spent) == (100.0, pytest.approx(100.0))
    assert result.accounts[0].time_s == pytest.approx(result.cost + 100.0)


def test_the_time_limit_includes_the_changes():
    result = run(mission_with(4, time_limit_s=150.0))
    assert result.accounts[0].time_s <= 150.0
    assert kinds_of(result).count(Recharge) == 1
    assert result.accounts[0].limit == "time"
    assert np.array_equal(result.path[-1], HOME)


@pytest.mark.parametrize(("limit_s", "changes"), [(112.0, 0), (114.0, 1)])
def test_a_battery_is_changed_only_if_there_is_time_for_a_reading_with_it(limit_s, changes):
    # 12 s for the first battery at most, 100 s for the change, and at least 1 s for a reading at home
    result = run(mission_with(2, time_limit_s=limit_s))
    assert kinds_of(result).count(Recharge) == changes
    assert result.accounts[0].time_s <= limit_s


def test_an_answered_question_uses_no_further_battery():
    mission = replace(mission_with(3, battery=60.0), stop=StopRule(expected_f1=0.5, probability=0.6))
    result = run(mission)
    assert result.end_reason is EndReason.QUESTION_ANSWERED
    assert result.accounts[0].batteries_used < 3


class Asks(Policy):
    """Samples a site some times, then stops for a reason."""

    answers = Random.answers
    costs = ("declared",)

    def __init__(self, reason, times=2):
        self.reason, self.times = reason, times

    def start(self, state):
        return 0

    def suggest(self, state, memory):
        if memory % self.times == self.times - 1:
            return Decision(fieldbo.Stop(self.reason), memory + 1)
        return Decision(Query([1.0, 0.0]), memory + 1)


@pytest.mark.parametrize(
    ("reason", "used"),
    [
        (EndReason.QUESTION_ANSWERED, 1),
        (EndReason.STOPPED_BY_POLICY, 1),
        (EndReason.BATTERY_SPENT, 3),
    ],
)
def test_only_a_policy_that_finds_the_battery_spent_gets_another_one(reason, used):
    result = run(mission_with(3, Asks(reason)))
    assert result.end_reason is reason
    assert result.accounts[0].batteries_used == used
    assert np.array_equal(result.path[-1], HOME)


def test_a_battery_that_its_policy_does_not_want_is_not_exchanged():
    result = run(mission_with(4, Asks(EndReason.BATTERY_SPENT, times=1), battery=30.0))
    assert result.accounts[0].batteries_used == 2  # the first had its initial reading
    assert result.end_reason is EndReason.BATTERY_SPENT


def test_a_sweep_goes_on_where_the_last_battery_ended():
    mission = replace(mission_with(3, Lawnmower(lines=3, samples=4), battery=16.0), initial=0)
    result = run(mission)
    route = [q.site.tolist() for q in result.queries]
    whole = run(replace(mission, vehicles=(VehicleSpec(500.0, HOME, HOME),)))
    assert len(set(result.battery_of_order.values())) > 1
    assert route == [q.site.tolist() for q in whole.queries][: len(route)]


def test_steps_are_queries_only():
    result = run(replace(mission_with(3), max_steps=9))
    assert len(result.queries) == 9
    assert result.end_reason is EndReason.STEP_LIMIT


def test_a_path_is_planned_anew_with_each_battery():
    policy = InformativePath(starts=2, first_iterations=8, iterations=2)
    mission = mission_with(2, policy, battery=16.0)
    agent, planned = Agent(mission), []
    while not isinstance(order := agent.ask(), Stop):
        if isinstance(order, Recharge):
            agent.tell(order.observed())
            assert agent.memory is None
            continue
        planned.append((agent.vehicles[0].battery_number, len((agent.memory or {}).get("plan", []))))
        agent.tell(
            order.observed(**({"value": 0.5, "noise_variance": 0.01} if isinstance(order, Query) else {}))
        )
    second = [left for number, left in planned if number == 2]
    assert second[0] == max(second) > 0


@pytest.mark.parametrize("mission", ["lake-level-set", pytest.param("gp-lake", marks=pytest.mark.sweep)])
def test_three_batteries_on_a_lake_answer_better_than_one(mission):
    table = {"battery": 500.0, "home": [0.0, 0.0], "recharge": {"takes_s": 600, "batteries": 3}}
    tours = {"policy": {"kind": "tour"}, **KNOWN}
    three = run(fieldbo.load_mission(mission, {"agent": table, **tours}))
    one = run(fieldbo.load_mission(mission, {"agent": {"battery": 500.0, "home": [0.0, 0.0]}, **tours}))
    assert three.accounts[0].batteries_used == 3
    assert max(spent_by_battery(three).values()) <= 500.0
    assert three.f1 > one.f1


# -- ask and tell ----------------------------------------------------------------------------------------


def until_recharge(agent):
    """Answer orders until a recharge is due; return it."""
    while not isinstance(order := agent.ask(), Recharge):
        reading = {"value": 0.5, "noise_variance": 0.01} if isinstance(order, Query) else {}
        agent.tell(order.observed(**reading))
    return order


def test_no_order_is_issued_while_the_battery_is_being_changed():
    agent = Agent(mission_with(2))
    order = until_recharge(agent)
    with pytest.raises(InputError, match="on the way to another battery"):
        agent.ask()
    agent.tell(order.observed())
    assert isinstance(agent.ask(), Query)


def test_a_reading_of_the_new_battery_is_taken_as_it_is():
    agent = Agent(mission_with(2))
    order = until_recharge(agent)
    state, before = agent.vehicles[0], agent.vehicles[0].spent
    at_s = state.time_s
    agent.tell(Telemetry(0, HOME, 0.0, at_s + 10.0))  # taken out
    agent.tell(Telemetry(0, HOME, 12.0, at_s + 50.0))  # the new one is in
    assert state.ledger.left < 12.0
    agent.tell(replace(order.observed(), time_s=at_s + 60.0))
    assert (state.ledger.left, state.spent) == (12.0, before)
    agent.tell(Telemetry(0, HOME, 11.5, at_s + 61.0))
    assert state.ledger.left == 11.5


def test_what_the_old_battery_held_is_not_held_against_the_new_one():
    agent = Agent(mission_with(2))
    order = until_recharge(agent)
    state = agent.vehicles[0]
    agent.tell(replace(order.observed(), time_s=state.time_s + 60.0))
    agent.tell(Telemetry(0, HOME, 0.1, state.time_s + 1.0, measured_s=state.time_s - 5.0))
    assert state.ledger.left == 12.0


def test_a_late_result_is_charged_to_the_battery_that_paid_for_it():
    agent = Agent(mission_with(2, battery=20.0))
    lost = agent.ask()
    agent.tell(Lost(lost.id, "silence"))
    order = until_recharge(agent)
    agent.tell(order.observed())
    agent.tell(lost.observed(0.5, noise_variance=0.01, cost=1.5))
    used, present = agent.vehicles[0].ledgers
    assert used.entries[lost.id].spent == 1.5
    assert present.spent == 0.0


@pytest.mark.parametrize("event", [Rejected, Lost])
def test_the_mission_ends_at_home_if_there_is_no_other_battery_after_all(event):
    agent = Agent(mission_with(3))
    order = until_recharge(agent)
    agent.tell(event(order.id, "the charger is at the office"))
    stop = agent.ask()
    assert stop == Stop(EndReason.BATTERY_SPENT)
    assert np.array_equal(agent.vehicles[0].position, HOME)


def test_a_rejected_trip_home_is_asked_for_again_but_not_for_ever():
    agent, trips = Agent(mission_with(3)), 0
    while not isinstance(order := agent.ask(), Stop):
        if isinstance(order, GoHome):
            trips += 1
            agent.tell(Rejected(order.id, "no"))
        else:
            agent.tell(order.observed(0.5, noise_variance=0.01))
    assert 2 <= trips <= 5
    assert order.reason is EndReason.BATTERY_SPENT


def test_a_robot_that_says_it_is_home_gets_its_battery_even_if_it_drifts():
    agent = Agent(mission_with(2))
    while not isinstance(order := agent.ask(), GoHome):
        agent.tell(order.observed(0.5, noise_variance=0.01))
    agent.tell(replace(order.observed(), position=np.array([0.01, 0.0])))
    assert isinstance(agent.ask(), Recharge)


def test_durations_of_changes_do_not_count_as_slow_moves():
    agent = Agent(mission_with(2, time_limit_s=1e6))
    order = until_recharge(agent)
    agent.tell(replace(order.observed(), time_s=agent.vehicles[0].time_s + 5000.0))
    assert agent.vehicles[0].time_ledger.overrun == 0.0


# -- what is reported ------------------------------------------------------------------------------------


def rows_of(result, name):
    return list(csv.DictReader(io.StringIO(result.tables()[name].decode())))


def test_tables_and_summary_name_the_battery():
    result = run(mission_with(3))
    number_of = result.battery_of_order
    assert [(r["order"], int(r["battery"])) for r in rows_of(result, "observations.csv")] == [
        (o.order, number_of[o.order]) for o in result.observations if len(o.values)
    ]
    assert [int(r["battery"]) for r in rows_of(result, "ledger.csv")] == [*number_of.values()]
    curve = rows_of(result, "curve.csv")
    assert [int(row["battery"]) for row in curve] == sorted(int(row["battery"]) for row in curve)
    assert all(0.0 <= float(row["remaining"]) <= 12.0 for row in curve)
    told = result.summary()
    assert (told["battery"], told["batteries"], told["batteries_used"]) == (12.0, 3, 3)
    assert "from 3 of 3 batteries of 12 s" in str(result)


def test_nothing_names_a_battery_if_there_is_only_one():
    result = run(small_mission())
    assert "batteries" not in result.summary()
    for name in ("observations.csv", "curve.csv", "ledger.csv"):
        assert "battery" not in rows_of(result, name)[0]


def test_the_picture_of_the_curve_reaches_to_all_batteries():
    from fieldbo.results.plot.curves import curve_picture

    figure = curve_picture(run(mission_with(3)))
    assert figure.axes[0].get_xlim()[1] == 36.0
    assert "3 batteries of 12 s" in figure.axes[0].get_xlabel()


def test_the_picture_of_the_ledger_adds_up_all_batteries():
    result = run(mission_with(3))
    drawn = result.plot.ledger()
    spent = drawn["spent"].get_ydata()
    assert spent[-1] == pytest.approx(result.cost)
    assert np.all(np.diff(spent) >= -1e-9)
    recharged = [
        k for k, (order, _, _) in enumerate(result.accounts[0].lines, start=1) if isinstance(order, Recharge)
    ]
    assert len(recharged) == 2
    for view, shift in (("total", 0.0), ("orders", -0.5)):
        changes = result.plot.ledger(view=view)["changes"].get_segments()
        assert [line[0, 0] for line in changes] == [k + shift for k in recharged]


def test_a_comparison_names_each_column_once_and_counts_all_batteries(tmp_path):
    rows = compare(
        ["lake-level-set"], 1, 1, tmp_path / "table.csv", merged(SHORT | KNOWN, {"agent": {"max_steps": 4}})
    )
    assert len(set(COLUMNS)) == len(COLUMNS)
    assert {float(row["battery"]) for row in rows} == {600.0}


SHORT = {"agent": {"battery": 300, "home": [0, 0], "recharge": {"takes_s": 60, "batteries": 2}}}


@pytest.fixture(scope="module")
def short_run(tmp_path_factory):
    """Return the folder of a run over two batteries."""
    folder, record = begin(
        fieldbo.load_mission("lake-level-set", SHORT | KNOWN), tmp_path_factory.mktemp("runs") / "lake"
    )
    with record:
        save(run(mission_of(record), record=record), folder)
    return folder


def test_exports_name_the_battery_of_each_reading(short_run, tmp_path):
    export(short_run, ["csv", "mcap"], tmp_path)
    with (tmp_path / "observations.csv").open() as file:
        assert {row["battery"] for row in csv.DictReader(file)} == {"1", "2"}
    with (tmp_path / "run.mcap").open("rb") as file:
        sent = [json.loads(m.data) for _, c, m in make_reader(file).iter_messages() if c.topic == "/battery"]
    assert {m["battery"] for m in sent} == {1, 2}


def test_a_recharge_is_explained(short_run):
    orders = [order for order, _, _ in load_run(short_run).result().accounts[0].lines]
    at = next(k for k, order in enumerate(orders) if isinstance(order, Recharge))
    assert "home, because battery 1 affords no further query" in str(explain(short_run, at - 1))
    assert "change the battery, because battery 1 affords no further query" in str(explain(short_run, at))
    assert "in battery 2 of 2" in str(explain(short_run, at + 1))


# -- record and resume -----------------------------------------------------------------------------------


def recorded(mission, folder, rows=()):
    folder.mkdir()
    with Record.create(folder / "run.sqlite", "small", {"mission": "small"}) as record:
        for row in rows:
            record._append([(row.kind, row.order, row.body.get("message", {}).get("part"), row.body)])
        result = resume(mission, record) if rows else run(mission, record=record)
        return result, record.rows()


@pytest.mark.parametrize("every", [9, pytest.param(1, marks=pytest.mark.sweep)])
def test_a_run_that_is_killed_after_any_row_goes_on_as_if_it_had_not_been(tmp_path, every):
    mission = mission_with(3, time_limit_s=500.0)
    result, rows = recorded(mission, tmp_path / "whole")
    assert [row.kind for row in rows].count("recharge") == 2
    for cut in range(1, len(rows), every):
        again, its_rows = recorded(mission, tmp_path / f"{cut}", rows[:cut])
        assert [(r.kind, r.order, r.body) for r in its_rows] == [(r.kind, r.order, r.body) for r in rows]
        assert again.accounts[0].battery_of == result.accounts[0].battery_of


# -- wrong input -----------------------------------------------------------------------------------------


def settings_with(**recharge):
    return {"agent": {"battery": 300, "home": [0, 0], "recharge": {"takes_s": 60, "batteries": 2} | recharge}}


@pytest.mark.parametrize(
    ("recharge", "where", "expected"),
    [
        ({"batteries": 0}, "agent.recharge.batteries", "above 0"),
        ({"takes_s": -1}, "agent.recharge.takes_s", "0"),
        ({"at": "jetty"}, "agent.recharge.at", "home"),
        ({"batteries": 2.5}, "agent.recharge.batteries", "whole"),
        ({"batterys": 2}, "agent.recharge.batterys", "batteries"),
    ],
)
def test_a_wrong_recharge_is_refused(recharge, where, expected):
    with pytest.raises(InputError) as error:
        fieldbo.load_mission("lake-level-set", settings_with(**recharge))
    assert where in str(error.value)
    assert expected in str(error.value)


def test_a_recharge_needs_a_home():
    settings = settings_with()
    del settings["agent"]["home"]
    with pytest.raises(InputError, match="no home") as error:
        fieldbo.load_mission("lake-level-set", settings)
    assert "agent.recharge" in str(error.value)


def test_a_recharge_needs_declared_costs():
    from fieldbo.policies.control_sets.subsets import Subsets

    mission = small_mission(Subsets())
    spec = replace(mission.vehicles[0], home=mission.vehicles[0].start, recharge=Recharging(1.0, 2))
    with pytest.raises(InputError, match="recharge is set, but it can't be guaranteed"):
        replace(mission, vehicles=(spec,))


def test_a_path_with_another_destination_and_a_recharge_is_refused():
    mission = mission_with(2, InformativePath(destination=(3.0, 2.0)), battery=40.0)
    with pytest.raises(InputError, match="has to return home"):
        run(mission)


def test_check_says_how_many_batteries_there_are():
    table = ["agent.home=[0, 0]", "agent.recharge.takes_s=900", "agent.recharge.batteries=3"]
    done = CliRunner().invoke(app, ["check", "lake-level-set", *(f"--set={line}" for line in table)])
    assert done.exit_code == 0, done.output
    assert "3 batteries of 6000 s, changed at home in 15 min" in " ".join(done.output.split())


def test_the_schema_documents_a_recharge():
    from fieldbo.mission.schema import json_schema

    [table] = [d for name, d in json_schema("mission")["$defs"].items() if name == "Recharging"]
    assert set(table["properties"]) == {"at", "takes_s", "batteries"}
    assert all(p["description"] for p in table["properties"].values())

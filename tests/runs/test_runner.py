"""The run loop: orders are recorded before they are sent, events before the agent gets them."""

from __future__ import annotations

import signal
import time
import weakref
from dataclasses import dataclass, replace

import numpy as np
import pytest
from waiting import SLOW_S

import fieldbo
from fieldbo.agent.agent import Agent
from fieldbo.belief.model import Model
from fieldbo.belief.question import LevelSet
from fieldbo.cli.session import stopped_by_signals
from fieldbo.errors import InputError, VehicleError
from fieldbo.messages import (
    EndReason,
    Fitted,
    GoHome,
    Lost,
    Observation,
    Query,
    Rejected,
    Stop,
    Telemetry,
    to_plain,
)
from fieldbo.mission.files import toml_text
from fieldbo.policies.baselines import GCHK, Lawnmower, Random, Straddle
from fieldbo.policies.level_set.truvar import TruVaR
from fieldbo.record.record import Record
from fieldbo.runs.folder import begin
from fieldbo.runs.loop import BrokenOffError, Interrupted
from fieldbo.runs.runner import run
from fieldbo.runs.signals import unbroken
from fieldbo.runs.state import RunState
from fieldbo.testing import small_mission, small_world
from fieldbo.vehicles.base import Simulated
from fieldbo.world.fields.base import Field


@pytest.fixture
def record(tmp_path):
    with Record.create(tmp_path / "run.sqlite", "small-1", {"mission": "small"}) as opened:
        yield opened


class Scripted(Simulated):
    """A simulated vehicle that reports ``change(n, event)``, a list of events, for order n."""

    def __init__(self, mission, change):
        super().__init__(mission)
        self.change, self.sent, self.held, self.closed = change, [], 0, 0

    def send(self, order):
        self.sent.append(order)
        super().send(order)

    def events(self, timeout_s):
        events = super().events(timeout_s)
        return [changed for event in events for changed in self.change(len(self.sent) - 1, event)]

    def hold(self):
        self.held += 1

    def close(self):
        self.closed += 1


def as_it_was(n, event):
    return [event]


def test_a_simulated_run_ends_at_home_within_the_battery_with_a_reason():
    mission = small_mission(Random(), battery=25.0)

    result = run(mission)

    assert result.end_reason is EndReason.BATTERY_SPENT
    assert result.cost <= 25.0
    assert np.array_equal(result.observations[-1].position, mission.vehicles[0].home)
    assert len(result.curve) == len(result.observations) == len(result.queries) + 1


def test_each_order_is_recorded_before_its_event_and_the_end_last(record):
    mission = small_mission(TruVaR())

    result = run(mission, record=record)

    rows = record.rows()
    kinds = [row.kind for row in rows]
    assert kinds == ["query", "observation"] * len(result.queries) + ["go-home", "observation", "stop", "end"]
    assert [row.order for row in rows[:-2:2]] == [row.order for row in rows[1:-2:2]]
    assert [row.order for row in rows[:-2:2]] == [f"small-1/{n}" for n in range(len(result.curve))]
    assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
    assert record.end_reason is result.end_reason


def test_the_record_holds_the_queries_and_observations_of_the_result(record):
    result = run(small_mission(TruVaR()), record=record)

    rows = record.rows()
    asked = [row.message for row in rows if row.kind == "query"]
    observations = [row.message for row in rows if row.kind == "observation"]
    assert [q.site.tolist() for q in asked] == [q.site.tolist() for q in result.queries]
    assert [q.expected_cost for q in asked] == [q.expected_cost for q in result.queries]
    assert [o.values.tolist() for o in observations] == [o.values.tolist() for o in result.observations]
    assert [o.cost for o in observations] == [o.cost for o in result.observations]


def test_an_order_is_on_disk_before_it_is_sent_and_an_event_before_the_agent_gets_it(record):
    seen = []

    class Witness(Simulated):
        def send(self, order):
            seen.append(record.rows()[-1].order == order.id)
            super().send(order)

    class Rule(Random):
        def observe(self, state, memory, event):
            seen.append(record.rows()[-1].message.order == event.order)
            return memory

    mission = small_mission(Rule())
    run(mission, [Witness(mission)], record)

    assert len(seen) > 4
    assert all(seen)


def test_each_order_is_recorded_with_the_memory_and_reasons_of_the_policy(record):
    run(small_mission(TruVaR()), record=record)

    first, second = [row for row in record.rows() if row.kind == "query"][:2]
    assert first.body["why"] is None
    assert {"score", "site", "epoch", "unclassified"} <= set(second.body["why"])
    assert {"H", "L", "i", "beta", "eta", "monotone"} == set(second.body["memory"])


def test_a_fit_is_recorded_between_an_event_and_the_next_order(record):
    mission = replace(small_mission(Random(), battery=60.0), model=Model(learn={"every": 4}))

    result = run(mission, record=record)

    rows = record.rows()
    fits = [k for k, row in enumerate(rows) if row.kind == "fitted"]
    assert len(fits) >= 2
    for k in fits:
        assert rows[k - 1].kind == "observation"
        assert rows[k + 1].kind in ("query", "go-home")
    last = rows[fits[-1]].message
    assert isinstance(last, Fitted)
    assert result.hyperparameters.to_plain() == last.hyperparameters


def test_a_run_depends_on_its_seed_and_not_on_the_record(record):
    mission = small_mission(Random(), seed=4)

    with_record, without = run(mission, record=record), run(mission)

    assert np.array_equal(with_record.sites, without.sites)
    assert np.array_equal(with_record.values, without.values)
    assert np.array_equal(with_record.surface.mean, without.surface.mean)
    assert not np.array_equal(run(replace(mission, seed=5)).sites, without.sites)


ORDERS = ("query", "go-home")


@pytest.mark.each_choice
@pytest.mark.parametrize("policy", [TruVaR(), GCHK(intersect=True), Lawnmower(lines=3, samples=3)], ids=repr)
@pytest.mark.parametrize("cut", [1, 4, 9, 16, -1])
def test_an_agent_rebuilt_from_the_record_is_bitwise_equal(record, policy, cut):
    mission = replace(small_mission(policy, battery=40.0, initial=3), model=Model(learn={"every": 3}))
    run(mission, record=record)
    rows = [row for row in record.rows() if row.kind not in ("stop", "end")]
    cut = len(rows) if cut == -1 else min(cut, len(rows) - 2)
    while rows[cut - 1].kind in ORDERS:  # an order that is out is settled first
        cut += 1
    check_that_it_goes_on(replayed(Agent(mission, record.name), rows[:cut]), rows[cut:], record.end_reason)


def replayed(agent, rows):
    for row in rows:
        if row.kind in ORDERS:
            agent.replay(row.message, row.body["memory"], row.body["why"])
        else:
            agent.tell(row.message)
    return agent


def check_that_it_goes_on(agent, rows, end_reason):
    for row in rows:
        if row.kind in ORDERS:
            assert to_plain(agent.ask()) == row.body["message"]
            assert agent.memory == row.body["memory"]
            assert agent.why == row.body["why"]
        else:
            fitted = agent.refit() if row.kind == "fitted" else None
            assert fitted is None or to_plain(fitted) == row.body["message"]
            agent.tell(row.message)
    assert agent.ask() == Stop(end_reason)


@pytest.mark.parametrize("policy", [TruVaR(), Straddle(), Lawnmower(lines=3, samples=3)], ids=repr)
def test_a_run_in_batches_can_be_resumed_after_any_batch(record, policy):
    mission = replace(small_mission(policy, battery=40.0), batch=3)
    run(mission, record=record)
    rows = [row for row in record.rows() if row.kind not in ("stop", "end")]
    orders = [row.message for row in rows if row.kind in ORDERS]
    observations = {row.message.order: row.message for row in rows if row.kind == "observation"}
    settled = [k for k in range(1, len(rows)) if rows[k - 1].kind == "observation" and rows[k].kind in ORDERS]
    assert len(settled) > 2
    for cut in settled:
        agent = replayed(Agent(mission, record.name), rows[:cut])
        assert not agent.pending
        while batch := agent.ask_batch(3):
            for order in batch:
                agent.tell(observations[order.id])
        assert [to_plain(i.order) for i in agent.issued.values()] == [to_plain(o) for o in orders]
        assert agent.ask() == Stop(record.end_reason)


def test_on_step_gets_the_entries_of_the_curve():
    steps = []

    result = run(small_mission(Random()), on_step=steps.append)

    assert tuple(steps) == result.curve
    assert [s.cost for s in steps] == sorted(s.cost for s in steps)
    assert [s.step for s in steps[:-1]] == list(range(1, len(steps)))


def test_the_curve_scores_the_belief_against_the_truth():
    result = run(small_mission(Straddle(), battery=80.0))

    assert result.curve[-1].f1 == result.f1
    assert result.f1 > 0.9
    assert result.curve[0].f1 < result.f1


def test_a_live_world_has_no_f1_and_needs_a_vehicle():
    live = small_mission(world=replace(small_world(), field=None))

    with pytest.raises(InputError, match=r"no \[field\]"):
        run(live)


def test_a_mission_can_be_given_by_name_or_path(tmp_path):
    result = fieldbo.run("lake-level-set-unit-cost")
    assert result.mission.name == "lake-level-set-unit-cost"
    text = toml_text(
        dict(
            fieldbo.load_mission(
                "lake-level-set", {"policy": {"kind": "random"}, "agent": {"max_steps": 2}}
            ).settings
        )
    )
    (tmp_path / "two.toml").write_text(text)
    assert len(fieldbo.run(tmp_path / "two.toml").queries) == 2


@pytest.mark.parametrize("mission", [None, {"world": "lake-transect"}, 3])
def test_anything_else_than_a_mission_is_an_error(mission, tmp_path):
    with pytest.raises(InputError, match="mission = ") as error:
        fieldbo.run(mission)
    assert "fieldbo.Mission" in error.value.expected
    with Record.create(tmp_path / "run.sqlite", "run", {}) as record, pytest.raises(InputError):
        fieldbo.resume(mission, record)


def test_vehicles_without_a_record_are_rejected():
    mission = small_mission()

    with pytest.raises(InputError, match="record"):
        run(mission, [Scripted(mission, as_it_was)])


def test_a_wrong_number_of_vehicles_is_rejected(record):
    mission = small_mission()

    with pytest.raises(InputError, match="2 vehicles"):
        run(mission, [Scripted(mission, as_it_was), Scripted(mission, as_it_was)], record)


def test_a_vehicle_is_closed_at_the_end_and_after_an_error(record):
    def broken(n, event):
        raise OSError("the link is down")

    mission = small_mission()
    good, bad = Scripted(mission, as_it_was), Scripted(mission, broken)

    run(mission, [good], record)
    with (
        Record.create(record.file.with_name("other.sqlite"), "other", {}) as other,
        pytest.raises(OSError, match="link"),
    ):
        run(mission, [bad], other)

    assert good.closed == bad.closed == 1


# -- faults and interrupts --------------------------------------------------------------------------------


def test_a_run_continues_after_rejected_and_lost_orders(record):
    def some(n, event):
        if n == 1:
            return [Rejected(event.order, "shallow water")]
        if n == 3:
            return [Lost(event.order, "no link")]
        return [event]

    mission = small_mission(Random(), battery=40.0)
    result = run(mission, [Scripted(mission, some)], record)

    kinds = [row.kind for row in record.rows()]
    assert kinds.count("rejected") == kinds.count("lost") == 1
    assert kinds[-1] == "end"
    assert [r.order for r in result.rejections] == ["small-1/1"]
    assert len(result.observations) == len(result.curve) - 1  # the lost answer is asked for


def test_a_repeated_event_is_recorded_again_and_counted_once(record):
    mission = small_mission(Random())

    result = run(mission, [Scripted(mission, lambda n, event: [event, event])], record)

    kinds = [row.kind for row in record.rows()]
    assert kinds.count("observation") == 2 * len(result.observations)
    assert result.cost == sum(o.cost for o in result.observations)
    assert result.curve[-1].readings == len(result.queries)


def test_a_leg_in_parts_is_one_order_and_one_step(record):
    def halved(n, event):
        first = replace(event, cost=0.5 * event.cost, last=False)
        return [first, replace(event, cost=0.5 * event.cost, part=1)]

    mission = small_mission(Random())
    result = run(mission, [Scripted(mission, halved)], record)

    assert len(result.observations) == 2 * len(result.curve)
    assert result.curve[-1].step == len(result.queries)
    assert result.cost == pytest.approx(run(mission).cost)


def test_telemetry_settles_no_order(record):
    def chatty(n, event):
        return [Telemetry(0, event.position, None, 1.0 * n), event]

    mission = small_mission(Random())
    result = run(mission, [Scripted(mission, chatty)], record)

    assert np.array_equal(result.sites, run(mission).sites)
    assert [row.kind for row in record.rows()].count("telemetry") == len(result.curve)


def test_nan_readings_are_recorded_and_noted(record):
    def blind(n, event):
        return [replace(event, values=[np.nan] * len(event.values)) if n % 2 else event]

    mission = small_mission(Random(), home=False)
    result = run(mission, [Scripted(mission, blind)], record)

    observations = [row.message for row in record.rows() if row.kind == "observation"]
    missing = sum(int(np.isnan(o.values).sum()) for o in observations)
    assert missing > 0
    assert result.curve[-1].readings == len(observations) - missing
    assert any(note.startswith(f"{missing} readings could not be modelled") for note in result.notes)


def test_a_move_above_its_declared_cost_is_charged_and_the_vehicle_still_gets_home(record):
    def dearer(n, event):
        return [replace(event, cost=1.2 * event.cost)]

    mission = small_mission(Random())
    careful = replace(mission, vehicles=(replace(mission.vehicles[0], margin=0.2),))
    vehicle = Scripted(careful, dearer)
    result = run(careful, [vehicle], record)

    assert isinstance(vehicle.sent[-1], GoHome)
    assert result.cost == pytest.approx(1.2 * sum(o.cost for o in vehicle_costs(vehicle)))
    assert result.cost <= careful.vehicles[0].battery


def vehicle_costs(vehicle):
    return [vehicle.outcome(order.id)[0] for order in vehicle.sent]


# -- Ctrl-C ----------------------------------------------------------------------------------------------


def stopped_at(number):
    def change(n, event):
        if n == number:
            raise KeyboardInterrupt
        return [event]

    return change


def test_an_interrupt_gives_a_result_up_to_the_last_observation_and_leaves_the_record_open(record):
    mission = small_mission(Random(), battery=60.0)
    vehicle = Scripted(mission, stopped_at(4))

    with pytest.raises(Interrupted) as stopped:
        run(mission, [vehicle], record)

    result = stopped.value.result
    assert result.end_reason is None
    assert len(result.observations) == len(result.curve) == 4
    assert len(result.queries) == 5
    assert np.array_equal(result.sites, run(mission).sites[:4])
    assert result.cost == sum(o.cost for o in result.observations)
    assert result.summary()["complete"] is False
    assert record.end_reason is None
    kinds = [row.kind for row in record.rows()]
    assert kinds == ["query", "observation"] * 4 + ["query"]
    assert (vehicle.held, vehicle.closed) == (1, 1)


def test_an_interrupt_before_the_first_observation_gives_an_empty_result(record):
    mission = small_mission(Random())

    with pytest.raises(Interrupted) as stopped:
        run(mission, [Scripted(mission, stopped_at(0))], record)

    result = stopped.value.result
    assert result.curve == result.observations == ()
    assert result.cost == 0.0
    assert result.sites.shape == (0, 2)
    assert result.path.tolist() == [mission.vehicles[0].start.tolist()]


def test_an_interrupt_can_be_caught_as_a_keyboard_interrupt():
    assert issubclass(Interrupted, KeyboardInterrupt)


def test_ctrl_c_is_delayed_to_the_end_of_an_unbroken_block():
    done = []

    def block():
        with unbroken():
            signal.raise_signal(signal.SIGINT)
            done.append("the block's end")

    with pytest.raises(KeyboardInterrupt):
        block()
    assert done == ["the block's end"]


def test_a_signal_that_is_ignored_or_ends_the_process_is_left_so_in_an_unbroken_block():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with unbroken():
            signal.raise_signal(signal.SIGINT)
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGINT, before)


def test_sigterm_is_delayed_to_the_end_of_the_outermost_unbroken_block():
    done = []

    def block():
        with stopped_by_signals() as signals, unbroken():
            with unbroken():
                signal.raise_signal(signal.SIGTERM)
                done.append("inner")
            done.append("outer")
            assert signals == []

    with pytest.raises(KeyboardInterrupt):
        block()
    assert done == ["inner", "outer"]
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


class Watched:
    """Something to refer to weakly."""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_comes_while_python_drops_exceptions_still_stops_the_command(number):
    watched, seen = [Watched()], []

    def in_callback(_):
        seen.append(number)
        signal.raise_signal(number)

    def let_go_and_wait():
        watched.clear()
        time.sleep(SLOW_S)

    reference = weakref.ref(watched[0], in_callback)
    with stopped_by_signals() as signals, pytest.raises(KeyboardInterrupt):
        let_go_and_wait()
    assert seen == [number]
    assert reference() is None
    assert set(signals) <= {number}


def test_ctrl_c_during_an_event_is_raised_after_the_event_is_scored(record):
    def press(step):
        if step.step == 3:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(Interrupted) as stopped:
        run(small_mission(Random(), battery=60.0), record=record, on_step=press)

    assert len(stopped.value.result.curve) == 3
    assert [row.kind for row in record.rows()] == ["query", "observation"] * 3
    assert record.end_reason is None


# -- more than one vehicle -------------------------------------------------------------------------------


def test_two_vehicles_share_a_belief_and_keep_their_own_batteries(record):
    single = small_mission(Random())
    far = single.world.domain.sites[-1]
    specs = (single.vehicles[0], replace(single.vehicles[0], start=far, home=far, battery=18.0))
    mission = replace(single, vehicles=specs)

    result = run(mission, record=record)

    rows = [row.message for row in record.rows() if row.kind in ("query", "go-home")]
    for number, vehicle in enumerate(specs):
        own = {order.id for order in rows if order.vehicle == number}
        observations = [o for o in result.observations if o.order in own]
        assert len(observations) > 1
        assert sum(o.cost for o in observations) <= vehicle.battery
        assert np.array_equal(observations[-1].position, vehicle.home)
    assert result.curve[-1].readings == sum(isinstance(order, Query) for order in rows)
    assert result.cost == pytest.approx(sum(o.cost for o in result.observations))


def test_fieldbo_run_is_the_run_of_the_runner():
    assert fieldbo.run is run
    assert isinstance(fieldbo.run(small_mission()).observations[0], Observation)


def test_a_record_that_holds_a_run_is_rejected(record):
    run(small_mission(), record=record)
    before = record.rows()

    with pytest.raises(InputError, match="already holds a run"):
        run(small_mission(), record=record)

    assert record.rows() == before


def test_an_event_of_an_unknown_order_is_noted_but_not_passed_to_the_agent(record):
    class Babbling(Simulated):
        def events(self, timeout_s):
            return [Rejected("another/0", "who?"), *super().events(timeout_s)]

    mission = small_mission()
    result = run(mission, [Babbling(mission)], record)

    assert result.rejections == ()
    assert result.cost == run(mission).cost
    notes = [row.body["text"] for row in record.rows() if row.kind == "note"]
    assert len(notes) >= len(result.curve)
    assert "unknown order 'another/0'" in notes[0]
    assert "rejected" not in {row.kind for row in record.rows()}


def test_an_error_keeps_the_readings_and_holds_the_vehicle(record):
    held = []

    class Stuck(Simulated):
        def send(self, order):
            if order.id.endswith("/3"):
                raise VehicleError("the rudder is stuck")
            super().send(order)

        def hold(self):
            held.append(True)

    mission = small_mission()
    with pytest.raises(BrokenOffError, match="rudder") as caught:
        run(mission, [Stuck(mission)], record)

    assert len(caught.value.result.observations) == 3
    assert caught.value.result.end_reason is None
    assert held == [True]
    assert record.end_reason is None


@pytest.mark.each_choice
@pytest.mark.parametrize("unit", [1e-6, 1.0, 2500.0, 1e7])
@pytest.mark.parametrize("policy", [TruVaR(), GCHK(), GCHK(per_cost=True)], ids=repr)
def test_a_model_that_was_never_fitted_answers_no_question(unit, policy):
    class Scaled(Field):
        def values(self, sites, time_s=0.0):
            return unit * (1.0 + np.sin(sites[:, 0]) + 0.2 * sites[:, 1])

    world = replace(small_world(noise_sd=1e-3 * unit), field=Scaled())
    mission = replace(
        small_mission(policy, world=world, battery=60.0), model=Model(), question=LevelSet(1.2 * unit)
    )
    result = run(mission)

    assert len(result.values) > 5
    assert result.f1 > 0.6


def test_a_custom_loop_keeps_to_home_and_time_limit():
    mission = small_mission(battery=200.0)
    mission = replace(mission, vehicles=(replace(mission.vehicles[0], time_limit_s=30.0),))
    agent, clock = Agent(mission), 0.0
    while not isinstance(order := agent.ask(), Stop):
        event = order.observed() if isinstance(order, GoHome) else order.observed(0.5, noise_variance=0.01)
        agent.tell(event)
        clock = agent.spent  # a second for each unit of cost
    assert np.array_equal(agent.vehicles[0].position, mission.vehicles[0].home)
    assert 0 < clock <= 30.0


def test_pending_queries_lower_variances_but_classify_no_site():
    seen = []

    @dataclass(frozen=True)
    class Watching(Straddle):
        def suggest(self, state, memory):
            seen.append(("suggest", state.surface.variance.sum()))
            return super().suggest(state, memory)

        def observe(self, state, memory, event):
            seen.append(("observe", state.surface.variance.sum()))
            return memory

    agent = Agent(small_mission(Watching(), battery=80.0))
    first, second = agent.ask(), agent.ask()
    real = agent.surface.variance.sum()
    assert seen[-1][0] == "suggest"
    assert seen[-1][1] < real
    agent.tell(
        Simulated(agent.mission).mission.world.evaluate(first, first.site, 0.0, np.random.default_rng(0))
    )
    assert seen[-1] == ("observe", agent.surface.variance.sum())
    assert agent.pending == (second,)


def test_a_policy_replaced_after_loading_is_named_in_results_but_gets_no_run_folder(tmp_path):
    loaded = fieldbo.load_mission(
        "lake-level-set",
        {"policy": {"kind": "straddle"}, "agent": {"battery": 300}, "model": {"learn": False}},
    )
    replaced = replace(loaded, policy=GCHK())

    assert fieldbo.run(replaced).summary()["policy"] == "GCHK"
    assert replace(replaced, policy=loaded.policy).policy_kind == "straddle"
    for policy in (GCHK(), replace(loaded.policy, kappa=3.0)):
        with pytest.raises(InputError, match="policy was replaced"):
            begin(replace(loaded, policy=policy), tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


# -- what is recorded can be taken in --------------------------------------------------------------------


def bent(event, **changed):
    """An observation with other fields."""
    return replace(event, **changed)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda e: bent(e, position=[0.0] * 5, sites=np.zeros((1, 5))),
        lambda e: bent(e, values=[1e308]),
        lambda e: bent(e, noise_variances=[1e308]),
        lambda e: bent(e, cost=1e308),
        lambda e: bent(e, times_s=[1e300]),
        lambda e: bent(e, position=[1e200, 0.0], sites=[[1e200, 0.0]]),
    ],
)
def test_an_observation_that_can_not_be_taken_in_is_noted_and_its_order_lost(record, spoil):
    mission = small_mission()
    vehicle = Scripted(mission, lambda n, event: [spoil(event)] if n == 2 else [event])
    result = run(mission, [vehicle], record)

    rows = record.rows()
    assert [row.order for row in rows if row.kind == "note"] == [f"{record.name}/2"]
    assert [row.order for row in rows if row.kind == "lost"] == [f"{record.name}/2"]
    assert result.end_reason is not None
    state = RunState(mission, record.name)
    state.replay(rows)  # to no error
    assert state.result().summary() == result.summary()


def test_telemetry_of_an_unknown_vehicle_is_noted_and_ignored(record):
    mission = small_mission()
    result = run(mission, [Scripted(mission, lambda n, e: [Telemetry(7, e.position, 1.0, 1.0), e])], record)

    kinds = [row.kind for row in record.rows()]
    assert "telemetry" not in kinds
    assert kinds.count("note") == len(result.observations)
    assert result.cost == run(mission).cost


def test_a_part_after_the_last_one_is_charged_and_learned_from_but_is_no_step(record):
    mission = small_mission()
    vehicle = Scripted(
        mission,
        lambda n, event: (
            [bent(event, part=1), bent(event, part=0), bent(event, part=0)] if n == 0 else [event]
        ),
    )
    result = run(mission, [vehicle], record)

    first, late, *rest = result.observations
    assert (first.part, late.part) == (1, 0)
    assert [o.part for o in rest] == [0] * len(rest)
    assert result.cost == pytest.approx(sum(o.cost for o in result.observations))
    assert result.summary()["steps"] == len({o.order for o in result.observations}) - 1  # the trip home
    state = RunState(mission, "run")
    state.replay(record.rows())
    assert state.result().cost == result.cost


def test_an_observation_of_a_rejected_order_is_late_data_and_no_step():
    mission = small_mission()
    agent = Agent(mission)
    query = agent.ask()
    late = query.observed(1.0, noise_variance=0.01, cost=2.0)
    agent.tell(Rejected(query.id, "shallow"))
    agent.tell(late)
    agent.tell(bent(late, part=1))

    assert (agent.steps, agent.readings, agent.spent) == (0, 2, 4.0)


def test_a_lost_order_counts_once_when_its_observation_arrives():
    agent = Agent(small_mission())
    query = agent.ask()
    late = query.observed(1.0, noise_variance=0.01, cost=2.0)
    agent.tell(Lost(query.id, "no link"))
    for event in (bent(late, last=False), late, bent(late, part=1), bent(late, part=2)):
        agent.tell(event)

    assert (agent.steps, agent.readings, agent.spent) == (1, 3, 6.0)

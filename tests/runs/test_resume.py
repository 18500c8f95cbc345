"""A resumed run equals an uninterrupted one; nothing is asked, read or charged twice."""

from __future__ import annotations

import errno
import signal
import subprocess
import sys
from dataclasses import dataclass, replace
from io import StringIO
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from batteries import mission_with as several_batteries
from checkout import ROOT
from waiting import SLOW_S
from work import lines_run

import fieldbo
from fieldbo.agent.online_model import OnlineModel
from fieldbo.agent.vehicle_state import VehicleState
from fieldbo.belief.model import Model
from fieldbo.cli.run import continuing
from fieldbo.errors import InputError, RecordError, VehicleError
from fieldbo.messages import EndReason, GoHome, Lost, Observation, Rejected, Telemetry
from fieldbo.mission.rules import StopRule
from fieldbo.policies.baselines import GCHK, Lawnmower, Random, Straddle
from fieldbo.policies.chains.lambo import LaMBO
from fieldbo.policies.control_sets.subsets import Subsets
from fieldbo.policies.level_set.truvar import TruVaR
from fieldbo.policies.optimum.myopic import EI
from fieldbo.record.record import Record
from fieldbo.record.store import ORDERS, is_being_written, record_file
from fieldbo.results import result as outcome
from fieldbo.results.curve import Scorer
from fieldbo.runs import folder as folders
from fieldbo.runs.folder import begin
from fieldbo.runs.loop import BrokenOffError, Interrupted
from fieldbo.runs.replay import load_run, mission_of, notes
from fieldbo.runs.runner import resume, run
from fieldbo.runs.state import RunState
from fieldbo.testing import small_chain, small_mission
from fieldbo.vehicles.base import Simulated
from fieldbo.vehicles.by_hand import ByHand
from fieldbo.vehicles.load import recorded_settings


class Died(BaseException):
    """The death of a process: nothing catches it."""


def killed_after(record, writes):
    """Let the writer of a record die after a number of writes."""
    append, done = record._append, [0]

    def write(rows):
        append(rows)
        done[0] += 1
        if done[0] >= writes:
            raise Died

    record._append = write


def new(folder, name="small-1"):
    folder.mkdir(parents=True, exist_ok=True)
    return Record.create(folder / "run.sqlite", name, {"mission": "small"})


def said(file):
    """Return the content of a record without its times."""
    with Record(file) as record:
        return [(row.kind, row.order, row.body) for row in record.rows()]


def unbroken(mission, folder, vehicle=None):
    with new(folder) as record:
        result = run(mission, None if vehicle is None else [vehicle(mission)], record)
    return result, said(record.file)


def broken_off(mission, folder, writes, vehicle=None):
    """Run until a number of writes are on disk; return the record."""
    with new(folder) as record:
        killed_after(record, writes)
        with pytest.raises(Died):
            run(mission, None if vehicle is None else [vehicle(mission)], record)
    return record.file


def gone_on(mission, file, vehicle=None):
    with Record(file) as record:
        return resume(mission, record, None if vehicle is None else [vehicle(mission)])


def writes_in(log):
    """Return the number of writes of a log; the orders of a batch are a single write."""
    orders = [kind in ORDERS for kind, _, _ in log]
    of = [body.get("message", {}).get("vehicle") for _, _, body in log]
    return len(log) - sum(a and b and of[n] == of[n + 1] for n, (a, b) in enumerate(pairwise(orders)))


def fleet(mission):
    far = mission.world.domain.sites[-1]
    second = replace(mission.vehicles[0], start=far, home=far, battery=0.6 * mission.vehicles[0].battery)
    return replace(mission, vehicles=(mission.vehicles[0], second))


def learning(mission, every=4):
    return replace(mission, model=Model(learn={"every": every}))


@dataclass(frozen=True, eq=False)
class Talkative(Random):
    """Gives reasons under keys that the agent uses, too, and of any form."""

    def suggest(self, state, memory):
        decision = super().suggest(state, memory)
        own = {"end_reason": "no reason", "limit": 3, "operator": "next", "recharge": [1], "stop": None}
        return replace(decision, why={**decision.why, **own})


KNOWN = {"model": {"learn": False}}
CHAIN = {"world": small_chain(), "battery": 70.0, "initial": 3}
MISSIONS = {
    "truvar": lambda: small_mission(TruVaR(), battery=50.0),
    "bounds that are kept": lambda: small_mission(GCHK(intersect=True), battery=50.0),
    "random": lambda: small_mission(Random(), battery=50.0, home=False),
    "lawnmower": lambda: small_mission(Lawnmower(lines=3, samples=3), battery=60.0),
    "optimum": lambda: small_mission(EI(), battery=40.0, initial=3),
    "refits": lambda: learning(small_mission(TruVaR(), battery=60.0, initial=3)),
    "refits along the water": lambda: replace(
        small_mission(TruVaR(), battery=60.0, initial=3),
        model=Model(kernel="shore-matern52", learn={"every": 4}),
    ),
    "batch": lambda: replace(small_mission(TruVaR(), battery=60.0), batch=3),
    "batch, one by one": lambda: replace(small_mission(Straddle(), battery=60.0), batch=3),
    "lambo": lambda: learning(small_mission(LaMBO(candidates=64), **CHAIN), 5),
    "subsets": lambda: small_mission(Subsets(samples=8, candidates=16), battery=6.0, initial=3),
    "fleet": lambda: fleet(small_mission(Straddle(), battery=40.0)),
    "fleet in batches with refits": lambda: replace(
        learning(fleet(small_mission(TruVaR(), battery=40.0, initial=3))), batch=3
    ),
    "a goal": lambda: replace(
        learning(small_mission(Straddle(), battery=90.0, initial=3)), stop=StopRule(expected_f1=0.8)
    ),
    "an optimum, with gaps to close": lambda: replace(
        learning(small_mission(EI(), battery=90.0, initial=3)), stop=StopRule(regret=0.1)
    ),
    "a claim that waits for a fit": lambda: learning(
        small_mission(TruVaR(), battery=500.0, home=False, initial=3), 6
    ),
    "reasons of its own": lambda: several_batteries(2, Talkative()),
    "steps": lambda: replace(fleet(small_mission(Random(), battery=60.0, initial=4)), max_steps=7),
}


def test_a_run_whose_policy_gives_any_reasons_is_resumed(tmp_path):
    mission = MISSIONS["reasons of its own"]()
    result, log = unbroken(mission, tmp_path / "unbroken")
    assert result.accounts[0].batteries_used == 2
    for cut in (4, writes_in(log) // 2, writes_in(log) - 2):
        file = broken_off(mission, tmp_path / str(cut), cut)
        assert gone_on(mission, file).end_reason is result.end_reason
        assert said(file) == log


@pytest.mark.slow
@pytest.mark.parametrize("name", MISSIONS)
def test_a_resumed_run_equals_the_uninterrupted_one_from_any_row(name, tmp_path):
    mission = MISSIONS[name]()
    result, log = unbroken(mission, tmp_path / "unbroken")
    writes = writes_in(log)
    for cut in sorted({1, 2, 3, *range(4, writes, max(1, writes // 6)), writes - 1}):
        file = broken_off(mission, tmp_path / str(cut), cut)
        resumed = gone_on(mission, file)
        assert said(file) == log, f"broken off after {cut} of {writes} writes"
        assert resumed.end_reason is result.end_reason
        assert repr(resumed.curve) == repr(result.curve)
        assert np.array_equal(resumed.surface.mean, result.surface.mean)
        assert np.array_equal(resumed.surface.variance, result.surface.variance)
        assert resumed.summary() == result.summary()


@pytest.mark.slow
def test_a_run_interrupted_repeatedly_reaches_the_same_end(tmp_path):
    mission = MISSIONS["fleet in batches with refits"]()
    _, log = unbroken(mission, tmp_path / "unbroken")
    file = broken_off(mission, tmp_path / "r", 2)
    while (reason := Record(file).end_reason) is None:
        with Record(file) as record:
            killed_after(record, 3)
            try:
                resume(mission, record)
            except Died:
                continue
    assert reason is not None
    assert said(file) == log


def test_a_replay_neither_asks_the_policy_nor_fits_the_model(tmp_path, monkeypatch):
    mission = learning(small_mission(TruVaR(), battery=60.0, initial=3))
    result, _ = unbroken(mission, tmp_path)

    def refuse(*args, **settings):
        raise AssertionError("a replay chooses nothing")

    monkeypatch.setattr(TruVaR, "suggest", refuse)
    monkeypatch.setattr(TruVaR, "suggest_batch", refuse)
    monkeypatch.setattr(Model, "fitted", refuse)
    again = gone_on(mission, tmp_path / "run.sqlite")
    assert again.summary() == result.summary()
    assert repr(again.curve) == repr(result.curve)


def test_a_replay_computes_neither_scores_that_the_record_has_nor_beliefs_between_orders(
    tmp_path, monkeypatch
):
    mission = learning(small_mission(Random(), battery=90.0, initial=3))
    result, log = unbroken(mission, tmp_path)
    counted = {"scores": 0, "beliefs": 0}

    def counting(name, method):
        def count(*given):
            counted[name] += 1
            return method(*given)

        return count

    monkeypatch.setattr(Scorer, "step", counting("scores", Scorer.step))
    monkeypatch.setattr(OnlineModel, "_build_surface", counting("beliefs", OnlineModel._build_surface))
    state = load_state(mission, tmp_path / "run.sqlite")
    assert repr(state.curve) == repr(list(result.curve))
    fits = sum(kind == "fitted" for kind, _, _ in log)
    assert fits > 2 >= counted["beliefs"], fits  # before the first reading, and for the score below
    assert counted["scores"] == 1  # of the trip home, after which there was no order


def test_scores_that_a_record_lacks_are_computed(tmp_path):
    mission = learning(small_mission(TruVaR(), battery=60.0, initial=3))
    result, _ = unbroken(mission, tmp_path)
    with Record(tmp_path / "run.sqlite") as record:
        rows = record.rows()
    old = [replace(row, body={k: v for k, v in row.body.items() if k != "scores"}) for row in rows]
    state = RunState(mission, "run")
    state.replay(old)
    assert repr(state.curve) == repr(list(result.curve))
    assert [*state.new_scores()] == [str(n) for n in range(len(result.curve))]
    assert state.new_scores() == {}


def test_resuming_an_ended_run_returns_its_result_and_writes_nothing(tmp_path):
    mission = small_mission(Random())
    result, log = unbroken(mission, tmp_path)
    before = (tmp_path / "run.sqlite").read_bytes()

    again = gone_on(mission, tmp_path / "run.sqlite")

    assert again.end_reason is result.end_reason
    assert said(tmp_path / "run.sqlite") == log
    assert (tmp_path / "run.sqlite").read_bytes() == before


def test_a_run_without_any_order_can_be_resumed(tmp_path):
    mission = small_mission(Random())
    _, log = unbroken(mission, tmp_path / "unbroken")
    new(tmp_path / "r").close()

    gone_on(mission, tmp_path / "r" / "run.sqlite")

    assert said(tmp_path / "r" / "run.sqlite") == log


def test_on_step_is_called_for_the_replayed_part_and_each_new_order(tmp_path):
    mission = small_mission(Random(), battery=50.0)
    file = broken_off(mission, tmp_path, 9)
    steps = []
    with Record(file) as record:
        result = resume(mission, record, on_step=steps.append)
    assert [s.step for s in result.curve[:-1]] == list(range(1, len(result.curve)))
    assert tuple(steps) == result.curve[3:]


# -- what was out ----------------------------------------------------------------------------------------


class Robot:
    """The robot at the other end of a link: it outlives the process that sends it orders."""

    def __init__(self, mission, parts=1):
        self.hands, self.parts = Simulated(mission), parts
        self.log, self.sent = {}, []

    def carry_out(self, order):
        self.sent.append(order.id)
        if order.id in self.log:
            return
        self.hands.send(order)
        [event] = self.hands.events(0.0)
        share = replace(event, cost=event.cost / self.parts)
        whole = [replace(share, part=k, last=k == self.parts - 1) for k in range(self.parts)]
        if isinstance(order, GoHome):
            whole = [event]
        self.log[order.id] = whole


class Remote(Simulated):
    """A vehicle that asks the robot for the outcome of an order."""

    def __init__(self, mission, robot, heard=None):
        super().__init__(mission)
        self.robot, self.told, self.resumed = robot, heard, None
        self.news = []

    def resume(self, orders, events):
        self.resumed = list(orders), list(events)

    def send(self, order):
        self.robot.carry_out(order)
        self.news += self.robot.log[order.id][: self.told]

    def events(self, timeout_s):
        news, self.news = self.news, []
        return news

    def outcome(self, order):
        return self.robot.log.get(order)


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("writes", [4, 5, 6, 7])
def test_an_order_completed_during_the_interruption_is_recorded_once(tmp_path, parts, writes):
    mission = small_mission(Random(), battery=40.0)
    whole = Robot(mission, parts)
    _, log = unbroken(mission, tmp_path / "unbroken", lambda m: Remote(m, whole))
    robot = Robot(mission, parts)
    file = broken_off(mission, tmp_path / "r", writes, lambda m: Remote(m, robot))
    resumed = []

    def again(m):
        resumed.append(Remote(m, robot))
        return resumed[0]

    gone_on(mission, file, again)

    assert said(file) == log
    assert sorted(robot.sent) == sorted(set(robot.sent)) == sorted(whole.sent)
    orders, events = resumed[0].resumed
    kinds = [kind for kind, _, _ in log[:writes]]
    assert len(orders) == sum(kind in ORDERS for kind in kinds)
    assert len(events) == kinds.count("observation")


def test_an_order_that_never_arrived_is_sent_again_with_its_id(tmp_path):
    mission = small_mission(Random(), battery=40.0)
    robot = Robot(mission)
    file = broken_off(mission, tmp_path, 3, lambda m: Remote(m, robot))
    assert robot.sent == ["small-1/0"]  # the second one was recorded but not sent

    gone_on(mission, file, lambda m: Remote(m, robot))

    asked = [order for kind, order, _ in said(file) if kind in ORDERS]
    assert robot.sent == asked
    assert robot.sent[:2] == ["small-1/0", "small-1/1"]


def test_an_order_that_is_not_repeated_is_lost_on_record_before_the_next_one_leaves(tmp_path, monkeypatch):
    """A second death in between must not lead the vehicle back to it."""
    mission = replace(small_mission(Random(), battery=40.0), batch=2)
    monkeypatch.setattr(VehicleState, "can_repeat", lambda state, order: False)
    file = broken_off(mission, tmp_path, 1)
    found = []

    class Doubtful(Simulated):
        def may_repeat(self, order):
            return order == "small-1/0"

        def send(self, order):
            found.append([order.id, *((kind, about) for kind, about, _ in said(file) if kind == "lost")])
            super().send(order)

    gone_on(mission, file, Doubtful)

    assert found[0] == ["small-1/1", ("lost", "small-1/0")]


@pytest.mark.parametrize("killed", [False, True])
def test_a_part_that_is_missing_is_asked_for_at_the_end_and_when_the_run_is_resumed(tmp_path, killed):
    mission = replace(small_mission(Random(), battery=40.0), max_steps=3)
    lost = "small-1/1"

    class Lossy(Simulated):
        def events(self, timeout_s):
            events = super().events(timeout_s)
            return [replace(e, part=1) if getattr(e, "order", None) == lost else e for e in events]

        def outcome(self, order):
            if order != lost:
                return super().outcome(order)
            (whole,) = self._outcomes[order]
            part = self.issued.observed(0.5, noise_variance=0.01, cost=0.0, time_s=whole.time_s)
            return [replace(whole, part=1), replace(part, last=False)]

        def send(self, order):
            super().send(order)
            if order.id == lost:
                Lossy.issued = order

    if killed:
        file = broken_off(mission, tmp_path, 5, Lossy)
        assert [body["message"].get("part", 0) for kind, order, body in said(file) if order == lost][-1] == 1
        gone_on(mission, file, Lossy)
        log = said(file)
    else:
        _, log = unbroken(mission, tmp_path, Lossy)
    parts = [b["message"].get("part", 0) for k, order, b in log if k == "observation" and order == lost]
    assert parts == [1, 0]


def test_a_vehicle_that_fails_is_held_and_the_run_can_be_resumed(tmp_path):
    held = []

    class Dead(Simulated):
        def outcome(self, order):
            raise VehicleError("nobody answers")

        def hold(self):
            held.append(True)

    mission = small_mission(Random())
    _, log = unbroken(mission, tmp_path / "unbroken")
    file = broken_off(mission, tmp_path / "r", 3)
    with pytest.raises(BrokenOffError, match="nobody answers") as stop:
        gone_on(mission, file, Dead)
    assert len(stop.value.result.observations) == 1
    assert held == [True]

    gone_on(mission, file)
    assert said(file) == log


def test_a_run_with_vehicles_is_not_resumed_as_a_simulation(tmp_path):
    with Record.create(tmp_path / "run.sqlite", "r", {"vehicles": [{"kind": "by-hand"}]}) as record:
        with pytest.raises(InputError, match="began with vehicles"):
            resume(small_mission(), record)
        assert record.empty


# -- events as they come ---------------------------------------------------------------------------------


class Faulty(Simulated):
    """Reports lost orders later, repeats events, splits legs into parts, and sends telemetry."""

    def __init__(self, mission):
        super().__init__(mission)
        self.late = []

    def events(self, timeout_s):
        events, self.late = self.late, []
        for event in super().events(timeout_s):
            events += self.of(int(event.order.rsplit("/", 1)[1]), event)
        return events

    def of(self, n, event):
        if n % 6 == 1:
            self.late.append(event)
            return [Lost(event.order, "no link")]
        if n % 6 == 2:
            return [event, event]
        if n % 6 == 3:
            half = replace(event, cost=0.5 * event.cost, last=False)
            return [
                half,
                Telemetry(0, event.position, None, event.times_s[-1]),
                replace(half, part=1, last=True),
            ]
        if n % 6 == 4:
            return [Rejected("another/7", "who?"), event]
        return [event]


def test_late_repeated_and_partial_events_are_replayed_identically(tmp_path):
    mission = learning(replace(small_mission(Random(), battery=80.0), batch=2))
    result, log = unbroken(mission, tmp_path, Faulty)
    assert {"lost", "telemetry", "note", "fitted"} <= {kind for kind, _, _ in log}

    state = load_state(mission, tmp_path / "run.sqlite")

    again = state.result()
    assert again.summary() == result.summary()
    assert repr(again.curve) == repr(result.curve)
    assert np.array_equal(again.surface.mean, result.surface.mean)
    assert repr([b.lines for b in again.accounts]) == repr([b.lines for b in result.accounts])


def load_state(mission, file):
    with Record(file) as record:
        state = RunState(mission, record.name)
        state.replay(record.rows())
    return state


def test_an_event_that_can_not_be_taken_in_is_noted_its_order_is_lost_and_the_run_continues(tmp_path):
    class Crooked(Simulated):
        def events(self, timeout_s):
            events = super().events(timeout_s)
            return [self.bent(e) if e.order.endswith("/3") else e for e in events]

        def bent(self, e):
            return Observation(
                e.order, np.zeros((1, 5)), e.values, e.noise_variances, e.times_s, np.zeros(5), 1.0
            )

        def outcome(self, order):
            return None

    mission = small_mission(Random())
    with new(tmp_path / "r") as record:
        result = run(mission, [Crooked(mission)], record)
        rows = record.rows()

    [lost] = [row for row in rows if row.kind == "lost"]
    [note] = [row for row in rows if row.kind == "note"]
    assert lost.order == note.order == f"{record.name}/3"
    assert "5 coordinates" in lost.body["message"]["reason"]
    assert "5 coordinates" in note.body["text"]
    assert f"{record.name}/3" not in {event.order for event in result.observations}
    assert gone_on(mission, record.file).summary() == result.summary()


# -- Ctrl-C ----------------------------------------------------------------------------------------------


def test_a_resumed_run_can_be_interrupted_and_resumed_again(tmp_path):
    mission = small_mission(Random(), battery=60.0)
    _, log = unbroken(mission, tmp_path / "unbroken")

    def press_at(number):
        return lambda step: signal.raise_signal(signal.SIGINT) if step.step == number else None

    with new(tmp_path / "r") as record, pytest.raises(Interrupted):
        run(mission, record=record, on_step=press_at(3))
    for number in (3, 6):
        with Record(record.file) as record, pytest.raises(Interrupted) as stopped:
            resume(mission, record, on_step=press_at(number))
        assert len(stopped.value.result.curve) == number
    assert Record(record.file).end_reason is None

    gone_on(mission, record.file)
    assert said(record.file) == log


# -- by hand ---------------------------------------------------------------------------------------------


class Typist:
    def __init__(self, *answers):
        self.answers, self.printed = list(answers), []

    def read(self, prompt):
        if not self.answers:
            raise EOFError
        return self.answers.pop(0)

    def at(self, mission):
        return ByHand(mission, read=self.read, write=self.printed.append)


def test_by_hand_only_the_outstanding_order_is_asked_again(tmp_path):
    mission = small_mission(Random(), battery=40.0)
    with new(tmp_path) as record, pytest.raises(Interrupted):
        run(mission, [Typist("", "0.5", "2", "", "0.25", "3").at(mission)], record)
    before = said(record.file)
    assert [kind for kind, _, _ in before] == ["query", "observation"] * 2 + ["query"]
    typist = Typist("", "1.5", "4")

    with Record(record.file) as record, pytest.raises(Interrupted) as stopped:
        resume(mission, record, [typist.at(mission)])

    result = stopped.value.result
    assert result.values.tolist() == [0.5, 0.25, 1.5]
    assert result.cost == 9.0
    assert typist.printed[1].startswith("\nsmall-1/2: go to ")
    assert said(record.file)[:5] == before
    times = [o.times_s[-1] for o in result.observations]
    assert times == sorted(times)


# -- a single writer, many readers -----------------------------------------------------------------------


def test_a_second_writer_is_rejected_but_a_reader_is_not(tmp_path):
    mission = small_mission(Random(), battery=60.0)
    seen = []

    def look(step):
        if step.step == 3:
            with Record(tmp_path / "run.sqlite") as other:
                seen.append(len(other.rows()))
                with pytest.raises(RecordError, match="another process"):
                    resume(mission, other)
            seen.append(is_being_written(tmp_path / "run.sqlite"))

    with new(tmp_path) as record:
        run(mission, record=record, on_step=look)

    assert seen == [6, True]
    assert not is_being_written(record.file)
    assert not (tmp_path / "run.lock").exists()


WRITER = """
import sys
from pathlib import Path
from fieldbo.record.record import Record
record = Record(Path(sys.argv[1]))
record.claim()
print("mine", flush=True)
sys.stdin.read()
"""


def test_the_right_to_write_ends_with_the_process(tmp_path):
    mission = small_mission(Random())
    file = broken_off(mission, tmp_path, 5)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    other = subprocess.Popen([sys.executable, "-c", WRITER, str(file)], **pipes, text=True)
    try:
        assert other.stdout.readline() == "mine\n"
        before = said(file)
        with pytest.raises(RecordError, match="still in progress"):
            gone_on(mission, file)
        assert said(file) == before
        assert is_being_written(file)
    finally:
        other.kill()
        other.wait()
    assert not is_being_written(file)
    assert gone_on(mission, file).end_reason is EndReason.BATTERY_SPENT


# -- run folders -----------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A run folder whose run was interrupted after a few orders."""
    monkeypatch.chdir(tmp_path)
    mission = fieldbo.load_mission(
        "lake-level-set", {"policy": {"kind": "straddle"}, "agent": {"battery": 900}, **KNOWN}
    )
    place, record = begin(mission)
    with record:
        killed_after(record, 7)
        with pytest.raises(Died):
            run(mission, record=record)
    return place


def test_the_command_reaches_the_same_end_as_an_uninterrupted_run(folder, command):
    code, out, err = command("resume", folder)
    assert (code, err) == (0, "")
    assert f"Resuming {folder.name} after 4 orders" in out
    known = ("--set", "model.learn=false")
    command(
        "run",
        "lake-level-set",
        "--policy",
        "straddle",
        "--battery",
        "900",
        *known,
        "--out",
        f"other/{folder.name}",
    )
    for name in ("observations.csv", "curve.csv", "ledger.csv", "path.csv", "summary.json"):
        assert (folder / name).read_text() == Path("other", folder.name, name).read_text()


def test_a_run_can_be_given_by_its_name_below_runs(folder, command):
    assert record_file(folder.name) == record_file(folder) == record_file(folder / "run.sqlite")
    assert command("resume", folder.name)[0] == 0
    code, _, err = command("resume", "lake-levl-set-1")
    assert (code, "did you mean 'lake-level-set-1'?" in err) == (2, True)


def test_resuming_an_ended_run_writes_its_missing_files(folder, command):
    command("resume", folder)
    kept = {f.name: f.read_bytes() for f in folder.iterdir() if f.is_file()}
    (folder / "summary.json").unlink()
    (folder / "map.png").unlink()
    (folder / "path.csv").write_text("my own notes")

    code, out, err = command("resume", folder)

    assert (code, err) == (0, "")
    assert "has ended (battery spent)" in out
    assert "map.png, summary.json" in out
    now = {f.name: f.read_bytes() for f in folder.iterdir() if f.is_file()}
    assert now == {**kept, "path.csv": b"my own notes"}


def test_a_folder_without_a_record_is_an_error_with_the_command_to_start_it(folder, command):
    for file in folder.glob("run.*"):
        file.unlink()
    code, _, err = command("resume", folder)
    assert code == 2
    assert "no run has begun" in err
    assert f"fieldbo run {folder}/mission.toml" in err
    assert command("resume", ".")[0] == command("resume", "nowhere")[0] == 2


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("mission.toml", "battery = 900", "battery = 950"),
        ("lake-transect/world.toml", "noise_sd", "# noise_sd"),
        ("lake-transect/world.toml", None, None),
    ],
)
def test_a_run_with_a_changed_mission_or_world_is_not_resumed(folder, command, file, old, new):
    changed = folder / file
    if old is None:
        changed.write_text(changed.read_text() + "\n# a remark\n")
    else:
        assert old in changed.read_text()
        changed.write_text(changed.read_text().replace(old, new))
    before = contents(folder)

    code, _, err = command("resume", folder)

    assert code == 2
    assert file.rsplit("/", 1)[-1] in err
    assert contents(folder) == before


def contents(folder):
    return {f: f.read_bytes() for f in sorted(folder.rglob("*")) if f.is_file()}


def test_a_changed_document_of_the_world_does_not_matter(folder):
    document = folder / "lake-transect" / "README.md"
    document.write_text(document.read_text() + "\nA remark.\n")
    with Record(folder / "run.sqlite") as record:
        assert not any(name.endswith(".md") for name in record.description["files"])
        mission_of(record)


def test_a_changed_file_is_named_with_the_command_for_a_new_run(folder):
    file = folder / "lake-transect" / "world.toml"
    file.write_text(file.read_text() + "\n# a remark\n")
    with Record(folder / "run.sqlite") as record, pytest.raises(InputError) as refused:
        mission_of(record)
    assert "lake-transect/world.toml" in str(refused.value)
    assert f"fieldbo run {folder}/mission.toml" in str(refused.value).replace("\n", "").replace(" " * 12, " ")


def test_a_run_of_another_version_is_resumed_with_a_note(folder, command, monkeypatch):
    with Record(folder / "run.sqlite") as record:
        assert notes(record) == []
    monkeypatch.setattr(fieldbo, "__version__", "99.0")
    code, out, _ = command("resume", folder)
    assert code == 0
    assert "(now 99.0)" in out


@pytest.mark.slow
@pytest.mark.parametrize("what", ["cut", "noise", "another's", "flipped"])
def test_a_damaged_or_foreign_record_is_rejected_and_unchanged(folder, command, what):
    command("resume", folder)
    file = folder / "run.sqlite"
    content = bytearray(file.read_bytes())
    if what == "cut":
        content = content[:9000]
    elif what == "noise":
        content = bytearray(np.random.default_rng(0).bytes(20000))
    elif what == "another's":
        content[68:72] = b"abcd"
    elif what == "flipped":
        at = content.rindex(b'"values": [') + 12
        content[at] = ord("1") + (content[at] == ord("1"))
    file.write_bytes(content)
    file.with_name("run.sqlite-wal").write_bytes(b"")
    file.with_name("run.sqlite-shm").write_bytes(b"x" * 32768)
    before = contents(folder)

    code, _, err = command("resume", folder)

    assert code == 2
    assert "damaged" in err or "not the record of a run" in err
    assert contents(folder) == before
    output = command("runs")[1]
    assert "damaged" in output or "not the record of a run" in output
    assert contents(folder) == before


@pytest.mark.slow
def test_by_hand_the_command_asks_the_outstanding_order_again(folder):
    def hand(*args, typed):
        return subprocess.run(
            [sys.executable, "-m", "fieldbo", *args],
            input=typed, capture_output=True, text=True, timeout=SLOW_S, check=False,
        )  # fmt: skip

    first = hand(
        "run", "lake-level-set", "--policy", "straddle", "--by-hand", "--out", "h", typed="\n1.5\n\n\n2.5\n\n"
    )
    assert first.returncode == 130
    assert "fieldbo resume h" in first.stdout
    again = hand("resume", "h", typed="\n0.75\n\n")
    assert (again.returncode, "Traceback" in again.stderr) == (130, False)
    assert "Resuming h after 3 orders" in again.stdout
    assert "h/2: go via (742.857, 0) to along 1400 m, depth 0 m" in again.stdout
    with Record(Path("h/run.sqlite")) as record:
        assert record.description["vehicles"] == [{"kind": "by-hand"}]
        values = [row.message.values.tolist() for row in record.rows() if row.kind == "observation"]
    assert values == [[1.5], [2.5], [0.75]]


def test_runs_lists_the_state_of_each_run(folder, said_of_runs):
    [line] = said_of_runs()
    assert line[:2] == [folder.name, "lake-level-set"]
    assert line[4:] == ["can", "be", "resumed", "4", "3", *line[9:]]
    with Record(folder / "run.sqlite") as record:
        record.claim()
        assert said_of_runs()[0][4] == "running"
    gone_on(mission_of(Record(folder / "run.sqlite")), folder / "run.sqlite")
    [line] = said_of_runs()
    assert line[4:6] == ["battery", "spent"]
    assert line[-3:] == ["of", "900", "s"]
    Path("runs/empty").mkdir()
    Path("runs/empty/mission.toml").touch()
    assert said_of_runs()[0] == ["empty", "not", "begun"]


@pytest.fixture
def said_of_runs(command):
    def lines():
        code, out, err = command("runs")
        assert (code, err) == (0, "")
        return [line.split() for line in out.splitlines()[1:]]

    return lines


def test_a_run_can_be_resumed_by_its_folder(folder):
    result = fieldbo.resume(folder)
    assert result.end_reason is EndReason.BATTERY_SPENT
    assert fieldbo.resume(str(folder)).cost == result.cost


def test_resuming_a_mission_without_its_record_is_an_error():
    with pytest.raises(InputError, match="without a record"):
        fieldbo.resume(small_mission())


def test_a_run_is_loaded_from_its_folder(folder):
    state = load_run(folder)
    assert state.end_reason is None
    assert len(state.curve) == 3
    assert list(state.outstanding) == [f"{folder.name}/3"]
    assert state.mission.name == "lake-level-set"
    before = contents(folder)
    result = state.result()
    assert len(result.values) == 3
    assert contents(folder) == before


@pytest.mark.slow
def test_a_replay_is_less_work_than_the_run(tmp_path):
    mission = fieldbo.load_mission("lake-level-set", {"agent": {"battery": 1500}})
    run(mission)  # loads the loops
    with new(tmp_path, "lake") as record:
        run_lines = lines_run(lambda: run(mission, record=record))
    assert lines_run(lambda: load_state(mission, record.file)) < run_lines


@dataclass(frozen=True)
class Forgetful(Random):
    """Counts in its memory how often it was asked."""

    def start(self, state):
        return 0

    def suggest(self, state, memory):
        return replace(super().suggest(state, None), memory=memory + 1)


def test_the_memory_of_the_policy_at_a_stop_is_replayed(tmp_path):
    mission = small_mission(Forgetful(), battery=40.0, home=False)
    mission = replace(mission, vehicles=(mission.vehicles[0], replace(mission.vehicles[0], battery=25.0)))
    _, log = unbroken(mission, tmp_path)
    first = next(n for n, (kind, _, _) in enumerate(log) if kind == "stop")
    assert log[first][2]["memory"] == 1 + max(
        body["memory"] for kind, _, body in log[:first] if kind == "query"
    )
    assert log[first][2]["why"]["end_reason"] == "battery spent"
    with Record(tmp_path / "run.sqlite") as record:
        state = RunState(mission, record.name)
        state.replay(record.rows()[: first + 1])
    assert state.agent.memory == log[first][2]["memory"]


def test_a_run_stopped_by_a_full_disk_can_be_resumed(tmp_path):
    mission = MISSIONS["batch"]()
    _, log = unbroken(mission, tmp_path / "unbroken")
    with new(tmp_path / "r") as record:
        pages = record._connection.execute("PRAGMA page_count").fetchone()[0]
        record._connection.execute(f"PRAGMA max_page_count = {pages + 3}")
        with pytest.raises(BrokenOffError, match="full"):
            run(mission, record=record)
    assert 0 < len(said(record.file)) < len(log)

    gone_on(mission, record.file)

    assert said(record.file) == log


def test_a_disk_that_is_full_at_the_very_end_leaves_the_result_and_a_run_to_resume(tmp_path, monkeypatch):
    mission = MISSIONS["batch"]()
    whole, log = unbroken(mission, tmp_path / "unbroken")

    def full(reason):
        raise RecordError("the disk is full")

    with new(tmp_path / "r") as record, monkeypatch.context() as patch:
        patch.setattr(record, "end", full)
        with pytest.raises(BrokenOffError, match="full") as stopped:
            run(mission, record=record)
    assert stopped.value.result.values.tolist() == whole.values.tolist()
    assert stopped.value.result.end_reason is None

    gone_on(mission, record.file)

    assert said(record.file) == log


def test_a_simulated_run_is_not_resumed_with_a_robot(folder, command):
    before = contents(folder)
    code, _, err = command("resume", folder, "--vehicle", "mqtt")
    assert (code, "was given for a simulated run" in err) == (2, True)
    assert contents(folder) == before


def test_another_robot_continues_the_session_of_the_run(folder):
    mission = fieldbo.load_mission("lake-level-set", {"policy": {"kind": "straddle"}})
    [begun] = [recorded_settings("mqtt")]
    [same] = continuing(mission, [begun], [])
    [other] = continuing(mission, [begun], ["mqtt"])
    assert same["session"] == other["session"] == begun["session"]


def test_as_many_vehicles_continue_a_run_as_began_it():
    with pytest.raises(InputError, match="2 vehicles for a run with 1"):
        continuing(
            fieldbo.load_mission("lake-level-set", {"policy": {"kind": "straddle"}}),
            [recorded_settings("mqtt")],
            ["mqtt", "mqtt"],
        )


@pytest.mark.slow
def test_a_resumed_run_stays_with_its_new_vehicle(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", StringIO())  # the end of the input is a Ctrl-C
    boat = ROOT / "vehicles" / "boat-mqtt.toml"
    begun = recorded_settings(str(boat))
    place, record = begin(
        fieldbo.load_mission("lake-level-set", {"policy": {"kind": "straddle"}}), vehicles=[begun]
    )
    record.close()

    assert command("resume", place, "--vehicle", "by-hand")[0] == 130
    assert command("resume", place)[0] == 130
    with Record(place / "run.sqlite") as record:
        assert record.vehicles == [{"kind": "by-hand"}]
        assert record.description["vehicles"] == [begun]
        assert [row.kind for row in record.rows()].count("vehicles") == 1
    assert load_run(place).agent.issued


def test_a_vehicle_that_does_not_answer_does_not_replace_the_one_of_a_run(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    Path("deaf.toml").write_text('format = 1\n[link]\nkind = "mqtt"\nport = 1\n[watch]\nconnect_s = 0.2\n')
    place, record = begin(
        fieldbo.load_mission("lake-level-set", {"policy": {"kind": "straddle"}}),
        vehicles=[recorded_settings("by-hand")],
    )
    record.close()
    assert command("resume", place, "--vehicle", "deaf.toml")[0] == 2
    with Record(place / "run.sqlite") as record:
        assert record.vehicles == [{"kind": "by-hand"}]


def test_a_vehicle_that_fails_to_hold_does_not_lose_the_result(tmp_path):
    class Deaf(Simulated):
        def hold(self):
            raise VehicleError("the link is down")

    mission = small_mission(Random(), battery=60.0)
    with new(tmp_path) as record, pytest.raises(Interrupted) as stopped:
        run(mission, [Deaf(mission)], record, on_step=lambda step: signal.raise_signal(signal.SIGINT))
    assert len(stopped.value.result.curve) == 1


# -- what was spent, and files that can't be written -----------------------------------------------------


class Thirsty(Simulated):
    """Loses an order, reports a battery lower than its orders explain, and repeats every event."""

    def events(self, timeout_s):
        events = super().events(timeout_s)
        if events and events[0].order.endswith("/2"):
            position, at = events[0].position, float(events[0].times_s[-1])
            return [Lost(events[0].order, "no link"), Telemetry(0, position, 350.0, at)]
        return events * 2


def test_runs_lists_the_battery_spent_by_the_ledger(tmp_path, monkeypatch, said_of_runs):
    monkeypatch.chdir(tmp_path)
    mission = fieldbo.load_mission(
        "lake-level-set", {"policy": {"kind": "straddle"}, "agent": {"battery": 900}, **KNOWN}
    )
    folder, record = begin(mission)
    with record:
        result = run(mission, [Thirsty(mission)], record)
    read = sum(o.cost for o in result.observations)
    assert result.cost > read + 50, "telemetry changed nothing"

    assert said_of_runs()[0][-4:] == [f"{result.cost:.0f}", "of", "900", "s"]

    (folder / "mission.toml").unlink()  # it can't be replayed any more
    assert said_of_runs()[0][-4:] == ["?", "of", "900", "s"]


def test_listing_simulated_runs_replays_none_of_them(folder, said_of_runs, monkeypatch):
    gone_on(mission_of(Record(folder / "run.sqlite")), folder / "run.sqlite")
    cost = load_run(folder).result().cost

    def refuse(*args):
        raise AssertionError("that takes long")

    monkeypatch.setattr(RunState, "replay", refuse)
    assert said_of_runs()[0][-4:] == [f"{cost:.0f}", "of", "900", "s"]


def full_disk(monkeypatch):
    """Make every file of a run but its record unwritable."""

    def refuse(file, content):
        raise OSError(errno.ENOSPC, "No space left on device", str(file))

    monkeypatch.setattr(outcome, "write_whole", refuse)
    monkeypatch.setattr(folders, "write_whole", refuse)


def test_unwritable_result_files_are_reported_with_the_command_to_write_them(folder, command, monkeypatch):
    with monkeypatch.context() as patch:
        full_disk(patch)
        code, _, err = command("resume", folder)
        assert code == 1
        assert f"{folder}/summary.json can't be written: No space left on device" in err
        assert "the record is complete" in err
        assert f"fieldbo resume {folder}" in err
        code, out, err = command("resume", folder)
        assert (code, "has ended (battery spent)" in out) == (1, True)
        assert "can't be written: No space left on device" in err
    assert not (folder / "summary.json").exists()

    code, out, err = command("resume", folder)

    assert (code, err) == (0, "")
    assert "missing files written: curve.csv" in out
    assert (folder / "summary.json").exists()


def test_a_run_that_can_not_begin_leaves_no_folder(tmp_path, monkeypatch):
    def refuse(*args):
        raise RecordError("database or disk is full")

    monkeypatch.setattr(Record, "create", refuse)
    with pytest.raises(InputError, match="disk is full"):
        begin(fieldbo.load_mission("lake-level-set", {"policy": {"kind": "straddle"}}), tmp_path / "r")
    assert not (tmp_path / "r").exists()


def test_an_error_is_not_reported_as_stopped_by_the_user(folder, command, monkeypatch):
    def lost(self, timeout_s):
        raise VehicleError("the link is down")

    monkeypatch.setattr(Simulated, "events", lost)
    code, out, err = command("resume", folder)

    assert code == 1
    assert "the link is down" in err
    text = " ".join(out.split())
    assert "Stopped by an error. The run folder is complete up to the last observation (3 readings)." in text
    assert "Stopped by you" not in out


def test_a_run_is_resumed_by_a_link_to_its_record(folder, tmp_path, command):
    place = tmp_path / "linked"
    place.mkdir()
    (place / "run.sqlite").symlink_to(folder.absolute() / "run.sqlite")

    code, _, err = command("resume", place)

    assert (code, err) == (0, "")
    assert load_run(folder).end_reason is EndReason.BATTERY_SPENT
    assert [file.name for file in place.iterdir()] == ["run.sqlite"]
    assert (folder / "summary.json").exists()

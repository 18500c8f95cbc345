"""Corrections: a typing error, taken back, leaves no trace in the map, and stays in the record."""

from __future__ import annotations

import json
import math
import os
import pty
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from small_files import mission_text, world_text
from tiers import swept
from working_folder import write

import fieldbo
from fieldbo.agent.agent import Agent
from fieldbo.errors import InputError
from fieldbo.messages import Correction, Fitted, Lost, Observation, Query, Rejected, from_plain, to_plain
from fieldbo.policies.control_sets.subsets import Subsets
from fieldbo.record.record import Record
from fieldbo.runs.folder import begin
from fieldbo.runs.loop import Interrupted
from fieldbo.runs.replay import load_run, mission_of
from fieldbo.runs.runner import correct_run, resume, run
from fieldbo.testing import small_mission
from fieldbo.vehicles.base import Simulated
from fieldbo.vehicles.by_hand import ByHand
from fieldbo.vehicles.dialogue import parts_of
from fieldbo.vehicles.mqtt.protocol import Codec
from fieldbo.vehicles.remote.link import Connection, Goal, GoalResult, Heartbeat, Link, Unreachable
from fieldbo.vehicles.remote.remote import Remote
from fieldbo.vehicles.remote.settings import Arrival, Battery, Reports, VehicleFile, Watch

WORLD = world_text(
    ("east", 0, 10, 6),
    ("north", 0, 4, 5),
    title="a field of 30 sites",
    field={"kind": "gp-draw", "length_scales": [3, 2]},
    value={"name": "temperature", "unit": "°C"},
)
MISSION = mission_text(
    seed=3,
    threshold=0.2,
    battery=60,
    agent={"start": [0, 0], "home": [0, 0]},
    policy="random",
    initial={"count": 2},
    model={"learn": {"every": 4}},
)
WRONG = 247.0
FIXED = {"model": {"learn": False}}
FITTED = {"model": {"average": False}}
TESTED = {"model": {"outliers": "tested"}}
KINDS = {"fixed": FIXED, "learned": {}, "tested": TESTED}
MODELS = pytest.mark.parametrize("changed", KINDS.values(), ids=KINDS)


def models(kept):
    """Try every kind of model; all but one are a sweep."""
    return pytest.mark.parametrize("changed", swept(KINDS.values(), [KINDS[kept]]), ids=KINDS)


def settle(folder):
    """Write a world and a mission into a folder."""
    write(folder / "tiny/world.toml", WORLD)
    write(folder / "m.toml", MISSION)


@pytest.fixture(autouse=True)
def _place(tmp_path, monkeypatch):
    """Work in a folder that holds a world and a mission."""
    monkeypatch.chdir(tmp_path)
    settle(tmp_path)


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """The folder of a run that ended, which stays as it is."""
    place = tmp_path_factory.mktemp("place")
    settle(place)
    folder, record = begin(fieldbo.load_mission(str(place / "m.toml"), FIXED), place / "m-1")
    with record:
        run(mission_of(record), record=record)
    return folder


def mission(changed=None):
    return fieldbo.load_mission("m.toml", changed or {})


class Clumsy(Simulated):
    """A simulated vehicle that reports some readings wrong, and corrects some of them later.

    Parameters
    ----------
    loaded : Mission
    wrong : set of int
        Orders whose reading is reported as 247.
    corrects : mapping of int to int
        With which order the reading of another one is corrected.
    """

    def __init__(self, loaded, wrong=(), corrects=None):
        super().__init__(loaded)
        self.wrong, self.corrects, self.right = set(wrong), dict(corrects or {}), {}

    def events(self, timeout_s):
        new = []
        for event in super().events(timeout_s):
            number = int(event.order.rsplit("/", 1)[1])
            if number in self.corrects:
                order = self.corrects.pop(number)
                new.append(Correction(f"{event.order.rsplit('/', 1)[0]}/{order}", 0, self.right[order]))
            if number in self.wrong:
                self.right[number] = event.values
                event = replace(event, values=np.full(len(event.values), WRONG))  # noqa: PLW2901
            new.append(event)
        return new


ENDED = {}
"""Results and files of runs that were made, by the number of their folder and what they were made of."""


def finished(changed=None, wrong=(), corrects=None):
    """Run a mission to its end, or write the folder of one that was run; return its folder and result."""
    number = 1 + len([*Path().glob("runs/m-*")])
    key = json.dumps([number, changed, sorted(wrong), corrects])
    if key not in ENDED:
        loaded = mission(changed)
        folder, record = begin(loaded)
        with record:
            result = run(loaded, [Clumsy(loaded, wrong, corrects)], record)
        ENDED[key] = result, {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    result, files = ENDED[key]
    for file, content in files.items():
        write(file, content)
    return Path("runs", f"m-{number}"), result


def same_map(a, b):
    """Check that two results have the same map, to the last bit."""
    assert a.surface.mean.tobytes() == b.surface.mean.tobytes()
    assert a.surface.variance.tobytes() == b.surface.variance.tobytes()
    assert a.hyperparameters.to_plain() == b.hyperparameters.to_plain()
    assert a.values.tolist() == b.values.tolist()
    for name, layer in a.maps().data_vars.items():
        np.testing.assert_array_equal(layer.values, b.maps()[name].values)
    numbers, others = a.summary(), b.summary()
    for key in numbers.keys() - {"run", "notes", "cost_to_target", "time_s"}:  # by hand, time is real
        assert json.dumps(numbers[key]) == json.dumps(others[key]), key


def kinds(folder):
    with Record(folder / "run.sqlite") as record:
        return [row.kind for row in record.rows()]


# -- the same map ----------------------------------------------------------------------------------------


@pytest.mark.each_choice
@MODELS
@pytest.mark.parametrize("wrong", [0, 3, 5])
@pytest.mark.parametrize("later", [1, 4])
def test_a_corrected_run_ends_with_the_map_of_one_that_never_had_the_error(changed, wrong, later):
    _, right = finished(changed)

    folder, corrected = finished(changed, {wrong}, {wrong + later: wrong})

    same_map(corrected, right)
    assert [q.site.tolist() for q in corrected.queries] == [q.site.tolist() for q in right.queries]
    same_map(load_run(folder).result(), right)
    assert kinds(folder).count("correction") == 1


@models("tested")
def test_several_corrections_in_any_order_leave_no_trace(changed):
    _, right = finished(changed)

    _, corrected = finished(changed, {1, 4, 6}, {7: 6, 8: 1, 9: 4})

    same_map(corrected, right)


@models("learned")
def test_a_correction_after_a_resume_leaves_no_trace(changed):
    _, right = finished(changed)
    loaded = mission(changed)
    folder, record = begin(loaded)

    def stop(step):
        if step.step == 6:
            raise KeyboardInterrupt

    vehicle = Clumsy(loaded, {3})
    with record, suppress(Interrupted):
        run(loaded, [vehicle], record, on_step=stop)
    again = Clumsy(loaded, (), {7: 3})
    again.right = vehicle.right
    with Record(folder / "run.sqlite") as record:
        result = resume(loaded, record, [again])

    same_map(result, right)


@models("fixed")
def test_an_error_that_is_corrected_at_once_leaves_no_trace_in_the_curve(changed):
    _, right = finished(changed)

    _, corrected = finished(changed, {5}, {6: 5})

    scores = [[replace(step, coverage90=0.0) for step in result.curve] for result in (corrected, right)]
    assert scores[0] == scores[1]


def test_an_uncorrected_error_ruins_the_map():
    _, right = finished(FIXED)
    _, wrong = finished(FIXED, {5})

    assert np.abs(wrong.maps()["mean"].values - right.maps()["mean"].values).max() > 1


def test_a_withdrawn_reading_is_left_out_of_the_model():
    agent = Agent(mission())
    for value in (0.1, WRONG, 0.3):
        agent.tell(agent.ask().observed(value, noise_variance=0.01))

    event = agent.correct(1, None)

    assert np.isnan(event.values).all()
    assert (agent.readings, agent.left_out) == (2, 1)
    assert np.abs(agent.surface.belief.values).max() < 1


def test_a_correction_keeps_costs_and_places():
    agent = Agent(mission())
    agent.tell(agent.ask().observed(WRONG, noise_variance=0.01, cost=3.0))
    before = agent.spent, agent.vehicles[0].position.tolist(), agent.steps

    agent.correct(0, 24.7)

    assert (agent.spent, agent.vehicles[0].position.tolist(), agent.steps) == before
    assert [type(event) for event in agent.history] == [Observation, Correction]


def test_the_readings_and_notes_of_a_result_show_the_correction():
    _, result = finished(FIXED, {5}, {6: 5})

    assert WRONG not in result.values
    assert "corrections of readings: 1; the record keeps what was reported first" in result.notes


# -- what can be corrected -------------------------------------------------------------------------------


def several():
    """Return an agent with an order of three readings in two parts."""
    agent = Agent(mission())
    order = agent.ask()
    first = order.observed(1.0, noise_variance=0.01, cost=1.0)
    more = {"sites": np.repeat(first.sites, 2, axis=0), "noise_variances": np.full(2, 0.01)}
    more |= {"times_s": np.full(2, 1.0), "values": np.array([WRONG, 2.0])}
    agent.tell(replace(first, part=0, last=False, **more))
    agent.tell(replace(first, part=1))
    return agent


def test_a_reading_of_several_needs_its_number():
    agent = several()

    with pytest.raises(InputError, match="has 3 readings") as error:
        agent.correct(0, 24.7)
    assert error.value.fix == "give its number, 0 to 2"
    event = agent.correct("run/0", 24.7, reading=0)
    assert (event.part, event.values.tolist()) == (0, [24.7, 2.0])
    assert agent.correct(0, 5.0, reading=2).part == 1
    assert [event.values.tolist() for event in agent.history if isinstance(event, Observation)] == [
        [24.7, 2.0],
        [5.0],
    ]
    with pytest.raises(InputError, match="no reading 3"):
        agent.correct(0, 1.0, reading=3)


@pytest.mark.parametrize(
    ("event", "problem"),
    [
        (Correction("run/9", 0, [1.0]), "unknown order"),
        (Correction("run/0", 3, [1.0]), "part 3 of run/0, which was not observed"),
        (Correction("run/0", 0, [1.0]), "a correction of 1 reading of run/0"),
    ],
)
def test_a_correction_of_something_else_is_an_error_that_changes_nothing(event, problem):
    agent = several()
    before = agent.surface.mean.tobytes(), len(agent.history)

    with pytest.raises(InputError, match=problem):
        agent.tell(event)

    assert (agent.surface.mean.tobytes(), len(agent.history)) == before


@pytest.mark.parametrize("order", [5, "run/5", -1, "elsewhere/0"])
def test_an_order_without_a_reading_cannot_be_corrected(order):
    with pytest.raises(InputError, match="has no reading"):
        several().correct(order, 1.0)


def test_a_correction_that_changes_nothing_is_ignored():
    agent = several()
    agent.tell(Correction("run/0", 0, [WRONG, 2.0]))

    assert not any(isinstance(event, Correction) for event in agent.history)


def test_a_correction_survives_its_plain_form():
    event = Correction("run/1", 2, [1.5, None])

    plain = json.loads(json.dumps(to_plain(event)))

    assert plain == {"kind": "correction", "order": "run/1", "part": 2, "values": [1.5, None]}
    again = from_plain(plain)
    assert np.array_equal(again.values, event.values, equal_nan=True)
    with pytest.raises(InputError, match="0 entries"):
        Correction("run/1", 0, [])


def test_only_fits_that_saw_the_wrong_reading_are_repeated():
    agent, fits = Agent(mission()), []
    while isinstance(order := agent.ask(), Query) and agent.readings < 11:
        agent.tell(order.observed(0.1 * agent.readings, noise_variance=0.01))
        while (fitted := agent.refit()) is not None:
            agent.tell(fitted)
    fits = [fit.after for fit in agent.online_model.fits]

    agent.correct(fits[1] - 1, 0.5)

    assert [fit.after for fit in agent.online_model.to_repeat] == fits[1:]
    while (fitted := agent.refit()) is not None:
        assert isinstance(fitted, Fitted)
        agent.tell(fitted)
    assert [fit.after for fit in agent.online_model.fits] == fits


# -- policies that remember ------------------------------------------------------------------------------


def test_bounds_drawn_from_a_wrong_reading_are_forgotten():
    memory = {"lcb": 200.0, "ucb": [1.0, 250.0], "worst": 0.0, "explored": 4}

    after = Subsets().observe(None, memory, Correction("run/0", 0, [1.0]))

    assert after == {**memory, "lcb": None, "ucb": [None, None]}
    assert Subsets().observe(None, memory, Lost("run/0", "")) == memory


def test_the_arms_of_a_chain_are_equally_probable_after_a_correction_and_losses_have_the_right_unit():
    lambo = {"policy": {"kind": "lambo", "candidates": 64}, "model": {"learn": False}}
    agent = Agent(fieldbo.load_mission("cell-hartmann-6", lambo))
    values = iter([1.0, WRONG, *np.linspace(1.0, 2.0, 20)])
    while agent.memory is None or agent.memory["step"] < 4:
        agent.tell(agent.ask().observed(next(values), noise_variance=1e-4))
    assert agent.memory["value_scale"] > 200

    agent.correct(1, 1.5)

    assert agent.memory["value_scale"] < 10
    assert np.ptp(agent.memory["log_p"]) == 0.0
    assert agent.memory["step"] == 4


# -- by the command --------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", swept([0, 5], [5]))
@models("fixed")
def test_a_run_corrected_after_its_end_has_the_map_of_one_that_never_had_the_error(changed, wrong, command):
    _, right = finished(changed)
    folder, before = finished(changed, {wrong})
    answers = [right.observations[wrong].values[0]]

    code, out, err = command("correct", folder, wrong, answers[0])

    assert (code, err) == (0, "")
    assert f"{folder.name}: order {wrong} corrected" in out
    result = load_run(folder).result()
    same_map(result, right)
    assert result.end_reason is before.end_reason is right.end_reason
    summary = json.loads((folder / "summary.json").read_text())
    assert summary == json.loads(json.dumps(result.summary()))
    assert str(WRONG) not in (folder / "observations.csv").read_text()


@pytest.mark.slow
def test_a_run_is_corrected_with_a_comma_as_failed_and_below_zero(command):
    folder, _ = finished(FIXED)
    for typed, stored in (("24,7", 24.7), ("-3,5", -3.5), ("FAILED", None), ("1e-3", 0.001)):
        code, _, err = command("correct", folder.name, "2", typed)
        assert (code, err) == (0, "")
        with Record(folder / "run.sqlite") as record:
            [*_, last] = [row for row in record.rows() if row.kind == "correction"]
        assert last.body["message"]["values"] == [stored]
        assert (last.order, last.body["message"]["part"]) == (f"{folder.name}/2", 0)


def test_the_record_keeps_the_wrong_reading_and_appends_the_correction(command):
    folder, _ = finished(FIXED, {2})
    with Record(folder / "run.sqlite") as record:
        before = record.rows()

    command("correct", folder, "2", "0.5")

    with Record(folder / "run.sqlite") as record:
        after = record.rows()
    assert after[: len(before)] == before
    assert [row.kind for row in after[len(before) :]] == ["correction"]


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (("2", "lots"), "'lots' is not a number"),
        (("99", "1"), "order 99 of m-1 has no reading"),
        (("2", "1", "--reading", "1"), "order 2 has no reading 1"),
        (("2", "inf"), "'inf' is not a finite number"),
        (("2", "1e300"), "values has 1e+300"),
        (("9" * 5000, "1"), "has no reading"),
    ],
)
def test_an_impossible_correction_is_an_error_that_writes_nothing(args, problem, command, ended):
    before = {file.name: file.read_bytes() for file in ended.iterdir() if file.is_file()}

    code, _, err = command("correct", ended, *args)

    assert code == 2
    assert problem in err
    assert {file.name: file.read_bytes() for file in ended.iterdir() if file.is_file()} == before


def killed_after_the_correction(folder, order, value):
    """Record a correction alone, as a process that dies before it repeats the fits."""
    state = load_run(folder)
    with Record(folder / "run.sqlite") as record:
        record.event(state.agent.correction(order, value))


def test_a_correction_and_its_fits_are_recorded_together_or_not_at_all(monkeypatch):
    folder, _ = finished(FITTED, {2})
    before = kinds(folder)

    def die(self):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Agent, "refit", die)
        with suppress(KeyboardInterrupt):
            correct_run(folder, 2, 0.5)
    assert kinds(folder) == before

    correct_run(folder, 2, 0.5)
    added = kinds(folder)[len(before) :]
    assert added[0] == "correction"
    assert set(added[1:]) == {"fitted"}


def test_fits_that_are_left_to_repeat_are_repeated_when_an_ended_run_is_resumed():
    _, right = finished(FITTED)
    folder, _ = finished(FITTED, {2})
    killed_after_the_correction(folder, 2, float(right.observations[2].values[0]))
    assert load_run(folder).agent.online_model.to_repeat

    same_map(resume(folder), right)

    assert not load_run(folder).agent.online_model.to_repeat
    same_map(load_run(folder).result(), right)


def test_fits_that_are_left_to_repeat_are_repeated_before_a_run_ends(monkeypatch):
    _, right = finished(FITTED)
    loaded = mission(FITTED)
    folder, record = begin(loaded)

    def die(self, reason):
        raise OSError

    with monkeypatch.context() as patch, record:
        patch.setattr(Record, "end", die)
        with suppress(OSError):
            run(loaded, [Clumsy(loaded, {2})], record)
    killed_after_the_correction(folder, 2, float(right.observations[2].values[0]))

    with Record(folder / "run.sqlite") as record:
        result = resume(loaded, record, [Simulated(loaded)])

    assert not load_run(folder).agent.online_model.to_repeat
    same_map(result, right)


def test_a_run_in_progress_is_not_corrected_from_elsewhere(command):
    folder, _ = finished(FIXED)
    with Record(folder / "run.sqlite") as record:
        record.claim()
        code, _, err = command("correct", folder, "2", "1")
    assert code == 2
    assert "another process" in err
    assert "correction" not in kinds(folder)


def test_an_interrupted_run_goes_on_after_a_correction(command):
    _, right = finished(FITTED)
    loaded = mission(FITTED)
    folder, record = begin(loaded)

    def stop(step):
        if step.step == 6:
            raise KeyboardInterrupt

    with record, suppress(Interrupted):
        run(loaded, [Clumsy(loaded, {4})], record, on_step=stop)
    command("correct", folder, "4", repr(float(right.observations[4].values[0])))
    with Record(folder / "run.sqlite") as record:
        result = resume(loaded, record, [Simulated(loaded)])

    same_map(result, right)
    assert [q.site.tolist() for q in result.queries] == [q.site.tolist() for q in right.queries]


@pytest.mark.parametrize("kind", ["csv", "netcdf", "mcap"])
def test_a_corrected_run_exports_the_right_reading(kind, command):
    folder, _ = finished(FIXED, {5}, {6: 5})

    code, _, err = command("export", folder, kind, "--out", "exported")

    assert (code, err) == (0, "")
    assert any(Path("exported").iterdir())
    if kind == "csv":
        assert str(WRONG) not in Path("exported/observations.csv").read_text()


@pytest.mark.slow
def test_an_order_is_explained_by_what_was_known_when_it_was_issued(said):
    folder, _ = finished({"policy": {"kind": "straddle"}}, {5}, {8: 5})
    before = said("ask", folder, "--order", "7")

    assert said("correct", folder, "5", "0.1")

    assert said("ask", folder, "--order", "7") == before


# -- by hand ---------------------------------------------------------------------------------------------


class Typist:
    """Types one answer after the other, and keeps what was printed and asked; a callable is called first."""

    def __init__(self, loaded, *answers):
        self.answers, self.printed, self.asked = list(answers), [], []
        self.vehicle = ByHand(loaded, read=self.read, write=self.printed.append)

    def read(self, prompt):
        self.asked.append(prompt)
        if not self.answers:
            raise EOFError
        return self.answers.pop(0)


def by_hand(*answers, changed=None):
    """Type answers; return the result, the run folder, and the typist."""
    loaded = mission(changed)
    folder, record = begin(loaded, vehicles=[{"kind": "by-hand"}])
    typist = Typist(loaded, *answers)
    with record, pytest.raises(Interrupted) as stopped:
        run(loaded, [typist.vehicle], record)
    return stopped.value.result, folder, typist


VALUES = ["24.7", "25.1", "31", "28.4", "26", "27", "29.5"]
RIGHT = [text for value in VALUES for text in ("", value, "")]


@pytest.mark.each_choice
@MODELS
@pytest.mark.parametrize("wrong", [0, 2, 4, 6])
def test_a_reading_undone_by_hand_leaves_no_trace(changed, wrong):
    right, _, _ = by_hand(*RIGHT, changed=changed)
    typed = [*RIGHT]
    typed[3 * wrong + 1] = "247" if wrong < 2 else "21"  # later on, 247 is questioned
    typed[3 * wrong + 3 : 3 * wrong + 3] = ["undo", VALUES[wrong]]

    undone, folder, _ = by_hand(*typed, changed=changed)

    same_map(undone, right)
    scores = [[replace(step, time_s=0.0, coverage90=0.0) for step in r.curve] for r in (undone, right)]
    assert scores[0] == scores[1] or changed is not FIXED  # a fit may lie between a step and "undo"
    same_map(load_run(folder).result(), right)


@models("fixed")
def test_an_earlier_reading_is_corrected_at_any_question(changed):
    right, _, _ = by_hand(*RIGHT, changed=changed)
    for at in (12, 13, 14):  # the position, the value and the cost of order 4
        typed = [*RIGHT]
        typed[4] = "22"
        typed.insert(at, "correct 1 25,1")

        corrected, folder, typist = by_hand(*typed, changed=changed)

        same_map(corrected, right)
        assert kinds(folder).count("correction") == 1
        assert typist.asked[at] == typist.asked[at + 1], "the question is asked again"
        assert sum(prompt.startswith("  position") for prompt in typist.asked) == len(VALUES) + 1 + (at == 12)


def test_undo_takes_back_the_last_answer_within_an_order():
    result, folder, _ = by_hand("5 2", "undo", "3 1", "24", "undo", "25", "4")

    assert result.observations[0].sites.tolist() == [[3.0, 1.0]]
    assert (result.values.tolist(), result.cost) == ([25.0], 4.0)
    assert "correction" not in kinds(folder)


def test_undo_without_a_reading_says_so():
    _, _, typist = by_hand("undo", "", "24", "")
    assert "    there is no reading to undo" in typist.printed


def test_undo_shows_the_order_and_the_reading_and_keeps_it_on_enter():
    result, folder, typist = by_hand("", "24.7", "", "undo", "", "", "25", "")

    assert f"  {folder.name}/0: temperature (°C) [24.7]: " in typist.asked
    assert result.values.tolist() == [24.7, 25.0]
    assert "correction" not in kinds(folder)


def test_a_failed_reading_still_costs_the_move():
    result, _, _ = by_hand("", "failed", "7.5", "", "24", "")

    assert np.isnan(result.values[0])
    assert result.observations[0].cost == 7.5
    assert result.values[1] == 24.0


def test_a_reading_can_be_withdrawn():
    result, _, _ = by_hand("", "24", "", "", "25", "", "correct 0 failed", "", "26", "")

    assert np.isnan(result.values).tolist() == [True, False, False]


@pytest.mark.parametrize("word", ["help", "?", "HELP"])
@pytest.mark.parametrize("at", [0, 1, 2])
def test_help_at_every_question_lists_what_can_be_typed(word, at):
    typed = ["", "24", ""]
    typed.insert(at, word)

    result, _, typist = by_hand(*typed)

    [text] = [line for line in typist.printed if "correct N VALUE" in line]
    for command in ("Enter", "24,7", "skip", "failed", "undo", "quit", "Ctrl-C"):
        assert command in text
    assert result.values.tolist() == [24.0]


@pytest.mark.parametrize(
    ("typed", "problem"),
    [
        ("correct 7 1", "order 7 has no reading"),
        ("correct 0 lots", "'lots' is not a number"),
        ("correct 0", "'correct' needs an order and a value; type, for example, correct 3 24.7"),
        ("correct", "'correct' needs an order and a value"),
    ],
)
def test_a_correction_that_makes_no_sense_is_explained(typed, problem):
    result, folder, typist = by_hand("", "24", "", typed, "", "25", "")

    assert any(problem in line for line in typist.printed)
    assert result.values.tolist() == [24.0, 25.0]
    assert "correction" not in kinds(folder)


FAR = ["", "24.7", "", "", "31", "", "", "28", "", ""]


def test_a_reading_ten_spreads_away_is_questioned():
    result, _, typist = by_hand(*FAR, "247", "n", "24,8", "")

    assert "    24.7 to 31 so far; really 247? [y/N] " in typist.asked
    assert any("247 was discarded; type it again" in line for line in typist.printed)
    assert result.values.tolist() == [24.7, 31.0, 28.0, 24.8]


def test_a_third_reading_ten_spreads_away_is_questioned_but_not_a_second_one():
    result, _, typist = by_hand("", "24.1", "", "", "24.7", "", "", "247", "n", "24.8", "")
    assert [prompt for prompt in typist.asked if "really" in prompt] == [
        "    24.1 to 24.7 so far; really 247? [y/N] "
    ]
    assert result.values.tolist() == [24.1, 24.7, 24.8]
    result, _, typist = by_hand("", "24.1", "", "", "247", "")
    assert result.values.tolist() == [24.1, 247.0]


def test_a_third_reading_is_not_questioned_because_the_first_two_are_alike_by_chance():
    _, _, typist = by_hand("", "24.7", "", "", "24.8", "", "", "31", "")
    assert not any("really" in prompt for prompt in typist.asked)


def test_a_reading_far_away_is_taken_once_confirmed():
    result, _, typist = by_hand(*FAR, "247", "y", "")
    assert result.values[-1] == 247.0
    result, _, typist = by_hand(*FAR, "94", "")
    assert result.values[-1] == 94.0
    assert not any("really" in prompt for prompt in typist.asked)


def test_a_cost_ten_spreads_away_is_questioned():
    typed = ["", "24", "2", "", "25", "2.5", "", "26", "3", "", "27", "90", "", "9"]
    result, _, typist = by_hand(*typed, changed={"agent": {"battery": 110}})

    [question] = [prompt for prompt in typist.asked if "really" in prompt]
    assert question.endswith("so far; really 90? [y/N] ")
    assert result.observations[-1].cost == 9.0


def test_a_correction_by_hand_after_a_resume_leaves_no_trace():
    right, _, _ = by_hand(*RIGHT, changed=FITTED)
    typed = RIGHT[:12]
    typed[7] = "21"
    _, folder, _ = by_hand(*typed, changed=FITTED)
    loaded = mission(FITTED)
    typist = Typist(loaded, "correct 2 31", *RIGHT[12:])

    with Record(folder / "run.sqlite") as record, pytest.raises(Interrupted) as stopped:
        resume(loaded, record, [typist.vehicle])

    same_map(stopped.value.result, right)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("2.5, 1", ["2.5", "1"]),
        ("2.5,1", ["2.5", "1"]),
        ("2,5 1,25", ["2,5", "1,25"]),
        ("2,5; 1,25", ["2,5", "1,25"]),
        ("2,5;1", ["2,5", "1"]),
        ("2,5, 1,25", ["2,5", "1,25"]),
        ("2 ,5", ["2", "5"]),
        ("2,5", ["2", "5"]),
        ("-2 -5", ["-2", "-5"]),
    ],
)
def test_commas_are_decimal_where_something_else_separates_numbers(text, parts):
    assert parts_of(text, ["x", "y"]) == parts


def test_a_comma_is_decimal_where_a_single_number_is_typed():
    assert parts_of("24,7", ["x"]) == ["24,7"]
    with pytest.raises(InputError, match="enter 2 coordinates"):
        parts_of("2,5,1,0", ["x", "y"])


# -- a robot's words -------------------------------------------------------------------------------------

NASTY = "shallow\x1b[2J\x9b\u202e\u2066\r\n22\xa0°C"
PLAIN = "shallow\\x1b[2J\\x9b\\u202e\\u2066\\r\\n22\xa0°C"


@pytest.mark.parametrize("kind", [Rejected, Lost])
def test_reasons_cannot_control_a_terminal(kind):
    assert kind("run/0", NASTY).reason == PLAIN
    assert from_plain({"kind": kind.__name__.lower(), "order": "run/0", "reason": NASTY}).reason == PLAIN


def test_names_of_channels_cannot_control_a_terminal():
    observation = Observation("r/0", [[0.0]], [1.0], [0.1], [0.0], [0.0], 1.0, channels={NASTY: [1.0]})
    assert list(observation.channels) == [PLAIN]


@pytest.mark.parametrize("report", [Unreachable(NASTY).why, str(Rejected("r/0", NASTY).reason)])
def test_what_a_link_reports_cannot_control_a_terminal(report):
    assert report == PLAIN


# -- robots ----------------------------------------------------------------------------------------------


class Silent(Connection):
    """A link to a robot whose reports the test makes."""

    def go(self, goal):
        self.goal = goal

    def cancel(self, goal): ...
    def hold(self): ...
    def close(self): ...


@dataclass(frozen=True)
class Made(Link):
    connection: Silent
    address = "here"

    def open(self, mission, ground, on_report):
        self.connection.report = on_report
        on_report(Heartbeat())
        return self.connection


def robot(low=-math.inf):
    """Return a vehicle at the other end of a link that has carried out an order, and the link."""
    settings = {"frame": None, "battery": Battery(), "reports": Reports(low=low), "arrival": Arrival(1e-6)}
    file = VehicleFile.model_construct(format=1, title="", link={}, watch=Watch(), **settings)
    link = Silent()
    vehicle = Remote(small_mission(), 0, Made(link), file, "s")
    vehicle.connect()
    vehicle.send(Query([2.0, 1.0], expected_cost=3.0, id="run/0"))
    return vehicle, link


def result(link, *values, **more):
    at = np.repeat([[2.0, 1.0]], len(values), axis=0)
    times = np.arange(1.0, 1 + len(values))
    link.report(GoalResult(link.goal.id, at[0], at, np.array(values), times, cost=3.0, **more))


def reported(vehicle):
    return [e for e in vehicle.events(0.0) if isinstance(e, Observation | Correction)]


def test_a_robot_corrects_the_readings_of_a_settled_order():
    vehicle, link = robot()
    result(link, WRONG, 1.0)
    [observation] = reported(vehicle)

    result(link, 24.7, 1.0, corrects=True)
    [correction] = reported(vehicle)
    result(link, 24.7, 1.0, corrects=True)

    assert observation.values.tolist() == [WRONG, 1.0]
    assert isinstance(correction, Correction)
    assert (correction.order, correction.part, correction.values.tolist()) == ("run/0", 0, [24.7, 1.0])
    assert reported(vehicle) == [], "the same correction again changes nothing"
    agent = Agent(small_mission())
    order = agent.ask()
    assert order.id == "run/0"
    agent.tell(observation)
    agent.tell(correction)
    assert agent.surface.belief.values.max() < WRONG


def test_a_correction_before_its_part_or_of_other_length_corrects_nothing():
    vehicle, link = robot()
    result(link, 24.7, corrects=True)
    assert reported(vehicle) == []
    result(link, 1.0, 2.0, last=False)
    result(link, 3.0, part=1)
    assert [e.part for e in reported(vehicle)] == [0, 1]
    result(link, 24.7, corrects=True)
    result(link, 1.0, 2.0, part=2, corrects=True)
    assert reported(vehicle) == []
    result(link, 4.0, part=1, corrects=True)
    assert [e.values.tolist() for e in reported(vehicle)] == [[4.0]]


def test_an_implausible_correction_is_a_failed_reading():
    vehicle, link = robot(low=0.0)
    result(link, 24.7)
    reported(vehicle)

    result(link, -5.0, corrects=True)

    [correction] = reported(vehicle)
    assert np.isnan(correction.values).all()


def test_a_correction_survives_a_resume_of_the_vehicle():
    vehicle, link = robot()
    result(link, WRONG)
    result(link, 24.7, corrects=True)
    events = vehicle.events(0.0)
    again, link = robot()
    again.resume([Query([2.0, 1.0], expected_cost=3.0, id="run/0")], events)
    link.goal = Goal("run/0#s", np.array([2.0, 1.0]))

    result(link, 24.7, corrects=True)
    assert reported(again) == []
    result(link, 25.0, corrects=True)
    assert [e.values.tolist() for e in reported(again)] == [[25.0]]


def test_a_correction_arrives_over_mqtt():
    codec = Codec(small_mission().world.domain.axes)
    body = {"id": "run/0#s", "corrects": True, "readings": [{"value": 24.7}, {"value": None}]}

    [report] = codec.reports("result", body)

    assert report.corrects
    assert report.values.tolist()[0] == 24.7
    assert np.isnan(report.values[1])
    assert not codec.reports("result", {"id": "run/0#s"})[0].corrects
    with pytest.raises(InputError, match="corrects = 1"):
        codec.reports("result", {"id": "run/0#s", "corrects": 1})


# -- answers that a correction undoes --------------------------------------------------------------------

ANSWERS = {"policy": {"kind": "truvar"}, "agent": {"battery": 250}}


def answered_wrongly(changed=FIXED):
    """Return the folder and result of a run whose question a wrong reading answered."""
    folder, result = finished({**ANSWERS, **changed}, {1})
    assert str(result.end_reason) == "question answered"
    return folder, result


@pytest.mark.parametrize(
    "changed", [FIXED, pytest.param({}, marks=pytest.mark.slow)], ids=["fixed", "learned"]
)
def test_a_run_whose_answer_a_correction_undoes_can_be_resumed(changed, command):
    folder, before = answered_wrongly(changed)

    code, out, _ = command("correct", folder, "1", "0.3")
    assert code == 0
    assert "Question answered" not in out
    assert "Not finished: a correction has undone the answer." in out
    assert f"to continue: fieldbo resume {folder}" in out
    assert json.loads((folder / "summary.json").read_text())["complete"] is False

    code, out, _ = command("resume", folder)
    assert code == 0
    assert "Resuming" in out
    after = load_run(folder).result()
    assert after.steps > before.steps
    assert after.end_reason is not None
    assert after.cost <= after.mission.vehicles[0].battery
    code, out, _ = command("resume", folder)
    assert f"has ended ({after.end_reason}); nothing to resume" in " ".join(out.split())


def test_the_record_keeps_the_end_the_correction_and_the_resumption():
    folder, before = answered_wrongly()
    then = kinds(folder)
    correct_run(folder, 1, 0.3)
    result = resume(folder)

    now = kinds(folder)
    assert now[: len(then)] == then
    assert then[-1] == now[-1] == "end"
    assert now[len(then) : len(then) + 2] == ["correction", "reopened"]
    with Record(folder / "run.sqlite") as record:
        (reopened,) = [row for row in record.rows() if row.kind == "reopened"]
    assert reopened.body == {"reason": "question answered"}
    assert load_run(folder).result().cost == result.cost > before.cost
    assert load_run(folder).result().values.tolist() == result.values.tolist()


def test_an_answer_that_a_correction_leaves_stands(command):
    folder, result = answered_wrongly()

    code, out, _ = command("correct", folder, "1", "246", "--yes")
    assert code == 0
    assert "Question answered" in out
    rows = kinds(folder)
    _, out, _ = command("resume", folder)
    assert "nothing to resume" in " ".join(out.split())
    assert kinds(folder) == rows
    assert load_run(folder).result().end_reason is result.end_reason


def test_a_battery_that_was_spent_is_not_resumed_after_a_correction(command):
    folder, result = finished(FIXED, {2})
    assert str(result.end_reason) == "battery spent"

    command("correct", folder, "2", "0.5")
    _, out, _ = command("resume", folder)
    assert "nothing to resume" in " ".join(out.split())


def test_a_run_with_vehicles_continues_only_with_vehicles():
    loaded = mission({**ANSWERS, **FIXED})
    folder, record = begin(loaded, None, [{"kind": "simulated"}])
    with record:
        run(loaded, [Clumsy(loaded, {1})], record)
    correct_run(folder, 1, 0.3)
    rows = kinds(folder)

    assert resume(folder).end_reason is None
    assert kinds(folder) == rows
    with Record(folder / "run.sqlite") as record:
        assert resume(loaded, record, [Simulated(loaded)]).end_reason is not None


def test_a_correction_on_the_way_home_undoes_the_answer_too():
    folder, _ = answered_wrongly()
    with Record(folder / "run.sqlite") as record:
        home = next(row.order for row in record.rows() if row.kind == "go-home")
    other, result = finished({**ANSWERS, **FIXED}, {1}, {int(home.rsplit("/", 1)[1]): 1})

    assert result.end_reason is None
    assert resume(other).end_reason is not None


class Later(Simulated):
    """A simulated vehicle that corrects its first reading when its part has long been over."""

    polls = 0

    def events(self, timeout_s):
        self.polls += not self._waiting
        late = [Correction("run/0", 0, [0.25])] if self.polls == 3 else []
        return [*super().events(timeout_s), *late]


def test_a_vehicle_corrects_a_reading_after_its_part_is_over(tmp_path):
    loaded = small_mission(battery=30.0)
    loaded = replace(loaded, vehicles=(replace(loaded.vehicles[0], battery=3.0), *loaded.vehicles))
    with Record.create(tmp_path / "run.sqlite", "run", {}) as record:
        result = run(loaded, [Later(loaded, 0), Simulated(loaded, 1)], record)
        rows = [row.kind for row in record.rows()]

    assert rows.index("stop") < rows.index("correction") < rows.index("end")
    assert result.observations[0].values.tolist() == [0.25]


# -- values that are far from all others ---------------------------------------------------------------------


def test_a_value_far_from_all_others_is_questioned_and_nothing_is_written(command):
    folder, _ = finished(FIXED, {2})
    rows = kinds(folder)
    code, _, err = command("correct", folder, "2", "247")
    assert code == 2
    assert "really 247?" in err
    assert "add --yes" in err
    assert kinds(folder) == rows
    assert command("correct", folder, "2", "247", "--yes")[0] == 0
    assert load_run(folder).result().values[2] == 247.0


def test_a_likely_value_and_a_failed_reading_are_not_questioned():
    folder, result = finished(FIXED, {2})
    asked = []
    correct_run(folder, 2, float(result.values[1]), agree=asked.append)
    correct_run(folder, 2, None, agree=asked.append)
    assert asked == []


@pytest.mark.slow  # processes of their own
@pytest.mark.parametrize(("typed", "code"), [("n\n", 2), ("y\n", 0)])
def test_at_a_terminal_it_asks(typed, code):
    folder, result = finished(FIXED, {2})
    master, slave = pty.openpty()
    program = [sys.executable, "-m", "fieldbo", "correct", str(folder), "2", "247"]
    with subprocess.Popen(program, stdin=slave, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as asked:
        os.write(master, typed.encode())
        said, _ = asked.communicate()
    for end in (master, slave):
        os.close(end)
    assert asked.returncode == code
    assert b"really 247?" in said
    value = 247.0 if code == 0 else float(result.values[2])
    assert load_run(folder).result().values[2] == value

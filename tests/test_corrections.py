"""Corrections: a typing error, taken back, leaves no trace in the map, and stays in the record."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fieldbo
from fieldbo.agent.agent import Agent
from fieldbo.errors import InputError
from fieldbo.messages import Correction, Fitted, Observation, Query, from_plain, to_plain
from fieldbo.runs.folder import begin
from fieldbo.runs.load import load_run
from fieldbo.runs.record.record import Record
from fieldbo.runs.runner import Interrupted, resume, run
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
name = "temperature"
unit = "°C"
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
kind = "level-set"
threshold = 0.2
[agent]
battery = 110
start = [0, 0]
home = [0, 0]
[initial]
count = 2
[policy]
kind = "random"
[model]
learn = { every = 4 }
"""
WRONG = 247.0
FIXED = {"model": {"learn": False}}
TESTED = {"model": {"outliers": "tested"}}
MODELS = pytest.mark.parametrize("changed", [FIXED, {}, TESTED], ids=["fixed", "learned", "tested"])


@pytest.fixture(autouse=True)
def _place(tmp_path, monkeypatch):
    """Work in a folder that holds a world and a mission."""
    monkeypatch.chdir(tmp_path)
    Path("worlds", "tiny").mkdir(parents=True)
    Path("worlds", "tiny", "world.toml").write_text(WORLD)
    Path("m.toml").write_text(MISSION)


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


def finished(changed=None, wrong=(), corrects=None):
    """Run a mission to its end; return its folder and result."""
    loaded = mission(changed)
    folder, record = begin(loaded)
    with record:
        return folder, run(loaded, [Clumsy(loaded, wrong, corrects)], record)


def same_map(a, b):
    """Check that two results have the same map, to the last bit."""
    assert a.surface.mean.tobytes() == b.surface.mean.tobytes()
    assert a.surface.variance.tobytes() == b.surface.variance.tobytes()
    assert a.hyperparameters.to_plain() == b.hyperparameters.to_plain()
    assert a.values.tolist() == b.values.tolist()
    for name, layer in a.maps().data_vars.items():
        np.testing.assert_array_equal(layer.values, b.maps()[name].values)
    numbers, others = a.summary(), b.summary()
    for key in numbers.keys() - {"run", "notes", "cost_to_target"}:
        assert json.dumps(numbers[key]) == json.dumps(others[key]), key


def kinds(folder):
    with Record(folder / "run.sqlite") as record:
        return [row.kind for row in record.rows()]


# -- the same map ----------------------------------------------------------------------------------------


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


@MODELS
def test_several_corrections_in_any_order_leave_no_trace(changed):
    _, right = finished(changed)

    _, corrected = finished(changed, {1, 4, 6}, {7: 6, 8: 1, 9: 4})

    same_map(corrected, right)


@MODELS
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


def test_an_error_that_is_corrected_at_once_leaves_no_trace_in_the_curve():
    _, right = finished()

    _, corrected = finished(None, {5}, {6: 5})

    scores = [[replace(step, coverage90=0.0) for step in result.curve] for result in (corrected, right)]
    assert scores[0] == scores[1]


def test_an_uncorrected_error_ruins_the_map():
    _, right = finished()
    _, wrong = finished(None, {5})

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
    _, result = finished(None, {5}, {6: 5})

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

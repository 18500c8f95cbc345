"""People enter readings in forms: answers that count once, doubts, corrections, and what survives a crash."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from fieldbo.errors import InputError
from fieldbo.messages import Answer, Correction, Observation, Query, Rejected, from_plain, kind_of, to_plain
from fieldbo.record.record import Record
from fieldbo.runs.loop import Interrupted
from fieldbo.runs.runner import resume, run
from fieldbo.runs.steer import append, commands_file
from fieldbo.testing.small import small_cell, small_mission
from fieldbo.vehicles.by_hand import ByForm

COUNT = itertools.count()


def answer(order, value=1.0, **more):
    return Answer(f"a{next(COUNT)}", order, value, **more)


@pytest.fixture
def mission():
    return small_mission(battery=30.0)


@pytest.fixture
def form(mission):
    form = ByForm(mission)
    form.send(Query([2.0, 1.0], expected_cost=4.0, id="run/0"))
    form.send(Query([3.0, 1.0], expected_cost=2.0, id="run/1"))
    return form


def test_an_answer_settles_the_present_order_with_what_was_entered(form):
    form.take(answer("run/0", 0.7, position=[2.1, 1.0], cost=4.5))
    (observed,) = form.events(0.0)

    assert (observed.order, observed.values.tolist(), observed.cost) == ("run/0", [0.7], 4.5)
    assert observed.sites.tolist() == [[2.1, 1.0]]


def test_only_the_first_of_two_answers_counts_and_a_correction_says_that_it_is_one(form):
    form.take(answer("run/0", 0.7))
    form.events(0.0)
    for second in (answer("run/0", 0.9), answer("run/0", skipped=True)):
        with pytest.raises(InputError, match="was answered already"):
            form.take(second)
    with pytest.raises(InputError, match=r"is 0\.7 already"):
        form.take(answer("run/0", 0.7, corrects=True))
    form.take(answer("run/0", 0.9, corrects=True))
    (correction,) = form.events(0.0)

    assert isinstance(correction, Correction)
    assert correction.values.tolist() == [0.9]


def test_a_later_order_cannot_be_answered_before_the_present_one(form):
    with pytest.raises(InputError, match="the present one is run/0"):
        form.take(answer("run/1"))


def test_a_skipped_site_is_rejected_and_costs_nothing(form):
    form.take(answer("run/0", skipped=True))

    assert form.events(0.0) == [Rejected("run/0", "skipped by hand")]


def test_a_failed_reading_still_costs(form):
    form.take(answer("run/0", None))
    (observed,) = form.events(0.0)

    assert math.isnan(observed.values[0])
    assert observed.cost == 4.0


@pytest.mark.parametrize(
    ("given", "doubt"),
    [
        ({"position": [6.0, 1.0]}, "outside the domain"),
        ({"value": 99.0}, "really 99"),
    ],
)
def test_unlikely_numbers_are_refused_until_they_are_confirmed(mission, given, doubt):
    form = ByForm(mission)
    for number, value in enumerate([0.5, 0.6, 0.4]):
        form.send(Query([float(number), 1.0], expected_cost=2.0, id=f"run/{number}"))
        form.take(answer(f"run/{number}", value))
        form.events(0.0)
    form.send(Query([3.0, 1.0], expected_cost=2.0, id="run/3"))
    given = {"value": 0.5, **given}
    with pytest.raises(InputError, match=doubt) as refused:
        form.take(answer("run/3", **given))
    assert "confirm" in refused.value.fix
    form.take(answer("run/3", **given, confirmed=True))

    assert len(form.events(0.0)) == 1


def test_an_impossible_cost_is_refused_even_if_it_is_confirmed(form):
    with pytest.raises(InputError, match="between 0 and the battery"):
        form.take(answer("run/0", cost=999.0, confirmed=True))


def test_variables_left_free_have_to_be_entered():
    form = ByForm(small_mission(world=small_cell(), home=False))
    controls = np.array([True, False, False])
    form.send(Query([1.0, np.nan, np.nan], controls, expected_cost=0.25, id="run/0"))
    with pytest.raises(InputError, match="not complete"):
        form.take(answer("run/0", 0.5))
    form.take(answer("run/0", 0.5, position=[1.0, 2.0, 3.0]))

    assert form.events(0.0)[0].sites.tolist() == [[1.0, 2.0, 3.0]]


def test_an_order_that_is_taken_back_waits_for_no_answer(form):
    form.cancel("run/0")
    assert form.events(0.0) == [Rejected("run/0", "taken back")]
    form.take(answer("run/1", 0.5))
    assert form.events(0.0)[0].order == "run/1"


def test_an_answer_survives_its_plain_form():
    given = Answer("7", "run/3", None, position=[1.0, 2.0], by="<b>")
    back = from_plain(to_plain(given))

    assert math.isnan(back.value)
    assert (back.position.tolist(), back.by, back.cost) == ([1.0, 2.0], "<b>", None)


class Persons(ByForm):
    """A form whose people answer each order with the true value, and later correct some."""

    def __init__(self, mission, file, number=0, corrected=(("run/2", 0.25),)):
        super().__init__(mission, number)
        self.file, self.answered, self.stop_after = file, 0, None
        self.corrected = corrected

    def events(self, timeout_s):
        if self.answered == self.stop_after:
            raise KeyboardInterrupt
        if self._orders and not self._events:
            order = self._orders[0]
            value = 0.5
            if isinstance(order, Query):
                value = float(self.mission.world.truth(order.site[None])[0])
            append(self.file, answer(str(order.id), value, confirmed=True))
            append(self.file, answer(str(order.id), value, confirmed=True))  # the second phone
            self.answered += 1
            if self.answered == 4:
                for order, right in self.corrected:
                    append(self.file, answer(order, right, corrects=True, confirmed=True))
        return super().events(0.0)


def test_a_mission_by_form_is_completed_with_a_correction(mission, tmp_path):
    with Record.create(tmp_path / "run.sqlite", "run", {"vehicles": [{"kind": "by-form"}]}) as record:
        result = run(mission, [Persons(mission, commands_file(record.file))], record=record)
        rows = record.rows()

    assert result.end_reason is not None
    assert np.array_equal(result.path[-1], mission.vehicles[0].home)
    assert 0.25 in result.values.tolist()
    entered = [row.message for row in rows if row.kind == "answer"]
    assert sum(not a.refused for a in entered) == len(result.observations) + 1
    assert sum(row.kind == "observation" for row in rows) == len(result.observations)


def test_an_answer_that_was_recorded_counts_although_the_process_died_before_its_outcome(mission, tmp_path):
    file = tmp_path / "run.sqlite"
    with Record.create(file, "run", {"vehicles": [{"kind": "by-form"}]}) as record:
        persons = Persons(mission, commands_file(file))
        persons.stop_after = 2
        with pytest.raises(Interrupted):
            run(mission, [persons], record=record)
    with Record(file) as record:
        rows = record.rows()
    outstanding = [row.order for row in rows if row.kind == "query"][-1]
    assert outstanding not in [row.order for row in rows if row.kind == "observation"]
    accepted = next(row.message for row in rows if row.kind == "answer" and row.order == outstanding)
    with Record(file) as record:
        resumed = resume(mission, record, [Persons(mission, commands_file(file))])

    observed = [o for o in resumed.observations if o.order == outstanding]
    assert [o.values.tolist() for o in observed] == [[accepted.value]]
    assert isinstance(observed[0], Observation)


def test_a_reading_of_people_whose_part_is_over_is_corrected(mission, tmp_path):
    (spec,), file, right = mission.vehicles, tmp_path / "run.sqlite", (("run/0", 0.25),)
    mission = replace(mission, vehicles=(replace(spec, battery=3.0), spec))
    with Record.create(file, "run", {"vehicles": [{"kind": "by-form"}] * 2}) as record:
        people = [Persons(mission, commands_file(file), number, right) for number in (0, 1)]
        result = run(mission, people, record=record)
        kinds = [row.kind for row in record.rows()]

    assert kinds.index("stop") < kinds.index("correction")
    assert result.observations[0].values.tolist() == [0.25]


@pytest.mark.parametrize("died_after", ["answer", "correction"])
def test_the_last_of_two_corrections_counts_although_the_process_died(
    mission, tmp_path, monkeypatch, died_after
):
    file, right = tmp_path / "run.sqlite", (("run/0", 0.25), ("run/0", 0.75))
    with Record.create(file, "run", {"vehicles": [{"kind": "by-form"}]}) as record:
        write = record.event

        def die(event):
            write(event)
            if kind_of(event) == died_after and getattr(event, "corrects", True):
                raise KeyboardInterrupt

        monkeypatch.setattr(record, "event", die)
        with pytest.raises(Interrupted):
            run(mission, [Persons(mission, commands_file(file), corrected=right)], record=record)
    with Record(file) as record:
        resumed = resume(mission, record, [Persons(mission, commands_file(file), corrected=())])

    assert resumed.observations[0].values.tolist() == [0.75]

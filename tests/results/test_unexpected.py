"""Readings that the model did not expect, such as those of a narrow peak on a quiet background."""

from dataclasses import replace

import numpy as np
import pytest

from fieldbo.agent.unseen import unexpected
from fieldbo.belief.averaged import AveragedSurface
from fieldbo.belief.confidence import value_at
from fieldbo.belief.kernels import Matern52
from fieldbo.belief.model import Model
from fieldbo.belief.posterior import Belief
from fieldbo.belief.question import Optimum
from fieldbo.belief.surface import Surface
from fieldbo.belief.value_scale import ValueScale
from fieldbo.policies import EI
from fieldbo.results.answers import answer_of
from fieldbo.testing import small_mission, small_world

QUIET, NOISE = 0.01, 0.05  # variance of the background as learned, standard deviation of the sensor
PEAK = np.array([5.0, 4.0])


def belief(read, variance=QUIET):
    """Return a quiet background's belief, given values by place."""
    noise = np.full(len(read), NOISE**2)
    empty = Belief(Matern52([1.0, 1.0], variance=variance))
    return empty.condition_on(list(read), list(read.values()), noise)


def answer(read, goal="maximise"):
    world = small_world((11, 9), noise_sd=NOISE)
    mission = replace(small_mission(EI(), world=world, question=Optimum(goal)), model=Model(learn=False))
    sign = 1.0 if goal == "maximise" else -1.0
    return answer_of(mission, Surface(belief(read), world.domain.sites), ValueScale("none", 0.0, sign))


QUIET_PLACES = {(0.0, 0.0): 0.02, (10.0, 0.0): -0.03, (0.0, 8.0): 0.0, (10.0, 8.0): 0.01, (5.0, 0.0): -0.02}


@pytest.mark.parametrize("goal", ["maximise", "minimise"])
def test_the_interval_of_the_reported_value_allows_for_what_was_read_there(goal):
    found = answer({**QUIET_PLACES, (5.0, 4.0): 1.0}, goal)
    sign = 1.0 if goal == "maximise" else -1.0
    stated = found.confidence
    assert found.reported.point.tolist() == PEAK.tolist()
    assert sign * stated.value.value < 0.85, "the trial: the model makes less of the reading"
    assert stated.value.low < sign < stated.value.high
    assert stated.optimum.low < sign < stated.optimum.high
    (note, *_) = found.notes(np.ones(6), None)
    side = "above" if goal == "maximise" else "below"
    assert note.startswith(
        f"the readings at x 5 m, y 4 m average {sign:.4g} m, 8.9 standard deviations {side} "
    )


def test_a_reading_that_the_others_let_expect_changes_no_interval():
    found = answer({**QUIET_PLACES, (5.0, 4.0): 0.2})
    assert found.unexpected is None
    assert found.confidence.value.high < 0.25
    assert not any("standard deviations" in note for note in found.notes(np.ones(6), None))


def test_a_reading_within_the_interval_that_the_model_states_is_no_note():
    found = answer({**QUIET_PLACES, (5.0, 4.0): 1.0})
    read, there = found.unexpected, value_at(found.surface.over(PEAK[None]), found.scale)
    assert there.high < read.value, "the trial: the reading lies outside"
    within = replace(found)
    within.__dict__["unexpected"] = read._replace(value=0.99 * there.high)
    assert not any("standard deviations" in note for note in within.notes(np.ones(6), None))
    assert any("standard deviations" in note for note in found.notes(np.ones(6), None))


def test_a_better_reading_elsewhere_that_the_model_did_not_expect_widens_the_regret():
    broad = {(x, 8.0): 0.65 for x in (0.0, 1.0, 2.0, 3.0, 4.0)}
    around = {(8.0, 1.0): 0.0, (8.0, 3.0): 0.0, (7.0, 2.0): 0.0, (9.0, 2.0): 0.0, (8.0, 2.0): 0.8}
    found = answer({**broad, **around})
    assert found.reported.point[1] == 8.0, "the trial: the model prefers the broad hill"
    assert found.unexpected.place.tolist() == [8.0, 2.0]
    assert found.confidence.regret.high > 0.8 - found.reported_value
    assert found.confidence.optimum.high > 0.8


def test_repeated_readings_of_a_place_count_as_their_mean():
    once = belief({**QUIET_PLACES, (5.0, 4.0): 1.0})
    twice, _, _ = once.extended_by(PEAK[None], np.array([0.8]), np.array([NOISE**2]))
    there = unexpected(Surface(twice, PEAK[None]), PEAK)
    assert (there.value, there.sd) == (pytest.approx(0.9), pytest.approx(NOISE / np.sqrt(2)))


def test_a_place_is_judged_by_all_hyperparameters():
    read = {**QUIET_PLACES, (5.0, 4.0): 1.0}
    surfaces = [Surface(belief(read, variance), PEAK[None]) for variance in (QUIET, 25 * QUIET)]
    quiet, lively = (unexpected(surface, PEAK) for surface in surfaces)
    assert lively is None, "a lively field may hold such a peak"
    both = unexpected(AveragedSurface(surfaces, [0.5, 0.5]), PEAK)
    assert both is None or both.deviations < quiet.deviations

"""Whether the readings contradict the model, and the sentence that says so."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fieldbo
from fieldbo.belief.model import Model
from fieldbo.belief.question import Optimum
from fieldbo.cli.session import _progress
from fieldbo.policies import Random, Straddle
from fieldbo.results.curve import ModelCheck, Step, contradiction, model_check
from fieldbo.testing import small_mission, small_world
from fieldbo.world.fields.gp_draw import GPDraw

SCALES = (2.0, 2.0)


def in_a_draw(number, policy=None, scales=SCALES, **changes):
    """Return a mission in a draw of a process with the length scales 2 m, and a model with others."""
    world = small_world((12, 12), noise_sd=0.1)
    field = GPDraw(length_scales=SCALES).make(world.domain, number)
    model = Model(learn=False, length_scales=scales, variance=1.0, mean=0.0)
    made = small_mission(policy or Straddle(), world=replace(world, field=field), battery=200.0, home=False)
    return replace(made, model=replace(model, **changes), max_steps=40, seed=number)


def note_of(result):
    return [note for note in result.notes if "the model does not fit" in note]


def test_a_right_model_gives_no_sentence():
    assert not any(step.contradicted for step in fieldbo.run(in_a_draw(1)).curve)


@pytest.mark.slow
def test_a_right_model_gives_no_sentence_in_19_of_20_draws():
    told, outside, readings = 0, 0, 0
    for number in range(20):
        result = fieldbo.run(in_a_draw(number, Random() if number % 2 else Straddle()))
        told += any(step.contradicted for step in result.curve)
        residuals = result.surface.belief.weights
        outside += int(np.count_nonzero(np.abs(residuals) > 1.645))
        readings += len(residuals)
    assert told <= 1
    assert outside / readings == pytest.approx(0.1, abs=0.03)  # as many as a right model misses


@pytest.mark.parametrize("policy", [Random(), Straddle()])
def test_a_kernel_that_is_far_too_smooth_is_contradicted_in_summary_report_and_progress(policy):
    mission = in_a_draw(3, policy, scales=(9.0, 9.0))
    result = fieldbo.run(mission)
    (note,) = note_of(result)
    assert note in result.summary()["notes"]
    assert note in str(result.report())
    assert result.curve[-1].contradicted == (note,)
    assert note in _progress(result.curve[-1], mission)
    assert "readings lie outside the range where it expected nine in ten, so its F1 is" in note
    assert "learn = true in [model]" in note
    step = result.curve[-1]
    assert Step.from_plain(step.to_plain()).contradicted == step.contradicted


def test_an_optimum_is_told_that_its_regret_is_not_to_be_trusted():
    mission = replace(in_a_draw(3, scales=(9.0, 9.0)), question=Optimum(), policy=Random())
    assert "so its regret is" in note_of(fieldbo.run(mission))[0]


def test_what_to_do_depends_on_what_the_model_learns_already():
    agent = fieldbo.Agent(in_a_draw(0))
    assert model_check(agent) == ModelCheck(0, 0)
    assert contradiction(agent) is None
    learning = fieldbo.Agent(replace(in_a_draw(0), model=Model()))
    assert model_check(learning) is None  # before its first fit

"""What may hide where nobody has looked."""

from dataclasses import replace

import numpy as np
import pytest

import fieldbo
from fieldbo.agent.unseen import spacing_of, unnoticed
from fieldbo.belief.covering import distance_text
from fieldbo.belief.model import Model
from fieldbo.belief.question import LevelSet, Optimum
from fieldbo.messages import EndReason
from fieldbo.mission.vehicle_spec import VehicleSpec
from fieldbo.policies import EI, DistUCB, Lawnmower, Scout
from fieldbo.testing import small_mission, small_world
from fieldbo.world.fields.base import Field


class Plateau(Field):
    """A field that is the same everywhere."""

    def values(self, sites, time_s=0.0):
        return np.ones(len(sites))


def learning(policy=None, battery=60.0, **changes):
    mission = small_mission(policy or Lawnmower(), world=small_world((9, 7)), question=Optimum())
    start = mission.world.start
    return replace(mission, model=Model(), vehicles=(VehicleSpec(battery, start),), **changes)


def after(mission):
    return fieldbo.run(mission)


def test_a_sweep_leaves_less_unseen_than_its_first_lines():
    mission = learning(Lawnmower(lines=9, samples=7), battery=500.0)
    swept, begun = after(mission), after(replace(mission, max_steps=20))
    assert begun.answer.unseen.chance > swept.answer.unseen.chance
    assert begun.answer.unseen.share > 0.2
    assert swept.answer.unseen.share == 0.0


def test_the_interval_of_the_regret_allows_for_what_nobody_saw():
    result = after(learning(DistUCB(), battery=15.0))
    hidden, stated = result.answer.unseen, result.confidence
    assert hidden.excess > 0
    more = hidden.excess * abs(result.scale.scale)
    assert stated.regret.low == 0.0
    assert stated.regret.high >= more - 1e-12
    assert stated.optimum.high >= float(result.scale.to_user(hidden.best + hidden.excess)) - 1e-12


def test_the_regret_from_what_nobody_saw_counts_from_what_the_reported_place_has():
    answer = after(learning(DistUCB(), battery=15.0)).answer
    less = replace(answer, place=replace(answer.reported, value=answer.reported.value - 1.0))
    hidden = answer.scale.to_user(answer.unseen.best + answer.unseen.excess)
    for each in (answer, less):
        has = min(each.reported.value, each.unseen.best)
        assert each.confidence.regret.high >= abs(hidden - each.scale.to_user(has)) - 1e-12
    assert less.reported.value < less.unseen.best


@pytest.mark.parametrize("goal", ["maximise", "minimise"])
def test_the_interval_of_the_optimum_reaches_what_the_reported_place_has(goal):
    """On a plateau nothing stands out, which no model expects of so many sites."""
    mission = learning(Lawnmower(lines=9, samples=7), battery=500.0)
    flat = replace(mission.world, field=Plateau())
    result = after(replace(mission, world=flat, question=Optimum(goal)))
    stated = result.confidence
    assert stated.optimum.low <= stated.value.low or stated.optimum.high >= stated.value.high
    assert stated.optimum.low <= 1.0 <= stated.optimum.high


def test_minimising_looks_for_smaller_values():
    mission = learning(DistUCB(), battery=15.0)
    result = after(replace(mission, question=Optimum("minimise")))
    hidden = result.answer.unseen
    assert result.confidence.optimum.low <= float(result.scale.to_user(hidden.best + hidden.excess)) + 1e-12
    assert "smaller may be there" in " ".join(result.notes)


def test_the_note_and_the_summary_say_where_and_how_much():
    result = after(learning(DistUCB(), battery=15.0))
    hidden, numbers = result.answer.unseen, result.summary()
    note = next(note for note in result.notes if "farther from all readings" in note)
    assert note.startswith(f"{hidden.share:.0%} of the domain")
    assert distance_text(result.mission.world.domain, hidden.width) in note
    assert (numbers["unseen"], numbers["chance_unseen"]) == (hidden.share, hidden.chance)


def test_a_known_model_vouches_for_all_places():
    mission = learning(DistUCB(), battery=15.0)
    known = Model(learn=False, length_scales=(2.0, 2.0), mean=0.0)
    result = after(replace(mission, model=known))
    assert result.answer.unseen is None
    assert "unseen" not in result.summary()


@pytest.mark.parametrize("name", ["hartmann", "cell-growth"])
def test_between_many_axes_and_with_free_variables_distances_say_nothing(name):
    result = after(fieldbo.load_mission(name, {"initial": {"count": 6}, "agent": {"max_steps": 6}}))
    assert result.answer.unseen is None


def test_what_is_scarcest_decides_about_the_spacing():
    mission = learning()
    spec = mission.vehicles[0]
    two = replace(mission, vehicles=(spec, spec))
    hurried = replace(mission, vehicles=(replace(spec, time_limit_s=spec.battery / 4),))
    assert spacing_of(two, 1) < spacing_of(mission, 1) < spacing_of(hurried, 1)
    assert spacing_of(replace(mission, max_steps=2), 1) > spacing_of(mission, 1)
    unknown = replace(mission, costs="unknown", policy=EI())
    assert spacing_of(unknown, 4) > spacing_of(unknown, 16)


def mapped(lines, samples, threshold=0.5):
    mission = learning(Lawnmower(lines=lines, samples=samples), battery=500.0)
    return after(replace(mission, question=LevelSet(threshold)))


def test_patches_that_no_reading_noticed_are_discs_without_readings():
    answer = mapped(3, 3).answer
    patches = unnoticed(answer.mission, answer.surface, np.random.default_rng(4), 100)
    read = [answer.mission.world.domain.nearest(site) for site in answer.surface.belief.sites]
    assert patches.shape == (63, 100)
    assert not patches[read].any()
    assert 0 < patches.any(axis=0).sum() < 100, "some would have been noticed"


def test_a_sweep_of_all_sites_leaves_no_patch_unnoticed():
    answer = mapped(9, 7).answer
    assert not unnoticed(answer.mission, answer.surface, np.random.default_rng(4), 100).any()


def test_a_known_model_leaves_no_patch_unnoticed():
    answer = mapped(3, 3).answer
    known = replace(
        answer.mission, model=Model(learn=False, length_scales=(1.0, 1.0), variance=1.0, mean=0.0)
    )
    assert unnoticed(known, answer.surface, np.random.default_rng(4), 100) is None


def test_intervals_of_f1_and_area_allow_for_patches_between_readings(monkeypatch):
    allowing = mapped(4, 3, 1.0).answer.confidence
    monkeypatch.setattr("fieldbo.results.answers.unnoticed", lambda *_: None)
    own = mapped(4, 3, 1.0).answer.confidence
    assert allowing.f1.low < own.f1.low < own.f1.high < allowing.f1.high < 1.0
    assert allowing.share.low <= own.share.low
    assert own.share.high < allowing.share.high


def test_equal_readings_are_no_answer_while_a_patch_could_hide_between_them():
    """An exact sensor on a sound wall: the model then knows every place, whatever it has not seen."""
    world = replace(small_world((19, 15), noise_sd=0.0), field=Plateau())
    mission = small_mission(Scout(), world=world, question=Optimum())
    mission = replace(mission, model=Model(), vehicles=(VehicleSpec(80.0, world.start),))
    result = fieldbo.run(mission)
    assert result.answer.unseen.share > 0.01, "the trial: the battery does not reach everywhere"
    assert result.end_reason is EndReason.BATTERY_SPENT
    (note,) = [note for note in result.notes if "farther from all readings" in note]
    assert "a larger value may have been missed; the readings are too alike to say by how much" in note

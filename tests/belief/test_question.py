"""Questions, and their thresholds in model units."""

import numpy as np
import pytest

import fieldbo
from fieldbo.belief.question import LevelSet, Optimum, ShareOfMaximum
from fieldbo.belief.value_scale import ValueScale
from fieldbo.errors import InputError
from fieldbo.policies.baselines import Straddle
from fieldbo.policies.optimum.myopic import EI
from fieldbo.testing import small_mission


@pytest.mark.parametrize("transform", ["none", "log"])
def test_a_threshold_in_model_units_is_the_same_threshold(transform):
    scale = ValueScale(transform, 0.7, 1.9)
    values = np.array([0.5, 2.0, 3.0, 8.0])
    model = scale.to_model(values)

    for question in (LevelSet(2.5), ShareOfMaximum(0.3)):
        above = values >= question.level(values.max())
        assert np.array_equal(above, model >= question.level(model.max(), scale))


def test_a_share_of_a_maximum_under_a_log_has_no_least_value():
    scale = ValueScale("log", -800.0, 2.0)  # exp(-800) is 0 in double precision
    assert ShareOfMaximum(0.7).level(0.5, scale) == pytest.approx(0.5 + np.log(0.7) / 2.0)


def test_an_optimum_has_no_threshold():
    assert np.isnan(Optimum().level(3.0))


def test_the_minimum_is_largest_in_model_units():
    scale = ValueScale("none", 2.0, 3.0 * Optimum("minimise").sign)
    values = np.array([5.0, -1.0, 2.0])

    assert np.argmax(scale.to_model(values)) == np.argmin(values)
    np.testing.assert_allclose(scale.to_user(scale.to_model(values)), values)
    mean, sd = scale.moments(scale.to_model(values), np.full(3, 4.0))
    np.testing.assert_allclose(mean, values)
    np.testing.assert_allclose(sd, 6.0)


@pytest.mark.parametrize("share", [0.0, 1.0, -0.5, np.nan])
def test_a_share_of_the_maximum_outside_0_to_1_is_rejected(share):
    with pytest.raises(InputError, match="fraction of the maximum"):
        ShareOfMaximum(share)


@pytest.mark.parametrize(("policy", "question"), [(EI(), LevelSet(0.3)), (Straddle(), Optimum())])
def test_a_mission_rejects_a_policy_that_cannot_answer_its_question(policy, question):
    with pytest.raises(InputError, match="does not answer questions of kind"):
        small_mission(policy, question=question)


@pytest.mark.parametrize("goal", ["maximise", "minimise"])
def test_ei_finds_the_maximum_and_the_minimum_of_a_field(goal):
    result = fieldbo.run(small_mission(EI(), question=Optimum(goal), battery=70.0))
    truth = result.mission.world.truth(result.mission.world.domain.sites)
    best = truth.max() if goal == "maximise" else truth.min()

    assert result.regret == pytest.approx(0.0, abs=1e-9)
    assert result.mission.world.truth(result.answer.reported.point[None])[0] == pytest.approx(best)

"""Results of a run for every kind of question: answers, scores, summary, report and tables."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass, replace

import numpy as np
import pytest
from matplotlib.figure import Figure

import fieldbo
from fieldbo.belief.model import Model
from fieldbo.belief.outliers import dwarfing
from fieldbo.belief.question import LevelSet, Optimum, ShareOfMaximum
from fieldbo.costs.travel import Euclidean
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.sensor import Level, Sensor
from fieldbo.errors import InputError
from fieldbo.messages import EndReason, Observation, Query, Rejected, Stop
from fieldbo.mission.mission import Mission
from fieldbo.mission.rules import StopRule
from fieldbo.mission.vehicle_spec import VehicleSpec
from fieldbo.pages.field_map import places
from fieldbo.pages.plane import plane_of
from fieldbo.policies.baselines import Random
from fieldbo.policies.contract import Decision, Policy
from fieldbo.results.curve import Scorer, Step
from fieldbo.results.plot.figures import optimum_marks
from fieldbo.results.report import _stated
from fieldbo.results.result import Result
from fieldbo.results.truth import Place, truth_of
from fieldbo.world.fields.base import Field
from fieldbo.world.world import Quantity, World

AXES = Axis("east", "m", 0, 4), Axis("north", "m", 0, 4)
PEAK = np.array([1.234, 2.345])
ONE, RANDOM = Sensor(0.01), Random()
LEVELS = Sensor(levels=(Level(1e-6, 3.0), Level(0.04, 1.0)))


@dataclass(frozen=True, eq=False)
class Hill(Field):
    """A hill of height 5 over a plain of 1 that records how often all sites were evaluated."""

    sites: int
    looked_up: list

    def values(self, sites, time_s=0.0):
        if len(sites) == self.sites:
            self.looked_up.append(1)
        return 1.0 + 4.0 * np.exp(-0.5 * np.sum((sites - PEAK) ** 2, axis=1))


def mission(question, domain=None, *, sensor=ONE, policy=RANDOM, transform="none", **settings):
    domain = domain or Domain.grid(AXES, (13, 13))
    world = World(
        "hill",
        "A hill",
        domain,
        Euclidean(1.0, sampling=1.0),
        "s",
        sensor,
        Quantity("height", "m"),
        Hill(domain.size, []),
        start=domain.sites[0],
    )
    model = Model(length_scales=(1.2,) * domain.dimension, learn=False, mean=2.0, transform=transform)
    crew = (VehicleSpec(settings.pop("battery", 120.0), domain.sites[0]),)
    return Mission("hill", world, question, policy, model, crew, **settings)


def live(result):
    world = replace(result.mission.world, field=None)
    return replace(result, mission=replace(result.mission, world=world))


@dataclass(frozen=True)
class BothLevels(Policy):
    """Reads at random sites, alternating between two sensor levels."""

    def suggest(self, state, memory):
        told = Random().suggest(state, memory)
        if not isinstance(told.choice, fieldbo.Query):
            return told
        return Decision(replace(told.choice, level=len(state.history) % 2))


QUESTIONS = {
    "level set": LevelSet(2.0),
    "share of the maximum": ShareOfMaximum(0.6),
    "maximum": Optimum(),
    "minimum": Optimum("minimise"),
}


@pytest.fixture(scope="module")
def results():
    return {name: fieldbo.run(mission(question)) for name, question in QUESTIONS.items()}


# -- answers ---------------------------------------------------------------------------------------------


def test_a_share_of_the_maximum_refers_to_the_maximum_of_the_mean_and_of_the_truth(results):
    result = results["share of the maximum"]
    mean = result.hyperparameters.scale.to_user(result.surface.mean)
    np.testing.assert_array_equal(result.answer.above, mean >= 0.6 * mean.max())
    truth = result.truth
    np.testing.assert_array_equal(result.answer.truth.above, truth >= 0.6 * truth.max())
    told = result.summary()
    assert told["threshold"] == pytest.approx(0.6 * mean.max())
    assert told["threshold_of_maximum"] == 0.6
    assert told["threshold_true"] == pytest.approx(0.6 * truth.max())


def test_under_a_log_model_a_share_of_the_maximum_refers_to_values():
    result = fieldbo.run(mission(ShareOfMaximum(0.6), transform="log"))
    median = result.hyperparameters.scale.to_user(result.surface.mean)
    np.testing.assert_array_equal(result.answer.above, median >= 0.6 * median.max())
    assert result.f1 > 0.8


@pytest.mark.parametrize(("name", "sign"), [("maximum", 1), ("minimum", -1)])
def test_the_optimum_is_reported_at_the_best_mean_and_its_regret_uses_the_truth(results, name, sign):
    result = results[name]
    mean = result.hyperparameters.scale.to_user(result.surface.mean)
    at = int(np.argmax(sign * mean))
    told = result.summary()
    assert told["reported_site"] == result.mission.world.domain.sites[at].tolist()
    assert told["reported_value"] == pytest.approx(mean[at])
    best = int(np.argmax(sign * result.truth))
    assert told["optimum_true_site"] == result.mission.world.domain.sites[best].tolist()
    assert told["regret"] == result.regret == pytest.approx(abs(result.truth[best] - result.truth[at]))
    assert told["goal"] == ("maximise" if sign > 0 else "minimise")
    for key in ("reported_value", "expected_regret"):
        low, high = told[f"{key}_interval90"]
        assert low <= told[key] <= high
    assert told["optimum_interval90"][0] <= told["optimum_expected"] <= told["optimum_interval90"][1]


@pytest.mark.parametrize(("name", "sign"), [("maximum", 1), ("minimum", -1)])
def test_the_best_measured_place_stands_beside_the_reported_one_where_they_differ(results, name, sign):
    result = results[name]
    told, rows = result.summary(), dict(result.report().rows)
    means = {tuple(site): np.mean(result.values[(result.sites == site).all(axis=1)]) for site in result.sites}
    best = max(means, key=lambda site: sign * means[site])
    assert told["best_measured_site"] == list(best)
    assert told["best_measured_value"] == pytest.approx(means[best])
    if told["best_measured_site"] == told["reported_site"]:
        assert "best measured" not in rows, "the values hardly differ"
    elsewhere = replace(result, surface=results["minimum" if sign > 0 else "maximum"].surface)
    if elsewhere.summary()["reported_site"] != list(best):
        text = dict(elsewhere.report().rows)["best measured"]
        assert text.startswith(f"{means[best]:.4g} m at east ")


def test_pictures_and_pages_mark_the_best_measured_place_where_it_is_another_one(results):
    result = results["maximum"]
    elsewhere = replace(result, surface=results["minimum"].surface)
    assert elsewhere.measured_elsewhere is elsewhere.best_measured is not None
    drawn = optimum_marks(Figure().subplots(), elsewhere.answer, elsewhere.measured_elsewhere)
    at = np.concatenate(drawn["best measured"].get_data())
    np.testing.assert_array_equal(at, elsewhere.best_measured.point)
    marked = {place["kind"] for place in places(plane_of(result.mission.world.domain), elsewhere)}
    assert "measured" in marked
    here = replace(result)
    here.__dict__["best_measured"] = Place(here.answer.reported.point, 5.0)
    assert here.measured_elsewhere is None
    assert "measured" not in {p["kind"] for p in places(plane_of(result.mission.world.domain), here)}


@pytest.mark.parametrize("gap", [0.0, 2.0])
def test_the_report_says_what_was_measured_at_the_reported_place_if_it_states_something_else(results, gap):
    result = replace(results["maximum"])
    answer = result.answer
    result.__dict__["best_measured"] = Place(answer.reported.point, answer.reported_value + gap)
    told = dict(result.report().rows).get("best measured")
    assert told == (f"{answer.reported_value + gap:.4g} m, at the same place" if gap else None)


def test_where_nothing_was_detected_no_place_is_the_best_measured(results):
    result = results["maximum"]
    sensor = Sensor(0.01, below=float(result.values.max()))
    blind = replace(result.mission, world=replace(result.mission.world, sensor=sensor))
    elsewhere = replace(result, mission=blind, surface=results["minimum"].surface)
    assert elsewhere.measured_elsewhere is None
    assert "best measured" not in dict(elsewhere.report().rows)


@pytest.mark.parametrize(
    ("value", "ends", "text"),
    [
        (-33.0, [-64.0, -4.0], "at or below the limit of detection, 2 mm,"),
        (-3.0, [-9.0, 4.0], "at or below the limit of detection, 2 mm, or up to 4 mm,"),
        (3.0, [1.0, 5.0], "3 mm (1 to 5)"),
    ],
)
def test_a_value_that_no_sensor_detects_is_stated_without_a_number(results, value, ends, text):
    world = replace(results["maximum"].mission.world, quantity=Quantity("crack", "mm"))
    blind = replace(world, sensor=Sensor(0.01, below=2.0))
    assert _stated(blind, value, ends) == text
    assert _stated(world, value, ends).startswith(f"{value:g} mm (")


def test_only_an_optimum_has_a_best_measured_place(results):
    assert results["level set"].best_measured is None
    assert "best_measured_site" not in results["level set"].summary()


def test_in_a_box_the_reported_optimum_and_the_true_one_lie_between_the_sites():
    result = fieldbo.run(mission(Optimum(), Domain.box(AXES, 128), battery=150.0))
    truth = result.answer.truth
    np.testing.assert_allclose(truth.optimum.point, PEAK, atol=1e-3)
    assert truth.optimum.value == pytest.approx(5.0, abs=1e-6)
    at = result.answer.reported.point
    belief = result.surface.belief
    assert belief.mean(at[None])[0] >= max(result.surface.mean.max(), belief.mean(result.sites).max()) - 1e-9
    np.testing.assert_allclose(belief.with_gradients(at[None]).mean_gradient[0], 0, atol=1e-3)
    assert result.regret == pytest.approx(5.0 - truth.at(at))
    assert result.regret <= result.curve[-1].regret + 1e-9, "the curve reports sites and readings alone"


def test_in_a_box_a_step_reports_the_reading_that_is_better_than_all_sites():
    told = mission(Optimum(), Domain.box(AXES, 16))
    agent = fieldbo.Agent(told)
    first = agent.ask()
    agent.tell(replace(first.observed(5.0, noise_variance=1e-4, cost=1.0), sites=PEAK[None], position=PEAK))
    step = Scorer(told).step(agent)
    assert step.regret == pytest.approx(0.0, abs=1e-6)
    assert step.reported_value == pytest.approx(float(agent.surface.belief.mean(PEAK[None])[0] + 2.0))


def test_a_reading_better_than_the_climbed_optimum_becomes_the_true_optimum():
    result = fieldbo.run(mission(Optimum(), Domain.box(AXES, 16), max_steps=3))
    answer = replace(result.answer, place=None, target=None)
    answer.truth.__dict__["optimum"] = replace(answer.truth.optimum, value=4.0)
    assert answer.polished(PEAK[None]).optimum.value == pytest.approx(5.0)


# -- scores ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_last_step_has_the_scores_of_the_result(results, name):
    result = results[name]
    last, told = result.curve[-1], result.summary()
    for column in set(Step.columns(result.mission.question)) & set(told) - {"steps", "expected_f1"}:
        assert getattr(last, column) == pytest.approx(told[column]), column
    applies = set(Step.columns(result.mission.question)) | {"battery", "standing_still", "contradicted"}
    for column in set(Step.__dataclass_fields__) - applies:
        assert np.isnan(getattr(last, column))
    assert all(0 <= s.coverage90 <= 1 for s in result.curve)


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_live_world_has_no_score_against_the_truth(results, name):
    told = live(results[name]).summary()
    for key in ("f1", "precision", "recall", "regret", "coverage90", "threshold_true", "optimum_true"):
        assert told.get(key) is None
    assert live(results[name]).truth is None
    assert told.get("expected_f1", told.get("expected_regret")) >= 0


def test_coverage_is_the_fraction_of_true_values_in_the_belief_s_central_90_percent():
    result = fieldbo.run(mission(LevelSet(2.0), transform="log"))
    scale, s = result.hyperparameters.scale, result.surface
    low, high = scale.to_user(s.mean - 1.6449 * s.sd), scale.to_user(s.mean + 1.6449 * s.sd)
    expected = np.mean((low <= result.truth) & (result.truth <= high))
    assert result.summary()["coverage90"] == pytest.approx(expected, abs=0.01)


def test_the_truth_is_computed_once_for_all_runs_in_a_world():
    told = mission(LevelSet(2.0))
    for seed in range(3):
        result = fieldbo.run(replace(told, seed=seed))
        result.summary()
    assert len(told.world.field.looked_up) == 1


def test_two_questions_have_different_truths():
    world = mission(LevelSet(2.0)).world
    one, two = (truth_of(world, LevelSet(h)) for h in (2.0, 3.0))
    assert one.above.sum() > two.above.sum()
    assert truth_of(world, LevelSet(2.0)) is one
    assert truth_of(replace(world, field=None), LevelSet(2.0)) is None


def test_the_reason_of_a_result_is_an_end_reason_or_its_value():
    agent = fieldbo.Agent(mission(LevelSet(2.0)))
    assert Result.of(agent, reason="step limit").end_reason is EndReason.STEP_LIMIT
    assert Result.of(agent, reason=EndReason.STEP_LIMIT).end_reason is EndReason.STEP_LIMIT
    assert Result.of(agent).end_reason is None
    with pytest.raises(InputError, match="unknown end reason 'done'") as caught:
        Result.of(agent, reason="done")
    assert "battery spent, question answered, step limit" in caught.value.expected


# -- summary, notes and tables ---------------------------------------------------------------------------


def test_a_summary_is_plain_json_with_the_keys_that_apply_to_its_question(results):
    for name, result in results.items():
        told = json.loads(json.dumps(result.summary(), allow_nan=False))
        assert told["question"] == ("optimum" if "imum" in name and "share" not in name else "level-set")
        assert told["batch"] == 1
        assert "levels" not in told, "a sensor with one setting"
        assert ("f1" in told) != ("regret" in told)
        assert ("threshold" in told) == ("area_above" in told) == ("f1" in told)


def test_the_cost_to_a_target_is_where_the_curve_first_reaches_it(results):
    result = results["level set"]
    for target, cost in result.summary()["cost_to_target"].items():
        reached = [s.cost for s in result.curve if s.f1 >= float(target)]
        assert cost == (reached[0] if reached else None)


def test_a_threshold_beyond_all_readings_is_noted_with_their_range():
    (note,) = [n for n in fieldbo.run(mission(LevelSet(7.5))).notes if "threshold 7.5" in n]
    assert "lies above all readings, 1." in note
    assert note.endswith(" m")
    (note,) = [n for n in fieldbo.run(mission(LevelSet(0.1))).notes if "threshold 0.1" in n]
    assert "lies below all readings" in note
    assert not [n for n in fieldbo.run(mission(LevelSet(2.0))).notes if "threshold" in n]
    assert not [n for n in fieldbo.run(mission(Optimum())).notes if "threshold" in n]


def rows_of(file):
    with file.open(newline="") as lines:
        return list(csv.DictReader(lines))


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_curve_s_table_has_the_columns_that_apply(results, name, tmp_path):
    result = results[name]
    result.save(tmp_path)
    rows = rows_of(tmp_path / "curve.csv")
    assert tuple(rows[0]) == Step.columns(result.mission.question)
    assert ("regret" in rows[0]) == isinstance(result.mission.question, Optimum)
    assert [float(r["coverage90"]) for r in rows] == [s.coverage90 for s in result.curve]
    assert "level" not in rows_of(tmp_path / "observations.csv")[0]


def test_readings_and_their_cost_are_listed_by_sensor_level(tmp_path):
    result = fieldbo.run(mission(LevelSet(2.0), sensor=LEVELS, policy=BothLevels()))
    assert set(result.levels) == {0, 1}
    result.save(tmp_path)
    rows = rows_of(tmp_path / "observations.csv")
    assert [int(r["level"]) for r in rows] == result.levels.tolist()
    assert {float(r["noise_sd"]) for r in rows if r["level"] == "1"} == {0.2}
    fine, coarse = result.summary()["levels"]
    assert (fine["noise_variance"], coarse["noise_variance"]) == (1e-6, 0.04)
    for one in (fine, coarse):
        mine = [r for r in rows if int(r["level"]) == one["level"]]
        assert one["readings"] == len(mine)
        assert one["cost"] == pytest.approx(sum(float(r["cost"]) for r in mine))
    assert fine["cost"] + coarse["cost"] == pytest.approx(result.cost)


def told_to(question, values, **settings):
    """An agent that has read these values."""
    told = mission(question, battery=1e4, **settings)
    told = replace(told, model=replace(told.model, outliers="tested"))
    agent = fieldbo.Agent(told)
    for value in values:
        query = agent.ask()
        agent.tell(query.observed(value, noise_variance=1e-4, cost=1.0))
    return agent


@pytest.mark.parametrize("transform", ["none", "log"])
def test_outliers_are_counted_and_marked_in_the_table(transform, tmp_path):
    values = np.full(25, 2.0)
    values[[7, 20]] = 900.0, -1.0 if transform == "log" else np.nan
    agent = told_to(LevelSet(2.0), values, transform=transform)
    result = Result.of(agent)
    assert np.flatnonzero(~result.believed).tolist() == [7, 20]
    np.testing.assert_array_equal(result.believed[result.usable], agent.believed)
    outliers = 2 if transform == "log" else 1  # -1 has noise that might explain it; NaN says nothing
    assert result.summary()["outliers"] == agent.disbelieved == outliers
    result.save(tmp_path)
    rows = rows_of(tmp_path / "observations.csv")
    assert [int(r["believed"]) for r in rows] == result.believed.tolist()


def test_without_an_outlier_test_no_outliers_are_reported(results, tmp_path):
    result = results["level set"]
    assert result.believed.all()
    assert len(result.believed) == len(result.values)
    assert "outliers" not in result.summary()
    result.save(tmp_path)
    assert "believed" not in rows_of(tmp_path / "observations.csv")[0]


def test_only_a_run_without_queries_notes_that_the_battery_was_too_small_for_a_reading():
    agent = told_to(LevelSet(2.0), [np.nan])
    (note,) = Result.of(agent, reason=EndReason.BATTERY_SPENT).notes
    assert "1 reading could not be modelled" in note
    nothing = fieldbo.run(mission(LevelSet(2.0), battery=0.5))
    assert nothing.end_reason is EndReason.BATTERY_SPENT
    assert "the battery of 0.5 s is not enough for any reading" in nothing.notes[0]


def test_an_agent_without_readings_has_a_summary():
    for question in QUESTIONS.values():
        told = Result.of(fieldbo.Agent(mission(question))).summary()
        assert told["readings"] == 0
        assert told["complete"] is False


@pytest.mark.parametrize(
    ("visits", "said"),
    [
        ([0, 1, 2], "3 sites"),
        ([0, 0, 0, 1], "4 readings at 2 sites"),
        ([0, 1, 0], "3 readings at 2 sites"),
        ([0], "1 site"),
        ([2, 2], "2 readings at 1 site"),
        ([], "0 sites"),
    ],
)
def test_the_heading_says_readings_and_sites_where_they_differ(visits, said):
    agent = fieldbo.Agent(mission(LevelSet(2.0)))
    for site in visits:
        query = agent.issue(Query(agent.domain.sites[site]))
        agent.tell(query.observed(1.0, noise_variance=1e-4, cost=1.0))
    result = Result.of(agent)
    assert result.report().heading == f"Not finished: {said} so far."
    assert result.summary()["steps"] == len(visits)


@pytest.mark.parametrize("name", QUESTIONS)
def test_printing_a_result_shows_its_report(results, name):
    result = results[name]
    heading, *lines = str(result).splitlines()
    sites = len(np.unique([q.site for q in result.queries], axis=0))
    taken = f"{sites} sites" if result.steps == sites else f"{result.steps} readings at {sites} sites"
    assert heading == f"Battery spent after {taken}."
    assert any(line.startswith("  cost:") for line in lines)
    score = f"{result.regret:.3g}" if isinstance(result.mission.question, Optimum) else f"{result.f1:.3f}"
    assert f"{score} against the truth" in str(result)
    assert repr(result) == f"<Result of hill: {heading}>"


def test_a_rejected_order_is_not_a_visit():
    agent = fieldbo.Agent(mission(LevelSet(2.0)))
    for site in (0, 0, 1, 2):
        query = agent.issue(Query(agent.domain.sites[site]))
        if site == 1:
            agent.tell(Rejected(str(query.id), "shallow water"))
        elif site == 2:  # under way when it was cut short
            none, at = np.empty(0), np.empty((0, 2))
            agent.tell(Observation(str(query.id), at, none, none, none, query.site, 1.0, complete=False))
        else:
            agent.tell(query.observed(1.0, noise_variance=1e-4, cost=1.0))
    assert Result.of(agent).report().heading == "Not finished: 2 readings at 1 site so far."


def repeated(values, noise_variance, model=None):
    """Return the result of a mission that reads the first site once per value, and others in between."""
    plain = mission(LevelSet(2.0))
    agent = fieldbo.Agent(plain if model is None else replace(plain, model=model))
    for k, value in enumerate(values):
        for site, reading in ((0, value), (k + 1, 1.0)):
            query = agent.issue(Query(agent.domain.sites[site]))
            agent.tell(query.observed(reading, noise_variance=noise_variance, cost=1.0))
    return Result.of(agent)


@pytest.mark.parametrize(
    ("values", "variance", "apart"),
    [
        ([3.0, 4.0, 3.1], 0.01, "7.1 standard deviations apart"),
        ([3.0, 4.0, 3.1], 0.0, "because the declared noise is 0"),
        ([3.0, 3.7], 0.01, None),
        ([3.0, 3.0, 3.0], 0.0, None),
        ([0.1 + 0.2, 0.3], 0.0, None),
        ([3.0, np.nan, 3.2], 0.01, None),
    ],
)
def test_readings_of_one_site_that_contradict_each_other_are_named(values, variance, apart):
    found = [note for note in repeated(values, variance).notes if "contradict" in note]
    if apart is None:
        assert not found
    else:
        named = f"the readings 3 and 4 (orders 0 and 2) at east 0 m, north 0 m contradict each other, {apart}"
        assert found == [
            f"{named}: correct the wrong one with fieldbo correct, or raise noise_sd in [sensor]"
        ]


def test_a_model_that_learns_the_noise_has_no_contradictions():
    result = repeated([3.0, 4.0, 3.1], 1e-4, model=Model(noise="learned"))
    assert not any("contradict" in note for note in result.notes)


KNOWN = Model(length_scales=(1.2, 1.2), learn=False, mean=2.0)
BLIND = {
    "six that are equal": ([1.0] * 6 + [1e30], Model()),
    "six that are equal, known": ([1.0] * 6 + [1e30], KNOWN),
    "two of nine": ([1.0, 1.2, 1e30, 1.4, 1.1, 1.7, 1e30, 1.3, 0.9], Model()),
    "after a fit": ([1.0, 1.3, 0.8, 1.9, 1.2, 1.6, 0.7, 1e30, *np.linspace(0.8, 1.7, 14)], Model()),
    "the fourth, known": ([1.0, 1.2, 0.7, 1e30], KNOWN),
    "the first, known": ([1e30], KNOWN),
}


@pytest.mark.parametrize("name", BLIND)
def test_a_reading_of_1e30_never_leads_to_an_expected_f1_of_one(name):
    values, model = BLIND[name]
    goal = StopRule(expected_f1=0.5, least_readings=1)
    asked = replace(mission(LevelSet(2.0)), model=model, stop=goal)
    agent = fieldbo.Agent(asked)
    for k, value in enumerate(values):
        query = agent.issue(Query(agent.domain.sites[17 * k % 160]))
        agent.tell(query.observed(value, noise_variance=1e-4, cost=1.0))
        while (fitted := agent.refit()) is not None:
            agent.tell(fitted)
    assert not isinstance(agent.ask(), Stop)
    assert np.isnan(Scorer(asked).step(agent).expected_f1)
    assert Result.of(agent).summary()["expected_f1"] is None


@pytest.mark.parametrize(
    ("values", "beside", "skewed", "far"),
    [
        ([], [], False, []),
        ([3.0], [], False, []),
        ([3.0], [1.0], False, []),
        ([0.0] * 5 + [5.0], [1.0], False, []),
        ([0.0] * 5 + [-5e3], [1.0], False, [5]),
        ([1e-3, 2e-3] * 5 + [10.0] * 4, [5.0], False, []),
        ([0.1, 0.11, 0.12, 0.1, 0.13, 50.0], [], True, []),
        ([0.1, 0.11, 0.12, 0.1, 0.13, 50.0], [], False, [5]),
        ([1.0, 2.0, 1e308, -1e308, 1.5, 1.7], [], False, []),
    ],
)
def test_values_dwarf_others_only_if_nothing_lies_between(values, beside, skewed, far):
    assert dwarfing(values, beside, skewed=skewed).tolist() == far


def test_a_test_for_outliers_is_not_advised_if_there_is_one():
    notes = Result.of(told_to(LevelSet(2.0), [1.0, 1.3, 1e30])).notes
    (note,) = [n for n in notes if "so far away" in n]
    assert "outliers" not in note
    assert note.endswith("or set low and high under [reports] in the vehicle file")


@pytest.mark.parametrize("absurd", [1e30, -1e30, 1e6])
def test_a_reading_that_dwarfs_all_others_leaves_the_score_unknown(absurd):
    agent = fieldbo.Agent(mission(LevelSet(2.0)))
    for k, site in enumerate((0, 40, 80, 120, 160, 30, 100, 60)):
        query = agent.issue(Query(agent.domain.sites[site]))
        value = absurd if k == 3 else 1.0 + 0.3 * k
        agent.tell(query.observed(value, noise_variance=1e-4, cost=1.0))
    agent.ask()
    result = Result.of(agent, [Scorer(agent.mission).step(agent)])
    told = result.summary()
    assert told["expected_f1"] is None
    assert told["expected_f1_interval90"] == [0.0, 1.0]
    assert told["unclassified"] == 1.0
    assert told["area_above"] is None
    assert "model expects unknown (0.000 to 1.000)" in str(result)
    assert any(
        f"the reading of run/3 is {absurd:.4g}; all others lie between 1 and 3.1" in n for n in told["notes"]
    )
    assert any('outliers = "tested"' in n for n in told["notes"])
    json.dumps(told, allow_nan=False)
    assert result.pictures().keys() == {"path.png", "map.png", "curve.png"}

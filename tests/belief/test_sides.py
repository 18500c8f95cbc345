"""Level sets below a threshold: mirror images of those above, in everything but their words."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import xarray
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from tiers import swept

import fieldbo
from fieldbo.belief.model import Model
from fieldbo.belief.question import LevelSet, Optimum, ShareOfMaximum
from fieldbo.belief.value_scale import ValueScale
from fieldbo.costs.travel import Euclidean
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.sensor import Level, Sensor
from fieldbo.errors import InputError
from fieldbo.messages import EndReason
from fieldbo.mission.mission import Mission
from fieldbo.mission.new.mission import LevelSetMission
from fieldbo.mission.new.survey import Survey, make_world
from fieldbo.mission.vehicle_spec import VehicleSpec
from fieldbo.policies.baselines import GCHK, Lawnmower, MaximumVariance, Random, Straddle
from fieldbo.policies.level_set.truvar import TruVaR
from fieldbo.results import plot
from fieldbo.results.curve import Step
from fieldbo.results.metrics import f1_score
from fieldbo.results.report import _sizes
from fieldbo.results.truth import truth_of
from fieldbo.runs.comparison import compare
from fieldbo.runs.export import export
from fieldbo.runs.folder import begin
from fieldbo.runs.loop import Interrupted
from fieldbo.vehicles.base import Simulated
from fieldbo.world.fields.base import Field
from fieldbo.world.fields.gp_draw import GPDraw
from fieldbo.world.world import Quantity, World

AXES = Axis("x", "m", 0, 10), Axis("y", "m", 0, 8)
DOMAIN = Domain.grid(AXES, (9, 8))
TWO_LEVELS = Sensor(levels=(Level(1e-4, 3.0), Level(0.04, 1.0)))


@dataclass(frozen=True, eq=False)
class Transformed(Field):
    """A random field after a function of its values."""

    of: Field
    change: object = np.negative

    def values(self, sites, time_s=0.0):
        return self.change(self.of.values(sites, time_s))


class Mirrored(Simulated):
    """Reports the negative of what a vehicle in the other mission reads, noise included."""

    def events(self, timeout_s):
        return [replace(e, values=-e.values) for e in super().events(timeout_s)]


def mission(question, policy=None, *, change=None, domain=DOMAIN, sensor=None, **settings):
    field = GPDraw((3.0,) * domain.dimension, mean=1.0).make(domain, 2, None)
    world = World(
        "pond",
        "A pond",
        domain,
        Euclidean(1.0, sampling=1.0),
        "s",
        sensor or Sensor(0.1),
        Quantity("oxygen", "mg l-1"),
        field if change is None else Transformed(field, change),
        start=domain.sites[0],
    )
    model = settings.pop("model", Model(learn={"every": 6}))
    crew = (VehicleSpec(settings.pop("battery", 60.0), domain.sites[0]),)
    return Mission(
        "pond", world, question, policy or Straddle(per_cost=True), model, crew, initial=3, **settings
    )


@pytest.fixture(scope="module")
def below():
    return fieldbo.run(mission(LevelSet(0.8, "below")))


# -- the mirror image ------------------------------------------------------------------------------------


POLICIES = {
    "truvar": TruVaR(),
    "truvar, pure variance": TruVaR(eta=0.0),
    "straddle": Straddle(),
    "straddle per cost": Straddle(per_cost=True),
    "gchk": GCHK(kappa=1.5),
    "gchk, intersecting": GCHK(kappa=1.5, intersect=True, per_cost=True),
    "maximum variance": MaximumVariance(),
    "random": Random(),
    "lawnmower": Lawnmower(lines=3, samples=4),
}


def assert_mirrored(question, folder, **settings):
    """Run a mission below and its mirror image above: same path, beliefs and scores, bit for bit."""
    asked = mission(question, **settings)
    reflected = mission(LevelSet(-question.threshold), change=np.negative, **settings)
    down = fieldbo.run(asked)
    with fieldbo.Record.create(folder / "up.sqlite", reflected.name, {}) as record:
        up = fieldbo.run(reflected, [Mirrored(asked)], record)
    assert down.steps > 5
    assert [q.site.tolist() for q in down.queries] == [q.site.tolist() for q in up.queries]
    assert [q.level for q in down.queries] == [q.level for q in up.queries]
    assert np.array_equal(down.values, -up.values)
    assert down.surface.mean.tobytes() == up.surface.mean.tobytes()
    assert np.array_equal(down.answer.inside, up.answer.inside)
    assert repr(down.curve) == repr(up.curve)
    told, mirrored = down.summary(), up.summary()
    for key in ("f1", "precision", "recall", "expected_f1_interval90", "unclassified", "end_reason"):
        assert told[key] == mirrored[key]
    for key in ("", "_interval90", "_true"):
        assert told[f"area_below{key}"] == mirrored[f"area_above{key}"]


@pytest.mark.parametrize("name", swept(POLICIES, ["truvar", "gchk, intersecting", "straddle per cost"]))
def test_a_set_below_is_mapped_like_the_set_above_of_the_negative_field(name, tmp_path):
    assert_mirrored(LevelSet(0.8, "below"), tmp_path, policy=POLICIES[name])


@pytest.mark.parametrize("batch", [1, 3])
def test_the_mirror_image_holds_for_sensor_levels_and_batches(batch, tmp_path):
    assert_mirrored(LevelSet(0.8, "below"), tmp_path, policy=TruVaR(), sensor=TWO_LEVELS, batch=batch)


@pytest.mark.parametrize(
    "model",
    [Model(learn=False, mean=0.0), Model(mean=0.0, noise="learned"), Model(mean=0.0, outliers="tested")],
    ids=["fixed", "noise learned", "outliers tested"],
)
def test_the_mirror_image_holds_for_models_of_mean_zero(model, tmp_path):
    assert_mirrored(LevelSet(0.8, "below"), tmp_path, policy=TruVaR(), model=model)


def test_both_sides_of_a_threshold_cover_the_domain():
    above, below = (truth_of(mission(LevelSet(0.8, side)).world, LevelSet(0.8, side)) for side in SIDES)
    assert not (above.inside & below.inside).any()
    assert (above.inside | below.inside).all()
    at = LevelSet(float(above.values[7]))
    for side in SIDES:
        assert truth_of(mission(at).world, replace(at, side=side)).inside[7]


SIDES = ("above", "below")


@given(
    values=st.lists(st.integers(1, 999), min_size=1, max_size=20),
    threshold=st.integers(1, 999),
    side=st.sampled_from(SIDES),
    transform=st.sampled_from(["none", "log"]),
    shift=st.floats(-3, 3),
    spread=st.floats(0.1, 10),
)
def test_in_model_units_every_set_is_at_or_above_its_threshold(
    values, threshold, side, transform, shift, spread
):
    values, question = np.array(values) / 100, LevelSet(threshold / 100, side)
    scale = ValueScale(transform, shift, question.sign * spread)
    inside = values >= question.threshold if side == "above" else values <= question.threshold
    model = scale.to_model(values)
    assert np.array_equal(model >= question.level(model.max(), scale), inside)


# -- the question ----------------------------------------------------------------------------------------


def test_a_level_set_lies_above_by_default():
    assert LevelSet(2.0) == LevelSet(2.0, "above") != LevelSet(2.0, side="below")
    assert (LevelSet(2.0).sign, LevelSet(2.0, "below").sign) == (1.0, -1.0)
    assert ShareOfMaximum(0.5).side == "above"


@pytest.mark.parametrize(
    ("given", "parts"),
    [
        ((2.0, "belwo"), ["side", '"above" or "below"', "did you mean 'below'?", "question.side"]),
        ((2.0, 1), ["side = 1", "question.side"]),
        (([2, 4],), ["threshold = [2, 4]", "one threshold", "one mission per threshold"]),
        ((np.array([2.0, 4.0]),), ["threshold = [2.0, 4.0]", "one threshold", "question.threshold"]),
        ((float("nan"),), ["threshold = nan", "a finite number", "question.threshold"]),
        (("4",), ['threshold = "4"', "a number", "question.threshold"]),
    ],
)
def test_a_wrong_side_or_threshold_is_rejected(given, parts):
    with pytest.raises(InputError) as error:
        LevelSet(*given)
    for part in parts:
        assert part in str(error.value)


def lake(**question):
    overrides = {"agent": {"battery": 500}, "question": {"side": "below", **question}}
    return fieldbo.load_mission("lake-level-set", overrides)


def test_a_file_asks_for_the_set_below():
    assert lake().question == LevelSet(1.5, "below")
    assert fieldbo.load_mission("lake-level-set").question == LevelSet(1.5)


def test_a_quantile_of_the_true_values_bounds_the_set_below():
    asked = lake(threshold={"quantile": 0.3})
    truth = asked.world.truth(asked.world.domain.sites)
    assert asked.question.side == "below"
    assert np.mean(truth <= asked.question.threshold) == pytest.approx(0.3, abs=1e-3)


def test_a_share_of_the_maximum_has_no_set_below():
    with pytest.raises(InputError, match="fraction of the maximum") as error:
        lake(threshold={"of_maximum": 0.5})
    assert "question.side" in str(error.value)


def test_several_thresholds_in_a_file_are_rejected():
    with pytest.raises(InputError, match=r"threshold = \[2, 4\]") as error:
        lake(threshold=[2, 4])
    assert "one mission per threshold" in str(error.value)
    assert str(error.value).count("question.threshold") == 2  # the place, and the example of the fix


def test_a_policy_sees_the_set_above_the_threshold_in_model_units():
    seen = fieldbo.Agent(mission(LevelSet(0.8, "below"), model=Model(learn=False, mean=2.0))).seen()
    assert seen.threshold == pytest.approx(1.2)
    assert (seen.surface.mean < seen.threshold).all()  # a prior mean of 2 is above 0.8, so outside the set


# -- results ---------------------------------------------------------------------------------------------


def test_the_answer_is_the_set_at_or_below_the_threshold(below):
    weighted, moments = below.surface, below.hyperparameters.scale.moments
    chance = sum(
        weight * norm.cdf(0.8, *moments(surface.mean, surface.variance))
        for weight, surface in zip(weighted.weights, weighted.surfaces, strict=True)
    )
    low = chance >= 0.5
    np.testing.assert_array_equal(below.answer.inside, low)
    np.testing.assert_array_equal(below.answer.above, ~low)
    np.testing.assert_array_equal(below.answer.truth.inside, below.truth <= 0.8)
    np.testing.assert_array_equal(below.answer.truth.above, below.truth > 0.8)
    assert below.f1 == f1_score(low, below.truth <= 0.8) > 0.8


def test_a_log_model_maps_the_set_below_by_the_median():
    asked = mission(LevelSet(2.0, "below"), change=np.exp, battery=90.0, model=Model(transform="log"))
    result = fieldbo.run(asked)
    median = result.hyperparameters.scale.to_user(result.surface.mean)
    np.testing.assert_array_equal(result.answer.inside, median <= 2.0)
    assert 0 < np.mean(result.truth <= 2.0) < 1
    assert result.f1 > 0.8
    assert 0.5 < result.summary()["coverage90"] <= 1
    with pytest.raises(InputError, match="logarithm"):
        mission(LevelSet(-2.0, "below"), model=Model(transform="log", mean=1.0))


def test_the_summary_names_the_side_and_the_area_below(below):
    told = json.loads(json.dumps(below.summary()))
    assert (told["question"], told["side"], told["threshold"]) == ("level-set", "below", 0.8)
    low, high = told["area_below_interval90"]
    assert low <= told["area_below"] <= high
    cells = below.mission.world.domain.cells
    assert told["area_below_true"] == pytest.approx(cells @ (below.truth <= 0.8))
    assert not [key for key in told if key.startswith("area_above")]
    above = fieldbo.run(mission(LevelSet(0.8))).summary()
    assert set(told) - {"side"} == {key.replace("area_above", "area_below") for key in above}


def test_the_report_says_below(below):
    rows, told = dict(below.report().rows), below.summary()
    assert rows["below 0.8 mg l-1"].startswith(f"{told['area_below']:.3g} m2 (")
    share = told["area_below"] / below.mission.world.domain.cells.sum()
    assert rows["below 0.8 mg l-1"].endswith(
        f", {share:.0%} of the domain; {told['area_below_true']:.3g} in truth"
    )


def test_large_areas_are_in_hectares():
    axes = [Axis("east", "m", 0.0, 900.0), Axis("north", "m", 0.0, 500.0)]
    numbers = {"area_unit": "m2", "area_above": 91_234.0, "area_above_interval90": [80_000.0, 99_000.0]}
    whole = float(Domain.grid(axes, (10, 6)).cells.sum())
    known = _sizes(numbers | {"area_above_true": 90_000.0}, "above", whole)
    assert known == "9.12 ha (8 to 9.9), 20% of the domain; 9 in truth"
    nothing = numbers | {"area_above": None, "area_above_true": None}
    assert _sizes(nothing, "above", whole) == "unknown (8 to 9.9 ha)"


@pytest.mark.parametrize(("threshold", "side"), [(99.0, "above"), (-99.0, "below")])
def test_notes_say_on_which_side_of_all_readings_the_threshold_lies(threshold, side):
    notes = fieldbo.run(mission(LevelSet(threshold, "below"), Random(), battery=20.0)).notes
    assert any(f"lies {side} all readings" in note for note in notes)


def sure_notes(result, threshold, readings, below=None):
    """Return the first note on readings of a belief that is sure of all sites."""
    world = result.mission.world
    world = replace(world, sensor=replace(world.sensor, below=below))
    asked = replace(result.mission, question=LevelSet(threshold, "below"), world=world)
    scale = replace(result.hyperparameters.scale, shift=0.8)
    answer = replace(result.answer, mission=asked, scale=scale)
    return answer.notes(np.array(readings), EndReason.QUESTION_ANSWERED)[0]


@pytest.mark.parametrize(
    ("threshold", "readings", "note"),
    [
        (9.0, [0.8], "below the threshold. No reading has reached it, so a patch"),
        (9.0, [0.8, 9.5], "below the threshold, although 1 of 2 readings reaches it"),
        (9.0, [9.2, 9.5], "below the threshold, although 2 of 2 readings reach it"),
        (-9.0, [0.8], "above the threshold. No reading has fallen below it, so a patch"),
        (-9.0, [0.8, -9.5], "above the threshold, although 1 of 2 readings lies below it"),
    ],
)
def test_notes_say_on_which_side_all_sites_and_the_readings_lie(below, threshold, readings, note):
    assert f"every site is classified as {note}" in sure_notes(below, threshold, readings)


@pytest.mark.parametrize(
    ("threshold", "limit", "note"),
    [
        (9.0, 9.5, "below the threshold, but 2 of 2 readings are at or below the limit of detection"),
        (-9.0, 0.5, "above the threshold, but 1 of 2 readings is at or below the limit of detection"),
        (9.0, 0.5, "below the threshold. No reading has reached it, so a patch"),
        (-9.0, -9.5, "above the threshold. No reading has fallen below it, so a patch"),
    ],
)
def test_readings_below_a_limit_beyond_the_threshold_say_nothing_of_its_side(below, threshold, limit, note):
    assert f"every site is classified as {note}" in sure_notes(below, threshold, [0.4, 0.8], below=limit)


def test_maps_name_the_probability_and_the_class_after_what_they_are(below):
    maps, domain = below.maps(), below.mission.world.domain
    assert sorted(maps.data_vars) == ["class", "mean", "non_exceedance", "sd"]
    assert (maps.attrs["side"], maps.attrs["threshold"]) == ("below", 0.8)
    assert maps["non_exceedance"].attrs["long_name"] == "probability of oxygen <= 0.8"
    assert maps["class"].attrs["long_name"] == "oxygen > 0.8"
    assert maps["class"].attrs["flag_meanings"] == "below above not_inspected"
    at = maps["class"].values.ravel()[domain.grid_index]
    unknown = below.answer.not_inspected
    np.testing.assert_array_equal(at == 2, unknown)
    np.testing.assert_array_equal(at[~unknown] == 0, below.answer.inside[~unknown])
    chance = maps["non_exceedance"].values.ravel()[domain.grid_index]
    np.testing.assert_array_equal(chance >= 0.5, below.answer.inside)
    above = fieldbo.run(mission(LevelSet(0.8))).maps()
    assert sorted(above.data_vars) == ["class", "exceedance", "mean", "sd"]
    assert above["exceedance"].attrs["long_name"] == "probability of oxygen >= 0.8"
    assert above["class"].attrs["long_name"] == "oxygen >= 0.8"


# -- pictures --------------------------------------------------------------------------------------------


def test_pictures_show_the_set_below_in_the_warm_colour(below):
    panels = plot.map_picture(below).axes
    assert panels[2].get_title() == "probability of being at or below the threshold"
    drawn = np.asarray(panels[3].collections[0].get_array()).T.ravel()
    drawn, known = drawn[below.mission.world.domain.grid_index], ~below.answer.not_inspected
    np.testing.assert_array_equal(drawn[known] >= 2, below.answer.inside[known])
    assert (drawn[~known] == 4).all()
    (bar,) = panels[3].child_axes
    labels = [label.get_text() for label in bar.get_yticklabels()]
    assert (
        labels == ["above", "likely\nabove", "likely\nbelow", "below", "not\ninspected"][: 4 + (~known).any()]
    )
    assert f"{below.answer.wrong.mean():.1%} of sites misclassified" in panels[3].get_title()


def test_a_profile_draws_the_classes_where_their_labels_are():
    line = Domain.grid([Axis("x", "m", 0, 10)], (21,))
    result = fieldbo.run(mission(LevelSet(0.8, "below"), domain=line))
    panel = plot.map_picture(result).axes[3]
    assert [label.get_text() for label in panel.get_yticklabels()] == ["below", "above"]
    np.testing.assert_array_equal(panel.lines[0].get_ydata() == 0, result.answer.inside)


# -- runs ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of a run that was interrupted after four orders and then resumed."""
    asked = lake()
    folder, record = begin(asked, tmp_path_factory.mktemp("runs") / "lake-1")

    def stop(step: Step):
        if step.step == 4:
            raise KeyboardInterrupt

    with record, suppress(Interrupted):
        fieldbo.run(asked, record=record, on_step=stop)
    fieldbo.resume(folder).save(folder)
    return folder


@pytest.mark.slow
def test_a_resumed_run_for_the_set_below_equals_an_uninterrupted_one(folder):
    loaded, whole = fieldbo.load_run(folder).result(), fieldbo.run(lake())
    assert loaded.mission.question == LevelSet(1.5, "below")
    assert loaded.path.tolist() == whole.path.tolist()
    assert repr(loaded.curve) == repr(whole.curve)
    told = {k: v for k, v in whole.summary().items() if k != "run"}
    assert {k: v for k, v in loaded.summary().items() if k != "run"} == told


def test_an_explanation_expects_a_reading_within_its_interval(folder):
    text = str(fieldbo.explain(folder))
    line = next(line for line in text.splitlines() if line.strip().startswith("expected"))
    low, high = (float(x) for x in line.split("interval ")[1].rstrip(")").split(" to "))
    assert low < float(line.split()[1]) < high


def test_exports_hold_the_probability_of_the_set_below(folder, tmp_path):
    frame = tmp_path / "frame.toml"
    frame.write_text(
        "[frame]\norigin = { latitude = 47.31, longitude = 8.58 }\nalong = 'along'\ndepth = 'depth'\n"
    )
    export(folder, ["netcdf", "geojson", "csv"], tmp_path, frame=frame)
    result = fieldbo.load_run(folder).result()
    with xarray.open_dataset(tmp_path / "map.nc") as maps:
        assert set(maps.data_vars) == {"mean", "sd", "non_exceedance", "class"}
    sites = json.loads((tmp_path / "map.geojson").read_text())["features"]
    classes = np.where(result.answer.not_inspected, 2, result.answer.above)
    assert [s["properties"]["class"] for s in sites] == classes.tolist()
    assert [s["properties"]["non_exceedance"] for s in sites] == result.answer.probability.tolist()
    assert "exceedance" not in sites[0]["properties"]


def test_a_log_names_the_probability_of_the_set_below(folder, tmp_path):
    pytest.importorskip("foxglove")
    reader = pytest.importorskip("mcap.reader")
    decoder = pytest.importorskip("mcap_protobuf.decoder").DecoderFactory()
    export(folder, ["mcap"], tmp_path)
    with (tmp_path / "run.mcap").open("rb") as file:
        messages = reader.make_reader(file, decoder_factories=[decoder]).iter_decoded_messages(["/belief"])
        fields = {tuple(field.name for field in grid.fields) for _, _, _, grid in messages}
    assert fields == {("mean", "sd", "non_exceedance")}


def test_missions_for_the_set_below_are_compared_by_f1(tmp_path):
    overrides = {"question": {"side": "below"}, "agent": {"battery": 200}}
    rows = compare(
        ["lake-level-set with tour", "lake-level-set with straddle"], 1, 1, tmp_path / "c.csv", overrides
    )
    for name in ("lake-level-set with tour", "lake-level-set with straddle"):
        (run,) = [row for row in rows if row["row"] == "run" and row["mission"] == name]
        assert 0 < float(run["f1"]) <= 1


# -- the command line ------------------------------------------------------------------------------------


@pytest.fixture
def survey(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    places = rng.uniform(0, 500, (40, 2))
    oxygen = 6 + 3 * np.sin(places[:, 0] / 120) + 0.1 * rng.standard_normal(40)
    rows = [f"{x:.1f},{y:.1f},{o:.3f}" for (x, y), o in zip(places, oxygen, strict=True)]
    Path("s.csv").write_text("\n".join(["x,y,oxygen", *rows, ""]))
    return oxygen


NEW = ("new", "world", "bay", "--csv", "s.csv", "--x", "x", "--y", "y", "--value", "oxygen", "--unit", "mg/l")


def test_a_new_world_asks_for_the_set_below(said, survey):
    text = said(*NEW, "--side", "below", "--threshold", "4")
    assert "where is oxygen at or below 4 mg/l? tour, battery" in text
    assert "% of them at or below the threshold" in text
    file = Path("missions/bay.toml").read_text()
    assert 'title = "Where is oxygen at or below 4?"' in file
    assert 'side = "below"' in file
    assert "where is oxygen at or below 4 mg/l? (scored by F1)" in said("check", "bay")
    out = said("run", "bay", "--battery", "1500", "--out", "r")
    assert "below 4 mg/l:" in out
    assert json.loads(Path("r/summary.json").read_text())["side"] == "below"


def test_the_default_quantile_of_a_new_world_depends_on_the_side(survey):
    for name, side, quantile in (("low", "below", 0.3), ("high", "above", 0.7)):
        made = make_world(
            name, Survey(Path("s.csv"), ("x", "y"), "oxygen", mission=LevelSetMission(side=side))
        )
        assert made.loaded.question.side == side
        assert made.loaded.question.threshold == pytest.approx(np.quantile(survey, quantile), rel=1e-3)
        assert ("side" in made.mission.read_text()) == (side == "below")
    asked = LevelSetMission(side="below", quantile=0.5)
    made = make_world("half", Survey(Path("s.csv"), ("x", "y"), "oxygen", mission=asked))
    assert made.loaded.question.threshold == pytest.approx(np.median(survey), rel=1e-3)


def test_an_unknown_side_or_one_of_a_cell_is_rejected(command, survey):
    code, _, err = command(*NEW, "--side", "under")
    assert (code, "--side" in err, "'above'" in err) == (2, True, True)
    cell = ("new", "world", "c", "--csv", "s.csv", "--value", "oxygen", "--cell")
    code, _, err = command(*cell, "--side", "below")
    assert (code, "--side does not apply with --cell" in err) == (2, True)


@pytest.mark.parametrize(
    ("threshold", "lies", "number"), [("99", "above", "all"), ("-99", "below", "none")], ids=["high", "low"]
)
def test_check_warns_if_all_true_values_lie_on_one_side(said, survey, threshold, lies, number):
    said(*NEW, "--side", "below", "--threshold", "4")
    text = said("check", "bay", "--set", f"question.threshold={threshold}")
    assert f"warning: the threshold {threshold} lies {lies} all true values," in text
    assert f"mg/l: {number} of the sites are at or below it" in text


def test_the_side_of_an_optimum_is_an_unknown_key():
    with pytest.raises(InputError, match="unknown key 'side'"):
        fieldbo.load_mission("se-optimum", {"question": {"side": "below"}})
    with pytest.raises(InputError, match="unknown key 'side'"):
        Optimum("minimise", side="below")

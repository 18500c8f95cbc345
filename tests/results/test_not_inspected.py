"""The class *not inspected*: places farther from any reading than the readings can speak for."""

import json
from dataclasses import replace

import numpy as np
import pytest
import shapely
from matplotlib.figure import Figure
from page_runs import data_of
from small_runs import sketch

import fieldbo
from fieldbo._numerics.streams import stream
from fieldbo.agent.unseen import inspection, missable
from fieldbo.belief.confidence import confidence
from fieldbo.belief.covering import distance_text, to_nearest
from fieldbo.belief.model import Model
from fieldbo.belief.question import LevelSet
from fieldbo.costs import Euclidean
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.mission.vehicle_spec import VehicleSpec
from fieldbo.pages.report import report_page
from fieldbo.policies import Lawnmower
from fieldbo.results import plot
from fieldbo.runs.export import export, read_run
from fieldbo.runs.folder import begin
from fieldbo.testing import small_mission, small_world
from fieldbo.world.fields.base import Field

SHORE = [[0, 0], [1000, 0], [1000, 400], [980, 400], [980, 700], [900, 700], [900, 400], [0, 400]]


class Bloom(Field):
    """A quiet lake, and a bloom in its bay, north of 500 m."""

    def values(self, sites, time_s=0.0):
        east, north = sites.T
        calm = 6.0 + 0.5 * np.sin(east / 150.0) + 0.4 * np.cos(north / 130.0)
        return calm + 12.0 / (1.0 + np.exp(-(north - 500.0) / 10.0))


def with_a_bay(lines=8, samples=8, battery=8000.0, seed=0, average=False):
    """Return a mission over a lake with a narrow bay in the north-east, which no line of its boat enters."""
    axes = [Axis("east", "m", 0, 1000), Axis("north", "m", 0, 700)]
    domain = Domain.grid(axes, (26, 18), shapely.Polygon(SHORE))
    start, cost = (20.0, 20.0), Euclidean(rate=0.67, sampling=30.0)
    world = replace(small_world(), domain=domain, field=Bloom(), cost=cost, start=start)
    mission = small_mission(Lawnmower(lines=lines, samples=samples), world=world, question=LevelSet(12.0))
    boat = VehicleSpec(battery, world.start, home=world.start)
    return replace(mission, model=Model(average=average), vehicles=(boat,), seed=seed)


@pytest.fixture(scope="module")
def bay():
    return fieldbo.run(with_a_bay())


def test_the_bay_that_no_boat_entered_is_not_inspected(bay):
    sites, lacking = bay.mission.world.domain.sites, bay.answer.not_inspected
    assert not (bay.sites[:, 1] > 450).any(), "the trial: nobody was in the bay"
    assert lacking[sites[:, 1] > 540].all()
    assert not lacking[sites[:, 1] < 400].any(), "the lake itself was covered"


@pytest.mark.parametrize("seed", [None, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(10))])
def test_intervals_allow_for_a_bloom_where_nobody_was(bay, seed):
    result = bay if seed is None else fieldbo.run(with_a_bay(seed=seed, average=True))
    numbers = result.summary()
    low, high = numbers["area_above_interval90"]
    assert low <= numbers["area_above_true"] <= high
    low, high = numbers["expected_f1_interval90"]
    assert low <= numbers["f1"] <= high
    inside = result.mission.world.domain.cells[result.answer.not_inspected].sum()
    assert numbers["area_above_interval90"][1] <= inside + 1.0


def test_before_any_reading_meets_the_set_its_area_may_be_that_of_the_largest_empty_circle(bay):
    """A sweep that misses a patch between its lines must not state that there is none."""
    domain, surface, far = bay.mission.world.domain, bay.surface, bay.answer.inspection.far
    above = float(surface.belief.values.max()) + 1.0
    circle = missable(bay.mission, surface, above, far)
    middle, read = domain.sites[circle].mean(axis=0), surface.belief.sites
    radius = np.linalg.norm(domain.sites[circle] - middle, axis=1).max()
    assert np.linalg.norm(read - middle, axis=1).min() > radius - domain.spacing.max()
    assert circle.sum() > 5, "the trial: several sites lie between the lines"
    nowhere = np.zeros(domain.size, dtype=bool)
    for rows in (np.array([nowhere, circle]), np.array([far, circle])):
        found = confidence(surface, above, stream(0, "score"), None, domain.cells, rows)
        size = max(domain.cells[sites].sum() for sites in rows) / domain.cells.sum()
        assert found.share.low == 0.0
        assert found.share.high == pytest.approx(size, abs=0.002), "the larger one, not their sum"
        assert (found.f1.low, found.f1.high) == (0.0, 1.0)


def test_no_circle_counts_once_readings_lie_on_both_sides_of_the_threshold(bay):
    made, surface, far = bay.mission, bay.surface, bay.answer.inspection.far
    values = surface.belief.values
    between, above = float(np.median(values)), float(values.max()) + 1.0
    assert not missable(made, surface, between, far).any()
    assert missable(made, surface, above, far).any()
    assert not missable(replace(made, model=Model(learn=False)), surface, above, far).any(), (
        "known models vouch"
    )


def test_a_reading_vouches_as_far_as_a_sweep_in_square_cells_leaves_a_place(bay, monkeypatch):
    mission, above = bay.mission, float(bay.surface.belief.values.max()) + 1.0
    monkeypatch.setattr("fieldbo.agent.unseen.spacing_of", lambda *_: 100.0)
    monkeypatch.setattr("fieldbo.agent.unseen.reach_of", lambda *_: np.full(2, 1e-9))
    found = inspection(mission, bay.surface, above).far
    away = to_nearest(mission.world.domain, bay.surface.belief.sites)
    np.testing.assert_array_equal(found, away >= 100.0 / np.sqrt(2.0))
    assert found.any()
    assert not found.all()


def test_the_report_counts_what_is_far_from_all_readings_once(bay):
    assert bay.summary()["not_inspected"] > 0
    assert not any("far from all readings" in note for note in bay.notes)


def test_the_report_says_how_much_was_not_inspected_and_where(bay):
    numbers = bay.summary()
    assert numbers["not_inspected_places"] == [
        {"area": pytest.approx(numbers["not_inspected_area"]), "place": "in the north-east"}
    ]
    line = next(line for line in str(bay).splitlines() if "not inspected" in line)
    assert f"{numbers['not_inspected_area'] / 1e4:.3g} ha in the north-east" in line
    missed = distance_text(bay.mission.world.domain, 2 * numbers["farthest"])
    assert line.endswith(f"largest patch that could be missed: {missed}")
    assert numbers["largest_missed"] == 2 * numbers["farthest"]


def test_where_nothing_is_open_the_intervals_are_those_of_the_model(bay):
    answer, cells = bay.answer, bay.mission.world.domain.cells
    nowhere = np.zeros(len(cells), dtype=bool)
    own, same = (
        confidence(answer.surface, answer.threshold, stream(0, "score"), None, cells, either)
        for either in (None, nowhere)
    )
    assert own == same


@pytest.mark.slow
def test_a_lake_that_was_covered_is_inspected_and_its_area_is_that_of_the_model():
    mission = with_a_bay(lines=26, samples=9, battery=40_000.0)
    result = fieldbo.run(mission)
    answer = result.answer
    assert not answer.inspection.far.any()
    own = confidence(answer.surface, answer.threshold, stream(0, "score"), None, mission.world.domain.cells)
    assert answer.confidence.share == own.share
    assert answer.confidence.f1.low < own.f1.low, "no kernel quite fits"
    assert "not inspected" not in str(result)


def test_learned_length_scales_count_only_once_both_sides_were_met(bay):
    answer = bay.answer
    assert answer.surface.sd[answer.not_inspected].min() < 0.7, "the model would vouch for some of the bay"


def test_known_models_vouch_for_all_places():
    mission = with_a_bay()
    known = Model(learn=False, length_scales=(5000.0, 5000.0), variance=4.0, mean=6.0)
    result = fieldbo.run(replace(mission, model=known))
    assert not result.answer.not_inspected.any()


@pytest.fixture(scope="module")
def corner(tmp_path_factory):
    """Return a run over a lake that reads one corner only, and its folder."""
    changes = {
        "agent": {"battery": 3000, "max_steps": 3},
        "policy": {"kind": "lawnmower", "lines": 2, "samples": 2},
        "model": {"learn": False, "length_scales": [60.0, 60.0], "variance": 1.0, "mean": 7.0},
    }
    mission = fieldbo.load_mission("lake-places-level-set", changes)
    folder, record = begin(mission, tmp_path_factory.mktemp("runs") / "corner")
    with record:
        return fieldbo.run(mission, record=record), folder


def test_sites_far_from_all_readings_are_not_inspected(corner):
    result, _ = corner
    sites, read = result.mission.world.domain.sites, result.sites
    nearest = np.sqrt(((sites[:, None] - read[None]) ** 2).sum(axis=2)).min(axis=1)
    assert result.answer.not_inspected[nearest > 300].all()
    assert not result.answer.not_inspected[nearest < 20].any()
    lacking, cells = result.answer.not_inspected, result.mission.world.domain.cells
    assert result.summary()["not_inspected_area"] == pytest.approx(cells[lacking].sum())
    assert 0 < result.summary()["unknown"] <= lacking.mean(), "those about which readings say next to nothing"


def test_maps_have_the_class_not_inspected(corner):
    result, _ = corner
    classes = result.maps()["class"]
    assert classes.attrs["flag_meanings"] == "below above not_inspected"
    counts = {value: int((classes == value).sum()) for value in (0, 1, 2)}
    assert counts[2] == result.answer.not_inspected.sum() > 0
    assert sum(counts.values()) == result.mission.world.domain.size


def test_the_picture_names_sites_not_inspected(corner):
    figure = sketch(plot.map_picture, corner[0])
    labels = [t.get_text() for ax in figure.axes for t in (*ax.get_yticklabels(), *ax.get_xticklabels())]
    labels += [t.get_text() for ax in figure.axes for c in ax.child_axes for t in c.get_yticklabels()]
    assert "not\ninspected" in labels


@pytest.mark.parametrize(
    ("layer", "estimated"), [("mean", True), ("sd", True), ("probability", True), ("truth", False)]
)
def test_whatever_the_model_estimates_is_hatched_where_nobody_inspected_it(corner, layer, estimated):
    drawn = plot.map_panel(Figure().subplots(), corner[0], layer)
    assert ("not inspected" in drawn) == estimated


def test_the_page_hatches_what_the_model_estimates_with_scripts_and_without(corner):
    page = report_page(read_run(corner[1])).decode()
    described = data_of(page.encode())["layers"]
    assert {each["key"] for each in described if each.get("estimated")} == {
        "mean",
        "sd",
        "probability",
        "class",
    }
    assert "; hatched: not inspected" in page


def test_areas_of_the_classes_with_that_not_inspected_cover_the_lake(corner):
    result, folder = corner
    export(folder, ["contours"])
    file = next((folder / "export").rglob("*classes*.geojson"))
    features = json.loads(file.read_text(encoding="utf-8"))["features"]
    areas = {f["properties"]["class"]: f["properties"]["area_m2"] for f in features}
    assert areas["not inspected"] > 0
    region = result.mission.world.domain.region
    assert sum(areas.values()) == pytest.approx(shapely.area(region), rel=1e-3)
    (open_,) = (f["properties"] for f in features if f["properties"]["class"] == "not inspected")
    assert open_["meaning"].startswith("too far from all readings to say whether")

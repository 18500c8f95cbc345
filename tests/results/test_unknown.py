"""The class *unknown*: where readings say hardly more about the field than its prior."""

import json

import numpy as np
import pytest
import shapely
from small_runs import sketch

import fieldbo
from fieldbo.results import plot
from fieldbo.runs.export import export
from fieldbo.runs.folder import begin


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


def test_sites_far_from_all_readings_are_unknown(corner):
    result, _ = corner
    sites, read = result.mission.world.domain.sites, result.sites
    nearest = np.sqrt(((sites[:, None] - read[None]) ** 2).sum(axis=2)).min(axis=1)
    assert result.answer.unknown[nearest > 300].all()
    assert not result.answer.unknown[nearest < 20].any()
    assert result.summary()["unknown"] == pytest.approx(result.answer.unknown.mean())


def test_maps_have_the_class_unknown(corner):
    result, _ = corner
    classes = result.maps()["class"]
    assert classes.attrs["flag_meanings"] == "below above unknown"
    counts = {value: int((classes == value).sum()) for value in (0, 1, 2)}
    assert counts[2] == result.answer.unknown.sum() > 0
    assert sum(counts.values()) == result.mission.world.domain.size


def test_the_picture_names_unknown_sites(corner):
    figure = sketch(plot.map_picture, corner[0])
    labels = [t.get_text() for ax in figure.axes for t in (*ax.get_yticklabels(), *ax.get_xticklabels())]
    labels += [t.get_text() for ax in figure.axes for c in ax.child_axes for t in c.get_yticklabels()]
    assert "unknown" in labels


def test_areas_of_the_classes_with_the_unknown_one_cover_the_lake(corner):
    result, folder = corner
    export(folder, ["contours"])
    file = next((folder / "export").rglob("*classes*.geojson"))
    features = json.loads(file.read_text(encoding="utf-8"))["features"]
    areas = {f["properties"]["class"]: f["properties"]["area_m2"] for f in features}
    assert areas["unknown"] > 0
    region = result.mission.world.domain.region
    assert sum(areas.values()) == pytest.approx(shapely.area(region), rel=1e-3)
    (unknown,) = (f["properties"] for f in features if f["properties"]["class"] == "unknown")
    assert unknown["meaning"].startswith("the readings hardly say whether")

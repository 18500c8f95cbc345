"""A run that learns where readings fail resumes exactly; runs of earlier versions go on as they began."""

import numpy as np
import pytest

import fieldbo
from fieldbo.errors import InputError
from fieldbo.messages import Observation, Query, to_plain
from fieldbo.pages.report import report_page
from fieldbo.record.record import Record
from fieldbo.record.store import ORDERS
from fieldbo.results.plot.maps import layer_picture
from fieldbo.runs import folder as folders
from fieldbo.runs.explain import explain
from fieldbo.runs.export import read_run
from fieldbo.runs.replay import load_run, mission_of
from fieldbo.runs.runner import resume, run

WORLD = """
format = 1
version = "1.0.0"
title = "A wall with a wet patch"
cost_unit = "s"

[domain]
kind = "grid"
axes = [
    { name = "along", unit = "m", low = 0, high = 19, count = 20 },
    { name = "height", unit = "m", low = 0, high = 15, count = 16 },
]

[field]
kind = "gp-draw"
kernel = "matern52"
length_scales = [4, 4]
variance = 1.0

[cost]
kind = "euclidean"
rate = 0.1
sampling = 1.0

[sensor]
noise_sd = 0.05

[[unreadable]]
name = "wet patch"
low = [8.5, 5.5]
high = [16.5, 13.5]
"""

MISSION = """
format = 1
world = "wall"

[question]
kind = "level-set"
threshold = 0.3

[agent]
battery = 70

[policy]
kind = "straddle"

[model]
learn = false
length_scales = [2.0, 2.0]
mean = 0.0
"""


@pytest.fixture
def wet(tmp_path):
    """Return a mission over a wall with a wet patch."""
    (tmp_path / "wall").mkdir()
    (tmp_path / "wall" / "world.toml").write_text(WORLD, encoding="utf-8")
    (tmp_path / "wall.toml").write_text(MISSION, encoding="utf-8")
    return fieldbo.load_mission(tmp_path / "wall.toml")


SHORT = {"agent": {"battery": 100}}


class Died(BaseException):
    """The death of a process: nothing catches it."""


def begun(mission, out):
    folder, record = folders.begin(mission, out)
    with record:
        run(mission, record=record)
    return folder


def orders(folder):
    with Record(folder / "run.sqlite") as record:
        return [(to_plain(row.message), row.body["why"]) for row in record.rows() if row.kind in ORDERS]


def nameless(told):
    """Return orders without the name of their run."""
    return [({k: v for k, v in order.items() if k != "id"}, why) for order, why in told]


@pytest.mark.parametrize("settled", [8, 25, 40])
def test_a_run_resumes_exactly_after_it_was_killed(wet, tmp_path, settled):
    whole = orders(begun(wet, tmp_path / "whole"))
    assert any(why and "failures" in why for _, why in whole)
    folder, record = folders.begin(wet, tmp_path / "killed")
    seen = [0]

    def die(event):
        seen[0] += isinstance(event, Observation)
        if seen[0] >= settled:
            raise Died

    with record, pytest.raises(Died):
        run(wet, record=record, on_event=die)
    with Record(folder / "run.sqlite") as record:
        record.claim()
        resume(mission_of(record), record)
    assert nameless(orders(folder)) == nameless(whole)


def test_a_run_of_an_earlier_version_avoids_nothing(wet, tmp_path, monkeypatch):
    describe = folders.describe
    monkeypatch.setattr(
        folders, "describe", lambda *of: {k: v for k, v in describe(*of).items() if k != "failure_limit"}
    )
    folder, record = folders.begin(wet, tmp_path / "old")
    record.close()
    with Record(folder / "run.sqlite") as record:
        assert mission_of(record).failure_limit == 1.0


def test_a_limit_in_the_file_is_kept(wet, tmp_path):
    mission = fieldbo.load_mission(tmp_path / "wall.toml", {"agent": {"failure_limit": 0.3, "battery": 5}})
    assert load_run(begun(mission, tmp_path / "run")).mission.failure_limit == 0.3


def test_an_explanation_names_what_is_avoided(wet, tmp_path):
    folder = begun(wet, tmp_path / "run")
    number = max(n for n, (_, why) in enumerate(orders(folder)) if why and "failures" in why)
    assert "sites are avoided, where a reading is likely to fail" in explain(folder, number).text


def test_the_pictures_and_the_report_show_how_likely_a_failure_is(wet, tmp_path):
    folder = begun(wet, tmp_path / "run")
    result = load_run(folder).result()
    axes = layer_picture(result, "failure").axes[0]
    assert axes.get_title() == "probability that a reading fails"
    crosses = next(line for line in axes.lines if line.get_marker() == "x")
    assert len(crosses.get_xdata()) == np.isnan(result.values).sum()
    page = report_page(read_run(folder)).decode()
    assert page.count("probability that a reading fails") >= 1
    with_others = load_run(begun(fieldbo.load_mission("lake-level-set", SHORT), tmp_path / "lake")).result()
    with pytest.raises(InputError, match="its readings do not fail in some places"):
        layer_picture(with_others, "failure")


def test_readings_fail_in_the_patch_and_nowhere_else(wet):
    world, rng = wet.world, np.random.default_rng(0)
    values = [world.evaluate(Query(site), world.start, 0.0, rng).values[0] for site in world.domain.sites]
    assert np.array_equal(np.isnan(values), wet.world.unreadable[0].holds(wet.world.domain.sites))


@pytest.mark.parametrize("limit", [0.0, 1.5, "half"])
def test_a_limit_that_is_no_probability_is_rejected(wet, tmp_path, limit):
    with pytest.raises(InputError, match="failure_limit"):
        fieldbo.load_mission(tmp_path / "wall.toml", {"agent": {"failure_limit": limit}})

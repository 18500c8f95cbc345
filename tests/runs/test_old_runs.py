"""Runs of earlier versions open, explain, export and resume: see tests/old_runs/make.py."""

import json
import shutil

import numpy as np
import pytest
from checkout import TESTS
from tiers import swept

import fieldbo
from fieldbo.messages import to_plain
from fieldbo.runs.export import export
from fieldbo.runs.replay import mission_of
from fieldbo.runs.runner import correct_run

FOLDERS = sorted(p.parent for p in (TESTS / "old_runs").glob("*/*/expected.json"))
TOLERANCE = {"rtol": 1e-6, "atol": 1e-9}  # other processors round otherwise


def name_of(folder):
    return f"{folder.parent.name}/{folder.name}"


@pytest.fixture(params=FOLDERS, ids=name_of)
def old(request, tmp_path):
    """Return a copy of an old run folder, and what its version expected of it."""
    folder = tmp_path / request.param.name
    shutil.copytree(request.param, folder)
    return folder, json.loads((folder / "expected.json").read_text(encoding="utf-8"))


def some(*names):
    """Try every old run; all but these are a sweep."""
    cases = swept(FOLDERS, lambda folder: folder.name in names)
    return pytest.mark.parametrize("old", cases, indirect=True, ids=map(name_of, FOLDERS))


def orders_of(record):
    """Return the orders in plain form, without their routes, which 0.1.0 did not record."""
    orders = [to_plain(row.message) for row in record.rows() if row.kind in KINDS]
    return [{key: value for key, value in order.items() if key != "route"} for order in orders]


KINDS = ("query", "go-home")


NEW = {
    "unknown",
    "not_inspected",
    "not_inspected_area",
    "not_inspected_places",
    "farthest",
    "largest_missed",
}
"""Keys that summaries did not have."""

AREAS = {"area_above", "area_above_true"}
"""A site on the edge of a grid used to count as a whole cell."""

DRAWN = {
    "expected_f1_interval90": "expected_f1_interval90",
    "area_above_interval90": "area_above_interval90",
    "expected_regret": "expected_regret_interval90",
    "expected_regret_interval90": "expected_regret_interval90",
    "optimum_expected": "optimum_interval90",
    "optimum_interval90": "optimum_interval90",
}
"""What comes from random draws, which may be others by now, and the interval whose width says how much."""


WIDER = {"expected_f1_interval90", "area_above_interval90"}
"""Intervals that did not allow for sites that are not inspected."""


def assert_covers(ours, theirs, where):
    """Check that an interval covers another one, but for a quarter of its width."""
    near = 0.25 * (theirs[1] - theirs[0]) + TOLERANCE["atol"]
    assert ours[0] <= theirs[0] + near, f"{where}: {ours} for {theirs}"
    assert ours[1] >= theirs[1] - near, f"{where}: {ours} for {theirs}"


def assert_close(ours, theirs, interval, where):
    """Compare numbers from random draws: to a quarter of the width of their interval."""
    near = 0.25 * (interval[1] - interval[0]) + TOLERANCE["atol"]
    assert np.all(np.abs(np.subtract(ours, theirs)) <= near), f"{where}: {ours} for {theirs}"


def assert_alike(ours, theirs, where=""):
    """Compare nested plain data, numbers with a tolerance; None stands for NaN."""
    if isinstance(theirs, dict):
        assert set(ours) - NEW == set(theirs), where
        for key, value in theirs.items():
            if key in AREAS:
                assert ours[key] == pytest.approx(value, rel=0.05), f"{where}.{key}"
            elif key in WIDER and ours["not_inspected"] > 0.0:
                assert_covers(ours[key], value, f"{where}.{key}")
            elif key in DRAWN:
                assert_close(ours[key], value, theirs[DRAWN[key]], f"{where}.{key}")
            else:
                assert_alike(ours[key], value, f"{where}.{key}")
    elif isinstance(theirs, list):
        assert len(ours) == len(theirs), where
        for k, value in enumerate(theirs):
            assert_alike(ours[k], value, f"{where}[{k}]")
    elif isinstance(theirs, float) and not isinstance(ours, bool | str | None):
        assert np.isclose(ours, theirs, **TOLERANCE), f"{where}: {ours} for {theirs}"
    else:
        assert ours == theirs or (theirs is None and np.isnan(ours)), f"{where}: {ours} for {theirs}"


AVERAGES = {
    "expected_true",
    "best_value_true",
    "last_play_value",
    "simple_regret",
    "quality_regret",
    "regret",
}


def without_averages(summary):
    """Return a summary without true averages over free variables: 0.2.0 took them over other samples."""
    if isinstance(summary, dict):
        return {k: without_averages(v) for k, v in summary.items() if k not in AVERAGES}
    return [without_averages(item) for item in summary] if isinstance(summary, list) else summary


def test_there_are_old_runs_that_ended_and_some_that_did_not():
    ended = [json.loads((f / "expected.json").read_text(encoding="utf-8"))["ended"] for f in FOLDERS]
    assert len(FOLDERS) >= 9
    assert any(ended)
    assert not all(ended)


def test_an_old_run_opens_with_the_orders_it_gave(old):
    folder, expected = old
    with fieldbo.Record(folder / "run.sqlite") as record:
        given = orders_of(record)
    assert 0 < len(given) <= len(expected["orders"])
    assert_alike(given, expected["orders"][: len(given)])
    state = fieldbo.load_run(folder)
    assert (state.end_reason is not None) == expected["ended"]
    if expected["ended"]:
        ours = json.loads(json.dumps(state.result().summary(), default=str))
        notes = ours.pop("notes"), expected["summary"].pop("notes")
        assert len(notes[0]) == len(notes[1])  # their wording may change
        theirs = expected["summary"]
        if theirs.get("control_sets"):
            assert set(ours) == set(theirs)
            ours, theirs = without_averages(ours), without_averages(theirs)
        assert_alike(ours, theirs)


@some("chain", "lake-log", "batch")
def test_an_old_run_is_explained_and_exported(old):
    folder, _ = old
    assert fieldbo.explain(folder).text
    assert fieldbo.explain(folder, 0).order.id.endswith("/0")
    files = {file.name for file in export(folder, ["csv", "netcdf"])}
    assert {"observations.csv", "path.csv", "curve.csv", "ledger.csv", "map.nc", "trajectory.nc"} <= files


@pytest.mark.slow
def test_an_old_run_resumes_to_the_end_that_its_own_version_would_have_reached(old):
    folder, expected = old
    with fieldbo.Record(folder / "run.sqlite") as record:
        before = [row.body for row in record.rows()]
        result = fieldbo.resume(mission_of(record), record)
        after = record.rows()
        assert [row.body for row in after[: len(before)]] == before
        weighted = [row.body.get("message", {}).get("weighted") for row in after]
        assert not any(weighted), "it goes on as it began: not averaged"
        assert_alike(orders_of(record), expected["orders"])
    assert result.end_reason == expected["summary"]["end_reason"]


@some("chain", "lake-outliers", "wall-map")
def test_an_old_run_can_be_corrected(old):
    folder, _ = old
    before = fieldbo.load_run(folder).result()
    first = before.observations[0]

    corrected = correct_run(folder, first.order, float(first.values[0]) + 1.0)

    assert corrected.values.tolist() == [first.values[0] + 1.0, *before.values[1:]]
    assert fieldbo.load_run(folder).result().surface.mean.tobytes() == corrected.surface.mean.tobytes()
    assert corrected.end_reason is before.end_reason
    assert corrected.cost == before.cost

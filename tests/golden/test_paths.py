"""Missions take the paths that are on file: see tests/golden/paths.py."""

import json

import pytest
from golden import paths
from tiers import swept

TOLERANCE = 1e-6  # other processors round otherwise
FEW = {
    "missions/lake-level-set",
    "missions/gp-lake-straddle",
    "missions/wall-worst-crack-ucb",
    "missions/cell-hartmann-6-lazy-ei-per-cost",
    "missions/cell-growth-etc",
    "old-runs/0.1.0/lake",
    "worlds/plain/3",
    "worlds/steered/2",
    "worlds/recharged/5",
    "worlds/bad-link/4",
    "faults/reports-late:3:1.5",
    "faults/streams-silent:3:1.5",
}


@pytest.mark.parametrize("name", swept(paths.names(), FEW))
def test_a_mission_takes_the_path_that_is_on_file(name):
    assert paths.parted(name, paths.told(name), TOLERANCE) is None


def test_every_path_on_file_is_tested():
    assert set(paths.expected()) == set(paths.names())


def test_paths_of_other_processors_begin_like_the_one_on_file():
    """They part where two choices are tied within rounding, not from the start."""
    for name, others in json.loads(paths.ELSEWHERE.read_text()).items():
        for other in others:
            assert paths.difference(other[:4], paths.expected()[name][:4], TOLERANCE) is None
            assert paths.difference(other, paths.expected()[name], TOLERANCE) is not None


def test_a_path_that_differs_is_told_apart():
    path = [["run/0", "query", [1.0, 2.0], 3.0, 17, 0.5]]
    near, far = (
        [["run/0", "query", [1.0, 2.0], 3.0, 17, 0.5 + 1e-9]],
        [["run/0", "query", [1.0, 2.1], 3.0, 17, 0.5]],
    )

    assert paths.difference(path, path) is None
    assert "row 0" in paths.difference(path, near)
    assert paths.difference(path, near, TOLERANCE) is None
    assert "row 0" in paths.difference(path, far, TOLERANCE)
    assert "2 rows" in paths.difference(path * 2, path)
    assert paths.digest({"a": [1.0, None], "b": "x"}) != paths.digest({"a": [1.0, 2.0], "b": "x"})
    assert paths.digest({"a": 1.0}) != paths.digest({"a": 1.0 + 1e-12})

"""Worlds whose field is fitted to an earlier survey, carried out by hand or with a robot: not scored."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small_files import mission_text, world_text

import fieldbo
from fieldbo.messages import Query
from fieldbo.mission.prior import Prior
from fieldbo.runs.folder import as_carried_out
from fieldbo.runs.replay import load_run
from fieldbo.testing import small_mission
from fieldbo.vehicles.by_hand import ByHand

WORLD = world_text(
    ("east", 0, 10, 6),
    ("north", 0, 4, 5),
    title="a surveyed pond",
    field={"kind": "table", "file": "readings.csv", "value": "oxygen"},
)
MISSION = mission_text(
    "pond", threshold=6.0, battery=12, agent={"start": [0, 0]}, policy="random", model={"learn": False}
)
BY_HAND = {"kind": "by-hand"}


@pytest.fixture
def pond(tmp_path, monkeypatch):
    """Work in a folder with a world that was made from readings between 1.9 and 9.7, and a mission."""
    monkeypatch.chdir(tmp_path)
    folder = Path("worlds", "pond")
    folder.mkdir(parents=True)
    (folder / "world.toml").write_text(WORLD)
    rng = np.random.default_rng(0)
    sites = rng.uniform([0, 0], [10, 4], (40, 2))
    values = 5.8 + 3.9 * np.sin(sites[:, 0] / 2)
    values[np.argmin(values)], values[np.argmax(values)] = 1.9, 9.7
    rows = [f"{e:.3f},{n:.3f},{v:.4f}" for (e, n), v in zip(sites, values, strict=True)]
    (folder / "readings.csv").write_text("\n".join(["east,north,oxygen", *rows]))
    Path("m.toml").write_text(MISSION)
    return folder


class Keys:
    """Types lines one after the other, then 'quit'."""

    def __init__(self, *typed):
        self.typed, self.printed = list(typed), []

    def read(self, prompt):
        self.printed.append(prompt)
        return self.typed.pop(0) if self.typed else "quit"

    @property
    def questions(self):
        return [line.strip() for line in self.printed if "really" in line]


def visited(mission, *typed):
    """Carry out an order for the first site by hand; return the observation and what was asked."""
    keys = Keys(*typed)
    vehicle = ByHand(mission, read=keys.read, write=lambda line: None)
    vehicle.send(Query(mission.world.domain.sites[0], id="m/0", expected_cost=1.0))
    return vehicle.events(1.0)[0], keys


# -- the question about an outlier -----------------------------------------------------------------------


def test_the_first_reading_is_compared_with_the_survey(pond):
    mission = fieldbo.load_mission("m.toml")
    event, keys = visited(mission, "", "91", "n", "9.1", "")
    assert event.values.tolist() == [9.1]
    assert keys.questions == ["earlier readings: 1.9 to 9.7; really 91? [y/N]"]


@pytest.mark.parametrize(("typed", "asked"), [(17.4, 0), (17.6, 1), (-5.8, 0), (-6.0, 1), (5.0, 0)])
def test_a_reading_within_the_spread_of_the_survey_beyond_its_ends_is_not_questioned(pond, typed, asked):
    event, keys = visited(fieldbo.load_mission("m.toml"), "", str(typed), *["y"] * asked, "")
    assert event.values.tolist() == [typed]
    assert len(keys.questions) == asked


def test_the_survey_is_known_even_where_its_field_is_no_longer_the_truth(pond):
    found = fieldbo.load_mission("m.toml").as_found()
    assert found.world.live
    _, keys = visited(found, "", "91", "y", "")
    assert len(keys.questions) == 1


def test_a_confirmed_reading_is_known_from_then_on(pond):
    mission = fieldbo.load_mission("m.toml")
    keys = Keys("", "40", "y", "", "", "41", "")
    vehicle = ByHand(mission, read=keys.read, write=lambda line: None)
    for number in range(2):
        vehicle.send(Query(mission.world.domain.sites[number], id=f"m/{number}", expected_cost=1.0))
        vehicle.events(1.0)
    assert len(keys.questions) == 1


def test_the_first_reading_is_compared_with_the_earlier_readings_of_a_mission():
    prior = Prior([[0, 0], [5, 4], [2, 2]], [1.9, 9.7, 4.0], [0.1, 0.1, 0.1])
    mission = small_mission()
    assert mission.world.surveyed is None
    _, keys = visited(replace(mission, prior=prior), "", "91", "n", "9.1", "")
    assert len(keys.questions) == 1
    event, keys = visited(mission, "", "91", "")
    assert (event.values.tolist(), keys.questions) == ([91.0], [])


# -- scores ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("vehicles", "live"),
    [([], False), ([{"kind": "simulated"}], False), ([BY_HAND], True), ([{"link": {"kind": "mqtt"}}], True)],
)
def test_only_simulated_vehicles_find_the_survey_as_the_truth(pond, vehicles, live):
    mission = fieldbo.load_mission("m.toml")
    found = as_carried_out(mission, vehicles)
    assert found.world.live == live
    assert (found is mission) == (not live)
    assert np.array_equal(found.world.surveyed, mission.world.surveyed)


def test_a_field_that_is_no_survey_remains_the_truth():
    mission = fieldbo.load_mission("lake-level-set")
    assert as_carried_out(mission, [BY_HAND]).world.field is mission.world.field


def by_hand(folder, typed):
    from typer.testing import CliRunner

    from fieldbo.cli import app

    return CliRunner().invoke(app, ["run", "m.toml", "--by-hand", "--out", folder], input=typed)


def test_a_run_by_hand_is_not_scored_against_the_survey_and_says_so(pond):
    done = by_hand("once", "\n5\n\n" * 3 + "quit\n")
    assert "not scored against it" in " ".join(done.output.split())
    assert "against the truth" not in done.output
    assert ", expected F1 " in done.output
    assert json.loads(Path("once/summary.json").read_text())["f1"] is None
    assert load_run("once").result().f1 is None


def test_a_simulation_is_scored_against_the_survey(pond, command):
    _, out, _ = command("run", "m.toml", "--out", "once")
    assert "against the truth" in out
    assert "not scored" not in out
    assert json.loads(Path("once/summary.json").read_text())["f1"] is not None


def test_a_run_by_hand_is_resumed_without_scores(pond, command):
    by_hand("once", "\n5\n\nquit\n")
    code, out, _ = command("correct", "once", "0", "5,5")
    assert code == 0
    assert "against the truth" not in out

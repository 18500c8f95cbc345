"""Every shipped mission loads, has a title, and runs on a tiny battery; every shipped world is documented."""

import numpy as np
import pytest
from checkout import ROOT
from tiers import swept

import fieldbo
from fieldbo.mission.files import read_toml
from fieldbo.mission.kinds import POLICIES

GUARDS = (
    "cell-growth",
    "cell-hartmann-6-random",
    "gp-lake-straddle-per-cost",
    "gp-level-noise-gchk-coarsest",
    "lake-gchk",
    "lake-lawnmower",
    "lake-level-set",
    "lake-truvar",
    "se-optimum-gp-ucb",
    "svm-ei",
    "wall-damage-map",
    "wall-worst-crack-ucb",
)
"""Missions of all questions, in worlds of all kinds; `sweep` runs every one."""

SHIPPED = sorted(f.stem for f in (ROOT / "missions").glob("*.toml"))


@pytest.mark.parametrize("name", swept(SHIPPED, GUARDS))
def test_a_shipped_mission_runs_on_a_tiny_battery_and_never_overdraws(name):
    shipped = fieldbo.load_mission(name)
    battery, reserve = shipped.vehicles[0].battery / 20, shipped.vehicles[0].reserve / 20
    # With free samples, any battery lasts for all steps.
    steps = {} if shipped.max_steps is None else {"max_steps": 8}
    few = {
        "agent": {"battery": battery, "reserve": reserve, **steps},
        "initial": {"count": min(shipped.initial, 6)},
    }
    mission = fieldbo.load_mission(name, few)
    result = fieldbo.run(mission)
    last = result.observations[-1].cost if mission.costs == "unknown" else 0.0  # the last query may overdraw
    assert result.cost - last <= battery
    assert result.end_reason is not None
    assert len(result.values) == len(result.queries) >= 1
    home = mission.vehicles[0].home
    assert home is None or np.array_equal(result.observations[-1].position, home)
    assert mission.world.domain.contains(result.sites).all()


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_mission_loads_and_has_a_title(name):
    assert read_toml(ROOT / "missions" / f"{name}.toml")["title"].strip()
    assert fieldbo.load_mission(name).name == name


def test_there_is_a_mission_for_every_policy():
    files = [read_toml(ROOT / "missions" / f"{name}.toml") for name in SHIPPED]
    assert {file["policy"]["kind"] for file in files if "policy" in file} == set(POLICIES.names())


@pytest.mark.parametrize("name", sorted(f.parent.name for f in (ROOT / "worlds").glob("*/world.toml")))
def test_a_shipped_world_has_a_readme_and_finite_values(name):
    assert (ROOT / "worlds" / name / "README.md").read_text().startswith(f"# {name}\n")
    world = fieldbo.load_world(name)
    assert np.isfinite(world.truth(world.domain.sites)).all()


@pytest.mark.slow
def test_the_lake_mission_reaches_an_f1_of_nine_tenths_within_its_battery():
    result = fieldbo.run(fieldbo.load_mission("lake-level-set"))
    assert result.f1 is not None
    assert result.f1 >= 0.9
    assert result.cost <= 6000

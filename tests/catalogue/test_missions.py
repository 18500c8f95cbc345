"""Every shipped mission loads, has a title, and runs on a tiny battery; every shipped world is documented."""

import re
from pathlib import Path

import numpy as np
import pytest

import fieldbo
from fieldbo.mission.kinds import POLICIES

ROOT = Path(__file__).parents[2]
SHIPPED = sorted(f.stem for f in (ROOT / "missions").glob("*.toml"))


@pytest.mark.parametrize("name", SHIPPED)
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
def test_a_shipped_mission_has_a_title(name):
    text = (ROOT / "missions" / f"{name}.toml").read_text()
    assert re.search(r'^title = "\S', text, re.MULTILINE)


def test_there_is_a_mission_for_every_policy():
    kinds = {fieldbo.load_mission(name).policy_kind for name in SHIPPED}
    assert kinds == set(POLICIES.names())


@pytest.mark.parametrize("name", sorted(f.parent.name for f in (ROOT / "worlds").glob("*/world.toml")))
def test_a_shipped_world_has_a_readme_and_finite_values(name):
    assert (ROOT / "worlds" / name / "README.md").read_text().startswith(f"# {name}\n")
    world = fieldbo.load_world(name)
    assert np.isfinite(world.truth(world.domain.sites)).all()


def test_the_lake_mission_reaches_an_f1_of_nine_tenths_within_its_battery():
    result = fieldbo.run(fieldbo.load_mission("lake-level-set"))
    assert result.f1 is not None
    assert result.f1 >= 0.9
    assert result.cost <= 6000

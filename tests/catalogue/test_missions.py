"""Every shipped mission loads, has a title, and runs on a tiny battery; every shipped world is documented."""

import numpy as np
import pytest
from checkout import ROOT
from tiers import swept

import fieldbo
from fieldbo.mission.files import former_missions, read_toml
from fieldbo.mission.kinds import POLICIES

GUARDS = (
    "cell-growth",
    "cell-hartmann-6",
    "gp-lake",
    "gp-level-noise-gchk-coarsest",
    "lake-lawnmower",
    "lake-level-set",
    "se-optimum",
    "svm",
    "wall-damage-map",
    "wall-worst-crack",
)
"""Missions of all questions, in worlds of all kinds; `sweep` runs every one."""

SHIPPED = sorted(f.stem for f in (ROOT / "missions").glob("*.toml"))
RIVALS = {name: became for name, became in former_missions().items() if "policy" in became}
"""Missions of earlier versions: one for each policy."""


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("name", swept([*SHIPPED, *RIVALS], GUARDS))
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


def test_a_mission_is_run_with_every_policy():
    files = [read_toml(ROOT / "missions" / f"{name}.toml") for name in SHIPPED]
    kinds = {file["policy"]["kind"] for file in [*files, *RIVALS.values()] if "policy" in file}
    assert kinds | {"tour"} == set(POLICIES.names()), "tour is the default of lake-level-set"


def test_a_name_of_an_earlier_version_is_still_known_with_a_note():
    with pytest.warns(FutureWarning, match="gp-lake-straddle is now gp-lake with policy straddle"):
        mission = fieldbo.load_mission("gp-lake-straddle", {"agent": {"battery": 50}})
    assert (mission.name, mission.policy_kind) == ("gp-lake", "straddle")
    assert mission.vehicles[0].battery == 50
    with pytest.warns(FutureWarning, match="branin-ei is now branin;"):
        assert fieldbo.load_mission("branin-ei").name == "branin"


def test_settings_of_a_former_mission_do_not_mix_with_those_of_its_successor():
    with pytest.warns(FutureWarning, match="wall-worst-crack"):
        mission = fieldbo.load_mission("wall-worst-crack-rollout-ei-per-cost")
    assert mission.settings["policy"] == RIVALS["wall-worst-crack-rollout-ei-per-cost"]["policy"]


def test_every_former_mission_has_become_one_that_is_shipped():
    assert {became["mission"] for became in former_missions().values()} <= set(SHIPPED)
    assert not former_missions().keys() & set(SHIPPED)


def test_a_mission_of_your_own_may_have_a_former_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "missions").mkdir()
    mine = (ROOT / "missions" / "gp-lake.toml").read_text()
    (tmp_path / "missions" / "gp-lake-straddle.toml").write_text(mine)
    assert fieldbo.load_mission("gp-lake-straddle").policy_kind == "truvar"


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

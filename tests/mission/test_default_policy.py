"""The policy of a mission that names none."""

import json
import tomllib
from dataclasses import replace

import numpy as np
import pytest

import fieldbo
from fieldbo.agent.agent import Agent
from fieldbo.belief.question import LevelSet, Optimum
from fieldbo.costs.cells import Modular, Module
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError
from fieldbo.messages import Query
from fieldbo.mission.default_policy import default_policy
from fieldbo.mission.files import list_missions, made
from fieldbo.mission.kinds import POLICIES
from fieldbo.testing import small_chain, small_mission, small_world

AUTO = {"policy": {"kind": "auto"}}


def one_mission_per_world_and_question():
    """Return names of shipped missions that differ in their world, their kind of question or their costs."""
    chosen = {}
    for name, file in sorted(list_missions().items()):
        content = tomllib.loads(file.read_text(encoding="utf-8"))
        question = json.dumps(
            [content["question"]["kind"], isinstance(content["question"].get("threshold"), dict)]
        )
        chosen.setdefault((content["world"], question, content["agent"].get("costs")), name)
    return sorted(chosen.values())


@pytest.mark.parametrize("name", one_mission_per_world_and_question())
def test_the_default_policy_fits_every_shipped_world_and_question(name):
    mission = fieldbo.load_mission(name, AUTO)
    default = default_policy(mission.question, mission.world, mission.costs)
    assert mission.policy == POLICIES.get(default.settings["kind"])(
        **{key: value for key, value in default.settings.items() if key != "kind"}
    )
    assert default.why.endswith(".")


@pytest.fixture
def lake(tmp_path):
    """Return a mission file without a policy."""
    file = tmp_path / "lake.toml"
    file.write_text(
        'format = 1\nworld = "gp-lake"\n[question]\nkind = "level-set"\nthreshold = 0.5\n'
        "[agent]\nbattery = 300\n[model]\nlearn = false\nlength_scales = [200, 3]\nvariance = 1\nmean = 0\n",
        encoding="utf-8",
    )
    return file


def test_a_mission_without_a_policy_runs_as_one_that_names_the_default(lake):
    left_out, named = (
        fieldbo.run(fieldbo.load_mission(lake, more)) for more in ({}, {"policy": {"kind": "tour"}})
    )
    assert left_out.mission.policy_kind == "tour"
    assert [q.site.tolist() for q in left_out.queries] == [q.site.tolist() for q in named.queries]
    assert len(left_out.queries) > 3


def test_auto_is_the_same_as_no_policy(lake):
    assert fieldbo.load_mission(lake, AUTO).settings == fieldbo.load_mission(lake).settings


def test_the_run_folder_names_the_policy(lake, tmp_path, command):
    code, _, err = command("run", lake, "--out", tmp_path / "runs")
    assert code == 0, err
    kept = tomllib.loads((tmp_path / "runs" / "mission.toml").read_text(encoding="utf-8"))
    assert kept["policy"] == {"kind": "tour"}


def test_auto_takes_no_settings(lake):
    with pytest.raises(InputError, match='level is set, with kind = "auto"'):
        fieldbo.load_mission(lake, {"policy": {"kind": "auto", "level": 0}})


@pytest.mark.parametrize(
    ("table", "first", "absent"),
    [
        ({"stops": 3}, "tour", "search-tour"),  # which looks for an optimum
        ({"kappa": 2.0}, "straddle", "ucb"),
        ({"stops": 3, "x": 1}, "tour", "straddle"),
    ],
)
def test_settings_without_a_kind_are_rejected_with_the_kinds_that_have_them(lake, table, first, absent):
    with pytest.raises(InputError, match="set, but not the kind of policy") as error:
        fieldbo.load_mission(lake, {"policy": table})
    assert absent not in str(error.value.expected)
    assert f"policy.kind={first}" in str(error.value.fix)
    with pytest.raises(InputError, match="kind is missing"):
        fieldbo.load_mission(lake, {"policy": {"x": 3}})


def test_the_default_is_suggested_for_its_misspelt_name(lake):
    with pytest.raises(InputError, match="unknown policy 'AUTO'") as error:
        fieldbo.load_mission(lake, {"policy": {"kind": "AUTO"}})
    assert error.value.fix == "did you mean 'auto'?"


def test_free_or_unknown_costs_get_a_policy_that_divides_by_none():
    question, world = LevelSet(0.3), small_world()
    assert default_policy(question, world, "declared").settings == {"kind": "tour"}
    assert default_policy(question, world, "unknown").settings == {"kind": "straddle"}


AXES = [Axis(name, "", 0.0, 2.0) for name in "xy"]


def chain(*prices, domain=None):
    names = [("x",), ("y",)] if len(prices) == 2 else [("x", "y")]
    modules = (Module(f"set {n}", n, price) for n, price in zip(names, prices, strict=True))
    domain = Domain.box(AXES, 8) if domain is None else domain
    return replace(
        small_chain(),
        domain=domain,
        cost=Modular(modules=tuple(modules), charge_last=True),
        start=np.zeros(2),
    )


@pytest.mark.parametrize(
    ("world", "kind"),
    [
        (chain(2.0, 1.0), "lambo"),
        (chain(2.0, 1.0, domain=Domain.grid(AXES, (3, 3))), "dist-ucb"),  # LaMBO needs a box
        (chain(2.0), "ei"),  # and several modules
    ],
)
def test_the_default_policy_of_a_chain_can_be_used_with_it(world, kind):
    default = default_policy(Optimum(), world, "declared")
    mission = small_mission(made(POLICIES, default.settings, "policy"), world=world, question=Optimum())
    assert default.settings["kind"] == kind
    assert isinstance(Agent(mission).ask(), Query)


@pytest.mark.parametrize("name", ["gp-lake", "gp-lake-optimum", "cell-growth"])
def test_policies_for_a_mission_names_the_default_and_what_the_mission_uses(said, name):
    mission = fieldbo.load_mission(name)
    default = default_policy(mission.question, mission.world, mission.costs)
    text = said("policies", "--for", name)
    assert text.startswith(f"{default.settings['kind']}: {default.why.split()[0]}")
    assert tomllib.loads(text[text.index("[policy]") :].split("\n\n")[0])["policy"] == default.settings
    same = mission.settings["policy"] == default.settings
    assert (f"{name} uses {mission.policy_kind}" in text) is not same


def test_policies_for_takes_no_policy_beside_it(command):
    code, _, err = command("policies", "tour", "--for", "gp-lake")
    assert code != 0
    assert "one of the two" in err

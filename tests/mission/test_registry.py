"""Kinds by name: built-in ones, and those of installed packages."""

import json
import pickle
import shutil
import sys
from pathlib import Path

import pytest

import fieldbo
from fieldbo.errors import FieldboError, InputError, PolicyError, UnknownNameError
from fieldbo.mission.kinds import POLICIES
from fieldbo.runs.comparison import compare
from fieldbo.runs.folder import begin
from fieldbo.runs.replay import notes

HEAD = """
from dataclasses import dataclass
import numpy as np
from fieldbo.policies import Decision, PerCost, Policy, best_affordable
"""
NORTH = (
    HEAD
    + """
@dataclass(frozen=True)
class North(PerCost):
    def suggest(self, state, memory):
        return best_affordable(state, state.domain.sites[:, -1], memory)
"""
)
"""A policy that goes along the last axis."""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Make an installed package with the given entry points, as lines, and the code of its module."""
    before = set(sys.modules)

    def install(*lines, code=None, package="plume", version="1", group="policies"):
        site = tmp_path / f"site-{package}"
        info = site / f"{package}-{version}.dist-info"
        info.mkdir(parents=True, exist_ok=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {package}\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(f"[fieldbo.{group}]\n" + "\n".join(lines) + "\n")
        monkeypatch.syspath_prepend(site)
        if code is not None:
            write(code, package)

    def write(code, package="plume"):
        """Change the code of a package, as an upgrade before the next process does."""
        (tmp_path / f"site-{package}" / f"{package}.py").write_text(code)
        sys.modules.pop(package, None)

    def remove(package="plume"):
        """Uninstall a package, as before the next process."""
        shutil.rmtree(tmp_path / f"site-{package}")
        sys.modules.pop(package, None)

    install.write, install.remove = write, remove
    yield install
    for name in set(sys.modules) - before:
        if name in ("plume", "fume"):
            del sys.modules[name]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Work in an empty folder."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)


@pytest.mark.parametrize("target", ["nosuch:Thing", "json:Nope", "string:ascii_letters"])
def test_a_package_that_cannot_be_loaded_is_named_in_the_error(installed, target):
    installed(f"bad = {target}")
    with pytest.raises(InputError, match="policy 'bad' of the package plume") as caught:
        POLICIES.get("bad", where="m.toml: policy.kind")
    assert caught.value.where == "m.toml: policy.kind"
    assert "plume" in caught.value.fix


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("raise SystemExit(3)", "can't be loaded: SystemExit(3)"),
        ("def North(): ...", "is not a subclass of fieldbo.policies.Policy"),
        ("class North:\n    answers = (1,)", "is not a subclass of fieldbo.policies.Policy"),
        (NORTH.replace("@dataclass(frozen=True)", ""), "is not a frozen dataclass"),
        (NORTH.replace("(frozen=True)", ""), "cannot inherit non-frozen dataclass from a frozen one"),
        (
            NORTH.replace("def suggest", "def suggests").replace("PerCost", "Policy"),
            "does not implement suggest",
        ),
        (NORTH, ""),
    ],
)
def test_a_broken_policy_is_listed_with_its_problem_and_hides_no_other(installed, said, code, problem):
    installed("north = plume:North", code=code)
    listed = " ".join(said("policies").split())
    assert "truvar" in listed
    assert "straddle" in listed
    assert problem in listed.replace(" n on-frozen", " non-frozen")
    schema = json.loads(said("schema", "mission"))
    kinds = {k["properties"]["kind"]["const"]: k for k in schema["properties"]["policy"]["oneOf"]}
    assert {"truvar", "north"} <= set(kinds)
    if problem:
        with pytest.raises(InputError, match="policy 'north' of the package plume") as caught:
            POLICIES.get("north")
        assert problem in str(caught.value)
        assert "policy 'north' of the package plume" in kinds["north"]["description"]
    else:
        assert "of the package plume" not in listed


@pytest.mark.parametrize(
    ("returned", "problem"),
    [
        ("None", "suggest of policy north returned None"),
        ("[1.0, 2.0]", r"suggest of policy north returned \[1.0, 2.0\]"),
        ("Decision(state.domain.sites[0])", "returned a Decision for array"),
        (
            "best_affordable(state, np.full(state.domain.size, np.nan), memory)",
            r"policy north gave NaN as the score of (\d+) of \1 candidates",
        ),
        (
            "self.best(state, np.where(np.arange(state.domain.size) % 2, np.nan, 1.0), memory)",
            "policy north gave NaN as the score of",
        ),
    ],
)
def test_a_policy_that_returns_nonsense_is_named_in_the_error(installed, returned, problem):
    code = NORTH.replace("best_affordable(state, state.domain.sites[:, -1], memory)", returned)
    installed("north = plume:North", code=code)
    policy = {"kind": "north", "per_cost": "self.best" in returned}
    agent = fieldbo.Agent(fieldbo.load_mission("lake-level-set", {"policy": policy}))
    for _ in agent.initial:
        agent.tell(agent.ask().observed(1.0, noise_variance=0.01))
    with pytest.raises(PolicyError, match=problem):
        agent.ask()


def test_a_built_in_name_stays_built_in_and_the_package_is_reported(installed, command):
    installed("truvar = plume:North", code=NORTH)
    assert POLICIES.get("truvar").__module__ == "fieldbo.policies.level_set.truvar"
    assert POLICIES.source("truvar") is None
    _, listed, _ = command("policies")
    assert "the policy 'truvar' of the package plume is ignored" in " ".join(listed.split())
    code, _, warning = command("policies", "truvar")
    assert code == 0
    assert "the policy 'truvar' of the package plume is ignored" in warning
    _, checked, _ = command("check", "gp-lake")
    assert "the policy 'truvar' of the package plume is ignored" in " ".join(checked.split())


@pytest.mark.parametrize(
    ("group", "name"), [("fields", "gp-draw"), ("costs", "euclidean"), ("links", "mqtt")]
)
def test_a_built_in_name_of_any_kind_stays_and_is_reported(installed, command, group, name):
    installed(f"{name} = plume:North", code=NORTH, group=group)
    _, checked, _ = command("check", "gp-lake")
    assert f"'{name}' of the package plume" in " ".join(checked.split())


def test_a_name_of_two_packages_is_an_error_when_it_is_used(installed, said):
    installed("north = plume:North", "far-north = plume:North", code=NORTH)
    installed("north = fume:North", code=NORTH, package="fume")
    with pytest.raises(InputError, match="policy 'north' is provided by several packages"):
        POLICIES.get("north")
    assert "provided by several packages" in " ".join(said("policies").split())
    assert POLICIES.get("far-north").__name__ == "North"


def test_an_unknown_name_lists_built_in_and_installed_ones(installed):
    installed("far-straddle = fieldbo.policies.baselines:Random")
    with pytest.raises(UnknownNameError, match="did you mean 'far-straddle'"):
        POLICIES.get("far-stradle")


NORTHWARD = {"policy": {"kind": "north"}, "agent": {"battery": 300}}


def test_rows_of_a_comparison_are_not_reused_once_the_code_of_a_plug_in_changed(installed, here):
    installed("north = plume:North", code=NORTH)
    compare(["lake-level-set"], 1, 1, Path("t.csv"), NORTHWARD)
    compare(["lake-level-set"], 1, 1, Path("t.csv"), NORTHWARD)
    before = Path("t.csv").read_bytes()
    installed.write(NORTH.replace("sites[:, -1]", "sites[:, 0]"))
    with pytest.raises(InputError, match="a different version of fieldbo or of a plug-in"):
        compare(["lake-level-set"], 1, 1, Path("t.csv"), NORTHWARD)
    assert Path("t.csv").read_bytes() == before


def test_a_policy_that_fails_in_a_comparison_is_named_with_its_run(installed, here):
    installed("north = plume:North", code=NORTH.replace("return ", "return [] and "))
    with pytest.raises(
        FieldboError, match="lake-level-set, draw 0, start 0: suggest of policy north"
    ) as caught:
        compare(["lake-level-set"], 1, 1, Path("t.csv"), NORTHWARD)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value), "workers pass it on"


def test_a_record_names_plug_ins_versions_and_platform(installed, here):
    installed("north = plume:North", code=NORTH, version="1.2")
    _, record = begin(fieldbo.load_mission("lake-level-set", NORTHWARD))
    with record:
        plugin = dict(*record.description["plugins"])
        assert plugin.pop("sha256")
        assert plugin == {
            "kind": "north",
            "group": "fieldbo.policies",
            "distribution": "plume",
            "version": "1.2",
        }
        versions = record.description["versions"]
        assert {"fieldbo", "python", "numpy", "scipy", "numba", "machine"} <= set(versions)
        assert record.description["platform"]
        assert notes(record) == []
        installed.write(NORTH + "# changed")
        assert "the run began with plume 1.2 (now other code of that version)" in notes(record)[0]
    _, record = begin(fieldbo.load_mission("lake-level-set"))
    with record:
        assert "plugins" not in record.description


@pytest.mark.slow
@pytest.mark.parametrize("now", ["no longer installed", "now unusable"])
def test_a_run_goes_on_without_a_plug_in_that_it_no_longer_needs(installed, here, command, now):
    installed("drone = plume:Drone", code="class Drone: ...", version="1.2", group="vehicles")
    mission = fieldbo.load_mission("lake-level-set", {"agent": {"battery": 100}})
    _, record = begin(mission, vehicles=[{"kind": "drone"}])
    record.close()
    installed.remove() if now == "no longer installed" else installed.write("raise ImportError")
    code, _, error = command("resume", "lake-level-set-1")
    assert code == 2
    assert "'drone'" in error
    code, printed, _ = command("resume", "lake-level-set-1", "--vehicle", "simulated")
    assert code == 0
    assert f"the run began with plume 1.2 ({now})" in " ".join(printed.split())
    assert "Battery spent" in printed

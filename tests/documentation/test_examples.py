"""Every example runs, prints something and leaves nothing behind, and the plug-in package works."""

import os
import shutil
import subprocess
import sys
import tomllib
from importlib.util import find_spec

import pytest
from checkout import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("[0-9]*.py"))
PLUGIN = ROOT / "examples" / "plugin_package"
NEEDS = {"11_gymnasium_environment": "gymnasium", "12_botorch_acquisition_as_policy": "botorch"}
"""Libraries that an example needs besides fieldbo's own dependencies."""


def run(*command, cwd, path=()):
    search = os.pathsep.join([*map(str, path), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": search, "PYTHONWARNINGS": "error::RuntimeWarning"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_examples_are_numbered_without_gaps():
    assert [int(e.name[:2]) for e in EXAMPLES] == list(range(1, len(EXAMPLES) + 1))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.stem)
def test_an_example_compiles(example):
    compile(example.read_text(), str(example), "exec")


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.stem)
def test_an_example_runs_and_leaves_nothing_behind(example, tmp_path):
    needed = NEEDS.get(example.stem)
    if needed is not None and find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed")
    done = run(example, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert list(tmp_path.iterdir()) == []


def test_building_a_world_in_python_takes_at_most_four_imports():
    text = (ROOT / "examples" / "03_a_world_in_python.py").read_text()
    assert sum(line.startswith(("import ", "from ")) for line in text.splitlines()) <= 4


# -- the plug-in package ---------------------------------------------------------------------------------


WORLD = """
format = 1
version = "1"
title = "A windy field"
cost_unit = "s"
start = [0, 0]
value = { name = "height", unit = "m" }
sensor = { noise_sd = 0.05 }
field = { kind = "gp-draw", length_scales = [20, 20] }
cost = { kind = "upwind", headwind = 2 }

[domain]
kind = "grid"
axes = [
  { name = "east", unit = "m", low = 0, high = 100, count = 9 },
  { name = "north", unit = "m", low = 0, high = 100, count = 9 },
]
"""
MISSION = """
format = 1
title = "Where is it high?"
world = "windy"
question = { kind = "level-set", threshold = 0.5 }
agent = { battery = 400 }
policy = { kind = "nearby-straddle", reach = 50 }
model = { kernel = "matern52", learn = false, length_scales = [20, 20], mean = 0 }
"""


@pytest.fixture
def installed(tmp_path):
    """A folder with the package and its metadata, as `pip install --target` leaves them."""
    site = tmp_path / "site"
    shutil.copytree(PLUGIN / "src", site, ignore=shutil.ignore_patterns("__pycache__"))
    project = tomllib.loads((PLUGIN / "pyproject.toml").read_text())["project"]
    info = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.4\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    lines = []
    for group, names in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {target}" for name, target in names.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return site


@pytest.mark.slow
def test_a_mission_uses_the_policy_and_the_cost_of_the_plugin_by_name(installed, tmp_path):
    place = tmp_path / "place"
    (place / "worlds" / "windy").mkdir(parents=True)
    (place / "worlds" / "windy" / "world.toml").write_text(WORLD)
    (place / "windy.toml").write_text(MISSION)

    listed = run("-m", "fieldbo", "policies", cwd=place, path=[installed])
    assert "nearby-straddle" in listed.stdout, listed.stderr
    done = run("-m", "fieldbo", "run", "windy.toml", "--out", "r", cwd=place, path=[installed])
    assert done.returncode == 0, done.stderr
    assert (place / "r" / "summary.json").is_file()

    (place / "windy.toml").write_text(MISSION.replace("reach = 50", "reach = -1"))
    wrong = run("-m", "fieldbo", "check", "windy.toml", cwd=place, path=[installed])
    assert wrong.returncode == 2
    assert "policy.reach" in wrong.stderr


@pytest.mark.slow
def test_the_plugin_is_typed(tmp_path):
    assert (PLUGIN / "src" / "fieldbo_plume" / "py.typed").is_file()
    if find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    done = run("-m", "mypy", "--strict", "--cache-dir", tmp_path, PLUGIN / "src", cwd=tmp_path, path=[ROOT])
    assert done.returncode == 0, done.stdout

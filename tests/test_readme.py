"""What the README shows is what happens: its commands, its mission file and its Python."""

import importlib.util
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import fieldbo

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
FIELDBO = Path(sys.executable).parent / "fieldbo"


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def commands():
    """Every line of a shell block that runs fieldbo, continued lines joined, comments off.

    But those of two terminals: they need a broker, and are run beside the tests of robots.
    """
    lines = "\n".join(blocks("sh")).replace("\\\n", " ").splitlines()
    own = [line.split("#")[0].strip() for line in lines if line.startswith("fieldbo ")]
    return [line for line in own if " robot " not in line and " --vehicle " not in line]


def tables_made_by_python():
    """The Python that a shell block hands over on its command line."""
    return [
        text for block in blocks("sh") for text in re.findall(r'^python -c "\n(.*?)"$', block, re.S | re.M)
    ]


def words(command):
    """A command's words, with the survey of the installed package, and a comparison cut short."""
    survey = Path(importlib.util.find_spec("skgstat").origin).parent / "data/samples/meuse.txt"
    told = shlex.split(command.replace('"$CSV"', shlex.quote(str(survey))))[1:]
    if told[0] == "compare":
        told += ["--starts", "1", "--draws", "1", "--set", "agent.battery=400"]
    if told[0] == "run" and told[1] != "--help":
        told += ["--set", "agent.max_steps=12"]
    return told


def test_the_commands_of_the_readme_run_one_after_the_other(tmp_path):
    (trials,) = tables_made_by_python()
    subprocess.run([sys.executable, "-c", trials], cwd=tmp_path, check=True)
    for command in commands():
        done = subprocess.run(
            [FIELDBO, *words(command)],
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        expected = 130 if "--by-hand" in command else 0  # by hand, the end of the input is a Ctrl-C
        assert done.returncode == expected, f"{command}\n{done.stdout}{done.stderr}"
        if command.startswith("fieldbo new vehicle"):
            (boat,) = [t for t in blocks("toml") if t.startswith("# boat.toml")]
            (tmp_path / "boat.toml").write_text(boat)
    assert (tmp_path / "runs" / "meuse-1" / "map.png").exists()
    assert (tmp_path / "rules.csv").exists()
    assert (tmp_path / "runs" / "cell-1" / "curve.png").exists()
    assert (tmp_path / "runs" / "lake-level-set-1" / "export" / "readings.geojson").exists()
    assert (tmp_path / "logs" / "run.mcap").exists()


def test_every_file_that_the_readme_promises_is_in_a_run_folder(tmp_path):
    promised = re.findall(r"`([\w-]+\.(?:json|png|csv|nc|toml|sqlite))`", README.split("## Searching")[0])
    told = ["run", "lake-level-set", "--battery", "300", "--out", str(tmp_path / "run")]
    subprocess.run([FIELDBO, *told], cwd=tmp_path, check=True, capture_output=True)
    assert len(set(promised)) >= 9
    assert {name for name in promised if not (tmp_path / "run" / name).exists()} == set()


def test_the_mission_file_of_the_readme_loads(tmp_path):
    (text,) = [t for t in blocks("toml") if "[question]" in t]
    (tmp_path / "my-lake.toml").write_text(text)
    assert fieldbo.load_mission(tmp_path / "my-lake.toml").name == "my-lake"


def test_the_tables_of_a_world_in_the_readme_load(tmp_path):
    (text,) = [t for t in blocks("toml") if 'kind = "box"' in t and "[sensor]" in t]
    head = 'format = 1\nversion = "1"\ntitle = "t"\ncost_unit = "s"\n[cost]\nkind = "euclidean"\n'
    (tmp_path / "world.toml").write_text(head + text)
    world = fieldbo.load_world(tmp_path)
    assert (world.domain.size, world.domain.continuous, world.sensor.settings) == (2000, True, 2)


def test_the_wall_of_the_readme_loads_and_its_drone_comes_home(tmp_path):
    (text,) = [t for t in blocks("toml") if "obstacles" in t]
    (agent,) = [t for t in blocks("toml") if t.startswith("# missions/my-wall.toml")]
    head = 'format = 1\nversion = "1"\ntitle = "t"\ncost_unit = "Wh"\nfield = { kind = "cracks" }\n'
    (tmp_path / "my-wall").mkdir()
    (tmp_path / "my-wall/world.toml").write_text(head + text)
    asked = 'format = 1\nworld = "my-wall"\npolicy = { kind = "dist-ucb" }\nquestion = { kind = "optimum" }\n'
    (tmp_path / "m.toml").write_text(asked + agent)
    result = fieldbo.run(fieldbo.load_mission(tmp_path / "m.toml", {"agent": {"battery": 7}}))
    assert [o.name for o in result.mission.world.domain.obstacles] == ["window", "scaffold"]
    assert result.observations[-1].position.tolist() == [2, 0]
    assert result.cost <= 7 - 4


def test_the_cell_of_the_readme_loads_and_its_costs_are_found_out(tmp_path):
    (text,) = [t for t in blocks("toml") if t.startswith("# worlds/my-cell/world.toml")]
    (agent,) = [t for t in blocks("toml") if t.startswith("# missions/my-cell.toml")]
    head = 'format = 1\nversion = "1"\ntitle = "t"\ncost_unit = "EUR"\n'
    field = '[field]\nkind = "function"\nname = "rastrigin"\n'
    (tmp_path / "my-cell").mkdir()
    (tmp_path / "my-cell/world.toml").write_text(head + text + field)
    asked = 'format = 1\nworld = "my-cell"\npolicy = { kind = "subset-front" }\n'
    asked += 'question = { kind = "optimum", goal = "minimise" }\n'
    (tmp_path / "m.toml").write_text(asked + agent)
    result = fieldbo.run(fieldbo.load_mission(tmp_path / "m.toml", {"agent": {"battery": 3}}))
    assert [one.name for one in result.mission.world.domain.control_sets] == ["heat", "all"]
    assert result.mission.declared_cost is None
    # and as a chain of modules, as the commented lines have it
    chain = (
        text.replace("# kind", "kind").replace("# modules", "modules").replace("# charge_last", "charge_last")
    )
    parts = re.split(r"^control_sets.*$|^kind = \"subset\"$|^costs = .*$|^noise_sds = .*$", chain, flags=re.M)
    plain = re.sub(r", free = \{[^}]*\}", "", "".join(parts))
    (tmp_path / "my-cell/world.toml").write_text(head + plain + field)
    assert [one.name for one in fieldbo.load_world(tmp_path / "my-cell").cost.modules] == ["mix", "bake"]


@pytest.mark.parametrize("text", blocks("python"))
def test_the_python_of_the_readme_runs(text):
    names = {"read_probe": lambda site: float(site[1])}
    exec(compile(text, "README.md", "exec"), names)
    assert "fieldbo" in names


def test_pictures_and_files_that_the_readme_links_to_exist():
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert {link for link in links if "://" not in link and not (ROOT / link).exists()} == set()

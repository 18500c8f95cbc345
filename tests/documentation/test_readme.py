"""The commands and the Python of the README work, and its links lead somewhere."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from checkout import ROOT
from command_lines import parsed

README = (ROOT / "README.md").read_text(encoding="utf-8")
FIELDBO = Path(sys.executable).parent / "fieldbo"


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def commands():
    """Return every line that runs fieldbo, except those that need a second terminal and a broker."""
    lines = "\n".join(blocks("sh")).replace("\\\n", " ").splitlines()
    commands = [line.split("#")[0].strip() for line in lines if line.startswith("fieldbo ")]
    return [line for line in commands if " robot " not in line and " --vehicle mqtt" not in line]


def arguments(command):
    """Return the arguments of a command, with the shipped files of a lake; runs and advice are cut short."""
    words = shlex.split(command.replace("$LAKE", shlex.quote(str(ROOT / "worlds/lake-places"))))[1:]
    shorter = {
        "run": ["--set", "agent.max_steps=12"],
        "advise": ["--fields", "4", "--set", "agent.max_steps=12"],
    }
    return [*words, *shorter.get(words[0], [])]


def test_the_readme_has_at_most_150_lines():
    assert len(README.splitlines()) <= 150


def test_the_commands_have_the_options_that_the_readme_uses():
    assert len(commands()) >= 10
    for command in commands():
        parsed(arguments(command))


@pytest.mark.slow
def test_the_commands_run_one_after_the_other(tmp_path):
    assert len(commands()) >= 10
    subprocess.run(
        [FIELDBO, "run", "lake-level-set", "--battery", "300"], cwd=tmp_path, check=True, capture_output=True
    )  # `make mission` does this
    for command in commands():
        done = subprocess.run(
            [FIELDBO, *arguments(command)],
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        expected = 130 if "--by-hand" in command else 0  # by hand, the end of the input is a Ctrl-C
        assert done.returncode == expected, f"{command}\n{done.stdout}{done.stderr}"
    assert (tmp_path / "runs" / "my-lake-1" / "map.png").exists()
    assert (tmp_path / "my-lake-1.plan").exists()
    assert (tmp_path / "runs" / "my-lake-1" / "export" / "map.tif").exists()


def test_every_promised_file_is_in_a_run_folder(tmp_path, command):
    promised = set(re.findall(r"`([\w-]+\.(?:json|png|csv|nc|toml|sqlite))`", README))
    command("run", "lake-level-set", "--battery", "200", "--out", tmp_path / "run")
    assert len(promised) >= 10
    assert {name for name in promised if not (tmp_path / "run" / name).exists()} == set()


@pytest.mark.slow
@pytest.mark.parametrize("text", blocks("python"))
def test_the_python_runs(text):
    names = {"read_probe": lambda site: float(site[1])}
    exec(compile(text, "README.md", "exec"), names)
    assert 0.0 <= names["result"].f1 <= 1.0


def test_links_lead_to_files():
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert {link for link in links if "://" not in link and not (ROOT / link).exists()} == set()

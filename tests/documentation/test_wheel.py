"""The wheel and the sdist, in an environment of its own and away from the checkout."""

import json
import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from checkout import ROOT


def call(*command, cwd):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(
        [str(c) for c in command], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    out = tmp_path_factory.mktemp("dist")
    call(sys.executable, "-m", "build", "--outdir", out, ROOT, cwd=out)  # the wheel from the sdist
    return out


@pytest.fixture(scope="module")
def wheel(dist):
    return next(dist.glob("*.whl"))


@pytest.mark.slow
def test_twine_accepts_the_wheel_and_the_sdist(dist):
    files = [*dist.glob("*.whl"), *dist.glob("*.tar.gz")]
    assert len(files) == 2
    call(sys.executable, "-m", "twine", "check", "--strict", *files, cwd=dist)


def test_the_wheel_is_made_of_the_package_the_worlds_and_the_missions():
    told = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = told["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["packages"] == ["fieldbo"]
    assert wheel["force-include"] == {what: f"fieldbo/_catalogue/{what}" for what in ("worlds", "missions")}
    assert (ROOT / "fieldbo" / "py.typed").is_file()


@pytest.mark.slow
def test_check_wheel_contents_accepts_the_wheel(wheel):
    assert "OK" in call(Path(sys.executable).parent / "check-wheel-contents", wheel, cwd=wheel.parent)


@pytest.mark.slow
def test_the_wheel_contains_every_module_page_world_and_mission_and_py_typed(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    assert "fieldbo/py.typed" in names
    for file in (ROOT / "fieldbo").rglob("*.py*"):
        if file.suffix in (".py", ".pyi"):
            assert file.relative_to(ROOT).as_posix() in names
    for file in (ROOT / "fieldbo" / "pages").rglob("*"):
        if file.is_file() and "__pycache__" not in file.parts:
            assert file.relative_to(ROOT).as_posix() in names
    for what in ("worlds", "missions"):
        for file in (ROOT / what).rglob("*.toml"):
            assert f"fieldbo/_catalogue/{what}/{file.relative_to(ROOT / what).as_posix()}" in names


@pytest.mark.slow
def test_the_wheel_works_in_an_empty_environment(wheel, tmp_path):
    uv = sys.executable, "-m", "uv"  # it keeps what it has downloaded before
    call(*uv, "venv", "--python", sys.executable, tmp_path / "venv", cwd=tmp_path)
    binaries = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin")
    call(*uv, "pip", "install", "--python", binaries / "python", wheel, cwd=tmp_path)
    place = tmp_path / "elsewhere"
    place.mkdir()
    listed = call(binaries / "fieldbo", "worlds", cwd=place)
    assert all(folder.parent.name in listed for folder in (ROOT / "worlds").glob("*/world.toml"))
    call(binaries / "fieldbo", "run", "lake-level-set", cwd=place)
    call(binaries / "fieldbo", "report", "lake-level-set-1", cwd=place)
    summary = json.loads((place / "runs" / "lake-level-set-1" / "summary.json").read_text())
    assert summary["f1"] >= 0.9
    assert summary["cost"] <= summary["battery"]

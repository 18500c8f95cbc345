"""The folder of a run: ``run.sqlite`` is the record, everything else is derived from it.

A run folder stands on its own: it holds the mission as it was run and a copy of its world, so that
``fieldbo run FOLDER/mission.toml`` runs it again wherever it is taken.
"""

from __future__ import annotations

import json
import platform
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy
import scipy

import fieldbo
from fieldbo.errors import InputError, RecordError
from fieldbo.mission.files import write_whole
from fieldbo.mission.mission import Mission
from fieldbo.mission.toml import toml_text
from fieldbo.results.answers import ANSWERS
from fieldbo.results.result import Result
from fieldbo.runs.record.record import Record, on_disk

RECORD, MISSION = "run.sqlite", "mission.toml"


def begin(
    mission: Mission, out: Path | None = None, vehicles: Sequence[Mapping[str, Any]] = ()
) -> tuple[Path, Record]:
    """Make a run folder with the mission, its world and an empty record.

    Parameters
    ----------
    mission : Mission
        Loaded from a file.
    out : Path, optional
        By default ``runs/<mission>-<n>``, n the next free number.
    vehicles : sequence of mapping, optional
        Plain settings, one a vehicle, by which a resume makes the same ones; empty for a simulation.

    Returns
    -------
    folder : Path
    record : Record

    Raises
    ------
    InputError
        `out` exists, the folder can't be made, or the mission was not loaded from a file.
    """
    if not mission.settings or mission.folder is None:
        raise InputError("a mission made in Python", expected="one loaded from a file, to be written down")
    folder = _make(out) if out is not None else _next(Path("runs"), mission.name)
    head = "# The mission as it was run. To run it again: fieldbo run THIS_FILE\n\n"
    world = folder / mission.world.name
    try:
        _copy(mission.folder, world)
        write_whole(folder / MISSION, (head + toml_text(mission.settings)).encode())
        for path in (*folder.rglob("*"), folder, folder.parent):
            on_disk(path)  # the record is the last to be there, so that what it goes by is there, too
        told = {**describe(mission), "files": digests(world), "vehicles": [dict(one) for one in vehicles]}
        return folder, Record.create(folder / RECORD, folder.name, told)
    except (OSError, RecordError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        problem = str(error) if isinstance(error, RecordError) else f"{folder} can't be written: {error}"
        raise InputError(problem, where="--out") from None


def _copy(world: Path, into: Path) -> None:
    """Copy a world's folder, but not a run folder that lies in it into itself."""
    inside = into.resolve()

    def left_out(folder: str, names: list[str]) -> set[str]:
        return {n for n in names if n == "__pycache__" or inside.is_relative_to(Path(folder).resolve() / n)}

    shutil.copytree(world, into, ignore=left_out)


def describe(mission: Mission) -> dict[str, Any]:
    """Return what a record says of its mission: settings, what they were resolved to, and versions."""
    return {
        "mission": mission.name,
        "world": mission.world.name,
        "settings": dict(mission.settings),
        "files": {} if mission.folder is None else digests(mission.folder),
        "policy": {"kind": mission.policy_kind, **_settings(mission.policy)},
        "model": _settings(mission.model),
        "crew": [_settings(c) for c in mission.vehicles],
        "question": {"kind": ANSWERS[type(mission.question)].kind, **_settings(mission.question)},
        "start": [c.start.tolist() for c in mission.vehicles],
        "axes": [a.name for a in mission.world.domain.axes],
        "cost_unit": mission.world.cost_unit,
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """Return what a path depends on besides its mission, as it is here."""
    return {
        "fieldbo": fieldbo.__version__,
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
        "machine": platform.machine(),
    }


def complete(result: Result, folder: Path) -> list[str]:
    """Write those files of a run that its folder lacks; return their names."""
    with TemporaryDirectory(prefix="fieldbo-") as place:
        result.save(place)
        missing = [file for file in sorted(Path(place).iterdir()) if not (folder / file.name).exists()]
        for file in missing:
            write_whole(folder / file.name, file.read_bytes())
        return [file.name for file in missing]


def _settings(value: Any) -> dict[str, Any]:
    """Return a settings object's fields, defaults included, as plain data."""
    told: dict[str, Any] = json.loads(json.dumps(asdict(value), default=_listed))
    return told


def _listed(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)


def digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file below a folder, by its path in there."""
    return {
        file.relative_to(folder).as_posix(): sha256(file.read_bytes()).hexdigest()
        for file in sorted(p for p in folder.rglob("*") if p.is_file())
    }


def _make(folder: Path) -> Path:
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{folder} can't be made: {error.strerror} ({error.filename})",
            expected="a place for a new folder",
            where="--out",
        ) from None
    try:
        folder.mkdir()
    except FileExistsError:
        raise InputError(
            f"{folder} exists",
            expected="a folder that does not exist yet: a run never writes over another",
            where="--out",
            fix="choose another name, or leave --out away for the next free one below runs/",
        ) from None
    except OSError as error:
        raise InputError(
            f"{folder} can't be made: {error.strerror}", expected="a place for a new folder", where="--out"
        ) from None
    return folder


def _next(parent: Path, name: str) -> Path:
    """Make the next free numbered folder, also where another process does so at the same time."""
    taken = [p.name.removeprefix(f"{name}-") for p in parent.glob(f"{name}-*")]
    n = max((int(t) for t in taken if t.isdecimal()), default=0)
    while True:
        n += 1
        try:
            return _make(parent / f"{name}-{n}")
        except InputError:
            if not (parent / f"{name}-{n}").exists():
                raise

"""Run folders: ``run.sqlite`` is the record, and every table and picture is derived from it.

A run folder is self-contained: it holds the mission and a copy of its world, so that
``fieldbo run FOLDER/mission.toml`` repeats the run on any machine.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from glob import escape
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy
import scipy

import fieldbo
from fieldbo.agent.agent import Agent
from fieldbo.errors import InputError, RecordError
from fieldbo.mission.files import made, read_toml, toml_text, write_whole
from fieldbo.mission.kinds import COSTS, FIELDS, POLICIES
from fieldbo.mission.load import own_settings
from fieldbo.mission.mission import MOST_READINGS, Mission
from fieldbo.mission.prior_file import pinned
from fieldbo.record.record import Record as Record  # noqa: PLC0414 - it is fieldbo.runs.Record, too
from fieldbo.record.store import MISSION, RECORD, digests, on_disk
from fieldbo.results.answers import ANSWERS
from fieldbo.results.result import PICTURES, Result
from fieldbo.vehicles.base import LINKS, VEHICLES

Fill = Callable[[Path, str], None]
"""``fill(folder, name)`` writes the content of a run folder with its final name."""

_LONG_AGO_S = 3600.0


def begin(
    mission: Mission, out: Path | None = None, vehicles: Sequence[Mapping[str, Any]] = ()
) -> tuple[Path, Record]:
    """Make a run folder with the mission, a copy of its world, and an empty record.

    It is made under another name beside its place, and renamed once it is on disk: a process that dies
    before leaves no run folder.

    Parameters
    ----------
    mission : Mission
        A mission that was loaded from a file.
    out : Path, optional
        The new folder. By default ``runs/<mission>-<n>`` with the next free number n.
    vehicles : sequence of mapping, optional
        Plain settings of each vehicle, from which `resume` makes it again; empty for a simulation.

    Returns
    -------
    folder : Path
    record : Record

    Raises
    ------
    InputError
        `out` exists, the folder can't be made, the mission, or its policy, does not come from a file, or the
        policy can't start, for example because its destination is out of reach.
    """
    if not mission.settings or mission.folder is None:
        raise InputError(
            "a mission made in Python can't be written to a run folder",
            expected="a mission that was loaded from a file",
            fix="run it without a folder: fieldbo.run(mission)",
        )
    if made(POLICIES, own_settings(mission.settings["policy"]), "policy") != mission.policy:
        raise InputError(
            f"the mission's policy was replaced by {mission.policy} after it was loaded",
            expected="the policy that its file names: a resumed run reads that file",
            fix='load it with the policy: load_mission(name, {"policy": {"kind": ...}})',
        )
    Agent(mission)  # raises before there is a folder if the policy can't start from there
    settings, prior = pinned(mission)
    head = "# The mission as it was run. To run it again: fieldbo run THIS_FILE\n\n"
    world = mission.folder

    def fill(folder: Path, name: str) -> None:
        _copy(world, folder / mission.world.name)
        write_whole(folder / MISSION, (head + toml_text(settings)).encode())
        for file, content in prior.items():
            write_whole(folder / file, content)
        description = describe(mission, vehicles) | {
            "settings": settings,
            "files": digests(folder / mission.world.name),
            "vehicles": [dict(v) for v in vehicles],
            "platform": platform.platform(),
        }
        Record.create(folder / RECORD, name, description).close()

    folder = _make(out, fill) if out is not None else _make_next(mission.name, fill)
    record = Record(folder / RECORD)
    record.claim()
    return folder, record


def _copy(world: Path, into: Path) -> None:
    """Copy a world's folder; leave out the new run folder if it lies inside the world's."""
    new = into.resolve()

    def skipped(folder: str, names: list[str]) -> set[str]:
        return {n for n in names if n == "__pycache__" or new.is_relative_to(Path(folder).resolve() / n)}

    shutil.copytree(world, into, ignore=skipped)


def as_carried_out(mission: Mission, vehicles: Sequence[Mapping[str, Any]]) -> Mission:
    """Return a mission as these vehicles meet it: see `Mission.as_found` for those that are not simulated.

    Parameters
    ----------
    mission : Mission
    vehicles : sequence of mapping
        Plain settings of each vehicle, as in `begin`.
    """
    simulated = any(vehicle.get("kind") == "simulated" for vehicle in vehicles)
    return mission if simulated or not vehicles else mission.as_found()


def describe(mission: Mission, vehicles: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """Return the description of a mission for its record: settings, resolved values, versions and plug-ins.

    Keys are the field names of the settings classes; renaming a class does not change them.
    """
    _, prior = pinned(mission)
    used = plugins(mission, vehicles)
    limit = mission.most_readings_per_site
    most = {} if limit is None else {MOST_READINGS: limit}
    known = {"prior": {name: sha256(content).hexdigest() for name, content in prior.items()}}
    return {
        "mission": mission.name,
        "world": mission.world.name,
        "settings": dict(mission.settings),
        "files": {} if mission.folder is None else digests(mission.folder),
        "policy": {"kind": mission.policy_kind, **_settings(mission.policy), **most},
        "model": _settings(mission.model),
        "crew": [_settings(c) for c in mission.vehicles],  # the key of existing records: do not rename
        "question": {"kind": ANSWERS[type(mission.question)].kind, **_settings(mission.question)},
        "start": [c.start.tolist() for c in mission.vehicles],
        "axes": [a.name for a in mission.world.domain.axes],
        "cost_unit": mission.world.cost_unit,
        "failure_limit": mission.failure_limit,
        "versions": versions(),
        **({"plugins": used} if used else {}),
        **(known if prior else {}),
    }


def plugins(mission: Mission, vehicles: Sequence[Mapping[str, Any]] = ()) -> list[dict[str, str]]:
    """Return the plug-ins that a mission and its vehicles use, each as from `Registry.source`."""
    world = {} if mission.folder is None else read_toml(mission.folder / "world.toml")
    tables = [
        (POLICIES, mission.settings.get("policy")),
        (COSTS, world.get("cost")),
        (FIELDS, world.get("field")),
        *((VEHICLES, vehicle) for vehicle in vehicles),
        *((LINKS, vehicle.get("link")) for vehicle in vehicles),
    ]
    sources = [registry.source(table["kind"]) for registry, table in tables if table and "kind" in table]
    return [source for source in sources if source is not None]


def versions() -> dict[str, str]:
    """Return the versions that the path of a mission may depend on."""
    return {
        "fieldbo": fieldbo.__version__,
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
        "numba": version("numba"),
        "machine": platform.machine(),
    }


def save(result: Result, folder: Path, format: str | None = None, width: str = "screen") -> list[str]:
    """Write the files of a run, and draw its older pictures in other formats anew; return the formats.

    Parameters
    ----------
    result : Result
    folder : Path
    format : {"png", "svg", "pdf"}, optional
        By default that of the pictures in the folder, or else PNG.
    width : {"screen", "column", "page"}
        Of all pictures.
    """
    formats = _formats(folder, format)
    result.save(folder, formats[0], width)
    for other in formats[1:]:
        for name, picture in result.pictures(other, width).items():
            write_whole(folder / name, picture)
    return formats


def _formats(folder: Path, format: str | None) -> list[str]:
    from fieldbo.results.plot import FORMATS

    there = [known for known in FORMATS if any((folder / f"{name}.{known}").exists() for name in PICTURES)]
    return list(dict.fromkeys([*([] if format is None else [format]), *there])) or [FORMATS[0]]


def complete(result: Result, folder: Path, format: str | None = None, width: str = "screen") -> list[str]:
    """Write the tables and pictures that are missing from a run folder; return their names."""
    with TemporaryDirectory(prefix="fieldbo-") as temporary:
        result.save(temporary, _formats(folder, format)[0], width)
        missing = [file for file in sorted(Path(temporary).iterdir()) if not (folder / file.name).exists()]
        for file in missing:
            write_whole(folder / file.name, file.read_bytes())
        return [file.name for file in missing]


def _settings(value: Any) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps(asdict(value), default=_plain))
    return plain


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)


def folder_exists(folder: Path) -> InputError:
    """Return the error for a run folder that is to be made and exists."""
    return InputError(
        f"{folder} exists",
        expected="a new folder: a run never overwrites another one",
        where="--out",
        fix="choose another name, or omit --out to use the next free name under runs/",
    )


def _make(folder: Path, fill: Fill) -> Path:
    if os.path.lexists(folder):
        raise folder_exists(folder)
    part = folder.with_name(f".fieldbo-{uuid.uuid4().hex[:12]}.part")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _remove_parts(folder.parent)
        part.mkdir()
    except OSError as error:
        parent = "" if error.filename == str(part) else f" ({error.filename})"
        raise InputError(
            f"{folder} can't be made: {error.strerror}{parent}", expected="a writable folder", where="--out"
        ) from None
    try:
        fill(part, folder.name)
        for path in (*part.rglob("*"), part):
            on_disk(path)
        if os.path.lexists(folder):
            raise folder_exists(folder)
        part.rename(folder)
        on_disk(folder.parent)
    except (OSError, RecordError) as error:
        if isinstance(error, OSError) and os.path.lexists(folder):
            raise folder_exists(folder) from None  # another process has just made it
        said = str(error).replace(str(part), str(folder))
        problem = said if isinstance(error, RecordError) else f"{folder} can't be written: {said}"
        raise InputError(problem, where="--out") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return folder


def _remove_parts(parent: Path) -> None:
    """Remove what processes left that died long ago while they made a run folder."""
    for part in parent.glob(".fieldbo-*.part"):
        with suppress(OSError):
            if time.time() - part.stat().st_mtime > _LONG_AGO_S:
                shutil.rmtree(part, ignore_errors=True)


def next_folder(mission: str, parent: Path = Path("runs")) -> Path:
    """Return the next free run folder of a mission, ``runs/<mission>-<n>``; it is not made yet."""
    taken = [p.name.removeprefix(f"{mission}-") for p in parent.glob(f"{escape(mission)}-*")]
    return parent / f"{mission}-{1 + max((int(t) for t in taken if t.isdecimal()), default=0)}"


def _make_next(mission: str, fill: Fill) -> Path:
    """Make the next free run folder, even if another process does the same at the same time."""
    folder = next_folder(mission)
    while True:
        try:
            return _make(folder, fill)
        except InputError:
            if not folder.exists():
                raise
            name, _, number = folder.name.rpartition("-")
            folder = folder.with_name(f"{name}-{int(number) + 1}")

"""Find mission and world files: next to the mission, in the working directory, or among the shipped ones."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Literal

from fieldbo.errors import InputError, UnknownNameError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_ENDINGS = (".toml", ".sqlite")
_LONGEST = 200  # letters: file systems allow 255, and files made of the name add some


def shipped(what: Literal["worlds", "missions"]) -> Path:
    """Return the folder of shipped worlds or missions, in the wheel or in the checkout."""
    package = Path(str(files("fieldbo")))
    inside = package / "_catalogue" / what
    return inside if inside.is_dir() else package.parent / what


def list_worlds(beside: Path | None = None) -> dict[str, Path]:
    """Return the names and files of all worlds; a name closer by hides the same name further away.

    Parameters
    ----------
    beside : Path, optional
        A folder to look in first.
    """
    worlds: dict[str, Path] = {}
    for folder in [*([beside] if beside else []), Path("worlds"), shipped("worlds")]:
        for file in sorted(folder.glob("*/world.toml")):
            worlds.setdefault(file.parent.name, file)
    return worlds


def list_missions() -> dict[str, Path]:
    """Return the names and files of all missions; those in the working directory hide shipped ones."""
    missions: dict[str, Path] = {}
    for folder in (Path("missions"), shipped("missions")):
        for file in sorted(folder.glob("*.toml")):
            missions.setdefault(file.stem, file)
    return missions


def is_path(name: str | Path) -> bool:
    """Return True if `name` is a path rather than the name of a mission or world."""
    return isinstance(name, Path) or name.endswith(".toml") or "/" in name or "\\" in name


def name_of(what: str, name: str, where: str | None = None) -> str:
    """Return `name`, or raise an `InputError` if no folder or file may have it."""
    if not _NAME.fullmatch(name) or ".." in name or name.endswith(_ENDINGS):
        raise InputError(
            f"{name!r} is not a valid {what} name",
            expected="a name made up of letters, digits, '-', '_' and '.', not a path or a file name",
            where=where,
        )
    if len(name) > _LONGEST:
        raise InputError(
            f"the {what} name {name!r} has {len(name)} letters",
            expected=f"at most {_LONGEST}",
            where=where,
        )
    return name


def find(what: str, name: str, files: Mapping[str, Path], where: str | None = None) -> Path:
    """Return the file of that name, or raise an `UnknownNameError` with the nearest valid name."""
    if name_of(what, name, where) not in files:
        raise UnknownNameError.of(what, name, files, where=where, listed_by=f"fieldbo {what}s")
    return files[name]

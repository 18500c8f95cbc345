"""Find mission and world files: beside the mission, in the working folder, or among the shipped ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Literal

from fieldbo.errors import InputError, UnknownNameError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


_ENDINGS = (".toml", ".sqlite")


def shipped(what: Literal["worlds", "missions"]) -> Path:
    """Return the folder of shipped worlds or missions: in the wheel, or in the checkout."""
    package = Path(str(files("fieldbo")))
    inside = package / "_catalogue" / what
    return inside if inside.is_dir() else package.parent / what


def _world_files(folder: Path) -> Iterator[tuple[str, Path]]:
    for file in sorted(folder.glob("*/world.toml")):
        yield file.parent.name, file


def list_worlds(beside: Path | None = None) -> dict[str, Path]:
    """Return the worlds that can be named, nearest first, as name to file."""
    found: dict[str, Path] = {}
    for folder in [*([beside] if beside else []), Path("worlds"), shipped("worlds")]:
        for name, file in _world_files(folder):
            found.setdefault(name, file)
    return found


def list_missions() -> dict[str, Path]:
    """Return the missions that can be named, nearest first, as name to file."""
    found: dict[str, Path] = {}
    for folder in (Path("missions"), shipped("missions")):
        for file in sorted(folder.glob("*.toml")):
            found.setdefault(file.stem, file)
    return found


def _is_path(name: str | Path) -> bool:
    return isinstance(name, Path) or name.endswith(".toml") or "/" in name or "\\" in name


def name_of(what: str, name: str, where: str | None = None) -> str:
    """Return `name`, or raise an `InputError` if it is none that a folder or file may have."""
    if not _NAME.fullmatch(name) or ".." in name or name.endswith(_ENDINGS):
        raise InputError(
            f"{name!r} is no name of a {what}",
            expected="letters, digits, '-', '_' and '.': a name, not a path, nor a file's",
            where=where,
        )
    return name


def _named(what: str, name: str, found: Mapping[str, Path], where: str | None) -> Path:
    if name_of(what, name, where) not in found:
        raise UnknownNameError.of(what, name, found, where=where)
    return found[name]

"""Files of missions and worlds: found by name, read with errors that say where, written whole or not."""

from __future__ import annotations

import codecs
import errno
import os
import re
import shutil
import tomllib
import warnings
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import tomli_w

from fieldbo.errors import InputError, UnknownNameError
from fieldbo.mission.kinds import Registry
from fieldbo.validation import check_plain, validated

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


@cache
def former_missions() -> dict[str, dict[str, Any]]:
    """Return what missions of earlier versions have become: a ``mission``, and its ``policy`` if another."""
    return read_toml(shipped("missions") / "former" / "names.toml")


def names_mission(name: str) -> bool:
    """Return True if a mission has this name, or had it in an earlier version."""
    return name in list_missions() or name in former_missions()


def mission_named(name: str) -> tuple[Path, dict[str, Any]]:
    """Return the file of a mission, and the tables that a name of an earlier version replaces.

    Raises
    ------
    InputError
        There is no such mission.
    """
    missions = list_missions()
    if name in missions or name not in former_missions():
        return find("mission", name, missions), {}
    became = former_missions()[name]
    policy = became.get("policy")
    instead = "" if policy is None else f" with policy {policy['kind']}"
    warnings.warn(
        f"mission {name} is now {became['mission']}{instead}; the next version no longer knows the old name",
        FutureWarning,
        stacklevel=4,
    )
    file = shipped("missions") / f"{became['mission']}.toml"
    return file, {} if policy is None else {"policy": policy}


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
            f"the {what} name {name!r} has {len(name)} letters", expected=f"at most {_LONGEST}", where=where
        )
    return name


def find(what: str, name: str, files: Mapping[str, Path], where: str | None = None) -> Path:
    """Return the file of that name, or raise an `UnknownNameError` with the nearest valid name."""
    if name_of(what, name, where) not in files:
        raise UnknownNameError.of(what, name, files, where=where, listed_by=f"fieldbo {what}s")
    return files[name]


_LARGEST_FILE = 10_000_000
"""Largest size of a TOML file, in bytes."""


def read_toml(file: Path) -> dict[str, Any]:
    """Return the content of a TOML file.

    Raises
    ------
    InputError
        The file is missing, a folder, too large, not text, or not TOML.
    """
    try:
        content = file.read_bytes()
        if len(content) > _LARGEST_FILE:
            raise InputError(
                f"the file has {len(content) / 1e6:.0f} MB",
                expected=f"at most {_LARGEST_FILE / 1e6:.0f} MB",
                where=short_path(file),
                fix="put tables of numbers into a CSV file",
            )
        tables = tomllib.loads(_decode(content, file))
        check_plain(tables, short_path(file))
        return tables
    except FileNotFoundError:
        problem, expected = "the file does not exist", "a TOML file"
    except IsADirectoryError:
        problem, expected = "this is a folder", "a TOML file"
    except OSError as error:
        problem, expected = f"the file can't be read: {error.strerror}", "a readable file"
    except UnicodeDecodeError:
        problem, expected = "the file is not text", "a TOML file in UTF-8"
    except tomllib.TOMLDecodeError as error:
        problem = f"the file is not valid TOML: {error}"
        expected = "key = value lines under [tables], with text in quotes"
    except RecursionError:
        problem, expected = "tables and lists are nested too deeply", "a table or a list with fewer levels"
    except InputError:
        raise
    except ValueError as error:  # a name with a NUL, or a number with thousands of digits
        problem, expected = f"the file can't be read: {error}", "a readable file"
        if "digits" in str(error):
            problem, expected = "a number has thousands of digits", "numbers of at most 100 digits"
    raise InputError(problem, expected=expected, where=short_path(file))


def _decode(content: bytes, file: Path) -> str:
    """Return the text of a file in UTF-8, with or without a byte order mark."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):  # UTF-32 begins in the same way
        raise InputError(
            "the file is in UTF-16 or UTF-32",
            expected="a TOML file in UTF-8",
            where=short_path(file),
            fix="save it again in your editor, with the encoding UTF-8",
        )
    return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")


def short_path(file: Path) -> str:
    """Return a file's path, relative to the working directory if it lies inside."""
    try:
        return str(file.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(file)


def toml_value(text: str) -> Any:
    """Return a value written as in TOML; bare words are text.

    Examples
    --------
    >>> toml_value("0.5"), toml_value("true"), toml_value("gchk")
    (0.5, True, 'gchk')
    """
    try:
        parsed = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):  # not TOML, or a number or a nesting that no file may have
        return text
    return parsed["value"] if len(parsed) == 1 else text


def toml_text(content: Mapping[str, Any]) -> str:
    """Return `content` as TOML, with each row of numbers on one line."""
    rows = re.compile(r"\[\n\s+([-+\w.,\s]+?),?\n\s*\]")
    return rows.sub(lambda m: "[" + " ".join(m.group(1).split()) + "]", tomli_w.dumps(dict(content)))


def made(registry: Registry, content: Mapping[str, Any], where: str) -> Any:
    """Build the object of a table with a ``kind``: the class of that kind in `registry`, with its settings.

    Raises
    ------
    InputError
        The kind is missing or unknown, or a setting is wrong.
    """
    settings = dict(content)
    kind = settings.pop("kind", None)
    if not isinstance(kind, str):
        raise InputError(
            "kind is missing" if kind is None else f"kind = {kind!r}",
            expected="one of " + ", ".join(registry.names()),
            where=f"{where}.kind",
        )
    return validated(registry.get(kind, where=f"{where}.kind"), settings, where)


def write_whole(file: Path, content: bytes) -> None:
    """Write a file so that it appears as a whole or not at all."""
    part = file.with_name(f".{file.name}.part")
    try:
        part.write_bytes(content)
        if file.exists():
            shutil.copymode(file, part)
        part.replace(file)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def write_output(file: Path, content: bytes) -> None:
    """Write a file that the user named with ``--out``; raise an `InputError` if it can't be written.

    A link stays one; what is neither a file nor a folder, such as a pipe, is written to.
    """
    try:
        target = file.resolve()
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if target.exists() and not target.is_file():
            target.write_bytes(content)
        else:
            write_whole(target, content)
    except (OSError, ValueError) as error:  # a name with a NUL is a ValueError
        raise InputError(
            f"{file} can't be written: {getattr(error, 'strerror', None) or error}",
            expected="a file in a folder that exists and can be written",
            where="--out",
            fix="name another file with --out",
        ) from None

"""Read and write TOML; report what is wrong with a file, and where."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli_w

from fieldbo.errors import InputError
from fieldbo.mission.kinds import Registry
from fieldbo.validation import validated


def read_toml(file: Path) -> dict[str, Any]:
    """Return the content of a TOML file.

    Raises
    ------
    InputError
        The file is missing, a folder, not text, or not TOML.
    """
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
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
    raise InputError(problem, expected=expected, where=short_path(file))


def short_path(file: Path) -> str:
    """Return a file's path, relative to the working directory if it lies inside."""
    try:
        return str(file.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(file)


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

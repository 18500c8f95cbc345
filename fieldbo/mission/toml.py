"""Read and write TOML; report what is wrong with a file, and where."""

from __future__ import annotations

import codecs
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli_w

from fieldbo.errors import InputError
from fieldbo.mission.kinds import Registry
from fieldbo.validation import check_plain, validated

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
        tables = tomllib.loads(_text(content, file))
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


def _text(content: bytes, file: Path) -> str:
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

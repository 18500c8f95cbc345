"""Reading TOML files strictly: what was wrong, where, and the nearest valid name."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import tomli_w

from fieldbo.errors import InputError
from fieldbo.mission.kinds import Registry
from fieldbo.validation import validated

T = TypeVar("T")


def read_toml(file: Path) -> dict[str, Any]:
    """Return a TOML file's content.

    Raises
    ------
    InputError
        The file is missing, a folder, not text, or not TOML.
    """
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError("there is no such file", expected="a TOML file", where=str(file)) from None
    except IsADirectoryError:
        raise InputError("this is a folder", expected="a TOML file", where=str(file)) from None
    except OSError as error:
        raise InputError(
            f"the file can't be read: {error.strerror}", expected="a readable file", where=str(file)
        ) from None
    except UnicodeDecodeError:
        raise InputError("the file is not text", expected="a TOML file in UTF-8", where=str(file)) from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(
            f"this is not TOML: {error}",
            expected="key = value lines under [tables]; text in quotes",
            where=str(file),
        ) from None


def toml_text(content: Mapping[str, Any]) -> str:
    """Return `content` as TOML, with each row of numbers on one line."""
    rows = re.compile(r"\[\n\s+([-+\w.,\s]+?),?\n\s*\]")
    return rows.sub(lambda m: "[" + " ".join(m.group(1).split()) + "]", tomli_w.dumps(dict(content)))


def made(registry: Registry, content: Mapping[str, Any], where: str) -> Any:
    """Return the value of a table with a ``kind``: the settings of that kind from `registry`."""
    settings = dict(content)
    kind = settings.pop("kind", None)
    if not isinstance(kind, str):
        raise InputError(
            "kind is missing" if kind is None else f"kind = {kind!r}",
            expected="one of " + ", ".join(registry.names()),
            where=f"{where}.kind",
        )
    return validated(registry.get(kind, where=f"{where}.kind"), settings, where)

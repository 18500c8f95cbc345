"""Reading TOML files strictly: what was wrong, where, and the nearest valid name."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

import tomli_w
from pydantic import BaseModel, TypeAdapter, ValidationError

from fieldbo.errors import InputError, UnknownNameError
from fieldbo.registry import Registry

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
    except PermissionError:
        raise InputError("the file may not be read", expected="a readable file", where=str(file)) from None
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


def validated(shape: type[T], content: Mapping[str, Any], where: str) -> T:
    """Return `content` as a `shape` (a pydantic model or a dataclass), strictly.

    Raises
    ------
    InputError
        The first thing that is wrong, with its place.
    """
    try:
        # Through JSON, strict mode takes arrays as tuples and still no text for a number.
        return TypeAdapter(shape).validate_json(json.dumps(content, default=str), strict=True)
    except ValidationError as error:
        raise _explained(error, shape, where) from None


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


def _explained(error: ValidationError, shape: Any, where: str) -> InputError:
    """Turn pydantic's first complaint into ours."""
    first = error.errors()[0]
    path = [str(p) for p in first["loc"] if not str(p).startswith(("function-", "union-"))]
    cause = (first.get("ctx") or {}).get("error")
    if isinstance(cause, InputError):
        return cause.at(where)
    place = _join(where, path)
    if first["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return UnknownNameError.of("key", path[-1], _keys(shape, path[:-1]), where=place)
    if first["type"].startswith("missing"):
        return InputError(f"{path[-1]} is missing", expected=f"a value for {path[-1]}", where=place)
    told = json.dumps(first["input"], default=str)
    expected = first["msg"].removeprefix("Input should be ")
    return InputError(f"{path[-1] if path else 'value'} = {told}", expected=expected, where=place)


def _join(where: str, path: list[str]) -> str:
    """Return file, table and key: ``lake.toml: agent.battery``."""
    dotted = ".".join(p for p in path if p.isidentifier() or p.isdigit())
    if not dotted:
        return where
    return f"{where}.{dotted}" if ": " in where else f"{where}: {dotted}"


def _keys(shape: Any, path: list[str]) -> list[str]:
    """Return the keys that the table at `path` may have."""
    for name in path:
        if isinstance(shape, type) and issubclass(shape, BaseModel) and name in shape.model_fields:
            shape = shape.model_fields[name].annotation
    if isinstance(shape, type) and issubclass(shape, BaseModel):
        return list(shape.model_fields)
    return [f.name for f in fields(shape) if f.init] if is_dataclass(shape) else []

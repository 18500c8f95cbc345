"""Reading TOML files strictly: what was wrong, where, and the nearest valid name."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

import tomli_w
from pydantic import BaseModel, TypeAdapter, ValidationError

from fieldbo.errors import InputError, UnknownNameError
from fieldbo.mission.kinds import Registry

T = TypeVar("T")

_WRONG_KEY = ("extra_forbidden", "unexpected_keyword_argument")


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


def validated(shape: type[T], content: Mapping[str, Any], where: str) -> T:
    """Return `content` as a `shape` (a pydantic model or a dataclass), strictly.

    Raises
    ------
    InputError
        The first thing that is wrong, with its place.
    """
    try:
        # Through JSON, strict mode takes arrays as tuples and still no text for a number.
        return TypeAdapter(shape).validate_json(json.dumps(content, default=_no_text), strict=True)
    except ValidationError as error:
        raise _explained(error, shape, content, where) from None


def _no_text(value: object) -> dict[str, str]:
    """Return a TOML date as something that is valid nowhere, not even where text is."""
    return {"date": str(value)}


def placed(error: InputError, where: str) -> InputError:
    """Return `error` with its place in the table `where`, which its own place may repeat."""
    file, _, table = where.rpartition(": ")
    inner = error.where or ""
    return error.at(file if file and (inner == table or inner.startswith(f"{table}.")) else where)


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


def _explained(error: ValidationError, shape: Any, content: Mapping[str, Any], where: str) -> InputError:
    """Turn pydantic's first complaint into ours."""
    # Where a table may be one of several, a key of one of them is no wrong key.
    complaints = [c for c in error.errors() if not _fits_another(c, shape, content)] or error.errors()
    # A wrong key in a table says more than that the table is no number.
    first = next((c for c in complaints if c["type"] in _WRONG_KEY), None) or _deepest(complaints, content)
    context = first.get("ctx") or {}
    if isinstance(cause := context.get("error"), InputError):
        return placed(cause, where)
    path, kind = _path_in(content, first["loc"]), first["type"]
    named = _unknown_name(first, shape, content, where)
    if named is not None:
        return named
    if kind.startswith("missing") or kind == "union_tag_not_found":
        if kind == "union_tag_not_found":
            names = ", ".join(sorted(_kinds(shape, path, content)))
            place = _place(where, [*path, "kind"])
            return InputError("kind is missing", expected=f"one of {names}", where=place)
        name = str(first["loc"][-1])
        place = _place(where, [*path, name])
        return InputError(f"{name} is missing", expected=f"a value for {name}", where=place)
    # A value that may be of several kinds draws a complaint for each.
    wanted = dict.fromkeys(_wanted(c) for c in complaints if _path_in(content, c["loc"]) == path)
    name = _dotted(path[-2:]).split(".")[-1] or "value"
    received = json.dumps(first["input"], default=str)
    return InputError(f"{name} = {received}", expected=", or ".join(wanted), where=_place(where, path))


def _wanted(complaint: Any) -> str:
    """Return what would have been right, by one of pydantic's complaints."""
    context = complaint.get("ctx") or {}
    match complaint["type"]:
        case "string_too_short":
            return "text that is not empty"
        case "too_short":
            return f"at least {context['min_length']} item{'s' if context['min_length'] > 1 else ''}"
        case "too_long":
            return f"at most {context['max_length']} item{'s' if context['max_length'] > 1 else ''}"
    return str(complaint["msg"]).removeprefix("Input should be ").replace("an object", "a table")


def _quoted(names: object) -> list[str]:
    """Return the names that pydantic lists in quotes."""
    return re.findall(r"'([^']*)'", str(names))


def _unknown_name(
    complaint: Any, shape: Any, content: Mapping[str, Any], where: str
) -> UnknownNameError | None:
    """Return the error of a key or a kind that there is not; None if that is not what is wrong."""
    path, context = _path_in(content, complaint["loc"]), complaint.get("ctx") or {}
    if complaint["loc"][-1] == "[key]":
        return UnknownNameError.of("key", path[-1], _quoted(context["expected"]), where=_place(where, path))
    if complaint["type"] in _WRONG_KEY:
        return UnknownNameError.of(
            "key", path[-1], _keys(shape, path[:-1], content), where=_place(where, path)
        )
    if complaint["type"] == "union_tag_invalid":
        place = _place(where, [*path, "kind"])
        return UnknownNameError.of(
            "kind", str(context["tag"]), _quoted(context["expected_tags"]), where=place
        )
    return None


def _fits_another(complaint: Any, shape: Any, content: Mapping[str, Any]) -> bool:
    """Say whether a key that is wrong in one of several tables is right in another of them."""
    if complaint["type"] not in _WRONG_KEY or complaint["loc"][-1] == "[key]":
        return False
    path = _path_in(content, complaint["loc"])
    return path[-1] in _keys(shape, path[:-1], content)


def _deepest(complaints: Sequence[Any], content: Mapping[str, Any]) -> Any:
    """Return the complaint that looks deepest into what the first one is about.

    Where a number or a table is right, a wrong table is no number either; what is wrong in it says more.
    """

    def depth(complaint: Any) -> int:
        return len(_path_in(content, complaint["loc"])) + int(complaint["type"].startswith("missing"))

    top = _path_in(content, complaints[0]["loc"])
    return max((c for c in complaints if _path_in(content, c["loc"])[: len(top)] == top), key=depth)


def _path_in(content: Any, location: Sequence[str | int]) -> list[str]:
    """Return the part of pydantic's location that are keys of `content`, without its names of types."""
    path = []
    for part in location:
        if isinstance(content, Mapping) and part in content:
            content = content[str(part)]
        elif isinstance(content, list) and isinstance(part, int) and part < len(content):
            content = content[part]
        else:
            continue
        path.append(str(part))
    return path


def _place(where: str, path: list[str]) -> str:
    """Return file, table and key: ``lake.toml: agent.battery``."""
    if not path:
        return where
    return f"{where}.{_dotted(path)}" if ": " in where else f"{where}: {_dotted(path)}"


def _dotted(path: Sequence[str]) -> str:
    """Return a path as people write it: ``agent.start[0]``."""
    return re.sub(r"\.(\d+)\b", r"[\1]", ".".join(path))


def _keys(shape: Any, path: list[str], content: Any) -> list[str]:
    """Return the keys that the table at `path` of `content` may have."""
    shapes = _shapes(shape, path, content)
    return list(dict.fromkeys(name for table in shapes for name in _annotations(table)))


def _kinds(shape: Any, path: list[str], content: Any) -> list[str]:
    """Return the kinds that the table at `path` of `content` may be of."""
    tables = _shapes(shape, path, content)
    return [kind for table in tables for kind in get_args(_annotations(table).get("kind"))]


def _shapes(shape: Any, path: list[str], content: Any) -> list[Any]:
    """Return the shapes that the table at `path` of `content` may have."""
    shapes = [shape]
    for name in path:
        content = content[int(name) if isinstance(content, list) else name]
        if name.isdigit():
            continue
        of_key = [fields_of[name] for fields_of in map(_annotations, shapes) if name in fields_of]
        shapes = [table for annotation in of_key for table in _tables(annotation)]
        shapes = [s for s in shapes if _of_kind(s, content)] or shapes
    return shapes


def _annotations(table: Any) -> dict[str, Any]:
    """Return the keys that a table's shape has, and what each may hold."""
    if hasattr(table, "model_fields"):
        return {name: field.annotation for name, field in table.model_fields.items()}
    if not is_dataclass(table):
        return {}
    hints = get_type_hints(table)
    return {field.name: hints[field.name] for field in fields(table) if field.init}


def _tables(annotation: Any) -> list[Any]:
    """Return the shapes of tables that an annotation names, anywhere in it."""
    if isinstance(annotation, type) and (issubclass(annotation, BaseModel) or is_dataclass(annotation)):
        return [annotation]
    return [table for part in get_args(annotation) for table in _tables(part)]


def _of_kind(table: Any, content: Any) -> bool:
    """Say whether a table with a ``kind`` has the one that the content names."""
    kind = getattr(table, "model_fields", {}).get("kind")
    return (
        kind is not None and isinstance(content, Mapping) and content.get("kind") in get_args(kind.annotation)
    )

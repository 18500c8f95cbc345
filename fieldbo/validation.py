"""Check values once, whether they come from a file or from Python, and explain what is wrong.

`settings` declares a class of settings: a frozen dataclass whose annotations pydantic checks. `validated`
builds one from the content of a file. Both raise an `InputError` that says where, what was expected, what
was received, and the nearest valid name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, fields, is_dataclass
from functools import wraps
from typing import Annotated, Any, TypeVar, dataclass_transform, get_args, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from fieldbo.errors import InputError, UnknownNameError

T = TypeVar("T")
Class = TypeVar("Class", bound=type)

_CONFIG = ConfigDict(
    arbitrary_types_allowed=True, allow_inf_nan=False, extra="forbid", use_attribute_docstrings=True
)
_WRONG_KEY = ("extra_forbidden", "unexpected_keyword_argument")
_BOUNDS = {"greater_than": "above {gt}", "greater_than_equal": "at least {ge}"} | {
    "less_than": "below {lt}",
    "less_than_equal": "at most {le}",
}
"""How to word a bound, by pydantic's name of the complaint and of the bound."""


@dataclass_transform(frozen_default=True, field_specifiers=(field, Field))
def settings(where: str, *, eq: bool = True) -> Callable[[Class], Class]:
    """Return a decorator that makes a class a frozen dataclass whose fields are checked.

    Annotate each field with its type and bounds, for example ``pydantic.PositiveFloat`` or
    ``Annotated[float, Field(ge=0, lt=1)]``, and document it with a string below it. Files, JSON Schemas and
    errors use both. Check what concerns several fields in ``__post_init__``; raise an `InputError` there.

    Parameters
    ----------
    where : str
        The table of a file that holds these settings, for example ``"policy"``; errors name it.
    eq : bool
        Whether instances with equal settings are equal.

    Examples
    --------
    >>> from pydantic import PositiveFloat
    >>> @settings("policy")
    ... class Straddle:
    ...     kappa: PositiveFloat = 1.96
    >>> Straddle(kappa=-1)
    Traceback (most recent call last):
        ...
    fieldbo.errors.InputError: kappa = -1
      expected: a number above 0
      where:    policy.kappa
    """

    def decorate(cls: Class) -> Class:
        checked: Any = dataclass(frozen=True, eq=eq, config=_CONFIG)(cls)
        for name, info in checked.__pydantic_fields__.items():  # so that subclasses inherit descriptions
            if info.description:
                checked.__dataclass_fields__[name].type = Annotated[
                    info.rebuild_annotation(), Field(description=info.description)
                ]
        build = checked.__init__

        @wraps(build)
        def explained(self: Any, *args: Any, **kwargs: Any) -> None:
            try:
                build(self, *args, **kwargs)
            except ValidationError as error:
                names = [f.name for f in fields(checked) if f.init]
                content = {**dict(zip(names, args, strict=False)), **kwargs}
                raise _explained(error, checked, content, where, from_python=True) from None

        checked.__init__ = explained
        return checked  # type: ignore[no-any-return]

    return decorate


def validated(shape: type[T], content: Mapping[str, Any], where: str) -> T:
    """Return the content of a file as a `shape` (a pydantic model or a dataclass), strictly.

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


def _explained(
    error: ValidationError,
    shape: Any,
    content: Mapping[str, Any],
    where: str,
    *,
    from_python: bool = False,
) -> InputError:
    """Turn what pydantic complains of first into an `InputError`; missing keys are reported together."""
    # Where a table may be one of several, a key that fits another one is not wrong.
    complaints = [c for c in error.errors() if not _fits_another(c, shape, content)] or error.errors()
    # A wrong key in a table says more than that the table is not a number.
    first = next((c for c in complaints if c["type"] in _WRONG_KEY), None) or _deepest(complaints, content)
    context = first.get("ctx") or {}
    if isinstance(cause := context.get("error"), InputError):
        return cause if from_python else placed(cause, where)
    path, kind = _path_in(content, first["loc"]), first["type"]
    unknown = _unknown_name(first, shape, content, where)
    if unknown is not None:
        return unknown
    if kind == "union_tag_not_found":
        names = ", ".join(sorted(_kinds(shape, path, content)))
        return InputError("kind is missing", expected=f"one of {names}", where=_place(where, [*path, "kind"]))
    if kind.startswith("missing"):
        return _missing(complaints, path, shape, content, where)
    # A value that may be of several kinds draws a complaint for each.
    wanted = dict.fromkeys(_wanted(c) for c in complaints if _path_in(content, c["loc"]) == path)
    name = _dotted(path[-2:]).split(".")[-1] or "value"
    try:
        received = json.dumps(first["input"])
    except TypeError:
        received = repr(first["input"])
    return InputError(f"{name} = {received}", expected=", or ".join(wanted), where=_place(where, path))


def _missing(
    complaints: Sequence[Any], path: list[str], shape: Any, content: Mapping[str, Any], where: str
) -> InputError:
    """Return the error for all keys that are missing from one table, with what each is for."""
    names = [
        str(c["loc"][-1])
        for c in complaints
        if c["type"].startswith("missing") and _path_in(content, c["loc"]) == path
    ]
    names = list(dict.fromkeys(names))
    meanings = _descriptions(shape, path, content)
    expected = [
        f"{name}: {meanings[name]}" if meanings.get(name) else f"a value for {name}" for name in names
    ]
    return InputError(
        f"{' and '.join([', '.join(names[:-1]), names[-1]] if len(names) > 1 else names)} "
        f"{'is' if len(names) == 1 else 'are'} missing",
        expected="\n".join(expected),
        where=_place(where, [*path, names[0]] if len(names) == 1 else path),
    )


def _wanted(complaint: Any) -> str:
    """Return what would have been right, by one of pydantic's complaints."""
    context = complaint.get("ctx") or {}
    match complaint["type"]:
        case "string_too_short":
            return "text that is not empty"
        case "too_short":
            return f"at least {context['min_length']} item{'s' if context['min_length'] > 1 else ''}"
        case "finite_number":
            return "a finite number"
        case bound if bound in _BOUNDS:
            ends = {name: f"{end:g}" if isinstance(end, float) else end for name, end in context.items()}
            return f"a number {_BOUNDS[bound]}".format(**ends).replace("a number at", "at")
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
    """Return file, table and key: ``lake.toml: agent.battery``; from Python ``policy.kappa``."""
    if not path:
        return where
    in_table = ": " in where or (where.replace(".", "_").isidentifier() and not where.endswith(".toml"))
    return f"{where}{'.' if in_table else ': '}{_dotted(path)}"


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


def _descriptions(shape: Any, path: list[str], content: Any) -> dict[str, str | None]:
    """Return what each key of the table at `path` is for."""
    found: dict[str, str | None] = {}
    for table in _shapes(shape, path, content):
        declared = getattr(table, "model_fields", None) or getattr(table, "__pydantic_fields__", {})
        found |= {name: one.description for name, one in declared.items()}
    return found


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

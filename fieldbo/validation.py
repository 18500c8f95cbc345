"""Check settings once, whether they come from a file or from Python, and explain what is wrong with them.

`settings` declares a class of settings: a frozen dataclass whose annotations pydantic checks. `validated`
builds one from the content of a file. Both raise an `InputError` that names the place, what was expected,
what was received, and the nearest valid name.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, fields, is_dataclass
from functools import wraps
from typing import Any, TypeVar, dataclass_transform, get_args, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass, rebuild_dataclass

from fieldbo.errors import InputError, UnknownNameError, nearest
from fieldbo.field_texts import field_texts, schema_with_texts

T = TypeVar("T")
Class = TypeVar("Class", bound=type)

_CONFIG = ConfigDict(arbitrary_types_allowed=True, allow_inf_nan=False, extra="forbid")
_WRONG_KEY = ("extra_forbidden", "unexpected_keyword_argument")
_EXPECTED = {
    "string_type": "text",
    "string_too_short": "text that is not empty",
    "finite_number": "a finite number",
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float", "int_parsing_size"), "a whole number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    **dict.fromkeys(("list_type", "tuple_type", "set_type"), "a list"),
    **dict.fromkeys(("dict_type", "mapping_type", "model_type", "dataclass_type"), "a table"),
    "model_attributes_type": "a table",
    "greater_than": "a number above {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "a number below {lt}",
    "less_than_equal": "at most {le}",
    "too_short": "at least {min_length} item(s)",
    "too_long": "at most {max_length} item(s)",
}
"""What would have been right, by the type of pydantic's complaint; its context fills the gaps."""


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
    >>> from typing import Annotated
    >>> @settings("policy")
    ... class Straddle:
    ...     kappa: Annotated[float, Field(gt=0)] = 1.96
    >>> Straddle(kappa=-1)
    Traceback (most recent call last):
        ...
    fieldbo.errors.InputError: kappa = -1
      expected: a number above 0
      where:    policy.kappa
    """

    def decorate(cls: Class) -> Class:
        checked: Any = cls
        checked.__pydantic_config__ = _CONFIG  # not as an argument: pydantic warns if a base has one, too
        checked.__get_pydantic_json_schema__ = classmethod(schema_with_texts)
        checked = dataclass(frozen=True, eq=eq)(checked)
        if not checked.__pydantic_complete__:  # its annotations name what only the caller's frame knows
            caller = sys._getframe(1)
            names_there = {**caller.f_globals, **caller.f_locals}
            rebuild_dataclass(checked, force=True, raise_errors=False, _types_namespace=names_there)
        build = checked.__init__
        names = [f.name for f in fields(checked) if f.init]

        @wraps(build)
        def explained(self: Any, *args: Any, **kwargs: Any) -> None:
            given = _by_name(checked.__name__, names, args, kwargs)
            try:
                build(self, **given)
            except ValidationError as error:
                raise _explained(error, checked, given, where, from_python=True) from None
            _check_not_converted(self, given, where)

        checked.__init__ = explained
        return checked  # type: ignore[no-any-return]

    return decorate


def _by_name(
    cls: str, names: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return all arguments by name, so that errors name the field."""
    if len(args) > len(names):
        raise TypeError(f"{cls} takes at most {len(names)} settings ({', '.join(names)}), got {len(args)}")
    by_position = dict(zip(names, args, strict=False))
    if twice := sorted(by_position.keys() & kwargs.keys()):
        raise TypeError(f"{cls} got two values for {', '.join(twice)}")
    return {**by_position, **kwargs}


def _check_not_converted(built: Any, given: Mapping[str, Any], where: str) -> None:
    """Raise an `InputError` if text or a truth value became a number, which no file may do either."""
    wanted = {bool: "true or false", int: "a whole number", float: "a number"}
    for name, value in given.items():
        stored = type(getattr(built, name))
        if isinstance(value, str | bytes | bool) and stored in wanted and not isinstance(value, stored):
            raise InputError(
                f"{name} = {_received(value)}", expected=wanted[stored], where=_place(where, [name])
            )


def validated(shape: type[T], content: Mapping[str, Any], where: str) -> T:
    """Build a `shape` (a pydantic model or a dataclass) from a file's content, without converting types.

    Parameters
    ----------
    shape : type
    content : mapping
        The content of the file, or of one of its tables.
    where : str
        The file, or file and table, for example ``"lake.toml"`` or ``"lake.toml: policy"``; errors name it.

    Raises
    ------
    InputError
        The first thing that is wrong, with its place.
    """
    check_plain(content, where)
    try:
        # Through JSON, strict mode takes arrays as tuples and still no text for a number.
        return TypeAdapter(shape).validate_json(json.dumps(content, default=_no_text), strict=True)
    except ValidationError as error:
        raise _explained(error, shape, content, where) from None


LARGEST = 1e100
"""Largest magnitude of a finite number from a file or a vehicle: its square is finite, and so are sums."""

_DEEPEST, _LONGEST_TEXT, _LONGEST_KEY = 16, 1000, 100


def check_plain(content: Any, where: str) -> None:
    """Check that the content of a file is of a size that a person may have written.

    Raises
    ------
    InputError
        A number is too large, a text or a key too long, or tables and lists are nested too deeply.

    Examples
    --------
    >>> check_plain({"agent": {"battery": 1e308}}, "m.toml")
    Traceback (most recent call last):
        ...
    fieldbo.errors.InputError: battery = 1e+308
      expected: a number of at most 1e+100
      where:    m.toml: agent.battery
    """
    _check_plain(content, where, [])


def _check_plain(content: Any, where: str, path: list[str]) -> None:
    if isinstance(content, Mapping | list | tuple):
        if len(path) >= _DEEPEST:
            raise InputError(
                f"tables and lists are nested more than {_DEEPEST} levels deep",
                expected="a table or a list with fewer levels",
                where=_place(where, path[:3]),
            )
        pairs = content.items() if isinstance(content, Mapping) else enumerate(content)
        for key, value in pairs:
            if len(str(key)) > _LONGEST_KEY:
                raise InputError(
                    f"a key of {len(str(key)):,} characters: {str(key)[:20]}...",
                    expected=f"at most {_LONGEST_KEY} characters",
                    where=_place(where, path),
                )
            _check_plain(value, where, [*path, str(key)])
    elif isinstance(content, str) and len(content) > _LONGEST_TEXT:
        raise InputError(
            f"{_name(path)} has {len(content):,} characters",
            expected=f"at most {_LONGEST_TEXT:,} characters",
            where=_place(where, path),
        )
    elif isinstance(content, int) and abs(content) > LARGEST:
        raise _too_large(f"a number of {len(str(abs(content)))} digits", where, path)
    elif isinstance(content, float) and LARGEST < abs(content) < math.inf:
        raise _too_large(f"{content:g}", where, path)


def _too_large(shown: str, where: str, path: list[str]) -> InputError:
    return InputError(
        f"{_name(path)} = {shown}", expected=f"a number of at most {LARGEST:g}", where=_place(where, path)
    )


def _name(path: list[str]) -> str:
    return _dotted(path).split(".")[-1] or "value"


def _no_text(value: object) -> dict[str, str]:
    """Return a TOML date as something that is never valid, not even as text."""
    return {"date": str(value)}


def placed(error: InputError, where: str) -> InputError:
    """Return `error` with its place below `where`, for example ``"lake.toml: domain"``.

    The error's own place may be absolute (``domain.axes``), relative (``axes``) or something else, such as a
    line of another file.

    Examples
    --------
    >>> places = "domain.axes", "axes", "cost.rate", "r.csv, line 2"
    >>> [placed(InputError("wrong", where=place), "w.toml: domain").where for place in places]
    ['w.toml: domain.axes', 'w.toml: domain.axes', 'w.toml: cost.rate', 'w.toml: domain: r.csv, line 2']
    """
    file, _, table = where.rpartition(": ")
    inner = error.where or ""
    in_file = f"{file}: " if file else ""
    if inner and _root(inner) == _root(table):
        place = in_file + max(inner, table, key=len)
    elif not re.fullmatch(r"[\w.\[\]]+", inner) or _is_file(table) or _is_file(inner):
        return error.at(where)
    else:
        place = in_file + (inner if "." in inner else f"{table}.{inner}")
    return type(error)(error.problem, expected=error.expected, where=place, fix=error.fix)


def _root(place: str) -> str:
    """Return the outermost key of a place."""
    return re.split(r"[.\[]", place)[0]


def _is_file(place: str) -> bool:
    return "/" in place or place.endswith((".toml", ".csv"))


def _explained(
    error: ValidationError,
    shape: Any,
    content: Mapping[str, Any],
    where: str,
    *,
    from_python: bool = False,
) -> InputError:
    """Return the first of pydantic's complaints as an `InputError`; missing keys are reported together."""
    # Where a table may be one of several, a key that fits another one is not wrong.
    complaints = [c for c in error.errors() if not _fits_another(c, shape, content)] or error.errors()
    # A wrong key in a table says more than that the table is not a number.
    first = next((c for c in complaints if c["type"] in _WRONG_KEY), None) or _deepest(complaints, content)
    context = first.get("ctx") or {}
    if isinstance(cause := context.get("error"), InputError):
        return cause if from_python else placed(cause, _place(where, _path_in(content, first["loc"])))
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
    name = _name(path)
    received = _received(first["input"])
    near = None
    if kind == "literal_error" and isinstance(first["input"], str):
        near = nearest(first["input"], _quoted(context["expected"]))
    return InputError(
        f"{name} = {received}",
        expected=_either(wanted),
        where=_place(where, path),
        fix=f"did you mean {near!r}?" if near else _as_fraction(first),
    )


def _as_fraction(complaint: Mapping[str, Any]) -> str | None:
    """Return how to write a number as a fraction of 1, if it may be a percentage."""
    value, context = complaint["input"], complaint.get("ctx") or {}
    if context.get("lt", context.get("le")) != 1 or isinstance(value, bool) or not 2 <= value <= 100:
        return None
    return f"write {value / 100:g} for {value:g}%"


def _received(value: object) -> str:
    """Return a value as TOML would write it.

    Examples
    --------
    >>> [_received(value) for value in (True, "a", float("nan"), [1, -0.5], {"every": 0})]
    ['true', '"a"', 'nan', '[1, -0.5]', '{ every = 0 }']
    """
    match value:
        case bool():
            return str(value).lower()
        case {"date": str(date), **other} if not other:  # see `_no_text`
            return date
        case dict():
            pairs = ", ".join(f"{key} = {_received(item)}" for key, item in value.items())
            return f"{{ {pairs} }}" if pairs else "{}"
        case list() | tuple():
            return f"[{', '.join(map(_received, value))}]"
        case str():
            return json.dumps(value, ensure_ascii=False)
    return repr(value)


def _either(choices: Iterable[str]) -> str:
    """Join alternatives: ``a number or a table``."""
    return " or ".join(choices)


def _missing(
    complaints: Sequence[Any], path: list[str], shape: Any, content: Mapping[str, Any], where: str
) -> InputError:
    """Return the error for all keys missing from one table, with the meaning of each."""
    missing = [
        c for c in complaints if c["type"].startswith("missing") and _path_in(content, c["loc"]) == path
    ]
    names = list(dict.fromkeys(str(c["loc"][-1]) for c in missing))
    alternatives = len({c["loc"][:-1] for c in missing}) > 1  # keys of different shapes of the table
    meanings = _descriptions(shape, path, content)
    expected = [
        f"{name} = ...  # {meanings[name]}" if meanings.get(name) else f"a value for {name}" for name in names
    ]
    last = " or " if alternatives else " and "
    return InputError(
        f"{last.join(filter(None, [', '.join(names[:-1]), names[-1]]))} "
        f"{'is' if alternatives or len(names) == 1 else 'are'} missing",
        expected="\n".join(expected),
        where=_place(where, [*path, names[0]] if len(names) == 1 else path),
    )


def _wanted(complaint: Any) -> str:
    """Return what would have been right, given one of pydantic's complaints."""
    context = complaint.get("ctx") or {}
    if complaint["type"] == "value_error":  # by convention the message of a validator's ValueError
        return str(context["error"])
    if complaint["type"] == "literal_error":
        return str(context["expected"]).replace("'", '"')
    if complaint["type"] not in _EXPECTED:
        return str(complaint["msg"]).removeprefix("Input should be ")
    numbers = {name: f"{end:g}" if isinstance(end, float) else str(end) for name, end in context.items()}
    plural = "" if numbers.get("min_length", numbers.get("max_length")) == "1" else "s"
    return _EXPECTED[complaint["type"]].replace("(s)", plural).format(**numbers)


def _quoted(names: object) -> list[str]:
    """Return the names that pydantic lists in quotes."""
    return re.findall(r"'([^']*)'", str(names))


def _unknown_name(
    complaint: Any, shape: Any, content: Mapping[str, Any], where: str
) -> UnknownNameError | None:
    """Return the error for an unknown key or kind; None if the complaint is about something else."""
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
    """Return True if a key that is wrong in one of several possible tables is right in another."""
    if complaint["type"] not in _WRONG_KEY or complaint["loc"][-1] == "[key]":
        return False
    path = _path_in(content, complaint["loc"])
    return path[-1] in _keys(shape, path[:-1], content)


def _deepest(complaints: Sequence[Any], content: Mapping[str, Any]) -> Any:
    """Return the complaint about the innermost value of what the first complaint is about.

    If a number or a table is allowed, a wrong table draws two complaints: that it is not a number, and what
    is wrong in it. The second is more useful.
    """

    def depth(complaint: Any) -> int:
        return len(_path_in(content, complaint["loc"])) + int(complaint["type"].startswith("missing"))

    top = _path_in(content, complaints[0]["loc"])
    return max((c for c in complaints if _path_in(content, c["loc"])[: len(top)] == top), key=depth)


def _path_in(content: Any, location: Sequence[str | int]) -> list[str]:
    """Return the keys of `content` in pydantic's location, without the names of types in between."""
    path = []
    for part in location:
        if isinstance(content, Mapping) and part in content:
            content = content[str(part)]
        elif isinstance(content, list | tuple) and isinstance(part, int) and part < len(content):
            content = content[part]
        else:
            continue
        path.append(str(part))
    return path


def _place(where: str, path: list[str]) -> str:
    """Return file, table and key: ``lake.toml: agent.battery``, or ``policy.kappa`` from Python."""
    if not path:
        return where
    in_table = ": " in where or (where.replace(".", "_").isidentifier() and not where.endswith(".toml"))
    return f"{where}{'.' if in_table else ': '}{_dotted(path)}"


def _dotted(path: Sequence[str]) -> str:
    """Return a path with indices in brackets: ``agent.start[0]``."""
    return re.sub(r"\.(\d+)\b", r"[\1]", ".".join(path))


def _keys(shape: Any, path: list[str], content: Any) -> list[str]:
    """Return the valid keys of the table at `path` of `content`."""
    shapes = _shapes(shape, path, content)
    return list(dict.fromkeys(name for table in shapes for name in _annotations(table)))


def _kinds(shape: Any, path: list[str], content: Any) -> list[str]:
    """Return the valid kinds of the table at `path` of `content`."""
    tables = _shapes(shape, path, content)
    return [kind for table in tables for kind in get_args(_annotations(table).get("kind"))]


def _shapes(shape: Any, path: list[str], content: Any) -> list[Any]:
    """Return the possible shapes of the table at `path` of `content`."""
    shapes = [shape]
    for name in path:
        content = content[int(name) if isinstance(content, list | tuple) else name]
        if name.isdigit():
            continue
        of_key = [fields_of[name] for fields_of in map(_annotations, shapes) if name in fields_of]
        shapes = [table for annotation in of_key for table in _tables(annotation)]
        shapes = [s for s in shapes if _of_kind(s, content)] or shapes
    return shapes


def _descriptions(shape: Any, path: list[str], content: Any) -> dict[str, str]:
    """Return the description of each key of the table at `path`."""
    descriptions: dict[str, str] = {}
    for table in _shapes(shape, path, content):
        descriptions |= field_texts(table)
    return descriptions


def _annotations(table: Any) -> dict[str, Any]:
    """Return the keys of a table's shape with their annotations."""
    if hasattr(table, "model_fields"):
        return {name: field.annotation for name, field in table.model_fields.items()}
    if not is_dataclass(table):
        return {}
    hints = get_type_hints(table)
    return {field.name: hints[field.name] for field in fields(table) if field.init}


def _tables(annotation: Any) -> list[Any]:
    """Return the shapes of tables anywhere in an annotation."""
    if isinstance(annotation, type) and (issubclass(annotation, BaseModel) or is_dataclass(annotation)):
        return [annotation]
    return [table for part in get_args(annotation) for table in _tables(part)]


def _of_kind(table: Any, content: Any) -> bool:
    """Return True if a shape's ``kind`` is that of the content."""
    kind = getattr(table, "model_fields", {}).get("kind")
    return (
        kind is not None and isinstance(content, Mapping) and content.get("kind") in get_args(kind.annotation)
    )

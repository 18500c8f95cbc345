"""The strings below the fields of a class, which say what they mean.

They are read from the class's source when a schema or an error needs them: reading them for every class as it
is made would take a third of the time that a command takes to start.
"""

from __future__ import annotations

import ast
import inspect
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import GetJsonSchemaHandler
    from pydantic_core import CoreSchema


def field_texts(cls: type) -> dict[str, str]:
    """Return what the string below each field of a class says, those of its bases included.

    What a field of pydantic declares as its description goes before the string. Fields without either have no
    text, and so have classes without a source.

    Examples
    --------
    >>> from fieldbo.costs.travel import Boat
    >>> field_texts(Boat)["speed"]
    'Speed of the boat, in m/s.'
    """
    texts: dict[str, str] = {}
    for base in reversed(cls.__mro__[:-1]):
        texts |= _own_texts(base)
    declared = getattr(cls, "__pydantic_fields__", {})
    return texts | {name: field.description for name, field in declared.items() if field.description}


@cache
def _own_texts(cls: type) -> dict[str, str]:
    """Return the texts of the fields that a class itself declares."""
    try:
        source = inspect.getsource(cls)
    except (OSError, TypeError):  # made at a prompt, or part of Python
        return {}
    if source[0].isspace():  # declared inside of something
        source = f"if True:\n{source}"
    declared = next((node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef)), None)
    return {
        field.target.id: inspect.cleandoc(below.value.value)
        for field, below in pairwise(declared.body if declared else ())
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
        if isinstance(below.value.value, str)
    }


def schema_with_texts(cls: type, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
    """Return the JSON Schema of a class with the texts of its fields.

    Make it the class method ``__get_pydantic_json_schema__`` of a model or dataclass of pydantic.
    """
    schema = handler(core_schema)
    properties = handler.resolve_ref_schema(schema).get("properties", {})
    for name, text in field_texts(cls).items():
        if name in properties:
            properties[name].setdefault("description", text)
    return schema

"""``fieldbo policies``: the rules that can be named, what they answer, and how they can be set."""

from __future__ import annotations

import inspect
import json
from dataclasses import MISSING, fields, is_dataclass
from typing import Annotated, Any

import typer


def policies(
    name: Annotated[str | None, typer.Argument(help="One policy, to see its settings.")] = None,
) -> None:
    """List the policies and the questions they answer; or show one with its settings."""
    from fieldbo.cli.terminal import console
    from fieldbo.mission.kinds import POLICIES

    if name is None:
        console().print(_listed())
        return
    kind = POLICIES.get(name)
    console().print(f"{name}: for {_answered(kind)}\n\n{_explained(kind)}\n", markup=False)
    told = [f'kind = "{name}"', *(_line(field) for field in fields(kind))]
    console().print("[policy]\n" + "\n".join(told), markup=False)


_SETTINGS = "Parameters\n----------\n"


def _explained(kind: Any) -> str:
    """Return what a policy says of itself, with the settings that it has from more general ones."""
    told = inspect.cleandoc(kind.__doc__ or "")
    for general in kind.__mro__[1:]:
        _, found, rest = inspect.cleandoc(general.__doc__ or "").partition(_SETTINGS)
        if found and is_dataclass(general):
            settings = rest.split("\n\n")[0]
            told = f"{told}\n{settings}" if _SETTINGS in told else f"{told}\n\n{_SETTINGS}{settings}"
    return told


def _listed() -> Any:
    from rich.markup import escape
    from rich.table import Table

    from fieldbo.mission.kinds import POLICIES

    table = Table(box=None, pad_edge=False)
    table.add_column("policy", no_wrap=True)
    table.add_column("what it does")
    table.add_column("answers")
    for name in POLICIES.names():
        kind = POLICIES.get(name)
        said = (kind.__doc__ or "").strip().split("\n")[0]
        table.add_row(escape(name), escape(said), _answered(kind))
    return table


def _answered(kind: Any) -> str:
    return ", ".join(_QUESTIONS[question.__name__] for question in kind.answers)


def _line(field: Any) -> str:
    """Return a setting as in a mission's file: its default, or a comment where it has none."""
    if field.default is MISSING:
        return f"{field.name} = ...  # has to be given: see above"
    if field.default is None:
        return f"# {field.name} = ...  (see above)"
    return f"{field.name} = {json.dumps(field.default)}"  # which TOML reads alike


_QUESTIONS = {
    "LevelSet": "level-set",
    "ShareOfMaximum": "level-set of the maximum",
    "Optimum": "optimum",
}

"""``fieldbo policies``: the rules that can be named, what they answer, and how they can be set."""

from __future__ import annotations

import inspect
from dataclasses import MISSING, fields
from typing import Annotated, Any

import typer


def policies(
    name: Annotated[str | None, typer.Argument(help="One policy, to see its settings.")] = None,
) -> None:
    """List the policies and the questions they answer; or show one with its settings."""
    from fieldbo.cli.console import console
    from fieldbo.policies import POLICIES

    if name is None:
        console().print(_listed())
        return
    kind = POLICIES.get(name)
    console().print(
        f"{name}: for {_answered(kind)}\n\n{inspect.cleandoc(kind.__doc__ or '')}\n", markup=False
    )
    told = [f'kind = "{name}"', *(_line(field) for field in fields(kind))]
    console().print("[policy]\n" + "\n".join(told), markup=False)


def _listed() -> Any:
    from rich.markup import escape
    from rich.table import Table

    from fieldbo.policies import POLICIES

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
    if field.default is MISSING or field.default is None:
        return f"# {field.name} = ...  (see above)"
    value = str(field.default).lower() if isinstance(field.default, bool) else field.default
    return f"{field.name} = {value}"


_QUESTIONS = {
    "LevelSet": "level-set",
    "ShareOfMaximum": "level-set of the maximum",
    "Optimum": "optimum",
}

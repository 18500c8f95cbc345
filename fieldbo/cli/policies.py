"""``fieldbo policies``: list the policies, show the settings of one, or say which one suits a mission."""

from __future__ import annotations

import inspect
import json
import re
from dataclasses import MISSING, fields
from textwrap import wrap
from typing import Annotated, Any

import typer

EXAMPLES = """
**Examples**

`fieldbo policies` - every policy

`fieldbo policies truvar` - one policy and its settings

`fieldbo policies --for lake-level-set` - the default policy for a mission, and why
"""

_QUESTIONS = {
    "LevelSet": "level-set",
    "ShareOfMaximum": "level-set (fraction of maximum)",
    "Optimum": "optimum",
}


def policies(
    name: Annotated[str | None, typer.Argument(help="Show the settings of this policy.")] = None,
    mission: Annotated[
        str | None,
        typer.Option("--for", metavar="MISSION", help="Say which policy suits a mission."),
    ] = None,
) -> None:
    """List the policies, show one with its settings, or say which one suits a mission, and why."""
    from fieldbo.cli.terminal import console
    from fieldbo.errors import InputError
    from fieldbo.mission.kinds import POLICIES

    if mission is not None:
        if name is not None:
            raise InputError("a policy and --for", expected="one of the two", where="--for")
        console().print(_default(mission), markup=False)
        return
    if name is None:
        console().print(_listed())
        return
    kind = POLICIES.get(name)
    if warning := POLICIES.warnings().get(name):
        typer.echo(f"warning: {warning}", err=True)
    text, _, _ = inspect.cleandoc(kind.__doc__ or "").partition(_SETTINGS)
    lines = [f'[policy]\nkind = "{name}"']
    for field in fields(kind):
        lines += [f"# {line}" for line in wrap(_plain(_description(kind, field.name)), 98)]
        lines.append(_line(field))
    console().print(f"{name}: for {_answered(kind)}\n\n{_plain(text.strip())}\n", markup=False)
    console().print("\n".join(lines), markup=False)


def _default(name: str) -> str:
    """Return which policy is the default for a mission, why, and how the mission can name it."""
    from fieldbo.mission.default_policy import default_policy
    from fieldbo.mission.files import toml_text
    from fieldbo.mission.load import load_mission, own_settings

    mission = load_mission(name)
    default = default_policy(mission.question, mission.world, mission.costs)
    table = toml_text({"policy": default.settings})
    used = own_settings(mission.settings["policy"])
    note = "" if used == default.settings else f"\n{mission.name} uses {used['kind']}.\n"
    return f"{default.settings['kind']}: {default.why}\n\n{table}{note}"


def _plain(text: str) -> str:
    """Return a docstring's text without the backticks around code."""
    return text.replace("`", "")


_SETTINGS = "Parameters\n----------\n"


def _description(kind: Any, setting: str) -> str:
    """Return the string below a setting or, without one, its text in a Parameters section."""
    from fieldbo.field_texts import field_texts

    if text := field_texts(kind).get(setting):
        return " ".join(text.split())
    for cls in kind.__mro__:
        section = inspect.cleandoc(cls.__dict__.get("__doc__") or "").partition(_SETTINGS)[2]
        if match := re.search(rf"^(?:\w+, )*{setting}(?:, \w+)* : .*\n((?:    .*(?:\n|$))+)", section, re.M):
            return " ".join(match[1].split())
    return ""


def _listed() -> Any:
    """Return a table of all policies."""
    from rich.markup import escape
    from rich.table import Table

    from fieldbo.errors import InputError
    from fieldbo.mission.kinds import POLICIES

    table = Table(box=None, pad_edge=False)
    table.add_column("policy", no_wrap=True)
    table.add_column("description")
    table.add_column("answers")
    warnings = POLICIES.warnings()
    for name in POLICIES.names():
        try:
            kind = POLICIES.get(name)
        except InputError as error:  # a broken package must not hide the other policies
            table.add_row(escape(name), escape(error.problem), "")
            continue
        summary = (kind.__doc__ or "").strip().split("\n")[0]
        table.add_row(escape(name), escape(_plain(summary)), _answered(kind))
        if name in warnings:
            table.add_row("", escape(f"({warnings[name]})"), "")
    return table


def _answered(kind: Any) -> str:
    return ", ".join(_QUESTIONS.get(question.__name__, question.__name__) for question in kind.answers)


def _line(field: Any) -> str:
    """Return a setting as in a mission file: its default, or a comment if it has none."""
    if field.default is MISSING:
        return f"{field.name} = ...  # required"
    if field.default is None:
        return f"# {field.name} = ..."
    return f"{field.name} = {json.dumps(field.default)}"  # valid TOML, too

"""``fieldbo missions``: list the missions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

EXAMPLES = """
**Examples**

`fieldbo missions` - starter missions

`fieldbo missions --all` - every mission

`fieldbo check lake-level-set` - the settings of a mission
"""

_FIRST = {
    "A lake: map a level set": {
        "lake-level-set": "map where chlorophyll reaches 1.5 mg m-3, with travel time as cost",
        "lake-level-set-outliers": "the same, with a model that recognises faulty readings",
        "lake-places-level-set": "a lake on the map, around an island, a spit and a beach",
    },
    "A wall: inspect a facade": {
        "wall-worst-crack": "find the worst crack with a drone that returns to its dock (rollout of distUCB)",
        "wall-damage-map": "map where the damage reaches 0.3 (straddle per unit of cost)",
    },
    "A factory cell: tune a process": {
        "cell-pipeline": "tune three image-processing stages, where a change reruns every later stage",
        "cell-growth": "choose which of five growth conditions to control, at unknown costs",
    },
    "An optimum: find the best point": {
        "se-optimum-ei": "maximise a smooth function of two variables (expected improvement)",
        "gp-lake-optimum-ei-per-cost": "find the highest value of a random field, with travel time as cost",
        "svm-ei": "tune a support vector machine (expected improvement)",
    },
}
"""Starter missions, grouped by purpose."""

_GROUPS = {
    "Lake": ("lake-",),
    "Wall": ("wall-",),
    "Factory cells": ("cell-pipeline", "cell-growth", "cell-airfoil"),
    "Papers: random fields and tuning problems": ("gp-", "se-", "svm-", "mlp-"),
    "Test functions": ("",),
}
"""Prefixes of the shipped missions of each group; the first match counts."""


def missions(
    all_: Annotated[
        bool, typer.Option("--all", help="List every mission, not only the starter ones.")
    ] = False,
) -> None:
    """List starter missions, grouped by purpose, and your own missions in *./missions*."""
    from rich.markup import escape
    from rich.table import Table

    from fieldbo.cli.terminal import console
    from fieldbo.mission.files import list_missions, shipped

    files = list_missions()
    theirs = shipped("missions").resolve()
    yours = {name: file for name, file in files.items() if file.parent.resolve() != theirs}
    groups = {"Yours: in ./missions": _titles(yours)} if yours else {}
    groups |= _grouped({k: v for k, v in files.items() if k not in yours}) if all_ else _FIRST
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column()
    for title, lines in groups.items():
        if table.row_count:
            table.add_row()
        table.add_row(f"[bold]{escape(title)}[/]")
        for name, line in lines.items():
            table.add_row(f"  {escape(name)}", escape(line))
    out = console()
    out.print(table)
    if not all_:
        out.print(f"\nList all {len(files)} missions with: fieldbo missions --all")


def _grouped(files: Mapping[str, Path]) -> dict[str, dict[str, str]]:
    """Return the titles of missions by group and name."""
    groups: dict[str, dict[str, str]] = {title: {} for title in _GROUPS}
    for name, line in _titles(files).items():
        group = next(title for title, prefixes in _GROUPS.items() if name.startswith(prefixes))
        groups[group][name] = line
    return groups


def _titles(files: Mapping[str, Path]) -> dict[str, str]:
    from fieldbo.mission.files import read_toml

    return {name: str(read_toml(file).get("title", "")) for name, file in sorted(files.items())}

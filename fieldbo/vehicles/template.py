"""A vehicle file to begin with: every setting at its default, and what it means behind it."""

from __future__ import annotations

import inspect
import json
import math
import re
import textwrap
from collections.abc import Sequence
from dataclasses import MISSING, fields
from typing import Any

from fieldbo.domain import Axis, is_depth
from fieldbo.vehicles import LINKS
from fieldbo.vehicles.pilot import Arrival
from fieldbo.vehicles.settings import Battery, Reports, Watch

_PARAMETER = re.compile(r"^([\w, ]+) : .*\n((?:    .*\n?)+)", re.MULTILINE)
_HEIGHTS = ("height", "z", "altitude", "up")
_WIDTH = 100


def template(kind: str, axes: Sequence[Axis], title: str = "") -> str:
    """Return the text of a vehicle file for a domain of those axes.

    Parameters
    ----------
    kind : str
        Of the link.
    axes : sequence of Axis
    title : str

    Raises
    ------
    UnknownNameError
        There is no such kind of link.
    """
    link = LINKS.get(kind)
    parts = [
        f"format = 1\ntitle = {json.dumps(title)}",
        _table("link", "how the robot is reached", link, f'kind = "{kind}"'),
        *([_frame(axes)] if all(axis.unit == "m" for axis in axes) else []),
        _table("watch", "how long it is waited for", Watch),
        _table("battery", "what its battery reports mean", Battery),
        _table("reports", "what of its reports is believed", Reports),
        *([] if link.reports else [_table("arrival", "when it is there", Arrival)]),
    ]
    return "\n\n".join(parts) + "\n"


def _table(name: str, what: str, settings: Any, *first: str) -> str:
    """Return a table with all settings of a dataclass at their defaults, each under what it means."""
    told, before = _meanings(settings), ""
    lines = [f"[{name}]   # {what}", *first]
    for one in fields(settings):
        default = one.default if one.default is not MISSING else None
        meaning, last = told.get(one.name, one.name), before
        before = meaning
        if meaning != last:
            lines += textwrap.wrap(meaning, _WIDTH, initial_indent="# ", subsequent_indent="# ")
        set_ = isinstance(default, str | bool | int) or (
            isinstance(default, float) and math.isfinite(default)
        )
        lines.append(f"{one.name} = {json.dumps(default)}" if set_ else f"# {one.name} =")
    return "\n".join(lines)


def _meanings(settings: Any) -> dict[str, str]:
    """Return what each parameter of a class means, by its docstring and those of its bases."""
    found: dict[str, str] = {}
    for cls in reversed(settings.__mro__):
        for names, text in _PARAMETER.findall(inspect.cleandoc(cls.__doc__ or "") + "\n"):
            found |= {name.strip(): " ".join(text.split()).replace("``", '"') for name in names.split(",")}
    return found


def _frame(axes: Sequence[Axis]) -> str:
    """Return where the axes lead, as far as their names tell; the user puts in the origin."""
    lines = [
        "[frame]   # where the domain lies; nothing of it is needed by a robot that is told axes",
        "# origin = { latitude = 47.31, longitude = 8.58, altitude = 406 }   # of the domain's zero",
        "# degrees clockwise from north: where the axis `along` leads",
        "bearing = 90",
    ]
    level = iter(("along", "left"))
    for axis in axes:
        upward = axis.name.lower() in _HEIGHTS
        way = "depth" if is_depth(axis.name) else "height" if upward else next(level, "height")
        lines.append(f"{way} = {json.dumps(axis.name)}")
    return "\n".join(lines)

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

from fieldbo.domain.axes import Axis
from fieldbo.domain.frame import Frame, example
from fieldbo.vehicles.kinds import LINKS
from fieldbo.vehicles.remote.arrival import Arrival
from fieldbo.vehicles.remote.settings import Battery, Reports, Watch

_PARAMETER = re.compile(r"^([\w, ]+) : .*\n((?:    .*\n?)+)", re.MULTILINE)
_WIDTH = 100
_STREAMED = {"accuracy": Arrival().within}
"""No robot that streams ends exactly where it was to go."""


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
        *([] if Frame.usual(axes) is None else [_frame(axes)]),
        _table("watch", "how long it is waited for", Watch),
        _table("battery", "what its battery reports mean", Battery),
        _table("reports", "what of its reports is believed", Reports, **({} if link.reports else _STREAMED)),
        *([] if link.reports else [_table("arrival", "when it is there", Arrival)]),
    ]
    return "\n\n".join(parts) + "\n"


def _table(name: str, what: str, settings: Any, *first: str, **instead: float) -> str:
    """Return a table with a dataclass's settings, each under what it means: at its default, or `instead`."""
    told, before = _meanings(settings), ""
    lines = [f"[{name}]   # {what}", *first]
    for one in fields(settings):
        default = instead.get(one.name, None if one.default is MISSING else one.default)
        meaning, last = told.get(one.name, before), before
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
    table, origin, *rest = example(axes).splitlines()
    return "\n".join(
        [
            f"{table}   # where the domain lies; a robot outdoors needs the origin, the place of its zero",
            f"# {origin}",
            "# where the axis named under `along` leads, in degrees clockwise from north",
            *rest,
        ]
    )

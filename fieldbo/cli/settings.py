"""``--set table.key=value`` and its short forms, as overrides of a mission."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import Any

from fieldbo.errors import InputError


def overrides(
    pairs: Sequence[str] = (), *, seed: int | None = None, battery: str | None = None
) -> dict[str, Any]:
    """Return nested tables from ``table.key=value`` texts; values as in TOML, bare words are text.

    Raises
    ------
    InputError
        A text has no key or no ``=``.

    Examples
    --------
    >>> overrides(["question.threshold=2", "policy.kind=gchk"])
    {'question': {'threshold': 2}, 'policy': {'kind': 'gchk'}}
    """
    out: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        path = [p.strip() for p in key.split(".")]
        if not equals or not all(path):
            raise InputError(
                f"--set {pair}",
                expected="table.key=value",
                where="--set",
                fix="for example --set question.threshold=2",
            )
        table = out
        for name in path[:-1]:
            table = table.setdefault(name, {})
            if not isinstance(table, dict):
                raise InputError(
                    f"--set {pair}", expected=f"{name} to be a table; it was set to a value", where="--set"
                )
        table[path[-1]] = _value(text.strip())
    if seed is not None:
        out["seed"] = seed
    if battery is not None:
        agent = out.setdefault("agent", {})
        if not isinstance(agent, dict):
            raise InputError(f"--set agent={agent}", expected="agent to be a table", where="--set")
        agent["battery"] = _value(battery)
    return out


def _value(text: str) -> Any:
    try:
        told = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return told["value"] if len(told) == 1 else text

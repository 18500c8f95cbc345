"""Turn ``--set table.key=value`` and its short forms into overrides of a mission."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import Any

from fieldbo.errors import InputError


def overrides(
    pairs: Sequence[str] = (),
    *,
    seed: int | None = None,
    battery: str | None = None,
    prior: str | None = None,
) -> dict[str, Any]:
    """Return nested tables from ``table.key=value`` pairs.

    Parameters
    ----------
    pairs : sequence of str
        Values are written as in TOML; bare words are text.
    seed : int, optional
        Sets ``seed``.
    battery : str, optional
        Sets ``agent.battery``.
    prior : str, optional
        Sets ``prior.readings``.

    Raises
    ------
    InputError
        A pair has no key or no ``=``, sets a key of something that is not a table, or sets what
        `prior` sets; or `prior` is empty.

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
                f"--set {pair!r} is missing a key or '='" if pair else "--set is empty",
                expected="table.key=value",
                where="--set",
                fix="write it as in --set question.threshold=2",
            )
        table = out
        for name in path[:-1]:
            table = table.setdefault(name, {})
            if not isinstance(table, dict):
                raise InputError(
                    f"--set {key.strip()} conflicts with an earlier --set {name}=...",
                    expected=f"{name} as a table",
                    where="--set",
                    fix="remove one of the two",
                )
        table[path[-1]] = _value(text.strip())
    if seed is not None:
        out["seed"] = seed
    if battery is not None:
        _table(out, "agent", "--battery")["battery"] = _value(battery)
    if prior is not None:
        table = _table(out, "prior", "--prior")
        if "readings" in table:
            raise InputError(
                f"both --prior {prior} and --set prior.readings={table['readings']} were given",
                expected="one of the two",
                where="--prior",
            )
        if not prior.strip():
            raise InputError(
                "--prior is empty", expected="a CSV, a run folder or the name of a run", where="--prior"
            )
        table["readings"] = prior
    return out


def _table(out: dict[str, Any], name: str, option: str) -> dict[str, Any]:
    """Return a table of the overrides, which an option adds to."""
    table = out.setdefault(name, {})
    if not isinstance(table, dict):
        raise InputError(
            f"{option} conflicts with --set {name}={table}", expected=f"{name} as a table", where="--set"
        )
    return table


def _value(text: str) -> Any:
    try:
        parsed = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):  # not TOML, or a number or a nesting that no file may have
        return text
    return parsed["value"] if len(parsed) == 1 else text

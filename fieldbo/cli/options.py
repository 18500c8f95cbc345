"""What commands share: their options, the overrides that these make, and the examples in their help."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from fieldbo.errors import InputError

DOCUMENTATION = "Documentation: *docs/* in the source tree, or `make docs`"

Command = TypeVar("Command", bound=Callable[..., object])

Run = Annotated[
    Path,
    typer.Argument(
        help="A run folder, the *run.sqlite* in it, or the name of a run in *runs/*.", metavar="RUN"
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", help="Override a key of the mission; repeatable.", metavar="TABLE.KEY=VALUE"),
]
Policy = Annotated[
    str | None,
    typer.Option(
        "--policy",
        help="Policy in place of the mission's own: its kind, and settings after commas, as in "
        "*gchk,per_cost=true*.",
        metavar="KIND",
    ),
]
Prior = Annotated[
    str | None, typer.Option(help="Earlier readings to begin with, as for *run*.", metavar="FILE")
]
Draw = Annotated[
    int,
    typer.Option(help="Which random field to use, counted from 0, if the world draws its field at random."),
]
CPUS = os.cpu_count() or 1

Jobs = Annotated[int, typer.Option(min=1, help="Number of parallel runs.")]
Format = Annotated[
    str | None,
    typer.Option(
        "--format", help="Format of the pictures: *png*, *svg* or *pdf*; by default *png*.", metavar="FORMAT"
    ),
]
Width = Annotated[
    str,
    typer.Option(
        "--width",
        help="Width of the pictures: *screen*, or *column* (89 mm) or *page* (183 mm) for a paper.",
        metavar="WIDTH",
    ),
]
Style = Annotated[
    str | None, typer.Option(help="Style sheet of matplotlib: a name, or a file.", metavar="STYLE")
]


def examples(text: str) -> Callable[[Command], Command]:
    """Return a decorator that gives a command the text with which its help ends."""

    def keep(command: Command) -> Command:
        command.examples = text  # type: ignore[attr-defined]
        return command

    return keep


def add(app: typer.Typer, *commands: Callable[..., object]) -> None:
    """Add commands, each under the name of its function."""
    for command in commands:
        negative = {"ignore_unknown_options": command.__name__ == "correct"}  # -3.5 is a value, not an option
        epilog = f"{getattr(command, 'examples', '')}\n\n{DOCUMENTATION}"
        app.command(command.__name__, epilog=epilog, context_settings=negative)(command)


def check_pictures(format: str | None, width: str) -> tuple[str | None, str]:
    """Return format and width; raise an `InputError` if there is no such format or width."""
    from fieldbo.results import plot

    plot.check(format, width, ("--format", "--width"))
    return format, width


def overrides(
    pairs: Sequence[str] = (),
    *,
    seed: int | None = None,
    battery: str | None = None,
    prior: str | None = None,
    policy: str | None = None,
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
    policy : str, optional
        Sets ``policy``: a kind, and settings after commas.

    Raises
    ------
    InputError
        A pair has no key or no ``=``, sets a key of something that is not a table, or sets what `prior` or
        `policy` sets; or `prior` is empty.

    Examples
    --------
    >>> overrides(["question.threshold=2", "policy.kind=gchk"])
    {'question': {'threshold': 2}, 'policy': {'kind': 'gchk'}}
    """
    from fieldbo.mission.files import toml_value

    out: dict[str, Any] = {}
    for pair in pairs:
        _set(out, pair)
    if seed is not None:
        out["seed"] = seed
    if battery is not None:
        _table(out, "agent", "--battery")["battery"] = toml_value(battery)
    if policy is not None:
        from fieldbo.mission.load import with_policy

        out = with_policy(policy, out)
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


def _set(out: dict[str, Any], pair: str) -> None:
    """Set the key of a ``table.key=value`` pair in nested tables."""
    from fieldbo.mission.files import toml_value
    from fieldbo.mission.schema import holds_text

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
    value = toml_value(text.strip())
    table[path[-1]] = value if isinstance(value, str) or not holds_text(path) else text.strip()


def _table(out: dict[str, Any], name: str, option: str) -> dict[str, Any]:
    """Return a table of the overrides, which an option adds to."""
    table = out.setdefault(name, {})
    if not isinstance(table, dict):
        raise InputError(
            f"{option} conflicts with --set {name}={table}", expected=f"{name} as a table", where="--set"
        )
    return table

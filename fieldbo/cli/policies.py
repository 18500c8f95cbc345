"""``fieldbo policies``: the rules that can be named, and what they answer."""

from __future__ import annotations


def policies() -> None:
    """List the policies, the built-in ones and those of installed packages, and the questions they answer."""
    from rich.markup import escape
    from rich.table import Table

    from fieldbo.cli.console import console
    from fieldbo.policies import POLICIES

    table = Table(box=None, pad_edge=False)
    table.add_column("policy", no_wrap=True)
    table.add_column("what it does")
    table.add_column("answers")
    for name in POLICIES.names():
        kind = POLICIES.get(name)
        said = (kind.__doc__ or "").strip().split("\n")[0]
        table.add_row(escape(name), escape(said), ", ".join(_QUESTIONS[q.__name__] for q in kind.answers))
    console().print(table)


_QUESTIONS = {
    "LevelSet": "level-set",
    "ShareOfMaximum": "level-set of the maximum",
    "Optimum": "optimum",
}

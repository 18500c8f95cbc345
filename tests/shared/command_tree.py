"""The commands and options of the command line, made once for all the cases that call it."""

from functools import cache

import pytest
import typer.main
import typer.testing


@pytest.fixture(scope="session", autouse=True)
def command_tree():
    """Keep the tree that typer otherwise makes anew for each call, which takes longer than most commands."""
    made = cache(typer.main.get_command)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", made)
        patch.setattr(typer.testing, "_get_command", made)
        yield

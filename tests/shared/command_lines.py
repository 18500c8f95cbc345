"""Command lines of the documentation, taken apart without running them."""

from functools import cache

import click
import typer

from fieldbo import cli


@cache
def program():
    return typer.main.get_command(cli.app)


def parsed(words):
    """Return the parameters of a command line; raise `click.ClickException` if it has an unknown one."""
    command, context, rest = program(), None, list(words)
    while True:
        context = command.make_context(command.name, rest, parent=context)
        if not isinstance(command, click.Group):
            return context.params
        _, command, rest = command.resolve_command(context, [*context._protected_args, *context.args])

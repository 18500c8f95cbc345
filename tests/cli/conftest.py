"""The command line is parsed by one tree of commands."""

from command_tree import command_tree

__all__ = ["command_tree"]

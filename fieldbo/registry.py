"""Kinds of policy, field, cost and vehicle by name: the built-in ones, and those of installed packages.

A package adds a kind by an entry point in the group ``fieldbo.policies``, ``fieldbo.fields``,
``fieldbo.costs`` or ``fieldbo.vehicles``. Nothing is imported before it is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from fieldbo.errors import UnknownNameError


class Registry:
    """The kinds of one group.

    Parameters
    ----------
    what : str
        What one of them is called in an error, for example ``"policy"``.
    group : str
        The entry-point group.
    builtin : mapping of str to str
        Name to ``module:Class``.
    """

    def __init__(self, what: str, group: str, builtin: Mapping[str, str]) -> None:
        self.what, self.group, self._builtin = what, group, dict(builtin)

    def _installed(self) -> dict[str, EntryPoint]:
        return {e.name: e for e in entry_points(group=self.group) if e.name not in self._builtin}

    def names(self) -> list[str]:
        """Return all valid names, in order."""
        return sorted([*self._builtin, *self._installed()])

    def get(self, name: str, *, where: str | None = None) -> Any:
        """Return the class of that name.

        Raises
        ------
        UnknownNameError
            There is none.
        """
        if name in self._builtin:
            module, attribute = self._builtin[name].split(":")
            return getattr(import_module(module), attribute)
        installed = self._installed()
        if name not in installed:
            raise UnknownNameError.of(self.what, name, self.names(), where=where)
        return installed[name].load()

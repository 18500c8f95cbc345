"""One family of exceptions: each says what was expected, what came, where, and how to fix it."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from functools import partial
from textwrap import fill


class FieldboError(Exception):
    """Base of every error that fieldbo raises on purpose."""


class InputError(FieldboError, ValueError):
    """Something a person wrote (a file, a key, an argument) can't be used.

    Parameters
    ----------
    problem : str
        What is wrong, in one sentence, with what was received in it.
    expected : str, optional
        What would have been right.
    where : str, optional
        File, table and key, or line and column.
    fix : str, optional
        What to do about it.

    Examples
    --------
    >>> print(InputError("battery is -5", expected="a number above 0", where="lake.toml: agent.battery"))
    battery is -5
      expected: a number above 0
      where:    lake.toml: agent.battery
    """

    def __init__(
        self,
        problem: str,
        *,
        expected: str | None = None,
        where: str | None = None,
        fix: str | None = None,
    ) -> None:
        self.problem, self.expected, self.where, self.fix = problem, expected, where, fix
        parts = (("expected", expected), ("where", where), ("fix", fix))
        super().__init__("\n".join([problem, *(_indented(k, v) for k, v in parts if v)]))

    def at(self, where: str) -> InputError:
        """Return the same error with its place named, the outer place first."""
        place = where if self.where is None else f"{where}: {self.where}"
        return type(self)(self.problem, expected=self.expected, where=place, fix=self.fix)


class UnknownNameError(InputError):
    """A name that is not in the list of valid ones; the nearest valid one is suggested."""

    @classmethod
    def of(
        cls, what: str, name: object, valid: Iterable[str], *, where: str | None = None
    ) -> UnknownNameError:
        """Build the error from the wrong `name` and all `valid` names."""
        names = sorted(valid)
        near = nearest(str(name), names)
        return cls(
            f"unknown {what} {str(name)!r}",
            expected="one of " + ", ".join(names) if names else f"a {what}; none exist",
            where=where,
            fix=f"did you mean {near!r}?" if near else None,
        )


class ModelError(FieldboError, ArithmeticError):
    """The Gaussian process can't be computed; the message says what to change."""


class PolicyError(FieldboError, RuntimeError):
    """A policy broke its contract, for example by a site outside the domain."""


class RecordError(FieldboError, RuntimeError):
    """A record can't be read or written."""


class VehicleError(FieldboError, RuntimeError):
    """A vehicle can't be reached or broke its contract."""


def _indented(label: str, text: str) -> str:
    deep = " " * 12
    filled = partial(fill, width=100, subsequent_indent=deep, break_long_words=False, break_on_hyphens=False)
    first, *others = text.split("\n")
    lines = [filled(first, initial_indent=f"  {label + ':':9} ")]
    return "\n".join([*lines, *(filled(line, initial_indent=deep) for line in others)])


def nearest(name: str, valid: Iterable[str]) -> str | None:
    """Return the valid name most like `name`, or the only one that it is a part of; None if none is alike.

    Examples
    --------
    >>> nearest("truvr", ["truvar", "random"]), nearest("normal", ["uniform", "truncated-normal"])
    ('truvar', 'truncated-normal')
    """
    by_lower = {v.lower(): v for v in valid}
    holding = [v for v in by_lower if name.lower() in v.split("-")]
    found = holding if len(holding) == 1 else get_close_matches(name.lower(), by_lower, n=1, cutoff=0.5)
    return by_lower[found[0]] if found else None

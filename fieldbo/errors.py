"""Exceptions. Each says what was received, what was expected, where, and how to fix it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from functools import partial
from textwrap import fill
from unicodedata import category

_MOST_NAMES = 50
"""Longest list of valid names that an error shows as a whole."""

_ALIKE = 0.5  # least similarity of the names that are shown if the list is longer

_LONGEST = 600
"""Longest problem or place that an error shows as a whole."""


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number of things.

    Examples
    --------
    >>> counted(1, "site"), counted(2, "site"), counted(2, "axis", "axes")
    ('1 site', '2 sites', '2 axes')
    """
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def printable(text: str) -> str:
    r"""Return text that a terminal shows as it is: anything that could control it becomes an escape sequence.

    Control characters, line breaks, and marks that change the direction of writing are escaped; letters of
    all languages, and all kinds of blanks, are not.

    Examples
    --------
    >>> printable("22 °C: too \x1b[2Jshallow")
    '22 °C: too \\x1b[2Jshallow'
    """
    return "".join(
        c if c.isprintable() or category(c) == "Zs" else c.encode("unicode_escape").decode() for c in text
    )


class FieldboError(Exception):
    """Base of all errors that fieldbo raises on purpose."""


class InputError(FieldboError, ValueError):
    """Invalid input: a file, a key or an argument.

    Parameters
    ----------
    problem : str
        One sentence that includes what was received.
    expected : str, optional
        What would have been valid; one item per line.
    where : str, optional
        File, table and key, or line and column.
    fix : str, optional
        An instruction, for example ``set learn = true``.

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
        problem, where = _cut(problem), None if where is None else _cut(where)
        self.problem, self.expected, self.where, self.fix = problem, expected, where, fix
        parts = (("expected", expected), ("where", where), ("fix", fix))
        super().__init__("\n".join([problem, *(_indented(k, v) for k, v in parts if v)]))

    def at(self, where: str) -> InputError:
        """Return the same error with its place prefixed by `where`."""
        place = where if self.where is None else f"{where}: {self.where}"
        return type(self)(self.problem, expected=self.expected, where=place, fix=self.fix)


class SeveralInputsError(InputError):
    """Several pieces of invalid input, each with all that an `InputError` says.

    Parameters
    ----------
    errors : sequence of InputError
        At least two.
    """

    def __init__(self, errors: Sequence[InputError]) -> None:
        self.errors = tuple(errors)
        super().__init__("; ".join(error.problem for error in errors))
        self.args = ("\n".join([counted(len(errors), "problem"), *(f"- {error}" for error in errors)]),)

    def at(self, where: str) -> SeveralInputsError:
        """Return the same errors with their places prefixed by `where`."""
        return type(self)([error.at(where) for error in self.errors])


def raise_all(errors: Sequence[InputError]) -> None:
    """Raise the errors as one; nothing if there are none.

    Examples
    --------
    >>> try:
    ...     raise_all([InputError("battery is -5"), InputError("speed is 0", fix="raise it")])
    ... except InputError as error:
    ...     print(error)
    2 problems
    - battery is -5
    - speed is 0
      fix:      raise it
    """
    if len(errors) > 1:
        raise SeveralInputsError(errors)
    for error in errors:
        raise error


def errors_of(*checks: Callable[[], object]) -> list[InputError]:
    """Return the errors that checks raise; those of a check that raises several count one by one.

    Examples
    --------
    >>> [str(error) for error in errors_of(lambda: None, lambda: raise_all([InputError("speed is 0")]))]
    ['speed is 0']
    """
    errors = list[InputError]()
    for check in checks:
        try:
            check()
        except SeveralInputsError as several:
            errors += several.errors
        except InputError as error:
            errors.append(error)
    return errors


@contextmanager
def at(where: str) -> Iterator[None]:
    """Prefix the places of errors that the block raises with `where`.

    Examples
    --------
    >>> with at("lake.toml"):
    ...     raise InputError("battery is -5", where="agent.battery")
    Traceback (most recent call last):
        ...
    fieldbo.errors.InputError: battery is -5
      where:    lake.toml: agent.battery
    """
    try:
        yield
    except InputError as error:
        raise error.at(where) from None


class UnknownNameError(InputError):
    """An unknown name; the error lists the valid names and suggests the nearest one."""

    @classmethod
    def of(
        cls,
        what: str,
        name: object,
        valid: Iterable[str],
        *,
        where: str | None = None,
        listed_by: str | None = None,
    ) -> UnknownNameError:
        """Return the error for a wrong `name` of a `what`, given all `valid` names.

        `listed_by` is the command that lists them.
        """
        names = sorted(valid)
        near = nearest(str(name), names)
        expected = f"a {what}; there is none yet"
        if names:
            expected = "one of " + ", ".join(names)
        if len(names) > _MOST_NAMES:
            alike = _alike(str(name), names)
            expected = f"one of {len(names)} names"
            if alike:
                expected += f", such as {', '.join(alike)}"
            elif listed_by:
                expected += f"; {listed_by} lists them"
        return cls(
            f"unknown {what} {str(name)!r}",
            expected=expected,
            where=where,
            fix=f"did you mean {near!r}?" if near else None,
        )


class ModelError(FieldboError, ArithmeticError):
    """The Gaussian process can't be computed; the message says what to change."""


class PolicyError(FieldboError, RuntimeError):
    """A policy violated its contract, for example by proposing a site outside the domain."""


class RecordError(FieldboError, RuntimeError):
    """A record can't be read or written."""


class VehicleError(FieldboError, RuntimeError):
    """A vehicle can't be reached, or violated its contract."""


def _cut(text: str) -> str:
    """Return a text without its middle if it is too long to read.

    Examples
    --------
    >>> len(_cut("x" * 5000))
    605
    """
    if len(text) <= _LONGEST:
        return text
    half = _LONGEST // 2
    return f"{text[:half]} ... {text[-half:]}"


_QUOTED = r"""(?<!\w)(?:'[^'\n]{1,120}'|"[^"\n]{1,120}")(?!\w)"""
_OPTION = rf"--[a-z][a-z-]* (?:{_QUOTED}|[^\s-]\S*)"
_COMMAND = re.compile(rf"{_OPTION}(?: {_OPTION})*|{_QUOTED}")
_KEPT = "\ue000"
"""Stands for a space at which a line must not end."""


def _indented(label: str, text: str) -> str:
    """Return a part of an error with its label, in lines that break no quotation and no command in two."""
    if label == "fix":
        text = _COMMAND.sub(lambda found: found[0].replace(" ", _KEPT), text)
    deep = " " * 12
    filled = partial(fill, width=100, subsequent_indent=deep, break_long_words=False, break_on_hyphens=False)
    first, *others = text.split("\n")
    lines = [filled(first, initial_indent=f"  {label + ':':9} ")]
    lines += [filled(line, initial_indent=deep) for line in others]
    return "\n".join(lines).replace(_KEPT, " ")


def _alike(name: str, names: Iterable[str]) -> list[str]:
    """Return up to five names that resemble `name` or contain it, the most similar first.

    Examples
    --------
    >>> _alike("Lake", ["gp-lake", "wall", "lake-tour", "lke"])
    ['lke', 'gp-lake', 'lake-tour']
    """
    name = name.lower()
    ranked = get_close_matches(name, [*names], 1000, 0.0)
    similar = {*get_close_matches(name, ranked, 5, _ALIKE)}
    return [n for n in ranked if n in similar or (name and name in n.lower())][:5]


def nearest(name: str, valid: Iterable[str]) -> str | None:
    """Return the valid name most similar to `name`, or the only one that has it as a part; None if none is.

    Examples
    --------
    >>> nearest("truvr", ["truvar", "random"]), nearest("normal", ["uniform", "truncated-normal"])
    ('truvar', 'truncated-normal')
    """
    by_lower = {v.lower(): v for v in valid}
    holding = [v for v in by_lower if name.lower() in v.split("-")]
    similar = holding if len(holding) == 1 else get_close_matches(name.lower(), by_lower, n=1, cutoff=0.5)
    return by_lower[similar[0]] if similar else None


class RefusedError(FieldboError):
    """A run refused a command; the message says why. Nothing changed."""


class UnconfirmedError(FieldboError):
    """A run has not confirmed a command in time; it obeys it as soon as it can."""

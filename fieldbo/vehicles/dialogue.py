"""A dialogue at the keyboard: questions, what can be typed at each, and numbers as people write them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from fieldbo.errors import InputError

T = TypeVar("T")

HELP = (
    "Press Enter to accept the value in [brackets]. Type 'skip' to skip a site, 'undo' to take back your "
    "last answer, 'help' for everything you can type. Type 'quit' or press Ctrl-C to stop; everything that "
    "you have entered is kept."
)

COMMANDS = """\
    Enter            accept the value in [brackets]
    24.7 or 24,7     a number; several: '2.5, 1' or, with decimal commas, '2,5; 1'
    skip             skip this site; it costs nothing, and is not proposed again
    failed           (as a reading) the reading failed; you still enter its cost, which counts
    undo             take back your last answer; at the first question, the last reading
    correct N VALUE  the reading of order N was VALUE, or 'failed'; N is the 3 of lake-1/3
    help or ?        show this list
    quit or Ctrl-C   stop; everything that you have entered is kept"""

_QUIT = ("quit", "q", "exit")
"""Words that stop the run, as Ctrl-C does."""


class Undo(Exception):  # noqa: N818
    """'undo' was typed."""


class Correct(Exception):  # noqa: N818
    """'correct' was typed, followed by an order and a value."""

    def __init__(self, order: str, value: str) -> None:
        super().__init__(order, value)
        self.order, self.value = order, value


class Dialogue:
    """Asks questions until the answers are valid, and remembers the answers of an order until `forget`.

    If an order is interrupted by 'undo' or 'correct', its questions are asked again from the beginning: those
    that were answered return their answers at once.

    Parameters
    ----------
    read : Callable
        Asks for a line, like the built-in ``input``.
    write : Callable
        Prints a line.
    commands : str
        Further lines for the list that 'help' shows.
    """

    def __init__(
        self, read: Callable[[str], str], write: Callable[[str], object], commands: str = ""
    ) -> None:
        self._read, self.write = read, write
        self._commands = f"{COMMANDS}\n{commands}".rstrip()
        self._answers: dict[str, Any] = {}
        self._doubted: set[str] = set()

    def forget(self) -> None:
        """Forget all answers: the order is settled."""
        self._answers.clear()

    def take_back(self) -> bool:
        """Forget the last answer; return False if there is none."""
        if not self._answers:
            return False
        self._answers.popitem()
        return True

    def ask(
        self,
        prompt: str,
        parse: Callable[[str], T],
        shown: str | None = None,
        default: T | None = None,
    ) -> T | None:
        """Ask until the answer is valid, unless it was given before; None for 'skip'.

        Raises
        ------
        KeyboardInterrupt
            'quit' was typed.
        EOFError
            The input ended.
        Undo, Correct
            These words were typed.
        """
        if prompt not in self._answers:
            self._answers[prompt] = self._ask(prompt, parse, shown, default, self._command)
        answer: T | None = self._answers[prompt]
        return answer

    def ask_again(self, prompt: str, parse: Callable[[str], T], shown: str, default: T) -> T:
        """Ask for another answer than the one shown; 'skip' keeps it."""
        answer = self._ask(prompt, parse, shown, default, lambda words: None)
        return default if answer is None else answer

    def _ask(
        self,
        prompt: str,
        parse: Callable[[str], T],
        shown: str | None,
        default: T | None,
        command: Callable[[Sequence[str]], None],
    ) -> T | None:
        self._doubted.clear()
        while True:
            typed = self._line(f"{prompt} [{shown}]: " if shown is not None else f"{prompt}: ")
            if typed.lower() == "skip":
                return None
            if typed.lower() in ("help", "?"):
                self.write(self._commands)
                continue
            if not typed and default is not None:
                return default
            try:
                command(typed.split())
                return parse(typed)
            except InputError as error:
                self.write(f"    {error.problem}; {error.fix or 'try again'}")

    def _line(self, prompt: str) -> str:
        typed = self._read(prompt).strip()
        if typed.lower() in _QUIT:
            raise KeyboardInterrupt
        return typed

    @staticmethod
    def _command(words: Sequence[str]) -> None:
        match [word.lower() for word in words]:
            case ["undo"]:
                raise Undo
            case ["correct", order, value]:
                raise Correct(order, value)
            case ["correct", *_]:
                raise InputError(
                    "'correct' needs an order and a value", fix="type, for example, correct 3 24.7"
                )

    # -- numbers ---------------------------------------------------------------------------------------

    def doubt(self, problem: str) -> None:
        """Raise an `InputError` about an answer, but only the first time that it is given."""
        if problem not in self._doubted:
            self._doubted.add(problem)
            raise InputError(problem, fix="type it again to confirm")

    def agree(self, question: str, given: str) -> None:
        """Ask to confirm what was given.

        Raises
        ------
        InputError
            It is not confirmed.
        """
        if self._line(f"    {question} [y/N] ").lower() not in ("y", "yes"):
            raise InputError(f"{given} was discarded", fix="type it again")


def number_in(text: str) -> float:
    """Return the number in a text, with a decimal point or comma.

    Raises
    ------
    InputError
        It is not a finite number.

    Examples
    --------
    >>> number_in("24,7"), number_in("-1e3")
    (24.7, -1000.0)
    """
    try:
        number = float(text.replace(",", "."))
    except ValueError:
        raise InputError(f"{text!r} is not a number") from None
    if not math.isfinite(number):
        raise InputError(f"{text!r} is not a finite number")
    return number


def parts_of(text: str, names: Sequence[str], what: str = "coordinates") -> list[str]:
    """Return the numbers in a text, one per name.

    Blanks and semicolons separate numbers, and so do commas that are not between two digits. A comma between
    digits is a decimal one if blanks or semicolons separate the numbers, and separates them otherwise.

    Raises
    ------
    InputError
        There are more or fewer numbers than names.

    Examples
    --------
    >>> parts_of("2.5, 1", ["x", "y"]), parts_of("2,5 1,5", ["x", "y"]), parts_of("2,5", ["x", "y"])
    (['2.5', '1'], ['2,5', '1,5'], ['2', '5'])
    """
    parts = re.sub(r"(?<!\d),|,(?!\d)|;", " ", text).split()
    if len(parts) == 1 and len(names) > 1:
        parts = parts[0].split(",")
    if len(parts) != len(names):
        raise InputError(f"enter {len(names)} {what} ({', '.join(names)}), not {len(parts)}")
    return parts

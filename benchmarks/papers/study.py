"""A study: the same repeats for every rule in every world, each run one line of a CSV file.

Each line is on disk as soon as its run is done; an interrupted study continues where it stopped.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import json
import os
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import astuple, dataclass, fields
from multiprocessing import get_context
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from fieldbo import load_mission
from fieldbo.errors import InputError
from fieldbo.mission.files import write_whole
from fieldbo.record.store import digests
from fieldbo.results.tables import table


def _number(text: str) -> float:
    """Return a number of a file, in which an empty cell stands for NaN."""
    return float(text or "nan")


_KINDS = {"str": str, "int": int, "float": _number}


@dataclass(frozen=True)
class Cell:
    """One run of a study: repeats of the same number start alike, whatever the rule."""

    world: str
    rule: str
    repeat: int


@dataclass(frozen=True)
class Line:
    """What came of a run. A study's own lines have its figures, then ``seconds`` and ``digest``.

    Attributes
    ----------
    figures : tuple of str
        Names of the columns that tables are made of.
    """

    figures: ClassVar[tuple[str, ...]]

    world: str
    rule: str
    repeat: int

    @property
    def cell(self) -> Cell:
        """Which run it was."""
        return Cell(self.world, self.rule, self.repeat)

    @property
    def numbers(self) -> np.ndarray:
        """Its figures (k,)."""
        return np.array([getattr(self, name) for name in self.figures], dtype=float)

    @classmethod
    def columns(cls) -> tuple[str, ...]:
        """Return the names of the file's columns."""
        return tuple(f.name for f in fields(cls))

    @classmethod
    def of_row(cls, row: Mapping[str, str]) -> Self:
        """Return what a line of the file says."""
        return cls(**{f.name: _KINDS[str(f.type)](row[f.name]) for f in fields(cls)})

    @classmethod
    def all_of(cls, file: Path) -> list[Self]:
        """Return what is in a file; a last line that was cut short is left out.

        Raises
        ------
        InputError
            It is another kind of file.
        """
        if not file.exists():
            return []
        text = file.read_text(encoding="utf-8")
        reader = csv.DictReader(io.StringIO(text[: text.rfind("\n") + 1]))
        if tuple(reader.fieldnames or ()) != cls.columns():
            raise InputError(f"{file} is no table of this study", expected="one that it wrote", where="--out")
        return [cls.of_row(row) for row in reader]


def digest(mission: str, overrides: Mapping[str, Any], **conditions: Any) -> str:
    """Return a digest of the settings of a mission, of its world, and of a study's own conditions.

    Titles, comments, defaults and the version of fieldbo do not count, so that a study can be continued with
    the release that ships its file.
    """
    loaded = load_mission(mission, overrides)
    assert loaded.folder is not None
    world = tomllib.loads((loaded.folder / "world.toml").read_text(encoding="utf-8"))
    data = {name: mark for name, mark in digests(loaded.folder).items() if name != "world.toml"}
    parts = [{k: v for k, v in toml.items() if k != "title"} for toml in (loaded.settings, world)]
    return digest_of(*parts, data, conditions)


def digest_of(*parts: Any) -> str:
    """Return a digest of plain data."""
    text = json.dumps([*parts], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def study(
    cells: Sequence[Cell],
    file: Path,
    jobs: int,
    kind: type[Line],
    measured: Callable[[Cell], Line],
    marked: Callable[[Cell], str],
    on_run: Callable[[Line, int], object] = lambda line, left: None,
) -> None:
    """Run the cells that the file does not hold yet.

    Parameters
    ----------
    cells : sequence of Cell
    file : Path
    jobs : int
        Processes at the same time, of one thread each.
    kind : type of Line
        The study's own.
    measured : Callable
        Runs a cell, in a process of its own; a function of a module, or a partial of one.
    marked : Callable
        A digest of what decides a cell's runs, apart from the repeat.
    on_run : Callable
        Called with (what came of a run, how many are still to come).

    Raises
    ------
    InputError
        The file holds runs of a cell under other settings.
    """
    found = kind.all_of(file)
    done = {line.cell: line.digest for line in found}
    marks = {(c.world, c.rule): marked(c) for c in cells if c.repeat == cells[0].repeat}
    for cell in cells:
        if done.get(cell, marks[cell.world, cell.rule]) != marks[cell.world, cell.rule]:
            raise InputError(
                f"{file} holds runs of {cell.rule} in {cell.world} with other settings",
                expected="the same missions as before",
                where="--out",
                fix="choose another file, or delete this one",
            )
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, table(kind.columns(), [astuple(line) for line in found]))  # without what was cut short
    todo = [c for c in cells if c not in done]
    with (
        file.open("ab", buffering=0) as out,
        ProcessPoolExecutor(min(jobs, len(todo)) or 1, get_context("spawn")) as pool,
    ):
        try:
            futures = [pool.submit(measured, c) for c in todo]
            for left, future in zip(range(len(todo) - 1, -1, -1), as_completed(futures), strict=True):
                line = future.result()
                out.write(table(kind.columns(), [astuple(line)]).split(b"\n", 1)[1])
                os.fsync(out.fileno())
                on_run(line, left)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


# -- tables ----------------------------------------------------------------------------------------------


def by_rule(
    found: Iterable[Line], worlds: Iterable[str], rules: Sequence[str]
) -> dict[tuple[str, str], dict[int, np.ndarray]]:
    """Return the figures (k,) of each repeat, by world and rule, both in their order."""
    every: dict[tuple[str, str], dict[int, np.ndarray]] = {(w, r): {} for w in worlds for r in rules}
    for line in found:
        every[line.world, line.rule][line.repeat] = line.numbers
    return {pair: repeats for pair, repeats in every.items() if repeats}


def mean_and_error(values: Iterable[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean of figures, (k,), and its standard error; NaN for that of a single one."""
    stacked = np.array([*values])
    n = len(stacked)
    error = stacked.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.full(stacked.shape[1], np.nan)
    return stacked.mean(axis=0), error


def in_digits(mean: float, error: float, sign: str = "") -> str:
    """Return a mean and its error to the second digit of the error; `sign` "+": with its sign always.

    A mean without an error stands alone.

    Examples
    --------
    >>> in_digits(12.3456, 0.234)
    '12.35 ± 0.23'
    """
    if not np.isfinite(error):
        return f"{mean:{sign}.4g}"
    digits = max(0, 1 - int(np.floor(np.log10(error)))) if error > 0 else 3
    return f"{mean:{sign}.{digits}f} ± {error:.{digits}f}"


def beside(
    every: Mapping[tuple[str, str], Mapping[int, np.ndarray]], ours: Sequence[str]
) -> Iterator[tuple[str, str, str, np.ndarray, np.ndarray]]:
    """Yield (world, our rule, rival, mean, error) of differences within the repeats that both have done."""
    for (world, rival), taken in every.items():
        for own in ours:
            mine = every.get((world, own), {})
            both = [figures - taken[repeat] for repeat, figures in mine.items() if repeat in taken]
            if rival != own and both:
                yield world, own, rival, *mean_and_error(both)


def differences(
    every: Mapping[tuple[str, str], Mapping[int, np.ndarray]], ours: str, heads: Sequence[str]
) -> list[str]:
    """Return the lines of a table: our rule less each rival, in the first figures, as many as heads."""
    lines = [f"| world | rival | {' | '.join(heads)} |", "|---" * (len(heads) + 2) + "|"]
    for world, _, rival, mean, error in beside(every, [ours]):
        pairs = list(zip(mean, error, strict=True))[: len(heads)]
        lines.append(f"| {world} | {rival} | {' | '.join(in_digits(m, e, '+') for m, e in pairs)} |")
    return lines


# -- the command line ------------------------------------------------------------------------------------


def _count(text: str) -> int:
    """Return a number of things, at least one, from the text of an option."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def options(
    what: str,
    out: Path,
    repeats: int,
    worlds: Iterable[str],
    rules: Iterable[str],
    first: int | None = None,
) -> argparse.ArgumentParser:
    """Return a parser of what all studies take; `first` is the first draw, if it may be chosen."""
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("--repeats", type=_count, default=repeats, metavar="N", help=f"(default: {repeats})")
    parser.add_argument("--jobs", type=_count, default=2, metavar="N", help="processes (default: 2)")
    parser.add_argument("--out", type=Path, default=out, metavar="FILE", help=f"(default: {out})")
    parser.add_argument("--only", nargs="+", choices=[*worlds], default=[*worlds], help="these worlds")
    parser.add_argument("--rules", nargs="+", choices=[*rules], help="these rules")
    parser.add_argument("--steps", type=_count, metavar="N", help="after the design (default: the missions')")
    parser.add_argument(
        "--table-only", action="store_true", help="print what the file holds, and run nothing"
    )
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw it there, too")
    if first is not None:
        parser.add_argument("--first", type=int, default=first, metavar="N", help=f"(default: {first})")
    return parser


def cells_of(arguments: argparse.Namespace, rules: Iterable[str]) -> list[Cell]:
    """Return the cells of draws from the first one on, draw by draw, unless the options name other rules."""
    repeats = range(arguments.first, arguments.first + arguments.repeats)
    return [Cell(w, rule, k) for k in repeats for w in arguments.only for rule in arguments.rules or rules]


def carried_out(
    arguments: argparse.Namespace,
    cells: Sequence[Cell],
    kind: type[Line],
    measured: Callable[[Cell], Line],
    marked: Callable[[Cell], str],
) -> list[Line]:
    """Run what is still missing unless the table alone is wanted; return what the file then holds of it."""

    def report(line: Line, left: int) -> None:
        seconds = line.seconds
        print(f"{line.cell}: {seconds:.0f} s; {left} to come", file=sys.stderr, flush=True)

    os.environ["NUMBA_NUM_THREADS"] = "1"  # inherited by the processes, which share the cores already
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    try:
        if not arguments.table_only:
            study(cells, arguments.out, arguments.jobs, kind, measured, marked, report)
        wanted = {(c.world, c.rule) for c in cells}
        found = [line for line in kind.all_of(arguments.out) if (line.world, line.rule) in wanted]
    except InputError as error:
        sys.exit(str(error))
    if not found:
        sys.exit(f"{arguments.out} holds nothing of {', '.join(arguments.only)} yet")
    return found

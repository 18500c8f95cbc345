"""The table of trials in an advice's folder: one line per trial, on disk as soon as the trial is done."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.errors import InputError
from fieldbo.mission.files import write_whole
from fieldbo.results.tables import table
from fieldbo.runs.advice.trial import Task, Trial, tried
from fieldbo.runs.comparison_table import held
from fieldbo.runs.parallel import run_all

RUNS = "runs.csv"
"""Name of the table in the folder."""

COLUMNS = (
    *("policy", "field", "battery", "until", "digest", "end_reason", "seconds", "share"),
    *("cost", "need", "score"),
)

_WORTH_WORKERS_S = 10.0
"""Duration of trials, one after the other, from which on further processes are started for them."""

_Key = tuple[str, int, float, float | None]


class Trials:
    """Runs trials, and keeps them; those that the table already holds are not repeated.

    Use `opened`, which holds the right to write to the table.

    Attributes
    ----------
    file : Path
    marks : mapping of str to str
        By policy: digests of what all trials share and of the policy's settings, joined by a hyphen.
    jobs : int
    on_trial : Callable
        Called with (finished, total) of the present batch after each trial.
    """

    def __init__(
        self,
        file: Path,
        marks: Mapping[str, str],
        jobs: int,
        on_trial: Callable[[int, int], object] = lambda finished, total: None,
    ) -> None:
        self.file, self.marks, self.jobs, self.on_trial = file, marks, jobs, on_trial
        self._done = {_key(trial): trial for trial in _begun(file, marks)}

    @classmethod
    @contextmanager
    def opened(cls, folder: Path, marks: Mapping[str, str], jobs: int) -> Iterator[Trials]:
        """Open the table of a folder, which is made if needed.

        Raises
        ------
        InputError
            The folder holds other trials, is not writable, or another process is writing to it.
        """
        with held(folder / RUNS):
            yield cls(folder / RUNS, marks, jobs)

    def of(self, policy: str) -> list[Trial]:
        """Return the trials of a policy that are done."""
        return [trial for trial in self._done.values() if trial.policy == policy]

    def missing(self, tasks: Sequence[Task]) -> list[Task]:
        """Return those tasks that have not been run."""
        return [task for task in tasks if _key(task) not in self._done]

    def run(self, tasks: Sequence[Task]) -> list[Trial]:
        """Return the trials of these tasks, in order; run those that are missing."""
        todo = self.missing(tasks)
        total, finished = len(tasks), len(tasks) - len(todo)
        self.on_trial(finished, total)
        with self.file.open("ab") as file:

            def keep(trial: Trial) -> None:
                nonlocal finished
                file.write(self._line(trial))
                file.flush()
                os.fsync(file.fileno())
                # As the file has it: continued advice must not differ from that without interruption.
                self._done[_key(trial)] = _trial(_row(trial, self.marks[trial.policy]))
                finished += 1
                self.on_trial(finished, total)

            run_all(tried, todo, self._workers(len(todo)), keep)
        return [self._done[_key(task)] for task in tasks]

    def _workers(self, todo: int) -> int:
        """Return the number of processes for some trials: one if others would hardly have begun by then."""
        typical = [trial.seconds for trial in self._done.values()]
        short = todo < 2 or (bool(typical) and todo * float(np.median(typical)) < _WORTH_WORKERS_S)
        return 1 if short else self.jobs

    def _line(self, trial: Trial) -> bytes:
        row = _row(trial, self.marks[trial.policy])
        return table(COLUMNS, [[row[name] for name in COLUMNS]]).split(b"\n", 1)[1]


def _key(of: Task | Trial) -> _Key:
    number = of.draw.number if isinstance(of, Task) else of.field
    return of.policy, number, of.battery, of.until


def _row(trial: Trial, mark: str) -> dict[str, str]:
    return {
        "policy": trial.policy,
        "field": str(trial.field),
        "battery": repr(trial.battery),
        "until": "" if trial.until is None else repr(trial.until),
        "digest": mark,
        "end_reason": trial.end_reason,
        "seconds": f"{trial.seconds:.2f}",
        "share": "" if math.isnan(trial.share) else f"{trial.share:.4g}",
        "cost": _text(trial.costs),
        "need": _text(trial.needs),
        "score": _text(trial.scores),
    }


def _text(numbers: Array) -> str:
    return " ".join(f"{x:.7g}" for x in numbers)


def _trial(row: Mapping[str, str]) -> Trial:
    """Return the trial of a line; raise a `ValueError` if there is none in it."""
    costs, needs, scores = (np.array(row[name].split(), dtype=float) for name in ("cost", "need", "score"))
    if not 0 < len(costs) == len(needs) == len(scores):
        raise ValueError
    return Trial(
        row["policy"],
        int(row["field"]),
        float(row["battery"]),
        float(row["until"]) if row["until"] else None,
        row["end_reason"],
        float(row["seconds"]),
        float(row["share"]) if row["share"] else float("nan"),
        costs,
        needs,
        scores,
    )


def _begun(file: Path, marks: Mapping[str, str]) -> list[Trial]:
    """Return the trials in a table, and remove a last line that was cut short; make the file if needed."""
    if not file.exists():
        write_whole(file, table(COLUMNS, []))
        return []
    if file.is_dir():
        raise _no_table(file)
    text = file.read_text(encoding="utf-8", errors="replace")
    whole = text[: text.rfind("\n") + 1]
    reader = csv.DictReader(io.StringIO(whole))
    if tuple(reader.fieldnames or ()) != COLUMNS:
        raise _no_table(file)
    try:
        rows = [*reader]
    except csv.Error:
        raise _no_table(file) from None
    trials, shared = [], next(iter(marks.values())).partition("-")[0]
    for line, row in enumerate(rows, 2):
        mark = row["digest"] or ""
        if marks.get(row["policy"], mark) != mark or mark.partition("-")[0] != shared:
            raise InputError(
                f"{file.parent} holds runs of {row['policy']} made for another mission or with different "
                "settings, or with a different version of fieldbo or of a plug-in",
                expected="the same mission, world, overrides, seed, version and plug-ins as in those runs, "
                "and the same day if earlier readings have dates",
                where="--out",
                fix="choose another folder with --out; this one stays as it is",
            )
        try:
            trials.append(_trial(row))
        except (TypeError, ValueError, AttributeError):
            raise InputError(
                "the line was not written by this command",
                expected=f"{len(COLUMNS)} values",
                where=f"{file}, line {line}",
                fix="delete the line",
            ) from None
    if whole != text:
        write_whole(file, whole.encode())
    return trials


def _no_table(file: Path) -> InputError:
    return InputError(
        f"{file} is not a table of this command, or of another version of fieldbo",
        expected="a new folder, or one that this command wrote",
        where="--out",
        fix="choose another folder with --out; this one stays as it is",
    )

"""The table of a comparison."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from fieldbo.errors import InputError
from fieldbo.mission.files import write_whole
from fieldbo.record.store import acquired, unlock
from fieldbo.results.curve import Step
from fieldbo.results.tables import table

KEY = ("mission", "draw", "start")
"""What names a run of a comparison."""

_FIRST = ("row", *KEY)
_OTHER = {
    "battery",
    "standing_still",
    "contradicted",
}  # here a battery is what it holds; the others are words
_STEP = tuple(name for name in Step.__dataclass_fields__ if name not in _OTHER)
COLUMNS = (*_FIRST, "policy", "world", "digest", *_STEP, "battery", "cost_unit", "end_reason", "place")


def read_table(file: Path) -> list[dict[str, str]]:
    """Return the rows of a comparison's table, without an incomplete last line.

    Raises
    ------
    InputError
        The file is not such a table, or has the columns of another version.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        text = ""
    except OSError as error:
        raise InputError(
            f"{file} can't be read: {error.strerror}", expected="a readable table", where="--out"
        ) from None
    reader = csv.DictReader(io.StringIO(text[: text.rfind("\n") + 1]))
    columns = tuple(reader.fieldnames or ())
    if columns != COLUMNS and columns[: len(_FIRST)] == _FIRST:
        raise _of_another_version(file, columns)
    if columns != COLUMNS:
        raise InputError(
            f"{file} is not the table of a comparison",
            expected="a new file, or one that this command wrote",
            where="--out",
        )
    rows = list(reader)
    for line, row in enumerate(rows, 2):
        if None in row or None in row.values() or not (row["draw"].isdigit() and row["start"].isdigit()):
            raise InputError(
                "the line was not written by this command",
                expected=f"{len(COLUMNS)} values, with integers in draw and start",
                where=f"{file}, line {line}",
                fix="delete the line",
            )
    return rows


def write_rows(out: Path, rows: Sequence[Mapping[str, str]]) -> None:
    """Write a table anew with these rows."""
    write_whole(out, table(COLUMNS, [[row[c] for c in COLUMNS] for row in rows]))


def _of_another_version(file: Path, columns: Sequence[str]) -> InputError:
    """Return the error for a table with the columns of another version."""
    theirs = [c for c in columns if c not in COLUMNS]
    ours = [c for c in COLUMNS if c not in columns]
    parts = [f"{label} {', '.join(c)}" for label, c in (("unknown", theirs), ("missing", ours)) if c]
    return InputError(
        f"{file} was written by another version of fieldbo; columns: {'; '.join(parts) or 'other order'}",
        expected="a new file, or one that this version wrote",
        where="--out",
        fix="choose another file with --out; this one will not be changed",
    )


@contextmanager
def held(out: Path) -> Iterator[None]:
    """Hold the exclusive right to write to a table; make its folder if needed.

    Raises
    ------
    InputError
        Another process holds it, or the folder is not writable.
    """
    from filelock import Timeout

    file = out.resolve()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        lock = acquired(file)
    except Timeout:
        raise InputError(
            f"{out} is being written by another process",
            expected="one process per table at a time",
            where="--out",
            fix="wait until it has ended, then repeat the command, which skips finished runs; or choose "
            "another file",
        ) from None
    except OSError as error:
        raise _unwritable(out, error) from None
    try:
        yield
    finally:
        unlock(file, lock)


def _unwritable(out: Path, error: OSError) -> InputError:
    return InputError(f"{out} can't be written: {error.strerror}", expected="a writable file", where="--out")


def finished_runs(out: Path, marks: Mapping[str, str]) -> set[tuple[str, int, int]]:
    """Return the keys of the finished runs in `out`, and remove unfinished ones; make the file if needed."""
    if not out.exists():
        try:
            write_whole(out, table(COLUMNS, []))
        except OSError as error:
            raise _unwritable(out, error) from None
        return set()
    rows = read_table(out)
    done = {tuple(r[k] for k in KEY) for r in rows if r["row"] == "run"}
    for row in rows:
        mark = marks.get(row["mission"])
        if mark is not None and row["digest"] != mark:
            raise InputError(
                f"{out} holds runs of {row['mission']} made with different settings, or with a "
                "different version of fieldbo or of a plug-in",
                expected="the same mission, world, overrides, version and plug-ins as in those runs, and the "
                "same day if earlier readings have dates",
                where="--out",
                fix="choose another file with --out; this one stays as it is",
            )
    write_rows(out, [r for r in rows if tuple(r[k] for k in KEY) in done])
    return {(mission, int(draw), int(start)) for mission, draw, start in done}

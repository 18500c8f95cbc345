"""The table of a comparison."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from fieldbo.errors import InputError
from fieldbo.mission.files import write_whole
from fieldbo.results.curve import Step
from fieldbo.results.tables import table

KEY = ("mission", "draw", "start")
"""What names a run of a comparison."""

_FIRST = ("row", *KEY)
_STEP = tuple(Step.__dataclass_fields__)
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


def finished_runs(out: Path, marks: Mapping[str, str]) -> set[tuple[str, int, int]]:
    """Return the keys of the finished runs in `out`, and remove unfinished ones; make the file if needed."""
    if not out.exists():
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            write_whole(out, table(COLUMNS, []))
        except OSError as error:
            raise InputError(
                f"{out} can't be written: {error.strerror}", expected="a writable file", where="--out"
            ) from None
        return set()
    rows = read_table(out)
    done = {tuple(r[k] for k in KEY) for r in rows if r["row"] == "run"}
    for row in rows:
        mark = marks.get(row["mission"])
        if mark is not None and row["digest"] != mark:
            raise InputError(
                f"{out} holds runs of {row['mission']} made with different settings, or with a "
                "different version of fieldbo",
                expected="the same mission, world, overrides and version as in those runs",
                where="--out",
                fix="choose another file with --out; this one stays as it is",
            )
    kept = [[r[c] for c in COLUMNS] for r in rows if tuple(r[k] for k in KEY) in done]
    write_whole(out, table(COLUMNS, kept))
    return {(mission, int(draw), int(start)) for mission, draw, start in done}

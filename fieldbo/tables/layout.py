"""Where the names, units and readings of a text stand among its rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fieldbo.errors import InputError, counted
from fieldbo.tables.cells import Holds, held, is_number, is_processing, is_width, may_be_unit, statistic_of
from fieldbo.tables.rows import Row
from fieldbo.tables.sheet import Sheet
from fieldbo.tables.units import clean_unit

_SAMPLE = 200
_FULL = 0.6
_DIGITS = "0123456789+-. "
_MOST_LISTED = 6
_MOST_STATISTICS, _FEW_SHORT = 0.8, 0.05
_COMPASS = ("n", "se")  # which may be the names of stations
_SIDES = {*"NSEW"}
_MOST_ALIKE = 3  # rows of the same statistic above the names; more are readings
_MEASURED = ("number", "time", "position")
_WHERE_OR_WHEN = ("lat", "lon", "time", "date", "depth", "easting", "northing", "zeit", "datum", "x", "y")
_BELOW: dict[str, Callable[[str], bool]] = {
    "units": may_be_unit,
    "widths": is_width,
    "processing": is_processing,
}


@dataclass(frozen=True)
class Pattern:
    """What the columns of the readings hold.

    Attributes
    ----------
    holds : dict of int to str
        The columns of numbers, times and positions.
    width : int
        Cells of a row.
    filled : frozenset of int
        Columns with a cell in most rows.
    usual : int
        How many of the columns in `holds` have a value in a row.
    sides : frozenset of int
        The columns of the letters N, S, E and W, which are no labels of statistics.
    """

    holds: dict[int, Holds]
    width: int
    filled: frozenset[int]
    usual: int
    sides: frozenset[int] = frozenset()

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Pattern:
        """Return what most rows have in common, of those with a number, time or position."""
        rest = rows[_SAMPLE:]
        sample = [*rows[:_SAMPLE], *rest[:: 1 + len(rest) // _SAMPLE]]
        seen = [tuple(held(cell) for cell in cells) for _, cells in sample]
        kinds = Counter(kind for kind in seen if _measured(kind))
        if not kinds:
            width = Counter(map(len, seen)).most_common(1)[0][0] if seen else 0
            return cls({}, width, frozenset(range(width)), 0)
        model = max(kinds, key=lambda kind: kinds[kind] * _measured(kind))
        alike = [kind for kind in seen if _agrees(kind, model)]
        width = max(map(len, alike))
        columns = [Counter(kind[i] for kind in alike if i < len(kind)) for i in range(width)]
        holds: dict[int, Holds] = {}
        for i, found in enumerate(columns):
            text = found["text"]
            del found["nothing"], found["text"]
            if found and sum(found.values()) >= text:
                holds[i] = found.most_common(1)[0][0]
        filled = [
            i for i in range(width) if sum(len(k) > i and k[i] != "nothing" for k in alike) > len(alike) / 2
        ]
        usual = sorted(_measured(kind) for kind in alike)[len(alike) // 2]
        readings = [cells for (_, cells), kind in zip(sample, seen, strict=True) if _agrees(kind, model)]
        letters = {i: sum(r[i].strip().upper() in _SIDES for r in readings if i < len(r)) for i in filled}
        sides = [i for i, count in letters.items() if 2 * count > len(readings)]
        return cls(holds, width, frozenset(filled), usual, frozenset(sides))

    def statistic(self, cells: Sequence[str]) -> tuple[int, str, bool] | None:
        """Return as `statistic_of`; the letters of sides are no labels."""
        return statistic_of(["" if i in self.sides else cell for i, cell in enumerate(cells)])

    def count(self, cells: Sequence[str]) -> tuple[int, int]:
        """Return how many cells of a row fit those of most rows, and how many are text instead."""
        kinds = [held(cells[i]) for i in self.holds if i < len(cells)]
        return _measured(kinds), kinds.count("text")

    def fits(self, cells: Sequence[str]) -> bool:
        """Return whether a row is a reading: no more text than numbers where most rows have numbers."""
        numbers, texts = self.count(cells)
        return numbers >= texts and (numbers > 0 or len(cells) > min(self.holds, default=-1))

    def agrees(self, cells: Sequence[str]) -> bool:
        """Return whether a row has numbers, times and positions where most rows have them."""
        kinds = [(held(cells[i]), kind) for i, kind in self.holds.items() if i < len(cells)]
        known = [(own, kind) for own, kind in kinds if own != "nothing"]
        if any("time" in pair and len({*pair}) == 2 for pair in known):
            return False
        wrong = sum(own != kind for own, kind in known)
        is_short = len(cells) < self.width and len(known) < 0.5 * self.usual
        return 4 * wrong <= len(known) and len(cells) <= self.width and not is_short

    def begins(self, cells: Sequence[str]) -> bool:
        """Return whether a row is certainly a reading, so that the names must stand above it."""
        numbers, texts = self.count(cells)
        return numbers > texts and numbers >= 0.5 * self.usual and self.statistic(cells) is None


def _measured(kinds: Sequence[Holds]) -> int:
    return sum(kind in _MEASURED for kind in kinds)


def _agrees(kinds: Sequence[Holds], model: Sequence[Holds]) -> bool:
    pairs = [(a, b) for a, b in zip(kinds, model, strict=False) if b in _MEASURED and a != "nothing"]
    return bool(pairs) and sum(a == b for a, b in pairs) > 0.5 * len(pairs)


def lay_out(
    path: Path, rows: list[Row], below: Sequence[str] = (), form: str = "", top: Row | None = None
) -> Sheet:
    """Return the names, units and readings among rows.

    Parameters
    ----------
    path : Path
        For messages.
    rows : list of (int, list of str)
        At least one.
    below : sequence of str
        What lines stand below the names, in a known form: units, widths, processing. By default, found from
        their cells.
    form : str
        The name of the form, for messages.
    top : (int, list of str), optional
        The names, if they stand in a comment or elsewhere above the rows.

    Raises
    ------
    InputError
        There are no names, a line that the form has is missing, or another table begins further below.
    """
    pattern = Pattern.of(rows)
    start = next((i for i, (_, cells) in enumerate(rows) if pattern.begins(cells)), None)
    notes: list[str] = []
    if top is not None:
        names, first, under = top, start or 0, start or 0
    elif below or not pattern.holds:
        names, first, under = rows[0], 1, 0
    else:
        start = len(rows) if start is None else start
        at = _find_names(path, rows, start, pattern)
        names, first, under = _joined(rows, at, notes), at + 1, at
    units, first = _read_below(path, rows, first, names, pattern, below, form, notes)
    above = [(found[1], line) for line, cells in rows[:under] if (found := pattern.statistic(cells))]
    for label, line in above:
        if sum(label == other for other, _ in above) > _MOST_ALIKE:
            raise InputError(
                f"{label!r} labels more than {_MOST_ALIKE} rows above the column names",
                expected="the column names above all readings",
                where=f"{path}, line {line}",
                fix="delete the lines with column names below the first one",
            )
    notes += [f"left out: {label} (line {line})" for label, line in above]
    head = [cells for _, cells in rows[under:first]]
    body, others = _readings(path, rows[first:], names, head, pattern, notes)
    line, cells = units or (0, [])
    return Sheet(
        path,
        list(names[1]),
        names[0],
        body,
        list(map(clean_unit, cells)),
        notes=notes,
        units_line=line,
        others=others,
    )


def _find_names(path: Path, rows: Sequence[Row], start: int, pattern: Pattern) -> int:
    """Return the index of the row of names, above the first reading."""
    if start == 0:
        return 0
    at = start - 1
    while at > 0 and (_is_rule(rows[at][1]) or pattern.statistic(rows[at][1])):
        at -= 1
    while at > 0 and _is_below(rows[at][1], rows[at - 1][1], pattern):
        at -= 1
    if _share(rows[at][1], pattern) < _FULL:
        full = [i for i in range(at) if _could_be_names(rows[i][1], pattern)]
        at = full[-1] if full else at
    if len(rows[at][1]) == 1 < len(pattern.holds):
        raise InputError(
            "there is no line of column names above the readings",
            expected="a line such as time,lat,lon,temperature",
            where=f"{path}, line {rows[start][0] if start < len(rows) else rows[at][0]}",
            fix="insert one, or export the table again with its header",
        )
    return at


def _share(cells: Sequence[str], pattern: Pattern) -> float:
    """Return how many of the columns that are usually filled have text in a row."""
    texts = sum(held(cells[i]) == "text" for i in pattern.filled if i < len(cells))
    return texts / max(1, len(pattern.filled))


def _could_be_names(cells: Sequence[str], pattern: Pattern) -> bool:
    if len([cell for cell in cells if cell.strip()]) > max(pattern.width, 1):
        return False
    return _share(cells, pattern) >= _FULL and not pattern.statistic(cells) and not _is_rule(cells)


def _is_rule(cells: Sequence[str]) -> bool:
    """Return whether a row is a ruled line: ``-----,-----``."""
    return not "".join(cells).strip(" -_=*~+#|\t") and any(len(cell) > 2 for cell in cells)


def _is_below(cells: Sequence[str], above: Sequence[str], pattern: Pattern) -> bool:
    """Return whether a row holds units, widths or the like, and the one above it the names."""
    filled = [cell for cell in cells if cell.strip()]
    if not _could_be_names(above, pattern) or not filled:
        return False
    if any(sum(map(test, filled)) >= 0.5 * len(filled) for test in _BELOW.values()):
        return True
    return _says_where(above) and not _says_where(cells) and len(set(above)) == len(above)


def _says_where(cells: Sequence[str]) -> bool:
    """Return whether cells name a position, time or depth."""
    words = [cell.strip().lower() for cell in cells]
    return any(word == each or (len(each) > 1 and each in word) for word in words for each in _WHERE_OR_WHEN)


def _joined(rows: Sequence[Row], at: int, notes: list[str]) -> Row:
    """Return the row of names, with the words of a line above it in front of those that appear twice."""
    line, cells = rows[at]
    plain = [cell.strip() for cell in cells]
    twice = {name for name, times in Counter(plain).items() if name and times > 1}
    if not twice or at == 0 or rows[at - 1][0] != line - 1:
        return line, plain
    groups, group = [], ""
    for i in range(len(plain)):
        cell = rows[at - 1][1][i].strip() if i < len(rows[at - 1][1]) else ""
        group = cell or group
        groups.append(group)
    several = {group for group in groups if group}
    if len(several) < 2 or any(map(is_number, several)):
        return line, plain
    notes.append(f"lines {line - 1} and {line} hold the column names")
    return line, [
        f"{g} {name}".strip() if name in twice else name for g, name in zip(groups, plain, strict=True)
    ]


def _read_below(
    path: Path,
    rows: Sequence[Row],
    first: int,
    names: Row,
    pattern: Pattern,
    below: Sequence[str],
    form: str,
    notes: list[str],
) -> tuple[Row | None, int]:
    """Return the row of units below the names, if any, and the index of the first row below all such."""
    units: Row | None = None
    for kind in below:
        if first == len(rows) or not _is_kind(kind, rows[first][1], pattern):
            line = rows[first][0] if first < len(rows) else names[0] + 1
            raise InputError(
                f"the line of {kind} below the column names is missing",
                expected=f"the header of {form}, as the program wrote it",
                where=f"{path}, line {line}",
                fix="export the file again, and do not edit it in a spreadsheet",
            )
        if kind == "units":
            units = rows[first]
        first += 1
    while first < len(rows) - 1 and _is_rule(rows[first][1]):
        first += 1
    if not below:
        while first < len(rows) - 1 and not pattern.statistic(rows[first][1]):
            if pattern.fits(rows[first][1]) and not _is_rule(rows[first][1]):
                break
            if not units and not _is_rule(rows[first][1]) and not all(map(is_width, rows[first][1])):
                units = rows[first]
            elif not _is_rule(rows[first][1]):
                notes.append(f"line {rows[first][0]} below the column names is left out")
            first += 1
            if not pattern.holds:
                break
    return units, first


def _is_kind(kind: str, cells: Sequence[str], pattern: Pattern) -> bool:
    filled = [cell for cell in cells if cell.strip()]
    if kind == "units":
        return not pattern.fits(cells) or all(map(may_be_unit, filled))
    return all(map(_BELOW[kind], filled))


def _readings(
    path: Path, rows: Sequence[Row], names: Row, head: Sequence[list[str]], pattern: Pattern, notes: list[str]
) -> tuple[list[Row], list[int]]:
    """Return the readings, and the lines of other rows among them.

    Repeated headers, rows of statistics and comments are left out, and listed in `notes`.
    """
    others: list[int] = []
    headers = {tuple(cell.strip() for cell in cells) for cells in (*head, names[1])}
    columns = tuple(cell.strip() for cell in names[1])
    begins = {cells[0] for cells in headers}
    measured = tuple(pattern.holds)
    nearest = min(measured, default=0)
    kept: list[Row] = []
    left_out: dict[str, list[int]] = {}
    odd: list[Row] = []  # rows that may belong to the header of a further session
    statistics = _statistics(path, rows, pattern)
    resumed = False  # below a line that is no reading
    for at, (line, cells) in enumerate(rows):
        plain = len(cells) > nearest and cells[0][:1] != "#" and cells[0].strip() not in begins
        plain = plain and all(i >= len(cells) or cells[i][:1] in _DIGITS for i in measured)
        label = statistics.get(at)
        if plain and not label and measured:
            if resumed and not pattern.agrees(cells):
                raise _other_table(path, line, cells, names)
            kept += _gaps(odd, columns, left_out) if odd else odd
            odd, resumed = [], False
            kept.append((line, cells))
            continue
        resumed = True
        others.append(line)
        if label:
            left_out.setdefault(label, []).append(line)
        elif tuple(cell.strip() for cell in cells) in headers:
            if tuple(cell.strip() for cell in cells) == columns:
                for above, _ in odd:
                    left_out.setdefault("lines above the column names", []).append(above)
                odd = []
            left_out.setdefault("the column names again", []).append(line)
        elif cells[0].lstrip().startswith("#") and (0 in pattern.holds or len(cells) != len(columns)):
            left_out.setdefault("comments", []).append(line)
        elif not measured or pattern.fits(cells):
            kept += _gaps(odd, columns, left_out)
            odd = []
            kept.append((line, cells))
        else:
            if _is_other_header(cells, rows[at + 1 : at + 4], pattern):
                raise _other_table(path, line, cells, names)
            odd.append((line, cells))
    kept += _gaps(odd, columns, left_out)
    kept = _whole(kept, len(columns), left_out)
    notes += [f"left out: {what} ({_lines(lines)})" for what, lines in left_out.items()]
    return kept, others


def _other_table(path: Path, line: int, cells: Sequence[str], names: Row) -> InputError:
    return InputError(
        f"another table begins in line {line}: {', '.join(cells[:6])}",
        expected=f"the columns of line {names[0]} in all rows ({', '.join(names[1][:6])})",
        where=f"{path}, line {line}",
        fix="put each table into a file of its own",
    )


def _whole(rows: list[Row], width: int, left_out: dict[str, list[int]]) -> list[Row]:
    """Return rows without the few that a logger cut off, and whose last number may not be whole."""
    short = {line for line, cells in rows if len(cells) < width and cells[-1].strip()}
    if not 0 < len(short) <= _FEW_SHORT * len(rows):
        return rows
    left_out["lines that are cut off"] = sorted(short)
    return [row for row in rows if row[0] not in short]


def _gaps(odd: Sequence[Row], columns: Sequence[str], left_out: dict[str, list[int]]) -> list[Row]:
    """Return rows that have no number, without those that are rather a line of text."""
    gaps = []
    for line, cells in odd:
        filled = sum(bool(cell.strip()) for cell in cells)
        if len(cells) > len(columns) or (filled == 1 and len(columns) > 2):
            left_out.setdefault("text", []).append(line)
        else:
            gaps.append((line, cells))
    return gaps


def _statistics(path: Path, rows: Sequence[Row], pattern: Pattern) -> dict[int, str]:
    """Return the labels of the rows of statistics, by their index."""
    times = [i for i, kind in pattern.holds.items() if kind == "time"]
    found = {at: label for at, (_, cells) in enumerate(rows) if (label := pattern.statistic(cells))}
    if len(found) > _MOST_STATISTICS * len(rows):
        kinds = {label for _, label, _ in found.values()}
        if len(kinds) == 1 or not any(certain for *_, certain in found.values()):
            return {}
        line = rows[min(found)][0]
        raise InputError(
            f"the rows hold statistics: {', '.join(sorted(kinds))}",
            expected="rows of readings",
            where=f"{path}, line {line}",
            fix="keep the rows of one kind, such as the means",
        )
    sure: dict[int, str] = {}
    for at, (column, word, certain) in found.items():
        cells = rows[at][1]
        untimed = bool(times) and not any(i < len(cells) and cells[i].strip() for i in times)
        beside = [found[i][1].lower() for i in (at - 1, at + 1) if i in found and found[i][0] == column]
        in_run = word.lower() not in _COMPASS and any(other != word.lower() for other in beside)
        if certain or column in pattern.holds or untimed or in_run:
            sure[at] = word
    return sure


def _is_other_header(cells: Sequence[str], after: Sequence[Row], pattern: Pattern) -> bool:
    """Return whether a row is a line of names, other than those of the table."""
    texts = {cells[i].strip() for i in pattern.holds if i < len(cells) and held(cells[i]) == "text"}
    if len(texts) < max(2, 0.5 * len(pattern.holds)):
        return False
    return any(pattern.count(row)[0] > 0 or len(row) > 1 for _, row in after)


def names_between_blanks(path: Path, sheet: Sheet, line: str) -> list[str]:
    """Return the names in a line of words, one per cell of the readings below, which blanks separate, too.

    Raises
    ------
    InputError
        Names may consist of several words, and it is not clear which belong together.
    """
    width = Counter(len(cells) for _, cells in sheet.rows).most_common(1)[0][0] if sheet.rows else 0
    if len(sheet.names) <= width or not sheet.rows:
        return sheet.names
    apart = [name for name in re.split(r"\s{2,}|\t", line.strip()) if name]
    if len(apart) == width - 1 and [held(cell) for cell in sheet.rows[0][1][:2]] == ["time", "time"]:
        apart = ["Date", "Time", *apart[1:]]
    if len(apart) == width:
        return apart
    raise InputError(
        f"the line of column names has {counted(len(sheet.names), 'word')}, the readings have {width} cells",
        expected="one name per column",
        where=f"{path}, line {sheet.line}",
        fix="write names of several words in quotes, or export the table with commas or tabs",
    )


def _lines(lines: Sequence[int]) -> str:
    some = ", ".join(map(str, lines[:_MOST_LISTED])) + (", ..." if len(lines) > _MOST_LISTED else "")
    return f"{'line' if len(lines) == 1 else counted(len(lines), 'line') + ':'} {some}"

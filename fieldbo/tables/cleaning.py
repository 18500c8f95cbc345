"""Readings that look wrong: listed with lines and values, and left out or kept as the user says.

`fieldbo.tables.suspects` finds what stands out in a log; here are the values that are impossible anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fieldbo.errors import InputError, counted
from fieldbo.tables.suspects import (
    Suspect,
    Track,
    find_jumps,
    find_spikes,
    find_stuck,
    suspects_at,
)
from fieldbo.tables.table import Table
from fieldbo.tables.units import Conversion, bare, conversion, unit_of

Cleaning = Literal["ask", "clean", "keep"]

_SHOWN = 10
_FIX = "leave them out with --clean, or take them with --keep"


class SuspectReadingsError(InputError):
    """Readings that look wrong, of which the user has to say whether to take them.

    Attributes
    ----------
    suspects : tuple of Suspect
    """

    def __init__(self, suspects: Sequence[Suspect], total: int, where: str, fix: str = _FIX) -> None:
        self.suspects, self.total = tuple(suspects), total
        rows = len({each.row for each in suspects})
        super().__init__(
            f"{rows} of {counted(total, 'reading')} look wrong: {count_kinds(suspects)}",
            expected="readings that agree with each other",
            where=where,
            fix=fix,
        )
        stretches = _stretches(suspects)
        shown = [f"  - {_told(each)}" for each in stretches[:_SHOWN]]
        if more := sum(len(each) for each in stretches[_SHOWN:]):
            shown.append(f"  - and {more} more")
        problem, *rest = str(self.args[0]).split("\n")
        self.args = ("\n".join([problem, *shown, *rest]),)

    def at(self, where: str) -> SuspectReadingsError:
        """Return the same error with its place prefixed by `where`."""
        return type(self)(self.suspects, self.total, f"{where}: {self.where}", self.fix or _FIX)

    def with_fix(self, fix: str) -> SuspectReadingsError:
        """Return the same error with another advice."""
        return type(self)(self.suspects, self.total, self.where or "", fix)


def _stretches(suspects: Sequence[Suspect]) -> list[list[Suspect]]:
    """Return suspects side by side with the same value and the same reason together."""
    stretches: list[list[Suspect]] = []
    for each in suspects:
        last = stretches[-1][-1] if stretches else None
        if last is not None and replace(last, row=last.row + 1, line=last.line + 1) == each:
            stretches[-1].append(each)
        else:
            stretches.append([each])
    return stretches


def _told(stretch: Sequence[Suspect]) -> str:
    """Return what is said of suspects side by side: several as a range of lines."""
    lines, each = [each.line for each in stretch], stretch[0]
    if len(stretch) < 2:
        return str(each)
    return f"lines {min(lines)} to {max(lines)}: {each.column} {each.value}, {each.reason}"


def count_kinds(suspects: Sequence[Suspect]) -> str:
    """Return how many suspects there are of each kind: "2 spikes, 1 stuck value"."""
    kinds: dict[str, int] = {}
    for each in suspects:
        kinds[each.kind] = kinds.get(each.kind, 0) + 1
    plurals = {"jump of the position": "jumps of the position", "zero apart": "zeros apart"}
    return ", ".join(counted(number, kind, plurals.get(kind)) for kind, number in kinds.items())


def find_suspects(
    track: Track,
    column: str,
    *,
    unit: str = "",
    low: float | None = None,
    high: float | None = None,
    positions: Mapping[str, Sequence[str]] | None = None,
    depth: str = "depth",
) -> tuple[Suspect, ...]:
    """Return the readings of a track that look wrong, by line.

    Parameters
    ----------
    track : Track
    column : str
        Name of the value; with its `unit` it tells what values are impossible.
    unit : str
    low, high : float, optional
        The least and the largest value that is possible, instead.
    positions : dict of str to sequence of str, optional
        For each column of the position, its cells, for messages. By default positions are in metres.
    depth : str
        Name of the depth, for messages.

    Examples
    --------
    >>> along = np.arange(60.0)
    >>> values = 14 + np.sin(along / 9).round(2)
    >>> values[30] = 41.7
    >>> track = Track(np.column_stack([along, along]), values, np.arange(2, 62))
    >>> [str(each) for each in find_suspects(track, "temp", unit="degC")]
    ['line 32: temp 41.7, a spike: 13.5 to 14.14 around it']
    """
    if not len(track):
        return ()
    found = [
        *_find_impossible(track, column, unit, low, high),
        *_find_above_surface(track, depth),
        *_find_zeros(track, column),
        *find_stuck(track, column),
        *find_spikes(track, column),
        *find_jumps(track, positions),
    ]
    # An impossible value is not listed as a spike, too.
    first = {(each.row, each.column): each for each in reversed(found)}
    return tuple(sorted(first.values(), key=lambda each: each.row))


def clean(
    suspects: Sequence[Suspect], total: int, cleaning: Cleaning, log: Table, least: int
) -> tuple[NDArray[np.bool_], list[str]]:
    """Return which readings (total,) are kept of those tested, and a note on what was done with suspects.

    Raises
    ------
    InputError
        Readings look wrong and the user has not said what to do, or too few are left.
    """
    kept = np.ones(total, dtype=bool)
    if not suspects:
        return kept, []
    if cleaning == "ask":
        raise SuspectReadingsError(suspects, total, str(log.path))
    rows = np.unique([each.row for each in suspects])
    some = ", ".join(str(each.line) for each in suspects[:3]) + (", ..." if len(suspects) > 3 else "")
    lines = f"({log.row_word if len(rows) == 1 else log.row_word + 's'} {some})"
    what = f"{counted(len(rows), 'reading')} that {'looks' if len(rows) == 1 else 'look'} wrong"
    note = f"{what}: {count_kinds(suspects)} {lines}"
    if cleaning == "keep":
        return kept, [f"{note}; kept"]
    kept[rows] = False
    if kept.sum() < least:
        raise InputError(
            f"{counted(int(kept.sum()), 'reading')} of {total} are left without {note}",
            expected=f"at least {counted(least, 'reading')}",
            where=str(log.path),
            fix="take them with --keep, or correct the file",
        )
    return kept, [f"{note}; left out"]


# -- impossible values ------------------------------------------------------------------------------------

_KNOWN: dict[frozenset[str], dict[str, tuple[float, float]]] = {
    frozenset({"ph"}): {"pH": (0.0, 14.0)},
    frozenset({"temp", "temperature", "sst", "wtemp", "watertemp", "temperatur"}): {"degC": (-5.0, 60.0)},
    frozenset({"salinity", "sal", "psal", "salinität"}): {
        "psu": (0.0, 50.0),
        "ppt": (0.0, 50.0),
        "g/kg": (0.0, 50.0),
    },
    frozenset({"saturation"}): {"%": (0.0, 300.0)},
    frozenset({"do", "odo", "oxygen", "doxy", "sauerstoff"}): {
        "mg/l": (0.0, 30.0),
        "ppm": (0.0, 30.0),
        "ml/l": (0.0, 21.0),
        "umol/l": (0.0, 940.0),
        "umol/kg": (0.0, 940.0),
        "%": (0.0, 300.0),
    },
}
"""Limits of quantities by words of their names, in each unit; a column without a unit has the first."""

_SLACK = 0.01
"""Fraction of the possible range by which a sensor that is a little off may leave it."""


def limits_of(column: str, unit: str = "") -> tuple[float, float] | None:
    """Return the least and the largest possible value of a known quantity; None for any other.

    Examples
    --------
    >>> limits_of("pH"), limits_of("Water_Temp", "degC"), limits_of("Temp (°C)"), limits_of("zinc", "mg/l")
    ((0.0, 14.0), (-5.0, 60.0), (-5.0, 60.0), None)
    >>> limits_of("ODO (% sat)"), limits_of("temp", "degF"), limits_of("temp", "counts")
    ((0.0, 300.0), (23.0, 140.0), None)
    """
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", bare(column))
    words = set(re.split(r"[^a-zäöüß]+", f"{bare(column)} {apart}".lower()))
    known = next((limits for names, limits in _KNOWN.items() if names & words), {})
    unit = unit or unit_of(column) or ""
    changes = {base: conversion(unit, base) if unit else Conversion(Fraction(1)) for base in known}
    same = [base for base, change in changes.items() if change == Conversion(Fraction(1))]
    # A percentage is no volume per volume, though its dimensions are the same: others only become the first.
    base = next(iter([*same, *known]), "")
    change = changes.get(base)
    if change is None:
        return None
    low, high = ((Fraction(limit) - change.offset) / change.factor for limit in known[base])
    return float(low), float(high)


def _find_impossible(
    track: Track, column: str, unit: str, low: float | None, high: float | None
) -> list[Suspect]:
    known, slack = limits_of(column, unit), 0.0
    if low is None and high is None and known is not None:
        low, high = known
        slack = _SLACK * (high - low)
    least, most = -np.inf if low is None else low, np.inf if high is None else high
    outside = (track.values < least - slack) | (track.values > most + slack)
    reason = "impossible: " + (
        f"below {least:g}"
        if high is None
        else f"above {most:g}"
        if low is None
        else f"not {least:g} to {most:g}"
    )
    return suspects_at(track, np.flatnonzero(outside), column, "impossible value", lambda row: reason)


_REPEATS, _FEW = 3, 0.25
"""How often, and in what fraction of the readings, 0 is suspect: more often, it is usual in this log."""

_NEAR = 0.25
"""Other values that come as near to 0, in ranges of these, make it possible."""


def _find_zeros(track: Track, column: str) -> list[Suspect]:
    """Return readings of 0 that repeat while all others are far above it: they may stand for no value."""
    is_zero = track.values == 0
    others = np.unique(track.values[~is_zero])
    if len(others) < 3 or others[0] <= 0 or not _REPEATS <= is_zero.sum() <= _FEW * len(track):
        return []
    if others[0] <= max(_NEAR * float(np.ptp(others)), 3.0 * float(np.diff(others).max())):
        return []
    reason = f"the others are {others[0]:.6g} to {others[-1]:.6g}: does it stand for no value?"
    return suspects_at(track, np.flatnonzero(is_zero), column, "zero apart", lambda row: reason)


_ABOVE_M = 0.5
"""A sensor in the air may show a depth as negative as this."""


def _find_above_surface(track: Track, depth: str) -> list[Suspect]:
    """Return depths above the surface, if most are below."""
    if track.depths is None or np.mean(track.depths < 0) > 0.5:
        return []
    above = np.flatnonzero(track.depths < -max(_ABOVE_M, 0.01 * float(track.depths.max())))
    return [
        Suspect(
            int(track.lines[row]),
            depth,
            f"{track.depths[row]:.6g}",
            "impossible: above the surface",
            "impossible value",
            row,
        )
        for row in above.tolist()
    ]

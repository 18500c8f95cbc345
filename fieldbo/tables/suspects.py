"""Readings that stand out in a log: spikes, stuck sensors, and jumps of the position.

Each test compares a reading with the log itself: with its neighbours along the track, and with how far
readings of this log usually lie from theirs. What is common in a log is not suspect, however rough it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.tables.apart import find_apart

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Suspect:
    """A reading that looks wrong.

    Attributes
    ----------
    line : int
        Where it is in the file.
    column : str
    value : str
        What the log says there.
    reason : str
        Why it is suspect, such as "a spike: 14.1 to 14.3 around it".
    kind : str
        The kind of reason: "spike", "jump of the position", "stuck value", "zero apart" or
        "impossible value".
    row : int
        Its index among the readings that were tested.
    """

    line: int
    column: str
    value: str
    reason: str
    kind: str
    row: int = 0

    def __str__(self) -> str:
        return f"line {self.line}: {self.column} {self.value}, {self.reason}"


@dataclass(frozen=True, eq=False)
class Track:
    """Readings to test, in the order in which they were taken.

    Attributes
    ----------
    metres : (n, 2) array
        Positions.
    values : (n,) array
    lines : (n,) int array
        Lines in the file.
    times : (n,) array or None
        Seconds, in ascending order. Without them, the neighbours of a reading are those nearest to it, unless
        the rows follow a track.
    depths : (n,) array or None
    """

    metres: Array
    values: Array
    lines: Rows
    times: Array | None = None
    depths: Array | None = None

    def __len__(self) -> int:
        return len(self.values)


def suspects_at(
    track: Track, rows: Rows, column: str, kind: str, reason: Callable[[int], str]
) -> list[Suspect]:
    """Return the suspect readings at some rows."""
    return [
        Suspect(int(track.lines[row]), column, f"{track.values[row]:.6g}", reason(row), kind, row)
        for row in rows.tolist()
    ]


# -- spikes -----------------------------------------------------------------------------------------------

_BESIDE = 3
"""Readings before and after that one is compared with."""

_FEWEST = 10
"""Fewer readings say too little of what is usual."""

_CALM = 4.0
"""A spike stands out this much more than its neighbours differ; a plume of several readings does not."""

_LEAST = 6.0
"""Robust standard deviations from its neighbours below which no reading is a spike."""

_RANGES, _OF_MANY = 3.0, 0.4
"""A reading so many ranges of all others away from its neighbours is a spike, however rough these are; of n
readings with a heavy tail, the farthest is about the cube root of n times as far as most."""

_ALARMS = 0.004
"""Expected number of false alarms in a log whose noise has the tail that most of its readings show."""

_HEAVIER = 1.35
"""The neighbours have noise, too; with it, that of a reading seems to have less of a tail than it has."""

_WIDE = 2.0
"""Neighbours so many times as far away as usual may differ more."""

_WINDOW = 25
_TAIL = (0.9, 0.95, 0.98)


def find_spikes(track: Track, column: str) -> list[Suspect]:
    """Return single readings that are far from their neighbours, while these agree (Hampel's identifier).

    Far is in relation to how readings of the log differ from their neighbours, here and everywhere. Of
    positive values, the logarithm must be far off, too: high values of skewed quantities vary more.
    Up to three side by side are spikes if they are far outside the range of all others (`find_apart`).
    """
    values = track.values
    if len(track) < _FEWEST or _has_many_zeros(values):
        return []
    near, in_order = _neighbours(track)
    compact = _are_compact(track, near)
    found = _stand_out(values, near, in_order, _resolution(values), compact)
    if found.any() and values.min() > 0:
        with_floor = _resolution(values) / float(np.median(values))
        found &= _stand_out(np.log(values), near, in_order, with_floor, compact)
    found |= find_apart(values, near)

    def reason(row: int) -> str:
        others = near[row][~found[near[row]]]
        around = values[others if len(others) else near[row]]
        return f"a spike: {around.min():.6g} to {around.max():.6g} around it"

    return suspects_at(track, np.flatnonzero(found), column, "spike", reason)


def _stand_out(values: Array, near: Rows, in_order: bool, floor: float, compact: Mask) -> Mask:
    """Return which values (n,) are spikes among those at the rows `near` (n, k), the nearest first.

    The tail of those whose neighbourhood is `compact` (n,) is their own.
    """
    around = values[near]
    middle = np.median(around, axis=1)
    off, differ = np.abs(values - middle), np.abs(around - middle[:, None])
    beside = np.sort(differ, axis=1)[:, -2]  # one of them may be a spike itself, but not one next to it
    calm = _CALM * np.maximum(beside, differ[:, :2].max(axis=1)) < off
    likely = calm & (off > _LEAST * _scale(off, near, in_order, floor))
    if not likely.any():
        return np.asarray(likely)
    usual = np.where(likely, middle, values)  # a spike must not hide itself and others
    off_usual = np.abs(usual - np.median(usual[near], axis=1))
    scale = _scale(off_usual, near, in_order, floor)
    inner = (
        slice(_BESIDE, -_BESIDE) if in_order else slice(None)
    )  # all neighbours of the ends are on one side
    ranges = max(_RANGES, _OF_MANY * np.cbrt(len(values)))
    farthest = np.full(len(values), _farthest((off_usual / scale)[inner]))
    if compact[inner].sum() >= _FEWEST:
        farthest[compact] = np.minimum(farthest, _farthest((off_usual / scale)[inner][compact[inner]]))[
            compact
        ]
    allowed = np.minimum(farthest * scale, ranges * np.ptp(values[~likely]))
    return np.asarray(likely & (off > allowed))


def _are_compact(track: Track, near: Rows) -> Mask:
    """Return which readings (n,) have all neighbours `near` (n, k) at usual distances in space and time.

    Those at turns and on both sides of gaps differ more, and make the tail of all others seem heavy.
    """
    places = [track.metres] if track.times is None else [track.metres, track.times[:, None]]
    compact = np.ones(len(near), dtype=bool)
    for each in places:
        spread = np.linalg.norm(each[near] - each[:, None], axis=2).max(axis=1)
        compact &= ~(spread > _WIDE * np.median(spread))
    return compact


def _scale(off: Array, near: Rows, in_order: bool, floor: float) -> Array:
    """Return the robust standard deviation (n,) of differences (n,) from neighbours, there and in all."""
    from scipy.ndimage import median_filter

    local = median_filter(off, _WINDOW, mode="mirror") if in_order else np.median(off[near], axis=1)
    scale = _ROBUST * np.maximum(local, np.median(off))
    return np.asarray(np.maximum(scale, max(floor, np.finfo(float).tiny)))


_ROBUST = 1.4826  # from the median deviation to the standard deviation of normal noise


def _farthest(relative: Array) -> float:
    """Return how far from its neighbours a reading may be, in robust standard deviations.

    The tail of the noise is that of Student's t with the degrees of freedom that the quantiles of most
    readings suggest, fewer in short logs, which tell little of it.
    """
    n, middle = len(relative), max(float(np.median(relative)), 0.5)  # less, if rounding hides the noise
    freedoms, ratios = _tails()
    freedom = freedoms[-1]
    for q, ratio in zip(_TAIL, ratios, strict=True):
        if (1 - q) * n >= 3 or q == _TAIL[0]:
            freedom = min(freedom, np.interp(np.quantile(relative, q) / middle, ratio[::-1], freedoms[::-1]))
    freedom = 1 / (_HEAVIER / freedom + 1 / np.sqrt(n))
    return max(_LEAST, _t_beyond(_ALARMS / n, freedom) / _t_beyond(0.5, freedom) / _ROBUST)


def _t_beyond(p: float, freedom: float) -> float:
    """Return what the size of Student's t exceeds with probability p."""
    from scipy.special import stdtrit

    return float(-stdtrit(freedom, p / 2))


@lru_cache(maxsize=1)
def _tails() -> tuple[Array, list[Array]]:
    """Return degrees of freedom (k,), and for each quantile of the tail its ratio (k,) to the median."""
    freedoms = np.array([1, 1.5, 2, 2.5, 3, 3.5, 4, 5, 6, 8, 10, 15, 20, 30, 60])
    return freedoms, [np.array([_t_beyond(1 - q, f) / _t_beyond(0.5, f) for f in freedoms]) for q in _TAIL]


def _has_many_zeros(values: Array) -> bool:
    """Return whether values are counts that are mostly 0: the few others are no spikes."""
    return bool(values.min() == 0 and np.mean(values == 0) > 0.3)


def _resolution(values: Array) -> float:
    """Return the least difference between two values that is more than rounding; 0 for equal values."""
    steps = np.diff(np.unique(values))
    steps = steps[steps > 1e-9 * np.abs(values).max()]
    return float(steps.min()) if len(steps) else 0.0


def _neighbours(track: Track) -> tuple[Rows, bool]:
    """Return the readings (n, k) next to each, the nearest first, and whether they are so in order."""
    n, k = len(track), 2 * _BESIDE
    if track.times is None:
        places = track.metres
        if track.depths is not None and np.ptp(track.depths) > 0:
            widest = float(np.hypot(*np.ptp(track.metres, axis=0))) or 1.0
            places = np.column_stack([places, track.depths * (widest / np.ptp(track.depths))])
        if not _follow_each_other(places):
            from scipy.spatial import cKDTree

            found = np.asarray(cKDTree(places).query(places, k + 1)[1])
            own = found == np.arange(n)[:, None]
            own[~own.any(axis=1), -1] = True  # of many at the same place, any may be left out
            return found[~own].reshape(n, k), False
    rows = np.arange(n)
    window = np.clip(rows - _BESIDE, 0, n - k - 1)[:, None] + np.arange(k + 1)
    near = window[window != rows[:, None]].reshape(n, k)
    nearest_first = np.argsort(np.abs(near - rows[:, None]), axis=1, kind="stable")
    return np.take_along_axis(near, nearest_first, axis=1), True


def _follow_each_other(places: Array) -> bool:
    """Return whether rows go on near where the one before was, as along a track."""
    from scipy.spatial import cKDTree

    steps = np.linalg.norm(np.diff(places, axis=0), axis=1)
    nearest = np.asarray(cKDTree(places).query(places, 2)[0])[:, 1]
    return bool(np.median(steps) <= 3.0 * np.median(nearest))


# -- stuck sensors ----------------------------------------------------------------------------------------

_LEAST_STUCK = 6
_MOST_STUCK = 5  # stretches; where more are as long, they are usual in this log


def find_stuck(track: Track, column: str) -> list[Suspect]:
    """Return readings that repeat a value for so long as this log nowhere else stays near one.

    Where noise is small against the resolution, and where counts are mostly 0, other stretches are about as
    long, and nothing is stuck.
    """
    values, n = track.values, len(track)
    ends = np.append(np.flatnonzero(np.diff(values) != 0), n - 1)
    starts = np.append(0, ends[:-1] + 1)
    lengths = ends - starts + 1
    longest = np.argsort(-lengths, kind="stable")[:_MOST_STUCK]
    aside, found = np.zeros(n, dtype=bool), dict[int, str]()
    pending = dict[int, str]()
    for start, end, length in zip(starts[longest], ends[longest], lengths[longest], strict=True):
        if length < _LEAST_STUCK or _is_none_found(values, float(values[start])):
            continue
        aside[start : end + 1] = True
        pending |= dict.fromkeys(range(start + 1, end + 1), f"stuck: the same in {length} readings")
        if not _stays_elsewhere(values, aside, max(_LEAST_STUCK, int(length) // 3)):
            found |= pending
    return suspects_at(
        track, np.array(sorted(found), dtype=np.int64), column, "stuck value", found.__getitem__
    )


def _is_none_found(values: Array, value: float) -> bool:
    """Return whether a value is the 0 of a quantity that is often absent.

    Its other values begin near 0, or stand alone between several stretches of 0.
    """
    if value != 0 or values.min() < 0:
        return False
    others, is_zero = values[values != 0], values == 0
    if not len(others):
        return True
    stretches = int(is_zero[0]) + int((np.diff(is_zero.astype(int)) > 0).sum())
    return bool(others.min() < 0.3 * np.ptp(others)) or (stretches >= 3 and len(others) < is_zero.sum())


def _stays_elsewhere(values: Array, aside: Mask, width: int) -> bool:
    """Return whether values stay within two steps of the resolution over `width` rows that are not `aside`.

    If too few other rows are left to tell, they might.
    """
    from scipy.ndimage import maximum_filter1d, minimum_filter1d

    others = values[~aside]
    if len(others) < _FEWEST + width:
        return True
    highest, lowest = maximum_filter1d(others, width), minimum_filter1d(others, width)
    inner = slice(width // 2, len(others) - width // 2)
    return bool((highest - lowest)[inner].min() <= 2.001 * _resolution(values))


# -- jumps of the position -------------------------------------------------------------------------------

_EXCURSION = 5
"""A position that jumps and is back within so many readings was wrong meanwhile."""

_FAST, _FASTEST = 10.0, 3.0
"""Jumps are this much faster than nine tenths of the steps, and than all but a hundredth of them."""

_SLOW_M_S, _LOST_M_S = 2.0, 30.0
"""No slower step is a jump, and none at the ends of a log, where nothing shows that it led back."""

_DEVIATIONS, _BACK = 20.0, 0.2
"""A step so many median deviations faster than the median may be a jump, if the next such leads back to
within this fraction of it."""

_FEW, _FEW_OF = 3, 0.02
"""In a short log, and of the steps of a long one, so many jumps are few: more are its way of moving."""

_AFAR = 20.0
"""A position is wrong that is this much farther from the middle than nine tenths of the readings."""


def find_jumps(track: Track, positions: Mapping[str, Sequence[str]] | None) -> list[Suspect]:
    """Return readings where the position jumps away and back, or lies far from all others.

    Jumps are fast for this log. Without times, they are long.
    """
    if len(track) < _FEWEST:
        return []
    found = _find_afar(track.metres)
    if track.times is not None or _follow_each_other(track.metres):
        found |= _find_excursions(track)
    cells = positions or dict(zip(("x", "y"), (axis.astype(str) for axis in track.metres.T), strict=True))
    column = ", ".join(cells)

    def told(row: int) -> Suspect:
        value = ", ".join(str(of_axis[row]) for of_axis in cells.values())
        before = int(np.flatnonzero(~found[:row])[-1]) if (~found[:row]).any() else int(np.argmin(found))
        away = float(np.hypot(*(track.metres[row] - track.metres[before])))
        when = "" if track.times is None else f" in {abs(track.times[row] - track.times[before]):.3g} s"
        reason = f"a jump of {away:.3g} m{when} from line {track.lines[before]}"
        return Suspect(int(track.lines[row]), column, value, reason, "jump of the position", row)

    return [told(row) for row in np.flatnonzero(found).tolist()]


def _find_afar(metres: Array) -> Mask:
    """Return which positions (n,) lie far outside of the place where nearly all are."""
    away = np.hypot(*(metres - np.median(metres, axis=0)).T)
    found = away > _AFAR * np.quantile(away, 0.9)
    return np.asarray(found & (found.mean() <= 0.02) & (np.quantile(away, 0.9) > 0))


def _find_excursions(track: Track) -> Mask:
    """Return where the position (n,) jumps and is back soon, or jumps once at either end of the track."""
    n, places = len(track), track.metres
    steps = np.hypot(*np.diff(places, axis=0).T)
    if track.times is None:
        clock, tick, slow, lost = np.arange(n, dtype=float), 0.0, 0.0, np.inf
    else:
        clock = np.maximum.accumulate(np.where(np.isfinite(track.times), track.times, -np.inf))
        clock = np.where(np.isfinite(clock), clock, clock[np.isfinite(clock)].min(initial=np.inf))
        ticks = np.diff(clock)
        tick = float(ticks[ticks > 0].min(initial=np.inf))  # readings of the same second are not at once
        slow, lost = _SLOW_M_S, _LOST_M_S
    found = np.zeros(n, dtype=bool)
    if not np.isfinite(tick):
        return found
    speeds = steps / (np.diff(clock) + tick)
    usual = speeds[~_lead_out_and_back(places, speeds)]
    limit = max(slow, _FAST * np.quantile(usual, 0.9), _FASTEST * np.quantile(usual, 0.99))
    jumps = np.flatnonzero(speeds > limit)

    def is_back(jump: int, b: int) -> bool:
        away = float(np.hypot(*(places[b] - places[jump])))
        return bool(away <= min(0.5 * steps[jump], limit * (clock[b] - clock[jump] + tick)))

    for jump in jumps.tolist():
        if found[jump]:
            continue
        soon = range(jump + 2, min(jump + 2 + _EXCURSION, n))
        back = next((b for b in soon if is_back(jump, b)), None)
        if back is not None:
            found[jump + 1 : back] = True
    far = np.flatnonzero(speeds > max(lost, limit))
    first, last = far[far < _EXCURSION], far[far >= n - 1 - _EXCURSION]
    if len(first) == 1 and not found[first[0]]:
        found[: first[0] + 1] = True
    if len(last) == 1 and not found[last[0] + 1]:
        found[last[0] + 1 :] = True
    return found


def _lead_out_and_back(places: Array, speeds: Array) -> Mask:
    """Return which steps (n - 1,) may lead to a wrong position and back, if few do: they must not hide it.

    Fast steps, by the median and its deviation, come in pairs around positions that lie beside the way from
    the one before to the one after.
    """
    middle = float(np.median(speeds))
    fast = speeds > middle + _DEVIATIONS * max(float(np.median(np.abs(speeds - middle))), 0.1 * middle)
    found, jumps = np.zeros(len(speeds), dtype=bool), np.flatnonzero(fast)
    excursions = 0
    for out, back in zip(jumps[:-1].tolist(), jumps[1:].tolist(), strict=True):
        if found[out] or back - out > _EXCURSION:
            continue
        way = places[back + 1] - places[out]
        away = min(np.hypot(*(places[out + 1] - places[out])), np.hypot(*(places[back + 1] - places[back])))
        if np.hypot(*way) <= _BACK * away:
            found[[out, back]] = True
            excursions += 1
    few = excursions <= max(_FEW, _FEW_OF * len(speeds))
    return found if few else np.zeros_like(found)

"""The points of a survey, from a log: positions and values with what is doubtful left out and said so."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fieldbo._numerics.arrays import Array
from fieldbo.errors import InputError, counted
from fieldbo.tables.coordinates import Bounds, read_degrees, swapped, unwrapped
from fieldbo.tables.measures import lengths_of
from fieldbo.tables.table import LEAST_READINGS, Table, fix_of_limit
from fieldbo.tables.times import IN_UTC, Times, times_in

_MANY = 0.05
"""Fraction of impossible positions above which something is wrong with the columns, not with single fixes."""


@dataclass(frozen=True, eq=False)
class SurveyPoints:
    """Readings of a survey, in the order in which they were taken.

    Attributes
    ----------
    lat, lon : (n,) arrays
        Degrees, WGS 84 as logged. Longitudes lie between -180 and 180; of a survey across the antimeridian,
        they go on beyond 180.
    values : (n,) array
        Means of the readings pooled.
    times : (n,) array or None
        Seconds since 1970 in UTC, or of the log's own clock if it states no date.
    depths : (n,) array or None
        As logged.
    channels : dict of str to (n,) array
        Means of other quantities; NaN where none was logged.
    noise_sd : (n,) array or None
        Standard error of each value: from the log's noise column, or from the scatter of the readings that
        were pooled. The latter holds noise from reading to reading only, not drift or calibration, and is
        None if nothing was pooled. A fit that learns the noise is the cautious choice.
    counts : (n,) int array
        How many rows of the log each point pools.
    lines : tuple of int
        The line in the file of the first row of each point.
    notes : tuple of str
        What was left out, pooled or converted.
    doubts : tuple of str
        Questions that only the user can answer. Stop and ask, do not guess.
    dated : bool
        Whether the `times` count from 1970.
    undecided : str
        The two readings of a date, if the log does not tell whether the day or the month comes first. The
        order of the rows hardly depends on it, their age does.
    """

    lat: Array
    lon: Array
    values: Array
    times: Array | None
    depths: Array | None
    channels: dict[str, Array]
    noise_sd: Array | None
    counts: NDArray[np.int64]
    lines: tuple[int, ...]
    notes: tuple[str, ...]
    doubts: tuple[str, ...]
    dated: bool = False
    undecided: str = ""

    def __len__(self) -> int:
        return len(self.values)


def survey_points(
    log: Table,
    *,
    lat: str,
    lon: str,
    value: str,
    time: str | None = None,
    depth: str | None = None,
    noise_sd: str | None = None,
    channels: Sequence[str] = (),
    missing: Sequence[float] = (),
    bounds: Bounds | None = None,
    spacing_m: float | None = None,
    tolerance_m: float = 1.0,
    least: int = LEAST_READINGS,
) -> SurveyPoints:
    """Return the points of a survey.

    Rows without a position or value, and without a fix (0, 0), are left out. Readings that follow each other
    within half a spacing are pooled into their mean, and so are stations at the same position. Whatever is
    done is in the `notes`.

    Parameters
    ----------
    log : Table
    lat, lon, value : str
        Columns of the position in degrees and of the value; a unit in brackets may be left out.
    time : str, optional
        Column of the time; rows are sorted by it. Without it, they count as logged one after another. A
        column of dates and one of times of day are put together, whichever is named.
    depth : str, optional
        Column of the depth. Readings are pooled only at about the same depth.
    noise_sd : str, optional
        Column of the readings' standard deviations.
    channels : sequence of str
        Columns of other quantities.
    missing : sequence of float
        Numbers that stand for no value, such as -9999.
    bounds : (west, south, east, north), optional
        Where the survey should lie, in degrees, to recognise exchanged columns.
    spacing_m : float, optional
        Spacing of the map's sites, in metres; by default, that of 2,500 sites over the survey's extent. It is
        widened for a log with so many readings that a fit would take minutes.
    tolerance_m : float
        Stations closer than this, and than a quarter of the spacing, are one.
    least : int
        Fewest rows that must be usable.

    Raises
    ------
    InputError
        A column is missing or holds something else, positions are impossible, values are limits of detection,
        or fewer than five readings are left.
    """
    log = replace(log, missing=(*log.missing, *missing))
    lat, lon, value = log.column(lat, "--lat"), log.column(lon, "--lon"), log.column(value, "--value")
    (y, about_lat), (x, about_lon) = read_degrees(log, lat, "latitude"), read_degrees(log, lon, "longitude")
    columns = {"lat": y, "lon": x, "value": _read_numbers(log, value)}
    about_depth: tuple[str, ...] = ()
    if depth is not None:
        depth = log.column(depth, "--depth")
        _read_numbers(log, depth)  # checks its cells
        columns["depth"], about_depth = lengths_of(log, depth, "depth")
    columns |= {f"channel {each}": _read_numbers(log, log.column(each, "--channel")) for each in channels}
    noise = None if noise_sd is None else _read_numbers(log, log.column(noise_sd, "--noise"))
    clock, about_time = _read_times(log, time)
    notes = [*log.notes, *about_lat, *about_lon, *about_depth, *about_time]

    doubts = sentinel_doubts(columns["value"], value, log.missing)
    placed = np.isfinite(y) & np.isfinite(x)
    doubt = swapped(y[placed], x[placed], bounds)
    if doubt is not None:
        doubts.append(f"{doubt}; is --lat {lon!r} --lon {lat!r} right?")
    impossible = (np.abs(y) > 90) | (np.abs(x) > 360)
    if doubt is None:
        _check_possible(log, y, x, impossible, lat, lon)
    reasons = {
        "without a position": ~placed,
        "without a fix (position 0, 0)": (y == 0) & (x == 0),
        "at an impossible position": impossible & (doubt is None),
        f"without a number for {value}": ~np.isfinite(columns["value"]),
        "without a depth": ~np.isfinite(columns.get("depth", np.zeros(len(log)))),
        "without a noise of at least 0": ~((np.zeros(len(log)) if noise is None else noise) >= 0),
    }
    order, left_out = _select_usable(log, reasons, least)
    notes += left_out
    if clock is not None:
        columns["time"] = clock.seconds
        order, sorting = _sort_by_time(clock.seconds, order)
        notes += sorting
    x[order], wrapping = unwrapped(x[order])
    start = Pooled.rows(
        {name: column[order] for name, column in columns.items()},
        local_metres(y[order], x[order]),
        None if noise is None else noise[order] ** 2,
        log.lines[order],
    )
    thin, spacing, thinning = thinned(start, spacing_m)
    pooled, joining = joined(thin, min(tolerance_m, 0.25 * spacing))
    got = pooled.columns
    return SurveyPoints(
        got["lat"],
        got["lon"],
        got["value"],
        got.get("time"),
        got.get("depth"),
        {each: got[f"channel {each}"] for each in channels},
        pooled.noise_sd,
        pooled.counts,
        tuple(pooled.lines.tolist()),
        (*notes, *wrapping, *thinning, *joining),
        tuple(doubts),
        dated=clock is not None and clock.absolute,
        undecided="" if clock is None else clock.undecided,
    )


def _read_numbers(log: Table, name: str) -> Array:
    """Return the numbers (n,) of a column, NaN where there is none."""
    check_limits(log, name)
    numbers, present = log.numbers(name), ~log.is_missing(name)
    gaps = np.flatnonzero(present & ~np.isfinite(numbers)).tolist()
    wrong = [row for row in gaps if not _is_number(log.cells[name][row])]
    if len(wrong) > 0.5 * present.sum():
        raise InputError(
            f"{log.cells[name][wrong[0]]!r} is not a number",
            expected="a column of numbers",
            where=log.place(wrong[0], name),
            fix=fix_of_limit(log.cells[name][wrong[0]]),
        )
    return numbers


def _is_number(cell: str) -> bool:
    """Return whether a cell is a number, perhaps one that stands for no value."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _sort_by_time(times: Array, order: NDArray[np.int64]) -> tuple[NDArray[np.int64], list[str]]:
    """Return rows sorted by time, and a note if they were not; one without a time follows the one before."""
    known = np.maximum.accumulate(np.where(np.isfinite(times[order]), order, -1))
    by_time = np.argsort(np.where(known < 0, -np.inf, times[known]), kind="stable")
    return order[by_time], ["rows are sorted by time"] if (np.diff(by_time) < 0).any() else []


def _read_times(log: Table, name: str | None) -> tuple[Times | None, list[str]]:
    if name is None:
        return None, []
    name = log.column(name, "--time")
    times = times_in(log, name)
    if times is None:
        row = int(np.argmin(log.is_missing(name)))
        raise InputError(
            f"{log.cells[name][row]!r} is not a time",
            expected="times such as 2024-05-01T12:30:00Z, 1.5.2024 12:30, 12:30:00 or seconds since 1970",
            where=log.place(row, name),
        )
    says_utc = any(zone in f"{name} {log.units.get(name, '')}".lower() for zone in ("utc", "gmt"))
    in_utc = [IN_UTC] if times.absolute and not times.offsets and not says_utc else []
    return times, [*times.notes, *in_utc]


def _check_possible(
    log: Table, y: Array, x: Array, impossible: NDArray[np.bool_], lat: str, lon: str
) -> None:
    """Raise an `InputError` if more than a few positions are none on the globe."""
    if impossible.sum() <= _MANY * len(log):
        return
    row = int(np.argmax(impossible))
    name, number = (lat, y[row]) if abs(y[row]) > 90 else (lon, x[row])
    raise InputError(
        f"{number:g} is not in degrees, in {impossible.sum()} of {len(log)} rows",
        expected="latitudes between -90 and 90, longitudes between -180 and 360",
        where=log.place(row, name),
        fix="use --x and --y if the positions are in metres",
    )


def _select_usable(
    log: Table, reasons: dict[str, NDArray[np.bool_]], least: int
) -> tuple[NDArray[np.int64], list[str]]:
    """Return the rows with none of the reasons to be left out, and notes on those that have one.

    Raises
    ------
    InputError
        Too few rows are left.
    """
    kept, notes = np.ones(len(log), dtype=bool), []
    for reason, rows in reasons.items():
        lines = log.lines[kept & rows]
        kept &= ~rows
        if len(lines):
            some = ", ".join(map(str, lines[:3])) + (", ..." if len(lines) > 3 else "")
            line = "line" if len(lines) == 1 else "lines"
            notes.append(f"{counted(len(lines), 'row')} {reason} left out ({line} {some})")
    if kept.sum() < least:
        raise InputError(
            f"{counted(int(kept.sum()), 'reading')} of {counted(len(log), 'row')} can be used"
            + (f": {'; '.join(notes)}" if notes else ""),
            expected=f"at least {counted(least, 'row')} with a position and a value",
            where=str(log.path),
        )
    return np.flatnonzero(kept), notes


MOST_READINGS = 2000
"""A log is thinned to at most about this many; the time of a fit is cubic in their number."""

_SITES, _LEVELS = 2500, 50
_RADIUS_M = 6_371_000.0


@dataclass(frozen=True, eq=False)
class Pooled:
    """Rows of a log after pooling.

    Attributes
    ----------
    columns : dict of str to (n,) array
        Means over the rows pooled.
    metres : (n, 2) array
        Positions, in metres.
    known_variances : (n,) array or None
        Noise variances of the values, if the log states them.
    squares : (n,) array
        Sums of squared deviations of the values pooled from their mean.
    counts : (n,) int array
        Numbers of rows pooled.
    lines : (n,) int array
        Line of the first of them.
    """

    columns: dict[str, Array]
    metres: Array
    known_variances: Array | None
    squares: Array
    counts: NDArray[np.int64]
    lines: NDArray[np.int64]

    @classmethod
    def rows(
        cls, columns: dict[str, Array], metres: Array, variances: Array | None, lines: NDArray[np.int64]
    ) -> Pooled:
        """Return the rows of a log, not pooled yet."""
        n = len(metres)
        return cls(columns, metres, variances, np.zeros(n), np.ones(n, dtype=np.int64), lines)

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def noise_sd(self) -> Array | None:
        """Standard error (n,) of each value; None if the log says nothing of noise."""
        if self.known_variances is not None:
            return np.asarray(np.sqrt(self.known_variances))
        repeats = int((self.counts - 1).sum())
        return np.asarray(np.sqrt(self.squares.sum() / repeats / self.counts)) if repeats else None

    def by(self, groups: NDArray[np.int64]) -> Pooled:
        """Return the rows pooled by the number of their group (n,), in order of first rows."""
        _, first, which = np.unique(groups, return_index=True, return_inverse=True)
        which = np.argsort(np.argsort(first))[which.reshape(-1)]
        first = np.sort(first)
        counts: NDArray[np.int64] = np.bincount(which, self.counts).astype(np.int64)
        columns = {name: _means(column, self.counts, which) for name, column in self.columns.items()}
        off = self.columns["value"] - columns["value"][which]
        known = self.known_variances
        return Pooled(
            columns,
            np.column_stack([_means(axis, self.counts, which) for axis in self.metres.T]),
            None if known is None else np.bincount(which, self.counts**2 * known) / counts**2,
            np.asarray(np.bincount(which, self.squares + self.counts * off**2), dtype=float),
            counts,
            self.lines[first],
        )


def _means(column: Array, counts: NDArray[np.int64], which: NDArray[np.int64]) -> Array:
    """Return the means of the numbers in each group, NaN where there is none."""
    known = np.isfinite(column)
    weights = np.where(known, counts, 0)
    total = np.bincount(which, weights)
    sums = np.bincount(which, weights * np.where(known, column, 0.0))
    means: Array = np.divide(sums, total, out=np.full(len(total), np.nan), where=total > 0)
    return means


def local_metres(lat: Array, lon: Array) -> Array:
    """Return positions (n, 2) in metres east and north of their middle, good to a percent over 100 km."""
    middle = np.radians(0.5 * (lat.min() + lat.max()))
    east = np.radians(lon - 0.5 * (lon.min() + lon.max())) * np.cos(middle)
    north = np.radians(lat - 0.5 * (lat.min() + lat.max()))
    return np.asarray(_RADIUS_M * np.column_stack([east, north]))


def thinned(rows: Pooled, spacing_m: float | None) -> tuple[Pooled, float, list[str]]:
    """Return the rows with those pooled that follow each other within half a spacing, it, and a note."""
    widest = float(np.hypot(*np.ptp(rows.metres, axis=0)))
    spacing = _spacing(rows.metres) if spacing_m is None else spacing_m
    if widest:  # else a single cast, whose depths keep its readings apart
        spacing = min(spacing, 0.1 * widest)
    step_z = _depth_step(rows)
    thin = rows.by(_stretches(rows, 0.5 * spacing, step_z))
    while len(thin) > MOST_READINGS and spacing < 0.1 * widest:
        spacing *= 1.25
        thin = rows.by(_stretches(rows, 0.5 * spacing, step_z))
    if len(thin) == len(rows):
        return rows, spacing, []
    step = f"{0.5 * spacing:.3g} m along the track" + ("" if step_z is None else " and depth")
    return thin, spacing, [f"{len(rows)} readings are pooled to {len(thin)}: at most one per {step}"]


def joined(rows: Pooled, tolerance_m: float) -> tuple[Pooled, list[str]]:
    """Return the rows with those pooled that have the same position, within a tolerance, and a note on it."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import cKDTree

    places, step_z = rows.metres, _depth_step(rows)
    if step_z is not None:
        places = np.column_stack([places, rows.columns["depth"] * (tolerance_m / step_z)])
    pairs = cKDTree(places).query_pairs(tolerance_m, output_type="ndarray")
    if not len(pairs):
        return rows, []
    links = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(len(rows),) * 2)
    same = rows.by(connected_components(links, directed=False)[1].astype(np.int64))
    repeats = counted(len(rows) - len(same), "station")
    return same, [f"{repeats} within {tolerance_m:g} m of another one pooled with it"]


def _spacing(metres: Array) -> float:
    width, height = np.ptp(metres, axis=0)
    return float(max(np.sqrt(width * height / _SITES), np.hypot(width, height) / 200.0))


def _depth_step(rows: Pooled) -> float | None:
    """Return the difference of depth at which readings count as apart; None without depths that differ."""
    if "depth" not in rows.columns or np.ptp(rows.columns["depth"]) == 0:
        return None
    return float(np.ptp(rows.columns["depth"])) / (2 * _LEVELS)


def _stretches(rows: Pooled, step: float, step_z: float | None) -> NDArray[np.int64]:
    """Return the number of the stretch (n,) of the track that each row lies in."""
    x, y = rows.metres.T.tolist()
    z = (rows.columns["depth"] / step_z).tolist() if step_z is not None else [0.0] * len(rows)
    numbers, number = np.zeros(len(rows), dtype=np.int64), 0
    x0, y0, z0, limit = x[0], y[0], z[0], step**2
    for i in range(1, len(rows)):
        if (x[i] - x0) ** 2 + (y[i] - y0) ** 2 >= limit or abs(z[i] - z0) >= 1.0:
            x0, y0, z0, number = x[i], y[i], z[i], number + 1
        numbers[i] = number
    return numbers


_NINES = re.compile(r"-?9{2,}(\.9+)?|-?9\.9{2,}")
_OTHERS = frozenset({-32768.0, 32767.0, 65535.0, 1e30, -1e30, 1e32, 1e34, 1e35, 1e36, 1e37, -8888.0, -7777.0})
_LIMIT = re.compile(r"[<>≤≥]=?\s*\d.*")
_FAR = 5.0
"""Distance from all other values, in ranges of these, at which such a number is suspect."""


def sentinel_doubts(values: Array, name: str, known: Sequence[float] = ()) -> list[str]:
    """Return a question for each number, such as -9999, that may stand for no value.

    It is a usual code, and lies by itself, far outside the range of the other values.

    Parameters
    ----------
    values : (n,) array
    name : str
        Column of the values.
    known : sequence of float
        Numbers already known to stand for no value.

    Examples
    --------
    >>> sentinel_doubts(np.array([4.1, -999.0, 5.2, 4.4, -999.0]), "temp")[0][:40]
    'temp is -999 in 2 rows and else between '
    >>> sentinel_doubts(np.array([98.0, 99.0, 95.0]), "saturation")
    []
    """
    finite = values[np.isfinite(values)]
    numbers, counts = np.unique(finite, return_counts=True)
    codes = np.array([_is_code(number) and number not in known for number in numbers], dtype=bool)
    real = numbers[~codes]
    if not len(real):
        return []
    low, high = float(real.min()), float(real.max())
    doubts = []
    for number, count in zip(numbers[codes], counts[codes], strict=True):
        if max(low - number, number - high) > _FAR * max(high - low, 1e-9 * abs(number)):
            doubts.append(
                f"{name} is {number:g} in {counted(int(count), 'row')} and else between {low:g} and "
                f"{high:g}; does it stand for no value? Then add --missing {number:g}"
            )
    return doubts


def _is_code(number: float) -> bool:
    return number in _OTHERS or _NINES.fullmatch(f"{number:.10g}") is not None


def check_limits(log: Table, name: str) -> None:
    """Raise an `InputError` if a column holds limits of detection such as <0.5.

    To leave them out would bias the map, for they are the lowest or the highest values.
    """
    rows = [row for row, cell in enumerate(log.cells[name]) if _LIMIT.fullmatch(cell)]
    if rows:
        raise InputError(
            f"{log.cells[name][rows[0]]!r} is a limit of detection, in {counted(len(rows), 'row')}",
            expected="a number",
            where=log.place(rows[0], name),
            fix=fix_of_limit(log.cells[name][rows[0]]) or "write a number instead",
        )

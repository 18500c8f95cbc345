"""Pool the rows of a log to as many as a fit can take: along the track, by place and depth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fieldbo._numerics.arrays import Array
from fieldbo.errors import counted

MOST_READINGS = 2000
"""A log is thinned to at most about this many; the time of a fit is cubic in their number."""

_WIDER = 1.25
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
    """Return the rows with those pooled that follow each other within half a spacing, it, and a note.

    If too many are left, of a long track, a grid or stations in any order, those in the same square are
    pooled, too; with depths, in the same box.
    """
    widest = float(np.hypot(*np.ptp(rows.metres, axis=0)))
    spacing = _spacing(rows.metres) if spacing_m is None else spacing_m
    if widest:  # else a single cast, whose depths keep its readings apart
        spacing = min(spacing, 0.1 * widest)
    step_z = _depth_step(rows)
    thin = along = rows.by(_stretches(rows, 0.5 * spacing, step_z))
    while len(thin) > MOST_READINGS:
        spacing *= _WIDER
        step_z = None if step_z is None else _WIDER * step_z
        thin = along.by(_boxes(along, 0.5 * spacing, step_z))
    if len(thin) == len(rows):
        return rows, spacing, []
    where = "along the track" if thin is along else "in each direction"
    step = f"{0.5 * spacing:.3g} m {where}" + ("" if step_z is None else " and depth")
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


def _boxes(rows: Pooled, side: float, step_z: float | None) -> NDArray[np.int64]:
    """Return the number of the box (n,) that each row lies in."""
    places = [rows.metres / side]
    if step_z is not None:
        places.append(rows.columns["depth"][:, None] / step_z)
    corners = np.concatenate(places, axis=1)
    boxes = np.floor(corners - corners.min(axis=0)).astype(np.int64)
    return np.asarray(np.unique(boxes, axis=0, return_inverse=True)[1], dtype=np.int64).reshape(-1)

"""Sums of the variance reductions that a reading at each site would bring (Bogunovic et al. 2016, eq. 18).

===========  ===============================================================================
``N, n``     candidates, readings
``M``        members: the candidates whose variances count
``V``        ``L^-1 k(X, C)``, (n, N); the posterior covariance is ``k(C, C) - V^T V``
===========  ===============================================================================

If they fit in memory, the covariances of members with all candidates are kept in single precision, and each
row is updated with the new readings when it is next used; otherwise they are recomputed.

Rounding must not decide: it depends on when a row was made, and on whether there was memory to keep it, so a
resumed run would go elsewhere. `Lookahead.gains` only narrows down the candidates: every result comes with an
error bound, and :meth:`fieldbo.belief.surface.Surface.exact_gains` settles the rest in double precision.
`Lookahead.covariances` subtracts one reading after the other from the prior, always in the same order, so
that a row has the same bits whenever it is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fieldbo._numerics.arrays import Array
from fieldbo.belief.kernels import Kernel, Matern32, Matern52, SquaredExponential, Stationary

_UNIT = 2.0**-24  # of single precision
_ROWS = 256  # computed at once
_REMADE = 128  # updates after which a row is recomputed, as rounding accumulates
_FEW = 16  # rows up to which numpy is as fast as a compiled loop
_KINDS: dict[type, int] = {SquaredExponential: 0, Matern32: 1, Matern52: 2}  # as the loops call them

Single = NDArray[np.float32]
Whole = NDArray[np.int64]


def free_bytes() -> float:
    """Return the memory that is available; 4 GB if the system does not report it."""
    try:
        meminfo = Path("/proc/meminfo").read_text(encoding="ascii")
        return 1024.0 * int(meminfo.split("MemAvailable:")[1].split()[0])
    except (OSError, IndexError, ValueError):
        return 4e9


def posterior_covariance(kernel: Kernel, candidates: Array, V: Array, rows: Whole, columns: Whole) -> Array:
    """Return posterior covariances (len(rows), len(columns)) between candidates, in double precision.

    Parameters
    ----------
    kernel : Kernel
    candidates : (N, d) array
    V : (n, N) array
    rows, columns : int arrays
        Indices of candidates.
    """
    prior = kernel.between(candidates, rows, columns)
    if not len(V):
        return prior
    if 4 * len(columns) < len(candidates):
        return prior - V[:, rows].T @ V[:, columns]
    return prior - (V[:, rows].T @ V)[:, columns]  # saves a copy of most of V


def known_kernel(kernel: Kernel, candidates: Array) -> tuple[int, Array] | None:
    """Return what the compiled loops need: the kernel's kind, and the candidates (d, N) in length scales.

    None for a kernel that the loops do not know; its covariances are then computed by calling it.
    """
    kind = _KINDS.get(type(kernel))
    if kind is None or not isinstance(kernel, Stationary):
        return None
    return kind, np.ascontiguousarray((candidates / kernel.length_scales).T)


class Gains(NamedTuple):
    """Truncated variance reductions (N, K) by candidate and level, and bounds (N, K) of their errors."""

    value: Array
    error: Array


class Lookahead:
    """Covariances between candidates, and sums over them.

    A working buffer, owned by a surface.

    Parameters
    ----------
    kernel : Kernel
    candidates : (N, d) array
    most_bytes : float, optional
        Memory for the covariances; if they need more, none are kept. By default half of what is free.
    """

    def __init__(self, kernel: Kernel, candidates: Array, most_bytes: float | None = None) -> None:
        self.kernel, self.candidates = kernel, candidates
        self.most_bytes = free_bytes() / 2 if most_bytes is None else most_bytes
        # Everything is in units of the prior's variance: single precision has no digits for 1e-24.
        self._unit = float(np.max(kernel.diagonal(candidates)))
        self._compiled = known_kernel(kernel, candidates)
        self._V: Single = np.empty((0, len(candidates)), np.float32)
        self._n = 0
        self._kept: Single | None = None
        self._since: Whole = np.full(len(candidates), -1)  # rows of V in each kept row; -1: not computed
        self._made: Whole = np.full(len(candidates), -1)  # rows of V in it when it was computed

    @property
    def kept_bytes(self) -> int:
        """Memory that the covariances of all candidates need."""
        return 4 * len(self.candidates) ** 2

    @property
    def keeps(self) -> bool:
        """Whether the covariances fit in the memory allowed."""
        return self.kept_bytes <= self.most_bytes

    def gains(self, V: Array, variance: Array, members: Whole, noise: Array, floor: float) -> Gains:
        """Return ``sum_M min(cov(x, m)^2 / (noise + s^2_x), max(s^2_m - floor, 0))`` for all candidates x.

        Parameters
        ----------
        V : (n, N) array
        variance : (N,) array
        members : (m,) int array
        noise : (N, K) array
            Of a reading at each candidate and level.
        floor : float
            Variances below it do not count: ``eta^2 / beta``.

        Returns
        -------
        Gains
            In the squared unit of the values, as the variances are.
        """
        self._read(V)
        unit = self._unit
        # A candidate that is known exactly and read without noise brings no gain.
        total = (noise + variance[:, None]) / unit
        scale = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
        room = ((variance[members] - floor) / unit).astype(np.float32)
        value = np.zeros_like(noise)
        add = self._add_from_kept if self.keeps else self._add_anew
        add(members, room, np.ascontiguousarray(scale.T, np.float32), value)
        e = self._rounding(int(np.max(self._n - self._made[members], initial=0)) if self.keeps else 0)
        rounding = 2.0 * e * np.sqrt(scale * len(members) * value) + scale * len(members) * e**2
        return Gains(unit * value, unit * (rounding + 70.0 * _UNIT * value))  # sums of 64 terms

    def covariances(self, V: Array, members: Whole) -> Iterator[tuple[slice, Single, Whole]]:
        """Yield covariances with all candidates, for some of the members at a time.

        Parameters
        ----------
        V : (n, N) array
        members : (m,) int array

        Yields
        ------
        some : slice
            Of `members`.
        C : (., N) float32 array
            In units of `unit`. Never change it, and use it before the next step.
        rows : int array
            The rows of C that belong to those members, in their order.
        """
        self._read(V)
        kept = self._room_for_kept() if self.keeps else None
        if kept is None:
            scratch = np.empty((min(_ROWS, len(members)), len(self.candidates)), np.float32)
        for start in range(0, len(members), _ROWS):  # a few rows at a time stay in the cache
            mine = members[start : start + _ROWS]
            some, at = slice(start, start + len(mine)), np.arange(len(mine))
            if kept is None:
                self._begin(mine, at, scratch)
                self._update(mine, at, np.zeros(len(mine), dtype=int), scratch)
                yield some, scratch, at
                continue
            new = mine[self._made[mine] != 0]
            self._begin(new, new, kept)
            self._since[new] = self._made[new] = 0
            behind = mine[self._since[mine] < self._n]
            self._update(behind, behind, self._since[behind], kept)
            self._since[behind] = self._n
            yield some, kept, mine

    def _begin(self, members: Whole, at: Whole, rows: Single) -> None:
        """Fill the `rows` at some places with the members' prior covariances."""
        from fieldbo.belief._lookahead_loops import begin_rows

        if self._compiled is not None:
            if len(members):
                begin_rows(*self._compiled, members, at, rows)
            return
        everywhere = np.arange(len(self.candidates))
        for k, m in zip(at, members, strict=True):  # together with others, products may be rounded otherwise
            rows[k] = self.kernel.between(self.candidates, np.array([m]), everywhere)[0] / self._unit

    def _update(self, members: Whole, at: Whole, since: Whole, rows: Single) -> None:
        """Subtract from the `rows` at some places what the readings since then explain."""
        from fieldbo.belief._lookahead_loops import update_rows

        if len(members) and self._n:
            update_rows(rows, at, members, since, self._V, self._n)

    @property
    def unit(self) -> float:
        """The prior's largest variance."""
        return self._unit

    @property
    def rounding(self) -> float:
        """A bound of the errors of `covariances`: of the prior, and of one update per reading."""
        return self._rounding(self._n)

    def _rounding(self, updates: int) -> float:
        """Return a bound of the covariances' errors: of the prior, of sums over readings, of updates.

        The roundings of a sum are independent (the bound allows seven of their standard deviations); updates
        too small to change anything all err in one direction, by half a unit each.
        """
        return _UNIT * (6.0 + 2.0 * float(np.sqrt(self._n)) + 0.5 * updates)

    def exact_gains(
        self, V: Array, variance: Array, rows: Whole, noise: Array, members: Whole, floor: float
    ) -> Array:
        """Return the sums (n,) in double precision for the candidates `rows`, read with `noise` (n,).

        Parameters
        ----------
        V, variance, members, floor
            As for `gains`.
        rows : (n,) int array
        noise : (n,) array
        """
        from fieldbo.belief._lookahead_loops import exact_gains

        total = noise + variance[rows]
        scale = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
        room = np.maximum(variance[members] - floor, 0.0)
        if self._compiled is not None and len(rows) > _FEW:
            of_members = np.ascontiguousarray(V[:, members].T)
            of_rows = np.ascontiguousarray(V[:, rows].T)
            gains: Array = exact_gains(
                *self._compiled, self._unit, rows, members, of_rows, of_members, scale, room
            )
            return gains
        gains = np.empty(len(rows))
        for start in range(0, len(rows), _ROWS):
            some = slice(start, start + _ROWS)
            covariance = posterior_covariance(self.kernel, self.candidates, V, rows[some], members)
            gains[some] = np.minimum(np.square(covariance) * scale[some, None], room).sum(axis=1)
        return gains

    def _read(self, V: Array) -> None:
        """Copy the rows of V that are new."""
        n = len(V)
        if n > len(self._V):
            grown = np.empty((max(16, n + n // 2), V.shape[1]), np.float32)
            grown[: self._n] = self._V[: self._n]
            self._V = grown
        self._V[self._n : n] = V[self._n :] / np.sqrt(self._unit)
        self._n = n

    def _add_from_kept(self, members: Whole, room: Single, scale: Single, out: Array) -> None:
        from fieldbo.belief._lookahead_loops import add_gains

        kept = self._kept_rows(members)
        add_gains(kept, members, self._since[members], self._V, self._n, room, scale, out)
        self._since[members] = self._n

    def _kept_rows(self, members: Whole) -> Single:
        """Return the covariances that are kept, with a row for each of the members; some may be outdated."""
        kept = self._room_for_kept()
        stale = (self._made[members] < 0) | (self._n - self._made[members] > _REMADE)
        missing = members[stale]
        if len(missing):
            self._make(missing, kept)
        return kept

    def _room_for_kept(self) -> Single:
        """Return the covariances that are kept; at first, none of them is known."""
        if self._kept is None:
            self._kept = np.empty((len(self.candidates),) * 2, np.float32)
        return self._kept

    def _make(self, members: Whole, kept: Single) -> None:
        from fieldbo.belief._lookahead_loops import make_rows

        if self._compiled is not None:
            make_rows(*self._compiled, members, self._V[: self._n], kept)
        else:
            for start in range(0, len(members), _ROWS):
                some = members[start : start + _ROWS]
                kept[some] = self._rows(some)
        self._since[members] = self._made[members] = self._n

    def _add_anew(self, members: Whole, room: Single, scale: Single, out: Array) -> None:
        from fieldbo.belief._lookahead_loops import add_gains, add_gains_of_tiles

        if self._compiled is not None:
            others = np.ones(len(self.candidates), dtype=bool)
            others[members] = False
            order = np.concatenate([members, np.flatnonzero(others)])  # members first
            kind, scaled = self._compiled
            gains = np.zeros_like(out)
            V = np.ascontiguousarray(self._V[: self._n, order])
            scaled, scale = np.ascontiguousarray(scaled[:, order]), np.ascontiguousarray(scale[:, order])
            add_gains_of_tiles(kind, scaled, V, room, scale, gains)
            out[order] += gains
            return
        for start in range(0, len(members), _ROWS):
            some = slice(start, start + _ROWS)
            rows = self._rows(members[some])
            indices = np.arange(len(rows))
            add_gains(rows, indices, indices, self._V, 0, room[some], scale, out)  # already up to date

    def _rows(self, members: Whole) -> Single:
        """Return the posterior covariances (R, N) of members with all candidates, for any kernel."""
        V = self._V[: self._n]
        everywhere = np.arange(len(self.candidates))
        prior = self.kernel.between(self.candidates, members, everywhere) / self._unit
        return np.ascontiguousarray(prior - V[:, members].T @ V, np.float32)

    def copy(self) -> Lookahead:
        """Return an independent copy, which may use the memory that this one leaves."""
        other = copy(self)
        other._V = self._V[: self._n].copy()
        other._since, other._made = self._since.copy(), self._made.copy()
        other.most_bytes = max(0.0, self.most_bytes - self.kept_bytes)
        if not other.keeps:
            other._kept = None
        elif self._kept is not None:
            other._kept = self._kept.copy()
        return other

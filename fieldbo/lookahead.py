"""What a reading at each site would take off the variances at all others: eq. 18 of Bogunovic et al. 2016.

===========  ===============================================================================
``N, n``     candidates, readings
``M``        members: the candidates whose variances count
``V``        ``L^-1 k(X, C)``, (n, N); the posterior covariance is ``k(C, C) - V^T V``
===========  ===============================================================================

The covariances of members with all candidates are kept in single precision where they fit in memory, each
row brought up to date by the readings since it was last looked at; otherwise they are computed anew, tile by
tile. Single precision only finds who is in question: every answer comes with a bound of its error, and
:meth:`fieldbo.surface.Surface.covariance` has the digits.
"""

from __future__ import annotations

import os
from copy import copy
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fieldbo.domain import Array
from fieldbo.kernels import Kernel, Matern32, Matern52, SquaredExponential, Stationary

_UNIT = 2.0**-24  # of single precision
_ROWS = 256  # that are made at once
_KINDS: dict[type, int] = {SquaredExponential: 0, Matern32: 1, Matern52: 2}  # as the loops call them

Single = NDArray[np.float32]
Whole = NDArray[np.int64]


def free_bytes() -> float:
    """Return how much memory the machine has free."""
    try:
        return float(os.sysconf("SC_AVPHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return 4e9


def _compiled(kernel: Kernel, candidates: Array) -> tuple[int, Array, np.float32] | None:
    """Return a kernel as the loops know it: kind, candidates (d, N) in length scales, and variance.

    None for any other kernel, whose covariances are computed as it says.
    """
    kind = _KINDS.get(type(kernel))
    if kind is None or not isinstance(kernel, Stationary):
        return None
    return kind, np.ascontiguousarray((candidates / kernel.length_scales).T), np.float32(kernel.variance)


class Gains(NamedTuple):
    """Truncated variance reductions (N, K) by candidate and level, and a bound (N, K) of their errors."""

    value: Array
    error: Array


class Lookahead:
    """Covariances between candidates, for sums over them.

    A working buffer, fed by the surface that owns it.

    Parameters
    ----------
    kernel : Kernel
    candidates : (N, d) array
    most_bytes : float, optional
        What the covariances may take; where they would need more, nothing is kept. By default half of
        the memory that is free.
    """

    def __init__(self, kernel: Kernel, candidates: Array, most_bytes: float | None = None) -> None:
        self.kernel, self.candidates = kernel, candidates
        self.most_bytes = free_bytes() / 2 if most_bytes is None else most_bytes
        self._prior_variance = float(np.max(kernel.diagonal(candidates)))
        self._compiled = _compiled(kernel, candidates)
        self._V: Single = np.empty((0, len(candidates)), np.float32)
        self._n = 0
        self._kept: Single | None = None
        self._since: Whole = np.full(len(candidates), -1)  # rows of V in each kept row; -1: not made yet

    @property
    def kept_bytes(self) -> int:
        """What the covariances of all candidates take."""
        return 4 * len(self.candidates) ** 2

    @property
    def keeps(self) -> bool:
        """Whether they fit in the memory that they may take."""
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
            What falls below it does not count: ``eta^2 / beta``.
        """
        self._read(V)
        # A candidate that is known exactly and read without noise has nothing to tell.
        total = noise + variance[:, None]
        scale = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
        room = (variance[members] - floor).astype(np.float32)
        value = np.zeros_like(noise)
        add = self._add_from_kept if self.keeps else self._add_anew
        add(members, room, np.ascontiguousarray(scale.T, np.float32), value)
        # Rounding of the covariances (seven of their standard deviations), and of sums of 64 terms.
        e = _UNIT * self._prior_variance * (6.0 + 2.0 * np.sqrt(self._n))
        rounding = 2.0 * e * np.sqrt(scale * len(members) * value) + scale * len(members) * e**2
        return Gains(value, rounding + 70.0 * _UNIT * value)

    def _read(self, V: Array) -> None:
        """Take over the rows of V that came since the last time."""
        n = len(V)
        if n > len(self._V):
            grown = np.empty((max(16, n + n // 2), V.shape[1]), np.float32)
            grown[: self._n] = self._V[: self._n]
            self._V = grown
        self._V[self._n : n] = V[self._n :]
        self._n = n

    def _add_from_kept(self, members: Whole, room: Single, scale: Single, out: Array) -> None:
        from fieldbo.loops.lookahead import add_gains, make_rows

        if self._kept is None:
            self._kept = np.empty((len(self.candidates),) * 2, np.float32)
        missing = members[self._since[members] < 0]
        if len(missing) and self._compiled is not None:
            make_rows(*self._compiled, missing, self._V[: self._n], self._kept)
        else:
            for some in np.array_split(missing, len(missing) // _ROWS + 1):
                self._kept[some] = self._rows(some)
        self._since[missing] = self._n
        add_gains(self._kept, members, self._since[members], self._V, self._n, room, scale, out)
        self._since[members] = self._n

    def _add_anew(self, members: Whole, room: Single, scale: Single, out: Array) -> None:
        from fieldbo.loops.lookahead import add_gains, add_gains_of_tiles

        if self._compiled is not None:
            others = np.ones(len(self.candidates), dtype=bool)
            others[members] = False
            order = np.concatenate([members, np.flatnonzero(others)])  # members first
            kind, scaled, variance = self._compiled
            found = np.zeros_like(out)
            V = np.ascontiguousarray(self._V[: self._n, order])
            scaled, scale = np.ascontiguousarray(scaled[:, order]), np.ascontiguousarray(scale[:, order])
            add_gains_of_tiles(kind, scaled, variance, V, room, scale, found)
            out[order] += found
            return
        for start in range(0, len(members), _ROWS):
            some = slice(start, start + _ROWS)
            rows = self._rows(members[some])
            every = np.arange(len(rows))
            add_gains(rows, every, every, self._V, 0, room[some], scale, out)  # already up to date

    def _rows(self, members: Whole) -> Single:
        """Return the posterior covariances (R, N) of members with all candidates, for any kernel."""
        V = self._V[: self._n]
        prior = self.kernel(self.candidates[members], self.candidates)
        return np.ascontiguousarray(prior - V[:, members].T @ V, np.float32)

    def copy(self) -> Lookahead:
        """Return a look-ahead of its own; it keeps covariances only where there is room for both."""
        other = copy(self)
        other._V, other._since = self._V.copy(), self._since.copy()
        if 2 * self.kept_bytes > self.most_bytes:
            other.most_bytes, other._kept = 0.0, None
        elif self._kept is not None:
            other._kept = self._kept.copy()
        return other

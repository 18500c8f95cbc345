"""Truncated variance reduction of every site of a square grid, over all sites."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from timing import HERE, Plan, Row, Timings, alternate, peer, thread_limits, timed

from fieldbo._numerics.blas import one_blas_thread
from fieldbo.belief.kernels import Matern52
from fieldbo.belief.posterior import Belief
from fieldbo.belief.surface import Surface

READINGS = 100
NOISE = 0.01
LENGTH_SCALES = np.array([0.1, 0.1])
LOW_MEMORY_BYTES = 2_000_000_000


def grid(side: int) -> np.ndarray:
    """Return the sites (side^2, 2) of a grid on the unit square."""
    axis = np.linspace(0.0, 1.0, side)
    return np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)


def readings(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n sites (n, 2) and their values (n,): the first n of a fixed sequence."""
    rng = np.random.default_rng(0)
    x = rng.random((1000, 2))[:n]
    return x, np.sin(6 * x[:, 0]) * np.cos(4 * x[:, 1]) + np.sqrt(NOISE) * rng.standard_normal(1000)[:n]


class Scoring:
    """A surface over a grid after 100 readings; `memory_bytes` limits what it keeps."""

    def __init__(self, side: int, memory_bytes: int | None = None) -> None:
        x, y = readings(READINGS)
        belief = Belief(Matern52(LENGTH_SCALES)).condition_on(x, y, np.full(READINGS, NOISE))
        self.surface = Surface(belief, grid(side), memory_bytes)

    def gains(self) -> np.ndarray:
        """Return the reduction (N,) that a reading of each site would bring."""
        size = self.surface.size
        every, noise = np.ones(size, dtype=bool), np.full((size, 1), NOISE)
        return self.surface.truncated_gains(every, noise, 0.0).value[:, 0]

    def seconds(self) -> float:
        """Return the time of scoring every site."""
        return timed(self.gains)[0]

    def step_seconds(self) -> float:
        """Return the time of a mission's step: add a reading, and score every site."""
        x, y = readings(self.surface.belief.size + 1)

        def step() -> np.ndarray:
            self.surface.append(x[-1:], y[-1:], NOISE)
            return self.gains()

        return timed(step)[0]

    def note(self, runs: int) -> str:
        """Describe how long a whole step takes."""
        self.step_seconds()  # the first compiles
        return f"{np.median([self.step_seconds() for _ in range(runs)]) * 1e3:.3g} ms with a reading added"


def against_trieste(side: int, name: str, plan: Plan) -> list[Row]:
    """Score every site; the peer is Trieste's integrated variance reduction."""
    x, y = readings(READINGS)
    data = {
        "x": x,
        "y": y,
        "noise": NOISE,
        "variance": 1.0,
        "length_scales": LENGTH_SCALES,
        "sites": grid(side),
    }
    with ExitStack() as stack:
        stack.enter_context(one_blas_thread())
        own = Scoring(side)
        gains = own.gains()
        peers = {}
        if plan.peers:
            trieste = stack.enter_context(peer("trieste_reduction", data, plan.threads))
            np.testing.assert_allclose(gains, trieste.answer, rtol=1e-3, atol=1e-3)
            peers["trieste"] = trieste.seconds
        own.seconds()  # the first compiles
        found = alternate(runs := plan.runs or 20, own.seconds, peers)
        return found.rows(name, plan, dict.fromkeys(["", *peers], own.note(runs)))


def against_memory(side: int, name: str, plan: Plan) -> list[Row]:
    """Score every site; the peer is the time of reading all covariances from memory once."""
    with one_blas_thread():
        own = Scoring(side)
        own.gains()
        own.seconds()
        peers = {"memory bandwidth": Reading(4 * own.surface.size**2).seconds} if plan.peers else {}
        found = alternate(runs := plan.runs or (9 if side <= 100 else 5), own.seconds, peers)
        return found.rows(name, plan, dict.fromkeys(["", *peers], own.note(runs)))


class Reading:
    """Memory read by all threads at once."""

    def __init__(self, n_bytes: int) -> None:
        self._numbers = np.ones(min(n_bytes, 400_000_000) // 4, dtype=np.float32)  # far beyond every cache
        self._times = n_bytes / self._numbers.nbytes
        self._pass = self._compiled()
        self._pass(self._numbers)

    def _compiled(self) -> Callable[[np.ndarray], object]:
        from numba import njit, prange

        @njit(parallel=True, fastmath=True)
        def summed(numbers):  # type: ignore[no-untyped-def]
            total = np.float32(0.0)
            for i in prange(len(numbers)):
                total += numbers[i]
            return total

        return summed

    def seconds(self) -> float:
        """Return how long all bytes take."""
        return self._times * timed(lambda: self._pass(self._numbers))[0]


class Updating(Reading):
    """Memory read and written by all threads at once."""

    def _compiled(self) -> Callable[[np.ndarray], object]:
        from numba import njit, prange

        @njit(parallel=True, fastmath=True)
        def updated(numbers):  # type: ignore[no-untyped-def]
            for i in prange(len(numbers)):
                numbers[i] *= np.float32(0.5)

        return updated


def in_little_memory(side: int, name: str, plan: Plan) -> list[Row]:
    """Score every site in a separate process that may keep 2 GB."""
    done = subprocess.run(
        [sys.executable, HERE / "truvar.py", str(side), str(plan.runs or 3)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env=os.environ | thread_limits(plan.threads),
    )
    measured = json.loads(done.stdout.splitlines()[-1])
    note = f"peak resident memory {measured['peak_gb']:.2f} GB"
    return Timings(measured["seconds"], {}).rows(name, plan, {"": note})


def _main(side: int, runs: int) -> None:
    """Measure in this process, and print the seconds and the peak memory."""
    with one_blas_thread():
        own = Scoring(side, LOW_MEMORY_BYTES)
        own.gains()
        spent = [own.seconds() for _ in range(runs)]
    print(json.dumps({"seconds": spent, "peak_gb": peak_bytes() / 1e9}))


def peak_bytes() -> int:
    """Return the peak memory of this process; `getrusage` would include its parent's."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return 1024 * int(re.search(r"VmHWM:\s+(\d+) kB", status)[1])


if __name__ == "__main__":
    _main(*map(int, sys.argv[1:]))

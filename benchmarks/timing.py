"""Rows of results, and peers in separate processes."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")

HERE = Path(__file__).parent
PEERS_PYTHON = HERE.parent / ".venv-peers" / "bin" / "python"
GPCAM_PYTHON = HERE.parent / ".venv-gpcam" / "bin" / "python"
"""Trieste wants an older NumPy than gpCAM."""


@dataclass(frozen=True)
class Row:
    """One line of the result: a benchmark, and one of its peers.

    Attributes
    ----------
    name : str
        The benchmark.
    fieldbo_s : float
        Median seconds.
    peer : str or None
    peer_s : float or None
        Median seconds.
    ratio : float or None
        The peer's time divided by fieldbo's.
    runs : int
        Number of timed runs of each side.
    threads : int
        Threads per side.
    note : str
        How the answers compare, or peak memory.
    """

    name: str
    fieldbo_s: float
    peer: str | None
    peer_s: float | None
    ratio: float | None
    runs: int
    threads: int
    note: str = ""


@dataclass(frozen=True)
class Plan:
    """How to measure.

    Parameters
    ----------
    peers : bool
        Whether peers are measured, too.
    runs : int or None
        Number of runs to time; by default each benchmark's own.
    threads : int
        Threads per side.
    """

    peers: bool
    runs: int | None
    threads: int


@dataclass(frozen=True)
class Timings:
    """Seconds of each run, of fieldbo and of each peer by name."""

    own_s: list[float]
    peers_s: dict[str, list[float]]

    def rows(self, name: str, plan: Plan, notes: Mapping[str, str] | None = None) -> list[Row]:
        """Return one row per peer, or one without a peer; `notes` are by peer, "" for fieldbo."""
        own, runs = float(np.median(self.own_s)), len(self.own_s)
        notes = notes or {}
        if not self.peers_s:
            return [Row(name, own, None, None, None, runs, plan.threads, notes.get("", ""))]
        medians = {peer: float(np.median(s)) for peer, s in self.peers_s.items()}
        return [
            Row(name, own, peer, s, s / own, runs, plan.threads, notes.get(peer, ""))
            for peer, s in medians.items()
        ]


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """Return the seconds that `work` takes, and its result."""
    start = perf_counter()
    result = work()
    return perf_counter() - start, result


def alternate(runs: int, own: Callable[[], float], peers: Mapping[str, Callable[[], float]]) -> Timings:
    """Time fieldbo and its peers in turn, so that a busy machine affects both alike.

    Parameters
    ----------
    runs : int
    own : Callable
        Runs once and returns the seconds.
    peers : mapping of str to Callable
        The same for each peer.
    """
    own_s: list[float] = []
    peers_s: dict[str, list[float]] = {name: [] for name in peers}
    for _ in range(runs):
        own_s.append(own())
        for name, work in peers.items():
            peers_s[name].append(work())
    return Timings(own_s, peers_s)


class Peer:
    """A peer that works in a separate process on request, and sleeps in between.

    Attributes
    ----------
    answer : array or float
        Its result while warming up.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.answer = np.asarray(self._report()["answer"])

    def _report(self) -> Any:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith('{"seconds"'):  # libraries print what they like
                return json.loads(line)
        raise SystemExit(f"the peer {self._process.args} ended early; see its output above")

    def seconds(self) -> float:
        """Let it work once, and return the seconds."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return float(self._report()["seconds"])


@contextmanager
def peer(
    script: str, data: Mapping[str, Any], threads: int, python: str | Path | None = None
) -> Iterator[Peer]:
    """Start a script of `peers/` on `data`; it is warm when the block begins."""
    if python is None:
        python = GPCAM_PYTHON if script.startswith("gpcam") else PEERS_PYTHON
    if not Path(python).exists():
        raise SystemExit(f"{python} does not exist: run `make bench-peers`, or add --no-peers")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "data.npz"
        np.savez(file, **data)
        process = subprocess.Popen(
            [python, HERE / "peers" / f"{script}.py", file, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | thread_limits(threads),
        )
        try:
            yield Peer(process)
        finally:
            process.communicate()  # closes its input, which ends it


def thread_limits(threads: int) -> dict[str, str]:
    """Return environment variables that limit the threads of libraries, which sleep while they wait."""
    counted = (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "NUMBA_NUM_THREADS",
        "TF_NUM_INTRAOP_THREADS",
        "TF_NUM_INTEROP_THREADS",
    )
    quiet = {"OMP_WAIT_POLICY": "passive", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    return dict.fromkeys(counted, str(threads)) | quiet

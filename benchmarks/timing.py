"""What every benchmark shares: a case, a row, and medians of runs that alternate with a peer's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

HERE = Path(__file__).parent
PEERS_PYTHON = HERE.parent / ".venv-peers" / "bin" / "python"


@dataclass(frozen=True)
class Row:
    """One line of the result.

    Attributes
    ----------
    name : str
        Of the benchmark.
    fieldbo_s : float
        Median seconds.
    peer : str or None
    peer_s : float or None
        Median seconds.
    ratio : float or None
        How many times longer the peer takes.
    runs : int
        As many of each are timed.
    threads : int
        As many each may use.
    note : str
        What else was found, such as the likelihood each reached.
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

    Attributes
    ----------
    peers : bool
    runs : int or None
        None: as many as a benchmark thinks fit.
    threads : int
    """

    peers: bool
    runs: int | None
    threads: int

    def row(
        self, name: str, own_s: list[float], peer: str | None = None, peer_s: list[float] | None = None, note: str = ""
    ) -> Row:
        """Return the row of the seconds measured."""
        own = float(np.median(own_s))
        other = None if peer_s is None else float(np.median(peer_s))
        return Row(name, own, peer, other, None if other is None else other / own, len(own_s), self.threads, note)


def seconds(work: Callable[[], object]) -> float:
    """Return how long some work takes."""
    start = perf_counter()
    work()
    return perf_counter() - start


class Peer:
    """A peer in a process of its own, which works when it is told to.

    It prints one JSON line when it has warmed up, and one a run: ``{"seconds": ..., "answer": [...]}``.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.answer = self._read()["answer"]

    def _read(self) -> Any:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith('{"seconds"'):  # libraries print what they like
                return json.loads(line)
        raise RuntimeError(f"{self._process.args} ended with {self._process.wait()}; what it said is above")

    def seconds(self) -> float:
        """Let it work once, and return how long that took."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return float(self._read()["seconds"])


@contextmanager
def peer(
    script: str, data: Mapping[str, Any], threads: int, python: Path = PEERS_PYTHON
) -> Iterator[Peer]:
    """Start a script of `benchmarks/peers` on `data`, with its own Python."""
    if not python.exists():
        raise SystemExit(f"there is no {python}: run `make bench-peers`, or add --no-peers")
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
            assert process.stdin is not None
            process.stdin.close()
            process.wait()


OWN_PYTHON = Path(sys.executable)


def thread_limits(threads: int) -> dict[str, str]:
    """Return the environment in which libraries use that many threads, and let them sleep when idle."""
    names = ("OMP", "OPENBLAS", "MKL", "NUMBA", "TF_INTRAOP", "TF_INTEROP")
    counts = {f"{name}_NUM_THREADS": str(threads) for name in names}
    counts |= {"TF_NUM_INTRAOP_THREADS": str(threads), "TF_NUM_INTEROP_THREADS": str(threads)}
    return counts | {"OMP_WAIT_POLICY": "passive", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}

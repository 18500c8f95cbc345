"""Run a benchmark of a checkout on request: ``python checkout.py DATA THREADS``, as `timing.peer` does."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

data = np.load(sys.argv[1])
root, name, threads = Path(str(data["root"])), str(data["name"]), int(sys.argv[2])
sys.path[:0] = [str(root), str(root / "benchmarks")]

from run import benchmarks  # noqa: E402 - from the checkout
from timing import Plan  # noqa: E402

import fieldbo  # noqa: E402

assert root in Path(fieldbo.__file__).parents, f"{fieldbo.__file__} is not in {root}"
work, plan = benchmarks()[name], Plan(peers=False, runs=1, threads=threads)


def report() -> None:
    """Print the seconds of one run."""
    row = work(name, plan)[0]
    print(json.dumps({"seconds": row.fieldbo_s, "answer": 0.0}), flush=True)


report()  # compiles
for _ in sys.stdin:
    report()

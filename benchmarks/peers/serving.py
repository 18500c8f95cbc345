"""The peer's end: warm up, then work once for each line that comes in."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

import numpy as np

Data = Mapping[str, np.ndarray]
Work = Callable[[], Any]
Answer = Callable[[Any], Any]
"""From what the work returns to an array or a number that can be compared; not timed."""


def serve(prepare: Callable[[Data, int], tuple[Work, Answer]]) -> None:
    """Prepare for the data file and the number of threads that the command line names; work when told."""
    with np.load(sys.argv[1]) as file:
        work, answer = prepare(dict(file), int(sys.argv[2]))
    _report(work, answer)
    for _ in sys.stdin:
        _report(work, answer)


def _report(work: Work, answer: Answer) -> None:
    start = perf_counter()
    result = work()
    seconds = perf_counter() - start
    print(json.dumps({"seconds": seconds, "answer": np.asarray(answer(result)).tolist()}), flush=True)

"""Time fieldbo and its peers: ``python benchmarks/run.py NAME... [--no-peers] [--json FILE]``."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path

from timing import Plan, Row, thread_limits

Benchmark = Callable[[str, Plan], list[Row]]


def benchmarks() -> dict[str, Benchmark]:
    """Return all benchmarks by name, in order."""
    import cell
    import gp
    import mission
    import resuming
    import rollout
    import truvar

    return {
        "truvar-50": partial(truvar.against_trieste, 50),
        "truvar-100": partial(truvar.against_memory, 100),
        "truvar-200": partial(truvar.against_memory, 200),
        "truvar-200-lowmem": partial(truvar.in_little_memory, 200),
        "rollout-scatter500": partial(rollout.against_botorch, rollout.scattered(500), True),
        "rollout-grid50": partial(rollout.against_botorch, truvar.grid(50), False),
        "rollout-grid100": partial(rollout.alone, truvar.grid(100)),
        "lambo-decision": cell.lambo,
        "subsets-decision": cell.subsets,
        "gp-append-500": partial(gp.append, 500),
        "gp-append-2000": partial(gp.append, 2000),
        "gp-append-5000": partial(gp.append, 5000),
        "gp-fit": partial(gp.fitted, 200),
        "gp-fit-50": partial(gp.fitted, 50),
        "gp-fit-1000": partial(gp.fitted, 1000),
        "mission-100": mission.plain,
        "mission-100-recorded": mission.recorded,
        "resume-1000": resuming.resumed,
        "follow-1000": resuming.followed,
    }


def line(row: Row) -> str:
    """Return a row as one line of text."""
    peer = "" if row.peer is None else f"  {row.peer} {row.peer_s:.4g} s, {row.ratio:.2f} times"
    note = f"  ({row.note})" if row.note else ""
    return f"{row.name:<21} {row.fieldbo_s:10.4g} s{peer}{note}  [runs {row.runs}, threads {row.threads}]"


def main() -> None:
    """Run the named benchmarks, or all of them."""
    parser = argparse.ArgumentParser(description="Time fieldbo and its peers.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="benchmarks to run (default: all)")
    parser.add_argument("--no-peers", action="store_true", help="time fieldbo alone")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows to a file")
    parser.add_argument(
        "--runs", type=int, metavar="N", help="number of runs to time (default: depends on the benchmark)"
    )
    parser.add_argument("--threads", type=int, default=2, metavar="N", help="threads per side (default: 2)")
    arguments = parser.parse_args()
    os.environ.update(thread_limits(arguments.threads))  # before numpy and numba are loaded
    every = benchmarks()
    for name in arguments.names:
        if name not in every:
            parser.error(f"unknown benchmark {name}; the benchmarks are {', '.join(every)}")
    rows: list[Row] = []
    for name in arguments.names or every:
        for row in every[name](name, Plan(not arguments.no_peers, arguments.runs, arguments.threads)):
            print(line(row), flush=True)
            rows.append(row)
        if arguments.json:
            arguments.json.write_text(
                json.dumps([asdict(r) for r in rows], indent=1) + "\n", encoding="utf-8"
            )


if __name__ == "__main__":
    main()

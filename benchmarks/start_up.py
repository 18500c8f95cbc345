"""Processor time of commands: how long they take to start, and to do what is short.

Each command runs in a process of its own, with its bytecode and compiled loops cached. Time is that of the
processor (user and system), which other work on the machine affects less than the time that passes. As
machines differ, each round also imports NumPy and scipy.linalg, which few commands can do without; `ratio` is
a command's time divided by that, the median over the rounds. `aim` is what it should not exceed; nothing
fails if it does.

    python benchmarks/start_up.py [NAME ...] [--repeat 5]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

import numpy as np

BASE = "import numpy, scipy.linalg"

FIRST_ORDER = """
import os, sys
from fieldbo.cli import main
from fieldbo.vehicles.base import Simulated

Simulated.send = lambda *_: os._exit(0)
main()
"""
"""A program that ends when the first order is sent."""


@dataclass(frozen=True)
class Command:
    """A command to time.

    Attributes
    ----------
    arguments : tuple of str
        Those of ``fieldbo``.
    aim : float or None
        What its time in relation to `BASE` should not exceed.
    needs : str
        Name of the run that it is about: "short", "whole", or none.
    program : tuple of str
        What runs with the arguments, as options of Python.
    """

    arguments: tuple[str, ...]
    aim: float | None = None
    needs: str = ""
    program: tuple[str, ...] = ("-m", "fieldbo")


SHORT = ("run", "lake-level-set", "--battery", "300")
"""A run of five readings."""

RUNS = {"short": SHORT, "whole": ("run", "lake-level-set")}
"""How the runs are made that commands are about; the whole one has 147 readings."""

COMMANDS = {
    "first order": Command(SHORT, 4.0, program=("-c", FIRST_ORDER)),
    "run": Command(SHORT, 10.0),
    "check": Command(("check", "lake-level-set"), 2.8),
    "ask": Command(("ask", "short"), 4.0, "short"),
    "report": Command(("report", "whole"), 16.0, "whole"),
    "help": Command(("--help",)),
    "missions": Command(("missions",)),
    "worlds": Command(("worlds",)),
    "policies": Command(("policies",)),
    "schema": Command(("schema", "mission")),
    "show": Command(("show", "lake-transect", "--out", "field.png")),
    "resume": Command(("resume", "short"), None, "short"),
    "plot": Command(("plot", "short", "map"), None, "short"),
    "export": Command(("export", "short", "csv", "netcdf", "--replace"), None, "short"),
}


def processor_s(command: Sequence[str], folder: Path) -> float:
    """Return the processor time that a command takes in a folder, in seconds."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    before = getrusage(RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    after = getrusage(RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def timings(names: Sequence[str], repeat: int, folder: Path) -> dict[str, np.ndarray]:
    """Return the times of each command, and of `BASE` as "", over `repeat` rounds; caches are full."""
    for run in sorted({COMMANDS[name].needs for name in names} - {""}):
        processor_s([sys.executable, "-m", "fieldbo", *RUNS[run], "--out", run], folder)
    number = iter(range(1_000_000))

    def timed(name: str) -> float:
        if not name:
            return processor_s([sys.executable, "-c", BASE], folder)
        command = COMMANDS[name]
        out = ("--out", f"timed-{next(number)}") if command.arguments[0] == "run" else ()
        return processor_s([sys.executable, *command.program, *command.arguments, *out], folder)

    work: dict[str, Callable[[], float]] = {name: lambda name=name: timed(name) for name in ["", *names]}
    rounds = [[one() for one in work.values()] for _ in range(repeat + 1)]
    return dict(zip(work, np.array(rounds[1:]).T, strict=True))


def main() -> None:
    """Print a row for each command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="commands to time (default: all)")
    parser.add_argument("--repeat", type=int, default=5, metavar="N", help="rounds (default: 5)")
    arguments = parser.parse_args()
    for name in arguments.names:
        if name not in COMMANDS:
            parser.error(f"unknown command {name}; the commands are {', '.join(COMMANDS)}")
    names = arguments.names or list(COMMANDS)
    with tempfile.TemporaryDirectory() as folder:
        times = timings(names, arguments.repeat, Path(folder))
    base = times.pop("")
    print(f"| {'command':11} | least (s) | median (s) | ratio | aim  |")
    print(f"|{'-' * 13}|-----------|------------|-------|------|")
    print(f"| {'imports':11} | {base.min():9.2f} | {np.median(base):10.2f} | {1:5.1f} | {'':4} |")
    for name, taken in times.items():
        aim, ratio = COMMANDS[name].aim, float(np.median(taken / base))
        shown = "" if aim is None else f"{aim:g}"
        print(f"| {name:11} | {taken.min():9.2f} | {np.median(taken):10.2f} | {ratio:5.1f} | {shown:4} |")


if __name__ == "__main__":
    main()

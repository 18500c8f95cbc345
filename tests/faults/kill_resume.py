"""Kill runs repeatedly, resume them, and check that nothing is lost.

    python tests/faults/kill_resume.py --kills 500 --seed 0 --all-policies

Each mission runs in a process that is killed: at a random time, or at a chosen place, such as half-way
through a transaction, or between recording an order and sending it. Another process resumes the run, and may
be killed, too, until the mission has ended. Then

- every reading and order that was on disk at any time is still there,
- none occurs twice,
- and the log equals that of an uninterrupted run: sites, ids, values, costs, fits.

Some copies of records also lose the end of their log, as in a power cut. If only bytes after the last synced
row are cut off or random, nothing may be lost. If more is cut off, as by a disk that ignores syncs, the rest
must be a beginning of the log from which the run reaches the same end.

The last line counts kills of runs in progress, readings lost, readings repeated and differing paths; the exit
code is 1 unless the last three are 0.
"""

from __future__ import annotations

import argparse
import mmap
import os
import random
import shutil
import signal
import sqlite3
import struct
import sys
import time
import types
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import many_worlds

import fieldbo
import fieldbo.belief._lookahead_loops
import fieldbo.policies.chains.lambo
import fieldbo.policies.control_sets.subsets
import fieldbo.policies.optimum._loops
import fieldbo.policies.travel._block_loops
import fieldbo.policies.travel._choice_loops
from fieldbo.belief.model import Model
from fieldbo.messages import Lost, Rejected, order_number
from fieldbo.mission.mission import Mission
from fieldbo.policies.baselines import GCHK, Random, Straddle
from fieldbo.policies.control_sets.subsets import Subsets
from fieldbo.policies.level_set.truvar import TruVaR
from fieldbo.record import record as record_module
from fieldbo.record.record import Record
from fieldbo.record.store import Counter
from fieldbo.runs import runner
from fieldbo.testing import small_mission
from fieldbo.vehicles.base import Simulated

NAME = "drill"
LIVES = 6
"""Maximum number of processes per mission; the last one is not killed."""


# -- missions ----------------------------------------------------------------------------------------------


class Faulty(Simulated):
    """Loses, rejects or repeats some orders, depending on their numbers."""

    def send(self, order):
        fault = {2: Lost, 3: Rejected}.get(order_number(order.id) % 7)
        if fault is None:
            super().send(order)
        elif order.id not in self._outcomes:
            self._outcomes[order.id] = [fault(order.id, "a fault of this vehicle")]
            self._waiting += self._outcomes[order.id]

    def events(self, timeout_s):
        return [
            e for event in super().events(timeout_s) for e in [event] * (1 + (self._ask_of(event) % 5 == 1))
        ]

    @staticmethod
    def _ask_of(event):
        return order_number(event.order)


def _fleet(mission: Mission) -> Mission:
    """Add a second vehicle, which starts at the other end with a smaller battery."""
    far = mission.world.domain.sites[-1]
    second = replace(mission.vehicles[0], start=far, home=far, battery=0.7 * mission.vehicles[0].battery)
    return replace(mission, vehicles=(mission.vehicles[0], second))


def _learning(mission: Mission, every: int) -> Mission:
    return replace(mission, model=Model(learn={"every": every}))


MISSIONS: dict[str, Callable[[], Mission]] = {
    "lake": lambda: fieldbo.load_mission("lake-level-set", {"agent": {"battery": 1200}}),
    "batch": lambda: fieldbo.load_mission("gp-lake-batch", {"agent": {"battery": 1200}}),
    "lambo": lambda: fieldbo.load_mission(
        "cell-hartmann-6", {"agent": {"battery": 215}, "model": {"learn": {"every": 8}}}
    ),
    "subsets": lambda: small_mission(Subsets(worst=-2.0), battery=8.0, initial=4),
    "refits": lambda: _learning(small_mission(GCHK(intersect=True), battery=60.0, initial=3), 3),
    "fleet": lambda: _fleet(small_mission(Straddle(), battery=50.0)),
    "fleet in batches": lambda: replace(
        _learning(_fleet(small_mission(TruVaR(), battery=50.0, initial=3)), 4), batch=3
    ),
    "faulty": lambda: replace(small_mission(Random(), battery=60.0), batch=2),
}


WORLD = "a world of "
STEPS, SEEDS = 20, 300
"""How many orders the missions of `worlds_of_all_policies` give, and in how many random worlds to look."""


def worlds_of_all_policies() -> dict[str, Callable[[], Mission]]:
    """Return a mission in the first random world of each policy that any of them has.

    Only the processes that run a mission make it: loops on several threads must not begin before a fork.
    """
    with get_context("spawn").Pool(1) as pool:
        first = pool.apply(_first_seeds)
    return {f"{WORLD}{name}": partial(_short, seed) for name, seed in sorted(first.items())}


def _first_seeds() -> dict[str, int]:
    first = dict[str, int]()
    for seed in range(SEEDS):
        first.setdefault(type(many_worlds.mission_of(seed).policy).__name__, seed)
    return first


def _short(seed: int) -> Mission:
    return replace(many_worlds.mission_of(seed), max_steps=STEPS)


@cache
def mission_of(name: str) -> Mission:
    return MISSIONS[name]()


def vehicles_of(name: str) -> list[Simulated] | None:
    return [Faulty(mission_of(name))] if name == "faulty" else None


# -- a process that runs a mission, and dies ---------------------------------------------------------------


@dataclass
class Death:
    """The place where a process kills itself.

    Attributes
    ----------
    place : str
        In `make` (a record), or around a write: `before` it, `inside` its transaction, `committing`, or
        `after` it, before an order is sent or the agent gets an event.
    write : int
        Number of the write in that process.
    delay_s : float
        While committing: the delay from its beginning.
    """

    place: str
    write: int
    delay_s: float = 0.0


PLACES = ("make", "before", "inside", "committing", "after")


class Board:
    """Shared memory that survives its writer: the number of acknowledged rows, and the size of the log."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 16)

    def put(self, rows: int, size: int) -> None:
        self._memory[:] = struct.pack("qq", rows, size)

    def get(self) -> tuple[int, int]:
        rows, size = struct.unpack("qq", self._memory[:])
        return rows, size


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def arm(death: Death | None, board: Board) -> None:
    """Make this process note each row that is on disk, and die at the given place."""
    writes = 0

    class Armed(sqlite3.Connection):
        def executemany(self, sql, rows):
            nonlocal writes
            writes += 1
            cursor = super().executemany(sql, rows)
            if due("inside", writes):
                die()
            return cursor

        def execute(self, sql, *args):
            if sql == "BEGIN IMMEDIATE" and due("before", writes + 1):
                die()
            if sql == "COMMIT" and due("committing", writes):
                signal.setitimer(signal.ITIMER_REAL, death.delay_s)  # the signal kills the process
            cursor = super().execute(sql, *args)
            if sql == "COMMIT" and due("after", writes):
                die()
            return cursor

    def due(place: str, write: int) -> bool:
        return death is not None and (death.place, death.write) == (place, write)

    def connect(*args, **settings):
        return sqlite3.connect(*args, factory=Armed, **settings)

    record_module.sqlite3 = types.SimpleNamespace(**{**vars(sqlite3), "connect": connect})
    append, make = Record._append, record_module.make_file

    def acknowledged(self, rows):
        append(self, rows)
        log = self.file.with_name(f"{self.file.name}-wal")
        board.put(self._all("SELECT max(seq) FROM log")[0][0], log.stat().st_size)

    def made(file, name, description):
        if death is not None and death.place == "make":
            signal.setitimer(signal.ITIMER_REAL, death.delay_s)
        make(file, name, description)

    Record._append, record_module.make_file = acknowledged, made


def live(name: str, file: Path, death: Death | None, board: Board) -> None:
    """Run a mission from the start, or resume it from its record."""
    arm(death, board)
    mission = mission_of(name)
    if file.exists():
        with Record(file) as record:
            runner.resume(mission, record, vehicles_of(name))
    else:
        with Record.create(file, NAME, {"mission": name}) as record:
            runner.run(mission, vehicles_of(name), record)


def in_a_child(work: Callable[[], None], after_s: float | None = None) -> bool:
    """Run a function in a new process, killed `after_s`; return True if it ended by itself."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    if after_s is not None:
        end = time.monotonic() + after_s
        while time.monotonic() < end:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                return _came_to_its_end(status)
            time.sleep(0.0005)
        os.kill(child, signal.SIGKILL)
    return _came_to_its_end(os.waitpid(child, 0)[1])


def _came_to_its_end(status: int) -> bool:
    if os.WIFSIGNALED(status):
        return False
    assert os.waitstatus_to_exitcode(status) == 0, "a process ended with an error"
    return True


# -- what is compared --------------------------------------------------------------------------------------

Entry = tuple[str, str | None, Any]


def entries(file: Path) -> list[Entry]:
    """Return the content of a record in order; empty without a record."""
    if not file.exists():
        return []
    with Record(file) as record:
        return [(row.kind, row.order, row.body) for row in record.rows()]


def part_of(entry: Entry) -> tuple[str, str | None, int] | None:
    """Return the key of an order or a part of an observation; None for other entries."""
    kind, order, body = entry
    if kind in ("query", "go-home"):
        return "order", order, 0
    return ("observation", order, body["message"]["part"]) if kind == "observation" else None


def once(log: list[Entry]) -> list[Entry]:
    """Return a log without repeated reports."""
    return [entry for n, entry in enumerate(log) if entry not in log[:n]]


@dataclass
class Unbroken:
    """The log of an uninterrupted mission."""

    log: list[Entry]
    seconds: float

    @property
    def repeated(self) -> set[Any]:
        """The entries that the vehicle repeats."""
        parts = [part_of(entry) for entry in self.log]
        return {part for part in parts if part is not None and parts.count(part) > 1}


@dataclass
class Count:
    """Counts of kills and their effects."""

    kills: int = 0
    places: dict[str, int] = field(default_factory=dict)
    missions: int = 0
    torn: int = 0
    lost: int = 0
    doubled: int = 0
    unequal: int = 0

    @property
    def good(self) -> bool:
        return self.lost == self.doubled == self.unequal == 0

    def __str__(self) -> str:
        return (
            f"{self.kills} kills, {self.lost} readings lost, {self.doubled} doubled, "
            f"{self.unequal} paths unequal"
        )


class Drill:
    """Kills runs of the missions in turn, and counts the effects."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.random = random.Random(seed)
        self.folder, self.board, self.count = folder, Board(), Count()
        self.unbroken: dict[str, Unbroken] = {}

    def run(self, kills: int) -> Count:
        for name in self._turns():
            if self.count.kills >= kills:
                return self.count
            self.count.missions += 1
            place = self.folder / f"{self.count.missions}"
            place.mkdir()
            self._mission(name, place / "run.sqlite", kills)
            shutil.rmtree(place)
        raise AssertionError

    def _turns(self) -> Iterator[str]:
        while True:
            names = list(MISSIONS)
            self.random.shuffle(names)
            yield from names

    def _reference(self, name: str) -> Unbroken:
        if name not in self.unbroken:
            if not name.startswith(WORLD):
                mission_of(name)  # once, for all processes
            file = self.folder / f"{name} unbroken" / "run.sqlite"
            file.parent.mkdir()
            began = time.monotonic()
            assert in_a_child(lambda: live(name, file, None, self.board))
            self.unbroken[name] = Unbroken(entries(file), time.monotonic() - began)
        return self.unbroken[name]

    def _mission(self, name: str, file: Path, kills: int) -> None:
        """Kill a mission until it has ended, or has died often enough."""
        reference, seen = self._reference(name), list[Entry]()
        for number in range(self.random.randint(2, LIVES)):
            if self.count.kills >= kills or not self._killed(name, file, reference, len(seen)):
                break
            seen = self._checked(name, file, seen)
            if number == 0 and file.exists() and self.random.random() < 0.5:
                self._torn(name, file, seen, reference)
        if not file.exists() or Record(file).end_reason is None:
            assert in_a_child(lambda: live(name, file, None, self.board))
        self._compare(name, self._checked(name, file, seen), reference)

    def _killed(self, name: str, file: Path, reference: Unbroken, rows: int) -> bool:
        """Run a process for a while; return True if it died before the run had ended."""
        death, after_s = self._plan(reference, rows)
        self.board.put(0, 0)
        if in_a_child(lambda: live(name, file, death, self.board), after_s):
            return False
        place = "any time" if death is None else death.place
        log = entries(file)
        if log and log[-1][0] == "end":
            return False
        self.count.kills += 1
        self.count.places[place] = self.count.places.get(place, 0) + 1
        return True

    def _plan(self, reference: Unbroken, rows: int) -> tuple[Death | None, float | None]:
        """Return where a process shall die, or after how many seconds."""
        draw = self.random
        if draw.random() < 0.4:
            return None, draw.uniform(0.0, reference.seconds * max(0.2, 1.0 - rows / len(reference.log)))
        place = draw.choice(PLACES if not rows else PLACES[1:])
        write = draw.randint(1, max(1, (len(reference.log) - rows) // 2))
        return Death(place, write, 10.0 ** draw.uniform(-5.0, -2.0)), None

    def _checked(self, name: str, file: Path, seen: list[Entry]) -> list[Entry]:
        """Return what is on disk, and count what was there or acknowledged before but is missing."""
        log = entries(file)
        acknowledged = self.board.get()[0]
        lost = sum(a != b for a, b in zip(seen, log, strict=False)) + max(
            0, max(acknowledged, len(seen)) - len(log)
        )
        if lost:
            print(f"{name}: {lost} entries lost of {max(acknowledged, len(seen))}", file=sys.stderr)
        self.count.lost += lost
        return log

    def _compare(self, name: str, log: list[Entry], reference: Unbroken) -> None:
        """Count repetitions in a log, and compare it with that of the uninterrupted run."""
        parts = [part for entry in log if (part := part_of(entry)) not in (None, *reference.repeated)]
        self.count.doubled += len(parts) - len(set(parts))
        log, whole = once(log), once(reference.log)
        if log != whole:
            first = next((n for n, (a, b) in enumerate(zip(log, whole, strict=False)) if a != b), "its end")
            print(
                f"{name}: the log differs at {first} ({len(log)} and {len(whole)} entries)", file=sys.stderr
            )
            self.count.unequal += 1

    def _torn(self, name: str, file: Path, seen: list[Entry], reference: Unbroken) -> None:
        """Damage the end of the log in copies of a record, and resume from there."""
        log = file.with_name("run.sqlite-wal")
        if not log.exists():
            return
        _, size = self.board.get()
        content = log.read_bytes()
        cut = self.random.randint(size, len(content))
        noise = self.random.randbytes(self.random.randint(1, 9000))
        for what, torn in (("cut", content[:cut]), ("noise", content[:size] + noise)):
            kept = self._go_on_from(name, file, torn, reference, f"{name}, {what} behind what was on disk")
            acknowledged = self.board.get()[0]
            self.count.lost += sum(a != b for a, b in zip(seen[:acknowledged], kept, strict=False))
            self.count.lost += max(0, acknowledged - len(kept))
        anywhere = content[: self.random.randint(0, len(content))]
        kept = self._go_on_from(name, file, anywhere, reference, f"{name}, cut anywhere")
        assert kept == seen[: len(kept)]

    def _go_on_from(self, name: str, file: Path, log: bytes, reference: Unbroken, what: str) -> list[Entry]:
        """Resume a copy of a record with another log to the end, and return its content."""
        copy = file.parent / "torn" / "run.sqlite"
        copy.parent.mkdir()
        shutil.copyfile(file, copy)
        copy.with_name("run.sqlite-wal").write_bytes(log)
        with Record(copy) as record, closing(Counter(copy)) as counter:
            counter.write(record._rows, record._digest)
        kept = entries(copy)
        self.count.torn += 1
        assert in_a_child(lambda: live(name, copy, None, Board()))
        self._compare(what, entries(copy), reference)
        shutil.rmtree(copy.parent)
        return kept


def main() -> int:
    parser = argparse.ArgumentParser(description="Kill runs, let them go on, and see that nothing is lost.")
    parser.add_argument("--kills", type=int, default=20, help="of runs that are going on (20)")
    parser.add_argument("--seed", type=int, default=0, help="of the times and places (0)")
    parser.add_argument("--all-policies", action="store_true", help="also a random world for each policy")
    asked = parser.parse_args()
    if asked.all_policies:
        MISSIONS.update(worlds_of_all_policies())
    began = time.monotonic()
    with TemporaryDirectory(prefix="fieldbo-kills-") as folder:
        count = Drill(asked.seed, Path(folder)).run(asked.kills)
    places = ", ".join(f"{n} {place}" for place, n in sorted(count.places.items()))
    print(f"{count.missions} missions, {count.torn} torn logs, {time.monotonic() - began:.0f} s; {places}")
    print(count)
    return 0 if count.good else 1


if __name__ == "__main__":
    sys.exit(main())

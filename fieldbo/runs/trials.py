"""Many runs whose outcomes add up in a table: each is on disk as soon as it is done, and none is repeated.

They run one after the other or in worker processes. One process at a time writes the table.

A worker imports this module before it limits its threads: whatever loads numba is imported where it is used.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import signal
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import active_children, get_context, parent_process
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

from fieldbo.errors import InputError
from fieldbo.runs.signals import unbroken

Task = TypeVar("Task")
Done = TypeVar("Done")


def run_all(
    run: Callable[[Task], Done], tasks: Sequence[Task], jobs: int, keep: Callable[[Done], object]
) -> None:
    """Run all tasks, and keep the outcome of each as soon as it is done.

    When stopped, end all workers at once.

    Parameters
    ----------
    run : Callable
        A function of a module, which worker processes can import.
    tasks : sequence
    jobs : int
        Number of processes; 1 runs the tasks in this one.
    keep : Callable
        Called with each outcome, in this process; Ctrl-C waits until it is done.
    """
    if jobs == 1:
        for task in tasks:
            done = run(task)
            with unbroken():
                keep(done)
        return
    others = set(active_children())
    workers = min(jobs, max(1, len(tasks)))
    with ProcessPoolExecutor(workers, get_context("spawn"), initializer=_begin_worker) as pool:
        try:
            with unbroken():  # a worker that is being started must not be missed below
                runs = [pool.submit(run, task) for task in tasks]
            for finished in as_completed(runs):
                with unbroken():
                    keep(finished.result())
        except BaseException:
            with unbroken():
                pool.shutdown(wait=False, cancel_futures=True)
                for worker in set(active_children()) - others:
                    worker.terminate()
            raise


def _begin_worker() -> None:
    """Prepare a worker process, which leaves Ctrl-C to its parent and ends with it, however that ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings.filterwarnings("ignore", "mission .* is now", FutureWarning)  # the parent has said so
    Thread(target=_end_with_parent, daemon=True).start()
    _one_numba_thread()


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _one_numba_thread() -> None:
    """Limit compiled loops to one thread, as the jobs already share the cores; call it before numba loads."""
    os.environ["NUMBA_NUM_THREADS"] = "1"


# -- the table -------------------------------------------------------------------------------------------


@contextmanager
def hold_table(out: Path) -> Iterator[None]:
    """Hold the exclusive right to write to a table; make its folder if needed.

    Raises
    ------
    InputError
        Another process holds it, or the folder is not writable.
    """
    from filelock import Timeout

    from fieldbo.record.store import acquired, unlock

    file = out.resolve()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        lock = acquired(file)
    except Timeout:
        raise InputError(
            f"{out} is being written by another process",
            expected="one process per table at a time",
            where="--out",
            fix="wait until it has ended, then repeat the command, which skips finished runs; or choose "
            "another file",
        ) from None
    except OSError as error:
        raise unwritable(out, error) from None
    try:
        yield
    finally:
        unlock(file, lock)


def unwritable(out: Path, error: OSError) -> InputError:
    """Return the error for a table that can't be written."""
    return InputError(f"{out} can't be written: {error.strerror}", expected="a writable file", where="--out")


def run_and_append(
    file: Path,
    run: Callable[[Task], Done],
    tasks: Sequence[Task],
    jobs: int,
    keep: Callable[[Done], bytes],
    done: int,
    on_done: Callable[[int, int], object] | None,
) -> None:
    """Run all tasks, and append the lines that `keep` makes of each outcome, on disk at once.

    Parameters
    ----------
    file : Path
        The table; see `hold_table`.
    run, tasks, jobs
        As for `run_all`.
    keep : Callable
    done : int
        How many were done before.
    on_done : Callable, optional
        Called with (finished, total) after each.
    """
    total = done + len(tasks)
    with file.open("ab") as out:

        def append(outcome: Done) -> None:
            nonlocal done
            out.write(keep(outcome))
            out.flush()
            os.fsync(out.fileno())
            done += 1
            if on_done is not None:
                on_done(done, total)

        run_all(run, tasks, jobs, append)


def lines_of(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Return rows as lines of a table, without the header, which the file already has."""
    from fieldbo.results.tables import table

    return table(columns, [[row.get(name, "") for name in columns] for row in rows]).split(b"\n", 1)[1]


def read_rows(text: str) -> tuple[tuple[str, ...], list[dict[str, str]]]:
    """Return columns and rows of a table, without a last line that was cut short."""
    reader = csv.DictReader(io.StringIO(text[: text.rfind("\n") + 1]))
    return tuple(reader.fieldnames or ()), list(reader)


def digest_of(description: Any) -> str:
    """Return a short digest of plain data."""
    return hashlib.sha256(json.dumps(description, sort_keys=True, default=str).encode()).hexdigest()[:12]

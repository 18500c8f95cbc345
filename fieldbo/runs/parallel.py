"""Many runs, one after the other or in worker processes, each kept as soon as it is done."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import active_children, get_context, parent_process
from threading import Thread
from typing import TypeVar

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

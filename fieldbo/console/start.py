"""Start a mission in a process of its own, which continues when the console ends."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from fieldbo.errors import FieldboError
from fieldbo.record.store import RECORD
from fieldbo.runs.folder import folder_exists

_PATIENCE_S = 120.0
_POLL_S = 0.1


class NotStartedError(FieldboError):
    """The process of a mission ended before it made a record; the message is its own."""


def start(mission: str, out: Path, arguments: Sequence[str]) -> Path:
    """Start ``fieldbo run`` and wait for its record; return the record.

    The process writes to a log next to the run folder. It is in a session of its own: Ctrl-C at the console
    does not reach it.

    Parameters
    ----------
    mission : str
        Name or file.
    out : Path
        The run folder to make.
    arguments : sequence of str
        Further arguments of ``fieldbo run``.

    Raises
    ------
    InputError
        The run folder exists.
    NotStartedError
        It ended without a record, or made none in time.
    """
    if out.exists():
        raise folder_exists(out)
    log = out.with_name(f"{out.name}.log")
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as writing:
        process = subprocess.Popen(
            [sys.executable, "-m", "fieldbo", "run", mission, "--out", str(out), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=writing,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    end_s = time.monotonic() + _PATIENCE_S
    while not (out / RECORD).exists():
        if process.poll() is not None or time.monotonic() > end_s:
            output = log.read_text(encoding="utf-8", errors="replace").strip()
            if process.poll() is not None:
                log.unlink(missing_ok=True)
            raise NotStartedError(output.removeprefix("fieldbo: ") or f"{mission} was not started")
        time.sleep(_POLL_S)
    return out / RECORD

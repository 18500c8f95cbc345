"""The tables of the run folder: readings, path, scores and costs."""

from __future__ import annotations

from fieldbo.runs.export.recorded import Recorded


def files(run: Recorded) -> dict[str, bytes]:
    """Return the tables by file name."""
    return run.result.tables()

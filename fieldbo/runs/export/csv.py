"""Tables of readings, path, scores and costs: those of the run folder."""

from __future__ import annotations

from fieldbo.runs.export.recorded import Recorded


def files(run: Recorded) -> dict[str, bytes]:
    """Return the tables by the names of their files."""
    return run.result.tables()

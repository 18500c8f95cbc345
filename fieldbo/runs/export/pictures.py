"""The pictures of the run folder, drawn again."""

from __future__ import annotations

from fieldbo.runs.export.recorded import Recorded


def files(run: Recorded, format: str, width: str) -> dict[str, bytes]:
    """Return the pictures by file name, in a format and a width of `plot`."""
    return run.result.pictures(format, width)

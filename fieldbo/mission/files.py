"""Write files atomically."""

from __future__ import annotations

from pathlib import Path


def write_whole(file: Path, content: bytes) -> None:
    """Write a file so that it appears as a whole or not at all."""
    part = file.with_name(f".{file.name}.part")
    try:
        part.write_bytes(content)
        part.replace(file)
    except BaseException:
        part.unlink(missing_ok=True)
        raise

"""Write files atomically."""

from __future__ import annotations

from pathlib import Path

from fieldbo.errors import InputError


def write_whole(file: Path, content: bytes) -> None:
    """Write a file so that it appears as a whole or not at all."""
    part = file.with_name(f".{file.name}.part")
    try:
        part.write_bytes(content)
        part.replace(file)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def write_output(file: Path, content: bytes) -> None:
    """Write a file that the user named with ``--out``; raise an `InputError` if it can't be written."""
    try:
        write_whole(file, content)
    except OSError as error:
        raise InputError(
            f"{file} can't be written: {error.strerror}",
            expected="a file in a folder that exists and can be written",
            where="--out",
            fix="name another file with --out",
        ) from None

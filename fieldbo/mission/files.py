"""Write files atomically."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

from fieldbo.errors import InputError


def write_whole(file: Path, content: bytes) -> None:
    """Write a file so that it appears as a whole or not at all."""
    part = file.with_name(f".{file.name}.part")
    try:
        part.write_bytes(content)
        if file.exists():
            shutil.copymode(file, part)
        part.replace(file)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def write_output(file: Path, content: bytes) -> None:
    """Write a file that the user named with ``--out``; raise an `InputError` if it can't be written.

    A link stays one; what is neither a file nor a folder, such as a pipe, is written to.
    """
    try:
        target = file.resolve()
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if target.exists() and not target.is_file():
            target.write_bytes(content)
        else:
            write_whole(target, content)
    except (OSError, ValueError) as error:  # a name with a NUL is a ValueError
        raise InputError(
            f"{file} can't be written: {getattr(error, 'strerror', None) or error}",
            expected="a file in a folder that exists and can be written",
            where="--out",
            fix="name another file with --out",
        ) from None

"""The folder in which a new world or mission is made before it is moved into its place."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

_PREFIX, _LOCK = ".new-", ".lock"
_YOUNG_S = 60.0
"""A folder younger than this may be one whose process is about to lock it."""

REPLACED = "replaced"
"""What an old world is called in the folder while a new one takes its place."""


@contextmanager
def folder_aside(base: Path) -> Iterator[Path]:
    """Make a hidden folder for the time of a block, and remove those that killed processes left.

    Parameters
    ----------
    base : Path
        The folder that it is made in.
    """
    from filelock import FileLock

    _remove_left(base)
    with TemporaryDirectory(prefix=_PREFIX, dir=base) as name, FileLock(Path(name) / _LOCK):
        yield Path(name)


def _remove_left(base: Path) -> None:
    """Remove the folders that no process holds, but for those with an old world that was not put back."""
    for folder in base.glob(f"{_PREFIX}*"):
        try:
            left = time.time() - folder.stat().st_mtime > _YOUNG_S and not (folder / REPLACED).exists()
            if left and not folder.is_symlink() and not _is_held(folder):
                shutil.rmtree(folder)
        except OSError:  # it is another user's, or was removed meanwhile
            continue


def _is_held(folder: Path) -> bool:
    from filelock import FileLock, Timeout

    if not (folder / _LOCK).exists():
        return False
    try:
        with FileLock(folder / _LOCK, timeout=0):
            return False
    except Timeout:
        return True

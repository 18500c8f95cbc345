"""Folders that killed calls of fieldbo new left behind are removed; those in use are not."""

from __future__ import annotations

import os
import time

import pytest
from filelock import FileLock

from fieldbo.mission.new.aside import folder_aside


def left(base, name, *, old=True, holds=()):
    folder = base / name
    folder.mkdir()
    for each in ("world.toml", *holds):
        (folder / each).touch()
    if old:
        os.utime(folder, (time.time() - 3600,) * 2)
    return folder


def test_a_folder_that_no_process_holds_is_removed(tmp_path):
    folders = [left(tmp_path, ".new-a"), left(tmp_path, ".new-b", holds=[".lock"])]
    with folder_aside(tmp_path) as aside:
        assert aside.is_dir()
    assert not any(folder.exists() for folder in (*folders, aside))


def test_a_folder_in_use_or_young_or_with_an_old_world_stays(tmp_path):
    held, young = left(tmp_path, ".new-a", holds=[".lock"]), left(tmp_path, ".new-b", old=False)
    world = left(tmp_path, ".new-c", holds=["replaced"])
    other = left(tmp_path, "lake")
    with FileLock(held / ".lock"), folder_aside(tmp_path):
        pass
    assert all(folder.exists() for folder in (held, young, world, other))


def test_a_folder_is_removed_when_its_block_fails(tmp_path):
    with pytest.raises(KeyError), folder_aside(tmp_path) as aside:
        raise KeyError
    assert not aside.exists()

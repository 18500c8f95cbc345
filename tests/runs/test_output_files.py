"""Files and folders that a command writes: nothing is lost, whatever they are called."""

import itertools
import os
import stat
import sys
import threading
from pathlib import Path

import pytest
from page_runs import pond

from fieldbo.errors import InputError
from fieldbo.mission.files import write_output
from fieldbo.mission.load import load_mission
from fieldbo.record import record as record_module
from fieldbo.runs import folder as folders
from fieldbo.runs.folder import begin, next_folder
from fieldbo.runs.replay import load_run


@pytest.mark.parametrize("name", [".", "", "/", "folder", "missing/file", "a\0b"])
def test_what_cannot_be_written_is_an_error_that_names_the_option(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match="can't be written") as caught:
        write_output(Path(name), b"new")
    assert caught.value.where == "--out"
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


def test_a_file_is_replaced_as_a_whole_and_keeps_its_mode(tmp_path):
    file = tmp_path / "picture.png"
    file.write_bytes(b"old")
    file.chmod(0o600)
    write_output(file, b"new")
    assert file.read_bytes() == b"new"
    if sys.platform != "win32":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.skipif(sys.platform == "win32", reason="links and pipes of POSIX")
def test_a_link_stays_a_link_and_a_pipe_a_pipe(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "real").write_bytes(b"old")
    write_output(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"

    os.mkfifo(tmp_path / "pipe")
    got = []
    reader = threading.Thread(target=lambda: got.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    write_output(tmp_path / "pipe", b"new")
    reader.join()
    assert got == [b"new"]
    assert (tmp_path / "pipe").is_fifo()


def test_a_number_that_only_the_file_system_knows_is_passed_over(tmp_path, monkeypatch):
    """On a file system that ignores case, lake-1 is in the way of LAKE-1, and no pattern finds it."""
    monkeypatch.chdir(tmp_path)
    mission = pond(tmp_path)
    (tmp_path / "runs" / "pond-1").mkdir(parents=True)
    monkeypatch.setattr("fieldbo.runs.folder.next_folder", lambda mission: Path("runs/pond-1"))
    folder, record = begin(mission)
    record.close()
    assert folder == Path("runs/pond-2")


def test_runs_are_numbered_even_if_the_name_of_a_mission_is_a_pattern(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pond(tmp_path)
    (tmp_path / "pond.toml").rename(tmp_path / "pond[1].toml")
    mission = load_mission("pond[1].toml")
    for number in (1, 2):
        assert next_folder("pond[1]").name == f"pond[1]-{number}"
        folder, record = begin(mission)
        record.close()
        assert folder.name == f"pond[1]-{number}"


STEPS = [
    *((folders, name) for name in ("_copy", "write_whole", "on_disk", "digests")),
    (record_module, "make_file"),
    *((Path, name) for name in ("mkdir", "rename", "glob")),
    (folders.shutil, "rmtree"),
]


def dies_at(call):
    """Let the process die before a call of one of the functions that make a run folder."""
    count = itertools.count()

    def dying(function):
        def called(*args, **kwargs):
            if next(count) == call:
                os._exit(9)
            return function(*args, **kwargs)

        return called

    for owner, name in STEPS:
        setattr(owner, name, dying(getattr(owner, name)))


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
@pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.slow)], ids=["some", "all"])
def test_a_process_that_dies_while_it_makes_a_run_folder_leaves_a_whole_one_or_none(tmp_path, every):
    mission = pond(tmp_path)
    exits, whole = [], 0
    while exits[-1:] != [0]:
        out = tmp_path / "runs" / f"{len(exits)}"
        child = os.fork()
        if child == 0:
            dies_at(every * len(exits))
            begin(mission, out)
            os._exit(0)
        exits.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        whole += out.exists()
        if not out.exists():
            begin(mission, out)[1].close()
        assert load_run(out).end_reason is None
        assert load_mission(out / "mission.toml").policy == mission.policy
    assert set(exits) == {0, 9}
    assert 1 <= whole < len(exits)


def test_what_died_long_ago_is_removed_and_what_is_being_made_is_not(tmp_path):
    old, new = (tmp_path / f".fieldbo-{name}.part" for name in ("old", "new"))
    for part in (old, new):
        (part / "world").mkdir(parents=True)
    os.utime(old, (1.0, 1.0))
    begin(pond(tmp_path / "place"), tmp_path / "run")[1].close()
    assert not old.exists()
    assert new.exists()
    assert sorted(p.name for p in tmp_path.iterdir()) == [".fieldbo-new.part", "place", "run"]


def test_an_empty_folder_is_not_taken_for_a_run(tmp_path):
    (tmp_path / "run").mkdir()
    with pytest.raises(InputError, match="exists"):
        begin(pond(tmp_path / "place"), tmp_path / "run")
    assert list((tmp_path / "run").iterdir()) == []

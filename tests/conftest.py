"""Fixtures that several test files use: the command line, and snapshots of messages."""

import io
import os
import re
import signal
import sys
from functools import cache
from itertools import count
from pathlib import Path

import pytest
from checkout import TESTS

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # tests share the cores; also for what they start

from matplotlib.figure import Figure

from fieldbo import cli
from fieldbo.results import plot
from fieldbo.results.result import PICTURES, Result

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has what it runs behind it ignore Ctrl-C
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup has what it runs ignore a terminal that is gone

pytest_plugins = ["tiers", "command_tree"]

collect_ignore = ["peers"]  # they need brokers and robots, and are asked for by name: make test-peers

_HEADING = "## "


def pytest_addoption(parser):
    parser.addoption(
        "--update-snapshots",
        action="store_true",
        help="write the messages in tests/snapshots as they are now (run without -n)",
    )


@pytest.fixture
def snapshot(request):
    """Compare a text with the one of this test in tests/snapshots, or write it with --update-snapshots."""
    file = TESTS / "snapshots" / f"{Path(request.node.path).stem}.txt"
    update = request.config.getoption("--update-snapshots")

    calls = count(2)
    name = request.node.name

    def compare(text):
        nonlocal name
        text = re.sub(r"\n {12}", " ", text.strip()).replace(f"{Path.cwd()}/", "")
        saved = _sections(file.read_text(encoding="utf-8")) if file.exists() else {}
        if update and saved.get(name) != text:
            sections = sorted({**saved, name: text}.items())
            file.parent.mkdir(exist_ok=True)
            file.write_text("\n\n".join(f"{_HEADING}{k}\n{v}" for k, v in sections) + "\n", encoding="utf-8")
        elif not update:
            assert text == saved.get(name), "if this is intended, run with --update-snapshots"
        name = f"{request.node.name} ({next(calls)})"

    return compare


def _sections(text):
    """Return the texts of a snapshot file by heading."""
    sections = (section.partition("\n") for section in f"\n{text}".split(f"\n{_HEADING}")[1:])
    return {heading: body.strip() for heading, _, body in sections}


@cache
def _blank(format):
    file = io.BytesIO()
    plot.save(Figure(figsize=(1, 1)), file, format)
    return file.getvalue()


@pytest.fixture(autouse=True, scope="session")
def blank_pictures():
    """Leave the pictures of run folders blank, which saves time; those of shared fixtures, too."""
    draw = Result.pictures

    def pictures(result, format="png", width="screen"):
        if _real:
            return draw(result, format, width)
        plot.check(format, width)
        return {f"{name}.{format}": _blank(format) for name in PICTURES}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Result, "pictures", pictures)
        yield


_real = []


@pytest.fixture(autouse=True)
def real_pictures(request, blank_pictures):
    """Draw the pictures of run folders in tests of ``pictures``."""
    wanted = request.node.get_closest_marker("pictures")
    _real.extend([wanted] if wanted else [])
    yield
    _real.clear()


@pytest.fixture
def command(monkeypatch, capsys):
    """Run the command line; return exit code, output and errors."""

    def run(*args):
        monkeypatch.setattr(sys, "argv", ["fieldbo", *map(str, args)])
        capsys.readouterr()
        code = 0
        try:
            cli.main()
        except SystemExit as end:
            code = end.code or 0
        out, err = capsys.readouterr()
        return code, out, err

    return run


@pytest.fixture
def said(command):
    """Run the command line; it must end with 0 and without errors; return its output."""

    def run(*args):
        code, out, err = command(*args)
        assert (code, err) == (0, "")
        return out

    return run

"""What several test files use: the command line, run in this process."""

import signal
import sys

import pytest

from fieldbo import cli

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has what it runs behind it ignore Ctrl-C

collect_ignore = ["peers"]  # they need brokers and robots, and are asked for by name: make test-peers


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
    """Run the command line; it must end with 0 and no errors; return what it says."""

    def run(*args):
        code, out, err = command(*args)
        assert (code, err) == (0, "")
        return out

    return run

"""Programs in processes of their own, as the tests of robots start, stop and kill them."""

from __future__ import annotations

import os
import queue
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from peers.launcher import Launched

SLOW_S = 600.0
"""How long a program may take to get ready, or to end, on a busy machine."""


class Program:
    """A program in a process of its own, whose lines (output and errors) are kept; a context manager.

    Parameters
    ----------
    *command : object
        The program and its arguments.
    env : mapping of str to str, optional
        Variables of its environment, beside those of this process.
    cwd : path, optional
    """

    def __init__(self, *command, env=None, cwd=None):
        self.command = [str(part) for part in command]
        self.lines = []
        self._news = queue.Queue()
        self.process = self._started({**os.environ, "PYTHONUNBUFFERED": "1", **(env or {})}, cwd)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _started(self, env, cwd):
        return subprocess.Popen(
            self.command,
            env=env,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,  # a Ctrl-C of the tests is not its own; its children end with it
        )

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            self._news.put(line)
        self._news.put(None)

    @property
    def output(self):
        """All that it has said so far."""
        return "\n".join(self.lines)

    @property
    def running(self):
        """Whether it has not ended."""
        return self.process.poll() is None

    def wait_for(self, text, timeout_s=SLOW_S):
        """Wait until a line holds `text` that came since the last call; return the line."""
        end = time.monotonic() + timeout_s
        while (left := end - time.monotonic()) > 0:
            try:
                line = self._news.get(timeout=left)
            except queue.Empty:
                break
            if line is None:
                self._news.put(None)
                raise AssertionError(f"{self.command} ended without saying {text!r}:\n{self.output}")
            if text in line:
                return line.rstrip("\n")
        raise AssertionError(f"{self.command} did not say {text!r} in {timeout_s} s:\n{self.output}")

    def wait(self, timeout_s=SLOW_S):
        """Wait until it ends; return its exit code."""
        try:
            code = self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.command} goes on after {timeout_s} s:\n{self.output}") from None
        self._reader.join(1.0)
        return code

    def interrupt(self):
        """Press Ctrl-C."""
        self.process.send_signal(signal.SIGINT)

    def freeze(self):
        """Stop it where it is, with all its threads: its sockets stay open, and nobody answers."""
        os.killpg(self.process.pid, signal.SIGSTOP)

    def thaw(self):
        """Let it go on."""
        os.killpg(self.process.pid, signal.SIGCONT)

    def kill(self):
        """End it and its children without a word of farewell."""
        if self.running:
            with suppress(ProcessLookupError):  # it has just ended
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._reader.join(1.0)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self.kill()
        self.process.stdout.close()


def python(*arguments, **settings):
    """Return a `Program` in this interpreter: ``python("-m", "fieldbo", "run", ...)``."""
    return Program(sys.executable, *arguments, **settings)


class Command(Program):
    """A command of fieldbo, without the seconds that importing takes; see `peers.launcher`."""

    def _started(self, env, cwd):
        return Launched(*self.command, env=env, cwd=cwd)


def fieldbo(*arguments, **settings):
    """Return the command line as a `Program`: ``fieldbo("run", "my-mission", ...)``."""
    return Command(*arguments, **settings)


def free_port(kind=socket.SOCK_STREAM):
    """Return a port of this machine that nobody listens on; `kind` SOCK_DGRAM for one of UDP."""
    with socket.socket(socket.AF_INET, kind) as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def until(condition, timeout_s=SLOW_S, what="it to come about"):
    """Wait until `condition()` is true, and return what it is."""
    end = time.monotonic() + timeout_s
    while not (found := condition()):
        assert time.monotonic() < end, f"waited {timeout_s} s for {what}"
        time.sleep(0.05)
    return found


class Broker:
    """A mosquitto on a port of this machine alone, which can go and come back; a context manager.

    Parameters
    ----------
    folder : Path
        For its configuration.
    *settings : str
        More lines of its configuration.
    port : int, optional
        By default any that is free.
    """

    def __init__(self, folder, *settings, port=None):
        self.port = free_port() if port is None else port
        self._file = Path(folder) / f"mosquitto-{self.port}.conf"
        listens = [f"listener {self.port} 127.0.0.1", "persistence false"]
        if os.geteuid() == 0:
            listens.append("user root")  # it would change to a user who can't read the tests' files
        allows = [] if any("allow_anonymous" in line for line in settings) else ["allow_anonymous true"]
        self._file.write_text("\n".join([*listens, *allows, *settings, ""]))
        self._program = None
        self.start()

    def start(self):
        """Start it, on the same port as before."""
        found = shutil.which("mosquitto", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
        assert found, "mosquitto is not installed: apt-get install mosquitto"
        self._program = Program(found, "-c", self._file)
        self._program.wait_for("running")

    def stop(self):
        """End it: every link to it breaks, and what it kept is gone."""
        self._program.kill()

    def freeze(self):
        """Let it answer nobody, with all links open."""
        self._program.freeze()

    def thaw(self):
        """Let it go on."""
        self._program.thaw()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self._program.__exit__(kind, error, trace)

"""Commands of fieldbo as forks of one process that has imported what they need.

Each command is a process of its own: its arguments, folder, environment, session, network, output, signals
and exit code are those of ``python -m fieldbo``. Only the seconds of importing are spent once for all tests.
The process that forks has a single thread and no links: rclpy, which starts threads when it is imported, is
left to the forks. They draw no pictures, which no test here looks at: that takes longer than all else.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import io
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from contextlib import contextmanager, suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "shared"))
from peers.network import enter, namespaces
from peers.pond import pond

ADDRESS = "FIELDBO_TESTS_LAUNCHER"
"""The variable that says where the process listens."""

IMPORTED = ("paho.mqtt.client", "pymavlink.mavutil", "pyproj", "uvicorn", "yaml", "rpyutils")
MESSAGES = [f"{name}.msg" for name in ("rcl_interfaces", "std_msgs", "geometry_msgs", "sensor_msgs")]
"""What links import, as far as it is installed and starts no threads."""


@contextmanager
def launching():
    """Start the process, to which other processes of these tests connect, too."""
    ours, theirs = socket.socketpair()
    with tempfile.TemporaryDirectory() as folder:
        address = f"{folder}/launcher"
        with theirs, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as inbox:
            inbox.bind(address)
            inbox.listen()
            fds = inbox.fileno(), theirs.fileno()
            process = subprocess.Popen(
                [sys.executable, __file__, *map(str, fds)],
                pass_fds=fds,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
        os.environ[ADDRESS] = address
        yield
        del os.environ[ADDRESS]
        ours.close()  # with which it ends
        process.wait()


class Launched:
    """A command that runs, with the methods of `subprocess.Popen`.

    Parameters
    ----------
    *arguments : str
        Those of the command line, without ``fieldbo``.
    env : mapping of str to str
    cwd : path, optional
    """

    _launcher = None

    def __init__(self, *arguments, env, cwd=None):
        if Launched._launcher is None:
            Launched._launcher = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            Launched._launcher.connect(os.environ[ADDRESS])
        read, write = os.pipe()
        self._told, telling = os.pipe()
        request = {"arguments": arguments, "env": env, "cwd": str(cwd or Path.cwd())}
        fds = [write, telling, *namespaces()]
        socket.send_fds(Launched._launcher, [json.dumps(request).encode()], fds)
        for sent in fds:
            os.close(sent)
        self.stdout = open(read, encoding="utf-8", errors="replace")  # noqa: PTH123, SIM115
        self.returncode = None
        self.pid = self._number()
        assert self.pid, "no command can be started"

    def _number(self):
        """Return the next number that is told of it; None if the launcher has ended."""
        told = os.read(self._told, 8)
        return int.from_bytes(told, signed=True) if told else None

    def wait(self, timeout=None):
        """Wait until it ends; return its exit code."""
        if self.returncode is None:
            poller = select.poll()
            poller.register(self._told, select.POLLIN)
            if not poller.poll(None if timeout is None else 1000 * timeout):
                raise subprocess.TimeoutExpired("fieldbo", timeout)
            code = self._number()
            self.returncode = -signal.SIGKILL if code is None else code
            os.close(self._told)
        return self.returncode

    def poll(self):
        """Return its exit code; None while it runs."""
        with suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def send_signal(self, number):
        """Send it a signal, if it still runs."""
        if self.poll() is None:
            os.kill(self.pid, number)


# -- the process that forks ------------------------------------------------------------------------------


def prepare():
    """Import all of fieldbo, and what a mission imports and loads on its way."""
    import fieldbo
    from fieldbo.mission.load import load_mission
    from fieldbo.results.result import Result
    from fieldbo.runs.runner import run

    os.environ.update(MAVLINK20="1", MAVLINK_DIALECT="ardupilotmega")  # as fieldbo sets them
    modules = [module.name for module in pkgutil.walk_packages(fieldbo.__path__, "fieldbo.")]
    for name in (*IMPORTED, *MESSAGES, *modules):
        if not name.endswith("__main__"):
            with suppress(ImportError):  # of a link that is not tested here
                importlib.import_module(name)
    with tempfile.TemporaryDirectory() as folder:
        run(load_mission(str(pond(Path(folder)))))
    Result.pictures = lambda *_: {}
    gc.freeze()
    assert len(list(Path("/proc/self/task").iterdir())) == 1


class Launcher:
    """Forks for each request.

    Parameters
    ----------
    inbox : socket
        Where those connect who ask.
    life : socket
        When its other end closes, the process ends.
    """

    def __init__(self, inbox, life):
        self.inbox, self.life, self.poller = inbox, life, select.poll()
        self.asking = {}  # connections by their descriptors
        self.running = {}  # by the descriptor that watches a fork: its id, who asked, and where to tell
        for one in (inbox, life):
            self.poller.register(one, select.POLLIN)

    def arguments(self):
        """Return, in each of the forks, its arguments."""
        while True:
            for fd, _ in self.poller.poll():
                if fd == self.life.fileno():
                    sys.exit()
                elif fd == self.inbox.fileno():
                    one, _ = self.inbox.accept()
                    self.asking[one.fileno()] = one
                    self.poller.register(one, select.POLLIN)
                elif fd in self.running:
                    self.has_ended(fd)
                elif (found := self.asked(fd)) is not None:
                    return found

    def asked(self, who):
        """Fork, or end all that somebody asked for who has gone; return the arguments in the fork."""
        message, fds, _, _ = socket.recv_fds(self.asking[who], 1_000_000, 8)
        if not message:
            self.poller.unregister(who)
            self.asking.pop(who).close()
            for pid, asker, _ in self.running.values():
                if asker == who:
                    with suppress(ProcessLookupError):
                        os.killpg(pid, signal.SIGKILL)
            return None
        output, told, *network = fds
        if (pid := os.fork()) == 0:
            for one in (self.inbox, self.life, *self.asking.values()):
                one.close()
            for watched, (_, _, telling) in self.running.items():
                os.close(watched)
                os.close(telling)
            os.close(told)
            enter(network)
            return become(json.loads(message), output)
        for used in (output, *network):
            os.close(used)
        tell(told, pid)
        watched = os.pidfd_open(pid)
        self.running[watched] = pid, who, told
        self.poller.register(watched, select.POLLIN)
        return None

    def has_ended(self, watched):
        """Tell the exit code of a fork."""
        self.poller.unregister(watched)
        pid, _, told = self.running.pop(watched)
        tell(told, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        os.close(told)
        os.close(watched)


def tell(pipe, number):
    with suppress(BrokenPipeError):
        os.write(pipe, number.to_bytes(8, signed=True))


def become(request, output):
    """Take the output, environment and folder of a request; return its arguments."""
    os.setsid()
    for stream in (1, 2):
        os.dup2(output, stream)
    os.close(output)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    sys.stdout, sys.stderr = (
        io.TextIOWrapper(io.FileIO(stream, "w", closefd=False), encoding="utf-8", write_through=True)
        for stream in (1, 2)
    )
    return request["arguments"]


def carry_out(arguments):
    """Run a command to its end, and end the process as forks of `multiprocessing` do."""
    from fieldbo.cli import main

    sys.argv, code = ["fieldbo", *arguments], 0
    try:
        main()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # taking the interpreter apart would take longer than most commands


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    prepare()
    carry_out(Launcher(*(socket.socket(fileno=int(number)) for number in sys.argv[1:])).arguments())

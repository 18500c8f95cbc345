"""A network of the tests' own, which has nothing but a loopback, and that can be cut."""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
from contextlib import contextmanager
from pathlib import Path

_NEW_USER, _NEW_NET = 0x10000000, 0x40000000
_KINDS = {"user": _NEW_USER, "net": _NEW_NET}
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 1
_LIBC = ctypes.CDLL(None, use_errno=True)


@contextmanager
def own_network():
    """Move this thread, and all processes that it starts, to a network where nobody else is.

    Root may do so; anybody else becomes one for that, in a user namespace, and stays there.
    """
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    user, group = os.getuid(), os.getgid()
    if user != 0:
        _call("unshare", _NEW_USER | _NEW_NET)
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    else:
        _call("unshare", _NEW_NET)
    try:
        cut(False)
        yield
    finally:
        if user == 0:
            _call("setns", before, _NEW_NET)
        os.close(before)


def namespaces():
    """Open what holds this thread's network, and who may change it; close the descriptors after use."""
    return [os.open(f"/proc/thread-self/ns/{kind}", os.O_RDONLY) for kind in _KINDS]


def enter(opened):
    """Move this process to where another one has opened its `namespaces`."""
    for (kind, number), one in zip(_KINDS.items(), opened, strict=True):
        if not os.path.sameopenfile(one, here := os.open(f"/proc/self/ns/{kind}", os.O_RDONLY)):
            _call("setns", one, number)
        os.close(here)
        os.close(one)


def cut(gone=True):
    """Let nothing through any more; or, with False, everything."""
    with socket.socket() as one:
        name, flags = struct.unpack("16sh14x", fcntl.ioctl(one, _GET_FLAGS, struct.pack("16sh14x", b"lo", 0)))
        fcntl.ioctl(one, _SET_FLAGS, struct.pack("16sh14x", name, flags & ~_UP if gone else flags | _UP))


def _call(name, *arguments):
    if getattr(_LIBC, name)(*arguments) != 0:
        code = ctypes.get_errno()
        raise OSError(
            code, f"{os.strerror(code)}: {name}; a network of one's own needs root or user namespaces"
        )

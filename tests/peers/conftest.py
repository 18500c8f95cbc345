"""What the tests of robots share: reasons for failures as in a test, and the process that starts programs."""

from contextlib import ExitStack

import pytest

pytest.register_assert_rewrite("peers.faults", "peers.processes")

from peers.launcher import launching  # noqa: E402 - registered before it is imported


def pytest_configure(config):
    if not hasattr(config, "workerinput"):  # one process serves all workers
        stack = ExitStack()
        stack.enter_context(launching())
        config.add_cleanup(stack.close)

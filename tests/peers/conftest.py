"""What the tests of robots share: reasons for failures, the process that starts programs, and their order."""

from contextlib import ExitStack, suppress

import pytest

pytest.register_assert_rewrite("peers.faults", "peers.processes")

from peers.launcher import launching  # noqa: E402 - registered before it is imported

FIRST = (
    "test_report_browser",
    "a_mission_over",
    "test_readme",
    "test_console",
    "test_steer",
    "Faults",
    "test_earth",
)
"""What takes longest, and begins first, so that no worker ends long after the others."""


def pytest_configure(config):
    if not hasattr(config, "workerinput"):  # one process serves all workers
        stack = ExitStack()
        stack.enter_context(launching())
        config.add_cleanup(stack.close)


def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker("slow")  # robots take their time
    items.sort(
        key=lambda item: min((k for k, text in enumerate(FIRST) if text in item.nodeid), default=len(FIRST))
    )


with suppress(ImportError):
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        """Gives each test to the next free worker; those of pages, which are made once, to one worker."""

        def _split_scope(self, nodeid):
            return "pages" if "test_report_browser" in nodeid else nodeid

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(config, log):
        return Scheduling(config, log)

"""Wait for what another process or thread does: for the event itself, for as long as a busy machine needs."""

import time

SLOW_S = 120.0
"""After this long, it is taken for broken."""


def until(condition, what="it"):
    """Wait until a condition holds, and return what it returns."""
    end_s = time.monotonic() + SLOW_S
    while not (found := condition()):
        assert time.monotonic() < end_s, f"waited for {what}"
        time.sleep(0.02)
    return found

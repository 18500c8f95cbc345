"""What the tests of robots share tells why it fails, as a test does."""

import pytest

pytest.register_assert_rewrite("peers.faults", "peers.processes")

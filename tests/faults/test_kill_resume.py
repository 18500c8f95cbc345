"""A few kills of the harness beside this file; hundreds: ``kill_resume.py --kills 500 --all-policies``."""

import re
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_killed_runs_resume_to_the_same_end_without_loss():
    harness = Path(__file__).with_name("kill_resume.py")
    done = subprocess.run(
        [sys.executable, harness, "--kills", "20", "--seed", "7"],
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    missions, count = done.stdout.splitlines()
    assert int(re.search(r"(\d+) torn logs", missions)[1]) > 0
    assert count == "20 kills, 0 readings lost, 0 doubled, 0 paths unequal"

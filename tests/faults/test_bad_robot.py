"""A robot over a link that fails, and a planner that is killed: ``bad_robot.py`` in samples."""

import pytest
from bad_robot import BadRobot

from fieldbo.messages import Lost
from fieldbo.record.record import Record


@pytest.mark.parametrize(
    "seeds", [range(2), pytest.param(range(2, 150), marks=pytest.mark.sweep)], ids=["few", "many"]
)
def test_no_battery_is_overdrawn_no_reading_wrong_and_no_vehicle_left_out(seeds, tmp_path):
    """Thousands of missions: ``python tests/faults/bad_robot.py --missions 2000``."""
    problems = {seed: BadRobot(seed).run(tmp_path / f"{seed}.sqlite").problems for seed in seeds}
    assert {seed: found for seed, found in problems.items() if found} == {}


def test_an_order_that_may_be_done_is_not_sent_again_if_that_could_not_be_paid_twice(tmp_path):
    """In these missions, the planner is killed while a robot that remembers no orders samples."""
    for seed in (150, 2059):
        assert BadRobot(seed).run(tmp_path / f"{seed}.sqlite").problems == []
    with Record(tmp_path / "150.sqlite") as record:
        lost = [row.message for row in record.rows() if row.kind == "lost"]
    assert any(isinstance(event, Lost) and "can't pay for it twice" in event.reason for event in lost)

"""Links within this process against the contract of links; others in `tests/peers`."""

from __future__ import annotations

import pytest
from direct_link import Guided, Near, Streaming, Wire

from fieldbo.testing import LinkContract, SteppedClock
from fieldbo.vehicles.remote.link import GoalResult, Heartbeat
from fieldbo.vehicles.simulators import Robot


class Direct(LinkContract):
    kind = Near

    def link(self, mission):
        self.clock = SteppedClock()
        robot = Robot(mission.world, start=mission.vehicles[0].start, speedup=20.0, clock=self.clock)
        return self.kind(robot)


class TestReporting(Direct):
    pass


class TestStreaming(Direct):
    kind = Streaming


class TestGuided(Direct):
    kind = Guided


# -- links that break it -----------------------------------------------------------------------------------


class Deaf(Near):
    """Hears nothing of the robot."""

    def open(self, mission, ground, hear):
        return super().open(mission, ground, lambda report: None)


class Chatty(Near):
    """Passes on what is no report."""

    def open(self, mission, ground, hear):
        hear("hello")
        return super().open(mission, ground, hear)


class Restless(Near):
    """Forgets to hold."""

    def open(self, mission, ground, hear):
        wire = super().open(mission, ground, hear)
        wire.hold = lambda: None
        return wire


class Reckless(Near):
    """Gives each goal another id, so that it is carried out again."""

    def open(self, mission, ground, hear):
        wire, ids = super().open(mission, ground, hear), []

        def go(goal):
            ids.append(goal.id)
            object.__setattr__(goal, "id", f"{goal.id}{len(ids)}")
            Wire.go(wire, goal)

        wire.go = go
        return wire


class Haunted(Near):
    """Goes on after it was closed."""

    def open(self, mission, ground, hear):
        wire = super().open(mission, ground, hear)
        wire.close = lambda: self.robot.clock.meanwhile.append(lambda: hear(Heartbeat()))
        return wire


class Dropping(Near):
    """Loses the answers to goals that were cancelled."""

    def open(self, mission, ground, hear):
        def pass_on(report):
            if not isinstance(report, GoalResult) or report.complete:
                hear(report)

        return super().open(mission, ground, pass_on)


@pytest.mark.parametrize(
    ("kind", "test"),
    [
        (Deaf, "test_a_robot_is_heard_without_being_asked"),
        (Chatty, "test_a_robot_is_heard_without_being_asked"),
        (Restless, "test_a_robot_stays_where_it_is_told_to_hold"),
        (Reckless, "test_a_goal_that_is_sent_again_is_carried_out_once"),
        (Haunted, "test_nothing_is_heard_after_it_was_closed"),
        (Dropping, "test_a_goal_is_answered_though_it_was_abandoned_before_it_came"),
    ],
)
def test_the_contract_finds_a_link_that_breaks_it(kind, test):
    contract = Direct()
    contract.kind, contract.patience_s = kind, 2.0
    with pytest.raises(AssertionError):
        getattr(contract, test)()

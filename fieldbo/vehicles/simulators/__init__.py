"""Simulated robots: programs at the other end of a link, to try a mission with before the boat goes out.

A program for a kind of link is a function ``serve(robot, link, ground, say)``: `link` holds the settings of
its own kind, `ground` is where the domain lies, or None, and `say` prints a line. It takes errands that come
over the link to the `Robot` (`Robot.go`, `Robot.cancel`, `Robot.hold`), calls `Robot.tick` at least 20 times
a second, and sends what that returns. It says ``ready`` once errands can come, and goes on until Ctrl-C
(KeyboardInterrupt), at which it takes its leave as a real robot would.
"""

from fieldbo.mission.kinds import Registry
from fieldbo.vehicles.simulators.faults import KINDS, Fault
from fieldbo.vehicles.simulators.robot import Robot

ROBOTS = Registry(
    "robot",
    "fieldbo.robots",
    {
        "ros2": "fieldbo.vehicles.simulators.ros2:serve",
        "ros2-topics": "fieldbo.vehicles.simulators.ros2:serve",
        "ros2-nav2": "fieldbo.vehicles.simulators.ros2:serve",
        "mavlink": "fieldbo.vehicles.simulators.mavlink:serve",
        "mqtt": "fieldbo.vehicles.simulators.mqtt:serve",
    },
)

__all__ = ["KINDS", "ROBOTS", "Fault", "Robot"]

"""Simulated robots: programs at the other end of a link, to rehearse a mission before the boat goes out.

To simulate a robot on another kind of link, write a function ``serve(robot, link, ground, say)`` and list it
in the entry-point group ``fieldbo.robots`` under the link's name. `link` holds the link's settings, `ground`
is where the domain lies (or None), and ``say(line)`` prints a line. The function

- passes the goals that arrive over the link to the `Robot` (`Robot.go`, `Robot.cancel`, `Robot.hold`),
- calls `Robot.tick` at least 20 times a second and sends the reports that it returns,
- says ``ready`` once goals can arrive, and runs until Ctrl-C (KeyboardInterrupt), at which it disconnects as
  a real robot would.
"""

from fieldbo.mission.kinds import Registry
from fieldbo.vehicles.simulators.robot import Robot
from fieldbo.vehicles.simulators.trips import KINDS, Fault, Schedule

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

__all__ = ["KINDS", "ROBOTS", "Fault", "Robot", "Schedule"]

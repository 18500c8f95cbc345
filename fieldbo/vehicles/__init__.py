"""What carries orders out: one vehicle, or one link to a robot, a file."""

from fieldbo.registry import Registry
from fieldbo.vehicles.base import Vehicle

VEHICLES = Registry(
    "vehicle",
    "fieldbo.vehicles",
    {
        "simulated": "fieldbo.vehicles.simulated:Simulated",
        "by-hand": "fieldbo.vehicles.by_hand:ByHand",
    },
)

LINKS = Registry(
    "link",
    "fieldbo.links",
    {
        "ros2": "fieldbo.vehicles.ros2:Ros2",
        "ros2-topics": "fieldbo.vehicles.ros2_streams:Ros2Topics",
        "ros2-nav2": "fieldbo.vehicles.ros2_streams:Ros2Nav2",
        "mavlink": "fieldbo.vehicles.mavlink:Mavlink",
        "mqtt": "fieldbo.vehicles.mqtt:Mqtt",
    },
)

__all__ = ["LINKS", "VEHICLES", "Vehicle"]

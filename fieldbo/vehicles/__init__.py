"""What carries orders out: one vehicle a file."""

from fieldbo.registry import Registry
from fieldbo.vehicles.base import Vehicle

VEHICLES = Registry(
    "vehicle",
    "fieldbo.vehicles",
    {
        "simulated": "fieldbo.vehicles.simulated:Simulated",
        "by-hand": "fieldbo.vehicles.by_hand:ByHand",
        "ros2": "fieldbo.vehicles.ros2:Ros2",
        "mavlink": "fieldbo.vehicles.mavlink:Mavlink",
        "mqtt": "fieldbo.vehicles.mqtt:Mqtt",
    },
)

__all__ = ["VEHICLES", "Vehicle"]

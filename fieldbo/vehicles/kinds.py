"""The registries of vehicles, and of links to robots, by name."""

from __future__ import annotations

from fieldbo.mission.kinds import Registry

VEHICLES = Registry(
    "vehicle",
    "fieldbo.vehicles",
    {
        "simulated": "fieldbo.vehicles.simulated:Simulated",
        "by-hand": "fieldbo.vehicles.by_hand:ByHand",
        "by-form": "fieldbo.vehicles.by_form:ByForm",
    },
)

LINKS = Registry(
    "link",
    "fieldbo.links",
    {
        "ros2": "fieldbo.vehicles.ros2.link:Ros2",
        "ros2-topics": "fieldbo.vehicles.ros2.streams:Ros2Topics",
        "ros2-nav2": "fieldbo.vehicles.ros2.streams:Ros2Nav2",
        "mavlink": "fieldbo.vehicles.mavlink.link:Mavlink",
        "mqtt": "fieldbo.vehicles.mqtt.link:Mqtt",
    },
)

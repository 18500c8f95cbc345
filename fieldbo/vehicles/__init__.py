"""What carries orders out: one vehicle a file."""

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

__all__ = ["VEHICLES", "Vehicle"]

"""What a move costs: one kind a file."""

from fieldbo.costs.base import CostModel
from fieldbo.costs.euclidean import Euclidean
from fieldbo.costs.flight import Flight
from fieldbo.costs.legs import Legs
from fieldbo.costs.route import shortest_order
from fieldbo.costs.transect import Transect
from fieldbo.costs.unit import Unit
from fieldbo.registry import Registry

COSTS = Registry(
    "cost kind",
    "fieldbo.costs",
    {
        "unit": "fieldbo.costs.unit:Unit",
        "euclidean": "fieldbo.costs.euclidean:Euclidean",
        "flight": "fieldbo.costs.flight:Flight",
        "transect": "fieldbo.costs.transect:Transect",
    },
)

__all__ = ["COSTS", "CostModel", "Euclidean", "Flight", "Legs", "Transect", "Unit", "shortest_order"]

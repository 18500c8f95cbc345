"""What a move costs: one kind a file."""

from fieldbo.costs.base import CostModel
from fieldbo.costs.euclidean import Euclidean
from fieldbo.costs.flight import Flight
from fieldbo.costs.legs import Legs
from fieldbo.costs.modular import Modular, Module
from fieldbo.costs.route import shortest_order
from fieldbo.costs.subset import Subset
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
        "modular": "fieldbo.costs.modular:Modular",
        "subset": "fieldbo.costs.subset:Subset",
        "transect": "fieldbo.costs.transect:Transect",
    },
)

__all__ = [
    "COSTS",
    "CostModel",
    "Euclidean",
    "Flight",
    "Legs",
    "Modular",
    "Module",
    "Subset",
    "Transect",
    "Unit",
    "shortest_order",
]

"""Kinds of ground truth: one a file. Only worlds and metrics may look at a field."""

from fieldbo.fields.base import Field
from fieldbo.registry import Registry

FIELDS = Registry(
    "field kind",
    "fieldbo.fields",
    {
        "airfoil": "fieldbo.fields.airfoil:AirfoilNoise",
        "cracks": "fieldbo.fields.cracks:Cracks",
        "function": "fieldbo.fields.function:Function",
        "gp-draw": "fieldbo.fields.gp_draw:GPDraw",
        "gp-mean": "fieldbo.fields.gp_mean:GPMean",
        "grid-table": "fieldbo.fields.grid_table:GridTable",
        "table": "fieldbo.fields.table:Table",
        "lake-chlorophyll": "fieldbo.fields.lake:LakeChlorophyll",
        "growth": "fieldbo.fields.growth:Growth",
        "micrograph-pipeline": "fieldbo.fields.pipeline:MicrographPipeline",
        "mlp-training": "fieldbo.fields.mlp:MLPTraining",
    },
)

__all__ = ["FIELDS", "Field"]

"""Kinds of policies, fields and costs by name: the built-in ones, and those of installed packages.

A package adds a kind with an entry point in the group ``fieldbo.policies``, ``fieldbo.fields``,
``fieldbo.costs`` or ``fieldbo.vehicles``. A kind is imported when it is first used.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from fieldbo.errors import InputError, UnknownNameError


class Registry:
    """Look up the kinds of a plug-in group by name.

    Parameters
    ----------
    what : str
        What errors call a kind, for example ``"policy"``.
    group : str
        The entry-point group.
    builtin : mapping of str to str
        Names and their ``module:Class``.
    """

    def __init__(self, what: str, group: str, builtin: Mapping[str, str]) -> None:
        self.what, self.group, self._builtin = what, group, dict(builtin)

    def _installed(self) -> dict[str, EntryPoint]:
        return {e.name: e for e in entry_points(group=self.group) if e.name not in self._builtin}

    def names(self) -> list[str]:
        """Return all valid names in alphabetical order."""
        return sorted([*self._builtin, *self._installed()])

    def get(self, name: str, *, where: str | None = None) -> Any:
        """Return the class of that name.

        Raises
        ------
        UnknownNameError
            There is no such name.
        InputError
            An installed package cannot be loaded, or does not provide a class.
        """
        if name in self._builtin:
            module, attribute = self._builtin[name].split(":")
            return getattr(import_module(module), attribute)
        installed = self._installed()
        if name not in installed:
            raise UnknownNameError.of(self.what, name, self.names(), where=where)
        entry = installed[name]
        package = entry.dist.name if entry.dist is not None else entry.module
        try:
            kind = entry.load()
        except Exception as error:  # whatever the package raises, say which one it is
            raise InputError(
                f"{self.what} {name!r} of the package {package} can't be loaded: {error!r}",
                expected=f"an entry point in the group {self.group} that names a class",
                where=where,
                fix=f"correct or uninstall {package}",
            ) from error
        if not callable(kind):
            raise InputError(
                f"{self.what} {name!r} of the package {package} is {kind!r}",
                expected=f"an entry point in the group {self.group} that names a class",
                where=where,
                fix=f"correct or uninstall {package}",
            )
        return kind


POLICIES = Registry(
    "policy",
    "fieldbo.policies",
    {
        "truvar": "fieldbo.policies.level_set.truvar:TruVaR",
        "gchk": "fieldbo.policies.level_set.rivals:GCHK",
        "straddle": "fieldbo.policies.level_set.rivals:Straddle",
        "maximum-variance": "fieldbo.policies.level_set.rivals:MaximumVariance",
        "ei": "fieldbo.policies.optimum.myopic:EI",
        "gp-ucb": "fieldbo.policies.optimum.myopic:GPUCB",
        "max-value-entropy-search": "fieldbo.policies.optimum.myopic:MaxValueEntropySearch",
        "entropy-search": "fieldbo.policies.optimum.information:EntropySearch",
        "minimum-regret-search": "fieldbo.policies.optimum.information:MinimumRegretSearch",
        "dist-ucb": "fieldbo.policies.travel.one_step:DistUCB",
        "ducb": "fieldbo.policies.travel.one_step:DUCB",
        "ucb": "fieldbo.policies.travel.one_step:UCB",
        "ei-per-cost": "fieldbo.policies.travel.one_step:EIPerCost",
        "rollout": "fieldbo.policies.travel.rollout:Rollout",
        "lambo": "fieldbo.policies.chains.lambo:LaMBO",
        "lazy-ei-per-cost": "fieldbo.policies.chains.rivals:LazyEIPerCost",
        "ca-mobo": "fieldbo.policies.chains.rivals:CAMOBO",
        "carbo": "fieldbo.policies.chains.rivals:CArBO",
        "subsets": "fieldbo.policies.control_sets.subsets:Subsets",
        "subset-front": "fieldbo.policies.control_sets.front:SubsetFront",
        "etc": "fieldbo.policies.control_sets.rivals:ETC",
        "ucb-psq": "fieldbo.policies.control_sets.rivals:UCBPSQ",
        "ts-psq": "fieldbo.policies.control_sets.rivals:TSPSQ",
        "ucb-cvs": "fieldbo.policies.control_sets.rivals:UCBCVS",
        "random": "fieldbo.policies.baselines:Random",
        "lawnmower": "fieldbo.policies.baselines:Lawnmower",
    },
)

COSTS = Registry(
    "cost kind",
    "fieldbo.costs",
    {
        "boat": "fieldbo.costs.boat:Boat",
        "unit": "fieldbo.costs.unit:Unit",
        "euclidean": "fieldbo.costs.euclidean:Euclidean",
        "flight": "fieldbo.costs.flight:Flight",
        "modular": "fieldbo.costs.chain:Modular",
        "subset": "fieldbo.costs.control_sets:Subset",
        "transect": "fieldbo.costs.transect:Transect",
    },
)

FIELDS = Registry(
    "field kind",
    "fieldbo.fields",
    {
        "airfoil": "fieldbo.world.fields.gallery.airfoil:AirfoilNoise",
        "cracks": "fieldbo.world.fields.gallery.cracks:Cracks",
        "function": "fieldbo.world.fields.function:Function",
        "gp-draw": "fieldbo.world.fields.gp_draw:GPDraw",
        "gp-mean": "fieldbo.world.fields.gp_mean:GPMean",
        "grid-table": "fieldbo.world.fields.grid_table:GridTable",
        "raster": "fieldbo.world.fields.raster:RasterField",
        "table": "fieldbo.world.fields.table:Table",
        "lake-chlorophyll": "fieldbo.world.fields.gallery.lake:LakeChlorophyll",
        "growth": "fieldbo.world.fields.gallery.growth:Growth",
        "micrograph-pipeline": "fieldbo.world.fields.gallery.pipeline:MicrographPipeline",
        "mlp-training": "fieldbo.world.fields.gallery.mlp:MLPTraining",
        "tracer": "fieldbo.world.fields.gallery.tracer:Tracer",
    },
)

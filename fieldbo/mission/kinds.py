"""Kinds of policies, fields and costs by name: the built-in ones, and those of installed packages.

A package adds a kind with an entry point in the group ``fieldbo.policies``, ``fieldbo.fields``,
``fieldbo.costs``, ``fieldbo.vehicles`` or ``fieldbo.links``. A kind is imported when it is first used. A
built-in name always stands for the built-in kind, so that no package changes what a shipped mission or an old
record means.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fieldbo.errors import InputError, UnknownNameError

_CODE = {".py", ".so", ".pyd"}


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
    base : str, optional
        ``module.Class`` of which the kinds of packages must be frozen dataclasses.
    """

    def __init__(self, what: str, group: str, builtin: Mapping[str, str], base: str | None = None) -> None:
        self.what, self.group, self.base, self._builtin = what, group, base, dict(builtin)

    def _installed(self) -> dict[str, list[EntryPoint]]:
        installed: dict[str, list[EntryPoint]] = {}
        for entry in entry_points(group=self.group):
            installed.setdefault(entry.name, []).append(entry)
        return installed

    def names(self) -> list[str]:
        """Return all valid names in alphabetical order."""
        return sorted({*self._builtin, *self._installed()})

    def warnings(self) -> dict[str, str]:
        """Return a warning by built-in name that packages provide, too, to no effect."""
        return {
            name: f"the {self.what} {name!r} of the package {_package(entries[0])} is ignored: "
            "built-in names can't be replaced"
            for name, entries in self._installed().items()
            if name in self._builtin
        }

    def get(self, name: str, *, where: str | None = None) -> Any:
        """Return the class of that name.

        Raises
        ------
        UnknownNameError
            There is no such name.
        InputError
            An installed package cannot be loaded or does not provide such a class, or several packages
            provide the name.
        """
        if name in self._builtin:
            module, attribute = self._builtin[name].split(":")
            return getattr(import_module(module), attribute)
        entry = self._entry(name, where)
        try:
            kind = entry.load()
        except (Exception, SystemExit) as error:  # whatever the package raises, say which one it is
            raise self._unusable(entry, f"can't be loaded: {error!r}", where) from error
        if problem := self._problem(kind):
            raise self._unusable(entry, problem, where)
        return kind

    def source(self, name: str) -> dict[str, str] | None:
        """Return the package that provides a kind, in plain data; None for a built-in kind.

        Returns
        -------
        dict
            ``kind`` (its name), ``group``, ``distribution``, ``version``, and the ``sha256`` of the code of
            the package that holds the class.
        """
        if name in self._builtin:
            return None
        entry = self._entry(name, None)
        packages = {module.partition(".")[0] for module in (entry.module, self.get(name).__module__)}
        return {
            "kind": name,
            "group": self.group,
            "distribution": _package(entry),
            "version": "" if entry.dist is None else entry.dist.version,
            "sha256": _code_digest(packages),
        }

    def _entry(self, name: str, where: str | None) -> EntryPoint:
        """Return the only entry point of a name that is not built in."""
        installed = self._installed()
        if name not in installed:
            raise UnknownNameError.of(self.what, name, self.names(), where=where)
        first, *others = installed[name]
        if others:
            packages = ", ".join(_package(entry) for entry in (first, *others))
            raise InputError(
                f"{self.what} {name!r} is provided by several packages: {packages}",
                expected="one package per name",
                where=where,
                fix="uninstall all but one of them",
            )
        return first

    def _problem(self, kind: Any) -> str | None:
        """Return what is wrong with the kind of a package; None if nothing is."""
        if not callable(kind):
            return f"is {kind!r}"
        if self.base is None:
            return None
        module, _, name = self.base.rpartition(".")
        if not (isinstance(kind, type) and issubclass(kind, getattr(import_module(module), name))):
            return f"is not a subclass of {self.base}"
        if (parameters := vars(kind).get("__dataclass_params__")) is None or not parameters.frozen:
            return "is not a frozen dataclass"
        missing = sorted(getattr(kind, "__abstractmethods__", ()))
        return f"does not implement {', '.join(missing)}" if missing else None

    def _unusable(self, entry: EntryPoint, problem: str, where: str | None) -> InputError:
        package, what = _package(entry), "a class"
        if self.base is not None:
            what = f"a subclass of {self.base} with the decorator @dataclass(frozen=True)"
        return InputError(
            f"{self.what} {entry.name!r} of the package {package} {problem}",
            expected=f"an entry point in the group {self.group} that names {what}",
            where=where,
            fix=f"correct or uninstall {package}",
        )


def _package(entry: EntryPoint) -> str:
    return entry.module if entry.dist is None else entry.dist.name


def _code_digest(packages: set[str]) -> str:
    digest = sha256()
    for package in sorted(packages):
        if (spec := find_spec(package)) is None:
            continue
        folders = [Path(folder) for folder in spec.submodule_search_locations or ()]
        files = [(f.relative_to(d).as_posix(), f) for d in folders for f in d.rglob("*") if f.suffix in _CODE]
        if not folders and spec.origin is not None:
            files = [(package, Path(spec.origin))]
        for name, file in sorted((n, f) for n, f in files if f.is_file()):
            digest.update(f"{package} {name} {file.stat().st_size}\n".encode() + file.read_bytes())
    return digest.hexdigest()


POLICIES = Registry(
    "policy",
    "fieldbo.policies",
    {
        "truvar": "fieldbo.policies.level_set.truvar:TruVaR",
        "gchk": "fieldbo.policies.baselines:GCHK",
        "straddle": "fieldbo.policies.baselines:Straddle",
        "tour": "fieldbo.policies.level_set.tour:Tour",
        "one-step-risk": "fieldbo.policies.level_set.tour:OneStepRisk",
        "global-sur": "fieldbo.policies.level_set.look_ahead:GlobalSUR",
        "global-mi": "fieldbo.policies.level_set.look_ahead:GlobalMI",
        "eavc": "fieldbo.policies.level_set.look_ahead:EAVC",
        "distance-penalised": "fieldbo.policies.level_set.look_ahead:DistancePenalised",
        "maximum-variance": "fieldbo.policies.baselines:MaximumVariance",
        "ei": "fieldbo.policies.optimum.myopic:EI",
        "gp-ucb": "fieldbo.policies.optimum.myopic:GPUCB",
        "max-value-entropy-search": "fieldbo.policies.optimum.myopic:MaxValueEntropySearch",
        "entropy-search": "fieldbo.policies.optimum.myopic:EntropySearch",
        "minimum-regret-search": "fieldbo.policies.optimum.myopic:MinimumRegretSearch",
        "scout": "fieldbo.policies.optimum.scout:Scout",
        "search-tour": "fieldbo.policies.optimum.search_tour:SearchTour",
        "dist-ucb": "fieldbo.policies.travel.one_step:DistUCB",
        "ducb": "fieldbo.policies.travel.one_step:DUCB",
        "ucb": "fieldbo.policies.travel.one_step:UCB",
        "ei-per-cost": "fieldbo.policies.travel.one_step:EIPerCost",
        "rollout": "fieldbo.policies.travel.rollout:Rollout",
        "lambo": "fieldbo.policies.chains.lambo:LaMBO",
        "lazy-ei-per-cost": "fieldbo.policies.chains.rivals:LazyEIPerCost",
        "ca-mobo": "fieldbo.policies.chains.rivals:CAMOBO",
        "carbo": "fieldbo.policies.chains.rivals:CArBO",
        "informative-path": "fieldbo.policies.paths.informative:InformativePath",
        "subsets": "fieldbo.policies.control_sets.subsets:Subsets",
        "subset-front": "fieldbo.policies.control_sets.front:SubsetFront",
        "etc": "fieldbo.policies.control_sets.rivals:ETC",
        "ucb-psq": "fieldbo.policies.control_sets.rivals:UCBPSQ",
        "ts-psq": "fieldbo.policies.control_sets.rivals:TSPSQ",
        "ucb-cvs": "fieldbo.policies.control_sets.rivals:UCBCVS",
        "random": "fieldbo.policies.baselines:Random",
        "lawnmower": "fieldbo.policies.baselines:Lawnmower",
    },
    base="fieldbo.policies.Policy",
)

COSTS = Registry(
    "cost kind",
    "fieldbo.costs",
    {
        "boat": "fieldbo.costs.travel:Boat",
        "unit": "fieldbo.costs.base:Unit",
        "euclidean": "fieldbo.costs.travel:Euclidean",
        "flight": "fieldbo.costs.travel:Flight",
        "modular": "fieldbo.costs.cells:Modular",
        "subset": "fieldbo.costs.cells:Subset",
        "transect": "fieldbo.costs.travel:Transect",
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
        "gp-mean": "fieldbo.world.fields.gp_draw:GPMean",
        "grid-table": "fieldbo.world.fields.files:GridTable",
        "raster": "fieldbo.world.fields.files:RasterField",
        "table": "fieldbo.world.fields.table:Table",
        "lake-chlorophyll": "fieldbo.world.fields.gallery.lake:LakeChlorophyll",
        "growth": "fieldbo.world.fields.gallery.growth:Growth",
        "micrograph-pipeline": "fieldbo.world.fields.gallery.pipeline:MicrographPipeline",
        "mlp-training": "fieldbo.world.fields.gallery.mlp:MLPTraining",
        "tracer": "fieldbo.world.fields.gallery.tracer:Tracer",
    },
)

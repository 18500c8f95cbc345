"""The final maps of a run as a labelled data set, with CF names and units.

The variables are ``mean`` and ``sd``. For a level set above its threshold, ``exceedance`` is the probability
of being at or above it; for one below, ``non_exceedance`` is the probability of being at or below it. In both
cases ``class`` is 1 above the threshold and 0 below it; a site at the threshold belongs to the level set. It
is 2, not inspected, farther from any reading than the readings can speak for. For an optimum, ``exceedance``
is the probability of being better than the reported value. Where readings fail in some places, ``failure`` is
the probability that they do.

They lie on the grid if the domain has one (NaN and -1 outside its region), else along ``site``. An axis whose
name CF does not allow gets a valid one, and its own as ``long_name``. For a log model ``mean`` and ``sd`` are
those of the log-normal.

In the file, gaps hold fill values that all programs know: not NaN, with which NCO computes no averages.
Classes are no bytes, whose sign GDAL before 3.7 does not know. Units are those of UDUNITS: see `cf_units`.

Where the domain has a CRS, ``crs`` describes it as CF's grid mapping, ``latitude`` and ``longitude`` give the
sites in degrees, and rows run along northings, columns along eastings.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fieldbo.agent.failures import Failures
from fieldbo.agent.unseen import inspection
from fieldbo.belief.confidence import AnySurface, moments
from fieldbo.domain.axes import is_depth
from fieldbo.domain.domain import Domain
from fieldbo.domain.georeference import crs_of
from fieldbo.results.answers import PROBABILITY, Answer, LevelSetAnswer, OptimumAnswer
from fieldbo.results.cf_units import with_units
from fieldbo.results.outcome import Outcome

if TYPE_CHECKING:
    import xarray


_TAKEN = ("mean", "sd", *PROBABILITY.values(), "class", "failure", "site")

GRID_MAPPING = "crs"
"""The variable that describes the CRS."""

DEGREES: dict[str, dict[str, Any]] = {
    "latitude": {"standard_name": "latitude", "units": "degrees_north"},
    "longitude": {"standard_name": "longitude", "units": "degrees_east"},
}
"""The variables that hold degrees, and their CF attributes."""

Layers = dict[str, tuple[NDArray[Any], dict[str, Any]]]
"""Values (N,) and CF attributes by the name of the variable."""


def of(outcome: Outcome) -> xarray.Dataset:
    """Return the maps of a run.

    Examples
    --------
    >>> import fieldbo
    >>> mission = fieldbo.load_mission("lake-level-set", {"agent": {"battery": 100}})
    >>> sorted(of(fieldbo.run(mission)).data_vars)
    ['class', 'exceedance', 'mean', 'sd']
    """
    return labelled(outcome).dataset()


def labelled(outcome: Outcome) -> Labelled:
    """Return the maps of a run without loading xarray."""
    mission, answer = outcome.mission, outcome.answer
    domain = mission.world.domain
    attributes: dict[str, Any] = {
        "Conventions": "CF-1.11",
        "title": f"{mission.world.title}: {mission.name}",
        "source": "fieldbo",
    }
    if isinstance(answer, LevelSetAnswer):
        attributes |= {"threshold": answer.user_threshold, "side": answer.side}
    else:
        attributes |= {"reported_value": answer.reported_value, "reported_site": answer.reported.point}
    names = names_of([axis.name for axis in domain.axes], taken_by(domain))
    variables = {
        name: _lay_out(domain, names, *_as_short(values, described))
        for name, (values, described) in layers(outcome.answer, outcome.failures).items()
    }
    coordinates = {name: _coordinate(domain, j, name) for j, name in enumerate(names)}
    maps = Labelled(variables, coordinates, attributes)
    return maps if domain.georeference is None else _georeference(maps, domain, names)


def layers(answer: Answer, failures: Failures | None, surface: AnySurface | None = None) -> Layers:
    """Return the variables of the maps over a surface, by default that of the answer.

    Examples
    --------
    >>> import fieldbo
    >>> result = fieldbo.run(fieldbo.load_mission("lake-level-set", {"agent": {"battery": 100}}))
    >>> mean, attributes = layers(result.answer, None, result.surface.over([[700.0, 9.0]]))["mean"]
    >>> mean.shape, attributes["units"]
    ((1,), 'mg m-3')
    """
    surface = answer.surface if surface is None else surface
    known = _moments(answer, surface)
    known |= _classes(answer, surface) if isinstance(answer, LevelSetAnswer) else _better(answer, surface)
    if failures is not None and failures.local:
        described = {"long_name": "probability that a reading fails", "units": "1"}
        known["failure"] = failures.at(surface.candidates), described
    return known


def _georeference(maps: Labelled, domain: Domain, names: Sequence[str]) -> Labelled:
    assert domain.georeference is not None
    across, up = domain.georeference.axes
    dimensions: tuple[str, ...] = ("site",)
    sites, shape, variables = domain.sites, domain.sites.shape[:1], maps.variables
    if domain.shape is not None:  # in the order in which CF and GIS expect the axes
        order = [*(j for j in range(domain.dimension) if j not in (across, up)), up, across]
        variables = {
            name: variable._replace(
                dimensions=tuple(names[j] for j in order), values=variable.values.transpose(order)
            )
            for name, variable in variables.items()
        }
        dimensions = (names[up], names[across])
        nodes = np.meshgrid(*(maps.coordinates[name].values for name in dimensions), indexing="ij")
        sites, shape = np.zeros((nodes[0].size, domain.dimension)), nodes[0].shape
        sites[:, [across, up]] = np.column_stack([nodes[1].ravel(), nodes[0].ravel()])
    degrees = domain.georeference.degrees(sites)
    on_earth = {
        name: Variable(dimensions, degrees[:, j].reshape(shape), cf)
        for j, (name, cf) in enumerate(DEGREES.items())
    }
    crs = {GRID_MAPPING: Variable((), np.array(0, dtype=np.int32), grid_mapping(domain.georeference.crs))}
    axes = {name: maps.coordinates[name] for name in names}
    if (
        domain.shape is None
    ):  # GDAL makes points of the last pair of coordinates, which must be those of the CRS
        last = {names[j]: axes.pop(names[j]) for j in (across, up)}
        return Labelled(variables, axes | on_earth | last | crs, maps.attributes, GRID_MAPPING)
    return Labelled(variables, axes | on_earth | crs, maps.attributes, GRID_MAPPING)


def grid_mapping(crs: str) -> dict[str, Any]:
    """Return the CF attributes of a CRS.

    Examples
    --------
    >>> grid_mapping("EPSG:32632")["grid_mapping_name"]
    'transverse_mercator'
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what CF has no attribute for is in crs_wkt
        described = dict(crs_of(crs, "domain.crs").to_cf())
    if (
        described.get("grid_mapping_name") == "polar_stereographic"
    ):  # CF asks which pole, and PROJ may not say
        north = described.get("standard_parallel", 90.0) > 0.0
        described.setdefault("latitude_of_projection_origin", 90.0 if north else -90.0)
    return described


def _moments(answer: Answer, surface: AnySurface) -> Layers:
    quantity = answer.mission.world.quantity
    mean, sd = moments(surface, answer.scale)
    standard_name, unit = quantity.standard_name, {"units": quantity.unit}
    return {
        "mean": (
            mean,
            {"long_name": f"{quantity.name}, posterior mean", **unit}
            | ({"standard_name": standard_name} if standard_name else {}),
        ),
        "sd": (
            sd,
            {"long_name": f"{quantity.name}, posterior standard deviation", **unit}
            | ({"standard_name": f"{standard_name} standard_error"} if standard_name else {}),
        ),
    }


def _classes(answer: LevelSetAnswer, surface: AnySurface) -> Layers:
    quantity = answer.mission.world.quantity
    name, threshold = quantity.name, quantity.number(answer.user_threshold)
    within, beyond = (">=", ">=") if answer.side == "above" else ("<=", ">")
    probability = surface.exceedance(answer.threshold)
    inside = probability >= 0.5
    above = inside if answer.side == "above" else ~inside
    lacking = inspection(answer.mission, surface, answer.threshold).lacking
    flags = {"flag_values": np.array([0, 1, 2], dtype=np.int8), "flag_meanings": "below above not_inspected"}
    return {
        PROBABILITY[answer.side]: (
            probability,
            {"long_name": f"probability of {name} {within} {threshold}", "units": "1"},
        ),
        "class": (
            np.where(lacking, 2, above).astype(np.int8),
            {"long_name": f"{name} {beyond} {threshold}", "units": "1", **flags},
        ),
    }


def _better(answer: OptimumAnswer, surface: AnySurface) -> Layers:
    beyond = ">=" if answer.mission.question.sign > 0 else "<="
    what = f"{answer.mission.world.quantity.name} {beyond} {answer.reported_value:g}, the reported optimum"
    p = surface.exceedance(answer.reported.value)
    return {"exceedance": (p, {"long_name": f"probability of {what}", "units": "1"})}


def _as_short(values: NDArray[Any], attributes: dict[str, Any]) -> tuple[NDArray[Any], dict[str, Any]]:
    """Return values and attributes with bytes as 16-bit numbers."""
    small = {key: _short(value) for key, value in attributes.items() if isinstance(value, np.ndarray)}
    return _short(values), {**attributes, **small}


def _short(values: NDArray[Any]) -> NDArray[Any]:
    return values.astype(np.int16) if values.dtype == np.int8 else values


def _lay_out(
    domain: Domain, names: Sequence[str], values: NDArray[Any], attributes: dict[str, Any]
) -> Variable:
    described, fill = with_units(attributes), None if values.dtype.kind == "f" else values.dtype.type(-1)
    if domain.shape is None:
        return Variable(("site",), values, described, fill)
    return Variable(tuple(names), domain.on_grid(values), described, fill)


def taken_by(domain: Domain) -> tuple[str, ...]:
    """Return the variables that place a domain on the Earth."""
    return () if domain.crs is None else (GRID_MAPPING, *DEGREES)


def names_of(names: Sequence[str], taken: Sequence[str] = ()) -> list[str]:
    """Return valid and unique CF names: ASCII letters, digits and underscores, with a letter first.

    None of them is in `taken`, or that of a map.

    Examples
    --------
    >>> names_of(["oven heat (C)", "oven_heat_C", "1st", "x"])
    ['oven_heat_C', 'oven_heat_C_2', 'axis_1st', 'x']
    """
    valid: list[str] = []
    for name in names:
        stem = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")
        stem = stem if stem[:1].isalpha() else f"axis_{stem}".rstrip("_")
        used = {*valid, *_TAKEN, *taken}
        candidates = chain([stem], (f"{stem}_{k}" for k in count(2)))
        valid.append(next(candidate for candidate in candidates if candidate not in used))
    return valid


def _coordinate(domain: Domain, j: int, name: str) -> Variable:
    axis, attributes = domain.axes[j], attributes_of(domain, j)
    if domain.shape is None:
        return Variable(("site",), domain.sites[:, j], attributes)
    return Variable((name,), np.linspace(axis.low, axis.high, domain.shape[j]), attributes)


def attributes_of(domain: Domain, j: int) -> dict[str, Any]:
    """Return the CF attributes of coordinates along axis `j`."""
    axis = domain.axes[j]
    attributes = with_units({"long_name": axis.name, "units": axis.unit})
    if axis.positive == "down":
        attributes |= {"positive": "down", "axis": "Z"}
    if is_depth(axis.name):
        attributes["standard_name"] = "depth"
    if domain.georeference is not None and j in domain.georeference.axes:
        letter = "XY"[domain.georeference.axes.index(j)]
        attributes |= {"standard_name": f"projection_{letter.lower()}_coordinate", "axis": letter}
    return attributes


class Variable(NamedTuple):
    """An array with named dimensions.

    Attributes
    ----------
    dimensions : tuple of str
    values : array
    attributes : mapping of str to text, number or array
    fill : number, optional
        What marks a gap in a variable of whole numbers.
    """

    dimensions: tuple[str, ...]
    values: NDArray[Any]
    attributes: Mapping[str, Any]
    fill: Any = None


@dataclass(frozen=True)
class Labelled:
    """Variables over shared coordinates.

    Attributes
    ----------
    variables, coordinates : dict of str to Variable
        By name.
    attributes : dict
        Those of the whole.
    grid_mapping : str, optional
        The coordinate that describes the CRS of all variables.
    """

    variables: dict[str, Variable]
    coordinates: dict[str, Variable]
    attributes: dict[str, Any] = field(default_factory=dict)
    grid_mapping: str | None = None

    def dataset(self) -> xarray.Dataset:
        """Return a data set of xarray."""
        import xarray

        out = xarray.Dataset(
            {name: variable[:3] for name, variable in self.variables.items()},
            {name: coordinate[:3] for name, coordinate in self.coordinates.items()},
            self.attributes,
        )
        for name, variable in self.variables.items():
            if (fill := fill_of(variable)) is not None:
                out[name].encoding["_FillValue"] = fill
            if (beside := self._beside(variable)) != sorted(beside):  # else xarray writes them so
                out[name].encoding["coordinates"] = " ".join(beside)
            if self.grid_mapping is not None:
                out[name].encoding["grid_mapping"] = self.grid_mapping
        for name in self.coordinates:
            out[name].encoding["_FillValue"] = None  # CF allows no missing coordinates
        return out

    def file(self) -> bytes:
        """Return the netCDF file.

        Examples
        --------
        >>> import xarray
        >>> x = Variable(("x",), np.array([0.0, 1.0]), {"units": "m"})
        >>> depth = Variable(("x",), np.array([3.0, np.nan]), {"long_name": "depth"})
        >>> labelled = Labelled({"depth": depth}, {"x": x})
        >>> labelled.file() == bytes(labelled.dataset().to_netcdf(engine="scipy"))
        True
        """
        from scipy.io import netcdf_file

        content = io.BytesIO()
        out = netcdf_file(content, "w", version=2)
        for key, value in self.attributes.items():
            setattr(out, key, _as_stored(value))
        for of in (self.variables, self.coordinates):
            for variable in of.values():
                for dimension, length in zip(variable.dimensions, variable.values.shape, strict=True):
                    if dimension not in out.dimensions:
                        out.createDimension(dimension, length)
        described = {name: self._describe(variable) for name, variable in self.variables.items()}
        described |= {name: dict(coordinate.attributes) for name, coordinate in self.coordinates.items()}
        for name, attributes in described.items():
            variable = (self.variables | self.coordinates)[name]
            stored = out.createVariable(name, variable.values.dtype, variable.dimensions)
            for key, value in attributes.items():
                setattr(stored, key, _as_stored(value))
            stored.data[...] = variable.values
            fill = attributes.get("_FillValue")
            if variable.values.dtype.kind == "f" and fill is not None:
                stored.data[np.isnan(variable.values)] = fill
        out.flush()
        return content.getvalue()

    def _beside(self, variable: Variable) -> list[str]:
        """Return the names of the coordinates of a variable that are not its dimensions."""
        return [
            name
            for name, coordinate in self.coordinates.items()
            if name not in (*coordinate.dimensions, self.grid_mapping)
            and set(coordinate.dimensions) <= set(variable.dimensions)
        ]

    def _describe(self, variable: Variable) -> dict[str, Any]:
        said = {
            "coordinates": " ".join(self._beside(variable)) or None,
            "_FillValue": fill_of(variable),
            "grid_mapping": self.grid_mapping,
        }
        return {**variable.attributes, **{key: value for key, value in said.items() if value is not None}}


NO_NUMBER = 9.969209968386869e36
"""What netCDF itself fills gaps of real numbers with."""


def fill_of(variable: Variable) -> Any:
    """Return what marks a gap in a variable; None if it has none."""
    real = variable.values.dtype.kind == "f"
    return variable.values.dtype.type(NO_NUMBER) if real else variable.fill


def _as_stored(value: Any) -> Any:
    """Return the value of an attribute as the file holds it."""
    if isinstance(value, str):
        return value.encode()
    stored = np.atleast_1d(value)
    return stored.astype(np.int32) if stored.dtype == np.int64 else stored  # netCDF-3 has no longer ones

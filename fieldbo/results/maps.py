"""The final maps of a run as a labelled data set, with CF names and units.

The variables are ``mean`` and ``sd``. For a level set above its threshold, ``exceedance`` is the probability
of being at or above it; for one below, ``non_exceedance`` is the probability of being at or below it. In both
cases ``class`` is 1 above the threshold and 0 below it; a site at the threshold belongs to the level set. For
an optimum, ``exceedance`` is the probability of being better than the reported value.

They lie on the grid if the domain has one (NaN and -1 outside its region), else along ``site``. An axis whose
name CF does not allow gets a valid one, and its own as ``long_name``. For a log model ``mean`` and ``sd`` are
those of the log-normal, and the class uses the median.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain, count
from typing import Any

import numpy as np
import xarray
from numpy.typing import NDArray

from fieldbo.domain.axes import Axis, is_depth
from fieldbo.domain.domain import Domain
from fieldbo.results.answers import PROBABILITY, LevelSetAnswer, OptimumAnswer
from fieldbo.results.outcome import Outcome

_TAKEN = ("mean", "sd", *PROBABILITY.values(), "class", "site")

_Variables = dict[str, tuple[NDArray[Any], dict[str, Any]]]


def of(outcome: Outcome) -> xarray.Dataset:
    """Return the maps of a run.

    Examples
    --------
    >>> import fieldbo
    >>> mission = fieldbo.load_mission("lake-level-set", {"agent": {"battery": 100}})
    >>> sorted(of(fieldbo.run(mission)).data_vars)
    ['class', 'exceedance', 'mean', 'sd']
    """
    mission, answer = outcome.mission, outcome.answer
    domain = mission.world.domain
    attributes: dict[str, Any] = {
        "Conventions": "CF-1.11",
        "title": f"{mission.world.title}: {mission.name}",
        "source": "fieldbo",
    }
    if isinstance(answer, LevelSetAnswer):
        attributes |= {"threshold": answer.user_threshold, "side": answer.side}
        values = _moments(outcome) | _classes(answer)
    else:
        attributes |= {"reported_value": answer.reported_value, "reported_site": answer.reported.point}
        values = _moments(outcome) | _better(answer)
    names = names_of([axis.name for axis in domain.axes])
    variables = {name: _laid_out(domain, names, *v) for name, v in values.items()}
    coordinates = {name: _coordinate(domain, j, name) for j, name in enumerate(names)}
    maps = xarray.Dataset(variables, coordinates, attributes)
    if "class" in maps:
        maps["class"].encoding["_FillValue"] = np.int8(-1)
    for name in names:
        maps[name].encoding["_FillValue"] = None  # CF allows no missing coordinates
    return maps


def _moments(outcome: Outcome) -> _Variables:
    """Return values (N,) and attributes of posterior mean and standard deviation."""
    quantity, surface = outcome.mission.world.quantity, outcome.surface
    mean, sd = outcome.hyperparameters.scale.moments(surface.mean, surface.variance)
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


def _classes(answer: LevelSetAnswer) -> _Variables:
    name, threshold = answer.mission.world.quantity.name, f"{answer.user_threshold:g}"
    within, above = (">=", ">=") if answer.side == "above" else ("<=", ">")
    flags = {"flag_values": np.array([0, 1], dtype=np.int8), "flag_meanings": "below above"}
    return {
        PROBABILITY[answer.side]: (
            answer.probability,
            {"long_name": f"probability of {name} {within} {threshold}", "units": "1"},
        ),
        "class": (
            answer.above.astype(np.int8),
            {"long_name": f"{name} {above} {threshold}", "units": "1", **flags},
        ),
    }


def _better(answer: OptimumAnswer) -> _Variables:
    beyond = ">=" if answer.mission.question.sign > 0 else "<="
    what = f"{answer.mission.world.quantity.name} {beyond} {answer.reported_value:g}, the reported optimum"
    p = answer.surface.exceedance(answer.reported.value)
    return {"exceedance": (p, {"long_name": f"probability of {what}", "units": "1"})}


def _laid_out(domain: Domain, names: Sequence[str], values: NDArray[Any], attributes: dict[str, Any]) -> Any:
    """Return dimensions, values and attributes of an xarray variable."""
    if domain.shape is None:
        return ("site",), values, attributes
    return tuple(names), domain.on_grid(values), attributes


def names_of(names: Sequence[str]) -> list[str]:
    """Return valid and unique CF names: ASCII letters, digits and underscores, with a letter first.

    Examples
    --------
    >>> names_of(["oven heat (C)", "oven_heat_C", "1st", "x"])
    ['oven_heat_C', 'oven_heat_C_2', 'axis_1st', 'x']
    """
    valid: list[str] = []
    for name in names:
        stem = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")
        stem = stem if stem[:1].isalpha() else f"axis_{stem}".rstrip("_")
        taken = [*valid, *_TAKEN]
        candidates = chain([stem], (f"{stem}_{k}" for k in count(2)))
        valid.append(next(candidate for candidate in candidates if candidate not in taken))
    return valid


def _coordinate(domain: Domain, j: int, name: str) -> Any:
    """Return the xarray coordinate of axis `j`."""
    axis = domain.axes[j]
    if domain.shape is None:
        return ("site",), domain.sites[:, j], attributes_of(axis)
    return (name,), np.linspace(axis.low, axis.high, domain.shape[j]), attributes_of(axis)


def attributes_of(axis: Axis) -> dict[str, Any]:
    """Return the CF attributes of coordinates along an axis."""
    attributes: dict[str, Any] = {"long_name": axis.name, "units": axis.unit}
    if axis.positive == "down":
        attributes |= {"positive": "down", "axis": "Z"}
    if is_depth(axis.name):
        attributes["standard_name"] = "depth"
    return attributes

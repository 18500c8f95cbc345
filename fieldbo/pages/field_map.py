"""What the map of a page needs: geometry, places, and the layers of each frame."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from fieldbo._numerics.arrays import Array
from fieldbo.domain.obstacles import Obstacle, Region
from fieldbo.mission.mission import Mission
from fieldbo.pages.course import Layers
from fieldbo.pages.plane import Plane, Raster
from fieldbo.results.answers import PROBABILITY, LevelSetAnswer, OptimumAnswer
from fieldbo.results.metrics import doubtful
from fieldbo.results.plot.style import CHANCE, CLASS_OR_NONE, HOPE, SPREAD
from fieldbo.results.result import Result

VALUES = "viridis"
"""Colours of a quantity."""

_OUTSIDE = 0xFFFFFFFF
_COLOURS = 64
_TAIL = 0.5  # percent of all values of a layer that may lie beyond each end of its colours


def geometry(plane: Plane, raster: Raster | None) -> dict[str, Any]:
    """Return the fixed parts of a map: bounds, axes, outline, obstacles, and the pixels of its raster."""
    low, high = plane.bounds
    return {
        "kind": plane.kind,
        "bounds": [low.tolist(), high.tolist()],
        "axes": plane.described(),
        "outline": _rings(plane, plane.ground),
        "obstacles": [{"name": o.name, "rings": _rings(plane, o.polygon)} for o in plane.obstacles],
        "clearance": plane.domain.clearance,
        "raster": None if raster is None else _pixels(raster),
    }


def areas(plane: Plane, no_go: Sequence[Obstacle]) -> list[dict[str, Any]]:
    """Return the areas that were closed under way, in order: name and corners."""
    return [
        {
            "name": area.name,
            "corners": plane.drawn(plane.whole(shapely.get_coordinates(area.polygon.exterior)[:-1])),
        }
        for area in no_go
    ]


def _rings(plane: Plane, region: Region) -> list[list[list[float]]]:
    polygons = shapely.get_parts(region)
    rings = [ring for polygon in polygons for ring in (polygon.exterior, *polygon.interiors)]
    return [plane.drawn(plane.whole(shapely.get_coordinates(ring)[:, :2])) for ring in rings]


def _pixels(raster: Raster) -> dict[str, Any]:
    rows, columns = raster.pixels.shape
    small = len(raster.shown) < 0xFFFF
    pixels = np.where(raster.pixels < 0, _OUTSIDE, raster.pixels).astype("<u2" if small else "<u4")
    return {"rows": rows, "columns": columns, "bits": 16 if small else 32, "sites": as_base64(pixels)}


def places(plane: Plane, result: Result) -> list[dict[str, Any]]:
    """Return start and home of each vehicle, and the reported, the best measured and the true optimum."""
    vehicles, answer = result.mission.vehicles, result.answer
    marked: list[tuple[str, str, Array]] = []
    for number, spec in enumerate(vehicles, 1):
        of = f" of vehicle {number}" if len(vehicles) > 1 else ""
        marked.append(("start", f"start{of}", spec.start))
        if spec.home is not None:
            marked.append(("home", f"home{of}", spec.home))
    if isinstance(answer, OptimumAnswer):
        marked.append(("reported", "reported optimum", answer.reported.point))
        if (best := result.measured_elsewhere) is not None:
            marked.append(("measured", "best measured", best.point))
        if answer.optimum is not None:
            marked.append(("true", "true optimum", answer.optimum.point))
    return [{"kind": kind, "name": name, "at": plane.drawn(at)[0]} for kind, name, at in marked]


# -- layers ------------------------------------------------------------------------------------------------


def layers(result: Result, frames: Sequence[Layers], raster: Raster) -> list[dict[str, Any]]:
    """Return the layers to choose from: label, unit, and colours with the values at their ends."""
    quantity, answer = result.mission.world.quantity, result.answer
    unit = "" if quantity.unit == "1" else quantity.unit
    shown = raster.shown
    least, most = _ends([f["mean"][shown] for f in frames])
    described = [
        _layer("mean", f"estimate of {quantity.name}", unit, VALUES, least, most),
        _layer(
            "sd",
            f"uncertainty of {quantity.name} (standard deviation)",
            unit,
            SPREAD["cmap"],
            0.0,
            _ends([f["sd"][shown] for f in frames])[1],
        ),
    ]
    if isinstance(answer, LevelSetAnswer):
        name = f"probability of being at or {answer.side} {quantity.amount(answer.user_threshold)}"
        described.append(_layer("probability", name, "", CHANCE["cmap"], 0.0, 1.0))
        described.append({"key": "class", "label": "class", "unit": "", "classes": _classes(answer)})
    else:
        name = "probability of beating the optimum reported at that time"
        described.append(_layer("probability", name, "", HOPE["cmap"], 0.0, 0.5))
    for layer in described:  # what nobody has inspected is hatched on all that the model estimates
        layer["estimated"] = True
    if any("failure" in frame for frame in frames):
        described.append(_layer("failure", "probability that a reading fails", "", SPREAD["cmap"], 0.0, 1.0))
    if result.truth is not None:
        true = result.truth[shown]
        ends = (float(true.min()), float(true.max()))
        described.append(
            _layer("truth", f"true {quantity.name} of the simulation", unit, VALUES, *ends)
            | {"fixed": quantised(true)}
        )
    return described


def _ends(frames: Sequence[NDArray[Any]]) -> tuple[float, float]:
    """Return the ends of a layer's colours: around its last frame, and nearly all values of the others."""
    every = np.concatenate([values[np.isfinite(values)] for values in frames])
    last = frames[-1][np.isfinite(frames[-1])]
    if not len(last):
        return 0.0, 1.0
    low, high = np.percentile(every, [_TAIL, 100.0 - _TAIL])
    return float(min(low, last.min())), float(max(high, last.max()))


def _layer(key: str, label: str, unit: str, colours: str, low: float, high: float) -> dict[str, Any]:
    return {
        "key": key,
        "label": label,
        "unit": unit,
        "low": low,
        "high": high if high > low else low + 1.0,
        "colours": _palette(colours),
    }


def _palette(name: str) -> list[str]:
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    return [to_hex(colour) for colour in colormaps[name](np.linspace(0.0, 1.0, _COLOURS))]


def _classes(answer: LevelSetAnswer) -> list[dict[str, Any]]:
    """Return name and colour of each class, from outside to inside; the last, not inspected, is hatched."""
    outside, inside = ("below", "above") if answer.side == "above" else ("above", "below")
    names = (outside, f"likely {outside}", f"likely {inside}", inside, "not inspected")
    return [
        {"name": name, "colour": str(colour), "hatched": name == names[-1]}
        for name, colour in zip(names, CLASS_OR_NONE["cmap"].colors, strict=True)
    ]


def frame_layers(
    maps: Layers, answer: LevelSetAnswer | OptimumAnswer, shown: NDArray[np.int64]
) -> dict[str, Any]:
    """Return the values of a frame at the sites that are shown, and which of them are in the level set."""
    values = {name: layer[shown] for name, layer in maps.items()}
    plain: dict[str, Any] = {key: quantised(values[key]) for key in ("mean", "sd")}
    if "failure" in values:
        plain["failure"] = quantised(values["failure"])
    if not isinstance(answer, LevelSetAnswer):
        return {**plain, "probability": quantised(values["exceedance"])}
    p, classes = values[PROBABILITY[answer.side]], values["class"]
    inside, likely = p >= 0.5, doubtful(p)
    five = np.where(classes == 2, 4, np.where(inside, 3 - likely, 0 + likely))
    return {
        **plain,
        "probability": quantised(p),
        "class": as_base64(five.astype(np.uint8)),
    }


# -- marks -------------------------------------------------------------------------------------------------


def earlier_readings(plane: Plane, mission: Mission) -> list[dict[str, Any]]:
    """Return the place, the kind and the words of each reading with which the mission began."""
    known, amount = mission.earlier, mission.world.quantity.amount
    drawn = plane.drawn(known.sites) if len(known.values) else []
    return [
        {"at": at, "kind": "earlier", "text": f"earlier reading: {amount(value)}"}
        for at, value in zip(drawn, known.values.tolist(), strict=True)
    ]


def readings(plane: Plane, result: Result, words: Sequence[str]) -> list[dict[str, Any]]:
    """Return the place, the kind and the `words` of each reading."""
    kinds = np.where(~result.believed, "left out", np.where(result.on_the_way, "on the way", "reading"))
    return [
        {"at": at, "kind": str(kind), "text": line}
        for at, kind, line in zip(plane.drawn(result.sites) if len(kinds) else [], kinds, words, strict=True)
    ]


STEPS, MISSING = 65534, 65535
"""Largest quantised value, and the one that stands for NaN or infinity."""


def quantised(values: Array) -> dict[str, Any]:
    """Return values (N,) as 16-bit integers between their ends.

    Returns
    -------
    dict
        ``low`` and ``high``, the ends; ``values``, in little-endian base64. A value is
        ``low + (high - low) * integer / STEPS``, or unknown if the integer is `MISSING`.

    Examples
    --------
    >>> quantised(np.array([1.0, 2.0, np.nan]))
    {'low': 1.0, 'high': 2.0, 'values': 'AAD+////'}
    """
    finite = np.isfinite(values)
    low, high = (
        (float(end) for end in (values[finite].min(), values[finite].max())) if finite.any() else (0.0, 0.0)
    )
    whole = np.full(len(values), MISSING, dtype="<u2")
    share = (values[finite] - low) / (high - low) if high > low else np.zeros(np.count_nonzero(finite))
    whole[finite] = np.rint(STEPS * share).astype("<u2")
    return {"low": low, "high": high, "values": as_base64(whole)}


def as_base64(values: NDArray[Any]) -> str:
    """Return the bytes of an array as base64."""
    return b64encode(np.ascontiguousarray(values).tobytes()).decode("ascii")

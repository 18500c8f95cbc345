"""A run as features, geometries with properties: path, routes, readings, sites, contours and classes.

For contour lines of the posterior mean and the areas of the classes, the belief is evaluated at the nodes of
a raster finer than the sites, and lines are interpolated between them. Nodes lie beyond the shore, too, so
that lines and areas end exactly there: they are cut off where the region of the domain ends, or the water
becomes too shallow for sites.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt
from scipy.special import ndtr
from shapely.geometry.base import BaseGeometry

from fieldbo._numerics.arrays import Array
from fieldbo._numerics.blas import one_blas_thread
from fieldbo.agent.unseen import inspection
from fieldbo.domain.domain import Domain
from fieldbo.messages import GoHome, Query, Recharge
from fieldbo.record.store import ORDERS
from fieldbo.results.answers import PROBABILITY, LevelSetAnswer, OptimumAnswer
from fieldbo.results.maps import layers as map_layers
from fieldbo.results.metrics import SURE, probit
from fieldbo.results.result import Result
from fieldbo.results.words import extreme
from fieldbo.runs.replay import Recorded

Place = Callable[[Array], Array]
"""Returns sites (k, d) as coordinates (k, 2) or (k, 3) of the output."""


@dataclass(frozen=True, eq=False)
class Feature:
    """A geometry with properties.

    Attributes
    ----------
    geometry : BaseGeometry
        In the coordinates of the output.
    properties : dict
        Text, numbers and booleans.
    """

    geometry: BaseGeometry
    properties: dict[str, Any]


Layers = dict[str, list[Feature]]
"""Features of one type of geometry by name."""


def point_layers(run: Recorded, place: Place) -> Layers:
    """Return path, routes, readings and map of a run.

    Parameters
    ----------
    run : Recorded
    place : callable
        As `Placement.degrees` and `Placement.metres`.
    """
    return {
        "path": paths(run, place),
        "routes": routes(run, place),
        "readings": readings(run, place),
        "map": sites(run, place),
    }


def paths(run: Recorded, place: Place) -> list[Feature]:
    """Return the actual path of each vehicle as a line; a vehicle that has not moved is a point."""
    features = []
    for number, account in enumerate(run.result.accounts):
        path = place(_path_of(run.result, number))
        properties = {"run": run.name, "mission": run.mission.name, "cost": account.spent}
        properties |= {"vehicle": number} if len(run.result.accounts) > 1 else {}
        properties |= {"cost_unit": run.mission.world.cost_unit}
        shape = shapely.LineString(path) if len(path) > 1 else shapely.Point(path[0])
        features.append(Feature(shape, properties))
    return features


def _path_of(result: Result, vehicle: int) -> Array:
    """Return the actual path (k, d) of one vehicle."""
    orders = {order.id for order, _, _ in result.accounts[vehicle].lines}
    observations = tuple(event for event in result.observations if event.order in orders)
    mission = replace(result.mission, vehicles=(result.mission.vehicles[vehicle],))
    return replace(result, mission=mission, observations=observations).path


def routes(run: Recorded, place: Place) -> list[Feature]:
    """Return the route of each order as it was planned, from where its vehicle was expected to be."""
    features = []
    for kind, order, route in planned(run):
        properties = {
            "run": run.name,
            "order": order.id,
            "kind": kind,
            "vehicle": order.vehicle,
            "expected_cost": order.expected_cost,
            "cost_unit": run.mission.world.cost_unit,
        }
        features.append(Feature(shapely.LineString(place(route)), properties))
    return features


def planned(run: Recorded) -> Iterator[tuple[str, Query | GoHome, Array]]:
    """Yield each order that moves a vehicle, its kind and its route (k, d), from where that was expected."""
    ends = [spec.start for spec in run.mission.vehicles]
    for row in run.rows:
        if row.kind not in ORDERS:
            continue
        order = row.message
        if isinstance(order, Recharge):
            continue
        assert isinstance(order, Query | GoHome)
        assert order.site is not None
        yield (
            row.kind,
            order,
            order.route if len(order.route) else np.stack([ends[order.vehicle], order.site]),
        )
        ends[order.vehicle] = order.site


def readings(run: Recorded, place: Place) -> list[Feature]:
    """Return one point per reading, with the columns of the table of readings and the time."""
    header, rows = run.result.readings()
    features = []
    for position, row in zip(place(run.result.sites), rows, strict=True):
        properties = dict(zip(header, row, strict=True))
        time = run.time(float(properties["time_s"]))
        properties["time"] = time.isoformat(timespec="milliseconds")
        features.append(Feature(shapely.Point(position), properties))
    return features


def sites(run: Recorded, place: Place) -> list[Feature]:
    """Return one point per site, with the values of the final maps."""
    values = {name: layer for name, (layer, _) in map_layers(run.result.answer, run.result.failures).items()}
    rows = zip(*values.values(), strict=True)
    positions = place(run.mission.world.domain.sites)
    return [
        Feature(shapely.Point(position), dict(zip(values, row, strict=True)))
        for position, row in zip(positions, rows, strict=True)
    ]


CLASSES = ("{outside}", "likely {outside}", "likely {inside}", "{inside}", "not inspected")
"""The classes in the order of the picture of the maps, from the names of the two sides."""

_ACROSS = 160  # pixels along the longest axis of a box
_NODES = 120_000  # of the fine raster, at most
_FINEST = 4  # times finer than the sites
_CHUNK = 8192  # nodes to evaluate at once
_LEVELS = 8  # contour lines, at most
_LONGEST_M = 100.0  # edges; longer ones, straight in metres, bend in degrees by more than a millimetre


def area_layers(run: Recorded, place: Place) -> Layers:
    """Return contour lines, and the areas of the classes or the reported optimum.

    Parameters
    ----------
    run : Recorded
        Its domain has two horizontal axes.
    place : callable
        As `Placement.degrees` and `Placement.metres`.
    """
    surface = _FineSurface.of(run)
    lines = {"contours": [_place(line, place) for line in _contours(run, surface)]}
    if isinstance(run.result.answer, OptimumAnswer):
        return lines | {"optimum": [_place(_optimum(run, run.result.answer), place)]}
    return lines | {"classes": [_place(area, place) for area in _classes(run, run.result.answer, surface)]}


@dataclass(frozen=True, eq=False)
class _FineSurface:
    """The belief over a fine raster, in model units.

    Attributes
    ----------
    x, y : (n,) and (m,) arrays
    mean : (m, n) array
    excess : (m, n) array
        The `probit` of the probability of being in the level set.
    open : (m, n) array
        Above 0 where a place is not inspected.
    region : shapely.Polygon or shapely.MultiPolygon
        What lines and areas are cut to.
    grain : float
        Precision of coordinates, in metres.
    """

    domain: Domain
    x: Array
    y: Array
    mean: Array
    excess: Array
    open: Array

    @classmethod
    def of(cls, run: Recorded) -> _FineSurface:
        domain, surface, answer = run.mission.world.domain, run.result.surface, run.result.answer
        threshold = answer.threshold if isinstance(answer, LevelSetAnswer) else 0.0
        step = steps(domain)
        cells = domain.extent / step
        finer = int(np.clip(math.sqrt(_NODES / np.prod(cells + 1.0)), 1, _FINEST))
        # One node beyond the ends of the axes: there, too, areas are cut by the region.
        x, y = (
            low + (np.arange(math.ceil(n * finer - 1e-9) + 3) - 1) * d / finer
            for low, n, d in zip(domain.low, cells, step, strict=True)
        )
        nodes = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
        with one_blas_thread():
            parts = [surface.over(nodes[k : k + _CHUNK]) for k in range(0, len(nodes), _CHUNK)]
            mean = np.concatenate([part.mean for part in parts])
            p = np.concatenate([part.exceedance(threshold) for part in parts])
            lacks = [inspection(run.mission, part, threshold).open for part in parts]
        layers = mean, probit(p), np.minimum(np.concatenate(lacks), 9.0) - 1.0
        return cls(domain, x, y, *(layer.reshape(len(y), len(x)) for layer in layers))

    @cached_property
    def region(self) -> BaseGeometry:
        region = self.domain.region
        whole = shapely.box(*self.domain.low, *self.domain.high) if region is None else region
        whole = shapely.set_precision(whole, self.grain)
        bottom = self.domain.bottom
        if bottom is None or bottom.least_depth <= 0.0:
            return whole
        # Where the water is too shallow for sites, nothing is said.
        nodes = np.stack(np.meshgrid(self.x, self.y), axis=-1).reshape(-1, 2)
        depth = _fill(bottom.depth_at(nodes).reshape(self.mean.shape))
        return shapely.intersection(whole, self.positive(depth - bottom.least_depth), grid_size=self.grain)

    @property
    def grain(self) -> float:
        return float(min(1e-3, 1e-3 * steps(self.domain).min()))

    def lines(self, values: Array, level: float) -> BaseGeometry:
        """Return the line in the region where values (m, n) have a level."""
        from contourpy import LineType, contour_generator

        generator = contour_generator(self.x, self.y, values, line_type=LineType.Separate)
        lines: Any = generator.lines(level)
        drawn = shapely.MultiLineString([line for line in lines if len(line) > 1])
        within = shapely.intersection(drawn, self.region, grid_size=self.grain)
        parts = [p for p in shapely.get_parts(within) if isinstance(p, shapely.LineString) and p.length > 0.0]
        return shapely.line_merge(shapely.MultiLineString(parts))

    def positive(self, values: Array) -> BaseGeometry:
        """Return the area, not cut to the region, where values (m, n) are above 0."""
        from contourpy import FillType, contour_generator

        if values.max() <= 0.0:
            return shapely.MultiPolygon()
        generator = contour_generator(self.x, self.y, values, fill_type=FillType.OuterOffset)
        filled: Any = generator.filled(0.0, 2.0 * float(values.max()))
        polygons = [
            _polygon(np.split(points, ends[1:-1].astype(int))) for points, ends in zip(*filled, strict=True)
        ]
        return shapely.union_all(polygons, grid_size=self.grain)

    def cut(self, area: BaseGeometry, by: BaseGeometry) -> tuple[BaseGeometry, BaseGeometry]:
        """Return the parts of an area inside and outside another one."""
        inside = shapely.intersection(area, by, grid_size=self.grain)
        return inside, shapely.difference(area, by, grid_size=self.grain)


def _fill(values: Array) -> Array:
    """Return values (m, n) in which those that are unknown are those of the nearest known ones."""
    nearest = distance_transform_edt(np.isnan(values), return_distances=False, return_indices=True)
    filled: Array = values[tuple(nearest)]
    return filled


def _polygon(rings: list[NDArray[np.float64]]) -> BaseGeometry:
    """Return a valid polygon with holes; rings of contours may touch themselves."""
    return shapely.make_valid(shapely.Polygon(rings[0], [ring for ring in rings[1:] if len(ring) > 3]))


def _contours(run: Recorded, surface: _FineSurface) -> list[Feature]:
    """Return one feature per level: round ones and, for a level set, the threshold."""
    from matplotlib.ticker import MaxNLocator

    result, quantity = run.result, run.mission.world.quantity
    answer, scale = result.answer, result.scale
    values = scale.to_user(surface.mean)
    inside = scale.to_user(result.surface.mean)
    middle = "median" if scale.transform == "log" else "mean"
    ticks = MaxNLocator(_LEVELS, steps=[1, 2, 2.5, 5, 10]).tick_values(inside.min(), inside.max())
    levels = [float(f"{tick:.12g}") for tick in ticks]  # 0.4, not 0.4000000000000001
    flat = inside.max() - inside.min() <= 1e-9 * max(1.0, float(np.abs(inside).max()))
    features = []
    if isinstance(answer, LevelSetAnswer):
        line = surface.lines(surface.mean, answer.threshold)
        level = answer.user_threshold
        features.append((level, True, line))
        levels = [other for other in levels if not math.isclose(other, level, rel_tol=1e-9, abs_tol=1e-12)]
    if not flat:
        features += [(level, False, surface.lines(values, level)) for level in levels]
    return [
        Feature(
            line,
            {
                "level": level,
                "is_threshold": is_threshold,
                "meaning": f"{quantity.name}: the posterior {middle} is {quantity.amount(level)} here"
                + (", the threshold" if is_threshold else ""),
                **_shared(run),
            },
        )
        for level, is_threshold, line in sorted(features, key=lambda feature: feature[0])
        if not line.is_empty
    ]


def class_names(run: Recorded) -> list[str]:
    """Return the names of the classes, from surely outside to surely inside, and last not inspected."""
    answer = run.result.answer
    inside = answer.side if isinstance(answer, LevelSetAnswer) else "above"
    outside = "below" if inside == "above" else "above"
    return [name.format(outside=outside, inside=inside) for name in CLASSES]


def _classes(run: Recorded, answer: LevelSetAnswer, surface: _FineSurface) -> list[Feature]:
    """Return one feature per class that has an area; together they cover the region."""
    excess = surface.excess
    # Strictly positive areas: a site with a probability of one half belongs to the level set.
    lacking, inspected = surface.cut(surface.region, surface.positive(surface.open))
    outside, rest = surface.cut(inspected, surface.positive(-excess - SURE))
    inside, rest = surface.cut(rest, surface.positive(excess - SURE))
    likely_outside, likely_inside = surface.cut(rest, surface.positive(-excess))
    threshold = run.mission.world.quantity.amount(answer.user_threshold)
    _, attributes = map_layers(run.result.answer, None)[PROBABILITY[answer.side]]
    doubtful, sure = (f"{100.0 * float(ndtr(sds)):.3g}%" for sds in (-SURE, SURE))
    chances = (
        f"below {doubtful}",
        f"{doubtful} to 50%",
        f"50% to {sure}",
        f"above {sure}",
        "not vouched for by readings",
    )
    areas = outside, likely_outside, likely_inside, inside, lacking
    features = []
    for name, area, chance in zip(class_names(run), areas, chances, strict=True):
        polygons = [p for p in shapely.get_parts(area) if isinstance(p, shapely.Polygon) and p.area > 0.0]
        if not polygons:
            continue
        shape = shapely.MultiPolygon(polygons)
        properties = {
            "class": name,
            "threshold": answer.user_threshold,
            "meaning": _meaning(run, name, threshold),
            "probability": f"{attributes['long_name']}: {chance} at each point",
            "area_m2": shape.area,
            **_shared(run),
        }
        features.append(Feature(shape, properties))
    return features


def _meaning(run: Recorded, name: str, threshold: str) -> str:
    quantity = run.mission.world.quantity.name
    if name == CLASSES[-1]:
        return f"too far from all readings to say whether {quantity} is above or below {threshold} here"
    return f"{quantity} is {name} {threshold} here"


def _optimum(run: Recorded, answer: OptimumAnswer) -> Feature:
    """Return the reported optimum."""
    quantity, interval = run.mission.world.quantity, answer.confidence.value
    properties = {
        "value": answer.reported_value,
        "low90": interval.low,
        "high90": interval.high,
        "meaning": f"{quantity.name} is expected to be {extreme(answer.mission.question)} here: "
        f"{quantity.amount(answer.reported_value)}",
        "probability": f"90% that the value here is {interval.low:.4g} to {quantity.amount(interval.high)}",
        **_shared(run),
    }
    return Feature(shapely.Point(answer.reported.point), properties)


def _shared(run: Recorded) -> dict[str, Any]:
    quantity = run.mission.world.quantity
    return {"quantity": quantity.name, "unit": quantity.unit, "run": run.name, "mission": run.mission.name}


def _place(feature: Feature, place: Place) -> Feature:
    """Return a feature of the domain's axes in the coordinates of the output.

    Several lines or polygons stay several if there is but one. Polygons run counterclockwise, their holes
    clockwise.
    """
    shape = feature.geometry
    if not isinstance(shape, shapely.Point):
        shape = shapely.segmentize(shape, _LONGEST_M)
    placed = shapely.transform(shape, lambda points: place(points)[:, :2])
    parts = list(shapely.get_parts(placed))
    if isinstance(parts[0], shapely.LineString):
        placed = shapely.MultiLineString(parts)
    elif isinstance(parts[0], shapely.Polygon):
        placed = shapely.MultiPolygon([shapely.orient_polygons(part) for part in parts])
    return Feature(placed, feature.properties)


def steps(domain: Domain) -> Array:
    """Return the distances (2,) along each axis between nodes that include all sites of a grid or lattice.

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> steps(Domain.grid([Axis("x", "m", 0, 4), Axis("y", "m", 0, 2)], (5, 3)))
    array([1., 1.])
    """
    if domain.shape is not None:
        # An axis with one node has no spacing: its pixels are as long as those of the other axis.
        finite = domain.spacing[np.isfinite(domain.spacing)]
        return np.where(np.isfinite(domain.spacing), domain.spacing, finite.min() if len(finite) else 1.0)
    if domain.pitch is not None:  # hexagonal: every other row is shifted by half
        return domain.pitch * np.array([0.5, math.sqrt(0.75)])
    about = float(domain.extent.max()) / _ACROSS
    return np.asarray(domain.extent / np.maximum(np.round(domain.extent / about), 1.0))

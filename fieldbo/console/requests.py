"""Requests of the page as commands and answers; each part is checked, and nothing else is taken over."""

from __future__ import annotations

import math
import uuid
from collections.abc import Mapping
from typing import Any

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.console.view import View
from fieldbo.domain.obstacles import Obstacle, simple_polygon
from fieldbo.errors import InputError
from fieldbo.messages import Action, Answer, Command
from fieldbo.mission.shapes import NAME
from fieldbo.runs.steer import level_in
from fieldbo.vehicles.dialogue import number_in
from fieldbo.vehicles.plausible import reading_in
from fieldbo.vehicles.typed_places import place_in

_MOST_CORNERS = 1000
_LONGEST = 200
"""Characters of a text in a request."""


def command_of(content: Any, view: View) -> Command:
    """Return the command in a request: ``{"action": "next", "at": [47.31, 8.52]}``.

    Raises
    ------
    InputError
        It is not understood.
    """
    given = _mapping(content)
    action, order = _text(given, "action"), _text(given, "order")
    if action not in [each.value for each in Action]:
        raise InputError(f"{action!r} is not an action")
    site = _site(given, view) if action == Action.NEXT else None
    areas = (_area(given, view),) if action == Action.NO_GO else ()
    vehicle = given.get("vehicle")
    if isinstance(vehicle, bool) or not isinstance(vehicle, int | None):
        raise InputError("vehicle is not a number")
    return Command(
        uuid.uuid4().hex,
        Action(action),
        vehicle=vehicle,
        order=order or None,
        site=site,
        areas=areas,
        left=level_in(_text(given, "left"), view.mission, "left") if action == Action.BATTERY else None,
        by="console",
    )


def answer_of(content: Any, view: View) -> Answer:
    """Return the answer in a request: ``{"order": "lake-1/3", "value": "24,7"}``.

    Raises
    ------
    InputError
        It is not understood.
    """
    given = _mapping(content)
    order, skipped = _text(given, "order"), given.get("skipped") is True
    value: float | None = None
    if not skipped and given.get("value") is not None:
        value = reading_in(_text(given, "value").strip(), view.mission.world.sensor)
    cost = _text(given, "cost").strip()
    return Answer(
        uuid.uuid4().hex,
        order,
        None if value is None or math.isnan(value) else value,
        position=None if skipped else _position(given, view),
        cost=number_in(cost) if cost and not skipped else None,
        skipped=skipped,
        corrects=given.get("corrects") is True,
        confirmed=given.get("confirmed") is True,
        by=_text(given, "by")[:50],
    )


def _mapping(content: Any) -> Mapping[str, Any]:
    if not isinstance(content, dict):
        raise InputError("the request is not a JSON object")
    return content


def _text(given: Mapping[str, Any], name: str) -> str:
    text = given.get(name)
    if text is None:
        return ""
    if not isinstance(text, str) or len(text) > _LONGEST:
        raise InputError(f"{name} is not a text of at most {_LONGEST} characters")
    return text


def _site(given: Mapping[str, Any], view: View) -> Array:
    """Return the place (d,) that was tapped on the map, or typed."""
    if typed := _text(given, "place").strip():
        return place_in(typed, view.domain)
    place: Array = _points([given.get("at")], view)[0]
    return place


def _area(given: Mapping[str, Any], view: View) -> Obstacle:
    corners = given.get("corners")
    if not isinstance(corners, list) or not 3 <= len(corners) <= _MOST_CORNERS:
        raise InputError(f"an area has 3 to {_MOST_CORNERS} corners")
    placed = _points(corners, view)[:, :2].tolist()
    simple_polygon(placed, "the area", "corners")
    return Obstacle((_text(given, "name").strip() or NAME)[:60], corners=tuple(map(tuple, placed)))


def _points(points: list[Any], view: View) -> Array:
    """Return points of the map, each of two numbers, as places (k, d) of the domain."""
    if view.plane is None:
        raise InputError("this run has no map")
    numbers = []
    for point in points:
        if not isinstance(point, list) or len(point) != 2 or not all(_is_number(x) for x in point):
            raise InputError("a point of the map is not a pair of numbers")
        numbers.append([float(x) for x in point])
    flat = view.plane.to_domain(np.array(numbers))
    if not np.isfinite(flat).all():
        raise InputError("a point lies too far away")
    whole: Array = np.tile(view.domain.middle, (len(flat), 1))
    whole[:, list(view.plane.axes)] = flat
    return whole


def _is_number(x: Any) -> bool:
    return isinstance(x, int | float) and not isinstance(x, bool) and math.isfinite(x) and abs(x) < 1e9


def _position(given: Mapping[str, Any], view: View) -> Array | None:
    """Return where a reading was taken (d,), as it was typed; None for the site itself."""
    if typed := _text(given, "place").strip():
        return place_in(typed, view.domain)
    position = given.get("position")
    if position is None:
        return None
    if not isinstance(position, list) or len(position) != view.domain.dimension:
        raise InputError(f"the position has not {view.domain.dimension} coordinates")
    if not all(isinstance(x, str) and len(x) <= _LONGEST for x in position):
        raise InputError("a coordinate is not a text")
    return np.array([number_in(x.strip()) for x in position])

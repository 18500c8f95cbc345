"""The console as an ASGI application: a page and its files, a stream of changes, commands and answers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import uuid
from collections.abc import AsyncIterator, Mapping
from importlib.resources import files
from typing import Any

import numpy as np
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from fieldbo._numerics.arrays import Array
from fieldbo.console.guard import TooLargeError
from fieldbo.console.view import View
from fieldbo.domain.obstacles import Obstacle, simple_polygon
from fieldbo.errors import FieldboError, InputError
from fieldbo.messages import Action, Answer, Command
from fieldbo.mission.shapes import NAME
from fieldbo.runs.steer import append, commands_file, level_in
from fieldbo.vehicles.dialogue import number_in
from fieldbo.vehicles.person import reading_in
from fieldbo.vehicles.typed_places import place_in

MOST_STREAMS = 32
"""Viewers at the same time."""

_KEEP_ALIVE_S = 10.0
_PATIENCE_S = 10.0
"""How long a request may take to arrive."""

_UNBUFFERED = {"X-Accel-Buffering": "no"}
"""Has a proxy such as nginx pass a stream on as it comes."""

_FILES = {
    "leaflet.js": ("fieldbo.pages", "vendor/leaflet/leaflet.js", "text/javascript"),
    "leaflet.css": ("fieldbo.pages", "vendor/leaflet/leaflet.css", "text/css"),
    "layers.js": ("fieldbo.pages", "static/layers.js", "text/javascript"),
    "map.js": ("fieldbo.pages", "static/map.js", "text/javascript"),
    "page.css": ("fieldbo.pages", "static/page.css", "text/css"),
    "live_map.js": ("fieldbo.console", "static/live_map.js", "text/javascript"),
    "console.js": ("fieldbo.console", "static/console.js", "text/javascript"),
    "console.css": ("fieldbo.console", "static/console.css", "text/css"),
}
"""The files of the page, by the name in their address: no part of an address becomes a path."""


def app_of(view: View) -> Starlette:
    """Return the application that shows a view."""
    console = _Console(view)
    return Starlette(
        routes=[
            Route("/", console.page),
            Route("/static/{name}", console.file),
            Route("/map", console.geometry),
            Route("/events", console.events),
            Route("/command", console.command, methods=["POST"]),
            Route("/answer", console.answer, methods=["POST"]),
        ],
        lifespan=console.lifespan,
        exception_handlers={TooLargeError: _too_large, HTTPException: _plainly},
    )


async def _too_large(request: Request, error: Exception) -> Response:
    return PlainTextResponse("The request is too large.\n", 413)


async def _plainly(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return PlainTextResponse(f"{error.detail}\n", error.status_code)


class _Console:
    def __init__(self, view: View) -> None:
        self.view = view
        self._files = {
            name: (files(package).joinpath(*path.split("/")).read_bytes(), kind)
            for name, (package, path, kind) in _FILES.items()
        }
        self._page = files("fieldbo.console").joinpath("templates", "console.html").read_bytes()

    @contextlib.asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        """Follow the run while the application serves."""
        self.view.streams.start()
        yield
        await run_in_threadpool(self.view.close)

    async def page(self, request: Request) -> Response:
        """Return the page, which holds nothing of the run."""
        return Response(self._page, media_type="text/html; charset=utf-8")

    async def file(self, request: Request) -> Response:
        """Return one of the page's files."""
        known = self._files.get(request.path_params["name"])
        if known is None:
            return PlainTextResponse("There is no such file.\n", 404)
        return Response(known[0], media_type=f"{known[1]}; charset=utf-8")

    async def geometry(self, request: Request) -> Response:
        """Return the fixed parts of the map."""
        return JSONResponse(await run_in_threadpool(self.view.geometry))

    async def events(self, request: Request) -> Response:
        """Return a stream of states and maps: the present ones, and each that follows."""
        return _Changes(self.view)

    async def command(self, request: Request) -> Response:
        """Append a command to the commands file."""
        return await self._accept(request, command_of)

    async def answer(self, request: Request) -> Response:
        """Append an answer to the commands file."""
        return await self._accept(request, answer_of)

    async def _accept(self, request: Request, parse: Any) -> Response:
        try:
            content = json.loads(await asyncio.wait_for(request.body(), _PATIENCE_S))
        except TimeoutError:
            return JSONResponse({"problem": "the request did not arrive in time"}, 408)
        except (ValueError, RecursionError):
            return JSONResponse({"problem": "the request is not JSON"}, 400)
        try:
            message = parse(content, self.view)
        except InputError as error:
            return JSONResponse({"problem": error.problem, "fix": error.fix}, 422)
        if not self.view.alive:
            return JSONResponse({"problem": "no process carries this run out"}, 409)
        try:
            await run_in_threadpool(append, commands_file(self.view.file), message)
        except FieldboError as error:
            return JSONResponse({"problem": str(error)}, 500)
        return JSONResponse({"id": message.id}, 202)


class _Changes(Response):
    """A stream of what a view shows, as server-sent events."""

    def __init__(self, view: View) -> None:
        self.view, self.background = view, None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        streams = self.view.streams
        if streams.count >= MOST_STREAMS:
            full = PlainTextResponse(
                f"{MOST_STREAMS} viewers are connected already.\n", 503, headers={"Retry-After": "10"}
            )
            await full(scope, receive, send)
            return
        with streams.listening() as change:  # counted before anything else is awaited
            stream = StreamingResponse(
                self._events(change), media_type="text/event-stream", headers=_UNBUFFERED
            )
            await stream(scope, receive, send)

    async def _events(self, change: asyncio.Event) -> AsyncIterator[bytes]:
        state: Any = None
        shown: Any = None
        while True:
            change.clear()
            if self.view.state is not state:
                state = self.view.state
                yield _event("state", state)
            if self.view.map is not shown:
                shown = self.view.map
                yield _event("map", shown)
            try:
                await asyncio.wait_for(change.wait(), _KEEP_ALIVE_S)
            except TimeoutError:
                yield b"event: alive\ndata: {}\n\n"


def _event(name: str, data: Any) -> bytes:
    return f"event: {name}\ndata: {json.dumps(data, allow_nan=False)}\n\n".encode()


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

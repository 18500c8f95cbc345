"""The console as an ASGI application: a page and its files, a stream of changes, commands and answers."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from fieldbo.console.guard import TooLargeError
from fieldbo.console.requests import answer_of, command_of
from fieldbo.console.view import View
from fieldbo.errors import FieldboError, InputError
from fieldbo.runs.commands import append, commands_file

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

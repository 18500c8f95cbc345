"""What the console shows of a run: plain data, rebuilt whenever the record has grown."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.agent.vehicle_state import VehicleState
from fieldbo.console.follower import Follower, line_of
from fieldbo.messages import Answer, Command, GoHome, Observation, Order, Query, Recharge
from fieldbo.mission.mission import Mission
from fieldbo.pages import field_map
from fieldbo.pages.course import layers_of
from fieldbo.pages.plane import Plane, plane_of, raster_of
from fieldbo.record.store import Row
from fieldbo.results.cell_runs import cell_runs_of
from fieldbo.results.result import Result
from fieldbo.results.words import place, question_text
from fieldbo.runs.export.tracks import stretches
from fieldbo.runs.reasons import best_of, reasons_for
from fieldbo.runs.state import RunState
from fieldbo.vehicles.person import Tasks
from fieldbo.vehicles.typed_places import typed_places

_FORM_TITLES = {GoHome: "Confirm the arrival", Recharge: "Confirm the change of battery"}

_LINES = 200
"""Lines of the log that are kept."""


class View:
    """The present picture of a run, for any number of viewers.

    Parameters
    ----------
    file : Path
        The record.

    Attributes
    ----------
    streams : Streams
        Woken, from another thread, after something has changed.
    mission : Mission
    plane : Plane or None
        The map; None where there is none, as in a factory cell.
    state : mapping
        Status, vehicles, log, commands, and the order to answer.
    map : mapping
        Values, routes and readings; empty without a map.
    """

    def __init__(self, file: Path) -> None:
        self._log: deque[dict[str, Any]] = deque(maxlen=_LINES)
        self._commands: deque[dict[str, Any]] = deque(maxlen=_LINES)
        self._reasons: dict[str, Mapping[str, str]] = {}
        self._heard: dict[int, str] = {}
        self._learnt = True
        self.streams = Streams()
        self.state: Mapping[str, Any] = {}
        self.map: Mapping[str, Any] = {}
        self._follower = Follower(file, self._on_row, self._on_change, self._on_problem)
        self.mission: Mission = self._follower.state.mission
        self.file = file
        self.plane: Plane | None = None if cell_runs_of(self.mission).names else plane_of(self.domain)
        flat = self.plane is not None and self.domain.dimension == 2
        self._raster = raster_of(self.plane) if flat and self.plane is not None else None
        self._places = typed_places(self.domain)
        self._follower.start()

    @property
    def domain(self) -> Any:
        """The mission's domain."""
        return self.mission.world.domain

    @property
    def alive(self) -> bool:
        """Whether a process carries the run out."""
        return self._follower.alive

    def close(self) -> None:
        """Stop following the record."""
        self._follower.close()

    # -- rows ------------------------------------------------------------------------------------------

    def _on_row(self, state: RunState, row: Row) -> None:
        """Note what a row says, and why a query is chosen, before the row is replayed."""
        agent = state.agent
        self._learnt |= row.kind != "telemetry"
        if row.kind == "query":
            query, why = row.message, row.body["why"]
            assert isinstance(query, Query)
            self._reasons = {
                **{k: v for k, v in self._reasons.items() if k in state.outstanding},
                str(query.id): reasons_for(agent, query, why, best_of(agent, query, why)),
            }
        elif row.kind in ("command", "answer"):
            message = row.message
            assert isinstance(message, Command | Answer)
            self._commands.append({"id": message.id, "refused": message.refused, "time": row.time_utc})
        elif row.kind == "telemetry":
            self._heard[row.body["message"]["vehicle"]] = row.time_utc
        elif row.kind == "observation" and row.order in agent.issued:
            self._heard[agent.issued[row.order].order.vehicle] = row.time_utc
        if (text := line_of(row, state)) is not None:
            self._log.append({"row": row.seq, "time": row.time_utc, **text})

    def _on_change(self) -> None:
        state, present = self._follower.state, self._present(self._follower)
        if self._learnt:
            result = state.result()
            self.state = {**present, **self._answer(state, result)}
            if self.plane is not None:
                self.map = self._map(state, result, self.plane)
            self._learnt = False
        else:  # telemetry changes neither the belief nor the path
            self.state = {**self.state, **present}
        self.streams.changed()

    def _on_problem(self) -> None:
        self.state = {**self.state, "status": _status(self._follower), "alive": self._follower.alive}
        self.streams.changed()

    # -- the state -------------------------------------------------------------------------------------

    def _present(self, follower: Follower) -> dict[str, Any]:
        state = follower.state
        return {
            "row": follower.rows,
            "now": datetime.now(UTC).isoformat(),
            "status": _status(follower),
            "alive": follower.alive,
            "ended": state.end_reason is not None,
            "vehicles": [self._vehicle(state, number) for number in range(len(self.mission.vehicles))],
            "log": list(self._log),
            "commands": list(self._commands),
            "areas": [area.name for area in state.agent.mission.world.no_go],
            "form": self._form(follower),
        }

    def _answer(self, state: RunState, result: Result) -> dict[str, Any]:
        mission = self.mission
        question = question_text(mission.question, mission.world.quantity)
        return {
            "run": state.agent.run,
            "mission": mission.title,
            "world": mission.world.title,
            "question": question[0].upper() + question[1:],
            "unit": mission.world.cost_unit,
            "answer": [list(row) for row in result.report().rows],
            "notes": list(result.notes),
        }

    def _vehicle(self, state: RunState, number: int) -> dict[str, Any]:
        agent, vehicle = state.agent, state.agent.vehicles[number]
        latest = vehicle.under_way
        at = vehicle.position if latest is None else latest.position
        order = vehicle.queue[0] if vehicle.queue else None
        home = float(vehicle.return_cost(at[None])[0]) * (1.0 + vehicle.spec.margin) + vehicle.spec.reserve
        return {
            "number": number,
            "place": place(self.domain, at),
            "at": self._drawn(at[None])[0] if self.plane is not None else None,
            "left": _left(vehicle),
            "battery": vehicle.spec.battery,
            "home": None if vehicle.spec.home is None or state.end_reason is not None else home,
            "left_s": None if vehicle.spec.time_limit_s is None else vehicle.time_ledger.left,
            "heard": self._heard.get(number),
            "lost": vehicle.lost_in_a_row,
            "still": list(vehicle.still.now),
            "paused_by": sorted(vehicle.paused_by),
            "sent_home": vehicle.phase.over,
            "order": None if order is None else self._order(order, vehicle, at),
            "queue": len(vehicle.queue),
            "wanted": len(vehicle.wanted),
            "stopped": number in state.stops,
            "can_go_home": agent.mission.vehicles[number].home is not None,
        }

    def _order(self, order: Order, vehicle: VehicleState, at: Array) -> dict[str, Any]:
        site = order.site if isinstance(order, Query) else vehicle.spec.home
        assert site is not None
        known = not np.isnan(site).any()
        points = order.route if len(order.route) else np.stack([at, site])
        ahead = [at, *points[_next_point(points, at) :]]
        return {
            "id": order.id,
            "home": not isinstance(order, Query),
            "recharge": isinstance(order, Recharge),
            "to": place(self.domain, site) if isinstance(order, Query) else "home",
            "at": self._drawn(site[None])[0] if known and self.plane is not None else None,
            "ahead": self._drawn(np.stack(ahead)) if known and self.plane is not None else [],
            "cost": order.expected_cost,
            "why": [list(pair) for pair in self._reasons.get(str(order.id), {}).items()],
        }

    def _form(self, follower: Follower) -> dict[str, Any] | None:
        """Return the order that people are to answer; None if the vehicle is no form."""
        state, kinds = follower.state, {v.get("kind") for v in follower.vehicles}
        if "by-form" not in kinds:
            return None
        world, domain = self.mission.world, self.domain
        read = [o for o in state.agent.history if isinstance(o, Observation) and len(o.values)]
        last = read[-1] if read else None
        queue = [order for vehicle in state.agent.vehicles for order in vehicle.queue]
        order = queue[0] if queue else None
        site = None if order is None or order.site is None else order.site
        return {
            "quantity": world.quantity.label,
            "axes": [{"name": a.name, "unit": a.unit} for a in domain.axes],
            "degrees": domain.crs is not None,
            "unit": world.cost_unit,
            "order": None if order is None else str(order.id),
            "title": _FORM_TITLES.get(type(order), "Enter a reading"),
            "home": isinstance(order, GoHome | Recharge),
            "place": "" if site is None or np.isnan(site).any() else self._places.answer(site),
            "task": self._task(state, order),
            "site": [] if site is None else [_finite(x) for x in site],
            "cost": None if order is None else order.expected_cost,
            "last": None if last is None else {"order": last.order, "value": _finite(last.values[-1])},
        }

    def _task(self, state: RunState, order: Order | None) -> list[str]:
        if order is None:
            return []
        vehicle = state.agent.vehicles[order.vehicle]
        tasks = Tasks(state.agent.mission, order.vehicle)
        moved = any(isinstance(event, Observation) for event in state.agent.history)
        text = tasks.text(order, vehicle.position, moved=moved)
        return [line.strip() for line in text.splitlines()]

    # -- the map ---------------------------------------------------------------------------------------

    def _map(self, state: RunState, result: Result, plane: Plane) -> dict[str, Any]:
        agent = state.agent
        layers: dict[str, Any] = {}
        described: list[Any] = []
        if self._raster is not None:
            maps = layers_of(agent)
            layers = field_map.frame_layers(maps, result.answer, self._raster.shown)
            described = field_map.layers(result, [maps], self._raster)
        words = [f"{result.mission.world.quantity.amount(value)}" for value in result.values]
        return {
            "row": self._follower.rows,
            "layers": layers,
            "described": described,
            "routes": [self._route(state, result, number) for number in range(len(agent.vehicles))],
            "readings": [
                *field_map.earlier_readings(plane, result.mission),
                *field_map.readings(plane, result, words),
            ],
            "places": field_map.places(plane, result),
            "areas": field_map.areas(plane, agent.mission.world.no_go),
        }

    def _route(self, state: RunState, result: Result, number: int) -> list[list[float]]:
        points = [self.mission.vehicles[number].start]
        for stretch in stretches(result, state.agent, number):
            points += [point for point, _ in stretch]
        return self._drawn(np.array(points))

    def _drawn(self, points: Array) -> list[list[float]]:
        assert self.plane is not None
        return self.plane.drawn(points)

    def geometry(self) -> dict[str, Any] | None:
        """Return the fixed parts of the map; None without one."""
        return None if self.plane is None else field_map.geometry(self.plane, self._raster)


def _next_point(points: Array, at: Array) -> int:
    """Return which of the points (k, d) of a route comes next for a vehicle at `at` (d,), near its legs."""
    starts, legs = points[:-1], np.diff(points, axis=0)
    lengths = np.maximum(np.sum(legs**2, axis=1), np.finfo(float).tiny)
    part = np.clip(np.sum((at - starts) * legs, axis=1) / lengths, 0.0, 1.0)
    gaps = np.linalg.norm(starts + part[:, None] * legs - at, axis=1)
    return len(gaps) - int(np.argmin(gaps[::-1]))


def _left(vehicle: VehicleState) -> float:
    """Return what is left: by the ledger, or by a report under way that shows less."""
    latest = vehicle.under_way
    reported = None if latest is None else latest.remaining
    return vehicle.ledger.left if reported is None else min(vehicle.ledger.left, reported)


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _status(follower: Follower) -> dict[str, str]:
    """Return what a run is doing, as a kind and in words."""
    state = follower.state
    if follower.problem is not None:
        return {"kind": "dead", "text": f"Not up to date: {follower.problem}"}
    if state.end_reason is not None:
        return {"kind": "ended", "text": f"Ended: {state.end_reason.value}"}
    if not follower.alive:
        return {"kind": "dead", "text": "No process carries the run out; continue it with fieldbo resume"}
    holds = sorted({hold for vehicle in state.agent.vehicles for hold in vehicle.paused_by})
    if holds:
        names = ", ".join(f"held by {hold}" if hold else "paused" for hold in holds)
        return {"kind": "paused", "text": names[0].upper() + names[1:]}
    if any(vehicle.phase.over for vehicle in state.agent.vehicles):
        return {"kind": "running", "text": "On the way home"}
    return {"kind": "running", "text": "Under way"}


class Streams:
    """Tells all viewers that something has changed."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting = set[asyncio.Event]()

    def start(self) -> None:
        """Begin to tell viewers, in the present event loop."""
        self._loop = asyncio.get_running_loop()

    def changed(self) -> None:
        """Tell viewers; called from any thread."""
        if self._loop is not None and not self._loop.is_closed():
            with contextlib.suppress(RuntimeError):  # it closes just now
                self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        for event in self._waiting:
            event.set()

    @contextlib.contextmanager
    def listening(self) -> Iterator[asyncio.Event]:
        """Yield an event that is set at each change."""
        event = asyncio.Event()
        self._waiting.add(event)
        try:
            yield event
        finally:
            self._waiting.discard(event)

    @property
    def count(self) -> int:
        """Number of viewers."""
        return len(self._waiting)

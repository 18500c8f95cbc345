"""A simulated vehicle that takes a while, and a run in which it is given commands."""

import itertools
from dataclasses import replace
from itertools import pairwise

import numpy as np

from fieldbo.messages import Command, Observation, Query, Rejected
from fieldbo.record.record import Record
from fieldbo.runs.loop import Stopped
from fieldbo.runs.runner import run
from fieldbo.runs.steer import append, commands_file
from fieldbo.testing import SteppedClock
from fieldbo.vehicles.base import Simulated
from fieldbo.world.world import driven

COUNT = itertools.count()


def command(action, **details):
    return Command(f"c{next(COUNT)}", action, **details)


class Underway(Simulated):
    """A simulated vehicle that takes a while: an order that is cancelled ends where the vehicle is by then.

    `driven` holds each leg that it really drove, with the areas that were closed when it set out.
    """

    def __init__(self, mission, number=0, polls=3, seed=0):
        super().__init__(mission, number)
        self.polls, self.rng, self.clock = polls, np.random.default_rng(seed), SteppedClock(step_s=1.0)
        self.queued, self.legs, self.on_poll = [], [], None
        self.count = 0

    def send(self, order):
        if order.id not in self._outcomes and all(order.id != other.id for other in self.queued):
            self.queued.append(order)

    def events(self, timeout_s):
        self.count += 1
        if self.on_poll is not None:
            self.on_poll(self)
        if self.queued and self.count % self.polls == 0:
            order = self.queued.pop(0)
            order = order if isinstance(order, Query) else replace(order, site=self.spec.home)
            self._drive(driven(order, self.position))
            super().send(order)
        return super().events(timeout_s)

    def _drive(self, points):
        self.legs += [(a, b, self.mission.world.no_go) for a, b in pairwise(points)]

    def cancel(self, order):
        if not self.queued or self.queued[0].id != order:
            self.queued = [other for other in self.queued if other.id != order]
            self._waiting.append(Rejected(order, "cancelled before it was sent"))
            return
        under_way = self.queued.pop(0)
        points = driven(
            under_way if isinstance(under_way, Query) else replace(under_way, site=self.spec.home),
            self.position,
        )
        lengths = np.linalg.norm(np.diff(points, axis=0), axis=1)
        way, points = self.rng.uniform(0.0, lengths.sum()), list(points)
        passed = [points[0]]
        for point, length in zip(points[1:], lengths, strict=True):
            if way <= length:
                passed.append(passed[-1] + (way / length if length else 0.0) * (point - passed[-1]))
                break
            way -= length
            passed.append(point)
        passed = np.stack(passed)
        self._drive(passed)
        worst = (
            1.0 if self.mission.world.disturbances is None else 1.0 + self.mission.world.disturbances.worst
        )
        cost, seconds = (worst * x for x in self.mission.world.cost.along(passed, self.time_s))
        none = np.empty(0)
        event = Observation(
            order,
            np.empty((0, len(passed[0]))),
            none,
            none,
            none,
            passed[-1],
            cost,
            complete=False,
            time_s=self.time_s + seconds,
        )
        self._move_to(event)
        self._outcomes[order] = [event]
        self._waiting.append(event)


def steered(mission, folder, steps, polls=3, seed=0):
    """Run a mission; `steps` maps the number of a poll of the vehicle to the command to give then."""
    record = Record.create(folder / "run.sqlite", "run", {"vehicles": [{"kind": "underway"}]})
    vehicle = Underway(mission, polls=polls, seed=seed)
    given = dict(steps)

    def give(vehicle):
        if (wanted := given.pop(vehicle.count, None)) is not None:
            append(commands_file(record.file), wanted)

    vehicle.on_poll = give
    with record:
        try:
            result = run(mission, [vehicle], record=record)
        except Stopped as stop:
            result = stop.result
        rows = record.rows()
    return result, vehicle, rows


def commands_in(rows):
    return [row.message for row in rows if row.kind == "command"]

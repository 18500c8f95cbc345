"""A robot in a simulated world: it travels, samples, drains its battery, and misbehaves on demand.

Like an autopilot, it drives straight to each point that it is sent, whatever is in between.

It is independent of links: a program for one kind of link gives it goals, calls `tick` often, and sends on
the reports that `tick` returns.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo._numerics.streams import stream
from fieldbo.clock import MACHINE_CLOCK, Clock
from fieldbo.errors import InputError
from fieldbo.messages import GoHome, Order, Query
from fieldbo.vehicles.remote.link import (
    BatteryReport,
    ChannelReport,
    Goal,
    GoalRejected,
    GoalResult,
    PositionReport,
    Report,
)
from fieldbo.vehicles.simulators.trips import Fault, Schedule, Trip
from fieldbo.world.world import World, driven

_REPORT_S = 0.1
"""Interval of position and battery reports, by this machine's clock."""

_NEAR = 1e-3
"""How near its home a robot is there, as a fraction of the domain's extent along each axis."""

_NEXT_TARGET_S = 0.8
"""How long a robot that streams waits for another target before it samples, by this machine's clock."""


class Robot:
    """Carries out goals in a world, one at a time; a new goal replaces the one under way.

    Parameters
    ----------
    world : World
        A world with a field.
    seed : int
        With a mission's seed, the readings equal those of the mission's simulation.
    start : (d,) array, optional
        By default the world's start.
    battery : float
        What a full battery holds, in the world's cost unit.
    speedup : float
        How many times faster its clock runs than this machine's.
    faults : sequence of Fault
    recharge_s : float, optional
        After so many seconds at home without a goal, by the robot's clock, its battery is full again; by
        default, nobody changes it.
    home : (d,) array, optional
        Where its battery is changed, by default where it starts; also wherever a goal says that it is home.
    channels : sequence of Schedule
        Other quantities that it reports.
    part_readings : int, optional
        Readings on the way after which it reports a part of the goal; by default, all come with the result.
    clock : Clock
        This machine's clock, or one that a test moves.
    """

    def __init__(
        self,
        world: World,
        *,
        seed: int = 0,
        start: Array | None = None,
        battery: float = math.inf,
        speedup: float = 1.0,
        faults: Sequence[Fault] = (),
        recharge_s: float = math.inf,
        home: Array | None = None,
        channels: Sequence[Schedule] = (),
        part_readings: int | None = None,
        clock: Clock = MACHINE_CLOCK,
    ) -> None:
        self.clock, self.part_readings, self.recharge_s = clock, part_readings, recharge_s
        self.world, self.seed, self.speedup = world, seed, speedup
        at = world.start if start is None else start
        assert at is not None
        self.position: Array = np.asarray(at, dtype=float)
        self._homes = [self.position if home is None else np.asarray(home, dtype=float)]
        self._channels, self._first_s = tuple(channels), math.nan
        self._began = self.clock.now_s()
        self._track: list[tuple[float, Array]] = [(self._began, self.position)]
        self.battery = self.remaining = battery
        self.reading = math.nan
        self._faults = {(fault.kind, fault.goal): fault for fault in faults}
        self._rate = 1.0  # of the battery's drain
        self._trip: Trip | None = None
        self._idle_since_s = self._idle_since = self._waited_s = 0.0
        self._waits = False
        self._count = self._samples = 0
        self._answers: dict[str, list[Report]] = {}
        self._delayed: list[tuple[float, Report]] = []
        self._jumped_s, self._silent_until = 0.0, -math.inf
        self._reported_s, self._reported = -math.inf, 0
        self._uncharged = self._repeats = False
        self._level = self._value = math.nan  # what it reports instead, if it is stuck
        self._fix: Array | None = None
        self._glitch = 0.0
        self._pending: list[Report] = []
        self._load_compiled_loops()

    def _load_compiled_loops(self) -> None:
        """Price a trip: loading compiled code on the first goal would hold up the robot's reports."""
        far = self.world.domain.sites[-1]
        with contextlib.suppress(InputError):  # no route leads there
            self.world.takes(GoHome(0, "", far), self.position, 0.0, stream(self.seed, "cost", 0))

    @property
    def clock_s(self) -> float:
        """Seconds since the robot was switched on, by its own clock, which may have jumped."""
        return self._time_s + self._jumped_s

    @property
    def boot_s(self) -> float:
        """Seconds since the robot was switched on, by this machine's clock; jumps of its own clock count."""
        return self.clock.now_s() - self._began + self._jumped_s / self.speedup

    @property
    def _time_s(self) -> float:
        """Seconds of simulated time: while the robot waits for its planner to think, it passes as it does."""
        idle = self.clock.now_s() - self._idle_since if self._waits else 0.0
        return (
            self.speedup * (self.clock.now_s() - self._began) - self._waited_s - (self.speedup - 1.0) * idle
        )

    def _rest(self) -> None:
        """Begin to wait for the next goal, or for another battery."""
        self._idle_since_s, self._idle_since = self._time_s, self.clock.now_s()
        self._waits = not (self._at_home and math.isfinite(self.recharge_s))

    def _set_out(self) -> None:
        """End the wait."""
        if self._waits:
            self._waited_s += (self.speedup - 1.0) * (self.clock.now_s() - self._idle_since)
            self._waits = False

    @property
    def _at_home(self) -> bool:
        near = _NEAR * self.world.domain.extent
        return any((np.abs(self.position - home) <= near).all() for home in self._homes)

    @property
    def track(self) -> Array:
        """Where the robot really went: points (k, d), with straight legs in between."""
        return np.stack([*(point for _, point in self._track), self.position])

    @property
    def track_s(self) -> Array:
        """When the robot was at each point of its track (k,): seconds since it was switched on.

        By this machine's clock, like the seconds of faults and channels.
        """
        times = [*(at_s for at_s, _ in self._track), self.clock.now_s()]
        return np.array(times) - self._began

    def _pass(self, *points: Array) -> None:
        """Add points to the track."""
        self._track += [(self.clock.now_s(), point) for point in points]

    # -- requests from the link ------------------------------------------------------------------------

    def go_to(self, goal_id: str, target: Array, tolerance: float) -> None:
        """Go to a target (d,), or to the site within `tolerance` of it along each axis.

        A robot that streams does not learn which of its targets are sites: wherever it can measure and gets
        no other target at once, it does.
        """
        domain = self.world.domain
        site = domain.clipped(target) if domain.continuous else domain.sites[domain.nearest(target)]
        end = np.asarray(site if np.abs(site - target).max() <= tolerance else target)
        goal = Goal(goal_id, end, home=not domain.contains(end[None])[0])
        self.go(goal, pause_s=_NEXT_TARGET_S * self.speedup)

    def go(self, goal: Goal, pause_s: float = 0.0) -> None:
        """Start a goal; repeat the answer if it is known, continue if it is under way.

        Parameters
        ----------
        goal : Goal
        pause_s : float
            How long to wait at its site before sampling, on the robot's clock.
        """
        if self._trip is not None and self._trip.goal.id == goal.id:
            return
        if goal.id in self._answers:
            self._pending += self._answers[goal.id]
            return
        number, self._count = self._count, self._count + 1
        self._first_s = self.clock.now_s() if math.isnan(self._first_s) else self._first_s
        if (drain := self._fault("drain", number)) is not None:
            self._rate = drain.amount
        if (jump := self._fault("clock", number)) is not None:
            self._jumped_s += jump.amount
        self._uncharged |= self._fault("uncharged", number) is not None
        if self._fault("gauge", number) is not None:
            self._level = self.remaining
        if self._fault("fix", number) is not None:
            self._fix = self.position
        self._repeats |= self._fault("sensor", number) is not None
        glitch = self._fault("glitch", number)
        self._glitch = 0.0 if glitch is None else glitch.amount
        if (gap := self._fault("silent", number)) is not None:
            self._silent_until = self.clock.now_s() + gap.amount
        on_demand = self._fault("refuse", number) is not None
        if (problem := "rejected on demand" if on_demand else self._problem(goal)) is not None:
            self._answer(number, GoalRejected(goal.id, problem))
            return
        self.hold()
        self._set_out()
        if goal.home and not pause_s:  # one that streams is not told what is home
            self._homes.append(self._end(goal))
        self._start(goal, number, pause_s)

    def cancel(self, goal: str) -> None:
        """Abandon the goal with this id and report what was done of it, which may be nothing."""
        if self._trip is not None and self._trip.goal.id == goal:
            self.hold()
        elif goal not in self._answers:
            self._answer(-1, replace(self._result(goal, 0.0, 0.0), complete=False))

    def hold(self) -> None:
        """Stay in place; cut the goal under way short."""
        trip, self._trip = self._trip, None
        if trip is not None:
            self._move(trip, self._time_s)
            if trip.streams:
                self._pending += trip.new_readings(self._time_s)
            self._pass(self.position)
            result = self._result(trip.goal.id, trip.paid, self._time_s - trip.began_s)
            self._answer(trip.number, replace(trip.remainder(result, self._time_s), complete=False))
            self._rest()

    def ask(self, goal: str) -> None:
        """Report the outcome of a goal again, if it is known."""
        self._pending += self._answers.get(goal, [])

    @property
    def busy(self) -> bool:
        """Whether a goal is under way."""
        return self._trip is not None

    def knows(self, goal: str) -> bool:
        """Return True if the goal was answered or is under way."""
        return goal in self._answers or (self._trip is not None and self._trip.goal.id == goal)

    def has_finished(self, goal: str) -> bool:
        """Return True if the goal was carried out to its end."""
        answers = self._answers.get(goal, [])
        return any(isinstance(each, GoalResult) and each.complete and each.last for each in answers)

    def tick(self) -> list[Report]:
        """Advance, and return the reports to send; call it often."""
        trip, now = self._trip, self.clock.now_s()
        if trip is not None:
            now_s = self._time_s
            self._move(trip, now_s)
            if trip.streams:
                self._pending += trip.new_readings(now_s)
            else:
                self._report_part(trip, now_s)
            if now_s >= trip.ends_s and self._fault("stuck", trip.number) is None:
                self._trip = None
                self._arrive(trip)
                self._rest()
        elif self._at_home and self._time_s >= self._idle_since_s + self.recharge_s:
            self.remaining = self.battery
        due = [report for at, report in self._delayed if now >= at]
        self._delayed = [(at, report) for at, report in self._delayed if now < at]
        reports, self._pending = [*self._pending, *due], []
        if now < self._silent_until:
            self._delayed += [(self._silent_until, report) for report in reports]
            return []
        if now >= self._reported_s + _REPORT_S or reports:
            self._reported_s = now
            reports = [  # before the result
                *self._battery_report(),
                self._position_report(),
                *self._channel_reports(),
                *reports,
            ]
        return reports

    # -- moving ----------------------------------------------------------------------------------------

    def _fault(self, kind: str, number: int) -> Fault | None:
        return self._faults.get((kind, number))

    def _end(self, goal: Goal) -> Array:
        """Return the site of a goal (d,), with free variables in the middle of their axes."""
        return np.where(np.isnan(goal.site), self.world.domain.middle, goal.site)

    def _problem(self, goal: Goal) -> str | None:
        """Return why a goal cannot be carried out here; None if it can."""
        world, axes = self.world, self.world.domain.axes
        here = f"this robot is in {world.name}, with {', '.join(axis.name for axis in axes)}"
        if goal.site.shape != (len(axes),):
            return f"the site has {goal.site.size} coordinates: {here}"
        free, sets = np.isnan(goal.site), world.domain.controls
        if free.any() and (goal.home or sets is None or sets.index_of(goal.controls) is None):
            missing = ", ".join(axis.name for axis, left in zip(axes, free, strict=True) if left)
            return f"the site has no value for {missing}: {here}"
        if goal.level not in range(world.sensor.settings):
            return f"the sensor has no setting {goal.level}"
        if not (goal.home or world.domain.contains(self._end(goal)[None])[0]):
            return f"the site is out of reach: {here}"
        return None

    def _order(self, goal: Goal, *, sampling: bool) -> Query | GoHome:
        """Return a goal as an order from here, with or without a sample at its end."""
        end = self._end(goal)
        route = np.vstack([self.position, goal.route]) if len(goal.route) > 1 else np.empty((0, len(end)))
        if not sampling:
            return GoHome(0, goal.id, end, route=route)
        return Query(goal.site, goal.controls, goal.level, id=goal.id, route=route)

    def _start(self, goal: Goal, number: int, pause_s: float) -> None:
        world, key, now_s = self.world, self._key(goal), self._time_s
        trip = self._order(goal, sampling=False)

        def takes(order: Order) -> tuple[float, float]:
            return world.takes(order, self.position, now_s, stream(self.seed, "cost", key))

        cost, seconds = takes(trip if goal.home else self._order(goal, sampling=True))
        # A cell sets its variables while the whole order takes its time.
        as_set = world.domain.controls is not None
        travel, travel_s = (cost, seconds) if goal.home or as_set else takes(trip)
        route, streams = driven(trip, self.position), pause_s > 0.0
        # A robot that streams may be sent over several legs for one sample.
        noise = stream(self.seed, "along", number if streams else key)
        self._trip = Trip(
            goal,
            number,
            route,
            now_s,
            travel_s,
            max(0.0, seconds - travel_s),
            self._rate * travel,
            self._rate * max(0.0, cost - travel),
            self._end(goal),
            0.0 if goal.home else pause_s,
            world.read_on_the_way(route, now_s, travel_s, noise),
            streams,
        )
        self.reading = math.nan

    def _key(self, goal: Goal) -> int:
        """Return the key of the random streams: the number in the goal's id, or that of the sample."""
        tail = goal.id.rpartition("#")[0].rpartition("/")[2]
        return int(tail) if tail.isdecimal() else self._samples

    def _move(self, trip: Trip, now_s: float) -> None:
        """Advance along the path, sample at its end, and drain the battery, as time passes."""
        self.position, passed, spent = trip.advance(now_s)
        self._pass(*passed)
        self.remaining = max(0.0, self.remaining - spent)

    def _arrive(self, trip: Trip) -> None:
        """Sample, unless this is home, and answer."""
        goal, number, took_s = trip.goal, trip.number, trip.travel_s + trip.sampling_s
        if (jump := self._fault("clock", number)) is not None:
            took_s += jump.amount
        if goal.home:
            result = self._result(goal.id, trip.paid, took_s)
        else:
            self.position, self.reading = self._sample(trip)
            self._samples += 1
            result = replace(
                self._result(goal.id, trip.paid, took_s),
                sites=self.position[None],
                values=np.array([self.reading]),
                seconds=np.array([took_s]),
            )
        self._answer(number, trip.remainder(result, self._time_s))

    def _report_part(self, trip: Trip, now_s: float) -> None:
        """Report the readings on the way so far, if there are enough for a part of the goal."""
        if self.part_readings is None or trip.taken(now_s) - trip.reported < self.part_readings:
            return
        whole = self._result(trip.goal.id, trip.paid, now_s - trip.began_s)
        self._answer(trip.number, trip.part(whole, now_s))

    def _sample(self, trip: Trip) -> tuple[Array, float]:
        """Return where a reading was taken (d,), and its value."""
        goal, key = trip.goal, self._key(trip.goal)
        query = Query(goal.site, goal.controls, goal.level, id=goal.id)
        if (astray := self._fault("astray", trip.number)) is not None:
            off = trip.end + astray.amount * np.eye(len(trip.end))[0]
            if not self.world.domain.contains(off[None])[0]:
                return off, math.nan
            query = replace(query, site=off, controls=None)
        observation = self.world.evaluate(
            query,
            self.position,
            trip.ends_s,
            stream(self.seed, "sensor", key),
            chance=stream(self.seed, "chance", key),
        )
        value = float(observation.values[-1])
        if self._fault("nan", trip.number) is not None:
            value = math.nan
        if self._fault("absurd", trip.number) is not None:
            value = 1e30
        if self._repeats:
            self._value = value = value if math.isnan(self._value) else self._value
        return observation.position if astray is None else off, value

    def _result(self, goal: str, cost: float, seconds: float) -> GoalResult:
        none = np.empty(0)
        return GoalResult(
            goal, self._shown, np.empty((0, len(self.position))), none, none, cost, duration_s=seconds
        )

    # -- reporting -------------------------------------------------------------------------------------

    def _position_report(self) -> PositionReport:
        self._reported += 1
        off = 0.0 if self._reported % 4 else self._glitch
        return PositionReport(self._shown + off * np.eye(len(self.position))[0])

    @property
    def _shown(self) -> Array:
        """The position that it reports."""
        return self.position if self._fix is None else self._fix

    def _battery_report(self) -> list[BatteryReport]:
        if self._uncharged:
            return []
        level = self.remaining if math.isnan(self._level) else self._level
        share = level / self.battery if math.isfinite(self.battery) else None
        return [BatteryReport(share, level if share is not None else None)]

    def _channel_reports(self) -> list[ChannelReport]:
        passed_s = 0.0 if math.isnan(self._first_s) else self.clock.now_s() - self._first_s
        return [ChannelReport(channel.name, channel.at(passed_s)) for channel in self._channels]

    def _answer(self, number: int, answer: GoalResult | GoalRejected) -> None:
        """Send the outcome of a goal (at once, late or twice), and remember it."""
        self._answers.setdefault(answer.goal, []).append(answer)
        copies = 2 if self._fault("twice", number) is not None else 1
        if (late := self._fault("late", number)) is not None:
            self._delayed += [(self.clock.now_s() + late.amount, answer)] * copies
        else:
            self._pending += [answer] * copies


class PlannerWatch:
    """Watches for signs of life of the planner, as the latest goal asks for.

    Parameters
    ----------
    robot : Robot
    """

    def __init__(self, robot: Robot) -> None:
        self._robot, self._clock = robot, robot.clock
        self._goal: Goal | None = None
        self._heard_s = self._clock.now_s()

    def hear(self) -> None:
        """Note a sign of life."""
        self._heard_s = self._clock.now_s()

    def begin(self, goal: Goal) -> None:
        """Watch from now on, as this goal says."""
        self._goal = goal if math.isfinite(goal.planner_silence_s) else None

    def end(self) -> None:
        """Watch no longer: the planner has told the robot to stay where it is."""
        self._goal = None

    def check(self) -> str | None:
        """Hold, or go home once the goal under way is finished, if the planner is silent; return which."""
        goal, silent_s = self._goal, self._clock.now_s() - self._heard_s
        if goal is None or silent_s < goal.planner_silence_s:
            return None
        if not len(goal.return_route) or not (self._robot.busy or self._robot.has_finished(goal.id)):
            self._goal = None  # the route home begins where the goal ends
            self._robot.hold()
            return f"no sign of life from the planner for {silent_s:.0f} s: holding"
        if self._robot.busy:
            return None
        self._goal, home = None, goal.return_route[-1]
        self._robot.go(Goal(f"{goal.id} home", home, home=True, route=goal.return_route))
        return f"no sign of life from the planner for {silent_s:.0f} s: going home"

"""Orders in the form that a robot receives: with an id of their own, and a route from where it really is."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.costs.base import CostModel
from fieldbo.costs.on_the_way import spacing_m
from fieldbo.costs.travel import Legs
from fieldbo.errors import InputError
from fieldbo.messages import Order, Query
from fieldbo.mission.mission import Mission
from fieldbo.vehicles.remote.link import Goal
from fieldbo.vehicles.remote.settings import Arrival, Watch


class Goals:
    """Turns a vehicle's orders into goals.

    Parameters
    ----------
    mission : Mission
    number : int
        Index of the vehicle in the mission.
    session : str
        Identifies the run, since a robot may remember goals of other runs with the same name.
    watch : Watch
    arrival : Arrival

    Attributes
    ----------
    straight : bool
        Whether all routes are straight, so that they are safe from anywhere.

    Raises
    ------
    InputError
        The vehicle is to go home by itself but has no home.
    """

    def __init__(
        self,
        mission: Mission,
        number: int = 0,
        session: str = "",
        watch: Watch = Watch(),  # noqa: B008 - frozen
        arrival: Arrival = Arrival(),  # noqa: B008 - frozen
    ) -> None:
        self.adopt(mission)
        self._along = mission.world.sensor.along
        self._home, self._session = mission.vehicles[number].home, session
        self._watch, self._arrival = watch, arrival
        if watch.when_planner_silent == "home" and self._home is None:
            raise InputError(
                'when_planner_silent = "home", but the vehicle has no home in this mission',
                expected='a home, or when_planner_silent = "hold"',
                where="watch.when_planner_silent",
                fix="set home in [agent] of the mission",
            )

    def adopt(self, mission: Mission) -> None:
        """Plan routes in the part of a mission's domain that vehicles may enter."""
        self._domain, self._cost = mission.world.passable, mission.world.cost
        self.straight = self._domain.clear and type(self._cost).path in (CostModel.path, Legs.path)

    # -- ids -------------------------------------------------------------------------------------------

    def id_of(self, order_id: str) -> str:
        """Return the id of an order's goal."""
        return f"{order_id}#{self._session}"

    def order_of(self, goal_id: str) -> str | None:
        """Return the id of a goal's order; None if the goal is of another run."""
        order_id, _, session = goal_id.rpartition("#")
        return order_id if session == self._session else None

    # -- goals -----------------------------------------------------------------------------------------

    def goal(self, order: Order, here: Array, seconds: float) -> Goal:
        """Return the goal of an order.

        Parameters
        ----------
        order : Query or GoHome
            With its site.
        here : (d,) array
            Where the robot is.
        seconds : float
            Declared duration; NaN if unknown.

        Raises
        ------
        InputError
            There is no safe route from here.
        """
        assert order.site is not None
        goal = Goal(
            self.id_of(str(order.id)),
            order.site,
            home=not isinstance(order, Query),
            seconds=seconds,
            route=self.points(order, here),
            planner_silence_s=self._watch.planner_silence_s,
            return_route=self._return_route(order.site),
        )
        return replace(goal, controls=order.controls, level=order.level) if isinstance(order, Query) else goal

    def dwell_s(self, order: Order) -> float:
        """Return for how many seconds to average the readings at an order's site."""
        if self._arrival.dwell_s is not None or not isinstance(order, Query):
            return self._arrival.dwell_s or 0.0
        sampling_s = float(self._cost.sampling_s(order.site[None], order.level)[0])
        return max(0.0, sampling_s - self._arrival.settle_s) if math.isfinite(sampling_s) else 0.0

    def spacing_m(self, route: Array) -> float:
        """Return how far apart readings on the way are on a route (k, d), in metres; 0 if there are none."""
        if self._along is None:
            return 0.0
        spacing = spacing_m(self._cost, self._along, route)
        return spacing if math.isfinite(spacing) else 0.0

    # -- routes ----------------------------------------------------------------------------------------

    def points(self, order: Order, here: Array) -> Array:
        """Return the points (k, d) to pass from `here` (d,) to an order's site, which is the last one.

        The order's own route if that begins here, else the cheapest one from here; (0, d) if variables are
        left free.

        Raises
        ------
        InputError
            There is no safe route from here.
        """
        assert order.site is not None
        site = order.site
        if np.isnan(site).any():
            return np.empty((0, len(site)))
        if len(order.route) and np.array_equal(here, order.route[0]):
            return order.route[1:]
        if self.straight:
            return site[None]
        route = self._cost.path(here, site)
        self._check_way_in(*route[:2])
        return route[1:]

    def _check_way_in(self, here: Array, point: Array) -> None:
        """Raise an `InputError` if an obstacle lies between a robot outside the domain and a point."""
        if self._domain.contains(here[None])[0]:
            return
        for obstacle in self._domain.solid:
            if obstacle.crosses(here, point) and not obstacle.holds(here)[0]:
                raise InputError(f"{obstacle.name} lies between the robot and the domain")

    def is_free(self, a: Array, b: Array) -> bool:
        """Return True if the straight leg from `a` to `b` (d,) is free."""
        if self._domain.clear:
            return True
        try:
            return len(self._cost.path(a, b)) == 2
        except InputError:
            return False  # there is no route at all

    def is_blocked(self, here: Array, point: Array) -> bool:
        """Return True if the way from a robot to a point (d,) leads round something.

        Robots stop beside corners, and positions are rounded: one within the tolerance of arrivals is passed.
        """
        if self._domain.clear:
            return False
        try:
            corners = self._cost.path(here, point)[1:-1]
        except InputError:
            return True  # there is no route at all
        return bool((np.abs(corners - here) > self._arrival.within).any())

    def _return_route(self, site: Array) -> Array:
        """Return the points (k, d) that the robot passes from a site if it is to go home by itself."""
        if self._watch.when_planner_silent != "home":
            return np.empty((0, len(site)))
        assert self._home is not None
        return self._home[None] if np.isnan(site).any() else self._cost.path(site, self._home)[1:]

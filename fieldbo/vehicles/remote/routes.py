"""The routes that a robot is sent, from where it really is."""

from __future__ import annotations

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.messages import Order
from fieldbo.mission.mission import Mission


class Routes:
    """Finds the points that a robot is to pass.

    Parameters
    ----------
    mission : Mission

    Attributes
    ----------
    located : bool
        Whether the robot's position is known: at the start of a run, and once the robot has reported it after
        an order was lost or the robot was away.
    """

    def __init__(self, mission: Mission) -> None:
        self._domain, self._cost = mission.world.domain, mission.world.cost
        self.located = True

    @property
    def known(self) -> bool:
        """Whether a safe route is known: among obstacles, only from a known position."""
        return self.located or self._domain.clear

    def points(self, order: Order, here: Array) -> Array:
        """Return the points (k, d) to pass from `here` (d,) to an order's site, which is the last one.

        The order's own route if that begins here, else the cheapest one from here; (0, d) if variables are
        left free.
        """
        assert order.site is not None
        site = order.site
        if np.isnan(site).any():
            return np.empty((0, len(site)))
        if len(order.route) and (self._domain.clear or np.array_equal(here, order.route[0])):
            return order.route[1:]
        return site[None] if self._domain.clear else self._cost.path(here, site)[1:]

    def is_free(self, a: Array, b: Array) -> bool:
        """Return True if the straight leg from `a` to `b` (d,) is free."""
        return self._domain.clear or len(self._cost.path(a, b)) == 2

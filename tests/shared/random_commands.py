"""Random commands for a mission under way."""

import numpy as np
from underway import command

from fieldbo.domain.obstacles import Obstacle

DIAMOND = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]])


def commands_for(mission, rng):
    """Return commands for a mission by the number of the poll, every pause with its end."""
    domain, given, poll = mission.world.domain, {}, 1

    def anywhere(beyond):
        return domain.low + rng.uniform(-beyond, 1 + beyond, domain.dimension) * domain.extent

    for _ in range(int(rng.integers(1, 6))):
        poll += int(rng.integers(1, 6))
        action, details = (
            rng.choice(["pause", "skip", "next", "no-go", "home"], p=[0.3, 0.2, 0.2, 0.25, 0.05]),
            {},
        )
        if action == "next":
            details = {"site": anywhere(0.05)}
        elif action == "no-go":
            corners = anywhere(0.0)[:2] + 0.2 * domain.extent[:2] * rng.uniform(0.2, 1.0, (4, 1)) * DIAMOND
            details = {"areas": (Obstacle("closed", corners=tuple(map(tuple, corners.tolist()))),)}
        given[poll] = command(str(action), **details)
        if action == "pause":
            poll += int(rng.integers(1, 4))
            given[poll] = command("continue")
    return given

"""Checks that advice can be given on a mission. Each raises an `InputError` that says what to change."""

from __future__ import annotations

import numpy as np

from fieldbo.agent.agent import Agent
from fieldbo.belief.question import Optimum
from fieldbo.costs.cells import Modular
from fieldbo.errors import InputError
from fieldbo.mission.mission import Mission


def check_numbers(target: float | None, probability: float | None, fields: int, jobs: int, seed: int) -> None:
    """Raise an `InputError` if a number is out of its range."""
    if target is not None and not 0 < target <= 1:
        raise InputError(
            f"the target is {target:g}", expected="an F1 above 0 and at most 1", where="--target"
        )
    if probability is not None and target is None:
        raise InputError(
            "a probability without a target",
            expected="the F1 to reach with that probability",
            where="--probability",
            fix="add --target 0.9, for example",
        )
    if probability is not None and not 0 < probability < 1:
        raise InputError(
            f"the probability is {probability:g}", expected="a number between 0 and 1", where="--probability"
        )
    for name, number, least in (("fields", fields, 1), ("jobs", jobs, 1), ("seed", seed, 0)):
        if number < least:
            raise InputError(f"{name} = {number}", expected=f"at least {least}", where=f"--{name}")


def check_supported(mission: Mission, target: float | None, policy: str) -> None:
    """Raise an `InputError` if a mission can't be advised on."""
    world = mission.world
    if world.domain.control_sets or isinstance(world.cost, Modular):
        kind = "control sets" if world.domain.control_sets else "a chain of modules"
        raise InputError(
            f"world {world.name} has {kind}, on which advice is not supported",
            expected="a world that a vehicle samples, site by site",
            where="MISSION",
            fix="compare policies at equal cost instead: fieldbo compare",
        )
    if mission.costs == "unknown":
        raise InputError(
            "the costs are unknown to the agent, so no battery can be advised",
            expected='costs = "declared"',
            where="agent.costs",
        )
    if len(mission.vehicles) > 1:
        raise InputError(f"{len(mission.vehicles)} vehicles", expected="one vehicle", where="MISSION")
    if target is not None and isinstance(mission.question, Optimum):
        raise InputError(
            "--target is an F1, but the question is for an optimum, which is scored by regret",
            expected="no target; the advice then states the regret to expect of a battery",
            where="--target",
            fix="leave out --target, and set --battery",
        )
    vehicle, levels = Agent(mission).vehicles[0], range(world.sensor.settings)
    sites = np.vstack([world.domain.sites, vehicle.position])
    if not any(vehicle.affordable(sites, level=level).any() for level in levels):
        raise InputError(
            f"a battery of {vehicle.spec.battery:g} {world.cost_unit} pays for no reading"
            + (", with the trip home, reserve and margin" if vehicle.spec.home is not None else ""),
            expected="a battery that pays for a few readings at least",
            where="agent.battery",
            fix="raise it, in the mission or with --battery; a search begins with it",
        )

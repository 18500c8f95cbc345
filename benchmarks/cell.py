"""One decision in a factory cell after 300 readings: which arm, or which variables to control."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np
from timing import Plan, Row, alternate, timed

from fieldbo import Agent, Mission, Query, World, load_world
from fieldbo._numerics.blas import one_blas_thread
from fieldbo.belief import Model, Optimum
from fieldbo.mission import VehicleSpec
from fieldbo.policies import LaMBO, Policy, Subsets

READINGS = 300
DECISIONS = 5


class Deciding:
    """An agent with 300 readings at random settings, which is asked repeatedly.

    Parameters
    ----------
    world : World
    question : Optimum
    policy : Policy
    warm : int
        Decisions to carry out first, so that the memory is that of a mission under way.
    length : float
        Length scales of the model, as a fraction of the axes.
    **more
        Arguments of the mission.
    """

    def __init__(
        self, world: World, question: Optimum, policy: Policy, warm: int, length: float, **more: str
    ) -> None:
        scales = tuple((length * world.domain.extent).tolist())
        model = Model(kernel="se", learn=False, length_scales=scales, variance=1.0)
        assert world.start is not None
        vehicles = (VehicleSpec(1e9, world.start),)
        mission = Mission("m", world, question, policy, model, vehicles, initial=READINGS, **more)  # type: ignore[arg-type]
        self.agent, self.rng = Agent(mission), np.random.default_rng(0)
        values = world.truth(world.domain.sites)
        self.shift, self.scale = float(values.mean()), float(values.std())
        for _ in range(READINGS + warm):
            self.carry_out()

    def carry_out(self) -> None:
        """Ask for an order, and report its outcome."""
        order = self.agent.ask()
        assert isinstance(order, Query)
        world = self.agent.mission.world
        seen = world.evaluate(order, world.start, 0.0, self.rng, self.rng, self.rng)  # type: ignore[arg-type]
        self.agent.tell(replace(seen, values=(seen.values - self.shift) / self.scale))

    def seconds(self) -> float:
        """Return the median time of a decision, all from the same state."""
        taken = []
        for _ in range(DECISIONS):
            agent = deepcopy(self.agent)
            taken.append(timed(agent.ask)[0])
        return float(np.median(taken))


def lambo(name: str, plan: Plan) -> list[Row]:
    """Time LaMBO over 16 arms of eight variables in three modules."""
    with one_blas_thread():
        own = Deciding(
            load_world("cell-ackley-8"), Optimum("minimise"), LaMBO(cells=4, refinements=0), 2, 0.3
        )
        return alternate(plan.runs or 3, own.seconds, {}).rows(name, plan)


def subsets(name: str, plan: Plan) -> list[Row]:
    """Time Algorithm 1 with no set ruled out, its slowest case: 7 sets of 12 variables, 128 samples."""
    with one_blas_thread():
        policy = Subsets(tau=1, alpha=0.9, samples=128)
        world = load_world("cell-hartmann-12-cheap")
        own = Deciding(world, Optimum("maximise"), policy, 10, 0.6, costs="unknown")
        return alternate(plan.runs or 3, own.seconds, {}).rows(name, plan)

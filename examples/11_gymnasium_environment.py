"""
A Gymnasium environment
=======================

Wrap a fieldbo mission in a Gymnasium environment, to train a policy by reinforcement learning.

An action is the index of the site to read next. An observation holds the posterior mean and standard
deviation at all sites, the position, and the battery left for queries. The reward is the gain in F1. An
episode terminates when there is not enough battery for another site, and is truncated after `max_steps`.

Install Gymnasium first: ``pip install fieldbo[examples]``.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env
from numpy.typing import NDArray

import fieldbo
from fieldbo import belief, costs, domain, messages, mission, policies, results, vehicles, world

Observation = dict[str, NDArray[np.float32]]


class ChosenOutside(policies.Policy):
    """A policy whose choices come from the environment's `step`."""

    action = 0

    def suggest(self, state: policies.State, memory: policies.Memory) -> policies.Decision:
        """Go to the chosen site or, if it is not affordable, to the nearest affordable one."""
        sites, affordable = state.domain.sites, state.choosable()
        if not affordable.any():
            return policies.Decision(messages.Stop(messages.EndReason.BATTERY_SPENT), memory)
        distances = np.linalg.norm(sites - sites[self.action], axis=1)
        nearest = int(np.argmin(np.where(affordable, distances, np.inf)))
        return policies.Decision(messages.Query(sites[nearest]), memory)


class SamplingEnv(gymnasium.Env[Observation, np.int64]):
    """Find where nitrate in a random pond is at or above a threshold."""

    def __init__(self, battery: float = 800.0, threshold: float = 0.5, max_steps: int = 40) -> None:
        self.battery, self.threshold, self.max_steps = battery, threshold, max_steps
        axes = [domain.Axis(name, "m", 0, 100) for name in ("east", "north")]
        self.domain = domain.Domain.grid(axes, (15, 15))
        n = self.domain.size
        self.action_space = spaces.Discrete(n)
        self.observation_space = spaces.Dict(
            {
                "mean": spaces.Box(-np.inf, np.inf, (n,)),
                "sd": spaces.Box(0.0, np.inf, (n,)),
                "position": spaces.Box(0.0, 100.0, (2,)),
                "battery": spaces.Box(0.0, battery, (1,)),
            }
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Draw another pond, and take a first reading at the start."""
        super().reset(seed=seed)
        draw = int(self.np_random.integers(2**31))
        self.policy = ChosenOutside()
        pond = fieldbo.World(
            name="pond",
            title="A random pond",
            domain=self.domain,
            cost=costs.Euclidean(rate=1.0, sampling=10.0),
            cost_unit="s",
            sensor=domain.Sensor(noise_sd=0.05),
            quantity=world.Quantity("nitrate", "umol L-1"),
            field=world.GPDraw(length_scales=(20, 20)).make(self.domain, draw=draw, folder=None),
        )
        task = fieldbo.Mission(
            name="pond",
            world=pond,
            question=belief.LevelSet(self.threshold),
            policy=self.policy,
            model=belief.Model(learn=False, length_scales=(20, 20), mean=0.0),
            vehicles=(
                mission.VehicleSpec(battery=self.battery, start=self.domain.low, home=self.domain.low),
            ),
            initial=1,
            seed=draw,
        )
        self.above = pond.truth(self.domain.sites) >= self.threshold
        self.agent, self.vehicle, self.steps = fieldbo.Agent(task), vehicles.Simulated(task), 0
        self._carry_out()
        self.f1 = self._f1()
        return self._observation(), self._info()

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Read the chosen site."""
        self.policy.action = int(action)
        self._carry_out()
        self.steps += 1
        before, self.f1 = self.f1, self._f1()
        info = self._info()
        terminated = not info["mask"].any()
        truncated = not terminated and self.steps >= self.max_steps
        return self._observation(), self.f1 - before, terminated, truncated, info

    def _carry_out(self) -> None:
        order = self.agent.ask()
        if isinstance(order, fieldbo.Query):
            self.vehicle.send(order)
            for event in self.vehicle.events(0.0):
                self.agent.tell(event)

    def _f1(self) -> float:
        state = self.agent.seen()
        return results.f1_score(state.surface.mean >= state.threshold, self.above)

    def _info(self) -> dict[str, Any]:
        """Return F1, and a mask of the affordable sites."""
        return {"f1": self.f1, "mask": self.agent.seen().choosable().astype(np.int8)}

    def _observation(self) -> Observation:
        state = self.agent.seen()
        return {
            "mean": state.scale.to_user(state.surface.mean).astype(np.float32),
            "sd": (state.surface.sd * abs(state.scale.scale)).astype(np.float32),
            "position": state.position.astype(np.float32),
            "battery": np.array([state.spendable], dtype=np.float32),
        }


if __name__ == "__main__":
    check_env(SamplingEnv(), skip_render_check=True)
    env = SamplingEnv()
    env.action_space.seed(1)
    _, info = env.reset(seed=1)
    total, done = 0.0, False
    while not done:  # a random policy; replace it by a trained one
        _, reward, terminated, truncated, info = env.step(env.action_space.sample(info["mask"]))
        total, done = total + float(reward), terminated or truncated
    print(f"{env.steps} readings, F1 {info['f1']:.2f}, return {total:.2f}, terminated: {terminated}")

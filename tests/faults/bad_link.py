"""Random missions over a bad link, in simulated time: ``bad_link.py --missions 2000 --gauge frozen``.

Between an agent and a robot, answers are lost (with the order done, half done, not done or still under way),
come late or twice; telemetry is rare, without a position, or with a battery level of the past; the planner is
killed and replays its record. The robot's own battery is the judge: where a real cost exceeds the declared
one by the margin at most, it is never overdrawn, and a robot with a home gets home.

A gauge may lie. The declared account is never overdrawn then: what all that the robot did costs by
declaration, or by the robot's own reports if it knows its costs.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from dataclasses import dataclass, field, fields, replace

import numpy as np

from fieldbo.belief.model import Model
from fieldbo.belief.question import LevelSet
from fieldbo.messages import (
    GoHome,
    Lost,
    Observation,
    Order,
    Query,
    Rejected,
    Telemetry,
    kind_of,
    to_plain,
)
from fieldbo.mission.mission import Mission
from fieldbo.mission.vehicle_spec import VehicleSpec, WhenLost
from fieldbo.policies.baselines import MaximumVariance, Random
from fieldbo.record.store import Row
from fieldbo.runs.state import RunState
from fieldbo.testing.small import small_world

ROUNDING = 1e-6
SAMPLING = 1.0
"""Declared cost of a sample in the small world; a metre costs 1, too, and takes a second."""

GAUGES = {
    "true": lambda spent, rng: spent,
    "frozen": lambda spent, rng: min(spent, 2.0),
    "optimistic": lambda spent, rng: 0.6 * spent,
    "pessimistic": lambda spent, rng: 1.3 * spent,
    "drifting": lambda spent, rng: max(0.0, spent - 0.02 * spent**2),
    "jumping": lambda spent, rng: spent + rng.choice([-10.0, -3.0, 0.0, 0.0, 3.0]),
}
"""What a gauge shows as spent."""

AGED = {f.name for f in fields(Telemetry)} >= {"located_s", "measured_s"}
ESTIMATES = "estimated" in {f.name for f in fields(Observation)}


@dataclass
class Robot:
    """A robot that drives straight to its latest goal; `factor` draws its real cost per declared cost."""

    position: np.ndarray
    rng: np.random.Generator
    margin: float
    spent: float = 0.0
    declared: float = 0.0
    time_s: float = 0.0
    levels: list[tuple[float, float]] = field(default_factory=list)
    answers: dict[str, Observation] = field(default_factory=dict)
    leg: tuple[Order, float, float] | None = None

    def factor(self) -> float:
        return 1.0 + self.margin * float(self.rng.choice([1.0, 1.0, 0.0, -0.5]))

    def begin(self, order: Order) -> None:
        """Take a goal, which replaces the one under way."""
        self.cut()
        self.leg = (order, self.factor(), self.spent)

    def drive(self, fraction: float) -> None:
        """Cover a fraction of what is left of the leg."""
        assert self.leg is not None
        order, factor, _ = self.leg
        step = fraction * (order.site - self.position)
        declared = float(np.linalg.norm(step))
        self.position = self.position + step
        self._spend(declared, factor)

    def finish(self) -> None:
        """Arrive and sample."""
        self.drive(1.0)
        assert self.leg is not None
        order, factor, _ = self.leg
        self.position = order.site
        if isinstance(order, Query):
            self._spend(SAMPLING, factor)
        self._answer(complete=True)

    def cut(self) -> None:
        """Abandon the goal under way, if there is one."""
        if self.leg is not None:
            self._answer(complete=False)

    def _spend(self, declared: float, factor: float) -> None:
        self.spent += declared * factor
        self.declared += declared
        self.time_s += declared
        self.levels.append((self.time_s, self.spent))

    def _answer(self, *, complete: bool) -> None:
        assert self.leg is not None
        (order, _, before), self.leg = self.leg, None
        reading = complete and isinstance(order, Query)
        self.answers[str(order.id)] = Observation(
            str(order.id),
            sites=self.position[None] if reading else np.empty((0, 2)),
            values=[float(np.sin(self.position[0]))] if reading else [],
            noise_variances=[0.01] if reading else [],
            times_s=[self.time_s] if reading else [],
            position=self.position,
            cost=self.spent - before,
            complete=complete,
            time_s=self.time_s,
        )

    def spent_at(self, time_s: float) -> float:
        """Return what was spent up to a time."""
        return max((spent for at, spent in self.levels if at <= time_s), default=0.0)


class BadLink:
    """One mission over a bad link.

    Parameters
    ----------
    seed : int
    gauge : str
        One of `GAUGES`.
    """

    def __init__(self, seed: int, gauge: str = "true") -> None:
        self.rng = rng = np.random.default_rng(seed)
        world = small_world((6, 5))
        margin = float(rng.choice([0.0, 0.1, 0.3]))
        home = None if rng.random() < 0.2 else np.array([0.0, 0.0])
        spec = VehicleSpec(
            float(rng.uniform(12.0, 60.0)), np.array([0.0, 0.0]), home=home, margin=margin,
            when_lost=WhenLost(orders=int(rng.integers(2, 6))),
        )  # fmt: skip
        self.mission = Mission(
            name="link",
            world=world,
            question=LevelSet(0.3),
            policy=Random() if rng.random() < 0.7 else MaximumVariance(),
            model=Model(learn=False, length_scales=(2.0, 2.0), mean=0.0),
            vehicles=(spec,),
            initial=int(rng.integers(0, 3)),
            batch=int(rng.integers(1, 4)),
            max_steps=25,
            seed=seed,
        )
        self.spec, self.rows = spec, list[Row]()
        self.state = RunState(self.mission, "link")
        self.robot = Robot(spec.start, rng, margin)
        self.loss = float(rng.choice([0.1, 0.3, 0.6]))
        self.estimates = rng.random() < 0.3
        """Whether the robot does not know its costs."""
        self.delay_s = float(rng.choice([0.0, 2.0, 8.0]))
        """The greatest age of a battery report."""
        self.shown, self.chance = GAUGES[gauge], np.random.default_rng(seed)
        self.late: list[str] = []
        self.lost = self.kills = 0

    # -- the planner -----------------------------------------------------------------------------------

    def tell(self, event) -> None:
        self._write(event)
        self.state.tell(event)

    def _write(self, message, memory=None, why=None) -> None:
        body = {"message": to_plain(message), "memory": memory, "why": why}
        self.rows.append(Row(len(self.rows), "", kind_of(message), getattr(message, "order", None), body))

    def kill(self) -> None:
        """Lose the planner, and replay its record."""
        self.kills += 1
        self.state = RunState(self.mission, "link")
        self.state.replay(self.rows)

    def run(self) -> BadLink:
        """Run the mission to its end."""
        agent = self.state.agent
        while True:
            agent = self.state.agent
            orders = agent.ask_batch(self.mission.batch)
            for order in orders:
                issued = agent.issued[str(order.id)]
                self._write(order, issued.memory, None if issued.why is None else dict(issued.why))
            self.state.issue(orders)
            for order in orders:
                self._carry_out(order)
            if not orders or isinstance(orders[-1], GoHome):
                return self._end()

    def _end(self) -> BadLink:
        """The robot returns home by itself, as the last order lets it or its own failsafe does."""
        self.robot.cut()
        if self.spec.home is not None:
            self.robot.begin(GoHome(0, "link/999", self.spec.home))
            self.robot.drive(1.0)
        return self

    @property
    def overdrawn(self) -> float:
        """By how much the robot's own battery is overdrawn; 0 if it is not."""
        over = self.robot.spent - self.spec.battery
        return over if over > ROUNDING else 0.0

    @property
    def overdrawn_by_account(self) -> float:
        """By how much the declared account is overdrawn; 0 if it is not."""
        over = (self.robot.declared if self.estimates else self.robot.spent) - self.spec.battery
        return over if over > ROUNDING else 0.0

    # -- the link --------------------------------------------------------------------------------------

    def _carry_out(self, order: Order) -> None:
        rng, robot = self.rng, self.robot
        if str(order.id) not in self.state.outstanding:
            return
        lost = rng.random() < self.loss
        if not lost and rng.random() < 0.05 and isinstance(order, Query):
            self.tell(Rejected(str(order.id), "shallow"))
            return
        if lost:
            self._lose(order)
        else:
            robot.begin(order)
            robot.drive(rng.random() * 0.6)
            self._telemetry(0.3)
            if rng.random() < 0.05:
                self.kill()
            robot.finish()
            self._answer(str(order.id))
        self._telemetry(0.5)
        if self.late and rng.random() < 0.3:
            self._answer(self.late.pop(int(rng.integers(len(self.late)))))
            self._telemetry(0.3)
        if rng.random() < 0.05:
            self.kill()

    def _lose(self, order: Order) -> None:
        """The answer is lost, or the order: done, half done, not done, or still under way."""
        rng, robot, order_id = self.rng, self.robot, str(order.id)
        self.lost += 1
        fate = rng.choice(["done", "half", "not", "under way"])
        if fate != "not":
            robot.begin(order)
            robot.drive(rng.random())
            self._telemetry(0.2)
        if fate == "done":
            robot.finish()
        elif fate == "half":
            robot.cut()
        robot.time_s += 5.0
        self.tell(Lost(order_id, "silence"))
        self._telemetry(0.5)
        if fate == "under way" and robot.leg is not None and robot.leg[0] is order:
            robot.drive(rng.random())  # until the next goal reaches it
        if fate != "not" and rng.random() < 0.5:
            self.late.append(order_id)

    def _answer(self, order: str) -> None:
        """Pass on an answer of the robot, perhaps twice."""
        if order not in self.robot.answers:
            return
        seen = self.robot.answers[order]
        if self.estimates:  # as declared: the larger of where it may have come from
            declared = 0.0 if self.state.agent.issued[order].order.expected_cost is None else (
                self._declared(order, seen)
            )  # fmt: skip
            seen = replace(seen, cost=declared, **({"estimated": True} if ESTIMATES else {}))
        for _ in range(1 + (self.rng.random() < 0.1)):
            self.tell(seen)

    def _declared(self, order: str, seen: Observation) -> float:
        """Return the declared cost of what the robot did; an estimate knows neither detours nor overruns."""
        del seen
        entry = self.state.agent.vehicles[0].ledger.entries[order]
        return entry.declared

    def _telemetry(self, chance: float) -> None:
        """The robot is heard from, perhaps without a position, and with a battery level of the past."""
        rng, robot = self.rng, self.robot
        if rng.random() > chance:
            return
        age_s = self.delay_s * rng.random()
        level = self.spec.battery - self.shown(robot.spent_at(robot.time_s - age_s), self.chance)
        located = rng.random() < 0.7
        position = robot.position if located else self.state.agent.vehicles[0].position
        robot.time_s += 1e-3
        ages = {"measured_s": robot.time_s - self.delay_s} if AGED else {}
        if AGED and not located:
            ages["located_s"] = -1.0
        remaining = level if rng.random() < 0.8 else None
        self.tell(Telemetry(0, position, remaining, robot.time_s, 0.0, **ages))


def check(seeds, gauge: str = "true") -> tuple[Counter, float, int | None]:
    """Run missions; return counts, the worst overdraft as a fraction of a battery, and its seed."""
    counts, worst, worst_seed = Counter(), 0.0, None
    for seed in seeds:
        done = BadLink(seed, gauge).run()
        counts["missions"] += 1
        counts["lost"] += done.lost
        counts["kills"] += done.kills
        counts["readings"] += done.state.agent.steps
        counts["overdrawn"] += done.overdrawn > 0
        counts["by account"] += done.overdrawn_by_account > 0
        if done.overdrawn / done.spec.battery > worst:
            worst, worst_seed = done.overdrawn / done.spec.battery, seed
    return counts, worst, worst_seed


def main() -> int:
    """Print the counts; return 1 if a battery was overdrawn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--missions", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1, help="seed of the first mission")
    parser.add_argument("--gauge", nargs="*", default=list(GAUGES), choices=GAUGES)
    options = parser.parse_args()
    failed = False
    for gauge in options.gauge:
        began = time.perf_counter()
        counts, worst, seed = check(range(options.seed, options.seed + options.missions), gauge)
        print(
            f"{gauge} gauge: {counts['missions']} missions, {counts['readings']} readings, "
            f"{counts['lost']} orders lost, {counts['kills']} kills in {time.perf_counter() - began:.0f} s: "
            f"{counts['by account']} overdrawn by the declared account, {counts['overdrawn']} really"
            + (f", worst by {worst:.0%} of the battery (seed {seed})" if counts["overdrawn"] else ""),
            flush=True,
        )
        failed |= counts["by account"] > 0 or (gauge == "true" and counts["overdrawn"] > 0)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

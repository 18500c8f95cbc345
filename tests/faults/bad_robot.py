"""Random missions of a simulated robot over a link that fails, whose planner is killed and resumed.

    python tests/faults/bad_robot.py --missions 1000
    python tests/faults/bad_robot.py --only 123        # that one again, with its record

Goals and reports are lost, come late or twice; the link breaks; the planner dies at any moment and goes on
from its record, some time later. The robot is the judge: by its own account, it never spends more than its
battery holds; each reading in the record is one that it took, where it took it, and none counts twice; and
once the link works again, the vehicle is brought home.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

sys.path += [str(Path(__file__).parents[1] / "shared")]

from direct_link import Guided, Near, Streaming, Wire

from fieldbo.errors import VehicleError
from fieldbo.messages import Observation, Query
from fieldbo.mission.mission import Mission
from fieldbo.mission.vehicle_spec import Recharging, WhenLost
from fieldbo.policies.baselines import MaximumVariance, Random
from fieldbo.record.record import Record
from fieldbo.results.result import Result
from fieldbo.runs.runner import resume, run
from fieldbo.testing import SteppedClock, small_mission
from fieldbo.vehicles.remote.link import GoalResult, Reconnected, Report
from fieldbo.vehicles.remote.remote import Remote
from fieldbo.vehicles.remote.settings import Arrival, Battery, Reports, VehicleFile, Watch
from fieldbo.vehicles.simulators import Robot

TICK_S = 0.05


class KilledError(BaseException):
    """The planner's process was killed."""


class Judge(Robot):
    """A robot that keeps its own account of what it spent, and of what it read.

    One that streams samples at home, too, since it is not told what is home; that is not counted.
    """

    def __init__(self, *args, **settings) -> None:
        self.spent, self.all_spent = 0.0, list[float]()
        self.homeward = ""  # the target that is home
        self.read = dict[str, list[tuple[np.ndarray, float]]]()
        super().__init__(*args, **settings)

    def _move(self, leg, now_s) -> None:
        before = leg.paid
        super()._move(leg, now_s)
        most = leg.travel if self.homeward == leg.goal.id else math.inf
        self.spent += min(most, leg.paid) - min(most, before)

    def _sample(self, leg):
        at, value = super()._sample(leg)
        self.read.setdefault(leg.goal.id.partition("#")[0], []).append((at, value))
        return at, value

    def tick(self) -> list[Report]:
        before, reports = self.remaining, super().tick()
        if self.remaining > before:
            self.all_spent.append(self.spent)
            self.spent = 0.0
        return reports


@dataclass
class Weather:
    """How bad a link is at present."""

    rng: np.random.Generator
    lost: float = 0.0
    late_s: float = 0.0
    twice: float = 0.0


class BadWire(Wire):
    """A wire that loses, delays and repeats what goes over it, in both directions."""

    def __init__(self, link, hear) -> None:
        self.alive = True
        super().__init__(link, lambda report: self._hear_later(hear, report))
        self.count = 1000 * len(link.wires)  # an earlier planner has used other names

    def _hear_later(self, hear, report) -> None:
        weather, clock = self.link.weather, self.robot.clock
        copies = int(weather.rng.random() >= weather.lost) + int(weather.rng.random() < weather.twice)
        outcome = isinstance(report, GoalResult)
        for _ in range(copies):
            late_s = weather.rng.uniform(0.0, weather.late_s) if outcome and weather.late_s else 0.0
            if late_s:
                clock.after(late_s, lambda: self.alive and hear(report))
            else:
                hear(report)

    def go(self, goal) -> None:
        super().go(goal)
        if goal.home and not self.link.follows_routes:
            self.robot.homeward = f"target {self.count}"

    def _ordered(self, act, *args) -> None:
        weather = self.link.weather
        if weather.rng.random() >= weather.lost:
            super()._ordered(act, *args)
        if weather.rng.random() < weather.twice:
            super()._ordered(act, *args)

    def close(self) -> None:
        """Be silent for ever; the robot goes on alone."""
        if self.alive:
            self.alive = False
            super().close()
            self.robot.clock.meanwhile.append(self.robot.tick)


@dataclass
class Verdict:
    """What became of a mission."""

    problems: list[str] = field(default_factory=list)
    kills: int = 0
    readings: int = 0


class BadRobot:
    """The mission of a seed, its robot, and a link that fails."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = np.random.default_rng(seed)
        self.clock = SteppedClock(TICK_S)
        self.mission = self._mission(seed)
        self.spec = self.mission.vehicles[0]
        batteries = 1 if self.spec.recharge is None else self.spec.recharge.batteries
        self.robot = Judge(
            self.mission.world,
            seed=self.mission.seed,
            start=self.spec.start,
            battery=self.spec.battery,
            recharge_s=10.0 if batteries > 1 else math.inf,
            clock=self.clock,
        )
        self.weather = Weather(rng)
        kind = [Near, Streaming, Guided][int(rng.integers(3))]
        self.reports = kind is Near
        self.link = _wired(kind)(self.robot)
        self.link.__dict__["weather"] = self.weather
        silence_s = float(rng.choice([3.0, 6.0]))
        self.settings = VehicleFile.model_construct(
            format=1,
            title="",
            link={},
            frame=None,
            watch=Watch(silence_s=silence_s, connect_s=20.0, patience=3.0, least_s=8.0),
            battery=Battery(accuracy=0.01),
            reports=Reports(accuracy=1e-6),
            arrival=Arrival(1e-6, dwell_s=0.0),
        )
        self.deaths = int(rng.integers(0, 4))

    def _mission(self, seed: int) -> Mission:
        rng = self.rng
        policy = Random() if rng.random() < 0.5 else MaximumVariance()
        made = small_mission(policy, battery=float(rng.choice([20.0, 40.0])), seed=seed, initial=2)
        recharge = Recharging(takes_s=10.0, batteries=2) if rng.random() < 0.4 else None
        lost = WhenLost(
            orders=int(rng.integers(1, 4)), then="wait" if rng.random() < 0.5 else "home", patience_s=60.0
        )
        spec = replace(made.vehicles[0], when_lost=lost, recharge=recharge)
        return replace(made, vehicles=(spec,), batch=int(rng.choice([1, 1, 3])), max_steps=25)

    def _worsen(self) -> None:
        """Have the weather change now and then."""
        rng, weather = self.rng, self.weather
        weather.lost = float(rng.choice([0.0, 0.0, 0.1, 0.5, 0.9]))
        weather.late_s = float(rng.choice([0.0, 0.0, 2.0, 10.0]))
        weather.twice = float(rng.choice([0.0, 0.2]))
        if rng.random() < 0.2 and self.link.wires:
            wire = self.link.wires[-1]
            wire.cut = True
            self.clock.after(float(rng.uniform(1.0, 15.0)), lambda: self._mend(wire))
        self.next = self.clock.now_s() + float(rng.uniform(5.0, 40.0))

    def _mend(self, wire: BadWire) -> None:
        if wire.alive:
            wire.cut = False
            wire.hear(Reconnected())

    def run(self, file: Path) -> Verdict:
        """Run the mission to its end, from death to death, and at last over a good link."""
        verdict, self.next = Verdict(), 0.0
        self.clock.meanwhile.append(self._turn)
        for attempt in range(40):
            fine = attempt >= 12
            self.storm = not fine
            if fine:
                self.weather.lost = self.weather.late_s = self.weather.twice = 0.0
            self.dies_s = math.inf
            if verdict.kills < self.deaths and not fine:
                self.dies_s = self.clock.now_s() + float(self.rng.exponential(40.0))
            try:
                result = self._live(file)
            except KilledError:
                verdict.kills += 1
            except VehicleError:
                pass
            else:
                if self._is_home or (fine and attempt > 20):
                    break
            for wire in self.link.wires:
                wire.close()
            self.dies_s = math.inf
            self.clock.sleep(float(self.rng.uniform(0.0, 20.0)))
        else:
            verdict.problems.append("the run did not come to an end")
            return verdict
        self._judge(result, verdict)
        return verdict

    def _turn(self) -> None:
        if self.clock.now_s() >= self.dies_s:
            raise KilledError
        if self.storm and self.clock.now_s() >= self.next:
            self._worsen()

    def _live(self, file: Path) -> Result:
        """Run or resume the mission in one process."""
        known = file.exists()
        about = {"vehicles": [{"session": "s"}]}
        with Record(file) if known else Record.create(file, "run", about) as record:
            vehicle = Remote(self.mission, 0, self.link, self.settings, "s", self.clock)
            if known:
                return resume(self.mission, record, [vehicle], away_s=0.0)
            return run(self.mission, [vehicle], record)

    @property
    def _is_home(self) -> bool:
        return bool(np.allclose(self.robot.position, self.spec.home, atol=1e-6))

    def _judge(self, result: Result, verdict: Verdict) -> None:
        seen = [event for event in result.observations if isinstance(event, Observation)]
        queries = {order.id: order for order in result.queries if isinstance(order, Query)}
        parts = Counter((event.order, event.part) for event in seen if len(event.values))
        verdict.problems += [f"{key} counts {n} times" for key, n in parts.items() if n > 1]
        for event in seen:
            for site, value in zip(event.sites, event.values, strict=True):
                if math.isnan(value) or event.order not in queries:
                    continue
                verdict.readings += 1
                taken = self._taken(event.order)
                if not any(np.allclose(at, site, atol=1e-5) and abs(v - value) < 1e-9 for at, v in taken):
                    verdict.problems.append(f"{event.order}: {value:.6g} at {site}, but it took {taken}")
        most = max([*self.robot.all_spent, self.robot.spent])
        if most > self.spec.battery + 1e-6:
            verdict.problems.append(f"it spent {most:.4f} of {self.spec.battery}")
        if not self._is_home:
            verdict.problems.append(f"it was left at {self.robot.position}: {result.end_reason}")

    def _taken(self, order: str) -> list[tuple[np.ndarray, float]]:
        """Return what the robot read for an order; for any, if it does not say for which it reads."""
        if self.link.reports:
            return self.robot.read.get(order, [])
        return [reading for readings in self.robot.read.values() for reading in readings]


def _wired(kind):
    class Bad(kind):
        def open(self, mission, ground, hear):
            if self.wires:  # the robot was alone
                self.robot.clock.meanwhile.remove(self.robot.tick)
            self.wires.append(BadWire(self, hear))
            return self.wires[-1]

    return Bad


def tried(seed: int) -> tuple[int, Verdict]:
    """Return a seed, and what became of its mission."""
    with TemporaryDirectory() as folder:
        return seed, BadRobot(seed).run(Path(folder) / "run.sqlite")


def main() -> int:
    """Run the missions, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--missions", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="seed of the first one")
    parser.add_argument("--only", type=int, help="run only the mission of this seed")
    parser.add_argument("--processes", type=int, default=2, help="how many at a time")
    args = parser.parse_args()
    seeds = range(args.first, args.first + args.missions) if args.only is None else [args.only]
    count = Counter()
    with ProcessPoolExecutor(args.processes, mp_context=get_context("spawn")) as pool:
        for seed, verdict in pool.map(tried, seeds):
            count.update(missions=1, kills=verdict.kills, readings=verdict.readings)
            count["wrong"] += bool(verdict.problems)
            for problem in verdict.problems:
                print(f"{seed}: {problem}", flush=True)
    print(", ".join(f"{count[name]} {name}" for name in ("missions", "kills", "readings", "wrong")))
    return int(count["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main())

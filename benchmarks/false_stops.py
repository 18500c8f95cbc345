"""How often a mission that ends with "question answered" has a wrong answer.

Each rule runs in many random fields, learning its hyperparameters, until the question counts as answered or
150 readings are spent. A stop is wrong if F1 is below 0.95, or the regret above 1% of the range of the
readings. "fit alone" takes policies at their word, as if the fit were the truth; "checked" asks the
belief averaged over hyperparameters; "goal" sets a goal with `[stop]`. For each, print the runs that
stopped, the wrong stops among them, those with F1 0, and the readings taken: mean and standard error.

    python benchmarks/false_stops.py [--runs 60] [--jobs 2] [--only RULE ...]
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from typing import Any

import numpy as np
from interval_coverage import learned

from fieldbo import Agent, Result, load_mission
from fieldbo._numerics.streams import stream
from fieldbo.messages import EndReason, Stop
from fieldbo.mission.rules import StopRule
from fieldbo.runs.comparison import contender

F1, REGRET = 0.95, 0.01
"""What makes an answer right: F1, and regret as a share of the range of the readings."""

READINGS = 150
"""At which a run ends without an answer."""


@dataclass(frozen=True)
class Rule:
    """A mission, the share of sites in its level set, whether claims are checked, and a goal."""

    mission: str
    share: float | None = None
    checked: bool = True
    goal: StopRule = StopRule()  # noqa: RUF009 - it is frozen


F1_GOAL = StopRule(expected_f1=F1)

RULES = {
    "GCHK per cost, upper 2%, fit alone": Rule("gp-lake with gchk,per_cost=true", 0.02, checked=False),
    "GCHK per cost, upper 2%, checked": Rule("gp-lake with gchk,per_cost=true", 0.02),
    "TruVaR, upper 2%, fit alone": Rule("gp-lake", 0.02, checked=False),
    "TruVaR, upper 2%, checked": Rule("gp-lake", 0.02),
    "straddle per cost, upper 2%, goal": Rule("gp-lake with straddle,per_cost=true", 0.02, goal=F1_GOAL),
    "straddle per cost, upper 30%, goal": Rule("gp-lake with straddle,per_cost=true", 0.3, goal=F1_GOAL),
    "TruVaR, maximum, fit alone": Rule("gp-lake-optimum with truvar", checked=False),
    "TruVaR, maximum, checked": Rule("gp-lake-optimum with truvar"),
    "EI per cost, maximum, goal": Rule("gp-lake-optimum", goal=StopRule(regret=REGRET)),
}


@dataclass(frozen=True)
class Ending:
    """How a run ended."""

    stopped: bool
    wrong: bool
    nothing: bool
    readings: int


def ending(name: str, run: int) -> Ending:
    """Run a rule in field number `run`."""
    rule = RULES[name]
    keys: dict[str, Any] = {"agent": {"battery": 1e9, "max_steps": READINGS}, "draw": run, "seed": run}
    if rule.share is not None:
        keys["question"] = {"threshold": {"quantile": 1.0 - rule.share}}
    mission = learned(load_mission(*contender(rule.mission, keys)), average=rule.checked)
    agent, rng = Agent(replace(mission, stop=rule.goal)), stream(run, "sensor")
    world, answered = mission.world, False
    while agent.readings < READINGS:
        while (fitted := agent.refit()) is not None:
            agent.tell(fitted)
        order = agent.ask()
        if isinstance(order, Stop):
            answered = order.reason is EndReason.QUESTION_ANSWERED
            break
        noise = world.sensor.variance(order.site[None])
        value = world.truth(order.site[None]) + np.sqrt(noise) * rng.standard_normal(1)
        agent.tell(order.observed(value, noise_variance=noise))
    result = Result.of(agent)
    if result.f1 is not None:
        return Ending(answered, result.f1 < F1, result.f1 == 0.0, agent.readings)
    assert result.regret is not None
    return Ending(answered, result.regret > REGRET * float(np.ptp(result.values)), False, agent.readings)


def row(name: str, endings: Sequence[Ending]) -> str:
    """Return a line of the table, in Markdown."""
    stopped = [e for e in endings if e.stopped]
    wrong, nothing = sum(e.wrong for e in stopped), sum(e.nothing for e in stopped)
    taken = np.array([e.readings for e in endings], dtype=float)
    error = taken.std(ddof=1) / np.sqrt(len(taken)) if len(taken) > 1 else np.nan
    counts = f"{len(stopped)} of {len(endings)} | {wrong} | {nothing}"
    return f"| {name} | {counts} | {taken.mean():.0f} ± {error:.0f} |"


def main() -> None:
    """Run all rules and print the table."""
    parser = argparse.ArgumentParser(description="How often missions stop with a wrong answer.")
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=[*RULES], default=[*RULES], metavar="RULE")
    arguments = parser.parse_args()
    os.environ["NUMBA_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # one process per core
    print("| rule | stopped | wrong | of these F1 0 | readings |")
    print("|---" * 5 + "|")
    with ProcessPoolExecutor(arguments.jobs, get_context("spawn")) as pool:
        for name in arguments.only:
            print(row(name, [*pool.map(partial(ending, name), range(arguments.runs))]), flush=True)


if __name__ == "__main__":
    main()

"""A whole simulated mission: TruVaR over 2,500 sites with known hyperparameters, 100 steps."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
from timing import Plan, Row, alternate, peer, timed
from truvar import Updating

import fieldbo

STEPS = 100


def load() -> fieldbo.Mission:
    """Return the mission: each sample costs one, so that the battery lasts for every step."""
    return fieldbo.load_mission(
        "gp-lake", {"world": "gp-lake-unit-cost", "agent": {"max_steps": STEPS, "battery": 10 * STEPS}}
    )


def seconds() -> float:
    """Return the time of a run from the first order to the result, without loading."""
    mission = load()
    return timed(lambda: fieldbo.run(mission))[0]


def recorded_seconds() -> float:
    """Return the same with a record of every order and event."""
    mission = load()
    with (
        tempfile.TemporaryDirectory() as folder,
        fieldbo.Record.create(Path(folder) / "run.sqlite", "benchmark-1", {}) as record,
    ):
        return timed(lambda: fieldbo.run(mission, record=record))[0]


def plain(name: str, plan: Plan) -> list[Row]:
    """Time a run without a record; the peer is the algorithm as printed, with the same readings.

    The other one is a bound: the covariances of all sites, read from memory and written at each step.
    """
    mission = load()
    result = fieldbo.run(mission)  # the first compiles
    runs = plan.runs or 5
    if not plan.peers:
        return alternate(runs, seconds, {}).rows(name, plan)
    sites = mission.world.domain.sites
    x = np.concatenate([o.sites for o in result.observations])
    chosen = np.array([np.flatnonzero((sites == site).all(axis=1))[0] for site in x])
    data = {
        "sites": sites,
        "chosen": chosen,
        "y": np.concatenate([o.values for o in result.observations]),
        "noise": np.concatenate([o.noise_variances for o in result.observations]),
        "length_scales": result.hyperparameters.kernel.length_scales,
        "threshold": result.answer.threshold,
    }
    traffic = Updating(STEPS * 4 * len(sites) ** 2)
    with peer("literal_truvar", data, plan.threads, sys.executable) as literal:
        same = int(np.sum(literal.answer == chosen))
        peers = {"literal numpy": literal.seconds, "memory traffic": traffic.seconds}
        timings = alternate(runs, seconds, peers)
    return timings.rows(name, plan, {"literal numpy": f"{same} of {len(chosen)} choices agree"})


def recorded(name: str, plan: Plan) -> list[Row]:
    """Time a run with a record, on disk before each order is issued; there is no peer."""
    recorded_seconds()
    return alternate(plan.runs or 5, recorded_seconds, {}).rows(name, plan)

"""A long run's record: resuming from it, and following it while it grows.

``resume-1000`` is a level-set mission with the policy ``random`` and a fit every 100 readings, so that its
own decisions take little; the peer is the run itself. ``follow-1000`` reads one new row of telemetry after
1,000; the peer reads the whole record.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from time import process_time

import numpy as np
from timing import Plan, Row, Timings, timed

import fieldbo
from fieldbo.messages import Telemetry
from fieldbo.record.record import Tail
from fieldbo.runs.state import RunState

READINGS = 1000


def load() -> fieldbo.Mission:
    """Return a mission that takes 1,000 readings and does not stop before."""
    overrides = {
        "agent": {"battery": 400_000, "max_steps": READINGS},
        "policy": {"kind": "random"},
        "model": {"learn": {"every": 100}},
        "stop": {"expected_f1": 0.999999},
    }
    return fieldbo.load_mission("lake-level-set", overrides)


def resumed(name: str, plan: Plan) -> list[Row]:
    """Time a resume up to its first decision, and the run that it continues, in processor time."""
    mission = load()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run.sqlite"
        began = process_time()
        with fieldbo.Record.create(file, "benchmark-1", {}) as record:
            fieldbo.run(mission, record=record)
        took = process_time() - began
        rows = fieldbo.Record(file).rows()
        rows = rows[: max(n for n, row in enumerate(rows) if row.kind == "query")]  # before the last decision
        own = []
        for _ in range(plan.runs or 3):
            began = process_time()
            state = RunState(mission, "benchmark-1")
            state.replay(rows)
            _ = state.agent.stated.surface.mean, state.agent.surface.mean
            own.append(process_time() - began)
    return Timings(own, {"the run": [took]} if plan.peers else {}).rows(name, plan)


def followed(name: str, plan: Plan) -> list[Row]:
    """Time the next row of telemetry after 1,000, and a reading of the whole record."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run.sqlite"
        with fieldbo.Record.create(file, "benchmark-1", {}) as record:
            record.events(heard(k) for k in range(READINGS))
            tail = Tail(file)
            tail.new_rows()
            own, whole = [], []
            for k in range(plan.runs or 200):
                record.event(heard(READINGS + k))
                own.append(timed(tail.new_rows)[0])
                if k % 20 == 0:
                    whole.append(timed(lambda: fieldbo.Record(file).rows())[0])
    return Timings(own, {"the whole record": whole} if plan.peers else {}).rows(name, plan)


def heard(k: int) -> Telemetry:
    """Return telemetry every five seconds."""
    return Telemetry(0, np.array([float(k), 2.0]), 400_000.0 - k, 5.0 * k)

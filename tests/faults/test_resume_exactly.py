"""A resumed run is the same to the last bit, with a tenth of the memory and on one thread."""

import many_worlds
import numba
import numpy as np
import pytest
from test_recharged_worlds import _copy as copied
from tiers import seed_blocks

import fieldbo
from fieldbo.belief import lookahead
from fieldbo.record.record import Record
from fieldbo.record.store import ORDERS
from fieldbo.runs.loop import Interrupted
from fieldbo.runs.runner import resume, run

LARGE = {
    "lake-level-set": {"agent": {"battery": 700}},
    "spit-lake-map": {"agent": {"battery": 2000}},
    "gp-lake": {"agent": {"battery": 300}, "policy": {"kind": "eavc", "per_cost": True}},
    "gp-lake-optimum": {"agent": {"battery": 300}, "policy": {"kind": "search-tour"}},
    "gp-lake-batch": {"agent": {"battery": 500}},
    "wall-worst-crack": {"agent": {"battery": 8}},
}
STEPS = 25


@pytest.fixture
def poorer(monkeypatch):
    """Return a function after whose call nothing is kept, and loops run on one thread."""
    threads = numba.get_num_threads()

    def make_poor():
        monkeypatch.setattr(lookahead, "free_bytes", lambda: 0.0)
        numba.set_num_threads(1)

    yield make_poor
    numba.set_num_threads(threads)


def said(record):
    return [(row.kind, row.order, row.body) for row in record.rows()]


def told(mission, file, rows=()):
    """Run a mission, or resume one from some rows on, for a number of steps; return its log."""
    steps = 0

    def count(_):
        nonlocal steps
        steps += 1
        if steps >= STEPS:
            raise KeyboardInterrupt

    with Record.create(file, "run", {"mission": "any"}) as record:
        try:
            if rows:
                copied(rows, record)
                resume(mission, record, on_step=count)
            else:
                run(mission, record=record, on_step=count)
        except Interrupted:
            pass
        return said(record), record.rows()


def first_difference(mission, folder, cuts, poorer):
    """Return where a run that is killed after some rows goes on differently; None if nowhere.

    `cuts` are parts of the log.
    """
    log, rows = told(mission, folder / "whole.sqlite")
    poorer()
    for n, part in enumerate(cuts):
        cut = 1 + int(part * (len(rows) - 2))
        while cut < len(rows) and rows[cut].kind in ORDERS and rows[cut - 1].kind in ORDERS:
            cut += 1  # a batch is written at once
        again, _ = told(mission, folder / f"{n}.sqlite", rows[:cut])
        for k, (one, other) in enumerate(zip(log, again, strict=False)):
            if one != other:
                return f"killed after row {cut}, row {k} is {other}, not {one}"
    return None


@pytest.mark.parametrize("seeds", seed_blocks(300, 50, today=6), indirect=True)
def test_random_missions_of_all_policies_go_on_the_same(tmp_path, seeds, poorer, monkeypatch):
    wrong = {}
    for seed in seeds:
        monkeypatch.undo()
        (folder := tmp_path / str(seed)).mkdir()
        mission, cuts = many_worlds.mission_of(seed), np.random.default_rng([seed, 3]).random(2)
        if (what := first_difference(mission, folder, cuts, poorer)) is not None:
            wrong[seed] = f"{mission.policy_kind}: {what}"

    assert wrong == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_missions_with_many_sites_go_on_the_same(tmp_path, name, poorer):
    mission = fieldbo.load_mission(name, LARGE[name])

    assert first_difference(mission, tmp_path, (0.3, 0.6, 0.9), poorer) is None

"""Random worlds with several batteries: none is overdrawn, and every change happens at home, in time.

python tests/test_recharged_worlds.py --worlds 5000
"""

from __future__ import annotations

import argparse
import math
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import many_worlds
import numpy as np
import pytest

from fieldbo.errors import InputError
from fieldbo.messages import GoHome, Query, Recharge
from fieldbo.mission.vehicle_spec import Recharging
from fieldbo.runs.record.record import Record
from fieldbo.runs.record.rows import ORDERS
from fieldbo.runs.runner import resume, run
from fieldbo.runs.state import RunState

BLOCK = 50
SLACK = many_worlds.SLACK


def mission_of(seed):
    """Return a random mission with a home and 2 to 4 batteries; None if the draw does not fit together."""
    mission, rng = many_worlds.mission_of(seed), np.random.default_rng([seed, 1])
    spec, cost = mission.vehicles[0], mission.world.cost
    home = mission.world.start if spec.home is None else spec.home
    trip_s = float(cost.travel_s(spec.start, home[None])[0])
    takes_s = float(rng.choice([0.0, 1.0, 5.0])) * max(trip_s, 1.0)
    limit_s = (
        None if spec.time_limit_s is None else float(rng.uniform(1.0, 6.0)) * (spec.time_limit_s + takes_s)
    )
    try:
        spec = replace(
            spec,
            home=home,
            time_limit_s=limit_s,
            recharge=Recharging(takes_s=takes_s, batteries=int(rng.integers(2, 5))),
        )
        return replace(mission, vehicles=(spec,), max_steps=int(rng.integers(4, 25)))
    except InputError:  # the battery is not enough for the trip to this home
        return None


def wrong_with(mission, result):
    """Return what is wrong with a run of several batteries."""
    spec, account, wrong = mission.vehicles[0], result.accounts[0], []
    spent, issued = {}, {}
    for order, entry, _ in account.lines:
        number = account.battery_of[order.id]
        issued[order.id] = order
        spent.setdefault(number, []).append(0.0 if math.isnan(entry.spent) else entry.spent)
    for number, charges in spent.items():
        if math.fsum(charges) > spec.battery - spec.reserve + SLACK * spec.battery:
            wrong.append(
                f"battery {number} overdrawn: {math.fsum(charges)} of {spec.battery} - {spec.reserve}"
            )
    if abs(math.fsum(c for charges in spent.values() for c in charges) - result.cost) > SLACK * spec.capacity:
        wrong.append("the total is not the sum over batteries")
    if not np.array_equal(result.path[-1], spec.home):
        wrong.append(f"ends at {result.path[-1]}, home is {spec.home}")
    if spec.time_limit_s is not None and account.time_s > spec.time_limit_s * (1 + SLACK):
        wrong.append(f"{account.time_s} of {spec.time_limit_s} s")
    changes = [order for order in issued.values() if isinstance(order, Recharge)]
    if [order.battery for order in changes] != list(range(2, account.batteries_used + 1)):
        wrong.append("the batteries were not changed one by one")
    if account.batteries_used > spec.batteries:
        wrong.append(f"{account.batteries_used} of {spec.batteries} batteries used")
    present = 1
    for event in result.observations:
        order = issued[event.order]
        if isinstance(order, Recharge):
            present = order.battery
            if not np.array_equal(event.position, spec.home):
                wrong.append(f"battery {order.battery} came at {event.position}")
        elif account.battery_of[event.order] != present:
            wrong.append(f"{event.order} counts for battery {account.battery_of[event.order]}, not {present}")
    header, rows = result.readings()
    if rows and [row[header.index("battery")] for row in rows] != [
        account.battery_of[row[0]] for row in rows
    ]:
        wrong.append("a reading names another battery")
    return wrong + [f"{kind}: {leg}" for kind, leg in _legs(mission, result)]


def _legs(mission, result):
    return [
        ("leg through an obstacle", leg) for leg in many_worlds.crossings(mission.world.domain, result.path)
    ]


def orders_of(state):
    """Return the orders of a run in a form that can be compared."""
    return [
        (type(i.order).__name__, i.order.id, None if i.order.site is None else i.order.site.tolist())
        for i in state.agent.issued.values()
    ]


def recorded(mission, folder, rows=None):
    """Run a mission with a record, from some rows on if given; return the result and the rows."""
    folder.mkdir()
    with Record.create(folder / "run.sqlite", "run", {"mission": "random"}) as record:
        if rows is None:
            result = run(mission, record=record)
        else:
            _copy(rows, record)
            result = resume(mission, record)
        return result, record.rows()


def _copy(rows, record):
    for row in rows:
        record._append([(row.kind, row.order, row.body.get("message", {}).get("part"), row.body)])


def tried(seed, folder):
    """Return what is wrong with a random mission, and how many batteries it used; None without a mission."""
    if (mission := mission_of(seed)) is None:
        return None
    result, rows = recorded(mission, folder / f"{seed}")
    wrong = wrong_with(mission, result)
    live, replayed = RunState(mission, "run", scored=False), RunState(mission, "run", scored=False)
    live.replay(rows)
    replayed.replay(rows)
    if (live.agent.spent, orders_of(live)) != (result.cost, _orders(rows)):
        wrong.append(f"a replay differs: {live.agent.spent} {result.cost}")
    cut = int(np.random.default_rng([seed, 2]).integers(1, len(rows)))
    while rows[cut].kind in ORDERS and rows[cut - 1].kind in ORDERS:  # a batch is written at once
        cut += 1
    again, its_rows = recorded(mission, folder / f"{seed}-cut", rows[:cut])
    if _said(its_rows) != _said(rows) or again.cost != result.cost:
        wrong.append(f"killed after row {cut} of {len(rows)}, it goes on differently")
    return wrong, result.accounts[0].batteries_used


def _orders(rows):
    kinds = {"query": Query, "go-home": GoHome, "recharge": Recharge}
    return [(kinds[r.kind].__name__, r.order, r.message.site.tolist()) for r in rows if r.kind in kinds]


def _said(rows):
    """Return orders and events; scores in `why` may differ in the last digits of a 32-bit number."""
    return [(row.kind, row.order, row.body.get("message")) for row in rows]


@pytest.mark.parametrize("first", range(0, 500, BLOCK))
def test_no_battery_is_overdrawn_and_all_are_changed_at_home(tmp_path, first):
    wrong, used = {}, []
    for seed in range(first, first + BLOCK):
        if (found := tried(seed, tmp_path)) is not None:
            wrong |= {seed: found[0]} if found[0] else {}
            used.append(found[1])

    assert wrong == {}
    assert len(used) > BLOCK / 2
    assert max(used) > 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--worlds", type=int, default=5000)
    parser.add_argument("--first", type=int, default=0)
    args, counts = parser.parse_args(), {}
    for seed in range(args.first, args.first + args.worlds):
        with TemporaryDirectory() as folder:
            found = tried(seed, Path(folder))
        if found is None:
            continue
        counts[found[1]] = counts.get(found[1], 0) + 1
        for fault in found[0]:
            print(f"seed {seed}: {fault}", flush=True)
    print("worlds by batteries used:", dict(sorted(counts.items())))


if __name__ == "__main__":
    main()

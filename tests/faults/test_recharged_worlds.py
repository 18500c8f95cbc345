"""Random worlds with several batteries: none is overdrawn, and every change happens at home, in time.

python tests/faults/test_recharged_worlds.py --worlds 5000
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
from random_commands import commands_for
from tiers import seed_blocks
from underway import steered

from fieldbo.errors import InputError
from fieldbo.messages import Recharge
from fieldbo.mission.vehicle_spec import Recharging
from fieldbo.record.record import Record
from fieldbo.record.store import ORDERS
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
    if not np.array_equal(result.path[-1], spec.home):
        wrong.append(f"ends at {result.path[-1]}, home is {spec.home}")
    if spec.time_limit_s is not None and account.time_s > spec.time_limit_s * (1 + SLACK):
        wrong.append(f"{account.time_s} of {spec.time_limit_s} s")
    return [*wrong, *_overdrawn(spec, result), *_wrong_numbers(spec, result), *_legs(mission, result)]


def _overdrawn(spec, result):
    """Yield each battery that was overdrawn, and a total that is not that of all batteries."""
    account, spent = result.accounts[0], {}
    for order, entry, _ in account.lines:
        cost = 0.0 if math.isnan(entry.spent) else entry.spent
        spent.setdefault(account.battery_of[order.id], []).append(cost)
    for number, charges in spent.items():
        if math.fsum(charges) > spec.battery - spec.reserve + SLACK * spec.battery:
            yield f"battery {number} overdrawn: {math.fsum(charges)} of {spec.battery} - {spec.reserve}"
    if abs(math.fsum(c for charges in spent.values() for c in charges) - result.cost) > SLACK * spec.capacity:
        yield "the total is not the sum over batteries"


def _wrong_numbers(spec, result):
    """Yield batteries that were not changed at home one by one, and orders or readings that name another."""
    account, present = result.accounts[0], 1
    issued = {order.id: order for order, _, _ in account.lines}
    done = [issued[event.order] for event in result.observations if event.complete]
    changes = [order.battery for order in done if isinstance(order, Recharge)]
    if changes != list(range(2, account.batteries_used + 1)) or account.batteries_used > spec.batteries:
        yield f"batteries {changes} of {spec.batteries}"
    for event in result.observations:
        order = issued[event.order]
        if isinstance(order, Recharge):
            present = order.battery if event.complete else present
            if not np.array_equal(event.position, spec.home):
                yield f"battery {order.battery} came at {event.position}"
        elif account.battery_of[event.order] != present:
            yield f"{event.order} counts for battery {account.battery_of[event.order]}, not {present}"
    header, rows = result.readings()
    column = header.index("battery")
    if [row[column] for row in rows] != [account.battery_of[row[0]] for row in rows]:
        yield "a reading names another battery"


def _legs(mission, result):
    return [f"{leg}, through an obstacle" for leg in many_worlds.crossings(mission.world.domain, result.path)]


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


def tried(seed, folder, again=True):
    """Return what is wrong with a random mission, and how many batteries it used; None without a mission.

    With `again`, also replay its record, and resume it as if the process had died after some row.
    """
    if (mission := mission_of(seed)) is None:
        return None
    if not again:
        result = run(mission)
        return wrong_with(mission, result), result.accounts[0].batteries_used
    result, rows = recorded(mission, folder / f"{seed}")
    wrong = wrong_with(mission, result)
    wrong += _wrong_again(mission, result, rows, folder / f"{seed}-cut", np.random.default_rng([seed, 2]))
    return wrong, result.accounts[0].batteries_used


def _wrong_again(mission, result, rows, folder, rng):
    """Yield what differs if a run is replayed, or killed after some row and resumed in a folder."""
    replayed = RunState(mission, "run")
    replayed.replay(rows)
    again, entries = replayed.result(), result.accounts[0].lines
    if (again.cost, repr(again.accounts[0].lines)) != (result.cost, repr(entries)):
        yield f"a replay differs: {again.cost} {result.cost}"
    cut = int(rng.integers(1, len(rows)))
    while rows[cut].kind in ORDERS and rows[cut - 1].kind in ORDERS:  # a batch is written at once
        cut += 1
    again, its_rows = recorded(mission, folder, rows[:cut])
    if _said(its_rows) != _said(rows) or again.cost != result.cost:
        yield f"killed after row {cut} of {len(rows)}, it continues differently"


def _said(rows):
    """Return the content of rows without their times."""
    return [(row.kind, row.order, row.body) for row in rows]


@pytest.mark.parametrize("seeds", seed_blocks(500, BLOCK, today=3), indirect=True)
def test_no_battery_is_overdrawn_and_all_are_changed_at_home(tmp_path, seeds):
    wrong, used = {}, []
    for seed in seeds:
        if (found := tried(seed, tmp_path, again=seed % 5 == 0)) is not None:
            wrong |= {seed: found[0]} if found[0] else {}
            used.append(found[1])

    assert wrong == {}
    if len(seeds) == BLOCK:
        assert len(used) > BLOCK / 2
        assert max(used) > 1


@pytest.mark.parametrize("seeds", seed_blocks(120, 40, today=3), indirect=True)
def test_commands_leave_every_battery_enough_for_the_trip_home(tmp_path, seeds):
    wrong, used = {}, []
    for seed in seeds:
        if (mission := mission_of(seed)) is None:
            continue
        (folder := tmp_path / f"{seed}").mkdir()
        rng = np.random.default_rng(seed)
        given = commands_for(mission, rng)
        result, _, rows = steered(mission, folder, given, polls=int(rng.integers(1, 5)), seed=seed)
        found = [fault for fault in wrong_with(mission, result) if "through an obstacle" not in fault]
        found += ["it did not end"] if result.end_reason is None else []
        replayed = RunState(mission, "run")
        replayed.replay(rows)
        if repr(replayed.result().accounts[0].lines) != repr(result.accounts[0].lines):
            found.append("a replay differs")
        wrong |= {seed: found} if found else {}
        used.append(result.accounts[0].batteries_used)

    assert wrong == {}
    assert len(seeds) < 40 or max(used) > 1


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

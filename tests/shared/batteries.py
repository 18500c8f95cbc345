"""Small missions with several batteries, and what their runs used of each."""

import math
from dataclasses import replace

import numpy as np

from fieldbo.mission.vehicle_spec import Recharging
from fieldbo.policies.baselines import Random
from fieldbo.testing import small_mission

HOME = np.zeros(2)


def mission_with(batteries=3, policy=None, *, takes_s=100.0, battery=12.0, **changes):
    """Return a small mission with several batteries; `changes` are of the vehicle."""
    mission = small_mission(Random() if policy is None else policy, battery=battery)
    recharge = Recharging(takes_s=takes_s, batteries=batteries)
    spec = replace(mission.vehicles[0], recharge=recharge, **changes)
    return replace(mission, vehicles=(spec,))


def kinds_of(result):
    return [type(order) for order, _, _ in result.accounts[0].lines]


def spent_by_battery(result):
    account = result.accounts[0]
    spent = {}
    for order, entry, _ in account.lines:
        spent.setdefault(account.battery_of[order.id], []).append(entry.spent)
    return {number: math.fsum(charges) for number, charges in spent.items()}

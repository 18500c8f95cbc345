"""Runs of small factory cells: a chain of modules, or control sets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np

import fieldbo
from fieldbo.belief.model import Model
from fieldbo.belief.question import Optimum
from fieldbo.costs.cells import Modular, Module, Subset
from fieldbo.domain.axes import Axis
from fieldbo.domain.controls import Controls, ControlSet, Uniform
from fieldbo.domain.domain import Domain
from fieldbo.domain.sensor import Sensor
from fieldbo.messages import Query
from fieldbo.mission.mission import Mission
from fieldbo.mission.vehicle_spec import VehicleSpec
from fieldbo.policies.contract import Decision, Policy
from fieldbo.world.fields.base import Field
from fieldbo.world.world import Quantity, World


class Hill(Field):
    """Highest at 0.3 on every axis."""

    def values(self, sites, time_s=0.0):
        return np.exp(-np.sum((sites - 0.3) ** 2, axis=1))


@dataclass(frozen=True)
class InTurn(Policy):
    """Plays the control sets in turn, or changes the axes in turn, from the last one on."""

    leaves_free = True

    def suggest(self, state, memory):
        n, d = len(state.orders), state.domain.dimension
        drawn = state.rng.random(d)
        sets = state.domain.control_sets
        if sets:
            return Decision(Query(drawn, sets[n % len(sets)].controls))
        kept = np.arange(d) < d - 1 - n % d
        return Decision(Query(np.where(kept, state.position, drawn)))


def axes_of(d):
    return [Axis(f"x{k + 1}", "mmol/L" if k == 0 else "", 0, 1) for k in range(d)]


def modules(d):
    names = [a.name for a in axes_of(d)]
    if d == 1:
        return (Module("only", tuple(names), 2.0),)
    return (Module("mix", tuple(names[: d // 2]), 40.0), Module("bake", tuple(names[d // 2 :]), 1.0))


def sets(d):
    axes = axes_of(d)
    names = [a.name for a in axes]
    some = [names] if d == 1 else [names[: d // 2], names[d // 2 :], names]
    return tuple(ControlSet.of(one, axes, "control_sets") for one in some)


@cache
def cell_run(kind, d, question=None, orders=12, **settings):
    axes = axes_of(d)
    control_sets = sets(d) if kind == "sets" else ()
    controls = Controls(control_sets, (Uniform(),) * d) if control_sets else None
    costs = {
        "chain": Modular(modules=modules(d)),
        "sets": Subset(costs=(0.01, 0.1, 1.0)[-len(control_sets) :]),
    }
    world = World(
        "cell",
        "A cell",
        Domain.box(axes, 64, controls=controls),
        costs[kind],
        "EUR",
        Sensor(0.01),
        Quantity("yield", "g"),
        Hill(),
    )
    model = Model(length_scales=(0.5,) * d, learn=False)
    settings = {"initial": 1, "max_steps": orders, "battery": 500.0} | settings
    crew = (VehicleSpec(settings.pop("battery"), world.start),)
    return fieldbo.run(Mission("cell", world, question or Optimum(), InTurn(), model, crew, **settings))


@cache
def live_cell(result):
    nothing = dict.fromkeys(
        ("regret", "best_regret", "movement_regret", "simple_regret", "coverage90"), np.nan
    )
    nothing |= dict.fromkeys(("last_play_value", "quality_regret", "cost_regret", "f1"), np.nan)
    world = replace(result.mission.world, field=None)
    curve = tuple(replace(s, **nothing) for s in result.curve)
    return replace(result, mission=replace(result.mission, world=world), curve=curve)

"""
Build a world in Python
=======================

Describe a world and a mission without any file, and compare three policies on it.
"""

import numpy as np

from fieldbo import Mission, World, run
from fieldbo.belief.model import Model
from fieldbo.belief.question import LevelSet
from fieldbo.costs.euclidean import Euclidean
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.sensor import Sensor
from fieldbo.mission.vehicle_spec import VehicleSpec
from fieldbo.policies.level_set.rivals import GCHK
from fieldbo.policies.level_set.truvar import TruVaR
from fieldbo.world.fields.gp_draw import GPDraw
from fieldbo.world.world import Quantity

pond = Domain.grid([Axis("east", "m", 0, 100), Axis("north", "m", 0, 100)], (30, 30))
world = World(
    name="pond",
    title="A pond",
    domain=pond,
    cost=Euclidean(rate=1.0, sampling=10.0),
    cost_unit="s",
    sensor=Sensor(noise_sd=0.01),
    quantity=Quantity("nitrate", "umol L-1"),
    field=GPDraw(length_scales=(20, 20)).make(pond, draw=3),
)
for policy in (TruVaR(), GCHK(), GCHK(per_cost=True)):
    mission = Mission(
        name="pond",
        world=world,
        question=LevelSet(0.5),
        policy=policy,
        model=Model(learn=False, length_scales=(20, 20), mean=0.0),
        vehicles=(VehicleSpec(battery=1200, start=np.array([0.0, 0.0]), home=np.array([0.0, 0.0])),),
    )
    result = run(mission)
    print(f"{policy}: F1 {result.f1:.3f} for {result.cost:.0f} s, {result.end_reason}")

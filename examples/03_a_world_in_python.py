"""
Build a world in Python
=======================

Describe a world and a mission without any file, and compare three policies in it.
"""

import fieldbo
from fieldbo import belief, costs, domain, mission, policies, world

square = domain.Domain.grid([domain.Axis("east", "m", 0, 100), domain.Axis("north", "m", 0, 100)], (30, 30))
pond = fieldbo.World(
    name="pond",
    title="A pond",
    domain=square,
    cost=costs.Euclidean(rate=1.0, sampling=10.0),
    cost_unit="s",
    sensor=domain.Sensor(noise_sd=0.01),
    quantity=world.Quantity("nitrate", "umol L-1"),
    field=world.GPDraw(length_scales=(20, 20)).make(square, draw=3, folder=None),
)
for policy in (policies.TruVaR(), policies.GCHK(), policies.GCHK(per_cost=True)):
    result = fieldbo.run(
        fieldbo.Mission(
            name="pond",
            world=pond,
            question=belief.LevelSet(0.5),
            policy=policy,
            model=belief.Model(learn=False, length_scales=(20, 20), mean=0.0),
            vehicles=(mission.VehicleSpec(battery=1200, start=square.low, home=square.low),),
        )
    )
    print(f"{policy}: F1 {result.f1:.3f} for {result.cost:.0f} s, {result.end_reason}")

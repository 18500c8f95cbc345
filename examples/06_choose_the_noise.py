"""
Choose the noise
================

A sensor has three settings, from coarse and cheap to fine and expensive. Count what TruVaR spends on each.
"""

from collections import Counter

import fieldbo

result = fieldbo.run(fieldbo.load_mission("gp-level-noise", {"agent": {"battery": 400}}))
levels = result.mission.world.sensor.levels
for number, count in sorted(Counter(q.level for q in result.queries).items()):
    level = levels[number]
    print(f"noise variance {level.variance:g}: {count} readings for {count * level.cost:g} units")
print(f"F1 {result.f1:.2f}")

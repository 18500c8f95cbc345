"""
Compare two policies
====================

Run two policies from the same start in the same random fields, and draw the mean score against cost.
`fieldbo compare` does this at scale; here are the same numbers in a few lines.
"""

import numpy as np
from matplotlib.figure import Figure

import fieldbo

COSTS = np.linspace(200, 3000, 57)
figure = Figure(figsize=(7, 4), layout="constrained")
axes = figure.subplots()

for per_cost in (True, False):
    policy = {"kind": "straddle", "per_cost": per_cost}
    name = "straddle per cost" if per_cost else "straddle"
    curves = []
    for draw in range(3):
        mission = fieldbo.load_mission(
            "gp-lake", {"policy": policy, "draw": draw, "agent": {"battery": 3000}}
        )
        steps = fieldbo.run(mission).curve
        latest = np.searchsorted([step.cost for step in steps], COSTS, side="right") - 1
        curves.append([steps[n].f1 if n >= 0 else 0.0 for n in latest])
    mean = np.mean(curves, axis=0)
    print(f"{name}: F1 {mean[-1]:.2f} after {COSTS[-1]:.0f} s")
    axes.plot(COSTS, mean, label=name)

axes.set(xlabel="cost (s)", ylabel="F1, mean of 3 fields", ylim=(0, 1))
axes.legend()

"""
Plan a tour of readings
=======================

The policy `tour` plans several readings ahead: a tour that is expected to correct many misclassified sites
per unit of cost. It goes to the first stop, and plans again with what it read there. This draws a plan over
the risk that it is meant to remove.
"""

import numpy as np
from matplotlib.figure import Figure

import fieldbo

mission = fieldbo.load_mission("gp-square")
agent, route = fieldbo.Agent(mission), []
while agent.spent < 300:
    order = agent.ask()
    route.append(order.site)
    tour = (agent.why or {}).get("tour", [])
    agent.tell(order.observed(mission.world.truth(order.site[None])[0], noise_variance=1e-6))

p = agent.surface.exceedance(agent.threshold)
x, y = agent.domain.sites.T
wrong = np.minimum(p, 1 - p).sum()
print(f"{len(route)} readings, {agent.spent:.0f} units: {wrong:.0f} of {len(p)} sites may be wrong")

figure = Figure(figsize=(5.6, 4.6), layout="constrained")
axes = figure.subplots()
risk = axes.tripcolor(x, y, p * (1 - p), cmap="Greys", vmin=0, vmax=0.25, shading="gouraud")
figure.colorbar(risk, label="risk of misclassification, p (1 - p)")
axes.tricontour(x, y, p, levels=[0.5], colors="tab:blue", linewidths=1)
axes.plot(*np.transpose(route), ".-", color="tab:blue", linewidth=0.8, label="read so far")
stops = np.array([route[-1], *(stop["stop"] for stop in tour[1:])])
axes.plot(*stops.T, "o--", color="tab:red", markerfacecolor="none", label="planned")
axes.set(xlabel="x", ylabel="y", aspect="equal")
axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)

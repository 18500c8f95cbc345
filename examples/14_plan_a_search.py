"""
Plan a search for the maximum
=============================

The policy `search-tour` plans several readings ahead: those after which the recommended site is expected to
be best, within what is left of the battery. This draws a plan over the mean of the belief, where hatching
covers what can hardly hold the maximum.
"""

import numpy as np
from matplotlib.figure import Figure

import fieldbo

mission = fieldbo.load_mission("gp-lake-optimum", {"policy": {"kind": "search-tour"}})
agent, route, tour = fieldbo.Agent(mission), [], []
while len(tour) < 10:
    order = agent.ask()
    route.append(order.site)
    tour = (agent.why or {}).get("tour", [])
    agent.tell(order.observed(mission.world.truth(order.site[None])[0], noise_variance=1e-6))

mean, sd = agent.surface.mean, agent.surface.sd
x, y = agent.domain.sites.T
hopeless = mean + 2 * sd < mean.max()
print(f"{len(route)} readings, {agent.spent:.0f} s: {hopeless.sum()} of {len(mean)} sites are hopeless")

figure = Figure(figsize=(6.4, 4.2), layout="constrained")
axes = figure.subplots()
shade = axes.tripcolor(x, y, mean, cmap="Greys", shading="gouraud")
figure.colorbar(shade, label="posterior mean")
axes.tricontourf(x, y, hopeless.astype(float), levels=[0.5, 1.5], colors="none", hatches=["////"])
axes.plot(*np.transpose(route), ".-", color="tab:blue", linewidth=0.8, label="read so far")
stops = np.array([route[-1], *(stop["stop"] for stop in tour[1:])])
axes.plot(*stops.T, "o--", color="tab:red", markerfacecolor="none", label="planned")
axes.set(xlabel="along (m)", ylabel="depth (m)")
axes.invert_yaxis()
axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)

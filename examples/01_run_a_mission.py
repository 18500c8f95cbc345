"""
Run a mission
=============

A boat classifies a lake transect: where is chlorophyll at or above 1.5 mg per cubic metre? Run the shipped
mission from Python with a smaller battery, then look at its score, its path and its maps.
"""

import fieldbo
from fieldbo.results.plot import map_picture, path_picture

mission = fieldbo.load_mission("lake-level-set", {"agent": {"battery": 2000}})
result = fieldbo.run(mission)

print(f"{result.end_reason}: {len(result.values)} readings for {result.cost:.0f} {mission.world.cost_unit}")

# %%
# In simulation the truth is known, so the result has a true F1 score next to the one that the model expects,
# with its 90% interval. On a real lake you only have the second.

expected = result.confidence.f1
print(f"F1 {result.f1:.3f}, expected {expected.value:.3f} ({expected.low:.3f} to {expected.high:.3f})")

# %%
# The path over the true field. Readings crowd along the threshold.

path = path_picture(result)

# %%
# Posterior mean, standard deviation, probability of being above the threshold, and the resulting classes.

maps = map_picture(result)

# %%
# The same maps as a labelled dataset.

print(result.maps()["mean"])

"""
Search a wall
=============

A drone looks for the worst crack in a facade. It pays in watt-hours, flies round windows and a scaffold, and
is back on its dock before the battery is empty. Compare a policy that weighs travel with one that ignores it.
"""

import fieldbo
from fieldbo.results.plot import path_picture

results = {
    kind: fieldbo.run(fieldbo.load_mission("wall-worst-crack", {"policy": {"kind": kind}}))
    for kind in ("dist-ucb", "ei")
}

for name, result in results.items():
    summary, world = result.summary(), result.mission.world
    along, height = summary["reported_site"]
    print(
        f"{name}: {len(result.values)} of {world.domain.size} sites for {result.cost:.1f} {world.cost_unit}"
    )
    print(f"  worst at {along:.1f} m along, {height:.1f} m up; regret {summary['regret']:.2f}")
    print(f"  ends at {result.observations[-1].position.tolist()}: {result.end_reason}")

# %%
# DistUCB sweeps the wall in short moves.

considerate = path_picture(results["dist-ucb"])

# %%
# Expected improvement jumps across it, and reads fewer sites with the same battery.

blind = path_picture(results["ei"])

"""A drone looks for the worst crack in a facade, and is back on its dock before the battery is empty."""

import fieldbo

for name in ("wall-worst-crack", "wall-worst-crack-ei"):
    result = fieldbo.run(fieldbo.load_mission(name))
    told, world = result.summary(), result.mission.world
    along, height = told["reported_site"]
    read, sites = len(result.values), world.domain.size
    print(f"{name}: {read} of {sites} sites read for {result.cost:.1f} {world.cost_unit}")
    print(f"  worst at {along:.1f} m along, {height:.1f} m up; the regret is {told['regret']:.2f}")
    print(f"  ends at {result.observations[-1].position.tolist()}: {result.end_reason}")

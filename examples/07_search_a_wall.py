"""Send a drone to find the worst crack in a facade; it returns to its dock before the battery is empty."""

import fieldbo

for name in ("wall-worst-crack", "wall-worst-crack-ei"):
    result = fieldbo.run(fieldbo.load_mission(name))
    summary, world = result.summary(), result.mission.world
    along, height = summary["reported_site"]
    print(
        f"{name}: {len(result.values)} of {world.domain.size} sites read, {result.cost:.1f} {world.cost_unit}"
    )
    print(f"  worst at {along:.1f} m along, {height:.1f} m up; regret {summary['regret']:.2f}")
    print(f"  ends at {result.observations[-1].position.tolist()}: {result.end_reason}")

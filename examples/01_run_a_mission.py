"""Run a shipped mission from Python, and look at what came of it."""

import fieldbo

mission = fieldbo.load_mission("lake-level-set", {"agent": {"battery": 2000}})
result = fieldbo.run(mission)

sure = result.confidence
print(f"{result.end_reason}: {len(result.values)} readings for {result.cost:.0f} {mission.world.cost_unit}")
print(f"F1 {result.f1:.3f}, expected {sure.f1.value:.3f} ({sure.f1.low:.3f} to {sure.f1.high:.3f})")
print(result.maps()["mean"])

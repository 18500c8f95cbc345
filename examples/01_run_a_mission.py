"""Run a shipped mission from Python and look at the result."""

import fieldbo

mission = fieldbo.load_mission("lake-level-set", {"agent": {"battery": 2000}})
result = fieldbo.run(mission)

expected = result.confidence.f1
print(f"{result.end_reason}: {len(result.values)} readings for {result.cost:.0f} {mission.world.cost_unit}")
print(f"F1 {result.f1:.3f}, expected {expected.value:.3f} ({expected.low:.3f} to {expected.high:.3f})")
print(result.maps()["mean"])

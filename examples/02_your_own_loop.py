"""Ask and tell: write the loop yourself, around an instrument that fieldbo does not know."""

import numpy as np

import fieldbo


def read_probe(site: np.ndarray) -> float:
    """Return chlorophyll at a distance along the track and a depth; replace this by your instrument."""
    along, depth = site
    return float(0.5 + 2.0 * np.exp(-(((depth - 7.0 - along / 400.0) / 2.0) ** 2)))


mission = fieldbo.load_mission("lake-level-set", {"agent": {"battery": 1500, "home": [0, 0]}})
agent = fieldbo.Agent(mission)
while not isinstance(order := agent.ask(), fieldbo.Stop):
    if isinstance(order, fieldbo.GoHome):
        agent.tell(order.observed())
    else:
        agent.tell(order.observed(read_probe(order.site), noise_variance=0.05**2))

result = fieldbo.Result.of(agent, reason=order.reason)
print(f"{order.reason}: {agent.readings} readings for {agent.spent:.0f} s")
print(f"{result.summary()['area_above']:.0f} m2 at or above {mission.question.threshold} mg m-3")

"""
Drive your own loop
===================

Ask for an order, carry it out with your own instrument, tell the agent what it read. fieldbo needs to know
nothing about the instrument.
"""

import numpy as np

import fieldbo


def read_probe(site: np.ndarray) -> float:
    """Stand for your instrument: chlorophyll at a position along the track and a depth."""
    along, depth = site
    return float(0.5 + 2.0 * np.exp(-(((depth - 7.0 - along / 400.0) / 2.0) ** 2)))


agent = fieldbo.Agent(fieldbo.load_mission("lake-level-set", {"agent": {"battery": 1500, "home": [0, 0]}}))
while not isinstance(order := agent.ask(), fieldbo.Stop):
    if isinstance(order, fieldbo.GoHome):
        agent.tell(order.observed())
    else:
        agent.tell(order.observed(read_probe(order.site), noise_variance=0.05**2))

result = fieldbo.Result.of(agent, reason=order.reason)
print(f"{order.reason}: {agent.readings} readings for {agent.spent:.0f} s")
print(f"above {result.mission.question.threshold}: {result.summary()['area_above']:.0f} m2")

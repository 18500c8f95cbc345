"""Random worlds under random commands: nothing is overdrawn, home is reached, closed areas stay closed."""

import many_worlds
import numpy as np
import pytest
import shapely
from random_commands import commands_for
from tiers import seed_blocks
from underway import steered

from fieldbo.messages import Action
from fieldbo.runs.state import RunState

BLOCK = 40


def wrong_with(seed, folder):
    """Return what is wrong with a mission under random commands, and what was obeyed."""
    mission, rng = many_worlds.mission_of(seed), np.random.default_rng(seed)
    given, polls = commands_for(mission, rng), int(rng.integers(1, 5))
    result, vehicle, rows = steered(mission, folder, given, polls=polls, seed=seed)
    obeyed = [c for c in result.commands if not c.refused]
    domain, near = mission.world.domain, many_worlds.NEAR * float(mission.world.domain.extent.max())
    wrong = [f for f in many_worlds.faults(mission, result) if f[0] in ("overdrawn", "not home")]
    wrong += [("did not end", "")] if result.end_reason is None else []
    for a, b, closed in vehicle.legs:
        wrong += [("leg in an obstacle", leg) for leg in many_worlds.crossings(domain, np.stack([a, b]))]
        line, inner = shapely.LineString([a[:2], b[:2]]), [area.polygon.buffer(-near) for area in closed]
        wrong += [("leg in a closed area", str(line)) for area in inner if line.intersects(area)]
    state = RunState(mission, "run")
    state.replay(rows)
    if state.agent.spent != result.cost:
        wrong.append(("replay differs", f"{state.agent.spent} {result.cost}"))
    return wrong, obeyed


@pytest.mark.parametrize("seeds", seed_blocks(200, BLOCK, today=4), indirect=True)
def test_commands_never_overdraw_or_strand_a_vehicle_or_lead_it_into_a_closed_area(tmp_path, seeds):
    wrong, obeyed = {}, set()
    for seed in seeds:
        (tmp_path / str(seed)).mkdir()
        faults, commands = wrong_with(seed, tmp_path / str(seed))
        wrong |= {seed: faults} if faults else {}
        obeyed |= {c.action for c in commands}

    assert wrong == {}
    assert len(seeds) < BLOCK or obeyed >= {Action.PAUSE, Action.CONTINUE, Action.NEXT, Action.NO_GO}

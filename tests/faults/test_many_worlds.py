"""A few hundred of the random worlds that ``python tests/faults/many_worlds.py`` tries by the thousand."""

from __future__ import annotations

from dataclasses import replace

import many_worlds
import numpy as np
import pytest
from tiers import seed_blocks

from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.obstacles import Obstacle
from fieldbo.runs.runner import run
from fieldbo.world.world import Disturbances


@pytest.mark.parametrize("seeds", seed_blocks(300, 50, today=5), indirect=True)
def test_no_vehicle_overdraws_or_is_stranded_and_no_leg_crosses_an_obstacle(seeds):
    wrong = [(seed, *what) for seed in seeds for what in many_worlds.tried(seed)[1]]

    assert wrong == []


@pytest.mark.slow
def test_the_random_worlds_cover_all_features():
    missions = [many_worlds.mission_of(seed) for seed in range(80)]
    crews, worlds = [m.vehicles[0] for m in missions], [m.world for m in missions]

    assert {w.domain.dimension for w in worlds} == {2, 3}
    assert {type(w.cost).__name__ for w in worlds} == {"Euclidean", "Flight", "Transect", "Unit"}
    assert sum(m.unreachable > 0 for m in missions) >= 3
    for feature in (
        [bool(w.domain.obstacles) for w in worlds],
        [w.domain.continuous for w in worlds],
        [w.disturbances is not None for w in worlds],
        [c.home is not None for c in crews],
        [c.reserve > 0 for c in crews],
        [c.time_limit_s is not None for c in crews],
        [m.batch > 1 for m in missions],
    ):
        assert 0.1 < np.mean(feature) < 0.9
    assert len({m.policy_kind for m in missions}) > 8


@pytest.mark.slow
def test_faults_are_detected():
    """Costs above the margin overdraw the battery; a leg through a box is a crossing."""
    kinds = set()
    for seed in range(15):
        mission = many_worlds.mission_of(seed)
        crew, world = mission.vehicles[0], mission.world
        careless = replace(mission, vehicles=(replace(crew, margin=0.0),))
        storm = replace(careless, world=replace(world, disturbances=Disturbances(0.49)))
        kinds |= {kind for kind, _ in many_worlds.faults(storm, run(storm))}
    assert "overdrawn" in kinds

    axes = [Axis(name, "m", 0, 10) for name in "xyz"]
    for d in (2, 3):
        box = Obstacle("box", (4.0,) * d, (6.0,) * d)
        domain = Domain.grid(axes[:d], (3,) * d, obstacles=[box])
        across, beside = np.array([[5.0] * (d - 1) + [0], [5.0] * (d - 1) + [10]]), np.zeros((2, d))
        beside[1, 0] = 10.0
        edge = np.array([[4.0, 0] + [4.0] * (d - 2), [4.0, 10] + [4.0] * (d - 2)])
        assert len(many_worlds.crossings(domain, across)) >= 1
        assert many_worlds.crossings(domain, beside) == []
        assert many_worlds.crossings(domain, edge) == []

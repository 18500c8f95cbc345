"""Compile the loops that most tests use, so that workers which start together do not all compile them.

    python tests/shared/compile_loops.py

numba keeps what it compiles beside the sources: a second call takes a few seconds.
"""

import os
from concurrent.futures import ProcessPoolExecutor

import shapely

from fieldbo.belief.question import LevelSet, Optimum
from fieldbo.costs.travel import Euclidean
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.obstacles import Obstacle
from fieldbo.policies.level_set.look_ahead import EAVC, GlobalMI, GlobalSUR
from fieldbo.policies.level_set.tour import OneStepRisk, Tour
from fieldbo.policies.level_set.truvar import TruVaR
from fieldbo.policies.optimum.myopic import EntropySearch, MinimumRegretSearch
from fieldbo.policies.optimum.scout import Scout
from fieldbo.policies.optimum.search_tour import SearchTour
from fieldbo.policies.travel.rollout import Rollout
from fieldbo.testing import drive, small_mission

POLICIES = (
    TruVaR(),
    GlobalSUR(),
    GlobalMI(),
    EAVC(),
    OneStepRisk(),
    Tour(),
    SearchTour(),
    Scout(),
    EntropySearch(representers=8, draws=16),
    MinimumRegretSearch(representers=8, draws=16),
    Rollout(horizon=2, fantasies=2),
    Rollout(base="ei", horizon=2, fantasies=2),
)
AXES = Axis("east", "m", 0, 10), Axis("north", "m", 0, 10)
DOMAINS = (
    Domain.grid(AXES, (6, 6), obstacles=[Obstacle("box", (4.0, 2.0), (6.0, 8.0))]),
    Domain.grid(AXES, (6, 6), shapely.Polygon([(0, 0), (10, 0), (10, 10), (5, 4), (0, 10)])),
)


def compiled(work):
    """Have a policy or a domain compile its loops."""
    if isinstance(work, Domain):
        Euclidean(1.0).within(work).travel(work.sites[0], work.sites)
    else:
        question = {} if LevelSet in work.answers else {"question": Optimum()}
        drive(small_mission(work, **question))


if __name__ == "__main__":
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(compiled, [*POLICIES, *DOMAINS]))

"""Walls with cracks: how cracks grow, and that a model can learn what is seen of them."""

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import KDTree
from tiers import examples, swept

import fieldbo
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError
from fieldbo.world.fields.gallery.cracks import STEP, Cracks

AXES = [Axis("along", "m", 0, 12), Axis("height", "m", 0, 8)]
WINDOWS = shapely.union_all([shapely.box(2, 2, 4, 5), shapely.box(7, 0, 9, 4)])
OPEN = Domain.grid(AXES, (25, 17), shapely.box(0, 0, 12, 8) - WINDOWS)
PLAIN = Domain.grid(AXES, (25, 17))
CORNERS = [(2, 2), (4, 2), (2, 5), (4, 5), (7, 4), (9, 4)]  # the door's lower two lie on the wall's edge


@given(draw=st.integers(0, 10_000), turn=st.floats(0, 2), branching=st.floats(0, 1))
@settings(max_examples=examples(25), deadline=None)
def test_no_crack_leaves_the_wall_or_crosses_an_opening(draw, turn, branching):
    wall = Cracks(4, turn=turn, branching=branching).make(OPEN, draw)
    for crack in wall.cracks:
        assert np.isfinite(crack.points).all()
        if len(crack.points) > 1:
            assert shapely.covers(OPEN.region.buffer(1e-9), shapely.LineString(crack.points))


@given(draw=st.integers(0, 10_000))
@settings(max_examples=examples(20), deadline=None)
def test_damage_lies_between_0_and_1_and_is_that_of_the_worst_crack_where_it_starts(draw):
    wall = Cracks(3).make(OPEN, draw)
    damage = wall.values(OPEN.sites)
    assert ((damage >= 0) & (damage <= 1)).all()
    worst = max(wall.cracks, key=lambda c: c.openings[0])
    assert 0.9 <= wall.values(worst.points[:1])[0] <= 1
    assert sum(c.openings[0] > 0.8 for c in wall.cracks) == 1


@given(draw=st.integers(0, 10_000))
@settings(max_examples=examples(20), deadline=None)
def test_a_crack_tapers_and_takes_steps_of_one_length(draw):
    for crack in Cracks(3).make(OPEN, draw).cracks:
        assert (np.diff(crack.openings) < 0).all()
        assert (crack.openings > 0).all()
        steps = np.linalg.norm(np.diff(crack.points, axis=0), axis=1)
        assert np.allclose(steps, STEP)


def test_cracks_start_at_corners_of_openings_and_at_the_edge_and_no_corner_starts_two():
    starts = np.array(
        [c.points[0] for draw in range(40) for c in Cracks(3, branching=0).make(OPEN, draw).cracks]
    )
    at_corner = KDTree(CORNERS).query(starts)[0] < 1e-9
    on_edge = shapely.dwithin(shapely.points(starts), OPEN.region.exterior, 1e-9)
    assert (at_corner | on_edge).all()
    assert 0.6 < at_corner.mean() < 0.95
    for draw in range(40):
        firsts = [tuple(c.points[0]) for c in Cracks(6, branching=0).make(OPEN, draw).cracks]
        assert len(set(firsts)) == 6


def test_on_a_wall_without_openings_cracks_start_at_its_edge():
    for crack in Cracks(5, branching=0).make(PLAIN, 3).cracks:
        assert shapely.dwithin(shapely.points(crack.points[0]), shapely.box(0, 0, 12, 8).exterior, 1e-9)
        assert len(crack.points) > 10


def test_branches_start_on_a_crack_and_are_less_open_than_it_is_there():
    wall = Cracks(2, branching=1.0).make(PLAIN, 1)
    trunks = [c for c in wall.cracks if not (0 < c.points[0, 0] < 12 and 0 < c.points[0, 1] < 8)]
    assert len(trunks) == 2
    assert len(wall.cracks) > 6
    points = np.concatenate([c.points for c in wall.cracks])
    openings = np.concatenate([c.openings for c in wall.cracks])
    for crack in wall.cracks:
        if not any(crack is t for t in trunks):
            here = (points == crack.points[0]).all(axis=1)
            assert openings[here].max() * 0.8 >= crack.openings[0]


def test_without_branching_there_are_as_many_cracks_as_asked_for():
    assert len(Cracks(7, branching=0).make(OPEN, 0).cracks) == 7


def test_more_turning_makes_a_crack_wander_and_none_leaves_it_straight():
    def bend(turn):
        cracks = [c for k in range(15) for c in Cracks(2, turn=turn, branching=0).make(PLAIN, k).cracks]
        return np.mean(
            [np.linalg.norm(c.points[-1] - c.points[0]) / (STEP * (len(c.points) - 1)) for c in cracks]
        )

    assert bend(0.0) == pytest.approx(1.0)
    assert 0.85 < bend(0.6) < 0.99
    assert bend(2.0) < bend(0.6) - 0.1


def test_the_same_draw_is_the_same_wall_whatever_its_sites_and_another_draw_another():
    coarse = Domain.grid(AXES, (5, 5), OPEN.region)
    one, again, other = (Cracks().make(d, k) for d, k in ((OPEN, 3), (coarse, 3), (OPEN, 4)))
    assert np.array_equal(one.values(OPEN.sites), again.values(OPEN.sites))
    assert not np.array_equal(one.values(OPEN.sites), other.values(OPEN.sites))


def test_damage_fades_away_from_a_crack_as_its_formula_says():
    wall = Cracks(1, turn=0.0, branching=0, footprint=0.5, halo=0.2).make(PLAIN, 2)
    (crack,) = wall.cracks
    middle = len(crack.points) // 2
    ahead = crack.points[middle + 1] - crack.points[middle]
    aside = np.array([-ahead[1], ahead[0]]) / STEP
    far = np.array([0.0, 0.25, 0.5, 1.0])
    seen = wall.values(crack.points[middle] + far[:, None] * aside)
    shape = 0.8 * np.exp(-0.5 * (far / 0.5) ** 2) + 0.2 * np.exp(-0.5 * (far / 2) ** 2)
    # a little more where a wider part of the crack shows from the side
    assert np.allclose(seen / seen[0], shape, atol=0.03)
    assert (np.diff(seen) < 0).all()


@pytest.mark.parametrize(
    ("told", "part"),
    [
        ({"cracks": 0}, "cracks = 0"),
        ({"length": 0.0}, "length = 0"),
        ({"turn": -1.0}, "turn = -1"),
        ({"branching": 11.0}, "branching = 11"),
        ({"footprint": 0.0}, "footprint = 0"),
        ({"halo": 1.5}, "halo = 1.5"),
    ],
)
def test_settings_out_of_range_are_rejected(told, part):
    with pytest.raises(InputError, match=part):
        Cracks(**told)


def test_cracks_need_two_axes():
    with pytest.raises(InputError, match="cracks over 1 axes"):
        Cracks().make(Domain.grid(AXES[:1], (5,)), 0)


# -- the world made of them ------------------------------------------------------------------------------


@pytest.mark.parametrize("draws", swept([range(0, 5), range(5, 20)], [range(0, 5)]), ids=str)
def test_the_worst_damage_of_the_crack_wall_stands_out_in_every_draw(draws):
    for draw in draws:
        world = fieldbo.load_world("crack-wall", draw)
        damage = world.truth(world.domain.sites)
        assert 0.6 < damage.max() <= 1
        assert 0.005 < np.mean(damage > 0.4) < 0.15
        assert np.mean(damage < 0.1) > 0.5


def test_the_drone_of_the_crack_wall_starts_where_it_can_fly_and_no_site_lies_on_a_window():
    world = fieldbo.load_world("crack-wall")
    assert 1500 < world.domain.size < 2500
    assert world.domain.contains(world.start[None]).all()
    for window in ([4.3, 3.8], [15, 1], [26, 5]):
        assert not world.domain.contains([window])[0]
        assert np.linalg.norm(world.domain.sites - window, axis=1).min() > 0.8


def test_readings_of_the_crack_wall_teach_a_model_where_it_is_damaged():
    world = fieldbo.load_world("crack-wall")
    sites, damage = world.domain.sites, world.truth(world.domain.sites)
    rng = np.random.default_rng(0)
    read = rng.choice(len(sites), 600, replace=False)
    kernel = fieldbo.belief.kernels.kernel("matern52", [1.0, 1.0], 0.03)
    belief = fieldbo.belief.posterior.Belief(kernel).condition_on(
        sites[read], damage[read], np.full(600, 0.03**2)
    )
    rest = np.setdiff1d(np.arange(len(sites)), read)
    missed = damage[rest] - belief.mean(sites[rest])
    assert 1 - missed.var() / damage[rest].var() > 0.8

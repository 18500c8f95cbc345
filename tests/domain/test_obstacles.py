"""Obstacles: the space that they leave free, and missions in which part of it is unreachable."""

import tomllib
from dataclasses import dataclass, replace

import numpy as np
import pytest
import shapely
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from small_files import mission_text
from tiers import examples

import fieldbo
from fieldbo.agent.agent import Agent
from fieldbo.costs.base import CostModel
from fieldbo.costs.travel import Euclidean
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.free_space import FreeSpace
from fieldbo.domain.obstacles import Obstacle, simple_polygon
from fieldbo.errors import InputError
from fieldbo.mission.files import toml_text
from fieldbo.mission.vehicle_spec import VehicleSpec
from fieldbo.results import maps
from fieldbo.testing.small import small_mission, small_world

AXES = (Axis("x", "m", 0, 10), Axis("y", "m", 0, 6))
BOX = shapely.box(0, 0, 10, 6)
WALL = Obstacle("wall", (4.5, -1), (5.5, 7))
LAKE = shapely.Polygon([(0, 0), (10, 1), (8, 6), (5, 3), (1, 6)])
property_test = settings(deadline=None, max_examples=examples(60), derandomize=True)


def tenths(low, high):
    return st.integers(10 * low, 10 * high).map(lambda n: n / 10)


@st.composite
def boxes(draw):
    low = (draw(tenths(-1, 9)), draw(tenths(-1, 5)))
    size = (draw(tenths(0, 4)) + 0.1, draw(tenths(0, 4)) + 0.1)
    return Obstacle("?", low, (max(low[0] + size[0], 0.1), max(low[1] + size[1], 0.1)))


@st.composite
def polygons(draw):
    """Corners around a place inside the domain, near and far: rarely convex."""
    x, y = draw(tenths(1, 9)), draw(tenths(1, 5))
    n = draw(st.integers(3, 7))
    reach = [draw(st.floats(0.3, 2.0)) for _ in range(n)]
    turn = [2 * np.pi * k / n for k in range(n)]
    corners = [(x + r * np.cos(t), y + r * np.sin(t)) for r, t in zip(reach, turn, strict=True)]
    return Obstacle("?", corners=tuple(corners))


@st.composite
def crowds(draw, kinds=None):
    """One to five obstacles, which may overlap, touch, and cross the edges of the domain."""
    obstacles = draw(st.lists(boxes() | polygons() if kinds is None else kinds, min_size=1, max_size=5))
    return [replace(o, name=f"obstacle {k}") for k, o in enumerate(obstacles)]


def fits(obstacles, whole=BOX):
    """Return True if every obstacle reaches into a domain, and they leave space for some sites."""
    reaching = all(o.polygon.intersection(whole).area > 1e-6 for o in obstacles)
    return reaching and shapely.difference(whole, taken_by(obstacles)).area > 3


def taken_by(obstacles):
    return shapely.union_all([o.polygon for o in obstacles])


def grid(obstacles, region=None, clearance=0.0, shape=(41, 25)):
    return Domain.grid(AXES, shape, region, obstacles, clearance)


@property_test
@given(crowds(), st.sampled_from([None, LAKE]))
def test_the_sites_are_exactly_the_nodes_outside_all_obstacles(obstacles, outline):
    lake = BOX if outline is None else outline
    assume(fits(obstacles, lake))
    domain = grid(obstacles, outline)
    nodes = Domain.grid(AXES, (41, 25)).sites
    kept = np.isin(np.arange(len(nodes)), domain.grid_index)
    points, taken = shapely.points(nodes), taken_by(obstacles)
    inside = shapely.contains(taken, points) & (shapely.distance(taken.boundary, points) > 1e-6)
    outside = (shapely.distance(taken, points) > 1e-6) & shapely.covers(lake, points)
    assert not kept[inside].any()
    assert kept[outside].all()
    for o in obstacles:
        deep = shapely.distance(o.polygon.boundary, points) > 1e-6
        assert not kept[shapely.contains(o.polygon, points) & deep].any()


@pytest.mark.slow
@property_test
@given(crowds(), st.sampled_from([None, LAKE]))
def test_the_areas_inside_and_outside_obstacles_add_up(obstacles, outline):
    whole = BOX if outline is None else outline
    assume(fits(obstacles, whole))
    domain = grid(obstacles, outline)
    taken = shapely.intersection(whole, taken_by(obstacles)).area
    assert domain.region.area + taken == pytest.approx(whole.area, rel=1e-7)
    assert domain.cell_size * domain.size == pytest.approx(domain.region.area)


@property_test
@given(crowds(), st.floats(-1, 11), st.floats(-1, 7), st.sampled_from([0.0, 0.25]))
def test_containment_agrees_with_shapely(obstacles, x, y, clearance):
    assume(fits([o.grown(clearance) for o in obstacles]))
    domain = grid(obstacles, clearance=clearance)
    taken = taken_by(obstacles)
    gap, point = shapely.distance(taken, shapely.Point(x, y)), shapely.Point(x, y)
    edges = shapely.union_all([o.polygon.boundary for o in domain.obstacles])
    if min(abs(x), abs(x - 10), abs(y), abs(y - 6), shapely.distance(edges, point)) > 1e-6:
        in_one = any(o.polygon.contains(point) for o in domain.obstacles)
        assert domain.contains([x, y]).tolist() == [0 < x < 10 and 0 < y < 6 and not in_one]
    if domain.contains([x, y])[0]:
        assert gap >= clearance - 1e-6


@property_test
@given(crowds(boxes()), st.lists(st.tuples(tenths(0, 10), tenths(0, 6)), min_size=1, max_size=30))
def test_walls_from_floor_to_ceiling_leave_the_same_space_free_as_in_the_floor_plan(obstacles, places):
    """The computations over two and three axes agree, even on edges and where obstacles touch."""
    up = [replace(o, low=(*o.low, 0.0), high=(*o.high, 3.0)) for o in obstacles]
    low, high = np.zeros(3), np.array([10.0, 6.0, 3.0])
    try:
        plan = FreeSpace.around(obstacles, low[:2], high[:2])
    except InputError as error:
        with pytest.raises(InputError, match=str(error).split("\n", maxsplit=1)[0]):
            FreeSpace.around(up, low, high)
        return
    room = FreeSpace.around(up, low, high)
    assert room.measure == pytest.approx(3 * plan.measure)
    points = np.array(places)
    for height in (0.0, 1.7, 3.0):
        in_room = room.contains(np.column_stack([points, np.full(len(points), height)]))
        np.testing.assert_array_equal(in_room, plan.contains(points))


@property_test
@given(st.lists(st.lists(st.integers(0, 5), min_size=6, max_size=6), min_size=1, max_size=5))
def test_the_free_volume_is_that_of_the_grid_cells_outside_all_boxes(ends):
    sorted_ends = [(np.minimum(e[:3], e[3:]), np.maximum(e[:3], e[3:]) + 1) for e in ends]
    obstacles = [Obstacle(str(k), tuple(a), tuple(b)) for k, (a, b) in enumerate(sorted_ends)]
    low, high = np.zeros(3), np.full(3, 6.0)
    cells = np.stack(np.meshgrid(*[np.arange(6) + 0.5] * 3), axis=-1).reshape(-1, 3)
    free = ~np.any([o.holds(cells) for o in obstacles], axis=0)
    if not free.any():
        with pytest.raises(InputError, match="cover the whole domain"):
            FreeSpace.around(obstacles, low, high)
        return
    space = FreeSpace.around(obstacles, low, high)
    assert space.measure == pytest.approx(free.sum())
    np.testing.assert_array_equal(space.contains(cells), free)


def test_the_edge_of_an_obstacle_is_free_and_its_inside_is_not():
    domain = grid([Obstacle("box", (2, 2), (4, 3)), Obstacle("mast", corners=((6, 2), (8, 2), (7, 4)))])
    edge, inside = [[2, 2], [3, 2], [4, 2.7], [6, 2], [6.5, 3]], [[3, 2.5], [3.999, 2.9], [7, 3]]
    assert domain.contains(edge).all()
    assert not domain.contains(inside).any()
    assert domain.obstacle_at([7, 3]).name == "mast"
    assert domain.obstacle_at([6, 2]) is None


def test_there_is_no_free_space_between_obstacles_that_touch_each_other_or_the_edge():
    left, right = Obstacle("left", (1, 1), (0.1 + 0.2 + 4, 3)), Obstacle("right", (4.3, 1), (6, 3))
    assert grid([left, right]).contains([[4.3, 2.0], [4.3, 1.0]]).tolist() == [False, True]
    flush = grid([Obstacle("quay", (0, 1), (3, 3))])
    assert flush.contains([[0, 2], [0, 1], [0, 0.9]]).tolist() == [False, True, True]
    tank = Domain.grid(
        [*AXES, Axis("z", "m", 0, 3)], (11, 7, 4), obstacles=[Obstacle("t", (2, 2, 0), (4, 4, 2))]
    )
    assert tank.contains([[3, 3, 0], [3, 3, 1], [3, 3, 2], [2, 3, 1]]).tolist() == [False, False, True, True]


def test_obstacles_grow_by_the_clearance_with_sharp_corners():
    box = Obstacle("box", (2, 2), (4, 3)).grown(0.5)
    assert (box.low, box.high) == ((1.5, 1.5), (4.5, 3.5))
    mast = Obstacle("mast", corners=((6, 2), (8, 2), (8, 4)))
    grown = mast.grown(0.5)
    assert grown.polygon.contains(mast.polygon)
    assert (8.5, 1.5) in {(round(x, 9), round(y, 9)) for x, y in grown.corners}
    assert mast.grown(0.0) == mast
    bay = Obstacle("bay", corners=((0, 0), (4, 0), (4, 4), (2.1, 4), (2.1, 3), (3, 3), (3, 1), (1, 1), (1, 3),
                                   (1.9, 3), (1.9, 4), (0, 4)))  # fmt: skip
    assert not bay.holds([[2, 2]])[0]
    assert bay.grown(0.2).holds([[2, 2]])[0]


def test_the_representers_of_a_box_lie_outside_its_obstacles():
    whole, cut = Domain.box(AXES, 500), Domain.box(AXES, 500, [WALL], 0.1)
    np.testing.assert_array_equal(cut.sites, whole.sites[cut.contains(whole.sites)])
    assert cut.continuous
    assert cut.cell_size * cut.size == pytest.approx((10 - 1.2) * 6)
    assert cut.contains(cut.middle)[0]
    assert whole.middle.tolist() == [5, 3]


@pytest.mark.parametrize(
    ("domain", "clear"),
    [
        (Domain.grid(AXES, (5, 4)), True),
        (Domain.grid(AXES, (5, 4), shapely.Polygon([(0, 0), (10, 0), (5, 6)])), True),
        (Domain.grid(AXES, (5, 4), LAKE), False),
        (grid([WALL]), False),
        (grid([Obstacle("end", (8, 0), (10, 6))]), True),
        (Domain.grid([*AXES, Axis("z", "m", 0, 1)], (5, 4, 2)), True),
        (
            Domain.grid(
                [*AXES, Axis("z", "m", 0, 1)], (5, 4, 2), obstacles=[Obstacle("a", (1, 1, 0), (2, 2, 1))]
            ),
            False,
        ),
    ],
)
def test_a_domain_is_clear_if_no_straight_leg_can_leave_it(domain, clear):
    assert domain.clear is clear
    rng = np.random.default_rng(0)
    ends = domain.sites[rng.integers(0, domain.size, (60, 2))]
    along = ends[:, :1] + np.linspace(0, 1, 41)[None, :, None] * np.diff(ends, axis=1)
    assert domain.contains(along.reshape(-1, domain.dimension)).all() == clear


def test_a_restricted_domain_keeps_its_grid_and_its_measure_per_site():
    domain = grid([WALL])
    assert isinstance(domain.region, shapely.MultiPolygon)
    left = domain.restricted(domain.sites[:, 0] < 5)
    assert left.region.geom_type == "Polygon"
    assert left.region.area == pytest.approx(4.5 * 6)
    assert left.cell_size == domain.cell_size
    assert left.dropped == domain.size - left.size > 0
    assert (left.contains([1, 1])[0], left.contains([9, 1])[0]) == (True, False)
    shown = (left.on_grid(np.arange(left.size)) >= 0).any(axis=1)
    np.testing.assert_array_equal(shown, np.linspace(0, 10, 41) <= 4.5)
    with pytest.raises(InputError, match="no sites"):
        domain.restricted(np.zeros(domain.size, dtype=bool))


# -- in files --------------------------------------------------------------------------------------------


def world_file(folder, obstacles=(), clearance=0.0, kind="grid", **more):
    """Write a world and return its file."""
    axes = [{"name": a.name, "unit": "m", "low": a.low, "high": a.high} for a in AXES]
    content = {
        "format": 1,
        "version": "1",
        "title": "a yard",
        "cost_unit": "s",
        **more,
        "domain": {
            "kind": kind,
            "axes": [a | {"count": n} for a, n in zip(axes, (11, 7), strict=True)]
            if kind == "grid"
            else axes,
            "obstacles": [table_of(o) for o in obstacles],
            "clearance": clearance,
        },
        "field": {"kind": "gp-draw", "length_scales": [3.0, 3.0]},
        "cost": {"kind": "euclidean", "sampling": 1.0},
        "sensor": {"noise_sd": 0.1},
    }
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "world.toml"
    file.write_text(toml_text(content))
    assert tomllib.loads(file.read_text()) == content
    return file


def table_of(obstacle):
    shape = {"corners": [list(c) for c in obstacle.corners]} if obstacle.corners else {}
    return {"name": obstacle.name, "low": list(obstacle.low), "high": list(obstacle.high), **shape}


@settings(deadline=None, max_examples=15, derandomize=True)
@given(crowds(), st.sampled_from(["grid", "box"]))
def test_obstacles_survive_the_round_trip_through_a_file(tmp_path_factory, obstacles, kind):
    folder = tmp_path_factory.mktemp("yard")
    assume(fits(obstacles))
    loaded = fieldbo.load_world(world_file(folder, obstacles, kind=kind))
    assert loaded.domain.obstacles == tuple(obstacles)
    grown = fieldbo.load_world(world_file(folder / "more", [Obstacle("box", (2, 2), (4, 3))], 0.5, kind))
    assert grown.domain.obstacles == (Obstacle("box", (1.5, 1.5), (4.5, 3.5)),)


# -- unreachable sites -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Walled(CostModel):
    """A metre costs 1; there is no route across 4.5 m along the first axis."""

    def travel_between(self, starts, ends):
        gaps = np.linalg.norm(starts[:, None] - ends[None], axis=2)
        return np.where((starts[:, None, 0] < 4.5) == (ends[None, :, 0] < 4.5), gaps, np.inf)

    def sample_at(self, sites):
        return np.ones(len(sites))


def walled(**more):
    world = small_world((9, 6))
    return small_mission(world=replace(world, cost=Walled()), **more)


def test_unreachable_sites_are_removed_and_counted():
    mission = walled(battery=40.0)
    assert mission.unreachable == 4 * 6
    assert mission.world.domain.sites[:, 0].max() == 4
    assert Agent(mission).warnings == ("24 of 54 sites can't be reached from the start and are left out",)
    result = fieldbo.run(mission)
    assert result.truth.shape == result.surface.mean.shape == (30,)
    assert result.sites[:, 0].max() <= 4
    assert any("24 of 54 sites" in note for note in result.notes)
    assert maps.of(result)["mean"].shape == (9, 6)
    assert np.isnan(maps.of(result)["mean"].values[5:]).all()
    assert np.isfinite(maps.of(result)["mean"].values[:5]).all()


def test_a_mission_made_from_another_keeps_the_count_of_unreachable_sites():
    mission = walled()
    assert replace(mission, seed=3).unreachable == mission.unreachable == 24
    assert small_mission().unreachable == 0
    assert not [w for w in Agent(small_mission()).warnings if "reached" in w]


def test_a_fleet_reaches_every_site_that_any_of_its_vehicles_reaches():
    mission = walled()
    both = replace(
        mission,
        world=replace(small_world((9, 6)), cost=Walled()),
        vehicles=(mission.vehicles[0], VehicleSpec(9.0, [8.0, 0.0])),
    )
    assert both.unreachable == 0
    assert both.world.domain.size == 54


def test_a_start_or_home_without_a_route_is_rejected():
    world = replace(small_world((9, 6)), cost=Walled())
    mission = small_mission(world=world)
    with pytest.raises(
        InputError, match=r"home \[8\.0, 0\.0\] can't be reached from the start \[0\.0, 0\.0\]"
    ):
        replace(mission, world=world, vehicles=(VehicleSpec(30.0, [0.0, 0.0], [8.0, 0.0]),))

    @dataclass(frozen=True)
    class Shut(Walled):
        def travel_between(self, starts, ends):
            return np.full((len(starts), len(ends)), np.inf)

    with pytest.raises(InputError, match="no site can be reached from the start"):
        replace(mission, world=replace(world, cost=Shut()), vehicles=(VehicleSpec(30.0, [0.0, 0.0]),))


MISSION = mission_text(
    "yard",
    threshold={"quantile": 0.5},
    battery=60,
    agent={"start": [1, 1], "home": [2, 2]},
    policy="straddle",
    model={"learn": False, "length_scales": [3, 3], "mean": 0},
)


@pytest.mark.parametrize("kind", ["grid", "box"])
def test_a_wall_across_the_domain_restricts_a_mission_to_the_half_it_starts_in(
    tmp_path, monkeypatch, said, kind
):
    monkeypatch.chdir(tmp_path)
    world_file(tmp_path / "worlds" / "yard", [WALL, Obstacle("pond", (1, 3), (3, 4.5))], kind=kind)
    (tmp_path / "m.toml").write_text(MISSION)
    mission = fieldbo.load_mission("m.toml")
    whole = fieldbo.load_world("yard").domain
    assert mission.unreachable == (whole.sites[:, 0] >= 5.5).sum() > 0
    assert mission.world.domain.size + mission.unreachable == whole.size
    values = mission.world.truth(mission.world.domain.sites)
    assert (values >= mission.question.threshold).mean() == pytest.approx(0.5, abs=0.06)
    checked = " ".join(said("check", "m.toml").split())
    told = f"{mission.unreachable} of {whole.size} sites can't be reached from the start because of obstacles"
    assert f"warning: {told} and are left out" in checked
    assert "obstacles 2: wall, pond" in checked
    assert "of the sites can't be reached" in said("check", "worlds/yard")
    result = fieldbo.run(mission)
    assert len(result.sites) > 0
    assert result.path[:, 0].max() <= 4.5 + 1e-6
    assert mission.world.domain.contains(result.path).all()
    np.testing.assert_allclose(result.path[-1], [2, 2])


def test_a_vehicle_goes_around_a_wall_and_no_site_is_removed():
    world = small_world((9, 6))
    domain = Domain.grid(world.domain.axes, (9, 6), obstacles=[Obstacle("wall", (3.5, -1), (4.5, 4.5))])
    mission = small_mission(world=replace(world, domain=domain), battery=60.0)
    assert mission.unreachable == 0
    result = fieldbo.run(mission)
    legs = zip(result.path[:-1], result.path[1:], strict=True)
    inside = domain.obstacles[0].polygon.buffer(-1e-6)
    assert not any(shapely.LineString(leg).intersects(inside) for leg in legs)
    assert result.cost <= 60


def test_a_cost_in_a_restricted_world_is_bound_to_the_remaining_domain():
    """Binding to a smaller domain must replace the first binding."""
    domain = grid([WALL], shape=(11, 7))
    world = replace(small_world(), domain=domain, cost=Euclidean(sampling=1.0), field=None, start=None)
    left = replace(world, domain=domain.restricted(domain.sites[:, 0] < 5))
    assert np.isfinite(left.cost.travel([1.0, 1.0], left.domain.sites)).all()


def test_the_suggested_corners_of_a_crossing_polygon_are_valid():
    for corners in ([(0, 0), (2, 2), (2, 0), (0, 2)], [(0, 0), (4, 0), (4, 4), (2, -1), (0, 4)]):
        with pytest.raises(InputError, match="crosses or touches itself") as caught:
            simple_polygon(corners, "the outline", "domain.outline")
        first = caught.value.fix.split(", or as separate parts")[0]
        key, _, value = first.partition(" = ")
        assert key == "outline"
        assert simple_polygon(tomllib.loads(f"x = {value}")["x"], "it", "x").area > 0

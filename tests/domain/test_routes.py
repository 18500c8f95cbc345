"""The cheapest routes around obstacles."""

from __future__ import annotations

import pickle
from itertools import combinations, pairwise
from math import hypot, sqrt

import networkx as nx
import numpy as np
import pytest
import shapely
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra
from scipy.spatial.distance import cdist
from tiers import examples

from fieldbo._numerics.arrays import LruBytes
from fieldbo.costs.travel import Euclidean, Flight
from fieldbo.domain import routes as module
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.obstacles import Obstacle
from fieldbo.domain.routes import Boxes, Outline, ShortestPaths, visibility_in
from fieldbo.errors import InputError

AXES = [Axis("x", "m", 0.0, 10.0), Axis("y", "m", 0.0, 10.0)]
SOLID = [*AXES, Axis("z", "m", 0.0, 10.0)]
DRONE = Flight(speed=2.0, acceleration=1.5, power=100.0, climb=60.0, descent=5.0)


def domain_with(*obstacles, shape=(21, 21), axes=AXES, region=None):
    return Domain.grid(axes, shape, region, obstacles=obstacles)


def box(name, low, high):
    return Obstacle(name, low, high)


def length(route):
    return float(np.linalg.norm(np.diff(route, axis=0), axis=1).sum())


def within(*obstacles, cost=None, **what):
    return (cost or Euclidean()).within(domain_with(*obstacles, **what))


def random_domain(seed, d=2, shape=None):
    """Boxes and, over two axes, triangles that may overlap and separate the free space."""
    rng = np.random.default_rng(seed)
    obstacles = []
    for k in range(rng.integers(1, 7 if d == 2 else 4)):
        low = rng.uniform(0, 8, d).round(int(rng.integers(0, 3)))
        if d == 2 and rng.random() < 0.4:
            corners = low + np.array([[0.0, 0.0], [3.0, 0.5], [1.0, 2.5]]) * rng.uniform(0.5, 2.0)
            obstacles.append(Obstacle(f"o{k}", corners=tuple(map(tuple, corners))))
        else:
            obstacles.append(box(f"o{k}", low, low + rng.choice([0.5, 1.0, 2.0, 4.0], d)))
    shape = shape or ((15, 15) if d == 2 else (6, 6, 6))
    return Domain.grid(AXES if d == 2 else SOLID, shape, obstacles=obstacles)


def some_of(domain, seed, n=12):
    return domain.draw(min(n, domain.size), np.random.default_rng(seed))


# -- closed forms ----------------------------------------------------------------------------------------

SQUARE = box("square", (4, 4), (6, 6))
TWO = (box("low", (2, 0), (3, 7)), box("high", (6, 3), (7, 10)))


@pytest.mark.parametrize(
    ("a", "b", "bends"),
    [
        ((2, 5), (8, 5), [(4, 4), (6, 4)]),
        ((3, 4), (7, 4), []),  # along the edge
        ((3, 3), (6, 6), None),  # through two corners of the square
        ((4, 4), (6, 4), []),
        ((5, 4), (5, 6), None),  # from edge to edge
        ((2, 2), (3.9, 8), []),
        ((0, 0), (10, 4), []),
    ],
)
def test_the_route_around_a_square_bends_at_its_corners(a, b, bends):
    cost = within(SQUARE)
    a, b = np.array(a, dtype=float), np.array(b, dtype=float)
    route = cost.path(a, b)

    assert cost.travel(a, b[None])[0] == pytest.approx(length(route), rel=1e-12)
    if bends is not None:
        # Both sides of the square are equally short.
        assert len(route[1:-1]) == len(bends)
        expected = length(np.array([a, *bends, b], dtype=float))
        assert length(route) == pytest.approx(expected, rel=1e-12)
    else:
        assert len(route) >= 3


def test_the_route_around_a_square_has_the_length_given_by_pythagoras():
    cost = within(SQUARE)

    assert cost.travel([2, 5], [[8, 5]])[0] == pytest.approx(2 * hypot(2, 1) + 2)
    assert cost.travel([3, 3], [[6, 6]])[0] == pytest.approx(hypot(3, 1) + 2)


def test_the_route_past_two_walls_goes_over_the_first_and_under_the_second():
    cost = within(*TWO)
    route = cost.path([0, 5], [10, 5])

    assert route.tolist() == [[0, 5], [2, 7], [3, 7], [6, 3], [7, 3], [10, 5]]
    assert cost.travel([0, 5], [[10, 5]])[0] == pytest.approx(hypot(2, 2) + 2 + 5 + hypot(3, 2))


@pytest.mark.parametrize("gap", [0.0, 1e-13, -1e-13])
def test_nothing_passes_between_obstacles_that_touch(gap):
    cost = within(box("left", (0, 4), (5, 6)), box("right", (5 + gap, 4), (8, 6)))

    assert cost.travel([5, 4], [[5, 6]])[0] == pytest.approx(2 * 3 + 2)


def test_nothing_passes_where_two_corners_meet():
    cost = within(box("left", (2, 2), (5, 5)), box("right", (5, 5), (8, 8)))

    assert cost.travel([4, 6], [[6, 4]])[0] == pytest.approx(2 * hypot(2, 1) + 3 + 3)
    assert cost.travel([4, 6], [[5, 5.5]])[0] == pytest.approx(hypot(1, 0.5))


def test_nothing_passes_where_a_corner_meets_the_edge():
    wedge = Obstacle("wedge", corners=((0, 5), (10, 4), (10, 6)))
    cost = within(wedge)

    assert cost.travel([0, 4], [[0, 6]])[0] == np.inf
    assert cost.travel([1, 4], [[1, 6]])[0] == np.inf
    shorter = Obstacle("shorter", corners=((0, 5), (8, 4), (8, 6)))
    assert within(shorter).travel([0, 4], [[0, 6]])[0] == pytest.approx(2 * 8 + 2, rel=1e-5)


@pytest.mark.parametrize("d", [2, 3])
def test_nothing_passes_between_an_obstacle_and_the_edge_it_touches(d):
    low, high = (4, 0, 0)[:d], (6, 7, 10)[:d]
    cost = within(box("wall", low, high), axes=SOLID[:d], shape=(11, 11, 3)[:d])
    start, end = np.zeros(d), np.zeros(d)
    end[0] = 10

    assert cost.travel(start, end[None])[0] == pytest.approx(2 * hypot(4, 7) + 2)


def test_a_route_stays_inside_a_concave_outline():
    shore = shapely.Polygon([(0, 0), (10, 0), (10, 10), (6, 10), (6, 4), (4, 4), (4, 10), (0, 10)])
    cost = within(region=shore)

    assert cost.path([0, 10], [10, 10]).tolist() == [[0, 10], [4, 4], [6, 4], [10, 10]]
    assert cost.travel([0, 10], [[10, 10]])[0] == pytest.approx(2 * hypot(4, 6) + 2)


def test_the_route_over_a_box_on_the_floor_is_straight_when_unfolded():
    cost = within(box("hall", (3, 0, 0), (7, 10, 3)), axes=SOLID, shape=(11, 11, 11))

    assert cost.travel([0, 5, 0], [[10, 5, 0]])[0] == pytest.approx(2 * hypot(3, 3) + 4)
    assert cost.path([0, 5, 0], [10, 5, 0]).tolist() == [[0, 5, 0], [3, 5, 3], [7, 5, 3], [10, 5, 0]]
    # Where the shortest route crosses an edge at an angle, bends are off by part of a piece.
    exact = hypot(2 * hypot(3, 3) + 4, 8.0)
    assert exact <= cost.travel([0, 1, 0], [[10, 9, 0]])[0] <= 1.005 * exact


def test_nothing_passes_between_boxes_that_share_a_face():
    lower, upper = box("lower", (4, 0, 0), (6, 10, 5)), box("upper", (4, 0, 5), (6, 10, 10))
    cost = within(lower, upper, axes=SOLID, shape=(11, 3, 3))

    assert np.isinf(cost.travel([0, 5, 5], [[10, 5, 5]])[0])


def test_an_unreachable_place_costs_infinity_and_has_no_path():
    cost = within(box("wall", (4, 0), (6, 10)))

    assert cost.travel([0, 5], [[10, 5], [3, 5]]).tolist() == [np.inf, 3.0]
    assert cost.to([0, 5], [[10, 5]])[0] == np.inf
    with pytest.raises(InputError, match=r"no route from \[0.0, 5.0\] to \[10.0, 5.0\]"):
        cost.path([0, 5], [10, 5])


def test_the_inside_of_an_obstacle_cannot_be_reached():
    cost = within(SQUARE)

    assert cost.travel([0, 5], [[5, 5], [4, 5]]).tolist() == [np.inf, 4.0]
    with pytest.raises(InputError, match="no route"):
        cost.path([0, 5], [5, 5])


@pytest.mark.parametrize(("adrift", "free"), [((4.5, 5), (4, 5)), ((-1, 3), (0, 3))])
def test_a_drifting_vehicle_first_goes_to_the_nearest_free_place(adrift, free):
    cost, site = within(SQUARE), np.array([[4.0, 9.0]])
    expected = hypot(*np.subtract(adrift, free)) + cost.travel(free, site)[0]

    assert cost.travel(adrift, site)[0] == pytest.approx(expected)
    assert length(cost.path(adrift, site[0])) == pytest.approx(expected)


@pytest.mark.parametrize(("adrift", "free"), [((4.5, 5, 5), (4, 5, 5)), ((5, -1, 5), (5, 0, 5))])
def test_a_drifting_drone_first_goes_to_the_nearest_free_place(adrift, free):
    cost = within(box("cube", (4, 4, 4), (6, 6, 6)), axes=SOLID, shape=(6, 6, 6))
    site = np.array([[4.0, 0.0, 5.0]])
    expected = hypot(*np.subtract(adrift, free)) + cost.travel(free, site)[0]

    assert cost.travel(adrift, site)[0] == pytest.approx(expected)
    assert length(cost.path(adrift, site[0])) == pytest.approx(expected)


# -- against others --------------------------------------------------------------------------------------


@settings(max_examples=examples(25), deadline=None)
@given(seed=st.integers(0, 100_000))
def test_distances_agree_with_a_visibility_graph_built_leg_by_leg(seed):
    domain = random_domain(seed)
    rings = [r for p in shapely.get_parts(domain.region) for r in (p.exterior, *p.interiors)]
    assume(not any(a.intersects(b) for a, b in combinations(rings, 2)))  # no obstacles that touch in a point
    cost, sites = Euclidean().within(domain), some_of(domain, seed, 6)
    nodes = np.concatenate([sites, shapely.get_coordinates(domain.region)])
    wide = domain.region.buffer(1e-7)
    graph = nx.Graph()
    graph.add_nodes_from(range(len(nodes)))
    for i in range(len(nodes)):
        for j in range(i):
            if wide.covers(shapely.LineString(nodes[[i, j]])):
                graph.add_edge(i, j, weight=float(np.linalg.norm(nodes[i] - nodes[j])))
    far = dict(nx.all_pairs_dijkstra_path_length(graph))
    expected = [[far[i].get(j, np.inf) for j in range(len(sites))] for i in range(len(sites))]

    assert cost.travel(sites, sites) == pytest.approx(np.array(expected), rel=1e-6, abs=1e-6)


def grid_distances(domain, steps):
    """Shortest distances (N, N) of moves between sites by `steps` that avoid obstacles."""
    sites, free = domain.sites, visibility_in(domain)
    index = domain.on_grid(np.arange(domain.size))
    rows, columns = [], []
    for step in steps:
        before = tuple(slice(max(0, -s), n - max(0, s)) for s, n in zip(step, index.shape, strict=True))
        after = tuple(slice(max(0, s), n + min(0, s)) for s, n in zip(step, index.shape, strict=True))
        i, j = index[before].ravel(), index[after].ravel()
        rows.append(i[(i >= 0) & (j >= 0)])
        columns.append(j[(i >= 0) & (j >= 0)])
    i, j = np.concatenate(rows), np.concatenate(columns)
    kept = np.array([free.free(sites[a : a + 1], sites[b : b + 1])[0, 0] for a, b in zip(i, j, strict=True)])
    i, j = i[kept], j[kept]
    graph = coo_array((np.linalg.norm(sites[i] - sites[j], axis=1), (i, j)), shape=(domain.size, domain.size))
    return dijkstra(graph, directed=False)


@pytest.mark.parametrize("d", [2, 3])
def test_routes_on_a_grid_are_at_least_as_long_and_little_longer(d):
    pillars = [box("a", (2, 2, 0)[:d], (4, 8, 6)[:d]), box("b", (6, 0, 0)[:d], (8, 6, 8)[:d])]
    domain = domain_with(*pillars, axes=SOLID[:d], shape=(11,) * d)
    steps = [tuple(np.subtract(s, 1)) for s in np.ndindex(*(3,) * d) if s > (1,) * d]
    rough, sites = grid_distances(domain, steps), domain.sites
    exact = Euclidean().within(domain).travel(sites, sites)
    apart = ~np.eye(domain.size, dtype=bool)

    # Moves along axes and diagonals are up to 8% (with three axes 13%) longer than straight ones. With three
    # axes, bends are off by part of a piece, which matters in short routes around an edge.
    over = exact[apart] / rough[apart]
    assert over.max() <= (1.0 + 1e-9 if d == 2 else 1.06)
    assert np.quantile(over, 0.999) <= (1.0 + 1e-9 if d == 2 else 1.005)
    assert (rough[apart] <= (1.09 if d == 2 else 1.14) * exact[apart]).all()


def test_three_axes_agree_with_two_where_obstacles_stand_floor_to_ceiling():
    flat = within(*TWO)
    tall = within(*(box(o.name, (*o.low, 0.0), (*o.high, 10.0)) for o in TWO), axes=SOLID, shape=(11, 11, 3))
    sites = some_of(domain_with(*TWO), 3)
    raised = np.column_stack([sites, np.full(len(sites), 5.0)])

    assert tall.travel(raised, raised) == pytest.approx(flat.travel(sites, sites))


# -- properties ------------------------------------------------------------------------------------------


@settings(max_examples=examples(30), deadline=None)
@given(seed=st.integers(0, 100_000), flies=st.booleans())
def test_no_route_crosses_an_obstacle_or_leaves_the_region(seed, flies):
    domain = random_domain(seed)
    cost = (DRONE if flies else Euclidean()).within(domain)
    for a, b in pairwise(some_of(domain, seed)):
        if np.isinf(cost.travel(a, b[None])[0]):
            continue
        route = shapely.LineString(cost.path(a, b))
        assert route.difference(domain.region.buffer(1e-6)).length == 0
        for obstacle in domain.obstacles:
            assert route.intersection(obstacle.polygon.buffer(-1e-6)).is_empty


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 100_000))
def test_no_route_crosses_a_box_over_three_axes(seed):
    domain = random_domain(seed, 3)
    cost = Euclidean().within(domain)
    for a, b in pairwise(some_of(domain, seed)):
        if np.isinf(cost.travel(a, b[None])[0]):
            continue
        route = cost.path(a, b)
        shares = np.linspace(0, 1, 101)[:, None]
        points = np.concatenate([p + shares * (q - p) for p, q in pairwise(route)])
        for obstacle in domain.obstacles:
            low, high = np.add(obstacle.low, 1e-6), np.subtract(obstacle.high, 1e-6)
            assert not np.any(np.all((points > low) & (points < high), axis=1))
        assert (points >= domain.low - 1e-9).all()
        assert (points <= domain.high + 1e-9).all()


@settings(max_examples=examples(16), deadline=None)
@given(seed=st.integers(0, 100_000), d=st.sampled_from([2, 3]), flies=st.booleans())
def test_the_cost_and_duration_of_a_route_are_the_sums_over_its_legs(seed, d, flies):
    domain, alone = random_domain(seed, d), DRONE if flies else Euclidean(rate=2.0, seconds_per_unit=3.0)
    cost, sites = alone.within(domain), some_of(domain, seed)
    price, seconds = cost.travel(sites, sites), cost.travel_s(sites, sites)
    for i, a in enumerate(sites[:2]):
        for j, b in enumerate(sites):
            if np.isinf(price[i, j]):
                assert np.isinf(seconds[i, j])
                continue
            legs = list(pairwise(cost.path(a, b)))
            assert price[i, j] == pytest.approx(sum(alone.travel(p, q[None])[0] for p, q in legs))
            assert seconds[i, j] == pytest.approx(sum(alone.travel_s(p, q[None])[0] for p, q in legs))


@settings(max_examples=examples(16), deadline=None)
@given(seed=st.integers(0, 100_000), d=st.sampled_from([2, 3]), flies=st.booleans())
@example(seed=1922, d=2, flies=False)
def test_no_detour_is_cheaper_than_the_leg_and_exact_bends_obey_the_triangle_inequality(seed, d, flies):
    domain, alone = random_domain(seed, d), DRONE if flies else Euclidean(axis_rates=(1.0, 2.0, 0.5)[:d])
    cost, sites = alone.within(domain), some_of(domain, seed)
    price = cost.travel(sites, sites)
    if d == 2 and not flies:  # bends are exact, and legs add up
        assert (price[:, None] <= price[:, :, None] + price[None] + 1e-9).all()
    assert (price >= alone.travel(sites, sites) - 1e-9).all()
    entered = np.isfinite(price).any(axis=0)  # none leads to a point at which two obstacles touch
    assert (np.diag(price)[entered] == 0).all()


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 100_000), d=st.sampled_from([2, 3]))
def test_costs_are_symmetric_if_climbing_is_free(seed, d):
    domain = random_domain(seed, d)
    sites = some_of(domain, seed)
    for cost in (Euclidean(), Flight(climb=0.0)):
        price = cost.within(domain).travel(sites, sites)
        assert price == pytest.approx(price.T, rel=1e-12)


def test_climbing_around_an_obstacle_is_more_expensive_than_descending():
    cost = within(SQUARE, cost=Flight(climb=100.0, descent=10.0, power=50.0, joules_per_unit=1.0))
    up, down = cost.travel([5, 4], [[5, 6]])[0], cost.travel([5, 6], [[5, 4]])[0]

    assert up - down == pytest.approx((100.0 - 10.0) * 2.0)


def test_each_leg_around_an_obstacle_starts_and_ends_at_rest():
    drone = Flight(speed=1.0, acceleration=0.5, power=10.0, joules_per_unit=1.0)
    cost = within(SQUARE, cost=drone)
    legs = [sqrt(5), 2.0, sqrt(5)]
    seconds = sum(s / 1.0 + 1.0 / 0.5 for s in legs)

    assert cost.travel_s([2, 5], [[8, 5]])[0] == pytest.approx(seconds)
    assert cost.travel([2, 5], [[8, 5]])[0] == pytest.approx(10.0 * seconds)


def test_a_longer_route_with_fewer_bends_is_cheaper_if_every_bend_is_a_stop():
    """One side of this obstacle is round and short to follow; the other is longer and has one corner."""
    angles = np.linspace(np.pi, 2 * np.pi, 13)
    belly = [(5 + 3 * np.cos(t), 5 + 3 * np.sin(t)) for t in angles]
    obstacle = Obstacle("hull", corners=(*belly, (5.0, 9.0)))
    quick = within(obstacle, cost=Flight(speed=1.0, acceleration=1e6))
    slow = within(obstacle, cost=Flight(speed=1.0, acceleration=1.0))
    a, b = [1.5, 5.0], [8.5, 5.0]

    assert quick.path(a, b)[1:-1, 1].max() <= 5.0
    assert len(quick.path(a, b)) > 10
    assert slow.path(a, b).tolist() == [a, [5.0, 9.0], b]


# -- caches ----------------------------------------------------------------------------------------------


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 100_000), d=st.sampled_from([2, 3]))
def test_costs_computed_alone_together_and_again_are_identical(seed, d):
    domain = random_domain(seed, d, (5, 5) if d == 2 else (3, 3, 2))
    sites, cost = domain.sites, DRONE.within(domain)
    table = cost.travel(sites, sites)

    assert np.array_equal(table, DRONE.within(domain).travel(sites, sites))
    assert cost.travel(sites, sites) is table
    assert np.array_equal(np.concatenate([cost.travel(s, sites)[None] for s in sites]), table)
    assert np.array_equal(np.column_stack([cost.travel(sites, s[None])[:, 0] for s in sites]), table)
    assert np.array_equal(DRONE.within(domain).travel(sites[3], sites), table[3])


def test_cached_costs_are_read_only():
    cost = within(SQUARE)
    sites = domain_with(SQUARE).sites

    with pytest.raises(ValueError, match="read-only"):
        cost.travel(sites, sites)[0, 0] = 1.0


def test_changed_sites_are_not_confused_with_cached_ones():
    cost, sites = within(SQUARE), np.array([[8.0, 5.0], [8.0, 8.0]] * 20)
    before = cost.travel([2, 5], sites).copy()
    sites[0] = [2.0, 5.0]

    assert cost.travel([2, 5], sites)[0] == 0.0
    assert np.array_equal(cost.travel([2, 5], sites)[1:], before[1:])


def test_the_least_recently_used_value_is_dropped_and_a_too_large_one_is_not_kept():
    cache, made = LruBytes(16, len), []

    def ask(key):
        return cache.get(("word", key), lambda: made.append(key) or "four")

    for key in (b"aaaa", b"bbbb", b"aaaa", b"cccc", b"aaaa", b"bbbb", b"d" * 13, b"d" * 13):
        assert ask(key) == "four"
        assert cache.total <= 16
    assert made == [b"aaaa", b"bbbb", b"cccc", b"bbbb", b"d" * 13, b"d" * 13]


def test_the_memory_of_cached_costs_is_bounded(monkeypatch):
    monkeypatch.setattr(module, "_MOST_BYTES", 100_000)
    cost, sites = within(SQUARE), domain_with(SQUARE).sites
    for site in sites[:60]:
        cost.travel(site, sites)
    cached = cost._paths._costs._values

    # Bytes of sites and of their costs; not all 60 rows fit.
    assert 50_000 < sum(v.nbytes + len(k[1]) + len(k[2]) for k, v in cached.items()) <= 100_000


def test_a_cost_bound_to_a_domain_can_be_pickled():
    cost = within(*TWO, cost=DRONE)
    sites = some_of(domain_with(*TWO), 0)
    table = cost.travel(sites, sites)
    sent = pickle.dumps(cost)

    assert np.array_equal(pickle.loads(sent).travel(sites, sites), table)


# -- visibility ------------------------------------------------------------------------------------------


def test_the_graph_holds_only_corners_at_which_a_route_may_bend():
    domain = domain_with(SQUARE, box("in a corner", (0, 0), (2, 1)))

    assert sorted(map(tuple, visibility_in(domain).corners)) == [(2, 1), (4, 4), (4, 6), (6, 4), (6, 6)]


def test_a_domain_in_which_every_leg_is_free_has_no_visibility_graph():
    assert visibility_in(domain_with()) is None
    assert visibility_in(domain_with(region=shapely.Polygon([(0, 0), (10, 0), (5, 10)]))) is None
    corner = box("corner", (0, 0), (2, 1))
    assert visibility_in(domain_with(corner)) is not None


def test_travel_at_no_cost_still_goes_around_obstacles():
    domain = domain_with(SQUARE)
    cost = Euclidean(rate=0.0).within(domain)

    assert cost.travel([2, 5], [[8, 5]])[0] == 0.0
    assert shapely.LineString(cost.path([2, 5], [8, 5])).within(domain.region.buffer(1e-6))


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e6])
@pytest.mark.parametrize("place", [0.0, 5e6])
def test_routes_along_walls_stay_open_at_any_size_and_place(size, place):
    unit = max(size, 1.0) if place else size
    region = shapely.difference(shapely.box(0, 0, 3, 3), shapely.box(1, 1, 2, 2))
    region = shapely.transform(region, lambda x: place + unit * x)
    paths = ShortestPaths(Outline(region, 3 * unit), cdist)
    points = place + unit * np.array([[0.0, 1.0], [3.0, 1.0], [1.0, 1.5], [2.0, 1.5]])
    distances = paths.travel(points, points) / unit

    assert distances[0, 1] == pytest.approx(3.0, rel=1e-6)
    assert distances[2, 3] == pytest.approx(2.0, rel=1e-6)


@pytest.mark.parametrize("extent", [1.0, 4.0, 8.0, 20.0, 1000.0])
def test_a_small_obstacle_far_from_zero_blocks_legs(extent):
    """At a northing of 5.5e6 m, coordinates in a domain of a few metres have few digits to spare."""

    def at(*shares):
        return tuple(5.5e6 + extent * x for x in shares)

    axes = [Axis(name, "m", *at(0, 1)) for name in "xy"]
    domain = domain_with(box("tank", at(0.75, 0.25), at(0.875, 0.625)), shape=(9, 9), axes=axes)
    cost = Euclidean().within(domain)

    assert domain.size == 81  # none of them strictly inside
    assert cost.travel(at(0.5, 0.5), [at(1, 0.5)])[0] > 0.5001 * extent
    assert len(cost.path(at(0.5, 0.5), at(1, 0.5))) > 2


def test_a_pole_with_a_tiny_area_blocks_legs():
    axes = [Axis(name, "m", 0.0, 1000.0) for name in "xy"]
    domain = domain_with(box("pole", (499.99, 499.9), (500.01, 499.92)), shape=(5, 5), axes=axes)

    assert not domain.clear
    assert len(Euclidean().within(domain).path([500, 0], [500, 1000])) == 3


def test_a_leg_along_a_face_is_free_and_one_through_the_box_is_not():
    visibility = Boxes(np.zeros(3), np.full(3, 9.0), np.full((1, 3), 3.0), np.full((1, 3), 6.0))
    starts = np.array([[0.0, 3.0, 4.0], [0.0, 4.0, 4.0], [0.0, 0.0, 0.0]])
    ends = np.array([[9.0, 3.0, 4.0], [9.0, 4.0, 4.0], [9.0, 9.0, 9.0]])

    assert np.diag(visibility.free(starts, ends)).tolist() == [True, False, False]

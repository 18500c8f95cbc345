"""A covariance along the water: limits, walls, spits, points between sites, fits, missions and refusals."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from checkout import ROOT
from scipy.optimize import approx_fprime
from tiers import swept

import fieldbo
from fieldbo._numerics.arrays import LruBytes
from fieldbo.agent.agent import Agent
from fieldbo.belief.hyperparameters import Hyperparameters, WithTrend
from fieldbo.belief.kernels import Matern52
from fieldbo.belief.marginal_likelihood import Likelihood, LogNormalPrior, fit_kernel
from fieldbo.belief.model import Model
from fieldbo.belief.posterior import Belief
from fieldbo.belief.question import LevelSet
from fieldbo.belief.shore_kernel import ShoreMatern52
from fieldbo.belief.site_graph import Placements, SiteGraph, site_graph
from fieldbo.belief.surface import Surface
from fieldbo.costs.travel import Euclidean
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.obstacles import Obstacle
from fieldbo.errors import InputError
from fieldbo.mission.kinds import POLICIES
from fieldbo.policies.paths.informative import InformativePath
from fieldbo.runs.runner import run
from fieldbo.testing import small_mission
from fieldbo.world.fields.gallery.tracer import Tracer

BENCHMARKS = ROOT / "benchmarks"


def square(n, obstacles=(), unit="m"):
    axes = [Axis("x", unit, 0, n - 1), Axis("y", unit, 0, n - 1)]
    return Domain.grid(axes, (n, n), obstacles=obstacles)


def lattice(columns=30, rows=34, keep=None):
    """Return scattered sites that form a hexagonal lattice, 1 apart."""
    places = [(i + (j % 2) / 2, j * np.sqrt(3) / 2) for j in range(rows) for i in range(columns)]
    sites = np.array([place for place in places if keep is None or keep(*place)])
    return Domain((Axis("x", "m", 0, 30), Axis("y", "m", 0, 30)), sites)


OPEN = square(41)
SPIT = square(21, [Obstacle("spit", (9.4, -0.5), (10.6, 15.5))])
CUT = square(13, [Obstacle("dam", (5.4, -1), (6.6, 14))])


def anywhere(domain, n, seed=0):
    points = np.random.default_rng(seed).uniform(domain.low, domain.high, (4 * n, domain.dimension))
    return points[domain.contains(points)][:n]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("domain", "length", "tolerance"),
    [
        (OPEN, 2.0, 0.03),
        (OPEN, 4.0, 0.005),
        (OPEN, 8.0, 0.005),
        (lattice(), 4.0, 0.01),
        (Domain.grid([Axis("x", "m", 0, 100)], (101,)), 5.0, 0.005),
        (Domain.grid([Axis("x", "m", 0, 100), Axis("y", "m", 0, 4)], (101, 1)), 5.0, 0.01),
        (Domain.grid([Axis("x", "m", 0, 40), Axis("y", "m", 0, 40)], (41, 61)), 6.0, 0.005),
        (Domain.grid([Axis(name, "m", 0, 12) for name in "xyz"], (13, 13, 13)), 3.0, 0.05),
    ],
    ids=[
        "2 spacings",
        "4 spacings",
        "8 spacings",
        "hexagons",
        "a line",
        "a thin grid",
        "oblong cells",
        "a volume",
    ],
)
def test_in_open_water_it_is_a_matern_kernel(domain, length, tolerance):
    middle = domain.sites[[domain.nearest((domain.low + domain.high) / 2)]]
    expected = Matern52(np.full(domain.dimension, length))(middle, domain.sites)

    covariances = ShoreMatern52(domain, [length])(middle, domain.sites)

    np.testing.assert_allclose(covariances, expected, atol=tolerance)


def test_a_straight_shore_changes_nothing():
    bay, ashore = square(25), np.array([[0.0, 12.0]])
    expected = Matern52([3.0, 3.0])(ashore, bay.sites)
    np.testing.assert_allclose(ShoreMatern52(bay, [3.0])(ashore, bay.sites), expected, atol=0.02)


@pytest.mark.parametrize("domain", [OPEN, SPIT, CUT, lattice()], ids=["open", "spit", "cut", "hexagons"])
@pytest.mark.parametrize("length", [0.05, 3.0, 500.0])
def test_a_covariance_matrix_is_symmetric_positive_definite_with_one_variance(domain, length):
    k = ShoreMatern52(domain, [length], 2.5)
    x = np.concatenate([anywhere(domain, 60), domain.sites[::7]])
    K = k(x, x)
    np.testing.assert_allclose(K, K.T, rtol=0, atol=1e-12)
    np.testing.assert_allclose(np.diag(K), 2.5, rtol=1e-9)
    np.testing.assert_array_equal(k.diagonal(x), np.full(len(x), 2.5))
    assert np.linalg.eigvalsh(K).min() > -1e-10


def test_nothing_is_correlated_across_a_dam():
    k, x = ShoreMatern52(CUT, [50.0]), anywhere(CUT, 80)
    sides = x[:, 0] < 6
    assert sides.any()
    assert not sides.all()
    np.testing.assert_array_equal(k(x[sides], x[~sides]), 0.0)
    assert (k(x[sides], x[sides]) > 0.5).all()


def test_correlation_around_a_spit_falls_with_the_way_along_the_water():
    k = ShoreMatern52(SPIT, [6.0])
    south_to_north = k(np.array([[9.0, y] for y in range(21)]), np.array([[11.0, y] for y in range(21)]))
    across = np.diag(south_to_north)
    assert (np.diff(across[:17]) > 0).all()
    assert across[0] < 0.01
    assert across[20] > 0.8


def test_a_lone_site_is_independent_of_the_others():
    far = Domain(
        (Axis("x", "m", 0, 30), Axis("y", "m", 0, 30)), np.append(lattice(8, 8).sites, [[25, 25]], 0)
    )
    k = ShoreMatern52(far, [40.0], 3.0)
    covariances = k(np.array([[25.0, 25.0]]), far.sites)[0]
    np.testing.assert_array_equal(covariances[:-1], 0.0)
    assert covariances[-1] == pytest.approx(3.0)


def test_a_single_site_has_its_variance():
    alone = Domain.grid([Axis("x", "m", 0, 1), Axis("y", "m", 0, 1)], (1, 1))
    np.testing.assert_allclose(ShoreMatern52(alone, [1.0], 2.0)(alone.sites, alone.sites), [[2.0]])


def test_a_strait_that_runs_along_a_diagonal_connects_its_sites():
    stairs = np.eye(9, dtype=bool).ravel()
    strait = square(9).restricted(stairs)
    graph = SiteGraph(strait)
    assert len(graph.parts) == 1
    np.testing.assert_allclose(graph.edges[1], 0.5)


def test_no_edge_crosses_a_shore():
    for domain in (SPIT, lattice(keep=lambda x, y: not (14.3 < x < 15.7 and y < 20))):
        pairs, _ = SiteGraph(domain).edges
        ends = domain.sites[pairs]
        crosses = (ends[:, :, 0].min(axis=1) < 10) & (ends[:, :, 0].max(axis=1) > 10)
        if domain is SPIT:
            assert (ends[crosses, :, 1] > 15.5).all()
        assert np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1).max() < 1.7


@pytest.mark.parametrize(
    "domain",
    [SPIT, Domain(SPIT.axes, SPIT.sites[:, :2], obstacles=SPIT.obstacles)],
    ids=["grid", "triangles"],
)
def test_a_point_is_interpolated_from_its_own_side_of_a_spit(domain):
    points = anywhere(domain, 300)
    nodes, weights = Placements(SiteGraph(domain)).placed(points)
    here = domain.sites[nodes]
    south = (points[:, 1] < 15)[:, None] & (weights > 0)
    side = (points[:, 0] < 10)[:, None]
    assert ((here[:, :, 0] < 10) == side)[south].all()
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    assert (weights >= 0).all()


def test_points_on_land_or_beyond_the_axes_count_as_the_nearest_shore():
    places = Placements(SiteGraph(SPIT))
    nodes, weights = places.placed(np.array([[9.6, 3.0], [10.4, 3.0], [-5.0, 3.0], [50.0, 50.0]]))
    at = np.einsum("pc,pcd->pd", weights, SPIT.sites[nodes])
    np.testing.assert_allclose(at, [[9, 3], [11, 3], [0, 3], [20, 20]], atol=1e-9)


def test_between_sites_it_stays_close_to_the_matern_kernel():
    x = 20.5 + np.random.default_rng(0).uniform(-8, 8, (60, 2))
    for length, tolerance in ((3.0, 0.04), (6.0, 0.01)):
        expected = Matern52([length, length])(x, x)
        np.testing.assert_allclose(ShoreMatern52(OPEN, [length])(x, x), expected, atol=tolerance)


def test_covariances_do_not_depend_on_what_else_is_asked_for():
    k, x = ShoreMatern52(SPIT, [4.0]), np.concatenate([anywhere(SPIT, 20), SPIT.sites[:20]])
    alone = np.array([[k(a[None], b[None])[0, 0] for b in x] for a in x])
    np.testing.assert_allclose(k(x, x), alone, rtol=1e-13, atol=1e-15)
    rows, some = k(SPIT.sites[3:5], SPIT.sites), k(SPIT.sites[3:5], SPIT.sites[7:9])
    np.testing.assert_allclose(rows[:, 7:9], some, rtol=1e-13, atol=1e-15)


def test_beliefs_with_many_length_scales_keep_no_matrix_over_all_sites():
    lake = square(31, [Obstacle("spit", (14.4, -0.5), (15.6, 22.5))])
    kernels = [ShoreMatern52(lake, [length]) for length in np.linspace(3.0, 9.0, 8)]
    kernels[0](lake.sites[:1], lake.sites)  # the eigenvectors, which all share
    tracemalloc.start()
    surfaces = [Surface(Belief(k), lake.sites) for k in kernels]
    for surface in surfaces:
        surface.append(lake.sites[::97], np.ones(len(lake.sites[::97])), 0.01)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.5 * 8 * lake.size**2


@pytest.mark.parametrize("domain", [SPIT, CUT], ids=["spit", "cut"])
def test_covariances_between_candidates_are_those_of_the_points(domain):
    shore = ShoreMatern52(domain, [5.0], 2.0)
    trend = WithTrend(shore, np.array([10.0, 10.0]), np.array([10.0, 10.0]))
    rows, everywhere = np.array([3, 50, 3]), np.arange(domain.size)
    for k in (shore, trend):
        for candidates in (domain.sites, domain.sites[::2]):
            for columns in (everywhere[: len(candidates)], np.array([7, 0])):
                expected = k(candidates[rows], candidates[columns])
                found = k.between(candidates, rows, columns)
                np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


def test_of_a_large_part_the_smoothest_eigenvectors_are_enough(monkeypatch):
    lake, middle = square(25), np.array([[12.0, 12.0]])
    whole = ShoreMatern52(lake, [8.0])(middle, lake.sites)
    monkeypatch.setattr("fieldbo.belief.site_graph.DENSE", 100)
    monkeypatch.setattr("fieldbo.belief.site_graph.TRUNCATED", 200)
    monkeypatch.setattr("fieldbo.belief.site_graph._SPECTRA", LruBytes(1, len))
    again = square(25)
    np.testing.assert_allclose(ShoreMatern52(again, [8.0])(middle, again.sites), whole, atol=5e-3)


def test_equal_domains_share_their_eigenpairs():
    assert SiteGraph(square(9)).parts is SiteGraph(square(9)).parts
    assert site_graph(SPIT) is site_graph(SPIT)


# -- fits --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("domain", [SPIT, CUT], ids=["spit", "cut"])
@pytest.mark.parametrize("noise", ["declared", "learned"])
def test_the_gradient_of_the_likelihood_agrees_with_finite_differences(domain, noise):
    rng = np.random.default_rng(1)
    x = np.concatenate([anywhere(domain, 20), domain.sites[::17]])
    y, v = np.sin(x[:, 0]) + x[:, 1] / 10, np.full(len(x), 0.01)
    k = ShoreMatern52(domain, [4.0], 1.3) if noise == "declared" else ShoreMatern52(domain, [9.0], 0.7)
    likelihood = Likelihood(k, x, y + 0.1 * rng.standard_normal(len(x)), v if noise == "declared" else None)
    theta = k.theta if noise == "declared" else np.append(k.theta, np.log(0.02))
    numeric = approx_fprime(theta, lambda t: likelihood(t)[0], 1e-6)
    np.testing.assert_allclose(likelihood(theta)[1], numeric, rtol=1e-4, atol=1e-3)


def test_covariances_of_pairs_are_entries_of_the_covariance_matrix():
    x = np.concatenate([anywhere(CUT, 12), CUT.sites[::9]])
    rows, columns = np.tril_indices(len(x))
    for length in (0.5, 3.0, 40.0):
        k = ShoreMatern52(CUT, [length], 1.7)
        covariances, _ = k.of_pairs(x, rows, columns)(k.theta)
        np.testing.assert_allclose(covariances, k(x, x)[rows, columns], rtol=1e-9, atol=1e-12)


def test_sums_and_products_with_other_kernels_can_be_fitted():
    x, rows, weights = SPIT.sites[::19], np.arange(10), np.arange(10.0)
    shore, plain = ShoreMatern52(SPIT, [4.0]), Matern52([3.0, 5.0])
    for k in (shore + plain, shore * plain):
        covariances, pullback = k.of_pairs(x, rows, rows + 5)(k.theta)
        np.testing.assert_allclose(covariances, k(x, x)[rows, rows + 5], rtol=1e-9)
        numeric = approx_fprime(k.theta, lambda t, k=k: weights @ k.of_pairs(x, rows, rows + 5)(t)[0], 1e-7)
        np.testing.assert_allclose(pullback(weights), numeric, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("length", [2.5, 6.0])
def test_a_fit_recovers_the_length_scale(length):
    k = ShoreMatern52(SPIT, [length], 2.0)
    rng, found = np.random.default_rng(0), []
    for _ in range(4):
        at = SPIT.sites[rng.choice(SPIT.size, 150, replace=False)]
        K = k(at, at) + 1e-4 * np.eye(150)
        y = np.linalg.cholesky(K) @ rng.standard_normal(150)
        prior = LogNormalPrior.standard(np.array([20.0]), with_noise=False)
        found.append(fit_kernel(k, at, y, np.full(150, 1e-4), prior, rng).kernel.length_scales[0])
    assert np.exp(np.mean(np.log(found))) == pytest.approx(length, rel=0.15)


# -- missions ----------------------------------------------------------------------------------------------


def test_hyperparameters_survive_as_plain_data():
    model = Model(kernel="shore-matern52", length_scales=(3.0,))
    first = model.initial(SPIT, LevelSet(0.0))
    again = Hyperparameters.from_plain(first.to_plain(), SPIT)
    assert again.to_plain() == first.to_plain()
    np.testing.assert_array_equal(again.kernel(SPIT.sites, SPIT.sites), first.kernel(SPIT.sites, SPIT.sites))


def test_by_default_the_length_scale_is_a_share_of_the_longest_axis():
    wide = Domain.grid([Axis("x", "m", 0, 20), Axis("y", "m", 0, 5)], (21, 6))
    first = Model(kernel="shore-matern52").initial(wide, LevelSet(0.0))
    np.testing.assert_allclose(first.kernel.length_scales, [6.0])


def lake():
    world = small_mission().world
    domain = SPIT
    field = Tracer(reach=6.0, sources=2).make(domain, draw=0)
    return replace(world, domain=domain, field=field, cost=Euclidean(sampling=2.0), start=domain.sites[0])


ON_A_GRID = [
    name
    for name in POLICIES.names()
    if not POLICIES.get(name).leaves_free and "declared" in POLICIES.get(name).costs
    if not POLICIES.get(name).__module__.startswith("fieldbo.policies.chains")
    if name != "informative-path"  # which needs gradients
]


@pytest.mark.parametrize("name", swept(ON_A_GRID, ["distance-penalised", "rollout", "search-tour", "truvar"]))
def test_every_policy_for_grids_works_with_it(name):
    kind = POLICIES.get(name)
    policy = kind(**{"rollout": {"fantasies": 4}, "ducb": {"rho": 0.1}}.get(name, {}))
    mission = replace(small_mission(policy, world=lake(), battery=90.0, initial=5), model=LEARNING)
    result = run(mission)
    assert len(result.values) >= 6
    assert result.summary()["hyperparameters"]["kernel"] == "shore-matern52"


def test_a_policy_that_needs_gradients_is_rejected_before_the_first_order():
    mission = replace(small_mission(InformativePath(), world=lake(), battery=90.0), model=LEARNING)
    with pytest.raises(InputError, match="no gradients"):
        Agent(mission)


LEARNING = Model(kernel="shore-matern52", learn={"every": 5}, length_scales=(5.0,))


def test_outliers_are_tested_and_noise_is_learned_with_it():
    model = replace(LEARNING, outliers="tested", noise="learned")
    result = run(replace(small_mission(world=lake(), battery=90.0, initial=8), model=model))
    assert result.summary()["hyperparameters"]["noise_variance"] > 0


def test_a_reading_between_sites_informs_its_own_side_of_a_spit():
    prior = Belief(ShoreMatern52(SPIT, [5.0]))
    belief = prior.condition_on([[8.6, 3.4]], [2.0], [0.01])
    west, east = belief.variance([[8.0, 3.0], [11.0, 3.0]])
    assert west < 0.1
    assert east > 0.99
    surface = Surface(prior, SPIT.sites)
    surface.append([[8.6, 3.4]], [2.0], [0.01])
    np.testing.assert_allclose(surface.mean, belief.mean(SPIT.sites), atol=1e-12)


# -- refusals ----------------------------------------------------------------------------------------------


def refused(domain, **settings):
    with pytest.raises(InputError) as error:
        Model(kernel="shore-matern52", **settings).initial(domain, LevelSet(0.0))
    return error.value


def test_a_box_is_refused_by_name():
    axes = [Axis("x", "m", 0, 1), Axis("y", "m", 0, 1)]
    assert 'kernel = "shore-matern52" needs a list of sites' in refused(Domain.box(axes)).problem


def test_different_units_are_refused():
    transect = Domain.grid([Axis("along", "km", 0, 1), Axis("depth", "m", 0, 18)], (5, 5))
    assert "the axes are in km and m" in refused(transect).problem


def test_too_many_sites_and_axes_are_refused_before_anything_is_computed():
    axes = [Axis(name, "m", 0, 1) for name in "abcd"]
    assert "on 10201 sites" in refused(square(101)).problem
    assert "on 4 axes" in refused(Domain.grid(axes, (2, 2, 2, 2))).problem
    assert "on 1 axis" in refused(Domain(tuple(axes[:1]), np.array([[0.0], [1.0]]))).problem


def test_sites_on_a_line_have_no_triangulation():
    line = Domain((Axis("x", "m", 0, 9), Axis("y", "m", 0, 9)), np.arange(5.0)[:, None] * [1.0, 1.0])
    with pytest.raises(InputError, match="lie on a line"):
        ShoreMatern52(line, [1.0])(line.sites, line.sites)


def test_it_has_a_single_length_scale():
    assert refused(SPIT, length_scales=(3.0, 3.0)).problem == "2 length scales for kernel = 'shore-matern52'"
    assert "out of range" in refused(SPIT, length_scales=(-3.0,)).problem
    with pytest.raises(InputError, match="2 length scales"):
        ShoreMatern52(SPIT, [3.0, 3.0])
    with pytest.raises(InputError, match="not above 0"):
        ShoreMatern52(SPIT, [3.0], 0.0)


def test_it_has_no_gradients():
    with pytest.raises(InputError, match="shore-matern52 has no gradients"):
        ShoreMatern52(SPIT, [3.0]).with_slopes(SPIT.sites, SPIT.sites)


def test_a_policy_for_boxes_is_refused_with_it():
    with pytest.raises(InputError, match="shore-matern52"):
        fieldbo.load_mission("se-optimum", {"model": {"kernel": "shore-matern52", "length_scales": [0.2]}})


# -- evidence ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_spit_makes_a_map_along_the_water_better(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import shore_kernel as benchmark

    errors = benchmark.errors("spit", [60], 3)[:, 0]
    assert errors.shape == (3, 2)
    quotient, error = benchmark.ratio(*errors.T)
    assert quotient < 0.8
    assert error > 0

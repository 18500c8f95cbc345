"""A prior mean: the belief around it, the files it comes from, and rasters as true fields."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import LinearNDInterpolator, RegularGridInterpolator
from small_files import mission_text, world_text
from tiers import examples
from working_folder import edit, write

import fieldbo
from fieldbo.agent.agent import Agent
from fieldbo.belief.kernels import Matern52
from fieldbo.belief.mean_functions import Gridded, MeanFunction, PriorMean, Scattered
from fieldbo.belief.model import Model
from fieldbo.belief.posterior import Belief
from fieldbo.belief.question import LevelSet, Optimum
from fieldbo.belief.readings import Data
from fieldbo.belief.surface import Surface
from fieldbo.belief.value_scale import ValueScale
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError
from fieldbo.mission.prior import Prior
from fieldbo.policies.baselines import Straddle
from fieldbo.policies.chains.lambo import LaMBO
from fieldbo.policies.control_sets.subsets import Subsets
from fieldbo.policies.level_set.truvar import TruVaR
from fieldbo.policies.optimum.myopic import EI, EntropySearch
from fieldbo.policies.travel.one_step import DistUCB
from fieldbo.policies.travel.rollout import Rollout
from fieldbo.runs.folder import begin
from fieldbo.runs.replay import load_run
from fieldbo.runs.runner import resume, run
from fieldbo.testing import small_chain, small_mission, small_world
from fieldbo.world.raster import read_mean, read_raster

rasterio = pytest.importorskip("rasterio")


class Slope(MeanFunction):
    """``2 + 0.3 x - 0.1 y^2``."""

    def with_gradient(self, points):
        x, y = points.T
        return 4 + 0.3 * x - 0.1 * y**2, np.column_stack([np.full(len(x), 0.3), -0.2 * y])


# -- mean functions ----------------------------------------------------------------------------------------


@settings(max_examples=examples(25), deadline=None)
@given(seed=st.integers(0, 999), d=st.integers(1, 3), scattered=st.booleans())
def test_a_mean_function_interpolates_linearly_and_knows_its_gradient(seed, d, scattered):
    rng = np.random.default_rng(seed)
    points = rng.uniform(0.3, 2.7, (20, d))
    if scattered and d > 1:
        sites = np.vstack(
            [rng.uniform(0, 3, (30, d)), np.stack(np.meshgrid(*[[0, 3]] * d), -1).reshape(-1, d)]
        )
        values = rng.standard_normal(len(sites))
        mean = Scattered(sites, values)
        expected = LinearNDInterpolator(sites, values)(points)
    else:
        ticks = [np.sort(np.append(rng.uniform(0, 3, 3), [0, 3])) for _ in range(d)]
        nodes = rng.standard_normal([5] * d)
        mean = Gridded(ticks, nodes)
        expected = RegularGridInterpolator(ticks, nodes)(points)
    np.testing.assert_allclose(mean.values(points), expected, atol=1e-9)
    value, gradient = mean.with_gradient(points)
    np.testing.assert_allclose(value, expected, atol=1e-9)
    h = 1e-7
    for j in range(d):
        step = h * np.eye(d)[j]
        slope = (mean.values(points + step) - mean.values(points - step)) / (2 * h)
        good = np.isclose(slope, gradient[:, j], atol=1e-4)
        assert good.mean() >= 0.9  # the others straddle a crease
    assert mean.covers(points).all()
    assert not mean.covers(points + 10).any()
    assert np.isfinite(mean.values(points + 10)).all()


def test_gaps_of_a_grid_are_filled_from_the_nearest_node_and_do_not_count_as_covered():
    nodes = np.array([[1.0, 2.0, np.nan, np.nan], [1.0, 2.0, np.nan, np.nan]])
    mean = Gridded([[0, 1], [0, 1, 2, 3]], nodes)
    points = np.array([[0.5, 0.5], [0.5, 1.5], [0.5, 2.5], [0.0, 2.0]])
    assert mean.values(points).tolist() == [1.5, 2.0, 2.0, 2.0]
    assert mean.covers(points).tolist() == [True, True, False, False]


def test_a_single_row_of_nodes_is_the_same_everywhere_across():
    mean = Gridded([[3.0], [0, 2]], [[1.0, 5.0]])
    value, gradient = mean.with_gradient(np.array([[3.0, 1.0]]))
    assert (value.tolist(), gradient.tolist()) == ([3.0], [[0.0, 2.0]])


# -- the belief --------------------------------------------------------------------------------------------


@settings(max_examples=examples(20), deadline=None)
@given(
    seed=st.integers(0, 999), transform=st.sampled_from(["none", "log"]), scale=st.sampled_from([0.7, -1.3])
)
def test_a_belief_with_a_prior_mean_is_the_mean_plus_the_belief_in_the_residuals(seed, transform, scale):
    rng = np.random.default_rng(seed)
    x, points = rng.uniform(0, 4, (9, 2)), rng.uniform(0, 4, (12, 2))
    x[8] = x[0]  # a repeated site
    mean = PriorMean(Slope(), ValueScale(transform, 0.4, scale))
    y, v = rng.standard_normal(9), rng.uniform(0.01, 0.3, 9)
    prior = Belief(Matern52([1.0, 1.5]))
    residual = prior.condition_on(x, y - mean(x), v)
    whole = replace(prior, prior_mean=mean).condition_on(x, y, v)

    np.testing.assert_allclose(whole.mean(points), residual.mean(points) + mean(points))
    np.testing.assert_allclose(whole.variance(points), residual.variance(points))
    assert whole.log_marginal_likelihood() == pytest.approx(residual.log_marginal_likelihood())
    np.testing.assert_allclose(whole.mean_at_sites(), whole.mean(whole.sites))
    for a, b, plus in zip(
        whole.leave_one_out(), residual.leave_one_out(), (mean(whole.sites), 0), strict=True
    ):
        np.testing.assert_allclose(a, b + plus)
    moments, h = whole.with_gradients(points), 1e-6
    np.testing.assert_allclose(moments.mean, whole.mean(points))
    for j in range(2):
        step = h * np.eye(2)[j]
        slope = (whole.mean(points + step) - whole.mean(points - step)) / (2 * h)
        np.testing.assert_allclose(moments.mean_gradient[:, j], slope, atol=1e-5)
    empty = replace(prior, prior_mean=mean).with_gradients(points)
    np.testing.assert_allclose(empty.mean, mean(points))
    np.testing.assert_allclose(empty.mean_gradient, mean.with_gradient(points)[1])

    surface = Surface(replace(prior, prior_mean=mean), points)
    for k in range(9):
        surface.append(x[k : k + 1], y[k : k + 1], v[k : k + 1])
    np.testing.assert_allclose(surface.mean, whole.mean(points))
    np.testing.assert_allclose(surface.believing(points[:2], 0.1).mean, whole.mean(points))
    surface.append(np.repeat(x[:1], 20, axis=0), np.repeat(y[0], 20), 0.1)  # enough to be pooled
    again = whole.condition_on(np.repeat(x[:1], 20, axis=0), np.repeat(y[0], 20), 0.1)
    np.testing.assert_allclose(surface.mean, again.mean(points))
    draws = whole.sample(points, 4000, np.random.default_rng(0))
    np.testing.assert_allclose(draws.mean(axis=0), whole.mean(points), atol=0.1)


def test_a_fit_standardises_what_readings_differ_from_the_prior_mean():
    rng = np.random.default_rng(0)
    domain = small_world().domain
    sites, noise = domain.sites, np.full(domain.size, 0.01)
    means = Slope().values(sites)
    residuals = 3.0 + rng.standard_normal(domain.size)
    model, question = Model(), LevelSet(4.0)
    present = model.initial(domain, question, has_prior_mean=True)
    fitted = model.fitted(
        present,
        domain,
        question,
        Data(sites, means + residuals, noise, means),
        np.random.default_rng(0),
    )
    assert fitted.scale.shift == pytest.approx(residuals.sum() / (domain.size + 5))
    plain = model.fitted(
        model.initial(domain, Optimum()),
        domain,
        LevelSet(0.0),
        Data(sites, residuals, noise),
        np.random.default_rng(0),
    )
    np.testing.assert_allclose(fitted.kernel.theta, plain.kernel.theta, atol=1e-5)


@pytest.mark.parametrize("learn", [False, {"every": 4}])
@pytest.mark.parametrize(
    "policy",
    [
        TruVaR(),
        Straddle(),
        EI(),
        EntropySearch(),
        DistUCB(),
        Rollout(base="ei", fantasies=8),
        Rollout(base="dist-ucb", fantasies=8, horizon=2),
        LaMBO(candidates=100),
    ],
    ids=lambda p: type(p).__name__,
)
def test_a_constant_prior_mean_leads_every_policy_along_the_path_of_that_model_mean(policy, learn):
    chain = isinstance(policy, LaMBO)
    plain = small_mission(
        policy, world=small_chain() if chain else None, battery=40 if chain else 20, initial=3
    )
    d = plain.world.domain.dimension
    model = Model(learn=learn, length_scales=(2.0,) * d, mean=0.5)

    class Constant(MeanFunction):
        def with_gradient(self, points):
            return np.full(len(points), 0.5), np.zeros(points.shape)

    by_model = fieldbo.run(replace(plain, model=model))
    by_prior = fieldbo.run(replace(plain, model=replace(model, mean=None), prior=Prior(mean=Constant())))
    np.testing.assert_allclose(by_prior.sites, by_model.sites, atol=1e-4)
    np.testing.assert_allclose(*(r.scale.to_user(r.surface.mean) for r in (by_prior, by_model)), atol=1e-3)


def test_answers_maps_and_outlier_tests_include_the_prior_mean():
    world = small_world()

    class Known(MeanFunction):
        def with_gradient(self, points):
            return world.truth(points) + 5, np.zeros(points.shape)

    model = Model(learn=False, length_scales=(2.0, 2.0), outliers="tested", variance=0.01)
    plain = small_mission(world=world, battery=8, question=LevelSet(5.3))
    shifted = replace(world, field=_Shifted(world.field))
    mission = replace(plain, world=shifted, model=model, prior=Prior(mean=Known()))
    assert (Agent(mission).surface.mean + 0.0 == world.truth(world.domain.sites) + 5).all()
    result = fieldbo.run(mission)
    assert result.f1 == 1.0
    assert result.believed.all()
    np.testing.assert_allclose(
        result.maps()["mean"].to_numpy().ravel(), world.truth(world.domain.sites) + 5, atol=0.2
    )


class _Shifted(type(small_world().field)):
    def __init__(self, field):
        self.field = field

    def values(self, sites, time_s=0.0):
        return self.field.values(sites, time_s) + 5


def test_a_prior_mean_is_refused_where_it_cannot_be_right():
    class Constant(MeanFunction):
        def with_gradient(self, points):
            return np.full(len(points), -1.0), np.zeros(points.shape)

    prior = Prior(mean=Constant())
    with pytest.raises(InputError, match="policy Subsets works with control sets"):
        replace(small_mission(Subsets()), prior=prior)
    with pytest.raises(InputError, match=r"model.mean = 0, and there is a prior mean"):
        replace(small_mission(), prior=prior)
    log = Model(transform="log", learn=False, length_scales=(2.0, 2.0))
    with pytest.raises(InputError, match="the prior mean reaches -1"):
        replace(small_mission(), model=log, prior=prior)


# -- files -------------------------------------------------------------------------------------------------

DOMAIN = Domain.grid([Axis("x", "m", 0, 8), Axis("y", "m", 0, 4)], (5, 3))
LEVEL = "10 * x + y"


def level(x, y):
    return 10.0 * x + y


def write_tiff(path, x, y, values, nodata=None, **more):
    """Write values (len(y), len(x)) with increasing x and decreasing y, as GeoTIFFs are."""
    dx, dy = x[1] - x[0], y[1] - y[0]
    transform = more.pop("transform", None) or rasterio.Affine(dx, 0, x[0] - dx / 2, 0, dy, y[0] - dy / 2)
    with rasterio.open(
        path, "w", driver="GTiff", width=len(x), height=len(y), count=more.pop("count", 1), dtype="float32",
        transform=transform, nodata=nodata, **more,
    ) as out:  # fmt: skip
        for band in out.indexes:
            out.write(values.astype("float32") * band, band)


X, Y = np.arange(-0.5, 10, 1.0), np.arange(5.5, -2, -1.0)
NORTH_UP = level(*np.meshgrid(X, Y))


def test_a_geotiff_is_turned_so_that_y_increases_and_its_nodata_are_missing(tmp_path):
    values = np.where(NORTH_UP > 100, -9999, NORTH_UP)
    write_tiff(tmp_path / "r.tif", X, Y, values, nodata=-9999, crs="EPSG:2056")
    raster = read_raster(tmp_path / "r.tif")
    assert raster.y.tolist() == Y[::-1].tolist()
    assert raster.x.tolist() == X.tolist()
    assert raster.crs == "EPSG:2056"
    np.testing.assert_allclose(raster.values[0, 0], level(-0.5, -1.5))
    assert np.isnan(raster.values[-1, -1])


@pytest.mark.parametrize(
    "kind", ["tif", "nc", "nc4", "nc, y up", "nc, axes turned", "grid.csv", "scatter.csv"]
)
def test_every_kind_of_file_gives_the_same_mean(kind, tmp_path):
    path = tmp_path / kind.split(",")[0].replace("nc4", "r.nc").replace(" ", "")
    path = path if "." in path.name else tmp_path / f"r.{path.name}"
    if kind == "tif":
        write_tiff(path, X, Y, NORTH_UP)
    elif kind.startswith("nc"):
        if kind == "nc4":
            pytest.importorskip("h5py")
        names = ("y", "x") if "turned" not in kind else ("x", "y")
        up = "up" in kind
        y, values = (Y[::-1], NORTH_UP[::-1]) if up else (Y, NORTH_UP)
        values, coords = (values, {"y": y, "x": X}) if names[0] == "y" else (values.T, {"x": X, "y": y})
        array = xarray.DataArray(values, dims=names, coords=coords, name="level")
        array.to_netcdf(path, engine="h5netcdf" if kind == "nc4" else "scipy")
    else:
        rng = np.random.default_rng(0)
        sites = np.stack(np.meshgrid(X, Y), axis=-1).reshape(-1, 2)
        if kind == "scatter.csv":
            sites = np.vstack([sites[::3], [[-1, -1], [-1, 5], [9, -1], [9, 5]]])
        rows = [f"{y},{x},{level(x, y)}" for x, y in rng.permutation(sites).tolist()]
        write(path, "\n".join(["y,x,value", *rows]))
    mean = read_mean(path, DOMAIN, None, "chlorophyll")
    assert mean.covers(DOMAIN.sites).all()
    np.testing.assert_allclose(mean.values(DOMAIN.sites), level(*DOMAIN.sites.T), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(
        mean.with_gradient(DOMAIN.sites)[1], np.tile([10.0, 1.0], (DOMAIN.size, 1)), rtol=1e-5
    )


def test_a_raster_covers_its_outer_cells_and_no_more(tmp_path):
    write_tiff(tmp_path / "r.tif", X, Y, NORTH_UP)
    mean = read_mean(tmp_path / "r.tif", DOMAIN, None, "")
    points = np.array([[-0.9, 0], [-1.1, 0], [9.9, 0], [10.1, 0], [0, 5.9], [0, 6.1]])
    assert mean.covers(points).tolist() == [True, False] * 3


def bands(path):
    write_tiff(path, X, Y, NORTH_UP, count=2)


def rotated(path):
    write_tiff(path, X, Y, NORTH_UP, transform=rasterio.Affine(1, 0.2, 0, 0.2, -1, 5))


def noise(path):
    path.write_bytes(b"no raster at all" * 9)


def variables(path):
    grid = xarray.DataArray(NORTH_UP, dims=("y", "x"), coords={"y": Y, "x": X})
    over_time = grid.expand_dims(t=3)
    xarray.Dataset({"a": grid, "b": 2 * grid, "c": over_time}).to_netcdf(path, engine="scipy")


def unplaced(path):
    xarray.DataArray(NORTH_UP, dims=("y", "x"), name="a").to_netcdf(path, engine="scipy")


@pytest.mark.parametrize(
    ("make", "name", "value", "problem"),
    [
        (bands, "r.tif", None, "the raster has 2 bands"),
        (bands, "r.tif", "3", "unknown band '3'"),
        (rotated, "r.tif", None, "the raster is rotated"),
        (noise, "r.tif", None, "r.tif can't be read"),
        (noise, "r.nc", None, "r.nc can't be read"),
        (variables, "r.nc", None, "the file has 2 variables over two dimensions: a, b"),
        (variables, "r.nc", "d", "unknown variable 'd'"),
        (variables, "r.nc", "c", "variable c has the dimensions t, y, x"),
        (unplaced, "r.nc", None, "dimension x of a has no coordinates"),
        (noise, "r.png", None, "r.png is not a raster"),
        (lambda path: None, "r.tif", None, "there is no file r.tif"),
    ],
)
def test_a_raster_that_cannot_be_read_is_explained(make, name, value, problem, tmp_path):
    make(tmp_path / name)
    with pytest.raises(InputError, match=problem):
        read_raster(tmp_path / name, value)


def test_bands_and_variables_are_chosen_by_name(tmp_path):
    bands(tmp_path / "r.tif")
    variables(tmp_path / "r.nc")
    np.testing.assert_allclose(read_raster(tmp_path / "r.tif", "2").values, 2 * NORTH_UP[::-1])
    np.testing.assert_allclose(read_raster(tmp_path / "r.nc", "b").values, 2 * NORTH_UP[::-1])


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ("x,y,value\n0,0,1\n0,0,2\n8,4,1\n", "1 rows repeat a place"),
        ("x,y,value\n0,0,1\n2,1,2\n4,2,3\n", "on a line"),
        ("x,y,level\n0,0,1\n", "call the column of the value 'chlorophyll' or value"),
        ("x,y,value\n0,0,1\n2,1,\n", "the cell is empty"),
    ],
)
def test_a_table_that_cannot_be_a_mean_is_explained(rows, problem, tmp_path):
    write(tmp_path / "m.csv", rows)
    with pytest.raises(InputError, match=problem):
        read_mean(tmp_path / "m.csv", DOMAIN, None, "chlorophyll")


def test_a_raster_over_three_axes_is_rejected(tmp_path):
    write_tiff(tmp_path / "r.tif", X, Y, NORTH_UP)
    with pytest.raises(InputError, match="a raster has two axes, and the domain has 3"):
        read_mean(tmp_path / "r.tif", Domain.grid([Axis(n, "m", 0, 1) for n in "xyz"], (2, 2, 2)), None, "")


# -- missions and worlds -----------------------------------------------------------------------------------

WORLD = world_text(
    ("x", 0, 8, 5),
    ("y", 0, 4, 3),
    title="a field from a raster",
    field={"kind": "raster", "file": "truth.tif"},
)
MISSION = mission_text("lake", threshold=40, battery=30, prior={"mean": "model.tif"})


@pytest.fixture
def lake(tmp_path, monkeypatch):
    """Work in a folder that holds a world whose truth is a raster, and a mission with a prior mean."""
    monkeypatch.chdir(tmp_path)
    write("worlds/lake/world.toml", WORLD)
    write("m.toml", MISSION)
    write_tiff("worlds/lake/truth.tif", X, Y, NORTH_UP)
    write_tiff("model.tif", X, Y, NORTH_UP + np.sin(X))


def test_a_raster_is_the_truth_of_a_world(lake, command):
    world = fieldbo.load_mission("m.toml").world
    np.testing.assert_allclose(world.truth(world.domain.sites), level(*world.domain.sites.T), rtol=1e-6)
    assert world.truth([[1.0, 1.0]]) == pytest.approx([11.0])
    write_tiff("worlds/lake/truth.tif", X[:6], Y, NORTH_UP[:, :6])
    code, _, error = command("check", "lake")
    assert code == 2
    assert "truth.tif does not cover 6 of 15 sites; the first is [6.0, 0.0]" in " ".join(error.split())


def test_a_run_with_a_prior_mean_resumes_without_the_original_file(lake, said, tmp_path):
    mission = fieldbo.load_mission("m.toml", {"agent": {"max_steps": 8}})
    assert "mean      0 to 84.87, by site" in said("check", "m.toml")
    whole, record = begin(mission, Path("whole"))
    with record:
        result = run(mission, record=record)
    half, record = begin(mission, Path("half"))
    append, done = record._append, [0]

    def dies(rows):
        append(rows)
        done[0] += 1
        if done[0] == 5:
            raise KeyboardInterrupt

    record._append = dies
    with record, pytest.raises(KeyboardInterrupt):
        run(mission, record=record)
    Path("model.tif").unlink()
    shutil.move(half, tmp_path / "moved")
    again = resume(tmp_path / "moved")
    assert np.array_equal(again.surface.mean, result.surface.mean)
    assert np.array_equal(load_run(whole).agent.stated.surface.mean, result.surface.mean)
    (whole / "prior-mean.tif").write_bytes(b"")
    with pytest.raises(InputError, match=r"changed since the run began: prior-mean\.tif"):
        load_run(whole)


@pytest.mark.slow
def test_the_map_of_one_run_is_the_prior_mean_of_the_next(lake, said):
    write("first.toml", MISSION.partition("[prior]")[0])
    said("run", "first.toml", "--out", "first")
    shutil.copy("first/map.nc", "map.nc")
    edit("m.toml", '"model.tif"', '{ file = "map.nc", value = "mean" }')
    mission = fieldbo.load_mission("m.toml")
    expected = load_run("first").result().maps()["mean"].to_numpy().ravel()
    np.testing.assert_allclose(mission.prior.mean.values(mission.world.domain.sites), expected, rtol=1e-5)
    said("run", "m.toml", "--out", "second")
    assert (Path("second") / "prior-mean.nc").is_file()


def test_a_mean_that_does_not_cover_the_domain_is_rejected(lake, command):
    write_tiff("model.tif", X, Y[:-3], NORTH_UP[:-3])
    code, _, error = command("run", "m.toml")
    assert code == 2
    assert "the prior mean does not cover 5 of 15 sites; the first is [0.0, 0.0]" in " ".join(error.split())


def test_a_prior_mean_made_in_python_runs_without_a_folder_only(lake):
    mission = replace(fieldbo.load_mission("m.toml"), prior=Prior(mean=Slope()))
    assert fieldbo.run(mission).steps > 0
    with pytest.raises(InputError, match="a prior mean made in Python"):
        begin(mission, Path("here"))
    assert not Path("here").exists()

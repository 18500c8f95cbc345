"""Fields: random functions against their formulas, tables against their files, and the svm-grid table."""

import csv
import runpy
from itertools import product

import numpy as np
import pytest
from checkout import ROOT
from scipy.linalg import cholesky

import fieldbo
from fieldbo._numerics.blas import one_blas_thread
from fieldbo._numerics.streams import stream
from fieldbo.belief.kernels import SquaredExponential
from fieldbo.belief.posterior import Belief
from fieldbo.belief.surface import Surface
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError
from fieldbo.world.fields.files import GridTable
from fieldbo.world.fields.gp_draw import GPDraw, GPMean, joint

SQUARE = Domain.grid([Axis("x", "", 0, 1), Axis("y", "", 0, 1)], (12, 12))
ANYWHERE = np.random.default_rng(5).uniform(0, 1, (40, 2))


# -- random functions ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [GPDraw((0.1, 0.1), "se"), GPMean((0.1, 0.1))], ids=["gp-draw", "gp-mean"])
def test_equal_draws_give_equal_functions_and_other_draws_others(kind):
    first, again, other = (kind.make(SQUARE, draw) for draw in (3, 3, 4))
    for sites in (SQUARE.sites, ANYWHERE):
        assert np.array_equal(first.values(sites), again.values(sites))
        assert (first.values(sites) != other.values(sites)).all()


@pytest.mark.parametrize("kind", [GPDraw((0.1,), "se"), GPMean((0.1, 0.1, 0.1))], ids=["gp-draw", "gp-mean"])
def test_a_random_function_needs_one_length_scale_per_axis(kind):
    with pytest.raises(InputError, match="length_scales"):
        kind.make(SQUARE, 0)


def test_a_posterior_mean_matches_the_formula_for_the_values_drawn_at_its_points():
    k = SquaredExponential([0.1, 0.2], 2.0)
    rng = stream(7, "field")
    points = rng.uniform(0, 1, (50, 2))
    K = k(points, points) + 2e-8 * np.eye(50)
    drawn = np.linalg.cholesky(K) @ rng.standard_normal(50)
    field = GPMean((0.1, 0.2), points=50, variance=2.0, mean=5.0).make(SQUARE, 7)

    expected = 5.0 + k(ANYWHERE, points) @ np.linalg.solve(K, drawn)
    assert np.allclose(field.values(ANYWHERE), expected, rtol=0, atol=1e-6)
    assert np.allclose(field.values(points), 5.0 + drawn, rtol=0, atol=1e-3)


def test_a_posterior_mean_does_not_depend_on_the_domains_sites():
    coarse = Domain.grid(SQUARE.axes, (2, 2))
    first, second = (GPMean((0.1, 0.1)).make(domain, 0) for domain in (SQUARE, coarse))

    assert np.array_equal(first.values(ANYWHERE), second.values(ANYWHERE))


def test_a_posterior_mean_is_smooth_between_its_points():
    field, step = GPMean((0.1, 0.1)).make(SQUARE, 0), 1e-4
    _, slopes = field.kernel.with_slopes(ANYWHERE, field.points)
    slope = slopes(np.broadcast_to(field.weights, (len(ANYWHERE), len(field.points))))

    for axis, e in enumerate(step * np.eye(2)):
        rise = field.values(ANYWHERE + e) - field.values(ANYWHERE - e)
        assert np.allclose(rise / (2 * step), slope[:, axis], rtol=1e-3, atol=1e-3)


def test_posterior_means_of_unit_variance_vary_by_about_one():
    inside = 0.05 + 0.9 * ANYWHERE
    values = [GPMean((0.1, 0.1)).make(SQUARE, draw).values(inside) for draw in range(60)]

    assert abs(np.mean(values)) < 0.1
    assert np.var(values) == pytest.approx(1.0, abs=0.1)


def test_a_field_of_which_nearly_all_is_known_can_be_drawn():
    grid = SQUARE.sites
    readings = Belief(SquaredExponential([9.0, 9.0])).condition_on(np.tile(grid, (3, 1)), np.zeros(432), 1e-4)
    surface = Surface(readings, grid)
    with pytest.raises(np.linalg.LinAlgError):
        cholesky(surface.covariance() + 1e-9 * surface.variance.max() * np.eye(len(grid)))
    (drawn,) = joint(surface, [np.random.default_rng(0)])
    assert np.abs(drawn).max() < 0.01


def test_a_posterior_mean_needs_at_least_one_point():
    with pytest.raises(InputError, match="points = 0"):
        GPMean((0.1, 0.1), points=0).make(SQUARE, 0)


# -- a value for every site ------------------------------------------------------------------------------

GRID = Domain.grid([Axis("x", "m", 0, 1), Axis("y", "m", 0, 10)], (4, 3))
ROWS = [f"{x:.8f},{y:g},{i + 0.1},{-i}" for i, (x, y) in enumerate(product((0, 1 / 3, 2 / 3, 1), (0, 5, 10)))]


def grid_table(folder, rows, channels=("depth",)):
    (folder / "t.csv").write_text("\n".join(["x,y,value,depth", *rows, ""]))
    return GridTable("t.csv", "value", channels).make(GRID, 0, folder)


def test_a_table_holds_its_values_exactly_whatever_the_order_of_its_rows(tmp_path):
    for rows in (ROWS, ROWS[::-1]):
        field = grid_table(tmp_path, rows)
        assert np.array_equal(field.values(GRID.sites), [i + 0.1 for i in range(12)])
        assert np.array_equal(field.channels(GRID.sites)["depth"], [-i for i in range(12)])


def test_between_sites_a_table_returns_the_value_of_the_nearest_site(tmp_path):
    field = grid_table(tmp_path, ROWS)
    between = np.array([[0.1, 2.4], [0.3, 2.6], [0.9, 9.0]])

    assert np.array_equal(field.values(between), [0.1, 4.1, 11.1])
    assert np.array_equal(field.channels(between)["depth"], [0, -4, -11])
    assert grid_table(tmp_path, ROWS, channels=()).channels(between) == {}


@pytest.mark.parametrize(
    ("rows", "parts"),
    [
        (ROWS[:7] + ROWS[9:], ["2 of 12 sites have no row", "x = 0.6666666667, y = 5", "t.csv"]),
        ([*ROWS, ROWS[4]], ["x = 0.3333333333, y = 5", "already has a row, in line 6", "t.csv, line 14"]),
        (
            [*ROWS[:-1], "0.99,10,3,4"],
            ["x = 0.99, y = 10 is not a site", "nearest is x = 1, y = 10", "line 13"],
        ),
        ([*ROWS, "0,5,nan,1"], ["'nan' is not a finite number", "t.csv, line 14, column value"]),
        ([*ROWS[:-1], "1,10,,1"], ["the cell is empty", "t.csv, line 13, column value"]),
    ],
    ids=["missing", "twice", "no site", "not finite", "empty"],
)
def test_a_table_without_exactly_one_row_per_site_is_rejected_and_the_row_is_named(tmp_path, rows, parts):
    with pytest.raises(InputError) as caught:
        grid_table(tmp_path, rows)
    for part in parts:
        assert part in " ".join(str(caught.value).split())


@pytest.mark.parametrize(
    ("kind", "part"),
    [
        (GridTable("../t.csv", "value"), "lies outside the folder"),
        (GridTable("nothing.csv", "value"), "there is no file nothing.csv"),
        (GridTable("t.csv", "valeu"), "did you mean 'value'?"),
        (GridTable("t.csv", "value", ("fit_time_s",)), "unknown column 'fit_time_s'"),
    ],
    ids=["outside", "no file", "no column", "no channel"],
)
def test_a_table_that_cannot_be_read_is_rejected(tmp_path, kind, part):
    grid_table(tmp_path, ROWS)
    with pytest.raises(InputError, match=part.replace("?", r"\?")):
        kind.make(GRID, 0, tmp_path)


def test_a_table_needs_a_folder():
    with pytest.raises(InputError, match="needs a folder"):
        GridTable("t.csv", "value").make(GRID, 0, None)


# -- the worlds made of them -----------------------------------------------------------------------------


def test_a_reading_in_the_level_noise_world_costs_what_its_level_costs():
    world = fieldbo.load_world("gp-level-noise")
    sites = world.domain.sites[:3]

    assert [world.sensor.variance(sites, level)[0] for level in range(3)] == pytest.approx([1e-6, 1e-3, 0.05])
    for level, cost in enumerate((15, 10, 2)):
        seen = world.evaluate(fieldbo.Query(sites[2], level=level), sites[0], 0.0, np.random.default_rng(0))
        assert seen.cost == cost


def test_the_optimum_world_can_be_sampled_anywhere_in_the_square():
    world = fieldbo.load_world("se-optimum", draw=2)
    site = np.array([0.123, 0.456])
    seen = world.evaluate(fieldbo.Query(site), world.start, 0.0, np.random.default_rng(0))

    assert seen.values[0] == pytest.approx(world.truth(site)[0], abs=0.01)
    assert np.array_equal(seen.sites, [site])
    assert world.domain.contains(ANYWHERE).all()


def svm_rows():
    with (ROOT / "worlds" / "svm-grid" / "errors.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_svm_table_has_one_row_per_setting_and_errors_between_0_and_1():
    world = fieldbo.load_world("svm-grid")
    rows = svm_rows()
    settings = [[float(row[axis.name]) for axis in world.domain.axes] for row in rows]

    assert len(rows) == world.domain.size == 25 * 14 * 4
    assert np.array_equal(settings, world.domain.sites)
    errors = world.truth(world.domain.sites)
    assert np.array_equal(errors, [float(row["validation_error"]) for row in rows])
    assert ((errors > 0) & (errors <= 1)).all()
    assert all(float(row["fit_time_s"]) > 0 for row in rows)


@pytest.mark.slow
def test_rows_of_the_svm_table_can_be_reproduced_with_scikit_learn():
    validated = runpy.run_path(str(ROOT / "makers" / "svm_grid.py"))["validated"]
    rows = svm_rows()
    best = min(range(len(rows)), key=lambda i: float(rows[i]["validation_error"]))
    for row in (rows[best], rows[700], rows[-1]):
        gamma = np.array([float(row["log10_gamma"])])
        with one_blas_thread():
            (error,), _ = validated(float(row["log10_C"]), gamma, float(row["log2_components"]))
        # Other versions of the library may classify a few of the 1797 digits differently.
        assert error == pytest.approx(float(row["validation_error"]), abs=3 / 1797)

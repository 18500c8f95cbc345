"""Golden cases: what an independent, literal implementation of the papers computed."""

import hashlib
import json
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parent
CASES = json.loads((HERE / "cases.json").read_text())["cases"]


def _bindings():
    """Load bindings.py by its path, so that it need not be importable by any name."""
    spec = spec_from_file_location("golden_bindings", HERE / "bindings.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.BINDINGS


BINDINGS = _bindings()
BOUND = [case for case in CASES if case["function"] in BINDINGS]


@pytest.mark.parametrize("case", BOUND, ids=[case["id"] for case in BOUND])
def test_a_golden_case_is_reproduced_to_its_tolerance(case):
    answer = BINDINGS[case["function"]](case)
    for key, value in case["expected"].items():
        expected, got = np.array(value, dtype=float), np.array(answer[key], dtype=float)
        assert got.shape == expected.shape, key
        finite = np.isfinite(expected)
        np.testing.assert_array_equal(got[~finite], expected[~finite], err_msg=key)
        error = np.abs(got[finite] - expected[finite]) / np.maximum(1.0, np.abs(expected[finite]))
        assert error.max(initial=0.0) <= case["tol"], f"{key}: off by {error.max():.3g}"


def test_the_copy_holds_all_122_cases_unchanged():
    assert len(CASES) == len({case["id"] for case in CASES}) == 122
    digest = hashlib.sha256((HERE / "cases.json").read_bytes()).hexdigest()
    assert digest == "4414c9d60881d11fca939208c1cd7cf3538450b386f0ed11fe1eab18e685a66c"


def test_every_function_of_the_belief_and_of_level_sets_is_bound():
    assert set(BINDINGS) >= {
        "cost",
        "expected_improvement",
        "f1_score",
        "gchk_ambiguity",
        "gp_posterior",
        "gp_posterior_cov",
        "gp_ucb_beta",
        "information_gain",
        "kernel",
        "log_marginal_likelihood",
        "straddle",
        "truvar_acquisition",
        "truvar_beta",
        "truvar_epoch",
        "truvar_lookahead_var",
        "truvar_update_lse",
    }


def test_every_function_of_searching_with_a_battery_is_bound():
    assert set(BINDINGS) >= {
        "ackley",
        "branin",
        "dist_ucb",
        "distucb_beta_theory",
        "ducb",
        "ei_per_unit_cost",
        "hartmann6",
        "rollout_value",
        "run_distucb_myopic",
    }


def test_every_binding_answers_a_function_that_the_cases_name():
    assert set(BINDINGS) <= {case["function"] for case in CASES}

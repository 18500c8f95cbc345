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


def numbers(value, path=""):
    """Yield (path, number) of all numbers in nested lists, whose lengths may differ; None is NaN."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        yield f"{path} length", float(len(value))
        for k, one in enumerate(value):
            yield from numbers(one, f"{path}[{k}]")
    else:
        yield path, np.nan if value is None else float(value)


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_a_golden_case_is_reproduced_to_its_tolerance(case):
    answer = BINDINGS[case["function"]](case)
    for key, value in case["expected"].items():
        (places, wanted), (own, found) = (zip(*numbers(v, key), strict=True) for v in (value, answer[key]))
        assert own == places
        expected, got = np.array(wanted), np.array(found)
        finite = np.isfinite(expected)
        np.testing.assert_array_equal(got[~finite], expected[~finite], err_msg=key)
        error = np.abs(got[finite] - expected[finite]) / np.maximum(1.0, np.abs(expected[finite]))
        assert error.max(initial=0.0) <= case["tol"], f"{key}: off by {error.max():.3g}"


def test_the_copy_holds_all_122_cases_unchanged():
    assert len(CASES) == len({case["id"] for case in CASES}) == 122
    digest = hashlib.sha256((HERE / "cases.json").read_bytes()).hexdigest()
    assert digest == "4414c9d60881d11fca939208c1cd7cf3538450b386f0ed11fe1eab18e685a66c"


def test_every_function_that_the_cases_name_is_bound():
    assert {case["function"] for case in CASES} == set(BINDINGS)
    assert len(BINDINGS) == 53

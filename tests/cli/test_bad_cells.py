"""What a person writes wrong in a cell: refused with exit code 2, a message that helps, and no trace."""

from __future__ import annotations

import math
import tempfile
import tomllib
from pathlib import Path

import numpy as np
import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st
from small_files import mission_text
from tiers import examples
from working_folder import edit, everything, write
from wrong_files import holder, loaded, paths_in

import fieldbo
from fieldbo.domain.axes import Axis
from fieldbo.domain.controls import Controls, ControlSet, TruncatedNormal, Uniform
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError
from fieldbo.messages import Observation, Query, Telemetry

NORMAL = 'free = { kind = "truncated-normal", mean = 0.5, variance = 0.02 }'
SETS = """format = 1
version = "1"
title = "three variables"
cost_unit = "EUR"
[domain]
kind = "box"
axes = [{ name = "x1", unit = "", low = 0, high = 1, free = { kind = "uniform" } },
        { name = "x2", unit = "", low = 0, high = 1, NORMAL },
        { name = "x3", unit = "", low = 0, high = 1 }]
control_sets = [["x1", "x2", "x3"], ["x2", "x3"], ["x3"]]
representers = 64
[field]
kind = "gp-draw"
length_scales = [0.5, 0.5, 0.5]
[sensor]
noise_sd = 0
[cost]
kind = "subset"
costs = [1, 0.1, 0.01]
noise_sds = [0, 0, 0]
""".replace("NORMAL", NORMAL)
FIELD = '[field]\nkind = "gp-draw"\nlength_scales = [0.5, 0.5, 0.5]\n'
COSTS = "costs = [1, 0.1, 0.01]\n"
NOISE = "noise_sds = [0, 0, 0]\n"
MODULES = '[{ name = "bake", axes = ["x1"], cost = 10 }, { name = "cool", axes = ["x2"], cost = 1.5 }]'
CHAIN = f"""format = 1
version = "1"
title = "two stages"
cost_unit = "EUR"
[domain]
kind = "box"
axes = [{{ name = "x1", unit = "", low = 0, high = 1 }}, {{ name = "x2", unit = "", low = 0, high = 1 }}]
representers = 64
[field]
kind = "gp-draw"
length_scales = [0.5, 0.5]
[sensor]
noise_sd = 0
[cost]
kind = "modular"
modules = {MODULES}
"""
S, C = "worlds/sets/world.toml", "worlds/chain/world.toml"
OF_SETS, OF_CHAIN = "sets.toml", "chain.toml"
CONTENT = {
    S: SETS,
    C: CHAIN,
    OF_SETS: mission_text("sets", battery=9, agent={"costs": "unknown"}, policy="subsets"),
    OF_CHAIN: mission_text("chain", battery=9, agent={"costs": "declared"}, policy="lambo"),
}


@pytest.fixture(autouse=True)
def _place(tmp_path, monkeypatch):
    """Work in a folder that holds a cell of control sets, a chain of modules, and a mission for each."""
    monkeypatch.chdir(tmp_path)
    for file, content in CONTENT.items():
        write(file, content)


@pytest.fixture
def expect_rejected(command, snapshot):
    """Run the command line; it must end with 2, leave every file as it was, and name all `parts`."""

    def run(*args, parts=(), compare=True):
        before = everything()
        code, _, err = command(*args)
        assert code == 2, err
        assert "Traceback" not in err
        text = " ".join(err.split())
        assert [part for part in parts if part not in text] == [], text
        assert everything() == before
        if compare:
            snapshot(err)
        return text

    return run


def case(file, old, new, *parts):
    return pytest.param(file, old, new, parts, id=f"{new or old}".replace("\n", " ")[:70])


def sets(old, new, *parts):
    return case(S, old, new, *parts)


def chain(old, new, *parts):
    return case(C, old, new, *parts)


THIRD = '["x3"]]'
WRONG_CELLS = [
    # modules
    chain('axes = ["x2"]', 'axes = ["x2", "x1"]'),
    chain('axes = ["x2"]', 'axes = ["x2", "x2"]', "cost.modules[1].axes"),
    chain('axes = ["x2"]', "axes = [0]"),
    chain('{ name = "bake", axes = ["x1"], cost = 10 }, ', "", "cost.modules"),
    chain('axes = ["x1"]', "axes = []", "modules[0].axes"),
    chain('axes = ["x2"]', 'axes = ["y2"]', "did you mean 'x2'?"),
    chain('axes = ["x2"]', "axes = [7]", f"{C}: cost.modules[1].axes"),
    chain('axes = ["x2"]', "axes = [-1]"),
    chain('axes = ["x2"]', 'axes = "x2"', "cost.modules[1].axes"),
    chain('axes = ["x2"]', 'axs = ["x2"]', "cost.modules[1].axs", "did you mean 'axes'?"),
    chain('"cool"', '"bake"', "cost.modules[1].name"),
    chain('"cool"', '""', "cost.modules[1].name"),
    *(chain("cost = 10", f"cost = {cost}", f"{C}: cost.modules") for cost in ("-1", "nan", "inf")),
    chain("cost = 10", 'cost = "dear"', "cost.modules[0].cost"),
    chain(", cost = 10", "", "cost.modules[0].cost"),
    chain(MODULES, "[]", "cost.modules"),
    chain(f"modules = {MODULES}", "", "cost.modules"),
    chain("modules", "charge_lst = true\nmodules", "did you mean 'charge_last'?"),
    chain("modules", 'charge_last = "yes"\nmodules'),
    chain(
        f'kind = "modular"\nmodules = {MODULES}',
        'kind = "subset"\ncosts = [1]',
        "cost.kind",
    ),
    # control sets
    sets(THIRD, "[]]", "domain.control_sets[2]"),
    sets(THIRD, '["x4"]]', f"{S}: domain.control_sets[2]"),
    sets(THIRD, '["x3", "x3"]]', "domain.control_sets[2]"),
    sets(THIRD, '["x3", "x2"]]', "control_sets[2]"),
    sets(THIRD, '"x3"]', 'control_sets[2] = "x3"', "domain.control_sets[2]"),
    sets(
        THIRD,
        '["x1"]]',
        "control_sets[2]",
    ),
    sets(
        '[["x1", "x2", "x3"], ["x2", "x3"], ["x3"]]',
        "[]",
        f"{S}: domain.control_sets",
    ),
    sets('"box"', '"grid"', "domain.kind"),
    sets('cost_unit = "EUR"', 'cost_unit = ""'),
    sets(
        'control_sets = [["x1", "x2", "x3"], ["x2", "x3"], ["x3"]]\n',
        "",
        "domain.axes[0].free",
    ),
    # distributions
    *(sets("mean = 0.5", f"mean = {mean}", "axes[1].free.mean") for mean in ("1.5", "0", "1", "nan", "-1")),
    *(
        sets("variance = 0.02", f"variance = {variance}", "axes[1].free.variance")
        for variance in ("0", "-1", "nan", "inf", "0.1")
    ),
    sets(", variance = 0.02", "", "domain.axes[1].free.variance"),
    sets(
        '"truncated-normal"',
        '"normal"',
        "axes[1].free.kind",
        "did you mean 'truncated-normal'?",
    ),
    sets('kind = "truncated-normal", ', ""),
    sets('"uniform"', '"uniform", low = 0', "domain.axes[0].free.low"),
    sets('free = { kind = "uniform" }', 'free = "uniform"'),
    # what control sets cost
    sets(COSTS, "costs = [1, 0.1]\n", "cost.costs"),
    sets(COSTS, "costs = [1, 1, 1, 1]\n", f"{S}: cost.costs"),
    sets(NOISE, "noise_sds = [0]\n", f"{S}: cost.noise_sds"),
    *(sets(COSTS, f"costs = [1, {cost}, 1]\n", "cost.costs[1]") for cost in ("-0.1", "nan", "inf")),
    sets(NOISE, "noise_sds = [0, 0, -1]\n", "cost.noise_sds[2]"),
    sets(COSTS, 'costs = ["a", 1, 1]\n', "cost.costs[0]"),
    sets(COSTS + NOISE, "", "cost.costs"),
    sets(FIELD, "", "cost.costs"),
    sets(
        f'"subset"\n{COSTS}{NOISE}',
        '"euclidean"\n',
        "cost.kind",
    ),
]


@pytest.mark.parametrize(("file", "old", "new", "parts"), WRONG_CELLS)
def test_a_wrong_cell_is_rejected_by_the_commands_and_by_load_world(expect_rejected, file, old, new, parts):
    edit(file, old, new)
    if old == FIELD:
        edit(file, COSTS, "")
    name = Path(file).parent.name

    checked = expect_rejected("check", f"worlds/{name}", parts=parts)
    assert expect_rejected("run", f"{name}.toml", compare=False) == checked
    with pytest.raises(InputError):
        fieldbo.load_world(name)


def of_sets(old, new, *parts):
    return case(OF_SETS, old, new, *parts)


def of_chain(old, new, *parts):
    return case(OF_CHAIN, old, new, *parts)


UNKNOWN = 'costs = "unknown"\n'
TO_DECLARED = 'costs = "unknown"\n[policy]\nkind = "subsets"'
WRONG_MISSIONS = [
    *(
        of_sets("[policy]", f'[policy]\ncosts = "{costs}"', "policy.costs")
        for costs in ("unknown", "declared")
    ),
    of_sets(UNKNOWN, 'costs = "secret"\n', "agent.costs"),
    of_sets(UNKNOWN, "costs = true\n", "agent.costs"),
    of_sets(UNKNOWN, 'cost = "unknown"\n', "agent.cost", "did you mean 'costs'?"),
    of_sets(
        UNKNOWN,
        "",
        f"{OF_SETS}: agent.costs",
    ),
    of_chain(
        '"declared"',
        '"unknown"',
        f"{OF_CHAIN}: agent.costs",
    ),
    *(
        of_sets(
            TO_DECLARED,
            f'costs = "declared"\n[policy]\nkind = "{kind}"',
            f"{OF_SETS}: policy.kind",
        )
        for kind in ("lambo", "carbo", "ca-mobo", "lazy-ei-per-cost")
    ),
    of_chain('"lambo"', '"subsets"'),
    of_chain(
        'costs = "declared"\n[policy]\nkind = "lambo"',
        'costs = "unknown"\n[policy]\nkind = "subsets"',
        "domain.control_sets",
    ),
    of_chain('"optimum"', '"level-set"\nthreshold = 1'),
    of_sets("battery = 9", "battery = 9\nhome = [0, 0, 0]", "agent.home"),
    of_sets("battery = 9", "battery = 9\ntime_limit_s = 40"),
    of_sets('"subsets"', '"subsets"\n[model]\ntransform = "log"', "model.transform"),
    of_sets('"subsets"', '"ei"\nper_cost = true'),
    of_sets('"subsets"', '"truvar"'),
    of_sets('"subsets"', '"lawnmower"', "policy.kind"),
]


@pytest.mark.parametrize(("file", "old", "new", "parts"), WRONG_MISSIONS)
def test_a_wrong_mission_in_a_cell_is_rejected_by_the_commands_and_by_load_mission(
    expect_rejected, file, old, new, parts
):
    edit(file, old, new)

    checked = expect_rejected("check", file, parts=parts)
    assert expect_rejected("run", file, compare=False) == checked
    with pytest.raises(InputError):
        fieldbo.load_mission(file)


def test_the_missions_and_cells_themselves_are_right(said):
    for file in (OF_SETS, OF_CHAIN):
        assert "valid" in said("check", file)


@pytest.mark.parametrize("kind", ["ei", "gp-ucb", "random", "max-value-entropy-search"])
def test_a_policy_that_sets_all_variables_is_rejected_without_a_set_of_them(expect_rejected, kind):
    edit(S, '[["x1", "x2", "x3"], ', "[")
    edit(S, COSTS, "costs = [0.1, 0.01]\n")
    edit(S, NOISE, "")

    expect_rejected("run", OF_SETS, "--set", f"policy.kind={kind}", parts=[f"policy {kind}", "policy.kind"])


def test_unknown_costs_are_rejected_where_they_must_be_declared(expect_rejected):
    edit(S, FIELD, "")
    edit(S, COSTS + NOISE, "")
    overrides = ("--set", "policy.kind=ei", "--set", "agent.costs=declared")

    expect_rejected("check", OF_SETS, *overrides, parts=[f"{OF_SETS}: agent.costs", 'costs = "unknown"'])


@pytest.mark.parametrize("costs", ["unknown", "declared"])
def test_a_battery_that_free_samples_would_never_spend_is_rejected(expect_rejected, costs):
    edit(S, COSTS, "costs = [0, 0, 0]\n")
    overrides = ("--set", "policy.kind=ei", "--set", f"agent.costs={costs}")

    expect_rejected("run", OF_SETS, *overrides, parts=[f"{OF_SETS}: cost"])


def test_a_last_module_without_a_cost_is_rejected(expect_rejected):
    edit(C, "cost = 1.5", "cost = 0")

    expect_rejected("run", OF_CHAIN, parts=[f"{OF_CHAIN}: cost"])


def test_lambo_rejects_a_single_module(expect_rejected):
    edit(C, MODULES, '[{ name = "all", axes = ["x1", "x2"], cost = 1 }]')

    expect_rejected("run", OF_CHAIN, parts=["cost.modules"])


# -- in Python -------------------------------------------------------------------------------------------


AXES = (Axis("x1", "", 0, 1), Axis("x2", "", 0, 1))


@pytest.mark.parametrize("law", [Uniform(0, 2), Uniform(-1, 1), TruncatedNormal(1.0, 0.02, 0, 2)])
def test_a_distribution_beyond_its_axis_is_rejected(law):
    only_first = ControlSet.of(["x1"], AXES, "control_sets")

    with pytest.raises(InputError, match="values on its axis, from 0 to 1") as caught:
        Domain.box(AXES, 8, controls=Controls((only_first,), (None, law)))
    assert "domain.axes[1].free" in str(caught.value)


def played(cost):
    """Return an agent that has observed a play of that cost."""
    agent = fieldbo.Agent(fieldbo.load_mission(OF_SETS))
    order = agent.ask()
    assert isinstance(order, Query)
    agent.tell(order.observed(1.0, noise_variance=0.0, cost=cost))
    return agent


@pytest.mark.parametrize("cost", [-0.1, math.nan, math.inf, -math.inf])
def test_an_impossible_real_cost_is_rejected(cost):
    with pytest.raises(InputError, match="finite numbers of at least 0") as caught:
        played(cost)
    assert "cost" in caught.value.problem


@pytest.mark.parametrize("cost", [0.0, 3.0, 12.0])
def test_a_real_cost_of_any_size_is_charged(cost):
    assert played(cost).spent == cost


ARGUMENTS = [
    *(("value", wrong) for wrong in ("a", "1.5", b"1", [1.0, "a"], [[1.0], [1.0, 2.0]], {})),
    *(("value", wrong) for wrong in (1j, 10**400, np.array(["1"], dtype=object))),
    *(("noise_variance", wrong) for wrong in ("a", None, [None])),
    ("time_s", "now"),
    *(("cost", wrong) for wrong in ("a", "1", [1.0, 2.0], [None], [])),
    *(("position", wrong) for wrong in ("here", [0.1, "b", 0.3], [None] * 3, [], [[0.1], [0.4, 0.3]])),
    ("position", np.array([np.array([0.1]), np.array([0.4]), 0.3], dtype=object)),
]


@pytest.mark.parametrize(("name", "wrong"), ARGUMENTS, ids=str)
def test_an_observation_of_something_other_than_numbers_is_rejected(name, wrong):
    query = Query([0.2, 0.4, 0.3], id="run/0")
    told = {"value": 1.0, "noise_variance": 0.0, "cost": 0.1} | {name: wrong}

    with pytest.raises(InputError, match=r"number|coordinates") as caught:
        query.observed(**told)

    assert name.removesuffix("_s") in caught.value.problem
    assert caught.value.where == "observation of run/0"


def test_every_field_of_an_observation_must_be_numbers():
    right = {"order": "run/0", "sites": [[0.2, 0.4]], "values": [1], "noise_variances": [0], "times_s": [0]}
    right |= {"position": [0.2, 0.4], "cost": 1}
    assert Observation(**right).cost == 1.0
    wrong = {name: "a" for name in right if name != "order"} | {"time_s": "a", "channels": {"salt": ["a"]}}
    for name, value in wrong.items():
        with pytest.raises(InputError, match="expected: numbers") as caught:
            Observation(**right | {name: value})
        assert name in caught.value.problem
    with pytest.raises(InputError, match="sites of 3"):
        Observation(**right | {"sites": [0.2, 0.4, 0.6]})
    with pytest.raises(InputError, match="site = 'a'"):
        Query("a")
    with pytest.raises(InputError, match="remaining = 'a'"):
        Telemetry(0, [0.0], "a", 0.0)


def test_the_values_of_free_variables_must_be_observed():
    query = Query([0.2, np.nan, 0.3], np.array([True, False, True]), id="run/0")

    with pytest.raises(InputError, match="left variables free") as caught:
        query.observed(1.0, noise_variance=0.0, cost=0.1)
    assert "the values of all variables" in str(caught.value)


# -- fuzz ------------------------------------------------------------------------------------------------


VALUES = st.one_of(
    st.sampled_from([-1, 0, 1, 2, math.nan, math.inf, True, "x1", "x9", "", "uniform", "unknown", "subset"]),
    st.lists(st.sampled_from(["x1", "x2", "x3", "x9", 0, 1, -1, 0.5]), max_size=4),
    st.lists(st.lists(st.sampled_from(["x1", "x2", "x3", "x9"]), max_size=3), max_size=4),
    st.dictionaries(
        st.sampled_from(["kind", "mean", "variance", "name", "axes", "cost"]), st.just("uniform")
    ),
)


@st.composite
def mutated(draw, text):
    """A valid file with one or two wrong values, or entries that are missing."""
    content = tomllib.loads(text)
    for _ in range(draw(st.integers(1, 2))):
        path = draw(st.sampled_from(sorted(paths_in(content, arrays=True), key=str)))
        table = holder(content, path)
        if draw(st.booleans()):
            table[path[-1]] = draw(VALUES)
        else:
            del table[path[-1]]
    return tomli_w.dumps(content)


@settings(max_examples=examples(120), deadline=None)
@given(text=st.one_of(mutated(SETS), mutated(CHAIN)))
def test_any_cell_either_loads_or_raises_a_fieldbo_error(text):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "cell" / "world.toml"
        write(file, text)
        world, error = loaded(fieldbo.load_world, file)
        assert world is not None or str(file) in error
        assert world is None or world.domain.size >= 1


@settings(max_examples=examples(120), deadline=None)
@given(text=st.one_of(mutated(CONTENT[OF_SETS]), mutated(CONTENT[OF_CHAIN])))
def test_any_mission_in_a_cell_either_loads_or_raises_a_fieldbo_error(text):
    with tempfile.TemporaryDirectory() as folder:
        for name, world in (("sets", SETS), ("chain", CHAIN)):
            write(Path(folder) / name / "world.toml", world)
        file = Path(folder) / "m.toml"
        write(file, text)
        mission, error = loaded(fieldbo.load_mission, file)
        assert mission is not None or str(file) in error

"""Tiers of tests: what a case costs, which cases wait for ``make test-all``, and the day that picks samples.

A case without a marker runs in ``make test``, and should take less than a second there. ``slow`` marks a case
that takes longer, ``sweep`` one of many that check a property exhaustively; another case guards the property
in ``make test``. Of a test of several parameters that is marked ``each_choice``, ``make test`` runs a few
combinations that hold each value of each parameter; the others are a sweep. In ``make test`` a case far above
the limit without a marker fails, unless it compiled loops meanwhile.
"""

import os
from collections import Counter, defaultdict
from datetime import date
from importlib import import_module

import pytest
from hypothesis import settings

from fieldbo._numerics.compiled import when_compiling

LIMIT_S = 1.0
HEAD_ROOM = 3.0
"""Processor time per case grows on a busy machine, where cores and caches are shared."""

SHARED_IMPORTS = ("numba", "matplotlib.figure", "scipy.stats", "shapely", "xarray", "fieldbo.cli")
MARKED = {"slow", "sweep"}
FEW = 15
settings.register_profile("few", max_examples=FEW, deadline=None)  # nor is any case judged by the clock
settings.register_profile("all", deadline=None)


def processor_s():
    """Return the processor time of this process and of its ended children in seconds."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def in_make_test():
    """Return True where cases that are ``slow`` are left out, and samples are small."""
    return settings.default.max_examples == FEW


def examples(count):
    """Return how many examples hypothesis tries: `count`, or a few of them in ``make test``."""
    return min(count, FEW) if in_make_test() else count


def seed_blocks(count, block, today):
    """Return parameters for the fixture `seeds`: so many of today's, and `count` fixed ones in blocks.

    The blocks are marked ``sweep``.
    """
    fixed = [range(first, first + block) for first in range(0, count, block)]
    return [
        pytest.param(today, id="today"),
        *(pytest.param(seeds, marks=pytest.mark.sweep, id=str(seeds[0])) for seeds in fixed),
    ]


def swept(cases, keep):
    """Return the cases as parameters; all but those to `keep` are marked ``sweep``.

    `keep` is a predicate, or a collection of cases.
    """
    kept = keep if callable(keep) else lambda case: case in keep
    return [case if kept(case) else pytest.param(case, marks=pytest.mark.sweep) for case in cases]


def pytest_addoption(parser):
    parser.addoption(
        "--day",
        type=int,
        default=date.today().toordinal(),
        help="day whose random worlds and samples are tested, as a number; default today",
    )
    parser.addoption(
        "--slowest", type=int, default=0, metavar="N", help="print the N slowest cases and the sum per folder"
    )


def pytest_configure(config):
    settings.load_profile("few" if "not slow" in config.option.markexpr else "all")
    config.addinivalue_line("markers", "slow: takes more than a second; in make test-all")
    config.addinivalue_line("markers", "sweep: one of many cases of a property; in make test-all")
    config.addinivalue_line("markers", "each_choice: make test holds each value of each parameter once")
    config.addinivalue_line("markers", "pictures: draws the pictures of runs, which are blank elsewhere")
    if hasattr(config, "workerinput"):  # no case pays for what all of them share
        for module in SHARED_IMPORTS:
            import_module(module)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    tests = defaultdict(list)
    for item in items:
        if item.get_closest_marker("each_choice") and not MARKED & {
            mark.name for mark in item.iter_markers()
        }:
            tests[item.nodeid.partition("[")[0]].append(item)
    for cases in tests.values():
        for case in set(cases) - set(each_choice(cases)):
            case.add_marker("sweep")


def each_choice(cases):
    """Return cases of one test that together hold each value of each parameter."""
    chosen, missing = [], set().union(*map(choices, cases))
    while missing:
        chosen.append(max(cases, key=lambda case: len(choices(case) & missing)))
        missing -= choices(chosen[-1])
    return chosen


def choices(case):
    """Return which value each parameter of a case has, by its identifier."""
    return set(enumerate(case.callspec._idlist)) if hasattr(case, "callspec") else {(0, "")}


def pytest_report_header(config):
    return f"random samples of day {config.option.day}; repeat them with --day {config.option.day}"


@pytest.fixture(scope="session")
def day(request):
    """The number of the day whose random samples are tested."""
    return request.config.option.day


@pytest.fixture
def seeds(request, day):
    """Seeds of random worlds, from `seed_blocks`; those of a day differ from those of any other."""
    chosen = request.param
    return chosen if isinstance(chosen, range) else range(1000 * day, 1000 * day + chosen)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item, nextitem):
    item.began_s = processor_s()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    began_s, compiled = processor_s(), []
    with when_compiling(lambda: compiled.append(item)):
        result = yield
    used_s = processor_s() - began_s
    judged = in_make_test() and not compiled and not MARKED & {mark.name for mark in item.iter_markers()}
    if judged and used_s > HEAD_ROOM * LIMIT_S:
        pytest.fail(
            f"this case took {used_s:.1f} s of processor time: make it faster than {LIMIT_S:g} s, "
            "or mark it slow and keep a fast guard of its property",
            pytrace=False,
        )
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item):
    result = yield
    item.user_properties.append(("processor_s", round(processor_s() - item.began_s, 3)))
    return result


def pytest_terminal_summary(terminalreporter):
    """Print what the cases cost, by folder and the slowest ones."""
    used = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, value in getattr(report, "user_properties", ()):
                if name == "processor_s":
                    used[report.nodeid] = value
    if not used:
        return
    terminalreporter.write_sep("-", f"{len(used)} cases took {sum(used.values()):.0f} s of processor time")
    slowest = sorted(used.items(), key=lambda case: -case[1])[: terminalreporter.config.option.slowest]
    if not slowest:
        return
    folders = Counter()
    for case, seconds in used.items():
        folders["/".join(case.split("::")[0].split("/")[:2])] += seconds
    for folder, seconds in folders.most_common():
        terminalreporter.write_line(f"{seconds:8.1f} s  {folder}")
    terminalreporter.write_line("")
    for case, seconds in slowest:
        terminalreporter.write_line(f"{seconds:8.1f} s  {case}")

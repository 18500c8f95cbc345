"""Readings of one place that contradict each other: which are compared, and what is said of them."""

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from tiers import examples

from fieldbo.cli.session import _show_trouble
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.sensor import Sensor
from fieldbo.messages import Correction, Query
from fieldbo.results.contradictions import Contradictions, contradictions
from fieldbo.testing import small_mission

AXES = (Axis("east", "m", 0, 100), Axis("north", "m", 0, 80))
LAKE = Domain.grid(AXES, (11, 9))  # sites 10 m apart
SENSOR = Sensor(0.1)


def read(positions, values, sd=0.1, first=0):
    return [
        Query(np.asarray(at, dtype=float), id=f"run/{k}", expected_cost=1.0).observed(v, noise_variance=sd**2)
        for k, (at, v) in enumerate(zip(positions, values, strict=True), first)
    ]


# Five sites, between which the field changes by 2.
ELSEWHERE = read([[0, 0], [90, 0], [0, 70], [90, 70], [50, 70]], [1.0, 3.0, 2.0, 2.5, 1.5])
PAIR = [[50.5, 40.0], [48.5, 40.0]]  # 2 m apart: the field may change by a fifth of the range


@pytest.mark.parametrize(
    ("difference", "distance_explains"),
    [(0.4, True), (1.2, True), (1.5, False)],  # 6 standard deviations are 0.85, a fifth of 1 to 3.5 is 0.5
)
def test_readings_near_a_site_contradict_each_other_beyond_noise_and_distance(difference, distance_explains):
    pair = read(PAIR, [2.0, 2.0 + difference], first=5)
    found = contradictions([*ELSEWHERE, *pair], LAKE, SENSOR)
    assert found == (
        []
        if distance_explains
        else [
            "the readings 2 and 3.5 (orders 5 and 6) 2 m apart near east 50 m, north 40 m contradict each "
            "other, 7.1 standard deviations more than the distance explains: correct the wrong one with "
            "fieldbo correct, or raise noise_sd in [sensor]"
        ]
    )


@pytest.mark.parametrize(
    ("domain", "positions"),
    [
        (LAKE, [[50, 40], [53, 40]]),
        (Domain.box(AXES, 99), [[50, 40], [50, 40.01]]),
        (Domain(AXES, LAKE.sites), [[50, 40], [50, 40.01]]),
    ],
    ids=["beyond a quarter of the spacing", "a box", "scattered sites"],
)
def test_without_a_site_nearby_only_readings_of_the_same_position_are_compared(domain, positions):
    assert not contradictions([*ELSEWHERE, *read(positions, [2.0, 9.0], first=5)], domain, SENSOR)
    assert contradictions([*ELSEWHERE, *read(positions[1:] * 2, [2.0, 9.0], first=5)], domain, SENSOR)


def test_until_five_sites_were_read_only_the_same_position_is_compared():
    elsewhere = read([[k + 0.5, 5] for k in range(9)], np.ones(9), first=2)  # between sites
    assert not contradictions([*elsewhere, *read(PAIR, [2.0, 9.0])], LAKE, SENSOR)
    assert contradictions(read(PAIR[:1] * 2, [2.0, 9.0]), LAKE, SENSOR)


@settings(max_examples=examples(60), deadline=None)
@given(seed=st.integers(0, 2**32 - 1), sd=st.sampled_from([0.0, 1e-6, 0.1]), waves=st.integers(1, 4))
def test_a_smooth_field_read_without_errors_never_contradicts_itself(seed, sd, waves):
    rng = np.random.default_rng(seed)
    k = rng.uniform(-0.05, 0.05, (waves, 2))  # at most 0.7 radians per spacing
    phase, height = rng.uniform(0, 2 * np.pi, waves), rng.lognormal(size=waves)

    def field(x):
        return np.sin(x @ k.T + phase) @ height

    sites = LAKE.sites[rng.choice(LAKE.size, 200)]
    at = np.concatenate([LAKE.sites[::4], sites + rng.normal(0, 1.5, sites.shape)])
    assert not contradictions(read(at, field(at), sd), LAKE, Sensor(sd))


def test_a_corrected_reading_replaces_the_wrong_one():
    found = Contradictions(LAKE, SENSOR)
    for event in ELSEWHERE:
        assert not found.add(event)
    first, wrong, again, wrong_again = read([PAIR[0], PAIR[1]] * 2, [2.0, 200.0, 2.0, 3.5], first=5)
    assert not found.add(first)
    assert len(found.add(wrong)) == 1
    assert not found.add(Correction("run/6", 0, np.array([2.1])))
    assert not found.add(again)
    assert len(found.add(wrong_again)) == 1  # the range is that of the correct readings
    assert not found.add(Correction("run/8", 0, np.array([np.nan])))
    assert not list(found.everywhere())


def test_a_wrong_correction_is_named():
    found = Contradictions(LAKE, SENSOR)
    events = read([[50, 40], [50, 40]], [2.0, 2.1])
    assert not [sentence for event in events for sentence in found.add(event)]
    assert len(found.add(Correction("run/1", 0, np.array([21.0])))) == 1
    assert not found.add(Correction("elsewhere/7", 0, np.array([2.0])))


def test_event_by_event_the_same_places_are_named_as_all_at_once():
    rng = np.random.default_rng(0)
    at = LAKE.sites[rng.integers(LAKE.size, size=300)] + rng.normal(0, 1, (300, 2))
    events = read(at, rng.standard_normal(300), 0.01)
    found = Contradictions(LAKE, Sensor(0.01))
    named = [sentence.split(" near ")[1].split(" contradict")[0] for e in events for sentence in found.add(e)]
    at_once = contradictions(events, LAKE, Sensor(0.01))
    assert at_once == list(found.everywhere())
    assert {sentence.split(" near ")[1].split(" contradict")[0] for sentence in at_once} <= set(named)


def test_an_event_is_compared_with_readings_of_its_place_only(monkeypatch):
    compared = []
    excess = Contradictions._excess

    def counted(self, readings, counted):
        compared.append(len(readings))
        return excess(self, readings, counted)

    monkeypatch.setattr(Contradictions, "_excess", counted)
    found = Contradictions(LAKE, SENSOR)
    for event in read(LAKE.sites.tolist() * 3, np.ones(3 * LAKE.size)):
        found.add(event)
    assert max(compared) == 3
    for event in read([[50, 40]] * 900, np.ones(900), first=3 * LAKE.size):
        found.add(event)
    assert max(compared) <= 300  # the lowest, the highest and the newest


def test_a_live_run_names_a_contradiction_once_and_honours_its_correction():
    out = io.StringIO()
    console, found = Console(file=out, width=500), Contradictions(LAKE, SENSOR)
    first, wrong, last = read([[50, 40]] * 3, [2.0, 20.0, 2.1])
    for event in (first, wrong, Correction("run/1", 0, np.array([2.0])), last):
        _show_trouble(console, small_mission(), found, event)
    assert out.getvalue().count("contradict each other") == 1
    assert "run/1 corrected: 2" in out.getvalue()

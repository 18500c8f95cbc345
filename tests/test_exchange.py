"""Orders and events: frozen values, and a plain form that loses nothing."""

import json
from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fieldbo.errors import InputError
from fieldbo.exchange import (
    Fitted,
    GoHome,
    Lost,
    Observation,
    Query,
    Rejected,
    Telemetry,
    from_plain,
    kind_of,
    to_plain,
)

property_test = settings(deadline=None, max_examples=100, derandomize=True)
finite = st.floats(allow_nan=False, allow_infinity=False)
positive = st.floats(min_value=0, allow_nan=False, allow_infinity=False)
number = st.floats()
count = st.integers(0, 5)
text = st.one_of(st.text(max_size=20), st.sampled_from(["inf", "-inf"]))


def lists(elements, n):
    return st.lists(elements, min_size=n, max_size=n)


@st.composite
def queries(draw):
    d = draw(st.integers(1, 4))
    return Query(
        draw(lists(number, d)),
        draw(st.none() | lists(st.booleans(), d)),
        draw(count),
        draw(count),
        draw(st.none() | finite),
        draw(st.none() | text),
    )


@st.composite
def observations(draw):
    d, k = draw(st.integers(1, 3)), draw(st.integers(0, 4))
    return Observation(
        draw(text),
        np.reshape(draw(lists(finite, k * d)), (k, d)),
        draw(lists(number, k)),
        draw(lists(positive, k)),
        draw(lists(finite, k)),
        draw(lists(finite, d)),
        draw(positive),
        draw(count),
        draw(st.booleans()),
        draw(st.booleans()),
        draw(st.none() | st.dictionaries(text, lists(number, k), max_size=2)),
    )


plain_values = st.recursive(
    finite | st.integers(-9, 9) | text | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)
messages = st.one_of(
    queries(),
    observations(),
    st.builds(GoHome, count, text, st.none() | lists(finite, 2), st.none() | positive),
    st.builds(Rejected, text, text),
    st.builds(Lost, text, text),
    st.builds(Telemetry, count, st.lists(number, min_size=1, max_size=3), st.none() | finite, finite),
    st.builds(Fitted, st.dictionaries(text, plain_values, max_size=4)),
)


def same(a, b):
    """Equal, with NaN equal to NaN, in type and shape too."""
    if isinstance(a, np.ndarray):
        return type(b) is type(a) and a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype == float)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    return type(a) is type(b) and a == b


@property_test
@given(messages)
def test_every_message_comes_back_from_its_plain_form_through_strict_json(message):
    text = json.dumps(to_plain(message), allow_nan=False)
    again = from_plain(json.loads(text))
    assert type(again) is type(message)
    for f in fields(message):
        assert same(getattr(message, f.name), getattr(again, f.name)), f.name


@property_test
@given(messages)
def test_the_plain_form_names_its_kind_and_is_stable(message):
    plain = to_plain(message)
    assert plain["kind"] == kind_of(message)
    assert to_plain(from_plain(plain)) == plain


def test_numbers_of_numpy_become_plain_numbers():
    query = Query(np.array([1, 2]), np.array([True, False]), np.int64(1), expected_cost=np.float64(2.5))
    assert to_plain(query) == {
        "kind": "query",
        "site": [1.0, None],
        "controls": [True, False],
        "level": 1,
        "vehicle": 0,
        "expected_cost": 2.5,
        "id": None,
        "expected_time_s": None,
    }


def observation(**changes):
    settled = {
        "order": "run/1",
        "sites": [[0.0, 1.0], [2.0, 3.0]],
        "values": [5.0, 6.0],
        "noise_variances": [0.1, 0.1],
        "times_s": [1.0, 2.0],
        "position": [2.0, 3.0],
        "cost": 4.0,
    }
    return Observation(**{**settled, **changes})


def test_messages_are_frozen_and_keep_no_hold_of_what_they_were_made_from():
    values = np.array([5.0, 6.0])
    seen = observation(values=values, channels={"temperature": values})
    values[:] = 0.0
    assert seen.values.tolist() == seen.channels["temperature"].tolist() == [5.0, 6.0]
    with pytest.raises(ValueError, match="read-only"):
        seen.values[0] = 1.0
    with pytest.raises(FrozenInstanceError):
        seen.cost = 1.0
    with pytest.raises(FrozenInstanceError):
        Query([1.0]).level = 2


def test_an_observation_may_hold_no_reading():
    seen = observation(sites=[], values=[], noise_variances=[], times_s=[])
    assert seen.sites.shape == (0, 2)
    assert seen.values.shape == (0,)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"values": [1.0]}, "2, one for each reading"),
        ({"times_s": [1.0, 2.0, 3.0]}, "times_s has 3 entries"),
        ({"noise_variances": [0.1, -0.1]}, "finite numbers of at least 0"),
        ({"cost": np.nan}, "cost"),
        ({"cost": -1.0}, "at least 0"),
        ({"position": [np.nan, 0.0]}, "position"),
        ({"sites": [[np.nan, 0.0], [1.0, 0.0]]}, "sites"),
        ({"channels": {"salt": [1.0]}}, "channels"),
        ({"cost": np.inf}, "observation of run/1"),
    ],
)
def test_an_observation_that_contradicts_itself_is_refused(changes, message):
    with pytest.raises(InputError, match=message):
        observation(**changes)


@pytest.mark.parametrize(
    "plain",
    [
        {"kind": "querry", "site": [1.0]},
        {"site": [1.0]},
        {"kind": "query"},
        {"kind": "query", "site": [1.0], "speed": 3},
        {"kind": "lost", "order": "run/1"},
    ],
    ids=["unknown kind", "no kind", "field missing", "field unknown", "reason missing"],
)
def test_a_plain_form_that_is_no_message_is_refused(plain):
    with pytest.raises(InputError, match="expected"):
        from_plain(plain)

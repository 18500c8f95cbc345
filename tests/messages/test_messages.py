"""Messages are frozen, and their plain form loses nothing."""

import json
from dataclasses import FrozenInstanceError, fields
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from fieldbo.errors import InputError
from fieldbo.messages import (
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

property_test = settings(deadline=None, max_examples=examples(100), derandomize=True)
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
    st.builds(Telemetry, count, st.lists(finite, min_size=1, max_size=3), st.none() | finite, finite),
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
        "route": [],
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


def test_messages_are_frozen_copies_of_their_arguments():
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


def test_an_observation_may_have_no_readings():
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
def test_an_inconsistent_observation_is_rejected(changes, message):
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
def test_a_plain_form_that_is_not_a_message_is_rejected(plain):
    with pytest.raises(InputError, match="expected"):
        from_plain(plain)


NUMBERS = {
    "Decimal": Decimal("2.5"),
    "Fraction": Fraction(5, 2),
    "numpy": np.float32(2.5),
    "array": np.array(2.5),
    "array of one": np.array([2.5]),
    "list of one": [2.5],
    "array of one row": np.array([[2.5]]),
    "object": np.array([2.5], dtype=object),
}


@pytest.mark.parametrize("number", NUMBERS.values(), ids=NUMBERS)
def test_numbers_may_have_any_type_or_be_arrays_of_one(number):
    query = Query([1.0, 2.0], expected_cost=1.0, id="run/0")

    seen = query.observed(number, noise_variance=number, time_s=number, cost=number)

    assert seen.sites.shape == (1, 2)
    for told in (seen.values, seen.noise_variances, seen.times_s):
        assert (told.shape, told.dtype, told.tolist()) == ((1,), float, [2.5])
    assert type(seen.cost) is float
    assert seen.cost == 2.5
    assert type(Telemetry(0, [1.0, 2.0], number, number).remaining) is float


POSITIONS = {
    "objects, as of a table of mixed columns": np.array([2.0, 3.0], dtype=object),
    "Decimal and int": [Decimal(2), 3],
    "a row": [[2.0, 3.0]],
    "a column": [[2.0], [3.0]],
    "tuple": (2, Fraction(3)),
}


@pytest.mark.parametrize("place", POSITIONS.values(), ids=POSITIONS)
def test_a_position_is_one_number_per_variable_in_whatever_shape(place):
    query = Query([1.0, 2.0], expected_cost=1.0, id="run/0")

    for told in (query.observed(1.0, noise_variance=0.1, position=place), observation(position=place)):
        assert (told.position.shape, told.position.dtype) == ((2,), float)
        assert told.position.tolist() == told.sites[-1].tolist() == [2.0, 3.0]
    assert Query(place, [[True], [False]]).site.tolist()[:1] == [2.0]
    assert Query(place).site.tolist() == Telemetry(0, place, None, 0.0).position.tolist() == [2.0, 3.0]


def test_none_is_valid_only_for_a_failed_reading():
    query = Query([1.0, 2.0], expected_cost=1.0, id="run/0")

    assert np.isnan(query.observed(None, noise_variance=0.1).values).tolist() == [True]
    seen = observation(values=[None, 6.0], channels={"salt": [1.0, None]})
    assert np.isnan([seen.values, seen.channels["salt"]]).tolist() == [[True, False], [False, True]]
    for name in ("noise_variances", "times_s", "position", "cost", "sites"):
        with pytest.raises(InputError, match="expected: numbers"):
            observation(**{name: [None, 1.0]})
    with pytest.raises(InputError, match="expected: numbers"):
        Query([1.0, None])


@pytest.mark.parametrize(
    ("name", "wrong", "said"),
    [
        ("values", np.ones((2, 2)), "values is an array of 2 x 2 numbers"),
        ("values", [[1.0], [1.0, 2.0]], "values = "),
        ("times_s", np.ones((1, 2, 3)), "times_s is an array of 1 x 2 x 3 numbers"),
        ("position", np.ones((2, 2)), "position is an array of 2 x 2 numbers"),
        ("channels", {"salt": np.ones((2, 2))}, "channels['salt'] is an array of 2 x 2 numbers"),
        ("sites", np.ones((1, 4)), "sites of 1 x 4"),
        ("cost", [[1.0, 2.0]], "cost = "),
        ("values", np.ones((1, 3)), "values has 3 entries"),
    ],
)
def test_an_array_of_another_shape_is_rejected(name, wrong, said):
    with pytest.raises(InputError) as caught:
        observation(**{name: wrong})

    assert said in caught.value.problem
    assert caught.value.where == "observation of run/1"
    assert caught.value.expected


def test_a_site_of_more_than_one_row_is_rejected():
    with pytest.raises(InputError, match="site is an array of 2 x 2 numbers"):
        Query(np.ones((2, 2)))
    query = Query([1.0, 2.0], id="run/0", expected_cost=1.0)
    with pytest.raises(InputError, match="position is an array of 2 x 2 numbers"):
        query.observed(1.0, noise_variance=0.1, position=np.ones((2, 2)))

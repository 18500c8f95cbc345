"""Settings are checked once, from files and from Python, and errors say what to change."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, TypeAdapter

from fieldbo.errors import InputError, UnknownNameError
from fieldbo.mission.schema import json_schema
from fieldbo.validation import placed, settings, validated


@settings("policy.inner")
class Inner:
    rate: PositiveFloat
    """Cost per metre."""
    counts: tuple[int, ...] = ()


@settings("policy")
class Outer:
    inner: Inner
    """The inner table."""
    steps: PositiveInt = 3
    name: Annotated[str, Field(min_length=1)] = "a"
    kind: Literal["x", "y"] = "x"
    exact: bool = False

    def __post_init__(self) -> None:
        if self.steps == 13:
            raise InputError("steps = 13", expected="a luckier number", where="policy.steps")


class Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    outer: Outer
    other: int | Inner = 0


INNER = {"rate": 1.0}


def error_of(call, *args, **kwargs):
    with pytest.raises(InputError) as caught:
        call(*args, **kwargs)
    return caught.value


@pytest.mark.parametrize(
    ("wrong", "problem", "expected", "where"),
    [
        ({"steps": 0}, "steps = 0", "a number above 0", "steps"),
        ({"steps": 1.5}, "steps = 1.5", "a whole number", "steps"),
        ({"name": ""}, 'name = ""', "text that is not empty", "name"),
        ({"name": 3}, "name = 3", "text", "name"),
        ({"kind": "z"}, 'kind = "z"', '"x" or "y"', "kind"),
        ({"exact": "maybe"}, 'exact = "maybe"', "true or false", "exact"),
        ({"inner": 3}, "inner = 3", "a table", "inner"),
        ({"inner": {"rate": "fast"}}, 'rate = "fast"', "a number", "inner.rate"),
        ({"inner": {"rate": float("nan")}}, "rate = nan", "a finite number", "inner.rate"),
        ({"inner": {"rate": 1.0, "counts": 3}}, "counts = 3", "a list", "inner.counts"),
        ({"steps": 13}, "steps = 13", "a luckier number", "steps"),
    ],
)
def test_a_wrong_value_is_explained_in_the_same_way_from_python_and_from_a_file(
    wrong, problem, expected, where
):
    content = {"inner": INNER, **wrong}
    for error, place in (
        (error_of(Outer, **content), f"policy.{where}"),
        (error_of(validated, Outer, content, "m.toml: policy"), f"m.toml: policy.{where}"),
        (error_of(validated, Table, {"outer": content}, "m.toml"), None),
    ):
        assert (error.problem, error.expected) == (problem, expected)
        assert place is None or error.where == place


def test_a_value_given_by_position_is_named():
    error = error_of(Outer, Inner(1.0), 0)

    assert (error.problem, error.where) == ("steps = 0", "policy.steps")


def test_an_unknown_key_comes_with_the_nearest_valid_one():
    error = error_of(validated, Outer, {"inner": INNER, "stesp": 3}, "m.toml: policy")

    assert isinstance(error, UnknownNameError)
    assert error.where == "m.toml: policy.stesp"
    assert error.fix == "did you mean 'steps'?"


def test_missing_keys_are_reported_together_with_their_meaning():
    error = error_of(validated, Outer, {"inner": {}}, "m.toml: policy")

    assert error.problem == "rate is missing"
    assert error.expected == "rate = ...  # Cost per metre."
    assert error.where == "m.toml: policy.inner.rate"


def test_files_are_read_without_converting_types():
    assert validated(Outer, {"inner": {"rate": 2, "counts": [1, 2]}}, "m.toml").inner.counts == (1, 2)
    for wrong in ({"steps": "3"}, {"steps": True}, {"exact": 1}):
        error_of(validated, Outer, {"inner": INNER, **wrong}, "m.toml")


def test_a_wrong_table_where_a_number_is_also_valid_is_explained_as_a_table():
    error = error_of(validated, Table, {"outer": {"inner": INNER}, "other": {"rate": -1}}, "m.toml")

    assert (error.problem, error.where) == ("rate = -1", "m.toml: other.rate")


def test_settings_are_frozen_and_can_be_replaced():
    outer = Outer(Inner(1.0))

    assert replace(outer, steps=4) == Outer(Inner(1.0), steps=4)
    with pytest.raises(FrozenInstanceError):
        outer.steps = 5
    assert error_of(replace, outer, steps=-1).where == "policy.steps"


def test_too_many_or_repeated_arguments_are_a_type_error():
    with pytest.raises(TypeError, match="takes at most 2 settings"):
        Inner(1.0, (), 3)
    with pytest.raises(TypeError, match="two values for rate"):
        Inner(1.0, rate=2.0)


@pytest.mark.parametrize("value", ["2.5", b"2", True])
def test_text_and_truth_values_are_not_numbers(value):
    with pytest.raises(InputError, match="a number"):
        Inner(value)


def test_descriptions_and_bounds_are_in_the_json_schema():
    rate = TypeAdapter(Inner).json_schema()["properties"]["rate"]

    assert rate["description"] == "Cost per metre."
    assert rate["exclusiveMinimum"] == 0


@pytest.mark.parametrize(
    ("inner", "where", "place"),
    [
        ("sensor.levels", "w.toml: sensor.levels[0]", "w.toml: sensor.levels[0]"),
        ("domain.axes", "w.toml: domain", "w.toml: domain.axes"),
        ("domain.axes", "w.toml: field", "w.toml: domain.axes"),
        ("corners", "w.toml: domain.obstacles[1]", "w.toml: domain.obstacles[1].corners"),
        ("r.csv, line 3", "w.toml: field", "w.toml: field: r.csv, line 3"),
        (None, "w.toml: field", "w.toml: field"),
        ("agent.battery", "m.toml", "m.toml: agent.battery"),
    ],
)
def test_a_place_is_completed_and_not_repeated(inner, where, place):
    assert placed(InputError("wrong", where=inner), where).where == place


def tables_of(schema: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the properties of all tables that fieldbo.mission.schema defines, by table."""
    shapes = {name: shape for name, shape in schema["$defs"].items() if name.endswith("File")}
    return {name: shape["properties"] for name, shape in {"": schema, **shapes}.items()}


@pytest.mark.parametrize("what", ["mission", "world"])
def test_every_key_of_a_file_has_a_description(what):
    schema = json_schema(what)
    for table, keys in tables_of(schema).items():
        for key, shape in keys.items():
            target = schema["$defs"].get(shape.get("$ref", "").rpartition("/")[2], {})
            assert shape.get("description") or target.get("description"), f"{table}.{key}"

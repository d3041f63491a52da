"""Trees and settings: what can be made, what is refused, and that it can be written down."""

import json
from typing import Any

import pytest
from hypothesis import given

from model.vocabulary import ScriptConfig
from model.vocabulary.script.problems import constant, problems
from model.vocabulary.script.tree import (
    DEPTH_MAX,
    Across,
    Arithmetic,
    Expression,
    Name,
    Number,
    Sensor,
    Statement,
    Union,
    Window,
    Workflow,
    depth_of,
    is_constant,
)
from model.vocabulary.settings import PlainData
from straggler.strategies.script import configs

A = Sensor("a")
TWO = Arithmetic("+", Number(1), Number(1))


def config_of(expression: Any, **settings: Any) -> ScriptConfig:
    flow = Workflow("w", (Statement("x", expression),))
    return ScriptConfig(**{"workflows": (flow,), "sensors": (("a", 1),), **settings})


@given(config=configs())
def test_settings_are_written_and_read_again(config: ScriptConfig) -> None:
    assert ScriptConfig.from_json(json.loads(json.dumps(config.to_json()))) == config


def test_trees_are_equal_at_any_place_in_the_text() -> None:
    assert Sensor("a", at=3) == A
    assert hash(Sensor("a", at=3)) == hash(A)
    assert repr(Sensor("a", at=3)) == "Sensor(id='a')"


def test_numbers_alone_are_a_number() -> None:
    assert is_constant(TWO)
    assert constant(Arithmetic("/", TWO, Number(4))) == 0.5
    assert not is_constant(Arithmetic("*", TWO, A))
    assert depth_of(Arithmetic("*", TWO, A)) == 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Number(-1), "a number is -1; it must be finite and at least 0"),
        (lambda: Number(float("inf")), "a number is inf"),
        (lambda: Sensor('a"b'), "a sensor is 'a\"b'"),
        (lambda: Sensor(""), "a sensor is ''"),
        (lambda: Name("max"), "a name is 'max'"),
        (lambda: Name("1a"), "a name is '1a'"),
        (lambda: Union(()), r"a part of a union is \(\)"),
        (lambda: Union((TWO,)), "made of numbers alone"),
        (lambda: Window("median", A, 1, 1), "an aggregate is 'median'"),
        (lambda: Window("max", Number(1), 1, 1), "the source of a window"),
        (lambda: Window("max", A, 0, 1), "the length of a window is 0"),
        (lambda: Window("max", A, 1, True), "the slide of a window is True"),
        (lambda: Window("max", A, 10_001, 1), "the slide of a window is 1; it must be length"),
        (lambda: Across("count", (A,)), "an aggregate of streams is 'count'"),
        (lambda: Arithmetic("^", A, A), "an operator is '\\^'"),
        (lambda: Arithmetic("+", A, 1), r"a side of \+ is 1"),  # type: ignore[arg-type]  # a value of another type is refused
        (lambda: Statement("1", A), "the name of a statement is '1'"),
        (lambda: Workflow("", ()), "the name of a workflow is ''"),
    ],
)
def test_an_invalid_expression_is_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"workflows": ()}, "workflows is"),
        ({"workflows": (Workflow("w", ()), Workflow("w", ()))}, "the workflow is 'w'"),
        ({"sensors": (("b", 1),)}, "workflow 'w': there is no sensor and no earlier name 'a'"),
        ({"sensors": (("a", 1), ("a", 2))}, "the sensor is 'a'; it must be listed once"),
        ({"sensors": (("a", 0),)}, "tuples of 'a' in an hour is 0"),
        ({"sensors": (("a", 1), ("x", 1))}, "'x' is the name of a sensor"),
        ({"workers": 0}, "workers is 0"),
        ({"lateness_us": -1}, "lateness_us is -1"),
        ({"cap_percent": 99}, "cap_percent is 99"),
        ({"watermark": "literal"}, "watermark is 'literal'; it must be one of fixed, disorder"),
        ({"cluster": 0}, "cluster is 0; it must be an integer > 0"),
        ({"watermark": "disorder"}, "lateness_us is None; it must be .* watermark 'disorder'"),
        ({"watermark": "scaled", "lateness_us": 1 << 61}, "lateness_us is 2305843009213693952"),
        (
            {"watermark": "scaled", "lateness_us": 1 << 60, "cluster": 4},
            r"lateness_us is \d+ with a cluster of 4; .* must be less than 2\^63",
        ),
    ],
)
def test_impossible_settings_are_refused(settings: dict[str, PlainData], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        config_of(A, **settings)


def test_the_usual_watermark_is_not_written() -> None:
    usual = config_of(A, lateness_us=1)
    assert (usual.watermark, usual.cluster) == ("fixed", 50)
    assert not {"watermark", "cluster"} & usual.to_json().keys()
    other = config_of(A, lateness_us=1, watermark="scaled", cluster=3)
    assert ScriptConfig.from_json(other.to_json()) == other
    assert ScriptConfig.from_json(usual.to_json()) == usual


@pytest.mark.parametrize(
    "data",
    [
        {"workflows": [], "sensors": []},
        {"workflows": [["w", ["x"]]], "sensors": []},
        {"workflows": [["w", ["x", ["sensor"]]]], "sensors": [["a", 1]]},
        {"workflows": [["w", ["x", ["nothing", 1]]]], "sensors": [["a", 1]]},
        {"workflows": 3, "sensors": []},
        {"workflows": [["w"]], "sensors": [["a", 1]], "unknown": 1},
        {"sensors": []},
    ],
)
def test_invalid_settings_are_refused(data: dict[str, PlainData]) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        ScriptConfig.from_json(data)


def test_depth_is_refused_without_recursion() -> None:
    deep: Expression = A
    data: Any = ["sensor", "a"]
    for _ in range(20_000):
        deep = Arithmetic("+", deep, Number(1))
    for _ in range(DEPTH_MAX):
        data = ["arithmetic", "+", data, ["number", 1]]
    found = [each.sentence for each in problems(Workflow("w", (Statement("x", deep),)))]
    assert found == ["an expression is at most 100 deep: give a part of it a name"]
    with pytest.raises(ValueError, match="is not an expression"):
        ScriptConfig.from_json({"workflows": [["w", ["x", data]]], "sensors": [["a", 1]]})


def test_a_sensor_is_asked_for_if_an_output_depends_on_it() -> None:
    flow = Workflow(
        "w",
        (
            Statement("all", Union((A, Sensor("b")))),
            Statement("other", Sensor("c")),
            Statement("x", Window("max", Union((Name("all"), Name("all"))), 1, 1)),
            Statement("unused", Union((Sensor("d"), Name("x")))),
        ),
    )
    sensors = tuple((each, 1) for each in "abcde")
    assert ScriptConfig((flow,), sensors).asked_for == {"a", "b"}

"""Words of all rooms: hashes, workloads, traces and numbers; configurations and their refusals."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any, cast

import pandas as pd
import pytest

from model.vocabulary import GroupingConfig, JoinConfig, SlackConfig, WatermarkConfig
from model.vocabulary.join import And, Band, Equi
from model.vocabulary.script.config import ScriptConfig
from model.vocabulary.script.problems import problems
from model.vocabulary.script.tree import (
    DEPTH_MAX,
    Arithmetic,
    Expression,
    Name,
    Number,
    Sensor,
    Statement,
    Union,
    Window,
    Workflow,
)
from model.vocabulary.trace import refuse_long_integers


@pytest.mark.parametrize("number", [1 << 63, -(1 << 63) - 1])
def test_an_integer_of_more_than_64_bits_is_found_at_any_depth(number: int) -> None:
    refuse_long_integers({"a": [{"b": [(1 << 63) - 1, -(1 << 63), 1e300, True, "x"]}]})
    with pytest.raises(ValueError, match=r"^a\[1\]\.b\[0\] is -?9223372036854775"):
        refuse_long_integers({"a": [0, {"b": [number]}]})


# ---------------------------------------------------------------------------------- configurations

HOUR_US = 3_600_000_000
A = Sensor("a")


def test_defaults_follow_from_the_window() -> None:
    for config in (SlackConfig(10, 5), WatermarkConfig(10, 5, 3)):
        assert (config.feedback, config.max_age) == (10, 40)
    given = SlackConfig(10, 5, feedback_us=0, max_age_us=1)
    assert (given.feedback, given.max_age) == (0, 1)


def test_shares_follow_from_the_number_of_instances() -> None:
    assert (GroupingConfig(4).theta_share, GroupingConfig(4).eps_share) == (1 / 20, 1 / 40)
    assert GroupingConfig(4, "dag").theta_share == 1 / 400
    assert GroupingConfig(4, theta=0.5, eps=0.1).eps_share == 0.1


def test_times_are_given_with_a_unit_or_as_a_timedelta() -> None:
    config = SlackConfig.of(size="6 hours", slide=timedelta(hours=1), gamma_us=5, tasks=4)
    assert config == SlackConfig(6 * HOUR_US, HOUR_US, gamma_us=5, tasks=4)
    assert SlackConfig.of(size=pd.Timedelta("1h"), slide="1h").size_us == HOUR_US
    assert WatermarkConfig.of(size="1h", slide="1h", max_wait="1 hour").max_wait_us == HOUR_US
    chain = JoinConfig.of(window="1 hour", lateness="1 hour", queries=(("q", Equi("key")),))
    assert (chain.window_us, chain.lateness_us) == (HOUR_US, HOUR_US)
    assert GroupingConfig.of(instances=2, latency=["1 ms", timedelta()]).latency_us == (1000, 0)


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
    assert ScriptConfig((flow,), tuple((each, 1) for each in "abcde")).asked_for == {"a", "b"}


# ----------------------------------------------------------------------------------------- refused


REFUSED: tuple[tuple[Callable[[], object], str], ...] = (
    (lambda: Band("value", float("inf")), "eps is inf"),
    (cast("Any", Equi), "(missing a required argument: 'column')"),
    (lambda: Equi("key", colum="key"), "(got an unexpected keyword argument 'colum')"),  # type: ignore[call-arg]
    (lambda: And(cast("Any", [Equi("key")])), "a tuple of predicates"),
    (lambda: Union(cast("Any", ("a",))), "a part of a union"),
)
"""Values that no file has, and what is said of them."""


@pytest.mark.parametrize(("make", "sentence"), REFUSED)
def test_an_impossible_value_is_refused_in_one_sentence(
    make: Callable[[], object], sentence: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        make()


@pytest.mark.parametrize(
    "data",
    [
        {"workflows": [["w", ["x"]]], "sensors": []},
        {"workflows": [["w", ["x", ["sensor"]]]], "sensors": [["a", 1]]},
        {"workflows": [["w", ["x", ["nothing", 1]]]], "sensors": [["a", 1]]},
        {"workflows": 3, "sensors": []},
        {"workflows": [["w"]], "sensors": [["a", 1]], "unknown": 1},
    ],
)
def test_a_tree_of_another_shape_is_refused(data: dict[str, Any]) -> None:
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

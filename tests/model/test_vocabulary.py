"""Words of all rooms: hashes, workloads, traces and numbers; configurations and their refusals."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, cast

import pandas as pd
import pytest

from model.vocabulary import (
    Event,
    GroupingConfig,
    JoinConfig,
    SlackConfig,
    WatermarkConfig,
    Workload,
)
from model.vocabulary.join import And, Band, Equi, Ineq
from model.vocabulary.join_load import LoadRules
from model.vocabulary.script.config import ScriptConfig
from model.vocabulary.script.problems import problems
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
)
from model.vocabulary.settings import Setting
from model.vocabulary.trace import refuse_long_integers


@pytest.mark.parametrize("cuts", [(3, 2), (-1,), (6,)])
def test_cuts_must_increase_within_the_arrivals(cuts: tuple[int, ...]) -> None:
    arrivals = tuple([Event(seq, seq, "a", seq, 1.0, seq) for seq in range(5)])
    with pytest.raises(ValueError, match="do not increase"):
        Workload("slack", arrivals, {}, cuts=cuts)


# --------------------------------------------------------------------------------------- settings


@pytest.mark.parametrize("value", [10**400, -(10**400), 1e400, float("nan")])
def test_a_number_beyond_all_floats_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match=r"^x is .*; it must be a finite number$"):
        Setting(kind=float, name="x").check(value)


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


def slack(**change: Any) -> object:
    return SlackConfig.from_json({"size_us": 10, "slide_us": 5, **change})


def slack_of(**given: Any) -> object:
    return SlackConfig.of(**given)


def watermark(**change: Any) -> object:
    return WatermarkConfig.from_json({"size_us": 10, "slide_us": 5, "max_wait_us": 3, **change})


def grouping(**change: Any) -> object:
    return GroupingConfig.from_json({"instances": 2, **change})


def join(**change: Any) -> object:
    return JoinConfig.from_json({"window_us": 5, "queries": [["all", ["and"]]], **change})


def load(**change: Any) -> object:
    return LoadRules.of(**change)


def script(**change: Any) -> object:
    flow = Workflow("w", (Statement("x", A),))
    return ScriptConfig(**{"workflows": (flow,), "sensors": (("a", 1),), **change})


REFUSED: tuple[tuple[Callable[..., object], dict[str, Any], str], ...] = (
    (slack, {"size_us": 1 << 62}, "size_us is 4611686018427387904; it must be less than 2^61"),
    (slack_of, {"size": "1 month"}, "size: '1 month' is not a duration"),
    (slack_of, {"size": "1h", "size_us": 1}, "size is '1h' and size_us is 1; only one can be"),
    (slack_of, {"slide": "1h"}, "the setting 'size_us' is missing"),
    (watermark, {"max_wait_us": 1 << 60, "k": 9}, "must be less than 2^63"),
    (watermark, {"corrections": 1}, "corrections is 1; it must be True or False"),
    (grouping, {"latency_us": [1]}, "latency_us is (1,); it must be one number for each of the 2"),
    (grouping, {"times_us": [[1, [1, 1]]]}, "the first micro-batch of times_us is 1; it must be 0"),
    (join, {"queries": ()}, "queries is (); it must be at least one"),
    (join, {"queries": [["a", ["and"]], ["a", ["and"]]]}, "given once"),
    (join, {"queries": [["a", ["xor"]]]}, "it must be pairs of a name and a predicate"),
    (join, {"epochs": [["b", 0, None]]}, "the query of epochs is 'b'; it must be one of all"),
    (join, {"epochs": [["all", 2, 1]]}, "the last epoch of 'all' is 1; it must be an integer, at"),
    (join, {"decisions": [[0, 1, 1]]}, "it must be lists of epoch, workers, block size and share"),
    (load, {"tau0": 0.5}, "tau0, tau1, tau2 are 0.5, 0.8, 0.8; it must be 0 < tau0 < tau1/2 < t"),
    (load, {"base": 0.9}, "base is 0.9; it must be at most 0.8, which is tau2"),
    (script, {"workflows": (Workflow("w", ()), Workflow("w", ()))}, "the workflow is 'w'"),
    (script, {"sensors": (("a", 1), ("a", 2))}, "the sensor is 'a'; it must be listed once"),
    (script, {"sensors": (("a", 1), ("x", 1))}, "'x' is the name of a sensor"),
    (script, {"watermark": "disorder", "lateness_us": (1 << 63) // 2_450 + 1}, "with a cluster of"),
    (script, {"idle_after_us": 3}, "idle_after_us is 3; without lateness_us it must be"),
    (lambda: Equi("time"), {}, "column is 'time'"),
    (lambda: Band("key", 1.0), {}, "keys have no distance"),
    (lambda: Band("value", float("inf")), {}, "eps is inf"),
    (lambda: Band(0.5), {}, "Band(0.5) does not fit; it takes column, eps"),  # type: ignore[arg-type, call-arg]
    (lambda: Equi("key", "key"), {}, "it takes column"),  # type: ignore[call-arg]
    (lambda: Equi(colum="key"), {}, "Equi(colum='key') does not fit"),  # type: ignore[call-arg]
    (lambda: Ineq("value", "<", "key"), {}, "right is 'key'; it must be 'value', of the same type"),
    (lambda: And(cast("Any", [Equi("key")])), {}, "a tuple of predicates"),
    (lambda: Union(()), {}, "a union"),
    (lambda: Union(cast("Any", ("a",))), {}, "a part of a union"),
    (lambda: Across("count", (A,)), {}, "an aggregate of streams is 'count'"),
    (lambda: Arithmetic("^", A, A), {}, "an operator is '^'"),
)
"""Values, and what is said of them: their name, the value, and what is allowed."""


@pytest.mark.parametrize(("make", "given", "sentence"), REFUSED)
def test_an_impossible_value_is_refused_in_one_sentence(
    make: Callable[..., object], given: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ValueError, match=r"\w") as refused:
        make(**given)
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


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

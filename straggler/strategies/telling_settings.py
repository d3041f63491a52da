"""Settings, workloads and headers that just fit, the nearest that do not, and the reason."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import inf, nan, nextafter
from typing import Any

from model.vocabulary import (
    GroupingConfig,
    JoinConfig,
    ScriptConfig,
    SlackConfig,
    WatermarkConfig,
    Workload,
)
from model.vocabulary.join import And, Band
from model.vocabulary.join_load import LoadRules
from model.vocabulary.join_predicates import predicate_from_json
from model.vocabulary.script.tree import (
    Arithmetic,
    Sensor,
    Statement,
    Union,
    expression_from_json,
)
from model.vocabulary.settings import Setting, read_settings, settings_of
from model.vocabulary.trace import TraceReader
from straggler.strategies.telling_texts import OF_TEXTS, TEXTS_READ
from straggler.strategies.telling_texts import READ as READ

# ------------------------------------------------------------------------------- single settings

SIGNS = {
    "at_least": (">=", 0, -1),
    "above": (">", 1, 0),
    "at_most": ("<=", 0, 1),
    "below": ("<", -1, 0),
}
"""Sign of a bound, and steps from it to the last value inside and to the first one outside."""
_TYPES = {int: "an integer", float: "a finite number", bool: "True or False", str: "a text"}
_WRONG = {int: (True, 0.5), float: (True, nan, 10**400), bool: (1, "yes"), str: (1, ["a"])}


def edges_of(setting: Setting) -> tuple[Sequence[Any], Sequence[tuple[Any, str]]]:
    """Return values that a setting just allows, and others, each with what is said to be allowed.

    For a tuple they are values of its elements.
    """
    bounds = [(getattr(setting, word), *rest) for word, rest in SIGNS.items()]
    bounds = [bound for bound in bounds if bound[0] is not None]
    words = f"one of {', '.join(setting.choices)}" if setting.choices else _TYPES[setting.kind]
    shown = [f" {sign} {bound:,}" for bound, sign, *_ in bounds if bound < (1 << 63) - 1]
    words += " and".join(shown) + ", or None" * setting.is_optional
    good = [_beside(bound, inside, setting.kind) for bound, _, inside, _ in bounds]
    bad: list[Any] = [_beside(bound, outside, setting.kind) for bound, *_, outside in bounds]
    bad += _WRONG[setting.kind]
    (good if setting.is_optional else bad).append(None)
    found = [(value, words) for value in bad]
    if setting.name.endswith("_us") and setting.at_most is None:
        good.append((1 << 61) - 1)
        found.append((1 << 61, "less than 2^61"))
    return [*good, *setting.choices], found


def _beside(bound: float, steps: int, kind: type) -> Any:
    return bound + steps if kind is int or not steps else nextafter(bound, steps * inf)


# ----------------------------------------------------------------------------- several together

WINDOWS, A, _STREAM = {"size_us": 10, "slide_us": 10}, ["sensor", "a"], Sensor("a")
DAYS = 86_400_000, 172_800_000
SCALED = {"watermark": "scaled", "cluster": 3}
LARGEST = 1.7976931348623157e308
"""The largest number of float64."""
BIG = (1 << 53) + 1
"""An integer that float64 rounds."""
LONG_US = (1 << 63) // 6
"""Longest time for a cluster of 3."""
SCRIPT = ScriptConfig.from_json({"workflows": [["w", ["x", A]]], "sensors": [["a", 1]]})
EMPTY = Workload("join", (), {}).to_json()


def _deep(depth: int) -> list[Any]:
    return A if depth == 1 else ["union", _deep(depth - 1)]


BUILT: Mapping[str, Callable[[Any], object]] = {
    "slack": lambda own: SlackConfig.from_json({**WINDOWS, **own}),
    "watermark": lambda own: WatermarkConfig.from_json({**WINDOWS, "max_wait_us": 3, **own}),
    "grouping": lambda own: GroupingConfig.from_json({"instances": 2, **own}),
    "load": LoadRules.from_json,
    "join": lambda own: JoinConfig.from_json({"window_us": 5, "queries": [["q", ["and"]]], **own}),
    "predicate": predicate_from_json,
    "script": lambda own: ScriptConfig.from_json(
        {"workflows": [["w", ["x", A]]], "sensors": [["a", 1]], **own}
    ),
    "sensors": lambda pairs: replace(SCRIPT, sensors=pairs),
    "flows": lambda flows: replace(SCRIPT, workflows=flows),
    "node": lambda given: given[0](*given[1:]),
    "times": lambda pairs: GroupingConfig(2, times_us=pairs),
    "and": And,
    "tree": expression_from_json,
    "workload": lambda own: Workload.from_json({**EMPTY, **own}),
    "header": lambda line: TraceReader(()).feed(line),
    "of": lambda given: SlackConfig.of(**given),
    "read": lambda texts: read_settings(texts, settings_of(SlackConfig)),
    "band": lambda given: Band(*given),
    **TEXTS_READ,
}
NEAREST: Sequence[tuple[str, Any, Any, str]] = (
    ("slack", {"method": "rigorous"}, {"method": "rigorous", "aggregate": "max"}, "is for sum and"),
    ("slack", {"aggregate": "max", "lambda_thr": 1}, {"aggregate": "max"}, "needs lambda_thr"),
    ("slack", {"aggregate": "min", "control": "max"}, {"aggregate": "min"}, "needs lambda_thr"),
    (
        "slack",
        {"max_future_us": None, "sampling": "exchangeable", "cv": None},
        {"sampling": "any"},
        "unknown setting 'sampling'",
    ),
    ("slack", {"tasks": 1}, {"tasks": (1,)}, "tasks is (1,); it must be an integer"),
    ("slack", {"kd": LARGEST}, {"kd": 2 * 10**308}, "kd is 2"),
    ("watermark", {"max_future_us": None}, {"max_future_us": 1}, "unknown setting 'max_future_us'"),
    ("watermark", {"max_wait_us": LONG_US, "k": 3}, {"max_wait_us": LONG_US + 1, "k": 3}, "2^63"),
    ("watermark", {"insert_every_us": 1, "upstreams": 1}, {"insert_every_us": 1}, "it must be 0"),
    ("watermark", {"idle_after_us": 1, "upstreams": 1}, {"idle_after_us": 1}, "it must be None"),
    ("watermark", {"corrections": True}, {"corrections": True, "upstreams": 1}, "be False"),
    ("watermark", {"clocks": "batches"}, {"clocks": "batches", "upstreams": 1}, "be 'arrivals'"),
    ("grouping", {"eps": 0.05}, {"eps": 0.051}, "eps is 0.051; it must be at most half of theta"),
    ("grouping", {"theta": 0.5, "eps": 0.25}, {"theta": 0.4, "eps": 0.25}, "half of theta, 0.2"),
    ("grouping", {"latency_us": [0, 10**12]}, {"latency_us": [0, 10**12 + 1]}, "at most 1000000"),
    ("grouping", {"latency_us": [1, 0]}, {"latency_us": [1]}, "one number for each of the 2"),
    ("grouping", {"tiers": [0, 3]}, {"tiers": [0, 3, 3]}, "one number for each of the 2"),
    ("grouping", {"later_tiers": [[1, [0, 3]]]}, {"later_tiers": [[0, [0, 3]]]}, "at least 1"),
    ("grouping", {"later_tiers": [[1, [0, 3]]]}, {"later_tiers": [[1, [0, 4]]]}, "at most 3"),
    ("grouping", {"later_tiers": [[1, [0, 3]]]}, {"later_tiers": [[1, [0, -1]]]}, "at least 0"),
    ("grouping", {"times_us": [[0, [1, 1]], [1, [1, 1]]]}, {"times_us": 3}, "must be a list"),
    ("grouping", {"times_us": [[0, [1, 1]]]}, {"times_us": [3]}, "must be a list"),
    (
        "grouping",
        {"times_us": [[0, [1, 1]]]},
        {"times_us": [[0, [1, 0]]]},
        "0; it must be at least 1",
    ),
    ("grouping", {"times_us": [[0, [1, 1]]]}, {"times_us": [[1, [1, 1]]]}, "1; it must be 0"),
    ("grouping", {"times_us": []}, {"times_us": [[0, []]]}, "a number for every instance"),
    ("grouping", {}, {"times_us": [[0, [1, 1]], [0, [1, 1]]]}, "0; it must be at least 1"),
    ("load", {"tau0": 0.39}, {"tau0": 0.4}, "0 < tau0 < tau1/2 < tau1 <= tau2 <= 1"),
    ("load", {"tau0": 0.01}, {"tau0": 0}, "0 < tau0 < tau1/2 < tau1 <= tau2 <= 1"),
    ("load", {"block_size": 1}, {"block_size": 1.5}, "an integer >= 1"),
    ("load", {"tau2": 1.0}, {"tau2": 1.1}, "0 < tau0 < tau1/2 < tau1 <= tau2 <= 1"),
    ("load", {"least": 1, "most": 1}, {"least": 2, "most": 1}, "at most 1, which is most"),
    ("load", {"base": 0.8}, {"base": 0.81}, "at most 0.8, which is tau2"),
    ("load", {"block_size": 1}, {"block_size": 0}, "an integer >= 1"),
    ("join", {}, {"queries": []}, "at least one"),
    ("join", {}, {"queries": [["q", ["and"]], ["q", ["and"]]]}, "given once"),
    ("join", {"epochs": [["q", 0, 0]]}, {"epochs": [["r", 0, 0]]}, "one of q"),
    ("join", {"epochs": [["q", 0, 0]]}, {"epochs": [["q", 1, 0]]}, "an integer, at least 1"),
    ("join", {"epochs": [["q", 0, None]]}, {"epochs": [["q", -1, None]]}, "an integer, at least 0"),
    ("join", {}, {"epochs": [["q", 0, 0], ["q", 1, 1]]}, "named once"),
    ("join", {}, {"epochs": [["q", 0.5, 1]]}, "first epoch of 'q' is 0.5; it must be an integer"),
    ("join", {}, {"epochs": [["q", 0, 1.5]]}, "last epoch of 'q' is 1.5; it must be an integer"),
    ("join", {}, {"decisions": [[-1, 1, 1, 0]]}, "the epoch of a decision is -1"),
    ("join", {}, {"decisions": [[0.5, 1, 1, 0]]}, "the epoch of a decision is 0.5"),
    ("join", {}, {"decisions": [[0, 1.5, 1, 0]]}, "workers from epoch 0 on is 1.5"),
    ("join", {}, {"decisions": [[0, 1, 1, "1"]]}, "a number from 0 to 1"),
    ("join", {"lateness_us": 0, "idle_after_us": 1}, {"idle_after_us": 1}, "it must be None"),
    (
        "join",
        {"decisions": [[0, 1, 1, 0]]},
        {"decisions": [[0, 0, 1, 0]]},
        "an integer, at least 1",
    ),
    ("join", {"decisions": [[0, 1, 1, 1]]}, {"decisions": [[0, 1, 1, 1.1]]}, "from 0 to 1"),
    ("join", {}, {"decisions": [[0, 1, 1, 0], [0, 1, 1, 0]]}, "an integer, at least 1"),
    ("join", {}, {"queries": [["q", ["xor"]]]}, "pairs of a name and a predicate"),
    ("join", {}, {"queries": [["", ["and"]]]}, "a text that is not empty"),
    ("join", {}, {"queries": [["q", ["apart", "key", 1]]]}, "a text, which has no distance"),
    ("join", {}, {"queries": [["q", ["ineq", "key", "<", "value"]]]}, "columns of one kind"),
    ("join", {}, {"queries": [["q", ["ineq", "id", "<", "id"]]]}, "R has no column 'id'"),
    ("join", {}, {"r_columns": [["pm25", "float"]]}, "kind of 'pm25' in r_columns is 'float'"),
    ("join", {}, {"s_columns": [["ts", "time"]]}, "'ts'; it must be none of key"),
    ("join", {}, {"r_columns": [["event_time_us", "time"]]}, "it must be none of key"),
    ("join", {}, {"r_columns": [["any", "text"]]}, "'any'; it must be letters, digits and _"),
    ("join", {}, {"r_columns": [["a b", "text"]]}, "'a b'; it must be letters, digits and _"),
    ("join", {}, {"r_columns": [["a", "text"], ["a", "time"]]}, "'a'; it must be named once"),
    ("join", {}, {"r_columns": [["a"]]}, "it must be pairs of a name and a kind"),
    ("join", {}, {"r_columns": 3}, "it must be pairs of a name and a kind"),
    ("join", {}, {"queries": [["q", ["band", "event_time", 1.0]]]}, "in microseconds, which 1.0"),
    ("join", {}, {"queries": [["q", ["band", "value", BIG]]]}, "is no number of float64"),
    ("join", {}, {"queries": [["q", ["where", "R", "value", "=", BIG]]]}, "no number of float64"),
    ("join", {}, {"queries": [["q", ["where", "R", "value", "=", "x"]]]}, "which 'x' is not"),
    ("join", {}, {"epochs": [["q", 0]]}, "names with a first and last epoch"),
    ("join", {}, {"decisions": [[0, 1, 1]]}, "lists of epoch, workers, block size and share"),
    ("predicate", ["equi", "key"], ["equi", "1d"], "column is '1d'"),
    ("predicate", ["equi", "key", "k"], ["equi", "key", "1d"], "other is '1d'"),
    ("predicate", ["and"], 3, "3 is not a predicate"),
    ("predicate", ["and"], [], "[] is not a predicate"),
    ("predicate", ["and"], [[1]], "[[1]] is not a predicate"),
    ("predicate", ["band", "value", LARGEST], ["band", "value", inf], "eps is inf"),
    ("predicate", ["between", "key", 1, 2], ["between", "key", "x", 2], "finite number, or None"),
    ("predicate", ["where", "S", "a", "=", LARGEST], ["where", "S", "a", "=", inf], "a text, a fi"),
    ("predicate", ["ineq", "key", "<", "key"], ["ineq", "1d", "<", "key"], "left is '1d'"),
    ("predicate", ["ineq", "key", "<", "key"], ["ineq", "key", "<", "1d"], "right is '1d'"),
    ("predicate", ["where", "S", "a", "=", 1], ["where", "S", "1d", "=", 1], "column is '1d'"),
    ("predicate", ["band", "value", 0], ["band", "value", -1], "a finite number, at least 0"),
    ("predicate", ["ineq", "key", "<", "key"], ["ineq", "key", "=", "key"], "op is '='"),
    ("predicate", ["between", "key", 1, 1], ["between", "key", 1, 0.9], "at most 0.9, which is h"),
    (
        "predicate",
        ["between", "at", 1, None],
        ["between", "at", None, None],
        "neither low nor high",
    ),
    ("predicate", ["where", "S", "a", "=", 1], ["where", "T", "a", "=", 1], "one of R, S"),
    ("predicate", ["where", "S", "a", "=", 1], ["where", "S", "a", "==", 1], "one of =, <"),
    ("predicate", ["where", "S", "a", "=", 1], ["where", "S", "a", "=", None], "a text, a finite"),
    ("predicate", ["and", ["equi", "key"]], ["and", ["equi"]], "is not a predicate"),
    ("script", {"sensors": [["a", 3_600_000_000]]}, {"sensors": [["a", 3_600_000_001]]}, "from 1"),
    ("script", {}, {"sensors": [["a", 0]]}, "an integer from 1"),
    ("script", {"sensors": [["a", 1], ["b", 1]]}, {"sensors": [["a", 1], ["a", 1]]}, "listed once"),
    ("script", {"lateness_us": 0, "idle_after_us": 1}, {"idle_after_us": 1}, "it must be None"),
    ("script", {"watermark": "scaled", "lateness_us": 0}, {"watermark": "scaled"}, "below 2^61"),
    ("script", {}, {"workflows": []}, "at least one"),
    ("script", {"lateness_us": 0, **SCALED}, {"lateness_us": 1 << 61, **SCALED}, "below 2^61"),
    ("script", {"lateness_us": LONG_US, **SCALED}, {"lateness_us": LONG_US + 1, **SCALED}, "2^63"),
    ("script", {}, {"workflows": [["w", ["x", A]], ["w", ["x", A]]]}, "'w'; it must be listed"),
    ("script", {}, {"workflows": [["", ["x", A]]]}, "text that is not empty"),
    ("script", {}, {"workflows": [["w", ["x"]]]}, "must be lists"),
    ("script", {}, {"workflows": [["w", ["1x", A]]]}, "the name of a statement is '1x'"),
    ("flows", SCRIPT.workflows, ("x",), "a workflow is 'x'; it must be a Workflow"),
    ("script", {}, {"sensors": [["a'", 1], ['a"', 1]]}, "text without quotes"),
    ("script", {}, {"sensors": [["a", 1], ["x", 1]]}, "'x' is the name of a sensor"),
    ("script", {}, {"sensors": [["b", 1]]}, "there is no sensor and no earlier name 'a'"),
    ("sensors", (("a", 1),), (("a",),), "a sensor and its tuples in an hour"),
    ("sensors", (("a", 1),), ((1, 1),), "a sensor and its tuples in an hour"),
    ("sensors", (("a", 1),), (["a", 1],), "a sensor and its tuples in an hour"),
    ("sensors", (("a", 1),), (("a", 1.0),), "an integer from 1"),
    ("times", ((0, (1, 1)),), ((0,),), "a micro-batch and its numbers"),
    ("times", ((0, (1, 1)),), ((0.0, (1, 1)),), "a micro-batch and its numbers"),
    ("times", ((0, (1, 1)),), ([0, (1, 1)],), "a micro-batch and its numbers"),
    ("times", ((0, (1, 1)),), ((0, [1, 1]),), "one number for each of the 2"),
    ("times", ((0, (1, 1)),), ((0, (1, 1.0)),), "made of integers"),
    ("grouping", {"latency_us": [0, 0]}, {"latency_us": [0, -1]}, "at least 0"),
    ("and", (And(),), [And()], "a tuple of predicates"),
    ("and", (And(),), (3,), "a predicate"),
    ("tree", ["number", 0], ["number", -1], "finite and at least 0"),
    ("tree", ["window", "max", A, 1, 1], ["window", "max", A, 0, 1], "milliseconds from 1 to"),
    ("tree", ["window", "max", A, 10_000, 1], ["window", "max", A, 10_001, 1], "length/10000 at"),
    ("tree", ["across", "sum", A], ["across", "count", A], "an aggregate of streams is 'count'"),
    ("tree", ["union", A], ["union", ["number", 1]], "made of numbers alone"),
    ("tree", ["across", "sum", A], ["across", "sum", ["number", 1]], "made of numbers alone"),
    (
        "tree",
        ["window", "sum", A, 1, 1],
        ["window", "sum", ["number", 1], 1, 1],
        "made of numbers alone",
    ),
    ("node", (Union, (_STREAM,)), (Union, ("a",)), "a part of a union is 'a'; it must be a stream"),
    ("node", (Statement, "x", _STREAM), (Statement, "x", "a"), "what x is is 'a'; it must be an e"),
    (
        "node",
        (Arithmetic, "+", _STREAM, _STREAM),
        (Arithmetic, "+", _STREAM, "a"),
        "a side of + is 'a'; it must be an expression",
    ),
    ("tree", ["union", A], ["union"], "at least one stream"),
    ("tree", ["name", "_1"], ["name", "1a"], "without a digit first"),
    ("tree", ["name", "maxi"], ["name", "max"], "no name of a function"),
    ("tree", ["sensor", " "], ["sensor", ""], "text without quotes"),
    ("tree", ["arithmetic", "/", A, A], ["arithmetic", "%", A, A], "an operator is '%'"),
    ("tree", ["window", "stddev", A, 1, 1], ["window", "median", A, 1, 1], "one of max, min"),
    ("tree", ["window", "sum", A, 1, 10**12], ["window", "sum", A, 1, 10**12 + 1], "from 1 to"),
    ("tree", ["window", "sum", A, *DAYS, "UTC"], ["window", "sum", A, *DAYS, "Europe"], "zone is"),
    ("tree", ["window", "sum", A, 1, 1], ["window", "sum", A, 1, 1, "UTC"], "a span of days is 1"),
    ("tree", _deep(100), _deep(101), "is not an expression"),
    ("workload", {}, {"version": 2}, "workload version 2 is not 1"),
    ("workload", {"cuts": [0, 0]}, {"cuts": [0, 1]}, "do not increase within 0..0"),
    ("workload", {}, {"arrivals": [[1]]}, "[1] is no arrival; it must be a list of seq, "),
    ("workload", {}, {"arrivals": [[0, 0, "a", 0, 0.0, 0, "R", 3]]}, "more is 3 in [0, 0, 'a'"),
    ("workload", {"cuts": [0]}, {"cuts": [-1]}, "do not increase within 0..0"),
    ("workload", {"time_unit": "ns"}, {"time_unit": "h"}, "time_unit is 'h'; it must be one of us"),
    ("workload", {}, {"faults": 3}, "not a workload"),
    ("header", '{"trace":1}', '{"trace":2}', "trace is 2; it must be 1"),
    ("header", '{"trace":1}', '{"trace":true}', "trace is True; it must be 1"),
    ("header", '{"trace":1,"producer":"x"}', '{"trace":1,"producer":3}', "it must be a text"),
    ("header", '{"trace":1}', '{"producer":"x"}', "the field 'trace' is missing"),
    ("header", '{"trace":1}', '{"trace":1,"produser":"x"}', "did you mean 'producer'?"),
    ("of", {"size": "1h", "slide_us": 1}, {"size": "1 month", "slide_us": 1}, "size: '1 month'"),
    ("of", {"size": "1h", "slide_us": 1}, {"size": "1h", "size_us": 1}, "only one can be given"),
    ("of", {"size": "1h", "slide_us": 1}, {"slide_us": 1}, "the setting 'size_us' is missing"),
    ("of", WINDOWS, {**WINDOWS, "gamma": 5}, "gamma is 5; it must be a text such as '6 hours', or"),
    ("of", WINDOWS, {**WINDOWS, "gamma": 5}, "or a timedelta; gamma_us takes microseconds"),
    ("of", WINDOWS, {**WINDOWS, "sizes": "1h"}, "unknown setting 'sizes'; known are"),
    ("read", {"eps": "0.5", "keyed": "no"}, {"epz": "0.5"}, "'epz'; did you mean 'eps'?"),
    ("read", {"eps": "0.5"}, {"eps": "1"}, "eps is 1.0; it must be a finite number > 0 and < 1"),
    ("read", {"aggregate": "avg"}, {"aggregate": "average"}, "did you mean 'avg'?"),
    ("band", ["value", 0], ["value"], "Band('value') does not fit; it takes column, eps, other"),
    ("band", ["value", 0], ["value", 0, "value", 0], "it takes column, eps, other"),
    *OF_TEXTS,
)
"""Objects: what each can be built from, what it just cannot be built from, and why."""

"""Each rule that model and Spark share has an oracle, and the oracle notices when it changes."""

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from model.vocabulary import (
    GroupingConfig,
    JoinConfig,
    ScriptConfig,
    SlackConfig,
    WindowSpec,
    Workload,
    hashing,
)
from model.vocabulary.join_load import Limits
from model.vocabulary.script import problems, tree
from model.vocabulary.windows import WindowQuery
from tests.properties import test_shared_rules as oracles
from tests.quality.mistakes import Mistake

VOCABULARY = Path(hashing.__file__).parent
ORACLES: dict[str, Callable[..., None]] = {
    "hashing.stable_hash": oracles.test_a_hash_is_xxh64_and_a_task_its_remainder,
    "hashing.task_of": oracles.test_a_hash_is_xxh64_and_a_task_its_remainder,
    "windows.pane_us": oracles.test_a_pane_is_the_widest_interval_that_no_boundary_cuts,
    "windows.first_index": oracles.test_windows_start_at_multiples_of_the_slide,
    "windows.last_index": oracles.test_windows_start_at_multiples_of_the_slide,
    "windows.indices": oracles.test_windows_start_at_multiples_of_the_slide,
    "windows.start_us": oracles.test_windows_start_at_multiples_of_the_slide,
    "windows.end_us": oracles.test_windows_start_at_multiples_of_the_slide,
    "windows.last_end_us": oracles.test_windows_start_at_multiples_of_the_slide,
    "windows.windows": oracles.test_a_window_is_known_after_its_length_and_pending_for_four,
    "windows.feedback": oracles.test_a_window_is_known_after_its_length_and_pending_for_four,
    "windows.max_age": oracles.test_a_window_is_known_after_its_length_and_pending_for_four,
    "slack.needs_values": (oracles.test_values_are_looked_at_for_bounds_on_sums_and_averages_alone),
    "grouping.theta_share": (
        oracles.test_a_key_is_heavy_above_a_fifth_or_a_hundredth_of_an_even_share
    ),
    "grouping.eps_share": oracles.test_a_key_is_heavy_above_a_fifth_or_a_hundredth_of_an_even_share,
    "grouping.times_of": oracles.test_the_latest_times_hold_from_their_micro_batch_on,
    "join.span": oracles.test_a_query_pairs_the_epochs_of_its_entry_or_all,
    "join_load.aim": oracles.test_limits_of_load_are_in_order_and_a_change_aims_between,
    "workload.batches": oracles.test_a_micro_batch_is_what_lies_between_two_cuts,
    "script/problems.constant": oracles.test_numbers_are_computed_as_python_computes_them,
    "script/config.asked_for": oracles.test_a_sensor_is_read_if_something_is_computed_from_it,
    "script/tree.is_constant": oracles.test_numbers_are_computed_as_python_computes_them,
    "script/tree.children": oracles.test_a_sensor_is_read_if_something_is_computed_from_it,
    "script/tree.walk": oracles.test_a_sensor_is_read_if_something_is_computed_from_it,
    "script/tree.depth_of": oracles.test_a_sensor_is_read_if_something_is_computed_from_it,
}
"""Oracle of each function, method and property that computes something of an answer."""
PLAIN = {
    "to_json": "data, which another method reads back",
    "from_json": "data",
    "expression_to_json": "data",
    "expression_from_json": "data",
    "predicate_to_json": "data",
    "predicate_from_json": "data",
    "with_": "a copy",
    "write": "a file",
    "require_in_order": "refuses bad settings",
    "require_name": "refuses bad settings",
    "require_span": "refuses bad settings",
    "problems": "refuses bad scripts",
    "inside": "data, inside expression_from_json",
}
"""Functions that compute nothing of an answer."""
FORMAT = ("settings", "trace", "durations", "extras", "texts")
"""Modules that read, check and write, with tests of their own in ``tests/model``."""

MISTAKES = (
    ("task_of", hashing.task_of, "stable_hash(key)", "(stable_hash(key) + 1)"),
    ("stable_hash", hashing.stable_hash, "unsigned & _SIGN_BIT", "False"),
    ("stable_hash", hashing.stable_hash, "seed=seed", "seed=0"),
    ("pane_us", WindowSpec.pane_us, "gcd(self.size_us, self.slide_us)", "1"),
    ("last_end_us", WindowSpec.last_end_us, "last_index", "first_index"),
    ("first_index", WindowSpec.first_index, "+ 1", "+ 0"),
    ("feedback", WindowQuery.feedback, "self.feedback_us is None", "not self.feedback_us"),
    ("max_age", WindowQuery.max_age, "4 *", "2 *"),
    ("needs_values", SlackConfig.needs_values, '("sum", "avg")', '("sum",)'),
    ("theta_share", GroupingConfig.theta_share, "1 / (", "2 / ("),
    ("eps_share", GroupingConfig.eps_share, "/ 2", "/ 3"),
    ("times_of", GroupingConfig.times_of, "<=", "<"),
    ("span", JoinConfig.span, "(0, None)", "(1, None)"),
    ("aim", Limits.aim, "/ 2", "/ 3"),
    ("batches", Workload.batches, "self.arrivals[left:right]", "self.arrivals[left:right][::-1]"),
    ("constant", problems.constant, "(left, right)", "(right, left)"),
    ("constant", problems.constant, "OPERATIONS[expression.op]", 'OPERATIONS["+"]'),
    ("is_constant", tree.is_constant, "(node.left, node.right)", "(node.left,)"),
    ("depth_of", tree.depth_of, "max(", "min("),
    ("asked_for", ScriptConfig.asked_for, "Union | Sensor | Name", "Sensor | Name"),
)


def computing(path: Path) -> list[str]:
    """Return the public functions, methods and properties of a module."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    names = [each.name for each in nodes if isinstance(each, ast.FunctionDef)]
    return [name for name in names if not name.startswith("_") and name not in PLAIN]


def test_every_shared_rule_has_an_oracle() -> None:
    found = {
        f"{module}.{name}"
        for path in VOCABULARY.rglob("*.py")
        if (module := path.relative_to(VOCABULARY).with_suffix("").as_posix()) not in FORMAT
        for name in computing(path)
    }
    assert found == set(ORACLES)
    assert {name for name, *_ in MISTAKES} <= {name.partition(".")[2] for name in ORACLES}


@pytest.mark.parametrize(
    ("name", "rule", "right", "wrong"), MISTAKES, ids=[f"{each[0]} {each[3]}" for each in MISTAKES]
)
def test_a_changed_rule_is_noticed(
    monkeypatch: pytest.MonkeyPatch, name: str, rule: Any, right: str, wrong: str
) -> None:
    function: Any = rule.fget if isinstance(rule, property) else rule
    oracle = next(each for rule_name, each in ORACLES.items() if rule_name.endswith(f".{name}"))
    arguments = {"feedback": (SlackConfig, 0), "max_age": (SlackConfig, None)}.get(name, ())
    oracle(*arguments)
    Mistake(function, right, wrong).plant(monkeypatch)
    with pytest.raises((AssertionError, StopIteration, ExceptionGroup)):
        oracle(*arguments)

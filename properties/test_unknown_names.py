"""A name without a rule is refused by model, Spark and oracle: none computes something else.

No configuration has such a name. The tests stand for an aggregate, a control, a policy or a sort
of conditions that is added to the words, and forgotten in a part. A new name in ``AGGREGATES``
fails in each part of :data:`OF_AGGREGATES` that lacks its rule.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from model.grouping import rules as routers
from model.join import predicates
from model.script.meaning import Values
from model.slack import rules as laws
from model.slack.requirement import WindowFacts, requirement_of
from model.vocabulary import Event, GroupingConfig, SlackConfig
from model.vocabulary.windows import AGGREGATES
from model.windows.aggregates import aggregate_of
from properties.oracles import promises
from spark_impl.grouping import keys, router
from spark_impl.join import conditions
from spark_impl.script import arithmetic
from spark_impl.slack import control_laws, requirement
from spark_impl.windows import panes

NEW = "newest"
ZERO, ONE = np.array([0]), np.array([1])
ONE_VALUE = np.array([1.0])


def with_name(config: Any, setting: str, name: str = NEW) -> Any:
    """Return a configuration whose setting has a name, which nobody checks."""
    changed = replace(config)
    object.__setattr__(changed, setting, name)
    return changed


def answer_on_spark(query: Any) -> object:
    """Return the answer to a query of windows of a microsecond, of which one has a tuple."""
    return panes.answers(query, panes.fill(query, ZERO, ZERO, ONE_VALUE, ZERO, 1), 1, 1)


AGGREGATE = with_name(SlackConfig(1, 1), "aggregate")
CONTROL = with_name(SlackConfig(1, 1), "control")
POLICY = with_name(GroupingConfig(2), "policy")
TABLE = routers.first_table(GroupingConfig(2), routers.RULES)
SENDER = routers.initial_state(POLICY)
NUMBERS = arithmetic.fold(ONE_VALUE, ZERO, squares=True)
CONDITION: Any = SimpleNamespace(sort=NEW, column="value", other="value")
ROW = Event(0, 0, "", 0, 1.0, 0)
ROWS: Any = SimpleNamespace(column=lambda _name: ONE_VALUE)

OF_AGGREGATES: Mapping[str, Callable[[Any], object]] = {
    "answers of the model": lambda query: aggregate_of(query)([1.0]),
    "answers of Spark": answer_on_spark,
    "coverage in the model": lambda query: requirement_of(query)(WindowFacts(1, 0.0, (), False)),
    "coverage in Spark": lambda query: requirement.required_tuples(
        query, ONE, ONE_VALUE, None, has_negative=False
    ),
    "answers of the oracle": lambda query: promises.aggregate_of(
        {"config": {"aggregate": query.aggregate}}, {1: 1.0}
    ),
}
"""Parts that compute something by the aggregate of a query."""
PARTS: Mapping[str, Callable[[], object]] = {
    **{name: partial(part, AGGREGATE) for name, part in OF_AGGREGATES.items()},
    "scripts of the model": lambda: Values([1.0]).aggregate(NEW, 0, 1),
    "scripts of Spark": lambda: arithmetic.aggregate(NEW, NUMBERS),
    "pairs of the model": lambda: predicates.holds(CONDITION, ROW, ROW),
    "pairs of Spark": lambda: conditions.holds(CONDITION, ROWS, ROWS),
    "slack in the model": lambda: laws.slack_us(CONTROL, 1.0, 1),
    "slack in Spark": lambda: control_laws.slack_us(CONTROL, 1.0, ONE),
    "routes of the model": lambda: routers.route(replace(TABLE, config=POLICY), SENDER, "a"),
    "costs of the model": lambda: routers.first_table(POLICY, routers.RULES),
    "costs of Spark": lambda: router.costs(POLICY, keys.Table(0, (1, 1), {}, 0)),
}


@pytest.mark.parametrize("part", PARTS)
def test_a_name_without_a_rule_is_refused(part: str) -> None:
    refused = AssertionError if part.startswith("pairs") else (ValueError, KeyError)
    with pytest.raises(refused, match=f"'{NEW}'"):
        PARTS[part]()


@pytest.mark.parametrize("part", OF_AGGREGATES)
@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_every_aggregate_has_a_rule(aggregate: str, part: str) -> None:
    OF_AGGREGATES[part](with_name(SlackConfig(1, 1), "aggregate", aggregate))

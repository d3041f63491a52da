"""A name without a rule is refused by model, Spark and oracle: none computes something else.

No configuration has such a name. The tests stand for an aggregate, a control or a policy that is
added to the words, and forgotten in a part.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from model.grouping import rules as routers
from model.script.meaning import Values
from model.slack import rules as laws
from model.slack.requirement import requirement_of
from model.vocabulary import GroupingConfig, SlackConfig
from model.windows.aggregates import aggregate_of
from properties.oracles import promises
from spark_impl.grouping import keys, router
from spark_impl.script import arithmetic
from spark_impl.slack import control_laws, requirement
from spark_impl.windows import panes

NEW = "newest"
ONE = np.array([1])
ONE_VALUE = np.array([1.0])


def with_new(config: Any, setting: str) -> Any:
    """Return a configuration whose setting has a name that no part has a rule for."""
    changed = replace(config)
    object.__setattr__(changed, setting, NEW)
    return changed


AGGREGATE = with_new(SlackConfig(1, 1), "aggregate")
OF_ORACLE = {"config": {"aggregate": NEW}}
CONTROL = with_new(SlackConfig(1, 1), "control")
POLICY = with_new(GroupingConfig(2), "policy")
TABLE = routers.first_table(GroupingConfig(2), routers.RULES)
SENDER = routers.initial_state(POLICY)
NUMBERS = arithmetic.fold(ONE_VALUE, np.array([0]), squares=True)

PARTS: Mapping[str, Callable[[], object]] = {
    "answers of the model": lambda: aggregate_of(AGGREGATE),
    "answers of Spark": lambda: panes._combine(AGGREGATE, ONE * 0, ONE_VALUE, 1),
    "coverage in the model": lambda: requirement_of(AGGREGATE),
    "coverage in Spark": lambda: requirement.required_tuples(AGGREGATE, ONE, ONE_VALUE),
    "answers of the oracle": lambda: promises.aggregate_of(OF_ORACLE, {1: 1.0}),
    "scripts of the model": lambda: Values([1.0]).aggregate(NEW, 0, 1),
    "scripts of Spark": lambda: arithmetic.aggregate(NEW, NUMBERS),
    "slack in the model": lambda: laws.slack_us(CONTROL, 1.0, 1),
    "slack in Spark": lambda: control_laws.slack_us(CONTROL, 1.0, ONE),
    "routes of the model": lambda: routers.route(replace(TABLE, config=POLICY), SENDER, "a"),
    "costs of the model": lambda: routers.first_table(POLICY, routers.RULES),
    "costs of Spark": lambda: router.costs(POLICY, keys.Table(0, (1, 1), {}, 0)),
}


@pytest.mark.parametrize("part", PARTS)
def test_a_name_without_a_rule_is_refused(part: str) -> None:
    with pytest.raises((ValueError, KeyError), match=f"'{NEW}'"):
        PARTS[part]()

"""Routes of room ``grouping`` by hand, and bounds of merged summaries."""

from collections import Counter
from itertools import chain
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.grouping import rules
from model.grouping.rules import RULES, Learnt, first_table, rebalance
from model.grouping.state import (
    Count,
    Summary,
    Table,
    counters,
)
from model.vocabulary import GroupingConfig

# ------------------------------------------------------------------------------------------- routes


def routed(table: Table, keys: str) -> list[int]:
    """Return the instances that a sender's tuples go to, one letter a key."""
    state = rules.begin_window(table, rules.initial_state(table.config))
    places = []
    for key in keys:
        instance, state = rules.route(table, state, key)
        places.append(instance)
    return places


def hot(**config: Any) -> Table:
    """Return a table in which "h" is heavy."""
    given = GroupingConfig(**{"instances": 4, **config})
    learnt = Learnt(10, [{"h": Count(6, 0)}], [[0] * 2 * given.instances])
    return rebalance(first_table(given, RULES), learnt, given.times_of(0), given.tiers)


def cold(**config: Any) -> Table:
    """Return the table of window 0."""
    return first_table(GroupingConfig(**{"instances": 4, **config}), RULES)


def test_nag_weighs_distances_and_no_times() -> None:
    config = {
        "tiers": (0, 0, 3, 3),
        "times_us": ((0, (1, 2, 1, 2)),),
        "later_tiers": ((1, (3,) * 4),),
    }
    for policy, later in (("nag-static", [40, 40, 10, 10]), ("nag-dynamic", [25] * 4)):
        given = cold(policy=policy, **config)
        tiers = given.config.tiers_of(3)
        after = rebalance(given, Learnt(1, [{}], [[]]), given.times_us, tiers)
        for table, expected in ((given, [40, 40, 10, 10]), (after, later)):
            counts = Counter(routed(table, "k" * 100))
            assert [counts[i] for i in range(4)] == expected


@pytest.mark.parametrize(("alpha", "places"), [(0.0, [0, 1, 2, 3, 0]), (1.0, [0, 0, 0, 0, 0])])
def test_dag_weighs_instances_of_the_key_against_idle_instances(
    alpha: float, places: list[int]
) -> None:
    assert routed(hot(policy="dag", alpha=alpha), "hhhhh") == places


def test_dag_moves_a_key_on_while_other_instances_are_idle() -> None:
    # T = 1: staying scores .5 - .5 * 3, going on + .5; T = 2: staying .5 - .5, going on + .5; ...
    assert routed(hot(policy="dag"), "hhhhhhhh") == [0, 1, 2, 3, 0, 1, 2, 3]


# ---------------------------------------------------------------------------------------- summaries


@given(
    senders=st.lists(st.lists(st.text("abcdefg", max_size=6), max_size=4), min_size=1, max_size=3)
)
def test_merged_summaries_bound_the_true_frequencies(senders: list[list[str]]) -> None:
    config = GroupingConfig(2, theta=0.5)
    summaries: list[Summary] = []
    for batches in senders:
        summaries.append({})
        for keys in batches:
            summaries[-1] = rules.enter_batch(config, RULES, summaries[-1], keys)
    merged = rules.merge_all(config, RULES, summaries)
    counted, k = Counter("".join(chain(*senders))), counters(config)
    n = counted.total()
    assert all(each.counted - each.error <= counted[key] for key, each in merged.items())
    assert all(counted[key] <= each.counted for key, each in merged.items())
    assert all(each.error * k <= n for each in merged.values())
    assert {key for key, f in counted.items() if f * k > n} <= set(merged)
    assert sum(each.counted for each in merged.values()) <= n

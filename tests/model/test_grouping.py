"""Room ``grouping`` by hand: hashes, candidates, routes, summaries, answers, and balance."""

from collections import Counter
from itertools import chain
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.grouping import rules, run
from model.grouping.candidates import numbered_hash
from model.grouping.rules import RULES, Learnt, first_table, rebalance
from model.grouping.state import (
    Count,
    Summary,
    Table,
    count_keys,
    counters,
    merge_summaries,
)
from model.vocabulary import Event, GroupingConfig, Workload
from model.vocabulary.grouping import Answer, Partial, Rejected

# ------------------------------------------------------------------------------------------- hashes


def test_splitmix64_gives_its_published_numbers() -> None:
    # The first outputs of SplitMix64 with seed 0 are its finalizer at multiples of the increment.
    expected = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert [numbered_hash(0, j) for j in (1, 2, 3)] == expected


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


def test_of_equal_counts_the_smaller_code_point_stays() -> None:
    assert list(merge_summaries({}, 0, count_keys("zéab"), 0, 3)) == ["a", "b", "z"]


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


# ------------------------------------------------------------------------------ windows and answers


def case(keys: str, cuts: tuple[int, ...] = (), **config: Any) -> Workload:
    """Return one tuple a letter, with the values 0, 1, 2, ..."""
    arrivals = tuple(Event(seq, 0, key, 100, float(seq), 100) for seq, key in enumerate(keys))
    return Workload("grouping", arrivals, {"instances": 2, **config}, cuts)


def test_answers_merge_what_instances_have() -> None:
    arrivals = case("aaaa").arrivals
    odd = (*arrivals, Event(4, 0, "a", 100, float("inf"), 100), Event(5, 0, "b", 1, -0.0, 1))
    odd = (*odd, Event(6, 0, "a", 1, 3.0, 1))
    trace = run(case("").with_(arrivals=odd, config={"instances": 2, "policy": "shuffle"}))
    assert trace.of(Partial) == (
        Partial(0, 0, "a", 3, 5.0, 0.0, 3.0),
        Partial(0, 1, "a", 2, 4.0, 1.0, 3.0),
        Partial(0, 1, "b", 1, 0.0, 0.0, 0.0),
    )
    assert trace.of(Answer) == (
        Answer(0, "a", 5, 9.0, 0.0, 3.0, 4, (3.0, 3.0, 2.0)),
        Answer(0, "b", 1, 0.0, 0.0, 0.0, 1, (0.0,)),
    )
    assert trace.of(Rejected) == (Rejected(4, "value is not a finite number"),)

"""Space-Saving: the bounds of docs/grouping.md, section 4, against exact counts."""

from collections import Counter
from collections.abc import Sequence
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.grouping.rules import RULES, enter_batch, merge_all
from model.grouping.state import Count, Summary, count_keys, counters, floor_of, merge_summaries
from model.grouping.variants import VARIANTS
from model.vocabulary import GroupingConfig

KEYS = st.lists(st.sampled_from("aaabbcdefgh"), max_size=12)
BATCHES = st.lists(KEYS, max_size=6)
CONFIGS = st.sampled_from(
    [GroupingConfig(2, theta=theta, eps=eps) for theta, eps in ((0.9, 0.4), (0.9, 0.3), (0.5, 0.2))]
)


def summarised(config: GroupingConfig, batches: Sequence[Sequence[str]]) -> Summary:
    start: Summary = {}
    return reduce(lambda summary, keys: enter_batch(config, RULES, summary, keys), batches, start)


def assert_bounds(found: Summary, keys: Sequence[str], k: int) -> None:
    n, f = len(keys), Counter(keys)
    assert len(found) <= k
    assert sum(each.counted for each in found.values()) <= n
    for key, (counted, error) in found.items():
        assert counted - error <= f[key] <= counted
        assert error * k <= n
    for key, count in f.items():
        assert count * k <= n or key in found


@given(config=CONFIGS, batches=BATCHES)
def test_a_summary_keeps_its_bounds(config: GroupingConfig, batches: list[list[str]]) -> None:
    keys = [key for batch in batches for key in batch]
    assert_bounds(summarised(config, batches), keys, counters(config))


@given(config=CONFIGS, senders=st.lists(BATCHES, min_size=1, max_size=4))
def test_merged_summaries_keep_them(config: GroupingConfig, senders: list[list[list[str]]]) -> None:
    merged = merge_all(config, RULES, [summarised(config, batches) for batches in senders])
    keys = [key for batches in senders for batch in batches for key in batch]
    assert_bounds(merged, keys, counters(config))


@given(config=CONFIGS, batches=BATCHES)
def test_with_a_counter_for_every_key_counts_are_exact(
    config: GroupingConfig, batches: list[list[str]]
) -> None:
    keys = [key for batch in batches for key in batch]
    if len(set(keys)) <= counters(config):
        assert summarised(config, batches) == count_keys(keys)


def test_one_counter_too_few_breaks_the_bound() -> None:
    config = GroupingConfig(2, theta=0.9, eps=0.4)
    k, errors = counters(config), []
    for rules in (RULES, VARIANTS["too_few_counters"].rules):
        found = enter_batch(config, rules, enter_batch(config, rules, {}, "aabb"), "c")
        errors.append(max(each.error for each in found.values()))
    assert errors == [0, 2]
    assert errors[0] * k <= 5 < errors[1] * k


def test_a_key_that_comes_back_may_have_been_there_as_often_as_the_least() -> None:
    full = {"a": Count(5, 0), "b": Count(3, 1)}
    assert floor_of(full, 2) == 3
    assert floor_of(full, 3) == 0
    merged = merge_summaries(full, 3, count_keys("ccb"), 0, 2)
    assert merged == {"a": Count(5, 0), "c": Count(5, 3)}  # b has 4


def test_of_equal_counts_the_smaller_code_point_stays() -> None:
    assert list(merge_summaries({}, 0, count_keys("zéab"), 0, 3)) == ["a", "b", "z"]


@pytest.mark.parametrize(("eps", "k"), [(0.4, 3), (0.25, 4), (0.3, 4), (1 / 30, 30)])
def test_counters_are_rounded_up(eps: float, k: int) -> None:
    assert counters(GroupingConfig(2, theta=0.9, eps=eps)) == k

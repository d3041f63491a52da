"""The rules of a router: which instance a tuple goes to, and the table of the next window.

Source: docs/grouping.md, sections 1, 3 and 4.

Rules of this file:

* A router is a pure function of the table, a sender's state and a key; it returns an instance and
  the next state. A sender knows nothing but its ``SenderState``.
* Candidates come in the order of preference among equals, so the first least load is preferred.
* A rebalance needs what senders have counted, and nothing about where they have routed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from model.grouping.candidates import CANDIDATES, bucket_of, place
from model.grouping.state import (
    Costs,
    Count,
    Placement,
    Rules,
    SenderState,
    Summary,
    Table,
    count_keys,
    counters,
    floor_of,
    merge_summaries,
)
from model.vocabulary import GroupingConfig
from model.vocabulary.settings import look_up

AFRESH = ("dag", "tag-literal", "tag")
"""Policies that start every window with loads 0."""


Router = Callable[[Table, SenderState, str], tuple[int, SenderState]]


def initial_state(config: GroupingConfig) -> SenderState:
    """Return the state of a sender that has seen nothing."""
    n = config.instances
    return SenderState((0,) * n, buckets=(0,) * (2 * n))


def begin_window(table: Table, state: SenderState) -> SenderState:
    """Return the state of a sender at the start of a window."""
    loads = (0,) * table.n if table.config.policy in AFRESH else state.loads
    return state._replace(loads=loads, sent=frozenset())


def route(table: Table, state: SenderState, key: str) -> tuple[int, SenderState]:
    """Route one tuple."""
    return look_up("policy", table.config.policy, ROUTERS)(table, state, key)


def least(candidates: Sequence[int], loads: Sequence[int]) -> int:
    """Return the first candidate with the least load."""
    if len(candidates) == 2:  # Nearly every key has two; min takes three times as long.
        one, other = candidates
        return one if loads[one] <= loads[other] else other
    return min(candidates, key=loads.__getitem__)


def _least_load(table: Table, state: SenderState, key: str) -> tuple[int, SenderState]:
    return _taken(table, state, least(table.candidates(key), state.loads))


def _taken(table: Table, state: SenderState, instance: int) -> tuple[int, SenderState]:
    loads = state.loads
    load = loads[instance] + table.costs[instance]
    increased = (*loads[:instance], load, *loads[instance + 1 :])
    return instance, SenderState(increased, state.sent, state.buckets)


def _learning(table: Table, state: SenderState, key: str) -> tuple[int, SenderState]:
    """Count buckets until there is a map (``dkg``)."""
    if table.placement is None:
        state = state._replace(buckets=_more(state.buckets, bucket_of(table.config, key)))
    return _least_load(table, state, key)


def _by_score(table: Table, state: SenderState, key: str) -> tuple[int, SenderState]:
    """Send a heavy key preferably to instances that have it and have little load (``dag``)."""
    if key not in table.heavy:
        return _least_load(table, state, key)
    n, alpha, total = table.n, table.config.alpha, sum(state.loads)

    def score(instance: int) -> float:
        there = (key, instance) in state.sent
        more = (state.loads[instance] * n - total) / total if total else 0.0
        return alpha * there - (1 - alpha) * more

    instance = max(table.candidates(key), key=score)
    if (key, instance) not in state.sent:
        state = state._replace(sent=state.sent | {(key, instance)})
    return _taken(table, state, instance)


def _more(numbers: tuple[int, ...], at: int) -> tuple[int, ...]:
    return (*numbers[:at], numbers[at] + 1, *numbers[at + 1 :])


_LEAST_LOADED = (
    *("key", "shuffle", "pkg", "w-choices"),
    *("nag-static", "nag-dynamic", "tag-literal", "tag"),
)
ROUTERS: Mapping[str, Router] = {
    **dict.fromkeys(_LEAST_LOADED, _least_load),
    "dkg": _learning,
    "dag": _by_score,
}


TIER_WEIGHTS = (4, 3, 2, 1)
WEIGHT_UNIT = 12
"""Unit of load; every weight divides it."""


def times(_config: GroupingConfig, times_us: tuple[int, ...]) -> tuple[int, ...]:
    """Return the times of a tuple as its costs."""
    return times_us


def _by_tier(config: GroupingConfig, times_us: tuple[int, ...]) -> tuple[int, ...]:
    tiers = config.tiers or (0,) * len(times_us)
    return tuple([WEIGHT_UNIT // TIER_WEIGHTS[tier] for tier in tiers])


_COUNTED = ("key", "shuffle", "pkg", "w-choices", "dkg", "dag")
COSTS: Mapping[str, Costs] = {
    **dict.fromkeys(_COUNTED, lambda config, _times_us: (1,) * config.instances),
    "nag-static": _by_tier,
    "nag-dynamic": _by_tier,
    "tag-literal": times,
    "tag": times,
}

RULES = Rules(
    candidates=CANDIDATES,
    costs=COSTS,
    counters=counters,
)


class Learnt(NamedTuple):
    """Knowledge of the senders at the end of a window."""

    tuples: int
    """Number N of tuples of all senders."""
    summaries: Sequence[Summary]
    buckets: Sequence[Sequence[int]]
    """Number of tuples in each bucket, by sender (``dkg``)."""


def first_table(config: GroupingConfig, rules: Rules) -> Table:
    """Return the table of window 0, in which no key is heavy."""
    return _table(config, rules, 0, config.times_of(0), {}, 0, None)


def rebalance(
    before: Table, learnt: Learnt, times_us: tuple[int, ...], tiers: tuple[int, ...]
) -> Table:
    """Return the table of the next window, in which a tuple takes these times."""
    config, rules = replace(before.config, tiers=tiers), before.rules
    merged = merge_all(config, rules, learnt.summaries)
    limit = config.theta_share * learnt.tuples
    heavy = {key: each for key, each in merged.items() if each.counted > limit}
    placement = before.placement
    if config.policy == "dkg" and placement is None:
        weights = {key: each.counted for key, each in heavy.items()}
        tuples = [sum(each) for each in zip(*learnt.buckets, strict=True)]
        placement = place(config, weights, tuples)
    return _table(config, rules, before.window + 1, times_us, heavy, learnt.tuples, placement)


def merge_all(config: GroupingConfig, rules: Rules, summaries: Sequence[Summary]) -> Summary:
    """Merge sender 0 with 1, the result with 2, and so on."""
    k = rules.counters(config)
    merged, *others = summaries
    for each in others:
        merged = merge_summaries(merged, floor_of(merged, k), each, floor_of(each, k), k)
    return merged


def enter_batch(
    config: GroupingConfig, rules: Rules, before: Summary, keys: Sequence[str]
) -> Summary:
    """Return a summary after the tuples of one more micro-batch."""
    k = rules.counters(config)
    return merge_summaries(before, floor_of(before, k), count_keys(keys), 0, k)


def _table(
    config: GroupingConfig,
    rules: Rules,
    window: int,
    times_us: tuple[int, ...],
    heavy: Mapping[str, Count],
    tuples: int,
    placement: Placement | None,
) -> Table:
    cost = look_up("policy", config.policy, rules.costs)
    return Table(
        config,
        rules,
        window,
        times_us,
        costs=cost(config, times_us),
        heavy=heavy,
        tuples=tuples,
        placement=placement,
    )

"""The right rules, and the tables that they make of windows.

Source: docs/grouping.md, sections 1, 3 and 4.

Rules of this file:

* A rebalance needs what senders have counted, and nothing of where they have routed.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from model.grouping import summary
from model.grouping.candidates import CANDIDATES, place
from model.grouping.router import least, owners
from model.grouping.summary import Count, Summary
from model.grouping.table import Costs, Placement, Rules, Table
from model.vocabulary import GroupingConfig

TIER_WEIGHTS = (4, 3, 2, 1)
WEIGHT_UNIT = 12
"""Divided by any of the weights it is an integer."""


def times(_config: GroupingConfig, times_us: tuple[int, ...]) -> tuple[int, ...]:
    """Work is time."""
    return times_us


def _by_tier(config: GroupingConfig, times_us: tuple[int, ...]) -> tuple[int, ...]:
    tiers = config.tiers or (0,) * len(times_us)
    return tuple([WEIGHT_UNIT // TIER_WEIGHTS[tier] for tier in tiers])


def _by_tier_and_time(config: GroupingConfig, times_us: tuple[int, ...]) -> tuple[int, ...]:
    pairs = zip(times_us, _by_tier(config, times_us), strict=True)
    return tuple([time_us * cost for time_us, cost in pairs])


COSTS: Mapping[str, Costs] = {
    "nag-static": _by_tier,
    "nag-dynamic": _by_tier_and_time,
    "tag-literal": times,
    "tag": times,
}

RULES = Rules(
    candidates=CANDIDATES,
    costs=COSTS,
    least=least,
    charged=lambda _table, instance: instance,
    afresh=("tag-literal", "tag"),
    counters=summary.counters,
    floor=summary.floor_of,
)


class Learnt(NamedTuple):
    """What senders know at the end of a window."""

    tuples: int
    """N, of all senders."""
    summaries: Sequence[Summary]
    buckets: Sequence[Sequence[int]]
    """``dkg``: tuples in each bucket, by sender."""


def first_table(config: GroupingConfig, rules: Rules) -> Table:
    """Of window 0, in which no key is heavy."""
    return _table(config, rules, 0, config.times_of(0), {}, 0, None)


def rebalance(before: Table, learnt: Learnt, times_us: tuple[int, ...]) -> Table:
    """The table of the next window, in which a tuple takes these times."""
    config, rules = before.config, before.rules
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
    """Sender 0 with 1, the result with 2, and so on."""
    k = rules.counters(config)
    merged, *others = summaries
    for each in others:
        merged = summary.merge(merged, rules.floor(merged, k), each, rules.floor(each, k), k)
    return merged


def entered(config: GroupingConfig, rules: Rules, before: Summary, keys: Sequence[str]) -> Summary:
    """A summary after the tuples of one more micro-batch."""
    k = rules.counters(config)
    return summary.merge(before, rules.floor(before, k), summary.exact(keys), 0, k)


def _table(
    config: GroupingConfig,
    rules: Rules,
    window: int,
    times_us: tuple[int, ...],
    heavy: Mapping[str, Count],
    tuples: int,
    placement: Placement | None,
) -> Table:
    cost = rules.costs.get(config.policy)
    return Table(
        config,
        rules,
        window,
        times_us,
        costs=cost(config, times_us) if cost else (1,) * config.instances,
        heavy=heavy,
        tuples=tuples,
        placement=placement,
        owners=owners(times_us) if config.policy == "cg" else (),
    )

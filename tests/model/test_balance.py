"""Imbalance of room ``grouping`` by hand: how far above a fluid it may be, and is."""

from itertools import count
from math import log2

import pytest

from model.checking.claims import Outcome
from model.grouping import run
from model.grouping.balance_claims import check_closeness, closeness
from model.grouping.rules import RULES, first_table
from model.vocabulary import Event, GroupingConfig, Workload


def tournament(n: int) -> Workload:
    """Return tuples of light keys, one each, in the order of a tournament of the instances.

    The keys of a round have two winners of the round before as candidates. The first of the two
    wins, because it gets the tuple. A window of other keys comes first.
    """
    config = GroupingConfig(n, "tag", window_tuples=n - 1)
    candidates = first_table(config, RULES).candidates
    names = (f"k{number}" for number in count())
    keys = []
    winners = list(range(n))
    while len(winners) > 1:
        pairs = list(zip(winners[::2], winners[1::2], strict=True))
        for pair in pairs:
            keys.append(next(name for name in names if candidates(name) == pair))
        winners = [first for first, _ in pairs]
    keys = [f"x{number}" for number in range(n - 1)] + keys
    arrivals = tuple(Event(seq, seq, key, 100, 1.0, 100) for seq, key in enumerate(keys))
    return Workload("grouping", arrivals, config.to_json(), (n - 1,))


def test_keys_in_an_unlucky_order_are_further_above() -> None:
    n = 16
    workload = tournament(n)
    (found,) = closeness(workload, run(workload))
    # A fluid gives every instance less than a tuple. Each round gives its winners one more.
    assert found.fluid_us == pytest.approx((n - 1) / n)
    assert max(found.counts) == log2(n)
    assert found.above > 3
    assert check_closeness(workload, run(workload)).outcome is Outcome.BROKEN

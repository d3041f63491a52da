"""Figures of a router, by hand."""

import pytest

from model.grouping.evidence import evidence_of
from model.vocabulary import Event, GroupingConfig, Trace, Workload
from model.vocabulary.grouping import Route
from straggler.rooms.grouping.room import balance_of

CONFIG = GroupingConfig(2, times_us=((0, (1, 3)), (2, (3, 1))), window_tuples=4)
KEYS = "aaaa" + "aabb" + "aab"
AT = (0, 0, 0, 0, 0, 1, 0, 0, 1, 1, 0)
"""The instance of every tuple."""


def case() -> Workload:
    arrivals = tuple(Event(seq, seq, key, 100, 1.0, 100) for seq, key in enumerate(KEYS))
    return Workload("grouping", arrivals, CONFIG.to_json(), (4, 8))


def test_window_0_does_not_count_and_others_are_summed() -> None:
    routes = [Route(seq, 0, instance) for seq, instance in enumerate(AT)]
    found = balance_of(evidence_of(case(), Trace("by hand", routes)))
    assert found is not None
    # Window 1: 3 and 1 tuples at 1 and 3 us, work 3 and 3. Window 2: 1 and 2 at 3 and 1, work 3, 2.
    assert found.busiest_us == 3
    assert found.rho == pytest.approx((3 + 3) / (4 / (4 / 3) + 3 / (4 / 3)) - 1)
    assert found.imbalance == pytest.approx((3 + 3) / (3 + 2.5) - 1)
    # a is at two instances and b at one; then a at one and b at one.
    assert found.replication == (2 + 1 + 1 + 1) / 4


def test_missing_steps_have_no_figures() -> None:
    assert balance_of(evidence_of(case(), Trace("silent", ()))) is None
    one_window = case().with_(cuts=())
    routes = [Route(seq, 0, 0) for seq in range(len(KEYS))]
    assert balance_of(evidence_of(one_window, Trace("short", routes))) is None

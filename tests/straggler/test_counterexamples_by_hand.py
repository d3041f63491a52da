"""Errata, balance and waiting, computed by hand: what the published rules do on small examples."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from math import ceil, comb

import pytest

from model.grouping.evidence import evidence_of
from model.script.slices import Span, edges, panes
from model.vocabulary import (
    Event,
    GroupingConfig,
    SlackConfig,
    Trace,
    WatermarkConfig,
    Workload,
)
from model.vocabulary.grouping import Route
from straggler.rooms.grouping.room import balance_of
from straggler.rooms.script.errata import Stream
from straggler.rooms.slack.requirement_errata import Window
from straggler.rooms.watermark.measures import measure

# ------------------------------------------------------------------------------------------- slack


def test_probabilities_are_counts_of_subsets() -> None:
    config = SlackConfig(1, 1, aggregate="quantile", q=0.75, control="pd", eps=0.3)
    values = (1, 1, 2, 4, 4)
    for window in (Window(config, 5), Window(replace(config, aggregate="sum"), 5, values)):
        for n in range(1, 6):
            wrong = 0
            for kept in combinations(range(5), n):
                if window.values:
                    lost = sum(values) - sum(values[at] for at in kept)
                    wrong += lost >= 0.3 * sum(values)
                else:
                    wrong += abs(kept[ceil(0.75 * n) - 1] - (ceil(0.75 * 5) - 1)) >= 1.5
            assert window.probability(n) == Fraction(wrong, comb(5, n)), (window, n)


# --------------------------------------------------------------------------------------- watermark

SECOND_US = 1_000_000
W10 = 10 * SECOND_US
EVENTS = [
    Event(seq, seq, "a", at * SECOND_US, 1.0, came * SECOND_US)
    for seq, (at, came) in enumerate(((1, 1), (8, 8), (12, 12), (9, 13), (22, 22)))
]
"""The fourth tuple comes after a later one."""


def test_without_waiting_a_tuple_is_missed() -> None:
    found = measure(WatermarkConfig(W10, W10, 0, reading="fixed"), EVENTS)
    # [0, 10): from 1 s to 12 s, two tuples; [10, 20): from 12 s to 22 s, one; [20, 30): flushed.
    assert found.ratio == pytest.approx((2 + 1) / (11 + 10))
    assert (found.coverage, found.mean_wait_us, found.short_windows) == (4 / 5, 0, 1 / 3)
    # (12, 12) closes [0, 10) and [-5, 5); (9, 13) is late for one of its windows.
    overlapping = measure(WatermarkConfig(W10, W10 // 2, 0, reading="fixed"), EVENTS)
    assert overlapping.coverage == 9 / 10
    assert measure(WatermarkConfig(W10, W10, 0, reading="fixed"), EVENTS[:2]).ratio is None


def test_a_long_wait_misses_nothing_and_answers_late() -> None:
    wait_us = 3 * SECOND_US
    found = measure(WatermarkConfig(W10, W10, wait_us, reading="fixed"), EVENTS)
    # [0, 10) closes when the watermark is 19 s, at 22 s; nothing closes [10, 20).
    assert found.ratio == pytest.approx(3 / 21)
    assert (found.coverage, found.mean_wait_us, found.short_windows) == (1.0, wait_us, 0.0)
    slack = SlackConfig(W10, W10, control="fixed", fixed_slack_us=wait_us)
    assert measure(slack, EVENTS) == found


# ---------------------------------------------------------------------------------------- grouping


def test_figures_of_a_router_leave_out_window_0_and_sum_up_the_others() -> None:
    config = GroupingConfig(2, times_us=((0, (1, 3)), (2, (3, 1))), window_tuples=4)
    keys = "aaaa" + "aabb" + "aab"
    events = tuple([Event(seq, seq, key, 100, 1.0, 100) for seq, key in enumerate(keys)])
    case = Workload("grouping", events, config.to_json(), (4, 8))
    routes = [Route(seq, 0, int(at)) for seq, at in enumerate("00000100110")]
    found = balance_of(evidence_of(case, Trace("by hand", routes)))
    assert found is not None
    # Window 1: 3 and 1 tuples at 1 and 3 us, work 3 and 3. Window 2: 1 and 2 at 3 and 1, work 3, 2.
    assert found.busiest_us == 3
    assert found.rho == pytest.approx((3 + 3) / (4 / (4 / 3) + 3 / (4 / 3)) - 1)
    assert found.imbalance == pytest.approx((3 + 3) / (3 + 2.5) - 1)
    # a is at two instances and b at one; then a at one and b at one.
    assert found.replication == (2 + 1 + 1 + 1) / 4
    assert balance_of(evidence_of(case, Trace("silent", ()))) is None


# ------------------------------------------------------------------------------------------ script


@pytest.mark.parametrize(
    ("spans", "every_ms", "by_panes", "by_edges"),
    [
        # Two tuples are looked up, and a window has two panes of 2 ms.
        ([(4, 2)], 1, 2 + 2, 2 + 2),
        # In 3 ms: three tuples, each in two combs at the edges; [e-4, e-3), [e-3, e-1), [e-1, e).
        ([(4, 3)], 1, 3 + 4, 6 + 3),
        # One tuple every 5 ms: a window of 10 ms has two of them, in panes of 1 ms or not.
        ([(10, 1)], 5, 1 + 5 * 2, 1 + 5 * 2),
        # In 12 ms: panes of 1 ms; or cuts at 0 3 4 6 8 9, so windows have 2, 2, 2 and 2, 1, 1, 2.
        ([(4, 4), (3, 3)], 1, 12 + 3 * 4 + 4 * 3, 24 + 6 + 6),
    ],
)
def test_steps_of_panes_and_of_edges(
    spans: list[tuple[int, int]], every_ms: int, by_panes: int, by_edges: int
) -> None:
    windows = tuple(Span(*each) for each in spans)
    stream = Stream(windows, every_ms)
    assert stream.steps(panes(windows)) == by_panes
    assert stream.steps(edges(windows)) == by_edges

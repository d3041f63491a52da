"""Errata, balance and waiting, computed by hand: what the published rules do on small examples."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from math import ceil, comb

import pytest

from model.grouping import balance
from model.grouping.evidence import evidence_of
from model.grouping.variants import VARIANTS
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
from straggler.rooms.grouping import balance_errata
from straggler.rooms.grouping import errata as grouping_errata
from straggler.rooms.grouping.balance_errata import PAIRS, Spread
from straggler.rooms.grouping.room import balance_of
from straggler.rooms.script import errata as script_errata
from straggler.rooms.script.errata import Stream
from straggler.rooms.slack import control_errata
from straggler.rooms.slack.control_errata import Pattern, outcome, share
from straggler.rooms.slack.requirement_errata import Window
from straggler.rooms.watermark.measures import measure

# ------------------------------------------------------------------------------------------- slack


def test_the_published_law_meets_the_mean_and_breaks_the_promise() -> None:
    found = share(outcome(Pattern(tuples=3, stragglers=2, disordered=400), "pd"))
    assert found.coverage == pytest.approx(found.required, abs=control_errata.NEAR)
    assert found.wrong > 0.4


def test_windup_grows_with_the_time_in_order() -> None:
    plain = Pattern(tuples=3, stragglers=2, disordered=300)
    times, clamped = (
        [control_errata.recovery(plain._replace(in_order=n), law) for n in (0, 100, 200)]
        for law in ("pd", "pd-clamped")
    )
    assert times == sorted(set(times))
    assert times[2] - times[1] == 100
    assert max(clamped) <= 2


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


def test_the_hidden_makespan() -> None:
    found = Spread((0, 1, 1, 1, 1), (1, 10, 10, 10, 10))
    assert balance_errata.hidden().counterexample[0] == (
        "Instances that need 1, 10, 10, 10 and 10 us a tuple get 0, 1, 1, 1 and 1 tuples."
    )
    assert balance.imbalance(*found) == 10 / 8 - 1
    # All four to the fast one.
    assert (found.makespan_us, Spread((4, 0, 0, 0, 0), found.times_us).makespan_us) == (10, 4)


def test_ways_that_count_as_work() -> None:
    """Tuples go to the least load; among equals to the nearer instance, then the lower index."""
    literal = VARIANTS["with_propagation"].make_system()
    for pair in (each for each in PAIRS if each.m in (1, 4)):
        loads, counts = [0, 0], [0, 0]
        costs = [time + way for time, way in zip(pair.times_us, pair.latency_us, strict=True)]
        for _ in range(pair.m):
            at = min((0, 1), key=lambda i: (loads[i], pair.latency_us[i], i))
            loads[at] += costs[at]
            counts[at] += 1
        assert pair.counts(literal) == counts


def test_the_forgotten_key() -> None:
    lines = grouping_errata.counters().counterexample
    assert lines[0].startswith("Tuples of the keys a a b, one per micro-batch; eps = 0.6")
    # One counter: a 1, a 2, then b takes it over and counts 3.
    assert "the summary has b: 3; a has 2 of 3 tuples" in lines[1]
    for keys in product("abc", repeat=5):  # nothing is rounded
        assert not grouping_errata._forgotten("".join(keys), 0.25, int)


# ------------------------------------------------------------------------------------------ script


def test_two_sensors_on_two_workers_are_the_smallest_crew() -> None:
    findings = script_errata.uncharged()
    sensors, workers, tried = findings.counterexample
    assert sensors.startswith("2 sensors, each with a script of its own, on 2 workers;")
    assert workers == "By the rule as read worker 0 gets s0 and s1, worker 1 gets nothing."
    # One sensor, of four rates, on 2, 3 and 4 workers.
    assert tried.endswith("12 of 12 tried.")
    # The best is one each; LPT may take 4/3 - 1/6 times that.
    assert findings.literal.sentence.endswith(f"more than {4 / 3 - 1 / 6:.6g}.")


def test_the_greatest_less_the_least_of_one_value_is_zero() -> None:
    script, *sent, results, _ = script_errata.half_updated().counterexample
    assert script == 'The script x = max("a", 2, 2) - min("a", 2, 2).'
    assert [line[3:] for line in sent] == ["a sends 1, stamped 0 ms.", "a sends 5, stamped 2 ms."]
    # Each window has one value, so there is 0 twice; 5 - 1 mixes two windows.
    assert results.endswith("0 at 1 ms, 0 at 3 ms, 4 at 3 ms.")


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

"""Cuts of windows into slices: their places and cost; no slice crosses the edge of a window."""

from fractions import Fraction
from itertools import permutations
from math import lcm

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.script.slices import Comb, Span, choose, cost, edges, panes

MS = 1_000


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([Span(600, 300)], [Comb(300, 0)]),
        ([Span(997, 991)], [Comb(991, 0), Comb(991, 985)]),
        ([Span(4, 6)], [Comb(6, 0), Comb(6, 2)]),
        # Cuts that another comb makes are omitted.
        ([Span(4, 4), Span(8, 8), Span(2, 8)], [Comb(4, 0), Comb(8, 6)]),
    ],
)
def test_edges_are_cut_where_windows_begin_and_end(spans: list[Span], expected: list[Comb]) -> None:
    assert list(edges(spans)) == expected


SPANS = st.builds(Span, st.integers(1, 30), st.integers(1, 30))
RATES = st.sampled_from([Fraction(1), Fraction(7_200), Fraction(360_000), Fraction(3_600_000)])


@given(st.lists(SPANS, min_size=1, max_size=3), RATES)
def test_the_cheaper_way_is_taken(spans: list[Span], rate: Fraction) -> None:
    chosen = choose(spans, rate)
    different = set(spans)
    costs = [cost(way(different), different, rate) for way in (panes, edges)]
    assert [chosen.panes_cost, chosen.edges_cost] == costs
    assert chosen.is_panes == (costs[0] <= costs[1])
    assert chosen.cutting == (panes if chosen.is_panes else edges)(different)


@given(st.lists(SPANS, min_size=1, max_size=3), RATES)
def test_a_tuple_is_looked_up_and_a_window_folds_its_slices(
    spans: list[Span], rate: Fraction
) -> None:
    """Count cuts, look-ups and folds over a common multiple of all slides."""
    for cutting in (panes(spans), edges(spans)):
        period = lcm(*(every for every, _ in cutting), *(span.slide_ms for span in spans))
        cuts = sum(at % every == first for every, first in cutting for at in range(period))
        slices = min(Fraction(cuts, period), rate / 3_600_000)
        folds = sum(
            (Fraction(3_600_000, span.slide_ms) * span.length_ms * slices for span in spans),
            Fraction(),
        )
        assert cost(cutting, spans, rate) == rate * len(cutting) + folds


@given(st.lists(SPANS, min_size=1, max_size=3))
def test_every_edge_of_a_window_is_a_cut_and_edges_cut_nowhere_else(spans: list[Span]) -> None:
    period = lcm(*(span.slide_ms for span in spans))
    wanted = {
        at
        for span in spans
        for at in range(period)
        if at % span.slide_ms == 0 or (at + span.length_ms) % span.slide_ms == 0
    }

    def cut_at(every_ms: int, first_ms: int) -> set[int]:
        return {at for at in range(period) if at % every_ms == first_ms}

    combs = [cut_at(*comb) for comb in edges(spans)]
    assert set().union(*combs) == wanted
    # No comb repeats what another one cuts.
    assert all(not a <= b for a, b in permutations(combs, 2))
    [pane] = panes(spans)
    assert pane.every_ms == max(
        width
        for width in range(1, 31)
        if all(number % width == 0 for span in spans for number in span)
    )
    assert pane.first_ms == 0

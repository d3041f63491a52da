"""Cuts of windows into slices: their places and cost; no slice crosses the edge of a window."""

from fractions import Fraction
from itertools import product

import pytest

from model.script.slices import Comb, Span, choose, cost, edges, panes, slice_around, slice_of

MS = 1_000


def test_panes_are_as_wide_as_the_divisor_of_everything() -> None:
    assert panes([Span(600, 300), Span(900, 200)]) == (Comb(100, 0),)


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


@pytest.mark.parametrize("cut", [panes, edges])
def test_a_slice_lies_in_a_window_or_outside(cut: type) -> None:
    for first, second in product([Span(4, 6), Span(5, 3), Span(7, 7), Span(2, 9)], repeat=2):
        cutting = cut([first, second])
        starts = {stamp: slice_of(cutting, stamp * MS) for stamp in range(60)}
        for stamp, start in starts.items():
            end = slice_around(cutting, stamp * MS)[1]
            assert slice_of(cutting, end - 1) == start < slice_of(cutting, end) == end
        for span, end in product((first, second), range(1, 60)):
            if end % span.slide_ms == 0:
                inside = {at for at in starts if end - span.length_ms <= at < end}
                touched = {starts[at] for at in inside}
                assert {at for at in starts if starts[at] in touched} == inside


def test_the_cost_counts_look_ups_and_folds() -> None:
    # 3,600,000 tuples per hour, one per millisecond; 36,000 windows of 10 panes.
    span = Span(1_000, 100)
    assert cost(panes([span]), [span], Fraction(3_600_000)) == 3_600_000 + 36_000 * 10
    # With a tuple every 500 ms no window has more than two slices.
    assert cost(panes([span]), [span], Fraction(7_200)) == 7_200 + 36_000 * 2


def test_the_cheaper_way_is_taken() -> None:
    rate = Fraction(360_000)
    for spans in ([Span(600_000, 300_000)], [Span(3, 2)]):
        even = choose(spans, rate)
        assert even.is_panes
        assert even.cutting == panes(spans)
    odd = choose([Span(9_970, 991)], rate)
    assert not odd.is_panes
    assert odd.cutting == edges([Span(9_970, 991)])
    assert odd.edges_cost < odd.panes_cost / 4

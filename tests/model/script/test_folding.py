"""Portions in which a stream comes change no slice and no window."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from model.script.evaluation import Slices
from model.script.graph import WINDOW, Node
from model.script.rules import RULES
from model.script.slices import Span, edges, panes
from model.vocabulary.script.config import END_US
from model.vocabulary.script.tree import WINDOW_OPS

MS = 1_000
SPANS = (Span(4, 6), Span(5, 3), Span(8, 2))
VALUES = st.sampled_from([0.0, 1.0, -2.5, 0.1, 1e300, 5e-324])
POINTS = st.lists(st.tuples(st.integers(0, 40).map(lambda at: at * MS // 2), VALUES), max_size=30)
CUTS = st.lists(st.integers(1, 21).map(lambda at: at * MS), max_size=6)


@given(POINTS.map(sorted), CUTS.map(sorted), st.sampled_from([panes, edges]), st.booleans())
def test_portions_change_no_window(
    points: list[tuple[int, float]], cuts: list[int], cut: type, ends: bool
) -> None:
    last_us = END_US if ends else 21 * MS
    whole, portions = (Slices(cut(SPANS), RULES) for _ in range(2))
    whole.take(points, last_us)
    found: dict[tuple[str, Span], list[tuple[int, float]]] = {}
    nodes = [Node(WINDOW, op, (0,), span) for op in WINDOW_OPS for span in SPANS]
    # A slice is needed until the last window that has it has ended.
    longest_us = max(span.length_ms + span.slide_ms for span in SPANS) * MS
    for since_us, until_us in pairwise([0, *cuts, last_us]):
        portions.take([each for each in points if since_us <= each[0] < until_us], until_us)
        for node in nodes:
            assert node.span is not None
            slide_us = node.span.slide_ms * MS
            from_us = (since_us // slide_us + 1) * slide_us
            found.setdefault((node.op, node.span), []).extend(portions.windows(node, from_us))
        if until_us != END_US:
            portions.forget(until_us - longest_us)
    for node in nodes:
        assert node.span is not None
        assert found[node.op, node.span] == [*whole.windows(node, node.span.slide_ms * MS)]

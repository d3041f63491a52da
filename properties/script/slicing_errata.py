"""Panes that are narrower than what they are to save.

Rules of this file:

1. Windows are tried in a fixed order, the shortest first: nothing that was tried before a
   counterexample breaks the promise.
2. Steps are counted on a stream, not computed by the formula that chooses: every tuple is looked
   up in each comb of cuts, and every window folds those of its slices that have a tuple.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations, product
from math import lcm
from typing import NamedTuple

from model.checking.claims import Outcome, Verdict
from model.script.slices import HOUR_MS, Cutting, Span, choose, edges, panes, slice_of
from model.vocabulary.script import MILLISECOND_US
from properties.errors import counted
from properties.pages.errata import Findings, smaller

TWICE = 2
LENGTHS_MS, SLIDES_MS = range(1, 65), range(1, 11)
PAIRED = tuple(Span(*each) for each in product((4, 7, 12, 25, 49), (3, 8)))
"""Windows that are tried two at a time, too."""
EVERY_MS = (1, 5)
"""How far tuples are apart."""
FEW = "windows take at most twice the steps of the other way to cut"


class Stream(NamedTuple):
    """Windows, and how far apart the tuples are that they are over."""

    spans: tuple[Span, ...]
    every_ms: int

    def steps(self, cutting: Cutting) -> int:
        """In a time after which everything comes again."""
        period_ms = lcm(self.every_ms, *(span.slide_ms for span in self.spans))
        begin_ms = -(-max(span.length_ms for span in self.spans) // period_ms) * period_ms
        end_ms = begin_ms + period_ms
        starts = [
            slice_of(cutting, at_ms * MILLISECOND_US) // MILLISECOND_US
            for at_ms in range(0, end_ms, self.every_ms)
        ]
        pieces = sorted(set(starts))
        folds = sum(
            sum(at_ms - span.length_ms <= start < at_ms for start in pieces)
            for span in self.spans
            for at_ms in range(begin_ms + span.slide_ms, end_ms + 1, span.slide_ms)
        )
        return period_ms // self.every_ms * len(cutting) + folds

    @property
    def ways(self) -> tuple[Cutting, Cutting]:
        """Panes, and cuts at the edges."""
        return panes(self.spans), edges(self.spans)

    @property
    def chosen(self) -> Cutting:
        """The way that the cost says, by the rate of the stream."""
        return choose(self.spans, Fraction(HOUR_MS, self.every_ms)).cutting

    def times(self, cutting: Cutting) -> Fraction:
        """How many times the steps of the better way."""
        return Fraction(self.steps(cutting), min(self.steps(way) for way in self.ways))


def _streams() -> Iterator[Stream]:
    for every_ms, length_ms, slide_ms in product(EVERY_MS, LENGTHS_MS, SLIDES_MS):
        yield Stream((Span(length_ms, slide_ms),), every_ms)
    for every_ms, spans in product(EVERY_MS, combinations(PAIRED, 2)):
        yield Stream(spans, every_ms)


def panes_that_lose() -> Findings:
    """The first window for which panes take more than twice the steps of cuts at its edges."""
    every = list(_streams())
    tried = next(n for n, each in enumerate(every) if each.times(each.ways[0]) > TWICE)
    stream = every[tried]
    (span,) = stream.spans
    by_panes, by_edges = (stream.steps(way) for way in stream.ways)
    told = (
        f"A window of {span.length_ms} ms, anew every {span.slide_ms} ms, over a tuple every"
        f" {stream.every_ms} ms.",
        f"The greatest common divisor is {stream.ways[0][0].every_ms} ms: in {span.slide_ms} ms"
        f" that takes {counted(by_panes, 'step')}, with cuts at the edges of windows {by_edges}.",
        _longer(),
        smaller(tried, "window"),
    )
    literal = Verdict(FEW, Outcome.BROKEN, _said(stream.times(stream.ways[0])))
    same = _few([stream])
    return Findings(told, literal, same, _few(every))


def _longer() -> str:
    """The same with lengths as analysts write them."""
    spans = (Span(60_007, 1_000),)
    stream = Stream(spans, 10)
    by_panes, by_edges = (stream.steps(way) for way in stream.ways)
    return (
        "It can be worse: a window of 60,007 ms, anew every second, over a tuple every 10 ms takes"
        f" {by_panes:,} steps a second instead of {by_edges:,}."
    )


def _few(streams: Sequence[Stream]) -> Verdict:
    most = max(stream.times(stream.chosen) for stream in streams)
    where = ""
    if len(streams) > 1:
        where = f", in {len(streams):,} streams with one window or two"
        alone = sum(stream.chosen == stream.ways[1] != stream.ways[0] for stream in streams)
        where += f", {alone:,} of them cut at edges"
    outcome = Outcome.HOLDS if most <= TWICE else Outcome.BROKEN
    return Verdict(FEW, outcome, _said(most, where))


def _said(times: Fraction, where: str = "") -> str:
    if times == 1:
        return f"It takes no more steps than the better way{where}."
    return f"It takes up to {float(times):.2f} times the steps of the better way{where}."

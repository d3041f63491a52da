"""Errata of room ``script``: promises that the published framework, read literally, breaks.

Source: a framework for real-time aggregation over large numbers of sensors.

Rules of this file:

1. Cases are tried in a fixed order, smaller ones first.
2. Placement: the cap is so high that no component is split, because a split would hide the mistake.
3. Slices: steps are counted on a stream, not computed by the formula that chooses. Every tuple is
   looked up in each comb of cuts, and every window folds its slices that hold a tuple.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product
from math import lcm
from typing import NamedTuple

from model.checking.claims import Outcome, Verdict
from model.script import make_system
from model.script.claims import LOAD, RESULTS, judge
from model.script.variants import VARIANTS
from model.vocabulary import Event, ScriptConfig, Trace, Workload
from model.vocabulary.script.config import MILLISECOND_US, Hosted, Result
from model.vocabulary.script.slices import HOUR_MS, Cutting, Span, choose, edges, panes, slice_of
from model.vocabulary.script.tree import Arithmetic, Expression, Sensor, Statement, Window, Workflow
from straggler.errors import counted
from straggler.pages.errata import (
    Erratum,
    Findings,
    Kind,
    decide,
    erratum,
    promise_or_broken,
    search,
    smallest_stream,
)
from straggler.rooms.script.formatter import text_of

FRAMEWORK = "a framework for real-time aggregation over large numbers of sensors"

# ------------------------------------------------------------- placement that charges no worker

COMPONENTS, WORKERS, RATES = range(1, 6), range(2, 5), (1, 2, 3, 5)


class Crew(NamedTuple):
    """Sensors, each with a script of its own, and workers for them."""

    per_hour: tuple[int, ...]
    """Tuples per hour, by sensor."""
    workers: int

    def workload(self) -> Workload:
        """Return a workload without arrivals: placement does not depend on them."""
        sensors = tuple((f"s{number}", rate) for number, rate in enumerate(self.per_hour))
        hour_ms = int(HOUR_MS)
        flows = tuple(
            Workflow(f"of_{name}", (Statement("x", Window("avg", Sensor(name), hour_ms, hour_ms)),))
            for name, _ in sensors
        )
        config = ScriptConfig(flows, sensors, self.workers, cap_percent=100 * self.workers)
        return Workload("script", (), config.to_json())


def _crews() -> Iterator[Crew]:
    for n, workers in product(COMPONENTS, WORKERS):
        for per_hour in combinations_with_replacement(RATES, n):
            yield Crew(per_hour, workers)


def uncharged() -> Findings:
    """Find the first crew whose workers have needlessly unequal loads."""
    streams = (crew.workload() for crew in _crews())
    bug = VARIANTS["target_not_charged"]
    return smallest_stream(
        bug, make_system(), judge, streams, _describe_hosts, _judge_all_crews, "crew"
    )


def _describe_hosts(workload: Workload, trace: Trace) -> Sequence[str]:
    config = ScriptConfig.from_json(workload.config)
    sent = ", ".join(f"{name} {counted(rate, 'tuple')}" for name, rate in config.sensors)
    at = [
        " and ".join(each.sensor for each in trace.of(Hosted) if each.worker == worker)
        for worker in range(config.workers)
    ]
    gets = [f"worker {worker} gets {sensors or 'nothing'}" for worker, sensors in enumerate(at)]
    return (
        f"{counted(len(config.sensors), 'sensor')}, each with a script of its own, on"
        f" {config.workers} workers; tuples per hour: {sent}.",
        f"By the rule as read {', '.join(gets)}.",
    )


def _judge_all_crews() -> Verdict:
    workloads = [crew.workload() for crew in _crews()]
    sentence = (
        f"The bound of LPT is kept in {len(workloads):,} cases: all of up to {COMPONENTS[-1]}"
        f" scripts on up to {WORKERS[-1]} workers, with {len(RATES)} rates."
    )
    return _judge_all(workloads, LOAD, sentence)


def _judge_all(workloads: Sequence[Workload], claim: str, sentence: str) -> Verdict:
    """Judge the right rules on all workloads; the ``sentence`` says that they keep the claim."""
    system = make_system()
    for workload in workloads:
        verdict = promise_or_broken(judge(workload, system(workload)).verdicts, claim)
        if verdict.outcome is not Outcome.HOLDS:
            return verdict
    return Verdict(claim, Outcome.HOLDS, sentence)


# --------------------------------------------------- operations that answer between two updates

A, B = Sensor("a"), Sensor("b")
SIDES: tuple[Expression, ...] = (Window("max", A, 2, 2), Window("min", A, 2, 2), A, B)
TUPLES_MAX = 3
TIMES_MS = (0, 2)
VALUES = (1.0, 5.0, 7.0)
"""Value of a tuple, by its position."""


def half_updated() -> Findings:
    """Find the first stream with a result that mixes two times."""
    bug = VARIANTS["at_every_change"]
    return smallest_stream(
        bug, make_system(), judge, _updates(), _describe_results, _judge_all_updates
    )


def _updates() -> Iterator[Workload]:
    scripts = [Arithmetic("-", left, right) for left, right in product(SIDES, SIDES)]
    letters = list(product("ab", TIMES_MS))
    for n in range(1, TUPLES_MAX + 1):
        for script, arrived in product(scripts, product(letters, repeat=n)):
            yield _workload(script, arrived)


def _workload(script: Expression, arrived: tuple[tuple[str, int], ...]) -> Workload:
    flow = Workflow("w", (Statement("x", script),))
    config = ScriptConfig((flow,), (("a", 1), ("b", 1)))
    arrivals = tuple(
        Event(seq, seq, sensor, at_ms * MILLISECOND_US, VALUES[seq], seq)
        for seq, (sensor, at_ms) in enumerate(arrived)
    )
    return Workload("script", arrivals, config.to_json())


def _describe_results(workload: Workload, trace: Trace) -> Sequence[str]:
    (flow,) = ScriptConfig.from_json(workload.config).workflows
    results = [f"{each.value:g} at {each.ts_us // MILLISECOND_US} ms" for each in trace.of(Result)]
    return (
        f"The script x = {text_of(flow.statements[0].expression)}.",
        *(
            f"{event.seq + 1}. {event.key} sends {event.value:g}, stamped"
            f" {event.event_time_us // MILLISECOND_US} ms."
            for event in workload.arrivals
        ),
        f"Results of x by the rule as filled in: {', '.join(results)}.",
    )


def _judge_all_updates() -> Verdict:
    workloads = [*_updates()]
    sentence = (
        f"Held in {len(workloads):,} runs: the difference of every two of {len(SIDES)} inputs, with"
        f" every stream of up to {TUPLES_MAX} tuples of two sensors at {len(TIMES_MS)} times."
    )
    return _judge_all(workloads, RESULTS, sentence)


# ----------------------------------------------------------------- panes that cost more than edges

TWICE = 2
LENGTHS_MS, SLIDES_MS = range(1, 65), range(1, 11)
PAIRED = tuple(Span(*each) for each in product((4, 7, 12, 25, 49), (3, 8)))
"""Windows that are also tried two at a time."""
EVERY_MS = (1, 5)
"""Intervals between two tuples."""
FEW = "windows take at most twice the steps of the other way to cut"


class Stream(NamedTuple):
    """Windows over a stream, and the interval between its tuples."""

    spans: tuple[Span, ...]
    every_ms: int

    def steps(self, cutting: Cutting) -> int:
        """Return the steps in one period, after which everything repeats."""
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
        """The way that is cheaper at the rate of the stream, by the formula."""
        return choose(self.spans, Fraction(HOUR_MS, self.every_ms)).cutting

    def times(self, cutting: Cutting) -> Fraction:
        """Return the steps of a way, relative to those of the better way."""
        return Fraction(self.steps(cutting), min(self.steps(way) for way in self.ways))


def _streams() -> Iterator[Stream]:
    for every_ms, length_ms, slide_ms in product(EVERY_MS, LENGTHS_MS, SLIDES_MS):
        yield Stream((Span(length_ms, slide_ms),), every_ms)
    for every_ms, spans in product(EVERY_MS, combinations(PAIRED, 2)):
        yield Stream(spans, every_ms)


def panes_that_lose() -> Findings:
    """Find the first window for which panes take more than twice the steps of its edges."""
    every = list(_streams())
    return search(
        FEW,
        every,
        lambda stream: _judge_times(stream.times(stream.ways[0])),
        lambda stream: _judge_chosen([stream]),
        lambda: _judge_chosen(every),
        _describe_stream,
        "window",
    )


def _describe_stream(stream: Stream) -> Sequence[str]:
    (span,) = stream.spans
    by_panes, by_edges = (stream.steps(way) for way in stream.ways)
    longer = Stream((Span(60_007, 1_000),), 10)  # lengths as analysts write them
    more_panes, fewer_edges = (longer.steps(way) for way in longer.ways)
    return (
        f"A window of {span.length_ms} ms every {span.slide_ms} ms, over a tuple every"
        f" {stream.every_ms} ms.",
        f"The greatest common divisor is {stream.ways[0][0].every_ms} ms: in {span.slide_ms} ms"
        f" that takes {counted(by_panes, 'step')}, with cuts at the edges of windows {by_edges}.",
        "It can be worse: a window of 60,007 ms every second, over a tuple every 10 ms, takes"
        f" {more_panes:,} steps a second instead of {fewer_edges:,}.",
    )


def _judge_chosen(streams: Sequence[Stream]) -> Verdict:
    where = ""
    if len(streams) > 1:
        alone = sum(stream.chosen == stream.ways[1] != stream.ways[0] for stream in streams)
        where = f", in {len(streams):,} streams with one window or two, {alone:,} of them cut at"
        where += " edges"
    return _judge_times(max(stream.times(stream.chosen) for stream in streams), where)


def _judge_times(times: Fraction, where: str = "") -> Verdict:
    sentence = f"It takes up to {float(times):.2f} times the steps of the better way{where}."
    if times == 1:
        sentence = f"It takes no more steps than the better way{where}."
    return decide(FEW, times <= TWICE, sentence)


# ------------------------------------------------------------------------------------- the table


ERRATA: tuple[Erratum, ...] = (
    erratum(
        VARIANTS["target_not_charged"],
        Kind.READING,
        "load-not-added",
        "Work is spread evenly over the workers.",
        f"{FRAMEWORK}: algorithm 1, whose listing in the text that we have takes the worker with"
        " the least load and has no line that adds to it; lines may be lost. It also sorts the"
        " loads without the subgraphs that they belong to",
        uncharged,
    ),
    erratum(
        VARIANTS["at_every_change"],
        Kind.OPEN,
        "half-updated",
        "What several scripts need is computed once, and results are the same.",
        f"{FRAMEWORK}: an operation over streams gives a result at the moment at which the value of"
        " any input changes; what happens when inputs change together is not said",
        half_updated,
    ),
    Erratum(
        Kind.PRINTED,
        "gcd-panes",
        "Windows over one sensor are merged so that as little as possible is computed.",
        f"{FRAMEWORK}: different windows over a sensor are merged by the greatest common divisor,"
        " always",
        "A stream is cut into panes as wide as the greatest common divisor of all lengths and"
        " slides over it.",
        "It is cut at the edges of windows instead where that costs less, by the rate of the"
        " stream.",
        panes_that_lose,
    ),
)

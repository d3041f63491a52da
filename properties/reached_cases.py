"""Counts of the cases that matter, in one test of a promise and in simulated runs."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

from model.script.graph import compile_graph
from model.script.slices import Span
from model.vocabulary import Event, ScriptConfig, Trace, Workload
from model.vocabulary.script.config import (
    MILLISECOND_US,
    REASON_NOT_FINITE,
    Rejected,
    Result,
    Undefined,
)
from model.vocabulary.script.tree import (
    ACROSS_OPS,
    ARITHMETIC_OPS,
    WINDOW_OPS,
    Across,
    Arithmetic,
    Statement,
    Window,
    walk,
)
from model.vocabulary.slack import Judged
from properties.oracles.windows import Windows
from sim.kernel.run import TimedRun

LARGE = 100
"""Fewest tuples of a large window."""
PARTIAL = "windows that require a part"
LARGE_PARTIAL = f"windows of {LARGE} tuples or more that require a part"

TROUBLES = ("shed", "held_back", "sent_again", "served_again")
"""Entries of a run's summary that count trouble; a run without trouble has none of them."""

OPERATIONS: Mapping[tuple[type, str], str] = {
    **{(Window, op): f"results of windows: {op}" for op in WINDOW_OPS},
    **{(Across, op): f"results over streams: {op}" for op in ACROSS_OPS},
    **{(Arithmetic, op): f"results of arithmetic: {op}" for op in ARITHMETIC_OPS},
}
"""Name of the results that an operation of a script has a part in."""


def count_troubles(runs: Iterable[TimedRun]) -> Counter[str]:
    """Count the runs that met each kind of trouble, and the runs whose workers failed."""
    met = Counter(dict.fromkeys((*TROUBLES, "kills"), 0))
    for run in runs:
        met.update(name for name in TROUBLES if name in run.summary)
        met["kills"] += bool(run.workload.faults)
    return met


def count_partial(trace: Trace, least: int = 0) -> int:
    """Count judged windows of ``least`` tuples or more that need only a part of them at first."""
    known = [(step.n_rcv + step.n_late, step.n_req) for step in trace.of(Judged)]
    return sum(total >= least and 0 < required < total for total, required in known)


# -------------------------------------------------------------------------------------- scales

WIDE = (
    "spans of years",
    "spans below a millisecond",
    "identities beyond 2^32",
    "values beyond float32",
)
MANY_OR_FEW = (
    "streams of a thousand keys",
    "windows of one tuple",
    "windows of a thousand tuples",
)
SIZED = (*WIDE, *MANY_OR_FEW)
"""Cases that :func:`count_scales` counts, those of wide numbers first."""
YEAR_US, MANY = 365 * 86_400_000_000, 1_000
NO_WINDOWS: Windows = {}
FLOAT32_EXACT = 2**24
"""Largest whole number up to which a 32-bit float holds all whole numbers."""


def count_scales(workload: Workload, windows: Windows = NO_WINDOWS) -> dict[str, int]:
    """Count the large and small numbers in a stream, and in its windows if they are given."""
    times_us = [event.event_time_us for event in workload.arrivals]
    span_us = max(times_us, default=0) - min(times_us, default=0)
    found = (
        span_us >= YEAR_US,
        1 < span_us < MILLISECOND_US,
        any(event.source_id >= 1 << 32 for event in workload.arrivals),
        any(event.value > FLOAT32_EXACT for event in workload.arrivals),
        len({event.key for event in workload.arrivals}) >= MANY,
        sum(each.n == 1 for each in windows.values()),
        sum(each.n >= MANY for each in windows.values()),
    )
    return {name: int(count) for name, count in zip(SIZED, found, strict=True)}


# ---------------------------------------------------------------------------------- room script


def count_script_cases(workload: Workload, trace: Trace) -> dict[str, int]:
    """Count the results of every operation, and the arrivals that scripts may get wrong."""
    config = ScriptConfig.from_json(workload.config)
    rejected = {step.seq: step.reason for step in trace.of(Rejected)}
    asked_for = [event for event in workload.arrivals if event.key in config.asked_for]
    admitted = [event for event in asked_for if event.seq not in rejected]
    spans = _windows_of(config)
    return {
        **dict.fromkeys(OPERATIONS.values(), 0),
        **_count_results(config, trace),
        "redelivered tuples": len(admitted) - len({(e.key, e.source_id) for e in admitted}),
        "values that are not finite": list(rejected.values()).count(REASON_NOT_FINITE),
        "on a boundary": sum(_is_on_an_edge(event, spans[event.key]) for event in admitted),
    }


def _count_results(config: ScriptConfig, trace: Trace) -> Counter[str]:
    """Count the results of each operation, and the windows of statements, also the empty ones."""
    stamps_us = defaultdict[tuple[str, str], list[int]](list)
    counts = Counter({"windows": 0, "empty windows": 0})
    results = Counter((each.workflow, each.name) for each in trace.of(Result))
    answers: list[Result | Undefined] = [*trace.of(Result), *trace.of(Undefined)]
    for step in answers:
        stamps_us[step.workflow, step.name].append(step.ts_us)
    for workflow in config.workflows:
        for statement in workflow.statements:
            place = workflow.name, statement.name
            counts.update(dict.fromkeys(_operations(statement), results[place]))
            if isinstance(statement.expression, Window):
                counts["windows"] += results[place]
                slide_us = statement.expression.slide_ms * MILLISECOND_US
                skipped = (b - a - slide_us for a, b in pairwise(sorted(stamps_us[place])))
                counts["empty windows"] += sum(skipped) // slide_us
    return counts


def _operations(statement: Statement) -> Iterator[str]:
    """Yield the names of the operations that a statement is written with."""
    for node, _ in walk(statement.expression):
        if isinstance(node, Window | Across | Arithmetic):
            yield OPERATIONS[type(node), node.op]


def _windows_of(config: ScriptConfig) -> Mapping[str, set[Span]]:
    """Return the windows that read each sensor, also through unions and names."""
    found = defaultdict[str, set[Span]](set)
    graph = compile_graph(config)
    for number, node in enumerate(graph.nodes):
        if node.span is not None:
            for each in graph.streams(number):
                found[graph.nodes[each].sensor].add(node.span)
    return found


def _is_on_an_edge(event: Event, spans: Iterable[Span]) -> bool:
    """Return whether a window starts or ends at the time of an event."""
    time_us = event.event_time_us
    return any(
        time_us % (span.slide_ms * MILLISECOND_US) == 0
        or (time_us + span.length_ms * MILLISECOND_US) % (span.slide_ms * MILLISECOND_US) == 0
        for span in spans
    )

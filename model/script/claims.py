"""The promises of docs/script.md, section 10, judged on any trace.

Rules of this file:

* A trace is compared with the naive meaning of its workload, and its placement with the best that
  trying everything finds; neither knows the sharing graph.
* The graph is asked for guards alone: how often the cases occurred that are easily got wrong.
* Who is sent what may be left unrecorded; then nothing is said of placement.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import isfinite

from model.checking import claims
from model.checking.claims import Judgement, Outcome, Verdict
from model.script.begun import begin, known_of
from model.script.closeness import aligned
from model.script.graph import OPERATION, UNION, Graph, compile_graph
from model.script.meaning import meaning
from model.script.optimum import least_makespan
from model.script.slices import choose
from model.vocabulary import Event, ScriptConfig, Step, Trace, Workload
from model.vocabulary.script import (
    REASON_LATE,
    Expression,
    Hosted,
    Name,
    Number,
    Rejected,
    Result,
    Sensor,
    Undefined,
    Union,
    walk,
)

RESULTS = "results are what the workflows mean"
UNDEFINED = "where nothing finite comes out is told"
REJECTIONS = "rejected is what is late or not finite"
HOSTS = "workers are sent the sensors that are asked for"
BOUNDS = "late is what lies behind the latest, and all that lies farther than the lateness"
LOAD = "no worker has more than the bound of LPT"
SHOWN = 5
COMPONENTS_MAX = 8
"""More are not tried in every way."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A workload, what it means, and a trace of it."""

    workload: Workload
    config: ScriptConfig
    expected: Trace
    trace: Trace
    known: Trace
    """Of the trace, what the expected steps speak of: all, unless a part was computed."""
    computed: int
    """Arrivals from which what is expected was computed."""

    @property
    def per_hour(self) -> Mapping[str, int]:
        """What sensors send."""
        return dict(self.config.sensors)


def _told(step: Step) -> str:
    if isinstance(step, Result):
        return f"{step.name} = {step.value:g} of {step.workflow} at {step.ts_us:,} us"
    if isinstance(step, Undefined):
        return f"undefined {step.name} of {step.workflow} at {step.ts_us:,} us"
    assert isinstance(step, Rejected)
    return f"rejection of arrival {step.seq}: {step.reason}"


def _differences(word: type[Result | Undefined | Rejected], seen: Evidence) -> Iterator[str]:
    expected, found = (Counter(trace.of(word)) for trace in (seen.expected, seen.known))
    for step in sorted((expected - found).elements()):
        yield f"There is no {_told(step)}."
    for step in sorted((found - expected).elements()):
        yield f"There should be no {_told(step)}."


def results(seen: Evidence) -> Iterator[str]:
    """What speaks against the results."""
    return _differences(Result, seen)


def undefined(seen: Evidence) -> Iterator[str]:
    """What speaks against the times without a result."""
    return _differences(Undefined, seen)


def rejections(seen: Evidence) -> Iterator[str]:
    """What speaks against the rejections."""
    return _differences(Rejected, seen)


def bounds(seen: Evidence) -> Iterator[str]:
    """What speaks against the watermark, by the latest event time of each sensor alone."""
    late = _late(seen)
    for event, behind_us in _behind(seen):
        most_us = seen.config.lateness_us
        if event.seq in late and (behind_us <= 0 or most_us is None):
            yield f"Arrival {event.seq} does not lie behind {event.key!r}, and is late."
        if event.seq not in late and most_us is not None and behind_us > most_us:
            told = f"Arrival {event.seq} lies {behind_us:,} us behind {event.key!r}"
            yield f"{told}, and is not late."


def _late(seen: Evidence) -> frozenset[int]:
    return frozenset(each.seq for each in seen.trace.of(Rejected) if each.reason == REASON_LATE)


def _behind(seen: Evidence) -> Iterator[tuple[Event, int]]:
    """Arrivals with a value, and how far behind the latest one before them of their sensor."""
    latest_us: dict[str, int] = {}
    for event in seen.workload.arrivals:
        if event.key in seen.config.asked_for and isfinite(event.value):
            before_us = latest_us.get(event.key, 0)
            yield event, before_us - event.event_time_us
            latest_us[event.key] = max(before_us, event.event_time_us)


# ------------------------------------------------------------------------------------- placement


def hosts(seen: Evidence) -> Iterator[str]:
    """What speaks against who is sent what."""
    found = Counter(seen.trace.of(Hosted))
    for each, times in sorted(found.items()):
        if times > 1:
            yield f"Worker {each.worker} is sent {each.sensor!r} {times} times."
        if not 0 <= each.worker < seen.config.workers:
            yield f"There is no worker {each.worker}, which is sent {each.sensor!r}."
    at = {each.sensor for each in found}
    for sensor in sorted(seen.config.asked_for - at):
        yield f"No worker is sent {sensor!r}."
    for sensor in sorted(at - seen.config.asked_for):
        yield f"Nobody asks for {sensor!r}, which is sent to a worker."


def loads(seen: Evidence) -> Mapping[int, int]:
    """Tuples an hour that a worker is sent."""
    found: Counter[int] = Counter()
    for each in set(seen.trace.of(Hosted)):
        found[each.worker] += seen.per_hour.get(each.sensor, 0)
    return found


def load(seen: Evidence) -> Iterator[str]:
    """What speaks against the load of the worker with the most."""
    pieces = [
        Fraction(sum(seen.per_hour[sensor] for sensor in piece)) for piece in connected(seen.config)
    ]
    if 0 < len(pieces) <= COMPONENTS_MAX:
        n = seen.config.workers
        bound = least_makespan(pieces, n) * (Fraction(4, 3) - Fraction(1, 3 * n))
        for worker, at in sorted(loads(seen).items()):
            if at > bound:
                yield f"Worker {worker} is sent {at:,} tuples an hour, more than {float(bound):,g}."


def connected(config: ScriptConfig) -> list[frozenset[str]]:
    """Sensors that are needed together, directly or not."""
    found: list[frozenset[str]] = []
    for workflow in config.workflows:
        below: dict[str, frozenset[str]] = {}
        for statement in workflow.statements:
            below[statement.name] = _below(statement.expression, below)
            for node, _ in walk(statement.expression):
                if not isinstance(node, Union | Sensor | Name | Number):
                    together = _below(node, below)
                    apart = [each for each in found if not each & together]
                    found = [*apart, together.union(*(each for each in found if each & together))]
    return found


def _below(expression: Expression, names: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """All sensors that an expression depends on."""
    nodes = [node for node, _ in walk(expression)]
    direct = frozenset(node.id for node in nodes if isinstance(node, Sensor))
    return direct.union(*(names[node.name] for node in nodes if isinstance(node, Name)))


# ---------------------------------------------------------------------------------------- guards


def _guards(seen: Evidence) -> dict[str, int]:
    """How often the interesting cases occurred."""
    graph = compile_graph(seen.config)
    cut = {number: choose(spans, graph.per_hour[number]) for number, spans in graph.spans().items()}
    slides = {
        number: max(span.slide_ms for span in spans) for number, spans in graph.spans().items()
    }
    spans = [node.span for node in graph.nodes if node.span is not None]
    workers = Counter(each.sensor for each in set(seen.trace.of(Hosted)))
    asked, late = seen.config.asked_for, _late(seen)
    following = [] if seen.config.watermark == "fixed" else list(_behind(seen))
    return {
        "shared computations": graph.written - len(graph.computed),
        "streams with several windows": sum(len(each) > 1 for each in graph.spans().values()),
        "panes narrower than a slide": sum(
            choice.is_panes and choice.cutting[0].every_ms < slides[number]
            for number, choice in cut.items()
        ),
        "streams cut at edges": sum(not choice.is_panes for choice in cut.values()),
        "windows with gaps": sum(span.slide_ms > span.length_ms for span in spans),
        "slides that do not divide": sum(span.length_ms % span.slide_ms > 0 for span in spans),
        "windows over results": sum(
            any(graph.nodes[each].is_computed for each in graph.streams(number))
            for number, node in enumerate(graph.nodes)
            if node.span is not None
        ),
        "parts of a union twice": sum(
            len(set(node.inputs)) < len(node.inputs) for node in graph.nodes if node.kind == UNION
        ),
        "updates at one time": _together(graph, seen),
        "results": len(seen.trace.of(Result)),
        "undefined times": len(seen.trace.of(Undefined)),
        "late arrivals": sum(each.reason == REASON_LATE for each in seen.trace.of(Rejected)),
        "late arrivals by disorder": sum(event.seq in late for event, _ in following),
        "arrivals waited for by disorder": sum(
            behind_us > 0 and event.seq not in late for event, behind_us in following
        ),
        "tuples nobody asks for": sum(event.key not in asked for event in seen.workload.arrivals),
        "streams known in part": int(not seen.workload.flush),
        "sensors at several workers": sum(at > 1 for at in workers.values()),
        "components for several workers": int(
            seen.config.workers > 1 and len(connected(seen.config)) > 1
        ),
    }


def _together(graph: Graph, seen: Evidence) -> int:
    """Stamps that several results of workflows with an operation of several inputs have."""
    if not any(node.kind == OPERATION and len(set(node.inputs)) > 1 for node in graph.nodes):
        return 0
    stamps = sorted((each.workflow, each.ts_us) for each in seen.trace.of(Result))
    return sum(left == right for left, right in pairwise(stamps))


# ---------------------------------------------------------------------------------------- judging

AGAINST: Mapping[str, Callable[[Evidence], Iterator[str]]] = {
    RESULTS: results,
    UNDEFINED: undefined,
    REJECTIONS: rejections,
    BOUNDS: bounds,
    HOSTS: hosts,
    LOAD: load,
}
GUARDS: Mapping[str, str] = {
    RESULTS: "shared computations",
    UNDEFINED: "undefined times",
    REJECTIONS: "late arrivals",
    BOUNDS: "late arrivals",
    HOSTS: "sensors at several workers",
    LOAD: "components for several workers",
}


def judge(workload: Workload, trace: Trace, most: int | None = None) -> Judgement:
    """Every promise, on one trace.

    The naive meaning takes time that grows with the square of the arrivals. Of those beyond
    ``most`` it takes no notice: what is known by then is what results are compared with.
    """
    config = ScriptConfig.from_json(workload.config)
    begun = begin(workload, most)
    expected = begun.of(Trace("meaning", meaning(begun.workload)))
    known = aligned(workload, expected, trace)
    if not begun.is_whole:
        known = known_of(begun.workload, expected, known)
    seen = Evidence(workload, config, expected, trace, known, len(begun.workload.arrivals))
    verdicts = [_verdict(claim, seen) for claim in AGAINST]
    return Judgement(tuple(verdicts), _guards(seen))


def _verdict(claim: str, seen: Evidence) -> Verdict:
    against = list(AGAINST[claim](seen))
    if claim in (HOSTS, LOAD):
        if seen.config.asked_for and not seen.trace.of(Hosted):
            sentence = "It is not recorded which sensors a worker is sent."
            return Verdict(claim, Outcome.UNDETERMINED, sentence)
        where = ""
    else:
        arrivals = len(seen.workload.arrivals)
        where = f" by {seen.computed:,} of the arrivals" if seen.computed < arrivals else ""
    if not against:
        return Verdict(claim, Outcome.HOLDS, f"Nothing speaks against it{where}.")
    more = f" ({len(against):,} in all.)" if len(against) > 1 else ""
    return Verdict(claim, Outcome.BROKEN, f"{against[0]}{more}", tuple(against[:SHOWN]))


def check(workload: Workload, trace: Trace) -> tuple[Verdict, ...]:
    """The verdicts alone."""
    return judge(workload, trace).verdicts


CASES = (
    "shared computations",
    "streams with several windows",
    "panes narrower than a slide",
    "streams cut at edges",
    "windows with gaps",
    "slides that do not divide",
    "windows over results",
    "parts of a union twice",
    "updates at one time",
    "results",
    "undefined times",
    "late arrivals",
    "late arrivals by disorder",
    "arrivals waited for by disorder",
    "tuples nobody asks for",
    "streams known in part",
    "sensors at several workers",
    "components for several workers",
)
"""What all traces together must contain."""


def over_all(cases: Iterable[Judgement]) -> tuple[Verdict, ...]:
    """Judgements of many traces, summed up by claim (:func:`model.checking.claims.over_all`)."""
    return claims.over_all(cases, GUARDS)

"""The promises of docs/script.md, section 10, judged on any trace.

Rules of this file:

* A trace is compared with the naive meaning of its workload, and its placement with the optimum
  that trying everything finds. Neither knows the sharing graph.
* Only the guards use the graph: it counts the cases that are easy to get wrong.
* A trace may leave out which sensors a worker is sent; then nothing is said about placement.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from math import isfinite

from model.checking.claims import COMPLETE, Claim, ClaimSet, Judgement, Recording
from model.script.evidence import Evidence, evidence_of
from model.script.graph import OPERATION, UNION, Node
from model.script.placement import (
    WHOLE,
    Placement,
    components,
    hash_baseline,
    load_cap,
    sensors_of,
)
from model.script.silence_claims import CASES as SILENCE_CASES
from model.script.silence_claims import SILENCE, against_silence, has_silence
from model.script.slices import Choice, Span, choose
from model.vocabulary import Event, ScriptConfig, Step, Trace, Workload
from model.vocabulary.script.config import REASON_LATE, Hosted, Rejected, Result, Undefined
from model.vocabulary.script.tree import Expression, Name, Number, Sensor, Union, walk

RESULTS = "results are what the workflows mean"
UNDEFINED = "where nothing finite comes out is told"
REJECTIONS = "rejected is what is late or not finite"
HOSTS = "workers are sent the sensors that are asked for"
BOUNDS = "late is what lies behind the latest, and all that lies farther than the lateness"
LOAD = "no worker has more than the bound of LPT"
COMPONENTS_MAX = 8
"""Largest number of components whose assignments are all tried, for a trace."""
COMPONENTS_OF_PLACEMENT_MAX = 6
"""Largest number of components whose assignments are all tried, for a placement."""

# ---------------------------------------------------------------------------------------- results


def _described(step: Step) -> str:
    if isinstance(step, Result):
        return f"{step.name} = {step.value:g} of {step.workflow} at {step.ts_us:,} us"
    if isinstance(step, Undefined):
        return f"undefined {step.name} of {step.workflow} at {step.ts_us:,} us"
    assert isinstance(step, Rejected)
    return f"rejection of arrival {step.seq}: {step.reason}"


def _differences(word: type[Result | Undefined | Rejected], seen: Evidence) -> Iterator[str]:
    """Yield the steps of a kind that are missing or should not be there."""
    expected, found = (Counter(trace.of(word)) for trace in (seen.expected, seen.known))
    for step in sorted((expected - found).elements()):
        yield f"There is no {_described(step)}."
    for step in sorted((found - expected).elements()):
        yield f"There should be no {_described(step)}."


def _against_bounds(seen: Evidence) -> Iterator[str]:
    """Yield arrivals on the wrong side of the watermark, by each sensor's latest event time."""
    late = _late(seen)
    for event, behind_us in _behind(seen):
        most_us = seen.config.lateness_us
        # An idle sensor is late by what the others have sent: see SILENCE.
        not_behind = behind_us <= 0 and not has_silence(seen)
        if event.seq in late and (not_behind or most_us is None):
            yield f"Arrival {event.seq} does not lie behind {event.key!r}, and is late."
        if event.seq not in late and most_us is not None and behind_us > most_us:
            position = f"Arrival {event.seq} lies {behind_us:,} us behind {event.key!r}"
            yield f"{position}, and is not late."


def _late(seen: Evidence) -> frozenset[int]:
    return frozenset(each.seq for each in seen.trace.of(Rejected) if each.reason == REASON_LATE)


def _behind(seen: Evidence) -> Iterator[tuple[Event, int]]:
    """Yield finite arrivals, and the lag of each behind its sensor's latest earlier one (us)."""
    latest_us: dict[str, int] = {}
    asked_for = seen.config.asked_for
    for event in seen.workload.arrivals:
        if event.key in asked_for and isfinite(event.value):
            before_us = latest_us.get(event.key, 0)
            yield event, before_us - event.event_time_us
            latest_us[event.key] = max(before_us, event.event_time_us)


# ------------------------------------------------------------------------- the placement of a trace


def _against_hosts(seen: Evidence) -> Iterator[str]:
    """Yield sensors that are sent twice, nowhere, to unknown workers, or without need."""
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


def _against_load(seen: Evidence) -> Iterator[str]:
    """Yield workers that are sent more tuples an hour than the bound of LPT allows."""
    pieces = [
        Fraction(sum(seen.per_hour[sensor] for sensor in piece))
        for piece in sensor_groups(seen.config)
    ]
    if 0 < len(pieces) <= COMPONENTS_MAX:
        bound = _lpt_bound(pieces, seen.config.workers)
        loads: Counter[int] = Counter()
        for each in set(seen.trace.of(Hosted)):
            loads[each.worker] += seen.per_hour.get(each.sensor, 0)
        for worker, at in sorted(loads.items()):
            if at > bound:
                yield f"Worker {worker} is sent {at:,} tuples an hour, more than {float(bound):,g}."


def sensor_groups(config: ScriptConfig) -> list[frozenset[str]]:
    """Return the groups of sensors that are needed together, directly or not."""
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
    """Return all sensors that an expression depends on."""
    nodes = [node for node, _ in walk(expression)]
    direct = frozenset(node.id for node in nodes if isinstance(node, Sensor))
    return direct.union(*(names[node.name] for node in nodes if isinstance(node, Name)))


# ------------------------------------------------------------------------------------- the optimum


def assignments(pieces: int, workers: int) -> Iterator[tuple[int, ...]]:
    """Yield every way to give pieces to workers; workers are alike, so their order is fixed.

    The first piece goes to the first worker, and the next new worker is always the next number.
    """

    def more(given: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(given) == pieces:
            yield given
            return
        for worker in range(min(workers, max(given, default=-1) + 2)):
            yield from more((*given, worker))

    return more(())


def least_makespan(loads: Sequence[Fraction], workers: int) -> Fraction:
    """Return the least possible load of the busiest worker, by trying every assignment."""
    return min(
        max(
            sum((load for load, at in zip(loads, given, strict=True) if at == worker), Fraction())
            for worker in range(workers)
        )
        for given in assignments(len(loads), workers)
    )


def _lpt_bound(loads: Sequence[Fraction], workers: int) -> Fraction:
    """Return Graham's bound of LPT: the optimum times 4/3 - 1/(3n)."""
    return least_makespan(loads, workers) * (Fraction(4, 3) - Fraction(1, 3 * workers))


def against_placement(config: ScriptConfig, placed: Placement) -> Iterator[str]:
    """Yield the errors of a placement with at least one computation (docs/script.md, section 8)."""
    graph, n = placed.graph, config.workers
    for number in graph.computed:
        worker = placed.worker.get(number, -1)
        if not 0 <= worker < n:
            yield f"Computation {number} has no worker."
        elif not sensors_of(graph, number) <= placed.hosts[worker]:
            yield f"Worker {worker} is not sent all that computation {number} reads."
    cap = load_cap(graph, n, config.cap_percent)
    most, sent = hash_baseline(graph, n)
    if placed.communication > sent and most <= cap:
        yield f"{float(placed.communication):,g} is sent; by hash it would be {float(sent):,g}."
    if most <= cap < max(placed.loads):
        yield f"The cap of {float(cap):,g} is not kept, which hashing keeps."
    pieces = components(graph)
    if len(pieces) <= COMPONENTS_OF_PLACEMENT_MAX:
        rates = graph.per_hour
        loads = [sum((rates[each] for each in piece.sensors), Fraction()) for piece in pieces]
        bound = _lpt_bound(loads, n)
        if max(placed.loads) > bound:
            yield f"A worker has {float(max(placed.loads)):,g}, more than {float(bound):,g}."
        if bound <= cap and placed.way != WHOLE:
            yield "Components are split, although LPT keeps the cap."


# ---------------------------------------------------------------------------------------- guards


def _choices(seen: Evidence) -> list[tuple[Choice, Sequence[Span]]]:
    """Return how each stream with windows is cut, and for which windows."""
    rates = seen.graph.per_hour
    return [(choose(spans, rates[number]), spans) for number, spans in seen.graph.spans().items()]


def _narrow_panes(seen: Evidence) -> int:
    return sum(
        choice.is_panes and choice.cutting[0].every_ms < max(span.slide_ms for span in spans)
        for choice, spans in _choices(seen)
    )


def _windows(seen: Evidence) -> list[tuple[int, Node, Span]]:
    nodes = enumerate(seen.graph.nodes)
    return [(number, node, node.span) for number, node in nodes if node.span is not None]


def _windows_over_results(seen: Evidence) -> int:
    nodes, streams = seen.graph.nodes, seen.graph.streams
    return sum(
        any(nodes[each].is_computed for each in streams(number)) for number, _, _ in _windows(seen)
    )


def _repeated_parts(seen: Evidence) -> int:
    unions = (node for node in seen.graph.nodes if node.kind == UNION)
    return sum(len(set(node.inputs)) < len(node.inputs) for node in unions)


def _simultaneous_updates(seen: Evidence) -> int:
    """Count equal stamps of results of one workflow, if an operation has several inputs."""
    operations = (node for node in seen.graph.nodes if node.kind == OPERATION)
    if not any(len(set(node.inputs)) > 1 for node in operations):
        return 0
    stamps = sorted((each.workflow, each.ts_us) for each in seen.trace.of(Result))
    return sum(left == right for left, right in pairwise(stamps))


def _by_disorder(seen: Evidence) -> Iterable[tuple[Event, int]]:
    return () if seen.config.watermark == "fixed" else _behind(seen)


def _late_by_disorder(seen: Evidence) -> int:
    late = _late(seen)
    return sum(event.seq in late for event, _ in _by_disorder(seen))


def _waited_for_by_disorder(seen: Evidence) -> int:
    late = _late(seen)
    return sum(behind_us > 0 and event.seq not in late for event, behind_us in _by_disorder(seen))


def _unasked_tuples(seen: Evidence) -> int:
    asked = seen.config.asked_for
    return sum(event.key not in asked for event in seen.workload.arrivals)


def _sensors_at_several_workers(seen: Evidence) -> int:
    workers = Counter(each.sensor for each in set(seen.trace.of(Hosted)))
    return sum(at > 1 for at in workers.values())


# ------------------------------------------------------------------------------------- the claims


def _unrecorded_hosts(seen: Evidence) -> str:
    if seen.config.asked_for and not seen.trace.of(Hosted):
        return "It is not recorded which sensors a worker is sent."
    return ""


def _computed_part(seen: Evidence) -> str:
    is_part = seen.computed < len(seen.workload.arrivals)
    return f"; compared with the meaning of {seen.computed:,} arrivals" if is_part else ""


CLAIMS: ClaimSet[Evidence] = ClaimSet(
    (
        Claim(
            RESULTS,
            "shared computations",
            lambda seen: _differences(Result, seen),
            extent=_computed_part,
            needs=((Result,),),
            of_answers=True,
        ),
        Claim(
            UNDEFINED,
            "undefined times",
            lambda seen: _differences(Undefined, seen),
            extent=_computed_part,
            needs=((Undefined,),),
            of_answers=True,
        ),
        Claim(
            REJECTIONS,
            "late arrivals",
            lambda seen: _differences(Rejected, seen),
            extent=_computed_part,
            needs=((Rejected,),),
            of_answers=True,
        ),
        Claim(BOUNDS, "late arrivals", _against_bounds, needs=((Rejected,),), of_answers=True),
        Claim(
            SILENCE,
            "late after a silence",
            against_silence,
            applies=has_silence,
            needs=((Rejected,),),
            of_answers=True,
        ),
        Claim(
            HOSTS,
            "sensors at several workers",
            _against_hosts,
            gap=_unrecorded_hosts,
            needs=((Hosted,),),
        ),
        Claim(
            LOAD,
            "components for several workers",
            _against_load,
            gap=_unrecorded_hosts,
            needs=((Hosted,),),
        ),
    ),
    {
        "shared computations": lambda seen: seen.graph.written - len(seen.graph.computed),
        "streams with several windows": lambda seen: sum(
            len(each) > 1 for each in seen.graph.spans().values()
        ),
        "panes narrower than a slide": _narrow_panes,
        "streams cut at edges": lambda seen: sum(not way.is_panes for way, _ in _choices(seen)),
        "windows with gaps": lambda seen: sum(
            span.slide_ms > span.length_ms for _, _, span in _windows(seen)
        ),
        "slides that do not divide": lambda seen: sum(
            span.length_ms % span.slide_ms > 0 for _, _, span in _windows(seen)
        ),
        "windows over results": _windows_over_results,
        "parts of a union twice": _repeated_parts,
        "updates at one time": _simultaneous_updates,
        "results": lambda seen: len(seen.trace.of(Result)),
        "undefined times": lambda seen: len(seen.trace.of(Undefined)),
        "late arrivals": lambda seen: sum(
            each.reason == REASON_LATE for each in seen.trace.of(Rejected)
        ),
        "late arrivals by disorder": _late_by_disorder,
        "arrivals waited for by disorder": _waited_for_by_disorder,
        **SILENCE_CASES,
        "tuples nobody asks for": _unasked_tuples,
        "streams known in part": lambda seen: int(not seen.workload.flush),
        "sensors at several workers": _sensors_at_several_workers,
        "components for several workers": lambda seen: int(
            seen.config.workers > 1 and len(sensor_groups(seen.config)) > 1
        ),
    },
)
over_all = CLAIMS.over_all


def judge(
    workload: Workload,
    trace: Trace,
    most: int | None = None,
    recording: Recording = COMPLETE,
) -> Judgement:
    """Judge every promise on one trace.

    The naive meaning takes time that grows with the square of the arrivals, so it is computed from
    ``most`` arrivals at most. Results are compared as far as these arrivals decide them. A
    promise about steps that ``recording`` lacks is undetermined.
    """
    return CLAIMS.judge(evidence_of(workload, trace, most), recording)

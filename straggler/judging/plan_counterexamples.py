"""Plans of simulated clusters as counterexamples: shrunk, and described in sentences.

Rules of this file:

* A smaller plan has less in it: fewer sources, tuples, faults and differences.
* An impossible candidate, such as one with a fault of a removed source, is skipped.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Generic, NamedTuple, TypeVar

from model.vocabulary.durations import write_duration
from sim.kernel.disorder import Disturbance
from sim.kernel.distributions import Constant, mean_us
from sim.kernel.faults import Duplicate, Fault, Lose, Pause, Replay
from sim.kernel.link import RELIABLE, Place
from sim.kernel.plan import ONE_WORKER, ORDINARY, Plan, Worker
from sim.kernel.source import AnySource, Recording, Source
from sim.kernel.trigger import At, Every, EveryTuples
from straggler.errors import counted

ConfigT = TypeVar("ConfigT")
SECONDS_MAX = 60.0
ONE_BATCH = EveryTuples(1_000_000)
ROWS_DESCRIBED = 20
"""Longest recording whose rows are described; the rows of longer ones are counted."""


class SeededPlan(NamedTuple):
    """A plan with its seed: everything but the query."""

    plan: Plan
    seed: int


class TimedCase(NamedTuple, Generic[ConfigT]):
    """A query, and the plan and seed of its timed run."""

    config: ConfigT
    timing: SeededPlan


def smallest(
    case: SeededPlan, fails: Callable[[SeededPlan], bool], seconds: float = SECONDS_MAX
) -> SeededPlan:
    """Return the smallest case found in ``seconds`` that still fails."""
    ends_s = time.monotonic() + seconds
    progressed = True
    while progressed:
        progressed = False
        for smaller in _smaller(case):
            if time.monotonic() > ends_s:
                return case
            if _is_case_of(fails, smaller):
                case, progressed = smaller, True
                break
    return case


def _is_case_of(fails: Callable[[SeededPlan], bool], case: SeededPlan) -> bool:
    try:
        return fails(case)
    except ValueError:  # The simulation refuses the plan: a fault may have lost its target.
        return False


def _smaller(case: SeededPlan) -> Iterator[SeededPlan]:
    """Yield smaller cases, the much smaller ones first."""
    seen = {case}
    for make in (_fewer, _plainer, _shorter):
        for plan in make(case.plan):
            if (found := SeededPlan(plan, case.seed)) not in seen:
                seen.add(found)
                yield found
    if case.seed:
        yield SeededPlan(case.plan, 0)


def _fewer(plan: Plan) -> Iterator[Plan]:
    """Yield plans without some part."""
    for field in ("faults", "disturbances"):
        if getattr(plan, field):
            yield from _changed(plan, **{field: ()})
    for n in range(len(plan.sources) if len(plan.sources) > 1 else 0):
        yield from _changed(plan, sources=plan.sources[:n] + plan.sources[n + 1 :])
    for field in ("faults", "disturbances"):
        parts = getattr(plan, field)
        for n in range(len(parts)):
            yield from _changed(plan, **{field: parts[:n] + parts[n + 1 :]})
    yield from _with_events(plan, lambda events: events // 2)
    yield from _with_events(plan, lambda events: events - 1)
    yield from _with_rows(plan)


def _plainer(plan: Plan) -> Iterator[Plan]:
    """Yield plans with equal workers, or with simpler parts."""
    cluster = plan.cluster
    alike = (ORDINARY,) * len(cluster.workers)
    yield from _changed(plan, cluster=replace(cluster, workers=alike))
    yield from _changed(plan, cluster=replace(cluster, noise=RELIABLE))
    yield from _changed(plan, cluster=replace(cluster, service=ONE_WORKER.service))
    yield from _changed(plan, trigger=ONE_BATCH)
    yield from _changed(plan, tuning=None)
    for n, worker in enumerate(cluster.workers):
        for other in _plainer_workers(worker):
            workers = (*cluster.workers[:n], other, *cluster.workers[n + 1 :])
            yield from _changed(plan, cluster=replace(cluster, workers=workers))
    for n, source in enumerate(plan.sources):
        for plainer in _plainer_sources(source):
            sources = (*plan.sources[:n], plainer, *plan.sources[n + 1 :])
            yield from _changed(plan, sources=sources)


def _plainer_workers(worker: Worker) -> Iterator[Worker]:
    for field in ("speed", "queue_limit", "when_full", "place"):
        yield replace(worker, **{field: getattr(ORDINARY, field)})


def _plainer_sources(source: AnySource) -> Iterator[Source]:
    if isinstance(source, Source):
        plain = Source(source.events)
        for field in ("delay", "place", "in_order", "keys", "zipf", "start_us"):
            yield replace(source, **{field: getattr(plain, field)})
        yield replace(source, low=plain.low, high=plain.high)
        yield replace(source, interval=Constant(mean_us(source.interval)))


def _shorter(plan: Plan) -> Iterator[Plan]:
    """Yield plans whose faults begin earlier and end sooner."""
    for n, fault in enumerate(plan.faults):
        fields = fault._asdict()
        for field in ("at_us", "for_us", "nth", "after_us"):
            if fields.get(field, 0) > 1:
                shorter = type(fault)(**{**fields, field: fields[field] // 2})
                yield from _changed(plan, faults=(*plan.faults[:n], shorter, *plan.faults[n + 1 :]))


def _with_events(plan: Plan, change: Callable[[int], int]) -> Iterator[Plan]:
    for n, source in enumerate(plan.sources):
        if isinstance(source, Source) and source.events > 1:
            fewer = replace(source, events=change(source.events))
            yield from _changed(plan, sources=(*plan.sources[:n], fewer, *plan.sources[n + 1 :]))


def _with_rows(plan: Plan) -> Iterator[Plan]:
    """Yield plans without a half, a quarter, ... of the replayed tuples, down to single ones."""
    for n, source in enumerate(plan.sources):
        if not isinstance(source, Recording):
            continue
        size = len(source.rows)
        while size > 1:
            size = (size + 1) // 2
            for first in range(0, len(source.rows), size):
                rows = source.rows[:first] + source.rows[first + size :]
                fewer = (*plan.sources[:n], replace(source, rows=rows), *plan.sources[n + 1 :])
                if rows:
                    yield from _changed(plan, sources=fewer)


def _changed(plan: Plan, **changes: object) -> Iterator[Plan]:
    """Yield the plan with changes, if that is possible and differs."""
    try:
        found = replace(plan, **changes)  # type: ignore[arg-type]  # the fields are given by name
    except ValueError:
        return
    if found != plan:
        yield found


# ------------------------------------------------------------------------------------ description


def describe(case: SeededPlan) -> list[str]:
    """Describe the cluster, its sources and its faults, a sentence each."""
    plan = case.plan
    lines = [
        line
        for n, source in enumerate(plan.sources)
        for line in (
            _describe_source(f"source-{n}", source),
            *_describe_rows(source, plan.epoch_us),
        )
    ]
    lines += [_describe_worker(f"worker-{n}", each) for n, each in enumerate(plan.cluster.workers)]
    work = write_duration(round(mean_us(plan.cluster.service)))
    lines.append(f"A tuple takes {work} of work on average; {_describe_trigger(plan)}.")
    if plan.cluster.noise.loss:
        lines.append(
            f"Links of the cluster lose {plan.cluster.noise.loss:.0%} of messages and retry."
        )
    lines += [_describe_disturbance(each) for each in plan.disturbances]
    lines += [_describe_fault(each) for each in plan.faults]
    return [*lines, f"Seed {case.seed}."]


def _describe_source(name: str, source: AnySource) -> str:
    if not isinstance(source, Source):
        return f"{name} replays {counted(len(source.rows), 'recorded tuple')}."
    interval, delay = (write_duration(round(mean_us(d))) for d in (source.interval, source.delay))
    return (
        f"{name}{_describe_place(source.place)} sends {counted(source.events, 'tuple')}, one every"
        f" {interval} on average, delayed by {delay} on average."
    )


def _describe_rows(source: AnySource, epoch_us: int) -> Iterator[str]:
    """Describe every tuple of a short recording."""
    if isinstance(source, Recording) and len(source.rows) <= ROWS_DESCRIBED:
        for number, row in enumerate(source.rows):
            identity = number if row.source_id is None else row.source_id
            at = write_duration(row.arrival_us - epoch_us)
            yield (
                f"  Tuple {row.stream or ''}{identity} of key {row.key!r} and value {row.value!r},"
                f"{f' with {row.more!r},' if row.more else ''}"
                f" event time {row.event_time_us}, arrives at {at}."
            )


def _describe_worker(name: str, worker: Worker) -> str:
    limit = ""
    if worker.queue_limit is not None:
        what = "holds up what follows" if worker.when_full == "block" else "sheds what follows"
        limit = f"; with {worker.queue_limit} waiting it {what}"
    return f"{name}{_describe_place(worker.place)} has speed {worker.speed:g}{limit}."


def _describe_place(place: Place | None) -> str:
    if place is None:
        return ""
    return f" (rack {place.rack}, node {place.node}, process {place.process})"


def _describe_trigger(plan: Plan) -> str:
    match plan.trigger:
        case Every(interval_us):
            return f"a micro-batch ends every {write_duration(interval_us)}"
        case EveryTuples(tuples):
            return f"a micro-batch ends every {counted(tuples, 'tuple')}"
        case At(cuts):
            return f"micro-batches end after {', '.join(map(str, cuts)) or 'all'} tuples"


def _describe_disturbance(disturbance: Disturbance) -> str:
    fields = disturbance._asdict()
    kind = fields.pop("kind")
    said = [f"{name} {value}" for name, value in fields.items() if value is not None]
    return f"A {kind}: {', '.join(said)}."


def _describe_fault(fault: Fault) -> str:
    if isinstance(fault, Duplicate):
        after = write_duration(fault.after_us)
        return f"{fault.source} sends its tuple {fault.nth} once more, {after} later."
    if isinstance(fault, Lose):
        return f"Message {fault.nth} of {fault.link} is lost."
    if isinstance(fault, Replay):
        after = write_duration(fault.after_us)
        return f"Message {fault.nth} of {fault.link} arrives once more, {after} later."
    at, for_ = write_duration(fault.at_us), write_duration(fault.for_us)
    what = {"pause": "stands still", "fail": "fails", "slow": "is slow", "congest": "is congested"}
    name = fault.worker if isinstance(fault, Pause) else fault[0]
    return f"{name} {what[fault.kind]} from {at} for {for_}."

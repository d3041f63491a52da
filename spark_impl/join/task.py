"""A task of an epoch: it is one worker of the chain, and writes its results down."""

import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from socket import socket
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import BarrierTaskContext
from pyspark.taskcontext import BarrierTaskInfo

from model.vocabulary import JoinConfig
from model.vocabulary.join import END_US, NO_WATERMARK_US, REASON_LATE, REASON_SHED, STREAMS, R, S
from model.vocabulary.trace import Step, kind_of
from spark_impl.join.admission import REASONS, Arrivals, Rejections, check_times, count_reasons
from spark_impl.join.checkpoint import WorkerState, adopt, decode_state, empty_state, encode_state
from spark_impl.join.driving import drive
from spark_impl.join.idle import Clocks
from spark_impl.join.lane import count_accepted
from spark_impl.join.match_file import COLUMNS as COLUMNS_OF_PAIRS
from spark_impl.join.match_file import MatchFile
from spark_impl.join.matching import (
    FreePredicate,
    Ranks,
    Tuples,
    to_arrow,
    tuples_from_arrow,
)
from spark_impl.join.rendezvous import Place, host_of_worker, join_neighbours, meet
from spark_impl.join.side import Matcher
from spark_impl.join.store import REJECTED, STATE, STEPS, ChainStore, Commit, name_of
from spark_impl.join.transport import Links, NeighbourLost, listen
from spark_impl.join.worker import Worker
from spark_impl.runtime.histories import RowFile
from spark_impl.runtime.storage import InputProblem, Location

COLUMNS = {
    "seq": "bigint",
    "source_id": "bigint",
    "key": "string",
    "event_time_us": "bigint",
    "value": "double",
}
"""Columns of both inputs and their types."""
_CAUSE_FIRST_S = 1.0
"""A worker that lost its neighbour fails this much later, so that the cause is reported first."""


class Plan(NamedTuple):
    """The input of the tasks of an epoch."""

    config: JoinConfig
    """The chain in this epoch (:func:`spark_impl.join.control.config_of`)."""
    free: Mapping[str, FreePredicate]
    ranks: tuple[Ranks | None, ...]
    """The tuples that each query pairs."""
    store: ChainStore
    before: Commit | None
    states: Mapping[int, Location]
    """Files of the workers' states after the epoch before."""
    clocks: Clocks
    """The progress of both streams, with the floors of this epoch."""
    epoch: int
    flush: bool
    place: Place
    patience_s: float
    recording: bool
    history: bool
    comparison_us: float
    """Emulated cost of a comparison."""
    links: Callable[[int, int, Mapping[int, socket], float], Links]
    """Makes the connections of a worker; :class:`Links`, unless something shall go wrong there."""


class Summary(NamedTuple):
    """The report of a worker about its epoch."""

    worker: int
    attempt: str
    matches: Sequence[int]
    """Number of pairs by query, in the order of the configuration."""
    offered: int
    """Number of arrivals of the streams that enter here."""
    rejected: int
    """Number of arrivals rejected, with those that were shed."""
    shed: int
    late: int
    r_accepted: int
    """Number of arrivals of R in this epoch that were neither shed nor without a finite value."""
    s_accepted: int
    r_t_max_us: int
    """Largest admitted event time of R; ``NO_WATERMARK_US`` if R does not enter here."""
    s_t_max_us: int
    busy_us: int
    """Time that was not spent on waiting for neighbours."""
    bytes_sent: int
    """Number of bytes sent to its neighbours."""
    compared: int
    """Number of pairs of tuples that were compared, after an index had selected them."""
    r_admitted: int
    """Number of tuples of R admitted in all epochs; 0 if R does not enter here."""
    s_admitted: int
    r_held: int
    s_held: int
    r_wm_us: int
    """Passed watermark of R; at the worker where R enters, that of the stream."""
    s_wm_us: int
    r_least_us: int
    """Least event time of R that is held; ``END_US`` if none is."""
    s_least_us: int


SUMMARY = pa.schema(
    [
        ("worker", pa.int32()),
        ("attempt", pa.string()),
        ("matches", pa.list_(pa.int64())),
        *((name, pa.int64()) for name in Summary._fields[3:]),
    ]
)
"""Columns of :class:`Summary`."""


class Work(NamedTuple):
    """The work of a worker in its epoch, besides what it wrote."""

    offered: int
    matches: Sequence[int]
    busy_us: int
    bytes_sent: int


def run_task(batches: Iterable[pa.RecordBatch], plan: Plan) -> Iterator[pa.RecordBatch]:
    """Run one worker, as a barrier task of ``mapInArrow``."""
    context = BarrierTaskContext.get()
    number = context.partitionId()
    tasks = _find_all(context, plan.config.workers)
    host = host_of_worker(plan.place, tasks[number].address)
    arrivals = _read_arrivals(pa.Table.from_batches(batches), plan, number)
    steps: list[str] = []
    kept: dict[str, list[Tuples]] = {}
    worker = _make_worker(plan, number, steps, kept)
    with closing(listen(host)) as listener:
        address = listener.getsockname()[:2]
        meeting = meet(plan.place, number, context.taskAttemptId(), address)
        connections = join_neighbours(listener, number, meeting, plan.place)
    queries = [name for name, _ in plan.config.queries]
    name = name_of(meeting.attempt, number)
    with (
        RowFile(plan.store.file("matches", plan.epoch, name), COLUMNS_OF_PAIRS) as file,
        closing(plan.links(number, plan.epoch, connections, plan.patience_s)) as links,
    ):
        found = MatchFile(file, queries, plan.epoch)
        try:
            busy_us = drive(worker, arrivals, links, found.write, plan.comparison_us)
        except NeighbourLost:
            time.sleep(_CAUSE_FIRST_S)
            raise
    if plan.recording:
        lines = pa.table({"line": pa.array(steps, pa.string())})
        plan.store.write(STEPS, plan.epoch, lines, name)
    for stream, parts in kept.items():
        rows = pa.Table.from_batches(list(map(to_arrow, parts)))
        plan.store.write(f"admitted-{stream}", plan.epoch, rows, name)
    offered = sum(len(own.seq) for own in arrivals.values())
    work = Work(offered, found.counts, busy_us, links.bytes_sent)
    yield _write(plan, meeting.attempt, worker, work)


def _find_all(context: BarrierTaskContext, workers: int) -> list[BarrierTaskInfo]:
    """Return Spark's information about the tasks of this attempt, one a worker.

    Raise ``RuntimeError`` if Spark left some out. It does if one task fails while another one
    ends: the stage runs again without the one that ended, whose neighbours would wait for it until
    their patience ends. Once these fail as well, Spark runs all of them.
    """
    tasks = context.getTaskInfos()
    if len(tasks) != workers:
        msg = f"Spark started {len(tasks)} of {workers} workers again"
        raise RuntimeError(msg)
    return tasks


def _make_worker(
    plan: Plan, number: int, steps: list[str], kept: dict[str, list[Tuples]]
) -> Worker:
    """Return a worker with the state after the epoch before, which may have had other workers."""
    matcher = Matcher(plan.config, plan.free, plan.ranks)
    before, workers = plan.before, plan.config.workers

    def load(old: int) -> WorkerState:
        if before is None:
            return empty_state()
        return decode_state(plan.store.read_state(plan.states[old], STATE)["content"])

    def keep(stream: str, rows: Tuples) -> None:
        kept.setdefault(stream, []).append(rows)

    def record(step: Step) -> None:
        steps.append(json.dumps({"kind": kind_of(type(step)), **step._asdict()}))

    old = workers if before is None else before.config.workers
    state, found = adopt(load, old, workers, number, matcher)
    return Worker(
        plan.config,
        number,
        matcher,
        state,
        plan.epoch,
        flush=plan.flush,
        record=record if plan.recording else None,
        keep=keep if plan.history else None,
        found=found,
        floors_us=plan.clocks.floors,
    )


def _write(plan: Plan, attempt: str, worker: Worker, work: Work) -> pa.RecordBatch:
    """Write the rejections and the state of a worker for this attempt; return its summary."""
    rejected = rejections_table(worker.rejections)
    reasons, state = count_reasons(worker.rejections), worker.state()
    accepted = count_accepted(worker.lanes)
    name = name_of(attempt, worker.number)
    plan.store.write("rejected", plan.epoch, rejected, name)
    row = {"number": worker.number, "content": encode_state(state)}
    plan.store.write_state(STATE, plan.epoch, row, name)
    summary = Summary(
        worker=worker.number,
        attempt=attempt,
        rejected=rejected.num_rows,
        shed=reasons.get(REASON_SHED, 0),
        late=reasons.get(REASON_LATE, 0),
        r_accepted=accepted.r,
        s_accepted=accepted.s,
        r_t_max_us=NO_WATERMARK_US if state.r_intake is None else state.r_intake.t_max_us,
        s_t_max_us=NO_WATERMARK_US if state.s_intake is None else state.s_intake.t_max_us,
        compared=worker.compared,
        r_admitted=0 if state.r_intake is None else state.r_intake.tuples,
        s_admitted=0 if state.s_intake is None else state.s_intake.tuples,
        r_held=len(state.r),
        s_held=len(state.s),
        r_wm_us=state.r_wm_us,
        s_wm_us=state.s_wm_us,
        r_least_us=int(state.r.ts.min(initial=END_US)),
        s_least_us=int(state.s.ts.min(initial=END_US)),
        **work._asdict(),
    )
    return pa.RecordBatch.from_pylist([summary._asdict()], SUMMARY)


def rejections_table(rejections: Sequence[Rejections]) -> pa.Table:
    """Return rejections as rows of the store."""
    parts = [REJECTED.empty_table()]
    for each in rejections:
        reasons = pa.DictionaryArray.from_arrays(pa.array(each.reason), pa.array(REASONS))
        rows = len(each.seq)
        columns = {
            "stream": pa.repeat(each.stream, rows),
            "seq": each.seq,
            "source_id": each.tuples.source_id,
            "key": pa.array(each.tuples.key, pa.string()),
            "event_time_us": each.tuples.ts,
            "reason": reasons.cast(pa.string()),
        }
        parts.append(pa.table(columns).cast(REJECTED))
    return pa.concat_tables(parts)


def _read_arrivals(given: pa.Table, plan: Plan, number: int) -> dict[str, Arrivals]:
    """Return the arrivals of the streams that enter here, in order; none in a flush."""
    seats = given.column("stream").is_null()
    if given.filter(seats).column("worker").to_pylist() != [number]:
        msg = f"the rows of worker {number} went elsewhere"
        raise RuntimeError(msg)
    rows = given.filter(pc.invert(seats))
    for name in (each for each in COLUMNS if each != "value"):
        if rows.column(name).null_count:
            msg = f"the column {name!r} has {rows.column(name).null_count} rows without a value"
            raise InputProblem(msg)
    if plan.flush:
        return {}
    entering = {R: 0, S: plan.config.workers - 1}
    return {
        stream: _sort_arrivals(rows.filter(pc.equal(rows.column("stream"), stream)), plan)
        for stream in STREAMS
        if entering[stream] == number
    }


def _sort_arrivals(rows: pa.Table, plan: Plan) -> Arrivals:
    rows = rows.sort_by("seq")
    tuples = pa.table(
        {
            "rank": pa.array(np.zeros(rows.num_rows, np.int64)),
            "source_id": rows.column("source_id"),
            "ts": rows.column("event_time_us"),
            "value": pc.fill_null(rows.column("value"), math.nan),
            "key": rows.column("key"),
        }
    )
    arrivals = Arrivals(rows.column("seq").to_numpy().astype(np.int64), tuples_from_arrow(tuples))
    check_times(arrivals, plan.config.window_us)
    return arrivals

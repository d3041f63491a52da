"""What a task of an epoch does: be one worker of the chain, and write down what came of it."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import BarrierTaskContext

from model.vocabulary import JoinConfig
from model.vocabulary.join import STREAMS, R, S
from model.vocabulary.trace import Step, kind_of
from spark_impl.join.admission import Arrivals, check_times
from spark_impl.join.checkpoint import empty_state
from spark_impl.join.drive import drive
from spark_impl.join.elastic import adopt
from spark_impl.join.lane import WorkerState
from spark_impl.join.matchfile import MatchFile
from spark_impl.join.matching import FreePredicate, Tuples, to_arrow, tuples_from_arrow
from spark_impl.join.queries import Ranks
from spark_impl.join.rendezvous import Place, join_neighbours, meet
from spark_impl.join.side import Matcher
from spark_impl.join.store import REJECTED, Commit, Store
from spark_impl.join.transport import Links, NeighbourLost, listen
from spark_impl.join.worker import Worker
from spark_impl.runtime.histories import InputProblem

COLUMNS = {
    "seq": "bigint",
    "source_id": "bigint",
    "key": "string",
    "event_time_us": "bigint",
    "value": "double",
}
"""Columns of both inputs and their types."""
SUMMARY = pa.schema(
    [
        ("worker", pa.int32()),
        ("attempt", pa.string()),
        ("matches", pa.list_(pa.int64())),
        ("rejected", pa.int64()),
        ("bytes_sent", pa.int64()),
        ("compared", pa.int64()),
        ("r_admitted", pa.int64()),
        ("s_admitted", pa.int64()),
        ("r_held", pa.int64()),
        ("s_held", pa.int64()),
    ]
)
"""Columns of :class:`Summary`."""
_CAUSE_FIRST_S = 1.0
"""A worker that lost its neighbour fails this much later, so that the cause is reported first."""


class Plan(NamedTuple):
    """Everything that the tasks of an epoch have to know."""

    config: JoinConfig
    free: Mapping[str, FreePredicate]
    ranks: tuple[Ranks | None, ...]
    """Tuples that each query pairs."""
    store: Store
    before: Commit | None
    epoch: int
    flush: bool
    place: Place
    patience_s: float
    recording: bool
    history: bool
    on_step: Callable[[Step], None] | None


class Summary(NamedTuple):
    """What a worker says of its epoch."""

    worker: int
    attempt: str
    matches: Sequence[int]
    """By query, in the order of the configuration."""
    rejected: int
    bytes_sent: int
    """To its neighbours."""
    compared: int
    """Pairs of tuples that were compared, after an index had selected them."""
    r_admitted: int
    """In all epochs; 0 where the stream does not enter."""
    s_admitted: int
    r_held: int
    s_held: int


def run_task(batches: Iterable[pa.RecordBatch], plan: Plan) -> Iterator[pa.RecordBatch]:
    """One worker: for ``mapInArrow`` with a barrier."""
    context = BarrierTaskContext.get()
    number = context.partitionId()
    host = context.getTaskInfos()[number].address.rpartition(":")[0]
    arrivals = _arrivals(pa.Table.from_batches(batches), plan, number)
    steps: list[str] = []
    kept: dict[str, list[Tuples]] = {}
    worker = _worker(plan, number, steps, kept)
    with closing(listen(host)) as listener:
        address = listener.getsockname()[:2]
        meeting = meet(plan.place, number, context.taskAttemptId(), address)
        connections = join_neighbours(listener, number, meeting, plan.place)
    where = plan.epoch, meeting.attempt
    queries = [name for name, _ in plan.config.queries]
    found = MatchFile(plan.store.file(*where, f"matches-{number}.parquet"), queries, plan.epoch)
    with closing(Links(number, connections, plan.patience_s)) as links:
        try:
            drive(worker, arrivals, links, found.write)
        except NeighbourLost:
            time.sleep(_CAUSE_FIRST_S)
            raise
    found.close()
    if plan.recording:
        plan.store.write_lines(*where, f"steps-{number}", steps)
    for stream, parts in kept.items():
        rows = pa.Table.from_batches(list(map(to_arrow, parts)))
        plan.store.write_table(*where, f"admitted-{stream}", rows)
    yield _write(plan, meeting.attempt, worker, found.counts, links.bytes_sent)


def _worker(plan: Plan, number: int, steps: list[str], kept: dict[str, list[Tuples]]) -> Worker:
    """A worker with what it held after the epoch before, as one of then as many or of others."""
    matcher = Matcher(plan.config, plan.free, plan.ranks)
    before, workers = plan.before, plan.config.workers

    def load(old: int) -> WorkerState:
        return empty_state() if before is None else plan.store.load_state(before, old)

    def keep(stream: str, rows: Tuples) -> None:
        kept.setdefault(stream, []).append(rows)

    old = workers if before is None else before.config.workers
    state, found = adopt(load, old, workers, number, matcher)
    return Worker(
        plan.config,
        number,
        matcher,
        state,
        plan.epoch,
        flush=plan.flush,
        record=_recorder(plan, steps),
        keep=keep if plan.history else None,
        found=found,
    )


def _write(
    plan: Plan, attempt: str, worker: Worker, matches: Sequence[int], bytes_sent: int
) -> pa.RecordBatch:
    """Put down what a worker rejected and holds, in the folder of this attempt; its summary."""
    where = plan.epoch, attempt
    rejected = pa.Table.from_pylist([each._asdict() for each in worker.rejected], REJECTED)
    state = worker.state()
    plan.store.write_table(*where, f"rejected-{worker.number}", rejected)
    plan.store.write_state(*where, worker.number, state)
    summary = Summary(
        worker=worker.number,
        attempt=attempt,
        matches=matches,
        rejected=rejected.num_rows,
        bytes_sent=bytes_sent,
        compared=worker.compared,
        r_admitted=0 if state.r_intake is None else state.r_intake.tuples,
        s_admitted=0 if state.s_intake is None else state.s_intake.tuples,
        r_held=len(state.r),
        s_held=len(state.s),
    )
    return pa.RecordBatch.from_pylist([summary._asdict()], SUMMARY)


def _recorder(plan: Plan, lines: list[str]) -> Callable[[Step], None] | None:
    if not plan.recording and plan.on_step is None:
        return None

    def record(step: Step) -> None:
        if plan.recording:
            lines.append(json.dumps({"kind": kind_of(type(step)), **step._asdict()}))
        if plan.on_step is not None:
            plan.on_step(step)

    return record


def _arrivals(given: pa.Table, plan: Plan, number: int) -> dict[str, Arrivals]:
    """The arrivals of the streams that enter here, in order; none in a flush."""
    seats = given.column("stream").is_null()
    if given.filter(seats).column("worker").to_pylist() != [number]:
        msg = f"the rows of worker {number} went elsewhere"
        raise RuntimeError(msg)
    rows = given.filter(pc.invert(seats))
    for name in COLUMNS:
        if rows.column(name).null_count:
            msg = f"the column {name!r} has {rows.column(name).null_count} rows without a value"
            raise InputProblem(msg)
    if plan.flush:
        return {}
    entering = {R: 0, S: plan.config.workers - 1}
    return {
        stream: _in_order(rows.filter(pc.equal(rows.column("stream"), stream)), plan)
        for stream in STREAMS
        if entering[stream] == number
    }


def _in_order(rows: pa.Table, plan: Plan) -> Arrivals:
    rows = rows.sort_by("seq")
    tuples = pa.table(
        {
            "rank": pa.array(np.zeros(rows.num_rows, np.int64)),
            "source_id": rows.column("source_id"),
            "ts": rows.column("event_time_us"),
            "value": rows.column("value"),
            "key": rows.column("key"),
        }
    )
    arrivals = Arrivals(rows.column("seq").to_numpy().astype(np.int64), tuples_from_arrow(tuples))
    check_times(arrivals, plan.config.window_us)
    return arrivals

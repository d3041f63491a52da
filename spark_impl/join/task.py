"""A task of an epoch: it is one worker of the chain, and writes its results down."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from types import TracebackType
from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark import BarrierTaskContext

from model.vocabulary import JoinConfig
from model.vocabulary.join import END_US, STREAMS, R, S
from model.vocabulary.trace import Step, kind_of
from spark_impl.join.admission import Arrivals, check_times
from spark_impl.join.checkpoint import WorkerState, adopt, empty_state
from spark_impl.join.matching import (
    FreePredicate,
    Pairs,
    Ranks,
    Tuples,
    to_arrow,
    tuples_from_arrow,
)
from spark_impl.join.rendezvous import Place, join_neighbours, meet
from spark_impl.join.side import Matcher
from spark_impl.join.store import MATCHES, REJECTED, ChainStore, Commit
from spark_impl.join.transport import Links, NeighbourLost, listen
from spark_impl.join.worker import Worker
from spark_impl.runtime.storage import InputProblem, Location, writing

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
    """The input of the tasks of an epoch."""

    config: JoinConfig
    free: Mapping[str, FreePredicate]
    ranks: tuple[Ranks | None, ...]
    """The tuples that each query pairs."""
    store: ChainStore
    before: Commit | None
    epoch: int
    flush: bool
    place: Place
    patience_s: float
    recording: bool
    history: bool
    on_step: Callable[[Step], None] | None


class Summary(NamedTuple):
    """The report of a worker about its epoch."""

    worker: int
    attempt: str
    matches: Sequence[int]
    """Number of pairs by query, in the order of the configuration."""
    rejected: int
    bytes_sent: int
    """Number of bytes sent to its neighbours."""
    compared: int
    """Number of pairs of tuples that were compared, after an index had selected them."""
    r_admitted: int
    """Number of tuples of R admitted in all epochs; 0 if R does not enter here."""
    s_admitted: int
    r_held: int
    s_held: int


def run_task(batches: Iterable[pa.RecordBatch], plan: Plan) -> Iterator[pa.RecordBatch]:
    """Run one worker, as a barrier task of ``mapInArrow``."""
    context = BarrierTaskContext.get()
    number = context.partitionId()
    host = context.getTaskInfos()[number].address.rpartition(":")[0]
    arrivals = _read_arrivals(pa.Table.from_batches(batches), plan, number)
    steps: list[str] = []
    kept: dict[str, list[Tuples]] = {}
    worker = _make_worker(plan, number, steps, kept)
    with closing(listen(host)) as listener:
        address = listener.getsockname()[:2]
        meeting = meet(plan.place, number, context.taskAttemptId(), address)
        connections = join_neighbours(listener, number, meeting, plan.place)
    where = plan.epoch, meeting.attempt
    queries = [name for name, _ in plan.config.queries]
    file = plan.store.file(*where, f"matches-{number}.parquet")
    with (
        MatchFile(file, queries, plan.epoch) as found,
        closing(Links(number, connections, plan.patience_s)) as links,
    ):
        try:
            drive(worker, arrivals, links, found.write)
        except NeighbourLost:
            time.sleep(_CAUSE_FIRST_S)
            raise
    if plan.recording:
        plan.store.write_lines(*where, f"steps-{number}", steps)
    for stream, parts in kept.items():
        rows = pa.Table.from_batches(list(map(to_arrow, parts)))
        rows = rows.append_column("epoch", pa.array(np.full(rows.num_rows, plan.epoch)))
        plan.store.write_table(*where, f"admitted-{stream}", rows)
    yield _write(plan, meeting.attempt, worker, found.counts, links.bytes_sent)


def _make_worker(
    plan: Plan, number: int, steps: list[str], kept: dict[str, list[Tuples]]
) -> Worker:
    """Return a worker with the state after the epoch before, which may have had other workers."""
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
        record=_make_recorder(plan, steps),
        keep=keep if plan.history else None,
        found=found,
    )


def _write(
    plan: Plan, attempt: str, worker: Worker, matches: Sequence[int], bytes_sent: int
) -> pa.RecordBatch:
    """Write the rejections and the state of a worker for this attempt; return its summary."""
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


def _make_recorder(plan: Plan, lines: list[str]) -> Callable[[Step], None] | None:
    if not plan.recording and plan.on_step is None:
        return None

    def record(step: Step) -> None:
        if plan.recording:
            lines.append(json.dumps({"kind": kind_of(type(step)), **step._asdict()}))
        if plan.on_step is not None:
            plan.on_step(step)

    return record


def _read_arrivals(given: pa.Table, plan: Plan, number: int) -> dict[str, Arrivals]:
    """Return the arrivals of the streams that enter here, in order; none in a flush."""
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
            "value": rows.column("value"),
            "key": rows.column("key"),
        }
    )
    arrivals = Arrivals(rows.column("seq").to_numpy().astype(np.int64), tuples_from_arrow(tuples))
    check_times(arrivals, plan.config.window_us)
    return arrivals


_IDLE_S = 1.0


class _Source:
    """Arrivals of one stream on their way into the worker where it enters."""

    def __init__(self, worker: Worker, stream: str, arrivals: Arrivals) -> None:
        self._worker = worker
        self._stream = stream
        self._arrivals = arrivals
        self._position = 0
        self._ended = False
        worker.admit(stream, arrivals.run(0, 0), self._next_seq())

    def advance(self) -> bool:
        """Admit as many arrivals as the pace permits; return whether there was anything to do."""
        if self._ended:
            return False
        first, seqs = self._position, self._arrivals.seq
        if first == len(seqs):
            self._ended = True
            self._worker.end_intake(self._stream)
            return True
        room = self._worker.arrivals_to_admit(self._stream, seqs, first)
        if room:
            self._position = first + room
            run = self._arrivals.run(first, self._position)
            self._worker.admit(self._stream, run, self._next_seq())
        return room > 0

    def _next_seq(self) -> int:
        seqs = self._arrivals.seq
        return int(seqs[self._position]) if self._position < len(seqs) else END_US


def drive(
    worker: Worker,
    arrivals: Mapping[str, Arrivals],
    links: Links,
    hand_on: Callable[[list[list[Pairs]]], None] | None = None,
) -> None:
    """Run a worker over its connections until it and its neighbours have finished.

    ``arrivals`` has the streams that enter at this worker, none in a flush. ``hand_on`` is called
    with the pairs by query, many at a time, and with the rest at the end; without it they stay in
    ``worker.found``. Raise the errors of :meth:`spark_impl.join.transport.Links.exchange`.
    """
    sources = [_Source(worker, stream, own) for stream, own in sorted(arrivals.items())]
    while not worker.finished:
        busy = sum(source.advance() for source in sources) > 0
        worker.work()
        outgoing, worker.outbox = worker.outbox, []
        wait_s = 0.0 if busy or worker.finished else _IDLE_S
        for sender, messages in links.exchange(outgoing, wait_s):
            worker.receive(sender, *messages)
        if hand_on is not None and (worker.finished or worker.pairs_held > ROWS_MAX):
            hand_on(worker.take_found())
    links.part()


ROWS_MAX = 1 << 17
"""Most pairs that a worker holds before it writes them, of all queries together."""


class MatchFile:
    """The pairs of one worker in one attempt, written as they are found.

    The file appears under its name at the end of a ``with`` block, and not at all without a pair.
    """

    def __init__(self, file: Location, queries: Sequence[str], epoch: int) -> None:
        self._file = file
        self._queries = tuple(queries)
        self._epoch = epoch
        self._open = ExitStack()
        self._writer: pq.ParquetWriter | None = None
        self.counts = [0] * len(self._queries)
        """Number of pairs written so far, by query."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with writing(self._file.parent):
            self._open.__exit__(kind, error, trace)

    def write(self, found: Sequence[Sequence[Pairs]]) -> None:
        """Write the pairs of every query; each query with pairs gets a row group."""
        for number, (query, own) in enumerate(zip(self._queries, found, strict=True)):
            if not own:
                continue
            r_id = np.concatenate([pairs.r_id for pairs in own])
            s_id = np.concatenate([pairs.s_id for pairs in own])
            epoch = np.full(len(r_id), self._epoch)
            columns = [pa.repeat(query, len(r_id)), *map(pa.array, (r_id, s_id, epoch))]
            with writing(self._file.parent):
                self._begun().write_table(pa.table(columns, schema=MATCHES))
            self.counts[number] += len(r_id)

    def _begun(self) -> pq.ParquetWriter:
        """Return the writer; the first pair makes it."""
        if self._writer is None:
            out = self._open.enter_context(self._file.stream())
            self._writer = self._open.enter_context(
                pq.ParquetWriter(out, MATCHES, compression="zstd")
            )
        return self._writer

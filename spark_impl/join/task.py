"""A task of an epoch: it is one worker of the chain, and writes its results down."""

import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from socket import socket
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import BarrierTaskContext

from model.vocabulary import JoinConfig
from model.vocabulary.join import END_US, STREAMS, R, S
from model.vocabulary.settings import JsonObject
from model.vocabulary.trace import Step, kind_of
from spark_impl.join.admission import Admitted, Arrivals, Rejections, check_times, count_reasons
from spark_impl.join.checkpoint import WorkerState, adopt, decode_state, empty_state, encode_state
from spark_impl.join.columns import check_integers, names_of
from spark_impl.join.control import Clocks, StreamClock
from spark_impl.join.driving import drive
from spark_impl.join.lane import count_accepted
from spark_impl.join.matching import (
    Counts,
    FreePredicate,
    Pairs,
    Ranks,
    Tuples,
    schema_of,
    to_arrow,
    tuples_from_arrow,
)
from spark_impl.join.post import Brought, Post, take_post
from spark_impl.join.rendezvous import Place
from spark_impl.join.side import Matcher
from spark_impl.join.store import KINDS, MATCHES, REJECTED, STATE, STEPS, ChainStore, name_of
from spark_impl.join.transport import Links, NeighbourClosed
from spark_impl.join.worker import Worker
from spark_impl.runtime.histories import RowFile
from spark_impl.runtime.storage import InputProblem, Location
from spark_impl.runtime.tables import BATCH

COLUMNS = {
    "seq": "bigint",
    "source_id": "bigint",
    "key": "string",
    "event_time_us": "bigint",
    "value": "double",
}
"""Columns of both inputs and their types."""
_CAUSE_FIRST_S = 1.0
"""A worker whose neighbour has gone fails this much later, so that the cause is reported first."""


class Options(NamedTuple):
    """Choices that change no pair of a chain."""

    recording: bool = False
    """True if workers write down their steps."""
    history: bool = False
    """True if admitted tuples are kept."""
    patience_s: float = 60.0
    """Seconds of silence after which a neighbour is taken for dead."""
    links: Callable[[int, int, Mapping[int, socket], float], Links] = Links
    """Makes the connections of a worker."""


class Plan(NamedTuple):
    """The input of the tasks of an epoch."""

    config: JoinConfig
    """The chain in this epoch (:func:`spark_impl.join.control.config_of`)."""
    free: Mapping[str, FreePredicate]
    ranks: tuple[Ranks | None, ...]
    """The tuples that each query pairs."""
    store: ChainStore
    states: Mapping[int, Location]
    """Files of the states of all workers after the epoch before; none before the first epoch."""
    clocks: Clocks
    """The progress of both streams, with the floors of this epoch."""
    epoch: int
    flush: bool
    options: Options

    @property
    def fixed(self) -> tuple[object, ...]:
        """The part that epochs of one stage have in common."""
        r, s = (self.config.columns(each) for each in STREAMS)
        return r, s, self.free, self.store, self.options

    @property
    def order(self) -> JsonObject:
        """The part that may change between epochs of one stage, as plain data."""
        return {
            "config": self.config.to_json(),
            "ranks": self.ranks,
            "states": [(old, place.path, place.system) for old, place in self.states.items()],
            "clocks": self.clocks,
            "epoch": self.epoch,
            "flush": self.flush,
        }

    def following(self, order: JsonObject) -> "Plan":
        """Return the plan of a later epoch in the same stage, from its :attr:`order`."""
        ranks = [each and Ranks(*(Counts(*pair) for pair in each)) for each in order["ranks"]]
        return self._replace(
            config=JoinConfig.from_json(order["config"]),
            ranks=tuple(ranks),
            states={old: Location(*place) for old, *place in order["states"]},
            clocks=Clocks(*(StreamClock(*each) for each in order["clocks"])),
            epoch=order["epoch"],
            flush=order["flush"],
        )


class Summary(NamedTuple):
    """The report of a worker about its epoch; a stream that does not enter here has neutral values.

    Counts are numbers of arrivals or tuples, by stream.
    """

    worker: int
    attempt: str
    rows: Mapping[str, int]
    """Number of rows that the worker wrote, by kind."""
    matches: Mapping[str, int]
    """Number of pairs, by query."""
    reasons: Mapping[str, int]
    """Number of arrivals rejected, by reason."""
    offered: int
    """Number of arrivals."""
    accepted: Counts
    """Arrivals that were neither shed nor without a finite value."""
    redelivered: int
    """Number of those that were not late, and whose identity was admitted before."""
    admitted: Counts
    """Tuples admitted in all epochs."""
    t_max_us: Counts
    """Largest admitted event times."""
    held: Counts
    least_us: Counts
    """Least event times that are held; ``END_US`` if none is."""
    wm_us: Counts
    """Passed watermarks; at the worker where a stream enters, that of the stream."""
    busy_us: int
    """Time that was not spent on waiting for neighbours."""
    bytes_sent: int
    """Number of bytes sent to its neighbours."""


OUTPUT = pa.schema([("worker", pa.int64())])
"""Columns of the output of a task, which has no rows."""


def read_summary(told: JsonObject) -> Summary:
    """Return what a worker has told."""
    counts = {name: Counts(*each) for name, each in told.items() if isinstance(each, list)}
    return Summary(**{**told, **counts})


def run_task(
    batches: Iterable[pa.RecordBatch], plan: Plan, place: Place, *, stays: bool
) -> Iterator[pa.RecordBatch]:
    """Run one worker, as a barrier task of ``mapInArrow``, for one epoch or for several.

    ``batches`` have the rows of the first epoch, which ``plan`` is about. What the worker has found
    is in the store, and its report is sent to the driver: the task has no output. In an epoch of
    fewer workers than the stage has tasks, the last tasks do nothing.
    """
    context = BarrierTaskContext.get()
    number, patience_s = context.partitionId(), plan.options.patience_s
    rows = _own_rows(pa.Table.from_batches(batches), number)
    nothing, state = rows.schema.empty_table(), None
    with take_post(place, context, patience_s, stays=stays) as post:
        while True:
            workers = plan.config.workers
            if number < workers:
                arrivals = _read_arrivals(rows, plan, number)
                summary, state = _run_epoch(plan, number, arrivals, state, post)
                post.report(summary._asdict())
            order = post.next_order(is_idle=number >= workers) if stays else None
            if order is None:
                break
            plan = plan.following(order)
            if plan.config.workers != workers:
                state = None  # that of the old workers is in the store
            rows = post.take_brought([Brought(*each) for each in order["brought"]], nothing)
    yield from ()


def _run_epoch(
    plan: Plan,
    number: int,
    arrivals: Mapping[str, Arrivals],
    before: WorkerState | None,
    post: Post,
) -> tuple[Summary, WorkerState]:
    """Run a worker in an epoch; return its report and its state afterwards.

    ``before`` is its state after the epoch before; without it, that is in the store.
    """
    steps, kept = list[str](), dict[str, list[Tuples]]()
    worker = _make_worker(plan, number, before, steps, kept)
    neighbours = {n: each for n, each in post.neighbours.items() if n < plan.config.workers}
    links = plan.options.links(number, plan.epoch, neighbours, plan.options.patience_s)
    links.schemas = {each: schema_of(plan.config.columns(each)) for each in STREAMS}
    name = name_of(post.attempt, number)
    with closing(links):
        matches, busy_us = _find_pairs(worker, arrivals, links, plan, name)
    state = worker.state()
    tables = {
        REJECTED: rejections_table(worker.rejections),
        STEPS: pa.table({"line": pa.array(steps, pa.string())}),
        STATE: pa.table({"number": [number], "content": [encode_state(state)]}),
    }
    for stream, parts in kept.items():
        kind, table = f"admitted-{stream}", pa.Table.from_batches([*map(to_arrow, parts)])
        tables[kind] = table.rename_columns(plan.store.kinds[kind].names)
    for kind, table in tables.items():
        plan.store.write(kind, plan.epoch, table, name)
    intakes = [each.intake or Admitted() for each in state]
    summary = Summary(
        worker=number,
        attempt=post.attempt,
        rows={MATCHES: sum(matches.values())}
        | {kind: table.num_rows for kind, table in tables.items()},
        matches=matches,
        reasons=count_reasons(worker.rejections),
        offered=sum(len(own.seq) for own in arrivals.values()),
        accepted=count_accepted(worker.lanes),
        redelivered=sum(each.intake.redelivered for each in worker.lanes.values() if each.intake),
        admitted=Counts(*(each.tuples for each in intakes)),
        t_max_us=Counts(*(each.t_max_us for each in intakes)),
        held=Counts(*(len(each.tuples) for each in state)),
        least_us=Counts(*(int(each.tuples.ts.min(initial=END_US)) for each in state)),
        wm_us=Counts(*(each.wm_us for each in state)),
        busy_us=busy_us,
        bytes_sent=links.bytes_sent,
    )
    return summary, state


def _find_pairs(
    worker: Worker, arrivals: Mapping[str, Arrivals], links: Links, plan: Plan, name: str
) -> tuple[dict[str, int], int]:
    """Let a worker find its pairs, which are written as they come.

    Return their number by query, and the busy time of the worker (us).
    """
    matches = {query: 0 for query, _ in plan.config.queries}
    place = plan.store.file(MATCHES, plan.epoch, name)
    with RowFile(place, plan.store.numbered(MATCHES)) as file:

        def write(found: Sequence[Sequence[Pairs]]) -> None:
            for query, own in zip(matches, found, strict=True):
                if own:
                    rows = pairs_table(query, own, plan.epoch)
                    file.write(rows)
                    matches[query] += rows.num_rows

        try:
            return matches, drive(worker, arrivals, links, write)
        except NeighbourClosed:
            links.close()  # so that all workers learn of it now, not one a second
            time.sleep(_CAUSE_FIRST_S)
            raise


def _make_worker(
    plan: Plan,
    number: int,
    before: WorkerState | None,
    steps: list[str],
    kept: dict[str, list[Tuples]],
) -> Worker:
    """Return a worker with the state after the epoch before, which may have had other workers."""
    matcher, workers = Matcher(plan.config, plan.free, plan.ranks), plan.config.workers

    def load(old: int) -> WorkerState:
        if before is not None:
            return before
        if not plan.states:
            return empty_state()
        return decode_state(plan.store.read_state(plan.states[old], STATE)["content"])

    def keep(stream: str, rows: Tuples) -> None:
        kept.setdefault(stream, []).append(rows)

    def record(step: Step) -> None:
        steps.append(json.dumps({"kind": kind_of(type(step)), **step._asdict()}))

    state, found = adopt(load, len(plan.states) or workers, workers, number, matcher)
    return Worker(
        plan.config,
        number,
        matcher,
        state,
        plan.epoch,
        flush=plan.flush,
        record=record if plan.options.recording else None,
        keep=keep if plan.options.history else None,
        found=found,
        floors_us=plan.clocks.floors,
    )


def pairs_table(query: str, found: Sequence[Pairs], epoch: int) -> pa.Table:
    """Return the pairs of a query as rows of the store."""
    r_id, s_id = (np.concatenate(ids) for ids in zip(*found, strict=True))
    columns = {"query": pa.repeat(query, len(r_id)), "r_id": r_id, "s_id": s_id}
    return pa.table({**columns, BATCH: np.full(len(r_id), epoch)})


def rejections_table(rejections: Sequence[Rejections]) -> pa.Table:
    """Return rejections as rows of the store."""
    parts = [KINDS[REJECTED].empty_table()]
    for each in rejections:
        columns = {
            "stream": pa.repeat(each.stream, len(each.seq)),
            "seq": each.seq,
            "source_id": each.tuples.source_id,
            "key": pa.array(each.tuples.key, pa.string()),
            "event_time_us": each.tuples.ts,
            "reason": pa.array(each.reason, pa.string()),
        }
        parts.append(pa.table(columns))
    return pa.concat_tables(parts)


def _own_rows(given: pa.Table, number: int) -> pa.Table:
    """Return the rows of a task without the one that made Spark start it."""
    seats = given.column("stream").is_null()
    if given.filter(seats).column("worker").to_pylist() != [number]:
        msg = f"the rows of worker {number} went elsewhere"
        raise RuntimeError(msg)
    return given.filter(pc.invert(seats)).drop_columns("worker")


def _read_arrivals(rows: pa.Table, plan: Plan, number: int) -> dict[str, Arrivals]:
    """Return the arrivals of the streams that enter here, in order; none in a flush."""
    for name in (each for each in COLUMNS if each != "value"):
        if rows.column(name).null_count:
            msg = f"the column {name!r} has {rows.column(name).null_count} rows without a value"
            raise InputProblem(msg)
    if plan.flush:
        return {}
    entering = {R: 0, S: plan.config.workers - 1}
    return {
        stream: sort_arrivals(
            rows.filter(pc.equal(rows.column("stream"), stream)),
            plan.config.window_us,
            names_of(plan.config.columns(stream), stream),
        )
        for stream in STREAMS
        if entering[stream] == number
    }


def sort_arrivals(
    rows: pa.Table, window_us: int, more: Mapping[str, str] = MappingProxyType({})
) -> Arrivals:
    """Return arrivals, with :data:`COLUMNS`, in order.

    ``more`` are the columns that their tuples have besides, and the names that they get. Raise
    :class:`InputProblem` if a time or a value is out of range.
    """
    rows = rows.select([*COLUMNS, *more]).sort_by("seq")
    tuples = pa.table(
        {
            "rank": pa.array(np.zeros(rows.num_rows, np.int64)),
            "source_id": rows.column("source_id"),
            "ts": rows.column("event_time_us"),
            "value": pc.fill_null(rows.column("value"), math.nan),
            "key": rows.column("key"),
            **{name: rows.column(column) for column, name in more.items()},
        }
    )
    for name in more.values():
        check_integers(name, tuples.column(name))
    arrivals = Arrivals(rows.column("seq").to_numpy().astype(np.int64), tuples_from_arrow(tuples))
    check_times(arrivals, window_us)
    return arrivals

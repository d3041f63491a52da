"""The chain on Spark as a System: workloads in, traces out."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from model.vocabulary import Event, JoinConfig, Trace, Workload
from model.vocabulary.join import PROTOCOL, STREAMS, Match, Rejected
from model.vocabulary.trace import Step, kind_of
from spark_impl.join.chain import Chain
from spark_impl.join.columns import with_more
from spark_impl.join.store import STEPS, ChainStore, Commit, load_store
from spark_impl.join.task import Options
from spark_impl.join.transport import Links
from spark_impl.runtime.queries import frame_of
from spark_impl.runtime.systems import OnKill, arrivals_table, system_maker
from spark_impl.runtime.tables import BATCH

_WORDS = {kind_of(word): word for word in PROTOCOL}


def run_workloads(
    spark: SparkSession,
    cases: Mapping[str, Workload],
    workdir: Path,
    on_kill: OnKill = lambda _: None,
) -> dict[str, Trace]:
    """Run workloads one after the other, each in a chain of its own below ``workdir``.

    A fault ``restart`` opens the chain anew. A fault ``kill`` ends the driver when all workers have
    written, just before the commit of the epoch, and then opens the chain anew. The
    session needs as many task slots as a workload has workers. Raises ``ValueError`` for an arrival
    of an unknown stream.
    """
    return {
        name: run_chain(spark, workload, workdir / str(number), on_kill)
        for number, (name, workload) in enumerate(cases.items())
    }


make_system = system_maker("join", run_workloads)


class _Killed(BaseException):
    """The driver was killed."""


class _DoomedChain(Chain):
    """A chain whose driver is killed just before it commits an epoch."""

    def _conclude(self, *_: object) -> Commit:
        raise _Killed


def run_chain(
    spark: SparkSession,
    workload: Workload,
    folder: Path,
    on_kill: OnKill,
    links: Callable[..., Links] = Links,
    on_sent: Callable[[int], None] = lambda _: None,
) -> Trace:
    """Run a workload in a chain in ``folder``, as :func:`run_workloads` does.

    ``links`` makes the connections of its workers. ``on_sent`` is called after each epoch with the
    number of bytes that its workers sent to each other.
    """
    config = JoinConfig.from_json(workload.config)
    for event in workload.arrivals:
        if event.stream not in STREAMS:
            msg = f"arrival {event.seq} has the stream {event.stream!r}; it must be 'R' or 'S'"
            raise ValueError(msg)
    faults = {(fault.kind, fault.at) for fault in workload.faults}
    options = Options(recording=True, links=links)
    with ExitStack() as stack:

        def opened(kind: type[Chain] = Chain) -> Chain:
            return stack.enter_context(closing(kind(spark, config, folder, options=options)))

        chain = opened()
        for epoch, events in enumerate(workload.batches()):
            rows = rows_of(spark, events, config)
            if ("kill", epoch) in faults:
                with suppress(_Killed):
                    opened(_DoomedChain).advance(rows)
                on_kill(epoch)
            if {("kill", epoch), ("restart", epoch)} & faults:
                chain.close()
                chain = opened()
            on_sent(sum(each.bytes_sent for each in chain.advance(rows)))
        if workload.flush:
            on_sent(sum(each.bytes_sent for each in chain.advance(None)))
    return read_trace(folder)


def rows_of(
    spark: SparkSession, events: tuple[Event, ...], config: JoinConfig | None = None
) -> DataFrame:
    """Return arrivals as the rows of an epoch of a chain; without one they have no more columns."""
    rows = arrivals_table(events)
    if config is not None:
        for stream in STREAMS:
            rows = with_more(rows, events, stream, config.columns(stream))
    streams = pa.array([event.stream for event in events], pa.string())
    return frame_of(spark, rows.append_column("stream", streams))


def read_trace(store: Path) -> Trace:
    """Return the trace of a chain with a recording: its committed epochs."""
    return Trace("spark", _steps(load_store(store)))


def _steps(store: ChainStore) -> Iterator[Step]:
    for row in store.read_kind("matches").to_pylist():
        yield Match(row["query"], row["r_id"], row["s_id"], row[BATCH])
    for row in store.read_kind("rejected").to_pylist():
        yield Rejected(row["stream"], row["seq"], row["source_id"], row["reason"])
    for line in store.read_kind(STEPS).column("line").to_pylist():
        step = json.loads(line)
        yield _WORDS[step.pop("kind")](**step)

"""The chain on Spark as a System: workloads in, traces out."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from model.vocabulary import Event, JoinConfig, System, Trace, Workload
from model.vocabulary.join import PROTOCOL, STREAMS, Match, Rejected
from model.vocabulary.trace import Step, kind_of
from spark_impl.join.chain import Chain
from spark_impl.join.store import Store, load_store
from spark_impl.runtime.systems import one_at_a_time

_SCHEMA = pa.schema(
    [
        ("stream", pa.string()),
        ("seq", pa.int64()),
        ("source_id", pa.int64()),
        ("key", pa.string()),
        ("event_time_us", pa.int64()),
        ("value", pa.float64()),
    ]
)
_WORDS = {kind_of(word): word for word in PROTOCOL}


def make_system(master: str = "local[2]") -> System:
    """The chain as a callable; it uses the running session, or one of its own for each call.

    The session needs as many task slots as the workload has workers.
    """
    return one_at_a_time(run_workloads, "join", master)


def run_workloads(
    spark: SparkSession,
    cases: Mapping[str, Workload],
    workdir: Path,
    killed: Callable[[int], object] = lambda _: None,
) -> dict[str, Trace]:
    """Run workloads one after the other, each in a chain of its own below ``workdir``.

    After a fault ``restart`` the chain is opened anew; at a fault ``kill`` the driver ends when all
    workers have written, just before the epoch counts, and then it is opened anew; ``killed`` is
    told the epoch. Raises ``ValueError`` for an arrival of an unknown stream.
    """
    return {
        name: _run(spark, workload, workdir / str(number), killed)
        for number, (name, workload) in enumerate(cases.items())
    }


def _run(
    spark: SparkSession, workload: Workload, folder: Path, killed: Callable[[int], object]
) -> Trace:
    config = JoinConfig.from_json(workload.config)
    for event in workload.arrivals:
        if event.stream not in STREAMS:
            msg = f"arrival {event.seq} is of stream {event.stream!r}; it must be 'R' or 'S'"
            raise ValueError(msg)
    faults = {(fault.kind, fault.at) for fault in workload.faults}
    chain = Chain(spark, config, folder, recording=True)
    for epoch, events in enumerate(workload.batches()):
        rows = rows_of(spark, events)
        if ("kill", epoch) in faults:
            chain.advance(rows)
            chain.store.lose_commit()
            killed(epoch)
        if {("kill", epoch), ("restart", epoch)} & faults:
            chain = Chain(spark, config, folder, recording=True)
        chain.advance(rows)
    if workload.flush:
        chain.advance(None)
    return read_trace(folder)


def rows_of(spark: SparkSession, events: tuple[Event, ...]) -> DataFrame:
    """Arrivals as the rows of an epoch."""
    rows = [{name: getattr(event, name) for name in _SCHEMA.names} for event in events]
    return spark.createDataFrame(pa.Table.from_pylist(rows, _SCHEMA))


def read_trace(store: Path) -> Trace:
    """Everything that counts of what a chain with a recording has written."""
    return Trace("spark", _steps(load_store(store)))


def _steps(store: Store) -> Iterator[Step]:
    """Everything that counts, as steps."""
    epochs = store.epochs()
    for path in store.files("matches-*.parquet", epochs):
        for row in pq.read_table(path).to_pylist():
            yield Match(row["query"], row["r_id"], row["s_id"], row["epoch"])
    for path in store.files("rejected-*.parquet", epochs):
        for row in pq.read_table(path).to_pylist():
            yield Rejected(**row)
    for path in store.files("steps-*.ndjson", epochs):
        for line in path.read_text(encoding="utf-8").splitlines():
            step = json.loads(line)
            yield _WORDS[step.pop("kind")](**step)

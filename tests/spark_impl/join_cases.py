"""A drawn case of a chain: its arrivals, its streams, and the pairs that a loop finds."""

import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from model.vocabulary import Event, JoinConfig, Workload
from model.vocabulary.join import STREAMS, And, Band, Equi, Predicate
from properties.oracles.join import NestedLoop
from spark_impl.join import ChainJoin, ChainStream
from spark_impl.join.system import rows_of
from spark_impl.runtime.histories import append
from spark_impl.runtime.queries import Sink

Pair = tuple[str, int, int]
Queries = dict[str, Predicate]
TUPLES = 140
WINDOW_US = 10
LATENESS_US = 8
SCHEMA = pa.schema(
    [
        ("seq", pa.int64()),
        ("source_id", pa.int64()),
        ("key", pa.string()),
        ("event_time_us", pa.int64()),
        ("value", pa.float64()),
    ]
)
COLUMNS = "seq long, source_id long, key string, event_time_us long, value double"


def case_with(workers: int, batches: int = 2) -> Workload:
    """Return arrivals with disorder, redeliveries and a value that is not finite."""
    draw = random.Random(7)
    events: list[Event] = []
    for seq in range(TUPLES):
        stream = draw.choice(STREAMS)
        again = [event for event in events if event.stream == stream]
        if again and draw.random() < 0.1:
            event = draw.choice(again)._replace(seq=seq, arrival_us=seq)
        else:
            ts = 1000 + seq - draw.choice([0, 0, 1, 3, 9])
            value = float("inf") if seq == 30 else draw.choice([0.0, 0.5, 1.0, 2.0, 2.5, 4.0])
            key = draw.choice(["a", "b", "ä", "a\N{GRINNING FACE}"])
            event = Event(seq, seq * 7 % 1009, key, ts, value, seq, stream)
        events.append(event)
    config = JoinConfig(
        WINDOW_US,
        (("near", And((Equi("key"), Band("value", 0.5)))),),
        workers=workers,
        block_size=3,
        lateness_us=LATENESS_US,
    )
    cuts = tuple(TUPLES * n // batches for n in range(1, batches))
    return Workload("join", tuple(events), config.to_json(), cuts)


def recomputed(workload: Workload) -> NestedLoop:
    """Recompute a chain with all of its settings."""
    config = JoinConfig.from_json(workload.config).to_json()
    return NestedLoop(workload.with_(config=config).to_json())


def nested_loop(workload: Workload) -> Counter[Pair]:
    """Return every pair of every query, with the number of times that it may come: once."""
    pairs = recomputed(workload).pairs
    assert pairs, "a case without a match shows nothing"
    return pairs


def counted(rows: DataFrame) -> Counter[Pair]:
    return Counter((row.query, row.r_id, row.s_id) for row in rows.collect())


def inputs(spark: SparkSession, case: Workload, stream: str) -> DataFrame:
    events = tuple(event for event in case.arrivals if event.stream == stream)
    return rows_of(spark, events).drop("stream")


def stream_of(
    spark: SparkSession,
    folder: Path,
    workers: int,
    queries: Queries,
    sink: Sink | None = None,
) -> ChainStream:
    r, s = (spark.readStream.schema(COLUMNS).parquet(str(folder / each)) for each in STREAMS)
    join = ChainJoin(
        workers, WINDOW_US, queries, block_size=3, lateness_us=LATENESS_US, history=True
    )
    return join.stream(r, s, folder / "store", sink)


def arrive(folder: Path, events: tuple[Event, ...]) -> None:
    for stream in STREAMS:
        own = [event._asdict() for event in events if event.stream == stream]
        append(folder / stream, pa.Table.from_pylist(own, SCHEMA))

"""Streams of the benchmark of room join, and what its chains send, store and compare."""

import json
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from model.vocabulary import JoinConfig
from model.vocabulary.join import STREAMS, Band, Forward, R, S
from model.vocabulary.trace import kind_of
from spark_impl.join import messages
from spark_impl.join.chain import Chain
from spark_impl.join.matching import tuples_from_arrow
from spark_impl.join.messages import Block, BlockAck
from spark_impl.join.store import STEPS, ChainStore
from spark_impl.join.task import Options, Summary

TUPLES, FILES = 200_000, 5
"""Tuples and files of a stream."""
START_US, STEP_US = 1_700_000_000_000_000, 1_000
WINDOW = 20_000
"""Length of the window, in steps."""
VALUES, EPS = 1_000_000, 50
CREDIT_TUPLES = 1024
"""Tuples in flight over a boundary, for every size of blocks."""
SCHEMA = "seq long, source_id long, key string, event_time_us long, value double"
QUERIES = (1, 4, 16)


@contextmanager
def inputs(tuples: int, files: int) -> Iterator[Path]:
    """Yield a folder with a folder of files for each stream, and remove it in the end."""
    place = Path(tempfile.mkdtemp(prefix="straggler-bench-"))
    try:
        for stream in STREAMS:
            (place / stream).mkdir()
            table = arrivals(stream, tuples)
            for number in range(files):
                part = table.slice(number * tuples // files, tuples // files)
                pq.write_table(part, place / stream / f"{number}.parquet")
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def arrivals(stream: str, tuples: int) -> pa.Table:
    """Return all arrivals of one stream."""
    order = STREAMS.index(stream)
    number = np.arange(tuples)
    keys = pa.array([f"key-{each}" for each in range(16)])
    return pa.table(
        {
            "seq": 2 * number + order,
            "source_id": number,
            "key": keys.take(pa.array(number % 16)),
            "event_time_us": START_US + number * STEP_US,
            "value": np.random.default_rng(order).integers(VALUES, size=tuples).astype(np.float64),
        }
    )


def config_of(workers: int, zeta: int, queries: Mapping[str, Band]) -> JoinConfig:
    """Return the configuration of a chain."""
    return JoinConfig(
        window_us=WINDOW * STEP_US,
        queries=tuple(queries.items()),
        workers=workers,
        block_size=zeta,
        credit=max(4, CREDIT_TUPLES // zeta),
        lateness_us=0,
    )


def bands(queries: int, eps: float = EPS) -> dict[str, Band]:
    """Return queries with the same predicate."""
    return {f"band-{number}": Band("value", eps) for number in range(queries)}


# --------------------------------------------------------------------------------------- load


def load(spark: SparkSession, place: Path, zetas: list[int]) -> dict[str, float]:
    """Return bytes between two workers against the formula, tuples held, and efficiency."""
    figures: dict[str, float] = {}
    for zeta in zetas:
        found = measure_chain(spark, place, config_of(2, zeta, bands(1)))
        least, header = found.crossed * tuple_bytes(), header_bytes()
        mean_size = found.crossed / found.blocks
        figures |= {
            f"zeta {zeta}: mean size of blocks": mean_size,
            f"zeta {zeta}: bytes / least bytes": found.bytes_sent / least,
            f"zeta {zeta}: bytes / bytes of the formula": found.bytes_sent
            / (least * (1 + header / (mean_size * tuple_bytes()))),
            f"zeta {zeta}: held / content of the windows": found.held / (2 * WINDOW),
        }
    figures["goal, held / content of the windows"] = 1.5
    figures["P of the chain"] = found.pairs / found.compared
    figures["P of native"] = found.pairs / compared_in_buckets(EPS)
    figures["P of plain"] = found.pairs / TUPLES**2
    return figures


def shared(spark: SparkSession, place: Path) -> dict[str, float]:
    """Return rates and bytes of 1, 4 and 16 queries on one chain, each with 153,000 pairs."""
    figures: dict[str, float] = {}
    bytes_of_one = 0
    for queries in QUERIES:
        begun = time.perf_counter()
        config = config_of(2, 64, bands(queries, EPS / 5))
        found = measure_chain(spark, place, config, recording=False)
        figures[f"{queries} queries: tuples/s"] = 2 * TUPLES / (time.perf_counter() - begun)
        bytes_of_one = bytes_of_one or found.bytes_sent
        figures[f"{queries} queries: bytes / bytes of one"] = found.bytes_sent / bytes_of_one
    return figures


class ChainLoad(NamedTuple):
    """Work of the workers of a chain."""

    bytes_sent: int
    compared: int
    pairs: int
    blocks: int
    crossed: int
    """Tuples in blocks."""
    held: int
    """Tuples in all stores after the last epoch before the flush."""


def measure_chain(
    spark: SparkSession, place: Path, config: JoinConfig, recording: bool = True
) -> ChainLoad:
    """Run a chain over the files, one of each stream an epoch, and a flush."""
    with tempfile.TemporaryDirectory(dir=place) as out:
        chain = Chain(spark, config, Path(out) / "chain", options=Options(recording))
        done: list[Summary] = []
        for number in range(FILES):
            parts = [
                spark.read.schema(SCHEMA)
                .parquet(str(place / stream / f"{number}.parquet"))
                .withColumn("stream", F.lit(stream))
                for stream in STREAMS
            ]
            own = chain.advance(parts[0].unionByName(parts[1]))
            done += own
        done += chain.advance(None)
        sent = list(_forwards(chain.store))
        return ChainLoad(
            bytes_sent=sum(each.bytes_sent for each in done),
            compared=sum(each.compared for each in done),
            pairs=sum(sum(each.matches.values()) for each in done),
            blocks=len(sent),
            crossed=sum(sent),
            held=sum(sum(each.held) for each in own),
        )


def _forwards(store: ChainStore) -> Iterator[int]:
    """Yield the number of tuples of every block that was sent."""
    steps = map(json.loads, store.at().read_kind(STEPS).column("line").to_pylist())
    yield from (step["tuples"] for step in steps if step["kind"] == kind_of(Forward))


def tuple_bytes() -> float:
    """Return the bytes that one more tuple adds to a block."""
    few, many = (_block_bytes(tuples) for tuples in (1_000, 11_000))
    return (many - few) / 10_000


def header_bytes() -> int:
    """Return the bytes of a block without tuples and of its acknowledgement."""
    return _block_bytes(0) + len(b"".join(messages.encode_messages([BlockAck(R, 1, 1, 1)])))


def _block_bytes(tuples: int) -> int:
    rows = arrivals(R, tuples).rename_columns({"event_time_us": "ts", "seq": "rank"})
    return len(b"".join(messages.encode_messages([Block(R, 1, 1, 1, tuples_from_arrow(rows))])))


def compared_in_buckets(width: int) -> int:
    """Return the pairs that meet in a bucket if state is cleaned as early as possible.

    A micro-batch meets itself, and those older tuples of the other stream that can still match.
    """
    values = {stream: arrivals(stream, TUPLES).column("value").to_numpy() for stream in STREAMS}
    size, pairs = TUPLES // FILES, 0
    for begin in range(0, TUPLES, size):
        since, end = max(0, begin - WINDOW), begin + size
        new = {stream: own[begin:end] for stream, own in values.items()}
        old = {stream: own[since:begin] for stream, own in values.items()}
        for r, s in ((new[R], new[S]), (new[R], old[S]), (old[R], new[S])):
            pairs += _in_common(r, s, width)
    return pairs


def _in_common(r: NDArray[np.float64], s: NDArray[np.float64], width: int) -> int:
    in_bucket = np.bincount((s // width).astype(np.int64), minlength=VALUES // width + 2)
    before = np.concatenate([[0], np.cumsum(in_bucket)])
    first = np.maximum((r - EPS) // width, 0).astype(np.int64)
    last = ((r + EPS) // width).astype(np.int64)
    return int((before[np.minimum(last + 1, len(in_bucket))] - before[first]).sum())

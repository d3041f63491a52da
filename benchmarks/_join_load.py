"""Bytes, stored tuples and comparisons of a chain, for the benchmark of room join."""

import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from benchmarks._join_input import (
    EPS,
    FILES,
    SCHEMA,
    TUPLES,
    VALUES,
    WINDOW,
    arrivals,
    bands,
    config_of,
)
from model.vocabulary import JoinConfig
from model.vocabulary.join import STREAMS, Forward, R, S
from model.vocabulary.trace import kind_of
from spark_impl.join import messages
from spark_impl.join.chain import Chain
from spark_impl.join.matching import tuples_from_arrow
from spark_impl.join.messages import Block, BlockAck
from spark_impl.join.store import ChainStore
from spark_impl.join.task import Summary

QUERIES = (1, 4, 16)


def load(spark: SparkSession, place: Path, zetas: list[int]) -> dict[str, float]:
    """Bytes between two workers against the formula, tuples held, and efficiency."""
    figures: dict[str, float] = {}
    for zeta in zetas:
        found = recorded(spark, place, config_of(2, zeta, bands(1)))
        least, header = found.crossed * _tuple_bytes(), _header_bytes()
        mean_size = found.crossed / found.blocks
        figures |= {
            f"zeta {zeta}: mean size of blocks": mean_size,
            f"zeta {zeta}: bytes / least bytes": found.bytes_sent / least,
            f"zeta {zeta}: bytes / bytes of the formula": found.bytes_sent
            / (least * (1 + header / (mean_size * _tuple_bytes()))),
            f"zeta {zeta}: held / content of the windows": found.held / (2 * WINDOW),
        }
    figures["goal, held / content of the windows"] = 1.5
    figures["P of the chain"] = found.pairs / found.compared
    figures["P of native"] = found.pairs / compared_in_buckets(EPS)
    figures["P of plain"] = found.pairs / TUPLES**2
    return figures


def shared(spark: SparkSession, place: Path) -> dict[str, float]:
    """Rates and bytes of one, four and sixteen queries on one chain, each with 153,000 pairs."""
    figures: dict[str, float] = {}
    bytes_of_one = 0
    for queries in QUERIES:
        begun = time.perf_counter()
        config = config_of(2, 64, bands(queries, EPS / 5))
        found = recorded(spark, place, config, recording=False)
        figures[f"{queries} queries: tuples/s"] = 2 * TUPLES / (time.perf_counter() - begun)
        bytes_of_one = bytes_of_one or found.bytes_sent
        figures[f"{queries} queries: bytes / bytes of one"] = found.bytes_sent / bytes_of_one
    return figures


class Recorded(NamedTuple):
    """Work of the workers of a chain."""

    bytes_sent: int
    compared: int
    pairs: int
    blocks: int
    crossed: int
    """Tuples in blocks."""
    held: int
    """Tuples in all stores after the last epoch but the flush."""


def recorded(
    spark: SparkSession, place: Path, config: JoinConfig, recording: bool = True
) -> Recorded:
    """Run a chain over the files, one of each stream an epoch, and a flush."""
    with tempfile.TemporaryDirectory(dir=place) as out:
        chain = Chain(spark, config, Path(out) / "chain", recording=recording)
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
        return Recorded(
            bytes_sent=sum(each.bytes_sent for each in done),
            compared=sum(each.compared for each in done),
            pairs=sum(sum(each.matches) for each in done),
            blocks=len(sent),
            crossed=sum(sent),
            held=sum(each.r_held + each.s_held for each in own),
        )


def _forwards(store: ChainStore) -> Iterator[int]:
    """The tuples of every block that was sent."""
    for path in store.files("steps-*.ndjson", store.epochs()):
        steps = map(json.loads, path.read_text(encoding="utf-8").splitlines())
        yield from (step["tuples"] for step in steps if step["kind"] == kind_of(Forward))


def _tuple_bytes() -> float:
    """Bytes of a tuple without any header: what more tuples add to a block."""
    few, many = (_block_bytes(tuples) for tuples in (1_000, 11_000))
    return (many - few) / 10_000


def _header_bytes() -> int:
    """Bytes of a block without tuples and of its acknowledgement."""
    return _block_bytes(0) + len(b"".join(messages.encode_messages([BlockAck(R, 1, 1, 1)])))


def _block_bytes(tuples: int) -> int:
    rows = arrivals(R, tuples).rename_columns({"event_time_us": "ts", "seq": "rank"})
    return len(b"".join(messages.encode_messages([Block(R, 1, 1, 1, tuples_from_arrow(rows))])))


def compared_in_buckets(width: int) -> int:
    """Pairs in a common bucket while both are there, if state is cleaned as soon as may be.

    A micro-batch meets itself, and of the other stream what can still match after the one before.
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

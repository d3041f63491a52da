"""Two streams for the benchmark of room join, and what is asked of them."""

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from model.vocabulary import JoinConfig
from model.vocabulary.join import STREAMS, Band

TUPLES, FILES = 200_000, 5
"""Tuples of a stream, and the files that they come in."""
START_US, STEP_US = 1_700_000_000_000_000, 1_000
WINDOW = 20_000
"""In steps."""
VALUES, EPS = 1_000_000, 50
CREDIT_TUPLES = 1024
"""A boundary has so many tuples on their way, whatever the size of blocks."""
SCHEMA = "seq long, source_id long, key string, event_time_us long, value double"


@contextmanager
def inputs(tuples: int, files: int) -> Iterator[Path]:
    """A folder of files for each stream, and room for what is made of them."""
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
    """All arrivals of one stream."""
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
    """Queries that all ask the same."""
    return {f"band-{number}": Band("value", eps) for number in range(queries)}

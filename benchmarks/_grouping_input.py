"""Skewed streams and busy instances, in a small module because every Spark worker imports it."""

import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

KEYS, FILES = 100_000, 4
FOUND = "instance bigint, tuples bigint"  # columns that serve() yields


def zipf(tuples: int, exponent: float) -> pa.StringArray:
    """Return ``tuples`` keys that are drawn independently by Zipf's law."""
    weights = np.arange(1, KEYS + 1) ** -exponent
    ranks = np.searchsorted(
        np.cumsum(weights / weights.sum()), np.random.default_rng(1).random(tuples)
    )
    return pa.array([f"/of/the/key/{rank}" for rank in ranks], pa.string())


def write(keys: pa.StringArray, folder: Path) -> None:
    """Write files of tuples with these keys, and with values whose sums are exact."""
    folder.mkdir()
    table = pa.table({"key": keys, "value": pa.array(np.arange(len(keys)) % 1024 / 4)})
    size = -(-len(keys) // FILES)
    for number in range(FILES):
        pq.write_table(table.slice(number * size, size), folder / f"{number}.parquet")


def serve(batches: Iterable[pa.RecordBatch], times_us: tuple[int, ...]) -> Iterator[pa.RecordBatch]:
    """Sleep as long as an instance works on each batch of its tuples; yield their number."""
    for batch in batches:
        instance = batch.column("instance")[0].as_py()
        time.sleep(batch.num_rows * times_us[instance] / 1e6)
        yield pa.RecordBatch.from_pylist([{"instance": instance, "tuples": batch.num_rows}])

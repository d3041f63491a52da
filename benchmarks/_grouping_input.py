"""Skewed streams and busy instances for the benchmark of room grouping."""

import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SKEWED, LONGER, RECORDED = "zipf", "longer", "nasa"
TUPLES, KEYS, EXPONENT = 240_000, 100_000, 1.5
TIMES_LONGER = 4
FILES = 4
RECORDING = "nasa_http"
FOUND = "instance bigint, tuples bigint"


def zipf(tuples: int, exponent: float) -> pa.StringArray:
    """Return keys that are drawn independently by Zipf's law."""
    weights = np.arange(1, KEYS + 1) ** -exponent
    ranks = np.searchsorted(
        np.cumsum(weights / weights.sum()), np.random.default_rng(1).random(tuples)
    )
    return pa.array([f"/of/the/key/{rank}" for rank in ranks], pa.string())


@contextmanager
def inputs() -> Iterator[Path]:
    """Yield a folder of files for each stream, among them the recording if it is there."""
    # Not at the top: every Spark worker imports this module for `serve`.
    from straggler.inputs.inputs import recordings_by_name

    place = Path(tempfile.mkdtemp(prefix="straggler-bench-"))
    try:
        streams = {SKEWED: zipf(TUPLES, EXPONENT), LONGER: zipf(TIMES_LONGER * TUPLES, EXPONENT)}
        recording = recordings_by_name().get(RECORDING)
        if recording is not None:
            keys = pq.read_table(recording, columns=["key"]).column("key")
            streams[RECORDED] = keys.cast(pa.string()).combine_chunks()
        for name, keys in streams.items():
            write(keys, place / name)
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def write(keys: pa.StringArray, folder: Path) -> None:
    """Write files of tuples with these keys, and values that are summed without rounding."""
    folder.mkdir()
    table = pa.table({"key": keys, "value": pa.array(np.arange(len(keys)) % 1024 / 4)})
    size = -(-len(keys) // FILES)
    for number in range(FILES):
        pq.write_table(table.slice(number * size, size), folder / f"{number}.parquet")


def serve(batches: Iterable[pa.RecordBatch], times_us: tuple[int, ...]) -> Iterator[pa.RecordBatch]:
    """Sleep for the time that an instance takes for its tuples, and yield their number."""
    for batch in batches:
        instance = batch.column("instance")[0].as_py()
        time.sleep(batch.num_rows * times_us[instance] / 1e6)
        yield pa.RecordBatch.from_pylist([{"instance": instance, "tuples": batch.num_rows}])

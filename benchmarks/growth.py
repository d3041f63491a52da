"""Time of a micro-batch, and number of files, over 10,000 micro-batches.

One query of room ``slack`` sums 50 tuples a micro-batch in windows of a second; every fifth tuple
is up to three seconds late. The query runs a hundred times in the same store, each time after a
hundred new files of the history. Five times, Spark then forgets its last commit, as after a crash.

``last_over_first`` is the median time of a micro-batch in its last tenth divided by
that in its first tenth. The two are an hour apart, in which a machine may become faster or slower.
``flatness`` is therefore measured side by side at the end: the grown query and a young one process
a hundred micro-batches each, in turn, seven times.
"""

import os
import tempfile
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession

from model.vocabulary import SlackConfig
from spark_impl.runtime.histories import append
from spark_impl.runtime.session import session
from spark_impl.runtime.storage import locate
from spark_impl.runtime.stores import CHECKPOINT
from spark_impl.runtime.systems import lose_commit
from spark_impl.slack import SlackQuery

BATCHES = int(os.environ.get("STRAGGLER_GROWTH_BATCHES", "10000"))
STEPS = 100
LOST_COMMITS = 5
ROUNDS = 7
ROWS = 50
SECOND_US = 1_000_000
CONFIG = SlackConfig(size_us=SECOND_US, slide_us=SECOND_US, tasks=2)


def measure() -> dict[str, float]:
    """Return all figures."""
    times_s: list[float] = []
    files: list[int] = []
    with tempfile.TemporaryDirectory(prefix="straggler-bench-") as name:
        grown, young = Path(name, "grown"), Path(name, "young")
        with session(long_running=True) as spark:
            for numbers in np.array_split(np.arange(BATCHES), STEPS):
                times_s.append(grow(spark, grown, numbers))
                files.append(sum(len(each) for _, _, each in os.walk(grown)))
                if len(files) % (STEPS // LOST_COMMITS) == 0:
                    lose_commit(grown / "store" / CHECKPOINT)
            figures = side_by_side(spark, grown, young)
    tenth = STEPS // 10
    first, last = median(times_s[:tenth]), median(times_s[-tenth:])
    return {
        "micro_batches": BATCHES,
        "first_tenth_ms": 1000 * first,
        "last_tenth_ms": 1000 * last,
        "last_over_first": last / first,
        "files_in_the_middle": files[STEPS // 2],
        "files_at_the_end": files[-1],
        **figures,
    }


def side_by_side(spark: SparkSession, grown: Path, young: Path) -> dict[str, float]:
    """Return the median times of a grown and a young query that take turns, and their ratio."""
    size = BATCHES // STEPS
    times_s: dict[Path, list[float]] = {grown: [], young: []}
    for round_number in range(ROUNDS):
        for place, done in ((grown, BATCHES), (young, 0)):
            first = done + round_number * size
            times_s[place].append(grow(spark, place, np.arange(first, first + size)))
    of_grown, of_young = (median(each) for each in times_s.values())
    return {
        "grown_ms": 1000 * of_grown,
        "young_ms": 1000 * of_young,
        "flatness": of_grown / of_young,
    }


def grow(spark: SparkSession, place: Path, numbers: NDArray[np.int64]) -> float:
    """Append files to a history and process them; return the median seconds of a micro-batch.

    The first micro-batch, which starts the query, does not count.
    """
    ends_s: list[float] = []

    def note(_answers: DataFrame, _batch: int) -> None:
        ends_s.append(perf_counter())

    for number in numbers.tolist():
        append(locate(place / "history"), arrivals(number))
    SlackQuery(spark, CONFIG, place / "history", place / "store", sink=note).run_available()
    return median(after - before for before, after in pairwise(ends_s))


def arrivals(number: int) -> pa.Table:
    """Return the rows of a file of the history, by the number of the file."""
    random = np.random.default_rng(number)
    seq = np.arange(number * ROWS, (number + 1) * ROWS)
    delay_us = random.integers(0, 3 * SECOND_US, ROWS) * (random.random(ROWS) < 0.2)
    return pa.table(
        {
            "seq": seq,
            "source_id": seq,
            "key": [f"key-{at % 7}" for at in range(ROWS)],
            "event_time_us": seq * 20_000 - delay_us,
            "value": np.ones(ROWS),
            "arrival_us": seq * 20_000,
        }
    )

"""The adaptive query against Spark's own windows: same files, same windows, comparable delay.

Both sum a value by key in sliding windows of ten seconds, a micro-batch a file, with two cores, two
shuffle partitions and the Java that pays in long runs. Sixteen keys send 10,000 tuples a second,
each delayed at random (exponential, mean half a second), 500,000 tuples a file. A file has one row
group, as every writer makes it at this size; so neither side reads it on two cores.

``adaptive`` is the whole query of room ``slack`` (conformal control, eps 0.02, four tasks, no
recognition of redeliveries): stream, tables, corrections.
``native`` is ``withWatermark``, ``window``, append mode, Parquet sink, as Spark comes.
``native_same_settings`` has its checkpoint files written as the adaptive query has them written
(``spark_impl.windows.query``), a setting that Spark does not document. Both wait for a fixed
watermark delay: the mean slack K that the adaptive query has over the measured batches, known from
a run of it over the same files beforehand. So all three wait equally long on average.

In every round all three take the same new files, one after the other, and take turns in being
first. A rate is the number of tuples in the file divided by ``triggerExecution`` of Spark's
progress report, the median over all batches but the first of every round, which starts the query.
"""

from functools import partial
from pathlib import Path

import pyarrow.compute as pc
from pyspark.sql import SparkSession

from benchmarks._windows import (
    FILES,
    SECOND_US,
    Stream,
    add,
    in_a_folder,
    late_pairs,
    median_rates,
    native,
    rows_of,
)
from model.vocabulary import SlackConfig
from spark_impl.runtime.session import session
from spark_impl.slack import SlackQuery
from spark_impl.windows.store import WindowStore

SIZE_US = 10 * SECOND_US
SLIDES_US = {5: 2 * SECOND_US, 50: SECOND_US // 5}
"""Slide for each number of windows that a tuple has."""
GOALS = {5: 1.0, 50: 3.0}
ROUNDS = 4
"""Rounds; the first one warms up."""


def measure() -> dict[str, float]:
    """Return all figures; rates are in tuples a second."""
    figures: dict[str, float] = {}
    with session(long_running=True) as spark:
        for per_tuple in SLIDES_US:
            found = in_a_folder(partial(side_by_side, spark, per_tuple))
            figures |= {f"{per_tuple} windows: {name}": each for name, each in found.items()}
    return figures


def side_by_side(spark: SparkSession, per_tuple: int, place: Path) -> dict[str, float]:
    """Return the rates of the three, their ratios, and the work of the adaptive query."""
    slide_us = SLIDES_US[per_tuple]
    config = SlackConfig(SIZE_US, slide_us, tasks=4, eps=0.02, dedup=False)
    delay_us = int(_calibrated_s(spark, config, per_tuple, place / "calibration") * SECOND_US)
    tables, history = Stream().files(seed=per_tuple), place / "history"
    ours = partial(SlackQuery, spark, config, history, place / "store")
    theirs = partial(native, spark, place, windows=config.windows, delay_us=delay_us)
    rate = median_rates(
        {
            "adaptive": lambda: ours().start(),
            "native": partial(theirs, "native"),
            "native_same_settings": partial(theirs, "native_same_settings"),
        },
        history,
        tables,
        ROUNDS,
    )
    store = ours().store
    return {
        **rate,
        "ratio": rate["adaptive"] / rate["native"],
        "goal of the ratio": GOALS[per_tuple],
        "ratio at same settings": rate["adaptive"] / rate["native_same_settings"],
        "delay of native, s": delay_us / SECOND_US,
        "mean K of adaptive, s": _mean_slack_s(store, FILES),
        "late pairs, share": late_pairs(store, FILES),
        "rows read a correction / rows needed": _read_to_needed(store),
    }


def _calibrated_s(spark: SparkSession, config: SlackConfig, seed: int, place: Path) -> float:
    """Return the mean K of the adaptive query over the batches that will be measured (s)."""
    add(place / "history", Stream().files(seed), ROUNDS * FILES)
    query = SlackQuery(spark, config, place / "history", place / "store")
    query.run_available()
    return _mean_slack_s(query.store, FILES)


def _mean_slack_s(store: WindowStore, first_batch: int) -> float:
    slack_us = rows_of(store, "progress", first_batch).column("slack_us")
    return float(pc.mean(slack_us).as_py()) / SECOND_US


def _read_to_needed(store: WindowStore) -> float:
    """Return the rows of the files that corrections opened, per row in a corrected window."""
    by_batch = rows_of(store, "correction").group_by("batch")
    sums = by_batch.aggregate([("rows_read", "max"), ("rows_needed", "sum")])
    read, needed = (
        pc.sum(sums.column(name)).as_py() or 0 for name in ("rows_read_max", "rows_needed_sum")
    )
    return float(read / max(needed, 1))

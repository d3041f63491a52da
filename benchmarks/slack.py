"""The adaptive query against Spark's own windows: same files, same windows, comparable delay.

Both sum a value by key in sliding windows of ten seconds, a micro-batch a file, with two cores, two
shuffle partitions and the Java that pays in long runs. Sixteen keys send 10,000 tuples a second,
each delayed at random (exponential, mean half a second), 500,000 tuples a file. A file has one row
group, as every writer makes it at this size; so neither side reads it on two cores.

``adaptive`` is the whole query of room ``slack`` (conformal control, eps 0.02, four tasks, no
recognition of redeliveries): stream, tables, corrections with their check of the assumption.
``native`` is ``withWatermark``, ``window``, append mode, Parquet sink, as Spark comes.
``native_same_settings`` has its checkpoint files written as the adaptive query has them written
(``spark_impl.windows.query``), a setting that Spark does not document. Both wait for a fixed
watermark delay: the mean slack K that the adaptive query has over the measured batches, known from
a run of it over the same files beforehand. So all three wait equally long on average.

In every round all three take the same new files, one after the other, and take turns in being
first. A rate
is the number of tuples in the file divided by ``triggerExecution`` of Spark's progress report, the
median over all batches but the first of every round, which starts the query.
"""

from functools import partial
from pathlib import Path
from statistics import mean, median
from typing import Any

import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from benchmarks._windows import (
    FILES,
    SECOND_US,
    Stream,
    add,
    batch_rates,
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
        figures |= in_a_folder(partial(late_tuples, spark))
        figures |= in_a_folder(partial(an_hour, spark))
    return figures


# ------------------------------------------------------------------------- against Spark's own


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


# ----------------------------------------------------------------------------- lateness, memory


def late_tuples(spark: SparkSession, place: Path) -> dict[str, float]:
    """Return rates with 1% and with 30% of the tuples late for some window.

    These queries require a coverage of 0.3 only, so that K falls and tuples come late.
    """
    config = SlackConfig(SIZE_US, SLIDES_US[5], tasks=4, lambda_thr=0.3, learning_rate=0.5)
    streams = {"1%": 0.013, "30%": 0.39}
    tables = {
        name: Stream(delay_s=3, delayed=delayed).files(seed=9) for name, delayed in streams.items()
    }
    rates: dict[str, list[float]] = {name: [] for name in streams}
    late: dict[str, float] = {}
    for number in range(3):
        for name in streams:
            sizes = add(place / name, tables[name])
            query = SlackQuery(spark, config, place / name, place / f"store-{name}")
            found = batch_rates(query.start, sizes)
            if number:
                rates[name].extend(found)
                late[name] = rows_of(query.store, "late", number * FILES).num_rows / sum(sizes)
    return {
        **{f"{name} late: tuples/s": median(each) for name, each in rates.items()},
        **{f"{name} late: share in the last round": each for name, each in late.items()},
        "30% late against 1%": median(rates["30%"]) / median(rates["1%"]),
        "arrivals/s": Stream().rate_hz,
    }


def an_hour(spark: SparkSession, place: Path) -> dict[str, float]:
    """Return the state of the default query over an hour at a constant rate, with deduplication."""
    files = 40
    stream = Stream(rows=90_000, rate_hz=1_000)
    config = SlackConfig(SIZE_US, SLIDES_US[50], tasks=4)
    add(place / "history", stream.files(seed=3), files)
    query = SlackQuery(spark, config, place / "history", place / "store")
    query.run_available()
    first, last = (
        [_state_bytes(spark, query.store, batch) for batch in range(end - 7, end, 2)]
        for end in (files // 4, files)
    )
    return {
        "state in the first quarter of an hour, bytes": mean(first),
        "state in the last, bytes": mean(last),
        "state, last quarter / first": mean(last) / mean(first),
    }


def _state_bytes(spark: SparkSession, store: WindowStore, batch: int) -> float:
    """Return the bytes of all tasks' states after a batch, as Spark's state store holds them."""
    state = (
        spark.read.format("statestore")
        .option("stateVarName", "task")
        .option("batchId", batch)
        .load(str(store.checkpoint))
    )
    found: Any = state.agg(F.sum(F.length("value.state"))).first()
    return float(found[0])

"""The watermark of a micro-cluster against Spark's fixed one: same files, same tumbling windows.

All sum a value by key in windows of twenty seconds, a micro-batch a file, on the stream, with the
session and in the rounds of :mod:`benchmarks.slack`. ``disorder`` is room ``watermark``, k = 50,
four tasks, late tuples as a side output, no recognition of redeliveries; ``disorder, corrected``
corrects for them, and ``fixed`` always waits for the longest time: what it has ahead of
``disorder`` is what following the disorder costs. ``native`` is Spark's ``withWatermark`` and
``window``, append mode, Parquet sink, as Spark comes; ``native_same_settings`` as in
:mod:`benchmarks.slack`. The longest wait of ours is the fixed one of theirs.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks._windows import (
    FILES,
    SECOND_US,
    Stream,
    in_a_folder,
    late_pairs,
    median_rates,
    native,
)
from model.vocabulary import WatermarkConfig
from spark_impl.runtime.session import session
from spark_impl.watermark import WatermarkQuery

SIZE_US = 20 * SECOND_US
M_US = 3 * SECOND_US
GOAL = 1.0
ROUNDS = 3
"""Rounds; the first one warms up."""
CONFIG = WatermarkConfig(
    SIZE_US, SIZE_US, M_US, k=50, tasks=4, dedup=False, clocks="batches", gamma_us=5 * SECOND_US
)


def measure() -> dict[str, float]:
    """Return all figures; rates are in tuples a second."""
    with session(long_running=True) as spark:
        return in_a_folder(partial(side_by_side, spark))


def side_by_side(spark: SparkSession, place: Path) -> dict[str, float]:
    """Return the rates of all queries, and their ratios."""
    history = place / "history"
    corrected = replace(CONFIG, corrections=True)
    ours = partial(WatermarkQuery, spark, CONFIG, history, place / "store")
    ours_too = partial(WatermarkQuery, spark, corrected, history, place / "corrected")
    fixed = replace(CONFIG, reading="fixed")
    never_adapted = partial(WatermarkQuery, spark, fixed, history, place / "fixed")
    theirs = partial(native, spark, place, windows=CONFIG.windows, delay_us=M_US)
    rate = median_rates(
        {
            "disorder": lambda: ours().start(),
            "disorder, corrected": lambda: ours_too().start(),
            "fixed": lambda: never_adapted().start(),
            "native": partial(theirs, "native"),
            "native_same_settings": partial(theirs, "native_same_settings"),
        },
        history,
        Stream().files(seed=20),
        ROUNDS,
    )
    return {
        **rate,
        "ratio": rate["disorder"] / rate["native"],
        "goal of the ratio": GOAL,
        "ratio at same settings": rate["disorder"] / rate["native_same_settings"],
        "ratio, corrected": rate["disorder, corrected"] / rate["native"],
        "ratio, fixed / disorder": rate["fixed"] / rate["disorder"],
        "late pairs, share": late_pairs(ours().store, FILES),
    }

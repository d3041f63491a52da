"""The watermark of a micro-cluster against Spark's fixed one: same files, same tumbling windows.

All sum a value by key in windows of twenty seconds, a micro-batch a file, on the stream, with the
session and in the rounds of :mod:`benchmarks.slack`. ``disorder`` is room ``watermark``, k = 50,
four tasks, late tuples as a side output, no recognition of redeliveries; ``disorder, corrected``
corrects for them. ``native`` is Spark's ``withWatermark`` and ``window``, append mode, Parquet
sink, as Spark comes; ``native_same_settings`` as in :mod:`benchmarks.slack`. The longest wait of
ours is the fixed one of theirs.

The quality of the answers is measured without Spark, by the operator of one task over the first
files: the performance ratio E, the coverage, which E ignores, and the mean wait (docs/watermark.md,
section 6). Both the disorder of the last arrivals and the fixed watermark of the same length are
measured.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
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
from spark_impl.runtime.arrays import Records
from spark_impl.runtime.session import session
from spark_impl.watermark import WatermarkQuery
from spark_impl.watermark.query import WATERMARK
from spark_impl.windows.blocks import decode, encode
from spark_impl.windows.kernel import process
from spark_impl.windows.records import TaskState

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
        figures = in_a_folder(partial(side_by_side, spark))
    tables = [table for table, _ in zip(Stream().files(seed=20), range(FILES), strict=False)]
    for reading in ("disorder", "fixed"):
        found = quality(replace(CONFIG, tasks=1, clocks="arrivals", reading=reading), tables)
        figures |= {f"{reading}: {name}": figure for name, figure in found.items()}
    figures["E, disorder / fixed"] = figures["disorder: E"] / figures["fixed: E"]
    return figures


def side_by_side(spark: SparkSession, place: Path) -> dict[str, float]:
    """Return the rates of all queries, and their ratios."""
    history = place / "history"
    corrected = replace(CONFIG, corrections=True)
    ours = partial(WatermarkQuery, spark, CONFIG, history, place / "store")
    ours_too = partial(WatermarkQuery, spark, corrected, history, place / "corrected")
    theirs = partial(native, spark, place, windows=CONFIG.windows, delay_us=M_US)
    rate = median_rates(
        {
            "disorder": lambda: ours().start(),
            "disorder, corrected": lambda: ours_too().start(),
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
        "late pairs, share": late_pairs(ours().store, FILES),
    }


def quality(config: WatermarkConfig, tables: list[pa.Table]) -> dict[str, float]:
    """Return E, coverage and mean wait of one task over some files."""
    asked, state = WATERMARK.settings(config), TaskState(WATERMARK.memory)
    gone: list[Mapping[str, Records]] = []
    starts: dict[tuple[str, int], int] = {}
    answers: list[tuple[str, int, int]] = []
    for table in tables:
        keys, rows = decode([encode(asked, table)])
        index = rows.event_time_us // SIZE_US * len(keys) + rows.key
        for code, first in zip(*np.unique(index, return_index=True), strict=True):
            j, key = divmod(int(code), len(keys))
            starts.setdefault((keys[key], j), int(table.column("arrival_us")[int(first)].as_py()))
        state, output = process(WATERMARK, config, state, keys, rows, flush=False)
        gone.append(output.records)
        answers += [
            (output.keys[key], j, n)
            for key, j, n in output.records["result"][["key", "j", "n_rcv"]].tolist()
        ]
    clocks = np.concatenate([each["clock"] for each in gone])
    arrival_us = np.concatenate([table.column("arrival_us").to_numpy() for table in tables])
    return _figures(answers, starts, clocks, arrival_us, gone)


def _figures(
    answers: list[tuple[str, int, int]],
    starts: Mapping[tuple[str, int], int],
    clocks: Records,
    arrival_us: NDArray[np.int64],
    gone: list[Mapping[str, Records]],
) -> dict[str, float]:
    received = sum(n for _, _, n in answers)
    late = sum(int(each["late"]["windows"].sum()) for each in gone)
    ends = [(j + 1) * SIZE_US for _, j, _ in answers]
    closed_us = arrival_us[np.searchsorted(clocks["wm_us"], ends)]
    opened_us = np.array([starts[key, j] for key, j, _ in answers])
    took_s = float((closed_us - opened_us).mean()) / SECOND_US
    return {
        "E": received / len(answers) / took_s,
        "coverage": received / (received + late),
        "mean wait, s": float((clocks["t_max_us"] - clocks["wm_us"]).mean()) / SECOND_US,
    }

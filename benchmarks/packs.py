"""Generated cases a second on Spark: all in one job, compared with one job a case."""

import statistics
import time
from collections.abc import Mapping
from itertools import islice

from pyspark.sql import SparkSession

from model.vocabulary import SlackConfig, Workload
from spark_impl.runtime.session import session
from tests.harness import stream_packs

CONFIG = SlackConfig(9_000, 4_000, tasks=2, gamma_us=9_000)
PACKED = 1_000
ALONE = 5
SEED = 1
GOAL = 100


def measure() -> dict[str, float]:
    """Return cases a second both ways, and their ratio.

    Both run the same streams on the same warm session. Every batch, flush and correction counts,
    and so does reading the traces; drawing and comparing the cases does not.
    """
    cases = stream_packs.draw_pack(CONFIG, PACKED, SEED).cases
    some = dict(islice(cases.items(), ALONE))
    with session() as spark:
        _seconds(spark, some)  # warms everything up
        alone_s = [_seconds(spark, {name: case}) for name, case in some.items()]
        packed_s = _seconds(spark, cases)
    alone_hz, packed_hz = 1 / statistics.median(alone_s), len(cases) / packed_s
    return {
        "cases_in_the_pack": float(len(cases)),
        "packed_cases_per_s": packed_hz,
        "one_job_a_case_per_s": alone_hz,
        "ratio": packed_hz / alone_hz,
        "goal_of_the_ratio": float(GOAL),
    }


def _seconds(spark: SparkSession, cases: Mapping[str, Workload]) -> float:
    started_s = time.perf_counter()
    traces = stream_packs.run_in_spark(spark, cases)
    assert all(len(traces[name]) for name in cases)
    return time.perf_counter() - started_s

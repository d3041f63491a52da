"""A pack of workloads on Spark, each compared with docs/watermark.md tuple by tuple.

Late pairs are a side output here; ``straggler/rooms/watermark`` tests their corrections.
"""

from pathlib import Path

from pyspark.sql import SparkSession

from model.vocabulary import Fault
from model.vocabulary.watermark import WORDS, Clock
from model.vocabulary.windows import Final, Late
from spark_impl.watermark import run_workloads
from tests.spark_impl import brute_watermark
from tests.spark_impl.watermark_cases import random_config, random_workload

FAULTS = (Fault("restart", 0), Fault("kill", 1))


def test_pack_equals_the_specification(spark: SparkSession, tmp_path: Path) -> None:
    config = random_config(3, corrections=False, reading="disorder", k=5, max_wait_us=20)
    cases = {f"case {i}": random_workload(i, config).with_(faults=FAULTS) for i in range(40)}
    traces = run_workloads(spark, cases, tmp_path)
    for name, case in cases.items():
        expected = brute_watermark.run(case)
        for word in WORDS:
            assert traces[name].of(word) == expected.of(word), (name, word.__name__)
    for word in (Clock, Late, Final):
        assert sum(len(trace.of(word)) for trace in traces.values()) > 20
    assert sum(len(list(case.batches())) > 2 for case in cases.values()) > 5, "no fault struck"

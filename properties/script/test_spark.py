"""Promise 6 of docs/script.md, in Spark itself: sets of scripts on packs of generated streams.

Cases without Spark, many more of them, are those of ``test_agreement.py``.
"""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from model.script.claims import CASES, judge
from model.vocabulary import Fault, ScriptConfig, Trace, Workload
from properties import packs, profiles
from properties.script.agreement import differences
from properties.script.parser import parse
from properties.script.strategies import SENSORS, cases
from spark_impl.script import run_workloads

FAULTS = (Fault("restart", 0), Fault("kill", 1))
SCRIPTS = {
    "shared": """
        mean = avg("8MD1-AZ", 4, 2)
        both = max(union("8MD1-AZ", "8MD2-A", "8MD1-AZ"), 8, 4)
        never = mean / (both - both)
        peak = max(mean, 12, 4)
        """,
    "split": """
        mean = stddev("8MD1-AZ", 6, 4)
        same = avg("8MD1-AZ", 4, 2)
        total = sum(union("8MD2-A", "8MD3-A"), 3, 2)
        most = max(total, same - mean, "8MD3-A")
        """,
    "apart": """
        gaps = count("8MD3-A", 2, 8)
        near = "8MD3-A" - "ü 4"
        wide = sum("ü 4", 47, 8)
        """,
}
PER_HOUR = (3_600, 7_200, 3_600, 3_600_000, 60)
"""So many of one sensor that its long windows are cut at their edges."""
NEVER = {"streams known in part", "components for several workers"}
"""Streams are flushed, and all scripts hang together."""


def config() -> ScriptConfig:
    """Scripts in which everything is that matters, split over three workers."""
    flows = tuple(parse(text, name, SENSORS) for name, text in SCRIPTS.items())
    sensors = tuple(zip(SENSORS, PER_HOUR, strict=True))
    return ScriptConfig(flows, sensors, workers=3, lateness_us=4_000, cap_percent=100)


@pytest.fixture(scope="module")
def pack(seed: int) -> Mapping[str, Workload]:
    """Many streams for one set of scripts."""
    asked = config().to_json()
    streams = packs.collect(cases(), profiles.effort().cases // 2, seed)
    return {
        name: case.with_(config=asked, flush=True, name=name)
        for name, case in ((f"case-{number}", case) for number, case in enumerate(streams))
    }


def run(spark: SparkSession, given: Mapping[str, Workload], folder: Path) -> Mapping[str, Trace]:
    return run_workloads(spark, given, folder / "work")


def test_a_pack_on_spark_does_what_the_model_does(
    spark: SparkSession, pack: Mapping[str, Workload], tmp_path: Path
) -> None:
    """Interrupted twice on the way: restarts and replayed micro-batches change nothing."""
    assert max(len(list(case.batches())) for case in pack.values()) > 2
    crashed = {name: case.with_(faults=FAULTS) for name, case in pack.items()}
    traces = run(spark, crashed, tmp_path)
    guards = Counter[str]()
    for name, case in pack.items():
        assert not differences(case, traces[name]), name
        guards.update(judge(case, traces[name]).guards)
    for guard in set(CASES) - NEVER:
        assert guards[guard], f"there were no {guard}"

"""Whole queries with the watermark of a micro-cluster: answers by hand, side output, stores."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from model.vocabulary import SlackConfig, WatermarkConfig, task_of
from spark_impl.runtime.histories import COLUMNS, append
from spark_impl.runtime.storage import InputProblem
from spark_impl.slack import SlackQuery
from spark_impl.watermark import WatermarkQuery, corrections, late, progress, results
from tests.spark_impl.test_slack_query import history

TUMBLING = WatermarkConfig(10, 10, 8, k=3, gamma_us=100)
CALM = [(3, 1.0), (12, 2.0), (26, 4.0)]
LATE = [(12, 8.0), (17, 16.0), (41, 32.0)]


def answers(spark: SparkSession, store: Path) -> dict[int, tuple[Any, ...]]:
    rows = results(spark, store).collect()
    return {r.start_us: (r.value, r.n, r.revision, r.coverage, r.state) for r in rows}


def test_late_tuples_are_a_side_output(spark: SparkSession, tmp_path: Path) -> None:
    query = WatermarkQuery(spark, TUMBLING, history(tmp_path / "h", CALM, LATE), tmp_path / "s")
    query.run_available()
    # calm: no wait, wm = 26; the tuples 12 and 17 come too late for 10 .. 20
    found = {0: (1.0, 1, 0, 1.0, "exact"), 10: (2.0, 1, 0, 1 / 3, "provisional")}
    # 12 17 41 is in order again, wm = 41
    found[20] = (4.0, 1, 0, 1.0, "exact")
    assert answers(spark, tmp_path / "s") == found
    query.flush()
    assert answers(spark, tmp_path / "s") == {**found, 40: (32.0, 1, 0, 1.0, "exact")}
    rows = late(spark, tmp_path / "s").orderBy("source_id").collect()
    assert [(r.start_us, r.end_us, r.key, r.source_id, r.event_time_us, r.batch) for r in rows] == [
        (10, 20, "a", 3, 12, 1),
        (10, 20, "a", 4, 17, 1),
    ]
    assert not corrections(spark, tmp_path / "s").count()
    assert not query.store.read_all("pending").num_rows


def test_every_device_has_a_watermark_of_its_own(spark: SparkSession, tmp_path: Path) -> None:
    """Each of two devices sends in order; with one watermark half of the tuples are late."""
    rows = []
    for seq in range(40):
        device, ts = ("fast", 10 * seq) if seq % 2 else ("slow", 10 * seq - 200)
        row = {"seq": seq, "source_id": seq, "key": "a", "event_time_us": ts, "value": 1.0}
        rows.append({"device": device, **row, "arrival_us": 0})
    columns = {"device": pa.string(), **COLUMNS}
    append(tmp_path / "h", pa.Table.from_pylist(rows, schema=pa.schema(list(columns.items()))))
    config = WatermarkConfig(10, 10, 50, k=4)
    shares = {}
    for name, groups in (("one", ()), ("own", ("device",))):
        query = WatermarkQuery(spark, config, tmp_path / "h", tmp_path / name, groups)
        query.flush()
        shares[name] = late(spark, tmp_path / name).count() / len(rows)
    assert shares["own"] == 0
    assert shares["one"] > 0.4


def test_store_of_another_room(spark: SparkSession, tmp_path: Path) -> None:
    source = history(tmp_path / "h", CALM)
    WatermarkQuery(spark, TUMBLING, source, tmp_path / "s")
    with pytest.raises(InputProblem, match=r"a query of room 'watermark', not 'slack'$"):
        SlackQuery(spark, SlackConfig(10, 10), source, tmp_path / "s")
    with pytest.raises(InputProblem, match=r"belongs to another query: its k is 3, not 4$"):
        WatermarkQuery(spark, WatermarkConfig(10, 10, 8, k=4, gamma_us=100), source, tmp_path / "s")


@pytest.mark.parametrize("tasks", [2, pytest.param(17, marks=pytest.mark.long)])
def test_the_operator_that_holds_the_watermark_back_is_named_until_it_is_idle(
    tasks: int, spark: SparkSession, tmp_path: Path
) -> None:
    """More than 16 tasks get their arrivals in blocks, fewer read the files themselves."""
    config = WatermarkConfig(10, 10, 0, k=3, tasks=tasks, upstreams=2, idle_after_us=50)
    alive, silent = (task_of(key, 2) for key in "ab")
    assert alive != silent
    source = history(tmp_path / "h", [(4, 1.0), (12, 2.0)], key="a", arrival_us=1000)
    query = WatermarkQuery(spark, config, source, tmp_path / "s")
    query.run_available()
    found = progress(tmp_path / "s")
    assert (found.watermark_us, found.held_by) == (None, f"operator {silent}")
    history(source, [(25, 4.0)], key="a", arrival_us=1051)
    query.run_available()
    found = progress(tmp_path / "s")
    assert (found.watermark_us, found.held_by) == (25, f"operator {alive}")
    assert answers(spark, tmp_path / "s").keys() == {0, 10}
    history(source, [(26, 8.0)], key="b", arrival_us=1060)
    history(source, [(40, 8.0)], key="a", arrival_us=1061)
    query.run_available()
    found = progress(tmp_path / "s")
    assert (found.watermark_us, found.held_by) == (26, f"operator {silent}")

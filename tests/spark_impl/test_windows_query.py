"""Whole queries of windows on Spark: answers by hand, settings, refusals, side output."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from model.vocabulary import SlackConfig, WatermarkConfig, task_of
from spark_impl import slack, watermark
from spark_impl.runtime.accounts import ledger
from spark_impl.runtime.failures import QueryProblem
from spark_impl.runtime.histories import COLUMNS, append
from spark_impl.runtime.storage import InputProblem, Location
from spark_impl.slack import SlackQuery, corrections, results
from spark_impl.watermark import WatermarkQuery, late, progress
from spark_impl.windows import history as windows_history
from spark_impl.windows.progress import FirstAnswers, warning_of

FIXED = SlackConfig(size_us=10, slide_us=5, control="fixed", gamma_us=100)
FIRST = [(3, 1.0), (12, 2.0), (26, 4.0)]
LATE = [(12, 8.0), (17, 16.0)]


def history(folder: Path, *batches: Iterable[tuple[Any, Any]], **changes: Any) -> Path:
    """Write one file for each list of (event time, value), with increasing arrival numbers."""
    seq = sum(pq.read_metadata(path).num_rows for path in folder.glob("*.parquet"))
    for batch in batches:
        rows = []
        for ts, value in batch:
            row = {"seq": seq, "source_id": seq, "key": "a", "event_time_us": ts, "value": value}
            rows.append({**row, "arrival_us": 0, **changes})
            seq += 1
        append(folder, pa.Table.from_pylist(rows, schema=pa.schema(list(COLUMNS.items()))))
    return folder


def answers(
    spark: SparkSession, store: Path | Location, read: Any = results
) -> dict[int, tuple[Any, ...]]:
    rows = read(spark, store).collect()
    return {r.start_us: (r.value, r.n, r.revision, r.coverage, r.state) for r in rows}


def test_answers_by_hand(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers correct; tests/spark_impl/test_contracts.py corrects on the driver."""
    monkeypatch.setattr(windows_history, "ROWS_ON_DRIVER", 0)
    query = SlackQuery(spark, FIXED, history(tmp_path / "h", FIRST, LATE), tmp_path / "s")
    query.run_available()
    assert answers(spark, tmp_path / "s") == {
        -5: (1.0, 1, 0, 1.0, "exact"),
        0: (1.0, 1, 0, 1.0, "exact"),
        5: (2.0, 1, 0, 0.5, "provisional"),  # one of two
        10: (2.0, 1, 0, 1 / 3, "provisional"),
    }
    query.flush()
    exact = {
        -5: (1.0, 1, 0, 1.0, "exact"),
        0: (1.0, 1, 0, 1.0, "exact"),
        5: (10.0, 2, 1, 0.5, "exact"),
        10: (26.0, 3, 1, 1 / 3, "exact"),
        15: (16.0, 1, 1, 0.0, "exact"),
        20: (4.0, 1, 0, 1.0, "exact"),
        25: (4.0, 1, 0, 1.0, "exact"),
    }
    assert answers(spark, tmp_path / "s") == exact
    (correction,) = query.store.at().read_kind("correction").to_pylist()
    assert correction["reason"] == "flush"
    assert (correction["pairs"], correction["windows"]) == (4, 3)
    assert (correction["rows_read"], correction["rows_needed"]) == (5, 3)

    # more data may follow a flush: everything up to 45 is closed
    history(tmp_path / "h", [(40, 32.0)])
    query.flush()
    late = dict.fromkeys((35,), (32.0, 1, 1, 0.0, "exact"))
    after = answers(spark, tmp_path / "s")
    assert after == {**exact, **late, 40: (32.0, 1, 0, 1.0, "exact")}
    (spent, _) = corrections(spark, tmp_path / "s").orderBy("batch").collect()
    assert (spent.reason, spent.pairs, spent.rows_needed, spent.rows_read) == ("flush", 4, 3, 5)

    # a tuple of two windows that have been corrected before
    history(tmp_path / "h", [(12, 64.0)])
    query.flush()
    again = {5: (74.0, 3, 2, 1 / 3, "exact"), 10: (90.0, 4, 2, 1 / 4, "exact")}
    assert answers(spark, tmp_path / "s") == {**after, **again}


def session_settings(spark: SparkSession) -> dict[str, str]:
    return {row.key: row.value for row in spark.sql("SET").collect()}


def test_a_query_leaves_the_session_as_it_is_and_takes_local_paths_as_they_are(
    spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Spark runs as many tasks at a time by default as it has partitions here: two."""
    assert spark.sparkContext.defaultParallelism == 2
    hadoop: Any = spark.sparkContext._jsc.hadoopConfiguration()
    request.addfinalizer(partial(hadoop.set, "fs.defaultFS", hadoop.get("fs.defaultFS")))
    hadoop.set("fs.defaultFS", "hdfs://127.0.0.1:1")
    before, active, seen = session_settings(spark), SparkSession.getActiveSession(), list[Any]()

    def sink(_rows: DataFrame, _batch: int) -> None:
        seen.append(session_settings(spark))

    history(tmp_path / "ab", [(3, 64.0)])
    place = tmp_path / "a? [b], {c,d}* ü"
    source = history(place / "[a]{b}", FIRST, [], LATE).parent / "up" / ".." / "[a]{b}"
    store, config = place / "up" / ".." / "s*" / "{store}", replace(FIXED, tasks=20)
    SlackQuery(spark, config, source, store, sink=sink).run_available()
    totals = [value for value, *_ in answers(spark, place / "s*" / "{store}").values()]
    assert totals == [1.0, 1.0, 2.0, 2.0]
    assert seen == [before, before]  # a file without rows answers nothing
    assert ledger(place / "s*" / "{store}").balances
    assert session_settings(spark) == before
    assert SparkSession.getActiveSession() is active
    states = (place / "s*" / "{store}" / "_checkpoint" / "state" / "0").glob("[0-9]*")
    assert len(list(states)) == 2


def test_bad_rows_are_rejected_and_windows_are_timestamps_as_far_as_those_go(
    spark: SparkSession, tmp_path: Path
) -> None:
    beyond = [(sign * (1 << 61), value) for sign in (1, -1) for value in (1.0, None)]
    far = 9_202_118_400_000_000  # in August 2261
    folder = history(tmp_path / "h", [(-far, 4.0), (3, 1.0), (None, 2.0), (4, None), (5, inf)])
    history(folder, beyond)
    history(folder, [(6, 1.0)], key=None)
    history(folder, [(far - 1, 8.0), (far + 5, 2.0), ((1 << 61) - 1, 16.0)])
    query = SlackQuery(spark, FIXED, folder, tmp_path / "s")
    query.flush()
    listed = slack.rejected(spark, tmp_path / "s").orderBy("seq").collect()
    nothing = (None, None, None)
    assert [(row.reason, row.key, row.event_time_us, row.value) for row in listed] == [
        ("event_time_us is NULL", *nothing),
        ("value is NULL", "a", 4, None),
        ("value is not a finite number", "a", 5, inf),
        *[
            ("event_time_us lies beyond all calendars", *nothing),
            ("value is NULL", *nothing),
        ]
        * 2,
        ("key is NULL", *nothing),
    ]
    found = results(spark, tmp_path / "s")
    assert found.schema["window"].dataType.simpleString() == "struct<start:timestamp,end:timestamp>"
    rows = {row.start_us: row for row in found.collect()}
    values = {start_us: row.value for start_us, row in rows.items()}
    own = {-far - 5: 4.0, -far: 4.0, far - 10: 8.0, far - 5: 8.0, far: 2.0, far + 5: 2.0}
    last = ((1 << 61) - 1) // 5 * 5
    own |= {last - 5: 16.0, last: 16.0}
    assert values == {-5: 1.0, 0: 1.0, 5: None, **own}
    epoch = datetime.fromtimestamp(0)  # noqa: DTZ006 (Spark gives local times without a zone)
    assert tuple(rows[0].window) == (epoch, epoch + timedelta(microseconds=10))
    assert {start_us for start_us in own if rows[start_us].window} == {-far, far - 10}


@pytest.mark.fails_tasks
def test_wrong_order_of_files_is_noticed(spark: SparkSession, tmp_path: Path) -> None:
    folder = history(tmp_path / "h", FIRST)
    rows = pq.read_table(next(folder.glob("*.parquet")))
    append(folder, rows)
    with pytest.raises(QueryProblem, match=r"^arrival number 0 comes after 2: .* of their names$"):
        SlackQuery(spark, FIXED, folder, tmp_path / "s").run_available()


def test_files_that_are_not_those_of_a_history(tmp_path: Path) -> None:
    (tmp_path / "00000000.parquet").write_text("no")
    with pytest.raises(InputProblem, match=r"00000000\.parquet is not a Parquet file"):
        SlackQuery(None, FIXED, tmp_path, tmp_path / "s")  # type: ignore[arg-type]  # no session is needed
    (tmp_path / "x.parquet").write_text("no")
    with pytest.raises(InputProblem, match=r"x\.parquet has no number; the files of a history are"):
        SlackQuery(None, FIXED, tmp_path, tmp_path / "s")  # type: ignore[arg-type]  # no session is needed
    assert not (tmp_path / "s").exists()


# ------------------------------------------------------------------------------ room watermark


TUMBLING = WatermarkConfig(10, 10, 8, k=3, gamma_us=100)
LATER = [(12, 8.0), (17, 16.0), (41, 32.0)]


def test_late_tuples_are_a_side_output(spark: SparkSession, tmp_path: Path) -> None:
    source = history(tmp_path / "h", FIRST, LATER)
    history(source, [(12, 8.0)], source_id=3)  # again, when it is forgotten
    query = WatermarkQuery(spark, TUMBLING, source, tmp_path / "s")
    query.run_available()
    # calm: no wait, wm = 26; the tuples 12 and 17 come too late for 10 .. 20
    found = {0: (1.0, 1, 0, 1.0, "exact"), 10: (2.0, 1, 0, 1 / 3, "provisional")}
    # 12 17 41 is in order again, wm = 41
    found[20] = (4.0, 1, 0, 1.0, "exact")
    assert answers(spark, tmp_path / "s", watermark.results) == found
    query.flush()
    assert answers(spark, tmp_path / "s", watermark.results) == {
        **found,
        40: (32.0, 1, 0, 1.0, "exact"),
    }
    rows = late(spark, tmp_path / "s").orderBy("source_id").collect()
    assert [(r.start_us, r.end_us, r.key, r.source_id, r.event_time_us, r.batch) for r in rows] == [
        (10, 20, "a", 3, 12, 1),
        (10, 20, "a", 4, 17, 1),
    ]
    assert not watermark.corrections(spark, tmp_path / "s").count()
    assert not query.store.at().read_kind("pending").num_rows


def test_windows_that_lack_tuples_by_now_are_told_and_warned_of(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The controller sees no miss, because L is 0."""
    settings = {"feedback_us": 0, "max_age_us": 0, "delta": 0.4, "aggregate": "count"}
    config = SlackConfig(10, 10, **settings)  # type: ignore[arg-type]  # by name
    source = history(tmp_path / "h", [(1, 1.0), (11, 1.0), (21, 1.0), (35, 1.0)])
    query = SlackQuery(spark, config, source, tmp_path / "s")
    query.run_available()
    found = slack.progress(tmp_path / "s")
    assert (tuple(found.first_answers), found.warning) == ((3, 0, 0), None)
    history(source, [(2, 1.0), (12, 1.0)])
    query.run_available()
    found = slack.progress(tmp_path / "s")
    assert (tuple(found.first_answers), found.first_answers.below_share) == ((3, 0, 2), 2 / 3)
    assert found.warning is not None
    assert found.warning.startswith("2 of the last 3 judged windows had fewer tuples")
    assert "The controller counts 0: tuples come more than feedback_us = 0 after" in found.warning
    fixed = replace(config, control="fixed")
    assert warning_of(fixed, found.first_answers) == found.warning.split(" The controller")[0]
    rows = results(spark, tmp_path / "s").collect()
    known = {row.start_us: (row.coverage, row.required) for row in rows}
    assert known == {0: (0.5, 1.0), 10: (0.5, 1.0), 20: (1.0, 1.0)}


@pytest.mark.parametrize("judged", [1, 3, 99, 100, 1_000])
def test_as_many_windows_as_delta_says_may_lack_tuples(judged: int) -> None:
    for percent in range(1, 100):
        config, allowed = SlackConfig(10, 10, delta=percent / 100), percent * judged // 100
        within, beyond = (
            warning_of(config, FirstAnswers(judged, below, below))
            for below in (allowed, allowed + 1)
        )
        assert within is None
        assert (beyond is None) == (allowed == 0)
        assert beyond is None or beyond.endswith(f" allows {allowed}.")


def test_first_answers_of_the_longest_windows_are_counted(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A hundred of them are longer than 64 bits."""
    source, size_us = history(tmp_path / "h", [(1, 1.0), (2, 1.0)]), (1 << 61) - 1
    SlackQuery(spark, SlackConfig(size_us, size_us), source, tmp_path / "s").flush()
    assert tuple(slack.progress(tmp_path / "s").first_answers) == (1, 0, 0)


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
    assert (found.watermark_us, found.held_by, found.slack_us) == (None, f"operator {silent}", 0)
    history(source, [(25, 4.0)], key="a", arrival_us=1051)
    query.run_available()
    found = progress(tmp_path / "s")
    assert (found.watermark_us, found.held_by) == (25, f"operator {alive}")
    assert answers(spark, tmp_path / "s", watermark.results).keys() == {0, 10}
    history(source, [(26, 8.0)], key="b", arrival_us=1060)
    history(source, [(40, 8.0)], key="a", arrival_us=1061)
    query.run_available()
    found = progress(tmp_path / "s")
    assert (found.watermark_us, found.held_by) == (26, f"operator {silent}")

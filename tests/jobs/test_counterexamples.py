"""Stored rows to which a job is wrong: read again as they were, and run again."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession, functions

from model.checking.claims import Outcome, Verdict
from straggler.errors import UsageError
from straggler.jobs.api import JobBroken, begun, check_job, inputs_of, replay_job
from straggler.jobs.counterexamples import (
    Failing,
    plain_rows,
    read_asked,
    read_rows,
    replay,
    store,
)
from straggler.jobs.plans import STATE
from straggler.jobs.report import JobReport
from straggler.jobs.rows import Frames, Row, answers_of, recorded_rows
from straggler.jobs.streams import BASE_US, LOST_COMMIT, Fault, Stream
from straggler.judging.counterexamples import read_record
from straggler.strategies.examples import collect
from tests.jobs.written_jobs import impatient_minutes, minutes

ASKED: dict[str, Any] = {
    "schema": "device string, at timestamp, watts double",
    "event_time": "at",
    "lateness": "10 seconds",
}
TYPES = (
    "at timestamp, b boolean, i int, l bigint, f float, d double, s string, x binary, day date, "
    "n decimal(4,2), t timestamp, z timestamp_ntz, a array<double>, m map<string,int>, "
    "r struct<x: int, y: string>"
)


def frames_of(spark: SparkSession, schema: str | dict[str, str]) -> Frames:
    return Frames(spark, inputs_of(schema, "at"))


def test_rows_of_every_type_are_read_again_as_they_were(spark: SparkSession) -> None:
    frames = frames_of(spark, {"one": TYPES, "two": "at timestamp_ntz, s string"})
    rows = [
        Row(source, BASE_US + n, values)
        for source, of in enumerate(frames.inputs)
        for n, values in enumerate(collect(of.values(), 8, 1))
    ]
    failing = Failing("ends exact", Stream((tuple(rows),), (Fault(LOST_COMMIT, 0, 1),)), (rows[0],))
    plain = plain_rows(frames, failing)
    assert plain is not None
    again = read_rows(frames, json.loads(json.dumps(plain)))
    assert texts(frames, again.stream.rows) == texts(frames, rows)
    assert [row.time_us for row in again.stream.rows] == [row.time_us for row in rows]
    assert again.stream.faults == failing.stream.faults


def test_rows_of_several_inputs_are_one_frame_in_their_order(spark: SparkSession) -> None:
    frames = frames_of(spark, {"one": TYPES, "two": "at timestamp_ntz, s string"})
    drawn = [collect(each.values(), 6, 1) for each in frames.inputs]
    rows = [Row(n % 2, BASE_US + n, drawn[n % 2][n // 2]) for n in range(12)]
    packed = frames.all(rows).collect()
    assert [each[0] for each in packed] == [row.source for row in rows]
    alone = [answers_of([each[1 + each[0]]]) for each in packed]
    assert alone == texts(frames, rows)


def test_recorded_rows_that_are_left_out_are_counted(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("straggler.jobs.rows.RECORDED_MAX", 2)
    inputs = inputs_of("at timestamp, n int", "at")
    start = datetime(2026, 1, 1, tzinfo=UTC)
    rows = [{"at": start + timedelta(seconds=n), "n": n} for n in (4, 3, 2, 1)]
    (kept,), told = recorded_rows(spark, inputs, [*rows, {"at": None, "n": 0}])
    assert [row.values for row in kept] == [(1,), (2,)]
    assert told == [
        "recorded rows of input are left out: 1 without an event time (row 5, counted from 1), "
        "2 beyond the earliest 2"
    ]
    untimed = [{"at": None, "n": 0}] * 6
    _, (sentence,) = recorded_rows(spark, inputs, [rows[0], *untimed])
    assert "6 without an event time (rows 2, 3, 4, 5, 6, ..., counted from 1)" in sentence
    assert recorded_rows(spark, inputs, rows[:2])[1] == []
    with pytest.raises(UsageError, match="rows names 'other', which is no input of the job"):
        recorded_rows(spark, inputs, {"input": rows, "other": rows})


def test_recorded_rows_of_pandas_are_read_by_the_names_of_their_columns(
    spark: SparkSession,
) -> None:
    inputs = inputs_of("at timestamp, a int, b int", "at")
    at = pd.to_datetime(["2026-01-01"], utc=True)
    frame = pd.DataFrame({"b": [2], "more": ["x"], "a": [1], "at": at})
    for own in (frame, frame.rename(columns=str.upper)):
        ((row,),), _ = recorded_rows(spark, inputs, own)
        assert row.values == (1, 2)
    with pytest.raises(UsageError, match=r"do not fit the schema.*not in index"):
        recorded_rows(spark, inputs, frame[["b", "at"]])


def texts(frames: Frames, rows: Sequence[Row]) -> list[Any]:
    return [answers_of(frames.frame(row.source, [row]).collect()) for row in rows]


def test_long_decimals_are_read_again_as_they_were(spark: SparkSession) -> None:
    schema = "at timestamp, n decimal(38,0), p decimal(38,20), a array<struct<n: decimal(30,9)>>"
    frames = frames_of(spark, schema)
    long = Decimal("123456789012345678901234567890")
    part = Decimal("123456789012345678.12345678901234567891")
    row = Row(0, BASE_US, (long, part, [{"n": Decimal("123456789012345678901.123456789")}]))
    failing = Failing("ends exact", Stream(((row,),)), (row,))
    plain = plain_rows(frames, failing)
    assert plain is not None
    assert plain["flush"][0][0]["n"] == str(long)
    assert read_rows(frames, json.loads(json.dumps(plain))).flush[0].values == row.values


def test_rows_that_would_be_read_as_others_are_not_stored(spark: SparkSession) -> None:
    frames = frames_of(spark, "at timestamp, m map<int,int>")
    row = Row(0, BASE_US, ({1: 2},))
    failing = Failing("ends exact", Stream(((row,),)), (row,))
    assert plain_rows(frames, failing) is None


def test_a_stored_stream_shows_the_mistake_again_and_not_in_a_right_job(
    spark: SparkSession, tmp_path: Path
) -> None:
    def at(second: int) -> Row:
        return Row(0, BASE_US + second * 1_000_000, ("a", 1.0))

    frames = frames_of(spark, ASKED["schema"])
    stream = Stream(((at(5),), (at(-4),)))  # a second is too short for the second row
    rows = plain_rows(frames, Failing("late rows are accounted for", stream, (at(0),)))
    assert rows is not None
    path = store(tmp_path, "jobs:impatient", ASKED, "late rows are accounted for: x", rows)
    record = read_record(path)
    assert read_asked(path.name, record) == ("jobs:impatient", ASKED)
    outcome, lines = replay_job(impatient_minutes, spark, record, **ASKED)
    assert outcome is Outcome.BROKEN
    assert "missing: a, {start=2025-12-31 23:59:00" in "\n".join(lines)
    assert replay_job(minutes, spark, record, **ASKED) == (Outcome.HOLDS, [])


CLICKS: dict[str, Any] = {
    "schema": {"clicks": "user string, at timestamp", "sales": "buyer string, sold timestamp"},
    "event_time": {"clicks": "at", "sales": "sold"},
    "lateness": "1 minute",
}


def distinct(readings: DataFrame, *more: str) -> DataFrame:
    """Drop equal readings, all of which are remembered unless ``more`` is their time."""
    return readings.withWatermark("at", "10 seconds").dropDuplicates(["device", *more])


def bought(clicks: DataFrame, sales: DataFrame, *delay: str) -> DataFrame:
    """Join both, whose rows stay unless sales have a watermark, too."""
    late = sales.withWatermark("sold", *delay) if delay else sales
    near = "user = buyer and sold between at and at + interval 5 minutes"
    return clicks.withWatermark("at", "1 minute").join(late, functions.expr(near))


@pytest.mark.parametrize(
    ("job", "mended", "asked"),
    [
        (distinct, lambda readings: distinct(readings, "at"), ASKED),
        (bought, lambda clicks, sales: bought(clicks, sales, "1 minute"), CLICKS),
    ],
)
def test_state_that_stays_shows_in_few_rows_which_a_mended_job_passes(
    spark: SparkSession, job: Any, mended: Any, asked: dict[str, Any]
) -> None:
    with begun(job, spark, **asked) as check:
        check.choose_reference()
        check.try_growth()
        assert check.claim == STATE
        assert check.failed is not None
        assert len(check.failed.stream.rows) <= 5
        failing = Failing(check.claim, check.failed.stream, check.reference.flush)
        assert replay(check, failing)[0] is Outcome.BROKEN
    with begun(mended, spark, **asked) as other:
        assert replay(other, failing) == (Outcome.HOLDS, [])


def test_a_check_in_a_test_stores_what_breaks_the_job(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = {"device": "a", "at": "2026-01-01T00:00:00.000000Z", "watts": 1.0}
    rows = {"claim": "ends exact", "micro-batches": [[row]], "faults": [], "flush": [[row]]}
    verdicts = (Verdict("ends exact", Outcome.BROKEN, "it is not"),)
    report = JobReport("minutes", verdicts, 0, 1, rows=rows)
    monkeypatch.setattr("straggler.jobs.api.judge_job", lambda *_, **__: report)
    schema = inputs_of(ASKED["schema"], "at")[0].schema
    asked = {**ASKED, "schema": schema, "keys": ("device",), "columns": {"watts": st.just(1.0)}}
    with pytest.raises(JobBroken) as found:
        check_job(minutes, spark, folder=tmp_path, **asked)
    (path,) = tmp_path.iterdir()
    again = f"run it again with: straggler replay {path} --trust"
    assert str(found.value).endswith(f"Stored in {path}; {again}")
    name, kept = read_asked(path.name, read_record(path))
    assert name == "tests.jobs.written_jobs:minutes"
    assert inputs_of(kept.pop("schema"), "at")[0].schema == schema
    assert kept == {"event_time": "at", "keys": ["device"], "lateness": "10 seconds"}
    with pytest.raises(JobBroken, match=r"replay .*json --system MODULE:JOB$"):
        check_job(lambda frame: frame, spark, folder=tmp_path, **asked)
    with pytest.raises(JobBroken, match=r"it is not$"):
        check_job(minutes, spark, folder=tmp_path, sink=lambda: None, **asked)


def test_rows_that_do_not_fit_are_refused(spark: SparkSession) -> None:
    def job(rows: DataFrame) -> DataFrame:
        return rows

    record = {"claim": "", "micro-batches": [[{"at": None}]], "faults": [], "flush": [[]]}
    row = {"device": "a", "at": "2026-01-01T00:00:00.000000Z", "watts": 1.0}
    right = {**record, "micro-batches": [[row]], "flush": [[row]]}
    for wrong in (
        record,
        {},
        {**right, "faults": [["flood", 0, 0]]},
        {**right, "micro-batches": []},
        {**right, "flush": [[]]},
    ):
        with pytest.raises(UsageError, match="rows of the counterexample cannot be read"):
            replay_job(job, spark, wrong, **ASKED)


@pytest.mark.parametrize(
    "record",
    [{}, {"job": 3, "asked": {}}, {"job": "a:b", "asked": {"sink": "x"}},
     {"job": "a:b", "asked": {"mode": 3}}, {"job": "a:b", "asked": {"schema": "at timestamp"}},
     {"job": "a:b", "asked": ASKED | {"keys": "at"}},
     {"job": "a:b", "asked": ASKED | {"keeps_state": "no"}},
     {"job": "a:b", "asked": ASKED | {"lateness": ["1 second"]}}],
)  # fmt: skip
def test_a_file_that_asks_something_else_is_refused(record: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="is not a counterexample"):
        read_asked("c.json", record)

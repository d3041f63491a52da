"""Jobs of users, judged on Spark."""

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own habit)

import straggler
from model.checking.claims import Outcome
from straggler.errors import UsageError
from straggler.jobs.api import HANGS, STOPPED, _one_sentence, inputs_of
from straggler.jobs.rows import recorded_rows
from straggler.jobs.running import JobProblem, KilledError, quick
from straggler.jobs.threads import HangsError, map_in_order
from tests.house.repository import ROOT
from tests.jobs.written_jobs import Sink, by_batch, high_watts, impatient_minutes, minutes

ARGUMENTS: dict[str, Any] = {
    "schema": "device string, at timestamp, watts double",
    "event_time": "at",
    "streams": 8,
}
DDL = str(ARGUMENTS["schema"])


def test_a_windowed_sum_holds_every_claim(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    report = straggler.check_job(minutes, spark, **ARGUMENTS)
    assert {str(each.outcome) for each in report.verdicts} == {"holds"}
    assert report.guards["late"]
    assert report.guards["restarts with state"]
    assert "KilledError" not in caplog.text


@pytest.mark.parametrize("keep", [lambda frame: frame.dropna(), lambda frame: frame.none])
def test_a_sink_that_loses_rows_is_no_selection(
    spark: SparkSession, keep: Callable[[DataFrame], DataFrame]
) -> None:
    """Rows with nulls are dropped, or all rows fail."""

    def losing() -> Sink:
        write, read = by_batch()
        return lambda frame, batch: write(keep(frame), batch), read

    report = straggler.judge_job(high_watts, spark, sink=losing, **ARGUMENTS)
    assert report.outcome is Outcome.BROKEN


@pytest.mark.parametrize(
    ("outcome", "kind"),
    [
        (Outcome.BROKEN, straggler.JobBroken),
        (Outcome.UNDETERMINED, straggler.JobUndetermined),
    ],
)
def test_a_verdict_that_is_not_right_is_raised_with_its_report(
    monkeypatch: pytest.MonkeyPatch, outcome: Outcome, kind: type[AssertionError]
) -> None:
    report = SimpleNamespace(outcome=outcome, rows=None)
    monkeypatch.setattr("straggler.jobs.api.judge_job", lambda *_, **__: report)
    with pytest.raises(kind) as found:
        straggler.check_job(minutes, **ARGUMENTS)
    assert vars(found.value)["report"] is report


@pytest.mark.long  # test_command.py has a job that is broken
def test_a_watermark_that_is_too_short_loses_a_row_of_a_small_stream(
    spark: SparkSession, tmp_path: Path
) -> None:
    asked = {**ARGUMENTS, "lateness": "10 seconds", "folder": tmp_path}
    with pytest.raises(straggler.JobBroken, match=r"late rows are accounted for +broken") as found:
        straggler.check_job(impatient_minutes, spark, **asked)
    table = "\n".join(found.value.report.table)
    assert "missing: " in table
    assert table.count("device=") <= 5


@pytest.mark.parametrize(
    ("job", "said"),
    [
        (lambda frame: frame.sparkSession.range(3), "a DataFrame that is not streaming"),
        (lambda frame: None, "the job returned NoneType, and not a DataFrame"),
        (lambda frame: frame.writeStream.format("noop").start(), "the job returned StreamingQuery"),
        (lambda frame: frame.select("volts"), "the job raised AnalysisException: .*`volts`"),
        (lambda frame: sys.exit("over"), "the job raised SystemExit: over"),
    ],
)
def test_a_job_that_makes_no_stream_is_refused(
    spark: SparkSession, job: Callable[[DataFrame], Any], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        straggler.check_job(job, spark, **ARGUMENTS)


def test_a_job_that_cannot_run_is_refused_in_one_sentence(spark: SparkSession) -> None:
    def raising(_: DataFrame) -> DataFrame:
        raise ValueError("no such thing")

    with pytest.raises(UsageError, match="the job raised ValueError: no such thing"):
        straggler.check_job(raising, spark, **ARGUMENTS)
    with pytest.raises(UsageError, match="event_time is 'when', which is no column of input"):
        straggler.check_job(minutes, spark, schema=DDL, event_time="when")
    lateness: Any
    for lateness, wrong in (
        ("-10 seconds", "lateness is -10s; it must be a duration >= 0"),
        (timedelta(-1), "lateness is -1d; it must be a duration >= 0"),
        ("in 10 s", "lateness: 'in 10 s' is not a duration"),
        (5, "lateness is 5; it must be a text such as '6 hours', or a timedelta$"),
    ):
        with pytest.raises(UsageError, match=wrong):
            straggler.check_job(minutes, spark, lateness=lateness, **ARGUMENTS)
    asked: dict[str, Any]
    for asked, wrong in (
        ({}, "check_job.*missing.*'schema'"),
        ({**ARGUMENTS, "late": 5}, "check_job.*'late'"),
    ):
        with pytest.raises(TypeError, match=wrong):
            straggler.check_job(minutes, spark, **asked)
    with pytest.raises(UsageError, match="mode is 'appended'"):
        straggler.check_job(minutes, spark, schema=DDL, event_time="at", mode="appended")


def test_an_event_time_without_a_zone_is_told_how_to_become_a_timestamp(
    spark: SparkSession,
) -> None:
    asked = {**ARGUMENTS, "schema": DDL.replace("timestamp", "timestamp_ntz")}
    with pytest.raises(UsageError, match=r"NTZ.*need a timestamp: say so in the schema, or .*cast"):
        straggler.judge_job(minutes, spark, **asked)
    recorded = spark.sql("SELECT TIMESTAMP_NTZ'2026-01-01 00:00:00' AS at, 1 AS n")
    ((row,),), _ = recorded_rows(spark, inputs_of("at timestamp, n int", "at"), recorded)
    assert row.values == (1,)


def test_a_job_that_fails_on_every_row_is_undetermined_and_says_so(spark: SparkSession) -> None:
    def failing(readings: DataFrame) -> DataFrame:
        return readings.select("at", F.raise_error(F.lit("no such meter")))

    report = straggler.judge_job(failing, spark, schema="at timestamp", event_time="at")
    assert [str(each.outcome) for each in report.verdicts] == ["undetermined"]
    assert "no such meter" in report.verdicts[0].sentence


def test_a_job_that_hangs_is_told_and_the_session_lives_on(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_over = threading.Event()

    def hanging(readings: DataFrame) -> DataFrame:
        is_over.wait()
        return readings

    monkeypatch.setattr("straggler.jobs.api.LIMIT_S", 0.5)
    with pytest.raises(UsageError, match="the job hangs before Spark runs it"):
        straggler.judge_job(hanging, spark, **ARGUMENTS)
    is_over.set()
    assert spark.range(3).count() == 3


@pytest.mark.parametrize(
    ("error", "context", "said"), [(HangsError, "running", HANGS), (OSError, None, STOPPED)]
)
def test_a_session_that_does_not_answer_is_one_sentence(
    error: type[Exception], context: object, said: str
) -> None:
    session: Any = SimpleNamespace(_jsc=context)
    with pytest.raises(JobProblem, match=said), _one_sentence(session):
        raise error


def test_calls_that_do_not_end_are_not_waited_for() -> None:
    is_over = threading.Event()
    calls = map_in_order(lambda n: n and is_over.wait(), [0, 1], threads=1, limit_s=0.5)
    assert next(calls) == 0
    with pytest.raises(HangsError):
        next(calls)
    is_over.set()


@pytest.mark.long  # a session of its own
def test_a_job_that_stops_the_session_is_told(tmp_path: Path) -> None:
    job = "def stopping(readings):\n    readings.sparkSession.stop()\n    return readings\n"
    (tmp_path / "stops.py").write_text(job, encoding="utf-8")
    line = ["-m", "straggler", "check", "stops:stopping", "--event-time", "at", "--schema"]
    done = subprocess.run(
        [sys.executable, *line, DDL],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3  # nothing is said about its answers
    assert done.stdout.endswith("undetermined  the job stopped the Spark session\n")


def test_only_planned_deaths_are_kept_out_of_the_log(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    bridge = logging.getLogger("py4j.clientserver")
    with quick(spark):
        bridge.error("planned", exc_info=KilledError())
        bridge.error("of the job", exc_info=ValueError())
        bridge.error("without an error")
    bridge.error("later", exc_info=KilledError())
    assert caplog.messages == ["of the job", "without an error", "later"]


def test_settings_of_the_session_are_restored(spark: SparkSession) -> None:
    name = "spark.sql.shuffle.partitions"
    before = spark.conf.get(name)
    with pytest.raises(UsageError):
        straggler.judge_job(lambda frame: frame.sparkSession.range(3), spark, **ARGUMENTS)
    assert spark.conf.get(name) == before

"""Jobs of users, judged on Spark."""

import logging
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import straggler
from model.checking.claims import Outcome
from straggler.errors import UsageError
from straggler.jobs.running import KilledError, quick
from tests.jobs.written_jobs import impatient_minutes, minutes

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
    report = SimpleNamespace(outcome=outcome)
    monkeypatch.setattr("straggler.jobs.api.judge_job", lambda *_, **__: report)
    with pytest.raises(kind) as found:
        straggler.check_job(minutes, **ARGUMENTS)
    assert vars(found.value)["report"] is report


@pytest.mark.long  # test_command.py has a job that is broken
def test_a_watermark_that_is_too_short_loses_a_row_of_a_small_stream(spark: SparkSession) -> None:
    with pytest.raises(straggler.JobBroken, match=r"late rows are accounted for +broken") as found:
        straggler.check_job(impatient_minutes, spark, lateness="10 seconds", **ARGUMENTS)
    table = "\n".join(found.value.report.table)
    assert "missing: " in table
    assert table.count("device=") <= 5


def test_a_job_that_cannot_run_is_refused_in_one_sentence(spark: SparkSession) -> None:
    def raising(_: DataFrame) -> DataFrame:
        raise ValueError("no such thing")

    with pytest.raises(UsageError, match="the job raised ValueError: no such thing"):
        straggler.check_job(raising, spark, **ARGUMENTS)
    with pytest.raises(UsageError, match="is not streaming"):
        straggler.check_job(lambda frame: frame.sparkSession.range(3), spark, **ARGUMENTS)
    with pytest.raises(UsageError, match="event_time is 'when', which is no column of input"):
        straggler.check_job(minutes, spark, schema=DDL, event_time="when")
    for text, wrong in (
        ("-10 seconds", "must be a duration >= 0"),
        ("in 10 s", "is not a duration"),
    ):
        with pytest.raises(UsageError, match=f"lateness is '{text}'.*{wrong}"):
            straggler.check_job(minutes, spark, lateness=text, **ARGUMENTS)
    with pytest.raises(UsageError, match="mode is 'appended'"):
        straggler.check_job(minutes, spark, schema=DDL, event_time="at", mode="appended")


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

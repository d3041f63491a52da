"""Every job of the gallery and of Spark's guide, judged: ``make gallery``.

Each right one holds, varied and on hundreds of streams as well, and each wrong one is broken by a
few rows. A check has both cores for a minute, which is too long for ``make test-long``.
"""

import pytest
from pyspark.sql import SparkSession

from straggler.jobs.api import judge_job
from tests.jobs.changes import CHANGED, DELAYED, RIGHT, another_delay, another_zone
from tests.jobs.gallery import BROKEN, GALLERY, HOLDS, PROVED, Entry
from tests.jobs.guide import GUIDE
from tests.jobs.variations import VARIATIONS

ROWS_MAX = 5
STREAMS_AT_NIGHT = 300


@pytest.mark.long
@pytest.mark.parametrize("entry", [*GALLERY, *GUIDE], ids=lambda each: each.name)
@pytest.mark.timeout(600)
def test_a_job_of_the_gallery_or_of_sparks_guide_gets_its_verdict(
    spark: SparkSession, entry: Entry
) -> None:
    report = judge_job(entry.job, spark, **entry.arguments)
    assert str(report.outcome) == entry.verdict, f"{entry.reason}\n{report}"
    if entry.verdict == BROKEN and entry.name not in PROVED:
        assert any(f"has {n} rows" in "\n".join(report.table) for n in range(1, ROWS_MAX + 1))


@pytest.mark.long
@pytest.mark.parametrize("name", VARIATIONS)
@pytest.mark.timeout(600)
def test_a_variation_of_a_right_job_is_never_broken(spark: SparkSession, name: str) -> None:
    entry = VARIATIONS[name]
    report = judge_job(entry.job, spark, **entry.arguments, name=name)
    assert str(report.outcome) != BROKEN, str(report)


STREAMS_OF_A_CHANGE = 8
"""Number of drawn streams; probes find what a change breaks."""


def require_not_broken(spark: SparkSession, entry: Entry, name: str) -> None:
    """Judge a right job on fewer streams than usual."""
    asked = {**entry.arguments, "streams": STREAMS_OF_A_CHANGE}
    report = judge_job(entry.job, spark, **asked, name=name)
    assert str(report.outcome) != BROKEN, str(report)


@pytest.mark.long
@pytest.mark.parametrize("name", CHANGED)
@pytest.mark.timeout(600)
def test_a_change_that_keeps_a_job_right_does_not_break_it(spark: SparkSession, name: str) -> None:
    require_not_broken(spark, CHANGED[name], name)


@pytest.mark.long
@pytest.mark.parametrize("name", DELAYED)
@pytest.mark.timeout(600)
def test_another_delay_does_not_break_a_right_job(spark: SparkSession, name: str) -> None:
    entry, delay = DELAYED[name]
    with another_delay(delay):
        require_not_broken(spark, entry, name)


@pytest.mark.long
@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.timeout(600)
def test_another_zone_does_not_break_a_right_job(spark: SparkSession, name: str) -> None:
    with another_zone(spark):
        require_not_broken(spark, RIGHT[name], name)


@pytest.mark.long
@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.timeout(3600)
def test_a_right_job_holds_on_hundreds_of_streams(spark: SparkSession, name: str) -> None:
    entry = RIGHT[name]
    report = judge_job(entry.job, spark, **entry.arguments, streams=STREAMS_AT_NIGHT)
    assert str(report.outcome) == HOLDS, str(report)

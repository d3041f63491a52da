"""Every job of the gallery and of Spark's guide, judged: ``make gallery``.

Each right one holds, varied and on hundreds of streams as well, and each wrong one is broken by a
few rows. A check has both cores for a minute, which is too long for ``make test-long``.
"""

import pytest
from pyspark.sql import SparkSession

from straggler.jobs.api import judge_job
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


STATES = ("minutes", "visits", "deduplicated", "all_orders", "new_devices")
"""A right job of each operator with state; all of them with hundreds of streams take two hours."""


@pytest.mark.long
@pytest.mark.parametrize("name", STATES)
@pytest.mark.timeout(3600)
def test_a_right_job_holds_on_hundreds_of_streams(spark: SparkSession, name: str) -> None:
    entry = next(each for each in GALLERY if each.name == name)
    report = judge_job(entry.job, spark, **entry.arguments, streams=STREAMS_AT_NIGHT)
    assert str(report.outcome) == HOLDS, str(report)

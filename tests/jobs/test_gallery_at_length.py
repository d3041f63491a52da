"""Right jobs of the gallery, varied or on hundreds of streams: none is broken.

Beside ``test_gallery.py``, because a file runs in one process, and each takes an hour.
"""

import pytest
from pyspark.sql import SparkSession

from straggler.jobs.api import judge_job
from tests.jobs.gallery import BROKEN, GALLERY, HOLDS
from tests.jobs.variations import VARIATIONS

STREAMS_AT_NIGHT = 300


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

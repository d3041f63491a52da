"""The gallery of jobs: each right one holds, each wrong one is broken by a few rows."""

import inspect

import pytest
from pyspark.sql import DataFrame, SparkSession

from straggler.jobs.api import judge_job
from straggler.jobs.plans import remarks
from tests.house.repository import ROOT
from tests.jobs.gallery import BROKEN, GALLERY, Entry
from tests.jobs.guide import GUIDE
from tests.jobs.variations import VARIATIONS

PAGE = (ROOT / "docs" / "job-gallery.md").read_text(encoding="utf-8")
ROWS_MAX = 5
PROVED = {
    "minutes_with_a_late_watermark": [
        "windows never close: withWatermark comes after the aggregation, and not before it"
    ],
    "minutes_of_another_column": [
        "windows never close: the watermark is on at, and not on what window is made of"
    ],
    "minutes_of_processing": ["window is a key, and made of the time at which a row is processed"],
    "endlessly_deduplicated": [
        "dropDuplicates keeps every value of id forever: "
        "the column of the watermark is not among them"
    ],
    "endless_orders": [
        "the join keeps all rows of its left side forever: the other side has no watermark",
        "the join keeps all rows of its right side forever: the right side has no watermark",
    ],
}
"""Wrong jobs whose plan alone proves the mistake, and the sentences that say so."""
NO_TIMEOUT = "the state has no timeout: a key leaves only if the function removes it"
NOTES = {
    "minutes_of_processing": [
        "current_timestamp() has another value in each run",
        "the watermark is on the time at which a row is processed",
    ],
    "opening_watts": ["the answer of first() depends on the order in which rows arrive"],
    "new_devices": [NO_TIMEOUT],
    "jumps": [NO_TIMEOUT],
    "minutes_without_a_timeout": [NO_TIMEOUT],
    "estimate": ["approx_count_distinct() is an estimate, not an exact answer"],
}
"""Jobs whose plan has something else to tell."""
CASES = [(each.name, each) for each in (*GALLERY, *GUIDE)] + list(VARIATIONS.items())


def plan_frame(spark: SparkSession, entry: Entry) -> DataFrame:
    """Return the frame of a job over streams that are never started."""
    schemas = entry.schema if isinstance(entry.schema, dict) else {"": entry.schema}
    rate = spark.readStream.format("rate").load()
    inputs = {}
    for name, schema in schemas.items():
        columns = [each.rsplit(" ", 1) for each in str(schema).split(", ")]
        chosen = [f"CAST(timestamp AS string) AS {n}_" for n, _ in columns]
        frame = rate.selectExpr(*chosen)
        inputs[name] = frame.selectExpr(*[f"CAST({n}_ AS {kind}) AS {n}" for n, kind in columns])
    return entry.job(**inputs) if len(inputs) > 1 else entry.job(*inputs.values())


@pytest.mark.parametrize(("name", "entry"), CASES, ids=[name for name, _ in CASES])
def test_a_plan_proves_the_mistakes_of_some_jobs_and_tells_nothing_else(
    spark: SparkSession, name: str, entry: Entry
) -> None:
    found = remarks(plan_frame(spark, entry), mode=entry.mode)
    assert [each.sentence for each in found if each.is_broken] == PROVED.get(name, [])
    assert [each.sentence for each in found if not each.is_broken] == NOTES.get(name, [])


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


# ----------------------------------------------------------------------------------------- the page


@pytest.mark.parametrize("entry", GALLERY, ids=lambda each: each.name)
def test_the_page_has_the_code_of_every_job(entry: Entry) -> None:
    sink = entry.options.get("sink")
    for function in filter(None, (entry.job, sink)):
        assert inspect.getsource(function).strip() in PAGE, f"{function.__name__} differs"

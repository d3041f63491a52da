"""The gallery of jobs: each right one holds, each wrong one is broken by a few rows."""

import inspect

import pytest
from pyspark.sql import DataFrame, SparkSession

from straggler.jobs.api import judge_job
from straggler.jobs.plans import remarks
from tests.house.repository import ROOT
from tests.jobs.gallery import BROKEN, GALLERY, HOLDS, Entry
from tests.jobs.guide import GUIDE
from tests.jobs.variations import VARIATIONS

PAGE = (ROOT / "docs" / "job-gallery.md").read_text(encoding="utf-8")
ROWS_MAX = 5
STREAMS_AT_NIGHT = 300
PROVED = {
    "minutes_with_a_late_watermark",
    "minutes_of_another_column",
    "minutes_of_processing",
    "endlessly_deduplicated",
    "endless_orders",
}
"""Wrong jobs whose plan alone proves the mistake."""


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


@pytest.mark.parametrize("entry", [*GALLERY, *GUIDE], ids=lambda each: each.name)
def test_a_plan_proves_mistakes_of_wrong_jobs_alone(spark: SparkSession, entry: Entry) -> None:
    found = remarks(plan_frame(spark, entry), mode=entry.mode)
    proofs = [each.sentence for each in found if each.is_broken]
    assert bool(proofs) == (entry.name in PROVED), proofs


@pytest.mark.long
@pytest.mark.parametrize("entry", GALLERY, ids=lambda each: each.name)
@pytest.mark.timeout(600)
def test_a_job_of_the_gallery_gets_its_verdict(spark: SparkSession, entry: Entry) -> None:
    report = judge_job(entry.job, spark, **entry.arguments)
    assert str(report.outcome) == entry.verdict, f"{entry.reason}\n{report}"
    if entry.verdict == BROKEN and entry.name not in PROVED:
        assert any(f"has {n} rows" in "\n".join(report.table) for n in range(1, ROWS_MAX + 1))


@pytest.mark.long
@pytest.mark.parametrize("entry", GUIDE, ids=lambda each: each.name)
@pytest.mark.timeout(600)
def test_an_example_of_sparks_guide_holds(spark: SparkSession, entry: Entry) -> None:
    report = judge_job(entry.job, spark, **entry.arguments)
    assert str(report.outcome) == HOLDS, str(report)


@pytest.mark.long
@pytest.mark.parametrize("name", VARIATIONS)
@pytest.mark.timeout(600)
def test_a_variation_of_a_right_job_is_never_broken(spark: SparkSession, name: str) -> None:
    entry = VARIATIONS[name]
    report = judge_job(entry.job, spark, **entry.arguments, name=name)
    assert str(report.outcome) != BROKEN, str(report)


@pytest.mark.parametrize("name", VARIATIONS)
def test_the_plan_of_a_variation_proves_no_mistake(spark: SparkSession, name: str) -> None:
    entry = VARIATIONS[name]
    found = remarks(plan_frame(spark, entry), mode=entry.mode)
    assert not [each.sentence for each in found if each.is_broken]


RIGHT = tuple(each for each in (*GALLERY, *GUIDE) if each.verdict == HOLDS)


@pytest.mark.long
@pytest.mark.parametrize("entry", RIGHT, ids=lambda each: each.name)
@pytest.mark.timeout(3600)
def test_a_right_job_holds_on_hundreds_of_streams(spark: SparkSession, entry: Entry) -> None:
    report = judge_job(entry.job, spark, **entry.arguments, streams=STREAMS_AT_NIGHT)
    assert str(report.outcome) == HOLDS, str(report)


# ----------------------------------------------------------------------------------------- the page


def test_the_gallery_has_as_many_right_jobs_as_wrong_ones() -> None:
    wrong = [each for each in GALLERY if each.verdict == BROKEN]
    assert len(wrong) >= 12
    assert len(GALLERY) - len(wrong) >= 12


@pytest.mark.parametrize("entry", GALLERY, ids=lambda each: each.name)
def test_the_page_has_the_code_of_every_job(entry: Entry) -> None:
    sink = entry.options.get("sink")
    for function in filter(None, (entry.job, sink)):
        assert inspect.getsource(function).strip() in PAGE, f"{function.__name__} differs"

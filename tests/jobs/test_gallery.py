"""Plans of the jobs of the gallery, and the page that shows them."""

import inspect

import pytest
from pyspark.sql import DataFrame, SparkSession

from straggler.jobs.plans import remarks
from tests.house.repository import ROOT
from tests.jobs.gallery import GALLERY, PROVED, Entry
from tests.jobs.guide import GUIDE
from tests.jobs.variations import VARIATIONS

PAGE = (ROOT / "docs" / "job-gallery.md").read_text(encoding="utf-8")
NOTES = {
    "minutes_of_processing": [
        "current_timestamp() has another value in each run",
        "the watermark is on the time at which a row is processed",
    ],
    "full join": [
        f"a filter comes before the watermark on {column}: while no row passes it, state and "
        "answers of the other side wait as well"
        for column in ("ordered_at", "paid_at")
    ],
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


# ----------------------------------------------------------------------------------------- the page


@pytest.mark.parametrize("entry", GALLERY, ids=lambda each: each.name)
def test_the_page_has_the_code_of_every_job(entry: Entry) -> None:
    sink = entry.options.get("sink")
    for function in filter(None, (entry.job, sink)):
        assert inspect.getsource(function).strip() in PAGE, f"{function.__name__} differs"

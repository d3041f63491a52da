"""Changes of a job that keep it right: delays, modes, keys, zones, NaN, inputs and operators."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from typing import Any
from unittest import mock

from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own habit)

from tests.jobs.gallery import GALLERY, HOLDS, Entry
from tests.jobs.guide import GUIDE

RIGHT = {each.name: each for each in (*GALLERY, *GUIDE) if each.verdict == HOLDS}
"""Right jobs of the gallery and of Spark's guide, by name."""
DELAYS = ("0 seconds", "1 second", "7 minutes", "1 day")
"""Delays in place of those that a job declares."""
ZONE = "America/St_Johns"
WINDOWED = ("minutes", "earliest_watts", "days_of_local_time")
"""Jobs with one aggregation of windows, which run in every mode."""


def schemas_of(entry: Entry) -> Mapping[str, str]:
    """Return the schemas of the inputs, by name."""
    return {"rows": entry.schema} if isinstance(entry.schema, str) else entry.schema


def times_of(entry: Entry) -> Mapping[str, str]:
    """Return the event times of the inputs, by name."""
    return {"rows": entry.event_time} if isinstance(entry.event_time, str) else entry.event_time


def columns_of(entry: Entry, *kinds: str) -> list[str]:
    """Return the columns of some types."""
    columns = [
        each.split(" ") for schema in schemas_of(entry).values() for each in schema.split(", ")
    ]
    return [name for name, kind in columns if kind in kinds]


def told(entry: Entry, **options: Any) -> Entry:
    """Return a job of which something more is said."""
    return replace(entry, options={**entry.options, **options})


# ------------------------------------------------------------------------------------------ inputs


def _with_inputs(entry: Entry, change: Callable[[DataFrame, str], DataFrame]) -> Entry:
    times = times_of(entry)

    @wraps(entry.job)
    def job(*only: DataFrame, **inputs: DataFrame) -> DataFrame:
        changed = {name: change(frame, times[name]) for name, frame in inputs.items()}
        return entry.job(*[change(each, times["rows"]) for each in only], **changed)

    return replace(entry, job=job)


def filtered(entry: Entry) -> Entry:
    """Read rows that have an event time."""
    return _with_inputs(entry, lambda frame, time: frame.where(f"{time} IS NOT NULL"))


def widened(entry: Entry) -> Entry:
    """Read rows with one more column."""
    return _with_inputs(entry, lambda frame, _: frame.withColumn("note", F.lit("read")))


def packed(entry: Entry) -> Entry:
    """Read rows that were packed and unpacked."""
    return _with_inputs(
        entry, lambda frame, _: frame.select(F.struct("*").alias("it")).select("it.*")
    )


def doubled(entry: Entry) -> Entry:
    """Read each row twice, with the number of its copy."""

    def twice(frame: DataFrame, _: str) -> DataFrame:
        return frame.withColumn("copy", F.explode(F.array(F.lit(1), F.lit(2))))

    return _with_inputs(entry, twice)


def repartitioned(entry: Entry) -> Entry:
    """Read rows in other partitions than they come in."""
    return _with_inputs(entry, lambda frame, _: frame.repartition(3))


def united(entry: Entry) -> Entry:
    """Read the first input from two sources, of which one may be idle."""
    first, *others = schemas_of(entry)
    schemas, times = schemas_of(entry), times_of(entry)

    @wraps(entry.job)
    def job(more: DataFrame, **inputs: DataFrame) -> DataFrame:
        both = inputs[first].union(more)
        return entry.job(both, **{name: inputs[name] for name in others})

    both_schemas = {**schemas, "more": schemas[first]}
    both_times = {**times, "more": times[first]}
    return replace(entry, job=job, schema=both_schemas, event_time=both_times)


def zoned(entry: Entry) -> Entry:
    """Read times without a zone, which get that of the session."""

    def cast(frame: DataFrame, time: str) -> DataFrame:
        return frame.withColumn(time, F.col(time).cast("timestamp"))

    def timeless(schema: str) -> str:
        return re.sub(r"(\w) timestamp\b", r"\1 timestamp_ntz", schema)  # a type follows a name

    changed = _with_inputs(entry, cast)
    if isinstance(entry.schema, str):
        return replace(changed, schema=timeless(entry.schema))
    return replace(changed, schema={name: timeless(each) for name, each in entry.schema.items()})


# ----------------------------------------------------------------------------------------- answers


def _with_answers(entry: Entry, change: Callable[[DataFrame], DataFrame]) -> Entry | None:
    if "sink" in entry.options:  # which knows the columns of the answers
        return None

    @wraps(entry.job)
    def job(*only: DataFrame, **inputs: DataFrame) -> DataFrame:
        return change(entry.job(*only, **inputs))

    return replace(entry, job=job)


def kept(entry: Entry) -> Entry | None:
    """Answer what has a value in its first column."""
    return _with_answers(entry, lambda found: found.where(F.col(found.columns[0]).isNotNull()))


def renamed(entry: Entry) -> Entry | None:
    """Answer columns with other names."""
    return _with_answers(entry, lambda found: found.toDF(*[f"{name}_" for name in found.columns]))


def narrowed(entry: Entry) -> Entry | None:
    """Answer the last column alone."""
    if entry.mode != "append":
        return None
    return _with_answers(entry, lambda found: found.select(found.columns[-1]))


def hashed(entry: Entry) -> Entry | None:
    """Answer a hash of each row as well."""
    return _with_answers(entry, lambda found: found.withColumn("hash", F.xxhash64("*")))


# --------------------------------------------------------------------------------- what is asked


def updated(entry: Entry) -> Entry | None:
    """Answer in update mode."""
    return replace(entry, mode="update") if entry.name in WINDOWED else None


def completed(entry: Entry) -> Entry | None:
    """Answer in complete mode."""
    return replace(entry, mode="complete") if entry.name in WINDOWED else None


def hurried(entry: Entry) -> Entry:
    """Agree on less lateness than the job allows."""
    return told(entry, lateness="1 second")


def keyed(entry: Entry) -> Entry | None:
    """Draw few keys, one of them often."""
    keys = columns_of(entry, "string", "int")
    return told(entry, keys=keys) if keys and "columns" not in entry.options else None


def strange(entry: Entry) -> Entry | None:
    """Draw NaN, zeros of both signs and infinities."""
    values = st.sampled_from([float("nan"), -0.0, 0.0, float("inf"), 2.5])
    columns = columns_of(entry, "double")
    return told(entry, columns=dict.fromkeys(columns, values)) if columns else None


def alike(entry: Entry) -> Entry | None:
    """Draw two whole numbers."""
    columns = columns_of(entry, "int")
    if not columns or "columns" in entry.options:
        return None
    return told(entry, columns={name: st.integers(1, 2) for name in columns})


CHANGES = (
    filtered, widened, packed, doubled, repartitioned, united, zoned,
    kept, renamed, narrowed, hashed,
    updated, completed, hurried, keyed, strange, alike,
)  # fmt: skip
CHANGED = {
    f"{name}, {change.__name__}": changed
    for name, entry in RIGHT.items()
    for change in CHANGES
    if (changed := change(entry)) is not None
}
"""Every right job under every change that fits it; none of them may ever be called broken."""
DELAYED = {
    f"{name}, {delay}": (entry, delay)
    for name, entry in RIGHT.items()
    if entry.job.__name__ not in ("high_watts", "totals", "new_devices")  # without a watermark
    for delay in DELAYS
}


@contextmanager
def another_delay(delay: str) -> Iterator[None]:
    """Give every watermark of a job another delay than it declares."""
    kind = type(SparkSession.active().range(1))
    right = kind.withWatermark

    def declared(frame: DataFrame, column: str, _: str) -> DataFrame:
        return right(frame, column, delay)

    with mock.patch.object(kind, "withWatermark", declared):
        yield


@contextmanager
def another_zone(spark: SparkSession) -> Iterator[None]:
    """Give a session a zone with an offset of half an hour, and changes of clocks."""
    name = "spark.sql.session.timeZone"
    before = spark.conf.get(name)
    spark.conf.set(name, ZONE)
    try:
        yield
    finally:
        spark.conf.set(name, str(before))

"""Scripts run on Spark for somebody who wants their results.

Rules of this file:

* What a run needs lies in a folder of its own, which is gone when it is over: whoever wants a query
  that goes on for ever writes it with :class:`spark_impl.script.ScriptQuery`.
"""

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet

from model.vocabulary import Event, ScriptConfig
from model.vocabulary.script import MILLISECOND_US
from properties.data.tables import cuts_into
from properties.errors import UsageError
from properties.script.queries import BATCHES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_impl.script import Plan

COLUMNS = ("workflow", "name", "time", "value")
SUFFIXES = (".csv", ".parquet")


class Found(NamedTuple):
    """What came out of a run."""

    results: pa.Table
    """``workflow``, ``name``, ``time`` (UTC) and ``value``, by time."""
    undefined: int
    """Times at which a statement had no finite result."""
    rejected: Counter[str]
    """Arrivals that took part in nothing, by the reason."""


class Explained(NamedTuple):
    """The query that would run, as rows of ``spark_impl.script.explain``, and how Spark runs it."""

    computations: Sequence[Mapping[str, Any]]
    cuttings: Sequence[Mapping[str, Any]]
    workers: Sequence[Mapping[str, Any]]
    dropped: Sequence[str]
    """Sensors that nobody asks for."""
    figures: Mapping[str, Any]
    physical: str
    """Spark's plan of a micro-batch."""


def explain(spark: "SparkSession", config: ScriptConfig, events: Sequence[Event]) -> Explained:
    """The one query for all scripts, which is not run."""
    from spark_impl.script import ScriptQuery

    with _problems_told(), tempfile.TemporaryDirectory(prefix="straggler-run-") as folder:
        history, store = _laid_out(Path(folder), events[:1])
        query = ScriptQuery(spark, config, history, store)
        physical = query.explain().replace(f"{folder}/", "")
    return explained(query.plan, physical)


def explained(plan: "Plan", physical: str) -> Explained:
    """What the pipeline compiled, beside Spark's plan."""
    from spark_impl.script import explain as rows

    return Explained(
        rows.computations(plan),
        rows.cuttings(plan),
        rows.workers(plan),
        [name for name in plan.graph.per_hour if name not in plan.numbers],
        rows.figures(plan),
        physical,
    )


def compute(spark: "SparkSession", config: ScriptConfig, events: Sequence[Event]) -> Found:
    """Run scripts on all events, to the end of the stream.

    Raises :class:`UsageError` with one sentence when the query stops.
    """
    # Imported here, for it takes a second that nothing else on the command line needs.
    from spark_impl.script import ScriptQuery, rejected, results, undefined

    with _problems_told(), tempfile.TemporaryDirectory(prefix="straggler-run-") as folder:
        history, store = _laid_out(Path(folder), events)
        ScriptQuery(spark, config, history, store).flush()
        found = results(spark, store).toArrow()
        reasons = rejected(spark, store).toArrow().column("reason").to_pylist()
        return Found(_timed(found), undefined(spark, store).count(), Counter(reasons))


def _laid_out(folder: Path, events: Sequence[Event]) -> tuple[Path, Path]:
    """A history of the events, and where the store is to be."""
    from spark_impl.runtime.histories import append

    history = folder / "history"
    for begin, end in _batches(len(events)):
        append(history, pa.Table.from_pylist([each._asdict() for each in events[begin:end]]))
    return history, folder / "store"


def _batches(events: int) -> Iterator[tuple[int, int]]:
    ends = (*cuts_into(events, BATCHES), events)
    return zip((0, *ends), ends, strict=False)


def _timed(results: pa.Table) -> pa.Table:
    """With times that people can read, in their order."""
    ordered = results.sort_by([(name, "ascending") for name in ("ts_us", "workflow", "name")])
    times = ordered.column("ts_us").cast(pa.timestamp("us", tz="UTC"))
    return ordered.append_column("time", times).select(COLUMNS)


@contextmanager
def _problems_told() -> Iterator[None]:
    """What Spark or the query says is wrong, as one sentence."""
    from spark_impl.runtime.histories import InputProblem
    from spark_impl.script import QueryProblem

    try:
        yield
    except (InputProblem, QueryProblem) as problem:
        raise UsageError(str(problem)) from problem


# ---------------------------------------------------------------------------------------- output


def write(results: pa.Table, path: Path) -> None:
    """As Parquet or CSV, by the name of the file; it is there complete, or not at all."""
    scratch = path.with_name(f".{path.name}.part")
    try:
        if path.suffix.lower() == ".parquet":
            parquet.write_table(results, scratch, compression="zstd")
        else:
            csv.write_csv(readable(results), scratch)
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)


def readable(results: pa.Table) -> pa.Table:
    """Times as text of ISO 8601, to the millisecond or as fine as they are."""
    times = results.column("time")
    are_whole = not (times.cast(pa.int64()).to_numpy() % MILLISECOND_US).any()
    unit = "ms" if are_whole else "us"
    texts = pc.strftime(times.cast(pa.timestamp(unit, tz="UTC")), format="%Y-%m-%dT%H:%M:%SZ")
    return results.set_column(results.schema.get_field_index("time"), "time", texts)

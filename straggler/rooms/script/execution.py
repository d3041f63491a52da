"""Execution of scripts on Spark, for a user who wants their results.

A run keeps its data in a temporary folder. For a query that runs for ever, use
:class:`spark_impl.script.ScriptQuery`.
"""

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from model.vocabulary import Event, ScriptConfig
from straggler.errors import UsageError
from straggler.inputs.tables import cuts_into
from straggler.rooms.script.queries import BATCHES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = ("workflow", "name", "time", "value")


class Found(NamedTuple):
    """Results of a run."""

    results: pa.Table
    """``workflow``, ``name``, ``time`` (UTC) and ``value``, by time."""
    undefined: int
    """Number of times at which a statement had no finite result."""
    rejected: Counter[str]
    """Number of rejected arrivals, by reason."""


def compute(spark: "SparkSession", config: ScriptConfig, events: Sequence[Event]) -> Found:
    """Run scripts on all events, to the end of the stream.

    Raise :class:`UsageError` with one sentence if the query stops.
    """
    # Imported here because it takes a second, and most commands do not need it.
    from spark_impl.runtime.histories import append
    from spark_impl.script import ScriptQuery, rejected, results, undefined

    with (
        _one_sentence(),
        tempfile.TemporaryDirectory(prefix="straggler-run-") as folder,
    ):
        history, store = Path(folder, "history"), Path(folder, "store")
        ends = (*cuts_into(len(events), BATCHES), len(events))
        for begin, end in zip((0, *ends), ends, strict=False):
            append(history, pa.Table.from_pylist([each._asdict() for each in events[begin:end]]))
        ScriptQuery(spark, config, history, store).flush()
        found = results(spark, store).toArrow()
        reasons = rejected(spark, store).toArrow().column("reason").to_pylist()
        return Found(_with_times(found), undefined(spark, store).count(), Counter(reasons))


def _with_times(results: pa.Table) -> pa.Table:
    """Return the results in time order, with readable times."""
    ordered = results.sort_by([(name, "ascending") for name in ("ts_us", "workflow", "name")])
    times = ordered.column("ts_us").cast(pa.timestamp("us", tz="UTC"))
    return ordered.append_column("time", times).select(COLUMNS)


@contextmanager
def _one_sentence() -> Iterator[None]:
    """Turn errors of Spark and of the query into one sentence."""
    from spark_impl.runtime.failures import QueryProblem
    from spark_impl.runtime.storage import InputProblem

    try:
        yield
    except (InputProblem, QueryProblem) as problem:
        raise UsageError(str(problem)) from problem

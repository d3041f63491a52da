"""What a chain has found: its results, its epochs, the tuples it has admitted."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from model.vocabulary.join import R
from spark_impl.join.matching import SCHEMA
from spark_impl.join.queries import Counts
from spark_impl.join.store import MATCHES, Store, load_store
from spark_impl.runtime.histories import InputProblem, literal


class Snapshot(NamedTuple):
    """An epoch that happened, and what the chain held after it."""

    epoch: int
    committed_us: int
    """Wall-clock time on the driver, since 1970."""
    workers: int
    matches: Mapping[str, int]
    """Pairs found in this epoch, by query."""
    rejected: int
    """Arrivals of this epoch that were not let in."""
    admitted: Counts
    """Tuples admitted in this epoch, by stream."""
    held: Counts
    """Tuples that the workers held afterwards, by stream."""
    flush: bool


def results(spark: SparkSession, store: str | Path, through_epoch: int | None = None) -> DataFrame:
    """All pairs that a chain has found: a row ``query, r_id, s_id, epoch`` for each.

    ``through_epoch`` is the last epoch that counts, by default the last one that happened; one that
    is being run, or that a crash cut short, does not show. Raises
    :class:`InputProblem` when ``store`` is not the store of a chain, or the
    epoch has not happened, or when some of the pairs are not there.
    """
    place = load_store(Path(store).absolute())
    epochs = place.epochs()
    if through_epoch is not None:
        epochs = [epoch for epoch in epochs if epoch <= place.commit_of(through_epoch).epoch]
    return matches(spark, place, epochs)


def snapshots(store: str | Path) -> tuple[Snapshot, ...]:
    """The epochs of a chain that happened, in order.

    Raises :class:`InputProblem` when ``store`` is not the store of a chain.
    """
    commits = load_store(Path(store).absolute()).commits()
    counts = [Counts(0, 0), *(done.admitted for done in commits)]
    new = [Counts(after.r - before.r, after.s - before.s) for before, after in pairwise(counts)]
    return tuple(
        Snapshot(
            done.epoch,
            done.committed_us,
            done.config.workers,
            done.matches,
            done.rejected,
            admitted,
            done.held,
            done.flush,
        )
        for done, admitted in zip(commits, new, strict=True)
    )


def matches(spark: SparkSession, store: Store, epochs: Sequence[int]) -> DataFrame:
    """Pairs that were found in some epochs, which happened."""
    return _read(spark, match_files(store, epochs), MATCHES)


def match_files(store: Store, epochs: Sequence[int]) -> list[Path]:
    """Files with the pairs that were found in some epochs, which happened.

    Raises :class:`InputProblem` when some of the pairs are not there.
    """
    found = sum(sum(store.commit_of(epoch).matches.values()) for epoch in epochs)
    return _complete(store, "matches-*.parquet", epochs, found)


def admitted(
    spark: SparkSession, store: Store, stream: str, first_epoch: int, last_epoch: int
) -> DataFrame:
    """Tuples of one stream that were admitted in some epochs, with the columns of inputs.

    Raises :class:`InputProblem` when one of the epochs has not happened, or
    without a history, or when some of the tuples are not there.
    """
    epochs = range(first_epoch, last_epoch + 1)
    for epoch in epochs:
        if not store.commit_of(epoch).history:
            msg = f"the tuples of epoch {epoch} were not kept: that takes a chain with a history"
            raise InputProblem(msg)
    before, after = store.admitted_before(first_epoch), store.admitted_before(last_epoch + 1)
    kept = after.r - before.r if stream == R else after.s - before.s
    files = _complete(store, f"admitted-{stream}.parquet", epochs, kept)
    rows = _read(spark, files, SCHEMA)
    return rows.withColumnRenamed("ts", "event_time_us")


def _complete(store: Store, pattern: str, epochs: Sequence[int], rows: int) -> list[Path]:
    """Files of some epochs, with as many rows as the workers said that they wrote."""
    files = store.files(pattern, epochs)
    here = sum(pq.read_metadata(path).num_rows for path in files)
    if here != rows:
        msg = (
            f"{store.root} has {here} of the {rows} rows that were written to {pattern}: the driver"
            " and all workers have to reach one folder under this path"
        )
        raise InputProblem(msg)
    return files


def _read(spark: SparkSession, files: Sequence[Path], schema: pa.Schema) -> DataFrame:
    kinds = from_arrow_schema(schema)
    if not files:
        return spark.createDataFrame([], kinds)
    return spark.read.schema(kinds).parquet(*map(literal, files))

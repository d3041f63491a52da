"""Routers as Spark tasks: one for every sender, or for every partition of bounded data.

Partition i belongs to sender i. The sender handles its rows in the order of column ``seq`` if it is
named, else in the order in which they come.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)
from pyspark.sql.types import (
    DataType,
    IntegerType,
    IntegralType,
    NumericType,
    StringType,
    StructType,
)

from model.vocabulary import GroupingConfig
from model.vocabulary.grouping import REASON_NOT_FINITE
from spark_impl.grouping.keys import (
    EMPTY,
    Summary,
    Table,
    count_exactly,
    merge,
    merge_all,
    summary_capacity,
)
from spark_impl.grouping.reports import MicroBatch, Report
from spark_impl.grouping.router import SenderState, begin_window, choose, route
from spark_impl.grouping.store import REJECTED, SENDER
from spark_impl.grouping.windows import Standing
from spark_impl.runtime.histories import REFUSED
from spark_impl.runtime.states import from_bytes, to_bytes
from spark_impl.runtime.storage import InputProblem, Location

INSTANCE = "instance"
"""Name of the added column."""
_ROWS = 1 << 17
"""Number of rows of bounded data that are routed together."""


class Columns(NamedTuple):
    """Names of the input's columns that routers read."""

    key: str
    seq: str | None = None
    """Arrival numbers, if the input has them."""
    value: str | None = None
    """Values, if rows without a finite value are to be listed."""


def require_columns(rows: DataFrame, columns: Columns, is_stream: bool) -> None:
    """Raise :class:`InputProblem` unless rows can be routed by these columns."""
    if rows.isStreaming != is_stream:
        found, wanted = ("bounded", "a stream") if is_stream else ("a stream", "bounded")
        msg = f"the input is {found}; it must be {wanted}"
        raise InputProblem(msg)
    _require_type(rows, columns.key, StringType, "a key is a string")
    if columns.seq is not None:
        _require_type(rows, columns.seq, IntegralType, "an order is made of integers")
    if columns.value is not None:
        _require_type(rows, columns.value, NumericType, "a value is a number")
    if INSTANCE in rows.columns:
        msg = f"the input already has a column {INSTANCE!r}; rename it: routing adds this column"
        raise InputProblem(msg)


def _require_type(rows: DataFrame, name: str, wanted: type[DataType], rule: str) -> None:
    if name not in rows.columns:
        msg = f"the input has no column {name!r}; it has {', '.join(rows.columns)}"
        raise InputProblem(msg)
    kind = rows.schema[name].dataType
    if not isinstance(kind, wanted):
        msg = f"the column {name!r} is of type {kind.simpleString()}; {rule}"
        raise InputProblem(msg)


def with_instance(rows: DataFrame) -> StructType:
    """Return the schema of rows after routing, which adds the column of instances."""
    return StructType([*rows.schema.fields]).add(INSTANCE, IntegerType(), nullable=False)


# -------------------------------------------------------------------------------------- a stream


class Part(NamedTuple):
    """A micro-batch of one stream, with everything that its senders need."""

    config: GroupingConfig
    columns: Columns
    standing: Standing
    before: Mapping[int, Location]
    """Files of the senders' states after the previous micro-batch; empty before the first one."""
    batch: MicroBatch

    @property
    def senders(self) -> list[tuple["Part", int]]:
        """Senders of the stream, each with this part."""
        return [(self, sender) for sender in range(self.config.senders)]


def route_stream(rows: DataFrame, part: Part) -> DataFrame:
    """Return the rows of a micro-batch with their instances; reading them updates the senders."""
    columns, senders = part.columns, part.config.senders
    if columns.seq is not None:
        sender = F.pmod(F.col(columns.seq), F.lit(senders)).cast("int")
        placed = rows.repartitionById(senders, sender)
    else:
        placed = rows.coalesce(senders)
    return placed.mapInArrow(partial(_run_sender, senders=part.senders), with_instance(rows))


def route_pack(rows: DataFrame, parts: Sequence[Part], seq: str, position: str) -> DataFrame:
    """Return the rows of several streams with their instances.

    ``position`` is the column with the position of a row's stream in ``parts``. The senders of the
    first stream come first, then those of the second, and so on.
    """
    numbers = [part.config.senders for part in parts]
    first = [0, *accumulate(numbers)]
    own, before = (F.array(*map(F.lit, each))[F.col(position)] for each in (numbers, first))
    sender = (before + F.pmod(F.col(seq), own)).cast("int")
    senders = [each for part in parts for each in part.senders]
    placed = rows.repartitionById(len(senders), sender)
    return placed.mapInArrow(partial(_run_sender, senders=senders), with_instance(rows))


def _run_sender(
    batches: Iterable[pa.RecordBatch], senders: Sequence[tuple[Part, int]]
) -> Iterator[pa.RecordBatch]:
    """Run the sender of this task's partition."""
    part, sender = senders[partition_id()]
    config, columns, batch = part.config, part.columns, part.batch
    given = list(batches)
    state = sender_before(part, sender)
    if given:
        rows = pa.Table.from_batches(given)
        if columns.seq is not None:
            _require_values(rows, columns.seq)
            rows = rows.sort_by(columns.seq)
        places, state = route(config, part.standing.table, state, _keys(rows, columns.key))
        yield from rows.append_column(INSTANCE, pa.array(places, pa.int32())).to_batches()
        refused = refused_rows(rows, columns)
        if refused.num_rows:
            file = batch.store.write(REJECTED, batch.number, refused)
            batch.reports.add(Report(file, REJECTED, sender, refused.num_rows))
    file = batch.store.save(SENDER, batch.number, sender, to_bytes(state))
    batch.reports.add(Report(file, SENDER, sender, sum(map(len, given))))


def refused_rows(rows: pa.Table, columns: Columns) -> pa.Table:
    """Return the rows whose value is missing or not finite, with the columns :data:`REFUSED`."""
    if columns.value is None:
        return REFUSED.empty_table()
    values = rows.column(columns.value).cast(pa.float64(), safe=False)
    refused = rows.filter(pc.invert(pc.fill_null(pc.is_finite(values), fill_value=False)))
    size = refused.num_rows
    sources = {"seq": columns.seq, "key": columns.key}
    arrays = {"reason": pa.repeat(REASON_NOT_FINITE, size)}
    for name in (each for each in REFUSED.names if each not in arrays):
        source = sources.get(name, name)
        given = source in refused.column_names and refused.column(source).type
        kind = REFUSED.field(name).type
        fits = given and (pa.types.is_integer(given) or kind == pa.string())
        arrays[name] = refused.column(source) if fits else pa.nulls(size, kind)
    return pa.table({name: arrays[name] for name in REFUSED.names}).cast(REFUSED)


def sender_before(part: Part, sender: int) -> SenderState:
    """Return the state of a sender at the beginning of a micro-batch."""
    state = SenderState()
    if part.before:
        state = from_bytes(part.batch.store.load(SENDER, part.before[sender]))
    return begin_window(part.config, state) if part.standing.tuples == 0 else state


# ---------------------------------------------------------------------------------- bounded data


def route_bounded(
    rows: DataFrame, config: GroupingConfig, columns: Columns, table: Table
) -> DataFrame:
    """Return bounded rows with their instances; every partition has a router of its own."""
    task = partial(_run_partition, config=config, columns=columns, table=table)
    return rows.mapInArrow(task, with_instance(rows))


def _run_partition(
    batches: Iterable[pa.RecordBatch], config: GroupingConfig, columns: Columns, table: Table
) -> Iterator[pa.RecordBatch]:
    state = begin_window(config, SenderState())
    for rows in _pieces(batches):
        keys = _keys(rows, columns.key)
        places, state = choose(config, table, state, keys.dictionary_encode())
        yield from rows.append_column(INSTANCE, pa.array(places, pa.int32())).to_batches()


def count_keys(rows: DataFrame, config: GroupingConfig, columns: Columns) -> Summary:
    """Count the keys of bounded rows; only summaries come to the driver."""
    task = partial(_count, config=config, key=columns.key)
    found = rows.select(columns.key).mapInArrow(task, "summary binary").collect()
    return merge_all(
        (from_bytes(bytes(row.summary)) for row in found), summary_capacity(config.eps_share)
    )


def _count(
    batches: Iterable[pa.RecordBatch], config: GroupingConfig, key: str
) -> Iterator[pa.RecordBatch]:
    summary = EMPTY
    for rows in _pieces(batches):
        counted = count_exactly(_keys(rows, key).dictionary_encode())
        summary = merge(summary, counted, summary_capacity(config.eps_share))
    if summary.tuples:
        yield pa.RecordBatch.from_pylist([{"summary": to_bytes(summary)}])


def _pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Combine Arrow batches into tables of at least ``_ROWS`` rows; the last may be smaller."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += batch.num_rows
        if size >= _ROWS:
            yield pa.Table.from_batches(held)
            held, size = [], 0
    if held:
        yield pa.Table.from_batches(held)


def _keys(rows: pa.Table, name: str) -> pa.StringArray:
    _require_values(rows, name)
    return rows.column(name).cast(pa.string()).combine_chunks()


def _require_values(rows: pa.Table, name: str) -> None:
    missing = rows.column(name).null_count
    if missing:
        msg = f"the column {name!r} has {missing} rows without a value"
        raise InputProblem(msg)


def partition_id() -> int:
    """Return the number of this task's partition."""
    context = TaskContext.get()
    assert context is not None, "there is no partition outside of a Spark task"
    return context.partitionId()

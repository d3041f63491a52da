"""Histories: folders of Parquet files that streaming queries read, one file a micro-batch.

Spark takes the files of a folder in the order of their modification times, in milliseconds. The
functions here give every new file a later time than all files before it; whoever copies a history
has to keep the times (``cp -p``, ``rsync -t``). A query notices when they are wrong, because
arrival numbers then go down, and stops.
"""

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import (
    DataType,
    DateType,
    IntegralType,
    NumericType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

_STEP_NS = 1_000_000
_UNITS_US = {"us": 1, "ms": 1_000, "s": 1_000_000}
_REASON = "_reason"
_ROW = "_row"
_REJECTED = "reason string, row string"


class InputProblem(ValueError):  # noqa: N818 (a problem of the user, not a bug)
    """A source or a store that cannot be used; the message is one sentence for the user."""


class Columns(NamedTuple):
    """Which columns of a stream hold what."""

    key: str
    event_time: str
    """A timestamp, a date, a number in ``unit``, or text that is one of these."""
    value: str
    source_id: str | None = None
    """Identity of a tuple: an integer, or text, which is hashed (XXH64). Without one every arrival
    is a tuple of its own."""
    arrival: str | None = None
    """Like ``event_time``; by default the time at which the row is landed."""
    groups: tuple[str, ...] = ()
    """Grouping columns of the query to come, landed as they are: integers or text."""
    unit: str = "us"
    """Of numbers that are times: ``us``, ``ms`` or ``s``."""
    order: tuple[str, ...] = ()
    """Columns in whose order the rows of a batch are numbered; by default as Spark reads them."""


def append(folder: Path, rows: pa.Table, name: str | None = None) -> Path:
    """Add a file to a history: complete or not there, and later than all others.

    ``name`` is the file's name without the ending; by default the number of the file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name or format(len(_files(folder)), '08d')}.parquet"
    scratch = folder / f".{path.name}.{os.getpid()}"
    pq.write_table(rows, scratch, compression="zstd")
    _publish(scratch, path)
    return path


def land(
    stream: DataFrame, history: str | Path, columns: Columns, **trigger: Any
) -> StreamingQuery:
    """Start a query that lands a stream in a history, one file a micro-batch, numbered as arrivals.

    Rows with a NULL, or with something that cannot be read as what it should be, go to a table of
    their own (:func:`rejected`) with the reason, and the stream goes on. ``trigger`` is Spark's;
    by default the query takes what is there (``availableNow``) and ends. A batch that was landed
    is never written again, so queries may read the history while it grows.

    Raises :class:`InputProblem` for columns that the stream does not have, and for a history that
    something else has written.
    """
    folder = Path(history).absolute()
    state = folder / "_landing"
    if _files(folder) and not state.exists():
        msg = f"{folder} holds files that were not landed here; land in a folder of its own"
        raise InputProblem(msg)
    rows = _typed(stream, columns)
    (state / "batches").mkdir(parents=True, exist_ok=True)
    (folder / "_rejected").mkdir(exist_ok=True)
    writer = (
        rows.writeStream.option("checkpointLocation", str(state / "checkpoint"))
        .foreachBatch(partial(_land, folder, columns))
        .trigger(**(trigger or {"availableNow": True}))
    )
    return writer.start()


def rejected(spark: SparkSession, history: str | Path) -> DataFrame:
    """Rows that could not be landed: columns ``reason`` and ``row`` (the row as JSON)."""
    return spark.read.schema(_REJECTED).parquet(str(Path(history).absolute() / "_rejected" / "*"))


def counts(history: str | Path) -> tuple[int, int]:
    """Rows landed in a history so far, and rows rejected."""
    logs = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in (Path(history) / "_landing" / "batches").glob("*.json")
    ]
    return sum(log["landed"] for log in logs), sum(log["rejected"] for log in logs)


def _files(folder: Path) -> list[Path]:
    """The files that Spark's file source takes."""
    return list(folder.glob("[!._]*.parquet"))


def _publish(scratch: Path, path: Path) -> None:
    """Give a finished file its name, and a later time than all others of its folder."""
    latest = max((each.stat().st_mtime_ns for each in _files(path.parent)), default=0)
    when = max(latest // _STEP_NS * _STEP_NS + _STEP_NS, time.time_ns() // _STEP_NS * _STEP_NS)
    os.utime(scratch, ns=(when, when))
    scratch.replace(path)


# -- landing ---------------------------------------------------------------------------------------


def _typed(stream: DataFrame, columns: Columns) -> DataFrame:
    """Columns of a history except ``seq``, and the reason why a row cannot be landed, or NULL."""
    if columns.unit not in _UNITS_US:
        msg = f"unit is {columns.unit!r}; it must be one of {', '.join(_UNITS_US)}"
        raise InputProblem(msg)
    unit = _UNITS_US[columns.unit]
    wanted: dict[str, tuple[str, Column]] = {
        "key": (columns.key, F.col(columns.key).cast("string")),
        "event_time_us": (columns.event_time, _time(stream, columns.event_time, unit)),
        "value": (columns.value, _number(stream, columns.value)),
        **{name: (name, F.col(name)) for name in columns.groups},
    }
    if columns.source_id is not None:
        wanted["source_id"] = (columns.source_id, _identity(stream, columns.source_id))
    if columns.arrival is not None:
        wanted["arrival_us"] = (columns.arrival, _time(stream, columns.arrival, unit))
    _require_columns(stream, [*(source for source, _ in wanted.values()), *columns.order])
    reason = F.coalesce(*(_reason(source, column) for source, column in wanted.values()))
    out = [column.alias(name) for name, (_, column) in wanted.items()]
    row = F.to_json(F.struct(*(F.col(name) for name in stream.columns)))
    order = [F.col(name).alias(f"_order_{i}") for i, name in enumerate(columns.order)]
    return stream.select(*out, reason.alias(_REASON), row.alias(_ROW), *order)


def _require_columns(stream: DataFrame, names: Iterable[str]) -> None:
    for name in names:
        if name not in stream.columns:
            msg = f"the stream has no column {name!r}; its columns are {', '.join(stream.columns)}"
            raise InputProblem(msg)


def _type(stream: DataFrame, name: str) -> DataType:
    _require_columns(stream, [name])
    return stream.schema[name].dataType


def _time(stream: DataFrame, name: str, unit: int) -> Column:
    kind, column = _type(stream, name), F.col(name)
    if isinstance(kind, (TimestampType, TimestampNTZType, DateType)):
        return F.unix_micros(column.cast("timestamp"))
    if isinstance(kind, IntegralType):
        return F.try_multiply(column.cast("bigint"), F.lit(unit))
    if isinstance(kind, NumericType):
        return F.round(column * unit).try_cast("bigint")
    if isinstance(kind, StringType):
        whole = F.try_multiply(column.try_cast("bigint"), F.lit(unit))
        fraction = F.round(column.try_cast("double") * unit).try_cast("bigint")
        return F.coalesce(whole, fraction, F.unix_micros(column.try_cast("timestamp")))
    msg = f"column {name!r} holds {kind.simpleString()}; it must hold times"
    raise InputProblem(msg)


def _number(stream: DataFrame, name: str) -> Column:
    kind = _type(stream, name)
    if isinstance(kind, (NumericType, StringType)):
        return F.col(name).try_cast("double")
    msg = f"column {name!r} holds {kind.simpleString()}; it must hold numbers"
    raise InputProblem(msg)


def _identity(stream: DataFrame, name: str) -> Column:
    kind = _type(stream, name)
    if isinstance(kind, IntegralType):
        return F.col(name).cast("bigint")
    if isinstance(kind, StringType):
        return F.when(F.col(name).isNotNull(), F.xxhash64(name))
    msg = f"column {name!r} holds {kind.simpleString()}; identities are integers or text"
    raise InputProblem(msg)


def _reason(source: str, column: Column) -> Column:
    text = F.substring(F.col(source).cast("string"), 1, 60)
    unreadable = F.concat(F.lit(f"{source} cannot be read: "), text)
    return F.when(F.col(source).isNull(), F.lit(f"{source} is NULL")).when(
        column.isNull(), unreadable
    )


def _land(folder: Path, columns: Columns, batch: DataFrame, number: int) -> None:
    """Write one micro-batch; whatever of it is there already was complete, and stays."""
    logs = folder / "_landing" / "batches"
    log, target = logs / f"{number}.json", folder / f"batch-{number:08d}.parquet"
    if log.exists():
        return
    before = logs / f"{number - 1}.json"
    first = json.loads(before.read_text())["next_seq"] if before.exists() else 0
    refused = folder / "_rejected" / f"batch-{number:08d}.parquet"
    if not target.exists():
        order = [name for name in batch.columns if name.startswith("_order_")]
        rows = batch.coalesce(1)
        if order:
            rows = rows.sortWithinPartitions(*order)
        now = time.time_ns() // 1000
        write = _writer(_hidden(target), _hidden(refused), first, now)
        landed = rows.drop(*order).mapInArrow(write, "landed long, rejected long").first()
        if landed is not None and landed["rejected"]:
            _hidden(refused).replace(refused)
        if landed is not None and landed["landed"]:
            _publish(_hidden(target), target)
    landed_rows = pq.read_metadata(target).num_rows if target.exists() else 0
    rejected_rows = pq.read_metadata(refused).num_rows if refused.exists() else 0
    done = {"landed": landed_rows, "rejected": rejected_rows, "next_seq": first + landed_rows}
    scratch = log.with_suffix(".tmp")
    scratch.write_text(json.dumps(done), encoding="utf-8")
    scratch.replace(log)


def _hidden(path: Path) -> Path:
    return path.with_name(f".{path.name}.tmp")


def _writer(
    target: Path, refused: Path, first: int, now_us: int
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Stage for ``mapInArrow``: writes good and bad rows to two files, gives their counts."""

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        landed = refusals = 0
        good = bad = None
        for batch in batches:
            rows = pa.Table.from_batches([batch])
            fine = rows.column(_REASON).is_null()
            kept = _numbered(rows.filter(fine), first + landed, now_us)
            refusal = rows.filter(pa.compute.invert(fine)).select([_REASON, _ROW])
            good = good or pq.ParquetWriter(target, kept.schema, compression="zstd")
            good.write_table(kept)
            bad = bad or pq.ParquetWriter(refused, pa.schema(_REFUSAL), compression="zstd")
            bad.write_table(refusal.rename_columns(["reason", "row"]).cast(pa.schema(_REFUSAL)))
            landed, refusals = landed + kept.num_rows, refusals + refusal.num_rows
        for writer, path, count in ((good, target, landed), (bad, refused, refusals)):
            if writer is not None:
                writer.close()
                if not count:
                    path.unlink()
        yield pa.RecordBatch.from_pydict({"landed": [landed], "rejected": [refusals]})

    return write


_REFUSAL = [pa.field("reason", pa.string()), pa.field("row", pa.string())]


def _numbered(rows: pa.Table, first: int, now_us: int) -> pa.Table:
    """Rows with their arrival numbers, and with what the stream did not have."""
    seq = pa.array(range(first, first + rows.num_rows), pa.int64())
    rows = rows.drop_columns([_REASON, _ROW]).append_column("seq", seq)
    if "source_id" not in rows.column_names:
        rows = rows.append_column("source_id", seq)
    if "arrival_us" not in rows.column_names:
        arrival = pa.array([now_us] * rows.num_rows, pa.int64())
        rows = rows.append_column("arrival_us", arrival)
    return rows

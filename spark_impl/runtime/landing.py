"""Lands any streaming DataFrame in a history, the folder that queries read.

    00000007.parquet                      the arrivals of micro-batch 7
    _rejected/batch=7/part-00000.parquet  the rows of micro-batch 7 that are no arrivals, and why
    _landing.json                         settings; the checkpoint holds the same file
    _scratch/                             files of workers while a micro-batch is landed

Rules of this file:

* The file of a micro-batch never changes: queries may have read it.
* All work before that file is discarded and repeated when Spark replays the micro-batch.
* The history is its own record: arrival numbers continue those of its last file.
"""

import json
import shutil
import uuid
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, types
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from model.vocabulary.settings import JsonObject
from spark_impl.runtime.arrays import PlainRow
from spark_impl.runtime.failures import wait_for
from spark_impl.runtime.histories import (
    COLUMNS,
    DATA_FILES,
    InputProblem,
    append,
    complete,
    escape_pattern,
    tidy,
)

VERSION = 1
UNITS_US = {"us": 1, "ms": 1_000, "s": 1_000_000}
"""Units of numeric times, in microseconds."""
_READ = ("event_time_us", "value", "key", "source_id", "arrival_us")
"""Columns that can come from the stream, in the order in which they are checked."""
_TIMES = ("event_time_us", "arrival_us")
_REJECTED = pa.schema([(name, pa.string()) for name in ("column", "reason", "text", "row")])
_OURS = ("_fault", "_place")  # on the way to the workers
_INDEX = "kind string, place string, number long, path string"  # of the workers' scratch files


class Landing:
    """Writes the rows of ``stream`` into ``history``, each once, and resumes after every stop.

    These arguments name columns of the stream:

    * ``event_time`` and ``value``;
    * ``key``; default: the key ``""`` for all rows;
    * ``source_id``: a whole number that identifies a tuple; default: the arrival number, so that
      every row is a tuple of its own;
    * ``arrival``; default: the time at which Spark planned the micro-batch, never decreasing;
    * ``group_columns``.

    ``time_unit`` is the unit of times that are not timestamps already: ``"us"``, ``"ms"`` or
    ``"s"`` since 1970, as numbers or text, or ``"timestamp"``: text like ``2013-01-01T05:15:00Z``,
    without a zone in the time zone of the session. Fractions of a microsecond are cut off.

    A row with a column that is NULL or cannot be read goes to :meth:`rejected`; the stream goes on.
    Values that are not finite can be read. A source of CSV files turns values that do not fit its
    schema into NULL; let it read text.

    A micro-batch becomes one file. Rows are numbered from 0 on, without gaps, in the order of the
    modification times and names of their files, then as Spark reads them: partition by partition.
    Workers parse rows into scratch files, which the driver maps into memory: it needs 16 bytes a
    row, and room for a million rows. ``maxFilesPerTrigger`` or ``maxOffsetsPerTrigger`` bound the
    size of a micro-batch. Only one landing may write into a history at a time. The folders must be
    reachable under the same paths from the driver and from all workers.

    Raises :class:`InputProblem` with one sentence, and writes nothing, if a column is missing or
    has a wrong type, or if the history was landed with another checkpoint or other settings.
    """

    def __init__(
        self,
        stream: DataFrame,
        history: str | Path,
        checkpoint: str | Path,
        *,
        event_time: str,
        value: str,
        key: str | None = None,
        source_id: str | None = None,
        arrival: str | None = None,
        group_columns: Collection[str] = (),
        time_unit: str = "timestamp",
    ) -> None:
        if not stream.isStreaming:
            msg = "the DataFrame to land is no stream; read it with spark.readStream"
            raise InputProblem(msg)
        if time_unit not in (*UNITS_US, "timestamp"):
            msg = f"time_unit {time_unit!r} is none of {', '.join(UNITS_US)}, timestamp"
            raise InputProblem(msg)
        chosen = dict(zip(_READ, (event_time, value, key, source_id, arrival), strict=True))
        groups = list(dict.fromkeys(group_columns))
        taken = [name for name in groups if name in (*COLUMNS, *_OURS)]
        if taken:
            msg = f"a grouping column cannot be called {taken[0]!r}, which is taken"
            raise InputProblem(msg)
        self._history, self._checkpoint = Path(history).absolute(), Path(checkpoint).absolute()
        self._own_clock = arrival is None
        self._rows = _select_typed(stream, _fields_of(stream, chosen, groups, time_unit))
        kinds = {field.name: field.type for field in to_arrow_schema(self._rows.schema)}
        self._schema = pa.schema((name, kinds[name]) for name in kinds if name not in _OURS)
        settings = {
            "version": VERSION,
            **{name.removesuffix("_us"): source for name, source in chosen.items()},
            "group_columns": {name: str(kinds[name]) for name in groups},
            "time_unit": time_unit,
            "time_zone": stream.sparkSession.conf.get("spark.sql.session.timeZone"),
        }
        _open(self._history, self._checkpoint, settings)

    def run_available(self) -> None:
        """Land all rows that are in the source now."""
        wait_for(self._writer().trigger(availableNow=True).start(), InputProblem, self._history)

    def start(self, interval: str = "0 seconds") -> StreamingQuery:
        """Start landing and leave it running."""
        return self._writer().trigger(processingTime=interval).start()

    def rejected(self) -> DataFrame:
        """Return the rows that are no arrivals.

        The columns are ``column`` (the first one with a fault), ``reason``, ``text`` (the content
        of that column), ``row`` (all columns of the stream as JSON) and ``batch``.
        """
        columns = ", ".join(f"{name} string" for name in _REJECTED.names)
        read = self._rows.sparkSession.read.schema(f"{columns}, batch long")
        return read.parquet(escape_pattern(self._history / "_rejected"))

    def counts(self) -> tuple[int, int]:
        """Return the number of rows landed and of rows rejected until now."""
        tables = map(self._history.glob, (DATA_FILES, "_rejected/batch=*/part-*.parquet"))
        landed, rejected = (sum(pq.read_metadata(p).num_rows for p in paths) for paths in tables)
        return landed, rejected

    def _writer(self) -> DataStreamWriter:
        tidy(self._checkpoint)
        out: DataStreamWriter = (
            self._rows.writeStream.outputMode("append")
            .option("checkpointLocation", str(self._checkpoint))
            .foreachBatch(self._land)
        )
        return out

    def _land(self, rows: DataFrame, batch: int) -> None:
        """Write everything of a micro-batch; Spark calls this, and again after a crash."""
        last, scratch = _last(self._history), self._history / "_scratch"
        shutil.rmtree(scratch, ignore_errors=True)
        for cut_short in self._history.glob(".*.parquet.*"):
            cut_short.unlink()
        if batch == last.batch:  # landed, but Spark stopped before it committed
            rows.write.format("noop").mode("append").save()  # Spark's own state must be complete
            return
        if batch < last.batch:
            msg = f"{self._checkpoint} is at batch {batch}, {self._history} at {last.batch} already"
            raise InputProblem(msg)
        rejected = self._history / f"_rejected/batch={batch}"
        shutil.rmtree(rejected, ignore_errors=True)
        scratch.mkdir()
        hand_over = partial(_hand_over, folder=str(scratch), landed=self._schema)
        index = rows.mapInArrow(hand_over, _INDEX).toArrow().to_pylist()
        bad = _gather(index, "rejected", _REJECTED)
        if bad.num_rows:
            append(rejected, bad, "part-00000")
        good = _gather(index, "landed", self._schema)
        if good.num_rows:
            append(self._history, self._number_rows(good, last), f"{batch:08d}")
        shutil.rmtree(scratch)

    def _number_rows(self, rows: pa.Table, last: "_Last") -> pa.Table:
        """Return the rows as arrivals that follow ``last``."""
        seq = pa.array(np.arange(last.seq + 1, last.seq + 1 + rows.num_rows))
        columns = {
            "seq": seq,
            "source_id": seq,
            **dict(zip(rows.column_names, rows.columns, strict=True)),
        }
        if self._own_clock:  # a clock may have been put back
            columns["arrival_us"] = pc.max_element_wise(columns["arrival_us"], last.arrival_us)
        order = [*COLUMNS, *(name for name in columns if name not in COLUMNS)]
        return pa.table({name: columns[name] for name in order})


class _Field(NamedTuple):
    name: str
    typed: Column
    """NULL if the stream holds something else."""
    source: str | None = None


def _fields_of(
    stream: DataFrame, chosen: dict[str, str | None], groups: Collection[str], unit: str
) -> list[_Field]:
    """Return the columns of the history, without the arrival number."""
    kinds = {field.name: field.dataType for field in stream.schema}
    fields = []
    for name, source in [*chosen.items(), *zip(groups, groups, strict=True)]:
        if source is not None:
            if source not in kinds:
                msg = f"the stream has no column {source!r}; its columns are {', '.join(kinds)}"
                raise InputProblem(msg)
            typed = _read(name, _quote(source), kinds[source], unit)
            if typed is None:
                is_a, note = kinds[source].simpleString(), f" with time_unit {unit!r}"
                msg = f"column {source!r} holds {is_a}, not {_requirement(name)}"
                raise InputProblem(msg + note * (name in _TIMES))
            fields.append(_Field(name, typed, source))
    if chosen["key"] is None:
        fields.append(_Field("key", F.lit("")))
    if chosen["arrival_us"] is None:
        # In a stream this is the time in Spark's log of offsets, so a replay gets the same time.
        fields.append(_Field("arrival_us", F.unix_micros(F.current_timestamp())))
    return fields


def _read(name: str, column: Column, kind: types.DataType, unit: str) -> Column | None:
    """Return a column as the history's ``name``, with NULL for bad values; None for a bad type."""
    text, whole = isinstance(kind, types.StringType), isinstance(kind, types.IntegralType)
    if name in _TIMES:
        return _read_time(column, kind, unit)
    if name == "value":
        number = column.try_cast("double")
        if text:  # to Java "1f" and "0x1p3" are numbers
            return F.when(~column.rlike(r"[xX]|[\d.][dDfF]\s*$"), number)
        return number if isinstance(kind, types.NumericType) else None
    if name == "key" and isinstance(kind, types.BinaryType):
        return F.try_validate_utf8(column.cast("string"))
    if not text and not whole:
        return None
    if name == "key" or (text and name != "source_id"):
        return column.cast("string")
    return column.try_cast("bigint")


def _read_time(column: Column, kind: types.DataType, unit: str) -> Column | None:
    if isinstance(kind, types.TimestampType | types.TimestampNTZType | types.DateType):
        return F.unix_micros(column.cast("timestamp"))
    if unit == "timestamp" and isinstance(kind, types.StringType):
        begins_with_a_date = column.rlike(r"^\s*[+-]?\d{4,6}-\d")  # to Spark "12:30" is today
        return F.when(begins_with_a_date, F.unix_micros(column.try_cast("timestamp")))
    if unit != "timestamp" and isinstance(kind, types.StringType | types.NumericType):
        number = column.try_cast("decimal(28,9)") * F.lit(UNITS_US[unit]).cast("decimal(7,0)")
        return F.floor(number).try_cast("bigint")
    return None


def _requirement(name: str) -> str:
    wanted = {"value": "a number", "key": "text", "source_id": "a whole number"}
    return "a time" if name in _TIMES else wanted.get(name, "text or a whole number")


def _quote(name: str) -> Column:
    return F.col("`" + name.replace("`", "``") + "`")


def _select_typed(stream: DataFrame, fields: Sequence[_Field]) -> DataFrame:
    """Return the columns of the history, ``_fault`` (the fault of a row) and ``_place``."""
    everything = F.struct(*(_quote(name).alias(name) for name in stream.columns))
    row = F.to_json(everything, {"ignoreNullFields": "false"})
    faults = []
    for field in fields:
        if field.source is not None:
            column = _quote(field.source)
            binary = isinstance(stream.schema[field.source].dataType, types.BinaryType)
            text = F.hex(column) if binary else column.cast("string")
            other = F.when(field.typed.isNull(), f"not {_requirement(field.name)}")
            reason = F.when(column.isNull(), "NULL").otherwise(other)
            said = zip(_REJECTED.names, (F.lit(field.source), reason, text, row), strict=True)
            fault = F.struct(*(part.alias(name) for name, part in said))
            faults.append(F.when(reason.isNotNull(), fault))
    typed = [field.typed.alias(field.name) for field in fields]
    place = _place(stream).alias("_place")
    return stream.select(*typed, F.coalesce(*faults).alias("_fault"), place)


def _place(stream: DataFrame) -> Column:
    """Return text that sorts rows by times and names of files; Spark reads large files first."""
    partition = F.lpad(F.spark_partition_id().cast("string"), 10, "0")
    try:
        file = stream.metadataColumn("_metadata")
        numbers = F.unix_micros(file["file_modification_time"]), file["file_block_start"]
        time, start = (F.lpad(number.cast("string"), 20, "0") for number in numbers)
        place = F.concat_ws("\t", time, file["file_path"], start, partition)
        stream.select(place)
    except AnalysisException:  # the rows do not come from files
        return partition
    return place


def _hand_over(
    batches: Iterable[pa.RecordBatch], folder: str, landed: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Write rows to two scratch files and yield an index of them; a stage for ``mapInArrow``."""
    attempt, index = uuid.uuid4().hex, []
    with ExitStack() as stack:
        files = {}
        for kind, schema in (("landed", landed), ("rejected", _REJECTED)):
            path = f"{folder}/{kind}-{attempt}.arrow"
            files[kind] = path, schema, stack.enter_context(pa.ipc.new_file(path, schema))
        for batch in batches:
            for place, rows in _by_place(batch):
                fault = rows.column("_fault")
                good = rows.select(landed.names).filter(fault.is_null())
                bad = pa.RecordBatch.from_struct_array(fault.drop_null())
                for kind, part in (("landed", good), ("rejected", bad)):
                    if part.num_rows:
                        path, schema, file = files[kind]
                        number = file.stats.num_record_batches
                        file.write_batch(part.cast(schema))
                        index.append({"kind": kind, "place": place, "number": number, "path": path})
    if index:
        yield pa.RecordBatch.from_pylist(index)


def _by_place(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the rows of every place, in their order."""
    column = batch.column("_place").dictionary_encode()
    codes, places = column.indices.to_numpy(), column.dictionary.to_pylist()
    if len(places) > 1:
        batch = batch.take(pa.array(np.argsort(codes, kind="stable")))
    sizes = np.bincount(codes, minlength=len(places))
    starts = np.cumsum(sizes) - sizes
    for place, start, size in zip(places, starts.tolist(), sizes.tolist(), strict=True):
        yield place, batch.slice(start, size)


def _gather(index: Iterable[PlainRow], kind: str, schema: pa.Schema) -> pa.Table:
    """Return the rows of the workers in the order of arrival, mapped from their scratch files."""
    entries = [entry for entry in index if entry["kind"] == kind]
    paths = {entry["path"] for entry in entries}
    files = {path: pa.ipc.open_file(pa.memory_map(path)) for path in paths}
    entries.sort(key=lambda entry: (entry["place"], entry["number"]))
    batches = [files[entry["path"]].get_batch(entry["number"]) for entry in entries]
    return pa.Table.from_batches(batches, schema)


class _Last(NamedTuple):
    batch: int
    seq: int
    arrival_us: int


def _last(history: Path) -> _Last:
    """Return the last micro-batch, arrival number and arrival time of a history."""
    path = max(history.glob(DATA_FILES), key=lambda path: int(path.stem), default=None)
    if path is None:
        return _Last(-1, -1, -(1 << 63))
    footer = pq.read_metadata(path)
    groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
    at = {footer.schema.column(i).path: i for i in range(footer.num_columns)}
    greatest = [max(g.column(at[c]).statistics.max for g in groups) for c in ("seq", "arrival_us")]
    return _Last(int(path.stem), *greatest)


def _open(history: Path, checkpoint: Path, settings: JsonObject) -> None:
    """Begin a history, or check that it can be resumed."""
    notes = [folder / "_landing.json" for folder in (checkpoint, history)]
    there, here = (json.loads(note.read_text()) if note.exists() else None for note in notes)
    if here is None and not (checkpoint / "offsets").exists():
        if not any(history.glob(DATA_FILES)):
            _begin(history, checkpoint, json.dumps({"landing": uuid.uuid4().hex, **settings}))
            return
        msg = f"{history} holds files that were not landed there"
    elif here is None or here != there:
        msg = f"{history} was not landed with the checkpoint {checkpoint}"
    else:
        name = next((name for name in settings if here.get(name) != settings[name]), None)
        if name is None:
            return
        msg = f"{history} was landed with {name} = {here.get(name)!r}, not {settings[name]!r}"
    raise InputProblem(msg)


def _begin(history: Path, checkpoint: Path, note: str) -> None:
    (history / "_rejected").mkdir(parents=True, exist_ok=True)
    checkpoint.mkdir(parents=True, exist_ok=True)
    for folder in (checkpoint, history):  # the history last: it decides whether a landing has begun
        with complete(folder / "_landing.json") as scratch:
            scratch.write_text(note)

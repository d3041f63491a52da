"""Lands any streaming DataFrame in a history, the folder that queries read.

    00000007.parquet                   the arrivals of one micro-batch
    _rejected/<batch>-<plan>-<n>-<m>.parquet
                                       n faults of a micro-batch, of which m rows did not land
    _landing.json                      settings; the checkpoint holds the same file, and in
                                       _landed.json the digest of the last file
    _stopped/<batch>.parquet           the rows for which a micro-batch did not land
    _scratch/                          files of workers while a micro-batch is landed

Rules of this file:

* The file of a micro-batch never changes: queries may have read it. The file holds the number of
  its micro-batch and a digest of Spark's plan for it. By these a landing recognises a micro-batch
  that Spark repeats after a crash, and tells it from one that a copy of the checkpoint has planned.
* Workers write scratch files. The driver checks such a file and gives it its final name; only on S3
  do rows pass through the driver. A worker that Spark has abandoned, or whose driver was killed,
  may go on writing without harm: its file never gets a final name, and is removed after a day.
* A file gets a name that no file has: if another landing has written the history meanwhile, this
  one stops, and has changed nothing.
* The list of rejected rows gets its name after the file of the micro-batch; the note of the file in
  ``_landed.json`` is written last. After a crash in between, the repeated micro-batch lists its
  rejected rows anew, and stops if other rows would land than the file has.
* The history is its own record: arrival numbers continue those of its last file, which also says
  how many rows Spark had handed in until then.
"""

import time
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Row
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery

from model.vocabulary.durations import duration_us
from spark_impl.runtime import packages
from spark_impl.runtime.accounts import REFUSED, Ledger, ledger_of_landing
from spark_impl.runtime.cell_times import NUMBER_UNITS_US, Duration
from spark_impl.runtime.columns import (
    FAULTS,
    STREAM,
    TAKEN,
    TIMESTAMP,
    Chosen,
    in_order,
    label_streams,
    union_typed,
)
from spark_impl.runtime.histories import (
    SOURCE_TEXT,
    file_of,
    history_schema,
    name_values,
    read_footer,
    read_parquet,
)
from spark_impl.runtime.history_chain import note_landed, note_of_next, read_landed, require_landed
from spark_impl.runtime.landed_files import (
    BATCH,
    PLAN,
    LastFile,
    find_last,
    last_of,
    name_of_list,
    rejected_lists,
    require_same,
    rows_before,
)
from spark_impl.runtime.left_out import LeftOut, files_left_out
from spark_impl.runtime.limits import Limit, Limits
from spark_impl.runtime.numbering import LANDED, REJECTED, WRITTEN, write_in_order
from spark_impl.runtime.provenance import identity_of, open_history
from spark_impl.runtime.queries import Runnable, last_logged, read_files, start_batches
from spark_impl.runtime.storage import Address, InputProblem, Location, locate
from spark_impl.runtime.tables import digest_of, require_plan

VERSION = 2
_OLD_NS = 86_400 * 10**9
"""Age (ns) at which scratch files count as abandoned."""


class Landing(Runnable):
    """Writes the rows of ``stream`` into ``history``, each once, and resumes after every stop.

    A row whose time, key, identity or grouping column is missing or cannot be read goes to
    :meth:`rejected`; the stream goes on. A row lands whatever its values are: a value that cannot
    be read is NULL in the history, and has a row of its own in :meth:`rejected`. A source of CSV
    files turns values that do not fit its schema into NULL; declare all columns of such a source as
    strings.

    A micro-batch becomes one file, or none if it has no arrivals. Rows are numbered from 0 on,
    without gaps. All rows of a micro-batch arrive before those of the next one. Within a
    micro-batch, whatever the number of partitions, rows arrive in this order:

    * by the column ``arrival``, if it is named; the next points order rows with equal times;
    * for rows of files: by modification time and path, then as in the file;
    * for rows with Kafka's columns ``topic``, ``partition``, ``offset`` and ``timestamp``: each
      partition in the order of its offsets, and partitions merged by timestamp. A row whose
      timestamp is before that of an earlier row of its partition counts as arrived with that row:
      sorting by the clocks of producers would hide disorder;
    * for all others: each of Spark's partitions in its own order, and partitions take turns, row by
      row. Spark's sources ``rate``, ``rate-micro-batch`` and ``socket`` deal out their rows in this
      way, so their order is exact unless rows were filtered out. For sources that fill their
      partitions in another way, this order is a guess: name ``arrival``.

    Rows are never sorted by event time, unless it is named as ``arrival``. Arrival times never
    decrease: a time below an earlier arrival time is raised to the earlier one.

    One task for each micro-batch sorts, numbers and writes its rows; ``maxFilesPerTrigger`` or
    ``maxOffsetsPerTrigger`` bound their number. The driver and all workers have to reach the
    history under one address. The constructor creates the folder, so that queries can wait for its
    first file.

    Raises :class:`InputProblem` with one sentence, and writes nothing, if a column is missing or
    has a wrong type, or if the history was landed with another checkpoint or other settings.

    Args:
        stream: the rows. A dict ``{"R": trips, "S": fares}`` lands several streams in one order of
            arrival, with their names in the grouping column ``stream``;
            :func:`spark_impl.join.from_history` reads them as the streams of a join.
        history: folder for the rows.
        checkpoint: folder for Spark's own files.
        event_time: column with the time of a row.
        value: column of values; a list such as ``["watts", "celsius"]`` becomes ``value_watts`` and
            ``value_celsius``.
        key: column of keys; None gives all rows the key ``""``.
        source_id: column with a whole number or a text that identifies a row; None takes the
            arrival number, so that every row counts.
        arrival: column with arrival times; None: the time at which Spark planned the micro-batch.
        group_columns: columns that keep streams apart.
        time_unit: unit of times that are no timestamps, as for :func:`over`.
        max_future: longest time from arrival to event time, as for :func:`over`; another run may
            have another one, unless it has to finish a micro-batch whose file is there.
        max_refused: limit of refused rows, at which the landing stops, as for a query.

    Examples:
        >>> names = "device string, at string, watts string"
        >>> rows = [("a", "2026-03-01T08:00:01Z", "5"), ("a", "yesterday", "6")]
        >>> spark.createDataFrame(rows, names).write.csv(f"{folder}/readings")
        >>> stream = spark.readStream.schema(names).csv(f"{folder}/readings")
        >>> places = f"{folder}/history", f"{folder}/checkpoint"
        >>> landing = Landing(stream, *places, event_time="at", value="watts", key="device")
        >>> landing.run_available()
        >>> [(row.column, row.text) for row in landing.rejected().collect()]
        [('at', 'yesterday')]
        >>> spark.read.parquet(f"{folder}/history").select("seq", "key", "value").collect()
        [Row(seq=0, key='a', value=5.0)]
    """

    _last: LastFile | None = None
    _read: int | None = None

    def __init__(
        self,
        stream: DataFrame | Mapping[str, DataFrame],
        history: Address,
        checkpoint: Address,
        *,
        event_time: str,
        value: str | Sequence[str],
        key: str | None = None,
        source_id: str | None = None,
        arrival: str | None = None,
        group_columns: Collection[str] = (),
        time_unit: str = TIMESTAMP,
        max_future: Duration | None = "1 day",
        max_refused: Limit = None,
    ) -> None:
        if time_unit not in (*NUMBER_UNITS_US, "ns", TIMESTAMP):
            units = ", ".join(NUMBER_UNITS_US)
            msg = f"time_unit is {time_unit!r}; it must be one of {units}, ns, {TIMESTAMP}"
            raise InputProblem(msg)
        streams = label_streams(stream)
        names = sorted(stream) if isinstance(stream, Mapping) else None
        groups = list(dict.fromkeys([*([] if names is None else [STREAM]), *group_columns]))
        values = name_values(value)
        _require_free(groups, {*TAKEN, *(name.lower() for name in values)})
        named = {
            "event_time_us": event_time,
            **values,
            "key": key,
            "source_id": source_id,
            "arrival_us": arrival,
        }
        has_list = not isinstance(value, str)
        chosen = Chosen(named, values.keys(), groups, time_unit, _read_guard(max_future))
        self._history, self._checkpoint = locate(history), locate(checkpoint)
        self._by_arrival, self._values = arrival is not None, values
        self._limits = Limits(refused=max_refused)
        self.identity = source_id
        """Column of the stream with the identities; None if the stream has none."""
        self._spark = streams[0].sparkSession
        # First, because code for workers keeps the interpreter that is chosen when it is made.
        packages.prepare_workers(self._spark.sparkContext)
        self._rows = union_typed(streams, chosen)
        kinds = {field.name: field.type for field in to_arrow_schema(self._rows.schema)}
        own = history_schema(values=[*values], has_texts=SOURCE_TEXT in kinds)
        self._schema = pa.schema([*own, *(pa.field(name, kinds[name]) for name in groups)])
        self._settings = {
            "version": VERSION,
            "event_time": event_time,
            "value": [*values.values()] if has_list else value,
            "key": key,
            "source_id": source_id,
            "arrival": arrival,
            "group_columns": {name: str(kinds[name]) for name in groups},
            "streams": names,
            "time_unit": time_unit,
        }
        self._open()

    @property
    def _root(self) -> Location:
        return self._history

    def rejected(self) -> DataFrame:
        """Return the rows that could not be read.

        The columns are ``column`` (of a row that did not land, the first one with a fault),
        ``reason``, ``text`` (the content of that column), ``row`` (all columns of the stream as
        JSON), ``seq`` and ``batch``. A row that landed without some of its values is listed once
        for each of them, with its arrival number ``seq``. A row that did not land has NULL there.
        """
        files = [each.file for each in rejected_lists(self._history)]
        return read_files(self._spark, files, FAULTS)

    def not_landed(self) -> int:
        """Return the number of rows that have not landed so far."""
        return sum(each.gone for each in rejected_lists(self._history))

    def ledger(self) -> Ledger:
        """Return where each row is that Spark has handed in; landed rows count as pending."""
        return ledger_of_landing(self._history, self._checkpoint)

    def left_out(self) -> list[LeftOut]:
        """Return the files that Spark's file source has not read and will not read, with reasons.

        Other sources leave no files out.
        """
        return files_left_out(self._rows, self._checkpoint)

    def _start(self, interval: Duration | None = None) -> StreamingQuery:
        # Once more, because another landing may have begun the history at the same time.
        self._open()
        self._last = self._read = None  # another landing may have added rows since
        self._require_last()
        _remove_old(self._history / "_scratch")
        return start_batches(self._rows, self._checkpoint, self._land, interval)

    def _open(self) -> None:
        is_planned = last_logged(self._checkpoint, "offsets") >= 0
        open_history(self._history, self._checkpoint, self._settings, is_planned=is_planned)

    def _require_last(self) -> LastFile:
        """Return the last file.

        Raise :class:`InputProblem` if Spark has planned other rows for its micro-batch, or is yet
        to plan it: rows that have come since would be taken for landed.
        """
        batch = last_logged(self._checkpoint, "offsets") + 1
        last = find_last(self._history)
        require_landed(self._history, self._checkpoint, last.number)
        done = max([last.batch, *(each.batch for each in rejected_lists(self._history))])
        if batch <= done:
            msg = f"{self._checkpoint} is at batch {batch}, {self._history} at {done} already"
            raise InputProblem(msg)
        file = file_of(self._history, last.number)
        require_plan(file, last.plan, self._checkpoint, last.batch)
        return last

    def _land(self, rows: DataFrame, batch: int) -> None:
        """Write all files of a micro-batch; after a crash Spark calls this function again."""
        is_first = self._last is None  # Spark repeats only a run's first micro-batch
        self._last = last = self._last or self._require_last()
        is_landed = batch == last.batch  # Spark stopped before its commit
        if is_landed and (read_landed(self._checkpoint) or {}).get("number") == last.number:
            return
        # Nobody else writes here, not even another landing of the same micro-batch.
        scratch = self._history / "_scratch" / uuid.uuid4().hex
        identity = identity_of(self._history)
        note = note_of_next(self._history, last.number + 1, identity)
        plan = digest_of(self._checkpoint, batch)
        if self._read is None:
            lists = rejected_lists(self._history)
            self._read = rows_before(lists, last, self._checkpoint, batch)
        write = partial(
            write_in_order,
            schema=self._schema.with_metadata({BATCH: str(batch), PLAN: str(plan), **note}),
            read=self._read,
            scratch=scratch,
            batch=batch,
            first=last.first if is_landed else last.seq + 1,
            since_us=last.arrival_us,
            nullable=[*self._values],
        )
        ordered = in_order(rows, by_arrival=self._by_arrival)
        found = ordered.mapInArrow(write, WRITTEN).collect()
        written = {each.table: (locate(each.file), each) for each in found}
        footers = {name: _read_whole(file, each.rows) for name, (file, each) in written.items()}
        folder, name = self._history / "_rejected", f"{batch:08d}-{plan:x}"
        old = {*folder.children(rf"{name}-.+")} if is_first else set()
        if REJECTED in written and not is_landed and not old:
            self._require_limit(last, batch, *written[REJECTED])
        if is_landed:
            file = file_of(self._history, last.number)
            require_same(file, last, footers[LANDED].num_rows if LANDED in footers else 0)
        elif LANDED in written:
            new = file_of(self._history, last.number + 1)
            last = last_of(new, footers[LANDED])
            written[LANDED][0].publish(new)
        if REJECTED in written:
            file, each = written[REJECTED]
            new = folder / name_of_list(batch, plan, each.rows, each.gone)
            file.move(new)
            old.discard(new)
        for file in old:  # a run with another guard has listed them
            file.remove()
        if LANDED in written:
            note_landed(self._checkpoint, file_of(self._history, last.number))
        self._limits.settle(batch)
        scratch.remove()
        self._last = last
        if found and not is_landed:
            self._read = found[0].read

    def _require_limit(self, last: LastFile, batch: int, file: Location, written: Row) -> None:
        """Raise :class:`InputProblem` if a micro-batch behind a file has too many refused rows."""
        before = self._read
        assert before is not None  # the caller has counted them

        def take() -> pa.Table:
            rows = read_parquet([file], FAULTS, pc.field("seq").is_null())
            file.parent.remove()
            return rows

        counts = written.gone, written.read - before
        earlier = before - (last.seq + 1)
        self._limits.require(
            REFUSED, *counts, batch, self._history, earlier=lambda: earlier, listed=take
        )


def _remove_old(scratch: Location) -> None:
    """Remove the files of workers whose landing has ended without removing them."""
    before_ns = time.time_ns() - _OLD_NS
    for folder in scratch.children():
        files = folder.entries()
        if all((each.mtime_ns or 0) < before_ns for each in [folder.info(), *files]):
            folder.remove()


def _read_guard(max_future: object) -> int | None:
    """Return the guard against wrong clocks in microseconds, None for none."""
    if max_future is None:
        return None
    try:
        found = duration_us("max_future", max_future)
    except ValueError as error:
        raise InputProblem(str(error)) from error
    if found < 0:
        msg = f"max_future is {max_future!r}; it must be a duration >= 0, or None for no guard"
        raise InputProblem(msg)
    return found


def _require_free(groups: Iterable[str], taken: Collection[str]) -> None:
    """Raise :class:`InputProblem` for a grouping column with the name of another column."""
    for name in groups:
        if name.lower() in taken:  # Spark ignores the case of names
            msg = f"a grouping column cannot be called {name!r}, which is taken"
            raise InputProblem(msg)


def _read_whole(file: Location, rows: int) -> pq.FileMetaData:
    """Return the footer of a scratch file. Raise :class:`InputProblem` unless it has all rows."""
    footer = read_footer(file) if file.exists() else None
    if footer is None or footer.num_rows != rows:
        msg = (
            f"{file} does not hold the {rows} rows that a worker wrote: the driver and all workers"
            " have to reach one folder under this address"
        )
        raise InputProblem(msg)
    return footer

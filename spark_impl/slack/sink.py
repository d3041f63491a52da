"""What the stream part found in one micro-batch, on its way to the store.

Tasks write it where they run. A part is named after the partition, so a partition that Spark runs
twice writes the same files, and after a crash the same batch writes the same parts.
"""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from model.vocabulary import SlackConfig
from spark_impl.slack import quality
from spark_impl.slack.arrivals import REASONS
from spark_impl.slack.blocks import FLAWS
from spark_impl.slack.records import JUDGED, LATE, REJECTED, RESULT, Clock, Output, Records
from spark_impl.slack.store import TABLES, Store

_RECORDS = {"result": RESULT, "late": LATE, "judged": JUDGED, "rejected": REJECTED}
_ALL_REASONS = np.array(["", *REASONS, *FLAWS], dtype=object)
_BATCH_ID = "streaming.sql.batchId"


class _Found(NamedTuple):
    """What a micro-batch gave in one task."""

    who: tuple[Any, ...]
    clock: Clock
    output: Output
    flushed: bool


class Parts:
    """Collects what the tasks of a partition found, and writes it at the end."""

    def __init__(self, store: Store, config: SlackConfig) -> None:
        self._store = store
        self._config = config
        self._found: list[_Found] = []

    def add(self, who: tuple[Any, ...], clock: Clock, output: Output, flush: bool) -> None:
        """Note what one task found; ``who`` holds the grouping columns, then the task."""
        self._found.append(_Found(who, clock, output, flush))

    def write(self) -> None:
        """Write everything as this partition's part of the micro-batch that Spark works on."""
        context = TaskContext.get()
        if context is None or not self._found:
            return
        batch = int(str(context.getLocalProperty(_BATCH_ID)))
        for name, table in self.tables().items():
            self._store.write(name, batch, table, context.partitionId())

    def tables(self) -> dict[str, pa.Table]:
        """Everything as tables of the store; the next micro-batch begins with nothing."""
        found = {name: self._table(name) for name in _RECORDS}
        found["progress"] = self._progress()
        self._found = []
        return found

    def _progress(self) -> pa.Table:
        rows = []
        for who, clock, output, flushed in self._found:
            if output.active:
                slack = quality.slack_us(self._config, clock.alpha, np.array([clock.max_delay_us]))
                row = dict(zip(self._store.by, who, strict=True))
                row |= clock._asdict() | {"slack_us": int(slack[0]), "flushed": flushed}
                rows.append(row)
        return pa.Table.from_pylist(rows, schema=self._store.schema("progress"))

    def _table(self, name: str) -> pa.Table:
        """One table from the records of all tasks."""
        arrays: list[Records] = [getattr(each.output, name) for each in self._found]
        if not any(map(len, arrays)):
            return self._store.schema(name).empty_table()
        together = np.concatenate(arrays)
        schema = self._store.schema(name)
        columns: dict[str, Any] = {}
        owner = pa.array(np.repeat(np.arange(len(arrays)), [len(each) for each in arrays]))
        for i, by in enumerate(self._store.by):
            values = pa.array([each.who[i] for each in self._found], schema.field(by).type)
            columns[by] = values.take(owner)
        for column in TABLES[name]:
            if column == "key":
                columns[column] = self._keys(arrays)
            elif column == "start_us":
                index = together["first" if name == "late" else "j"]
                columns[column] = index * self._config.slide_us
            elif column == "reason":
                columns[column] = _ALL_REASONS[together["reason"]]
            else:
                columns[column] = np.ascontiguousarray(together[column])
        return pa.table(columns, schema=schema)

    def _keys(self, arrays: list[Records]) -> pa.ChunkedArray:
        chunks = [
            pa.array(each.output.keys, pa.string()).take(pa.array(records["key"]))
            for each, records in zip(self._found, arrays, strict=True)
            if len(records)
        ]
        return pa.chunked_array(chunks, pa.string())

"""Writes what workers found in one micro-batch, where it was found: on the executors."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from spark_impl.script.plan import Plan
from spark_impl.script.processor import MESSAGE
from spark_impl.script.store import BLOCK, TABLES, Store
from spark_impl.script.tables import tables

TOLD = pa.schema([*TABLES["worker"], *(field for field in BLOCK if field.name != "worker")])
"""What the driver is told: where workers stand, and messages, with the worker that they are for."""


def write_tables(
    batches: Iterable[pa.RecordBatch], store: Store, plan: Plan, batch: int
) -> Iterator[pa.RecordBatch]:
    """Stage for ``mapInArrow``: output rows of the processor to what the driver is told.

    On the way every partition writes its part of the tables. A part is named after the partition,
    so a task that Spark runs twice writes the same files.
    """
    names = [field.name for field in store.groups]
    found: dict[str, list[pa.Table]] = {}
    rows = []
    for row in (row for each in batches for row in each.to_pylist()):
        group = {name: row[name] for name in names}
        if row["to"] is not None:
            rows.append({**group, "worker": row["to"], "kind": MESSAGE, "block": row["messages"]})
            continue
        rows.append({**group, "worker": row["worker"], "known_us": row["known_us"]})
        made = tables(plan, row["results"], row["undefined"], row["rejected"])
        for name, table in made.items():
            found.setdefault(name, []).append(_placed(table, group, store.since_us))
    context = TaskContext.get()
    part = 0 if context is None else context.partitionId()
    for name, parts in found.items():
        schema = store.schema(TABLES[name])
        store.write(name, batch, pa.concat_tables([each.cast(schema) for each in parts]), part)
    if rows:
        yield from pa.Table.from_pylist(rows, store.schema(TOLD)).to_batches()


def _placed(table: pa.Table, group: Mapping[str, Any], since_us: int) -> pa.Table:
    """The rows that are stamped late enough, behind the grouping columns."""
    if "ts_us" in table.column_names:
        table = table.filter(pc.field("ts_us") >= since_us)
    columns = [pa.array([value] * table.num_rows) for value in group.values()]
    return pa.table([*columns, *table.columns], names=[*group, *table.column_names])

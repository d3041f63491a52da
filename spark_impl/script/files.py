"""Files of a history, and of what workers have for each other, become blocks for workers."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from spark_impl.runtime.histories import InputProblem, on_disk
from spark_impl.script.blocks import COLUMNS, Router
from spark_impl.script.plan import Plan
from spark_impl.script.processor import ARRIVALS
from spark_impl.script.store import BLOCK, Store
from spark_impl.windows.blocks import split, tables_of
from spark_impl.windows.slots import SLOT, slots


def pack_files(
    batches: Iterable[pa.RecordBatch], store: Store, plan: Plan, since_us: int
) -> Iterator[pa.RecordBatch]:
    """Stage for ``mapInArrow``: paths of files to rows (grouping columns, slot, kind, block).

    No tuple is read that changes no result stamped from ``since_us`` on.
    """
    groups = store.groups
    router, numbers = Router(plan, since_us), slots(plan.workers)
    columns = [field for field in BLOCK if field.name != "worker"]
    schema = pa.schema([*groups, pa.field(SLOT, pa.int32()), *columns])
    for batch in batches:
        for path in batch.column("path").to_pylist():
            place = on_disk(path)
            if Path(place).parent == store.control:
                rows = pq.read_table(place, schema=store.schema(BLOCK)).to_pylist()
            else:
                rows = list(_rows(place, groups, router))
            for row in rows:
                row[SLOT] = numbers[row.pop("worker")]
            if rows:
                yield from pa.Table.from_pylist(rows, schema).to_batches()


def _rows(place: str, groups: Sequence[pa.Field], router: Router) -> Iterator[dict[str, Any]]:
    """A file of the history, by combination of the grouping columns' values and by worker."""
    names = [field.name for field in groups]
    for table in tables_of(place, groups, COLUMNS):
        for group, part in split(table, names) if names else [((), table)]:
            if None in group:
                msg = f"column {names[group.index(None)]!r} of {place} is NULL in some row"
                raise InputProblem(msg)
            for worker, block in router.blocks(part).items():
                row = dict(zip(names, group, strict=True))
                yield {**row, "worker": worker, "kind": ARRIVALS, "block": block}

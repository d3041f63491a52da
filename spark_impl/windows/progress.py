"""Figures of the last micro-batch of a query, for dashboards and alarms."""

from collections.abc import Mapping
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from spark_impl.runtime.accounts import rows_of_batch
from spark_impl.runtime.storage import Address
from spark_impl.windows.records import NO_CLOCK
from spark_impl.windows.room import HOLDER, AnyRoom
from spark_impl.windows.store import PENDING, WindowStore, load_store


class BatchProgress(NamedTuple):
    """Figures of the last complete micro-batch."""

    batch: int
    """Number of the micro-batch, -1 if there is none."""
    tasks: int
    """Number of tasks that got tuples in the micro-batch, or were flushed."""
    slack_us: int
    """Longest time that one of these tasks now waits for late tuples; 0 without tasks."""
    watermark_us: int | None
    """Lowest watermark of these tasks (us since 1970), None if one of them has none yet."""
    pairs: int
    """Number of (tuple, window) pairs in new answers of the micro-batch."""
    late_pairs: int
    """Number of pairs that were late for their windows."""
    pending_pairs: int
    """Number of late pairs that wait for a correction, over all tasks."""
    corrections: int
    """Number of corrections that the micro-batch made."""
    rejected: int
    """Number of arrivals that the query has refused until now."""
    held_by: str | None
    """The one that holds the watermark back, behind its grouping columns: the task with the lowest
    one, such as ``task 3``, or the operator upstream that others wait for, such as ``operator 3``.
    None if there is nobody to wait for."""

    rows: Mapping[str, int]
    """Rows that the micro-batch has read, and those in each place of the ledger; ``pending`` is
    the change."""

    @property
    def late_share(self) -> float:
        """Share of late pairs among the pairs that this micro-batch decided on."""
        return self.late_pairs / max(self.pairs + self.late_pairs, 1)


def progress(room: AnyRoom, store: Address) -> BatchProgress:
    """Return the figures of the last complete micro-batch of the query that writes ``store``.

    Only files with rows of this micro-batch are read, without Spark. Raise :class:`InputProblem` if
    ``store`` is not the store of a query.
    """
    _, opened = load_store(store, room)
    batch = opened.view.last
    moved = opened.read_kind("progress", batch)

    def total(kind: str, column: str, batch: int | None = batch) -> int:
        return int(pc.sum(opened.read_kind(kind, batch).column(column)).as_py() or 0)

    lowest = pc.min(moved.column("wm_us")).as_py()
    return BatchProgress(
        batch,
        moved.num_rows,
        pc.max(moved.column("slack_us")).as_py() or 0,
        None if lowest == NO_CLOCK else lowest,
        total("result", "n_rcv"),
        total("late", "windows"),
        total(PENDING, "windows", None),
        opened.read_kind("correction", batch).num_rows,
        opened.view.count("rejected"),
        _name_holder(opened, moved, lowest),
        rows_of_batch(opened),
    )


def _name_holder(store: WindowStore, moved: pa.Table, lowest: int | None) -> str | None:
    """Return the name of the first task with the lowest watermark, or of the operator upstream."""
    if lowest is None:
        return None
    row = moved.slice(pc.index(moved.column("wm_us"), lowest).as_py(), 1).to_pylist()[0]
    by = {name: row[name] for name in store.by}
    if row.get(HOLDER) is not None:
        del by["task"]
        by["operator"] = row[HOLDER]
    elif lowest == NO_CLOCK:
        return None
    return ", ".join(f"{name} {each}" for name, each in by.items())

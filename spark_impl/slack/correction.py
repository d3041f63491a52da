"""Corrections: late pairs are pending until their windows are recomputed from the history.

Rules of this file (docs/slack.md, section 6):

* What is pending after a batch is what was pending before it, plus its late pairs, minus what its
  corrections covered; each of the three is a table of that batch.
* A correction reads the history up to the last arrival that its task has processed, no further.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from model.vocabulary import SlackConfig
from spark_impl.slack import recompute
from spark_impl.slack.blocks import combined
from spark_impl.slack.extents import Extents
from spark_impl.slack.history import History
from spark_impl.slack.recompute import Found, Wanted, Who
from spark_impl.slack.records import Bools, Ints
from spark_impl.slack.store import Store, read_parquet


class _Due(NamedTuple):
    """What is corrected at the end of a batch."""

    reasons: dict[Who, str]
    limits: dict[Who, int]
    rows: Bools
    """Mask of the pending rows that this covers."""


class Corrections:
    """What follows the stream part of every micro-batch of a query."""

    def __init__(self, config: SlackConfig, store: Store, history: History) -> None:
        self._config = config
        self._store = store
        self._history = history
        self._revisions: dict[int, list[str]] | None = None
        self._extents = Extents("start_us")

    def run(self, batch: int, progress: pa.Table) -> None:
        """Correct what is due at the end of a batch, and note what is pending then."""
        store = self._store
        before = store.read("pending", batch - 1)
        pending = _union(before, store.read("late", batch))
        due = _due(self._config, store, pending, progress)
        if due.reasons:
            covered = pending.filter(pa.array(due.rows))
            want, place = recompute.wanted(self._config, store.by, covered, due.limits)
            found, rows_read = self._history.recompute(want)
            self._write_revisions(batch, want, found)
            rows = _summary(want, due, found, covered, place, rows_read)
            schema = store.schema("correction")
            store.write("correction", batch, pa.Table.from_pylist(rows, schema))
            store.write("cleared", batch, covered)
            pending = pending.filter(pa.array(~due.rows))
        store.write("pending", batch, pending)
        store.forget_old_pending(batch)

    def _write_revisions(self, batch: int, want: Wanted, found: Found) -> None:
        store, schema = self._store, self._store.schema("revision")
        if self._revisions is None:  # later on, this is the only writer
            self._revisions = store.files("revision")
        self._extents.forget(self._revisions.pop(batch, ()))  # of an earlier attempt
        earlier = [path for paths in self._revisions.values() for path in paths]
        overlapping = self._extents.overlapping(earlier, recompute.stretches_us(want))
        numbers = recompute.revision_numbers(want, found, read_parquet([*overlapping], schema))
        rows = recompute.to_table(want, found, schema)
        rows = rows.append_column("revision", pa.array(numbers))
        store.write("revision", batch, rows)
        store.write("correlation", batch, rows.filter(pa.array(found.correlated == 1)))
        self._revisions[batch] = store.files_of("revision", batch)


def _union(before: pa.Table, late: pa.Table) -> pa.Table:
    """Both sets of pairs as one set.

    Late runs of a tuple all begin at its first window, so the longest contains the others.
    """
    if not late.num_rows:
        return before
    names = [name for name in before.column_names if name != "windows"]
    both = pa.concat_tables([before, late]).group_by(names, use_threads=False)
    longest = both.aggregate([("windows", "max")]).rename_columns([*names, "windows"])
    return longest.select(before.column_names)


def _due(config: SlackConfig, store: Store, pending: pa.Table, progress: pa.Table) -> _Due:
    """What to correct: tasks that this batch has moved, where a trigger holds."""
    owner, tasks = combined(pending, store.by)
    ts = pending.column("event_time_us").to_numpy()
    oldest, newest = np.full(len(tasks), 1 << 62), np.full(len(tasks), -(1 << 62))
    np.minimum.at(oldest, owner, ts)
    np.maximum.at(newest, owner, ts)
    moved = {tuple(row[name] for name in store.by): row for row in progress.to_pylist()}
    reasons, limits, due = {}, {}, np.zeros(len(tasks), np.bool_)
    for number, who in enumerate(tasks):
        row = moved.get(who)
        reason = "" if row is None else _reason(config, row, oldest[number], newest[number])
        if row is not None and reason:
            reasons[who], limits[who], due[number] = reason, row["seq"], True
    return _Due(reasons, limits, due[owner])


def _reason(config: SlackConfig, row: Mapping[str, Any], oldest: int, newest: int) -> str:
    if row["flushed"]:
        return "flush"
    if newest - oldest > config.gamma_us:
        return "gamma"
    return "age" if row["wm_us"] - oldest > config.max_age else ""


def _summary(
    want: Wanted, due: _Due, found: Found, covered: pa.Table, place: Ints, rows_read: int
) -> list[dict[str, Any]]:
    """A row a task; ``rows_read`` counts the rows of all files opened for the batch."""
    pairs = np.bincount(place, weights=covered.column("windows").to_numpy())
    windows = np.bincount(want.wanted // len(want.windows), minlength=len(want.places))
    needed = np.bincount(found.place, weights=found.rows, minlength=len(want.places))
    total = {who: [0, 0, 0] for who in due.reasons}
    for number, values in enumerate(want.places):
        sums = total[values[:-1]]
        for i, each in enumerate((pairs, windows, needed)):
            sums[i] += int(each[number])
    return [
        {
            **dict(zip(want.by, who, strict=True)),
            "reason": due.reasons[who],
            "pairs": sums[0],
            "windows": sums[1],
            "rows_read": rows_read,
            "rows_needed": sums[2],
        }
        for who, sums in total.items()
    ]

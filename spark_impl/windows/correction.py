"""Corrections: late pairs are pending until their windows are recomputed from the history.

Rules of this file (docs/slack.md, section 6):

* What is pending after a batch is what was pending before it, plus its late pairs, minus what its
  corrections covered; each of the three is a table of that batch.
* A correction reads the history up to the last arrival that its task has processed, no further.
* A correction that finds less in the history than must have been there writes nothing.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_impl.runtime.arrays import Bools, Ints
from spark_impl.runtime.histories import InputProblem
from spark_impl.runtime.stores import read_parquet
from spark_impl.windows import recompute
from spark_impl.windows.asked import Asked
from spark_impl.windows.blocks import combined
from spark_impl.windows.extents import Extents
from spark_impl.windows.history import History
from spark_impl.windows.recompute import Found, Wanted, Who
from spark_impl.windows.store import Store


class _Due(NamedTuple):
    """What is corrected at the end of a batch."""

    reasons: dict[Who, str]
    limits: dict[Who, int]
    rows: Bools
    """Mask of the pending rows that this covers."""


class _Kept:
    """What one table of a store says about some windows; files once read are not looked at again.

    Whoever runs corrections is the only writer, so that files need not be listed twice.
    """

    def __init__(self, store: Store, table: str, time: str = "start_us") -> None:
        self._store = store
        self._table = table
        self._time = time
        self._files: dict[int, list[str]] | None = None
        self._extents = Extents(time)

    def read(self, want: Wanted) -> pa.Table:
        """Rows with times in the stretches of wanted windows, and perhaps some between them."""
        if self._files is None:
            self._files = self._store.files(self._table)
        paths = [path for files in self._files.values() for path in files]
        stretches, time = recompute.stretches_us(want), pc.field(self._time)
        overlapping = self._extents.overlapping(paths, stretches)
        where = (time >= stretches[0][0]) & (time < stretches[-1][1])
        return read_parquet([*overlapping], self._store.schema(self._table), where)

    def forget(self, batch: int) -> None:
        """Leave out what an earlier attempt at a batch wrote."""
        if self._files is not None:
            self._extents.forget(self._files.pop(batch, ()))

    def renew(self, batch: int) -> None:
        """Take what a batch has written now."""
        self.forget(batch)
        if self._files is not None:
            self._files[batch] = self._store.files_of(self._table, batch)


class Corrections:
    """What follows the stream part of every micro-batch of a query."""

    def __init__(self, asked: Asked, store: Store, history: History) -> None:
        self._asked = asked
        self._store = store
        self._history = history
        self._results = _Kept(store, "result")
        self._revisions = _Kept(store, "revision")
        self._cleared = _Kept(store, "cleared", "event_time_us")

    def run(self, batch: int, progress: pa.Table) -> None:
        """Correct what is due at the end of a batch, and note what is pending then.

        Where nothing is corrected nothing is pending: late pairs are a side output.
        """
        store = self._store
        if not self._asked.corrects:
            store.write("pending", batch, store.schema("pending").empty_table())
            store.forget_old_pending(batch)
            return
        self._results.renew(batch)
        self._revisions.forget(batch)
        self._cleared.forget(batch)
        before = store.read("pending", batch - 1)
        pending = _union(before, store.read("late", batch))
        due = _due(self._asked, store, pending, progress)
        if due.reasons:
            covered = pending.filter(pa.array(due.rows))
            want, place = recompute.wanted(self._asked, store.by, covered, due.limits)
            found, rows_read = self._history.recompute(want)
            self._write_revisions(batch, want, found)
            rows = _summary(want, due, found, covered, place, rows_read)
            schema = store.schema("correction")
            store.write("correction", batch, pa.Table.from_pylist(rows, schema))
            store.write("cleared", batch, covered)
            self._cleared.renew(batch)
            pending = pending.filter(pa.array(~due.rows))
        store.write("pending", batch, pending)
        store.forget_old_pending(batch)

    def _write_revisions(self, batch: int, want: Wanted, found: Found) -> None:
        store, earlier = self._store, self._revisions.read(want)
        n_rcv = recompute.greatest(want, self._results.read(want), "n_rcv")
        before = recompute.greatest(want, earlier, "n")
        known = _Known(n_rcv, before, recompute.pairs_of(want, self._cleared.read(want)))
        _refuse_losses(self._history.source, want, found, known)
        rows = recompute.to_table(want, found, store.schema("revision"))
        numbers = recompute.revision_numbers(want, found, earlier)
        rows = rows.append_column("revision", pa.array(numbers))
        store.write("revision", batch, rows)
        store.write("correlation", batch, rows.filter(pa.array(found.correlated == 1)))
        self._revisions.renew(batch)


class _Known(NamedTuple):
    """What earlier steps say about the wanted windows, 0 where they say nothing."""

    n_rcv: Ints
    n: Ints
    """Tuples of the latest revision."""
    cleared: Ints
    """Late pairs that earlier corrections have covered."""


def _refuse_losses(source: Path, want: Wanted, found: Found, known: _Known) -> None:
    """Raise :class:`InputProblem` when the history holds less than must have been there.

    A forgotten redelivery is late once more although the first answer may count its tuple. So
    answer and late pairs add up as deliveries, not as tuples: each joined the window or was late.
    """
    tuples = np.maximum(want.pairs, known.n)
    if want.asked.dedup:  # else the first answer counts redeliveries
        tuples = np.maximum(tuples, known.n_rcv)
    for what, there, needed in (
        ("tuples", found.n, tuples),
        ("deliveries", found.deliveries, known.n_rcv + known.cleared + want.pairs),
    ):
        held = recompute.of_wanted(want, found, there)
        short = np.flatnonzero(held < needed)
        if len(short):
            at = int(short[0])
            msg = (
                f"{source} has lost rows: it holds {held[at]} of at least {needed[at]} {what}"
                f" for {recompute.window_of(want, at)}"
            )
            raise InputProblem(msg)


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


def _due(asked: Asked, store: Store, pending: pa.Table, progress: pa.Table) -> _Due:
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
        reason = "" if row is None else _reason(asked, row, oldest[number], newest[number])
        if row is not None and reason:
            reasons[who], limits[who], due[number] = reason, row["seq"], True
    return _Due(reasons, limits, due[owner])


def _reason(asked: Asked, row: Mapping[str, Any], oldest: int, newest: int) -> str:
    if row["flushed"]:
        return "flush"
    if newest - oldest > asked.gamma_us:
        return "gamma"
    return "age" if row["wm_us"] - oldest > asked.max_age_us else ""


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

"""Corrections: late pairs are pending until their windows are recomputed from the history.

Rules of this file (docs/slack.md, section 6):

* The pending pairs after a batch are those before it, plus its late pairs, minus those that its
  corrections covered. Each of the three is a table of that batch.
* A correction reads the history up to the last arrival that its task has processed, no further.
* A correction writes nothing if the history holds less than it must.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_impl.runtime.arrays import Bools, Ints, PlainRow
from spark_impl.runtime.storage import InputProblem, Location
from spark_impl.runtime.stores import read_parquet
from spark_impl.windows import recompute
from spark_impl.windows.arrival_files import number_combinations
from spark_impl.windows.history import History
from spark_impl.windows.recompute import WindowAnswers, WindowRequest
from spark_impl.windows.room import WindowSettings
from spark_impl.windows.row_groups import Footers
from spark_impl.windows.store import TaskId, WindowStore


class _DueCorrections(NamedTuple):
    """The corrections at the end of a batch."""

    reasons: dict[TaskId, str]
    limits: dict[TaskId, int]
    rows: Bools
    """Mask of the pending rows that they cover."""


class _TableReader:
    """Reads the rows of one table about some windows, and lists its files only once.

    The process that runs corrections is the only writer of the table.
    """

    def __init__(self, store: WindowStore, table: str, time: str = "start_us") -> None:
        self._store = store
        self._table = table
        self._time = time
        self._files: dict[int, list[Location]] | None = None
        self._footers = Footers(time)

    def read(self, request: WindowRequest) -> pa.Table:
        """Return the rows in the time ranges of requested windows, and perhaps some between."""
        if self._files is None:
            self._store.files_until(self._table, self._store.committed())  # none is lost
            self._files = self._store.files(self._table)
        files = [file for each in self._files.values() for file in each]
        times, time = recompute.time_ranges_us(request), pc.field(self._time)
        overlapping = self._footers.overlapping(files, times)
        where = (time >= times[0][0]) & (time < times[-1][1])
        return read_parquet([*overlapping], self._store.schema(self._table), where)

    def forget(self, batch: int) -> None:
        """Ignore the files of an earlier attempt at a batch."""
        if self._files is not None:
            self._footers.forget(self._files.pop(batch, ()))

    def renew(self, batch: int) -> None:
        """Use the files that a batch has written now."""
        self.forget(batch)
        if self._files is not None:
            self._files[batch] = self._store.files_of(self._table, batch)


class Corrections:
    """Corrects windows after the stream part of every micro-batch of a query."""

    def __init__(self, settings: WindowSettings, store: WindowStore, history: History) -> None:
        self._settings = settings
        self._store = store
        self._history = history
        self._results = _TableReader(store, "result")
        self._revisions = _TableReader(store, "revision")
        self._cleared = _TableReader(store, "cleared", "event_time_us")

    def run(
        self,
        batch: int,
        progress: pa.Table,
        written: Mapping[str, int],
        require_held: Callable[[], None],
    ) -> None:
        """Make the corrections that are due after a batch; write the pairs that are then pending.

        ``written`` is the number of rows of the batch by table of the stream part;
        ``require_held`` raises an error if the store is not locked any more. Without corrections
        nothing is pending: late pairs are a side output.
        """
        store, rows_of = self._store, dict(written)
        if not self._settings.corrects:
            require_held()
            store.complete(batch, store.schema("pending").empty_table(), rows_of)
            store.forget_old_pending(batch)
            return
        self._results.renew(batch)
        self._revisions.forget(batch)
        self._cleared.forget(batch)
        before = store.read("pending", batch - 1)
        pending = _union(before, store.read("late", batch))
        due = _due_corrections(self._settings, store, pending, progress)
        if due.reasons:
            covered = pending.filter(pa.array(due.rows))
            request, place = recompute.request_windows(
                self._settings, store.by, covered, due.limits
            )
            answers, rows_read = self._history.recompute(request)
            rows_of |= self._write_revisions(batch, request, answers)
            rows = _summarise(request, due, answers, covered, place, rows_read)
            made = pa.Table.from_pylist(rows, store.schema("correction"))
            rows_of["correction"] = store.write("correction", batch, made)
            rows_of["cleared"] = store.write("cleared", batch, covered)
            self._cleared.renew(batch)
            pending = pending.filter(pa.array(~due.rows))
        require_held()
        store.complete(batch, pending, rows_of)
        store.forget_old_pending(batch)

    def _write_revisions(
        self, batch: int, request: WindowRequest, answers: WindowAnswers
    ) -> dict[str, int]:
        """Write the revised answers of some windows; return the number of rows by table."""
        store, earlier = self._store, self._revisions.read(request)
        n_rcv = recompute.greatest(request, self._results.read(request), "n_rcv")
        before = recompute.greatest(request, earlier, "n")
        cleared = recompute.count_pairs(request, self._cleared.read(request))
        _refuse_losses(self._history.source, request, answers, _Known(n_rcv, before, cleared))
        rows = recompute.to_table(request, answers, store.schema("revision"))
        numbers = recompute.revision_numbers(request, answers, earlier)
        rows = rows.append_column("revision", pa.array(numbers))
        correlated = rows.filter(pa.array(answers.correlated == 1))
        written = {"revision": rows, "correlation": correlated}
        rows_of = {name: store.write(name, batch, each) for name, each in written.items()}
        self._revisions.renew(batch)
        return rows_of


class _Known(NamedTuple):
    """The counts of earlier steps for the requested windows, 0 if there are none."""

    n_rcv: Ints
    n: Ints
    """Tuples of the latest revision."""
    cleared: Ints
    """Late pairs that earlier corrections have covered."""


def _refuse_losses(
    source: Location, request: WindowRequest, answers: WindowAnswers, known: _Known
) -> None:
    """Raise :class:`InputProblem` if the history holds less than it must.

    A forgotten redelivery is late once more, although the first answer may count its tuple. First
    answer and late pairs therefore add up to deliveries, not to tuples: each delivery joined the
    window or was late.
    """
    tuples = np.maximum(request.pairs, known.n)
    if request.settings.dedup:  # else the first answer counts redeliveries
        tuples = np.maximum(tuples, known.n_rcv)
    for what, column, needed in (
        ("tuples", answers.n, tuples),
        ("deliveries", answers.deliveries, known.n_rcv + known.cleared + request.pairs),
    ):
        present = recompute.per_request(request, answers, column)
        short = np.flatnonzero(present < needed)
        if len(short):
            at = int(short[0])
            msg = (
                f"{source} has lost rows: it holds {present[at]} of at least {needed[at]} {what}"
                f" for {recompute.describe_window(request, at)}"
            )
            raise InputProblem(msg)


def _union(before: pa.Table, late: pa.Table) -> pa.Table:
    """Return the union of two sets of pairs.

    Late runs of a tuple all begin at its first window, so the longest contains the others.
    """
    if not late.num_rows:
        return before
    names = [name for name in before.column_names if name != "windows"]
    both = pa.concat_tables([before, late]).group_by(names, use_threads=False)
    longest = both.aggregate([("windows", "max")]).rename_columns([*names, "windows"])
    return longest.select(before.column_names)


def _due_corrections(
    settings: WindowSettings, store: WindowStore, pending: pa.Table, progress: pa.Table
) -> _DueCorrections:
    """Return the corrections of tasks that this batch has moved and that a trigger applies to."""
    owner, tasks = number_combinations(pending, store.by)
    ts = pending.column("event_time_us").to_numpy()
    oldest, newest = np.full(len(tasks), 1 << 62), np.full(len(tasks), -(1 << 62))
    np.minimum.at(oldest, owner, ts)
    np.maximum.at(newest, owner, ts)
    moved = {tuple(row[name] for name in store.by): row for row in progress.to_pylist()}
    reasons, limits, due = {}, {}, np.zeros(len(tasks), np.bool_)
    for number, who in enumerate(tasks):
        row = moved.get(who)
        reason = "" if row is None else _reason(settings, row, oldest[number], newest[number])
        if row is not None and reason:
            reasons[who], limits[who], due[number] = reason, row["seq"], True
    return _DueCorrections(reasons, limits, due[owner])


def _reason(settings: WindowSettings, row: Mapping[str, int], oldest: int, newest: int) -> str:
    if row["flushed"]:
        return "flush"
    if newest - oldest > settings.gamma_us:
        return "gamma"
    return "age" if row["wm_us"] - oldest > settings.max_age else ""


def _summarise(
    request: WindowRequest,
    due: _DueCorrections,
    answers: WindowAnswers,
    covered: pa.Table,
    place: Ints,
    rows_read: int,
) -> list[PlainRow]:
    """Return a row for each task; ``rows_read`` counts all rows read for the batch."""
    pairs = np.bincount(place, weights=covered.column("windows").to_numpy())
    windows = np.bincount(request.codes // len(request.windows), minlength=len(request.places))
    needed = np.bincount(answers.place, weights=answers.rows, minlength=len(request.places))
    total = {who: [0, 0, 0] for who in due.reasons}
    for number, values in enumerate(request.places):
        sums = total[values[:-1]]
        for i, each in enumerate((pairs, windows, needed)):
            sums[i] += int(each[number])
    return [
        {
            **dict(zip(request.by, who, strict=True)),
            "reason": due.reasons[who],
            "pairs": sums[0],
            "windows": sums[1],
            "rows_read": rows_read,
            "rows_needed": sums[2],
        }
        for who, sums in total.items()
    ]

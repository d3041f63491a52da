"""Corrections: late pairs are pending until their windows are recomputed from the history.

Rules of this file (docs/slack.md, section 6):

* The pending pairs after a batch are those before it, plus its late pairs, minus those that its
  corrections covered. A batch that changes them replaces the file that holds them.
* A correction reads the history up to the last arrival that its task has processed, no further.
* A correction writes nothing if the history holds less than it must.
"""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_impl.runtime.arrays import Bools, Ints, PlainRow
from spark_impl.runtime.storage import InputProblem
from spark_impl.runtime.stores import Draft
from spark_impl.windows import recompute
from spark_impl.windows.arrival_files import number_combinations
from spark_impl.windows.history import History
from spark_impl.windows.recompute import WindowAnswers, WindowRequest
from spark_impl.windows.room import WindowSettings
from spark_impl.windows.store import PENDING, TaskId, WindowStore


class Corrections:
    """Corrects windows after the stream part of every micro-batch of a query."""

    def __init__(self, settings: WindowSettings, store: WindowStore, history: History) -> None:
        self._settings = settings
        self._store = store
        self._history = history

    def run(self, draft: Draft, progress: pa.Table) -> int:
        """Make the corrections that are due after a batch; write the pairs that are then pending.

        Return the change in the number of tuples that wait for a correction and are in no answer.
        If the query does not correct, nothing is pending: late pairs are a side output.
        """
        store = self._store
        if not self._settings.corrects:
            return 0
        before = store.at(draft.view).read_kind(PENDING).select(store.kinds[PENDING].names)
        late = store.read(draft.of("late"), "late").select(before.column_names)
        pending = _union(before, late)
        reasons, limits, due = _due_corrections(self._settings, store, pending, progress)
        if reasons:
            covered = pending.filter(pa.array(due))
            request, place = recompute.request_windows(self._settings, store.by, covered, limits)
            answers, rows_read = self._history.recompute(request)
            self._write_revisions(draft, request, answers)
            rows = _summarise(request, reasons, answers, covered, place, rows_read)
            draft.write("correction", pa.Table.from_pylist(rows, store.kinds["correction"]))
            draft.write("cleared", covered)
            pending = pending.filter(pa.array(~due))
        if reasons or late.num_rows:
            draft.replace(PENDING, pending)
        return self._unanswered(pending) - self._unanswered(before)

    def _unanswered(self, pending: pa.Table) -> int:
        """Return the number of tuples that were late for all of their windows."""
        slide_us = self._settings.slide_us
        first, ts, windows = (
            pending.column(name).to_numpy() for name in ("start_us", "event_time_us", "windows")
        )
        return int(np.count_nonzero(windows == ts // slide_us - first // slide_us + 1))

    def _known(self, draft: Draft, kind: str, request: WindowRequest) -> pa.Table:
        """Return the rows of one kind in the time ranges of a request, perhaps some between.

        Answers of the batch itself count; its corrections do not, which are being made.
        """
        column = "event_time_us" if kind == "cleared" else "start_us"
        times, time = recompute.time_ranges_us(request), pc.field(column)
        files = [*draft.view.of(kind), *(draft.of(kind) if kind == "result" else ())]
        near = [
            each
            for each in files
            if any(each.may_hold(column, start, end - 1) for start, end in times)
        ]
        where = (time >= times[0][0]) & (time < times[-1][1])
        return self._store.read(near, kind, where)

    def _write_revisions(
        self, draft: Draft, request: WindowRequest, answers: WindowAnswers
    ) -> None:
        """Write the revised answers of some windows."""
        earlier = self._known(draft, "revision", request)
        n_rcv = recompute.greatest(request, self._known(draft, "result", request), "n_rcv")
        before = recompute.greatest(request, earlier, "n")
        cleared = recompute.count_pairs(request, self._known(draft, "cleared", request))
        # A forgotten redelivery is late once more, although the first answer may count its tuple.
        # So first answer and late pairs add up to deliveries: each joined the window or was late.
        deliveries = n_rcv + cleared + request.pairs
        tuples = np.maximum(request.pairs, before)
        if self._settings.dedup:  # else the first answer counts redeliveries
            tuples = np.maximum(tuples, n_rcv)
        self._require(request, answers, "tuples", answers.n, tuples)
        self._require(request, answers, "deliveries", answers.deliveries, deliveries)
        rows = recompute.to_table(request, answers, self._store.kinds["revision"])
        numbers = recompute.revision_numbers(request, answers, earlier)
        draft.write("revision", rows.append_column("revision", pa.array(numbers)))

    def _require(
        self, request: WindowRequest, answers: WindowAnswers, what: str, found: Ints, needed: Ints
    ) -> None:
        """Raise :class:`InputProblem` if the history holds less than ``needed`` for a window."""
        present = recompute.per_request(request, answers, found)
        for at in np.flatnonzero(present < needed)[:1].tolist():
            msg = (
                f"{self._history.source} has lost rows: it holds {present[at]} of at least"
                f" {needed[at]} {what} for {recompute.describe_window(request, at)}"
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
) -> tuple[dict[TaskId, str], dict[TaskId, int], Bools]:
    """Return the corrections of tasks that this batch has moved and that a trigger applies to.

    That is the reason and the last arrival of each such task, and which pending rows are covered.
    """
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
    return reasons, limits, due[owner]


def _reason(settings: WindowSettings, row: Mapping[str, int], oldest: int, newest: int) -> str:
    if row["flushed"]:
        return "flush"
    if newest - oldest > settings.gamma_us:
        return "gamma"
    return "age" if row["wm_us"] - oldest > settings.max_age else ""


def _summarise(
    request: WindowRequest,
    reasons: Mapping[TaskId, str],
    answers: WindowAnswers,
    covered: pa.Table,
    place: Ints,
    rows_read: int,
) -> list[PlainRow]:
    """Return a row for each task; ``rows_read`` counts all rows read for the batch."""
    pairs = np.bincount(place, weights=covered.column("windows").to_numpy())
    windows = np.bincount(request.codes // len(request.windows), minlength=len(request.places))
    needed = np.bincount(answers.place, weights=answers.rows, minlength=len(request.places))
    total = {who: [0, 0, 0] for who in reasons}
    for number, values in enumerate(request.places):
        sums = total[values[:-1]]
        for i, each in enumerate((pairs, windows, needed)):
            sums[i] += int(each[number])
    return [
        {
            **dict(zip(request.by, who, strict=True)),
            "reason": reasons[who],
            "pairs": sums[0],
            "windows": sums[1],
            "rows_read": rows_read,
            "rows_needed": sums[2],
        }
        for who, sums in total.items()
    ]

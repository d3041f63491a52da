"""Corrections: late pairs are pending until their windows are recomputed from the history.

Rules of this file (docs/slack.md, section 6):

* What is pending after a batch is what was pending before it, plus its late pairs, minus what its
  corrections covered; each of the three is a table of that batch.
* A correction reads the history up to the last arrival that its task has processed, no further.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from model.vocabulary import SlackConfig
from spark_impl.slack import panes as pane_math
from spark_impl.slack.blocks import decode, encode, split
from spark_impl.slack.kernel import reject
from spark_impl.slack.records import Ints
from spark_impl.slack.store import Store, same_rows

Who: TypeAlias = tuple[Any, ...]
"""Values of the grouping columns, then the task."""


class Due(NamedTuple):
    """A task that is corrected at the end of a batch."""

    reason: str
    seq: int
    """Last arrival that the task has processed."""
    pending: pa.Table


class Corrected(NamedTuple):
    """What a correction of one task found."""

    revisions: pa.Table
    """Columns start_us, key, value, n."""
    pairs: int
    rows_read: int
    rows_needed: int


def union(store: Store, before: pa.Table, late: pa.Table) -> pa.Table:
    """Both sets of pairs as one set.

    Late runs of a tuple all begin at its first window, so the longest contains the others.
    """
    if not late.num_rows:
        return before
    both = pa.concat_tables([before, late])
    names = [name for name in store.schema("pending").names if name != "windows"]
    return (
        both.group_by(names, use_threads=False)
        .aggregate([("windows", "max")])
        .rename_columns([*names, "windows"])
        .select(store.schema("pending").names)
    )


def due(config: SlackConfig, store: Store, pending: pa.Table, progress: pa.Table) -> dict[Who, Due]:
    """The tasks to correct, among those that this batch has moved."""
    moved = {tuple(row[name] for name in store.by): row for row in progress.to_pylist()}
    found = {}
    for who, pairs in split(pending, store.by):
        if who in moved:
            reason = _reason(config, pairs, moved[who])
            if reason:
                found[who] = Due(reason, moved[who]["seq"], pairs)
    return found


def _reason(config: SlackConfig, pairs: pa.Table, row: Mapping[str, Any]) -> str:
    if row["flushed"]:
        return "flush"
    oldest, newest = pc.min_max(pairs.column("event_time_us")).as_py().values()
    if newest - oldest > config.gamma_us:
        return "gamma"
    return "age" if row["wm_us"] - oldest > config.max_age else ""


def correct(config: SlackConfig, task: Due, history: pa.Table) -> Corrected:
    """Recompute the windows of the pending pairs of one task from its rows of the history."""
    keys, rows = decode([encode(history)])
    number = {key: code for code, key in enumerate(keys)} if config.keyed else {"": 0}
    n_keys = max(len(number), 1)
    key = rows.key if config.keyed else np.zeros(len(rows.seq), np.int64)
    good = (rows.seq <= task.seq) & (reject(config, rows) == 0)
    first_delivery = np.zeros(len(rows.seq), np.bool_)
    accepted = np.flatnonzero(good)
    _, where = np.unique(rows.source_id[accepted], return_index=True)
    first_delivery[accepted[where]] = True

    wanted_j, wanted_key, pairs = _wanted(config, task.pending, number, n_keys)
    ts = rows.event_time_us
    spec = config.windows
    first = (ts - spec.size_us) // spec.slide_us + 1
    joins = first_delivery & (first <= ts // spec.slide_us)
    panes = pane_math.fill(config, key[joins], ts[joins], rows.value[joins], first[joins], n_keys)
    panes["lo"] = np.maximum(panes["lo"], wanted_j.min())
    panes = panes[panes["lo"] <= pane_math.last_window(config, panes)]
    found = pane_math.answers(config, panes, int(wanted_j.max()) + 1, n_keys)
    asked = _is_in(found.j, found.key, wanted_j, wanted_key)
    texts = keys if config.keyed else ("",)
    revisions = pa.table(
        {
            "start_us": found.j[asked] * spec.slide_us,
            "key": pa.array([texts[code] for code in found.key[asked].tolist()], pa.string()),
            "value": found.value[asked],
            "n": found.n[asked],
        }
    )
    needed = _rows_in(config, key[joins], ts[joins], wanted_j, wanted_key)
    return Corrected(revisions, pairs, len(rows.seq), needed)


def _wanted(
    config: SlackConfig, pending: pa.Table, number: Mapping[str, int], n_keys: int
) -> tuple[Ints, Ints, int]:
    """Windows with a pending pair, ordered (window, key), and the number of pairs."""
    start = pending.column("start_us").to_numpy() // config.slide_us
    row, j = pane_math.expand(start, start + pending.column("windows").to_numpy() - 1)
    key = np.array([number[text] for text in pending.column("key").to_pylist()], np.int64)
    wanted_j, wanted_key, _ = pane_math.by_window(j, key[row], n_keys)
    return wanted_j, wanted_key, len(row)


def _is_in(j: Ints, key: Ints, wanted_j: Ints, wanted_key: Ints) -> Any:
    wanted = set(zip(wanted_j.tolist(), wanted_key.tolist(), strict=True))
    pairs = zip(j.tolist(), key.tolist(), strict=True)
    return np.array([pair in wanted for pair in pairs], np.bool_)


def _rows_in(config: SlackConfig, key: Ints, ts: Ints, wanted_j: Ints, wanted_key: Ints) -> int:
    """How many tuples lie in at least one wanted window of their key."""
    spec = config.windows
    needed = 0
    for code in np.unique(wanted_key).tolist():
        mine, windows = ts[key == code], wanted_j[wanted_key == code]
        place = np.searchsorted(windows, (mine - spec.size_us) // spec.slide_us + 1)
        inside = place < len(windows)
        inside[inside] = windows[place[inside]] <= mine[inside] // spec.slide_us
        needed += int(inside.sum())
    return needed


def run(
    config: SlackConfig,
    store: Store,
    batch: int,
    progress: pa.Table,
    correct_all: Callable[[Mapping[Who, Due]], dict[Who, Corrected]],
) -> None:
    """Everything that follows the stream part of a micro-batch.

    ``correct_all`` reads the history and corrects some tasks.
    """
    before = store.read("pending", batch - 1)
    pending = union(store, before, store.read("late", batch).select(before.column_names))
    tasks = due(config, store, pending, progress) if pending.num_rows else {}
    if tasks:
        mask = same_rows(pending, store.by, tasks)
        found = correct_all(tasks)
        store.write("revision", batch, _revisions(store, batch, found))
        store.write("correction", batch, _corrections(store, tasks, found))
        store.write("cleared", batch, pending.filter(mask))
        pending = pending.filter(pc.invert(mask))
    store.write("pending", batch, pending)
    store.forget_old_pending(batch)


def _revisions(store: Store, batch: int, found: Mapping[Who, Corrected]) -> pa.Table:
    tables = []
    for who, corrected in found.items():
        columns = dict(zip(store.by, who, strict=True))
        rows = corrected.revisions
        for name, value in columns.items():
            kind = store.schema("revision").field(name).type
            rows = rows.append_column(name, pa.array([value] * rows.num_rows, kind))
        tables.append(rows)
    fresh = pa.concat_tables(tables)
    numbers = _last_revisions(store, batch)
    places = zip(
        *(fresh.column(name).to_pylist() for name in (*store.by, "key", "start_us")), strict=True
    )
    revision = [numbers.get(place, 0) + 1 for place in places]
    return fresh.append_column("revision", pa.array(revision, pa.int64()))


def _last_revisions(store: Store, batch: int) -> dict[tuple[Any, ...], int]:
    earlier = store.read_all("revision", batch - 1)
    names = (*store.by, "key", "start_us")
    last: dict[tuple[Any, ...], int] = {}
    places = zip(*(earlier.column(name).to_pylist() for name in names), strict=True)
    for place, revision in zip(places, earlier.column("revision").to_pylist(), strict=True):
        last[place] = max(last.get(place, 0), revision)
    return last


def _corrections(
    store: Store, tasks: Mapping[Who, Due], found: Mapping[Who, Corrected]
) -> pa.Table:
    rows = []
    for who, task in tasks.items():
        corrected = found[who]
        rows.append(
            {
                **dict(zip(store.by, who, strict=True)),
                "reason": task.reason,
                "pairs": corrected.pairs,
                "windows": corrected.revisions.num_rows,
                "rows_read": corrected.rows_read,
                "rows_needed": corrected.rows_needed,
            }
        )
    return pa.Table.from_pylist(rows, schema=store.schema("correction"))

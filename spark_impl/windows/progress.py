"""Figures of the last micro-batch of a query, for dashboards and alarms."""

from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from model.vocabulary import SlackConfig
from model.vocabulary.slack import ADAPTIVE_CONTROLS
from spark_impl.runtime.accounts import rows_of_batch
from spark_impl.runtime.storage import Address
from spark_impl.runtime.tables import DataFile
from spark_impl.windows.records import NO_CLOCK
from spark_impl.windows.room import HOLDER, AnyRoom
from spark_impl.windows.store import PENDING, WindowStore, load_store

LATELY = 100
"""Lengths of windows that one looks back to judge first answers."""
MANY = 1_000_000
"""Judged windows above which one looks back less far, so that a reader need not wait for long."""
_EARLIEST_US = -(1 << 63)
"""The least 64-bit integer."""


class FirstAnswers(NamedTuple):
    """First answers of the last :data:`LATELY` lengths of windows, and those that lack tuples.

    All are 0 in room ``watermark``, which requires nothing.
    """

    judged: int = 0
    """Number of windows that the controller has judged."""
    missed: int = 0
    """Number of these that it has counted as misses, by what had come L after their ends."""
    below: int = 0
    """Number of these that had too few tuples by what is known now, with all corrections."""

    @property
    def below_share(self) -> float:
        """Share of windows whose first answer had fewer tuples than required."""
        return self.below / max(self.judged, 1)


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

    first_answers: FirstAnswers
    """Figures of the latest first answers."""
    warning: str | None
    """A sentence if first answers lack more than asked for, with what to do; None otherwise."""
    rows: Mapping[str, int]
    """Rows that the micro-batch has read, and those in each place of the ledger; ``pending`` is
    the change."""

    @property
    def late_share(self) -> float:
        """Share of late pairs among the pairs that this micro-batch decided on."""
        return self.late_pairs / max(self.pairs + self.late_pairs, 1)


def progress(room: AnyRoom, store: Address) -> BatchProgress:
    """Return the figures of the last complete micro-batch of the query that writes ``store``.

    Only files with rows of this micro-batch and of the latest windows are read, without Spark.
    Raise :class:`InputProblem` if ``store`` is not the store of a query.
    """
    config, opened = load_store(store, room)
    batch = opened.view.last
    moved = opened.read_kind("progress", batch)

    def total(kind: str, column: str, batch: int | None = batch) -> int:
        return int(pc.sum(opened.read_kind(kind, batch).column(column)).as_py() or 0)

    lowest = pc.min(moved.column("wm_us")).as_py()
    lately = _first_answers(opened, config.size_us)
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
        lately,
        warning_of(config, lately) if isinstance(config, SlackConfig) else None,
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


def _first_answers(store: WindowStore, size_us: int) -> FirstAnswers:
    """Compare the latest first answers with what is known now.

    The required coverage of a window stays the share that its judgement has found.
    """
    files = store.view.of("judged") if "judged" in store.kinds else []
    if not files:
        return FirstAnswers()
    last_us = max(each.bounds["start_us"][1] for each in files)
    back_us = LATELY * size_us
    window = [*store.by, "key", "start_us"]

    def first_us() -> int:
        return max(last_us - back_us, _EARLIEST_US)

    def near(kind: str) -> list[DataFile]:
        all_files = store.view.of(kind)
        return [each for each in all_files if each.may_hold("start_us", first_us(), last_us)]

    def lately(kind: str, *columns: str) -> pa.Table:
        rows = store.read(near(kind), kind, pc.field("start_us") >= first_us())
        return rows.select([*window, *columns])

    while sum(each.rows for each in near("judged")) > MANY and back_us > size_us:
        back_us //= 2

    judged = lately("judged", "n_rcv", "n_late", "n_req", "miss")
    # A window without a judgement has n_req = 0, so it is not below.
    rows = pa.concat_tables([judged, lately("revision", "n")], promote_options="default")
    counts = ("n_rcv", "n_late", "n_req", "n")
    every = rows.group_by(window).aggregate([(name, "max") for name in counts])
    n_rcv, n_late, n_req, n = (
        pc.fill_null(every.column(f"{name}_max"), 0).to_numpy() for name in counts
    )
    total = n_rcv + n_late
    below = n_rcv * total < n_req * np.maximum(total, n)
    missed = pc.sum(judged.column("miss")).as_py() or 0
    return FirstAnswers(judged.num_rows, missed, int(np.count_nonzero(below)))


def warning_of(config: SlackConfig, lately: FirstAnswers) -> str | None:
    """Return what is wrong if more windows had too few tuples than delta allows."""
    # As the decimal that was written: 0.29 * 100 is below 29 in float64.
    allowed = int(Fraction(repr(float(config.delta))) * lately.judged)
    if allowed < 1 or lately.below <= allowed:
        return None
    found = (
        f"{lately.below} of the last {lately.judged} judged windows had fewer tuples in their first"
        f" answer than required, by what is known now; delta = {config.delta:g} allows"
        f" {allowed}."
    )
    if lately.below == lately.missed or config.control not in ADAPTIVE_CONTROLS:
        return found
    return (
        f"{found} The controller counts {lately.missed}: tuples come more than feedback_us ="
        f" {config.feedback} after the end of their windows. Begin a new store with a longer"
        " feedback_us, and with a start_slack_us as long."
    )

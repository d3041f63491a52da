"""Accounts, files of a history and errors that just fit, the nearest that do not, and why."""

from collections.abc import Callable, Mapping, Sequence
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException

from model.vocabulary import Event, GroupingConfig, SlackConfig, WatermarkConfig
from model.windows.variants import example
from spark_impl.grouping.store import open_store
from spark_impl.retention import drop_before
from spark_impl.runtime.accounts import Reading, planned_files, read_planned
from spark_impl.runtime.columns import FAULTS
from spark_impl.runtime.failures import last_error
from spark_impl.runtime.histories import (
    COLUMNS,
    append,
    file_of,
    number_of,
    read_parquet,
    write_parquet,
)
from spark_impl.runtime.landed_files import BATCH, PLAN, READ, landed_in, name_of_list
from spark_impl.runtime.limits import Limits
from spark_impl.runtime.provenance import note_history
from spark_impl.runtime.storage import locate
from spark_impl.runtime.stores import Draft
from spark_impl.runtime.tables import TableWriter
from spark_impl.script.silence import Course, Pieces, Timeline
from spark_impl.slack import SLACK
from spark_impl.watermark import UPSTREAM, WATERMARK
from spark_impl.windows import kernel, processor
from spark_impl.windows.blocks import pack_files
from spark_impl.windows.records import Output, Taken, TaskState
from spark_impl.windows.row_groups import Footers
from spark_impl.windows.system import run_in_process


def _count(refused: Sequence[int]) -> None:
    """Write the accounts of micro-batches of four rows; three rows may be refused in all."""
    with TemporaryDirectory() as folder:
        store = open_store(locate(folder) / "store", GroupingConfig(instances=2))
        writer, limits = TableWriter(store.root), Limits(refused=3)
        for batch, count in enumerate(refused):
            draft = Draft(store, writer, batch)
            limits.write_account(draft, Reading(4, None), {"refused": count})
            draft.commit()


def _drop(given: tuple[str, str]) -> None:
    """Remove the first of two files of a history, after a store has noted a history.

    The second text is where Spark continues, in the words of its checkpoint.
    """
    name, offsets = given
    with TemporaryDirectory() as folder:
        for each in ("one", "one", "two"):
            append(locate(folder) / each, pa.table({"seq": [0]}))
        store = open_store(locate(folder) / "store", GroupingConfig(instances=2))
        note_history(TableWriter(store.root, locate(folder) / name))
        checkpoint = locate(folder) / "checkpoint"
        if offsets:
            for log in ("offsets", "commits"):
                (checkpoint / log / "0").write_bytes(b"v1\n{}\n" + offsets.encode())
        readers = [(store.root, checkpoint)]
        assert drop_before(locate(folder) / "one", 1, readers=readers) == 1


def _plan(given: tuple[Sequence[str], Sequence[int]]) -> None:
    """Compare the files that Spark has planned for a micro-batch with their numbers.

    The texts are the offsets of the streams of one history, in each micro-batch up to this one.
    """
    plans, due = given
    with TemporaryDirectory() as folder:
        history, checkpoint = locate(folder) / "history", locate(folder) / "checkpoint"
        for number in range(2):
            append(history, pa.table({"seq": [2 * number, 2 * number + 1]}))
        for batch, streams in enumerate(plans):
            (checkpoint / "offsets" / str(batch)).write_bytes(f"v1\n{{}}\n{streams}".encode())
        batch = len(plans) - 1
        numbers = [number_of(each) for each in planned_files(history, checkpoint, batch)]
        if numbers != due:
            raise ValueError(f"the files are {numbers}")
        last = 2 * due[-1] + 1 if due else None
        assert read_planned(history, checkpoint, batch) == Reading(2 * len(due), last)


def _list(plans: Sequence[int]) -> None:
    """Count what a landing has refused, from lists of plans of its one micro-batch."""
    with TemporaryDirectory() as folder:
        history = locate(folder)
        (history / "_landing.json").write_bytes(b'{"landing": "one"}')
        rows = pa.table({"seq": [0], "arrival_us": [5]})
        kept = {BATCH: "0", PLAN: "1", READ: "2"}
        write_parquet(rows.replace_schema_metadata(kept), file_of(history, 0))
        for plan in plans:
            fault = pa.Table.from_pylist([{"column": "at", "reason": "is late"}], FAULTS)
            write_parquet(fault, history / "_rejected" / name_of_list(0, plan, 1, 1))
        landed = landed_in(history)
        assert landed is not None
        if not landed.refused:
            raise ValueError(f"no list is of its plan: {plans}")


def _look(groups: int) -> None:
    """Look for the row groups of a file of two rows, a row group each."""
    with TemporaryDirectory() as folder:
        file = append(folder, pa.table({"seq": [0, 1], "event_time_us": [0, 0]}))
        rows = read_parquet([file], pa.schema([("seq", pa.int64()), ("event_time_us", pa.int64())]))
        pq.write_table(rows, file.path, row_group_size=1)
        footers = Footers()
        footers.add(file)
        if len(found := footers.overlapping([(0, 1)], 1)) != groups:
            raise ValueError(f"it has {len(found)} row groups")


def _pack(slots: Sequence[int]) -> None:
    """Pack a row of a history with two grouping columns; its task must travel as number 9."""
    groups = (pa.field("g", pa.string()), pa.field("h", pa.int64()))
    kinds = pa.schema([*((name, kind) for name, kind in COLUMNS.items()), *groups])
    row = {**Event(0, 0, "a", 0, 1.0, 0)._asdict(), "g": "x", "h": 5}
    with TemporaryDirectory() as folder:
        file = append(folder, pa.Table.from_pylist([row], kinds))
        paths = [pa.record_batch({"path": [str(file)]})]
        settings = SLACK.settings(SlackConfig(size_us=10, slide_us=10))
        (packed,) = pack_files(paths, file.parent / "_control", groups, settings, slots)
    found = [tuple(each.values())[:3] for each in packed.to_pylist()]
    if found != [("x", 5, 9)]:
        raise ValueError(f"the row travels as {found}")


def _time(own: Mapping[str, Any]) -> None:
    """Open a query whose watermarks need the times of arrivals."""
    config = WatermarkConfig(10, 10, 3, **own)
    assert (WATERMARK.of(config) is UPSTREAM) == (config.upstreams > 0)
    if not WATERMARK.settings(config).times_arrivals:
        raise ValueError("no time of an arrival is read")


def _explain(text: str) -> None:
    """Raise what the text of an error of Spark says last, unless an input is to blame."""
    name, said = last_error(PySparkException(text))
    if name != "InputProblem":
        raise ValueError(f"{name}: {said}")


def _place(first: Sequence[int]) -> None:
    """Follow the clock through two pieces of a history, given the numbers with which they begin."""
    numbers = np.array([first, [1, 5], [7, 6], [7, 9], [3, 3]])
    after = Course(Timeline(), Pieces(*numbers)).after
    assert after == Timeline(7, 9, 3)


def _miss(late: Mapping[str, int]) -> None:
    """Count late tuples; the third is late for both of its windows, the fourth for one of them."""
    config = WatermarkConfig(10, 5, 0, k=1).to_json()
    workload = example("watermark", config, (0, 20, 2, 19), (1.0,) * 4)
    taken: list[Taken] = []

    def count(*given: Any, **more: Any) -> tuple[TaskState, Output]:
        state, output = kernel.process(*given, **more)
        taken.append(output.taken)
        return state, output

    with patch.object(processor, "process", count):
        run_in_process(WATERMARK, workload)
    if (found := {"late": sum(each.late for each in taken)}) != late:
        raise ValueError(f"they are {found}")


_AT_0, _AT_1, _AT_2 = (
    f'{{"next": {at}, "first": {first}, "requests": []}}' for at, first in ((0, -1), (1, 0), (2, 1))
)
COUNTED: Mapping[str, Callable[[Any], object]] = {
    "counted": _count,
    "dropped": _drop,
    "planned": _plan,
    "listed": _list,
    "looked": _look,
    "packed": _pack,
    "timed": _time,
    "explained": _explain,
    "placed": _place,
    "missed": _miss,
}
OF_ACCOUNTS: Sequence[tuple[str, Any, Any, str]] = (
    ("counted", [3], [4], "4 of its 4 rows are refused, 4 in all, and max_refused is 3"),
    ("counted", [1, 0, 1, 1], [1, 1, 2], "2 of its 4 rows are refused, 4 in all, and max_refused"),
    ("counted", [0, 3, 0], [2, 2], "2 of its 4 rows are refused, 4 in all, and max_refused is 3"),
    ("dropped", ("one", _AT_1), ("two", _AT_1), "belongs to the history"),
    ("dropped", ("one", _AT_1), ("one", ""), "has read nothing yet"),
    ("dropped", ("one", _AT_1), ("one", _AT_0), "number is 1; it can be at most 0, because"),
    ("dropped", ("one", _AT_1), ("one", f"{_AT_1}\n{_AT_0}"), "it can be at most 0, because"),
    ("dropped", ("one", _AT_1), ("one", "-"), "is not the checkpoint of a query that reads a hist"),
    ("planned", ([_AT_1], [0]), ([_AT_0], [0]), "the files are []"),
    ("planned", ([f"{_AT_1}\n{_AT_2}"], [0, 1]), ([_AT_2], [0]), "the files are [1]"),
    ("planned", ([_AT_1, _AT_2], [1]), ([_AT_1, _AT_1], [1]), "the files are []"),
    ("planned", ([f"{_AT_0}\n{_AT_1}", f"{_AT_1}\n{_AT_2}"], [1]), ([_AT_2] * 2, [0]), "are []"),
    ("listed", [1, 2], [2, 3], "no list is of its plan"),
    ("looked", 2, 1, "it has 2 row groups"),
    ("packed", [9], [8], "the row travels as [('x', 5, 8)]"),
    ("timed", {"upstreams": 1, "insert_every_us": 1}, {"upstreams": 1}, "no time of an arrival"),
    ("timed", {"upstreams": 2, "idle_after_us": 1}, {}, "no time of an arrival is read"),
    ("missed", {"late": 1}, {"late": 2}, "they are {'late': 1}"),
    ("explained", "a\nx.y.InputProblem: b is missing", "a ends\nb", "PySparkException: a ends"),
    ("placed", [0, 2], [0, 1], "has parts in which seq does not begin above the part before"),
)
"""Actions: what each can be done with, what it cannot be done with, and why."""

"""A windowed query as a System: workloads in, traces out."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Row, SparkSession

from model.vocabulary import Event, Trace, Workload, task_of
from model.vocabulary import windows as words
from model.vocabulary.trace import Step, fields_of
from spark_impl.runtime.storage import Address, Location
from spark_impl.runtime.systems import CASE, OnKill, OperatorInProcess, arrivals_table, run_pack
from spark_impl.windows.answers import EXACT, results
from spark_impl.windows.blocks import encode
from spark_impl.windows.processor import WindowProcessor, output_tables
from spark_impl.windows.query import WindowedQuery
from spark_impl.windows.room import AnyRoom, ConfigT, WindowRoom, WindowSettings
from spark_impl.windows.store import WindowStore, load_store

OwnerT = TypeVar("OwnerT")
_WORDS: Mapping[str, type[Step]] = {
    "result": words.Result,
    "late": words.Late,
    "rejected": words.Rejected,
    "revision": words.Revision,
    "correction": words.Correction,
    "cleared": words.Cleared,
}
"""The types of steps that every room records, by table."""


def run_workloads(
    room: WindowRoom[ConfigT],
    spark: SparkSession,
    cases: Mapping[str, Workload],
    workdir: Path,
    on_kill: OnKill = lambda _: None,
    *,
    finals: bool = True,
) -> dict[str, Trace]:
    """Run many workloads of one configuration in one query, told apart by a grouping column.

    ``workdir`` is a folder for history and store that is empty or does not exist. Faults strike the
    query as a whole. Without ``finals`` the last answers, which Spark has to join, are not read.
    Raises ``ValueError`` if the configurations differ.
    """

    def open_query(config: ConfigT, history: Path, store: Path) -> WindowedQuery[ConfigT]:
        return WindowedQuery(spark, config, history, store, [CASE], room=room)

    _, store = run_pack(cases, workdir, room.read, open_query, on_kill)
    if store is None:
        return {name: Trace("spark", ()) for name in cases}
    batches = {name: len(list(workload.batches())) for name, workload in cases.items()}
    return read_trace(room, spark, store, batches, finals=finals)


class TaskInProcess(OperatorInProcess):
    """The processor of one task without Spark: micro-batches in, steps of the stream part out."""

    def __init__(self, room: WindowRoom[ConfigT], config: ConfigT, task: int) -> None:
        self._room = room = room.of(config)
        self._processor = WindowProcessor(room, config)
        super().__init__(self._processor, task)
        self._settings = room.settings(config)
        self._store = WindowStore(Location("/"), room=room)

    def batch(self, events: Sequence[Event], batch: int) -> list[Step]:
        """Process a micro-batch of at least one arrival."""
        return self._process(encode(self._settings, arrivals_table(reversed(events))), batch)

    def flush(self, batch: int) -> list[Step]:
        """End the stream."""
        return self._process(None, batch)

    def _process(self, block: bytes | None, batch: int) -> list[Step]:
        steps: list[Step] = []
        self._processor.outputs.clear()
        if not self._tester.test(self._key, [Row(block=block)]):
            return steps
        outputs = self._processor.outputs
        for name, table in output_tables(self._store, self._settings, outputs).items():
            if name in _words(self._room):
                numbered = table.append_column("batch", pa.array([batch] * table.num_rows))
                owners = repeat(None, table.num_rows)
                found = _steps(self._room, self._settings, name, numbered, owners)
                steps.extend(step for _, step in found)
        return steps


def run_in_process(room: WindowRoom[ConfigT], workload: Workload) -> Trace:
    """Run the processor without Spark; return the steps of the stream part."""
    config = room.read(workload.config)
    tasks: dict[int, TaskInProcess] = {}
    steps: list[Step] = []
    batches = list(workload.batches())
    for batch, events in enumerate(batches):
        by_task: dict[int, list[Event]] = {}
        for event in events:
            owner = task_of(event.key, config.tasks)
            for task in range(config.tasks) if room.settings(config).upstreams else (owner,):
                by_task.setdefault(task, []).append(event)
        for task, own in sorted(by_task.items()):
            if task not in tasks:
                tasks[task] = TaskInProcess(room, config, task)
            steps += tasks[task].batch(own, batch)
    if workload.flush:
        for _, running in sorted(tasks.items()):
            steps += running.flush(len(batches))
    return Trace("spark", steps)


def read_trace(
    room: WindowRoom[ConfigT],
    spark: SparkSession,
    store: Address,
    own_batches: Mapping[str, int],
    *,
    finals: bool = True,
) -> dict[str, Trace]:
    """Return the traces that the query of a pack left in its store, by case.

    ``own_batches`` is the number of batches of each case; its flush comes later. A flush that was
    asked for again, because the driver was killed in it, counts once if its steps are the same.
    """
    steps: dict[str, list[Step]] = {name: [] for name in own_batches}
    config, opened = load_store(store, room)
    room = room.of(config)
    flush = max(own_batches.values())
    for name in _words(room):
        table = opened.read_kind(name)
        cases, batches = (table.column(each).to_pylist() for each in (CASE, "batch"))
        last_own = [own_batches[case] for case in cases]
        own_batch = pa.array(map(min, batches, last_own), pa.int64())
        table = table.drop_columns(["batch"]).append_column("batch", own_batch)
        # The batch of a row after the last flush; 0 for every other row.
        again = [batch if batch > flush else 0 for batch in batches]
        owners = zip(cases, again, strict=True)
        found = _steps(room, room.settings(config), name, table, owners)
        said, repeated = Counter[tuple[str, Step]](), Counter[tuple[int, str, Step]]()
        for (case, later), step in sorted(found, key=lambda each: each[0][1]):
            if later:
                repeated[later, case, step] += 1
                if repeated[later, case, step] <= said[case, step]:
                    continue
            said[case, step] += not later
            steps[case].append(step)
    for case, last in _finals(results(room, spark, store)) if finals else ():
        steps[case].append(last)
    return {name: Trace("spark", own) for name, own in steps.items()}


def _finals(answers: DataFrame) -> Iterator[tuple[str, Step]]:
    """Yield the last answers, each with its case."""
    answered = answers.where("revision IS NOT NULL")  # not every row of the window was refused
    final = answered.drop("window").toArrow()  # timestamps take longer than answers
    final = final.append_column("exact", pc.equal(final.column("state"), EXACT))
    rows = _rows(words.Final._fields, final)
    for case, row in zip(final.column(CASE).to_pylist(), rows, strict=True):
        yield case, words.Final(*row)


def _words(room: AnyRoom) -> dict[str, type[Step]]:
    return {**_WORDS, **room.words}


def _steps(
    room: AnyRoom, settings: WindowSettings, name: str, table: pa.Table, owners: Iterable[OwnerT]
) -> Iterator[tuple[OwnerT, Step]]:
    """Yield the steps of one table, each with the owner of its row.

    A row with a run of windows is one step for each. Pairs of an owner are a set: a redelivery
    whose identity was forgotten makes a pair late once more.
    """
    word: Callable[..., Step] = _words(room)[name]
    fields = fields_of(_words(room)[name])
    rows = zip(owners, _rows(fields, table), strict=True)
    if not {"windows", "source_id"} <= {*table.column_names}:
        yield from ((owner, word(*row)) for owner, row in rows)
        return
    at = fields.index("start_us")
    windows = table.column("windows").to_pylist()
    yield from dict.fromkeys(
        (owner, word(*row[:at], row[at] + i * settings.slide_us, *row[at + 1 :]))
        for (owner, row), run in zip(rows, windows, strict=True)
        for i in range(run)
    )


def _rows(fields: Iterable[str], table: pa.Table) -> Iterator[tuple[Any, ...]]:
    """Return the values of some columns, row by row."""
    columns = (table.column(field).to_pylist() for field in fields)
    return zip(*columns, strict=True)

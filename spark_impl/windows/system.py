"""Pipelines over windows as Systems: workloads in, traces out."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import Row, SparkSession
from pyspark.sql.streaming.tws_tester import TwsTester

from model.vocabulary import Event, Trace, Workload, task_of
from model.vocabulary import answers as words
from model.vocabulary.trace import Step
from spark_impl.windows import sink
from spark_impl.windows.answers import EXACT, results
from spark_impl.windows.asked import Asked
from spark_impl.windows.blocks import encode
from spark_impl.windows.packs import CASE, common_config, drive, schema_of
from spark_impl.windows.processor import STATE_NAME, WindowProcessor
from spark_impl.windows.query import WindowedQuery
from spark_impl.windows.room import Room
from spark_impl.windows.store import Store, load_store

_WORDS: dict[str, Any] = {
    "result": words.Result,
    "late": words.Late,
    "rejected": words.Rejected,
    "revision": words.Revision,
    "correction": words.Correction,
    "cleared": words.Cleared,
}
"""Steps that every room records, by the table whose rows they stand for."""


def run_workloads(
    room: Room[Any],
    spark: SparkSession,
    cases: Mapping[str, Workload],
    workdir: Path,
    killed: Callable[[int], object] = lambda _: None,
) -> dict[str, Trace]:
    """Run many workloads of one configuration in one query, told apart by a grouping column.

    File j of the history holds batch j of every case. ``workdir`` is a folder for history and
    store that does not exist yet or is empty. Faults strike the query as a whole; ``killed`` is
    told each micro-batch in which it was killed. Raises ``ValueError`` when the configurations
    differ.
    """
    config = common_config(room.read, cases)
    history, store = workdir / "history", workdir / "store"
    batches = {name: len(list(workload.batches())) for name, workload in cases.items()}

    def opened() -> WindowedQuery[Any]:
        return WindowedQuery(spark, room, config, history, store, [CASE])

    if not drive(cases, history, store, opened, killed):
        return {name: Trace("spark", ()) for name in cases}
    return read_trace(room, spark, store, batches)


class TaskInProcess:
    """The processor of one task without Spark: micro-batches in, the steps of the stream part out.

    State is held by Spark's test driver, as the bytes that its state store would hold.
    """

    def __init__(self, room: Room[Any], config: Any, task: int) -> None:
        self._room = room
        self._asked = room.asked(config)
        self._place = Store(Path(), room)
        self._task = task
        self._tester = TwsTester(WindowProcessor(room, config))

    def batch(self, events: Sequence[Event], batch: int) -> list[Step]:
        """Process a micro-batch of at least one arrival."""
        rows = [event._asdict() for event in events]
        table = pa.Table.from_pylist(rows, schema=schema_of())
        return self._process(encode(self._asked, table), batch)

    def flush(self, batch: int) -> list[Step]:
        """End the stream."""
        return self._process(None, batch)

    def saved(self) -> object:
        """Return the task's state."""
        return self._tester.peekValueState(STATE_NAME, self._task)

    def restore(self, saved: object) -> None:
        """Go on from a state; ``None`` is that of a task that has seen nothing."""
        if saved is None:
            self._tester.deleteState(STATE_NAME, self._task)
        else:
            assert isinstance(saved, tuple)
            self._tester.updateValueState(STATE_NAME, self._task, saved)

    def _process(self, block: bytes | None, batch: int) -> list[Step]:
        found = [row.asDict() for row in self._tester.test(self._task, [Row(block=block)])]
        steps: list[Step] = []
        for name, table in sink.tables(self._place, self._asked, found).items():
            if name in _words(self._room):
                rows = table.append_column("batch", pa.array([batch] * table.num_rows))
                steps.extend(_steps(self._room, self._asked, name, rows.to_pylist()))
        return steps


def run_in_process(room: Room[Any], workload: Workload) -> Trace:
    """Run the processor without Spark: the steps of the stream part."""
    config = room.read(workload.config)
    tasks: dict[int, TaskInProcess] = {}
    steps: list[Step] = []
    batches = list(workload.batches())
    for batch, events in enumerate(batches):
        by_task: dict[int, list[Event]] = {}
        for event in events:
            by_task.setdefault(task_of(event.key, room.asked(config).tasks), []).append(event)
        for task, own in sorted(by_task.items()):
            if task not in tasks:
                tasks[task] = TaskInProcess(room, config, task)
            steps += tasks[task].batch(own, batch)
    if workload.flush:
        for _, running in sorted(tasks.items()):
            steps += running.flush(len(batches))
    return Trace("spark", steps)


def read_trace(
    room: Room[Any], spark: SparkSession, store: Path, own_batches: Mapping[str, int]
) -> dict[str, Trace]:
    """The traces that the query of a pack left in its store.

    ``own_batches`` says how many batches each case has; what happens later is its flush.
    """
    answers = results(spark, room, store)
    rows: dict[str, list[Step]] = {name: [] for name in own_batches}
    config, place = load_store(store, room)
    asked = room.asked(config)
    last = place.committed()
    for name in _words(room):
        table = place.read_all(name, last).to_pylist()
        for row in table:
            row["batch"] = min(row["batch"], own_batches[row[CASE]])
        by_case: dict[str, list[dict[str, Any]]] = {}
        for row in table:
            by_case.setdefault(row[CASE], []).append(row)
        for case, own in by_case.items():
            rows[case].extend(_steps(room, asked, name, own))
    for row in answers.toArrow().to_pylist():
        exact = row["state"] == EXACT
        fields = {name: row[name] for name in words.Final._fields if name != "exact"}
        rows[row[CASE]].append(words.Final(**fields, exact=exact))
    return {name: Trace("spark", steps) for name, steps in rows.items()}


def _words(room: Room[Any]) -> dict[str, Any]:
    return {**_WORDS, **room.words}


def _steps(
    room: Room[Any], asked: Asked, name: str, rows: Iterable[dict[str, Any]]
) -> Iterator[Step]:
    """Steps of one kind from rows of its table; a run of pairs becomes one step a pair.

    Pairs are a set: a redelivery whose identity was forgotten finds a pair late once more.
    """
    word = _words(room)[name]
    pairs: dict[Step, None] = {}
    for row in rows:
        if "windows" in row and "source_id" in row:
            for i in range(row["windows"]):
                moved = {**row, "start_us": row["start_us"] + i * asked.slide_us}
                pairs[word(**{field: moved[field] for field in word._fields})] = None
        else:
            yield word(**{field: row[field] for field in word._fields})
    yield from pairs

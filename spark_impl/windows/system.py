"""Pipelines over windows as Systems: workloads in, traces out."""

from collections.abc import Iterable, Iterator, Mapping
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
from spark_impl.windows.processor import WindowProcessor
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
    room: Room[Any], spark: SparkSession, cases: Mapping[str, Workload], workdir: Path
) -> dict[str, Trace]:
    """Run many workloads of one configuration in one query, told apart by a grouping column.

    File j of the history holds batch j of every case. ``workdir`` is a folder for history and
    store that does not exist yet or is empty. Faults strike the query as a whole. Raises
    ``ValueError`` when the configurations differ.
    """
    config = common_config(room.read, cases)
    history, store = workdir / "history", workdir / "store"
    batches = {name: len(list(workload.batches())) for name, workload in cases.items()}
    if not drive(
        cases, history, store, lambda: WindowedQuery(spark, room, config, history, store, [CASE])
    ):
        return {name: Trace("spark", ()) for name in cases}
    return read_trace(room, spark, store, batches)


def run_in_process(room: Room[Any], workload: Workload) -> Trace:
    """Run the processor without Spark: the steps of the stream part."""
    config = room.read(workload.config)
    asked = room.asked(config)
    tester = TwsTester(WindowProcessor(room, config))
    place = Store(Path(), room)
    tasks: set[int] = set()
    steps: list[Step] = []
    batches = list(workload.batches())
    for batch, events in enumerate([*batches, None] if workload.flush else batches):
        given = dict.fromkeys(tasks) if events is None else _blocks(asked, events)
        tasks |= set(given)
        for task, block in sorted(given.items()):
            found = [row.asDict() for row in tester.test(task, [Row(block=block)])]
            for name, table in sink.tables(place, asked, found).items():
                if name in _words(room):
                    rows = table.append_column("batch", pa.array([batch] * table.num_rows))
                    steps.extend(_steps(room, asked, name, rows.to_pylist()))
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


def _blocks(asked: Asked, events: Iterable[Event]) -> dict[int, bytes]:
    by_task: dict[int, list[dict[str, Any]]] = {}
    for event in events:
        by_task.setdefault(task_of(event.key, asked.tasks), []).append(event._asdict())
    return {
        task: encode(asked, pa.Table.from_pylist(rows, schema=schema_of()))
        for task, rows in by_task.items()
    }

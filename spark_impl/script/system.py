"""A query of scripts as a System: workloads in, traces out."""

from collections import deque
from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import Row, SparkSession

from model.vocabulary import ScriptConfig, Trace, Workload
from model.vocabulary.script.config import Rejected, Result, Undefined
from model.vocabulary.script.placement import hosted_sensors
from model.vocabulary.script.plan import ScriptPlan, compile_plan
from model.vocabulary.trace import Step
from spark_impl.runtime.arrays import PlainRow
from spark_impl.runtime.systems import (
    CASE,
    OnKill,
    OperatorInProcess,
    arrivals_table,
    run_pack,
    system_maker,
)
from spark_impl.script.processor import FLUSH, MESSAGE, ScriptProcessor, blocks_of
from spark_impl.script.query import ScriptQuery
from spark_impl.script.router import Router
from spark_impl.script.store import load_store

_PIECE = 7
"""Most arrivals of a piece; the pieces of a micro-batch reach a worker together, as on Spark."""
_WORDS: dict[str, type[Any]] = {
    "result": Result,
    "undefined": Undefined,
    "rejected": Rejected,
}


class WorkerOutput(NamedTuple):
    """The output of a worker in a micro-batch."""

    steps: list[Step]
    messages: list[tuple[int, bytes]]
    """Receiving workers and their blocks."""
    known_us: int
    """Stamp below which all results of the worker are known."""


class WorkerInProcess(OperatorInProcess):
    """The processor of one worker without Spark: micro-batches in, steps and messages out."""

    def __init__(self, plan: ScriptPlan, worker: int) -> None:
        self._processor = ScriptProcessor(plan)
        super().__init__(self._processor, worker)

    def process(self, *blocks: tuple[int, bytes | None]) -> WorkerOutput:
        """Process a micro-batch of some blocks, each with its kind."""
        self._processor.outputs.clear()
        given = [Row(kind=kind, block=block) for kind, block in blocks]
        own, *messages = self._tester.test(self._key, given)
        (output,) = self._processor.outputs
        steps = _steps({name: table.to_pylist() for name, table in output.tables.items()})
        sent = [(row["worker"], row["block"]) for row in messages]
        return WorkerOutput(steps, sent, own["known_us"])


def run_in_process(workload: Workload) -> Trace:
    """Run the processors of all workers without Spark; return their steps.

    A message to another worker is a micro-batch of its own, behind those already waiting.
    """
    plan = compile_plan(ScriptConfig.from_json(workload.config))
    workers = [WorkerInProcess(plan, number) for number in range(plan.workers)]
    router = Router(plan)
    micro_batches: deque[tuple[int, list[tuple[int, bytes | None]]]] = deque()
    for events in workload.batches():
        by_worker: dict[int, list[tuple[int, bytes | None]]] = {}
        for piece in (events[first : first + _PIECE] for first in range(0, len(events), _PIECE)):
            for worker, kind, block in blocks_of(router, arrivals_table(reversed(piece))):
                by_worker.setdefault(worker, []).append((kind, block))
        micro_batches.extend(by_worker.items())
    if workload.flush:
        micro_batches.extend((worker, [(FLUSH, None)]) for worker in range(plan.workers))
    steps: list[Step] = []
    while micro_batches:
        worker, blocks = micro_batches.popleft()
        output = workers[worker].process(*blocks)
        steps += output.steps
        micro_batches.extend((to, [(MESSAGE, message)]) for to, message in output.messages)
    return _trace(plan, steps)


def _steps(rows: Mapping[str, Iterable[PlainRow]]) -> list[Step]:
    """Return the steps of the rows of some tables."""
    return [
        word(*(row[field] for field in word._fields))
        for name, word in _WORDS.items()
        for row in rows[name]
    ]


def _trace(plan: ScriptPlan, steps: Iterable[Step]) -> Trace:
    """Return the trace of a plan and the steps of its workers."""
    # Windows and operations of one statement may be undefined at the same stamp.
    undefined = {step: None for step in steps if isinstance(step, Undefined)}
    others = (step for step in steps if not isinstance(step, Undefined))
    return Trace("spark", chain(hosted_sensors(plan.placement), others, undefined))


def run_workloads(
    spark: SparkSession,
    cases: Mapping[str, Workload],
    workdir: Path,
    on_kill: OnKill = lambda _: None,
) -> dict[str, Trace]:
    """Run many workloads of one configuration in one query, told apart by a grouping column.

    ``workdir`` is a folder for history and store that is empty or does not exist. Faults strike the
    query as a whole. Raises ``ValueError`` if the configurations differ.
    """

    def open_query(config: ScriptConfig, history: Path, store: Path) -> ScriptQuery:
        return ScriptQuery(spark, config, history, store, [CASE])

    config, store = run_pack(cases, workdir, ScriptConfig.from_json, open_query, on_kill)
    return read_traces(config, store, cases)


make_system = system_maker("script", run_workloads)


def read_traces(config: ScriptConfig, store: Path | None, cases: Iterable[str]) -> dict[str, Trace]:
    """Return the traces that the query of a pack left in its store, by case.

    Nothing arrived if ``store`` is None.
    """
    rows: dict[str, dict[str, list[PlainRow]]] = {
        name: {table: [] for table in _WORDS} for name in cases
    }
    if store is not None:
        opened = load_store(store)
        for table in _WORDS:
            for row in opened.read_kind(table).drop(["batch"]).to_pylist():
                rows[row.pop(CASE)][table].append(row)
    plan = compile_plan(config)
    return {name: _trace(plan, _steps(own)) for name, own in rows.items()}

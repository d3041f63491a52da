"""The pipeline as a System: workloads in, traces out."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.streaming.tws_tester import TwsTester

from model.vocabulary import Event, ScriptConfig, System, Trace, Workload
from model.vocabulary.script import Rejected, Result, Undefined
from model.vocabulary.trace import Step
from spark_impl.runtime.systems import one_at_a_time
from spark_impl.script.admission import Waiting, waiting_of
from spark_impl.script.plan import Plan, compile_plan
from spark_impl.script.processor import (
    ARRIVALS,
    FLUSH,
    MESSAGE,
    STATE_NAME,
    ScriptProcessor,
    result_tables,
)
from spark_impl.script.query import ScriptQuery
from spark_impl.script.router import Router
from spark_impl.script.store import load_store
from spark_impl.windows.packs import CASE, common_config, drive, schema_of

_WORDS: dict[str, Any] = {"result": Result, "undefined": Undefined, "rejected": Rejected}


class Said(NamedTuple):
    """What a worker finds out in a micro-batch."""

    steps: list[Step]
    messages: list[tuple[int, bytes]]
    """Blocks for other workers, each with the worker that it is for."""
    known_us: int
    """Stamp before which all results of the worker are there."""


class WorkerInProcess:
    """The processor of one worker without Spark: micro-batches in, steps and messages out.

    State is held by Spark's test driver, as the bytes that its state store would hold.
    """

    def __init__(self, plan: Plan, waiting: Waiting, worker: int) -> None:
        self._plan = plan
        self._worker = worker
        self._tester = TwsTester(ScriptProcessor(plan, waiting))

    def process(self, kind: int, block: bytes | None) -> Said:
        """Process a micro-batch of one block, which is of this kind."""
        # Imported here: every process that works on a query would wait for it.
        import pandas as pd

        given = pd.DataFrame({"kind": [kind], "block": [block]}, dtype=object)
        frame: Any = self._tester.testInPandas(self._worker, given)
        own, *messages = frame.to_dict("records")
        found = result_tables(self._plan, own["results"], own["undefined"], own["rejected"])
        steps = _steps({name: table.to_pylist() for name, table in found.items()})
        return Said(steps, [(row["to"], row["messages"]) for row in messages], own["known_us"])

    def saved(self) -> object:
        """Return the worker's state."""
        return self._tester.peekValueState(STATE_NAME, self._worker)

    def restore(self, saved: object) -> None:
        """Go on from a state; ``None`` is that of a worker that has seen nothing."""
        if saved is None:
            self._tester.deleteState(STATE_NAME, self._worker)
        else:
            assert isinstance(saved, tuple)
            self._tester.updateValueState(STATE_NAME, self._worker, saved)


def run_in_process(workload: Workload) -> Trace:
    """Run the processors of all workers without Spark.

    A message to another worker is a micro-batch of its own, after those that are there already.
    """
    config = ScriptConfig.from_json(workload.config)
    plan, waiting = compile_plan(config), waiting_of(config)
    workers = [WorkerInProcess(plan, waiting, number) for number in range(plan.workers)]
    router = Router(plan)
    given: deque[tuple[int, int, bytes | None]] = deque()
    for events in workload.batches():
        blocks = router.blocks(arrivals_table(events))
        given.extend((worker, ARRIVALS, block) for worker, block in blocks.items())
    if workload.flush:
        given.extend((worker, FLUSH, None) for worker in range(plan.workers))
    steps: list[Step] = []
    while given:
        worker, kind, block = given.popleft()
        said = workers[worker].process(kind, block)
        steps += said.steps
        given.extend((to, MESSAGE, message) for to, message in said.messages)
    return _trace(plan, steps)


def _steps(rows: Mapping[str, Iterable[dict[str, Any]]]) -> list[Step]:
    """The steps that rows of the tables stand for."""
    return [word(**row) for name, word in _WORDS.items() for row in rows[name]]


def _trace(plan: Plan, steps: Iterable[Step]) -> Trace:
    """What workers found out, and what they are sent."""
    # Windows and operations of one statement may be undefined at the same stamp.
    undefined = {step: None for step in steps if isinstance(step, Undefined)}
    others = (step for step in steps if not isinstance(step, Undefined))
    return Trace("spark", chain(plan.hosted(), others, undefined))


def run_workloads(
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
    config = common_config(ScriptConfig.from_json, cases)
    history, store = workdir / "history", workdir / "store"

    def opened() -> ScriptQuery:
        return ScriptQuery(spark, config, history, store, [CASE])

    ran = drive(cases, history, store, opened, killed)
    return read_traces(config, store if ran else None, cases)


def read_traces(config: ScriptConfig, store: Path | None, cases: Iterable[str]) -> dict[str, Trace]:
    """The traces that the query of a pack left in its store; without one nothing arrived."""
    found: dict[str, dict[str, list[dict[str, Any]]]] = {
        name: {table: [] for table in _WORDS} for name in cases
    }
    if store is not None:
        place = load_store(store)
        for table in _WORDS:
            for row in place.read_all(table).drop(["batch"]).to_pylist():
                found[row.pop(CASE)][table].append(row)
    plan = compile_plan(config)
    return {name: _trace(plan, _steps(own)) for name, own in found.items()}


def make_system(master: str = "local[2]") -> System:
    """The pipeline as a callable; it uses the running session, or one of its own for each call."""
    return one_at_a_time(run_workloads, "script", master)


def arrivals_table(events: Iterable[Event]) -> pa.Table:
    """Return arrivals as a file of a history has them."""
    return pa.Table.from_pylist([event._asdict() for event in events], schema=schema_of())

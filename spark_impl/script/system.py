"""The pipeline as a System: workloads in, traces out."""

from collections import deque
from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.streaming.tws_tester import TwsTester

from model.vocabulary import Event, ScriptConfig, System, Trace, Workload
from model.vocabulary.script import Rejected, Result, Undefined
from spark_impl.script.admission import waiting_of
from spark_impl.script.blocks import Router
from spark_impl.script.plan import Plan, compile_plan
from spark_impl.script.processor import ARRIVALS, FLUSH, MESSAGE, ScriptProcessor
from spark_impl.script.query import ScriptQuery
from spark_impl.script.store import load_store
from spark_impl.script.tables import tables
from spark_impl.systems import one_at_a_time
from spark_impl.windows.packs import CASE, common_config, drive, schema_of
from spark_impl.windows.slots import slots

_WORDS: dict[str, Any] = {"result": Result, "undefined": Undefined, "rejected": Rejected}


def run_in_process(workload: Workload) -> Trace:
    """Run the processors of all workers without Spark.

    A message to another worker is a micro-batch of its own, after those that are there already.
    """
    # Imported here: every process that works on a query would wait for it.
    import pandas as pd

    config = ScriptConfig.from_json(workload.config)
    plan = compile_plan(config)
    router = Router(plan)
    tester = TwsTester(ScriptProcessor(plan, waiting_of(config)))
    numbers = slots(plan.workers)
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in _WORDS}
    batches: list[list[tuple[int, int, bytes | None]]] = [
        [(worker, ARRIVALS, block) for worker, block in router.blocks(_table(events)).items()]
        for events in workload.batches()
    ]
    if workload.flush:
        batches.append([(worker, FLUSH, None) for worker in range(plan.workers)])
    waiting = deque(chain.from_iterable(batches))
    while waiting:
        worker, kind, block = waiting.popleft()
        given = pd.DataFrame({"kind": [kind], "block": [block]}, dtype=object)
        frame: Any = tester.testInPandas(numbers[worker], given)
        for row in frame.to_dict("records"):
            if row["to"] is None:
                made = tables(plan, row["results"], row["undefined"], row["rejected"])
                for name, table in made.items():
                    found[name] += table.to_pylist()
            else:
                waiting.append((row["to"], MESSAGE, row["messages"]))
    return _trace(plan, found)


def _trace(plan: Plan, found: Mapping[str, list[dict[str, Any]]]) -> Trace:
    """The steps that rows of the tables stand for."""
    steps = {name: [word(**row) for row in found[name]] for name, word in _WORDS.items()}
    # Windows and operations of one statement may be undefined at the same stamp.
    steps["undefined"] = list(set(steps["undefined"]))
    return Trace("spark", chain(plan.hosted(), *steps.values()))


def run_workloads(
    spark: SparkSession, cases: Mapping[str, Workload], workdir: Path
) -> dict[str, Trace]:
    """Run many workloads of one configuration in one query, told apart by a grouping column.

    File j of the history holds batch j of every case. ``workdir`` is a folder for history and
    store that does not exist yet or is empty. Faults strike the query as a whole. Raises
    ``ValueError`` when the configurations differ.
    """
    config = common_config(ScriptConfig.from_json, cases)
    history, store = workdir / "history", workdir / "store"
    ran = drive(cases, history, store, lambda: ScriptQuery(spark, config, history, store, [CASE]))
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
    return {name: _trace(plan, own) for name, own in found.items()}


def make_system(master: str = "local[2]") -> System:
    """The pipeline as a callable; it uses the running session, or one of its own for each call."""
    return one_at_a_time(run_workloads, "script", master)


def _table(events: Iterable[Event]) -> pa.Table:
    """Arrivals as a file of a history has them."""
    return pa.Table.from_pylist([event._asdict() for event in events], schema=schema_of())

"""The pipeline as a System: workloads in, traces out."""

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import pyarrow as pa
from pyspark.sql.streaming.tws_tester import TwsTester

from model.vocabulary import Event, ScriptConfig, Trace, Workload
from model.vocabulary.script import Rejected, Result, Undefined
from model.vocabulary.trace import Step
from spark_impl.script.blocks import COLUMNS, blocks
from spark_impl.script.plan import compile_plan
from spark_impl.script.processor import ARRIVALS, FLUSH, MESSAGE, ScriptProcessor
from spark_impl.script.tables import tables
from spark_impl.windows.slots import slots

CASE = "case_id"
"""Grouping column that tells the workloads of a pack apart."""
_WORDS: dict[str, Any] = {"result": Result, "undefined": Undefined, "rejected": Rejected}


def run_in_process(workload: Workload) -> Trace:
    """Run the processors of all workers without Spark.

    A message to another worker is a micro-batch of its own, after those that are there already.
    """
    # Imported here: every process that works on a query would wait for it.
    import pandas as pd

    config = ScriptConfig.from_json(workload.config)
    plan = compile_plan(config)
    tester = TwsTester(ScriptProcessor(plan, config.lateness_us))
    numbers = slots(plan.workers)
    steps: set[Step] = set(plan.hosted())
    batches: list[list[tuple[int, int, bytes | None]]] = [
        [(worker, ARRIVALS, block) for worker, block in blocks(plan, table_of(events)).items()]
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
                steps.update(_steps(made))
            else:
                waiting.append((row["to"], MESSAGE, row["messages"]))
    return Trace("spark", steps)


def _steps(made: dict[str, pa.Table]) -> Iterator[Step]:
    for name, table in made.items():
        for row in table.to_pylist():
            yield _WORDS[name](**row)


def table_of(events: Iterable[Event]) -> pa.Table:
    """Arrivals with the columns of a history."""
    schema = pa.schema(list(COLUMNS.items()))
    return pa.Table.from_pylist([event._asdict() for event in events], schema=schema)

"""What a worker found, as tables: one row a statement that it concerns.

Rules of this file:

* A node is one computation; its tuples are results of every statement that says the same.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from spark_impl.runtime.arrays import Ints
from spark_impl.script import encoding
from spark_impl.script.admission import REASONS
from spark_impl.script.graph import Output
from spark_impl.script.plan import Plan

SCHEMAS = {
    "result": pa.schema(
        [
            ("workflow", pa.string()),
            ("name", pa.string()),
            ("ts_us", pa.int64()),
            ("value", pa.float64()),
        ]
    ),
    "undefined": pa.schema(
        [("workflow", pa.string()), ("name", pa.string()), ("ts_us", pa.int64())]
    ),
    "rejected": pa.schema([("seq", pa.int64()), ("reason", pa.string())]),
}
"""Columns of the tables, behind those of grouping."""


def tables(plan: Plan, results: bytes, undefined: bytes, rejected: bytes) -> dict[str, pa.Table]:
    """The tables of one row of the processor."""
    made = np.frombuffer(results, encoding.TUPLE)
    without = np.frombuffer(undefined, encoding.UNDEFINED)
    refused = np.frombuffer(rejected, encoding.REJECTED)
    rows, workflows, names = _said(plan.statements, made["node"])
    found = {"result": [workflows, names, made["ts"][rows], made["value"][rows]]}
    rows, workflows, names = _said(plan.writers, without["node"])
    found["undefined"] = [workflows, names, without["ts"][rows]]
    reasons = pa.array(REASONS).take(pa.array(refused["reason"]))
    found["rejected"] = [np.ascontiguousarray(refused["seq"]), reasons]
    return {
        name: pa.Table.from_arrays(
            [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)],
            schema=schema,
        )
        for name, schema in SCHEMAS.items()
        for columns in [found[name]]
    }


def _said(outputs: Mapping[int, Sequence[Output]], nodes: Ints) -> tuple[Ints, pa.Array, pa.Array]:
    """Every row once for each statement of its node: which row, workflow and name."""
    used, which = np.unique(nodes, return_inverse=True)
    listed = [outputs[int(number)] for number in used]
    flat = [output for each in listed for output in each]
    sizes = np.array([len(each) for each in listed], np.int64)
    firsts = np.cumsum(sizes) - sizes
    times = sizes[which]
    rows = np.repeat(np.arange(len(nodes)), times)
    place = np.arange(len(rows)) - np.repeat(np.cumsum(times) - times, times)
    statement = pa.array(firsts[which][rows] + place)
    workflows = pa.array([output.workflow for output in flat], pa.string())
    names = pa.array([output.name for output in flat], pa.string())
    return rows, workflows.take(statement), names.take(statement)

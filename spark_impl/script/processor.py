"""Spark's side of a micro-batch: files to blocks, the stateful operator, and rows to tables.

The state of a worker is one value in Spark's state store. It is bounded by the tuples between the
watermarks of sensors and their latest tuples, and by the slices of open windows.
"""

import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from model.vocabulary.script.graph import Output
from model.vocabulary.script.plan import ScriptPlan, Share
from spark_impl.runtime.arrays import Ints, PlainRow, Values
from spark_impl.runtime.sources import PATH
from spark_impl.runtime.storage import InputProblem, Location, locate
from spark_impl.runtime.stores import ATTEMPT
from spark_impl.script import encoding
from spark_impl.script.admission import REASONS
from spark_impl.script.kernel import Found, Given, State, Taken, advance
from spark_impl.script.router import Router
from spark_impl.script.store import BLOCK, TABLES, ScriptStore
from spark_impl.windows.arrival_files import open_file, read_request, read_tables, split
from spark_impl.windows.blocks import SLOT, slots, task_of_slot

if TYPE_CHECKING:
    import pandas as pd


def result_tables(
    plan: ScriptPlan, results: bytes, undefined: bytes, rejected: bytes
) -> dict[str, pa.Table]:
    """Return the result tables of one row of the processor.

    A node is one computation; its tuples are results of every statement with the same computation.
    """
    made = np.frombuffer(results, encoding.TUPLE)
    without = np.frombuffer(undefined, encoding.UNDEFINED)
    refused = np.frombuffer(rejected, encoding.REJECTED)
    rows, workflows, names = _repeat_for_statements(plan.statements, made["node"])
    found = {"result": [workflows, names, made["ts"][rows], made["value"][rows]]}
    rows, workflows, names = _repeat_for_statements(plan.writers, without["node"])
    found["undefined"] = [workflows, names, without["ts"][rows]]
    reasons = pa.array(REASONS).take(pa.array(refused["reason"]))
    sensors = pa.array([node.sensor for node in plan.graph.nodes]).take(pa.array(refused["node"]))
    found["rejected"] = [refused["seq"], sensors, refused["source_id"], refused["ts"], reasons]
    return {
        name: pa.table(dict(zip(schema.names, found[name], strict=True)), schema)
        for name, schema in encoding.SCHEMAS.items()
    }


def _repeat_for_statements(
    outputs: Mapping[int, Sequence[Output]], nodes: Ints
) -> tuple[Ints, pa.Array, pa.Array]:
    """Repeat rows for each statement of their node; return row, workflow and name of each."""
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


def pack_files(
    batches: Iterable[pa.RecordBatch], store: ScriptStore, plan: ScriptPlan
) -> Iterator[pa.RecordBatch]:
    """Turn addresses of files into rows of :data:`INPUT`, for ``mapInArrow``.

    If sensors may be idle, every worker gets the clock of the arrivals of all sensors.
    """
    router, numbers = Router(plan), slots(plan.workers)
    for batch in batches:
        for file in map(locate, batch.column(PATH).to_pylist()):
            if file.parent == store.control:
                rows = read_request(file).to_pylist()
            else:
                rows = list(_history_rows(file, store.groups, router))
            for row in rows:
                row[SLOT] = numbers[row.pop("worker")]
            if rows:
                yield from pa.Table.from_pylist(rows, store.schema_of(INPUT)).to_batches()


def _history_rows(file: Location, groups: Sequence[pa.Field], router: Router) -> Iterator[PlainRow]:
    """Yield the blocks of a history file, by values of the grouping columns and by worker."""
    names = [field.name for field in groups]
    for table in read_tables(open_file(file, groups), groups, router.columns):
        for group, part in split(table, names):
            if None in group:
                msg = f"column {names[group.index(None)]!r} of {file} is NULL in some row"
                raise InputProblem(msg)
            for worker, kind, block in blocks_of(router, part):
                row = dict(zip(names, group, strict=True))
                yield {**row, "worker": worker, "kind": kind, "block": block}


def blocks_of(router: Router, table: pa.Table) -> Iterator[tuple[int, int, bytes]]:
    """Yield what a piece of a history has for workers: worker, kind and block.

    The first worker is told how many arrivals nobody asks for, which go to none.
    """
    asked = router.asked(table)
    for worker, block in router.blocks(asked).items():
        yield worker, ARRIVALS, block
    if unasked := table.num_rows - len(asked):
        yield 0, UNASKED, np.int64(unasked).tobytes()
    clock = router.clock(table)
    if clock is not None:
        for worker in range(router.workers):
            yield worker, CLOCK, clock


WRITTEN = {name: f"{name}_rows" for name in encoding.SCHEMAS}
"""Columns in which a worker reports the number of its rows in a table, by table."""
REPORT = pa.schema(
    [
        *TABLES["worker"],
        *((column, pa.int64()) for column in (*WRITTEN.values(), *Taken._fields)),
        (ATTEMPT, pa.string()),
        *(field for field in BLOCK if field.name != "worker"),
    ]
)
"""Rows for the driver: progress of workers and what they wrote, and messages with their reader."""


def write_tables(
    batches: Iterable[pa.RecordBatch], store: ScriptStore, plan: ScriptPlan, batch: int
) -> Iterator[pa.RecordBatch]:
    """Write the output of the processor to tables; yield the rows for the driver (``mapInArrow``).

    Every partition writes its part of the tables, and every attempt at one its own files.
    """
    attempt = uuid.uuid4().hex
    group_columns = [field.name for field in store.groups]
    found: dict[str, list[pa.Table]] = {}
    rows = []
    for row in (row for each in batches for row in each.to_pylist()):
        group = {name: row[name] for name in group_columns}
        if row["to"] is not None:
            rows.append({**group, "worker": row["to"], "kind": MESSAGE, "block": row["messages"]})
            continue
        told = (*TABLES["worker"].names, *Taken._fields)
        report = {**group, **{name: row[name] for name in told}, ATTEMPT: attempt}
        made = result_tables(plan, row["results"], row["undefined"], row["rejected"])
        for name, table in made.items():
            placed = _placed(table, group)
            found.setdefault(name, []).append(placed)
            report[WRITTEN[name]] = placed.num_rows
        rows.append(report)
    for name, parts in found.items():
        schema = store.kinds[name]
        store.write(name, batch, pa.concat_tables([each.cast(schema) for each in parts]), attempt)
    if rows:
        yield from pa.Table.from_pylist(rows, store.schema_of(REPORT)).to_batches()


def _placed(table: pa.Table, group: PlainRow) -> pa.Table:
    """Return the rows behind the grouping columns."""
    columns = [pa.array([value] * table.num_rows) for value in group.values()]
    return pa.table([*columns, *table.columns], names=[*group, *table.column_names])


ARRIVALS, MESSAGE, FLUSH, CLOCK, UNASKED = range(5)
"""Kinds of blocks."""
STATE_NAME = "worker"
"""Name of the only state variable."""
_TYPES = {"large": StringType(), "seq": LongType()}
STATE = StructType(
    [StructField(name, _TYPES.get(name, BinaryType())) for name in encoding.Kept._fields]
)
_RECORDS = ("results", "undefined", "rejected", "messages")


INPUT = pa.schema([(SLOT, pa.int32()), ("kind", pa.int32()), ("block", pa.binary())])
"""Columns of the processor's input, behind the grouping columns; a flush has no block."""
OUTPUT = pa.schema(
    [
        *TABLES["worker"],
        *((name, pa.int64()) for name in Taken._fields),
        ("to", pa.int32()),
        *((name, pa.binary()) for name in _RECORDS),
    ]
)
"""Columns of the processor's output, behind the grouping columns.

A row is either the news of a worker (``to`` is NULL), or a message to one other worker.
"""


class ScriptProcessor(StatefulProcessor):
    """Adapter between Spark's state store and :func:`spark_impl.script.kernel.advance`."""

    def __init__(self, plan: ScriptPlan, group_columns: tuple[str, ...] = ()) -> None:
        self._plan = plan
        self._names = [*group_columns, "worker"]
        self._shares: dict[int, Share] = {}

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the only state variable."""
        self._state = handle.getValueState(STATE_NAME, STATE)

    def handleInputRows(  # noqa: N802 (the name is Spark's)
        self,
        key: Values,
        rows: "Iterator[pd.DataFrame]",
        timerValues: object,  # noqa: N803 (the name is Spark's)
    ) -> "Iterator[pd.DataFrame]":
        """Process the rows of one micro-batch for one worker."""
        # Imported here because the driver process that prepares a query need not wait for it.
        import pandas as pd

        worker = task_of_slot(int(key[-1]), self._plan.workers)
        if worker not in self._shares:
            self._shares[worker] = self._plan.share(worker)
        share = self._shares[worker]
        blocks = defaultdict[int, list[bytes]](list)
        for frame in rows:
            for kind, block in zip(frame["kind"], frame["block"], strict=True):
                blocks[kind].append(block)
        stored = self._state.get()
        before = State()
        if stored is not None:
            before = encoding.decode_state(share, encoding.Kept(*stored))
        given = Given(
            encoding.decode_arrivals(blocks[ARRIVALS], self._plan.is_timed),
            encoding.decode_messages(blocks[MESSAGE]),
            bool(blocks[FLUSH]),
            encoding.decode_pieces(blocks[CLOCK]),
            int(np.frombuffer(b"".join(blocks[UNASKED]), np.int64).sum()),
        )
        after, found = advance(share, before, given)
        self._state.update(tuple(encoding.encode_state(after)))
        who = dict(zip(self._names, (*key[:-1], worker), strict=True))
        nothing = dict.fromkeys(OUTPUT.names[1:])
        rows_of = [{**who, **nothing, **row} for row in _output_rows(share, found)]
        yield pd.DataFrame(rows_of, dtype=object)

    def close(self) -> None:
        """Release nothing."""


def _output_rows(share: Share, found: Found) -> Iterator[PlainRow]:
    """Yield the news of a worker, then a message to every other worker that needs one."""
    yield {
        "known_us": found.known_us,
        "held_by": found.held_by,
        "wm_us": found.wm_us,
        **found.taken._asdict(),
        "results": encoding.encode_records(encoding.TUPLE, found.results),
        "undefined": encoding.encode_records(
            encoding.UNDEFINED, {number: (ts,) for number, ts in found.undefined.items()}
        ),
        "rejected": encoding.encode_records(encoding.REJECTED, found.rejected),
    }
    for other in sorted({to for number in found.messages for to in share.sent[number]}):
        chosen = {
            number: each for number, each in found.messages.items() if other in share.sent[number]
        }
        yield {"to": other, "messages": encoding.encode_message(chosen)}

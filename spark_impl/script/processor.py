"""Spark's side of a micro-batch: files to blocks, and the stateful operator.

In a query, the operator writes results, undefined stamps and rejected arrivals into the tables of
the store, and returns only the progress of workers, and their messages. The state of a worker is
bounded by the tuples between the watermarks of sensors and their latest tuples, and by the slices
of open windows.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import Row

from model.vocabulary.script.graph import Output
from model.vocabulary.script.plan import ScriptPlan, Share
from spark_impl.runtime.arrays import Ints, PlainRow, Values
from spark_impl.runtime.operators import Operator, Write, row_of
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


def result_tables(plan: ScriptPlan, found: Found) -> dict[str, pa.Table]:
    """Return the result tables of a worker.

    A node is one computation; its tuples are results of every statement with the same computation.
    """
    made = encoding.records_of(encoding.TUPLE, found.results)
    stamps = {number: (ts,) for number, ts in found.undefined.items()}
    without = encoding.records_of(encoding.UNDEFINED, stamps)
    refused = encoding.records_of(encoding.REJECTED, found.rejected)
    rows, workflows, names = _repeat_for_statements(plan.statements, made["node"])
    columns = {"result": [workflows, names, made["ts"][rows], made["value"][rows]]}
    rows, workflows, names = _repeat_for_statements(plan.writers, without["node"])
    columns["undefined"] = [workflows, names, without["ts"][rows]]
    reasons = pa.array(REASONS).take(pa.array(refused["reason"]))
    sensors = pa.array([node.sensor for node in plan.graph.nodes]).take(pa.array(refused["node"]))
    columns["rejected"] = [refused["seq"], sensors, refused["source_id"], refused["ts"], reasons]
    return {
        name: pa.table(dict(zip(schema.names, columns[name], strict=True)), schema)
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
INPUT = pa.schema([(SLOT, pa.int32()), ("kind", pa.int32()), ("block", pa.binary())])
"""Columns of the operator's input, behind the grouping columns; a flush has no block."""
ARRIVALS, MESSAGE, FLUSH, CLOCK, UNASKED = range(5)
"""Kinds of blocks."""


class GroupTables(NamedTuple):
    """The result tables of one worker, for some values of the grouping columns."""

    group: Values
    tables: dict[str, pa.Table]


def output_tables(store: ScriptStore, outputs: Sequence[GroupTables]) -> dict[str, pa.Table]:
    """Return the tables of some workers, by name, with the grouping columns in front."""
    found = {}
    for name in encoding.SCHEMAS:
        parts = []
        for group, tables in outputs:
            table = tables[name]
            same = [
                pa.repeat(pa.scalar(value, field.type), table.num_rows)
                for field, value in zip(store.groups, group, strict=True)
            ]
            parts.append(pa.Table.from_arrays([*same, *table.columns], schema=store.kinds[name]))
        found[name] = pa.concat_tables(parts)
    return found


class ScriptProcessor(Operator[State, GroupTables]):
    """Connects Spark's state store with :func:`spark_impl.script.kernel.advance`."""

    def __init__(
        self, plan: ScriptPlan, group_columns: tuple[str, ...] = (), write: Write | None = None
    ) -> None:
        super().__init__(write)
        self._plan = plan
        self._names = [*group_columns, "worker"]
        self._shares: dict[int, Share] = {}

    def handleInputRows(  # noqa: N802 (the name is Spark's)
        self,
        key: Values,
        rows: Iterator[Row],
        timerValues: object,  # noqa: N803 (the name is Spark's)
    ) -> Iterator[Row]:
        """Process the blocks of one worker in one micro-batch."""
        worker = task_of_slot(int(key[-1]), self._plan.workers)
        if worker not in self._shares:
            self._shares[worker] = self._plan.share(worker)
        share = self._shares[worker]
        blocks = defaultdict[int, list[bytes]](list)
        for row in rows:
            blocks[row["kind"]].append(row["block"])
        given = Given(
            encoding.decode_arrivals(blocks[ARRIVALS], self._plan.is_timed),
            encoding.decode_messages(blocks[MESSAGE]),
            bool(blocks[FLUSH]),
            encoding.decode_pieces(blocks[CLOCK]),
            int(np.frombuffer(b"".join(blocks[UNASKED]), np.int64).sum()),
        )
        after, found = advance(share, self.state(State()), given)
        self.keep(after)
        tables = result_tables(self._plan, found)
        self.outputs.append(GroupTables(key[:-1], tables))
        report = {
            **dict(zip(self._names, (*key[:-1], worker), strict=True)),
            "known_us": found.known_us,
            "held_by": found.held_by,
            "wm_us": found.wm_us,
            **{WRITTEN[name]: table.num_rows for name, table in tables.items()},
            **found.taken._asdict(),
            ATTEMPT: self.attempt,
        }
        yield row_of(report)
        for reader, block in messages_of(share, found):
            who = dict(zip(self._names, (*key[:-1], reader), strict=True))
            yield row_of({**who, "kind": MESSAGE, "block": block})


def messages_of(share: Share, found: Found) -> Iterator[tuple[int, bytes]]:
    """Yield a message for each other worker that needs results: its reader and its block."""
    for other in sorted({to for number in found.messages for to in share.sent[number]}):
        chosen = {
            number: each for number, each in found.messages.items() if other in share.sent[number]
        }
        yield other, encoding.encode_message(chosen)

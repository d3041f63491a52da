"""The stateful operator: blocks for a worker in, one row of what it found out.

The state of a worker is one value in Spark's state store. It is bounded by what lies between the
watermarks of sensors and their latest tuples, and by the slices of windows that are open.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from spark_impl.script import encoding
from spark_impl.script.admission import Waiting
from spark_impl.script.kernel import Found, Given, State, advance
from spark_impl.script.plan import Plan, Share
from spark_impl.windows.slots import SLOT, task_of_slot

if TYPE_CHECKING:
    import pandas as pd

ARRIVALS, MESSAGE, FLUSH = range(3)
"""Kinds of blocks."""
STATE_NAME = "worker"
"""Name of the one state variable."""
_TYPES = {"large": StringType(), "seq": LongType()}
STATE = StructType(
    [StructField(name, _TYPES.get(name, BinaryType())) for name in encoding.Kept._fields]
)
_RECORDS = ("results", "undefined", "rejected", "messages")


def input_schema(groups: StructType) -> StructType:
    """Rows that reach the processor; a flush has no block."""
    ours = [
        StructField(SLOT, IntegerType()),
        StructField("kind", IntegerType()),
        StructField("block", BinaryType()),
    ]
    return StructType([*groups, *ours])


def output_schema(groups: StructType) -> StructType:
    """Rows that leave it: what a worker found, as records.

    A row says what is new (``to`` is NULL), or is a message to one other worker.
    """
    ours = [
        StructField("worker", IntegerType()),
        StructField("known_us", LongType()),
        StructField("to", IntegerType()),
    ]
    return StructType([*groups, *ours, *(StructField(name, BinaryType()) for name in _RECORDS)])


class ScriptProcessor(StatefulProcessor):
    """Adapter between Spark's state store and :func:`spark_impl.script.kernel.advance`."""

    def __init__(self, plan: Plan, waiting: Waiting, group_columns: tuple[str, ...] = ()) -> None:
        self._plan = plan
        self._waiting = waiting
        self._names = [*group_columns, "worker"]
        self._shares: dict[int, Share] = {}

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the one state variable."""
        self._state = handle.getValueState(STATE_NAME, STATE)

    def handleInputRows(  # noqa: N802 (the name is Spark's)
        self,
        key: Any,
        rows: "Iterator[pd.DataFrame]",
        timerValues: Any,  # noqa: N803
    ) -> "Iterator[pd.DataFrame]":
        """Process what one micro-batch brought to one worker."""
        # Imported here: the process that prepares a query on the driver would wait for it.
        import pandas as pd

        worker = task_of_slot(int(key[-1]), self._plan.workers)
        if worker not in self._shares:
            self._shares[worker] = self._plan.share(worker)
        share = self._shares[worker]
        blocks: dict[int, list[bytes]] = {ARRIVALS: [], MESSAGE: [], FLUSH: []}
        for frame in rows:
            for kind, block in zip(frame["kind"], frame["block"], strict=True):
                blocks[kind].append(block)
        stored = self._state.get()
        before = State()
        if stored is not None:
            before = encoding.restored(share, encoding.Kept(*stored))
        given = Given(
            encoding.arrivals_of(blocks[ARRIVALS]),
            encoding.messages_of(blocks[MESSAGE]),
            bool(blocks[FLUSH]),
        )
        after, found = advance(share, self._waiting, before, given)
        self._state.update(tuple(encoding.kept(after)))
        who = dict(zip(self._names, (*key[:-1], worker), strict=True))
        yield pd.DataFrame([{**who, **row} for row in _rows(share, found)], dtype=object)

    def close(self) -> None:
        """Nothing to release."""


def _rows(share: Share, found: Found) -> Iterator[dict[str, Any]]:
    """What was found, then a message to every other worker that is concerned."""
    yield {
        "known_us": found.known_us,
        "to": None,
        "results": encoding.tuples(found.results),
        "undefined": encoding.stamps(found.undefined),
        "rejected": encoding.rejections(found.rejected, found.reasons),
        "messages": None,
    }
    nothing = dict.fromkeys(("known_us", *_RECORDS))
    for other in sorted({to for number in found.messages for to in share.sent[number]}):
        chosen = {
            number: each for number, each in found.messages.items() if other in share.sent[number]
        }
        yield {**nothing, "to": other, "messages": encoding.message(chosen)}

"""Rows that wait for the watermark of their sensor: only the state that Spark keeps has them."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from model.vocabulary import ScriptConfig
from model.vocabulary.script.plan import compile_plan
from spark_impl.runtime.operators import STATE_NAME
from spark_impl.runtime.queries import frame_of, last_logged, session_of_query
from spark_impl.runtime.states import from_bytes
from spark_impl.runtime.storage import Address, Location, locate
from spark_impl.runtime.waiting import ROW, unread
from spark_impl.script.kernel import State
from spark_impl.script.store import ScriptStore, load_store
from spark_impl.windows.blocks import SLOT, task_of_slot

OPEN = "the watermark of its sensor has not reached it"


def pending(spark: SparkSession, store: Address, checkpoint: Address | None = None) -> DataFrame:
    """Return each row that waits, with the reason; their number is ``pending`` of the ledger.

    The columns are the grouping columns, ``seq`` (NULL for rows that wait for a watermark),
    ``source_id``, ``key`` (the sensor), ``event_time_us`` and ``reason``. ``checkpoint`` is the
    folder of Spark's own files, by default the one in the store. If a crash came between the
    commits of the store and of Spark, the list is that of the micro-batch before, until the query
    runs again. Raise :class:`InputProblem` if ``store`` is not the store of a query.
    """
    place = load_store(store)
    at = place.checkpoint if checkpoint is None else locate(checkpoint)
    schema = pa.schema([*place.groups, *ROW, ("reason", pa.string())])
    tables = [] if last_logged(at, "commits") < 0 else _waiting(spark, place, at, schema)
    found = frame_of(spark, pa.concat_tables([schema.empty_table(), *tables]))
    return unread(spark, place, place.groups).unionByName(found)


def _waiting(
    spark: SparkSession, store: ScriptStore, checkpoint: Location, schema: pa.Schema
) -> Iterator[pa.Table]:
    """Yield the tuples of each sensor that are at or above its watermark."""
    plan = compile_plan(ScriptConfig.from_json(store.view.identity["config"]))
    source = session_of_query(spark, checkpoint, None).read.format("statestore")
    source = source.options(path=checkpoint.for_spark, stateVarName=STATE_NAME)
    for row in source.load().select("key", "value").collect():
        share = plan.share(task_of_slot(row.key[SLOT], plan.workers))
        state: State = from_bytes(bytes(row.value[STATE_NAME]))
        for number, log in state.logs.items():
            if number not in share.first_host_of:
                continue
            first = int(np.searchsorted(log.tuples.ts, log.until_us))
            held = {"source_id": log.source_id[first:], "event_time_us": log.tuples.ts[first:]}
            same = {field.name: row.key[field.name] for field in store.groups}
            same |= {"seq": None, "key": plan.graph.nodes[number].sensor, "reason": OPEN}
            columns = [
                pa.array(held[field.name], field.type)
                if field.name in held
                else pa.repeat(pa.scalar(same[field.name], field.type), len(log.source_id) - first)
                for field in schema
            ]
            yield pa.Table.from_arrays(columns, schema=schema)

"""An operator of windows counts each arrival in one place.

Arrivals come from simulated networks (``straggler/strategies/streams.py``).
"""

from collections import Counter
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from pyspark.sql import SparkSession, functions

from model.vocabulary import Workload
from model.vocabulary.windows import Late, Rejected
from properties.oracles.promises import tuples_of
from properties.promised import Reached, promised
from spark_impl.windows import kernel, processor
from spark_impl.windows.records import Output, Taken, TaskState
from straggler.rooms import find_room
from straggler.strategies import streams, watermark

CASES = (
    streams.cases() | watermark.cases(corrections=(True,)) | watermark.cases(upstreams=(1, 2, 3))
)


@promised(*Taken._fields[:3], "missed", "rejected", "each identity once", examples=100)
@given(case=CASES)
def test_an_operator_counts_each_arrival_in_one_place(reached: Reached, case: Workload) -> None:
    flushed = case.with_(flush=True)
    counted: list[Taken] = []

    def count(*given: Any, **more: Any) -> tuple[TaskState, Output]:
        state, output = kernel.process(*given, **more)
        counted.append(output.taken)
        return state, output

    with patch.object(processor, "process", count):
        trace = find_room(case.room).in_process()(flushed)
    accepted, redelivered, unasked, opened, missed = map(
        sum, zip(*(counted or [Taken()]), strict=True)
    )
    size_us, slide_us = flushed.config["size_us"], flushed.config["slide_us"]
    rejected = {step.seq for step in trace.of(Rejected)}
    kept = [each for each in flushed.arrivals if each.seq not in rejected]
    windows = {
        each.seq: each.event_time_us // slide_us - (each.event_time_us - size_us) // slide_us
        for each in kept
    }
    assert accepted + redelivered + unasked == len(kept)
    assert not opened, "a flush closes all windows"
    once = {each.source_id: each.seq for each in kept}
    if len(once) == len(kept):
        late = Counter(once[step.source_id] for step in trace.of(Late))
        assert redelivered == 0
        assert unasked == sum(not each for each in windows.values())
        assert missed == sum(windows[seq] == pairs for seq, pairs in late.items())
        reached.add({"each identity once": 1, "missed": missed, "unasked": unasked})
    reached.add({"accepted": accepted, "redelivered": redelivered, "rejected": len(rejected)})


@pytest.mark.long
@promised("windows of several tuples", "sliding windows", examples=4)
@given(case=streams.cases().filter(lambda each: each.config["slide_us"] <= each.config["size_us"]))
def test_spark_s_own_windows_hold_the_same_tuples(
    spark: SparkSession, reached: Reached, case: Workload
) -> None:
    """The oracle's windows are those of ``F.window``."""
    config, held = case.config, tuples_of(case.to_json()).of
    times_us = {each.source_id: each.event_time_us for each in case.arrivals}
    tuples = {
        (task, name, times_us[identity], identity, value)
        for (task, _, name), values in held.items()
        for identity, value in values.items()
    }
    columns = "task int, name string, at bigint, identity bigint, value double"
    length, slide = (f"{config[each]} microseconds" for each in ("size_us", "slide_us"))
    window = functions.window(functions.timestamp_micros("at"), length, slide)
    start_us = functions.unix_micros("window.start")
    rows = (
        spark.createDataFrame(sorted(tuples), columns)
        .withColumn("window", window)
        .groupBy("task", start_us.alias("start_us"), "name")
        .agg(functions.sort_array(functions.collect_list("identity")))
        .collect()
    )
    assert {(task, start, name): ids for task, start, name, ids in rows} == {
        window: sorted(values) for window, values in held.items()
    }
    reached.add(
        {
            "windows of several tuples": sum(len(values) > 1 for values in held.values()),
            "sliding windows": len(held) * (config["slide_us"] < config["size_us"]),
        }
    )

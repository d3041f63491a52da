"""Idle streams of a chain: a silent stream follows the other one between epochs."""

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from model.vocabulary import Event, Fault, JoinConfig, Trace, Workload
from model.vocabulary.join import (
    END_US,
    NO_WATERMARK_US,
    REASON_LATE,
    REASON_NOT_FINITE,
    STREAMS,
    And,
    Match,
    R,
    Rejected,
    S,
)
from spark_impl.join import ChainJoin, complete_until, progress, rejected, results, snapshots
from spark_impl.join.chain import Chain
from spark_impl.join.idle import Clocks, begin_epoch, end_epoch
from spark_impl.join.in_process import Network, run_in_process
from spark_impl.join.index import index_kind
from spark_impl.join.matching import Counts, holds
from spark_impl.join.system import rows_of, run_workloads
from tests.spark_impl import brute_idle

REASONS = {"late": REASON_LATE, "not finite": REASON_NOT_FINITE}


def drawn_case(seed: int) -> Workload:
    """Return two streams that fall silent and return, cut into many epochs."""
    draw = random.Random(seed)
    lateness_us = draw.choice([0, 2, 5])
    config = JoinConfig(
        window_us=draw.choice([0, 10, 40]),
        queries=(("all", And()),),
        workers=draw.choice([1, 2, 3]),
        block_size=draw.choice([1, 2, 8]),
        lateness_us=lateness_us,
        idle_after_us=draw.choice([1, 4, 12]),
    )
    events: list[Event] = []
    speaking, now = R, 100
    count = draw.randint(20, 60)
    for seq in range(count):
        now += draw.choice([0, 1, 1, 2])
        if draw.random() < 0.1:
            speaking = draw.choice([R, S, S, ""])
        stream = speaking or draw.choice(STREAMS)
        again = [each for each in events if each.stream == stream]
        if again and draw.random() < 0.1:
            events.append(draw.choice(again)._replace(seq=seq))
            continue
        value = draw.choice([1.0] * 9 + [float("nan")])
        late_us = draw.choice([0, 0, 1, 2, 15, 40])
        events.append(Event(seq, seq, "k", now - late_us, value, 0, stream))
    cuts = sorted(draw.sample(range(count + 1), draw.randint(4, 20)))
    return Workload("join", tuple(events), config.to_json(), tuple(cuts), seed=seed)


def brute(case: Workload) -> brute_idle.Chain:
    config = case.config
    epochs = [
        [
            brute_idle.Came(each.stream, each.seq, each.source_id, each.event_time_us, each.value)
            for each in events
        ]
        for events in case.batches()
    ]
    return brute_idle.join_epochs(
        epochs, config["window_us"], config["lateness_us"], config.get("idle_after_us")
    )


def expected_rejections(found: brute_idle.Chain) -> set[tuple[str, int, str]]:
    return {(stream, seq, REASONS[why]) for stream, seq, why in found.rejected}


def look_at(trace: Trace, wanted: brute_idle.Chain) -> None:
    gone = {(each.stream, each.seq, each.reason) for each in trace.of(Rejected)}
    assert gone == {(stream, seq, REASONS[why]) for stream, seq, why in wanted.rejected}
    pairs = Counter((each.r_id, each.s_id) for each in trace.of(Match))
    assert pairs == Counter(wanted.pairs)


def test_silent_streams_follow_as_defined() -> None:
    met: Counter[str] = Counter()
    for seed in range(300):
        case = drawn_case(seed)
        wanted = brute(case)
        killed = replace(case, faults=(Fault("kill", seed % len(list(case.batches()))),))
        network = Network(ordered=seed % 2 == 0, twice=0.1 * (seed % 5 == 0))
        changing = [1, 3, 2] if seed % 4 == 0 else []
        given = killed if seed % 3 == 0 else case
        look_at(run_in_process(given, network, workers=changing), wanted)
        met["late by a floor"] += wanted.by_floor > 0
        met["returned"] += wanted.returned > 0
        never = brute(replace(case, config={**case.config, "idle_after_us": None}))
        met["the same without the setting"] += never.rejected == wanted.rejected
        met["fewer pairs than without it"] += len(never.pairs) > len(wanted.pairs)
    assert min(met.values()) >= 20, met


def events_of(*given: tuple[str, int, float]) -> tuple[Event, ...]:
    """Return arrivals of streams with event times and values."""
    return tuple(
        Event(seq, seq, "k", ts, value, 0, stream) for seq, (stream, ts, value) in enumerate(given)
    )


CONFIG = JoinConfig(
    window_us=10, queries=(("all", And()),), workers=2, lateness_us=0, idle_after_us=5
)


def test_a_stream_that_never_sent_follows_the_other_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    """S never sends: R is complete without a flush, and S is named as long as it holds R back."""
    chain = Chain(spark, CONFIG, tmp_path)
    assert progress(tmp_path) == (
        -1,
        NO_WATERMARK_US,
        {},
        dict.fromkeys("RS", NO_WATERMARK_US),
        None,
    )
    chain.advance(rows_of(spark, events_of(("R", 100, 1.0))))
    assert progress(tmp_path).held_by == S
    assert complete_until(tmp_path) == NO_WATERMARK_US
    more = [each._replace(seq=7, source_id=7) for each in events_of(("R", 106, 1.0))]
    chain.advance(rows_of(spark, tuple(more)))
    chain = Chain(spark, CONFIG, tmp_path)  # marks and floors outlast the driver
    late = events_of(("S", 100, 1.0), ("S", 101, 2.0), ("S", 99, float("nan")))
    shifted = tuple(each._replace(seq=10 + each.seq) for each in late)
    chain.advance(rows_of(spark, shifted))
    found = progress(tmp_path)
    assert found.watermarks_us == {"R": 106, "S": 101}
    assert (found.epoch, found.held_by, found.complete_us) == (2, S, 101)
    assert found.rejected == {REASON_LATE: 1, REASON_NOT_FINITE: 1}
    rows = [tuple(row) for row in rejected(spark, tmp_path).orderBy("seq").collect()]
    assert rows == [
        ("S", 10, 0, "k", 100, REASON_LATE, 2),
        ("S", 12, 2, "k", 99, REASON_NOT_FINITE, 2),
    ]
    assert [each.reasons for each in snapshots(tmp_path)][:2] == [{}, {}]
    chain.advance(None)
    assert progress(tmp_path).held_by is None
    assert progress(tmp_path).watermarks_us == {"R": END_US, "S": END_US}
    assert {(row.r_id, row.s_id) for row in results(spark, tmp_path).collect()} == {(0, 1), (7, 1)}


def test_a_chain_on_spark_that_is_killed_follows_as_well(
    spark: SparkSession, tmp_path: Path
) -> None:
    seed = next(each for each in range(300) if brute(drawn_case(each)).by_floor > 2)
    case = drawn_case(seed)
    config = {**case.config, "workers": 2}
    last = len(list(case.batches())) - 1
    killed = replace(case, config=config, faults=(Fault("kill", last), Fault("restart", 1)))
    look_at(run_workloads(spark, {"case": killed}, tmp_path)["case"], brute(case))


def test_a_missing_value_is_refused_and_listed(spark: SparkSession, tmp_path: Path) -> None:
    """A NULL value was the end of the epoch, of the micro-batch and of every later run."""
    columns = "seq long, source_id long, key string, event_time_us long, value double"
    inputs = []
    for stream, values in (("R", [1.0, None]), ("S", [None, 2.0])):
        rows = [(n, n, "k", 100 + n, value) for n, value in enumerate(values)]
        folder = tmp_path / stream
        spark.createDataFrame(rows, columns).coalesce(1).write.parquet(str(folder))
        inputs.append(spark.readStream.schema(columns).parquet(str(folder)))
    r, s = inputs
    found = ChainJoin(2, 10, And(), lateness_us=0).stream(r, s, tmp_path / "store")
    found.run_available()
    assert found.progress().rejected == {REASON_NOT_FINITE: 2}
    refused = {(row.stream, row.seq, row.reason) for row in found.rejected().collect()}
    assert refused == {("R", 1, REASON_NOT_FINITE), ("S", 0, REASON_NOT_FINITE)}
    found.flush()
    assert [(row.r_id, row.s_id) for row in results(spark, tmp_path / "store").collect()] == [
        (0, 1)
    ]


def test_marks_are_unset_while_nothing_is_idle_and_floors_stay() -> None:
    """Another setting holds from the next epoch on (docs/join.md, section 7)."""
    risen = begin_epoch(CONFIG, end_epoch(CONFIG, Clocks(), Counts(9, 0), Counts(1, 1)))
    assert risen.s.mark_us == 9
    idle = begin_epoch(CONFIG, end_epoch(CONFIG, risen, Counts(50, 0), Counts(1, 0)))
    assert idle.s.floor_us == 45
    never = replace(CONFIG, idle_after_us=None)
    after = begin_epoch(never, end_epoch(never, idle, Counts(90, 0), Counts(1, 0)))
    assert (after.s.mark_us, after.s.floor_us) == (None, 45)


class _Unknown:
    """A predicate of a release to come."""


def test_an_unknown_predicate_is_refused() -> None:
    unknown: Any = _Unknown()
    nothing: Any = None
    with pytest.raises(TypeError, match="no predicate that a chain knows"):
        index_kind(unknown)
    with pytest.raises(TypeError, match="no predicate that a chain knows"):
        holds(unknown, nothing, nothing)

"""Two streams joined in micro-batches, opened again with other workers and other queries."""

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from model.vocabulary import Event, JoinConfig, Workload
from model.vocabulary.join import STREAMS, And, Equi, Predicate, R, S
from spark_impl.join import (
    ChainJoin,
    ChainProblem,
    ChainStream,
    from_history,
    one_time,
    results,
    snapshots,
)
from spark_impl.join.query import Sink
from spark_impl.runtime import tables
from spark_impl.runtime.histories import append
from spark_impl.runtime.storage import InputProblem
from tests.harness.drivers import both_streams
from tests.spark_impl.join_cases import Pair, admitted, nested_loop
from tests.spark_impl.test_join_query import case_with, inputs

SCHEMA = pa.schema(
    [
        ("seq", pa.int64()),
        ("source_id", pa.int64()),
        ("key", pa.string()),
        ("event_time_us", pa.int64()),
        ("value", pa.float64()),
    ]
)
COLUMNS = "seq long, source_id long, key string, event_time_us long, value double"
Queries = dict[str, Predicate]
WINDOW_US = 10
RUNS: list[tuple[int, Queries]] = [
    (2, {"old": And(), "gone": Equi("key")}),
    (4, {"old": And(), "gone": Equi("key"), "new": And()}),
    (1, {"old": And(), "new": And()}),
    (3, {"old": And(), "new": And()}),
]
EPOCHS = (("gone", 0, 1), ("new", 1, None))


def stream_of(
    spark: SparkSession,
    folder: Path,
    workers: int,
    queries: Queries,
    sink: Sink | None = None,
    lateness_us: int = 8,
) -> ChainStream:
    r, s = (spark.readStream.schema(COLUMNS).parquet(str(folder / each)) for each in STREAMS)
    join = ChainJoin(
        workers, WINDOW_US, queries, block_size=3, lateness_us=lateness_us, history=True
    )
    return join.stream(r, s, folder / "store", sink)


def arrive(folder: Path, events: tuple[Event, ...]) -> None:
    for stream in STREAMS:
        own = [event._asdict() for event in events if event.stream == stream]
        append(folder / stream, pa.Table.from_pylist(own, SCHEMA))


def counted(rows: DataFrame) -> Counter[Pair]:
    return Counter((row.query, row.r_id, row.s_id) for row in rows.collect())


def case_of_runs() -> Workload:
    """Return a case with one micro-batch per run; the window is that of :func:`stream_of`."""
    case = case_with(workers=2, batches=len(RUNS))
    queries: Queries = {"old": And(), "gone": Equi("key"), "new": And()}
    config = JoinConfig(WINDOW_US, tuple(queries.items()), lateness_us=8, epochs=EPOCHS)
    return case.with_(config=config.to_json())


@pytest.mark.parametrize("merged", [pytest.param(100, marks=pytest.mark.long), 2])
def test_a_chain_goes_on_with_other_workers_and_other_queries(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, merged: int
) -> None:
    """Files of epochs are merged every second version, or never."""
    monkeypatch.setattr(tables, "TIDIED", merged)
    case = case_of_runs()
    handed: dict[int, int] = {}
    failed: list[int] = []

    def sink(rows: DataFrame, epoch: int) -> None:
        """Fail once, when the epoch has happened and Spark does not know it yet."""
        if epoch == 2 and not failed:
            failed.append(epoch)
            msg = "the sink is full"
            raise OSError(msg)
        handed[epoch] = rows.count()

    for events, (workers, queries) in zip(case.batches(), RUNS, strict=True):
        arrive(tmp_path, events)
        stream = stream_of(spark, tmp_path, workers, queries, sink)
        if not failed and len(handed) == 2:
            with pytest.raises(ChainProblem, match="the sink is full"):
                stream.run_available()
        stream.run_available()
    stream.flush()
    handed.pop(len(RUNS))  # as if a crash had come between the flush and the sink
    stream.flush()
    store = tmp_path / "store"
    expected = nested_loop(case)
    assert counted(results(spark, store)) == expected
    assert {name for name, _, _ in expected} == {"old", "gone", "new"}
    assert failed == [2]
    assert sum(handed.values()) == sum(expected.values())
    assert bool(list(store.glob("kind=matches/part-*"))) == (merged == 2)
    look_at_snapshots(spark, store, case)
    ask_once(spark, store, case)


def look_at_snapshots(spark: SparkSession, store: Path, case: Workload) -> None:
    found = snapshots(store)
    assert [each.epoch for each in found] == list(range(len(RUNS) + 1))
    assert [each.workers for each in found] == [2, 4, 1, 3, 3]
    assert [each.flush for each in found] == [False] * len(RUNS) + [True]
    assert [each.committed_us for each in found] == sorted(each.committed_us for each in found)
    taken, rejected = admitted(case)
    assert sum(each.admitted.r for each in found) == len(taken[R])
    assert sum(each.admitted.s for each in found) == len(taken[S])
    assert sum(each.rejected for each in found) == len(rejected) > 0
    assert found[-1].held == (0, 0) != found[-2].held
    through = 0
    for each in found:
        through += sum(each.matches.values())
        assert results(spark, store, through_epoch=each.epoch).count() == through
    with pytest.raises(InputProblem, match=r"^epoch 9 of the chain in .* has not been committed$"):
        results(spark, store, through_epoch=9)


def ask_once(spark: SparkSession, store: Path, case: Workload) -> None:
    """Ask about epochs that are over."""
    once = JoinConfig(WINDOW_US, (("join", And()),), lateness_us=8, epochs=(("join", 1, 2),))
    expected = nested_loop(case.with_(config=once.to_json()))
    assert counted(one_time(spark, store, And(), 1, 2, workers=2)) == expected
    assert expected
    with pytest.raises(InputProblem, match=r"epoch 7 of the chain in .* has not been committed"):
        one_time(spark, store, And(), 1, 7)
    with pytest.raises(InputProblem, match="the first epoch 2 comes after the last one, 1"):
        one_time(spark, store, And(), 2, 1)


def test_the_checkpoint_of_spark_may_be_elsewhere(spark: SparkSession, tmp_path: Path) -> None:
    def stream(where: Path | None) -> ChainStream:
        inputs = from_history(spark, tmp_path / "history")
        return join.stream(*inputs, tmp_path / "store", spark_checkpoint=where)

    join = ChainJoin(1, WINDOW_US, And())
    first, second, *_ = case_of_runs().batches()
    append(tmp_path / "history", both_streams(first))
    stream(tmp_path / "spark").run_available()
    assert not (tmp_path / "store" / "checkpoint").exists()
    append(tmp_path / "history", both_streams(second))
    with pytest.raises(InputProblem, match=r"^\S*/store/_checkpoint is not the checkpoint of"):
        stream(None).run_available()  # would take both files for the first micro-batch again
    stream(tmp_path / "spark").run_available()
    assert len(snapshots(tmp_path / "store")) == 2


def test_arrivals_after_a_flush_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    case = case_of_runs()
    first, *later = case.batches()
    arrive(tmp_path, first)
    stream = stream_of(spark, tmp_path, 1, {"old": And()})
    stream.flush()
    found = counted(results(spark, tmp_path / "store"))
    stream.flush()  # nothing came, so there is nothing to refuse
    arrive(tmp_path, tuple(event for events in later for event in events))
    again = stream_of(spark, tmp_path, 1, {"old": And()})
    for run in (stream.run_available, stream.run_available, again.run_available, again.flush):
        with pytest.raises(ChainProblem, match=r"was flushed, and nothing may follow that$"):
            run()
    assert counted(results(spark, tmp_path / "store")) == found
    assert found
    with pytest.raises(InputProblem, match="was flushed, and nothing may follow that"):
        stream._chain.advance(None)


def test_a_one_time_join_needs_a_history(spark: SparkSession, tmp_path: Path) -> None:
    case = case_with(workers=1)
    r, s = (inputs(spark, case, stream) for stream in STREAMS)
    ChainJoin(1, WINDOW_US, And()).join(r, s, tmp_path / "store")
    with pytest.raises(InputProblem, match="the tuples of epoch 0 were not kept"):
        one_time(spark, tmp_path / "store", And(), 0, 0)

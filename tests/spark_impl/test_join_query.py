"""A chain on Spark: its pairs, its places, its refusals, its failures."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from model.vocabulary import Event, JoinConfig, Workload
from model.vocabulary.join import (
    END_US,
    NO_WATERMARK_US,
    REASON_LATE,
    STREAMS,
    And,
    Equi,
    R,
    S,
)
from spark_impl.join import (
    ChainJoin,
    ChainStream,
    from_history,
    progress,
    results,
    snapshots,
    stage,
)
from spark_impl.join.chain import Chain
from spark_impl.join.control import Clocks
from spark_impl.join.matching import Counts
from spark_impl.join.query import _is_empty
from spark_impl.join.stage import make_commit
from spark_impl.join.store import ChainStore, load_store
from spark_impl.join.system import rows_of
from spark_impl.join.task import Options
from spark_impl.runtime import tables
from spark_impl.runtime.failures import QueryProblem
from spark_impl.runtime.histories import append
from spark_impl.runtime.storage import InputProblem, locate
from tests.harness.drivers import both_streams
from tests.spark_impl.join_cases import (
    COLUMNS,
    LATENESS_US,
    WINDOW_US,
    Queries,
    arrive,
    case_with,
    counted,
    inputs,
    nested_loop,
    recomputed,
    stream_of,
)


def test_durations_are_texts_or_timedeltas() -> None:
    given: dict[str, Any] = {"lateness": timedelta(seconds=1), "idle_after": "1 minute"}
    told = ChainJoin(2, window="5 seconds", predicate=Equi("key"), **given)
    assert told._config == replace(
        ChainJoin(2, 5_000_000, Equi("key"), lateness_us=1_000_000)._config,
        idle_after_us=60_000_000,
    )
    named = {f"{name}_us": time for name, time in given.items()}
    assert told._config == ChainJoin(2, timedelta(seconds=5), Equi("key"), **named)._config
    assert ChainJoin(2, "5s", Equi("key"), patience_s="100 ms")._options.patience_s == 0.1
    usual = told._options, told._config.block_size, told._config.credit
    assert usual == (Options(recording=False, history=False, patience_s=60.0), 64, 16)
    refused: list[tuple[dict[str, Any], str]] = [
        ({}, r"ChainJoin\(\) lacks window"),
        ({"window": 5}, "window is 5; it must be a text .*; window_us takes microseconds"),
        ({"window": "-5s"}, "window is -5s; it must be a duration >= 0"),
        ({"window": "5s", "window_us": 5}, "window is '5s' and window_us is 5; only one"),
    ]
    for times, wrong in refused:
        with pytest.raises((TypeError, ValueError), match=wrong):
            ChainJoin(2, predicate=Equi("key"), **times)
    with pytest.raises(TypeError, match=r"ChainJoin\(\) lacks predicate"):
        ChainJoin(2, window="5s")


def test_pairs_that_the_driver_cannot_bring_are_refused_before_the_join() -> None:
    away: Any = SimpleNamespace(
        sparkSession=SimpleNamespace(sparkContext=SimpleNamespace(master="spark://h:7077"))
    )
    with pytest.raises(InputProblem, match="the pairs stay on the machines of spark://h:7077"):
        ChainJoin(1, 10, And()).join(away, away)


def test_a_micro_batch_is_the_next_one_or_the_last_one_again() -> None:
    store = SimpleNamespace(root="s3://b/chain", at=lambda: None)
    chain: Any = SimpleNamespace(epochs=3, flushed=True, limits=None, store=store)
    rows: Any = SimpleNamespace(sparkSession=None)
    stream = ChainStream(chain, rows, None, locate("/nowhere"))
    stream._epoch(rows, 1)
    for batch in (0, 3):
        with pytest.raises(InputProblem, match=f"micro-batch {batch}, but s3://b/chain expects 2$"):
            stream._epoch(rows, batch)


@pytest.mark.parametrize(
    ("what", "handed"),
    [
        ({}, False),
        ({"matches": {"a": 0}}, False),
        ({"matches": {"a": 0, "b": 1}}, True),
        ({"reasons": {REASON_LATE: 1}}, True),
        ({"admitted": Counts(0, 1)}, True),
        ({"flush": True}, True),
    ],
)
def test_a_sink_gets_the_epochs_in_which_anything_came(what: dict[str, Any], handed: bool) -> None:
    fields = {"flush": False, "matches": {}, "reasons": {}, "admitted": Counts(0, 0), **what}
    store: Any = SimpleNamespace(
        commit_of=lambda _: SimpleNamespace(**fields),
        admitted_before=lambda epoch: ChainStore.admitted_before(store, epoch),
    )
    assert _is_empty(store, 0) is not handed


def test_a_chain_is_complete_up_to_what_is_owed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of three workers holds tuples of one stream or of both."""
    given = [
        ((END_US, 30), (100, 60), {"a": 1}, (5, 0)),
        ((50, END_US), (90, 70), {"a": 2, "b": 0}, (0, 0)),
        ((40, 70), (80, 95), {}, (0, 7)),
    ]
    summaries: list[Any] = [
        SimpleNamespace(
            least_us=Counts(*least),
            wm_us=Counts(*passed),
            matches=matches,
            reasons={REASON_LATE: sum(came)},
            admitted=Counts(*came),
            held=Counts(1, 2),
            t_max_us=Counts(*passed),
            accepted=Counts(*came),
        )
        for least, passed, matches, came in given
    ]
    config = JoinConfig(10, (("a", And()), ("b", And())), workers=3, lateness_us=0)
    plan: Any = SimpleNamespace(
        epoch=4, flush=False, config=config, options=Options(), clocks=Clocks()
    )
    monkeypatch.setattr(stage, "time", SimpleNamespace(time_ns=lambda: 7_999))
    done = make_commit(plan, summaries)
    assert done.committed_us == 7
    assert (done.matches, done.reasons) == ({"a": 3, "b": 0}, {REASON_LATE: 12})
    assert (done.admitted, done.held) == ((5, 7), (3, 6))
    assert done.complete_us == 40
    assert [each.t_max_us for each in done.clocks] == [100, 95]
    for each in summaries:
        each.least_us = Counts(END_US, END_US)
    assert make_commit(plan, summaries).complete_us == 95


def test_bounded_inputs(spark: SparkSession, tmp_path: Path) -> None:
    case = case_with(workers=2)
    config = {**case.config, "lateness_us": None}
    expected = nested_loop(case.with_(config=config))
    join = ChainJoin(
        2, int(config["window_us"]), dict(JoinConfig.from_json(config).queries), block_size=3
    )
    r, s = inputs(spark, case, "R"), inputs(spark, case, "S")
    as_time = r.withColumn("event_time_us", F.timestamp_micros("event_time_us"))
    assert counted(join.join(as_time, s)) == expected
    kept = join.join(r, s, tmp_path / "store").count()
    with pytest.raises(InputProblem, match=r"store holds the results of another join$"):
        join.join(r, s, tmp_path / "store")
    assert kept == sum(expected.values()) == results(spark, tmp_path / "store").count()
    with pytest.raises(InputProblem, match=r"^the tuples of epoch 0 were not kept: only a chain"):
        results(spark, tmp_path / "store", select=["r.key"])
    next(tmp_path.glob("store/kind=matches/*.parquet")).unlink()
    with pytest.raises(InputProblem, match=r"store has lost .* rows of kind 'matches'"):
        results(spark, tmp_path / "store")


@pytest.mark.fails_tasks
def test_an_error_that_would_recur_comes_without_advice(spark: SparkSession) -> None:
    case = case_with(workers=1)
    r, s = inputs(spark, case, "R"), inputs(spark, case, "S")
    nothing = r.withColumn("key", F.lit(None).cast("string"))
    with pytest.raises(QueryProblem, match=r"^the column 'key' has \d+ rows without a value$"):
        ChainJoin(1, 10, And()).join(nothing, s)
    # It fails before the workers have met, who would be waited for.
    unreadable = r.withColumn("key", F.raise_error(F.lit("no reading")).cast("string"))
    with pytest.raises(QueryProblem, match="no reading"):
        ChainJoin(1, 10, And()).join(unreadable, s)


def test_a_stream_that_never_sent_follows_the_other_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    """S never sends: R is complete without a flush, and S is named as long as it holds R back."""
    config = JoinConfig(10, (("all", And()),), workers=2, lateness_us=0, idle_after_us=5)
    given = (R, 100), (R, 106), (S, 100), (S, 101)
    sent = [Event(seq, seq, "k", us, 1.0, 0, stream) for seq, (stream, us) in enumerate(given)]
    chain = Chain(spark, config, tmp_path)
    nothing = dict.fromkeys("RS", NO_WATERMARK_US)
    assert progress(tmp_path) == (-1, NO_WATERMARK_US, {}, nothing, None, {})
    chain.advance(rows_of(spark, tuple(sent[:1])))
    found = progress(tmp_path)
    assert (found.held_by, found.complete_us) == (S, NO_WATERMARK_US)
    chain.advance(rows_of(spark, tuple(sent[1:2])))
    chain = Chain(spark, config, tmp_path)  # marks and floors outlast the driver
    chain.advance(rows_of(spark, tuple(sent[2:])))
    found = progress(tmp_path)
    assert (found.epoch, found.held_by, found.complete_us) == (2, S, 101)
    assert (found.watermarks_us, found.rejected) == ({R: 106, S: 101}, {REASON_LATE: 1})
    chain.advance(None)
    found = progress(tmp_path)
    assert (found.held_by, found.watermarks_us) == (None, {R: END_US, S: END_US})
    assert {(row.r_id, row.s_id) for row in results(spark, tmp_path).collect()} == {(0, 3), (1, 3)}


# --------------------------------------------------------------------------------------- failures


def test_a_second_run_on_a_store_is_noticed(spark: SparkSession, tmp_path: Path) -> None:
    case = case_with(workers=2)
    config = JoinConfig.from_json(case.config)
    one, other = (Chain(spark, config, tmp_path / "store") for _ in range(2))
    one.advance(rows_of(spark, case.arrivals))
    with pytest.raises(InputProblem, match=r"^the chain in .*store was continued elsewhere"):
        other.advance(rows_of(spark, case.arrivals))


# ------------------------------------------------------------- micro-batches and other queries


RUNS: list[tuple[int, Queries]] = [
    (2, {"old": And(), "gone": Equi("key")}),
    (4, {"old": And(), "gone": Equi("key"), "new": And()}),
    (1, {"old": And(), "new": And()}),
    (3, {"old": And(), "new": And()}),
]
EPOCHS = (("gone", 0, 1), ("new", 1, None))


def case_of_runs() -> Workload:
    """Return a case with one micro-batch per run; the window is that of :func:`stream_of`."""
    case = case_with(workers=2, batches=len(RUNS))
    queries: Queries = {"old": And(), "gone": Equi("key"), "new": And()}
    config = JoinConfig(WINDOW_US, tuple(queries.items()), lateness_us=LATENESS_US, epochs=EPOCHS)
    return case.with_(config=config.to_json())


def test_a_chain_goes_on_with_other_workers_and_other_queries(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small files are merged every other version."""
    monkeypatch.setattr(tables, "TIDIED", 2)
    case, handed, store = case_of_runs(), dict[int, int](), tmp_path / "store"

    def sink(rows: DataFrame, epoch: int) -> None:
        handed[epoch] = rows.count()

    for events, (workers, queries) in zip(case.batches(), RUNS, strict=True):
        arrive(tmp_path, events)
        stream = stream_of(spark, tmp_path, workers, queries, sink)
        stream.run_available()
    stream.flush()
    handed.pop(len(RUNS))  # as if a crash had come between the flush and the sink
    stream.flush()
    expected = nested_loop(case)
    assert counted(results(spark, store)) == expected
    assert {name for name, _, _ in expected} == {"old", "gone", "new"}
    assert sum(handed.values()) == sum(expected.values())
    view = load_store(store).view
    assert view.version > view.last + 1, "nothing was merged"
    look_at_snapshots(spark, store, case)


def look_at_snapshots(spark: SparkSession, store: Path, case: Workload) -> None:
    found = snapshots(store)
    assert [each.epoch for each in found] == list(range(len(RUNS) + 1))
    assert [each.config.workers for each in found] == [2, 4, 1, 3, 3]
    assert [each.flush for each in found] == [False] * len(RUNS) + [True]
    assert [each.committed_us for each in found] == sorted(each.committed_us for each in found)
    expected = recomputed(case)
    assert found[-1].admitted == (len(expected.tuples[R]), len(expected.tuples[S]))
    assert sum(sum(each.reasons.values()) for each in found) == len(expected.rejected) > 0
    assert found[-1].held == (0, 0) != found[-2].held
    assert sum(sum(each.matches.values()) for each in found) == results(spark, store).count()


def test_the_checkpoint_of_spark_may_be_elsewhere(spark: SparkSession, tmp_path: Path) -> None:
    def stream(where: Path | None) -> ChainStream:
        inputs = from_history(spark, tmp_path / "history")
        return join.stream(*inputs, tmp_path / "store", spark_checkpoint=where)

    join = ChainJoin(1, WINDOW_US, And())
    first, second, *_ = case_of_runs().batches()
    append(tmp_path / "history", both_streams(first))
    stream(tmp_path / "spark").run_available()
    assert not (tmp_path / "store" / "_checkpoint").exists()
    append(tmp_path / "history", both_streams(second))
    with pytest.raises(InputProblem, match=r"^\S*/store/_checkpoint is not the checkpoint of"):
        stream(None).run_available()  # would take both files for the first micro-batch again
    stream(tmp_path / "spark").run_available()
    assert len(snapshots(tmp_path / "store")) == 2


@pytest.mark.parametrize("landed", ["R", "S", "RS"])
def test_a_chain_belongs_to_the_history_of_an_input(
    spark: SparkSession, tmp_path: Path, landed: str
) -> None:
    """Rows of a history count in its account if both inputs come from there."""
    history = locate(append(tmp_path / "history", both_streams(case_of_runs().arrivals)).parent)
    inputs = {
        stream: rows
        if stream in landed
        else spark.readStream.schema(COLUMNS).parquet(str(tmp_path))
        for stream, rows in zip(STREAMS, from_history(spark, history), strict=True)
    }
    chain = ChainJoin(1, WINDOW_US, And()).stream(inputs[R], inputs[S], tmp_path / "store")._chain
    assert (chain.writer.source, chain.history) == (history, history if landed == "RS" else None)


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
    for run in (stream.run_available, again.flush):
        with pytest.raises(QueryProblem, match=r"was flushed, and nothing may follow that$"):
            run()
    assert counted(results(spark, tmp_path / "store")) == found
    assert found
    with pytest.raises(InputProblem, match="was flushed, and nothing may follow that"):
        stream._chain.advance(None)

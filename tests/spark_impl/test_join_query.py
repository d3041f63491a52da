"""A chain on Spark: its pairs, its places, its refusals, its failures."""

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from model.vocabulary import Event, JoinConfig, Workload
from model.vocabulary.join import (
    END_US,
    NO_WATERMARK_US,
    REASON_LATE,
    REASON_NOT_FINITE,
    And,
    S,
)
from model.vocabulary.trace import Step
from spark_impl.join import (
    ChainJoin,
    ChainProblem,
    complete_until,
    progress,
    rejected,
    results,
    snapshots,
    stage,
)
from spark_impl.join.chain import Chain
from spark_impl.join.in_process import run_in_process
from spark_impl.join.query import check_reach
from spark_impl.join.system import rows_of
from spark_impl.runtime.session import EnvironmentProblem
from spark_impl.runtime.storage import InputProblem
from tests.spark_impl.join_cases import Pair, nested_loop, random_case


def case_with(workers: int, batches: int = 2, seed: int = 7, tuples: int = 140) -> Workload:
    case = random_case(seed, tuples, tuples)
    config = {**case.config, "workers": workers, "block_size": 3, "lateness_us": 8}
    cuts = tuple(tuples * n // batches for n in range(1, batches))
    made = case.with_(config=config, cuts=cuts, name=f"seed {seed}")
    assert nested_loop(made), "a case without a match shows nothing"
    return made


def found_in(spark: SparkSession, store: Path) -> Counter[Pair]:
    return Counter((row.query, row.r_id, row.s_id) for row in results(spark, store).collect())


def test_more_workers_than_slots_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    join = ChainJoin(9, 10, And())
    sentence = r"^a chain of 9 workers needs 9 task slots at the same time and local.* has 8$"
    with pytest.raises(EnvironmentProblem, match=sentence):
        join.join(inputs(spark, case_with(2), "R"), inputs(spark, case_with(2), "S"), tmp_path)


def inputs(spark: SparkSession, case: Workload, stream: str) -> DataFrame:
    events = tuple(event for event in case.arrivals if event.stream == stream)
    return rows_of(spark, events).drop("stream")


def test_bounded_inputs(spark: SparkSession, tmp_path: Path) -> None:
    case = case_with(workers=2)
    config = {**case.config, "lateness_us": None}
    expected = nested_loop(case.with_(config=config))
    join = ChainJoin(
        2, int(config["window_us"]), dict(JoinConfig.from_json(config).queries), block_size=3
    )
    r, s = inputs(spark, case, "R"), inputs(spark, case, "S")
    as_time = r.withColumn("event_time_us", F.timestamp_micros("event_time_us"))
    rows = join.join(as_time, s).collect()
    assert Counter((row.query, row.r_id, row.s_id) for row in rows) == expected
    assert sum(expected.values()) > 0
    kept = join.join(r, s, tmp_path / "store").count()
    assert kept == len(rows) == results(spark, tmp_path / "store").count()
    next(tmp_path.glob("store/kind=matches/*-1.parquet")).unlink()
    with pytest.raises(InputProblem, match=r"has lost \S+-1\.parquet with \d+ rows of kind"):
        results(spark, tmp_path / "store")


@pytest.mark.fails_tasks
def test_an_error_that_would_recur_comes_without_advice(spark: SparkSession) -> None:
    case = case_with(workers=1)
    r, s = inputs(spark, case, "R"), inputs(spark, case, "S")
    nothing = r.withColumn("key", F.lit(None).cast("string"))
    with pytest.raises(ChainProblem, match=r"^the column 'key' has \d+ rows without a value$"):
        ChainJoin(1, 10, And()).join(nothing, s)


def test_without_a_store_all_workers_are_on_one_machine() -> None:
    for master in ("local", "local[4,4]", "local-cluster[3,1,1024]"):
        check_reach(master)
    with pytest.raises(
        InputProblem, match=r"^without a store .* machines of spark://somewhere:1: "
    ):
        check_reach("spark://somewhere:1")


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


@pytest.mark.fails_tasks
def test_an_event_time_out_of_range_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    config = JoinConfig.from_json(case_with(workers=2).config)
    event = Event(0, 0, "a", (1 << 63) - 1, 0.0, 0, "S")
    sentence = f"^the event time {(1 << 63) - 1} us is out of range"
    with pytest.raises(ChainProblem, match=sentence):
        Chain(spark, config, tmp_path / "store").advance(rows_of(spark, (event,)))
    assert not found_in(spark, tmp_path / "store")


@pytest.mark.parametrize("between", [0, 3, 30])
@pytest.mark.parametrize("cut", [False, True])
def test_two_tuples_with_one_identity_are_refused(between: int, cut: bool) -> None:
    """The two tuples come in one run of arrivals, in two runs, or in two epochs."""
    config = JoinConfig(1000, (("all", And()),), lateness_us=100)
    ids = [7, *range(8, 8 + between), 7]
    events = tuple(Event(n, i, "a", n, 0.0, n, "S") for n, i in enumerate(ids))
    cuts = (len(ids) - 1,) if cut else ()
    sentence = (
        f"^the identity 7 of the stream S comes with the event times 0 and {between + 1} us:"
        " every tuple needs an identity of its own$"
    )
    with pytest.raises(InputProblem, match=sentence):
        run_in_process(Workload("join", events, config.to_json(), cuts))


# --------------------------------------------------------------------------------------- failures


@pytest.mark.fails_tasks
def test_workers_without_all_of_their_neighbours_do_not_wait_for_them(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark may run a failed stage again without a task that ended just then."""
    place = stage._place_rows
    monkeypatch.setattr(
        stage, "_place_rows", lambda spark, rows, workers: place(spark, rows, workers - 1)
    )
    case = case_with(workers=3)
    chain = Chain(spark, JoinConfig.from_json(case.config), tmp_path / "store")
    with pytest.raises(ChainProblem, match=r"^Spark started 2 of 3 workers again \("):
        chain.advance(rows_of(spark, case.arrivals))


@pytest.mark.fails_tasks
def test_a_task_that_always_fails_fails_the_epoch_with_a_sentence(
    spark: SparkSession, tmp_path: Path
) -> None:
    case = case_with(workers=2)
    first, second = case.batches()
    config = JoinConfig.from_json(case.config)

    def fail(step: Step) -> None:
        msg = f"no {step.__class__.__name__} today"
        raise RuntimeError(msg)

    Chain(spark, config, tmp_path / "store").advance(rows_of(spark, first))
    before = found_in(spark, tmp_path / "store")
    broken = Chain(spark, config, tmp_path / "store", on_step=fail)
    with pytest.raises(ChainProblem, match=r"^(no Admit today|worker \d is lost, says worker \d)"):
        broken.advance(rows_of(spark, second))
    assert found_in(spark, tmp_path / "store") == before


def test_a_second_run_on_a_store_is_noticed(spark: SparkSession, tmp_path: Path) -> None:
    case = case_with(workers=2)
    config = JoinConfig.from_json(case.config)
    one, other = (Chain(spark, config, tmp_path / "store") for _ in range(2))
    one.advance(rows_of(spark, case.arrivals))
    with pytest.raises(InputProblem, match=r"^the chain in .*store was continued elsewhere"):
        other.advance(rows_of(spark, case.arrivals))

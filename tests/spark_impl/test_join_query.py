"""The chain on Spark: real barrier stages, real connections."""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from model.vocabulary import Fault, JoinConfig, Workload
from model.vocabulary.join import (
    Ack,
    Admit,
    And,
    Drop,
    Forward,
    Quiet,
    Receive,
    Rejected,
)
from model.vocabulary.trace import Step
from spark_impl.join import ChainJoin, ChainProblem, results, run_workloads
from spark_impl.join.query import Chain
from spark_impl.join.system import rows_of
from spark_impl.session import EnvironmentProblem, session
from spark_impl.streams import append
from tests.spark_impl.join_cases import Pair, admitted, nested_loop, pairs, random_case

RETRIES = "local[4,2]"
"""Four slots, and a task may fail once."""


@pytest.fixture(scope="module")
def four() -> Iterator[SparkSession]:
    """A session with room for four workers."""
    running = SparkSession.getActiveSession()
    if running is not None:
        pytest.skip("another session is running, with fewer slots")
    with session(RETRIES) as spark:
        yield spark


def case_with(workers: int, batches: int = 2, seed: int = 7, tuples: int = 140) -> Workload:
    case = random_case(seed, tuples, tuples)
    config = {**case.config, "workers": workers, "block_size": 3, "lateness_us": 8}
    cuts = tuple(tuples * n // batches for n in range(1, batches))
    made = case.with_(config=config, cuts=cuts, name=f"seed {seed}")
    assert nested_loop(made), "a case without a match shows nothing"
    return made


def test_workloads_are_joined_exactly_once(four: SparkSession, tmp_path: Path) -> None:
    cases = {f"of {workers}": case_with(workers) for workers in (1, 3)}
    cases["of 3"] = cases["of 3"].with_(faults=(Fault("kill", 1),))
    traces = run_workloads(four, cases, tmp_path)
    for name, case in cases.items():
        trace = traces[name]
        assert pairs(trace) == nested_loop(case)
        assert set(trace.of(Rejected)) == admitted(case)[1]
        workers = JoinConfig.from_json(case.config).workers
        assert {step.worker for step in trace.of(Quiet)} == set(range(workers))


STAGES: dict[str, Callable[[Step], bool]] = {
    "admission": lambda step: isinstance(step, Admit),
    "a block is sent": lambda step: isinstance(step, Forward),
    "a block of R comes": lambda step: isinstance(step, Receive) and step.stream == "R",
    "a block of S comes": lambda step: isinstance(step, Receive) and step.stream == "S",
    "an acknowledgement comes": lambda step: isinstance(step, Ack),
    "tuples are dropped": lambda step: isinstance(step, Drop),
    "the end": lambda step: isinstance(step, Quiet),
}


def test_tasks_that_die_change_nothing(four: SparkSession, tmp_path: Path) -> None:
    """In every epoch one, each time at another stage of the protocol."""
    case = case_with(workers=3, batches=len(STAGES))
    stages = dict(enumerate(STAGES))

    def die_once(step: Step) -> None:
        epoch: int = step._asdict()["epoch"]
        died = tmp_path / f"died-{epoch}"
        if epoch in stages and STAGES[stages[epoch]](step) and not died.exists():
            died.touch()
            os._exit(1)  # as if the process were killed

    config = JoinConfig.from_json(case.config)
    chain = Chain(four, config, tmp_path / "store", on_step=die_once)
    for events in case.batches():
        chain.advance(rows_of(four, events))
    chain.advance(None)
    reached = [stage for epoch, stage in stages.items() if (tmp_path / f"died-{epoch}").exists()]
    assert reached == list(STAGES)
    assert found_in(four, tmp_path / "store") == nested_loop(case)


def found_in(spark: SparkSession, store: Path) -> Counter[Pair]:
    return Counter((row.query, row.r_id, row.s_id) for row in results(spark, store).collect())


def test_a_task_that_always_fails_fails_the_epoch_with_a_sentence(
    four: SparkSession, tmp_path: Path
) -> None:
    case = case_with(workers=2)
    first, second = case.batches()
    config = JoinConfig.from_json(case.config)

    def fail(step: Step) -> None:
        msg = f"no {step.__class__.__name__} today"
        raise RuntimeError(msg)

    Chain(four, config, tmp_path / "store").advance(rows_of(four, first))
    before = found_in(four, tmp_path / "store")
    broken = Chain(four, config, tmp_path / "store", on_step=fail)
    with pytest.raises(ChainProblem, match=r"^(no Admit today|worker \d is lost, says worker \d)"):
        broken.advance(rows_of(four, second))
    assert found_in(four, tmp_path / "store") == before


def test_more_workers_than_slots_are_refused(four: SparkSession, tmp_path: Path) -> None:
    join = ChainJoin(5, 10, And())
    sentence = r"^a chain of 5 workers needs 5 task slots at the same time and local.* has 4$"
    with pytest.raises(EnvironmentProblem, match=sentence):
        join.join(inputs(four, case_with(2), "R"), inputs(four, case_with(2), "S"), tmp_path)


def inputs(spark: SparkSession, case: Workload, stream: str) -> DataFrame:
    events = tuple(event for event in case.arrivals if event.stream == stream)
    return rows_of(spark, events).drop("stream")


def test_bounded_inputs(four: SparkSession, tmp_path: Path) -> None:
    case = case_with(workers=2)
    config = {**case.config, "lateness_us": None}
    expected = nested_loop(case.with_(config=config))
    join = ChainJoin(
        2, int(config["window_us"]), dict(JoinConfig.from_json(config).queries), block_size=3
    )
    r, s = inputs(four, case, "R"), inputs(four, case, "S")
    rows = join.join(r, s).collect()
    assert Counter((row.query, row.r_id, row.s_id) for row in rows) == expected
    assert sum(expected.values()) > 0
    kept = join.join(r, s, tmp_path / "store").count()
    assert kept == len(rows) == results(four, tmp_path / "store").count()


def test_streams_go_on_where_they_stopped(four: SparkSession, tmp_path: Path) -> None:
    case = case_with(workers=2)
    config = JoinConfig.from_json(case.config)
    handed: dict[int, int] = {}

    def sink(rows: DataFrame, epoch: int) -> None:
        handed[epoch] = rows.count()

    for events in case.batches():
        sources = {}
        for stream in ("R", "S"):
            own = [event._asdict() for event in events if event.stream == stream]
            append(tmp_path / stream, pa.Table.from_pylist(own, schema_of()))
            folder = str(tmp_path / stream)
            sources[stream] = four.readStream.schema(COLUMNS).parquet(folder)
        join = ChainJoin(
            2,
            config.window_us,
            dict(config.queries),
            block_size=3,
            lateness_us=config.lateness_us,
        )
        stream_join = join.stream(sources["R"], sources["S"], tmp_path / "store", sink)
        stream_join.run_available()
    stream_join.flush()
    stream_join.flush()
    assert found_in(four, tmp_path / "store") == nested_loop(case)
    assert sum(handed.values()) == results(four, tmp_path / "store").count() > 0


COLUMNS = "seq long, source_id long, key string, event_time_us long, value double"


def schema_of() -> pa.Schema:
    return pa.schema(
        [
            ("seq", pa.int64()),
            ("source_id", pa.int64()),
            ("key", pa.string()),
            ("event_time_us", pa.int64()),
            ("value", pa.float64()),
        ]
    )

"""Failures of a chain on Spark, at every stage: results are those of a run without failures."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from model.vocabulary import Event, JoinConfig
from model.vocabulary.join import (
    Ack,
    Admit,
    Drop,
    Forward,
    Quiet,
    Receive,
)
from model.vocabulary.trace import Step
from spark_impl.join import ChainProblem, snapshots, stage
from spark_impl.join.chain import Chain
from spark_impl.join.checkpoint import WorkerState
from spark_impl.join.stage import advice
from spark_impl.join.store import ChainStore, Commit
from spark_impl.join.system import rows_of
from spark_impl.join.task import Summary
from spark_impl.runtime.storage import InputProblem
from spark_impl.runtime.tables import TableWriter
from spark_impl.runtime.versions import View
from tests.spark_impl.join_cases import nested_loop
from tests.spark_impl.test_join_query import case_with, found_in

STAGES: dict[str, Callable[[Step], bool]] = {
    "admission": lambda step: isinstance(step, Admit),
    "a block is sent": lambda step: isinstance(step, Forward),
    "a block of R comes": lambda step: isinstance(step, Receive) and step.stream == "R",
    "a block of S comes": lambda step: isinstance(step, Receive) and step.stream == "S",
    "an acknowledgement comes": lambda step: isinstance(step, Ack),
    "tuples are dropped": lambda step: isinstance(step, Drop),
    "the end": lambda step: isinstance(step, Quiet),
}


@pytest.mark.fails_tasks
def test_tasks_that_die_change_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """One task dies in every epoch, each time at another stage of the protocol."""
    case = case_with(workers=3, batches=len(STAGES))
    stages = dict(enumerate(STAGES))

    def die_once(step: Step) -> None:
        epoch: int = step._asdict()["epoch"]
        died = tmp_path / f"died-{epoch}"
        if epoch in stages and STAGES[stages[epoch]](step) and not died.exists():
            died.touch()
            os._exit(1)  # as if the process were killed

    config = JoinConfig.from_json(case.config)
    chain = Chain(spark, config, tmp_path / "store", on_step=die_once)
    for events in case.batches():
        chain.advance(rows_of(spark, events))
    chain.advance(None)
    reached = [stage for epoch, stage in stages.items() if (tmp_path / f"died-{epoch}").exists()]
    assert reached == list(STAGES)
    assert found_in(spark, tmp_path / "store") == nested_loop(case)


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


class TornStore(ChainStore):
    """A store whose tasks die once between results and state, and whose driver fails once."""

    def write_state(self, epoch: int, attempt: str, worker: int, state: WorkerState) -> None:
        note = Path(self.root.parent.path, f"died-{epoch}")
        if worker == 1 and not note.exists():
            note.touch()
            os._exit(1)
        super().write_state(epoch, attempt, worker, state)


class FailingWriter(TableWriter):
    """A writer that fails once in each epoch."""

    def commit(self, batch: int, *given: Any) -> View:
        note = Path(self.view.root.parent.path, f"failed-{batch}")
        if not note.exists():
            note.touch()
            msg = "no commit today"
            raise OSError(msg)
        return super().commit(batch, *given)


@pytest.mark.fails_tasks
def test_half_written_epochs_do_not_count(spark: SparkSession, tmp_path: Path) -> None:
    case = case_with(workers=2)
    config = JoinConfig.from_json(case.config)
    for events in (*case.batches(), None):
        rows = None if events is None else rows_of(spark, events)
        chain = Chain(spark, config, tmp_path / "store")
        chain.store = TornStore(chain.store.root)
        chain._writer = FailingWriter(chain.store.root)
        before = found_in(spark, tmp_path / "store")
        with pytest.raises(OSError, match="no commit today"):
            chain.advance(rows)
        assert found_in(spark, tmp_path / "store") == before
        chain.advance(rows)
    assert len(list(tmp_path.glob("died-*"))) == len(list(tmp_path.glob("failed-*"))) == 3
    assert found_in(spark, tmp_path / "store") == nested_loop(case)


def test_an_epoch_that_another_chain_has_committed_does_not_count(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The other chain begins and ends while this one stands still before its commit."""
    case = case_with(workers=2)
    config, rows = JoinConfig.from_json(case.config), rows_of(spark, case.arrivals)

    class SuspendedChain(Chain):
        def _conclude(self, done: Commit, summaries: Sequence[Summary]) -> Commit:
            Chain(spark, config, tmp_path / "store").advance(rows)
            return super()._conclude(done, summaries)

    late = SuspendedChain(spark, config, tmp_path / "store")
    with pytest.raises(InputProblem, match="has micro-batch 0 already: another query has written"):
        late.advance(rows)
    assert len(snapshots(tmp_path / "store")) == 1
    assert found_in(spark, tmp_path / "store") <= nested_loop(case)


def test_a_second_run_on_a_store_is_noticed(spark: SparkSession, tmp_path: Path) -> None:
    case = case_with(workers=2)
    config = JoinConfig.from_json(case.config)
    one, other = (Chain(spark, config, tmp_path / "store") for _ in range(2))
    one.advance(rows_of(spark, case.arrivals))
    with pytest.raises(InputProblem, match=r"^the chain in .*store was continued elsewhere"):
        other.advance(rows_of(spark, case.arrivals))


@pytest.mark.fails_tasks
def test_an_event_time_out_of_range_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    config = JoinConfig.from_json(case_with(workers=2).config)
    event = Event(0, 0, "a", (1 << 63) - 1, 0.0, 0, "S")
    sentence = f"^the event time {(1 << 63) - 1} us is out of range"
    with pytest.raises(ChainProblem, match=sentence):
        Chain(spark, config, tmp_path / "store").advance(rows_of(spark, (event,)))
    assert not found_in(spark, tmp_path / "store")


def test_the_advice_names_a_master_with_more_attempts() -> None:
    assert advice("local[2]", 3) == (
        "nothing of epoch 3 counts; the next run resumes there;"
        " Spark tries once under local[2], and up to four times under local[2,4]"
    )
    assert "under" not in advice("local[2,4]", 3) + advice("spark://host:7077", 3)

"""Workers that stay from epoch to epoch: what ends them, and what that costs."""

import gc
import logging
import os
import random
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from model.vocabulary import JoinConfig, Workload
from model.vocabulary.join import And
from spark_impl.join import post, results
from spark_impl.join.chain import Chain
from spark_impl.join.messages import encode_json
from spark_impl.join.post import Brought, Post, bring_rows, wanted_by
from spark_impl.join.rendezvous import Meeting, Place
from spark_impl.join.stage import check_slots
from spark_impl.join.system import rows_of
from spark_impl.join.task import Options
from spark_impl.join.transport import Door, Links, listen
from spark_impl.runtime.failures import QueryProblem
from tests.spark_impl.join_cases import arrive, case_with, counted, nested_loop, stream_of
from tests.spark_impl.test_join_agent import EPOCHS, Asked, request

HOST = "127.0.0.1"
PATIENCE_S = 60.0
MEETING = Meeting("attempt", ((HOST, 1),))
PLACE = Place((HOST, 1), "secret", PATIENCE_S)
ROWS = pa.table({"stream": ["R", "S", "R"], "seq": [0, 1, 2]})


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def nothing_runs(spark: SparkSession) -> bool:
    """Return whether no stage is left, neither in Spark nor as a thread of the driver."""
    threads = [each for each in threading.enumerate() if each.name == "stage"]
    return not threads and not spark.sparkContext.statusTracker().getActiveJobsIds()


def opened(spark: SparkSession, case: Workload, store: Path, options: Options | None = None) -> Any:
    return closing(Chain(spark, JoinConfig.from_json(case.config), store, options=options))


# ------------------------------------------------------------------------------------------ chains


def test_one_stage_serves_all_epochs(spark: SparkSession, tmp_path: Path) -> None:
    case, stages = case_with(workers=2, batches=4), set[Any]()
    with opened(spark, case, tmp_path) as chain:
        for events in case.batches():
            chain.advance(rows_of(spark, events))
            stages.add(chain._crew._stage)
        assert len(stages) == 1
        assert stages != {None}, "no stage stays"
        chain.advance(None)
        assert chain._crew._stage is None, "nothing follows a flush"
        wait_until(lambda: nothing_runs(spark))
    assert counted(results(spark, tmp_path)) == nested_loop(case)


def test_one_stage_serves_any_number_of_workers(spark: SparkSession, tmp_path: Path) -> None:
    """Workers come and go between two epochs; they begin with what the others had."""
    slots = check_slots(spark, 1)
    decided = [(1, slots // 2), (2, 1), (4, slots // 2), (5, slots)]
    case = case_with(workers=1, batches=6)
    case = case.with_(config={**case.config, "decisions": [(*each, 2, 0.0) for each in decided]})
    stages = list[Any]()
    with opened(spark, case, tmp_path / "store") as chain:
        for events in case.batches():
            chain.advance(rows_of(spark, events))
            stages.append(chain._crew._stage)
        chain.advance(None)
    assert len({*stages[:5]}) == 1
    assert None not in stages[:5], "no stage stays"
    assert stages[5] is None, "all slots are taken, so nobody could bring rows"
    assert counted(results(spark, tmp_path / "store")) == nested_loop(case)


def noted(folder: Path, dying: int | None, number: int, epoch: int, *given: Any) -> Links:
    """Note the process of a worker; kill that of worker 1 in an epoch, once."""
    (folder / f"{epoch}-{number}").write_text(str(os.getpid()), encoding="utf-8")
    if (epoch, number) == (dying, 1) and not (folder / "killed").exists():
        (folder / "killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return Links(number, epoch, *given)


@pytest.mark.fails_tasks
@pytest.mark.parametrize("dying", [0, 2, None])
def test_a_worker_that_is_killed_costs_no_pair(
    spark: SparkSession, tmp_path: Path, dying: int | None
) -> None:
    """The kill comes in an epoch, the first one of a stage or another one, or between two."""
    case, stages = case_with(workers=3, batches=4), set[Any]()
    options = Options(links=partial(noted, tmp_path, dying))
    with opened(spark, case, tmp_path / "store", options) as chain:
        for epoch, events in enumerate(case.batches()):
            chain.advance(rows_of(spark, events))
            stages.add(chain._crew._stage)
            if dying is None and epoch == 1:
                os.kill(int((tmp_path / "1-1").read_text(encoding="utf-8")), signal.SIGKILL)
        chain.advance(None)
    assert len(stages) == (1 if dying == 0 else 2)
    assert counted(results(spark, tmp_path / "store")) == nested_loop(case)


@pytest.mark.fails_tasks
@pytest.mark.parametrize(
    "seed",
    [0, *(pytest.param(n, marks=pytest.mark.long) for n in range(1, 64))],
)
def test_a_staying_chain_joins_each_pair_once(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    """Between epochs workers come and go, and queries; a worker is killed in one of them."""
    draw, most, asked = random.Random(seed), check_slots(spark, 1) - 1, Asked()
    resized = sorted(draw.sample(range(1, EPOCHS), 2))
    decided = [(each, draw.randint(1, most), draw.choice([1, 3, 20]), 0.0) for each in resized]
    case = case_with(workers=draw.randint(1, most), batches=EPOCHS)
    config = {**asked.workload(case).config, "workers": case.config["workers"]}
    kill = Options(links=partial(noted, tmp_path, draw.randrange(EPOCHS)))
    stages, store = set[Any](), tmp_path / "store"
    with opened(spark, case.with_(config={**config, "decisions": decided}), store, kill) as chain:
        for epoch, events in enumerate(case.batches()):
            if epoch:
                request(draw, asked, store)
            chain.advance(rows_of(spark, events))
            asked.begin(epoch + 1)
            stages.add(chain._crew._stage)
        assert None not in stages, "no stage stays"
        chain.advance(None)
    grown = sum(workers > (most + 1) // 2 for _, workers, *_ in decided)
    assert len(stages) <= 1 + (tmp_path / "killed").exists() + grown
    assert counted(results(spark, store)) == nested_loop(asked.workload(case))


@pytest.mark.fails_tasks
def test_an_epoch_runs_again_if_a_worker_hangs(spark: SparkSession, tmp_path: Path) -> None:
    """A worker that hangs takes no rows, and closes no connection."""
    case, stages = case_with(workers=2), set[Any]()
    options = Options(links=partial(noted, tmp_path, None), patience_s=5.0)
    with opened(spark, case, tmp_path / "store", options) as chain:
        for epoch, events in enumerate(case.batches()):
            chain.advance(rows_of(spark, events))
            stages.add(chain._crew._stage)
            if epoch == 0:
                os.kill(int((tmp_path / "0-0").read_text(encoding="utf-8")), signal.SIGSTOP)
        chain.advance(None)
    assert len(stages) == 2
    assert counted(results(spark, tmp_path / "store")) == nested_loop(case)


def test_workers_end_with_their_query_and_with_their_chain(
    spark: SparkSession, tmp_path: Path
) -> None:
    case = case_with(workers=2)
    first, second = case.batches()
    arrive(tmp_path, first)
    stream = stream_of(spark, tmp_path, 2, {"all": And()})
    query = stream.start()
    query.processAllAvailable()
    assert not nothing_runs(spark)
    query.stop()
    wait_until(lambda: nothing_runs(spark))
    arrive(tmp_path, second)
    stream.run_available()
    wait_until(lambda: nothing_runs(spark))
    chain = Chain(spark, JoinConfig.from_json(case.config), tmp_path / "other")
    chain.advance(rows_of(spark, first))
    assert not nothing_runs(spark)
    del chain
    gc.collect()
    wait_until(lambda: nothing_runs(spark))


def test_an_epoch_that_nobody_awaits_is_given_up(spark: SparkSession, tmp_path: Path) -> None:
    case = case_with(workers=2)
    first, second = (rows_of(spark, events) for events in case.batches())
    slow = Options(links=late)
    with opened(spark, case, tmp_path, slow) as chain:
        with pytest.raises(QueryProblem, match=r"^the query was stopped$"):
            chain.advance(first, lambda: False)
        wait_until(lambda: nothing_runs(spark))
        for rows in (first, second, None):
            chain.advance(rows)
    assert counted(results(spark, tmp_path)) == nested_loop(case)


def late(*given: Any) -> Links:
    time.sleep(2.0)
    return Links(*given)


def test_workers_stay_only_if_a_slot_is_left(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "straggler.join")
    slots = check_slots(spark, 1)
    case = case_with(workers=slots, batches=3)
    with opened(spark, case, tmp_path) as chain:
        for events in case.batches():
            chain.advance(rows_of(spark, events))
            assert chain._crew._stage is None
        chain.advance(None)
    said = f"because {slots} task slots are free: with {slots + 1} they would stay"
    assert said in caplog.text
    assert counted(results(spark, tmp_path)) == nested_loop(case)


def test_idle_workers_make_room_for_another_chain(spark: SparkSession, tmp_path: Path) -> None:
    slots = check_slots(spark, 1)
    case = case_with(workers=slots - 1)
    first, second = (rows_of(spark, events) for events in case.batches())
    with opened(spark, case, tmp_path / "1") as one, opened(spark, case, tmp_path / "2") as other:
        for rows in (first, second, None):
            for chain in (one, other):
                chain.advance(rows)
    for place in ("1", "2"):
        assert counted(results(spark, tmp_path / place)) == nested_loop(case)


# -------------------------------------------------------------------------- the post of a worker


@contextmanager
def at_post() -> Iterator[tuple[Post, socket.socket, Meeting]]:
    """Yield the post of a worker that is alone, the driver's connection, and its meeting."""
    with ExitStack() as stack:
        driver, own = (stack.enter_context(each) for each in socket.socketpair())
        listener = stack.enter_context(listen(HOST))
        meeting = MEETING._replace(addresses=(listener.getsockname()[:2],))
        door = stack.enter_context(closing(Door(listener, "secret/attempt")))
        yield Post("attempt", own, {}, door, PATIENCE_S), driver, meeting


def bring(monkeypatch: pytest.MonkeyPatch, meeting: Meeting, task: int, token: str) -> Any:
    context = SimpleNamespace(taskAttemptId=lambda: task, partitionId=lambda: task)
    monkeypatch.setattr(post, "TaskContext", SimpleNamespace(get=lambda: context))
    place = PLACE._replace(token=token)
    return [each.to_pylist() for each in bring_rows(ROWS.to_batches(), meeting, place, 1)]


def order(driver: socket.socket, told: Mapping[str, Any]) -> None:
    driver.sendall(encode_json(told))


def test_rows_count_if_the_driver_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = ROWS.schema.empty_table()
    with at_post() as (own, driver, meeting), ThreadPoolExecutor(1) as pool:
        order(driver, {})
        awaited = pool.submit(own.next_order)
        for task in (7, 5):
            told = bring(monkeypatch, meeting, task, "secret")
            assert told == [[{"part": task, "task": task, "r": 2, "s": 1}]]
        with pytest.raises(ConnectionError, match="a worker takes no rows"):
            bring(monkeypatch, meeting, 9, "another secret")
        order(driver, {"epoch": 3})
        assert awaited.result() == {"epoch": 3}
        with pytest.raises(RuntimeError, match="task 9 has brought 0 of 3 rows"):
            own.take_brought([Brought(9, 3)], nothing)
        order(driver, {})
        awaited = pool.submit(own.next_order)
        bring(monkeypatch, meeting, 8, "secret")
        order(driver, {"epoch": 4})
        awaited.result()
        assert own.take_brought([Brought(8, 3)], nothing) == ROWS
        driver.close()
        assert own.next_order() is None


def test_rows_go_to_the_worker_where_their_stream_enters() -> None:
    brought = [(1, 70, 2, 0), (0, 90, 3, 4), (2, 80, 0, 0)]
    assert wanted_by(brought, 0, 2) == [Brought(90, 3), Brought(70, 2)]
    assert wanted_by(brought, 1, 3) == []
    assert wanted_by(brought, 2, 3) == [Brought(90, 4)]
    assert wanted_by(brought, 0, 1) == [Brought(90, 7), Brought(70, 2)]


def test_a_worker_that_nobody_needs_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(post, "_ALONE_S", 0.1)
    with at_post() as (own, _, _meeting):
        assert own.next_order() is None


def test_an_idle_worker_ends_with_its_neighbour_and_not_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(post, "_ALONE_S", 0.0)
    with at_post() as (own, driver, _meeting), ExitStack() as stack:
        left, there = (stack.enter_context(each) for each in socket.socketpair())
        own.neighbours = {0: left}
        order(driver, {"epoch": 3})
        assert own.next_order(is_idle=True) == {"epoch": 3}
        there.close()
        assert own.next_order(is_idle=True) is None

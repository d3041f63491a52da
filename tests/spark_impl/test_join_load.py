"""Chains on Spark that follow their load, through kills; and queries that come while they run."""

import logging
import os
import re
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from model.checking.claims import Outcome
from model.join.control import start
from model.join.decision_claims import ControlLog, Logged, judge_log
from model.vocabulary import Event, JoinConfig, Workload
from model.vocabulary.join import (
    REASON_SHED,
    And,
    Decision,
    Equi,
    Forward,
    Match,
    Quiet,
    R,
    Rejected,
)
from model.vocabulary.join_load import LoadRules, Measured
from model.vocabulary.trace import Step
from spark_impl.join import (
    ChainJoin,
    ChainProblem,
    complete_until,
    load,
    rejected,
    results,
    snapshots,
)
from spark_impl.join.chain import Chain
from spark_impl.join.control import begin, decide
from spark_impl.join.store import load_store
from spark_impl.join.system import read_trace, rows_of
from spark_impl.runtime.session import EnvironmentProblem
from spark_impl.runtime.storage import InputProblem
from spark_impl.runtime.tables import TableWriter
from tests.spark_impl.join_cases import admitted, nested_loop, pairs, random_case
from tests.spark_impl.join_cases import shed as shed_of
from tests.spark_impl.test_join_query import case_with, inputs
from tests.spark_impl.test_join_streams import WINDOW_US, arrive, counted, stream_of

SECOND = 1_000_000
RULES = LoadRules(
    least=2,
    most=5,
    out_after_us=2 * SECOND,
    in_after_us=2 * SECOND,
    blocks="adaptive",
    capacity=10,
    block_size=8,
    shed="linear",
    base=0.2,
    smoothing=0.8,
)
CURVE = (0.5, 0.95, 0.95, 0.95, 0.5, 0.1, 0.1, 0.1, 0.5)
"""Mean utilisation by epoch."""
WORKERS = (2, 2, 2, 2, 5, 5, 5, 5, 2)
"""Workers by epoch: the load is high from epoch 1 to 3, and low from 5 to 7."""


def meter(measured: Measured) -> Measured:
    """Return a measurement with the utilisation of the curve, and a worker that has more."""
    assert measured.elapsed_us >= 1
    assert all(0 < each <= measured.elapsed_us for each in measured.busy_us)
    first, *others = (int(CURVE[measured.epoch] * SECOND),) * len(measured.busy_us)
    if others:
        first, others[-1] = first - 40_000, others[-1] + 40_000
    return measured._replace(elapsed_us=SECOND, busy_us=(first, *others))


def curve_case() -> Workload:
    case = random_case(27, 220, 220)
    config = {**case.config, "workers": RULES.least, "block_size": 8, "lateness_us": 8}
    config["window_us"] = WINDOW_US
    del config["epochs"]
    size = len(CURVE)
    return case.with_(
        config=config, cuts=tuple(len(case.arrivals) * n // size for n in range(1, size))
    )


@pytest.mark.fails_tasks
def test_a_load_curve_with_kills_changes_nothing(
    spark: SparkSession,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The driver dies before a resize, after it, and between a decision and its epoch."""
    caplog.set_level(logging.INFO, "straggler.join")
    case = curve_case()
    store = tmp_path / "store"

    def die_once(step: Step) -> None:
        died = tmp_path / "died"
        if step._asdict()["epoch"] == 4 and isinstance(step, Forward) and not died.exists():
            died.touch()
            os._exit(1)  # as if the process were killed

    def opened() -> Chain:
        config = JoinConfig.from_json(case.config)
        settings: Mapping[str, Any] = {"load": RULES, "meter": meter, "on_step": die_once}
        return Chain(spark, config, store, recording=True, **settings)

    chain = opened()
    complete = []
    for epoch, events in enumerate(case.batches()):
        if epoch in (3, 4, 8):  # before a resize to more, and the epochs of both
            with monkeypatch.context() as patch:
                patch.setattr(TableWriter, "commit", None)
                with pytest.raises(TypeError, match="not callable"):
                    chain.advance(rows_of(spark, events))
            chain = opened()
        chain.advance(rows_of(spark, events))
        if epoch == 7:  # before the epoch of a resize to fewer
            chain = opened()
        complete.append(complete_until(store))
    chain.advance(None)
    assert (tmp_path / "died").exists()
    found = load(store)
    decisions = look_at_decisions(found, caplog)
    taken = case.with_(config={**case.config, "decisions": [list(each) for each in decisions]})
    trace = read_trace(store)
    assert pairs(trace) == nested_loop(taken)
    assert set(trace.of(Rejected)) == admitted(taken)[1]
    assert {step.epoch: step.worker + 1 for step in sorted(trace.of(Quiet))} == dict(
        enumerate((*WORKERS, 2))
    )
    place, view = load_store(store)
    loads = [done.load for done in place.commits(view) if done.load is not None]
    log = ControlLog(RULES, start(RULES, RULES.least), [Logged(*each) for each in loads])
    assert [each.outcome for each in judge_log(log).verdicts] == [Outcome.HOLDS]
    look_at_shed(spark, store, taken, [each.measured for each in found])
    look_at_punctuation(taken, trace.of(Match), complete)
    assert complete_until(store) > max(event.event_time_us for event in case.arrivals)


def look_at_decisions(
    found: tuple[Any, ...], caplog: pytest.LogCaptureFixture
) -> tuple[Decision, ...]:
    state = begin(RULES, RULES.least)
    decisions = [Decision(0, RULES.least, RULES.block_size, 0.0)]
    for epoch, each in enumerate(found):
        in_force = (each.epoch, each.workers, each.block_size, each.share)
        assert in_force == decisions[-1]
        assert each.measured.epoch == epoch
        assert each.tau == pytest.approx(CURVE[epoch])
        assert len(each.utilisations) == WORKERS[epoch] == each.workers
        assert max(each.utilisations) > each.tau
        state, decision = decide(RULES, state, each.measured)
        assert (each.decision, each.smoothed) == (decision, state.smoothed)
        decisions.append(decision)
    assert len(found) == len(CURVE)
    assert len({each.block_size for each in decisions}) > 2
    lines = [line for line in caplog.messages if "store: from epoch" in line]
    changes = [after.epoch for before, after in pairwise(decisions) if before[1:] != after[1:]]
    told = {int(line.partition("from epoch ")[2].split()[0]) for line in lines}
    assert told == {*changes}
    return tuple(decisions[1:-1])


def look_at_shed(
    spark: SparkSession, store: Path, taken: Workload, measured: list[Measured]
) -> None:
    expected = shed_of(taken)
    by_epoch = [{*events} & expected for events in taken.batches()]
    assert [each.shed for each in measured] == [len(each) for each in by_epoch]
    assert [each.offered for each in measured] == [len(each) for each in taken.batches()]
    assert [each.held for each in measured] == [sum(each.held) for each in snapshots(store)[:-1]]
    found = rejected(spark, store).where(F.col("reason") == REASON_SHED)
    assert sum(each.reasons.get(REASON_SHED, 0) for each in snapshots(store)) == len(expected)
    rows = sorted(tuple(row) for row in found.collect())
    assert rows == sorted(
        (event.stream, *event[:4], REASON_SHED, epoch)
        for epoch, events in enumerate(by_epoch)
        for event in events
    )
    again = Counter((event.stream, event.source_id) for event in taken.arrivals)
    let_in = {(name, event.source_id) for name, own in admitted(taken)[0].items() for event in own}
    dropped = {(event.stream, event.source_id) for event in expected}
    assert [each for each in dropped & let_in if again[each] > 1], "no redelivery came through"
    assert dropped - let_in


def look_at_punctuation(taken: Workload, found: Any, complete: list[int]) -> None:
    assert complete == sorted(complete)
    times = {(event.stream, event.source_id): event.event_time_us for event in taken.arrivals}
    due = Counter[int]()
    epochs = {each[:3]: each.batch for each in found}
    for query, r_id, s_id in nested_loop(taken):
        epoch = epochs[query, r_id, s_id]
        latest_us = max(times[R, r_id], times["S", s_id])
        for at, until_us in enumerate(complete):
            assert latest_us >= until_us or epoch <= at
            due[at] += latest_us < until_us
    assert len(set(due.values())) > 4, (due, complete, "the punctuation does not move")


def test_real_measurements_reach_the_controller(spark: SparkSession, tmp_path: Path) -> None:
    """The rules take any work for too much, and add all workers at once."""
    eager = LoadRules(
        least=1, most=3, tau0=1e-9, tau1=1e-8, tau2=1e-8, out_after_us=0, shed="linear"
    )
    case = case_with(workers=1, batches=2)
    chain = Chain(spark, JoinConfig.from_json(case.config), tmp_path, load=eager)
    for events in case.batches():
        chain.advance(rows_of(spark, events))
    first, second = load(tmp_path)
    assert (first.workers, second.workers) == (1, 3)
    assert 0 < second.share < 1
    assert second.measured.elapsed_us > max(second.measured.busy_us) > 0
    slow = Chain(
        spark,
        JoinConfig.from_json(case.config),
        tmp_path / "slow",
        load=eager,
        comparison_us=1000,
    )
    (done,) = slow.advance(rows_of(spark, case.arrivals))
    assert done.busy_us >= 1000 * done.compared - 1000
    assert done.compared > 100
    with pytest.raises(EnvironmentProblem, match="a chain of 9 workers needs 9 task slots"):
        Chain(
            spark,
            JoinConfig.from_json(case.config),
            tmp_path / "wide",
            load=replace(eager, most=9),
        )


# ----------------------------------------------------------------------------- for users


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"workers": (2, 8)}, "workers is (2, 8); it must be a number, because load= gives no"),
        ({"workers": (8, 2), "load": LoadRules()}, "least is 8; it must be at most 2, which is"),
        ({"workers": (0, 2), "load": LoadRules()}, "workers is 0; it must be an integer"),
        ({"workers": (1, 2, 3), "load": LoadRules()}, "workers is (1, 2, 3); it must be a number"),
        ({"workers": 2, "load": True}, "load is True; it must be LoadRules(...)"),
    ],
)
def test_bad_rules_are_refused(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}"):
        ChainJoin(window_us=10, predicate=And(), **given)


def test_rules_take_range_and_block_size_from_the_chain() -> None:
    join = ChainJoin((2, 5), 10, And(), block_size=20, load=LoadRules(least=7, most=7))
    assert join._load == LoadRules(least=2, most=5, block_size=20)
    assert join._config.workers == 2
    fixed = ChainJoin(3, 10, And(), load=LoadRules())
    assert fixed._load == LoadRules(least=3, most=3, block_size=64)


@pytest.mark.fails_tasks
def test_a_query_that_fails_can_be_withdrawn(spark: SparkSession, tmp_path: Path) -> None:
    """The epoch that failed runs again without it; so does a chain that is opened again."""
    case = case_with(workers=1, batches=2)

    def fails(r: Any, s: Any) -> Any:
        raise ArithmeticError("no answer")

    chain = Chain(spark, JoinConfig.from_json(case.config), tmp_path / "store")
    (only,) = (name for name, _ in chain.config.queries)
    with pytest.raises(InputProblem, match=f"{only!r} has not begun, and a chain needs a query"):
        chain.withdraw(only)
    assert chain.submit("bad", And(), fails) == 0
    first, second = (rows_of(spark, events) for events in case.batches())
    with pytest.raises(ChainProblem, match="no answer"):
        chain.advance(first)
    assert chain.withdraw("bad") == 0
    chain.advance(first)
    chain.advance(second)
    assert {match.query for match in read_trace(tmp_path / "store").of(Match)} == {only}


def test_queries_come_and_go_while_a_chain_runs(spark: SparkSession, tmp_path: Path) -> None:
    """The chain is opened again with what it knew at first, and with other rules."""
    case = case_with(workers=1, batches=5)
    batches = list(case.batches())

    def reopened() -> Any:
        return stream_of(spark, tmp_path, 2, {"old": And()})

    def run(stream: Any) -> None:
        arrive(tmp_path, batches.pop(0))
        stream.run_available()

    arrive(tmp_path, batches.pop(0))
    stream = reopened()
    assert stream.submit("first", Equi("key")) == 0
    stream.run_available()
    chain = stream._chain
    with ThreadPoolExecutor(1) as other:

        def submit_meanwhile(measured: Measured) -> Measured:
            assert other.submit(stream.submit, "new", And()).result(timeout=60) == 2
            assert stream.submit("short", And()) == 2
            assert stream.withdraw("short") == 2
            return measured

        chain._load, chain._meter = LoadRules(least=2, most=2), submit_meanwhile
        run(stream)
    stream = reopened()  # the store knows "new", because epoch 1 was committed after the call
    run(stream)
    assert stream.submit("new", And()) == 2
    assert stream.withdraw("old") == 3
    assert stream.withdraw("old") == 3
    run(stream)
    stream = reopened()
    run(stream)
    with pytest.raises(InputProblem, match=r"^the query 'old' ended with epoch 2: a new query"):
        stream.submit("old", And())
    with pytest.raises(InputProblem, match=r"^the query 'new' has changed"):
        stream.submit("new", Equi("key"))
    with pytest.raises(
        InputProblem, match=r"^there is no query 'short'; there are old, first, new"
    ):
        stream.withdraw("short")
    with pytest.raises(ValueError, match=r"^7 is neither a predicate nor a function$"):
        stream.submit("seven", 7)
    stream.flush()
    with pytest.raises(InputProblem, match="was flushed, and nothing may follow that"):
        stream.submit("late", And())
    spans = (("old", 0, 2), ("new", 2, None))
    queries = (("old", And()), ("first", Equi("key")), ("new", And()))
    config = JoinConfig(WINDOW_US, queries, lateness_us=8, epochs=spans)
    expected = nested_loop(case.with_(config=config.to_json()))
    assert counted(results(spark, tmp_path / "store")) == expected
    assert {name for name, _, _ in expected} == {"old", "first", "new"}


def test_a_submitted_function_is_given_again(spark: SparkSession, tmp_path: Path) -> None:
    def near(r: Any, s: Any) -> Any:
        return abs(r.value - s.value) <= 1

    (events, _) = case_with(workers=1).batches()
    arrive(tmp_path, events)
    stream = stream_of(spark, tmp_path, 1, {"old": And()})
    assert stream.submit("near", near) == 0
    stream.run_available()
    assert {name for name, _, _ in counted(results(spark, tmp_path / "store"))} == {"old", "near"}
    with pytest.raises(InputProblem, match="the query 'near' is a function: give it again"):
        stream_of(spark, tmp_path, 1, {"old": And()})


def test_a_chain_may_be_opened_again_with_other_rules(spark: SparkSession, tmp_path: Path) -> None:
    """A decision that was made holds; without rules the settings do."""
    case = case_with(workers=2, batches=4)
    config = JoinConfig.from_json(case.config)

    def run(rules: LoadRules | None, events: tuple[Event, ...]) -> None:
        Chain(spark, config, tmp_path, load=rules, meter=busy).advance(rows_of(spark, events))

    def busy(measured: Measured) -> Measured:
        return measured._replace(elapsed_us=1, busy_us=(1,) * len(measured.busy_us))

    wide = replace(RULES, out_after_us=0)
    one, two, three, four = case.batches()
    run(wide, one)
    run(replace(wide, most=3), two)
    run(replace(wide, most=3), three)
    run(None, four)
    assert [each.workers for each in snapshots(tmp_path)] == [2, 5, 3, 2]
    assert [each.decision.workers for each in load(tmp_path)] == [5, 3, 3]


def test_a_store_without_measurements_opens(spark: SparkSession, tmp_path: Path) -> None:
    """A chain that does not follow its load measures nothing; it may begin to follow it."""
    case = case_with(workers=2)
    config = JoinConfig.from_json(case.config)
    first, second = case.batches()
    Chain(spark, config, tmp_path).advance(rows_of(spark, first))
    assert load(tmp_path) == ()
    chain = Chain(spark, config, tmp_path, load=RULES, meter=meter)
    chain.advance(rows_of(spark, second))
    chain.advance(None)
    assert counted(results(spark, tmp_path)) == nested_loop(case)
    assert [each.epoch for each in load(tmp_path)] == [1]
    assert rejected(spark, tmp_path).where(F.col("reason") == REASON_SHED).count() == 0
    r, s = (inputs(spark, case, stream) for stream in "RS")
    bounded = ChainJoin((1, 2), 10, And(), load=LoadRules()).join(r, s, tmp_path / "bounded")
    assert bounded.count() > 0

"""Queries of a chain that other processes submit, withdraw and ask for, through its store.

The expected pairs are those of a nested loop over the tuples of the epochs that a query had; the
epochs are counted here, from who asked when.
"""

import json
import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from model.vocabulary import JoinConfig, Workload
from model.vocabulary.join import REASON_LATE, STREAMS, And, Predicate, R, S
from model.vocabulary.join_conditions import parse_condition
from spark_impl.join import (
    ChainJoin,
    ChainStream,
    answers,
    ask,
    results,
    status,
    submit,
    withdraw,
)
from spark_impl.join.store import Commit
from spark_impl.runtime.storage import InputProblem
from tests.properties.test_join_register import Expected, Step
from tests.spark_impl.join_cases import (
    COLUMNS,
    LATENESS_US,
    WINDOW_US,
    arrive,
    case_with,
    counted,
    nested_loop,
    recomputed,
    stream_of,
)
from tests.straggler.command import start

OWN: dict[str, Predicate] = {"own": And()}
CONDITIONS = ("key", "value within 0.5", "value <")
EPOCHS = 6


class Asked:
    """The queries as those who ask know them."""

    def __init__(self) -> None:
        self.known = Expected()

    def begin(self, epoch: int) -> None:
        """Note the first epoch that has not begun."""
        self.known = self.known._replace(next=epoch)

    def after(self, step: Step) -> int | str:
        """Return the epoch that a request names, or its refusal."""
        self.known, found = self.known.after(step)
        return found

    def workload(self, case: Workload) -> Workload:
        config = JoinConfig(
            WINDOW_US,
            tuple((name, parse_condition(text)) for name, text, *_ in self.known.spans),
            lateness_us=LATENESS_US,
            epochs=tuple((name, first, last) for name, _, first, last in self.known.spans),
        )
        return case.with_(config=config.to_json())


def opened(spark: SparkSession, folder: Path, workers: int) -> ChainStream:
    for stream in STREAMS:
        (folder / stream).mkdir(exist_ok=True)  # Spark streams from folders that are there
    return stream_of(spark, folder, workers, OWN)


def request(draw: random.Random, asked: Asked, store: Path) -> None:
    """Submit or withdraw a query."""
    name, text = draw.choice("abcd"), draw.choice(CONDITIONS)
    if draw.random() < 0.7:
        expected = asked.after(Step("submit", name, text))
        call = partial(submit, store, name, text)
    else:
        expected = asked.after(Step("withdraw", name))
        call = partial(withdraw, store, name)
    if isinstance(expected, str):
        with pytest.raises(InputProblem, match=expected):
            call()
    else:
        assert call() == expected


def test_queries_of_other_processes_come_and_go(spark: SparkSession, tmp_path: Path) -> None:
    """Requests come before, during and after epochs; epochs fail, and the chain is opened again."""
    draw, asked, store = random.Random(0), Asked(), tmp_path / "store"
    case = case_with(workers=1, batches=EPOCHS)
    stream = opened(spark, tmp_path, 2)
    with pytest.raises(InputProblem, match="has not been started yet"):
        submit(store, "a", "key")
    for epoch, events in enumerate(case.batches()):
        if draw.random() < 0.4:  # nobody runs it when requests come
            stream = opened(spark, tmp_path, draw.choice([1, 2]))
        if epoch:
            for _ in range(draw.choice([0, 1, 3])):
                request(draw, asked, store)
        arrive(tmp_path, events)
        run(stream, partial(request, draw, asked, store), asked, draw)
    found = status(store)
    assert (found.epoch, found.next, found.flushed) == (EPOCHS - 1, EPOCHS, False)
    stream.flush()
    with pytest.raises(InputProblem, match="was flushed, and nothing may follow that"):
        submit(store, "late", "key")
    asks = asked.workload(case)
    expected = nested_loop(asks)
    assert counted(results(spark, store)) == expected
    compare_status(store, asked, case, expected)
    for name, *_ in asked.known.spans:
        pairs = [*zip(*answers(store, name, complete=True).to_pydict().values(), strict=True)]
        assert Counter((name, *pair) for pair in pairs) == by_name(expected, name)


def run(stream: ChainStream, during: Callable[[], None], asked: Asked, draw: random.Random) -> None:
    """Run an epoch in which requests come, perhaps after it has failed once."""
    chain: Any = stream._chain
    conclude, fails = chain._conclude, [draw.random() < 0.3]

    def interrupted(*given: Any) -> Commit:
        asked.begin(chain.epochs + 1)
        during()
        if fails.pop():
            asked.begin(chain.epochs)
            raise InputProblem("no space left")
        fails.append(False)
        done: Commit = conclude(*given)
        return done

    chain._conclude = interrupted
    if fails[0]:
        with pytest.raises(RuntimeError, match="no space left"):
            stream.run_available()
        during()
        fails.append(False)
    stream.run_available()
    del chain._conclude


def by_name(pairs: Counter[tuple[str, int, int]], name: str) -> Counter[tuple[str, int, int]]:
    return Counter({pair: count for pair, count in pairs.items() if pair[0] == name})


def compare_status(
    store: Path, asked: Asked, case: Workload, expected: Counter[tuple[str, int, int]]
) -> None:
    """Compare what is said of each query, after a flush, with the arrivals of its epochs."""
    late = [seq for _, seq, _, reason in recomputed(case).rejected if reason == REASON_LATE]
    cuts = [*case.cuts, len(case.arrivals)]
    found = {each.name: each for each in status(store).queries}
    assert len(found) == len(asked.known.spans)
    for name, _, first, last in asked.known.spans:
        begin = cuts[first - 1] if first else 0
        end = cuts[EPOCHS - 1 if last is None else last]
        each = found[name]
        assert each[3:5] == (first, last)
        assert each.pairs == by_name(expected, name).total()
        assert each.late == sum(begin <= seq < end for seq in late)
        assert (each.shed, each.pending) == (0, 0)


def test_answers_have_columns_and_are_final_below_their_time(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A question about the past is answered from the same tuples, while the chain goes on."""
    case, store = case_with(workers=1, batches=3), tmp_path / "store"
    stream = opened(spark, tmp_path, 2)
    first, second, third = case.batches()
    arrive(tmp_path, first)
    stream.run_available()
    select = ("r.value", "s.key", "s.event_time")
    within = "value within 0.5 and event_time within 4us"
    assert submit(store, "near", within, select=select) == 1
    arrive(tmp_path, second)
    stream.run_available()
    (near,) = (each for each in status(store).queries if each.name == "near")
    assert near.condition == within
    assert near.pending > 0
    before = answers(store, "near", complete=True)
    arrive(tmp_path, third)
    stream.run_available()
    stream.flush()
    after = answers(store, "near")
    tuples = {(each.stream, each.source_id): each for each in case.arrivals}
    for row in after.to_pylist():
        r, s = tuples[R, row["r_id"]], tuples[S, row["s_id"]]
        assert (row["r_value"], row["s_key"]) == (r.value, s.key)
        assert row["s_event_time"].timestamp() * 1e6 == pytest.approx(s.event_time_us, abs=0.5)
    below = [
        row
        for row in after.to_pylist()
        if all(
            tuples[stream, row[f"{stream.lower()}_id"]].event_time_us < near.complete_us
            for stream in STREAMS
        )
    ]
    assert ids(pa.Table.from_pylist(below, after.schema)) == ids(before) != set()
    spans = [["near", 1, None]]
    both = ["and", ["band", "value", 0.5], ["band", "event_time", 4]]
    wanted = {**case.config, "queries": [["near", both]], "epochs": spans}
    assert {pair[1:] for pair in recomputed(case.with_(config=wanted)).pairs} == ids(after)
    once = {**case.config, "queries": [["ask", ["and"]]], "epochs": [["ask", 0, 1]]}
    expected = {pair[1:] for pair in nested_loop(case.with_(config=once))}
    assert ids(ask(store, "any", last_epoch=1)) == expected
    with pytest.raises(InputProblem, match=r"^epoch 9 of the chain in .* has not been committed$"):
        ask(store, "any", last_epoch=9)


def ids(pairs: pa.Table) -> set[tuple[int, int]]:
    return {(row["r_id"], row["s_id"]) for row in pairs.to_pylist()}


def test_of_two_processes_that_take_one_name_one_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    stream = opened(spark, tmp_path, 1)
    first, _ = case_with(workers=1).batches()
    arrive(tmp_path, first)
    stream.run_available()
    texts = ("value within 1", "value within 2")
    jobs = [
        start(tmp_path, "join", "submit", "store", "near", "--on", text, scratch=f"tmp{at}")
        for at, text in enumerate(texts)
    ]
    said = [(*job.communicate(timeout=240), job.returncode) for job in jobs]
    assert sorted(code for *_, code in said) == [0, 2], said
    for (out, err, code), text in zip(said, texts, strict=True):
        if code == 0:
            assert out == "near: pairs tuples from epoch 1 on\n"
            wanted = text
        else:
            assert err.startswith("straggler: the query 'near' has changed")
    shown = start(tmp_path, "join", "status", "store", "--json", "-").communicate(timeout=240)[0]
    own, near = json.loads(shown)["queries"]
    assert (own["name"], near["condition"]) == ("own", wanted)


def without_keys(spark: SparkSession, folder: Path) -> ChainStream:
    r, s = (spark.readStream.schema(COLUMNS).parquet(str(folder / each)) for each in STREAMS)
    chain = ChainJoin(1, WINDOW_US, OWN, block_size=3, lateness_us=LATENESS_US, history=True)
    return chain.stream(r.drop("key"), s.drop("key"), folder / "store")


def test_a_query_on_a_column_that_the_inputs_lack_now_stops_each_start(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Submit the query after the chain was opened, and before it is started."""
    stream = opened(spark, tmp_path, 1)
    first, second = case_with(workers=1).batches()
    arrive(tmp_path, first)
    stream.run_available()
    stream = without_keys(spark, tmp_path)
    assert submit(tmp_path / "store", "near", "key") == 1
    arrive(tmp_path, second)
    for _ in range(2):
        with pytest.raises(InputProblem, match="was continued elsewhere: open it again"):
            stream.run_available()
    with pytest.raises(InputProblem, match="the input R has no column 'key'"):
        without_keys(spark, tmp_path)


def test_tuples_of_inputs_without_a_column_are_not_asked_about_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The second epoch has keys, the first one has none."""
    case, store = case_with(workers=1), tmp_path / "store"
    first, second = case.batches()
    opened(spark, tmp_path, 1)
    arrive(tmp_path, first)
    without_keys(spark, tmp_path).run_available()
    arrive(tmp_path, second)
    stream_of(spark, tmp_path, 1, OWN).run_available()
    once = {**case.config, "queries": [["ask", ["equi", "key"]]], "epochs": [["ask", 1, 1]]}
    expected = {pair[1:] for pair in nested_loop(case.with_(config=once))}
    assert ids(ask(store, "key", first_epoch=1)) == expected
    for last in (0, 1):
        with pytest.raises(InputProblem, match="the input R has no column 'key'"):
            ask(store, "key", last_epoch=last)

"""Answers of a chain to other processes, without Spark: stores of before, and one by hand."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from model.vocabulary import Event, JoinConfig
from model.vocabulary.join import NO_WATERMARK_US, STREAMS, And, Equi, R
from spark_impl.join import answers, ask, chain, progress, register, status, submit, withdraw
from spark_impl.join.chain import Chain
from spark_impl.join.checkpoint import StreamState, WorkerState, encode_state
from spark_impl.join.control import Clocks, StreamClock
from spark_impl.join.in_process import arrivals_of
from spark_impl.join.matching import Counts, to_arrow
from spark_impl.join.register import Register
from spark_impl.join.store import MATCHES, STATE, commit_epoch, load_store, name_of, open_store
from spark_impl.runtime import packages, tables
from spark_impl.runtime.accounts import Reading
from spark_impl.runtime.failures import QueryProblem
from spark_impl.runtime.limits import Limits
from spark_impl.runtime.storage import InputProblem
from spark_impl.runtime.tables import TableWriter
from tests.golden.archive import unpack
from tests.properties.test_join_register import commit_of

ROOT = Path(__file__).resolve().parents[2]
CONFIG = JoinConfig(9, (("own", And()),))
NAMES = ["query", "r_id", "s_id"]
FUNCTION: Any = max
REFUSED: Mapping[str, Callable[[Path], object]] = {
    "R has no column 'pm25'": lambda at: submit(at, "a", "key", select=["r.pm25"]),
    "the tuples of epoch 0 were not kept": lambda at: answers(at, "near", select=["r.key"]),
    "the tuples of epoch 3 were not kept": lambda at: ask(at, "key", first_epoch=3),
    "the first epoch 4 comes after the last one, 3": lambda at: ask(at, "key", first_epoch=4),
    "epoch -1 of the chain in .* has not been": lambda at: ask(at, "key", first_epoch=-1),
    "R has no column 'pm10'": lambda at: ask(at, Equi("pm10")),
    "select has 'x.key'; it must have columns": lambda at: answers(at, "same", select=["x.key"]),
    "select has 'r.'; it must have columns such": lambda at: answers(at, "same", select=["r."]),
}
"""Requests that a chain of four epochs without a history refuses."""


def test_a_chain_refuses_what_it_does_not_have(tmp_path: Path) -> None:
    unpack(ROOT / "tests" / "golden" / "unreleased" / "store-join.zip", tmp_path)
    for sentence, asked in REFUSED.items():
        with pytest.raises(InputProblem, match=sentence):
            asked(tmp_path / "disk" / "store")


def test_a_chain_without_an_epoch_has_queries_and_no_answers(tmp_path: Path) -> None:
    given = Register(CONFIG, 0, functions=("own",))
    register.change(open_store(tmp_path, CONFIG), None, lambda _: given)
    found = status(tmp_path)
    nothing = ("own", "a function", (), 0, None, NO_WATERMARK_US, 0, 0, 0, 0)
    assert found == (-1, 0, False, (nothing,))
    assert answers(tmp_path, "own", complete=True).num_rows == 0
    with pytest.raises(InputProblem, match="has no epoch yet"):
        ask(tmp_path, "any")
    assert submit(tmp_path, "more", "key") == 0


# ------------------------------------------------------------------------------- a store by hand


def write_epochs(folder: Path, config: JoinConfig, epochs: int) -> None:
    """Write epochs with one R and one S each, which have the number of the epoch."""
    store = open_store(folder, config)
    writer, begun = TableWriter(store.root), Register(config, 0)
    for epoch in range(epochs):
        event = Event(epoch, epoch, "k", epoch, 1.0, 0, R)
        arrived = arrivals_of([event], R, config).tuples
        own = replace(arrived, rank=np.array([epoch], np.int64))
        ids = [pair for pair in product(range(epoch + 1), repeat=2) if epoch in pair]
        rows = {f"admitted-{each}": pa.Table.from_batches([to_arrow(own)]) for each in STREAMS}
        rows[MATCHES] = pa.table([["own"] * len(ids), *zip(*ids, strict=True)], NAMES)
        state = encode_state(WorkerState(StreamState(own), StreamState(own)))
        rows[STATE] = pa.table({"number": [0], "content": [state]})
        for kind, each in rows.items():
            store.write(kind, epoch, each, name_of("a", 0))
        begun = register.begun(begun, epoch, flush=False)
        done = commit_of(begun)._replace(
            history=True,
            matches={"own": len(ids)},
            admitted=Counts(epoch + 1, epoch + 1),
            held=Counts(1, 1),
            complete_us=epoch,
            clocks=Clocks(StreamClock(epoch), StreamClock(epoch)),
        )
        files = {name_of("a", 0): {kind: each.num_rows for kind, each in rows.items()}}
        commit_epoch(store, writer, done, files, Reading(0, None), {}, Limits())


def ids(pairs: pa.Table) -> list[tuple[int, int]]:
    return sorted(zip(*pairs.select(NAMES[1:]).to_pydict().values(), strict=True))


def test_epochs_whose_files_were_merged_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "TIDIED", 2)
    write_epochs(tmp_path, CONFIG, 3)
    view = load_store(tmp_path).view
    assert len(view.of("admitted-R")) < 3, "nothing was merged"
    for first, last in [(0, 0), (0, 1), (1, 1), (1, 2), (2, 2)]:
        expected = [*product(range(first, last + 1), repeat=2)]
        assert ids(ask(tmp_path, "key", first_epoch=first, last_epoch=last)) == expected
    assert ids(ask(tmp_path, "key", last_epoch=1)) == [*product((0, 1), repeat=2)]
    assert ids(ask(tmp_path, "key", first_epoch=1)) == [*product((1, 2), repeat=2)]


def test_what_is_complete_lies_below_a_time(tmp_path: Path) -> None:
    write_epochs(tmp_path, CONFIG, 3)
    assert ids(answers(tmp_path, "own")) == [*product(range(3), repeat=2)]
    assert ids(answers(tmp_path, "own", complete=True)) == [*product(range(2), repeat=2)]
    assert status(tmp_path).queries[0][5:] == (2, 9, 0, 0, 2)


@pytest.mark.parametrize(("lateness_us", "held_by"), [(None, None), (1, R)])
def test_of_streams_that_are_equally_far_r_is_named(
    tmp_path: Path, lateness_us: int | None, held_by: str | None
) -> None:
    """Watermarks need a lateness: without one no stream holds the other one back."""
    write_epochs(tmp_path, replace(CONFIG, lateness_us=lateness_us), 3)
    assert progress(tmp_path).held_by == held_by


# ------------------------------------------------------------------------------ chains that ask


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Chain]:
    """Return a function that opens the chain of a folder, with no workers."""
    monkeypatch.setattr(chain, "check_slots", lambda *_: 9)
    monkeypatch.setattr(packages, "prepare_workers", lambda _: None)
    spark: Any = SimpleNamespace(sparkContext=None)
    return lambda *given: Chain(spark, given[0], tmp_path, *given[1:])


BOTH = replace(CONFIG, queries=(*CONFIG.queries, ("f", And())))
COLUMNED = JoinConfig(
    9,
    (*CONFIG.queries, ("x", Equi("x"))),
    r_columns=(("x", "text"),),
    s_columns=(("x", "text"),),
)


@pytest.mark.parametrize("other", [(BOTH, {"f": max}), (COLUMNED,)], ids=["function", "column"])
def test_a_chain_that_lacks_what_another_one_has_begun_is_opened_again(
    opened: Callable[..., Chain], other: Any
) -> None:
    one = opened(CONFIG)
    one.note()
    opened(*other).note()
    with pytest.raises(InputProblem, match="was continued elsewhere: open it again"):
        one.advance(None)


@pytest.mark.parametrize("is_replaced", [True, False])
def test_a_function_is_not_called_for_another_query_of_its_name(
    tmp_path: Path, opened: Callable[..., Chain], is_replaced: bool
) -> None:
    """Withdraw it before it has begun, so that its name is free."""
    one = opened(BOTH, {"f": max})
    one.note()
    if is_replaced:
        assert withdraw(tmp_path, "f") == submit(tmp_path, "f", "key") == 0
    given: list[Any] = []

    def run(_rows: object, plan: Any, _is_awaited: object) -> None:
        given.append((dict(plan.config.queries)["f"], plan.free))
        raise QueryProblem("no workers")

    crew: Any = one._crew
    crew.run = run
    with pytest.raises(QueryProblem, match="no workers"):
        one.advance(None)
    assert given == [(Equi("key"), {}) if is_replaced else (And(), {"f": max})]

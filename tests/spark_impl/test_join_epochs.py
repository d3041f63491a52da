"""Queries that come and go: a reopened chain changes from its next epoch on."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from model.vocabulary import Event, JoinConfig, Workload
from model.vocabulary.join import And, Band, Equi, Predicate
from spark_impl.join.in_process import run_in_process
from spark_impl.join.matching import Counts, Ranks, ranks_of
from spark_impl.join.queries import continue_config
from spark_impl.join.store import load_store, open_store
from spark_impl.runtime.storage import InputProblem
from spark_impl.runtime.stores import Draft
from spark_impl.runtime.tables import TableWriter
from tests.spark_impl.join_cases import nested_loop, pairs

Epochs = tuple[tuple[str, int, int | None], ...]


def config(epochs: Epochs = (), **queries: Predicate) -> JoinConfig:
    return JoinConfig(window_us=10, queries=tuple(queries.items()), epochs=epochs)


OLD = config(old=Equi("key"), gone=And())


def test_new_queries_begin_and_gone_ones_end() -> None:
    found = continue_config(OLD, (), config(old=Equi("key"), new=And()), (), 5)
    assert dict(found.queries) == {"old": Equi("key"), "gone": And(), "new": And()}
    assert set(found.epochs) == {("gone", 0, 4), ("new", 5, None)}
    again = continue_config(found, (), config(old=Equi("key"), new=And()), (), 8)
    assert again == found


def test_other_settings_of_a_chain_may_change() -> None:
    given = JoinConfig(10, OLD.queries, workers=7, block_size=1, credit=1)
    assert continue_config(OLD, (), given, (), 5) == given


@pytest.mark.parametrize(
    ("epochs", "expected"),
    [
        ((("new", 6, 9),), ("new", 6, 9)),
        ((("new", 5, None),), ("new", 5, None)),
        ((("old", 0, 4),), ("old", 0, 4)),
        ((("old", 0, 9),), ("old", 0, 9)),
    ],
)
def test_epochs_may_be_given(epochs: Epochs, expected: tuple[str, int, int | None]) -> None:
    given = config(epochs, old=Equi("key"), gone=And(), new=And())
    assert expected in continue_config(OLD, (), given, (), 5).epochs


@pytest.mark.parametrize(
    ("epochs", "queries", "sentence"),
    [
        ((), {"old": And(), "gone": And()}, "the query 'old' has changed"),
        ((), {"old": Equi("key"), "ended": And()}, "the query 'ended' ended with epoch 2"),
        ((("new", 4, None),), {"new": And()}, "'new' cannot have the epochs 4 to None: the next"),
        ((("old", 1, None),), {"old": Equi("key")}, "'old' cannot have the epochs 1 to None"),
        ((("old", 0, 3),), {"old": Equi("key")}, "'old' cannot have the epochs 0 to 3"),
        ((("ended", 0, 7),), {"ended": And()}, "'ended' cannot have the epochs 0 to 7"),
    ],
)
def test_earlier_epochs_of_a_query_cannot_change(
    epochs: Epochs, queries: dict[str, Predicate], sentence: str
) -> None:
    before = config((("ended", 0, 2),), old=Equi("key"), gone=And(), ended=And())
    with pytest.raises(InputProblem, match=sentence):
        continue_config(before, (), config(epochs, **queries), (), 5)


def test_a_query_that_is_gone_before_it_began_was_never_there() -> None:
    before = config((("later", 9, None),), old=Equi("key"), later=And())
    assert continue_config(before, (), config(old=Equi("key")), (), 5) == config(old=Equi("key"))


def test_functions_have_to_be_given_again() -> None:
    with pytest.raises(InputProblem, match="the query 'gone' is a function: give it again"):
        continue_config(OLD, ("gone",), config(old=Equi("key")), (), 5)
    with pytest.raises(InputProblem, match="the query 'gone' has changed"):
        continue_config(OLD, ("gone",), OLD, (), 5)
    assert continue_config(OLD, ("gone",), OLD, ("gone",), 5) == OLD


def test_ranks_are_those_of_the_epochs() -> None:
    admitted = [Counts(0, 0), Counts(3, 4), Counts(5, 4), Counts(9, 6)]
    queries: dict[str, Predicate] = dict.fromkeys(("all", "past", "now", "later"), And())
    given = config((("past", 1, 1), ("now", 2, 3), ("later", 4, None)), **queries)
    everyone, past, now, later = ranks_of(given, 3, admitted.__getitem__)
    assert everyone is None
    assert past == Ranks(Counts(3, 4), Counts(5, 4))
    assert now is not None
    assert now.first == Counts(5, 4)
    assert now.end > Counts(1 << 62, 1 << 62)
    assert later is not None
    assert later.first > Counts(1 << 62, 1 << 62)


def test_a_query_pairs_tuples_of_its_epochs_alone() -> None:
    """Each epoch has two tuples of each stream; pairs across epochs are owed at first."""
    rows = [(stream, epoch) for epoch in range(4) for stream in "RRSS"]
    events = tuple(
        Event(seq, seq, "a", 1000 + epoch, float(seq), seq, stream)
        for seq, (stream, epoch) in enumerate(rows)
    )
    queries: tuple[tuple[str, Predicate], ...] = (("all", And()), ("near", Band("value", 3.0)))
    middle = JoinConfig(10, (*queries, ("middle", And())), 3, epochs=(("middle", 1, 2),))
    case = Workload("join", events, middle.to_json(), (4, 8, 12))
    found = pairs(run_in_process(case))
    of_epochs = {event.source_id: epoch for event, (_, epoch) in zip(events, rows, strict=True)}
    expected = nested_loop(case.with_(config=JoinConfig(10, queries).to_json()))
    expected |= Counter(
        ("middle", r, s)
        for query, r, s in expected
        if query == "all" and {of_epochs[r], of_epochs[s]} <= {1, 2}
    )
    assert found == expected
    assert sum(1 for query, *_ in found if query == "middle") == 16


@pytest.mark.parametrize("ts", [(1 << 63) - 5, 1 << 61, -(1 << 61) - 1, -(1 << 63)])
def test_event_times_out_of_range_are_refused(ts: int) -> None:
    events = (Event(0, 0, "a", 0, 0.0, 0, "R"), Event(1, 1, "a", ts, 0.0, 1, "S"))
    with pytest.raises(InputProblem, match=f"the event time {ts} us is out of range"):
        run_in_process(Workload("join", events, OLD.to_json()))


def test_the_widest_window_leaves_no_event_time_in_range() -> None:
    events = (Event(0, 0, "a", 0, 0.0, 0, "R"),)
    widest = JoinConfig((1 << 63) - 1, OLD.queries)
    with pytest.raises(InputProblem, match="the event time 0 us is out of range"):
        run_in_process(Workload("join", events, widest.to_json()))


def test_a_store_that_was_cut_short_while_it_was_made_is_made_again(tmp_path: Path) -> None:
    (tmp_path / "_delta_log").mkdir()
    assert open_store(tmp_path, OLD) == load_store(tmp_path)[0]


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(InputProblem, match="is neither an empty folder nor the store of a chain"):
        open_store(tmp_path, OLD)
    with pytest.raises(InputProblem, match="is not the store of a chain"):
        load_store(tmp_path)
    (tmp_path / "query.json").write_text('{"version": 3}', encoding="utf-8")
    with pytest.raises(InputProblem, match="is a store of an earlier version of Straggler"):
        open_store(tmp_path, OLD)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["query.json", "thesis.txt"]


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"\xff"])
def test_a_commit_that_cannot_be_read_is_named(content: bytes, tmp_path: Path) -> None:
    store = open_store(tmp_path, OLD)
    writer = TableWriter(store.root)
    draft = Draft(store, writer.view, 0)
    draft.write("commit", pa.table([pa.array([content])], schema=store.schema("commit")), "x")
    draft.commit(writer)
    with pytest.raises(InputProblem, match="does not hold the commits of epochs; restore it"):
        store.commits(writer.view)


def test_a_query_that_was_withdrawn_stays_away() -> None:
    """A query may have been given with epochs, or have been withdrawn before it began."""
    given = config(old=Equi("key"), new=And())
    ended = replace(given, epochs=(("new", 0, 3),))
    wants = replace(given, epochs=(("new", 0, None),))
    for epoch in (4, 9):
        assert continue_config(ended, (), wants, (), epoch, {"new"}).span("new") == (0, 3)
    assert "new" not in dict(continue_config(OLD, (), given, (), 5, {"new"}).queries)

"""Ledgers of queries: rows by micro-batch, lists of pending rows, limits."""

from importlib import import_module
from math import nan
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from spark_impl.runtime.accounts import ledger
from spark_impl.runtime.storage import InputProblem
from tests.spark_impl.rooms_under_test import (
    AGAIN,
    FIRST,
    LAST,
    LATE,
    PROBLEMS,
    ROOMS,
    Reading,
    land,
)
from tests.spark_impl.test_contracts import Kept, nothing


@pytest.fixture(params=ROOMS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def awaited(spark: SparkSession, name: str, store: Path) -> set[int]:
    """Return the identities of pending rows, which the ledger counts."""
    listed = import_module(f"spark_impl.{name}").pending(spark, store).collect()
    assert len(listed) == ledger(store).pending
    return {row.source_id for row in listed}


def load_progress(name: str) -> Any:
    """Return the function of a room that returns figures of the last micro-batch."""
    return import_module(f"spark_impl.{name}").progress


def test_a_redelivery_of_an_answered_row_at_another_time_is_not_listed(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Tasks know an identity for a while after the window of its row has closed.

    Rows beyond all calendars wait for nothing.
    """
    history, store = tmp_path / "history", tmp_path / "store"
    beyond = [Reading("R", 14 + n, us) for n, us in enumerate(((1 << 63) - 1, -(1 << 63)))]
    first = [Reading("R", 0, 20_000), Reading("R", 1, 46_000), *beyond]
    for readings in (first, [Reading("R", 0, 46_500)]):
        land(history, readings)
        ROOMS["slack"].open(spark, history, store, sink=nothing, dedup=True).run_available()
        assert awaited(spark, "slack", store) == {1}
    assert ledger(store).redelivered == 1
    land(tmp_path / "another", first)
    history.rename(tmp_path / "moved")
    (tmp_path / "another").rename(history)
    with pytest.raises(InputProblem, match="belongs to the history"):
        awaited(spark, "slack", store)


def test_a_limit_stops_a_query_until_it_is_raised(
    spark: SparkSession, name: str, tmp_path: Path
) -> None:
    """The next run plans the same rows, and answers are those of a query without limits.

    Rows are pending until they are answered. A late row waits for its correction; those that time
    has answered wait no more.
    """
    room = ROOMS[name]
    history, store, kept = tmp_path / "history", tmp_path / "store", Kept()
    more = (*AGAIN, Reading("R", 14, 32_500, nan))

    def run(**limits: float) -> None:
        room.open(spark, history, store, sink=kept, **limits).run_available()

    def stops(batch: int, sentence: str, rows: int, **limits: float) -> None:
        file = store / "_stopped" / f"{batch:08d}.parquet"
        with pytest.raises(PROBLEMS) as stopped:
            run(**limits)
        assert str(stopped.value) == (
            f"{store} has not committed micro-batch {batch}: {sentence}; {file} lists them"
        )
        assert load_progress(name)(store)[0] == batch - 1
        listed = pq.ParquetFile(file).read()
        assert listed.num_rows == rows
        assert all(listed.column("reason").to_pylist())

    land(history, FIRST)
    stops(0, "2 of its 7 rows are refused, and max_refused is 0.28", 2, max_refused=0.28)
    assert name == "grouping" or not kept.calls
    run(max_refused=2 / 7)
    rows = load_progress(name)(store).rows
    if name == "grouping":  # nothing waits there, and S is another stream
        assert rows == {"read": 7, "refused": 2, "unasked": 3, "answered": 2}
    else:
        assert rows == {"read": 7, "refused": 2, "pending": 5}
        assert awaited(spark, name, store) == {0, 1, 2, 3, 5}
    land(history, more)
    sentence = "1 of its 7 rows are refused, 3 in all, and max_refused is 2"
    stops(1, sentence, 1, max_refused=2)
    run(max_refused=3)
    land(history, LAST)
    if room.refuses_late:
        sentence = "1 of its 4 rows are late, 1 in all, and max_late is 0"
        stops(2, sentence, 1, max_late=0, max_refused=0)
    run(max_refused=0)
    late = set() if room.refuses_late else {LATE.identity}
    if name != "grouping":
        assert awaited(spark, name, store) == {6, 7, 9} | late
    room.open(spark, history, store, sink=kept, max_refused=0).flush()
    assert room.fold(kept.rows) == room.expected((*FIRST, *more, *LAST))
    found = ledger(store)
    assert (found.read, found.balances) == (len(FIRST + more + LAST), True)
    if name != "grouping":
        assert not awaited(spark, name, store)
        waiting = 3 + len(late)
        assert load_progress(name)(store).rows == {"pending": -waiting, "answered": waiting}
        assert found.answered == 9 + len(late)

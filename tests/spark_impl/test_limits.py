"""Limits of refused rows: over stores that are written by hand, and in a landing."""

from collections.abc import Mapping
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from model.vocabulary import GroupingConfig
from spark_impl.grouping.store import open_store
from spark_impl.runtime.accounts import Reading
from spark_impl.runtime.failures import QueryProblem
from spark_impl.runtime.landing import Landing
from spark_impl.runtime.limits import Limits
from spark_impl.runtime.storage import locate
from spark_impl.runtime.stores import Draft
from spark_impl.runtime.tables import TableWriter
from tests.spark_impl.test_landing import landing_of


def commit(root: Path, limits: Limits, *batches: Mapping[str, int]) -> None:
    """Commit micro-batches of a hundred rows to a new store, unless a limit says no."""
    store = open_store(locate(root), GroupingConfig(instances=2))
    writer = TableWriter(store.root)
    for batch, places in enumerate(batches):
        draft = Draft(store, writer, batch)
        limits.write_account(draft, Reading(100, None), places)
        draft.commit()


def test_a_number_is_asked_of_the_store_that_a_run_finds(tmp_path: Path) -> None:
    """The store that the last run of a query wrote may have been replaced."""
    limits = Limits(refused=10)
    for name in ("store", "another"):
        commit(tmp_path / name, limits, {"refused": 5}, {"refused": 5})


def test_rows_that_two_streams_share_are_rows_of_each(tmp_path: Path) -> None:
    commit(tmp_path / "store", Limits(refused=0.55), {"unasked": -100, "refused": 110})


def test_a_landing_goes_on_with_a_higher_limit_or_repaired_files(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A row without a value lands, so it is not refused."""
    (tmp_path / "in").mkdir()
    history = tmp_path / "history"

    def landing(limit: float | None) -> Landing:
        lines = spark.readStream.schema("ts string, v string").csv(str(tmp_path / "in"))
        return landing_of(lines, tmp_path, key=None, max_refused=limit)

    (tmp_path / "in" / "a.csv").write_text("5,1\n6,x\n7,3\nsoon,4\n", encoding="utf-8")
    landing(0.25).run_available()
    (tmp_path / "in" / "b.csv").write_text("8,1\nnever,x\n,1\n", encoding="utf-8")
    sentence = "has not committed micro-batch 1: 2 of its 3 rows are refused, 3 in all, and max_ref"
    with pytest.raises(QueryProblem, match=sentence):
        landing(2).run_available()
    listed = pq.ParquetFile(history / "_stopped" / "00000001.parquet").read()
    assert listed.column("text").to_pylist() == ["never", None]
    assert not any((history / "_scratch").iterdir())
    assert landing(None).ledger().read == 4
    landing(3).run_available()
    assert not any((history / "_stopped").iterdir())
    late = tmp_path / "in" / "c.csv"
    late.write_text("never,1\n", encoding="utf-8")
    with pytest.raises(QueryProblem, match="1 of its 1 rows are refused, 4 in all"):
        landing(3).run_available()
    late.write_text("9,1\n", encoding="utf-8")  # somebody repairs the file
    (tmp_path / "in" / "d.csv").write_text("never,1\n", encoding="utf-8")
    landing(None).run_available()
    for path in (tmp_path / "checkpoint" / "commits").glob("*3*"):
        path.unlink()  # a crash came between the list and the commit
    landing(0).run_available()  # the row is listed
    found = landing(0).ledger()
    assert (found.read, found.landed, found.balances) == (9, 5, True)

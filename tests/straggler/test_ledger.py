"""``straggler ledger``: where rows are, over stores that are written by hand."""

import json
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from model.vocabulary import GroupingConfig
from spark_impl.grouping.store import REJECTED, open_store
from spark_impl.runtime.accounts import Reading, ledger, write_account
from spark_impl.runtime.histories import REFUSED
from spark_impl.runtime.storage import locate
from spark_impl.runtime.stores import Draft
from spark_impl.runtime.tables import KIND, TableWriter, create
from tests.straggler.command import Straggler, assert_refused

REASON = "value is not a finite number"


def write_batch(
    folder: Path, batch: int, read: int, refused: int, places: Mapping[str, int]
) -> None:
    """Write a micro-batch of a store, with a list of refused rows."""
    store = open_store(locate(folder), GroupingConfig(2))
    draft = Draft(store, TableWriter(store.root), batch)
    rows = pa.Table.from_pylist([{"seq": n, "reason": REASON} for n in range(refused)], REFUSED)
    draft.write(REJECTED, rows)
    write_account(draft, Reading(read, None), {"refused": refused, **places})
    draft.commit()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Write a store of two micro-batches; the second one answers what was pending."""
    folder = tmp_path / "store"
    write_batch(folder, 0, 1_000, 2, {"pending": 990, "redelivered": 8})
    write_batch(folder, 1, 500, 0, {"pending": -900, "answered": 1_390, "late": 10})
    return folder


def test_the_ledger_is_a_table_and_balances(straggler: Straggler, store: Path) -> None:
    done = straggler("ledger", str(store))
    assert (done.code, done.err) == (0, "")
    assert [line.rsplit(maxsplit=1) for line in done.out.splitlines()] == [
        ["place", "rows"],
        ["read", "1,500"],
        [f"refused (query): {REASON}", "2"],
        ["redelivered", "8"],
        ["late", "10"],
        ["answered", "1,390"],
        ["pending", "90"],
        ["accounted for: 1,500 of", "1,500"],
    ]


def test_a_row_that_is_lost_is_missed(straggler: Straggler, store: Path) -> None:
    write_batch(store, 2, 1_000, 1, {"answered": 998})
    done = straggler("ledger", str(store), "--json", "-")
    assert done.code == 1
    assert done.err.endswith("accounted for: 2,499 of 2,500\n")
    found = json.loads(done.out)
    assert (found["read"], found["accounted"], found["balances"]) == (2_500, 2_499, False)
    assert found["refused"] == {"query": {REASON: 3}}


def test_aggregates_of_a_folder_have_a_ledger_each(straggler: Straggler, tmp_path: Path) -> None:
    for name, rows in (("sum_v", 3), ("count", 2)):
        write_batch(tmp_path / "answers" / name, 0, 3, 0, {"answered": rows})
    done = straggler("ledger", ".")
    assert done.code == 1
    lines = done.out.splitlines()
    assert [line for line in lines if ":" in line] == [
        "count:",
        "accounted for: 2 of 3",
        "sum_v:",
        "accounted for: 3 of 3",
    ]


def test_a_ledger_without_rows_says_that_nothing_is_committed(
    straggler: Straggler, tmp_path: Path
) -> None:
    write_batch(tmp_path, 0, 0, 0, {})
    done = straggler("ledger", ".")
    assert (done.code, done.out) == (0, "no micro-batch with rows has been committed\n")


def test_a_folder_that_is_no_store_is_refused(straggler: Straggler, tmp_path: Path) -> None:
    assert_refused(straggler("ledger", "."), f"{tmp_path} is not the store of a query")
    write_deltalake(tmp_path / "other", pa.table({"a": [1]}))  # of another program
    assert_refused(straggler("ledger", "other"), "other is not the store of a query")
    (tmp_path / "answers").mkdir()
    assert_refused(straggler("ledger", "."), "STORE '.' has no answers yet: no query has begun")


def test_rows_that_two_streams_share_count_with_each(store: Path) -> None:
    write_batch(store, 2, 100, 0, {"unasked": -60, "answered": 160})
    found = ledger(store)
    assert (found.read, found.unasked, found.balances) == (1_660, 0, True)


def test_a_store_of_an_earlier_version_has_no_ledger(straggler: Straggler, tmp_path: Path) -> None:
    create(locate(tmp_path), REFUSED.append(pa.field(KIND, pa.string())), {"version": 3})
    assert_refused(straggler("ledger", "."), "has no ledger: an earlier version of Straggler")

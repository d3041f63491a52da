"""``straggler ledger``: where rows are, over stores that are written by hand."""

import json
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from model.vocabulary import GroupingConfig
from spark_impl.grouping.store import REJECTED, open_store
from spark_impl.runtime.accounts import (
    Ledger,
    Reading,
    first_unread,
    ledger,
    ledger_of_landing,
    write_account,
)
from spark_impl.runtime.columns import FAULTS
from spark_impl.runtime.histories import REFUSED, append, file_of, write_parquet
from spark_impl.runtime.landed_files import BATCH, PLAN, READ, name_of_list
from spark_impl.runtime.provenance import note_history
from spark_impl.runtime.storage import InputProblem, locate
from spark_impl.runtime.stores import Draft, require_view
from spark_impl.runtime.tables import KIND, TableWriter, create
from tests.straggler.command import Straggler, assert_refused

REASON = "value is not a finite number"


def write_batch(
    folder: Path,
    batch: int,
    read: int,
    refused: int,
    places: Mapping[str, int],
    seq: int | None = None,
) -> None:
    """Write a micro-batch of a store, with a list of refused rows and the last number read."""
    store = open_store(locate(folder), GroupingConfig(2))
    draft = Draft(store, TableWriter(store.root), batch)
    rows = pa.Table.from_pylist([{"seq": n, "reason": REASON} for n in range(refused)], REFUSED)
    draft.write(REJECTED, rows)
    write_account(draft, Reading(read, seq), {"refused": refused, **places})
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
    write_batch(store, 2, 100, 0, {"unasked": -1, "answered": 101})
    found = ledger(store)
    assert (found.read, found.unasked, found.balances) == (1_601, 0, True)


def test_rows_that_a_landing_has_wait_for_a_query_that_has_read_none(tmp_path: Path) -> None:
    """A micro-batch was planned twice: the list of the plan that was landed counts."""
    history = locate(tmp_path / "history")
    (history / "_landing.json").write_bytes(b'{"landing": "one"}')
    kept = {BATCH: "0", PLAN: str(0xAB), READ: "3"}
    rows = pa.table({"seq": [0, 1], "arrival_us": [5, 5]}).replace_schema_metadata(kept)
    write_parquet(rows, file_of(history, 0))
    for batch, plan in ((0, 0xAB), (0, 0xAC), (1, 0xAD)):  # of the last one no row landed
        reason = f"of plan {plan:x}"
        listed = pa.Table.from_pylist([{"column": "at", "reason": reason}], FAULTS)
        write_parquet(listed, history / "_rejected" / name_of_list(batch, plan, 1, 1))
    store = open_store(locate(tmp_path / "store"), GroupingConfig(2))
    note_history(TableWriter(store.root, history))
    refused = {"landing": {"at of plan ab": 1, "at of plan ad": 1}}
    assert ledger(store.root) == Ledger(4, 2, refused, pending=2)
    assert first_unread(require_view(store.root)) == 0
    assert ledger_of_landing(history) == Ledger(4, 2, refused, pending=2)
    for batch in range(2):
        write_batch(tmp_path / "store", batch, 1, 1, {}, seq=batch)
    refused["query"] = {REASON: 2}  # several columns hold values
    assert (ledger(store.root), first_unread(require_view(store.root))) == (
        Ledger(4, 2, refused),
        2,
    )
    note = {"landing": "one", "value": "watts"}
    (history / "_landing.json").write_bytes(json.dumps(note).encode())
    assert ledger(store.root).refused["query"] == {REASON.replace("value", "watts"): 2}
    write_batch(tmp_path / "store", 2, 1, 0, {"unasked": -1, "answered": 2}, seq=1)
    assert (ledger(store.root).landed, first_unread(require_view(store.root))) == (None, None)
    write_batch(tmp_path / "other", 0, 1, 0, {"answered": 1}, seq=0)  # of no landing
    assert first_unread(require_view(locate(tmp_path / "other"))) is None
    append(history, pa.table({"seq": [2], "arrival_us": [6]}))
    with pytest.raises(InputProblem, match=r"00000001.parquet was not written by a landing"):
        ledger_of_landing(history)
    with pytest.raises(InputProblem, match="/store is not the history of a landing"):
        ledger_of_landing(store.root)


def test_a_store_of_an_earlier_version_has_no_ledger(straggler: Straggler, tmp_path: Path) -> None:
    create(locate(tmp_path), REFUSED.append(pa.field(KIND, pa.string())), {"version": 3})
    assert_refused(straggler("ledger", "."), "has no ledger: an earlier version of Straggler")

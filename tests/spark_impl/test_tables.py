"""Tables of stores: who commits, what counts, what readers are told, and who else can read them."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyspark.sql import SparkSession

from spark_impl.runtime import queries, tables
from spark_impl.runtime.histories import write_parquet
from spark_impl.runtime.storage import InputProblem, Location, locate
from spark_impl.runtime.stores import Draft, TableStore, claim, require_view
from spark_impl.runtime.tables import TableWriter

IDENTITY = {"version": 1}
COLUMNS = {
    "result": pa.schema([("site", pa.string()), ("start_us", pa.int64()), ("value", pa.float64())]),
    "pending": pa.schema([("site", pa.string()), ("start_us", pa.int64())]),
}


@dataclass(frozen=True, slots=True)
class MadeStore(TableStore):
    """A store with two kinds of rows."""

    replaced = ("pending",)

    @property
    def kinds(self) -> Mapping[str, pa.Schema]:
        return COLUMNS


def make(root: Path | Location | str) -> MadeStore:
    store = MadeStore(locate(root))
    claim(store, IDENTITY)
    return store


def rows(first: int, count: int = 3) -> pa.Table:
    starts = range(first, first + count)
    return pa.table([["a"] * count, [*starts], [float(each) for each in starts]], COLUMNS["result"])


def draft_of(store: MadeStore, writer: TableWriter, batch: int) -> Draft:
    """Return a micro-batch whose answers begin at ten times its number."""
    draft = Draft(store, writer, batch)
    draft.write("result", rows(10 * batch))
    draft.replace("pending", rows(batch, 1).drop(["value"]))
    return draft


def starts(store: MadeStore, kind: str = "result") -> list[int]:
    return sorted(store.at().read_kind(kind).column("start_us").to_pylist())


def test_a_version_has_all_rows_of_its_micro_batches(place: Location) -> None:
    store = make(place / "s")
    writer = TableWriter(store.root)
    for batch in range(3):
        draft_of(store, writer, batch).commit()
    files = [each.children() for each in store.root.children("kind=.*")]
    assert (store.at().view.last, Draft(store, writer, 2).is_new) == (2, False)
    draft_of(store, writer, 2).commit()  # Spark repeats it after a crash
    assert [each.children() for each in store.root.children("kind=.*")] == files
    assert starts(store) == [0, 1, 2, 10, 11, 12, 20, 21, 22]
    assert starts(store, "pending") == [2], "the others were replaced"
    view = require_view(store.root)
    assert store.at(view).read_kind("result", 1).column("start_us").to_pylist() == [10, 11, 12]
    assert [each.bounds["start_us"] for each in view.of("result", 1, 1)] == [(10, 12)]
    assert view.identity == IDENTITY


def test_of_two_writers_the_second_one_stops_with_a_sentence(place: Location) -> None:
    """Interleavings are drawn (``tests/properties/test_tables.py``), but on local files only."""
    store = make(place / "s")
    suspended, other = TableWriter(store.root), TableWriter(store.root)
    late = draft_of(store, suspended, 0)
    draft_of(store, other, 0).commit()
    with pytest.raises(InputProblem, match="has micro-batch 0 already: another query has written"):
        late.commit()
    assert starts(store) == [0, 1, 2]


def test_a_writer_counts_its_files_once_if_another_one_follows_a_failing_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one comes within a commit, where no step of a drawn driver begins."""
    store = make(tmp_path / "s")
    writer, other = TableWriter(store.root), TableWriter(store.root)
    write, read = DeltaTable.create_write_transaction, DeltaTable.history

    def write_and_fail(table: DeltaTable, *given: Any, **named: Any) -> None:
        write(table, *given, **named)
        monkeypatch.undo()
        monkeypatch.setattr(DeltaTable, "history", read_and_note)
        message = "the log cannot be summed up"
        raise DeltaError(message)

    def read_and_note(table: DeltaTable) -> list[dict[str, Any]]:
        monkeypatch.undo()
        other.note_history({"id": "x"})
        return read(table)

    monkeypatch.setattr(DeltaTable, "create_write_transaction", write_and_fail)
    draft_of(store, writer, 0).commit()
    assert writer.look() == require_view(store.root)


@pytest.mark.parametrize("damage", ["lose", "cut", "lengthen"])
def test_readers_miss_a_damaged_file(tmp_path: Path, damage: str) -> None:
    store = make(tmp_path / "s")
    writer = TableWriter(store.root)
    for batch in range(2):
        draft_of(store, writer, batch).commit()
    (file,) = (tmp_path / "s" / "kind=result").glob("00000001-*.parquet")
    content = file.read_bytes()
    file.unlink()
    if damage != "lose":
        file.write_bytes(content[:-9] if damage == "cut" else content + b"more")
    sentence = f"s has lost {file.name} with 3 rows of kind 'result', or a part of it"
    with pytest.raises(InputProblem, match=sentence):
        store.at().read_kind("result")
    view = require_view(store.root)
    with pytest.raises(InputProblem, match=sentence):
        store.require_whole(view.of("result"))
    assert starts(store, "pending") == [1]


def test_tidying_up_removes_what_no_recent_version_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = {**tables._SETTINGS, "delta.deletedFileRetentionDuration": "interval 0 seconds"}
    monkeypatch.setattr(tables, "_SETTINGS", now)
    monkeypatch.setattr(tables, "TIDIED", 4)
    store = make(tmp_path / "s")
    writer = TableWriter(store.root)
    names = ("_checkpoint/offsets/0", "_control/1", "spark/offsets/0")
    kept = [tmp_path / "s" / name for name in names]
    for file in kept:
        file.parent.mkdir(parents=True)
        file.touch()
    for batch in range(20):
        draft_of(store, writer, batch).commit()
        store.write("result", batch, rows(77), f"of-a-dead-task-{batch}")
    assert len(starts(store)) == 60
    assert len(list((tmp_path / "s" / "kind=result").iterdir())) < 10
    assert all(file.exists() for file in kept)


@pytest.mark.parametrize("name", ["a%20b", r"a\b", "a\nb"])
def test_paths_that_delta_takes_for_others_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputProblem, match="cannot be a store: its path has a backslash"):
        make(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_rows_of_a_micro_batch_are_found_in_a_merged_file(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make(tmp_path / "s")
    writer, file = TableWriter(store.root), store.file("result", 1, "merged")
    Draft(store, writer, 0).commit()
    write_parquet(rows(0, 4).append_column("batch", pa.array([0, 0, 1, 1])), file)
    draft = Draft(store, writer, 1)
    draft.take("result", [file])
    draft.commit()
    store.write("result", 1, rows(2), "of-a-dead-task")
    for few in (1, 0):  # many files are chosen by a pattern
        monkeypatch.setattr(queries, "FEW", few)
        found = queries.read_table(spark, store.at(), "result", 1, 1)
        assert sorted(row.start_us for row in found.collect()) == [2, 3]


def test_a_half_made_table_can_be_made(tmp_path: Path) -> None:
    (tmp_path / "s" / "_delta_log").mkdir(parents=True)
    (tmp_path / "s" / "_delta_log" / "_commit_4711.json.tmp").touch()
    assert make(tmp_path / "s").at().view.last == -1
    shutil.copytree(tmp_path / "s" / "_delta_log", tmp_path / "t" / "_delta_log" / "of another")
    (tmp_path / "t" / "notes").touch()
    with pytest.raises(
        InputProblem, match="/t is neither an empty folder nor the store of a query"
    ):
        make(tmp_path / "t")
